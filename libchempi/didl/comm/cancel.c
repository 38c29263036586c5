/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancelling a send (MPI 5.0, section 3.8.4): a message that has not left is
 * simply taken back; for one that has, the receiver is asked, and either has
 * it unmatched and drops it, or it is too late. The request stays pending
 * until the answer.
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/progress.h"
#include "libchempi/didl/transport/sysmsg.h"

bool chempi_message_is_waiting(const struct chempi_request *req)
{
    CHEMPI_LIST_FOR (pos, &req->peer->waiting) {
        if (pos == &req->outgoing.link)
            return true;
    }
    return false;
}

/* A message to oneself has its answer after a look for the question and one
 * for the answer: programs that look once after MPI_Cancel then find it. */
static void hear_oneself(const struct chempi_request *req)
{
    enum { LOOKS = 2 };

    for (int i = 0; i < LOOKS && req->is_cancelling; i++)
        (void)chempi_progress_poll();
}

void chempi_message_cancel_send(struct chempi_request *req)
{
    struct chempi_peer *peer = req->peer;
    uint32_t serial = req->u.tx.env.serial;

    if (req->is_cancelling || req->is_cancelled)
        return;
    if (chempi_message_is_waiting(req)) {
        chempi_engine_unqueue(req);
        req->is_cancelled = true;
        req->pending = 1;
        chempi_request_progress(req, MPI_SUCCESS);
        return;
    }
    if (chempi_sysmsg_post(peer, CHEMPI_SYSMSG_CANCEL, &serial, sizeof(serial)))
        return; /* no memory: it simply cannot be cancelled */
    req->is_cancelling = true;
    req->pending++;
    chempi_list_append(&peer->cancels, &req->outgoing.link);
    chempi_engine_settle();
    if (peer->proc == chempi_ctx.services.proc)
        hear_oneself(req);
}

/* At the receiver: take the message back if nobody has received it. */
static void on_cancel(struct chempi_sysmsg_in *in)
{
    const uint32_t *serial = in->head;
    struct chempi_held *held = chempi_match_take_serial(in->peer, *serial);
    uint32_t answer[2] = {*serial, held != NULL};

    if (held)
        chempi_engine_drop_held(held);
    chempi_sysmsg_answer(in->peer, CHEMPI_SYSMSG_CANCEL_ANSWER, answer,
                         sizeof(answer));
}

static void finish(struct chempi_request *req, bool is_taken_back)
{
    chempi_list_remove(&req->outgoing.link);
    req->is_cancelling = false;
    req->is_cancelled = is_taken_back;
    if (is_taken_back && req->is_queued) { /* no match will be reported */
        chempi_list_remove(&req->match_link);
        req->is_queued = false;
        req->pending--;
    }
    chempi_request_progress(req, MPI_SUCCESS);
}

static void on_answer(struct chempi_sysmsg_in *in)
{
    const uint32_t *words = in->head;

    CHEMPI_LIST_FOR_SAFE (pos, &in->peer->cancels) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, outgoing.link);

        if (req->u.tx.env.serial != words[0])
            continue;
        finish(req, words[1] == 1);
        return;
    }
}

static const struct chempi_sysmsg_handler cancel_handler = {4, 4, on_cancel,
                                                            NULL};
static const struct chempi_sysmsg_handler answer_handler = {8, 8, on_answer,
                                                            NULL};

void chempi_message_register(void)
{
    chempi_sysmsg_register(CHEMPI_SYSMSG_CANCEL, &cancel_handler);
    chempi_sysmsg_register(CHEMPI_SYSMSG_CANCEL_ANSWER, &answer_handler);
}
