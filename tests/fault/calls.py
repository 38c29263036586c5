#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The nth failure of every system call, and a death at every one of them.

    calls.py private|start|cluster|helper CHEMPIRUN CHEMPID CHEMPICTL RANK
             [CALL]...

Launcher and daemon are linked with rig.c. For each call, one run counts how
often it is made; then there is a run for each number up to that, in which
the call of that number fails, in whatever process. Whatever fails: the run
ends, with one sentence and a bad status if it could not do its work, and
nothing stays behind.
"""
import errno
import mmap
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, MARKS, SKIPPED, Cluster, Job, Programs, await_that, check,
    child_named, children, is_alive, status_of)

CALLS = """malloc calloc realloc mmap64 memfd_create fallocate64 ftruncate64
    read write socket socketpair bind listen accept4 connect sendmsg recvmsg
    send recv eventfd fork chempi_birth_clone close_range pipe2 signalfd dup2
    getsockopt getsockname chmod rename link mkdir lstat64 stat64 fopen64
    opendir get_current_dir_name chdir execvp ev_loop_new open64 fcntl64 prctl""".split()
IDENTITY = "getpwuid initgroups setgid setuid setrlimit64".split()
# Of those, what helper and supervisors of a daemon of all users make.
HELPED = IDENTITY + """malloc calloc realloc read write socketpair sendmsg
    recvmsg send recv fork chempi_birth_clone pipe2 signalfd dup2 getsockopt
    fopen64 opendir open64 fcntl64 prctl memfd_create mmap64 chdir execvp ev_loop_new""".split()
INTERRUPTED = "read write sendmsg recvmsg waitpid poll accept4".split()

LOOKS = 100
SETTLE_S = 30  # reached only when something stays open

FORMAT = "32siiii16s"
RANK = ""


class Rig:
    """The file that rig.c reads; see its struct order."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="chempi-rig-")
        self.file.write(bytes(4096))
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), 4096)
        self.env = dict(os.environ, CHEMPI_TEST_RIG=self.file.name)

    def order(self, call, nth, action=0):
        struct.pack_into(FORMAT, self.page, 0, call.encode(), nth, action, 0,
                         0, b"")

    def stop(self):
        """No faults from now on; the result stays."""
        struct.pack_into("32s", self.page, 0, b"none")

    def result(self):
        """Calls seen, where it happened ("" if it did not)."""
        _, _, _, seen, pid, comm = struct.unpack_from(FORMAT, self.page)
        return seen, comm.rstrip(b"\0").decode() if pid else ""

    def pid(self):
        """Where it happened, or 0."""
        return struct.unpack_from(FORMAT, self.page)[4]


def has_one_sentence(text, program):
    return re.fullmatch(program + r": [^\n]+\n", text)


def has_no_bytes(text):
    return text == ""


class Sweep:
    """Runs with one fault each; complaints are printed."""

    def __init__(self, rig, run, after=lambda: None):
        self.rig = rig
        self.run = run      # returns a complaint, or None
        self.after = after  # the same, after all runs of a call
        self.complaints = 0
        self.count = 0

    def at(self, call, nth, action=0):
        self.rig.order(call, nth, action)
        try:
            words = self.run(action)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            words = str(error)
        seen, where = self.rig.result()
        self.count += 1
        if words:
            self.complaints += 1
            print(f"FAILED  {call} {nth}/{seen} {action} in "
                  f"{where or 'nobody'}: {words}", flush=True)
        return seen

    def over(self, call, action=0, step=0):
        """Not more than some 25 to 50 runs, unless there is a step."""
        seen = self.at(call, 0)
        step = step or max(1, seen // 25)
        for nth in range(1, seen + 1, step):
            self.at(call, nth, action)
        words = self.after()
        if words:
            self.complaints += 1
            print(f"FAILED  after {call} {action}: {words}", flush=True)


def sweep_interrupts(sweep, calls):
    for call in INTERRUPTED:
        if not calls or call in calls:
            sweep.over(call, errno.EINTR)


# ---- a job without daemons --------------------------------------------------


def run_private(rig, command):
    def run_one(action):
        job = Job("--private", *command, env=rig.env)
        status = job.finish()
        _, where = rig.result()
        if not where or action == errno.EINTR:
            good = status == 0 and job.errors == ""
        elif status == -signal.SIGKILL:
            good = action < 0 and job.errors == ""
        elif status == 0:
            good = job.errors == ""  # it did without
        else:
            good = status in (1, 2, 126, 127, 137) and has_one_sentence(
                job.errors, "chempirun")
        return None if good else f"status {status}: {job.errors!r}"
    return run_one


def sweep_private(rig, calls):
    sweeps = []
    if not calls or "debugged" in calls:
        look_at_a_debugged_job(rig)
    if not calls or "world" in calls:
        look_at_worlds_that_end_at_once(rig)
    for layout in (["-n", "2"], ["--virtual", "2", "-n", "3"]):
        sweep = Sweep(rig, run_private(rig, [
            *layout, RANK, "init", "region", "everyone", "final"]))
        for call in calls or CALLS:
            sweep.over(call)
        sweep_interrupts(sweep, calls)
        if not calls:
            sweep.over("any", -signal.SIGKILL)
        sweeps.append(sweep)
    sweeps.append(sweep_file_of_programs(rig, calls))
    return sweeps


def look_at_a_debugged_job(rig):
    """A child that does not become its program keeps its supervisor from
    nothing."""
    rig.order("execvp", 1, -signal.SIGSTOP)
    job = Job("--private", "-n", "2", RANK, "init", "hang",
              env=dict(rig.env, CHEMPI_TEST_DEBUGGED="1"))
    await_that(lambda: rig.result()[1], "a child that stands still")
    await_that(job.ranks, "the other one")
    for pid in job.ranks():
        os.kill(pid, signal.SIGKILL)
    status = job.finish()
    rig.stop()
    check(status == 137 and re.fullmatch(
        r"chempirun: rank \d on node [^\n]* was killed by signal 9 [^\n]*\n",
        job.errors), status, job.errors)


def is_of_world(pid):
    """Has a world's launcher started it?"""
    parent = status_of(pid, "PPid")[0][0]
    with open(f"/proc/{parent}/cmdline", "rb") as file:
        return file.read() == b"chempirun\0--world\0"


def look_at_worlds_that_end_at_once(rig):
    """A program that has ended had been started: whoever has started it stands
    where it looks for ends, until the program has."""
    nth = seen = hits = 0
    while nth <= seen:
        nth += 1
        rig.order("waitpid", nth, -signal.SIGSTOP)
        job = Job("--private", "-n", "1", RANK, "spawn", "1|--|sh|-c|exit 7",
                  "over", env=rig.env)
        await_that(lambda: rig.pid() or job.process.poll() is not None,
                   "somebody who looks for ends")
        pid = rig.pid()
        if pid:
            await_that(lambda p=pid: status_of(p, "State")[0][0] == "T",
                       "one who stands")
            if is_of_world(pid):
                hits += 1
                await_that(lambda p=pid: not any(map(is_alive, children(p))),
                           "the program's end")
            os.kill(pid, signal.SIGCONT)
        status = job.finish()
        check(status == 7 and b"granted 1" in job.output, nth, status,
              job.output, job.errors)
        seen = rig.result()[0]
    rig.stop()
    check(hits > 0, "no supervisor of a world stood")


def sweep_file_of_programs(rig, calls):
    """The calls that reading one makes."""
    with tempfile.NamedTemporaryFile("w", prefix="chempi-programs-") as file:
        file.write(f"{shlex.quote(RANK)} init final\n")
        file.flush()
        sweep = Sweep(rig, run_private(rig, ["--configfile", file.name]))
        for call in calls or ["calloc", "fopen64"]:
            sweep.over(call)
    return sweep


# ---- a daemon that starts ---------------------------------------------------


def run_start(rig, key):
    def run_one(action):
        with tempfile.TemporaryDirectory(prefix="chempi-test-") as own:
            env = dict(rig.env)
            env[jobrun.MARK] = own
            with open(f"{own}/log", "wb") as log:  # not a pipe: it is kept
                done = subprocess.run(
                    [Programs.chempid, "--name", "a1", "--dir", f"{own}/d",
                     "--listen", "127.0.0.1", "--key", key, "--background"],
                    env=env, stdin=subprocess.DEVNULL, stderr=log,
                    check=False, timeout=LIMIT_S)
            _, where = rig.result()
            rig.stop()  # the rest goes well
            if action == 0 and where == "chempi-keeper":
                # Told that the daemon has gone, it has removed the files of
                # one that runs: nothing can be asked of that.
                jobrun.end_marked(own, 0)
                return None
            serves = os.path.exists(f"{own}/d/a1.sock")
            if done.returncode == 0 and serves:
                subprocess.run([Programs.chempictl, "--dir", f"{own}/d",
                                "stop"], check=True, timeout=LIMIT_S)
            left = jobrun.end_marked(own, LIMIT_S)
            files = os.listdir(f"{own}/d") if os.path.isdir(f"{own}/d") else []
            with open(f"{own}/log", encoding="utf-8") as log:
                told = log.read()
            check(not left and not files, "left:", left, files, done, told)
            if action < 0:
                return None
            if done.returncode == 0:
                good = serves and told == ""
            else:
                good = where and done.returncode in (1, 2) and re.fullmatch(
                    r"([-0-9: ]+)?chempid[^\n]*: [^\n]+\n", told)
            return None if good else f"{done.returncode} {told!r}"
    return run_one


def sweep_start(rig, calls):
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as own:
        key = f"{own}/key"
        subprocess.run([Programs.chempictl, "key", key], check=True)
        sweep = Sweep(rig, run_start(rig, key))
        for call in calls or CALLS:
            sweep.over(call)
        sweep_interrupts(sweep, calls)
        if not calls:
            sweep.over("any", -signal.SIGKILL, 1)
        return [sweep]


# ---- daemons that have a job ------------------------------------------------


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def settled_descriptors(cluster, pids, before=None):
    """When the daemons have closed what jobs and questions had opened: the
    fewest of many looks, or what they were before."""
    end = time.monotonic() + (SETTLE_S if before else 0)
    looks = []
    while len(looks) < LOOKS or time.monotonic() < end:
        cluster.ctl("status")
        looks.append([descriptors(pid) for pid in pids])
        if looks[-1] == before:
            break
    return min(looks)


def run_cluster(rig, cluster, pids):
    """The faults are in the daemons and their supervisors."""
    words = [RANK, "init", "region", "everyone", "final"]

    def good_job():
        job = cluster.job("-n", "4", *words)
        return job.finish() == 0 and job.errors == "" or job.errors

    def run_one(action):
        job = cluster.job("-n", "4", *words)
        status = job.finish()
        _, where = rig.result()
        rig.stop()
        told = job.errors
        if not where or action == errno.EINTR:
            good = status == 0 and told == ""
        else:
            good = status == 0 or status in (1, 126, 127) and \
                has_one_sentence(told, "chempirun")
        return None if good else f"status {status}: {told!r}"

    def look_after():
        """The daemons are as good as before."""
        again = good_job()
        if again is not True:
            return f"the next job: {again}"
        now = settled_descriptors(cluster, pids, before)
        return None if now == before else f"descriptors: {before} {now}"

    check(good_job() is True, "no job runs")
    before = settled_descriptors(cluster, pids)
    return run_one, look_after


def sweep_cluster(rig, calls):
    os.environ["CHEMPI_TEST_RIG"] = rig.file.name
    with Cluster(["a1", "a2"]) as cluster:
        pids = [cluster.pid(name) for name in ("a1", "a2")]
        plain = dict(cluster.env)
        del plain["CHEMPI_TEST_RIG"]
        cluster.env = plain  # the launcher makes no faults
        sweep = Sweep(rig, *run_cluster(rig, cluster, pids))
        for call in calls or CALLS:
            sweep.over(call)
        sweep_interrupts(sweep, calls)
        rig.stop()
        check(all(len(children(pid)) == 1 for pid in pids), "keepers")
        return [sweep]


# ---- a daemon with root's helper ---------------------------------------------


NOBODY = 65534


def run_helped(rig, cluster, pids):
    """The faults are in the daemon, which is not root, in its helper, and in
    what the helper starts."""
    def nobodys_job():
        program = os.open(Programs.chempirun, os.O_RDONLY)
        try:
            return cluster.job("--wdir", "/", "-n", "2", "sh", "-c", "echo up",
                               executable=f"/proc/self/fd/{program}",
                               pass_fds=[program], user=NOBODY, group=NOBODY,
                               extra_groups=[], cwd="/")
        finally:
            os.close(program)

    def run_one(action):
        job = nobodys_job()
        status = job.finish()
        _, where = rig.result()
        rig.stop()
        if not where or action == errno.EINTR or status == 0:
            good = status == 0 and job.errors == "" and \
                job.output == b"up\nup\n"
        else:
            # Of a node that is left out is said so before.
            words = re.sub(r"\Achempirun: leaving out node [^\n]*\n", "",
                           job.errors)
            good = status in (1, 3, 126, 127) and \
                has_one_sentence(words, "chempirun")
        return None if good else \
            f"status {status}: {job.errors!r} {job.output!r}"

    def look_after():
        """The same processes, with no descriptor more."""
        words = run_one(0)
        if words:
            return f"the next job: {words}"
        alive = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        now = settled_descriptors(cluster, pids, before)
        return None if alive == pids and now == before else \
            f"processes {alive} of {pids}, descriptors {before} {now}"

    rig.stop()
    check(not run_one(0), "no job runs")
    before = settled_descriptors(cluster, pids)
    return run_one, look_after


def sweep_helper(rig, calls):
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(SKIPPED)
    os.environ["CHEMPI_TEST_RIG"] = rig.file.name
    with Cluster(["a1"], ["--serve", "users"], mode=0o755) as cluster:
        daemon = cluster.pid("a1")
        helper = child_named(daemon, "chempi-helper")
        plain = dict(cluster.env)
        del plain["CHEMPI_TEST_RIG"]
        cluster.env = plain  # the launcher makes no faults
        sweep = Sweep(rig, *run_helped(rig, cluster, [daemon, helper]))
        for call in calls or HELPED:
            sweep.over(call)
        sweep_interrupts(sweep, calls)
        rig.stop()
        return [sweep]


def main():
    global RANK
    (group, Programs.chempirun, Programs.chempid, Programs.chempictl, RANK,
     *calls) = sys.argv[1:]
    os.environ.pop("CHEMPI_DIR", None)
    sweeps = {"private": sweep_private, "start": sweep_start,
              "cluster": sweep_cluster, "helper": sweep_helper}[group](Rig(), calls)
    for mark in MARKS:
        jobrun.end_marked(mark, 0)
    complaints = sum(sweep.complaints for sweep in sweeps)
    print(sum(sweep.count for sweep in sweeps), "runs,", complaints, "failed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
