/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, each with an adapter, connected with each other: what the
 * programs of the papers run on. Errors end the program with one sentence;
 * nothing here outlives it.
 */
#ifndef CHEMPI_BENCH_PAPERS_PAIR_H
#define CHEMPI_BENCH_PAPERS_PAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/devices/scivia/adapter/sci/sci.h"
#include "libchempi/devices/scivia/adapter/via/via.h"

#define PAIR_SEGMENT 1u
#define PAIR_TAG 4711u

/* What both processes see from the start; stands for the process manager. */
struct board {
    unsigned char addresses[2][CHEMPI_ADAPTER_ADDRESS_BYTES];
    _Atomic uint32_t arrived[2]; /* barriers */
    uint64_t windows[2];         /* vi.h */
    uint32_t window_handles[2];
    double waits[2]; /* pair_close() */
    _Atomic unsigned batch;
    _Atomic unsigned repeats; /* of a round, as process 0 says */
};

struct pair {
    int rank; /* 0 or 1 */
    struct board *board;
    struct chempi_adapter *adapter;
    struct chempi_adapter_link *link;
    /* the SCI half, once pair_segment() was called */
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char *local; /* our segment's memory */
    void *state;          /* the protocol's */
    bool has_clock;       /* a personality's */
};

/* End both processes with words on stderr. */
_Noreturn void pair_die(const struct pair *pair, const char *what);

/* Fork and connect; returns in both processes. NULL: a free clock. */
void pair_open(struct pair *pair, const struct chempi_personality *personality);
/*
 * Close; the parent waits for its child, and prints which share of their time
 * the more unlucky process had to wait for a processor. Returns the program's
 * exit status.
 */
int pair_close(struct pair *pair);

/* Memory of len bytes, aligned to a page, filled with something; never NULL. */
void *pair_memory(const struct pair *pair, size_t len);

/* The processor works for that long; nothing with a free clock. */
void pair_work(const struct pair *pair, uint64_t ns);

/* Both processes reach this point. */
void pair_barrier(struct pair *pair);

/* Export a segment of len bytes at both sides, and map the other's. */
void pair_segment(struct pair *pair, size_t len);

/* 0 or the end: for calls that cannot fail in these programs. */
void pair_check(const struct pair *pair, int rc);

/* A store to the other side's segment. */
void pair_store(struct pair *pair, uint64_t offset, const void *src,
                size_t len);

/* Our segment's memory, which the other side writes. */
static inline uint8_t pair_load8(const struct pair *pair, size_t offset)
{
    return atomic_load_explicit((_Atomic uint8_t *)(pair->local + offset),
                                memory_order_acquire);
}
static inline uint32_t pair_load32(const struct pair *pair, size_t offset)
{
    return atomic_load_explicit(
        (_Atomic uint32_t *)(void *)(pair->local + offset),
        memory_order_acquire);
}
static inline uint64_t pair_load64(const struct pair *pair, size_t offset)
{
    return atomic_load_explicit(
        (_Atomic uint64_t *)(void *)(pair->local + offset),
        memory_order_acquire);
}

/* Between two looks at memory; gives the processor away now and then. */
void pair_relax(uint32_t *looks);

#endif
