/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_idup: the new communicator is there at once, its context ids come
 * by an agreement that goes on in whatever thread makes progress.
 *
 * The work is a list of phases: agree on an id (any number of rounds, each a
 * maximum over the members), or, for an intercommunicator, swap the ids of the
 * two sides. Each round is a plan of steps; each step is at most one message
 * out and one in.
 *
 *   D1  everything but start is guarded by the lane lock
 *   D2  while a step is under way, messages[] that have begun are its own
 *   D3  the user owns `made`, and must not use it before completion; the
 *       request holds a reference of its own
 *   D4  a member that fails takes all steps of the round, and of the swap, and
 *       says so; whoever learns of it ends with the same error
 *   D5  one that fails before it has begun returns its error at once: D4 goes
 *       on without a handle, in `reserve` if there is no memory
 */
#define _GNU_SOURCE /* clock_gettime */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/services/shortage.h"

enum phase {
    AGREE_MINE, /* the id on which the new communicator receives */
    AGREE_SIDE, /* intercommunicators: the id of the local group's own one */
    SWAP,       /* intercommunicators: tell the other side, learn theirs */
    OVER
};

/* Where messages have an error class; the values of votes lie before it. */
enum { ERROR = CHEMPI_COMM_VALS_MAX - 1 };
_Static_assert(ERROR >= CHEMPI_COMM_VOTE_VALS, "there is room for it");

struct idup {
    struct chempi_request req;
    struct chempi_progress_hook hook;
    struct chempi_comm *comm; /* held by the request */
    struct chempi_comm *made; /* held */
    struct chempi_comm_channel channel;
    struct chempi_comm_agreement agreement;
    enum phase phase;
    int64_t vals[CHEMPI_COMM_VALS_MAX];
    int64_t other[CHEMPI_COMM_VALS_MAX];
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int step_count;
    int step;
    bool is_in_step;
    struct chempi_request messages[2]; /* of the step: out, in */
    bool is_begun[2];
    int error;       /* MPI error class of what has failed first */
    uint32_t ids[3]; /* by phase */
};

static struct {
    struct idup d;
    bool is_taken; /* under the lane lock */
} reserve;

static struct idup *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct idup, req);
}

/* This member goes on without data: D4. */
static void note(struct idup *d, int rc)
{
    if (d->error == MPI_SUCCESS)
        d->error = rc;
    if (d->error > d->vals[ERROR])
        d->vals[ERROR] = d->error;
}

static void plan_round(struct idup *d)
{
    d->step = 0;
    memset(d->vals, 0, sizeof(d->vals));
    if (d->phase == SWAP) {
        d->step_count = 0;
        d->vals[0] = d->ids[AGREE_MINE];
        if (d->channel.me == 0)
            d->steps[d->step_count++] =
                (struct chempi_comm_step){.is_inter = true};
        d->step_count +=
            chempi_comm_plan_bcast(&d->channel, d->steps + d->step_count);
    } else {
        d->step_count = chempi_comm_plan_max(&d->channel, d->steps);
        chempi_comm_agreement_cast(&d->agreement, d->error, d->vals);
    }
    note(d, MPI_SUCCESS);
}

static void enter_phase(struct idup *d, enum phase phase)
{
    d->phase = phase;
    if (phase == AGREE_MINE || phase == AGREE_SIDE)
        chempi_comm_agreement_open(&d->agreement, &d->channel);
    if (phase != OVER)
        plan_round(d);
}

/* One message of a step. */
static void begin(struct idup *d, bool is_in, int rank, bool is_inter)
{
    struct chempi_request *message = &d->messages[is_in];
    struct chempi_comm *comm = is_inter ? d->comm : d->channel.comm;
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);
    int rc;

    if (is_in)
        chempi_message_init_recv(message, d->other, CHEMPI_COMM_VALS_MAX, type,
                                 rank, d->channel.tag, comm,
                                 CHEMPI_CONTEXT_INTERNAL);
    else
        chempi_message_init_send(message, d->vals, CHEMPI_COMM_VALS_MAX, type,
                                 rank, d->channel.tag, comm,
                                 CHEMPI_CONTEXT_INTERNAL, CHEMPI_SEND_STANDARD);
    rc = chempi_message_start(message);
    d->is_begun[is_in] = rc == MPI_SUCCESS;
    if (rc == MPI_SUCCESS)
        return;
    chempi_message_fini(message);
    note(d, rc);
}

static void begin_step(struct idup *d)
{
    const struct chempi_comm_step *step = &d->steps[d->step];

    d->is_in_step = true;
    if (step->is_inter || step->from >= 0)
        begin(d, true,
              step->is_inter ? 0
                             : chempi_comm_step_rank(&d->channel, step->from),
              step->is_inter);
    if (step->is_inter || step->to >= 0)
        begin(d, false,
              step->is_inter ? 0 : chempi_comm_step_rank(&d->channel, step->to),
              step->is_inter);
}

/* Is the step that is under way over? Collects its messages. */
static bool end_step(struct idup *d)
{
    bool has_input = d->is_begun[true];

    for (int i = 0; i < 2; i++)
        if (d->is_begun[i] && !chempi_request_is_complete(&d->messages[i]))
            return false;
    for (int i = 0; i < 2; i++)
        if (d->is_begun[i]) {
            note(d, d->messages[i].error);
            chempi_message_fini(&d->messages[i]);
            d->is_begun[i] = false;
        }
    if (has_input && d->messages[true].error == MPI_SUCCESS &&
        d->messages[true].bytes != sizeof(d->other))
        note(d, chempi_message_note_too_little(
                    d->messages[true].source, (uint64_t)d->messages[true].bytes,
                    sizeof(d->other)));
    else if (has_input && d->messages[true].error == MPI_SUCCESS)
        chempi_comm_step_take(&d->steps[d->step], d->vals, d->other,
                              CHEMPI_COMM_VALS_MAX);
    note(d, MPI_SUCCESS);
    d->is_in_step = false;
    d->step++;
    return true;
}

/* An agreement is over. The other side waits for this one's id, or its error.
 */
static void end_agreement(struct idup *d)
{
    chempi_comm_agreement_close(&d->agreement);
    if (d->error == MPI_SUCCESS)
        d->ids[d->phase] = d->agreement.agreed;
    if (!d->comm->is_inter)
        enter_phase(d, OVER);
    else if (d->error == MPI_SUCCESS && d->phase == AGREE_MINE)
        enter_phase(d, AGREE_SIDE);
    else
        enter_phase(d, SWAP);
}

/* All steps of a round are done: the next round, phase, or the end. */
static void end_round(struct idup *d)
{
    bool is_over;
    int rc = d->error;

    if (d->vals[ERROR] != rc)
        rc = chempi_comm_step_error(d->vals[ERROR]);
    d->error = rc;
    if (d->phase == SWAP) {
        d->ids[SWAP] = (uint32_t)d->vals[0];
        if (rc == MPI_SUCCESS && !chempi_context_is_others(d->ids[SWAP]))
            d->error = MPI_ERR_INTERN;
        enter_phase(d, OVER);
        return;
    }
    d->error =
        chempi_comm_agreement_settle(&d->agreement, d->vals, rc, &is_over);
    if (is_over)
        end_agreement(d);
    else
        plan_round(d);
}

static void give_ids(const struct idup *d)
{
    for (int i = 0; i < SWAP; i++)
        if (d->ids[i])
            chempi_comm_return_context(d->ids[i], d->error);
}

/* The new communicator gets its ids, and becomes usable. */
static void name_ids(struct idup *d)
{
    struct chempi_comm *made = d->made;

    made->recv_context = d->ids[AGREE_MINE];
    made->send_context = d->ids[AGREE_MINE];
    if (d->comm->is_inter) {
        made->send_context = d->ids[SWAP];
        made->local_comm->send_context = d->ids[AGREE_SIDE];
        made->local_comm->recv_context = d->ids[AGREE_SIDE];
    }
    chempi_comm_choose_lane(made);
    CHEMPI_CHECK(chempi_comm_check(made));
    chempi_loss_note_change();
    chempi_comm_listen(made);
    if (made->local_comm)
        chempi_comm_listen(made->local_comm);
}

static void complete(struct idup *d)
{
    if (d->error == MPI_SUCCESS)
        name_ids(d);
    else
        give_ids(d);
    chempi_progress_remove_hook(&d->hook);
    chempi_request_progress(&d->req, d->error); /* d may be gone now */
}

static int poll_one(struct chempi_progress_hook *hook)
{
    struct idup *d = CHEMPI_CONTAINER_OF(hook, struct idup, hook);
    int events = 0;

    for (; d->phase != OVER; events++) {
        if (d->is_in_step && !end_step(d))
            return events;
        if (d->step == d->step_count)
            end_round(d);
        else
            begin_step(d);
    }
    complete(d);
    return events + 1;
}

static void destroy(struct chempi_request *req)
{
    struct idup *d = of_request(req);

    chempi_request_untrack(req);
    chempi_comm_release(d->made);
    chempi_comm_release(req->comm);
    req->obj.magic = 0;
    if (d == &reserve.d)
        reserve.is_taken = false;
    else
        free(d);
}

static const struct chempi_request_ops ops = {
    .call = "MPI_Comm_idup",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = destroy,
};

/* The new communicator with ids to come. */
static struct chempi_comm *make_unnamed(struct chempi_comm *comm)
{
    if (comm->is_inter)
        return chempi_comm_make_inter(comm->local, comm->remote, 0, 0, 0);
    return chempi_comm_make(comm->local, NULL, 0, 0);
}

/* made may be NULL: then nobody asks how it ends. */
static void start(struct idup *d, struct chempi_comm *comm,
                  struct chempi_comm *made, int rc)
{
    d->comm = comm;
    d->made = made;
    d->error = rc;
    d->channel = chempi_comm_channel(comm);
    d->channel.inter = NULL; /* each side agrees by itself */
    d->hook.poll = poll_one;
    chempi_list_init(&d->hook.link);
    chempi_request_init(&d->req, &chempi_lane_main, CHEMPI_REQUEST_COLL, &ops,
                        comm, NULL);
    enter_phase(d, AGREE_MINE);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_track(&d->req, &chempi_lane_main);
    if (!made)
        chempi_request_orphan(&d->req);
    chempi_progress_add_hook(&d->hook);
    (void)poll_one(&d->hook);
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
}

static struct idup *take_reserve(void)
{
    struct idup *d = NULL;

    chempi_lane_lock(&chempi_lane_main);
    if (!reserve.is_taken) {
        d = &reserve.d;
        memset(d, 0, sizeof(*d));
        reserve.is_taken = true;
    }
    chempi_lane_unlock(&chempi_lane_main);
    return d;
}

/* A call before has the reserve until others have come to it, and they may wait
 * here likewise, for one that comes to theirs: so memory is asked for, too. */
static struct idup *wait_for_some(const struct chempi_comm *comm)
{
    struct chempi_shortage shortage = {0};
    struct idup *d;

    while (!(d = take_reserve()) && !(d = chempi_sys->calloc(1, sizeof(*d)))) {
        if (!chempi_shortage_may_wait(&shortage))
            chempi_fatal_die("out of memory to tell the members of a "
                             "communicator of %u that MPI_Comm_idup has failed",
                             comm->size);
        (void)chempi_progress_poll();
        (void)sched_yield();
    }
    return d;
}

/* Nothing can be made here, which the others have to learn; returns rc. Waits
 * only where there is no memory, as in such a call before, which is under way.
 */
static CHEMPI_COLD int fail(struct idup *d, struct chempi_comm *comm, int rc)
{
    start(d ? d : wait_for_some(comm), comm, NULL, rc);
    return rc;
}

static int idup(struct chempi_comm *comm, const struct chempi_info *hints,
                MPI_Comm *newcomm, MPI_Request *request)
{
    struct idup *d = chempi_sys->calloc(1, sizeof(*d));
    struct chempi_comm *made = d ? make_unnamed(comm) : NULL;
    int rc;

    *newcomm = MPI_COMM_NULL;
    rc = made ? chempi_comm_dress(made, comm, hints, newcomm)
              : chempi_error_set(MPI_ERR_NO_MEM, "no room for a communicator");
    if (rc != MPI_SUCCESS)
        return fail(d, comm, rc);
    chempi_object_hold(&made->obj);
    *request = chempi_request_handle(&d->req);
    start(d, comm, made, MPI_SUCCESS);
    return MPI_SUCCESS;
}

int chempi_comm_idup(struct chempi_comm *comm, MPI_Comm *newcomm,
                     MPI_Request *request)
{
    return idup(comm, NULL, newcomm, request);
}

int chempi_comm_idup_with_info(struct chempi_comm *comm,
                               struct chempi_info *info, MPI_Comm *newcomm,
                               MPI_Request *request)
{
    return idup(comm, info, newcomm, request);
}
