/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls: who goes where, which way, and whose error it is. */
#include "libchempi/didl/io/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/shared.h"

static int check_split(const struct chempi_file *file)
{
    if (file->split)
        return chempi_error_set(MPI_ERR_IO,
                                "a split collective operation on %s is under "
                                "way; end it first",
                                file->path);
    return MPI_SUCCESS;
}

int chempi_io_quiet(struct chempi_file *file)
{
    int rc = chempi_io_task_wait_all(&file->tasks);

    return rc ? rc : check_split(file);
}

int chempi_io_quiet_for(struct chempi_file *file, int refused)
{
    char words[CHEMPI_IO_WORDS_MAX];
    const char *noted = chempi_error_noted(refused);
    int rc;

    if (!refused)
        return chempi_io_quiet(file);
    (void)snprintf(words, sizeof(words), "%s", noted ? noted : "");
    rc = chempi_io_quiet(file);
    (void)rc; /* the first one counts */
    (void)chempi_error_set(refused, "%s", words);
    return chempi_io_name_file(file, refused, -1);
}

/* ---- in order ---- */

static int prefix_sum(struct chempi_comm *comm, int64_t mine, int64_t *before)
{
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_EXSCAN,
                                 .comm = comm,
                                 .send.buf = &mine,
                                 .recv.buf = before,
                                 .recv.count = 1,
                                 .recv.type =
                                     chempi_datatype_lookup(MPI_INT64_T),
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
                                 .recv.buf = &start,
                                 .recv.count = sizeof(start),
                                 .recv.type = chempi_coll_byte()};
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

/* ---- the access ---- */

static void know_error(struct chempi_io_task *t)
{
    struct chempi_io_op *op = &chempi_io_coll_of(t)->op;

    chempi_io_count(CHEMPI_IO_COUNT_AGREE_NS,
                    chempi_clock_ns() - chempi_io_coll_of(t)->began_ns);
    op->error = MPI_SUCCESS; /* its own is among the agreed ones */
    chempi_io_op_note(op, t->rc);
}

static void accessed(struct chempi_io_task *t)
{
    struct chempi_io_coll *coll = chempi_io_coll_of(t);

    coll->began_ns = chempi_clock_ns();
    chempi_io_task_agree(t, coll->op.error, coll->op.words, know_error);
}

/* A member that cannot take part goes through the motions, so that nobody
 * waits for it. Its error. */
static int open_access(struct chempi_io_coll *coll,
                       const struct chempi_io_call *c, bool may_wait)
{
    struct chempi_file *file = c->file;
    int rc = may_wait || c->place == CHEMPI_IO_SHARED
                 ? chempi_io_quiet_for(file, c->refused)
             : c->refused ? c->refused
                          : check_split(file);

    if (!rc)
        rc = chempi_io_op_open(&coll->op, c);
    if (rc)
        chempi_io_op_open_empty(&coll->op, c, rc);
    if (c->place == CHEMPI_IO_SHARED) {
        int failed = place_in_order(&coll->op, file);

        if (failed)
            coll->op.bytes = 0; /* it has no place */
        chempi_io_op_note(&coll->op, failed);
        rc = rc ? rc : failed;
    }
    chempi_io_task_init(&coll->task, file->comm, chempi_io_two_phase);
    coll->after_access = accessed;
    coll->exchange = NULL;
    coll->learning = NULL;
    return rc;
}

int chempi_io_collective(const struct chempi_io_call *c, MPI_Status *status)
{
    struct chempi_io_coll coll;

    (void)open_access(&coll, c, true);
    chempi_io_task_run(&coll.task);
    chempi_io_op_correct_pointer(&coll.op, c->place);
    return chempi_io_op_close(&coll.op, status);
}

int chempi_io_coll_start(struct chempi_io_coll *coll,
                         const struct chempi_io_call *c,
                         void (*end)(struct chempi_io_task *t))
{
    char words[sizeof(coll->op.words)];
    int rc = open_access(coll, c, false);

    memcpy(words, coll->op.words, sizeof(words));
    chempi_io_task_start(&coll->task, &c->file->tasks, end);
    return rc ? chempi_error_set(rc, "%s", words) : MPI_SUCCESS;
}
