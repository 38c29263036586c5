#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the worked examples of man pages and compare what they print.

usage: man.py MDCONFIG PAGE...

In a page, the comment before a literal block says what the block is:
  .\\" file: NAME     contents of a file
  .\\" session        commands behind "$ ", run by sh in a directory with the
                     page's files, and what they print; a line that ends in a
                     backslash goes on in the next one
A literal block without such a comment is an error, unless it is marked
  .\\" prose
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r'^(?:\.\\" ([^\n]*)\n)?\.Bd -literal[^\n]*\n(.*?)^\.Ed',
                   re.S | re.M)


def plain(roff):
    """Text as a reader sees it."""
    return (roff.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'")
            .replace("\\e\n", "").replace("\\e", "\\"))


def play(text, mdconfig, folder):
    """The session as it really goes."""
    environment = dict(os.environ, LC_ALL="C", PATH=os.pathsep.join(
        [str(pathlib.Path(mdconfig).parent), os.environ["PATH"]]))
    said = ""
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        done = subprocess.run(["sh", "-c", line[2:]], cwd=folder, timeout=60,
                              stdin=subprocess.DEVNULL, text=True, check=False,
                              env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        said += line + "\n" + done.stdout
    return said


def examples_of(page, mdconfig):
    """Number of sessions that went as written, and of those that did not."""
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="chempi-man-") as folder:
        for mark, roff in BLOCK.findall(page.read_text(encoding="utf-8")):
            text = plain(roff)
            if mark.startswith("file: "):
                (pathlib.Path(folder) / mark[6:]).write_text(text)
            elif mark == "session":
                said = play(text, mdconfig, folder)
                good = said == text and "$ " in text
                passed += good
                failed += not good
                sys.stdout.writelines(difflib.unified_diff(
                    text.splitlines(True), said.splitlines(True),
                    f"{page.name} as written", "what is printed"))
            elif mark != "prose":
                print(f"{page.name}: a literal block is neither file, "
                      f"session nor prose:\n{text}")
                failed += 1
    return passed, failed


def main():
    mdconfig = os.path.abspath(sys.argv[1])
    passed = failed = 0
    for name in sys.argv[2:]:
        good, bad = examples_of(pathlib.Path(name), mdconfig)
        if good + bad == 0:
            print(f"{name}: no examples")
            bad = 1
        passed += good
        failed += bad
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
