#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gateways in a ring never wait for each other.

usage: ring_test.py BUILD

Where a gateway waited for room at the next one, a flood all the way round
would stop. Exit status 77 where namespaces cannot be had.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402
from rig_test import build_program, check  # noqa: E402

NODES = 6
FULL = 1 << 20  # bytes: some hundred messages and their rendezvous


def description_forms_a_circle(lab):
    done = lab.run(lab.tool("mdconfig"), "check", lab.description)
    check(done.ok and "in a circle" in done.output, done)


def everybody_floods_everybody(lab):
    """Many large messages of all to all, in random order."""
    program = build_program(lab, "order")
    done = lab.chempirun("-n", str(NODES), "--ppn", "1", program, "4", "60",
                         "400000", limit_s=200)
    check(done.ok, done)
    for number in range(NODES):
        sent, _ = lab.carried(f"n{number}", f"l{number}")
        check(sent > FULL, f"l{number}", sent)


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "ring.yaml") as lab:
            for case in (description_forms_a_circle,
                         everybody_floods_everybody):
                case(lab)
                print("ok     ", case.__name__.replace("_", " "), flush=True)
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
