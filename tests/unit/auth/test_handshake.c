/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of daemons: keys of which one is replaced, keys that are not
 * trusted, and peers that speak something else. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/auth/handshake.h"

static struct chempi_keys caller_keys, called_keys;
static struct chempi_handshake caller, called;

struct message {
    uint8_t data[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t len;
};

static void set_up(void)
{
    memset(&caller_keys, 0, sizeof(caller_keys));
    memset(&called_keys, 0, sizeof(called_keys));
    caller_keys.cluster_count = called_keys.cluster_count = 1;
    cr_assert_eq(chempi_noise_make_pair(&caller_keys.node), 0);
    cr_assert_eq(chempi_noise_make_pair(&called_keys.node), 0);
}

static void tear_down(void)
{
    chempi_handshake_fini(&caller);
    chempi_handshake_fini(&called);
}

TestSuite(handshake, .init = set_up, .fini = tear_down);

static int refuse_all(void *arg, const uint8_t *key, struct chempi_err *err)
{
    cr_assert_eq(memcmp(key, arg, CHEMPI_NOISE_KEY_BYTES), 0);
    return chempi_err_set(err, -EACCES, "its key is revoked");
}

static void start(chempi_handshake_trust_fn *caller_trust,
                  chempi_handshake_trust_fn *called_trust, const char *purpose)
{
    cr_assert_eq(chempi_handshake_init(&caller, true, &caller_keys, "test", 4,
                                       caller_trust, called_keys.node.public),
                 0);
    cr_assert_eq(chempi_handshake_init(&called, false, &called_keys, purpose,
                                       strlen(purpose), called_trust,
                                       caller_keys.node.public),
                 0);
}

static int step(struct chempi_handshake *hs, const struct message *in,
                struct message *out, struct chempi_err *err)
{
    return chempi_handshake_step(hs, in->data, in->len, out->data, &out->len,
                                 err);
}

/* As far as it goes: the last answer, of who refused or of the called one. */
static int talk(struct chempi_err *err)
{
    struct message none = {.len = 0}, first, second, third;
    int rc = step(&caller, &none, &first, err);

    cr_assert_eq(rc, 0);
    cr_assert_eq(first.len, chempi_handshake_need(&called));
    rc = step(&called, &first, &second, err);
    if (rc)
        return rc;
    cr_assert_eq(second.len, chempi_handshake_need(&caller));
    rc = step(&caller, &second, &third, err);
    if (rc < 0) {
        cr_assert_eq(third.len, 0, "something went to who is not trusted");
        return rc;
    }
    cr_assert_eq(rc, 1);
    cr_assert_eq(third.len, chempi_handshake_need(&called));
    return step(&called, &third, &none, err);
}

Test(handshake, both_sides_know_each_others_key_and_one_hash)
{
    struct chempi_noise_cipher a, b, c, d;

    start(NULL, NULL, "test");
    cr_assert_eq(talk(NULL), 1);
    cr_assert_eq(memcmp(chempi_handshake_peer(&caller), called_keys.node.public,
                        CHEMPI_NOISE_KEY_BYTES),
                 0);
    cr_assert_eq(memcmp(chempi_handshake_peer(&called), caller_keys.node.public,
                        CHEMPI_NOISE_KEY_BYTES),
                 0);
    cr_assert_eq(memcmp(chempi_handshake_hash(&caller),
                        chempi_handshake_hash(&called),
                        CHEMPI_NOISE_HASH_BYTES),
                 0);
    cr_assert_eq(chempi_handshake_split(&caller, &a, &b), 0);
    cr_assert_eq(chempi_handshake_split(&called, &c, &d), 0);
    cr_assert_eq(memcmp(a.key, d.key, sizeof(a.key)), 0);
    cr_assert_eq(memcmp(b.key, c.key, sizeof(b.key)), 0);
    cr_assert_neq(memcmp(a.key, b.key, sizeof(a.key)), 0);
    cr_assert_eq(chempi_handshake_need(&caller), 0);
}

Test(handshake, who_is_called_takes_any_of_its_keys)
{
    for (uint32_t i = 0; i < CHEMPI_KEYS_MAX; i++)
        called_keys.cluster[i][0] = (uint8_t)(i + 1);
    called_keys.cluster_count = CHEMPI_KEYS_MAX;
    for (uint32_t i = 0; i < CHEMPI_KEYS_MAX; i++) {
        caller_keys.cluster[0][0] = (uint8_t)(i + 1);
        start(NULL, NULL, "test");
        cr_assert_eq(talk(NULL), 1, "key %u", i);
    }
    caller_keys.cluster[0][0] = CHEMPI_KEYS_MAX + 1;
    start(NULL, NULL, "test");
    cr_assert_eq(talk(NULL), -EACCES);
}

Test(handshake, another_purpose_is_another_handshake)
{
    start(NULL, NULL, "tesT");
    cr_assert_eq(talk(NULL), -EACCES);
    start(NULL, NULL, "test of a purpose that is longer than what is kept");
    cr_assert_eq(talk(NULL), -EACCES);
}

/* Its start is not all that counts. */
Test(handshake, long_purposes_are_told_apart)
{
    char one[2 * CHEMPI_HANDSHAKE_CONTEXT];
    char other[sizeof(one)];

    memset(one, 'x', sizeof(one));
    memset(other, 'x', sizeof(other));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(chempi_handshake_init(&caller, true, &caller_keys, one,
                                           sizeof(one), NULL, NULL),
                     0);
        cr_assert_eq(chempi_handshake_init(&called, false, &called_keys, other,
                                           sizeof(other), NULL, NULL),
                     0);
        cr_assert_eq(talk(NULL), i ? -EACCES : 1);
        other[sizeof(other) - 1] = 'y';
    }
}

Test(handshake, a_key_that_is_not_trusted_ends_it_on_either_side)
{
    struct chempi_noise_cipher tx, rx;
    struct chempi_err err;

    start(refuse_all, NULL, "test");
    cr_assert_eq(talk(&err), -EACCES);
    cr_assert(strstr(err.text, "revoked"));
    start(NULL, refuse_all, "test");
    cr_assert_eq(talk(&err), -EACCES);
    cr_assert(strstr(err.text, "revoked"));
    cr_assert_eq(chempi_handshake_need(&called), 0);
    cr_assert_eq(chempi_handshake_split(&called, &tx, &rx), -EPROTO); /* A4 */
}

Test(handshake, other_protocols_and_lengths_are_refused)
{
    struct message in = {.len = 0}, out;
    struct chempi_err err;

    start(NULL, NULL, "test");
    in.len = chempi_handshake_need(&called);
    memset(in.data, 'x', in.len);
    cr_assert_eq(step(&called, &in, &out, &err), -EPROTO);
    cr_assert_eq(out.len, 0);
    cr_assert(strstr(err.text, "does not speak CHEMPI"));
    start(NULL, NULL, "test");
    in.len = chempi_handshake_need(&called) - 1;
    cr_assert_eq(step(&called, &in, &out, NULL), -EPROTO);
    cr_assert_eq(step(&called, &in, &out, NULL), -EPROTO);
    start(NULL, NULL, "test");
    memcpy(in.data, "CHEMPIn1", 8);
    in.len = chempi_handshake_need(&called) - 1;
    cr_assert_eq(step(&called, &in, &out, &err), -EPROTO);
    cr_assert(strstr(err.text, "length"));
}

Test(handshake, without_a_cluster_key_there_is_none)
{
    caller_keys.cluster_count = 0;
    cr_assert_eq(chempi_handshake_init(&caller, true, &caller_keys, "test", 4,
                                       NULL, NULL),
                 -EINVAL);
}
