/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that send and receive over communicators of their own beside others
 * that use windows, files, collective operations and sessions, or make and free
 * communicators of every kind; sets of requests of all of these.
 *
 * usage: lanes_beside FOLDER [rounds]
 */
#include "check.h"

enum { TAG = 3, LONG = 200000, COMMS = 3 };

static struct {
    const char *folder;
    int rounds;
    int up; /* rank */
    int down;
} my;

static int next_of(MPI_Comm comm, int step)
{
    int rank;
    int size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return (rank + size + step) % size;
}

/* A number to the next rank of a communicator, and from the one before. */
static void use(MPI_Comm comm, int value)
{
    MPI_Request request;
    int got = -1;

    MPI_Isend(&value, 1, MPI_INT, next_of(comm, 1), TAG, comm, &request);
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == value, "%d, not %d", got, value);
}

/* ---- one thread each ---- */

static void messages(MPI_Comm comm)
{
    char *out = check_alloc(LONG);
    char *in = check_alloc(LONG);

    for (int i = 0; i < 4 * my.rounds; i++) {
        const int len = i % 4 ? 100 * i : LONG;

        check_fill(out, (size_t)len, (uint64_t)(i + check_rank()));
        MPI_Sendrecv(out, len, MPI_BYTE, my.up, i, in, LONG, MPI_BYTE, my.down,
                     i, comm, MPI_STATUS_IGNORE);
        CHECK(check_differs(in, (size_t)len, (uint64_t)(i + my.down)) ==
                  SIZE_MAX,
              "message %d", i);
    }
    free(in);
    free(out);
}

static void windows(MPI_Comm comm)
{
    int *base;
    MPI_Win win;

    MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base,
                     &win);
    for (int i = 0; i < my.rounds; i++) {
        int one = 1;
        int sum = 0;

        base[0] = 0;
        MPI_Win_fence(0, win);
        for (int r = 0; r < check_size(); r++)
            MPI_Accumulate(&one, 1, MPI_INT, r, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_fence(0, win);
        CHECK(base[0] == check_size(), "%d were added", base[0]);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my.up, 0, win);
        MPI_Put(&i, 1, MPI_INT, my.up, 1, 1, MPI_INT, win);
        MPI_Get(&sum, 1, MPI_INT, my.up, 0, 1, MPI_INT, win);
        MPI_Win_unlock(my.up, win);
        use(comm, i);
        MPI_Barrier(comm);
        CHECK(sum == check_size() && base[1] == i, "%d, %d", sum, base[1]);
    }
    MPI_Win_free(&win);
}

static void files(MPI_Comm comm)
{
    char name[512];
    MPI_File file;

    (void)snprintf(name, sizeof(name), "%s/lanes_beside.data", my.folder);
    MPI_File_open(comm, name,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    for (int i = 0; i < my.rounds; i++) {
        const MPI_Offset size = sizeof(int);
        int out = i + check_rank();
        int in = -1;
        MPI_Request request;

        MPI_File_iwrite_at_all(file, size * check_rank(), &out, 1, MPI_INT,
                               &request);
        use(comm, i);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_Barrier(comm);
        MPI_File_read_at_all(file, size * my.up, &in, 1, MPI_INT,
                             MPI_STATUS_IGNORE);
        CHECK(in == i + my.up, "%d was written", in);
        MPI_Barrier(comm);
    }
    MPI_File_close(&file);
}

static int ready(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 1);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int forget(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int never(void *state, int is_complete)
{
    (void)state;
    (void)is_complete;
    return MPI_SUCCESS;
}

/* Requests of every kind in one set: in lanes, of collective operations,
 * generalized ones, persistent and partitioned ones, buffered sends. */
static void sets(MPI_Comm comm)
{
    enum { KINDS = 2 * COMMS + 7 };
    static int parts_out[2];
    static int parts_in[2];
    MPI_Comm comms[COMMS];
    MPI_Request requests[KINDS];
    int values[KINDS];
    int one = 1;

    for (int c = 0; c < COMMS; c++)
        MPI_Comm_dup(comm, &comms[c]);
    MPI_Psend_init(parts_out, 2, 1, MPI_INT, my.up, 1, comms[0], MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(parts_in, 2, 1, MPI_INT, my.down, 1, comms[0], MPI_INFO_NULL,
                   &requests[1]);
    MPI_Send_init(&one, 1, MPI_INT, my.up, 2, comms[1], &requests[2]);
    MPI_Recv_init(&values[3], 1, MPI_INT, my.down, 2, comms[1], &requests[3]);
    for (int i = 0; i < my.rounds; i++) {
        int n = 4;
        int left = KINDS;

        parts_out[0] = i;
        parts_out[1] = i + 1;
        MPI_Startall(4, requests);
        MPI_Pready_range(0, 1, requests[0]);
        MPI_Iallreduce(&one, &values[n], 1, MPI_INT, MPI_SUM, comm,
                       &requests[n]);
        n++;
        MPI_Ibarrier(comms[2], &requests[n++]);
        MPI_Grequest_start(ready, forget, never, NULL, &requests[n]);
        MPI_Grequest_complete(requests[n++]);
        for (int c = 0; c < COMMS; c++) {
            MPI_Irecv(&values[n], 1, MPI_INT, my.down, 3, comms[c],
                      &requests[n]);
            n++;
            MPI_Issend(&one, 1, MPI_INT, my.up, 3, comms[c], &requests[n++]);
        }
        while (left > 0) {
            int indices[KINDS];
            int some = 0;

            if (i % 3 == 0) {
                MPI_Waitsome(n, requests, &some, indices, MPI_STATUSES_IGNORE);
            } else if (i % 3 == 1) {
                MPI_Testany(n, requests, indices, &some, MPI_STATUS_IGNORE);
            } else {
                MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
                some = left;
            }
            left -= some;
        }
        CHECK(values[4] == check_size() && values[3] == 1 && parts_in[0] == i &&
                  parts_in[1] == i + 1,
              "set %d", i);
    }
    for (int k = 0; k < 4; k++)
        MPI_Request_free(&requests[k]);
    for (int c = 0; c < COMMS; c++)
        MPI_Comm_free(&comms[c]);
}

/* Between the even and the odd ranks, then of all. */
static void between(MPI_Comm comm, MPI_Comm half, int i)
{
    MPI_Comm inter;
    MPI_Comm merged;
    int far;
    int got = -1;
    MPI_Request request;

    MPI_Intercomm_create(half, 0, comm, 1 - check_rank() % 2, TAG, &inter);
    MPI_Comm_remote_size(inter, &far);
    for (int r = 0; r < far; r++) {
        MPI_Isend(&i, 1, MPI_INT, r, TAG, inter, &request);
        MPI_Request_free(&request);
    }
    for (int r = 0; r < far; r++) {
        MPI_Recv(&got, 1, MPI_INT, r, TAG, inter, MPI_STATUS_IGNORE);
        CHECK(got == i, "%d between", got);
    }
    MPI_Barrier(inter); /* all that was sent is received */
    MPI_Intercomm_merge(inter, 0, &merged);
    use(merged, i);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
}

static void communicators(MPI_Comm comm)
{
    MPI_Group all;

    MPI_Comm_group(comm, &all);
    for (int i = 0; i < my.rounds; i++) {
        const int period = 1;
        MPI_Request request;
        MPI_Comm made[5];
        char tag[32];

        (void)snprintf(tag, sizeof(tag), "round %d", i);
        MPI_Comm_split(comm, check_rank() % 2, 0, &made[0]);
        MPI_Comm_create_group(comm, all, TAG, &made[1]);
        MPI_Comm_idup(made[0], &made[2], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Cart_create(made[1], 1, &(int){check_size()}, &period, 1, &made[3]);
        MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_ABORT,
                                   &made[4]);
        for (int c = 0; c < 5; c++)
            use(made[c], i);
        if (check_size() > 1)
            between(comm, made[0], i);
        for (int c = 0; c < 5; c++)
            MPI_Comm_free(&made[c]);
    }
    MPI_Group_free(&all);
}

static void sessions(MPI_Comm comm)
{
    (void)comm;
    for (int i = 0; i < my.rounds; i++) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm made;
        MPI_Comm copy;

        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ABORT, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "lanes_beside", MPI_INFO_NULL,
                                   MPI_ERRORS_ABORT, &made);
        MPI_Comm_dup(made, &copy);
        use(made, i);
        use(copy, i);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&made);
        MPI_Group_free(&group);
        MPI_Session_finalize(&session);
    }
}

/* ---- all ---- */

static struct thread {
    void (*run)(MPI_Comm comm);
    MPI_Comm comm;
} threads[] = {
    {.run = messages}, {.run = windows},       {.run = files},
    {.run = sets},     {.run = communicators}, {.run = sessions},
};

enum { THREADS = sizeof(threads) / sizeof(threads[0]) };

static void *run(void *arg)
{
    const struct thread *t = arg;

    t->run(t->comm);
    return NULL;
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(argc > 1, "name a folder");
    my.folder = argv[1];
    my.rounds = (int)check_arg(argc, argv, 2, 8);
    my.up = (check_rank() + 1) % check_size();
    my.down = (check_rank() + check_size() - 1) % check_size();
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[t].comm);
    check_run_threads(THREADS, run, threads, sizeof(threads[0]));
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&threads[t].comm);
    return check_finish();
}
