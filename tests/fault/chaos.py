#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of several users on eight nodes, while everything is killed, stopped and
parted at random.

    chaos.py CHEMPIRUN CHEMPID CHEMPICTL RANK [--launches N] [--seed S]
             [--seconds T] [--jobs J] [--detect S] [--sanitized] [--verbose]

It goes in rounds. In a round jobs start and end while things happen; then all
is mended, and what must hold is checked:

  * a job that nothing has happened to ends well, with all of its output
  * any other one ends within HANG_DETECTIONS detection times after what has
    happened to it
  * a job that does not end well says why in one sentence, which names nobody
    that nothing has happened to
  * nobody but its owner can end a job
  * nothing is left: no supervisor, rank, socket of a core, file, cgroup; the
    daemons have no more descriptors than connections among each other
  * afterwards a job over all nodes ends well

Daemons are given up after --detect seconds. With --sanitized, programs of a
build with sanitizers are expected, and a report of a daemon's is a failure. Where other work keeps processors from one
of them, or from the relays between them, for half of that, it has happened to
that one, or to all; how often is told, and is to be rare. As root, jobs are those of several users. What
happens is a function of the seed, but when it happens is not: a run cannot be
repeated exactly.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402
from jobs import LIMIT_S, check, children, comm  # noqa: E402
from partition import Network  # noqa: E402

NODES = 8
DETECT_S = 2.0
HANG_DETECTIONS = 20  # detection times, on a machine that is busy
HANG_MIN_S = 20.0     # but for what has nothing to do with them
GRACE_S = 7.0   # for what has happened, to be over everywhere
LONG_S = 5.0    # of a stop or a parting that is noticed
SHORT_S = 0.3   # of one that is not
ROUND = 40      # launches
LOOK_S = 0.1    # between looks at who lacks processors
TOLD = 200      # of what has been said, when a run fails
USERS = ("daemon", "bin", "sys", "nobody")


def accounts():
    """Whose jobs there are; None: our own."""
    if os.geteuid() != 0:
        return [None]
    import pwd
    found = []
    for name in USERS:
        try:
            found.append(pwd.getpwnam(name))
        except KeyError:
            pass
    return found or [None]


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Happening:
    """What has been done to nodes, to a pair of them, or to a job."""

    def __init__(self, what, nodes=(), pair=False, job=None):
        self.what = what
        self.nodes = frozenset(nodes)
        self.is_pair = pair  # only who has part in two of them is concerned
        self.job = job
        self.start = time.monotonic()
        self.end = None  # it lasts

    def concerns(self, job):
        until = job.ended or time.monotonic()
        if self.start > until or (self.end is not None and
                                  self.end + GRACE_S < job.start):
            return False
        if self.job is not None:
            return self.job is job
        common = len(self.nodes & job.nodes)
        return common > 1 if self.is_pair else common > 0

    def __str__(self):
        where = "".join(f" n{i}" for i in sorted(self.nodes))
        return (f"{self.what}{where}" +
                (f" of {self.job.name()}" if self.job else ""))


class Job:
    """A launch under way."""

    number = 0

    def __init__(self, cluster, user, via, nodes, count, seconds):
        Job.number += 1
        self.serial = Job.number
        self.user = user
        self.via = via
        self.targets = sorted(nodes)
        self.nodes = frozenset(nodes) | {via}
        self.count = count
        self.mark = uuid.uuid4().hex
        self.ended = None
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        env = dict(os.environ, **cluster.job_env, **{jobrun.MARK: self.mark})
        env.pop("CHEMPI_DIR", None)
        who = ({} if user is None else
               {"user": user.pw_uid, "group": user.pw_gid,
                "extra_groups": []})
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            [cluster.chempirun, "--dir", cluster.dirs[via], "--nodes",
             ",".join(f"n{i}" for i in self.targets), "--map", "cyclic", "-n",
             str(count), "sh", "-c",
             f"sleep {seconds:.2f}; exec {cluster.rank} init everyone print ok "
             "final"],
            env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=self.out,
            stderr=self.err, **who)

    def name(self):
        return f"launch {self.serial}"

    def processes(self):
        """Of the ranks; their supervisors are the parents of some."""
        return [pid for pid, _ in jobrun.marked(self.mark)
                if pid != self.process.pid]

    def read(self):
        for file in (self.out, self.err):
            file.seek(0)
        return (self.out.read().decode("utf-8", "replace"),
                self.err.read().decode("utf-8", "replace"))


class Cluster:
    def __init__(self, options):
        self.base = tempfile.mkdtemp(prefix="chempi-chaos-")
        os.chmod(self.base, 0o755)
        self.chempid = options.chempid
        self.detect_s = options.detect
        self.mark = uuid.uuid4().hex
        self.env = dict(os.environ, **{jobrun.MARK: self.mark})
        self.env.pop("CHEMPI_DIR", None)
        self.reports = f"{self.base}/reports"
        # Whom a launcher that goes on continues, too, may be looked at for
        # leaks, at its end; who looks would wait for ever then.
        self.job_env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") +
                        ":detect_leaks=0"}
        if options.sanitized:
            os.mkdir(self.reports)
            os.chmod(self.reports, 0o1777)  # daemons are different users
            # Who has given up root cannot be looked at for leaks.
            self.env["ASAN_OPTIONS"] = \
                f"log_path={self.reports}/asan:detect_leaks=0"
            self.env["UBSAN_OPTIONS"] = \
                f"log_path={self.reports}/ubsan:print_stacktrace=1"
            # Nor who is killed while it is.
            self.job_env = {"ASAN_OPTIONS": "detect_leaks=0"}
        # Other users must reach them.
        self.chempirun = self.copy(options.chempirun)
        self.rank = self.copy(options.rank)
        self.user_ctl = self.copy(options.chempictl)
        self.key = f"{self.base}/key"
        subprocess.run([options.chempictl, "key", self.key], check=True)
        self.network = Network(NODES)
        self.dirs = []
        self.pids = {}
        self.all_pids = set()  # also of those that were killed
        for i in range(NODES):
            self.dirs.append(f"{self.base}/n{i}")
            os.mkdir(self.dirs[i], 0o755)
            with open(f"{self.base}/cluster{i}", "w",
                      encoding="ascii") as file:
                for k in range(NODES):
                    file.write(f"n{k} {self.network.address(i, k)} 4\n")
            self.start(i)

    def check_reports(self):
        for name in sorted(os.listdir(self.reports)) \
                if os.path.isdir(self.reports) else []:
            with open(f"{self.reports}/{name}", encoding="utf-8",
                      errors="replace") as file:
                raise AssertionError(name + ": " + file.read()[:8000])

    def copy(self, program):
        path = f"{self.base}/{os.path.basename(program)}"
        shutil.copy(program, path)
        os.chmod(path, 0o755)
        return path

    def start(self, node):
        with open(f"{self.base}/log{node}", "ab") as log:
            subprocess.run(
                [self.chempid, "--name", f"n{node}", "--dir",
                 self.dirs[node], "--key", self.key, "--cluster",
                 f"{self.base}/cluster{node}", "--detect", str(self.detect_s),
                 "--background"],
                env=self.env, stdin=subprocess.DEVNULL, stderr=log,
                check=True, timeout=LIMIT_S)
        self.pids[node] = self.find(node)
        self.all_pids.add(str(self.pids[node]))

    def find(self, node):
        said = self.ctl(node, "status")
        return int(re.search(rf"^n{node} .*", said, re.M)[0].split()[4])

    def ctl(self, node, *args, user=None):
        who = ({} if user is None else
               {"user": user.pw_uid, "group": user.pw_gid,
                "extra_groups": []})
        done = subprocess.run(
            [self.user_ctl, "--dir", self.dirs[node], *args], env=self.env,
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=LIMIT_S, **who)
        return done.stdout + done.stderr

    def logs(self):
        text = ""
        for node in range(NODES):
            with open(f"{self.base}/log{node}", encoding="utf-8",
                      errors="replace") as file:
                text += file.read()
        return text

    def supervisors(self):
        return [pid for pid, _ in jobrun.marked(self.mark)
                if comm(pid).startswith("chempi-super")]

    def groups(self):
        """Control groups of jobs, and of daemons that are gone; not those of
        another cluster's daemon that has the number of one that is gone."""
        found = []
        alive = {str(pid) for pid in self.pids.values()}
        for path, dirs, _ in os.walk("/sys/fs/cgroup"):
            for name in [d for d in dirs if d.startswith("chempi.n")]:
                pid = name.rsplit(".", 1)[1]
                own = os.path.join(path, name)
                if pid in alive:
                    found += [e.path for e in os.scandir(own) if e.is_dir()]
                elif (pid in self.all_pids and
                      not comm(pid).startswith("chempid")):
                    found.append(own)
            dirs[:] = [d for d in dirs if not d.startswith("chempi.")]
        return found

    def waited(self, node):
        """Seconds that a daemon could have run and has not; None: it is gone,
        or the kernel does not tell."""
        try:
            with open(f"/proc/{self.pids[node]}/schedstat",
                      encoding="ascii") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return None

    def descriptors(self, node):
        return len(os.listdir(f"/proc/{self.pids[node]}/fd"))

    def stop(self):
        for node in range(NODES):
            self.ctl(node, "stop")
        left = jobrun.end_marked(self.mark, LIMIT_S)
        files = [os.path.join(d, f) for d in self.dirs for f in os.listdir(d)]
        check(not left and not files, "left:", left, files, self.logs())

    def close(self):
        self.network.close()
        jobrun.end_marked(self.mark, 0)
        shutil.rmtree(self.base)


class Chaos:
    def __init__(self, cluster, options):
        self.cluster = cluster
        self.random = random.Random(options.seed)
        self.options = options
        self.users = accounts()
        self.hang_s = max(HANG_MIN_S, HANG_DETECTIONS * options.detect)
        self.jobs = []
        self.happenings = []
        self.due = []  # what is to be undone: (when, function)
        self.launched = self.well = self.untouched = 0
        self.longest = 0.0
        self.reaction = 0.0  # from the last event until a job's end, at most
        self.late = 0.0  # of a step of ours, at most
        self.starved = 0  # lacks of processors that count
        self.waited = {}
        self.next_look = 0.0
        self.endings = {}
        self.down = set()
        self.standing = set()  # launchers, supervisors, ranks
        self.base_descriptors = [cluster.descriptors(i)
                                 for i in range(NODES)]

    def say(self, *words):
        if self.options.verbose:
            print(f"{time.monotonic():.2f}", *words, flush=True)

    # ---- what happens --------------------------------------------------------

    def happen(self, *args, **kwargs):
        h = Happening(*args, **kwargs)
        self.happenings.append(h)
        self.say("!", h)
        return h

    def later(self, seconds, fn):
        self.due.append((time.monotonic() + seconds, fn))

    def over(self, h, fn=None):
        def undo():
            if fn:
                fn()
            h.end = time.monotonic()
            self.say("over:", h)
        return undo

    def span(self):
        return self.random.choice((SHORT_S, LONG_S)) * self.random.uniform(
            0.5, 1.2)

    def kill_daemon(self):
        node = self.random.randrange(NODES)
        if node in self.down:
            return
        self.down.add(node)
        h = self.happen("killed daemon", [node])
        pid = self.cluster.pids[node]
        send(pid, signal.SIGKILL)

        def again():  # as long as it dies it has the name
            jobrun.wait_gone([pid], LIMIT_S)
            self.cluster.start(node)
            self.down.discard(node)
        self.later(self.random.uniform(0, 2), self.over(h, again))

    def stop_daemon(self):
        node = self.random.randrange(NODES)
        if node in self.down:
            return
        self.down.add(node)
        h = self.happen("stopped daemon", [node])
        pid = self.cluster.pids[node]
        send(pid, signal.SIGSTOP)

        def again():
            send(pid, signal.SIGCONT)
            self.down.discard(node)
        self.later(self.span(), self.over(h, again))

    def kill_keeper(self):
        """Which concerns nobody."""
        node = self.random.randrange(NODES)
        if node in self.down:
            return
        for pid in children(self.cluster.pids[node]):
            if comm(pid).startswith("chempi-keeper"):
                send(pid, signal.SIGKILL)

    def part(self):
        victim = self.random.randrange(NODES)
        others = [i for i in range(NODES) if i != victim]
        if self.random.random() < 0.5:
            others = [self.random.choice(others)]
        pairs = [(min(victim, i), max(victim, i)) for i in others]
        if self.random.random() < 0.3:
            self.cluster.network.cut(pairs)
            for i in others:
                h = self.happen("cut the link", [victim, i], pair=True)
                h.end = time.monotonic()
            return
        hs = [self.happen("parted", [victim, i], pair=True) for i in others]
        self.cluster.network.part(pairs)

        def meet():
            self.cluster.network.meet(pairs)
            for h in hs:
                self.over(h)()
        self.later(self.span(), meet)

    def any_job(self):
        return self.random.choice(self.jobs) if self.jobs else None

    def process_of(self, job, what):
        """A rank, or the supervisor of one."""
        pids = job.processes()
        self.random.shuffle(pids)
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            is_rank = comm(parent).startswith("chempi-super")
            if is_rank:
                return pid if what == "rank" else parent
        return None

    def hit_job(self, what, how):
        job = self.any_job()
        if not job:
            return
        pid = (job.process.pid if what == "launcher"
               else self.process_of(job, what))
        if not pid:
            return
        if how == signal.SIGSTOP:
            if pid in self.standing:  # it would be continued at its end
                return
            h = self.happen(f"stopped {what}", job=job)
            send(pid, signal.SIGSTOP)
            self.standing.add(pid)

            def again():
                send(pid, signal.SIGCONT)
                self.standing.discard(pid)
            self.later(self.span(), self.over(h, again))
        else:
            h = self.happen(f"sent {how.name} to {what}", job=job)
            send(pid, how)
            h.end = time.monotonic()

    def look_for_lacks(self):
        """Of processors. Those who lack them are not silent by themselves."""
        if time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + LOOK_S
        lacking = [("the network lacked processors", range(NODES))] * (
            self.cluster.network.late() > self.cluster.detect_s / 2)
        for node in range(NODES):
            key = (node, self.cluster.pids[node])
            waited = self.cluster.waited(node)
            if waited is None:
                continue
            if waited - self.waited.get(key, waited) > self.cluster.detect_s / 2:
                lacking.append(("a daemon lacked processors", [node]))
            self.waited[key] = waited
        for what, nodes in lacking:
            self.starved += 1
            self.happen(what, nodes).end = time.monotonic()

    def order_end(self):
        """By its owner, or by somebody else."""
        job = self.any_job()
        if not job:
            return
        user = self.random.choice(self.users)
        via = self.random.choice(sorted(job.nodes))
        if via in self.down:
            return
        said = self.cluster.ctl(via, "jobs", user=user)
        names = [line.split()[0] for line in said.splitlines()[1:]
                 if len(line.split()) > 4 and
                 re.fullmatch(r"[0-9a-f]{16}", line.split()[0]) and
                 (job.user is None or line.split()[1] == job.user.pw_name)]
        if not names:
            return
        name = self.random.choice(names)
        if user is job.user:
            # Which of the user's jobs that is, is not seen from here.
            for one in self.jobs:
                if one.user is user:
                    self.happen("ended by order", job=one).end = \
                        time.monotonic()
        self.cluster.ctl(via, "kill", name, user=user)

    def something(self):
        weights = [
            (3, self.kill_daemon), (3, self.stop_daemon),
            (1, self.kill_keeper), (4, self.part),
            (1, self.order_end),
            (2, lambda: self.hit_job("rank", signal.SIGKILL)),
            (1, lambda: self.hit_job("rank", signal.SIGSTOP)),
            (2, lambda: self.hit_job("supervisor", signal.SIGKILL)),
            (2, lambda: self.hit_job("supervisor", signal.SIGSTOP)),
            (2, lambda: self.hit_job("launcher", signal.SIGKILL)),
            (1, lambda: self.hit_job("launcher", signal.SIGSTOP)),
            (1, lambda: self.hit_job("launcher", signal.SIGINT))]
        self.random.choices([fn for _, fn in weights],
                            [w for w, _ in weights])[0]()

    # ---- jobs ----------------------------------------------------------------

    def launch(self):
        up = [i for i in range(NODES) if i not in self.down]
        via = self.random.choice(up or [0])
        nodes = self.random.sample(range(NODES), self.random.choice(
            (1, 1, 2, 2, 3, 5)))
        job = Job(self.cluster, self.random.choice(self.users), via, nodes,
                  self.random.randint(len(nodes), 2 * len(nodes)),
                  self.random.uniform(0, 1.0))
        self.launched += 1
        self.jobs.append(job)
        self.say(job.name(), job.targets, "via", via)

    def judge(self, job):
        out, err = job.read()
        status = job.process.returncode
        seconds = job.ended - job.start
        self.longest = max(self.longest, seconds)
        why = [h for h in self.happenings if h.concerns(job)]
        events = [t for h in why for t in (h.start, h.end)
                  if t and t <= job.ended]
        self.reaction = max(self.reaction,
                            job.ended - max([job.start, *events]))
        told = (f"{job.name()} (status {status}, {seconds:.1f} s, nodes "
                f"{job.targets} via n{job.via}; "
                f"{', '.join(map(str, why)) or 'nothing'}): {err!r}")
        self.say(told)
        if status == 0:
            self.well += 1
            check(out == "ok\n" * job.count and not err, "output", out, told)
        check(why or status == 0, "a bystander has ended:", told)
        self.untouched += not why
        # An interrupt may come before there is a job.
        if status in (0, -signal.SIGKILL, -signal.SIGINT):
            return
        # Whoever insists is told who is not waited for any more, too.
        insists = sum(h.what.startswith("sent SIGINT") for h in why) > 1
        check(re.fullmatch(r"(chempirun: [^\n]*\n)+" if insists else
                           r"chempirun: [^\n]*\n", err), "not one sentence",
              told)
        self.check_names(err, why, told)
        kind = re.sub(r"\b[0-9a-f.:]+\b|n\d+", "#", err)[:90]
        self.endings[kind] = self.endings.get(kind, 0) + 1

    @staticmethod
    def check_names(err, why, told):
        """Something must have happened to one of the nodes that are blamed,
        or to the job itself."""
        named = {int(n) for n in re.findall(r"\bnode n(\d)\b", err)}
        hit = set().union(*(h.nodes for h in why))
        if named and not any(h.job for h in why):
            check(named & hit, "a sentence that is not true:", told)

    def reap(self):
        now = time.monotonic()
        for job in list(self.jobs):
            if job.process.poll() is not None:
                job.ended = now
                self.jobs.remove(job)
                self.judge(job)
                job.out.close()
                job.err.close()
                continue
            last = max([job.start] + [h.end or now for h in self.happenings
                                      if h.concerns(job)])
            if now - last > self.hang_s:
                self.show_hanging(job)
                raise AssertionError(f"{job.name()} hangs", job.targets,
                                     job.via)

    def show_hanging(self, job):
        print(job.read(), [str(h) for h in self.happenings
                           if h.concerns(job)], file=sys.stderr)
        for pid, words in jobrun.marked(job.mark) + jobrun.marked(
                self.cluster.mark):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    print(pid, file.read().rsplit(")", 1)[1].split()[:2],
                          words, file=sys.stderr)
            except OSError:
                pass  # it has ended meanwhile

    def tell(self):
        """All that daemons have said lately, in the order of time, and what
        has happened to whom."""
        lines = self.cluster.logs().splitlines()[-TOLD * NODES:]
        print("\n".join(sorted(lines)[-TOLD:]), file=sys.stderr)
        print(f"at {time.strftime('%T')}, {time.monotonic():.2f}; "
              f"{self.late:.2f} s late at most; {len(self.jobs)} jobs",
              *(f"{h.start:.2f}-{h.end or 0:.2f} {h}"
                for h in self.happenings[-TOLD:]),
              sep="\n", file=sys.stderr)

    def undo_due(self):
        now = time.monotonic()
        for one in [d for d in self.due if d[0] <= now]:
            self.due.remove(one)
            one[1]()

    # ---- rounds --------------------------------------------------------------

    def round(self, launches):
        begun = 0
        next_event = time.monotonic() + self.random.uniform(0.1, 1.0)
        while begun < launches or self.jobs or self.due:
            began = time.monotonic()
            self.undo_due()
            self.look_for_lacks()
            self.reap()
            if begun < launches and len(self.jobs) < self.options.jobs:
                self.launch()
                begun += 1
            if begun < launches and time.monotonic() >= next_event:
                self.something()
                next_event = time.monotonic() + self.random.expovariate(1 / 0.4)
            time.sleep(0.01)
            self.late = max(self.late, time.monotonic() - began - 0.01)
        self.check_round()

    def all_is_well(self):
        said = self.cluster.ctl(0, "nodes")
        return len(re.findall(r"^n\d +\d", said, re.M)) == NODES

    def await_that(self, is_so, what):
        end = time.monotonic() + self.hang_s
        while not is_so():
            if time.monotonic() >= end:
                raise AssertionError("in vain awaited: " + what() +
                                     self.cluster.logs()[-4000:])
            time.sleep(0.05)

    def check_round(self):
        self.cluster.check_reports()
        self.happenings = [h for h in self.happenings if h.end is None]
        check(not self.happenings, self.happenings)
        self.await_that(lambda: not self.cluster.supervisors(),
                        lambda: f"supervisors {self.cluster.supervisors()}")
        self.await_that(self.all_is_well, lambda: self.cluster.ctl(0, "nodes"))
        for via in (0, NODES - 1):
            job = Job(self.cluster, self.users[0], via, range(NODES),
                      2 * NODES, 0)
            job.process.wait(timeout=LIMIT_S)
            out, err = job.read()
            check(job.process.returncode == 0 and not err and
                  out == "ok\n" * job.count, "after all:", out, err,
                  self.cluster.logs()[-4000:])
        # Their supervisors and sockets are gone soon after.
        self.await_that(self.is_clean, self.what_is_left)

    def what_is_left(self):
        with open("/proc/net/unix", encoding="ascii",
                  errors="replace") as file:
            cores = re.findall("@chempi-core-.*", file.read())
        return (f"supervisors {self.cluster.supervisors()}, {cores}, "
                f"{self.cluster.groups()}, "
                f"{[self.cluster.ctl(i, 'jobs') for i in range(NODES)]}, "
                f"{[self.cluster.descriptors(i) for i in range(NODES)]} of "
                f"{self.base_descriptors}")

    def is_clean(self):
        """Each pair of daemons may have two connections."""
        return (not self.cluster.supervisors() and
                not self.cluster.groups() and
                all(self.cluster.descriptors(i) <= self.base_descriptors[i] +
                    2 * (NODES - 1) for i in range(NODES)) and
                all(self.cluster.ctl(i, "jobs").count("\n") == 1
                    for i in range(NODES)))

    def run(self):
        end = time.monotonic() + self.options.seconds
        while (self.launched < self.options.launches and
               time.monotonic() < end):
            self.round(min(ROUND, self.options.launches - self.launched))
            print(f"{self.launched} launches: {self.untouched} untouched, "
                  f"{self.well} ended well, the longest took "
                  f"{self.longest:.1f} s", flush=True)
        print(f"{self.reaction:.1f} s at most from what has happened last to "
              f"a job, or its start, to its end; "
              f"{self.starved} times processors were lacking; "
              f"{self.late:.1f} s late at most")
        for kind, count in sorted(self.endings.items()):
            print(f"{count:6} {kind.strip()}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("chempirun", "chempid", "chempictl", "rank"):
        parser.add_argument(name)
    parser.add_argument("--launches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--detect", type=float, default=DETECT_S)
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    cluster = Cluster(options)
    try:
        chaos = Chaos(cluster, options)
        try:
            chaos.run()
        except BaseException:
            chaos.tell()
            raise
        finally:
            for job in chaos.jobs:
                send(job.process.pid, signal.SIGKILL)
                jobrun.end_marked(job.mark, 0)
        cluster.stop()
        cluster.check_reports()
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
