/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls: who goes where, which way, and whose error it is. */
#include "libchempi/didl/io/collective.h"

#include <inttypes.h>

#include "libchempi/didl/base/error.h"
#include "libchempi/didl/coll/sched.h"

int chempi_io_quiet(struct chempi_file *file)
{
    if (file->split)
        return chempi_error_set(MPI_ERR_IO,
                                "a split collective operation on %s is under "
                                "way; end it first",
                                file->path);
    return MPI_SUCCESS;
}

/* ---- in order ---- */

static int prefix_sum(struct chempi_comm *comm, int64_t mine, int64_t *before)
{
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_EXSCAN,
                                 .comm = comm,
                                 .sbuf = &mine,
                                 .rbuf = before,
                                 .rcount = 1,
                                 .rtype = chempi_datatype_lookup(MPI_INT64_T),
                                 .op = chempi_op_lookup(MPI_SUM)};

    *before = 0;
    return chempi_coll_do(&c);
}

/*
 * Member i begins where those before it end. The last one knows the sum, and
 * moves the shared pointer on. A member that has failed asks for nothing.
 */
static int place_in_order(struct chempi_io_op *op, struct chempi_file *file)
{
    struct chempi_comm *comm = file->comm;
    uint64_t esize = op->view->esize;
    int64_t mine = esize ? (int64_t)(op->bytes / esize) : 0;
    int last = (int)comm->size - 1;
    int64_t before;
    uint64_t start = 0;
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BCAST,
                                 .root = last,
                                 .comm = comm,
                                 .rbuf = &start,
                                 .rcount = sizeof(start),
                                 .rtype = chempi_coll_byte()};
    int rc = prefix_sum(comm, mine, &before);

    if (!rc && comm->rank == last)
        rc = chempi_io_shared_add(file, (uint64_t)(before + mine), &start);
    if (!rc)
        rc = chempi_coll_do(&c);
    op->position = (start + (uint64_t)before) * esize;
    return rc;
}

/* ---- the call ---- */

int chempi_io_collective(const struct chempi_io_call *c, MPI_Status *status)
{
    struct chempi_file *file = c->file;
    struct chempi_io_op op;
    int rc = chempi_io_quiet(file);

    if (!rc)
        rc = chempi_io_op_open(&op, c);
    if (rc)
        chempi_io_op_open_empty(&op, c, rc);
    if (c->place == CHEMPI_IO_SHARED)
        chempi_io_op_note(&op, place_in_order(&op, file));
    chempi_io_two_phase(&op);
    if (c->place == CHEMPI_IO_INDIVIDUAL && op.done < op.bytes) {
        (void)pthread_mutex_lock(&file->lock);
        file->pointer -= (op.bytes - op.done) / op.view->esize;
        (void)pthread_mutex_unlock(&file->lock);
    }
    rc = chempi_io_op_close(&op, status);
    return chempi_io_agree(file->comm, rc);
}
