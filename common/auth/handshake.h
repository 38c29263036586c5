/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of daemons: three messages of fixed length, after which both
 * sides have proven that they hold the cluster's key and a key of their own,
 * and have ciphers for all that follows (noise.h, XXpsk0).
 *
 *   caller -> called   magic with version, 32 + 16 bytes
 *   called -> caller   32 + 48 + 16 bytes
 *   caller -> called   48 + 16 bytes
 *
 * The caller uses the first of its cluster keys; the called one tries all of
 * its own, so that a key can be replaced while both are good.
 *
 * This is a state machine without descriptors: the caller of these functions
 * moves the bytes. Nothing blocks; one struct is for one thread.
 *   -   who is called answers only one that holds a cluster key
 *   A2  after an error the struct is spent and its keys are wiped
 *   A3  no step accepts more or fewer bytes than chempi_handshake_need() said
 *   A4  a key that is not trusted ends the handshake as if it were wrong
 */
#ifndef CHEMPI_COMMON_AUTH_HANDSHAKE_H
#define CHEMPI_COMMON_AUTH_HANDSHAKE_H

#include "common/auth/noise.h"
#include "common/base/err.h"

#define CHEMPI_KEYS_MAX 4u           /* cluster keys at a time */
#define CHEMPI_HANDSHAKE_MSG_MAX 96u /* bytes of the longest message */
#define CHEMPI_HANDSHAKE_CONTEXT 32u /* bytes kept of a purpose */

/* What a daemon knows. */
struct chempi_keys {
    uint8_t cluster[CHEMPI_KEYS_MAX][CHEMPI_NOISE_KEY_BYTES];
    uint32_t cluster_count;
    struct chempi_noise_pair node;
};

/* 0, or -errno with words: this key is refused. */
typedef int chempi_handshake_trust_fn(void *arg, const uint8_t *key,
                                      struct chempi_err *err);

struct chempi_handshake {
    struct chempi_noise noise;
    const struct chempi_keys *keys;
    chempi_handshake_trust_fn *trust;
    void *arg;
    uint8_t purpose[CHEMPI_HANDSHAKE_CONTEXT];
    size_t purpose_len;
};

/* Begin. The keys are borrowed until the end. The purpose must be equal on
 * both sides; of a long one the hash is used. 0, -EINVAL: no cluster key,
 * -EIO: libsodium does not start. */
int chempi_handshake_init(struct chempi_handshake *hs, bool is_caller,
                          const struct chempi_keys *keys, const void *purpose,
                          size_t purpose_len, chempi_handshake_trust_fn *trust,
                          void *arg);

/* Where the caller's fresh key stands in its first message. */
size_t chempi_handshake_first_key(void);

/* Bytes that the next step takes from the peer: 0 for the caller's first step
 * and when all is over. */
size_t chempi_handshake_need(const struct chempi_handshake *hs);

/*
 * Take the peer's `len` bytes (exactly chempi_handshake_need()), make our next
 * message (*out_len bytes, possibly 0). Returns 1 when the handshake is over
 * and the peer is proven (send what is in out first), 0 to go on; with words:
 * -EPROTO when the peer does not speak this protocol, -EACCES when it lacks
 * the keys, what `trust` said.
 */
int chempi_handshake_step(struct chempi_handshake *hs, const uint8_t *in,
                          size_t len, uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX],
                          size_t *out_len, struct chempi_err *err);

/* The ciphers, once. -EPROTO before the end. */
int chempi_handshake_split(struct chempi_handshake *hs,
                           struct chempi_noise_cipher *tx,
                           struct chempi_noise_cipher *rx);
void chempi_handshake_fini(struct chempi_handshake *hs);

/* Once over: the peer's own key, and what no other handshake has. */
static inline const uint8_t *
chempi_handshake_peer(const struct chempi_handshake *hs)
{
    return hs->noise.peer;
}

static inline const uint8_t *
chempi_handshake_hash(const struct chempi_handshake *hs)
{
    return hs->noise.hash;
}

#endif
