/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls: every collective in its six forms. */
#include "random_walk.h"

#define THREE(Name, name, suffix, ...)                                         \
    do {                                                                       \
        if (a->form == BLOCKING)                                               \
            rc = MPI_##Name##suffix(__VA_ARGS__, a->comm);                     \
        else if (a->form == NONBLOCKING)                                       \
            rc = MPI_I##name##suffix(__VA_ARGS__, a->comm, &a->request);       \
        else                                                                   \
            rc = MPI_##Name##_init##suffix(__VA_ARGS__, a->comm,               \
                                           MPI_INFO_NULL, &a->request);        \
    } while (0)

#define PLAIN(...) __VA_ARGS__
#define BOTH(Name, name, small, big)                                           \
    do {                                                                       \
        if (a->is_big)                                                         \
            THREE(Name, name, _c, PLAIN big);                                  \
        else                                                                   \
            THREE(Name, name, , PLAIN small);                                  \
    } while (0)

int walk_call_move(struct act *a)
{
    struct side *s = &a->send;
    struct side *r = &a->recv;
    MPI_Datatype type_s = s->layouts && s->blocks ? s->layout[0].type : MPI_INT;
    MPI_Datatype type_r = r->layouts && r->blocks ? r->layout[0].type : MPI_INT;
    const void *buf_s =
        a->in_place && s->blocks == 0 && (a->kind > SCATTERV || a->is_root)
            ? MPI_IN_PLACE
        : s->blocks ? s->buf
                    : NULL;
    void *buf_r = a->in_place && r->blocks == 0 && a->is_root ? MPI_IN_PLACE
                  : r->blocks                                 ? r->buf
                                                              : NULL;
    int sn = s->blocks ? s->counts[0] : 0;
    int rn = r->blocks ? r->counts[0] : 0;
    MPI_Count sN = sn;
    MPI_Count rN = rn;
    int rc = MPI_SUCCESS;

#define S_ONE buf_s, sn, type_s
#define S_ONE_C buf_s, sN, type_s
#define R_ONE buf_r, rn, type_r
#define R_ONE_C buf_r, rN, type_r
#define S_V buf_s, s->counts, s->displs, type_s
#define S_V_C buf_s, s->big_counts, s->big_displs, type_s
#define R_V buf_r, r->counts, r->displs, type_r
#define R_V_C buf_r, r->big_counts, r->big_displs, type_r
    switch (a->kind) {
    case BCAST:
        BOTH(Bcast, bcast, (R_ONE, a->root), (R_ONE_C, a->root));
        break;
    case GATHER:
        BOTH(Gather, gather, (S_ONE, R_ONE, a->root),
             (S_ONE_C, R_ONE_C, a->root));
        break;
    case GATHERV:
        BOTH(Gatherv, gatherv, (S_ONE, R_V, a->root),
             (S_ONE_C, R_V_C, a->root));
        break;
    case SCATTER:
        BOTH(Scatter, scatter, (S_ONE, R_ONE, a->root),
             (S_ONE_C, R_ONE_C, a->root));
        break;
    case SCATTERV:
        BOTH(Scatterv, scatterv, (S_V, R_ONE, a->root),
             (S_V_C, R_ONE_C, a->root));
        break;
    case ALLGATHER:
        BOTH(Allgather, allgather, (S_ONE, R_ONE), (S_ONE_C, R_ONE_C));
        break;
    case ALLGATHERV:
        BOTH(Allgatherv, allgatherv, (S_ONE, R_V), (S_ONE_C, R_V_C));
        break;
    case ALLTOALL:
        BOTH(Alltoall, alltoall, (S_ONE, R_ONE), (S_ONE_C, R_ONE_C));
        break;
    case ALLTOALLV:
        BOTH(Alltoallv, alltoallv, (S_V, R_V), (S_V_C, R_V_C));
        break;
    case NEIGHBOR_ALLGATHER:
        BOTH(Neighbor_allgather, neighbor_allgather, (S_ONE, R_ONE),
             (S_ONE_C, R_ONE_C));
        break;
    case NEIGHBOR_ALLGATHERV:
        BOTH(Neighbor_allgatherv, neighbor_allgatherv, (S_ONE, R_V),
             (S_ONE_C, R_V_C));
        break;
    case NEIGHBOR_ALLTOALL:
        BOTH(Neighbor_alltoall, neighbor_alltoall, (S_ONE, R_ONE),
             (S_ONE_C, R_ONE_C));
        break;
    case NEIGHBOR_ALLTOALLV:
        BOTH(Neighbor_alltoallv, neighbor_alltoallv, (S_V, R_V),
             (S_V_C, R_V_C));
        break;
    default:
        break;
    }
    return rc;
}

/* Displacements in bytes, of a side whose layouts may be one. */
static void to_bytes(struct side *s)
{
    for (int i = 0; i < s->blocks; i++) {
        long unit = s->layouts == 1 ? s->layout[0].extent : 1;
        s->big_displs[i] *= unit;
        s->displs[i] = (int)s->big_displs[i];
        s->types[i] = walk_layout_of(s, i)->type;
    }
}

int walk_call_w(struct act *a)
{
    struct side *s = &a->send;
    struct side *r = &a->recv;
    const void *buf_s = a->in_place ? MPI_IN_PLACE : s->buf;
    int rc = MPI_SUCCESS;

    to_bytes(s);
    to_bytes(r);
    if (a->kind == ALLTOALLW)
        BOTH(Alltoallw, alltoallw,
             (buf_s, s->counts, s->displs, s->types, r->buf, r->counts,
              r->displs, r->types),
             (buf_s, s->big_counts, s->big_displs, s->types, r->buf,
              r->big_counts, r->big_displs, r->types));
    else
        BOTH(Neighbor_alltoallw, neighbor_alltoallw,
             (buf_s, s->counts, s->big_displs, s->types, r->buf, r->counts,
              r->big_displs, r->types),
             (buf_s, s->big_counts, s->big_displs, s->types, r->buf,
              r->big_counts, r->big_displs, r->types));
    return rc;
}

int walk_call_reduction(struct act *a)
{
    struct side *s = &a->send;
    struct side *r = &a->recv;
    const void *in = a->in_place ? MPI_IN_PLACE : s->blocks ? s->buf : NULL;
    void *out = r->blocks ? r->buf : NULL;
    MPI_Datatype type = s->layout[0].type;
    int n = s->counts[0];
    MPI_Count N = n;
    int m = r->blocks ? r->counts[0] : 0;
    MPI_Count M;
    MPI_Op op = a->op.op;
    int rc = MPI_SUCCESS;

    if (a->in_place && a->kind == REDUCE_SCATTER_BLOCK)
        m /= a->size;
    M = m;
    switch (a->kind) {
    case REDUCE:
        BOTH(Reduce, reduce, (in, out, n, type, op, a->root),
             (in, out, N, type, op, a->root));
        break;
    case ALLREDUCE:
        BOTH(Allreduce, allreduce, (in, out, n, type, op),
             (in, out, N, type, op));
        break;
    case REDUCE_SCATTER:
        BOTH(Reduce_scatter, reduce_scatter, (in, out, r->counts, type, op),
             (in, out, r->big_counts, type, op));
        break;
    case REDUCE_SCATTER_BLOCK:
        BOTH(Reduce_scatter_block, reduce_scatter_block, (in, out, m, type, op),
             (in, out, M, type, op));
        break;
    case SCAN:
        BOTH(Scan, scan, (in, out, n, type, op), (in, out, N, type, op));
        break;
    case EXSCAN:
        BOTH(Exscan, exscan, (in, out, n, type, op), (in, out, N, type, op));
        break;
    default:
        break;
    }
    return rc;
}

int walk_call_barrier(struct act *a)
{
    if (a->form == BLOCKING)
        return MPI_Barrier(a->comm);
    if (a->form == NONBLOCKING)
        return MPI_Ibarrier(a->comm, &a->request);
    return MPI_Barrier_init(a->comm, MPI_INFO_NULL, &a->request);
}
