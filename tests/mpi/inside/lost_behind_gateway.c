/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank dies while what it has sent lies in front of a gateway that gets no
 * processor (chempirun --survive). Whoever hears of that meanwhile goes on
 * waiting: all that had been sent whole is received when the gateway goes on,
 * and what was only announced ends with an error. With "new" the two have never
 * spoken before; with "killed N" gateway N does not go on, but ends.
 */
#include <stdlib.h>

#include "libchempi/didl/transport/conn.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/gateways.h"
#include "tests/mpi/inside/last_words.h"

enum { HELLO = LAST_WORDS_TAGS, NEVER };
enum { POLLS = 256 };
#define POLLING_S 0.05

/* When it returns at `from`, it has come. */
static void greet(int from, int to)
{
    if (check_rank() == from)
        MPI_Ssend(NULL, 0, MPI_CHAR, to, HELLO, MPI_COMM_WORLD);
    else if (check_rank() == to)
        MPI_Recv(NULL, 0, MPI_CHAR, from, HELLO, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Wait for the first message until the other one is known to be dead, and then
 * for a while. */
static MPI_Request hear_of_it(void)
{
    MPI_Request first;
    double heard = 0;
    int is_there = 0;
    int polls = 0;

    MPI_Irecv(last_words_data, LAST_WORDS_LEN_MAX, MPI_CHAR, 1, 0,
              MPI_COMM_WORLD, &first);
    while (!is_there && (polls < POLLS || MPI_Wtime() - heard < POLLING_S)) {
        MPI_Request_get_status(first, &is_there, MPI_STATUS_IGNORE);
        polls += chempi_conn_missing_count() > 0;
        if (polls <= 1)
            heard = MPI_Wtime();
    }
    CHECK(!is_there, "what was under way was not waited for");
    return first;
}

/* victim: number of a gateway, or -1. */
static void receive_all(int victim)
{
    const bool is_killed = victim >= 0;
    MPI_Request first = hear_of_it();
    int received = 0;
    int code;

    if (is_killed)
        gateways_kill(victim);
    gateways_go_on();
    for (int i = 0; i < LAST_WORDS; i++) {
        code = i ? last_words_receive(i)
                 : check_class(MPI_Wait(&first, MPI_STATUS_IGNORE));
        CHECK(code == MPI_SUCCESS ? last_words_are(i)
                                  : is_killed && code == MPI_ERR_PROC_ABORTED,
              "message %d: class %d, %d", i, code, last_words_data[0]);
        received += code == MPI_SUCCESS;
    }
    code = last_words_receive(LAST_WORDS_LONG);
    CHECK(code == MPI_ERR_PROC_ABORTED, "class %d of what was announced", code);
    code = last_words_receive(NEVER);
    CHECK(code == MPI_ERR_PROC_ABORTED, "class %d of nothing", code);
    if (received == LAST_WORDS || is_killed)
        puts("all has ended");
}

int main(int argc, char **argv)
{
    bool is_new;
    int victim;
    int rank;

    check_start(&argc, &argv);
    check_need(4);
    rank = check_rank();
    is_new = argc > 1 && strcmp(argv[1], "new") == 0;
    victim = argc > 2 && strcmp(argv[1], "killed") == 0 ? atoi(argv[2]) : -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    gateways_find(victim < 0 ? 1 : 2);
    if (!is_new)
        greet(1, 0);
    greet(1, 2);
    if (rank == 1) {
        gateways_stop();
        last_words_send();
        last_words_die();
    }
    if (rank == 0)
        receive_all(victim);
    greet(3, 0);
    return check_finish();
}
