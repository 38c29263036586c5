/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a collective request has, and its memory; async.c.
 *
 *   -   everything here is guarded by the lane lock
 *   E2  a request is on `running` of its engine from its start to its
 *       completion. Those that combine by a user's function have an engine of
 *       their own, which the agent does not run
 *   E3  the lock is let go only while a user's function combines data; then
 *       is_busy keeps other threads away from this request, and whoever walks
 *       the list starts over afterwards
 *   -   steps from number `own_count` on are what others have appended since
 *       the start; they are gone at the next one
 *   -   children[0..open) are the messages since the last fence; those before
 *       `finished` are complete and given back
 *   E5  who has no memory for a request takes the spare one, and part in the
 *       operation without data, unless its call begins it (sched.h, S4): the
 *       others wait for nobody, and the error is that of the completion. Not so
 *       persistent operations, which others may never start, and those of the
 *       library, whose job ends
 *   E6  a message for which there is no memory takes the operation's own
 *       request, one for all that it sends and one for all that it receives
 *   E7  as long as an operation whose only step is in the node's memory does
 *       without a schedule, `single` is that step. If its call has begun it
 *       there is no schedule yet (is_bare); the step lies where it will be then
 *   E8  memory that was found is the first that is free until it is taken:
 *       nothing gives memory back, or takes other, between the two
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_MEMORY_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_ASYNC_MEMORY_H

#include "common/base/compiler.h"
#include "libchempi/didl/coll/node/later/node_later.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/transport/request.h"

enum {
    ASYNC_FEW = CHEMPI_COLL_WINDOW + 2 /* messages of what steps in the node's
                                    memory may append */
};

struct async {
    struct chempi_request req; /* first: the handle points here */
    struct chempi_list link;   /* running */
    struct async *next_free;   /* of one that is gone */
    struct chempi_op *op;      /* held, or NULL */
    bool is_busy;
    bool is_urgent; /* its messages are for the agents of others, too */
    bool has_held;  /* comm, op and types are held */
    bool is_bare;   /* E7 */
    bool has_more;  /* steps or memory since it was built, perhaps */
    struct chempi_node_later_op *single;
    struct chempi_node_later_op *only;          /* step that was built, or
                                                   NULL */
    uint32_t next;                              /* step */
    uint32_t moves;                             /* ever; wraps */
    uint32_t own_count;                         /* steps that were built */
    uint32_t own_inline;                        /* and their memory: bytes, */
    const struct chempi_coll_block *own_blocks; /* and the last block */
    int open;
    int finished;
    int error;
    int failed; /* error class of building */
    struct {
        int32_t rank;  /* who sent another amount; -1: nobody, or it is not
                          known */
        uint64_t len;  /* bytes */
        uint64_t room; /* bytes expected */
    } mismatch;        /* that made the error */
    struct chempi_request **children;      /* [room], room >= sched.widest */
    struct chempi_request *few[ASYNC_FEW]; /* the first ones */
    int room;
    struct chempi_request own[2]; /* E6, by kind of step */
    bool is_own_used[2];
    bool is_short; /* the next message waits for one of those */
    struct chempi_coll_sched sched;
};

static inline struct async *chempi_coll_async_of_link(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct async, link);
}

/* The step in the node's memory, if that is the next one. */
static inline struct chempi_node_later_op *
chempi_coll_async_node_step(const struct async *a)
{
    const struct chempi_coll_sched *s = &a->sched;

    if (CHEMPI_LIKELY(a->single != NULL))
        return a->single;
    if (a->next == s->count || s->steps[a->next].kind != CHEMPI_COLL_NODE)
        return NULL;
    return s->steps[a->next].dst;
}

/* Memory of requests that are gone, for the next ones; the last one first,
 * which the caches have. On the list of all requests (request.h, Q5). */
extern struct chempi_coll_async_pool {
    struct async *free; /* linked by next_free */
    uint32_t count;
} chempi_coll_async_pool;

struct async *chempi_coll_async_grow(void);

/* Memory that is free, and stays so until it is taken (E8): of one that is
 * gone, or new, or the spare one (E5), or NULL. On the list of all requests
 * once it is taken. Under the lock, as all of these, which is kept until then;
 * what is called between the two makes no progress and completes no request. */
static inline struct async *chempi_coll_async_find(void)
{
    return CHEMPI_LIKELY(chempi_coll_async_pool.free != NULL)
               ? chempi_coll_async_pool.free
               : chempi_coll_async_grow();
}
void chempi_coll_async_take(struct async *a);
bool chempi_coll_async_is_spare(const struct async *a);

/* It is free again, or free()d, also if it was not taken from here but is on
 * the list. */
void chempi_coll_async_give(struct async *a);

void chempi_coll_async_memory_fini(void);

/* Hold the types of steps from number `first` on, or let go of them. */
void chempi_coll_async_hold_types(const struct async *a, uint32_t first,
                                  bool is_held);

/* The buffers of a persistent operation's messages are those of persistent
 * requests. Under the lock. */
void chempi_coll_async_hold_buffers(const struct async *a, bool is_held);

/* For as many messages as its schedule needs; false: there is none. */
bool chempi_coll_async_make_room(struct async *a);

#endif
