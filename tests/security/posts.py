#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What can be seen of what a launcher says to supervisors that it reaches by a
command (--launcher-exec), and what becomes of it when it is changed there.

    posts.py BUILD [CASE]...
    posts.py --tap FOLDER HOW HOST ORDER    what the command is
"""
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fault")]
from jobs import LIMIT_S, await_that, check, run_cases  # noqa: E402

SECRET, LOUD = b"open-sesame-4711", b"loud-and-clear-4712"
CASES = []
BUILD = ""
# After how many bytes of which direction the next one is changed.
CHANGES = {"listen": ("", 0), "down": ("down", 600), "up": ("up", 600),
           "input": ("down", 200000), "dam": ("", 0)}


def case(fn):
    CASES.append(fn)
    return fn


def is_full(far):
    """The pipe of standard output of that process takes nothing now."""
    fd = os.open(f"/proc/{far.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    look = select.poll()
    look.register(fd, select.POLLOUT)
    found = look.poll(0)
    os.close(fd)
    return not found


def hold_back(far, folder, ways, count):
    """From the handshake on nothing more is read of what the far side says
    while there is a file `dam`; `full` tells that it can say no more."""
    out = far.stdout.fileno()
    if count < 600 or not os.path.exists(f"{folder}/dam"):
        return list(ways)
    if not os.path.exists(f"{folder}/full") and is_full(far):
        with open(f"{folder}/full", "x", encoding="ascii"):
            pass
    return [fd for fd in ways if fd != out]


def tap(folder, how, host, order):
    """Run the order as ssh would on that host; both directions go to files, and
    one bit of one of them is another one, if that is wanted."""
    with subprocess.Popen(["sh", "-c", order], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as far:
        ways = {0: [far.stdin.fileno(), "down", 0],
                far.stdout.fileno(): [1, "up", 0]}
        while far.stdout.fileno() in ways:
            wanted = list(ways) if how != "dam" else hold_back(
                far, folder, ways, ways[far.stdout.fileno()][2])
            for fd in select.select(wanted, [], [],
                                    0.01 if how == "dam" else None)[0]:
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


@case
def a_launcher_that_is_not_heard_ends_a_job():
    """The way back is full, as if the launcher stood still; what it orders
    passes, and the ranks end."""
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        dam, full, rank, down = (pathlib.Path(folder, name) for name in
                                 ("dam", "full", "rank", "a.down"))
        dam.touch()
        reach = f"{sys.executable} {__file__} --tap {folder} dam"
        with subprocess.Popen(
                [f"{BUILD}/chempid/chempirun", "--launcher-exec", reach,
                 "--nodes", "a", "-n", "1", "--bind", "none", "sh", "-c",
                 f"trap '' INT TERM; echo $$ > {rank}.new; "
                 f"mv {rank}.new {rank}; head -c 1000000 /dev/zero; "
                 "exec tail -f /dev/null"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE) as run_it:
            await_that(lambda: full.exists() and rank.exists(),
                       "a pipe that is full")
            # The second one kills. Then the launcher gives up nothing.
            for number in (signal.SIGINT, signal.SIGTERM):
                size = down.stat().st_size
                run_it.send_signal(number)
                await_that(lambda size=size: down.stat().st_size > size,
                           "an order")
            run_it.send_signal(signal.SIGSTOP)
            try:
                pid = int(rank.read_text(encoding="ascii"))
                await_that(lambda: not os.path.exists(f"/proc/{pid}"),
                           "the end of the rank")
            finally:
                dam.unlink()
                run_it.send_signal(signal.SIGCONT)
            _, told = run_it.communicate(timeout=LIMIT_S)
        check(re.fullmatch(rb"chempirun: ended by signal \d+\n", told), told)
        check(run_it.returncode in (130, 143), run_it.returncode)


if __name__ == "__main__":
    if sys.argv[1] == "--tap":
        sys.exit(tap(*sys.argv[2:6]))
    BUILD = os.path.abspath(sys.argv[1])
    sys.exit(run_cases(CASES, sys.argv[2:]))
