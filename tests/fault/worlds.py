#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Worlds that ranks start: their beginning, what they say, and how each part of
them ends.

    worlds.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events, never for a time to pass. After every case no process may
be left.
"""
import contextlib
import os
import re
import select
import signal
import sys
import tempfile

from jobs import (LIMIT_S, Cluster, Job, Programs, await_that, before_limit,
                  check, children, comm, expect, interrupt, main, run)

CASES = []
LAYOUTS = (["-n", "2"], ["--virtual", "2", "-n", "2"])


def case(fn):
    CASES.append(fn)
    return fn


def words(count, *args, **keys):
    """What the rank's verb "spawn" takes."""
    said = [str(count)]
    for key, value in keys.items():
        said += [key, value]
    return "|".join([*said, "--", *args])


def rank(count, *args, **keys):
    return words(count, Programs.rank, *args, **keys)


def script(folder, *lines):
    """A file that a shell runs."""
    path = f"{folder}/script"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(["#!/bin/sh", *lines, ""]))
    os.chmod(path, 0o700)
    return path


def launchers(job):
    """Of worlds."""
    found = []
    for pid in children(job.process.pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read() == b"chempirun\0--world\0":
                found.append(pid)
    return found


# ---- beginning --------------------------------------------------------------


@case
def a_world_is_started_and_its_end_is_told():
    for layout in LAYOUTS:
        job = run(*layout, "-l", Programs.rank, "only", "0", "spawn",
                  rank(3, "init", "parent", "everyone", "final"), "over")
        expect(job, 0, r"\A\Z")
        check(job.lines() == ["[0] granted 3 ", "[0] over 0 ",
                              *(f"[1.{i}] world 1 of a port" for i in range(3))],
              job.output)


@case
def several_programs_are_one_world():
    job = run("-n", "1", "-l", Programs.rank, "spawn", ";".join((
        words(1, "sh", "-c", "echo $CHEMPI_RANK/$CHEMPI_SIZE $PWD $A", wdir="/",
              env="A=b\nC=d"),
        words(2, "sh", "-c", "echo $CHEMPI_RANK/$CHEMPI_SIZE"))), "over")
    expect(job, 0)
    check(job.lines() == ["[0] granted 3 ", "[0] over 0 ", "[1.0] 0/3 / b",
                          "[1.1] 1/3", "[1.2] 2/3"], job.output)


@case
def nodes_are_those_of_the_first_world():
    job = run("--virtual", "a,b", "-n", "1", Programs.rank, "spawn",
              words(1, "sh", "-c", "echo on $CHEMPI_NODE", host="b"), "over")
    expect(job, 0)
    check("on b" in job.lines(), job.output)


@case
def worlds_start_worlds():
    with tempfile.TemporaryDirectory() as folder:
        inner = script(folder, f"exec {Programs.rank} spawn "
                       f"'{rank(1, 'parent')}' over")
        job = run("-n", "1", "-l", Programs.rank, "spawn", words(1, inner),
                  "over")
    expect(job, 0)
    check(job.lines() == ["[0] granted 1 ", "[0] over 0 ", "[1.0] granted 1 ",
                          "[1.0] over 0 ", "[2.0] world 2 of a port"],
          job.output)


@case
def names_are_known_in_all_worlds():
    job = run("-n", "1", "-l", Programs.rank, "publish", "ours", "spawn",
              rank(1, "look", "ours", "publish", "theirs", "look", "theirs"),
              "over", "look", "theirs")
    expect(job, 0)
    check(job.lines() == ["[0] failed 0 nobody has published the name, of the "
                          "worlds of this chempirun (those of another one are "
                          "not asked: hand the port's name over by a file, or "
                          "the like)",
                          "[0] granted 0 ", "[0] granted 1 ", "[0] over 0 ",
                          "[1.0] granted 0 ", "[1.0] granted 0 a port",
                          "[1.0] granted 0 a port"], job.output)


# ---- what cannot be started -------------------------------------------------


def refused(said, pattern, app=0):
    job = run("-n", "1", Programs.rank, "spawn", said)
    expect(job, 0, r"\A\Z")
    heard = re.search(rf"^failed {app} .*{pattern}.*", job.output.decode(), re.M)
    check(heard and "was ended" not in heard[0], pattern, job.output)


@case
def a_program_that_is_not_there_fails_the_call():
    refused(words(1, "/nowhere"), "/nowhere.*No such file")
    refused(words(1, "./nowhere", wdir="/var"),
            "No such file or directory in the working directory /var")
    refused(words(1, "nowhere", path="/var:/tmp"), "/var:/tmp")


@case
def a_program_is_looked_for_where_the_info_says():
    with tempfile.TemporaryDirectory() as folder:
        script(folder, "echo found")
        for path in (folder, f"/nowhere:{folder}"):
            job = run("-n", "1", Programs.rank, "spawn",
                      words(1, "script", path=path), "over")
            expect(job, 0, r"\A\Z")
            check("found" in job.lines(), job.output)


@case
def all_programs_start_or_none_does():
    refused(";".join((rank(2, "print", "x", "hang"), words(1, "/nowhere"))),
            "/nowhere", app=1)


@case
def what_is_wrong_with_the_info_is_said():
    refused(words(2, "true", soft="x"), "soft=x")
    refused(words(2, "true", soft="5:9"), "permits no number")
    refused(words(1, "true", mpi_initial_errhandler="mine"),
            "mpi_initial_errhandler=mine: expected mpi_errors_are_fatal")
    refused(";".join((words(1, "true"), words(1, "true", host="a"))),
            "the other programs", app=1)


@case
def hosts_are_nodes_of_the_job():
    """Whatever the user could reach; whoever reaches other hosts says whom it calls."""
    with tempfile.TemporaryDirectory() as folder:
        called = f"{folder}/called"
        reach = script(folder, f"echo $1 >>{called}", "shift",
                       'exec sh -c "$*"')
        for layout in (["--virtual", "a,b"], ["--launcher-exec", reach, "--private"],
                       ["--launcher-exec", reach, "--nodes", "a,b"]):
            job = run(*layout, "-n", "1", Programs.rank, "spawn",
                      words(1, "true", host="c"), "spawn",
                      words(1, "true", host="localhost"))
            expect(job, 0)
            check("failed 0 host=c: that is no node of the job" in job.lines(),
                  job.output)
            check(("granted 1 " in job.lines()) == ("--private" in layout),
                  job.output)
        with open(called, encoding="utf-8") as file:
            check(set(file.read().split()) <= {"a", "b"}, called)


@case
def hosts_are_those_that_daemons_know():
    with Cluster(["a", "b", "c"]) as cluster:
        for nodes in ([], ["--nodes", "a,b"]):
            job = cluster.run(*nodes, "-n", "1", Programs.rank, "spawn",
                              words(1, "sh", "-c", "echo on $CHEMPI_NODE",
                                    host="b"), "over", "spawn",
                              words(1, "sh", "-c", "echo on $CHEMPI_NODE",
                                    host="c"), "end", "spawn",
                              words(1, "true", host="d"))
            expect(job, 0)
            check("on b" in job.lines(), job.output)
            check(("on c" in job.lines()) == (not nodes), job.output)
            check(len([line for line in job.lines() if
                       line.startswith("failed 0 ") and " d" in line or
                       "host=d" in line]) == 1, job.output)


@case
def a_smaller_number_is_started_where_that_is_permitted():
    job = run("-n", "1", Programs.rank, "spawn", words(5, "true", soft="1:4:3"),
              "over")
    expect(job, 0)
    check(b"granted 4" in job.output, job.output)


# ---- ends -------------------------------------------------------------------


@case
def the_launcher_ends_with_its_last_world():
    job = run("-n", "1", Programs.rank, "spawn",
              rank(1, "init", "final", "print", "late"))
    expect(job, 0)
    check("late" in job.lines(), job.output)


@case
def the_status_is_the_first_bad_one():
    job = run("-n", "1", Programs.rank, "spawn", words(1, "sh", "-c", "exit 7"),
              "over")
    expect(job, 7, r"chempirun: world 1: rank 0 on node .* 7")
    check(re.search(rb"over 0 rank 0 .* 7", job.output), job.output)


@case
def the_first_worlds_status_comes_first():
    job = run("-n", "1", Programs.rank, "spawn", words(1, "sh", "-c", "exit 7"),
              "over", "exit", "5")
    check(job.status == 5, job.status)


@case
def a_world_that_ends_badly_ends_those_that_it_has_started():
    for layout in LAYOUTS:
        job = run(*layout, Programs.rank, "only", "0", "spawn",
                  rank(1, "hang"), "exit", "5")
        check(job.status == 5, job.status, job.errors)


@case
def but_not_its_parents():
    job = run("-n", "1", Programs.rank, "spawn", rank(1, "raise", "9"), "over",
              "print", "alive")
    check(job.status == 137, job.status)
    check("alive" in job.lines(), job.output)


def a_world_that_hangs():
    return ("-n", "1", Programs.rank, "spawn", rank(2, "print", "up", "hang"),
            "print", "up", "hang")


def are_up(job):
    while job.output.count(b"up\n") < 3:
        job.read_more()


def with_world(*options):
    job = Job(*options, *a_world_that_hangs())
    are_up(job)
    return job


@case
def signals_reach_worlds():
    for number in signal.SIGINT, signal.SIGTERM:
        job = with_world()
        job.process.send_signal(number)
        check(job.finish() == 128 + number, job.errors)


@case
def no_world_is_left_whose_output_nobody_reads():
    """All fill one pipe, so that all find it full at any time."""
    read, write = os.pipe()
    job = Job("-n", "2", Programs.rank, "only", "0", "spawn",
              words(2, "yes"), "spawn", words(2, "yes"), "end", "hang",
              stdout=write)
    await_that(lambda: not select.select([], [write], [], 0)[1], "a full pipe")
    for _ in range(3):
        interrupt(job.process.pid)
    check(job.finish() == 128 + signal.SIGINT, job.errors)
    os.close(read)
    os.close(write)


@case
def a_time_limit_ends_all_worlds():
    job, _ = before_limit(are_up, *a_world_that_hangs())
    check(job.finish() == 124, job.errors)


def a_world_that_is_left():
    """The first one ends well."""
    return ("-n", "1", Programs.rank, "spawn", rank(1, "print", "up", "deaf"),
            "print", "up")


def is_left(job):
    job.await_lines(3)
    await_that(lambda: len(job.ranks()) <= 1, "the end of the first world")


@case
def what_ends_worlds_behind_the_first_one_is_said():
    job, limit_s = before_limit(is_left, *a_world_that_is_left())
    job.status = job.finish()
    expect(job, 124,
           rf"\Achempirun: the time limit of {limit_s} s has passed")
    job = Job(*a_world_that_is_left())
    is_left(job)
    job.process.send_signal(signal.SIGINT)
    job.status = job.finish()
    expect(job, 130, r"chempirun: ended by signal 2\n\Z")


@case
def a_time_limit_holds_for_other_worlds_when_the_first_one_ends_by_itself():
    """Its rank ends as soon as it is asked where it waits, which is what the
    limit does first."""
    job = run("--timeout", "1", "-n", "1", Programs.rank, "init", "spawn",
              rank(1, "deaf"), "asked", "final",
              env=dict(os.environ, CHEMPI_WHERE_LIMIT=str(LIMIT_S)))
    expect(job, 124, r"chempirun: the time limit of 1 s has passed; [^\n]*\n\Z")


@contextlib.contextmanager
def layouts():
    """One node, several, and several with a command that reaches each."""
    with tempfile.TemporaryDirectory() as folder:
        reach = script(folder, "shift", 'exec sh -c "$*"')
        yield (("--bind", "none"), ("--virtual", "2"),
               ("--launcher-exec", reach, "--nodes", "a,b", "--bind", "none"))


@case
def the_end_of_the_first_launcher_ends_all():
    with layouts() as all_layouts:
        for layout in all_layouts:
            job = with_world(*layout)
            job.process.kill()
            job.finish()


@case
def nor_is_a_worlds_launcher_left_that_stands_still():
    with layouts() as all_layouts:
        for layout in all_layouts:
            job = with_world(*layout)
            (launcher,) = launchers(job)
            os.kill(launcher, signal.SIGSTOP)
            job.process.kill()
            job.finish()


@case
def the_end_of_a_worlds_launcher_ends_the_world():
    with layouts() as all_layouts:
        for layout in all_layouts:
            job = Job(*layout, "-n", "1", Programs.rank, "spawn",
                      rank(2, "print", "up", "hang"), "over").await_lines(3)
            (launcher,) = launchers(job)
            os.kill(launcher, signal.SIGKILL)
            check(job.finish() == 137, job.errors)
            check(b"over 0 the launcher of world 1 was killed by signal 9"
                  in job.output, job.output)


@case
def the_end_of_a_worlds_supervisor_ends_the_world():
    """On one of two nodes. What is said of it is said to its parents."""
    job = Job("--virtual", "a,b", "-n", "1", Programs.rank, "spawn",
              rank(2, "print", "up", "hang"), "over", "print",
              "alive").await_lines(3)
    (launcher,) = launchers(job)
    supervisors = [p for p in children(launcher)
                   if comm(p).startswith("chempi-super")]
    check(len(supervisors) == 2, supervisors)
    os.kill(supervisors[1], signal.SIGKILL)
    job.status = job.finish()
    expect(job, 1, r"chempirun: world 1: the supervisor of node b")
    check("alive" in job.lines(), job.output)
    check(re.search(rb"over 0 the supervisor of node b .* was killed",
                    job.output), job.output)


@case
def a_worlds_launcher_that_stands_still_is_killed():
    job = with_world()
    (launcher,) = launchers(job)
    os.kill(launcher, signal.SIGSTOP)
    job.process.terminate()
    check(job.finish() == 128 + signal.SIGTERM, job.errors)


@case
def who_asks_without_end_is_stopped():
    """More than may wait for an answer: a library of ours does not ask."""
    job = run("-n", "1", Programs.rank, *["post", words(1, "true")] * 65, "hang")
    check(job.status == 9, job.status)
    check("rank: spawn" in job.errors, job.errors)


def spread(cluster, *verbs):
    """A world on two nodes that has started one on both, and is held by it."""
    job = cluster.job("-n", "2", "--map", "cyclic", "-l", Programs.rank, "only",
                      "1", "spawn", rank(2, "init", "everyone", "print", "up",
                                         "hang"), *verbs, "print", "up", "hang",
                      "end", "hang")
    return job.await_lines(3 if "over" in verbs else 4)


@case
def daemons_know_nothing_of_what_has_ended():
    """Whoever is killed: Cluster.stop() looks for what is left of it."""
    for number in signal.SIGKILL, signal.SIGTERM:
        with Cluster(["a", "b"]) as cluster:
            job = spread(cluster)
            check(cluster.ctl("jobs").count("fault-rank") >= 2)
            job.process.send_signal(number)
            check(job.finish() in (-signal.SIGKILL, 128 + signal.SIGTERM),
                  job.errors)
            await_that(lambda: "fault-rank" not in cluster.ctl("jobs"),
                       "the ends of jobs")


@case
def the_end_of_a_worlds_launcher_ends_it_at_all_daemons():
    with Cluster(["a", "b"]) as cluster:
        job = spread(cluster, "over")
        (launcher,) = launchers(job)
        os.kill(launcher, signal.SIGKILL)
        job.await_line(b"[1] up")
        check(b"[1] over 0 the launcher of world 1 was killed" in job.output,
              job.output)
        await_that(lambda: len(job.ranks()) == 2, "the end of the world")
        job.process.terminate()
        check(job.finish() == 128 + signal.SIGTERM, job.errors)


@case
def the_end_of_a_daemon_ends_all_worlds_of_a_job_there():
    for name in "a", "b":
        with Cluster(["a", "b"]) as cluster:
            job = spread(cluster)
            cluster.kill(name)
            job.status = job.finish()
            expect(job, 1, rf"node {name}")


@case
def a_world_ends_with_its_daemon_and_its_parents_go_on():
    with Cluster(["a", "b"]) as cluster:
        job = cluster.job("-n", "1", "--nodes", "a,b", Programs.rank, "spawn",
                          rank(1, "print", "up", "hang", host="b"), "over",
                          "print", "alive")
        job.await_line(b"up")
        cluster.kill("b")
        job.status = job.finish()
        expect(job, 1, r"chempirun: world 1: .*node b")
        check("alive" in job.lines(), job.output)


@case
def daemons_run_worlds():
    with Cluster(["a", "b"]) as cluster:
        job = cluster.run("-n", "2", "-l", Programs.rank, "only", "1", "spawn",
                          rank(3, "init", "everyone", "parent", "final"),
                          "over")
        expect(job, 0)
        check(job.lines() == sorted(["[1] granted 3 ", "[1] over 0 ", *(
            f"[1.{i}] world 1 of a port" for i in range(3))]), job.output)


if __name__ == "__main__":
    sys.exit(main(CASES))
