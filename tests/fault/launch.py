#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of launcher and supervisors, which need no daemon.

    launch.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events (a line of output, the end of a process), never for a
time to pass. After every case no process, socket or file may be left.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

from jobs import (
    LAYOUTS, LIMIT_S, ONE_SENTENCE, Job, Programs, ask, ask_until, await_that,
    before_limit, check, cores, expect, ignore_children, is_core_held, main,
    of_launcher, run, run_on_processors, started, with_input)

CASES = []
GRACE_S = 3.0  # from an interrupt to the end by force: chempid/launcher/run.c


def case(fn):
    CASES.append(fn)
    return fn


# ---- what works -------------------------------------------------------------


@case
def ranks_exchange_keys_and_meet_at_fences():
    for layout in LAYOUTS:
        expect(run(*layout, Programs.rank, "init", "region", "everyone", "everyone",
                   "final"), 0, r"\A\Z")


@case
def a_question_waits_for_its_answer():
    for layout in LAYOUTS:
        job = run(*layout, Programs.rank, "only", "0", "get", "3", "k", "end",
                  "only", "3", "put", "k", "v")
        expect(job, 0)
        check(job.lines() == ["v"], job.output)


@case
def programs_that_are_no_ranks_run_too():
    job = run("-n", "3", "-l", "sh", "-c", "echo $CHEMPI_RANK/$CHEMPI_SIZE")
    expect(job, 0)
    check(job.lines() == ["[0] 0/3", "[1] 1/3", "[2] 2/3"], job.output)


@case
def several_programs_share_a_world():
    job = run("-n", "1", "--env", "A=x", "sh", "-c", "echo $A$CHEMPI_RANK",
              ":", "-n", "2", "--wdir", "/", "sh", "-c",
              "echo $A$CHEMPI_RANK$PWD")
    expect(job, 0)
    check(job.lines() == ["1/", "2/", "x0"], job.output)


@case
def the_environment_is_passed_or_not():
    env = dict(os.environ, SEEN="yes", CHEMPI_CONTROL_FD="99")
    script = "echo ${SEEN-no} ${MORE-no}"
    check(run("sh", "-c", script, env=env).lines() == ["yes no"])
    check(run("--env-none", "sh", "-c", script, env=env).lines() == ["no no"])
    check(run("--env-none", "-x", "SEEN", "-genv", "MORE", "m", "sh", "-c",
              script, env=env).lines() == ["yes m"])


def shown(*names):
    """A script that prints variables, or "-" for those that are not set."""
    return "echo " + " ".join("${%s--}" % name for name in names)


@case
def what_a_program_asks_of_mpi_is_its_own():
    script = shown("CHEMPI_RANK", "CHEMPI_INITIAL_ERRHANDLER",
                   "CHEMPI_MEMORY_ALLOC_KINDS", "CHEMPI_SOFT",
                   "CHEMPI_MAXPROCS")
    around = dict(os.environ, CHEMPI_INITIAL_ERRHANDLER="mpi_errors_abort",
                  CHEMPI_MEMORY_ALLOC_KINDS="cuda", CHEMPI_SOFT="3",
                  CHEMPI_MAXPROCS="9")  # as in a job
    for layout in ["--private"], ["--virtual", "2"]:
        job = run(*layout, "-n", "1", "-initial-errhandler",
                  "MPI_Errors_Return", "sh", "-c", script, ":", "-n", "2",
                  "-memory-alloc-kinds", "system,mpi:alloc_mem", "sh", "-c",
                  script, ":", "-n", "3", "-soft", "1", "sh", "-c", script,
                  env=around)
        expect(job, 0, r"\A\Z")
        check(job.lines() == ["0 mpi_errors_return - - 1",
                              "1 - system,mpi:alloc_mem - 2",
                              "2 - system,mpi:alloc_mem - 2",
                              "3 - - 1 3"], job.output)


@case
def soft_numbers_of_ranks_are_the_largest_that_fit():
    def sizes(*words):
        job = run(*words)
        expect(job, 0, r"\A\Z")
        return sorted(int(line) for line in job.lines())

    count = ["sh", "-c", "echo $CHEMPI_SIZE"]
    check(sizes("-n", "9", "-soft", "2:8:3,6", *count) == [8] * 8)
    check(sizes("-n", "8", "-soft", "2:8:3,6", "--virtual", "2", "--ppn", "3",
                *count) == [6] * 6)
    check(sizes("-n", "3", "-soft", "1:3", *count, ":", "-n", "2", *count, ":",
                "-n", "4", "--virtual", "2", "--ppn", "3", "-soft", "0:4:2",
                *count) == [6] * 6)  # 2, 2 and 2
    expect(run("-n", "4", "-soft", "3:4", "--virtual", "2", "--ppn", "1",
               *count), 2, r"3 ranks do not fit on 2 nodes with 1 per node")
    expect(run("-n", "4", "-soft", "5:9", *count), 2, r"\Achempirun: --soft 5:9: ")


@case
def slots_say_for_how_many_there_is_room():
    """Under whatever name this host goes, also for worlds that are started."""
    own = os.uname().nodename.partition(".")[0]
    for nodes, room in ((f"{own}:5", 5), ("localhost:5", 5), ("127.0.0.1:5", 5),
                        (f"{own}:5,localhost:7,127.0.0.1", 13)):
        job = run("--private", "--nodes", nodes, "-n", "1", Programs.rank,
                  "universe", "spawn", f"1|--|{Programs.rank}|universe", "over")
        expect(job, 0)
        check(job.lines().count(f"room for {room}") == 2, job.output)


@case
def programs_may_stand_in_a_file():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/programs"
        with open(path, "w", encoding="utf-8") as file:
            file.write("# Rank 0\n--env 'A=good  day' sh -c \\\n"
                       "    'echo \"$CHEMPI_RANK $A $1\"' \\\n  sh :\n"
                       "\n-n 2 --wdir / -- sh -c 'echo $CHEMPI_RANK $PWD'\n")
        job = run("--virtual", "2", "--configfile", path)
        expect(job, 0, r"\A\Z")
        check(job.lines() == ["0 good  day :", "1 /", "2 /"], job.output)
        with open(path, "a", encoding="utf-8") as file:
            file.write("-n 2 --frob true\n")
        path = re.escape(path)
        expect(run("--configfile", file.name), 2,
               rf"\Achempirun: {path}:7: unknown option --frob [^\n]+\n\Z")
        expect(run("--configfile", file.name, "true"), 2,
               r"\Achempirun: [^\n]+ 'true' is one too many\n\Z")
    expect(run("--configfile", file.name), 2,
           rf"\Achempirun: {path}: No such file[^\n]+\n\Z")


@case
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


@case
def ranks_have_no_terminal():
    """Nodes on one host share the session of their launcher, for the kernel
    shares processors out by session; not its terminal or its group."""
    script = ("read -r line < /proc/$$/stat; set -- $line; echo $5 $6 $7; "
              "(: < /dev/tty) 2> /dev/null && echo terminal; true")
    for layout in LAYOUTS:
        main_fd, fd = os.openpty()
        job = Job(*layout, "sh", "-c", script, start_new_session=True,
                  preexec_fn=lambda: fcntl.ioctl(fd, termios.TIOCSCTTY, 0))
        job.status = job.finish()
        os.close(fd)
        os.close(main_fd)
        expect(job, 0, r"\A\Z")
        launcher = str(job.process.pid)
        seen = [line.split() for line in job.lines()]
        check(len(seen) == int(layout[layout.index("-n") + 1]), job.output)
        for group, session, terminal in seen:
            check(group != launcher and terminal == "0", job.output)
            check((session == launcher) == ("--virtual" in layout), job.output)


@case
def lines_of_ranks_do_not_mix():
    script = ("i=0; while [ $i -lt 100 ]; do printf 'rank %s ' $CHEMPI_RANK; "
              "(:); printf 'line %s\\n' $i; i=$((i+1)); done")
    wanted = sorted(f"rank {r} line {i}" for r in range(6) for i in range(100))
    since = time.monotonic()
    job = run("--virtual", "2", "-n", "6", "sh", "-c", script)
    # What is unfinished for 0.1 s is shown: each time, on each node, that may
    # be the line of each of three ranks, and spoil the one that follows it.
    shown = 2 * 3 * (int((time.monotonic() - since) / 0.1) + 1)
    check(job.output.count(b"line") == len(wanted), job.output)
    mixed = set(wanted) - set(job.lines())
    check(len(mixed) <= 2 * shown, len(mixed), shown, job.output)


@case
def much_output_arrives_whole():
    job = run("-n", "2", "sh", "-c", "head -c 3000000 /dev/zero")
    expect(job, 0)
    check(job.output == bytes(6000000), len(job.output))


@case
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


@case
def traffic_is_summed_up():
    job = run("--stats=long", "--virtual", "x,y", "-n", "4", Programs.rank, "init",
              "report", "traffic 0 1 eth tcp eager 3 4000", "final")
    expect(job, 0, r"x +y +eth +tcp +eager +12 +16000")
    expect(job, 0, r"total over eth \(tcp\): 12 messages, 16000 bytes")
    job = run("--stats=long", "--virtual", "x,y", "-n", "2", Programs.rank, "init",
              "report", "", "final")
    expect(job, 0, r"\Ano messages were counted\n\Z")


@case
def descriptors_of_a_rank_are_its_own():
    """No socket or pipe of another rank or of the launcher leaks in."""
    job = run("--virtual", "2", "-n", "4", "sh", "-c",
              "ls -l /proc/self/fd | grep -c 'socket:\\|pipe:'")
    check(job.lines() == ["3"] * 3 + ["4"], job.output)  # rank 0: stdin


@case
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


@case
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


@case
def nobody_is_bound_against_their_will():
    for words in (["--bind", "none"], ["-n", "1", "true", ":"]):
        job = run("--show-binding", *words, "-n",
                  "2" if "none" in words else str(os.cpu_count()), "true")
        expect(job, 0, r"rank 1 on node \S+ may use")


def processors(text):
    """The set that a list such as 0-3,8 is."""
    ranges = [part.split("-") for part in text.split(",")]
    return {n for part in ranges
            for n in range(int(part[0]), int(part[-1]) + 1)}


@case
def a_file_gives_ranks_nodes_and_cores():
    """Cores are numbered among those that ranks may use."""
    count = len(cores())
    with tempfile.NamedTemporaryFile("w", suffix=".ranks") as file:
        def ranks(*lines):
            file.truncate(0)
            file.seek(0)
            file.write("\n".join(lines) + "\n")
            file.flush()
            return ["--rankfile", file.name, "--show-binding"]

        words = ranks("# three", "rank 2=b slot=*", "rank 0=b slot=0",
                      f"rank 1=a slot={count - 1}")
        job = run("--virtual", "a,b", *words, "true")
        own = [re.search(rf"^rank {i} on node {node} is bound to processors "
                         r"([\d,-]+)$", job.errors, re.M)
               for i, node in enumerate("bab")]
        check(job.status == 0 and all(own), job.errors)
        # Of two processors of a core both are meant.
        own = [processors(found[1]) for found in own]
        check((own[0] == own[1]) == (count == 1) and
              own[2] == os.sched_getaffinity(0) and own[0] < own[2] or
              count == 1, job.errors)
        expect(run("--virtual", "a,b", "-n", "4", *words, "true"), 2,
               r"ranks names ranks 0 to 2, and the job has 4 ranks")
        expect(run("--virtual", "a,c", *words, "true"), 2,
               r"ranks:3: rank 0: the job has no node b; expected one of a, c")
        expect(run("--virtual", "a,b", *ranks("rank 0=a", "rank 1"), "true"), 2,
               r"ranks:1: expected 'rank N=NODE slot=CORES'")
        job = run(*ranks(f"rank 0=localhost slot={count}"), "true")
        expect(job, 1, rf"ranks:1: rank 0: slot={count}: expected cores of "
               rf"node \S+ from 0 to {count - 1}, found {count}")
        expect(run(*words, "--bind", "core", "true"), 2, "leave out --bind")


@contextlib.contextmanager
def cpuset(cpu):
    """A control group whose processes have this processor only; its file of
    processes, or None where there can be none."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split(" - ") for line in file]
    for where, kind in mounts:
        place = pathlib.Path(where.split()[4])
        group = place / f"chempi-test.{os.getpid()}"
        is_v1 = kind.startswith("cgroup ") and "cpuset" in kind
        try:
            if not is_v1 and not (
                    kind.startswith("cgroup2") and "cpuset" in
                    (place / "cgroup.subtree_control").read_text().split()):
                continue
            group.mkdir()
        except OSError:
            continue
        try:
            if is_v1:
                (group / "cpuset.mems").write_text(
                    (place / "cpuset.mems").read_text())
            (group / "cpuset.cpus").write_text(str(cpu))
            yield group / "cgroup.procs"
        finally:
            await_that(lambda: not (group / "cgroup.procs").read_text(),
                       "the end of the group's processes")
            group.rmdir()
        return
    yield None


@case
def ranks_stay_within_what_their_launcher_may_use():
    """By taskset, or in the cpuset of a control group."""
    last = max(os.sched_getaffinity(0))

    def narrow():
        os.sched_setaffinity(0, {last})

    with cpuset(last) as procs:
        def enter():
            procs.write_text(str(os.getpid()))

        if procs is None:
            print("# there is no cpuset here that can be written", flush=True)
        for how in "none", "auto", "core", "socket":
            for way in [narrow] + [enter] * (procs is not None):
                job = Job("--bind", how, "--show-binding", "-n", "3", "true",
                          preexec_fn=way)
                job.status = job.finish()
                said = re.findall(r"^rank \d on node \S+ (?:may use|is bound to)"
                                  r" processors (\S+)$", job.errors, re.M)
                check(job.status == 0 and said == [str(last)] * 3, how,
                      way.__name__, job.errors)
        job = Job("--cpu-set", str(last + 1), "true", preexec_fn=narrow)
        job.status = job.finish()
        expect(job, 1, rf"may use on node \S+, which are {last};")


@case
def a_list_of_processors_holds_for_all_ranks():
    last = max(os.sched_getaffinity(0))
    for how in "none", "auto", "core", "socket":
        job = run("--cpu-set", str(last), "--bind", how, "--show-binding",
                  "-n", "3", "true")
        said = re.findall(r"^rank \d on node \S+ (?:may use|is bound to) "
                          r"processors (\S+)$", job.errors, re.M)
        check(job.status == 0 and said == [str(last)] * 3, how, job.errors)
    expect(run("--cpu-set", f"{last},{last + 1}", "true"), 1,
           rf"--cpu-set {last},{last + 1}: expected processors that ranks may "
           r"use on node \S+, which are [\d,-]+;")
    expect(run("--cpu-set", "0-", "true"), 2,
           "expected processors such as 0-3,8")


# ---- exit statuses ----------------------------------------------------------


@case
def exit_statuses_are_those_of_the_ranks():
    for layout in LAYOUTS:
        expect(run(*layout, Programs.rank, "only", "2", "exit", "7"), 7, ONE_SENTENCE,
               r"rank 2 on node \S+ \(pid \d+, \S+\) exited with code 7")
        expect(run(*layout, Programs.rank, "init", "final", "only", "1", "exit", "9",
                   "end", "only", "2", "exit", "4"), 9, r"\A\Z")
        expect(run(*layout, Programs.rank, "init", "only", "3", "raise", "11", "end",
                   "hang"), 139, ONE_SENTENCE,
               r"rank 3 on node \S+ .* killed by signal 11 \(Segmentation")
        expect(run(*layout, Programs.rank, "init", "world", "only", "1", "exit", "0",
                   "end", "hang"), 1, ONE_SENTENCE,
               r"rank 1 .* exited with code 0 without calling MPI_Finalize")
        for verbs in (["init"], ["init", "world", "unworld"]):
            expect(run(*layout, Programs.rank, *verbs, "only", "1", "exit", "0",
                       "end", "hang"), 1, ONE_SENTENCE,
                   r"rank 1 .* exited with code 0 without calling MPI_Session_finalize")
        expect(run(*layout, Programs.rank, "init", "only", "1", "abort", "5", "enough",
                   "hang", "end", "hang"), 5, ONE_SENTENCE,
               r"rank 1 on node \S+ \(pid \d+, \S+\): enough; ")
        expect(run(*layout, Programs.rank, "init", "only", "1", "abort", "5", "",
                   "hang", "end", "hang"), 5, ONE_SENTENCE,
               r"rank 1 on .*\) called MPI_Abort with code 5; ")


@case
def programs_that_cannot_be_started_are_named():
    expect(run("-n", "2", "/nonexistent/x"), 127, ONE_SENTENCE,
           r"/nonexistent/x\) could not be started: .*No such file")
    expect(run("-n", "2", "/etc/passwd"), 126, ONE_SENTENCE,
           r"Permission denied; the file is not marked as executable")
    expect(run("/etc"), 126, ONE_SENTENCE, "Permission denied; it is a directory")
    for options, named in (
            (["--wdir", "/nonexistent"],
             "cannot enter its working directory /nonexistent: No such file"),
            (["--output", "/nonexistent/%r.%h"],
             r"cannot open the file for its output, /nonexistent/0\.\S+: No"),
            (["--error", "/nonexistent/%r"],
             "cannot open the file for its error output, /nonexistent/0: No")):
        expect(run(*options, "true"), 127, ONE_SENTENCE, named)
    expect(run("--wdir", "/var", "./x"), 127, ONE_SENTENCE,
           "cannot be executed: No such file or directory in the working "
           "directory /var")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/lost-script"
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/nonexistent/shell\n")
        os.chmod(path, 0o755)
        expect(run("--wdir", folder, "lost-script"), 127, ONE_SENTENCE,
               r"in PATH; say \./lost-script for the one in the working")
        expect(run("--wdir", folder, "--env", f"PATH=/nonexistent:{folder}",
                   "lost-script"), 127, ONE_SENTENCE,
               "the file is there, its interpreter /nonexistent/shell is not")


@case
def a_variable_that_is_not_there_is_told_of():
    job = run("-x", "NO_SUCH_VARIABLE", "-x", "PATH", "-x", "A=b", "sh", "-c",
              "echo $A")
    expect(job, 0, r"\Achempirun: there is no variable NO_SUCH_VARIABLE here; "
           r"it is not passed on\n\Z")
    check(job.lines() == ["b"], job.output)


@case
def mistakes_on_the_command_line_start_nothing():
    expect(run("--frob", "true"), 2, r"\Achempirun: unknown option --frob")
    expect(run("-n", "9", "--virtual", "2", "--ppn", "3", "true"), 2, "--ppn")
    expect(run("--network", "/nonexistent", "true"), 2, "--network")
    expect(run("--network", __file__, "true"), 2,
           rf"\Achempirun: --network {__file__}: not a directory of tables; [^\n]*"
           rf"mdconfig compile -o DIR {__file__}, and name DIR\n\Z")
    expect(run("--stdin", "4", "-n", "2", "true"), 2, "--stdin 4")
    for words in (" ", "env " + "x=y " * 64, "env x=" + "y" * 5000):
        expect(run("--launcher-exec", words, "--nodes", "a,b", "-n", "2", "true"),
               1, "--launcher-exec: expected 1 to 64 words in 4095 bytes")
    expect(run("--json", "true"), 2, "a form of what --stats, .*: say which")
    expect(run("true", ":", "-n", "2"), 2, "no program to run behind ':'")
    expect(run("-n", "2", ":", "true"), 2, "no program to run before ':'")


@case
def time_limits_end_jobs():
    expect(run("--timeout", "0.2", "--virtual", "2", "-n", "4", Programs.rank, "init",
               "hang"), 124, "time limit of 0.2 s has passed")
    expect(run("-n", "2", Programs.rank, "init", "hang",
               env=dict(os.environ, MPIEXEC_TIMEOUT="0.2")),
           124, "time limit of 0.2 s has passed")


def asking(answer_s, count, *args):
    """A job that runs into its time limit when each rank has said so; how long
    they may take to say where they wait."""
    job, limit_s = before_limit(
        lambda job: job.await_lines(count), "-n", str(count), *args,
        env=dict(os.environ, CHEMPI_WHERE_LIMIT=str(answer_s)))
    job.status = job.finish()
    expect(job, 124, rf"chempirun: the time limit of {limit_s} s has passed; the "
           r"job was ended\n\Z")
    return job.errors


def asking_for_longer(is_told, *args):
    """The same where some never answer: the others have a time that ends, which
    is as long as this machine needs."""
    answer_s = 0.3
    told = asking(answer_s, *args)
    while not is_told(told):
        answer_s *= 4
        check(answer_s < LIMIT_S, told)
        told = asking(answer_s, *args)


@case
def ranks_say_where_they_wait_before_the_time_limit_ends_them():
    for layout in LAYOUTS:
        at = layout.index("-n")
        size = int(layout[at + 1])
        told = asking(LIMIT_S, size, *layout[:at], *layout[at + 2:],
                      Programs.rank, "init", "here", "MPI_Barrier of X", "only",
                      "2", "here", "MPI_Recv", "end", "only", "3", "test",
                      "MPI_Test", "end", "print", "up", "hang")
        others = "0-1" if size == 4 else "0-1, 4-6"
        lines = told.splitlines()[:-1]
        check(len(lines) == 3, lines)
        check(re.fullmatch(r"chempirun: rank 3 on node \S+ does not wait, but "
                           r"calls MPI_Test", lines[0]), lines)
        check(lines[1] == f"chempirun: ranks {others} wait in MPI_Barrier of X",
              lines)
        check(re.fullmatch(r"chempirun: rank 2 on node \S+ waits in MPI_Recv",
                           lines[2]), lines)


@case
def ranks_that_do_not_say_where_they_wait_are_named():
    asking_for_longer(
        lambda told: re.search("does not wait in MPI|do not wait in MPI|"
                               "not initialized", told),
        2, Programs.rank, "init", "print", "up", "only", "1", "deaf", "end",
        "hang")
    asking_for_longer(
        lambda told: "chempirun: ranks 0-2 have not initialized MPI\n" in told,
        3, "sh", "-c", "echo up; exec sleep 1000")
    told = asking(LIMIT_S, 2, Programs.rank, "init", "here", "MPI_Wait", "only",
                  "1", "final", "end", "print", "up", "hang")
    check(re.match(r"chempirun: rank 1 on node \S+ has finalized MPI and not ended\n"
                   r"chempirun: rank 0 on node \S+ waits in MPI_Wait\n", told), told)
    told = asking(LIMIT_S, 2, Programs.rank, "init", "here", "MPI_Wait", "print",
                  "up", "only", "1", "final", "exit", "0", "end", "hang")
    check(re.match(r"chempirun: rank 1 on node \S+ has (ended|finalized)[^\n]*\n"
                   r"chempirun: rank 0 on node \S+ waits in MPI_Wait\n", told), told)
    check(asking(0, 2, Programs.rank, "init", "here", "X", "print", "up", "hang")
          .count("\n") == 1)
    asking_for_longer(
        lambda told: "chempirun: rank 1 on node" in told and
        " waits in MPI_Test\n" in told,
        2, Programs.rank, "init", "only", "0", "here", "MPI_Wait", "end", "only",
        "1", "half", "MPI_Test", "end", "print", "up", "hang")


@case
def what_a_job_does_when_asked_where_it_waits_decides():
    env = dict(os.environ, CHEMPI_WHERE_LIMIT=str(LIMIT_S))

    def asked(layout, *words):
        return run("--timeout", "0.1", *layout, Programs.rank, "init", *words,
                   env=env)

    for layout in LAYOUTS:
        job = asked(layout, "only", "1", "asked", "raise", "11", "end", "hang")
        expect(job, 139, r"rank 1 on node \S+ \(.*\) was killed by signal 11 \("
               r".*\); the job was ended\n\Z")
        check("time limit" not in job.errors and "nothing" not in job.errors,
              job.errors)
        expect(asked(layout, "asked", "final"), 0, r"\A\Z")
        expect(asked(layout, "asked", "final", "exit", "3"), 3, r"\A\Z")


def fill(job):
    """Nothing more shall go into a job's standard error until it is read."""
    fd = os.open(f"/proc/self/fd/{job.process.stderr.fileno()}",
                 os.O_WRONLY | os.O_NONBLOCK)
    with open(fd, "wb", buffering=0) as pipe:
        for size in 4096, 1:
            while pipe.write(b"x" * size):
                pass


@case
def nobody_who_does_not_read_keeps_a_job_alive():
    env = dict(os.environ, CHEMPI_WHERE_LIMIT=str(LIMIT_S))

    def is_up(job):
        job.await_lines(2)
        fill(job)

    job, limit_s = before_limit(is_up, "-n", "2", Programs.rank, "init", "here",
                                "X", "print", "up", "hang", env=env)
    await_that(lambda: not job.marked("fault-rank"), "the end of the ranks")
    job.status = job.finish()
    expect(job, 124, r"chempirun: ranks 0-1 wait in X\nchempirun: the time limit "
           rf"of {limit_s} s has passed; the job was ended\n\Z")


@case
def whoever_asks_is_told_where_ranks_wait():
    """Without a daemon, on the asker's terminal; and the job goes on."""
    env = dict(os.environ, CHEMPI_WHERE_LIMIT=str(LIMIT_S))
    for layout in LAYOUTS:
        job = Job(*layout, Programs.rank, "init", "here", "MPI_Recv", "print",
                  "up", "hang", env=env)
        size = int(layout[layout.index("-n") + 1])
        job.await_lines(size)
        pid = job.process.pid
        form = re.compile(r"^job ([0-9a-f]{16}), by chempirun with pid "
                          rf"{pid}:\nchempirun: ranks 0-{size - 1} wait in "
                          r"MPI_Recv\n", re.M)
        for words in ([], [str(pid)]):
            line = form.search(ask_until(form.search, *words))
        ask_until(lambda told, all_of_it=line[0]: told == all_of_it, line[1])
        for words in ([], [str(pid)], [line[1]]):
            told = of_launcher(
                ask_until(lambda told, pid=pid: of_launcher(told, pid), *words,
                          before=["--json"]), pid)
            check(told["uid"] == os.getuid() and
                  told["answer"]["job"] == line[1] and
                  told["answer"]["size"] == size and
                  told["answer"]["places"] == [
                      {"ranks": list(range(size)), "state": "waits",
                       "call": "MPI_Recv", "is_merged": False, "from": None,
                       "stack": [], "is_from_elsewhere": False}] and
                  sorted(rank for ranks in told["answer"]["nodes"].values()
                         for rank in ranks) == list(range(size)) and
                  [told["answer"][k] for k in ("circle", "waits_for", "unknown",
                                               "no_room")] == [[], {}, [], []],
                  told)
        job.process.send_signal(signal.SIGTERM)
        job.status = job.finish()
        check("MPI_Recv" not in job.errors, job.errors)
        check(f"with pid {pid}:" not in ask(status=None))
        check("no job 0 of yours" in ask("0", before=["--json"], status=1))
    check("without --via" in ask(before=["--json", "--via", "a"], status=2))


@case
def a_job_that_is_not_there_is_named_without_daemons_too():
    env = dict(os.environ, CHEMPI_DIR="/nonexistent")

    def order(*words):
        done = subprocess.run([Programs.chempictl, *words], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=LIMIT_S)
        check(done.returncode == 1, words, done.stdout)
        return done.stdout

    told = order("where", "00000000deadbeef")
    check(told.startswith("chempictl: no job 00000000deadbeef of yours has its "
                          "chempirun on this host: no daemon"), told)
    told = order("kill", "00000000deadbeef")
    check("a job without daemons ends with its chempirun" in told, told)


def nobodys_job():
    """A name that no job has, nor another run of this test."""
    return f"{os.getpid():016x}"


class Impostor:
    """Somebody with the name of a launcher, for `job`."""
    def __init__(self, job, backlog=8, pid=os.getpid()):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(f"\0chempi-job/{os.getuid()}/{job}/{pid}")
        self.sock.listen(backlog)
        self.sock.settimeout(LIMIT_S)

    def __enter__(self):
        return self.sock

    def __exit__(self, *_):
        self.sock.close()


@case
def who_has_the_name_of_a_launcher_does_no_harm():
    """It lets nobody wait, and gives no orders to terminals."""
    job = nobodys_job()
    with Impostor(job, 0) as sock, socket.socket(socket.AF_UNIX) as first:
        first.connect(sock.getsockname())  # there is no room for others
        ask(job, status=None)
    with Impostor(job) as sock:
        asker = subprocess.Popen([Programs.chempictl, "where", job],
                                 stdout=subprocess.PIPE)
        with sock.accept()[0] as link:
            link.sendall(b"a\x1b]0;owned\x07b\x9b\n")
            # It stays open: who asks has a limit of its own.
            told = asker.communicate(timeout=LIMIT_S)[0]
        check(told.endswith(b"a?]0;owned?b?\n"), told)
    for said, wanted in ((b'{"a\x1b": [1, -0.5e3, null]} \n',
                          {"a?": [1, -500, None]}),
                         (b'{"a": 1}, {"b": 2}', None), (b'{"a": "', None),
                         (b"[" * 40 + b"]" * 40, None), (b'"\xff"', None),
                         (b"", None)):
        with Impostor(job) as sock:
            asker = subprocess.Popen([Programs.chempictl, "--json", "where",
                                      job], stdout=subprocess.PIPE)
            with sock.accept()[0] as link:
                link.sendall(said)
            told = json.loads(asker.communicate(timeout=LIMIT_S)[0])
            check(told == [{"pid": os.getpid(), "uid": os.getuid(),
                            "answer": wanted}], told)
    with Impostor(job) as sock, tempfile.TemporaryFile() as file, \
            started([Programs.chempictl, "where", job],
                    stdout=file) as asker:
        with sock.accept()[0] as link:
            try:
                for _ in range(64):
                    link.sendall(bytes(1 << 20))
            except ConnectionError:
                pass  # it has enough
        asker.wait(timeout=LIMIT_S)
        check(file.seek(0, os.SEEK_END) < 2 << 20)


@case
def launchers_that_are_not_asked_are_not_passed_over_in_silence():
    job = nobodys_job()
    for count in 64, 65:
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(Impostor(job, pid=i + 1))
                     for i in range(count)]
            asker = subprocess.Popen([Programs.chempictl, "where", job],
                                     stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
            asked = 0
            while asked < 64:
                for sock in select.select(socks, [], [], LIMIT_S)[0]:
                    with sock.accept()[0] as link:
                        link.sendall(b"here\n")
                    asked += 1
            told = asker.communicate(timeout=LIMIT_S)[1]
            check(("more than 64 launchers" in told) == (count > 64), told)
            check(asker.returncode == 0, asker.returncode)


@case
def what_ranks_say_of_where_they_wait_is_not_trusted():
    told = asking(LIMIT_S, 2, Programs.rank, "init", "here",
                  "a\nb\x1b[31mc" + "d" * 2000, "print", "up", "hang")
    check(re.match(r"chempirun: ranks 0-1 wait in a\?b\?\[31mcd{400,500}\n", told),
          told)
    job = run("-n", "2", Programs.rank, "init", "mumble", "x", "hang")
    expect(job, 1, "broke the control protocol")
    expect(run("-n", "2", Programs.rank, "init", "say", "here", "everyone", "final"),
           0, r"\A\Z")


@case
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


@case
def bytes_that_are_no_message_end_the_job():
    for layout in LAYOUTS:
        job = run(*layout, Programs.rank, "init", "only", "1", "garbage", "hang",
                  "end", "hang")
        check(job.status == 1, job.status)
        check("rank 1 on node" in job.errors and
              "broke the control protocol" in job.errors, job.errors)


def is_zombie(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "Z"


@case
def ranks_that_die_at_the_same_time_are_all_named():
    job = Job("-n", "4", Programs.rank, "init", "print", "up", "hang").await_lines(4)
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


@case
def processes_that_ranks_leave_are_ended():
    for layout in LAYOUTS:
        expect(run(*layout, Programs.rank, "init", "child", "final"), 0, r"\A\Z")
        expect(run(*layout, Programs.rank, "init", "child", "everyone", "only", "1",
                   "raise", "9", "end", "hang"), 137, ONE_SENTENCE)


def hanging_job(layout, *words, **kwargs):
    count = int(layout[layout.index("-n") + 1])
    return Job(*layout, Programs.rank, "init", "child", *words, "print", "up", "hang",
               **kwargs).await_lines(count)


@case
def any_rank_may_be_killed():
    for layout in LAYOUTS:
        for which in (0, -1):
            job = hanging_job(layout)
            os.kill(job.ranks()[which], signal.SIGKILL)
            job.status = job.finish()
            expect(job, 137, ONE_SENTENCE, "rank . on node .* signal 9")


@case
def any_supervisor_may_be_killed():
    for layout in LAYOUTS:
        for which in (0, -1):
            job = hanging_job(layout)
            os.kill(job.marked("chempi-super")[which], signal.SIGKILL)
            job.status = job.finish()
            expect(job, 1, ONE_SENTENCE,
                   r"the supervisor of node \S+ \(pid \d+\) was killed")


@case
def the_launcher_may_be_killed():
    for layout in LAYOUTS:
        job = hanging_job(layout)
        job.process.kill()
        check(job.finish() == -signal.SIGKILL)


@case
def the_launcher_may_be_killed_while_it_starts():
    for layout in LAYOUTS:
        for _ in range(5):
            job = Job(*layout, Programs.rank, "init", "child", "hang")
            job.process.kill()
            job.finish()


@case
def an_interrupt_ends_everything():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for layout in LAYOUTS:
            job = hanging_job(layout)
            job.process.send_signal(number)
            job.status = job.finish()
            expect(job, 128 + number, r"\Achempirun: ended by signal")


def all_ignore_the_first():
    """False: it took so long, as this machine did, that they were killed."""
    job = Job("-n", "3", "sh", "-c",
              "trap 'echo caught' INT; echo up; "
              "while :; do sleep 0.01; done").await_lines(3)
    began = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    with contextlib.suppress(AssertionError):
        job.await_lines(6)
        job.process.send_signal(signal.SIGINT)
    is_late = time.monotonic() - began >= GRACE_S
    job.status = job.finish()
    expect(job, 130)
    check(is_late or job.output.count(b"caught") >= 3, job.output)
    return not is_late


@case
def a_second_interrupt_ends_those_that_ignore_the_first():
    await_that(all_ignore_the_first, "the answers of all")


@case
def other_signals_are_passed_on():
    """They are the program's, and no question to the launcher: that has a
    door."""
    job = Job("--virtual", "2", "-n", "2", "sh", "-c",
              "trap 'echo caught' USR1; trap 'exit 0' USR2; echo up; "
              "while :; do sleep 0.01; done").await_lines(2)
    job.process.send_signal(signal.SIGUSR1)
    job.await_lines(4)
    # Supervisors have a second for their answers, which a busy machine may need.
    ask_until(lambda told: "ranks 0-1 have not initialized MPI" in told,
              str(job.process.pid))
    job.process.send_signal(signal.SIGUSR2)
    job.status = job.finish()
    expect(job, 0)
    check(job.lines() == ["caught", "caught", "up", "up"], job.output)


@case
def a_reader_that_leaves_ends_the_job():
    job = Job("-n", "2", "yes")
    job.await_lines(1)
    job.process.stdout.close()
    check(job.process.wait(LIMIT_S) == 141)
    job.process.stdout = open(os.devnull, "rb")
    job.finish()


@case
def output_that_cannot_be_written_is_said():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [Programs.chempirun, *Programs.prefix, "-n", "2", "yes"],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
            timeout=LIMIT_S)
    check(done.returncode == 1, done)
    check(b"cannot write standard output: No space left" in done.stderr, done)


@case
def few_descriptors_give_a_clear_error():
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    job = Job("-n", "30", "true", preexec_fn=limit)
    job.status = job.finish()
    expect(job, 1, ONE_SENTENCE, "too many|Too many", "ulimit -n")


@contextlib.contextmanager
def named(name):
    """This process has another name for a while."""
    path = pathlib.Path("/proc/self/comm")
    before = path.read_bytes()
    path.write_bytes(name)
    try:
        yield
    finally:
        path.write_bytes(before)


@case
def a_program_of_another_mpi_is_answered_soon_and_in_plain_words():
    """Its name is for a terminal, and its listener takes nobody any more."""
    with socket.socket() as door, contextlib.ExitStack() as guests:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for _ in range(4):
            guest = guests.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(door.getsockname())
        with named(b"a\x1b[31mb"):
            said = subprocess.run(
                [Programs.chempirun, "-pmi_args", str(door.getsockname()[1]),
                 "default", "key", str(os.getpid())], capture_output=True,
                check=False, timeout=LIMIT_S)
    check(said.returncode == 2, said)
    check(b"(a?[31mb) uses MPICH's library" in said.stderr, said.stderr)


@case
def a_parent_that_ignores_its_children_changes_nothing():
    """A process that ignores SIGCHLD does not hear of the ends of its own."""
    for layout in LAYOUTS:
        expect(run(*layout, "sh", "-c", "exit 3", preexec_fn=ignore_children), 3)


if __name__ == "__main__":
    sys.exit(main(CASES, "--private"))
