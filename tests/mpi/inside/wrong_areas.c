/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 tells rank 1 the number of an area that was not taken for their
 * communicator, or of none: rank 1 does without, and nobody else's area is any
 * the worse for it. In the first operation of a communicator, which blocks or
 * does not, and where a persistent operation is made.
 *
 * Linked with a chempi_coll_node_take() that lies.
 */
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "tests/mpi/check.h"

enum { OWN_AREA = CHEMPI_NODE_COMM_AREAS, NO_AREA = 2 * OWN_AREA };

static int32_t lie; /* at rank 0 */

int32_t __wrap_chempi_coll_node_take(const struct chempi_comm *comm);

int32_t __wrap_chempi_coll_node_take(const struct chempi_comm *comm)
{
    return comm->rank == 0 ? lie : -1;
}

static void bcast_by_messages(struct chempi_comm *comm, int root, void *data,
                              MPI_Count len)
{
    struct chempi_coll_sched s;
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BCAST,
                                 .comm = comm,
                                 .root = root,
                                 .recv.buf = data,
                                 .recv.count = len,
                                 .recv.type = chempi_coll_byte()};

    chempi_coll_sched_init(&s, comm, chempi_coll_next_tag(comm));
    chempi_coll_build_bcast(&s, &c);
    CHECK_OR_DIE(!chempi_coll_run(&s), "a broadcast by messages");
    chempi_coll_sched_fini(&s);
}

static void check_has_none(MPI_Comm comm, const char *where)
{
    const struct chempi_coll_state *st = chempi_comm_lookup(comm)->coll;

    CHECK_OR_DIE(st && chempi_coll_node_stage(st) == CHEMPI_NODE_MESSAGES,
                 "rank 1 believes in area %d, %s", st ? st->area : -1, where);
}

/* What MPI_Bcast from rank 1 would do at rank 0. */
static void lie_in_bcast(struct chempi_comm *comm, int *n)
{
    struct chempi_comm_channel ch;
    int64_t is_missing = 0;

    bcast_by_messages(comm, 0, &lie, sizeof(lie));
    ch = chempi_comm_channel(comm);
    CHECK_OR_DIE(!chempi_comm_max(&ch, MPI_SUCCESS, &is_missing, 1),
                 "all say what they have");
    bcast_by_messages(comm, 1, n, sizeof(*n));
}

static void try_bcast(void)
{
    int n = check_rank() ? 7 : 0;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (check_rank() == 0) {
        lie_in_bcast(chempi_comm_lookup(comm), &n);
    } else {
        MPI_Bcast(&n, 1, MPI_INT, 1, comm);
        check_has_none(comm, "MPI_Bcast");
    }
    CHECK(n == 7, "%d has come", n);
    MPI_Comm_free(&comm);
}

static void try_ibcast(void)
{
    int n = check_rank() ? 7 : 0;
    MPI_Request req;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ibcast(&n, 1, MPI_INT, 1, comm, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    check_has_none(comm, "MPI_Ibcast");
    CHECK(n == 7, "%d has come", n);
    MPI_Comm_free(&comm);
}

/* As in MPI_Bcast_init. */
static void try_own(MPI_Comm comm)
{
    struct chempi_comm *c = chempi_comm_lookup(comm);
    struct chempi_coll_state *own = chempi_coll_node_make_own(c);
    const int32_t right = own ? own->area : -1;
    int32_t area = right;
    bool has;

    CHECK_OR_DIE(own, "memory for a state");
    if (check_rank() == 0)
        area = lie;
    MPI_Bcast(&area, 1, MPI_INT32_T, 0, comm);
    has = chempi_coll_node_enter_own(c, own, check_rank() ? area : right);
    CHECK_OR_DIE(has == (check_rank() == 0),
                 "rank %d and area %d of a persistent operation", check_rank(),
                 area);
    if (check_rank() == 1)
        chempi_coll_node_leave_own(c, true);
    chempi_coll_node_release(own);
}

static int32_t area_of(MPI_Comm comm)
{
    const struct chempi_coll_state *st = chempi_comm_lookup(comm)->coll;

    CHECK_OR_DIE(st && chempi_coll_node_stage(st) == CHEMPI_NODE_MEMORY,
                 "a communicator has an area");
    return st->area;
}

/* Another communicator and a persistent operation go on with theirs. */
static void check_others(MPI_Comm other, MPI_Request *op)
{
    CHECK_OR_DIE(!MPI_Barrier(other) && !MPI_Barrier(MPI_COMM_WORLD),
                 "MPI_Barrier");
    CHECK_OR_DIE(!MPI_Start(op) && !MPI_Wait(op, MPI_STATUS_IGNORE),
                 "MPI_Start");
}

int main(int argc, char **argv)
{
    /* MPI_COMM_WORLD's, another communicator's, a persistent operation's, and
     * others. */
    int32_t lies[] = {0,       -1 /* see below */, OWN_AREA, NO_AREA - 1,
                      NO_AREA, INT32_MAX,          -1,       INT32_MIN};
    MPI_Request op;
    MPI_Comm other;

    check_start(&argc, &argv);
    check_need(2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Barrier(other);
    MPI_Barrier_init(other, MPI_INFO_NULL, &op);
    lies[1] = area_of(other);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        lie = lies[i];
        try_bcast();
        try_ibcast();
        try_own(other);
        check_others(other, &op);
    }
    MPI_Request_free(&op);
    MPI_Comm_free(&other);
    return check_finish();
}
