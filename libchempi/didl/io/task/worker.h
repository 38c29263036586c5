/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads for file access that must not keep the program waiting. They touch
 * nothing that the lane lock guards: a job that is done is put on a list, and
 * progress, which is woken, finishes it.
 *
 *   W1  a job is on one list: of those that wait, or of those that are done
 *   -   threads are started when a job finds none that is idle, up to
 *       CHEMPI_IO_WORKERS_MAX; they sleep while there is nothing to do, but
 *       for moments where jobs follow one another closely, block all signals,
 *       and end with the library
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_TASK_WORKER_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_TASK_WORKER_H

#include <stdbool.h>

#include "common/containers/list.h"

#define CHEMPI_IO_WORKERS_MAX 4

struct chempi_io_job {
    struct chempi_list link;
    /* In a worker, or at once where no thread can be had. Blocking. */
    void (*run)(struct chempi_io_job *job);
    /* From progress, perhaps in the agent: under the lane lock, which it does
     * not let go, and without functions of the user's. */
    void (*finish)(struct chempi_io_job *job);
};

/* Takes the lane lock. */
void chempi_io_submit(struct chempi_io_job *job);
/* The same, under it. */
void chempi_io_submit_locked(struct chempi_io_job *job);

/* The library ends; nothing is under way. */
void chempi_io_workers_fini(void);

#endif
