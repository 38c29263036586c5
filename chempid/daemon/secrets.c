/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon's keys; see secrets.h. */
#include "chempid/daemon/secrets.h"

#include <errno.h>
#include <sodium.h>

#include "common/auth/auth.h"
#include "common/auth/secret.h"

enum { IN_USE, FRESH, COPIES };

_Static_assert(CHEMPI_AUTH_KEY_BYTES == CHEMPI_NOISE_KEY_BYTES, "one size");

static int read_keys(const struct chempi_secrets *s, struct chempi_keys *keys,
                     struct chempi_err *err)
{
    int n = chempi_auth_load_keys(s->cluster_file, keys->cluster[0],
                                  CHEMPI_KEYS_MAX, err);

    if (n < 0)
        return n;
    keys->cluster_count = (uint32_t)n;
    keys->node = s->keys[IN_USE].node;
    if (!s->node_file)
        return 0;
    n = chempi_auth_load_keys(s->node_file, keys->node.secret, 1, err);
    if (n < 0)
        return n;
    chempi_noise_find_public(&keys->node);
    return 0;
}

int chempi_secrets_reread(struct chempi_secrets *s, struct chempi_err *err)
{
    struct chempi_trust trust = {0};
    int rc = read_keys(s, &s->keys[FRESH], err);

    if (!rc && s->trust_file)
        rc = chempi_trust_read(&trust, s->trust_file, err);
    if (!rc) { /* K2 */
        s->keys[IN_USE] = s->keys[FRESH];
        chempi_trust_fini(&s->trust);
        s->trust = trust;
    }
    sodium_memzero(&s->keys[FRESH], sizeof(s->keys[FRESH]));
    return rc;
}

int chempi_secrets_open(struct chempi_secrets *s, struct chempi_err *err)
{
    s->keys = chempi_secret_create(COPIES * sizeof(*s->keys)); /* K1 */
    if (!s->keys)
        return chempi_err_set(err, -errno, "no memory for the key: %s",
                              chempi_err_name(errno));
    if (!s->node_file && chempi_noise_make_pair(&s->keys[IN_USE].node))
        return chempi_err_set(err, -EIO, "libsodium does not start");
    return chempi_secrets_reread(s, err);
}

void chempi_secrets_close(struct chempi_secrets *s)
{
    chempi_secret_destroy(s->keys, COPIES * sizeof(*s->keys));
    chempi_trust_fini(&s->trust);
    s->keys = NULL;
}
