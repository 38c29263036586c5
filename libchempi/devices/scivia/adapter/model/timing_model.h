/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imposing a personality's times by waiting. The process that starts an
 * operation waits on behalf of the card, before the data moves, so that the
 * other side cannot see it too early. A free clock costs one compare.
 *
 * A card works while its processor goes on; here the processor waits until
 * the packet has arrived, and so is late by one latency, which the next
 * operation forgives it: what follows at once is taken as begun that much
 * earlier. Nobody can have answered meanwhile, for an answer takes a latency
 * as well. A barrier, or the last descriptor taken back, ends that: a real
 * processor would have waited there, too.
 *
 * Remote stores. One packet arrives a latency after its store. The lines of a
 * burst (whole lines at consecutive addresses) follow each other through the
 * stream buffers, which form a pipeline: the first of them faster, so that
 * with as many lines as there are buffers the latency is hidden and the full
 * bandwidth reached; all others at that rate. Any other packet arrives a
 * partial packet's time after the one before it at the earliest.
 *
 * Wide stores reach the card in bursts of the bus, so the card sets the pace.
 * A narrow one, as a plain memcpy makes them, has the bus for itself and has it
 * for longer than its bytes need. The stream buffers gather narrow stores, too,
 * and send the same packets; but a line is on its way only after as many stores
 * as it has words, and the next takes as long again.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_TIMING_MODEL_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_TIMING_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/devices/scivia/adapter/model/personality.h"

struct chempi_timing_model {
    const struct chempi_personality *personality; /* NULL: free clock */
    uint64_t clock_cost_ns; /* of reading the clock once, calibrated */
    /* remote stores */
    const void *burst_at;      /* the segment of the burst, NULL: none */
    size_t burst_end;          /* the offset at which it would go on */
    uint64_t burst_first_ns;   /* when its first line arrived */
    uint64_t burst_latency_ns; /* which that took, and between its lines */
    uint64_t burst_line_ns;
    uint64_t burst_lines;
    uint64_t store_arrival_ns; /* of the last packet */
    bool is_store_posted;      /* no barrier since */
    /* descriptors */
    uint64_t via_arrival_ns;
    uint64_t via_flight_ns; /* from the last post to that */
    uint64_t via_back_ns;   /* when the processor went on */
    bool is_via_posted;     /* not all were taken back since */
    /* copies in memory */
    const char *copy_end; /* where the last one ended, NULL: there was none */
    size_t copy_bytes;    /* it, with what it was the continuation of */
};

/* Takes about a tenth of a millisecond when there is a personality. */
void chempi_timing_model_init(struct chempi_timing_model *pace,
                              const struct chempi_personality *personality);

/* Packets that stores to [offset, offset + len) make: full ones of 64 bytes,
 * and for each part of a line the 16-byte pieces that it touches. */
void chempi_timing_model_packets(size_t offset, size_t len, uint64_t *full,
                                 uint64_t *partial);

/* How the processor stores: as much at once as the bus takes, or word by word
 * (which is the same where the personality knows no narrow stores). */
enum chempi_timing_model_width {
    CHEMPI_TIMING_MODEL_WIDE,
    CHEMPI_TIMING_MODEL_NARROW
};

/*
 * When the last packet of a store arrives that is begun at now_ns, to
 * [offset, offset + len) of segment `at` (any pointer that tells segments
 * apart). Notes the packets, waits for nothing; there must be a personality.
 */
uint64_t chempi_timing_model_store_at(struct chempi_timing_model *pace,
                                      uint64_t now_ns, const void *at,
                                      size_t offset, size_t len,
                                      enum chempi_timing_model_width width);

/* Stores to a remote segment, about to be delivered. */
void chempi_timing_model_store_slow(struct chempi_timing_model *pace,
                                    const void *at, size_t offset, size_t len,
                                    enum chempi_timing_model_width width);
static inline void
chempi_timing_model_store(struct chempi_timing_model *pace, const void *at,
                          size_t offset, size_t len,
                          enum chempi_timing_model_width width)
{
    if (pace->personality)
        chempi_timing_model_store_slow(pace, at, offset, len, width);
}

/* The processor has waited for all stores. */
static inline void chempi_timing_model_barrier(struct chempi_timing_model *pace)
{
    pace->is_store_posted = false;
    pace->burst_at = NULL;
}

/* Loads from a remote segment. */
void chempi_timing_model_read(struct chempi_timing_model *pace, size_t len);
/* A DMA transfer. */
void chempi_timing_model_dma(struct chempi_timing_model *pace, size_t len);
/* This process was waked by what another one did at since_ns. */
void chempi_timing_model_wake(struct chempi_timing_model *pace,
                              uint64_t since_ns);

/* When the data of a descriptor of len bytes has arrived that is posted at
 * now_ns; as chempi_timing_model_store_at(). */
uint64_t chempi_timing_model_descriptor_at(struct chempi_timing_model *pace,
                                           uint64_t now_ns, bool is_read,
                                           size_t len);
/* A descriptor, about to be executed. */
void chempi_timing_model_descriptor(struct chempi_timing_model *pace,
                                    bool is_read, size_t len);
/*
 * The process goes on after a post, at now_ns. A card works while its processor
 * goes on or sleeps; here the processor has waited on the card's behalf.
 */
static inline void chempi_timing_model_posted(struct chempi_timing_model *pace,
                                              uint64_t now_ns)
{
    pace->via_back_ns = now_ns;
}
/* When a process goes on that waits asleep, from now_ns on, for what it has
 * posted; 0: it has worked for so long that this is done, or nothing is. */
uint64_t chempi_timing_model_sleep_at(const struct chempi_timing_model *pace,
                                      uint64_t now_ns);
/* It has waited so. */
void chempi_timing_model_sleep(const struct chempi_timing_model *pace,
                               uint64_t now_ns);
/* The owner has taken back the last of its descriptors. */
static inline void chempi_timing_model_collect(struct chempi_timing_model *pace)
{
    pace->is_via_posted = false;
}

/* What the machine has done itself since since_ns counts for these: they wait
 * for the rest. 0 with a free clock. */
uint64_t chempi_timing_model_begin(const struct chempi_timing_model *pace);
/* (De)registering pages of memory. */
void chempi_timing_model_register(struct chempi_timing_model *pace,
                                  uint64_t since_ns, size_t pages);
void chempi_timing_model_deregister(struct chempi_timing_model *pace,
                                    uint64_t since_ns, size_t pages);
/* What copying len bytes from memory to memory takes, by a personality that
 * tells (host_bytes_per_ms is not 0). */
uint64_t chempi_timing_model_copy_ns(const struct chempi_personality *p,
                                     size_t len);
/* What the next len bytes take, which go to dst: those that go on where the
 * last ones ended are of the same copy. Notes them; there must be such a
 * personality. */
uint64_t chempi_timing_model_copy_more_ns(struct chempi_timing_model *pace,
                                          const void *dst, size_t len);
/* The processor has done that. */
void chempi_timing_model_host_copy(struct chempi_timing_model *pace,
                                   uint64_t since_ns, const void *dst,
                                   size_t len);

#endif
