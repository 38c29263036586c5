/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world that ranks have started, and its link to the launcher that has
 * started it (worlds.h): on the side of this one, which is a child of that one
 * and has the link for descriptor CHEMPI_ABOVE_FD.
 *
 *   above -> here: LAUNCH       u32 world, what is inherited (inherit.h), blob
 *                               of CHEMPI_ROOT_SPAWN; first
 *                  ROOT_REPLY   as on the tree
 *                  SIGNAL       u32 number
 *                  KILL         u32 exit status, str text
 *   here -> above: STARTED      u32 ranks; or
 *                  REFUSED      u32 app, str text: nothing was started
 *                  ROOT_REQUEST as on the tree
 *                  GONE         str text: why it has ended, "" for well; last
 */
#ifndef CHEMPI_CHEMPID_ABOVE_H
#define CHEMPI_CHEMPID_ABOVE_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/channel.h"

#define CHEMPI_ABOVE_OPTION "--world"
#define CHEMPI_ABOVE_FD 3

struct chempi_above_ops {
    void (*replied)(void *arg, const void *data, size_t len);
    void (*signalled)(void *arg, uint32_t number);
    /* The world shall end; also when the link is lost. */
    void (*end)(void *arg, int status, const char *text);
};

struct chempi_above {
    struct chempi_channel ch;
    struct ev_loop *loop; /* NULL: not watched */
    ev_io in;
    ev_io out;
    const struct chempi_above_ops *ops;
    void *arg;
    bool has_answered; /* STARTED or REFUSED is said */
    bool has_started;
};

/* Take over the descriptor and wait for the first frame, valid until watch().
 * 0 or -errno with words; then nothing is left. */
int chempi_above_open(struct chempi_above *above, struct chempi_frame *first,
                      struct chempi_err *err);
/* Hear what is said, in this loop; and not any more. */
void chempi_above_watch(struct chempi_above *above, struct ev_loop *loop,
                        const struct chempi_above_ops *ops, void *arg);
void chempi_above_unwatch(struct chempi_above *above);
/* Says all that is left to say. */
void chempi_above_close(struct chempi_above *above);

/* Of the first two only the first one is said. */
void chempi_above_started(struct chempi_above *above, uint32_t ranks);
void chempi_above_refused(struct chempi_above *above, uint32_t app,
                          const char *text);
void chempi_above_ask(struct chempi_above *above, const void *data, size_t len);
void chempi_above_gone(struct chempi_above *above, const char *text);

#endif
