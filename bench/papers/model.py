# SPDX-License-Identifier: BSD-3-Clause
"""The performance model of "MPICH for SCI-connected clusters" (formulas 1, 3
and 5), fed as there with raw measurements: stores to remote memory, copies in
local memory, and the reading figures of its table 1."""
import bisect

LOCAL_READ_US = 0.031       # L_lr(4)
LOCAL_READ_MB_S = 142.9     # B_lr
HEADER, PACKET, CONTROL = 12, 64, 16
BLOCK = 16 << 10            # as in scimpich.c
PART = 256 << 10


def interpolated(curve):
    """Time of any size from the measured ones."""
    sizes = sorted(curve)

    def at(size):
        if size <= 0:
            return 0.0
        if size <= sizes[0]:
            return curve[sizes[0]]
        if size >= sizes[-1]:
            return curve[sizes[-1]] * size / sizes[-1]
        i = bisect.bisect_left(sizes, size)
        low, high = sizes[i - 1], sizes[i]
        share = (size - low) / (high - low)
        return curve[low] + (curve[high] - curve[low]) * share
    return at


class Model:
    """Latencies in us by bytes of message."""

    def __init__(self, store_us, copy_us):
        self.store = interpolated(store_us)   # N / B_cr(N), L_rw(N)
        self.copy = interpolated(copy_us)     # N / B_cl(N)

    def short(self, size):
        return (self.store(PACKET) + LOCAL_READ_US +
                HEADER / LOCAL_READ_MB_S + self.copy(size))

    def eager(self, size):
        return (self.store(size) + self.short(CONTROL - HEADER) +
                self.copy(size) + self.store(4))

    def rdv(self, size):
        parts = -(-size // PART)
        blocks = max(size // BLOCK - parts, 0)
        rest = size - BLOCK * blocks
        return ((1 + 2 * parts) * self.short(16) +
                blocks * (self.store(BLOCK) + self.store(PACKET)) +
                parts * self.copy(min(BLOCK, size)) + self.store(rest))
