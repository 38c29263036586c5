#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Large clusters compile within bounds of time, memory and size.

usage: scale.py MDCONFIG [--curve]

Compiles 10,000 nodes in 200 racks, in the shapes that make_racks.py knows,
and holds the results against the limits below. --curve prints instead how
time, memory and size grow, first with the number of classes of nodes at
10,000 nodes, then with the number of nodes at 20 racks.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 10.0  # of its own; writing the tables takes the system's time, too
ATTEMPTS = 3    # the least counts: who shares a core takes longer
LIMIT_BYTES = 1 << 30
LIMIT_TABLE = 1 << 20
SHAPES = ("flat", "full", "racks", "figures")


def describe(path, shape, racks, nodes):
    with open(path, "w", encoding="utf-8") as out:
        subprocess.run([sys.executable, str(HERE / "make_racks.py"), shape,
                        "--racks", str(racks), "--nodes", str(nodes)],
                       stdout=out, check=True)


def compile_racks(mdconfig, shape, racks, nodes, folder):
    """Wall, own and system seconds, bytes of memory, largest table, classes."""
    path = folder / "racks.yaml"
    describe(path, shape, racks, nodes)
    shown = subprocess.run([mdconfig, "show", str(path)], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    start = time.monotonic()
    child = subprocess.Popen(
        [mdconfig, "compile", str(path), "-o", str(folder / "tables")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES)))
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if child.returncode:
        raise SystemExit(f"{shape}: mdconfig compile: exit code "
                         f"{child.returncode}")
    table = int(re.search(r"at most (\d+) bytes", said).group(1))
    classes = 1 + max(int(number) for number in re.findall(
        r"^(?:class (\d+):)", shown, re.M)) if "class " in shown else 0
    more = re.search(r"and (\d+) more classes", shown)
    classes += int(more.group(1)) if more else 0
    return (wall, used.ru_utime, used.ru_stime, used.ru_maxrss * 1024, table,
            classes)


HEAD = (f"{'shape':<8} {'racks':>5} {'nodes':>6} {'classes':>7} "
        f"{'wall s':>7} {'own s':>6} {'sys s':>6} {'MiB':>6} {'table KiB':>9}")


def row(mdconfig, shape, racks, nodes):
    with tempfile.TemporaryDirectory(prefix="chempi-scale-") as scratch:
        found = compile_racks(mdconfig, shape, racks, nodes,
                              pathlib.Path(scratch))
    wall, own, system, memory, table, classes = found
    print(f"{shape:<8} {racks:>5} {nodes:>6} {classes:>7} {wall:>7.2f} "
          f"{own:>6.2f} {system:>6.2f} {memory / (1 << 20):>6.1f} "
          f"{table / 1024:>9.1f}",
          flush=True)
    return found


def curve(mdconfig):
    print("mdconfig compile: growth with the number of classes, then with "
          "the number of nodes")
    print(HEAD)
    for shape in ("racks", "figures", "limits"):
        for racks in (50, 100, 200, 250):
            row(mdconfig, shape, racks, 10000)
    for nodes in (64, 640, 2500, 4800):
        row(mdconfig, "racks", 20, nodes)
    for shape in ("flat", "full"):
        row(mdconfig, shape, 200, 10000)


def main():
    mdconfig = os.path.abspath(sys.argv[1])
    if "--curve" in sys.argv[2:]:
        curve(mdconfig)
        return 0
    failed = 0
    print(HEAD)
    for shape in SHAPES:
        for _ in range(ATTEMPTS):
            _, own, _, memory, table, _ = row(mdconfig, shape, 200, 10000)
            if own <= LIMIT_S:
                break
        if own > LIMIT_S or memory > LIMIT_BYTES or table > LIMIT_TABLE:
            print(f"{shape}: beyond {LIMIT_S:g} s, {LIMIT_BYTES} bytes of "
                  f"memory or {LIMIT_TABLE} bytes of a table")
            failed += 1
    print(f"{len(SHAPES) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
