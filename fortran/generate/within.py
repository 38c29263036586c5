# SPDX-License-Identifier: BSD-3-Clause
"""How much a call uses of buffers that may be copied, or must be contiguous
(lib/buffer/within.h)."""
import re


def comm(function):
    return 'chempi_topology_%s(chempi_in_comm(*comm))' % function


def used_count(b, count):
    """The count of a buffer that one count and type say: 0 where the call
    does not look at it."""
    unused = None
    if 'bcast' in b.base.lower():
        unused = '*root == MPI_PROC_NULL'
    if count == 'origin_count' and 'get_accumulate' in b.base.lower():
        unused = 'chempi_in_op(*op) == MPI_NO_OP'
    return '%s ? 0 : *%s' % (unused, count) if unused else '*' + count


def part_is_used(b):
    """Has a buffer that must be contiguous any bytes?"""
    kinds = [a.name for a in b.args]
    return ('*partitions > 0 && *count > 0' if 'partitions' in kinds else
            '*size > 0')


def calls(b):
    """Rows (buffer, condition or None, function, arguments) of a binding: the
    arguments between the descriptor and the caller."""
    stem = re.sub(r'^I|_init$', '', b.base[4:]).lower()
    is_near = stem.startswith('neighbor_')
    kind = stem.replace('neighbor_', '')
    size = {'send': comm('neighbors_out') if is_near else comm('size'),
            'recv': comm('neighbors_in') if is_near else comm('size')}
    kinds = {a.name: a.kind for a in b.args}

    def count(name, datatype, times='1'):
        return 'count', '*%s, %s, chempi_in_type(*%s)' % (name, times, datatype)

    def one(side, times='1'):
        return count(side + 'count', side + 'type', times)

    def several(counts, displs, n, types):
        wide = [str(kinds.get(x) == k).lower()
                for x, k in ((counts, 'count'), (displs, 'aint'))]
        return ('types' if types.startswith('c_') else 'each',
                '&(struct chempi_counts){%s, %s, %s, %s, %s}, %s' % (
                    counts, displs, wide[0], wide[1], n, types))

    def each(side):
        return several(side + 'counts',
                       'displs' if 'displs' in kinds else
                       {'send': 'sdispls', 'recv': 'rdispls'}[side],
                       size[side], 'chempi_in_type(*%stype)' % side
                       if side + 'type' in kinds else 'c_%stypes' % side)

    at_root = 'chempi_topology_is_root(chempi_in_comm(*comm), *root)'
    in_place = 'x_sendbuf.address == MPI_IN_PLACE'
    whole = count('count', 'datatype')
    own = comm('local_size') # each group divides what it gets
    block = count('recvcount', 'datatype', own)
    type_ = 'chempi_in_type(*datatype)'
    packed = {'pack': ('outbuf', 'outsize'), 'unpack': ('inbuf', 'insize')}
    parts = [a.name for a in b.args if a.kind == 'part']
    if parts and 'partitions' in kinds:
        return [(parts[0], None, *count('count', 'datatype', '*partitions'))]
    if parts:
        return [(parts[0], None, 'count', '*size, 1, MPI_BYTE')]
    for word, (buf, bytes_) in packed.items():
        if re.fullmatch(word + '(_external)?', kind):
            return [(buf, None, 'count', '*%s, 1, MPI_BYTE' % bytes_)]
    rules = {
        'reduce': [('sendbuf', '*root >= 0', *whole),
                   ('recvbuf', at_root, *whole)],
        'reduce_local': [('inbuf', None, *whole), ('inoutbuf', None, *whole)],
        'reduce_scatter_block': [
            ('sendbuf', None, *block), ('recvbuf', in_place, *block),
            ('recvbuf', None, *count('recvcount', 'datatype'))],
        'reduce_scatter': [
            ('sendbuf', None, *several('recvcounts', 'NULL', own, type_)),
            ('recvbuf', in_place, *several('recvcounts', 'NULL', own, type_)),
            ('recvbuf', None, *several(
                'recvcounts + ' + comm('rank'), 'NULL', '1', type_))],
        'gather': [('sendbuf', '*root >= 0', *one('send')),
                   ('recvbuf', at_root, *one('recv', size['recv']))],
        'scatter': [('sendbuf', at_root, *one('send', size['send'])),
                    ('recvbuf', '*root >= 0', *one('recv'))],
        'allgather': [('sendbuf', None, *one('send')),
                      ('recvbuf', None, *one('recv', size['recv']))],
        'alltoall': [('sendbuf', None, *one('send', size['send'])),
                     ('recvbuf', None, *one('recv', size['recv']))],
    }
    if kind in rules:
        return rules[kind]
    if kind == 'exscan': # rank 0 gets nothing
        return [('sendbuf', None, *whole),
                ('recvbuf', '(%s || %s > 0)' % (in_place, comm('rank')),
                 *whole)]
    if kind in ('allreduce', 'scan'):
        return [('sendbuf', None, *whole), ('recvbuf', None, *whole)]
    if kind in ('alltoallv', 'alltoallw'):
        return [('sendbuf', None, *each('send')),
                ('recvbuf', None, *each('recv'))]
    if kind == 'allgatherv':
        return [('sendbuf', None, *one('send')), ('recvbuf', None, *each('recv'))]
    if kind == 'gatherv':
        return [('sendbuf', '*root >= 0', *one('send')),
                ('recvbuf', at_root, *each('recv'))]
    if kind == 'scatterv':
        return [('sendbuf', at_root, *each('send')),
                ('recvbuf', '*root >= 0', *one('recv'))]
    raise SystemExit('within.py: no rule for ' + b.name)
