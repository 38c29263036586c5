#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What can be seen of messages between ranks, and what becomes of them when
they are changed on the way.

    ranks.py BUILD THIEF [CASE]...

THIEF is a gateway that reads and changes what it passes on (thief.c).
Runs as root in a network namespace of its own, whose loopback it listens to;
elsewhere it counts as skipped.
"""
import fcntl
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "fault")]
from jobs import LIMIT_S, check, run_cases  # noqa: E402

SKIPPED = 77
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MARK = b"open-sesame-4711"
CASES = []
BUILD = ""
THIEF = ""

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* The mark as a short message, in a long one, and in a part of a struct. */
int main(int argc, char **argv)
{
    static const char mark[] = "open-sesame-4711";
    const int sizes[] = {sizeof(mark), 3000, 100000, 3000000};
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 4; i++) {
        char *data = malloc((size_t)sizes[i]);

        memset(data, rank ? 0 : 'x', (size_t)sizes[i]);
        if (rank == 0) {
            memcpy(data + sizes[i] - sizeof(mark), mark, sizeof(mark));
            MPI_Send(data, sizes[i], MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(data, sizes[i], MPI_CHAR, 0, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            if (strcmp(data + sizes[i] - sizeof(mark), mark) != 0)
                MPI_Abort(MPI_COMM_WORLD, 7);
        }
        free(data);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
"""


def case(fn):
    CASES.append(fn)
    return fn


def enter_namespace():
    """With a loopback of its own; False where that is not allowed."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS,
                    struct.pack("16sh14x", b"lo", IFF_UP))
    return True


class Ear:
    """Whether something goes over the loopback."""

    def __init__(self, *words):
        self.words = words
        self.heard = set()
        self.count = 0
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # RCVBUFFORCE
        self.sock.bind(("lo", 0))
        self.done, self.end = os.pipe()
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        while True:
            ready, _, _ = select.select([self.sock, self.done], [], [])
            if self.sock in ready:
                data = self.sock.recv(1 << 17)
                self.count += len(data)
                self.heard.update(w for w in self.words if w in data)
            elif ready:
                return

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.write(self.end, b"x")
        self.thread.join(LIMIT_S)
        self.sock.close()
        os.close(self.end)
        os.close(self.done)


def run(folder, *options):
    done = subprocess.run(
        [f"{BUILD}/chempid/chempirun", "--private", *options,
         f"{folder}/program"], stdin=subprocess.DEVNULL, capture_output=True,
        check=False, timeout=LIMIT_S)
    check(done.returncode == 0 and done.stdout == b"ok\n", done)


def build(folder):
    source = f"{folder}/program.c"
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    subprocess.run([f"{BUILD}/programs/wrappers/mpicc", "-O1", "-o",
                    f"{folder}/program", source], check=True,
                   timeout=LIMIT_S)


@case
def messages_of_a_secure_job_show_nothing():
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        build(folder)
        for options in ((), ("--secure",)):
            with Ear(MARK) as ear:
                run(folder, "--virtual", "2", "-n", "2", *options)
            check(ear.count > 3_000_000, "nothing was heard", ear.count)
            check(bool(ear.heard) == (options == ()), options, ear.heard)


@case
def nor_do_they_on_the_way_through_a_gateway():
    with tempfile.TemporaryDirectory(prefix="chempi-test-") as folder:
        build(folder)
        table = f"{folder}/tables"
        subprocess.run([f"{BUILD}/mdconfig/mdconfig", "compile", "-o", table,
                        os.path.join(HERE, "..", "mpi", "gate.yaml")], check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        for options in ((), ("--secure",)):
            with Ear(MARK) as ear:
                run(folder, "--network", table, "--virtual", "a,b",
                    "-n", "2", "--map", "cyclic", *options)
            check(ear.count > 6_000_000, "nothing was heard", ear.count)
            check(bool(ear.heard) == (options == ()), options, ear.heard)


class Den:
    """A launcher that finds a thief for a gateway, and two nodes that meet in it
    only."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="chempi-test-")
        folder = self.folder.name
        build(folder)
        for source, name in ((f"{BUILD}/chempid/chempirun", "chempirun"),
                             (THIEF, "chempi-gateway")):
            shutil.copy(source, f"{folder}/{name}")
        subprocess.run([f"{BUILD}/mdconfig/mdconfig", "compile", "-o",
                        f"{folder}/tables",
                        os.path.join(HERE, "..", "mpi", "gate.yaml")],
                       check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.folder.cleanup()

    def run(self, how, *options):
        return subprocess.run(
            [f"{self.folder.name}/chempirun", "--private", "--network",
             f"{self.folder.name}/tables", "--virtual", "a,b", "-n", "2",
             "--map", "cyclic", "-genv", "CHEMPI_TEST_THIEF", f"{how}",
             *options, f"{self.folder.name}/program"], stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=LIMIT_S)


def ended_well(done):
    check(done.returncode == 0 and done.stdout == b"ok\n", done)


def was_found(done, words):
    check(done.returncode not in (0, 7) and words.encode() in done.stderr and
          b"--secure" in done.stderr and b"ok" not in done.stdout, done)


@case
def a_gateway_reads_nothing_of_a_secure_job():
    with Den() as den:
        for options in ((), ("--secure",)):
            loot = pathlib.Path(den.folder.name, f"loot{len(options)}")
            ended_well(den.run(loot, *options))
            seen = loot.read_bytes()
            check(len(seen) > 3_000_000, len(seen))
            check((MARK in seen) == (options == ()), options)


@case
def what_a_gateway_changes_is_found():
    with Den() as den:
        for how in ("bit", "back"):
            was_found(den.run(how, "--secure"), "changed, or made up, came over")
        was_found(den.run("clear", "--secure"), "a frame in clear came over")
        was_found(den.run("twice", "--secure"), "sent twice, came over")
        was_found(den.run("as-is", "--secure"),
                  "not for this process came over")


@case
def what_a_gateway_leaves_out_is_missed():
    with Den() as den:
        was_found(den.run("lose", "--secure", "-genv", "CHEMPI_GATE_GAP_MS",
                          "300"), "leaves out a frame")


@case
def order_and_rumours_of_gateways_do_no_harm():
    with Den() as den:
        for how in ("swap", "gone"):
            ended_well(den.run(how, "--secure"))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv[1])
    THIEF = os.path.abspath(sys.argv.pop(2))
    if not enter_namespace():
        sys.exit(SKIPPED)
    sys.exit(run_cases(CASES, sys.argv[2:]))
