/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between threads; see fake_message.h. */
#include "tests/unit/coll/fake_message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/loss.h"

struct chempi_request {
    struct chempi_request *next; /* in the list of sends */
    bool is_send;
    bool is_done;
    uint32_t context; /* where it is received */
    int32_t peer;     /* the receiver of a send, the sender for a receive */
    int32_t self;
    int tag;
    void *buf;
    size_t len;
    int error;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct chempi_request *sends; /* oldest first */
    int left;                     /* messages that were left to themselves */
    int sent;
} net = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};

struct chempi_datatype chempi_datatype_predefined[256];
struct chempi_ctx chempi_ctx;

static uint32_t nodes[2 * FAKE_RANKS_MAX];

static void set_type(MPI_Datatype handle, int size, int elem)
{
    struct chempi_datatype *t =
        &chempi_datatype_predefined[(uintptr_t)handle & 0xff];

    t->obj.magic = CHEMPI_MAGIC_DATATYPE;
    t->is_contiguous = true;
    t->is_committed = true;
    t->is_predefined = true;
    t->elem_kind = (uint8_t)elem;
    t->elements = 1;
    t->size = size;
    t->extent = size;
    t->true_extent = size;
    t->handle = handle;
}

/* ---- memory ---- */

static _Thread_local int pieces = -1;
static _Thread_local bool is_starved;

static bool is_refused(void)
{
    is_starved = is_starved || pieces == 0;
    pieces -= pieces > 0;
    return pieces == 0 && is_starved;
}

static void *take(size_t len)
{
    return is_refused() ? NULL : malloc(len);
}

static void *take_more(void *p, size_t len)
{
    return is_refused() ? NULL : realloc(p, len);
}

void fake_starve(int n)
{
    pieces = n;
    is_starved = false;
}

bool fake_is_starved(void)
{
    return is_starved;
}

void fake_init(void)
{
    static struct chempi_sys rigged;

    rigged = chempi_sys_libc;
    rigged.malloc = take;
    rigged.realloc = take_more;
    chempi_sys = &rigged;
    fake_spread(1);
    set_type(MPI_BYTE, 1, CHEMPI_BASIC_TYPE_BYTE);
    set_type(MPI_INT, 4, CHEMPI_BASIC_TYPE_I32);
    set_type(MPI_INT64_T, 8, CHEMPI_BASIC_TYPE_I64);
}

void fake_spread(int over)
{
    for (int i = 0; i < 2 * FAKE_RANKS_MAX; i++)
        nodes[i] = (uint32_t)(i % over);
    chempi_ctx.services.node_of_proc = nodes;
    chempi_ctx.services.proc_count = 2 * FAKE_RANKS_MAX;
}

int fake_sent(void)
{
    int sent = net.sent;

    net.sent = 0;
    return sent;
}

int chempi_error_set(int errclass, const char *fmt, ...)
{
    (void)fmt;
    return errclass;
}

int chempi_message_note_too_much(int rank, uint64_t len, uint64_t room)
{
    (void)rank;
    (void)len;
    (void)room;
    return MPI_ERR_TRUNCATE;
}

int chempi_message_note_too_little(int rank, uint64_t len, uint64_t room)
{
    (void)rank;
    (void)len;
    (void)room;
    return MPI_ERR_COUNT;
}

void chempi_datatype_release(struct chempi_datatype *type)
{
    (void)type;
}

int chempi_datatype_copy(const void *src, MPI_Count scount,
                         struct chempi_datatype *stype, void *dst,
                         MPI_Count rcount, struct chempi_datatype *rtype)
{
    MPI_Count len = scount * stype->size;
    MPI_Count room = rcount * rtype->size;

    memmove(dst, src, (size_t)(len < room ? len : room));
    return len <= room ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

static struct chempi_request *make(bool is_send, const void *buf, size_t len,
                                   uint32_t context, int peer, int self,
                                   int tag)
{
    struct chempi_request *req = calloc(1, sizeof(*req));

    req->is_send = is_send;
    req->context = context;
    req->peer = peer;
    req->self = self;
    req->tag = tag;
    req->buf = (void *)(uintptr_t)buf;
    req->len = len;
    return req;
}

int chempi_message_isend_on(const void *buf, MPI_Count count,
                            struct chempi_datatype *type, int dest, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out)
{
    struct chempi_request **end = &net.sends;

    *out = make(true, buf, (size_t)(count * type->size),
                comm->send_context + (uint32_t)kind, dest, comm->rank, tag);
    (void)pthread_mutex_lock(&net.lock);
    while (*end)
        end = &(*end)->next;
    *end = *out;
    net.sent++;
    (void)pthread_cond_broadcast(&net.changed);
    (void)pthread_mutex_unlock(&net.lock);
    return MPI_SUCCESS;
}

int chempi_message_irecv_on(void *buf, MPI_Count count,
                            struct chempi_datatype *type, int source, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out)
{
    *out = make(false, buf, (size_t)(count * type->size),
                comm->recv_context + (uint32_t)kind, source, comm->rank, tag);
    return MPI_SUCCESS;
}

/* Under the lock: the oldest send that fits this receive. */
static bool receive(struct chempi_request *req)
{
    for (struct chempi_request **at = &net.sends; *at; at = &(*at)->next) {
        struct chempi_request *s = *at;

        if (s->context != req->context || s->peer != req->self ||
            s->self != req->peer || s->tag != req->tag)
            continue;
        if (s->len != req->len)
            req->error = MPI_ERR_TRUNCATE; /* stricter than MPI */
        memcpy(req->buf, s->buf, s->len < req->len ? s->len : req->len);
        *at = s->next;
        s->is_done = true;
        req->is_done = true;
        (void)pthread_cond_broadcast(&net.changed);
        return true;
    }
    return false;
}

static bool try_all(struct chempi_request **reqs, int n)
{
    bool is_done = true;

    for (int i = 0; i < n; i++) {
        if (!reqs[i] || reqs[i]->is_done)
            continue;
        if (reqs[i]->is_send || !receive(reqs[i]))
            is_done = false;
    }
    return is_done;
}

int chempi_message_wait_all(struct chempi_request **reqs, int n)
{
    int error = MPI_SUCCESS;

    (void)pthread_mutex_lock(&net.lock);
    while (!try_all(reqs, n))
        (void)pthread_cond_wait(&net.changed, &net.lock);
    (void)pthread_mutex_unlock(&net.lock);
    for (int i = 0; i < n; i++) {
        if (reqs[i] && reqs[i]->error)
            error = reqs[i]->error;
        free(reqs[i]);
    }
    return error;
}

int chempi_message_send_on(const void *buf, MPI_Count count,
                           struct chempi_datatype *type, int dest, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind)
{
    struct chempi_request *req;

    (void)chempi_message_isend_on(buf, count, type, dest, tag, comm, kind,
                                  &req);
    return chempi_message_wait_all(&req, 1);
}

int chempi_message_recv_on(void *buf, MPI_Count count,
                           struct chempi_datatype *type, int source, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind, MPI_Status *status)
{
    struct chempi_request *req;

    (void)status;
    (void)chempi_message_irecv_on(buf, count, type, source, tag, comm, kind,
                                  &req);
    return chempi_message_wait_all(&req, 1);
}

int chempi_message_sendrecv_on(const void *sbuf, MPI_Count scount,
                               struct chempi_datatype *stype, int dest,
                               int stag, void *rbuf, MPI_Count rcount,
                               struct chempi_datatype *rtype, int source,
                               int rtag, struct chempi_comm *comm,
                               enum chempi_context_kind kind,
                               MPI_Status *status)
{
    struct chempi_request *reqs[2];

    (void)status;
    (void)chempi_message_irecv_on(rbuf, rcount, rtype, source, rtag, comm, kind,
                                  &reqs[0]);
    (void)chempi_message_isend_on(sbuf, scount, stype, dest, stag, comm, kind,
                                  &reqs[1]);
    return chempi_message_wait_all(reqs, 2);
}

static void *wait_for_it(void *arg)
{
    struct chempi_request *req = arg;

    (void)chempi_message_wait_all(&req, 1);
    (void)pthread_mutex_lock(&net.lock);
    net.left--;
    (void)pthread_cond_broadcast(&net.changed);
    (void)pthread_mutex_unlock(&net.lock);
    return NULL;
}

/* A thread waits for it. */
static void leave(struct chempi_request *req)
{
    pthread_t thread;

    (void)pthread_mutex_lock(&net.lock);
    net.left++;
    (void)pthread_mutex_unlock(&net.lock);
    (void)pthread_create(&thread, NULL, wait_for_it, req);
    (void)pthread_detach(thread);
}

void chempi_message_pass(bool is_send, int peer, int tag,
                         struct chempi_comm *comm,
                         enum chempi_context_kind kind, bool is_locked)
{
    struct chempi_request *req;

    (void)is_locked;
    if (is_send)
        (void)chempi_message_isend_on("", 0, chempi_coll_byte(), peer, tag,
                                      comm, kind, &req);
    else
        (void)chempi_message_irecv_on("", 0, chempi_coll_byte(), peer, tag,
                                      comm, kind, &req);
    leave(req);
}

/* Who is missed here is known to all. */
bool chempi_loss_is_for_all(const struct chempi_comm *comm)
{
    (void)comm;
    return true;
}

/* Node phases are messages here: nobody gets that far. */
int chempi_coll_do_flat(const struct chempi_coll_call *c)
{
    (void)c;
    return MPI_ERR_INTERN;
}

void chempi_coll_do_void(const struct chempi_coll_call *c, bool has_buffers)
{
    (void)c;
    (void)has_buffers;
}

/* ---- ranks ---- */

struct rank {
    pthread_t thread;
    struct chempi_comm comm;
    fake_rank_fn *fn;
    void *arg;
    int wrong;
};

static void *rank_main(void *arg)
{
    struct rank *rank = arg;

    rank->wrong = rank->fn(&rank->comm, rank->arg);
    return NULL;
}

static int run_ranks(struct rank *ranks, int n)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        (void)pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]);
    for (int i = 0; i < n; i++) {
        (void)pthread_join(ranks[i].thread, NULL);
        wrong += ranks[i].wrong;
    }
    (void)pthread_mutex_lock(&net.lock);
    while (net.left > 0)
        (void)pthread_cond_wait(&net.changed, &net.lock);
    (void)pthread_mutex_unlock(&net.lock);
    return wrong;
}

static void set_up(struct rank *rank, int me, int size, int remote,
                   fake_rank_fn *fn, void *arg)
{
    *rank = (struct rank){.fn = fn, .arg = arg};
    rank->comm.rank = me;
    rank->comm.size = (uint32_t)size;
    rank->comm.remote_size = (uint32_t)remote;
}

int fake_run(int n, fake_rank_fn *fn, void *arg)
{
    static struct rank ranks[FAKE_RANKS_MAX];

    for (int i = 0; i < n; i++) {
        set_up(&ranks[i], i, n, n, fn, arg);
        ranks[i].comm.send_context = 4;
        ranks[i].comm.recv_context = 4;
    }
    return run_ranks(ranks, n);
}

int fake_run_inter(int a, int b, fake_rank_fn *fn, void *arg)
{
    static struct rank ranks[FAKE_RANKS_MAX];

    for (int i = 0; i < a + b; i++) {
        bool is_a = i < a;

        set_up(&ranks[i], is_a ? i : i - a, is_a ? a : b, is_a ? b : a, fn,
               arg);
        ranks[i].comm.is_inter = true;
        ranks[i].comm.send_context = is_a ? 12 : 8;
        ranks[i].comm.recv_context = is_a ? 8 : 12;
    }
    return run_ranks(ranks, a + b);
}

int fake_leftovers(void)
{
    int n = 0;

    for (struct chempi_request *s = net.sends; s; s = s->next)
        n++;
    return n;
}
