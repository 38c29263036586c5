#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the description of a large cluster, for tests and measurements.

usage: make_racks.py SHAPE [--racks 200] [--nodes 10000]

Every rack has two gateways. Shapes:
  flat      four networks across the racks: ethernet joins all nodes, sci the
            first half of the racks, myrinet the second, via the gateways;
            every attachment has an address and an interface
  full      four networks, every node on all of them, with addresses
  racks     a network in each rack and three spines for the gateways of two
            fifths of the racks each, so that ways have up to five stages
  figures   like racks with one spine, but the networks of all racks differ in
            their figures, so that no two envelopes are alike
  limits    like figures, and each rack has a limit of its own, too
"""
import argparse
import random


def digits(count):
    return len(str(count - 1))


class Racks:
    """Names and addresses of the nodes of some racks, as patterns."""

    def __init__(self, racks, nodes):
        self.racks = racks
        self.plain = nodes // racks - 2  # nodes of a rack besides gateways
        if self.plain < 1 or self.plain > 240 or racks > 250:
            raise SystemExit("make_racks.py: 1 to 240 nodes besides two "
                             "gateways in each of at most 250 racks")

    def _rack(self, first, last):
        width = digits(self.racks)
        return f"r[{first:0{width}d}-{last:0{width}d}]"

    def nodes(self, first, last):
        return (f"{self._rack(first, last)}"
                f"n[{0:0{digits(self.plain)}d}-{self.plain - 1}]")

    def gateways(self, first, last):
        return f"{self._rack(first, last)}g[0-1]"

    def header(self):
        last = self.racks - 1
        print(f"cluster: racks-{self.racks}\nnodes:\n"
              f"  {self.nodes(0, last)}: {{ slots: 8 }}\n"
              f"  {self.gateways(0, last)}: "
              "{ slots: 8, gateway: true, forward: 10 us }\nnetworks:")

    def network(self, number, name, kind, first, last, plain=True):
        """A network across racks with an address for every node."""
        print(f"  {name}:\n    type: {kind}\n    attach:")
        where = f"10.{number}.[{first}-{last}]"
        if plain:
            print(f"      {self.nodes(first, last)}: {{ address: "
                  f"'{where}.[10-{9 + self.plain}]', interface: {name}0 }}")
        print(f"      {self.gateways(first, last)}: {{ address: "
              f"'{where}.[1-2]', interface: {name}0 }}")


def flat(r):
    half = r.racks // 2
    r.network(0, "eth", "ethernet", 0, r.racks - 1)
    r.network(1, "sci", "sci", 0, half - 1)
    r.network(2, "myri", "myrinet", half, r.racks - 1)
    r.network(3, "via", "via", 0, r.racks - 1, plain=False)


def full(r):
    for number, kind in enumerate(("ethernet", "sci", "myrinet", "via")):
        r.network(number, kind[:4], kind, 0, r.racks - 1)


def racks(r):
    last = r.racks - 1
    width = digits(r.racks)
    print(f"  rack[{0:0{width}d}-{last}]:\n    type: ethernet\n"
          f"    attach: [ '{r.nodes(0, last)}', '{r.gateways(0, last)}' ]")
    for number, kind in enumerate(("infiniband", "ethernet", "omni-path")):
        first = number * 3 * r.racks // 10
        to = min(first + 2 * r.racks // 5, last)
        r.network(number, f"spine{number}", kind, first, to, plain=False)


def limits(r):
    figures(r, limit=400)


def figures(r, limit=0):
    chance = random.Random(1)
    for rack in range(r.racks):
        print(f"  rack{rack}:\n    type: sci\n    protocols:")
        if limit:
            print(f"      shared-memory: {{ max: {limit + 37 * rack} }}")
        for name, latency, bandwidth in (("one-copy", 10, 60),
                                         ("zero-copy", 30, 80)):
            print(f"      {name}: {{ latency: "
                  f"{latency + 5 * chance.random():.3f} us, bandwidth: "
                  f"{bandwidth + 20 * chance.random():.3f} MB/s }}")
        print(f"    attach: [ '{r.nodes(rack, rack)}', "
              f"'{r.gateways(rack, rack)}' ]")
    r.network(0, "spine", "myrinet", 0, r.racks - 1, plain=False)


SHAPES = {shape.__name__: shape
          for shape in (flat, full, racks, figures, limits)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--racks", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=10000)
    options = parser.parse_args()
    description = Racks(options.racks, options.nodes)
    description.header()
    SHAPES[options.shape](description)


if __name__ == "__main__":
    main()
