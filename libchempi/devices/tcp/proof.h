/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two processes prove to each other that they share a secret, the job's or
 * a bond's: with a keyed hash (common/auth/auth.h), after which frames go in
 * clear, or, if job or bond is secure, with the handshake of daemons
 * (common/auth/handshake.h), after which they are sealed. A process's own key
 * is made when its device opens, or for one proof by a bond, and ends with it.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_TCP_PROOF_H
#define CHEMPI_LIBCHEMPI_DEVICES_TCP_PROOF_H

#include "common/auth/auth.h"
#include "common/auth/handshake.h"
#include "common/auth/seal.h"

#define CHEMPI_TCP_PROOF_MAX CHEMPI_HANDSHAKE_MSG_MAX /* bytes of a message */

_Static_assert(CHEMPI_AUTH_MSG_MAX <= CHEMPI_TCP_PROOF_MAX, "either fits");

struct chempi_tcp_proof {
    bool is_secure;
    struct chempi_keys *own; /* that end with it, or NULL */
    union {
        struct chempi_auth auth;
        struct chempi_handshake shake;
    } u;
};

/* Keys of a process for secure jobs; NULL: out of memory. */
struct chempi_keys *chempi_tcp_proof_make_keys(const uint8_t *secret);
/* The same between ranks, from the key of ranks, which gateways do not have. */
struct chempi_keys *chempi_tcp_proof_make_rank_keys(const uint8_t *key);
void chempi_tcp_proof_forget_keys(struct chempi_keys *keys);

/* As the calls of auth.h, or of handshake.h if there are keys, which are
 * borrowed until the end. */
int chempi_tcp_proof_init(struct chempi_tcp_proof *p, bool is_caller,
                          const uint8_t *secret, const struct chempi_keys *keys,
                          const void *context, size_t context_len);
size_t chempi_tcp_proof_need(const struct chempi_tcp_proof *p);
int chempi_tcp_proof_step(struct chempi_tcp_proof *p, const uint8_t *in,
                          size_t len, uint8_t out[CHEMPI_TCP_PROOF_MAX],
                          size_t *out_len, struct chempi_err *err);
void chempi_tcp_proof_fini(struct chempi_tcp_proof *p);

/* Once over: what seals the connection, the caller's to destroy; NULL if it
 * stays clear. 0; -ENOMEM: it may be asked for again. */
int chempi_tcp_proof_seal(struct chempi_tcp_proof *p,
                          struct chempi_seal **seal);

#endif
