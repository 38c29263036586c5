/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls without a hierarchy: in the node's shared memory, else as a schedule
 * of messages. */
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/coll/sched.h"

int chempi_coll_do_messages(const struct chempi_coll_call *c, int tag)
{
    struct chempi_coll_sched s;
    int rc;

    chempi_coll_sched_init(&s, c->comm, tag);
    chempi_coll_build_flat(&s, c);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

/* What comes is received all the same, if there are buffers for it. */
static void do_empty_messages(const struct chempi_coll_call *c, int tag,
                              bool has_buffers)
{
    struct chempi_coll_sched s;

    chempi_coll_sched_init(&s, c->comm, tag);
    s.failed = MPI_ERR_OTHER;
    if (!has_buffers)
        chempi_coll_sched_fail(&s, MPI_ERR_OTHER);
    chempi_coll_build_flat(&s, c);
    (void)chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
}

/* What a member brings to an operation in shared memory after a failure. Those
 * in which all must bring the same amount look at is_void. */
static struct chempi_coll_call emptied(const struct chempi_coll_call *c,
                                       bool has_buffers)
{
    struct chempi_coll_call e = *c;
    bool is_root = c->comm->rank == c->root;

    e.is_void = true;
    switch (c->kind) {
    case CHEMPI_COLL_BCAST:
        if (is_root || !has_buffers)
            e.recv.count = 0;
        break;
    case CHEMPI_COLL_GATHER:
    case CHEMPI_COLL_GATHERV:
        if (!is_root || !has_buffers)
            e.send.count = 0;
        if (!has_buffers) {
            e.kind = CHEMPI_COLL_GATHER;
            e.recv.count = 0;
        }
        break;
    case CHEMPI_COLL_SCATTER:
    case CHEMPI_COLL_SCATTERV:
        if (is_root) {
            e.kind = CHEMPI_COLL_SCATTER;
            e.send.count = 0;
        }
        if (!has_buffers)
            e.recv.count = 0;
        break;
    default:
        break;
    }
    return e;
}

int chempi_coll_do_flat(const struct chempi_coll_call *c)
{
    int tag;
    int rc;

    if (!chempi_coll_node_begin(c->comm, &tag, &rc) ||
        chempi_coll_node_try(c, tag, &rc))
        return rc;
    return chempi_coll_do_messages(c, tag);
}

void chempi_coll_do_void(const struct chempi_coll_call *c, bool has_buffers)
{
    const struct chempi_coll_call e = emptied(c, has_buffers);
    int tag;
    int rc;

    if (chempi_coll_node_begin(c->comm, &tag, &rc) &&
        !chempi_coll_node_try(&e, tag, &rc))
        do_empty_messages(c, tag, has_buffers);
}
