# SPDX-License-Identifier: BSD-3-Clause
"""Plots like the papers' figures: ours as lines, published values as rings."""
import math

import model
import mpi
import points
import rows
import svg

WIDTH, PANEL_W, PANEL_H = 1000, 450, 300
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#b7950b", "#7d3c98", "#566573")
KIB = points.KIB


class LinearAxis:
    """Values to pixels."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = low, high, start, end

    def at(self, value):
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self):
        step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
        while (self.high - self.low) / step > 6:
            step *= 2 if (self.high - self.low) / step <= 12 else 2.5
        first = math.ceil(self.low / step)
        return [k * step for k in
                range(first, math.floor(self.high / step + 1e-9) + 1)]


class LogAxis(svg.LogAxis):
    """Powers of four in bytes, or decades."""

    def __init__(self, low, high, start, end, base):
        super().__init__(low, high, start, end)
        self.base = base

    def ticks(self):
        if self.base == 10:
            return self.decades()
        low, high = 10 ** self.low, 10 ** self.high
        return [4 ** k for k in range(16) if low <= 4 ** k * 1.001 and
                4 ** k <= high * 1.001]


def size_text(value):
    for factor, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= factor and value % factor == 0:
            return f"{value // factor}{letter}"
    return f"{value:g}"


class Panel:
    """One figure: curves are (name, {x: y}, style); a style is "line" or
    "dash"; rings are (x, y, curve's number)."""

    def __init__(self, title, source, unit, curves, rings=(), log_x=True,
                 log_y=False, levels=()):
        self.title, self.source, self.unit = title, source, unit
        self.curves = [(name, sorted(c.items()), style)
                       for name, c, style in curves]
        self.rings, self.levels = rings, levels
        self.log_x, self.log_y = log_x, log_y

    def axes(self, left, top):
        xs = [x for _, c, _ in self.curves for x, _ in c]
        ys = [y for _, c, _ in self.curves for _, y in c]
        ys += [y for _, y, _ in self.rings] + [y for y, _ in self.levels]
        x0, x1 = left + 52, left + PANEL_W - 8
        y0, y1 = top + PANEL_H - 40, top + 44
        x_axis = LogAxis(max(min(xs), 1), max(xs), x0, x1, 2) if self.log_x \
            else LinearAxis(0, max(xs), x0, x1)
        y_axis = LogAxis(min(ys) * 0.8, max(ys) * 1.25, y0, y1, 10) \
            if self.log_y else LinearAxis(0, max(ys) * 1.08, y0, y1)
        return x_axis, y_axis, x0, x1, y0, y1

    def draw(self, drawing, left, top):
        x_axis, y_axis, x0, x1, y0, y1 = self.axes(left, top)
        drawing.text(left, top + 14, self.title, 13, weight="bold")
        drawing.text(x1, top + 14, self.source, 11, "end", "#555")
        for value in y_axis.ticks():
            y = y_axis.at(value)
            drawing.line(x0, y, x1, y, "#e3e3e3")
            drawing.text(x0 - 5, y + 4, f"{value:g}", 10, "end")
        for value in x_axis.ticks():
            x = x_axis.at(value)
            drawing.line(x, y0, x, y0 + 4)
            drawing.text(x, y0 + 15, size_text(int(value)), 10, "middle")
        drawing.line(x0, y0, x1, y0)
        drawing.line(x0, y0, x0, y1)
        drawing.text(x1, y0 + 29, "bytes", 10, "end")
        drawing.text(x0 - 40, y1 - 6, self.unit, 10)
        for value, name in self.levels:
            y = y_axis.at(value)
            drawing.line(x0, y, x1, y, "#888", 1, "2 3")
            drawing.text(x1, y - 3, name, 10, "end", "#555")
        self.draw_curves(drawing, x_axis, y_axis, x0)
        self.legend(drawing, x0, top + 30)

    def draw_curves(self, drawing, x_axis, y_axis, x0):
        for number, (_, curve, style) in enumerate(self.curves):
            path = " ".join(
                f"{x_axis.at(x) if x > 0 else x0:.1f},{y_axis.at(y):.1f}"
                for x, y in curve)
            dash = ' stroke-dasharray="6 4"' if style == "dash" else ""
            drawing.parts.append(
                f'<polyline points="{path}" fill="none" stroke='
                f'"{self.colour(number)}" stroke-width="1.8"{dash}/>')
        for x, y, number in self.rings:
            px = x_axis.at(x) if x > 0 else x0
            drawing.parts.append(
                f'<circle cx="{px:.1f}" cy="{y_axis.at(y):.1f}" r="5" '
                f'fill="none" stroke="{COLOURS[number]}" stroke-width="2"/>')

    def colour(self, number):
        """Dashed curves have the colours of the lines before them."""
        lines = sum(style == "line" for _, _, style in self.curves)
        return COLOURS[number % lines]

    def legend(self, drawing, x, y):
        for number, (name, _, style) in enumerate(self.curves):
            if not name:
                continue
            drawing.line(x, y - 4, x + 18, y - 4, self.colour(number), 2,
                         "6 4" if style == "dash" else "")
            drawing.text(x + 22, y, name, 10)
            x += 34 + 5.7 * len(name)


def rates(curve, unit=1.0):
    """MB/s (or units of that many) by size, from us by size."""
    return {n: n / us / unit for n, us in curve.items() if n > 0}


def within(curve, low, high):
    return {n: us for n, us in curve.items() if low <= n <= high}


def deck_panels(p):
    one, two, three = (p.us[rows.D312, f"deck-{k}"] for k in (1, 2, 3))
    store, read = p.us[rows.D312, "store"], p.us[rows.D312, "read"]
    narrow = p.us[rows.D312, "store-memcpy"]
    names = ("protocol 1", "protocol 2", "protocol 3")
    return [
        Panel("D312: remote stores and reads", "P123 fig. 1", "us",
              [("store", within(store, 1, 256), "line"),
               ("read", within(read, 1, 256), "line")],
              [(1, 2.5, 0)], log_x=False),
        Panel("D312: bandwidth of remote stores", "P123 fig. 2", "MiB/s",
              [("store", rates({n: us for n, us in store.items()
                                if n % 64 == 0}, rows.BINARY), "line"),
               ("store by memcpy", rates(narrow, rows.BINARY), "line"),
               ("read", rates(read, rows.BINARY), "line")],
              [(512, 87.72, 0), (512, 49.94, 1)]),
        Panel("protocol 1 and bare stores", "DECK fig. 7.1", "us",
              [("protocol 1", one, "line"),
               ("store", within(store, 1, 64), "line")],
              [(0, 4.66, 0), (62, 4.66, 0)], log_x=False),
        Panel("latency of the protocols", "P123 fig. 4", "us",
              [(name, within(c, 0, 2048), "line")
               for name, c in zip(names, (one, two, three))],
              [(0, 4.66, 0), (64, 8.56, 1), (64, 9.82, 2)], log_x=False),
        Panel("bandwidth of the protocols", "P123 fig. 5", "MiB/s",
              [(name, rates(c, rows.BINARY), "line")
               for name, c in zip(names, (one, two, three))],
              [(62, 12.63, 0), (32 * KIB, 62.54, 1), (points.MIB, 84.12, 2)],
              levels=[(87.72, "link")]),
    ]


def scimpich_panels(p):
    made = model.Model(p.us[rows.D310, "store"], p.us[rows.D310, "copy"])
    curves = []
    for name, formula in (("short", made.short), ("eager", made.eager),
                          ("rdv", made.rdv)):
        c = p.us[rows.D310, f"scimpich-{name}"]
        curves.append((name, c, {n: formula(n) for n in c}))
    lines = [(name, c, "line") for name, c, _ in curves]
    dashes = [("model" if name == "short" else "", m, "dash")
              for name, _, m in curves]
    return [
        Panel("SCI-MPICH's protocols and model, D310", "SCIMPICH fig. 8", "us",
              [(name, within(c, 0, 4096), style)
               for name, c, style in lines + dashes], log_x=False),
        Panel("the same, bandwidth", "SCIMPICH fig. 8", "MB/s",
              [(name, rates(c), style) for name, c, style in lines + dashes],
              [(points.MIB, 73.8, 2)], levels=[(76.3, "link")]),
    ]


def network_panels(p):
    sci = rows.scampi(p)
    via = p.us[rows.CLAN, "mpipro-wait"]
    poll = p.us[rows.CLAN, "mpipro-poll"]
    ethernet = p.us[rows.ETHERNET, "mpipro-wait"]
    ratio = {n: via[n] / sci[n] for n in via if n in sci and n > 0}
    return [
        Panel("SCI, VIA and Fast Ethernet", "CMP fig. 1", "Mbit/s",
              [(name, {n: 8 * n / us for n, us in c.items() if n > 0}, "line")
               for name, c in (("SCI", sci), ("VIA asleep", via),
                               ("VIA polling", poll),
                               ("Fast Ethernet", ethernet))],
              [(points.MIB, 608, 0), (points.MIB, 748, 1),
               (points.MIB, 82.4, 3)], log_y=True),
        Panel("bandwidth of SCI over that of VIA", "CMP fig. 3", "times",
              [("SCI / VIA asleep", ratio, "line")],
              [(16 * KIB, 1, 0)], levels=[(1, "")]),
    ]


def mpi_panels(p):
    """MPI of ours on the cards; rings: theirs."""
    us = {name: p.us[name, mpi.EXPERIMENT]
          for name in (rows.D312, rows.D310, rows.CHEMNITZ, rows.CLAN,
                       rows.ETHERNET)}
    made = model.Model(p.us[rows.D310, "store"], p.us[rows.D310, "copy"])
    formula = {n: min(made.short(n) if n <= 47 else math.inf, made.eager(n),
                      made.rdv(n)) for n in us[rows.D310]}
    return [
        Panel("MPI on the D312: latency", "P123 fig. 7", "us",
              [("MPI", within(us[rows.D312], 0, 2048), "line"),
               ("protocol 1", p.us[rows.D312, "deck-1"], "line"),
               ("protocol 2", within(p.us[rows.D312, "deck-2"], 0, 2048),
                "line")],
              [(0, 6.63, 0), (0, 7.26, 0)], log_x=False),
        Panel("MPI on the D312: bandwidth", "P123 fig. 8", "MiB/s",
              [("MPI", rates(us[rows.D312], rows.BINARY), "line"),
               ("protocol 3", rates(p.us[rows.D312, "deck-3"], rows.BINARY),
                "line")],
              levels=[(78.35, "ScaMPI"), (73.8, "SCI-MPICH")]),
        Panel("MPI on the D310 and SCI-MPICH's model", "SCIMPICH fig. 8",
              "MB/s",
              [("MPI", rates(us[rows.D310]), "line"),
               ("model of SCI-MPICH", rates(formula), "dash")],
              [(points.MIB, 73.8, 0)], levels=[(76.3, "link")]),
        Panel("MPI over SCI, VIA and Fast Ethernet", "CMP fig. 1", "Mbit/s",
              [(name, {n: 8 * n / t for n, t in us[card].items() if n > 0},
                "line")
               for name, card in (("SCI", rows.CHEMNITZ), ("VIA", rows.CLAN),
                                  ("Fast Ethernet", rows.ETHERNET))],
              [(points.MIB, 608, 0), (points.MIB, 748, 1),
               (points.MIB, 82.4, 2)], log_y=True),
    ]


def other_panels(p):
    return [
        Panel("long active messages, D339", "GASNET fig. 8", "MB/s",
              [("by DMA", rates(p.us[rows.D339, "gasnet-long"]), "line"),
               ("by stores", rates(p.us[rows.D339, "gasnet-stores"]), "line")],
              [(128 * KIB, 213, 0), (128 * KIB, 190, 1)]),
        Panel("registering memory", "LMM tab. 1", "us",
              [("register", p.us[rows.CLAN, "register"], "line"),
               ("deregister", p.us[rows.CLAN, "deregister"], "line")],
              [(4 * KIB, 6.7, 0), (64 * KIB, 27.8, 0), (points.MIB, 366, 0),
               (4 * KIB, 3.5, 1), (64 * KIB, 8.7, 1), (points.MIB, 103, 1)],
              log_y=True),
    ]


def draw(p):
    drawing = svg.Drawing()
    drawing.text(40, 30, "The papers' figures on the emulated adapter", 18,
                 weight="bold")
    drawing.text(40, 50, "rings: published; lines: ours; dashes: the model "
                 "of SCI-MPICH", 12, colour="#555")
    panels = [*deck_panels(p), *scimpich_panels(p), *network_panels(p),
              *other_panels(p), *(mpi_panels(p) if rows.has_mpi(p) else [])]
    for number, panel in enumerate(panels):
        panel.draw(drawing, 30 + number % 2 * (PANEL_W + 40),
                   76 + number // 2 * (PANEL_H + 24))
    return drawing.finish(76 + (len(panels) + 1) // 2 * (PANEL_H + 24))
