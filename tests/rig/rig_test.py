#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The virtual cluster is what its description says, and leaves nothing.

usage: rig_test.py BUILD

Exit status 77 where namespaces cannot be had.
"""
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402
from netlab import chempi_tree, jobrun  # noqa: E402

LIMIT_S = 60
BUSY = 1 << 20  # bytes: far more than what neighbours say by themselves


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def build_program(lab, name):
    """One of the programs of tests/mpi."""
    target = lab.dir / name
    subprocess.run([str(lab.tool("mpicc")), "-O2", "-D_GNU_SOURCE", "-o",
                    str(target), *chempi_tree.mpi_words(name)], check=True,
                   timeout=LIMIT_S)
    return target


def only_described_networks_join_nodes(lab):
    """A daemon listens on no network of the jobs; whoever answers there does
    so by the kernel: refused within a network, unreachable beyond."""
    probe = ("import errno, socket, sys\n"
             "try: socket.create_connection((sys.argv[1], 9), 5)\n"
             "except OSError as e: print(errno.errorcode[e.errno])")
    for address, wanted in (("10.1.1.2", "ECONNREFUSED"),
                            ("10.1.1.11", "ECONNREFUSED"),
                            ("10.1.2.1", "ENETUNREACH"),
                            ("10.1.2.11", "ENETUNREACH")):
        said = lab.run(sys.executable, "-c", probe, address, node="a0").output
        check(said.strip() == wanted, address, said)


def a_job_uses_the_network_of_its_nodes(lab):
    program = build_program(lab, "order")
    before = {node: lab.carried(node, "a") for node in ("a0", "a3", "g0")}
    done = lab.chempirun("-n", "4", "--nodes", "a0,a1,a2,a3", "--ppn", "1",
                         program, "1", "100")
    check(done.ok, done)
    for node in ("a0", "a3"):
        for old, new in zip(before[node], lab.carried(node, "a")):
            check(new - old > BUSY, node, old, new)
    for old, new in zip(before["g0"], lab.carried("g0", "a")):
        check(new - old < BUSY, "g0", old, new)


def jobs_of_two_networks_pass_a_common_node(lab):
    """A gateway is a node like others, on all of its networks."""
    program = build_program(lab, "order")
    for other, network in (("b1", "b"), ("c2", "c")):
        before = lab.carried(other, network)
        done = lab.chempirun("-n", "2", "--nodes", f"g1,{other}", "--ppn",
                             "1", program, "2", "100")
        check(done.ok, done)
        for old, new in zip(before, lab.carried(other, network)):
            check(new - old > BUSY, network, old, new)


def links_can_be_pulled_and_shaped(lab):
    lab.link("a1", "a", "down")
    shown = lab.run("ip", "link", "show", "a", node="a1").output
    check("NO-CARRIER" in shown, shown)
    lab.link("a1", "a", "up")
    lab.shape("a", "none")
    check("tbf" not in lab.run("tc", "qdisc").output)
    lab.shape("a", "10mbit")
    check("10Mbit" in lab.run("tc", "qdisc").output)


def processes_are_found_by_node(lab):
    for node in ("a0", "g1"):
        for pid in lab.pids(node, "chempid"):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            check(f"--name\0{node}\0".encode() in words, words)
        check(lab.pids(node, "chempid"), node)


CASES = (only_described_networks_join_nodes,
         a_job_uses_the_network_of_its_nodes,
         jobs_of_two_networks_pass_a_common_node,
         links_can_be_pulled_and_shaped, processes_are_found_by_node)


def start(build, *command, folder=tempfile.gettempdir()):
    """The program `run` under way, with a mark."""
    mark = uuid.uuid4().hex
    env = dict(os.environ, TMPDIR=folder)
    env[jobrun.MARK] = mark
    rig = subprocess.Popen([str(HERE / "run"), build, "triple.yaml", "--",
                            *command], env=env, stdout=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, cwd="/")
    return rig, mark


def nothing_is_left_whatever_ends_it(build):
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        with tempfile.TemporaryDirectory() as folder:
            rig, mark = start(build, "sh", "-c", "echo up; sleep 1000",
                              folder=folder)
            ready, _, _ = select.select([rig.stdout], [], [], LIMIT_S)
            check(ready and rig.stdout.readline() == b"up\n", "not started")
            rig.send_signal(number)
            rig.wait(LIMIT_S)
            rig.stdout.close()
            left = jobrun.end_marked(mark, LIMIT_S)
            check(not left, "left after signal", number, left)
            check(not os.listdir(folder), os.listdir(folder))
    for folder in ("/run/rig", "/run/netns/g"):
        check(not os.path.exists(folder), folder, "is left")


def the_status_of_the_command_is_the_answer(build):
    for status in (0, 3):
        rig, _ = start(build, "sh", "-c", f"exit {status}")
        rig.communicate(timeout=LIMIT_S)
        check(rig.returncode == status, rig.returncode)


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "twelve.yaml") as lab:
            for case in CASES:
                case(lab)
                print("ok     ", case.__name__.replace("_", " "), flush=True)
    status = netlab.inside(body)
    if status:
        return status
    for case in (nothing_is_left_whatever_ends_it,
                 the_status_of_the_command_is_the_answer):
        case(build)
        print("ok     ", case.__name__.replace("_", " "), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
