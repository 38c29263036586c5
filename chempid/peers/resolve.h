/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of hosts, looked up in a process of its own for each: the system's
 * call may block for minutes, and other threads must not be where processes
 * fork. The caller has the deadline. What is left of a process is the
 * supervisors's.
 */
#ifndef CHEMPI_CHEMPID_RESOLVE_H
#define CHEMPI_CHEMPID_RESOLVE_H

#include <ev.h>

#include "chempid/supervisor/supervisors.h"
#include "chempid/tree/addr.h"

struct chempi_resolve {
    struct ev_loop *loop;
    struct chempi_supervisors *supervisors;
    ev_io io;
    int fd; /* -1: nothing is under way */
    pid_t pid;
    /* Once, from the loop: the address, or NULL with words. May stop and free
     * the struct. */
    void (*done)(void *arg, const struct chempi_addr *addr,
                 const struct chempi_err *err);
    void *arg;
};

/* Begin to look up; loop, supervisors, done and arg are set by the caller. 0;
 * -EAGAIN: CHEMPI_RESOLVE_MAX are under way; -errno; with words. */
int chempi_resolve_start(struct chempi_resolve *r, const char *text,
                         struct chempi_err *err);
/* Without done(); idempotent. */
void chempi_resolve_stop(struct chempi_resolve *r);

#endif
