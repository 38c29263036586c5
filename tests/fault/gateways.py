#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gateways that are killed, flooded or missing.

    gateways.py BUILD [CASE]...

Cases wait for events: lines of output, ends of processes, files. After every
case nothing may be left.
"""
import errno
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import chempi_tree  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Job, Programs, await_that, check, expect, run_cases)
from wire import frame, receive_frame, string  # noqa: E402

CASES = []
FLOW_MAX_MIB = 4  # what one pair of ranks may hold in a gateway
FRAME_MAX = 66 << 10  # bytes of the longest frame

WIDE_A = [f"a{i}" for i in range(5)]
WIDE_B = [f"b{i}" for i in range(5)]

# Networks in a row, each with the nodes that are on it.
PLANS = {
    "wide": [WIDE_A + ["g0", "g1"], ["g0", "g1"] + WIDE_B],
    "meet": [["a0", "a1", "g0"], ["g0", "b0", "b1"]],
    "two": [["a0", "a1", "g0", "g1"], ["g0", "g1", "b0", "b1"]],
    "could": [["a0", "g0", "x0"], ["g0", "x0", "b0"]],
    "islands": [["a0", "a1"], ["b0", "b1"]],
    "row": [["a0", "g0", "g1"], ["g0", "g1", "h0", "h1"], ["h0", "h1", "b0"]],
}


# What the end of the only gateway of the plan "meet" says, of the pairs that
# it cuts off only where the loss has been told without it.
CUT_OFF = (r"chempirun: the gateway on node g0 \(process 3 of the job\) is lost: "
           r"[^\n]*; no other way is left( between a0 and b\[0,1\])?, and rank \d on "
           r"node [ab]\d \(pid \d+, [^\n]*_loop\) needs one; what would help: "
           r"another gateway that is attached to networks net[01] and net[01]; "
           r"the job was ended\n\Z")


class Files:
    """What all cases share: tables and programs."""
    folder = None


def case(fn):
    CASES.append(fn)
    return fn


# A direct network that is worth it for small messages only.
SLOW = """
nodes: { a0: { slots: 3 }, b0: {}, g0: { gateway: true, slots: 4 } }
networks:
  lan:
    type: ethernet
    protocols:
      eager: { latency: 20 us, bandwidth: 10 MB/s }
    attach: { a0: 127.0.3.1, b0: 127.0.3.2 }
  left:
    type: ethernet
    protocols:
      eager: { latency: 20 us, bandwidth: 1000 MB/s }
    attach: { a0: 127.0.1.1, g0: 127.0.1.3 }
  right:
    type: ethernet
    protocols:
      eager: { latency: 20 us, bandwidth: 1000 MB/s }
    attach: { b0: 127.0.2.2, g0: 127.0.2.3 }
"""


def describe(plan):
    nodes = sorted({node for network in plan for node in network})
    text = "nodes:\n"
    for node in nodes:
        text += f"  {node}: {{ gateway: {str(node[0] in 'gh').lower()} }}\n"
    text += "networks:\n"
    for i, network in enumerate(plan):
        text += f"  net{i}:\n    type: ethernet\n    attach:\n"
        for node in network:
            text += f"      {node}: 127.0.{i + 1}.{nodes.index(node) + 1}\n"
    return text


def compile_program(build, name):
    subprocess.run([str(chempi_tree.need(build, "mpicc")), "-O2",
                    "-D_GNU_SOURCE", "-o", str(Files.folder / name),
                    *chempi_tree.mpi_words(name)], check=True,
                   timeout=LIMIT_S)


def prepare(build):
    Programs.chempirun = str(chempi_tree.need(build, "chempirun"))
    Programs.chempid = str(chempi_tree.need(build, "chempid"))
    Programs.chempictl = str(chempi_tree.need(build, "chempictl"))
    texts = {name: describe(plan) for name, plan in PLANS.items()}
    texts["slow"] = SLOW
    for name, content in texts.items():
        text = Files.folder / f"{name}.yaml"
        text.write_text(content, encoding="utf-8")
        subprocess.run([str(chempi_tree.need(build, "mdconfig")), "compile",
                        "--allow-unreachable", "-o", str(Files.folder / name), str(text)], check=True,
                       capture_output=True, timeout=LIMIT_S)
    for name in ("exchange_loop", "window_loop", "survivors", "unread", "routed_total", "order"):
        compile_program(build, name)


def program(name):
    return str(Files.folder / name)


def virtual(plan, nodes, ranks):
    return ["--virtual", nodes, "--map", "cyclic", "--network",
            str(Files.folder / plan), "-n", str(ranks)]


TWO = ("a0", "b0", "g0", "g1")  # of the plan "two"


def daemons(plan, *names):
    """A cluster of daemons on these nodes of a plan."""
    return Cluster(names, ("--tables", str(Files.folder / plan)))


def relayed(cluster, name, ranks, *options):
    """A job on a0 and b0 whose messages go over gateways until the file that
    is handed back, too, is there."""
    stop = stop_file(name)
    job = cluster.job("--nodes", "a0,b0", "-n", str(ranks), "--map", "cyclic",
                      *options, program("exchange_loop"), str(stop))
    return job.await_lines(2), stop


def gateways(job):
    return job.marked("chempi-gateway")


def await_gateways(job, count):
    """Ranks that have not used them may run before they do. One that is just
    becoming its program has its name before its words."""
    found = []

    def look():
        found[:] = [pid for pid in gateways(job) if command_line(pid)]
        return len(found) == count
    await_that(look, count, "gateways")
    return found


def command_line(pid):
    """None of one that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode().split("\0")[:-1]
    except OSError:
        return []


def node_of(gateway):
    return command_line(gateway)[4]


def gateways_by_node(job, count):
    return {node_of(pid): pid for pid in await_gateways(job, count)}


def await_error(job, word):
    """Read standard error up to a line that holds the word."""
    fd = job.process.stderr.fileno()
    text = b""
    while word.encode() not in text:
        ready, _, _ = select.select([fd], [], [], LIMIT_S)
        check(ready, "no", word, "in", text)
        piece = os.read(fd, 65536)
        check(piece, "standard error ended:", text)
        text += piece
    return text.decode()


def lines(job):
    return job.output.count(b"\n")


def stop_file(name):
    path = Files.folder / f"stop.{name}"
    if path.exists():
        path.unlink()
    return path


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))


def ends_well(job, stop):
    """Let a relay come to its end, which must be a good one."""
    stop.touch()
    job.status = job.finish()
    expect(job, 0)
    check(job.output.endswith(b"ok\n"), job.output)


def killed_in_the_middle(plan, nodes, ranks, victims, *options,
                         relay="exchange_loop"):
    """Kill so many gateways one after the other; the job must go on."""
    for first in range(victims + 1):
        stop = stop_file("kill")
        job = Job(*virtual(plan, nodes, ranks), *options, program(relay),
                  str(stop))
        job.await_lines(2)
        pids = await_gateways(job, victims + 1)
        for pid in pids[first:first + victims]:
            os.kill(pid, signal.SIGKILL)
            await_error(job, "is lost: killed by signal 9")
            job.await_lines(lines(job) + 3)
        ends_well(job, stop)


@case
def another_gateway_takes_over():
    killed_in_the_middle("two", "a0,b0", 2, 1)


@case
def many_ranks_go_on_by_another_gateway():
    killed_in_the_middle("two", "a0,a1,b0,b1", 8, 1)


@case
def one_sided_operations_go_on_by_another_gateway():
    killed_in_the_middle("two", "a0,a1,b0,b1", 5, 1, relay="window_loop")


def ended_with_the_only_gateway(name):
    job = Job(*virtual("meet", "a0,b0,b1", 3), program(name),
              str(stop_file("alone")))
    job.await_lines(2)
    pids = gateways(job)
    check(len(pids) == 1, pids)
    os.kill(pids[0], signal.SIGKILL)
    job.status = job.finish()
    expect(job, 1, CUT_OFF)
    return job


@case
def one_sided_operations_end_with_the_only_gateway():
    ended_with_the_only_gateway("window_loop")


@case
def a_job_of_daemons_survives_a_rank_behind_gateways():
    with daemons("two", *TWO) as cluster:
        for how, status in (("target", 137), ("holder", 137), ("fence", 137),
                            ("receive", 142), ("barrier", 137)):
            job = cluster.job("--nodes", "a0,b0", "-n", "4", "--map", "cyclic",
                              "--survive", program("survivors"), how)
            job.status = job.finish()
            expect(job, status, r"the others go on")
            check("the survivors are well" in job.output.decode(), job.output)


@case
def what_is_sealed_is_sent_again_over_another_gateway():
    killed_in_the_middle("two", "a0,a1,b0,b1", 4, 1, "--secure")


@case
def a_way_of_two_gateways_is_mended_at_either():
    stop = stop_file("row")
    for turn in range(2):
        job = Job(*virtual("row", "a0,b0", 4), program("exchange_loop"), str(stop))
        job.await_lines(2)
        pids = await_gateways(job, 4)
        os.kill(pids[turn], signal.SIGKILL)
        await_error(job, "is lost: killed by signal 9")
        job.await_lines(lines(job) + 3)
        stop.touch()
        job.status = job.finish()
        stop.unlink()
        expect(job, 0)


@case
def a_slow_direct_way_takes_over():
    stop = stop_file("slow")
    job = Job(*virtual("slow", "a0,b0", 2), "--trace-routes",
              program("exchange_loop"), str(stop))
    job.await_lines(2)
    pids = gateways(job)
    check(len(pids) == 1, pids)
    os.kill(pids[0], signal.SIGKILL)
    await_error(job, "is lost: killed by signal 9")
    job.await_lines(lines(job) + 3)
    stop.touch()
    job.status = job.finish()
    expect(job, 0, r"gate rendezvous")


@case
def without_another_way_a_sentence_says_so():
    job = ended_with_the_only_gateway("exchange_loop")
    check(job.errors.count("left between a0 and b[0,1]") == 1, job.errors)


@case
def all_lost_gateways_and_all_pairs_are_named():
    stop = stop_file("all")
    job = Job(*virtual("two", "a0,a1,b0,b1", 4), program("exchange_loop"), str(stop))
    job.await_lines(2)
    pids = gateways_by_node(job, 2)  # their order by number may be another one
    check(sorted(pids) == ["g0", "g1"], pids)
    os.kill(pids["g0"], signal.SIGKILL)
    said = await_error(job, "is lost: killed by signal 9")
    check("no other way" not in said, said)
    job.await_lines(lines(job) + 3)
    os.kill(pids["g1"], signal.SIGKILL)
    job.status = job.finish()
    expect(job, 1, r"the gateways on nodes g\[0,1\] are lost "
           r"\(g0: [^;]*killed by signal 9[^;]*; g1: .*\); no other way is left"
           r"( between a\[0,1\] and b\[0,1\])?, and rank \d on node [ab]\d ",
           r"another gateway that is attached to networks net[01] and net[01]; "
           r"the job was ended\n\Z")
    check(job.errors.count("left between a[0,1] and b[0,1]") == 1, job.errors)


@case
def a_node_that_could_be_a_gateway_is_named():
    stop = stop_file("could")
    job = Job(*virtual("could", "a0,b0", 2), program("exchange_loop"), str(stop))
    job.await_lines(2)
    (pid,) = gateways(job)
    os.kill(pid, signal.SIGKILL)
    job.status = job.finish()
    expect(job, 1, r"`gateway: true` for x0, which is on networks net[01] and "
           r"net[01]; the job was ended")


@case
def a_job_with_a_pair_without_a_way_is_not_started():
    """Its ranks would run until their first message."""
    nodes = ["--virtual", "a0,a1,b0", "--map", "cyclic", "--network",
             str(Files.folder / "islands"), "-n", "3"]
    job = Job(*nodes, "echo", "here")
    job.status = job.finish()
    expect(job, 1, r"\Achempirun: no way leads between the nodes a\[0,1\] and "
           r"b0; what would join them: .*; the job was not started "
           r"\(--allow-unreachable would start it\)\n\Z")
    check(job.output == b"", job.output)
    job = Job(*nodes, "--allow-unreachable", "echo", "here")
    job.status = job.finish()
    expect(job, 0, r"no way leads between the nodes a\[0,1\] and b0")
    check(job.output == b"here\n" * 3, job.output)


@case
def a_gateway_that_stands_still_holds_up_nothing_for_ever():
    """SIGSTOP and SIGCONT: all goes on as if nothing had been."""
    stop = stop_file("still")
    job = Job(*virtual("meet", "a0,b0", 2), program("exchange_loop"), str(stop))
    job.await_lines(2)
    (pid,) = gateways(job)
    os.kill(pid, signal.SIGSTOP)
    stat = pathlib.Path(f"/proc/{pid}/stat")
    await_that(lambda: " (chempi-gateway) T " in
               stat.read_text(encoding="utf-8"), "a stopped gateway")
    os.kill(pid, signal.SIGCONT)
    job.await_lines(lines(job) + 2)
    stop.touch()
    job.status = job.finish()
    expect(job, 0)


@case
def a_flood_stays_within_the_window():
    for size, count in ((8 << 20, 5), (60000, 700), (100, 20000)):
        stop = stop_file("unread")
        job = Job(*virtual("meet", "a0,b0,b1", 3), program("unread"),
                  str(stop), str(size), str(count))
        job.await_line(b"pushed")
        (pid,) = gateways(job)
        grown = peak_kib(pid)
        stop.touch()
        job.status = job.finish()
        expect(job, 0)
        print(f"  {count} x {size} bytes: gateway at most {grown} KiB")
        # Three pairs, and the program itself.
        check(grown < (3 * FLOW_MAX_MIB + 12) * 1024, size, grown)


@case
def all_flows_of_a_rank_stay_within_their_sum():
    total, receivers = 1 << 20, 8
    stop = stop_file("routed_total")
    # Not longer: a rendezvous that nobody answers leaves nothing unconfirmed.
    job = Job("-x", f"CHEMPI_GATE_TOTAL={total}", "--virtual",
              "a0:1,b0:4,b1:4", "--network", str(Files.folder / "meet"),
              "-n", str(receivers + 1), program("routed_total"), str(stop), "30000",
              "40", str(total // 2))
    job.await_lines(1)
    found = re.search(rb"unconfirmed (\d+)", job.output)
    stop.touch()
    job.status = job.finish()
    expect(job, 0)
    # Without the limit the eight windows hold four times as much.
    check(found and total // 2 <= int(found[1]) <=
          total + receivers * FRAME_MAX, job.output)
    print(f"  at most {int(found[1]) >> 10} KiB unconfirmed")


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


@case
def a_killed_job_leaves_no_gateway():
    """By the loss of a rank, or of a supervisor of ranks: that of a gateway
    would leave it."""
    for is_supervisor in (True, False):
        stop = stop_file("none")
        job = Job(*virtual("two", "a0,b0", 2), program("exchange_loop"), str(stop))
        job.await_lines(2)
        victim = job.marked("exchange_loop")[0]
        os.kill(parent(victim) if is_supervisor else victim, signal.SIGKILL)
        job.status = job.finish()
        check(job.status != 0, job.status)


@case
def a_lost_supervisor_without_ranks_is_a_lost_gateway():
    stop = stop_file("supervisor")
    job = Job(*virtual("two", "a0,b0", 4), program("exchange_loop"), str(stop))
    job.await_lines(2)
    os.kill(parent(gateways(job)[0]), signal.SIGKILL)
    await_error(job, "the gateway on node g")
    job.await_lines(lines(job) + 3)
    ends_well(job, stop)
    stop.unlink()
    job = Job(*virtual("meet", "a0,b0,b1", 3), program("exchange_loop"), str(stop))
    job.await_lines(2)
    os.kill(parent(gateways(job)[0]), signal.SIGKILL)
    job.status = job.finish()
    expect(job, 1, CUT_OFF)
    check(job.errors.count("left between a0 and b[0,1]") == 1, job.errors)


@case
def a_lost_node_without_ranks_does_not_hold_up_input():
    """Input for all goes there, too, in windows of 64 KiB."""
    fifo = Files.folder / "fifo"
    os.mkfifo(fifo)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(256 << 10))
        file.seek(0)
        job = Job(*virtual("two", "a0,b0", 2), "--stdin", "all", "sh", "-c",
                  'echo here; read line <"$0"; exec wc -c', str(fifo),
                  stdin=file)
        job.await_lines(2)
        os.kill(parent(await_gateways(job, 2)[0]), signal.SIGKILL)
        await_error(job, "the gateway on node g")
        with open(fifo, "wb", buffering=0) as gate:
            gate.write(b"\n\n")
            job.status = job.finish()
    fifo.unlink()
    expect(job, 0)
    check(job.lines() == [str(256 << 10)] * 2 + ["here"] * 2, job.output)


def held_job(cluster, nodes, ranks, *args):
    """Its ranks run, but initialize MPI when they are let go."""
    job = cluster.job("--nodes", ",".join(nodes), "-n", str(ranks), "--map",
                      "cyclic", "--stdin", "all", "sh", "-c",
                      'echo here; read line; exec "$@"', "sh",
                      program("exchange_loop"), *args, stdin=subprocess.PIPE)
    return job.await_lines(ranks)


def let_go(job):
    job.process.stdin.write(b"\n")
    job.process.stdin.flush()


def kill_and_go_on(cluster, victim, is_early):
    """Kill a gateway's supervisor, also before a rank has asked for it."""
    stop = stop_file("below")
    job = held_job(cluster, ["a0", "b0"], 4, str(stop))
    if not is_early:
        let_go(job)
        job.await_lines(6)
    os.kill(parent(await_gateways(job, 2)[victim]), signal.SIGKILL)
    await_error(job, "the gateway on node g")
    if is_early:
        let_go(job)
    job.await_lines(lines(job) + 3)
    ends_well(job, stop)


@case
def a_lost_supervisor_below_a_daemon_is_a_lost_gateway():
    with daemons("two", *TWO) as cluster:
        for victim in (0, 1):
            for is_early in (True, False):
                kill_and_go_on(cluster, victim, is_early)


@case
def a_first_message_without_a_way_names_the_lost_gateway():
    """Lost before anybody has needed it: the loss alone ends nothing."""
    with daemons("meet", "a0", "b0", "g0") as cluster:
        job = held_job(cluster, ["a0", "b0"], 2, "none", "2")
        (pid,) = await_gateways(job, 1)
        os.kill(parent(pid), signal.SIGKILL)
        await_error(job, "; no other way is left between a0 and b0\n")
        let_go(job)
        job.status = job.finish()
        # The class of the error of the call that needs the way.
        expect(job, 58, r"no way leads from node [ab]0 to node [ab]0 any more: "
               r"lost are the gateways on g0;[^\n]*; the job was ended\n\Z")


@case
def a_lost_daemon_without_ranks_is_a_lost_gateway():
    for victims in (["g0"], ["g1"], ["g0", "g1"]):
        with daemons("two", *TWO) as cluster:
            job, stop = relayed(cluster, "daemon", 4)
            cluster.kill(victims[0])
            await_error(job, f"the gateway on node {victims[0]} is lost")
            job.await_lines(lines(job) + 3)
            if len(victims) == 1:
                stop.touch()
            else:
                cluster.kill(victims[1])
            job.status = job.finish()
            if len(victims) == 1:
                expect(job, 0)
                check(job.output.endswith(b"ok\n"), job.output)
            else:
                expect(job, 1, r"no other way is left between a0 and b0")


@case
def a_gateway_without_a_daemon_is_not_waited_for():
    with daemons("two", "a0", "b0", "g1") as cluster:
        job = cluster.run("--nodes", "a0,b0", "-n", "2", "--map", "cyclic",
                          program("exchange_loop"), "none", "2")
        expect(job, 0, r"the gateway on node g0 is lost")


@case
def a_gateway_takes_no_other_one_along():
    """So many nodes that daemons pass the job on for others."""
    ranks = WIDE_A + WIDE_B
    options = ("--tables", str(Files.folder / "wide"))
    with Cluster(ranks + ["g1"], options) as cluster:
        job = held_job(cluster, ranks, len(ranks), "none", "2")
        said = await_error(job, "the gateway on node g0 is lost")
        let_go(job)
        job.status = job.finish()
        expect(job, 0)
        check("node g1" not in said + job.errors, said, job.errors)
        cluster.start("g0", *options)
        job = held_job(cluster, ranks, len(ranks), "none", "2")
        cluster.kill("g0")
        said = await_error(job, "the gateway on node g0 is lost")
        let_go(job)
        job.status = job.finish()
        expect(job, 0)
        check("node g1" not in said + job.errors, said, job.errors)


@case
def gateways_run_under_daemons_too():
    with daemons("two", *TWO) as cluster:
        job, stop = relayed(cluster, "daemons", 4)
        pids = await_gateways(job, 2)
        os.kill(pids[0], signal.SIGKILL)
        await_error(job, "is lost: killed by signal 9")
        job.await_lines(lines(job) + 3)
        stop.touch()
        job.status = job.finish()
        expect(job, 0)


def route(cluster, *words):
    """What chempictl route says, and whether it says the same as JSON."""
    said = cluster.ctl("route", *words)
    told = json.loads(cluster.ctl("--json", "route", *words))

    def named(way):
        """A way as words have it; its time is behind it."""
        return ", then ".join(
            f"{s['device']} {s['protocol']} on {s['network']}" +
            ("".join(f"{' or ' if i else ' to '}{name}"
                     for i, name in enumerate(s.get("gateways", []))))
            for s in way["way"]) + "; "

    head, *lines = said.splitlines()
    check(head.startswith(f"{told['bytes']} bytes from {told['from']} to "
                          f"{told['to']}: {named(told)}"), head, told)
    parts = [line for line in lines if re.match(r"  [\d.]+ [mu]?s  ", line)]
    check([part["of"] or "forwarding" for part in told["parts"]] ==
          [line.split()[-1] for line in parts], parts, told)
    check(abs(sum(part["us"] for part in told["parts"]) - told["us"]) <
          1e-6 * told["us"], told)
    jobs = iter(line for line in lines if line not in parts)
    for job in told["jobs"]:
        line = next(jobs)
        check(line.startswith(f"job {job['job']}: " +
                              ("the same" if job["is_same"] else named(job))),
              line, job)
        for gateway in job["fallen"]:
            check(next(jobs) == f"  the gateway on {gateway['node']} is "
                  f"{gateway['state']}", job)
    check(not list(jobs), said, told)
    return said


@case
def a_drained_gateway_is_spared():
    with daemons("two", *TWO) as cluster:
        job, stop = relayed(cluster, "drain", 4, "--trace-routes")
        await_gateways(job, 2)
        for node in json.loads(cluster.ctl("--json", "budgets")):
            are = [r["gateway"] for r in node["ranks"]]
            check(are == ([True] if node["node"][0] == "g" else
                          [False, False]), node)
        said = cluster.ctl("budgets")
        check(re.search(r"^g0 +\w+ +gate ", said, re.M), said)
        said = route(cluster, "a0", "b0", "64KiB")
        check("to g0 or g1, then" in said, said)
        check(re.search(r"^job \w+: the same$", said, re.M), said)
        check("job" not in route(cluster, "a0", "g0", "64KiB"))
        check(json.loads(cluster.ctl("drain", "g0", "--json")) ==
              {"node": "g0", "job": None, "remarks": []})
        await_error(job, "the gateway on node g0 is drained")
        job.await_lines(lines(job) + 3)
        said = route(cluster, "a0", "b0", "4M")
        check("to g1, then" in said and "g0 is drained" in said, said)
        # Neither where the job is not, nor where no gateway is on the way.
        check("job" not in cluster.ctl("route", "a0", "g1", "4M"))
        said = route(cluster, "a0", "a0", "4M")
        check("drained" not in said, said)
        check(re.search(r"^job \w+: the same$", said, re.M), said)
        said = cluster.ctl("route", "a0", "b0", "4M")
        check(re.search(r"^  [\d.]+ us  latency of net0$", said, re.M), said)
        check(re.search(r"^job .*; [\d.]+ ms$", said, re.M), said)
        said = cluster.ctl("drain", "g1", status=1)
        check(re.search(r"on node g1 is the last one in job \w+ between a0 and "
                        r"b0; nothing was changed", said), said)
        check(cluster.ctl("--json", "drain", "g1", status=1) == said)
        check(cluster.ctl("drain") == "g0                   all jobs\n")
        check(json.loads(cluster.ctl("--json", "drain")) ==
              [{"node": "g0", "job": None}])
        told = json.loads(cluster.ctl("--json", "drain", "g1", "--force"))
        check(told == {"node": "g1", "job": None, "remarks": [
            {"what": "stays in use", "job": name, "from": ["a0"], "to": ["b0"],
             "is_one_way": False} for name in (job_name(cluster), None)]}, told)
        cluster.ctl("undrain", "g1")
        await_error(job, "the gateway on node g1 is in use again")
        said = cluster.ctl("drain", "g1", "--force")  # it stays in use
        check(re.search(r"g1 stays in use in job \w+ between a0 and b0", said),
              said)
        await_error(job, "the gateway on node g1 is drained")
        job.await_lines(lines(job) + 3)
        await_gateways(job, 2)
        said = cluster.ctl("--via", "a0", "drain", "a0", status=1)
        check("a0 is no gateway by the network description; gateways are "
              "g[0,1]" in said, said)
        stop.touch()
        job.status = job.finish()
        expect(job, 0, r"a0 +b0 .*over g\d")


def job_name(cluster):
    found = re.search(r"^(\w{16}) ", cluster.ctl("jobs"), re.M)
    check(found, cluster.ctl("jobs"))
    return found[1]


@case
def gateways_can_be_told_apart():
    """In the list of processes and in chempictl jobs."""
    with daemons("two", *TWO) as cluster:
        job, stop = relayed(cluster, "apart", 2)
        pids = gateways_by_node(job, 2)
        check(sorted(pids) == ["g0", "g1"], pids)
        name = job_name(cluster)
        check(command_line(pids["g1"]) == ["chempi-gateway", "--job", name,
                                           "--node", "g1"])
        for node, pid in pids.items():
            await_that(lambda: re.search(
                rf"^  gateway {node} +pid {pid} +in use$", cluster.ctl("jobs"),
                re.M), "what is said of", node, pid)
        os.kill(pids["g0"], signal.SIGKILL)
        await_error(job, "is lost: killed by signal 9")
        await_that(lambda: re.search(r"^  gateway g0 +- +lost$",
                                     cluster.ctl("jobs"), re.M), "a lost one")
        ends_well(job, stop)


@case
def a_drain_holds_for_jobs_to_come():
    with daemons("two", *TWO) as cluster:
        cluster.ctl("--via", "a0", "drain", "g0")
        for via in TWO:  # each of them knows
            check(cluster.ctl("--via", via, "drain") ==
                  "g0                   all jobs\n")
        check(re.search(r"^g0 .* drained$", cluster.ctl("nodes"), re.M))
        said = cluster.ctl("drain", "g1", status=1)
        check("g1 is the last one between a0 and b0;" in said, said)
        stop = stop_file("later")
        job = cluster.job("--nodes", "a0,b0", "-n", "4", "--map", "cyclic",
                          "--trace-routes", program("exchange_loop"), str(stop))
        await_error(job, "the gateway on node g0 is drained: by chempictl")
        job.await_lines(2)
        await_that(lambda: {("g0", "drained"), ("g1", "in use")} <= set(
            re.findall(r"^  gateway (\w+) .* (drained|in use)$",
                       cluster.ctl("jobs"), re.M)), "both states")
        said = cluster.ctl("route", "a0", "b0", "4M")
        check("to g1, then" in said and "g0 is drained" in said, said)
        cluster.ctl("--via", "b0", "undrain", "g0")
        await_error(job, "the gateway on node g0 is in use again")
        job.await_lines(lines(job) + 3)
        check(cluster.ctl("drain") == "")
        cluster.ctl("drain", "g1", job_name(cluster))
        await_error(job, "the gateway on node g1 is drained")
        await_that(lambda: cluster.ctl("drain") ==
                   f"g1                   job {job_name(cluster)}\n",
                   "the news of it")
        job.await_lines(lines(job) + 5)  # a hundred rounds
        stop.touch()
        job.status = job.finish()
        expect(job, 0)
        # Both were taken, the one that was drained first in the end.
        for way in ("over g0", "over g1"):
            check(re.search(rf"^a0 +b0 +\d+ .* {way} ", job.errors, re.M),
                  job.errors)
        job = cluster.run("--nodes", "a0,b0", "-n", "2", "--map", "cyclic",
                          program("exchange_loop"), "none", "1")
        expect(job, 0, r"\A\Z")


@case
def orders_that_make_no_sense_are_refused():
    with daemons("meet", "a0", "b0", "b1", "g0") as cluster:
        job, stop = relayed(cluster, "sense", 2)
        name = job_name(cluster)
        for words, wanted in (
                (("drain", "x9"), "no daemon runs for a node x9; there are "
                                  "a0, b[0,1], g0"),
                (("drain", "a0"), "a0 is no gateway by the network "
                                  "description; gateways are g0"),
                (("undrain", "a0"), "a0 is no gateway"),
                (("drain", "g0", "nobody"), "no job nobody runs"),
                (("undrain", "g0", "nobody"), "no job nobody runs"),
                (("drain", "a0", name), f"job {name} has no gateway on node "
                                        "a0, but on g0"),
                (("drain", "g0"), "g0 is the last one in job"),
                (("drain", "g0", name), f"in job {name} between a0 and b0;")):
            said = cluster.ctl(*words, status=1)
            check(wanted in said, words, said)
        cluster.ctl("drain", "g0", "a", "b", status=2)
        cluster.ctl("undrain", status=2)
        ends_well(job, stop)
        said = cluster.ctl("drain", "g0", status=1)
        check("the last one between a0 and b[0,1];" in said, said)
        said = cluster.ctl("--force", "drain", "g0")
        check("g0 stays in use between a0 and b[0,1]" in said, said)
        job = cluster.run("--nodes", "a0,b0", "-n", "2", "--map", "cyclic",
                          program("exchange_loop"), "none", "1")
        expect(job, 0, "the gateway on node g0 is drained")


def request_as(uid, address, what, job):
    """The errno that a daemon answers a user's request for its node with."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LIMIT_S)
        os.seteuid(uid)
        try:
            sock.connect(address)
        finally:
            os.seteuid(0)
        kind, said = receive_frame(sock)
        check(kind == 80, kind, said)
        sock.sendall(frame(80, said[:4] + string(b"")) +  # of its version
                     frame(84, struct.pack("<I", what) + string(b"") +
                           string(job) + struct.pack("<I", 0)))
        kind, said = receive_frame(sock)
        check(kind == 85, kind, said)
        return struct.unpack_from("<I", said)[0]


@case
def only_who_drains_a_node_undrains_it_for_a_job():
    if os.geteuid() != 0:
        return
    drain, undrain = 3, 4
    with Cluster(["a0"], mode=0o755) as cluster:
        address = f"{cluster.dir}/a0.sock"
        for uid, what, job, code in (
                (65534, drain, b"", errno.EPERM),
                (65534, undrain, b"some", errno.ESRCH),  # there is none
                (0, drain, b"", 0),
                (65534, undrain, b"some", errno.EBUSY),
                (0, undrain, b"some", errno.ESRCH),
                (0, undrain, b"", 0),
                (65534, undrain, b"some", errno.ESRCH)):
            found = request_as(uid, address, what, job)
            check(found == code, uid, what, job, "answer", found, "not", code)


@case
def slots_of_the_description_are_those_of_the_daemon():
    options = ("--tables", str(Files.folder / "slow"))
    with Cluster([]) as cluster:
        cluster.start("a0", *options, slots=None)
        cluster.start("b0", *options, slots=None)
        cluster.start("g0", *options, slots="5")
        said = cluster.ctl("nodes")
        check(re.search(r"^a0 +3 ", said, re.M), said)
        check(re.search(rf"^b0 +{os.cpu_count()} ", said, re.M), said)
        check(re.search(r"^g0 +5 ", said, re.M), said)
        job = cluster.run("--nodes", "a0,g0", "-n", "8", "sh", "-c",
                          "echo $CHEMPI_NODE")
        check(job.lines() == ["a0"] * 3 + ["g0"] * 5, job.output)


@case
def a_damaged_table_is_no_missing_one():
    with tempfile.TemporaryDirectory() as tables:
        for name, kept in ("a0", 100), ("b0", None):
            (pathlib.Path(tables) / f"{name}.chempi").write_bytes(
                (Files.folder / "meet" / f"{name}.chempi").read_bytes()[:kept])
        with Cluster(["a0"], ("--tables", tables)) as cluster:
            said = cluster.ctl("route", "b0", "a0", "1")
            check(said.startswith("1 bytes from b0 to a0: "), said)
            said = cluster.ctl("route", "a0", "b0", "1", status=1)
            check(f"{tables}/a0.chempi: " in said, said)
            said = cluster.ctl("route", "b1", "a0", "1", status=1)
            check("there is no connection table of node b1 here" in said, said)


@case
def a_table_of_another_node_is_refused():
    with tempfile.TemporaryDirectory() as tables:
        for name, of in ("a0", "a0"), ("b0", "b1"), ("g0", "g0"):
            shutil.copy(Files.folder / "meet" / f"{of}.chempi",
                        f"{tables}/{name}.chempi")
        job = Job("--virtual", "a0,b0", "-n", "2", "--map", "cyclic",
                  "--network", tables, "true")
        job.status = job.finish()
        expect(job, 1, rf"\Achempirun: [^\n]*{tables}/b0\.chempi is the table of "
               r"node b1; copy the one that [^\n]* wrote for node b0\b")


@case
def without_a_daemon_at_the_gateway_there_is_no_job():
    with daemons("meet", "a0", "b0") as cluster:
        job = cluster.run("--nodes", "a0,b0", "-n", "2", "--map", "cyclic",
                          program("exchange_loop"),
                          "none", "1")
        check(job.status != 0)
        check("g0" in job.errors, job.errors)


def main():
    with tempfile.TemporaryDirectory(prefix="chempi-gateways-") as folder:
        Files.folder = pathlib.Path(folder)
        prepare(sys.argv[1])
        return run_cases(CASES, sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
