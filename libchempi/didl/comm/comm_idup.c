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
 *   D2  while a step is under way, children[] are its messages
 *   D3  the user owns `made`, and must not use it before completion; the
 *       request holds a reference of its own
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/attr.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/comm/comm_make.h"
#include "libchempi/didl/comm/p2p_request.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress.h"
#include "libchempi/didl/transport/request.h"

enum phase {
    AGREE_MINE, /* the id on which the new communicator receives */
    AGREE_SIDE, /* intercommunicators: the id of the local group's own one */
    SWAP,       /* intercommunicators: tell the other side, learn theirs */
    OVER
};

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
    struct chempi_request *children[2]; /* out, in */
    uint32_t ids[3];                    /* by phase */
    bool is_stuck; /* failed with a message still on its way: never freed */
};

static struct idup *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct idup, req);
}

static void plan_round(struct idup *d)
{
    d->step = 0;
    if (d->phase == SWAP) {
        d->step_count = 0;
        memset(d->vals, 0, sizeof(d->vals));
        d->vals[0] = d->ids[AGREE_MINE];
        if (d->channel.me == 0)
            d->steps[d->step_count++] =
                (struct chempi_comm_step){.is_inter = true};
        d->step_count +=
            chempi_comm_plan_bcast(&d->channel, d->steps + d->step_count);
    } else {
        d->step_count = chempi_comm_plan_max(&d->channel, d->steps);
        chempi_comm_agreement_cast(&d->agreement, d->vals);
    }
}

static void enter_phase(struct idup *d, enum phase phase)
{
    d->phase = phase;
    if (phase == AGREE_MINE || phase == AGREE_SIDE)
        chempi_comm_agreement_open(&d->agreement, &d->channel);
    if (phase != OVER)
        plan_round(d);
}

/* Start one message; NULL with *rc on failure. */
static struct chempi_request *begin(struct idup *d, int64_t *buf, int rank,
                                    bool is_inter, bool is_send, int *rc)
{
    struct chempi_request *child = chempi_request_alloc();
    struct chempi_comm *comm = is_inter ? d->comm : d->channel.comm;
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);

    if (!child) {
        *rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a message");
        return NULL;
    }
    if (is_send)
        chempi_p2p_init_send(child, buf, CHEMPI_COMM_VALS_MAX, type, rank,
                             d->channel.tag, comm, CHEMPI_CONTEXT_INTERNAL,
                             CHEMPI_SEND_STANDARD);
    else
        chempi_p2p_init_recv(child, buf, CHEMPI_COMM_VALS_MAX, type, rank,
                             d->channel.tag, comm, CHEMPI_CONTEXT_INTERNAL);
    *rc = chempi_p2p_start(child);
    if (*rc == MPI_SUCCESS)
        return child;
    chempi_request_drop(child);
    return NULL;
}

static int begin_step(struct idup *d)
{
    const struct chempi_comm_step *step = &d->steps[d->step];
    int rc = MPI_SUCCESS;

    if (step->is_inter) {
        d->children[1] = begin(d, d->other, 0, true, false, &rc);
        if (rc == MPI_SUCCESS)
            d->children[0] = begin(d, d->vals, 0, true, true, &rc);
        return rc;
    }
    if (step->from >= 0)
        d->children[1] =
            begin(d, d->other, chempi_comm_step_rank(&d->channel, step->from),
                  false, false, &rc);
    if (step->to >= 0 && rc == MPI_SUCCESS)
        d->children[0] =
            begin(d, d->vals, chempi_comm_step_rank(&d->channel, step->to),
                  false, true, &rc);
    return rc;
}

/* Is the step that is under way over? Collects its messages. */
static bool end_step(struct idup *d, int *rc)
{
    bool has_input = d->children[1] != NULL;

    for (int i = 0; i < 2; i++)
        if (d->children[i] && !chempi_request_is_complete(d->children[i]))
            return false;
    for (int i = 0; i < 2; i++)
        if (d->children[i]) {
            if (*rc == MPI_SUCCESS)
                *rc = d->children[i]->error;
            chempi_request_drop(d->children[i]);
            d->children[i] = NULL;
        }
    if (has_input)
        chempi_comm_step_take(&d->steps[d->step], d->vals, d->other,
                              CHEMPI_COMM_VALS_MAX);
    d->step++;
    return true;
}

/* All steps of a round are done: the next round, phase, or the end. */
static int end_round(struct idup *d)
{
    bool is_over;
    int rc;

    if (d->phase == SWAP) {
        d->ids[SWAP] = (uint32_t)d->vals[0];
        enter_phase(d, OVER);
        return MPI_SUCCESS;
    }
    rc = chempi_comm_agreement_settle(&d->agreement, d->vals, MPI_SUCCESS,
                                      &is_over);
    if (!is_over) {
        plan_round(d);
        return MPI_SUCCESS;
    }
    chempi_comm_agreement_close(&d->agreement);
    if (rc != MPI_SUCCESS)
        return rc;
    d->ids[d->phase] = d->agreement.agreed;
    if (!d->comm->is_inter)
        enter_phase(d, OVER);
    else
        enter_phase(d, d->phase == AGREE_MINE ? AGREE_SIDE : SWAP);
    return MPI_SUCCESS;
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
    CHEMPI_CHECK(chempi_comm_check(made));
}

static void complete(struct idup *d, int rc)
{
    if (rc == MPI_SUCCESS)
        name_ids(d);
    d->is_stuck = d->children[0] || d->children[1];
    chempi_progress_remove_hook(&d->hook);
    chempi_request_progress(&d->req, rc); /* d may be gone now */
}

/* A round is cut short: nobody is to wait for its turn. */
static void leave_round(struct idup *d, int rc)
{
    bool is_over;

    if (d->phase != AGREE_MINE && d->phase != AGREE_SIDE)
        return;
    (void)chempi_comm_agreement_settle(&d->agreement, d->vals, rc, &is_over);
    chempi_comm_agreement_close(&d->agreement);
}

static int poll_one(struct chempi_progress_hook *hook)
{
    struct idup *d = CHEMPI_CONTAINER_OF(hook, struct idup, hook);
    int rc = MPI_SUCCESS;
    int events = 0;

    while (rc == MPI_SUCCESS && d->phase != OVER) {
        bool is_under_way = d->children[0] || d->children[1];

        if (is_under_way && !end_step(d, &rc))
            return events;
        events++;
        if (rc == MPI_SUCCESS && d->step == d->step_count) {
            rc = end_round(d); /* if it fails, that is closed */
            continue;
        }
        if (rc == MPI_SUCCESS && !is_under_way)
            rc = begin_step(d);
        if (rc != MPI_SUCCESS)
            leave_round(d, rc);
    }
    complete(d, rc);
    return events + 1;
}

static void destroy(struct chempi_request *req)
{
    struct idup *d = of_request(req);

    chempi_request_untrack(req);
    chempi_comm_release(d->made);
    chempi_comm_release(req->comm);
    req->obj.magic = 0;
    if (!d->is_stuck)
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

static int idup(struct chempi_comm *comm, const struct chempi_info *hints,
                MPI_Comm *newcomm, MPI_Request *request)
{
    struct idup *d = chempi_sys->calloc(1, sizeof(*d));
    struct chempi_comm *made = d ? make_unnamed(comm) : NULL;
    int rc;

    *newcomm = MPI_COMM_NULL;
    if (!made) {
        free(d);
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for a communicator");
    }
    rc = chempi_comm_dress(made, comm, hints, newcomm);
    if (rc != MPI_SUCCESS) {
        free(d);
        return rc;
    }
    chempi_object_hold(&made->obj);
    d->comm = comm;
    d->made = made;
    d->channel = chempi_comm_channel(comm);
    d->channel.inter = NULL; /* each side agrees by itself */
    d->hook.poll = poll_one;
    chempi_list_init(&d->hook.link);
    chempi_request_init(&d->req, CHEMPI_REQUEST_COLL, &ops, comm, NULL);
    *request = chempi_request_handle(&d->req);
    enter_phase(d, AGREE_MINE);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_track(&d->req);
    chempi_progress_add_hook(&d->hook);
    (void)poll_one(&d->hook);
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
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
