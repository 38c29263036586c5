# SPDX-License-Identifier: BSD-3-Clause
"""Run one command of a test, a benchmark or the demo, with a time limit.

Nothing that a command starts outlives run(): every process carries a mark in
its environment, so that also daemons in sessions of their own are found. A
command that left processes behind is reported as such; they are then ended,
by process id. A program that calls end_on_signals() ends what runs when it is
itself asked to end.
"""
import dataclasses
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid

MARK = "CHEMPI_RUN_MARK"
OUTPUT_MAX = 4 << 20  # bytes of output kept of one command
SETTLE_S = 30.0       # time that processes have to end after their launcher
KILLED_S = 5.0        # and when they have been killed

running = set()       # marks of what run() has not seen the end of
stopped_by = []       # signals: nothing is run any more


@dataclasses.dataclass
class Result:
    status: int          # exit code, or -signal
    output: str          # standard output (and error, when joined)
    errors: str          # standard error, when kept apart
    seconds: float
    timed_out: bool = False
    leftovers: list = dataclasses.field(default_factory=list)

    @property
    def ok(self):
        return self.status == 0 and not self.timed_out and not self.leftovers


def marked(mark, name=MARK):
    """Process ids (and command lines) that carry the mark."""
    wanted = f"{name}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        found.append((int(name), words.strip() or "?"))
    return found


def wait_gone(pids, seconds):
    """Wait until the processes have ended; at most so many seconds."""
    end = time.monotonic() + seconds
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            continue
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(max(0, (end - time.monotonic()) * 1000))
        os.close(fd)


def await_unmarked(mark, seconds):
    """Wait until nothing carries the mark; at most so many seconds. Returns
    what does. Who ends may have started others that end with it."""
    end = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < end:
        wait_gone([pid for pid, _ in left], end - time.monotonic())
    return left


def end_marked(mark, settle_s):
    """End what still carries the mark; returns what had to be ended."""
    ended = await_unmarked(mark, settle_s)
    end = time.monotonic() + KILLED_S
    left = ended
    while left and time.monotonic() < end:
        for pid, _ in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_gone([pid for pid, _ in left], end - time.monotonic())
        left = marked(mark)
    return ended


def stop(process, mark, settle_s):
    """End a command that is over its time: ask first, then by force."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(settle_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    end_marked(mark, 0)


def end_on_signals():
    """From the main thread: SIGINT and SIGTERM end what all threads run, and
    then this program."""
    def on_signal(number, _frame):
        stopped_by.append(number)
        for mark in list(running):
            end_marked(mark, 0)
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def read_limited(file):
    file.seek(0)
    return file.read(OUTPUT_MAX).decode("utf-8", "replace")


def run(command, cwd=None, env=None, timeout_s=60.0, stdin=None, join=True,
        settle_s=SETTLE_S):
    """Run a command; never raises for what the command does."""
    mark = uuid.uuid4().hex
    running.add(mark)
    environment = dict(os.environ if env is None else env)
    environment[MARK] = mark
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            tempfile.TemporaryFile() as inp:
        if stdin is not None:
            inp.write(stdin)
            inp.seek(0)
        start = time.monotonic()
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, start_new_session=True,
            stdin=inp if stdin is not None else subprocess.DEVNULL,
            stdout=out, stderr=out if join else err)
        timed_out = False
        leftovers = []
        try:
            if stopped_by:  # a signal that did not find the process yet
                sys.exit(128 + stopped_by[0])
            process.wait(timeout_s)
            seconds = time.monotonic() - start
            leftovers = end_marked(mark, settle_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            seconds = time.monotonic() - start
            stop(process, mark, settle_s)
        except BaseException:
            stop(process, mark, settle_s)
            raise
        finally:
            running.discard(mark)
        return Result(process.returncode, read_limited(out),
                      "" if join else read_limited(err), seconds, timed_out,
                      leftovers)
