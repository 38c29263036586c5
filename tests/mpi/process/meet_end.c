/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of processes of other worlds that nobody here has a connection to: who
 * waits for them is told nevertheless.
 *
 * meet_end accept|connect FIFO three: two worlds, which are one communicator
 *          now, spawn a third, which ends; also who has not spawned it hears;
 *          then one of them finalizes, and each end keeps its words
 * meet_end accept|connect FIFO lost: a rank of a job that survives ends, when a
 *          rank of the other job waits for it
 * meet_end accept|connect FIFO probed: the same, when these probe for it
 * meet_end accept|connect FIFO finished: the others have just finalized
 * meet_end accept|connect FIFO late: they have sent what these need before
 * meet_end accept|connect FIFO missed: they have not, and whoever waits for
 *          somebody who waits for them is kept by nobody
 * meet_end accept|connect FIFO deaf: they take nothing until these have said
 *          that they wait
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 3, LEN = 1 << 20, PIECE = 60000, MEMBERS = 8 };

static const char lost[] = " is lost, and its world with it: ";
static const char finished[] = " has already finished";

/* The error is of such an end, and of no other one. */
static void check_words(int code, const char *how)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int len;

    MPI_Error_string(code, words, &len);
    CHECK(strstr(words, how), "not%s, but: %s", how, words);
    CHECK(how != finished || !strstr(words, " is lost"), "%s", words);
}

/* A receive that ends since its source has; how: NULL: who has no connection to
 * it may take it for lost. */
static void wait_in_vain(MPI_Comm comm, int source, const char *how)
{
    int none;
    int rc;

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    rc = MPI_Recv(&none, 1, MPI_INT, source, TAG + 1, comm, MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a receive ends with %d",
          rc);
    if (how)
        check_words(rc, how);
}

/* ---- three worlds ---- */

static void be_spawned(MPI_Comm parent)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, parent, MPI_STATUS_IGNORE);
    (void)raise(SIGKILL);
}

/* All that have accepted to rank 1 of those that have connected. */
static void connect_to_last(MPI_Comm inter, bool accepts)
{
    int size;

    MPI_Comm_remote_size(inter, &size);
    if (accepts)
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, inter);
    for (int i = 0; i < size && !accepts && check_rank() == 1; i++)
        MPI_Recv(NULL, 0, MPI_BYTE, i, TAG, inter, MPI_STATUS_IGNORE);
}

static void spawn_third(MPI_Comm inter, bool accepts, char *program)
{
    MPI_Comm both, third;
    int rank;
    int rc;

    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Comm_rank(both, &rank);
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, both, &third,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(both);
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, third);
    wait_in_vain(third, MPI_ANY_SOURCE, lost);
    wait_in_vain(third, 0, lost);
    connect_to_last(inter, accepts);
    MPI_Barrier(both);
    if (!accepts)
        return;
    wait_in_vain(inter, 1, finished); /* the last end; each has its words */
    wait_in_vain(third, 0, lost);
    rc = MPI_Barrier(third);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a barrier ends with %d",
          rc);
    check_words(rc, lost);
}

/* ---- two ---- */

static void wait_for_last(MPI_Comm inter)
{
    MPI_Request request;
    int none;
    int rc;

    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Irecv(&none, 1, MPI_INT, 2, TAG + 1, inter, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, inter);
    rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a receive ends with %d",
          rc);
}

static void lose_last(MPI_Comm inter)
{
    if (check_rank() == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, inter, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 2, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == 1) { /* it has met them, too */
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == 2) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        (void)raise(SIGKILL);
    }
}

/* Rank `last` of the others ends, and only probes may tell. */
static void probe_for(MPI_Comm inter, int last, bool waits)
{
    int flag;
    int rc = MPI_SUCCESS;

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, inter);
    if (waits)
        rc = MPI_Probe(last, TAG + 1, inter, MPI_STATUS_IGNORE);
    while (rc == MPI_SUCCESS && !waits)
        rc = MPI_Iprobe(last, TAG + 1, inter, &flag, MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a probe ends with %d", rc);
}

/* These end one after the other, when the others say so. */
static void end_in_turn(MPI_Comm inter)
{
    MPI_Barrier(MPI_COMM_WORLD); /* all have met */
    for (int last = check_size() - 1; last > 0; last--) {
        if (check_rank() == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, inter, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, last, TAG, MPI_COMM_WORLD);
        } else if (check_rank() == last) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            (void)raise(SIGKILL);
        }
    }
}

/* Until who has written a byte to it has ended. In MPI meanwhile: the others
 * may have to be heard. */
static void await_end(MPI_Comm comm, const char *fifo)
{
    const int fd = open(fifo, O_RDONLY | O_NONBLOCK);
    bool has_begun = false;
    ssize_t n = -1;
    char byte;
    int flag;

    CHECK_OR_DIE(fd >= 0, "open %s", fifo);
    while (n != 0 || !has_begun) {
        MPI_Iprobe(0, TAG + 7, comm, &flag, MPI_STATUS_IGNORE);
        n = read(fd, &byte, 1);
        has_begun |= n == 1;
    }
    (void)close(fd);
}

/* Those that have connected end at once; the others have all that they need. */
static void come_late(MPI_Comm inter, bool accepts, const char *fifo)
{
    int rank, value, sum = 0;
    MPI_Comm both;

    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Comm_rank(both, &rank);
    if (!accepts && check_rank() == 0) {
        const int fd = open(fifo, O_WRONLY); /* it ends with the process */

        CHECK_OR_DIE(fd >= 0 && write(fd, "", 1) == 1, "write to %s", fifo);
    }
    if (accepts && check_rank() == 0)
        await_end(both, fifo);
    if (accepts)
        MPI_Barrier(MPI_COMM_WORLD);
    value = rank;
    MPI_Bcast(&value, 1, MPI_INT, 2, both);
    CHECK(value == 2, "%d has come from rank 2", value);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, both);
    CHECK(rank != 0 || sum == 6, "the sum is %d", sum);
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG, both,
                 MPI_STATUS_IGNORE);
        CHECK(value == 3, "%d has come from rank 3", value);
    } else if (rank == 3) {
        MPI_Send(&rank, 1, MPI_INT, 0, TAG, both);
    }
}

static void check_missed(const char *what, int rc)
{
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "%s: class %d", what,
          check_class(rc));
}

/* Those that have connected finish, and the others miss them. */
static void miss(MPI_Comm inter, bool accepts)
{
    static char data[MEMBERS * PIECE];
    static char all[MEMBERS * PIECE];
    MPI_Request request;
    MPI_Comm both;
    int members;

    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Comm_size(both, &members);
    CHECK_OR_DIE(members <= MEMBERS, "%d members", members);
    MPI_Alltoall(data, 1, MPI_BYTE, all, 1, MPI_BYTE, both);
    if (!accepts)
        return;
    wait_in_vain(inter, 0, NULL);
    wait_in_vain(inter, 1, NULL);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    (void)MPI_Barrier(both); /* of empty messages: some may succeed */
    check_missed("MPI_Allreduce",
                 MPI_Allreduce(data, all, 1, MPI_BYTE, MPI_BOR, both));
    check_missed("MPI_Alltoall", MPI_Alltoall(data, PIECE, MPI_BYTE, all, PIECE,
                                              MPI_BYTE, both));
    check_missed("MPI_Allgather", MPI_Allgather(data, PIECE, MPI_BYTE, all,
                                                PIECE, MPI_BYTE, both));
    MPI_Ialltoall(data, PIECE, MPI_BYTE, all, PIECE, MPI_BYTE, both, &request);
    check_missed("MPI_Ialltoall", MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Comm_free(&both);
    MPI_Comm_dup(MPI_COMM_WORLD, &both); /* nothing was left under way */
    MPI_Barrier(both);
    MPI_Comm_free(&both);
}

/* Away from MPI, until the other job says that it waits; then what was sent is
 * there. */
static void be_deaf(MPI_Comm inter, const char *fifo)
{
    static char data[LEN];
    FILE *file = fopen(fifo, "r");
    int senders;

    CHECK_OR_DIE(file != NULL, "open %s", fifo);
    (void)fclose(file);
    MPI_Comm_remote_size(inter, &senders);
    for (int i = 0; i < senders; i++) {
        memset(data, 0, sizeof(data));
        MPI_Recv(data, LEN, MPI_BYTE, i, TAG, inter, MPI_STATUS_IGNORE);
        CHECK(data[0] == 1 && data[LEN - 1] == 1, "what rank %d has sent", i);
    }
}

static void send_to_the_deaf(MPI_Comm inter)
{
    static char data[LEN];
    MPI_Request request;

    memset(data, 1, sizeof(data));
    MPI_Isend(data, LEN, MPI_BYTE, 0, TAG, inter, &request);
    MPI_Request_free(&request);
}

struct ear {
    FILE *heard;
    FILE *error; /* the true one */
    const char *fifo;
};

/* What this process says on its standard error; when it says that it waits,
 * those who are deaf are told. */
static void *listen_to_self(void *arg)
{
    struct ear *ear = arg;
    char line[1024];

    while (fgets(line, sizeof(line), ear->heard)) {
        (void)fputs(line, ear->error);
        if (strstr(line, "MPI_Finalize has waited")) {
            FILE *file = fopen(ear->fifo, "w");

            CHECK_OR_DIE(file && fclose(file) == 0, "open %s", ear->fifo);
        }
    }
    return NULL;
}

/* At the end, with a warning while the others are deaf. */
static int finish_heard(const char *fifo)
{
    struct ear ear = {.fifo = fifo};
    pthread_t thread;
    int ends[2];
    int code;

    CHECK_OR_DIE(pipe(ends) == 0, "pipe");
    ear.heard = fdopen(ends[0], "r");
    ear.error = fdopen(dup(STDERR_FILENO), "w");
    CHECK_OR_DIE(ear.heard && ear.error, "no memory");
    CHECK_OR_DIE(dup2(ends[1], STDERR_FILENO) >= 0 && close(ends[1]) == 0,
                 "dup2");
    CHECK_OR_DIE(pthread_create(&thread, NULL, listen_to_self, &ear) == 0,
                 "no thread");
    code = check_finish();
    (void)dup2(fileno(ear.error), STDERR_FILENO);
    CHECK_OR_DIE(pthread_join(thread, NULL) == 0, "join");
    (void)fclose(ear.heard);
    (void)fclose(ear.error);
    return code;
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter, parent;
    char fifo[4096];
    bool accepts;
    bool is_deaf;

    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        be_spawned(parent);
    CHECK_OR_DIE(argc > 3, "usage: meet_end accept|connect FIFO HOW");
    accepts = strcmp(argv[1], "accept") == 0;
    (void)snprintf(fifo, sizeof(fifo), "%s.end", argv[2]);
    CHECK_OR_DIE(mkfifo(fifo, 0600) == 0 || errno == EEXIST, "mkfifo");
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    is_deaf = strcmp(argv[3], "deaf") == 0;
    if (strcmp(argv[3], "late") == 0) {
        come_late(inter, accepts, fifo);
    } else if (is_deaf) {
        if (accepts)
            send_to_the_deaf(inter);
        else if (check_rank() == 0)
            be_deaf(inter, fifo);
    } else if (strcmp(argv[3], "missed") == 0) {
        miss(inter, accepts);
    } else if (strcmp(argv[3], "three") == 0) {
        spawn_third(inter, accepts, argv[0]);
    } else if (strcmp(argv[3], "probed") == 0) {
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        if (!accepts)
            end_in_turn(inter);
        for (int last = 2; accepts && last > 0; last--)
            probe_for(inter, last, last == 2);
    } else if (!accepts) {
        if (strcmp(argv[3], "lost") == 0)
            lose_last(inter);
    } else if (strcmp(argv[3], "lost") == 0) {
        wait_for_last(inter);
    } else {
        wait_in_vain(inter, 1, NULL);
        MPI_Comm_disconnect(&inter);
    }
    if (!accepts &&
        (strcmp(argv[3], "lost") == 0 || strcmp(argv[3], "probed") == 0)) {
        MPI_Finalize(); /* not all are left to sum up */
        return 0;
    }
    return is_deaf && accepts && check_rank() == 0 ? finish_heard(fifo)
                                                   : check_finish();
}
