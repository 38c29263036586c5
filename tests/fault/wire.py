# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the control protocol, for tests that speak it themselves."""
import hashlib
import struct

from jobs import check

HEAD = "<IHHQ"  # length, kind, mark, job
MARK = 0xc4e1


def frame(kind, payload=b"", job=0):
    return struct.pack(HEAD, len(payload), kind, MARK, job) + payload


def string(text):
    return struct.pack("<I", len(text) + 1) + text + b"\0"


def receive(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        check(piece, "the daemon closed the connection")
        data += piece
    return data


def receive_frame(sock):
    """Type and contents of what a daemon says next."""
    length, kind = struct.unpack_from("<IH", receive(sock, 16))
    return kind, receive(sock, length)


# ---- between daemons ---------------------------------------------------------


def proof(key, role, client, server):
    return hashlib.blake2b(b"CHEMPIa1" + role + client + server + b"chempid",
                           key=key, digest_size=32).digest()


def read_key(cluster):
    with open(cluster.key, encoding="utf-8") as file:
        return bytes.fromhex(file.read().strip())
