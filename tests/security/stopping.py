#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether a user, or a stranger, can stop a daemon that serves others.

    stopping.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events, never for a time to pass.
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, check, children, comm, expect, kill_and_wait,
    main)

CASES = []
PTRACE_SEIZE = 0x4206
LIBC = ctypes.CDLL(None, use_errno=True)


def case(fn):
    CASES.append(fn)
    return fn


def trace(pid):
    """Then its end is not reaped before this process does it, or ends."""
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                            ctypes.c_void_p]
    check(LIBC.ptrace(PTRACE_SEIZE, pid, None, None) == 0,
          "cannot trace:", os.strerror(ctypes.get_errno()))


def let_go(pids):
    """Of processes that have ended while they were traced."""
    for pid in pids:
        os.waitpid(pid, 0)


def supervisor_of(cluster, name):
    """The one of the only job there."""
    found = [pid for pid in children(cluster.pid(name))
             if comm(pid).startswith("chempi-super")]
    check(len(found) == 1, found)
    return found[0]


# ---- processes that do not end ----------------------------------------------


@case
def a_traced_supervisor_does_not_stop_the_daemon():
    with Cluster(["a1"]) as cluster:
        job = cluster.job("-n", "2", Programs.rank, "init", "print", "x", "hang")
        job.await_lines(2)
        supervisor = supervisor_of(cluster, "a1")
        trace(supervisor)
        os.kill(supervisor, 9)
        cluster.ctl("nodes")
        expect(cluster.run("-n", "2", Programs.rank, "init", "final"), 0)
        out, err = job.process.communicate(timeout=LIMIT_S)
        check(job.process.returncode != 0 and b"traces it" in err, out, err)
        let_go([supervisor])
        check(job.finish() != 0)


@case
def traced_ranks_do_not_stop_the_daemon():
    """Whether their supervisor has ended, or shall end them itself."""
    with Cluster(["a1"]) as cluster:
        job = cluster.job("-n", "2", Programs.rank, "init", "print", "x", "hang")
        ranks = job.await_lines(2).ranks()
        for pid in ranks:
            trace(pid)
        os.kill(supervisor_of(cluster, "a1"), 9)
        cluster.ctl("nodes")
        expect(cluster.run("-n", "2", Programs.rank, "init", "final"), 0)
        out, err = job.process.communicate(timeout=LIMIT_S)
        check(job.process.returncode != 0 and b"supervisor" in err, out, err)
        let_go(ranks)

        job = cluster.job("-n", "2", Programs.rank, "init", "print", "x", "hang")
        ranks = job.await_lines(2).ranks()
        for pid in ranks:
            trace(pid)
        cluster.ctl("kill", job_id(cluster))
        check(job.process.wait(LIMIT_S) != 0)
        cluster.ctl("nodes")
        let_go(ranks)


def job_id(cluster):
    return cluster.ctl("jobs").splitlines()[1].split()[0]


@case
def a_standing_supervisor_does_not_outlive_its_launcher():
    with Cluster(["a1"]) as cluster:
        job = cluster.job("-n", "2", Programs.rank, "init", "print", "x", "hang")
        job.await_lines(2)
        supervisor = supervisor_of(cluster, "a1")
        os.kill(supervisor, 19)
        kill_and_wait(job.process.pid, [supervisor])
        job.process.communicate(timeout=LIMIT_S)
        check(job.finish() != 0)


if __name__ == "__main__":
    sys.exit(main(CASES))
