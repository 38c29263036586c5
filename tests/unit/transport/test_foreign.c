/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of other worlds: names, indexes and bonds, as seen by rank 1 of a
 * job of three ranks and a gateway on two nodes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum { RANKS = 3, PROCS = 4, SELF = 1 };

static const uint8_t job_secret[32] = {1, 2, 3};
static const uint8_t secrets[2][CHEMPI_BOND_SECRET_BYTES] = {{7}, {8}};
static const uint32_t node_of_proc[PROCS] = {0, 0, 1, 1};
static const uint32_t local_rank_of_proc[PROCS] = {0, 1, 0, 1};
static const char *const node_names[] = {"a", "b"};

static void start(void)
{
    struct chempi_services *s = &chempi_ctx.services;

    s->job_id = "job";
    s->secret = job_secret;
    s->proc = SELF;
    s->proc_count = PROCS;
    s->rank_count = RANKS;
    s->node_count = 2;
    s->node_of_proc = node_of_proc;
    s->local_rank_of_proc = local_rank_of_proc;
    s->node_names = node_names;
    chempi_comm_world.rank = SELF;
}

TestSuite(foreign, .init = start, .fini = chempi_foreign_fini);

enum { QUOTA = 1 << 20 };

static struct chempi_introduction introduce_own(uint32_t rank)
{
    struct chempi_introduction in = {.name = chempi_foreign_name(rank),
                                     .eager_quota = QUOTA,
                                     .sysmsg_quota = QUOTA};

    (void)snprintf(in.node, sizeof(in.node), "%s",
                   node_names[node_of_proc[rank]]);
    return in;
}

/* A meeting that succeeds; of one that is refused all is as before. */
static int bind(const uint8_t *secret,
                const struct chempi_introduction *members, uint32_t count,
                uint32_t *indexes, struct chempi_err *err)
{
    struct chempi_bond *bond;
    int rc = chempi_foreign_prepare(secret, members, count, &bond, err);

    if (rc)
        return rc;
    chempi_foreign_take_in(bond);
    chempi_foreign_agree(bond);
    memcpy(indexes, chempi_foreign_indexes(bond), count * sizeof(*indexes));
    return 0;
}

static struct chempi_introduction introduce(uint64_t world, uint32_t rank,
                                            const char *node)
{
    struct chempi_introduction in = {
        .name = {.world = {world, world}, .rank = rank},
        .eager_quota = QUOTA + rank,
        .sysmsg_quota = QUOTA,
        .card_len = 4,
        .card = {(uint8_t)rank, 1, 2, 3}};

    (void)snprintf(in.node, sizeof(in.node), "%s", node);
    return in;
}

Test(foreign, own_processes_have_their_ranks_for_indexes)
{
    const struct chempi_name name = chempi_foreign_name(2);

    cr_assert_not(chempi_foreign_is(2));
    cr_assert_not(chempi_foreign_is(PROCS));
    cr_assert_eq(name.rank, 2);
    cr_assert_eq(chempi_foreign_find(&name), 2);
    cr_assert_eq(chempi_foreign_node(2), 1);
}

Test(foreign, names_of_a_world_are_in_the_order_of_ranks)
{
    const struct chempi_name name = chempi_foreign_name(0);

    cr_assert_eq(chempi_foreign_compare(&name, &name), 0);
    for (uint32_t r = 0; r + 1 < RANKS; r++) {
        const struct chempi_name a = chempi_foreign_name(r);
        const struct chempi_name b = chempi_foreign_name(r + 1);

        cr_assert(chempi_foreign_compare(&a, &b) < 0);
        cr_assert(chempi_foreign_compare(&b, &a) > 0);
    }
}

/* Own ranks keep their place, others get indexes behind the gateways, in the
 * order in which they are named. */
Test(foreign, a_bond_gives_indexes_and_numbers)
{
    const struct chempi_introduction members[] = {
        introduce_own(SELF), introduce_own(2), introduce(9, 5, "x"),
        introduce(9, 4, "a")};
    const struct chempi_bonds *bonds = chempi_foreign_bonds();
    const struct chempi_bond *bond;
    struct chempi_bond_place place;
    uint32_t indexes[4];
    char words[64];

    cr_assert_eq(bind(secrets[0], members, 4, indexes, NULL), 0);
    cr_assert_eq(indexes[0], SELF);
    cr_assert_eq(indexes[1], 2);
    cr_assert_eq(indexes[2], PROCS);
    cr_assert_eq(indexes[3], PROCS + 1);
    cr_assert(chempi_foreign_is(PROCS) && chempi_foreign_is(PROCS + 1));
    cr_assert_eq(bonds->index_begin, PROCS);
    cr_assert_eq(bonds->index_end(), PROCS + 2);
    cr_assert(bonds->place(PROCS + 1, &place));
    cr_assert_eq(place.number, 3);
    cr_assert_str_eq(place.node, "a");
    cr_assert_eq(place.bond->self, 0);
    cr_assert_eq(place.bond->size, 4);
    cr_assert_not(bonds->place(2, &place));
    cr_assert_not(bonds->place(PROCS + 2, &place));
    bond = bonds->find(place.bond->name);
    cr_assert_eq(bond, place.bond);
    cr_assert_eq(bonds->index(bond, 2), PROCS);
    cr_assert_eq(bonds->index(bond, 0), UINT32_MAX); /* itself */
    cr_assert_eq(bonds->index(bond, 1), UINT32_MAX); /* of the own job */
    cr_assert_eq(bonds->index(bond, 4), UINT32_MAX);
    cr_assert_eq(chempi_foreign_at(PROCS)->card[0], 5);
    cr_assert_eq(chempi_foreign_at(PROCS)->eager_quota, QUOTA + 5);
    chempi_foreign_words(PROCS, words, sizeof(words));
    cr_assert_str_eq(words, "rank 5 of world 00000009 on node x");
}

Test(foreign, who_is_met_again_keeps_the_index_and_the_bond_to_call_by)
{
    const struct chempi_introduction one[] = {introduce_own(SELF),
                                              introduce(9, 5, "x")};
    const struct chempi_introduction two[] = {
        introduce(8, 0, "x"), introduce(9, 5, "x"), introduce_own(SELF)};
    const struct chempi_bonds *bonds = chempi_foreign_bonds();
    struct chempi_bond_place place;
    struct chempi_bond_place place_of_new;
    uint32_t indexes[3];

    cr_assert_eq(bind(secrets[0], one, 2, indexes, NULL), 0);
    cr_assert_eq(bind(secrets[1], two, 3, indexes, NULL), 0);
    cr_assert_eq(indexes[0], PROCS + 1);
    cr_assert_eq(indexes[1], PROCS);
    cr_assert(bonds->place(PROCS, &place));
    cr_assert(bonds->place(PROCS + 1, &place_of_new));
    cr_assert_eq(place.bond->size, 2);
    cr_assert_eq(place_of_new.bond->size, 3);
    /* It may call by either. */
    cr_assert_eq(bonds->index(place_of_new.bond, 1), PROCS);
    /* The same name in two worlds is two nodes. */
    cr_assert_neq(chempi_foreign_node(PROCS), chempi_foreign_node(PROCS + 1));
    cr_assert_geq(chempi_foreign_node(PROCS), 2);
}

static void expect_refused(int rc, const struct chempi_introduction *members,
                           uint32_t count)
{
    uint32_t indexes[4];
    struct chempi_err err = {0};

    cr_expect_eq(bind(secrets[1], members, count, indexes, &err), rc);
    cr_expect_neq(err.text[0], '\0');
    cr_expect_eq(chempi_foreign_bonds()->index_end(), PROCS);
}

Test(foreign, what_cannot_be_is_refused_and_changes_nothing)
{
    struct chempi_introduction members[] = {
        introduce_own(SELF), introduce(9, 5, "x"), introduce(9, 5, "y")};
    const struct chempi_introduction good[] = {members[0],
                                               introduce(7, 1, "x")};
    uint32_t indexes[2];

    expect_refused(-EALREADY, members, 3);   /* twice the same */
    expect_refused(-EPROTO, members + 1, 1); /* without this process */
    members[2] = introduce_own(0);
    members[2].name.rank = RANKS; /* no such rank */
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "");
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x");
    members[2].card_len = CHEMPI_FOREIGN_CARD_MAX + 1;
    expect_refused(-EPROTO, members, 3);
    memset(members[2].node, 'n', sizeof(members[2].node));
    members[2].card_len = 1;
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x\033[2J"); /* an order to a terminal */
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x");
    members[2].survives = 2;
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x");
    members[2].is_secure = 2;
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x");
    members[2].eager_quota = 0; /* nothing would ever leave */
    expect_refused(-EPROTO, members, 3);
    members[2] = introduce(9, 6, "x");
    members[2].sysmsg_quota = (256 << 10) - 1;
    expect_refused(-EPROTO, members, 3);
    cr_assert_eq(bind(secrets[1], good, 2, indexes, NULL), 0);
    cr_assert_eq(indexes[1], PROCS);
}

static struct chempi_bond *
prepare(int secret, const struct chempi_introduction *members, uint32_t count)
{
    struct chempi_bond *bond;
    struct chempi_err err = {0};

    cr_assert_eq(
        chempi_foreign_prepare(secrets[secret], members, count, &bond, &err), 0,
        "%s", err.text);
    return bond;
}

Test(foreign, a_bond_that_comes_to_nothing_leaves_nothing)
{
    const struct chempi_introduction members[] = {introduce_own(SELF),
                                                  introduce(9, 5, "x")};
    const struct chempi_bonds *bonds = chempi_foreign_bonds();
    struct chempi_bond *bond = prepare(0, members, 2);
    uint8_t name[CHEMPI_BOND_NAME_BYTES];

    memcpy(name, bond->name, sizeof(name));
    cr_assert(chempi_foreign_needs(bond));
    cr_assert_eq(chempi_foreign_indexes(bond)[0], SELF);
    cr_assert_eq(chempi_foreign_indexes(bond)[1], UINT32_MAX);
    cr_assert_null(bonds->find(name)); /* who calls now is a stranger */
    cr_assert_eq(bonds->index_end(), PROCS);
    cr_assert_eq(chempi_foreign_find(&members[1].name), UINT32_MAX);
    chempi_foreign_drop(bond);
    chempi_foreign_drop(NULL);
    cr_assert_null(bonds->find(name));
    cr_assert_eq(bonds->index_end(), PROCS);
    bond = prepare(1, members, 2);
    chempi_foreign_take_in(bond);
    cr_assert_eq(chempi_foreign_indexes(bond)[1], PROCS);
    cr_assert_eq(bonds->find(bond->name), bond);
}

/* Two meetings with one process at once: it is called by the bond that both
 * sides have agreed on first, whichever was taken in first. */
Test(foreign, who_is_met_twice_is_called_by_the_bond_that_is_agreed)
{
    const struct chempi_introduction members[] = {
        introduce_own(SELF), introduce(9, 5, "x"), introduce(9, 6, "x")};
    const struct chempi_bonds *bonds = chempi_foreign_bonds();
    struct chempi_bond *one = prepare(0, members, 2);
    struct chempi_bond *two = prepare(1, members, 3);
    struct chempi_bond_place place;

    chempi_foreign_take_in(one);
    chempi_foreign_take_in(two);
    cr_assert_eq(bonds->index_end(), PROCS + 2);
    cr_assert_eq(bonds->index(one, 1), PROCS); /* it is let in by either */
    cr_assert_eq(bonds->index(two, 1), PROCS);
    chempi_foreign_agree(two);
    cr_assert(bonds->place(PROCS, &place));
    cr_assert_eq(place.bond, two);
    chempi_foreign_agree(one);
    cr_assert(bonds->place(PROCS, &place));
    cr_assert_eq(place.bond, two);
    cr_assert_eq(place.number, 1);
}

/* A meeting fails after its bond was taken in here; the next one counts. */
Test(foreign, a_bond_that_was_not_agreed_is_not_called_by)
{
    const struct chempi_introduction members[] = {introduce_own(SELF),
                                                  introduce(9, 5, "x")};
    struct chempi_bond *one = prepare(0, members, 2);
    struct chempi_bond *two;
    struct chempi_bond_place place;

    chempi_foreign_take_in(one);
    two = prepare(1, members, 2);
    cr_assert(chempi_foreign_needs(two));
    chempi_foreign_take_in(two);
    chempi_foreign_agree(two);
    cr_assert(chempi_foreign_bonds()->place(PROCS, &place));
    cr_assert_eq(place.bond, two);
}

Test(foreign, who_can_be_called_already_needs_no_other_bond)
{
    const struct chempi_introduction members[] = {
        introduce_own(SELF), introduce_own(2), introduce(9, 5, "x"),
        introduce(9, 6, "x")};
    struct chempi_bond *bond = prepare(0, members, 3);

    chempi_foreign_take_in(bond);
    chempi_foreign_agree(bond);
    bond = prepare(1, members, 3);
    cr_assert_not(chempi_foreign_needs(bond));
    cr_assert_eq(chempi_foreign_indexes(bond)[2], PROCS);
    chempi_foreign_drop(bond);
    bond = prepare(1, members, 4);
    cr_assert(chempi_foreign_needs(bond));
    chempi_foreign_drop(bond);
}

static void expect_another(struct chempi_introduction other)
{
    const struct chempi_introduction members[] = {introduce_own(SELF), other};
    struct chempi_bond *bond;
    struct chempi_err err = {0};

    cr_expect_eq(chempi_foreign_prepare(secrets[1], members, 2, &bond, &err),
                 -EPROTO);
    cr_expect_str_eq(err.text,
                     "rank 5 of world 00000009 on node x is introduced as "
                     "another process than the one that is known");
}

Test(foreign, who_is_known_is_not_introduced_as_another_one)
{
    const struct chempi_introduction members[] = {introduce_own(SELF),
                                                  introduce(9, 5, "x")};
    struct chempi_introduction other;
    uint32_t indexes[2];

    cr_assert_eq(bind(secrets[0], members, 2, indexes, NULL), 0);
    expect_another(introduce(9, 5, "y"));
    other = members[1];
    other.card[2]++;
    expect_another(other);
    other = members[1];
    other.card_len--;
    expect_another(other);
    other = members[1];
    other.survives = 1;
    expect_another(other);
    other = members[1];
    other.is_secure = 1;
    expect_another(other);
    other = members[1];
    other.eager_quota++;
    expect_another(other);
    other = members[1];
    other.sysmsg_quota++;
    expect_another(other);
}

/* Each on a node of its own. */
static struct chempi_introduction *introduce_many(uint32_t count)
{
    struct chempi_introduction *members = malloc(count * sizeof(*members));

    cr_assert_not_null(members);
    members[0] = introduce_own(SELF);
    for (uint32_t i = 1; i < count; i++) {
        char node[16];

        (void)snprintf(node, sizeof(node), "n%u", i);
        members[i] = introduce(9, i, node);
    }
    return members;
}

/* However often somebody tries: neither processes nor nodes are left over. */
Test(foreign, more_than_can_be_known_are_refused_and_leave_nothing)
{
    const uint32_t count = CHEMPI_FOREIGN_MAX + 2;
    struct chempi_introduction *members = introduce_many(count);
    uint32_t *indexes = malloc(count * sizeof(*indexes));
    struct chempi_bond *bond;
    struct chempi_err err = {0};

    cr_assert_not_null(indexes);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(bind(secrets[1], members, count, indexes, &err), -ENOSPC);
        cr_assert_eq(chempi_foreign_bonds()->index_end(), PROCS);
    }
    /* What is prepared has its room; it is not given twice. */
    bond = prepare(0, members, count - 1);
    cr_assert_eq(bind(secrets[1], members, 2, indexes, &err), -ENOSPC);
    chempi_foreign_take_in(bond);
    cr_assert_eq(bind(secrets[1], members, 2, indexes, &err), 0);
    memcpy(indexes, chempi_foreign_indexes(bond),
           (count - 1) * sizeof(*indexes));
    cr_assert_eq(indexes[count - 2], PROCS + CHEMPI_FOREIGN_MAX - 1);
    cr_assert_str_eq(chempi_foreign_node_name(indexes[count - 2]),
                     members[count - 2].node);
    free(indexes);
    free(members);
}

/* Who brings nobody new leaves so much, and others are met all the same. */
Test(foreign, who_is_met_again_and_again_has_no_end_of_bonds_kept)
{
    const struct chempi_introduction again[] = {introduce_own(SELF),
                                                introduce(9, 5, "x")};
    struct chempi_introduction other[] = {again[0], introduce(7, 1, "x")};
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES] = {1};
    struct chempi_err err = {0};
    uint32_t indexes[2];
    uint32_t count = 0;
    int rc;

    do {
        memcpy(secret + 8, &count, sizeof(count));
        rc = bind(secret, again, 2, indexes, &err);
    } while (rc == 0 && ++count <= CHEMPI_FOREIGN_AGAIN_MAX / 4096 + 1);
    cr_assert_eq(rc, -ENOSPC);
    cr_assert_eq(count, CHEMPI_FOREIGN_AGAIN_MAX / 4096 + 1);
    cr_assert_not_null(strstr(err.text, "met processes again"), "%s", err.text);
    cr_assert_null(chempi_foreign_check());
    cr_assert_eq(bind(secrets[0], other, 2, indexes, &err), 0);
}

/* What each of two worlds says of the order of a process of either. */
Test(foreign, one_of_two_comes_first)
{
    const struct chempi_name mine = chempi_foreign_name(SELF);
    const struct chempi_introduction members[] = {
        introduce_own(SELF), introduce(0, 0, "x"),
        introduce(UINT64_MAX, 0, "x")};
    uint32_t indexes[3];

    cr_assert_eq(bind(secrets[0], members, 3, indexes, NULL), 0);
    for (int i = 1; i < 3; i++)
        cr_assert_eq(chempi_foreign_bonds()->is_before(indexes[i]),
                     chempi_foreign_compare(&mine, &members[i].name) < 0);
    cr_assert_not(chempi_foreign_bonds()->is_before(indexes[1]));
    cr_assert(chempi_foreign_bonds()->is_before(indexes[2]));
}

/* Also where their indexes are those of the whole world and one more. */
Test(foreign, groups_know_whether_a_member_is_of_another_world)
{
    const struct chempi_introduction members[] = {introduce_own(SELF),
                                                  introduce(9, 5, "x")};
    uint32_t *both = malloc(2 * sizeof(*both));
    uint32_t *own = malloc(sizeof(*own));
    uint32_t *all = malloc((PROCS + 1) * sizeof(*all));
    struct chempi_group *group;

    cr_assert_eq(bind(secrets[0], members, 2, both, NULL), 0);
    own[0] = both[0];
    group = chempi_group_make(2, both);
    cr_assert(group->has_foreign);
    cr_assert_eq(group->rank, 0);
    chempi_group_release(group);
    group = chempi_group_make(1, own);
    cr_assert_not(group->has_foreign);
    chempi_group_release(group);
    for (uint32_t i = 0; i <= PROCS; i++)
        all[i] = i;
    group = chempi_group_make(PROCS + 1, all);
    cr_assert(group->has_foreign);
    cr_assert_not_null(group->procs);
    chempi_group_release(group);
}
