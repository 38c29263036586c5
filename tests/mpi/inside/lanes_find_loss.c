/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device in a lane that is not the first finds that a process is lost, before
 * anybody else knows (chempirun --survive): whatever waits for it, in this lane
 * and in all others, ends with MPI_ERR_PROC_ABORTED, and what comes after it
 * with the device's words, too.
 *
 * usage: lanes_find_loss waiting|calling
 *
 * waiting: a thread that begins to wait finds it; calling: one that does not
 * wait, when the others do
 */
#define _GNU_SOURCE /* kill */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { COMMS = 6, WAYS = 3, READY = 1, NEVER, LARGE = 8 << 20 };

static const char words[] = "the test says so";

static struct {
    MPI_Comm comms[COMMS + 1]; /* the last one is the world */
    struct chempi_lane *lane;  /* of the first one */
    struct chempi_dev_ops ops;
    int (*progress)(struct chempi_dev *dev);
    atomic_bool is_armed;
    atomic_int found;
    atomic_int ready;
} my;

static char large[LARGE];

static int find(struct chempi_dev *dev)
{
    if (my.is_armed && my.found++ == 0)
        dev->params.sink->lost(dev->params.sink_arg, 1, 0, words);
    return my.progress(dev);
}

/* The device that reaches the other process looks as find() does. */
static void change_device(void)
{
    chempi_lane_lock(my.lane);
    for (uint32_t i = 0; i < chempi_conn_device_count(my.lane); i++) {
        struct chempi_dev *dev = chempi_conn_device(my.lane, i);

        if (dev->caps->flags & CHEMPI_DEV_SELF)
            continue;
        my.ops = *dev->ops;
        my.progress = dev->ops->progress;
        my.ops.progress = find;
        dev->ops = &my.ops;
    }
    chempi_lane_unlock(my.lane);
    CHECK_OR_DIE(my.progress, "no such device");
}

struct waiter {
    pthread_t thread;
    MPI_Comm comm;
    int way;
};

static void *await(void *arg)
{
    const struct waiter *w = arg;
    int rc;

    my.ready++;
    if (w->way == 0)
        rc = MPI_Recv(large, 1, MPI_BYTE, 1, NEVER, w->comm, MPI_STATUS_IGNORE);
    else if (w->way == 1)
        rc = MPI_Probe(1, NEVER, w->comm, MPI_STATUS_IGNORE);
    else
        rc = MPI_Send(large, LARGE, MPI_BYTE, 1, NEVER, w->comm);
    CHECK_OR_DIE(check_class(rc) == MPI_ERR_PROC_ABORTED, "way %d: class %d",
                 w->way, check_class(rc));
    return NULL;
}

/* Whoever asks later is told what the device said. */
static void ask(MPI_Comm comm)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    int rc = MPI_Recv(NULL, 0, MPI_BYTE, 1, NEVER, comm, MPI_STATUS_IGNORE);

    if (rc != MPI_SUCCESS)
        MPI_Error_string(rc, text, &len);
    CHECK_OR_DIE(check_class(rc) == MPI_ERR_PROC_ABORTED && strstr(text, words),
                 "class %d, %s", check_class(rc), text);
}

static void run(bool is_waiting)
{
    struct waiter waiters[(COMMS + 1) * WAYS];
    int n = 0;

    my.is_armed = is_waiting;
    for (int i = 0; i <= COMMS; i++)
        for (int way = 0; way < WAYS; way++) {
            struct waiter *w = &waiters[n++];

            w->comm = my.comms[i];
            w->way = way;
            CHECK_OR_DIE(pthread_create(&w->thread, NULL, await, w) == 0,
                         "no thread");
        }
    while (!is_waiting && my.found == 0) {
        int flag;

        my.is_armed = my.ready == n;
        MPI_Iprobe(0, NEVER, my.comms[0], &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < n; i++)
        pthread_join(waiters[i].thread, NULL);
}

int main(int argc, char **argv)
{
    unsigned lanes = 0;
    pid_t pid = getpid();

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &my.comms[i]);
        lanes |= 1u << chempi_comm_lookup(my.comms[i])->lane->number;
    }
    my.comms[COMMS] = MPI_COMM_WORLD;
    CHECK_OR_DIE(lanes == 6, "lanes %x", lanes);
    if (check_rank() == 1) {
        MPI_Send(&pid, 1, MPI_INT, 0, READY, MPI_COMM_WORLD);
        for (;;)
            (void)pause();
    }
    MPI_Recv(&pid, 1, MPI_INT, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    my.lane = chempi_comm_lookup(my.comms[0])->lane;
    change_device();
    run(strcmp(argv[argc - 1], "waiting") == 0);
    for (int i = 0; i <= COMMS; i++)
        ask(my.comms[i]);
    (void)kill(pid, SIGKILL); /* the device was right */
    puts("all have heard of it");
    MPI_Finalize();
    return 0;
}
