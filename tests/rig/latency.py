#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a gateway adds to the latency of two links.

    latency.py BUILD [--rounds N] [--size BYTES] [--free]

Nodes a, g and b of triple.yaml in network namespaces: a round measures a
ping-pong between a and g, between g and b, and between a and b, whose messages
the gateway process on g forwards; then what the last takes beyond the sum of
the others. Each round trip is timed by itself. Links are shaped as triple.yaml
says, or not at all (--free). From 64 KiB on the last line says what part of the
slower link's bandwidth the gateway passes on.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402

PAIRS = ("a,g", "g,b", "a,b")
KINDS = ("best", "tenth", "median", "mean")  # of the trips of one run
TARGET_US = 15.0
TARGET_PART = 0.9  # of the slower link's bandwidth
LONG_BYTES = 65536
LIMIT_S = 60


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=10000,
                        help="round trips of one figure")
    parser.add_argument("--size", type=int, default=0, help="bytes")
    parser.add_argument("--free", action="store_true")
    return parser.parse_args()


def build(lab):
    target = lab.dir / "pingpong"
    subprocess.run([str(lab.tool("mpicc")), "-O2", "-o", str(target),
                    str(HERE / "pingpong.c")], check=True, timeout=LIMIT_S)
    return target


def latencies(lab, program, nodes, options):
    """Of half a round trip between two nodes, us: as KINDS says."""
    done = lab.chempirun("-n", "2", "--nodes", nodes, "--ppn", "1", program,
                         str(options.size), str(options.count),
                         limit_s=LIMIT_S)
    found = re.search(r"^pingpong (.*)$", done.output, re.M)
    if not done.ok or not found:
        raise netlab.LabError(f"no figure for {nodes}: {done}")
    return [float(word) for word in found[1].split()]


def print_row(name, values):
    print(f"{name:<8}" + "".join(f"{x:9.1f}" for x in values), flush=True)


def tell_latency(medians):
    beyond = statistics.median(row[-1] for row in medians)
    print(f"a gateway adds {beyond:.1f} us (target {TARGET_US:g}) "
          f"{'ok' if beyond <= TARGET_US else 'OVER'}")


def tell_bandwidth(medians, size):
    slower = statistics.median(max(row[:2]) for row in medians)
    both = statistics.median(row[3] for row in medians)
    part = slower / both
    print(f"through a gateway {size / both:.1f} MB/s, {part:.2f} of the slower "
          f"link's {size / slower:.1f} (target {TARGET_PART:g}) "
          f"{'ok' if part >= TARGET_PART else 'BELOW'}")


def main():
    options = parse()
    rates = {"left": "none", "right": "none"} if options.free else {}
    rows = {kind: [] for kind in KINDS}

    def a_round(lab, program):
        figures = [latencies(lab, program, nodes, options) for nodes in PAIRS]
        for kind, left, right, both in zip(KINDS, *figures):
            total = left + right
            rows[kind].append((left, right, total, both, both - total))
        print_row("median", rows["median"][-1])

    def body():
        print(" " * 8 + "".join(f"{name:>9}" for name in (
            "a-g", "g-b", "sum", "a-g-b", "beyond")) + "  us, a row a round")
        with netlab.Lab(options.build, "triple.yaml", rates) as lab:
            program = build(lab)
            for _ in range(options.rounds):
                a_round(lab, program)
        print("medians of the rounds")
        for kind in KINDS:
            print_row(kind, map(statistics.median, zip(*rows[kind])))
        if options.size >= LONG_BYTES:
            tell_bandwidth(rows["median"], options.size)
        else:
            tell_latency(rows["median"])
        return 0
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
