#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write libchempi-stats's wrappers: gen_stats.py API_DIR OUTPUT_DIR

calls.h has a number and a name per counted MPI function, wrappers.c the MPI_
functions that count and call PMPI_. The size of a call is what one message of
it carries, as far as the arguments say. It is asked for after the call, and
only if that succeeded: to ask for the size of a datatype that is wrong would
raise an error that the program cannot handle.
"""

import os
import re
import sys

import api_table
from gen_mpi_h import wrap

# Not counted: calls that cost next to nothing, that do not come back, or that
# the library defines itself.
LEFT_OUT = re.compile(
    r'MPI_(T_\w+|Abi_\w+|\w+_(to|from)int|Pcontrol|Wtime|Wtick|Aint_\w+|'
    r'Abort|Initialized|Finalized|Finalize|Status_\w+|Get_(library_)?version)$')

# The status says how much has come.
TELLS_BY_STATUS = re.compile(r'MPI_M?[Rr]ecv(_c)?$')

TEXT = '/* SPDX-License-Identifier: BSD-3-Clause */\n/* Generated; do not ' \
       'edit. */\n'


# The side of a rooted operation that counts for an intercommunicator's root,
# for whom the other one means nothing.
ROOTS_SIDE = (('gatherv', 'STATS_NO_SIZE'), ('scatterv', 'STATS_NO_SIZE'),
              ('gather', 'stats_bytes(recvcount, recvtype)'),
              ('scatter', 'stats_bytes(sendcount, sendtype)'))


def vector_size(f, types, wide):
    """size_of() for functions with a count for each process."""
    if 'neighbor' in f.name.lower():
        return 'STATS_NO_SIZE'
    if 'sendcounts' in types and 'recvcounts' in types:
        kind = 'types' if 'sendtypes' in types else 'type'
        mean = 'stats_mean_w' if kind == 'types' else 'stats_mean'
        return (f'{mean}(sendbuf == MPI_IN_PLACE ? (const void *)recvcounts '
                f': sendcounts, {wide}, sendbuf == MPI_IN_PLACE ? recv{kind} '
                f': send{kind}, comm)')
    if 'datatype' in types:  # of a reduction: one's own group's
        return f'stats_mean_own(recvcounts, {wide}, datatype, comm)'
    if 'recvcounts' in types:
        return (f'sendbuf == MPI_IN_PLACE ? stats_mean(recvcounts, {wide}, '
                'recvtype, comm) : stats_bytes(sendcount, sendtype)')
    return (f'recvbuf == MPI_IN_PLACE ? stats_mean(sendcounts, {wide}, '
            'sendtype, comm) : stats_bytes(recvcount, recvtype)')


def plain_size(f, types):
    """size_of() without regard to the root."""
    wide = 'true' if f.name.endswith('_c') else 'false'

    def scalar(name):
        return name in types and not types[name].array and \
            types[name].ctype in ('int', 'MPI_Count')

    if ('sendcounts' in types or 'recvcounts' in types) and 'comm' in types:
        return vector_size(f, types, wide)
    if scalar('sendcount') and scalar('recvcount'):
        if 'scatter' in f.name.lower():
            return ('recvbuf == MPI_IN_PLACE ? stats_bytes(sendcount, '
                    'sendtype) : stats_bytes(recvcount, recvtype)')
        return ('sendbuf == MPI_IN_PLACE ? stats_bytes(recvcount, recvtype)'
                ' : stats_bytes(sendcount, sendtype)')
    for count, datatype in (('sendcount', 'sendtype'),
                            ('recvcount', 'recvtype'),
                            ('recvcount', 'datatype'),
                            ('origin_count', 'origin_datatype'),
                            ('count', 'datatype')):
        if scalar(count) and datatype in types and \
                any(re.search(r'buf|base|addr', n) for n in types):
            return f'stats_bytes({count}, {datatype})'
    return 'STATS_NO_SIZE'


def size_of(f):
    """C expression for the bytes of one message; STATS_NO_SIZE: none. It
    reads no argument that has no meaning in the call."""
    types = {p.name: p for p in f.params}
    size = plain_size(f, types)
    if 'root' not in types or size == 'STATS_NO_SIZE':
        return size
    roots = next((text for part, text in ROOTS_SIDE
                  if part in f.name.lower()), None)
    if roots:
        size = f'root == MPI_ROOT ? {roots} : {size}'
    return f'root == MPI_PROC_NULL ? STATS_NO_SIZE : {size}'


def wrapper(f):
    args = ', '.join(p.name for p in f.params)
    lines = [wrap('CHEMPI_EXPORT int %s(%s)' % (f.name, f.param_text)), '{']
    size = size_of(f)
    by_status = TELLS_BY_STATUS.match(f.name)
    if by_status:
        lines += ['    MPI_Status own;']
        size = 'stats_received(status)'
    lines += ['    struct stats_call call;', '    int rc;', '']
    if by_status:
        lines += ['    if (status == MPI_STATUS_IGNORE)',
                  '        status = &own;']
    lines += [wrap('    STATS_BEGIN(&call, %s);' % f.name[4:],
                   '        '),
              wrap('    rc = P%s(%s);' % (f.name, args), '        '),
              '    stats_end(&call);']
    if size != 'STATS_NO_SIZE':
        lines += ['    if (rc == MPI_SUCCESS)',
                  wrap('        call.bytes = %s;' % size, '            ')]
    lines += ['    stats_count(&call);', '    return rc;', '}', '']
    return '\n'.join(lines) + '\n'


def main(api_dir, output_dir):
    counted = [f for f in api_table.load_functions(api_dir)
               if f.returns == 'int' and not LEFT_OUT.match(f.name)]
    with open(os.path.join(output_dir, 'calls.h'), 'w',
              encoding='utf-8') as out:
        out.write(TEXT + '#ifndef CHEMPI_STATS_CALLS_H\n'
                  '#define CHEMPI_STATS_CALLS_H\n\nenum stats_id {\n')
        for f in counted:
            out.write('    STATS_%s,\n' % f.name[4:])
        out.write('    STATS_COUNT\n};\n\n'
                  'extern const char *const stats_names[STATS_COUNT];\n\n'
                  '#endif\n')
    with open(os.path.join(output_dir, 'wrappers.c'), 'w',
              encoding='utf-8') as out:
        out.write(TEXT + '#include "programs/libchempi-stats/stats.h"\n\n'
                  'const char *const stats_names[STATS_COUNT] = {\n')
        for f in counted:
            out.write('    [STATS_%s] = "%s",\n' % (f.name[4:], f.name))
        out.write('};\n\n')
        for f in counted:
            out.write(wrapper(f))


if __name__ == '__main__':
    main(*sys.argv[1:])
