/* SPDX-License-Identifier: BSD-3-Clause */
/* What introductions of processes are signed with, and for. */
#include <criterion/criterion.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/vouch.h"

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
