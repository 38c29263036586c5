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
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fault")]
from jobs import (LIMIT_S, await_that, check, children, run_cases,  # noqa: E402
                  started, status_of)

SECRET, LOUD = b"open-sesame-4711", b"loud-and-clear-4712"
CASES = []
BUILD = ""
# After how many bytes of which direction the next one is changed.
CHANGES = {"listen": ("", 0), "down": ("down", 600), "up": ("up", 600),
           "input": ("down", 200000), "dam": ("", 0)}
WINDOW = 256 << 10  # CHEMPI_OUTPUT_WINDOW: bytes that are not acknowledged
QUIET_S = 5.0  # a job that shall end is left: chempid/launcher/run.c
ORDER = 2 + 16 + 4 + 16  # bytes of a signal on the way: a sealed frame


def case(fn):
    CASES.append(fn)
    return fn


def is_full(pid):
    """The pipe of standard output of that process takes nothing now."""
    fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    look = select.poll()
    look.register(fd, select.POLLOUT)
    found = look.poll(0)
    os.close(fd)
    return not found


def hold_back(far, folder, ways, count):
    """From the handshake on nothing more is read of what the far side says
    while there is a file `dam`; `full` tells that it can say no more, and who it
    is."""
    out = far.stdout.fileno()
    if count < 600 or not os.path.exists(f"{folder}/dam"):
        return list(ways)
    if not os.path.exists(f"{folder}/full") and is_full(far.pid):
        with open(f"{folder}/full.new", "x", encoding="ascii") as file:
            file.write(str(far.pid))
        os.rename(file.name, f"{folder}/full")
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


class Dammed:
    """A job whose rank fills the way back: nobody reads there while there is a
    dam, nor the launcher's standard output."""

    def __init__(self, folder, before="", after=""):
        self.dam, self.full, self.rank, self.down, self.up = (
            pathlib.Path(folder, name)
            for name in ("dam", "full", "rank", "a.down", "a.up"))
        self.dam.touch()
        reach = f"{sys.executable} {__file__} --tap {folder} dam"
        self.command = [
            f"{BUILD}/chempid/chempirun", "--launcher-exec", reach, "--nodes",
            "a", "-n", "1", "--bind", "none", "sh", "-c",
            # The end of input is the last that the launcher has to say.
            f"{before} cat; echo $$ > {self.rank}.new; mv {self.rank}.new "
            f"{self.rank}; head -c 1000000 /dev/zero; {after}"]

    def start(self):
        # With a page of output the launcher acknowledges none of it: it has
        # never written all.
        return started(self.command, stdin=subprocess.DEVNULL, pipesize=4096,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def await_full(self):
        await_that(lambda: self.full.exists() and self.rank.exists(),
                   "a pipe that is full")
        return [int(path.read_text(encoding="ascii"))
                for path in (self.full, self.rank)]


def ends_unheard():
    """False: it took so long, as this machine did, that any job is left."""
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        job = Dammed(folder, "trap '' INT TERM;", "exec tail -f /dev/null")
        with job.start() as run_it:
            _, rank = job.await_full()
            # The second one kills: it finds both, before its patience with the
            # first one ends. Then the launcher gives up nothing.
            size = job.down.stat().st_size
            began = time.monotonic()
            for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM,
                           signal.SIGCONT):
                run_it.send_signal(number)
            await_that(lambda: job.down.stat().st_size > size + 2 * ORDER,
                       "the second order")
            run_it.send_signal(signal.SIGSTOP)
            await_that(lambda: not os.path.exists(f"/proc/{rank}"),
                       "the end of the rank")
            job.dam.unlink()
            run_it.send_signal(signal.SIGCONT)
            _, told = run_it.communicate(timeout=LIMIT_S)
        if time.monotonic() - began >= QUIET_S:
            return False
        check(re.fullmatch(rb"chempirun: ended by signal \d+\n", told), told)
        check(run_it.returncode in (130, 143), run_it.returncode)
        return True


@case
def a_launcher_that_is_not_heard_ends_a_job():
    """The way back is full, as if the launcher stood still; what it orders
    passes, and the ranks end."""
    await_that(ends_unheard, "the end of a job")


@case
def what_had_to_wait_goes_on_by_itself():
    """The way back was full, and so was what the other end keeps; then it is
    free, and the launcher says nothing to those there."""
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        job = Dammed(folder)
        with job.start() as run_it:
            far, rank = job.await_full()
            await_that(lambda: is_full(rank) and
                       all(status_of(pid, "State")[0][0] == "S"
                           for pid in (far, *children(far))), "a standstill")
            size = job.down.stat().st_size
            job.dam.unlink()
            await_that(lambda: job.up.stat().st_size > WINDOW,
                       "what had to wait")
            check(job.down.stat().st_size == size, "an acknowledgement")
            out, told = run_it.communicate(timeout=LIMIT_S)
        check(len(out) == 1000000 and not told, len(out), told)
        check(run_it.returncode == 0, run_it.returncode)


if __name__ == "__main__":
    if sys.argv[1] == "--tap":
        sys.exit(tap(*sys.argv[2:6]))
    BUILD = os.path.abspath(sys.argv[1])
    sys.exit(run_cases(CASES, sys.argv[2:]))
