/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Noise handshake and its ciphers: published vectors, and what becomes of
 * messages that are replayed, reflected, cut, reordered or changed.
 *
 * Published vectors are cacophony's for XXpsk3, and those of flynn/noise
 * (vectors.txt, the fourth of Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b) for
 * XXpsk0. The other one of XXpsk0 comes from tests/noise.py, which is written
 * from the specification and gives the one of XXpsk3, too.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "common/auth/noise.h"

#define MSG_MAX 512u

static size_t unhex(const char *text, uint8_t *out)
{
    size_t len;

    cr_assert_eq(
        sodium_hex2bin(out, MSG_MAX, text, strlen(text), NULL, &len, NULL), 0);
    return len;
}

static void cr_assert_hex(const uint8_t *got, size_t len, const char *wanted)
{
    uint8_t bytes[MSG_MAX];

    cr_assert_eq(unhex(wanted, bytes), len);
    cr_assert_eq(memcmp(bytes, got, len), 0, "not %s", wanted);
}

/* ---- vectors ------------------------------------------------------------- */

#define PSK "54686973206973206d7920417573747269616e20706572737065637469766521"
#define INIT_STATIC                                                            \
    "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1"
#define INIT_FRESH                                                             \
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"
#define RESP_STATIC                                                            \
    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893"
#define RESP_FRESH                                                             \
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"

struct line {
    const char *payload;
    const char *sealed;
};

struct vector {
    enum chempi_noise_psk place;
    const char *prologue;
    const char *psk;
    const char *init[2]; /* static, ephemeral */
    const char *resp[2];
    bool begins; /* the initiator says the first line after the handshake */
    const struct line *lines;
    size_t count;
};

static const struct line xxpsk3[] = {
    {"4c756477696720766f6e204d69736573",
     "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79440aa831d1"
     "e3bbd16bd7ffda87e9f7b6eeca2510006499a573ac27af3392ed1b69"},
    {"4d757272617920526f746862617264",
     "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884381a78489"
     "d56c9e2ac962826f25684980b25244dbfd505b7d903a94d4f4fd84004a1c7fbe94d686bc"
     "4c1f67259364f6f2a41cb40bf5198b9b3975be2cdd49d3e065a554e12c477d82029fabc6"
     "555bc1"},
    {"462e20412e20486179656b",
     "291dfeff6eff386e29adb0bdbd5a1ae9e09de4449c8695d109adcb63e80e489555792a3e"
     "9150eff75d6d45571f824ed231173cb66e31e7da914241f86d0cbb678335ffe768a7445d"
     "2f5bc1"},
    {"4361726c204d656e676572",
     "6579dd60eb5e6a8b29dd60004289f5d3c2f69fcdbf683a869f59a8"},
    {"4a65616e2d426170746973746520536179",
     "24715fd39c3c7606e81b26e69e47b54d043d9d87c512f9417bae51ab48ebb17722"},
    {"457567656e2042f6686d20766f6e2042617765726b",
     "e49194a013d873712318643acbf0e3851086326bb168c500a766439ff543a7a1e2deb321"
     "5c"},
};

#define LINES (sizeof(xxpsk3) / sizeof(xxpsk3[0]))

static const struct line xxpsk0[LINES] = {
    {"4c756477696720766f6e204d69736573",
     "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c2d738b"
     "93f6dfb57225911142f0031178fdd4cd8ef9ea87c09965931e0a5529"},
    {"4d757272617920526f746862617264",
     "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843e8616c14"
     "a793e76a91cc06f564a19c7240b08c696d09ddf959d34a7d62c339e91d24472cd4dd2303"
     "5cb3859c80fd82bc0b70f5965867ca5b0c3b15d54d7bccd83819b412421edf5227793d7f"
     "0123c7"},
    {"462e20412e20486179656b",
     "c158ca19348beec11db0df21bed7f683cddba0caafe37b462f7f0980e797d581c94c8a78"
     "274e5460f3b652d845a4eaa7c55dd90e4044e47c3861d45b52dda4834f7df50155457790"
     "1a00c9"},
    {"4361726c204d656e676572",
     "314b2a92233932ced0c045bda2330e70a97abdefc77dff11a98c6c"},
    {"4a65616e2d426170746973746520536179",
     "5fe002b9348d1db4abafd453e62209201d2b5d667171a3ed819ed1fdb9fd7d4b62"},
    {"457567656e2042f6686d20766f6e2042617765726b",
     "f4400eb2c2c7d0dc8f4bd89354be94e38cf9fa6ecde78257b438efec3e2310c5e980ddc3"
     "ad"},
};

/* flynn/noise, vectors.txt */
static const struct line flynn[] = {
    {"746573745f6d73675f30",
     "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd1662541fe2db7a"
     "97bbe9c0027b1f62071910cfd2266573bb14a7de4342"},
    {"746573745f6d73675f31",
     "64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466def8302a"
     "4ce14b6d8679764f5605d198853b8968688d7432e591c0371dbd9c27c0e397d4a328006c"
     "00af1dc428f95bc55c032641bc1cdaccd5aae41c3d70b1d39ac256cf6c07a7430831"},
    {"746573745f6d73675f32",
     "7ae518aa6a3882fac6b6d6fcd88954cccf404ea1aa2a075d533916de39720ebb1eaeb854"
     "d104e73a1406c7ff4ad6beed519efda7f74013ae060269ba43ed1a294c9c44cff50595ad"
     "1324"},
    {"79656c6c6f777375626d6172696e65",
     "fd0638db68611323934a1dc1c26175ddc9abfbf887629ce59b4303156bcaa1"},
    {"7375626d6172696e6579656c6c6f77",
     "3d9c9f74481ef29d381234288ecb1d26afa997692fff8407cbf6da726a5725"},
};

static const struct vector of_psk3 = {
    CHEMPI_NOISE_PSK3,         "John Galt", PSK,    {INIT_STATIC, INIT_FRESH},
    {RESP_STATIC, RESP_FRESH}, false,       xxpsk3, LINES};
static const struct vector of_psk0 = {
    CHEMPI_NOISE_PSK0,         "John Galt", PSK,    {INIT_STATIC, INIT_FRESH},
    {RESP_STATIC, RESP_FRESH}, false,       xxpsk0, LINES};
static const struct vector of_flynn = {
    CHEMPI_NOISE_PSK0,
    "notsecret",
    "2176657279736563726574766572797365637265747665727973656372657421",
    {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
     "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"},
    {"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
     "4142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60"},
    true,
    flynn,
    sizeof(flynn) / sizeof(flynn[0])};

static void begin(struct chempi_noise *n, bool is_initiator,
                  const struct vector *v)
{
    static struct chempi_noise_pair pairs[2];
    static uint8_t psk[MSG_MAX];
    struct chempi_noise_pair *pair = &pairs[is_initiator];
    const char *const *keys = is_initiator ? v->init : v->resp;

    (void)unhex(keys[0], pair->secret);
    chempi_noise_find_public(pair);
    (void)unhex(v->psk, psk);
    cr_assert_eq(chempi_noise_init(n, is_initiator, v->place, pair, psk,
                                   v->prologue, strlen(v->prologue)),
                 0);
    (void)unhex(keys[1], n->fresh.secret);
    chempi_noise_find_public(&n->fresh);
    n->has_pair = true;
}

/* One side says a line of the vector, the other understands it. */
static void say(struct chempi_noise *from, struct chempi_noise *to,
                const struct line *line)
{
    uint8_t payload[MSG_MAX], msg[MSG_MAX], got[MSG_MAX];
    const size_t len = unhex(line->payload, payload);
    const size_t total = len + chempi_noise_overhead(from);

    cr_assert(chempi_noise_is_writer(from));
    cr_assert_eq(chempi_noise_write(from, payload, len, msg), 0);
    cr_assert_hex(msg, total, line->sealed);
    cr_assert_eq(chempi_noise_read(to, msg, total, got), 0);
    cr_assert_hex(got, len, line->payload);
}

static void ship(struct chempi_noise_cipher *tx, struct chempi_noise_cipher *rx,
                 const struct line *line)
{
    uint8_t payload[MSG_MAX], msg[MSG_MAX], got[MSG_MAX];
    const size_t len = unhex(line->payload, payload);

    cr_assert_eq(chempi_noise_seal(tx, payload, len, msg), 0);
    cr_assert_hex(msg, len + CHEMPI_NOISE_TAG_BYTES, line->sealed);
    cr_assert_eq(chempi_noise_open(rx, msg, len + CHEMPI_NOISE_TAG_BYTES, got),
                 0);
    cr_assert_hex(got, len, line->payload);
}

static void run_vector(const struct vector *v)
{
    const struct line *lines = v->lines;
    struct chempi_noise a, b;
    struct chempi_noise_cipher a_tx, a_rx, b_tx, b_rx;

    begin(&a, true, v);
    begin(&b, false, v);
    say(&a, &b, &lines[0]);
    say(&b, &a, &lines[1]);
    say(&a, &b, &lines[2]);
    cr_assert_eq(memcmp(a.hash, b.hash, sizeof(a.hash)), 0);
    cr_assert_eq(chempi_noise_split(&a, &a_tx, &a_rx), 0);
    cr_assert_eq(chempi_noise_split(&b, &b_tx, &b_rx), 0);
    for (size_t i = 3; i < v->count; i++)
        if ((i % 2 == 0) != v->begins)
            ship(&a_tx, &b_rx, &lines[i]);
        else
            ship(&b_tx, &a_rx, &lines[i]);
}

Test(noise, the_published_vector_of_xxpsk3_comes_out)
{
    run_vector(&of_psk3);
}

Test(noise, the_published_vector_of_xxpsk0_comes_out)
{
    run_vector(&of_flynn);
}

Test(noise, another_vector_of_xxpsk0_comes_out)
{
    run_vector(&of_psk0);
}

/* ---- handshakes that shall fail ------------------------------------------ */

struct message {
    uint8_t data[MSG_MAX];
    size_t len;
};

static void start_pair(struct chempi_noise *a, struct chempi_noise *b)
{
    begin(a, true, &of_psk0);
    begin(b, false, &of_psk0);
}

static void write_one(struct chempi_noise *n, struct message *m)
{
    m->len = chempi_noise_overhead(n);
    cr_assert_eq(chempi_noise_write(n, NULL, 0, m->data), 0);
}

static int read_one(struct chempi_noise *n, const struct message *m)
{
    return chempi_noise_read(n, m->data, m->len, NULL);
}

/* Up to the first message that is missing. */
static void talk(struct chempi_noise *a, struct chempi_noise *b, unsigned count,
                 struct message *last)
{
    start_pair(a, b);
    for (unsigned i = 0; i <= count; i++) {
        write_one(i % 2 ? b : a, last);
        if (i < count)
            cr_assert_eq(read_one(i % 2 ? a : b, last), 0);
    }
}

Test(noise, a_bit_flipped_anywhere_ends_the_handshake)
{
    struct chempi_noise a, b;
    struct message m;

    for (unsigned msg = 0; msg < CHEMPI_NOISE_MESSAGES; msg++) {
        talk(&a, &b, msg, &m);
        for (size_t bit = 0; bit < 8 * m.len; bit++) {
            struct message bad = m;
            struct chempi_noise reader = msg % 2 ? a : b;

            bad.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            /* The last bit of a curve point is ignored by the curve, not by
             * what is hashed. */
            cr_assert_eq(read_one(&reader, &bad), -EACCES, "message %u bit %zu",
                         msg, bit);
            cr_assert_eq(read_one(&reader, &m), -EPROTO, "not spent");
        }
    }
}

Test(noise, a_message_that_is_cut_is_refused)
{
    struct chempi_noise a, b;
    struct message m;

    for (unsigned msg = 0; msg < CHEMPI_NOISE_MESSAGES; msg++) {
        talk(&a, &b, msg, &m);
        for (size_t len = 0; len < m.len; len++) {
            struct chempi_noise reader = msg % 2 ? a : b;

            cr_assert_lt(chempi_noise_read(&reader, m.data, len, NULL), 0);
        }
    }
}

Test(noise, another_pre_shared_key_is_refused_by_the_first_message)
{
    struct chempi_noise a, b;
    struct message m;

    start_pair(&a, &b);
    b.psk = b.own->public;
    write_one(&a, &m);
    cr_assert_eq(read_one(&b, &m), -EACCES);
    cr_assert_eq(chempi_noise_write(&b, NULL, 0, m.data), -EPROTO);
}

Test(noise, another_prologue_is_refused)
{
    struct chempi_noise a, b;
    struct message m;

    start_pair(&a, &b);
    b.hash[0] ^= 1; /* what the prologue has made of it */
    write_one(&a, &m);
    cr_assert_eq(read_one(&b, &m), -EACCES);
}

Test(noise, messages_sent_back_or_sent_again_are_refused)
{
    struct chempi_noise a, b;
    struct message first, second, third;
    struct vector other;

    start_pair(&a, &b);
    write_one(&a, &first);
    cr_assert_eq(read_one(&b, &first), 0);
    write_one(&b, &second);
    cr_assert_lt(read_one(&b, &second), 0, "its own message");

    start_pair(&a, &b);
    write_one(&a, &first);
    cr_assert_lt(read_one(&a, &first), 0, "its own message");

    talk(&a, &b, 2, &third);
    cr_assert_eq(read_one(&b, &third), 0);
    /* To another responder, with the first message of before. */
    other = of_psk0;
    other.resp[1] = INIT_STATIC; /* another ephemeral key */
    begin(&b, false, &other);
    cr_assert_eq(read_one(&b, &first), 0, "a replay is only known at the end");
    write_one(&b, &second);
    cr_assert_eq(read_one(&b, &third), -EACCES);
}

Test(noise, a_key_of_low_order_is_refused)
{
    struct chempi_noise a, b;
    struct message m;

    start_pair(&a, &b);
    memset(a.fresh.public, 0, sizeof(a.fresh.public));
    write_one(&a, &m);
    cr_assert_eq(read_one(&b, &m), 0); /* it knows the pre-shared key */
    m.len = chempi_noise_overhead(&b);
    cr_assert_eq(chempi_noise_write(&b, NULL, 0, m.data), -EACCES);
}

Test(noise, no_key_is_left_after_an_error_or_the_end)
{
    struct chempi_noise_cipher tx, rx;
    struct chempi_noise a, b;
    struct message m;
    static const uint8_t zeros[CHEMPI_NOISE_KEY_BYTES];

    talk(&a, &b, 2, &m);
    m.data[0] ^= 1;
    cr_assert_eq(read_one(&b, &m), -EACCES);
    cr_assert_eq(chempi_noise_split(&a, &tx, &rx), 0);
    for (int i = 0; i < 2; i++) {
        const struct chempi_noise *n = i ? &a : &b;

        cr_assert_null(n->psk);
        cr_assert_null(n->own);
        cr_assert_eq(memcmp(n->fresh.secret, zeros, sizeof(zeros)), 0);
        cr_assert_eq(memcmp(n->cipher.key, zeros, sizeof(zeros)), 0);
        cr_assert_eq(memcmp(n->chain, zeros, sizeof(zeros)), 0);
    }
    cr_assert_eq(chempi_noise_split(&a, &tx, &rx), -EPROTO);
    cr_assert_eq(chempi_noise_split(&b, &tx, &rx), -EPROTO);
}

/* ---- ciphers ------------------------------------------------------------- */

static void make_ciphers(struct chempi_noise_cipher *tx,
                         struct chempi_noise_cipher *rx)
{
    *tx = (struct chempi_noise_cipher){.has_key = true, .key = {1, 2, 3}};
    *rx = *tx;
}

static void seal_text(struct chempi_noise_cipher *tx, const char *text,
                      struct message *m)
{
    m->len = strlen(text) + CHEMPI_NOISE_TAG_BYTES;
    cr_assert_eq(chempi_noise_seal(tx, text, strlen(text), m->data), 0);
}

static int open_it(struct chempi_noise_cipher *rx, const struct message *m)
{
    uint8_t out[MSG_MAX];

    return chempi_noise_open(rx, m->data, m->len, out);
}

Test(noise, what_is_sealed_opens_once_in_its_place_and_as_it_is)
{
    struct chempi_noise_cipher tx, rx;
    struct message one, two;

    make_ciphers(&tx, &rx);
    seal_text(&tx, "one", &one);
    seal_text(&tx, "two", &two);
    cr_assert_eq(open_it(&rx, &two), -EBADMSG, "reordered");
    for (size_t bit = 0; bit < 8 * one.len; bit++) {
        struct message bad = one;

        bad.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_eq(open_it(&rx, &bad), -EBADMSG, "bit %zu", bit);
    }
    for (size_t len = 0; len < one.len; len++) {
        struct message cut = one;

        cut.len = len;
        cr_assert_eq(open_it(&rx, &cut), -EBADMSG, "cut to %zu", len);
    }
    cr_assert_eq(open_it(&rx, &one), 0);
    cr_assert_eq(open_it(&rx, &one), -EBADMSG, "replayed");
    cr_assert_eq(open_it(&rx, &two), 0);
}

Test(noise, nothing_opens_that_one_has_sealed_oneself)
{
    struct chempi_noise_cipher a_tx, a_rx, b_tx, b_rx;
    struct chempi_noise a, b;
    struct message m;

    talk(&a, &b, 2, &m);
    cr_assert_eq(read_one(&b, &m), 0);
    cr_assert_eq(chempi_noise_split(&a, &a_tx, &a_rx), 0);
    cr_assert_eq(chempi_noise_split(&b, &b_tx, &b_rx), 0);
    seal_text(&a_tx, "reflected", &m);
    cr_assert_eq(open_it(&a_rx, &m), -EBADMSG);
    cr_assert_eq(open_it(&b_rx, &m), 0);
}

Test(noise, keys_change_in_time_on_both_sides)
{
    struct chempi_noise_cipher tx, rx;
    uint8_t key[CHEMPI_NOISE_KEY_BYTES];
    struct message m;

    make_ciphers(&tx, &rx);
    tx.count = rx.count = CHEMPI_NOISE_REKEY - 1;
    memcpy(key, tx.key, sizeof(key));
    seal_text(&tx, "the last with this key", &m);
    cr_assert_neq(memcmp(key, tx.key, sizeof(key)), 0);
    cr_assert_eq(open_it(&rx, &m), 0);
    cr_assert_eq(memcmp(rx.key, tx.key, sizeof(key)), 0);
    seal_text(&tx, "the first with the next", &m);
    cr_assert_eq(open_it(&rx, &m), 0);
}

Test(noise, a_cipher_ends_before_a_nonce_comes_again)
{
    struct chempi_noise_cipher tx, rx;
    struct message m;

    make_ciphers(&tx, &rx);
    tx.count = rx.count = UINT64_MAX - 1;
    seal_text(&tx, "x", &m);
    cr_assert_eq(open_it(&rx, &m), 0);
    cr_assert_eq(chempi_noise_seal(&tx, "y", 1, m.data), -EOVERFLOW);
    cr_assert_eq(open_it(&rx, &m), -EOVERFLOW);
}
