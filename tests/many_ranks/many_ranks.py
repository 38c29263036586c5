#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many ranks on one machine: what each of them costs.

Counts, not times: how often a rank sleeps and is switched to per collective
operation, system calls from its beginning to its end, what it maps, how many
descriptors it has. Each must stay below a bound that does not depend on how
busy the machine is. With --ranks N and --available KIB: one job of that many
ranks that exchange with 20 neighbours, which uses no more memory.
"""
import argparse
import os
import re
import resource
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402

RANKS = 300          # more than the largest of the small sizes anywhere
CALLS = 100
LIMIT_S = 120
VIRTUAL_MAX = 1 << 30  # bytes of addresses that a rank of 300 may map

# Per rank and call. A rank that waits sleeps once; it is switched to once more
# if it gives its core away first, and whenever a stranger takes the core.
SLEEPS_MAX = 1.5
SWITCHES_MAX = 4.0
DESCRIPTORS_MAX = 16
FAULTS_MAX = 400      # of a whole job of barriers, per rank
DESCRIPTORS_LOW = 64  # of a supervisor, but for what it has for its ranks
WAITS = re.compile(r"\b(sched_yield|futex|membarrier|epoll_\w*wait)\(")
SYSTEM_CALLS_MAX = 280  # of one rank, with those of the dynamic linker


class Failed(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def values(output):
    found = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) == 2:
            try:
                found[words[0]] = float(words[1])
            except ValueError:
                pass
    return found


def launch(args, ranks, words, options=(), limit_s=LIMIT_S, virtual=None):
    command = [args.chempirun, "-n", str(ranks), *options, args.program, *words]
    if virtual:
        command = ["sh", "-c", f"ulimit -v {virtual >> 10} && exec \"$@\"",
                   "sh", *command]
    result = jobrun.run(command, timeout_s=limit_s)
    check(result.ok and "ok" in result.output.split(), "failed:",
          " ".join(command), f"(status {result.status}, "
          f"{'over its time, ' if result.timed_out else ''}"
          f"left behind: {result.leftovers})\n{result.output[-2000:]}")
    found = values(result.output)
    found["seconds"] = result.seconds
    return found


def at_most(found, name, bound):
    print(f"  {name}: {found[name]:g} (at most {bound:g})")
    check(found[name] <= bound, name, "is", found[name], "- more than", bound)


def collectives(args):
    for name in ("barrier", "allreduce"):
        found = launch(args, args.ranks, [name, str(CALLS)])
        at_most(found, f"{name}_sleeps", SLEEPS_MAX)
        at_most(found, f"{name}_switches", SWITCHES_MAX)
        at_most(found, "job_faults", FAULTS_MAX)
        at_most(found, "job_mapped_kib", VIRTUAL_MAX >> 10)
        at_most(found, "job_descriptors", DESCRIPTORS_MAX)


def addresses(args):
    """All of it works below a limit of the address space."""
    launch(args, args.ranks, ["allreduce", "3"], virtual=VIRTUAL_MAX)
    launch(args, args.ranks, ["neighbors", "20", "3", "100"],
           virtual=VIRTUAL_MAX)


def system_calls(args):
    """Of one rank in the middle, as strace counts them. How often it gives its
    core away, sleeps and is woken is a matter of who else has the cores."""
    if not shutil.which("strace"):
        print("  no strace here")
        return
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "calls")
        rank = args.ranks // 2
        launch(args, args.ranks, ["barrier", "1"],
               ["--wrap", f"{rank}:strace -f -qq -o {name}"])
        with open(name, encoding="utf-8") as file:
            lines = [line for line in file if "resumed>" not in line and
                     "(" in line and not WAITS.search(line)]
    at_most({"system_calls": len(lines)}, "system_calls", SYSTEM_CALLS_MAX)


def births(args):
    """The supervisor holds several descriptors for each rank. None of them is
    copied for a child, where its exec would have to close it: each is born with
    the supervisor's table, and keeps what lies low there."""
    if not shutil.which("strace"):
        print("  no strace here")
        return
    ranks = 40
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "calls")
        result = jobrun.run(
            ["strace", "-f", "-qq", "-e", "trace=/clone,close_range",
             "-o", name, args.chempirun, "-n", str(ranks), "true"],
            timeout_s=LIMIT_S)
        check(result.ok, "failed:", result.output[-2000:])
        with open(name, encoding="utf-8") as file:
            calls = file.read()
    born = len(re.findall(r"clone3\(\{flags=CLONE_FILES,", calls))
    if not born:
        print("  no clone3 here")
        return
    kept = [int(low) for low in re.findall(
        r"close_range\((\d+), 4294967295, CLOSE_RANGE_UNSHARE", calls)]
    check(born == ranks and len(kept) == ranks, "of", ranks, "ranks", born,
          "are born with the supervisor's descriptors and", len(kept), "part")
    at_most({"kept": max(kept)}, "kept", DESCRIPTORS_LOW)


def as_many(args):
    """As many ranks as asked for."""
    found = launch(args, args.ranks, ["neighbors", "20", "3", "8"],
                   limit_s=args.limit)
    for name in sorted(found):
        print(f"  {name} {found[name]:g}")
    if args.memory:
        used = args.before - found["available_kib"]
        at_most({"used_kib": used}, "used_kib", args.memory << 10)


def available_kib():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1])
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chempirun")
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--limit", type=float, default=LIMIT_S,
                        help="seconds of one job")
    parser.add_argument("--memory", type=int, default=0,
                        help="MiB that a large job may use")
    args = parser.parse_args()
    args.before = available_kib()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files < 4 * args.ranks + 100:
        print(f"skipped: at most {files} open files")
        return 77
    cases = [as_many] if args.ranks > 1024 else [collectives, addresses,
                                               system_calls, births]
    status = 0
    for case in cases:
        print(case.__name__)
        try:
            case(args)
        except Failed as failure:
            print(f"  FAILED: {failure}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
