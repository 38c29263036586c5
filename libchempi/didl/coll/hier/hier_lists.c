/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of numbers in pieces; see hier_lists.h. */
#include "libchempi/didl/coll/hier/hier_lists.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/base/sys.h"

/* ---- reading ---- */

/* The last piece that does not begin behind (list, index). */
static const struct chempi_lists_piece *piece_at(const struct chempi_lists *l,
                                                 int list, int index)
{
    int low = 0;
    int high = l->piece_count;

    while (high - low > 1) {
        const int mid = low + (high - low) / 2;
        const struct chempi_lists_piece *p = &l->pieces[mid];

        if (p->list < list || (p->list == list && p->index <= index))
            low = mid;
        else
            high = mid;
    }
    return &l->pieces[low];
}

int chempi_lists_len(const struct chempi_lists *l, int list)
{
    const struct chempi_lists_piece *last = piece_at(l, list, INT_MAX);

    return last->index + last->count;
}

int chempi_lists_get(const struct chempi_lists *l, int list, int index)
{
    const struct chempi_lists_piece *p = piece_at(l, list, index);

    return p->first + (list - p->list) * p->list_step +
           (index - p->index) * p->step;
}

/* Index of a number in this list of a piece, or -1. */
static int find_in(const struct chempi_lists_piece *p, int list, int number)
{
    const int way = number - p->first - (list - p->list) * p->list_step;

    if (way % p->step != 0 || way / p->step < 0 || way / p->step >= p->count)
        return -1;
    return p->index + way / p->step;
}

int chempi_lists_find(const struct chempi_lists *l, int list, int number)
{
    const struct chempi_lists_piece *p = piece_at(l, list, 0);
    const struct chempi_lists_piece *end = l->pieces + l->piece_count;
    int index = -1;

    for (; index < 0 && p < end && p->list <= list; p++)
        index = find_in(p, list, number);
    return index;
}

bool chempi_lists_search(const struct chempi_lists *l, int number, int *list,
                         int *index)
{
    for (int i = 0; i < l->piece_count; i++) {
        const struct chempi_lists_piece *p = &l->pieces[i];

        for (int k = p->list; k < p->list + p->lists; k++) {
            const int found = find_in(p, k, number);

            if (found < 0)
                continue;
            *list = k;
            *index = found;
            return true;
        }
    }
    return false;
}

void chempi_lists_fini(struct chempi_lists *l)
{
    free(l->pieces);
    *l = (struct chempi_lists){.count = 0};
}

/* ---- building ---- */

/* A piece that may go on; count 0: none. */
struct chempi_lists_open {
    int list;
    int index;
    int count;
    int first;
    int step;
};

enum { PIECES_MIN = 4 };

static void add(struct chempi_lists_builder *b, struct chempi_lists *l,
                struct chempi_lists_piece piece)
{
    const int n = l->piece_count;

    /* Room is a power of two. */
    if (n == 0 || (n >= PIECES_MIN && (n & (n - 1)) == 0)) {
        const size_t room = n ? 2 * (size_t)n : PIECES_MIN;
        struct chempi_lists_piece *pieces =
            chempi_sys->realloc(l->pieces, room * sizeof(*pieces));

        if (!pieces) {
            b->has_failed = true;
            return;
        }
        l->pieces = pieces;
    }
    l->pieces[l->piece_count++] = piece;
}

static struct chempi_lists_piece piece_of(const struct chempi_lists_open *o)
{
    return (struct chempi_lists_piece){.list = o->list,
                                       .lists = 1,
                                       .index = o->index,
                                       .count = o->count,
                                       .first = o->first,
                                       .step = o->step};
}

void chempi_lists_begin(struct chempi_lists_builder *b, int slot_count)
{
    *b = (struct chempi_lists_builder){.slot_count = slot_count};
    b->slots = chempi_sys->calloc((size_t)slot_count, sizeof(*b->slots));
    b->has_failed = !b->slots;
}

/* A list that is one piece goes on where those before it are the same but for
 * a shift. */
static bool joins(struct chempi_lists *l, const struct chempi_lists_piece *next)
{
    struct chempi_lists_piece *last;

    if (l->piece_count == 0)
        return false;
    last = &l->pieces[l->piece_count - 1];
    if (last->index > 0 || last->list + last->lists != next->list ||
        last->count != next->count || last->step != next->step)
        return false;
    if (last->lists == 1)
        last->list_step = next->first - last->first;
    if (next->first != last->first + last->lists * last->list_step)
        return false;
    last->lists++;
    return true;
}

/* A list that does not go on: so many pieces of it have been closed, another
 * one may stand in its slot. */
static void finish(struct chempi_lists_builder *b, int list,
                   const struct chempi_lists_piece *closed, int count)
{
    const struct chempi_lists_open *o = &b->slots[list % b->slot_count];
    const bool is_open = o->count && o->list == list;
    const struct chempi_lists_piece only = count > 0 ? closed[0] : piece_of(o);

    if (count + is_open == 1 && joins(&b->made, &only))
        return;
    for (int i = 0; i < count && !b->has_failed; i++)
        add(b, &b->made, closed[i]);
    if (is_open && !b->has_failed)
        add(b, &b->made, piece_of(o));
}

static void finish_last(struct chempi_lists_builder *b)
{
    finish(b, b->count - 1, b->closed.pieces, b->closed.piece_count);
    b->closed.piece_count = 0;
    b->slots[0].count = 0;
}

void chempi_lists_put(struct chempi_lists_builder *b, int list, int number)
{
    struct chempi_lists_open *o;
    const bool is_new = list == b->count;

    if (is_new && list > 0 && b->slot_count == 1 && !b->has_failed)
        finish_last(b);
    if (b->has_failed)
        return;
    o = &b->slots[list % b->slot_count];
    b->count += is_new;
    if (o->count == 1 && !is_new && number != o->first)
        o->step = number - o->first;
    if (o->count && !is_new && number == o->first + o->count * o->step) {
        o->count++;
        return;
    }
    if (o->count)
        add(b, &b->closed, piece_of(o));
    *o = (struct chempi_lists_open){.list = list,
                                    .index = is_new ? 0 : o->index + o->count,
                                    .count = 1,
                                    .first = number,
                                    .step = 1};
}

static int compare_pieces(const void *a, const void *b)
{
    const struct chempi_lists_piece *x = a;
    const struct chempi_lists_piece *y = b;

    if (x->list != y->list)
        return x->list < y->list ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Every list has a slot. */
static void finish_all(struct chempi_lists_builder *b)
{
    const struct chempi_lists_piece *closed = b->closed.pieces;
    const int count = b->closed.piece_count;
    int next = 0;

    if (count > 1)
        qsort(b->closed.pieces, (size_t)count, sizeof(*closed), compare_pieces);
    for (int list = 0; list < b->count && !b->has_failed; list++) {
        const int begin = next;

        while (next < count && closed[next].list == list)
            next++;
        finish(b, list, count ? closed + begin : NULL, next - begin);
    }
}

bool chempi_lists_end(struct chempi_lists_builder *b, struct chempi_lists *out)
{
    if (!b->has_failed && b->slot_count > 1)
        finish_all(b);
    else if (!b->has_failed && b->count > 0)
        finish_last(b);
    free(b->slots);
    chempi_lists_fini(&b->closed);
    if (b->has_failed) {
        chempi_lists_fini(&b->made);
        return false;
    }
    b->made.count = b->count;
    *out = b->made;
    return true;
}
