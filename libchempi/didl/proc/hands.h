/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of two leaders (common/auth/handshake.h), with the descriptor
 * over which it goes. Nothing blocks, and no byte more is read than belongs
 * to it.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_HANDS_H
#define CHEMPI_LIBCHEMPI_DIDL_HANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/handshake.h"
#include "common/auth/seal.h"

#define CHEMPI_HANDS_PORT "chempi port 1" /* what it is for */
#define CHEMPI_HANDS_JOIN "chempi join 1"

/* Fresh keys of callers that have shown the secret lately, so that who has
 * recorded a first message shows it in vain. Zeroed memory is none. */
#define CHEMPI_HANDS_SEEN_MAX 512u
struct chempi_hands_seen {
    uint8_t keys[CHEMPI_HANDS_SEEN_MAX][CHEMPI_NOISE_KEY_BYTES];
    uint32_t count; /* in all: the oldest ones are overwritten */
};

/* Zeroed memory is one that has not begun. */
struct chempi_hands {
    struct chempi_handshake shake;
    struct chempi_hands_seen *seen; /* who is called may have one; borrowed */
    bool has_begun;
    bool is_over; /* the other side is proven; what is in `out` is to leave */
    uint8_t in[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t in_len;
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t out_len;
    size_t out_done;
};

/* Keys with this secret in common and a fresh one of this side; NULL: out of
 * memory. chempi_hands_forget_keys() ends them; NULL is fine. */
struct chempi_keys *
chempi_hands_make_keys(const uint8_t secret[CHEMPI_NOISE_KEY_BYTES]);
void chempi_hands_forget_keys(struct chempi_keys *keys);

/* Begin, as handshake.h says; keys and arg are borrowed. The caller's first
 * message is in `out` then. 0 or -errno. */
int chempi_hands_begin(struct chempi_hands *h, bool is_caller,
                       const struct chempi_keys *keys, const char *purpose,
                       chempi_handshake_trust_fn *trust, void *arg);

/* Write and read bytes, of which *done have gone: 1: all have; 0: the socket is
 * full, or they are not here yet; -errno, -ECONNRESET at the end of reading. */
int chempi_hands_send(int fd, const void *data, size_t len, size_t *done);
int chempi_hands_recv(int fd, void *data, size_t len, size_t *done);

/* Write what is in `out`: 1: nothing is left, 0: the socket is full, -errno. */
int chempi_hands_write(struct chempi_hands *h, int fd);

/* Read, and answer to `out`, what has come: 1: a message was taken, 0: it is
 * not here yet, -ECONNRESET: the end, -EPROTO or -EACCES: not from one who has
 * the secret, -EALREADY: it was seen before, other -errno. */
int chempi_hands_read(struct chempi_hands *h, int fd);

/* Once over: what seals the rest. NULL: out of memory. */
struct chempi_seal *chempi_hands_seal(struct chempi_hands *h);

/* Forget the keys. */
void chempi_hands_fini(struct chempi_hands *h);

#endif
