#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count the implemented MPI functions by chapter and list those missing."""

import os
import sys
import textwrap

import api_table

API_DIR = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), 'libchempi', 'api')


def main():
    chapters = {}
    for f in api_table.load_functions(API_DIR):
        chapters.setdefault(f.chapter, []).append(f)
    total = done_total = 0
    missing = []
    print('%-42s %6s %6s' % ('chapter of MPI 5.0', 'done', 'of'))
    for (number, title), functions in sorted(chapters.items()):
        done = [f for f in functions if f.status in ('yes', 'manual')]
        total += len(functions)
        done_total += len(done)
        print('%2d  %-38s %6d %6d' % (number, title, len(done),
                                      len(functions)))
        left = [f.name for f in functions if f not in done]
        if left:
            missing.append((number, title, left))
    print('%-42s %6d %6d' % ('total', done_total, total))
    for number, title, names in missing:
        print('\nNot implemented, chapter %d, %s:' % (number, title))
        print(textwrap.fill(' '.join(names), 78, initial_indent='  ',
                            subsequent_indent='  '))


if __name__ == '__main__':
    sys.exit(main())
