/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on context all.
 *
 * Every member proposes the lowest id that is free at its place; one allreduce
 * finds the largest and smallest proposal. Equal: agreed. Else each proposes
 * the lowest id above all that are taken at its place, and the largest of these
 * is free everywhere. Only when such ids run out (CHEMPI_CONTEXT_ID_HIGH) do
 * members go through the gaps from below, one step of the largest proposal a
 * round. While a proposal is on its way it is reserved, so that threads which
 * make other communicators at the same time propose something else.
 *
 * Two such threads could chase each other for ever. From the second round on,
 * a member therefore proposes only while its thread owns `turn`, which goes to
 * the agreement with the smallest key (from the parent's context; then its
 * tag: the same at all members); the others say "not now" and go another round.
 * All members are inside the agreement by then, so nobody holds the turn while
 * a member stays away, and the agreement with the smallest key of all gets
 * through.
 *
 *   X1  an id is taken (context_id.h) while it is in use or proposed
 *   X2  proposals never fall from round to round, but when members turn to the
 *       gaps, which happens once in an agreement and for all at the same time
 */
#include <pthread.h>

#include "common/containers/list.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/loss.h"

static struct {
    pthread_mutex_t lock;
    struct chempi_list waiting; /* agreements past their first round */
    bool is_turn_taken;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .waiting = {&all.waiting, &all.waiting}};

static uint32_t propose(const struct chempi_comm_agreement *ag)
{
    return ag->is_first_round || ag->is_in_gaps
               ? chempi_context_id_take(ag->from)
               : chempi_context_id_take_above(ag->from);
}

static int compare(const struct chempi_comm_agreement *a,
                   const struct chempi_comm_agreement *b)
{
    int by;

    if (a->context != b->context)
        return a->context < b->context ? -1 : 1;
    by = chempi_foreign_compare(&a->first, &b->first);
    return by ? by : (a->tag > b->tag) - (a->tag < b->tag);
}

/* Is no agreement with a smaller key waiting here? */
static bool is_first_locked(const struct chempi_comm_agreement *self)
{
    CHEMPI_LIST_FOR (link, &all.waiting) {
        const struct chempi_comm_agreement *other =
            CHEMPI_CONTAINER_OF(link, struct chempi_comm_agreement, link);

        if (compare(other, self) < 0)
            return false;
    }
    return true;
}

/* The name of a process in what the members of a communicator agree on: its
 * index, as long as all are of one world. */
static struct chempi_name name_of(const struct chempi_comm *comm, uint32_t proc)
{
    return comm->has_foreign ? chempi_foreign_name(proc)
                             : (struct chempi_name){.rank = proc};
}

bool chempi_comm_is_first_side(const struct chempi_comm *comm)
{
    const struct chempi_name here =
        name_of(comm, chempi_group_proc(comm->local, 0));
    const struct chempi_name there =
        name_of(comm, chempi_group_proc(comm->remote, 0));

    return chempi_foreign_compare(&here, &there) < 0;
}

/*
 * The sides of an intercommunicator receive in different contexts. The side
 * whose first process has the smaller name gives the key: that process's name
 * and context, which belong to one communicator there.
 */
void chempi_comm_agreement_open(struct chempi_comm_agreement *ag,
                                const struct chempi_comm_channel *ch)
{
    const struct chempi_comm *comm = ch->inter ? ch->inter : ch->comm;
    const bool is_there = ch->inter && !chempi_comm_is_first_side(comm);
    const uint32_t first =
        chempi_group_proc(is_there ? comm->remote : comm->local, 0);
    const bool is_open =
        ch->is_open || chempi_context_is_open(comm->recv_context);

    *ag = (struct chempi_comm_agreement){
        .context =
            (is_there ? comm->send_context : comm->recv_context) + ch->kind,
        .first = name_of(comm, first),
        .tag = (uint32_t)ch->tag,
        .first_id = is_open ? CHEMPI_CONTEXT_ID_OPEN : CHEMPI_CONTEXT_ID_FIRST,
        .is_first_round = true};
    ag->from = ag->first_id;
    chempi_list_init(&ag->link);
}

/* What a member may have in the place of a proposal: it says "not now", or has
 * no id left (or no memory). Or it has failed before the round: then nobody
 * gets an id, and whoever hears that may propose his again. */
enum { HAS_ID, NOT_NOW, EXHAUSTED, NOBODY };

/* Values of a vote: the largest proposal; minus the smallest one; the worst of
 * what there is in place of others. */
void chempi_comm_agreement_cast(struct chempi_comm_agreement *ag, int rc,
                                int64_t *vals)
{
    bool is_exhausted = false;

    (void)pthread_mutex_lock(&all.lock);
    ag->id = 0;
    ag->is_owner = false;
    if (!ag->is_first_round && !all.is_turn_taken && is_first_locked(ag)) {
        all.is_turn_taken = true;
        ag->is_owner = true;
    }
    if (ag->is_first_round || ag->is_owner) {
        ag->id = propose(ag);
        is_exhausted = ag->id == 0;
    }
    (void)pthread_mutex_unlock(&all.lock);
    vals[0] = ag->id;
    vals[1] = ag->id ? -(int64_t)ag->id : -(int64_t)CHEMPI_CONTEXT_ID_END;
    vals[2] = rc != MPI_SUCCESS ? NOBODY
              : is_exhausted    ? EXHAUSTED
              : ag->id == 0     ? NOT_NOW
                                : HAS_ID;
}

/* No agreement in this round: from where does the next one propose? */
static int next_round(struct chempi_comm_agreement *ag, const int64_t *vals,
                      bool *is_over)
{
    bool is_high = !ag->is_first_round && !ag->is_in_gaps;

    if (vals[2] == EXHAUSTED && is_high) {
        ag->is_in_gaps = true;
        ag->from = ag->first_id;
    } else if (vals[2] == EXHAUSTED) {
        *is_over = true;
        return chempi_error_set(MPI_ERR_OTHER,
                                "no context id is left: too "
                                "many communicators exist (free some)");
    } else if (vals[0] > ag->from && vals[0] < CHEMPI_CONTEXT_ID_END) {
        ag->from = (uint32_t)vals[0];
    }
    return MPI_SUCCESS;
}

int chempi_comm_agreement_settle(struct chempi_comm_agreement *ag,
                                 const int64_t *vals, int rc, bool *is_over)
{
    /* Nobody agrees on what this member has not proposed. */
    bool is_agreed = rc == MPI_SUCCESS && vals[2] == HAS_ID &&
                     vals[0] == -vals[1] && ag->id != 0 && vals[0] == ag->id;

    (void)pthread_mutex_lock(&all.lock);
    if (!is_agreed && ag->id != 0)
        chempi_comm_return_context(ag->id * CHEMPI_CONTEXT_STEP,
                                   vals[2] == NOBODY ? MPI_SUCCESS : rc);
    if (ag->is_owner)
        all.is_turn_taken = false;
    if (!is_agreed && ag->is_first_round)
        chempi_list_append(&all.waiting, &ag->link);
    (void)pthread_mutex_unlock(&all.lock);
    *is_over = is_agreed || rc != MPI_SUCCESS;
    if (is_agreed)
        ag->agreed = ag->id * CHEMPI_CONTEXT_STEP;
    else if (rc == MPI_SUCCESS)
        rc = next_round(ag, vals, is_over);
    ag->is_owner = false;
    ag->is_first_round = false;
    return rc;
}

void chempi_comm_return_context(uint32_t context, int rc)
{
    if (rc != MPI_SUCCESS)
        chempi_loss_bury(context);
    else
        chempi_comm_give_context(context);
}

void chempi_comm_agreement_close(struct chempi_comm_agreement *ag)
{
    (void)pthread_mutex_lock(&all.lock);
    chempi_list_remove(&ag->link);
    (void)pthread_mutex_unlock(&all.lock);
}

int chempi_comm_agree_context(const struct chempi_comm_channel *ch, int rc,
                              uint32_t *out)
{
    struct chempi_comm_agreement ag;
    int64_t vals[CHEMPI_COMM_VOTE_VALS];
    bool is_over = false;

    chempi_comm_agreement_open(&ag, ch);
    while (!is_over) {
        chempi_comm_agreement_cast(&ag, rc, vals);
        rc = chempi_comm_max(ch, rc, vals, CHEMPI_COMM_VOTE_VALS);
        rc = chempi_comm_agreement_settle(&ag, vals, rc, &is_over);
    }
    chempi_comm_agreement_close(&ag);
    if (rc == MPI_SUCCESS)
        *out = ag.agreed;
    return rc;
}
