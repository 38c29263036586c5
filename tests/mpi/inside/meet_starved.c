/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs meet while a rank of the one that accepts is refused a piece of the
 * memory that it takes: all of both jobs get the communicator, or none does,
 * and nobody waits for ever. Then they meet as if nothing had been.
 *
 * inside-meet_starved accept|connect FIFO
 */

#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

/* What lists take; devices, which a message would be lost without, less. */
enum { LEAST = 1000, PIECES = 14 };

static MPI_Comm comm; /* a duplicate: errors are returned */

/* The sum over both jobs is that of all their ranks. */
static void use(MPI_Comm inter, int accepts)
{
    MPI_Comm both;
    int size, remote, sum = 1;

    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Intercomm_merge(inter, accepts, &both);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK(sum == size + remote, "%d ranks", sum);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
}

/* Whether all have it; none has if not. */
static int have_all(int code, MPI_Comm inter)
{
    int has = code == MPI_SUCCESS, all;

    CHECK(has == (inter != MPI_COMM_NULL), "code %d", code);
    chempi_lane_lock(&chempi_lane_main);
    CHECK(!chempi_foreign_check(), "%s", chempi_foreign_check());
    chempi_lane_unlock(&chempi_lane_main);
    MPI_Allreduce(&has, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_OR_DIE(all == 0 || all == check_size(), "%d of %d have it", all,
                 check_size());
    return all > 0;
}

/* Until it has come to be, which it has for both jobs at the same time. */
static void meet(int accepts, const char *name, int who, int piece)
{
    for (int tries = 0;; tries++) {
        MPI_Comm inter = MPI_COMM_NULL;
        int code;

        if (accepts && tries == 0 && check_rank() == who)
            starve_one(piece);
        code = accepts ? MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter)
                       : MPI_Comm_connect(name, MPI_INFO_NULL, 0, comm, &inter);
        starve_end();
        CHECK_OR_DIE(tries < 3, "no end: code %d", check_class(code));
        if (have_all(code, inter)) {
            use(inter, accepts);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    int accepts, refused, all;

    starve_start((struct starve_sizes){LEAST, 0});
    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 3 && check_size() == 3,
                 "accept|connect FIFO, 3 ranks");
    accepts = argv[1][0] == 'a';
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    MPI_Bcast(name, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int who = 0; who < check_size(); who++)
        for (int piece = 0; piece < PIECES; piece++)
            meet(accepts, name, who, piece);
    refused = starve_refused();
    MPI_Allreduce(&refused, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK((all > 0) == accepts, "%d pieces were refused", all);
    MPI_Comm_free(&comm);
    if (accepts && check_rank() == 0)
        MPI_Close_port(name);
    return check_finish();
}
