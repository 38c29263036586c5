/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancelling a send (MPI 5.0, section 3.8.4): a message that has not left is
 * simply taken back; for one that has, the receiver is asked, and either has
 * it unmatched and drops it, or it is too late. The request stays pending
 * until the answer.
 *
 *   K1  a request that is_cancelling stands in its peer's `cancels`, asked, or,
 *       as long as memory is missing to ask, in `unasked`; from the first of
 *       these on the hook is there
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/progress/others.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/services/shortage.h"

static int ask_all(struct chempi_progress_hook *hook);
static bool is_ready(struct chempi_progress_hook *hook);

/* Under the first lane's lock. */
static struct {
    struct chempi_list unasked; /* struct chempi_request.outgoing.link */
    struct chempi_progress_hook hook;
    bool has_hook;
    struct chempi_shortage shortage;
} self = {.unasked = {&self.unasked, &self.unasked},
          .hook = {.poll = ask_all, .is_ready = is_ready}};

/* From both ends: there may be many, of which a buffered send that has just
 * been started is the last, and the next to be cancelled mostly the first. */
bool chempi_message_is_waiting(const struct chempi_request *req)
{
    const struct chempi_list *link = &req->outgoing.link;
    const struct chempi_list *back = req->peer->waiting.prev;

    CHEMPI_LIST_FOR (pos, &req->peer->waiting) {
        if (pos == link || back == link)
            return true;
        back = back->prev;
    }
    return false;
}

/* A message to oneself has its answer after a look for the question and one
 * for the answer: programs that look once after MPI_Cancel then find it. */
static void hear_oneself(const struct chempi_request *req)
{
    enum { LOOKS = 2 };

    for (int i = 0; i < LOOKS && req->is_cancelling; i++) {
        chempi_lane_pause(req->lane);
        (void)chempi_progress_poll_in(req->lane);
        chempi_lane_lock(req->lane);
    }
}

static void finish(struct chempi_request *req, bool is_taken_back)
{
    chempi_list_remove(&req->outgoing.link);
    req->is_cancelling = false;
    req->is_cancelled = is_taken_back;
    if (is_taken_back && req->is_queued) { /* no match will be reported */
        chempi_list_remove(&req->match_link);
        req->is_queued = false;
        chempi_request_set_pending(req, chempi_request_pending(req) - 1);
    }
    chempi_request_progress(req, MPI_SUCCESS);
}

/* False: no memory. */
static bool ask(struct chempi_request *req)
{
    const uint32_t serial = req->u.tx.env.serial;

    if (chempi_sysmsg_post(req->peer, CHEMPI_SYSMSG_CANCEL, &serial,
                           sizeof(serial)))
        return false;
    chempi_list_append(&req->peer->cancels, &req->outgoing.link);
    return true;
}

/* Whoever waits for a message that was cancelled waits for the answer. */
static void wait_for_memory(struct chempi_shortage *shortage,
                            const struct chempi_request *req)
{
    if (!chempi_shortage_may_wait(shortage))
        chempi_fatal_die("out of memory to cancel a message to rank %u",
                         req->peer->proc);
}

static CHEMPI_COLD void ask_later(struct chempi_request *req)
{
    if (!self.has_hook)
        chempi_progress_add_hook(&self.hook);
    self.has_hook = true;
    chempi_list_append(&self.unasked, &req->outgoing.link);
    wait_for_memory(&self.shortage, req);
}

/* Hooks are the first lane's: in another one the call waits by itself. */
static CHEMPI_COLD void ask_at_last(struct chempi_request *req)
{
    struct chempi_shortage shortage = {0};

    while (!ask(req)) {
        wait_for_memory(&shortage, req);
        chempi_lane_pause(req->lane);
        (void)chempi_progress_poll_in(req->lane);
        chempi_lane_lock(req->lane);
        if (chempi_request_pending(req) == 1) { /* it is over, but for this */
            chempi_list_init(&req->outgoing.link);
            finish(req, false);
            return;
        }
    }
}

static int ask_all(struct chempi_progress_hook *hook)
{
    int events = 0;

    (void)hook;
    while (!chempi_list_is_empty(&self.unasked)) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(chempi_list_first(&self.unasked),
                                struct chempi_request, outgoing.link);

        chempi_list_remove(&req->outgoing.link);
        if (chempi_request_pending(req) == 1) { /* it is over, but for this */
            finish(req, false);
        } else if (!ask(req)) {
            chempi_list_prepend(&self.unasked, &req->outgoing.link);
            wait_for_memory(&self.shortage, req);
            return events;
        }
        events++;
    }
    chempi_shortage_end(&self.shortage);
    return events;
}

static bool is_ready(struct chempi_progress_hook *hook)
{
    (void)hook;
    return !chempi_list_is_empty(&self.unasked); /* there may be memory now */
}

void chempi_message_cancel_send(struct chempi_request *req)
{
    struct chempi_peer *peer = req->peer;

    if (req->is_cancelling || req->is_cancelled)
        return;
    if (chempi_message_is_waiting(req)) {
        chempi_engine_unqueue(req);
        req->is_cancelled = true;
        chempi_request_set_pending(req, 1);
        chempi_request_progress(req, MPI_SUCCESS);
        return;
    }
    req->is_cancelling = true;
    chempi_request_add_pending(req, 1);
    if (CHEMPI_UNLIKELY(req->lane->number > 0))
        ask_at_last(req);
    else if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&self.unasked)) || !ask(req))
        ask_later(req);
    chempi_engine_settle(req->lane);
    if (peer->proc == chempi_ctx.services.proc)
        hear_oneself(req);
}

/* At the receiver: take the message back if nobody has received it. */
static void on_cancel(struct chempi_sysmsg_in *in)
{
    const uint32_t *serial = in->head;
    struct chempi_held *held =
        chempi_match_take_serial(in->peer->lane->match, in->peer, *serial);
    uint32_t answer[2] = {*serial, held != NULL};

    if (held)
        chempi_engine_drop_held(held);
    chempi_sysmsg_answer(in->peer, CHEMPI_SYSMSG_CANCEL_ANSWER, answer,
                         sizeof(answer));
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
                                                            NULL, true};
static const struct chempi_sysmsg_handler answer_handler = {8, 8, on_answer,
                                                            NULL, true};

void chempi_message_register(void)
{
    self.has_hook = false;
    if (chempi_ctx.services.proc_count >
        CHEMPI_LIGHT_PROCS - CHEMPI_FOREIGN_MAX)
        chempi_light_refuse();
    chempi_others_on_gone(chempi_comm_release);
    chempi_sysmsg_register(CHEMPI_SYSMSG_CANCEL, &cancel_handler);
    chempi_sysmsg_register(CHEMPI_SYSMSG_CANCEL_ANSWER, &answer_handler);
}
