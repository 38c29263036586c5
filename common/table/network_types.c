/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known types, devices and default figures; see network_types.h. The figures
 * are those of machines that their users have today, chosen so that the
 * switching points of the envelope fall where measurements put them; a
 * description replaces them. Those of cards are what the least of many round
 * trips between two emulated ones takes, each protocol forced, in a line from 1
 * B to 64 KiB (the groups choice-... of bench/run hold the choice that follows
 * against it).
 */
#include "common/table/network_types.h"

#include <string.h>

#include "common/base/compiler.h"

#define KIB 1024u

/* Switches at 288 B and 16 KiB (limits) and near 32 KiB (crossing). */
static const struct chempi_network_types_protocol shm_protocols[] = {
    {"short", 0.20, 4000, 0.02, 0, 288},
    {"eager", 0.25, 6000, 0.03, 0, 16 * KIB},
    {"pipeline", 1.00, 8000, 0.03, 0, UINT64_MAX},
    {"single-copy", 2.12, 11000, 0.03, 0, UINT64_MAX},
};

/* One Gbit/s; the crossing lies above 512 KiB, the most that tcp sends eagerly:
 * up to there payload is not slower for being read as it comes (between two
 * virtual nodes 256 KiB took 29 us in place of 35, 512 KiB 44 in place of 51),
 * and a question and its answer are saved. */
static const struct chempi_network_types_protocol tcp_protocols[] = {
    {"eager", 30, 115.5, 2, 0, UINT64_MAX},
    {"rendezvous", 94, 117, 4, 0, UINT64_MAX},
};

#define SCIVIA_REMARK                                                          \
    "emulates its adapters, between virtual nodes of one host; say "           \
    "`device: tcp` for nodes on several hosts"

/* Only cards of type sci have a half for shared memory, and some nothing else:
 * then it takes all sizes. On others a send does what remote stores do. */
static const struct chempi_network_types_protocol d312_protocols[] = {
    {"shared-memory", 2.7, 88, 0.5, 0, 8 * KIB},
    {"one-copy", 10.8, 70, 2, 0, UINT64_MAX},
    {"zero-copy", 11.1, 91, 4, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol d310_protocols[] = {
    {"shared-memory", 4.5, 71, 0.5, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol chemnitz_protocols[] = {
    {"shared-memory", 5.5, 69, 0.5, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol d339_protocols[] = {
    {"shared-memory", 2, 174, 0.5, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol clan_protocols[] = {
    {"send", 9.1, 97.5, 1, 0, 8 * KIB},
    {"one-copy", 30.5, 77, 2, 0, UINT64_MAX},
    {"zero-copy", 37, 97, 4, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol gm_protocols[] = {
    {"send", 12.9, 93, 1, 0, 8 * KIB},
    {"one-copy", 39.3, 87.6, 2, 0, UINT64_MAX},
    {"zero-copy", 52.2, 92.3, 4, 0, UINT64_MAX},
};

static const struct chempi_network_types_protocol ethernet_protocols[] = {
    {"send", 32.1, 11.7, 1, 0, 8 * KIB},
    {"one-copy", 99.5, 11.2, 2, 0, UINT64_MAX},
    {"zero-copy", 126, 11.7, 4, 0, UINT64_MAX},
};

#define CARD(name, type, protocols)                                            \
    {                                                                          \
        name, type,                                                            \
        {                                                                      \
            "scivia", SCIVIA_REMARK, CHEMPI_ARRAY_LEN(protocols), protocols,   \
                name                                                           \
        }                                                                      \
    }

/* The first one of a type is the one of networks that name none. */
static const struct chempi_network_types_card cards[] = {
    CARD("dolphin-d312", "sci", d312_protocols),
    CARD("giganet-clan", "via", clan_protocols),
    CARD("myrinet-gm", "myrinet", gm_protocols),
    CARD("dolphin-d310", "sci", d310_protocols),
    CARD("chemnitz-d310", "sci", chemnitz_protocols),
    CARD("dolphin-d339", "sci", d339_protocols),
    CARD("fast-ethernet", "via", ethernet_protocols),
};

/* And behind them that of the first card. */
static const struct chempi_network_types_device devices[] = {
    {"shm", NULL, CHEMPI_ARRAY_LEN(shm_protocols), shm_protocols, NULL},
    {"tcp", NULL, CHEMPI_ARRAY_LEN(tcp_protocols), tcp_protocols, NULL},
};

static const struct chempi_network_types_type types[] = {
    {"smp", "shm", true},        {"ethernet", "tcp", false},
    {"sci", "scivia", false},    {"myrinet", "scivia", false},
    {"via", "scivia", false},    {"infiniband", "tcp", false},
    {"omni-path", "tcp", false},
};

const struct chempi_network_types_type *chempi_network_types_type_at(size_t i)
{
    return i < CHEMPI_ARRAY_LEN(types) ? &types[i] : NULL;
}

const struct chempi_network_types_device *
chempi_network_types_device_at(size_t i)
{
    if (i < CHEMPI_ARRAY_LEN(devices))
        return &devices[i];
    return i == CHEMPI_ARRAY_LEN(devices) ? &cards[0].device : NULL;
}

const struct chempi_network_types_type *
chempi_network_types_type_find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    }
    return NULL;
}

const struct chempi_network_types_device *
chempi_network_types_device_find(const char *name)
{
    const struct chempi_network_types_device *device;

    for (size_t i = 0; (device = chempi_network_types_device_at(i)); i++)
        if (strcmp(device->name, name) == 0)
            break;
    return device;
}

const struct chempi_network_types_card *chempi_network_types_card_at(size_t i)
{
    return i < CHEMPI_ARRAY_LEN(cards) ? &cards[i] : NULL;
}

const struct chempi_network_types_card *
chempi_network_types_card_find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(cards); i++) {
        if (strcmp(cards[i].name, name) == 0)
            return &cards[i];
    }
    return NULL;
}

const struct chempi_network_types_device *
chempi_network_types_serving(const char *type, const char *device)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(cards); i++) {
        if (strcmp(cards[i].type, type) == 0 &&
            strcmp(cards[i].device.name, device) == 0)
            return &cards[i].device;
    }
    return chempi_network_types_device_find(device);
}

const struct chempi_network_types_protocol *chempi_network_types_protocol_find(
    const struct chempi_network_types_device *device, const char *name)
{
    for (size_t i = 0; i < device->protocol_count; i++) {
        if (strcmp(device->protocols[i].name, name) == 0)
            return &device->protocols[i];
    }
    return NULL;
}

struct chempi_line
chempi_network_types_line(const struct chempi_network_types_protocol *protocol,
                          uint32_t rank)
{
    return (struct chempi_line){
        .base_us = protocol->latency_us + protocol->cost_us,
        .slope_us = 1.0 / protocol->bw_bytes_per_us,
        .min_len = protocol->min_len,
        .max_len = protocol->max_len,
        .rank = rank,
    };
}
