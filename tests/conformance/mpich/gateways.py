# SPDX-License-Identifier: BSD-3-Clause
"""The suite across gateways: twelve nodes on three networks, in network
namespaces, of which two join all of them (tests/rig/twelve.yaml).

Ranks are dealt out to the ten other nodes so that neighbours in rank never
share a network: nearly every message crosses a gateway.
"""
import os
import pathlib
import re
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "rig"))

import netlab  # noqa: E402

DESCRIPTION = "twelve.yaml"
FREE = {"a": "none", "b": "none", "c": "none"}  # as fast as the host is
NODES = "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3".split()
GATEWAYS = ("g0", "g1")
PROCESS = "chempi-gateway"[:15]  # as the kernel names it
LOOK_S = 0.002  # between two looks at the counters
# What the launcher says of a gateway that we killed; not the test's.
LOSS = re.compile(r"^chempirun: the gateway on node \S+ is lost: .*\n", re.M)


class Cluster:
    """Use it in a with statement, inside netlab.inside()."""

    def __init__(self, build, kill_after):
        self.lab = netlab.Lab(build, DESCRIPTION, FREE)
        self.kill_after = kill_after  # bytes; None: gateways live on
        self.turn = 0
        self.jobs = 0
        self.killed = 0

    def __enter__(self):
        self.lab.__enter__()
        os.environ.update(self.lab.env)
        return self

    def __exit__(self, *why):
        passed = sum(self._passed(node) for node in GATEWAYS)
        print(f"{passed >> 20} MiB in and out of the gateways in "
              f"{self.jobs} jobs")
        if self.kill_after is not None:
            print(f"a gateway was killed in {self.killed} of them")
        return self.lab.__exit__(*why)

    def command(self, words):
        """A launcher's command, as it is run in the cluster."""
        launcher, *rest = words
        return self.lab.at(NODES[0], launcher, "--nodes", ",".join(NODES),
                           "--map", "cyclic", *rest)

    def watched(self, run):
        """The jobrun.Result of run(); meanwhile one gateway is killed, the
        two in turn, as soon as enough bytes have passed it."""
        self.jobs += 1
        if self.kill_after is None:
            return run()
        self.turn += 1
        over = threading.Event()
        killer = threading.Thread(
            target=self._kill, args=(GATEWAYS[self.turn % 2], over))
        killer.start()
        try:
            result = run()
        finally:
            over.set()
            killer.join()
        result.output = LOSS.sub("", result.output, count=1)
        return result

    def _passed(self, node):
        return sum(sum(self.lab.carried(node, name)) for name in FREE)

    def _kill(self, node, over):
        enough = self._passed(node) + self.kill_after
        while not over.wait(LOOK_S):
            if self._passed(node) < enough:
                continue
            for pid in self.lab.pids(node, PROCESS):
                try:
                    os.kill(pid, signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass  # the job has ended
            return
