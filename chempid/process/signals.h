/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals as events of a loop. They stay blocked when they are watched no
 * more: one that comes at the very end shall not change how a process ends.
 */
#ifndef CHEMPI_CHEMPID_SIGNALS_H
#define CHEMPI_CHEMPID_SIGNALS_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

typedef void chempi_signals_fn(void *arg, uint32_t number);

struct chempi_signals {
    struct ev_loop *loop; /* NULL: nothing is watched */
    chempi_signals_fn *fn;
    void *arg;
    ev_io io;
    int fd;
};

/*
 * Block these signals, ignore SIGPIPE, and call fn in the loop for each that
 * comes. 0, or -errno with words; then they may be blocked.
 */
int chempi_signals_watch(struct chempi_signals *signals, struct ev_loop *loop,
                         const int *numbers, size_t count,
                         chempi_signals_fn *fn, void *arg,
                         struct chempi_err *err);

/* Before the loop is destroyed; also if nothing is watched. */
void chempi_signals_unwatch(struct chempi_signals *signals);

#endif
