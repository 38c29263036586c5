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

SCI = ("sci", {"shared-memory": "latency: 4 us, bandwidth: 70 MB/s, max: none"})
VIA = ("via", {})
# Type of network, and its protocols where the defaults do not fit: the D312 has
# both halves, and its figures are the defaults.
NETWORKS = {"dolphin-d312": ("sci", {}), "dolphin-d310": SCI,
            "chemnitz-d310": SCI, "dolphin-d339": SCI, "giganet-clan": VIA,
            "fast-ethernet": VIA, "myrinet-gm": VIA}


def description(kind, protocols):
    lines = ["nodes: [ 'n[0-1]' ]", "networks:", "  net:",
             f"    type: {kind}", "    device: scivia"]
    if protocols:
        lines += ["    protocols:"]
        lines += [f"      {name}: {{ {text} }}"
                  for name, text in protocols.items()]
    return "\n".join([*lines, "    attach: all", ""])


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
        for name, (kind, protocols) in NETWORKS.items():
            file = folder / f"{name}.yaml"
            file.write_text(description(kind, protocols), encoding="utf-8")
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
