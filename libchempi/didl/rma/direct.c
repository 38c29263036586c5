/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that the origin does itself: loads and stores where the target's
 * memory is mapped, cross-memory attach where it is another process's. They
 * are complete at return, at the origin and at the target.
 */
#include <errno.h>
#include <string.h>

#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/services/cma.h"

enum {
    CHUNK = 8192, /* bytes; packed data of scattered origins, on the stack */
    RUNS = 64,
    ATTACH_RUN_MIN = 512 /* bytes; shorter runs of the target cost the kernel
                            more than messages do */
};

char *chempi_rma_address(const struct chempi_rma_peer *peer, MPI_Aint disp)
{
    return (char *)((uintptr_t)peer->mem +
                    (uintptr_t)(disp * (MPI_Aint)peer->unit));
}

int chempi_rma_direct_put(struct chempi_rma_op *op)
{
    chempi_rma_note_stores(op->win);
    return chempi_datatype_copy(
        op->origin.buf, op->origin.count, op->origin.type,
        chempi_rma_address(op->peer, op->disp), op->count, op->type);
}

int chempi_rma_direct_get(struct chempi_rma_op *op)
{
    return chempi_datatype_copy(chempi_rma_address(op->peer, op->disp),
                                op->count, op->type, op->result.buf,
                                op->result.count, op->result.type);
}

/* ---- accumulates ---- */

/* One side of the origin as packed bytes: in place, or by an iterator. */
struct packed {
    char *flat; /* NULL: iter */
    struct chempi_segment iter;
};

static void open_side(struct packed *p, const struct chempi_rma_side *side)
{
    p->flat = NULL;
    if (!side->type)
        return;
    if (side->type->is_contiguous)
        p->flat = side->buf + side->type->true_lb;
    else
        chempi_segment_init(&p->iter, side->buf, (uint64_t)side->count,
                            side->type->layout);
}

static struct chempi_rma_place place_of(const struct chempi_rma_op *op)
{
    const struct chempi_rma_peer *peer = op->peer;
    char *addr = chempi_rma_address(peer, op->disp);
    struct chempi_rma_place place = {
        .base = addr, .end = UINTPTR_MAX, .count = (uint64_t)op->count};

    place.guard = chempi_rma_guard(op->win, (uint32_t)peer->local);
    if (op->type->is_contiguous)
        place.base = addr + op->type->true_lb;
    else
        place.layout = op->type->layout;
    return place;
}

int chempi_rma_direct_fold(struct chempi_rma_op *op)
{
    const struct chempi_rma_place place = place_of(op);
    const uint64_t size = chempi_basic_type_table[op->elem].size;
    const bool has_in = op->op != CHEMPI_OP_NO_OP;
    const uint64_t most = CHUNK / size * size;
    unsigned char in_chunk[CHUNK];
    unsigned char out_chunk[CHUNK];
    struct packed in = {0};
    struct packed out = {0};

    if (has_in)
        open_side(&in, &op->origin);
    if (op->is_fetch)
        open_side(&out, &op->result);
    for (uint64_t at = 0; at < op->len;) {
        uint64_t n = op->len - at < most ? op->len - at : most;
        void *from = in.flat ? in.flat + at : (char *)in_chunk;
        void *to = out.flat ? out.flat + at : (char *)out_chunk;

        if (has_in && !in.flat)
            (void)chempi_segment_pack(&in.iter, in_chunk, n);
        chempi_rma_fold(&place, op->op, op->elem, at, n, has_in ? from : NULL,
                        op->is_fetch ? to : NULL);
        if (op->is_fetch && !out.flat)
            (void)chempi_segment_unpack(&out.iter, out_chunk, n);
        at += n;
    }
    return MPI_SUCCESS;
}

int chempi_rma_direct_swap(struct chempi_rma_op *op, const void *compare)
{
    const struct chempi_rma_guard guard =
        chempi_rma_guard(op->win, (uint32_t)op->peer->local);

    chempi_rma_swap(&guard, chempi_rma_address(op->peer, op->disp), op->len,
                    compare, op->origin.buf, op->result.buf);
    return MPI_SUCCESS;
}

/* ---- cross-memory attach ---- */

static int attach_error(const struct chempi_rma_op *op, int rc)
{
    const struct chempi_rma_peer *peer = op->peer;

    if (rc == -ESRCH)
        return chempi_error_set(MPI_ERR_PROC_ABORTED, "%s: rank %u is gone",
                                chempi_rma_name(op->win), peer->rank);
    if (rc == -EFAULT)
        return chempi_error_set(
            MPI_ERR_RMA_RANGE,
            "%s: %llu bytes at displacement %lld of rank %u are not memory of "
            "that process (or the buffer here is not)",
            chempi_rma_name(op->win), (unsigned long long)op->len,
            (long long)op->disp, peer->rank);
    return chempi_error_set(
        MPI_ERR_OTHER, "%s: cross-memory attach to rank %u: %s",
        chempi_rma_name(op->win), peer->rank, strerror(-rc));
}

static int copy(pid_t pid, char *flat, struct chempi_segment *iter,
                uint64_t addr, uint64_t len, bool is_put)
{
    uint64_t done = 0;

    return is_put ? chempi_cma_write(pid, flat, iter, addr, len, &done)
                  : chempi_cma_read(pid, flat, iter, addr, len, &done);
}

/* Run by run of the target; the origin's side goes on where it stands. */
static int copy_runs(const struct chempi_rma_op *op, struct packed *side,
                     uint64_t base, bool is_put)
{
    struct chempi_segment iter;
    struct iovec runs[RUNS];
    uint64_t at = 0;

    chempi_segment_init(&iter, (const void *)(uintptr_t)base,
                        (uint64_t)op->count, op->type->layout);
    while (at < op->len) {
        size_t count = chempi_segment_runs(&iter, runs, RUNS, op->len - at);

        for (size_t i = 0; i < count; i++) {
            int rc = copy(
                (pid_t)op->peer->pid, side->flat ? side->flat + at : NULL,
                side->flat ? NULL : &side->iter,
                (uint64_t)(uintptr_t)runs[i].iov_base, runs[i].iov_len, is_put);

            if (rc)
                return rc;
            at += runs[i].iov_len;
        }
        if (!count)
            return -EFAULT;
    }
    return 0;
}

static int attach(struct chempi_rma_op *op, const struct chempi_rma_side *mine,
                  bool is_put)
{
    uint64_t base =
        op->peer->base + (uint64_t)(op->disp * (MPI_Aint)op->peer->unit);
    struct packed side;
    struct chempi_segment probe;
    int rc;

    open_side(&side, mine);
    if (!op->type->is_contiguous) {
        chempi_segment_init(&probe, NULL, (uint64_t)op->count,
                            op->type->layout);
        if (chempi_segment_mean_run(&probe) < ATTACH_RUN_MIN)
            return -1;
        rc = copy_runs(op, &side, base, is_put);
    } else {
        rc =
            copy((pid_t)op->peer->pid, side.flat, side.flat ? NULL : &side.iter,
                 base + (uint64_t)op->type->true_lb, op->len, is_put);
    }
    return rc ? attach_error(op, rc) : MPI_SUCCESS;
}

int chempi_rma_attach_put(struct chempi_rma_op *op)
{
    chempi_rma_note_stores(op->win);
    return attach(op, &op->origin, true);
}

int chempi_rma_attach_get(struct chempi_rma_op *op)
{
    return attach(op, &op->result, false);
}
