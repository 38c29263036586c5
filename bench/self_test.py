#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run --record does, without measuring, as TAP."""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import host  # noqa: E402
import page  # noqa: E402
import plan  # noqa: E402
import stats  # noqa: E402
import svg  # noqa: E402

results = []


def check(name, is_good):
    results.append(is_good)
    print(f"{'ok' if is_good else 'not ok'} {len(results)} - {name}")


def rows_of(name, ours, theirs):
    """Two rounds of one point of eight bytes."""
    group = next(group for group in plan.groups() if group.name == name)
    key = ("put" if name.startswith("rma") else "latency", 8, "us")
    return stats.rows_of(group, [{"chempi": {key: ours},
                                  "mpich": {key: 2 * theirs},
                                  "openmpi": {key: theirs}}] * 2)


def record(folder, rows, others=0.0, is_whole=True):
    names = {row.group.name for row in rows}
    found = host.Conditions(2, others, [host.State(110, 0.27),
                                        host.State(48, 0.55),
                                        host.State(112, 0.28)])
    page.record(rows, {name: found for name in names},
                folder / "results.tsv", folder / "page.md", is_whole)
    return (folder / "page.md").read_text(encoding="utf-8")


def test_record(folder):
    (folder / "page.md").write_text("By hand.\n\n" + page.MARK,
                                    encoding="utf-8")
    text = record(folder, rows_of("shm-latency", 0.2, 0.4), 0.25)
    check("what is written by hand stays", text.startswith("By hand.\n"))
    check("a point has its ratio to the better peer",
          "| latency 8 | us | 0.2 | 0.8 | 0.4 | 0.50 | 0.50..0.50 |" in text)
    check("it is said what others used", "| 25 % |" in text)
    check("it is said what the host was like", "| 110 ns, 0.28 ns |" in text)
    text = record(folder, rows_of("rma-shm", 3.0, 1.0))
    check("groups of other runs stay", "| latency 8 | us | 0.2 |" in text)
    check("a point over its target stands out", "| **3.00** |" in text)
    check("the worst point is first",
          text.index("`rma-shm` put 8") < text.index("`shm-latency` latency"))
    text = record(folder, rows_of("rma-shm", 0.5, 1.0))
    check("a group takes its own place",
          "3.00" not in text and text.count("### `rma-shm`") == 1)
    more = [stats.dataclasses.replace(row, x=16)
            for row in rows_of("rma-shm", 0.7, 1.0)]
    text = record(folder, more, is_whole=False)
    check("points alone leave the group's others",
          "| put 8 |" in text and "| put 16 |" in text)
    check("the groups are in the plan's order",
          text.index("### `shm-latency`") < text.index("### `rma-shm`"))
    lines = page.read(folder / "results.tsv")
    lines[0]["group"] = "gone"
    check("a group that is measured no more goes",
          {line["group"] for line in page.merge(lines, [])} == {"rma-shm"})


def test_ratio(folder):
    group = next(group for group in plan.groups()
                 if group.name == "agent-alive")
    key = ("alive", 8, stats.RATIO)
    rows = stats.rows_of(group, [{"chempi": {key: value}}
                                 for value in (1.0, 1.04, 1.2)])
    check("what a program compares by itself is a ratio",
          (rows[0].ratio, rows[0].mark) == (1.04, "OVER"))
    (folder / "page.md").write_text(page.MARK, encoding="utf-8")
    check("the page has it",
          "| alive 8 | ratio | 1.04 | **1.04** |" in record(folder, rows))


def test_host():
    calm = [host.State(100, 0.27), host.State(120, 0.28)]
    check("a host that stays as it is has not changed",
          not host.has_changed(calm))
    check("cores that came nearer are a change",
          host.has_changed([*calm, host.State(48, 0.27)]))
    check("half a core is a change",
          host.has_changed([*calm, host.State(110, 0.55)]))
    check("one core has no way to another",
          not host.has_changed([host.State(0, 0.27), host.State(0, 0.28)]))


def test_most():
    group = next(group for group in plan.groups()
                 if group.name == "launch-1000")
    key = ("launch", 1000, "s")
    rows = stats.rows_of(group, [{"chempi": {key: value}}
                                 for value in (1.2, 1.6, 1.7)])
    check("what nobody is compared with is held to what is good enough",
          stats.judgements(rows) ==
          [("launch-1000: launch, s", 1.6, 1.5, False)])


def test_percent(folder):
    group = next(group for group in plan.groups()
                 if group.name == "icoll-overlap-2")
    points = [{("ibcast", size, "us"): 10.0 * size,
               ("ibcast", size, stats.PERCENT): 40.0}
              for size in (8, 16)]
    mine = {**points[0], **points[1]}
    theirs = {key: 2 * value for key, value in mine.items()}
    rows = stats.rows_of(group, [{"chempi": mine, "mpich": theirs}])
    check("per cent of one's own stand beside what is compared",
          [row.ratio for row in rows] == [0.5, 0.0, 0.5, 0.0])
    (folder / "page.md").write_text(page.MARK, encoding="utf-8")
    rows += [stats.dataclasses.replace(row, name=f"{row.name}{n}")
             for n in range(page.FEW_NAMES) for row in rows]
    text = record(folder, rows)
    check("the page has both",
          "| ibcast, us | 0.50; 80 | 0.50; 160 |" in text and
          "| ibcast, % | 40 / 80 | 40 / 80 |" in text and
          "In %: chempi / mpich." in text)
    again = page.rows_of(page.read(folder / "results.tsv"))
    check("what is recorded can be read again",
          sorted(again, key=str) == sorted(rows, key=str))


def test_plot():
    rows = page.rows_of(page.read(page.RESULTS))
    text = svg.draw(rows, ["chempi", "mpich", "openmpi"])
    compared = [row for row in rows if row.ratio]
    check("the plot has a bar for each point that is compared",
          text.count("<title>") == len(compared))
    check("the plot names each of their groups",
          all(f">{row.group.name}: " in text for row in compared))


def test_thinned():
    group = next(group for group in plan.groups() if group.name == "files-all")
    thin = plan.thinned(group, "2d,thin,hand", "1M,4M")
    check("a group of files takes the modes and sizes that it has",
          thin.args == ["2d+thin", "/dev/shm", "1M"])
    check("nothing is left of a group without them",
          plan.thinned(group, "hand", "") is None)
    check("without words a group is whole",
          plan.thinned(group, "", "").args == group.args)


def test_page():
    text = page.PAGE.read_text(encoding="utf-8")
    written = text[text.index(page.MARK) + len(page.MARK):]
    check("doc/benchmarks.md says what bench/results.tsv holds",
          written == "\n" + page.page_of(page.read(page.RESULTS)))


def main():
    with tempfile.TemporaryDirectory(prefix="chempi-bench-") as folder:
        test_record(pathlib.Path(folder))
    with tempfile.TemporaryDirectory(prefix="chempi-bench-") as folder:
        test_ratio(pathlib.Path(folder))
    with tempfile.TemporaryDirectory(prefix="chempi-bench-") as folder:
        test_percent(pathlib.Path(folder))
    test_host()
    test_most()
    test_thinned()
    test_plot()
    test_page()
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
