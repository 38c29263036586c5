/* SPDX-License-Identifier: BSD-3-Clause */
/* What introductions of processes are signed with, and for. */
#include <criterion/criterion.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/worlds/vouch.h"

static const uint8_t job_secret[32] = {1, 2, 3};

static void start(void)
{
    chempi_ctx.services.job_id = "job";
    chempi_ctx.services.secret = job_secret;
}

TestSuite(vouch, .init = start);

static const struct chempi_vouch_use use = {
    .meeting = {1, 2}, .is_first = 1, .context = 64, .count = 4, .number = 2};

static struct chempi_introduction introduce(void)
{
    struct chempi_introduction in;

    memset(&in, 0, sizeof(in));
    chempi_vouch_name(in.name.world);
    in.name.rank = 3;
    in.node[0] = 'a';
    chempi_vouch_sign(&in, &use);
    return in;
}

Test(vouch, what_is_signed_is_believed)
{
    const struct chempi_introduction in = introduce();

    cr_assert(chempi_vouch_check(&in, &use));
}

/* Each byte counts; so does what it was signed for. */
Test(vouch, nothing_of_it_can_be_changed)
{
    const struct chempi_introduction in = introduce();

    for (size_t i = 0; i < sizeof(in); i++) {
        struct chempi_introduction other = in;

        ((uint8_t *)&other)[i] ^= 1;
        if (i < offsetof(struct chempi_introduction, signature) +
                    sizeof(in.signature))
            cr_expect_not(chempi_vouch_check(&other, &use), "byte %zu", i);
    }
    for (size_t i = 0; i < sizeof(use); i++) {
        struct chempi_vouch_use other = use;

        ((uint8_t *)&other)[i] ^= 1;
        cr_expect_not(chempi_vouch_check(&in, &other), "byte %zu of its use",
                      i);
    }
}

/* Another world's key signs for that world only. */
Test(vouch, who_has_another_key_has_another_name)
{
    struct chempi_introduction in = introduce();
    uint64_t world[2];
    uint8_t public[crypto_sign_PUBLICKEYBYTES];
    uint8_t private[crypto_sign_SECRETKEYBYTES];

    memcpy(world, in.name.world, sizeof(world));
    cr_assert_eq(crypto_sign_keypair(public, private), 0);
    memcpy(in.key, public, sizeof(in.key));
    cr_assert_not(chempi_vouch_check(&in, &use));
    chempi_vouch_sign(&in, &use);
    cr_assert(chempi_vouch_check(&in, &use));
    in.name.world[0]++;
    chempi_vouch_sign(&in, &use); /* a name that is not its key's */
    cr_assert_not(chempi_vouch_check(&in, &use));
}

static void share(const uint8_t *own, const uint8_t *other, const uint8_t *bond,
                  uint8_t out[CHEMPI_BOND_SECRET_BYTES])
{
    struct chempi_introduction in;

    memset(&in, 0, sizeof(in));
    chempi_ctx.services.secret = other;
    chempi_vouch_sign(&in, &use); /* for its key */
    chempi_ctx.services.secret = own;
    cr_assert(chempi_vouch_share(in.key, bond, out));
}

/* Others in the bond know its secret, and not what two worlds have. */
Test(vouch, two_worlds_share_what_a_third_does_not_know)
{
    static const uint8_t secrets[3][32] = {{1}, {2}, {3}};
    const uint8_t bonds[2][CHEMPI_BOND_SECRET_BYTES] = {{7}, {8}};
    uint8_t a[CHEMPI_BOND_SECRET_BYTES];
    uint8_t b[CHEMPI_BOND_SECRET_BYTES];

    share(secrets[0], secrets[1], bonds[0], a);
    share(secrets[1], secrets[0], bonds[0], b);
    cr_assert_arr_eq(a, b, sizeof(a));
    share(secrets[2], secrets[0], bonds[0], b);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    share(secrets[2], secrets[1], bonds[0], b);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    share(secrets[0], secrets[1], bonds[1], b);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
}

/* In a secure job gateways know the job's secret, and not the key of ranks. */
Test(vouch, a_secure_jobs_key_is_that_of_its_ranks)
{
    static const uint8_t rank_keys[2][32] = {{9}, {10}};
    struct chempi_introduction in[3];

    memset(in, 0, sizeof(in));
    chempi_vouch_sign(&in[0], &use);
    for (int i = 0; i < 2; i++) {
        chempi_ctx.services.rank_key = rank_keys[i];
        chempi_vouch_sign(&in[1 + i], &use);
    }
    cr_assert_neq(memcmp(in[0].key, in[1].key, sizeof(in[0].key)), 0);
    cr_assert_neq(memcmp(in[1].key, in[2].key, sizeof(in[0].key)), 0);
}

Test(vouch, a_world_reads_what_was_sealed_for_it)
{
    const struct chempi_introduction in = introduce();
    const uint8_t secret[CHEMPI_BOND_SECRET_BYTES] = {7, 8};
    uint8_t box[CHEMPI_VOUCH_BOX_BYTES];
    uint8_t got[CHEMPI_BOND_SECRET_BYTES];
    uint8_t public[crypto_sign_PUBLICKEYBYTES];
    uint8_t private[crypto_sign_SECRETKEYBYTES];

    cr_assert(chempi_vouch_seal(in.key, secret, box));
    cr_assert(chempi_vouch_open(box, got));
    cr_assert_arr_eq(got, secret, sizeof(secret));
    box[50] ^= 1;
    cr_assert_not(chempi_vouch_open(box, got));
    cr_assert_eq(crypto_sign_keypair(public, private), 0);
    cr_assert(chempi_vouch_seal(public, secret, box)); /* for another one */
    cr_assert_not(chempi_vouch_open(box, got));
    memset(public, 0xff, sizeof(public));
    cr_assert_not(chempi_vouch_seal(public, secret, box)); /* no key */
}
