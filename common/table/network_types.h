/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known without a description: which device serves which type of
 * network, and what each device's protocols cost until somebody measures
 * them. Data only; thread-safe.
 */
#ifndef CHEMPI_COMMON_TABLE_NETWORK_TYPES_H
#define CHEMPI_COMMON_TABLE_NETWORK_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/table/lower_envelope.h"

struct chempi_network_types_type {
    const char *name;   /* "ethernet" */
    const char *device; /* that serves it unless the description says else */
    bool inside_node;   /* joins processes of one node, not nodes */
};

struct chempi_network_types_protocol {
    const char *name;
    double latency_us;      /* of an empty message, CPU included */
    double bw_bytes_per_us; /* 1 MB/s = 1 byte/us */
    double cost_us;         /* CPU time that each message adds */
    uint64_t min_len;       /* bytes, inclusive */
    uint64_t max_len;       /* bytes, inclusive */
};

struct chempi_network_types_device {
    const char *name;
    const char *remark; /* NULL: nothing; else what users must know of it */
    size_t protocol_count;
    const struct chempi_network_types_protocol *protocols;
    const char *card; /* whose protocols these are; NULL: of any */
};

/* A model of card, of which there is a personality (chempi-personality(5)). */
struct chempi_network_types_card {
    const char *name; /* as the personality's */
    const char *type; /* of the networks that it makes */
    struct chempi_network_types_device device;
};

/* Entries in a fixed order; NULL beyond the last one. */
const struct chempi_network_types_type *chempi_network_types_type_at(size_t i);
const struct chempi_network_types_device *
chempi_network_types_device_at(size_t i);
const struct chempi_network_types_card *chempi_network_types_card_at(size_t i);

/* By name; NULL when unknown. */
const struct chempi_network_types_type *
chempi_network_types_type_find(const char *name);
const struct chempi_network_types_device *
chempi_network_types_device_find(const char *name);
const struct chempi_network_types_card *
chempi_network_types_card_find(const char *name);
/* The device with the protocols that it has on networks of this type whose
 * card is not named. NULL when the device is unknown. */
const struct chempi_network_types_device *
chempi_network_types_serving(const char *type, const char *device);
const struct chempi_network_types_protocol *chempi_network_types_protocol_find(
    const struct chempi_network_types_device *device, const char *name);

/* Time over size of one protocol as a line for the envelope. */
struct chempi_line
chempi_network_types_line(const struct chempi_network_types_protocol *protocol,
                          uint32_t rank);

#endif
