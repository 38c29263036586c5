#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `chempirun --trace-routes` and `--stats` tell, also of jobs that fail.

    traces.py BUILD [CASE]...
"""
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import gateways  # noqa: E402
from gateways import (  # noqa: E402
    TWO, Files, await_error, daemons, ends_well, lines, node_of, parent,
    program, relayed, stop_file, virtual)
from jobs import (  # noqa: E402
    LIMIT_S, Job, await_that, before_limit, check, expect, run, run_cases)
from routelines import of_pair, routes  # noqa: E402

CASES = []
ROUNDS = 50  # of endings
HOSE_BYTES, HOSE_COUNT = 60000, 200
HOSE_PARTS = 59  # of such a message, at most: chunks have 1 KiB at least


def case(fn):
    CASES.append(fn)
    return fn


def traffic(text, start, end, device):
    """(messages, bytes) of --stats=long by a device."""
    found = re.findall(rf"^{start} +{end} +\S+ +{device} +\S+ +(\d+) +(\d+)",
                       text, re.M)
    return [sum(int(line[i]) for line in found) for i in range(2)]


def mute_gateways(job):
    """Gateways that are said to have told nothing. One that lives has five
    seconds to tell, which a busy machine may take from it."""
    return set(re.findall(r"^incomplete: the gateway on node (\S+) gave no "
                          r"figures$", job.errors, re.M))


def mute_ranks_and_nodes(job):
    return [line for line in job.errors.splitlines()
            if line.startswith("incomplete") and "the gateway on" not in line]


def check_hops(route, mute):
    """Where they begin and end, and that nothing is lost on the way. Counts of
    mute gateways are not known."""
    ends = [h.end for h in route.hops]
    check([h.start for h in route.hops] == [route.start, *ends[:-1]], route)
    check([h.number for h in route.hops] ==
          list(range(1, len(ends) + 1)), route)
    gates = route.way.removeprefix("over ").split(", ")
    check(ends == [*gates, route.end], route)
    check([h.counts is None for h in route.hops] ==
          [h.start in mute for h in route.hops], route, mute)
    # What is for a process that has finished is not passed on to it: frames
    # without bytes of the user.
    for near, far in zip(route.hops, route.hops[1:]):
        if near.counts and far.counts:
            check(far.counts[0] <= near.counts[0], route)
            check(route.counts[1] <= far.counts[1] <= near.counts[1], route)
    check(route.hops[0].counts[1] >= route.counts[1], route)


@case
def each_hop_tells_what_has_passed():
    job = run(*virtual("row", "a0,b0", 4), "--trace-routes", "--stats=long",
              program("exchange_loop"), "none", "20")
    expect(job, 0)
    check(not mute_ranks_and_nodes(job), job.errors)
    mute = mute_gateways(job)
    check(len(mute) < 4, job.errors)
    found = routes(job.errors)
    for start, end, net in (("a0", "b0", "net0"), ("b0", "a0", "net2")):
        pair = of_pair(found, start, end, "over")
        check(pair and {len(r.hops) for r in pair} == {3}, pair)
        for route in pair:
            check_hops(route, mute)
            check(route.hops[0].by == f"{net} tcp", route)
            check(route.hops[1].by == "net1 tcp" or route.hops[1].start in mute,
                  route)
        sums = [sum(r.counts[i] for r in pair) for i in range(2)]
        check(sums == traffic(job.errors, start, end, "gate"), sums,
              job.errors)
        check(all(r.counts[3:] == [0, 0] for r in pair), pair)
    check(any(r.way == "direct" and not r.hops
              for r in of_pair(found, "a0", "a0")), job.errors)


def flood_and_kill(size, count, victim):
    """Kill a gateway while a receiver does not look, so that what has been
    sent, or announced, must go another way."""
    stop = stop_file("trace")
    job = Job(*virtual("two", "a0,b0", 2), "--trace-routes", program("unread"),
              str(stop), str(size), str(count))
    job.await_line(b"pushed")
    pid = gateways.await_gateways(job, 2)[victim]
    dead = node_of(pid)
    os.kill(pid, signal.SIGKILL)
    await_error(job, "is lost: killed by signal 9")
    ends_well(job, stop)
    check(dead in mute_gateways(job), dead, job.errors)
    return job, [r for r in of_pair(routes(job.errors), "a0", "b0")
                 if r.size != "-"], dead


def check_failover(size, count):
    moved = 0
    for attempt in range(20):  # which of the two is on the way is not known
        job, found, dead = flood_and_kill(size, count, attempt % 2)
        check(count <= sum(r.messages for r in found) < count + 50, found)
        check(count * size <= sum(r.counts[1] for r in found) <
              count * size + 10000, found)
        before = [r for r in found if r.way == f"over {dead}"]
        after = [r for r in found if r.way != f"over {dead}"]
        for route in before:
            check(route.hops[0].counts and not route.hops[1].counts, route)
        for route in after:
            check_hops(route, mute_gateways(job))
        if not before:
            continue
        moved = sum(r.counts[3] for r in before)
        check(moved > 0 and after, job.errors)
        if size <= 1 << 16:  # it goes in frames that are its alone
            resent = sum(r.counts[4] for r in after)
            check(moved <= resent <= HOSE_PARTS * moved, job.errors)
            check(sum(r.counts[2] for r in before) > 0, job.errors)
        break
    check(moved, "neither gateway was on the way")


@case
def ways_before_and_after_a_failure_are_told_apart():
    check_failover(HOSE_BYTES, HOSE_COUNT)


@case
def large_messages_that_change_their_way_are_counted_once():
    check_failover(2 << 20, 6)


@case
def an_interrupt_after_the_ranks_does_not_spoil_the_status():
    fifo = Files.folder / "late"
    os.mkfifo(fifo)
    hold = os.open(fifo, os.O_RDWR)
    job = Job(*virtual("meet", "a0,b0", 2), "--trace-routes", "sh", "-c",
              'exec 3<"$0"; echo up; cat <&3', str(fifo))
    job.await_lines(2)
    await_that(lambda: gateways.gateways(job), "a gateway")
    (gate,) = gateways.gateways(job)
    others = [os.pidfd_open(pid) for pid in job.marked("chempi-super")
              if pid != parent(gate)]
    check(len(others) == 2, others)
    os.kill(gate, signal.SIGSTOP)  # it gives no figures
    os.close(hold)
    for fd in others:  # they leave when all ranks have ended
        check(select.select([fd], [], [], LIMIT_S)[0], "still there")
        os.close(fd)
    job.process.send_signal(signal.SIGINT)
    job.status = job.finish()
    expect(job, 0)
    check("ended by signal" not in job.errors, job.errors)


@case
def a_direct_way_that_takes_over_is_named():
    stop = stop_file("slow")
    job = Job(*virtual("slow", "a0,b0", 2), "--trace-routes",
              program("exchange_loop"), str(stop))
    job.await_lines(2)
    os.kill(gateways.gateways(job)[0], signal.SIGKILL)
    await_error(job, "is lost: killed by signal 9")
    job.await_lines(lines(job) + 3)
    ends_well(job, stop)
    found = [r for r in of_pair(routes(job.errors), "a0", "b0")
             if "gate rendezvous" in r.by]
    check({r.way for r in found} == {"direct", "over g0"}, found)
    for route in found:
        # A message that was under way counts where it began, its rest here.
        check(route.messages > 0 or route.counts[1] > 0, route)
        check(route.hops[0].by == ("lan tcp" if route.way == "direct"
                                   else "left tcp"), route)


@case
def a_drained_gateway_has_a_line_of_its_own():
    with daemons("two", *TWO) as cluster:
        job, stop = relayed(cluster, "drain", 4, "--trace-routes")
        cluster.ctl("drain", "g0")
        await_error(job, "the gateway on node g0 is drained")
        job.await_lines(lines(job) + 3)
        ends_well(job, stop)
    found = routes(job.errors)
    for start, end in (("a0", "b0"), ("b0", "a0")):
        ways = {r.way for r in of_pair(found, start, end) if r.size != "-"}
        check("over g1" in ways, found)
    drained = [r for r in found if r.way == "over g0"]
    check(drained, "nothing went over g0", job.errors)
    for route in drained:
        check_hops(route, mute_gateways(job))
    check(not mute_ranks_and_nodes(job), job.errors)


# ---- jobs that fail ---------------------------------------------------------

def ending(how, *options, launch=run):
    return launch("--trace-routes", "--stats=long", *options, program("endings"), how)


def speechless(job):
    """Ranks that are said to have told nothing."""
    ranks = set()
    for text in re.findall(r"^incomplete: ranks? (.*) ended", job.errors, re.M):
        for piece in text.split(", "):
            first, _, last = piece.partition("-")
            ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


def check_told(job, nodes, silent):
    """Whoever is not said to be silent has told all its messages. A node has
    one rank here."""
    check(speechless(job) == silent, speechless(job), silent, job.errors)
    found = routes(job.errors)
    for i, (start, end) in enumerate((nodes, nodes[::-1])):
        pair = of_pair(found, start, end)
        known = [r for r in pair if r.counts]
        if i in silent and mute_gateways(job):
            check(not known, pair)
        elif i in silent:
            # The gateway knows what it has not told.
            check(not known and pair, pair)
            check(any(r.hops[1].counts[0] >= ROUNDS for r in pair), pair)
            check(not any(r.hops[0].counts for r in pair), pair)
        else:
            check(sum(r.messages for r in known) >= ROUNDS, pair)
            check(traffic(job.errors, start, end, "gate")[0] >= ROUNDS,
                  job.errors)


ENDS = (("well", 0, set()), ("abort", 7, set()), ("late", 5, set()),
        ("leave", 3, {1}), ("kill", 137, {1}))


def check_ends(launch, *options):
    for how, status, silent in ENDS:
        job = ending(how, *options, launch=launch)
        expect(job, status)
        # Rank 0 is in MPI_Recv when the job is ended. It has two seconds to
        # tell, which a machine may take from it.
        check_told(job, ("a0", "b0"), silent | (speechless(job) & {0}))
        check(bool(silent) == (1 in speechless(job)), job.errors)


@case
def jobs_that_fail_tell_what_they_know():
    check_ends(run, *virtual("meet", "a0,b0", 2))


@case
def an_abort_among_threads_tells_what_it_knows():
    """Unless the others keep the lock for too long, as they seldom do."""
    for _ in range(10):
        job = ending("threads", *virtual("meet", "a0,b0", 2))
        expect(job, 7)
        check_told(job, ("a0", "b0"), speechless(job))
        if 1 not in speechless(job):
            return
    check(False, "rank 1 has never told", job.errors)


@case
def jobs_of_daemons_that_fail_tell_what_they_know():
    with daemons("meet", "a0", "b0", "g0") as cluster:
        check_ends(cluster.run, "--nodes", "a0,b0", "-n", "2", "--map",
                   "cyclic")


@case
def a_job_that_is_over_its_time_tells_what_it_knows():
    job, limit_s = before_limit(
        lambda job: job.await_lines(2), "--trace-routes", "--stats=long",
        *virtual("meet", "a0,b0", 2), "sh", "-c",
        f"echo up; exec {program('endings')} hang")
    job.status = job.finish()
    expect(job, 124, f"the time limit of {limit_s} s has passed")
    check("no node gave figures" not in job.errors, job.errors)
    silent = speechless(job)
    for rank, pair in enumerate((("a0", "b0"), ("b0", "a0"))):
        if rank in silent:  # on a busy machine
            check(traffic(job.errors, *pair, "gate") == [0, 0], job.errors)


@case
def a_job_that_is_interrupted_tells_what_it_knows():
    stop = stop_file("interrupt")
    job = Job(*virtual("meet", "a0,b0", 2), "--trace-routes", "--stats=long",
              program("exchange_loop"), str(stop))
    job.await_lines(2)
    job.process.send_signal(signal.SIGINT)
    job.status = job.finish()
    expect(job, 130, r"was killed by signal 2|ended by signal 2")
    for rank, pair in enumerate((("a0", "b0"), ("b0", "a0"))):
        # Half a second may not be enough on a busy machine.
        check((traffic(job.errors, *pair, "gate")[0] > 0) !=
              (rank in speechless(job)), job.errors)


@case
def lines_that_lack_a_rank_have_a_star():
    """Two ranks on each node, and the killed one is one of them."""
    job = ending("kill", *virtual("meet", "a0,b0", 4))
    expect(job, 137)
    check(1 in speechless(job), job.errors)
    found = [r for r in of_pair(routes(job.errors), "b0", "a0") if r.counts]
    check(3 in speechless(job) or found, job.errors)
    check(all(r.starred for r in found), found)
    check("lines with a star" in job.errors, job.errors)
    if not speechless(job) & {0, 2}:
        check(not any(r.starred for r in of_pair(routes(job.errors), "a0",
                                                 "b0")), job.errors)


@case
def a_lost_supervisor_takes_its_figures_along():
    stop = stop_file("supervisor")
    job = Job(*virtual("two", "a0,b0", 2), "--trace-routes", "--stats=long",
              program("exchange_loop"), str(stop))
    job.await_lines(2)
    victim = {parent(pid) for pid in job.marked("exchange_loop")}
    os.kill(sorted(victim)[0], signal.SIGKILL)
    job.status = job.finish()
    check(job.status != 0)
    # The other one has five seconds to tell, which a machine may take from it.
    silent = re.findall(r"^incomplete: node ([ab]0) gave no figures$", job.errors,
                        re.M)
    check(silent in (["a0"], ["b0"], ["a0", "b0"]), job.errors)


@case
def a_gateway_that_stands_still_at_the_end_is_not_waited_for_for_ever():
    job = Job(*virtual("meet", "a0,b0", 2), "--trace-routes", "sh", "-c",
              f"{program('endings')} well; echo over; read line; true",
              stdin=subprocess.PIPE)
    job.await_lines(3)
    (pid,) = gateways.gateways(job)
    os.kill(pid, signal.SIGSTOP)
    job.process.stdin.write(b"\n")
    job.process.stdin.flush()
    job.status = job.finish()
    expect(job, 0, "incomplete: the gateway on node g0 gave no figures")
    for route in of_pair(routes(job.errors), "a0", "b0", "over"):
        check(route.hops[0].counts and not route.hops[1].counts, route)


def main():
    with tempfile.TemporaryDirectory(prefix="chempi-traces-") as folder:
        Files.folder = pathlib.Path(folder)
        gateways.prepare(sys.argv[1])
        gateways.compile_program(sys.argv[1], "endings")
        return run_cases(CASES, sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
