/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending side of partitioned communication; see partitioned.h. */
#include "libchempi/didl/part/partitioned.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

struct psend {
    struct chempi_request req; /* first: the handle points here */
    struct chempi_list link;   /* live, by first */
    const void *buf;
    MPI_Count count; /* elements of a partition */
    MPI_Count len;   /* bytes of a partition */
    int partitions;
    int dest;
    int64_t first; /* W1 */
    unsigned char is_ready[];
};

/* A hello on its way. */
struct hello {
    struct chempi_request req;
    struct chempi_partitioned_hello words;
};

static struct {
    struct chempi_list live; /* struct psend.link, ascending by first */
    int64_t next;            /* where to look for free tags */
} sends = {.live = {&sends.live, &sends.live}};

static struct psend *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct psend, req);
}

static struct psend *of_link(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct psend, link);
}

int chempi_partitioned_check(int partitions, MPI_Count count,
                             const struct chempi_datatype *type, MPI_Count *len)
{
    if (partitions < 0)
        return chempi_error_set(MPI_ERR_ARG, "%d partitions", partitions);
    if (type->size > 0 && count > INT64_MAX / type->size)
        return chempi_error_set(MPI_ERR_COUNT,
                                "a partition of %lld elements "
                                "is too large",
                                (long long)count);
    *len = count * type->size;
    if (partitions > 0 && *len > INT64_MAX / partitions)
        return chempi_error_set(MPI_ERR_COUNT,
                                "%d partitions of %lld bytes are too large",
                                partitions, (long long)*len);
    return MPI_SUCCESS;
}

int chempi_partitioned_launch(struct chempi_request *child,
                              struct chempi_request *parent,
                              int (*start)(struct chempi_request *child),
                              const struct chempi_request_ops *ops)
{
    int rc = start(child);
    int error;

    if (ops)
        child->ops = ops;
    if (rc) {
        chempi_message_fini(child);
        chempi_request_recycle(child);
        return rc;
    }
    child->parent = parent;
    if (!chempi_request_is_complete(child)) {
        chempi_request_orphan(child);
        chempi_request_owe(child, (uint64_t)(child->count * child->type->size));
        return MPI_SUCCESS;
    }
    error = child->error;
    chempi_request_drop(child);
    chempi_request_progress(parent, error);
    return MPI_SUCCESS;
}

/* ---- wire tags ---- */

/* The place in `live` before which count tags fit at `at`, or NULL; *end
 * becomes where to look next. */
static struct chempi_list *fits(int64_t at, int64_t count, int64_t *end)
{
    CHEMPI_LIST_FOR (pos, &sends.live) {
        const struct psend *other = of_link(pos);

        if (other->first + other->partitions <= at)
            continue;
        if (at + count <= other->first)
            return pos;
        *end = other->first + other->partitions;
        return NULL;
    }
    *end = CHEMPI_PARTITIONED_TAGS;
    return at + count <= CHEMPI_PARTITIONED_TAGS ? &sends.live : NULL;
}

/* Reserve the tags of ps: the next free ones, so that a tag is not used again
 * soon, when a message of its former life may still be about. */
static int reserve(struct psend *ps)
{
    int64_t at = sends.next;
    bool has_wrapped = false;

    for (;;) {
        int64_t end;
        struct chempi_list *before = fits(at, ps->partitions, &end);

        if (before) {
            ps->first = at;
            sends.next = at + ps->partitions;
            chempi_list_append(before, &ps->link); /* in front of it */
            return MPI_SUCCESS;
        }
        if (has_wrapped && end >= CHEMPI_PARTITIONED_TAGS)
            return chempi_error_set(MPI_ERR_NO_MEM,
                                    "partitioned sends with more than %lld "
                                    "partitions in all",
                                    (long long)CHEMPI_PARTITIONED_TAGS);
        has_wrapped |= end >= CHEMPI_PARTITIONED_TAGS;
        at = end >= CHEMPI_PARTITIONED_TAGS ? 0 : end;
    }
}

/* ---- the hello ---- */

static void destroy_hello(struct chempi_request *req)
{
    chempi_message_fini(req);
    free(CHEMPI_CONTAINER_OF(req, struct hello, req));
}

static const struct chempi_request_ops hello_ops = {
    .call = "MPI_Psend_init",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = destroy_hello,
};

static int send_hello(const struct psend *ps, int tag)
{
    struct hello *hello = chempi_sys->malloc(sizeof(*hello));
    int rc;

    if (!hello)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a message");
    hello->words = (struct chempi_partitioned_hello){
        .first = ps->first, .partitions = ps->partitions, .len = ps->len};
    chempi_message_init_send(&hello->req, &hello->words, sizeof(hello->words),
                             chempi_datatype_lookup(MPI_BYTE), ps->dest, tag,
                             ps->req.comm, CHEMPI_CONTEXT_PARTITIONED,
                             CHEMPI_SEND_STANDARD);
    rc = chempi_message_start(&hello->req);
    hello->req.ops = &hello_ops;
    if (rc || chempi_request_is_complete(&hello->req))
        destroy_hello(&hello->req);
    else
        chempi_request_orphan(&hello->req);
    return rc;
}

/* ---- the request ---- */

static int start(struct chempi_request *req)
{
    struct psend *ps = of_request(req);

    req->error = MPI_SUCCESS;
    if (ps->dest == MPI_PROC_NULL) {
        chempi_request_set_pending(req, 0);
        return MPI_SUCCESS;
    }
    chempi_request_set_pending(req, (uint32_t)ps->partitions);
    memset(ps->is_ready, 0, (size_t)ps->partitions);
    return MPI_SUCCESS;
}

static int finish(struct chempi_request *req, MPI_Status *status)
{
    chempi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
    return req->error;
}

/* Elements of the buffer that messages may name; 0: none. */
static MPI_Count elements_of(const struct psend *ps)
{
    return ps->dest == MPI_PROC_NULL || ps->len == 0
               ? 0
               : ps->partitions * ps->count;
}

static void destroy(struct chempi_request *req)
{
    struct psend *ps = of_request(req);

    chempi_request_untrack(req);
    chempi_message_unhold_piece(ps->buf, elements_of(ps), req->type);
    chempi_list_remove(&ps->link);
    chempi_message_fini(req);
    free(ps);
}

static const struct chempi_request_ops psend_ops = {
    .call = "MPI_Psend_init",
    .start = start,
    .cancel = chempi_request_cancel_nothing,
    .finish = finish,
    .destroy = destroy,
};

static bool is_send(const struct chempi_request *req)
{
    return req->ops == &psend_ops;
}

int chempi_partitioned_send_init(const void *buf, int partitions,
                                 MPI_Count count,
                                 struct chempi_datatype *datatype, int dest,
                                 int tag, struct chempi_comm *comm,
                                 struct chempi_info *info, MPI_Request *request)
{
    struct psend *ps = NULL;
    MPI_Count len = 0;
    int rc = chempi_partitioned_check(partitions, count, datatype, &len);

    (void)info; /* no hint is known */
    if (rc)
        return rc;
    ps = chempi_sys->malloc(sizeof(*ps) + (size_t)partitions);
    if (!ps)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_request_init(&ps->req, &chempi_lane_main, CHEMPI_REQUEST_COLL,
                        &psend_ops, comm, datatype);
    ps->req.is_persistent = true;
    ps->req.is_active = false;
    chempi_request_set_pending(&ps->req, 0);
    ps->buf = buf;
    ps->count = count;
    ps->len = len;
    ps->partitions = partitions;
    ps->dest = dest;
    chempi_list_init(&ps->link);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_track(&ps->req, &chempi_lane_main);
    chempi_message_hold_piece(buf, elements_of(ps), datatype);
    if (dest != MPI_PROC_NULL) {
        rc = reserve(ps);
        if (!rc)
            rc = send_hello(ps, tag);
    }
    if (rc)
        destroy(&ps->req);
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
    if (!rc)
        *request = chempi_request_handle(&ps->req);
    return rc;
}

/* ---- partitions ---- */

static int start_child(struct chempi_request *child)
{
    return chempi_message_start(child);
}

static int send_by_request(struct psend *ps, const void *buf, int tag)
{
    struct chempi_request *child = chempi_request_alloc(&chempi_lane_main);

    if (!child)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a partition");
    chempi_message_init_send(child, buf, ps->count, ps->req.type, ps->dest, tag,
                             ps->req.comm, CHEMPI_CONTEXT_PARTITIONED,
                             CHEMPI_SEND_STANDARD);
    return chempi_partitioned_launch(child, &ps->req, start_child, NULL);
}

/* Partition k is ready: it leaves now. A small one needs no request. */
static int send_partition(struct psend *ps, int k)
{
    const struct chempi_datatype *type = ps->req.type;
    const struct chempi_comm *comm = ps->req.comm;
    const char *buf = (const char *)((uintptr_t)ps->buf +
                                     (uintptr_t)(k * ps->count * type->extent));
    int tag = chempi_partitioned_tag(ps->first + k);
    struct chempi_peer *peer = chempi_conn_peer(
        &chempi_lane_main, chempi_comm_proc(comm, (uint32_t)ps->dest));
    struct chempi_envelope env = {
        .len = (uint64_t)ps->len,
        .context = comm->send_context + CHEMPI_CONTEXT_PARTITIONED,
        .source = comm->rank,
        .tag = tag,
        .kind = CHEMPI_KIND_MESSAGE,
    };

    /* Devices may take messages for one that is lost until they find out. */
    if (type->is_contiguous && !peer->is_lost &&
        chempi_engine_inject(peer, &env, buf + type->true_lb, false) == 0) {
        chempi_request_progress(&ps->req, MPI_SUCCESS);
        return MPI_SUCCESS;
    }
    return send_by_request(ps, buf, tag);
}

/* The receiver is lost: no other partition will leave, and who waits for the
 * operation is told so. ps may be gone afterwards. */
static CHEMPI_COLD void give_up(struct psend *ps, int error)
{
    uint32_t left = 0;

    for (int k = 0; k < ps->partitions; k++) {
        left += !ps->is_ready[k];
        ps->is_ready[k] = 1;
    }
    chempi_request_set_pending(&ps->req,
                               chempi_request_pending(&ps->req) - (left - 1));
    chempi_request_progress(&ps->req, error);
}

static int ready(struct psend *ps, int k)
{
    int rc;

    if (k < 0 || k >= ps->partitions)
        return chempi_error_set(
            MPI_ERR_ARG, "partition %d; the operation has %d, counted from 0",
            k, ps->partitions);
    if (ps->dest == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (ps->is_ready[k] && ps->req.error)
        return ps->req.error; /* given up */
    if (ps->is_ready[k])
        return chempi_error_set(MPI_ERR_ARG,
                                "partition %d has been marked "
                                "ready before",
                                k);
    ps->is_ready[k] = 1;
    rc = send_partition(ps, k);
    if (rc)
        ps->is_ready[k] = 0;
    if (rc == MPI_ERR_PROC_ABORTED)
        give_up(ps, rc);
    return rc;
}

/* The active partitioned send behind a handle, with the lock taken. */
static int take_send(MPI_Request handle, struct psend **out)
{
    struct chempi_request *req = chempi_request_lookup(handle);

    chempi_error_set_comm(req ? req->comm : NULL);
    if (!req || !is_send(req))
        return chempi_error_set(MPI_ERR_REQUEST,
                                "this is no partitioned send request");
    chempi_lane_lock(&chempi_lane_main);
    if (!req->is_active) {
        chempi_lane_unlock(&chempi_lane_main);
        return chempi_error_set(MPI_ERR_REQUEST, "the partitioned send has not "
                                                 "been started");
    }
    *out = of_request(req);
    return MPI_SUCCESS;
}

static int let_go(int rc)
{
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
    if (!rc)
        chempi_error_set_comm(NULL);
    return rc;
}

int chempi_partitioned_ready(int partition, MPI_Request request)
{
    struct psend *ps = NULL;
    int rc = take_send(request, &ps);

    return rc ? rc : let_go(ready(ps, partition));
}

int chempi_partitioned_ready_range(int partition_low, int partition_high,
                                   MPI_Request request)
{
    struct psend *ps = NULL;
    int rc = take_send(request, &ps);

    if (rc)
        return rc;
    if (partition_low > partition_high)
        rc = chempi_error_set(MPI_ERR_ARG, "the range from %d to %d is empty",
                              partition_low, partition_high);
    for (int64_t k = partition_low; k <= partition_high && !rc; k++)
        rc = ready(ps, (int)k);
    return let_go(rc);
}

int chempi_partitioned_ready_list(int length, const int array_of_partitions[],
                                  MPI_Request request)
{
    struct psend *ps = NULL;
    int rc = take_send(request, &ps);

    if (rc)
        return rc;
    if (length < 0 || (length > 0 && !array_of_partitions))
        rc = chempi_error_set(MPI_ERR_ARG, "a list of %d partitions%s", length,
                              array_of_partitions ? "" : " is null");
    for (int i = 0; i < length && !rc; i++)
        rc = ready(ps, array_of_partitions[i]);
    return let_go(rc);
}
