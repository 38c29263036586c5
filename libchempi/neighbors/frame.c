/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through gateways; see frame.h. */
#define _DEFAULT_SOURCE /* endian.h */
#include "libchempi/neighbors/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "libchempi/devices/envelope.h"

static_assert(CHEMPI_NEIGHBOR_GATEWAYS_MAX <= 255,
              "a byte counts the gateways");

/* ---- writing ------------------------------------------------------------ */

static size_t put_u64(uint8_t *dst, uint64_t value)
{
    value = htole64(value);
    memcpy(dst, &value, sizeof(value));
    return sizeof(value);
}

static size_t put_env(uint8_t *dst, const struct chempi_envelope *env)
{
    struct chempi_envelope wire = chempi_envelope_to_wire(env);

    memcpy(dst, &wire, sizeof(wire));
    return sizeof(wire);
}

static size_t put_fixed(uint8_t *dst, const struct chempi_neighbor_frame *f)
{
    size_t n = 0;

    switch (f->kind) {
    case CHEMPI_NEIGHBOR_EAGER:
        return put_env(dst, &f->env);
    case CHEMPI_NEIGHBOR_RTS:
        n = put_env(dst, &f->env);
        return n + put_u64(dst + n, f->sender);
    case CHEMPI_NEIGHBOR_PART:
        n = put_env(dst, &f->env);
        n += put_u64(dst + n, f->sender);
        return n + put_u64(dst + n, f->number);
    case CHEMPI_NEIGHBOR_CTS:
        n = put_u64(dst, f->sender);
        n += put_u64(dst + n, f->receiver);
        return n + put_u64(dst + n, f->number);
    case CHEMPI_NEIGHBOR_DROP:
        return put_u64(dst, f->sender);
    case CHEMPI_NEIGHBOR_FLUSHED:
        return put_u64(dst, f->number);
    case CHEMPI_NEIGHBOR_DATA:
        n = put_u64(dst, f->receiver);
        return n + put_u64(dst + n, f->number);
    default:
        return 0;
    }
}

size_t chempi_neighbor_frame_put(uint8_t dst[CHEMPI_NEIGHBOR_FIXED_MAX],
                                 const struct chempi_neighbor_frame *f)
{
    const struct chempi_neighbor_wire wire = {
        .mark = htole16(CHEMPI_NEIGHBOR_MARK),
        .version = CHEMPI_NEIGHBOR_VERSION,
        .kind = f->kind,
        .gateway_count = f->gateway_count,
        .at = f->at,
        .flags = htole16(f->flags),
        .src = htole32(f->src),
        .dst = htole32(f->dst),
        .seq = htole32(f->seq),
        .ack = htole32(f->ack),
    };
    size_t n = sizeof(wire);

    memcpy(dst, &wire, sizeof(wire));
    for (uint32_t i = 0; i < f->gateway_count; i++) {
        uint32_t gateway = htole32(f->gateways[i]);

        memcpy(dst + n, &gateway, sizeof(gateway));
        n += sizeof(gateway);
    }
    return n + put_fixed(dst + n, f);
}

void chempi_neighbor_frame_set_at(uint8_t *frame, uint8_t at)
{
    frame[offsetof(struct chempi_neighbor_wire, at)] = at;
}

void chempi_neighbor_frame_set_seq(uint8_t *frame, uint32_t seq)
{
    seq = htole32(seq);
    memcpy(frame + offsetof(struct chempi_neighbor_wire, seq), &seq,
           sizeof(seq));
}

void chempi_neighbor_frame_set_ack(uint8_t *frame, uint32_t ack)
{
    ack = htole32(ack);
    memcpy(frame + offsetof(struct chempi_neighbor_wire, ack), &ack,
           sizeof(ack));
}

void chempi_neighbor_frame_set_sealed(uint8_t *frame, bool is_sealed)
{
    uint8_t *low = frame + offsetof(struct chempi_neighbor_wire, flags);

    *low = (uint8_t)(is_sealed ? *low | CHEMPI_NEIGHBOR_SEALED
                               : *low & ~CHEMPI_NEIGHBOR_SEALED);
}

/* ---- reading ------------------------------------------------------------ */

int chempi_neighbor_frame_head(const uint8_t *src, size_t n,
                               struct chempi_neighbor_frame *out,
                               const char **why)
{
    struct chempi_neighbor_wire wire;
    size_t at = sizeof(wire);

    *why = "a frame that is too short";
    if (n < sizeof(wire) || n > CHEMPI_NEIGHBOR_FRAME_MAX)
        return -EPROTO;
    memcpy(&wire, src, sizeof(wire));
    *why = "no frame of this version";
    if (le16toh(wire.mark) != CHEMPI_NEIGHBOR_MARK ||
        wire.version != CHEMPI_NEIGHBOR_VERSION)
        return -EPROTO;
    *why = "a frame with an impossible way";
    if (wire.kind < CHEMPI_NEIGHBOR_EAGER ||
        wire.kind > CHEMPI_NEIGHBOR_FLUSHED ||
        wire.gateway_count > CHEMPI_NEIGHBOR_GATEWAYS_MAX ||
        wire.at > wire.gateway_count || n < at + 4u * wire.gateway_count)
        return -EPROTO;
    memset(out, 0, sizeof(*out));
    out->kind = wire.kind;
    out->gateway_count = wire.gateway_count;
    out->at = wire.at;
    out->flags = le16toh(wire.flags);
    out->src = le32toh(wire.src);
    out->dst = le32toh(wire.dst);
    out->seq = le32toh(wire.seq);
    out->ack = le32toh(wire.ack);
    for (uint32_t i = 0; i < wire.gateway_count; i++) {
        uint32_t gateway;

        memcpy(&gateway, src + at, sizeof(gateway));
        out->gateways[i] = le32toh(gateway);
        at += sizeof(gateway);
    }
    return (int)at;
}

static uint64_t get_u64(const uint8_t **at)
{
    uint64_t value;

    memcpy(&value, *at, sizeof(value));
    *at += sizeof(value);
    return le64toh(value);
}

static struct chempi_envelope get_env(const uint8_t **at)
{
    struct chempi_envelope wire;

    memcpy(&wire, *at, sizeof(wire));
    *at += sizeof(wire);
    return chempi_envelope_to_host(&wire);
}

/* Bytes of the fixed part of each kind. */
static const uint8_t fixed_len[] = {
    [CHEMPI_NEIGHBOR_EAGER] = sizeof(struct chempi_envelope),
    [CHEMPI_NEIGHBOR_RTS] = sizeof(struct chempi_envelope) + 8,
    [CHEMPI_NEIGHBOR_CTS] = 24,
    [CHEMPI_NEIGHBOR_DROP] = 8,
    [CHEMPI_NEIGHBOR_DATA] = 16,
    [CHEMPI_NEIGHBOR_ACK] = 0,
    [CHEMPI_NEIGHBOR_GONE] = 0,
    [CHEMPI_NEIGHBOR_PART] = sizeof(struct chempi_envelope) + 16,
    [CHEMPI_NEIGHBOR_FLUSH] = 0,
    [CHEMPI_NEIGHBOR_FLUSHED] = 8,
};

static void get_fixed(const uint8_t *at, struct chempi_neighbor_frame *out)
{
    switch (out->kind) {
    case CHEMPI_NEIGHBOR_EAGER:
        out->env = get_env(&at);
        break;
    case CHEMPI_NEIGHBOR_RTS:
        out->env = get_env(&at);
        out->sender = get_u64(&at);
        break;
    case CHEMPI_NEIGHBOR_PART:
        out->env = get_env(&at);
        out->sender = get_u64(&at);
        out->number = get_u64(&at);
        break;
    case CHEMPI_NEIGHBOR_CTS:
        out->sender = get_u64(&at);
        out->receiver = get_u64(&at);
        out->number = get_u64(&at);
        break;
    case CHEMPI_NEIGHBOR_DROP:
        out->sender = get_u64(&at);
        break;
    case CHEMPI_NEIGHBOR_FLUSHED:
        out->number = get_u64(&at);
        break;
    case CHEMPI_NEIGHBOR_DATA:
        out->receiver = get_u64(&at);
        out->number = get_u64(&at);
        break;
    default:
        break;
    }
}

/* What a frame says of its message; NULL or what is wrong. */
static const char *check(const struct chempi_neighbor_frame *f)
{
    const bool is_part = f->kind == CHEMPI_NEIGHBOR_PART;
    const bool has_env = f->kind == CHEMPI_NEIGHBOR_EAGER ||
                         f->kind == CHEMPI_NEIGHBOR_RTS || is_part;

    if (has_env &&
        (f->env.kind < CHEMPI_KIND_MESSAGE || f->env.kind > CHEMPI_KIND_SYSTEM))
        return "an envelope of unknown kind";
    if (f->kind == CHEMPI_NEIGHBOR_EAGER && f->env.len != f->len)
        return "an eager message with a wrong length";
    if (f->kind == CHEMPI_NEIGHBOR_RTS &&
        (f->env.len == 0 || f->env.len > CHEMPI_NEIGHBOR_LEN_MAX))
        return "an impossible announcement";
    if (f->kind == CHEMPI_NEIGHBOR_CTS && f->number == 0)
        return "an impossible clearance";
    if (f->kind == CHEMPI_NEIGHBOR_DATA && f->len == 0)
        return "a piece of nothing";
    if (is_part && (f->env.len > CHEMPI_NEIGHBOR_CHUNK_MAX || f->len == 0 ||
                    f->number > f->env.len || f->len > f->env.len - f->number))
        return "an impossible piece of a message";
    if (f->kind != CHEMPI_NEIGHBOR_EAGER && f->kind != CHEMPI_NEIGHBOR_DATA &&
        !is_part && f->len)
        return "payload where none belongs";
    return f->len > CHEMPI_NEIGHBOR_CHUNK_MAX ? "a piece that is too long"
                                              : NULL;
}

int chempi_neighbor_frame_get(const uint8_t *src, size_t n,
                              struct chempi_neighbor_frame *out,
                              const char **why)
{
    int at = chempi_neighbor_frame_head(src, n, out, why);
    size_t fixed;

    if (at < 0)
        return at;
    *why = "a sealed frame where none is expected";
    if (out->flags & CHEMPI_NEIGHBOR_SEALED)
        return -EPROTO;
    fixed = fixed_len[out->kind];
    *why = "a frame that is too short";
    if (n - (size_t)at < fixed)
        return -EPROTO;
    get_fixed(src + at, out);
    out->data = src + at + fixed;
    out->len = (uint32_t)(n - (size_t)at - fixed);
    *why = check(out);
    return *why ? -EPROTO : 0;
}
