/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A personality: what one model of adapter can do and how long it takes.
 * Read from a file (chempi-personality(5)); the adapter imposes the times by
 * waiting (timing_model.h). Without a personality an adapter has both halves
 * and a free clock: nothing takes longer than the machine needs.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_PERSONALITY_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_PERSONALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_PERSONALITY_NAME_MAX 32 /* bytes with the terminating zero */
#define CHEMPI_PERSONALITY_FILE_MAX 65536

struct chempi_personality {
    char name[CHEMPI_PERSONALITY_NAME_MAX];
    bool has_sci;
    bool has_via;
    /* SCI: remote stores leave as packets; times in ns. */
    uint32_t latency_ns;      /* from a store to its arrival: a partial packet
                                 that finds nothing else under way */
    uint32_t full_latency_ns; /* likewise a full one */
    uint32_t full_ns;         /* between the lines of a burst */
    uint32_t partial_ns;      /* between any other two packets */
    uint32_t stream_buffers;  /* stages of the pipeline */
    uint32_t read_ns;         /* remote read of up to 32 bytes */
    uint32_t dma_setup_ns;
    uint32_t dma_bytes_per_ms;
    uint32_t
        store_bytes; /* 0: all stores are wide. What one of memcpy's holds,
                        and how long it has the bus, as it is alone there */
    uint32_t narrow_ns;
    /* both halves */
    uint32_t interrupt_ns; /* until a process that sleeps on it goes on */
    /* VIA */
    uint32_t doorbell_ns;
    uint32_t via_latency_ns; /* from the doorbell to the first byte */
    uint32_t via_bytes_per_ms;
    uint32_t register_ns; /* a registration, and each page of it */
    uint32_t register_page_ns;
    uint32_t deregister_ns;
    uint32_t deregister_page_ns;
    uint32_t table_regions; /* translation and protection table */
    uint32_t table_pages;
    /* The machine around the card, 0: as fast as this one. */
    uint32_t host_bytes_per_ms;        /* copied from memory to memory */
    uint32_t host_small_bytes_per_ms;  /* likewise the first 2 KiB of a copy */
    uint32_t host_cache_bytes;         /* of a copy; 0: no bound */
    uint32_t host_memory_bytes_per_ms; /* what goes beyond that */
};

/*
 * Parse text (len bytes); `file` is for the error: "FILE:LINE: what is wrong
 * and what was expected", -EINVAL. *out is written on success only.
 */
int chempi_personality_parse(const char *file, const char *text, size_t len,
                             struct chempi_personality *out,
                             struct chempi_err *err);

/* Read and parse a file: -ENOENT and other errors of open(2) and read(2),
 * -EFBIG, or as parse. */
int chempi_personality_load(const char *file, struct chempi_personality *out,
                            struct chempi_err *err);

#endif
