# SPDX-License-Identifier: BSD-3-Clause
"""What `chempirun --trace-routes` prints, for tests to read."""
import dataclasses
import re


@dataclasses.dataclass
class Hop:
    start: str
    end: str
    number: int
    by: str
    counts: list  # frames, bytes, waits; None: nobody knows


@dataclasses.dataclass
class Route:
    start: str
    end: str
    size: str
    by: str
    way: str
    counts: list  # messages, bytes, waits, moved, resent; None: nobody knows
    starred: bool
    hops: list = dataclasses.field(default_factory=list)

    @property
    def messages(self):
        return self.counts[0]


def numbers(words):
    return None if "?" in words else [int(word) for word in words]


def routes(text):
    """The table of --trace-routes, as it stands in standard error."""
    found = []
    for line in text.splitlines():
        starred = line.endswith(" *")
        line = line[:-2] if starred else line
        hop = re.match(r"  (\S+) +(\S+) +hop (\d+) (.*?) +(?:frames|no figures)"
                       r"((?: +[\d?]+){3})$", line)
        route = re.match(r"(\S+) +(\S+) +(\d+|any|-|\?) (.*?) +(direct|over .*?)"
                         r"((?: +[\d?]+){5})$", line)
        if hop:
            found[-1].hops.append(Hop(hop[1], hop[2], int(hop[3]), hop[4],
                                      numbers(hop[5].split())))
        elif route:
            found.append(Route(*route.groups()[:5],
                               numbers(route[6].split()), starred))
    if not found:
        raise AssertionError("no routes in " + text)
    return found


def of_pair(found, start, end, way=""):
    return [r for r in found
            if (r.start, r.end) == (start, end) and way in r.way]
