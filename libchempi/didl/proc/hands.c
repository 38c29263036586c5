/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of two leaders; see hands.h. */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include "libchempi/didl/proc/hands.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/auth/secret.h"
#include "common/base/sys.h"

struct chempi_keys *
chempi_hands_make_keys(const uint8_t secret[CHEMPI_NOISE_KEY_BYTES])
{
    struct chempi_keys *keys = chempi_secret_create(sizeof(*keys));

    if (!keys)
        return NULL;
    memcpy(keys->cluster[0], secret, CHEMPI_NOISE_KEY_BYTES);
    keys->cluster_count = 1;
    if (chempi_noise_make_pair(&keys->node)) {
        chempi_secret_destroy(keys, sizeof(*keys));
        return NULL;
    }
    return keys;
}

void chempi_hands_forget_keys(struct chempi_keys *keys)
{
    chempi_secret_destroy(keys, sizeof(*keys));
}

static bool is_in(const struct chempi_hands_seen *seen, const uint8_t *key)
{
    for (uint32_t i = 0; i < seen->count && i < CHEMPI_HANDS_SEEN_MAX; i++)
        if (memcmp(seen->keys[i], key, CHEMPI_NOISE_KEY_BYTES) == 0)
            return true;
    return false;
}

static void note(struct chempi_hands_seen *seen, const uint8_t *key)
{
    memcpy(seen->keys[seen->count % CHEMPI_HANDS_SEEN_MAX], key,
           CHEMPI_NOISE_KEY_BYTES);
    seen->count++;
    if (seen->count == 2 * CHEMPI_HANDS_SEEN_MAX) /* it stays full */
        seen->count = CHEMPI_HANDS_SEEN_MAX;
}

/* Take the other side's message, of len bytes, and answer it. The first one
 * costs no curve operation before it is known to be new. */
static int step(struct chempi_hands *h, size_t len)
{
    const uint8_t *key = h->seen && h->shake.noise.message == 0 && len > 0
                             ? h->in + chempi_handshake_first_key()
                             : NULL;
    int rc;

    if (key && is_in(h->seen, key))
        return -EALREADY;
    rc =
        chempi_handshake_step(&h->shake, h->in, len, h->out, &h->out_len, NULL);
    if (key && rc >= 0)
        note(h->seen, key);

    h->in_len = 0;
    h->out_done = 0;
    h->is_over = rc == 1;
    return rc < 0 ? rc : 0;
}

int chempi_hands_begin(struct chempi_hands *h, bool is_caller,
                       const struct chempi_keys *keys, const char *purpose,
                       chempi_handshake_trust_fn *trust, void *arg)
{
    int rc;

    *h = (struct chempi_hands){.has_begun = true};
    rc = chempi_handshake_init(&h->shake, is_caller, keys, purpose,
                               strlen(purpose), trust, arg);
    return rc == 0 && is_caller ? step(h, 0) : rc;
}

int chempi_hands_send(int fd, const void *data, size_t len, size_t *done)
{
    while (*done < len) {
        const ssize_t n =
            chempi_sys->send(fd, (const uint8_t *)data + *done, len - *done,
                             MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0)
            *done += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            return 0;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? -EIO : -errno;
    }
    return 1;
}

int chempi_hands_recv(int fd, void *data, size_t len, size_t *done)
{
    while (*done < len) {
        const ssize_t n = chempi_sys->recv(fd, (uint8_t *)data + *done,
                                           len - *done, MSG_DONTWAIT);

        if (n > 0)
            *done += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            return 0;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? -ECONNRESET : -errno;
    }
    return 1;
}

int chempi_hands_write(struct chempi_hands *h, int fd)
{
    return chempi_hands_send(fd, h->out, h->out_len, &h->out_done);
}

int chempi_hands_read(struct chempi_hands *h, int fd)
{
    const size_t need = chempi_handshake_need(&h->shake);
    int rc = chempi_hands_recv(fd, h->in, need, &h->in_len);

    if (rc != 1)
        return rc;
    rc = need ? step(h, need) : -EPROTO;
    return rc ? rc : 1;
}

struct chempi_seal *chempi_hands_seal(struct chempi_hands *h)
{
    const struct chempi_noise_cipher none = {.has_key = false};
    struct chempi_seal *seal = chempi_seal_create(&none, &none);

    if (seal && chempi_handshake_split(&h->shake, &seal->tx, &seal->rx)) {
        chempi_seal_destroy(seal);
        return NULL;
    }
    if (seal)
        memcpy(seal->hash, chempi_handshake_hash(&h->shake),
               sizeof(seal->hash));
    return seal;
}

void chempi_hands_fini(struct chempi_hands *h)
{
    if (h->has_begun)
        chempi_handshake_fini(&h->shake);
    h->has_begun = false;
}
