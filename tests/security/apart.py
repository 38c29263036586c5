#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which process of a daemon that serves all users has which rights, and what
becomes of the others when one of them is killed.

    apart.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

All cases are for root: other daemons have nothing to give up. Orders that no
daemon would give are in unit-helper.
"""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, child_named, children, comm,
    expect, kill_and_wait, main, root_only, status_of)

CASES = []
NOBODY = 65534
UNKNOWN = 65530  # as in chempid/helper/drop.h
PROCESSES_KIB = 4096  # of a daemon and its helper together


def case(fn):
    CASES.append(root_only(fn))
    return fn


def uids_of(pid):
    return [int(word) for word in status_of(pid, "Uid")[0]]


def nobodys_job(cluster, *args):
    """The launcher's program may be where this user cannot go: its text is
    opened first."""
    program = os.open(Programs.chempirun, os.O_RDONLY)
    try:
        return cluster.job("--wdir", "/", *args,
                           executable=f"/proc/self/fd/{program}",
                           pass_fds=[program], user=NOBODY, group=NOBODY,
                           extra_groups=[], cwd="/")
    finally:
        os.close(program)


def sleeping_job(cluster, nodes=1):
    job = nobodys_job(cluster, "-n", str(nodes), "--ppn", "1", "sh", "-c",
                      "echo up; exec sleep 600")
    return job.await_lines(nodes)


def serving():
    return Cluster(["a1"], ["--serve", "users"], mode=0o755)


@case
def who_reads_from_others_has_no_rights():
    with serving() as cluster:
        daemon = cluster.pid("a1")
        helper = child_named(daemon, "chempi-helper")
        job = sleeping_job(cluster)
        supervisor = child_named(helper, "chempi-super")
        check(uids_of(daemon) == [UNKNOWN] * 4, uids_of(daemon))
        gids, groups, new, *caps = status_of(daemon, "Gid", "Groups",
                                             "NoNewPrivs", "CapPrm", "CapEff",
                                             "CapInh", "CapAmb")
        check(gids == [str(UNKNOWN)] * 4 and not groups and new == ["1"], gids,
              groups, new)
        check(all(int(cap[0], 16) == 0 for cap in caps), caps)
        check(os.stat(f"/proc/{daemon}/mem").st_uid == 0, "can be traced")
        check(uids_of(helper) == [0] * 4, uids_of(helper))
        check(uids_of(supervisor) == [NOBODY] * 4, uids_of(supervisor))
        # Daemon and keeper; the supervisor's end is closed behind its start.
        await_that(lambda: len(sockets_of(helper)) == 2, sockets_of, helper)
        job.process.send_signal(signal.SIGINT)
        check(job.finish() != 0)


def is_socket(pid, fd):
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    except OSError:
        return False


def sockets_of(pid):
    return [fd for fd in os.listdir(f"/proc/{pid}/fd") if is_socket(pid, fd)]


@case
def the_daemons_user_is_chosen_and_is_not_root():
    with Cluster([], mode=0o755) as cluster:
        cluster.start("a1", "--serve", "users", "--user", "nobody")
        check(uids_of(cluster.pid("a1")) == [NOBODY] * 4)
        job = nobodys_job(cluster, "-n", "1", "id")
        check(job.finish() != 0 and not job.output and
              "starts no supervisor: Operation not permitted" in job.errors,
              job.errors)
        for user, words in (("root", "root's group"),
                            ("chempi-no-such", "no such user")):
            done = cluster.start("a2", "--serve", "users", "--user", user,
                                 check_it=False)
            check(done.returncode == 1 and words in cluster.logged(),
                  done, cluster.logged())
        os.chmod(cluster.dir, 0o700)
        done = cluster.start("a2", "--serve", "users", check_it=False)
        check(done.returncode == 1 and "chmod a+rx" in cluster.logged(),
              cluster.logged())


@case
def nobody_waits_for_what_the_helper_says():
    """Who starts a daemon in the background reads the end of its words."""
    with Cluster([], mode=0o755) as cluster:
        done = subprocess.run(
            [Programs.chempid, "--name", "a1", "--dir", cluster.dir, "--serve",
             "users", "--background"], env=cluster.env, capture_output=True,
            stdin=subprocess.DEVNULL, check=False, timeout=LIMIT_S)
        check(done.returncode == 0 and not done.stderr, done)


@case
def a_daemon_that_is_killed_leaves_nothing():
    """Nor do its helper, standing supervisors and ranks stay."""
    with serving() as cluster:
        daemon = cluster.pid("a1")
        helper = child_named(daemon, "chempi-helper")
        keeper = child_named(daemon, "chempi-keeper")
        job = sleeping_job(cluster)
        supervisor = child_named(helper, "chempi-super")
        ranks = children(supervisor)
        os.kill(supervisor, signal.SIGSTOP)
        kill_and_wait(daemon, [helper, keeper, supervisor, *ranks])
        check(job.finish() != 0 and "daemon" in job.errors, job.errors)
        check(cluster.names() == [], os.listdir(cluster.dir))


@case
def a_helper_that_is_killed_ends_the_daemon():
    with serving() as cluster:
        daemon = cluster.pid("a1")
        helper = child_named(daemon, "chempi-helper")
        job = sleeping_job(cluster)
        supervisor = child_named(helper, "chempi-super")
        kill_and_wait(helper, [daemon, supervisor, *children(supervisor)])
        check(f"root's helper (process {helper})" in cluster.logged() and
              cluster.logged().count("root's helper") == 1, cluster.logged())
        check(job.finish() != 0 and "daemon" in job.errors, job.errors)
        await_that(lambda: cluster.names() == [], "the files' end")


@case
def a_keeper_that_is_killed_is_replaced():
    with serving() as cluster:
        daemon = cluster.pid("a1")
        helper = child_named(daemon, "chempi-helper")
        os.kill(child_named(daemon, "chempi-keeper"), signal.SIGKILL)
        second = child_named(helper, "chempi-keeper")
        os.kill(second, signal.SIGKILL)
        await_that(lambda: [p for p in children(helper) if p != second and
                            comm(p).startswith("chempi-keeper")],
                   "a third keeper")
        check(cluster.names() == ["a1"])
        for pid in (helper, daemon):
            os.kill(pid, signal.SIGSTOP)
        for pid in (helper, daemon):
            os.kill(pid, signal.SIGKILL)
        await_that(lambda: cluster.names() == [], "the files' end")


@case
def a_supervisor_that_is_killed_is_told_as_ever():
    with serving() as cluster:
        helper = child_named(cluster.pid("a1"), "chempi-helper")
        job = sleeping_job(cluster)
        os.kill(child_named(helper, "chempi-super"), signal.SIGKILL)
        check(job.finish() != 0 and re.search(
            r"supervisor of node a1 \(pid \d+\) was killed by signal 9",
            job.errors), job.errors)
        check(children(helper) == [], children(helper))


@case
def keys_are_read_again_through_the_helper():
    with serving() as cluster:
        cluster.ctl("--via", "a1", "reread")
        check("keys were read again" in cluster.logged(), cluster.logged())
        os.chmod(cluster.key, 0o644)
        said = cluster.ctl("--via", "a1", "reread", status=1)
        check("others can read" in said, said)
        os.rename(cluster.key, f"{cluster.key}.not")
        said = cluster.ctl("--via", "a1", "reread", status=1)
        check("No such file" in said, said)
        os.rename(f"{cluster.key}.not", cluster.key)
        os.chmod(cluster.key, 0o600)


@case
def nodes_and_users_work_as_ever():
    """Over two nodes; orders are root's, not those of the daemons' user."""
    with serving() as cluster:
        cluster.start("a2", "--serve", "users")
        for _ in range(3):
            job = nobodys_job(cluster, "-n", "4", "--ppn", "2", "id", "-u")
            check(job.finish() == 0 and job.output == b"65534\n" * 4,
                  job.output, job.errors)
        expect(cluster.run("-n", "1", "true"), 1, "starts no ranks of root")
        for user in (NOBODY, UNKNOWN):
            done = subprocess.run(
                ["/proc/self/fd/0", "--dir", cluster.dir, "--via", "a1",
                 "stop"], stdin=open(Programs.chempictl, "rb"), user=user,
                group=user, extra_groups=[], cwd="/", capture_output=True,
                check=False, timeout=LIMIT_S, env=cluster.env)
            check(done.returncode != 0 and b"only root and the daemon's user "
                  b"may do so" in done.stderr, done)


@case
def an_idle_daemon_is_small():
    """Sanitizers' memory is not the daemon's."""
    with serving() as cluster:
        daemon = cluster.pid("a1")
        pids = [daemon, child_named(daemon, "chempi-helper")]
        used = 0
        for pid in pids:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                used += int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M)[1])
        with open(f"/proc/{daemon}/maps", encoding="ascii") as file:
            has_sanitizer = re.search(r"lib[atul]+san", file.read())
        check(has_sanitizer or used <= PROCESSES_KIB, used, "KiB")


if __name__ == "__main__":
    sys.exit(main(CASES))
