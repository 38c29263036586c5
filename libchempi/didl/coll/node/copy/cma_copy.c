/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying from and to other processes of the node; see cma_copy.h.
 *
 *   D1  a process writes its own card before it takes part in any collective,
 *       and never again; whoever got a line from it may read the card
 *   D2  states only go from UNKNOWN to one of the others; threads that find
 *       out at the same time find the same
 */
#define _GNU_SOURCE /* getpid, clock_gettime */
#include "libchempi/didl/coll/node/copy/cma_copy.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/services/cma.h"

/* Bytes that are copied before others' progress is looked after. */
#define SLICE_MAX (UINT64_C(4) << 20)

struct card {
    _Alignas(CHEMPI_CACHE_LINE) int32_t pid;
    uint64_t at; /* address of .. */
    uint64_t number;
};

enum state { UNKNOWN, WORKS, REFUSED };

struct peer {
    _Atomic int state; /* enum state */
    _Atomic int32_t pid;
};

static struct {
    struct card *cards; /* [count], shared; NULL: off */
    struct peer *peers; /* [count] */
    uint32_t count;
    uint64_t number;
} direct;

size_t chempi_coll_cma_copy_len(uint32_t local_size)
{
    return local_size * sizeof(struct card);
}

void chempi_coll_cma_copy_init(void *shared, uint32_t local_size,
                               uint32_t local_rank)
{
    struct card *card = (struct card *)shared + local_rank;

    direct.peers = chempi_sys->calloc(local_size, sizeof(*direct.peers));
    direct.count = direct.peers ? local_size : 0;
    direct.cards = shared;
    direct.number = chempi_clock_ns() * UINT64_C(0x9e3779b97f4a7c15) ^
                    (uint64_t)getpid() << 32;
    card->at = (uint64_t)(uintptr_t)&direct.number;
    card->number = direct.number;
    card->pid = (int32_t)getpid();
}

void chempi_coll_cma_copy_fini(void)
{
    free(direct.peers);
    direct.peers = NULL;
    direct.cards = NULL;
    direct.count = 0;
}

bool chempi_coll_cma_copy_is_on(void)
{
    return direct.cards != NULL && chempi_setting(CHEMPI_SET_COLL_NODE_COPY);
}

static CHEMPI_COLD enum state probe(uint32_t local)
{
    struct card card = direct.cards[local];
    struct peer *peer = &direct.peers[local];
    enum state state = REFUSED;
    uint64_t found = ~card.number;
    uint64_t done;

    if (card.pid > 0 &&
        chempi_cma_read(card.pid, &found, NULL, card.at, sizeof(found),
                        &done) == 0 &&
        found == card.number)
        state = WORKS;
    atomic_store_explicit(&peer->pid, card.pid, memory_order_relaxed);
    atomic_store_explicit(&peer->state, state, memory_order_release);
    return state;
}

/* The process of a local rank. 0: not to be copied from or to. */
static pid_t pid_of(uint32_t local)
{
    int state;

    if (CHEMPI_UNLIKELY(local >= direct.count))
        return 0;
    state =
        atomic_load_explicit(&direct.peers[local].state, memory_order_acquire);
    if (CHEMPI_UNLIKELY(state == UNKNOWN))
        state = (int)probe(local);
    return state == WORKS ? atomic_load_explicit(&direct.peers[local].pid,
                                                 memory_order_relaxed)
                          : 0;
}

typedef int copy_fn(pid_t pid, void *buf, struct chempi_segment *iter,
                    uint64_t remote, uint64_t len, uint64_t *done);

static int copy_out(pid_t pid, void *buf, struct chempi_segment *iter,
                    uint64_t remote, uint64_t len, uint64_t *done)
{
    return chempi_cma_write(pid, buf, iter, remote, len, done);
}

static int copy(uint32_t local, copy_fn *fn, char *buf,
                struct chempi_segment *iter, uint64_t remote, uint64_t len)
{
    pid_t pid = pid_of(local);
    uint64_t done;
    int rc;

    if (pid == 0)
        return -EPERM;
    for (uint64_t at = 0; at < len; at += done) {
        uint64_t n = len - at < SLICE_MAX ? len - at : SLICE_MAX;

        if (at > 0)
            (void)chempi_progress_poll();
        rc = fn(pid, buf ? buf + at : NULL, iter, remote + at, n, &done);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int chempi_coll_cma_copy_get(uint32_t local, uint64_t remote, uint64_t len,
                             void *buf, MPI_Count count,
                             const struct chempi_datatype *type)
{
    struct chempi_segment iter;

    if (CHEMPI_LIKELY(type->is_contiguous))
        return copy(local, chempi_cma_read,
                    (char *)((uintptr_t)buf + (uintptr_t)type->true_lb), NULL,
                    remote, len);
    chempi_segment_init(&iter, buf, (uint64_t)count, type->layout);
    return copy(local, chempi_cma_read, NULL, &iter, remote, len);
}

int chempi_coll_cma_copy_next(uint32_t local, uint64_t remote, uint64_t len,
                              void *buf, struct chempi_segment *iter)
{
    assert(len <= CHEMPI_COLL_CMA_PIECE_MAX);
    return copy(local, chempi_cma_read, buf, iter, remote, len);
}

int chempi_coll_cma_copy_put_next(uint32_t local, uint64_t remote, uint64_t len,
                                  const void *buf, struct chempi_segment *iter)
{
    assert(len <= CHEMPI_COLL_CMA_PIECE_MAX);
    return copy(local, copy_out, (void *)(uintptr_t)buf, iter, remote, len);
}

int chempi_coll_cma_copy_read(uint32_t local, uint64_t remote, void *buf,
                              uint64_t len)
{
    return copy(local, chempi_cma_read, buf, NULL, remote, len);
}

int chempi_coll_cma_copy_write(uint32_t local, uint64_t remote, const void *buf,
                               uint64_t len)
{
    return copy(local, copy_out, (void *)(uintptr_t)buf, NULL, remote, len);
}
