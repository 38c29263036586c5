# SPDX-License-Identifier: BSD-3-Clause
"""The table of Fortran bindings as Python objects.

Joins libchempi/api/abi/functions.tsv (what the functions are in C) with
fortran/bindings.tsv (what each parameter is in Fortran) and refuses a row in
which the two do not fit.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, 'tools'))

import api_table  # noqa: E402

API_DIR = os.path.join(TOP, 'libchempi', 'api')

# kind -> C type without const, pointer and brackets
HANDLES = {'comm': 'MPI_Comm', 'type': 'MPI_Datatype', 'op': 'MPI_Op',
           'group': 'MPI_Group', 'errhandler': 'MPI_Errhandler',
           'info': 'MPI_Info', 'session': 'MPI_Session',
           'message': 'MPI_Message', 'request': 'MPI_Request',
           'win': 'MPI_Win', 'file': 'MPI_File'}
NUMBERS = {'int': 'int', 'logical': 'int', 'index': 'int', 'weights': 'int',
           'errcodes': 'int', 'ranges': 'int', 'aint': 'MPI_Aint',
           'count': 'MPI_Count', 'offset': 'MPI_Offset'}
CHOICES = {'buf', 'copy', 'part'}
STRINGS = {'string', 'argv', 'commands', 'argvs'}
WORD = re.compile(r'(\w+)(?::(\w+)|\((\w+),(\w+)\))?(?:(\*)(@?\w*))?([>=]?)$')

# Functions of the standard that Fortran does not have.
NOT_IN_FORTRAN = re.compile(r'MPI_T_\w+|MPI_\w+_(to|from)int')

# Functions that Fortran has and C has not: name -> parameters.
FORTRAN_ONLY = {
    'MPI_Sizeof': [('x', 'any'), ('size', 'int>')],
    'MPI_F_sync_reg': [('buf', 'any=')],
    'MPI_Status_f2f08': [('f_status', 'old_status'),
                         ('f08_status', 'new_status>')],
    'MPI_Status_f082f': [('f08_status', 'new_status'),
                         ('f_status', 'old_status>')],
}
NAMES = {'indx': 'index'} # where Fortran's names differ from C's


class Arg:
    def __init__(self, function, param, word):
        m = WORD.match(word)
        if not m:
            raise SystemExit('%s: "%s" is no word of the table' %
                             (function, word))
        self.param = param
        self.cname = param.name if param else None
        self.name = NAMES.get(self.cname, self.cname)
        self.kind, self.detail = m.group(1), m.group(2)
        self.count, self.type = m.group(3), m.group(4)
        self.is_array, self.length = bool(m.group(5)), m.group(6)
        self.way = m.group(7)
        if param:
            self.check(function)

    @property
    def is_out(self):
        return self.way == '>'

    @property
    def is_handle(self):
        return self.kind in HANDLES

    def check(self, function):
        base = self.param.ctype.replace('const ', '').rstrip(' *')
        wanted = HANDLES.get(self.kind) or NUMBERS.get(self.kind)
        if self.kind in ('aint', 'int') and base == 'void':
            wanted = None # attributes and the state of callbacks
        if self.kind == 'status':
            wanted = 'MPI_Status'
        if wanted and base != wanted:
            raise SystemExit('bindings.tsv: %s: %s is %s in C, not %s' %
                             (function, self.cname, base, wanted))
        if bool(self.param.array) != self.is_array and not (
                self.kind in STRINGS or
                self.kind in ('ranges', 'status', 'omit')):
            raise SystemExit('bindings.tsv: %s: %s: * does not fit C' %
                             (function, self.cname))


class Binding:
    """One function: `args` are the parameters that Fortran has."""

    def __init__(self, function, words):
        self.name = function.name
        self.function = function
        if len(words) != len(function.params):
            raise SystemExit('bindings.tsv: %s has %d parameters, not %d' %
                             (self.name, len(function.params), len(words)))
        self.all_args = [Arg(self.name, p, w)
                         for p, w in zip(function.params, words)]
        self.args = [a for a in self.all_args if a.kind != 'omit']
        self.is_large = self.name.endswith('_c')
        self.is_function = function.returns != 'int'
        self.has_ierror = not self.is_function and \
            self.name != 'MPI_Pcontrol'

    @property
    def base(self):
        return self.name[:-2] if self.is_large else self.name

    @property
    def choices(self):
        return [a for a in self.args if a.kind in CHOICES or a.kind == 'addr']

    @property
    def tells_members(self):
        return api_table.tells_members(self.function.stem) is not None

    @property
    def is_old(self):
        """Replaced since MPI-2.0: mpi_f08 never had it."""
        return self.function.deprecated == 'MPI-2.0'

    @property
    def is_persistent(self):
        return self.base.endswith('_init') and self.request is not None

    @property
    def is_nonblocking(self):
        return self.request is not None or bool(
            self.choices and re.search(
                r'_begin$|^MPI_(Put|Get|Accumulate|Get_accumulate|Fetch_and_op|'
                r'Compare_and_swap|Win_create|Win_attach|(\w+_)?'
                r'attach_buffer|Buffer_attach)$', self.base, re.I))

    @property
    def request(self):
        for a in self.args:
            if a.kind == 'request' and a.is_out and not a.is_array:
                return a
        return None

    @property
    def signature(self):
        """What tells specific procedures of a generic name apart."""
        kind = {'aint': 'i8', 'count': 'i8', 'offset': 'i8'}
        return [(kind.get(a.kind, a.kind), a.is_array) for a in self.args]


def load():
    functions = api_table.load_functions(API_DIR)
    by_name = {f.name: f for f in functions}
    bindings, seen = [], set()
    path = os.path.join(TOP, 'fortran', 'bindings.tsv')
    for name, words in api_table.read_tsv(path):
        if name not in by_name or name in seen:
            raise SystemExit('bindings.tsv: %s: unknown, or twice' % name)
        seen.add(name)
        bindings.append(Binding(by_name[name], words.split()))
    for f in functions:
        if (f.name in seen) == bool(NOT_IN_FORTRAN.fullmatch(f.name)):
            raise SystemExit('bindings.tsv: %s is %s the table' % (
                f.name, 'in' if f.name in seen else 'not in'))
    return bindings


def in_f08(bindings):
    """The bindings of mpi_f08 as rows (generic name, [bindings])."""
    out = {}
    for b in bindings:
        if b.is_old:
            continue
        # A user function decides the type: no generic name can.
        alone = b.base in ('MPI_Op_create', 'MPI_Register_datarep')
        row = out.setdefault(b.name if alone else b.base, [])
        if all(b.signature != other.signature for other in row):
            row.append(b)
    return list(out.items())


def in_mpi(bindings):
    return [b for b in bindings if not b.is_large]


def constants():
    """Rows (name, type, value) of the constants that Fortran has."""
    values, rows = {}, []
    for name, ctype, text in api_table.load_constants(API_DIR):
        if ctype == 'alias':
            ctype, text = values[text]
        values[name] = ctype, text
        if name.startswith(('MPI_T_', 'MPI_F_')) or ctype.endswith('*'):
            continue
        if ctype not in ('int', 'MPI_Offset') and \
                ctype not in HANDLES.values():
            continue
        number = int(text, 0)
        if name.startswith('MPI_MAX_'):
            number -= 1 # a Fortran string has no terminating zero
        rows.append((name, ctype, number))
    rows += [('MPI_STATUS_SIZE', 'int', 8), ('MPI_SOURCE', 'int', 1),
             ('MPI_TAG', 'int', 2), ('MPI_ERROR', 'int', 3),
             ('MPI_ADDRESS_KIND', 'int', 8), ('MPI_OFFSET_KIND', 'int', 8),
             ('MPI_COUNT_KIND', 'int', 8), ('MPI_INTEGER_KIND', 'int', 4)]
    rows.sort(key=lambda row: not row[0].endswith('_KIND'))
    return rows


# Constants that are known by their address: name, type in mpi and mpif.h,
# type in mpi_f08, shape.
SENTINELS = [
    ('MPI_BOTTOM', 'integer', 'integer', ''),
    ('MPI_IN_PLACE', 'integer', 'integer', ''),
    ('MPI_BUFFER_AUTOMATIC', 'integer', 'integer', ''),
    ('MPI_STATUS_IGNORE', 'integer', 'type(MPI_Status)', '8'),
    ('MPI_STATUSES_IGNORE', 'integer', 'type(MPI_Status)', '8,1'),
    ('MPI_ERRCODES_IGNORE', 'integer', 'integer', '1'),
    ('MPI_UNWEIGHTED', 'integer', 'integer', '1'),
    ('MPI_WEIGHTS_EMPTY', 'integer', 'integer', '1'),
    ('MPI_ARGV_NULL', 'character', 'character', '1'),
    ('MPI_ARGVS_NULL', 'character', 'character', '1,1'),
]


def sentinel_symbol(name):
    return name.lower().replace('mpi_', 'mpi_fort_', 1) + '_'


# Predefined callbacks: name, and the type of procedure.
PREDEFINED_PROCEDURES = [
    ('MPI_COMM_NULL_COPY_FN', 'Comm_copy_attr_function'),
    ('MPI_COMM_DUP_FN', 'Comm_copy_attr_function'),
    ('MPI_COMM_NULL_DELETE_FN', 'Comm_delete_attr_function'),
    ('MPI_TYPE_NULL_COPY_FN', 'Type_copy_attr_function'),
    ('MPI_TYPE_DUP_FN', 'Type_copy_attr_function'),
    ('MPI_TYPE_NULL_DELETE_FN', 'Type_delete_attr_function'),
    ('MPI_WIN_NULL_COPY_FN', 'Win_copy_attr_function'),
    ('MPI_WIN_DUP_FN', 'Win_copy_attr_function'),
    ('MPI_WIN_NULL_DELETE_FN', 'Win_delete_attr_function'),
    ('MPI_CONVERSION_FN_NULL', 'Datarep_conversion_function'),
    ('MPI_CONVERSION_FN_NULL_C', 'Datarep_conversion_function_c'),
    ('MPI_NULL_COPY_FN', 'Copy_function'),
    ('MPI_DUP_FN', 'Copy_function'),
    ('MPI_NULL_DELETE_FN', 'Delete_function'),
]

# Procedures that users write: type -> (dummy name, kind) ...
_COPY = [('extra_state', 'aint'), ('attribute_val_in', 'aint'),
         ('attribute_val_out', 'aint>'), ('flag', 'logical>'),
         ('ierror', 'int>')]
_DELETE = [('attribute_val', 'aint'), ('extra_state', 'aint'),
           ('ierror', 'int>')]
_CONVERSION = [('userbuf', 'address'), ('datatype', 'type'),
               ('count', 'int'), ('filebuf', 'address'),
               ('position', 'offset'), ('extra_state', 'aint'),
               ('ierror', 'int>')]
_USER = [('invec', 'address'), ('inoutvec', 'address'), ('len', 'int'),
         ('datatype', 'type')]


def _large(rows):
    return [(n, 'count' if n in ('len', 'count') else k) for n, k in rows]


def _old(rows):
    return [(n, k.replace('aint', 'int')) for n, k in rows]


PROCEDURES = {
    'User_function': _USER,
    'User_function_c': _large(_USER),
    'Comm_copy_attr_function':
        [('oldcomm', 'comm'), ('comm_keyval', 'int')] + _COPY,
    'Comm_delete_attr_function':
        [('comm', 'comm'), ('comm_keyval', 'int')] + _DELETE,
    'Type_copy_attr_function':
        [('oldtype', 'type'), ('type_keyval', 'int')] + _COPY,
    'Type_delete_attr_function':
        [('datatype', 'type'), ('type_keyval', 'int')] + _DELETE,
    'Win_copy_attr_function':
        [('oldwin', 'win'), ('win_keyval', 'int')] + _COPY,
    'Win_delete_attr_function':
        [('win', 'win'), ('win_keyval', 'int')] + _DELETE,
    'Copy_function': _old([('oldcomm', 'comm'), ('keyval', 'int')] + _COPY),
    'Delete_function': _old([('comm', 'comm'), ('keyval', 'int')] + _DELETE),
    'Comm_errhandler_function': [('comm', 'comm'), ('error_code', 'int')],
    'Win_errhandler_function': [('win', 'win'), ('error_code', 'int')],
    'File_errhandler_function': [('file', 'file'), ('error_code', 'int')],
    'Session_errhandler_function':
        [('session', 'session'), ('error_code', 'int')],
    'Grequest_query_function':
        [('extra_state', 'aint'), ('status', 'status'), ('ierror', 'int>')],
    'Grequest_free_function': [('extra_state', 'aint'), ('ierror', 'int>')],
    'Grequest_cancel_function':
        [('extra_state', 'aint'), ('complete', 'logical'),
         ('ierror', 'int>')],
    'Datarep_extent_function':
        [('datatype', 'type'), ('extent', 'aint>'), ('extra_state', 'aint'),
         ('ierror', 'int>')],
    'Datarep_conversion_function': _CONVERSION,
    'Datarep_conversion_function_c': _large(_CONVERSION),
}
