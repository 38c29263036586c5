# SPDX-License-Identifier: BSD-3-Clause
"""Where nodes are attached, and what `chempirun --stats` counted."""
import collections
import re

Line = collections.namedtuple("Line", "source target network device "
                              "protocol messages bytes")
HEAD = re.compile(r"^ *from +to +network +device +protocol +messages +bytes$")


def networks(text):
    """{name: (type, device, address or None)} of what a node is attached to,
    from what `mdconfig show` prints of its table."""
    return {match[1]: match.groups()[1:] for match in re.finditer(
        r"^  (\S+) +type (\S+), device (\S+?)(?:, address (\S+))?$", text,
        re.MULTILINE)}


def parse(text):
    """Lines of traffic out of a launcher's standard error, and the rest."""
    lines = []
    rest = []
    is_table = False
    for line in text.splitlines():
        words = line.split()
        if HEAD.match(line):
            is_table = True
        elif is_table and len(words) == 7 and words[5].isdigit() \
                and words[6].isdigit():
            lines.append(Line(*words[:5], int(words[5]), int(words[6])))
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


def by_way(lines):
    """{(network, device, protocol): [messages, bytes, ordered pairs]}"""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for line in lines:
        entry = sums[(line.network, line.device, line.protocol)]
        entry[0] += line.messages
        entry[1] += line.bytes
        entry[2] += 1
    return sums


def way_rows(lines):
    """Text: a row for each network, device and protocol."""
    rows = [f"  {'network':<15}{'device':<8}{'protocol':<13}"
            f"{'messages':>10}{'bytes':>12}{'pairs of nodes':>17}"]
    total = [0, 0]
    for way, entry in sorted(by_way(lines).items()):
        rows.append(f"  {way[0]:<15}{way[1]:<8}{way[2]:<13}{entry[0]:>10}"
                    f"{size_text(entry[1]):>12}{entry[2]:>17}")
        total[0] += entry[0]
        total[1] += entry[1]
    rows.append(f"  {'all':<36}{total[0]:>10}{size_text(total[1]):>12}")
    return rows


def matrix_rows(lines, nodes, letters):
    """Text: messages between nodes, with letters for what carried them."""
    cells = collections.defaultdict(int)
    nets = collections.defaultdict(set)
    for line in lines:
        pair = (line.source, line.target)
        cells[pair] += line.messages
        nets[pair].add(letters.get(line.network, "?"))
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
