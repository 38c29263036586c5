/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of numbers that follow rules: the ranks of each node, the nodes of
 * each team. A list is held as pieces, each of which goes on in equal steps;
 * lists in a row that differ by a shift only are held as one piece. So what
 * grows is the number of exceptions, not that of ranks: ranks in blocks or by
 * turns on equal nodes are one piece, whatever their number.
 *
 * Pieces are in the order of their lists, those of a list in the order of their
 * numbers; a list has one number at least. A piece of several lists is the
 * whole of each.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_LISTS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_LISTS_H

#include <stdbool.h>

struct chempi_lists_piece {
    int list;      /* the first that it is of */
    int lists;     /* how many it is of */
    int index;     /* in a list, of the first of its numbers */
    int count;     /* numbers in each list */
    int first;     /* number of the first list */
    int step;      /* from one number to the next */
    int list_step; /* from one list's number to the next list's */
};

struct chempi_lists {
    int count;
    int piece_count;
    struct chempi_lists_piece *pieces;
};

int chempi_lists_len(const struct chempi_lists *l, int list);
int chempi_lists_get(const struct chempi_lists *l, int list, int index);

/* Index of a number in a list, or -1. */
int chempi_lists_find(const struct chempi_lists *l, int list, int number);

/* The first place of a number in any list; false: it is in none. */
bool chempi_lists_search(const struct chempi_lists *l, int number, int *list,
                         int *index);

void chempi_lists_fini(struct chempi_lists *l);

/* ---- building ---- */

struct chempi_lists_open;

struct chempi_lists_builder {
    int count; /* lists */
    int slot_count;
    struct chempi_lists_open *slots; /* of lists that may go on */
    struct chempi_lists closed;      /* pieces that do not, in any order, of
                                        lists that may go on */
    struct chempi_lists made;        /* of lists that do not */
    bool has_failed;                 /* there was no memory */
};

/* Numbers come list by list when slot_count is 1, which takes memory for the
 * pieces only; in any order when there is a slot for each list. */
void chempi_lists_begin(struct chempi_lists_builder *b, int slot_count);

/* The next number of a list; lists begin in their order. */
void chempi_lists_put(struct chempi_lists_builder *b, int list, int number);

/* False: no memory. b needs nothing more in either case. */
bool chempi_lists_end(struct chempi_lists_builder *b, struct chempi_lists *out);

#endif
