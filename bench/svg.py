# SPDX-License-Identifier: BSD-3-Clause
"""A plot of the benchmark's results: curves by size, and all ratios."""
import html
import math

import stats

COLOURS = {"chempi": "#c0392b", "mpich": "#2471a3", "openmpi": "#1e8449"}
GOOD, BAD, PLAIN = "#1e8449", "#c0392b", "#7f8c8d"
WIDTH = 1000
PANEL_W, PANEL_H = 430, 250
BAR_H = 17


class Drawing:
    """Collects SVG elements."""

    def __init__(self):
        self.parts = []

    def line(self, x1, y1, x2, y2, colour="#000", width=1.0, dash=""):
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"{extra}/>')

    def rect(self, x, y, width, height, colour):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
            f'height="{height:.1f}" fill="{colour}"/>')

    def text(self, x, y, words, size=12, anchor="start", colour="#222",
             weight="normal"):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{html.escape(words)}</text>')

    def curve(self, points, colour):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" '
                          f'stroke="{colour}" stroke-width="2"/>')
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" '
                              f'fill="{colour}"/>')

    def finish(self, height):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
                f'height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" '
                'font-family="DejaVu Sans, Helvetica, sans-serif">\n'
                f'<rect width="{WIDTH}" height="{height:.0f}" '
                'fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


class LogAxis:
    """Values to pixels, logarithmic; a value of 0 stands at the lower end."""

    def __init__(self, low, high, start, end):
        self.low = math.log10(low)
        self.high = max(math.log10(high), self.low + 0.1)
        self.start = start
        self.end = end

    def at(self, value):
        place = math.log10(value) if value > 0 else self.low
        share = (place - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def decades(self):
        first = math.ceil(self.low - 1e-9)
        return [10.0 ** k for k in range(first, math.floor(self.high) + 1)]


def plain(value):
    return f"{value:g}"


def panel(drawing, left, top, title, unit, series):
    """One panel of curves; series: name -> [(bytes, value)]."""
    xs = [max(x, 0.5) for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    drawing.text(left, top + 14, title, 14, weight="bold")
    x0, x1 = left + 44, left + PANEL_W
    y0, y1 = top + PANEL_H - 34, top + 28
    x_axis = LogAxis(min(xs), max(xs), x0, x1)
    y_axis = LogAxis(min(ys) * 0.8, max(ys) * 1.25, y0, y1)
    drawing.line(x0, y0, x1, y0)
    drawing.line(x0, y0, x0, y1)
    ticks = y_axis.decades() or [min(ys), max(ys)]
    for value in ticks:
        y = y_axis.at(value)
        drawing.line(x0, y, x1, y, "#dddddd")
        drawing.text(x0 - 5, y + 4, plain(value), 11, "end")
    for x in sorted(set(xs)):
        drawing.line(x_axis.at(x), y0, x_axis.at(x), y0 + 4)
        label = "0" if x < 1 else stats.size_text(int(x))
        drawing.text(x_axis.at(x), y0 + 16, label, 10, "middle")
    drawing.text(x1, y0 + 30, "bytes", 11, "end")
    drawing.text(x0 + 5, y1 + 2, unit, 11)
    for name, points in series.items():
        drawing.curve([(x_axis.at(max(x, 0.5)), y_axis.at(y))
                       for x, y in points], COLOURS.get(name, PLAIN))


def legend(drawing, names, top):
    x = 40
    for name in names:
        drawing.rect(x, top - 9, 20, 9, COLOURS.get(name, PLAIN))
        drawing.text(x + 26, top, name, 13)
        x += 130


def series_of(rows, groups, names):
    result = {}
    for name in names:
        points = {}
        for row in rows:
            if row.group.name in groups and name in row.values:
                points.setdefault(row.x, row.values[name])
        if len(points) > 1:
            result[name] = sorted(points.items())
    return result


def draw_panels(drawing, rows, names, top):
    kinds = (("latency, shared memory", "us",
              ("shm-latency",)),
             ("latency, TCP", "us", ("tcp-latency",)),
             ("bandwidth, shared memory", "GB/s", ("shm-bandwidth",)),
             ("bandwidth, TCP", "GB/s", ("tcp-bandwidth",)))
    drawn = 0
    for title, unit, groups in kinds:
        series = series_of(rows, groups, names)
        if series:
            panel(drawing, 40 + (drawn % 2) * (PANEL_W + 60),
                  top + (drawn // 2) * (PANEL_H + 16), title, unit, series)
            drawn += 1
    return top + (drawn + 1) // 2 * (PANEL_H + 16)


def draw_bar(drawing, axis, row, y):
    colour = {"ok": GOOD, "OVER": BAD}.get(row.mark, PLAIN)
    one = axis.at(1.0)
    end = axis.at(min(max(row.ratio, 0.1), 10))
    drawing.rect(min(one, end), y - 9, abs(end - one), 11, colour)
    drawing.line(axis.at(min(max(row.low, 0.1), 10)), y - 3.5,
                 axis.at(min(max(row.high, 0.1), 10)), y - 3.5, "#222", 1.2)
    if row.target:
        x = axis.at(row.target)
        drawing.line(x, y - 11, x, y + 4, "#000", 1.6)
    drawing.text(170, y, row.label, 11, "end")
    drawing.text(WIDTH - 30, y, f"{row.ratio:.2f}  {row.mark}", 11, "end",
                 colour)


def draw_ratios(drawing, rows, top):
    rows = [row for row in rows if row.ratio]
    if not rows:
        return top
    drawing.text(40, top + 14, "time against the better peer", 14,
                 weight="bold")
    drawing.text(40, top + 30, "left of 1: faster; upright mark: target; "
                 "thin line: quartiles of the rounds", 11)
    axis = LogAxis(0.1, 10, 185, WIDTH - 110)
    behind = len(drawing.parts)
    y = top + 54
    begin = y - 10
    group = None
    for row in rows:
        if row.group is not group:
            group = row.group
            y += 8
            drawing.text(185, y, group.title, 11, colour="#555")
            y += BAR_H
        draw_bar(drawing, axis, row, y)
        y += BAR_H
    grid = Drawing()
    for value in (0.1, 0.2, 0.5, 1, 2, 5, 10):
        x = axis.at(value)
        grid.line(x, begin, x, y - 8, "#000" if value == 1 else "#e5e5e5")
        grid.text(x, y + 6, plain(value), 10, "middle")
    drawing.parts[behind:behind] = grid.parts
    return y + 24


def draw(rows, names):
    drawing = Drawing()
    drawing.text(40, 30, "CHEMPI benchmarks", 18, weight="bold")
    legend(drawing, names, 54)
    top = draw_panels(drawing, rows, names, 74)
    bottom = draw_ratios(drawing, rows, top)
    return drawing.finish(bottom)
