/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that runs out of memory while communicators are made: nobody waits for
 * it for ever, whoever gets no communicator gets an error, and the next call is
 * right again. Each call, with each rank refused each of its pieces of memory.
 *
 * usage: comms_starved [cross: also two calls, in one order and in the other]
 */
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { PIECES = 20, RANKS_MAX = 64 };

static MPI_Comm world; /* a duplicate: errors are returned */
static MPI_Comm inter; /* between its halves */
static MPI_Comm ring;  /* a grid of all */

static int is_high(void)
{
    return check_rank() >= check_size() / 2;
}

static int dup(MPI_Comm *made)
{
    return MPI_Comm_dup(world, made);
}

static int idup_of(MPI_Comm comm, MPI_Comm *made)
{
    MPI_Request request;
    int code = MPI_Comm_idup(comm, made, &request);
    int late;

    if (code)
        return code;
    late = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (late) { /* there is one, of no use */
        MPI_Comm_free(made);
        *made = MPI_COMM_NULL;
    }
    return late;
}

static int idup(MPI_Comm *made)
{
    return idup_of(world, made);
}

static int split(MPI_Comm *made)
{
    return MPI_Comm_split(world, check_rank() % 2, -check_rank(), made);
}

static int split_type(MPI_Comm *made)
{
    return MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                               made);
}

static int create(MPI_Comm *made)
{
    MPI_Group group;
    int code;

    MPI_Comm_group(inter, &group);
    code = MPI_Comm_create(inter, group, made);
    MPI_Group_free(&group);
    return code;
}

static int create_group(MPI_Comm *made)
{
    MPI_Group group;
    int code;

    MPI_Comm_group(world, &group);
    code = MPI_Comm_create_group(world, group, 3, made);
    MPI_Group_free(&group);
    return code;
}

static int dup_inter(MPI_Comm *made)
{
    return MPI_Comm_dup(inter, made);
}

static int idup_inter(MPI_Comm *made)
{
    return idup_of(inter, made);
}

static int split_inter(MPI_Comm *made)
{
    return MPI_Comm_split(inter, 1, -check_rank(), made);
}

static int merge(MPI_Comm *made)
{
    return MPI_Intercomm_merge(inter, is_high(), made);
}

/* Topologies: a ring of all, which may be in another order on several nodes. */

static int cart(MPI_Comm *made)
{
    int size = check_size();
    int is_ring = 1;

    return MPI_Cart_create(world, 1, &size, &is_ring, 1, made);
}

static int cart_sub(MPI_Comm *made)
{
    int remains = 1;

    return MPI_Cart_sub(ring, &remains, made);
}

static int graph(MPI_Comm *made)
{
    int indices[RANKS_MAX];
    int edges[RANKS_MAX];

    for (int i = 0; i < check_size(); i++) {
        indices[i] = i + 1;
        edges[i] = (i + 1) % check_size();
    }
    return MPI_Graph_create(world, check_size(), indices, edges, 1, made);
}

static int dist_graph(MPI_Comm *made)
{
    int before = (check_rank() + check_size() - 1) % check_size();
    int after = (check_rank() + 1) % check_size();

    return MPI_Dist_graph_create_adjacent(world, 1, &before, MPI_UNWEIGHTED, 1,
                                          &after, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                          1, made);
}

static int dist_graph_told(MPI_Comm *made)
{
    int me = check_rank();
    int degree = 1;
    int after = (me + 1) % check_size();

    return MPI_Dist_graph_create(world, 1, &me, &degree, &after, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 1, made);
}

static int (*const calls[])(MPI_Comm *made) = {
    dup,          idup,      split,      split_type,  create,
    create_group, dup_inter, idup_inter, split_inter, merge,
    cart,         cart_sub,  graph,      dist_graph,  dist_graph_told};

/* One of all members can be used. */
static void use(MPI_Comm comm)
{
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

static void check_next(int (*call)(MPI_Comm *made))
{
    MPI_Comm made = MPI_COMM_NULL;

    CHECK_OR_DIE(!call(&made) && made != MPI_COMM_NULL, "the next call");
    use(made);
}

/* Whether anything was refused. */
static bool starve(int (*call)(MPI_Comm *made), int who, int piece)
{
    MPI_Comm made = MPI_COMM_NULL;
    int has[2];
    int code;

    (void)starve_refused();
    if (check_rank() == who)
        starve_one(piece);
    code = call(&made);
    starve_end();
    CHECK((made == MPI_COMM_NULL) == (code != MPI_SUCCESS), "code %d", code);
    has[0] = check_rank() == who && starve_refused() > 0;
    has[1] = !code;
    CHECK(check_rank() != who || has[0] || !code,
          "an error without a reason: %d", check_class(code));
    if (code)
        CHECK(check_class(code) == MPI_ERR_NO_MEM ||
                  check_class(code) == MPI_ERR_COUNT,
              "class %d", check_class(code));
    MPI_Allreduce(MPI_IN_PLACE, has, 2, MPI_INT, MPI_SUM, world);
    if (has[1] == check_size())
        use(made);
    else if (made != MPI_COMM_NULL)
        MPI_Comm_free(&made);
    check_next(call);
    return has[0] > 0;
}

/* MPI_Comm_idup without memory returns before the others have called. */
static void fail_at_once(MPI_Comm comm)
{
    MPI_Comm made = MPI_COMM_NULL;

    if (check_rank() == 0) {
        starve_one(0);
        CHECK(check_class(idup_of(comm, &made)) == MPI_ERR_NO_MEM, "no error");
        starve_end();
        for (int peer = 1; peer < check_size(); peer++)
            MPI_Send(NULL, 0, MPI_CHAR, peer, 0, world);
        return;
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, 0, world, MPI_STATUS_IGNORE);
    CHECK(check_class(idup_of(comm, &made)) == MPI_ERR_NO_MEM, "no error");
}

/* The id that the next communicator gets. */
static uint32_t find_next_id(void)
{
    MPI_Comm made;
    uint32_t id;

    MPI_Comm_dup(world, &made);
    id = chempi_comm_lookup(made)->recv_context;
    MPI_Comm_free(&made);
    return id;
}

/* Two that fail everywhere, in one order here and in the other one there: each
 * is waited for by somebody who has not come to the other one. */
static void fail_crosswise(void)
{
    enum { WHILE = 60 };
    MPI_Comm comms[2] = {world, MPI_COMM_NULL};
    MPI_Comm made = MPI_COMM_NULL;

    MPI_Comm_dup(world, &comms[1]);
    MPI_Comm_set_errhandler(comms[1], MPI_ERRORS_RETURN);
    MPI_Barrier(world);
    starve_some(0, WHILE);
    for (int i = 0; i < 2; i++)
        CHECK(check_class(idup_of(comms[(i + check_rank()) % 2], &made)) ==
                  MPI_ERR_NO_MEM,
              "no error");
    starve_end();
    MPI_Comm_free(&comms[1]);
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    uint32_t id;
    int refused = 0;

    starve_start((struct starve_sizes){1, 0});
    check_start(&argc, &argv);
    check_need(4);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_split(world, is_high(), 0, &half);
    MPI_Intercomm_create(half, 0, world, is_high() ? 0 : check_size() / 2, 1,
                         &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_OR_DIE(check_size() <= RANKS_MAX && !cart(&ring), "no grid");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (int who = 0; who < check_size(); who++)
            for (int piece = 0; piece < PIECES; piece++)
                refused += starve(calls[i], who, piece);
    CHECK(refused > 0, "there was always memory");
    id = find_next_id();
    fail_at_once(world);
    CHECK(find_next_id() == id, "an id is lost");
    fail_at_once(inter);
    if (argc > 1)
        fail_crosswise();
    check_next(idup);
    check_next(idup_inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&world);
    return check_finish();
}
