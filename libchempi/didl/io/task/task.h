/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective access in stages. What would wait in the middle of a function
 * ends a stage instead: the next one runs when everything is over that the
 * stage has begun. So blocking, split and non-blocking calls are the same
 * code: a blocking call runs the stages itself, for the others progress does.
 *
 *   -   a stage begins messages and one collective operation, or work, and
 *       names the next stage; it does not block
 *   -   work is what may take long: access to the file system, copying. It
 *       runs in a worker unless the caller waits anyway, and does not touch
 *       what the lane lock guards
 *   K3  a task is on its file's list from its start to its end; the first one
 *       runs, so that all members run them in the same order (F4)
 *   K4  is_here: its thread runs it, without the lane lock. Else progress
 *       runs it under the lock, perhaps in the agent: no function of the
 *       user's is called
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_TASK_TASK_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_TASK_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/io/task/worker.h"

#define CHEMPI_IO_WORDS_MAX 256
#define CHEMPI_IO_SAME_MAX 2

struct chempi_file;
struct chempi_io_task;
struct chempi_request;

typedef void chempi_io_stage_fn(struct chempi_io_task *t);

/* Messages under way. */
struct chempi_io_messages {
    struct chempi_request **reqs; /* room is the owner's */
    int count;
};

struct chempi_io_task {
    struct chempi_comm *comm;
    bool is_here;             /* K4 */
    chempi_io_stage_fn *next; /* stage; NULL: that was the last one */
    int rc; /* MPI error class of what the last stage has begun, with words
               noted on this thread */

    /* What the next stage waits for. */
    struct chempi_io_messages *messages;
    struct chempi_request *coll;
    bool is_working;
    chempi_io_stage_fn *work;
    struct chempi_io_job job;

    /* Of an agreement. */
    chempi_io_stage_fn *after;
    uint8_t wish; /* see chempi_io_agree_same() */
    int sames;    /* numbers that are to be alike at all members */
    int64_t same[CHEMPI_IO_SAME_MAX];
    int64_t mine[1 + 2 * CHEMPI_IO_SAME_MAX];  /* error number or wish; each of
                                                  those, and its complement */
    int64_t worst[1 + 2 * CHEMPI_IO_SAME_MAX]; /* the largest of all members' */
    char words[CHEMPI_IO_WORDS_MAX];

    /* Of tasks that progress runs. */
    void (*end)(struct chempi_io_task *t); /* may free it */
    struct chempi_list of_file;            /* K3 */
    struct chempi_list running;            /* the first ones of their files */
    struct chempi_list *queue;             /* of its file */
};

/* There is no memory for what other members would wait for, for ever. */
CHEMPI_NORETURN CHEMPI_COLD void chempi_io_task_starve(void);

void chempi_io_task_init(struct chempi_io_task *t, struct chempi_comm *comm,
                         chempi_io_stage_fn *first);

/* Run it to its end here. Without the lane lock; blocking. */
void chempi_io_task_run(struct chempi_io_task *t);

/* Have progress run it behind those of the same queue; end() is called, under
 * the lane lock, when it is over. Takes the lock itself. */
void chempi_io_task_start(struct chempi_io_task *t, struct chempi_list *queue,
                          void (*end)(struct chempi_io_task *t));

/* All tasks of a queue are over. Takes the lock itself; blocking. */
int chempi_io_task_wait_all(struct chempi_list *queue);

/* ---- for stages: at most one of these, and t->next ---- */

/* Begin a message of len bytes on the task's communicator, within `m`; rc as
 * the error class of its beginning. Its end is waited for by await(). */
int chempi_io_task_post(struct chempi_io_task *t, struct chempi_io_messages *m,
                        void *buf, uint64_t len, int rank, int tag,
                        bool is_send);

/* Wait for all of them; m->count is 0 then. */
void chempi_io_task_await(struct chempi_io_task *t,
                          struct chempi_io_messages *m);

void chempi_io_task_work(struct chempi_io_task *t, chempi_io_stage_fn *work);

/* all[r * n ...] become member r's n words. */
void chempi_io_task_gather(struct chempi_io_task *t, const int64_t *mine, int n,
                           int64_t *all);

/*
 * The error of the lowest member that has one becomes everybody's; `after`
 * finds it in rc. words: of this member's rc, or NULL: as noted.
 */
void chempi_io_task_agree(struct chempi_io_task *t, int rc, const char *words,
                          chempi_io_stage_fn *after);

/* Called when the library ends; nothing is under way. */
void chempi_io_task_fini(void);

#endif
