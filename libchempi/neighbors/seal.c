/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames sealed between two ranks; see seal.h. */
#define _DEFAULT_SOURCE /* endian.h */
#include "libchempi/neighbors/seal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "common/base/compiler.h"

#define TAG crypto_aead_chacha20poly1305_ietf_ABYTES
#define NONCE crypto_aead_chacha20poly1305_ietf_NPUBBYTES
#define CONTEXT "chpiflow" /* of the KDF: what its keys are for */
/* Header, gateways, and the upper halves of number and acknowledgement. */
#define SHOWN_MAX                                                              \
    (sizeof(struct chempi_neighbor_wire) + 4 * CHEMPI_NEIGHBOR_GATEWAYS_MAX + 8)

static_assert(TAG + 8 == CHEMPI_NEIGHBOR_SEAL_BYTES, "what a seal adds");
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES ==
                  CHEMPI_NEIGHBOR_SEAL_KEY,
              "a key");
static_assert(crypto_kdf_KEYBYTES == CHEMPI_NEIGHBOR_SEAL_KEY,
              "the key of ranks");
static_assert(sizeof(CONTEXT) - 1 == crypto_kdf_CONTEXTBYTES, "a context");

static void derive(uint8_t *out, const uint8_t *key, uint32_t src, uint32_t dst)
{
    const uint64_t pair = (uint64_t)src << 32 | dst; /* Q5 */

    (void)crypto_kdf_derive_from_key(out, CHEMPI_NEIGHBOR_SEAL_KEY, pair,
                                     CONTEXT,
                                     key); /* fails for wrong lengths only */
}

void chempi_neighbor_seal_init(struct chempi_neighbor_seal *s,
                               const uint8_t key[CHEMPI_NEIGHBOR_SEAL_KEY],
                               uint32_t self, uint32_t peer)
{
    memset(s, 0, sizeof(*s));
    derive(s->out_key, key, self, peer);
    derive(s->in_key, key, peer, self);
    s->is_ready = true;
}

static void make_nonce(uint8_t nonce[NONCE], uint64_t count)
{
    count = htole64(count);
    memset(nonce, 0, NONCE);
    memcpy(nonce + NONCE - sizeof(count), &count, sizeof(count));
}

/* What is authenticated beside the encrypted part, `head` bytes of it from the
 * frame: gateways change how far it has come. Returns its length. */
static size_t put_shown(uint8_t shown[SHOWN_MAX], const uint8_t *frame,
                        size_t head, uint64_t seq, uint64_t ack)
{
    const uint32_t upper[] = {htole32((uint32_t)(seq >> 32)),
                              htole32((uint32_t)(ack >> 32))}; /* Q2 */

    memcpy(shown, frame, head);
    chempi_neighbor_frame_set_at(shown, 0);
    memcpy(shown + head, upper, sizeof(upper));
    return head + sizeof(upper);
}

void chempi_neighbor_seal_put(struct chempi_neighbor_seal *s, uint8_t *frame,
                              size_t len, uint64_t seq, uint64_t ack)
{
    uint8_t nonce[NONCE];
    uint8_t shown[SHOWN_MAX];
    uint8_t *tag = frame + len;
    const uint64_t count = htole64(s->count);
    size_t head;
    size_t shown_len;

    chempi_neighbor_frame_set_sealed(frame, true);
    head = chempi_neighbor_frame_head_len(frame);
    shown_len = put_shown(shown, frame, head, seq, ack);
    make_nonce(nonce, s->count++); /* Q1 */
    /* Cannot fail. */
    (void)crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        frame + head, tag, NULL, frame + head, len - head, shown, shown_len,
        NULL, nonce, s->out_key);
    memcpy(tag + TAG, &count, sizeof(count));
}

/* The length of what it was before, or -EBADMSG. */
static int open_with(const uint8_t *key, const uint8_t *frame, size_t len,
                     uint64_t seq, uint64_t ack, uint8_t *out, uint64_t *count)
{
    struct chempi_neighbor_frame f;
    uint8_t nonce[NONCE];
    uint8_t shown[SHOWN_MAX];
    const char *why;
    const int n = chempi_neighbor_frame_head(frame, len, &f, &why);
    const size_t head = n < 0 ? 0 : (size_t)n;
    size_t plain;
    size_t shown_len;

    if (n < 0 || !(f.flags & CHEMPI_NEIGHBOR_SEALED) ||
        len - head < CHEMPI_NEIGHBOR_SEAL_BYTES)
        return -EBADMSG;
    plain = len - head - CHEMPI_NEIGHBOR_SEAL_BYTES;
    memcpy(count, frame + len - sizeof(*count), sizeof(*count));
    *count = le64toh(*count);
    seq = chempi_neighbor_is_numbered(f.kind)
              ? chempi_neighbor_seal_extend(seq, f.seq)
              : 0;
    ack = chempi_neighbor_seal_extend(ack, f.ack);
    shown_len = put_shown(shown, frame, head, seq, ack);
    make_nonce(nonce, *count);
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
            out + head, NULL, frame + head, plain, frame + head + plain, shown,
            shown_len, nonce, key))
        return -EBADMSG;
    memcpy(out, frame, head);
    chempi_neighbor_frame_set_sealed(out, false);
    return (int)(head + plain);
}

static uint64_t *seen_word(struct chempi_neighbor_seal *s, uint64_t count)
{
    return &s->seen[count % CHEMPI_NEIGHBOR_SEAL_SEEN / 64];
}

/* Q4: is it the first time? */
static bool mark(struct chempi_neighbor_seal *s, uint64_t count)
{
    const uint64_t bit = UINT64_C(1) << count % 64;

    if (count + CHEMPI_NEIGHBOR_SEAL_SEEN < s->top)
        return true; /* its number will say so */
    if (count >= s->top + CHEMPI_NEIGHBOR_SEAL_SEEN)
        memset(s->seen, 0, sizeof(s->seen));
    else
        for (uint64_t c = s->top; c < count; c++)
            *seen_word(s, c) &= ~(UINT64_C(1) << c % 64);
    if (count >= s->top) {
        s->top = count + 1;
        *seen_word(s, count) &= ~bit;
    }
    if (*seen_word(s, count) & bit)
        return false;
    *seen_word(s, count) |= bit;
    return true;
}

int chempi_neighbor_seal_get(struct chempi_neighbor_seal *s,
                             const uint8_t *frame, size_t len, uint64_t seq,
                             uint64_t ack, uint8_t *out, const char **why)
{
    uint64_t count;
    const int n = open_with(s->in_key, frame, len, seq, ack, out, &count);

    *why = "a frame that was changed, or made up,";
    if (CHEMPI_UNLIKELY(n < 0))
        return n;
    *why = "a frame that was sent twice,";
    return mark(s, count) ? n : -EALREADY;
}

void chempi_neighbor_seal_unget(struct chempi_neighbor_seal *s,
                                const uint8_t *frame, size_t len)
{
    uint64_t count;

    memcpy(&count, frame + len - sizeof(count), sizeof(count));
    count = le64toh(count);
    if (count + CHEMPI_NEIGHBOR_SEAL_SEEN >= s->top)
        *seen_word(s, count) &= ~(UINT64_C(1) << count % 64);
}

int chempi_neighbor_seal_undo(const struct chempi_neighbor_seal *s,
                              const uint8_t *frame, size_t len, uint64_t seq,
                              uint64_t ack, uint8_t *out)
{
    uint64_t count;

    return open_with(s->out_key, frame, len, seq, ack, out, &count);
}
