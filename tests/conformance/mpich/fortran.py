# SPDX-License-Identifier: BSD-3-Clause
"""Builds the programs of the suite's f77, f90 and f08 directories.

As in builder.py the suite's configure is not run; what it puts into the
include files of f77 (*.h.in) is known. Thirteen programs in each folder io
are made from a harness by the suite's own script, as its makefiles do.
"""
import pathlib
import re
import shutil
import subprocess
import threading

INTERFACES = ("f77", "f90", "f08")
KINDS = {"F77_MPI_ADDRESS": "integer*8", "F77_MPI_OFFSET": "integer*8"}
LIMIT_S = 900
# Programs that call procedures of their own with arguments of several types.
MISMATCHED = re.compile(r"attrlangf(90|08)")
WARNINGS_OFF = ["-O1", "-g", "-w"]
# The harness in f90 is that of f77 after these changes (f90/io/Makefile.ap).
HARNESS = {"ioharness.defn": [
    (r'filename="(.*)f\.f"', r'filename="\1f90.f90"'),
    (r"include.*iooffset.*", "integer (kind=MPI_OFFSET_KIND)offset")],
           "ioharness.tlt": [
    (r"include.*mpif.*", "use mpi"), (r"fheader", "f90header"), (r"(?m)^C", "!"),
    (r"(?m)^.*implicit *none.*\n", "")]}


def is_fortran(directory):
    return directory.split("/", maxsplit=1)[0] in INTERFACES


def extension(directory):
    """Of a program's source when its directory's list names none."""
    if not is_fortran(directory):
        return ".c"
    return ".f" if directory.startswith("f77") else ".f90"


class Compiler:
    """mpifort beside a builder.Builder, which compiles what is C."""

    def __init__(self, builder, mpifort):
        self.builder = builder
        self.mpifort = mpifort
        self.lock = threading.Lock()

    def includes(self, folder):
        """Folder of the include files made from folder's *.h.in."""
        made = self.builder.work / folder.relative_to(self.builder.root)
        made.mkdir(parents=True, exist_ok=True)
        for source in folder.glob("*.h.in"):
            text = re.sub(r"@(\w+)@", lambda m: KINDS[m.group(1)],
                          source.read_text(encoding="utf-8"))
            target = made / source.name[:-3]
            if not target.exists() or \
                    target.read_text(encoding="utf-8") != text:
                target.write_text(text, encoding="utf-8")
        return made

    def completed(self, directory, recipe):
        """The recipe with sources that the suite makes itself, if it can."""
        missing = [name for name in recipe.sources
                   if not pathlib.Path(name).exists()]
        if not missing or not directory.endswith("/io"):
            return recipe
        with self.lock:
            made = self.generated(directory)
        recipe.sources = [str(made / pathlib.Path(name).name)
                          if name in missing else name
                          for name in recipe.sources]
        return recipe

    def generated(self, directory):
        """Folder of the programs made from the harness of the directory."""
        root = self.builder.root
        made = self.builder.work / directory / "harness"
        perl = shutil.which("perl")
        if not perl or (made / "done").exists():
            return made
        made.mkdir(parents=True, exist_ok=True)
        for name, changes in HARNESS.items():
            source = root / directory / name
            if source.exists():
                changes = []
            else:
                source = root / "f77/io" / name
            text = source.read_text(encoding="utf-8")
            for pattern, new in changes:
                text = re.sub(pattern, new, text)
            (made / name).write_text(text, encoding="utf-8")
        script = (root / "maint/testmerge.in").read_text(encoding="utf-8")
        (made / "testmerge").write_text(script.replace("@PERL@", perl),
                                        encoding="utf-8")
        done = subprocess.run(
            [perl, "testmerge", f"-defn={root}/maint/common.defn",
             *HARNESS], cwd=made, check=False, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            (made / "done").touch()
        return made

    def run(self, words):
        try:
            done = subprocess.run([self.mpifort, *WARNINGS_OFF, *words],
                                  text=True, check=False,
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return None if done.returncode == 0 else done.stdout

    def program(self, directory, target, recipe, objects):
        """None, or the compiler's words. Modules and objects of a program
        lie in a folder of its own."""
        root = self.builder.root
        made = self.includes(root / directory)
        own = target.with_name(target.name + ".made")
        own.mkdir(exist_ok=True)
        interface = directory.split("/", maxsplit=1)[0]
        shared = self.includes(root / interface / "attr") # rma has it too
        util = root / "util" / f"mtest_{interface}{extension(directory)}"
        linked = []
        for source in [*recipe.sources, str(util)]:
            path = pathlib.Path(source)
            object_file = own / (path.name + ".o")
            linked.append(str(object_file))
            if path.suffix == ".c":
                words = self.builder.compile(
                    ["-DF77_NAME_LOWER_USCORE", *recipe.flags, f"-I{made}",
                     "-c", source, "-o",
                     str(object_file)])
            else:
                more = ["-fallow-argument-mismatch"] \
                    if MISMATCHED.match(path.stem) else []
                words = self.run([*more, f"-I{made}", f"-I{shared}",
                                  f"-I{path.parent}", "-J",
                                  str(own), "-c", *self.builder.edited(source),
                                  "-o", str(object_file)])
            if words is not None:
                return words
        return self.run([*linked, *objects, "-o", str(target), *recipe.libs])
