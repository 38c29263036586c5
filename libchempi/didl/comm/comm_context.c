/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on context ids.
 *
 * Every member proposes the lowest id that is free at its place; one allreduce
 * finds the largest and smallest proposal. Equal: agreed. Else each proposes
 * the lowest id above all that are taken at its place, and the largest of these
 * is free everywhere. Only when such ids run out (HIGH_END) do members go
 * through the gaps from below, one step of the largest proposal a round. While
 * a proposal is on its way it is reserved, so that threads which make other
 * communicators at the same time propose something else.
 *
 * Two such threads could chase each other for ever. From the second round on,
 * a member therefore proposes only while its thread owns `turn`, which goes to
 * the agreement with the smallest key (from the parent's context; then its
 * tag: the same at all members); the others say "not now" and go another round.
 * All members are inside the agreement by then, so nobody holds the turn while
 * a member stays away, and the agreement with the smallest key of all gets
 * through.
 *
 *   X1  a bit is set while its id is in use or proposed
 *   X2  proposals never fall from round to round, but when members turn to the
 *       gaps, which happens once in an agreement and for all at the same time
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/list.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/comm/comm_make.h"

#define FIRST_ID 3u         /* 0 system, 1 COMM_WORLD, 2 COMM_SELF */
#define MAX_ID (1u << 27)   /* so that context + kind fits 31 bits */
#define HIGH_END (1u << 22) /* the sets of bits stay below 512 KiB */
#define ID_BITS 64u

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
    const size_t old = ids.words;

    if (!CHEMPI_ARRAY_FIT(ids.used, ids.words, words))
        return -1;
    memset(ids.used + old, 0, (ids.words - old) * sizeof(*ids.used));
    return 0;
}

/* Take the lowest free id from `from` on; 0 when there is none. */
static uint32_t take_locked(uint32_t from)
{
    for (uint32_t id = from < FIRST_ID ? FIRST_ID : from; id < MAX_ID; id++) {
        size_t word = id / ID_BITS;

        if (word >= ids.words && grow_locked(word + 1) != 0)
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

/* Take the lowest id that is at least `from` and above all that are taken; 0
 * when it would not be below HIGH_END. */
static uint32_t take_above_locked(uint32_t from)
{
    size_t word = ids.words;
    uint32_t above;

    while (word > 0 && ids.used[word - 1] == 0)
        word--;
    above = word == 0 ? 0
                      : (uint32_t)((word - 1) * ID_BITS) +
                            CHEMPI_HIGHEST_BIT(ids.used[word - 1]) + 1;
    above = above < from ? from : above;
    return above < HIGH_END ? take_locked(above) : 0;
}

static uint32_t propose_locked(const struct chempi_comm_agreement *ag)
{
    return ag->is_first_round || ag->is_in_gaps ? take_locked(ag->from)
                                                : take_above_locked(ag->from);
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
static bool is_first_locked(const struct chempi_comm_agreement *self)
{
    CHEMPI_LIST_FOR (link, &ids.waiting) {
        const struct chempi_comm_agreement *other =
            CHEMPI_CONTAINER_OF(link, struct chempi_comm_agreement, link);

        if (other->key < self->key ||
            (other->key == self->key && other->tag < self->tag))
            return false;
    }
    return true;
}

/*
 * The sides of an intercommunicator receive in different contexts. The side
 * whose first process has the smaller number gives the key: that process's
 * number and context, which belong to one communicator there.
 */
static uint64_t key_of(const struct chempi_comm_channel *ch)
{
    const struct chempi_comm *comm = ch->inter ? ch->inter : ch->comm;
    uint32_t first = chempi_group_proc(comm->local, 0);
    uint32_t context = comm->recv_context;

    if (ch->inter && chempi_group_proc(comm->remote, 0) < first) {
        first = chempi_group_proc(comm->remote, 0);
        context = comm->send_context;
    }
    return (uint64_t)(context + ch->kind) << 32 | first;
}

void chempi_comm_agreement_open(struct chempi_comm_agreement *ag,
                                const struct chempi_comm_channel *ch)
{
    *ag = (struct chempi_comm_agreement){.key = key_of(ch),
                                         .tag = (uint32_t)ch->tag,
                                         .from = FIRST_ID,
                                         .is_first_round = true};
    chempi_list_init(&ag->link);
}

/* Values of a vote: the largest proposal; minus the smallest one; somebody
 * says "not now"; somebody has no id left (or no memory). */
void chempi_comm_agreement_cast(struct chempi_comm_agreement *ag, int64_t *vals)
{
    bool is_exhausted = false;

    (void)pthread_mutex_lock(&ids.lock);
    ag->id = 0;
    ag->is_owner = false;
    if (!ag->is_first_round && !ids.is_turn_taken && is_first_locked(ag)) {
        ids.is_turn_taken = true;
        ag->is_owner = true;
    }
    if (ag->is_first_round || ag->is_owner) {
        ag->id = propose_locked(ag);
        is_exhausted = ag->id == 0;
    }
    (void)pthread_mutex_unlock(&ids.lock);
    vals[0] = ag->id;
    vals[1] = ag->id ? -(int64_t)ag->id : -(int64_t)MAX_ID;
    vals[2] = ag->id == 0;
    vals[3] = is_exhausted;
}

/* No agreement in this round: from where does the next one propose? */
static int next_round(struct chempi_comm_agreement *ag, const int64_t *vals,
                      bool *is_over)
{
    bool is_high = !ag->is_first_round && !ag->is_in_gaps;

    if (vals[3] && is_high) {
        ag->is_in_gaps = true;
        ag->from = FIRST_ID;
    } else if (vals[3]) {
        *is_over = true;
        return chempi_error_set(MPI_ERR_OTHER,
                                "no context id is left: too "
                                "many communicators exist (free some)");
    } else if (vals[0] > ag->from) {
        ag->from = (uint32_t)vals[0];
    }
    return MPI_SUCCESS;
}

int chempi_comm_agreement_settle(struct chempi_comm_agreement *ag,
                                 const int64_t *vals, int rc, bool *is_over)
{
    bool is_agreed = rc == MPI_SUCCESS && !vals[2] && vals[0] == -vals[1];

    (void)pthread_mutex_lock(&ids.lock);
    if (!is_agreed && ag->id != 0)
        give_locked(ag->id);
    if (ag->is_owner)
        ids.is_turn_taken = false;
    if (!is_agreed && ag->is_first_round)
        chempi_list_append(&ids.waiting, &ag->link);
    (void)pthread_mutex_unlock(&ids.lock);
    *is_over = is_agreed || rc != MPI_SUCCESS;
    if (is_agreed)
        ag->agreed = ag->id * CHEMPI_CONTEXT_STEP;
    else if (rc == MPI_SUCCESS)
        rc = next_round(ag, vals, is_over);
    ag->is_owner = false;
    ag->is_first_round = false;
    return rc;
}

void chempi_comm_agreement_close(struct chempi_comm_agreement *ag)
{
    (void)pthread_mutex_lock(&ids.lock);
    chempi_list_remove(&ag->link);
    (void)pthread_mutex_unlock(&ids.lock);
}

int chempi_comm_agree_context(const struct chempi_comm_channel *ch,
                              uint32_t *out)
{
    struct chempi_comm_agreement ag;
    int64_t vals[CHEMPI_COMM_VOTE_VALS];
    bool is_over = false;
    int rc = MPI_SUCCESS;

    chempi_comm_agreement_open(&ag, ch);
    while (!is_over) {
        chempi_comm_agreement_cast(&ag, vals);
        rc = chempi_comm_max(ch, vals, CHEMPI_COMM_VOTE_VALS);
        rc = chempi_comm_agreement_settle(&ag, vals, rc, &is_over);
    }
    chempi_comm_agreement_close(&ag);
    if (rc == MPI_SUCCESS)
        *out = ag.agreed;
    return rc;
}
