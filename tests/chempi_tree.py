# SPDX-License-Identifier: BSD-3-Clause
"""Where this project's programs lie: in a build folder or an installed
tree."""
import pathlib

PLACES = {
    "mpicc": ("programs/wrappers/mpicc", "bin/mpicc"),
    "mpifort": ("programs/wrappers/mpifort", "bin/mpifort"),
    "mpiexec": ("chempid/chempirun", "bin/mpiexec"),
    "chempirun": ("chempid/chempirun", "bin/chempirun"),
    "chempid": ("chempid/chempid", "bin/chempid"),
    "chempictl": ("chempid/chempictl", "bin/chempictl"),
    "mdconfig": ("mdconfig/mdconfig", "bin/mdconfig"),
}


def find(tree, name):
    """Path of a program, or None when it is not (yet) built."""
    for place in PLACES[name]:
        path = pathlib.Path(tree).resolve() / place
        if path.is_file():
            return path
    return None


def need(tree, name):
    """The same, but its absence ends the program that asks."""
    path = find(tree, name)
    if path is None:
        raise SystemExit(f"{tree}: holds no {name}; build it first")
    return path


MPI = pathlib.Path(__file__).resolve().parent / "mpi"


def mpi_source(name):
    """The source of a program of tests/mpi, which lies in its chapter's
    folder, or None."""
    found = sorted(MPI.glob(f"*/{name}.c"))
    if len(found) > 1:
        raise SystemExit(f"tests/mpi has several programs {name}: {found}")
    return found[0] if found else None


def mpi_words(name):
    """What the compiler needs for one: its source, those in a folder of its
    name, if there is one, and the common part."""
    source = mpi_source(name)
    if source is None:
        raise SystemExit(f"tests/mpi has no program {name}")
    more = sorted(source.with_suffix("").glob("*.c"))
    return [f"-I{MPI}", str(source), *map(str, more), str(MPI / "check.c"),
            "-lpthread", "-lm"]
