# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the control protocol, for tests that speak it themselves."""
import hashlib
import os
import struct

from jobs import check, control_version

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


def read_key(cluster):
    with open(cluster.key, encoding="utf-8") as file:
        return bytes.fromhex(file.read().strip())


# ---- launches ----------------------------------------------------------------


def strings(words):
    return struct.pack("<I", len(words)) + b"".join(string(w) for w in words)


def job_name(job):
    """chempi_spec_name()"""
    return hashlib.blake2b(job.to_bytes(8, "little"),
                           digest_size=16).digest()[:8].hex().encode()


def launch(job, names, nodes, ranks, argv=(b"true",), uid=None, gid=None,
           limits=16, busy_max=2**32 - 1):
    """LAUNCH (chempid/job/spec.h): node names of the job, the nodes that are the
    receiver's business, and the node of each rank; of a shell that has limited
    nothing, or (limits=0) that nobody knows."""
    uid = os.getuid() if uid is None else uid
    gid = os.getgid() if gid is None else gid
    data = struct.pack(f"<I{len(nodes)}I", len(nodes), *nodes)
    data += struct.pack("<BII", limits > 0, 0o22 if limits else 0, limits)
    data += struct.pack("<QQ", 2**64 - 1, 2**64 - 1) * limits
    data += struct.pack("<IQ", control_version(), job)
    data += string(job_name(job)) + bytes(32)
    data += struct.pack("<III", uid, gid, len(names))
    for i, name in enumerate(names):
        data += string(name) + struct.pack("<III", 0, i, busy_max)
    data += struct.pack(f"<I{len(ranks)}I", len(ranks), *ranks)
    data += struct.pack("<II", 0, 1)  # no gateways, one program
    data += strings(argv) + strings([]) + string(b"")
    data += struct.pack("<I", len(ranks))
    data += strings([]) + string(b"/") + string(b"")
    data += struct.pack("<IIIBI", len(ranks), 0xfffffffe, 0, 0, 0)
    data += struct.pack("<BB", 0, 0)  # not debugged, survives nobody
    data += 2 * string(b"") + struct.pack("<I", 0)
    data += string(b"") + string(b"")  # any processors, no file of ranks
    data += struct.pack("<IB32x", 0, 0) + string(b"")  # first world, in clear
    return frame(48, data, job)
