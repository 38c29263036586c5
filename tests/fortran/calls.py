#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a program that names every procedure of the table as a user would:
calls.py f08|mpi|mpif FOLDER

calls_f08.f90 and calls_mpi.f90 give every argument by keyword and with the
type that the table says, in mpi_f08 with and without ierror, under the MPI_
and the PMPI_ name; calls_mpif.f gives them by position. Outside mpi_f08 a
call with buffers or addresses is made with two types of them, which gfortran
refuses where there is no interface. That each compiles and links is the test;
nothing is called. A large-count call goes by the generic name.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "fortran" / "generate"))

import table  # noqa: E402

KINDS = {"int": "integer", "index": "integer", "weights": "integer",
         "errcodes": "integer", "logical": "logical", "bits": "logical",
         "aint": "integer(kind=MPI_ADDRESS_KIND)",
         "count": "integer(kind=MPI_COUNT_KIND)",
         "offset": "integer(kind=MPI_OFFSET_KIND)"}


def takes_several_types(b):
    return bool(b.choices) or any(a.kind in ("cptr", "detach") for a in b.args)


def variable(a, interface, other=False):
    """(name of the variable to pass, its declaration); `other` chooses the
    second type of what may have several."""
    is_f08 = interface == "f08"
    kind, many = a.kind, "(4)" if a.is_array else ""
    tail = "s" if many else ""
    if kind in table.CHOICES or kind == "addr":
        return ("v_words", "integer :: v_words(8)") if other else (
            "v_buffer", "real :: v_buffer(8)")
    if kind in table.HANDLES:
        base = f"type({table.HANDLES[kind]})" if is_f08 else "integer"
        return f"v_{kind}{tail}", f"{base} :: v_{kind}{tail}{many}"
    if kind == "status":
        base = "type(MPI_Status)" if is_f08 else "integer"
        shape = many if is_f08 else \
            f"(MPI_STATUS_SIZE{',4' if many else ''})"
        return f"v_status{tail}", f"{base} :: v_status{tail}{shape}"
    if kind in ("string",):
        return "v_string", "character(len=8) :: v_string"
    if kind in ("argv", "commands"):
        return "v_strings", "character(len=8) :: v_strings(4)"
    if kind == "argvs":
        return "v_argvs", "character(len=8) :: v_argvs(4,4)"
    if kind == "ranges":
        return "v_ranges", "integer :: v_ranges(3,4)"
    if kind in ("cptr", "detach"):
        is_number = interface == "mpif" or kind == "detach" and not is_f08
        if is_number != other:
            return "v_aint", f"{KINDS['aint']} :: v_aint"
        return "v_cptr", "type(c_ptr) :: v_cptr"
    if kind == "proc":
        return f"p_{a.detail}", None
    return f"v_{kind}{tail}", f"{KINDS[kind]} :: v_{kind}{tail}{many}"


def procedures(interface):
    """Bodies for the procedures that are passed."""
    out = []
    for name, rows in table.PROCEDURES.items():
        lines = [f"subroutine p_{name}({', '.join(n for n, _ in rows)})"]
        for dummy, kind in rows:
            kind = kind.rstrip(">=")
            if kind == "address":
                base = "type(c_ptr), value"
            elif kind == "status":
                base = "type(MPI_Status)"
            elif kind in table.HANDLES:
                base = f"type({table.HANDLES[kind]})"
            else:
                base = KINDS[kind]
            lines.append(f"  {base} :: {dummy}")
        out.append("\n".join(lines + ["end subroutine"]))
    return out


def call(prefix, b, interface, declared, ierror=True, other=False):
    words, keyword = [], interface != "mpif"
    for a in b.args:
        name, declaration = variable(a, interface, other)
        if declaration:
            declared[name] = declaration
        words.append(f"{a.name}={name}" if keyword else name)
    if b.has_ierror and ierror:
        words.append("ierror=v_int" if keyword else "v_int")
    declared["v_int"] = "integer :: v_int"
    name = prefix + b.name[4:]
    if b.is_large and interface == "f08" and b.base not in (
            "MPI_Op_create", "MPI_Register_datarep"):
        name = name[:-2]
    text = f"{name}({', '.join(words)})"
    if not b.is_function:
        return "call " + text
    result = "v_double" if b.function.returns == "double" else "v_aint"
    declared[result] = ("double precision :: v_double"
                        if result == "v_double" else
                        f"{KINDS['aint']} :: v_aint")
    return f"{result} = {text}"


def extra(interface):
    """What Fortran has and the table has not."""
    if interface == "mpif":
        return [f"call {prefix}F_sync_reg({name})" for prefix in
                ("MPI_", "PMPI_") for name in ("v_buffer", "v_words")]
    done = ", ierror=v_int" 
    status = "v_f08status"
    return [f"call MPI_Sizeof(x=v_buffer, size=v_int{done})",
            "call MPI_F_sync_reg(buf=v_buffer)",
            f"call MPI_Status_f2f08(f_status=v_old, f08_status={status}"
            f"{done})",
            f"call PMPI_Status_f082f(f08_status={status}, f_status=v_old"
            f"{done})"]


def program(interface):
    declared, calls = {"v_buffer": "real :: v_buffer(8)",
                       "v_words": "integer :: v_words(8)"}, []
    bindings = table.load()
    if interface == "f08":
        chosen = [b for _, row in table.in_f08(bindings) for b in row]
    else:
        chosen = table.in_mpi(bindings)
    for prefix in ("MPI_", "PMPI_"):
        for b in chosen:
            calls.append(call(prefix, b, interface, declared))
            if interface != "f08" and takes_several_types(b):
                calls.append(call(prefix, b, interface, declared, other=True))
            if interface == "f08" and b.has_ierror:
                calls.append(call(prefix, b, interface, declared,
                                  ierror=False))
    calls += extra(interface)
    if interface != "mpif":
        declared["v_old"] = "integer :: v_old(MPI_STATUS_SIZE)"
        declared["v_f08status"] = "type(MPI_Status) :: v_f08status"
    for name, old, new, _ in table.SENTINELS:
        del old, new
        calls.append(f"if (loc({name}) == 0) stop 1")
    for name, _, _ in table.constants():
        calls.append(f"call constant(kind({name}))"
                     if interface != "f08" or name.endswith("_KIND") else
                     f"if (storage_size({name}) == 0) stop 1")
    return declared, calls


def free_form(interface):
    declared, calls = program(interface)
    module = "mpi_f08" if interface == "f08" else "mpi"
    parts = [calls[i:i + 100] for i in range(0, len(calls), 100)]
    out = ["module procedures", "use, intrinsic :: iso_c_binding",
           f"use {module}", "implicit none", "contains",
           "subroutine constant(k)", "integer :: k",
           "if (k == 0) stop 1", "end subroutine", *procedures(interface)]
    for i, part in enumerate(parts):
        out += [f"subroutine part{i}", *declared.values(),
                *[line.replace(", ", ", &\n  ") for line in part],
                "end subroutine"]
    out += ["end module", "program calls", "use procedures",
            "if (command_argument_count() > 1000) then",
            *[f"call part{i}" for i in range(len(parts))], "end if",
            "print '(a)', 'not called'", "end program"]
    return "\n".join(out) + "\n"


def fixed(line):
    """A statement in fixed form, continued at commas."""
    words, lines, current = line.replace(", ", ",\0").split("\0"), [], "      "
    for word in words:
        if len(current) + len(word) > 72:
            lines.append(current)
            current = "     +"
        current += word
    return "\n".join(lines + [current])


def fixed_form():
    declared, calls = program("mpif")
    parts = [calls[i:i + 100] for i in range(0, len(calls), 100)]
    out = []
    for i, part in enumerate(parts):
        out += [f"subroutine part{i}", "use, intrinsic :: iso_c_binding",
                "implicit none", "include 'mpif.h'",
                *declared.values(),
                *[f"external p_{name}" for name in table.PROCEDURES], *part,
                "end"]
    for name in table.PROCEDURES:
        out += [f"subroutine p_{name}()", "end"]
    out += ["subroutine constant(k)", "integer k", "if (k == 0) stop 1", "end",
            "program calls", "if (command_argument_count() > 1000) then",
            *[f"call part{i}" for i in range(len(parts))], "end if",
            "print '(a)', 'not called'", "end"]
    return "\n".join(fixed(line) for line in out) + "\n"


def main(interface, folder):
    name = f"calls_{interface}.f" + ("" if interface == "mpif" else "90")
    with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
        out.write(fixed_form() if interface == "mpif" else
                  free_form(interface))


if __name__ == "__main__":
    main(*sys.argv[1:])
