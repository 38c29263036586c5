/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of one node, made in every way, are in a lane that is not the
 * first, and all members say the same; those of several nodes, and between
 * groups, are in the first. With an argument, all are.
 *
 * usage: lanes_chosen [first]
 */
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { TAG = 4 };

static bool is_first;

static bool is_of_one_node(MPI_Comm comm)
{
    MPI_Comm node;
    int size;
    int part;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &part);
    MPI_Comm_size(comm, &size);
    MPI_Comm_free(&node);
    return part == size;
}

/* Frees it. */
static void check_lane(MPI_Comm comm, const char *call, bool may_be)
{
    const bool is_other = may_be && is_of_one_node(comm) && !is_first;
    int mine = (int)chempi_comm_lookup(comm)->lane->number;
    int least = -1;
    int most = -1;

    MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm);
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, comm);
    CHECK(least == most && (mine > 0) == is_other,
          "%s: lane %d, of others %d to %d", call, mine, least, most);
    MPI_Comm_free(&comm);
}

/* Those who are done send before rank 0 knows in which lane it is. */
static void get_ahead(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int got = -1;

    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    if (check_rank() > 0) {
        const int rank = check_rank();

        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, TAG, comm);
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    } else {
        for (int i = 1; i < check_size(); i++)
            MPI_Recv(NULL, 0, MPI_BYTE, i, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 1; i < check_size(); i++) {
            MPI_Recv(&got, 1, MPI_INT, i, TAG, comm, MPI_STATUS_IGNORE);
            CHECK(got == i, "from rank %d: %d", i, got);
        }
    }
    check_lane(comm, "MPI_Comm_idup and messages", true);
}

static void split(void)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, 0, &comm);
    check_lane(comm, "MPI_Comm_split", true);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &comm);
    check_lane(comm, "MPI_Comm_split in reverse", true);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &comm);
    check_lane(comm, "MPI_Comm_split_type", true);
}

static void copy(void)
{
    MPI_Comm comm;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_lane(comm, "MPI_Comm_dup", true);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    check_lane(comm, "MPI_Comm_dup_with_info", true);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_lane(comm, "MPI_Comm_idup", true);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_lane(comm, "MPI_Comm_idup_with_info", true);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    check_lane(comm, "MPI_Comm_dup of itself", true);
}

static void group(void)
{
    MPI_Group all;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_create(MPI_COMM_WORLD, all, &comm);
    check_lane(comm, "MPI_Comm_create", true);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, TAG, &comm);
    check_lane(comm, "MPI_Comm_create_group", true);
    MPI_Comm_create_from_group(all, "lanes", MPI_INFO_NULL, MPI_ERRORS_ABORT,
                               &comm);
    check_lane(comm, "MPI_Comm_create_from_group", true);
    MPI_Group_free(&all);
}

static void topology(void)
{
    const int size = check_size();
    const int period = 1;
    const int next = (check_rank() + 1) % size;
    MPI_Comm comm;
    MPI_Comm part;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 1, &comm);
    MPI_Cart_sub(comm, &period, &part);
    check_lane(comm, "MPI_Cart_create", true);
    check_lane(part, "MPI_Cart_sub", true);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 1,
                                   &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &comm);
    check_lane(comm, "MPI_Dist_graph_create_adjacent", true);
}

static void between(void)
{
    MPI_Comm half;
    MPI_Comm inter;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - check_rank() % 2, TAG,
                         &inter);
    MPI_Comm_dup(inter, &comm);
    check_lane(comm, "MPI_Comm_dup between", false);
    MPI_Intercomm_merge(inter, check_rank() % 2, &comm);
    check_lane(comm, "MPI_Intercomm_merge", true);
    check_lane(inter, "MPI_Intercomm_create", false);
    MPI_Comm_free(&half);
}

static void predefined(void)
{
    CHECK(chempi_comm_lookup(MPI_COMM_WORLD)->lane == &chempi_lane_main &&
              chempi_comm_lookup(MPI_COMM_SELF)->lane == &chempi_lane_main,
          "MPI_COMM_WORLD or MPI_COMM_SELF is in another lane");
}

int main(int argc, char **argv)
{
    is_first = argc > 1;
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_need(2);
    predefined();
    copy();
    get_ahead();
    split();
    group();
    topology();
    between();
    return check_finish();
}
