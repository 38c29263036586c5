#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the Fortran sources from the tables: modules.py modules|mpif OUTPUT_DIR

mpi_f08_types.f90, mpi_f08.f90, mpi.f90 (modules) and mpif.h. The procedures
are interfaces only; their bodies are C (bodies.py). Names of the procedures
behind generic names:

    MPI_X_f08    MPI_X_c_f08      mpi_f08, no choice buffer
    MPI_X_f08ts  MPI_X_c_f08ts    mpi_f08, choice buffers by C descriptor
    MPI_X                         mpi and mpif.h, no descriptor
    MPI_X_fts                     mpi, choice buffers by C descriptor
"""
import os
import sys

import table
from table import CHOICES, HANDLES

KINDS = {'int': 'integer', 'index': 'integer', 'weights': 'integer',
         'errcodes': 'integer', 'ranges': 'integer', 'logical': 'logical',
         'bits': 'logical',
         'aint': 'integer(kind=MPI_ADDRESS_KIND)',
         'count': 'integer(kind=MPI_COUNT_KIND)',
         'offset': 'integer(kind=MPI_OFFSET_KIND)'}
HEAD = '''\
! SPDX-License-Identifier: BSD-3-Clause
! %s
! Generated from the tables; do not edit.
'''


def wrap(text, indent='      '):
    """Break a statement at commas for free form."""
    lines, line = [], ''
    for word in text.replace(', ', ',\0').split('\0'):
        if line and len(line) + len(word) > 76:
            lines.append(line + ' &')
            line = indent + '  ' + word
        else:
            line += (' ' if line else '') + word
    return '\n'.join(lines + [line])


def intent(arg):
    if arg.way == '=':
        return ', intent(inout)'
    if arg.way != '>':
        return ', intent(in)'
    # A sentinel may be passed, so the standard declares none for these.
    loose = {'status', 'weights', 'errcodes', 'addr'} | CHOICES
    return '' if arg.kind in loose else ', intent(out)'


def declare(arg, is_f08):
    """Type and attributes of a dummy argument, and its shape."""
    kind, shape = arg.kind, '(*)' if arg.is_array else ''
    if kind in CHOICES or kind == 'addr':
        return 'type(*), dimension(..)', ''
    if kind in HANDLES:
        return 'type(%s)' % HANDLES[kind] if is_f08 else 'integer', shape
    if kind == 'status':
        if is_f08:
            return 'type(MPI_Status)', shape
        return 'integer', '(MPI_STATUS_SIZE%s)' % (',*' if shape else '')
    if kind == 'string':
        return 'character(len=*)', ''
    if kind in ('argv', 'commands'):
        return 'character(len=*)', '(*)'
    if kind == 'argvs':
        return 'character(len=*)', '(count,*)'
    if kind == 'ranges':
        return 'integer', '(3,*)'
    if kind in ('cptr', 'detach'):
        return 'type(c_ptr)', ''
    return KINDS[kind], shape


def imports(declared):
    names = sorted({d[5:d.index(')')] for d in declared
                    if d.startswith('type(') and not d.startswith('type(*')} |
                   {d[d.index('=') + 1:d.index(')')] for d in declared
                    if 'kind=' in d} |
                   ({'MPI_STATUS_SIZE'} if '(MPI_STATUS_SIZE' in
                    ''.join(declared) else set()))
    return '      import :: %s\n' % ', '.join(names) if names else ''


def procedure(name, b, is_f08, symbol=None, loose=()):
    """An interface body. `loose` arguments take anything, by address."""
    dummies = [a.name for a in b.args] + ['ierror'] * b.has_ierror
    bind = " bind(C, name='%s')" % symbol if symbol else ''
    rows = []
    for a in b.args:
        if a.name in loose:
            rows.append('!GCC$ ATTRIBUTES NO_ARG_CHECK :: %s\n'
                        '      type(*) :: %s(*)' % (a.name, a.name))
            continue
        if a.kind.startswith('proc'):
            rows.append('      procedure(MPI_%s) :: %s' %
                        (a.detail, a.name) if is_f08 else
                        '      external :: %s' % a.name)
            continue
        base, shape = declare(a, is_f08)
        more = intent(a)
        if a.kind in CHOICES and b.is_nonblocking or \
                a.kind == 'addr' and b.is_nonblocking:
            more += ', asynchronous'
        rows.append('      %s%s :: %s%s' % (base, more, a.name, shape))
    if b.has_ierror:
        rows.append('      integer, %sintent(out) :: ierror' %
                    ('optional, ' if is_f08 else ''))
    kind = 'subroutine'
    if b.is_function:
        kind = 'function'
        rows.append('      %s :: %s' % (
            'double precision' if b.function.returns == 'double' else
            KINDS['aint'], name))
    types = [declare(a, is_f08)[0] + declare(a, is_f08)[1] for a in b.args
             if not a.kind.startswith('proc') and a.name not in loose]
    if b.is_function and b.function.returns != 'double':
        types.append(KINDS['aint'])
    procs = sorted({'MPI_' + a.detail for a in b.args
                    if a.kind == 'proc' and is_f08})
    text = imports(types)
    if procs:
        text += '      import :: %s\n' % ', '.join(procs)
    return '%s\n%s%s\n    end %s\n' % (
        wrap('    %s %s(%s)%s' % (kind, name, ', '.join(dummies), bind)),
        text, '\n'.join(rows), kind)


def f08_specific(b, prefix):
    """(name, C symbol or None) of a specific procedure of mpi_f08."""
    name = prefix + b.name[4:]
    if b.choices:
        return name + '_f08ts', name.lower() + '_f08ts_'
    return name + '_f08', None


def f08_generic(generic, row, prefix):
    name = prefix + generic[4:]
    out = ['  interface %s\n' % name]
    for b in row:
        specific, symbol = f08_specific(b, prefix)
        out.append(procedure(specific, b, True, symbol))
    out.append('  end interface\n')
    return ''.join(out)


def mpi_generic(b, prefix):
    name = prefix + b.name[4:]
    kinds = {a.kind for a in b.args}
    if 'cptr' in kinds:
        # The old form gives the address as an integer.
        old = procedure(name, b, False)
        pointer = next(a.name for a in b.args if a.kind == 'cptr')
        old = old.replace('type(c_ptr), intent(out) :: ' + pointer,
                          '%s, intent(out) :: %s' % (KINDS['aint'], pointer))
        old = old.replace('c_ptr', 'MPI_ADDRESS_KIND')
        old = old.replace('MPI_ADDRESS_KIND, MPI_ADDRESS_KIND',
                          'MPI_ADDRESS_KIND')
        return '  interface %s\n%s%s  end interface\n' % (
            name, old, procedure(name + '_cptr', b, False))
    if 'detach' in kinds:
        loose = [a.name for a in b.args if a.kind == 'detach']
        return '  interface\n%s  end interface\n' % procedure(
            name, b, False, None, loose)
    if b.choices:
        return '  interface %s\n%s  end interface\n' % (
            name, procedure(name + '_fts', b, False,
                            name.lower() + '_fts_'))
    return '  interface\n%s  end interface\n' % procedure(name, b, False)


def fortran_only(prefix, is_f08):
    """MPI_Sizeof and others that C has not; see table.FORTRAN_ONLY."""
    tail = 'f08ts' if is_f08 else 'fts'
    optional = 'optional, ' if is_f08 else ''
    out = ('  interface %sSizeof\n'
           "    subroutine %sSizeof_%s(x, size, ierror) "
           "bind(C, name='%ssizeof_%s_')\n"
           '      type(*), dimension(..), intent(in) :: x\n'
           '      integer, intent(out) :: size\n'
           '      integer, %sintent(out) :: ierror\n'
           '    end subroutine\n  end interface\n' %
           (prefix, prefix, tail, prefix.lower(), tail, optional))
    out += ('  interface %sF_sync_reg\n'
            "    subroutine %sF_sync_reg_%s(buf) "
            "bind(C, name='%sf_sync_reg_%s_')\n"
            '      type(*), dimension(..), asynchronous :: buf\n'
            '    end subroutine\n  end interface\n' %
            (prefix, prefix, tail, prefix.lower(), tail))
    for name, first, second in (
            ('Status_f2f08', ('f_status', 'integer', '(MPI_STATUS_SIZE)'),
             ('f08_status', 'type(MPI_Status)', '')),
            ('Status_f082f', ('f08_status', 'type(MPI_Status)', ''),
             ('f_status', 'integer', '(MPI_STATUS_SIZE)'))):
        specific = prefix + name + ('_f08' if is_f08 else '')
        out += ('  interface%s\n    subroutine %s(%s, %s, ierror)\n'
                '      import :: MPI_Status, MPI_STATUS_SIZE\n'
                '      %s, intent(in) :: %s%s\n'
                '      %s, intent(out) :: %s%s\n'
                '      integer, %sintent(out) :: ierror\n'
                '    end subroutine\n  end interface\n' %
                (' ' + prefix + name if is_f08 else '', specific, first[0],
                 second[0], first[1], first[0], first[2], second[1],
                 second[0], second[2], optional))
    return out


def callback(name, rows, is_f08):
    """The interface body of a procedure that users write."""
    out, types = [], []
    for dummy, kind in rows:
        kind = kind.rstrip('>=')
        if kind == 'address':
            base, more = 'type(c_ptr)', ', value'
        elif kind == 'status':
            base, more = 'type(MPI_Status)', ''
        elif kind in HANDLES:
            base = 'type(%s)' % HANDLES[kind] if is_f08 else 'integer'
            more = ''
        else:
            base, more = KINDS[kind], ''
        types.append(base)
        out.append('      %s%s :: %s' % (base, more, dummy))
    return '%s\n%s%s\n    end subroutine\n' % (
        wrap('    subroutine %s(%s)' % (name, ', '.join(
            dummy for dummy, _ in rows))), imports(types), '\n'.join(out))


def types_module():
    handles = sorted(set(HANDLES.values()))
    out = [HEAD % 'What the modules mpi and mpi_f08 share: types and kinds.',
           'module mpi_f08_types\n'
           '  use, intrinsic :: iso_c_binding, only: c_char\n'
           '  implicit none\n  private :: c_char\n', common_sentinels()]
    for name, ctype, value in table.constants():
        if name.endswith('_KIND') or name == 'MPI_STATUS_SIZE':
            out.append('  integer, parameter :: %s = %d\n' % (name, value))
    for h in handles:
        out.append('  type, bind(C) :: %s\n    integer :: MPI_VAL\n'
                   '  end type\n' % h)
    out.append('  type, bind(C) :: MPI_Status\n'
               '    integer :: MPI_SOURCE\n    integer :: MPI_TAG\n'
               '    integer :: MPI_ERROR\n'
               '    integer, private :: MPI_internal(5)\n  end type\n')
    for op, name in (('==', 'equal'), ('/=', 'differ')):
        out.append('  interface operator(%s)\n' % op)
        out += ['    module procedure %s_%s\n' % (h.lower(), name)
                for h in handles]
        out.append('  end interface\n')
        out.append('  private :: %s\n' % wrap(', '.join(
            '%s_%s' % (h.lower(), name) for h in handles), '    '))
    out.append('''\
  ! What .true. and .false. are for this compiler; read by the C side.
  integer, bind(C, name='chempi_fortran_true') :: &
    chempi_fortran_true = transfer(.true., 0)
  integer, bind(C, name='chempi_fortran_false') :: &
    chempi_fortran_false = transfer(.false., 0)
contains
''')
    for h in handles:
        for op, name in (('==', 'equal'), ('/=', 'differ')):
            out.append('''\
  elemental logical function %s_%s(a, b) result(answer)
    type(%s), intent(in) :: a, b
    answer = a%%MPI_VAL %s b%%MPI_VAL
  end function
''' % (h.lower(), name, h, op))
    out.append('end module\n')
    return ''.join(out)


def parameters(is_f08):
    out = []
    for name, ctype, value in table.constants():
        if name.endswith('_KIND') or name == 'MPI_STATUS_SIZE':
            continue
        if ctype == 'MPI_Offset':
            row = 'integer(kind=MPI_OFFSET_KIND), parameter :: %s = %d'
        elif ctype == 'int' or not is_f08:
            row = 'integer, parameter :: %s = %d'
        else:
            row = 'type(%s), parameter :: %%s = %s(%%d)' % (ctype, ctype)
        out.append('  ' + row % (name, value) + '\n')
    for name in ('MPI_SUBARRAYS_SUPPORTED', 'MPI_ASYNC_PROTECTS_NONBLOCKING'):
        out.append('  logical, parameter :: %s = .true.\n' % name)
    return ''.join(out)


def is_status(name):
    return name.startswith('MPI_STATUS')


def variable(name, base, shape):
    """The library's own, with the symbol of a COMMON block of mpif.h."""
    if base == 'character':
        base = 'character(kind=c_char)'
    # Programs may ask for its c_loc(): MPI_Buffer_detach returns that.
    target = ', target' if name == 'MPI_BUFFER_AUTOMATIC' else ''
    return "  %s, bind(C, name='%s')%s :: %s%s\n" % (
        base, table.sentinel_symbol(name), target, name,
        '(%s)' % shape if shape else '')


def common_sentinels():
    """Those of both modules: each has one address, whatever interface a source
    file uses, and one entity, so that a file may use both modules."""
    return ''.join(variable(name, old, shape)
                   for name, old, _, shape in table.SENTINELS
                   if not is_status(name))


def sentinels(is_f08):
    """Ignored statuses, whose types differ: COMMON blocks in mpi. With
    variables in both, no file could use both modules."""
    out = []
    for name, old, new, shape in table.SENTINELS:
        if not is_status(name):
            continue
        if is_f08:
            out.append(variable(name, new, '1' if name.endswith('ES_IGNORE')
                                else ''))
        else:
            out.append('  %s :: %s(%s)\n  common /%s/ %s\n' % (
                old, name, shape, table.sentinel_symbol(name)[:-1], name))
    return ''.join(out)


def f08_module(bindings):
    out = [HEAD % 'The module mpi_f08: chapter 19 of MPI 5.0.',
           'module mpi_f08\n'
           '  use, intrinsic :: iso_c_binding, only: c_ptr\n'
           '  use mpi_f08_types\n  implicit none\n'
           '  private :: c_ptr\n',
           parameters(True), sentinels(True), '  abstract interface\n']
    for name, rows in table.PROCEDURES.items():
        if name not in ('Copy_function', 'Delete_function'):
            out.append(callback('MPI_' + name, rows, True))
    out.append('  end interface\n  interface\n')
    for name, kind in table.PREDEFINED_PROCEDURES:
        if kind not in ('Copy_function', 'Delete_function'):
            out.append(callback(name, table.PROCEDURES[kind], True))
    out.append('  end interface\n')
    for prefix in ('MPI_', 'PMPI_'):
        for generic, row in table.in_f08(bindings):
            out.append(f08_generic(generic, row, prefix))
        out.append(fortran_only(prefix, True))
    out.append('end module\n')
    return ''.join(out)


def mpi_module(bindings):
    out = [HEAD % 'The module mpi: chapter 19 of MPI 5.0.',
           'module mpi\n'
           '  use, intrinsic :: iso_c_binding, only: c_ptr\n'
           '  use mpi_f08_types\n  implicit none\n'
           '  private :: c_ptr\n',
           parameters(False), sentinels(False)]
    # Without an interface: users pass them to procedures without one.
    out += ['  external :: %s\n' % name
            for name, _ in table.PREDEFINED_PROCEDURES]
    for prefix in ('MPI_', 'PMPI_'):
        for b in table.in_mpi(bindings):
            out.append(mpi_generic(b, prefix))
        out.append(fortran_only(prefix, False))
    out.append('end module\n')
    return ''.join(out)


# ---- mpif.h: lines of at most 72 columns that both source forms take ----

MPIF_HEAD = '''\
! SPDX-License-Identifier: BSD-3-Clause
! MPI 5.0 for INCLUDE in fixed and free source form. Generated.
! Procedures with choice buffers have interfaces that check nothing, so
! that one source file may pass buffers of several types.
!
! "Division by zero" in the next lines: default integers have 8 bytes
! here, and MPI's have 4. Leave out -fdefault-integer-8 or the like.
      INTEGER MPI_NEEDS_INTEGERS_OF_4_BYTES
      PARAMETER (MPI_NEEDS_INTEGERS_OF_4_BYTES=4/(8-KIND(0)))
'''


MPIF_SYNC_REG = '''\
      SUBROUTINE %sF_SYNC_REG(A)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: A
      REAL A(*)
      END SUBROUTINE
'''


def mpif_interface(b, prefix):
    letters = ['A%d' % i for i in range(len(b.args))]
    name = prefix + b.name[4:].upper()
    head = '      SUBROUTINE %s(%s)\n' % (name, ','.join(letters + ['E']))
    if len(head) > 73:
        letters = ['%c' % c for c in b'ABCDFGHIJKLMNOPQRSTUV'[:len(b.args)]]
        head = '      SUBROUTINE %s(%s)\n' % (name, ','.join(letters + ['E']))
    if len(head) > 73:
        raise SystemExit('mpif.h: %s is too long' % name)
    out = [head]
    for a, letter in zip(b.args, letters):
        if a.kind == 'string':
            out.append('      CHARACTER(LEN=*) %s\n' % letter)
        else:
            out.append('!GCC$ ATTRIBUTES NO_ARG_CHECK :: %s\n'
                       '      REAL %s(*)\n' % (letter, letter))
    out.append('      INTEGER E\n      END SUBROUTINE\n')
    return ''.join(out)


def mpif(bindings):
    out = [MPIF_HEAD]
    for name, ctype, value in table.constants():
        kind = '(KIND=8)' if ctype == 'MPI_Offset' else ''
        out.append('      INTEGER%s %s\n      PARAMETER (%s=%d)\n' %
                   (kind, name, name, value))
    for name, value in (('MPI_SUBARRAYS_SUPPORTED', 'FALSE'),
                        ('MPI_ASYNC_PROTECTS_NONBLOCKING', 'FALSE')):
        out.append('      LOGICAL %s\n      PARAMETER (%s=.%s.)\n' %
                   (name, name, value))
    for name, base, _, shape in table.SENTINELS:
        out.append('      %s %s%s\n      COMMON /%s/ %s\n' %
                   (base.upper() + ('(LEN=1)' if base == 'character' else ''),
                    name, '(%s)' % shape if shape else '',
                    table.sentinel_symbol(name)[:-1].upper(), name))
    for name, _ in table.PREDEFINED_PROCEDURES:
        out.append('      EXTERNAL %s\n' % name)
    for prefix in ('MPI_', 'PMPI_'):
        for b in bindings:
            if b.is_function:
                # DOUBLE PRECISION is what options make of it.
                kind = ('REAL' if b.function.returns == 'double' else
                        'INTEGER') + '(KIND=8)'
                name = prefix + b.name[4:].upper()
                out.append('      %s %s\n      EXTERNAL %s\n' %
                           (kind, name, name))
    out.append('      INTERFACE\n')
    for prefix in ('MPI_', 'PMPI_'):
        for b in table.in_mpi(bindings):
            if b.choices or any(a.kind in ('detach', 'cptr')
                                for a in b.args):
                out.append(mpif_interface(b, prefix))
        out.append(MPIF_SYNC_REG % prefix)
    out.append('      END INTERFACE\n')
    text = ''.join(out)
    long = [line for line in text.splitlines() if len(line) > 72]
    if long:
        raise SystemExit('mpif.h: too long: %s' % long[0])
    return text


def main(what, output_dir):
    bindings = table.load()
    made = {'mpif': [('mpif.h', mpif)],
            'modules': [('mpi_f08_types.f90', lambda _: types_module()),
                        ('mpi_f08.f90', f08_module), ('mpi.f90', mpi_module)]}
    for name, make in made[what]:
        with open(os.path.join(output_dir, name), 'w',
                  encoding='utf-8') as out:
            out.write(make(bindings))


if __name__ == '__main__':
    main(*sys.argv[1:])
