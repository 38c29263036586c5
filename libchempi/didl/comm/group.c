/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups (MPI 5.0, section 7.3). A group's members never change after it is
 * made, so reading one needs no lock. Set operations go through a small hash
 * from process to rank and cost O(n), whatever the size of the world.
 */
#include "libchempi/didl/comm/group.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/index.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/worlds/foreign.h"

#define NOT_FOUND UINT32_MAX

struct chempi_group chempi_group_empty = {
    .obj = {.magic = CHEMPI_MAGIC_GROUP, .refs = 1},
    .rank = MPI_UNDEFINED,
};

/* Process -> rank in one group. */
struct rank_map {
    const struct chempi_group *group;
    struct chempi_index index; /* by process; of an identity group: empty */
};

static bool has_proc(const void *elements, uint32_t number, const void *key)
{
    const uint32_t *procs = elements;

    return procs[number] == *(const uint32_t *)key;
}

static int map_init(struct rank_map *map, const struct chempi_group *group)
{
    bool is_good = true;

    *map = (struct rank_map){.group = group};
    for (uint32_t r = 0; group->procs && is_good && r < group->size; r++)
        is_good = chempi_index_add(
            &map->index, chempi_index_hash_number(group->procs[r]), r);
    if (is_good)
        return MPI_SUCCESS;
    chempi_index_fini(&map->index);
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no room to search a group of %u processes",
                            group->size);
}

static void map_fini(struct rank_map *map)
{
    chempi_index_fini(&map->index);
}

static uint32_t map_find(const struct rank_map *map, uint32_t proc)
{
    const uint32_t *procs = map->group->procs;

    if (!procs)
        return proc < map->group->size ? proc : NOT_FOUND;
    return chempi_index_find(&map->index, chempi_index_hash_number(proc),
                             has_proc, procs, &proc);
}

static bool is_identity(uint32_t size, const uint32_t *procs)
{
    for (uint32_t i = 0; i < size; i++)
        if (procs[i] != i)
            return false;
    return true;
}

static int32_t find_self(uint32_t size, const uint32_t *procs)
{
    uint32_t self = (uint32_t)chempi_comm_world.rank;

    if (!procs)
        return self < size ? (int32_t)self : MPI_UNDEFINED;
    for (uint32_t i = 0; i < size; i++)
        if (procs[i] == self)
            return (int32_t)i;
    return MPI_UNDEFINED;
}

static bool has_foreign(uint32_t size, const uint32_t *procs)
{
    for (uint32_t i = 0; procs && i < size; i++)
        if (chempi_foreign_is(procs[i]))
            return true;
    return false;
}

struct chempi_group *chempi_group_make(uint32_t size, uint32_t *procs)
{
    struct chempi_group *group = chempi_sys->calloc(1, sizeof(*group));

    if (!group) {
        free(procs);
        return NULL;
    }
    group->has_foreign = has_foreign(size, procs);
    if (procs && !group->has_foreign && is_identity(size, procs)) {
        free(procs);
        procs = NULL;
    }
    chempi_object_init(&group->obj, CHEMPI_MAGIC_GROUP);
    group->size = size;
    group->procs = procs;
    group->rank = find_self(size, procs);
    return group;
}

void chempi_group_release(struct chempi_group *group)
{
    if (!group || group == &chempi_group_empty ||
        !chempi_object_drop(&group->obj))
        return;
    group->obj.magic = 0;
    free((void *)(uintptr_t)group->procs);
    free(atomic_load_explicit(&group->plan, memory_order_acquire));
    free(group);
}

static int no_memory(uint32_t size)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no room for a group of %u processes", size);
}

/* Turn procs (taken over) into the user's new group. */
static int give(uint32_t size, uint32_t *procs,
                const struct chempi_group *parent, MPI_Group *newgroup)
{
    struct chempi_group *group;

    if (size == 0) {
        free(procs);
        *newgroup = MPI_GROUP_EMPTY;
        return MPI_SUCCESS;
    }
    group = chempi_group_make(size, procs);
    if (!group)
        return no_memory(size);
    group->origin = parent->origin;
    *newgroup = (MPI_Group)(void *)group;
    return MPI_SUCCESS;
}

static uint32_t *make_procs(uint64_t size)
{
    return chempi_sys->malloc((size ? size : 1) * sizeof(uint32_t));
}

struct chempi_group *chempi_group_copy(const struct chempi_group *group,
                                       struct chempi_origin origin)
{
    uint32_t *procs = group->procs ? make_procs(group->size) : NULL;
    struct chempi_group *copy;

    if (group->procs && !procs)
        return NULL;
    if (procs)
        memcpy(procs, group->procs, group->size * sizeof(*procs));
    copy = chempi_group_make(group->size, procs);
    if (copy)
        copy->origin = origin;
    return copy;
}

int chempi_group_get_size(struct chempi_group *group, int *size)
{
    *size = (int)group->size;
    return MPI_SUCCESS;
}

int chempi_group_get_rank(struct chempi_group *group, int *rank)
{
    *rank = group->rank;
    return MPI_SUCCESS;
}

static int bad_rank(const struct chempi_group *group, long rank)
{
    return chempi_error_set(MPI_ERR_RANK,
                            "rank %ld is not in 0..%ld of the group", rank,
                            (long)group->size - 1);
}

int chempi_group_translate_ranks(struct chempi_group *group1, int n,
                                 const int *ranks1, struct chempi_group *group2,
                                 int *ranks2)
{
    struct rank_map map;
    int rc;

    if (n < 0)
        return chempi_error_set(MPI_ERR_ARG, "n is %d", n);
    if (n > 0 && (!ranks1 || !ranks2))
        return chempi_error_set(MPI_ERR_ARG, "argument %s must not be NULL",
                                ranks1 ? "ranks2" : "ranks1");
    rc = map_init(&map, group2);
    for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
        uint32_t found;

        if (ranks1[i] == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if (ranks1[i] < 0 || (uint32_t)ranks1[i] >= group1->size) {
            rc = bad_rank(group1, ranks1[i]);
            break;
        }
        found = map_find(&map, chempi_group_proc(group1, (uint32_t)ranks1[i]));
        ranks2[i] = found == NOT_FOUND ? MPI_UNDEFINED : (int)found;
    }
    map_fini(&map);
    return rc;
}

int chempi_group_ranks_in(const struct chempi_group *group,
                          const struct chempi_group *in, const char *name,
                          int **out)
{
    int *ranks = chempi_sys->malloc(((size_t)group->size + 1) * sizeof(*ranks));
    struct rank_map map;
    int rc;

    if (!ranks)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no room for the ranks of %u processes",
                                group->size);
    rc = map_init(&map, in);
    for (uint32_t i = 0; i < group->size && rc == MPI_SUCCESS; i++) {
        const uint32_t found = map_find(&map, chempi_group_proc(group, i));

        ranks[i] = (int)found;
        if (found == NOT_FOUND)
            rc = chempi_error_set(MPI_ERR_GROUP,
                                  "member %u of the group does not belong to "
                                  "%s",
                                  i, name);
    }
    map_fini(&map);
    if (rc == MPI_SUCCESS)
        *out = ranks;
    else
        free(ranks);
    return rc;
}

static bool is_same_order(const struct chempi_group *a,
                          const struct chempi_group *b)
{
    if (a->procs == b->procs)
        return true;
    if (a->procs && b->procs)
        return memcmp(a->procs, b->procs, a->size * sizeof(*a->procs)) == 0;
    return false; /* chempi_group_make leaves no identity spelled out */
}

int chempi_group_compare(struct chempi_group *group1,
                         struct chempi_group *group2, int *result)
{
    struct rank_map map;
    int rc;

    if (group1->size != group2->size) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    if (is_same_order(group1, group2)) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    rc = map_init(&map, group2);
    if (rc == MPI_SUCCESS) {
        *result = MPI_SIMILAR;
        for (uint32_t i = 0; i < group1->size; i++)
            if (map_find(&map, chempi_group_proc(group1, i)) == NOT_FOUND)
                *result = MPI_UNEQUAL;
    }
    map_fini(&map);
    return rc;
}

/* Append the members of `from` that are (is_in) or are not in map's group. */
static uint32_t append_if(uint32_t *procs, uint32_t size,
                          const struct chempi_group *from,
                          const struct rank_map *map, bool is_in)
{
    for (uint32_t i = 0; i < from->size; i++) {
        uint32_t proc = chempi_group_proc(from, i);

        if ((map_find(map, proc) != NOT_FOUND) == is_in)
            procs[size++] = proc;
    }
    return size;
}

int chempi_group_union(struct chempi_group *group1, struct chempi_group *group2,
                       MPI_Group *newgroup)
{
    uint64_t most = (uint64_t)group1->size + group2->size;
    uint32_t *procs = make_procs(most);
    struct rank_map map;
    int rc;

    if (!procs)
        return no_memory((uint32_t)most);
    rc = map_init(&map, group1);
    if (rc == MPI_SUCCESS) {
        for (uint32_t i = 0; i < group1->size; i++)
            procs[i] = chempi_group_proc(group1, i);
        rc = give(append_if(procs, group1->size, group2, &map, false), procs,
                  group1->origin.session ? group1 : group2, newgroup);
    } else {
        free(procs);
    }
    map_fini(&map);
    return rc;
}

/* Their intersection (is_in) or difference. */
int chempi_group_filter(struct chempi_group *group1,
                        struct chempi_group *group2, MPI_Group *newgroup,
                        bool is_in)
{
    uint32_t *procs = make_procs(group1->size);
    struct rank_map map;
    int rc;

    if (!procs)
        return no_memory(group1->size);
    rc = map_init(&map, group2);
    if (rc == MPI_SUCCESS)
        rc = give(append_if(procs, 0, group1, &map, is_in), procs, group1,
                  newgroup);
    else
        free(procs);
    map_fini(&map);
    return rc;
}

/*
 * Ranks picked one by one out of a group: `ranks` in the order picked, `marks`
 * says which ranks were, so that a repetition is noticed.
 */
struct picks {
    const struct chempi_group *group;
    bool *marks;     /* [group->size] */
    uint32_t *ranks; /* [group->size] */
    uint32_t count;
};

/* n: how many ranks or ranges the caller names. */
static int picks_init(struct picks *picks, const struct chempi_group *group,
                      int n)
{
    size_t room = group->size ? group->size : 1;

    *picks = (struct picks){.group = group};
    if (n < 0)
        return chempi_error_set(MPI_ERR_ARG, "argument n is %d", n);
    picks->marks = chempi_sys->calloc(room, sizeof(*picks->marks));
    picks->ranks = make_procs(room);
    return picks->marks && picks->ranks ? MPI_SUCCESS : no_memory(group->size);
}

static void picks_fini(struct picks *picks)
{
    free(picks->marks);
    free(picks->ranks);
}

static int pick(struct picks *picks, long rank)
{
    if (rank < 0 || rank >= (long)picks->group->size)
        return bad_rank(picks->group, rank);
    if (picks->marks[rank])
        return chempi_error_set(MPI_ERR_RANK,
                                "rank %ld is named more than once", rank);
    picks->marks[rank] = true;
    picks->ranks[picks->count++] = (uint32_t)rank;
    return MPI_SUCCESS;
}

static int pick_list(struct picks *picks, int n, const int *ranks)
{
    int rc = MPI_SUCCESS;

    for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
        rc = pick(picks, ranks[i]);
    return rc;
}

static int pick_range(struct picks *picks, long first, long last, long stride)
{
    int rc = MPI_SUCCESS;

    if (stride == 0)
        return chempi_error_set(MPI_ERR_ARG, "the range %ld..%ld has stride 0",
                                first, last);
    for (long r = first;
         (stride > 0 ? r <= last : r >= last) && rc == MPI_SUCCESS; r += stride)
        rc = pick(picks, r);
    return rc;
}

static int pick_ranges(struct picks *picks, int n, int ranges[][3])
{
    int rc = MPI_SUCCESS;

    for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
        rc = pick_range(picks, ranges[i][0], ranges[i][1], ranges[i][2]);
    return rc;
}

/* The group of the ranks picked, or of all others. */
static int give_picks(const struct picks *picks, bool is_in,
                      MPI_Group *newgroup)
{
    const struct chempi_group *group = picks->group;
    uint32_t *procs = make_procs(group->size);
    uint32_t size = 0;

    if (!procs)
        return no_memory(group->size);
    if (is_in)
        for (; size < picks->count; size++)
            procs[size] = chempi_group_proc(group, picks->ranks[size]);
    else
        for (uint32_t r = 0; r < group->size; r++)
            if (!picks->marks[r])
                procs[size++] = chempi_group_proc(group, r);
    return give(size, procs, group, newgroup);
}

int chempi_group_select(struct chempi_group *group, int n, const int ranks[],
                        MPI_Group *newgroup, bool is_in)
{
    struct picks picks;
    int rc = picks_init(&picks, group, n);

    if (rc == MPI_SUCCESS)
        rc = pick_list(&picks, n, ranks);
    if (rc == MPI_SUCCESS)
        rc = give_picks(&picks, is_in, newgroup);
    picks_fini(&picks);
    return rc;
}

int chempi_group_select_ranges(struct chempi_group *group, int n,
                               int ranges[][3], MPI_Group *newgroup, bool is_in)
{
    struct picks picks;
    int rc = picks_init(&picks, group, n);

    if (rc == MPI_SUCCESS)
        rc = pick_ranges(&picks, n, ranges);
    if (rc == MPI_SUCCESS)
        rc = give_picks(&picks, is_in, newgroup);
    picks_fini(&picks);
    return rc;
}

int chempi_group_free(MPI_Group *group)
{
    struct chempi_group *old = chempi_group_lookup(*group);

    if (!old)
        return chempi_error_set(MPI_ERR_GROUP, "argument group names no group");
    chempi_group_release(old);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}
