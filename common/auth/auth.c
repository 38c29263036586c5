/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutual proof of a shared secret; see auth.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "common/auth/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"

#define HELLO_MAGIC "CHEMPIa1" /* name and version of this exchange */
#define HELLO_MAGIC_LEN 8
#define HELLO_LEN (HELLO_MAGIC_LEN + CHEMPI_AUTH_NONCE_BYTES)
#define REPLY_LEN (CHEMPI_AUTH_NONCE_BYTES + CHEMPI_AUTH_PROOF_BYTES)
#define FINISH_LEN CHEMPI_AUTH_PROOF_BYTES
#define KEY_FILE_MAX 512 /* bytes */

_Static_assert(HELLO_LEN <= CHEMPI_AUTH_MSG_MAX, "hello fits");
_Static_assert(REPLY_LEN <= CHEMPI_AUTH_MSG_MAX, "reply fits");

int chempi_auth_init(struct chempi_auth *auth, enum chempi_auth_role role,
                     const uint8_t key[CHEMPI_AUTH_KEY_BYTES],
                     const void *context, size_t context_len)
{
    if (context_len > CHEMPI_AUTH_CONTEXT_MAX)
        return -EINVAL;
    if (sodium_init() < 0)
        return -EIO;
    memset(auth, 0, sizeof(*auth));
    auth->role = role;
    auth->state =
        role == CHEMPI_AUTH_CLIENT ? CHEMPI_AUTH_START : CHEMPI_AUTH_HELLO;
    memcpy(auth->key, key, sizeof(auth->key));
    if (context_len)
        memcpy(auth->context, context, context_len);
    auth->context_len = context_len;
    return 0;
}

void chempi_auth_fini(struct chempi_auth *auth)
{
    sodium_memzero(auth->key, sizeof(auth->key));
}

size_t chempi_auth_need(const struct chempi_auth *auth)
{
    switch (auth->state) {
    case CHEMPI_AUTH_HELLO:
        return HELLO_LEN;
    case CHEMPI_AUTH_REPLY:
        return REPLY_LEN;
    case CHEMPI_AUTH_FINISH:
        return FINISH_LEN;
    default:
        return 0;
    }
}

/* The proof that `role` gives: what it knows is the key alone. */
static void make_proof(const struct chempi_auth *auth,
                       enum chempi_auth_role role,
                       uint8_t proof[CHEMPI_AUTH_PROOF_BYTES])
{
    crypto_generichash_state hash;
    const uint8_t tag = role == CHEMPI_AUTH_CLIENT ? 'C' : 'S';

    /* These calls fail on wrong lengths only, and the lengths are constant. */
    (void)crypto_generichash_init(&hash, auth->key, sizeof(auth->key),
                                  CHEMPI_AUTH_PROOF_BYTES);
    (void)crypto_generichash_update(&hash, (const uint8_t *)HELLO_MAGIC,
                                    HELLO_MAGIC_LEN);
    (void)crypto_generichash_update(&hash, &tag, 1);
    (void)crypto_generichash_update(&hash, auth->client_nonce,
                                    sizeof(auth->client_nonce));
    (void)crypto_generichash_update(&hash, auth->server_nonce,
                                    sizeof(auth->server_nonce));
    /* The context comes last, so its length needs no encoding. */
    (void)crypto_generichash_update(&hash, auth->context, auth->context_len);
    (void)crypto_generichash_final(&hash, proof, CHEMPI_AUTH_PROOF_BYTES);
    sodium_memzero(&hash, sizeof(hash));
}

static int refuse(struct chempi_auth *auth, struct chempi_err *err, int code,
                  const char *text)
{
    auth->state = CHEMPI_AUTH_SPENT;
    chempi_auth_fini(auth);
    return chempi_err_set(err, code, "%s", text);
}

static int check_proof(struct chempi_auth *auth, enum chempi_auth_role role,
                       const uint8_t *given, struct chempi_err *err)
{
    uint8_t proof[CHEMPI_AUTH_PROOF_BYTES];

    make_proof(auth, role, proof);
    if (sodium_memcmp(proof, given, sizeof(proof)) != 0)
        return refuse(auth, err, -EACCES,
                      "the peer holds another secret (or none): its proof is "
                      "wrong");
    return 0;
}

static void take_hello(struct chempi_auth *auth, const uint8_t *in,
                       uint8_t *out, size_t *out_len)
{
    memcpy(auth->client_nonce, in + HELLO_MAGIC_LEN,
           sizeof(auth->client_nonce));
    randombytes_buf(auth->server_nonce, sizeof(auth->server_nonce));
    memcpy(out, auth->server_nonce, sizeof(auth->server_nonce));
    make_proof(auth, CHEMPI_AUTH_SERVER, out + CHEMPI_AUTH_NONCE_BYTES);
    *out_len = REPLY_LEN;
    auth->state = CHEMPI_AUTH_FINISH;
}

static int take_reply(struct chempi_auth *auth, const uint8_t *in, uint8_t *out,
                      size_t *out_len, struct chempi_err *err)
{
    int rc;

    memcpy(auth->server_nonce, in, sizeof(auth->server_nonce));
    rc = check_proof(auth, CHEMPI_AUTH_SERVER, in + CHEMPI_AUTH_NONCE_BYTES,
                     err);
    if (rc)
        return rc;
    make_proof(auth, CHEMPI_AUTH_CLIENT, out); /* A1 */
    *out_len = FINISH_LEN;
    auth->state = CHEMPI_AUTH_DONE;
    chempi_auth_fini(auth);
    return 1;
}

static int take_finish(struct chempi_auth *auth, const uint8_t *in,
                       struct chempi_err *err)
{
    int rc = check_proof(auth, CHEMPI_AUTH_CLIENT, in, err);

    if (rc)
        return rc;
    auth->state = CHEMPI_AUTH_DONE;
    chempi_auth_fini(auth);
    return 1;
}

static void make_hello(struct chempi_auth *auth, uint8_t *out, size_t *out_len)
{
    randombytes_buf(auth->client_nonce, sizeof(auth->client_nonce));
    memcpy(out, HELLO_MAGIC, HELLO_MAGIC_LEN);
    memcpy(out + HELLO_MAGIC_LEN, auth->client_nonce,
           sizeof(auth->client_nonce));
    *out_len = HELLO_LEN;
    auth->state = CHEMPI_AUTH_REPLY;
}

int chempi_auth_step(struct chempi_auth *auth, const void *in, size_t len,
                     uint8_t out[CHEMPI_AUTH_MSG_MAX], size_t *out_len,
                     struct chempi_err *err)
{
    *out_len = 0;
    if (auth->state == CHEMPI_AUTH_DONE || auth->state == CHEMPI_AUTH_SPENT)
        return refuse(auth, err, -EPROTO, "the exchange is already over");
    if (len != chempi_auth_need(auth)) /* A3 */
        return refuse(auth, err, -EPROTO, "a proof of the wrong length");
    switch (auth->state) {
    case CHEMPI_AUTH_START:
        make_hello(auth, out, out_len);
        return 0;
    case CHEMPI_AUTH_HELLO:
        if (memcmp(in, HELLO_MAGIC, HELLO_MAGIC_LEN) != 0)
            return refuse(auth, err, -EPROTO,
                          "the peer does not speak CHEMPI (or another "
                          "version of it)");
        take_hello(auth, in, out, out_len);
        return 0;
    case CHEMPI_AUTH_REPLY:
        return take_reply(auth, in, out, out_len, err);
    default:
        return take_finish(auth, in, err);
    }
}

int chempi_auth_make_key(uint8_t key[CHEMPI_AUTH_KEY_BYTES])
{
    if (sodium_init() < 0)
        return -EIO;
    randombytes_buf(key, CHEMPI_AUTH_KEY_BYTES);
    return 0;
}

/* A key that others can read, that is another user's or that is no plain file
 * is no secret. */
static int check_key_file(int fd, const char *path, struct chempi_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    if (!S_ISREG(st.st_mode))
        return chempi_err_set(err, -EINVAL, "%s: not a regular file", path);
    if (!chempi_file_is_ours(&st))
        return chempi_err_set(err, -EPERM,
                              "%s: this key belongs to user %ld, who can "
                              "change it; run 'chown %ld %s'",
                              path, (long)st.st_uid, (long)geteuid(), path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return chempi_err_set(err, -EPERM,
                              "%s: others can read or write this key; run "
                              "'chmod 600 %s'",
                              path, path);
    return 0;
}

/* Returns how many there are, or -EINVAL. */
static int parse_keys(const char *path, const char *text, size_t len,
                      uint8_t *keys, int max, struct chempi_err *err)
{
    size_t bin_len;
    const char *end;

    if (sodium_hex2bin(keys, (size_t)max * CHEMPI_AUTH_KEY_BYTES, text, len,
                       " \t\r\n", &bin_len, &end) != 0 ||
        end != text + len || bin_len == 0 ||
        bin_len % CHEMPI_AUTH_KEY_BYTES != 0)
        return chempi_err_set(
            err, -EINVAL, "%s: a key is exactly 64 hexadecimal digits%s", path,
            max > 1 ? ", and there may be several, one a "
                      "line; make one with 'chempictl key "
                      "FILE'"
                    : "");
    return (int)(bin_len / CHEMPI_AUTH_KEY_BYTES);
}

int chempi_auth_read_keys(int fd, const char *path, uint8_t *keys, int max,
                          struct chempi_err *err)
{
    char text[KEY_FILE_MAX];
    ssize_t n = -1;
    int rc;

    if (sodium_init() < 0)
        return chempi_err_set(err, -EIO, "libsodium does not start");
    rc = check_key_file(fd, path, err);
    if (!rc && (n = chempi_sys->read(fd, text, sizeof(text))) < 0)
        rc = chempi_err_set(err, -errno, "cannot read key file %s: %s", path,
                            chempi_err_name(errno));
    if (!rc)
        rc = parse_keys(path, text, (size_t)n, keys, max, err);
    sodium_memzero(text, sizeof(text));
    return rc;
}

int chempi_auth_load_keys(const char *path, uint8_t *keys, int max,
                          struct chempi_err *err)
{
    const int fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    int rc;

    if (fd < 0)
        return chempi_err_set(err, -errno, "cannot open key file %s: %s", path,
                              chempi_err_name(errno));
    rc = chempi_auth_read_keys(fd, path, keys, max, err);
    (void)close(fd); /* read only: nothing to lose */
    return rc;
}
