# SPDX-License-Identifier: BSD-3-Clause
"""The MPI 5.0 ABI tables and the bindings, as Python objects.

libchempi/api/abi/*.tsv are facts of the standard; libchempi/api/bindings.tsv
is kept by hand and says which didl function serves which MPI function. Every
generator under tools/ reads them through this module.
"""

import os
import re

HANDLES = ('Comm', 'Datatype', 'Op', 'Group', 'Errhandler', 'Info', 'Session',
           'Message', 'Request', 'Win', 'File')

# Chapter of MPI 5.0, by the first pattern that matches the name without
# its MPI_ prefix and its _c suffix. The order matters.
CHAPTERS = [
    (r'T_', 15, 'Tool support'),
    (r'(Attr_|Keyval_)', 16, 'Deprecated'),
    (r'(Abi_|.*_(toint|fromint)$)', 20, 'Application binary interface'),
    (r'(Psend_|Precv_|Pready|Parrived)', 4, 'Partitioned communication'),
    (r'(Type_create_f90|Type_match_size|Sizeof)', 19, 'Language bindings'),
    (r'Grequest_|Status_set_(cancelled|elements)', 13, 'External interfaces'),
    (r'(File_|Register_datarep)', 14, 'I/O'),
    (r'(Win_(create_keyval|free_keyval|[gs]et_attr|delete_attr|[gs]et_name))',
     7, 'Groups, contexts, communicators'),
    (r'(Win_.*errhandler)', 9, 'Environment'),
    (r'(Win_|R?put$|R?get$|Rget_accumulate|get_accumulate|R?accumulate|'
     r'Fetch_and_op|Compare_and_swap)', 12, 'One-sided'),
    (r'(Cart|Graph|Dist_graph|Topo_|Dims_|I?[Nn]eighbor)', 8,
     'Process topologies'),
    (r'Type_(create_keyval|free_keyval|[gs]et_attr|delete_attr|[gs]et_name)',
     7, 'Groups, contexts, communicators'),
    (r'(Type_|Pack|Unpack|Get_address|Get_elements|Aint_)', 5, 'Datatypes'),
    (r'Info_', 10, 'Info objects'),
    (r'(.*errhandler|Errhandler_|Error_|Add_error|Remove_error|Alloc_mem|'
     r'Free_mem|Wtime|Wtick|Get_(library_)?version|Get_processor|Get_hw)', 9,
     'Environment'),
    (r'(.*_buffer$|Buffer_)', 3, 'Point-to-point'),
    (r'(Init|Finalize|Abort|Query_thread|Is_thread|Session_|Comm_spawn|'
     r'Comm_(accept|connect|disconnect|join|get_parent)|Open_port|Close_port|'
     r'(Publish|Unpublish|Lookup)_name)', 11,
     'Process initialization and management'),
    (r'I?(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|'
     r'reduce|allreduce|reduce_scatter(_block)?|scan|exscan)(_init)?$', 6,
     'Collective'),
    (r'(Op_|Reduce_local)', 6, 'Collective'),
    (r'(Comm_|Group_|Intercomm_)', 7, 'Groups, contexts, communicators'),
    (r'Pcontrol', 15, 'Tool support'),
    (r'', 3, 'Point-to-point'),
]

# Function types that are one type under two names.
SAME_TYPE = {
    'MPI_Copy_function *': 'MPI_Comm_copy_attr_function *',
    'MPI_Delete_function *': 'MPI_Comm_delete_attr_function *',
}


class Param:
    """One parameter: `ctype` is the type without the name and brackets."""

    def __init__(self, text):
        self.text = text
        if text == '...':
            self.name, self.ctype, self.array = '...', '...', ''
            return
        m = re.fullmatch(r'(.*?)(\w+)((?:\[\d*\])*)', text)
        self.ctype = m.group(1).strip()
        self.name = m.group(2)
        self.array = m.group(3)

    @property
    def type_key(self):
        key = self.ctype + self.array
        return SAME_TYPE.get(key, key)


class Function:
    def __init__(self, name, returns, params, deprecated):
        self.name = name
        self.returns = returns
        self.param_text = params
        self.deprecated = deprecated
        self.params = ([] if params == 'void' else
                       [Param(p.strip()) for p in params.split(',')])
        self.binding = None   # name of the didl function
        self.fixed = []       # (name, C expression): what it is told besides
        self.status = None    # yes or manual
        self.sibling = None   # the other one of X and X_c, if it fits

    @property
    def stem(self):
        return self.name[4:-2] if self.name.endswith('_c') else self.name[4:]

    @property
    def chapter(self):
        stem = self.stem
        for pattern, number, title in CHAPTERS:
            if (re.match(pattern, stem) or
                    re.match(pattern, stem[:1].lower() + stem[1:])):
                return number, title
        raise AssertionError(self.name)

    def fits(self, other):
        """Same parameters but for the width of counts."""
        if [p.name for p in self.params] != [p.name for p in other.params]:
            return False
        wide = {'int', 'MPI_Count', 'MPI_Aint'}
        for a, b in zip(self.params, other.params):
            if a.type_key == b.type_key:
                continue
            strip = re.compile(r'\bconst\b|\*|\s')
            if (strip.sub('', a.ctype) not in wide or
                    strip.sub('', b.ctype) not in wide):
                return False
        return True


# Collective calls on files, whose errors are returned as a rule, and those by
# which worlds meet, of whose arguments many mean something at the root only;
# and the object whose members wait for each other in them. didl is called
# although an argument is wrong, and told so by a last argument, so that nobody
# waits.
TELLS_MEMBERS = re.compile(
    r'File_(open|set_(info|view)|i?(read|write)(_at)?_all(_begin)?|'
    r'(read|write)_ordered(_begin)?)$|'
    r'Comm_(accept|connect|spawn(_multiple)?)$')


def tells_members(stem):
    """The argument that has the members, or None."""
    if not TELLS_MEMBERS.match(stem):
        return None
    return 'comm' if stem.startswith('Comm_') or stem == 'File_open' else 'fh'


def read_tsv(path):
    with open(path, encoding='utf-8') as f:
        rows = [line.rstrip('\n').split('\t') for line in f
                if line.strip() and not line.startswith('#')]
    width = len(rows[0])
    return [row + [''] * (width - len(row)) for row in rows[1:]]


def load_functions(api_dir):
    """All functions in table order, with bindings and siblings filled in."""
    functions = [Function(*row[:4]) for row in
                 read_tsv(os.path.join(api_dir, 'abi', 'functions.tsv'))]
    by_name = {f.name: f for f in functions}
    for f in functions:
        other = by_name.get(f.name + '_c')
        if other and f.fits(other):
            f.sibling, other.sibling = other, f
    path = os.path.join(api_dir, 'bindings.tsv')
    for row in read_tsv(path):
        if row[0] not in by_name:
            raise SystemExit('%s: no MPI function is called %s' %
                             (path, row[0]))
        if row[2] not in ('yes', 'manual'):
            raise SystemExit('%s: %s: status is yes or manual, not "%s"' %
                             (path, row[0], row[2]))
        f = by_name[row[0]]
        if f.status:
            raise SystemExit('%s: %s stands twice' % (path, row[0]))
        f.binding, f.status = row[1], row[2]
        f.fixed = [part.split('=') for part in row[3].split(',') if part]
    for f in functions:
        if f.status is None and f.name.endswith('_c') and f.sibling:
            f.binding, f.status = f.sibling.binding, f.sibling.status
            f.fixed = f.sibling.fixed
        if f.status is None:
            raise SystemExit('%s: no row of %s' % (path, f.name))
    return functions


def load_constants(api_dir):
    return read_tsv(os.path.join(api_dir, 'abi', 'constants.tsv'))


def load_types(api_dir):
    return read_tsv(os.path.join(api_dir, 'abi', 'types.tsv'))
