/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrable memory divided among ranks: never more than there is. */
#define _GNU_SOURCE /* random */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/tree/nodes/budget.h"

#define PAGE UINT64_C(4096)
#define RANKS_MAX 8u
#define JOBS 4u

/* A rank at the other end: what it was told and what it says. */
struct end {
    uint64_t share;
    uint64_t used;
    uint64_t wanted;
    uint64_t needed;
    uint32_t serial;
    uint32_t deadline_ms;
    uint32_t orders;
    bool is_deaf; /* does not hear of orders */
};

struct fake_job {
    struct chempi_budget_job job;
    struct end ends[RANKS_MAX];
    uint32_t count;
    uint32_t late;
    uint32_t refusals;
    struct chempi_budget_refusal refusal;
};

static struct chempi_budget budget;
static struct fake_job jobs[JOBS];
static uint64_t now_ms;

static void send(void *arg, uint32_t local, uint64_t bytes,
                 uint32_t deadline_ms, uint32_t serial)
{
    struct end *end = &((struct fake_job *)arg)->ends[local];

    end->orders++;
    if (end->is_deaf)
        return;
    end->share = bytes;
    end->deadline_ms = deadline_ms;
    end->serial = serial;
}

static void late(void *arg, const struct chempi_budget_rank *rank)
{
    cr_assert(rank->is_late);
    ((struct fake_job *)arg)->late++;
}

static void refuse(void *arg, const struct chempi_budget_refusal *refusal)
{
    struct fake_job *job = arg;

    job->refusals++;
    job->refusal = *refusal;
    cr_assert_gt(refusal->needed, refusal->available);
}

static void set_up(void)
{
    chempi_budget_init(&budget, 1000 * PAGE + 17);
    memset(jobs, 0, sizeof(jobs));
    now_ms = 5;
}

TestSuite(budget, .init = set_up);

static void check_sum(void)
{
    uint64_t held = 0;

    for (uint32_t k = 0; k < JOBS; k++) {
        for (uint32_t i = 0; i < jobs[k].count; i++) {
            const struct end *end = &jobs[k].ends[i];

            held += end->used > end->share ? end->used : end->share;
        }
    }
    cr_assert_leq(held, 1000 * PAGE);
    cr_assert_leq(chempi_budget_granted(&budget), 1000 * PAGE);
    /* What ranks may use is not more than what they were granted. */
    cr_assert_leq(held, chempi_budget_granted(&budget));
}

static void add_limited(uint32_t k, uint32_t count, uint64_t limit)
{
    static const uint32_t worlds[RANKS_MAX] = {0, 2, 4, 6, 8, 10, 12, 14};
    jobs[k] = (struct fake_job){
        .job = {.send = send, .late = late, .refuse = refuse, .arg = &jobs[k]},
        .count = count};
    cr_assert_eq(chempi_budget_add(&budget, &jobs[k].job, worlds, count, limit),
                 0);
    check_sum();
}

static void add(uint32_t k, uint32_t count)
{
    add_limited(k, count, CHEMPI_BUDGET_NONE);
}

static void report(uint32_t k, uint32_t i)
{
    struct end *end = &jobs[k].ends[i];
    uint64_t held = end->share < end->wanted ? end->share : end->wanted;
    struct chempi_budget_report r = {
        .serial = end->serial,
        .held = held > end->used ? held : end->used,
        .used = end->used,
        .wanted = end->wanted,
        .needed = end->needed,
    };

    if (!end->is_deaf)
        end->share = held;
    cr_assert_eq(chempi_budget_take(&budget, &jobs[k].job, i, &r), 0);
    chempi_budget_settle(&budget, now_ms);
    check_sum();
}

static void want(uint32_t k, uint64_t pages)
{
    for (uint32_t i = 0; i < jobs[k].count; i++) {
        jobs[k].ends[i].wanted = pages * PAGE;
        report(k, i);
    }
}

/* All answer what they were told. */
static void settle(void)
{
    for (uint32_t k = 0; k < JOBS; k++) {
        for (uint32_t i = 0; i < jobs[k].count; i++)
            report(k, i);
    }
}

/* Job 1 comes while job 0 uses everything and hears of no orders. */
static void add_beside_a_deaf_one(void)
{
    add(0, 1);
    want(0, 1000);
    settle();
    jobs[0].ends[0].used = 1000 * PAGE;
    jobs[0].ends[0].is_deaf = true;
    add(1, 1);
}

static void leave(uint32_t k)
{
    jobs[k].count = 0;
    chempi_budget_remove(&budget, &jobs[k].job);
    chempi_budget_settle(&budget, now_ms);
    check_sum();
}

Test(budget, a_job_alone_has_what_it_asks_for)
{
    add(0, 2);
    cr_expect_eq(jobs[0].ends[0].share, 0);
    want(0, 100);
    cr_expect_eq(jobs[0].ends[1].share, 100 * PAGE);
    cr_expect_eq(chempi_budget_granted(&budget), 200 * PAGE);
    want(0, 800);
    settle();
    cr_expect_eq(jobs[0].ends[0].share, 500 * PAGE);
    cr_expect_eq(jobs[0].ends[1].share, 500 * PAGE);
    leave(0);
    cr_expect_eq(chempi_budget_granted(&budget), 0);
}

Test(budget, a_new_job_gets_what_is_given_back_and_no_more)
{
    add(0, 2);
    want(0, 1000);
    settle();
    jobs[0].ends[0].used = jobs[0].ends[0].share;
    jobs[0].ends[1].used = jobs[0].ends[1].share;
    add(1, 1);
    cr_expect_eq(jobs[1].ends[0].share, 0);
    want(1, 1000); /* it wants half: the others are asked */
    cr_expect_eq(jobs[0].ends[0].share, 250 * PAGE);
    cr_expect_eq(jobs[0].ends[0].deadline_ms, CHEMPI_BUDGET_DEADLINE_MS);
    cr_expect_eq(jobs[1].ends[0].share, 0);
    jobs[0].ends[0].used = 400 * PAGE; /* on its way */
    report(0, 0);
    cr_expect_eq(jobs[1].ends[0].share, 100 * PAGE);
    jobs[0].ends[0].used = 250 * PAGE;
    report(0, 0);
    cr_expect_eq(jobs[1].ends[0].share, 250 * PAGE);
    jobs[0].ends[1].used = 0;
    report(0, 1);
    cr_expect_eq(jobs[1].ends[0].share, 500 * PAGE);
    leave(1); /* and back */
    cr_expect_eq(jobs[0].ends[0].share, 500 * PAGE);
    cr_expect_eq(jobs[0].ends[1].share, 500 * PAGE);
}

Test(budget, a_rank_that_does_not_give_back_is_named_once_and_keeps_it)
{
    add_beside_a_deaf_one();
    want(1, 600);
    cr_expect_eq(chempi_budget_tick(&budget, now_ms),
                 now_ms + CHEMPI_BUDGET_DEADLINE_MS);
    now_ms += CHEMPI_BUDGET_DEADLINE_MS + 1;
    cr_expect_eq(chempi_budget_tick(&budget, now_ms), 0);
    cr_expect_eq(jobs[0].late, 1);
    cr_expect_eq(jobs[1].ends[0].share, 0);
    add(2, 1);
    want(2, 600); /* asked again for more, but late already */
    (void)chempi_budget_tick(&budget, now_ms);
    cr_expect_eq(jobs[0].late, 1);
    /* It wakes up. */
    jobs[0].ends[0].is_deaf = false;
    jobs[0].ends[0].serial = jobs[0].ends[0].orders;
    jobs[0].ends[0].share = jobs[0].job.ranks[0].ordered;
    jobs[0].ends[0].used = 0;
    report(0, 0);
    cr_expect_not(jobs[0].job.ranks[0].is_late);
    cr_expect_eq(chempi_budget_granted(&budget), 999 * PAGE);
    cr_expect_eq(jobs[1].ends[0].share, 333 * PAGE);
    cr_expect_eq(jobs[2].ends[0].share, 333 * PAGE);
}

Test(budget, a_report_that_crosses_an_order_frees_nothing)
{
    struct chempi_budget_report old = {.serial = 0, .wanted = 1000 * PAGE};
    uint64_t granted;

    add(0, 1);
    want(0, 100);
    want(0, 1000); /* grows: order 1 */
    granted = chempi_budget_granted(&budget);
    cr_expect_eq(granted, 1000 * PAGE);
    cr_expect_gt(jobs[0].ends[0].orders, 0);
    add(1, 1);
    want(1, 1000);
    granted = chempi_budget_granted(&budget);
    /* Sent before that order came: it may use all by now. */
    cr_assert_eq(chempi_budget_take(&budget, &jobs[0].job, 0, &old), 0);
    cr_expect_eq(chempi_budget_granted(&budget), granted);
    chempi_budget_settle(&budget, now_ms);
    cr_expect_eq(chempi_budget_granted(&budget), granted);
    cr_expect_eq(jobs[1].ends[0].share, 0);
}

/* M3 */
Test(budget, another_order_is_due_when_the_first_was)
{
    uint64_t due;

    add_beside_a_deaf_one();
    want(1, 600);
    due = now_ms + CHEMPI_BUDGET_DEADLINE_MS;
    cr_expect_eq(chempi_budget_tick(&budget, now_ms), due);
    now_ms += CHEMPI_BUDGET_DEADLINE_MS / 2;
    want(1, 300);
    cr_expect_eq(jobs[0].ends[0].orders, 3);
    cr_expect_eq(chempi_budget_tick(&budget, now_ms), due);
}

/* Whoever wanted it has gone before it was given back. */
Test(budget, what_is_not_asked_back_any_more_may_be_kept)
{
    add(0, 1);
    want(0, 1000);
    settle();
    jobs[0].ends[0].used = 1000 * PAGE;
    add(1, 1);
    want(1, 600);
    report(0, 0);
    cr_expect_eq(jobs[0].job.ranks[0].granted, 1000 * PAGE);
    cr_expect_eq(jobs[0].ends[0].share, 500 * PAGE);
    leave(1);
    cr_expect_eq(jobs[0].ends[0].share, 1000 * PAGE);
    cr_expect_eq(jobs[0].job.ranks[0].ordered, 1000 * PAGE);
    cr_expect_eq(chempi_budget_tick(&budget, now_ms), 0);
}

Test(budget, a_rank_that_lies_gets_no_more)
{
    struct chempi_budget_report lie = {
        .held = UINT64_MAX, .used = UINT64_MAX, .wanted = UINT64_MAX};

    add(0, 2);
    cr_assert_eq(chempi_budget_take(&budget, &jobs[0].job, 0, &lie), 0);
    cr_assert_eq(chempi_budget_take(&budget, &jobs[0].job, 1, &lie), 0);
    chempi_budget_settle(&budget, now_ms);
    cr_expect_leq(chempi_budget_granted(&budget), 1000 * PAGE);
    cr_expect_eq(chempi_budget_take(&budget, &jobs[0].job, 2, &lie), -EINVAL);
    /* What two need is more than there is, whatever their sum wraps to. */
    lie.needed = UINT64_MAX / 2 + 1;
    cr_assert_eq(chempi_budget_take(&budget, &jobs[0].job, 0, &lie), 0);
    cr_assert_eq(chempi_budget_take(&budget, &jobs[0].job, 1, &lie), 0);
    chempi_budget_settle(&budget, now_ms);
    cr_expect_eq(jobs[0].refusals, 1);
}

/* Whoever reports without end makes no more orders than divisions. */
Test(budget, reports_that_come_together_are_one_cause)
{
    struct chempi_budget_report r = {0};
    uint32_t before;

    add(0, 1);
    want(0, 1000);
    settle();
    add(1, 1);
    before = jobs[0].ends[0].orders;
    for (uint32_t i = 0; i < 1001; i++) {
        r.wanted = i % 2 ? 0 : 1000 * PAGE;
        cr_assert_eq(chempi_budget_take(&budget, &jobs[1].job, 0, &r), 0);
    }
    cr_expect_eq(jobs[0].ends[0].orders, before);
    chempi_budget_settle(&budget, now_ms);
    cr_expect_eq(jobs[0].ends[0].orders, before + 1);
    chempi_budget_settle(&budget, now_ms);
    cr_expect_eq(jobs[0].ends[0].orders, before + 1);
    cr_expect_eq(jobs[0].ends[0].share, 500 * PAGE);
}

/* M5 */
Test(budget, ranks_that_are_only_named_are_not_looked_at)
{
    add(0, 8);
    cr_expect_eq(jobs[0].job.heard_count, 0);
    jobs[0].ends[5].wanted = 1000 * PAGE;
    report(0, 5);
    report(0, 5);
    cr_expect_eq(jobs[0].job.heard_count, 1);
    cr_expect_eq(jobs[0].job.heard[0], 5);
    cr_expect_eq(jobs[0].ends[5].share, 1000 * PAGE);
    jobs[0].ends[2].wanted = 1000 * PAGE;
    report(0, 2);
    settle();
    settle();
    cr_expect_eq(jobs[0].ends[2].share, 500 * PAGE);
    cr_expect_eq(jobs[0].ends[5].share, 500 * PAGE);
}

Test(budget, who_asks_for_little_leaves_the_rest_to_the_others)
{
    add(0, 1);
    want(0, 10);
    add(1, 4);
    for (uint32_t i = 0; i < 4; i++) {
        jobs[1].ends[i].wanted = (i == 0 ? 90 : 1000) * PAGE;
        report(1, i);
    }
    settle();
    cr_expect_eq(jobs[0].ends[0].share, 10 * PAGE);
    cr_expect_eq(jobs[1].ends[0].share, 90 * PAGE);
    for (uint32_t i = 1; i < 4; i++)
        cr_expect_eq(jobs[1].ends[i].share, 300 * PAGE, "rank %u", i);
}

Test(budget, without_a_total_nothing_is_divided)
{
    const uint32_t world = 0;

    chempi_budget_init(&budget, CHEMPI_BUDGET_NONE);
    jobs[0].job =
        (struct chempi_budget_job){.send = send, .late = late, .arg = &jobs[0]};
    cr_assert_eq(
        chempi_budget_add(&budget, &jobs[0].job, &world, 1, CHEMPI_BUDGET_NONE),
        0);
    cr_expect_eq(jobs[0].job.rank_count, 0);
    chempi_budget_remove(&budget, &jobs[0].job);
}

static void need(uint32_t k, uint64_t pages)
{
    for (uint32_t i = 0; i < jobs[k].count; i++)
        jobs[k].ends[i].needed = pages * PAGE;
}

Test(budget, what_is_needed_is_not_asked_back)
{
    add(0, 2);
    need(0, 400);
    want(0, 1000);
    settle();
    add(1, 1);
    need(1, 100);
    want(1, 1000); /* half would be fair, but is not to be had */
    settle();
    cr_expect_eq(jobs[0].ends[0].share, 400 * PAGE);
    cr_expect_eq(jobs[0].ends[1].share, 400 * PAGE);
    cr_expect_eq(jobs[1].ends[0].share, 200 * PAGE);
    cr_expect_eq(jobs[0].refusals + jobs[1].refusals, 0);
}

Test(budget, what_is_needed_comes_before_what_is_wanted)
{
    add(0, 1);
    want(0, 1000);
    settle();
    jobs[0].ends[0].used = 950 * PAGE; /* and the rest is free */
    report(0, 0);
    add(1, 2);
    jobs[1].ends[1].needed = 40 * PAGE;
    want(1, 1000);
    report(0, 0);
    cr_expect_geq(jobs[1].ends[1].share, 40 * PAGE);
    cr_expect_eq(jobs[1].refusals, 0);
}

Test(budget, a_job_that_needs_more_than_there_is_is_refused)
{
    add(0, 2);
    need(0, 300);
    want(0, 1000);
    settle();
    add(1, 2);
    need(1, 201);
    want(1, 1000);
    cr_expect_eq(jobs[0].refusals, 0);
    cr_expect_eq(jobs[1].refusals, 1);
    cr_expect_eq(jobs[1].refusal.needed, 402 * PAGE);
    cr_expect_eq(jobs[1].refusal.available, 400 * PAGE);
    cr_expect_not(jobs[1].refusal.is_late);
    settle();
    cr_expect_eq(jobs[1].refusals, 1); /* once */
    add(2, 1); /* before that has gone: what it needs is nobody's */
    need(2, 400);
    want(2, 400);
    settle();
    cr_expect_eq(jobs[2].refusals, 0);
    cr_expect_eq(jobs[2].ends[0].share, 400 * PAGE);
    leave(2);
    leave(1);
    cr_expect_eq(jobs[0].ends[0].share, 500 * PAGE);
    add(1, 2);
    need(1, 200);
    want(1, 1000);
    settle();
    cr_expect_eq(jobs[1].refusals, 0);
    cr_expect_eq(jobs[1].ends[0].share, 200 * PAGE);
}

/* Though it is the younger one. */
Test(budget, a_job_that_has_what_it_needs_is_not_refused_for_another_one)
{
    add(0, 1);
    want(0, 100);
    add(1, 1);
    need(1, 600);
    want(1, 600);
    settle();
    cr_expect_eq(jobs[1].ends[0].share, 600 * PAGE);
    need(0, 500);
    want(0, 500);
    cr_expect_eq(jobs[0].refusals, 1);
    cr_expect_eq(jobs[1].refusals, 0);
}

Test(budget, a_rank_that_needs_more_than_its_limit_is_refused_at_once)
{
    add(0, 1);
    want(0, 1000);
    add_limited(1, 2, 16 * PAGE);
    jobs[1].ends[1].needed = 34 * PAGE; /* of 1000 in all: there is enough */
    want(1, 600);
    cr_expect_eq(jobs[1].refusals, 1);
    cr_expect(jobs[1].refusal.is_limit);
    cr_expect_eq(jobs[1].refusal.needed, 34 * PAGE);
    cr_expect_eq(jobs[1].refusal.available, 16 * PAGE);
    settle();
    cr_expect_eq(jobs[1].refusals, 1); /* once */
    cr_expect_eq(jobs[0].refusals, 0);
    leave(1);
    add_limited(1, 2, 16 * PAGE);
    need(1, 16); /* just what it may lock */
    want(1, 600);
    settle();
    cr_expect_eq(jobs[1].refusals, 0);
    cr_expect_eq(jobs[1].ends[1].share, 16 * PAGE);
}

Test(budget, a_job_that_waits_in_vain_for_what_it_needs_is_refused)
{
    uint64_t next;

    add_beside_a_deaf_one();
    need(1, 10);
    want(1, 600);
    while ((next = chempi_budget_tick(&budget, now_ms)) != 0) {
        cr_assert_eq(jobs[1].refusals, 0);
        cr_assert_gt(next, now_ms);
        cr_assert_leq(next, 5 + CHEMPI_BUDGET_PATIENCE_MS);
        now_ms = next;
    }
    cr_expect_eq(now_ms, 5 + CHEMPI_BUDGET_PATIENCE_MS);
    cr_expect_eq(jobs[0].late, 1);
    cr_expect_eq(jobs[1].refusals, 1);
    cr_expect_eq(jobs[1].refusal.needed, 10 * PAGE);
    cr_expect_eq(jobs[1].refusal.available, 0);
    cr_expect(jobs[1].refusal.is_late);
}

/* Jobs come and go, ranks register and give back in any order. */
Test(budget, at_no_time_is_more_granted_than_there_is)
{
    srandom(7);
    for (int step = 0; step < 20000; step++) {
        uint32_t k = (uint32_t)random() % JOBS;
        uint32_t i;
        struct end *end;

        now_ms += (uint64_t)random() % 50;
        (void)chempi_budget_tick(&budget, now_ms);
        if (jobs[k].count == 0) {
            add(k, 1 + (uint32_t)random() % RANKS_MAX);
            continue;
        }
        if (random() % 40 == 0) {
            leave(k);
            continue;
        }
        i = (uint32_t)random() % jobs[k].count;
        end = &jobs[k].ends[i];
        if (random() % 4 == 0)
            end->wanted = (uint64_t)random() % 1200 * PAGE;
        if (random() % 16 == 0)
            end->needed = (uint64_t)random() % 100 * PAGE;
        if (end->used > end->share)
            end->used -= (uint64_t)random() % (end->used - end->share + 1);
        else if (end->share)
            end->used = (uint64_t)random() % (end->share + 1);
        report(k, i);
    }
}
