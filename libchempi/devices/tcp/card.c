/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards; see card.h. */
#define _GNU_SOURCE /* htole32 */
#include "libchempi/devices/tcp/card.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define MAGIC UINT32_C(0x31435443) /* "CTC1" */
#define DESCRIBED 0x80u

struct wire_head {
    uint32_t magic;
    uint32_t count;
    uint8_t host[CHEMPI_FILE_HOST_BYTES];
};

struct wire_entry {
    uint32_t network;
    uint16_t port;
    uint8_t family; /* 4 or 6, and DESCRIBED */
    uint8_t prefix;
    uint8_t address[16]; /* network order; IPv4: the first four */
};

static_assert(sizeof(struct wire_head) == 24, "card layout");
static_assert(sizeof(struct wire_entry) == 24, "card layout");

/* FNV-1a; two networks of one description that collide would share their
 * listeners' addresses, which still lead to the right process. */
uint32_t chempi_tcp_card_network(const char *name)
{
    uint32_t h = UINT32_C(2166136261);

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT32_C(16777619);
    return h == CHEMPI_TCP_NETWORK_ANY ? 1 : h;
}

size_t chempi_tcp_card_put(const struct chempi_tcp_card *card,
                           uint8_t dst[CHEMPI_TCP_CARD_BYTES])
{
    struct wire_head h = {.magic = htole32(MAGIC),
                          .count = htole32(card->count)};

    memcpy(h.host, card->host, sizeof(h.host));
    memcpy(dst, &h, sizeof(h));
    for (uint32_t i = 0; i < card->count; i++) {
        const struct chempi_tcp_entry *e = &card->entries[i];
        int is_v6 = e->address.u.sa.sa_family == AF_INET6;
        struct wire_entry w = {
            .network = htole32(e->network),
            .port = htole16(chempi_address_port(&e->address)),
            .family = (uint8_t)((is_v6 ? 6u : 4u) |
                                (e->is_described ? DESCRIBED : 0u)),
            .prefix = e->prefix};

        memcpy(w.address, chempi_address_bytes(&e->address), is_v6 ? 16 : 4);
        memcpy(dst + sizeof(h) + i * sizeof(w), &w, sizeof(w));
    }
    return sizeof(h) + card->count * sizeof(struct wire_entry);
}

static int get_entry(const struct wire_entry *w, struct chempi_tcp_entry *out)
{
    uint8_t family = (uint8_t)(w->family & ~DESCRIBED);

    *out = (struct chempi_tcp_entry){.network = le32toh(w->network),
                                     .prefix = w->prefix,
                                     .is_described = family != w->family};
    if (!w->port || w->prefix > (family == 6 ? 128 : 32))
        return -EBADMSG;
    if (family == 6) {
        out->address.u.in6.sin6_family = AF_INET6;
        memcpy(&out->address.u.in6.sin6_addr, w->address, 16);
    } else if (family == 4) {
        out->address.u.in.sin_family = AF_INET;
        memcpy(&out->address.u.in.sin_addr, w->address, 4);
    } else {
        return -EBADMSG;
    }
    chempi_address_set_port(&out->address, le16toh(w->port));
    return 0;
}

int chempi_tcp_card_get(const void *src, size_t len,
                        struct chempi_tcp_card *out)
{
    struct chempi_tcp_card card = {.count = 0};
    struct wire_head h;

    if (len < sizeof(h))
        return -EBADMSG;
    memcpy(&h, src, sizeof(h));
    card.count = le32toh(h.count);
    if (le32toh(h.magic) != MAGIC || !card.count ||
        card.count > CHEMPI_TCP_ENTRY_MAX ||
        len != sizeof(h) + card.count * sizeof(struct wire_entry))
        return -EBADMSG;
    memcpy(card.host, h.host, sizeof(h.host));
    for (uint32_t i = 0; i < card.count; i++) {
        struct wire_entry w;

        memcpy(&w, (const uint8_t *)src + sizeof(h) + i * sizeof(w), sizeof(w));
        if (get_entry(&w, &card.entries[i]) != 0)
            return -EBADMSG;
    }
    *out = card;
    return 0;
}

static int is_same_host(const struct chempi_tcp_card *a,
                        const struct chempi_tcp_card *b)
{
    static const uint8_t unknown[CHEMPI_FILE_HOST_BYTES];

    return memcmp(a->host, b->host, sizeof(a->host)) == 0 &&
           memcmp(a->host, unknown, sizeof(unknown)) != 0;
}

/* Lower is better; -1: cannot work. */
static int rank_entry(const struct chempi_tcp_card *mine,
                      const struct chempi_tcp_card *peer,
                      const struct chempi_tcp_entry *e)
{
    int is_v6 = e->address.u.sa.sa_family == AF_INET6;

    if (chempi_address_is_loopback(&e->address)) {
        if (is_same_host(mine, peer))
            return is_v6;
        /* Only a description may speak of somebody else's loopback. */
        return e->is_described ? 2 + is_v6 : -1;
    }
    for (uint32_t i = 0; i < mine->count; i++) {
        const struct chempi_tcp_entry *own = &mine->entries[i];

        if (own->network == e->network &&
            chempi_address_is_near(&own->address, &e->address, own->prefix))
            return 4 + is_v6;
    }
    if (chempi_address_is_link_local(&e->address))
        return -1; /* no link in common */
    return 6 + is_v6;
}

/* A link-local address means something only together with one's own link. */
static void set_scope(const struct chempi_tcp_card *mine, uint32_t network,
                      struct chempi_address *address)
{
    if (!chempi_address_is_link_local(address))
        return;
    for (uint32_t i = 0; i < mine->count; i++) {
        const struct chempi_tcp_entry *own = &mine->entries[i];

        if (own->network == network &&
            chempi_address_is_link_local(&own->address)) {
            address->u.in6.sin6_scope_id = own->address.u.in6.sin6_scope_id;
            return;
        }
    }
}

size_t chempi_tcp_card_choose(const struct chempi_tcp_card *mine,
                              const struct chempi_tcp_card *peer,
                              uint32_t network,
                              struct chempi_address out[CHEMPI_TCP_ENTRY_MAX])
{
    size_t n = 0;

    for (int rank = 0; rank < 8; rank++) {
        for (uint32_t i = 0; i < peer->count; i++) {
            const struct chempi_tcp_entry *e = &peer->entries[i];

            if (e->network != network || rank_entry(mine, peer, e) != rank)
                continue;
            out[n] = e->address;
            set_scope(mine, network, &out[n]);
            n++;
        }
    }
    return n;
}
