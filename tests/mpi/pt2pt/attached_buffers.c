/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers of the process, of communicators and of sessions, and automatic
 * ones: which one a buffered send takes, what stays in it, flushes and
 * detachments while messages wait (MPI 5.0, section 3.6).
 */
#include <pthread.h>

#include "check.h"

enum { DATA = 20000, COUNT = 30 };

static void attach_and_detach(void)
{
    char *memory = check_alloc(DATA);
    void *got = memory;
    int size = -1;
    MPI_Count wide = -1;
    MPI_Comm comm;

    CHECK(MPI_Buffer_attach(memory, DATA) == MPI_SUCCESS, "attach");
    CHECK(MPI_Buffer_attach(memory, DATA) != MPI_SUCCESS, "attached twice");
    CHECK(MPI_Buffer_detach(&got, &size) == MPI_SUCCESS && got == memory &&
              size == DATA,
          "detach");
    CHECK(MPI_Buffer_attach_c(memory + 3, DATA - 3) == MPI_SUCCESS, "attach");
    CHECK(MPI_Buffer_detach_c(&got, &wide) == MPI_SUCCESS &&
              got == memory + 3 && wide == DATA - 3,
          "detach from an odd address");
    CHECK(check_class(MPI_Buffer_attach(memory, -1)) != MPI_SUCCESS,
          "a negative size");

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    CHECK(MPI_Comm_attach_buffer(comm, memory, DATA) == MPI_SUCCESS, "comm");
    CHECK(MPI_Comm_attach_buffer(comm, memory, 1) != MPI_SUCCESS, "comm twice");
    CHECK(MPI_Comm_attach_buffer_c(MPI_COMM_SELF, memory, 0) == MPI_SUCCESS,
          "no bytes");
    CHECK(MPI_Comm_detach_buffer_c(MPI_COMM_SELF, &got, &wide) == MPI_SUCCESS &&
              got == memory && wide == 0,
          "no bytes");
    CHECK(MPI_Comm_detach_buffer(comm, &got, &size) == MPI_SUCCESS &&
              got == memory && size == DATA,
          "comm");
    CHECK(check_class(MPI_Buffer_detach(NULL, &size)) == MPI_ERR_ARG &&
              check_class(MPI_Comm_detach_buffer(comm, NULL, &size)) ==
                  MPI_ERR_ARG,
          "its address to nowhere");
    CHECK(check_class(MPI_Buffer_attach(NULL, 100)) == MPI_ERR_BUFFER,
          "100 bytes nowhere");
    CHECK(MPI_Buffer_attach(NULL, 0) == MPI_SUCCESS, "nothing");
    CHECK(check_class(MPI_Bsend(&size, 1, MPI_INT, 0, 1, MPI_COMM_SELF)) ==
              MPI_ERR_BUFFER,
          "a message fits into no bytes");
    CHECK(MPI_Buffer_detach(&got, &size) == MPI_SUCCESS && !got && size == 0,
          "detach nothing");
    /* The size is of no significance then (MPI 5.0, section 3.6.1). */
    CHECK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, -5) == MPI_SUCCESS,
          "automatic with any size");
    got = NULL;
    CHECK(MPI_Buffer_detach(&got, &size) == MPI_SUCCESS &&
              got == MPI_BUFFER_AUTOMATIC,
          "automatic");
    CHECK(MPI_Comm_attach_buffer_c(comm, MPI_BUFFER_AUTOMATIC, 0) ==
              MPI_SUCCESS,
          "automatic");
    CHECK(MPI_Comm_detach_buffer_c(comm, &got, &wide) == MPI_SUCCESS &&
              got == MPI_BUFFER_AUTOMATIC,
          "automatic");
    MPI_Comm_free(&comm);
    free(memory);
}

/* Messages stay in the buffer until they are received: more than fit fail. */
static void fill(MPI_Comm comm, int rank, size_t each)
{
    char *in = check_alloc(each);
    char *out = check_alloc(each);
    int sent = 0;

    check_fill(out, each, 1);
    while (sent < 1000 &&
           MPI_Bsend(out, (int)each, MPI_BYTE, rank, 4, comm) == MPI_SUCCESS)
        sent++;
    CHECK(sent >= DATA / (int)(each + MPI_BSEND_OVERHEAD),
          "only %d messages fit", sent);
    for (int i = 0; i < sent; i++) {
        MPI_Recv(in, (int)each, MPI_BYTE, rank, 4, comm, MPI_STATUS_IGNORE);
        CHECK(check_differs(in, each, 1) == SIZE_MAX, "message %d", i);
    }
    CHECK(MPI_Bsend(out, (int)each, MPI_BYTE, rank, 4, comm) == MPI_SUCCESS,
          "the buffer is not empty again");
    MPI_Recv(in, (int)each, MPI_BYTE, rank, 4, comm, MPI_STATUS_IGNORE);
    free(in);
    free(out);
}

/* A communicator with a buffer never takes the process's, which is larger. */
static void take_the_right_one(MPI_Comm comm)
{
    char *small = check_alloc(600);
    char *large = check_alloc(DATA);
    char data[1000] = "";
    void *got;
    int size;

    CHECK(check_class(MPI_Bsend(data, 1, MPI_BYTE, 0, 4, comm)) ==
              MPI_ERR_BUFFER,
          "without a buffer");
    MPI_Buffer_attach(large, DATA);
    MPI_Comm_attach_buffer(comm, small, 600);
    CHECK(check_class(MPI_Bsend(data, 1000, MPI_BYTE, 0, 4, comm)) ==
              MPI_ERR_BUFFER,
          "taken from the process's buffer");
    CHECK(MPI_Bsend(data, 88, MPI_BYTE, 0, 4, comm) == MPI_SUCCESS,
          "88 bytes and MPI_BSEND_OVERHEAD");
    CHECK(MPI_Bsend(data, 1000, MPI_BYTE, 0, 5, MPI_COMM_SELF) == MPI_SUCCESS,
          "another communicator");
    MPI_Recv(data, 1000, MPI_BYTE, 0, 4, comm, MPI_STATUS_IGNORE);
    MPI_Recv(data, 1000, MPI_BYTE, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Comm_detach_buffer(comm, &got, &size);
    CHECK(got == small && size == 600, "detached");
    CHECK(MPI_Bsend(data, 1000, MPI_BYTE, 0, 4, comm) == MPI_SUCCESS,
          "back to the process's buffer");
    MPI_Recv(data, 1000, MPI_BYTE, 0, 4, comm, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&got, &size);
    free(small);
    free(large);
}

/* 1 waits with messages that 0 has buffered until 0 has told it. */
static void flushed(MPI_Comm comm, bool is_automatic)
{
    size_t each = 300;
    char *memory = check_alloc(COUNT * (each + MPI_BSEND_OVERHEAD));
    char *data = check_alloc(each);
    MPI_Request requests[2];
    int flags[2] = {0, 0};
    void *got = NULL;
    int size;
    int go = 0;
    int me;

    MPI_Comm_rank(comm, &me);
    if (me == 0) {
        MPI_Comm_attach_buffer(comm,
                               is_automatic ? MPI_BUFFER_AUTOMATIC : memory,
                               (int)(COUNT * (each + MPI_BSEND_OVERHEAD)));
        CHECK(MPI_Comm_flush_buffer(comm) == MPI_SUCCESS, "flush nothing");
        for (int i = 0; i < COUNT; i++) {
            check_fill(data, each, (uint64_t)i);
            CHECK(MPI_Bsend(data, (int)each, MPI_BYTE, 1, 6, comm) ==
                      MPI_SUCCESS,
                  "send %d", i);
        }
        CHECK(MPI_Comm_iflush_buffer(comm, &requests[0]) == MPI_SUCCESS,
              "iflush");
        CHECK(MPI_Comm_iflush_buffer(comm, &requests[1]) == MPI_SUCCESS,
              "iflush");
        MPI_Testall(2, requests, flags, MPI_STATUSES_IGNORE);
        MPI_Send(&go, 1, MPI_INT, 1, 7, comm);
        if (!flags[0])
            CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS,
                  "wait for the flushes");
        CHECK(MPI_Comm_flush_buffer(comm) == MPI_SUCCESS, "flush");
        if (!is_automatic) {
            memset(memory, 0xee, COUNT * (each + MPI_BSEND_OVERHEAD));
            for (int i = 0; i < 5; i++)
                MPI_Bsend(data, (int)each, MPI_BYTE, 1, 8, comm);
        }
        MPI_Comm_detach_buffer(comm, &got, &size); /* waits */
        CHECK(got == (is_automatic ? MPI_BUFFER_AUTOMATIC : memory),
              "detached");
        memset(memory, 0xdd, COUNT * (each + MPI_BSEND_OVERHEAD));
    } else if (me == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            MPI_Recv(data, (int)each, MPI_BYTE, 0, 6, comm, MPI_STATUS_IGNORE);
            CHECK(check_differs(data, each, (uint64_t)i) == SIZE_MAX,
                  "message %d", i);
        }
        for (int i = 0; i < 5 && !is_automatic; i++) {
            MPI_Recv(data, (int)each, MPI_BYTE, 0, 8, comm, MPI_STATUS_IGNORE);
            CHECK(check_differs(data, each, COUNT - 1) == SIZE_MAX,
                  "message after the flush");
        }
    }
    MPI_Barrier(comm);
    free(memory);
    free(data);
}

/* A buffer goes with its communicator: it is given to no later one. */
static void freed_with(MPI_Comm parent)
{
    enum { COMMS = 30, EACH = 1000 };
    MPI_Comm comms[COMMS];
    MPI_Request request;
    char *memory = check_alloc(COMMS * EACH);
    char *expected = check_alloc(COMMS * EACH);
    int rank;
    int value = 7;
    int got = 0;

    MPI_Comm_rank(parent, &rank);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(parent, &comms[i]);
        MPI_Comm_attach_buffer(comms[i], memory + (size_t)i * EACH, EACH);
        MPI_Irecv(&got, 1, MPI_INT, rank, 1, comms[i], &request);
        MPI_Bsend(&value, 1, MPI_INT, rank, 1, comms[i]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(got == 7, "got %d", got);
    }
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    memset(memory, 0x5a, COMMS * EACH);
    memset(expected, 0x5a, COMMS * EACH);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(parent, &comms[i]);
        CHECK(check_class(MPI_Bsend(&value, 1, MPI_INT, MPI_PROC_NULL, 1,
                                    comms[i])) == MPI_SUCCESS,
              "to nobody");
        CHECK(check_class(MPI_Bsend(&value, 1, MPI_INT, rank, 1, comms[i])) ==
                  MPI_ERR_BUFFER,
              "a new communicator has the buffer of a freed one");
    }
    CHECK(memcmp(memory, expected, COMMS * EACH) == 0, "it is written to");
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    free(memory);
    free(expected);
}

/* MPI_Comm_free waits for nobody: what was begun before goes on, be it that
 * a message is taken only then, that a receive starts, or that another
 * message goes into the buffer of the communicator that is freed. */
static void freed_while_full(MPI_Comm parent)
{
    enum { LEN = 2000000 };
    static char memory[2 * (LEN + MPI_BSEND_OVERHEAD)]; /* never detached */
    MPI_Comm comm;
    MPI_Request requests[3];
    MPI_Message message;
    char *data = check_alloc(LEN);
    int rank;
    int value = 5;
    int got = 0;

    MPI_Comm_rank(parent, &rank);
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_attach_buffer(comm, memory, (int)sizeof(memory));
    MPI_Recv_init(data, LEN, MPI_BYTE, !rank, 1, comm, &requests[0]);
    MPI_Recv_init(&got, 1, MPI_INT, !rank, 3, comm, &requests[1]);
    MPI_Bsend_init(&value, 1, MPI_INT, !rank, 3, comm, &requests[2]);
    for (int tag = 1; tag <= 2; tag++) {
        check_fill(data, LEN, (unsigned)tag);
        MPI_Bsend(data, LEN, MPI_BYTE, !rank, tag, comm);
    }
    MPI_Mprobe(!rank, 2, comm, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Mrecv(data, LEN, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(check_differs(data, LEN, 2) == SIZE_MAX, "other data: 2");
    MPI_Startall(3, requests);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(check_differs(data, LEN, 1) == SIZE_MAX, "other data: 1");
    CHECK(got == 5, "got %d", got);
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
    free(data);
}

static void of_a_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Request request;
    char *memory = check_alloc(DATA);
    char data[100];
    void *got;
    int size;
    MPI_Count wide;
    int me;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL,
                               MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &me);
    CHECK(MPI_Session_attach_buffer(session, memory, DATA) == MPI_SUCCESS,
          "session");
    CHECK(MPI_Session_attach_buffer_c(session, memory, DATA) != MPI_SUCCESS,
          "session twice");
    memset(data, 5, sizeof(data));
    CHECK(MPI_Bsend(data, 100, MPI_BYTE, 0, 1, comm) == MPI_SUCCESS,
          "bsend in a session");
    CHECK(check_class(MPI_Bsend(data, 100, MPI_BYTE, 0, 1, MPI_COMM_SELF)) ==
              MPI_ERR_BUFFER,
          "the world takes the session's buffer");
    MPI_Session_iflush_buffer(session, &request);
    memset(data, 0, sizeof(data));
    MPI_Recv(data, 100, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
    CHECK(data[99] == 5, "data");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(MPI_Session_flush_buffer(session) == MPI_SUCCESS, "flush");
    MPI_Session_detach_buffer(session, &got, &size);
    CHECK(got == memory && size == DATA, "detach");
    MPI_Session_attach_buffer_c(session, MPI_BUFFER_AUTOMATIC, 0);
    MPI_Bsend(data, 100, MPI_BYTE, 0, 1, comm);
    MPI_Recv(data, 100, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
    MPI_Session_detach_buffer_c(session, &got, &wide);
    CHECK(got == MPI_BUFFER_AUTOMATIC, "automatic");
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
    free(memory);
}

static void of_the_process(void)
{
    char *memory = check_alloc(DATA);
    MPI_Request request;
    MPI_Request send;
    MPI_Status status;
    void *got;
    int size;
    int value = 3;
    int in = 0;

    MPI_Buffer_attach(memory, DATA);
    fill(MPI_COMM_SELF, 0, 700);
    MPI_Ibsend(&value, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &send);
    MPI_Buffer_iflush(&request);
    MPI_Wait(&send, &status);
    MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    CHECK(in == 3 && status.MPI_SOURCE == MPI_ANY_SOURCE &&
              status.MPI_TAG == MPI_ANY_TAG,
          "status of a flush");
    CHECK(MPI_Buffer_flush() == MPI_SUCCESS, "flush");
    MPI_Bsend_init(&value, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &send);
    for (int i = 0; i < 100; i++) {
        value = i;
        MPI_Start(&send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        value = -1;
        MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        CHECK(in == i, "persistent: %d", in);
    }
    MPI_Request_free(&send);
    MPI_Buffer_detach(&got, &size);
    free(memory);
}

static void *bsend_many(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;

    for (int i = 0; i < 300; i++) {
        int in = -1;

        CHECK(MPI_Bsend(&i, 1, MPI_INT, 0, 9, comm) == MPI_SUCCESS, "bsend");
        MPI_Recv(&in, 1, MPI_INT, 0, 9, comm, MPI_STATUS_IGNORE);
        CHECK(in == i, "%d, not %d", in, i);
        if (i % 50 == 0)
            MPI_Buffer_flush();
    }
    return NULL;
}

static void by_threads(void)
{
    pthread_t threads[4];
    MPI_Comm comms[4];
    char *memory = check_alloc(DATA);
    void *got;
    int size;

    MPI_Buffer_attach(memory, DATA);
    for (int i = 0; i < 4; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
        CHECK_OR_DIE(!pthread_create(&threads[i], NULL, bsend_many, &comms[i]),
                     "thread");
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&comms[i]);
    }
    MPI_Buffer_detach(&got, &size);
    CHECK(got == memory, "detach");
    free(memory);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    attach_and_detach();
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    take_the_right_one(comm);
    MPI_Comm_free(&comm);
    of_the_process();
    of_a_session();
    by_threads();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    freed_with(comm);
    freed_while_full(comm);
    flushed(comm, false);
    flushed(comm, true);
    MPI_Comm_free(&comm);
    return check_finish();
}
