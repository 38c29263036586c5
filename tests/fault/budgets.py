#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Registrable memory shared out among jobs that come, go and die.

    budgets.py CHEMPIRUN CHEMPID CHEMPICTL RANK MDCONFIG REGISTERS [CASE]...

Cases wait for events: a line of output, a word of chempictl, never for a time.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
from jobs import (  # noqa: E402
    LIMIT_S, ONE_SENTENCE, Cluster, Programs, await_that, check, child_named,
    children, comm, expect, run_cases)

CASES = []
MDCONFIG = REGISTERS = ""
MIB = 1 << 20
TOTAL = 64 * MIB
HUNGRY = ["init", "obey", "memory", str(1 << 40), str(1 << 40)]  # takes all


def case(fn):
    CASES.append(fn)
    return fn


def cluster():
    return Cluster(["n1"], ["--registrable", "64M"])


def budgets(c, *args):
    return json.loads(c.ctl("--json", "budgets", *args))


def ranks(c):
    """What is granted to the ranks of the only node, as chempictl says."""
    node, = budgets(c)
    check(node["total"] == TOTAL, node)
    check(sum(r["granted"] for r in node["ranks"]) == node["granted"], node)
    check(node["granted"] <= TOTAL, "over-committed:", node)
    return node["ranks"]


def await_ranks(c, is_so, what):
    end = time.monotonic() + LIMIT_S
    while True:
        found = ranks(c)
        if is_so(found):
            return found
        check(time.monotonic() < end, "not seen:", what, found)


def is_shared(*parts):
    """Each has its part and uses it, and nothing is due any more."""
    def check_it(found):
        return (sorted(r["granted"] for r in found) == sorted(parts) and
                all(r["used"] == r["granted"] and r["due_ms"] is None
                    for r in found))
    return check_it


@case
def a_job_alone_has_all_and_leaves_it():
    with cluster() as c:
        job = c.job("-n", "2", Programs.rank, *HUNGRY, "hang")
        found = await_ranks(c, is_shared(TOTAL // 2, TOTAL // 2), "halves")
        check([r["rank"] for r in found] == [0, 1], found)
        text = c.ctl("budgets")
        check("64.0M of 64.0M" in text and "32.0M" in text, text)
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        await_ranks(c, lambda found: not found, "nobody")


@case
def two_jobs_share_and_the_second_gets_what_the_first_gives_back():
    with cluster() as c:
        first = c.job("-n", "2", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL // 2, TOTAL // 2), "halves")
        second = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL // 4, TOTAL // 4, TOTAL // 2),
                    "new shares")
        second.await_lines(1)
        second.process.send_signal(signal.SIGTERM)
        second.finish()
        await_ranks(c, is_shared(TOTAL // 2, TOTAL // 2), "halves again")
        first.process.send_signal(signal.SIGTERM)
        first.finish()


@case
def what_a_killed_job_had_comes_back():
    with cluster() as c:
        first = c.job("-n", "2", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL // 2, TOTAL // 2), "halves")
        second = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL // 4, TOTAL // 4, TOTAL // 2),
                    "new shares")
        for pid in first.ranks():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the first one's end ended it
        first.finish()
        await_ranks(c, is_shared(TOTAL), "all for the second")
        os.kill(child_named(c.pid("n1"), "chempi-super"), signal.SIGKILL)
        second.finish()
        await_ranks(c, lambda found: not found, "nobody")


@case
def who_does_not_give_back_is_named_and_keeps_it():
    with cluster() as c:
        first = c.job("-n", "1", Programs.rank, *HUNGRY, "share", str(TOTAL),
                      "print", "deaf", "deaf")
        first.await_lines(1)
        await_ranks(c, is_shared(TOTAL), "all")
        second = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        found = await_ranks(
            c, lambda found: any(r["due_ms"] is not None for r in found),
            "a deadline")
        late = await_ranks(
            c, lambda found: any(r["late"] for r in found), "a late rank")
        check(sorted(r["granted"] for r in late) == [0, TOTAL], late, found)
        check("late" in c.ctl("budgets"), c.ctl("budgets"))
        check(c.logged().count("has not given back") == 1, c.logged())
        first.process.send_signal(signal.SIGTERM)
        first.finish()
        await_ranks(c, is_shared(TOTAL), "all for the second")
        second.process.send_signal(signal.SIGTERM)
        second.finish()


# Programs that speak to their supervisor themselves.
RAW = """import os, struct, sys
fd = int(os.environ["CHEMPI_CONTROL_FD"])
def send(kind, *numbers):
    data = struct.pack("<I" + "Q" * (len(numbers) - 1) if numbers[1:] else "<I",
                       *numbers)
    os.write(fd, struct.pack("<IHHQ", len(data), kind, 0xc4e1, 0) + data)
def take():
    data = b""
    while len(data) < 16 or len(data) < 16 + struct.unpack_from("<I", data)[0]:
        data += os.read(fd, 1 if len(data) < 16 else
                        16 + struct.unpack_from("<I", data)[0] - len(data))
    return struct.unpack_from("<H", data, 4)[0], data[16:]
def ask(held, wanted, serial):
    send(14, serial, held, 0, wanted, 0, 0)
def share():
    kind = 0
    while kind != 20:
        kind, data = take()
    return struct.unpack("<QII", data)
M = 1 << 20
"""
DEAF = RAW + """
ask(0, 48 * M, 0)
while share()[0] < 48 * M:
    pass
print("has", flush=True)
sys.stdin.readline()
count = 0
ask(0, 4 * M, 0)
while share()[0] != 4 * M:  # the answer comes behind all that has waited
    count += 1
print("shares", count, flush=True)
"""
FICKLE = RAW + """
ask(0, 40 * M, 0)
serial = share()[2]
for i in range(int(sys.argv[1])):
    ask(16 * M, 8 * M, serial)
    serial = share()[2]
    ask(8 * M, 40 * M, serial)
    serial = share()[2]
"""


@case
def who_changes_its_mind_fills_no_queue_of_another_rank():
    """One that computes does not read what it is told. The kernel keeps that
    for it; what is more is left out, but for the last."""
    with open("/proc/sys/net/core/wmem_default", encoding="ascii") as file:
        room = int(file.read()) // 512  # a frame is more there
    with cluster() as c:
        deaf = c.job("-n", "1", sys.executable, "-c", DEAF,
                     stdin=subprocess.PIPE)
        deaf.await_lines(1)
        expect(c.run("-n", "1", sys.executable, "-c", FICKLE, str(room)), 0)
        deaf.process.stdin.write(b"\n")
        deaf.process.stdin.flush()
        check(deaf.await_lines(2).finish() == 0, deaf.errors)
        count = int(deaf.output.split()[-1])
        check(0 < count < room * 3 // 2, count, room)


@case
def who_wants_nothing_has_nothing():
    with cluster() as c:
        first = c.job("-n", "1", Programs.rank, "init", "obey", "memory", "0",
                      "0", "hang")
        await_ranks(c, is_shared(0), "nothing")
        second = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(0, TOTAL), "all for the second")
        for job in (first, second):
            job.process.send_signal(signal.SIGTERM)
            job.finish()


@case
def a_daemon_that_starts_again_begins_anew():
    with cluster() as c:
        job = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL), "all")
        c.kill("n1")
        job.finish()  # a job does not outlive the daemon it was ordered from
        c.start("n1", "--registrable", "64M")
        check(not ranks(c), ranks(c))
        job = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL), "all")
        job.process.send_signal(signal.SIGTERM)
        job.finish()


@case
def malformed_reports_end_their_job_only():
    with cluster() as c:
        first = c.job("-n", "1", Programs.rank, *HUNGRY, "hang")
        await_ranks(c, is_shared(TOTAL), "all")
        bad = c.run("-n", "1", Programs.rank, "init", "obey", "misreport",
                    "hang")
        check(bad.status != 0, bad.output)
        expect(bad, bad.status, "malformed message")
        await_ranks(c, is_shared(TOTAL), "all")
        first.process.send_signal(signal.SIGTERM)
        first.finish()


@case
def a_private_job_has_no_shares():
    with cluster() as c:
        expect(c.run("--private", "-n", "2", Programs.rank, "init", "memory",
                     "4096", "4096", "final"), 0)


@case
def options_that_make_no_sense_are_refused():
    with cluster() as c:
        for text in ("0", "x", "-1", "1Q", "99999999999999G", ""):
            done = c.start("n2", "--registrable", text, check_it=False)
            check(done.returncode == 2, text, done)
        check("budgets" in c.ctl("--json", "kill", "x", status=2))


# ---- MPI programs over the scivia device --------------------------------------

NETWORK = """
nodes: [ 'n[1-2]' ]
networks:
  net:
    type: {type}
    attach: all
"""


def descendants(pid):
    """A process and all below it that are there now."""
    found = [pid]
    try:
        for child in children(pid):
            found += descendants(child)
    except OSError:
        pass  # it has just ended
    return found


def status_of(pid):
    """Fields of /proc/PID/status; {} when the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return dict(line.split(":", 1) for line in file)
    except OSError:
        return {}


def is_stopped(pid):
    return status_of(pid).get("State", "X").split()[0] in "TtXZ"


def locks_in_earnest():
    """Sanitizers turn mlock() into nothing."""
    with open(REGISTERS, "rb") as program:
        code = program.read()
    return b"__asan_init" not in code and b"__tsan_init" not in code


def locked_together(pids):
    """What these processes have locked at one moment, in bytes: each is
    stopped before any is looked at, and none stays so."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            await_that(lambda: is_stopped(pid), "a stopped process", pid)
        return sum(int(status_of(pid).get("VmLck", "0 kB").split()[0]) * 1024
                   for pid in pids)
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class SciCluster(Cluster):
    """Two virtual nodes with adapters; each may register 16 MiB."""

    def __init__(self, kind="sci", registrable="16M"):
        self.total = int(registrable[:-1]) << {"K": 10, "M": 20}[registrable[-1]]
        self.most = 0  # that was ever seen locked on a node
        self.tables = tempfile.mkdtemp(prefix="chempi-test-")
        path = f"{self.tables}/network.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(NETWORK.format(type=kind))
        subprocess.run([MDCONFIG, "compile", "-o", self.tables, path],
                       check=True, capture_output=True, timeout=LIMIT_S)
        super().__init__(["n1", "n2"], ["--registrable", registrable,
                                        "--tables", self.tables])

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            shutil.rmtree(self.tables)

    def pair(self, name, count, size):
        return ("--nodes", "n1,n2", "--ppn", "1", "-n", "2", REGISTERS,
                f"{self.tables}/{name}", str(count), str(size))

    def start_pair(self, name, count, size):
        """A rank on each node; both exchange `count` buffers of `size` bytes
        until end_pair()."""
        return self.job(*self.pair(name, count, size)).await_lines(1)

    def check_locked(self):
        """Never more on a node than there is, whoever holds it and whatever
        the daemons believe. Sanitizers stop processes, too, at their ends, and
        wait for ever where one is continued meanwhile."""
        if not locks_in_earnest():
            return
        for name in "n1", "n2":
            pids = [pid for pid in descendants(self.pid(name))
                    if comm(pid).startswith("fault-registers")]
            try:
                locked = locked_together(pids)
            except ProcessLookupError:
                continue  # one has ended meanwhile
            check(locked <= self.total, "over-committed on", name, locked)
            self.most = max(self.most, locked)

    def end_pair(self, job, name):
        with open(f"{self.tables}/{name}", "wb"):
            pass
        job.status = job.finish()
        expect(job, 0)
        check(job.output.count(b"good") == 2, job.output, job.errors)
        return job.output.decode()

    def grants(self):
        """Per node, what each rank has been granted, ascending."""
        found = {}
        self.check_locked()
        for node in budgets(self):
            check(node["granted"] <= self.total, "over-committed:", node)
            for r in node["ranks"]:
                check(r["used"] <= r["granted"], "more used than granted:", r)
            found[node["node"]] = sorted(r["granted"] for r in node["ranks"])
        return found

    def await_grants(self, *parts):
        end = time.monotonic() + LIMIT_S
        wanted = {"n1": sorted(parts), "n2": sorted(parts)}
        while self.grants() != wanted:
            check(time.monotonic() < end, "not seen:", wanted, self.grants())


@case
def two_mpi_jobs_share_and_a_killed_one_leaves_all_to_the_other():
    with SciCluster() as c:
        first = c.start_pair("first", 4, 4 * MIB)
        c.await_grants(16 * MIB)
        second = c.start_pair("second", 4, 4 * MIB)
        c.await_grants(8 * MIB, 8 * MIB)
        for pid in first.marked("fault-registers")[:1]:
            os.kill(pid, signal.SIGKILL)
        while first.marked("fault-registers"):
            c.grants()
        first.finish()
        c.await_grants(16 * MIB)
        third = c.start_pair("third", 4, 4 * MIB)
        c.await_grants(8 * MIB, 8 * MIB)
        c.end_pair(third, "third")
        c.await_grants(16 * MIB)
        text = c.end_pair(second, "second")
        check("budget 16777216 " in text, text)
        c.await_grants()
        check(c.most > 12 * MIB or not locks_in_earnest(),
              "nothing was seen:", c.most)


@case
def an_mpi_job_alone_is_served_from_its_first_message_on():
    with SciCluster() as c:
        job = c.start_pair("alone", 1, MIB)
        text = c.end_pair(job, "alone")
        check(text.count("degraded 0 windowed 0") == 2, text)


@case
def mpi_jobs_that_find_no_memory_go_on_without():
    with SciCluster() as c:
        jobs = []
        for i in range(6):
            jobs.append(c.start_pair(f"job{i}", 2, 3 * MIB))
            c.grants()
        for i, job in enumerate(jobs):
            c.grants()
            c.end_pair(job, f"job{i}")


@case
def jobs_on_via_only_cards_go_on_when_their_memory_is_taken_back():
    with SciCluster("via", "1M") as c:
        first = c.start_pair("first", 2, 3 * MIB)
        second = c.start_pair("second", 2, 3 * MIB)
        third = c.start_pair("third", 2, 3 * MIB)
        for job, name in (first, "first"), (second, "second"), (third, "third"):
            text = c.end_pair(job, name)
            check(text.count("degraded 0 ") < 2, text)


@case
def a_job_on_via_only_cards_lives_on_the_least_that_it_needs():
    with SciCluster("via", "136K") as c:
        job = c.start_pair("poor", 2, 3 * MIB)
        c.grants()
        text = c.end_pair(job, "poor")
        check("degraded 0 " not in text, text)


@case
def a_job_that_needs_more_than_there_is_fails_when_it_starts():
    with SciCluster("via", "272K") as c:
        jobs = []
        for name in "first", "second":
            jobs.append((c.start_pair(name, 2, MIB), name))
            c.grants()
        third = c.job(*c.pair("third", 1, MIB))
        third.status = third.finish()
        expect(third, 1, ONE_SENTENCE, "node n[12] has too little registrable "
               "memory.*139264 bytes.*0 of 278528.*chempid --registrable there")
        for job, name in jobs:
            c.grants()
            c.end_pair(job, name)


@case
def a_process_that_may_not_lock_what_it_needs_fails_when_it_starts():
    with SciCluster("via", "16M") as c:
        c.env["CHEMPI_SCIVIA_REGISTERED_MAX"] = "132K"
        job = c.job(*c.pair("poor", 1, MIB))
        job.status = job.finish()
        expect(job, job.status, "CHEMPI_SCIVIA_REGISTERED_MAX", "139264 bytes")
        check(job.status != 0, job.status)


def main():
    global MDCONFIG, REGISTERS
    (Programs.chempirun, Programs.chempid, Programs.chempictl, Programs.rank,
     MDCONFIG, REGISTERS, *wanted) = sys.argv[1:]
    os.environ.pop("CHEMPI_DIR", None)
    return run_cases(CASES, wanted)


if __name__ == "__main__":
    sys.exit(main())
