/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages, and who runs them; see task.h. */
#include "libchempi/didl/io/task/task.h"

#include <stdio.h>
#include <string.h>

#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/io/file.h"

static int poll_running(struct chempi_progress_hook *hook);
static bool is_any_ready(struct chempi_progress_hook *hook);

/* Under the lane lock. */
static struct {
    struct chempi_list running;
    struct chempi_progress_hook hook;
    bool is_hooked;
} engine = {
    .running = {&engine.running, &engine.running},
    .hook = {.poll = poll_running, .is_ready = is_any_ready},
};

static void do_work(struct chempi_io_job *job)
{
    struct chempi_io_task *t =
        CHEMPI_CONTAINER_OF(job, struct chempi_io_task, job);

    t->work(t);
}

/* The next poll of the hook goes on. */
static void end_work(struct chempi_io_job *job)
{
    CHEMPI_CONTAINER_OF(job, struct chempi_io_task, job)->is_working = false;
}

void chempi_io_task_init(struct chempi_io_task *t, struct chempi_comm *comm,
                         chempi_io_stage_fn *first)
{
    *t = (struct chempi_io_task){.comm = comm,
                                 .is_here = true,
                                 .next = first,
                                 .job = {.run = do_work, .finish = end_work}};
    chempi_list_init(&t->job.link);
    chempi_list_init(&t->of_file);
    chempi_list_init(&t->running);
}

/* ---- what stages begin ---- */

void chempi_io_task_starve(void)
{
    chempi_fatal_die("out of memory for collective access to a file, which "
                     "other processes wait for");
}

/* The context is one of those in which waits end when any member is lost: a
 * member that lives may have heard of the loss and send nothing more. */
static int launch(struct chempi_io_task *t, void *buf, MPI_Count len, int rank,
                  int tag, bool is_send, struct chempi_request **out)
{
    struct chempi_request *req = chempi_request_alloc(&chempi_lane_main);

    if (!req)
        return MPI_ERR_NO_MEM;
    if (is_send)
        chempi_message_init_send(req, buf, len, chempi_coll_byte(), rank, tag,
                                 t->comm, CHEMPI_CONTEXT_INTERNAL,
                                 CHEMPI_SEND_STANDARD);
    else
        chempi_message_init_recv(req, buf, len, chempi_coll_byte(), rank, tag,
                                 t->comm, CHEMPI_CONTEXT_INTERNAL);
    req->is_urgent = !t->is_here;
    return chempi_message_launch(req, out);
}

int chempi_io_task_post(struct chempi_io_task *t, struct chempi_io_messages *m,
                        void *buf, uint64_t len, int rank, int tag,
                        bool is_send)
{
    struct chempi_request **req = &m->reqs[m->count];
    int rc;

    if (t->is_here)
        chempi_lane_lock(&chempi_lane_main);
    rc = launch(t, buf, (MPI_Count)len, rank, tag, is_send, req);
    if (t->is_here)
        chempi_lane_unlock(&chempi_lane_main);
    if (rc == MPI_ERR_NO_MEM)
        chempi_io_task_starve();
    if (!rc)
        m->count++;
    return rc;
}

void chempi_io_task_await(struct chempi_io_task *t,
                          struct chempi_io_messages *m)
{
    t->rc = MPI_SUCCESS;
    t->messages = m;
    if (!t->is_here)
        return;
    t->rc = chempi_message_wait_all(m->reqs, m->count);
    m->count = 0;
    t->messages = NULL;
}

/* One collective operation, without functions of the user's; its buffers are
 * not the stage's own variables. */
static void begin_collective(struct chempi_io_task *t,
                             const struct chempi_coll_call *c)
{
    t->rc = t->is_here ? chempi_coll_do(c) : chempi_coll_launch(c, &t->coll);
    if (t->rc == MPI_ERR_NO_MEM)
        chempi_io_task_starve();
}

void chempi_io_task_work(struct chempi_io_task *t, chempi_io_stage_fn *work)
{
    t->rc = MPI_SUCCESS;
    if (t->is_here) {
        work(t);
        return;
    }
    t->work = work;
    t->is_working = true;
    chempi_io_submit_locked(&t->job);
}

/* ---- agreeing ---- */

static struct chempi_datatype *int64_type(void)
{
    return chempi_datatype_lookup(MPI_INT64_T);
}

void chempi_io_task_gather(struct chempi_io_task *t, const int64_t *mine, int n,
                           int64_t *all)
{
    begin_collective(
        t, &(struct chempi_coll_call){.kind = CHEMPI_COLL_ALLGATHER,
                                      .comm = t->comm,
                                      .send.buf = (void *)(uintptr_t)mine,
                                      .recv.buf = all,
                                      .send.count = n,
                                      .recv.count = n,
                                      .send.type = int64_type(),
                                      .recv.type = int64_type()});
}

/* Member and class of an error as one number, which is largest for the lowest
 * member; and back. Without an error, a wish. */
static int64_t error_number(const struct chempi_io_task *t, int rc)
{
    const struct chempi_comm *comm = t->comm;

    return rc ? (int64_t)(comm->size - (uint32_t)comm->rank) << 32 | rc
              : t->wish;
}

static bool is_error(int64_t number)
{
    return number >> 32 != 0;
}

static int member_of(const struct chempi_io_task *t)
{
    return (int)(t->comm->size - (uint32_t)(t->worst[0] >> 32));
}

static void hear_words(struct chempi_io_task *t)
{
    int rank = member_of(t);
    int rc = (int)(t->worst[0] & INT32_MAX);

    t->next = t->after;
    t->words[sizeof(t->words) - 1] = '\0';
    if (t->rc)
        return;
    t->rc = rank == t->comm->rank
                ? chempi_error_set(rc, "%s", t->words)
                : chempi_error_set(rc, "rank %d: %s", rank, t->words);
}

/* Members of other worlds say what they like. */
static bool is_of_member(const struct chempi_io_task *t, int64_t number)
{
    const int64_t rc = number & UINT32_MAX;
    const int64_t behind = number >> 32;

    return behind >= 1 && behind <= (int64_t)t->comm->size && rc > 0 &&
           rc <= MPI_ERR_LASTCODE;
}

static void hear_worst(struct chempi_io_task *t)
{
    t->next = t->after;
    t->wish = (uint8_t)t->worst[0];
    if (t->rc || !is_error(t->worst[0]))
        return;
    if (!is_of_member(t, t->worst[0])) {
        t->rc = chempi_error_set(MPI_ERR_INTERN,
                                 "another member names an error that cannot "
                                 "be");
        return;
    }
    if (member_of(t) != t->comm->rank)
        memset(t->words, 0, sizeof(t->words));
    t->next = hear_words;
    begin_collective(
        t, &(struct chempi_coll_call){.kind = CHEMPI_COLL_BCAST,
                                      .root = member_of(t),
                                      .comm = t->comm,
                                      .recv.buf = t->words,
                                      .recv.count = sizeof(t->words),
                                      .recv.type = chempi_coll_byte()});
}

void chempi_io_task_agree(struct chempi_io_task *t, int rc, const char *words,
                          chempi_io_stage_fn *after)
{
    const char *noted = words ? words : chempi_error_noted(rc);

    memset(t->words, 0, sizeof(t->words));
    if (rc && noted)
        (void)snprintf(t->words, sizeof(t->words), "%s", noted); /* cut */
    t->after = after;
    t->mine[0] = error_number(t, rc);
    for (int i = 0; i < t->sames; i++) {
        t->mine[1 + 2 * i] = t->same[i];
        t->mine[2 + 2 * i] = ~t->same[i];
    }
    memcpy(t->worst, t->mine, sizeof(t->worst));
    t->rc = MPI_SUCCESS;
    if (t->comm->size == 1) {
        t->next = hear_words;
        if (rc == 0)
            t->next = after;
        return;
    }
    t->next = hear_worst;
    begin_collective(
        t, &(struct chempi_coll_call){.kind = CHEMPI_COLL_ALLREDUCE,
                                      .comm = t->comm,
                                      .send.buf = t->mine,
                                      .recv.buf = t->worst,
                                      .recv.count = 1 + 2 * t->sames,
                                      .recv.type = int64_type(),
                                      .op = chempi_op_lookup(MPI_MAX)});
}

/* ---- here ---- */

void chempi_io_task_run(struct chempi_io_task *t)
{
    while (t->next) {
        chempi_io_stage_fn *stage = t->next;

        t->next = NULL;
        stage(t);
    }
}

/* ---- in progress ---- */

static bool is_ready(const struct chempi_io_task *t)
{
    if (t->is_working || (t->coll && !chempi_request_is_complete(t->coll)))
        return false;
    for (int i = 0; t->messages && i < t->messages->count; i++)
        if (!chempi_request_is_complete(t->messages->reqs[i]))
            return false;
    return true;
}

static void end_request(struct chempi_io_task *t, struct chempi_request *req)
{
    int rc = req->ops->finish(req, MPI_STATUS_IGNORE);

    if (rc && !t->rc)
        t->rc = rc;
    chempi_request_drop(req);
}

static void collect(struct chempi_io_task *t)
{
    struct chempi_io_messages *m = t->messages;

    if (t->coll)
        end_request(t, t->coll);
    t->coll = NULL;
    for (int i = 0; m && i < m->count; i++)
        end_request(t, m->reqs[i]);
    if (m)
        m->count = 0;
    t->messages = NULL;
}

static bool is_first(const struct chempi_io_task *t)
{
    return chempi_list_first(t->queue) == &t->of_file;
}

static void end_task(struct chempi_io_task *t)
{
    struct chempi_list *queue = t->queue;

    chempi_list_remove(&t->running);
    chempi_list_remove(&t->of_file);
    chempi_lane_repay(&chempi_lane_main);
    if (!chempi_list_is_empty(queue)) {
        struct chempi_io_task *first = CHEMPI_CONTAINER_OF(
            chempi_list_first(queue), struct chempi_io_task, of_file);

        chempi_list_append(&engine.running, &first->running);
    }
    t->end(t);
    chempi_progress_notify();
}

/* How many stages have run. */
static int advance(struct chempi_io_task *t)
{
    int stages = 0;

    while (is_ready(t)) {
        chempi_io_stage_fn *stage = t->next;

        collect(t);
        stages++;
        if (!stage) {
            end_task(t);
            break;
        }
        t->next = NULL;
        stage(t);
    }
    return stages;
}

static int poll_running(struct chempi_progress_hook *hook)
{
    int events = 0;

    (void)hook;
    CHEMPI_LIST_FOR_SAFE (pos, &engine.running)
        events +=
            advance(CHEMPI_CONTAINER_OF(pos, struct chempi_io_task, running));
    return events;
}

static bool is_any_ready(struct chempi_progress_hook *hook)
{
    (void)hook;
    CHEMPI_LIST_FOR (pos, &engine.running)
        if (is_ready(CHEMPI_CONTAINER_OF(pos, struct chempi_io_task, running)))
            return true;
    return false;
}

void chempi_io_task_start(struct chempi_io_task *t, struct chempi_list *queue,
                          void (*end)(struct chempi_io_task *t))
{
    t->is_here = false;
    t->queue = queue;
    t->end = end;
    chempi_lane_lock(&chempi_lane_main);
    if (!engine.is_hooked)
        chempi_progress_add_hook(&engine.hook);
    engine.is_hooked = true;
    chempi_lane_owe(&chempi_lane_main);
    chempi_list_append(queue, &t->of_file);
    if (is_first(t)) {
        chempi_list_append(&engine.running, &t->running);
        (void)advance(t);
        chempi_progress_nudge();
    }
    chempi_lane_unlock(&chempi_lane_main);
}

static bool is_empty(void *queue)
{
    return chempi_list_is_empty(queue);
}

static void put_others(struct chempi_wait_report *w, const void *object)
{
    (void)object;
    chempi_wait_report_put(
        w, " of collective operations on the file that were begun "
           "before");
}

int chempi_io_task_wait_all(struct chempi_list *queue)
{
    bool is_over;

    chempi_lane_lock(&chempi_lane_main);
    is_over = chempi_list_is_empty(queue);
    chempi_lane_unlock(&chempi_lane_main);
    return is_over
               ? MPI_SUCCESS
               : chempi_progress_wait_for(is_empty, queue, put_others, NULL);
}

void chempi_io_task_fini(void)
{
    if (engine.is_hooked)
        chempi_progress_remove_hook(&engine.hook);
    engine.is_hooked = false;
}
