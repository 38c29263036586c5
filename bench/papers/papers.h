/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be measured: protocols between two processes, by half the round
 * trip as in the papers, and single operations of one process.
 */
#ifndef CHEMPI_BENCH_PAPERS_PAPERS_H
#define CHEMPI_BENCH_PAPERS_PAPERS_H

#include "bench/papers/pair.h"

/* User buffers are this much longer than a message, and aligned to it: the
 * SCI protocols store whole lines. */
#define PAPERS_LINE 64u

struct experiment {
    const char *name;
    size_t len_max; /* bytes of a message */
    /* Prepare for messages up to len_max; both processes call it. */
    void (*open)(struct pair *pair);
    /* Memory of len_max bytes for the received message. NULL: any will do. */
    void *(*buffer)(struct pair *pair);
    /* A protocol: one process sends, the other receives. */
    void (*send)(struct pair *pair, const void *message, size_t len);
    void (*recv)(struct pair *pair, void *message, size_t len);
    /* It sleeps, and so may be waked too late to have to sleep again: noise
     * shortens it, too, and the median counts. */
    bool does_sleep;
    /* Or a single operation, by process 0 alone. */
    void (*act)(struct pair *pair, size_t len);
    /* What must be done before each one, and is not measured. NULL: nothing */
    void (*ready)(struct pair *pair, size_t len);
    /* That takes these many operations together as one. 0: 1. */
    unsigned acts;
};

extern const struct experiment *const papers_raw[];
extern const struct experiment *const papers_deck[];
extern const struct experiment *const papers_scimpich[];
extern const struct experiment *const papers_mpipro[];
extern const struct experiment *const papers_gasnet[];

static inline size_t papers_round(size_t len)
{
    return (len + PAPERS_LINE - 1) / PAPERS_LINE * PAPERS_LINE;
}

#endif
