#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs beside each other: on free slots, and on cores of their own.

    balance.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

All runs in a network namespace of its own, as the names that stand for cores
belong to one: so no other job of this host counts.
"""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import socket
import struct
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from jobs import (  # noqa: E402
    LIMIT_S, SKIPPED, Cluster, Programs, await_that, check, cores, expect, main,
    run)
from wire import MARK  # noqa: E402

CASES = []
STARTED, TAKEN, LAUNCH, QUERY = 32, 47, 48, 81
CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def case(fn):
    CASES.append(fn)
    return fn


def stay_who_one_is(uid, gid):
    """In a user namespace of one's own."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"),
                       ("gid_map", f"{gid} {gid} 1")):
        pathlib.Path("/proc/self", name).write_text(text, encoding="ascii")


def raise_loopback():
    """Not by ip(8): who is not root has rights here, and programs that are
    run have none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def be_alone():
    """In a network namespace of one's own; whether that is so."""
    libc = ctypes.CDLL(None)
    uid, gid = os.geteuid(), os.getegid()
    try:
        if libc.unshare(CLONE_NEWNET):
            if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
                return False
            stay_who_one_is(uid, gid)
        raise_loopback()
    except OSError:
        return False
    return True


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


class Between:
    """A way to a daemon of a cluster, for chempirun --dir, on which `late` is
    called with the number of each launch before the daemon sees it, and
    `early` before each question about nodes."""

    def __init__(self, cluster, name, late, early=lambda: None,
                 behind=lambda kind, job: b""):
        self.dir = tempfile.mkdtemp(prefix="chempi-test-")
        self.late = late
        self.early = early
        self.behind = behind  # what is made up behind a frame of the daemon's
        self.target = f"{cluster.dir}/{name}.sock"
        self.launches = 0
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(f"{self.dir}/{name}.sock")
        self.sock.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near = self.sock.accept()[0]
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            for a, b, is_up in ((near, far, True), (far, near, False)):
                threading.Thread(target=self.pass_on, args=(a, b, is_up),
                                 daemon=True).start()

    def pass_on(self, a, b, is_up):
        """Frames of one direction, until it ends."""
        file = a.makefile("rb")
        try:
            while head := file.read(16):
                length, kind = struct.unpack_from("<IH", head)
                if is_up and kind == LAUNCH:
                    self.late(self.launches)
                    self.launches += 1
                if is_up and kind == QUERY:
                    self.early()
                more = b"" if is_up else self.behind(kind, head[8:])
                b.sendall(head + file.read(length) + more)
        except OSError:
            pass  # the other end has left
        finally:
            for sock in (a, b):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        shutil.rmtree(self.dir)


MAPPED = (r"\d+ ranks? of the job w(as|ere) mapped to free slots of node "
          r"%s, and other jobs have taken them meanwhile: %d of 2 are free "
          r"now; the job was ended")


@case
def slots_that_are_taken_meanwhile_are_not_shared():
    with Cluster(["a1", "a2"]) as cluster:
        jobs = []

        def late(n):
            if n == 0:
                jobs.append(hold(cluster, 1, "--nodes", "a1"))

        with Between(cluster, "a1", late) as way:
            done = cluster.run("--dir", way.dir, "--verbose", "-n", "2",
                               "sh", "-c", "echo $CHEMPI_NODE")
        expect(done, 0, MAPPED % ("a1", 1) + "; mapping it again\n")
        check(done.lines() == ["a1", "a2"], done)
        check(way.launches == 2, way.launches)
        end(jobs[0])


@case
def of_a_job_that_is_mapped_again_no_program_has_run():
    """Neither where its first part was taken, nor has its input gone there."""
    with Cluster(["a1", "a2", "a3"]) as cluster:
        jobs = []
        ran = f"{cluster.dir}/log.ran"

        def late(n):
            if n == 0:
                jobs.append(hold(cluster, 2, "--nodes", "a2"))

        with Between(cluster, "a1", late) as way:
            with tempfile.TemporaryFile() as file:
                file.write(b"one\ntwo\n")
                file.seek(0)
                done = cluster.run(
                    "--dir", way.dir, "--no-oversubscribe", "-n", "4", "sh",
                    "-c", f"echo $CHEMPI_RANK $CHEMPI_NODE >> {ran}; cat",
                    stdin=file)
        expect(done, 0, r"\A\Z")
        check(done.output == b"one\ntwo\n", done)
        with open(ran, encoding="utf-8") as file:
            check(sorted(file.read().splitlines()) ==
                  ["0 a1", "1 a1", "2 a3", "3 a3"], "ran elsewhere, too")
        os.unlink(ran)
        end(jobs[0])


@case
def a_job_that_fits_no_more_says_so_or_shares():
    with Cluster(["a1"]) as cluster:
        for fit in (True, False):
            jobs = []

            def late(n):
                if n == 0:
                    jobs.append(hold(cluster, 2))

            with Between(cluster, "a1", late) as way:
                done = cluster.run(
                    "--dir", way.dir, "-n", "1",
                    *(["--no-oversubscribe"] if fit else []), "true")
            expect(done, 1 if fit else 0,
                   "it has 1 rank, and so many slots are free: a1 0 of 2"
                   if fit else r"\A\Z")
            end(jobs[0])
            await_that(lambda: cluster.ctl("jobs").count("\n") == 1, "the end")


@case
def a_job_is_mapped_a_bounded_number_of_times():
    """Then it shares slots, as it does when it finds none free, if it may."""
    with Cluster(["a1"]) as cluster:
        jobs = []

        def late(_):
            jobs.append(hold(cluster, 2))

        def early():
            while jobs:
                end(jobs.pop())
                await_that(lambda: cluster.ctl("jobs").count("\n") == 1,
                           "the end")

        for fit in (True, False):
            with Between(cluster, "a1", late, early) as way:
                done = cluster.run(
                    "--dir", way.dir, "-n", "1",
                    *(["--no-oversubscribe"] if fit else []), "true")
            expect(done, 1 if fit else 0,
                   r"\Achempirun: " + MAPPED % ("a1", 0) + r"\n\Z" if fit
                   else r"\A\Z")
            check(way.launches == 8, way.launches)
            early()


@case
def a_job_that_has_begun_is_not_started_anew():
    """Whatever a daemon says, of one node or of several."""
    with Cluster(["a1", "a2"]) as cluster:
        def behind(kind, job):
            taken = struct.pack("<IHH", 4, TAKEN, MARK) + job + bytes(4)
            return taken if kind == STARTED else b""

        for count in (2, 4):
            with Between(cluster, "a1", lambda _: None, behind=behind) as way:
                done = cluster.run("--dir", way.dir, "-n", str(count), "sh",
                                   "-c", "echo ran")
            expect(done, 0, r"\A\Z")
            check(done.lines() == ["ran"] * count, done.output)
            check(way.launches == 1, way.launches)


@case
def launchers_at_the_same_moment_have_slots_of_their_own():
    with Cluster(["a1", "a2"]) as cluster:
        jobs = [cluster.job("--no-oversubscribe", "-n", "2", Programs.rank,
                            "init", "print", "up", "hang") for _ in range(4)]
        await_that(lambda: sum(j.process.poll() is not None
                               for j in jobs) == 2, "two that do not fit")
        up = [j for j in jobs if j.process.poll() is None]
        for job in up:
            job.await_lines(2)
            end(job)
        for job in jobs:
            if job not in up:
                job.status = job.finish()
                expect(job, 1, "does not fit|other jobs have taken them")


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
def processors_of_another_job_are_left_alone():
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0chempi-core-{min(cores())}")
        job = run("--private", "--show-binding", "-n", "2", "true")
        expect(job, 0, r"\A(rank [01] on node \S+ may use processors [\d,-]+\n)"
                       r"{2}\Z")


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
        sys.exit(SKIPPED)
    sys.exit(main(CASES))
