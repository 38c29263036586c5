/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls through the hierarchy, appended to a schedule or done at once; see
 * hier_ops.h. */
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/coll/node/node.h"

/* Do the operation's phases; false: it goes another way (K1), and nothing
 * happened. Failures stick in s->error and s->failed. */
static bool do_phases(struct chempi_hier_run *r)
{
    static chempi_hier_phases_fn *const phases[CHEMPI_COLL_KIND_COUNT] = {
        [CHEMPI_COLL_BARRIER] = chempi_hier_barrier,
        [CHEMPI_COLL_BCAST] = chempi_hier_bcast,
        [CHEMPI_COLL_REDUCE] = chempi_hier_reduce,
        [CHEMPI_COLL_ALLREDUCE] = chempi_hier_allreduce,
        [CHEMPI_COLL_GATHER] = chempi_hier_gather,
        [CHEMPI_COLL_GATHERV] = chempi_hier_gatherv,
        [CHEMPI_COLL_SCATTER] = chempi_hier_scatter,
        [CHEMPI_COLL_SCATTERV] = chempi_hier_scatterv,
        [CHEMPI_COLL_ALLGATHER] = chempi_hier_allgather,
        [CHEMPI_COLL_ALLGATHERV] = chempi_hier_allgather,
        [CHEMPI_COLL_ALLTOALL] = chempi_hier_alltoall,
        [CHEMPI_COLL_REDUCE_SCATTER] = chempi_hier_reduce_scatter,
        [CHEMPI_COLL_REDUCE_SCATTER_BLOCK] = chempi_hier_reduce_scatter,
        [CHEMPI_COLL_SCAN] = chempi_hier_scan,
        [CHEMPI_COLL_EXSCAN] = chempi_hier_scan,
    };
    chempi_hier_phases_fn *fn = phases[r->c->kind];

    return fn && fn(r);
}

void chempi_coll_build(struct chempi_coll_sched *s,
                       const struct chempi_coll_call *c)
{
    struct chempi_coll_state *st = c->comm->coll;
    struct chempi_hier_run r = {.s = s, .c = c};

    if (st && st->hier) {
        r.h = st->hier;
        if (do_phases(&r))
            return;
    }
    chempi_coll_build_flat(s, c);
}

bool chempi_hier_try(const struct chempi_coll_call *c, int tag, int *rc)
{
    struct chempi_coll_state *st = c->comm->coll;
    struct chempi_coll_sched s;
    struct chempi_hier_run r = {.s = &s, .c = c};
    bool is_done;

    if (!st->hier)
        return false;
    r.h = st->hier;
    r.node_comm = st->node_comm;
    chempi_coll_sched_init(&s, c->comm, tag);
    is_done = do_phases(&r);
    if (is_done) {
        chempi_hier_flush(&r);
        *rc = s.error ? s.error : s.failed;
    }
    chempi_coll_sched_fini(&s);
    return is_done;
}
