# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the suite's utility library and programs with a given mpicc.

The suite's own configure is not run: on Linux with glibc all that it finds
out about the system is known, and what it finds out about the MPI is "has
everything". So only the wrapper differs between two MPIs.
"""
import os
import pathlib
import re
import subprocess

COMPILE_LIMIT_S = 120

HAS = """DOUBLE__COMPLEX FLOAT__COMPLEX LONG_DOUBLE__COMPLEX LONG_DOUBLE
LONG_LONG GETRUSAGE H_ADDR_LIST INTTYPES_H MEMORY_H MPI_IO MPI_SPAWN
MPI_WIN_CREATE PTHREAD_H STDARG_H STDINT_H STDLIB_H STRDUP STRINGS_H STRING_H
SYS_RESOURCE_H SYS_STAT_H SYS_TIME_H SYS_TYPES_H UNISTD_H USLEEP _BOOL
LIMITS_H MEMSET DLFCN_H""".split()
VALUES = {
    "POINTERINT_t": "long",
    "SIZEOF_INT": "4",
    "SIZEOF_LONG": "8",
    "SIZEOF_LONG_LONG": "8",
    "SIZEOF_SHORT": "2",
    "SIZEOF_VOID_P": "8",
    "STDC_HEADERS": "1",
    "THREAD_PACKAGE_NAME": "THREAD_PACKAGE_POSIX",
    "USE_LONG_DOUBLE_COMPLEX": "1",
}
DTPOOLS = """dtpools dtpools_misc dtpools_init_verify dtpools_desc
dtpools_attr dtpools_custom""".split()


class Builder:
    """Objects and programs of one MPI, below one folder."""

    def __init__(self, root, work, mpicc, flags=()):
        self.root = pathlib.Path(root)
        self.work = pathlib.Path(work)
        self.mpicc = mpicc
        self.header_time = self.newest_header()
        # MPI 3.0 removed these names, which the suite still uses.
        renamed = {"MPI_Type_hvector": "MPI_Type_create_hvector",
                   "MPI_Type_hindexed": "MPI_Type_create_hindexed",
                   "MPI_Type_struct": "MPI_Type_create_struct",
                   "MPI_Address": "MPI_Get_address",
                   "MPI_Errhandler_set": "MPI_Comm_set_errhandler",
                   "MPI_Errhandler_get": "MPI_Comm_get_errhandler",
                   "MPI_Errhandler_create": "MPI_Comm_create_errhandler"}
        self.flags = ["-O1", "-g", "-w", "-DHAVE_CONFIG_H",
                      *(f"-D{old}={new}" for old, new in renamed.items()),
                      *flags]
        for folder in (self.work / "include", self.root / "include",
                       self.root / "dtpools/include"):
            self.flags.append(f"-I{folder}")

    def prepare(self):
        """Write the configuration headers and compile the library.

        Returns the compiler's words on failure, None when all is well.
        """
        (self.work / "include").mkdir(parents=True, exist_ok=True)
        lines = [f"#define HAVE_{name} 1" for name in HAS]
        lines += [f"#define {key} {value}" for key, value in VALUES.items()]
        # dtpools asks for "../dtpoolsconf.h", seen from a header's folder.
        for name in ("include/mpitestconf.h", "dtpoolsconf.h"):
            guard = re.sub(r"\W", "_", os.path.basename(name)).upper()
            (self.work / name).write_text("\n".join(
                [f"#ifndef {guard}", f"#define {guard}", *lines, "#endif",
                 ""]), encoding="utf-8")
        util = self.root / "util"
        sources = [util / f"{name}.c" for name in
                   ("mtest", "mtest_common", "mtest_single", "mtest_thread",
                    "dtypes")]
        sources += [self.root / f"dtpools/src/{name}.c" for name in DTPOOLS]
        for source in sources:
            words = self.compile(["-c", str(source), "-o",
                                  str(self.object(source.stem))])
            if words is not None:
                return words
        return None

    def object(self, stem):
        return self.work / f"{stem}.o"

    def compile(self, words):
        """None, or what the compiler said."""
        try:
            done = subprocess.run([self.mpicc, *self.flags, *words],
                                  text=True, check=False,
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT,
                                  timeout=COMPILE_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return None if done.returncode == 0 else done.stdout

    def program(self, directory, program, recipe):
        """Compile one program; (path, None) or (None, compiler's words)."""
        folder = self.work / directory
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / program
        if target.exists() and target.stat().st_mtime > self.header_time:
            return target, None
        threads = directory.startswith("threads")
        stems = ["mtest", "mtest_common", "dtypes", *DTPOOLS,
                 "mtest_thread" if threads else "mtest_single"]
        flags = ["-DMTEST_USE_THREAD"] if threads else []
        missing = [name for name in recipe.sources if not os.path.exists(name)]
        if missing:
            return None, f"no source {os.path.basename(missing[0])}"
        words = self.compile([*flags, *recipe.flags, *recipe.sources,
                              *[str(self.object(stem)) for stem in stems],
                              "-o", str(target), *recipe.libs])
        return (target, None) if words is None else (None, words)

    def newest_header(self):
        """When mpi.h last changed: programs older than it are rebuilt."""
        try:
            done = subprocess.run([self.mpicc, "-M", "-x", "c", "-"],
                                  input="#include <mpi.h>\n", text=True,
                                  check=False, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL,
                                  timeout=COMPILE_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired):
            return float("inf")
        names = [word for word in done.stdout.split()
                 if os.path.basename(word).startswith("mpi")]
        return max((os.stat(name).st_mtime for name in names
                    if os.path.exists(name)), default=float("inf"))
