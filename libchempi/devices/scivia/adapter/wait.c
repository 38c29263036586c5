/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: for descriptors, completion queues and interrupts. Whoever waits
 * serves the adapter meanwhile. */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <poll.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "libchempi/devices/scivia/adapter/internal.h"

#define LOOK_NS CHEMPI_NS_PER_MS

typedef struct chempi_via_descriptor *done_fn(struct chempi_via_vi *vi);

/* Look for a while before sleeping: with a personality, being waked takes the
 * time that is imposed, not what this machine needs beside. */
static void look(const struct chempi_adapter *adapter, struct pollfd *item)
{
    uint64_t end_ns;

    if (!adapter->pace.personality)
        return;
    end_ns = chempi_clock_ns() + LOOK_NS;
    while (poll(item, 1, 0) == 0 && chempi_clock_ns() < end_ns)
        CHEMPI_CPU_RELAX();
}

/* Sleep until something may have happened; false: the time is up. */
static bool sleep_on(struct chempi_adapter *adapter, uint64_t end_ns,
                     bool has_end)
{
    struct pollfd item = {.fd = adapter->epoll_fd, .events = POLLIN};
    uint64_t now_ns = chempi_clock_ns();
    int left_ms = -1;

    if (has_end && now_ns >= end_ns)
        return false;
    if (has_end)
        left_ms = (int)((end_ns - now_ns) / CHEMPI_NS_PER_MS) + 1;
    if (chempi_adapter_is_busy(adapter))
        left_ms = 0;
    if (left_ms != 0)
        look(adapter, &item);
    (void)poll(&item, 1, left_ms); /* interrupted or not: look again */
    (void)chempi_adapter_service(adapter);
    return true;
}

static struct chempi_via_descriptor *wait_for(struct chempi_via_vi *vi,
                                              done_fn *done, int timeout_ms)
{
    uint64_t end_ns =
        chempi_clock_ns() +
        (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * CHEMPI_NS_PER_MS;
    struct chempi_via_descriptor *d = done(vi);

    while (!d) {
        chempi_adapter_arm(vi->adapter);
        d = done(vi);
        if (!d && !sleep_on(vi->adapter, end_ns, timeout_ms >= 0))
            break;
        d = d ? d : done(vi);
    }
    chempi_adapter_disarm(vi->adapter);
    return d;
}

struct chempi_via_descriptor *chempi_via_send_wait(struct chempi_via_vi *vi,
                                                   int timeout_ms)
{
    const struct chempi_timing_model before = vi->adapter->pace;
    uint64_t now_ns = chempi_timing_model_begin(&before);
    struct chempi_via_descriptor *d =
        wait_for(vi, chempi_via_send_done, timeout_ms);

    if (d && before.personality)
        chempi_timing_model_sleep(&before, now_ns);
    return d;
}

struct chempi_via_descriptor *chempi_via_recv_wait(struct chempi_via_vi *vi,
                                                   int timeout_ms)
{
    return wait_for(vi, chempi_via_recv_done, timeout_ms);
}

struct chempi_via_vi *chempi_via_cq_wait(struct chempi_via_cq *cq,
                                         bool *is_recv, int timeout_ms)
{
    uint64_t end_ns =
        chempi_clock_ns() +
        (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * CHEMPI_NS_PER_MS;
    struct chempi_via_vi *vi = chempi_via_cq_done(cq, is_recv);

    while (!vi) {
        chempi_adapter_arm(cq->adapter);
        vi = chempi_via_cq_done(cq, is_recv);
        if (!vi && !sleep_on(cq->adapter, end_ns, timeout_ms >= 0))
            break;
        vi = vi ? vi : chempi_via_cq_done(cq, is_recv);
    }
    chempi_adapter_disarm(cq->adapter);
    return vi;
}

int chempi_sci_interrupt_wait(struct chempi_adapter *adapter, uint32_t number,
                              int timeout_ms)
{
    uint64_t end_ns =
        chempi_clock_ns() +
        (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * CHEMPI_NS_PER_MS;
    struct pollfd item = {.fd = adapter->epoll_fd, .events = POLLIN};

    for (;;) {
        uint64_t now_ns = chempi_clock_ns();
        int left_ms = -1;

        if (chempi_sci_interrupt_take(adapter, number))
            return 0;
        if (timeout_ms >= 0 && now_ns >= end_ns)
            return -ETIMEDOUT;
        if (timeout_ms >= 0)
            left_ms = (int)((end_ns - now_ns) / CHEMPI_NS_PER_MS) + 1;
        chempi_adapter_arm(adapter);
        if (chempi_sci_interrupt_take(adapter, number)) {
            chempi_adapter_disarm(adapter);
            return 0;
        }
        (void)poll(&item, 1, left_ms); /* interrupted or not: look again */
        (void)chempi_adapter_service(adapter);
    }
}
