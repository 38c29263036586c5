/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon's keys; see secrets.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "chempid/peers/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include "common/auth/auth.h"
#include "common/auth/secret.h"
#include "common/base/sys.h"

enum { IN_USE, FRESH, COPIES };

_Static_assert(CHEMPI_AUTH_KEY_BYTES == CHEMPI_NOISE_KEY_BYTES, "one size");

static int open_file(const struct chempi_secrets *s,
                     enum chempi_secrets_file which, const char *path,
                     struct chempi_err *err)
{
    int fd;

    if (s->open) {
        fd = s->open(s->arg, which);
    } else {
        fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
        fd = fd < 0 ? -errno : fd;
    }
    return fd >= 0 ? fd
                   : chempi_err_set(err, fd, "cannot open %s: %s", path,
                                    chempi_err_name(fd));
}

static int read_file(const struct chempi_secrets *s,
                     enum chempi_secrets_file which, const char *path,
                     uint8_t *keys, int max, struct chempi_err *err)
{
    const int fd = open_file(s, which, path, err);
    int rc;

    if (fd < 0)
        return fd;
    rc = chempi_auth_read_keys(fd, path, keys, max, err);
    (void)close(fd); /* read only */
    return rc;
}

static int read_keys(const struct chempi_secrets *s, struct chempi_keys *keys,
                     struct chempi_err *err)
{
    int n = read_file(s, CHEMPI_SECRETS_CLUSTER, s->cluster_file,
                      keys->cluster[0], CHEMPI_KEYS_MAX, err);

    if (n < 0)
        return n;
    keys->cluster_count = (uint32_t)n;
    keys->node = s->keys[IN_USE].node;
    if (!s->node_file)
        return 0;
    n = read_file(s, CHEMPI_SECRETS_NODE, s->node_file, keys->node.secret, 1,
                  err);
    if (n < 0)
        return n;
    chempi_noise_find_public(&keys->node);
    return 0;
}

static int read_trust(const struct chempi_secrets *s,
                      struct chempi_trust *trust, struct chempi_err *err)
{
    const int fd = open_file(s, CHEMPI_SECRETS_TRUST, s->trust_file, err);

    return fd < 0 ? fd : chempi_trust_read(trust, fd, s->trust_file, err);
}

int chempi_secrets_reread(struct chempi_secrets *s, struct chempi_err *err)
{
    struct chempi_trust trust = {0};
    int rc = read_keys(s, &s->keys[FRESH], err);

    if (!rc && s->trust_file)
        rc = read_trust(s, &trust, err);
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
