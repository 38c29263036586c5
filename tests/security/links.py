#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What somebody between two daemons can do, or one who holds some key.

    links.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

A relay stands between daemons of two nodes: all that they say to each other
goes through the test, which reads it, changes it or adds to it.
"""
import os
import re
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "fault")]
import noise  # noqa: E402
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, child_named, children, comm,
    control_version, expect, main, root_only)
from wire import (  # noqa: E402
    frame, launch, read_key, receive_frame, string)

GREET, STATUS_REQUEST = 80, 84
NOBODY = 65534
SANITIZERS_MIN = 1 << 30  # bytes of a mapping: shadows are that large, no heap
CASES = []


def case(fn):
    CASES.append(fn)
    return fn


class Relay:
    """Between those that look for the daemon of a node and that daemon."""

    def __init__(self, cluster, name):
        self.target = cluster.address(name)
        self.seen = [b"", b""]  # from the caller, from the called one
        self.link = None  # caller, called
        self.flip = None  # a direction: its next bytes get one bit changed
        self.is_cut = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.path = f"{cluster.dir}/{name}.node"
        with open(self.path, encoding="utf-8") as file:
            words = file.read().split()
        os.rename(self.path, f"{self.path}.kept")  # it is the daemon's
        words[1] = f"127.0.0.1:{self.listener.getsockname()[1]}"
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(" ".join(words) + "\n")
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            caller = self.listener.accept()[0]
        except OSError:
            return  # nobody has called
        with caller, socket.create_connection(self.target) as called:
            self.link = (caller, called)
            self.pass_on()
        self.is_cut.set()

    def pass_on(self):
        while True:
            for sock in select.select(self.link, [], [])[0]:
                way = self.link.index(sock)
                try:
                    data = sock.recv(65536)
                    if not data:
                        return
                    if self.flip == way:
                        self.flip = None
                        data = data[:-1] + bytes([data[-1] ^ 0x10])
                    self.seen[way] += data
                    self.link[1 - way].sendall(data)
                except OSError:
                    return

    def await_cut(self):
        check(self.is_cut.wait(LIMIT_S), "the link is still there")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.rename(f"{self.path}.kept", self.path)
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for sock in self.link or ():
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(LIMIT_S)


def hanging_job(cluster, *names, env=None):
    job = cluster.job("--nodes", ",".join(names), "-n", str(len(names)),
                      "--ppn", "1", Programs.rank, "init", "print", "up",
                      "hang")
    return job.await_lines(len(names))


def end(job):
    """By its user; nothing may have gone wrong before."""
    check(job.process.poll() is None, "the job has ended")
    job.process.terminate()
    job.status = job.finish()
    expect(job, 143, "SIGTERM|signal")


# ---- between two daemons -----------------------------------------------------


@case
def what_a_relay_adds_is_not_obeyed():
    """A launch of root's, after the two have proven each other's keys."""
    with Cluster(["a1", "a2"]) as cluster, Relay(cluster, "a2") as relay:
        check("a2 " in cluster.ctl("--via", "a1", "nodes"))
        trophy = f"{cluster.dir}/log.trophy"
        relay.link[1].sendall(launch(
            77, [b"a2"], [0], [0],
            argv=(b"sh", b"-c", f"id -u > {trophy}".encode()), uid=os.getuid()))
        await_that(lambda: relay.is_cut.is_set() or os.path.exists(trophy),
                   "an answer to the launch")
        check(not os.path.exists(trophy), "the relay's program has run")
        check(re.search("a2.*refused .*not sealed", cluster.logged()),
              cluster.logged())


@case
def what_a_relay_changes_ends_the_link_and_its_jobs():
    for way in (0, 1):
        with Cluster(["a1", "a2"]) as cluster, Relay(cluster, "a2") as relay:
            job = hanging_job(cluster, "a1", "a2")
            relay.flip = way
            cluster.ctl("--via", "a1", "nodes", status=None)
            relay.await_cut()
            job.status = job.finish()
            expect(job, 1, "the daemon of node a2 is lost")
            check("not sealed" in cluster.logged(), cluster.logged())
            expect(cluster.run("--nodes", "a1", "-n", "2", "true"), 0)


@case
def a_relay_sees_no_environment_and_no_output():
    with Cluster(["a1", "a2"]) as cluster, Relay(cluster, "a2") as relay:
        cluster.env["SECRET_OF_MINE"] = "open-sesame-5511"
        job = cluster.run("--nodes", "a1,a2", "-n", "2", "--ppn", "1", "sh",
                          "-c", "echo out $SECRET_OF_MINE")
        expect(job, 0)
        check(job.lines() == ["out open-sesame-5511"] * 2, job.output)
        both = b"".join(relay.seen)
        check(len(both) > 500, "nothing went through the relay")
        for word in (b"sesame", b"SECRET_OF_MINE", b"out ", b"echo", b"PATH",
                     read_key(cluster)):
            check(word not in both, "seen on the way:", word)


@case
def a_recorded_link_is_no_use():
    """Neither played back to the daemon, nor its own words to itself."""
    with Cluster(["a1", "a2"]) as cluster:
        with Relay(cluster, "a2") as relay:
            expect(cluster.run("--nodes", "a1,a2", "-n", "2", "true"), 0)
            seen = relay.seen
        for words in (seen[0], seen[1], seen[0][:noise.FIRST] + seen[1]):
            count = cluster.logged().count(" refused 127.0.0.1")
            with socket.create_connection(cluster.address("a2"),
                                          LIMIT_S) as sock:
                sock.sendall(words)
                answer = b""
                try:
                    while piece := sock.recv(65536):
                        answer += piece
                except ConnectionResetError:
                    pass
            check(len(answer) <= noise.SECOND, "it has answered", len(answer))
            await_that(lambda: cluster.logged().count(" refused 127.0.0.1") >
                       count, "a refusal")
        expect(cluster.run("--nodes", "a1", "-n", "1", "true"), 0)


@case
def who_lacks_the_key_hears_nothing():
    """Nor does a daemon compute for them: one hash is enough."""
    with Cluster(["a1"]) as cluster:
        stranger = noise.Handshake(True, bytes(32))
        with socket.create_connection(cluster.address("a1"), LIMIT_S) as sock:
            sock.sendall(noise.MAGIC + stranger.write())
            check(sock.recv(1) == b"", "a stranger was answered")


# ---- whose programs run ------------------------------------------------------


def greeting(name=b""):
    return frame(GREET, struct.pack("<I", control_version()) + string(name))


def launch_from_afar(cluster, uid, gid, trophy, job):
    """As a daemon that has the cluster's key. Returns what came of it."""
    with noise.dial(cluster.address("a1"), read_key(cluster), LIMIT_S) as link:
        link.sendall(greeting(b"x1"))
        check(receive_frame(link)[0] == GREET)
        link.sendall(launch(job, [b"a1"], [0], [0],
                            argv=(b"sh", b"-c", f"id -u > {trophy}".encode()),
                            uid=uid, gid=gid))
        while True:
            kind, data = receive_frame(link)
            if kind == 36:  # NODE_LOST
                return data[8:-1].decode()
            if kind == 87:  # REFUSED
                return data[8:-1].decode()
            if kind == 39:  # DONE
                link.sendall(frame(54, b"", job))
            if kind == 40:  # GONE
                return ""


@case
@root_only
def roots_ranks_are_refused_by_a_daemon_of_all():
    """Whatever another daemon, with the right keys, says."""
    with Cluster(["a1"], mode=0o755) as cluster:
        trophy = f"{cluster.dir}/log.trophy"
        for job, (uid, gid) in enumerate(((0, 0), (0, NOBODY), (NOBODY, 0))):
            said = launch_from_afar(cluster, uid, gid, trophy, 900 + job)
            check("starts no ranks of root" in said, said)
        check(not os.path.exists(trophy), "root's program has run")
        said = cluster.run("-n", "1", "true")
        expect(said, 1, "serves all users and starts no ranks of root")
        with open(trophy, "wb"):
            os.chmod(trophy, 0o666)
        check(launch_from_afar(cluster, NOBODY, NOBODY, trophy, 910) == "")
        with open(trophy, "rb") as file:
            check(file.read() == b"%d\n" % NOBODY)
        os.unlink(trophy)


@case
@root_only
def a_daemon_of_its_owner_runs_nobody_elses_ranks():
    for mode, options in ((0o700, ()), (0o755, ("--serve", "owner"))):
        with Cluster(["a1"], options=options, mode=mode) as cluster:
            trophy = f"{cluster.dir}/log.trophy"
            said = launch_from_afar(cluster, NOBODY, NOBODY, trophy, 920)
            check("serves user 0 only" in said, said)
            check(not os.path.exists(trophy))
            expect(cluster.run("-n", "1", "true"), 0)
            mode = os.stat(f"{cluster.dir}/a1.sock").st_mode & 0o777
            check(mode == 0o600, oct(mode))


# ---- keys of nodes, and new keys ---------------------------------------------


class Keyed(Cluster):
    """Whose daemons have keys of their own, and a file that says which."""

    def __init__(self, *names):
        super().__init__([])
        self.files = f"{self.dir}/log.d"  # "log": may be left
        os.mkdir(self.files)
        self.public = {name: self.ctl("node-key", f"{self.files}/{name}").strip()
                       for name in names}
        self.trust = f"{self.files}/trust"
        self.write_trust("")
        for name in names:
            self.start(name, *self.options(name))

    def options(self, name):
        return ("--node-key", f"{self.files}/{name}", "--trust", self.trust)

    def write_trust(self, text):
        with open(self.trust, "w", encoding="utf-8") as file:
            file.write(text)

    def allow(self, *names):
        return "".join(f"allow {self.public[n]} {n} # of {n}\n" for n in names)

    def reread(self, *names):
        for name in names:
            self.ctl("--via", name, "reread")

    def stop(self):
        shutil.rmtree(self.files)
        super().stop()


@case
def one_line_revokes_a_node():
    with Keyed("a1", "a2", "a3") as cluster:
        job = hanging_job(cluster, "a1", "a3")
        lost = hanging_job(cluster, "a1", "a2")
        cluster.write_trust(f"revoke {cluster.public['a2']}\n")
        cluster.reread("a1", "a3")
        lost.status = lost.finish()
        expect(lost, 1, "a2")
        for other in ("a1", "a3"):
            check("is revoked" in cluster.logged(), cluster.logged())
            said = cluster.ctl("--via", other, "nodes", status=1)
            check(re.search("^a2 .*revoked", said, re.M), said)
        # Nor can it call them.
        said = cluster.ctl("--via", "a2", "nodes", "a1", status=1)
        check(re.search("^a1 .*(closed|revoked)", said, re.M), said)
        # What it has let in and heard no more of it blames on no other secret.
        await_that(lambda: re.search(
            r"chempid a2: [^\n]*refused [^\n]*is that revoked there",
            cluster.logged()), cluster.logged())
        check("before the key was proven" not in cluster.logged(),
              cluster.logged())
        end(job)


NEWS = 86


def member(name, address, slots=1):
    return string(name) + string(address.encode()) + struct.pack("<I", slots)


class Speaker:
    """A node that the test plays: it calls a daemon with the keys of a node."""

    def __init__(self, cluster, daemon, name, own=None):
        self.sock = noise.dial(cluster.address(daemon), read_key(cluster),
                               LIMIT_S, own)
        self.name = name
        self.sock.sendall(greeting(name))
        check(receive_frame(self.sock)[0] == GREET)

    def tell(self, *members):
        """Returns when it has been heard: an unknown message is answered, and a
        question in order."""
        self.sock.sendall(frame(NEWS, struct.pack("<I", len(members)) +
                                b"".join(members)))
        self.sock.sendall(frame(STATUS_REQUEST, struct.pack("<I", 0) +
                                string(b"") + string(b"") +
                                struct.pack("<I", 0), 5))
        heard = []
        kind = None
        while kind != 85:
            kind, data = receive_frame(self.sock)
            heard.append((kind, data))
        return heard


def known(cluster, via):
    """Nodes and addresses that a daemon tells to one that joins it."""
    speaker = Speaker(cluster, via, b"zz")
    for kind, data in speaker.tell(member(b"zz", "127.0.0.1:9")):
        if kind == NEWS:
            return parse_news(data)
    raise AssertionError("no news")


def parse_news(data):
    found = {}
    count, at = struct.unpack_from("<I", data)[0], 4
    for _ in range(count):
        words = []
        for _ in range(2):
            length = struct.unpack_from("<I", data, at)[0]
            words.append(data[at + 4:at + 3 + length].decode())
            at += 4 + length
        at += 4
        found[words[0]] = words[1]
    return found


@case
def what_the_cluster_file_says_is_not_changed():
    """Also where nobody answers."""
    with Cluster([]) as cluster:
        path = f"{cluster.dir}/log.cluster"
        with open(path, "w", encoding="utf-8") as file:
            file.write("a1 127.0.0.1:0\na2 127.0.0.1:7 3\n")
        cluster.start("a1", "--cluster", path)
        os.unlink(path)
        thief = Speaker(cluster, "a1", b"a5")
        thief.tell(member(b"a2", "127.0.0.1:66"))
        await_that(lambda: "as the cluster file says" in cluster.logged(),
                   "the claim's end")
        thief.tell(member(b"a2", "127.0.0.1:7", 99), member(b"a2", ""))
        now = known(cluster, "a1")
        check(now["a2"] == "127.0.0.1:7", now)
        check("what node a5 says of node a2" in cluster.logged(),
              cluster.logged())


@case
def a_node_takes_back_only_what_it_has_told():
    with Cluster(["a1"]) as cluster:
        honest = Speaker(cluster, "a1", b"a3")
        honest.tell(member(b"a3", "127.0.0.1:3"), member(b"a4", "127.0.0.1:4"))
        thief = Speaker(cluster, "a1", b"a5")
        thief.tell(member(b"a5", "127.0.0.1:5"), member(b"a3", ""),
                   member(b"a4", ""), member(b"a6", "127.0.0.1:6"))
        now = known(cluster, "a1")
        check({"a3", "a4", "a5", "a6"} <= set(now), now)
        honest.tell(member(b"a4", ""), member(b"a6", ""))
        now = known(cluster, "a1")
        check({"a3", "a5", "a6"} <= set(now) and "a4" not in now, now)


@case
def what_a_revoked_node_has_told_is_forgotten():
    """Also where it was passed on to."""
    with Keyed("a1") as cluster:
        own = secrets.token_bytes(32)
        other = Speaker(cluster, "a1", b"b1")
        other.tell(member(b"b1", "127.0.0.1:1"), member(b"b3", "127.0.0.1:3"))
        thief = Speaker(cluster, "a1", b"b2", own)
        thief.tell(member(b"b2", "127.0.0.1:2"), member(b"b4", "127.0.0.1:4"))
        check({"b1", "b2", "b3", "b4"} <= set(known(cluster, "a1")))
        cluster.write_trust(f"revoke {noise.public_of(own).hex()}\n")
        cluster.reread("a1")
        heard = [parse_news(data) for kind, data in other.tell()
                 if kind == NEWS]
        check({"b2": "", "b4": ""} in heard, heard)
        now = known(cluster, "a1")
        check({"b1", "b3"} <= set(now) and not {"b2", "b4"} & set(now), now)


@case
def a_node_tells_of_so_many_nodes_only():
    with Cluster(["a1"]) as cluster:
        speaker = Speaker(cluster, "a1", b"b1")
        speaker.tell(*(member(b"n%d" % i, "127.0.0.1:1")
                       for i in range(9000)))
        check(len(known(cluster, "a1")) < 8192 + 4)
        check("tells of more than 8192 nodes" in cluster.logged(), cluster.logged())


@case
def who_asks_for_its_own_revocation_is_revoked():
    """The order comes over the link that it ends."""
    with Keyed("a1", "a2") as cluster:
        for name in ("a1", "a2"):
            check(f"{name} " in cluster.ctl("--via", "a1", "nodes"))
        pid = cluster.pid("a2")
        cluster.write_trust(f"revoke {cluster.public['a1']}\n")
        cluster.ctl("--via", "a1", "reread", "a2", status=None)
        said = cluster.ctl("--via", "a1", "nodes", "a2", status=1)
        check(re.search("^a2 .*(closed|revoked)", said, re.M), said)
        await_that(lambda: "connection with node a1: " in cluster.logged() and
                   "is revoked" in cluster.logged(), "the end of the link")
        check(cluster.pid("a2") == pid)  # whom it has not harmed


@case
def a_key_is_good_for_its_node_only():
    with Keyed("a1", "a2") as cluster:
        cluster.write_trust(cluster.allow("a1", "a2"))
        cluster.reread("a1", "a2")
        expect(cluster.run("--nodes", "a1,a2", "-n", "2", "--ppn", "1",
                           "true"), 0)
        cluster.start("a3", *cluster.options("a2"))  # a2's key
        said = cluster.ctl("--via", "a1", "nodes", "a3", status=1)
        check(re.search("^a3 .*not allowed for node a3", said, re.M), said)
        cluster.start("a4")  # no key of its own that anybody knows
        said = cluster.ctl("--via", "a1", "nodes", "a4", status=1)
        check(re.search("^a4 .*not allowed", said, re.M), said)


@case
def what_is_wrong_in_the_files_changes_nothing():
    with Keyed("a1", "a2") as cluster:
        job = hanging_job(cluster, "a1", "a2")
        for text, words in (
                ("allow 00 a1\n", "trust:1: expected 'allow KEY NODE'"),
                (f"# x\nrevoke {cluster.public['a2']} a2\n", "trust:2: "),
                (f"allow {cluster.public['a2']}\n", "trust:1: "),
                (f"forget {cluster.public['a2']}\n", "trust:1: ")):
            cluster.write_trust(text)
            said = cluster.ctl("--via", "a1", "reread", status=1)
            check(words in said, said)
        cluster.write_trust(f"revoke {cluster.public['a2']}\n")
        os.chmod(cluster.trust, 0o664)
        said = cluster.ctl("--via", "a1", "reread", status=1)
        check("others can change" in said, said)
        os.unlink(cluster.trust)
        os.mkfifo(cluster.trust, 0o600)  # nobody writes there
        said = cluster.ctl("--via", "a1", "reread", status=1)
        check("not a regular file" in said, said)
        end(job)


@case
def the_clusters_key_is_replaced_while_jobs_run():
    with Keyed("a1", "a2", "a3") as cluster:
        new = f"{cluster.files}/new"
        subprocess.run([Programs.chempictl, "key", new], check=True)
        with open(cluster.key, encoding="utf-8") as file:
            old_text = file.read()
        with open(new, encoding="utf-8") as file:
            new_text = file.read()
        job = hanging_job(cluster, "a1", "a2")
        old = read_key(cluster)
        for text in (old_text + new_text, new_text + old_text, new_text):
            with open(cluster.key, "w", encoding="utf-8") as file:
                file.write(text)
            for name in ("a1", "a2", "a3"):
                cluster.reread(name)
                # All speak to all, whoever knows of the change; who calls
                # anew may have any key of the file.
                for line in text.split():
                    noise.dial(cluster.address(name), bytes.fromhex(line),
                               LIMIT_S).close()
                expect(cluster.run("--nodes", "a1,a2,a3", "-n", "3", "--ppn",
                                   "1", "true"), 0)
        with socket.create_connection(cluster.address("a1"), LIMIT_S) as sock:
            sock.sendall(noise.MAGIC + noise.Handshake(True, old).write())
            check(sock.recv(1) == b"", "the old key is still good")
        noise.dial(cluster.address("a1"), bytes.fromhex(new_text.strip()),
                   LIMIT_S).close()
        end(job)


# ---- where keys are ----------------------------------------------------------


def holds(pid, key, is_core):
    """Whether a process has the bytes in its memory (in what a core dump
    would hold of it)."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw.*\n((?:[A-Z].*\n)*)", text,
                       re.M)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, stop, more in found:
            flags = re.search(r"^VmFlags:(.*)$", more, re.M)[1].split()
            if is_core and "dd" in flags:
                continue
            if int(stop, 16) - int(start, 16) > SANITIZERS_MIN:
                continue
            memory.seek(int(start, 16))
            try:
                if key in memory.read(int(stop, 16) - int(start, 16)):
                    return True
            except OSError:
                pass  # a page without memory behind it
    return False


@case
@root_only
def keys_are_in_the_daemons_own_pages_only():
    """Not in arguments or environments, not in what would be dumped, and not
    in supervisors, keepers or ranks."""
    with Keyed("a1", "a2") as cluster:
        job = hanging_job(cluster, "a1", "a2")
        with open(f"{cluster.files}/a1", encoding="utf-8") as file:
            own = bytes.fromhex(file.read().strip())
        key = read_key(cluster)
        daemons = [cluster.pid("a1"), cluster.pid("a2")]
        others = [pid for pid, _ in jobrun.marked(cluster.mark) +
                  jobrun.marked(job.mark) if pid not in daemons]
        check(len({comm(pid) for pid in others}) >= 3, "who is there?")
        check(holds(daemons[0], key, False) and holds(daemons[0], own, False),
              "the test does not find keys")
        for pid in daemons + others:
            for name in ("cmdline", "environ"):
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    data = file.read()
                for secret in (key, own):
                    check(secret not in data and
                          secret.hex().encode() not in data, pid, name)
        for secret in (key, own, key.hex().encode(), own.hex().encode()):
            for pid in daemons:
                check(not holds(pid, secret, True), "a core would have it")
            for pid in others:
                check(not holds(pid, secret, False), comm(pid), "has it")
        end(job)


def filter_of(pid):
    with open(f"/proc/{pid}/coredump_filter", encoding="ascii") as file:
        return int(file.read(), 16)


@case
def supervisors_dump_nothing():
    """Their memory has been a daemon's. Ranks dump as their user wishes."""
    with Cluster(["a1"]) as cluster:
        job = hanging_job(cluster, "a1")
        supervisor = child_named(cluster.pid("a1"), "chempi-super")
        rank, = job.ranks()
        check(filter_of(supervisor) == 0, filter_of(supervisor))
        check(filter_of(rank) == filter_of("self") != 0, filter_of(rank))
        end(job)


@case
@root_only
def supervisors_of_others_are_not_theirs_to_read():
    """They were root's. The ranks are their user's."""
    with Cluster(["a1"], mode=0o755) as cluster:
        for name, program in (("run", Programs.chempirun),
                              ("rank", Programs.rank)):
            shutil.copy(program, f"{cluster.dir}/log.{name}")
            os.chmod(f"{cluster.dir}/log.{name}", 0o755)
        run = subprocess.Popen(
            [f"{cluster.dir}/log.run", "--nodes", "a1", "-n", "1",
             f"{cluster.dir}/log.rank", "init", "print", "up", "hang"],
            env=cluster.env, cwd="/", user=NOBODY, group=NOBODY,
            extra_groups=(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        check(select.select([run.stdout], [], [], LIMIT_S)[0] and
              run.stdout.readline() == b"up\n")
        supervisor = child_named(child_named(cluster.pid("a1"),
                                             "chempi-helper"), "chempi-super")
        rank, = children(supervisor)
        for pid, owner in ((supervisor, 0), (rank, NOBODY)):
            check(f"Uid:\t{NOBODY}\t" in open(f"/proc/{pid}/status",
                                              encoding="ascii").read())
            check(os.stat(f"/proc/{pid}/mem").st_uid == owner, pid, owner)
        run.terminate()
        run.wait(LIMIT_S)
        run.stdout.close()
        for name in ("run", "rank"):
            os.unlink(f"{cluster.dir}/log.{name}")


if __name__ == "__main__":
    sys.exit(main(CASES))
