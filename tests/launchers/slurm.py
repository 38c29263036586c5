# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm for tests: munged, slurmctld and a slurmd for each of two
nodes, with ports, keys and files of their own in a folder of the test. All on
this host, or each node in namespaces that make it a host of its own: name,
network and /dev/shm."""
import os
import shutil
import signal
import socket
import subprocess
import time

START_S = 30
NODES = 2

SETTINGS = """ClusterName=chempi
SlurmctldHost={host}({head})
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
"""


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Hosts:
    """Network namespaces: a head with a bridge, and the nodes around it."""
    HEAD = "10.213.0.254"

    def __init__(self):
        self.holders = []

    def hold(self, flags, script):
        """A process in new namespaces, which it prepares; None: it cannot."""
        holder = subprocess.Popen(
            ["unshare", *flags, "sh", "-ec", f"{script}; echo up; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.holders.append(holder)
        return holder.pid if holder.stdout.readline() == b"up\n" else None

    def inside(self, number):
        """Words before a command there; the head is number 0."""
        flags = ["-n", "-m", "-u"] if number else ["-n"]
        return ["nsenter", "-t", str(self.holders[number].pid), *flags]

    def start(self):
        """None, or why there are none."""
        absent = [name for name in ("unshare", "nsenter", "ip")
                  if not shutil.which(name)]
        if absent:
            return f"{', '.join(absent)}: no such program"
        head = self.hold(["-n"], "ip link set lo up; ip link add dev br0 type "
                         f"bridge; ip addr add {self.HEAD}/24 dev br0; "
                         "ip link set br0 up")
        for i in range(NODES):
            node = head and self.hold(
                ["-n", "-m", "-u"], f"hostname n{i}; ip link set lo up; "
                "mount -t tmpfs none /dev/shm")
            if not node or subprocess.run(
                    [*self.inside(0), "sh", "-ec",
                     f"ip link add dev v{i} type veth peer name eth0 netns {node};"
                     f"ip link set v{i} master br0 up; nsenter -t {node} -n sh "
                     f"-ec 'ip addr add {self.address(i)}/24 dev eth0; "
                     "ip link set eth0 up'"],
                    stderr=subprocess.DEVNULL, check=False).returncode:
                self.stop()
                return "no network namespaces here"
        return None

    @staticmethod
    def address(i):
        return f"10.213.0.{i + 1}"

    def agent(self, path):
        """Write a command that runs others there, as ssh does."""
        cases = "".join(
            f"{self.address(i)}|n{i}) shift; exec "
            f"{' '.join(self.inside(1 + i))} sh -c \"$*\";;\n"
            for i in range(NODES))
        path.write_text("#!/bin/sh\nwhile :; do case $1 in\n"
                        f"{cases}-*) shift;;\n*) exit 9;; esac; done\n")
        path.chmod(0o755)
        return path

    def stop(self):
        for holder in self.holders:
            holder.stdin.close()
            holder.stdout.close()
            holder.wait()
        self.holders = []


class Cluster:
    def __init__(self, folder, hosts=None):
        self.folder = folder
        self.hosts = hosts  # that were started, or all is on this one
        self.config = folder / "slurm.conf"
        self.processes = []

    def missing(self):
        if os.geteuid() != 0:
            return "slurmd wants to be started by root"
        absent = [name for name in ("munged", "slurmctld", "slurmd", "srun")
                  if not shutil.which(name)]
        return f"{', '.join(absent)}: no such program; packages munge, " \
            "slurmctld, slurmd, slurm-client" if absent else None

    def write(self):
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + NODES)
        text = SETTINGS.format(
            host=host, ports=ports, folder=self.folder,
            head=self.hosts.HEAD if self.hosts else "127.0.0.1")
        for i in range(NODES):
            name, address = (f"n{i}", self.hosts.address(i)) if self.hosts \
                else (host, "127.0.0.1")
            text += (f"NodeName=n{i} NodeHostname={name} NodeAddr={address} "
                     f"Port={ports[1 + i]} CPUs=2 State=UNKNOWN\n")
            (self.folder / f"spool.n{i}").mkdir()
            (self.folder / f"tmp.n{i}").mkdir()
        text += ("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE "
                 "State=UP OverSubscribe=FORCE:8\n")
        self.config.write_text(text)
        (self.folder / "state").mkdir()
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o600)

    def inside(self, number=0):
        return self.hosts.inside(number) if self.hosts else []

    def run(self, *words):
        log = open(self.folder / "log", "a", encoding="utf-8")
        self.processes.append(subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "SLURM_CONF": str(self.config)}))
        log.close()

    def ask(self, *words):
        try:
            return subprocess.run(
                [*self.inside(), *words],
                env={**os.environ, "SLURM_CONF": str(self.config)},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, check=False,
                timeout=30).stdout
        except subprocess.TimeoutExpired:
            return ""

    def start(self):
        """None, or why there is none."""
        why = self.missing()
        if why:
            return why
        self.folder.mkdir(mode=0o755)
        self.write()
        munge = self.folder / "munge"
        self.run("munged", "--foreground", "--force",
                 f"--key-file={munge}/key", f"--socket={munge}/socket",
                 f"--pid-file={munge}/pid", f"--seed-file={munge}/seed",
                 f"--log-file={munge}/log")
        self.run(*self.inside(), "slurmctld", "-D", "-i", "-f", str(self.config))
        for i in range(NODES):
            self.run(*self.inside(1 + i), "slurmd", "-D", "-N", f"n{i}", "-f", str(self.config))
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            idle = self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip()
            if idle == str(NODES):
                return None
        self.stop()
        return "Slurm does not come up here: " + \
            " ".join((self.folder / "log").read_text().split()[-20:])

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
