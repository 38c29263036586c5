/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking and sleeping across processes; see wake.h. */
#define _GNU_SOURCE /* syscall */
#include "common/wake/wake.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/wake/futex.h"

bool chempi_wake_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
                   0) == 0;
}

static void signal_event(int eventfd)
{
    const uint64_t one = 1;

    if (eventfd >= 0 && write(eventfd, &one, sizeof(one)) < 0) {
        /* EAGAIN: the counter is full, so the owner wakes anyway. */
    }
}

void chempi_wake_rouse(struct chempi_wake *wake, int eventfd)
{
    uint32_t was = atomic_load_explicit(&wake->state, memory_order_relaxed);

    do {
        if (!chempi_wake_is_sleep(was))
            return; /* W1: nobody else may touch AWAY_OWED */
    } while (!atomic_compare_exchange_weak_explicit(
        &wake->state, &was, CHEMPI_WAKE_AWAKE, memory_order_acq_rel,
        memory_order_relaxed));
    if (was == CHEMPI_WAKE_ASLEEP_FUTEX)
        chempi_futex_wake(&wake->state);
    else
        signal_event(eventfd);
}

void chempi_wake_agent(struct chempi_wake *wake, int eventfd)
{
    uint32_t was = atomic_fetch_and_explicit(
        &wake->bell, ~(uint32_t)CHEMPI_WAKE_AGENT_ASLEEP, memory_order_acq_rel);

    if (was & CHEMPI_WAKE_AGENT_FUTEX)
        chempi_futex_wake(&wake->bell);
    if (was & CHEMPI_WAKE_AGENT_EPOLL)
        signal_event(eventfd);
}

void chempi_wake_ring(struct chempi_wake *wake, int eventfd)
{
    uint32_t was = atomic_fetch_or_explicit(&wake->bell, CHEMPI_WAKE_URGENT,
                                            memory_order_seq_cst);
    uint32_t state = atomic_load_explicit(&wake->state, memory_order_seq_cst);

    if (chempi_wake_is_sleep(state))
        chempi_wake_rouse(wake, eventfd); /* every one, not only the first */
    else if (state == CHEMPI_WAKE_AWAY_OWED && !(was & CHEMPI_WAKE_URGENT) &&
             (was & CHEMPI_WAKE_AGENT_ASLEEP))
        chempi_wake_agent(wake, eventfd);
}

void chempi_wake_agent_sleep(struct chempi_wake *wake, uint32_t bell)
{
    chempi_futex_wait(&wake->bell, bell, -1);
}

bool chempi_wake_barrier(void)
{
    atomic_thread_fence(memory_order_seq_cst); /* for unregistered producers */
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

int chempi_wake_prepare(struct chempi_wake *wake, enum chempi_wake_state kind)
{
    atomic_store_explicit(&wake->state, kind, memory_order_seq_cst);
    if (atomic_load_explicit(&wake->order, memory_order_relaxed) ==
        CHEMPI_WAKE_ORDER_FENCE) {
        atomic_thread_fence(memory_order_seq_cst); /* partner: order_looks() */
        return -1;
    }
    return chempi_wake_barrier() ? -1 : CHEMPI_WAKE_BOUND_MS;
}

void chempi_wake_sleep(struct chempi_wake *wake, int timeout_ms)
{
    /* Returns at once if a producer has already stored AWAKE. */
    chempi_futex_wait(&wake->state, CHEMPI_WAKE_ASLEEP_FUTEX, timeout_ms);
    chempi_wake_cancel(wake);
}
