/* SPDX-License-Identifier: BSD-3-Clause */
/* The Noise protocol framework; see noise.h. Section numbers are those of its
 * specification, revision 34. */
#include "common/auth/noise.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define KEY CHEMPI_NOISE_KEY_BYTES
#define TAG CHEMPI_NOISE_TAG_BYTES
#define HASH CHEMPI_NOISE_HASH_BYTES
#define BLOCK 128u /* bytes that BLAKE2b takes at a time */

/* What a message is made of, in this order (section 7.1). */
enum token { END, PSK, E, S, EE, ES, SE };

#define TOKENS_MAX 6u

static const enum token psk0[CHEMPI_NOISE_MESSAGES][TOKENS_MAX] = {
    {PSK, E}, {E, EE, S, ES}, {S, SE}};
static const enum token psk3[CHEMPI_NOISE_MESSAGES][TOKENS_MAX] = {
    {E}, {E, EE, S, ES}, {S, SE, PSK}};

static const char psk0_name[] = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b";
static const char psk3_name[] = "Noise_XXpsk3_25519_ChaChaPoly_BLAKE2b";

_Static_assert(sizeof(psk0_name) - 1 <= HASH, "padded, not hashed");

/* ---- hashes (4.3) -------------------------------------------------------- */

/* The calls of BLAKE2b fail on wrong lengths only, and these are constant. */
static void hash_two(uint8_t out[HASH], const void *a, size_t a_len,
                     const void *b, size_t b_len)
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, HASH);
    (void)crypto_generichash_update(&state, a, a_len);
    (void)crypto_generichash_update(&state, b, b_len);
    (void)crypto_generichash_final(&state, out, HASH);
    sodium_memzero(&state, sizeof(state));
}

/* HMAC (RFC 2104) over a and b; the key is a hash. */
static void mac(uint8_t out[HASH], const uint8_t key[HASH], const void *a,
                size_t a_len, const void *b, size_t b_len)
{
    crypto_generichash_state state;
    uint8_t pad[BLOCK];
    uint8_t inner[HASH];

    memset(pad, 0x36, sizeof(pad));
    for (size_t i = 0; i < HASH; i++)
        pad[i] ^= key[i];
    (void)crypto_generichash_init(&state, NULL, 0, HASH);
    (void)crypto_generichash_update(&state, pad, sizeof(pad));
    (void)crypto_generichash_update(&state, a, a_len);
    (void)crypto_generichash_update(&state, b, b_len);
    (void)crypto_generichash_final(&state, inner, HASH);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    hash_two(out, pad, sizeof(pad), inner, sizeof(inner));
    sodium_memzero(&state, sizeof(state));
    sodium_memzero(pad, sizeof(pad));
    sodium_memzero(inner, sizeof(inner));
}

/* HKDF with two or (c not NULL) three outputs. */
static void derive(const uint8_t chain[HASH], const void *in, size_t len,
                   uint8_t a[HASH], uint8_t b[HASH], uint8_t *c)
{
    static const uint8_t one = 1;
    static const uint8_t two = 2;
    static const uint8_t three = 3;
    uint8_t temp[HASH];
    uint8_t first[HASH];

    mac(temp, chain, in, len, NULL, 0);
    mac(first, temp, &one, 1, NULL, 0);
    mac(b, temp, first, HASH, &two, 1);
    if (c)
        mac(c, temp, b, HASH, &three, 1);
    memcpy(a, first, HASH);
    sodium_memzero(temp, sizeof(temp));
    sodium_memzero(first, sizeof(first));
}

/* ---- one direction (5.1) ------------------------------------------------- */

static void make_nonce(uint8_t nonce[12], uint64_t count)
{
    memset(nonce, 0, 4);
    for (unsigned i = 0; i < 8; i++)
        nonce[4 + i] = (uint8_t)(count >> (8 * i));
}

/* REKEY (4.2); the last nonce is reserved for it. */
static void change_key(struct chempi_noise_cipher *c)
{
    static const uint8_t zeros[KEY];
    uint8_t sealed[KEY + TAG];
    uint8_t nonce[12];

    make_nonce(nonce, UINT64_MAX);
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(
        sealed, NULL, zeros, sizeof(zeros), NULL, 0, NULL, nonce, c->key);
    memcpy(c->key, sealed, KEY);
    sodium_memzero(sealed, sizeof(sealed));
}

static void count_up(struct chempi_noise_cipher *c, bool has_rekey)
{
    c->count++;
    if (has_rekey && c->count % CHEMPI_NOISE_REKEY == 0)
        change_key(c);
}

static int seal(struct chempi_noise_cipher *c, const void *ad, size_t ad_len,
                const void *data, size_t len, uint8_t *out)
{
    uint8_t nonce[12];

    if (c->count == UINT64_MAX) /* Z1 */
        return -EOVERFLOW;
    make_nonce(nonce, c->count);
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(
        out, NULL, data, len, ad, ad_len, NULL, nonce, c->key);
    return 0;
}

static int unseal(struct chempi_noise_cipher *c, const void *ad, size_t ad_len,
                  const uint8_t *data, size_t len, uint8_t *out)
{
    uint8_t nonce[12];

    if (c->count == UINT64_MAX) /* Z1 */
        return -EOVERFLOW;
    if (len < TAG)
        return -EBADMSG;
    make_nonce(nonce, c->count);
    return crypto_aead_chacha20poly1305_ietf_decrypt(
               out, NULL, NULL, data, len, ad, ad_len, nonce, c->key) == 0
               ? 0
               : -EBADMSG;
}

int chempi_noise_seal(struct chempi_noise_cipher *c, const void *data,
                      size_t len, uint8_t *out)
{
    int rc = seal(c, NULL, 0, data, len, out);

    if (!rc)
        count_up(c, true);
    return rc;
}

int chempi_noise_open(struct chempi_noise_cipher *c, const uint8_t *data,
                      size_t len, uint8_t *out)
{
    int rc = unseal(c, NULL, 0, data, len, out);

    if (!rc)
        count_up(c, true);
    return rc;
}

/* ---- what was said, and the keys from it (5.2) --------------------------- */

static void mix_hash(struct chempi_noise *n, const void *data, size_t len)
{
    hash_two(n->hash, n->hash, HASH, data, len);
}

static void set_key(struct chempi_noise *n, const uint8_t key[HASH])
{
    memcpy(n->cipher.key, key, KEY);
    n->cipher.count = 0;
    n->cipher.has_key = true;
}

static void mix_key(struct chempi_noise *n, const void *data, size_t len)
{
    uint8_t key[HASH];

    derive(n->chain, data, len, n->chain, key, NULL);
    set_key(n, key);
    sodium_memzero(key, sizeof(key));
}

static void mix_psk(struct chempi_noise *n)
{
    uint8_t hash[HASH];
    uint8_t key[HASH];

    derive(n->chain, n->psk, KEY, n->chain, hash, key);
    mix_hash(n, hash, HASH);
    set_key(n, key);
    sodium_memzero(hash, sizeof(hash));
    sodium_memzero(key, sizeof(key));
}

static size_t tag_bytes(const struct chempi_noise *n)
{
    return n->cipher.has_key ? TAG : 0;
}

/* Returns the bytes written. */
static size_t put(struct chempi_noise *n, const void *data, size_t len,
                  uint8_t *out)
{
    const size_t total = len + tag_bytes(n);

    if (n->cipher.has_key) {
        (void)seal(&n->cipher, n->hash, HASH, data, len, out); /* few */
        count_up(&n->cipher, false);
    } else if (len) {
        memcpy(out, data, len);
    }
    mix_hash(n, out, total);
    return total;
}

/* len is that of the plain text. */
static int get(struct chempi_noise *n, const uint8_t *in, size_t len,
               uint8_t *out)
{
    const size_t total = len + tag_bytes(n);

    if (!n->cipher.has_key) {
        if (len)
            memcpy(out, in, len);
    } else if (unseal(&n->cipher, n->hash, HASH, in, total, out)) {
        return -EACCES;
    } else {
        count_up(&n->cipher, false);
    }
    mix_hash(n, in, total);
    return 0;
}

/* ---- handshake (5.3) ----------------------------------------------------- */

int chempi_noise_make_pair(struct chempi_noise_pair *pair)
{
    if (sodium_init() < 0)
        return -EIO;
    randombytes_buf(pair->secret, KEY);
    chempi_noise_find_public(pair);
    return 0;
}

void chempi_noise_find_public(struct chempi_noise_pair *pair)
{
    (void)crypto_scalarmult_base(pair->public, pair->secret); /* never fails */
}

int chempi_noise_init(struct chempi_noise *n, bool is_initiator,
                      enum chempi_noise_psk place,
                      const struct chempi_noise_pair *own,
                      const uint8_t psk[CHEMPI_NOISE_KEY_BYTES],
                      const void *prologue, size_t prologue_len)
{
    const char *name = place == CHEMPI_NOISE_PSK0 ? psk0_name : psk3_name;

    if (sodium_init() < 0)
        return -EIO;
    memset(n, 0, sizeof(*n));
    n->is_initiator = is_initiator;
    n->psk_place = (uint8_t)place;
    n->own = own;
    n->psk = psk;
    memcpy(n->hash, name, strlen(name));
    memcpy(n->chain, n->hash, HASH);
    mix_hash(n, prologue, prologue_len);
    return 0;
}

static void forget(struct chempi_noise *n)
{
    n->psk = NULL;
    n->own = NULL;
    sodium_memzero(&n->cipher, sizeof(n->cipher));
    sodium_memzero(n->chain, sizeof(n->chain));
    sodium_memzero(&n->fresh, sizeof(n->fresh));
}

void chempi_noise_fini(struct chempi_noise *n)
{
    forget(n);
    n->is_spent = true;
}

static int refuse(struct chempi_noise *n, int code)
{
    chempi_noise_fini(n); /* Z2 */
    return code;
}

bool chempi_noise_is_writer(const struct chempi_noise *n)
{
    return (n->message % 2 == 0) == n->is_initiator;
}

static const enum token *tokens_of(const struct chempi_noise *n)
{
    return n->psk_place == CHEMPI_NOISE_PSK0 ? psk0[n->message]
                                             : psk3[n->message];
}

size_t chempi_noise_overhead(const struct chempi_noise *n)
{
    bool has_key = n->cipher.has_key;
    size_t len = 0;

    if (n->message >= CHEMPI_NOISE_MESSAGES)
        return 0;
    for (const enum token *t = tokens_of(n); *t != END; t++) {
        if (*t == E)
            len += KEY;
        else if (*t == S)
            len += KEY + (has_key ? TAG : 0);
        has_key = has_key || *t != S; /* E too: 9.2, there is a psk */
    }
    return len + (has_key ? TAG : 0);
}

/* One of the DH tokens. */
static int mix_dh(struct chempi_noise *n, enum token t)
{
    const bool own_fresh = t == EE || (t == ES) == n->is_initiator;
    const bool peer_fresh = t == EE || (t == SE) == n->is_initiator;
    uint8_t shared[KEY];

    if (crypto_scalarmult(shared, own_fresh ? n->fresh.secret : n->own->secret,
                          peer_fresh ? n->peer_fresh : n->peer))
        return -EACCES; /* of low order: it gives nothing away, nor proves */
    mix_key(n, shared, sizeof(shared));
    sodium_memzero(shared, sizeof(shared));
    return 0;
}

/* The tokens that are alike for both sides. */
static int mix(struct chempi_noise *n, enum token t)
{
    if (t != PSK)
        return mix_dh(n, t);
    mix_psk(n);
    return 0;
}

static void mix_fresh(struct chempi_noise *n, const uint8_t *public)
{
    mix_hash(n, public, KEY);
    mix_key(n, public, KEY); /* 9.2 */
}

int chempi_noise_write(struct chempi_noise *n, const void *payload, size_t len,
                       uint8_t *out)
{
    const enum token *t;
    int rc = 0;

    if (n->is_spent || n->message >= CHEMPI_NOISE_MESSAGES ||
        !chempi_noise_is_writer(n))
        return refuse(n, -EPROTO);
    if (!n->has_pair)
        (void)chempi_noise_make_pair(&n->fresh); /* libsodium has started */
    n->has_pair = true;
    for (t = tokens_of(n); *t != END && !rc; t++) {
        if (*t == E) {
            memcpy(out, n->fresh.public, KEY);
            out += KEY;
            mix_fresh(n, n->fresh.public);
        } else if (*t == S) {
            out += put(n, n->own->public, KEY, out);
        } else {
            rc = mix(n, *t);
        }
    }
    if (rc)
        return refuse(n, rc);
    (void)put(n, payload, len, out);
    n->message++;
    return 0;
}

int chempi_noise_read(struct chempi_noise *n, const uint8_t *in, size_t len,
                      uint8_t *payload)
{
    const size_t overhead = chempi_noise_overhead(n);
    const enum token *t;
    int rc = 0;

    if (n->is_spent || !overhead || chempi_noise_is_writer(n) || len < overhead)
        return refuse(n, -EPROTO);
    for (t = tokens_of(n); *t != END && !rc; t++) {
        if (*t == E) {
            memcpy(n->peer_fresh, in, KEY);
            in += KEY;
            mix_fresh(n, n->peer_fresh);
        } else if (*t == S) {
            const size_t tag = tag_bytes(n);

            rc = get(n, in, KEY, n->peer);
            in += KEY + tag;
        } else {
            rc = mix(n, *t);
        }
    }
    rc = rc ? rc : get(n, in, len - overhead, payload); /* Z3 */
    if (rc)
        return refuse(n, rc);
    n->message++;
    return 0;
}

int chempi_noise_split(struct chempi_noise *n, struct chempi_noise_cipher *tx,
                       struct chempi_noise_cipher *rx)
{
    uint8_t a[HASH];
    uint8_t b[HASH];

    if (n->is_spent || n->message < CHEMPI_NOISE_MESSAGES)
        return -EPROTO;
    derive(n->chain, NULL, 0, a, b, NULL);
    *tx = (struct chempi_noise_cipher){.has_key = true};
    *rx = (struct chempi_noise_cipher){.has_key = true};
    memcpy(tx->key, n->is_initiator ? a : b, KEY);
    memcpy(rx->key, n->is_initiator ? b : a, KEY);
    sodium_memzero(a, sizeof(a));
    sodium_memzero(b, sizeof(b));
    chempi_noise_fini(n);
    return 0;
}
