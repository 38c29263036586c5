# SPDX-License-Identifier: BSD-3-Clause
"""A real sshd for tests: on loopback addresses and a free port, with keys and
settings of its own in a folder of the test."""
import getpass
import os
import shutil
import socket
import subprocess
import time

START_S = 20
LISTENERS = 8  # sshd has at most 16


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, folder, names, startups="100"):
        self.folder = folder
        self.startups = startups  # sshd's MaxStartups
        self.names = names
        self.config = folder / "ssh_config"
        self.process = None

    def write(self, port):
        """Keys and both settings."""
        self.folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            str(self.folder / name)], check=True, timeout=60)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")
        addresses = [f"127.0.0.{i % LISTENERS + 2}"
                     for i in range(len(self.names))]
        (self.folder / "sshd_config").write_text(
            f"Port {port}\n" +
            "".join(f"ListenAddress {a}\n" for a in sorted(set(addresses))) +
            f"HostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\n"
            f"MaxStartups {self.startups}\n"
            # What the user's shell does at the beginning is no part of this.
            f"SetEnv HOME={self.folder}\n"
            "PasswordAuthentication no\nPermitRootLogin yes\n"
            "KbdInteractiveAuthentication no\nPrintMotd no\n")
        self.config.write_text(
            "".join(f"Host {n}\n  HostName {a}\n"
                    for n, a in zip(self.names, addresses)) +
            f"Host nobody\n  HostName 127.0.0.250\n"
            f"Host *\n  Port {port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
            "  BatchMode yes\n  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n")

    def answers(self):
        try:
            return subprocess.run(
                ["ssh", "-F", str(self.config), self.names[-1], "true"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, check=False,
                timeout=30).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def start(self):
        """None, or why there is none."""
        program = shutil.which("sshd") or (
            "/usr/sbin/sshd" if os.path.exists("/usr/sbin/sshd") else None)
        if not program or not shutil.which("ssh-keygen"):
            return "packages openssh-server, openssh-client are not here"
        self.write(free_port())
        words = [program, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
            # It wants this folder; in a mount namespace it is nobody else's.
            words = ["unshare", "-m", "sh", "-c",
                     'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && '
                     'exec "$@"', "sh", *words]
        log = open(self.folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log)
        log.close()
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            if "Server listening" in (self.folder / "log").read_text() and \
                    self.answers():
                return None
        words = (self.folder / "log").read_text().strip().splitlines()
        self.stop()
        return "sshd does not serve here: " + "; ".join(words[-2:])

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)
        self.process = None
