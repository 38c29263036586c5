#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What can be seen of what a launcher says to supervisors that it reaches by a
command (--launcher-exec), and what becomes of it when it is changed there.

    posts.py BUILD [CASE]...
    posts.py --tap FOLDER HOW HOST ORDER    what the command is
"""
import os
import pathlib
import select
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fault")]
from jobs import LIMIT_S, check, run_cases  # noqa: E402

SECRET, LOUD = b"open-sesame-4711", b"loud-and-clear-4712"
CASES = []
BUILD = ""
# After how many bytes of which direction the next one is changed.
CHANGES = {"listen": ("", 0), "down": ("down", 600), "up": ("up", 600),
           "input": ("down", 200000)}


def case(fn):
    CASES.append(fn)
    return fn


def tap(folder, how, host, order):
    """Run the order as ssh would on that host; both directions go to files, and
    one bit of one of them is another one, if that is wanted."""
    with subprocess.Popen(["sh", "-c", order], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as far:
        ways = {0: [far.stdin.fileno(), "down", 0],
                far.stdout.fileno(): [1, "up", 0]}
        while far.stdout.fileno() in ways:
            for fd in select.select(list(ways), [], [])[0]:
                to, name, count = ways[fd]
                try:
                    data = bytearray(os.read(fd, 65536))
                except ConnectionResetError:
                    data = b""
                if not data:
                    del ways[fd]
                    if fd == 0:
                        far.stdin.close()
                    continue
                changed, after = CHANGES[how]
                if changed == name and count <= after < count + len(data):
                    data[after - count] ^= 1
                ways[fd][2] += len(data)
                with open(f"{folder}/{host}.{name}", "ab") as file:
                    file.write(data)
                try:
                    while data:
                        del data[:os.write(to, data)]
                except BrokenPipeError:
                    del ways[fd]
    return far.returncode


def run(folder, how, *program):
    reach = f"{sys.executable} {__file__} --tap {folder} {how}"
    return subprocess.run(
        [f"{BUILD}/chempid/chempirun", "--launcher-exec", reach, "--nodes",
         "a,b", "-n", "2", "--bind", "none", *program],
        env=dict(os.environ, CHEMPI_TEST_WORD=SECRET.decode()),
        input=bytes(300000), capture_output=True, check=False,
        timeout=LIMIT_S)


@case
def who_listens_sees_no_environment_and_no_output():
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        # The word is put together there, so that no argument has it.
        done = run(folder, "listen", "sh", "-c",
                   'echo "$(echo loud-and)-clear-4712 $CHEMPI_TEST_WORD"; '
                   'head -c 100000 /dev/zero')
        check(done.returncode == 0, done.returncode, done.stderr)
        check(done.stdout.count(LOUD + b" " + SECRET) == 2, done.stdout[:200])
        heard = {p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir()}
        check(sorted(heard) == ["a.down", "a.up", "b.down", "b.up"],
              list(heard))
        for name, data in heard.items():
            check(len(data) > (100000 if name.endswith("up") else 300), name,
                  len(data))
            for word in (SECRET, LOUD, b"CHEMPI_TEST_WORD", b"PATH=", bytes(99)):
                check(word not in data, name, word)


@case
def what_is_changed_on_the_way_ends_the_job():
    for how, words in (("down", b"was changed"),
                       ("input", b"the launcher has not sealed"),
                       ("up", b"not sealed with the keys")):
        with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
            done = run(folder, how, "sh", "-c", "head -c 100000 /dev/zero; cat >/dev/null; "
                       "exec tail -f /dev/null")
            check(done.returncode != 0, how, done.stderr)
            check(words in done.stderr and
                  b"the connection to host" in done.stderr, how, done.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "--tap":
        sys.exit(tap(*sys.argv[2:6]))
    BUILD = os.path.abspath(sys.argv[1])
    sys.exit(run_cases(CASES, sys.argv[2:]))
