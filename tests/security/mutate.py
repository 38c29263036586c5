#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Change what two daemons say to each other, and see what becomes of them.

    mutate.py CHEMPIRUN CHEMPID CHEMPICTL RANK [--seconds N] [--seed N]

One who has the keys stands between daemons a1 and a2: frames are opened, some
of them changed, repeated, left out or put elsewhere, and sealed again. Jobs
and questions go on meanwhile. Whatever is said, both daemons go on, no command
takes for ever, a job that has no part in this goes on, and nothing is left at
the end. Daemons with sanitizers tell more.
"""
import argparse
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "fault")]
import noise  # noqa: E402
from jobs import LIMIT_S, Cluster, Programs, await_that, check  # noqa: E402
from wire import HEAD, MARK, read_key  # noqa: E402

KINDS = [1, 2, 3, 4, 5, 6, 7, 8, 14, 16, *range(32, 57), 60, 61, 70, 71, 72,
         *range(81, 89), 200]
NUMBERS = [0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
           0x10000, 0x100000, 0x4000001]
SHARE = 0.05  # of the frames is changed
KEPT = 200  # frames that may come again later
PATIENCE_S = 90  # for one command


class Mutator:
    """Changes frames: (kind, job, payload)."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kept = []
        self.counts = {}

    def bits(self, kind, job, data):
        data = bytearray(data)
        for _ in range(self.random.randint(1, 8) if data else 0):
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        return [(kind, job, bytes(data))]

    def number(self, kind, job, data):
        if len(data) < 4:
            return [(kind, job, data)]
        at = self.random.randrange(len(data) - 3)
        at -= at % 4 if self.random.random() < 0.5 else 0
        value = struct.pack("<I", self.random.choice(NUMBERS))
        return [(kind, job, data[:at] + value + data[at + 4:])]

    def cut(self, kind, job, data):
        return [(kind, job, data[:self.random.randint(0, len(data))])]

    def longer(self, kind, job, data):
        return [(kind, job, data + self.random.randbytes(
            self.random.choice((1, 4, 100, 5000))))]

    def other_kind(self, kind, job, data):
        return [(self.random.choice(KINDS), job, data)]

    def other_job(self, kind, job, data):
        jobs = [j for _, j, _ in self.kept] + [0, 1, 2**64 - 1]
        return [(kind, self.random.choice(jobs), data)]

    def twice(self, kind, job, data):
        return [(kind, job, data)] * 2

    def never(self, kind, job, data):
        return []

    def again(self, kind, job, data):
        return [(kind, job, data), self.random.choice(self.kept)]

    def instead(self, kind, job, data):
        _, _, other = self.random.choice(self.kept)
        return [(kind, job, other)]

    def change(self, kind, job, data):
        self.kept.append((kind, job, data))
        if len(self.kept) > KEPT:
            del self.kept[self.random.randrange(KEPT)]
        if kind == 80 or self.random.random() > SHARE:
            return [(kind, job, data)]
        how = self.random.choice((
            self.bits, self.number, self.number, self.cut, self.longer,
            self.other_kind, self.other_job, self.twice, self.never,
            self.again, self.instead))
        self.counts[how.__name__] = self.counts.get(how.__name__, 0) + 1
        return how(kind, job, data)


class Between:
    """Answers for a daemon those that call it, with the cluster's key."""

    def __init__(self, cluster, name, mutator):
        self.key = read_key(cluster)
        self.target = cluster.address(name)
        self.mutator = mutator
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.path = f"{cluster.dir}/{name}.node"
        with open(self.path, encoding="utf-8") as file:
            words = file.read().split()
        os.rename(self.path, f"{self.path}.kept")
        words[1] = "127.0.0.1:%d" % self.listener.getsockname()[1]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(" ".join(words) + "\n")
        self.links = 0
        self.open = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            try:
                self.serve(sock)
            except (OSError, EOFError, noise.Refused):
                pass
            finally:
                for one in self.open:
                    one.close()
                self.open = []

    def serve(self, sock):
        self.open.append(sock)
        other = socket.create_connection(self.target, LIMIT_S)
        self.open.append(other)
        ends = (noise.answer(sock, self.key), noise.call(other, self.key))
        self.links += 1
        waiting = [b"", b""]
        while True:
            for raw in select.select(self.open, [], [])[0]:
                way = self.open.index(raw)
                data = ends[way].recv(65536)
                if not data:
                    return
                waiting[way] = self.pass_on(waiting[way] + data,
                                            ends[1 - way])

    def pass_on(self, data, to):
        while len(data) >= 16:
            length, kind, _, job = struct.unpack_from(HEAD, data)
            if len(data) < 16 + length:
                break
            payload, data = data[16:16 + length], data[16 + length:]
            for kind, job, payload in self.mutator.change(kind, job, payload):
                to.sendall(struct.pack(HEAD, len(payload), kind, MARK, job) +
                           payload)
        return data

    def close(self):
        os.rename(f"{self.path}.kept", self.path)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(LIMIT_S)


def commands(rng):
    """What users do meanwhile; some of it is ended on the way."""
    run = [Programs.chempirun, "--timeout", "3", "--nodes", "a1,a2", "-n"]
    return rng.choice((
        [*run, "2", "--ppn", "1", Programs.rank, "init", "everyone", "final"],
        [*run, "4", "--ppn", "2", Programs.rank, "init", "print", "up",
         "everyone", "final"],
        [*run, "2", "--ppn", "1", Programs.rank, "init", "exit", "3"],
        [*run, "4", "--ppn", "2", Programs.rank, "init", "hang"],
        [Programs.chempictl, "--via", "a1", "nodes"],
        [Programs.chempictl, "--via", "a1", "jobs", "a2"],
        [Programs.chempictl, "--via", "a1", "reread", "a2"],
    ))


def step(cluster, rng):
    command = commands(rng)
    child = subprocess.Popen(command, env=cluster.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    if "hang" in command:
        try:
            child.wait(rng.random() * 2)
        except subprocess.TimeoutExpired:
            child.kill() if rng.random() < 0.5 else child.terminate()
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        raise AssertionError(f"no end of {' '.join(command)}") from None


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii",
                  errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def look(cluster, pids, bystander):
    for name, pid in pids.items():
        check(is_alive(pid), "the daemon of", name, "has ended")
    found = re.search("(runtime error:|Sanitizer).*", cluster.logged())
    check(not found, found and found[0])
    check(bystander.process.poll() is None, "another job has ended")


def try_it(cluster, seconds, seed):
    rng = random.Random(seed)
    pids = {name: cluster.pid(name) for name in ("a1", "a2")}
    bystander = cluster.job("--nodes", "a1", "-n", "1", Programs.rank, "init",
                            "print", "up", "hang").await_lines(1)
    mutator = Mutator(seed + 1)
    between = Between(cluster, "a2", mutator)
    end = time.monotonic() + seconds
    count = 0
    try:
        while time.monotonic() < end or not mutator.counts:
            step(cluster, rng)
            look(cluster, pids, bystander)
            count += 1
    finally:
        between.close()
    bystander.process.terminate()
    check(bystander.finish() == 143, bystander.output, bystander.errors)
    for name, pid in pids.items():
        await_that(lambda n=name, p=pid: cluster.pid(n) == p, "an answer")
        await_that(lambda n=name: "fault-rank" not in
                   cluster.ctl("--via", n, "jobs", n, status=None),
                   "the end of all jobs at", name)
    print(f"ok      {count} commands, {between.links} links, changed: "
          f"{mutator.counts}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int,
                        default=random.SystemRandom().randrange(1 << 32))
    args = parser.parse_args()
    (Programs.chempirun, Programs.chempid, Programs.chempictl,
     Programs.rank) = args.programs
    os.environ.pop("CHEMPI_DIR", None)
    print("seed", args.seed, flush=True)
    with Cluster(["a1", "a2"], ("--detect", "2")) as cluster:
        try_it(cluster, args.seconds, args.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
