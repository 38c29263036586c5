/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls: who goes where, which way, and whose error it is. */
#include "libchempi/didl/io/collective.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/io/count.h"

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

/* What the last member tells all. */
struct start {
    uint64_t at;   /* etypes; where member 0 begins */
    int64_t error; /* MPI error class: nobody has a place */
};

/* The sums of all members are below this, so their sum is no overflow. */
static int64_t etypes_of(const struct chempi_io_op *op)
{
    int64_t max = INT64_MAX / op->file->comm->size;
    int64_t n = op->view->esize ? (int64_t)(op->bytes / op->view->esize) : 0;

    return n < max ? n : max;
}

/*
 * Member i begins where those before it end. The last one knows the sum, and
 * moves the shared pointer on. A member that has failed asks for nothing; one
 * that fails here goes on to the end, too, as the others wait for it.
 */
static int place_in_order(struct chempi_io_op *op, struct chempi_file *file)
{
    struct chempi_comm *comm = file->comm;
    int64_t mine = etypes_of(op);
    int last = (int)comm->size - 1;
    int64_t before = 0;
    struct start start = {0};
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BCAST,
                                 .root = last,
                                 .comm = comm,
                                 .rbuf = &start,
                                 .rcount = sizeof(start),
                                 .rtype = chempi_coll_byte()};
    int rc = prefix_sum(comm, mine, &before);
    int failed;

    if (!rc && comm->rank == last)
        rc = chempi_io_shared_add(file, (uint64_t)(before + mine), &start.at);
    start.error = rc;
    failed = chempi_coll_do(&c);
    if (rc || failed)
        return rc ? rc : failed;
    if (start.error)
        return chempi_error_set((int)start.error,
                                "rank %d could not move the shared pointer of "
                                "%.160s",
                                last, file->path);
    return chempi_io_op_place(op, start.at + (uint64_t)before);
}

/* ---- the call ---- */

int chempi_io_collective(const struct chempi_io_call *c, MPI_Status *status)
{
    struct chempi_file *file = c->file;
    struct chempi_io_op op;
    uint64_t begin;
    int rc = chempi_io_quiet(file);

    if (!rc)
        rc = chempi_io_op_open(&op, c);
    if (rc)
        chempi_io_op_open_empty(&op, c, rc);
    if (c->place == CHEMPI_IO_SHARED) {
        rc = place_in_order(&op, file);
        if (rc)
            op.bytes = 0; /* it has no place */
        chempi_io_op_note(&op, rc);
    }
    chempi_io_two_phase(&op);
    if (c->place == CHEMPI_IO_INDIVIDUAL && op.done < op.bytes) {
        (void)pthread_mutex_lock(&file->lock);
        file->pointer -= (op.bytes - op.done) / op.view->esize;
        (void)pthread_mutex_unlock(&file->lock);
    }
    rc = chempi_io_op_close(&op, status);
    begin = chempi_clock_ns();
    rc = chempi_io_agree(file->comm, rc);
    chempi_io_count(CHEMPI_IO_COUNT_AGREE_NS, chempi_clock_ns() - begin);
    return rc;
}
