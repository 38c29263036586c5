/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active targets (MPI 5.0, sections 12.5.1 and 12.5.2): fence, and post,
 * start, complete, wait. Post and complete are messages without data between
 * the two ranks, which arrive in the order in which they were sent; every one
 * has exactly one receive.
 */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum {
    FENCE_ASSERTS = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE |
                    MPI_MODE_NOSUCCEED,
    POST_ASSERTS = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT
};

static int check_assert(int assert, int known, const char *names)
{
    if ((assert & ~known) == 0)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_ASSERT,
                            "argument assert is %d; expected 0 or a sum of %s",
                            assert, names);
}

/* ---- fence ---- */

int chempi_win_fence(int assert, struct chempi_win *win)
{
    int rc = check_assert(assert, FENCE_ASSERTS,
                          "MPI_MODE_NOSTORE, MPI_MODE_NOPUT, "
                          "MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED");

    if (rc)
        return rc;
    if (win->access != CHEMPI_RMA_NO_ACCESS)
        return chempi_error_set(
            MPI_ERR_RMA_SYNC, "MPI_Win_fence while %s is %s",
            chempi_rma_name(win), chempi_rma_access_words(win));
    if (win->is_posted)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "MPI_Win_fence while %s is exposed by "
                                "MPI_Win_post; call MPI_Win_wait first",
                                chempi_rma_name(win));
    if ((assert &MPI_MODE_NOPRECEDE) && win->fence_used)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "MPI_MODE_NOPRECEDE, but operations of %s "
                                "precede",
                                chempi_rma_name(win));
    chempi_rma_take_turns(win);
    if (assert & MPI_MODE_NOPRECEDE) /* nothing is out */
        rc = chempi_rma_loss(win, MPI_SUCCESS);
    else
        rc = chempi_rma_flush_all(win);
    win->is_fenced = !(assert &MPI_MODE_NOSUCCEED);
    win->fence_used = false;
    if ((assert &MPI_MODE_NOPRECEDE) && (assert &MPI_MODE_NOSUCCEED))
        return rc;
    if (rc)
        (void)chempi_coll_barrier(win->comm);
    else
        rc = chempi_coll_barrier(win->comm);
    chempi_rma_take_turns(win);
    return chempi_rma_loss(win, rc);
}

int chempi_rma_need_epoch(struct chempi_rma_peer *peer)
{
    struct chempi_win *win = peer->win;
    const enum chempi_rma_epoch access = win->access;

    switch (access) {
    case CHEMPI_RMA_LOCKED_ALL:
        if (CHEMPI_LIKELY(peer->lock))
            return MPI_SUCCESS;
        return chempi_rma_take_lock(peer, win->is_unchecked
                                              ? CHEMPI_RMA_UNCHECKED
                                              : CHEMPI_RMA_OVERTAKING);
    case CHEMPI_RMA_LOCKED:
        if (CHEMPI_LIKELY(peer->lock))
            return MPI_SUCCESS;
        break;
    case CHEMPI_RMA_STARTED:
        if (CHEMPI_LIKELY(peer->is_started))
            return MPI_SUCCESS;
        break;
    default:
        if (CHEMPI_LIKELY(win->is_fenced)) {
            atomic_store_explicit(&win->fence_used, true, memory_order_relaxed);
            return MPI_SUCCESS;
        }
        break;
    }
    return chempi_error_set(
        MPI_ERR_RMA_SYNC,
        "rank %u of %s is not in an access epoch (%s is %s): call "
        "MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all first",
        peer->rank, chempi_rma_name(win), chempi_rma_name(win),
        win->access ? chempi_rma_access_words(win) : "in none");
}

/* ---- groups ---- */

static int ranks_of(struct chempi_win *win, struct chempi_group *group,
                    int **out)
{
    return chempi_group_ranks_in(group, win->comm->local, chempi_rma_name(win),
                                 out);
}

static void hold_group(struct chempi_group **slot, struct chempi_group *group)
{
    if (group != &chempi_group_empty)
        chempi_object_hold(&group->obj);
    *slot = group;
}

static void drop_group(struct chempi_group **slot)
{
    if (*slot && *slot != &chempi_group_empty)
        chempi_group_release(*slot);
    *slot = NULL;
}

static int send_token(struct chempi_win *win, int rank, int token)
{
    return chempi_message_send_on(NULL, 0, chempi_rma_bytes(), rank, token,
                                  win->comm,
                                  (enum chempi_context_kind)CHEMPI_RMA_TOKENS);
}

static int expect_token(struct chempi_win *win, int rank, int token,
                        struct chempi_request **req)
{
    return chempi_message_irecv_on(
        NULL, 0, chempi_rma_bytes(), rank, token, win->comm,
        (enum chempi_context_kind)CHEMPI_RMA_TOKENS, req);
}

/* Tokens that nobody waits for any more. */
static void drop_tokens(struct chempi_request **reqs, uint32_t n)
{
    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < n && reqs[i]; i++) {
        if (!chempi_request_is_complete(reqs[i]))
            reqs[i]->ops->cancel(reqs[i]);
        chempi_request_drop(reqs[i]);
    }
    chempi_lane_unlock(&chempi_lane_main);
    free(reqs);
}

static int expect_tokens(struct chempi_win *win, const int *ranks, uint32_t n,
                         int token, struct chempi_request ***out)
{
    struct chempi_request **reqs =
        chempi_sys->calloc((size_t)n + 1, sizeof(struct chempi_request *));
    int rc = MPI_SUCCESS;

    if (!reqs)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for %u requests", n);
    for (uint32_t i = 0; i < n && rc == MPI_SUCCESS; i++)
        rc = expect_token(win, ranks[i], token, &reqs[i]);
    /* A loss that was found meanwhile has ended only those that had been
     * posted (L2); one that is found from here on ends all. */
    if (rc == MPI_SUCCESS && token < CHEMPI_RMA_TOKEN_FREE)
        rc = chempi_rma_loss(win, MPI_SUCCESS);
    if (rc)
        drop_tokens(reqs, n);
    else
        *out = reqs;
    return rc;
}

/* ---- the end ---- */

/* Members of a window. */
struct some {
    int *ranks; /* room for all */
    int count;
};

static uint32_t proc_of(const struct chempi_win *win, int rank)
{
    return chempi_comm_proc(win->comm, (uint32_t)rank);
}

static bool is_own_world(const struct chempi_win *win, int rank)
{
    return !chempi_foreign_is(proc_of(win, rank));
}

static bool are_of_one_world(const struct chempi_win *win, int a, int b)
{
    const struct chempi_name x = chempi_foreign_name(proc_of(win, a));
    struct chempi_name y = chempi_foreign_name(proc_of(win, b));

    y.rank = x.rank;
    return chempi_foreign_compare(&x, &y) == 0;
}

/* Others that are there. */
static void find_others(const struct chempi_win *win, bool with_worlds,
                        struct some *out)
{
    out->count = 0;
    for (int rank = 0; rank < (int)win->comm->size; rank++)
        if (rank != win->comm->rank &&
            (with_worlds || is_own_world(win, rank)) &&
            !chempi_loss_is_away(win->comm, (uint32_t)rank))
            out->ranks[out->count++] = rank;
}

/* The first member of each world, in the same order everywhere; worlds are few.
 */
static void find_firsts(const struct chempi_win *win, struct some *out)
{
    out->count = 0;
    for (int rank = 0; rank < (int)win->comm->size; rank++) {
        int i = 0;

        while (i < out->count && !are_of_one_world(win, out->ranks[i], rank))
            i++;
        if (i == out->count)
            out->ranks[out->count++] = rank;
    }
}

/* Who is away, or says so meanwhile, does not count. */
static void swap_tokens(struct chempi_win *win, const struct some *with,
                        bool sends, bool awaits)
{
    struct chempi_request **reqs = NULL;

    if (awaits && expect_tokens(win, with->ranks, (uint32_t)with->count,
                                CHEMPI_RMA_TOKEN_FREE, &reqs))
        chempi_fatal_die("out of memory for freeing a window");
    for (int i = 0; sends && i < with->count; i++)
        (void)send_token(win, with->ranks[i], CHEMPI_RMA_TOKEN_FREE);
    if (awaits)
        (void)chempi_message_wait_all(reqs, with->count);
    free(reqs);
}

/* May one member of a world be lost, and another stay? */
static bool is_any_surviving(const struct chempi_win *win)
{
    bool is = chempi_ctx.job->survives;

    for (int rank = 0; !is && rank < (int)win->comm->size; rank++)
        is = !is_own_world(win, rank) &&
             chempi_foreign_at(proc_of(win, rank))->survives;
    return is;
}

static void meet_worlds(struct chempi_win *win, struct some *some)
{
    int own = 0;
    int count = 0;

    find_firsts(win, some);
    for (int i = 0; i < some->count; i++)
        if (is_own_world(win, some->ranks[i]))
            own = some->ranks[i];
    if (own != win->comm->rank) {
        *some->ranks = own;
        some->count = 1;
        swap_tokens(win, some, true, true);
        return;
    }
    find_others(win, false, some);
    swap_tokens(win, some, false, true);
    find_firsts(win, some);
    for (int i = 0; i < some->count; i++)
        if (some->ranks[i] != own &&
            !chempi_loss_is_away(win->comm, (uint32_t)some->ranks[i]))
            some->ranks[count++] = some->ranks[i];
    some->count = count;
    swap_tokens(win, some, true, true);
    find_others(win, false, some);
    swap_tokens(win, some, true, false);
}

void chempi_rma_meet_survivors(struct chempi_win *win)
{
    struct some some = {
        .ranks = chempi_sys->malloc(win->comm->size * sizeof(*some.ranks))};

    if (!some.ranks)
        chempi_fatal_die("out of memory for freeing a window");
    if (is_any_surviving(win)) {
        find_others(win, true, &some);
        swap_tokens(win, &some, true, true);
    } else {
        meet_worlds(win, &some);
    }
    free(some.ranks);
}

void chempi_rma_leave_survivors(struct chempi_win *win)
{
    for (int rank = 0; rank < (int)win->comm->size; rank++)
        if (rank != win->comm->rank &&
            !chempi_loss_is_away(win->comm, (uint32_t)rank))
            (void)send_token(win, rank, CHEMPI_RMA_TOKEN_NONE);
    /* They may have sent more than it knows of, and wait for that. */
    chempi_lane_lock(&chempi_lane_main);
    chempi_loss_note_miss(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
}

/* ---- exposure ---- */

static int check_active(const struct chempi_win *win, const char *call)
{
    if (!win->is_fenced || !win->fence_used)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_SYNC,
                            "%s while %s is in an epoch of MPI_Win_fence that "
                            "has operations; close it with another fence",
                            call, chempi_rma_name(win));
}

int chempi_win_post(struct chempi_group *group, int assert,
                    struct chempi_win *win)
{
    int *ranks = NULL;
    int rc = check_assert(assert, POST_ASSERTS,
                          "MPI_MODE_NOCHECK, MPI_MODE_NOSTORE and "
                          "MPI_MODE_NOPUT");

    if (rc == MPI_SUCCESS)
        rc = check_active(win, "MPI_Win_post");
    if (rc == MPI_SUCCESS && win->is_posted)
        rc = chempi_error_set(MPI_ERR_RMA_SYNC,
                              "%s is exposed by an earlier MPI_Win_post; call "
                              "MPI_Win_wait first",
                              chempi_rma_name(win));
    if (rc == MPI_SUCCESS)
        rc = chempi_rma_loss(win, MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        rc = ranks_of(win, group, &ranks);
    if (rc)
        return rc;
    chempi_rma_take_turns(win);
    if (!(assert &MPI_MODE_NOSTORE))
        atomic_thread_fence(memory_order_seq_cst);
    rc = expect_tokens(win, ranks, group->size, CHEMPI_RMA_TOKEN_COMPLETE,
                       &win->awaited);
    for (uint32_t i = 0; i < group->size && rc == MPI_SUCCESS; i++)
        if (!(assert &MPI_MODE_NOCHECK))
            rc = send_token(win, ranks[i], CHEMPI_RMA_TOKEN_POST);
    free(ranks);
    if (rc) {
        if (win->awaited)
            drop_tokens(win->awaited, group->size);
        win->awaited = NULL;
        return rc;
    }
    hold_group(&win->post_group, group);
    win->post_assert = assert;
    win->is_posted = true;
    return MPI_SUCCESS;
}

static int need_post(const struct chempi_win *win, const char *call)
{
    if (win->is_posted)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_SYNC,
                            "%s without MPI_Win_post: %s is not exposed", call,
                            chempi_rma_name(win));
}

static int end_exposure(struct chempi_win *win)
{
    int rc = chempi_message_wait_all(win->awaited, (int)win->post_group->size);

    chempi_rma_take_turns(win);
    free(win->awaited);
    win->awaited = NULL;
    drop_group(&win->post_group);
    win->is_posted = false;
    if (!(win->post_assert & MPI_MODE_NOPUT))
        atomic_thread_fence(memory_order_seq_cst);
    return chempi_rma_loss(win, rc);
}

int chempi_win_wait(struct chempi_win *win)
{
    int rc = need_post(win, "MPI_Win_wait");

    return rc ? rc : end_exposure(win);
}

int chempi_win_test(struct chempi_win *win, int *flag)
{
    int rc = need_post(win, "MPI_Win_test");

    if (rc)
        return rc;
    (void)chempi_progress_poll();
    *flag = 1;
    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < win->post_group->size; i++)
        if (!chempi_request_is_complete(win->awaited[i]))
            *flag = 0;
    chempi_lane_unlock(&chempi_lane_main);
    return *flag ? end_exposure(win) : MPI_SUCCESS;
}

/* ---- access ---- */

/* Note who is in the group, or that nobody is. */
static int mark_started(struct chempi_win *win, const int *ranks, uint32_t n,
                        bool is_started)
{
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < n; i++) {
        struct chempi_rma_peer *peer = chempi_rma_peer(win, (uint32_t)ranks[i]);

        if (peer)
            peer->is_started = is_started;
        else
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for rank %d of %s",
                                  ranks[i], chempi_rma_name(win));
    }
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

static int check_start(const struct chempi_win *win, int assert)
{
    int rc = check_assert(assert, MPI_MODE_NOCHECK, "MPI_MODE_NOCHECK");

    if (rc == MPI_SUCCESS)
        rc = check_active(win, "MPI_Win_start");
    if (rc == MPI_SUCCESS && win->access != CHEMPI_RMA_NO_ACCESS)
        rc = chempi_error_set(MPI_ERR_RMA_SYNC, "%s is already %s",
                              chempi_rma_name(win),
                              chempi_rma_access_words(win));
    return rc;
}

int chempi_win_start(struct chempi_group *group, int assert,
                     struct chempi_win *win)
{
    struct chempi_request **reqs = NULL;
    int *ranks = NULL;
    int rc = check_start(win, assert);

    if (rc == MPI_SUCCESS)
        rc = chempi_rma_loss(win, MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        rc = ranks_of(win, group, &ranks);
    if (rc)
        return rc;
    if (!(assert &MPI_MODE_NOCHECK)) {
        rc = expect_tokens(win, ranks, group->size, CHEMPI_RMA_TOKEN_POST,
                           &reqs);
        if (rc == MPI_SUCCESS)
            rc = chempi_rma_loss(
                win, chempi_message_wait_all(reqs, (int)group->size));
        free(reqs);
    }
    if (rc == MPI_SUCCESS)
        rc = mark_started(win, ranks, group->size, true);
    free(ranks);
    if (rc)
        return rc;
    hold_group(&win->start_group, group);
    win->access = CHEMPI_RMA_STARTED;
    win->is_fenced = false;
    return MPI_SUCCESS;
}

int chempi_win_complete(struct chempi_win *win)
{
    struct chempi_group *group = win->start_group;
    int *ranks = NULL;
    int rc;
    int error;

    if (win->access != CHEMPI_RMA_STARTED)
        return chempi_error_set(MPI_ERR_RMA_SYNC,
                                "MPI_Win_complete without MPI_Win_start: %s is "
                                "%s",
                                chempi_rma_name(win),
                                chempi_rma_access_words(win));
    rc = ranks_of(win, group, &ranks);
    if (rc)
        return rc;
    error = chempi_rma_flush_all(win);
    for (uint32_t i = 0; i < group->size && rc == MPI_SUCCESS; i++)
        rc = send_token(win, ranks[i], CHEMPI_RMA_TOKEN_COMPLETE);
    rc = chempi_rma_loss(win, rc);
    (void)mark_started(win, ranks, group->size, false);
    free(ranks);
    drop_group(&win->start_group);
    win->access = CHEMPI_RMA_NO_ACCESS;
    return error ? error : rc;
}
