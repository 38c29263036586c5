# SPDX-License-Identifier: BSD-3-Clause
"""What the applications' tests said: judged, counted, and as a page."""
import dataclasses
import json
import re

TAIL = 200  # characters of a reason


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    reason: str = ""
    failures: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


@dataclasses.dataclass
class Entry:
    """One application in the table."""
    name: str
    version: str
    built: str = ""
    reason: str = ""
    build_s: float = 0.0
    places: dict = dataclasses.field(default_factory=dict)

    @property
    def bad(self):
        return self.built == "failed" or any(
            place["failed"] for place in self.places.values())


def count(pattern, text):
    """Sum of the pattern's groups, or how often it matches."""
    if not pattern:
        return 0
    matches = list(re.finditer(pattern, text, re.M))
    if not re.compile(pattern).groups:
        return len(matches)
    return sum(int(word) for match in matches for word in match.groups()
               if word)


def fault(test, result):
    """Why a script did not do what it must; empty when it did."""
    if result.timed_out:
        return f"did not end within {test.limit:.0f} s"
    if result.status != 0:
        return f"status {result.status}"
    if result.leftovers:
        return "left processes behind: " + "; ".join(
            words for _, words in result.leftovers)[:TAIL]
    for pattern in test.wants:
        if not re.search(pattern, result.output, re.M):
            return f"the output lacks /{pattern}/"
    for pattern in test.never:
        match = re.search(pattern, result.output, re.M)
        if match:
            return f"the output has '{match[0][:TAIL]}'"
    return ""


def judge(test, result):
    outcome = Outcome(reason=fault(test, result))
    outcome.passed = count(test.passed, result.output)
    outcome.failed = count(test.failed, result.output)
    outcome.skipped = count(test.skipped, result.output)
    if test.passed and not outcome.reason and not outcome.passed:
        outcome.reason = f"the output lacks /{test.passed}/"
    if not test.passed and not outcome.reason:
        outcome.passed = 1
    if outcome.reason and not outcome.failed:
        outcome.failed = 1
    if outcome.failed:
        outcome.reason = outcome.reason or "tests of its own failed"
        outcome.failures.append(f"{test.name}: {outcome.reason}")
    return outcome


def row(entry):
    """Lines of one application: one for each place."""
    if not entry.places:
        yield [entry.name, entry.version, entry.built, "-", "-", "-", "-",
               f"{entry.build_s:.0f} s"]
    for place, total in entry.places.items():
        yield [entry.name, entry.version, entry.built, place,
               str(total["passed"]), str(total["failed"]),
               str(total["skipped"]), f"{total['seconds']:.0f} s"]


def table(entries, recipes):
    lines = ["", "| application | version | built | place | passed | failed "
             "| skipped | time |", "|---|---|---|---|---:|---:|---:|---:|"]
    for entry in entries:
        lines += ["| " + " | ".join(words) + " |" for words in row(entry)]
    notes = [f"{entry.name}: {entry.built}: {entry.reason}"
             for entry in entries if entry.reason]
    notes += [f"{entry.name}, {place}: {text}" for entry in entries
              for place, total in entry.places.items()
              for text in total["failures"]]
    notes += [f"{entry.name}: not run: {skip['name']}: {skip['why']}"
              for entry in entries if entry.built != "skipped"
              for skip in recipes[entry.name].skips]
    return lines + ([""] + notes if notes else [])


# ---- the page ----

def results(folder, names):
    found = []
    for name in names:
        path = folder / f"{name}.json"
        if path.is_file():
            found.append(Entry(**json.loads(path.read_text("utf-8"))))
    return found


def described(recipes):
    yield from ("| application | is | remark |", "|---|---|---|")
    for recipe in recipes.values():
        yield f"| {recipe.name} | {recipe.title} | {recipe.remark} |"


def page(recipes, folder, frame):
    """doc/applications.md: the frame with results and recipes put in."""
    entries = results(folder, recipes)
    missing = [name for name in recipes
               if name not in {entry.name for entry in entries}]
    lines = table(entries, recipes)
    text = frame.read_text(encoding="utf-8")
    text = text.replace("@RESULTS@", "\n".join(
        "* " + line if line and not line.startswith("|") else line
        for line in lines).strip())
    text = text.replace("@MISSING@", ", ".join(missing) or "none")
    return text.replace("@RECIPES@", "\n".join(described(recipes)))
