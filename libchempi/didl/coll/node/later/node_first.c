/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a communicator that does not know yet whether it has an area,
 * and of one that has none (node_later.h, L8). The first one hears that at its
 * head, as a blocking one does in node.c: member 0's number goes to all, each
 * enters that area, and all learn whether everybody has. None of them says so
 * whose messages are empty, or who got an empty one, as after an error; so all
 * come to the same. Who has learnt that everybody has entered has heard from
 * all: a barrier needs no messages of its own then.
 */
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/coll/sched.h"

struct first {
    struct chempi_node_task task; /* first */
    int32_t area;
    int32_t is_there;
};

static struct first *of_task(struct chempi_node_task *t)
{
    return (struct first *)t;
}

static bool has_failed(const struct chempi_node_task *t)
{
    return t->messages->failed || t->messages->error;
}

static void go_by_messages(struct chempi_node_task *t)
{
    t->is_void = true;
    task_end(t);
}

static void learn(struct chempi_node_task *t)
{
    const bool is_for_all = of_task(t)->is_there && !has_failed(t);

    chempi_coll_node_decide(t->c->comm, is_for_all);
    t->messages->op = t->c->op;
    if (is_for_all && t->c->kind == CHEMPI_COLL_BARRIER)
        task_end(t);
    else
        go_by_messages(t);
}

static void hear(struct chempi_node_task *t)
{
    struct first *f = of_task(t);

    f->is_there = !has_failed(t) && chempi_coll_node_hear(t->c->comm, f->area);
    chempi_coll_build_allreduce(
        t->messages, &(struct chempi_coll_call){
                         .kind = CHEMPI_COLL_ALLREDUCE,
                         .comm = t->c->comm,
                         .op = chempi_op_lookup(MPI_MIN),
                         .send.buf = MPI_IN_PLACE,
                         .recv.buf = &f->is_there,
                         .recv.count = 1,
                         .recv.type = chempi_datatype_lookup(MPI_INT32_T),
                     });
    task_go_on(t, learn);
}

static void begin(struct chempi_node_task *t)
{
    struct first *f = of_task(t);

    if (chempi_coll_node_stage(t->cell.st) != CHEMPI_NODE_NEWS) {
        go_by_messages(t);
        return;
    }
    if (task_lacks_messages(t, begin))
        return;
    f->area = chempi_coll_node_take(t->c->comm);
    chempi_coll_build_bcast(t->messages, &(struct chempi_coll_call){
                                             .kind = CHEMPI_COLL_BCAST,
                                             .comm = t->c->comm,
                                             .recv.buf = &f->area,
                                             .recv.count = sizeof(f->area),
                                             .recv.type = chempi_coll_byte(),
                                         });
    task_go_on(t, hear);
}

const struct chempi_node_steps chempi_node_steps_first =
    CHEMPI_NODE_STEPS(struct first, begin);
