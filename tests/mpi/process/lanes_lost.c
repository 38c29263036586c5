/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank ends while threads of the others wait for it, each over a communicator
 * of its own, in every way to wait: each gets MPI_ERR_PROC_ABORTED, none hangs,
 * and the survivors go on over the communicators that there are and make new
 * ones. With "asleep" it ends when all that can sleep do; with "after", when
 * the others have heard of it in another communicator before they wait.
 *
 * usage: lanes_lost at-once|asleep|after [killed|exits [fatal]]
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READY = 1, NEVER, AGAIN, NEW };
enum { LOOKS = 20 }; /* in turn, at threads that all sleep */
enum { EXITS_WITH = 5 };
#define LARGE (8 << 20)

static struct {
    int victim;
    int other; /* survivor */
    bool is_late;
    bool is_after;
    pthread_barrier_t heard;
    atomic_int handled;
} my;

static char large[LARGE];
static char received[LARGE];

/* ---- ways to wait ---- */

struct wait {
    MPI_Comm comm;
    MPI_Comm second; /* of another thread: nothing comes there */
    MPI_Request early;
    char byte;
    int rc;
};

static void receive(struct wait *w)
{
    char byte;

    w->rc = MPI_Recv(&byte, 1, MPI_BYTE, my.victim, NEVER, w->comm,
                     MPI_STATUS_IGNORE);
}

/* It ends if it was there before: another rank may send. So it is there before
 * the victim may end, which awaits the call itself only if it ends late. */
static void post_any(struct wait *w)
{
    if (!my.is_late)
        w->rc = MPI_Irecv(&w->byte, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                          w->comm, &w->early);
}

static void receive_any(struct wait *w)
{
    if (my.is_late)
        w->rc = MPI_Recv(&w->byte, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                         w->comm, MPI_STATUS_IGNORE);
    else if (w->rc == MPI_SUCCESS)
        w->rc = MPI_Wait(&w->early, MPI_STATUS_IGNORE);
}

static void send_sync(struct wait *w)
{
    w->rc = MPI_Ssend(large, 1, MPI_BYTE, my.victim, NEVER, w->comm);
}

static void send_large(struct wait *w)
{
    w->rc = MPI_Send(large, LARGE, MPI_BYTE, my.victim, NEVER, w->comm);
}

static void probe(struct wait *w)
{
    w->rc = MPI_Probe(my.victim, NEVER, w->comm, MPI_STATUS_IGNORE);
}

static void probe_matched(struct wait *w)
{
    MPI_Message message;

    w->rc = MPI_Mprobe(my.victim, NEVER, w->comm, &message, MPI_STATUS_IGNORE);
}

/* Of one communicator, and of several. */
static void wait_any_of(struct wait *w, MPI_Comm second)
{
    MPI_Request requests[3];
    char bytes[3];
    int index = -1;

    MPI_Irecv(&bytes[0], 1, MPI_BYTE, my.other, NEVER, w->comm, &requests[0]);
    w->rc = MPI_Irecv(&bytes[1], 1, MPI_BYTE, my.victim, NEVER, w->comm,
                      &requests[1]);
    MPI_Irecv(&bytes[2], 1, MPI_BYTE, my.other, NEVER, second, &requests[2]);
    if (w->rc == MPI_SUCCESS) {
        w->rc = MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
        CHECK_OR_DIE(index == 1, "MPI_Waitany: request %d", index);
    }
    for (int i = 0; i < 3; i += 2) {
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
}

static void wait_any(struct wait *w)
{
    wait_any_of(w, w->comm);
}

static void wait_any_apart(struct wait *w)
{
    wait_any_of(w, w->second);
}

static void wait_all(struct wait *w)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    char bytes[2];
    int rc;

    MPI_Irecv(&bytes[0], 1, MPI_BYTE, my.victim, NEVER, w->comm, &requests[0]);
    MPI_Irecv(&bytes[1], 1, MPI_BYTE, my.victim, NEVER, w->second,
              &requests[1]);
    rc = MPI_Waitall(2, requests, statuses);
    CHECK_OR_DIE(rc == MPI_ERR_IN_STATUS || my.is_after, "MPI_Waitall: %d", rc);
    w->rc =
        rc == MPI_ERR_IN_STATUS ? statuses[0].MPI_ERROR : MPI_ERR_PROC_ABORTED;
}

static void test(struct wait *w)
{
    MPI_Request request = MPI_REQUEST_NULL;
    char byte;
    int flag = 0;

    w->rc = MPI_Irecv(&byte, 1, MPI_BYTE, my.victim, NEVER, w->comm, &request);
    while (w->rc == MPI_SUCCESS && !flag)
        w->rc = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void probe_often(struct wait *w)
{
    int flag = 0;

    w->rc = MPI_SUCCESS;
    while (w->rc == MPI_SUCCESS && !flag)
        w->rc = MPI_Iprobe(my.victim, NEVER, w->comm, &flag, MPI_STATUS_IGNORE);
}

static void exchange(struct wait *w)
{
    char byte;

    w->rc =
        MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, &byte, 1, MPI_BYTE,
                     my.victim, NEVER, w->comm, MPI_STATUS_IGNORE);
}

static const struct way {
    const char *name;
    void (*run)(struct wait *w);
    bool is_busy; /* never sleeps */
    /* What begins it, as it does not end when it begins after the loss. */
    void (*post)(struct wait *w);
} ways[] = {
    {.name = "MPI_Recv", .run = receive},
    {.name = "MPI_Recv of any", .run = receive_any, .post = post_any},
    {.name = "MPI_Ssend", .run = send_sync},
    {.name = "MPI_Send of much", .run = send_large},
    {.name = "MPI_Probe", .run = probe},
    {.name = "MPI_Mprobe", .run = probe_matched},
    {.name = "MPI_Waitany", .run = wait_any},
    {.name = "MPI_Waitany of several", .run = wait_any_apart},
    {.name = "MPI_Waitall of several", .run = wait_all},
    {.name = "MPI_Sendrecv", .run = exchange},
    {.name = "MPI_Test", .run = test, .is_busy = true},
    {.name = "MPI_Iprobe", .run = probe_often, .is_busy = true},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* ---- the threads ---- */

static struct thread {
    pthread_t thread;
    struct wait wait;
    pid_t tid;
    bool is_used;
} threads[WAYS];

static void *run(void *arg)
{
    struct thread *t = arg;
    const struct way *way = &ways[t - threads];
    const pid_t tid = (pid_t)syscall(SYS_gettid);

    if (way->post)
        way->post(&t->wait);
    MPI_Send(&tid, 1, MPI_INT, my.victim, READY, t->wait.comm);
    if (my.is_after)
        pthread_barrier_wait(&my.heard);
    way->run(&t->wait);
    CHECK_OR_DIE(check_class(t->wait.rc) == MPI_ERR_PROC_ABORTED,
                 "%s: class %d", way->name, check_class(t->wait.rc));
    return NULL;
}

/* The victim ends when all are about to wait, or sleep. */
_Noreturn static void end(bool exits)
{
    pid_t tids[2][WAYS];
    int looks = 0;

    for (int r = 0; r < my.victim; r++)
        for (int i = 0; i < WAYS; i++)
            if (threads[i].is_used)
                MPI_Recv(&tids[r][i], 1, MPI_INT, r, READY,
                         threads[i].wait.comm, MPI_STATUS_IGNORE);
    while (my.is_late && looks < LOOKS) {
        looks++;
        for (int r = 0; r < my.victim; r++)
            for (int i = 0; i < WAYS; i++)
                if (threads[i].is_used && !check_is_asleep(tids[r][i]))
                    looks = 0;
        (void)sched_yield();
    }
    if (exits)
        exit(EXITS_WITH);
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

/* An error handler may call what it likes: nothing is locked. */
static void handle(MPI_Comm *comm, int *code, ...)
{
    int flag;

    (void)code;
    my.handled++;
    MPI_Iprobe(my.other, AGAIN, *comm, &flag, MPI_STATUS_IGNORE);
    MPI_Iprobe(my.other, AGAIN, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* Over a communicator of two: much and little, both ways at once. */
static void use(MPI_Comm comm, int peer, int tag)
{
    MPI_Request request;
    char byte = 0;

    MPI_Isend(large, LARGE, MPI_BYTE, peer, tag, comm, &request);
    MPI_Probe(peer, tag, comm, MPI_STATUS_IGNORE);
    MPI_Recv(received, LARGE, MPI_BYTE, peer, tag, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(large, 1, MPI_BYTE, peer, tag, &byte, 1, MPI_BYTE, peer, tag,
                 comm, MPI_STATUS_IGNORE);
}

static void go_on(void)
{
    MPI_Group all;
    MPI_Group rest;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &my.victim, &rest);
    for (int i = 0; i < WAYS; i++) {
        MPI_Comm comm;

        if (!threads[i].is_used)
            continue;
        use(threads[i].wait.comm, my.other, AGAIN);
        MPI_Comm_create_group(MPI_COMM_WORLD, rest, i, &comm);
        use(comm, my.other, NEW);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&threads[i].wait.comm);
    }
    MPI_Group_free(&rest);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "at-once";
    const bool exits = argc > 2 && strcmp(argv[2], "exits") == 0;
    const bool is_fatal = argc > 3;
    MPI_Errhandler handler;
    int used = 0;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(check_size() == 3, "3 ranks");
    my.victim = 2;
    my.other = 1 - check_rank();
    my.is_late = strcmp(when, "asleep") == 0;
    my.is_after = strcmp(when, "after") == 0;
    if (!is_fatal)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < WAYS; i++) {
        threads[i].is_used = (!my.is_late || !ways[i].is_busy) &&
                             (!my.is_after || !ways[i].post);
        used += threads[i].is_used;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].wait.comm);
    }
    MPI_Comm_create_errhandler(handle, &handler);
    if (!is_fatal)
        MPI_Comm_set_errhandler(threads[0].wait.comm, handler);
    if (check_rank() == my.victim)
        end(exits);
    pthread_barrier_init(&my.heard, NULL, (unsigned)used + 1);
    for (int i = 0; i < WAYS; i++) {
        threads[i].wait.second = threads[(i + 1) % WAYS].wait.comm;
        if (threads[i].is_used)
            CHECK_OR_DIE(
                pthread_create(&threads[i].thread, NULL, run, &threads[i]) == 0,
                "no thread");
    }
    if (my.is_after) {
        const int class =
            check_class(MPI_Recv(NULL, 0, MPI_BYTE, my.victim, NEVER,
                                 MPI_COMM_WORLD, MPI_STATUS_IGNORE));

        CHECK_OR_DIE(class == MPI_ERR_PROC_ABORTED, "in the world: class %d",
                     class);
        pthread_barrier_wait(&my.heard);
    }
    for (int i = 0; i < WAYS; i++)
        if (threads[i].is_used)
            pthread_join(threads[i].thread, NULL);
    CHECK_OR_DIE(my.handled == 1, "the error handler was called %d times",
                 (int)my.handled);
    pthread_barrier_destroy(&my.heard);
    MPI_Errhandler_free(&handler);
    go_on();
    if (check_rank() == 0)
        printf("the survivors are well\n");
    MPI_Finalize();
    return 0;
}
