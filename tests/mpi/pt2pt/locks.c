/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With MPI_THREAD_MULTIPLE a call takes the library's lock once, however many
 * messages it completes, and not at all to wait for a short send. Counts how
 * often this thread names itself, as who has it.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>

enum { MESSAGES = 64 };

static _Thread_local int locks;

pthread_t pthread_self(void)
{
    static pthread_t (*real)(void);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_self");
    locks++;
    return real();
}

/* Receives, then sends, of messages to oneself; all of them complete. */
static void post(MPI_Request requests[2 * MESSAGES], int in[MESSAGES],
                 const int out[MESSAGES])
{
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
        MPI_Isend(&out[i], 1, MPI_INT, 0, i, MPI_COMM_SELF,
                  &requests[MESSAGES + i]);
    }
    for (int i = 0; i < 2 * MESSAGES; i++)
        for (int flag = 0; !flag;)
            MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
}

static void expect(int wanted, const char *what)
{
    CHECK(locks == wanted, "%s: locked %d times, not %d", what, locks, wanted);
}

int main(int argc, char **argv)
{
    MPI_Request requests[2 * MESSAGES];
    MPI_Status statuses[2 * MESSAGES];
    int in[MESSAGES] = {0};
    int out[MESSAGES];

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < MESSAGES; i++)
        out[i] = i + 1;
    post(requests, in, out);
    locks = 0;
    MPI_Waitall(2 * MESSAGES, requests, statuses);
    expect(1, "MPI_Waitall");
    for (int i = 0; i < MESSAGES; i++) {
        CHECK(in[i] == i + 1, "message %d is %d", i, in[i]);
        CHECK(statuses[i].MPI_TAG == i, "message %d has tag %d", i,
              statuses[i].MPI_TAG);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
    }
    post(requests, in, out);
    for (int i = 0; i < 2 * MESSAGES; i++) {
        locks = 0;
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        expect(i < MESSAGES ? 1 : 0, "MPI_Wait");
    }
    locks = 0;
    MPI_Isend(out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, requests);
    expect(1, "MPI_Isend");
    locks = 0;
    MPI_Recv(in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    expect(1, "MPI_Recv");
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    return check_finish();
}
