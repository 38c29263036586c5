/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving side of partitioned communication; see partitioned.h. */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/part/partitioned.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/services/shortage.h"

/* So many partitions any sender may have. */
#define FEW (INT64_C(1) << 14)

/* The receive of a hello; one byte more than it has, to notice a wrong one. */
struct hello {
    struct chempi_request req;
    struct chempi_list link; /* abandoned */
    struct chempi_partitioned_hello words;
    char more;
};

struct precv {
    struct chempi_request req; /* first: the handle points here */
    struct chempi_list link;   /* waiting: W4 */
    struct hello *hello;       /* NULL when it is known, or PROC_NULL */
    void *buf;
    MPI_Count total; /* bytes of the buffer */
    MPI_Count len;   /* bytes of a partition */
    int partitions;
    int source;
    int tag;
    int error; /* of matching, or for want of memory: holds for all rounds */
    struct chempi_partitioned_hello sender; /* valid when hello is NULL */
    int64_t refused; /* partitions of a sender that has too many, else 0 */
    int64_t posted;  /* receives of this round; -1: it has not begun */
    struct chempi_shortage shortage; /* of memory for the others */
    int missing[];                   /* W5; [partitions] */
};

static int poll_waiting(struct chempi_progress_hook *hook);
static bool is_any_due(struct chempi_progress_hook *hook);

static struct {
    struct chempi_list waiting;   /* struct precv.link */
    struct chempi_list abandoned; /* struct hello.link: freed requests; their
                                     hellos must not go to others */
    struct chempi_progress_hook hook;
    bool is_hooked;
} recvs = {
    .waiting = {&recvs.waiting, &recvs.waiting},
    .abandoned = {&recvs.abandoned, &recvs.abandoned},
    .hook = {.poll = poll_waiting, .is_ready = is_any_due},
};

static struct precv *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct precv, req);
}

/* ---- the hello ---- */

static void hello_free(struct hello *hello)
{
    chempi_request_untrack(&hello->req);
    chempi_message_fini(&hello->req);
    free(hello);
}

static struct hello *post_hello(struct precv *pr, int *rc)
{
    struct hello *hello = chempi_sys->malloc(sizeof(*hello));

    if (!hello) {
        *rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
        return NULL;
    }
    chempi_list_init(&hello->link);
    chempi_message_init_recv(&hello->req, &hello->words,
                             (MPI_Count)sizeof(hello->words) + 1,
                             chempi_datatype_lookup(MPI_BYTE), pr->source,
                             pr->tag, pr->req.comm, CHEMPI_CONTEXT_PARTITIONED);
    hello->req.is_active = false; /* nobody waits for it but an active precv */
    chempi_request_track(&hello->req, &chempi_lane_main);
    *rc = chempi_message_start(&hello->req);
    if (!*rc)
        return hello;
    hello_free(hello);
    return NULL;
}

static bool is_sane(const struct hello *hello)
{
    const struct chempi_partitioned_hello *w = &hello->words;

    return hello->req.error == MPI_SUCCESS &&
           hello->req.bytes == (MPI_Count)sizeof(*w) && w->partitions >= 0 &&
           w->partitions <= INT32_MAX && w->len >= 0 && w->first >= 0 &&
           w->first <= CHEMPI_PARTITIONED_TAGS - w->partitions &&
           (w->partitions == 0 || w->len <= INT64_MAX / w->partitions);
}

/* How many receives this one affords a process of another world: as many as it
 * has partitions, or bytes for theirs, if that are no more than others may
 * leave unreceived. A sender of the own job is believed. */
static bool is_too_much(const struct precv *pr)
{
    const struct chempi_partitioned_hello *s = &pr->sender;
    const int64_t held = (int64_t)chempi_setting(CHEMPI_SET_MEET_HELD);

    return s->partitions > FEW && s->partitions > pr->partitions &&
           chempi_foreign_is(
               chempi_comm_proc(pr->req.comm, (uint32_t)pr->source)) &&
           (s->partitions > held || s->len == 0 ||
            s->partitions > pr->total / s->len);
}

/* Free what has been met in the meantime. */
static void clear_abandoned(void)
{
    CHEMPI_LIST_FOR_SAFE (pos, &recvs.abandoned) {
        struct hello *hello = CHEMPI_CONTAINER_OF(pos, struct hello, link);

        if (!chempi_request_is_complete(&hello->req))
            continue;
        chempi_list_remove(pos);
        hello_free(hello);
    }
}

/* ---- which of the receiver's partitions partition k of the sender covers ----
 */

struct cover {
    int64_t low;
    int64_t high; /* < low: none */
};

/* By bytes; without bytes, by proportion. */
static struct cover cover_of(const struct precv *pr, int64_t k)
{
    const struct chempi_partitioned_hello *s = &pr->sender;
    struct cover c;

    if (pr->partitions == 0)
        return (struct cover){0, -1};
    if (s->len > 0 && pr->len > 0) {
        c.low = k * s->len / pr->len;
        c.high = ((k + 1) * s->len - 1) / pr->len;
    } else {
        c.low = k * pr->partitions / s->partitions;
        c.high = ((k + 1) * pr->partitions - 1) / s->partitions;
    }
    if (c.high >= pr->partitions)
        c.high = pr->partitions - 1;
    return c;
}

static void count_missing(struct precv *pr)
{
    memset(pr->missing, 0, (size_t)pr->partitions * sizeof(pr->missing[0]));
    for (int64_t k = 0; k < pr->sender.partitions; k++) {
        struct cover c = cover_of(pr, k);

        for (int64_t p = c.low; p <= c.high; p++)
            pr->missing[p]++;
    }
}

/* Does any data belong to partition p? */
static bool is_covered(const struct precv *pr, int p)
{
    return pr->sender.partitions > 0 &&
           (pr->sender.len == 0 || pr->len == 0 ||
            p * pr->len < pr->sender.partitions * pr->sender.len);
}

/* ---- the receives of one round ---- */

/* A partition of the sender has arrived; called by its completion. */
static void destroy_child(struct chempi_request *child)
{
    struct precv *pr = of_request(child->parent);
    struct cover c =
        cover_of(pr, child->peer_tag - (int64_t)INT32_MIN - pr->sender.first);

    for (int64_t p = c.low; p <= c.high; p++)
        pr->missing[p]--;
    chempi_message_fini(child);
    chempi_request_recycle(child);
}

static const struct chempi_request_ops child_ops = {
    .call = "MPI_Precv_init",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = destroy_child,
};

/* Aim a child at its bytes of the buffer: child->count of them from
 * child->bytes on. */
static int start_child(struct chempi_request *child)
{
    struct precv *pr = of_request(child->parent);
    const struct chempi_datatype *type = pr->req.type;
    struct chempi_rx *rx = &child->u.in.rx;
    uint64_t at = (uint64_t)child->bytes;

    chempi_request_set_pending(child, 1);
    child->u.in.kind = CHEMPI_INCOMING_REQUEST;
    rx->cap = (uint64_t)child->count;
    rx->buf = NULL;
    rx->iter = NULL;
    if (type->is_contiguous || rx->cap == 0) {
        rx->buf = (char *)pr->buf + type->true_lb + at;
    } else {
        chempi_segment_init(&child->iter, pr->buf,
                            (uint64_t)(pr->total / type->size), type->layout);
        chempi_segment_seek(&child->iter, at);
        rx->iter = &child->iter;
    }
    return chempi_engine_recv(child);
}

static int post_child(struct precv *pr, int64_t k)
{
    struct chempi_request *child = chempi_request_alloc(&chempi_lane_main);
    MPI_Count at = k * pr->sender.len;
    MPI_Count room = at < pr->total ? pr->total - at : 0;

    if (!child)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a partition");
    chempi_message_init_recv(child, pr->buf,
                             room < pr->sender.len ? room : pr->sender.len,
                             chempi_datatype_lookup(MPI_BYTE), pr->source,
                             chempi_partitioned_tag(pr->sender.first + k),
                             pr->req.comm, CHEMPI_CONTEXT_PARTITIONED);
    child->bytes = room > 0 ? at : 0;
    child->parent = &pr->req;
    return chempi_partitioned_launch(child, &pr->req, start_child, &child_ops);
}

static void begin_round(struct precv *pr)
{
    pr->req.error = pr->error;
    pr->posted = 0;
    count_missing(pr);
    chempi_request_add_pending(&pr->req, (uint32_t)pr->sender.partitions);
}

/* What is not posted will not come, and would be taken for the next round's. */
static CHEMPI_COLD void give_up(struct precv *pr, int rc)
{
    pr->error = rc;
    for (; pr->posted < pr->sender.partitions; pr->posted++)
        chempi_request_progress(&pr->req, rc);
}

/* The hello is known, and the round is started: post all receives, or for want
 * of memory some: a later poll goes on. `pending` already counts one for this;
 * when it is true, pr may be gone. */
static bool is_posted(struct precv *pr)
{
    int rc = pr->posted < 0 ? pr->error : MPI_SUCCESS;

    if (pr->posted < 0)
        begin_round(pr);
    while (!rc && pr->posted < pr->sender.partitions) {
        rc = post_child(pr, pr->posted);
        if (rc && chempi_shortage_may_wait(&pr->shortage))
            return false;
        pr->posted += !rc;
    }
    if (rc)
        give_up(pr, rc);
    chempi_shortage_end(&pr->shortage);
    chempi_list_remove(&pr->link);
    chempi_request_progress(&pr->req, MPI_SUCCESS);
    return true;
}

/* Take the hello if it is there. */
static bool is_known(struct precv *pr)
{
    struct hello *hello = pr->hello;

    if (!hello)
        return true;
    if (!chempi_request_is_complete(&hello->req))
        return false;
    pr->hello = NULL;
    pr->sender = hello->words;
    if (!is_sane(hello)) {
        memset(&pr->sender, 0, sizeof(pr->sender));
        pr->error = hello->req.error ? hello->req.error : MPI_ERR_INTERN;
    } else if (is_too_much(pr)) {
        pr->refused = pr->sender.partitions;
        pr->sender.partitions = 0; /* none is received */
        pr->error = MPI_ERR_TRUNCATE;
    }
    hello_free(hello);
    return true;
}

static bool is_any_due(struct chempi_progress_hook *hook)
{
    (void)hook;
    CHEMPI_LIST_FOR (pos, &recvs.waiting) {
        const struct precv *pr = CHEMPI_CONTAINER_OF(pos, struct precv, link);

        if (!pr->hello || chempi_request_is_complete(&pr->hello->req))
            return true;
    }
    return false;
}

static int poll_waiting(struct chempi_progress_hook *hook)
{
    int events = 0;

    (void)hook;
    CHEMPI_LIST_FOR_SAFE (pos, &recvs.waiting) {
        struct precv *pr = CHEMPI_CONTAINER_OF(pos, struct precv, link);

        if (is_known(pr))
            events += is_posted(pr);
    }
    if (chempi_list_is_empty(&recvs.waiting)) {
        chempi_progress_remove_hook(&recvs.hook);
        recvs.is_hooked = false;
    }
    return events;
}

/* ---- the request ---- */

static int start(struct chempi_request *req)
{
    struct precv *pr = of_request(req);

    req->error = MPI_SUCCESS;
    if (pr->source == MPI_PROC_NULL) {
        chempi_request_set_pending(req, 0);
        return MPI_SUCCESS;
    }
    chempi_request_set_pending(req, 1);
    pr->posted = -1;
    if (is_known(pr) && is_posted(pr))
        return MPI_SUCCESS;
    chempi_list_append(&recvs.waiting, &pr->link);
    if (!recvs.is_hooked)
        chempi_progress_add_hook(&recvs.hook);
    recvs.is_hooked = true;
    chempi_request_owe(req, (uint64_t)pr->total);
    return MPI_SUCCESS;
}

static int finish(struct chempi_request *req, MPI_Status *status)
{
    struct precv *pr = of_request(req);
    MPI_Count sent = pr->sender.partitions * pr->sender.len;
    int error = req->error;

    if (pr->source == MPI_PROC_NULL) {
        chempi_status_set_proc_null(status);
        return error;
    }
    if (pr->refused)
        error = chempi_error_set(error,
                                 "the partitioned send from rank %d, of "
                                 "another world, with tag %d has %lld "
                                 "partitions of %lld bytes, too many for a "
                                 "receive of %d partitions and %lld bytes",
                                 pr->source, pr->tag, (long long)pr->refused,
                                 (long long)pr->sender.len, pr->partitions,
                                 (long long)pr->total);
    else if (error == MPI_ERR_TRUNCATE)
        error = chempi_error_set(error,
                                 "the partitioned send from rank %d with tag "
                                 "%d has %lld bytes, the receive buffer %lld",
                                 pr->source, pr->tag, (long long)sent,
                                 (long long)pr->total);
    chempi_status_set(status, pr->source, pr->tag,
                      sent < pr->total ? sent : pr->total, false);
    return error;
}

/* Elements of the buffer that messages may name; 0: none. */
static MPI_Count elements_of(const struct precv *pr)
{
    return pr->source == MPI_PROC_NULL || pr->total == 0
               ? 0
               : pr->total / pr->req.type->size;
}

static void destroy(struct chempi_request *req)
{
    struct precv *pr = of_request(req);

    chempi_request_untrack(req);
    chempi_message_unhold_piece(pr->buf, elements_of(pr), req->type);
    chempi_list_remove(&pr->link);
    if (!is_known(pr))
        chempi_list_append(&recvs.abandoned, &pr->hello->link);
    clear_abandoned();
    chempi_message_fini(req);
    free(pr);
}

static const struct chempi_request_ops precv_ops = {
    .call = "MPI_Precv_init",
    .start = start,
    .cancel = chempi_request_cancel_nothing,
    .finish = finish,
    .destroy = destroy,
};

static bool is_recv(const struct chempi_request *req)
{
    return req->ops == &precv_ops;
}

int chempi_partitioned_recv_init(void *buf, int partitions, MPI_Count count,
                                 struct chempi_datatype *datatype, int dest,
                                 int tag, struct chempi_comm *comm,
                                 struct chempi_info *info, MPI_Request *request)
{
    struct precv *pr;
    MPI_Count len = 0;
    int rc = chempi_partitioned_check(partitions, count, datatype, &len);

    (void)info; /* no hint is known */
    if (rc)
        return rc;
    pr = chempi_sys->calloc(1, sizeof(*pr) +
                                   (size_t)partitions * sizeof(pr->missing[0]));
    if (!pr)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_request_init(&pr->req, &chempi_lane_main, CHEMPI_REQUEST_COLL,
                        &precv_ops, comm, datatype);
    pr->req.is_persistent = true;
    pr->req.is_active = false;
    chempi_request_set_pending(&pr->req, 0);
    pr->buf = buf;
    pr->total = partitions * len;
    pr->len = len;
    pr->partitions = partitions;
    pr->source = dest; /* the ABI calls it so here, too */
    pr->tag = tag;
    chempi_list_init(&pr->link);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_track(&pr->req, &chempi_lane_main);
    clear_abandoned();
    chempi_message_hold_piece(buf, elements_of(pr), datatype);
    if (dest != MPI_PROC_NULL)
        pr->hello = post_hello(pr, &rc);
    if (rc)
        destroy(&pr->req);
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
    if (!rc)
        *request = chempi_request_handle(&pr->req);
    return rc;
}

/* ---- has a partition arrived? ---- */

static bool is_arrived(struct chempi_request *req, int partition)
{
    const struct precv *pr = of_request(req);

    if (chempi_request_is_complete(req))
        return true;
    return !pr->hello && is_covered(pr, partition) &&
           pr->missing[partition] == 0;
}

static bool look(struct chempi_request *req, int partition)
{
    bool is;

    chempi_lane_lock(&chempi_lane_main);
    is = !req->is_active || is_arrived(req, partition);
    chempi_lane_unlock(&chempi_lane_main);
    return is;
}

int chempi_partitioned_arrived(MPI_Request request, int partition, int *flag)
{
    struct chempi_request *req = chempi_request_lookup(request);

    *flag = 1;
    if (request == MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    if (!req || !is_recv(req)) {
        chempi_error_set_comm(req ? req->comm : NULL);
        return chempi_error_set(MPI_ERR_REQUEST,
                                "this is no partitioned receive request");
    }
    if (partition < 0 || partition >= of_request(req)->partitions) {
        chempi_error_set_comm(req->comm);
        return chempi_error_set(
            MPI_ERR_ARG, "partition %d; the operation has %d, counted from 0",
            partition, of_request(req)->partitions);
    }
    *flag = look(req, partition);
    if (!*flag) {
        (void)chempi_progress_poll();
        *flag = look(req, partition);
    }
    return MPI_SUCCESS;
}
