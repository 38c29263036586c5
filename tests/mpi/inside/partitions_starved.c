/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A partitioned receive that is started without memory for the receives of all
 * partitions posts the others when there is: each round has its own data.
 */
#include "libchempi/didl/transport/request.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { PARTS = 12, LEN = 1000, TIMES = 3, ROUNDS = 2 * PARTS };

static char data[PARTS * LEN];

/* Every other one has memory for some partitions only. */
static int go_round(MPI_Request *request, uint64_t round)
{
    int rc;

    if (check_rank() == 0) {
        check_fill(data, sizeof(data), round);
        MPI_Start(request);
        MPI_Pready_range(0, PARTS - 1, *request);
        return MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    if (round % 2 == 0)
        starve_some((int)round / 2, TIMES);
    rc = MPI_Start(request);
    if (!rc)
        rc = MPI_Wait(request, MPI_STATUS_IGNORE);
    starve_end();
    CHECK(check_differs(data, sizeof(data), round) == SIZE_MAX,
          "round %d has other data", (int)round);
    return rc;
}

int main(int argc, char **argv)
{
    MPI_Request request;
    uint64_t round = 0;

    starve_start(
        (struct starve_sizes){SIZE_MAX, sizeof(struct chempi_request)});
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (check_rank() == 0)
        MPI_Psend_init(data, PARTS, LEN, MPI_CHAR, 1, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, PARTS, LEN, MPI_CHAR, 0, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (; round < ROUNDS; round++) {
        const int rc = go_round(&request, round);

        CHECK(rc == MPI_SUCCESS, "round %d: class %d", (int)round,
              check_class(rc));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(check_rank() == 0 || starve_refused() > 0, "there was memory");
    MPI_Request_free(&request);
    return check_finish();
}
