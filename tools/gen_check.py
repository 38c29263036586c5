#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write libchempi-check's wrappers: gen_check.py API_DIR OUTPUT_DIR

calls.h has a number per MPI function, wrappers.c their names and the MPI_
functions that tell the checker what is called and then call PMPI_. What ends
requests, and the start and the end of MPI, are written by hand.
"""

import os
import re
import sys

import api_table
from gen_mpi_h import wrap

# Not watched: calls that use nothing, that do not come back, that may come
# before MPI and after it, or that the library defines itself.
LEFT_OUT = re.compile(
    r'MPI_(T_\w+|Abi_\w+|\w+_(to|from)int|Pcontrol|Wtime|Wtick|Aint_\w+|'
    r'Abort|Initialized|Finalized|Status_\w+|Get_(library_)?version|'
    r'Info_\w+|Session_\w+|Error_(class|string)|Query_thread|'
    r'Is_thread_main)$')

BY_HAND = re.compile(
    r'MPI_(Init|Init_thread|Finalize|Wait|Waitall|Waitany|Waitsome|Test|'
    r'Testall|Testany|Testsome|Request_free|Start|Startall)$')

TEXT = '/* SPDX-License-Identifier: BSD-3-Clause */\n/* Generated; do not ' \
       'edit. */\n'

SENDS = re.compile(r'(I|)([bsr]|)send(_init|)$', re.I)
WAITS_FOR_MESSAGES = re.compile(
    r'(S?send|Recv|Sendrecv(_replace)?|M?probe)$', re.I)
RECEIVES = re.compile(r'(Irecv|Recv_init|Recv)$')

# Kinds of objects by the type of the parameter that hands them out.
OBJECTS = {'MPI_Comm *': 'COMM', 'MPI_Datatype *': 'TYPE', 'MPI_Win *': 'WIN',
           'MPI_File *': 'FILE'}
FREES = re.compile(r'(Comm_free|Comm_disconnect|Type_free|Win_free|'
                   r'File_close)$')
# Hand out objects that nobody frees, or later.
HANDS_OUT_OTHERS = re.compile(
    r'(Type_(commit|match_size|create_f90\w*|get_contents|get_value_index)|'
    r'Comm_(get_parent|idup\w*))$')

# Change the memory of a window.
WRITES = re.compile(r'(R?put|R?(get_)?accumulate|Fetch_and_op|'
                    r'Compare_and_swap)$', re.I)

# Take MPI_FILE_NULL.
TAKES_NO_FILE = re.compile(r'File_((get|set|call)_errhandler|create_errhandler)$')

# Collective over a communicator beside those of chapter 6 and 8.
ALSO_COLLECTIVE = re.compile(
    r'(Comm_(dup|dup_with_info|idup|idup_with_info|split|split_type|create)|'
    r'(Cart|Graph|Dist_graph)_create(_adjacent)?|Cart_sub|'
    r'Win_(create|allocate|allocate_shared|create_dynamic)|File_open)$')
COLLECTIVE = re.compile(
    r'i?(neighbor_)?(barrier|bcast|gatherv?|scatterv?|allgatherv?|'
    r'alltoall[vw]?|reduce|allreduce|reduce_scatter(_block)?|scan|exscan)'
    r'(_init)?$', re.I)
RULES = {'bcast': 'SAME', 'reduce': 'SAME', 'allreduce': 'SAME',
         'scan': 'SAME', 'exscan': 'SAME', 'reduce_scatter': 'SAME',
         'reduce_scatter_block': 'SAME', 'gather': 'GATHER',
         'scatter': 'SCATTER', 'allgather': 'EVEN', 'alltoall': 'EVEN',
         'gatherv': 'GATHERV', 'scatterv': 'SCATTERV',
         'allgatherv': 'ALLGATHERV'}


def base_of(stem):
    return re.sub(r'^i(?!n)|_init$', '', stem.lower())


def is_collective(f):
    return bool(COLLECTIVE.match(f.stem) or ALSO_COLLECTIVE.match(f.stem))


class Wrapper:
    """The text of one wrapper."""

    def __init__(self, f):
        self.f = f
        self.names = {p.name: p for p in f.params}
        self.calls = f.name
        self.before, self.after, self.declared = [], [], []
        self.failed = []
        self.makes_request = 'request' in self.names and \
            self.names['request'].ctype == 'MPI_Request *'
        self.is_persistent = f.stem.endswith('_init')
        self.is_wide = f.name.endswith('_c')

    def has(self, *names):
        return all(n in self.names for n in names)

    def message(self):
        """Sends and receives."""
        is_send = bool(SENDS.match(self.f.stem))
        peer = 'dest' if is_send else 'source'
        use = 'CHECK_READS' if is_send else 'CHECK_WRITES'
        plain = re.match(r'(I?)send(_init)?$', self.f.stem, re.I)
        if plain:
            # Nothing is buffered: what relies on that becomes visible.
            self.calls = {'Send': 'MPI_Ssend', 'Isend': 'MPI_Issend',
                          'Send_init': 'MPI_Ssend_init'}[self.f.stem] + (
                              '_c' if self.is_wide else '')
        if not self.is_persistent:
            self.before.append('check_region_test(&call, %s, buf, count, '
                               'datatype);' % use)
        if self.makes_request:
            self.declared.append('struct check_request_info info;')
            self.after += [
                'info = (struct check_request_info){.buf = buf, '
                '.count = count, .type = datatype, .use = %s, .peer = %s, '
                '.tag = tag, .comm = comm, .is_persistent = %s};' % (
                    use, peer, str(self.is_persistent).lower()),
                'check_request_made(&call, *request, &info);']

    def side(self, name):
        """buf, count and type of one side of a collective operation."""
        p = self.names
        if name == 'send' and self.has('sendcount', 'sendtype'):
            return 'sendbuf', 'sendcount', 'sendtype'
        if name == 'recv' and self.has('recvcount', 'recvtype'):
            return 'recvbuf', 'recvcount', 'recvtype'
        if name == 'send' and 'datatype' in p:
            if 'recvcounts' in p:
                wide = 'true' if self.is_wide else 'false'
                return ('recvbuf', 'check_sum(recvcounts, %s, comm)' % wide,
                        'datatype')
            count = 'count' if 'count' in p else 'recvcount'
            buf = 'buffer' if 'buffer' in p else 'recvbuf'
            return buf, count, 'datatype'
        return None

    def collective(self):
        base = base_of(self.f.stem)
        rule = RULES.get(base, 'NO_AMOUNT')
        comm = next(p.name for p in self.f.params if p.ctype == 'MPI_Comm')
        fields = ['.comm = ' + comm,
                  '.root = ' + ('root' if 'root' in self.names
                                else 'CHECK_NO_ROOT'),
                  '.op = ' + ('op' if 'op' in self.names else 'MPI_OP_NULL')]
        if rule != 'NO_AMOUNT':
            fields += ['.rule = CHECK_' + rule]
            for name in ('send', 'recv'):
                side = self.side(name)
                if side:
                    fields += ['.%sbuf = %s, .%scount = %s, .%stype = %s' % (
                        name, side[0], name, side[1], name, side[2])]
            if rule.endswith('V'):
                has_sends = rule == 'SCATTERV'
                fields += ['.counts = ' + ('sendcounts' if has_sends
                                           else 'recvcounts'),
                           '.is_wide = ' + str(self.is_wide).lower()]
                if has_sends:
                    fields += ['.sendbuf = sendbuf, .sendtype = sendtype']
                else:
                    fields += ['.recvbuf = recvbuf, .recvtype = recvtype']
        self.declared += ['struct check_match *match;',
                          'struct check_coll coll;']
        self.before += ['coll = (struct check_coll){%s};' % ', '.join(fields),
                        'match = check_match_begin(&call, &coll);']
        if self.makes_request:
            self.after += ['check_request_coll(&call, *request, match, %s);' %
                           str(self.is_persistent).lower()]
        else:
            self.before += ['check_match_end(match);']

    def objects(self):
        for p in self.f.params:
            kind = OBJECTS.get(p.ctype)
            if not kind or p.array or HANDS_OUT_OTHERS.match(self.f.stem):
                continue
            if FREES.match(self.f.stem):
                self.declared.append('const void *freed;')
                self.before += ['freed = %s ? *(void *const *)%s : NULL;' %
                                (p.name, p.name)]
                if kind == 'COMM':
                    self.before += ['check_drop_shadow(freed);']
                self.after += ['check_freed(CHECK_%s, freed);' % kind]
            else:
                self.after += ['check_made(&call, CHECK_%s, *%s);' %
                               (kind, p.name)]

    def windows(self):
        """What members of a window promise, and whether they keep it."""
        stem = self.f.stem
        if re.match(r'Win_(create|allocate(_shared)?|create_dynamic)$', stem):
            at = next(i for i, b in enumerate(self.before)
                      if b.startswith('match ='))
            amount = 'size, disp_unit' if self.has('size') else '0, 1'
            self.before.insert(
                at, 'check_window_promise(&coll, info, %s);' % amount)
            self.after += ['check_window_made(comm, *win);']
        elif stem == 'Win_free':
            self.before += ['check_window_free(&call, *win);']
            self.after += ['check_window_freed(freed);']
        elif stem == 'Win_fence':
            self.before += ['check_window_fence(&call, win, assert);']
            self.after += ['check_window_fenced(win);']
        elif stem == 'Win_post':
            self.after += ['check_window_posted(&call, group, assert, win);']
        elif stem == 'Win_start':
            self.before += ['check_window_start(&call, group, assert, win);']
        elif stem == 'Win_wait':
            self.after += ['check_window_exposed(win);']
        elif stem == 'Win_test':
            self.after += ['if (*flag)', '    check_window_exposed(win);']
        elif stem == 'Win_set_info':
            self.before += ['check_window_info(win, info);']
        elif stem == 'Win_shared_query':
            self.before += ['check_window_queried(win);']
        elif stem == 'Win_attach':
            self.before += ['check_window_attached();']
        elif stem == 'Win_lock':
            self.before += ['check_window_lock(win, rank, lock_type);']
        elif stem == 'Win_unlock':
            self.before += ['check_window_lock(win, rank, MPI_LOCK_SHARED);']
        elif stem == 'Win_flush':
            self.before += ['check_window_over(win, rank);']
        elif re.match(r'Win_(complete|flush_all|unlock_all|lock_all)$', stem):
            self.before += ['check_window_over(win, CHECK_ALL_TARGETS);']
        elif WRITES.match(stem):
            op = 'op' if 'op' in self.names else 'MPI_OP_NULL'
            count = 'target_count' if 'target_count' in self.names else '1'
            datatype = next(n for n in ('target_datatype', 'datatype')
                            if n in self.names)
            self.before += ['check_window_write(&call, win, target_rank, '
                            'target_disp, %s, %s, %s);' % (count, datatype,
                                                           op)]

    def files(self):
        """Whose errors are returned as a rule, and often not looked at."""
        if self.f.stem == 'File_open':
            self.failed += ['check_open_failed(&call, rc);']
        fh = self.names.get('fh')
        if self.f.stem.startswith('File_') and fh and \
                fh.ctype == 'MPI_File' and \
                not TAKES_NO_FILE.match(self.f.stem):
            self.before += ['check_no_file(&call, fh);']

    def text(self):
        f = self.f
        stem = f.stem
        if SENDS.match(stem) or RECEIVES.match(stem):
            self.message()
        elif is_collective(f):
            self.collective()
        elif self.makes_request and not BY_HAND.match(f.name):
            self.after += ['check_request_plain(&call, *request, %s);' %
                           str(self.is_persistent).lower()]
        if WAITS_FOR_MESSAGES.match(stem):
            self.before += ['check_stick(true);']
        if stem == 'Sendrecv':
            self.before += [
                'check_region_pair(&call, sendbuf, sendcount, sendtype, '
                'recvbuf, recvcount, recvtype);']
        self.objects()
        self.windows()
        self.files()
        lines = [wrap('CHEMPI_EXPORT int %s(%s)' % (f.name, f.param_text)),
                 '{', '    struct check_call call;']
        lines += ['    ' + d for d in self.declared]
        lines += ['    int rc;', '',
                  '    CHECK_ENTER(&call, %s);' % f.name[4:]]
        lines += [wrap('    ' + b, '        ') for b in self.before]
        lines += [wrap('    rc = P%s(%s);' % (
            self.calls, ', '.join(p.name for p in f.params)), '        ')]
        if self.after:
            lines += ['    if (rc == MPI_SUCCESS) {']
            lines += [wrap('        ' + a, '            ')
                      for a in self.after]
            lines += ['    }']
        if self.failed:
            lines += ['    if (rc != MPI_SUCCESS) {']
            lines += ['        ' + a for a in self.failed] + ['    }']
        lines += ['    check_leave(&call);', '    return rc;', '}', '']
        return '\n'.join(lines) + '\n'


def main(api_dir, output_dir):
    functions = [f for f in api_table.load_functions(api_dir)
                 if f.returns == 'int' and not LEFT_OUT.match(f.name)]
    known = {f.name for f in functions}
    with open(os.path.join(output_dir, 'calls.h'), 'w',
              encoding='utf-8') as out:
        out.write(TEXT + '#ifndef CHEMPI_CHECK_CALLS_H\n'
                  '#define CHEMPI_CHECK_CALLS_H\n\n#include <stdint.h>\n\n'
                  'enum check_id {\n')
        for f in functions:
            out.write('    CHECK_%s,\n' % f.name[4:])
        out.write('    CHECK_COUNT\n};\n\n'
                  'extern const char *const check_names[CHECK_COUNT];\n'
                  '/* X for X_c, which may meet in one operation. */\n'
                  'extern const uint16_t check_stems[CHECK_COUNT];\n\n'
                  '#endif\n')
    with open(os.path.join(output_dir, 'wrappers.c'), 'w',
              encoding='utf-8') as out:
        out.write(TEXT + '#include "programs/libchempi-check/check.h"\n\n'
                  'const char *const check_names[CHECK_COUNT] = {\n')
        for f in functions:
            out.write('    [CHECK_%s] = "%s",\n' % (f.name[4:], f.name))
        out.write('};\n\nconst uint16_t check_stems[CHECK_COUNT] = {\n')
        for f in functions:
            stem = f.stem if 'MPI_' + f.stem in known else f.name[4:]
            out.write('    [CHECK_%s] = CHECK_%s,\n' % (f.name[4:], stem))
        out.write('};\n\n')
        for f in functions:
            if not BY_HAND.match(f.name):
                out.write(Wrapper(f).text())


if __name__ == '__main__':
    main(*sys.argv[1:])
