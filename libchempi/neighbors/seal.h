/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames sealed between two ranks, so that the gateways on their way cannot
 * read or change them. Unlike records (common/auth/seal.h) they may come in
 * any order, over several ways, and not at all.
 *
 *   header, gateways         readable; authenticated but for `at`
 *   fixed part, payload      encrypted
 *   tag, u64 count           CHEMPI_NEIGHBOR_SEAL_BYTES behind them
 *
 * The keys, one for each direction, come from the key of ranks and the two
 * numbers by libsodium's KDF; the cipher is ChaCha20-Poly1305 (RFC 8439).
 *
 *   Q1  a count, the nonce, is used for one frame: it counts up, and 64 bits
 *       do not end; a frame that is sent again has a new one
 *   Q2  what is authenticated of number and acknowledgement has 64 bits, of
 *       which the header shows 32: a frame of another round does not open
 *   -   nothing of a frame is handed on before it has opened
 *   Q4  a count opens once, among the last CHEMPI_NEIGHBOR_SEAL_SEEN, or again
 * when memory was missing for its frame: an older one may be late, and its
 *       number says whether it came before
 *   Q5  no frame is good in the other direction or for another pair
 *
 * One thread at a time per struct. Nothing blocks.
 */
#ifndef CHEMPI_LIBCHEMPI_NEIGHBORS_SEAL_H
#define CHEMPI_LIBCHEMPI_NEIGHBORS_SEAL_H

#include "libchempi/neighbors/frame.h"

#define CHEMPI_NEIGHBOR_SEAL_KEY 32u    /* bytes */
#define CHEMPI_NEIGHBOR_SEAL_SEEN 4096u /* counts; a multiple of 64 */

struct chempi_neighbor_seal {
    uint8_t out_key[CHEMPI_NEIGHBOR_SEAL_KEY];
    uint8_t in_key[CHEMPI_NEIGHBOR_SEAL_KEY];
    uint64_t count; /* of the next frame that is sealed */
    uint64_t top;   /* the highest count that has opened, plus one */
    uint64_t seen[CHEMPI_NEIGHBOR_SEAL_SEEN / 64]; /* bit count % SEEN */
    bool is_ready;
};

/* Keys for what rank `self` and rank `peer` say to each other. */
void chempi_neighbor_seal_init(struct chempi_neighbor_seal *s,
                               const uint8_t key[CHEMPI_NEIGHBOR_SEAL_KEY],
                               uint32_t self, uint32_t peer);

/*
 * Seal a frame of `len` bytes in place; it grows by CHEMPI_NEIGHBOR_SEAL_BYTES,
 * which there is room for. seq and ack are those of its header, as 64 bits
 * (seq of a frame that is not numbered: 0).
 */
void chempi_neighbor_seal_put(struct chempi_neighbor_seal *s, uint8_t *frame,
                              size_t len, uint64_t seq, uint64_t ack);

/*
 * Open a frame of the peer's to `out`, which has room for `len` bytes: as it
 * was before it was sealed. seq and ack are near those that are expected.
 * Returns its length; with *why -EBADMSG: not what the peer has sealed for us,
 * -EALREADY: it has come before.
 */
int chempi_neighbor_seal_get(struct chempi_neighbor_seal *s,
                             const uint8_t *frame, size_t len, uint64_t seq,
                             uint64_t ack, uint8_t *out, const char **why);

/* The frame that has been opened just now comes again. */
void chempi_neighbor_seal_unget(struct chempi_neighbor_seal *s,
                                const uint8_t *frame, size_t len);

/* The same as get() of a frame of our own, to send it again. */
int chempi_neighbor_seal_undo(const struct chempi_neighbor_seal *s,
                              const uint8_t *frame, size_t len, uint64_t seq,
                              uint64_t ack, uint8_t *out);

/* The number near `base` whose lower half is `low`. */
static inline uint64_t chempi_neighbor_seal_extend(uint64_t base, uint32_t low)
{
    return base + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)base);
}

#endif
