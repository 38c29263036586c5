# SPDX-License-Identifier: BSD-3-Clause
"""A network between daemons that can be cut, made of relays on this host.

Every ordered pair of nodes has a relay of its own, whose address the one knows
as the other's. Between two nodes that are parted nothing passes and nothing is
closed, as when a cable is out; what was on its way arrives when they meet
again. No privileges are needed.

The relays are one process, in a session of its own: busy processes of the
test's session, and the test itself, do not take its processor time. It tells
how late it has been: then the network has stood still.
"""
import os
import selectors
import socket
import subprocess
import sys
import time

BACKLOG = 64
PIECE = 65536
LOOK_S = 0.02  # between two looks at the clock


def shut(sock):
    """At once, for both ends."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()


class Network:
    """Addresses of nodes 0 to count-1, and relays between them."""

    def __init__(self, count):
        # Addresses of our own: no other process gets one of their ports
        # while the daemon that has it is restarted.
        block = 1 + os.getpid() % 250
        self.real = []
        for i in range(count):
            with socket.create_server((f"127.77.{block}.{i + 1}", 0)) as s:
                self.real.append("%s:%d" % s.getsockname())
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *self.real],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True)
        self.relays = {}
        for _ in range(count * (count - 1)):
            i, k, address = self.process.stdout.readline().split()
            self.relays[int(i), int(k)] = address

    def address(self, viewer, node):
        """Of a node, as another one calls it."""
        return (self.real[node] if viewer == node
                else self.relays[viewer, node])

    def order(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def part(self, pairs):
        self.order("part", *(f"{i}-{k}" for i, k in pairs))

    def meet(self, pairs):
        self.order("meet", *(f"{i}-{k}" for i, k in pairs))

    def cut(self, pairs):
        """Close the connections that there are."""
        self.order("cut", *(f"{i}-{k}" for i, k in pairs))

    def late(self):
        """Seconds that nothing has passed, at most, since the last time that
        this was asked, for want of processors."""
        return float(self.order("late"))

    def close(self):
        self.process.stdin.close()  # this is the sign
        self.process.wait()
        self.process.stdout.close()


class End:
    """Of a connection: what comes here goes out at the other end."""

    def __init__(self, sock, joint):
        self.sock = sock
        self.joint = joint
        self.other = None
        self.waiting = b""  # to be written here
        self.is_up = True   # connected

    def watch(self):
        """For what is due now."""
        events = 0
        if not self.joint.is_parted():
            if self.is_up and not self.other.waiting:
                events |= selectors.EVENT_READ
            if self.waiting or not self.is_up:
                events |= selectors.EVENT_WRITE
        relays = self.joint.relays
        known = relays.selector.get_map().get(self.sock)
        if known and not events:
            relays.selector.unregister(self.sock)
        elif known and known.events != events:
            relays.selector.modify(self.sock, events, self.happens)
        elif events and not known:
            relays.selector.register(self.sock, events, self.happens)

    def happens(self, events):
        try:
            if events & selectors.EVENT_WRITE:
                self.write()
            if events & selectors.EVENT_READ:
                self.other.waiting = self.sock.recv(PIECE)
                if not self.other.waiting:
                    self.joint.close()
                    return
                self.other.write()
        except BlockingIOError:
            pass
        except OSError:
            self.joint.close()
            return
        self.watch()
        self.other.watch()

    def write(self):
        if not self.is_up:
            code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, "connect")
            self.is_up = True
        if self.waiting:
            self.waiting = self.waiting[self.sock.send(self.waiting):]


class Joint:
    """A connection: two ends."""

    def __init__(self, relays, pair, near, target):
        self.relays = relays
        self.pair = pair
        self.target = target
        self.ends = [End(near, self), End(socket.socket(), self)]
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]
        self.has_called = False
        for end in self.ends:
            end.sock.setblocking(False)
            end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ends[1].is_up = False
        relays.joints.add(self)
        self.look()

    def is_parted(self):
        return self.pair in self.relays.parted

    def look(self):
        """The nodes are parted, or meet."""
        if not self.has_called and not self.is_parted():
            self.has_called = True
            self.ends[1].sock.connect_ex(self.target)
        if self.has_called:
            for end in self.ends:
                end.watch()

    def close(self):
        self.relays.joints.discard(self)
        for end in self.ends:
            if end.sock in self.relays.selector.get_map():
                self.relays.selector.unregister(end.sock)
            shut(end.sock)


class Relays:
    """All of them: the other process."""

    def __init__(self, real):
        self.selector = selectors.DefaultSelector()
        self.parted = set()
        self.joints = set()
        self.late = 0.0
        targets = [(host, int(port)) for host, port in
                   (address.rsplit(":", 1) for address in real)]
        for i in range(len(real)):
            for k, target in enumerate(targets):
                if i != k:
                    self.listen(i, k, target)
        sys.stdout.flush()
        os.set_blocking(0, False)
        self.orders = b""
        self.selector.register(0, selectors.EVENT_READ, self.ordered)

    def listen(self, viewer, node, target):
        listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        listener.setblocking(False)
        pair = (min(viewer, node), max(viewer, node))

        def called(_):
            try:
                Joint(self, pair, listener.accept()[0], target)
            except OSError:
                pass  # it is gone again
        self.selector.register(listener, selectors.EVENT_READ, called)
        print(viewer, node, "%s:%d" % listener.getsockname())

    def ordered(self, _):
        data = os.read(0, PIECE)
        if not data:
            sys.exit(0)
        self.orders += data
        while b"\n" in self.orders:
            line, self.orders = self.orders.split(b"\n", 1)
            word, *pairs = line.decode().split()
            self.obey(word, {tuple(map(int, pair.split("-")))
                             for pair in pairs})

    def obey(self, word, pairs):
        if word == "part":
            self.parted |= pairs
        elif word == "meet":
            self.parted -= pairs
        for joint in [j for j in self.joints if j.pair in pairs]:
            joint.close() if word == "cut" else joint.look()
        print(self.late if word == "late" else "done", flush=True)
        if word == "late":
            self.late = 0.0

    def run(self):
        last = time.monotonic()
        while True:
            for key, events in self.selector.select(LOOK_S):
                # It may have been closed by what came before.
                if self.selector.get_map().get(key.fd) == key:
                    key.data(events)
            now = time.monotonic()
            self.late = max(self.late, now - last - LOOK_S)
            last = now


if __name__ == "__main__":
    Relays(sys.argv[1:]).run()
