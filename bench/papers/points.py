# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: experiments of the program `papers`, by adapter and size."""
import dataclasses
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 120
KIB = 1024
MIB = 1 << 20


def powers(low, high):
    sizes = []
    while low <= high:
        sizes.append(low)
        low *= 2
    return sizes


def between(low, high):
    """Powers of two, and the middle between each two of them."""
    return sorted({*powers(low, high), *(size * 3 // 2 for size in
                                         powers(low, high // 2))})


DISTURBED = 0.02    # share of time spent waiting for a processor
# Noise shortens these, too, so the less often they run, the better.
SLEEPERS = ("mpipro-wait", "mpipro-eager", "mpipro-long")

SHORT = [0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 62]
# Overlapping, so that the crossings of two protocols can be seen.
EXPERIMENTS = {
    ("dolphin-d312", "store"): [*range(4, 257, 4), 1, 17, 63, 66, 127,
                                *powers(512, MIB)],
    ("dolphin-d312", "store-memcpy"): [4, 16, *powers(64, MIB)],
    ("dolphin-d312", "read"): [4, *range(32, 257, 32), *powers(512, 64 * KIB)],
    ("dolphin-d312", "deck-1"): SHORT,
    ("dolphin-d312", "deck-2"): [*range(64, 1024, 64),
                                 *between(1 * KIB, 128 * KIB)],
    ("dolphin-d312", "deck-3"): [*range(64, 1024, 64), *between(1 * KIB, 4 * MIB)],
    ("dolphin-d310", "store"): [4, 8, 16, *powers(64, MIB)],
    ("dolphin-d310", "read"): [4],
    ("dolphin-d310", "copy"): [4, 16, 47, *powers(64, MIB)],
    ("dolphin-d310", "scimpich-short"): [0, 1, 4, 8, 16, 32, 47],
    ("dolphin-d310", "scimpich-eager"): between(64, 64 * KIB),
    ("dolphin-d310", "scimpich-rdv"): between(1 * KIB, 2 * MIB),
    # The same protocols in the cluster of CMP, where ScaMPI ran: eager up to
    # 128 KiB.
    ("chemnitz-d310", "store"): [4],
    ("chemnitz-d310", "scimpich-short"): [0, 1, 4, 16, 32, 47],
    ("chemnitz-d310", "scimpich-eager"): between(64, 128 * KIB),
    ("chemnitz-d310", "scimpich-rdv"): between(192 * KIB, 2 * MIB),
    ("dolphin-d339", "dma"): powers(64, MIB),
    ("dolphin-d339", "gasnet-long"): powers(64, MIB),
    ("dolphin-d339", "gasnet-stores"): powers(64, MIB),
    ("giganet-clan", "send"): [0, 4, 64, KIB],
    ("giganet-clan", "rdma-stream"): [64 * KIB],
    ("giganet-clan", "register"): [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB,
                                   4 * MIB],
    ("giganet-clan", "deregister"): [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB,
                                     MIB, 4 * MIB],
    ("giganet-clan", "mpipro-wait"): [0, 1, 4, 16, *between(64, 4 * KIB), 4160,
                                      6 * KIB, *between(8 * KIB, 2 * MIB)],
    ("giganet-clan", "mpipro-eager"): [2 * KIB, 4 * KIB, 6 * KIB, 8 * KIB,
                                       10 * KIB, 12 * KIB, 14 * KIB],
    ("giganet-clan", "mpipro-long"): [2 * KIB, 4 * KIB, 6 * KIB, 8 * KIB,
                                      10 * KIB, 12 * KIB, 14 * KIB],
    ("giganet-clan", "mpipro-poll"): [0, 1, *powers(64, 4 * KIB), 4160,
                                      *powers(8 * KIB, 2 * MIB)],
    ("fast-ethernet", "mpipro-wait"): [0, 1, 4, 16, *powers(64, 4 * KIB), 4160,
                                       *powers(8 * KIB, 2 * MIB)],
    ("fast-ethernet", "send"): [0],
    ("fast-ethernet", "rdma-stream"): [16 * KIB],
    ("myrinet-gm", "send"): [0],
    ("myrinet-gm", "rdma-stream"): [64 * KIB],
}


@dataclasses.dataclass
class Points:
    """us by (personality, experiment) and size."""
    us: dict = dataclasses.field(default_factory=dict)

    def at(self, personality, experiment, size):
        return self.us[personality, experiment][size]

    def rate(self, personality, experiment, size):
        """MB/s, of 10^6 bytes."""
        return size / self.at(personality, experiment, size)

    def peak(self, personality, experiment):
        """The largest rate in MB/s, and the size where it is."""
        return max((size / us, size) for size, us in
                   self.us[personality, experiment].items() if size)


    def end_of_peak(self, personality, experiment):
        """The last size before the rate falls by more than 1 %; None where it
        never does. Neighbours of the largest rate differ by less than noise."""
        curve = self.us[personality, experiment]
        peak = self.peak(personality, experiment)[0]
        last = max(size for size, us in curve.items()
                   if size and size / us >= 0.99 * peak)
        return last if last < max(curve) else None


def run_one(program, personality, experiment, sizes, time_ms, trips=20):
    """us by size of one experiment, and the share of its time for which it
    had to wait for processors; ends the program when it fails."""
    file = ROOT / "etc" / "personalities" / f"{personality}.yaml"
    done = subprocess.run(
        [str(program), "-t", f"{time_ms:g}", "-b", str(trips), str(file),
         experiment, *(str(size) for size in sizes)],
        text=True, check=False, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = {int(size): float(us) for size, us in
             re.findall(r"^point \S+ (\d+) (\S+) us$", done.stdout, re.M)}
    disturbed = re.search(r"^disturbed (\S+)$", done.stdout, re.M)
    if done.returncode != 0 or set(found) != set(sizes) or not disturbed:
        sys.exit(f"papers: {experiment} on {personality} failed: "
                 f"{done.stderr.strip() or done.returncode}")
    return found, float(disturbed[1])


def run_once(points, program, key, time_ms):
    """Run one experiment and add it to what is known, where it is faster: the
    adapter imposes times by waiting, so that whatever disturbs a run can only
    lengthen it. The share of its time for which it waited for processors."""
    found, share = run_one(program, *key, EXPERIMENTS[key], time_ms)
    points.us[key] = lower_envelope(points.us.get(key, {}), found)
    return share


def run_all(points, program, time_ms, passes, patience_s):
    """The least of all passes; then, for that long, once more what was
    disturbed whenever it ran. Returns the share of the most unlucky one."""
    calmest = {}
    for turn in range(passes):
        shares = [run_once(points, program, key, time_ms)
                  for key in EXPERIMENTS]
        for key, share in zip(EXPERIMENTS, shares):
            calmest[key] = min(share, calmest.get(key, 1))
        print(f"  pass {turn + 1} of {passes}: waited for processors for "
              f"{sum(shares) / len(shares):.0%} of the time", file=sys.stderr)
    end = time.monotonic() + patience_s
    while True:
        busy = [key for key, share in calmest.items()
                if share > DISTURBED and key[1] not in SLEEPERS]
        for key in busy:
            if time.monotonic() > end:
                return max(calmest[key] for key in busy)
            share = run_once(points, program, key, time_ms)
            calmest[key] = min(share, calmest[key])
        if not busy:
            return 0


def crossing(first, second):
    """Where the second of two curves (us by size) becomes the faster one and
    is so for three sizes: the interpolated size, or None."""
    sizes = sorted(set(first) & set(second))
    gains = [first[size] - second[size] for size in sizes]
    for i in range(1, len(sizes) - 2):
        if gains[i - 1] < 0 <= min(gains[i:i + 3]):
            share = gains[i - 1] / (gains[i - 1] - gains[i])
            return sizes[i - 1] + (sizes[i] - sizes[i - 1]) * share
    return None


def lower_envelope(*curves):
    """The fastest of several curves at each size."""
    result = {}
    for curve in curves:
        for size, us in curve.items():
            result[size] = min(us, result.get(size, us))
    return result
