#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes that nobody has launched, which start a launcher themselves to
spawn: how each of them ends, and what that ends.

    alone.py CHEMPIRUN CHEMPID CHEMPICTL RANK PROGRAM [CASE]...

Cases wait for events, never for a time to pass. After every case no process may
be left.
"""
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from jobs import (LIMIT_S, Job, Programs, await_that, check, control_version,
                  expect, full_pipe, interrupt, is_alive, kill_and_wait, pending,
                  run_cases, started, status_of)
from wire import frame
import jobrun  # in the path since jobs is

CASES = []
HELLO, INIT, ROOT_REQUEST = 1, 5, 62  # common/control/msg.h
CHEMPIRUN = sys.argv[1]
# By the launcher, or, if it is first, by a child that finds its parent lost.
BAD_END = (r"chempirun: process \d+ \(fault-alone\) has ended without "
           r"MPI_Finalize; the worlds that it has started were ended\n|"
           r"is lost, and its world with it")


def case(fn):
    CASES.append(fn)
    return fn


def pids(job, word):
    return [int(line.split()[1]) for line in job.output.splitlines()
            if line.startswith(word)]


def launcher(job):
    """That of the process itself, and not those of its worlds."""
    found = [pid for pid, words in jobrun.marked(job.mark)
             if words.split()[1:] == ["--serve"]]
    check(len(found) == 1, "launchers:", found)
    return found[0]


def begin(*args, **kwargs):
    """Up to where all have met."""
    return Job(*args, start_new_session=True, **kwargs).await_lines(3)


def end_badly(job, number):
    job.status = job.finish()
    expect(job, -number, BAD_END)


def kill(job):
    os.kill(job.process.pid, signal.SIGKILL)
    end_badly(job, signal.SIGKILL)


@case
def a_killed_process_leaves_nothing():
    job = begin("stay")
    kill(job)


@case
def nor_does_one_that_has_forked():
    job = begin("fork")
    forked = [pid for pid in job.marked("fault-alone")
              if pid not in pids(job, b"parent") + pids(job, b"child")]
    check(len(forked) == 1, forked)
    kill_and_wait(job.process.pid, [launcher(job), *pids(job, b"child")])
    check(is_alive(forked[0]), "the forked process has ended")
    os.kill(forked[0], signal.SIGKILL)
    end_badly(job, signal.SIGKILL)


@case
def nor_does_one_that_ends_without_finalizing():
    job = Job("exit", start_new_session=True)
    job.status = job.finish()
    expect(job, 0, BAD_END)


@case
def the_launcher_is_nobodys_child():
    job = begin("stay")
    parent = int(status_of(launcher(job), "PPid")[0][0])
    check(parent != job.process.pid, "it is a child of the process")
    kill(job)


@case
def an_interrupt_ends_all():
    job = begin("stay")
    os.killpg(job.process.pid, signal.SIGINT)
    end_badly(job, signal.SIGINT)


@case
def what_the_process_ignores_ends_nothing():
    job = begin("deaf")
    for number in signal.SIGINT, signal.SIGINT:
        os.killpg(job.process.pid, number)
    first = launcher(job)
    await_that(lambda: not pending(first), "the launcher takes the signals")
    check(all(is_alive(pid) for pid in [first, *pids(job, b"child")]),
          "something has ended")
    kill(job)


def states(job):
    """Of all processes but the supervisors' and the worlds' launchers."""
    return [status_of(pid, "State")[0][0]
            for pid in [launcher(job), *pids(job, b"child")]]


@case
def what_stops_the_process_stops_its_worlds():
    job = begin("stay")
    os.killpg(job.process.pid, signal.SIGTSTP)
    await_that(lambda: states(job) == 3 * ["T"], "all have stopped")
    os.killpg(job.process.pid, signal.SIGCONT)
    await_that(lambda: "T" not in states(job), "all go on")
    kill(job)


def serve(data):
    """What a launcher says of a process that says this."""
    ours, its = socket.socketpair()
    with ours, its:
        with started(
                ["sh", "-c", f'exec "$0" --serve 3<&{its.fileno()}', CHEMPIRUN],
                pass_fds=[its.fileno()], stderr=subprocess.PIPE) as process:
            its.close()
            ours.sendall(data)
            return process.communicate(timeout=LIMIT_S)[1].decode()


def question(serial, what=4):
    return frame(ROOT_REQUEST, struct.pack("<IBI", serial, what, 0))


@case
def who_breaks_the_protocol_is_left():
    version = control_version()
    hello = frame(HELLO, struct.pack("<II", version, os.getpid()))
    for data, words in (
            (frame(HELLO, struct.pack("<II", version + 1, os.getpid())),
             "are of different versions"),
            (frame(HELLO, struct.pack("<I", version)), "malformed greeting"),
            (frame(INIT), "malformed beginning"),
            (hello + hello, "malformed beginning"),
            (hello + question(2), "malformed question"),
            (hello + question(1, 0), "malformed question"),
            (hello + frame(ROOT_REQUEST, b"123"), "malformed question"),
            (hello + frame(99), "malformed message")):
        said = serve(data)
        check(words in said and said.count("\n") == 1, data, said)
    done = subprocess.run([CHEMPIRUN, "--serve"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    check(done.returncode == 1 and "is for processes" in done.stderr, done)


@case
def a_process_may_end_before_its_greeting_is_read():
    """Somebody else has a copy of its link, which so does not tell."""
    with subprocess.Popen(["true"]) as ended:
        pass
    check(serve(frame(HELLO, struct.pack("<II", control_version(),
                                         ended.pid))) == "")


@contextlib.contextmanager
def parted(what="part"):
    """Children that go on when their parent has finalized, and with "part"
    ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/fifo"
        os.mkfifo(path)
        # Of both ends: nobody waits for another one to open it.
        with open(os.open(path, os.O_RDWR), "wb", buffering=0) as gate:
            job = begin(what, path)
            if what == "part":
                os.waitid(os.P_PID, job.process.pid, os.WEXITED | os.WNOWAIT)
            else:
                job.await_lines(4)
            check(all(is_alive(pid)
                      for pid in [launcher(job), *pids(job, b"child")]),
                  "something has ended")
            yield job
            gate.write(b"12")
            job.status = job.finish()


@case
def worlds_outlive_who_has_finalized():
    with parted() as job:
        pass
    expect(job, 0, r"\A\Z")


@case
def then_the_launcher_obeys_signals():
    with parted() as job:
        os.kill(launcher(job), signal.SIGTERM)
        await_that(lambda: not any(map(is_alive, pids(job, b"child"))),
                   "the children's end")
    expect(job, 0)


@case
def it_obeys_a_signal_that_it_finds_beside_the_end():
    with parted("linger") as job:
        first = launcher(job)
        os.kill(first, signal.SIGSTOP)
        await_that(lambda: status_of(first, "State")[0][0] == "T", "its stop")
        os.kill(job.process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, job.process.pid, os.WEXITED | os.WNOWAIT)
        os.kill(first, signal.SIGTERM)
        os.kill(first, signal.SIGCONT)
        await_that(lambda: not any(map(is_alive, pids(job, b"child"))),
                   "the children's end")
    expect(job, -signal.SIGKILL)


@case
def at_the_third_signal_it_waits_for_no_reader():
    with full_pipe() as end:
        job = begin("stay", stderr=end)
        first = launcher(job)
        os.kill(job.process.pid, signal.SIGKILL)
        # Its connections end before it does, and its children with them.
        os.waitid(os.P_PID, job.process.pid, os.WEXITED | os.WNOWAIT)
        await_that(lambda: not any(map(is_alive, pids(job, b"child"))),
                   "the children's end")
        for turn in range(3):
            check(is_alive(first), "it has ended at", turn)
            interrupt(first)
        check(job.finish() == -signal.SIGKILL, job.process.returncode)


@case
def the_end_of_the_launcher_is_not_that_of_the_process():
    job = begin("again")
    kill_and_wait(launcher(job), pids(job, b"child"))
    job.await_lines(5)
    job.status = job.finish()
    expect(job, 0)


# Ends as soon as it has been asked to start something, the first time; after
# that it is the launcher.
MORTAL = """#!/usr/bin/env python3
import os, pathlib, socket
asked = pathlib.Path({asked!r})
if asked.exists():
    os.execv({chempirun!r}, [{chempirun!r}, "--serve"])
data = b""
with socket.socket(fileno=3) as link:
    while b"/fault-alone" not in data:
        piece = link.recv(65536)
        assert piece, "nothing was asked"
        data += piece
    asked.touch()
"""


@case
def a_launcher_that_ends_before_it_answers_is_replaced():
    """Whose end its connection tells only when it has been asked."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/launcher"
        with open(path, "w", encoding="utf-8") as file:
            file.write(MORTAL.format(asked=f"{folder}/asked",
                                     chempirun=CHEMPIRUN))
        os.chmod(path, 0o755)
        kill(begin("stay", env={**os.environ, "CHEMPI_RUN": path}))


if __name__ == "__main__":
    # Programs start by themselves.
    Programs.chempirun = sys.argv[5]
    sys.exit(run_cases(CASES, sys.argv[6:]))
