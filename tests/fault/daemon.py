#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of daemons and of jobs that run on several of them.

    daemon.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events (a line of output, the end of a process), never for a
time to pass. After every case no process, socket or file may be left.
"""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
import noise  # noqa: E402
from hostile import greeting  # noqa: E402
from jobs import (  # noqa: E402
    COMPLAINT_S, LIMIT_S, ONE_SENTENCE, Cluster, Job, Programs, await_that, check,
    child_named, children, expect, ignore_children, kill_and_wait, main, run)
from wire import read_key  # noqa: E402

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


SEVEN = ["a1", "a2", "a3", "b1", "b2", "b3", "b4"]


@case
def a_job_runs_over_a_tree_of_daemons():
    with Cluster(SEVEN) as cluster:
        for _ in range(2):
            expect(cluster.run("-n", "14", Programs.rank, "init", "region", "everyone",
                               "everyone", "final"), 0, r"\A\Z")
        job = cluster.run("-n", "7", "--ppn", "1", "-l", "sh", "-c",
                          "echo $CHEMPI_NODE")
        expect(job, 0)
        check(job.lines() == [f"[{i}] {n}" for i, n in enumerate(SEVEN)],
              job.output)
        job = cluster.run("--nodes", "b4,a2", "--map", "cyclic", "-n", "4",
                          "-l", "sh", "-c", "echo $CHEMPI_NODE")
        check(job.lines() == ["[0] b4", "[1] a2", "[2] b4", "[3] a2"],
              job.output)
        expect(cluster.run("-n", "14", Programs.rank, "init", "only", "13", "raise",
                           "9", "end", "hang"), 137, ONE_SENTENCE,
               "rank 13 on node b4")


@contextlib.contextmanager
def held_address():
    """Where nobody listens, nor gets the port by chance; a daemon may listen
    there, as it reuses addresses, too."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{holder.getsockname()[1]}"


@case
def daemons_find_each_other_by_file():
    with Cluster([]) as cluster, contextlib.ExitStack() as stack:
        names = ["c1", "c2", "c3"]
        path = f"{cluster.dir}/log.cluster"
        with open(path, "w", encoding="utf-8") as file:
            for name in names:
                address = stack.enter_context(held_address())
                file.write(f"{name} {address} 3\n")
        for name in names:
            own = f"{cluster.dir}/log.{name}"
            os.mkdir(own, 0o700)
            subprocess.run([Programs.chempid, "--name", name, "--dir", own, "--key",
                            cluster.key, "--cluster", path, "--background"],
                           env=cluster.env, check=True, timeout=LIMIT_S)
        job = run("--dir", f"{cluster.dir}/log.c2", "-n", "9", "-l", "sh",
                  "-c", "echo $CHEMPI_NODE", env=cluster.env)
        expect(job, 0)
        check(job.lines() == [f"[{i}] c{i // 3 + 1}" for i in range(9)],
              job.output)
        for name in names:
            own = f"{cluster.dir}/log.{name}"
            cluster.ctl("--dir", own, "stop")
        left = jobrun.marked(cluster.mark)
        jobrun.wait_gone([pid for pid, _ in left], LIMIT_S)
        for name in names:
            own = f"{cluster.dir}/log.{name}"
            check(os.listdir(own) == [], os.listdir(own))
            os.rmdir(own)
        os.unlink(path)


@case
def daemons_join():
    with Cluster(["a1"]) as cluster:
        host, port = cluster.address("a1")
        dirs = []
        for name in ("j1", "j2", "j3"):
            own = tempfile.mkdtemp(prefix="chempi-test-")
            dirs.append(own)
            subprocess.run([Programs.chempid, "--name", name, "--dir", own, "--listen",
                            "127.0.0.1:0", "--key", cluster.key, "--join",
                            f"{host}:{port}", "--slots", "2",
                            "--background"],
                           env=cluster.env, check=True, timeout=LIMIT_S)
            # Its news has arrived when a1 can start ranks there.
            await_that(lambda n=name: re.search(
                rf"^{n} +\d", cluster.ctl("nodes", status=None), re.M), name)
        job = cluster.run("--nodes", "j1,j2,j3,a1", "-n", "4", "--ppn", "1",
                          Programs.rank, "init", "everyone", "final")
        expect(job, 0)
        await_that(lambda: len(re.findall(
            r"^\w+ +\d", cluster.ctl("--dir", dirs[0], "nodes", status=None),
            re.M)) >= 4, "all nodes")
        for own in dirs:
            cluster.ctl("--dir", own, "stop")
        jobrun.wait_gone([p for p, w in jobrun.marked(cluster.mark)
                          if "--join" in w], LIMIT_S)
        for own in dirs:
            os.rmdir(own)


@case
def a_daemon_in_the_background_lets_go_of_the_streams():
    """Who reads its output to the end is not kept waiting; what makes it fail
    is still said."""
    with Cluster([]) as cluster:
        words = [Programs.chempid, "--dir", cluster.dir, "--background",
                 "--verbose", "--slots", "2", "--name", "a1"]
        for status, said in ((0, ""), (1, "already running")):
            done = subprocess.run(words, env=cluster.env, capture_output=True,
                                  text=True, check=False, timeout=LIMIT_S)
            check(done.returncode == status and not done.stdout and
                  said in done.stderr, done)
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone",
                           "final"), 0)


@case
def mistakes_for_chempictl_are_said_once():
    for words, said in ((["--frob"], "unrecognized"), (["--dir"], "requires"),
                        (["frob"], "unknown command"), ([], "no command")):
        done = subprocess.run([Programs.chempictl, *words], capture_output=True,
                              text=True, check=False, timeout=LIMIT_S)
        check(done.returncode == 2 and not done.stdout and
              said in done.stderr and "unknown option" not in done.stderr and
              done.stderr.count("see chempictl --help") == 1, done)


@case
def a_key_that_cannot_be_written_leaves_no_file():
    with tempfile.TemporaryDirectory() as own:
        done = subprocess.run(
            [Programs.chempictl, "key", f"{own}/key"], capture_output=True,
            text=True, check=False, timeout=LIMIT_S, restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                  (10, 10)))
        check(done.returncode == 1 and "/key: No space" in done.stderr and
              not os.listdir(own), done, os.listdir(own))


def expect_no_join(cluster, address, word, *options, name="j1", key=None,
                   meanwhile=lambda: None):
    """A daemon that cannot join says why, and nothing of it stays."""
    with tempfile.TemporaryDirectory() as own:
        os.chmod(own, 0o700)
        daemon = subprocess.Popen(
            [Programs.chempid, "--name", name, "--dir", own, "--listen",
             "127.0.0.1:0", "--key", key or cluster.key, "--join", address,
             *options], env=cluster.env, stderr=subprocess.PIPE, text=True)
        meanwhile()
        _, said = daemon.communicate(timeout=LIMIT_S)
        check(daemon.returncode == 1, address, daemon.returncode, said)
        check(f"cannot join {address}: " in said and word in said, said)
        jobrun.wait_gone([p for p, w in jobrun.marked(cluster.mark)
                          if own in w], LIMIT_S)
        check(not os.listdir(own), os.listdir(own))


@case
def who_cannot_join_does_not_stay():
    with Cluster(["a1"]) as cluster, held_address() as free:
        address = "{}:{}".format(*cluster.address("a1"))
        other = f"{cluster.dir}/other"
        subprocess.run([Programs.chempictl, "key", other], check=True)
        expect_no_join(cluster, address, "secret", "--background", key=other)
        expect_no_join(cluster, address, "secret", key=other)
        expect_no_join(cluster, free, "refused", "--background")
        expect_no_join(cluster, address, "the same name (a1)", name="a1")
        os.unlink(other)


@case
def a_silent_daemon_is_not_joined():
    """It proves the key, and says no more."""
    with Cluster([]) as cluster, \
            socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def prove():
            listener.settimeout(LIMIT_S)
            sock = listener.accept()[0]
            held.append(sock)
            noise.answer(sock, read_key(cluster))
        expect_no_join(cluster, "127.0.0.1:{}".format(
            listener.getsockname()[1]), "has not answered", meanwhile=prove)
        held.pop().close()


@case
def all_daemons_may_be_told_to_join_the_same_one():
    with Cluster([]) as cluster, held_address() as address:
        cluster.start("a1", "--listen", address, "--join", address)
        cluster.start("a2", "--join", address)
        expect(cluster.run("-n", "4", Programs.rank, "init", "everyone", "final"), 0)


@case
def a_user_cannot_take_all_connections():
    with Cluster(["a1"]) as cluster:
        held = []
        start = time.monotonic()

        def hold(count):
            while len(held) < count:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                s.settimeout(LIMIT_S)
                s.connect(f"{cluster.dir}/a1.sock")
                s.recv(1)  # it is taken
                with contextlib.suppress(ConnectionError):
                    s.sendall(greeting())  # else it would not stay
                held.append(s)

        many = "too many jobs and questions.*chempictl kill"
        hold(239)
        expect(cluster.run("-n", "1", "true"), 0)
        hold(240)
        for _ in range(2):
            expect(cluster.run("-n", "1", "true"), 1, many)
        check("a1 " in cluster.ctl("nodes"))  # orders are still taken
        hold(260)  # some may come before an older one is seen to be gone
        said = cluster.ctl("nodes", status=1)
        check(re.search(many, said), said)
        count = len(re.findall(many, cluster.logged()))
        check(1 <= count <= 1 + (time.monotonic() - start) // COMPLAINT_S,
              count, cluster.logged())
        held.pop(0).close()
        await_that(lambda: "a1 " in cluster.ctl("nodes", status=None),
                   "an answer")
        for s in held:
            s.close()


def hanging_cluster_job(cluster, count=14):
    return cluster.job("-n", str(count), Programs.rank, "init", "child", "print", "up",
                       "hang").await_lines(count)


@case
def any_daemon_may_be_killed():
    for victim in ("a1", "a2", "b3", "b4"):
        with Cluster(SEVEN) as cluster:
            job = hanging_cluster_job(cluster)
            cluster.kill(victim)
            job.status = job.finish()
            expect(job, 1, ONE_SENTENCE,
                   f"the daemon of node {victim} is lost")
            rest = [n for n in SEVEN if n != victim]
            expect(cluster.run("--nodes", ",".join(rest), "-n", "12", Programs.rank,
                               "init", "everyone", "final"), 0)
            cluster.start(victim)
            expect(cluster.run("-n", "14", Programs.rank, "init", "everyone",
                               "final"), 0)


@case
def a_daemon_may_be_killed_while_a_job_starts():
    for victim in ("a1", "a2", "b4"):
        with Cluster(SEVEN) as cluster:
            keeper = children(cluster.pid(victim))
            pid = cluster.pid(victim)
            job = cluster.job("-n", "14", Programs.rank, "init", "everyone", "final")
            kill_and_wait(pid, keeper)
            job.status = job.finish()
            # Early enough the others do without it.
            if job.status != 0:
                expect(job, 1, r"\Achempirun: [^\n]*\n\Z")


@case
def supervisors_ranks_and_launcher_may_be_killed():
    with Cluster(SEVEN) as cluster:
        job = hanging_cluster_job(cluster)
        supers = cluster.supervisors()
        check(len(supers) == 7, supers)
        os.kill(supers[3], signal.SIGKILL)
        job.status = job.finish()
        expect(job, 1, ONE_SENTENCE, "the supervisor of node .* was killed")
        expect_no_supervisors(cluster)

        job = hanging_cluster_job(cluster)
        os.kill(job.ranks()[0], signal.SIGKILL)
        job.status = job.finish()
        expect(job, 137, ONE_SENTENCE, r"rank \d+ on node .* signal 9")
        expect_no_supervisors(cluster)

        job = hanging_cluster_job(cluster)
        job.process.kill()
        job.finish()
        expect_no_supervisors(cluster)


def expect_no_supervisors(cluster):
    """They end, whoever was killed; the daemons stay."""
    jobrun.wait_gone(cluster.supervisors(), LIMIT_S)
    left = cluster.supervisors()
    check(not left, "left:", left)


@case
def a_keeper_that_is_killed_is_replaced():
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        keepers = children(pid)
        check(len(keepers) == 1, keepers)
        kill_and_wait(keepers[0], [])
        await_that(lambda: [child for child in children(pid)
                            if child not in keepers], "another keeper")
        child_named(pid, "chempi-keeper")
        cluster.kill("a1")
        check(cluster.names() == [], os.listdir(cluster.dir))


@case
def supervisors_of_daemons_have_sessions_of_their_own():
    """Whoever is in a session may continue all others there, and set the
    priority of all."""
    script = ("read -r line < /proc/$$/stat; set -- $line; echo $4 $6")
    with Cluster(["a1", "a2"]) as cluster:
        job = cluster.run("-n", "4", "--ppn", "2", "sh", "-c", script)
        expect(job, 0)
        seen = [line.split() for line in job.lines()]
        check(len(seen) == 4, job.output)
        for parent, session in seen:
            check(parent == session, job.output)


@case
def tables_are_not_the_description():
    done = subprocess.run([Programs.chempid, "--name", "a1", "--tables", __file__],
                          capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    check(done.returncode == 2 and "'mdconfig compile -o DIR' makes" in
          done.stderr and __file__ in done.stderr, done)


@case
def chempictl_has_the_launcher_say_where_ranks_wait():
    with Cluster(["a1", "a2"]) as cluster:
        # With 0 ranks are not asked for a time limit, but for this they are.
        job = Job("-n", "4", Programs.rank, "init", "here", "MPI_Recv", "print",
                  "up", "hang",
                  env=dict(cluster.env, CHEMPI_WHERE_LIMIT="0")).await_lines(4)
        name = cluster.ctl("jobs").splitlines()[1].split()[0]

        def told():
            cluster.ctl("--via", "a1", "where", name)
            text = b""
            while b"\n" not in text:
                piece = os.read(job.process.stderr.fileno(), 65536)
                check(piece, "the launcher ended", text)
                text += piece
            return text.decode()

        # Ranks have two seconds, which a machine may take from them.
        await_that(lambda: told() == "chempirun: ranks 0-3 wait in MPI_Recv\n",
                   "answers of all")
        stopped = cluster.supervisors()
        check(len(stopped) == 2, stopped)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)  # the launcher waits in vain
        check(told() == "chempirun: nothing is known of ranks 0-3\n")
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        check("no job" in cluster.ctl("where", "x" + name, status=1))
        cluster.ctl("kill", name)
        job.status = job.finish()
        expect(job, 143, "ended by chempictl kill")


@case
def chempictl_shows_and_kills_jobs():
    with Cluster(["a1", "a2", "a3"]) as cluster:
        job = hanging_cluster_job(cluster, 6)
        text = cluster.ctl("jobs")
        check("a1:2 a2:2 a3:2" in re.sub(r" +", " ", text), text)
        name = text.splitlines()[1].split()[0]
        for line in cluster.ctl("nodes").splitlines()[1:]:
            check(line.split()[2] == "2", line)
        cluster.ctl("kill", name)
        job.status = job.finish()
        expect(job, 143, "ended by chempictl kill")
        check("no job" in cluster.ctl("kill", name, status=1))
        check(cluster.ctl("jobs").count("\n") == 1)


@case
def a_daemon_hears_of_its_children_whoever_started_it():
    with Cluster([]) as cluster:
        for name in ("a1", "a2"):
            cluster.start(name, preexec_fn=ignore_children)
        expect(cluster.run("-n", "4", "sh", "-c", "exit 3"), 3)


@case
def errors_of_clusters_are_clear():
    with Cluster(["a1"]) as cluster:
        job = cluster.run("--nodes", "a1,zz", "-n", "2", "true")
        expect(job, 3, "knows no node zz")
        with open(f"{cluster.dir}/dead.node", "w", encoding="utf-8") as file:
            file.write("dead 127.0.0.1:1 2\n")
        job = cluster.run("--nodes", "dead", "-n", "2", "true")
        expect(job, 3, "dead.*refused")
        job = cluster.run("-n", "2", "true")
        expect(job, 0, "leaving out node dead")
        os.unlink(f"{cluster.dir}/dead.node")
        done = cluster.start("a1", check_it=False)
        check(done.returncode == 1)
        check("already running" in cluster.logged())
        other = f"{cluster.dir}/log.key"
        subprocess.run([Programs.chempictl, "key", other], check=True)
        cluster.start("a2", key=other)
        job = cluster.run("--nodes", "a1,a2", "-n", "2", "true")
        expect(job, 3, "node a2: .*(key|secret)")
        check("refused 127.0.0.1" in cluster.logged() or
              "another secret" in cluster.logged(), cluster.logged())
        os.unlink(other)
    with tempfile.TemporaryDirectory() as empty:
        job = run("--dir", empty, "-n", "2", "true")
        expect(job, 1, "no daemon has a socket")


if __name__ == "__main__":
    sys.exit(main(CASES))
