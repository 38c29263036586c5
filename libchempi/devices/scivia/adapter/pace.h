/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imposing a personality's times by waiting. The process that starts an
 * operation waits on behalf of the card, before the data moves, so that the
 * other side cannot see it too early. A free clock costs one compare.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_PACE_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "libchempi/devices/scivia/adapter/personality.h"

struct chempi_pace {
    const struct chempi_personality *personality; /* NULL: free clock */
    uint64_t clock_cost_ns; /* of reading the clock once, calibrated */
    uint64_t store_free_ns; /* when the last remote store has left */
    uint64_t via_free_ns;   /* likewise of the VIA link */
};

/* Takes about a tenth of a millisecond when there is a personality. */
void chempi_pace_init(struct chempi_pace *pace,
                      const struct chempi_personality *personality);

/* Wait that many ns. */
void chempi_pace_wait(const struct chempi_pace *pace, uint64_t ns);

/* Packets that stores to [offset, offset + len) make: full ones of 64 bytes,
 * and for each part of a line the 16-byte pieces that it touches. */
void chempi_pace_packets(size_t offset, size_t len, uint64_t *full,
                         uint64_t *partial);

/* Stores to a remote segment, about to be delivered. */
void chempi_pace_store_slow(struct chempi_pace *pace, size_t offset,
                            size_t len);
static inline void chempi_pace_store(struct chempi_pace *pace, size_t offset,
                                     size_t len)
{
    if (pace->personality)
        chempi_pace_store_slow(pace, offset, len);
}

/* Loads from a remote segment. */
void chempi_pace_read(struct chempi_pace *pace, size_t len);
/* A DMA transfer. */
void chempi_pace_dma(struct chempi_pace *pace, size_t len);
/* A remote interrupt. */
void chempi_pace_interrupt(struct chempi_pace *pace);
/* A descriptor of len bytes, about to be executed. */
void chempi_pace_descriptor(struct chempi_pace *pace, size_t len);
/* (De)registering pages of memory. */
void chempi_pace_register(struct chempi_pace *pace, size_t pages);
void chempi_pace_deregister(struct chempi_pace *pace, size_t pages);

#endif
