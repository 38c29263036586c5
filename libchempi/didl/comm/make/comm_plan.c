/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sends to whom in an agreement, in a broadcast and where all collect what
 * all have. Pure data: nothing here communicates.
 *
 * On one node an agreement is a recursive doubling. Over several nodes values
 * go up a tree in each node to the first of its members, these agree by a
 * recursive doubling, and the result comes down the trees: so one process of
 * each node has connections to others, and its messages are the only ones that
 * leave the node.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/msg.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_make.h"

enum { DOUBLINGS_MAX = 20 };

/* Up, across (one more each before and behind it), down, to the other side of
 * an intercommunicator, down from its member 0: the most with half of all
 * members on one node. */
_Static_assert(CHEMPI_JOB_RANKS_MAX <= 1u << DOUBLINGS_MAX &&
                   CHEMPI_COMM_STEPS_MAX >=
                       3 * (DOUBLINGS_MAX - 1) + 2 + 1 + DOUBLINGS_MAX,
               "plans have room");

struct chempi_comm_plan {
    int count;
    bool is_over_nodes; /* one of which has several members, at least */
    struct chempi_comm_step steps[];
};

static struct chempi_comm_step send_to(int member)
{
    return (struct chempi_comm_step){.to = member, .from = -1};
}

static struct chempi_comm_step receive_from(int member, bool is_max)
{
    return (struct chempi_comm_step){
        .to = -1, .from = member, .is_max = is_max};
}

/* ---- in a row of so many, of which this one is number me ---- */

/* To the first of them. */
static int plan_up(int size, int me, struct chempi_comm_step *steps)
{
    int n = 0;

    for (int mask = 1; mask < size; mask <<= 1) {
        if (me & mask) {
            steps[n++] = send_to(me - mask);
            break;
        }
        if (me + mask < size)
            steps[n++] = receive_from(me + mask, true);
    }
    return n;
}

/* From the first of them. */
static int plan_down(int size, int me, struct chempi_comm_step *steps)
{
    int mask = 1;
    int n = 0;

    while (mask < size && !(me & mask))
        mask <<= 1;
    if (me != 0)
        steps[n++] = receive_from(me & ~mask, false);
    for (mask >>= 1; mask > 0; mask >>= 1)
        if (me + mask < size)
            steps[n++] = send_to(me + mask);
    return n;
}

/* Recursive doubling; the odd ones beyond a power of two hand their values to
 * a partner and get the result from it. */
static int plan_across(int size, int me, struct chempi_comm_step *steps)
{
    int power = 1;
    int n = 0;

    while (power <= size / 2)
        power *= 2;
    if (me >= power) {
        steps[n++] = send_to(me - power);
        steps[n++] = receive_from(me - power, false);
        return n;
    }
    if (me + power < size)
        steps[n++] = receive_from(me + power, true);
    for (int mask = 1; mask < power; mask <<= 1)
        steps[n++] = (struct chempi_comm_step){
            .to = me ^ mask, .from = me ^ mask, .is_max = true};
    if (me + power < size)
        steps[n++] = send_to(me + power);
    return n;
}

/* ---- members by their nodes ---- */

/* Nodes that have been met: the services know so many at most. */
struct met {
    uint64_t bits[CHEMPI_JOB_NODES_MAX / 64];
};

static void meet_none(struct met *met)
{
    memset(met->bits, 0,
           (chempi_ctx.services.node_count + 63) / 64 * sizeof(met->bits[0]));
}

static bool is_first_of(struct met *met, uint32_t node)
{
    uint64_t *word = &met->bits[node / 64];
    const uint64_t bit = UINT64_C(1) << node % 64;
    const bool is_first = !(*word & bit);

    *word |= bit;
    return is_first;
}

static uint32_t node_of(const struct chempi_comm_channel *ch, int member)
{
    const uint32_t rank = (uint32_t)chempi_comm_step_rank(ch, member);

    return chempi_ctx.services.node_of_proc[chempi_comm_proc(ch->comm, rank)];
}

/* Where a member stands. */
struct place {
    int nodes;  /* that have members, numbered by the first of them */
    int number; /* of its node */
    int size;   /* members of its node */
    int index;  /* of it among these */
};

static struct place find_place(const struct chempi_comm_channel *ch)
{
    const uint32_t own = node_of(ch, ch->me);
    struct place p = {.nodes = 0};
    struct met met;

    meet_none(&met);
    for (int member = 0; member < ch->size; member++) {
        const uint32_t node = node_of(ch, member);

        if (is_first_of(&met, node)) {
            if (node == own)
                p.number = p.nodes;
            p.nodes++;
        }
        if (node == own) {
            if (member == ch->me)
                p.index = p.size;
            p.size++;
        }
    }
    return p;
}

/* Steps of which the partners are numbers in a row. */
struct part {
    struct chempi_comm_step *steps;
    const struct chempi_comm_step *by_number; /* the same */
    int count;
};

/* The partner with that number in its row is this member. */
static void name(const struct part *part, int number, int member)
{
    for (int i = 0; i < part->count; i++) {
        if (part->by_number[i].to == number)
            part->steps[i].to = member;
        if (part->by_number[i].from == number)
            part->steps[i].from = member;
    }
}

/* Members instead of numbers, among the members of this node in `up` and
 * `down`, among the first members of all nodes in `across`. */
static void name_all(const struct chempi_comm_channel *ch,
                     const struct part *up, const struct part *across,
                     const struct part *down)
{
    const uint32_t own = node_of(ch, ch->me);
    struct met met;
    int number = 0;
    int index = 0;

    meet_none(&met);
    for (int member = 0; member < ch->size; member++) {
        const uint32_t node = node_of(ch, member);

        if (is_first_of(&met, node))
            name(across, number++, member);
        if (node == own) {
            name(up, index, member);
            name(down, index++, member);
        }
    }
}

/* Without memory: a member that had none would leave the others waiting. */
static int plan_by_nodes(const struct chempi_comm_channel *ch,
                         struct chempi_comm_step *steps, bool *is_over_nodes)
{
    const struct place p = find_place(ch);
    struct chempi_comm_step by_number[CHEMPI_COMM_STEPS_MAX];
    struct part up = {steps, by_number, 0};
    struct part across = up;
    struct part down = up;
    int n;

    *is_over_nodes = p.nodes > 1 && p.nodes < ch->size;
    if (!*is_over_nodes)
        return plan_across(ch->size, ch->me, steps);
    n = up.count = plan_up(p.size, p.index, steps);
    across.steps += n;
    across.by_number += n;
    if (p.index == 0)
        across.count = plan_across(p.nodes, p.number, across.steps);
    n += across.count;
    down.steps += n;
    down.by_number += n;
    down.count = plan_down(p.size, p.index, down.steps);
    n += down.count;
    memcpy(by_number, steps, (size_t)n * sizeof(*steps));
    name_all(ch, &up, &across, &down);
    return n;
}

/* ---- plans that are kept ---- */

/* Looking at all members takes long in a large group, and its plan is always
 * the same: the group has it from the first time on. */
static int plan_of_group(const struct chempi_comm_channel *ch,
                         struct chempi_comm_step *steps, bool *is_over_nodes)
{
    struct chempi_group *group = ch->comm->local;
    struct chempi_comm_plan *plan =
        atomic_load_explicit(&group->plan, memory_order_acquire);
    struct chempi_comm_plan *none = NULL;
    size_t len;
    int n;

    if (plan) {
        memcpy(steps, plan->steps, (size_t)plan->count * sizeof(*steps));
        *is_over_nodes = plan->is_over_nodes;
        return plan->count;
    }
    n = plan_by_nodes(ch, steps, is_over_nodes);
    len = (size_t)n * sizeof(*steps);
    plan = chempi_sys->malloc(sizeof(*plan) + len);
    if (!plan)
        return n;
    plan->count = n;
    plan->is_over_nodes = *is_over_nodes;
    memcpy(plan->steps, steps, len);
    if (!atomic_compare_exchange_strong_explicit(&group->plan, &none, plan,
                                                 memory_order_release,
                                                 memory_order_relaxed))
        free(plan); /* another thread's is there */
    return n;
}

static int plan_side(const struct chempi_comm_channel *ch,
                     struct chempi_comm_step *steps, bool *is_over_nodes)
{
    *is_over_nodes = false;
    /* Members of other worlds count other nodes. */
    if (chempi_ctx.services.node_count == 1 || ch->comm->has_foreign)
        return plan_across(ch->size, ch->me, steps);
    return ch->ranks || ch->group ? plan_by_nodes(ch, steps, is_over_nodes)
                                  : plan_of_group(ch, steps, is_over_nodes);
}

/* ---- for all ---- */

/* A process that is in it. */
static int rank_of(const struct chempi_group *group, uint32_t proc)
{
    uint32_t rank = group->procs ? 0 : proc;

    while (rank + 1 < group->size && chempi_group_proc(group, rank) != proc)
        rank++;
    return (int)rank;
}

int chempi_comm_step_rank(const struct chempi_comm_channel *ch, int member)
{
    const int index = (member + ch->first) % ch->size;

    if (ch->group)
        return rank_of(ch->comm->local,
                       chempi_group_proc(ch->group, (uint32_t)index));
    return ch->ranks ? ch->ranks[index] : index;
}

int chempi_comm_plan_bcast(const struct chempi_comm_channel *ch,
                           struct chempi_comm_step *steps)
{
    return plan_down(ch->size, ch->me, steps);
}

int chempi_comm_plan_max(const struct chempi_comm_channel *ch,
                         struct chempi_comm_step *steps)
{
    bool is_over_nodes;
    int n = plan_side(ch, steps, &is_over_nodes);

    if (!ch->inter)
        return n;
    if (ch->me == 0)
        steps[n++] =
            (struct chempi_comm_step){.is_inter = true, .is_max = true};
    return n + chempi_comm_plan_bcast(ch, steps + n);
}

int chempi_comm_plan_gather(const struct chempi_comm_channel *ch,
                            struct chempi_comm_step *steps)
{
    bool is_over_nodes;
    const int n = plan_side(ch, steps, &is_over_nodes);

    return is_over_nodes ? n : 0;
}
