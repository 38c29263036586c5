#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write mpi.h from the ABI tables: gen_mpi_h.py API_DIR OUTPUT"""

import re
import sys

import api_table

HEAD = '''\
/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI 5.0, standard ABI 1.0. Generated from the ABI tables; do not edit.
 *
 * Define CHEMPI_WARN_DEPRECATED to be warned about deprecated functions, and
 * CHEMPI_NO_FINT to leave out MPI_Fint and the c2f/f2c family, which stand
 * beside the ABI.
 */
#ifndef MPI_H_INCLUDED
#define MPI_H_INCLUDED

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#if defined(CHEMPI_WARN_DEPRECATED) && \\
    (defined(__GNUC__) || defined(__clang__))
#define CHEMPI_DEPRECATED(since) \\
    __attribute__((__deprecated__("deprecated since " since)))
#else
#define CHEMPI_DEPRECATED(since)
#endif

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

'''

ENUMS = {
    'MPI_T_cb_safety': 'MPI_T_CB_REQUIRE_',
    'MPI_T_source_order': 'MPI_T_SOURCE_',
}

INTEROP = '''\
#ifndef CHEMPI_NO_FINT
/* Beside the ABI: what real programs call to talk to Fortran. */
typedef int MPI_Fint;
typedef struct MPI_F08_status {
    MPI_Fint MPI_SOURCE;
    MPI_Fint MPI_TAG;
    MPI_Fint MPI_ERROR;
    MPI_Fint MPI_internal[5];
} MPI_F08_status;

extern MPI_Fint *const MPI_F_STATUS_IGNORE;
extern MPI_Fint *const MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUSES_IGNORE;

%s#endif /* CHEMPI_NO_FINT */

'''

TAIL = '''\
#if defined(__cplusplus)
}
#endif

#endif /* MPI_H_INCLUDED */
'''

STATUS_CONVERSIONS = [
    ('c2f', 'const MPI_Status *c_status, MPI_Fint *f_status'),
    ('f2c', 'const MPI_Fint *f_status, MPI_Status *c_status'),
    ('c2f08', 'const MPI_Status *c_status, MPI_F08_status *f08_status'),
    ('f082c', 'const MPI_F08_status *f08_status, MPI_Status *c_status'),
    ('f2f08', 'const MPI_Fint *f_status, MPI_F08_status *f08_status'),
    ('f082f', 'const MPI_F08_status *f08_status, MPI_Fint *f_status'),
]


def wrap(text, indent='    '):
    """Break a prototype at commas so that lines stay within 80 columns."""
    lines, line = [], ''
    for word in re.split(r'(?<=,) ', text):
        if line and len(line) + 1 + len(word) > 80:
            lines.append(line)
            line = indent + word
        else:
            line = line + ' ' + word if line else word
    return '\n'.join(lines + [line])


def declaration(returns, name, params, tail=''):
    space = '' if returns.endswith('*') else ' '
    return wrap('%s%s%s(%s)%s;' % (returns, space, name, params, tail)) + '\n'


def user_params(text):
    """Weights may be MPI_UNWEIGHTED, a small address. GCC warns of it where
    the parameter is written as an array; the type is the same."""
    return re.sub(r'(\w*weights)\[\]', r'*\1', text)


def enum(tag, prefix, constants):
    rows = [(n, v) for n, _, v in constants if n.startswith(prefix)]
    body = ',\n'.join('    %s = %s' % row for row in rows)
    return 'typedef enum %s {\n%s\n} %s;\n' % (tag, body, tag)


def value(ctype, text):
    if ctype == 'alias':
        return text
    if ctype == 'int':
        return '(%s)' % text if text.startswith('-') else text
    return '((%s)%s)' % (ctype, '(%s)' % text if text[0] == '-' else text)


def interop_prototypes():
    out = ''
    for kind in api_table.HANDLES:
        short = 'Type' if kind == 'Datatype' else kind
        for p in ('MPI_', 'PMPI_'):
            arg = kind.lower()
            out += declaration('MPI_Fint', '%s%s_c2f' % (p, short),
                               'MPI_%s %s' % (kind, arg))
            out += declaration('MPI_%s' % kind, '%s%s_f2c' % (p, short),
                               'MPI_Fint %s' % arg)
    for name, params in STATUS_CONVERSIONS:
        for p in ('MPI_', 'PMPI_'):
            out += declaration('int', '%sStatus_%s' % (p, name), params)
    return out


def main(api_dir, output):
    constants = api_table.load_constants(api_dir)
    out = [HEAD]
    in_enum = tuple(ENUMS.values())
    for tag, prefix in ENUMS.items():
        out.append(enum(tag, prefix, constants) + '\n')
    for text, _ in api_table.load_types(api_dir):
        out.append(wrap('typedef %s;' % text.replace('* ', ' *')) + '\n')
    out.append('\n')
    for name, ctype, text in constants:
        if not name.startswith(in_enum):
            out.append('#define %s %s\n' % (name, value(ctype, text)))
    out.append('\n')
    for f in api_table.load_functions(api_dir):
        tail = (' CHEMPI_DEPRECATED("%s")' % f.deprecated
                if f.deprecated else '')
        for prefix in ('', 'P'):
            out.append(declaration(f.returns, prefix + f.name,
                                   user_params(f.param_text), tail))
    out.append('\n' + INTEROP % interop_prototypes() + TAIL)
    with open(output, 'w', encoding='utf-8') as h:
        h.write(''.join(out))


if __name__ == '__main__':
    main(*sys.argv[1:])
