# SPDX-License-Identifier: BSD-3-Clause
"""What the simulator of large jobs prints, and how it grows."""
import collections
import math
import subprocess

Cost = collections.namedtuple(
    "Cost", "ranks nodes ns steps allocations peak kept")
Size = collections.namedtuple(
    "Size", "ranks nodes classes table daemons remotes")


def run(program, per_node, per_rack, runs, ranks):
    """Costs by (stage, bearer), and the sizes of the jobs."""
    said = subprocess.run(
        [program, str(per_node), str(per_rack), str(runs),
         *[str(count) for count in ranks]],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    costs, sizes = {}, []
    for line in said.splitlines():
        kind, rest = line.split(" ", 1)
        fields = rest.split("|")
        if kind == "cost":
            costs.setdefault(tuple(fields[:2]), []).append(
                Cost(*map(int, fields[2:])))
        else:
            sizes.append(Size(*map(int, fields)))
    return costs, sizes


def exponent(points):
    """Of y = c x^e, by least squares over the logarithms; 0 without points
    above 0."""
    logs = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    if len(logs) < 2:
        return 0.0
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / \
        sum((x - mean_x) ** 2 for x, _ in logs)


def n_log_n(small, large):
    """How much more n log n is at the larger number."""
    return large * math.log(large) / (small * math.log(small))
