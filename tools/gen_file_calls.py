#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the didl functions behind MPI_File_read*, write*, iread* and iwrite*:

    gen_file_calls.py API_DIR OUTPUT

The names that bindings.tsv gives them say all that they differ in: where in
the file, who takes part, and when it is done. Each fills in the description of
a call (libchempi/didl/io/op.h) and hands it on. Their prototypes are those of
api_impl.h.
"""

import re
import sys

import api_table
from gen_mpi_h import wrap

NAME = re.compile(r'chempi_io_(?P<now>i?)(?P<what>read|write)'
                  r'(?P<place>_at|_shared|_ordered)?(?P<all>_all)?'
                  r'(?P<half>_begin|_end)?$')
PLACES = {'_at': 'CHEMPI_IO_AT', None: 'CHEMPI_IO_INDIVIDUAL',
          '_shared': 'CHEMPI_IO_SHARED', '_ordered': 'CHEMPI_IO_SHARED'}

HEAD = '''/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that read and write (MPI 5.0, section 14.4). Generated; do not
 * edit. */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/io/op.h"
'''


def prototype(name, params):
    return wrap(f'int {name}(' + ', '.join(params) + ')', ' ' * (len(name) + 5))


def buffer_of(call):
    return ('const ' if call['what'] == 'write' else '') + 'void *buf'


def end_of_split(name, call):
    is_write = 'true' if call['what'] == 'write' else 'false'
    return (prototype(name, ['struct chempi_file *fh', buffer_of(call),
                             'MPI_Status *status']) +
            f'\n{{\n    return chempi_io_end(fh, buf, {is_write}, status);\n'
            '}\n')


def access(name, call):
    params = ['struct chempi_file *fh']
    fields = ['.file = fh', f'.place = {PLACES[call["place"]]}',
              '.buf = (void *)(uintptr_t)buf', '.count = count',
              '.type = datatype']
    if call['place'] == '_at':
        params.append('MPI_Offset offset')
        fields.append('.offset = offset')
    if call['what'] == 'write':
        fields.append('.is_write = true')
    if call['all'] or call['place'] == '_ordered':
        fields += ['.is_collective = true', '.refused = refused']
    params += [buffer_of(call), 'MPI_Count count',
               'struct chempi_datatype *datatype']
    if call['half']:
        last, handed_on = None, 'chempi_io_begin(&c)'
    elif call['now']:
        last, handed_on = 'MPI_Request *request', 'chempi_io_start(&c, request)'
    else:
        last, handed_on = 'MPI_Status *status', 'chempi_io_do(&c, status)'
    if last:
        params.append(last)
    if call['all'] or call['place'] == '_ordered':
        params.append('int refused')
    lines = ',\n        '.join(fields)
    return (prototype(name, params) + '\n{\n    struct chempi_io_call c = {\n'
            f'        {lines},\n    }};\n\n    return {handed_on};\n}}\n')


def main():
    api_dir, output = sys.argv[1:]
    names = {f.binding for f in api_table.load_functions(api_dir)
             if f.status == 'yes'}
    out = [HEAD]
    for name in sorted(names):
        call = NAME.match(name)
        if call:
            is_end = call['half'] == '_end'
            out.append((end_of_split if is_end else access)(name, call))
    with open(output, 'w', encoding='utf-8') as file:
        file.write('\n'.join(out))


if __name__ == '__main__':
    main()
