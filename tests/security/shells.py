#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ranks have of the user's shell, and of the daemon.

    shells.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases with several users run as root, and count as skipped elsewhere.
"""
import os
import pwd
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, control_version, main,
    root_only)
from wire import frame, launch, receive_frame, string  # noqa: E402

CASES = []
NOBODY = 65534
PIDS, REPLY = 46, 85
SHELL = """echo $(ulimit -n) $(ulimit -Hn) $(ulimit -c) $(ulimit -Hs) \
$(umask) $(id -u) $(id -g) $(id -G)"""


def case(fn):
    CASES.append(fn)
    return fn


def limited(files, core, stack, mask):
    """What a shell would have set."""
    def set_up():
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        resource.setrlimit(resource.RLIMIT_CORE, (core, core))
        resource.setrlimit(resource.RLIMIT_STACK, stack)
        os.umask(mask)
    return set_up


def run_as_nobody(cluster, set_up, *args, user=NOBODY, group=NOBODY):
    shutil.copy(Programs.chempirun, f"{cluster.dir}/log.run")
    os.chmod(f"{cluster.dir}/log.run", 0o755)
    # setrlimit comes first: the user may not raise hard limits.
    done = subprocess.run(
        [sys.executable, "-c",
         "import os, sys; os.setgroups([]); "
         f"os.setgid({group}); os.setuid({user}); "
         "os.execv(sys.argv[1], sys.argv[1:])",
         f"{cluster.dir}/log.run", "--wdir", "/", *args],
        env=cluster.env, cwd="/", capture_output=True, check=False,
        timeout=LIMIT_S, preexec_fn=set_up)
    os.unlink(f"{cluster.dir}/log.run")
    return done


def may_raise():
    """Hard limits (CAP_SYS_RESOURCE); containers often withhold that."""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"CapEff:\s+(\w+)", file.read())[1], 16) >> 24 & 1


def start_limited(cluster, name):
    with open(cluster.log, "ab") as log:
        subprocess.run(
            [Programs.chempid, "--name", name, "--dir", cluster.dir, "--listen",
             "127.0.0.1", "--key", cluster.key, "--background"],
            env=cluster.env, stdin=subprocess.DEVNULL, stderr=log, check=True,
            timeout=LIMIT_S,
            preexec_fn=limited((700, 800), 0, (8 << 20, 128 << 20), 0o022))


KEYS = "import ctypes; print(ctypes.CDLL(None).syscall({}, 0, -3, 0))"
KEYCTL = {"x86_64": 250, "aarch64": 219, "ppc64le": 271, "riscv64": 219}


@case
@root_only
def ranks_have_no_keys_of_roots_session():
    """Nor one job those of another."""
    number = KEYCTL.get(os.uname().machine)
    if not number or not os.path.exists("/usr/bin/python3"):
        return
    code = KEYS.format(number)
    own = subprocess.run([sys.executable, "-c", code], capture_output=True,
                         check=True, timeout=LIMIT_S).stdout
    if int(own) < 0:
        print("skipped: no keyrings here")
        return
    with Cluster([], mode=0o755) as cluster:
        cluster.start("a1")
        seen = [own]
        for _ in range(2):
            done = run_as_nobody(cluster, None, "-n", "1", "/usr/bin/python3",
                                 "-c", code)
            check(done.returncode == 0 and int(done.stdout) > 0, done)
            check(done.stdout not in seen, seen, done)
            seen.append(done.stdout)


@case
@root_only
def ranks_have_the_limits_and_umask_of_the_users_shell():
    """On all nodes; lower ones, and higher ones than the daemon's."""
    with Cluster([], mode=0o755) as cluster:
        start_limited(cluster, "a1")
        start_limited(cluster, "a2")
        for files in ((300, 400), (750, 800), (700, 900)):
            if files[1] > 800 and not may_raise():
                continue
            done = run_as_nobody(
                cluster,
                limited(files, 0, (8 << 20, 64 << 20), 0o027),
                "-n", "4", "--ppn", "2", "sh", "-c", SHELL)
            wanted = (f"{files[0]} {files[1]} 0 {64 << 10} 0027 {NOBODY} "
                      f"{NOBODY} {NOBODY}\n")
            check(done.returncode == 0 and
                  done.stdout.decode() == wanted * 4, done, wanted)


@case
@root_only
def a_job_has_no_more_processes_than_the_users_shell():
    """A user of whom no other test starts anything."""
    user = next((u for u in pwd.getpwall() if u.pw_name == "games"), None)
    if not user or not user.pw_uid or not user.pw_gid:
        print("skipped: no user games here")
        return
    with Cluster(["a1"], mode=0o755) as cluster:
        done = run_as_nobody(
            cluster, lambda: resource.setrlimit(resource.RLIMIT_NPROC, (8, 8)),
            "--timeout", "30", "-n", "12", "sleep", "1000", user=user.pw_uid,
            group=user.pw_gid)
        check(done.returncode == 1 and b"cannot fork" in done.stderr and
              b"ulimit -u" in done.stderr, done)


@case
@root_only
def nobody_brings_a_group_to_a_node():
    """One that this node's database does not give the user."""
    with Cluster(["a1"], mode=0o755) as cluster:
        done = run_as_nobody(cluster, None, "-n", "1", "id", "-G", group=60099)
        check(done.returncode != 0 and not done.stdout and
              b"group 60099" in done.stderr, done)


def launch_with(cluster, uids, gids):
    """What the daemon says of a launch by a process with these ids: real,
    effective, saved."""
    def speak():
        os.setgroups([])
        os.setresgid(*gids)
        os.setresuid(*uids)
        sock.connect(f"{cluster.dir}/a1.sock")
        sock.sendall(frame(80, struct.pack("<I", control_version()) +
                           string(b"")))
        sock.sendall(launch(7, [b"a1"], [0], [0], uid=NOBODY, gid=NOBODY))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LIMIT_S)
        waits = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                speak()
                os.read(waits[0], 1)  # the daemon looks at it meanwhile
            finally:
                os._exit(0)
        try:
            await_that(lambda: is_connected(sock), "the launcher")
            receive_frame(sock)  # the greeting
            return receive_frame(sock)
        finally:
            os.write(waits[1], b"x")
            os.waitpid(child, 0)
            os.close(waits[0])
            os.close(waits[1])


def is_connected(sock):
    try:
        return sock.getpeername() is not None
    except OSError:
        return False


@case
@root_only
def whoever_has_other_rights_gives_no_limits():
    """A program with the set-user-id bit may have raised its limits."""
    own, more = (NOBODY, NOBODY, NOBODY), (NOBODY, NOBODY, 0)
    with Cluster(["a1"], mode=0o755) as cluster:
        for uids, gids in ((more, own), (own, more)):
            kind, data = launch_with(cluster, uids, gids)
            check(kind == REPLY and b"limits of the process" in data, data)
        last = launch_with(cluster, own, own)
        check(last[0] == PIDS, last)


@case
def names_of_programs_give_no_orders_to_terminals():
    """Nor do they make lines in the log."""
    with Cluster(["a1"]) as cluster:
        program = f"{cluster.dir}/log\x1b[2J\nforged\\\u009b\x7f"
        os.symlink(shutil.which("cat"), program)
        job = cluster.job("-n", "1", program, stdin=subprocess.PIPE)
        await_that(lambda: "forged" in cluster.ctl("jobs"), "the job")
        shown = cluster.ctl("jobs")
        check("log\\x1b[2J\\x0aforged\\x5c\\xc2\\x9b\\x7f" in shown, shown)
        check("\nforged" not in cluster.logged(), cluster.logged())
        shown += cluster.ctl("--json", "jobs")
        check(r'log\u001b[2J\u000aforged\\\u009b\u007f"' in shown, shown)
        check(not set(map(chr, [*range(10), *range(11, 32), 127, 155])) &
              set(shown + cluster.logged()), shown, cluster.logged())
        job.process.stdin.close()
        job.process.stdin = None
        check(job.finish() == 0, job.errors)
        os.unlink(program)


if __name__ == "__main__":
    sys.exit(main(CASES))
