/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cartesian topologies (MPI 5.0, sections 8.5.1, 8.5.5 to 8.5.8). Ranks are in
 * row-major order: the last coordinate runs fastest.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/comm_life.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/topo/reorder.h"
#include "libchempi/didl/topo/topology.h"

enum { CART_SPLIT_MAX = 16 }; /* dimensions that are cut into boxes */

static int rank_of(const struct chempi_cart *cart, const int *coords)
{
    int rank = 0;

    for (int d = 0; d < cart->ndims; d++)
        rank = rank * cart->dims[d] + coords[d];
    return rank;
}

static void coords_of(const struct chempi_cart *cart, int rank, int *coords)
{
    for (int d = cart->ndims; d-- > 0;) {
        coords[d] = rank % cart->dims[d];
        rank /= cart->dims[d];
    }
}

/* A coordinate brought into 0..dim-1, or -1 outside a border. */
static int wrap(const struct chempi_cart *cart, int d, int64_t coord)
{
    int64_t dim = cart->dims[d];

    if (coord >= 0 && coord < dim)
        return (int)coord;
    if (!cart->periods[d])
        return -1;
    return (int)((coord % dim + dim) % dim);
}

static int shifted_from(const struct chempi_cart *cart, int rank,
                        const int *coords, int direction, int disp)
{
    int to = wrap(cart, direction, (int64_t)coords[direction] + disp);
    int stride = 1;

    if (to < 0)
        return MPI_PROC_NULL;
    for (int d = direction + 1; d < cart->ndims; d++)
        stride *= cart->dims[d];
    return rank + (to - coords[direction]) * stride;
}

int chempi_cart_shifted(const struct chempi_cart *cart, int direction, int disp)
{
    return shifted_from(cart, rank_of(cart, cart->coords), cart->coords,
                        direction, disp);
}

/* ---- creation ---- */

/* The number of processes of a grid in *count. */
static int count_of(const struct chempi_comm *comm, int ndims, const int *dims,
                    const int *periods, int *count)
{
    int64_t product = 1;

    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "a topology cannot be laid over "
                                              "an intercommunicator");
    if (ndims < 0)
        return chempi_error_set(MPI_ERR_DIMS, "%d dimensions", ndims);
    if (ndims > 0 && (!dims || !periods))
        return chempi_error_set(MPI_ERR_ARG, "%s is null",
                                dims ? "periods" : "dims");
    for (int d = 0; d < ndims; d++) {
        if (dims[d] <= 0)
            return chempi_error_set(MPI_ERR_DIMS, "dims[%d] is %d", d, dims[d]);
        if (product <= INT_MAX)
            product *= dims[d];
    }
    if (product > (int64_t)comm->size)
        return chempi_error_set(MPI_ERR_DIMS,
                                "the grid needs %s%lld processes, the "
                                "communicator has %u",
                                product > INT_MAX ? "at least " : "",
                                (long long)product, comm->size);
    *count = (int)product;
    return MPI_SUCCESS;
}

static struct chempi_topology *make_cart(int ndims, const int *dims,
                                         const int *periods)
{
    size_t n = (size_t)ndims;
    struct chempi_topology *t = chempi_topology_create(MPI_CART, 3 * n);
    struct chempi_cart *cart;

    if (!t)
        return NULL;
    cart = &t->u.cart;
    cart->ndims = ndims;
    cart->dims = t->ints;
    cart->periods = t->ints + n;
    cart->coords = t->ints + 2 * n;
    for (size_t d = 0; d < n; d++) {
        cart->dims[d] = dims[d];
        cart->periods[d] = periods[d] != 0;
        cart->coords[d] = 0;
    }
    return t;
}

/* The vertices of a box, half by half, so that every stretch of them is a
 * compact part of the grid. */
static int *list_box(const struct chempi_cart *cart, const int *from,
                     const int *len, int *next)
{
    int longest = 0;
    int half[2][CART_SPLIT_MAX];
    int start[CART_SPLIT_MAX];
    size_t bytes = (size_t)cart->ndims * sizeof(int);

    for (int d = 1; d < cart->ndims; d++)
        if (len[d] > len[longest])
            longest = d;
    if (len[longest] == 1) {
        *next = rank_of(cart, from);
        return next + 1;
    }
    memcpy(half[0], len, bytes);
    memcpy(half[1], len, bytes);
    memcpy(start, from, bytes);
    half[0][longest] = (len[longest] + 1) / 2;
    half[1][longest] -= half[0][longest];
    next = list_box(cart, start, half[0], next);
    start[longest] += half[0][longest];
    return list_box(cart, start, half[1], next);
}

/* No hint is no harm. */
static void give_hint(struct chempi_reorder_graph *g,
                      const struct chempi_cart *cart)
{
    int origin[CART_SPLIT_MAX] = {0};

    if (cart->ndims == 0 || cart->ndims > CART_SPLIT_MAX)
        return;
    g->hint = chempi_sys->malloc((size_t)g->count * sizeof(*g->hint));
    if (g->hint)
        (void)list_box(cart, origin, cart->dims, g->hint);
}

/* The edges of a whole grid, each direction of a pair by itself. */
static int add_edges(struct chempi_reorder_graph *g, const void *arg)
{
    const struct chempi_cart *cart = arg;

    give_hint(g, cart);
    for (int v = 0; v < g->count; v++) {
        coords_of(cart, v, cart->coords);
        for (int d = 0; d < cart->ndims; d++)
            for (int disp = -1; disp <= 1; disp += 2) {
                int to = shifted_from(cart, v, cart->coords, d, disp);
                int rc = to == MPI_PROC_NULL || to == v
                             ? MPI_SUCCESS
                             : chempi_reorder_add(g, v, to, 1);

                if (rc)
                    return rc;
            }
    }
    return MPI_SUCCESS;
}

int chempi_topology_cart_create(struct chempi_comm *comm_old, int ndims,
                                const int dims[], const int periods[],
                                int reorder, MPI_Comm *comm_cart)
{
    struct chempi_comm *made = NULL;
    struct chempi_topology *t;
    int *order = NULL;
    int count = 0;
    int rc = count_of(comm_old, ndims, dims, periods, &count);

    *comm_cart = MPI_COMM_NULL;
    if (rc)
        return rc;
    t = make_cart(ndims, dims, periods);
    rc = t ? MPI_SUCCESS : MPI_ERR_NO_MEM; /* which the others have to learn */
    if (reorder)
        rc = chempi_reorder_ranks(comm_old, rc, count, add_edges,
                                  t ? &t->u.cart : NULL, &order);
    rc = chempi_topology_make_comm(comm_old, rc, order, count, &made);
    free(order);
    if (rc || !made) {
        chempi_topology_release(t);
        return rc;
    }
    coords_of(&t->u.cart, made->rank, t->u.cart.coords);
    chempi_topology_attach(made, t);
    *comm_cart = made->handle;
    return MPI_SUCCESS;
}

int chempi_topology_cart_map(struct chempi_comm *comm, int ndims,
                             const int dims[], const int periods[],
                             int *newrank)
{
    struct chempi_topology *t;
    int count = 0;
    int rc = count_of(comm, ndims, dims, periods, &count);

    if (rc)
        return rc;
    t = make_cart(ndims, dims, periods);
    if (!t)
        return MPI_ERR_NO_MEM;
    rc = chempi_reorder_map(comm, count, add_edges, &t->u.cart, newrank);
    chempi_topology_release(t);
    return rc;
}

/* ---- sub-grids ---- */

static struct chempi_topology *make_sub(const struct chempi_cart *from,
                                        const int *remain)
{
    struct chempi_topology *t =
        make_cart(from->ndims, from->dims, from->periods);
    struct chempi_cart *cart;
    int kept = 0;

    if (!t)
        return NULL;
    cart = &t->u.cart;
    for (int d = 0; d < from->ndims; d++) {
        if (!remain[d])
            continue;
        cart->dims[kept] = from->dims[d];
        cart->periods[kept] = from->periods[d];
        cart->coords[kept] = from->coords[d];
        kept++;
    }
    cart->ndims = kept;
    return t;
}

int chempi_topology_cart_sub(struct chempi_comm *comm, const int remain_dims[],
                             MPI_Comm *newcomm)
{
    int rc = chempi_topology_need(comm, MPI_CART);
    const struct chempi_cart *cart;
    struct chempi_topology *t;
    struct chempi_comm *made;
    int color = 0;
    int key = 0;

    *newcomm = MPI_COMM_NULL;
    if (rc)
        return rc;
    cart = &comm->topology->u.cart;
    if (cart->ndims > 0 && !remain_dims)
        return chempi_error_set(MPI_ERR_ARG, "remain_dims is null");
    for (int d = 0; d < cart->ndims; d++) {
        int *number = remain_dims[d] ? &key : &color;

        *number = *number * cart->dims[d] + cart->coords[d];
    }
    rc = chempi_comm_split(comm, color, key, newcomm);
    if (rc)
        return rc;
    made = chempi_comm_lookup(*newcomm);
    t = make_sub(cart, remain_dims);
    if (t) {
        chempi_topology_attach(made, t);
        return MPI_SUCCESS;
    }
    made->is_partial = true; /* the others have it */
    chempi_comm_discard(made);
    *newcomm = MPI_COMM_NULL;
    return MPI_ERR_NO_MEM;
}

/* ---- questions ---- */

int chempi_topology_cartdim_get(struct chempi_comm *comm, int *ndims)
{
    int rc = chempi_topology_need(comm, MPI_CART);

    if (!rc)
        *ndims = comm->topology->u.cart.ndims;
    return rc;
}

int chempi_topology_cart_get(struct chempi_comm *comm, int maxdims, int dims[],
                             int periods[], int coords[])
{
    int rc = chempi_topology_need(comm, MPI_CART);
    const struct chempi_cart *cart;
    size_t len;

    if (rc)
        return rc;
    cart = &comm->topology->u.cart;
    if (maxdims < cart->ndims)
        return chempi_error_set(MPI_ERR_ARG,
                                "maxdims is %d, the grid has %d dimensions",
                                maxdims, cart->ndims);
    if (cart->ndims == 0)
        return MPI_SUCCESS;
    if (!dims || !periods || !coords)
        return chempi_error_set(MPI_ERR_ARG, "dims, periods or coords is null");
    len = (size_t)cart->ndims * sizeof(int);
    memcpy(dims, cart->dims, len);
    memcpy(periods, cart->periods, len);
    memcpy(coords, cart->coords, len);
    return MPI_SUCCESS;
}

int chempi_topology_cart_rank(struct chempi_comm *comm, const int coords[],
                              int *rank)
{
    int rc = chempi_topology_need(comm, MPI_CART);
    const struct chempi_cart *cart;
    int sum = 0;

    if (rc)
        return rc;
    cart = &comm->topology->u.cart;
    if (cart->ndims > 0 && !coords)
        return chempi_error_set(MPI_ERR_ARG, "coords is null");
    for (int d = 0; d < cart->ndims; d++) {
        int coord = wrap(cart, d, coords[d]);

        if (coord < 0)
            return chempi_error_set(MPI_ERR_ARG,
                                    "coords[%d] is %d, outside 0..%d of a "
                                    "dimension that is not periodic",
                                    d, coords[d], cart->dims[d] - 1);
        sum = sum * cart->dims[d] + coord;
    }
    *rank = sum;
    return MPI_SUCCESS;
}

int chempi_topology_cart_coords(struct chempi_comm *comm, int rank, int maxdims,
                                int coords[])
{
    int rc = chempi_topology_need(comm, MPI_CART);
    const struct chempi_cart *cart;

    if (rc)
        return rc;
    cart = &comm->topology->u.cart;
    if (maxdims < cart->ndims)
        return chempi_error_set(MPI_ERR_ARG,
                                "maxdims is %d, the grid has %d dimensions",
                                maxdims, cart->ndims);
    if (cart->ndims > 0 && !coords)
        return chempi_error_set(MPI_ERR_ARG, "coords is null");
    coords_of(cart, rank, coords);
    return MPI_SUCCESS;
}

int chempi_topology_cart_shift(struct chempi_comm *comm, int direction,
                               int disp, int *rank_source, int *rank_dest)
{
    int rc = chempi_topology_need(comm, MPI_CART);
    const struct chempi_cart *cart;

    if (rc)
        return rc;
    cart = &comm->topology->u.cart;
    if (direction < 0 || direction >= cart->ndims)
        return chempi_error_set(MPI_ERR_ARG,
                                "direction is %d, the grid has %d dimensions",
                                direction, cart->ndims);
    if (disp == INT_MIN)
        return chempi_error_set(MPI_ERR_ARG, "disp is %d", disp);
    *rank_source = chempi_cart_shifted(cart, direction, -disp);
    *rank_dest = chempi_cart_shifted(cart, direction, disp);
    return MPI_SUCCESS;
}
