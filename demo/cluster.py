# SPDX-License-Identifier: BSD-3-Clause
"""A virtual cluster: one chempid per described node, all on this host.

The daemons are children of this process and end with it, whatever ends it.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

READY_LIMIT_S = 20.0
END_LIMIT_S = 10.0
PR_SET_PDEATHSIG = 1


class ClusterError(Exception):
    """A daemon or tool did not do what it should; the text says which."""


def _die_with_parent():
    """In a child: no daemon stays when the demo is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def call(command):
    """Output of a tool that has to succeed."""
    done = subprocess.run([str(word) for word in command], text=True,
                          check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60)
    if done.returncode != 0:
        name = os.path.basename(str(command[0]))
        raise ClusterError(f"{name} {command[1]} failed: "
                           f"{done.stdout.strip() or 'no reason given'}")
    return done.stdout


class Cluster:
    """Daemons for nodes [(name, address)]; use it in a with statement."""

    def __init__(self, tools, nodes, tables):
        self.tools = tools
        self.nodes = nodes
        self.tables = tables
        self.daemons = []
        self.root = None

    def __enter__(self):
        # A short name: paths of sockets are limited to about 100 bytes.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="chempi-demo-"))
        self.dir = self.root / "d"
        try:
            call([self.tools["chempictl"], "key", self.root / "key"])
            first = None
            for name, address in self.nodes:
                self._start(name, address, first)
                if first is None:
                    first = self._wait_ready(name)
            for name, _ in self.nodes:
                self._wait_ready(name)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *exc):
        self._end()
        return False

    def _start(self, name, address, join):
        command = [self.tools["chempid"], "--name", name, "--dir", self.dir,
                   "--listen", f"{address}:0", "--key", self.root / "key",
                   "--tables", self.tables, "--slots", "2"]
        if join:
            command += ["--join", join]
        with open(self.root / f"{name}.log", "wb") as log:
            try:
                child = subprocess.Popen(
                    [str(word) for word in command], stdout=log, stderr=log,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                    preexec_fn=_die_with_parent)
            except OSError as error:
                raise ClusterError(f"cannot run {command[0]}: "
                                   f"{error.strerror}") from error
        self.daemons.append((name, child))

    def _wait_ready(self, name):
        """The daemon's address, once it serves."""
        child = dict(self.daemons)[name]
        ready = self.dir / f"{name}.node"
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            if child.poll() is not None:
                break
            try:
                words = ready.read_text(encoding="utf-8").split()
            except OSError:
                words = []
            if len(words) >= 2:
                return words[1]
            time.sleep(0.01)
        log = (self.root / f"{name}.log").read_text(errors="replace").strip()
        state = "does not answer" if child.poll() is None else \
            f"ended with status {child.returncode}"
        raise ClusterError(f"the daemon of {name} {state}"
                           f"{': ' + log if log else ''}")

    def _end(self):
        for _, child in self.daemons:
            if child.poll() is None:
                child.terminate()
        end = time.monotonic() + END_LIMIT_S
        for _, child in self.daemons:
            try:
                child.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.daemons = []
        shutil.rmtree(self.root, ignore_errors=True)

    def chempirun(self, words):
        """Command of a job on this cluster."""
        return [str(word) for word in
                [self.tools["chempirun"], "--dir", self.dir, "--via",
                 self.nodes[0][0], *words]]
