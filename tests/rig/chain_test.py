#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ways over two gateways each, and what --trace-routes tells of them.

usage: chain_test.py BUILD

What hops are said to have carried is held against what the interfaces have
counted. Exit status 77 where namespaces cannot be had.
"""
import os
import pathlib
import select
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import netlab  # noqa: E402
from rig_test import build_program, check  # noqa: E402
from routelines import of_pair, routes  # noqa: E402

LIMIT_S = 200
GATEWAY = "chempi-gateway"[:15]
ENDS = {"left": "a0 a1 g0 g1", "middle": "g0 g1 h0 h1", "right": "h0 h1 b0 b1"}
PLUGS = [(node, network) for network, nodes in ENDS.items()
         for node in nodes.split()]
LEFT, RIGHT = ("a0", "a1"), ("b0", "b1")
ENOUGH = 256 << 10  # bytes


def job(lab, name, *args):
    return [lab.tool("chempirun"), "--trace-routes", "--nodes", "a0,a1,b0,b1",
            "-n", "4", "--ppn", "1", build_program(lab, name), *args]


def told(found, node, network):
    """Bytes that a node has sent on a network by the lines of a trace."""
    hops = sum(hop.counts[1] for route in found for hop in route.hops
               if hop.start == node and hop.by == f"{network} tcp")
    return hops + sum(route.counts[1] for route in found
                      if route.start == node and route.way == "direct" and
                      route.by.startswith(f"{network} tcp"))


def run_until_all_tell(lab):
    """What interfaces had counted before, and a run of which all gateways have
    told: they have seconds for that, which a busy machine may take."""
    for _ in range(5):
        before = {plug: lab.carried(*plug)[0] for plug in PLUGS}
        done = lab.run(*job(lab, "order", "4", "40", "400000"), limit_s=LIMIT_S)
        check(done.ok, done)
        if "incomplete" not in done.output:
            return before, done
    raise AssertionError(done.output)


def hops_carry_what_interfaces_count(lab):
    before, done = run_until_all_tell(lab)
    found = routes(done.output)
    for plug in PLUGS:
        sent = lab.carried(*plug)[0] - before[plug]
        said = told(found, *plug)
        # Headers, acknowledgements and what makes connections are not told.
        check(said <= sent <= 1.3 * said + ENOUGH, plug, sent, said)
    check(told(found, "a0", "left") > ENOUGH, done.output)
    for start, end, nets in ((LEFT, RIGHT, "left middle right"),
                             (RIGHT, LEFT, "right middle left")):
        for one in start:
            for other in end:
                pair = of_pair(found, one, other, "over")
                check(pair, one, other, done.output)
                for route in pair:
                    check([hop.by for hop in route.hops] ==
                          [f"{net} tcp" for net in nets.split()], route)


def killed_in_the_middle(lab, victim):
    """The output of a job that has lost the gateway on a node."""
    stop = lab.dir / f"stop.{victim}"
    stop.unlink(missing_ok=True)
    running = subprocess.Popen(
        lab.at(lab.nodes[0], *job(lab, "exchange_loop", stop)), env=lab.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    text = b""

    def read_until(word, count):
        nonlocal text
        while text.count(word) < count:
            ready, _, _ = select.select([running.stdout], [], [], LIMIT_S)
            check(ready, "no", word, "in", text)
            piece = os.read(running.stdout.fileno(), 65536)
            check(piece, "output ended:", text)
            text += piece

    read_until(b"round", 3)
    (pid,) = lab.pids(victim, GATEWAY)
    os.kill(pid, signal.SIGKILL)
    read_until(b"is lost", 1)
    read_until(b"round", text.count(b"round") + 3)
    stop.touch()
    rest, _ = running.communicate(timeout=LIMIT_S)
    text = (text + rest).decode()
    check(running.returncode == 0 and "ok\n" in text, running.returncode, text)
    return text


def kill_until_all_others_tell(lab, victim):
    """The output of such a job of which nobody else lacks figures: they have
    seconds for that, which a busy machine may take."""
    for _ in range(5):
        text = killed_in_the_middle(lab, victim)
        check(f"incomplete: the gateway on node {victim} gave no figures" in
              text, text)
        if text.count("gave no figures") == 1 and \
                "without giving" not in text:
            return text
    raise AssertionError(text)


def a_lost_gateway_leaves_the_others_figures(lab):
    """The second gateway of a way dies: the first one knows what it sent."""
    text = kill_until_all_others_tell(lab, "h0")
    found = [route for one in LEFT for other in RIGHT
             for route in of_pair(routes(text), one, other, "over")
             if route.size != "-"]
    before = [route for route in found if "h0" in route.way]
    after = [route for route in found if "h0" not in route.way]
    check(before and after, text)
    for route in before:
        check(route.hops[0].counts and route.hops[1].counts and
              not route.hops[2].counts and route.counts[4] == 0, route)
    for route in after:
        check(all(hop.counts for hop in route.hops) and
              route.hops[-1].start == "h1", route)


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "chain.yaml") as lab:
            for case in (hops_carry_what_interfaces_count,
                         a_lost_gateway_leaves_the_others_figures):
                case(lab)
                print("ok     ", case.__name__.replace("_", " "), flush=True)
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
