/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for a rank that is missing; see loss.h. */
#include "libchempi/didl/transport/loss.h"

#include <pthread.h>

#include "common/containers/array.h"
#include "common/containers/index.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/match.h"
#include "libchempi/didl/transport/worlds/foreign.h"

static struct {
    chempi_loss_context_fn *is_bereft;
    void (*is_buried)(void);
    struct chempi_list circles;
    pthread_mutex_t lock; /* of the following ones */
    uint32_t *graves; /* [count] contexts, multiples of CHEMPI_CONTEXT_STEP */
    uint32_t count;
    _Atomic uint32_t changes; /* of contexts, ever; wraps */
    uint32_t room;
    struct chempi_index by_context; /* of graves */
} self = {.circles = {&self.circles, &self.circles},
          .lock = PTHREAD_MUTEX_INITIALIZER};

bool chempi_loss_may_be_in(const struct chempi_comm *comm)
{
    return chempi_ctx.job->survives || comm->has_foreign ||
           (comm->serves && chempi_loss_may_be_in(comm->serves));
}

/* A process of another world that has ended in order: all that others need of
 * it has been sent, and only who waits for more of it waits in vain. */
static bool has_finished(uint32_t proc)
{
    return chempi_foreign_is(proc) && chempi_conn_is_peer(proc) &&
           chempi_lane_main.conn.peers[proc].has_ended;
}

static bool is_lost(uint32_t proc)
{
    return chempi_conn_is_missing(proc) && !has_finished(proc);
}

bool chempi_loss_is_absent(const struct chempi_comm *comm, uint32_t rank)
{
    return comm->absent && (comm->absent[rank / 64] >> rank % 64 & 1);
}

bool chempi_loss_is_away(const struct chempi_comm *comm, uint32_t rank)
{
    return chempi_conn_is_missing(chempi_comm_proc(comm, rank)) ||
           chempi_loss_is_absent(comm, rank);
}

void chempi_loss_note_miss(struct chempi_lane *lane)
{
    lane->engine.misses = true;
    lane->engine.may_be_vain = true;
    lane->engine.is_wary = true;
}

void chempi_loss_note_absent(struct chempi_comm *comm, uint32_t rank)
{
    comm->absent[rank / 64] |= UINT64_C(1) << rank % 64;
    chempi_ctx.missing++; /* whoever has looked looks again */
    chempi_loss_note_miss(comm->lane);
    comm->lane->engine.has_vain = true;
    chempi_loss_note_change();
}

int32_t chempi_loss_rank(const struct chempi_comm *comm)
{
    const uint32_t size =
        chempi_conn_missing_count() && chempi_loss_may_be_in(comm)
            ? chempi_comm_remote_size(comm)
            : 0;

    for (uint32_t rank = 0; rank < size; rank++)
        if (is_lost(chempi_comm_proc(comm, rank)) ||
            chempi_loss_is_absent(comm, rank))
            return (int32_t)rank;
    return size && comm->serves ? chempi_loss_rank(comm->serves) : -1;
}

bool chempi_loss_has_finished(const struct chempi_comm *comm)
{
    const uint32_t size =
        chempi_conn_missing_count() ? chempi_comm_remote_size(comm) : 0;

    for (uint32_t rank = 0; rank < size; rank++)
        if (has_finished(chempi_comm_proc(comm, rank)))
            return true;
    return size && comm->serves && chempi_loss_has_finished(comm->serves);
}

bool chempi_loss_is_for_all(const struct chempi_comm *comm)
{
    return !chempi_loss_has_finished(comm) || chempi_loss_is_in(comm);
}

void chempi_loss_on_context(chempi_loss_context_fn *is_bereft)
{
    self.is_bereft = is_bereft;
}

void chempi_loss_note_change(void)
{
    (void)atomic_fetch_add_explicit(&self.changes, 1, memory_order_release);
}

void chempi_loss_bury(uint32_t context)
{
    if (context == 0)
        return; /* it never had one */
    (void)pthread_mutex_lock(&self.lock);
    if (CHEMPI_ARRAY_FIT(self.graves, self.room, self.count + 1) &&
        chempi_index_add(&self.by_context, chempi_index_hash_number(context),
                         self.count))
        self.graves[self.count++] = context;
    (void)pthread_mutex_unlock(&self.lock);
    chempi_loss_note_change();
    if (self.is_buried)
        self.is_buried();
}

void chempi_loss_forget(void)
{
    (void)pthread_mutex_lock(&self.lock);
    self.count = 0;
    chempi_index_clear(&self.by_context);
    (void)pthread_mutex_unlock(&self.lock);
}

void chempi_loss_on_burial(void (*is_buried)(void))
{
    self.is_buried = is_buried;
}

static bool has_context(const void *elements, uint32_t number, const void *key)
{
    const uint32_t *graves = elements;
    const uint32_t *context = key;

    return graves[number] == *context;
}

bool chempi_loss_is_buried(uint32_t context)
{
    bool is;

    (void)pthread_mutex_lock(&self.lock);
    is = chempi_index_find(&self.by_context, chempi_index_hash_number(context),
                           has_context, self.graves,
                           &context) != CHEMPI_INDEX_NONE;
    (void)pthread_mutex_unlock(&self.lock);
    return is;
}

static bool is_for_nobody(struct chempi_held *held, void *arg)
{
    const uint32_t kind = held->env.context % CHEMPI_CONTEXT_STEP;
    const uint32_t context = held->env.context - kind;

    (void)arg;
    if (held->state != CHEMPI_HELD_REMOTE ||
        (!chempi_ctx.job->survives && !chempi_context_is_open(context)))
        return false; /* nobody is missing there */
    if (chempi_loss_is_buried(context))
        return true;
    return (kind == CHEMPI_CONTEXT_COLL || kind == CHEMPI_CONTEXT_INTERNAL) &&
           self.is_bereft(context);
}

bool chempi_loss_has_changes(struct chempi_lane *lane)
{
    const uint32_t now =
        atomic_load_explicit(&self.changes, memory_order_acquire);
    const bool has = now != lane->engine.changes;

    lane->engine.changes = now;
    return has;
}

struct chempi_held *chempi_loss_take_vain(struct chempi_lane *lane)
{
    struct chempi_held *held =
        chempi_match_find(lane->match, is_for_nobody, NULL);

    if (held)
        chempi_match_take(lane->match, held);
    return held;
}

void chempi_loss_watch(struct chempi_loss_circle *circle)
{
    chempi_list_append(&self.circles, &circle->link);
}

/* It is missing, and nothing more of it may come. */
static bool is_gone(const struct chempi_lane *lane, uint32_t proc)
{
    return chempi_conn_is_missing(proc) && !lane->conn.peers[proc].is_awaited;
}

static bool is_any_gone(const struct chempi_comm *comm)
{
    const uint32_t size = chempi_comm_remote_size(comm);

    for (uint32_t rank = 0; rank < size; rank++) {
        const uint32_t proc = chempi_comm_proc(comm, rank);

        if ((is_gone(comm->lane, proc) && !has_finished(proc)) ||
            chempi_loss_is_absent(comm, rank))
            return true;
    }
    return comm->serves && is_any_gone(comm->serves);
}

/* The other side of an intercommunicator: as a world is, all at once. */
static bool are_all_gone(const struct chempi_comm *comm)
{
    const uint32_t size = comm->is_inter ? chempi_comm_remote_size(comm) : 0;

    for (uint32_t rank = 0; rank < size; rank++)
        if (!is_gone(comm->lane, chempi_comm_proc(comm, rank)))
            return false;
    return size > 0;
}

static bool is_in_circle(const struct chempi_loss_circle *c,
                         const struct chempi_comm *comm, int32_t source)
{
    if (source < 0)
        return true;
    for (uint32_t i = 0; i < c->group->size; i++)
        if (chempi_group_proc(c->group, i) ==
            chempi_comm_proc(comm, (uint32_t)source))
            return true;
    return false;
}

/* A leader hears from another circle's under the same tag. */
static bool is_bereft_circle(const struct chempi_comm *comm, uint32_t context,
                             int32_t source, int32_t tag)
{
    CHEMPI_LIST_FOR (link, &self.circles) {
        const struct chempi_loss_circle *c =
            CHEMPI_CONTAINER_OF(link, struct chempi_loss_circle, link);

        if (c->context != context || c->tag != tag ||
            !is_in_circle(c, comm, source))
            continue;
        for (uint32_t i = 0; i < c->group->size; i++)
            if (is_gone(&chempi_lane_main, chempi_group_proc(c->group, i)))
                return true;
    }
    return false;
}

bool chempi_loss_judge(const struct chempi_comm *comm, uint32_t context,
                       int32_t source, int32_t tag)
{
    const uint32_t kind = context % CHEMPI_CONTEXT_STEP;

    if (!chempi_loss_may_be_in(comm))
        return false;
    if (source >= 0 &&
        (is_gone(comm->lane, chempi_comm_proc(comm, (uint32_t)source)) ||
         chempi_loss_is_absent(comm, (uint32_t)source)))
        return true;
    if (source < 0 && are_all_gone(comm))
        return true;
    if (kind == CHEMPI_CONTEXT_COLL || kind == CHEMPI_CONTEXT_INTERNAL)
        return is_any_gone(comm);
    /* Circles are the first lane's, and none is of the program's messages. */
    return kind != CHEMPI_CONTEXT_PT2PT &&
           is_bereft_circle(comm, context, source, tag);
}

/* ---- words ---- */

static uint32_t find_culprit(const struct chempi_comm *comm, int32_t rank)
{
    const uint32_t size = chempi_comm_remote_size(comm);
    uint32_t finished = UINT32_MAX;

    if (rank >= 0 && (uint32_t)rank < size &&
        chempi_conn_is_missing(chempi_comm_proc(comm, (uint32_t)rank)))
        return chempi_comm_proc(comm, (uint32_t)rank);
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t proc = chempi_comm_proc(comm, i);

        if (is_lost(proc))
            return proc;
        if (finished == UINT32_MAX && has_finished(proc))
            finished = proc;
    }
    return finished == UINT32_MAX && comm->serves
               ? find_culprit(comm->serves, -1)
               : finished;
}

void chempi_loss_explain(const struct chempi_comm *comm, int32_t rank, int code)
{
    uint32_t culprit;
    const char *words = NULL;

    if (code != MPI_ERR_PROC_ABORTED || chempi_error_noted(code))
        return;
    culprit = find_culprit(comm, rank);
    if (culprit == UINT32_MAX)
        return;
    if (chempi_foreign_is(culprit))
        words = chempi_foreign_loss(culprit);
    else
        chempi_error_explain_own(code);
    if (words)
        (void)chempi_error_set(code, "%s", words);
}

static bool has_member(const struct chempi_comm *comm, uint32_t proc)
{
    for (uint32_t rank = 0; rank < chempi_comm_remote_size(comm); rank++)
        if (chempi_comm_proc(comm, rank) == proc)
            return true;
    return false;
}

static bool is_vain(const struct chempi_request *req, const void *arg)
{
    (void)arg;
    return chempi_loss_is_vain(req->comm, req->context, req->peer_rank,
                               req->peer_tag);
}

static bool is_ended(const struct chempi_request *req, const void *arg)
{
    const struct chempi_peer *peer = arg;

    return is_vain(req, NULL) ||
           (req->peer_rank == MPI_ANY_SOURCE && !has_finished(peer->proc) &&
            has_member(req->comm, peer->proc));
}

void chempi_loss_end_receive(struct chempi_request *req)
{
    chempi_match_unpost(req->lane->match, req);
    chempi_request_progress(req, MPI_ERR_PROC_ABORTED);
}

void chempi_loss_end_vain(struct chempi_lane *lane)
{
    struct chempi_request *req;

    while ((req = chempi_match_find_posted(lane->match, is_vain, NULL)))
        chempi_loss_end_receive(req);
}

void chempi_loss_end(struct chempi_peer *peer)
{
    struct chempi_request *req;

    while ((req = chempi_match_find_posted(peer->lane->match, is_ended, peer)))
        chempi_loss_end_receive(req);
    while (!chempi_list_is_empty(&peer->cancels)) {
        req = CHEMPI_CONTAINER_OF(chempi_list_first(&peer->cancels),
                                  struct chempi_request, outgoing.link);
        chempi_list_remove(&req->outgoing.link);
        req->is_cancelling = false;
        /* What has a light handle had been sent, and stays so. */
        chempi_request_progress(req,
                                req->comm ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS);
    }
    while (!chempi_list_is_empty(&peer->sync)) {
        req = CHEMPI_CONTAINER_OF(chempi_list_first(&peer->sync),
                                  struct chempi_request, match_link);
        chempi_list_remove(&req->match_link);
        req->is_queued = false;
        chempi_request_progress(req, MPI_ERR_PROC_ABORTED);
    }
}
