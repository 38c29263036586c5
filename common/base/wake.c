/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking and sleeping across processes; see wake.h. */
#define _GNU_SOURCE /* syscall */
#include "common/base/wake.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool chempi_wake_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
                   0) == 0;
}

void chempi_wake_rouse(struct chempi_wake *wake, int eventfd)
{
    const uint64_t one = 1;
    uint32_t was;

    was = atomic_exchange_explicit(&wake->state, CHEMPI_WAKE_AWAKE,
                                   memory_order_acq_rel);
    if (was == CHEMPI_WAKE_ASLEEP_FUTEX)
        (void)syscall(SYS_futex, &wake->state, FUTEX_WAKE, 1, NULL, NULL, 0);
    else if (was == CHEMPI_WAKE_ASLEEP_EPOLL && eventfd >= 0 &&
             write(eventfd, &one, sizeof(one)) < 0) {
        /* EAGAIN: the counter is full, so the owner wakes anyway. */
    }
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
        atomic_thread_fence(memory_order_seq_cst); /* partner: wake_peer() */
        return -1;
    }
    return chempi_wake_barrier() ? -1 : CHEMPI_WAKE_BOUND_MS;
}

void chempi_wake_sleep(struct chempi_wake *wake, int timeout_ms)
{
    struct timespec limit = {
        .tv_sec = timeout_ms / 1000,
        .tv_nsec = (long)(timeout_ms % 1000) * 1000000L,
    };

    /* Returns at once if a producer has already stored AWAKE. */
    (void)syscall(SYS_futex, &wake->state, FUTEX_WAIT, CHEMPI_WAKE_ASLEEP_FUTEX,
                  timeout_ms < 0 ? NULL : &limit, NULL, 0);
    chempi_wake_cancel(wake);
}
