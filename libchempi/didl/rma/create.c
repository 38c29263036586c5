/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making and freeing windows (MPI 5.0, section 12.2).
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/host/proc_stat.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"

#define PAGE 4096u
#define LINE 64u

/* Where a process's part of the memory begins in the node's file. */
static uint64_t next_page(uint64_t at)
{
    return (at + PAGE - 1) / PAGE * PAGE;
}

/* ---- hints ---- */

static void take_first_hints(struct chempi_win *win,
                             const struct chempi_info *info)
{
    strcpy(win->ordering, "rar,raw,war,waw");
    strcpy(win->ops, "same_op_no_op");
    chempi_rma_take_hints(win, info);
}

/* ---- the members ---- */

/* Everybody has made its part, or nobody has a window. comm: the window's, or
 * as long as not all have that, the user's. */
static int agree(struct chempi_comm *comm, int rc)
{
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    int64_t worst = rc;
    int error = chempi_comm_max(&ch, MPI_SUCCESS, &worst, 1);

    if (rc == MPI_SUCCESS && error)
        rc = error;
    else if (rc == MPI_SUCCESS && worst != MPI_SUCCESS)
        rc = chempi_error_set(chempi_error_class_of_others(worst),
                              "the window could not be made at another rank");
    return rc;
}

/* Its own communicator over the same processes. rc: what went wrong here
 * before, which all members learn. */
static int make_comm(struct chempi_win *win, struct chempi_comm *comm, int rc)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    uint32_t context;
    int error = chempi_comm_agree_context(&channel, MPI_SUCCESS, &context);

    if (error)
        return rc ? rc : error;
    if (rc == MPI_SUCCESS) {
        win->comm = chempi_comm_make(comm->local, NULL, context, context);
        if (!win->comm || !chempi_coll_own(win->comm))
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for a window");
    }
    if (!win || !win->comm)
        chempi_comm_give_context(context);
    else /* for those who ask where it waits */
        (void)snprintf(win->comm->name, sizeof(win->comm->name),
                       "a window of %u ranks", comm->size);
    return agree(comm, rc);
}

static int find_locals(struct chempi_win *win)
{
    uint32_t *locals =
        chempi_sys->malloc((size_t)win->comm->size * sizeof(*locals));

    if (!locals)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a window");
    win->locals = locals;
    for (uint32_t i = 0; i < win->comm->size; i++) {
        if (!chempi_ctx_is_here(chempi_comm_proc(win->comm, i)))
            continue;
        if (i == (uint32_t)win->comm->rank)
            win->me_local = win->local_count;
        locals[win->local_count++] = i;
    }
    locals = chempi_sys->realloc(win->locals, /* it becomes shorter */
                                 (size_t)win->local_count * sizeof(*locals));
    if (locals)
        win->locals = locals;
    win->seat_count = 1;
    while (win->seat_count < win->local_count)
        win->seat_count *= 2;
    win->cards = chempi_sys->calloc(win->local_count, sizeof(*win->cards));
    return win->cards
               ? MPI_SUCCESS
               : chempi_error_set(MPI_ERR_NO_MEM, "no memory for a window");
}

/* Of this process, for all its windows. */
static struct {
    pthread_once_t once;
    uint64_t space; /* where process numbers and the times of births count
                       alike; 0: not known */
    uint64_t born;  /* 0: not known */
} process = {.once = PTHREAD_ONCE_INIT};

static void find_process(void)
{
    const uint64_t pids = chempi_file_inode("/proc/self/ns/pid");
    struct chempi_proc_stat stat;

    if (pids)
        process.space = pids ^ chempi_file_inode("/proc/self/ns/time") << 32;
    if (chempi_proc_stat(getpid(), &stat) == 0)
        process.born = stat.born;
}

static int swap_cards(struct chempi_win *win)
{
    struct chempi_comm_channel ch = chempi_rma_node_channel(win);
    struct chempi_rma_card mine = {.size = (uint64_t)win->size,
                                   .unit = win->unit,
                                   .at = UINT64_MAX,
                                   .pid = (int32_t)getpid()};
    int rc;

    (void)pthread_once(&process.once, find_process);
    mine.space = process.space;
    mine.born = process.born;
    win->probe =
        (unsigned char)(chempi_clock_ns() >> 8 ^ (uint64_t)getpid() * 167);
    mine.base = (uint64_t)(uintptr_t)win->base;
    mine.probe = (uint64_t)(uintptr_t)&win->probe;
    mine.probe_value = win->probe;
    mine.is_fine =
        win->granularity && win->granularity <= (int)sizeof(uint64_t);
    rc = chempi_comm_allgather(&ch, MPI_SUCCESS, &mine, sizeof(mine),
                               win->cards);
    win->is_fine = rc == MPI_SUCCESS;
    win->knows_dead = rc == MPI_SUCCESS && mine.space != 0;
    for (uint32_t i = 0; i < win->local_count; i++) {
        win->is_fine = win->is_fine && win->cards[i].is_fine;
        win->knows_dead = win->knows_dead && win->cards[i].space == mine.space;
    }
    return rc;
}

/* Only where sizes differ, and other nodes take part, does every member keep
 * what it knows of all. */
static int swap_sizes(struct chempi_win *win)
{
    struct chempi_comm_channel ch = chempi_comm_channel(win->comm);
    int64_t vals[4] = {win->size, -win->size, win->unit, -win->unit};
    int rc = MPI_SUCCESS;

    if (win->local_count == win->comm->size ||
        win->flavor == MPI_WIN_FLAVOR_DYNAMIC ||
        (win->same_size && win->same_unit))
        return MPI_SUCCESS;
    rc = chempi_comm_max(&ch, MPI_SUCCESS, vals, 4);
    if (rc || (vals[0] == -vals[1] && vals[2] == -vals[3]))
        return rc;
    win->all = chempi_sys->calloc(win->comm->size, sizeof(*win->all));
    if (!win->all)
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for a window");
    rc = agree(win->comm, rc);
    if (rc)
        return rc;
    ch = chempi_comm_channel(win->comm);
    return chempi_comm_allgather(
        &ch, MPI_SUCCESS,
        &(struct chempi_rma_extent){.size = win->size, .unit = win->unit},
        sizeof(*win->all), win->all);
}

/* ---- memory ---- */

static bool is_allocated(const struct chempi_win *win)
{
    return win->flavor == MPI_WIN_FLAVOR_ALLOCATE ||
           win->flavor == MPI_WIN_FLAVOR_SHARED;
}

/* The file: lines, seats, then everybody's part. Returns its length, which is
 * INT64_MAX where that is not enough. */
static uint64_t lay_out(struct chempi_win *win, uint64_t *common)
{
    const bool is_packed =
        win->flavor == MPI_WIN_FLAVOR_SHARED && !win->noncontig;
    const uint64_t end = INT64_MAX / PAGE * PAGE; /* at <= end */
    uint64_t at =
        win->local_count * sizeof(struct chempi_rma_line) +
        (uint64_t)win->local_count * (win->seat_count * sizeof(*win->seats) +
                                      win->local_count * sizeof(*win->marks));

    at = next_page(at);
    *common = at;
    for (uint32_t i = 0; is_allocated(win) && i < win->local_count; i++) {
        win->cards[i].at = at;
        if (win->cards[i].size > end - at)
            return INT64_MAX;
        at += win->cards[i].size;
        if (!is_packed)
            at = next_page(at);
    }
    return at;
}

static void place_lines(struct chempi_win *win, char *memory)
{
    const size_t seats =
        (size_t)win->local_count * win->seat_count * sizeof(*win->seats);

    win->lines = (struct chempi_rma_line *)(void *)memory;
    memory += win->local_count * sizeof(*win->lines);
    win->seats = (_Atomic uint32_t *)(void *)memory;
    win->marks = (_Atomic uint8_t *)(void *)(memory + seats);
}

static const char *sharing_words(int code)
{
    switch (code) {
    case -EFBIG:
        return "the memory file would be larger than files may be; raise the "
               "limit with 'ulimit -f unlimited'";
    case -EMFILE:
        return "there is no descriptor for the memory file; raise the limit of "
               "open files ('ulimit -n')";
    case -ENFILE:
        return "the host has too many open files; raise fs.file-max";
    case 0: /* no memory file at all */
    case -EACCES:
    case -EPERM:
    case -ENOENT:
    case -ESTALE:
        return "opening another process's memory file is not allowed here";
    default:
        return chempi_err_name(code);
    }
}

/* Nothing can be shared (code: why not), or nobody is there to share with. */
static int make_private(struct chempi_win *win, uint64_t common, int code)
{
    void *memory = NULL;
    uint64_t own = is_allocated(win) ? (uint64_t)win->size : 0;

    if (win->flavor == MPI_WIN_FLAVOR_SHARED && win->comm->size > 1)
        return chempi_error_set(MPI_ERR_RMA_SHARED,
                                "the ranks of this node cannot share memory: "
                                "%s",
                                sharing_words(code));
    if (own > INT64_MAX - common - LINE ||
        chempi_sys->posix_memalign(&memory, PAGE, common + own + 1))
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for a window of %llu bytes",
                                (unsigned long long)own);
    memset(memory, 0, common);
    win->heap = memory;
    place_lines(win, memory);
    for (uint32_t i = 0; i < win->local_count; i++)
        win->cards[i].at = UINT64_MAX;
    if (is_allocated(win))
        win->base = (char *)memory + common;
    return MPI_SUCCESS;
}

static int make_memory(struct chempi_win *win)
{
    uint64_t common;
    uint64_t len = lay_out(win, &common);
    const struct chempi_rma_card *mine = &win->cards[win->me_local];
    bool has_part = mine->at != UINT64_MAX;
    int rc;

    if (win->local_count == 1) {
        /* Sharing takes a tag of the communicator's, which all members must
         * count alike. */
        (void)chempi_rma_node_channel(win);
        return make_private(win, common, 0);
    }
    rc = chempi_rma_share(win, len, common, has_part ? mine->at : 0,
                          has_part ? mine->size : 0);
    if (rc == -ENOSPC || rc == -ENOMEM)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no shared memory for a window: %llu bytes on "
                                "this node",
                                (unsigned long long)len);
    if (rc)
        return make_private(win, common, rc);
    win->is_shared = true;
    place_lines(win, win->file);
    if (is_allocated(win))
        win->base = (char *)win->file + mine->at;
    return MPI_SUCCESS;
}

/* ---- windows ---- */

/* Also of one that is not whole, or NULL. */
static void destroy(struct chempi_win *win)
{
    if (!win)
        return;
    chempi_lane_lock(&chempi_lane_main);
    if (!chempi_list_is_empty(&win->link)) {
        chempi_rma_count_retire(win);
        chempi_list_remove(&win->link);
    }
    chempi_lane_unlock(&chempi_lane_main);
    chempi_rma_close_wire(win);
    chempi_rma_free_peers(win);
    chempi_rma_unshare(win);
    while (!chempi_list_is_empty(&win->regions)) {
        struct chempi_list *first = chempi_list_first(&win->regions);

        chempi_list_remove(first);
        free(CHEMPI_CONTAINER_OF(first, struct chempi_rma_region, link));
    }
    free(win->heap);
    free(win->locals);
    free(win->cards);
    free(win->all);
    chempi_attr_drop_all(&win->attrs);
    chempi_errhandler_put(&win->errhandler, NULL);
    if (win->comm)
        chempi_comm_release(win->comm);
    win->obj.magic = 0;
    free(win);
}

static int build(struct chempi_win *win)
{
    int rc = agree(win->comm, find_locals(win));

    if (rc == MPI_SUCCESS && win->flavor == MPI_WIN_FLAVOR_SHARED &&
        win->local_count != win->comm->size)
        return chempi_error_set(
            MPI_ERR_RMA_SHARED,
            "the communicator has ranks on several nodes, which share no "
            "memory; split it with MPI_Comm_split_type and "
            "MPI_COMM_TYPE_SHARED");
    if (rc == MPI_SUCCESS)
        rc = swap_cards(win);
    if (rc == MPI_SUCCESS)
        rc = swap_sizes(win);
    if (rc == MPI_SUCCESS)
        rc = make_memory(win);
    if (rc == MPI_SUCCESS) {
        win->has_shared_locks = win->local_count == win->comm->size &&
                                (win->is_shared || win->comm->size == 1);
        win->is_served = win->comm->size > 1 &&
                         !(win->has_shared_locks && is_allocated(win));
        rc = chempi_rma_open_wire(win);
    }
    return agree(win->comm, rc);
}

static int check_arguments(int flavor, const void *base, MPI_Aint size,
                           MPI_Count unit)
{
    if (size < 0)
        return chempi_error_set(MPI_ERR_SIZE,
                                "argument size is %lld; expected 0 or more",
                                (long long)size);
    if (unit <= 0)
        return chempi_error_set(MPI_ERR_DISP,
                                "argument disp_unit is %lld; expected 1 or "
                                "more",
                                (long long)unit);
    if (flavor == MPI_WIN_FLAVOR_CREATE && !base && size > 0)
        return chempi_error_set(MPI_ERR_BASE,
                                "argument base is NULL, but size is %lld; "
                                "expected memory, or size 0",
                                (long long)size);
    return MPI_SUCCESS;
}

static struct chempi_win *make_win(int flavor, void *base, MPI_Aint size,
                                   MPI_Count unit,
                                   const struct chempi_info *info)
{
    struct chempi_win *win = chempi_sys->calloc(1, sizeof(*win));

    if (!win) {
        (void)chempi_error_set(MPI_ERR_NO_MEM, "no memory for a window");
        return NULL;
    }
    chempi_object_init(&win->obj, CHEMPI_MAGIC_WIN);
    chempi_list_init(&win->link);
    chempi_list_init(&win->regions);
    chempi_list_init(&win->held);
    win->handle = (MPI_Win)(void *)win;
    win->flavor = flavor;
    win->model = MPI_WIN_UNIFIED;
    win->base = base;
    win->size = size;
    win->unit = unit;
    win->unit_shown = (int)unit;
    take_first_hints(win, info);
    chempi_errhandler_put(&win->errhandler, &chempi_errhandler_fatal);
    return win;
}

static bool is_idle(void *arg)
{
    return chempi_list_is_empty(&((struct chempi_win *)arg)->active);
}

/* This member has failed in making it, and others may have theirs. They may
 * have done something with its part already. */
static void leave(struct chempi_win *win)
{
    if (win->hook.poll) {
        chempi_rma_stop_serving(win);
        (void)chempi_progress_wait(is_idle, win);
    }
    chempi_rma_leave_survivors(win);
}

/* A member whose arguments are wrong, or who has no memory, takes part until
 * all know of it. */
static int create(int flavor, void *base, MPI_Aint size, MPI_Count unit,
                  const struct chempi_info *info, struct chempi_comm *comm,
                  struct chempi_win **out)
{
    struct chempi_win *win = NULL;
    int rc;

    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "a window cannot be made from an "
                                              "intercommunicator");
    rc = check_arguments(flavor, base, size, unit);
    if (rc == MPI_SUCCESS) {
        win = make_win(flavor, base, size, unit, info);
        rc = win ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    rc = make_comm(win, comm, rc);
    if (rc == MPI_SUCCESS) {
        rc = build(win);
        if (rc && chempi_loss_may_be_in(win->comm))
            leave(win);
    }
    /* Others may have theirs, and send to it, though this member perhaps has
     * only been told of a loss, and knows of none itself. */
    if (rc && win && win->comm)
        win->comm->is_partial = chempi_loss_may_be_in(win->comm);
    if (rc) {
        destroy(win);
        return rc;
    }
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_append(&chempi_rma_windows, &win->link);
    chempi_lane_unlock(&chempi_lane_main);
    *out = win;
    return MPI_SUCCESS;
}

int chempi_win_create(void *base, MPI_Aint size, MPI_Count disp_unit,
                      struct chempi_info *info, struct chempi_comm *comm,
                      MPI_Win *win)
{
    struct chempi_win *made = NULL;
    int rc =
        create(MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm, &made);

    if (rc == MPI_SUCCESS)
        *win = made->handle;
    return rc;
}

int chempi_win_allocate(MPI_Aint size, MPI_Count disp_unit,
                        struct chempi_info *info, struct chempi_comm *comm,
                        void *baseptr, MPI_Win *win, int flavor)
{
    struct chempi_win *made = NULL;
    int rc = create(flavor, NULL, size, disp_unit, info, comm, &made);

    if (rc)
        return rc;
    memcpy(baseptr, &made->base, sizeof(made->base)); /* of any type */
    *win = made->handle;
    return MPI_SUCCESS;
}

int chempi_win_create_dynamic(struct chempi_info *info,
                              struct chempi_comm *comm, MPI_Win *win)
{
    struct chempi_win *made = NULL;
    int rc =
        create(MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1, info, comm, &made);

    if (rc == MPI_SUCCESS)
        *win = made->handle;
    return rc;
}

/* ---- the end ---- */

static int check_free(const struct chempi_win *win)
{
    if (win->access != CHEMPI_RMA_NO_ACCESS)
        return chempi_error_set(MPI_ERR_RMA_SYNC, "%s is %s; end it first",
                                chempi_rma_name(win),
                                chempi_rma_access_words(win));
    if (win->is_posted)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "%s is exposed by MPI_Win_post; call "
                                "MPI_Win_wait first",
                                chempi_rma_name(win));
    return MPI_SUCCESS;
}

int chempi_win_free(MPI_Win *handle)
{
    struct chempi_win *win = chempi_win_lookup(*handle);
    int rc;

    if (!win)
        return chempi_error_set(MPI_ERR_WIN, "argument win names no window");
    rc = check_free(win);
    if (rc == MPI_SUCCESS)
        rc = chempi_attr_delete_all(&win->obj);
    if (rc) {
        chempi_error_blame(&win->obj);
        return rc;
    }
    rc = chempi_rma_flush_all(win);
    if (chempi_ctx.job->survives || win->comm->has_foreign)
        chempi_rma_meet_survivors(win);
    else
        (void)chempi_coll_barrier(win->comm);
    (void)chempi_progress_wait(is_idle, win);
    if (chempi_rma_lost(win)) /* all its users know */
        rc = MPI_SUCCESS;
    destroy(win);
    *handle = MPI_WIN_NULL;
    return rc;
}
