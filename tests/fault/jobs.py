# SPDX-License-Identifier: BSD-3-Clause
"""Jobs and clusters of daemons, for the tests that let things fail."""
import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import jobrun  # noqa: E402

LIMIT_S = 180  # for anything: reached only when something hangs
COMPLAINT_S = 60  # as in chempid/tree/limits.h


class Programs:
    """Paths, set by the test."""
    chempirun = chempid = chempictl = rank = ""
    prefix = []  # options of every launch


@functools.lru_cache
def control_version():
    """Of the control protocol, as the header says."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "common",
                        "control", "msg.h")
    with open(path, encoding="utf-8") as header:
        return int(re.search(r"CONTROL_VERSION (\d+)u", header.read())[1])


MARKS = []  # of jobs that may have left something behind


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def await_that(is_so, *what):
    """Ask until it is so, where nobody tells."""
    end = time.monotonic() + LIMIT_S
    while not is_so():
        check(time.monotonic() < end, "in vain awaited:", *what)


def root_only(fn):
    """A case with several users, or with a look at others' memory."""
    fn.is_roots = True
    return fn


SKIPPED = 77  # the exit status of a test that could not be made


def run_cases(cases, wanted=()):
    """Run the functions, or those whose names are wanted, or --root: those for
    root, --users: all others; with --but in front, those that are not named; the
    exit status. What needs root is skipped without, and a test in which all is
    skipped counts as skipped."""
    failed = skipped = done = 0
    unknown = set(wanted) - {fn.__name__ for fn in cases} - \
        {"--root", "--users", "--but"}
    if unknown:
        sys.exit(f"no such case: {' '.join(sorted(unknown))}")
    if "--but" in wanted:
        wanted = {fn.__name__ for fn in cases} - set(wanted)
    for fn in cases:
        is_roots = getattr(fn, "is_roots", False)
        if wanted and fn.__name__ not in wanted and \
                ("--root" if is_roots else "--users") not in wanted:
            continue
        name = fn.__name__.replace("_", " ")
        if is_roots and os.geteuid() != 0:
            skipped += 1
            print(f"skipped {name}: needs root", flush=True)
            continue
        done += 1
        try:
            fn()
            print(f"ok      {name}", flush=True)
        except Exception:  # the next case may still tell something
            failed += 1
            traceback.print_exc()
            print(f"FAILED  {name}", flush=True)
        while MARKS:
            jobrun.end_marked(MARKS.pop(), 0)
    return 1 if failed else SKIPPED if skipped and not done else 0


def main(cases, *prefix):
    """Of a test that is called with four paths and perhaps names of cases;
    `prefix` are options of every launch."""
    (Programs.chempirun, Programs.chempid, Programs.chempictl, Programs.rank,
     *wanted) = sys.argv[1:]
    os.environ.pop("CHEMPI_DIR", None)
    Programs.prefix.extend(prefix)
    return run_cases(cases, wanted)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(word) for word in file.read().split()]


def kill_and_wait(pid, others):
    """Kill a process; returns when the others have ended with it."""
    fds = [os.pidfd_open(p) for p in (pid, *others)]
    os.kill(pid, signal.SIGKILL)
    for fd in fds:
        ready, _, _ = select.select([fd], [], [], LIMIT_S)
        os.close(fd)
        check(ready, "still there:", pid, others)


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def executable(pid):
    """"" of one that has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def status_of(pid, *fields):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        text = file.read()
    return [re.search(rf"^{field}:[ \t]*(.*)$", text, re.M)[1].split()
            for field in fields]


def is_alive(pid):
    try:
        return status_of(pid, "State")[0][0] != "Z"
    except OSError:
        return False


def pending(pid):
    """Signals that wait for the process."""
    return any(int(words[0], 16)
               for words in status_of(pid, "SigPnd", "ShdPnd"))


def interrupt(pid):
    """Returns when the process has taken the signal, or ended."""
    os.kill(pid, signal.SIGINT)
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        await_that(lambda: not is_alive(pid) or not pending(pid), "the signal")


def ignore_children():
    """In a process before its program, which inherits that."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def child_named(pid, name):
    """The only one, which may have another name yet."""
    found = []

    def look():
        found[:] = [p for p in children(pid)
                    if comm(p).startswith(name) and is_alive(p)]
        return len(found) == 1
    await_that(look, name)
    return found[0]


def cores():
    """Of each core whose processors this process may use, the number of its
    first processor, which names it (chempid/supervisor/cores.h)."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/"
                      "thread_siblings_list", encoding="ascii") as file:
                found.add(int(re.match(r"\d+", file.read())[0]))
        except OSError:
            found.add(cpu)
    return found


def is_core_held():
    """By a job, or by a test."""
    with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
        return "@chempi-core-" in file.read()


@contextlib.contextmanager
def full_pipe():
    """The end that is written. Nobody reads the other one."""
    out, end = os.pipe()
    os.set_blocking(end, False)
    try:
        while os.write(end, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(end, True)
    try:
        yield end
    finally:
        os.close(out)
        os.close(end)


class Job:
    """A chempirun under way, whose every descendant carries a mark."""

    def __init__(self, *args, env=None, stdin=subprocess.DEVNULL, **kwargs):
        self.mark = uuid.uuid4().hex
        MARKS.append(self.mark)
        self.env = dict(os.environ if env is None else env)
        self.env[jobrun.MARK] = self.mark
        self.output = b""
        self.process = subprocess.Popen(
            [Programs.chempirun, *Programs.prefix, *args], env=self.env, stdin=stdin,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kwargs})

    def read_more(self):
        """Wait for a piece of standard output."""
        fd = self.process.stdout.fileno()
        ready, _, _ = select.select([fd], [], [], LIMIT_S)
        check(ready, "no output; so far:", self.output)
        piece = os.read(fd, 65536)
        if not piece:
            raise AssertionError("output ended", self.output,
                                 self.process.stderr.read())
        self.output += piece

    def await_lines(self, count):
        """Read standard output up to so many lines."""
        while self.output.count(b"\n") < count:
            self.read_more()
        return self

    def await_line(self, line):
        """Read standard output up to this line; the limit begins anew with
        every line before."""
        while line not in self.output.split(b"\n")[:-1]:
            self.read_more()
        return self

    def marked(self, word):
        """Processes of the job whose name in /proc contains the word."""
        found = []
        for pid, _ in jobrun.marked(self.mark):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    if word in file.read():
                        found.append(pid)
            except OSError:
                pass
        return sorted(found)

    def ranks(self):
        """Not what they left behind: that is in other process groups."""
        found = []
        for pid in self.marked("fault-rank"):
            with contextlib.suppress(ProcessLookupError):  # it has ended
                if os.getpgid(pid) == pid:
                    found.append(pid)
        return found

    def finish(self):
        """Wait for the end; nothing may be left. Returns the exit status."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        self.output += out or b""  # or it goes elsewhere
        self.errors = (err or b"").decode("utf-8", "replace")
        left = jobrun.end_marked(self.mark, LIMIT_S)
        check(not left, "left behind:", left, self.errors)
        return self.process.returncode

    def lines(self):
        return sorted(self.output.decode("utf-8", "replace").splitlines())


@contextlib.contextmanager
def started(command, env=None, **kwargs):
    """A process for the time of a block. It and whatever it has started end
    with the block, which else would wait for it for ever where a check fails."""
    mark = uuid.uuid4().hex
    env = dict(os.environ if env is None else env, **{jobrun.MARK: mark})
    with subprocess.Popen(command, env=env, **kwargs) as process:
        try:
            yield process
        finally:
            jobrun.end_marked(mark, 0)
            process.kill()  # also before it has the mark


def run(*args, **kwargs):
    job = Job(*args, **kwargs)
    job.status = job.finish()
    return job


def before_limit(ready, *args, launch=Job, **kwargs):
    """A job that has come as far as `ready(job)` waits for before its time
    limit passes, which is as long as this machine needs for that. Returns the
    limit, too."""
    limit_s = 1
    while True:
        began = time.monotonic()
        job = launch("--timeout", str(limit_s), *args, **kwargs)
        is_in_time = True
        try:
            ready(job)
        except AssertionError:
            is_in_time = False
            if time.monotonic() - began < limit_s:
                raise
        if is_in_time and time.monotonic() - began < limit_s:
            return job, limit_s
        job.finish()
        limit_s *= 4
        check(limit_s < LIMIT_S, "not as far within a limit:", job.output,
              job.errors)


def ask(*words, before=(), status=0):
    """What chempictl says of where ranks wait."""
    done = subprocess.run([Programs.chempictl, *before, "where", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=LIMIT_S)
    check(status is None or done.returncode == status, words, done.stdout)
    return done.stdout


def ask_until(is_told, *words, before=()):
    """The same when it says that: launchers have five seconds to answer, which a
    busy machine may need (CHEMPI_DOOR_S: chempid/tree/door.h)."""
    told = [""]

    def look():
        with contextlib.suppress(AssertionError):  # nobody has answered
            told[:] = [ask(*words, before=before)]
            return is_told(told[0])
        return False
    await_that(look, words, told)
    return told[0]


def of_launcher(told, pid):
    """Of what is told in JSON: what the launcher with this pid says, if it has."""
    if not told.startswith("["):
        return None  # nobody has been asked
    return next((one for one in json.loads(told)
                 if one["pid"] == pid and one["answer"]), None)


def with_input(data, *args):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return run(*args, stdin=file)


def run_on_processors():
    """A job of two ranks, and what each of them was told and may use."""
    job = run("-l", "--show-binding", "-n", "2", "sh", "-c",
              "echo $CHEMPI_CPUS/$(grep Cpus_allowed_list /proc/self/status)")
    lists = [re.fullmatch(r"\[\d\] ([\d,-]*)/Cpus_allowed_list:\s+(\S+)",
                          line).groups() for line in job.lines()]
    check(len(lists) == 2, job.output)
    return job, lists


def expect(job, status, *patterns):
    check(job.status == status, "status", job.status, "not", status,
          job.output, job.errors)
    for pattern in patterns:
        check(re.search(pattern, job.errors), "no", pattern, "in", job.errors)


ONE_SENTENCE = r"\Achempirun: [^\n]*; the job was ended\n\Z"
LAYOUTS = (["-n", "4"], ["--virtual", "2", "-n", "4"],
           ["--virtual", "a,b,c", "-n", "7", "--map", "cyclic"])


class Cluster:
    """Daemons with a directory of their own."""

    def __init__(self, names, options=(), mode=0o700):
        self.dir = tempfile.mkdtemp(prefix="chempi-test-")
        os.chmod(self.dir, mode)
        self.mark = uuid.uuid4().hex
        self.env = dict(os.environ, CHEMPI_DIR=self.dir)
        self.env[jobrun.MARK] = self.mark
        self.key = f"{self.dir}/key"
        self.log = f"{self.dir}/log"
        with open(self.log, "wb"):
            pass
        subprocess.run([Programs.chempictl, "key", self.key], check=True)
        for name in names:
            self.start(name, *options)

    def start(self, name, *options, key=None, check_it=True, slots="2",
              **kwargs):
        with open(self.log, "ab") as log:
            return subprocess.run(
                [Programs.chempid, "--name", name, "--dir", self.dir, "--listen",
                 "127.0.0.1", "--key", key or self.key,
                 *(["--slots", slots] if slots else []), "--background", "--verbose", *options],
                env=self.env, stdin=subprocess.DEVNULL, stderr=log,
                check=check_it, timeout=LIMIT_S, **kwargs)

    def ctl(self, *args, status=0):
        done = subprocess.run([Programs.chempictl, *args], env=self.env,
                              capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)
        check(status is None or done.returncode == status, args, done)
        return done.stdout + done.stderr

    def pid(self, name):
        for line in self.ctl("--via", name, "status").splitlines()[1:]:
            return int(line.split()[4])
        raise AssertionError(name)

    def address(self, name):
        with open(f"{self.dir}/{name}.node", encoding="utf-8") as file:
            host, port = file.read().split()[1].rsplit(":", 1)
        return host, int(port)

    def kill(self, name):
        """Kill a daemon; returns when its keeper has ended, too."""
        pid = self.pid(name)
        keeper = [child for child in children(pid)
                  if executable(child) == os.path.realpath(Programs.chempid) and
                  not comm(child).startswith("chempi-super")]
        kill_and_wait(pid, keeper)

    def supervisors(self):
        return [pid for pid, _ in jobrun.marked(self.mark)
                if comm(pid).startswith("chempi-super")]

    def job(self, *args, **kwargs):
        return Job(*args, env=self.env, **kwargs)

    def run(self, *args, **kwargs):
        return run(*args, env=self.env, **kwargs)

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def names(self):
        return sorted(n[:-5] for n in os.listdir(self.dir)
                      if n.endswith(".sock"))

    def stop(self):
        """Stop all; nothing but key and log may be left."""
        for name in self.names():
            self.ctl("--via", name, "stop")
        left = jobrun.end_marked(self.mark, LIMIT_S)
        files = sorted(os.listdir(self.dir))
        check(not left, "processes left:", left, self.logged())
        check(set(files) <= {"key", "log"}, "files left:", files)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.stop()
            else:
                print(self.logged(), file=sys.stderr)
        finally:
            jobrun.end_marked(self.mark, 0)
            shutil.rmtree(self.dir)
