# SPDX-License-Identifier: BSD-3-Clause
"""Reads what MPICH's test/mpi says of its programs: test lists and sources."""
import dataclasses
import pathlib
import re

import fortran

# Directories in the order in which the suite's own list names them.
DIRECTORIES = """attr basic coll comm datatype errhan group info init mpi_t
pt2pt part rma spawn topo io errors/attr errors/coll errors/comm
errors/datatype errors/group errors/pt2pt errors/topo errors/rma errors/spawn
errors/io threads/pt2pt threads/comm threads/init threads/mpi_t threads/spawn
threads/rma threads/part threads/coll""".split()

# Those of Fortran: the lists of each interface name its parts.
FORTRAN = [f"{interface}/{part}" for interface in fortran.INTERFACES
           for part in """attr coll comm datatype ext f90types info init io
           misc profile pt2pt rma spawn subarray timer topo""".split()]

# What configure would put for @word@ in a list: nothing switches a test on.
ENABLED = {"namepub_tests", "comm_overlap"}

# The suite has no list for `basic`; these end with 0 when all is well.
BASIC = """self 1 resultTest=TestExit
simple 2 resultTest=TestExit
sendrecv 2 resultTest=TestExit
srtest 2 resultTest=TestExit
wtime 2 resultTest=TestExit
patterns 2 resultTest=TestExit
"""

LIMIT_S = 180.0  # the suite's own default


@dataclasses.dataclass
class Test:
    directory: str
    program: str
    ranks: int
    args: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)
    mpiexec_args: list = dataclasses.field(default_factory=list)
    check: str = ""
    limit_s: float = LIMIT_S
    memory_gib: float = 0.0
    extension: bool = False  # tests MPICH's own MPIX_ functions
    expected_to_fail: str = ""

    @property
    def name(self):
        words = [self.program, str(self.ranks), *self.args]
        words += [f"{key}={value}" for key, value in self.env.items()]
        return " ".join(words)


class ListError(Exception):
    """A test list does not have the form that is known."""


def parse_line(directory, line):
    words = line.split()
    test = Test(directory, words[0], 2)
    if len(words) > 1:
        test.ranks = int(words[1])
    for word in words[2:]:
        key, equals, value = word.partition("=")
        if not equals:
            continue  # a stray word, which the suite's runner ignores too
        if key == "arg":
            test.args.append(value)
        elif key == "env":
            name, _, setting = value.partition("=")
            test.env[name] = setting
        elif key == "mpiexecarg":
            test.mpiexec_args.append(value)
        elif key == "resultTest":
            test.check = value
        elif key == "timeLimit":
            test.limit_s = float(value)
        elif key == "mem":
            test.memory_gib = float(value)
        elif key == "mpix":
            test.extension = value.lower() == "true"
        elif key == "xfail":
            test.expected_to_fail = value
        elif key not in ("strict", "init", "lock", "mpiversion"):
            raise ListError(f"{directory}: unknown key {key} in: {line}")
    return test


def substitute(line, large):
    """Resolve @word@; None when the line is switched off."""
    for word in re.findall(r"@(\w+)@", line):
        if word in ENABLED or (word == "largetest" and large):
            line = line.replace(f"@{word}@", "")
        else:
            return None
    return line


def read_list(root, directory, large=False):
    """All tests of one directory, in the order of its list."""
    folder = pathlib.Path(root) / directory
    text = None
    for name in ("testlist", "testlist.in"):
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8")
            break
    if text is None:
        if directory != "basic":
            return []
        text = BASIC
    tests = []
    for line in text.splitlines():
        line = substitute(line.split("#")[0].strip(), large)
        if not line or line.startswith("!"):
            continue
        test = parse_line(directory, line)
        if not (folder / test.program).is_dir():
            tests.append(test)
    return tests


def read_makefile(path):
    """Variables of an automake file, with continued lines joined."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    values = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\w+)\s*(\+?=)\s*(.*)", line)
        if not match:
            continue
        name, how, value = match.groups()
        value = value.split("#")[0].strip()
        if how == "+=" and name in values:
            value = f"{values[name]} {value}"
        values[name] = value
    return values


@dataclasses.dataclass
class Recipe:
    sources: list
    flags: list
    libs: list


def recipes(root, directory):
    """Function program -> Recipe, from the directory's automake file."""
    folder = pathlib.Path(root) / directory
    makefile = folder / "Makefile.am"
    values = read_makefile(makefile) if makefile.is_file() else {}

    def expand(text):
        text = text.replace("$(AM_CPPFLAGS)", "")
        text = re.sub(r"\$[({]top_(src|build)dir[)}]", str(root), text)
        return re.sub(r"\$[({](\w+)[)}]",
                      lambda match: values.get(match.group(1), ""), text)

    def recipe(program):
        sources = expand(values.get(f"{program}_SOURCES",
                                    values.get(f"nodist_{program}_SOURCES",
                                               ""))).split()
        flags = expand(values.get(f"{program}_CPPFLAGS", "")).split()
        return Recipe([str(folder / name) for name in
                       sources or [program + fortran.extension(directory)]
                       if name.endswith((".c", ".f", ".f90"))],
                      [word for word in flags if word.startswith("-")],
                      ["-lm", "-lpthread"])

    return recipe
