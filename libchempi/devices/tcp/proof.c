/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is of the job; see proof.h. */
#include "libchempi/devices/tcp/proof.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "common/auth/secret.h"

struct chempi_keys *chempi_tcp_proof_make_keys(const uint8_t *secret)
{
    struct chempi_keys *keys = chempi_secret_create(sizeof(*keys));

    if (!keys)
        return NULL;
    memcpy(keys->cluster[0], secret, sizeof(keys->cluster[0]));
    keys->cluster_count = 1;
    if (chempi_noise_make_pair(&keys->node)) {
        chempi_secret_destroy(keys, sizeof(*keys));
        return NULL;
    }
    return keys;
}

struct chempi_keys *chempi_tcp_proof_make_rank_keys(const uint8_t *key)
{
    uint8_t secret[crypto_kdf_KEYBYTES];
    struct chempi_keys *keys;

    (void)crypto_kdf_derive_from_key(secret, sizeof(secret), 0, "chpi-tcp",
                                     key); /* fails for wrong lengths only */
    keys = chempi_tcp_proof_make_keys(secret);
    sodium_memzero(secret, sizeof(secret));
    return keys;
}

void chempi_tcp_proof_forget_keys(struct chempi_keys *keys)
{
    chempi_secret_destroy(keys, sizeof(*keys));
}

int chempi_tcp_proof_init(struct chempi_tcp_proof *p, bool is_caller,
                          const uint8_t *secret, const struct chempi_keys *keys,
                          const void *context, size_t context_len)
{
    p->is_secure = keys != NULL;
    p->own = NULL;
    if (keys)
        return chempi_handshake_init(&p->u.shake, is_caller, keys, context,
                                     context_len, NULL, NULL);
    return chempi_auth_init(&p->u.auth,
                            is_caller ? CHEMPI_AUTH_CLIENT : CHEMPI_AUTH_SERVER,
                            secret, context, context_len);
}

size_t chempi_tcp_proof_need(const struct chempi_tcp_proof *p)
{
    return p->is_secure ? chempi_handshake_need(&p->u.shake)
                        : chempi_auth_need(&p->u.auth);
}

int chempi_tcp_proof_step(struct chempi_tcp_proof *p, const uint8_t *in,
                          size_t len, uint8_t out[CHEMPI_TCP_PROOF_MAX],
                          size_t *out_len, struct chempi_err *err)
{
    return p->is_secure
               ? chempi_handshake_step(&p->u.shake, in, len, out, out_len, err)
               : chempi_auth_step(&p->u.auth, in, len, out, out_len, err);
}

void chempi_tcp_proof_fini(struct chempi_tcp_proof *p)
{
    if (p->is_secure)
        chempi_handshake_fini(&p->u.shake);
    else
        chempi_auth_fini(&p->u.auth);
    chempi_tcp_proof_forget_keys(p->own);
    p->own = NULL;
}

int chempi_tcp_proof_seal(struct chempi_tcp_proof *p, struct chempi_seal **seal)
{
    const struct chempi_noise_cipher none = {.has_key = false};
    struct chempi_seal *made;
    int rc;

    *seal = NULL;
    if (!p->is_secure)
        return 0;
    made = chempi_seal_create(&none, &none);
    if (!made)
        return -ENOMEM;
    rc = chempi_handshake_split(&p->u.shake, &made->tx, &made->rx);
    if (rc)
        chempi_seal_destroy(made);
    else
        *seal = made;
    return rc;
}
