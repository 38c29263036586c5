/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System messages with payload: everybody sends everybody requests of all
 * lengths, in pieces or not, which are answered with what came; floods that
 * exceed the quota in both directions; bodies that nobody wants; ordinary
 * messages in between.
 *
 *   inside-sysmsgs [rounds] [flood]
 */
#include <stdatomic.h>

#include "common/containers/list.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/services/layout/layout.h"
#include "tests/mpi/check.h"

enum {
    TAG_ASK = CHEMPI_SYSMSG_TEST,
    TAG_ANSWER = CHEMPI_SYSMSG_TEST - 1,
    TAG_UNKNOWN = CHEMPI_SYSMSG_TEST - 2,
    RANKS_MAX = 16,
    PIECE = 4, /* bytes; every third place holds one */
    FLOOD_BODY = 900
};

enum how { ECHO = 1, UNWANTED = 2, ORDERED = 4, SCATTERED = 8 };

struct head {
    uint32_t number; /* of this sender, to this receiver */
    uint32_t how;
    uint64_t len;
    void *op; /* the asker's */
};

struct op {
    struct chempi_sysmsg msg;
    struct chempi_sysmsg_room room; /* for the answer */
    struct chempi_segment out;
    struct chempi_segment in;
    unsigned char *data;
    unsigned char *back;
    uint64_t len;
    uint32_t number;
    bool is_sent;
    bool is_answered;
};

/* What a handler needs to receive a body, and to answer. */
struct job {
    struct chempi_sysmsg_room room;
    struct chempi_sysmsg msg;
    struct chempi_segment iter;
    struct head head;
    struct chempi_peer *peer;
    unsigned char *data;
    uint32_t cost;
};

static struct {
    uint32_t heads[RANKS_MAX];  /* of each peer, handled */
    uint32_t bodies[RANKS_MAX]; /* ordered ones in place, and heads behind */
    uint64_t kept;              /* cost that answers hold */
    uint64_t kept_max;
    uint32_t unwanted;
    uint32_t done; /* messages whose done() was called */
    uint32_t answers;
    struct chempi_layout layout; /* PIECE bytes, 2 * PIECE bytes of hole */
} my;

static unsigned char byte_of(uint32_t number, uint64_t i)
{
    return (unsigned char)(number * 31u + i * 7u + (i >> 8));
}

static bool is_scattered(uint32_t how)
{
    return how & SCATTERED;
}

/* Where packed byte i of a body lies. */
static uint64_t place_of(uint32_t how, uint64_t i)
{
    return is_scattered(how) ? i / PIECE * 3 * PIECE + i % PIECE : i;
}

static unsigned char *memory_for(uint32_t how, uint64_t len)
{
    return calloc(1, is_scattered(how) ? 3 * len + PIECE : len + 1);
}

static bool is_right(const unsigned char *data, uint32_t how, uint32_t number,
                     uint64_t len)
{
    for (uint64_t i = 0; i < len; i++)
        if (data[place_of(how, i)] != byte_of(number, i))
            return false;
    return true;
}

/* ---- the answering side ---- */

static void answer_done(struct chempi_sysmsg *msg, int status)
{
    struct job *job = msg->arg;

    CHECK(status == 0, "answer to %u: %d", msg->peer->proc, status);
    my.kept -= job->cost;
    my.done++;
    free(job->data);
    free(job);
}

static void answer(struct job *job)
{
    struct chempi_sysmsg *msg = &job->msg;
    const bool is_held = is_scattered(job->head.how);

    msg->peer = job->peer;
    msg->tag = TAG_ANSWER;
    msg->head_len = sizeof(job->head);
    memcpy(msg->head, &job->head, sizeof(job->head));
    msg->body_len = job->head.len;
    msg->body = is_held ? NULL : job->data;
    msg->iter = is_held ? &job->iter : NULL;
    msg->is_answer = true;
    msg->repay = job->cost;
    msg->done = answer_done;
    msg->arg = job;
    my.kept += job->cost;
    if (my.kept > my.kept_max)
        my.kept_max = my.kept;
    CHECK(chempi_sysmsg_send(msg) == 0, "no memory for an answer");
}

static void body_done(struct chempi_sysmsg_room *room, int status,
                      uint32_t *cost)
{
    struct job *job = room->arg;

    CHECK(status == 0, "body of %u: %d", job->peer->proc, status);
    CHECK(is_right(job->data, job->head.how, job->head.number, job->head.len),
          "body %u of %u is wrong", job->head.number, job->peer->proc);
    if (job->head.how & ORDERED) {
        CHECK(my.heads[job->peer->proc] == job->head.number + 1,
              "%u came before body %u", my.heads[job->peer->proc],
              job->head.number);
    }
    if (!(job->head.how & ECHO)) {
        free(job->data);
        free(job);
        return;
    }
    job->cost = *cost;
    *cost = 0;
    answer(job);
}

static struct job *job_of(struct chempi_sysmsg_in *in)
{
    struct job *job = calloc(1, sizeof(*job));
    uint32_t *heads = &my.heads[in->peer->proc];

    memcpy(&job->head, in->head, sizeof(job->head));
    CHECK(job->head.number == *heads, "%u from %u, expected %u",
          job->head.number, in->peer->proc, *heads);
    CHECK(job->head.len == in->body_len, "a body of %llu, not %llu",
          (unsigned long long)in->body_len, (unsigned long long)job->head.len);
    *heads += 1;
    job->peer = in->peer;
    job->data = memory_for(job->head.how, job->head.len);
    if (is_scattered(job->head.how))
        chempi_segment_init(&job->iter, job->data, job->head.len / PIECE,
                            &my.layout);
    return job;
}

static void ask_run(struct chempi_sysmsg_in *in)
{
    struct job *job = job_of(in);

    if (is_scattered(job->head.how))
        (void)chempi_segment_unpack(&job->iter, in->body, (size_t)in->body_len);
    else if (in->body_len)
        memcpy(job->data, in->body, (size_t)in->body_len);
    job->room.arg = job;
    body_done(&job->room, 0, &in->cost);
}

static struct chempi_sysmsg_room *ask_begin(struct chempi_sysmsg_in *in)
{
    struct job *job = job_of(in);

    CHECK(!in->body, "a body in begin()");
    if (job->head.how & UNWANTED) {
        my.unwanted++;
        free(job->data);
        free(job);
        return NULL;
    }
    job->room.buf = is_scattered(job->head.how) ? NULL : job->data;
    job->room.iter = is_scattered(job->head.how) ? &job->iter : NULL;
    job->room.is_ordered = job->head.how & ORDERED;
    job->room.done = body_done;
    job->room.arg = job;
    return &job->room;
}

/* ---- the asking side ---- */

static void answered(struct op *op)
{
    op->is_answered = true;
    my.answers++;
    CHECK(op->len == 0 || memcmp(op->data, op->back, op->len) == 0 ||
              is_right(op->back, SCATTERED, op->number, op->len),
          "the answer to %u is wrong", op->number);
}

static void back_done(struct chempi_sysmsg_room *room, int status,
                      uint32_t *cost)
{
    CHECK(status == 0 && *cost == 0, "an answer's body: %d", status);
    answered(room->arg);
}

static struct op *op_of(struct chempi_sysmsg_in *in)
{
    struct head head;
    struct op *op;

    memcpy(&head, in->head, sizeof(head));
    op = head.op;
    CHECK(op->number == head.number && op->len == in->body_len,
          "an answer to another request");
    CHECK(in->cost == 0, "an answer costs quota");
    return op;
}

static void answer_run(struct chempi_sysmsg_in *in)
{
    struct op *op = op_of(in);

    if (op->msg.iter)
        (void)chempi_segment_unpack(&op->in, in->body, (size_t)in->body_len);
    else if (in->body_len)
        memcpy(op->back, in->body, (size_t)in->body_len);
    answered(op);
}

static struct chempi_sysmsg_room *answer_begin(struct chempi_sysmsg_in *in)
{
    struct op *op = op_of(in);

    op->room.buf = op->msg.iter ? NULL : op->back;
    op->room.iter = op->msg.iter ? &op->in : NULL;
    op->room.done = back_done;
    op->room.arg = op;
    return &op->room;
}

static void op_sent(struct chempi_sysmsg *msg, int status)
{
    struct op *op = msg->arg;

    CHECK(status == 0, "request to %u: %d", msg->peer->proc, status);
    CHECK(!op->is_sent, "sent twice");
    op->is_sent = true;
    my.done++;
}

static struct op *ask(uint32_t to, uint32_t number, uint32_t how, uint64_t len)
{
    struct op *op = calloc(1, sizeof(*op));
    struct head head = {.number = number, .how = how, .len = len, .op = op};

    op->number = number;
    op->len = len;
    op->data = memory_for(how, len);
    op->back = memory_for(how, len);
    for (uint64_t i = 0; i < len; i++)
        op->data[place_of(how, i)] = byte_of(number, i);
    if (is_scattered(how)) {
        chempi_segment_init(&op->out, op->data, len / PIECE, &my.layout);
        chempi_segment_init(&op->in, op->back, len / PIECE, &my.layout);
        op->msg.iter = &op->out;
    } else {
        op->msg.body = op->data;
    }
    op->msg.peer = chempi_conn_peer(&chempi_lane_main, to);
    op->msg.tag = TAG_ASK;
    op->msg.head_len = sizeof(head);
    memcpy(op->msg.head, &head, sizeof(head));
    op->msg.body_len = len;
    op->msg.done = op_sent;
    op->msg.arg = op;
    op->is_answered = !(how & ECHO);
    chempi_lane_lock(&chempi_lane_main);
    CHECK(chempi_sysmsg_send(&op->msg) == 0, "no memory");
    CHECK(!op->is_sent, "done() before send() returns");
    chempi_engine_settle(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
    return op;
}

static bool is_over(void *arg)
{
    const struct op *op = arg;

    return op->is_sent && op->is_answered;
}

static void finish(struct op *op)
{
    (void)chempi_progress_wait(is_over, op);
    free(op->data);
    free(op->back);
    free(op);
}

/* ---- what is tested ---- */

static const uint64_t lens[] = {
    0,     4,     8,     52,    64,    1000,  4096,  8192,   12288,  16000,
    16328, 16360, 16384, 20000, 32768, 65536, 65480, 131072, 300000, 1u << 20};

enum { LENS = sizeof(lens) / sizeof(lens[0]), MESSAGE = 7 };

/* Everybody asks everybody, and sends an ordinary message behind each. */
static void rounds(int count)
{
    const int size = check_size();
    uint32_t number = 0;

    for (int round = 0; round < count; round++) {
        struct op *ops[RANKS_MAX][LENS];
        MPI_Request requests[RANKS_MAX][LENS];
        int texts[RANKS_MAX][LENS];

        for (int i = 0; i < LENS; i++, number++) {
            const uint32_t how =
                (number % 5 ? ECHO : 0) | (number % 3 ? 0 : SCATTERED) |
                (number % 2 ? ORDERED : 0) |
                (number % 5 == 0 && lens[i] > 300000 ? UNWANTED : 0);

            for (int to = 0; to < size; to++) {
                ops[to][i] =
                    ask((uint32_t)to, number, how, lens[i] / PIECE * PIECE);
                texts[to][i] = (int)number;
                MPI_Isend(&texts[to][i], 1, MPI_INT, to, MESSAGE,
                          MPI_COMM_WORLD, &requests[to][i]);
            }
        }
        for (int i = 0; i < LENS; i++) {
            for (int from = 0; from < size; from++) {
                int text = -1;

                MPI_Recv(&text, 1, MPI_INT, from, MESSAGE, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
                CHECK(text == round * LENS + i, "message %d, not %d", text,
                      round * LENS + i);
            }
        }
        for (int to = 0; to < size; to++) {
            for (int i = 0; i < LENS; i++)
                finish(ops[to][i]);
            MPI_Waitall(LENS, requests[to], MPI_STATUSES_IGNORE);
        }
    }
}

static uint64_t count_waiting(void)
{
    uint64_t count;

    chempi_lane_lock(&chempi_lane_main);
    count = chempi_sysmsg_waiting_count(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
    return count;
}

/* More requests than the quota allows, each answered, in all directions. */
static void flood(uint32_t first, uint32_t count)
{
    const uint32_t size = (uint32_t)check_size();
    const uint64_t quota = chempi_setting(CHEMPI_SET_SYSMSG_QUOTA);
    struct op **ops = calloc((size_t)count * size, sizeof(struct op *));
    uint64_t waited = 0;
    uint64_t now;

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t to = 0; to < size; to++) {
            ops[i * size + to] = ask(to, first + i, ECHO, FLOOD_BODY);
            now = count_waiting();
            waited = now > waited ? now : waited;
        }
    }
    for (uint32_t i = 0; i < count * size; i++)
        finish(ops[i]);
    free(ops);
    CHECK((uint64_t)count * FLOOD_BODY <= quota || waited > 0,
          "nothing has waited for quota");
    CHECK(count_waiting() == 0, "some still wait");
    chempi_lane_lock(&chempi_lane_main);
    CHECK(my.kept_max <= quota * size, "%llu bytes of requests were kept",
          (unsigned long long)my.kept_max);
    chempi_lane_unlock(&chempi_lane_main);
}

static const struct chempi_sysmsg_handler ask_handler = {
    sizeof(struct head), sizeof(struct head), ask_run, ask_begin, false};
static const struct chempi_sysmsg_handler answer_handler = {
    sizeof(struct head), sizeof(struct head), answer_run, answer_begin, false};

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 3;

    check_start(&argc, &argv);
    if (check_size() > RANKS_MAX)
        check_skip("too many ranks");
    my.layout = (struct chempi_layout){PIECE, (int64_t)3 * PIECE,
                                       chempi_layout_block(0, PIECE)};
    chempi_sysmsg_register(TAG_ASK, &ask_handler);
    chempi_sysmsg_register(TAG_ANSWER, &answer_handler);
    MPI_Barrier(MPI_COMM_WORLD);
    /* what has no handler is ignored */
    chempi_lane_lock(&chempi_lane_main);
    CHECK(chempi_sysmsg_post(chempi_conn_peer(&chempi_lane_main, 0),
                             TAG_UNKNOWN, "abc", 3) == 0,
          "no memory");
    chempi_lane_unlock(&chempi_lane_main);
    rounds(count);
    flood((uint32_t)count * LENS, argc > 2 ? (uint32_t)atoi(argv[2]) : 6000);
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish();
}
