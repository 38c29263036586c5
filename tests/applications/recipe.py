# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of tests/applications: one TOML file for each application.

    title       one line: what it is
    debian      Debian's source package, with version and sha256 of the
                upstream archive; or
    folder      NAME_FOLDER (with "_" for "-"), for what Debian lacks: the
                variable in which the user names a folder that holds the
                unpacked source; or neither: what is tried comes with another
                recipe. The variable may be set for Debian's packages, too
    needs       Debian packages to build with
    after       recipes built before; $NAME is the folder of each (a "-" in a
                name is a "_" there), empty when it could not be built
    requires    those of `after` without which this one makes no sense
    build       a shell script, run in the source folder
    build_limit seconds
    remark      for the page
    [[tests]]   name, run (shell script), in (folder); also
        each    list of words: one test for each, {each} in name and run
        files   a glob pattern below `in` instead of a list: the files' stems
        wants, never   regular expressions: the output must hold each, and none
        passed, failed, skipped   how the output counts: a regular expression,
                its groups summed if it has one, else the matches counted
        places  of shm, mixed, tcp; all
        limit   seconds; 300
    [[skips]]   name, why: what of its own tests is left out

A script must end with 0. It sees MPI's wrappers and launcher first in the
PATH, and the launcher puts its ranks where the driver wants them.
"""
import dataclasses
import pathlib
import re
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent / "recipes"
PLACES = ("shm", "mixed", "tcp")


class RecipeError(Exception):
    """A recipe says something that it cannot say."""


@dataclasses.dataclass
class Test:
    name: str
    run: str
    folder: str = "."
    wants: list = dataclasses.field(default_factory=list)
    never: list = dataclasses.field(default_factory=list)
    passed: str = ""
    failed: str = ""
    skipped: str = ""
    places: tuple = PLACES
    limit: float = 300
    files: str = ""  # still to be expanded


@dataclasses.dataclass
class Recipe:
    name: str
    title: str
    debian: str = ""
    version: str = ""
    sha256: str = ""
    folder: str = ""
    needs: list = dataclasses.field(default_factory=list)
    after: list = dataclasses.field(default_factory=list)
    requires: list = dataclasses.field(default_factory=list)
    build: str = ""
    build_limit: float = 1800
    remark: str = ""
    tests: list = dataclasses.field(default_factory=list)
    skips: list = dataclasses.field(default_factory=list)

    @property
    def variable(self):
        return self.name.upper().replace("-", "_") + "_FOLDER"


def known(kind, table, where):
    names = {field.name for field in dataclasses.fields(kind)}
    for key in table:
        if key not in names:
            raise RecipeError(f"{where}: no such word: {key}")


def tests_of(table, where):
    """One table of the file makes one test, or one for each word."""
    table = dict(table)
    each = table.pop("each", None)
    if "in" in table:
        table["folder"] = table.pop("in")
    known(Test, table, where)
    if not {"name", "run"} <= set(table):
        raise RecipeError(f"{where}: a test has a name and a run")
    for place in table.get("places", ()):
        if place not in PLACES:
            raise RecipeError(f"{where}: no such place: {place}")
    for key in ("passed", "failed", "skipped"):
        re.compile(table.get(key, ""))
    for key in ("wants", "never"):
        for pattern in table.get(key, ()):
            re.compile(pattern)
    return expand(Test(**table), each) if each else [Test(**table)]


def expand(test, words):
    return [dataclasses.replace(test, files="",
                                name=test.name.replace("{each}", word),
                                run=test.run.replace("{each}", word))
            for word in words]


def load(path):
    where = path.name
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        tests = [test for entry in table.pop("tests", [])
                 for test in tests_of(entry, where)]
        known(Recipe, table, where)
        recipe = Recipe(name=path.stem, **table)
    except (tomllib.TOMLDecodeError, re.error, TypeError) as error:
        raise RecipeError(f"{where}: {error}") from error
    recipe.tests = tests
    if recipe.debian and not (recipe.version and recipe.sha256):
        raise RecipeError(f"{where}: debian needs version and sha256")
    if recipe.folder and recipe.folder != recipe.variable:
        raise RecipeError(f"{where}: its folder is {recipe.variable}")
    if not tests:
        raise RecipeError(f"{where}: tries nothing")
    return recipe


def load_all():
    return {path.stem: load(path) for path in sorted(FOLDER.glob("*.toml"))}


def ordered(recipes, names):
    """The named recipes, each behind those it is built after."""
    done = []

    def add(name, asked):
        if name not in recipes:
            raise RecipeError(f"no such application: {name}; there are "
                              + ", ".join(recipes))
        if name in asked:
            raise RecipeError(f"{name} is to be built after itself")
        for other in recipes[name].after:
            add(other, asked | {name})
        if recipes[name] not in done:
            done.append(recipes[name])

    for name in names:
        add(name, frozenset())
    return done
