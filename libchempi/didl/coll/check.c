/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks of collectives; see check.h. */
#include "libchempi/didl/coll/check.h"

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/error/error.h"

static int peers(const struct chempi_coll_call *c)
{
    return (int)c->comm->remote_size;
}

static bool is_reduction(enum chempi_coll_kind kind)
{
    return kind == CHEMPI_COLL_REDUCE || kind == CHEMPI_COLL_ALLREDUCE ||
           kind >= CHEMPI_COLL_REDUCE_SCATTER;
}

static bool is_rooted(enum chempi_coll_kind kind)
{
    return kind == CHEMPI_COLL_REDUCE ||
           (kind >= CHEMPI_COLL_GATHER && kind <= CHEMPI_COLL_SCATTERV);
}

static bool is_root(const struct chempi_coll_call *c)
{
    return c->comm->is_inter ? c->root == MPI_ROOT : c->root == c->comm->rank;
}

static bool is_scatter(enum chempi_coll_kind kind)
{
    return kind == CHEMPI_COLL_SCATTER || kind == CHEMPI_COLL_SCATTERV;
}

static int bad_buffer(const char *words)
{
    return chempi_error_set(MPI_ERR_BUFFER, "%s", words);
}

/* Scatter receives in place at its root; the others send in place, and only at
 * the root if there is one. */
static int check_in_place(const struct chempi_coll_call *c)
{
    bool is_allowed = !is_rooted(c->kind) || is_root(c);

    if (c->send.buf != MPI_IN_PLACE && c->recv.buf != MPI_IN_PLACE)
        return MPI_SUCCESS;
    if (c->comm->is_inter)
        return bad_buffer("MPI_IN_PLACE is not for intercommunicators");
    if (is_scatter(c->kind))
        return c->recv.buf == MPI_IN_PLACE && is_allowed
                   ? MPI_SUCCESS
                   : bad_buffer("MPI_IN_PLACE is for the receive buffer of "
                                "the root only");
    if (is_rooted(c->kind) && !is_root(c))
        return c->send.buf != MPI_IN_PLACE
                   ? MPI_SUCCESS
                   : bad_buffer("MPI_IN_PLACE is for the root only");
    if (c->recv.buf == MPI_IN_PLACE)
        return bad_buffer("MPI_IN_PLACE cannot be the receive buffer");
    return MPI_SUCCESS;
}

static bool is_gather(enum chempi_coll_kind kind)
{
    return kind == CHEMPI_COLL_GATHER || kind == CHEMPI_COLL_GATHERV ||
           kind == CHEMPI_COLL_ALLGATHER || kind == CHEMPI_COLL_ALLGATHERV;
}

static int check_own(const struct chempi_coll_call *c)
{
    const int me = (int)c->comm->rank;
    const struct chempi_coll_place from = is_gather(c->kind)
                                              ? chempi_coll_whole(&c->send)
                                              : chempi_coll_sent(c, me);
    const struct chempi_coll_place to = is_scatter(c->kind)
                                            ? chempi_coll_whole(&c->recv)
                                            : chempi_coll_received(c, me);

    if (!from.type || !to.type ||
        CHEMPI_LIKELY((uintptr_t)from.buf + (uintptr_t)from.type->true_lb !=
                      (uintptr_t)to.buf + (uintptr_t)to.type->true_lb))
        return MPI_SUCCESS;
    if (chempi_coll_place_bytes(&from) == 0 ||
        chempi_coll_place_bytes(&to) == 0)
        return MPI_SUCCESS;
    return bad_buffer("the same memory is to be sent and received into; use "
                      "MPI_IN_PLACE");
}

static int check_reduction(const struct chempi_coll_call *c)
{
    MPI_Count count = c->recv.count;

    if (CHEMPI_LIKELY(c->send.buf != c->recv.buf) || !c->send.buf)
        return MPI_SUCCESS;
    if (c->kind == CHEMPI_COLL_REDUCE_SCATTER)
        count = chempi_count_array_get(c->recv.counts, (size_t)c->comm->rank);
    if (count == 0 || c->recv.type->size == 0)
        return MPI_SUCCESS;
    return bad_buffer("the send and the receive buffer are the same; use "
                      "MPI_IN_PLACE");
}

/* What this process sends to itself must not start where it receives it;
 * other overlaps are the program's to avoid. Old programs that gather so can
 * run with this check off: a block is then where it belongs. Of any other
 * operation the result would be wrong. */
static int check_alias(const struct chempi_coll_call *c)
{
    if (is_gather(c->kind) && !chempi_setting(CHEMPI_SET_CHECK_ARGUMENTS))
        return MPI_SUCCESS;
    if (c->kind <= CHEMPI_COLL_BCAST || c->comm->is_inter ||
        (is_rooted(c->kind) && !is_root(c)))
        return MPI_SUCCESS;
    if (is_reduction(c->kind))
        return check_reduction(c);
    if (c->send.buf == MPI_IN_PLACE || c->recv.buf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return check_own(c);
}

static CHEMPI_COLD int bad_count(struct chempi_count_array counts, int i,
                                 const char *name)
{
    return chempi_error_set(
        MPI_ERR_COUNT, "%s[%d] is %lld", name, i,
        (long long)chempi_count_array_get(counts, (size_t)i));
}

int chempi_coll_check_counts(struct chempi_count_array counts, int n,
                             const char *name)
{
    const int *p = counts.p;

    if (n > 0 && !counts.p)
        return chempi_error_set(MPI_ERR_ARG, "%s is null", name);
    if (counts.is_wide) {
        for (int i = 0; i < n; i++)
            if (chempi_count_array_get(counts, (size_t)i) < 0)
                return bad_count(counts, i, name);
        return MPI_SUCCESS;
    }
    for (int i = 0; i < n; i++)
        if (CHEMPI_UNLIKELY(p[i] < 0))
            return bad_count(counts, i, name);
    return MPI_SUCCESS;
}

int chempi_coll_check_types(struct chempi_count_array counts,
                            const MPI_Datatype *types, int n, const char *name)
{
    if (n > 0 && !types)
        return chempi_error_set(MPI_ERR_ARG, "%s is null", name);
    for (int i = 0; i < n; i++) {
        struct chempi_datatype *type = chempi_datatype_lookup(types[i]);

        if (chempi_count_array_get(counts, (size_t)i) > 0 &&
            (!type || !type->is_committed))
            return chempi_error_set(MPI_ERR_TYPE, "%s[%d] is not a %s", name, i,
                                    type ? "committed datatype" : "datatype");
    }
    return MPI_SUCCESS;
}

static int check_arrays(const struct chempi_coll_call *c)
{
    bool has_send = c->send.buf != MPI_IN_PLACE;
    int rc = MPI_SUCCESS;

    switch (c->kind) {
    case CHEMPI_COLL_GATHERV:
        return is_root(c) ? chempi_coll_check_counts(c->recv.counts, peers(c),
                                                     "recvcounts")
                          : MPI_SUCCESS;
    case CHEMPI_COLL_SCATTERV:
        return is_root(c) ? chempi_coll_check_counts(c->send.counts, peers(c),
                                                     "sendcounts")
                          : MPI_SUCCESS;
    case CHEMPI_COLL_ALLGATHERV:
        return chempi_coll_check_counts(c->recv.counts, peers(c), "recvcounts");
    case CHEMPI_COLL_REDUCE_SCATTER:
        return chempi_coll_check_counts(c->recv.counts, (int)c->comm->size,
                                        "recvcounts");
    case CHEMPI_COLL_ALLTOALLV:
    case CHEMPI_COLL_ALLTOALLW:
        rc = chempi_coll_check_counts(c->recv.counts, peers(c), "recvcounts");
        if (!rc && has_send)
            rc = chempi_coll_check_counts(c->send.counts, peers(c),
                                          "sendcounts");
        if (rc || c->kind == CHEMPI_COLL_ALLTOALLV)
            return rc;
        rc = chempi_coll_check_types(c->recv.counts, c->recv.types, peers(c),
                                     "recvtypes");
        if (!rc && has_send)
            rc = chempi_coll_check_types(c->send.counts, c->send.types,
                                         peers(c), "sendtypes");
        return rc;
    default:
        return MPI_SUCCESS;
    }
}

/* Buffers that are not significant at this process may hold anything, also
 * what looks like MPI_IN_PLACE: nobody sees them from here on. */
static void forget_insignificant(struct chempi_coll_call *c)
{
    bool is_inter = c->comm->is_inter;
    bool has_whole = is_root(c);
    bool has_part = is_inter ? c->root >= 0 : true;

    if (!is_rooted(c->kind))
        return;
    if (!(is_scatter(c->kind) ? has_whole : has_part))
        c->send.buf = NULL;
    if (!(is_scatter(c->kind) ? has_part : has_whole))
        c->recv.buf = NULL;
}

int chempi_coll_check(struct chempi_coll_call *c)
{
    int rc;

    if (c->kind == CHEMPI_COLL_BARRIER)
        return MPI_SUCCESS;
    forget_insignificant(c);
    if (c->comm->is_inter && c->root == MPI_PROC_NULL)
        return MPI_SUCCESS; /* no other argument counts */
    rc = check_in_place(c);
    if (!rc && is_reduction(c->kind))
        rc = chempi_op_check(c->op, c->recv.type);
    if (!rc)
        rc = check_arrays(c);
    if (!rc)
        rc = check_alias(c);
    return rc;
}
