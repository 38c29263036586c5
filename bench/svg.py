# SPDX-License-Identifier: BSD-3-Clause
"""A plot of the benchmark's results: curves by size, and for every group bars
of its ratios by size."""
import html
import math

import stats

COLOURS = {"chempi": "#c0392b", "mpich": "#2471a3", "openmpi": "#1e8449"}
GOOD, BAD, PLAIN = "#1e8449", "#c0392b", "#7f8c8d"
WIDTH = 1000
PANEL_W, PANEL_H = 430, 250
# Bars of ratios: a cell for each operation, its sizes side by side.
LEFT, RIGHT = 64, WIDTH - 24
BAR_W = 9
WIDE_BAR_W = 26      # with its size below it, of groups of few operations
FEW_CELLS = 2
CELL_GAP = 22
CELL_H = 64          # of the bars: five times slower to five times faster
RATIO_MAX = 5.0
SIZE_GAP = 26        # between sizes that are written below curves
LETTER_W = 5.6       # of the labels, at most


class Drawing:
    """Collects SVG elements."""

    def __init__(self):
        self.parts = []

    def line(self, x1, y1, x2, y2, colour="#000", width=1.0, dash=""):
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"{extra}/>')

    def rect(self, x, y, width, height, colour, words=""):
        """words: shown where the pointer is."""
        end = f"><title>{html.escape(words)}</title></rect>" if words \
            else "/>"
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
            f'height="{max(height, 0.5):.1f}" fill="{colour}"{end}')

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
    written = -SIZE_GAP
    for x in sorted(set(xs)):
        drawing.line(x_axis.at(x), y0, x_axis.at(x), y0 + 4)
        label = "0" if x < 1 else stats.size_text(int(x))
        if x_axis.at(x) - written >= SIZE_GAP:
            written = x_axis.at(x)
            drawing.text(written, y0 + 16, label, 10, "middle")
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


def within(ratio):
    return min(max(ratio, 1 / RATIO_MAX), RATIO_MAX)


def draw_bar(drawing, axis, row, x, bar_w):
    colour = {"ok": GOOD, "OVER": BAD}.get(row.mark, PLAIN)
    end = axis.at(within(row.ratio))
    one = axis.at(1.0)
    words = f"{row.label}: {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"
    if row.target:
        words += f", target {row.target:.2f}"
    drawing.rect(x, min(one, end), bar_w - 2, abs(end - one), colour, words)
    middle = x + bar_w / 2 - 1
    drawing.line(middle, axis.at(within(row.low)),
                 middle, axis.at(within(row.high)), "#222", 0.8)
    if row.target:
        y = axis.at(row.target)
        drawing.line(x - 1, y, x + bar_w - 1, y, "#000", 0.8)


def label_of(name, rows):
    return f"{name}, at most {max(row.ratio for row in rows):.2f}"


def cell_width(name, rows, bar_w):
    return max(len(rows) * bar_w, LETTER_W * len(label_of(name, rows)))


def draw_sizes(drawing, left, y, rows, bar_w):
    """Of all bars, or if they are narrow of the first and the last."""
    for number, row in enumerate(rows):
        if bar_w == WIDE_BAR_W or number == 0 or row is rows[-1]:
            drawing.text(left + number * bar_w + bar_w / 2 - 1, y,
                         stats.size_text(row.x), 9, "middle", "#555")


def draw_cell(drawing, left, top, name, rows, bar_w):
    """Bars of one operation, from the smallest size to the largest."""
    axis = LogAxis(1 / RATIO_MAX, RATIO_MAX, top + 14 + CELL_H, top + 14)
    drawing.text(left, top + 8, label_of(name, rows), 10)
    drawing.line(left - 3, axis.at(1.0), left + len(rows) * bar_w,
                 axis.at(1.0), "#000", 0.8)
    for number, row in enumerate(rows):
        draw_bar(drawing, axis, row, left + number * bar_w, bar_w)
    draw_sizes(drawing, left, top + 14 + CELL_H + 10, rows, bar_w)


def draw_scale(drawing, top):
    axis = LogAxis(1 / RATIO_MAX, RATIO_MAX, top + 14 + CELL_H, top + 14)
    for value in (1 / RATIO_MAX, 1.0, RATIO_MAX):
        y = axis.at(value)
        drawing.line(LEFT - 12, y, RIGHT, y, "#e0e0e0", 0.8)
        drawing.text(LEFT - 16, y + 3, plain(value), 9, "end", "#555")


def draw_group(drawing, group, rows, top):
    ratios = [row.ratio for row in rows]
    drawing.text(40, top + 12, f"{group.name}: {group.title}", 12,
                 weight="bold")
    drawing.text(RIGHT, top + 12, "geometric mean "
                 f"{stats.geometric_mean(ratios):.2f}, at most "
                 f"{max(ratios):.2f}", 11, "end")
    cells = {}
    for row in rows:
        cells.setdefault(row.name, []).append(row)
    bar_w = WIDE_BAR_W if len(cells) <= FEW_CELLS else BAR_W
    left = RIGHT  # the first cell begins a line
    y = top + 24 - (CELL_H + 34)
    for name, part in cells.items():
        width = cell_width(name, part, bar_w)
        if left + width > RIGHT:
            left = LEFT
            y += CELL_H + 34
            draw_scale(drawing, y)
        draw_cell(drawing, left, y, name, sorted(part, key=lambda row: row.x),
                  bar_w)
        left += width + CELL_GAP
    return y + CELL_H + 46


def draw_ratios(drawing, rows, top):
    groups = {}
    for row in rows:
        if row.ratio:
            groups.setdefault(row.group.name, []).append(row)
    if not groups:
        return top
    drawing.text(40, top + 14, "Time by that of the better peer, or of what "
                 "the group compares with", 14, weight="bold")
    for number, words in enumerate((
            "A bar for each size, the smallest at the left: down from 1 is "
            "faster, up is slower, to five times; the thin line has the "
            "quartiles of the rounds, the mark the target.",
            "Green: within the target; red: over it; grey: there is none. A "
            "bar says its size and figures where the pointer rests on it.")):
        drawing.text(40, top + 32 + 15 * number, words, 11)
    top += 66
    for part in groups.values():
        top = draw_group(drawing, part[0].group, part, top)
    return top


def draw(rows, names):
    drawing = Drawing()
    drawing.text(40, 30, "CHEMPI benchmarks", 18, weight="bold")
    legend(drawing, names, 54)
    top = draw_panels(drawing, rows, names, 74)
    bottom = draw_ratios(drawing, rows, top)
    return drawing.finish(bottom)
