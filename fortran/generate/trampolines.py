#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the pools of trampolines: trampolines.py OUTPUT

The ABI's operations and error handlers carry no state of their own, so each
Fortran procedure needs a C function that knows it. See lib/callback/callback.h.
"""
import sys

POOL = 128
KINDS = [
    ('op', 'MPI_User_function',
     'void *in, void *inout, int *len, MPI_Datatype *type',
     'in, inout, len, type'),
    ('op_c', 'MPI_User_function_c',
     'void *in, void *inout, MPI_Count *len, MPI_Datatype *type',
     'in, inout, len, type'),
    ('comm', 'MPI_Comm_errhandler_function',
     'MPI_Comm *comm, int *code, ...', 'comm, code'),
    ('win', 'MPI_Win_errhandler_function',
     'MPI_Win *win, int *code, ...', 'win, code'),
    ('file', 'MPI_File_errhandler_function',
     'MPI_File *file, int *code, ...', 'file, code'),
    ('session', 'MPI_Session_errhandler_function',
     'MPI_Session *session, int *code, ...', 'session, code'),
]


def main(output):
    text = ['/* SPDX-License-Identifier: BSD-3-Clause */\n'
            '/* Pools of trampolines. Generated; do not edit. */\n'
            '#include "fortran/lib/callback/callback.h"\n\n'
            '_Static_assert(CHEMPI_CALLBACK_POOL == %d, '
            '"the size of the pools");\n' % POOL]
    for kind, ctype, params, names in KINDS:
        for i in range(POOL):
            text.append('static void %s_%d(%s)\n{\n    '
                        'chempi_callback_run_%s(%d, %s);\n}\n' %
                        (kind, i, params, kind, i, names))
        text.append('%s *const chempi_trampoline_%s[CHEMPI_CALLBACK_POOL] = {'
                    '\n    %s};\n' % (ctype, kind, ',\n    '.join(
                        '%s_%d' % (kind, i) for i in range(POOL))))
    with open(output, 'w', encoding='utf-8') as out:
        out.write('\n'.join(text))


if __name__ == '__main__':
    main(*sys.argv[1:])
