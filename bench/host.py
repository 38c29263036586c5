# SPDX-License-Identifier: BSD-3-Clause
"""What the machine was like while a group was measured.

A host may move its virtual machines, give half of a core to others, or change
clocks while nothing in the machine shows it. bench/host.c is asked before and
after each program of a round; a round in which it changed is measured again.
"""
import dataclasses
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
CHANGE = 1.3  # between what a round's figures may differ
LIMIT_S = 60


@dataclasses.dataclass(frozen=True)
class State:
    """In ns: a round trip between two cores (0: there is one), an addition
    in memory."""
    trip: float
    add: float


@dataclasses.dataclass
class Conditions:
    """Under which a group was measured."""
    bound: int = 0        # ranks of ours with a core of their own
    others: float = 0.0   # share of the processors that others used
    states: list = dataclasses.field(default_factory=list)
    changed: int = 0      # rounds in which the host changed

    def middle(self):
        """The median state; None where nobody was asked."""
        if not self.states:
            return None
        return State(statistics.median(state.trip for state in self.states),
                     statistics.median(state.add for state in self.states))

    def text(self):
        middle = self.middle()
        return f"{middle.trip:.0f} {middle.add:.2f}" if middle else ""


class Host:
    """Asks bench/host.c, compiled into the folder work."""

    def __init__(self, work):
        self.program = work / "host"
        subprocess.run(
            ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-w", "-pthread", "-o",
             str(self.program), str(HERE / "host.c")], check=True,
            timeout=LIMIT_S)

    def look(self):
        done = subprocess.run([str(self.program)], text=True, check=True,
                              stdout=subprocess.PIPE, timeout=LIMIT_S)
        _, trip, add = done.stdout.split()
        return State(float(trip), float(add))


def has_changed(states):
    """Whether the host did while these were taken."""
    return any(max(figures) > CHANGE * min(figures) for figures in
               ([state.trip for state in states],
                [state.add for state in states]))
