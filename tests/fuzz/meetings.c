/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What roots of other worlds tell of themselves, and what becomes of it: the
 * first byte chooses whether the rest is a roll as it has come, or a sequence
 * of meetings, several at a time, with processes of a few worlds: prepared,
 * dropped, taken in, agreed. Members are signed for; a change afterwards must
 * be noticed.
 */
#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/proc/roll.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/didl/transport/worlds/vouch.h"
#include "tests/fuzz/target.h"

enum {
    RANKS = 3,
    PROCS = 4,
    SELF = 1,
    WORLDS = 4, /* 0: the own one */
    MEMBERS = 6,
    MEETINGS = 4, /* at a time */
    QUOTA = 1 << 20,
    CONTEXT = 1 << 30 /* CHEMPI_CONTEXT_OPEN: a first seed without is refused */
};

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t secrets[WORLDS][CHEMPI_JOB_SECRET_BYTES];
static struct chempi_bond *pending[MEETINGS];
static struct chempi_bond *taken; /* last */
static uint8_t next_secret;

static unsigned next(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

static unsigned next_two(struct input *in)
{
    const unsigned high = next(in);

    return high << 8 | next(in);
}

static void expect(bool is_so)
{
    if (!is_so)
        abort();
}

static void start(void)
{
    static const uint32_t node_of_proc[PROCS] = {0, 0, 1, 1};
    static const char *const node_names[] = {"a", "b"};
    struct chempi_services *s = &chempi_ctx.services;

    for (uint8_t i = 0; i < WORLDS; i++)
        secrets[i][0] = (uint8_t)(i + 1);
    s->job_id = "job";
    s->secret = secrets[0];
    s->proc = SELF;
    s->proc_count = PROCS;
    s->rank_count = RANKS;
    s->node_count = 2;
    s->node_of_proc = node_of_proc;
    s->local_rank_of_proc = node_of_proc;
    s->node_names = node_names;
}

/* As a process of that world does, whose name its key gives. */
static void sign(struct chempi_introduction *member, unsigned world,
                 const struct chempi_vouch_use *use)
{
    chempi_ctx.services.secret = secrets[world];
    chempi_vouch_sign(member, use); /* for the key */
    (void)crypto_generichash((uint8_t *)member->name.world,
                             sizeof(member->name.world), member->key,
                             sizeof(member->key), NULL, 0);
    chempi_vouch_sign(member, use);
    chempi_ctx.services.secret = secrets[0];
}

static void introduce(struct chempi_introduction *out, struct input *in,
                      const struct chempi_vouch_use *use)
{
    const unsigned world = next(in) % WORLDS;
    const unsigned odd = next(in); /* mostly nothing */

    memset(out, 0, sizeof(*out));
    out->name.rank = next(in) % (RANKS + 1);
    (void)snprintf(out->node, sizeof(out->node), "n%u", next(in) % 3);
    out->eager_quota = QUOTA;
    out->sysmsg_quota = QUOTA;
    out->card_len = 4;
    if (odd >= 0xf0) {
        const size_t at = (size_t)next(in) << 4 | odd % 16;

        if (at < offsetof(struct chempi_introduction, key))
            ((uint8_t *)out)[at] = (uint8_t)next(in);
    }
    sign(out, world, use);
}

/* The own side is this process. */
static void meet(struct input *in, struct chempi_bond **out)
{
    const unsigned count = 1 + next(in) % MEMBERS;
    const unsigned change = next(in);
    const size_t at = next_two(in);
    struct chempi_vouch_use use = {.context = CONTEXT, .count = count};
    struct chempi_introduction members[1 + MEMBERS];
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES] = {next_secret++};
    const char *broken;
    bool is_good;

    memset(members, 0, sizeof(members[0]));
    chempi_vouch_name(members[0].name.world);
    members[0].name.rank = SELF;
    members[0].node[0] = 'a';
    members[0].eager_quota = QUOTA;
    members[0].sysmsg_quota = QUOTA;
    for (use.number = 0; use.number < count; use.number++)
        introduce(&members[1 + use.number], in, &use);
    use.number = 0;
    expect(chempi_roll_verify(members + 1, use, NULL) == 0);
    if (change >= 0xe0 && at < count * sizeof(members[0]) &&
        at % sizeof(members[0]) <
            offsetof(struct chempi_introduction, signature) +
                CHEMPI_FOREIGN_SIGNATURE_BYTES) {
        ((uint8_t *)(members + 1))[at] ^= (uint8_t)(1u << change % 8);
        is_good = chempi_roll_verify(members + 1, use, NULL) == 0;
        expect(!is_good);
        return;
    }
    if (*out)
        chempi_foreign_drop(*out);
    *out = NULL;
    (void)chempi_foreign_prepare(secret, members, 1 + count, out, NULL);
    broken = chempi_foreign_check();
    expect(!broken);
}

static void take_in(struct chempi_bond **bond)
{
    if (!*bond)
        return;
    chempi_foreign_take_in(*bond);
    expect(chempi_foreign_bonds()->find((*bond)->name) == *bond);
    taken = *bond;
    *bond = NULL;
}

static void be_met(struct input *in)
{
    while (in->left) {
        const unsigned what = next(in);
        struct chempi_bond **bond = &pending[what / 4 % MEETINGS];

        if (what % 4 == 0) {
            meet(in, bond);
        } else if (what % 4 == 1) {
            take_in(bond);
        } else if (what % 4 == 2 && taken) {
            chempi_foreign_agree(taken);
        } else if (what % 4 == 3) {
            chempi_foreign_drop(*bond);
            *bond = NULL;
        }
        expect(chempi_foreign_check() == NULL);
    }
    for (int i = 0; i < MEETINGS; i++) {
        chempi_foreign_drop(pending[i]);
        pending[i] = NULL;
    }
    taken = NULL;
    chempi_foreign_fini();
}

/* It is in memory of its own length. */
static void be_told(const uint8_t *data, size_t size, bool has_boxes)
{
    struct chempi_roll *roll = malloc(size ? size : 1);
    struct chempi_vouch_use use = {.is_first = 1};
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES];

    expect(roll != NULL);
    memcpy(roll, data, size);
    if (chempi_roll_check(roll, size, has_boxes, NULL) == 0) {
        use.context = roll->context;
        use.count = roll->count;
        (void)chempi_roll_compare(roll, NULL);
        (void)chempi_roll_verify(chempi_roll_members(roll), use, NULL);
        if (has_boxes)
            (void)chempi_roll_open(roll, size, secret, NULL);
    }
    free(roll);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.at = data, .left = size};
    unsigned what;

    if (!chempi_ctx.services.job_id)
        start();
    what = next(&in);
    if (what % 3 < 2)
        be_told(in.at, in.left, what % 3 == 1);
    else
        be_met(&in);
    return 0;
}

/* A roll, one with its boxes, and two meetings of which one fails. */
size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    static const uint8_t
        meetings[] = {2, 0, 1, 0, 0, 0, 1, 0,
                      0, 0, 2, 0, 1, 1, /* two members of two worlds */
                      4, 0, 0, 0, 0, 1, 0, 0,
                      0, 1, 2, 7, 0, 0, 0, /* take in, agree, drop */
                      0, 0, 1, 0, 2, 2, 1, 2};
    const struct chempi_vouch_use use = {
        .is_first = 1, .context = CONTEXT, .count = 1};
    struct chempi_introduction member;
    struct chempi_roll *mine;
    struct chempi_roll *theirs;
    size_t len = chempi_roll_len(1);

    if (i > 2)
        return 0;
    out[0] = (uint8_t)i;
    if (i == 2) {
        memcpy(out, meetings, sizeof(meetings));
        return sizeof(meetings);
    }
    start();
    memset(&member, 0, sizeof(member));
    sign(&member, 0, &use);
    mine = chempi_roll_make(&member, 1, 0, CONTEXT);
    theirs = chempi_roll_make(&member, 1, 0, CONTEXT);
    expect(mine && theirs);
    if (i == 1)
        expect(chempi_roll_add_boxes(&theirs, &len, mine, &member, &use,
                                     NULL) == 0);
    memcpy(out + 1, theirs, len);
    free(mine);
    free(theirs);
    return 1 + len;
}
