/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the root of the job; see root.h. */
#include "libchempi/didl/proc/root.h"

#include <errno.h>
#include <stdio.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

/* Those that hear answers; under the lane lock. */
static struct chempi_list questions = {&questions, &questions};

static int class_of(enum chempi_reply_error error)
{
    switch (error) {
    case CHEMPI_REPLY_SPAWN:
        return MPI_ERR_SPAWN;
    case CHEMPI_REPLY_SERVICE:
        return MPI_ERR_SERVICE;
    case CHEMPI_REPLY_NAME:
        return MPI_ERR_NAME;
    case CHEMPI_REPLY_LACKS:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    case CHEMPI_REPLY_MEMORY:
        return MPI_ERR_NO_MEM;
    default:
        return MPI_ERR_ARG;
    }
}

static int refused(int rc, const struct chempi_err *err)
{
    switch (rc) {
    case -EOPNOTSUPP:
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION, "%s",
                                *err->text ? err->text
                                           : "this launcher starts no worlds, "
                                             "and keeps no names");
    case -EBUSY:
        return chempi_error_set(MPI_ERR_OTHER,
                                "too many questions of this process wait for "
                                "an answer of the launcher (limit: %u)",
                                CHEMPI_ROOT_REQUESTS_MAX);
    case -EMSGSIZE:
        return chempi_error_set(MPI_ERR_ARG,
                                "too many, or too long, words for the launcher "
                                "(limit: %u bytes)",
                                CHEMPI_ROOT_BYTES_MAX);
    default:
        return chempi_error_from(rc, *err->text ? err : NULL);
    }
}

int chempi_root_ask(struct chempi_root_question *q,
                    enum chempi_root_request what, const void *blob, size_t len)
{
    struct chempi_err err = {0};
    int rc;

    *q = (struct chempi_root_question){.serial = 0};
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_daemon_ask_root(what, blob, len, &q->serial, &err);
    if (!rc)
        chempi_list_append(&questions, &q->entry);
    else
        chempi_list_init(&q->entry);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? refused(rc, &err) : 0;
}

static bool is_answered(void *question)
{
    return ((const struct chempi_root_question *)question)->is_answered;
}

int chempi_root_await(struct chempi_root_question *q, const char *what)
{
    const int rc = chempi_progress_wait(is_answered, q);

    if (rc || q->is_granted)
        return rc;
    return chempi_error_set(class_of(q->error), "%s: %s", what, q->text);
}

void chempi_root_forget(struct chempi_root_question *q)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&q->entry);
    chempi_lane_unlock(&chempi_lane_main);
}

/* One that is not waited for any more is not there. */
void chempi_root_replied(const struct chempi_reply *reply)
{
    CHEMPI_LIST_FOR (e, &questions) {
        struct chempi_root_question *q =
            CHEMPI_CONTAINER_OF(e, struct chempi_root_question, entry);

        if (q->serial != reply->serial)
            continue;
        q->is_over |= reply->state == CHEMPI_REPLY_OVER;
        if (reply->state != CHEMPI_REPLY_OVER) {
            q->is_answered = true;
            q->is_granted = reply->state == CHEMPI_REPLY_GRANTED;
            q->error = reply->error;
            q->count = reply->count;
            q->app = reply->app;
        }
        (void)snprintf(q->text, sizeof(q->text), "%s", reply->text);
        chempi_progress_notify();
        return;
    }
}

void chempi_root_unanswered(const char *why)
{
    CHEMPI_LIST_FOR_SAFE (e, &questions) {
        struct chempi_root_question *q =
            CHEMPI_CONTAINER_OF(e, struct chempi_root_question, entry);

        chempi_list_remove(e);
        q->is_lost = !q->is_answered;
        if (q->is_lost)
            q->error = CHEMPI_REPLY_LACKS;
        q->is_answered = q->is_over = true;
        (void)snprintf(q->text, sizeof(q->text), "%s", why);
    }
    chempi_progress_notify();
}
