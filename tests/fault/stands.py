#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes that stand still: they are there, and do nothing.

    stands.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Daemons detect here what is silent for one second. Cases wait for events, never
for a time to pass. After every case no process, socket or file may be left.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, ONE_SENTENCE, Cluster, Job, Programs, await_that, before_limit,
    check, children, comm, expect, full_pipe, interrupt, main, pending, status_of)

CASES = []
QUICK = ("--detect", "1")
QUIET_S = 5.0  # a job that shall end is left: chempid/launcher/run.c
FIVE = ["a1", "a2", "a3", "b1", "b2"]


def case(fn):
    CASES.append(fn)
    return fn


class Standing:
    """A process that is stopped."""

    def __init__(self, *pids):
        self.pids = pids

    def __enter__(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *error):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


def parent_of(pid):
    return int(status_of(pid, "PPid")[0][0])


def hanging_words(count):
    return ("-n", str(count), Programs.rank, "init", "print", "up", "hang")


def hanging_job(cluster, count=10, *options):
    return cluster.job(*options, *hanging_words(count)).await_lines(count)


def insist(job):
    """Three interrupts, before the last of which it must not have ended."""
    for turn in range(3):
        check(job.process.poll() is None, "it has ended at", turn)
        interrupt(job.process.pid)


@case
def a_daemon_that_stands_still_is_named_and_no_other():
    """With and without a connection that was there before."""
    with Cluster(FIVE, QUICK) as cluster:
        pids = {name: cluster.pid(name) for name in FIVE}
        for victim in ("a2", "b2", "a2"):
            with Standing(pids[victim]):
                text = cluster.ctl("--via", "a1", "nodes", status=1)
                for name in FIVE:
                    silent = re.search(rf"{name} .*has not answered", text)
                    check(bool(silent) == (name == victim), victim, text)
            await_that(lambda: "has not" not in cluster.ctl(
                "--via", "a1", "nodes", status=None), victim)


@case
def a_job_ends_when_a_daemon_of_it_stands_still():
    with Cluster(FIVE, QUICK) as cluster:
        for victim in ("a2", "b2"):
            pid = cluster.pid(victim)
            job = hanging_job(cluster, 10, "--via", "a1")
            with Standing(pid):
                job.process.wait(timeout=LIMIT_S)
            job.status = job.finish()
            expect(job, 1, ONE_SENTENCE,
                   f"the daemon of node {victim} is lost: it has not answered "
                   "for 1 s")
            await_that(lambda: not cluster.supervisors(), "their ends")
            await_that(lambda: "has not" not in cluster.ctl(
                "--via", "a1", "nodes", status=None), victim)
        expect(cluster.run("-n", "10", Programs.rank, "init", "everyone",
                           "final"), 0)


@case
def nodes_that_are_only_busy_are_not_lost():
    with Cluster(["a1", "a2", "a3"], QUICK) as cluster:
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(60)]
        try:
            job = cluster.run("-n", "6", "sleep", "4")
        finally:
            for process in busy:
                process.kill()
                process.wait()
        expect(job, 0, r"\A\Z")
        check("has not answered" not in cluster.logged())


def job_name(cluster):
    return cluster.ctl("--via", "a1", "jobs",
                       status=None).splitlines()[1].split()[0]


@case
def a_job_is_killed_though_its_launcher_stands_still():
    """By any node; the answer is that it has ended there."""
    with Cluster(FIVE, QUICK) as cluster:
        for via in ("a1", "b2"):
            job = hanging_job(cluster, 10, "--via", "a1")
            name = job_name(cluster)
            with Standing(job.process.pid):
                check(cluster.ctl("--via", via, "kill", name) == "")
                await_that(lambda: name not in cluster.ctl("jobs"), name)
                await_that(lambda: not cluster.supervisors(), "supervisors")
            job.status = job.finish()
            expect(job, 143, r"\Achempirun: ended by chempictl kill\n\Z")


@case
def a_job_is_killed_though_its_first_daemon_stands_still():
    with Cluster(FIVE, QUICK) as cluster:
        first = cluster.pid("a1")
        job = hanging_job(cluster, 10, "--via", "a1")
        name = job_name(cluster)
        ranks = len(job.ranks())
        with Standing(first, job.process.pid):
            said = cluster.ctl("--via", "b2", "kill", name, status=None)
            check("a1" in said, said)
            # What is left is behind the daemon that stands still.
            await_that(lambda: len(job.ranks()) == ranks // 5, job.ranks)
        job.status = job.finish()
        check(job.status != 0)
        await_that(lambda: not cluster.supervisors(), "their ends")


@case
def time_limits_and_interrupts_work_whatever_stands_still():
    """The daemon for a time limit, also before there is a job; supervisors
    for an interrupt."""
    with Cluster(["a1", "a2"], QUICK) as cluster:
        with Standing(cluster.pid("a1")):
            job = cluster.run("--via", "a1", "--timeout", "1", "-n", "1", "true")
        expect(job, 124, r"\Achempirun: the time limit of 1 s has passed before "
               r"[^\n]* nothing was started\n\Z")
        pid = cluster.pid("a1")
        job, limit_s = before_limit(
            lambda job: job.await_lines(4), "--via", "a1",
            *hanging_words(4), launch=cluster.job)
        with Standing(pid):
            job.process.wait(timeout=LIMIT_S)
        job.status = job.finish()
        expect(job, 124, f"time limit of {limit_s} s")
        await_that(lambda: not cluster.supervisors(), "their ends")
        job = hanging_job(cluster, 4, "--via", "a1")
        with Standing(*cluster.supervisors()):
            interrupt_twice(job)
        job.status = job.finish()
        check(job.status in (130, 143), job.status)
        expect(job, job.status, r"\Achempirun: ended by signal")


def interrupt_twice(job):
    job.process.send_signal(signal.SIGINT)
    job.process.send_signal(signal.SIGTERM)
    job.process.wait(timeout=LIMIT_S)


def is_idle(pid):
    """Its children have ended, and it has said so."""
    return not children(pid) and status_of(pid, "State")[0][0] == "S"


@case
def a_job_whose_ranks_have_ended_waits_for_nobody_that_stands_still():
    """A supervisor that shall leave: the job ends well all the same, and says
    that it has not waited."""
    with Cluster(["a1", "a2"], QUICK) as cluster:
        job = cluster.job("--via", "a1", "-n", "2", "--ppn", "1", "sh", "-c",
                          "echo up; read line || exit 0",
                          stdin=subprocess.PIPE).await_lines(2)
        second = [pid for pid in children(cluster.pid("a2"))
                  if comm(pid).startswith("chempi-super")]
        check(len(second) == 1, second)
        await_that(lambda: is_idle(second[0]), "the end of rank 1")
        with Standing(*second):
            job.status = job.finish()
        expect(job, 0, r"\Achempirun: all ranks have ended, but the daemon of "
               r"node a1 has not told [^\n]*\n\Z")


def only_output_is_left(cluster):
    return cluster.ctl("--via", "a1", "jobs").count("\n") == 1 and \
        not cluster.supervisors()


@case
def a_job_that_nobody_reads_is_not_said_to_be_left():
    """All of it is gone, and only its output waits; two signals wait for that,
    too."""
    with Cluster(["a1"], QUICK) as cluster:
        job = cluster.job("--via", "a1", "-n", "1", "sh", "-c",
                          "head -c 200000 /dev/zero")
        job.read_more()
        await_that(lambda: only_output_is_left(cluster), "the end of the job")
        for number in (signal.SIGINT, signal.SIGTERM):
            job.process.send_signal(number)
            await_that(lambda: not pending(job.process.pid), "the signal")
        job.status = job.finish()
        check(len(job.output) == 200000 and job.status == 0 and not job.errors,
              len(job.output), job.status, job.errors)


@case
def the_third_interrupt_waits_for_no_reader():
    """Of standard output, and of both; for the first two it is waited."""
    with Cluster(["a1"], QUICK) as cluster, full_pipe() as end:
        for others in ({}, {"stderr": end}):
            job = cluster.job("--via", "a1", "-n", "1", "echo", "up",
                              stdout=end, **others)
            await_that(lambda: cluster.logged().count("of echo") ==
                       1 + len(others) and only_output_is_left(cluster),
                       "the end of the job")
            insist(job)
            job.status = job.finish()
            expect(job, 0, r"\A\Z" if others else
                   r"\Achempirun: nobody reads the output: 3 bytes of it are "
                   r"dropped at the third signal\n\Z")


@case
def nor_does_it_when_all_has_been_said_but_why():
    """Its rank has written nothing, and standard error has no room."""
    with Cluster(["a1"], QUICK) as cluster, full_pipe() as end:
        job = cluster.job("--via", "a1", "-n", "1", "sh", "-c", "exit 3",
                          stderr=end)
        await_that(lambda: cluster.logged().count("of sh") == 1 and
                   only_output_is_left(cluster) and is_idle(job.process.pid),
                   "the end of the job")
        insist(job)
        job.status = job.finish()
        expect(job, 3, r"\A\Z")


@case
def nor_do_statistics_wait_for_a_reader():
    """All is well, and nobody reads what is told of it."""
    with Cluster(["a1"], QUICK) as cluster, full_pipe() as end:
        job = cluster.job("--via", "a1", "--stats", "--json", "-n", "1", "true",
                          stderr=end)
        await_that(lambda: cluster.logged().count("of true") == 1 and
                   only_output_is_left(cluster) and is_idle(job.process.pid),
                   "the end of the job")
        insist(job)
        check(job.finish() == 0, job.process.returncode)


@case
def nor_does_it_wait_to_say_why():
    with full_pipe() as end:
        job = Job("--private", "-n", "1", "sh", "-c", "echo up; exec sleep 1000",
                  stdout=end, stderr=end)
        await_that(lambda: job.marked("sleep"), "its rank")
        insist(job)
        check(job.finish() == 128 + signal.SIGINT, job.process.returncode)


@case
def a_private_job_ends_though_its_supervisor_stands_still():
    job = Job("--private", "-n", "2", Programs.rank, "init", "print", "up",
              "hang").await_lines(2)
    supers = job.marked("chempi-super")
    check(len(supers) == 1, supers)
    with Standing(*supers):
        interrupt_twice(job)
    job.status = job.finish()
    check(job.status in (130, 143), job.status, job.errors)


def is_not_left(cluster):
    """False: it took so long, as this machine did, that any job is left."""
    job = hanging_job(cluster, 3, "--nodes", "a1,a2", "--map", "cyclic")
    one, two = sorted((children(pid) for pid in cluster.supervisors()), key=len)
    check(len(one) == 1 and len(two) == 2, one, two)
    with Standing(parent_of(one[0])):
        began = time.monotonic()
        os.kill(two[0], signal.SIGKILL)
        jobrun.wait_gone(two, LIMIT_S)  # one of them by order
        for number in (signal.SIGINT, signal.SIGUSR1):
            job.process.send_signal(number)
            await_that(lambda: job.process.poll() is not None or
                       not pending(job.process.pid), "the signal")
        has_left = job.process.poll() is not None
        is_late = time.monotonic() - began >= QUIET_S
    job.status = job.finish()
    await_that(lambda: not cluster.supervisors(), "their ends")
    if is_late:
        return False
    check(not has_left, "the launcher has left")
    expect(job, 137, r"\Achempirun: [^\n]* killed by signal 9 [^\n]*\n\Z")
    return True


@case
def the_first_interrupt_does_not_leave_a_job_that_ends_already():
    with Cluster(["a1", "a2"], QUICK) as cluster:
        await_that(lambda: is_not_left(cluster), "the end of a job")


if __name__ == "__main__":
    sys.exit(main(CASES))
