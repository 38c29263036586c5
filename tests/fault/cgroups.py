#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A control group for each job and node.

    cgroups.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Where a daemon can write no groups, cases say so and are skipped, and so is
each limit whose controller is not there.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, child_named, comm, expect,
    kill_and_wait, main)

CASES = []
MIB = 1 << 20


def case(fn):
    CASES.append(fn)
    return fn


def mounts():
    """Of hierarchies: what follows the mount point, by mount point."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            words, kind = line.split(" - ")
            if kind.startswith("cgroup"):
                found[words.split()[4]] = kind
    return found


def daemon_of(group):
    return group.split(".")[-1].split("-")[0]


def groups(cluster):
    """Directories of its daemons: "chempi.NODE.PID", and "-1" behind it where
    another daemon was just looking whether somebody dead had left it."""
    pids = {str(cluster.pid(name)) for name in cluster.names()}
    found = []
    for mount in mounts():
        for path, dirs, _ in os.walk(mount):
            for name in dirs:
                if name.startswith("chempi.") and daemon_of(name) in pids:
                    found.append(os.path.join(path, name))
            dirs[:] = [d for d in dirs if not d.startswith("chempi.")]
    return found


def jobs_in(places):
    return [os.path.join(p, d) for p in places for d in os.listdir(p)
            if os.path.isdir(os.path.join(p, d))]


def members(group):
    with open(f"{group}/cgroup.procs", encoding="ascii") as file:
        return {int(line) for line in file}


def into(group, command, cluster):
    """A process in a group, which ends with the cluster at the latest."""
    process = subprocess.Popen(command, env=cluster.env)
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(process.pid))
    return process


def has_groups(cluster):
    await_that(lambda: groups(cluster) or
               re.search("no control groups|are not limited in",
                         cluster.logged()), "groups")
    if groups(cluster):
        return True
    print("skipped: no control group can be written here")
    expect(cluster.run("-n", "2", Programs.rank, "init", "everyone", "final"),
           0, r"\A\Z")
    return False


@case
def a_job_has_a_group_on_each_node():
    """With all that its ranks fork; it goes with the job."""
    with Cluster(["a1", "a2"]) as cluster:
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "4", "--ppn", "2", Programs.rank, "init",
                          "child", "print", "up", "hang").await_lines(4)
        found = jobs_in(places)
        check(len(found) == 2, found)
        inside = set().union(*map(members, found))
        # Ranks, what they have left behind, and supervisors.
        mine = {pid for pid, _ in jobrun.marked(job.mark)
                if pid != job.process.pid}
        check(len(mine) == 8 and mine < inside, mine, inside)
        check({comm(pid).strip() for pid in inside - mine} ==
              {"chempi-super"}, inside)
        name = cluster.ctl("jobs").splitlines()[1].split()[0]
        check(all(os.path.basename(g) == name for g in found), found)
        cluster.ctl("kill", name)
        job.status = job.finish()
        expect(job, 143)
        await_that(lambda: not jobs_in(places), places)
        pid = cluster.pid("a1")
    check(not [p for p in places if os.path.exists(p)], places, pid)


@case
def a_daemon_whose_process_cannot_be_seen_keeps_its_group():
    """In another container, say: when the next daemon removes what dead ones
    have left."""
    hidden = f"hidden{os.getpid()}"  # its number is 1 there
    with tempfile.TemporaryDirectory() as other, Cluster(["a1"]) as cluster:
        if not has_groups(cluster):
            return
        away = subprocess.Popen(
            ["unshare", "-p", "-f", "--kill-child", Programs.chempid, "--name",
             hidden, "--dir", other, "--listen", "127.0.0.1", "--key",
             cluster.key], env=cluster.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def its():
                return [os.path.join(path, name) for path in
                        {os.path.dirname(g) for g in groups(cluster)}
                        for name in os.listdir(path)
                        if name.startswith(f"chempi.{hidden}.")]
            await_that(lambda: away.poll() is not None or
                       os.path.exists(f"{other}/{hidden}.sock"), "a start")
            if away.poll() is not None:
                print("skipped: no namespace of process numbers here")
                return
            before = its()
            check(before, groups(cluster))
            cluster.start("a2")
            check(its() == before, before)
        finally:
            away.kill()  # and what it has started
            away.wait()


@case
def what_a_job_forks_without_end_ends_with_it():
    """Faster than any sweep finds it: at one stroke, with whatever else is in
    the group."""
    script = "while :; do sleep 0.001 & done"
    with Cluster(["a1"]) as cluster:
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "2", "sh", "-c", f"echo up; {script}")
        job.await_lines(2)
        found = jobs_in(places)
        others = [into(group, ["sleep", "600"], cluster) for group in found]
        name = cluster.ctl("jobs").splitlines()[1].split()[0]
        cluster.ctl("kill", name)
        job.status = job.finish()
        expect(job, 143)
        for other in others:
            check(other.wait(LIMIT_S) == -signal.SIGKILL, other.returncode)
        # What could not be removed yet is, when something has ended.
        expect(cluster.run("-n", "1", "true"), 0)
        await_that(lambda: not jobs_in(places), places)


@case
def groups_of_a_killed_daemon_go_with_its_keeper():
    """And what is in them."""
    with Cluster(["a1", "a2"]) as cluster:
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "4", "--ppn", "2", "--via", "a2",
                          Programs.rank, "init", "child", "print", "up",
                          "hang").await_lines(4)
        pid = cluster.pid("a1")
        own = [p for p in places if daemon_of(p) == str(pid)]
        check(own and len(own) * 2 == len(places), places)
        inside = set().union(*map(members, jobs_in(own)))
        kill_and_wait(pid, inside)
        job.status = job.finish()
        expect(job, 1, "a1 is lost")
        await_that(lambda: not [p for p in own if os.path.exists(p)], own)
        cluster.start("a1")
        expect(cluster.run("-n", "4", Programs.rank, "init", "everyone",
                           "final"), 0)


@case
def groups_of_a_daemon_without_a_keeper_go_with_the_next():
    """Both are killed."""
    with Cluster(["a1"]) as cluster:
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "2", Programs.rank, "init", "print", "up",
                          "hang").await_lines(2)
        pid = cluster.pid("a1")
        keeper = child_named(pid, "chempi-keeper")
        inside = set().union(*map(members, jobs_in(places)))
        # Any daemon that starts, another test's, too, removes what is empty.
        others = [into(group, ["sleep", "600"], cluster)
                  for group in jobs_in(places)]
        os.kill(pid, signal.SIGSTOP)  # it would start another keeper
        os.kill(keeper, signal.SIGKILL)
        kill_and_wait(pid, inside)
        job.finish()
        left = [p for p in places if os.path.exists(p)]
        for other in others:
            other.kill()
            other.wait()
        check(left and left == places, left, places)
        for name in ("a1.sock", "a1.node"):
            os.unlink(f"{cluster.dir}/{name}")
        await_that(lambda: not os.path.exists(f"/proc/{pid}"), "its reaping")
        cluster.start("a1")
        check(not [p for p in places if os.path.exists(p)], places)


@case
def groups_of_a_stopped_daemon_go_with_it():
    with Cluster(["a1"]) as cluster:
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "2", Programs.rank, "init", "child", "print",
                          "up", "hang").await_lines(2)
        cluster.ctl("stop")
        job.finish()
        await_that(lambda: not [p for p in places if os.path.exists(p)],
                   places)


def controllers():
    """That can be used: of version 1, or lent by version 2."""
    found = set()
    for mount, kind in mounts().items():
        words = set(re.split(r"[ ,\n]", kind))
        if kind.startswith("cgroup2"):
            with open(f"{mount}/cgroup.controllers", encoding="ascii") as f:
                words = set(f.read().split())
        found |= words & {"memory", "pids", "cpu"}
    return found


def limits_of(group):
    """What is written in the files of any version."""
    found = {}
    for key, name, number in (
            ("memory", "memory.max", 0),
            ("memory", "memory.limit_in_bytes", 0),
            ("processes", "pids.max", 0), ("cpus", "cpu.max", 0),
            ("cpus", "cpu.cfs_quota_us", 0)):
        try:
            with open(f"{group}/{name}", encoding="ascii") as file:
                found[key] = file.read().split()[number]
        except OSError:
            pass
    return found


@case
def a_job_has_no_more_than_the_administrator_says():
    with Cluster([]) as cluster:
        path = f"{cluster.dir}/log.limits"
        with open(path, "w", encoding="ascii") as file:
            file.write("# of a job\nmemory 64M\nprocesses 40 # threads, too\n"
                       "cpus 0.5\n")
        cluster.start("a1", "--job-limits", path)
        os.unlink(path)
        if not has_groups(cluster):
            return
        places = groups(cluster)
        job = cluster.job("-n", "2", Programs.rank, "init", "print", "up",
                          "hang").await_lines(2)
        found = {}
        for group in jobs_in(places):
            limits = limits_of(group)
            found.update({k: v for k, v in limits.items()
                          if v not in ("max", "-1") and
                          int(v) < 1 << 60})
            check(not limits or len(members(group)) >= 3, group)
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        wanted = {"memory": str(64 * MIB), "processes": "40", "cpus": "50000"}
        known = {"memory": "memory", "processes": "pids", "cpus": "cpu"}
        for key in wanted:
            if key in found:
                check(found[key] == wanted[key], found)
            else:
                print(f"skipped: no controller for {key} here")
                check(f"limited in {known[key]}" in cluster.logged() or
                      "not limited in" in cluster.logged(), cluster.logged())
        if "memory" in found:
            job = cluster.run("-n", "1", sys.executable, "-c",
                              f"print(len(bytes(range(256)) * {MIB}))")
            check(job.status == 137 and not job.output, job.status,
                  job.output, job.errors)
            expect(job, 137, "had reached their limit of 64 MiB")
        if "processes" in found:
            job = cluster.run(
                "-n", "1", "sh", "-c",
                "for i in $(seq 100); do sleep 100 & done; echo all")
            check(job.status != 0 and b"all" not in job.output, job.output,
                  job.errors)
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone",
                           "final"), 0)


@case
def a_wrong_file_of_limits_is_refused():
    with Cluster([]) as cluster:
        path = f"{cluster.dir}/log.limits"
        for text, word in (("memory 1X\n", "limits:1: expected memory"),
                           ("\nprocesses 0\n", "limits:2:"),
                           ("cpus nan\n", "limits:1:"),
                           ("cpus 1 2\n", "limits:1:"),
                           ("disks 3\n", "limits:1:")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            done = subprocess.run(
                [Programs.chempid, "--name", "a1", "--dir", cluster.dir,
                 "--job-limits", path, "--background"], env=cluster.env,
                capture_output=True, text=True, check=False, timeout=LIMIT_S)
            check(done.returncode == 1 and word in done.stderr, text, done)
        os.chmod(path, 0o666)
        done = subprocess.run(
            [Programs.chempid, "--name", "a1", "--dir", cluster.dir,
             "--job-limits", path, "--background"], env=cluster.env,
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        check(done.returncode == 1 and "chmod go-w" in done.stderr, done)
        os.unlink(path)


if __name__ == "__main__":
    sys.exit(main(CASES))
