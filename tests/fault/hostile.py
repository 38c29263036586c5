#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Users and daemons that mean harm: what they send is whole and well signed,
and says what no launcher and no daemon would say.

    hostile.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events, never for a time to pass. After every case no process,
socket or file may be left.
"""
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, child_named,
    children, comm, control_version, expect, is_alive, main)
from strangers import called, proven  # noqa: E402
from wire import (  # noqa: E402
    frame, job_name, launch, receive_frame, string, strings)

(STARTED, ENDED, NODE_LOST, ENTERED, DONE, GONE, ABSENT, GATEWAY, LAUNCH, INPUT, KILL, END, ASK,
 GREET, QUERY, STATUS, DROP, REQUEST, REPLY, NEWS, REFUSED) = (
    32, 35, 36, 37, 39, 40, 42, 43, 48, 49, 52, 54, 60, 80, 81, 82, 83, 84, 85, 86, 87)

DROP_S = 5.0  # of a supervisor whose job is dropped: chempid/tree/limits.h
CASES = []
# What is spoken for here does not beat.
PATIENT = ("--detect", "600")


def case(fn):
    CASES.append(fn)
    return fn


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def greeting(name=b""):
    return frame(GREET, struct.pack("<I", control_version()) + string(name))


def client(cluster, name):
    """A user's connection that has greeted and been greeted."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(LIMIT_S)
    sock.connect(f"{cluster.dir}/{name}.sock")
    sock.sendall(greeting())
    check(receive_frame(sock)[0] == GREET, "no greeting")
    return sock


def refusal(sock):
    """The words of the REPLY that comes."""
    kind, data = receive_frame(sock)
    check(kind == REPLY, "not a reply:", kind, data)
    return data[8:-1].decode()


def expect_whole(cluster, *pids):
    """The same daemons are there, and start jobs."""
    names = cluster.names()
    check([cluster.pid(name) for name in names] == list(pids),
          "another daemon", cluster.logged())
    expect(cluster.run("-n", str(2 * len(names)), Programs.rank, "init",
                       "everyone", "final"), 0)


@case
def a_launch_that_names_a_node_many_times_is_refused():
    """Each would be a child of a hub that has room for five."""
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        for count in (4000, 64, 7, 6, 2):
            for name in (b"a1", b"x1"):
                with client(cluster, "a1") as sock:
                    nodes = list(range(count))
                    sock.sendall(launch(7 + count, [name] * count, nodes,
                                        nodes))
                    check("malformed launch" in refusal(sock))
        expect_whole(cluster, pid)


@case
def a_launch_names_no_files():
    """A node's name is part of a path."""
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        for name in (b"", b"../a1", b"a/b", b".a"):
            with client(cluster, "a1") as sock:
                sock.sendall(launch(9, [b"a1", name], [0], [0]))
                check("malformed launch" in refusal(sock))
        expect_whole(cluster, pid)


def busy(cluster):
    """Slots that are taken, by node."""
    return {node["node"]: node["ranks"]
            for node in json.loads(cluster.ctl("--json", "nodes"))}


@case
def only_ranks_hold_slots():
    """Not those of a node that a launch names and leaves out, nor those whose
    supervisor is gone while the rest of the job goes on."""
    with Cluster(["a1", "a2"], PATIENT) as cluster:
        with client(cluster, "a1") as sock:
            sock.sendall(launch(7, [b"a1", b"a2"], [1], [0] * 1000))
            await_frame(sock, STARTED)
            check(busy(cluster) == {"a1": 0, "a2": 0}, busy(cluster))
        with client(cluster, "a1") as sock:
            sock.sendall(launch(9, [b"a1", b"a2"], [0, 1], [0, 0, 1],
                                (b"sleep", b"1000")))
            await_frame(sock, STARTED)
            check(busy(cluster) == {"a1": 2, "a2": 1}, busy(cluster))
            os.kill(child_named(cluster.pid("a1"), "chempi-super"),
                    signal.SIGKILL)
            await_frame(sock, NODE_LOST)
            check(busy(cluster) == {"a1": 0, "a2": 1}, busy(cluster))


class Between:
    """A socket in the cluster's directory by which a launcher speaks with the
    daemon of a node. What it orders waits here until it is let through."""

    def __init__(self, cluster, name):
        self.path = f"{cluster.dir}/between.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(LIMIT_S)
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.connect(f"{cluster.dir}/{name}.sock")
        self.launcher = None

    def pass_until(self, wanted):
        """All that both say, up to a frame of this type from the launcher,
        which is returned; None: the launcher has gone."""
        if not self.launcher:
            self.launcher = self.listener.accept()[0]
        while True:
            ready, _, _ = select.select([self.launcher, self.daemon], [], [],
                                        LIMIT_S)
            check(ready, "neither says a word")
            try:
                if self.daemon in ready:
                    said = self.daemon.recv(65536)
                    check(said, "the daemon closed the connection")
                    self.launcher.sendall(said)
                head = self.launcher.recv(16, socket.MSG_WAITALL) \
                    if self.launcher in ready else None
            except ConnectionError:
                head = b""
            if head == b"":
                return None
            if head:
                length, kind = struct.unpack_from("<IH", head)
                data = head + self.launcher.recv(length, socket.MSG_WAITALL)
                if kind == wanted:
                    return data
                self.daemon.sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.unlink(self.path)
        for sock in (self.listener, self.daemon, self.launcher):
            if sock:
                sock.close()


def names_of_jobs(launcher):
    """What all users of this host see of the jobs of a launcher."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        return set(re.findall(
            rf"@chempi-job/\d+/([0-9a-f]{{16}})/{launcher}$", file.read(), re.M))


@case
def nobody_takes_the_number_of_a_job_whose_name_is_seen():
    """Nor on a node which has not heard of that job yet: daemons know a job by
    its number, and the second one of it is refused there, and ended."""
    with Cluster(["a1", "a2"], PATIENT) as cluster:
        with Between(cluster, "a1") as between, client(cluster, "a2") as sock:
            job = cluster.job("--via", "between", "--nodes", "a1,a2", "-n", "2",
                              "--ppn", "1", Programs.rank, "init", "everyone",
                              "final")
            order = between.pass_until(LAUNCH)
            names = names_of_jobs(job.process.pid)
            check(len(names) == 1, names)
            sock.sendall(launch(int(names.pop(), 16), [b"a2"], [0], [0],
                                (b"sleep", b"1000")))
            await_frame(sock, STARTED)
            between.daemon.sendall(order)
            between.pass_until(None)
            job.status = job.finish()
            expect(job, 0, r"\A\Z")


@case
def nobody_waits_for_a_pipe_among_the_files_of_nodes():
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        os.mkfifo(f"{cluster.dir}/a0.node")
        expect_whole(cluster, pid)
        os.unlink(f"{cluster.dir}/a0.node")


@case
def no_link_is_followed_among_the_files_of_nodes():
    with Cluster(["a1"], PATIENT) as cluster:
        with open(f"{cluster.dir}/log.other", "w", encoding="utf-8") as file:
            file.write("a0 127.0.0.1:1 1\n")
        os.symlink("log.other", f"{cluster.dir}/a0.node")
        check("a0" not in cluster.ctl("nodes"), "the link was followed")
        os.unlink(f"{cluster.dir}/a0.node")
        os.unlink(f"{cluster.dir}/log.other")


@case
def a_directory_that_a_group_may_write_is_refused():
    with Cluster([]) as cluster:
        os.chmod(cluster.dir, 0o770)
        done = subprocess.run(
            [Programs.chempid, "--name", "a1", "--dir", cluster.dir],
            env=cluster.env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=LIMIT_S)
        os.chmod(cluster.dir, 0o700)
        check(done.returncode == 1 and "chmod go-w" in done.stderr, done)


# ---- links -------------------------------------------------------------------


def await_frame(sock, wanted):
    """What a daemon says of this type; the rest is left out."""
    while True:
        kind, data = receive_frame(sock)
        if kind == wanted:
            return data


def rogue(cluster, name):
    """A daemon that has the key, and calls this one."""
    sock = proven(cluster, name)
    sock.settimeout(LIMIT_S)
    sock.sendall(greeting(b"x1"))
    await_frame(sock, GREET)
    return sock


def expect_up(sock, number):
    """The link stands: a question comes back answered."""
    sock.sendall(frame(QUERY, u32(0) + strings([b"a1"]) + struct.pack("<II", 0, 0), number))
    check(await_frame(sock, STATUS)[4:].startswith(b"a1\0"))


def why(data):
    return data[8:-1].decode()


NOBODY = 0xffffffff
MALFORMED = (
    frame(LAUNCH, b"", 5),
    frame(LAUNCH, b"\1\0\0\0\0\0\0\0" + bytes(100), 5),
    launch(5, [b"a1"], [0, 0], [0]),
    launch(5, [b"a1"], [1], [0]),
    launch(5, [b"a1", b"a1"], [0, 1], [0, 1]),
    launch(5, [b"a1"], [0], [0], argv=()),
    launch(0, [b"a1"], [0], [0]),
    frame(QUERY, b"\xff\xff\xff\xff", 5),
    frame(QUERY, u32(0) + strings([b"a1"]), 5),
    frame(STATUS, b"\xff", 5),
    frame(REQUEST, b"\1", 5),
    frame(NEWS, b"\xff\0\0\0", 5),
    frame(REFUSED, b"", 5),
    frame(REFUSED, struct.pack("<I", QUERY), 5),
    frame(GREET, b"", 5),
    frame(999, b"", 5))


@case
def what_is_refused_leaves_the_link():
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        with rogue(cluster, "a1") as sock:
            for number, data in enumerate(MALFORMED):
                sock.sendall(data)
                expect_up(sock, number + 100)
            check("connection with node x1" not in cluster.logged(),
                  cluster.logged())
        expect_whole(cluster, pid)


@case
def a_daemon_brings_all_limits_of_who_has_submitted_a_job():
    """Else its ranks would have this daemon's."""
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        with rogue(cluster, "a1") as sock:
            for count in (0, 15):
                sock.sendall(launch(5, [b"a1"], [0], [0], limits=count))
                sock.sendall(frame(QUERY, u32(0) + strings([b"a1"]) +
                                   u32(0, 0), 1))
                kind = None
                while kind not in (REFUSED, STATUS):
                    kind, data = receive_frame(sock)
                check(kind == REFUSED and b"its submitter's limits" in data,
                      count, kind, data)
                await_frame(sock, STATUS)
        expect_whole(cluster, pid)


@case
def a_job_number_in_use_refuses_the_second_job():
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        forever = dict(argv=(b"sleep", b"1000"))
        with rogue(cluster, "a1") as sock, rogue(cluster, "a1") as other:
            sock.sendall(launch(77, [b"a1"], [0], [0], **forever))
            await_frame(sock, STARTED)
            for link in (sock, other):
                link.sendall(launch(77, [b"a1"], [0], [0], **forever))
                check("job that runs" in why(await_frame(link, REFUSED)))
            other.sendall(frame(DROP, b"", 77))  # it has none to drop
            expect_up(other, 1)
            check(cluster.ctl("jobs").count("sleep") == 1)
            sock.sendall(frame(KILL, struct.pack("<I", NOBODY) + string(b"x"),
                               77))
            await_frame(sock, DONE)
            sock.sendall(frame(END, b"", 77))
            await_frame(sock, GONE)
            expect_up(sock, 2)
        expect_whole(cluster, pid)


@case
def nonsense_from_above_ends_its_job_only():
    """A daemon that orders a job says of it what none would say."""
    nonsense = (frame(STARTED, b"", 78), frame(999, b"", 78),
                frame(ASK, struct.pack("<IIII", 9, 0, 0, 0), 78),
                frame(50, b"", 78), frame(49, b"", 78))
    with Cluster(["a1"], PATIENT) as cluster:
        pid = cluster.pid("a1")
        with rogue(cluster, "a1") as sock:
            sock.sendall(launch(79, [b"a1"], [0], [0], (b"sleep", b"1000")))
            await_frame(sock, STARTED)
            for number, data in enumerate(nonsense):
                sock.sendall(launch(78, [b"a1"], [0], [0], (b"sleep", b"1001")))
                await_frame(sock, STARTED)
                sock.sendall(data)
                check("malformed message" in why(await_frame(sock, REFUSED)))
                await_that(lambda: "1001" not in cluster.ctl("jobs"))
                await_that(lambda: cluster.ctl("jobs").count("sleep") == 1)
                expect_up(sock, number)
        expect_whole(cluster, pid)


class Rogue:
    """A daemon of node x1 that the others call. It has the key."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.path = f"{cluster.dir}/x1.node"
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f"x1 127.0.0.1:{self.listener.getsockname()[1]} 2\n")
        self.link = None

    def await_call(self, *wanted):
        """The first frame of these types, and its job. States are told."""
        if not self.link:
            self.link = called(self.cluster, self.listener)
            self.link.sendall(greeting(b"x1"))
        while True:
            head = self.receive(16)
            length, kind, _, job = struct.unpack("<IHHQ", head)
            data = self.receive(length)
            if kind == QUERY and QUERY not in wanted:
                self.link.sendall(frame(STATUS, self.status(), job))
            if kind in wanted:
                return kind, job, data

    def receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.link.recv(count - len(data))
            check(piece, "the daemon closed the link")
            data += piece
        return data

    @staticmethod
    def status(grants=0):
        """A record as in chempid/tree/nodes/status.h."""
        return (string(b"x1") + string(b"") +
                struct.pack("<QIIII", 1, 2, 0, 0, 1) + string(b"0") +
                string(b"") + struct.pack("<BIQQI", 0, 0, 0, 0, grants) +
                (string(b"") + bytes(49)) * grants)

    def send(self, kind, job, data=b""):
        self.link.sendall(frame(kind, data, job))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.unlink(self.path)
        self.listener.close()
        if self.link:
            self.link.close()


def job_over(cluster, *names):
    """Of a rank on each node, x1 the last."""
    return cluster.job("--nodes", ",".join([*names, "x1"]), "-n",
                       str(len(names) + 1), "--ppn", "1", "sleep", "1000")


@case
def nonsense_from_below_ends_its_job_only():
    nonsense = (
        lambda job: frame(STARTED, u32(2), job),
        lambda job: frame(DONE, b"", job),
        lambda job: frame(ENTERED, struct.pack("<Q", 7), job),
        lambda job: frame(ENDED, u32(0, 0), job),
        lambda job: frame(999, b"", job),
        lambda job: frame(ASK, u32(77), job),
        lambda job: frame(REFUSED, b"", job))
    with Cluster(["a1"], PATIENT) as cluster, Rogue(cluster) as x1:
        bystander = job_over(cluster, "a1")
        _, number, _ = x1.await_call(LAUNCH)
        x1.send(STARTED, number, u32(1))
        for bad in nonsense:
            job = job_over(cluster, "a1")
            _, victim, _ = x1.await_call(LAUNCH)
            x1.link.sendall(bad(victim))
            check(x1.await_call(DROP)[1] == victim)
            job.status = job.finish()
            expect(job, 1, r"\Achempirun: the daemon of node x1 sent "
                   r"a malformed message \([^\n]*; the job was ended\n\Z")
        job = job_over(cluster, "a1")
        _, victim, _ = x1.await_call(LAUNCH)
        x1.send(REFUSED, victim, u32(LAUNCH) + string(b"no room"))
        job.status = job.finish()
        expect(job, 1, r"\Achempirun: the daemon of node x1 [^\n]*no room[^\n]*"
               r"; the job was ended\n\Z")
        check(bystander.process.poll() is None, "the bystander ended")
        bystander.process.send_signal(signal.SIGTERM)
        x1.await_call(51)  # SIGNAL
        x1.send(DONE, number, u32(1))
        x1.await_call(END)
        x1.send(GONE, number, u32(1))
        bystander.status = bystander.finish()
        expect(bystander, 143)


@case
def nobody_speaks_for_the_ranks_of_another_node():
    """Whole words of the daemon of node 1, whose rank is 1, on rank 0."""
    killed, lost, cut = 3, 0, 3
    nonsense = (
        lambda rank: (ENDED, u32(1, rank, 7) + struct.pack("<BI", killed, 9) +
                      string(b"prog") + string(b"")),
        lambda rank: (ABSENT, u32(1, rank)),
        lambda rank: (GATEWAY, u32(1, 2) + struct.pack("<BI", cut, rank) +
                      string(b"cut")),
        lambda rank: (GATEWAY, u32(1, rank) + struct.pack("<BI", lost, 2) +
                      string(b"lost")),
        lambda rank: (GATEWAY, u32(1, 0xffffffff) +
                      struct.pack("<BI", lost, 0xffffffff) + string(b"none")))
    with Cluster(["a1"], PATIENT) as cluster, Rogue(cluster) as x1:
        for bad in nonsense:
            job = job_over(cluster, "a1")
            _, number, _ = x1.await_call(LAUNCH)
            x1.send(STARTED, number, u32(1))
            kind, data = bad(0)
            x1.send(kind, number, data)
            x1.await_call(KILL)
            x1.send(DONE, number, u32(1))
            x1.send(GONE, number, u32(1))
            job.status = job.finish()
            expect(job, 1, r"\Achempirun: a supervisor sent a malformed "
                   r"message; the job was ended\n\Z")


def is_refused(sock, number, size):
    """Of a launch of about so many bytes on node x1; and why."""
    words = [b"y" * 100000] * (size // 100000) + [b"y" * (size % 100000)]
    sock.sendall(launch(number, [b"a1", b"x1"], [1], [1], (b"true", *words)))
    sock.sendall(frame(QUERY, u32(0) + strings([b"a1"]) + u32(0, 0), 1))
    said = b""
    while True:
        kind, data = receive_frame(sock)
        if kind == STATUS:
            return said
        said += data if kind == NODE_LOST else b""


def fill_with_questions(sock):
    """Until node x1 cannot be asked for lack of room. Nobody waits for its
    answers: the limit is a millisecond, but the questions stay."""
    for count in (10000, 300, 10, 1):
        names = [b"x1"] + [b"y%062d" % i for i in range(count)]
        asks = frame(QUERY, u32(0) + strings(names) + u32(0, 1))
        for _ in range(1000):
            sock.sendall(asks)
            if b"No buffer space" in await_frame(sock, STATUS)[:200]:
                break
        else:
            check(False, "all questions are accepted")


@case
def a_link_that_a_user_fills_stays():
    """Node x1 does not read. Launches are refused, small ones last, and then
    all that have gone are dropped. Nor does a crowd of questions keep another
    user's job, that passes through node a1, from what it says."""
    with Cluster(["a1"], PATIENT) as cluster, Rogue(cluster) as x1, \
            rogue(cluster, "a1") as other:
        bystander = job_over(cluster, "a1")
        _, number, _ = x1.await_call(LAUNCH)
        x1.send(STARTED, number, u32(1))
        other.sendall(launch(7, [b"x1"], [0], [0], (b"other",),
                             uid=os.getuid() + 1))
        check(x1.await_call(LAUNCH)[1] == 7)
        x1.send(STARTED, 7, u32(1))
        await_frame(other, STARTED)
        with client(cluster, "a1") as sock:
            said = b""
            large = 0
            while not said:
                large += 1
                check(large < 30, "all is accepted")
                said = is_refused(sock, 5, 20 << 20)
                sock.sendall(frame(DROP, b"", 5))
            check(b"as fast as they come" in said, said)
            kept = 0
            for size in (900000, 300000, 100000, 10000, 1000, 50, 1):
                while not is_refused(sock, 100 + kept, size):
                    kept += 1
                    check(kept < 400, "all is accepted")
                sock.sendall(frame(DROP, b"", 100 + kept))
            fill_with_questions(sock)
            for _ in range(15):
                other.sendall(frame(INPUT, u32(NOBODY) + string(bytes(60000)),
                                    7))
            other.sendall(frame(QUERY, u32(0) + strings([b"a1"]) + u32(0, 0)))
            check(receive_frame(other)[0] == STATUS, "the other user's job ended")
            for i in range(kept):
                sock.sendall(frame(DROP, b"", 100 + i))
            await_that(lambda: cluster.ctl("jobs").count("true") == 0)
        check("connection with node x1" not in cluster.logged())
        check(bystander.process.poll() is None, "the bystander ended")
        check("sleep" in cluster.ctl("jobs"))
        bystander.process.kill()
        bystander.finish()


@case
def a_kill_that_is_one_order_too_many_ends_nothing():
    """The other orders wait for the end of a job whose launcher is silent."""
    def kill(job, number):
        return frame(REQUEST, u32(1) + string(b"a1") + string(job_name(job)) +
                     u32(os.getuid()), number)

    with Cluster(["a1"], PATIENT) as cluster, client(cluster, "a1") as silent, \
            client(cluster, "a1") as spared, client(cluster, "a1") as sock:
        for number, launcher in ((7, silent), (8, spared)):
            launcher.sendall(launch(number, [b"a1"], [0], [0],
                                    (b"sleep", b"1000")))
            await_frame(launcher, STARTED)
        for number in range(64):
            sock.sendall(kill(7, number))
        sock.sendall(kill(8, 64))
        check("too many orders" in refusal(sock))
        spared.sendall(frame(QUERY, u32(0) + strings([b"a1"]) + u32(0, 0)))
        check(receive_frame(spared)[0] == STATUS, "the job is told to end")


@case
def an_answer_too_long_for_a_frame_is_left_out():
    with Cluster(["a1"], PATIENT) as cluster, Rogue(cluster) as x1:
        job = job_over(cluster, "a1")
        _, number, _ = x1.await_call(LAUNCH)
        for answer, words in (
                (x1.status(1 << 20), "x1 +too long an answer"),
                (b"\xff", "x1 +the answer of node x1 cannot be read"),
                (x1.status().replace(b"x1", b"a1"),
                 "x1 +node x1 has not answered for it"),
                (x1.status() * 3, r"x1 +2 +0 +0\.00 +1  0\n")):
            asks = subprocess.Popen([Programs.chempictl, "nodes"],
                                    env=cluster.env, text=True,
                                    stdout=subprocess.PIPE)
            _, question, _ = x1.await_call(QUERY)
            x1.link.sendall(frame(STATUS, answer, question))
            said = asks.communicate(timeout=LIMIT_S)[0]
            check(re.search(words, said) and said.count("x1  ") == 1 and
                  said.count("a1  ") == 1, said)
        job.process.kill()
        check(x1.await_call(DROP)[1] == number)
        job.finish()


@case
def counts_on_their_way_when_a_job_is_dropped_are_late():
    """The launcher is killed; what the daemon below had said before it knew
    arrives after the job was dropped."""
    with Cluster(["a1"], PATIENT) as cluster, Rogue(cluster) as x1:
        bystander = job_over(cluster, "a1")
        _, number, _ = x1.await_call(LAUNCH)
        x1.send(STARTED, number, u32(1))
        daemon = cluster.pid("a1")
        before = {child_named(daemon, "chempi-super")}

        def find_supervisor():
            found = [pid for pid in children(daemon) if pid not in before and
                     comm(pid).startswith("chempi-super") and is_alive(pid)]
            return found[0] if found else None
        for kind, data in ((STARTED, u32(1)), (DONE, u32(1)), (GONE, u32(1)),
                           (ENTERED, struct.pack("<Q", 1)), (999, b"")):
            job = job_over(cluster, "a1")
            _, victim, _ = x1.await_call(LAUNCH)
            await_that(find_supervisor, "its supervisor")
            supervisor = find_supervisor()  # stands: the daemon keeps the job
            os.kill(supervisor, signal.SIGSTOP)
            began = time.monotonic()
            job.process.kill()
            check(x1.await_call(DROP)[1] == victim)
            x1.send(kind, victim, data)
            x1.send(QUERY, 5, u32(0) + strings([b"a1"]) + u32(0, 0))
            x1.await_call(STATUS)
            check(find_supervisor() == supervisor or
                  time.monotonic() - began >= DROP_S, "the job was not kept")
            with contextlib.suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGCONT)
            job.finish()
            jobrun.wait_gone([supervisor], LIMIT_S)
            await_that(lambda: not find_supervisor(), "its end")
        check(bystander.process.poll() is None, "the bystander ended")
        bystander.process.kill()
        check(x1.await_call(DROP)[1] == number)
        bystander.finish()


@case
def launchers_that_are_killed_harm_nobody_else():
    with Cluster(["a1", "a2", "a3", "b1", "b2"]) as cluster:
        rank = (Programs.rank, "init", "print", "up", "hang")
        bystanders = [cluster.job("--via", via, "-n", "10", *rank)
                      .await_lines(10) for via in ("a1", "b2", "a3")]
        for turn in range(24):
            via = cluster.names()[turn % 5]
            job = cluster.job("--via", via, "-n", "10", Programs.rank, "init",
                              "print", "up", "everyone", "print", "there",
                              "final")
            job.await_lines(turn % 21)
            job.process.kill()
            job.process.communicate(timeout=LIMIT_S)
            # Its launch may still have been on its way to some nodes.
            await_that(lambda m=job.mark: not jobrun.marked(m), "its end")
        for job in bystanders:
            check(job.process.poll() is None, job.process.stderr)
            job.process.terminate()
            job.status = job.finish()
            expect(job, 143)
        check("connection was closed" not in cluster.logged())


if __name__ == "__main__":
    sys.exit(main(CASES))
