/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths of arrays that follow from a communicator. */
#include "fortran/lib/topology.h"

#include "fortran/lib/binding.h"

int chempi_topology_size(MPI_Comm comm)
{
    int is_inter = 0;
    int size = 0;

    if (!chempi_is_object(comm) || comm == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(comm, &is_inter))
        return 0;
    if (is_inter)
        (void)PMPI_Comm_remote_size(comm, &size);
    else
        (void)PMPI_Comm_size(comm, &size);
    return size;
}

int chempi_topology_local_size(MPI_Comm comm)
{
    int size = 0;

    if (chempi_is_object(comm) && comm != MPI_COMM_NULL)
        (void)PMPI_Comm_size(comm, &size);
    return size;
}

int chempi_topology_dims(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED;
    int dims = 0;

    if (!chempi_is_object(comm) || comm == MPI_COMM_NULL ||
        PMPI_Topo_test(comm, &kind) || kind != MPI_CART)
        return 0;
    (void)PMPI_Cartdim_get(comm, &dims);
    return dims;
}

static void count_neighbors(MPI_Comm comm, int *in, int *out)
{
    int kind = MPI_UNDEFINED;
    int rank = 0;
    int weighted = 0;

    *in = 0;
    *out = 0;
    if (!chempi_is_object(comm) || comm == MPI_COMM_NULL ||
        PMPI_Topo_test(comm, &kind))
        return;
    if (kind == MPI_CART) {
        *in = *out = 2 * chempi_topology_dims(comm);
    } else if (kind == MPI_DIST_GRAPH) {
        (void)PMPI_Dist_graph_neighbors_count(comm, in, out, &weighted);
    } else if (kind == MPI_GRAPH && !PMPI_Comm_rank(comm, &rank)) {
        (void)PMPI_Graph_neighbors_count(comm, rank, in);
        *out = *in;
    }
}

int chempi_topology_neighbors_in(MPI_Comm comm)
{
    int in;
    int out;

    count_neighbors(comm, &in, &out);
    return in;
}

int chempi_topology_neighbors_out(MPI_Comm comm)
{
    int in;
    int out;

    count_neighbors(comm, &in, &out);
    return out;
}

int chempi_topology_rank(MPI_Comm comm)
{
    int rank = 0;

    if (chempi_is_object(comm) && comm != MPI_COMM_NULL)
        (void)PMPI_Comm_rank(comm, &rank);
    return rank;
}

bool chempi_topology_is_root(MPI_Comm comm, int root)
{
    int is_inter = 0;

    if (!chempi_is_object(comm) || comm == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(comm, &is_inter))
        return false;
    return is_inter ? root == MPI_ROOT : root == chempi_topology_rank(comm);
}
