#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Numbered statements of headers: lint_numbers.py FILE...

A header numbers what always holds ("  R1  size is a power of two") so that
others can name it: the words of a check ("ring R1: ..."), or the code that
keeps it (a comment with R1 in it). A number that nothing names is none. Prints
file:line: message for each of those and exits non-zero if there are any.
"""

import os
import re
import sys

DEFINED = re.compile(r'^\s*\*\s{2,8}([A-Z]{1,2}\d{1,2})\s+\S')
NAMED = re.compile(r'(?<![\w.])([A-Z]{1,2}\d{1,2})(?!\w)')
SPAN = re.compile(r'(?<![\w.])([A-Z]{1,2})(\d{1,2})(?: to |-)\1?(\d{1,2})(?!\w)')
INCLUDED = re.compile(r'\s*#\s*include "([^"]+)"')


def numbers_in(line):
    """The numbers that a line names; "P3 to P5" names P4, too."""
    names = set(NAMED.findall(line))
    for letters, first, last in SPAN.findall(line):
        names |= {f'{letters}{n}' for n in range(int(first), int(last) + 1)}
    return names


class File:
    """What a file defines, names and includes."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding='utf-8', errors='replace') as f:
            self.lines = f.read().split('\n')
        self.defined = {}
        self.named = set()
        self.includes = set()
        for at, line in enumerate(self.lines, 1):
            found = DEFINED.match(line) if path.endswith('.h') else None
            if found:
                self.defined[found.group(1)] = at
                line = line[found.end(1):]
            self.named |= numbers_in(line)
            included = INCLUDED.match(line)
            if included:
                self.includes.add(included.group(1))

    def speaks_of(self, header):
        """Whether its numbers can be those of the header."""
        return (self is header or header.path in self.includes or
                any(os.path.basename(header.path) in line
                    for line in self.lines))


def unnamed(paths):
    files = [File(p) for p in paths if p.endswith(('.c', '.h', '.py', '.md'))]
    for header in files:
        if not header.defined:
            continue
        named = set().union(*(f.named for f in files if f.speaks_of(header)))
        for number, at in header.defined.items():
            if number not in named:
                yield header.path, at, number


def main(paths):
    bad = list(unnamed(paths))
    for path, at, number in bad:
        print(f'{path}:{at}: nothing names {number}: have a check look at it, '
              'name it where it is kept, or say it without a number')
    return 1 if bad else 0


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit('usage: lint_numbers.py FILE ...')  # nothing checked is no pass
    sys.exit(main(sys.argv[1:]))
