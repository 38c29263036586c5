# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the suite's utility library and programs with a given mpicc.

The suite's own configure is not run: on Linux with glibc all that it finds
out about the system is known, and what it finds out about the MPI is "has
everything". So only the wrapper differs between two MPIs.
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import threading

import fortran

COMPILE_LIMIT_S = 900  # one of them takes 20 s of an idle core

HAS = """DOUBLE__COMPLEX FLOAT__COMPLEX LONG_DOUBLE__COMPLEX LONG_DOUBLE
LONG_LONG GETRUSAGE H_ADDR_LIST INTTYPES_H MEMORY_H MPI_IO MPI_SPAWN
MPI_WIN_CREATE PTHREAD_H STDARG_H STDINT_H STDLIB_H STRDUP STRINGS_H STRING_H
SYS_RESOURCE_H SYS_STAT_H SYS_TIME_H SYS_TYPES_H UNISTD_H USLEEP _BOOL
LIMITS_H MEMSET DLFCN_H LONG_LONG_INT MPI_INIT_THREAD
MPI_INTEGER16 MPI_TYPE_CREATE_STRUCT""".split()
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


EDITS = pathlib.Path(__file__).with_name("edits.tsv")


class EditError(Exception):
    """edits.tsv does not fit the suite's source."""


def read_edits():
    """List of (source files, regular expression, replacement)."""
    return [line.split("\t")
            for line in EDITS.read_text(encoding="utf-8").splitlines()
            if line and not line.startswith("#")]


class Builder:
    """Objects and programs of one MPI, below one folder."""

    def __init__(self, root, work, mpicc, flags=(), mpifort=None):
        self.root = pathlib.Path(root)
        self.work = pathlib.Path(work)
        self.mpicc = mpicc
        self.fortran = mpifort and fortran.Compiler(self, mpifort)
        self.header_time, has_removed = self.read_header()
        self.edits = read_edits()
        # MPI 3.0 removed these names, which the suite still uses.
        renamed = {"MPI_Type_hvector": "MPI_Type_create_hvector",
                   "MPI_Type_hindexed": "MPI_Type_create_hindexed",
                   "MPI_Type_struct": "MPI_Type_create_struct",
                   "MPI_Address": "MPI_Get_address",
                   "MPI_Errhandler_set": "MPI_Comm_set_errhandler",
                   "MPI_Errhandler_get": "MPI_Comm_get_errhandler",
                   "MPI_Errhandler_create": "MPI_Comm_create_errhandler"}
        self.flags = ["-O1", "-g", "-w", "-DHAVE_CONFIG_H", *flags]
        if not has_removed:
            self.flags += [f"-D{old}={new}" for old, new in renamed.items()]
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
            target = self.object(source.stem)
            if self.is_new(target):
                continue
            words = self.compile(["-c", str(source), "-o", str(target)])
            if words is not None:
                return words
        return None

    def is_new(self, target):
        """Was it built, and with the present mpi.h?"""
        return target.exists() and target.stat().st_mtime > self.header_time

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
        if self.is_new(target):
            return target, None
        threads = directory.startswith("threads")
        stems = ["mtest", "mtest_common", "dtypes", *DTPOOLS,
                 "mtest_thread" if threads else "mtest_single"]
        flags = ["-DMTEST_USE_THREAD"] if threads else []
        if self.fortran and fortran.is_fortran(directory):
            recipe = self.fortran.completed(directory, recipe)
        missing = [name for name in recipe.sources if not os.path.exists(name)]
        if missing:
            return None, f"no source {os.path.basename(missing[0])}"
        if fortran.is_fortran(directory):
            if not self.fortran:
                return None, "no mpifort was given"
            try:
                words = self.fortran.program(directory, target, recipe, [
                    str(self.object(stem)) for stem in stems])
            except EditError as error:
                words = str(error)
            return (target, None) if words is None else (None, words)
        try:
            sources = [word for name in recipe.sources
                       for word in self.edited(name)]
        except EditError as error:
            return None, str(error)
        words = self.compile([*flags, *recipe.flags, *sources,
                              *[str(self.object(stem)) for stem in stems],
                              "-o", str(target), *recipe.libs])
        return (target, None) if words is None else (None, words)

    def edited(self, source):
        """The file to compile in place of a source file of the suite."""
        path = pathlib.Path(source)
        if not path.is_relative_to(self.root): # it is made here
            return [str(path)]
        name = str(path.relative_to(self.root))
        edits = [edit for edit in self.edits if fnmatch.fnmatch(name, edit[0])]
        if not edits:
            return [str(path)]
        text = path.read_text(encoding="utf-8")
        for _, pattern, replacement in edits:
            text, times = re.subn(pattern, replacement, text)
            if times == 0:
                raise EditError(f"edits.tsv: {name} has no {pattern}")
        copy = self.work / "edited" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        # Several programs may be made from one file at the same time.
        partial = copy.with_name(f"{threading.get_ident()}-{copy.name}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(copy)
        return [f"-I{path.parent}", str(copy)]

    def read_header(self):
        """When mpi.h or the rules here last changed (what is older is
        built again), and whether it declares what MPI 3.0 removed."""
        never = float("inf"), False
        try:
            done = [subprocess.run([self.mpicc, how, "-x", "c", "-"],
                                   input="#include <mpi.h>\n", text=True,
                                   check=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL,
                                   timeout=COMPILE_LIMIT_S).stdout
                    for how in ("-M", "-E")]
        except (OSError, subprocess.SubprocessError):
            return never
        names = [word for word in done[0].split()
                 if os.path.basename(word).startswith("mpi")]
        names += [EDITS, __file__]
        newest = max(os.stat(name).st_mtime for name in names
                     if os.path.exists(name))
        return newest, re.search(r"\bMPI_Address\b", done[1]) is not None
