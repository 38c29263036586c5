/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and buffers of an operation, what is in them and what is to be. */
#include "random_walk.h"

void walk_live(struct layout *l)
{
    CHECK_OR_DIE(walk.livings < 64, "too many types");
    walk.living[walk.livings++] = l;
}

static void die(struct layout *l)
{
    for (int i = 0; i < walk.livings; i++)
        if (walk.living[i] == l)
            walk.living[i] = walk.living[--walk.livings];
}

void walk_bounds(struct layout *l, const struct base *base)
{
    l->low = l->at[0];
    l->high = l->at[0] + base->pitch;
    for (int i = 1; i < l->items; i++) {
        if (l->at[i] < l->low)
            l->low = l->at[i];
        if (l->at[i] + base->pitch > l->high)
            l->high = l->at[i] + base->pitch;
    }
}

/* Items at multiples of the pitch; the extent in pitches. */
static void irregular(struct layout *l, const struct base *base, int items,
                      const int *places, long extent)
{
    int ones[ITEMS_MAX];
    MPI_Aint at[ITEMS_MAX];
    MPI_Datatype raw;
    long low = places[0];

    l->items = items;
    for (int i = 0; i < items; i++) {
        l->at[i] = places[i] * base->pitch;
        at[i] = l->at[i];
        ones[i] = 1;
        if (places[i] < low)
            low = places[i];
    }
    MPI_Type_create_hindexed(items, ones, at, base->type, &raw);
    l->extent = extent * base->pitch;
    MPI_Type_create_resized(raw, low * base->pitch, l->extent, &l->type);
    MPI_Type_free(&raw);
}

static void one_item(struct layout *l, const struct base *base, int which,
                     bool huge)
{
    static const int zero = 0;
    static const int before = -5;

    l->items = 1;
    l->at[0] = 0;
    l->extent = base->pitch;
    switch (which % 7) {
    case 0:
        irregular(l, base, 1, &zero, 3);
        break;
    case 1:
        irregular(l, base, 1, &zero, -2);
        break;
    case 2:
        irregular(l, base, 1, &zero, huge ? 30000 : 2);
        break;
    case 3:
        irregular(l, base, 1, &before, 1);
        break;
    case 4:
        MPI_Type_dup(base->type, &l->type);
        break;
    default:
        l->type = base->type;
        l->is_made = false;
        return;
    }
}

static void some_items(struct layout *l, const struct base *base, int items,
                       int which, long elements)
{
    static const int swapped[] = {1, 0};
    static const int mixed[] = {4, -2, 1};
    static const int six[] = {0, 1, 3, 4, 6, 7};
    int columns[] = {0, (int)elements, 2 * (int)elements};

    l->items = items;
    if (which % 4 == 0) {
        MPI_Type_contiguous(items, base->type, &l->type);
        for (int i = 0; i < items; i++)
            l->at[i] = i * base->pitch;
        l->extent = items * base->pitch;
    } else if (which % 4 == 1) {
        MPI_Type_vector(items, 1, 2, base->type, &l->type);
        for (int i = 0; i < items; i++)
            l->at[i] = 2 * i * base->pitch;
        l->extent = (2 * items - 1) * base->pitch;
    } else if (which % 4 == 2 && items < 4) {
        irregular(l, base, items, columns, 1);
    } else if (items == 2) {
        irregular(l, base, items, swapped, 2);
    } else if (items == 3) {
        irregular(l, base, items, mixed, 7);
    } else {
        irregular(l, base, items, six, 9);
    }
}

/* A type for blocks of n (and other multiples of `step`) items. */
void walk_make_layout(struct layout *l, const struct base *base, uint64_t r,
                      long step, long elements, bool huge)
{
    static const int sizes[] = {1, 1, 2, 3, 6};
    int items = sizes[r % 5];

    *l = (struct layout){.is_made = true};
    if (step % items != 0)
        items = 1;
    r /= 5;
    if (items == 1)
        one_item(l, base, (int)(r % 97), huge);
    else
        some_items(l, base, items, (int)(r % 97), elements);
    walk_bounds(l, base);
    if (l->is_made)
        MPI_Type_commit(&l->type);
}

void walk_forget_types(struct side *s)
{
    for (int i = 0; i < s->layouts; i++) {
        die(&s->layout[i]);
        if (s->layout[i].is_made)
            MPI_Type_free(&s->layout[i].type);
        s->layout[i].is_made = false;
    }
}

/* ---- buffers ---- */

void walk_side_init(struct side *s, int blocks)
{
    size_t n = (size_t)blocks + 2;

    *s = (struct side){.blocks = blocks};
    s->block = check_alloc(n * sizeof(*s->block));
    s->layout = check_alloc(n * sizeof(*s->layout));
    s->counts = check_alloc(n * sizeof(int));
    s->displs = check_alloc(n * sizeof(int));
    s->big_counts = check_alloc(n * sizeof(MPI_Count));
    s->big_displs = check_alloc(n * sizeof(MPI_Aint));
    s->types = check_alloc(n * sizeof(MPI_Datatype));
}

void walk_side_fini(struct side *s)
{
    walk_forget_types(s);
    free(s->block);
    free(s->layout);
    free(s->counts);
    free(s->displs);
    free(s->big_counts);
    free(s->big_displs);
    free(s->types);
    free(s->mem);
    free(s->want);
}

struct layout *walk_layout_of(const struct side *s, int i)
{
    return &s->layout[s->layouts == 1 ? 0 : i];
}

unsigned char *walk_item_at(const struct side *s, unsigned char *buf, int i,
                            long k)
{
    const struct layout *l = walk_layout_of(s, i);
    long unit = s->layouts == 1 ? l->extent : 1;

    return buf + s->big_displs[i] * unit + k / l->items * l->extent +
           l->at[k % l->items];
}

void walk_place(struct side *s, bool is_v, uint64_t r)
{
    long low = 0;
    long high = 0;
    long cursor = 0;

    for (int j = 0; j < s->blocks; j++) {
        int i = is_v ? (int)(((uint64_t)j + r) % (uint64_t)s->blocks) : j;
        const struct layout *l = walk_layout_of(s, i);
        long count = s->block[i].n / l->items;
        long walked = count > 0 ? (count - 1) * l->extent : 0;
        long from = l->low + (walked < 0 ? walked : 0);
        long to = l->high + (walked > 0 ? walked : 0);
        long start;

        if (s->layouts == 1) {
            s->big_displs[i] = cursor;
            cursor += count + (is_v ? (long)(r % 2) : 0);
            start = s->big_displs[i] * l->extent;
        } else {
            start = s->big_displs[i] = cursor - from;
            cursor = start + to + (long)(r % 2) * 8;
        }
        if (start + from < low)
            low = start + from;
        if (start + to > high)
            high = start + to;
        s->big_counts[i] = count;
        s->counts[i] = (int)count;
        s->displs[i] = (int)s->big_displs[i];
        s->types[i] = l->type;
    }
    s->len = (size_t)(high - low + 2 * GUARD);
    s->mem = check_alloc(s->len);
    s->want = check_alloc(s->len);
    s->buf = s->mem + GUARD - low;
    check_fill(s->mem, s->len, r);
    memcpy(s->want, s->mem, s->len);
}

/* Types and places for the blocks of a side. */
void walk_furnish(struct act *a, struct side *s, bool is_v, bool is_w,
                  long step, uint64_t r)
{
    long total = 2;
    long most = 0;

    for (int i = 0; i < s->blocks; i++) {
        total += s->block[i].n + 2;
        most += s->block[i].n;
    }
    s->layouts = is_w && s->blocks > 1 ? s->blocks : 1;
    for (int i = 0; i < s->layouts; i++)
        walk_make_layout(&s->layout[i], &a->base,
                         check_mix(r, (uint64_t)i) >> 3, step, total,
                         most <= 12);
    walk_place(s, is_v, r);
}

static void datum(const struct act *a, uint64_t key, long k, void *to)
{
    unsigned char *bytes = to;
    uint64_t word = check_mix(a->salt * 31 + key, (uint64_t)k);

    for (long at = 0; at < a->base.size; at += 8) {
        long part = a->base.size - at < 8 ? a->base.size - at : 8;
        memcpy(bytes + at, &word, (size_t)part);
        word = word * 5 + 3;
    }
}

void walk_write_block(const struct act *a, struct side *s, int i, uint64_t key,
                      bool now)
{
    for (long k = 0; s->block[i].is_there && k < s->block[i].n; k++) {
        datum(a, key, k, walk_item_at(s, s->want + (s->buf - s->mem), i, k));
        if (now)
            datum(a, key, k, walk_item_at(s, s->buf, i, k));
    }
}
