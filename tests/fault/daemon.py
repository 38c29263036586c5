#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of launcher, supervisors and daemons, one case after the other.

    daemon.py private|cluster CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events (a line of output, the end of a process), never for a
time to pass. After every case no process, socket or file may be left.
"""
import hashlib
import os
import re
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LAYOUTS, LIMIT_S, ONE_SENTENCE, Cluster, Job, Programs, await_that, check,
    children, comm, control_version, cores, expect, is_core_held,
    kill_and_wait, run, run_cases, run_on_processors, with_input)

RANK = ""
COMPLAINT_S = 60  # as in chempid/conn.h
CASES = {"private": [], "cluster": []}


def case(group):
    def register(fn):
        CASES[group].append(fn)
        return fn
    return register


# ---- what works -------------------------------------------------------------


@case("private")
def ranks_exchange_keys_and_meet_at_fences():
    for layout in LAYOUTS:
        expect(run(*layout, RANK, "init", "region", "everyone", "everyone",
                   "final"), 0, r"\A\Z")


@case("private")
def a_question_waits_for_its_answer():
    for layout in LAYOUTS:
        job = run(*layout, RANK, "only", "0", "get", "3", "k", "end",
                  "only", "3", "put", "k", "v")
        expect(job, 0)
        check(job.lines() == ["v"], job.output)


@case("private")
def programs_that_are_no_ranks_run_too():
    job = run("-n", "3", "-l", "sh", "-c", "echo $CHEMPI_RANK/$CHEMPI_SIZE")
    expect(job, 0)
    check(job.lines() == ["[0] 0/3", "[1] 1/3", "[2] 2/3"], job.output)


@case("private")
def several_programs_share_a_world():
    job = run("-n", "1", "--env", "A=x", "sh", "-c", "echo $A$CHEMPI_RANK",
              ":", "-n", "2", "--wdir", "/", "sh", "-c",
              "echo $A$CHEMPI_RANK$PWD")
    expect(job, 0)
    check(job.lines() == ["1/", "2/", "x0"], job.output)


@case("private")
def the_environment_is_passed_or_not():
    env = dict(os.environ, SEEN="yes", CHEMPI_CONTROL_FD="99")
    script = "echo ${SEEN-no} ${MORE-no}"
    check(run("sh", "-c", script, env=env).lines() == ["yes no"])
    check(run("--env-none", "sh", "-c", script, env=env).lines() == ["no no"])
    check(run("--env-none", "-x", "SEEN", "-genv", "MORE", "m", "sh", "-c",
              script, env=env).lines() == ["yes m"])


@case("private")
def input_goes_where_it_should():
    data = b"".join(b"line %d\n" % i for i in range(40000))
    job = with_input(data, "-n", "3", "cat")
    check(job.output == data, len(job.output))
    job = with_input(data, "--virtual", "2", "-n", "4", "--stdin", "3", "cat")
    check(job.output == data, len(job.output))
    job = with_input(data, "--virtual", "2", "-n", "4", "--stdin", "all",
                     "sh", "-c", "cat | md5sum")
    check(job.lines() == [hashlib.md5(data).hexdigest() + "  -"] * 4,
          job.output)
    job = with_input(data, "-n", "2", "--stdin", "none", "cat")
    expect(job, 0)
    check(job.output == b"")
    expect(with_input(data, "-n", "2", "true"), 0)  # nobody reads it


@case("private")
def lines_of_ranks_do_not_mix():
    script = ("i=0; while [ $i -lt 300 ]; do printf 'rank %s ' $CHEMPI_RANK; "
              "printf 'line %s\\n' $i; i=$((i+1)); done")
    wanted = sorted(f"rank {r} line {i}" for r in range(6) for i in range(300))
    for _ in range(10):  # a line that is unfinished for 0.1 s is shown
        job = run("--virtual", "2", "-n", "6", "sh", "-c", script)
        check(job.output.count(b"line") == len(wanted), job.output)
        if job.lines() == wanted:
            break
    check(job.lines() == wanted, "lines are mixed every time", job.output)


@case("private")
def much_output_arrives_whole():
    job = run("-n", "2", "sh", "-c", "head -c 3000000 /dev/zero")
    expect(job, 0)
    check(job.output == bytes(6000000), len(job.output))


@case("private")
def a_slow_reader_holds_the_ranks_back_and_loses_nothing():
    """What is unfinished for 0.1 s is shown: lines may mix."""
    words = ("01234567", "abcdefgh")
    job = Job("-n", "2", "sh", "-c", f"[ $CHEMPI_RANK = 0 ] && w={words[0]}; "
              f"yes ${{w-{words[1]}}} | head -n 200000")
    job.await_lines(10)
    job.status = job.finish()
    expect(job, 0)
    check(job.output.count(b"\n") == 400000, job.output.count(b"\n"))
    for word, other in (words, words[::-1]):
        kept = job.output.translate(None, b"\n" + other.encode())
        check(kept == word.encode() * 200000, word, len(kept))


@case("private")
def traffic_is_summed_up():
    job = run("--stats", "--virtual", "x,y", "-n", "4", RANK, "init",
              "report", "traffic 0 1 eth tcp eager 3 4000", "final")
    expect(job, 0, r"x +y +eth +tcp +eager +12 +16000")


@case("private")
def descriptors_of_a_rank_are_its_own():
    """No socket or pipe of another rank or of the launcher leaks in."""
    job = run("--virtual", "2", "-n", "4", "sh", "-c",
              "ls -l /proc/self/fd | grep -c 'socket:\\|pipe:'")
    check(job.lines() == ["3"] * 3 + ["4"], job.output)  # rank 0: stdin


@case("private")
def binding_uses_the_processors_there_are():
    def is_held():  # unless another job had the names, which may be gone
        job = run("--bind", "core", "-n", "2", "sh", "-c",
                  "echo own $CHEMPI_CPUS/ all $CHEMPI_HOST_CPUS/; "
                  "exec cat /proc/net/unix")
        expect(job, 0, r"\A\Z")
        named = [line for line in job.lines() if line.startswith("own ")]
        check(len(named) == 2 and len(set(named)) == 1 and
              re.fullmatch(r"own / all \d[\d,-]*/", named[0]), named)
        return any("@chempi-core-" in line for line in job.lines())
    await_that(is_held)


@case("private")
def ranks_that_fit_get_processors_of_their_own():
    """Unless another job has them: then they are bound to none."""
    end = time.monotonic() + LIMIT_S
    job, lists = run_on_processors()
    # A job that had them may have ended since: the next one gets them.
    while not (lists[0][0] or len(cores()) < 2 or is_core_held()):
        check(time.monotonic() < end, "bound to none without need", lists)
        job, lists = run_on_processors()
    if lists[0][0]:
        check(lists[0][0] == lists[0][1] and lists[1][0] == lists[1][1] and
              lists[0] != lists[1], lists)
        expect(job, 0, r"rank 0 on node \S+ is bound to processors [\d,-]+\n")
    else:
        check(lists[0] == lists[1], lists)
        expect(job, 0, r"rank 0 on node \S+ may use processors [\d,-]+\n")


@case("private")
def processors_of_another_job_are_left_alone():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        def hold():
            for core in cores():
                try:
                    other.bind(f"\0chempi-core-{core}")
                    return True
                except OSError:
                    pass  # yet another job has it
            return False
        await_that(hold)
        job = run("--show-binding", "-n", "2", "true")
        expect(job, 0, r"\A(rank [01] on node \S+ may use processors [\d,-]+\n)"
                       r"{2}\Z")


@case("private")
def nobody_is_bound_against_their_will():
    for words in (["--bind", "none"], ["-n", "1", "true", ":"]):
        job = run("--show-binding", *words, "-n",
                  "2" if "none" in words else str(os.cpu_count()), "true")
        expect(job, 0, r"rank 1 on node \S+ may use")


# ---- exit statuses ----------------------------------------------------------


@case("private")
def exit_statuses_are_those_of_the_ranks():
    for layout in LAYOUTS:
        expect(run(*layout, RANK, "only", "2", "exit", "7"), 7, ONE_SENTENCE,
               r"rank 2 on node \S+ \(pid \d+, \S+\) exited with code 7")
        expect(run(*layout, RANK, "init", "final", "only", "1", "exit", "9",
                   "end", "only", "2", "exit", "4"), 9, r"\A\Z")
        expect(run(*layout, RANK, "init", "only", "3", "raise", "11", "end",
                   "hang"), 139, ONE_SENTENCE,
               r"rank 3 on node \S+ .* killed by signal 11 \(Segmentation")
        expect(run(*layout, RANK, "init", "only", "1", "exit", "0", "end",
                   "hang"), 1, ONE_SENTENCE,
               r"rank 1 .* exited with code 0 without calling MPI_Finalize")
        expect(run(*layout, RANK, "init", "only", "1", "abort", "5", "enough",
                   "hang", "end", "hang"), 5, ONE_SENTENCE,
               r"rank 1 on node \S+ \(pid \d+, \S+\): enough; ")
        expect(run(*layout, RANK, "init", "only", "1", "abort", "5", "",
                   "hang", "end", "hang"), 5, ONE_SENTENCE,
               r"rank 1 on .*\) called MPI_Abort with code 5; ")


@case("private")
def programs_that_cannot_be_started_are_named():
    expect(run("-n", "2", "/nonexistent/x"), 127, ONE_SENTENCE,
           r"/nonexistent/x\) could not be started: .*No such file")
    expect(run("-n", "2", "/etc/passwd"), 126, ONE_SENTENCE, "Permission")
    expect(run("--wdir", "/nonexistent", "true"), 127, ONE_SENTENCE,
           "cannot enter its working directory")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/lost-script"
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/nonexistent/shell\n")
        os.chmod(path, 0o755)
        expect(run("--wdir", folder, "lost-script"), 127, ONE_SENTENCE,
               r"in PATH; say \./lost-script for the one in the working")
        expect(run("--wdir", folder, "--env", f"PATH=/nonexistent:{folder}",
                   "lost-script"), 127, ONE_SENTENCE,
               "is in PATH, but not the interpreter")


@case("private")
def mistakes_on_the_command_line_start_nothing():
    expect(run("--frob", "true"), 2, r"\Achempirun: unknown option --frob")
    expect(run("-n", "9", "--virtual", "2", "--ppn", "3", "true"), 2, "--ppn")
    expect(run("--network", "/nonexistent", "true"), 2, "--network")
    expect(run("--stdin", "4", "-n", "2", "true"), 2, "--stdin 4")


@case("private")
def time_limits_end_jobs():
    expect(run("--timeout", "0.2", "--virtual", "2", "-n", "4", RANK, "init",
               "hang"), 124, "time limit of 0.2 s has passed")
    expect(run("-n", "2", RANK, "init", "hang",
               env=dict(os.environ, MPIEXEC_TIMEOUT="0.2")),
           124, "time limit of 0.2 s has passed")


@case("private")
def tables_that_are_missing_or_damaged_are_refused():
    with tempfile.TemporaryDirectory() as tables:
        command = ["--network", tables, "--virtual", "a,b", "-n", "2", "true"]
        expect(run(*command), 1, ONE_SENTENCE,
               r"[ab]\.chempi is missing; .*mdconfig compile")
        for name in ("a", "b"):
            with open(f"{tables}/{name}.chempi", "wb") as file:
                file.write(b"no table at all")
        expect(run(*command), 1, ONE_SENTENCE, r"[ab]\.chempi")


# ---- faults -----------------------------------------------------------------


@case("private")
def bytes_that_are_no_message_end_the_job():
    for layout in LAYOUTS:
        job = run(*layout, RANK, "init", "only", "1", "garbage", "hang",
                  "end", "hang")
        check(job.status == 1, job.status)
        check("rank 1 on node" in job.errors and
              "broke the control protocol" in job.errors, job.errors)


def is_zombie(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "Z"


@case("private")
def ranks_that_die_at_the_same_time_are_all_named():
    job = Job("-n", "4", RANK, "init", "print", "up", "hang").await_lines(4)
    (supervisor,) = job.marked("chempi-super")
    os.kill(supervisor, signal.SIGSTOP)  # it learns of both ends at once
    victims = job.ranks()[1:3]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    await_that(lambda: all(is_zombie(pid) for pid in victims), "two zombies")
    os.kill(supervisor, signal.SIGCONT)
    job.status = job.finish()
    expect(job, 137, ONE_SENTENCE,
           r"rank \d on node \S+ \(.*\) was killed by signal 9 \(Killed\); "
           r"besides, rank \d on node \S+ was killed by signal 9 \(Killed\); ")


@case("private")
def processes_that_ranks_leave_are_ended():
    for layout in LAYOUTS:
        expect(run(*layout, RANK, "init", "child", "final"), 0, r"\A\Z")
        expect(run(*layout, RANK, "init", "child", "everyone", "only", "1",
                   "raise", "9", "end", "hang"), 137, ONE_SENTENCE)


def hanging_job(layout, *words, **kwargs):
    count = int(layout[layout.index("-n") + 1])
    return Job(*layout, RANK, "init", "child", *words, "print", "up", "hang",
               **kwargs).await_lines(count)


@case("private")
def any_rank_may_be_killed():
    for layout in LAYOUTS:
        for which in (0, -1):
            job = hanging_job(layout)
            os.kill(job.ranks()[which], signal.SIGKILL)
            job.status = job.finish()
            expect(job, 137, ONE_SENTENCE, "rank . on node .* signal 9")


@case("private")
def any_supervisor_may_be_killed():
    for layout in LAYOUTS:
        for which in (0, -1):
            job = hanging_job(layout)
            os.kill(job.marked("chempi-super")[which], signal.SIGKILL)
            job.status = job.finish()
            expect(job, 1, ONE_SENTENCE,
                   r"the supervisor of node \S+ \(pid \d+\) was killed")


@case("private")
def the_launcher_may_be_killed():
    for layout in LAYOUTS:
        job = hanging_job(layout)
        job.process.kill()
        check(job.finish() == -signal.SIGKILL)


@case("private")
def the_launcher_may_be_killed_while_it_starts():
    for layout in LAYOUTS:
        for _ in range(5):
            job = Job(*layout, RANK, "init", "child", "hang")
            job.process.kill()
            job.finish()


@case("private")
def an_interrupt_ends_everything():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for layout in LAYOUTS:
            job = hanging_job(layout)
            job.process.send_signal(number)
            job.status = job.finish()
            expect(job, 128 + number, r"\Achempirun: ended by signal")


@case("private")
def a_second_interrupt_ends_those_that_ignore_the_first():
    job = Job("-n", "3", "sh", "-c",
              "trap 'echo caught' INT; echo up; "
              "while :; do sleep 0.01; done").await_lines(3)
    job.process.send_signal(signal.SIGINT)
    job.await_lines(6)
    job.process.send_signal(signal.SIGINT)
    job.status = job.finish()
    expect(job, 130)


@case("private")
def other_signals_are_passed_on():
    job = Job("--virtual", "2", "-n", "2", "sh", "-c",
              "trap 'echo caught; exit 0' USR1; echo up; "
              "while :; do sleep 0.01; done").await_lines(2)
    job.process.send_signal(signal.SIGUSR1)
    job.status = job.finish()
    expect(job, 0)
    check(job.lines() == ["caught", "caught", "up", "up"], job.output)


@case("private")
def a_reader_that_leaves_ends_the_job():
    job = Job("-n", "2", "yes")
    job.await_lines(1)
    job.process.stdout.close()
    check(job.process.wait(LIMIT_S) == 141)
    job.process.stdout = open(os.devnull, "rb")
    job.finish()


@case("private")
def output_that_cannot_be_written_is_said():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [Programs.chempirun, *Programs.prefix, "-n", "2", "yes"],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
            timeout=LIMIT_S)
    check(done.returncode == 1, done)
    check(b"cannot write standard output: No space left" in done.stderr, done)


@case("private")
def few_descriptors_give_a_clear_error():
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    job = Job("-n", "30", "true", preexec_fn=limit)
    job.status = job.finish()
    expect(job, 1, ONE_SENTENCE, "too many|Too many", "ulimit -n")


SEVEN = ["a1", "a2", "a3", "b1", "b2", "b3", "b4"]


@case("cluster")
def a_job_runs_over_a_tree_of_daemons():
    with Cluster(SEVEN) as cluster:
        for _ in range(2):
            expect(cluster.run("-n", "14", RANK, "init", "region", "everyone",
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
        expect(cluster.run("-n", "14", RANK, "init", "only", "13", "raise",
                           "9", "end", "hang"), 137, ONE_SENTENCE,
               "rank 13 on node b4")


@case("cluster")
def daemons_find_each_other_by_file():
    with Cluster([]) as cluster:
        ports = []
        holders = [socket.socket() for _ in range(3)]
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
            ports.append(holder.getsockname()[1])
        for holder in holders:
            holder.close()
        names = ["c1", "c2", "c3"]
        path = f"{cluster.dir}/log.cluster"
        with open(path, "w", encoding="utf-8") as file:
            for name, port in zip(names, ports):
                file.write(f"{name} 127.0.0.1:{port} 3\n")
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


@case("cluster")
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
            await_that(lambda n=name: n in cluster.ctl("nodes"), name)
        job = cluster.run("--nodes", "j1,j2,j3,a1", "-n", "4", "--ppn", "1",
                          RANK, "init", "everyone", "final")
        expect(job, 0)
        await_that(lambda: cluster.ctl("--dir", dirs[0], "nodes").count(
            "\n") >= 5, "all nodes")
        for own in dirs:
            cluster.ctl("--dir", own, "stop")
        jobrun.wait_gone([p for p, w in jobrun.marked(cluster.mark)
                          if "--join" in w], LIMIT_S)
        for own in dirs:
            os.rmdir(own)


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


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@case("cluster")
def who_cannot_join_does_not_stay():
    with Cluster(["a1"]) as cluster:
        address = "{}:{}".format(*cluster.address("a1"))
        other = f"{cluster.dir}/other"
        subprocess.run([Programs.chempictl, "key", other], check=True)
        expect_no_join(cluster, address, "secret", "--background", key=other)
        expect_no_join(cluster, address, "secret", key=other)
        expect_no_join(cluster, free_address(), "refused", "--background")
        expect_no_join(cluster, address, "the same name (a1)", name="a1")
        os.unlink(other)


@case("cluster")
def a_silent_daemon_is_not_joined():
    """It proves the key, and says no more."""
    with Cluster([]) as cluster, \
            socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def prove():
            listener.settimeout(LIMIT_S)
            sock = listener.accept()[0]
            held.append(sock)
            client = receive(sock, 40)[8:]
            server = secrets.token_bytes(32)
            sock.sendall(server + proof(read_key(cluster), b"S", client,
                                        server))
            receive(sock, 32)
        expect_no_join(cluster, "127.0.0.1:{}".format(
            listener.getsockname()[1]), "has not answered", meanwhile=prove)
        held.pop().close()


@case("cluster")
def all_daemons_may_be_told_to_join_the_same_one():
    with Cluster([]) as cluster:
        address = free_address()
        cluster.start("a1", "--listen", address, "--join", address)
        cluster.start("a2", "--join", address)
        expect(cluster.run("-n", "4", RANK, "init", "everyone", "final"), 0)


@case("cluster")
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
    return cluster.job("-n", str(count), RANK, "init", "child", "print", "up",
                       "hang").await_lines(count)


@case("cluster")
def any_daemon_may_be_killed():
    for victim in ("a1", "a2", "b3", "b4"):
        with Cluster(SEVEN) as cluster:
            job = hanging_cluster_job(cluster)
            cluster.kill(victim)
            job.status = job.finish()
            expect(job, 1, ONE_SENTENCE,
                   f"the daemon of node {victim} is lost")
            rest = [n for n in SEVEN if n != victim]
            expect(cluster.run("--nodes", ",".join(rest), "-n", "12", RANK,
                               "init", "everyone", "final"), 0)
            cluster.start(victim)
            expect(cluster.run("-n", "14", RANK, "init", "everyone",
                               "final"), 0)


@case("cluster")
def a_daemon_may_be_killed_while_a_job_starts():
    for victim in ("a1", "a2", "b4"):
        with Cluster(SEVEN) as cluster:
            keeper = children(cluster.pid(victim))
            pid = cluster.pid(victim)
            job = cluster.job("-n", "14", RANK, "init", "everyone", "final")
            kill_and_wait(pid, keeper)
            job.status = job.finish()
            # Early enough the others do without it.
            if job.status != 0:
                expect(job, 1, r"\Achempirun: [^\n]*\n\Z")


@case("cluster")
def supervisors_ranks_and_launcher_may_be_killed():
    with Cluster(SEVEN) as cluster:
        job = hanging_cluster_job(cluster)
        supers = [pid for pid, _ in jobrun.marked(cluster.mark)
                  if comm(pid).startswith("chempi-super")]
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
    def supervisors():
        return [pid for pid, _ in jobrun.marked(cluster.mark)
                if comm(pid).startswith("chempi-super")]
    jobrun.wait_gone(supervisors(), LIMIT_S)
    check(not supervisors(), "left:", supervisors())


@case("cluster")
def a_keeper_that_is_killed_is_replaced():
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        keepers = children(pid)
        check(len(keepers) == 1, keepers)
        kill_and_wait(keepers[0], [])
        cluster.ctl("nodes")  # the daemon has turned its loop since
        cluster.ctl("nodes")
        keepers = children(pid)
        check(len(keepers) == 1, keepers)
        cluster.kill("a1")
        check(cluster.names() == [], os.listdir(cluster.dir))


@case("cluster")
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


@case("cluster")
def errors_of_clusters_are_clear():
    with Cluster(["a1"]) as cluster:
        job = cluster.run("--nodes", "a1,zz", "-n", "2", "true")
        expect(job, 1, "knows no node zz")
        with open(f"{cluster.dir}/dead.node", "w", encoding="utf-8") as file:
            file.write("dead 127.0.0.1:1 2\n")
        job = cluster.run("--nodes", "dead", "-n", "2", "true")
        expect(job, 1, "dead.*refused")
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
        expect(job, 1, "node a2: .*(key|secret)")
        check("refused 127.0.0.1" in cluster.logged() or
              "another secret" in cluster.logged(), cluster.logged())
        os.unlink(other)
    with tempfile.TemporaryDirectory() as empty:
        job = run("--dir", empty, "-n", "2", "true")
        expect(job, 1, "no daemon has a socket")


# ---- strangers --------------------------------------------------------------


def frame(kind, payload=b"", job=0):
    return struct.pack("<IHHQ", len(payload), kind, 0xc4e1, job) + payload


def proof(key, role, client, server):
    return hashlib.blake2b(b"CHEMPIa1" + role + client + server + b"chempid",
                           key=key, digest_size=32).digest()


def receive(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        check(piece, "the daemon closed the connection")
        data += piece
    return data


def read_key(cluster):
    with open(cluster.key, encoding="utf-8") as file:
        return bytes.fromhex(file.read().strip())


def proven(cluster, name):
    """A connection that knows the key."""
    key = read_key(cluster)
    sock = socket.create_connection(cluster.address(name), LIMIT_S)
    client = secrets.token_bytes(32)
    sock.sendall(b"CHEMPIa1" + client)
    answer = receive(sock, 64)
    check(answer[32:] == proof(key, b"S", client, answer[:32]))
    sock.sendall(proof(key, b"C", client, answer[:32]))
    return sock


def expect_closed(sock):
    """The other side closes, whatever it has said before."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    sock.close()


def greeting(name):
    text = name.encode() + b"\0"
    return frame(80, struct.pack("<II", control_version(), len(text)) + text)


GARBAGE = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(64),
           bytes(4096), b"\xff" * 4096, b"CHEMPIa1" + bytes(64))


@case("cluster")
def strangers_are_refused_with_one_line():
    with Cluster(["a1"]) as cluster:
        count = 0
        for garbage in GARBAGE:
            sock = socket.create_connection(cluster.address("a1"), LIMIT_S)
            sock.sendall(garbage)
            expect_closed(sock)
            count += 1
            cluster.ctl("nodes")
            check(cluster.logged().count(": refused 127.0.0.1") == count,
                  cluster.logged())
        sock = socket.create_connection(cluster.address("a1"), LIMIT_S)
        sock.sendall(b"CHEMPI")  # and then no more
        sock.close()
        cluster.ctl("nodes")
        expect(cluster.run("-n", "2", RANK, "init", "everyone", "final"), 0)


@case("cluster")
def daemons_that_talk_nonsense_are_dropped():
    huge = struct.pack("<IHHQ", 0xffffffff, 48, 0xc4e1, 7)
    nonsense = [
        GARBAGE[0],
        frame(80, b"\0"),
        frame(48, b""),
        greeting("x1") + GARBAGE[0],
        greeting("x1") + huge,
        greeting("x1") + frame(48, b"", 5),
        greeting("x1") + frame(48, b"\1\0\0\0\0\0\0\0" + bytes(100), 5),
        greeting("x1") + frame(81, b"\xff\xff\xff\xff", 5),
        greeting("x1") + frame(82, b"\xff", 5),
        greeting("x1") + frame(84, b"\1", 5),
        greeting("x1") + frame(86, b"\xff\0\0\0", 5),
        greeting("../x") + frame(86, b"\xff\0\0\0", 5),
    ]
    with Cluster(["a1"]) as cluster:
        for number, data in enumerate(nonsense):
            sock = proven(cluster, "a1")
            sock.sendall(data)
            expect_closed(sock)
            cluster.ctl("nodes")
            check(cluster.logged().count(": refused ") == number + 1,
                  data, cluster.logged())
        check("speaks version" not in cluster.logged(), cluster.logged())
        # Frames of jobs that are not known are late, not nonsense.
        sock = proven(cluster, "a1")
        sock.sendall(greeting("x1") + frame(52, b"", 99) + frame(83, b"", 99))
        sock.close()
        expect(cluster.run("-n", "2", RANK, "init", "everyone", "final"), 0)


@case("cluster")
def local_clients_that_talk_nonsense_are_dropped():
    with Cluster(["a1"]) as cluster:
        for data in (GARBAGE[0], frame(48, b"", 5),
                     greeting("") + GARBAGE[1],
                     greeting("") + frame(48, b"\1", 5),
                     greeting("") + frame(86, b"\0\0\0\0", 5)):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(LIMIT_S)
            sock.connect(f"{cluster.dir}/a1.sock")
            sock.sendall(data)
            expect_closed(sock)
        check(cluster.logged().count("refused local client") == 5,
              cluster.logged())


@case("cluster")
def a_daemon_of_root_runs_jobs_as_their_user():
    if os.geteuid() != 0:
        return
    with Cluster(["a1", "a2"], mode=0o755) as cluster:
        shutil.copy(Programs.chempirun, f"{cluster.dir}/log.run")
        os.chmod(f"{cluster.dir}/log.run", 0o755)
        done = subprocess.run(
            [f"{cluster.dir}/log.run", "--wdir", "/", "-n", "4", "id", "-u"],
            env=cluster.env, user=65534, group=65534, cwd="/",
            capture_output=True, check=False, timeout=LIMIT_S)
        os.unlink(f"{cluster.dir}/log.run")
        check(done.returncode == 0, done)
        check(done.stdout == b"65534\n" * 4, done)


def relay(listener, address, uid, gid):
    """Hand what a client says to a daemon, as another user."""
    with listener.accept()[0] as client, socket.socket(socket.AF_UNIX) as out:
        os.setegid(gid)
        os.seteuid(uid)
        try:
            out.connect(address)
        finally:
            os.seteuid(0)
            os.setegid(0)
        other = {client: out, out: client}
        while True:
            for sock in select.select([client, out], [], [], LIMIT_S)[0]:
                try:
                    data = sock.recv(65536)
                except ConnectionResetError:
                    return
                if not data:
                    return
                try:
                    other[sock].sendall(data)
                except BrokenPipeError:
                    pass  # it may have answered before


@case("cluster")
def nobody_takes_the_group_of_another():
    if os.geteuid() != 0:
        return
    with Cluster(["a1"], mode=0o755) as cluster, \
            tempfile.TemporaryDirectory() as between, \
            socket.socket(socket.AF_UNIX) as listener:
        os.chmod(between, 0o755)
        shutil.copy(f"{cluster.dir}/a1.node", between)
        listener.bind(f"{between}/a1.sock")
        os.chmod(f"{between}/a1.sock", 0o666)
        listener.listen()
        shutil.copy(Programs.chempirun, f"{between}/run")
        os.chmod(f"{between}/run", 0o755)
        job = subprocess.Popen(
            [f"{between}/run", "--dir", between, "--via", "a1", "--wdir", "/",
             "-n", "1", "id", "-g"], env=cluster.env, user=65534, group=65533,
            extra_groups=[], cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        relay(listener, f"{cluster.dir}/a1.sock", 65534, 65534)
        out, err = job.communicate(timeout=LIMIT_S)
        check(job.returncode != 0 and not out and
              b"another user or group" in err, out, err)


def await_text(fd, text, seen=b""):
    """Read until the text has come; returns all that was read."""
    while text not in seen:
        ready, _, _ = select.select([fd], [], [], LIMIT_S)
        check(ready, "still not said:", text, "but", seen)
        piece = os.read(fd, 65536)
        check(piece, "not said to the end:", text, "but", seen)
        seen += piece
    return seen


@case("cluster")
def a_daemon_without_descriptors_waits_for_some():
    """It takes who waits as soon as it can, and complains once a minute."""
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    complaint = b"cannot take a connection"
    with Cluster([]) as cluster:
        said, errors = os.pipe()
        subprocess.run(
            [Programs.chempid, "--name", "a1", "--dir", cluster.dir,
             "--background"], env=cluster.env, stdin=subprocess.DEVNULL,
            stderr=errors, check=True, timeout=LIMIT_S, preexec_fn=limit)
        os.close(errors)
        start = time.monotonic()
        seen = b""
        for _ in range(3):
            clients = [socket.socket(socket.AF_UNIX) for _ in range(40)]
            for client in clients:
                client.settimeout(LIMIT_S)
                client.connect(f"{cluster.dir}/a1.sock")
            seen = await_text(said, complaint, seen)
            clients[-1].sendall(GARBAGE[0])
            for client in clients[:-1]:
                client.close()
            expect_closed(clients[-1])  # so it was taken
        cluster.ctl("--via", "a1", "stop")
        while piece := os.read(said, 65536):
            seen += piece
        os.close(said)
        count = seen.count(complaint)
        check(1 <= count <= 1 + (time.monotonic() - start) // COMPLAINT_S,
              count, seen)


def main():
    global RANK
    (group, Programs.chempirun, Programs.chempid, Programs.chempictl, RANK,
     *wanted) = sys.argv[1:]
    os.environ.pop("CHEMPI_DIR", None)
    if group == "private":  # a daemon of this machine is not asked
        Programs.prefix.append("--private")
    return run_cases(CASES[group], wanted)


if __name__ == "__main__":
    sys.exit(main())
