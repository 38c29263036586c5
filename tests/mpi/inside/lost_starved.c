/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank dies whose last messages the other one has no memory for, also not
 * when it hears of that (chempirun --survive): all that had been sent whole is
 * found by probes and received, and what was only announced ends with an error.
 * With an argument, also when it has gone on sending to the dead one meanwhile.
 */
#include <stdint.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/match.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/last_words.h"
#include "tests/mpi/inside/starve.h"

enum { GO = LAST_WORDS_TAGS, NEVER, SENT, DIE };
enum { POLLS = 2000, TAKEN_MAX = 3, REFUSALS = 50 };
#define POLLING_S 3.0  /* where cores are crowded: well within the patience */
#define SENDING_S 1e-4 /* from one that is sent to the next, at least */

_Noreturn static void send_and_die(void)
{
    MPI_Recv(NULL, 0, MPI_CHAR, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    last_words_send();
    if (check_size() > 2) {
        MPI_Send(NULL, 0, MPI_CHAR, 2, SENT, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_CHAR, 0, DIE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    last_words_die();
}

/* A third rank on this node says that all is sent: it has passed the gateway,
 * since what that rank was told came through it later. */
static void let_it_send(void)
{
    MPI_Request is_sent = MPI_REQUEST_NULL;
    int is_there = false;

    if (check_size() > 2)
        MPI_Irecv(NULL, 0, MPI_CHAR, 2, SENT, MPI_COMM_WORLD, &is_sent);
    starve_all(0);
    MPI_Send(NULL, 0, MPI_CHAR, 1, GO, MPI_COMM_WORLD);
    while (!is_there) {
        starve_be_patient();
        MPI_Test(&is_sent, &is_there, MPI_STATUS_IGNORE);
    }
    if (check_size() > 2)
        MPI_Send(NULL, 0, MPI_CHAR, 1, DIE, MPI_COMM_WORLD);
}

static void pass_on(void)
{
    MPI_Recv(NULL, 0, MPI_CHAR, 1, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_CHAR, 0, SENT, MPI_COMM_WORLD);
}

/* Not as many as can be, or who is slow to take them would be to the end of the
 * time. */
static void send_nothing(double *sent)
{
    MPI_Request request;

    if (MPI_Wtime() - *sent < SENDING_S)
        return;
    *sent = MPI_Wtime();
    if (MPI_Isend(NULL, 0, MPI_CHAR, 1, GO, MPI_COMM_WORLD, &request) ==
        MPI_SUCCESS) /* else it is known to be dead */
        MPI_Request_free(&request);
}

/* Work, but receive nothing, until the other one is known to be gone, and then
 * for a while: to wait for memory takes none (but for news). */
static void hear_of_it(bool is_sending)
{
    MPI_Request never;
    int is_there;
    double heard = 0;
    double sent = 0;
    int polls = 0;
    int taken;

    MPI_Irecv(NULL, 0, MPI_CHAR, 0, NEVER, MPI_COMM_SELF, &never);
    while (polls < POLLS && (!polls || MPI_Wtime() - heard < POLLING_S)) {
        if (polls == 0)
            starve_be_patient();
        MPI_Test(&never, &is_there, MPI_STATUS_IGNORE);
        if (is_sending && polls == 0)
            send_nothing(&sent);
        polls += chempi_conn_missing_count() > 0;
        if (polls <= 1)
            heard = MPI_Wtime();
        if (polls == POLLS / 2)
            (void)starve_given();
    }
    taken = starve_given();
    CHECK(polls < POLLS || taken <= TAKEN_MAX, "%d pieces of memory were taken",
          taken);
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
}

/* Look for the last one, also when memory comes while this waits. */
static void probe(void)
{
    MPI_Status status;
    int len = -1;
    int is_there;
    int code = check_class(MPI_Iprobe(1, LAST_WORDS - 1, MPI_COMM_WORLD,
                                      &is_there, MPI_STATUS_IGNORE));

    CHECK(code == MPI_SUCCESS && !is_there, "class %d, found %d", code,
          is_there);
    starve_some(0, REFUSALS);
    code = check_class(MPI_Probe(1, LAST_WORDS - 1, MPI_COMM_WORLD, &status));
    if (code == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_CHAR, &len);
    CHECK(len == last_words_len(LAST_WORDS - 1), "class %d, %d bytes", code,
          len);
}

int main(int argc, char **argv)
{
    int received = 0;
    int code;

    starve_start((struct starve_sizes){SIZE_MAX, sizeof(struct chempi_held)});
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 1)
        send_and_die();
    if (check_rank() == 2) {
        pass_on();
        return check_finish();
    }
    let_it_send();
    hear_of_it(argc > 1);
    CHECK(starve_refused() > 0, "there was always memory");
    probe();
    for (int i = LAST_WORDS - 1; i >= 0; i--) {
        code = last_words_receive(i);
        CHECK(code == MPI_SUCCESS && last_words_are(i),
              "message %d: class %d, %d", i, code, last_words_data[0]);
        received += code == MPI_SUCCESS;
    }
    code = last_words_receive(LAST_WORDS_LONG);
    CHECK(code == MPI_ERR_PROC_ABORTED, "class %d of what was announced", code);
    code = last_words_receive(NEVER);
    CHECK(code == MPI_ERR_PROC_ABORTED, "class %d of nothing", code);
    code = check_class(MPI_Probe(1, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(code == MPI_ERR_PROC_ABORTED, "class %d of a probe", code);
    if (received == LAST_WORDS)
        puts("all was received");
    return check_finish();
}
