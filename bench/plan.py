# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: groups of points, and the MPIs that are compared."""
import dataclasses
import os
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent

LATENCY_SIZES = "0 1 8 64 256 1k 4k".split()
BANDWIDTH_SIZES = "64k 256k 1M 4M".split()  # of --quick, as LATENCY_SIZES
RATE_SIZES = "8".split()
SCIVIA_SIZES = "0 1 8 32 64".split()
SCIVIA_BANDWIDTH_SIZES = "1M".split()
# Every power of two up to 256 KiB, and of four beyond.
COLLECTIVE_SIZES = "8 1k 2k 4k 8k 16k 32k 64k 128k 256k 1M 4M".split()
OWN_SIZES = ["8", "64", *COLLECTIVE_SIZES[1:]]
COLLECTIVE_BYTES_MAX = 64 << 20  # of one buffer: the ranks have two each
OVERLAP_SIZES = "8k 64k 256k 1M".split()
AGENT_SIZES = "0 8 1k 8k 64k 256k".split()
MATCHING_COUNTS = "10 100 1000 10000".split()
CURVE_SIZES = "0 1 8 64 256 1k 4k 16k 64k 256k 1M 4M".split()
POWERS = [str(1 << i) for i in range(23)]  # 1 byte to 4 MiB
FILE_SIZES = "64k 1M 16M".split()
IDLE_LIMIT_S = 0.2      # CPU of all blocked ranks together
LOCK_LIMIT_NS = 20.0    # of a call under MPI_THREAD_MULTIPLE
# Cost per match at most receives / at 100: the same steps, but 10,000
# requests do not fit the caches that 100 fit.
MATCHING_GROWTH = 2.0


@dataclasses.dataclass
class Network:
    """Virtual nodes on which we run."""
    nodes: str = ""     # as chempirun --virtual has them; "": none
    text: str = ""      # the description; "": no tables
    card: str = ""      # whose time adapters take; "": their clock is free


@dataclasses.dataclass
class Group:
    """Points that one run of one program gives."""
    name: str
    title: str
    program: str
    args: list
    ranks: int = 2
    transport: str = "shm"
    rounds: int = 11
    quick_rounds: int = 5
    budget_s: float = 60.0  # no round is begun after it
    limit_s: float = 60.0   # one run; over it, the point counts as absent
    target: float = 0.0     # worst ratio of a point; 0: for information
    small_target: float = 0.0  # the same for up to 8 bytes, if not 0
    mean_target: float = 0.0  # geometric mean of the group's ratios
    most: dict = None       # point -> the largest value that is good enough
    launch: bool = False    # the wall time of the whole job is the value
    point_ms: float = 20.0
    quick: bool = True      # part of --quick
    quick_args: list = None  # then instead of args
    peers: bool = True      # False: measured against itself or a fixed limit
    network: Network = None  # that we run on; None: what transport says
    against: dict = None    # names of others of ours to compare with, instead
                            # of peers, and the network of each


def thinned(group, modes, sizes):
    """A group of files with those of its modes and sizes only that are named,
    by comma (none: with all); None when nothing is left. Others stay whole."""
    if group.program != "files":
        return group

    def chosen(names, text):
        wanted = [name for name in text.split(",") if name]
        return [name for name in names if not wanted or name in wanted]

    left = chosen(group.args[0].split("+"), modes)
    few = chosen(group.args[2:], sizes)
    if not left or not few:
        return None
    return dataclasses.replace(group,
                               args=["+".join(left), group.args[1], *few])


def adapters():
    """SCI adapters of a free clock, against our own shared memory."""
    text = (HERE / "scivia.yaml").read_text(encoding="utf-8")
    return {"network": Network("n0,n1", text), "against": {"shm": Network()}}


ADAPTERS = adapters()


def one_network(nodes, kind, **keys):
    """Of two nodes or, for type smp, one."""
    return "\n".join([f"nodes: [ {nodes} ]", "networks:", "  net:",
                      f"    type: {kind}",
                      *(f"    {key}: {value}" for key, value in keys.items()),
                      *(["    attach: all"] if kind != "smp" else []), ""])


def choice(name, where, kind, protocols, card="", nodes="n0,n1", **more):
    """What is chosen at each size, against each protocol wherever it can go;
    protocols: the size up to which each can."""
    keys = {"card": card} if card else {}
    forced = {}
    for protocol, most in protocols.items():
        figures = f"{protocol}: {{ latency: 1 us, bandwidth: 1000, max: {most} }}"
        if most != "none":  # above it something has to carry messages
            rest = list(protocols)[-1]
            figures += f", {rest}: {{ latency: 1 s, bandwidth: 1 }}"
        forced[protocol] = Network(nodes, one_network(
            nodes, kind, **keys, protocols=f"{{ {figures} }}"), card)
    return Group(f"choice-{name}", f"chosen and forced protocols, {where}",
                 "latency", POWERS[:21], rounds=7, quick=False, budget_s=120,
                 target=1.05, network=Network(nodes, one_network(
                     nodes, kind, **keys), card), against=forced, **more)


def choices():
    both = {"shared-memory": "none", "one-copy": "none", "zero-copy": "none"}
    via = {"send": "none", "one-copy": "none", "zero-copy": "none"}
    cards = {"dolphin-d312": ("sci", both), "giganet-clan": ("via", via),
             "myrinet-gm": ("myrinet", via), "fast-ethernet": ("via", via)}
    return [
        choice("shm", "shared memory", "smp",
               {"eager": "16 KiB", "pipeline": "none", "single-copy": "none"},
               nodes="n0"),
        choice("tcp", "TCP, two nodes", "ethernet",
               {"eager": "none", "rendezvous": "none"}),
        *[choice(card, f"emulated {card}", kind, protocols, card)
          for card, (kind, protocols) in cards.items()],
    ]


def sizes_for(ranks):
    """Those of collectives whose buffers fit the machine."""
    return [size for size in COLLECTIVE_SIZES if not size.endswith("M") or
            (int(size[:-1]) << 20) * ranks <= COLLECTIVE_BYTES_MAX]


def crowd(ranks, forms="all"):
    """Collectives with more ranks than cores."""
    blocking = forms == "all"
    return Group(f"coll-{ranks}" if blocking else f"icoll-{ranks}",
                 ("" if blocking else "non-blocking ") + "collectives, "
                 f"shared memory, {ranks} ranks on all cores", "collective",
                 [forms, *sizes_for(ranks)], ranks=ranks, target=1.0,
                 small_target=0.6, rounds=5, budget_s=30 + 5 * ranks,
                 limit_s=180, point_ms=10 if ranks < 16 else 40,
                 quick=blocking and ranks != 8, quick_rounds=1,
                 quick_args=["barrier+allreduce", "8"])


def own(name, title, program, args, **more):
    """Ratios that a program of ours finds by itself: nobody else runs it."""
    return Group(name, title, program, args, quick=False, network=Network(),
                 against={}, **{"rounds": 5, "budget_s": 150, **more})


def crowds():
    """Many ranks on one machine; peers are not asked for so many."""
    return [
        own("launch-1000", "launch of 1,000 ranks that meet in ten barriers",
            "hello", ["10"], ranks=1000, launch=True, most={"launch": 1.5}),
        own("coll-1000", "barrier and allreduce, 1,000 ranks", "collective",
            ["barrier+allreduce", "8"], ranks=1000, point_ms=500,
            most={"barrier": 5000, "allreduce": 8000}),
    ]


def owns():
    return [
        *[own(f"icoll-own-{ranks}", "non-blocking and persistent collectives "
              f"by blocking ones, {ranks} ranks", "collective",
              ["own", *OWN_SIZES], ranks=ranks, limit_s=150,
              point_ms=30, target=1.1) for ranks in (2, 4)],
        *[Group(f"icoll-overlap-{ranks}", "time beyond the computing between "
                f"start and wait of non-blocking collectives, {ranks} ranks",
                "collective", ["overlap", *OVERLAP_SIZES], ranks=ranks,
                limit_s=150, rounds=5, budget_s=150, point_ms=10, quick=False)
          for ranks in (2, 4)],
        own("agent-alive", "ping-pong with a progress thread by one without",
            "agent", ["alive", *AGENT_SIZES], point_ms=4, target=1.02),
        own("agent-owed", "the same, with large messages under way", "agent",
            ["owed", *AGENT_SIZES], point_ms=4),
        own("threads-lock", "what the lock of MPI_THREAD_MULTIPLE adds to a "
            "call", "lock", [], ranks=1, point_ms=4),
    ]


def onesided():
    """MPI_Put and its relatives, each with a flush."""
    def group(name, title, modes, sizes, **more):
        return Group(f"rma-{name}", f"one-sided: {title}", "onesided",
                     ["+".join(modes), *sizes], quick=False,
                     **{"rounds": 7, "budget_s": 90, **more})

    tcp = {"transport": "tcp"}
    return [
        group("shm", "put, get and flush, shared memory", ["put", "get"],
              POWERS, target=1.05),
        group("shm-stream", "64 puts and one flush, shared memory",
              ["stream"], POWERS[12:], target=1.0, point_ms=40),
        group("shm-atomics", "atomics and flush, shared memory",
              ["fetch", "swap"], ["8"], target=1.05),
        group("shm-lock", "a free lock, shared memory", ["lock"], ["0"],
              target=0.5),
        group("shm-contend", "a lock that 16 ranks want, shared memory",
              ["contend"], ["8"], ranks=16, target=0.5, rounds=3),
        group("shm-fence", "fence with 16 ranks, shared memory", ["fence"],
              ["0"], ranks=16, target=0.5, rounds=5),
        group("shm-away", "put to a rank that computes, shared memory",
              ["away"], ["8", "64k"], rounds=3),
        group("tcp", "put, get and flush, TCP", ["put", "get"], POWERS,
              target=0.9, rounds=5, **tcp),
        group("tcp-rate", "64 puts and one flush, TCP", ["rate"],
              POWERS[:13], target=1 / 3, **tcp),
        group("tcp-accumulate", "accumulate and flush, TCP", ["accumulate"],
              POWERS[3:21], target=1.0, **tcp),
        group("tcp-atomics", "atomics and flush, TCP", ["fetch", "swap"],
              ["8"], target=0.9, **tcp),
        group("tcp-lock", "a free lock; lock, put, unlock; TCP",
              ["lock", "locked"], ["8"], target=0.9, **tcp),
        group("tcp-fence", "fence with 16 ranks, TCP", ["fence"], ["0"],
              ranks=16, target=0.5, rounds=3, **tcp),
        group("tcp-away", "put to a rank that computes, TCP", ["away"],
              ["8", "64k"], rounds=3, **tcp),
        group("scivia-away", "put to a rank that computes, SCI adapters",
              ["away"], ["8", "64k"], rounds=3, **ADAPTERS),
    ]


def files():
    """Access to files, on tmpfs and where the bench works."""
    def group(name, title, modes, folder, sizes, **more):
        return Group(f"files-{name}", f"files: {title}", "files",
                     ["+".join(modes), folder, *sizes], quick=False,
                     **{"rounds": 3, "budget_s": 120, "limit_s": 120, **more})

    arrays = ["2d", "3d", "4d", "2d-last", "3d-last", "4d-last", "thin"]
    sizes = FILE_SIZES
    return [
        group("contiguous", "contiguous, each rank for itself, tmpfs, 2 ranks",
              ["contiguous"], "/dev/shm", sizes, target=1 / 0.95),
        group("strided", "blocks, each rank for itself, tmpfs, 2 ranks",
              ["strided"], "/dev/shm", sizes, target=1 / 0.95,
              mean_target=1 / 1.5),
        group("all", "arrays in blocks, tmpfs, 2 ranks", arrays, "/dev/shm",
              [*sizes, "64M"], target=1 / 0.95, mean_target=1 / 1.5),
        group("all-4", "arrays in blocks, tmpfs, 4 ranks", arrays, "/dev/shm",
              sizes, ranks=4, target=1 / 0.95, mean_target=1 / 1.5),
        group("all-16", "arrays in blocks, tmpfs, 16 ranks", arrays,
              "/dev/shm", sizes, ranks=16, target=1 / 0.95,
              mean_target=1 / 1.5),
        group("all-tcp", "arrays in blocks, tmpfs, 4 ranks on two nodes",
              arrays, "/dev/shm", sizes, ranks=4, transport="tcp",
              target=1 / 0.95, mean_target=1 / 1.5),
        group("disk", "arrays in blocks, disk, 4 ranks", arrays, ".", sizes,
              ranks=4, target=1 / 0.95, mean_target=1 / 1.5),
        group("hand", "arrays in blocks by hand, tmpfs, 4 ranks", ["hand"],
              "/dev/shm", sizes, ranks=4),
        # Copying takes a processor, so one must be free.
        group("overlap", "iwrite_all beside computing, tmpfs, 1 rank",
              ["overlap"], "/dev/shm", sizes[1:], ranks=1),
        group("close", "sync and close, disk, 2 ranks", ["close"], ".",
              sizes[1:]),
    ]


def pairwise(name, where, **more):
    """Latency, bandwidth and rate of two ranks, at every power of two."""
    def stream(mode, window, sizes, few):
        return {"args": [mode, window, *sizes],
                "quick_args": [mode, window, *few]}

    more = {"mean_target": 1.0, **more}
    return [
        Group(f"{name}-latency", f"latency, {where}", "latency",
              ["0", *POWERS], quick_args=LATENCY_SIZES, budget_s=90, **more),
        Group(f"{name}-bandwidth", f"bandwidth, {where}", "bandwidth",
              **stream("one", "16", POWERS, BANDWIDTH_SIZES), budget_s=90,
              **more),
        Group(f"{name}-rate", f"message rate, {where}", "bandwidth",
              **stream("rate", "64", POWERS[:13], RATE_SIZES), **more),
        Group(f"{name}-both", f"both ways at a time, {where}", "bandwidth",
              **stream("both", "16", POWERS, BANDWIDTH_SIZES), quick=False,
              rounds=7, budget_s=90, **{**more, "mean_target": 0.0}),
    ]


def groups():
    return [
        *pairwise("shm", "shared memory, 2 ranks", target=1.05),
        Group("shm-tail", "99th percentile of latency, shared memory, 2 ranks",
              "latency", ["p99", "0", *POWERS], rounds=7, quick=False,
              budget_s=90, target=1.0),
        *pairwise("tcp", "TCP, two nodes", target=1.15, transport="tcp"),
        *[crowd(ranks, forms) for forms in ("all", "iall")
          for ranks in (4, 8, 16, 32)],
        Group("launch-2", "launch of hello, 2 ranks", "hello", [],
              target=1.0, launch=True),
        Group("launch-16", "launch of hello, 16 ranks", "hello", [], ranks=16,
              target=0.7, launch=True, budget_s=60, quick_rounds=3),
        Group("launch-128", "launch of hello, 128 ranks", "hello", [],
              ranks=128, target=0.7, launch=True, rounds=5, quick=False,
              budget_s=120, limit_s=90),
        Group("memory", "memory per rank (PSS), 16 ranks", "memory", [],
              ranks=16, target=0.7, rounds=5, quick_rounds=1, budget_s=40),
        Group("matching", "cost of a match against posted receives",
              "matching", MATCHING_COUNTS, rounds=5, quick_rounds=3,
              budget_s=60),
        Group("idle", "CPU of 16 ranks blocked in MPI_Recv", "idle", ["10"],
              ranks=16, rounds=1, quick_rounds=1, budget_s=60, peers=False),
        Group("scivia", "latency, SCI adapters, two nodes (against our shm)",
              "latency", SCIVIA_SIZES, **ADAPTERS,
              target=1.5),
        Group("scivia-bandwidth",
              "bandwidth, SCI adapters, two nodes (against our shm)",
              "bandwidth", ["one", "16", *SCIVIA_BANDWIDTH_SIZES],
              **ADAPTERS, target=1 / 0.9),
        Group("scivia-rate",
              "message rate, SCI adapters, two nodes (against our shm)",
              "bandwidth", ["rate", "64", "8"], **ADAPTERS, rounds=5,
              quick=False),
        Group("scivia-curve",
              "latency by size, SCI adapters (against our shm)", "latency",
              CURVE_SIZES, **ADAPTERS, rounds=3,
              quick=False),
        Group("shm-pairs", "two pairs, shared memory, 4 ranks", "bandwidth",
              ["rate", "64", "8"], ranks=4, rounds=5, quick=False),
        Group("threads-latency",
              "latency, MPI_THREAD_MULTIPLE, shared memory", "threads",
              ["latency", "1", *POWERS[:13]], rounds=5, quick=False,
              target=1.05),
        # Peers' threads may need seconds for a window on two cores.
        Group("threads-rate",
              "message rate, 2 threads in each process, shared memory",
              "threads", ["rate", "2", "8", "1k"], rounds=3, quick=False,
              target=1.0, limit_s=60, budget_s=240),
        Group("coll-2", "collectives, shared memory, 2 ranks", "collective",
              ["all", *COLLECTIVE_SIZES], rounds=7, quick=False,
              budget_s=150, target=1.05),
        Group("icoll-2", "non-blocking collectives, shared memory, 2 ranks",
              "collective", ["iall", *COLLECTIVE_SIZES], rounds=7,
              quick=False, budget_s=150, target=1.05),
        Group("datatypes", "derived datatypes, shared memory, 2 ranks",
              "datatype", ["64k", "512k", "4M"], rounds=11, quick=False,
              budget_s=120, target=1.0),
        Group("coll-2-tcp", "collectives, TCP, two nodes", "collective",
              ["all", *COLLECTIVE_SIZES], transport="tcp", rounds=5,
              quick=False, budget_s=120, target=1.15, mean_target=1.0),
        # The peers cannot be told that four ranks each share a node: all of
        # theirs meet over TCP.
        Group("coll-8-tcp", "collectives, TCP, 8 ranks on two nodes",
              "collective", ["all", *COLLECTIVE_SIZES], ranks=8,
              transport="tcp", rounds=3, quick=False, budget_s=120,
              target=1.0),
        *owns(),
        *crowds(),
        *onesided(),
        *files(),
        *choices(),
    ]


@dataclasses.dataclass
class Contender:
    name: str
    mpicc: list
    mpiexec: list
    env: dict
    tcp_words: list
    tcp_env: dict
    crowded_words: list  # for more ranks than cores
    network: Network = None
    tables: str = ""  # of the network
    lacks: frozenset = frozenset()  # programs that do not build with it

    def command(self, group, program):
        words = list(self.mpiexec)
        if group.ranks > (os.cpu_count() or 1):
            words += self.crowded_words
        if self.network:
            words += ["--virtual", self.network.nodes] \
                if self.network.nodes else []
            words += ["--network", str(self.tables)] if self.tables else []
        elif group.transport == "tcp":
            words += self.tcp_words
        return [*words, "-n", str(group.ranks), str(program), *group.args]

    def environment(self, group):
        env = {**os.environ, **self.env,
               "BENCH_POINT_MS": f"{group.point_ms:g}"}
        if self.network and self.network.card:
            env["CHEMPI_SCIVIA_PERSONALITY"] = str(
                HERE.parent / "etc" / "personalities" /
                f"{self.network.card}.yaml")
        elif not self.network and group.transport == "tcp":
            env.update(self.tcp_env)
        return env


def ours(mpicc, mpiexec, name="chempi"):
    return Contender(name, [str(mpicc)], [str(mpiexec)], {},
                     ["--virtual", "2"], {}, [])


def peers():
    """The other MPIs; (those found, names of those not found)."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    # MPICH: no shared memory of its own, and UCX below it told to use
    # sockets only; otherwise "no local" still ends in shared memory. Open
    # MPI: windows have modules of their own, some of which share memory.
    known = [
        Contender("mpich", ["mpicc.mpich"], ["mpiexec.mpich"], {}, [],
                  {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self",
                   "UCX_NET_DEVICES": "lo"}, []),
        Contender("openmpi", ["mpicc.openmpi"], ["mpiexec.openmpi", *root],
                  {"OMPI_MCA_btl_base_warn_component_unused": "0"},
                  ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                   "--mca", "btl_tcp_if_include", "lo",
                   "--mca", "osc", "pt2pt"], {},
                  ["--oversubscribe"]),
    ]
    found = [peer for peer in known if shutil.which(peer.mpicc[0]) and
             shutil.which(peer.mpiexec[0])]
    return found, [peer.name for peer in known if peer not in found]
