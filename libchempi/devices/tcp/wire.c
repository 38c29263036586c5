/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as bytes; see frame.h. */
#define _GNU_SOURCE /* htole64 */
#include "libchempi/devices/tcp/wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "libchempi/devices/envelope.h"

static struct chempi_tcp_head head(enum chempi_tcp_kind kind, uint32_t len)
{
    return (struct chempi_tcp_head){.len = htole32(len),
                                    .kind = (uint8_t)kind,
                                    .mark = htole16(CHEMPI_TCP_MARK)};
}

size_t chempi_tcp_wire_put_eager(void *dst, const struct chempi_envelope *env)
{
    struct chempi_tcp_eager f = {.head =
                                     head(CHEMPI_TCP_EAGER, (uint32_t)env->len),
                                 .env = chempi_envelope_to_wire(env)};

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

size_t chempi_tcp_wire_put_rts(void *dst, const struct chempi_envelope *env,
                               uint64_t sender)
{
    struct chempi_tcp_rts f = {.head = head(CHEMPI_TCP_RTS, 0),
                               .env = chempi_envelope_to_wire(env),
                               .sender = htole64(sender)};

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

size_t chempi_tcp_wire_put_cts(void *dst, uint64_t sender, uint64_t receiver,
                               uint64_t take)
{
    struct chempi_tcp_cts f = {.head = head(CHEMPI_TCP_CTS, 0),
                               .sender = htole64(sender),
                               .receiver = htole64(receiver),
                               .take = htole64(take)};

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

size_t chempi_tcp_wire_put_drop(void *dst, uint64_t sender)
{
    struct chempi_tcp_drop f = {.head = head(CHEMPI_TCP_DROP, 0),
                                .sender = htole64(sender)};

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

size_t chempi_tcp_wire_put_data(void *dst, uint64_t receiver, uint64_t offset,
                                uint32_t len)
{
    struct chempi_tcp_data f = {.head = head(CHEMPI_TCP_DATA, len),
                                .receiver = htole64(receiver),
                                .offset = htole64(offset)};

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

size_t chempi_tcp_wire_put_bye(void *dst)
{
    struct chempi_tcp_head f = head(CHEMPI_TCP_BYE, 0);

    memcpy(dst, &f, sizeof(f));
    return sizeof(f);
}

static const char *check_env(const struct chempi_envelope *env)
{
    if (env->kind < CHEMPI_KIND_MESSAGE || env->kind > CHEMPI_KIND_SYSTEM)
        return "an envelope of unknown kind";
    if (env->len > CHEMPI_TCP_LEN_MAX)
        return "an envelope with an impossible length";
    return NULL;
}

static const char *get_eager(const void *src, struct chempi_tcp_frame *out)
{
    struct chempi_tcp_eager f;

    memcpy(&f, src, sizeof(f));
    out->env = chempi_envelope_to_host(&f.env);
    if (out->len > CHEMPI_TCP_EAGER_MAX || out->len != out->env.len)
        return "an eager message with a wrong length";
    return check_env(&out->env);
}

static const char *get_rts(const void *src, struct chempi_tcp_frame *out)
{
    struct chempi_tcp_rts f;

    memcpy(&f, src, sizeof(f));
    out->env = chempi_envelope_to_host(&f.env);
    out->sender = le64toh(f.sender);
    if (out->len)
        return "an announcement with payload";
    if (!out->env.len)
        return "an announcement of nothing";
    return check_env(&out->env);
}

static const char *get_cts(const void *src, struct chempi_tcp_frame *out)
{
    struct chempi_tcp_cts f;

    memcpy(&f, src, sizeof(f));
    out->sender = le64toh(f.sender);
    out->receiver = le64toh(f.receiver);
    out->take = le64toh(f.take);
    return out->len || !out->take ? "an impossible clearance" : NULL;
}

static const char *get_drop(const void *src, struct chempi_tcp_frame *out)
{
    struct chempi_tcp_drop f;

    memcpy(&f, src, sizeof(f));
    out->sender = le64toh(f.sender);
    return out->len ? "a refusal with payload" : NULL;
}

static const char *get_data(const void *src, struct chempi_tcp_frame *out)
{
    struct chempi_tcp_data f;

    memcpy(&f, src, sizeof(f));
    out->receiver = le64toh(f.receiver);
    out->offset = le64toh(f.offset);
    if (!out->len || out->len > CHEMPI_TCP_CHUNK_MAX)
        return "a piece of data of impossible length";
    return NULL;
}

static const char *get_bye(const void *src, struct chempi_tcp_frame *out)
{
    (void)src; /* a head alone */
    return out->len ? "a farewell with payload" : NULL;
}

static const struct {
    size_t len;
    const char *(*get)(const void *src, struct chempi_tcp_frame *out);
} kinds[] = {
    [CHEMPI_TCP_EAGER] = {sizeof(struct chempi_tcp_eager), get_eager},
    [CHEMPI_TCP_RTS] = {sizeof(struct chempi_tcp_rts), get_rts},
    [CHEMPI_TCP_CTS] = {sizeof(struct chempi_tcp_cts), get_cts},
    [CHEMPI_TCP_DROP] = {sizeof(struct chempi_tcp_drop), get_drop},
    [CHEMPI_TCP_DATA] = {sizeof(struct chempi_tcp_data), get_data},
    [CHEMPI_TCP_BYE] = {sizeof(struct chempi_tcp_head), get_bye},
};

int chempi_tcp_wire_get(const void *src, size_t n, struct chempi_tcp_frame *out,
                        const char **why)
{
    struct chempi_tcp_head h;

    if (n < sizeof(h))
        return 0;
    memcpy(&h, src, sizeof(h));
    *why = "bytes that are no frame";
    if (le16toh(h.mark) != CHEMPI_TCP_MARK || h.zero)
        return -EPROTO;
    *why = "a frame of unknown kind";
    if (h.kind < CHEMPI_TCP_EAGER || h.kind >= CHEMPI_ARRAY_LEN(kinds))
        return -EPROTO;
    if (n < kinds[h.kind].len)
        return 0;
    *out = (struct chempi_tcp_frame){.kind = h.kind, .len = le32toh(h.len)};
    *why = kinds[h.kind].get(src, out);
    return *why ? -EPROTO : (int)kinds[h.kind].len;
}

void chempi_tcp_wire_put_preamble(struct chempi_tcp_preamble *dst,
                                  const uint8_t *bond, uint32_t from,
                                  uint32_t to, uint32_t network)
{
    *dst = (struct chempi_tcp_preamble){.version = htole16(CHEMPI_TCP_VERSION),
                                        .from = htole32(from),
                                        .to = htole32(to),
                                        .network = htole32(network),
                                        .order = htole64(CHEMPI_TCP_ORDER)};
    memcpy(dst->magic, CHEMPI_TCP_MAGIC, sizeof(dst->magic));
    if (bond)
        memcpy(dst->bond, bond, sizeof(dst->bond));
}

int chempi_tcp_wire_get_preamble(const void *src,
                                 struct chempi_tcp_preamble *out)
{
    memcpy(out, src, sizeof(*out));
    out->version = le16toh(out->version);
    out->from = le32toh(out->from);
    out->to = le32toh(out->to);
    out->network = le32toh(out->network);
    out->order = le64toh(out->order);
    if (memcmp(out->magic, CHEMPI_TCP_MAGIC, sizeof(out->magic)) != 0)
        return -EPROTO;
    if (out->version != CHEMPI_TCP_VERSION || out->zero ||
        out->order != CHEMPI_TCP_ORDER)
        return -EPROTONOSUPPORT;
    return 0;
}

void chempi_tcp_wire_put_verdict(struct chempi_tcp_verdict *dst,
                                 enum chempi_tcp_verdict_code code)
{
    *dst =
        (struct chempi_tcp_verdict){.magic = htole32(CHEMPI_TCP_VERDICT_MAGIC),
                                    .version = htole16(CHEMPI_TCP_VERSION),
                                    .code = htole16((uint16_t)code)};
}

int chempi_tcp_wire_get_verdict(const void *src, struct chempi_tcp_verdict *out)
{
    memcpy(out, src, sizeof(*out));
    out->magic = le32toh(out->magic);
    out->version = le16toh(out->version);
    out->code = le16toh(out->code);
    if (out->magic != CHEMPI_TCP_VERDICT_MAGIC ||
        out->code >= CHEMPI_TCP_VERDICT_END)
        return -EPROTO;
    return 0;
}
