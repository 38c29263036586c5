/* SPDX-License-Identifier: BSD-3-Clause */
/* Random datatypes and their type maps. */
#include "tests/unit/datatype/typemap.h"

#include <stdlib.h>
#include <string.h>

#define PIECES 5 /* blocks of indexed and struct types */

uint64_t typemap_random(uint64_t n)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static struct typemap empty(void)
{
    struct typemap map = {.is_empty = true};

    map.entries = malloc(TYPEMAP_MAX * sizeof(*map.entries));
    return map;
}

void typemap_free(struct typemap *map)
{
    int ints, addresses, types, combiner;

    if (MPI_Type_get_envelope(map->type, &ints, &addresses, &types,
                              &combiner) != MPI_SUCCESS ||
        combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(&map->type);
    free(map->entries);
}

MPI_Aint typemap_size(const struct typemap *map)
{
    MPI_Aint size = 0;

    for (size_t i = 0; i < map->count; i++)
        size += map->entries[i].size;
    return size;
}

void typemap_true_bounds(const struct typemap *map, MPI_Aint *lb, MPI_Aint *ub)
{
    *lb = 0;
    *ub = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct typemap_entry *e = &map->entries[i];

        if (i == 0 || e->disp < *lb)
            *lb = e->disp;
        if (i == 0 || e->disp + e->size > *ub)
            *ub = e->disp + e->size;
    }
}

/* Append one copy of old, moved by disp. */
static void append(struct typemap *map, const struct typemap *old,
                   MPI_Aint disp)
{
    for (size_t i = 0; i < old->count; i++) {
        map->entries[map->count] = old->entries[i];
        map->entries[map->count++].disp += disp;
    }
    if (map->is_empty || (old->is_lb_set && !map->is_lb_set) ||
        (old->is_lb_set == map->is_lb_set && old->lb + disp < map->lb))
        map->lb = old->lb + disp;
    if (map->is_empty || (old->is_ub_set && !map->is_ub_set) ||
        (old->is_ub_set == map->is_ub_set && old->ub + disp > map->ub))
        map->ub = old->ub + disp;
    map->is_lb_set |= old->is_lb_set;
    map->is_ub_set |= old->is_ub_set;
    map->is_empty = false;
}

static void append_block(struct typemap *map, const struct typemap *old,
                         MPI_Aint disp, MPI_Aint n)
{
    for (MPI_Aint i = 0; i < n; i++)
        append(map, old, disp + i * (old->ub - old->lb));
}

static struct typemap basic(void)
{
    static const MPI_Datatype types[] = {
        MPI_CHAR,    MPI_SHORT, MPI_INT,         MPI_DOUBLE,          MPI_FLOAT,
        MPI_INT64_T, MPI_BYTE,  MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX};
    struct typemap map = empty();

    map.type = types[typemap_random(sizeof(types) / sizeof(types[0]))];
    map.count = 1;
    map.entries[0].basic = map.type;
    map.entries[0].disp = 0;
    MPI_Type_size(map.type, &map.entries[0].size);
    map.ub = map.entries[0].size;
    map.is_empty = false;
    return map;
}

static void make_vector(struct typemap *map, const struct typemap *old,
                        bool is_bytes, bool is_wide)
{
    MPI_Aint extent = old->ub - old->lb;
    MPI_Aint unit = is_bytes ? 1 : extent;
    int count = (int)typemap_random(5);
    int length = (int)typemap_random(4);
    MPI_Aint stride = is_bytes ? (MPI_Aint)typemap_random(4) + length * extent
                               : (MPI_Aint)typemap_random(7) - 2;

    for (int i = 0; i < count; i++)
        append_block(map, old, i * stride * unit, length);
    if (is_bytes && is_wide)
        MPI_Type_create_hvector_c(count, length, stride, old->type, &map->type);
    else if (is_bytes)
        MPI_Type_create_hvector(count, length, stride, old->type, &map->type);
    else if (is_wide)
        MPI_Type_vector_c(count, length, stride, old->type, &map->type);
    else
        MPI_Type_vector(count, length, (int)stride, old->type, &map->type);
}

/* Block lengths and displacements in both widths. */
struct lists {
    int n;
    int lengths[PIECES];
    int displs[PIECES];
    MPI_Aint bytes[PIECES];
    MPI_Count wide_lengths[PIECES];
    MPI_Count wide_displs[PIECES]; /* of displs */
    MPI_Count wide_bytes[PIECES];
};

static struct lists random_lists(bool is_even)
{
    struct lists l = {.n = (int)typemap_random(PIECES + 1)};

    for (int i = 0; i < l.n; i++) {
        l.lengths[i] = is_even && i > 0 ? l.lengths[0] : (int)typemap_random(4);
        l.displs[i] = (int)typemap_random(20) - 5;
        l.bytes[i] = (MPI_Aint)typemap_random(100) - 20;
        l.wide_lengths[i] = l.lengths[i];
        l.wide_displs[i] = l.displs[i];
        l.wide_bytes[i] = l.bytes[i];
    }
    return l;
}

static void make_indexed(struct typemap *map, const struct typemap *old,
                         bool is_bytes, bool is_wide)
{
    struct lists l = random_lists(false);
    MPI_Aint extent = old->ub - old->lb;

    for (int i = 0; i < l.n; i++)
        append_block(map, old, is_bytes ? l.bytes[i] : l.displs[i] * extent,
                     l.lengths[i]);
    if (is_bytes && is_wide)
        MPI_Type_create_hindexed_c(l.n, l.wide_lengths, l.wide_bytes, old->type,
                                   &map->type);
    else if (is_bytes)
        MPI_Type_create_hindexed(l.n, l.lengths, l.bytes, old->type,
                                 &map->type);
    else if (is_wide)
        MPI_Type_indexed_c(l.n, l.wide_lengths, l.wide_displs, old->type,
                           &map->type);
    else
        MPI_Type_indexed(l.n, l.lengths, l.displs, old->type, &map->type);
}

static void make_indexed_block(struct typemap *map, const struct typemap *old,
                               bool is_bytes, bool is_wide)
{
    struct lists l = random_lists(true);
    MPI_Aint extent = old->ub - old->lb;
    int length = l.n > 0 ? l.lengths[0] : 1;

    for (int i = 0; i < l.n; i++)
        append_block(map, old, is_bytes ? l.bytes[i] : l.displs[i] * extent,
                     length);
    if (is_bytes && is_wide)
        MPI_Type_create_hindexed_block_c(l.n, length, l.wide_bytes, old->type,
                                         &map->type);
    else if (is_bytes)
        MPI_Type_create_hindexed_block(l.n, length, l.bytes, old->type,
                                       &map->type);
    else if (is_wide)
        MPI_Type_create_indexed_block_c(l.n, length, l.wide_displs, old->type,
                                        &map->type);
    else
        MPI_Type_create_indexed_block(l.n, length, l.displs, old->type,
                                      &map->type);
}

static int alignment(MPI_Datatype type)
{
    int size;

    MPI_Type_size(type, &size);
    return type == MPI_C_DOUBLE_COMPLEX ? 8 : size;
}

/* Rounded up to the strictest alignment, unless it was set. */
static void pad(struct typemap *map)
{
    MPI_Aint align = 1;

    for (size_t i = 0; i < map->count; i++)
        if (alignment(map->entries[i].basic) > align)
            align = alignment(map->entries[i].basic);
    if (!map->is_ub_set && !map->is_empty)
        while ((map->ub - map->lb) % align != 0)
            map->ub++;
}

static void make_struct(struct typemap *map, const struct typemap *old,
                        int depth, bool is_wide)
{
    struct lists l = random_lists(false);
    struct typemap second = typemap_make(depth > 2 ? 2 : depth, is_wide);
    MPI_Datatype types[PIECES];

    for (int i = 0; i < l.n; i++) {
        bool is_first = typemap_random(2);

        types[i] = is_first ? old->type : second.type;
        append_block(map, is_first ? old : &second, l.bytes[i], l.lengths[i]);
    }
    if (is_wide)
        MPI_Type_create_struct_c(l.n, l.wide_lengths, l.wide_bytes, types,
                                 &map->type);
    else
        MPI_Type_create_struct(l.n, l.lengths, l.bytes, types, &map->type);
    pad(map);
    typemap_free(&second);
}

static void make_resized(struct typemap *map, const struct typemap *old,
                         bool is_wide)
{
    MPI_Aint lb = (MPI_Aint)typemap_random(30) - 10;
    MPI_Aint extent = (MPI_Aint)typemap_random(220) - 20;

    append(map, old, 0);
    map->lb = lb;
    map->ub = lb + extent;
    map->is_lb_set = true;
    map->is_ub_set = true;
    if (is_wide)
        MPI_Type_create_resized_c(old->type, lb, extent, &map->type);
    else
        MPI_Type_create_resized(old->type, lb, extent, &map->type);
}

static void make_subarray(struct typemap *map, const struct typemap *old)
{
    int sizes[3], subsizes[3], starts[3];
    MPI_Aint extent = old->ub - old->lb;
    bool is_c = typemap_random(2);
    int d[3]; /* dimensions, slowest first */

    for (int i = 0; i < 3; i++) {
        sizes[i] = 1 + (int)typemap_random(4);
        subsizes[i] = 1 + (int)typemap_random((uint64_t)sizes[i]);
        starts[i] = (int)typemap_random((uint64_t)(sizes[i] - subsizes[i] + 1));
        d[i] = is_c ? i : 2 - i;
    }
    for (int x = 0; x < subsizes[d[0]]; x++)
        for (int y = 0; y < subsizes[d[1]]; y++)
            for (int z = 0; z < subsizes[d[2]]; z++)
                append(map, old,
                       extent *
                           ((x + starts[d[0]]) * sizes[d[1]] * sizes[d[2]] +
                            (y + starts[d[1]]) * sizes[d[2]] + z +
                            starts[d[2]]));
    map->lb = 0;
    map->ub = extent * sizes[0] * sizes[1] * sizes[2];
    map->is_lb_set = true;
    map->is_ub_set = true;
    MPI_Type_create_subarray(3, sizes, subsizes, starts,
                             is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old->type,
                             &map->type);
}

/* Does process `coord` of psize own element i of a dimension? */
static bool owns(int i, int gsize, int distrib, int darg, int psize, int coord)
{
    int block = darg;

    if (distrib == MPI_DISTRIBUTE_NONE)
        return true;
    if (darg == MPI_DISTRIBUTE_DFLT_DARG)
        block =
            distrib == MPI_DISTRIBUTE_BLOCK ? (gsize + psize - 1) / psize : 1;
    return i / block % psize == coord;
}

static void make_darray(struct typemap *map, const struct typemap *old)
{
    int gsizes[2], distribs[2], dargs[2], psizes[2];
    MPI_Aint extent = old->ub - old->lb;
    bool is_c = typemap_random(2);
    int slow = is_c ? 0 : 1;
    int fast = 1 - slow;
    int size = 1;
    int rank;

    for (int i = 0; i < 2; i++) {
        static const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK,
                                    MPI_DISTRIBUTE_CYCLIC};

        gsizes[i] = 1 + (int)typemap_random(6);
        distribs[i] = kinds[typemap_random(3)];
        psizes[i] =
            distribs[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + (int)typemap_random(3);
        dargs[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (distribs[i] == MPI_DISTRIBUTE_CYCLIC && typemap_random(2))
            dargs[i] = 1 + (int)typemap_random(3);
        else if (distribs[i] == MPI_DISTRIBUTE_BLOCK && typemap_random(2))
            dargs[i] = (gsizes[i] + psizes[i] - 1) / psizes[i] + 1;
        size *= psizes[i];
    }
    rank = (int)typemap_random((uint64_t)size);
    for (int x = 0; x < gsizes[slow]; x++)
        for (int y = 0; y < gsizes[fast]; y++) {
            int coords[2] = {rank / psizes[1], rank % psizes[1]};

            if (owns(x, gsizes[slow], distribs[slow], dargs[slow], psizes[slow],
                     coords[slow]) &&
                owns(y, gsizes[fast], distribs[fast], dargs[fast], psizes[fast],
                     coords[fast]))
                append(map, old, extent * (x * gsizes[fast] + y));
        }
    map->lb = 0;
    map->ub = extent * gsizes[0] * gsizes[1];
    map->is_lb_set = true;
    map->is_ub_set = true;
    map->is_empty = false;
    MPI_Type_create_darray(size, rank, 2, gsizes, distribs, dargs, psizes,
                           is_c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old->type,
                           &map->type);
}

static void make_contiguous(struct typemap *map, const struct typemap *old,
                            bool is_wide)
{
    int count = (int)typemap_random(5);

    append_block(map, old, 0, count);
    if (is_wide)
        MPI_Type_contiguous_c(count, old->type, &map->type);
    else
        MPI_Type_contiguous(count, old->type, &map->type);
}

struct typemap typemap_make(int depth, bool is_wide)
{
    struct typemap map;
    struct typemap old;
    bool is_bytes = typemap_random(2);

    if (depth == 0)
        return basic();
    old = typemap_make(depth - 1, is_wide);
    if (old.count > TYPEMAP_MAX / 256)
        return old;
    map = empty();
    switch (typemap_random(9)) {
    case 0:
        make_contiguous(&map, &old, is_wide);
        break;
    case 1:
        make_vector(&map, &old, is_bytes, is_wide);
        break;
    case 2:
        make_indexed(&map, &old, is_bytes, is_wide);
        break;
    case 3:
        make_indexed_block(&map, &old, is_bytes, is_wide);
        break;
    case 4:
        make_struct(&map, &old, depth - 1, is_wide);
        break;
    case 5:
        make_resized(&map, &old, is_wide);
        break;
    case 6:
        make_subarray(&map, &old);
        break;
    case 7:
        make_darray(&map, &old);
        break;
    default:
        append(&map, &old, 0);
        MPI_Type_dup(old.type, &map.type);
        break;
    }
    typemap_free(&old);
    return map;
}
