#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who calls whom, from the symbol tables of a build: lint_calls.py BUILD
[SOURCE]

Refuses calls that run up the floors of rooms.py, circles of rooms, and
circles of files. A use of a variable counts as a call.
Prints each bad edge with the symbols that make it.
"""

import collections
import json
import os
import subprocess
import sys

import rooms

DEFINES = 'TDBRCVWGS'
USES = 'Uvw'


def objects(build, root):
    """(source, object) of everything that is built and belongs to a room;
    sources that tests compile again are left out."""
    with open(os.path.join(build, 'compile_commands.json')) as f:
        commands = json.load(f)
    for c in commands:
        source = os.path.relpath(
            os.path.join(c['directory'], c['file']), root)
        if source.startswith('..') or not rooms.room_of(source):
            source = os.path.relpath(
                os.path.join(c['directory'], c['file']), build)
        top = c['output'].split('/')[0]
        if rooms.room_of(source) and top == source.split('/')[0]:
            yield source, os.path.join(build, c['output'])


def symbols(path):
    """Names that an object defines, and names that it uses."""
    defines, uses = set(), set()
    out = subprocess.run(['nm', '--extern-only', path], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        kind, name = line.split()[-2:]
        if kind in DEFINES:
            defines.add(name)
        elif kind in USES:
            uses.add(name)
    return defines, uses


def edges(tables):
    """{(from, to): names} between sources; tables: {source: (defines,
    uses)}."""
    home = collections.defaultdict(set)
    for source, (defines, _) in tables.items():
        for name in defines:
            home[name].add(source)
    found = collections.defaultdict(set)
    for source, (_, uses) in tables.items():
        for name in uses:
            # A name that several programs define is in each its own.
            if len(home[name]) == 1:
                (to,) = home[name]
                if to != source:
                    found[source, to].add(name)
    return found


def circles(graph):
    """Sets of nodes that reach each other, each with two or more; graph:
    {node: set of nodes}. Tarjan's algorithm, without recursion."""
    index, low, stack, on_stack, out = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, None, iter(()))]
        while work:
            node, child, rest = work.pop()
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
                rest = iter(sorted(graph.get(node, ())))
            if child is not None:
                low[node] = min(low[node], low[child])
            for to in rest:
                if to not in index:
                    work += [(node, to, rest), (to, None, iter(()))]
                    break
                if to in on_stack:
                    low[node] = min(low[node], index[to])
            else:
                if low[node] == index[node]:
                    members = set()
                    while node not in members:
                        members.add(stack.pop())
                    on_stack -= members
                    if len(members) > 1:
                        out.append(members)
    return out


def upward(found):
    """Complaints about calls to a higher floor."""
    for (a, b), names in sorted(found.items()):
        from_floor = rooms.floor_of(rooms.room_of(a))
        to_floor = rooms.floor_of(rooms.room_of(b))
        if None not in (from_floor, to_floor) and to_floor > from_floor:
            yield 'up: %s -> %s: %s' % (a, b, ' '.join(sorted(names)))


def circles_of_rooms(found):
    graph = collections.defaultdict(set)
    for a, b in found:
        if rooms.room_of(a) != rooms.room_of(b):
            graph[rooms.room_of(a)].add(rooms.room_of(b))
    for members in circles(graph):
        yield 'circle of rooms: %s' % ' '.join(sorted(members))
        for (a, b), names in sorted(found.items()):
            ends = {rooms.room_of(a), rooms.room_of(b)}
            if len(ends) == 2 and ends <= members:
                yield '    %s -> %s: %s' % (a, b, ' '.join(sorted(names)))


def circles_of_files(found, room):
    graph = collections.defaultdict(set)
    for a, b in found:
        if rooms.room_of(a) == rooms.room_of(b) == room:
            graph[a].add(b)
    for members in circles(graph):
        yield 'circle of files: %s' % ' '.join(sorted(members))
        for (a, b), names in sorted(found.items()):
            if a in members and b in members:
                yield '    %s -> %s: %s' % (a, b, ' '.join(sorted(names)))


def complaints(tables):
    found = edges(tables)
    yield from upward(found)
    yield from circles_of_rooms(found)
    for room in sorted({rooms.room_of(source) for source in tables}):
        yield from circles_of_files(found, room)


def main(build, root):
    tables = {s: symbols(o) for s, o in objects(build, root)
              if os.path.exists(o)}
    if not tables:
        sys.exit('lint_calls.py: no objects in %s; build it first' % build)
    bad = list(complaints(tables))
    print('\n'.join(bad))
    return 1 if bad else 0


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit('usage: lint_calls.py BUILD [SOURCE]')
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else here))
