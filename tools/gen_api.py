#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the API layer from the ABI tables and the bindings.

    gen_api.py API_DIR OUTPUT_DIR

writes api_impl.h (the prototypes of all didl functions that serve MPI
functions), one api_<chapter>.c per chapter of the standard (the PMPI_
functions with their MPI_ aliases) and symbols.map (what the library shows).

A bound function looks handles up, checks its arguments, calls its didl
function and raises what that returns. The int form and the large-count form
of a call end in the same didl function.
"""

import os
import re
import sys

import api_table
from gen_mpi_h import declaration, wrap

FILES = {3: 'pt2pt', 4: 'partitioned', 5: 'datatype', 6: 'coll', 7: 'comm',
         8: 'topology', 9: 'environment', 10: 'info', 11: 'process',
         12: 'onesided', 13: 'external', 14: 'io', 15: 'tool',
         16: 'deprecated', 19: 'language', 20: 'abi'}

# Handles that didl receives as objects: struct name, error class, the null
# handle if that is a legal argument.
OBJECTS = {
    'MPI_Comm': ('comm', 'MPI_ERR_COMM'),
    'MPI_Datatype': ('datatype', 'MPI_ERR_TYPE'),
    'MPI_Op': ('op', 'MPI_ERR_OP'),
    'MPI_Group': ('group', 'MPI_ERR_GROUP'),
    'MPI_Errhandler': ('errhandler', 'MPI_ERR_ERRHANDLER'),
    'MPI_Info': ('info', 'MPI_ERR_INFO'),
    'MPI_Session': ('session', 'MPI_ERR_SESSION'),
    'MPI_Win': ('win', 'MPI_ERR_WIN'),
    'MPI_File': ('file', 'MPI_ERR_FILE'),
}
HEADER_OF = {
    'comm': 'comm/comm', 'datatype': 'datatype/datatype',
    'op': 'op/op', 'group': 'comm/group',
    'errhandler': 'error/error', 'info': 'info/info',
    'session': 'comm/session/session', 'file': 'io/file', 'win': 'rma/win',
}

# Objects beside communicators that have error handlers, and functions whose
# errors go to the handler that is an argument.
HAVE_HANDLER = {'session', 'file', 'win'}

# didl functions that receive what all kinds of objects begin with.
TAKES_ANY_OBJECT = {'chempi_errhandler_' + verb
                    for verb in ('attach', 'query', 'call')}
TAKES_ANY_OBJECT |= {'chempi_buffer_' + verb
                     for verb in ('attach', 'detach', 'flush', 'iflush')}
TAKES_ANY_OBJECT |= {'chempi_attr_' + verb for verb in ('set', 'get', 'delete')}

# didl functions that receive callbacks of several types.
TAKES_ANY_FUNCTION = {'chempi_attr_create_keyval', 'chempi_errhandler_create',
                      'chempi_op_create'}

# Where the constants of bindings.tsv that are not MPI's come from.
FIXED_FROM = {'CHEMPI_MAGIC_': 'base/object', 'CHEMPI_ERRHANDLER_': 'error/error',
              'CHEMPI_SEND_': 'transport/request', 'CHEMPI_TOOL_': 'tool/tool'}
BRINGS_HANDLER = re.compile(r'((Intercomm|Comm)_create_from_groups?|'
                            r'Session_init)$')

# Errors of calls on files that name no open file go to MPI_FILE_NULL's handler
# (section 14.7); these calls take it as an argument, too.
NO_FILE = 'chempi_api_blame(&chempi_file_null.obj)'
TAKES_FILE_NULL = {'File_call_errhandler', 'File_get_errhandler',
                   'File_set_errhandler'}
# These find out themselves whose error handler hears of errors.
BLAMES_ITSELF = {'File_close'}

# Callable before MPI_Init and after MPI_Finalize.
ANY_TIME = re.compile(
    r'(Init(ialized|_thread)?|Finalized|Info_\w+|Session_\w+|Abi_\w+|T_\w+|'
    r'\w+_create_errhandler|Errhandler_free|Error_\w+|'
    r'(Add|Remove)_error_\w+|Group_from_session_pset)$')

# didl functions that receive the arguments as a struct, and which: all forms
# of collectives, and one-sided operations.
TAKES_CALL = {'chempi_%s_%s' % (room, form): 'coll'
              for room in ('coll', 'neighbor')
              for form in ('perform', 'start', 'prepare')}
TAKES_CALL.update({'chempi_win_' + what: 'rma'
                   for what in ('transfer', 'transfer_by_request',
                                'accumulate', 'accumulate_by_request',
                                'fetch_and_op', 'compare_and_swap')})
MEMBERS = {'comm': 'comm', 'root': 'root', 'op': 'op', 'buffer': 'recv.buf',
           'count': 'recv.count', 'datatype': 'recv.type',
           'sdispls': 'send.displs', 'rdispls': 'recv.displs'}
MEMBERS.update({side + what: side + '.' + member
                for side in ('send', 'recv')
                for what, member in (('buf', 'buf'), ('count', 'count'),
                                     ('counts', 'counts'), ('type', 'type'),
                                     ('types', 'types'))})
RMA_MEMBERS = {'win': 'win', 'op': 'op', 'target_rank': 'rank',
               'target_disp': 'disp', 'target_count': 'count',
               'target_datatype': 'type', 'datatype': 'type',
               'compare_addr': 'compare'}
RMA_MEMBERS.update({side + '_' + what: side + '.' + member
                    for side in ('origin', 'result')
                    for what, member in (('addr', 'buf'), ('count', 'count'),
                                         ('datatype', 'type'))})

# Calls of chapter 15 that take the tools' lock themselves, if at all.
LOCK_THEMSELVES = re.compile(
    r'T_(init_thread|finalize|event_(?!get_(num|info|index)|handle_alloc))')

# Functions that take the null handle, too; didl receives NULL.
TAKES_NULL = {'Comm_get_name': 'MPI_COMM_NULL',
              'Type_get_name': 'MPI_DATATYPE_NULL'}

# Handles that mean something at the local leader only, and whose leader it is.
AT_THE_LEADER = {'peer_comm': 'local_comm', 'remote_group': 'local_group'}

# Functions of whose arguments some mean something at the root only, and these.
AT_THE_ROOT = re.compile(r'Comm_(accept|connect|spawn\w*)$')
ROOT_ARGUMENTS = ['port_name', 'info', 'command', 'count']

# Out arguments that say MPI_UNDEFINED when their type is too small.
UNDEFINED_WHEN_BIG = re.compile(
    r'(Get_count|Get_elements|Type_size|Type_get_(true_)?extent)')

# Buffer, count and type that belong together.
TRIPLES = [('buf', 'count', 'datatype'), ('buffer', 'count', 'datatype'),
           ('sendbuf', 'sendcount', 'sendtype'),
           ('recvbuf', 'recvcount', 'recvtype'),
           ('sendbuf', 'count', 'datatype'),
           ('recvbuf', 'count', 'datatype'),
           ('inbuf', 'incount', 'datatype'),
           ('outbuf', 'outcount', 'datatype'),
           ('inbuf', 'count', 'datatype'),
           ('inoutbuf', 'count', 'datatype'),
           ('sendbuf', None, 'sendtype'), ('recvbuf', None, 'recvtype'),
           ('sendbuf', None, 'datatype'), ('recvbuf', None, 'datatype')]

# The same of one-sided calls, whose two sides have counts of their own.
TRIPLES += [('origin_addr', 'origin_count', 'origin_datatype'),
            ('result_addr', 'result_count', 'result_datatype'),
            ('origin_addr', None, 'datatype'),
            ('target_disp', None, 'target_datatype')]

# Pointers that may be NULL, by parameter name.
MAY_BE_NULL = re.compile(
    r'(argc|argv|.*buf|buffer|.*_addr|base|location|extra_state|status|'
    r'array_of_\w+|attribute_val|.*_fn|errcodes|void|'
    r'sources|destinations|\w*weights|degrees|edges|indx|dims|periods|coords|'
    r'remain_dims|neighbors|ranks[12]?|ranges|fd|value|'
    r'recvcounts|sendcounts|\w*displs|\w+types)$')

# Functions whose arrays must not be NULL unless they are empty, and their
# length.
LISTS = {
    r'Type_(create_)?h?indexed(_block)?': 'count',
    r'Type_create_struct': 'count',
    r'Type_create_(subarray|darray)': 'ndims',
    r'Group_(range_)?(incl|excl)': 'n',
}


def significance(stem):
    """When which side of a rooted or in-place collective counts.

    Returns {'send': C condition, 'recv': ..., 'both': ...}; a missing key
    means always.
    """
    if re.match(r'I?neighbor', stem, re.I):
        return {}
    base = re.sub(r'_init$', '', stem)
    base = re.sub(r'^I', '', base).lower()
    in_place = 'sendbuf != MPI_IN_PLACE'
    if base in ('gather', 'gatherv'):
        return {'send': 'root >= 0 && ' + in_place, 'recv': 'is_root'}
    if base in ('scatter', 'scatterv'):
        return {'send': 'is_root',
                'recv': 'root >= 0 && recvbuf != MPI_IN_PLACE'}
    if base in ('allgather', 'allgatherv', 'alltoall', 'alltoallv'):
        return {'send': in_place}
    if base in ('get_accumulate', 'rget_accumulate'):
        return {'origin': 'op != MPI_NO_OP'}
    if base == 'bcast':
        return {'both': 'root != MPI_PROC_NULL'}
    if base == 'reduce':
        return {'both': 'root != MPI_PROC_NULL', 'send': 'root >= 0',
                'recv': 'is_root'}
    return {}


def side(name):
    if name.startswith('send'):
        return 'send'
    if name.startswith('origin'):
        return 'origin'
    return 'recv' if name.startswith('recv') else 'both'


class Arg:
    """How one parameter travels from the MPI function to didl."""

    def __init__(self, function, index):
        p = function.params[index]
        o = function.sibling.params[index] if function.sibling else p
        self.param, self.name = p, p.name
        self.mpi_type = p.ctype
        self.kind = 'verbatim'
        self.is_any = (function.binding in TAKES_ANY_OBJECT and index == 0 and
                       p.ctype in OBJECTS)
        self.is_function = (function.binding in TAKES_ANY_FUNCTION and
                            bool(re.search(r'_function(_c)? \*$', p.ctype)))
        types = {p.ctype, o.ctype}
        bare = {t.replace('const ', '').rstrip(' *') for t in types}
        is_wide = bool(bare & {'MPI_Count'}) or len(bare) > 1
        if function.name.startswith('MPI_T_'):
            pass
        elif not p.array and p.ctype in OBJECTS:
            self.kind = 'object'
            self.object, self.errclass = OBJECTS[p.ctype]
        elif is_wide and bare <= {'int', 'MPI_Count', 'MPI_Aint'}:
            if p.array and len(bare) > 1:
                self.kind = 'bigs'
            elif p.array:
                self.kind = 'verbatim'
            elif p.ctype.endswith('*'):
                self.kind = 'out'
            else:
                self.kind = 'wide'

    @property
    def didl_param(self):
        if self.is_any:
            return 'struct chempi_object *object'
        if self.is_function:
            return 'void (*%s)(void)' % self.name
        if self.kind == 'object':
            return 'struct chempi_%s *%s' % (self.object, self.name)
        if self.kind == 'bigs':
            return 'struct chempi_count_array ' + self.name
        if self.kind == 'out':
            return 'MPI_Count *' + self.name
        if self.kind == 'wide':
            return 'MPI_Count ' + self.name
        return self.param.text

    @property
    def didl_key(self):
        """Type without the name, to compare prototypes."""
        if self.is_function:
            return 'function'
        if self.kind == 'verbatim':
            return self.param.type_key
        return self.didl_param.rpartition('*' if self.is_any else
                                          self.name)[0]

    @property
    def is_pointer_out(self):
        p = self.param
        return (p.ctype.endswith('*') and not p.array and
                not p.ctype.startswith('const') and
                not p.ctype.endswith('_function *') and
                not p.ctype.endswith('_function_c *'))

    def value(self):
        if self.is_any:
            return '&x_%s->obj' % self.name
        if self.is_function:
            return '(void (*)(void))' + self.name
        if self.kind == 'object':
            return 'x_' + self.name
        if self.kind == 'bigs':
            wide = 'false' if self.param.ctype == 'const int' else 'true'
            return '(struct chempi_count_array){%s, %s}' % (self.name, wide)
        if self.kind == 'out' and self.mpi_type != 'MPI_Count *':
            return '&x_' + self.name
        return self.name


def with_fixed(f, texts, is_value):
    """The arguments (or parameters) of f's didl function, with what it is told
    besides: an object that is none first, the rest last."""
    first, last = [], []
    for name, value in f.fixed:
        if value == 'NULL':
            first.append(value if is_value else 'struct chempi_object *' + name)
        else:
            ctype = 'bool' if value in ('true', 'false') else 'int'
            last.append(value if is_value else '%s %s' % (ctype, name))
    return first + texts + last


# Strings that are not shown: names of ports are secrets, and others than the
# root may give anything for a command.
UNSHOWN = ['port_name', 'command']


def letter(p):
    """How chempi_api_fail() writes an argument."""
    if p.ctype == 'const char *' and not p.array and p.name not in UNSHOWN:
        return 's'
    if p.array or p.ctype.endswith('*'):
        return 'p'
    if p.ctype in OBJECTS or p.ctype in ('MPI_Request', 'MPI_Message'):
        return 'h'
    if p.ctype not in ('int', 'MPI_Count', 'MPI_Aint', 'MPI_Offset'):
        return 'p'
    if re.match(r'(dest|source|root|rank)$', p.name):
        return 'r'
    return 't' if p.name.endswith('tag') else 'i'


def signature(f):
    """A letter and the name of each parameter: "pbuf icount hdatatype"."""
    return ' '.join(letter(p) + p.name for p in f.params)


class Body:
    """The text of one bound function."""

    def __init__(self, function):
        self.f = function
        self.stem = function.stem
        self.args = [Arg(function, i) for i in range(len(function.params))]
        self.by_name = {a.name: a for a in self.args}
        comms = [a for a in self.args
                 if a.kind == 'object' and a.object == 'comm' and
                 self.stem != 'File_open']
        self.comm = 'x_' + comms[0].name if comms else 'NULL'
        self.blamed = self.comm if comms else self.find_blamed()
        self.cond = significance(self.stem)
        self.members = api_table.tells_members(self.stem)
        self.has_members = False  # the object was found
        self.lines = []

    def find_blamed(self):
        """The C expression that says whose error handler hears of errors."""
        for a in self.args:
            if a.kind == 'object' and (
                    a.object in HAVE_HANDLER or
                    a.object == 'errhandler' and
                    BRINGS_HANDLER.match(self.stem)):
                return 'chempi_api_blame(&x_%s->obj)' % a.name
        if (re.match(r'(File_(?!create_errhandler)|Register_datarep)',
                     self.stem) and
                self.stem not in BLAMES_ITSELF):
            return NO_FILE
        return 'NULL'

    def line(self, text, depth=1):
        pad = '    ' * depth
        self.lines.append(wrap(pad + text, pad + '    '))

    def refuse(self, condition, call, depth=1):
        """if (condition) the call fails with chempi_api_<call>."""
        name, _, rest = call.partition('(')
        self.line('if (CHEMPI_UNLIKELY(%s)) {' % condition, depth)
        self.line('rc = chempi_api_%s(%s;' % (name, rest), depth + 1)
        self.line('goto %s;' % ('call' if self.has_members else 'failed'),
                  depth + 1)
        self.line('}', depth)

    def has(self, name, *kinds):
        a = self.by_name.get(name)
        return a is not None and (not kinds or a.kind in kinds)

    def condition(self, name):
        parts = [self.cond.get('both')]
        if side(name) != 'both':
            parts.append(self.cond.get(side(name)))
        return ' && '.join(p for p in parts if p)

    def declare(self):
        for a in self.args:
            if a.kind == 'object':
                self.line('struct chempi_%s *x_%s = NULL;' %
                          (a.object, a.name))
            elif a.kind == 'out' and a.mpi_type != 'MPI_Count *':
                self.line('MPI_Count x_%s;' % a.name)
        if 'is_root' in ' '.join(self.cond.values()):
            self.line('bool is_root;')
        for p in self.f.params:
            self.line('CHEMPI_API_KEEP%s(%s);' %
                      ('_INT' if p.ctype == 'int' and not p.array else '',
                       p.name))
        self.line('int rc = MPI_SUCCESS;' if self.members else 'int rc;')
        self.lines.append('')

    def check_phase(self):
        if not ANY_TIME.match(self.stem):
            self.refuse('!chempi_ctx_is_up()', 'bad_phase()')

    def where(self, a):
        """What follows a condition on an argument of the root's."""
        is_roots = AT_THE_ROOT.match(self.stem) and a.name in ROOT_ARGUMENTS
        return ' && x_comm->rank == root' if is_roots else ''

    def check_at_leader(self, a):
        """Words only: didl receives NULL, and fails at all members."""
        self.line('if (x_%s->rank == local_leader) {' % AT_THE_LEADER[a.name])
        self.line('x_%s = chempi_%s_lookup(%s);' % (a.name, a.object, a.name),
                  2)
        self.line('if (CHEMPI_UNLIKELY(!x_%s))' % a.name, 2)
        self.line('(void)chempi_api_note_handle("%s", %s, (const void *)%s);' %
                  (a.name, a.errclass, a.name), 3)
        self.line('}')

    def check_object(self, a):
        if a.object == 'datatype':
            return
        if a.name in AT_THE_LEADER:
            self.check_at_leader(a)
            return
        depth = 1
        way = 'or_null' if self.stem in TAKES_FILE_NULL and \
            a.object == 'file' else 'lookup'
        call = 'x_%s = chempi_%s_%s(%s);' % (a.name, a.object, way, a.name)
        condition = '!x_' + a.name
        if a.object == 'info' and not self.stem.startswith('Info_'):
            condition += ' && %s != MPI_INFO_NULL' % a.name
        condition += self.where(a)
        if self.stem in TAKES_NULL:
            condition += f' && {a.name} != {TAKES_NULL[self.stem]}'
        is_own = 'x_' + a.name + '->' in self.blamed + '->'
        where = 'NULL' if is_own else self.blamed
        if is_own and a.object == 'file':
            where = NO_FILE
        if a.object == 'op' and self.condition('op'):
            self.line('if (%s) {' % self.condition('op'))
            depth = 2
        self.line(call, depth)
        self.refuse(condition, 'bad_handle(%s, "%s", %s, '
                    '(const void *)%s)' % (where, a.name,
                                           a.errclass, a.name), depth)
        if depth == 2:
            self.line('}')
        if a.name == self.members:
            self.has_members = True

    def find_root(self):
        if 'is_root' in ' '.join(self.cond.values()):
            self.line('is_root = chempi_api_is_root(%s, root);' % self.comm)

    def check_numbers(self):
        comm = self.comm
        if self.has('root') and comm != 'NULL':
            self.refuse('!chempi_api_is_root_ok(%s, root)' % comm,
                        'bad_root(%s, "root", root)' % comm)
        if comm == 'NULL':
            return
        for name, test in (('dest', 'dest'), ('source', 'source'),
                           ('rank', 'member')):
            if self.has(name) and self.by_name[name].mpi_type == 'int':
                self.refuse('!chempi_api_is_%s_ok(%s, %s)' %
                            (test, comm, name),
                            'bad_rank(%s, "%s", %s)' %
                            (comm, name, name))
        for name in ('tag', 'sendtag', 'recvtag'):
            if not self.has(name):
                continue
            is_recv = name == 'recvtag' or (name == 'tag' and
                                            self.has('source'))
            test = name + ' < 0'
            if is_recv:
                test += ' && %s != MPI_ANY_TAG' % name
            self.refuse(test, 'bad_tag(%s, "%s", %s)' %
                        (comm, name, name))

    def check_count(self, name, depth):
        a = self.by_name.get(name)
        if a and a.kind in ('wide', 'verbatim') and not a.param.array:
            self.refuse(name + ' < 0' + self.where(a), 'bad_count(%s, "%s", %s)' %
                        (self.blamed, name, name), depth)

    def check_type(self, a, is_buffer):
        """Look the type up and check its count, where they matter."""
        condition = self.condition(a.name)
        depth = 2 if condition else 1
        if condition:
            self.line('if (%s) {' % condition)
        self.line('x_%s = chempi_datatype_lookup(%s);' % (a.name, a.name),
                  depth)
        usable = ('!chempi_api_is_type_ok(x_%s)' if is_buffer else
                  '!x_%s') % a.name
        if self.stem in TAKES_NULL:
            usable += f' && {a.name} != {TAKES_NULL[self.stem]}'
        self.refuse(usable, 'bad_type(%s, "%s", %s)' %
                    (self.blamed, a.name, a.name), depth)
        if condition:
            self.line('}')

    def check_types(self):
        for a in self.args:
            if a.kind == 'object' and a.object == 'datatype':
                is_buffer = any(t == a.name and self.has(b)
                                for b, _, t in TRIPLES)
                self.check_type(a, is_buffer)

    def check_type_count(self, a):
        """The count that belongs to a type, where both matter."""
        condition = self.condition(a.name)
        for buf, count, type_name in TRIPLES:
            if type_name != a.name or not count or not self.has(buf) or \
                    not self.has(count):
                continue
            if condition:
                self.line('if (%s) {' % condition)
            self.check_count(count, 2 if condition else 1)
            if condition:
                self.line('}')
            return

    def check_counts(self):
        done = set()
        for a in self.args:
            if a.kind == 'object' and a.object == 'datatype':
                self.check_type_count(a)
                done.update(c for b, c, t in TRIPLES
                            if t == a.name and self.has(b))
        for a in self.args:
            if (a.name.endswith('count') and a.name not in done and
                    a.param.ctype in ('int', 'MPI_Count') and
                    not a.param.array):
                self.check_count(a.name, 1)

    def check_buffers(self):
        for buf, count, type_name in TRIPLES:
            if not (count and self.has(buf) and self.has(type_name, 'object')
                    and self.has(count, 'wide', 'verbatim')):
                continue
            if self.by_name[count].param.array:
                continue
            test = ('!%s && chempi_api_needs_buffer(x_%s, %s)' %
                    (buf, type_name, count))
            cond = self.cond.get(side(buf))
            if cond and side(type_name) == 'both':
                test += ' && %s' % cond
            self.refuse(test, 'bad_buffer(%s, "%s")' %
                        (self.blamed, buf))

    def check_pointers(self):
        for a in self.args:
            if self.stem == 'Session_get_nth_pset' and a.name == 'pset_name':
                continue # a length of 0 asks for the length alone
            if a.param.array or MAY_BE_NULL.match(a.name) and not (
                    a.name == 'status' and self.needs_status() or
                    a.name == 'attribute_val' and '_get' in self.stem):
                continue
            ctype = a.param.ctype
            is_text = ctype == 'const char *'
            is_fn = re.search(r'_function(_c)? \*$', ctype)
            if not (a.is_pointer_out or is_text or
                    ctype == 'const MPI_Status *' or
                    is_fn and a.name.endswith('errhandler_fn') or
                    is_fn and a.name == 'user_fn'):
                continue
            errclass = {'key': 'MPI_ERR_INFO_KEY',
                        'request': 'MPI_ERR_REQUEST'}.get(a.name,
                                                          'MPI_ERR_ARG')
            self.refuse('!' + a.name + self.where(a), 'null_pointer(%s, "%s", %s)' %
                        (self.blamed, a.name, errclass))

    def check_request_array(self):
        a = self.by_name.get('array_of_requests')
        count = 'incount' if self.has('incount') else 'count'
        if a and self.has(count):
            self.refuse('!array_of_requests && %s > 0' % count,
                        'null_pointer(NULL, "array_of_requests", '
                        'MPI_ERR_REQUEST)')

    def check_lists(self):
        """Arrays that a constructor reads, when there is anything in them."""
        length = next((name for stem, name in LISTS.items()
                       if re.fullmatch(stem, self.stem)), None)
        for a in self.args:
            if length and a.param.array:
                self.refuse('!%s && %s > 0' % (a.name, length),
                            'null_pointer(%s, "%s", MPI_ERR_ARG)' %
                            (self.blamed, a.name))

    def needs_status(self):
        return bool(re.match(r'(Status_|Get_|Test_cancelled)', self.stem))

    def call(self):
        for a in self.args:
            if a.kind == 'out' and a.mpi_type != 'MPI_Count *':
                start = '*position' if a.name == 'position' else '0'
                self.line('x_%s = %s;' % (a.name, start))
        values = with_fixed(self.f, [a.value() for a in self.args], True)
        if self.f.binding in TAKES_CALL:
            values = [getattr(self, TAKES_CALL[self.f.binding])()] + [
                a.name for a in self.args if a.name == 'request'
            ] + with_fixed(self.f, [], True)
        if self.members:
            self.lines.append('call:')
            self.has_members = False
            values.append('rc')
        self.line('rc = %s(%s);' % (self.f.binding, ', '.join(values)))
        self.line('if (CHEMPI_UNLIKELY(rc != MPI_SUCCESS)) {')
        if self.blamed.startswith('x_'):
            self.line('chempi_api_blame_comm(kept_%s);' % self.blamed[2:], 2)
        elif self.blamed != 'NULL':
            self.line('(void)%s;' % self.blamed, 2)
        self.line('goto failed;', 2)
        self.line('}')

    def rma(self):
        """The arguments of a one-sided operation as struct chempi_rma_call."""
        call = []
        for a in self.args:
            member = RMA_MEMBERS.get(a.name)
            if member:
                cast = '(char *)(uintptr_t)' if member.endswith('buf') else ''
                call.append('.%s = %s' % (member, cast + a.value()))
        return '&(struct chempi_rma_call){%s}' % ', '.join(call)

    def coll(self):
        """The arguments of a collective as struct chempi_coll_call."""
        name = re.fullmatch(r'I?(neighbor_)?(\w+?)(_init)?', self.stem, re.I)[2]
        call = ['.kind = CHEMPI_COLL_' + name.upper()]
        for a in self.args:
            member = MEMBERS.get(a.name)
            if a.name == 'displs':
                side = 'send' if self.has('sendcounts') else 'recv'
                member = side + '.displs'
            if not member:
                continue
            value = a.value()
            if a.kind == 'verbatim' and member.endswith('displs'):
                value = '{%s, true}' % value # addresses in both forms
            cast = '(void *)(uintptr_t)' if member == 'send.buf' else ''
            call.append('.%s = %s%s' % (member, cast, value))
        return '&(struct chempi_coll_call){%s}' % ', '.join(call)

    def store(self):
        for a in self.args:
            if a.kind != 'out' or a.mpi_type == 'MPI_Count *':
                continue
            if a.mpi_type == 'int *' and UNDEFINED_WHEN_BIG.match(self.stem):
                self.line('*%s = chempi_api_int_or_undefined(x_%s);' %
                          (a.name, a.name))
                continue
            if a.mpi_type == 'int *':
                self.refuse('x_%s != (int)x_%s' % (a.name, a.name),
                            'too_large(%s, "%s", "%s", x_%s)' %
                            (self.blamed, self.f.name, a.name, a.name))
            self.line('*%s = (%s)x_%s;' %
                      (a.name, a.mpi_type[:-2], a.name))

    def check_if_asked(self):
        """What a setting can turn off: all but the look-up of handles."""
        start = len(self.lines)
        self.check_numbers()
        self.check_counts()
        self.check_buffers()
        self.check_pointers()
        self.check_request_array()
        self.check_lists()
        checks = self.lines[start:]
        if checks:
            self.lines[start:] = (
                ['    if (CHEMPI_LIKELY(chempi_api_is_checking())) {'] + checks +
                ['    }'])

    def text(self):
        if self.f.name.startswith('MPI_T_'):
            return self.tool_text()
        self.declare()
        self.check_phase()
        objects = [a for a in self.args if a.kind == 'object']
        objects.sort(
            key=lambda a: 'x_%s->' % a.name not in self.blamed + '->')
        for a in objects:
            self.check_object(a)
        self.find_root()
        self.check_types()
        self.check_if_asked()
        self.call()
        self.store()
        self.line('return MPI_SUCCESS;')
        self.lines.append('failed:')
        self.line('return chempi_api_fail(%s);' % ', '.join(
            ['rc', '"%s"' % self.f.name, '"%s"' % signature(self.f)] +
            ['CHEMPI_API_ARG(kept_%s)' % p.name for p in self.f.params]))
        return '\n'.join(self.lines)

    def tool_text(self):
        """Chapter 15 checks for itself and raises no error handler."""
        values = with_fixed(self.f, [a.name for a in self.args], True)
        call = '%s(%s);' % (self.f.binding, ', '.join(values))
        if LOCK_THEMSELVES.match(self.stem):
            self.line('return ' + call)
            return '\n'.join(self.lines)
        self.line('int rc = chempi_tool_enter();')
        self.lines.append('')
        self.line('return rc ? rc : chempi_tool_leave(%s);' % call[:-1])
        return '\n'.join(self.lines)


def definition(f):
    head = wrap('int P%s(%s)' % (f.name, f.param_text))
    return 'CHEMPI_EXPORT\n%s\n{\n%s\n}\n\n' % (head, Body(f).text())


def alias(f):
    text = 'CHEMPI_EXPORT CHEMPI_WEAK_ALIAS("P%s")\n' % f.name
    return text + declaration(f.returns, f.name, f.param_text) + '\n'


def impl_header(functions):
    seen = {}
    out = ['/* SPDX-License-Identifier: BSD-3-Clause */\n'
           '/*\n'
           ' * The didl functions that serve MPI functions. Generated; do not'
           ' edit.\n'
           ' * Arguments are checked by the API as far as it can; objects are'
           ' not NULL,\n'
           ' * except an info object (MPI_INFO_NULL) and what is not'
           ' significant at this\n'
           ' * process (types and operations of rooted or in-place'
           ' collectives, peer_comm).\n'
           ' * Collective calls on files, and those by which worlds meet, have'
           ' another argument:\n'
           ' * `refused` is the class, noted with words, of what is wrong with'
           ' the others,\n'
           ' * which do not count then, or 0.\n'
           ' * Each returns an MPI error class after chempi_error_set().\n'
           ' */\n'
           '#ifndef CHEMPI_LIBCHEMPI_API_IMPL_H\n'
           '#define CHEMPI_LIBCHEMPI_API_IMPL_H\n\n'
           '#include <mpi.h>\n'
           '#include <stdbool.h>\n\n'
           '#include "libchempi/didl/base/count_array.h"\n\n']
    for name in sorted(['object', 'coll_call', 'rma_call'] +
                       [name for name, _ in OBJECTS.values()]):
        out.append('struct chempi_%s;\n' % name)
    out.append('\n')
    for f in functions:
        if f.status != 'yes':
            continue
        args = [Arg(f, i) for i in range(len(f.params))]
        key = with_fixed(f, [a.didl_key for a in args], False)
        key = [k.replace('*object', '') for k in key]
        if f.binding in TAKES_CALL:
            key = None
        if f.binding in seen:
            other, other_key = seen[f.binding]
            if key != other_key:
                raise SystemExit('bindings.tsv: %s and %s cannot share %s' %
                                 (other, f.name, f.binding))
            continue
        seen[f.binding] = f.name, key
        params = with_fixed(f, [a.didl_param for a in args], False)
        if api_table.tells_members(f.stem):
            params.append('int refused')
        if f.binding in TAKES_CALL:
            params = with_fixed(
                f, ['struct chempi_%s_call *call' % TAKES_CALL[f.binding]] +
                [p for p in params if p.endswith('request')], False)
        params = ', '.join(params) or 'void'
        out.append(declaration('int', f.binding, params))
    out.append('\n#endif\n')
    return ''.join(out)


def chapter_file(functions):
    out = ['/* SPDX-License-Identifier: BSD-3-Clause */\n'
           '/* MPI 5.0, chapter %d: %s. Generated; do not edit. */\n' %
           functions[0].chapter,
           '#include "libchempi/api/check.h"\n'
           '#include "libchempi/api/api_impl.h"\n']
    used = {Arg(f, i).object for f in functions if f.status == 'yes'
            for i in range(len(f.params)) if Arg(f, i).kind == 'object'}
    if any(f.stem == 'File_open' for f in functions):
        used.add('file')
    headers = [HEADER_OF[name] for name in sorted(used)]
    headers += sorted({header for f in functions for _, value in f.fixed
                       for prefix, header in FIXED_FROM.items()
                       if value.startswith(prefix)} - set(headers))
    if functions[0].chapter[0] == 15:
        headers.append('tool/tool')
    if any(TAKES_CALL.get(f.binding) == 'coll' for f in functions):
        headers.append('coll/call')
    out += ['#include "libchempi/didl/%s.h"\n' % name for name in headers]
    out.append('\n')
    for f in functions:
        if f.status != 'manual': # those bring their alias along
            out.append(definition(f))
            out.append(alias(f))
    return ''.join(out)


def symbols(functions):
    """What the library shows."""
    names = [p + f.name for f in functions for p in ('', 'P')]
    kinds = ['Type' if k == 'Datatype' else k for k in api_table.HANDLES]
    names += ['%s%s_%s' % (p, k, way) for k in kinds for p in ('MPI_', 'PMPI_')
              for way in ('c2f', 'f2c')]
    names += ['%sStatus_%s' % (p, way) for p in ('MPI_', 'PMPI_')
              for way in ('c2f', 'f2c', 'c2f08', 'f082c', 'f2f08', 'f082f')]
    names += ['MPI_F_STATUS_IGNORE', 'MPI_F_STATUSES_IGNORE',
              'MPI_F08_STATUS_IGNORE', 'MPI_F08_STATUSES_IGNORE']
    names += ['mpi_fort_status_ignore_', 'mpi_fort_statuses_ignore_']
    return '{\nglobal:\n%s\nlocal:\n    *;\n};\n' % '\n'.join(
        '    %s;' % n for n in sorted(names))


HANDLE_TYPES = ('MPI_Comm', 'MPI_Group', 'MPI_Win', 'MPI_File', 'MPI_Session',
                'MPI_Message', 'MPI_Info', 'MPI_Errhandler', 'MPI_Request',
                'MPI_Datatype', 'MPI_Op')


def handle_names(constants):
    """Rows {value, "name"} of the predefined handles, for messages."""
    rows = ['    {%s, "%s"},' % (value, name)
            for name, kind, value, *_ in constants if kind in HANDLE_TYPES]
    return '/* Generated by gen_api.py. */\n%s\n' % '\n'.join(rows)


def write(path, text):
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)


def main(api_dir, output_dir):
    functions = api_table.load_functions(api_dir)
    chapters = {number: [] for number in FILES}
    for f in functions:
        chapters[f.chapter[0]].append(f)
    write(os.path.join(output_dir, 'api_impl.h'), impl_header(functions))
    for number, members in chapters.items():
        write(os.path.join(output_dir, 'api_%s.c' % FILES[number]),
              chapter_file(members))
    write(os.path.join(output_dir, 'symbols.map'), symbols(functions))
    write(os.path.join(output_dir, 'handle_names.inc'),
          handle_names(api_table.load_constants(api_dir)))


if __name__ == '__main__':
    main(*sys.argv[1:])
