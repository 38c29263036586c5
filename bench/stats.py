# SPDX-License-Identifier: BSD-3-Clause
"""Ratios of what was measured, and whether they reach their targets."""
import dataclasses
import math
import statistics

import plan

BIGGER_IS_BETTER = {"GB/s", "M/s"}
RATIO = "ratio"  # unit of what a program has compared by itself
PERCENT = "%"    # of what each MPI finds by a measure of its own: for
                 # information, beside what is compared


@dataclasses.dataclass
class Row:
    """One point: what each MPI reached, and ours against the better peer."""
    group: object
    name: str
    x: int
    unit: str
    values: dict          # contender -> median
    rounds: int
    peer: str = ""        # the better of the others
    ratio: float = 0.0    # above 1: we are slower; 0: nothing to compare
    low: float = 0.0      # quartiles of the ratios of single rounds
    high: float = 0.0
    target: float = 0.0

    @property
    def mark(self):
        if not self.target or not self.ratio:
            return ""
        return "ok" if self.ratio <= self.target else "OVER"

    @property
    def label(self):
        return f"{self.name} {size_text(self.x)}"


def size_text(x):
    for factor, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if x >= factor and x % factor == 0:
            return f"{x // factor}{letter}"
    return str(x)


def slowness(ours, theirs, unit):
    return theirs / ours if unit in BIGGER_IS_BETTER else ours / theirs


def better_of(values, unit):
    """Whose value is the better one of others than ours; empty: nobody's."""
    others = [who for who in values if who != "chempi"]
    pick = max if unit in BIGGER_IS_BETTER else min
    return pick(others, key=lambda who: values[who]) if others else ""


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def row_of(group, key, samples):
    """samples: contender -> {round: value} of one point."""
    name, x, unit = key
    values = {who: statistics.median(by_round.values())
              for who, by_round in samples.items() if by_round}
    row = Row(group, name, x, unit, values,
              len(samples.get("chempi", {})), target=group.target)
    if group.small_target and x <= 8:
        row.target = group.small_target
    if unit == RATIO and "chempi" in values:
        row.ratio = values["chempi"]
        row.low, row.high = quartiles(list(samples["chempi"].values()))
        return row
    peer = better_of(values, unit)
    if "chempi" not in values or not peer or not group.peers or \
            unit == PERCENT:
        return row
    row.peer = peer
    mine, theirs = samples["chempi"], samples[row.peer]
    ratios = [slowness(mine[k], theirs[k], unit)
              for k in mine if k in theirs and mine[k] > 0 and theirs[k] > 0]
    if ratios:
        row.ratio = statistics.median(ratios)
        row.low, row.high = quartiles(ratios)
    return row


def rows_of(group, data):
    """data: list of rounds, each contender -> {(name, x, unit): value}."""
    keys = {}
    for number, by_contender in enumerate(data):
        for who, points in by_contender.items():
            for key, value in points.items():
                keys.setdefault(key, {}).setdefault(who, {})[number] = value
    return [row_of(group, key, samples) for key, samples in keys.items()]


def geometric_mean(ratios):
    good = [ratio for ratio in ratios if ratio > 0]
    if not good:
        return 0.0
    return math.exp(sum(math.log(ratio) for ratio in good) / len(good))


def judgements(rows):
    """(text, value, target, reached) for what is not a single point."""
    result = []
    for prefix in ("shm", "tcp"):
        part = [row.ratio for row in rows if row.group.mean_target and
                row.group.name.startswith(prefix)]
        mean = geometric_mean(part)
        if mean:
            result.append((f"{prefix}: geometric mean of {len(part)} points",
                           mean, 1.0, mean <= 1.0))
    for row in rows:
        most = (row.group.most or {}).get(row.name)
        if most and "chempi" in row.values:
            value = row.values["chempi"]
            result.append((f"{row.group.name}: {row.name}, {row.unit}", value,
                           most, value <= most))
        if row.group.name == "idle" and "chempi" in row.values:
            used = row.values["chempi"]
            result.append((f"CPU of {row.x} blocked ranks, s", used,
                           plan.IDLE_LIMIT_S, used <= plan.IDLE_LIMIT_S))
        if row.group.name == "threads-lock" and "chempi" in row.values:
            cost = row.values["chempi"]
            result.append(("lock of a call, ns", cost, plan.LOCK_LIMIT_NS,
                           cost <= plan.LOCK_LIMIT_NS))
    costs = {row.x: row.values["chempi"] for row in rows
             if row.group.name == "matching" and "chempi" in row.values}
    if len(costs) > 1:
        most = max(costs)
        few = max((x for x in costs if 100 <= x < most), default=min(costs))
        few = 100 if 100 in costs else few
        growth = costs[most] / costs[few]
        result.append((f"cost of a match, {most} posted / {few} posted",
                       growth, plan.MATCHING_GROWTH,
                       growth <= plan.MATCHING_GROWTH))
    return result
