#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Messages that are cut into chunks on their way through gateways.

usage: chunks_test.py BUILD

All sizes arrive as they were sent, over one gateway and over two, sealed and
not, and with the smallest window; long ones take the time over shaped links
that `mdconfig explain` foretells. Exit status 77 where namespaces cannot be
had.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import netlab  # noqa: E402
from rig_test import check  # noqa: E402

LIMIT_S = 100
MOST = 4 << 20
# A shaped link runs ahead by no more than two packets: little beside the
# shortest message that is timed.
BURST = 3200
ERROR = 0.10  # of the time foretold
MEASURE_S = 60  # to measure one size, on a machine that does more
TRIPS = {64 << 10: 20, 256 << 10: 8, 1 << 20: 3, 4 << 20: 2}


def build(lab, name):
    target = lab.dir / name
    if not target.exists():
        subprocess.run([str(lab.tool("mpicc")), "-O2", "-o", str(target),
                        str(HERE / f"{name}.c")], check=True, timeout=LIMIT_S)
    return target


def pair(lab, nodes, *words, env=None):
    """The output of a job of two ranks on two nodes."""
    done = lab.chempirun("-n", "2", "--nodes", nodes, "--ppn", "1", *words,
                         limit_s=LIMIT_S, env=env)
    check(done.ok, nodes, words, done)
    return done.output


def all_sizes_arrive(lab, nodes, *options, env=None):
    said = pair(lab, nodes, *options, build(lab, "sizes"), str(MOST), env=env)
    found = re.search(r"^sizes: (\d+) of (\d+) are right$", said, re.M)
    check(found and found[1] == found[2] and int(found[2]) > 100, said)


def chunks_are_counted_as_messages(lab):
    """One message of 60,000 bytes a trip: the hop to the gateway shows how
    many frames it was."""
    said = pair(lab, "a,b", "--trace-routes", build(lab, "pingpong"), "60000",
                "10")
    way = re.search(r"^a +b +\d+ +\S+ gate eager +over g +(\d+) +(\d+) ", said,
                    re.M)
    check(way and int(way[1]) == 20 and int(way[2]) == 20 * 60000, said)
    hops = re.findall(r"^  a +g +hop 1 .* frames +(\d+) ", said, re.M)
    check(sum(map(int, hops)) >= 20 * 8, said)


def foretold_us(lab, nodes, size):
    """Of a message, and the chunks that it is cut into."""
    done = lab.run(lab.tool("mdconfig"), "explain", "--json", lab.description,
                   *nodes.split(","), str(size))
    check(done.ok, done)
    told = json.loads(done.output)
    return told["us"], told["chunk_bytes"]


def best_trip_us(lab, size, count, want):
    """Whatever else the machine does only adds: the best trip counts, of more
    jobs while the machine has something else to do."""
    best = float("inf")
    end = time.monotonic() + MEASURE_S
    while best > want * (1 + ERROR) and time.monotonic() < end:
        said = pair(lab, "a,b", build(lab, "pingpong"), str(size), str(count))
        found = re.search(r"^pingpong (\S+) ", said, re.M)
        check(found, said)
        best = min(best, float(found[1]))
    return best


def time_is_as_foretold(lab):
    wrong = []
    for size, count in TRIPS.items():
        want, chunk = foretold_us(lab, "a,b", size)
        best = best_trip_us(lab, size, count, want)
        part = best / want
        print(f"{size:8} bytes in chunks of {chunk:6}: {want:9.0f} us foretold,"
              f" {best:9.0f} measured, {part:.3f}", flush=True)
        if abs(part - 1) > ERROR:
            wrong.append(size)
    check(not wrong, wrong)


def body():
    build_dir = sys.argv[1]
    netlab.BURST_MIN = BURST
    netlab.BURST_S = 0
    with netlab.Lab(build_dir, "chunks.yaml") as lab:
        all_sizes_arrive(lab, "a,b")
        all_sizes_arrive(lab, "a,b", "--secure")
        all_sizes_arrive(lab, "a,b", env={"CHEMPI_GATE_WINDOW": "131072"})
        chunks_are_counted_as_messages(lab)
        lab.shape("left", "100mbit")
        lab.shape("right", "80mbit")
        time_is_as_foretold(lab)
    print("chunks over one gateway: ok", flush=True)
    return 0


def two():
    with netlab.Lab(sys.argv[1], "chain.yaml") as lab:
        all_sizes_arrive(lab, "a0,b1")
        all_sizes_arrive(lab, "a0,b1", "--secure")
    print("chunks over two gateways: ok", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(netlab.inside(body) or netlab.inside(two))
