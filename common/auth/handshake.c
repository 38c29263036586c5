/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of daemons; see handshake.h. */
#include "common/auth/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define MAGIC "CHEMPIn1" /* name and version of this handshake */
#define MAGIC_LEN (sizeof(MAGIC) - 1)

static int start(struct chempi_handshake *hs, bool is_caller, uint32_t key)
{
    uint8_t prologue[MAGIC_LEN + CHEMPI_HANDSHAKE_CONTEXT];

    memcpy(prologue, MAGIC, MAGIC_LEN);
    memcpy(prologue + MAGIC_LEN, hs->purpose, hs->purpose_len);
    return chempi_noise_init(&hs->noise, is_caller, CHEMPI_NOISE_PSK0,
                             &hs->keys->node, hs->keys->cluster[key], prologue,
                             MAGIC_LEN + hs->purpose_len);
}

int chempi_handshake_init(struct chempi_handshake *hs, bool is_caller,
                          const struct chempi_keys *keys, const void *purpose,
                          size_t purpose_len, chempi_handshake_trust_fn *trust,
                          void *arg)
{
    if (keys->cluster_count == 0)
        return -EINVAL;
    memset(hs, 0, sizeof(*hs));
    hs->keys = keys;
    hs->purpose_len = purpose_len < CHEMPI_HANDSHAKE_CONTEXT
                          ? purpose_len
                          : CHEMPI_HANDSHAKE_CONTEXT;
    if (purpose_len <= CHEMPI_HANDSHAKE_CONTEXT)
        memcpy(hs->purpose, purpose, purpose_len);
    else /* the lengths are right, so it does not fail */
        (void)crypto_generichash(hs->purpose, sizeof(hs->purpose), purpose,
                                 purpose_len, NULL, 0);
    hs->trust = trust;
    hs->arg = arg;
    return start(hs, is_caller, 0);
}

void chempi_handshake_fini(struct chempi_handshake *hs)
{
    chempi_noise_fini(&hs->noise);
}

/* The magic goes before the first message. */
static size_t magic_bytes(const struct chempi_handshake *hs)
{
    return hs->noise.message == 0 ? MAGIC_LEN : 0;
}

size_t chempi_handshake_first_key(void)
{
    return MAGIC_LEN;
}

size_t chempi_handshake_need(const struct chempi_handshake *hs)
{
    if (hs->noise.is_spent || chempi_noise_is_writer(&hs->noise) ||
        chempi_noise_overhead(&hs->noise) == 0)
        return 0;
    return magic_bytes(hs) + chempi_noise_overhead(&hs->noise);
}

static int refuse(struct chempi_handshake *hs, struct chempi_err *err, int code,
                  const char *text)
{
    chempi_handshake_fini(hs); /* A2 */
    return chempi_err_set(err, code, "%s", text);
}

/* The first message, which tells with which cluster key it was made. */
static int read_first(struct chempi_handshake *hs, const uint8_t *in,
                      size_t len)
{
    int rc = -EACCES;

    for (uint32_t i = 0; rc && i < hs->keys->cluster_count; i++) {
        rc = start(hs, false, i);
        if (!rc)
            rc = chempi_noise_read(&hs->noise, in, len, NULL);
    }
    return rc;
}

static int take(struct chempi_handshake *hs, const uint8_t *in, size_t len,
                struct chempi_err *err)
{
    const bool is_first = hs->noise.message == 0;
    int rc;

    if (is_first && memcmp(in, MAGIC, MAGIC_LEN) != 0)
        return refuse(hs, err, -EPROTO,
                      "the peer does not speak CHEMPI (or another version of "
                      "it)");
    rc = is_first ? read_first(hs, in + MAGIC_LEN, len - MAGIC_LEN)
                  : chempi_noise_read(&hs->noise, in, len, NULL);
    if (rc)
        return refuse(hs, err, rc,
                      "the peer holds another secret (or none): what it sent "
                      "was not made with the cluster's key");
    if (is_first)
        return 0; /* whose it is comes later */
    rc = hs->trust ? hs->trust(hs->arg, hs->noise.peer, err) : 0;
    if (rc)
        chempi_handshake_fini(hs); /* A4 */
    return rc;
}

int chempi_handshake_step(struct chempi_handshake *hs, const uint8_t *in,
                          size_t len, uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX],
                          size_t *out_len, struct chempi_err *err)
{
    struct chempi_noise *n = &hs->noise;
    int rc;

    *out_len = 0;
    if (n->is_spent || chempi_noise_overhead(n) == 0)
        return refuse(hs, err, -EPROTO, "the handshake is already over");
    if (len != chempi_handshake_need(hs)) /* A3 */
        return refuse(hs, err, -EPROTO, "a message of the wrong length");
    if (!chempi_noise_is_writer(n)) {
        rc = take(hs, in, len, err);
        if (rc)
            return rc;
    }
    if (chempi_noise_overhead(n) == 0)
        return 1;
    *out_len = magic_bytes(hs) + chempi_noise_overhead(n);
    memcpy(out, MAGIC, magic_bytes(hs));
    rc = chempi_noise_write(n, NULL, 0, out + magic_bytes(hs));
    if (rc) {
        *out_len = 0;
        return refuse(hs, err, rc, "the peer's key is a weak one");
    }
    return chempi_noise_overhead(n) == 0;
}

int chempi_handshake_split(struct chempi_handshake *hs,
                           struct chempi_noise_cipher *tx,
                           struct chempi_noise_cipher *rx)
{
    return chempi_noise_split(&hs->noise, tx, rx);
}
