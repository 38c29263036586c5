# SPDX-License-Identifier: BSD-3-Clause
"""MPI itself over emulated adapters: ping-pong of bench/latency.c between two
virtual nodes whose cards have a personality; and on one node, without."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import points

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 120
HOST = "host"    # one node, shared memory, no personality
EXPERIMENT = "mpi"
SIZES = [0, 1, 4, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10,
         8 << 10, 12 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10, 128 << 10,
         256 << 10, 512 << 10, 1 << 20]

# Type of network of each card.
NETWORKS = {"dolphin-d312": "sci", "dolphin-d310": "sci",
            "chemnitz-d310": "sci", "dolphin-d339": "sci",
            "giganet-clan": "via", "fast-ethernet": "via",
            "myrinet-gm": "myrinet"}


def description(kind, card):
    return "\n".join(["nodes: [ 'n[0-1]' ]", "networks:", "  net:",
                      f"    type: {kind}", f"    card: {card}",
                      "    attach: all", ""])


def must(words, **options):
    done = subprocess.run(
        [str(word) for word in words], text=True, check=False,
        timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        sys.exit(f"papers: {words[0]} failed: "
                 f"{done.stderr.strip() or done.returncode}")
    return done.stdout


class Bench:
    """The program and the tables, in a folder of their own."""

    def __init__(self, build, folder, time_ms):
        self.build, self.folder = build, folder
        self.environment = {**os.environ, "BENCH_POINT_MS": f"{time_ms:g}"}
        self.program = folder / "latency"
        must([build / "programs/wrappers/mpicc", "-std=c11", "-D_GNU_SOURCE", "-O2",
              "-o", self.program, HERE.parent / "latency.c",
              HERE.parent / "bench.c"])
        for name, kind in NETWORKS.items():
            file = folder / f"{name}.yaml"
            file.write_text(description(kind, name), encoding="utf-8")
            must([build / "mdconfig" / "mdconfig", "compile", "-o",
                  folder / name, file])

    def run(self, name):
        words = [self.build / "chempid" / "chempirun", "-n", "2"]
        environment = dict(self.environment)
        if name != HOST:
            words += ["--virtual", "n0,n1", "--ppn", "1", "--network",
                      self.folder / name]
            environment["CHEMPI_SCIVIA_PERSONALITY"] = str(
                points.ROOT / "etc" / "personalities" / f"{name}.yaml")
        output = must([*words, self.program, *SIZES], env=environment)
        return {int(size): float(us) for size, us in
                re.findall(r"^point latency (\d+) (\S+) us$", output, re.M)}


def run_all(known, build, time_ms, passes):
    """Add the least of all passes to the points that are known."""
    with tempfile.TemporaryDirectory(prefix="papers-") as folder:
        bench = Bench(build.resolve(), pathlib.Path(folder), time_ms)
        for turn in range(passes):
            for name in (*NETWORKS, HOST):
                key = (name, EXPERIMENT)
                known.us[key] = points.lower_envelope(
                    known.us.get(key, {}), bench.run(name))
            print(f"  MPI: pass {turn + 1} of {passes}", file=sys.stderr)
