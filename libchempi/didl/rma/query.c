/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a window is asked and told beside operations: group, name, hints,
 * attributes, error handler; memory of others that is mapped here; what is
 * attached to a dynamic window.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/number.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"

/* ---- group, name, hints ---- */

int chempi_win_get_group(struct chempi_win *win, MPI_Group *group)
{
    return chempi_comm_get_group(win->comm, group);
}

int chempi_win_set_name(struct chempi_win *win, const char *win_name)
{
    chempi_lane_lock(&chempi_lane_main);
    (void)snprintf(win->name, sizeof(win->name), "%s", win_name);
    (void)snprintf(win->comm->name, sizeof(win->comm->name), "%s", win_name);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

int chempi_win_get_name(struct chempi_win *win, char *win_name, int *resultlen)
{
    *resultlen = snprintf(win_name, MPI_MAX_OBJECT_NAME, "%s", win->name);
    return MPI_SUCCESS;
}

static void take_bool(const struct chempi_info *info, const char *key,
                      bool *value)
{
    const char *text = chempi_info_find(info, key);

    if (text && strcmp(text, "true") == 0)
        *value = true;
    else if (text && strcmp(text, "false") == 0)
        *value = false;
}

/* "none", or orders with commas between them. */
static bool is_ordering(const char *text)
{
    if (strcmp(text, "none") == 0)
        return true;
    for (;;) {
        if (strncmp(text, "rar", 3) != 0 && strncmp(text, "raw", 3) != 0 &&
            strncmp(text, "war", 3) != 0 && strncmp(text, "waw", 3) != 0)
            return false;
        if (text[3] != ',')
            return text[3] == '\0';
        text += 4;
    }
}

static bool is_ops(const char *text)
{
    return strcmp(text, "same_op") == 0 || strcmp(text, "same_op_no_op") == 0;
}

static void take_text(const struct chempi_info *info, const char *key,
                      bool (*is_known)(const char *text), char *to, size_t room)
{
    const char *text = chempi_info_find(info, key);

    if (text && strlen(text) < room && is_known(text))
        memcpy(to, text, strlen(text) + 1);
}

static void take_granularity(struct chempi_win *win,
                             const struct chempi_info *info)
{
    const char *text = chempi_info_find(info, "mpi_accumulate_granularity");
    uint32_t value;

    if (text && chempi_number_parse32(text, 0, INT32_MAX, &value))
        win->granularity = (int)value;
}

void chempi_rma_take_hints(struct chempi_win *win,
                           const struct chempi_info *info)
{
    take_bool(info, "no_locks", &win->no_locks);
    take_bool(info, "same_size", &win->same_size);
    take_bool(info, "same_disp_unit", &win->same_unit);
    take_bool(info, "alloc_shared_noncontig", &win->noncontig);
    take_text(info, "accumulate_ordering", is_ordering, win->ordering,
              sizeof(win->ordering));
    take_text(info, "accumulate_ops", is_ops, win->ops, sizeof(win->ops));
    take_granularity(win, info);
    win->is_unordered =
        !strstr(win->ordering, "waw") && !strstr(win->ordering, "war");
    win->is_same_op = strcmp(win->ops, "same_op") == 0;
}

int chempi_win_set_info(struct chempi_win *win, struct chempi_info *info)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_take_hints(win, info);
    chempi_rma_owe(win);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

static const char *word(bool value)
{
    return value ? "true" : "false";
}

static int fill_info(const struct chempi_win *win, struct chempi_info *info)
{
    const struct {
        const char *key;
        const char *value;
    } pairs[] = {
        {"no_locks", word(win->no_locks)},
        {"accumulate_ordering", win->ordering},
        {"accumulate_ops", win->ops},
        {"same_size", word(win->same_size)},
        {"same_disp_unit", word(win->same_unit)},
        {"alloc_shared_noncontig",
         win->flavor == MPI_WIN_FLAVOR_SHARED ? word(win->noncontig) : NULL},
    };
    char number[16];
    int rc = MPI_SUCCESS;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(pairs) && rc == MPI_SUCCESS; i++)
        if (pairs[i].value)
            rc = chempi_info_set(info, pairs[i].key, pairs[i].value);
    if (rc || !win->granularity)
        return rc;
    (void)snprintf(number, sizeof(number), "%d", win->granularity);
    return chempi_info_set(info, "mpi_accumulate_granularity", number);
}

int chempi_win_get_info(struct chempi_win *win, MPI_Info *info_used)
{
    MPI_Info made;
    int rc = chempi_info_create(&made);

    if (rc)
        return rc;
    rc = fill_info(win, chempi_info_lookup(made));
    if (rc)
        (void)chempi_info_free(&made);
    else
        *info_used = made;
    return rc;
}

/* ---- attributes and error handlers ---- */

static bool get_predefined(struct chempi_object *object, int keyval,
                           void **value, int *flag)
{
    struct chempi_win *win =
        CHEMPI_CONTAINER_OF(object, struct chempi_win, obj);

    switch (keyval) {
    case MPI_WIN_BASE:
        *value = win->base;
        break;
    case MPI_WIN_SIZE:
        *value = &win->size;
        break;
    case MPI_WIN_DISP_UNIT:
        *value = &win->unit_shown;
        break;
    case MPI_WIN_CREATE_FLAVOR:
        *value = &win->flavor;
        break;
    case MPI_WIN_MODEL:
        *value = &win->model;
        break;
    default:
        return false;
    }
    *flag = 1;
    return true;
}

static void describe(struct chempi_object *object,
                     struct chempi_error_subject *out)
{
    struct chempi_win *win =
        CHEMPI_CONTAINER_OF(object, struct chempi_win, obj);

    *out = (struct chempi_error_subject){.errhandler = &win->errhandler,
                                         .attrs = &win->attrs,
                                         .predefined = get_predefined,
                                         .handle = win->handle,
                                         .name = win->name[0] ? win->name
                                                              : "a window"};
}

void chempi_win_prepare(void)
{
    chempi_error_set_subject(CHEMPI_MAGIC_WIN, describe);
    chempi_rma_count_init();
}

/* ---- memory of others ---- */

/* The first member with memory, for MPI_PROC_NULL. */
static int first_with_memory(const struct chempi_win *win)
{
    for (uint32_t i = 0; i < win->local_count; i++)
        if (win->cards[i].size > 0)
            return (int)win->locals[i];
    return (int)win->locals[0];
}

int chempi_win_shared_query(struct chempi_win *win, int rank, MPI_Aint *size,
                            MPI_Count *disp_unit, void *baseptr)
{
    struct chempi_rma_peer *peer;
    void *base = NULL;

    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return chempi_error_set(MPI_ERR_RMA_FLAVOR,
                                "%s is dynamic: it has no memory of its own",
                                chempi_rma_name(win));
    if (rank == MPI_PROC_NULL)
        rank = first_with_memory(win);
    if (rank < 0 || (uint32_t)rank >= win->comm->size)
        return chempi_error_set(
            MPI_ERR_RANK, "argument rank is %d; %s has ranks 0 to %u", rank,
            chempi_rma_name(win), win->comm->size - 1);
    chempi_lane_lock(&chempi_lane_main);
    peer = chempi_rma_peer(win, (uint32_t)rank);
    win->is_queried = true;
    chempi_lane_unlock(&chempi_lane_main);
    if (!peer)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for rank %d of %s",
                                rank, chempi_rma_name(win));
    *size = 0;
    *disp_unit = 0;
    if (peer->is_mapped) {
        base = peer->size > 0 ? peer->mem : NULL;
        *size = (MPI_Aint)peer->size;
        *disp_unit = peer->unit;
    }
    memcpy(baseptr, &base, sizeof(base)); /* a pointer of any type */
    return MPI_SUCCESS;
}

/* ---- dynamic windows ---- */

static int need_dynamic(const struct chempi_win *win)
{
    if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_FLAVOR,
                            "%s was not made by MPI_Win_create_dynamic",
                            chempi_rma_name(win));
}

static int check_overlap(const struct chempi_win *win, uint64_t base,
                         uint64_t size)
{
    CHEMPI_LIST_FOR (link, &win->regions) {
        const struct chempi_rma_region *r =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_region, link);

        if (base < r->base + r->size && r->base < base + size)
            return chempi_error_set(
                MPI_ERR_RMA_ATTACH,
                "%s: %llu bytes at 0x%llx overlap %llu bytes at 0x%llx, which "
                "are attached already; detach them first",
                chempi_rma_name(win), (unsigned long long)size,
                (unsigned long long)base, (unsigned long long)r->size,
                (unsigned long long)r->base);
    }
    return MPI_SUCCESS;
}

/* The end of what is attached from there on without a gap, or 0. */
static uint64_t region_end(const struct chempi_win *win, uint64_t start)
{
    CHEMPI_LIST_FOR (link, &win->regions) {
        const struct chempi_rma_region *r =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_region, link);

        if (start >= r->base && start < r->base + r->size)
            return r->base + r->size;
    }
    return 0;
}

/* No memory of a process lies in the upper half of all addresses. */
bool chempi_rma_is_attached(const struct chempi_win *win, int64_t start,
                            int64_t end)
{
    uint64_t at = (uint64_t)start;

    if (start < 0)
        return false;
    while (at < (uint64_t)end) {
        at = region_end(win, at);
        if (!at)
            return false;
    }
    return true;
}

int chempi_win_attach(struct chempi_win *win, void *base, MPI_Aint size)
{
    struct chempi_rma_region *region;
    int rc = need_dynamic(win);

    if (rc)
        return rc;
    if (size < 0)
        return chempi_error_set(MPI_ERR_SIZE,
                                "argument size is %lld; expected 0 or more",
                                (long long)size);
    if (!base && size > 0)
        return chempi_error_set(MPI_ERR_BASE,
                                "argument base is NULL, but size is %lld; "
                                "expected memory to attach to %s, or size 0",
                                (long long)size, chempi_rma_name(win));
    region = chempi_sys->calloc(1, sizeof(*region));
    if (!region)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory to attach memory");
    region->base = (uint64_t)(uintptr_t)base;
    region->size = (uint64_t)size;
    chempi_lane_lock(&chempi_lane_main);
    rc = check_overlap(win, region->base, region->size);
    if (rc == MPI_SUCCESS)
        chempi_list_append(&win->regions, &region->link);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        free(region);
    return rc;
}

static struct chempi_rma_region *find_region(struct chempi_win *win,
                                             uint64_t base)
{
    CHEMPI_LIST_FOR (link, &win->regions) {
        struct chempi_rma_region *r =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_region, link);

        if (r->base == base)
            return r;
    }
    return NULL;
}

int chempi_win_detach(struct chempi_win *win, const void *base)
{
    struct chempi_rma_region *region;
    int rc = need_dynamic(win);

    if (rc)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    region = find_region(win, (uint64_t)(uintptr_t)base);
    if (region)
        chempi_list_remove(&region->link);
    chempi_lane_unlock(&chempi_lane_main);
    if (!region)
        return chempi_error_set(
            MPI_ERR_RMA_ATTACH, "%s: nothing that begins at 0x%llx is attached",
            chempi_rma_name(win), (unsigned long long)(uintptr_t)base);
    free(region);
    return MPI_SUCCESS;
}
