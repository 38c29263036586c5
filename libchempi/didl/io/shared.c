/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared file pointers: each lives at member 0 of its file. The others ask it
 * by a system message to add to the pointer, and get where it was. Member 0
 * answers from progress.
 *
 *   H1  all here is guarded by the lane lock
 *   H2  `served` has the files whose pointer lives here; a file is on it as
 *       long as any member can ask
 *   H3  a question is on `asked` until its answer has come, or the wait for it
 *       is over
 *   H4  a view puts the pointer to 0, without a word: who asks tells how many
 *       views the file has had, and the first question of a view finds 0
 */
#include "libchempi/didl/io/shared.h"

#include <string.h>

#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum { TAG_ASK = CHEMPI_SYSMSG_IO, TAG_ANSWER = CHEMPI_SYSMSG_IO - 1 };

struct ask {
    uint64_t token;
    uint64_t count; /* etypes to add */
    uint64_t views; /* H4 */
    uint64_t serial;
};

struct answer {
    uint64_t serial;
    uint64_t before;
    uint64_t is_known; /* the file is open there */
};

struct question {
    struct chempi_list link; /* H3 */
    struct chempi_sysmsg msg;
    struct chempi_peer *peer;
    struct answer answer;
    bool is_answered;
    bool is_gone; /* the message is no longer under way */
    int status;   /* of the message: 0 or -errno */
};

static struct {
    struct chempi_list served; /* H2 */
    struct chempi_list asked;
    uint64_t tokens;
    uint64_t serials;
} shared = {
    .served = {&shared.served, &shared.served},
    .asked = {&shared.asked, &shared.asked},
};

static struct chempi_file *find(uint64_t token)
{
    CHEMPI_LIST_FOR (pos, &shared.served) {
        struct chempi_file *file =
            CHEMPI_CONTAINER_OF(pos, struct chempi_file, link);

        if (file->token == token)
            return file;
    }
    return NULL;
}

static uint64_t add(struct chempi_file *file, uint64_t count, uint32_t views)
{
    uint64_t before;

    if (views != file->shared_views)
        file->shared_at = 0;
    file->shared_views = views;
    before = file->shared_at;
    file->shared_at += count;
    return before;
}

/* Tokens can be guessed, and not all that have a connection are members. */
static bool is_member(const struct chempi_file *file, uint32_t proc)
{
    if (!chempi_foreign_is(proc))
        return true;
    for (uint32_t i = 0; i < file->comm->size; i++)
        if (chempi_comm_proc(file->comm, i) == proc)
            return true;
    return false;
}

static void on_ask(struct chempi_sysmsg_in *in)
{
    struct answer answer = {0};
    struct chempi_file *file;
    struct ask ask;

    memcpy(&ask, in->head, sizeof(ask));
    file = find(ask.token);
    answer.serial = ask.serial;
    if (file && is_member(file, in->peer->proc)) {
        answer.is_known = 1;
        answer.before = add(file, ask.count, (uint32_t)ask.views);
    }
    chempi_sysmsg_answer(in->peer, TAG_ANSWER, &answer, sizeof(answer));
}

static void on_answer(struct chempi_sysmsg_in *in)
{
    struct answer answer;

    memcpy(&answer, in->head, sizeof(answer));
    CHEMPI_LIST_FOR (pos, &shared.asked) {
        struct question *q = CHEMPI_CONTAINER_OF(pos, struct question, link);

        if (q->msg.arg != q || answer.serial != q->answer.serial ||
            q->peer != in->peer)
            continue;
        q->answer = answer;
        q->is_answered = true;
        chempi_progress_notify();
        return;
    }
}

static const struct chempi_sysmsg_handler ask_handler = {
    sizeof(struct ask), sizeof(struct ask), on_ask, NULL, true};
static const struct chempi_sysmsg_handler answer_handler = {
    sizeof(struct answer), sizeof(struct answer), on_answer, NULL, true};

void chempi_io_shared_init(void)
{
    chempi_sysmsg_register(TAG_ASK, &ask_handler);
    chempi_sysmsg_register(TAG_ANSWER, &answer_handler);
}

/* ---- a file's pointer ---- */

int chempi_io_shared_open(struct chempi_file *file)
{
    bool is_here = file->comm->rank == 0;
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BCAST,
                                 .comm = file->comm,
                                 .recv.buf = &file->token,
                                 .recv.count = sizeof(file->token),
                                 .recv.type = chempi_coll_byte()};

    if (is_here) {
        chempi_lane_lock(&chempi_lane_main);
        file->token = ++shared.tokens;
        chempi_list_append(&shared.served, &file->link);
        chempi_lane_unlock(&chempi_lane_main);
    }
    return file->comm->size == 1 ? MPI_SUCCESS : chempi_coll_do(&c);
}

void chempi_io_shared_close(struct chempi_file *file)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&file->link);
    chempi_lane_unlock(&chempi_lane_main);
}

/* ---- asking ---- */

static void message_done(struct chempi_sysmsg *msg, int status)
{
    struct question *q = msg->arg;

    q->is_gone = true;
    q->status = status;
    chempi_progress_notify();
}

/* The memory is the message's until it is gone. */
static bool is_over(void *arg)
{
    const struct question *q = arg;

    return q->is_gone && (q->is_answered || q->status != 0 || q->peer->is_lost);
}

static void put_question(struct chempi_wait_report *w, const void *object)
{
    (void)object;
    chempi_wait_report_put(w,
                           " of the shared pointer of a file, at rank 0 of its "
                           "communicator");
}

/* Under the lock. MPI error class: nothing is under way. */
static int ask_locked(struct chempi_file *file, struct question *q,
                      uint64_t count)
{
    struct ask ask = {file->token, count, file->views, ++shared.serials};
    int rc;

    q->peer =
        chempi_conn_peer(&chempi_lane_main, chempi_comm_proc(file->comm, 0));
    rc = chempi_conn_resolve(q->peer);
    if (rc)
        return rc;
    q->answer.serial = ask.serial;
    q->msg.peer = q->peer;
    q->msg.tag = TAG_ASK;
    q->msg.head_len = sizeof(ask);
    memcpy(q->msg.head, &ask, sizeof(ask));
    q->msg.is_urgent = true;
    q->msg.done = message_done;
    q->msg.arg = q;
    rc = chempi_sysmsg_send(&q->msg);
    if (rc)
        return chempi_error_from(rc, NULL);
    chempi_list_append(&shared.asked, &q->link);
    chempi_engine_settle(&chempi_lane_main);
    return MPI_SUCCESS;
}

static int ask(struct chempi_file *file, uint64_t count, uint64_t *before)
{
    struct question q = {0};
    int rc;

    chempi_list_init(&q.link);
    chempi_lane_lock(&chempi_lane_main);
    rc = ask_locked(file, &q, count);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return rc;
    rc = chempi_progress_wait_for(is_over, &q, put_question, NULL);
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&q.link);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return rc;
    if (q.status)
        return chempi_error_from(q.status, NULL);
    if (!q.is_answered)
        return chempi_error_set(MPI_ERR_PROC_ABORTED,
                                "rank 0 of the communicator of %s, which has "
                                "the shared pointer, is lost",
                                file->path);
    if (!q.answer.is_known)
        return chempi_error_set(MPI_ERR_FILE,
                                "%s is closed at rank 0 of its communicator, "
                                "which has the shared pointer",
                                file->path);
    *before = q.answer.before;
    return MPI_SUCCESS;
}

int chempi_io_shared_add(struct chempi_file *file, uint64_t count,
                         uint64_t *before)
{
    if (file->comm->rank != 0)
        return ask(file, count, before);
    (void)chempi_progress_poll(); /* the others ask, too */
    chempi_lane_lock(&chempi_lane_main);
    *before = add(file, count, file->views);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

void chempi_io_shared_set(struct chempi_file *file, uint64_t at)
{
    chempi_lane_lock(&chempi_lane_main);
    file->shared_at = at;
    file->shared_views = file->views;
    chempi_lane_unlock(&chempi_lane_main);
}
