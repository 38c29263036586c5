# SPDX-License-Identifier: BSD-3-Clause
"""Bring the upstream part of a Debian source package, as any user.

apt-get gets a source list and directories of its own, so the system's
settings are neither needed nor touched, and its signatures are checked as
usual. What was fetched stays in the user's cache, outside every repository.
"""
import glob
import os
import pathlib
import shutil
import subprocess
import tarfile

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FETCH_LIMIT_S = 300


class FetchError(Exception):
    """The source cannot be had; the text says why."""


def cache_root():
    """Directory of fetched sources; made when missing."""
    base = os.environ.get("XDG_CACHE_HOME")
    home = pathlib.Path.home()
    choices = [pathlib.Path(base)] if base else []
    choices += [home / ".cache", pathlib.Path("/var/tmp")]
    for choice in choices:
        try:
            (choice / "chempi").mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(choice / "chempi", os.W_OK):
            return choice / "chempi"
    raise FetchError("no directory for a cache; set XDG_CACHE_HOME")


def apt_options(work):
    """Make apt's own directories below work; returns its options."""
    for name in ("lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get("CHEMPI_DEBIAN_MIRROR", MIRROR)
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    (work / "sources.list").write_text(
        f"deb-src {signed}{mirror} {SUITE} main\n", encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "",
        "APT::Update::Error-Mode": "any",  # else a dead mirror is a warning
    }
    return [word for key, value in settings.items()
            for word in ("-o", f"{key}={value}")]


def apt(options, words, cwd):
    command = ["apt-get", "-q", *options, *words]
    try:
        done = subprocess.run(command, cwd=cwd, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=FETCH_LIMIT_S,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"apt-get {words[0]}: {error}") from error
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["no reason given"]
        causes = [line for line in lines if "Failed to fetch" in line]
        raise FetchError(f"apt-get {words[0]}: {(causes or lines[-1:])[0]}")


def fetch(package, version):
    """Path of the package's upstream archive, fetched when not cached."""
    root = cache_root()
    pattern = str(root / f"{package}_{version}.orig.tar.*")
    found = [name for name in glob.glob(pattern) if not name.endswith(".asc")]
    if found:
        return pathlib.Path(found[0])
    work = root / f"apt-{os.getpid()}"
    try:
        work.mkdir(parents=True)
        options = apt_options(work)
        apt(options, ["update"], work)
        apt(options, ["source", "--download-only", "--tar-only", package],
            work)
        names = [name for name in
                 glob.glob(str(work / f"{package}_{version}.orig.tar.*"))
                 if not name.endswith(".asc")]
        if not names:
            raise FetchError(f"{SUITE} has no {package} {version}")
        target = root / os.path.basename(names[0])
        os.replace(names[0], target)
        return target
    finally:
        shutil.rmtree(work, ignore_errors=True)


def stays_inside(member, inner):
    """Whether a symbolic link of the archive points into its own tree."""
    place = os.path.normpath(inner.parent / member.linkname)
    return not os.path.isabs(place) and not place.startswith("..")


def keep_attributes(member, path):
    """Modes and times as in the archive: configure scripts want to run, and
    makefiles compare times."""
    if not path.is_symlink():
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
        os.utime(path, (member.mtime, member.mtime))


def unpack(archive, below, target, whole=False):
    """Unpack what lies in the archive's folder `below` into target.

    Only plain files and folders, when whole also symbolic links within the
    tree, modes and times; a path that would leave target is refused.
    """
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                inner = pathlib.PurePosixPath(*pathlib.PurePosixPath(
                    member.name).parts[1:])
                if below and not inner.is_relative_to(below):
                    continue
                member.name = str(inner.relative_to(below))
                if ".." in inner.parts or inner.is_absolute():
                    raise FetchError(f"{archive}: odd path {member.name}")
                if not (member.isfile() or member.isdir() or
                        whole and member.issym() and
                        stays_inside(member, inner)):
                    continue
                tar.extract(member, partial, set_attrs=False)
                if whole and not member.isdir():
                    keep_attributes(member, partial / member.name)
                elif not whole:
                    os.utime(partial / member.name)
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def tree(package, version, below=""):
    """Folder with the unpacked upstream source (or a part of it)."""
    name = f"{package}-{version}" + (f"-{below.replace('/', '-')}"
                                     if below else "")
    target = cache_root() / name
    if not target.is_dir():
        unpack(fetch(package, version), below, target)
    return target
