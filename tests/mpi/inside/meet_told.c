/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs meet, whose ranks 0 have met before, and that of the one that
 * accepts loses the other one within the meeting, when the ranks of its job
 * have no bond with that world yet: all of them know of it afterwards, also who
 * is met for the first time is lost, and so is this job for the other one.
 *
 * inside-meet_told accept|connect FIFO
 */

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "tests/mpi/check.h"

typedef void take_in_fn(struct chempi_bond *bond);
take_in_fn __real_chempi_foreign_take_in;
take_in_fn __wrap_chempi_foreign_take_in;

static bool loses; /* who is known in the next bond */

/* All have prepared it: nobody asks any more who was lost before. */
void __wrap_chempi_foreign_take_in(struct chempi_bond *bond)
{
    const uint32_t *indexes = chempi_foreign_indexes(bond);

    for (uint32_t i = 0; loses && i < bond->size; i++)
        if (indexes[i] != UINT32_MAX && chempi_foreign_is(indexes[i]))
            chempi_conn_set_lost(&chempi_lane_main, indexes[i],
                                 "the test says so");
    __real_chempi_foreign_take_in(bond);
}

static MPI_Comm meet(int accepts, const char *name, MPI_Comm comm)
{
    MPI_Comm inter;

    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, comm, &inter);
    return inter;
}

static void wait_in_vain(MPI_Comm inter, int source)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int none, len;
    int rc = MPI_Recv(&none, 1, MPI_INT, source, 0, inter, MPI_STATUS_IGNORE);

    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "from %d: class %d", source,
          check_class(rc));
    MPI_Error_string(rc, words, &len);
    CHECK(strstr(words, " is lost, and its world with it: "), "%s", words);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int accepts;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 3, "accept|connect FIFO");
    accepts = argv[1][0] == 'a';
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (check_rank() == 0) {
        inter = meet(accepts, name, MPI_COMM_SELF);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, 0, NULL, 0, MPI_BYTE, 0, 0, inter,
                     MPI_STATUS_IGNORE);
        MPI_Comm_free(&inter);
    }
    loses = accepts && check_rank() == 0;
    inter = meet(accepts, name, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    wait_in_vain(inter, MPI_ANY_SOURCE);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody has called by now */
    wait_in_vain(inter, 1);
    MPI_Comm_disconnect(&inter);
    return check_finish();
}
