/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of worlds; see vouch.h. */
#include "libchempi/didl/transport/worlds/vouch.h"

#include <pthread.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"

_Static_assert(CHEMPI_FOREIGN_KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "key");
_Static_assert(CHEMPI_FOREIGN_SIGNATURE_BYTES == crypto_sign_BYTES,
               "signature");
_Static_assert(CHEMPI_VOUCH_BOX_BYTES ==
                   CHEMPI_BOND_SECRET_BYTES + crypto_box_SEALBYTES,
               "box");
_Static_assert(sizeof(struct chempi_vouch_use) ==
                   CHEMPI_VOUCH_MEETING_BYTES + 4 * sizeof(uint32_t),
               "no padding is signed");

/* What a signature is for begins with it, the zero included. */
static const char purpose[] = "chempi: introduction of a process 1";

struct pair {
    uint8_t public[crypto_sign_PUBLICKEYBYTES];
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
};

static struct {
    pthread_once_t once;
    uint8_t random[crypto_sign_SEEDBYTES]; /* of whom nobody launched */
    uint64_t world[2];
} own = {.once = PTHREAD_ONCE_INIT};

/* Nobody has told a process that nobody launched a secret. */
static const uint8_t *job_secret(void)
{
    const struct chempi_services *s = &chempi_ctx.services;
    /* Gateways of a secure job know the other one. */
    const uint8_t *secret = s->rank_key ? s->rank_key : s->secret;

    return secret && !sodium_is_zero(secret, CHEMPI_JOB_SECRET_BYTES) ? secret
                                                                      : NULL;
}

/* It is to be wiped. */
static void make_pair(struct pair *out)
{
    static const char what[] = "chempi: key of a world";
    const char *job_id = chempi_ctx.services.job_id;
    const uint8_t *secret = job_secret();
    uint8_t seed[crypto_sign_SEEDBYTES];
    crypto_generichash_state hash;

    memcpy(seed, own.random, sizeof(seed));
    if (secret) {
        (void)crypto_generichash_init(&hash, secret, CHEMPI_JOB_SECRET_BYTES,
                                      sizeof(seed));
        (void)crypto_generichash_update(&hash, (const uint8_t *)what,
                                        sizeof(what));
        (void)crypto_generichash_update(&hash, (const uint8_t *)job_id,
                                        strlen(job_id));
        (void)crypto_generichash_final(&hash, seed, sizeof(seed));
        sodium_memzero(&hash, sizeof(hash));
    }
    (void)crypto_sign_seed_keypair(out->public, out->secret, seed);
    sodium_memzero(seed, sizeof(seed));
}

static void name_of(const uint8_t key[CHEMPI_FOREIGN_KEY_BYTES],
                    uint64_t world[2])
{
    (void)crypto_generichash((uint8_t *)world, 2 * sizeof(*world), key,
                             CHEMPI_FOREIGN_KEY_BYTES, NULL, 0);
}

static void name_own_world(void)
{
    struct pair pair;

    if (sodium_init() < 0)
        return; /* no handshake works either: nobody is met */
    randombytes_buf(own.random, sizeof(own.random));
    make_pair(&pair);
    name_of(pair.public, own.world);
    sodium_memzero(&pair, sizeof(pair));
}

static void get_pair(struct pair *out)
{
    (void)pthread_once(&own.once, name_own_world);
    make_pair(out);
}

void chempi_vouch_name(uint64_t world[2])
{
    (void)pthread_once(&own.once, name_own_world);
    memcpy(world, own.world, sizeof(own.world));
}

/* ---- signatures ---- */

struct message {
    char purpose[sizeof(purpose)];
    struct chempi_vouch_use use;
    uint8_t told[offsetof(struct chempi_introduction, signature)];
};

/* All its bytes are set. */
static void compose(struct message *out, const struct chempi_introduction *in,
                    const struct chempi_vouch_use *use)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->purpose, purpose, sizeof(purpose));
    out->use = *use;
    memcpy(out->told, in, sizeof(out->told));
}

void chempi_vouch_sign(struct chempi_introduction *in,
                       const struct chempi_vouch_use *use)
{
    struct message message;
    struct pair pair;

    get_pair(&pair);
    memcpy(in->key, pair.public, sizeof(in->key));
    compose(&message, in, use);
    (void)crypto_sign_detached(in->signature, NULL, (const uint8_t *)&message,
                               sizeof(message), pair.secret);
    sodium_memzero(&pair, sizeof(pair));
}

bool chempi_vouch_check(const struct chempi_introduction *in,
                        const struct chempi_vouch_use *use)
{
    struct message message;
    uint64_t world[2];

    name_of(in->key, world);
    if (memcmp(world, in->name.world, sizeof(world)) != 0)
        return false;
    compose(&message, in, use);
    return crypto_sign_verify_detached(in->signature, (const uint8_t *)&message,
                                       sizeof(message), in->key) == 0;
}

/* ---- secrets ---- */

bool chempi_vouch_seal(const uint8_t key[CHEMPI_FOREIGN_KEY_BYTES],
                       const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                       uint8_t box[CHEMPI_VOUCH_BOX_BYTES])
{
    uint8_t public[crypto_box_PUBLICKEYBYTES];

    return crypto_sign_ed25519_pk_to_curve25519(public, key) == 0 &&
           crypto_box_seal(box, secret, CHEMPI_BOND_SECRET_BYTES, public) == 0;
}

bool chempi_vouch_open(const uint8_t box[CHEMPI_VOUCH_BOX_BYTES],
                       uint8_t secret[CHEMPI_BOND_SECRET_BYTES])
{
    uint8_t public[crypto_box_PUBLICKEYBYTES];
    uint8_t private[crypto_box_SECRETKEYBYTES];
    struct pair pair;
    bool is_good;

    get_pair(&pair);
    is_good = crypto_sign_ed25519_pk_to_curve25519(public, pair.public) == 0 &&
              crypto_sign_ed25519_sk_to_curve25519(private, pair.secret) == 0 &&
              crypto_box_seal_open(secret, box, CHEMPI_VOUCH_BOX_BYTES, public,
                                   private) == 0;
    sodium_memzero(&pair, sizeof(pair));
    sodium_memzero(private, sizeof(private));
    return is_good;
}

bool chempi_vouch_share(const uint8_t key[CHEMPI_FOREIGN_KEY_BYTES],
                        const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                        uint8_t out[CHEMPI_BOND_SECRET_BYTES])
{
    uint8_t public[crypto_scalarmult_BYTES];
    uint8_t private[crypto_scalarmult_SCALARBYTES];
    uint8_t shared[crypto_scalarmult_BYTES];
    crypto_generichash_state hash;
    struct pair pair;
    bool is_good;

    get_pair(&pair);
    is_good = crypto_sign_ed25519_pk_to_curve25519(public, key) == 0 &&
              crypto_sign_ed25519_sk_to_curve25519(private, pair.secret) == 0 &&
              crypto_scalarmult(shared, private, public) == 0;
    if (is_good) {
        const bool is_before =
            memcmp(pair.public, key, sizeof(pair.public)) < 0;

        (void)crypto_generichash_init(&hash, secret, CHEMPI_BOND_SECRET_BYTES,
                                      CHEMPI_BOND_SECRET_BYTES);
        (void)crypto_generichash_update(&hash, shared, sizeof(shared));
        (void)crypto_generichash_update(&hash, is_before ? pair.public : key,
                                        sizeof(pair.public));
        (void)crypto_generichash_update(&hash, is_before ? key : pair.public,
                                        sizeof(pair.public));
        (void)crypto_generichash_final(&hash, out, CHEMPI_BOND_SECRET_BYTES);
        sodium_memzero(&hash, sizeof(hash));
    }
    sodium_memzero(&pair, sizeof(pair));
    sodium_memzero(private, sizeof(private));
    sodium_memzero(shared, sizeof(shared));
    return is_good;
}
