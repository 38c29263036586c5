# SPDX-License-Identifier: BSD-3-Clause
"""Outcomes of tests, and what is printed and kept of them."""
import dataclasses
import json

import suite

PASSED, FAILED, EXCEPTION, NOT = KINDS = (
    "passed", "failed", "exception", "not applicable")
OUTPUT_KEPT = 4000  # characters of a test's output


@dataclasses.dataclass
class Outcome:
    test: suite.Test
    kind: str
    reason: str = ""
    output: str = ""
    seconds: float = 0.0

    def as_dict(self):
        return {"directory": self.test.directory, "test": self.test.name,
                "program": self.test.program, "result": self.kind,
                "reason": self.reason, "seconds": round(self.seconds, 3),
                "output": self.output[:OUTPUT_KEPT]}


def from_dict(test, row):
    return Outcome(test, row["result"], row["reason"], row["output"],
                   row["seconds"])


def table_lines(outcomes):
    """The table by directory, as lines of markdown."""
    rows = {}
    for outcome in outcomes:
        row = rows.setdefault(outcome.test.directory, dict.fromkeys(KINDS, 0))
        row[outcome.kind] += 1
    total = {kind: sum(row[kind] for row in rows.values()) for kind in KINDS}
    lines = [f"| {'directory':<16} | " + " | ".join(KINDS) + " |",
             f"|{'-' * 18}|" + "|".join("-" * (len(kind) + 1) + ":"
                                       for kind in KINDS) + "|"]
    for name, row in [*rows.items(), ("all", total)]:
        cells = " | ".join(f"{row[kind]:>{len(kind)}}" for kind in KINDS)
        lines.append(f"| {name:<16} | {cells} |")
    return lines


def markdown(outcomes, device):
    """Table and reasons, for doc/conformance.md."""
    lines = [f"## Device: {device}", "", *table_lines(outcomes), ""]
    for kind in KINDS[1:]:
        chosen = [o for o in outcomes if o.kind == kind]
        if chosen:
            lines += [f"{kind.capitalize()}:", ""]
            lines += [f"- `{o.test.directory}/{o.test.name}`: {o.reason}"
                      for o in chosen]
            lines.append("")
    return "\n".join(lines)


def as_json(outcomes, version, device):
    return json.dumps({"suite": f"mpich {version} test/mpi",
                       "device": device,
                       "tests": [o.as_dict() for o in outcomes]}, indent=1)


class Progress:
    """What an interrupted run already found out, one JSON line a test.

    The file's first line is a key: what is tested and how. Lines written
    under another key are of no use and are dropped.
    """

    def __init__(self, path, key, again=False):
        self.path = path
        self.known = {}
        if path is None:
            self.file = None
            return
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            if lines and json.loads(lines[0]) == key and not again:
                for line in lines[1:]:
                    row = json.loads(line)
                    self.known[row["directory"], row["test"]] = row
        except (OSError, ValueError, KeyError, TypeError):
            self.known = {}
        # Written anew: the last line of a killed run may be cut off.
        self.file = open(path, "w", encoding="utf-8")
        self.write(key)
        for row in self.known.values():
            self.write(row)

    def write(self, value):
        if self.file:
            self.file.write(json.dumps(value) + "\n")
            self.file.flush()

    def recall(self, test):
        row = self.known.get((test.directory, test.name))
        return from_dict(test, row) if row else None

    def finish(self):
        """All was run: the next run starts from the beginning."""
        if self.file:
            self.file.close()
            self.path.unlink(missing_ok=True)
