#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How daemons and launchers find each other, and what they say if they do not.

    finding.py CHEMPIRUN CHEMPID CHEMPICTL RANK [CASE]...

Cases that need namespaces of their own say so where they cannot have them.
"""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, expect, kill_and_wait, main,
    root_only, run)

CASES = []
NOBODY = 65534


def case(fn):
    CASES.append(fn)
    return fn


@contextlib.contextmanager
def directory():
    own = tempfile.mkdtemp(prefix="chempi-test-")
    try:
        yield own
    finally:
        shutil.rmtree(own)


def join(cluster, name, own, via, check_it=True):
    return subprocess.run(
        [Programs.chempid, "--name", name, "--dir", own, "--listen",
         "127.0.0.1:0", "--key", cluster.key, "--join", via, "--slots", "2",
         "--background"], env=cluster.env, capture_output=True, text=True,
        check=check_it, timeout=LIMIT_S)


def own_address(own, name):
    with open(f"{own}/{name}.node", encoding="ascii") as file:
        return file.read().split()[1]


def kill_daemon(cluster, own):
    """Its process, and wait for its end, before which its connections may be
    there yet, and for its files to vanish."""
    said = cluster.ctl("--dir", own, "status").splitlines()[1]
    kill_and_wait(int(said.split()[4]), [])
    await_that(lambda: not os.listdir(own), own)


@case
def a_name_that_is_taken_is_refused_through_another_node():
    """Whoever else is asked; and who comes back is let in again."""
    with Cluster(["a1", "a2"]) as cluster, directory() as one, \
            directory() as two:
        first, other = ("{}:{}".format(*cluster.address(n))
                        for n in ("a1", "a2"))
        join(cluster, "x", one, first)
        await_that(lambda: "x " in cluster.ctl("--via", "a1", "nodes",
                                               status=None), "x")
        at = own_address(one, "x")
        # The daemon that is joined need not be the one that x has joined.
        cluster.ctl("--via", "a1", "nodes", "a2")
        done = join(cluster, "x", two, first, check_it=False)
        check(done.returncode == 1 and not os.listdir(two), done)
        check(f"node x is known at {at}, where its daemon answers" in
              done.stderr and "another --name" in done.stderr, done)
        expect(cluster.run("--via", "a1", "--nodes", "x,a2", "-n", "2",
                           Programs.rank, "init", "everyone", "final"), 0)
        # It is gone, and one of its name comes elsewhere.
        kill_daemon(cluster, one)
        join(cluster, "x", two, first)
        check(own_address(two, "x") != at)
        await_that(lambda: "x " in cluster.ctl("--via", "a1", "nodes",
                                               status=None), "x")
        expect(cluster.run("--via", "a1", "--nodes", "x,a2", "-n", "2",
                           Programs.rank, "init", "everyone", "final"), 0)
        # Also one that the files of the directory name.
        done = join(cluster, "a2", one, first, check_it=False)
        check(done.returncode == 1 and f"a2 is known at {other}" in
              done.stderr, done)
        cluster.ctl("--dir", two, "stop")
        jobrun.wait_gone([p for p, w in jobrun.marked(cluster.mark)
                          if "--join" in w], LIMIT_S)


@case
def who_asks_for_all_is_told_of_as_many_as_an_answer_has_room_for():
    """Each counts once, though the file names the daemon asked, too, and the
    directory has a file of another one."""
    most = 65536
    with Cluster(["n1"]) as cluster:
        path = f"{cluster.dir}/log.cluster"
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"n{i} -\n" for i in range(most))
        cluster.start("n0", "--cluster", path)
        said = cluster.ctl("--via", "n0", "nodes", status=1).splitlines()[1:]
        os.unlink(path)
        names = {line.split()[0] for line in said if line.startswith("n")}
        check(len(names) == most, len(names), said[-3:])


def in_network(*commands):
    """In a network of its own, which has nothing but loopback."""
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    return subprocess.run(
        ["unshare", *flags, "sh", "-ec", "; ".join(commands)],
        capture_output=True, text=True, check=False, timeout=LIMIT_S)


@case
def all_addresses_are_advertised_as_one_or_refused():
    if in_network("ip link set lo up").returncode:
        print("skipped: no network namespace of one's own here")
        return
    with directory() as own:
        os.chmod(own, 0o700)
        key = f"{own}/key"
        subprocess.run([Programs.chempictl, "key", key], check=True)
        up = ["ip link set lo up", "ip link add d0 type veth peer name d1",
              "ip link set d0 up"]
        start = [f"{Programs.chempid} --name a1 --dir {own} --key {key} "
                 "--background --listen "]
        show = [f"cat {own}/a1.node", f"{Programs.chempictl} --dir {own} stop",
                f"while test -e {own}/a1.sock; do sleep 0.02; done"]
        done = in_network("ip link set lo up", start[0] + "0.0.0.0:4711")
        check(done.returncode == 1 and "none but loopback" in done.stderr,
              done)
        one = up + ["ip addr add 10.7.0.1/24 dev d0"]
        for said in ("0.0.0.0:4711", "[::]:4711"):
            done = in_network(*one, start[0] + said, *show)
            check(done.stdout.startswith("a1 10.7.0.1:4711 "), said, done)
        done = in_network(*one, "ip addr add 10.8.0.1/24 dev d0",
                          start[0] + "0.0.0.0:4711")
        check(done.returncode == 1 and "10.7.0.1:4711, 10.8.0.1:4711" in
              done.stderr and "--listen" in done.stderr, done)
        for line, status in (("a1 10.8.0.1:4711", 0), ("a1 0.0.0.0:4711", 1)):
            with open(f"{own}/cluster", "w", encoding="ascii") as file:
                file.write(line + "\n")
            done = in_network(
                *one, "ip addr add 10.8.0.1/24 dev d0",
                start[0] + f"0.0.0.0:4711 --cluster {own}/cluster", *show)
            check(done.returncode == status, done)
            check(done.stdout.startswith(line) if not status else
                  "nobody can call node a1 at 0.0.0.0" in done.stderr, done)


@case
def launchers_find_roots_daemon():
    """In its standard place, which is another one here: in a mount namespace
    of its own."""
    if os.geteuid() != 0:
        print("skipped: only root can start root's daemon")
        return
    with directory() as own:
        os.chmod(own, 0o755)
        for program in (Programs.chempid, Programs.chempirun,
                        Programs.chempictl):
            shutil.copy(program, own)
        script = (
            "mount -t tmpfs -o mode=755 none /run; "
            "chempid --name a1 --slots 2 --background; "
            f"as='setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups'; "
            "$as chempictl nodes; "
            "$as chempirun --verbose -n 1 sh -c 'id -u'; "
            "$as chempirun --nodes zz -n 1 true || echo status $?; "
            "chempictl stop; "
            "while test -e /run/chempi/a1.sock; do sleep 0.02; done; "
            "$as chempictl nodes || echo status $?")
        env = {k: v for k, v in os.environ.items()
               if k not in ("CHEMPI_DIR", "XDG_RUNTIME_DIR")}
        env["PATH"] = f"{own}:{env['PATH']}"
        done = subprocess.run(
            ["unshare", "-m", "sh", "-ec", script], env=env, cwd="/",
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode and re.search("mount|unshare", done.stderr):
            print("skipped: no mount namespace of one's own here")
            return
        check(re.search(r"^a1 +2 ", done.stdout, re.M), done)
        check(f"\n{NOBODY}\nstatus 3\nstatus 1\n" in done.stdout, done)
        check("by the daemon of node a1 (/run/chempi/a1.sock): a1:1\n" in
              done.stderr, done)
        check("knows no node zz" in done.stderr and
              "(by the daemon at /run/chempi/a1.sock)" in done.stderr, done)
        check(re.search("no daemon has a socket in /tmp/chempi-65534, and no "
                        "daemon has a socket in /run/chempi", done.stderr),
              done)


@contextlib.contextmanager
def socket_of_nobodys(path):
    """There, and no further connection finds a place with it."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        os.seteuid(NOBODY)
        try:
            listener.bind(path)
            os.chmod(path, 0o777)
            listener.listen(0)
        finally:
            os.seteuid(0)
        stack.callback(os.unlink, path)
        for _ in range(8):
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            try:
                caller.connect(path)
            except BlockingIOError:
                yield
                return
    raise AssertionError("there is always a place")


@contextlib.contextmanager
def user_without_daemons():
    """A number of a user, where the daemons of that one would have their
    sockets by default, and a function that launches a job as that one."""
    user = next(i for i in range(60200, 60300)
                if not os.path.lexists(f"/tmp/chempi-{i}"))
    env = {k: v for k, v in os.environ.items()
           if k not in ("CHEMPI_DIR", "XDG_RUNTIME_DIR")}
    with directory() as own:
        os.chmod(own, 0o755)
        program = shutil.copy(Programs.chempirun, own)

        def launch(*args):
            return subprocess.run(
                [program, *args, "-n", "1", "id", "-u"], env=env, cwd="/",
                user=user, group=user, extra_groups=[], capture_output=True,
                text=True, check=False, timeout=LIMIT_S)
        yield user, f"/tmp/chempi-{user}", launch


def expect_private(done, user):
    """It has looked for daemons, and goes on without."""
    check(done.returncode == 0 and done.stdout == f"{user}\n" and
          not done.stderr, done)


@case
@root_only
def a_place_that_somebody_else_has_taken_keeps_nobody():
    """Where a user's daemons would have their sockets, by default."""
    with user_without_daemons() as (user, place, launch), \
            contextlib.ExitStack() as stack:
        os.mkdir(place)
        stack.callback(os.rmdir, place)
        os.chown(place, NOBODY, NOBODY)
        os.chmod(place, 0o755)
        stack.enter_context(socket_of_nobodys(f"{place}/a1.sock"))
        expect_private(launch(), user)
        done = launch("--dir", place)
        check(done.returncode == 1 and
              f"{place} belongs to another user" in done.stderr, done)


@case
@root_only
def no_link_of_somebody_elses_is_followed_to_a_daemon():
    """It leads to a directory of root's, in which there is a socket."""
    with user_without_daemons() as (user, place, launch), directory() as roots, \
            directory() as own, contextlib.ExitStack() as stack:
        os.chmod(own, 0o755)
        os.chmod(roots, 0o1777)
        stack.enter_context(socket_of_nobodys(f"{roots}/a1.sock"))
        os.chmod(roots, 0o755)
        for link in (place, f"{own}/link"):  # kernels may not follow the first
            os.symlink(roots, link)
            stack.callback(os.unlink, link)
            os.lchown(link, NOBODY, NOBODY)
        expect_private(launch(), user)
        done = launch("--dir", f"{own}/link")
        check(done.returncode == 1 and
              f"{own}/link belongs to another user" in done.stderr, done)


def new_daemon(place, **kwargs):
    return subprocess.run(
        [Programs.chempid, "--name", "a1", "--dir", place, "--background"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=LIMIT_S, **kwargs)


@case
@root_only
def no_daemon_follows_a_link_of_somebody_elses():
    """It may lead elsewhere a moment later."""
    with directory() as own:
        os.mkdir(f"{own}/roots")
        os.symlink(f"{own}/roots", f"{own}/link")
        os.lchown(f"{own}/link", NOBODY, NOBODY)
        done = new_daemon(f"{own}/link")
        check(done.returncode == 1 and
              f"{own}/link: a link of another user" in done.stderr, done)


@case
@root_only
def a_daemon_serves_users_whatever_mask_it_has():
    with directory() as own:
        os.chmod(own, 0o755)
        done = new_daemon(f"{own}/new", umask=0o077)
        check(done.returncode == 0, done)
        mode = os.stat(f"{own}/new").st_mode & 0o777
        subprocess.run([Programs.chempictl, "--dir", f"{own}/new", "stop"],
                       check=True, timeout=LIMIT_S)
        await_that(lambda: not os.listdir(f"{own}/new"), own)
        check(mode == 0o755, oct(mode))


@case
@root_only
def a_place_in_which_others_write_keeps_nobody():
    """It is root's, or the user's own, and has somebody else's socket."""
    with user_without_daemons() as (user, place, launch), \
            contextlib.ExitStack() as stack:
        os.mkdir(place)
        stack.callback(os.rmdir, place)
        os.chmod(place, 0o1777)
        stack.enter_context(socket_of_nobodys(f"{place}/a1.sock"))
        for owner in (0, user):
            os.chown(place, owner, owner)
            for mode in (0o1777, 0o770):
                os.chmod(place, mode)
                expect_private(launch(), user)
                done = launch("--dir", place)
                check(done.returncode == 1 and
                      f"{place} can be written by others" in done.stderr,
                      owner, oct(mode), done)


@case
def a_node_that_is_missing_is_no_wrong_usage():
    with Cluster(["a1"]) as cluster:
        path = re.escape(f"{cluster.dir}/a1.sock")
        expect(cluster.run("--nodes", "a1,zz", "-n", "2", "true"), 3,
               rf"\Achempirun: node zz: [^\n]*knows no node zz[^\n]*"
               rf"\(by the daemon at {path}\)\n\Z")
        expect(cluster.run("--nodes", "a1", "--map", "wrong", "-n", "2",
                           "true"), 2)
        expect(cluster.run("--nodes", "a1", "--verbose", "-n", "2", "true"),
               0, rf"\Achempirun: job [0-9a-f]{{16}} by the daemon of node a1 "
                  rf"\({path}\): a1:2\n\Z")
    expect(run("--private", "--verbose", "-n", "1", "true"), 0,
           r"\Achempirun: job [0-9a-f]{16} without a daemon: \S+:1\n\Z")


if __name__ == "__main__":
    sys.exit(main(CASES))
