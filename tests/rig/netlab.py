# SPDX-License-Identifier: BSD-3-Clause
"""A virtual cluster in network namespaces.

Every node of a description gets a namespace of its own, every network of it a
bridge that its nodes are plugged into with their addresses, and a further
bridge carries the daemons. Nodes reach each other over the networks that the
description gives them and over nothing else: nothing routes.

All of it lives in a mount, a process and a network namespace of this run.
Names can therefore not collide, nothing of the host is touched, and the
kernel removes everything when the run ends, even by SIGKILL. Files that are
made go to a memory file system that vanishes likewise (Lab.dir).

    def body():
        with netlab.Lab(build, "twelve.yaml") as lab:
            print(lab.chempirun("-n", "4", program).output)
    sys.exit(netlab.inside(body))
"""
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import chempi_tree  # noqa: E402
import jobrun  # noqa: E402

SKIPPED = 77
STEP_LIMIT_S = 60  # for each tool that is called
CONTROL = "control"
CLONE = {"mount": 0x00020000, "user": 0x10000000, "pid": 0x20000000,
         "net": 0x40000000}
MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x4000, 1 << 18, 2, 4
PR_SET_PDEATHSIG = 1
BURST_S = 0.0002      # a shaped link may run ahead by this time ...
BURST_MIN = 16 << 10  # ... but by some packets at least
QUEUE_BYTES = 4 << 20  # before it drops packets
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


class Skipped(Exception):
    """This machine lets nobody make namespaces; the text says what fails."""


class LabError(Exception):
    """A tool that must succeed did not; the text says which and why."""


# ---- namespaces of the run --------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(source, target, kind, flags):
    _call("mount", source.encode(), target.encode(), kind.encode(), flags,
          None)


def _leave_host():
    """Namespaces of our own; without root, as root of a user namespace."""
    flags = CLONE["mount"] | CLONE["pid"] | CLONE["net"]
    uid, gid = os.geteuid(), os.getegid()
    try:
        _call("unshare", flags | (CLONE["user"] if uid else 0))
        if uid:
            pathlib.Path("/proc/self/setgroups").write_text("deny")
            pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
            pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    except OSError as error:
        raise Skipped(f"no namespaces here ({error.strerror})") from error


def _settle():
    """As the first process of the new namespaces: mounts of our own."""
    try:
        _mount("none", "/", "none", MS_REC | MS_PRIVATE)
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
        _mount("rig", "/run", "tmpfs", MS_NOSUID | MS_NODEV)
        os.mkdir("/run/netns")
        _batch("ip", ["link add probe0 type veth peer name probe1",
                      "link add probe2 type bridge"])
        _batch("tc", [_shaped("probe0", "1mbit")])
        _batch("ip", ["link del probe0", "link del probe2"])
    except FileNotFoundError as error:
        raise Skipped(f"no {error.filename} here") from error
    except (OSError, LabError) as error:
        raise Skipped(f"no virtual links here ({error})") from error


def _answer(body):
    """Exit status of body, told where it cannot go on."""
    try:
        return body() or 0
    except Skipped as why:
        print(f"skipped: {why}", flush=True)
        return SKIPPED
    except KeyboardInterrupt:
        return 130
    except LabError as error:
        print(f"rig: {error}", file=sys.stderr, flush=True)
        return 1
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr, flush=True)
            return 1
        return end.code or 0
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        return 1


def _child(body):
    """Fork; the child's status is what body returns. Its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        status = _answer(body)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return pid


def _reap_until(wanted):
    """Wait for all children, ours and orphans, until wanted has ended."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def inside(body):
    """Run body() in namespaces of its own; returns its exit status, or 77
    where that cannot be had. Everything that was started has ended then."""
    def first():
        _settle()
        return _reap_until(_child(body))

    def outer():
        _leave_host()
        pid = _child(first)

        def stop(_number, _frame):
            os.kill(pid, signal.SIGKILL)  # and with it all the others
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, stop)
        return _reap_until(pid)

    pid = _child(outer)

    def stop(number, _frame):
        os.kill(pid, number)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    return _reap_until(pid)


# ---- links ------------------------------------------------------------------


def _tool(command, **kwargs):
    done = subprocess.run([str(word) for word in command], text=True,
                          check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=STEP_LIMIT_S,
                          **kwargs)
    if done.returncode != 0:
        name = os.path.basename(str(command[0]))
        raise LabError(f"{name} failed: {done.stdout.strip() or 'no reason'}")
    return done.stdout


def _batch(tool, lines, node=None):
    """Many lines for ip or tc at once, in the namespace of a node."""
    where = ["-n", node] if node else []
    _tool([tool, *where, "-batch", "-"], input="\n".join(lines) + "\n")


def bits_of(rate):
    """bit/s of '200mbit'."""
    found = re.fullmatch(r"([0-9.]+)([kmg]bit)", rate)
    if not found:
        raise LabError(f"'{rate}' is no rate; expected one like 200mbit")
    return float(found[1]) * UNITS[found[2]]


def _shaped(link, rate):
    """A line for tc."""
    burst = max(BURST_MIN, int(bits_of(rate) / 8 * BURST_S))
    return (f"qdisc replace dev {link} root tbf rate {rate} burst {burst} "
            f"limit {QUEUE_BYTES}")


class Plug:
    """A node's end of a network."""

    def __init__(self, node, link, port, address):
        self.node = node
        self.link = link        # in the node's namespace
        self.port = port        # its other end, at the bridge
        self.address = address  # with the length of its network


def _attached(text):
    """[(network, address, interface)] of a node, from what `mdconfig show`
    prints of its table."""
    found = re.findall(r"^  (\S+) +type \S+, device (\S+?)"
                       r"(?:, address (\S+?))?(?:, interface (\S+))?$",
                       text, re.MULTILINE)
    return [(network, address, interface)
            for network, device, address, interface in found
            if device == "tcp"]


class Lab:
    """The cluster of a description; use it in a with statement, inside()."""

    def __init__(self, build, description, rates=None, slots=2,
                 tables=None):
        self.build = pathlib.Path(build).resolve()
        self.description = self._find(description)
        self.dir = pathlib.Path("/run/rig")
        self.daemons_dir = self.dir / "d"
        self.tables = pathlib.Path(tables or self.dir / "tables").resolve()
        self.log = self.dir / "log"
        self.slots = slots
        self.rates = dict(re.findall(r"^# rig: (\S+) (\S+)$",
                                     self.description.read_text(), re.M))
        self.rates.update(rates or {})
        self.plugs = {}  # {network: {node: Plug}}
        self.nodes = []
        self.env = dict(os.environ, CHEMPI_DIR=str(self.daemons_dir))
        places = [self.build / folder for folder in
                  ("chempid", "mdconfig", "programs/wrappers",
                   "bin")]
        self.env["PATH"] = ":".join([*map(str, places), os.environ["PATH"]])

    @staticmethod
    def _find(description):
        path = pathlib.Path(description)
        path = path if path.exists() else HERE / description
        if not path.exists():
            raise LabError(f"{description}: no such description")
        return path.resolve()

    def tool(self, name):
        return chempi_tree.need(self.build, name)

    def __enter__(self):
        self.dir.mkdir(mode=0o700)
        if not self.tables.is_dir():
            self.compile()
        self._plan()
        self._wire()
        _tool([self.tool("chempictl"), "key", self.dir / "key"])
        for node in self.nodes:
            self.start(node)
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and not issubclass(kind, (Skipped, SystemExit)):
            print(self.logged(), file=sys.stderr)
        for name in sorted(self.daemons_dir.glob("*.sock")):
            subprocess.run([self.tool("chempictl"), "--via", name.stem,
                            "stop"], env=self.env, check=False,
                           capture_output=True, timeout=STEP_LIMIT_S)
        return False

    # ---- building ----

    def compile(self):
        """Tables of the description, as it is now."""
        _tool([self.tool("mdconfig"), "compile", "-o", self.tables,
               self.description])

    def _plan(self):
        """Who is plugged in where."""
        number = 0
        files = list(self.tables.glob("*.chempi"))
        shown = {file.stem: _tool([self.tool("mdconfig"), "show", file])
                 for file in files}
        self.nodes = sorted(shown, key=lambda name: [
            int(part) if part.isdigit() else part
            for part in re.split(r"(\d+)", name)])
        self.plugs = {CONTROL: {}}
        for index, node in enumerate(self.nodes):
            attached = [(CONTROL, f"10.255.{index // 250}.{index % 250 + 1}",
                         CONTROL), *_attached(shown[node])]
            for network, address, interface in attached:
                if not address:
                    raise LabError(f"{self.description.name}: node {node} "
                                   f"has no address on network {network}")
                length = 16 if network == CONTROL else \
                    64 if ":" in address else 24
                link = (interface or network)[:15]
                self.plugs.setdefault(network, {})[node] = Plug(
                    node, link, f"p{number}", f"{address}/{length}")
                number += 1

    def _wire(self):
        _batch("ip", [f"netns add {node}" for node in self.nodes])
        lines = []
        inner = {node: ["link set dev lo up"] for node in self.nodes}
        for index, plugs in enumerate(self.plugs.values()):
            lines += [f"link add dev br{index} type bridge",
                      f"link set dev br{index} up"]
            for plug in plugs.values():
                lines += [f"link add dev {plug.port} type veth peer name "
                          f"{plug.link} netns {plug.node}",
                          f"link set dev {plug.port} master br{index} up"]
                dad = " nodad" if ":" in plug.address else ""
                inner[plug.node] += [
                    f"addr add {plug.address}{dad} dev {plug.link}",
                    f"link set dev {plug.link} up"]
        _batch("ip", lines)
        for node, words in inner.items():
            _batch("ip", words, node)
        for network, rate in self.rates.items():
            self.shape(network, rate)

    def shape(self, network, rate):
        """Limit what every link of a network carries, in both directions;
        'none' takes the limit away."""
        if network not in self.plugs:
            raise LabError(f"there is no network {network} to be shaped")
        for plug in self.plugs[network].values():
            for node, link in ((None, plug.port), (plug.node, plug.link)):
                if rate != "none":
                    _batch("tc", [_shaped(link, rate)], node)
                elif self.rates.get(network, "none") != "none":
                    _batch("tc", [f"qdisc del dev {link} root"], node)
        self.rates[network] = rate

    def link(self, node, network, state):
        """Pull a node's plug ('down'), or put it back ('up')."""
        _batch("ip", [f"link set dev {self.plugs[network][node].port} {state}"])

    # ---- running ----

    def at(self, node, *command):
        """A command as it is run on a node."""
        return [str(word) for word in
                ["nsenter", f"--net=/run/netns/{node}", *command]]

    def start(self, node):
        """A node's daemon; it serves when this returns."""
        address = self.plugs[CONTROL][node].address.partition("/")[0]
        with open(self.log, "ab") as log:
            done = subprocess.run(
                self.at(node, self.tool("chempid"), "--name", node, "--dir",
                        self.daemons_dir, "--listen", address, "--key",
                        self.dir / "key", "--tables", self.tables, "--slots",
                        self.slots, "--background"),
                env=self.env, stdin=subprocess.DEVNULL, stderr=log,
                check=False, timeout=STEP_LIMIT_S)
        if done.returncode != 0:
            raise LabError(f"the daemon of {node} does not start:\n"
                           f"{self.logged()}")

    def stop(self, node):
        """A node's daemon; nobody finds it when this returns."""
        self.ctl(node, "stop")
        end = time.monotonic() + STEP_LIMIT_S
        while (self.daemons_dir / f"{node}.sock").exists():
            if time.monotonic() > end:
                raise LabError(f"the daemon of {node} does not end:\n"
                               f"{self.logged()}")

    def run(self, *command, node=None, limit_s=120, env=None, **kwargs):
        """Run a command on a node (the first one); a jobrun.Result."""
        return jobrun.run(self.at(node or self.nodes[0], *command),
                          env=dict(self.env, **(env or {})),
                          timeout_s=limit_s, **kwargs)

    def chempirun(self, *words, **kwargs):
        """Run a job."""
        return self.run(self.tool("chempirun"), *words, **kwargs)

    def ctl(self, node, *words):
        """What chempictl says, asked at a node."""
        return _tool([self.tool("chempictl"), "--via", node, *words],
                     env=self.env)

    def pids(self, node, name=""):
        """Processes in a node's namespace whose name contains a word."""
        wanted = os.stat(f"/run/netns/{node}").st_ino
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and \
                        os.stat(entry / "ns/net").st_ino == wanted and \
                        name in (entry / "comm").read_text():
                    found.append(int(entry.name))
            except OSError:
                continue  # it has ended
        return sorted(found)

    def carried(self, node, network):
        """Bytes that a node has sent and received on a network."""
        wanted = self.plugs[network][node].port + ":"
        for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
            name, *counts = line.split()
            if name == wanted:
                return int(counts[0]), int(counts[8])
        raise LabError(f"{node} is not plugged into network {network}")

    def logged(self):
        try:
            return self.log.read_text(errors="replace")
        except OSError:
            return ""
