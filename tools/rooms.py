# SPDX-License-Identifier: BSD-3-Clause
"""Rooms and floors: who may include whom, and who may call whom.

A room is a folder whose files belong together. lint_rules.py reads what may
be included, lint_calls.py what may be called.
"""

import re

# Rooms: the first pattern that matches a source file names its room.
ROOMS = [
    (r'(common/\w+)/', None),
    (r'(libchempi/didl/coll/node/cores)/', None),
    (r'(libchempi/didl/comm/make)/', None),
    (r'(libchempi/didl/transport/(foreign|progress|routed|worlds))/', None),
    (r'(libchempi/didl/\w+)/', None),
    (r'libchempi/devices/(registry|host)\.c', 'libchempi/devices'),
    (r'(libchempi/devices/scivia/adapter(/\w+)?)/', None),
    (r'(libchempi/devices/\w+)/', None),
    (r'(libchempi/\w+)/', None),
    (r'(mdconfig/\w+)/', None),
    (r'(mdconfig)/', None),
    (r'(chempid/\w+)/', None),
    (r'(chempid)/', None),
    (r'(programs/\w+)/', None),
]

# Floors, the lowest first. A room calls rooms of lower floors, and never one
# of a higher floor; rooms of one floor may call each other, but not in a
# circle. Rooms without a floor only stand in no circle.
FLOORS = [
    ['common/base'],
    ['common/containers', 'common/fd', 'common/wake'],
    ['common/words', 'common/host', 'common/symbol'],
    ['common/table', 'common/control', 'common/auth'],
    ['libchempi/services'],
    ['libchempi/neighbors', 'libchempi/devices', 'libchempi/devices/self',
     'libchempi/devices/shm', 'libchempi/devices/tcp',
     'libchempi/devices/scivia', 'libchempi/devices/scivia/adapter',
     'libchempi/devices/scivia/adapter/link',
     'libchempi/devices/scivia/adapter/memory',
     'libchempi/devices/scivia/adapter/model',
     'libchempi/devices/scivia/adapter/sci',
     'libchempi/devices/scivia/adapter/via',
     'libchempi/devices/scivia/adapter/public'],
    ['libchempi/didl/base'],
    ['libchempi/didl/error'],
    ['libchempi/didl/info'],
    ['libchempi/didl/locality'],
    ['libchempi/didl/datatype'],
    ['libchempi/didl/op'],
    ['libchempi/didl/control'],
    ['libchempi/didl/transport/worlds'],
    ['libchempi/didl/transport'],
    ['libchempi/didl/transport/progress'],
    ['libchempi/didl/transport/foreign', 'libchempi/didl/transport/routed'],
    ['libchempi/didl/comm'],
    ['libchempi/didl/comm/make'],
    ['libchempi/didl/pt2pt'],
    ['libchempi/didl/coll/node/cores'],
    ['libchempi/didl/coll'],
    ['libchempi/didl/topo', 'libchempi/didl/part', 'libchempi/didl/rma',
     'libchempi/didl/io', 'libchempi/didl/proc'],
    ['libchempi/didl/tool'],
    ['libchempi/didl/entry'],
    ['libchempi/api'],
    ['mdconfig/description'],
    ['mdconfig/routes'],
    ['mdconfig/pictures', 'mdconfig/measure', 'mdconfig/import'],
    ['mdconfig'],
    ['chempid/tree'],
    ['chempid/job'],
    ['chempid/process', 'chempid/stats'],
    ['chempid/supervisor'],
    ['chempid/hosts', 'chempid/remote', 'chempid/where', 'chempid/peers'],
    ['chempid/options', 'chempid/helper'],
    ['chempid/worlds', 'chempid/plan'],
    ['chempid/launcher', 'chempid/daemon', 'chempid/ctl'],
]

# May be included on any floor: the structs of objects, and the prototypes of
# what api calls.
ON_ANY_FLOOR = ['libchempi/didl/comm/comm.h', 'libchempi/didl/comm/group.h',
                'libchempi/api/api_impl.h']

# What needs libc only.
FOUNDATION = ['common/base/', 'common/containers/', 'common/fd/',
              'common/wake/']

# The first pattern that matches a file decides what its quoted includes may
# start with.
MAY_INCLUDE = [
    (r'common/base/', ['common/base/']),
    (r'common/(containers|fd|wake)/', ['common/base/', '{dir}/']),
    (r'common/(words|host|symbol)/', FOUNDATION + ['{dir}/']),
    (r'common/', ['common/']),
    (r'(mdconfig|chempid)/', ['common/', '{top}/']),
    (r'programs/gateway/', ['common/', 'libchempi/ddi.h', 'libchempi/services/',
                           'libchempi/neighbors/', 'libchempi/devices/host.h',
                           'libchempi/devices/registry.h', '{dir}/']),
    (r'libchempi/ddi\.h', ['common/', 'libchempi/services/']),
    (r'libchempi/services/rndv\.', ['common/', 'libchempi/ddi.h',
                                   'libchempi/services/']),
    (r'libchempi/services/', ['common/', 'libchempi/services/']),
    (r'libchempi/neighbors/', ['common/', 'libchempi/ddi.h',
                               'libchempi/devices/envelope.h',
                               'libchempi/devices/host.h', '{dir}/']),
    (r'libchempi/devices/(registry|host|envelope)\.[ch]',
     ['common/', 'libchempi/ddi.h', 'libchempi/devices/']),
    (r'libchempi/devices/scivia/adapter/',
     ['common/', 'libchempi/services/', 'libchempi/devices/scivia/adapter/']),
    (r'libchempi/devices/', ['common/', 'libchempi/ddi.h',
                             'libchempi/services/',
                             'libchempi/devices/envelope.h', '{dir}/']),
    (r'libchempi/didl/', ['common/', 'libchempi/ddi.h',
                          'libchempi/services/', 'libchempi/didl/',
                          'libchempi/neighbors/',
                          'libchempi/api/api_impl.h',
                          'libchempi/devices/host.h',
                          'libchempi/devices/registry.h']),
    (r'libchempi/api/', ['common/', 'libchempi/ddi.h', 'libchempi/didl/',
                         'libchempi/api/']),
    (r'programs/wrappers/', ['{dir}/']),
    (r'fortran/', ['common/base/compiler.h', 'fortran/lib/']),
    (r'bench/papers/', FOUNDATION + ['libchempi/devices/scivia/adapter/',
                                      '{dir}/']),
    (r'bench/card/', FOUNDATION + ['libchempi/services/',
                                    'libchempi/devices/scivia/adapter/']),
    # The stages of a job, run without one: the real code of each.
    (r'bench/scale/', ['bench/scale/', 'common/', 'mdconfig/', 'chempid/',
                       'libchempi/didl/coll/']),
    (r'programs/chempi-info/', ['{dir}/']),
    (r'(demo|bench|programs/chempi-probe)/', []),
    (r'programs/libchempi-stats/', FOUNDATION + ['common/words/', 'common/symbol/', '{dir}/']),
    (r'programs/libchempi-check/', FOUNDATION + ['common/words/', 'common/symbol/', '{dir}/',
                                    'libchempi/didl/tool/checker.h']),
    (r'tests/', ['']),
]
MAY_INCLUDE_MPI = re.compile(r'(libchempi/(didl|api)|fortran|tests|demo|bench|'
                             r'programs/(libchempi-(stats|check)|chempi-info|chempi-probe)|'
                             r'man)/')


def room_of(path):
    """The room of a source file, or None."""
    for pattern, room in ROOMS:
        m = re.match(pattern, path)
        if m:
            return room or m.group(1)
    return None


def floor_of(room):
    """The number of a room's floor, or None."""
    for number, rooms in enumerate(FLOORS):
        if room in rooms:
            return number
    return None


def is_upward(path, header):
    """Does this file include a header of a higher floor?"""
    below = floor_of(room_of(path))
    above = floor_of(room_of(header))
    return (None not in (below, above) and above > below and
            header not in ON_ANY_FLOOR)


def allowed_prefixes(path):
    for pattern, prefixes in MAY_INCLUDE:
        if re.match(pattern, path):
            top = path.split('/')[0]
            folder = path.rsplit('/', 1)[0]
            return [p.format(top=top, dir=folder) for p in prefixes]
    return ['']
