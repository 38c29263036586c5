#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The driver of tests/applications by itself: every recipe can be read, and
what a command printed is judged as the recipe says."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import jobrun  # noqa: E402
import recipe as recipes_of  # noqa: E402
import report  # noqa: E402

loader = importlib.machinery.SourceFileLoader("driver", str(HERE / "run"))
driver = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("driver", loader))
loader.exec_module(driver)

# A tree as NPB's, whose make writes what was asked for.
NPB_TEMPLATE = "MPIFC = mpif90\nMPICC = cc -O\nFFLAGS = -O3\n"
NPB_MAKEFILE = """\
include config/make.def
bt cg ep ft lu mg sp:
\t@mkdir -p bin
\t@echo 'echo "$(MPIFC) $@ $(CLASS)"; echo " Verification    = $(WORD)"' \
\t    >bin/$@.$(CLASS).x
\t@chmod +x bin/$@.$(CLASS).x
WORD = $(if $(filter mgW,$@$(CLASS)),UNSUCCESSFUL,SUCCESSFUL)
"""


def outcome(output, status=0, **words):
    test = recipes_of.Test(name="t", run="true", **words)
    return report.judge(test, jobrun.Result(status, output, "", 1.0))


class Judged(unittest.TestCase):
    def counts(self, result, passed, failed):
        self.assertEqual((result.passed, result.failed), (passed, failed))

    def test_plain(self):
        self.counts(outcome(""), 1, 0)
        self.counts(outcome("", status=1), 0, 1)
        self.counts(outcome("", status=-11), 0, 1)

    def test_patterns(self):
        self.counts(outcome("x\nDone 7\n", wants=[r"^Done \d"]), 1, 0)
        self.counts(outcome("not Done 7\n", wants=[r"^Done \d"]), 0, 1)
        self.counts(outcome("Done\nFAIL\n", wants=["Done"],
                            never=["FAIL"]), 0, 1)

    def test_counted(self):
        words = {"passed": r"(\d+) good", "failed": r"(\d+) bad"}
        self.counts(outcome("3 good\n4 good, 0 bad\n", **words), 7, 0)
        self.counts(outcome("3 good, 2 bad\n", **words), 3, 2)
        self.counts(outcome("3 good, 2 bad\n", status=8, **words), 3, 2)
        self.counts(outcome("3 good, 0 bad\n", status=1, **words), 3, 1)
        self.counts(outcome("", **words), 0, 1) # it did nothing
        self.counts(outcome("ok\nok\n", passed="^ok"), 2, 0)

    def test_leftovers(self):
        test = recipes_of.Test(name="t", run="true")
        result = jobrun.Result(0, "", "", 1.0, leftovers=[(7, "sleep")])
        self.counts(report.judge(test, result), 0, 1)


class NamedFolder(unittest.TestCase):
    """The recipe of NAS' benchmarks, on a tree of the same layout."""

    def setUp(self):
        self.recipe = recipes_of.load_all()["npb"]
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="chempi-npb-"))
        self.addCleanup(shutil.rmtree, self.work)
        tree = self.work / "npb/NPB3.4-MPI"
        (tree / "config").mkdir(parents=True)
        (tree / "config/make.def.template").write_text(NPB_TEMPLATE,
                                                       encoding="ascii")
        (tree / "Makefile").write_text(NPB_MAKEFILE, encoding="ascii")
        launcher = self.work / "mpiexec"
        launcher.write_text('#!/bin/sh\n[ "$1 $2" = "-n 4" ] && exec sh "$3"\n',
                            encoding="ascii")
        launcher.chmod(0o755)
        self.driver = driver.Driver.__new__(driver.Driver)
        self.driver.work = self.driver.logs = self.work
        self.driver.options = types.SimpleNamespace(jobs=1)
        self.driver.built = {}
        self.driver.mpi = types.SimpleNamespace(
            stamp=lambda: "", environment=lambda place: {
                **os.environ, "PATH": f"{self.work}:{os.environ['PATH']}"})

    def test_not_given(self):
        for value in ("", str(self.work / "nowhere")):
            with unittest.mock.patch.dict(os.environ,
                                          {self.recipe.folder: value}):
                with self.assertRaisesRegex(driver.Unavailable, "NPB_FOLDER"):
                    self.driver.build(self.recipe)

    def test_built_and_tried(self):
        with unittest.mock.patch.dict(os.environ, {
                self.recipe.folder: str(self.work / "npb")}):
            folder = self.driver.build(self.recipe)
        tests = list(self.driver.tests(self.recipe, folder))
        self.assertEqual(len(tests), 14)
        with unittest.mock.patch("builtins.print"):
            bad = [test.name for test in tests if self.driver.attempt(
                self.recipe, test, folder, "shm").failed]
        self.assertEqual(bad, ["mg.W, 4 ranks"])
        log = (self.work / "npb.shm.bt.S_4_ranks").read_text(encoding="utf-8")
        self.assertIn("mpifort bt S", log)

    def test_instead_of_debian(self):
        recipe = recipes_of.load_all()["superlu-dist"]
        target = self.work / "target"
        failing = unittest.mock.patch.object(
            driver.debsource, "fetch",
            side_effect=driver.debsource.FetchError("404"))
        with failing, self.assertRaisesRegex(
                driver.Unavailable, "404; SUPERLU_DIST_FOLDER may"):
            self.driver.source(recipe, target)
        with failing, unittest.mock.patch.dict(os.environ, {
                "SUPERLU_DIST_FOLDER": str(self.work / "npb")}):
            self.driver.source(recipe, target)
        self.assertTrue((target / "NPB3.4-MPI/Makefile").is_file())


class Recipes(unittest.TestCase):
    def test_all(self):
        recipes = recipes_of.load_all()
        self.assertGreater(len(recipes), 10)
        order = [r.name for r in recipes_of.ordered(recipes, recipes)]
        self.assertEqual(sorted(order), sorted(recipes))
        for recipe in recipes.values():
            for other in recipe.after:
                self.assertLess(order.index(other), order.index(recipe.name))

    def test_refused(self):
        with self.assertRaises(recipes_of.RecipeError):
            recipes_of.ordered(recipes_of.load_all(), ["nothing"])
        with self.assertRaises(recipes_of.RecipeError):
            recipes_of.tests_of({"name": "a", "run": "b", "wnts": []}, "x")
        with self.assertRaises(recipes_of.RecipeError):
            recipes_of.tests_of({"name": "a", "run": "b",
                                 "places": ["moon"]}, "x")

    def test_each(self):
        made = recipes_of.tests_of({"name": "{each}!", "run": "r {each}",
                                    "each": ["a", "b"]}, "x")
        self.assertEqual([(t.name, t.run) for t in made],
                         [("a!", "r a"), ("b!", "r b")])


if __name__ == "__main__":
    unittest.main()
