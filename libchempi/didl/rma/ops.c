/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication calls (MPI 5.0, section 12.3): from arguments to an operation
 * whose target, range and types are checked, and on to the way that reaches
 * the target.
 */
#include <stdlib.h>

#include "common/base/copy.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/signature.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/op/op.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"

enum work { PUT, GET, FOLD, SWAP };

/* ---- checks ---- */

static CHEMPI_COLD int beyond(const struct chempi_rma_op *op, int64_t low,
                              int64_t high)
{
    return chempi_error_set(
        MPI_ERR_RMA_RANGE,
        "%s: displacement %lld (of %lld bytes each) at rank %u means bytes "
        "%lld to %lld, but the window has %llu bytes there",
        chempi_rma_name(op->win), (long long)op->disp,
        (long long)op->peer->unit, op->peer->rank, (long long)low,
        (long long)high, (unsigned long long)op->peer->size);
}

/* Only the target knows what is attached to a dynamic window, but for our own.
 */
static int check_attached(const struct chempi_rma_op *op, int64_t low,
                          int64_t high)
{
    bool is_there;

    if (op->peer->reach != CHEMPI_RMA_SELF)
        return MPI_SUCCESS;
    chempi_lane_lock(&chempi_lane_main);
    is_there = chempi_rma_is_attached(op->win, low, high);
    chempi_lane_unlock(&chempi_lane_main);
    if (is_there)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_RANGE,
                            "%s: displacement %lld at rank %u (this process): "
                            "not all of the %lld bytes there are attached; "
                            "call MPI_Win_attach first",
                            chempi_rma_name(op->win), (long long)op->disp,
                            op->peer->rank, (long long)(high - low));
}

static CHEMPI_COLD int beyond_all(const struct chempi_rma_op *op)
{
    return chempi_error_set(
        MPI_ERR_RMA_RANGE,
        "%s: displacement %lld (of %lld bytes each) at rank %u is beyond all "
        "memory; the window has %llu bytes there",
        chempi_rma_name(op->win), (long long)op->disp,
        (long long)op->peer->unit, op->peer->rank,
        (unsigned long long)op->peer->size);
}

/* Does a piece of memory without gaps lie in the window? False: look closer. */
static bool is_within(const struct chempi_rma_op *op)
{
    int64_t start;

    return op->type->is_contiguous && op->type->true_lb == 0 &&
           !CHEMPI_MUL_OVERFLOWS(op->disp, op->peer->unit, &start) &&
           (uint64_t)start <= op->peer->size &&
           op->len <= op->peer->size - (uint64_t)start;
}

/* After the amount. */
static int check_range(const struct chempi_rma_op *op)
{
    const struct chempi_datatype *type = op->type;
    int64_t low = type->true_lb;
    int64_t high = type->true_lb + type->true_extent;
    int64_t start;
    int64_t last;

    if (CHEMPI_LIKELY(is_within(op)) || op->count == 0 || type->size == 0)
        return MPI_SUCCESS;
    if (CHEMPI_MUL_OVERFLOWS(op->count - 1, type->extent, &last) ||
        CHEMPI_MUL_OVERFLOWS(op->disp, op->peer->unit, &start) ||
        CHEMPI_ADD_OVERFLOWS(last < 0 ? last : 0, low, &low) ||
        CHEMPI_ADD_OVERFLOWS(last > 0 ? last : 0, high, &high) ||
        CHEMPI_ADD_OVERFLOWS(low, start, &low) ||
        CHEMPI_ADD_OVERFLOWS(high, start, &high))
        return beyond_all(op);
    if (op->win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return check_attached(op, low, high);
    if (CHEMPI_UNLIKELY(low < 0 || (uint64_t)high > op->peer->size))
        return beyond(op, low, high - 1);
    return MPI_SUCCESS;
}

/* What is written may not name a byte twice (MPI 5.0, sections 12.3.1 to
 * 12.3.5). */
static int check_apart(const struct chempi_rma_op *op, MPI_Count count,
                       struct chempi_datatype *type, const char *name)
{
    if (CHEMPI_LIKELY(chempi_datatype_is_apart(type, count)))
        return MPI_SUCCESS;
    return chempi_error_set(
        MPI_ERR_TYPE,
        "%s: at rank %u, displacement %lld: the %s datatype (%lld elements of "
        "%s) has entries that overlap; what is written must name each byte "
        "once",
        chempi_rma_name(op->win), op->peer->rank, (long long)op->disp, name,
        (long long)count, type->name[0] ? type->name : "one without a name");
}

/* Both signatures are known here (MPI 5.0, section 3.3.1): MPI_PACKED matches
 * all, MPI_BYTE itself. Of the same number of bytes; chempirun --check. */
static CHEMPI_COLD int check_types(const struct chempi_rma_op *op,
                                   const struct chempi_rma_side *side,
                                   const char *name)
{
    const struct chempi_signature mine =
        chempi_signature_of(side->type, side->count);
    const struct chempi_signature theirs =
        chempi_signature_of(op->type, op->count);
    const bool is_bytes =
        (mine.kind == CHEMPI_BASIC_TYPE_BYTE && !theirs.is_open) ||
        (theirs.kind == CHEMPI_BASIC_TYPE_BYTE && !mine.is_open);

    if (mine.bytes == 0 || (!is_bytes && (mine.is_open || theirs.is_open ||
                                          (mine.hash == theirs.hash &&
                                           mine.power == theirs.power))))
        return MPI_SUCCESS;
    return chempi_error_set(
        MPI_ERR_TYPE,
        "%s: the %s has %s, the target (rank %u, displacement %lld) %s; both "
        "must have the same amount of the same basic types",
        chempi_rma_name(op->win), name, chempi_signature_name(mine.kind),
        op->peer->rank, (long long)op->disp,
        chempi_signature_name(theirs.kind));
}

static int check_amount(struct chempi_rma_op *op,
                        const struct chempi_rma_side *side, const char *name)
{
    MPI_Count mine;
    MPI_Count theirs;

    if (CHEMPI_MUL_OVERFLOWS(side->count, side->type->size, &mine) ||
        CHEMPI_MUL_OVERFLOWS(op->count, op->type->size, &theirs))
        return chempi_error_set(MPI_ERR_COUNT,
                                "the amount of data exceeds 2^63 bytes");
    if (CHEMPI_UNLIKELY(mine != theirs))
        return chempi_error_set(
            MPI_ERR_TYPE,
            "%s: the %s has %lld bytes, the target (rank %u, displacement "
            "%lld) %lld; both must have the same amount of the same basic "
            "types",
            chempi_rma_name(op->win), name, (long long)mine, op->peer->rank,
            (long long)op->disp, (long long)theirs);
    op->len = (uint64_t)theirs;
    return CHEMPI_LIKELY(side->type == op->type) ||
                   !chempi_signature_is_watched()
               ? MPI_SUCCESS
               : check_types(op, side, name);
}

static int check_elements(struct chempi_rma_op *op,
                          const struct chempi_rma_side *side)
{
    if (CHEMPI_LIKELY(side->type->elem_kind == op->type->elem_kind))
        return MPI_SUCCESS;
    return chempi_error_set(
        MPI_ERR_TYPE,
        "%s: accumulating at rank %u, displacement %lld: %s and %s are not "
        "made of the same basic type",
        chempi_rma_name(op->win), op->peer->rank, (long long)op->disp,
        side->type->name[0] ? side->type->name : "the origin's datatype",
        op->type->name[0] ? op->type->name : "the target's");
}

static int check_fold(struct chempi_rma_op *op, struct chempi_op *mpi_op)
{
    uint32_t index = (uint32_t)(mpi_op - chempi_op_predefined);
    int rc = MPI_SUCCESS;

    if (!mpi_op->is_predefined)
        return chempi_error_set(MPI_ERR_OP,
                                "%s: accumulating at rank %u, displacement "
                                "%lld: only predefined operations can be used",
                                chempi_rma_name(op->win), op->peer->rank,
                                (long long)op->disp);
    if (index == CHEMPI_OP_NO_OP && !op->is_fetch)
        return chempi_error_set(MPI_ERR_OP,
                                "%s: accumulating at rank %u, displacement "
                                "%lld: MPI_NO_OP is for calls that fetch",
                                chempi_rma_name(op->win), op->peer->rank,
                                (long long)op->disp);
    op->op = index;
    op->elem = op->type->elem_kind;
    if (op->len == 0)
        return MPI_SUCCESS;
    if (op->elem == CHEMPI_BASIC_TYPE_NONE)
        return chempi_error_set(MPI_ERR_TYPE,
                                "%s: accumulating at rank %u, displacement "
                                "%lld: the target datatype is not made of one "
                                "basic type",
                                chempi_rma_name(op->win), op->peer->rank,
                                (long long)op->disp);
    if (index != CHEMPI_OP_NO_OP)
        rc = check_elements(op, &op->origin);
    if (rc == MPI_SUCCESS && op->is_fetch)
        rc = check_elements(op, &op->result);
    if (rc == MPI_SUCCESS && index != CHEMPI_OP_NO_OP &&
        index != CHEMPI_OP_REPLACE && !chempi_op_loops[index][op->elem])
        rc = chempi_error_set(
            MPI_ERR_OP,
            "%s: accumulating at rank %u, displacement %lld: the operation is "
            "not defined on %s",
            chempi_rma_name(op->win), op->peer->rank, (long long)op->disp,
            op->type->name[0] ? op->type->name : "the target's datatype");
    return rc;
}

/* ---- requests ---- */

/* Of a call with a request: where it went, for words. */
struct user {
    struct chempi_request req;
    const struct chempi_win *win; /* may be free before the request is */
    uint32_t rank;
    MPI_Aint disp;
    uint64_t len; /* bytes */
};

static void destroy_user(struct chempi_request *req)
{
    req->obj.magic = 0;
    free(CHEMPI_CONTAINER_OF(req, struct user, req));
}

static bool is_there(const struct chempi_win *win)
{
    CHEMPI_LIST_FOR (link, &chempi_rma_windows)
        if (CHEMPI_CONTAINER_OF(link, struct chempi_win, link) == win)
            return true;
    return false;
}

/* Losses have words of their own (chempi_request_explain()). */
static int finish_user(struct chempi_request *req, MPI_Status *status)
{
    const struct user *user = CHEMPI_CONTAINER_OF(req, struct user, req);
    const int rc = chempi_request_finish_empty(req, status);

    if (CHEMPI_LIKELY(!rc) || rc == MPI_ERR_PROC_ABORTED)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    if (is_there(user->win))
        (void)chempi_rma_refused(
            user->win, user->rank,
            &(const struct chempi_rma_verdict){.error = rc,
                                               .is_placed = true,
                                               .disp = user->disp,
                                               .len = user->len});
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

#define USER_OPS(name, call_name)                                              \
    static const struct chempi_request_ops name = {                            \
        .call = call_name,                                                     \
        .start = chempi_request_start_nothing,                                 \
        .cancel = chempi_request_cancel_nothing,                               \
        .finish = finish_user,                                                 \
        .destroy = destroy_user,                                               \
    }

USER_OPS(rput_ops, "MPI_Rput");
USER_OPS(rget_ops, "MPI_Rget");
USER_OPS(raccumulate_ops, "MPI_Raccumulate");
USER_OPS(rget_accumulate_ops, "MPI_Rget_accumulate");

/* A request that is complete when its first count goes. */
static struct chempi_request *make_user(const struct chempi_rma_call *call,
                                        const struct chempi_request_ops *ops)
{
    struct user *user = chempi_sys->calloc(1, sizeof(*user));

    if (!user) {
        (void)chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
        return NULL;
    }
    chempi_request_init(&user->req, &chempi_lane_main, CHEMPI_REQUEST_RMA, ops,
                        NULL, NULL);
    user->win = call->win;
    user->rank = (uint32_t)call->rank;
    user->disp = call->disp;
    user->len = (uint64_t)call->count * (uint64_t)call->type->size;
    return &user->req;
}

/* ---- on the way ---- */

static int by_message(struct chempi_rma_op *op, enum work work,
                      const void *compare)
{
    switch (work) {
    case PUT:
        return chempi_rma_message_put(op);
    case GET:
        return chempi_rma_message_get(op);
    case FOLD:
        return chempi_rma_message_fold(op);
    default:
        return chempi_rma_message_swap(op, compare);
    }
}

static int mapped(struct chempi_rma_op *op, enum work work, const void *compare)
{
    switch (work) {
    case PUT:
        return chempi_rma_direct_put(op);
    case GET:
        return chempi_rma_direct_get(op);
    case FOLD:
        return chempi_rma_direct_fold(op);
    default:
        return chempi_rma_direct_swap(op, compare);
    }
}

static int dispatch(struct chempi_rma_op *op, enum work work,
                    const void *compare)
{
    uint32_t reach = op->peer->reach;
    int rc = -1;

    op->done = op->len;
    if (op->peer->is_mapped) {
        rc = mapped(op, work, compare);
    } else if (reach == CHEMPI_RMA_ATTACH && work <= GET) {
        rc =
            work == PUT ? chempi_rma_attach_put(op) : chempi_rma_attach_get(op);
    }
    if (rc < 0) {
        reach = CHEMPI_RMA_MESSAGE;
        op->done = work == FOLD ? 0 : op->len;
        rc = by_message(op, work, compare);
    }
    chempi_rma_count(op->win, (enum chempi_rma_counter)(2 * reach), 1);
    chempi_rma_count(op->win, (enum chempi_rma_counter)(2 * reach + 1),
                     op->len);
    return rc;
}

static bool has_room(void *arg)
{
    return ((const struct chempi_win *)arg)->out_bytes <=
           CHEMPI_RMA_OUT_MAX / 2;
}

/* The pieces of a long accumulate as others make room. */
static int finish_fold(struct chempi_rma_op *op)
{
    int rc = MPI_SUCCESS;

    while (op->done < op->len && rc == MPI_SUCCESS) {
        (void)chempi_progress_wait(has_room, op->win);
        chempi_lane_lock(&chempi_lane_main);
        rc = chempi_rma_message_fold(op);
        chempi_lane_unlock(&chempi_lane_main);
    }
    return rc;
}

/* Does it end in a batch that leaves later? Then there is nothing to lock the
 * lane for. */
static bool is_copied(const struct chempi_rma_op *op, enum work work)
{
    return op->peer->reach == CHEMPI_RMA_MESSAGE && !op->is_fetch &&
           (work == PUT || work == FOLD) && op->len <= CHEMPI_RMA_INLINE_MAX &&
           op->type->is_contiguous;
}

/* False: it needs more than a visit. */
static bool append(struct chempi_rma_op *op, enum work work, int *rc)
{
    bool is_done;

    if (!chempi_lane_visit(&chempi_lane_main))
        return false;
    is_done = op->win->out_bytes <= CHEMPI_RMA_OUT_MAX &&
              chempi_rma_find_space(op->peer, op->len);
    if (is_done)
        *rc = dispatch(op, work, NULL);
    chempi_lane_end_visit(&chempi_lane_main);
    return is_done;
}

static int carry_out(struct chempi_rma_op *op, enum work work,
                     const void *compare)
{
    bool is_full;
    int rc = chempi_rma_need_epoch(op->peer);

    if (CHEMPI_UNLIKELY(rc) || op->len == 0)
        return rc;
    if (is_copied(op, work) && append(op, work, &rc))
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    rc = dispatch(op, work, compare);
    is_full = op->win->out_bytes > CHEMPI_RMA_OUT_MAX;
    chempi_lane_unlock_posted(&chempi_lane_main);
    if (CHEMPI_UNLIKELY(op->done < op->len) && rc == MPI_SUCCESS)
        return finish_fold(op);
    if (CHEMPI_UNLIKELY(is_full))
        (void)chempi_progress_wait(has_room, op->win);
    return rc;
}

/* ---- the calls ---- */

static int check_disp(const struct chempi_rma_op *op)
{
    if (CHEMPI_LIKELY(op->disp >= 0) ||
        op->win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_DISP,
                            "argument target_disp is %lld at rank %u of %s; "
                            "expected 0 or more",
                            (long long)op->disp, op->peer->rank,
                            chempi_rma_name(op->win));
}

/* Put or get between memory without gaps that is mapped here. */
static int copy_mapped(const struct chempi_rma_op *op,
                       const struct chempi_rma_side *mine, bool is_put)
{
    const uint32_t which = 2u * op->peer->reach;
    const int rc = chempi_rma_need_epoch(op->peer);
    char *here;
    char *there;

    if (CHEMPI_UNLIKELY(rc) || op->len == 0)
        return rc;
    here = mine->buf + mine->type->true_lb;
    there = chempi_rma_address(op->peer, op->disp) + op->type->true_lb;
    chempi_lane_lock(&chempi_lane_main);
    if (is_put)
        chempi_rma_note_stores(op->win);
    chempi_copy(is_put ? there : here, is_put ? here : there, op->len);
    chempi_rma_count(op->win, (enum chempi_rma_counter)which, 1);
    chempi_rma_count(op->win, (enum chempi_rma_counter)(which + 1), op->len);
    chempi_lane_unlock_posted(&chempi_lane_main);
    return MPI_SUCCESS;
}

static inline int find_target(struct chempi_rma_op *op,
                              const struct chempi_rma_call *call)
{
    int rc = chempi_rma_find(op->win, call->rank, "target_rank", &op->peer);

    op->disp = call->disp;
    op->count = call->count;
    op->type = call->type;
    return rc ? rc : check_disp(op);
}

/* put (is_put) or get */
static int transfer(const struct chempi_rma_call *call, bool is_put,
                    struct chempi_request *user)
{
    const struct chempi_rma_side *mine = &call->origin;
    struct chempi_rma_op op; /* most of it is for operations by message: to
                                clear it takes as long as a short copy */
    int rc;

    if (call->rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    op.win = call->win;
    rc = find_target(&op, call);
    if (rc == MPI_SUCCESS)
        rc = check_amount(&op, mine, is_put ? "origin" : "result");
    if (rc == MPI_SUCCESS)
        rc = check_range(&op);
    if (rc == MPI_SUCCESS)
        rc = is_put ? check_apart(&op, call->count, call->type, "target")
                    : check_apart(&op, mine->count, mine->type, "origin");
    if (CHEMPI_UNLIKELY(rc))
        return rc;
    if (CHEMPI_LIKELY(op.peer->is_mapped && mine->type->is_contiguous &&
                      call->type->is_contiguous))
        return copy_mapped(&op, mine, is_put);
    op = (struct chempi_rma_op){.win = op.win,
                                .peer = op.peer,
                                .disp = op.disp,
                                .count = op.count,
                                .type = op.type,
                                .len = op.len,
                                .user = user};
    if (is_put)
        op.origin = *mine;
    else
        op.result = *mine;
    return carry_out(&op, is_put ? PUT : GET, NULL);
}

int chempi_win_transfer(struct chempi_rma_call *call, bool is_put)
{
    return transfer(call, is_put, NULL);
}

/* accumulate, or get_accumulate (is_fetch) */
static int accumulate(const struct chempi_rma_call *call, bool is_fetch,
                      struct chempi_request *user)
{
    const bool is_no_op = call->op->handle == MPI_NO_OP;
    const struct chempi_rma_side *result = is_fetch ? &call->result : NULL;
    struct chempi_rma_op op = {
        .win = call->win, .is_fetch = is_fetch, .user = user};
    int rc;

    if (call->rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    rc = find_target(&op, call);
    if (rc == MPI_SUCCESS && !is_no_op)
        rc = check_amount(&op, &call->origin, "origin");
    if (rc == MPI_SUCCESS && result)
        rc = check_amount(&op, result, "result");
    if (rc == MPI_SUCCESS)
        rc = check_range(&op);
    if (rc == MPI_SUCCESS)
        rc = check_apart(&op, call->count, call->type, "target");
    if (rc == MPI_SUCCESS && result)
        rc = check_apart(&op, result->count, result->type, "result");
    if (CHEMPI_UNLIKELY(rc))
        return rc;
    if (!is_no_op)
        op.origin = call->origin;
    if (result)
        op.result = *result;
    rc = check_fold(&op, call->op);
    return rc ? rc : carry_out(&op, FOLD, NULL);
}

int chempi_win_accumulate(struct chempi_rma_call *call, bool is_fetch)
{
    return accumulate(call, is_fetch, NULL);
}

/* Calls that name one datatype take one element of it on all sides. */
static void be_single(struct chempi_rma_call *call)
{
    call->count = call->origin.count = call->result.count = 1;
    call->origin.type = call->result.type = call->type;
}

static int refuse_type(const struct chempi_rma_call *call, const char *words)
{
    return chempi_error_set(
        MPI_ERR_TYPE, "%s: at rank %d, displacement %lld: %s only",
        chempi_rma_name(call->win), call->rank, (long long)call->disp, words);
}

int chempi_win_fetch_and_op(struct chempi_rma_call *call)
{
    if (!call->type->is_predefined)
        return refuse_type(call, "MPI_Fetch_and_op takes predefined datatypes");
    be_single(call);
    return accumulate(call, true, NULL);
}

/* Integers, logicals and bytes (MPI 5.0, section 12.3.4). */
static bool is_comparable(uint8_t elem)
{
    return elem == CHEMPI_BASIC_TYPE_BYTE || elem == CHEMPI_BASIC_TYPE_CHAR ||
           elem == CHEMPI_BASIC_TYPE_WCHAR ||
           (elem >= CHEMPI_BASIC_TYPE_I8 && elem <= CHEMPI_BASIC_TYPE_U64) ||
           (elem >= CHEMPI_BASIC_TYPE_BOOL && elem <= CHEMPI_BASIC_TYPE_L128);
}

int chempi_win_compare_and_swap(struct chempi_rma_call *call)
{
    struct chempi_rma_op op = {.win = call->win, .is_fetch = true};
    int rc;

    if (call->rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (!call->type->is_predefined || !is_comparable(call->type->elem_kind))
        return refuse_type(call, "MPI_Compare_and_swap takes predefined "
                                 "integers, logicals and bytes");
    be_single(call);
    op.origin = call->origin;
    op.result = call->result;
    op.len = (uint64_t)call->type->size;
    rc = find_target(&op, call);
    if (rc == MPI_SUCCESS)
        rc = check_range(&op);
    return rc ? rc : carry_out(&op, SWAP, call->compare);
}

/* ---- with a request ---- */

static int check_passive(const struct chempi_win *win, const char *name)
{
    if (win->access == CHEMPI_RMA_LOCKED ||
        win->access == CHEMPI_RMA_LOCKED_ALL)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_RMA_SYNC,
                            "%s is for epochs of MPI_Win_lock and "
                            "MPI_Win_lock_all only; %s is %s",
                            name, chempi_rma_name(win),
                            chempi_rma_access_words(win));
}

static int begin_user(const struct chempi_rma_call *call,
                      const struct chempi_request_ops *ops,
                      struct chempi_request **out)
{
    int rc = call->rank == MPI_PROC_NULL ? MPI_SUCCESS
                                         : check_passive(call->win, ops->call);

    if (rc)
        return rc;
    /* The wait for it may find it complete. */
    chempi_rma_breathe(call->win);
    rc = chempi_rma_loss(call->win, MPI_SUCCESS);
    if (rc)
        return rc;
    *out = make_user(call, ops);
    return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int end_user(struct chempi_request *user, int rc, MPI_Request *request)
{
    if (rc) { /* pieces under way still advance it */
        chempi_lane_lock(&chempi_lane_main);
        chempi_request_orphan(user);
        chempi_request_progress(user, rc);
        chempi_lane_unlock(&chempi_lane_main);
        return rc;
    }
    *request = chempi_request_handle(user);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_progress(user, MPI_SUCCESS);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

int chempi_win_transfer_by_request(struct chempi_rma_call *call,
                                   MPI_Request *request, bool is_put)
{
    struct chempi_request *user;
    int rc = begin_user(call, is_put ? &rput_ops : &rget_ops, &user);

    return rc ? rc : end_user(user, transfer(call, is_put, user), request);
}

int chempi_win_accumulate_by_request(struct chempi_rma_call *call,
                                     MPI_Request *request, bool is_fetch)
{
    struct chempi_request *user;
    int rc = begin_user(
        call, is_fetch ? &rget_accumulate_ops : &raccumulate_ops, &user);

    return rc ? rc : end_user(user, accumulate(call, is_fetch, user), request);
}
