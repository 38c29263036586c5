#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a libmpi_abi that only prints its calls: stub.py OUTPUT

Every function of the ABI's table prints its name, its scalars, handles (as
numbers), small pointers (NULL, MPI_IN_PLACE and the like) and strings; other
pointers are "ptr", and arguments of programs stand below. Handles as integers are their numbers. A few functions
answer what the Fortran library needs to know of a datatype.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(TOP / "tools"))

import api_table  # noqa: E402

ANSWERS = {
    "Type_size_c": "*size = 4;",
    "Type_get_extent_c": "*lb = 0; *extent = 4;",
    "Type_get_true_extent_c": "*true_lb = 0; *true_extent = 4;",
    "Type_contiguous_c": "*newtype = (MPI_Datatype)0x2001;",
    "Type_create_hvector_c": "*newtype = (MPI_Datatype)0x2002;",
    "Isend_c": "*request = (MPI_Request)0x3001;",
    "Wait": "*request = MPI_REQUEST_NULL;",
    "Type_create_struct": "*newtype = (MPI_Datatype)0x2003;",
    "Abi_get_fortran_booleans": "*is_set = 0;",
    "Abi_get_fortran_info": "*info = MPI_INFO_NULL;",
    "Info_create": "*info = (MPI_Info)0x1001;",
    "Initialized": "*flag = 0;",
    "Comm_rank": "*rank = 0;",
    "Comm_spawn": "words(argv);",
    "Comm_spawn_multiple":
        "for (int i = 0; i < count; i++) {\n"
        "        puts(array_of_commands[i]);\n"
        "        words(array_of_argv ? array_of_argv[i] : NULL);\n    }",
}


def printed(p):
    """(format, argument) of a parameter."""
    if p.ctype == "...":
        return None
    if "char" in p.ctype and p.ctype.startswith("const") and not p.array:
        return "\\\"%s\\\"", p.name
    if p.array or p.ctype.endswith("*"):
        return "%s", f"pointer((const void *)(uintptr_t){p.name})"
    return "%lld", f"(long long)(intptr_t){p.name}"


def main(output):
    out = ["#include <mpi.h>\n#include <stdio.h>\n#include <stdint.h>\n"
           "static const char *pointer(const void *p)\n{\n"
           "    static char text[8][24];\n    static int i;\n"
           "    if ((uintptr_t)p > 64)\n        return \"ptr\";\n"
           "    i = (i + 1) % 8;\n"
           "    snprintf(text[i], 24, \"%d\", (int)(intptr_t)p);\n"
           "    return text[i];\n}\n"
           "static void words(char *const *list)\n{\n"
           "    for (; list && *list; list++)\n"
           "        printf(\"  '%s'\\n\", *list);\n}\n"]
    for f in api_table.load_functions(str(TOP / "libchempi/api")):
        for prefix in ("", "P"):
            parts = [x for x in map(printed, f.params) if x]
            text = ", ".join(x[0] for x in parts)
            args = "".join(", " + x[1] for x in parts)
            stem = f.name[4:]
            body = f'printf("{prefix}{f.name}({text})\\n"{args});'
            if stem.endswith(("_toint", "_fromint")):
                body = (f"return ({f.returns})(intptr_t)"
                        f"{f.params[0].name};")
            out.append(f"{f.returns} {prefix}{f.name}({f.param_text})\n"
                       f"{{\n    {body}\n    {ANSWERS.get(stem, '')}\n"
                       f"    return ({f.returns})0;\n}}\n")
    with open(output, "w", encoding="utf-8") as file:
        file.write("".join(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
