#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs beside each other: on free slots, and on cores of their own.

    balance.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

All runs in a network namespace of its own, as the names that stand for cores
belong to one: so no other job of this host counts.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, cores, expect, main)

CASES = []
CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000


def case(fn):
    CASES.append(fn)
    return fn


def be_alone():
    """In a network namespace of one's own; whether that is so."""
    libc = ctypes.CDLL(None)
    if not shutil.which("ip"):
        return False
    if libc.unshare(CLONE_NEWNET) and \
            libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        return False
    return not subprocess.run(["ip", "link", "set", "lo", "up"],
                              check=False).returncode


def places(job):
    """Ranks per node, as --verbose says."""
    said = re.search(r"\.sock\):((?: \S+:\d+)+)\n", job.errors)
    check(said, job.errors)
    return said[1].split()


def hold(cluster, count, *options):
    """A job that stays."""
    return cluster.job("-n", str(count), *options, Programs.rank, "init",
                       "print", "up", "hang").await_lines(count)


def run_true(cluster, count, *options):
    job = cluster.run("--verbose", "-n", str(count), *options, "true")
    expect(job, 0)
    return places(job)


def end(job):
    job.process.terminate()
    job.finish()


@case
def jobs_go_to_free_slots():
    with Cluster(["a1", "a2", "a3"]) as cluster:
        check(run_true(cluster, 2) == ["a1:2"])
        first = hold(cluster, 3)  # a1:2 a2:1
        check(run_true(cluster, 2) == ["a2:1", "a3:1"])
        check(run_true(cluster, 3) == ["a2:1", "a3:2"])
        check(run_true(cluster, 2, "--map", "cyclic") == ["a2:1", "a3:1"])
        check(run_true(cluster, 2, "--map", "load") == ["a2:1", "a3:1"])
        check(run_true(cluster, 2, "--ppn", "1") == ["a2:1", "a3:1"])
        # What is said of a node holds, and more than free is no error.
        check(run_true(cluster, 2, "--nodes", "a1:2") == ["a1:2"])
        check(run_true(cluster, 2, "--nodes", "a1") == ["a1:2"])
        check(run_true(cluster, 6) == ["a1:2", "a2:2", "a3:2"])
        end(first)
        await_that(lambda: cluster.ctl("jobs").count("\n") == 1, "the end")
        check(run_true(cluster, 2) == ["a1:2"])


@case
def a_job_that_does_not_fit_says_what_is_free():
    with Cluster(["a1", "a2"]) as cluster:
        first = hold(cluster, 3)
        fit = "--no-oversubscribe"
        check(run_true(cluster, 1, fit) == ["a2:1"])
        expect(cluster.run("-n", "2", fit, "true"), 1,
               r"\Achempirun: the job does not fit: it has 2 ranks, and so "
               r"many slots are free: a1 0 of 2, a2 1 of 2; wait [^\n]*\n\Z")
        expect(cluster.run("-n", "2", "true"), 0, r"\A\Z")
        expect(cluster.run("-n", "3", "--ppn", "1", "true"), 2,
               "do not fit on 2 nodes with 1 per node")
        end(first)


def bound_to(job):
    """Processors of each rank, by number."""
    return dict(re.findall(
        r"rank (\d+) on node \S+ is bound to processors ([\d,-]+)\n",
        job.errors))


def hold_bound(cluster, *options):
    job = cluster.job("--show-binding", *options, Programs.rank, "init",
                      "print", "up", "hang").await_lines(int(options[1]))
    return job


@case
def jobs_beside_each_other_have_cores_of_their_own():
    count = len(cores())
    if count < 2:
        print("skipped: one core only")
        return
    with Cluster([]) as cluster:
        cluster.start("a1", slots=str(count))
        jobs = [hold_bound(cluster, "-n", "1") for _ in range(count)]
        # None is left: the next one is bound to none.
        more = cluster.run("--show-binding", "-n", "1", "true")
        expect(more, 0, "rank 0 on node a1 may use processors")
        for job in jobs:
            end(job)
        taken = [bound_to(job) for job in jobs]
        check(all(len(t) == 1 for t in taken), taken)
        check(len({t["0"] for t in taken}) == count, taken)
        # As many ranks as cores have one each again.
        await_that(lambda: cluster.ctl("jobs").count("\n") == 1, "the end")
        more = cluster.run("--show-binding", "-n", str(count), "true")
        check(len(set(bound_to(more).values())) == count, more.errors)


@case
def a_node_of_one_slot_gives_its_rank_all_cores():
    count = len(cores())
    if count < 2:
        print("skipped: one core only")
        return
    with Cluster([]) as cluster:
        cluster.start("a1", slots="1")
        job = cluster.run("--show-binding", "-n", "1", "sh", "-c", "nproc")
        expect(job, 0, "is bound to processors")
        check(int(job.output) == len(os.sched_getaffinity(0)), job.output)


if __name__ == "__main__":
    if not be_alone():
        print("skipped: no network namespace of one's own here")
        sys.exit(0)
    sys.exit(main(CASES))
