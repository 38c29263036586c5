# SPDX-License-Identifier: BSD-3-Clause
"""Keep what was measured, group by group, and write it into a page.

bench/results.tsv holds a line for each point of each group, from the last run
in which the group was recorded; the page's second part is made of it.
"""
import csv
import pathlib
import platform
import subprocess

import plan
import stats

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.tsv"
PAGE = HERE.parent / "doc" / "benchmarks.md"
MARK = "<!-- The rest is written by bench/run --record. -->\n"
COLUMNS = ("group", "point", "x", "unit", "values", "ratio", "low", "high",
           "rounds", "bound", "others", "host", "changed", "with")
WORST = 25
FEW_NAMES = 3  # up to which a group's table has a line for each size


def versions():
    """What ran: machine and peers, as one clause."""
    words = ["Linux " + ".".join(platform.release().split(".")[:2])]
    for name, command in (("MPICH", ["mpichversion"]),
                          ("Open MPI", ["ompi_info", "--version"])):
        try:
            text = subprocess.run(command, text=True, check=True, timeout=20,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        found = [word.lstrip("v") for word in text.split()
                 if word.lstrip("v")[:1].isdigit()]
        if found:
            words.append(f"{name} {found[0]}")
    return ", ".join(words)


def read(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def line_of(row, found, ran):
    """found: the conditions of the row's group."""
    values = " ".join(f"{who}={value:.6g}"
                      for who, value in row.values.items())
    return {"group": row.group.name, "point": row.name, "x": str(row.x),
            "unit": row.unit, "values": values, "ratio": f"{row.ratio:.3f}",
            "low": f"{row.low:.3f}", "high": f"{row.high:.3f}",
            "rounds": str(row.rounds), "bound": str(found.bound),
            "others": f"{found.others:.2f}", "host": found.text(),
            "changed": str(found.changed), "with": ran}


def merge(lines, fresh, is_whole=True):
    """The groups in fresh, or if they are not whole their points, take the
    place of what lines has of them; groups that are measured no more go. In
    the plan's order."""
    measured = {line["group"] for line in fresh} if is_whole else set()
    kept = {(line["group"], line["point"], line["x"], line["unit"]): line
            for line in [*(line for line in lines
                           if line["group"] not in measured), *fresh]}
    order = {group.name: number
             for number, group in enumerate(plan.groups())}
    return sorted((line for line in kept.values() if line["group"] in order),
                  key=lambda line: order[line["group"]])


def write(path, lines):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t",
                                lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def values_of(line):
    """What each MPI, or each of our ways, reached."""
    return {who: float(value) for who, value in
            (word.split("=") for word in line["values"].split())}


def rows_of(lines):
    """What was recorded, as if it had just been measured."""
    groups = {group.name: group for group in plan.groups()}
    rows = []
    for line in lines:
        values = values_of(line)
        ratio = float(line["ratio"])
        group = groups[line["group"]]
        rows.append(stats.Row(
            group, line["point"], int(line["x"]), line["unit"], values,
            int(line["rounds"]), stats.better_of(values, line["unit"])
            if ratio else "", ratio, float(line["low"]), float(line["high"]),
            target_of(group, line)))
    return rows


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def target_of(group, line):
    few = group.small_target and int(line["x"]) <= 8
    return group.small_target if few else group.target


def is_over(group, line):
    target = target_of(group, line)
    return bool(target) and float(line["ratio"]) > target


def ratio_text(group, line):
    ratio = float(line["ratio"])
    if not ratio:
        return "-"
    return f"**{ratio:.2f}**" if is_over(group, line) else f"{ratio:.2f}"


def table(head, rows, words=1):
    """Markdown; the first columns are words, the others are figures."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return ["| " + " | ".join(cells) + " |"
            for cells in (head, rule, *rows)] + [""]


def by_size(group, lines):
    values = [values_of(line) for line in lines]
    who = list(dict.fromkeys(name for found in values for name in found))
    rows = [[f"{line['point']} {stats.size_text(int(line['x']))}",
             line["unit"], *(number(found[name]) if name in found else "-"
                             for name in who), ratio_text(group, line),
             f"{float(line['low']):.2f}..{float(line['high']):.2f}"
             if float(line["ratio"]) else ""]
            for line, found in zip(lines, values)]
    return table(["point", "unit", *who, "ratio", "quartiles"], rows)


def cell(group, line, who):
    """One point of a table by names; who: names of the MPIs."""
    values = values_of(line)
    if line["unit"] == stats.PERCENT:
        return " / ".join(number(values[name]) if name in values else "-"
                          for name in who)
    if line["unit"] == stats.RATIO:
        return ratio_text(group, line)
    return f"{ratio_text(group, line)}; {number(values['chempi'])}"


def by_name(group, lines):
    sizes = sorted({int(line["x"]) for line in lines})
    who = list(dict.fromkeys(name for line in lines
                             for name in values_of(line)))
    units = {line["unit"] for line in lines}
    cells = {}
    for line in lines:
        cells.setdefault((line["point"], line["unit"]), {})[
            int(line["x"])] = cell(group, line, who)
    rows = [[name if unit == stats.RATIO else f"{name}, {unit}",
             *(found.get(size, "") for size in sizes)]
            for (name, unit), found in cells.items()]
    words = ["Ratio." if units == {stats.RATIO} else "Ratio; ours."]
    if stats.PERCENT in units:
        words.append(f"In {stats.PERCENT}: {' / '.join(who)}.")
    return [" ".join(words), ""] + table(
        ["", *(stats.size_text(size) for size in sizes)], rows)


def group_lines(group, lines):
    names = {line["point"] for line in lines}
    text = [f"### `{group.name}`: {group.title}", ""]
    return text + (by_size if len(names) <= FEW_NAMES else by_name)(
        group, lines)


def group_row(group, lines):
    ratios = [float(line["ratio"]) for line in lines if float(line["ratio"])]
    return [f"`{group.name}`", group.title, str(len(ratios) or len(lines)),
            f"{stats.geometric_mean(ratios):.2f}" if ratios else "-",
            f"{max(ratios):.2f}" if ratios else "-",
            str(sum(is_over(group, line) for line in lines)),
            str(min(int(line["rounds"]) for line in lines)),
            f"{min(int(line['bound']) for line in lines)} of {group.ranks}",
            f"{100 * max(float(line['others']) for line in lines):.0f} %",
            host_text(lines[0])]


def host_text(line):
    """Core to core and an addition; empty where nobody looked."""
    if not line["host"]:
        return "-"
    trip, add = line["host"].split()
    return f"{trip} ns, {add} ns"


def ran_with(parts):
    """Kernel and peers, with the groups' names where they are not the same."""
    found = {}
    for name, lines in parts.items():
        found.setdefault(lines[0]["with"], []).append(f"`{name}`")
    return [f"{ran}." if len(found) == 1 else f"{', '.join(names)}: {ran}."
            for ran, names in found.items()] + [""]


def page_of(lines):
    """The written part of the page."""
    groups = {group.name: group for group in plan.groups()}
    parts = {}
    for line in lines:
        parts.setdefault(line["group"], []).append(line)
    if not lines:
        return "Nothing is recorded yet.\n"
    compared = [line for line in lines if float(line["ratio"])]
    worst = sorted(compared, key=lambda line: -float(line["ratio"]))[:WORST]
    text = ["## The worst points", ""]
    text += table(["point", "unit", "CHEMPI", "better peer", "ratio",
                   "quartiles", "target"], [
        [f"`{line['group']}` {line['point']} "
         f"{stats.size_text(int(line['x']))}", line["unit"],
         number(values_of(line)["chempi"]), better(line),
         ratio_text(groups[line["group"]], line),
         f"{float(line['low']):.2f}..{float(line['high']):.2f}",
         target_text(groups[line["group"]], line)] for line in worst])
    text += ["## The groups", ""]
    text += table(["group", "what", "points", "geometric mean", "worst",
                   "over target", "rounds", "ranks bound", "other programs",
                   "host"],
                  [group_row(groups[name], part)
                   for name, part in parts.items()], words=2)
    text += ran_with(parts)
    text += ["## Every point", ""]
    for name, part in parts.items():
        text += group_lines(groups[name], part)
    return "\n".join(text).rstrip("\n") + "\n"


def better(line):
    values = values_of(line)
    name = stats.better_of(values, line["unit"])
    return f"{number(values[name])} ({name})" if name else "own"


def target_text(group, line):
    target = target_of(group, line)
    return f"{target:.2f}" if target else ""


def record(rows, conditions, results=RESULTS, page=PAGE, is_whole=True):
    """conditions: by group's name; is_whole: rows are all points of their
    groups. The page must have the mark."""
    ran = versions()
    lines = merge(read(results),
                  [line_of(row, conditions[row.group.name], ran)
                   for row in rows],
                  is_whole)
    text = page.read_text(encoding="utf-8")
    if MARK not in text:
        raise SystemExit(f"bench: {page} has no line {MARK.strip()}")
    write(results, lines)
    page.write_text(text[:text.index(MARK)] + MARK + "\n" + page_of(lines),
                    encoding="utf-8")
