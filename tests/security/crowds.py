#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Crowds of strangers and of users, and what others still get of a daemon.

    crowds.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events, never for a time to pass. Those with several users run
as root, and count as skipped elsewhere.
"""
import contextlib
import json
import os
import pwd
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "fault")]
import noise  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, child_named, children, comm,
    control_version, expect, main, root_only)
from wire import (  # noqa: E402
    HEAD, MARK, frame, job_name, launch, read_key, receive_frame, string)

CASES = []
STARTED, NODE_LOST, INPUT, GREET, QUERY, STATUS = 32, 36, 49, 80, 81, 82
REQUEST, REPLY, REFUSED = 84, 85, 87
FIRST_USER = 60001
NOBODY = 65534
PROOF_S = 3.0  # to prove the key: chempid/tree/limits.h


def case(fn):
    CASES.append(fn)
    return fn


def memory(pid):
    """What the process has now, and has had at most, bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", file.read()))
    return int(found["VmRSS"]) << 10, int(found["VmHWM"]) << 10


def most_memory(pid):
    """What a daemon may take for a user, with its copies. AddressSanitizer
    keeps what was freed for a while, and pads what is there."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return (1 << 30) if "libasan" in file.read() else 160 << 20


@contextlib.contextmanager
def as_user(uid):
    if uid is not None:
        os.seteuid(uid)
    try:
        yield
    finally:
        if uid is not None:
            os.seteuid(0)


def client_of(cluster, name, uid=None):
    sock = socket.socket(socket.AF_UNIX)
    with as_user(uid):
        sock.connect(f"{cluster.dir}/{name}.sock")
    sock.settimeout(LIMIT_S)
    return sock


def is_closed(sock):
    """Has the other side closed, whatever it has said before?"""
    poll = select.poll()  # also of numbers that select() does not take
    poll.register(sock, select.POLLIN)
    try:
        while poll.poll(0):
            if not sock.recv(65536):
                return True
    except ConnectionResetError:
        return True
    return False


def send_until_closed(sock, data):
    """How much the other side takes before it closes."""
    count = 0
    try:
        while True:
            count += sock.send(data)
    except (BrokenPipeError, ConnectionResetError):
        return count


def greeting(name):
    return frame(GREET, struct.pack("<I", control_version()) + string(name))


# ---- memory ------------------------------------------------------------------


@case
def nobody_has_memory_before_greeting():
    """Neither announced nor sent."""
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        before = memory(pid)[1]
        clients = [client_of(cluster, "a1") for _ in range(8)]
        for sock in clients:
            sock.send(struct.pack(HEAD, 64 << 20, GREET, MARK, 0))
        for sock in clients:
            send_until_closed(sock, bytes(1 << 20))
            sock.close()
        cluster.ctl("nodes")
        check(memory(pid)[1] - before < 2 << 20, before, memory(pid))


@case
def who_does_not_greet_is_dropped():
    with Cluster(["a1"]) as cluster:
        with client_of(cluster, "a1") as sock:
            await_that(lambda: is_closed(sock), "the end of the connection")
        check("has not greeted" in cluster.logged(), cluster.logged())


@case
def what_is_not_read_is_bounded_for_a_user():
    """Answers that nobody reads, on several connections."""
    names = b"".join(string(b"no%06d" % i) for i in range(20000))
    question = frame(QUERY, struct.pack("<II", 0, 20000) + names +
                     struct.pack("<II", 0, 0), 1)
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        clients = [client_of(cluster, "a1") for _ in range(3)]
        for sock in clients:
            sock.send(greeting(b""))
            check(receive_frame(sock)[0] == GREET)
        for sock in clients:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(100):
                    sock.sendall(question)
        cluster.ctl("nodes")
        check(memory(pid)[1] < most_memory(pid), memory(pid))
        for sock in clients:
            sock.close()
        cluster.ctl("nodes")


def supervisors(pid):
    return [child for child in children(pid)
            if comm(child).strip() == "chempi-super"]


@case
def what_supervisors_do_not_read_is_bounded_for_a_user():
    """They are stopped; so much input for each is below the limit of one."""
    count = 8
    data = frame(INPUT, struct.pack("<II", 0xffffffff, 65000) + bytes(65000))
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        clients = [client_of(cluster, "a1") for _ in range(count)]
        for number, sock in enumerate(clients):
            sock.send(greeting(b""))
            sock.sendall(launch(9 + number, [b"a1"], [0], [0],
                                (b"sleep", b"1000")))
            while receive_frame(sock)[0] != STARTED:
                pass
        stopped = supervisors(pid)
        check(len(stopped) == count, stopped)
        for child in stopped:
            os.kill(child, signal.SIGSTOP)
        for number, sock in enumerate(clients):
            one = data[:8] + struct.pack("<Q", 9 + number) + data[16:]
            for _ in range(28 * 16):
                sock.sendall(one)
        kind = None
        while kind != NODE_LOST:  # the last one gets no more than was left
            kind, said = receive_frame(clients[-1])
        check(b"than a user may have" in said, said)
        check(memory(pid)[1] < most_memory(pid), memory(pid))
        for child in supervisors(pid):
            os.kill(child, signal.SIGCONT)
        for sock in clients:
            sock.close()
        await_that(lambda: "sleep" not in cluster.ctl("jobs"))
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone",
                           "final"), 0)


@case
def a_user_has_only_so_many_questions():
    """While a node does not answer; then they are given back."""
    most = 64
    question = frame(QUERY, struct.pack("<II", 0, 1) + string(b"a2") +
                     struct.pack("<II", 0, 0), 1)
    with Cluster(["a1", "a2"], ("--detect", "60")) as cluster:
        pid = cluster.pid("a2")
        clients = [client_of(cluster, "a1") for _ in range(most + 6)]
        for sock in clients:
            sock.send(greeting(b""))
            check(receive_frame(sock)[0] == GREET)
        os.kill(pid, signal.SIGSTOP)
        try:
            for sock in clients:
                sock.send(question)
            refused = set()
            while len(refused) < 6:
                ready = select.select(clients, [], [], LIMIT_S)[0]
                check(ready, len(refused))
                for sock in ready:
                    check(b"too many questions" in receive_frame(sock)[1])
                    clients.remove(sock)
                    refused.add(sock)
        finally:
            os.kill(pid, signal.SIGCONT)
        for sock in clients:
            check(b"too many" not in receive_frame(sock)[1])
        for sock in clients + list(refused):
            sock.close()
        check("a2" in cluster.ctl("nodes"))


@case
def questions_and_orders_of_a_user_leave_room_for_others():
    """They come from another node, and wait for one that stands."""
    most = 64
    def question(uid, number):
        return frame(QUERY, struct.pack("<II", uid, 1) + string(b"a2") +
                     struct.pack("<II", 0, 0), number)

    def order(uid, number):
        return frame(REQUEST, struct.pack("<I", 3) + string(b"a2") +
                     string(b"") + struct.pack("<I", uid), number)

    with Cluster(["a1", "a2"], ("--detect", "60")) as cluster:
        pid = cluster.pid("a2")
        link = noise.dial(cluster.address("a1"), read_key(cluster), LIMIT_S)
        link.settimeout(LIMIT_S)
        link.sendall(greeting(b"b1"))
        os.kill(pid, signal.SIGSTOP)
        try:
            for number in range(most):
                link.sendall(question(FIRST_USER, number))
            link.sendall(question(FIRST_USER + 1, most))
            link.sendall(question(FIRST_USER, most + 1))
            while True:
                kind, said = receive_frame(link)
                if kind == REFUSED:
                    break
            check(b"user 60001 has too many questions" in said, said)
            client = client_of(cluster, "a1")
            client.sendall(greeting(b""))
            check(receive_frame(client)[0] == GREET)
            for number in range(most + 1):
                client.sendall(order(0, number))
            kind, said = receive_frame(client)
            check(kind == REPLY and b"has too many orders" in said, kind, said)
            client.close()
        finally:
            os.kill(pid, signal.SIGCONT)
        link.close()


@case
def descriptions_of_jobs_are_paid_for():
    """Many short strings take more memory than bytes on their way."""
    argv = (b"sh", b"-c", b"sleep 1000", *([b""] * 60000))
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        clients = []
        for number in range(100):
            sock = client_of(cluster, "a1")
            clients.append(sock)
            sock.sendall(greeting(b"") +
                         launch(9 + number, [b"a1"], [0], [0], argv))
            kind = None
            while kind not in (STARTED, REPLY):
                kind, said = receive_frame(sock)
            if kind == REPLY:
                break
        check(kind == REPLY and b"more memory of the daemon" in said, kind)
        check(memory(pid)[1] < most_memory(pid), memory(pid))
        for sock in clients:
            sock.close()
        await_that(lambda: "sh" not in cluster.ctl("jobs"), "the jobs' end")


def fill_memory(cluster):
    """By launches, of which none starts: what the daemon says in the end."""
    words = [b"y" * 100000] * 10
    clients = []
    while len(clients) < 200:
        sock = client_of(cluster, "a1")
        clients.append(sock)
        # Who is refused is left, also in the middle of a word.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(greeting(b"") + launch(
                9 + len(clients), [b"a1"], [0], [0],
                (b"sh", b"-c", b"sleep 1000", *words), NOBODY, NOBODY))
            sock.sendall(frame(QUERY, struct.pack("<II", 0, 1) +
                               string(b"a1") + struct.pack("<II", 0, 0), 1))
        kind = None
        while kind not in (STATUS, REPLY, REFUSED):
            kind, said = receive_frame(sock)
        if kind != STATUS:
            return said, clients
    return b"nothing", clients


@contextlib.contextmanager
def done_by(uid, gid, fn, *args):
    """A process of that user, which stays so long; what the function returns
    first."""
    out, waits = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            os.close(waits[1])
            said, kept = fn(*args)
            os.write(out[1], said)
            os.close(out[1])
            os.read(waits[0], 1)
            del kept
        except Exception:  # nothing comes of it, then
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(out[1])
    os.close(waits[0])
    try:
        with os.fdopen(out[0], "rb") as file:
            yield file.read()
    finally:
        os.close(waits[1])
        os.waitpid(child, 0)


@case
@root_only
def what_a_helper_has_not_started_is_paid_for():
    """Supervisors that it forks are told of their jobs on their links, where
    that waits until they read it."""
    with Cluster(["a1"], mode=0o755) as cluster:
        pid = cluster.pid("a1")
        helper = child_named(pid, "chempi-helper")
        control_version()  # from a file that others may not read
        os.kill(helper, signal.SIGSTOP)
        try:
            with done_by(NOBODY, NOBODY, fill_memory, cluster) as said:
                check(b"than a user may have" in said, said)
                check(memory(pid)[1] < most_memory(pid), memory(pid))
        finally:
            os.kill(helper, signal.SIGCONT)
        await_that(lambda: "sh" not in cluster.ctl("jobs"), "the jobs' end")


@case
def more_ranks_than_a_node_has_are_refused():
    with Cluster(["a1"]) as cluster:
        with client_of(cluster, "a1") as sock:
            sock.sendall(greeting(b"") +
                         launch(9, [b"a1"], [0], [0] * 16385))
            kind = None
            while kind != NODE_LOST:
                kind, said = receive_frame(sock)
            check(b"at most 16384 ranks" in said, said)


# ---- places ------------------------------------------------------------------


@contextlib.contextmanager
def joined(cluster, name, via):
    """A daemon with a directory of its own, so that via's does not find it
    there and call it."""
    own = tempfile.mkdtemp(prefix="chempi-test-")
    try:
        cluster.start(name, "--dir", own, "--join", "%s:%d" % via)
        yield
        cluster.ctl("--dir", own, "stop")
        await_that(lambda: not os.listdir(own), own)
    finally:
        shutil.rmtree(own)


def crowd(address):
    """Strangers of one address. The kernel does not show a daemon those that
    have said nothing."""
    socks = [socket.create_connection(address, LIMIT_S) for _ in range(200)]
    for sock in socks[::2]:
        with contextlib.suppress(OSError):
            sock.sendall(b"CHEMPI")
    return socks


@case
def strangers_take_no_place_of_a_node():
    """They are many, from the same address, and say next to nothing."""
    with Cluster(["a1"]) as cluster:
        address = cluster.address("a1")
        idle = crowd(address)
        await_that(lambda: any(is_closed(s) for s in idle), "a full house")
        with joined(cluster, "a2", address):
            more = crowd(address)
            expect(cluster.run("--nodes", "a1,a2", "-n", "4", "--ppn", "2",
                               Programs.rank, "init", "everyone", "final"), 0)
        for sock in idle + more:
            sock.close()


def fill_places(address):
    """From one address, with what is no message but looks like the beginning
    of one, until the first of them leave."""
    taken = []
    while not any(is_closed(sock) for sock in taken):
        sock = socket.create_connection(address, LIMIT_S)
        sock.sendall(b"CHEMPIn1")
        taken.append(sock)
    return taken


def gets_in_slowly(cluster, taken):
    """A node, among many others that call. False: it was slower than anybody
    is waited for, as this machine was."""
    address = cluster.address("a1")
    began = time.monotonic()
    try:
        with socket.create_connection(address, LIMIT_S) as node:
            caller = noise.Handshake(True, read_key(cluster))
            node.sendall(noise.MAGIC + caller.write())
            answer = noise.receive(node, 96)
            for _ in range(4):
                taken += fill_places(address)
            caller.read(answer)
            node.sendall(caller.write())
            link = noise.Sealed(node, *caller.split())
            link.sendall(greeting(b"b1"))
            check(receive_frame(link)[0] == GREET)
    except (AssertionError, EOFError, OSError):
        if time.monotonic() - began < PROOF_S:
            raise
        return False
    return True


@case
def garbage_is_no_merit():
    """Who has sent some, and goes on calling, does not keep a node out that
    calls from the same address and is slow to finish."""
    with Cluster(["a1"]) as cluster:
        taken = fill_places(cluster.address("a1"))
        await_that(lambda: gets_in_slowly(cluster, taken), "a node")
        for sock in taken:
            sock.close()


@case
def strangers_fill_no_log():
    with Cluster(["a1"]) as cluster:
        for _ in range(2000):
            with socket.create_connection(cluster.address("a1"), LIMIT_S) as s:
                s.send(b"?" * 64)
        cluster.ctl("nodes")
        check(len(cluster.logged()) < 64 << 10, len(cluster.logged()))
        check("refused" in cluster.logged(), cluster.logged())


def start_small(cluster, name, files):
    """A daemon that may have so many descriptors."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with open(cluster.log, "ab") as log:
        subprocess.run(
            [Programs.chempid, "--name", name, "--dir", cluster.dir, "--listen",
             "127.0.0.1", "--key", cluster.key, "--background"],
            env=cluster.env, stdin=subprocess.DEVNULL, stderr=log, check=True,
            timeout=LIMIT_S, preexec_fn=limit)


@case
@root_only
def users_leave_descriptors_to_others():
    """Five users take what they get, and half of all at most; the sixth
    works."""
    with Cluster([], mode=0o755) as cluster:
        start_small(cluster, "a1", 512)
        taken = []
        for uid in range(FIRST_USER, FIRST_USER + 5):
            for _ in range(300):
                sock = client_of(cluster, "a1", uid)
                with contextlib.suppress(BrokenPipeError):
                    sock.send(greeting(b""))
                taken.append(sock)
                with contextlib.suppress(AssertionError, ConnectionResetError):
                    receive_frame(sock)  # whoever is refused is so now
        left = sum(not is_closed(sock) for sock in taken)
        check(left < (512 - 64) / 2, left)
        shutil.copy(Programs.chempictl, f"{cluster.dir}/log.ctl")
        os.chmod(f"{cluster.dir}/log.ctl", 0o755)
        done = subprocess.run(
            [f"{cluster.dir}/log.ctl", "nodes"], env=cluster.env, cwd="/",
            user=FIRST_USER + 5, group=FIRST_USER, capture_output=True,
            check=False, timeout=LIMIT_S)
        os.unlink(f"{cluster.dir}/log.ctl")
        check(done.returncode == 0 and b"a1" in done.stdout, done)
        cluster.start("a2", "--join", "%s:%d" % cluster.address("a1"))
        for sock in taken:
            sock.close()


def start_jobs(cluster, via, uid, gid, numbers):
    """By one launcher; what the daemon says of the last one."""
    sock = client_of(cluster, via)
    sock.sendall(greeting(b""))
    said = b""
    for number in numbers:
        sock.sendall(launch(number, [via.encode()], [0], [0],
                            (b"sleep", b"1000"), uid, gid))
        kind = None
        while kind not in (STARTED, REPLY):
            kind, said = receive_frame(sock)
        if kind == REPLY:
            return said, sock
    return b"started", sock


def ctl_of(cluster, uid, gid, *args):
    done = subprocess.run(
        ["/proc/self/fd/0", *args], stdin=open(Programs.chempictl, "rb"),
        env=cluster.env, cwd="/", user=uid, group=gid, extra_groups=[],
        capture_output=True, text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


@case
@root_only
def who_has_many_jobs_leaves_some_to_others():
    """They cost descriptors, too, however few launchers they have."""
    with Cluster([], mode=0o755) as cluster:
        start_small(cluster, "a1", 256)
        control_version()  # from a file that others may not read
        with done_by(NOBODY, NOBODY, start_jobs, cluster, "a1", NOBODY, NOBODY,
                     range(1000, 1040)) as said:
            check(b"too many jobs under way" in said, said)
        await_that(lambda: "sleep" not in cluster.ctl("jobs"), "the jobs' end")
        with done_by(NOBODY, NOBODY, start_jobs, cluster, "a1", NOBODY, NOBODY,
                     range(2000, 2020)) as said:
            check(said == b"started", said)
            cluster.ctl("nodes")


@case
@root_only
def who_copies_the_name_of_a_job_is_another_user():
    """On a node where that job is not. Each has one to show and to end."""
    other = next((u for u in pwd.getpwall() if u.pw_name == "games"), None)
    if not other or not other.pw_uid or not other.pw_gid:
        print("skipped: no user games here")
        return
    thief, owner = (other.pw_uid, other.pw_gid), (NOBODY, NOBODY)
    name = job_name(4711).decode()
    with Cluster(["a1", "a2"], mode=0o755) as cluster:
        control_version()  # from a file that others may not read
        with done_by(*thief, start_jobs, cluster, "a1", *thief, [4711]) as one, \
                done_by(*owner, start_jobs, cluster, "a2", *owner,
                        [4711]) as two:
            check(one == two == b"started", one, two)
            check(cluster.ctl("jobs").count(name) == 2, cluster.ctl("jobs"))
            found = {(job["uid"], *job["nodes"].items())
                     for job in json.loads(cluster.ctl("--json", "jobs"))}
            check(found == {(thief[0], ("a1", 1)), (NOBODY, ("a2", 1))}, found)
            said = cluster.ctl("kill", name, status=1)
            check(f"have a job {name} each" in said, said)
            status, _, said = ctl_of(cluster, *owner, "kill", name)
            check(status == 0, said)
            found = [job["uid"] for job in
                     json.loads(cluster.ctl("--json", "jobs"))]
            check(found == [thief[0]], found)
            cluster.ctl("kill", name)
            check(name not in cluster.ctl("jobs"))


# ---- the log -----------------------------------------------------------------


@case
def a_log_that_nobody_reads_stops_nothing():
    """The daemon's standard error is a pipe that is full."""
    with Cluster([]) as cluster:
        out, into = os.pipe()
        daemon = subprocess.Popen(
            [Programs.chempid, "--name", "a1", "--dir", cluster.dir,
             "--verbose"], env=cluster.env, stdin=subprocess.DEVNULL,
            stderr=into)
        await_that(lambda: os.path.exists(f"{cluster.dir}/a1.node"), "a1")
        os.set_blocking(into, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(into, bytes(1 << 16))
        os.set_blocking(into, True)
        os.close(into)
        for _ in range(20):
            with client_of(cluster, "a1") as sock:
                sock.send(bytes(64))
                send_until_closed(sock, bytes(64))
        cluster.ctl("nodes")
        cluster.ctl("stop")
        daemon.wait(LIMIT_S)
        os.close(out)


if __name__ == "__main__":
    sys.exit(main(CASES))
