#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a rank had sent before it died arrives, however slow the network is.

usage: last_words_test.py BUILD

The launcher's word of the death passes over another network, and comes long
before the last message. Who waits for that uses no processor. (In front of a
gateway an acknowledgement may still come for the dead rank, whose system then
forgets the rest: a race, which is not tested.) Exit status 77 where namespaces
cannot be had.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402
from rig_test import check  # noqa: E402

LIMIT_S = 100
KILLED = 137
SLOW = "256kbit"
COUNT, SIZE = 20, 1500  # half of it passes at once, and a system takes it all
BUSY = 0.5  # of the time at most


def last_words_arrive(lab, nodes):
    program = lab.dir / "last_words"
    if not program.exists():
        subprocess.run([str(lab.tool("mpicc")), "-O2", "-o", str(program),
                        str(HERE / "last_words.c")], check=True,
                       timeout=LIMIT_S)
    done = lab.chempirun("--survive", "-n", "2", "--nodes", nodes, "--ppn",
                         "1", program, str(COUNT), str(SIZE), limit_s=LIMIT_S)
    found = re.search(r"^received (\d+), then class (\d+) \((\d+)\), "
                      r"busy (\S+) of (\S+) s$", done.output, re.M)
    check(found and done.status == KILLED, done)
    print(f"        {found[0]}", flush=True)
    check(int(found[1]) == COUNT and found[2] == found[3], done)
    check(float(found[4]) < BUSY * float(found[5]), done)


def of_a_neighbour(lab):
    lab.shape("left", SLOW)
    last_words_arrive(lab, "g,a")


def behind_a_gateway(lab):
    lab.shape("left", "1gbit")
    lab.shape("right", SLOW)
    last_words_arrive(lab, "b,a")


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "triple.yaml") as lab:
            for case in (of_a_neighbour, behind_a_gateway):
                case(lab)
                print("ok     ", case.__name__.replace("_", " "), flush=True)
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
