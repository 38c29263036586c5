# SPDX-License-Identifier: BSD-3-Clause
"""A network between daemons that can be cut, made of relays on this host.

Every ordered pair of nodes has a relay of its own, whose address the one knows
as the other's. Between two nodes that are parted nothing passes and nothing is
closed, as when a cable is out; what was on its way arrives when they meet
again. No privileges are needed.
"""
import os
import socket
import threading

BACKLOG = 64
PIECE = 65536


def shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Network:
    """Addresses of nodes 0 to count-1, and relays between them."""

    def __init__(self, count):
        # Addresses of our own: no other process gets one of their ports
        # while the daemon that has it is restarted.
        block = 1 + os.getpid() % 250
        self.real = []
        for i in range(count):
            with socket.create_server((f"127.77.{block}.{i + 1}", 0)) as s:
                self.real.append(s.getsockname())
        self.gates = {}
        self.held = {}
        self.lock = threading.Lock()
        self.relays = {}
        self.listeners = []
        for i in range(count):
            for k in range(count):
                if i < k:
                    self.gates[i, k] = threading.Event()
                    self.gates[i, k].set()
                    self.held[i, k] = set()
                if i != k:
                    self.relays[i, k] = self.relay(i, k)

    def address(self, viewer, node):
        """Of a node, as another one calls it."""
        host, port = (self.real[node] if viewer == node
                      else self.relays[viewer, node])
        return f"{host}:{port}"

    def relay(self, viewer, node):
        listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.listeners.append(listener)
        threading.Thread(target=self.serve, daemon=True,
                         args=(listener, (min(viewer, node), max(viewer, node)),
                               self.real[node])).start()
        return listener.getsockname()

    def serve(self, listener, pair, target):
        while True:
            try:
                near = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connect, daemon=True,
                             args=(near, pair, target)).start()

    def connect(self, near, pair, target):
        self.gates[pair].wait()
        try:
            far = socket.create_connection(target, 30)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        with self.lock:
            self.held[pair] |= {near, far}
        back = threading.Thread(target=self.pump, args=(far, near, pair),
                                daemon=True)
        back.start()
        self.pump(near, far, pair)
        back.join()
        with self.lock:
            self.held[pair] -= {near, far}
        near.close()
        far.close()

    def pump(self, source, sink, pair):
        try:
            while True:
                data = source.recv(PIECE)
                self.gates[pair].wait()
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            self.gates[pair].wait()
        # Either end of a daemon is the end of the connection.
        shut(sink)
        shut(source)

    def part(self, pairs):
        for pair in pairs:
            self.gates[pair].clear()

    def meet(self, pairs):
        for pair in pairs:
            self.gates[pair].set()

    def cut(self, pairs):
        """Close the connections that there are."""
        for pair in pairs:
            with self.lock:
                for sock in self.held[pair]:
                    shut(sock)

    def close(self):
        self.meet(self.gates)
        for listener in self.listeners:
            shut(listener)
            listener.close()
        self.cut(self.gates)
