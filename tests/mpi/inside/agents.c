/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: born when something is owed, not before; serves urgent requests
 * while its process calls nothing of MPI; is not woken when nothing is owed,
 * and off duty when nothing has been for long; and looks rarely at a process
 * that communicates all the time.
 *
 *   inside-agents FOLDER
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "tests/mpi/check.h"

enum {
    TAG_ASK = CHEMPI_SYSMSG_TEST,
    TAG_ANSWER = CHEMPI_SYSMSG_TEST - 1,
    ASKS = 50,
    SMALL = 20, /* ordinary messages, which wait in the ring, and wake nobody */
    LARGE = 1 << 20,
    POSTS = 20,   /* of small messages in a row, which a device may gather */
    SHORT = 3000, /* operations */
    SCANS = 32,   /* which fill a ring */
    SCANNED = 2000,
    SCANNED_LONG = 60000,
    STREAMED = 1 << 16, /* bytes, which are owed */
    WINDOW = 64,
    WINDOWS = 750,
    TURNS = 7
};

static struct {
    const char *folder;
    uint32_t handled;
    uint32_t answers;
} my;

static void name_of(char *name, size_t size, int turn)
{
    (void)snprintf(name, size, "%s/agents-%d", my.folder, turn);
}

static void tell_outside(int turn)
{
    char name[512];
    int fd;

    name_of(name, sizeof(name), turn);
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(int turn)
{
    char name[512];

    name_of(name, sizeof(name), turn);
    while (access(name, F_OK) != 0)
        sched_yield();
}

/* Of another run. */
static void forget_files(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        char name[512];

        name_of(name, sizeof(name), turn);
        (void)unlink(name);
    }
}

static void on_ask(struct chempi_sysmsg_in *in)
{
    my.handled++;
    chempi_sysmsg_answer(in->peer, TAG_ANSWER, NULL, 0);
}

static void on_answer(struct chempi_sysmsg_in *in)
{
    (void)in;
    my.answers++;
}

static void on_sent(struct chempi_sysmsg *msg, int status)
{
    CHECK(status == 0, "a request: %d", status);
    msg->arg = NULL;
}

static bool is_answered(void *arg)
{
    return my.answers == *(const uint32_t *)arg;
}

/* One after the other, so that the agent sleeps in between. */
static void ask(int target)
{
    my.answers = 0;
    for (uint32_t i = 1; i <= ASKS; i++) {
        struct chempi_sysmsg msg = {
            .peer = chempi_conn_peer(&chempi_lane_main, (uint32_t)target),
            .tag = TAG_ASK,
            .is_urgent = true,
            .done = on_sent,
        };

        chempi_lane_lock(&chempi_lane_main);
        CHECK(chempi_sysmsg_send(&msg) == 0, "no memory");
        chempi_engine_settle(&chempi_lane_main);
        chempi_lane_unlock(&chempi_lane_main);
        (void)chempi_progress_wait(is_answered, &i);
    }
}

/* A target that owes service, and is away. */
static void serve(int turn)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_lane_owe(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
    await_outside(turn);
    chempi_lane_lock(&chempi_lane_main);
    CHECK(my.handled == ASKS, "%u requests were handled", my.handled);
    my.handled = 0;
    chempi_lane_repay(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
}

/* Over a network messages that a device keeps are owed in between. */
static void go_off_duty(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    for (int i = 0; i < SHORT; i++) {
        MPI_Request request;

        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(s->local_size == 1 || !s->wakes[s->local_rank].has_agent,
          "others ring for nothing");
}

/* A process goes away in a scan for which there is no room, behind blocking
 * ones that nobody has told it are read. */
static void scan_and_go(int me, int turn)
{
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_wake *other = &s->wakes[1 - s->local_rank];
    static int in[SCANNED_LONG];
    static int out[SCANNED_LONG];
    MPI_Request request;

    MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes rings */
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        while (!(other->bell & CHEMPI_WAKE_AGENT_ASLEEP))
            sched_yield();
    }
    for (int i = 0; i < SCANS; i++)
        MPI_Scan(in, out, SCANNED, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iscan(in, out, SCANNED_LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
              &request);
    if (me == 0) {
        MPI_Send(NULL, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
        await_outside(turn);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (me == 1)
        tell_outside(turn);
}

/* It has been woken for all that was owed so far. */
static void await_rest(void)
{
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_wake *own = &s->wakes[s->local_rank];

    while (chempi_agent_stats().births > 0 &&
           !(own->bell & CHEMPI_WAKE_AGENT_ASLEEP))
        sched_yield();
}

/* Small messages to a process that is away and owes nothing. */
static void stay_asleep(int me, int turn)
{
    struct chempi_agent_stats before;
    struct chempi_agent_stats after;

    MPI_Barrier(MPI_COMM_WORLD);
    await_rest();
    before = chempi_agent_stats();
    if (me == 0) {
        for (int i = 0; i < SMALL; i++)
            MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        tell_outside(turn);
    } else {
        await_outside(turn);
        after = chempi_agent_stats();
        /* One that waits for descriptors learns then that nothing is owed. */
        CHECK(after.wakes - before.wakes <= 1, "%llu wakeups for nothing",
              (unsigned long long)(after.wakes - before.wakes));
        for (int i = 0; i < SMALL; i++) {
            int value;

            MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(value == i, "%d, not %d", value, i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Whoever posts small messages one after the other and then goes away does not
 * keep them. */
static void post_and_go(int me, int turn)
{
    MPI_Request requests[POSTS];
    int values[POSTS];

    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < POSTS; i++) {
        values[i] = i;
        if (me == 0)
            MPI_Isend(&values[i], 1, MPI_INT, 1, 3, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Recv(&values[i], 1, MPI_INT, 0, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(values[i] == i, "%d, not %d", values[i], i);
    }
    if (me == 0) {
        await_outside(turn);
        MPI_Waitall(POSTS, requests, MPI_STATUSES_IGNORE);
    } else {
        tell_outside(turn);
    }
}

static void exchange_large(int me)
{
    char *data = check_alloc(LARGE);
    MPI_Request request;

    if (me == 0)
        MPI_Isend(data, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(data, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
}

/* A pause that ends takes a core from who copies: of 10 ms each, but for those
 * that found the process between two calls. */
static void stream(int me)
{
    char *data = check_alloc(STREAMED);
    MPI_Request requests[WINDOW];
    double start_s = MPI_Wtime();
    uint64_t before = chempi_agent_stats().pauses;
    uint64_t pauses;

    for (int i = 0; i < WINDOWS; i++) {
        for (int k = 0; k < WINDOW; k++)
            if (me == 0)
                MPI_Isend(data, STREAMED, MPI_BYTE, 1, 5, MPI_COMM_WORLD,
                          &requests[k]);
            else
                MPI_Irecv(data, STREAMED, MPI_BYTE, 0, 5, MPI_COMM_WORLD,
                          &requests[k]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    pauses = chempi_agent_stats().pauses - before;
    CHECK((double)pauses <= 30 + (MPI_Wtime() - start_s) * 1e3 / 4,
          "%llu pauses in %g s", (unsigned long long)pauses,
          MPI_Wtime() - start_s);
    free(data);
}

static const struct chempi_sysmsg_handler ask_handler = {0, 0, on_ask, NULL,
                                                         false};
static const struct chempi_sysmsg_handler answer_handler = {0, 0, on_answer,
                                                            NULL, false};

int main(int argc, char **argv)
{
    int me;

    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    my.folder = argv[1];
    me = check_rank();
    chempi_sysmsg_register(TAG_ASK, &ask_handler);
    chempi_sysmsg_register(TAG_ANSWER, &answer_handler);
    if (me == 0)
        forget_files();
    else
        check_watch("chempi_agent_births");
    stay_asleep(me, 0);
    CHECK(chempi_agent_stats().births == 0, "an agent that nobody needs");
    exchange_large(me);
    stay_asleep(me, 1);
    if (me == 0) {
        ask(1);
        tell_outside(2);
    } else {
        serve(2);
        CHECK(check_watched() == 1, "%llu agents", check_watched());
        check_was_used();
    }
    stay_asleep(me, 3);
    post_and_go(me, 4);
    go_off_duty();
    if (me == 0) {
        ask(1);
        tell_outside(5);
    } else {
        serve(5);
    }
    if (chempi_ctx.services.local_size > 1)
        scan_and_go(me, 6);
    if (chempi_ctx.services.local_size > 1)
        stream(me);
    chempi_lane_lock(&chempi_lane_main);
    CHECK(chempi_lane_main.owed == 0, "%u are still owed",
          chempi_lane_main.owed);
    chempi_lane_unlock(&chempi_lane_main);
    return check_finish();
}
