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
