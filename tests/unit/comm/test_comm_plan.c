/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of agreements: all members follow theirs, where a message is given
 * away only when its receiver takes it, and end with the largest value.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/msg.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "tests/unit/base/rig.h"

enum { MEMBERS_MAX = 70, MANY = CHEMPI_JOB_RANKS_MAX };

struct chempi_ctx chempi_ctx;

static uint32_t node_of[MANY];
static struct chempi_group group;
static struct chempi_comm comm = {.local = &group};
static uint64_t state = 1;

struct member {
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int count;
    int at; /* step that is under way */
    bool has_sent;
    bool has_got;
    int64_t value;
    int64_t out; /* as the step began */
    int64_t in;
    int have; /* members of which it knows */
    int have_out;
    int have_in;
};

static struct member members[MEMBERS_MAX];

static int number(int below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

/* The group is a new one. */
static void forget(void)
{
    free(atomic_load(&group.plan));
    atomic_store(&group.plan, NULL);
}

static void place(int size, int nodes)
{
    chempi_ctx.services.node_of_proc = node_of;
    chempi_ctx.services.node_count = (uint32_t)nodes;
    comm.size = (uint32_t)size;
}

static int plan(int size, int me, const int *ranks,
                struct chempi_comm_step *steps)
{
    const struct chempi_comm_channel ch = {
        .comm = &comm, .ranks = ranks, .size = size, .me = me};

    return chempi_comm_plan_max(&ch, steps);
}

static uint32_t node_at(const int *ranks, int member)
{
    return node_of[ranks ? ranks[member] : member];
}

static bool is_first(const int *ranks, int member)
{
    for (int i = 0; i < member; i++)
        if (node_at(ranks, i) == node_at(ranks, member))
            return false;
    return true;
}

/* A message that both ends are at. */
static bool pass(int from)
{
    struct member *m = &members[from];
    const int to = m->at < m->count && !m->has_sent ? m->steps[m->at].to : -1;
    struct member *other = &members[to < 0 ? 0 : to];

    if (to < 0 || other->at == other->count || other->has_got ||
        other->steps[other->at].from != from)
        return false;
    m->has_sent = true;
    other->has_got = true;
    other->in = m->out;
    other->have_in = m->have_out;
    return true;
}

static bool end_step(struct member *m)
{
    const struct chempi_comm_step *step = &m->steps[m->at];

    if (m->at == m->count || (step->to >= 0 && !m->has_sent) ||
        (step->from >= 0 && !m->has_got))
        return false;
    if (step->from >= 0 && (!step->is_max || m->in > m->value))
        m->value = m->in;
    if (step->from >= 0)
        m->have = step->is_max ? m->have + m->have_in : m->have_in;
    m->out = m->value;
    m->have_out = m->have;
    m->has_sent = m->has_got = false;
    m->at++;
    return true;
}

static void check_all_agree(int size)
{
    int64_t most = 0;
    bool has_moved = true;

    for (int i = 0; i < size; i++) {
        members[i].have_out = members[i].have = 1;
        members[i].out = members[i].value = 1 + number(1000);
        if (members[i].value > most)
            most = members[i].value;
    }
    while (has_moved) {
        has_moved = false;
        for (int i = 0; i < size; i++)
            has_moved = pass(i) || has_moved;
        for (int i = 0; i < size; i++)
            has_moved = end_step(&members[i]) || has_moved;
    }
    for (int i = 0; i < size; i++) {
        cr_assert_eq(members[i].at, members[i].count, "%d of %d hangs", i,
                     size);
        cr_assert_eq(members[i].value, most, "%d of %d", i, size);
        cr_assert_eq(members[i].have, size, "%d of %d", i, size);
    }
}

/* Only the first members of nodes speak to other nodes. */
static void check_ways(int size, const int *ranks)
{
    for (int i = 0; i < size; i++)
        for (int s = 0; s < members[i].count; s++) {
            const int to = members[i].steps[s].to;

            if (to >= 0 && node_at(ranks, i) != node_at(ranks, to))
                cr_assert(is_first(ranks, i) && is_first(ranks, to),
                          "%d to %d of %d", i, to, size);
        }
}

static void follow(int size, const int *ranks)
{
    memset(members, 0, sizeof(members));
    for (int i = 0; i < size; i++) {
        forget(); /* it is another process */
        members[i].count = plan(size, i, ranks, members[i].steps);
        cr_assert_leq(members[i].count, CHEMPI_COMM_STEPS_MAX);
    }
    forget();
    check_all_agree(size);
    check_ways(size, ranks);
}

static int doublings(int n)
{
    int steps = 0;

    while (n > 1 << steps)
        steps++;
    return steps;
}

Test(comm_plan, members_of_one_node_double)
{
    memset(node_of, 0, sizeof(node_of));
    for (int nodes = 1; nodes <= 2; nodes++) /* the other one has no member */
        for (int size = 1; size <= MEMBERS_MAX; size++) {
            place(size, nodes);
            follow(size, NULL);
            for (int i = 0; i < size; i++)
                cr_assert_leq(members[i].count, doublings(size) + 1);
            if ((size & (size - 1)) == 0)
                cr_assert_eq(members[0].count, doublings(size));
        }
}

Test(comm_plan, first_members_of_nodes_in_blocks_or_by_turns_speak_for_them)
{
    for (int nodes = 2; nodes <= 9; nodes++)
        for (int size = 1; size <= MEMBERS_MAX; size++) {
            const int each = (size + nodes - 1) / nodes;

            place(size, nodes);
            for (int i = 0; i < size; i++)
                node_of[i] = (uint32_t)(i / each);
            follow(size, NULL);
            for (int i = 0; i < size; i++)
                node_of[i] = (uint32_t)(i % nodes);
            follow(size, NULL);
        }
}

Test(comm_plan, members_may_be_anywhere)
{
    int ranks[MEMBERS_MAX];

    for (int i = 0; i < 500; i++) {
        const int nodes = 1 + number(MEMBERS_MAX);
        const int size = 1 + number(MEMBERS_MAX);

        place(MEMBERS_MAX, nodes);
        for (int r = 0; r < MEMBERS_MAX; r++) {
            const int other = number(r + 1);

            node_of[r] = (uint32_t)number(nodes);
            ranks[r] = ranks[other];
            ranks[other] = r;
        }
        follow(size, ranks);
    }
}

Test(comm_plan, a_node_of_one_member_has_no_steps_of_its_own)
{
    place(8, 8);
    for (int i = 0; i < 8; i++)
        node_of[i] = (uint32_t)(7 - i);
    follow(8, NULL);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(members[i].count, 3);
}

static int gather_steps(int size)
{
    const struct chempi_comm_channel ch = {.comm = &comm, .size = size};
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    const int count = chempi_comm_plan_gather(&ch, steps);

    cr_assert_eq(chempi_comm_plan_gather(&ch, steps), count); /* kept */
    forget();
    return count;
}

Test(comm_plan, nobody_collects_for_others_on_one_node_or_alone_on_each)
{
    place(8, 9);
    memset(node_of, 0, sizeof(node_of));
    cr_assert_eq(gather_steps(8), 0);
    node_of[5] = 8;
    cr_assert_gt(gather_steps(8), 0);
    for (int i = 0; i < 8; i++)
        node_of[i] = (uint32_t)i;
    cr_assert_eq(gather_steps(8), 0);
}

/* Of member me, three times: made, with or without memory, and once more. */
static void check_kept(int size, int me, bool has_memory)
{
    struct chempi_comm_step first[CHEMPI_COMM_STEPS_MAX] = {{0}};
    struct chempi_comm_step second[CHEMPI_COMM_STEPS_MAX] = {{0}};
    int count;

    rig_reset();
    rig_fail(RIG_MALLOC, has_memory ? 9 : 1, ENOMEM, 1);
    count = plan(size, me, NULL, first);
    cr_assert_eq(has_memory, atomic_load(&group.plan) != NULL);
    cr_assert_eq(plan(size, me, NULL, second), count);
    for (int i = 0; i < count; i++)
        cr_assert(first[i].to == second[i].to &&
                  first[i].from == second[i].from &&
                  first[i].is_max == second[i].is_max);
    cr_assert_eq(rig_calls(), has_memory ? 1 : 2);
    rig_reset();
    forget();
}

Test(comm_plan, a_group_keeps_its_plan_if_there_is_memory)
{
    place(24, 3);
    for (int i = 0; i < 24; i++)
        node_of[i] = (uint32_t)(i % 3);
    for (int me = 0; me < 24; me++) {
        check_kept(24, me, true);
        check_kept(24, me, false);
    }
}

Test(comm_plan, the_largest_job_has_room_for_its_steps)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX + 1];
    struct chempi_comm inter = {.is_inter = true};
    const struct chempi_comm_channel ch = {
        .comm = &comm, .size = MANY, .inter = &inter};

    for (int others = 1; others < (int)CHEMPI_JOB_NODES_MAX; others *= 4) {
        place(MANY, others + 1);
        for (int i = 0; i < MANY; i++)
            node_of[i] = i < MANY - others ? 0 : (uint32_t)(MANY - i);
        cr_assert_leq(chempi_comm_plan_max(&ch, steps), CHEMPI_COMM_STEPS_MAX);
        forget();
    }
}
