/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that hangs, for launchers that say where its ranks wait when they end
 * it. Of eight ranks:
 *
 *   calls    each in another call: 0 MPI_Recv, 1 MPI_Waitall, 2 MPI_Probe,
 *            3 MPI_Ssend; on a communicator of their own, named "grid",
 *            4 and 5 MPI_Barrier, 6 MPI_Recv; 7 MPI_Sendrecv
 *   allreduce  all but the last in MPI_Allreduce, that one in MPI_Recv
 *   roots    each in another call that waits for certain ranks: 0 MPI_Gather,
 *            1 MPI_Scatter, 2 MPI_Bcast, each on a communicator of its own,
 *            3 MPI_Wait for MPI_Ibarrier
 *   bcast    all but the last in MPI_Bcast of more than is taken in advance
 *   alltoall  all but the last in MPI_Alltoall of more than is taken in advance
 *   later    all in MPI_Wait for MPI_Iallgather, but the last, which has
 *            started it and waits outside MPI
 *   finalize  rank 0 in MPI_Finalize, the others in MPI_Barrier
 *   threads  each in MPI_Recv by two threads, tags 1 and 2, from the next one
 *   test     all call MPI_Test for ever
 *   stack    all in MPI_Probe, on a stack of the program's own that ends
 *            behind the call, and whose last frame leads beyond the end
 *   outside  all wait outside MPI
 *
 * usage: where MODE
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_LEN ((size_t)1 << 18)
#define GUARD_LEN ((size_t)1 << 20)

static void receive(int source, int tag, MPI_Comm comm)
{
    int value;

    MPI_Recv(&value, 1, MPI_INT, source, tag, comm, MPI_STATUS_IGNORE);
}

static void wait_for_three(void)
{
    MPI_Request reqs[4];
    int values[3];

    MPI_Isend(NULL, 0, MPI_INT, 0, 99, MPI_COMM_WORLD, &reqs[0]);
    MPI_Irecv(&values[0], 1, MPI_INT, 2, 6, MPI_COMM_WORLD, &reqs[1]);
    MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
              MPI_COMM_WORLD, &reqs[2]);
    MPI_Irecv(&values[2], 1, MPI_INT, 3, 8, MPI_COMM_WORLD, &reqs[3]);
    MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE);
}

static void wait_in_calls(void)
{
    const int rank = check_rank();
    MPI_Comm grid;
    int value = 0;

    check_need(8);
    MPI_Comm_split(MPI_COMM_WORLD, rank >= 4, 0, &grid);
    MPI_Comm_set_name(grid, "grid");
    MPI_Barrier(grid);
    switch (rank) {
    case 0:
        receive(1, 5, MPI_COMM_WORLD);
        break;
    case 1:
        wait_for_three();
        break;
    case 2:
        MPI_Probe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Ssend(&value, 1, MPI_INT, 2, 7, MPI_COMM_WORLD);
        break;
    case 6:
        receive(3, 1, grid);
        break;
    case 7:
        MPI_Sendrecv(NULL, 0, MPI_INT, 0, 3, &value, 1, MPI_INT, 6, 4,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Barrier(grid);
        break;
    }
}

static void wait_in_allreduce(void)
{
    int one = 1;
    int sum = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == check_size() - 1)
        receive(0, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void wait_in_bcast(void)
{
    enum { LEN = 4 << 20 };
    char *data = check_alloc(LEN);

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == check_size() - 1)
        receive(0, 0, MPI_COMM_WORLD);
    else
        MPI_Bcast(data, LEN, MPI_BYTE, 0, MPI_COMM_WORLD);
    free(data);
}

static void wait_in_alltoall(void)
{
    enum { LEN = 1 << 20 };
    char *in = check_alloc((size_t)LEN * (size_t)check_size());
    char *out = check_alloc((size_t)LEN * (size_t)check_size());

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == check_size() - 1)
        receive(0, 0, MPI_COMM_WORLD);
    else
        MPI_Alltoall(in, LEN, MPI_BYTE, out, LEN, MPI_BYTE, MPI_COMM_WORLD);
    free(in);
    free(out);
}

static void wait_for_later(void)
{
    enum { LEN = 1 << 20 };
    char *in = check_alloc(LEN);
    char *out = check_alloc((size_t)LEN * (size_t)check_size());
    MPI_Request req;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallgather(in, LEN, MPI_BYTE, out, LEN, MPI_BYTE, MPI_COMM_WORLD, &req);
    if (check_rank() == check_size() - 1)
        (void)poll(NULL, 0, -1);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    free(in);
    free(out);
}

static void *receive_in_thread(void *tag)
{
    receive((check_rank() + 1) % check_size(), *(int *)tag, MPI_COMM_WORLD);
    return NULL;
}

static void wait_in_threads(void)
{
    int tags[] = {1, 2};
    pthread_t other;

    CHECK_OR_DIE(pthread_create(&other, NULL, receive_in_thread, &tags[1]) == 0,
                 "no thread");
    (void)receive_in_thread(&tags[0]);
    pthread_join(other, NULL);
}

static void wait_for_roots(void)
{
    static const char *const names[] = {"gathering", "scattering", "casting"};
    const int rank = check_rank();
    MPI_Request req;
    MPI_Comm comms[3];
    int values[4] = {0};
    int value = 0;

    check_need(4);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Comm_set_name(comms[i], names[i]);
        MPI_Barrier(comms[i]); /* in the first call all wait for all */
    }
    if (rank == 0)
        MPI_Gather(&value, 1, MPI_INT, values, 1, MPI_INT, 0, comms[0]);
    else if (rank == 1)
        MPI_Scatter(values, 1, MPI_INT, &value, 1, MPI_INT, 0, comms[1]);
    else if (rank == 2)
        MPI_Bcast(&value, 1, MPI_INT, 0, comms[2]);
    MPI_Ibarrier(MPI_COMM_WORLD, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void wait_in_finalize(void)
{
    if (check_rank() == 0)
        MPI_Finalize();
    else
        MPI_Barrier(MPI_COMM_WORLD);
}

static void test_for_ever(void)
{
    MPI_Request req;
    int value;
    int flag = 0;

    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &req);
    while (!flag)
        MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
}

static struct {
    ucontext_t context;
    char *end;    /* of the stack, where the guard begins */
    void *caller; /* an address in a function with a large frame */
} stack;

static __attribute__((noinline)) void probe_there(void)
{
    /* Where frames are kept in this way: the caller's and the way back. */
    void *volatile *frame = __builtin_frame_address(0);

    frame[0] = stack.end + GUARD_LEN / 2;
    frame[1] = stack.caller;
    MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    abort(); /* there is no way back */
}

static __attribute__((noinline)) void note_caller(volatile char *unused)
{
    unused[0] = 1;
    stack.caller = __builtin_return_address(0);
}

static __attribute__((noinline)) void note_large_frame(void)
{
    volatile char large[GUARD_LEN / 2];

    note_caller(large);
    large[1] = 1; /* no tail call */
}

static void probe_on_stack(void)
{
    char *start = mmap(NULL, STACK_LEN + GUARD_LEN, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK_OR_DIE(start != MAP_FAILED, "no stack");
    stack.end = start + STACK_LEN;
    CHECK_OR_DIE(mprotect(stack.end, GUARD_LEN, PROT_NONE) == 0, "no guard");
    note_large_frame();
    CHECK_OR_DIE(getcontext(&stack.context) == 0, "no context");
    stack.context.uc_stack.ss_sp = start;
    stack.context.uc_stack.ss_size = STACK_LEN;
    makecontext(&stack.context, probe_there, 0);
    setcontext(&stack.context);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "threads") == 0)
        check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    else
        check_start(&argc, &argv);
    if (strcmp(mode, "calls") == 0)
        wait_in_calls();
    else if (strcmp(mode, "allreduce") == 0)
        wait_in_allreduce();
    else if (strcmp(mode, "threads") == 0)
        wait_in_threads();
    else if (strcmp(mode, "roots") == 0)
        wait_for_roots();
    else if (strcmp(mode, "bcast") == 0)
        wait_in_bcast();
    else if (strcmp(mode, "alltoall") == 0)
        wait_in_alltoall();
    else if (strcmp(mode, "later") == 0)
        wait_for_later();
    else if (strcmp(mode, "finalize") == 0)
        wait_in_finalize();
    else if (strcmp(mode, "test") == 0)
        test_for_ever();
    else if (strcmp(mode, "stack") == 0)
        probe_on_stack();
    else if (strcmp(mode, "outside") == 0)
        (void)poll(NULL, 0, -1);
    CHECK(false, "mode \"%s\" has come to an end", mode);
    return check_finish();
}
