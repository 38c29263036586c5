/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on intercommunicators whose forms differ from those on
 * intracommunicators (MPI 5.0, section 6.2.3). Messages go to the remote group
 * only: what one group's rank 0 has to tell its own group, the other group's
 * rank 0 passes on.
 */
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"

static int remote_size(const struct chempi_coll_call *c)
{
    return (int)c->comm->remote_size;
}

static void send_to_all(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c, const void *buf,
                        MPI_Count count, struct chempi_datatype *type)
{
    for (int i = 0; i < remote_size(c); i++) {
        chempi_coll_send(s, buf, count, type, i);
        chempi_coll_throttle(s);
    }
}

/* What reduce_remote does besides receiving: it sends `out` to the peers
 * below `below`, to each when it is the peer's turn. */
struct exchange {
    const void *out;
    int below;
};

/*
 * acc = the remote group's contributions, combined in the order of ranks;
 * [first, first + n): the elements that are wanted. Peers are served from the
 * last to the first. If all do that, in both groups, nobody waits for ever:
 * pairs meet in the order of falling sums of their ranks.
 */
static void reduce_remote(struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c, void *acc,
                          MPI_Count count, MPI_Count first, MPI_Count n,
                          struct exchange e)
{
    int last = remote_size(c) - 1;
    void *tmp = last > 0 ? chempi_coll_temp(s, count, c->recv.type) : NULL;

    for (int i = last; i >= 0; i--) {
        chempi_coll_recv(s, i == last ? acc : tmp, count, c->recv.type, i);
        if (i < e.below)
            chempi_coll_send(s, e.out, count, c->recv.type, i);
        chempi_coll_fence(s);
        if (i < last)
            chempi_coll_combine(s, chempi_coll_at(tmp, first, c->recv.type),
                                chempi_coll_at(acc, first, c->recv.type), n,
                                c->recv.type);
    }
}

static void build_barrier(struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    void *nothing = s->inline_bytes;

    chempi_coll_send(s, nothing, 0, byte, 0);
    if (s->rank == 0) {
        for (int i = 0; i < remote_size(c); i++) {
            chempi_coll_recv(s, nothing, 0, byte, i);
            chempi_coll_throttle(s);
        }
        chempi_coll_fence(s);
        /* The whole remote group has entered: it may be told so, by its own
         * way of rank 0 there and all of this group. */
        chempi_coll_recv(s, nothing, 0, byte, 0);
        chempi_coll_send(s, nothing, 0, byte, 0);
        chempi_coll_fence(s);
        send_to_all(s, c, nothing, 0, byte);
    }
    chempi_coll_recv(s, nothing, 0, byte, 0);
}

static void build_bcast(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c)
{
    if (c->root == MPI_ROOT)
        send_to_all(s, c, c->recv.buf, c->recv.count, c->recv.type);
    else
        chempi_coll_recv(s, c->recv.buf, c->recv.count, c->recv.type, c->root);
}

static void build_reduce(struct chempi_coll_sched *s,
                         const struct chempi_coll_call *c)
{
    if (c->root == MPI_ROOT)
        reduce_remote(s, c, c->recv.buf, c->recv.count, 0, c->recv.count,
                      (struct exchange){0});
    else
        chempi_coll_send(s, c->send.buf, c->recv.count, c->recv.type, c->root);
}

/* Rank 0 reduces the remote group's data, which this group wants, and lets
 * the remote rank 0 hand it out; and does the same for the remote group. */
static void build_allreduce(struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    void *acc;
    void *relayed;

    if (s->rank != 0) {
        chempi_coll_send(s, c->send.buf, c->recv.count, c->recv.type, 0);
    } else {
        acc = chempi_coll_temp(s, c->recv.count, c->recv.type);
        relayed = chempi_coll_temp(s, c->recv.count, c->recv.type);
        reduce_remote(s, c, acc, c->recv.count, 0, c->recv.count,
                      (struct exchange){c->send.buf, 1});
        chempi_coll_recv(s, relayed, c->recv.count, c->recv.type, 0);
        chempi_coll_send(s, acc, c->recv.count, c->recv.type, 0);
        chempi_coll_fence(s);
        send_to_all(s, c, relayed, c->recv.count, c->recv.type);
    }
    chempi_coll_recv(s, c->recv.buf, c->recv.count, c->recv.type, 0);
}

static void build_allgather(struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    for (int i = 0; i < remote_size(c); i++) {
        const struct chempi_coll_place in = chempi_coll_received(c, i);

        if (chempi_coll_place_bytes(&in) > 0)
            chempi_coll_recv(s, in.buf, in.count, in.type, i);
        if (c->send.count * c->send.type->size > 0)
            chempi_coll_send(s, c->send.buf, c->send.count, c->send.type, i);
        chempi_coll_throttle(s);
    }
}

/* Every process gets all of the remote group's vectors and keeps its part:
 * nobody but the members of a group knows how it divides the result. */
static void build_reduce_scatter(struct chempi_coll_sched *s,
                                 const struct chempi_coll_call *c)
{
    bool is_block = c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK;
    MPI_Count total = 0;
    MPI_Count first = 0;
    MPI_Count own = 0;
    void *acc;

    for (int i = 0; i < s->size; i++) {
        MPI_Count n = is_block
                          ? c->recv.count
                          : chempi_count_array_get(c->recv.counts, (size_t)i);

        if (i == s->rank) {
            first = total;
            own = n;
        }
        total += n;
    }
    acc = chempi_coll_temp(s, total, c->recv.type);
    reduce_remote(s, c, acc, total, first, own,
                  (struct exchange){c->send.buf, remote_size(c)});
    chempi_coll_copy(s, chempi_coll_at(acc, first, c->recv.type), own,
                     c->recv.type, c->recv.buf, own, c->recv.type);
}

void chempi_coll_build_inter(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c)
{
    s->op = c->op;
    switch (c->kind) {
    case CHEMPI_COLL_BARRIER:
        build_barrier(s, c);
        break;
    case CHEMPI_COLL_BCAST:
        build_bcast(s, c);
        break;
    case CHEMPI_COLL_REDUCE:
        build_reduce(s, c);
        break;
    case CHEMPI_COLL_ALLREDUCE:
        build_allreduce(s, c);
        break;
    case CHEMPI_COLL_ALLGATHER:
    case CHEMPI_COLL_ALLGATHERV:
        build_allgather(s, c);
        break;
    case CHEMPI_COLL_REDUCE_SCATTER:
    case CHEMPI_COLL_REDUCE_SCATTER_BLOCK:
        build_reduce_scatter(s, c);
        break;
    default:
        s->error = chempi_error_set(MPI_ERR_COMM,
                                    "this operation is not defined on an "
                                    "intercommunicator");
    }
}
