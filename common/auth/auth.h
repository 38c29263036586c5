/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proof, in both directions, that a peer holds the same secret (the job's
 * secret, the cluster's key), before anything else of it is parsed. Three
 * messages of fixed length; keyed BLAKE2b over both nonces, the sender's role
 * and a context agreed by both sides, so a proof can neither be replayed nor
 * reflected nor used for another purpose.
 *
 *   client -> server   hello:  magic, version, 32 random bytes
 *   server -> client   reply:  32 random bytes, the server's proof
 *   client -> server   finish: the client's proof
 *
 * The exchange proves who speaks; it does not encrypt what follows.
 *
 * This is a state machine without descriptors: the caller moves the bytes.
 * Never blocks; not thread-safe for one struct.
 *   A1  a proof is sent by the client only after the server's was right
 *   -   after an error the struct is spent and its key is wiped
 *   A3  no step accepts more or fewer bytes than chempi_auth_need() said
 */
#ifndef CHEMPI_COMMON_AUTH_AUTH_H
#define CHEMPI_COMMON_AUTH_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_AUTH_KEY_BYTES 32
#define CHEMPI_AUTH_NONCE_BYTES 32
#define CHEMPI_AUTH_PROOF_BYTES 32
#define CHEMPI_AUTH_CONTEXT_MAX 256 /* bytes */
#define CHEMPI_AUTH_MSG_MAX 64      /* bytes of the longest message */

enum chempi_auth_role { CHEMPI_AUTH_CLIENT, CHEMPI_AUTH_SERVER };

enum chempi_auth_state {
    CHEMPI_AUTH_START,  /* client: hello not made yet */
    CHEMPI_AUTH_HELLO,  /* server: waits for hello */
    CHEMPI_AUTH_REPLY,  /* client: waits for reply */
    CHEMPI_AUTH_FINISH, /* server: waits for finish */
    CHEMPI_AUTH_DONE,
    CHEMPI_AUTH_SPENT /* refused */
};

struct chempi_auth {
    enum chempi_auth_role role;
    enum chempi_auth_state state;
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];
    uint8_t context[CHEMPI_AUTH_CONTEXT_MAX];
    size_t context_len;
    uint8_t client_nonce[CHEMPI_AUTH_NONCE_BYTES];
    uint8_t server_nonce[CHEMPI_AUTH_NONCE_BYTES];
};

/* Begin. The context (job id, purpose) is copied and must be equal on both
 * sides. 0; -EINVAL: context too long; -EIO: libsodium does not start. */
int chempi_auth_init(struct chempi_auth *auth, enum chempi_auth_role role,
                     const uint8_t key[CHEMPI_AUTH_KEY_BYTES],
                     const void *context, size_t context_len);

/* Bytes that the next step takes from the peer: 0 for the client's first step
 * and when the exchange is over. */
size_t chempi_auth_need(const struct chempi_auth *auth);

/*
 * Take the peer's `len` bytes (exactly chempi_auth_need()), make our next
 * message (*out_len bytes, possibly 0). Returns 1 when the exchange is over
 * and the peer is proven (send what is in out first), 0 to go on, -EPROTO when
 * the peer does not speak this protocol, -EACCES when its proof is wrong.
 */
int chempi_auth_step(struct chempi_auth *auth, const void *in, size_t len,
                     uint8_t out[CHEMPI_AUTH_MSG_MAX], size_t *out_len,
                     struct chempi_err *err);

/* Wipe the key. */
void chempi_auth_fini(struct chempi_auth *auth);

/*
 * Read the keys of a file, at most `max`: 64 hexadecimal digits each, with
 * white space between and around them; a regular file of this user or root
 * that group and others cannot read. Returns how many, at least 1, or -errno
 * with words.
 */
int chempi_auth_load_keys(const char *path, uint8_t *keys, int max,
                          struct chempi_err *err);
/* The same from a descriptor that is open already and stays the caller's; path
 * is for words. */
int chempi_auth_read_keys(int fd, const char *path, uint8_t *keys, int max,
                          struct chempi_err *err);

/* Make a fresh random key. -EIO: libsodium does not start. */
int chempi_auth_make_key(uint8_t key[CHEMPI_AUTH_KEY_BYTES]);

#endif
