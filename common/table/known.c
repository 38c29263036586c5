/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known types, devices and default figures; see known.h. The figures are
 * those of machines that their users have today, chosen so that the switching
 * points of the envelope fall where measurements put them; a description
 * replaces them. Those of scivia are the published ones of a D312 card and of
 * a cLAN adapter (protocols 1, one-copy and zero-copy).
 */
#include "common/table/known.h"

#include <string.h>

#include "common/base/compiler.h"

#define KIB 1024u

/* Switches at 24 B and 16 KiB (limits) and near 32 KiB (crossing). */
static const struct chempi_known_protocol shm_protocols[] = {
    {"short", 0.20, 4000, 0.02, 0, 24},
    {"eager", 0.25, 6000, 0.03, 0, 16 * KIB},
    {"pipeline", 1.00, 8000, 0.03, 0, UINT64_MAX},
    {"single-copy", 2.12, 11000, 0.03, 0, UINT64_MAX},
};

/* One Gbit/s; the crossing lies near 64 KiB. */
static const struct chempi_known_protocol tcp_protocols[] = {
    {"eager", 30, 105, 2, 0, UINT64_MAX},
    {"rendezvous", 94, 117, 4, 0, UINT64_MAX},
};

static const struct chempi_known_protocol scivia_protocols[] = {
    {"shared-memory", 4.2, 45, 0.5, 0, 8 * KIB},
    {"one-copy", 14, 70, 2, 0, UINT64_MAX},
    {"zero-copy", 40, 84, 4, 0, UINT64_MAX},
};

/* Cards with the VIA half only: what the first protocol of SCI does by remote
 * stores is done by a send. */
static const struct chempi_known_protocol via_protocols[] = {
    {"send", 17, 70, 1, 0, 8 * KIB},
    {"one-copy", 22, 70, 2, 0, UINT64_MAX},
    {"zero-copy", 60, 93.5, 4, 0, UINT64_MAX},
};

#define SCIVIA_REMARK                                                          \
    "emulates its adapters, between virtual nodes of one host; say "           \
    "`device: tcp` for nodes on several hosts"

static const struct chempi_known_device devices[] = {
    {"shm", NULL, CHEMPI_ARRAY_LEN(shm_protocols), shm_protocols, NULL},
    {"tcp", NULL, CHEMPI_ARRAY_LEN(tcp_protocols), tcp_protocols, NULL},
    {"scivia", SCIVIA_REMARK, CHEMPI_ARRAY_LEN(scivia_protocols),
     scivia_protocols, "sci"},
};

static const struct chempi_known_device via_only = {
    "scivia", SCIVIA_REMARK, CHEMPI_ARRAY_LEN(via_protocols), via_protocols,
    "myrinet or via"};

static const struct chempi_known_type types[] = {
    {"smp", "shm", true},        {"ethernet", "tcp", false},
    {"sci", "scivia", false},    {"myrinet", "scivia", false},
    {"via", "scivia", false},    {"infiniband", "tcp", false},
    {"omni-path", "tcp", false},
};

const struct chempi_known_type *chempi_known_type_at(size_t i)
{
    return i < CHEMPI_ARRAY_LEN(types) ? &types[i] : NULL;
}

const struct chempi_known_device *chempi_known_device_at(size_t i)
{
    return i < CHEMPI_ARRAY_LEN(devices) ? &devices[i] : NULL;
}

const struct chempi_known_type *chempi_known_type_find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    }
    return NULL;
}

const struct chempi_known_device *chempi_known_device_find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(devices); i++) {
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    }
    return NULL;
}

const struct chempi_known_device *chempi_known_serving(const char *type,
                                                       const char *device)
{
    if (strcmp(device, via_only.name) == 0 &&
        (strcmp(type, "myrinet") == 0 || strcmp(type, "via") == 0))
        return &via_only;
    return chempi_known_device_find(device);
}

const struct chempi_known_protocol *
chempi_known_protocol_find(const struct chempi_known_device *device,
                           const char *name)
{
    for (size_t i = 0; i < device->protocol_count; i++) {
        if (strcmp(device->protocols[i].name, name) == 0)
            return &device->protocols[i];
    }
    return NULL;
}

struct chempi_line
chempi_known_line(const struct chempi_known_protocol *protocol, uint32_t rank)
{
    return (struct chempi_line){
        .base_us = protocol->latency_us + protocol->cost_us,
        .slope_us = 1.0 / protocol->bw_bytes_per_us,
        .min_len = protocol->min_len,
        .max_len = protocol->max_len,
        .rank = rank,
    };
}
