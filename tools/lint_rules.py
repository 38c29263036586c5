#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""House rules that a machine can check: lint_rules.py FILE...

Who may include whom, file and function lengths, words that do not belong
into a finished tree, compiler extensions outside their one file, conditional
compilation inside functions, sleeps in tests, files that pages name and the
tree has not. Prints file:line: message and exits non-zero if anything was
found.
"""

import os
import re
import sys

import rooms

MAX_FILE_LINES = 1000
MAX_FUNCTION_LINES = 80

FORBIDDEN = re.compile(r'\b(TODO|FIXME|XXX|HACK)\b')
EXTENSION = re.compile(r'\b(__attribute__|__builtin_\w+|__asm__|__typeof__|'
                       r'typeof|__extension__)\b')
EXTENSION_FILE = 'common/base/compiler.h'
PASTED = re.compile(r'(?<!struct )\bchempi_\w*##')
SLEEP = re.compile(r'\b(sleep|usleep|nanosleep)\s*\(')
# What follows in a page is made by a command, as long as it may be.
GENERATED_REST = re.compile(r'<!-- The rest is written by .* -->$')
C_FILE = re.compile(r'\.[ch]$')
# In prose: a file of the tree, by its whole path.
NAMED = re.compile(r'(?<![\w/.*-])((?:libchempi|chempid|mdconfig|common|programs|'
                   r'tests|fortran|bench|tools|doc|demo|etc|man)/[\w/.-]*'
                   r'\.(?:c|h|py|yaml|md|tsv|f90))\b')


def check_include(path, line):
    m = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
    if not m:
        return None
    kind, name = m.groups()
    if kind == '<':
        if name == 'mpi.h' and not rooms.MAY_INCLUDE_MPI.match(path):
            return 'mpi.h is for the API and didl only'
        return None
    prefixes = rooms.allowed_prefixes(path)
    # Programs for any MPI are compiled without our include path.
    if not prefixes and '/' not in name:
        return None
    if not name.startswith(tuple(prefixes)):
        return '"%s" may not be included here (only %s)' % (
            name, ', '.join(prefixes))
    if rooms.is_upward(path, name):
        return '"%s" is of a higher floor' % name
    return None


class Functions:
    """Follows where top-level braces open and close."""

    def __init__(self):
        self.start = None

    def feed(self, number, line):
        """Complaint about this line, or None."""
        if line.startswith('{'):
            self.start = number
        elif line.startswith('}') and self.start:
            length, self.start = number - self.start - 1, None
            if length > MAX_FUNCTION_LINES:
                return 'function of %d lines (at most %d)' % (
                    length, MAX_FUNCTION_LINES)
        elif self.start and re.match(r'\s*#\s*(el)?if', line):
            return 'conditional compilation inside a function'
        return None


def check_line(path, line):
    if FORBIDDEN.search(line) and not path.startswith('tools/lint'):
        yield 'unfinished business: %s' % line.strip()[:50]
    if path.endswith('.md'):
        for name in NAMED.findall(line):
            if not os.path.exists(name):
                yield 'there is no file %s' % name
    if not C_FILE.search(path):
        return
    complaint = check_include(path, line)
    if complaint:
        yield complaint
    code = re.sub(r'"(\\.|[^"\\])*"|/\*.*?\*/|^\s*\*.*', '', line)
    if (not path.startswith(('tests/', EXTENSION_FILE)) and
            EXTENSION.search(code)):
        yield 'compiler extension outside %s' % EXTENSION_FILE
    if PASTED.search(code) and not path.startswith(('tests/', 'fortran/')):
        yield 'a function whose whole name cannot be searched for'
    if path.startswith('tests/') and SLEEP.search(code):
        yield 'a test waits for events, not for time'


def check_file(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        lines = f.read().split('\n')
    is_c = bool(C_FILE.search(path))
    is_fortran = path.endswith(('.f90', '.F90', '.f'))
    if (is_c or is_fortran) and 'SPDX-License-Identifier: BSD-3-Clause' not in lines[0]:
        yield 1, 'the first line is not the SPDX line'
    length = next((number for number, line in enumerate(lines)
                   if GENERATED_REST.match(line)), len(lines))
    if length > MAX_FILE_LINES and not path.endswith(('.tsv', '.yaml')):
        yield length, 'more than %d lines' % MAX_FILE_LINES
    functions = Functions()
    for number, line in enumerate(lines, 1):
        for complaint in check_line(path, line):
            yield number, complaint
        complaint = functions.feed(number, line) if is_c else None
        if complaint:
            yield number, complaint


def main(paths):
    bad = 0
    for path in paths:
        for number, complaint in check_file(path):
            print('%s:%d: %s' % (path, number, complaint))
            bad += 1
    return 1 if bad else 0


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit('usage: lint_rules.py FILE ...')  # nothing checked is no pass
    sys.exit(main(sys.argv[1:]))
