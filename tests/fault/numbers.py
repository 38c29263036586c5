#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What daemons cost: at rest, after many jobs, and while jobs write much.

    numbers.py CHEMPIRUN CHEMPID CHEMPICTL RANK [--jobs N] [--together N]
               [--output MIB] [--daemons N] [CASE]...

The numbers are small for each build; 'make soak' takes large ones.
"""
import argparse
import contextlib
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from hostile import (  # noqa: E402
    QUERY, STATUS, client, u32)
from jobs import (  # noqa: E402
    Cluster, Programs, await_that, check, expect, run_cases)
from wire import frame, receive_frame, strings  # noqa: E402

CASES = []
OPTIONS = None
REST_PSS = 4 << 20    # of a daemon that has nothing to do
GROWTH = 512 << 10    # of one that has had jobs
ROUNDS = 3            # of which one must not grow it
OUTPUT_RSS = 32 << 20 # of one whose ranks write
REST_MS = 50000       # libev looks at the clock once a minute
QUESTIONS = 300
TRIES = 5             # at what they cost: the same may cost a machine five times
MANY_NODES = 20000


def case(fn):
    CASES.append(fn)
    return fn


def is_sanitized(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return re.search("lib[at]san", file.read())


def field(pid, file, name):
    """Bytes, from lines of kB."""
    with open(f"/proc/{pid}/{file}", encoding="ascii") as lines:
        return int(re.search(rf"^{name}:\s+(\d+) kB", lines.read(),
                             re.M)[1]) << 10


def descriptors(pid):
    """Of those that it has now: some are closed between the looks."""
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return sorted(names)


def waits_ms(pid):
    """For how long the process waits for events; None: it does not."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        words = file.read().split()
    if len(words) < 5 or words[0] not in ("232", "281", "22"):
        return None  # epoll_wait, epoll_pwait on two architectures
    limit = int(words[4], 16) & 0xffffffff
    return REST_MS if limit == 0xffffffff else limit


@case
def a_daemon_at_rest_costs_next_to_nothing():
    with Cluster(["a1"]) as cluster:
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone",
                           "final"), 0)
        pid = cluster.pid("a1")
        if is_sanitized(pid):
            print("skipped: sanitizers have memory and threads of their own")
            return
        pss = field(pid, "smaps_rollup", "Pss")
        check(pss <= REST_PSS, pss)
        try:
            waits_ms(pid)
        except OSError:
            print("skipped: what a process waits for cannot be seen here")
            return
        # Clients that are gone are looked after for a moment more.
        await_that(lambda: (waits_ms(pid) or 0) >= REST_MS, waits_ms(pid))


@case
def nothing_grows_with_jobs():
    """One after the other, and many at a time."""
    with Cluster(["a1", "a2"]) as cluster:
        pids = [cluster.pid(name) for name in ("a1", "a2")]
        words = ("-n", "4", "--ppn", "2", Programs.rank, "init", "everyone",
                 "final")

        def many():
            jobs = [cluster.job(*words) for _ in range(OPTIONS.together)]
            for job in jobs:
                job.status = job.finish()
                expect(job, 0, r"\A\Z")

        def open_now():
            return [len(descriptors(p)) for p in pids]

        def grown(before, now):
            return max(b - a for a, b in zip(before, now))

        def at_rest(fds=None):
            """Clients and supervisors are looked after a moment longer than
            the job is listed."""
            await_that(lambda: cluster.ctl("jobs").count("\n") == 1, "rest")
            await_that(lambda: not fds or grown(fds, open_now()) <= 0, fds,
                       open_now)
            return ([field(p, "status", "VmRSS") for p in pids], open_now(),
                    os.listdir(cluster.dir))

        def has_grown():
            """By as many jobs again?"""
            memory, fds, files = at_rest()
            for _ in range(OPTIONS.jobs):
                expect(cluster.run(*words), 0, r"\A\Z")
            many()
            more, fds_then, files_then = at_rest(fds)
            print(f"        {OPTIONS.jobs} jobs, {OPTIONS.together} at a time: "
                  f"RSS {memory} -> {more}, descriptors "
                  f"{fds} -> {fds_then}")
            check(grown(fds, fds_then) <= 0, fds, fds_then)
            check(sorted(files) == sorted(files_then), files_then)
            return grown(memory, more) >= GROWTH

        for _ in range(10):
            expect(cluster.run(*words), 0, r"\A\Z")
        many()
        # How many jobs overlap, and so how much is kept for the next ones, is
        # not the same each time; what leaks grows each time.
        sanitized = is_sanitized(pids[0])
        grows = all(has_grown() for _ in range(1 if sanitized else ROUNDS))
        check(sanitized or not grows, "memory grows each time")


def ran_ns(pid):
    """For how long it has had a processor."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def cost_of_questions(nodes):
    """For the daemon's own node, where it knows so many."""
    with Cluster([]) as cluster:
        path = f"{cluster.dir}/log.cluster"
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"n{i} 127.0.0.1:1\n" for i in range(nodes))
        cluster.start("a1", "--cluster", path)
        pid = cluster.pid("a1")
        os.unlink(path)
        with client(cluster, "a1") as sock:
            before = ran_ns(pid)
            for number in range(1, QUESTIONS + 1):
                sock.sendall(frame(QUERY, u32(0) + strings([b"a1"]) +
                                   u32(0, 0), number))
                check(receive_frame(sock)[0] == STATUS)
            return ran_ns(pid) - before


@case
def a_question_costs_the_same_whoever_is_known():
    try:
        ran_ns(os.getpid())
    except OSError:
        print("skipped: times of processes cannot be seen here")
        return
    few, many = (min(cost_of_questions(nodes) for _ in range(TRIES))
                 for nodes in (1, MANY_NODES))
    print(f"        {QUESTIONS} questions: {few / 1e6:.1f} ms of processor "
          f"time, with {MANY_NODES} nodes {many / 1e6:.1f} ms")
    check(many < 4 * few, few, many)


@case
def what_ranks_write_arrives_whole():
    """Line by line, and the daemons hold little of it."""
    ranks = 16
    lines = OPTIONS.output * (1 << 20) // 64 // ranks
    with Cluster(["a1", "a2"]) as cluster:
        pids = [cluster.pid(name) for name in ("a1", "a2")]
        job = cluster.job("-n", str(ranks), "--ppn", "8", "sh", "-c",
                          "yes \"$(printf '%02d %060d' $CHEMPI_RANK 7)\" | "
                          f"head -n {lines}")
        wanted = {b"%02d %060d" % (i, 7): 0 for i in range(ranks)}
        rest = b""
        while True:
            piece = os.read(job.process.stdout.fileno(), 1 << 20)
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                wanted[line] = wanted.get(line, 0) + 1
        job.status = job.finish()
        expect(job, 0, r"\A\Z")
        check(not rest and len(wanted) == ranks and
              set(wanted.values()) == {lines}, len(wanted), lines,
              list(wanted.items())[:ranks + 2])
        most = [field(p, "status", "VmHWM") for p in pids]
        print(f"        {OPTIONS.output} MiB: RSS at most {most}")
        if not is_sanitized(pids[0]):
            check(all(m < OUTPUT_RSS for m in most), most)


@case
def many_daemons_launch_a_job():
    """A rank on each; how long that takes is told."""
    names = [f"n{i}" for i in range(OPTIONS.daemons)]
    with Cluster([]) as cluster:
        for name in names:
            cluster.start(name, "--detect", "60", slots="1")
        for _ in range(3):
            start = time.monotonic()
            job = cluster.run("-n", str(len(names)), "--bind", "none", "true")
            seconds = time.monotonic() - start
            expect(job, 0, r"\A\Z")
            print(f"        {len(names)} daemons: {seconds:.2f} s")


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    for name in ("chempirun", "chempid", "chempictl", "rank"):
        parser.add_argument(name)
    for name, value in (("jobs", 30), ("together", 10), ("output", 16),
                        ("daemons", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("cases", nargs="*")
    OPTIONS = parser.parse_intermixed_args()
    os.environ.pop("CHEMPI_DIR", None)
    Programs.chempirun, Programs.chempid = OPTIONS.chempirun, OPTIONS.chempid
    Programs.chempictl, Programs.rank = OPTIONS.chempictl, OPTIONS.rank
    return run_cases(CASES, OPTIONS.cases)


if __name__ == "__main__":
    sys.exit(main())
