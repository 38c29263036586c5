/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that has no memory for what it keeps of a communicator has not taken
 * part in the first collective operation of that: the others wait until it
 * calls it again, and all are right. So does one that gets no further piece of
 * memory in it, or it takes part.
 */
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { PIECES = 6 };

static int barrier(MPI_Comm comm)
{
    return MPI_Barrier(comm);
}

static int bcast(MPI_Comm comm)
{
    int n = check_rank() == 0 ? 7 : 0;
    int code = MPI_Bcast(&n, 1, MPI_INT, 0, comm);

    CHECK(code || n == 7, "%d has come", n);
    return code;
}

static int allreduce(MPI_Comm comm)
{
    int n = 1;
    int code = MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, comm);

    CHECK(code || n == check_size(), "a sum of %d", n);
    return code;
}

static int (*const operations[])(MPI_Comm comm) = {barrier, bcast, allreduce};

static bool has_state(MPI_Comm comm)
{
    return chempi_comm_lookup(comm)->coll != NULL;
}

/* The first one and the next; true: this rank has not taken part at first. */
static bool run(int (*op)(MPI_Comm comm), int who, int pieces)
{
    bool is_absent;
    MPI_Comm comm;
    int code;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    (void)starve_refused();
    if (check_rank() == who)
        starve_one(pieces);
    code = op(comm);
    starve_end();
    is_absent = !has_state(comm);
    CHECK(!is_absent || check_class(code) == MPI_ERR_NO_MEM, "code %d", code);
    CHECK(!code || check_rank() != who || starve_refused() == 1,
          "an error without a reason: %d", code);
    if (is_absent)
        CHECK(op(comm) == MPI_SUCCESS, "in the others' first one");
    CHECK(op(comm) == MPI_SUCCESS, "the next one");
    MPI_Comm_free(&comm);
    return is_absent;
}

int main(int argc, char **argv)
{
    int absent = 0;

    starve_start((struct starve_sizes){sizeof(struct chempi_coll_state), 0});
    check_start(&argc, &argv);
    check_need(2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        for (int who = 0; who < check_size(); who++)
            for (int pieces = 0; pieces < PIECES; pieces++)
                absent += run(operations[i], who, pieces);
    CHECK(absent > 0, "it always had memory");
    return check_finish();
}
