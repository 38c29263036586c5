/* SPDX-License-Identifier: BSD-3-Clause */
/* The registrable memory of a node; see budget.h. */
#include "chempid/budget.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#define PAGE UINT64_C(4096)

static struct chempi_budget_job *job_of(const struct chempi_list *entry)
{
    return CHEMPI_CONTAINER_OF((struct chempi_list *)(uintptr_t)entry,
                               struct chempi_budget_job, entry);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void chempi_budget_init(struct chempi_budget *budget, uint64_t total)
{
    budget->total = total == CHEMPI_BUDGET_NONE ? total : total & ~(PAGE - 1);
    chempi_list_init(&budget->jobs);
}

uint64_t chempi_budget_default(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);

    if (pages <= 0 || size <= 0)
        return CHEMPI_BUDGET_NONE;
    return (uint64_t)pages / 2 * (uint64_t)size;
}

uint64_t chempi_budget_limit(uint32_t uid)
{
    struct rlimit limit;

    if (uid == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return CHEMPI_BUDGET_NONE;
    return (uint64_t)limit.rlim_cur & ~(PAGE - 1);
}

uint64_t chempi_budget_granted(const struct chempi_budget *budget)
{
    uint64_t sum = 0;

    for (const struct chempi_list *e = budget->jobs.next; e != &budget->jobs;
         e = e->next) {
        const struct chempi_budget_job *job = job_of(e);

        for (uint32_t i = 0; i < job->rank_count; i++)
            sum += job->ranks[i].granted;
    }
    return sum;
}

static uint64_t unused(const struct chempi_budget *budget)
{
    uint64_t granted = chempi_budget_granted(budget);

    assert(granted <= budget->total); /* M1 */
    return budget->total - granted;
}

/* --- who should have how much --- */

/* What a rank would take; nothing before it has said so. */
static uint64_t demand_of(const struct chempi_budget_rank *rank)
{
    return least(rank->last.wanted, rank->limit);
}

/*
 * The level to which `count` demands are filled from `total`: everybody gets
 * the lesser of demand and level. Found in at most `count` rounds: who asks
 * for less than the level leaves the rest to be divided again.
 */
struct level {
    uint64_t bytes;
    uint64_t left;  /* not yet given to those below the level */
    uint32_t count; /* above it */
};

static void begin_level(struct level *level, uint64_t total, uint32_t count)
{
    *level = (struct level){
        .bytes = count ? total / count : 0, .left = total, .count = count};
}

/* After a round that found `count` demands of `sum` bytes below the level.
 * True: look again. */
static bool raise_level(struct level *level, uint64_t total, uint32_t all,
                        uint64_t sum, uint32_t count)
{
    uint64_t bytes;

    level->left = total - sum;
    level->count = all - count;
    if (level->count == 0)
        return false;
    bytes = level->left / level->count;
    if (bytes <= level->bytes)
        return false;
    level->bytes = bytes;
    return true;
}

static uint64_t level_of_ranks(const struct chempi_budget_job *job,
                               uint64_t total)
{
    struct level level;
    uint64_t sum;
    uint32_t count;

    begin_level(&level, total, job->rank_count);
    do {
        sum = 0;
        count = 0;
        for (uint32_t i = 0; i < job->rank_count; i++) {
            uint64_t demand = demand_of(&job->ranks[i]);

            if (demand > level.bytes)
                continue;
            sum += demand;
            count++;
        }
    } while (raise_level(&level, total, job->rank_count, sum, count));
    return level.bytes;
}

static uint64_t demand_of_job(const struct chempi_budget_job *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < job->rank_count; i++) {
        uint64_t demand = demand_of(&job->ranks[i]);

        sum = demand > UINT64_MAX - sum ? UINT64_MAX : sum + demand;
    }
    return sum;
}

static uint64_t level_of_jobs(const struct chempi_budget *budget)
{
    struct level level;
    uint32_t all = 0;
    uint64_t sum;
    uint32_t count;

    CHEMPI_LIST_FOR (e, (struct chempi_list *)(uintptr_t)&budget->jobs)
        all++;
    begin_level(&level, budget->total, all);
    do {
        sum = 0;
        count = 0;
        for (const struct chempi_list *e = budget->jobs.next;
             e != &budget->jobs; e = e->next) {
            uint64_t demand = demand_of_job(job_of(e));

            if (demand > level.bytes)
                continue;
            sum += demand;
            count++;
        }
    } while (raise_level(&level, budget->total, all, sum, count));
    return level.bytes;
}

static uint64_t target_of(const struct chempi_budget_rank *rank, uint64_t level)
{
    return least(demand_of(rank), level) & ~(PAGE - 1);
}

/* --- orders --- */

static void order(struct chempi_budget_job *job, uint32_t local, uint64_t bytes,
                  uint64_t now_ms)
{
    struct chempi_budget_rank *rank = &job->ranks[local];
    uint32_t deadline_ms = 0;

    rank->ordered = bytes;
    if (bytes < rank->granted) {
        if (!rank->due_ms)
            rank->due_ms = now_ms + CHEMPI_BUDGET_DEADLINE_MS;
        deadline_ms =
            rank->due_ms > now_ms ? (uint32_t)(rank->due_ms - now_ms) : 1;
    } else {
        rank->due_ms = 0;
        rank->is_late = false;
    }
    job->send(job->arg, local, bytes, deadline_ms, ++rank->last.serial);
}

/* Ask back what is above the targets; count who is below. */
static uint32_t shrink(struct chempi_budget_job *job, uint64_t level,
                       uint64_t now_ms)
{
    uint32_t below = 0;

    for (uint32_t i = 0; i < job->rank_count; i++) {
        struct chempi_budget_rank *rank = &job->ranks[i];
        uint64_t target = target_of(rank, level);

        if (target < rank->granted && target != rank->ordered)
            order(job, i, target, now_ms);
        else if (target >= rank->granted && rank->ordered < rank->granted)
            order(job, i, rank->granted, now_ms); /* it may keep it */
        below += target > rank->granted;
    }
    return below;
}

static void grow(struct chempi_budget_job *job, uint64_t level, uint64_t *left,
                 uint32_t *below, uint64_t now_ms)
{
    for (uint32_t i = 0; i < job->rank_count; i++) {
        struct chempi_budget_rank *rank = &job->ranks[i];
        uint64_t target = target_of(rank, level);
        uint64_t more;

        if (target <= rank->granted)
            continue;
        more = least(target - rank->granted, *left / *below) & ~(PAGE - 1);
        --*below;
        if (more == 0)
            continue;
        rank->granted += more;
        *left -= more;
        order(job, i, rank->granted, now_ms);
    }
}

static void balance(struct chempi_budget *budget, uint64_t now_ms)
{
    uint64_t job_level = level_of_jobs(budget);
    uint64_t left = unused(budget);
    uint32_t below = 0;

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        below += shrink(job, level_of_ranks(job, job_level), now_ms);
    }
    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        if (below > 0)
            grow(job, level_of_ranks(job, job_level), &left, &below, now_ms);
    }
}

/* --- jobs come and go --- */

int chempi_budget_add(struct chempi_budget *budget,
                      struct chempi_budget_job *job, const uint32_t *worlds,
                      uint32_t count, uint64_t limit)
{
    if (budget->total == CHEMPI_BUDGET_NONE || count == 0)
        return 0;
    job->ranks = chempi_sys->calloc(count, sizeof(*job->ranks));
    if (!job->ranks)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        job->ranks[i] =
            (struct chempi_budget_rank){.world = worlds[i], .limit = limit};
    job->rank_count = count;
    chempi_list_append(&budget->jobs, &job->entry);
    return 0;
}

void chempi_budget_remove(struct chempi_budget *budget,
                          struct chempi_budget_job *job, uint64_t now_ms)
{
    if (job->rank_count == 0)
        return;
    chempi_list_remove(&job->entry);
    free(job->ranks);
    job->ranks = NULL;
    job->rank_count = 0;
    balance(budget, now_ms);
}

/* --- reports --- */

int chempi_budget_take(struct chempi_budget *budget,
                       struct chempi_budget_job *job, uint32_t local,
                       const struct chempi_budget_report *report,
                       uint64_t now_ms)
{
    struct chempi_budget_rank *rank;
    uint32_t serial;

    if (local >= job->rank_count)
        return -EINVAL;
    rank = &job->ranks[local];
    serial = rank->last.serial;
    rank->last = *report;
    rank->last.serial = serial;
    if (report->serial == serial && report->held < rank->granted) {
        rank->granted = report->held; /* M2 */
        if (rank->ordered >= rank->granted) {
            rank->ordered = rank->granted;
            rank->due_ms = 0;
            rank->is_late = false;
        }
    }
    balance(budget, now_ms);
    return 0;
}

uint64_t chempi_budget_tick(struct chempi_budget *budget, uint64_t now_ms)
{
    uint64_t next = 0;

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        for (uint32_t i = 0; i < job->rank_count; i++) {
            struct chempi_budget_rank *rank = &job->ranks[i];

            if (!rank->due_ms || rank->is_late)
                continue;
            if (rank->due_ms <= now_ms) {
                rank->is_late = true;
                job->late(job->arg, rank);
            } else if (!next || rank->due_ms < next) {
                next = rank->due_ms;
            }
        }
    }
    return next;
}
