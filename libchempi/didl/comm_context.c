/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on context ids.
 *
 * Every member proposes the lowest id that is free at its place; one allreduce
 * finds the largest and smallest proposal. Equal: agreed. Else the next round
 * starts from the largest. While a proposal is on its way it is reserved, so
 * that threads which make other communicators at the same time propose
 * something else.
 *
 * Two such threads could chase each other for ever. From the second round on,
 * a member therefore proposes only while its thread owns `turn`, which goes to
 * the agreement with the smallest key (parent's context, tag: the same at all
 * members); the others say "not now" and go another round. All members are
 * inside the agreement by then, so nobody holds the turn while a member stays
 * away, and the agreement with the smallest key of all gets through.
 *
 *   X1  a bit is set while its id is in use or proposed
 *   X2  proposals never fall from round to round
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/list.h"
#include "common/base/sys.h"
#include "libchempi/didl/comm_make.h"
#include "libchempi/didl/error.h"

#define FIRST_ID 3u          /* 0 system, 1 COMM_WORLD, 2 COMM_SELF */
#define MAX_ID (1u << 28)    /* so that context + kind fits 31 bits */
#define ID_BITS 64u

struct waiter {
    struct chempi_list link;
    uint64_t key;
};

static struct {
    pthread_mutex_t lock;
    uint64_t *used; /* bit i: id i is taken */
    size_t words;
    struct chempi_list waiting; /* agreements past their first round */
    bool is_turn_taken;
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .waiting = {&ids.waiting, &ids.waiting}};

static int grow_locked(size_t words)
{
    uint64_t *used = chempi_sys->realloc(ids.used, words * sizeof(*used));

    if (!used)
        return -1;
    memset(used + ids.words, 0, (words - ids.words) * sizeof(*used));
    ids.used = used;
    ids.words = words;
    return 0;
}

/* Take the lowest free id from `from` on; 0 when there is none. */
static uint32_t take_locked(uint32_t from)
{
    for (uint32_t id = from < FIRST_ID ? FIRST_ID : from; id < MAX_ID; id++) {
        size_t word = id / ID_BITS;

        if (word >= ids.words &&
            grow_locked(word + 1 + ids.words / 2) != 0)
            return 0;
        if (ids.used[word] == UINT64_MAX) {
            id |= ID_BITS - 1;
            continue;
        }
        if (ids.used[word] & UINT64_C(1) << id % ID_BITS)
            continue;
        ids.used[word] |= UINT64_C(1) << id % ID_BITS;
        return id;
    }
    return 0;
}

static void give_locked(uint32_t id)
{
    if (id / ID_BITS < ids.words)
        ids.used[id / ID_BITS] &= ~(UINT64_C(1) << id % ID_BITS);
}

void chempi_comm_give_context(uint32_t context)
{
    (void)pthread_mutex_lock(&ids.lock);
    give_locked(context / CHEMPI_CONTEXT_STEP);
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_comm_reset_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    if (ids.words)
        memset(ids.used, 0, ids.words * sizeof(*ids.used));
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_comm_free_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    free(ids.used);
    ids.used = NULL;
    ids.words = 0;
    (void)pthread_mutex_unlock(&ids.lock);
}

/* Is no agreement with a smaller key waiting here? */
static bool is_first_locked(const struct waiter *self)
{
    CHEMPI_LIST_FOR(link, &ids.waiting)
        if (CHEMPI_CONTAINER_OF(link, struct waiter, link)->key < self->key)
            return false;
    return true;
}

/* One member's vote in one round. */
struct vote {
    uint32_t id; /* reserved proposal, or 0: not now */
    bool is_owner;
    bool is_exhausted; /* no id left, or no memory */
};

static struct vote cast(const struct waiter *self, bool is_first_round,
                        uint32_t from)
{
    struct vote vote = {0};

    (void)pthread_mutex_lock(&ids.lock);
    if (!is_first_round && !ids.is_turn_taken && is_first_locked(self)) {
        ids.is_turn_taken = true;
        vote.is_owner = true;
    }
    if (is_first_round || vote.is_owner) {
        vote.id = take_locked(from);
        vote.is_exhausted = vote.id == 0;
    }
    (void)pthread_mutex_unlock(&ids.lock);
    return vote;
}

/* After the round: keep the proposal or give it up, and pass the turn. */
static void settle(const struct vote *vote, bool is_kept)
{
    (void)pthread_mutex_lock(&ids.lock);
    if (!is_kept && vote->id != 0)
        give_locked(vote->id);
    if (vote->is_owner)
        ids.is_turn_taken = false;
    (void)pthread_mutex_unlock(&ids.lock);
}

static void enter(struct waiter *self)
{
    (void)pthread_mutex_lock(&ids.lock);
    chempi_list_append(&ids.waiting, &self->link);
    (void)pthread_mutex_unlock(&ids.lock);
}

static void leave(struct waiter *self)
{
    (void)pthread_mutex_lock(&ids.lock);
    chempi_list_remove(&self->link);
    (void)pthread_mutex_unlock(&ids.lock);
}

/* One round; *from moves up. Sets *out when the round agreed. */
static int run_round(const struct chempi_comm_channel *ch,
                     const struct waiter *self, bool is_first_round,
                     uint32_t *from, uint32_t *out)
{
    struct vote vote = cast(self, is_first_round, *from);
    /* largest proposal, - smallest proposal, not now, exhausted */
    int64_t vals[4] = {vote.id, vote.id ? -(int64_t)vote.id : -(int64_t)MAX_ID,
                       vote.id == 0, vote.is_exhausted};
    int rc = chempi_comm_max(ch, vals, 4);
    bool is_agreed = rc == MPI_SUCCESS && !vals[2] && vals[0] == -vals[1];

    settle(&vote, is_agreed);
    if (rc != MPI_SUCCESS)
        return rc;
    if (vals[3])
        return chempi_error_set(MPI_ERR_OTHER, "no context id is left: too "
                                "many communicators exist (free some)");
    if (is_agreed)
        *out = vote.id * CHEMPI_CONTEXT_STEP;
    if (vals[0] > *from)
        *from = (uint32_t)vals[0];
    return MPI_SUCCESS;
}

int chempi_comm_agree_context(const struct chempi_comm_channel *ch,
                              uint32_t *out)
{
    struct waiter self = {
        .key = (uint64_t)ch->comm->recv_context << 32 | (uint32_t)ch->tag};
    uint32_t from = FIRST_ID;
    uint32_t agreed = 0;
    int rc;

    chempi_list_init(&self.link);
    rc = run_round(ch, &self, true, &from, &agreed);
    if (rc == MPI_SUCCESS && agreed == 0) {
        enter(&self);
        while (rc == MPI_SUCCESS && agreed == 0)
            rc = run_round(ch, &self, false, &from, &agreed);
        leave(&self);
    }
    if (rc == MPI_SUCCESS)
        *out = agreed;
    return rc;
}
