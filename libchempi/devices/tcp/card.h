/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card: where a process listens, by network. Wire form, little-endian:
 * a head (magic "CTC1", number of entries, host identity) and the entries
 * (network, port, family 4 or 6 and in its top bit whether the description
 * names the address, length of the network part, address).
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_TCP_CARD_H
#define CHEMPI_LIBCHEMPI_DEVICES_TCP_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/fd/address.h"
#include "common/fd/file.h"

#define CHEMPI_TCP_ENTRY_MAX 24
#define CHEMPI_TCP_CARD_BYTES (24 + 24 * CHEMPI_TCP_ENTRY_MAX)
#define CHEMPI_TCP_NETWORK_ANY 0u /* no network of a description */

struct chempi_tcp_entry {
    uint32_t network;  /* chempi_tcp_card_network(), CHEMPI_TCP_NETWORK_ANY */
    uint8_t prefix;    /* bits of the network part */
    bool is_described; /* the description says so; else found out */
    struct chempi_address address;
};

struct chempi_tcp_card {
    uint8_t host[CHEMPI_FILE_HOST_BYTES];
    uint32_t count;
    struct chempi_tcp_entry entries[CHEMPI_TCP_ENTRY_MAX];
};

/* Number of a network on the wire, from its name; never NETWORK_ANY. */
uint32_t chempi_tcp_card_network(const char *name);

/* Returns the bytes used. */
size_t chempi_tcp_card_put(const struct chempi_tcp_card *card,
                           uint8_t dst[CHEMPI_TCP_CARD_BYTES]);
/* Validate and read; 0 or -EBADMSG. */
int chempi_tcp_card_get(const void *src, size_t len,
                        struct chempi_tcp_card *out);

/* The peer's addresses on a network, best first as seen from mine: loopback
 * if both are on one host (or the description says so), then a common subnet,
 * then IPv4, then IPv6.
 * Returns their number; 0: there is none that can work. */
size_t chempi_tcp_card_choose(const struct chempi_tcp_card *mine,
                              const struct chempi_tcp_card *peer,
                              uint32_t network,
                              struct chempi_address out[CHEMPI_TCP_ENTRY_MAX]);

#endif
