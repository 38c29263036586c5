#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Twelve nodes on three networks that meet in two gateways only.

usage: twelve_test.py BUILD

The ordering torture test runs across the gateways, and goes on when one of
them is killed in the middle. Exit status 77 where namespaces cannot be had.
"""
import os
import pathlib
import select
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402
from rig_test import build_program, check  # noqa: E402

LIMIT_S = 500  # of one job: sanitizers on a busy machine
RANKS = 12
GATEWAY = "chempi-gateway"[:15]
UNDER_WAY = 8 << 20  # bytes through a gateway: a part of what there will be
FREE = {"a": "none", "b": "none", "c": "none"}


def on_every_node(lab, program, *args):
    """The command of a job with a rank on every node."""
    return [lab.tool("chempirun"), "-n", str(RANKS), "--ppn", "1",
            build_program(lab, program), *args]


def torture(lab, rounds):
    return on_every_node(lab, "order", "4", str(rounds), "400000")


def passed_through(lab):
    """Bytes that each gateway has received and sent."""
    return {node: sum(sum(lab.carried(node, network)) for network in "abc")
            for node in ("g0", "g1")}


def both_gateways_share_the_load(lab):
    before = passed_through(lab)
    done = lab.run(*torture(lab, 40), limit_s=LIMIT_S)
    check(done.ok, done)
    for node, count in passed_through(lab).items():
        check(count - before[node] > UNDER_WAY, node, count - before[node])


def finishes_without_one(lab, command, node, under_way):
    """Kill a gateway when so many bytes have passed it."""
    before = passed_through(lab)[node]
    job = subprocess.Popen(lab.at(lab.nodes[0], *command), env=lab.env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    while passed_through(lab)[node] - before < under_way:
        check(job.poll() is None, "over too early", job.returncode)
        select.select([], [], [], 0.01)
    victims = lab.pids(node, GATEWAY)
    check(len(victims) == 1, victims)
    check(job.poll() is None, "over too early", job.returncode)
    os.kill(victims[0], signal.SIGKILL)
    said, _ = job.communicate(timeout=LIMIT_S)
    check(job.returncode == 0 and "ok\n" in said, job.returncode, said)


def a_gateway_may_be_killed_in_the_middle(lab):
    finishes_without_one(lab, torture(lab, 120), "g1", UNDER_WAY)


def so_it_may_under_collectives(lab):
    finishes_without_one(lab, on_every_node(lab, "data_movement"), "g0", UNDER_WAY)


def without_any_gateway_the_job_says_who_is_cut_off(lab):
    command = torture(lab, 2000)
    before = passed_through(lab)["g1"]
    job = subprocess.Popen(lab.at(lab.nodes[0], *command), env=lab.env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    while passed_through(lab)["g1"] - before < UNDER_WAY:
        check(job.poll() is None, "over too early", job.returncode)
        select.select([], [], [], 0.01)
    for node in ("g0", "g1"):
        for pid in lab.pids(node, GATEWAY):
            os.kill(pid, signal.SIGKILL)
    said, _ = job.communicate(timeout=LIMIT_S)
    check(job.returncode != 0 and "gateway" in said and
          ("g0" in said or "g1" in said), job.returncode, said)


CASES = (both_gateways_share_the_load, a_gateway_may_be_killed_in_the_middle,
         so_it_may_under_collectives,
         without_any_gateway_the_job_says_who_is_cut_off)


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "twelve.yaml", FREE) as lab:
            for case in CASES:
                case(lab)
                print("ok     ", case.__name__.replace("_", " "), flush=True)
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
