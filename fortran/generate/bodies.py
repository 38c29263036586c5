#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the bodies of Fortran's procedures in C: bodies.py OUTPUT_DIR

bodies_<n>.c, each compiled twice (see lib/binding.h). A procedure without
choice buffers has one body for all interfaces, since addresses of handles,
numbers and statuses are the same; with choice buffers it has one by address
(mpif.h) and one by C descriptors (mpi and mpi_f08). Written by hand in lib/
are the functions of MANUAL.
"""
import os
import re
import sys

import table
import within
from table import CHOICES, HANDLES

PIECES = 4
MANUAL = re.compile(
    r'MPI_(Op_create(_c)?|Register_datarep(_c)?|Grequest_start|'
    r'(Comm|Win|File|Session)_create_errhandler|'
    r'(Comm|Type|Win)_(create_keyval|set_attr|get_attr)|Init(_thread)?|'
    r'Keyval_create|Attr_put|Attr_get|Pcontrol|'
    r'Info_get|Info_get_string|Session_get_nth_pset|'
    r'Comm_spawn(_multiple)?|Comm_idup(_with_info)?)')
C_TYPES = {'aint': 'MPI_Aint', 'count': 'MPI_Count', 'offset': 'MPI_Offset',
           'status': 'MPI_Status', 'cptr': 'void *', 'detach': 'void *',
           'string': 'char', 'bits': 'void'}
# Strings of which blanks at the start go, too.
STRIPPED = {'key', 'value'}
WAITS = re.compile(r'MPI_(Wait|Test|Request_get_status)(all|any|some|_all|'
                   r'_any|_some)?$')


def address(text):
    """`text` as a parameter: types that end in * want no blank."""
    return text if text.endswith('*') else text + ' '


class Body:
    """One body: `by_descriptor` says in which form choices come."""

    def __init__(self, b, by_descriptor, is_f08):
        self.b = b
        self.by_descriptor = by_descriptor
        self.is_f08 = is_f08
        self.params, self.lengths = [], []
        self.decl, self.pre, self.call = [], [], []
        self.post, self.always, self.end = [], [], []
        self.can_fail = False # before the call
        self.is_judged = False # how much of a buffer it uses
        for a in b.args:
            self.param(a)
        arguments = iter(self.convert(a) for a in b.args)
        self.call = [next(arguments) if a.kind != 'omit' else
                     'NULL' if '*' in a.param.text else '0'
                     for a in b.all_args]
        if self.is_judged:
            self.stay_within()

    def param(self, a):
        if self.by_descriptor and (a.kind in CHOICES or a.kind == 'addr' or
                                   a.kind == 'string'):
            self.params.append('CFI_cdesc_t *' + a.name)
        elif a.kind in CHOICES or a.kind == 'addr':
            self.params.append('void *' + a.name)
        else:
            self.params.append('%s*%s' % (
                address(C_TYPES.get(a.kind, 'int')), a.name))
            if a.kind == 'string':
                self.lengths.append('size_t %s_len' % a.name)

    # ---- who hears of an error ----

    def blame(self):
        kinds = ('comm', 'win', 'file', 'session')
        if self.b.name.startswith('MPI_File_'):
            kinds = ('file',)
        for kind in kinds:
            for a in self.b.args:
                if a.kind == kind and not a.way and not a.is_array:
                    return 'CHEMPI_BLAME_%s, %s' % (kind.upper(), a.name)
        if self.b.name.startswith('MPI_File_'):
            return 'CHEMPI_BLAME_FILE, NULL'
        return 'CHEMPI_BLAME_NOBODY, NULL'

    def need_caller(self):
        row = ('const struct chempi_caller caller = {CHEMPI_NAME(%s), %s};' %
               (self.b.name[4:], self.blame()))
        if row not in self.decl:
            self.decl.append(row)

    def no_memory(self, condition):
        self.need_caller()
        self.can_fail = True
        self.pre.append(
            'if (!rc && %s)\n        rc = chempi_error_raise(&caller, '
            'MPI_ERR_NO_MEM,\n            '
            '"no memory to convert an argument");' % condition)

    # ---- one argument: what C is given ----

    def convert(self, a):
        special = getattr(self, 'convert_' + a.kind, None)
        if special:
            return special(a)
        if a.kind in HANDLES:
            return self.handles(a) if a.is_array else self.handle(a)
        if a.is_array or a.way:
            return a.name
        return '*' + a.name

    def handle(self, a):
        into = 'chempi_in_%s(*%s)' % (a.kind, a.name)
        is_pointer = a.param.ctype.endswith('*')
        if not a.way and not is_pointer:
            return into
        c = 'c_' + a.name
        start = into if a.way != '>' else '(%s)0' % HANDLES[a.kind]
        self.decl.append('%s %s = %s;' % (HANDLES[a.kind], c, start))
        if not a.way: # MPI_Cancel and the like change nothing
            return '&' + c
        back = '*%s = chempi_out_%s(%s);' % (a.name, a.kind, c)
        if a.kind == 'request' and a.way == '=':
            self.completed_one(a, c)
        (self.always if a.way == '=' else self.post).append(back)
        return '&' + c

    def length(self, a):
        n = a.length
        if n == '@size':
            return 'chempi_topology_size(chempi_in_comm(*comm))'
        if n.startswith('@'):
            return 'chempi_topology_%s(chempi_in_comm(*comm))' % n[1:]
        return '*' + n

    def handles(self, a):
        """An array of handles: converted into room on the stack or heap."""
        ctype, c = HANDLES[a.kind], 'c_' + a.name
        n = 'n_' + a.name
        kept = self.b.request is not None and not a.way
        length = self.length(a)
        buffer = {'sendtypes': 'sendbuf'}.get(a.name)
        if buffer:
            here = ('%s->base_addr' % buffer if self.by_descriptor else
                    buffer)
            length = ('chempi_in_address(%s) == MPI_IN_PLACE ? 0 : %s' %
                      (here, length))
        self.decl.append('size_t %s = chempi_extent(%s);' % (n, length))
        if kept:
            self.decl.append('%s *%s = chempi_keep_room(%s * sizeof(*%s));' %
                             (ctype, c, n, c))
        else:
            self.decl.append('%s small_%s[CHEMPI_SMALL];' % (ctype, a.name))
            self.decl.append(
                '%s *%s = chempi_room(small_%s, sizeof(small_%s), '
                '%s * sizeof(%s));' % (ctype, c, a.name, a.name, n, ctype))
        self.no_memory('!' + c)
        self.pre.append('for (size_t i = 0; !rc && i < %s; i++)\n        '
                        '%s[i] = %s;' % (
                            n, c, '(%s)0' % ctype if a.way == '>' else
                            'chempi_in_%s(%s[i])' % (a.kind, a.name)))
        if a.way:
            test = '%s[i] && ' % c if a.way == '>' else ''
            if a.kind == 'request':
                self.completed_many(a, c)
            loop = ('for (size_t i = 0; %s && i < %s; i++)\n        %s'
                    '%s[i] = chempi_out_%s(%s[i]);' % (
                        c, n, 'if (%s[i])\n            ' % c if test else '',
                        a.name, a.kind, c))
            (self.post if a.way == '>' else self.always).append(loop)
        elif a.kind == 'request' and WAITS.match(self.b.name):
            self.completed_many(a, c)
        if kept:
            keep = ('chempi_keep_memory(*request, %s, %s);' %
                    (c, 'true' if self.b.is_persistent else 'false'))
            self.end.append('if (!rc)\n        %s\n    else\n        '
                            'chempi_keep_room_free(%s);'
                            % (keep, c))
        else:
            self.end.append('chempi_room_free(small_%s, %s);' % (a.name, c))
        return c

    # ---- requests that a call may have completed (keep.h) ----

    def completed_one(self, a, c):
        name = self.b.name
        if name == 'MPI_Request_free':
            self.claim(a.name, '1')
            self.always.append('if (chempi_keep_any() && !rc)\n        '
                               'chempi_keep_freed(%s);' % a.name)
            self.release(a.name, '1')
        elif name == 'MPI_Start':
            self.pre.append('if (chempi_keep_any())\n        '
                            'chempi_keep_start(*%s);' % a.name)
        elif WAITS.match(name):
            flag = ' && c_flag' if any(x.name == 'flag'
                                       for x in self.b.args) else ''
            self.claim(a.name, '1')
            self.always.append(
                'if (chempi_keep_any()%s)\n        chempi_keep_settle(%s, &%s, '
                '1, NULL, 0);' % (flag, a.name, c))
            self.release(a.name, '1')

    def claim(self, name, n):
        self.pre.append('if (chempi_keep_any())\n        '
                        'chempi_keep_claim(%s, %s);' % (name, n))

    def release(self, name, n):
        self.always.append('if (chempi_keep_any())\n        '
                           'chempi_keep_release(%s, %s);' % (name, n))

    def completed_many(self, a, c):
        name = self.b.name
        if name == 'MPI_Startall':
            self.pre.append(
                'for (int i = 0; chempi_keep_any() && i < *count; i++)\n'
                '        chempi_keep_start(%s[i]);' % a.name)
        elif WAITS.match(name):
            which, n_which = 'NULL', '0'
            for x in self.b.args:
                if x.kind == 'index':
                    which = x.name if x.is_array else '&c_' + x.name
                    n_which = '*outcount' if x.is_array else '1'
            flag = ' && c_flag' if any(x.name == 'flag'
                                       for x in self.b.args) else ''
            self.claim(a.name, '*' + a.length)
            self.always.append(
                'if (chempi_keep_any() && %s%s)\n        chempi_keep_settle(%s, '
                '%s, *%s, %s, %s);' % (c, flag, a.name, c, a.length, which, n_which))
            self.release(a.name, '*' + a.length)

    # ---- other kinds ----

    def convert_logical(self, a):
        if not a.is_array and not a.way:
            return 'chempi_in_logical(*%s)' % a.name
        c = 'c_' + a.name
        if not a.is_array:
            self.decl.append('int %s = 0;' % c)
            self.post.append('*%s = chempi_out_logical(%s);' % (a.name, c))
            return '&' + c
        n = 'n_' + a.name
        self.decl.append('size_t %s = chempi_extent(%s);' %
                         (n, self.length(a)))
        self.decl.append('int small_%s[CHEMPI_SMALL];' % a.name)
        self.decl.append('int *%s = chempi_room(small_%s, sizeof(small_%s), '
                         '%s * sizeof(int));' % (c, a.name, a.name, n))
        self.no_memory('!' + c)
        self.pre.append(
            'for (size_t i = 0; !rc && i < %s; i++)\n        %s[i] = '
            'chempi_in_logical(%s[i]);' % (n, c, a.name))
        if a.way:
            self.post.append(
                'for (size_t i = 0; i < %s; i++)\n        %s[i] = '
                'chempi_out_logical(%s[i]);' % (n, a.name, c))
        self.end.append('chempi_room_free(small_%s, %s);' % (a.name, c))
        return c

    def convert_index(self, a):
        if not a.is_array:
            c = 'c_' + a.name
            self.decl.append('int %s = MPI_UNDEFINED;' % c)
            self.end.append('*%s = %s == MPI_UNDEFINED ? %s : %s + 1;' %
                            (a.name, c, c, c))
            return '&' + c
        self.pre.append('*%s = MPI_UNDEFINED;' % a.length)
        self.end.append('for (int i = 0; i < *%s; i++)\n        %s[i]++;' %
                        (a.length, a.name))
        return a.name

    def convert_status(self, a):
        if not a.is_array and a.way != '>':
            return a.name
        return 'chempi_in_status%s(%s)' % ('es' if a.is_array else '', a.name)

    def convert_bits(self, a):
        return a.name

    def convert_weights(self, a):
        return 'chempi_in_weights(%s)' % a.name

    def convert_errcodes(self, a):
        return 'chempi_in_errcodes(%s)' % a.name

    def convert_ranges(self, a):
        return '(int(*)[3])(void *)%s' % a.name

    def convert_cptr(self, a):
        return a.name

    def convert_detach(self, a):
        self.decl.append('void *c_%s = NULL;' % a.name)
        if self.is_f08:
            self.post.append('*%s = chempi_out_buffer(c_%s);' %
                             (a.name, a.name))
        else:
            self.pre.append('(void)%s; /* of no use in this interface */' %
                            a.name)
        return '&c_' + a.name

    def convert_string(self, a):
        chars, length = a.name, a.name + '_len'
        if self.by_descriptor:
            chars, length = a.name + '->base_addr', a.name + '->elem_len'
        if a.way:
            self.decl.append("char c_%s[MPI_MAX_%s + 1] = \"\";" %
                             (a.name, a.detail))
            self.post.append('chempi_text_out(%s, %s, c_%s);' %
                             (chars, length, a.name))
            return 'c_' + a.name
        self.decl.append('struct chempi_text t_%s;' % a.name)
        self.pre.append('chempi_text_init(&t_%s, %s, %s, %s);' % (
            a.name, chars, length,
            'true' if a.name in STRIPPED else 'false'))
        self.no_memory('!t_%s.chars' % a.name)
        self.end.append('chempi_text_fini(&t_%s);' % a.name)
        return 't_%s.chars' % a.name

    # ---- choice buffers ----

    def span(self):
        if self.b.is_persistent:
            return 'CHEMPI_SPAN_PERSISTENT'
        if self.b.request:
            return 'CHEMPI_SPAN_REQUEST'
        return ('CHEMPI_SPAN_UNKNOWN' if self.b.is_nonblocking else
                'CHEMPI_SPAN_CALL')

    @staticmethod
    def way(a):
        return 'CHEMPI_WAY_OUT' if a.way else 'CHEMPI_WAY_IN'

    def choice(self, a, how, *more):
        x = 'x_' + a.name
        self.need_caller()
        self.can_fail = True
        self.decl.append('struct chempi_choice %s = {.name = "%s"};' %
                         (x, a.name))
        self.pre.append('if (!rc)\n        rc = chempi_choice_%s(&%s, %s, '
                        '&caller);' % (how, x, ', '.join((a.name, *more))))
        self.end.append('chempi_choice_end(&%s, rc, %s);' % (
            x, '*request' if self.b.request else 'MPI_FORTRAN_NO_REQUEST'))
        return x

    def convert_buf(self, a):
        if not self.by_descriptor:
            return 'chempi_in_address(%s)' % a.name
        x = self.choice(a, 'buf', within.used_count(self.b, a.count),
                        'chempi_in_type(*%s)' % a.type, self.way(a),
                        self.span())
        self.replaced = getattr(self, 'replaced', {})
        width = next(p for p in self.b.args if p.name == a.count)
        self.replaced[a.count] = ('(int)%s.count' if width.kind == 'int' else
                                  '%s.count') % x
        self.replaced[a.type] = x + '.type'
        return x + '.address'

    def convert_copy(self, a):
        if not self.by_descriptor:
            return 'chempi_in_address(%s)' % a.name
        self.is_judged = True
        return self.choice(a, 'copy', self.way(a), self.span()) + '.address'

    def stay_within(self):
        """After all arguments: buffers hold what the call uses."""
        for buf, condition, function, words in within.calls(self.b):
            self.pre.append(
                'if (!rc && chempi_within_is_asked(&x_%s)%s)\n        rc = '
                'chempi_within_%s(&x_%s, %s, %s, &caller);' % (
                    buf, ' && ' + condition if condition else '', function,
                    buf, buf, words))

    def convert_part(self, a):
        if not self.by_descriptor:
            return 'chempi_in_place_or_automatic(%s)' % a.name
        self.is_judged = True
        return self.choice(a, 'part', within.part_is_used(self.b)) + '.address'

    def convert_addr(self, a):
        return 'chempi_in_place_or_automatic(%s)' % (
            a.name + '->base_addr' if self.by_descriptor else a.name)

    # ---- the text ----

    def text(self, name):
        b = self.b
        replaced = getattr(self, 'replaced', {})
        words = [replaced.get(a.name, word) if a.kind != 'omit' else word
                 for a, word in zip(b.all_args, self.call)]
        call = 'C(%s)(%s)' % (b.name[4:], ', '.join(words))
        params = self.params + ['int *ierror'] * b.has_ierror + self.lengths
        params = ', '.join(params) or 'void'
        if b.is_function:
            return ('CHEMPI_BODY(%s, %s, (%s))\n{\n    return %s;\n}\n' %
                    (b.function.returns, name, params, call))
        rows = list(self.decl)
        rows.append('int rc = MPI_SUCCESS;')
        rows.append('')
        rows += self.pre
        rows.append(('if (!rc)\n        ' if self.can_fail else '') +
                    'rc = %s;' % call)
        if self.can_fail and b.tells_members:
            rows.append(self.take_part(words))
        # Fresh handles first: what follows keeps things for a request.
        post = self.post
        if post:
            rows.append('if (!rc) {\n        %s\n    }' %
                        '\n        '.join(p.replace('\n    ', '\n        ')
                                          for p in post))
        if b.request and any('keep_memory' in e or 'choice_end' in e
                             for e in self.end):
            rows.append('if (!rc && chempi_keep_any())\n        '
                        'chempi_keep_forget(*request);')
        rows += self.order(self.always) + self.end
        rows.append('if (ierror)\n        *ierror = rc;')
        return 'CHEMPI_BODY(void, %s, (%s))\n{\n    %s\n}\n' % (
            name, params, '\n    '.join(rows).replace('\n    \n', '\n\n'))

    def take_part(self, words):
        """After an error, in a call whose errors C tells all members: a type
        or a root that C refuses; a string without memory is one already."""
        bad = {a.type: 'MPI_DATATYPE_NULL'
               for a in self.b.args if a.kind == 'buf'}
        bad['root'] = '-1'
        words = [bad.get(a.name, word)
                 for a, word in zip(self.b.all_args, words)]
        return ('else {\n'
                '        chempi_error_hush(true);\n'
                '        (void)C(%s)(%s);\n'
                '        chempi_error_hush(false);\n    }' %
                (self.b.name[4:], ', '.join(words)))

    @staticmethod
    def order(rows):
        """Look at the old handles before they are overwritten."""
        return sorted(rows, key=lambda r: 'chempi_keep' not in r)


def also(b, symbol, of, params):
    return 'CHEMPI_ALSO_NAMED(void, F(%s), CHEMPI_TEXT_OF(F(%s)), (%s));\n' % (
        symbol, of, params)


def with_aliases(body, name, others):
    text = body.text('F(%s)' % name)
    params = text[text.index(', (') + 3:text.index(')\n{') - 1] \
        if not body.b.is_function else 'void'
    returns = body.b.function.returns if body.b.is_function else 'void'
    if body.b.is_function:
        params = ', '.join(body.params) or 'void'
    for other in others:
        text += ('CHEMPI_ALSO_NAMED(%s, F(%s), CHEMPI_TEXT_OF(F(%s)), (%s));\n'
                 % (returns, other, name, params))
    return text + '\n'


def bodies_of(b, is_in_f08):
    stem = b.name[4:].lower()
    if b.is_large:
        if not is_in_f08:
            return ''
        if b.choices:
            return with_aliases(Body(b, True, True), stem + '_f08ts_', [])
        return with_aliases(Body(b, False, True), stem + '_f08_', [])
    if b.choices:
        return (with_aliases(Body(b, False, False), stem + '_', []) +
                with_aliases(Body(b, True, True), stem + '_f08ts_',
                             [stem + '_fts_']))
    if any(a.kind == 'detach' for a in b.args):
        return (with_aliases(Body(b, False, False), stem + '_', []) +
                with_aliases(Body(b, False, True), stem + '_f08_', []))
    others = [] if b.is_old else [stem + '_f08_']
    if any(a.kind == 'cptr' for a in b.args):
        others.append(stem + '_cptr_')
    return with_aliases(Body(b, False, True), stem + '_', others)


HEAD = '''\
/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of Fortran procedures, part %d. Generated; do not edit. */
#include "fortran/lib/binding.h"
#include "fortran/lib/buffer/choice.h"
#include "fortran/lib/buffer/keep.h"
#include "fortran/lib/text.h"
#include "fortran/lib/topology.h"
#include "fortran/lib/buffer/within.h"

#define MPI_FORTRAN_NO_REQUEST chempi_out_request(MPI_REQUEST_NULL)

'''


def main(output_dir):
    bindings = table.load()
    known = {b.name for _, row in table.in_f08(bindings) for b in row}
    texts = [bodies_of(b, b.name in known) for b in bindings
             if not MANUAL.fullmatch(b.name)]
    step = -(-len(texts) // PIECES)
    for i in range(PIECES):
        path = os.path.join(output_dir, 'bodies_%d.c' % i)
        with open(path, 'w', encoding='utf-8') as out:
            out.write(HEAD % i + ''.join(texts[i * step:(i + 1) * step]))


if __name__ == '__main__':
    main(*sys.argv[1:])
