# SPDX-License-Identifier: BSD-3-Clause
"""What connection tables promise, and what `chempirun --stats` counted."""
import collections
import re

Route = collections.namedtuple("Route", "device protocol network")
Line = collections.namedtuple("Line", "source target device protocol "
                              "messages bytes")
HEAD = re.compile(r"^from +to +device +protocol +messages +bytes$")


def expand(names):
    """oscar[0-2,5] or oscar7 as a list of names."""
    match = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", names)
    if not match:
        return [names]
    out = []
    for part in match[2].split(","):
        low, _, high = part.partition("-")
        for number in range(int(low), int(high or low) + 1):
            out.append(f"{match[1]}{number:0{len(low)}d}{match[3]}")
    return out


class Table:
    """What `mdconfig show` prints of one node's table."""

    def __init__(self, text, node):
        self.node = node
        self.networks = {}  # name: (type, device, address or None)
        self.routes = {}    # node: [Route]
        targets = []
        for line in text.splitlines():
            attached = re.match(r"^  (\S+) +type (\S+), device (\S+?)"
                                r"(?:, address (\S+))?$", line)
            way = re.match(r"^ +\d.*\.\. .*?  +(\S+) (\S+) on (\S+?)[;,]", line)
            if attached:
                self.networks[attached[1]] = attached.groups()[1:]
            elif line.startswith("to "):
                targets = expand(line[3:].strip())
            elif line.startswith("inside the node"):
                targets = [node]
            elif way:
                for target in targets:
                    self.routes.setdefault(target, []).append(
                        Route(*way.groups()))

    def network(self, target, device, protocol):
        """The networks that a counted way can be on, joined by "|": the
        counters tell devices and protocols apart, but not networks."""
        names = {route.network for route in self.routes.get(target, ())
                 if (route.device, route.protocol) == (device, protocol)}
        return "|".join(sorted(names)) or "?"


def parse(text):
    """Lines of traffic out of a launcher's standard error, and the rest."""
    lines = []
    rest = []
    is_table = False
    for line in text.splitlines():
        words = line.split()
        if HEAD.match(line):
            is_table = True
        elif is_table and len(words) == 6 and words[4].isdigit() \
                and words[5].isdigit():
            lines.append(Line(*words[:4], int(words[4]), int(words[5])))
        else:
            rest.append(line)
    return lines, rest


def size_text(count):
    """Bytes for people: at most four digits and a unit."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 9999.5 or unit == "GiB":
            digits = 0 if unit == "B" or value >= 100 else 1
            return f"{value:.{digits}f} {unit}"
        value /= 1024
    return ""


def by_way(lines, tables):
    """{(network, device, protocol): [messages, bytes, ordered pairs]}"""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for line in lines:
        network = tables[line.source].network(line.target, line.device,
                                              line.protocol)
        entry = sums[(network, line.device, line.protocol)]
        entry[0] += line.messages
        entry[1] += line.bytes
        entry[2] += 1
    return sums


def way_rows(lines, tables):
    """Text: a row for each network, device and protocol."""
    rows = [f"  {'network':<15}{'device':<8}{'protocol':<13}"
            f"{'messages':>10}{'bytes':>12}{'pairs of nodes':>17}"]
    total = [0, 0]
    for way, entry in sorted(by_way(lines, tables).items()):
        rows.append(f"  {way[0]:<15}{way[1]:<8}{way[2]:<13}{entry[0]:>10}"
                    f"{size_text(entry[1]):>12}{entry[2]:>17}")
        total[0] += entry[0]
        total[1] += entry[1]
    rows.append(f"  {'all':<36}{total[0]:>10}{size_text(total[1]):>12}")
    return rows


def matrix_rows(lines, tables, letters):
    """Text: messages between nodes, with letters for what carried them."""
    nodes = list(tables)
    cells = collections.defaultdict(int)
    nets = collections.defaultdict(set)
    for line in lines:
        pair = (line.source, line.target)
        cells[pair] += line.messages
        network = tables[line.source].network(line.target, line.device,
                                              line.protocol)
        nets[pair].update(letters.get(name, "?")
                          for name in network.split("|"))
    width = max(8, *(len(node) + 1 for node in nodes))
    rows = [f"  {'from / to':<12}" + "".join(f"{n:>{width}}" for n in nodes)]
    for source in nodes:
        row = f"  {source:<12}"
        for target in nodes:
            pair = (source, target)
            text = f"{cells[pair]} {''.join(sorted(nets[pair]))}" \
                if pair in cells else "."
            row += f"{text:>{width}}"
        rows.append(row)
    return rows
