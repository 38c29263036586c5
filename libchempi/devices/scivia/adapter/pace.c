/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for times to pass; see pace.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/devices/scivia/adapter/pace.h"

#include "common/base/clock.h"
#include "common/base/compiler.h"

#define LINE 64u
#define PIECE 16u
#define TRIALS 1000u
#define READ_WIDTH 8u

static void wait_until(const struct chempi_pace *pace, uint64_t when_ns)
{
    while (chempi_clock_ns() + pace->clock_cost_ns < when_ns)
        CHEMPI_CPU_RELAX();
}

void chempi_pace_init(struct chempi_pace *pace,
                      const struct chempi_personality *personality)
{
    *pace = (struct chempi_pace){.personality = personality};
    if (!personality)
        return;
    uint64_t start_ns = chempi_clock_ns();

    for (uint32_t i = 0; i < TRIALS; i++)
        (void)chempi_clock_ns();
    pace->clock_cost_ns = (chempi_clock_ns() - start_ns) / TRIALS;
}

void chempi_pace_wait(const struct chempi_pace *pace, uint64_t ns)
{
    if (pace->personality && ns > 0)
        wait_until(pace, chempi_clock_ns() + ns);
}

static uint64_t pieces(size_t from, size_t to)
{
    return (to + PIECE - 1) / PIECE - from / PIECE;
}

void chempi_pace_packets(size_t offset, size_t len, uint64_t *full,
                         uint64_t *partial)
{
    size_t end = offset + len;
    size_t first = (offset + LINE - 1) / LINE * LINE; /* whole lines from */
    size_t last = end / LINE * LINE;                  /* ... to here */

    *full = 0;
    *partial = 0;
    if (len == 0)
        return;
    if (first > last) { /* within one line */
        *partial = pieces(offset, end);
        return;
    }
    *full = (last - first) / LINE;
    if (offset < first)
        *partial += pieces(offset, first);
    if (last < end)
        *partial += pieces(last, end);
}

/*
 * Packets leave one after the other; the first one after a pause takes the
 * latency as well. There is no card that would deliver while the processor
 * goes on, so it waits until the last packet has arrived.
 */
void chempi_pace_store_slow(struct chempi_pace *pace, size_t offset, size_t len)
{
    const struct chempi_personality *p = pace->personality;
    uint64_t now_ns = chempi_clock_ns();
    uint64_t partial;
    uint64_t full;

    chempi_pace_packets(offset, len, &full, &partial);
    if (pace->store_free_ns < now_ns)
        pace->store_free_ns = now_ns + p->latency_ns;
    pace->store_free_ns += full * p->full_ns + partial * p->partial_ns;
    wait_until(pace, pace->store_free_ns);
}

void chempi_pace_read(struct chempi_pace *pace, size_t len)
{
    if (pace->personality)
        chempi_pace_wait(pace, (len + READ_WIDTH - 1) / READ_WIDTH *
                                   pace->personality->read_ns);
}

void chempi_pace_dma(struct chempi_pace *pace, size_t len)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        chempi_pace_wait(pace,
                         p->dma_setup_ns + len * 1000 / p->dma_bytes_per_us);
}

void chempi_pace_interrupt(struct chempi_pace *pace)
{
    if (pace->personality)
        chempi_pace_wait(pace, pace->personality->interrupt_ns);
}

/* Descriptors of one adapter follow each other on the link; the latency is
 * paid by the first one of a sequence. */
void chempi_pace_descriptor(struct chempi_pace *pace, size_t len)
{
    const struct chempi_personality *p = pace->personality;
    uint64_t now_ns;

    if (!p)
        return;
    now_ns = chempi_clock_ns() + p->doorbell_ns;
    if (pace->via_free_ns < now_ns)
        pace->via_free_ns = now_ns + p->via_latency_ns;
    pace->via_free_ns += len * 1000 / p->via_bytes_per_us;
    wait_until(pace, pace->via_free_ns);
}

void chempi_pace_register(struct chempi_pace *pace, size_t pages)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        chempi_pace_wait(pace, p->register_ns + pages * p->register_page_ns);
}

void chempi_pace_deregister(struct chempi_pace *pace, size_t pages)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        chempi_pace_wait(pace,
                         p->deregister_ns + pages * p->deregister_page_ns);
}
