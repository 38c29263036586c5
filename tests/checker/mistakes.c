/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that use MPI wrongly, one a function. The file `sentences` says what
 * each must be told; places there name marks here, which stand before lines.
 */
#include "mistakes.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank;
int size;

/* ---- collective operations ---- */

static void differing_calls(void)
{
    int value = 0;

    if (rank == 0)
        /* @calls0 */
        MPI_Bcast(&value, 1, MPI_INT, 0, world);
    else
        /* @calls1 */
        MPI_Barrier(world);
}

static void differing_order(void)
{
    MPI_Request requests[2];
    int value = 0;
    int sum = 0;

    if (rank == 2) {
        /* @order2 */
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, world, &requests[0]);
        MPI_Ibarrier(world, &requests[1]);
    } else {
        /* @order0 */
        MPI_Ibarrier(world, &requests[0]);
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, world, &requests[1]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* The root's two are over when they have started. */
static void differing_first(void)
{
    MPI_Request requests[2];
    double values[4] = {0};

    MPI_Barrier(world);
    /* @first-types */
    MPI_Ibcast(values, 2, rank ? MPI_LONG : MPI_DOUBLE, 0, world, &requests[0]);
    MPI_Ibcast(values + 2, 2, MPI_DOUBLE, 0, world, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void differing_roots(void)
{
    int value = rank;

    /* @roots */
    MPI_Bcast(&value, 1, MPI_INT, rank == 1, world);
}

static void differing_operations(void)
{
    double in = 1;
    double out = 0;

    /* @ops */
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, rank ? MPI_SUM : MPI_MAX, world);
}

static void differing_types(void)
{
    double values[4] = {0};

    /* @types */
    MPI_Bcast(values, rank ? 4 : 2, rank ? MPI_FLOAT : MPI_DOUBLE, 0, world);
}

static void differing_counts(void)
{
    int mine[2] = {0};
    int all[8] = {0};

    /* @counts */
    MPI_Gather(mine, rank == 1 ? 2 : 1, MPI_INT, all, 1, MPI_INT, 0, world);
}

static void differing_vectors(void)
{
    const int counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int at[8] = {0, 2, 4, 6, 8, 10, 12, 14};
    int mine[2] = {0};
    int all[16] = {0};

    /* @vectors */
    MPI_Gatherv(mine, rank == 1 ? 2 : 1, MPI_INT, all, counts, at, MPI_INT, 0,
                world);
}

static void one_too_few(void)
{
    if (rank)
        /* @few */
        MPI_Barrier(world);
}

/* ---- messages ---- */

static void mismatched_message(void)
{
    float values[3] = {0};

    if (rank == 0)
        /* @message-send */
        MPI_Send(values, 3, MPI_FLOAT, 1, 7, world);
    else
        /* @message */
        MPI_Recv(values, 3, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE);
}

/* The sender is in no call when it is asked. */
static void busy_sender(void)
{
    float values[3] = {0};
    MPI_Request request;

    if (rank == 0) {
        MPI_Isend(values, 3, MPI_FLOAT, 1, 7, world, &request);
        for (volatile int i = 0; i >= 0; i ^= 1)
            continue;
    } else {
        /* @busy */
        MPI_Recv(values, 3, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE);
    }
}

static void lost_sender(void)
{
    float values[3] = {0};
    MPI_Request request;

    if (rank == 0) {
        MPI_Isend(values, 3, MPI_FLOAT, 1, 7, world, &request);
        MPI_Recv(NULL, 0, MPI_INT, 1, 8, world, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    } else {
        MPI_Probe(0, 7, world, MPI_STATUS_IGNORE);
        MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
        MPI_Send(NULL, 0, MPI_INT, 0, 8, world);
        MPI_Recv(NULL, 0, MPI_INT, 0, 9, world, MPI_STATUS_IGNORE);
        MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
        /* @orphan */
        MPI_Recv(values, 3, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE);
    }
}

static void truncated_message(void)
{
    int values[4] = {0};

    if (rank == 0)
        /* @truncated-send */
        MPI_Send(values, 4, MPI_INT, 1, 8, world);
    else
        /* @truncated */
        MPI_Recv(values, 3, MPI_INT, 0, 8, world, MPI_STATUS_IGNORE);
}

static void lost_message(void)
{
    int value = 1;

    if (rank == 0)
        /* @lost */
        MPI_Send(&value, 1, MPI_INT, 1, 9, world);
}

/* The second message proves that the first one has come. */
static void left_message(void)
{
    int value = 1;

    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 9, world);
        MPI_Send(&value, 1, MPI_INT, 1, 10, world);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 10, world, MPI_STATUS_IGNORE);
    }
}

/* ---- buffers ---- */

static void changed_send(void)
{
    MPI_Request request;
    int values[100] = {0};

    if (rank == 0) {
        /* @changed */
        MPI_Isend(values, 100, MPI_INT, 1, 0, world, &request);
        values[99] = 1;
        /* @changed-wait */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(values, 100, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
    }
}

static void overlapping_receives(void)
{
    MPI_Request requests[2];
    int values[15] = {0};

    if (rank == 0) {
        MPI_Send(values, 10, MPI_INT, 1, 1, world);
        MPI_Send(values, 10, MPI_INT, 1, 2, world);
    } else {
        /* @first */
        MPI_Irecv(values, 10, MPI_INT, 0, 1, world, &requests[0]);
        /* @second */
        MPI_Irecv(values + 5, 10, MPI_INT, 0, 2, world, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void overlapping_sendrecv(void)
{
    int values[9] = {0};
    const int peer = rank ^ 1;

    /* @sendrecv */
    MPI_Sendrecv(values, 5, MPI_INT, peer, 0, values + 4, 5, MPI_INT, peer, 0,
                 world, MPI_STATUS_IGNORE);
}

static void receive_into_send(void)
{
    MPI_Request request;
    int value = 1;

    /* @isend */
    MPI_Isend(&value, 1, MPI_INT, rank ^ 1, 0, world, &request);
    /* @recv */
    MPI_Recv(&value, 1, MPI_INT, rank ^ 1, 0, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- never freed ---- */

static void lost_request(void)
{
    static int value;
    MPI_Request request;

    /* @request */
    MPI_Irecv(&value, 1, MPI_INT, rank ^ 1, 0, world, &request);
    MPI_Send(&rank, 1, MPI_INT, rank ^ 1, 0, world);
}

static void lost_objects(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Win win;
    MPI_File file;
    void *base;

    /* @comm */
    MPI_Comm_dup(world, &comm);
    /* @type */
    MPI_Type_contiguous(3, MPI_INT, &type);
    /* @win */
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, &base, &win);
    /* @file */
    MPI_File_open(world, "lost",
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
}

static MPI_Datatype late_type;
static MPI_Comm late_comm;

/* As libraries do: MPI_Finalize deletes the attribute first. */
static int free_late(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm;
    (void)value;
    (void)state;
    MPI_Type_free(&late_type);
    MPI_Comm_free(&late_comm);
    return MPI_Comm_free_keyval(&keyval);
}

static void freed_at_the_end(void)
{
    int keyval;

    MPI_Comm_dup(world, &late_comm);
    MPI_Type_contiguous(3, MPI_INT, &late_type);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_late, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
}

/* ---- errors that nobody looks at ---- */

static void unopened_file(void)
{
    MPI_File file;

    /* @open */
    MPI_File_open(world, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL,
                  &file);
    /* @read */
    MPI_File_read(file, &file, 0, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* ---- deadlocks ---- */

static void deadlock(void)
{
    int value = 0;

    /* @deadlock */
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 3, world,
             MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, (rank + size - 1) % size, 3, world);
}

static void unbuffered(void)
{
    int value = 0;

    /* @unbuffered */
    MPI_Send(&value, 1, MPI_INT, rank ^ 1, 4, world);
    MPI_Recv(&value, 1, MPI_INT, rank ^ 1, 4, world, MPI_STATUS_IGNORE);
}

static void test_until_it_comes(void)
{
    MPI_Request request;
    int value = 0;
    int flag = 0;

    MPI_Irecv(&value, 1, MPI_INT, 0, 5, world, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

/* Two ranks are in it; the others go on. */
static void deadlock_of_two(void)
{
    int value = 0;

    if (rank < 2)
        /* @ring */
        MPI_Ssend(&value, 1, MPI_INT, rank ^ 1, 4, world);
    else
        test_until_it_comes();
}

static void never_sent(void)
{
    MPI_Request request;
    int value = 0;

    if (rank == 1) {
        MPI_Irecv(&value, 1, MPI_INT, 0, 5, world, &request);
        /* @never */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* One has come to its end, another one waits for it, and the rest goes on. */
static void early_end(void)
{
    int value = 0;

    if (rank == 1)
        /* @early */
        MPI_Recv(&value, 1, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
    else if (rank == 2)
        test_until_it_comes();
}

/* One waits for an operation that the other has not begun. */
static void never_joined(void)
{
    MPI_Request request;
    int value = 0;

    if (rank == 0)
        /* @apart */
        MPI_Recv(&value, 1, MPI_INT, 1, 5, world, MPI_STATUS_IGNORE);
    MPI_Ibarrier(world, &request);
    /* @joined */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void from_anybody(void)
{
    int value = 0;

    /* @anybody */
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world,
             MPI_STATUS_IGNORE);
}

/* ---- what looks like one ---- */

void compute(void)
{
    const double end = MPI_Wtime() + 2;
    volatile int value = 0;

    while (MPI_Wtime() < end)
        value++;
}

/* All wait, some of them for any rank, while one computes; then for one that
 * waits for a lock, the holder of which computes. */
static void patient(void)
{
    MPI_Win win;
    int *base;
    int value = 0;
    int flag = 0;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, world, &base,
                     &win);
    if (rank == 0) {
        compute();
        for (int i = 1; i < size; i++)
            MPI_Send(&value, 1, MPI_INT, i, 0, world);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Send(&value, 1, MPI_INT, 2, 1, world);
        compute();
        MPI_Win_unlock(1, win);
    } else if (rank == 1) {
        while (!flag)
            MPI_Iprobe(0, 0, world, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 2, 2, world, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, world,
                 MPI_STATUS_IGNORE);
    }
    if (rank == 2) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Win_unlock(1, win);
        MPI_Send(&value, 1, MPI_INT, 1, 2, world);
    }
    MPI_Win_free(&win);
}

static void *send_later(void *arg)
{
    compute();
    MPI_Send(arg, 1, MPI_INT, rank, 0, world);
    return NULL;
}

/* Every rank waits for itself, and another thread of it helps. */
static void helped(void)
{
    pthread_t thread;
    int sent = 1;
    int value = 0;

    pthread_create(&thread, NULL, send_later, &sent);
    MPI_Recv(&value, 1, MPI_INT, rank, 0, world, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
}

/* ---- arguments ---- */

static void bad_rank(void)
{
    int value = 0;

    if (rank == 0)
        /* @rank */
        MPI_Send(&value, 1, MPI_INT, 5, 3, world);
    MPI_Barrier(world);
}

static void bad_tag(void)
{
    int value = 0;

    if (rank == 0)
        /* @tag */
        MPI_Send(&value, 1, MPI_INT, 1, -3, world);
    MPI_Barrier(world);
}

/* A key that is not there, with a sign for terminals, and is long. */
static void missing_key(void)
{
    MPI_Info info;

    MPI_Info_create(&info);
    if (rank == 0)
        MPI_Info_delete(info,
                        "colour\033of-the-cat-that-sits-on-the-mat-in-the-"
                        "hall-of-the-old-house-on-the-hill");
    MPI_Info_free(&info);
    MPI_Barrier(world);
}

static void freed_handle(void)
{
    MPI_Comm comm;
    MPI_Comm copy;

    MPI_Comm_dup(world, &comm);
    copy = comm;
    MPI_Comm_free(&comm);
    /* @freed */
    MPI_Comm_size(copy, &size);
}

/* ---- crashes ---- */

__attribute__((noinline)) static void touch(volatile int *where)
{
    *where = 1;
}

static void crash(void)
{
    if (rank == 1)
        touch((volatile int *)8);
    MPI_Barrier(world);
}

static void handler(int number)
{
    (void)number;
    fprintf(stderr, "the program's own handler\n");
    _Exit(3);
}

static void crash_with_handler(void)
{
    signal(SIGSEGV, handler);
    crash();
}

static void given_up(void)
{
    if (rank == 1)
        abort();
    MPI_Barrier(world);
}

/* ---- nothing wrong ---- */

static void right(void)
{
    struct {
        int a;
        double b;
    } mixed[2] = {{0}};
    const int lens[] = {1, 1};
    const MPI_Aint places[] = {0, (char *)&mixed[0].b - (char *)&mixed[0]};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Request requests[3];
    MPI_Datatype plain;
    MPI_Datatype type;
    int counts[8];
    int at[8];
    int in[8] = {0};
    int out[8] = {0};
    int sum = 0;

    for (int i = 0; i < 8; i++) {
        counts[i] = 1;
        at[i] = i;
    }
    MPI_Type_create_struct(2, lens, places, types, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(mixed[0]), &type);
    MPI_Type_free(&plain);
    MPI_Type_commit(&type);
    MPI_Irecv(mixed, 2, type, rank ^ 1, 1, world, &requests[0]);
    MPI_Isend(in, 1, MPI_INT32_T, rank ^ 1, 2, world, &requests[1]);
    MPI_Send(mixed + 1, 1, type, rank ^ 1, 1, world);
    MPI_Recv(out, 2, MPI_INT, rank ^ 1, 2, world, MPI_STATUS_IGNORE);
    MPI_Ibarrier(world, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Bcast(in, 4, rank ? MPI_INT : MPI_BYTE, 0, MPI_COMM_SELF);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
    MPI_Gather(rank ? in : MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0, world);
    MPI_Allgatherv(in, 1, MPI_INT, out, counts, at, MPI_INT, world);
    MPI_Scatterv(in, counts, at, MPI_INT, out, 1, MPI_INT, 1, world);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 1, MPI_INT, world);
    MPI_Type_free(&type);
}

/* ---- those that are over when they have started ----
 * Where a blocking one has given the communicator memory of the node before. */

static int many[16];

static void start_broadcasts(MPI_Request requests[2])
{
    MPI_Ibcast(many, 1, MPI_INT, 0, world, &requests[0]);
    MPI_Ibcast(many + 1, 1, MPI_INT, 0, world, &requests[1]);
}

static void start_gathers(MPI_Request requests[2])
{
    MPI_Igather(&rank, 1, MPI_INT, many, 1, MPI_INT, 0, world, &requests[0]);
    MPI_Igather(&rank, 1, MPI_INT, many + 8, 1, MPI_INT, 0, world,
                &requests[1]);
}

static void end_by_waitall(MPI_Request requests[2])
{
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void end_by_testall(MPI_Request requests[2])
{
    int flag = 0;

    while (!flag)
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
}

static void end_by_some(MPI_Request requests[2])
{
    int indices[2];
    int done = 0;

    while (done != MPI_UNDEFINED)
        MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
}

static void end_by_testsome(MPI_Request requests[2])
{
    int indices[2];
    int done = 0;

    while (done != MPI_UNDEFINED)
        MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
}

static void end_by_any(MPI_Request requests[2])
{
    int flag = 0;
    int i;

    MPI_Waitany(2, requests, &i, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Testany(2, requests, &i, &flag, MPI_STATUS_IGNORE);
}

static void end_one_by_one(MPI_Request requests[2])
{
    int flag = 0;

    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
}

static void two_at_once(void (*end)(MPI_Request requests[2]))
{
    MPI_Request requests[2];

    MPI_Barrier(world);
    start_broadcasts(requests);
    end(requests);
    start_gathers(requests);
    end(requests);
}

static void over_by_waitall(void)
{
    two_at_once(end_by_waitall);
}

static void over_by_testall(void)
{
    two_at_once(end_by_testall);
}

static void over_by_some(void)
{
    two_at_once(end_by_some);
    two_at_once(end_by_testsome);
}

static void over_by_any(void)
{
    two_at_once(end_by_any);
    two_at_once(end_one_by_one);
}

enum { TURNS = 200 };

/* On a communicator of the thread's own. */
static void *broadcast_often(void *arg)
{
    MPI_Comm *comm = arg;
    MPI_Request requests[2];
    int values[2] = {0};

    MPI_Barrier(*comm);
    for (int i = 0; i < TURNS; i++) {
        MPI_Ibcast(values, 1, MPI_INT, 0, *comm, &requests[0]);
        MPI_Ibcast(values + 1, 1, MPI_INT, 0, *comm, &requests[1]);
        (i % 2 ? end_by_waitall : end_by_any)(requests);
    }
    return NULL;
}

static void over_in_threads(void)
{
    MPI_Comm comms[2];
    pthread_t thread;

    MPI_Comm_dup(world, &comms[0]);
    MPI_Comm_dup(world, &comms[1]);
    pthread_create(&thread, NULL, broadcast_often, &comms[1]);
    broadcast_often(&comms[0]);
    pthread_join(thread, NULL);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool has_threads;
} programs[] = {
    {"differing_calls", differing_calls},
    {"differing_order", differing_order},
    {"differing_first", differing_first},
    {"differing_roots", differing_roots},
    {"differing_operations", differing_operations},
    {"differing_types", differing_types},
    {"differing_counts", differing_counts},
    {"differing_vectors", differing_vectors},
    {"one_too_few", one_too_few},
    {"mismatched_message", mismatched_message},
    {"busy_sender", busy_sender},
    {"lost_sender", lost_sender},
    {"truncated_message", truncated_message},
    {"lost_message", lost_message},
    {"left_message", left_message},
    {"changed_send", changed_send},
    {"overlapping_receives", overlapping_receives},
    {"overlapping_sendrecv", overlapping_sendrecv},
    {"receive_into_send", receive_into_send},
    {"lost_request", lost_request},
    {"lost_objects", lost_objects},
    {"freed_at_the_end", freed_at_the_end},
    {"unopened_file", unopened_file},
    {"deadlock", deadlock},
    {"unbuffered", unbuffered},
    {"deadlock_of_two", deadlock_of_two},
    {"never_sent", never_sent},
    {"early_end", early_end},
    {"never_joined", never_joined},
    {"from_anybody", from_anybody},
    {"patient", patient},
    {"helped", helped, true},
    {"put_against_fence", put_against_fence},
    {"add_against_post", add_against_post},
    {"unchecked_start", unchecked_start},
    {"store_before_fence", store_before_fence},
    {"store_before_post", store_before_post},
    {"differing_fences", differing_fences},
    {"fence_and_free", fence_and_free},
    {"differing_sizes", differing_sizes},
    {"differing_accumulates", differing_accumulates},
    {"add_of_newest", add_of_newest},
    {"add_of_another", add_of_another},
    {"forgotten_promise", forgotten_promise},
    {"exclusive_turns", exclusive_turns},
    {"adding_threads", adding_threads, true},
    {"queried_memory", queried_memory},
    {"two_windows", two_windows},
    {"changed_promise", changed_promise},
    {"other_elements", other_elements},
    {"kept_promises", kept_promises},
    {"bad_rank", bad_rank},
    {"bad_tag", bad_tag},
    {"missing_key", missing_key},
    {"freed_handle", freed_handle},
    {"crash", crash},
    {"crash_with_handler", crash_with_handler},
    {"given_up", given_up},
    {"right", right},
    {"over_by_waitall", over_by_waitall},
    {"over_by_testall", over_by_testall},
    {"over_by_some", over_by_some},
    {"over_by_any", over_by_any},
    {"over_in_threads", over_in_threads, true},
};

int main(int argc, char **argv)
{
    const size_t count = sizeof(programs) / sizeof(programs[0]);
    size_t i = 0;
    int level;

    while (i < count && (argc < 2 || strcmp(argv[1], programs[i].name) != 0))
        i++;
    MPI_Init_thread(&argc, &argv,
                    i < count && programs[i].has_threads ? MPI_THREAD_MULTIPLE
                                                         : MPI_THREAD_SINGLE,
                    &level);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    if (i < count)
        programs[i].run();
    /* @finalize */
    MPI_Finalize();
    return 0;
}
