/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank dies, and the others go on (chempirun --survive): whoever has to do
 * with it in a window gets MPI_ERR_PROC_ABORTED, nobody hangs, and the
 * survivors make a communicator and a window of their own and use them.
 *
 * usage: survivors HOW [WHAT]
 *
 * HOW, of the last rank: holder (dies with the lock of rank 0 that others
 * want), waiter (while it waits for that lock), target (while others have
 * operations for it), fence, post, start (instead of the call that others wait
 * for), loop WHAT (while others go round and round and never wait), barrier,
 * chain (which ends at it), receive, announced (while it sends what is large;
 * these without any window), cancelled (of whom others take back what they
 * have sent), partitioned (to whom rank 0 sends parts), group (before the
 * others make communicators with it), file FOLDER (while all have a file open),
 * probe (when it has sent what the others have not looked at)
 */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define COUNT 100000 /* more than any device sends without being asked */
#define WAIT_US 20000
#define LONG (512 << 10) /* more than rings between ranks hold */
#define MESSAGES 100     /* of which each look takes one */
#define PARTS 5
#define MUCH (256 << 20) /* bytes: no network is done with it at once */

static int rank, size, victim;
static MPI_Win win;
static double *base;
static double mine[COUNT];

static bool is_lost(int rc, const char *call)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS;
    int len;

    if (rc)
        MPI_Error_class(rc, &class);
    CHECK_OR_DIE(class == MPI_ERR_PROC_ABORTED, "%s: class %d", call, class);
    if (rc)
        MPI_Error_string(rc, words, &len);
    printf("rank %d: %s: %s\n", rank, call, words);
    (void)fflush(stdout);
    return class == MPI_ERR_PROC_ABORTED;
}

_Noreturn static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

/* In the middle of what follows, which waits for ever. */
static void die_soon(void)
{
    const struct itimerval when = {.it_value = {.tv_usec = WAIT_US}};

    (void)signal(SIGALRM, SIG_DFL);
    (void)setitimer(ITIMER_REAL, &when, NULL);
}

/* The victim goes on when all others have come here. */
static void meet(void)
{
    for (int i = 0; rank == victim && i < victim; i++)
        MPI_Recv(NULL, 0, MPI_BYTE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != victim)
        MPI_Send(NULL, 0, MPI_BYTE, victim, 1, MPI_COMM_WORLD);
}

static void await_death(void)
{
    (void)is_lost(MPI_Recv(mine, 1, MPI_DOUBLE, victim, 2, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
                  "MPI_Recv");
}

static void holder(void)
{
    if (rank == victim) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    meet();
    if (rank == victim)
        die();
    /* A lock may be asked for with the first operation only. */
    if (MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS) {
        MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
        (void)is_lost(MPI_Win_unlock(0, win), "MPI_Win_unlock");
    }
    await_death(); /* perhaps only the target knew */
    (void)is_lost(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), "MPI_Win_lock");
}

/* Who is late finds the victim dead, and no request. */
static void begin(int rc, MPI_Request *request, const char *call)
{
    if (!rc)
        return;
    (void)is_lost(rc, call);
    *request = MPI_REQUEST_NULL;
}

/* What was sent is cancelled when the receiver ends, and when it has. */
static void cancelled(void)
{
    MPI_Request requests[2];
    int value = 1;

    meet();
    if (rank == victim) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        die();
    }
    for (int i = 0; i < 2; i++) /* rank 0 is never late */
        begin(MPI_Isend(&value, 1, MPI_INT, victim, 3, MPI_COMM_WORLD,
                        &requests[i]),
              &requests[i], "MPI_Isend");
    if (requests[0] != MPI_REQUEST_NULL)
        MPI_Cancel(&requests[0]);
    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, victim, 1, MPI_COMM_WORLD);
    await_death();
    if (requests[1] != MPI_REQUEST_NULL)
        MPI_Cancel(&requests[1]);
    for (int i = 0; i < 2; i++) {
        const int rc = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);

        CHECK(rc == MPI_SUCCESS || is_lost(rc, "MPI_Wait"), "%d", rc);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d", i);
    }
}

/* Some partitions have left, or may have, when the receiver ends. */
static void partitioned(void)
{
    MPI_Request request;
    double part;

    if (rank > 0 && rank < victim) {
        meet();
        await_death();
        return;
    }
    if (rank == victim)
        MPI_Precv_init(&part, 1, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Psend_init(mine, PARTS, 1, MPI_DOUBLE, victim, 3, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    meet();
    if (rank == victim)
        die();
    MPI_Start(&request);
    (void)MPI_Pready(0, request);
    await_death();
    (void)is_lost(MPI_Pready(1, request), "MPI_Pready");
    (void)is_lost(MPI_Pready_range(2, PARTS - 1, request), "MPI_Pready_range");
    (void)is_lost(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    MPI_Start(&request);
    (void)is_lost(MPI_Pready(PARTS - 1, request), "MPI_Pready");
    (void)is_lost(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    MPI_Request_free(&request);
}

static void waiter(void)
{
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim) {
        die_soon();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
        MPI_Win_unlock(0, win);
        die();
    }
    await_death();
    if (rank == 0)
        (void)is_lost(MPI_Win_unlock(0, win), "MPI_Win_unlock");
}

static void target(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim)
        die();
    if (MPI_Win_lock_all(0, win)) {
        await_death();
        return; /* it was very quick */
    }
    for (int i = 0; i < 3; i++) {
        MPI_Put(mine, COUNT, MPI_DOUBLE, victim, 0, COUNT, MPI_DOUBLE, win);
        MPI_Accumulate(mine, COUNT, MPI_DOUBLE, victim, 0, COUNT, MPI_DOUBLE,
                       MPI_SUM, win);
        MPI_Get(mine, COUNT, MPI_DOUBLE, victim, 0, COUNT, MPI_DOUBLE, win);
    }
    await_death();
    (void)is_lost(MPI_Win_flush(victim, win), "MPI_Win_flush");
    (void)is_lost(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
}

/* One round, in which nothing needs to be waited for. */
static int go_round(const char *what, MPI_Request *req)
{
    static int64_t one = 1;
    static int64_t was;
    MPI_Request mine_too;
    int flag;
    int rc;

    if (strcmp(what, "fetch") == 0 || strcmp(what, "live") == 0) {
        const int to = what[0] == 'f' ? victim : 0;

        rc = MPI_Fetch_and_op(&one, &was, MPI_INT64_T, to, 0, MPI_SUM, win);
        return rc ? rc : MPI_Win_flush(to, win);
    }
    if (strcmp(what, "get") == 0) {
        rc = MPI_Get(mine, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win);
        return rc ? rc : MPI_Win_flush_local(victim, win);
    }
    if (strcmp(what, "put") == 0) {
        rc = MPI_Put(mine, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win);
        return rc ? rc : MPI_Win_flush_all(win);
    }
    if (strcmp(what, "rget") == 0) {
        rc = MPI_Rget(mine, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win,
                      &mine_too);
        return rc ? rc : MPI_Wait(&mine_too, MPI_STATUS_IGNORE);
    }
    if (strcmp(what, "sync") == 0)
        return MPI_Win_sync(win);
    rc = MPI_Test(req, &flag, MPI_STATUS_IGNORE);
    CHECK_OR_DIE(rc || !flag, "nobody has sent anything");
    return rc;
}

/* Of memory that is mapped nothing but the news says that its owner is gone. */
static void loop(const char *what)
{
    MPI_Request req;
    int rc;

    MPI_Irecv(mine, 1, MPI_DOUBLE, victim, 8, MPI_COMM_WORLD, &req);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim)
        die();
    rc = MPI_Win_lock_all(0, win);
    if (!rc) {
        while (!rc)
            rc = go_round(what, &req);
        (void)is_lost(rc, what);
        rc = MPI_Win_unlock_all(win);
    }
    (void)is_lost(rc, "MPI_Win_unlock_all");
    if (req != MPI_REQUEST_NULL)
        (void)is_lost(MPI_Wait(&req, MPI_STATUS_IGNORE), "MPI_Wait");
}

static void fence(void)
{
    MPI_Win_fence(0, win);
    if (rank == victim)
        die();
    MPI_Put(mine, COUNT, MPI_DOUBLE, (rank + 1) % size, 0, COUNT, MPI_DOUBLE,
            win);
    (void)is_lost(MPI_Win_fence(0, win), "MPI_Win_fence");
}

/* Everybody exposes its memory to the others, and accesses theirs. */
static void exchange(bool is_started)
{
    MPI_Group all;
    MPI_Group others;
    int rc;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &rank, &others);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim && !is_started)
        die();
    rc = MPI_Win_post(others, 0, win);
    if (rank == victim)
        die();
    if (!rc)
        rc = MPI_Win_start(others, 0, win);
    if (!rc) {
        MPI_Put(mine, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
        rc = MPI_Win_complete(win);
        if (!rc)
            rc = MPI_Win_wait(win);
    }
    (void)is_lost(rc, is_started ? "an epoch" : "MPI_Win_start");
    (void)MPI_Win_wait(win); /* if it is posted still */
    MPI_Group_free(&others);
    MPI_Group_free(&all);
}

/*
 * Two large messages: one is under way, nobody has received the other yet. The
 * one under way may be here as a whole before its sender ends: nobody can keep
 * the network from that. The other one is asked for when its sender has ended.
 */
static void announced(void)
{
    char *much = check_alloc(MUCH);
    MPI_Request requests[2];
    int rc;

    if (rank == victim) {
        memset(much, 'm', MUCH);
        MPI_Isend(mine, COUNT, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(much, MUCH, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &requests[1]);
    }
    if (rank == 0) {
        MPI_Probe(victim, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(much, MUCH, MPI_BYTE, victim, 7, MPI_COMM_WORLD,
                  &requests[1]);
    }
    meet();
    if (rank == victim)
        die();
    if (rank == 0) {
        rc = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        if (rc)
            (void)is_lost(rc, "MPI_Wait");
        else
            CHECK_OR_DIE(much[0] == 'm' &&
                             memcmp(much, much + 1, MUCH - 1) == 0,
                         "a message that is over is whole");
    }
    await_death();
    if (rank == 0)
        (void)is_lost(MPI_Recv(mine, COUNT, MPI_DOUBLE, victim, 6,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                      "MPI_Recv");
    free(much);
}

static void barrier(void)
{
    MPI_Request requests[2];
    int sums[2];
    int sum;
    int one = 1;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim)
        die();
    for (int i = 0; i < 2; i++)
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[i]);
    for (int i = 0; i < 2; i++)
        (void)is_lost(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), "MPI_Wait");
    (void)is_lost(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    (void)is_lost(
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
        "MPI_Allreduce");
}

/* Each waits for the one after it to take a piece of a long reduction; who
 * hears of the loss first does so no longer. */
static void chain(void)
{
    double *in = check_alloc(LONG * sizeof(*in));
    double *out = check_alloc(LONG * sizeof(*out));
    double one = 1;

    for (int i = 0; i < LONG; i++)
        in[i] = 1;
    CHECK_OR_DIE(
        !MPI_Reduce(in, out, LONG, MPI_DOUBLE, MPI_SUM, victim, MPI_COMM_WORLD),
        "MPI_Reduce with all");
    if (rank == victim) {
        die_soon();
        MPI_Recv(mine, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    (void)is_lost(
        MPI_Reduce(in, NULL, LONG, MPI_DOUBLE, MPI_SUM, victim, MPI_COMM_WORLD),
        "MPI_Reduce");
    (void)is_lost(
        MPI_Reduce(in, out, LONG, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD),
        "MPI_Reduce");
    (void)is_lost(
        MPI_Allreduce(&one, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
        "MPI_Allreduce");
    free(in);
    free(out);
}

/* Whoever speaks for the others in the agreement, they learn of it. */
static void group(void)
{
    int range[1][3] = {{size - 1, 0, -1}};
    MPI_Group groups[2];
    MPI_Comm comm;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim)
        die();
    await_death();
    MPI_Comm_group(MPI_COMM_WORLD, &groups[0]);
    MPI_Group_range_incl(groups[0], 1, range, &groups[1]);
    for (int i = 0; i < 6; i++)
        (void)is_lost(
            MPI_Comm_create_group(MPI_COMM_WORLD, groups[i % 2], 7, &comm),
            "MPI_Comm_create_group");
    for (int i = 0; i < 2; i++)
        MPI_Group_free(&groups[i]);
}

static void receive(void)
{
    MPI_Request reqs[2];
    MPI_Status statuses[2];
    bool is_begun[2];

    /* So that what is sent next has a connection to go along. */
    if (rank == victim || rank == 0)
        MPI_Sendrecv_replace(mine, 1, MPI_DOUBLE, victim - rank, 2,
                             victim - rank, 2, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim) {
        MPI_Send(mine, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
        die_soon();
        MPI_Recv(mine, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        die();
    }
    if (rank == 0)
        CHECK_OR_DIE(!MPI_Recv(mine, 1, MPI_DOUBLE, victim, 3, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE),
                     "sent before the end");
    begin(
        MPI_Irecv(mine, COUNT, MPI_DOUBLE, victim, 5, MPI_COMM_WORLD, &reqs[0]),
        &reqs[0], "MPI_Irecv");
    begin(MPI_Issend(mine + 1, 1, MPI_DOUBLE, victim, 5, MPI_COMM_WORLD,
                     &reqs[1]),
          &reqs[1], "MPI_Issend");
    for (int i = 0; i < 2; i++)
        is_begun[i] = reqs[i] != MPI_REQUEST_NULL;
    CHECK_OR_DIE(
        MPI_Waitall(2, reqs, statuses) ==
            (is_begun[0] || is_begun[1] ? MPI_ERR_IN_STATUS : MPI_SUCCESS),
        "MPI_Waitall");
    for (int i = 0; i < 2; i++)
        if (is_begun[i])
            (void)is_lost(statuses[i].MPI_ERROR, "MPI_Waitall");
    (void)is_lost(MPI_Probe(victim, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Probe");
    (void)is_lost(MPI_Send(mine, COUNT, MPI_DOUBLE, victim, 5, MPI_COMM_WORLD),
                  "MPI_Send");
}

/* Has this process the file open? */
static bool has_open(const char *path)
{
    char link[64];
    char file[4096];
    bool found = false;

    for (int fd = 0; fd < 1024 && !found; fd++) {
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, file, sizeof(file) - 1);
        file[n > 0 ? n : 0] = '\0';
        found = strcmp(file, path) == 0;
    }
    return found;
}

/* The first rank looks only when the second one knows of the end, and finds
 * what was sent before it. With CHEMPI_SHM_DRAIN=1 it takes a message at a
 * look, and the news come in between. */
static void probe(void)
{
    const int last = 9;
    pid_t pid = getpid();
    sigset_t wake;
    int flag = 0;
    int rc = MPI_SUCCESS;

    (void)sigemptyset(&wake);
    (void)sigaddset(&wake, SIGUSR1);
    if (rank == 0) {
        (void)sigprocmask(SIG_BLOCK, &wake, NULL);
        MPI_Send(&pid, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    }
    if (rank == 1)
        MPI_Recv(&pid, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    meet();
    for (int i = 1; rank == victim && i <= MESSAGES; i++)
        MPI_Send(NULL, 0, MPI_BYTE, 0, i < MESSAGES ? 3 : last, MPI_COMM_WORLD);
    if (rank == victim)
        die();
    if (rank == 1) {
        await_death();
        (void)kill(pid, SIGUSR1);
    }
    if (rank == 0) {
        (void)sigwait(&wake, &(int){0});
        while (!rc && !flag)
            rc = MPI_Iprobe(victim, last, MPI_COMM_WORLD, &flag,
                            MPI_STATUS_IGNORE);
        CHECK_OR_DIE(flag, "MPI_Iprobe: %d", rc);
    }
}

/* Closing says that a member is lost, and closes. */
static void file(const char *folder)
{
    char path[4096];
    MPI_File fh;

    (void)snprintf(path, sizeof(path), "%s/kept", folder);
    CHECK_OR_DIE(!MPI_File_open(MPI_COMM_WORLD, path,
                                MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                                &fh),
                 "MPI_File_open");
    CHECK_OR_DIE(has_open(path), "%s is open", path);
    meet();
    if (rank == victim)
        die();
    await_death();
    (void)is_lost(MPI_File_close(&fh), "MPI_File_close");
    CHECK_OR_DIE(fh == MPI_FILE_NULL && !has_open(path), "%s is closed", path);
}

/* The others are as they were. */
static void go_on(void)
{
    MPI_Group all;
    MPI_Group rest;
    MPI_Comm comm;
    double *part;
    int sum = 0;
    int one = 1;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &victim, &rest);
    CHECK_OR_DIE(!MPI_Comm_create_group(MPI_COMM_WORLD, rest, 7, &comm),
                 "MPI_Comm_create_group");
    CHECK_OR_DIE(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) &&
                     sum == size - 1,
                 "sum %d", sum);
    CHECK_OR_DIE(!MPI_Win_allocate(sizeof(double), sizeof(double),
                                   MPI_INFO_NULL, comm, &part, &win),
                 "MPI_Win_allocate");
    *part = 0;
    MPI_Barrier(comm);
    mine[0] = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Accumulate(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win);
    CHECK_OR_DIE(!MPI_Win_unlock(0, win), "MPI_Win_unlock");
    MPI_Barrier(comm);
    CHECK_OR_DIE(rank != 0 || *part == size - 1, "value %g", *part);
    CHECK_OR_DIE(!MPI_Win_free(&win), "MPI_Win_free");
    MPI_Comm_free(&comm);
    MPI_Group_free(&rest);
    MPI_Group_free(&all);
}

static void run(const char *how, const char *what)
{
    if (strcmp(how, "holder") == 0)
        holder();
    else if (strcmp(how, "waiter") == 0)
        waiter();
    else if (strcmp(how, "target") == 0)
        target();
    else if (strcmp(how, "fence") == 0)
        fence();
    else if (strcmp(how, "post") == 0 || strcmp(how, "start") == 0)
        exchange(strcmp(how, "start") == 0);
    else if (strcmp(how, "announced") == 0)
        announced();
    else if (strcmp(how, "barrier") == 0)
        barrier();
    else if (strcmp(how, "chain") == 0)
        chain();
    else if (strcmp(how, "file") == 0)
        file(what);
    else if (strcmp(how, "probe") == 0)
        probe();
    else if (strcmp(how, "cancelled") == 0)
        cancelled();
    else if (strcmp(how, "group") == 0)
        group();
    else if (strcmp(how, "partitioned") == 0)
        partitioned();
    else if (strcmp(how, "loop") == 0)
        loop(what);
    else
        receive();
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    victim = size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_allocate(sizeof(mine), sizeof(double), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
    CHECK_OR_DIE(!MPI_Win_free(&win), "MPI_Win_free");
    go_on();
    if (rank == 0)
        printf("the survivors are well\n");
    MPI_Finalize();
    return 0;
}
