/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Noise protocol framework (revision 34), as far as CHEMPI needs it:
 * pattern XX with a pre-shared key, Curve25519, ChaCha20-Poly1305, BLAKE2b.
 *
 *   initiator -> responder   psk, e
 *   responder -> initiator   e, ee, s, es
 *   initiator -> responder   s, se
 *
 * Both sides prove that they hold the pre-shared key and the secret halves of
 * the static keys that they show; what is recorded today cannot be read with
 * keys stolen tomorrow, for the ephemeral ones are forgotten.
 *
 * XXpsk0 mixes the pre-shared key before all else: whoever lacks it is refused
 * by a first message of 48 bytes, which costs the responder no curve operation
 * and draws no answer. XXpsk3 mixes it last, and is here for the vectors that
 * are published for it.
 *
 * No descriptors and no memory: the caller moves the bytes. Nothing blocks;
 * one struct is for one thread.
 *   Z1  a nonce is used once: it counts up, and the cipher ends before it
 *       could begin anew
 *   Z2  after an error a handshake has forgotten its keys and refuses all else
 *   Z3  output is written only if the message is right as a whole
 */
#ifndef CHEMPI_COMMON_AUTH_NOISE_H
#define CHEMPI_COMMON_AUTH_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_NOISE_KEY_BYTES 32u
#define CHEMPI_NOISE_TAG_BYTES 16u
#define CHEMPI_NOISE_HASH_BYTES 64u
#define CHEMPI_NOISE_MSG_MAX 65535u /* bytes of a message, by the framework */
#define CHEMPI_NOISE_MESSAGES 3u    /* of a handshake */
#define CHEMPI_NOISE_REKEY 65536u   /* messages that a key seals */

/* A Curve25519 key pair. */
struct chempi_noise_pair {
    uint8_t secret[CHEMPI_NOISE_KEY_BYTES];
    uint8_t public[CHEMPI_NOISE_KEY_BYTES];
};

/* One direction (CipherState). */
struct chempi_noise_cipher {
    uint8_t key[CHEMPI_NOISE_KEY_BYTES];
    uint64_t count; /* the next nonce */
    bool has_key;
};

enum chempi_noise_psk { CHEMPI_NOISE_PSK0 = 0, CHEMPI_NOISE_PSK3 = 3 };

struct chempi_noise {
    bool is_initiator;
    bool is_spent;     /* Z2 */
    bool has_pair;     /* e is made */
    uint8_t psk_place; /* enum chempi_noise_psk */
    uint8_t message;   /* the next one, from 0; CHEMPI_NOISE_MESSAGES: over */
    const uint8_t *psk;
    const struct chempi_noise_pair *own; /* s */
    struct chempi_noise_cipher cipher;
    uint8_t chain[CHEMPI_NOISE_HASH_BYTES];
    uint8_t hash[CHEMPI_NOISE_HASH_BYTES];      /* of all that was said */
    struct chempi_noise_pair fresh;             /* e */
    uint8_t peer[CHEMPI_NOISE_KEY_BYTES];       /* rs, once it has come */
    uint8_t peer_fresh[CHEMPI_NOISE_KEY_BYTES]; /* re */
};

/* Make a key pair. 0; -EIO: libsodium does not start. */
int chempi_noise_make_pair(struct chempi_noise_pair *pair);
/* The public half of a secret one. */
void chempi_noise_find_public(struct chempi_noise_pair *pair);

/*
 * Begin. The keys are borrowed until the end, so that their owner decides in
 * which memory they are; the prologue must be equal on both sides. 0; -EIO:
 * libsodium does not start.
 */
int chempi_noise_init(struct chempi_noise *n, bool is_initiator,
                      enum chempi_noise_psk place,
                      const struct chempi_noise_pair *own,
                      const uint8_t psk[CHEMPI_NOISE_KEY_BYTES],
                      const void *prologue, size_t prologue_len);
/* Forget all keys. */
void chempi_noise_fini(struct chempi_noise *n);

/* Is it this side that writes the next message? */
bool chempi_noise_is_writer(const struct chempi_noise *n);
/* Bytes of the next message beyond its payload; 0: the handshake is over. */
size_t chempi_noise_overhead(const struct chempi_noise *n);

/* Write the next message: overhead + len bytes to out. 0; -EPROTO: not our
 * turn; -EACCES: the peer's key is a weak one. */
int chempi_noise_write(struct chempi_noise *n, const void *payload, size_t len,
                       uint8_t *out);
/* Read it: len bytes, len - overhead of them to payload. 0; -EPROTO: not its
 * turn, or too short; -EACCES: not from one who holds the keys. */
int chempi_noise_read(struct chempi_noise *n, const uint8_t *in, size_t len,
                      uint8_t *payload);

/* After the last message: the ciphers of both directions, and the handshake's
 * keys but hash and peer are forgotten. -EPROTO before. */
int chempi_noise_split(struct chempi_noise *n, struct chempi_noise_cipher *tx,
                       struct chempi_noise_cipher *rx);

/* Seal len bytes into len + CHEMPI_NOISE_TAG_BYTES at out; in place is
 * allowed. 0, -EOVERFLOW: Z1. */
int chempi_noise_seal(struct chempi_noise_cipher *c, const void *data,
                      size_t len, uint8_t *out);
/* Open len bytes into len - CHEMPI_NOISE_TAG_BYTES. 0, -EBADMSG: not what was
 * sealed, or not in this place; -EOVERFLOW: Z1. */
int chempi_noise_open(struct chempi_noise_cipher *c, const uint8_t *data,
                      size_t len, uint8_t *out);

#endif
