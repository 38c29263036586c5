#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What daemons make of strangers, of nonsense and of other users.

    strangers.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases wait for events (a line of output, the end of a process), never for a
time to pass. After every case no process, socket or file may be left.
"""
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import noise  # noqa: E402
from jobs import (  # noqa: E402
    COMPLAINT_S, LIMIT_S, Cluster, Programs, await_that, check,
    control_version, expect, main, root_only)
from wire import frame, read_key  # noqa: E402

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


# ---- strangers --------------------------------------------------------------


def proven(cluster, name):
    """A connection that knows the key."""
    return noise.dial(cluster.address(name), read_key(cluster), LIMIT_S)


def called(cluster, listener):
    """The connection of a daemon that calls this one, with the key proven."""
    listener.settimeout(LIMIT_S)
    sock = listener.accept()[0]
    sock.settimeout(LIMIT_S)
    return noise.answer(sock, read_key(cluster))


def expect_closed(sock):
    """The other side closes, whatever it has said before."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    sock.close()


def greeting(name):
    text = name.encode() + b"\0"
    return frame(80, struct.pack("<II", control_version(), len(text)) + text)


GARBAGE = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(64),
           bytes(4096), b"\xff" * 4096, b"CHEMPIa1" + bytes(64),
           noise.MAGIC + bytes(64))


@case
def strangers_are_refused_with_one_line():
    with Cluster(["a1"]) as cluster:
        count = 0
        for garbage in GARBAGE:
            sock = socket.create_connection(cluster.address("a1"), LIMIT_S)
            sock.sendall(garbage)
            expect_closed(sock)
            count += 1
            cluster.ctl("nodes")
            check(cluster.logged().count(": refused 127.0.0.1") == count,
                  cluster.logged())
        sock = socket.create_connection(cluster.address("a1"), LIMIT_S)
        sock.sendall(b"CHEMPI")  # and then no more
        sock.close()
        cluster.ctl("nodes")
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone", "final"), 0)


@case
def daemons_that_talk_nonsense_are_dropped():
    huge = struct.pack("<IHHQ", 0xffffffff, 48, 0xc4e1, 7)
    nonsense = [
        GARBAGE[0],
        frame(80, b"\0"),
        frame(48, b""),
        greeting("x1") + GARBAGE[0],
        greeting("x1") + huge,
        greeting("../x") + frame(86, b"\xff\0\0\0", 5),
    ]
    with Cluster(["a1"]) as cluster:
        for data in nonsense:
            sock = proven(cluster, "a1")
            count = cluster.logged().count(": refused ")
            sock.sendall(data)
            expect_closed(sock)
            cluster.ctl("nodes")
            check(cluster.logged().count(": refused ") == count + 1,
                  data, cluster.logged())
        check("speaks version" not in cluster.logged(), cluster.logged())
        # Frames of jobs that are not known are late, not nonsense.
        sock = proven(cluster, "a1")
        sock.sendall(greeting("x1") + frame(52, b"", 99) + frame(83, b"", 99))
        sock.close()
        expect(cluster.run("-n", "2", Programs.rank, "init", "everyone", "final"), 0)


@case
def local_clients_that_talk_nonsense_are_dropped():
    with Cluster(["a1"]) as cluster:
        for data in (GARBAGE[0], frame(48, b"", 5),
                     greeting("") + GARBAGE[1],
                     greeting("") + frame(48, b"\1", 5),
                     greeting("") + frame(86, b"\0\0\0\0", 5)):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(LIMIT_S)
            sock.connect(f"{cluster.dir}/a1.sock")
            sock.sendall(data)
            expect_closed(sock)
        check(cluster.logged().count("refused local client") == 5,
              cluster.logged())


@case
@root_only
def a_daemon_of_root_runs_jobs_as_their_user():
    with Cluster(["a1", "a2"], mode=0o755) as cluster:
        shutil.copy(Programs.chempirun, f"{cluster.dir}/log.run")
        os.chmod(f"{cluster.dir}/log.run", 0o755)
        done = subprocess.run(
            [f"{cluster.dir}/log.run", "--wdir", "/", "-n", "4", "id", "-u"],
            env=cluster.env, user=65534, group=65534, cwd="/",
            capture_output=True, check=False, timeout=LIMIT_S)
        os.unlink(f"{cluster.dir}/log.run")
        check(done.returncode == 0, done)
        check(done.stdout == b"65534\n" * 4, done)


@case
@root_only
def ranks_of_users_do_not_go_before_other_processes():
    """Whatever priority root's daemon has."""
    with Cluster([], mode=0o755) as cluster:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -5)
        except PermissionError:  # as in many containers
            print("skipped: root may not go before others here", flush=True)
            return
        try:
            cluster.start("a1")
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, before)
        shutil.copy(Programs.chempirun, f"{cluster.dir}/log.run")
        os.chmod(f"{cluster.dir}/log.run", 0o755)
        done = subprocess.run(
            [f"{cluster.dir}/log.run", "--wdir", "/", "-n", "1", "nice"],
            env=cluster.env, user=65534, group=65534, cwd="/",
            capture_output=True, check=False, timeout=LIMIT_S)
        os.unlink(f"{cluster.dir}/log.run")
        check(done.stdout == b"0\n", done)


@case
def who_asks_for_cores_has_the_variables_of_the_job():
    """Not those of who has started the daemon: a user may look into it."""
    with Cluster([]) as cluster:
        own = f"{cluster.dir}/log.programs"
        os.mkdir(own)
        shutil.copy(Programs.chempid, f"{own}/chempid")
        with open(f"{own}/chempi-topology", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec env >{own}/seen\n")
        os.chmod(f"{own}/chempi-topology", 0o755)
        env = dict(cluster.env, OF_THE_DAEMON="x")
        subprocess.run(
            [f"{own}/chempid", "--name", "a1", "--dir", cluster.dir, "--listen",
             "127.0.0.1", "--key", cluster.key, "--background"], env=env,
            stdin=subprocess.DEVNULL, check=True, timeout=LIMIT_S)
        cluster.env["OF_THE_JOB"] = "x"
        cluster.run("--bind", "core", "-n", "1", "true")
        with open(f"{own}/seen", encoding="utf-8") as file:
            seen = file.read()
        shutil.rmtree(own)
        check("OF_THE_JOB" in seen and "OF_THE_DAEMON" not in seen, seen)


def relay(listener, address, uid, gid):
    """Hand what a client says to a daemon, as another user."""
    with listener.accept()[0] as client, socket.socket(socket.AF_UNIX) as out:
        os.setegid(gid)
        os.seteuid(uid)
        try:
            out.connect(address)
        finally:
            os.seteuid(0)
            os.setegid(0)
        other = {client: out, out: client}
        while True:
            for sock in select.select([client, out], [], [], LIMIT_S)[0]:
                try:
                    data = sock.recv(65536)
                except ConnectionResetError:
                    return
                if not data:
                    return
                try:
                    other[sock].sendall(data)
                except BrokenPipeError:
                    pass  # it may have answered before


@case
@root_only
def nobody_takes_the_group_of_another():
    with Cluster(["a1"], mode=0o755) as cluster, \
            tempfile.TemporaryDirectory() as between, \
            socket.socket(socket.AF_UNIX) as listener:
        os.chmod(between, 0o755)
        shutil.copy(f"{cluster.dir}/a1.node", between)
        listener.bind(f"{between}/a1.sock")
        os.chmod(f"{between}/a1.sock", 0o666)
        listener.listen()
        shutil.copy(Programs.chempirun, f"{between}/run")
        os.chmod(f"{between}/run", 0o755)
        job = subprocess.Popen(
            [f"{between}/run", "--dir", between, "--via", "a1", "--wdir", "/",
             "-n", "1", "id", "-g"], env=cluster.env, user=65534, group=65533,
            extra_groups=[], cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        relay(listener, f"{cluster.dir}/a1.sock", 65534, 65534)
        out, err = job.communicate(timeout=LIMIT_S)
        check(job.returncode != 0 and not out and
              b"another user or group" in err, out, err)


@case
def a_daemon_without_descriptors_waits_for_some():
    """It takes who waits as soon as it can, and complains once a minute."""
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    complaint = "cannot take a connection"
    with Cluster([]) as cluster:
        with open(cluster.log, "ab") as log:
            subprocess.run(
                [Programs.chempid, "--name", "a1", "--dir", cluster.dir,
                 "--background"], env=cluster.env, stdin=subprocess.DEVNULL,
                stderr=log, check=True, timeout=LIMIT_S, preexec_fn=limit)
        start = time.monotonic()
        for _ in range(3):
            clients = [socket.socket(socket.AF_UNIX) for _ in range(40)]
            for client in clients:
                client.settimeout(LIMIT_S)
                client.connect(f"{cluster.dir}/a1.sock")
            await_that(lambda: complaint in cluster.logged(), complaint)
            clients[-1].sendall(GARBAGE[0])
            for client in clients[:-1]:
                client.close()
            expect_closed(clients[-1])  # so it was taken
        cluster.stop()
        count = cluster.logged().count(complaint)
        check(1 <= count <= 1 + (time.monotonic() - start) // COMPLAINT_S,
              count, cluster.logged())


if __name__ == "__main__":
    sys.exit(main(CASES))
