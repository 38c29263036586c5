#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare what mdconfig makes of descriptions with what is recorded.

usage: run.py MDCONFIG [--update] [NAME...]

good/NAME.yaml   compiles; good/NAME.txt holds its check, its description and
                 the table of one node of each class in words, and what
                 `explain` says of the questions in its comments:
                 "# explain: FROM TO SIZE", what `check` says with options,
                 "# check: --all", and what `diff` says of the difference to
                 another one: "# diff: OTHER"; pictures must be XML
bad/NAME.yaml    does not compile; bad/NAME.txt holds what is printed
import/NAME/     sources for `import`: hosts, scontrol, topology; import/NAME.txt
                 holds the description, which must compile, or what is wrong

The examples in etc/networks count as good ones. --update records anew: look
at the difference before you commit it.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def run(mdconfig, *arguments, cwd, given=""):
    """Exit code and text of one command, in the order of the streams."""
    done = subprocess.run([mdconfig, *arguments], cwd=cwd, timeout=60,
                          input=given, text=True,
                          env=dict(os.environ, CHEMPI_DIR="/nonexistent"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = "$ mdconfig " + " ".join(arguments) + "\n" + done.stdout
    text += "".join("! " + line + "\n" for line in done.stderr.splitlines())
    if done.returncode:
        text += f"exit code {done.returncode}\n"
    return done.returncode, text


def first_of_classes(description):
    """A node of each class, from the words of `mdconfig show`."""
    nodes = []
    for line in description.splitlines():
        found = re.match(r"class \d+: ([^\[, ]+)(?:\[(\d+)[^\]]*\])?([^, ]*)",
                         line)
        if found:
            nodes.append("".join(part or "" for part in found.groups()))
    return nodes


def good(mdconfig, path, out):
    """All words about a description that compiles."""
    name = path.name
    text = run(mdconfig, "check", name, cwd=path.parent)[1]
    code, compiled = run(mdconfig, "compile", name, "-o", str(out),
                         cwd=path.parent)
    text += compiled.replace(str(out), "DIR")
    if code:
        raise AssertionError(f"{path} does not compile:\n{text}")
    shown = run(mdconfig, "show", name, cwd=path.parent)[1]
    text += shown
    for node in first_of_classes(shown):
        table = run(mdconfig, "show", f"{node}.chempi", cwd=out)[1]
        again = run(mdconfig, "show", name, node, cwd=path.parent)[1]
        if table.split("\n", 1)[1] != again.split("\n", 1)[1]:
            raise AssertionError(f"{path}: the table of {node} is another "
                                 "one in its file")
        text += table
    draws(mdconfig, path, "graph", "--layout", "built-in", name)
    draws_dot(mdconfig, path)
    for question in re.findall(r"^# explain: (.*)$", path.read_text(), re.M):
        words = question.split()
        text += run(mdconfig, "explain", name, *words, cwd=path.parent)[1]
        draws(mdconfig, path, "graph", "--layout", "built-in", "--from",
              words[0], "--size", words[2], name)
        draws_dot(mdconfig, path, "--from", words[0], "--size", words[2])
        apart(path, draws(mdconfig, path, "plot", name, words[0], words[1]))
        figures(mdconfig, path, words[0], words[1])
        explained(mdconfig, path, words)
    for start, end, way in re.findall(r"^# plot: (\S+) (\S+) (.*)$",
                                      path.read_text(), re.M):
        text += picture(mdconfig, path, start, end, way)
    for words in re.findall(r"^# check: (.*)$", path.read_text(), re.M):
        text += run(mdconfig, "check", *words.split(), name,
                    cwd=path.parent)[1]
    for other in re.findall(r"^# diff: (.*)$", path.read_text(), re.M):
        text += run(mdconfig, "diff", other, name, cwd=path.parent)[1]
        differing(mdconfig, path, other)
    differing(mdconfig, path, str(HERE / "good" / "triangle.yaml"))
    checked(mdconfig, path)
    return text


def both(mdconfig, path, command, *words):
    """What a command says in words, without the line that calls it, and as
    JSON; the exit codes must be the same."""
    code, text = run(mdconfig, command, *words, cwd=path.parent)
    done = subprocess.run([mdconfig, command, "--json", *words], timeout=60,
                          cwd=path.parent, capture_output=True, text=True,
                          check=False)
    if done.returncode != code or done.stderr:
        raise AssertionError(f"{path}: {command} --json: {done}")
    return text.split("\n", 1)[1], json.loads(done.stdout)


def same(path, what, found, expected):
    """Two forms of one thing."""
    if found != expected:
        raise AssertionError(f"{path}: {what}: JSON says {found!r}, words say "
                             f"{expected!r}")


def unfolded(text):
    """"a[0-2,5], b" is a0, a1, a2, a5 and b."""
    names = []
    for part in re.findall(r"[^\[, ]+(?:\[[^\]]*\][^\[, ]*)?", text):
        found = re.fullmatch(r"(.*)\[(.*)\](.*)", part)
        if not found:
            names.append(part)
            continue
        for numbers in found[2].split(","):
            low, _, high = numbers.strip().partition("-")
            names += [f"{found[1]}{n:0{len(low)}}{found[3]}"
                      for n in range(int(low), int(high or low) + 1)]
    return names


def way_of(text):
    """The stages that the words for a way name."""
    stages = []
    if text in ("no way", ""):
        return None
    for part in text.split(", then "):
        found = re.fullmatch(r"(\S+) (\S+) on (\S+)(?: to (.*))?", part)
        stages.append({"device": found[1], "protocol": found[2],
                       "network": found[3]})
        if found[4]:
            stages[-1]["gateways"] = unfolded(found[4])
    return stages


def way_in(stages):
    """The same of JSON; gateways in the order in which words name them."""
    for stage in stages or []:
        if "gateways" in stage:
            stage["gateways"].sort(key=lambda name: [
                int(part) if part.isdigit() else part
                for part in re.split(r"(\d+)", name)])
    return stages


UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6, "B": 1, "KiB": 2**10,
         "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 1e3, "MB": 1e6,
         "GB": 1e9, "B/s": 1e-6, "kB/s": 1e-3, "MB/s": 1, "GB/s": 1e3}


def like(path, what, found, text):
    """A figure of JSON, and the words for it, which may be rounded."""
    number, unit = text.split()
    wanted = float(number) * UNITS[unit]
    if abs(found - wanted) > 0.006 * wanted + 1e-3:
        raise AssertionError(f"{path}: {what}: JSON says {found}, words say "
                             f"{text}")


def explained(mdconfig, path, words):
    """`explain --json` says what `explain` says."""
    text, told = both(mdconfig, path, "explain", path.name, *words)
    head, *lines = text.splitlines()
    same(path, "ends", [told["from"], told["to"]], words[:2])
    way = head.split(": ", 1)[1].rsplit("; ", 1)
    same(path, "the way", way_in(told["way"]), way_of(way[0]))
    if told["way"]:
        like(path, "the time", told["us"], way[1])
        parts = [line for line in lines if re.match(r" {2,}[\d.]+ \S+  ", line)]
        same(path, "parts", len(told["parts"]), len(parts))
        for part, line in zip(told["parts"], parts):
            like(path, line, part["us"], line[:14].strip())
            if part["part"].replace("part", "") not in line and (
                    part["part"] != "rest" or "the rest" not in line):
                raise AssertionError(f"{path}: {part} is not {line}")
            if not line.endswith(part["of"]):
                raise AssertionError(f"{path}: {part} is not {line}")
        total = sum(part["us"] for part in told["parts"])
        if abs(total - told["us"]) > 1e-6 * total:
            raise AssertionError(f"{path}: parts of {total} make {told['us']}")
    rejected = lines[lines.index("rejected:") + 1:] if "rejected:" in lines \
        else []
    more = re.fullmatch(r"  and (\d+) more", rejected[-1]) if rejected else None
    if more:
        rejected.pop()
    # "and N more" counts the chosen way where it comes behind
    if not 0 <= len(rejected) + (int(more[1]) if more else 0) - \
            len(told["rejected"]) <= (1 if more else 0):
        raise AssertionError(f"{path}: other ways are rejected:\n{text}")
    for one, line in zip(told["rejected"], rejected):
        name, why = line.strip().split(": ", 1)
        same(path, line, way_in(one["way"]), way_of(name))
        phrase = {"size": "takes", "slower": " more", "as fast": "as fast",
                  "forwarding rule": "but gateways"}[one["reason"]]
        if phrase not in why:
            raise AssertionError(f"{path}: {one} is not {line}")
        if one["us"] is not None:
            like(path, line, one["us"], why.split(",")[0])
        elif one["protocol"] not in why:
            raise AssertionError(f"{path}: {one} is not {line}")


def checked(mdconfig, path):
    """`check --json` says what `check` says."""
    text, told = both(mdconfig, path, "check", path.name)
    *lines, last = text.splitlines()
    same(path, "findings", [f"{one['level']}: {one['text']}"
                            for one in told["findings"]], lines)
    same(path, "counts", [told["nodes"], told["networks"], told["errors"],
                          told["warnings"]],
         [int(n) for n in re.findall(r"(\d+) (?:node|network|error|warning)s?\b",
                                     last)])


def difference(one):
    """The lines of words for an object of `diff --json`, figures as they
    are."""
    what = one.pop("what")
    if what == "nodes":
        (word, names), = one.items()
        return word, sorted(names)
    if what == "network":
        word = next(iter(one))
        return f"{word} network {one[word]} ({one['type']}, device " \
            f"{one['device']})"
    if what == "type":
        return f"network {one['network']}: " + " -> ".join(
            f"{one[k]['type']}, device {one[k]['device']}"
            for k in ("before", "after"))
    if what == "ways":
        return None
    place = f"network {one['network']}: {one['protocol']}" \
        if what == "figure" else "forwarding"
    return f"{place}: {one['name']}", one


def ways_differ(path, lines, told):
    """Lines of two, under a head for each pair of ends."""
    head = None
    for line in lines:
        if not line.startswith(" "):
            head = line
        elif line.startswith("  ") and not line.startswith("    "):
            found = re.fullmatch(r"  (\S+ \S+) \.\. (\S+ \S+): (.*)", line)
            one = told.pop(0)
            like(path, line, one["min_bytes"], found[1])
            if one["max_bytes"] is None:
                same(path, line, "any size", found[2])
            else:
                like(path, line, one["max_bytes"], found[2])
            ends = re.fullmatch(r"ways (?:inside (?P<inside>.*)|from "
                                r"(?P<from>.*) to (?P<to>.*))", head)
            for key in ("inside", "from", "to"):
                same(path, head, sorted(one.get(key, [])),
                     sorted(unfolded(ends[key] or "")))
            same(path, line, way_in(one["before"]), way_of(found[3]))
            after = way_in(one["after"])
        else:
            same(path, line, after, way_of(line.strip()[3:]))
    same(path, "ways", told, [])


def differing(mdconfig, path, other):
    """`diff --json` says what `diff` says."""
    text, told = both(mdconfig, path, "diff", other, path.name)
    lines = [line for line in text.splitlines()
             if not line.startswith("exit code")]
    ways = [one for one in told if one["what"] == "ways"]
    for one in (difference(one) for one in told if one["what"] != "ways"):
        line = lines.pop(0)
        if isinstance(one, str):
            same(path, "a network", one, line)
        elif isinstance(one[1], list):
            found = re.fullmatch(r"(with|without) nodes? (.*)|slots, forwarding "
                                 r"or attachments of (.*) changed", line)
            same(path, line, one,
                 (found[1] or "changed", sorted(unfolded(found[2] or found[3]))))
        else:
            values = line[len(one[0]) + 1:].split(" -> ")
            same(path, line, line[:len(one[0]) + 1], one[0] + " ")
            for key, value in zip(("before", "after"), values):
                if one[1]["unit"] is None or one[1][key] is None:
                    same(path, line, one[1][key] or "any size", value)
                else:
                    like(path, line, one[1][key], value)
    ways_differ(path, lines, ways)


def draws(mdconfig, path, *arguments):
    """A command must write a picture that is well-formed."""
    done = subprocess.run([mdconfig, *arguments], cwd=path.parent, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=False)
    if done.returncode:
        raise AssertionError(f"{path}: mdconfig {arguments} failed")
    root = xml.etree.ElementTree.fromstring(done.stdout)
    if not root.tag.endswith("svg") or len(list(root.iter())) < 5:
        raise AssertionError(f"{path}: mdconfig {arguments}: no picture")
    return root


def apart(path, root):
    """Centred labels of a picture must not overprint."""
    rows = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") == "middle":
            half = len(text.text) * float(text.get("font-size")) * 0.6 / 2
            rows.setdefault(text.get("y"), []).append(
                (float(text.get("x")), half, text.text))
    for row in rows.values():
        row.sort()
        for (x, half, left), (then, before, right) in zip(row, row[1:]):
            if x + half > then - before:
                raise AssertionError(f"{path}: the labels {left} and {right} "
                                     "overprint")


def figures(mdconfig, path, *ends):
    """The figures of a plot: sizes ascend, and the table's way, which is
    drawn, is the fastest of those that are used."""
    code, text = run(mdconfig, "plot", "--csv", path.name, *ends,
                     cwd=path.parent)
    rows = list(csv.reader(text.splitlines()[1:]))  # behind the command
    sizes = [int(row[0]) for row in rows[1:]]
    if code or len(rows) < 100 or sizes != sorted(set(sizes)):
        raise AssertionError(f"{path}: no figures from {ends}:\n{text}")
    missing = {row[2] for row in rows[1:]} - set(rows[0][3:])
    if missing:
        raise AssertionError(f"{path}: {ends}: the picture has no {missing}")
    for row in rows[1:]:
        times = [float(us) for us, way in zip(row[3:], rows[0][3:])
                 if us and not way.endswith("(not used)")]
        if len(row) != len(rows[0]) or float(row[1]) > min(times) + 0.0001:
            raise AssertionError(f"{path}: {ends}: {row}")


def picture(mdconfig, path, start, end, way):
    """The ways in a plot, of which this must be one."""
    code, text = run(mdconfig, "plot", "--csv", path.name, start, end,
                     cwd=path.parent)
    ways = next(csv.reader(text.splitlines()[1:]))[3:]
    if code or way not in ways:
        raise AssertionError(f"{path}: the picture has no {way}:\n{text}")
    return "".join(f"plotted: {name}\n" for name in ways)


def draws_dot(mdconfig, path, *arguments):
    """Graphviz, where it is installed, must understand the graph."""
    done = subprocess.run([mdconfig, "graph", "--dot", *arguments, path.name],
                          cwd=path.parent, timeout=60, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if not re.fullmatch(rb'digraph cluster \{\n(  .*[];]+\n)+\}\n', done.stdout):
        raise AssertionError(f"{path}: no graph:\n{done.stdout.decode()}")
    draws(mdconfig, path, "graph", *arguments, path.name)  # by what is here
    if shutil.which("dot"):
        draws(mdconfig, path, "graph", "--layout", "graphviz", *arguments,
              path.name)


def graphviz_fails(mdconfig, folder):
    """Who has a broken Graphviz, or none, gets a picture all the same; also
    from a parent that ignores its children, which processes inherit."""
    path = HERE / "good" / "triangle.yaml"
    wrong = 0
    for script, words in (("echo 'no fonts' >&2; exit 3", "no fonts"),
                          ("exit 0", "failed"), (None, "is graphviz")):
        if script:
            (folder / "dot").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "dot").chmod(0o755)
        else:
            (folder / "dot").unlink()
        env = dict(os.environ, PATH=f"{folder}")
        for how, code in (("auto", 0), ("graphviz", 1)):
            done = subprocess.run(
                [mdconfig, "graph", "--layout", how, path], env=env,
                timeout=60, capture_output=True, check=False, text=True,
                preexec_fn=lambda: signal.signal(signal.SIGCHLD,
                                                 signal.SIG_IGN))
            is_said = words in done.stderr or (how == "auto" and not script)
            if (done.returncode != code or not is_said or
                    (code == 0) != done.stdout.startswith("<svg")):
                print(f"graph with a dot that does '{script}', {how}: {done}")
                wrong += 1
    return wrong


def bad(mdconfig, path, out):
    """What is said about a description that does not compile."""
    code, text = run(mdconfig, "compile", path.name, "-o", str(out),
                     cwd=path.parent)
    if code != 1:
        raise AssertionError(f"{path}: exit code {code}, expected 1\n{text}")
    if out.exists():
        raise AssertionError(f"{path}: something was written")
    return text.replace(str(out), "DIR")


def imported(mdconfig, path, out):
    """The description made of sources, and what check says of it."""
    sources = [word for source in sorted(path.iterdir())
               for word in ("--" + source.name, source.name)]
    code, text = run(mdconfig, "import", *sources, cwd=path)
    if code:
        return text
    out.mkdir()
    run(mdconfig, "import", *sources, "-o", str(out / "net.yaml"), cwd=path)
    if (out / "net.yaml").read_text() != text.split("\n", 1)[1]:
        raise AssertionError(f"{path}: the file differs from what is printed")
    code, checked = run(mdconfig, "check", "net.yaml", cwd=out)
    if code and "cannot reach" not in checked:
        raise AssertionError(f"{path}: the description is wrong:\n{checked}")
    return text + checked


USAGE = [
    # arguments, exit code, words that must be said
    ([], 2, "expected a command"),
    (["help"], 0, "usage:"),
    (["--version"], 0, "table format"),
    (["compiel"], 2, "found 'compiel'"),
    (["compile"], 2, "too few arguments"),
    (["compile", "-o"], 2, "expected a value after -o"),
    (["compile", "--al", "triangle.yaml"], 2, "unknown option --al"),
    (["compile", "--alone", "--shared", "triangle.yaml"], 2, "exclude"),
    (["compile", "triangle.yaml", "-o", "/dev/null"], 1, "/dev/null"),
    (["check", "absent.yaml"], 1, "absent.yaml: No such file"),
    (["check", "--strict", "shared-interface.yaml"], 1, "4 warnings"),
    (["check", "."], 1, "."),
    (["show", "triangle.yaml", "aa"], 1, "no node 'aa'"),
    (["show", "a", "b", "c"], 2, "too many arguments from c"),
    (["explain", "triangle.yaml", "a", "b", "many"], 2, "expected a size"),
    (["explain", "triangle.yaml", "a", "x", "1"], 1, "no node 'x'"),
    (["explain", "../bad/stand-ins.yaml", "a0", "b0", "1"], 1,
     "no way: no network is shared and no gateway lies between; say `gateway: "
     "true` for one of"),
    (["explain", "../bad/one-way.yaml", "b", "a", "1"], 1,
     "no way: though the way back exists"),
    (["explain", "../bad/too-far.yaml", "a", "b", "1"], 1,
     "no way: every way passes through more than 16 networks, the limit;"),
    (["explain", "../bad/too-far.yaml", "g1", "b", "1"], 0, "on n17; "),
    (["explain", "--json", "../bad/stand-ins.yaml", "a0", "b0", "1"], 1,
     '"remedy": "no network is shared'),
    (["graph", "--from", "a", "triangle.yaml"], 2, "both --from and --size"),
    (["graph", "--layout", "fine", "triangle.yaml"], 2, "built-in, or --dot"),
    (["graph", "--dot", "--layout", "auto", "triangle.yaml"], 2, "or --dot"),
    (["plot", "triangle.yaml", "a", "b", "-o", "/dev/full"], 1, "/dev/full"),
    (["diff", "triangle.yaml", "triangle.yaml"], 0, ""),
    (["check", "-"], 1, "-:1:1: expected"),
    (["import"], 0, "slots"),
    (["import", "triangle.yaml"], 2, "too many arguments"),
    (["import", "--hosts", "absent"], 1, "absent: No such file"),
    (["import", "--hosts", "/dev/null"], 1, "/dev/null: expected hosts"),
    (["import", "--scontrol", "/dev/null"], 1, "found no NodeName="),
    (["import", "--topology", "/dev/null"], 1, "expected switches"),
    (["import", "-o", "triangle.yaml"], 1, "expected a new file"),
    (["calibrate"], 2, "too few arguments"),
    (["calibrate", "absent.yaml"], 1, "absent.yaml: No such file"),
    (["calibrate", "--seconds", "0", "triangle.yaml"], 2,
     "above 0, at most 3600, found 0"),
    (["calibrate", "--pairs", "x", "triangle.yaml"], 2, "found x"),
    (["calibrate", "--pairs", "17", "triangle.yaml"], 2,
     "above 0, at most 16, found 17"),
    (["calibrate", "-o", "-", "triangle.yaml"], 1,
     "needs the daemons of the nodes to be running"),
    (["calibrate", "--virtual", "--network", "nil", "triangle.yaml"], 1,
     "no network 'nil'"),
]


# What standard input says, too.
GIVEN = [
    ("NodeName=n7 CPUTot=3\n", ["import", "--scontrol", "-"], 0, "slots: 3"),
    ("nonsense\n", ["import", "--scontrol", "-"], 1,
     "standard input:1:1: expected"),
    ("", ["import", "--scontrol", "-"], 1, "standard input: expected"),
    ("", ["import", "--topology", "-"], 1, "standard input: expected"),
    ("", ["import", "--hosts", "-"], 1, "standard input: expected"),
    ("", ["import", "--scontrol", "-", "--hosts", "-"], 2, "one source"),
    ("nodes: [ a, b ]\n", ["show", "/dev/stdin"], 0, "class 0: a, b"),
    ("nodes: [ a, b ]\n", ["show", "-", "a"], 0, "node a: "),
    ("nodes: [ a, b ]\nnetworks: { lan: { type: ethernet, attach: all, "
     "protocols: {\n  eager: { latency: 9 us, bandwidth: 1 MB/s, max: 8 MiB },"
     "\n  rendezvous: { latency: 9 us, bandwidth: 9 MB/s, min: 8 MiB } } } }\n",
     ["calibrate", "--virtual", "--scratch", "/nonexistent", "-o", "-", "-"],
     1, "lan rendezvous: not measured: it takes messages of "
     "8 MiB or more, and those that are measured have 4 MiB at most\n"),
    ("10.0.9.9 n8\n", ["import", "--hosts", "-"], 0, "n8"),
]


def usage(mdconfig):
    """Number of command lines that are answered wrongly."""
    wrong = 0
    for given, arguments, code, words in [("", *u) for u in USAGE] + GIVEN:
        found, text = run(mdconfig, *arguments, cwd=HERE / "good", given=given)
        if found != code or words not in text:
            print(f"expected exit code {code} and '{words}':\n{text}")
            wrong += 1
    return wrong


def cases():
    """(description, recorded words, function)"""
    for path in sorted((ROOT / "etc" / "networks").glob("*.yaml")):
        yield path, HERE / "examples" / (path.stem + ".txt"), good
    for path in sorted((HERE / "good").glob("*.yaml")):
        yield path, path.with_suffix(".txt"), good
    for path in sorted((HERE / "import").iterdir()):
        if path.is_dir():
            yield path, path.with_suffix(".txt"), imported
    for path in sorted((HERE / "bad").glob("*.yaml")):
        yield path, path.with_suffix(".txt"), bad


def compare(path, record, text, update):
    """True when the words are those recorded."""
    if update:
        record.parent.mkdir(exist_ok=True)
        record.write_text(text)
        return True
    recorded = record.read_text() if record.exists() else ""
    if text == recorded:
        return True
    print(f"{path.relative_to(ROOT)}: not as recorded", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as now:
        now.write(text)
        now.flush()
        subprocess.run(["diff", "-u", str(record), now.name], check=False)
    return False


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv[1:]
    mdconfig = os.path.abspath(arguments[0])
    passed = failed = 0
    for path, record, words in cases():
        if arguments[1:] and path.stem not in arguments[1:]:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                text = words(mdconfig, path, pathlib.Path(scratch) / "out")
                same = compare(path, record, text, update)
            except AssertionError as error:
                print(error)
                same = False
        passed += same
        failed += not same
    wrong = usage(mdconfig)
    passed += len(USAGE) + len(GIVEN) - wrong
    failed += wrong
    with tempfile.TemporaryDirectory() as scratch:
        wrong = graphviz_fails(mdconfig, pathlib.Path(scratch))
    passed += not wrong
    failed += wrong
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
