# SPDX-License-Identifier: BSD-3-Clause
"""Where the ranks of a test run, and by which device they meet.

A place is "shm", "tcp", "gateways" (gateways.py has these), a number of
virtual nodes, or

    scivia[-PROTOCOL][-wicked][:NODES]

with PROTOCOL one of shmem, onecopy, zerocopy (SCI adapters, every message by
that protocol) and via (cards with the VIA half only, protocols by size);
without one, SCI adapters with their protocols by size. On a wicked adapter
things go wrong, from a seed. Ranks stand on the virtual nodes in turn.
"""
import os
import re
import subprocess

import chempi_tree

ANY_SIZE = "max: 18446744073709551615"
FIGURES = "latency: 10 us, bandwidth: 100 MB/s"
# Network type and protocols; none: the default figures of the type.
NETWORKS = {
    "": ("sci", ""),
    "shmem": ("sci", f"shared-memory: {{ {FIGURES}, {ANY_SIZE} }}"),
    "onecopy": ("sci", f"one-copy: {{ {FIGURES} }}"),
    "zerocopy": ("sci", f"zero-copy: {{ {FIGURES} }}"),
    "via": ("myrinet", ""),
}
NODES_MAX = 64
# The same as in tests/mpi: everything that an adapter can do wrong.
FAULTS = ("seed=5,reorder=200,lost-packet=10,lost-response=10,late=200,"
            "lost-interrupt=10,broken-vi=2,broken-link=1")


class PlaceError(Exception):
    """There is no such place."""


class Place:
    """Options of the launcher, and environment, for a test's ranks."""

    def __init__(self, name):
        self.name = name
        self.env = {}
        self.protocol = None
        self.tables = None
        self.virtual = 0
        if name in ("shm", "default", "tcp", "gateways"):
            return
        if name.isdigit():
            self.virtual = int(name)
            return
        match = re.fullmatch(r"scivia(?:-(\w+?))??(-wicked)?(?::(\d+))?", name)
        if not match or (match[1] or "") not in NETWORKS:
            raise PlaceError(
                f"{name}: shm, tcp, gateways, a number of virtual nodes, or "
                "scivia[-shmem|-onecopy|-zerocopy|-via][-wicked][:NODES]")
        self.protocol = match[1] or ""
        self.virtual = int(match[3] or 2)
        if not 2 <= self.virtual <= NODES_MAX:
            raise PlaceError(f"{name}: 2 to {NODES_MAX} nodes")
        if match[2]:
            self.env = {"CHEMPI_SCIVIA_FAULTS":
                        os.environ.get("CHEMPI_SCIVIA_FAULTS", FAULTS)}

    def prepare(self, build_dir, work):
        """Make what the launcher needs; `work` is there."""
        if self.protocol is None:
            return
        kind, protocols = NETWORKS[self.protocol]
        name = f"{self.protocol or 'sci'}-{self.virtual}"
        folder = work / "networks" / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"nodes: [ 'n[0-{self.virtual - 1}]' ]", "networks:",
                 "  cards:", f"    type: {kind}"]
        if protocols:
            lines.append(f"    protocols: {{ {protocols} }}")
        lines += ["    attach: all", ""]
        description = folder / "description.yaml"
        description.write_text("\n".join(lines), encoding="utf-8")
        self.tables = folder / "tables"
        mdconfig = chempi_tree.need(build_dir, "mdconfig")
        done = subprocess.run(
            [str(mdconfig), "compile", "-o", str(self.tables),
             str(description)], text=True, check=False, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise PlaceError(f"{self.name}: {done.stdout.strip()}")

    def words(self, ranks, slots=None):
        """slots: of each node; MPICH's tests spawn nothing where
        MPI_UNIVERSE_SIZE leaves no room, and take that for a success."""
        nodes = self.virtual or (ranks if self.name == "tcp" else 0)
        room = f":{slots}" if slots else ""
        if self.name == "gateways":
            return []
        if not nodes:
            return ["--nodes", f"localhost{room}"] if slots else []
        if not self.tables and not slots:
            return ["--virtual", str(nodes)]
        network = ["--network", str(self.tables)] if self.tables else []
        names = ",".join(f"n{i}{room}" for i in range(nodes))
        return ["--virtual", names, "--map", "cyclic", *network]
