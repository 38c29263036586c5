/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends; see buffer.h. An attached buffer is cut first-fit into
 * pieces, each with a header in front of the packed message, linked in the
 * order of their addresses.
 *
 *   B1  pieces do not overlap and lie inside the buffer
 *   B2  a piece stays until its send is complete
 *   B3  a buffer belongs to one object, or to none: then it is the process's;
 *       a communicator's stays until that goes, so that what was begun before
 *       MPI_Comm_free may go on (each piece holds the communicator)
 *   B4  a flush waits for the pieces that were cut before it began: `left` of
 *       them still stand, and their tickets are below its own
 *
 * Guarded by a lock of its own, inside of which no other is taken: pieces leave
 * under the lock of any lane. Below MPI_THREAD_MULTIPLE by the first lane, in
 * which the agent may be; but who ends a communicator may be in no lane, while
 * the agent ends another one, so both take the lock there.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/didl/pt2pt/buffer.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

enum { PIECE_ALIGN = 16 };

/* For how long a buffered send makes progress before it calls the buffer full.
 */
#define PATIENCE_NS UINT64_C(500000000)

struct piece {
    _Alignas(PIECE_ALIGN) struct chempi_list link;
    struct buffer *buffer;
    size_t len; /* header and payload, bytes; the payload follows */
    uint64_t ticket;
};
static_assert(sizeof(struct piece) % PIECE_ALIGN == 0, "payload alignment");
static_assert(sizeof(struct piece) + 2 * PIECE_ALIGN <= MPI_BSEND_OVERHEAD,
              "what the standard lets a message cost");

struct buffer {
    struct chempi_list link;     /* all attached buffers */
    struct chempi_object *owner; /* communicator or session; NULL: process */
    uint64_t session; /* serial number of the owner, or of its session;
                         0: the world model */
    bool is_shared;   /* the owner is the session: for its communicators */
    void *user;       /* as attached; MPI_BUFFER_AUTOMATIC */
    MPI_Count user_size;
    bool is_automatic; /* each piece is allocated by itself */
    char *start;       /* aligned */
    size_t size;       /* bytes from start */
    struct chempi_list pieces;
    struct chempi_list drains; /* struct drain.link; left > 0 */
    uint64_t ticket;           /* of the next piece */
};

/* Somebody waits for the pieces that there are now (B4). */
struct drain {
    struct chempi_list link;
    uint64_t ticket;       /* of the first piece that it is not for */
    _Atomic uint32_t left; /* pieces to wait for */
};

/* An MPI_Buffer_iflush. */
struct flush {
    struct chempi_request req;
    struct drain drain;
    struct chempi_progress_hook hook; /* until nothing is left */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct chempi_list buffers;

static void lock(void)
{
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_locking))
        (void)pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_locking))
        (void)pthread_mutex_unlock(&mutex);
}

/* By who is in no lane. */
static void enter(void)
{
    chempi_lane_lock(&chempi_lane_main);
    lock();
}

static void leave(void)
{
    unlock();
    chempi_lane_unlock(&chempi_lane_main);
}

static void ensure_list(void)
{
    if (!buffers.next)
        chempi_list_init(&buffers);
}

static struct buffer *find(const void *owner)
{
    ensure_list();
    CHEMPI_LIST_FOR (pos, &buffers) {
        struct buffer *b = CHEMPI_CONTAINER_OF(pos, struct buffer, link);

        if (b->owner == owner)
            return b;
    }
    return NULL;
}

/* The buffer of a session itself. */
static struct buffer *find_shared(uint64_t session)
{
    ensure_list();
    CHEMPI_LIST_FOR (pos, &buffers) {
        struct buffer *b = CHEMPI_CONTAINER_OF(pos, struct buffer, link);

        if (b->is_shared && b->session == session)
            return b;
    }
    return NULL;
}

/* ---- attach and detach ---- */

/* The session is a number, as in struct buffer. */
static int attach(struct chempi_object *owner, uint64_t session, bool is_shared,
                  void *user, MPI_Count size)
{
    struct buffer *b;
    uintptr_t skip = 0;
    bool is_automatic = user == MPI_BUFFER_AUTOMATIC;

    if (size < 0 && !is_automatic)
        return chempi_error_set(MPI_ERR_BUFFER, "the size %lld is negative",
                                (long long)size);
    if (size > 0 && !user)
        return chempi_error_set(MPI_ERR_BUFFER,
                                "argument buffer is NULL, but %lld bytes long",
                                (long long)size);
    if (find(owner))
        return chempi_error_set(MPI_ERR_BUFFER,
                                "a buffer is attached already; detach it "
                                "first");
    b = chempi_sys->calloc(1, sizeof(*b));
    if (!b)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory");
    b->owner = owner;
    b->session = session;
    b->is_shared = is_shared;
    b->user = user;
    b->user_size = size;
    b->is_automatic = is_automatic;
    chempi_list_init(&b->pieces);
    chempi_list_init(&b->drains);
    if (user && !is_automatic) {
        skip = (PIECE_ALIGN - (uintptr_t)user % PIECE_ALIGN) % PIECE_ALIGN;
        b->start = (char *)user + skip;
        b->size = (MPI_Count)skip < size ? (size_t)size - skip : 0;
    }
    chempi_list_append(&buffers, &b->link);
    return MPI_SUCCESS;
}

static uint32_t count_pieces(const struct buffer *b)
{
    uint32_t count = 0;

    CHEMPI_LIST_FOR (pos, &b->pieces)
        count++;
    return count;
}

static void begin_drain(struct drain *d, struct buffer *b)
{
    d->left = b ? count_pieces(b) : 0;
    if (d->left == 0)
        return;
    d->ticket = b->ticket;
    chempi_list_append(&b->drains, &d->link);
}

static bool is_drained(void *arg)
{
    const struct drain *d = arg;

    return d->left == 0;
}

/* Those that there are: a wait for all looks at what any of them does. */
#define ALL_LANES ((1u << chempi_lane_count) - 1)

/* What others send meanwhile is not waited for. */
int chempi_buffer_flush(struct chempi_object *owner)
{
    struct drain d = {0};
    int rc;

    enter();
    begin_drain(&d, find(owner));
    leave();
    rc = chempi_progress_wait_among(ALL_LANES, is_drained, &d, NULL, NULL);
    enter();
    if (d.left > 0)
        chempi_list_remove(&d.link);
    leave();
    return rc;
}

static struct buffer *locked_find(const void *owner)
{
    struct buffer *b;

    enter();
    b = find(owner);
    leave();
    return b;
}

/* Off the list if it is empty: then nobody finds it any more. */
static bool take_off(struct buffer *b)
{
    bool is_empty;

    enter();
    is_empty = chempi_list_is_empty(&b->pieces);
    if (is_empty)
        chempi_list_remove(&b->link);
    leave();
    return is_empty;
}

int chempi_buffer_detach(struct chempi_object *owner, void *user_addr,
                         MPI_Count *size)
{
    struct buffer *b = locked_find(owner);
    int rc;

    if (!user_addr)
        return chempi_error_set(MPI_ERR_ARG,
                                "argument buffer_addr must not be NULL");
    if (!b) {
        void *none = NULL;

        memcpy(user_addr, &none, sizeof(none));
        *size = 0;
        return MPI_SUCCESS;
    }
    do { /* until no other thread has sent in between */
        rc = chempi_buffer_flush(owner);
        if (rc)
            return rc;
    } while (!take_off(b));
    memcpy(user_addr, &b->user, sizeof(b->user));
    *size = b->user_size;
    free(b);
    return MPI_SUCCESS;
}

/* Off the list and gone; holder of the lock. */
static void forget(struct buffer *b)
{
    chempi_list_remove(&b->link);
    free(b);
}

/* The last reference to a communicator is gone: no message is left in its
 * buffer. With or without the lane lock. */
static void fini_comm(struct chempi_comm *comm)
{
    struct buffer *b;

    (void)pthread_mutex_lock(&mutex);
    b = find(comm);
    if (b) {
        assert(chempi_list_is_empty(&b->pieces)); /* they hold comm */
        forget(b);
    }
    (void)pthread_mutex_unlock(&mutex);
}

int chempi_buffer_attach(struct chempi_object *owner, void *buffer,
                         MPI_Count size)
{
    bool is_of_comm = owner && owner->magic == CHEMPI_MAGIC_COMM;
    struct chempi_comm *comm =
        is_of_comm ? CHEMPI_CONTAINER_OF(owner, struct chempi_comm, obj) : NULL;
    bool is_shared = owner && !is_of_comm;
    uint64_t session = 0;
    int rc;

    if (comm)
        session = comm->origin.session;
    else if (owner)
        session =
            CHEMPI_CONTAINER_OF(owner, struct chempi_session, obj)->serial;
    enter();
    rc = attach(owner, session, is_shared, buffer, size);
    leave();
    if (rc == MPI_SUCCESS && comm)
        comm->fini_buffer = fini_comm;
    return rc;
}

/* ---- the end ---- */

/* Wait for a buffer's messages and forget it. The last of them may take the
 * communicator along, and the buffer with it. */
static void drop(struct chempi_object *owner)
{
    bool is_gone = false;

    while (!is_gone) {
        int rc = chempi_buffer_flush(
            owner); /* fails only when the job is being ended */
        struct buffer *b;

        enter();
        b = find(owner);
        is_gone = !b || rc || chempi_list_is_empty(&b->pieces);
        if (b && is_gone)
            forget(b);
        leave();
    }
}

/* The owner of the first buffer of a session (of the world model: 0), or of
 * any. */
static bool find_of(uint64_t session, bool is_any, struct chempi_object **owner)
{
    bool is_found = false;

    enter();
    ensure_list();
    CHEMPI_LIST_FOR (pos, &buffers) {
        const struct buffer *b = CHEMPI_CONTAINER_OF(pos, struct buffer, link);

        is_found = is_any || b->session == session;
        if (is_found) {
            *owner = b->owner;
            break;
        }
    }
    leave();
    return is_found;
}

static void drop_of(uint64_t session)
{
    struct chempi_object *owner = NULL;

    while (find_of(session, false, &owner))
        drop(owner);
}

void chempi_buffer_fini_session(const struct chempi_session *session)
{
    drop_of(session->serial);
}

void chempi_buffer_fini_world(void)
{
    drop_of(0);
}

void chempi_buffer_fini(void)
{
    struct chempi_object *owner = NULL;

    while (find_of(0, true, &owner))
        drop(owner);
}

/* ---- flushing in the background ---- */

static struct flush *flush_of(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct flush, req);
}

static void flush_destroy(struct chempi_request *req)
{
    req->obj.magic = 0;
    free(flush_of(req));
}

/* The hook of a flush. */
static int finish_flush(struct chempi_progress_hook *hook)
{
    struct flush *f = CHEMPI_CONTAINER_OF(hook, struct flush, hook);

    if (!is_drained(&f->drain))
        return 0;
    chempi_progress_remove_hook(hook);
    chempi_request_progress(&f->req, MPI_SUCCESS); /* f may be gone now */
    return 1;
}

static bool is_flush_ready(struct chempi_progress_hook *hook)
{
    return is_drained(&CHEMPI_CONTAINER_OF(hook, struct flush, hook)->drain);
}

static const struct chempi_request_ops flush_ops = {
    .call = "MPI_Buffer_iflush",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = flush_destroy,
};

int chempi_buffer_iflush(struct chempi_object *owner, MPI_Request *request)
{
    struct flush *f = chempi_sys->calloc(1, sizeof(*f));

    if (!f)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_request_init(&f->req, &chempi_lane_main, CHEMPI_REQUEST_FLUSH,
                        &flush_ops, NULL, NULL);
    f->hook.poll = finish_flush;
    f->hook.is_ready = is_flush_ready;
    chempi_lane_lock(&chempi_lane_main);
    lock();
    begin_drain(&f->drain, find(owner));
    unlock();
    if (is_drained(&f->drain))
        chempi_request_progress(&f->req, MPI_SUCCESS);
    else
        chempi_progress_add_hook(&f->hook);
    chempi_lane_unlock(&chempi_lane_main);
    *request = chempi_request_handle(&f->req);
    return MPI_SUCCESS;
}

/* A piece is gone. True: somebody waits for no other one. */
static bool advance_drains(struct buffer *b, uint64_t ticket)
{
    bool is_any = false;

    CHEMPI_LIST_FOR_SAFE (pos, &b->drains) {
        struct drain *d = CHEMPI_CONTAINER_OF(pos, struct drain, link);

        const uint32_t left =
            atomic_load_explicit(&d->left, memory_order_relaxed);

        if (ticket >= d->ticket)
            continue;
        if (left == 1) /* before it is seen: d may be gone then */
            chempi_list_remove(&d->link);
        atomic_store_explicit(&d->left, left - 1, memory_order_release);
        is_any |= left == 1;
    }
    return is_any;
}

/* ---- pieces ---- */

/* Under the lane's lock. True: it is memory of its own, to be freed. */
static bool take_out(struct piece *piece, struct chempi_lane *lane)
{
    bool is_own;
    bool is_drain;

    lock();
    is_own = piece->buffer->is_automatic;
    chempi_list_remove(&piece->link);
    is_drain = advance_drains(piece->buffer, piece->ticket);
    unlock();
    if (lane->number > 0)
        lane->has_deferred |= is_drain;
    else if (is_drain)
        chempi_progress_notify();
    return is_own;
}

static void destroy_piece(struct chempi_request *req)
{
    struct piece *piece = (struct piece *)req->packed - 1;
    const bool is_own = take_out(piece, req->lane);

    chempi_message_fini(req);
    chempi_request_recycle(req);
    if (is_own)
        free(piece);
}

/* Of a piece's own request, which nobody has a handle of. */
static const struct chempi_request_ops piece_ops = {
    .call = "MPI_Ibsend",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = destroy_piece,
};

static size_t end_of(const struct buffer *b, const struct piece *piece)
{
    return (size_t)((const char *)piece - b->start) + piece->len;
}

/* First fit among the gaps between pieces. */
static struct piece *cut(struct buffer *b, size_t len)
{
    size_t at = 0;
    struct piece *piece;
    struct chempi_list *before = &b->pieces;

    CHEMPI_LIST_FOR (pos, &b->pieces) {
        struct piece *next = CHEMPI_CONTAINER_OF(pos, struct piece, link);

        if ((size_t)((char *)next - b->start) - at >= len)
            break;
        at = end_of(b, next);
        before = pos;
    }
    if (at > b->size || b->size - at < len)
        return NULL;
    piece = (struct piece *)(void *)(b->start + at);
    chempi_list_insert_between(&piece->link, before, before->next);
    return piece;
}

static struct piece *make_piece(struct buffer *b, size_t payload)
{
    size_t len = (sizeof(struct piece) + payload + PIECE_ALIGN - 1) /
                 PIECE_ALIGN * PIECE_ALIGN;
    struct piece *piece;

    if (b->is_automatic) {
        piece = chempi_sys->malloc(len);
        if (piece)
            chempi_list_append(&b->pieces, &piece->link);
    } else {
        piece = cut(b, len);
    }
    if (!piece)
        return NULL;
    piece->buffer = b;
    piece->len = len;
    piece->ticket = b->ticket++;
    return piece;
}

/* A full buffer may only want progress: earlier messages leave it when their
 * receivers take them. The locks are let go meanwhile. */
static struct piece *make_piece_soon(struct chempi_lane *lane, struct buffer *b,
                                     size_t payload)
{
    struct piece *piece = make_piece(b, payload);
    const void *owner = b->owner;
    uint64_t deadline_ns;

    if (piece || chempi_list_is_empty(&b->pieces))
        return piece;
    deadline_ns = chempi_clock_ns() + PATIENCE_NS;
    while (!piece && chempi_clock_ns() < deadline_ns) {
        int events;

        unlock();
        chempi_lane_unlock(lane);
        events = chempi_progress_poll_among(ALL_LANES);
        if (!events)
            (void)sched_yield();
        chempi_lane_lock(lane);
        lock();
        b = find(owner);
        if (!b)
            return NULL; /* another thread has detached it */
        piece = make_piece(b, payload);
    }
    return piece;
}

static int start_piece(struct piece *piece, struct chempi_request *req,
                       size_t payload)
{
    struct chempi_request *own = chempi_request_alloc(req->lane);
    int rc;

    if (!own) {
        if (take_out(piece, req->lane))
            free(piece);
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    }

    chempi_message_init_send(own, piece + 1, (MPI_Count)payload,
                             chempi_datatype_lookup(MPI_BYTE), req->peer_rank,
                             req->peer_tag, req->comm, CHEMPI_CONTEXT_PT2PT,
                             CHEMPI_SEND_STANDARD);
    own->packed = piece + 1;
    rc = chempi_message_start(own);
    own->ops = &piece_ops;
    req->u.tx.env = own->u.tx.env; /* for MPI_Cancel */
    if (rc || chempi_message_is_waiting(own))
        req->u.tx.env.kind = 0; /* cannot be cancelled */
    if (rc || chempi_request_is_complete(own)) {
        chempi_request_drop(own);
    } else {
        chempi_request_orphan(own);
        chempi_request_owe(own, payload);
    }
    return rc;
}

static int refuse(bool is_attached, MPI_Count size, MPI_Count payload)
{
    if (!is_attached)
        return chempi_error_set(MPI_ERR_BUFFER,
                                "a buffered send of %lld bytes, but no buffer "
                                "is attached; call MPI_Buffer_attach",
                                (long long)payload);
    return chempi_error_set(
        MPI_ERR_BUFFER,
        "%lld bytes do not fit into the attached buffer of %lld bytes now; "
        "attach a larger one (MPI_BSEND_OVERHEAD, %d bytes, per message, "
        "beside its data) or MPI_BUFFER_AUTOMATIC",
        (long long)payload, (long long)size, (int)MPI_BSEND_OVERHEAD);
}

/* Pack the message into attached memory and start it; the user's request is
 * then complete. Under the lock. MPI error class. */
static int start(struct chempi_request *req)
{
    MPI_Count payload = req->count * req->type->size;
    struct buffer *b;
    struct piece *piece;
    MPI_Count size; /* noted now: another thread may detach the buffer */
    int rc;

    lock();
    b = find(req->comm);
    if (!b && req->comm->origin.session)
        b = find_shared(req->comm->origin.session);
    if (!b)
        b = find(NULL);
    size = b ? b->user_size : 0;
    piece = b ? make_piece_soon(req->lane, b, (size_t)payload) : NULL;
    unlock();
    if (!piece)
        return refuse(b != NULL, size, payload);
    if (payload)
        (void)chempi_datatype_copy(req->buf, req->count, req->type, piece + 1,
                                   payload, chempi_datatype_lookup(MPI_BYTE));
    rc = start_piece(piece, req, (size_t)payload);
    chempi_request_set_pending(req, 1);
    if (!rc)
        chempi_request_progress(req, MPI_SUCCESS);
    return rc;
}

/* The message of a buffered send has a request of its own; what left is known
 * by the envelope that its start noted here. */
static void cancel(struct chempi_request *req)
{
    if (req->u.tx.env.kind == CHEMPI_KIND_MESSAGE)
        chempi_message_cancel_send(req);
}

static const struct chempi_request_ops send_ops = {
    .call = "MPI_Ibsend",
    .start = start,
    .cancel = cancel,
    .finish = chempi_message_finish_send,
    .destroy = chempi_message_destroy,
};

void chempi_buffer_adopt(struct chempi_request *req)
{
    if (req->kind != CHEMPI_REQUEST_NULL_PEER)
        req->ops = &send_ops;
}
