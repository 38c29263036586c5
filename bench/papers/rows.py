# SPDX-License-Identifier: BSD-3-Clause
"""The published figures, and ours beside them."""
import dataclasses

import model
import mpi
import points

D312, D310, D339 = "dolphin-d312", "dolphin-d310", "dolphin-d339"
CLAN, ETHERNET, GM = "giganet-clan", "fast-ethernet", "myrinet-gm"
CHEMNITZ = "chemnitz-d310"
KIB, MIB = points.KIB, points.MIB
BINARY = 1.048576   # P123 and DECK count MB/s in 2^20 bytes
TOLERANCE = 0.10
SCAMPI_US = 3       # "MPI imposes an overhead of 3 us": CMP

# What a row is: the adapter's raw figure, a result of the papers' protocols on
# it, or somebody's whole software, which is shown but not aimed at.
RAW, RESULT, OTHER = "raw", "result", "other"


@dataclasses.dataclass
class Row:
    what: str
    kind: str
    unit: str
    theirs: float        # 0: no single number
    ours: float          # 0: not reproduced
    source: str
    note: str = ""
    bound: str = ""      # "most": ours may be below theirs

    @property
    def deviation(self):
        if not self.theirs or not self.ours:
            return None
        return self.ours / self.theirs - 1

    @property
    def mark(self):
        if self.kind == OTHER:
            return ""
        if self.deviation is None:
            return "not reproduced"
        if self.bound == "most" and self.deviation <= 0:
            return "ok"
        return "ok" if abs(self.deviation) <= TOLERANCE else "OFF"


def raw_rows(p):
    store = p.us[D312, "store"]
    narrow = p.us[D312, "store-memcpy"]
    read_us = p.at(D312, "read", 64 * KIB)
    return [
        Row("D312: store of 1 byte", RAW, "us", 2.5, store[1], "DECK"),
        Row("D312: store of 16 bytes", RAW, "us", 2.5, store[16], "DECK"),
        Row("D312: 512 bytes, wide stores", RAW, "MiB/s", 87.72,
            512 / store[512] / BINARY, "P123 fig. 2"),
        Row("D312: 1 MiB, wide stores", RAW, "MiB/s", 87.72,
            MIB / store[MIB] / BINARY, "P123 fig. 2"),
        Row("D312: packets of 60 bytes, of 64", RAW, "", 4,
            round((store[60] - store[16]) / (store[48] - store[32])) + 1,
            "P123", "from the steps of the sawtooth"),
        Row("D312: sizes 20..60 slower than 64", RAW, "%", 100,
            100 * sum(store[n] > store[64] for n in range(20, 64, 4)) / 11,
            "DECK"),
        Row("D312: writes against reads, 64 KiB", RAW, "times", 10,
            read_us / store[64 * KIB], "P123", "approximately ten"),
        Row("D312: 512 bytes, memcpy", RAW, "MiB/s", 49.94,
            512 / narrow[512] / BINARY, "P123 fig. 2"),
        Row("D312: 1 MiB, memcpy", RAW, "MiB/s", 49.94,
            MIB / narrow[MIB] / BINARY, "P123 fig. 2"),
        Row("D310: store of 4 bytes", RAW, "us", 2.7, p.at(D310, "store", 4),
            "SCIMPICH tab. 1"),
        Row("D310: store of 64 bytes", RAW, "us", 4,
            p.at(D310, "store", 64), "SCIMPICH III.B", "about 4"),
        Row("D310: copy to remote memory", RAW, "MB/s", 76.3,
            p.peak(D310, "store")[0], "SCIMPICH tab. 1"),
        Row("D310: remote read", RAW, "us", 4.4, p.at(D310, "read", 4),
            "SCIMPICH tab. 1"),
        Row("D310: copy in local memory", RAW, "MB/s", 334,
            p.rate(D310, "copy", 8 * KIB), "SCIMPICH tab. 1"),
        Row("D310 in CMP's cluster: store", RAW, "us", 5,
            p.at(CHEMNITZ, "store", 4), "CMP", "about 5"),
        Row("cLAN: descriptor", RAW, "us", 7.5, p.at(CLAN, "send", 0), "CMP",
            "7 to 8"),
        Row("cLAN: bandwidth", RAW, "MB/s", 100,
            p.rate(CLAN, "rdma-stream", 64 * KIB), "CMP", "about 100"),
        *registration_rows(p),
    ]


def registration_rows(p):
    table = ((4 * KIB, 6.7, 3.5), (64 * KIB, 27.8, 8.7), (MIB, 366, 103))
    rows = []
    for size, register, deregister in table:
        rows.append(Row(f"registering {size // KIB} KiB", RAW, "us", register,
                        p.at(CLAN, "register", size), "LMM tab. 1"))
        rows.append(Row(f"deregistering {size // KIB} KiB", RAW, "us",
                        deregister, p.at(CLAN, "deregister", size),
                        "LMM tab. 1"))
    return rows


def deck_rows(p):
    one = p.us[D312, "deck-1"]
    link = p.peak(D312, "store")[0]
    peak3, where3 = p.peak(D312, "deck-3")
    falls = p.rate(D312, "deck-2", 128 * KIB) / BINARY
    meet = points.crossing(p.us[D312, "deck-2"], p.us[D312, "deck-3"])
    return [
        Row("protocol 1, 0 bytes", RESULT, "us", 4.66, one[0], "P123"),
        Row("protocol 1, 62 bytes", RESULT, "us", 4.66, one[62], "P123"),
        Row("protocol 1, longest / shortest, 0..62", RESULT, "times", 1,
            max(one.values()) / min(one.values()), "P123 fig. 6", "flat"),
        Row("protocol 1, 62 bytes", RESULT, "MiB/s", 12.63,
            62 / one[62] / BINARY, "DECK"),
        Row("protocol 2, 64 bytes", RESULT, "us", 8.56,
            p.at(D312, "deck-2", 64), "P123"),
        Row("protocol 2, 32 KiB", RESULT, "MiB/s", 62.54,
            p.rate(D312, "deck-2", 32 * KIB) / BINARY, "P123"),
        Row("protocol 2, size of the peak", RESULT, "KiB", 32,
            (p.end_of_peak(D312, "deck-2") or 0) / KIB, "DECK",
            f"then it falls: {falls:.1f} MiB/s at 128 KiB"),
        Row("protocol 3, 64 bytes", RESULT, "us", 9.82,
            p.at(D312, "deck-3", 64), "P123"),
        Row("protocol 3, peak", RESULT, "MiB/s", 84.12, peak3 / BINARY, "P123",
            f"at {where3 // KIB} KiB"),
        Row("protocol 3, peak of the link", RESULT, "%", 95.9,
            100 * peak3 / link, "P123"),
        Row("protocol 3 overtakes protocol 2", RESULT, "bytes", 1024,
            meet or 0, "P123"),
    ]


def scimpich_rows(p):
    made = model.Model(p.us[D310, "store"], p.us[D310, "copy"])
    short = p.us[D310, "scimpich-short"]
    peak, where = p.peak(D310, "scimpich-rdv")
    return [
        Row("short protocol, 0 bytes, without MPI", RESULT, "us",
            made.short(0), short[0], "formula 1", "theirs: the model"),
        Row("eager protocol, 16 KiB, without MPI", RESULT, "us",
            made.eager(16 * KIB), p.at(D310, "scimpich-eager", 16 * KIB),
            "formula 3", "theirs: the model"),
        Row("rendez-vous, 256 KiB, without MPI", RESULT, "us",
            made.rdv(256 * KIB), p.at(D310, "scimpich-rdv", 256 * KIB),
            "formula 5", "theirs: the model, which holds beyond 128 KiB"),
        Row("SCI-MPICH, own cluster", OTHER, "us", 6.6, short[0],
            "SCIMPICH tab. 2", "2.5 us of theirs are MPICH's layers"),
        Row("SCI-MPICH, own cluster", OTHER, "MB/s", 73.8, peak,
            "SCIMPICH tab. 2", f"at {where // KIB} KiB"),
    ]


def network_rows(p):
    sci = scampi(p)
    via = p.us[CLAN, "mpipro-wait"]
    via_peak = p.peak(CLAN, "mpipro-wait")[0]
    ethernet = p.us[ETHERNET, "mpipro-wait"]
    meet = points.crossing(sci, via)
    switch = points.crossing(p.us[CLAN, "mpipro-eager"],
                             p.us[CLAN, "mpipro-long"])
    ratios = [via[n] / us for n, us in sci.items() if 0 < n and n in via]
    return [
        Row("crossover of SCI and VIA", RESULT, "KiB", 16, (meet or 0) / KIB,
            "CMP fig. 3", "D310 by SCI-MPICH's protocols, cLAN asleep"),
        Row("MPI/Pro: long overtakes eager", RESULT, "KiB", 8,
            (switch or 0) / KIB, "CMP fig. 1", "eager is better up to there"),
        Row("SCI faster than VIA, up to", OTHER, "times", 8, max(ratios),
            "CMP fig. 3"),
        Row("ScaMPI on D310", OTHER, "us", 8, sci[0], "CMP",
            "ours: a packet and the 3 us that CMP tells of"),
        Row("ScaMPI on D310", OTHER, "MB/s", 76,
            max(n / us for n, us in sci.items()), "CMP"),
        Row("MPI/Pro on cLAN, asleep", OTHER, "us", 65, via[0], "CMP",
            "waking and the library were fitted to these two"),
        Row("MPI/Pro on cLAN", OTHER, "MB/s", 93.5, via_peak, "CMP"),
        Row("MPI/Pro on cLAN, polling", OTHER, "us", 20,
            p.at(CLAN, "mpipro-poll", 0), "CMP", "theirs: below 20"),
        Row("MPI/Pro on Fast Ethernet (TCP)", OTHER, "us", 125, ethernet[0],
            "CMP", "ours is M-VIA, not TCP"),
        Row("MPI/Pro on Fast Ethernet (TCP)", OTHER, "MB/s", 10.3,
            p.peak(ETHERNET, "mpipro-wait")[0], "CMP"),
    ]


def scampi(p):
    """ScaMPI as CMP tells of it, by SCI-MPICH's protocols: short messages in
    packets, eager ones up to 128 KiB, then blocks; 3 us are its own."""
    return {size: us + SCAMPI_US for curve in ("rdv", "eager", "short")
            for size, us in p.us[CHEMNITZ, f"scimpich-{curve}"].items()}


def gasnet_rows(p):
    return [
        Row("GASNet long messages, by DMA", RESULT, "MB/s", 213,
            p.rate(D339, "gasnet-long", 128 * KIB), "GASNET", "at 128 KiB"),
        Row("GASNet long messages, by stores", RESULT, "MB/s", 190,
            p.rate(D339, "gasnet-stores", 128 * KIB), "GASNET",
            "over ScaMPI there"),
    ]


# MPI of others: whose, on which card, us, MB/s, source; units of 2^20 bytes
# where they count so.
MPIS = [
    ("ScaMPI", D312, 6.63, 78.35, BINARY, "P123"),
    ("SCI-MPICH", D312, 7.26, 73.80, BINARY, "P123"),
    ("SCI-MPICH", D310, 6.6, 73.8, 1, "SCIMPICH tab. 2"),
    ("ScaMPI", CHEMNITZ, 8, 76, 1, "CMP"),
    ("MPI/Pro, asleep", CLAN, 65, 93.5, 1, "CMP"),
    ("MPI/Pro, polling", CLAN, 20, 0, 1, "CMP"),
    ("MPI/Pro, TCP", ETHERNET, 125, 10.3, 1, "CMP"),
    ("MPICH lfshmem", mpi.HOST, 1.6, 141.9, 1, "SCIMPICH tab. 2"),
    ("MPICH shmem", mpi.HOST, 4.6, 110.4, 1, "SCIMPICH tab. 2"),
]


def mpi_rows(p):
    """MPI of ours beside that of others on the same card."""
    found = []
    for whose, card, us, rate, unit, source in MPIS:
        where = "one node of today" if card == mpi.HOST else card
        found.append(Row(f"{whose}: {where}", OTHER, "us", us,
                         p.at(card, mpi.EXPERIMENT, 0), source))
        if rate:
            found.append(Row(f"{whose}: {where}", OTHER,
                             "MiB/s" if unit == BINARY else "MB/s", rate,
                             p.peak(card, mpi.EXPERIMENT)[0] / unit, source))
    found.append(Row(f"GASNet over ScaMPI: {D339}", OTHER, "MB/s", 190,
                     p.rate(D339, mpi.EXPERIMENT, 128 * KIB), "GASNET",
                     "at 128 KiB"))
    meet = points.crossing(p.us[CHEMNITZ, mpi.EXPERIMENT],
                           p.us[CLAN, mpi.EXPERIMENT])
    found.append(Row("MPI: crossover of SCI and VIA", OTHER, "KiB", 16,
                     (meet or 0) / KIB, "CMP fig. 3", "ours polls"))
    return found


def has_mpi(p):
    return (D312, mpi.EXPERIMENT) in p.us


def sections(p):
    return [
        ("the adapters (inputs: section 1 and 2 of their papers)", raw_rows(p)),
        ("protocols 1 to 3 of P123 on dolphin-d312", deck_rows(p)),
        ("SCI-MPICH's protocols and model on dolphin-d310", scimpich_rows(p)),
        ("SCI, VIA and Fast Ethernet", network_rows(p)),
        ("GASNet on dolphin-d339", gasnet_rows(p)),
        *([("MPI itself: theirs, and libchempi over device scivia",
            mpi_rows(p))] if has_mpi(p) else []),
    ]
