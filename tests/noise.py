# SPDX-License-Identifier: BSD-3-Clause
"""Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b and the records of daemons, written
from the specification (revision 34) and apart from common/auth, so that the
tests speak with daemons and check what common/auth says.

    noise.py        print the vector of XXpsk0 for tests/unit/auth/test_noise.c
"""
import ctypes
import hashlib
import hmac
import secrets
import socket
import struct
import sys
import time

KEY = 32
TAG = 16
REKEY = 65536
RECORD_MAX = 16384 + TAG
MAGIC = b"CHEMPIn1"
CONTEXT = b"chempid"
PROOF_S = 3.0  # to prove the key: chempid/tree/limits.h

sodium = ctypes.CDLL("libsodium.so.23")
if sodium.sodium_init() < 0:
    raise OSError("libsodium does not start")


class Refused(Exception):
    """The other side has not the keys that it should have."""


def public_of(secret):
    out = ctypes.create_string_buffer(KEY)
    sodium.crypto_scalarmult_base(out, secret)
    return out.raw


def exchange(secret, public):
    out = ctypes.create_string_buffer(KEY)
    if sodium.crypto_scalarmult(out, secret, public):
        raise Refused("a point of low order")
    return out.raw


def digest(data):
    return hashlib.blake2b(data).digest()


def derive(chain, data, count):
    temp = hmac.digest(chain, data, "blake2b")
    out = [b""]
    for i in range(count):
        out.append(hmac.digest(temp, out[-1] + bytes([i + 1]), "blake2b"))
    return out[1:]


class Cipher:
    """One direction."""

    def __init__(self, key):
        self.key = key
        self.count = 0

    def crypt(self, verb, data, extra, ad, count):
        out = ctypes.create_string_buffer(max(len(data) + extra, 1))
        call = getattr(sodium, f"crypto_aead_chacha20poly1305_ietf_{verb}")
        size = ctypes.c_ulonglong
        nonce = bytes(4) + struct.pack("<Q", count)
        if verb == "encrypt":
            rc = call(out, None, data, size(len(data)), ad, size(len(ad)),
                      None, nonce, self.key)
        else:
            rc = call(out, None, None, data, size(len(data)), ad,
                      size(len(ad)), nonce, self.key)
        if rc:
            raise Refused("not what was sealed")
        return out.raw[:len(data) + extra]

    def seal(self, data, ad=b""):
        data = self.crypt("encrypt", data, TAG, ad, self.count)
        self.count += 1
        return data

    def open(self, data, ad=b""):
        if len(data) < TAG:
            raise Refused("too short")
        data = self.crypt("decrypt", data, -TAG, ad, self.count)
        self.count += 1
        return data

    def rekey(self):
        """After REKEY messages of a transport."""
        if self.count % REKEY == 0:
            self.key = self.crypt("encrypt", bytes(KEY), TAG, b"",
                                  2 ** 64 - 1)[:KEY]


PATTERNS = {"psk0": (("psk", "e"), ("e", "ee", "s", "es"), ("s", "se")),
            "psk3": (("e",), ("e", "ee", "s", "es"), ("s", "se", "psk"))}


class Handshake:
    """Of one side."""

    def __init__(self, initiator, psk, own=None, fresh=None, place="psk0",
                 prologue=MAGIC + CONTEXT):
        name = f"Noise_XX{place}_25519_ChaChaPoly_BLAKE2b".encode()
        self.initiator = initiator
        self.psk = psk
        self.own = own or secrets.token_bytes(KEY)
        self.fresh = fresh or secrets.token_bytes(KEY)
        self.peer = self.peer_fresh = None
        self.hash = self.chain = name.ljust(64, b"\0")
        self.cipher = None
        self.lines = list(PATTERNS[place])
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = digest(self.hash + data)

    def mix_key(self, data):
        self.chain, key = derive(self.chain, data, 2)
        self.cipher = Cipher(key[:KEY])

    def mix(self, token):
        if token == "psk":
            self.chain, mixed, key = derive(self.chain, self.psk, 3)
            self.mix_hash(mixed)
            self.cipher = Cipher(key[:KEY])
            return
        own_fresh = token[0 if self.initiator else 1] == "e"
        peer_fresh = token[1 if self.initiator else 0] == "e"
        self.mix_key(exchange(self.fresh if own_fresh else self.own,
                              self.peer_fresh if peer_fresh else self.peer))

    def put(self, data):
        if self.cipher:
            data = self.cipher.seal(data, self.hash)
        self.mix_hash(data)
        return data

    def get(self, data):
        plain = self.cipher.open(data, self.hash) if self.cipher else data
        self.mix_hash(data)
        return plain

    def write(self, payload=b""):
        out = b""
        for token in self.lines.pop(0):
            if token == "e":
                out += public_of(self.fresh)
                self.mix_hash(public_of(self.fresh))
                self.mix_key(public_of(self.fresh))
            elif token == "s":
                out += self.put(public_of(self.own))
            else:
                self.mix(token)
        return out + self.put(payload)

    def read(self, data):
        for token in self.lines.pop(0):
            if token == "e":
                self.peer_fresh, data = data[:KEY], data[KEY:]
                self.mix_hash(self.peer_fresh)
                self.mix_key(self.peer_fresh)
            elif token == "s":
                size = KEY + (TAG if self.cipher else 0)
                self.peer, data = self.get(data[:size]), data[size:]
            else:
                self.mix(token)
        return self.get(data)

    def split(self):
        """The ciphers for sending and receiving."""
        a, b = (Cipher(key[:KEY]) for key in derive(self.chain, b"", 2))
        return (a, b) if self.initiator else (b, a)


FIRST = len(MAGIC) + KEY + TAG  # bytes of the handshake's messages
SECOND = KEY + KEY + TAG + TAG
THIRD = KEY + TAG + TAG


def receive(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise EOFError("the connection was closed")
        data += piece
    return data


class Sealed:
    """A connection whose handshake is over; used like a socket."""

    def __init__(self, sock, tx, rx):
        self.sock = sock
        self.tx, self.rx = tx, rx
        self.plain = b""

    def seal(self, data):
        """One record."""
        sealed = self.tx.seal(data)
        self.tx.rekey()
        return struct.pack("<H", len(sealed)) + sealed

    def sendall(self, data):
        step = RECORD_MAX - TAG
        self.sock.sendall(b"".join(self.seal(data[i:i + step])
                                   for i in range(0, len(data), step)))

    def recv(self, count):
        while not self.plain:
            head = self.sock.recv(1)
            if not head:
                return b""
            size, = struct.unpack("<H", head + receive(self.sock, 1))
            self.plain = self.rx.open(receive(self.sock, size))
            self.rx.rekey()
        data, self.plain = self.plain[:count], self.plain[count:]
        return data

    def settimeout(self, limit):
        self.sock.settimeout(limit)

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def call(sock, key, own=None):
    """Prove the key to a daemon that was called."""
    shake = Handshake(True, key, own)
    sock.sendall(MAGIC + shake.write())
    shake.read(receive(sock, SECOND))
    sock.sendall(shake.write())
    return Sealed(sock, *shake.split())


def dial(address, key, limit_s, own=None):
    """The same over a new connection: again, where the daemon has given up since
    this machine was slow."""
    end = time.monotonic() + limit_s
    while True:
        began = time.monotonic()
        sock = socket.create_connection(address, limit_s)
        try:
            return call(sock, key, own)
        except (EOFError, OSError):
            sock.close()
            if not began + PROOF_S <= time.monotonic() < end:
                raise


def answer(sock, key, own=None):
    """The same to a daemon that has called."""
    shake = Handshake(False, key, own)
    first = receive(sock, FIRST)
    if first[:len(MAGIC)] != MAGIC:
        raise Refused("another protocol")
    shake.read(first[len(MAGIC):])
    sock.sendall(shake.write())
    shake.read(receive(sock, THIRD))
    return Sealed(sock, *shake.split())


def vector(place):
    """What is said with the keys and payloads of cacophony's vectors."""
    psk = b"This is my Austrian perspective!"
    own, fresh = (bytes.fromhex(text) for text in (
        "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
        "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"))
    a = Handshake(True, psk, own, fresh, place, b"John Galt")
    own, fresh = (bytes.fromhex(text) for text in (
        "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
        "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"))
    b = Handshake(False, psk, own, fresh, place, b"John Galt")
    lines = []
    for n, name in enumerate(("Ludwig von Mises", "Murray Rothbard",
                              "F. A. Hayek")):
        writer, reader = (b, a) if n % 2 else (a, b)
        lines.append(writer.write(name.encode()))
        reader.read(lines[-1])
    a_tx, b_tx = a.split()[0], b.split()[0]
    lines.append(b_tx.seal("Carl Menger".encode("latin-1")))
    lines.append(a_tx.seal("Jean-Baptiste Say".encode("latin-1")))
    lines.append(b_tx.seal("Eugen B\xf6hm von Bawerk".encode("latin-1")))
    return [line.hex() for line in lines]


if __name__ == "__main__":
    print("\n".join(vector(sys.argv[1] if sys.argv[1:] else "psk0")))
