#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Users and daemons that mean harm: what they send is whole and well signed,
and says what no launcher and no daemon would say.

    hostile.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events, never for a time to pass. After every case no process,
socket or file may be left.
"""
import socket
import struct
import sys

from jobs import LIMIT_S, Cluster, Programs, check, control_version, expect, main
from wire import frame, launch, receive_frame, string

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


def greeting(name=b""):
    return frame(80, struct.pack("<I", control_version()) + string(name))


def client(cluster, name):
    """A user's connection that has greeted and been greeted."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(LIMIT_S)
    sock.connect(f"{cluster.dir}/{name}.sock")
    sock.sendall(greeting())
    check(receive_frame(sock)[0] == 80, "no greeting")
    return sock


def refusal(sock):
    """The words of the REPLY that comes."""
    kind, data = receive_frame(sock)
    check(kind == 85, "not a reply:", kind, data)
    return data[8:-1].decode()


def expect_whole(cluster, *pids):
    """The same daemons are there, and start jobs."""
    names = cluster.names()
    check([cluster.pid(name) for name in names] == list(pids),
          "another daemon", cluster.logged())
    expect(cluster.run("-n", str(2 * len(names)), Programs.rank, "init",
                       "everyone", "final"), 0)


@case
def a_launch_that_names_a_node_many_times_is_refused():
    """Each would be a child of a hub that has room for five."""
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        for count in (4000, 64, 7, 6, 2):
            for name in (b"a1", b"x1"):
                with client(cluster, "a1") as sock:
                    nodes = list(range(count))
                    sock.sendall(launch(7 + count, [name] * count, nodes,
                                        nodes))
                    check("malformed launch" in refusal(sock))
        expect_whole(cluster, pid)


@case
def a_launch_names_no_files():
    """A node's name is part of a path."""
    with Cluster(["a1"]) as cluster:
        pid = cluster.pid("a1")
        for name in (b"", b"../a1", b"a/b", b".a"):
            with client(cluster, "a1") as sock:
                sock.sendall(launch(9, [b"a1", name], [0], [0]))
                check("malformed launch" in refusal(sock))
        expect_whole(cluster, pid)


if __name__ == "__main__":
    sys.exit(main(CASES))
