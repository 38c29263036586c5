#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors that somebody passes over a Unix socket of ours: of a connection
that keeps its last closer waiting.

    passed.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Nobody takes them, so nobody closes them. Runs in a network namespace of its
own, where names of sockets are nobody else's. Cases for which that, or another
user, is needed are for root, and count as skipped elsewhere.
"""
import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "fault")]
from jobs import (  # noqa: E402
    LIMIT_S, SKIPPED, Cluster, Job, Programs, await_that, check, control_version,
    expect, main, root_only, started)
from ranks import enter_namespace  # noqa: E402
from wire import frame, string  # noqa: E402

CASES = []
GREET = 80
FIRST_USER = 60001
LINGER_S = 3600


def case(fn):
    CASES.append(fn)
    return fn


class Clinging:
    """A connection whose last descriptor is not closed before its peer has
    read what it never reads."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sock = socket.create_connection(self.listener.getsockname())
        self.peer = self.listener.accept()[0]
        self.closer = threading.Thread(target=self.sock.close)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, LINGER_S))
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.send(bytes(1 << 16))

    def pass_over(self, to, data):
        """Leave the only descriptor to whoever reads there, or closes it;
        returns whether the kernel has let it go that way. If they were
        quicker, the last one to close it is a thread here, which waits."""
        fd = self.sock.fileno()
        try:
            socket.send_fds(to, [data], [fd])
        except (PermissionError, BrokenPipeError, ConnectionResetError):
            return False
        self.closer.start()
        while os.path.lexists(f"/proc/self/fd/{fd}"):
            os.sched_yield()
        return True

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.peer.close()  # which sends a reset: nobody waits any more
        self.listener.close()
        if self.closer.ident:
            self.closer.join()
        self.sock.close()


def abstract_names(pattern):
    with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
        return set(re.findall(rf"@({pattern})$", file.read(), re.M))


def doors():
    """Of launchers, where they listen already (__SO_ACCEPTCON)."""
    with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
        return re.findall(r" 00010000 \S+ \S+ +\d+ @(chempi-job/.*)$",
                          file.read(), re.M)


def greeting():
    return frame(GREET, struct.pack("<I", control_version()) + string(b""))


# ---- daemons -----------------------------------------------------------------


def client_of(cluster):
    """Another user's, if that can be."""
    sock = socket.socket(socket.AF_UNIX)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(FIRST_USER)
    sock.connect(f"{cluster.dir}/a1.sock")
    if is_root:
        os.seteuid(0)
    return sock


@case
def a_daemon_does_not_close_what_a_client_passes():
    """With its first words, and after words for which it is refused."""
    for words in (greeting(), bytes(64)):
        with Cluster(["a1"], mode=0o755) as cluster, \
                Clinging() as clinging, client_of(cluster) as sock:
            sock.sendall(words[:16])
            clinging.pass_over(sock, words[16:])
            check("a1" in cluster.ctl("nodes"))


# ---- launchers ---------------------------------------------------------------


def end_input(job):
    job.process.stdin.close()
    job.process.stdin = None
    job.status = job.finish()
    expect(job, 0)


@case
@root_only
def a_launcher_does_not_close_what_a_stranger_passes():
    """Who is not answered may have said something before."""
    job = Job("-n", "1", "cat", stdin=subprocess.PIPE)
    await_that(doors, "its door")
    name, = doors()
    job.process.send_signal(signal.SIGSTOP)
    with Clinging() as clinging, socket.socket(socket.AF_UNIX) as asker:
        os.seteuid(FIRST_USER)
        asker.connect("\0" + name)
        os.seteuid(0)
        clinging.pass_over(asker, b"?")
        job.process.send_signal(signal.SIGCONT)
        end_input(job)


@case
def who_asks_does_not_close_what_is_answered():
    """Root asks anybody who has such a name."""
    name = f"chempi-job/{os.geteuid()}/{'5' * 16}/{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("\0" + name)
        door.listen()
        door.settimeout(LIMIT_S)
        with started([Programs.chempictl, "where", "5" * 16],
                     stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE) as asker, \
                door.accept()[0] as sock, Clinging() as clinging:
            is_passed = clinging.pass_over(sock, b"here\n")
            if not is_passed:
                sock.sendall(b"here\n")
            sock.shutdown(socket.SHUT_RDWR)
            out = asker.communicate(timeout=LIMIT_S)[0]
            check(is_passed or b"here" in out, out)


# ---- supervisors -------------------------------------------------------------


@case
@root_only
def nobody_writes_to_the_names_of_cores():
    """What is in a socket is closed with it."""
    job = Job("--bind-to", "core", "-n", "1", "cat", stdin=subprocess.PIPE)
    await_that(lambda: abstract_names(r"chempi-core-\d+"), "a name")
    for name in abstract_names(r"chempi-core-\d+"):
        for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
            with socket.socket(socket.AF_UNIX, kind) as sock, \
                    contextlib.suppress(ConnectionRefusedError):
                sock.connect("\0" + name)
                with Clinging() as clinging:
                    check(not clinging.pass_over(sock, b"?"), name)
    end_input(job)


if __name__ == "__main__":
    if not enter_namespace() and "--root" in sys.argv:
        sys.exit(SKIPPED)  # doors and names of others would be there, too
    sys.exit(main(CASES))
