/* SPDX-License-Identifier: BSD-3-Clause */
/* The registrable memory of a node; see budget.h. */
#include "chempid/tree/nodes/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/invariant.h"
#include "common/base/sys.h"

#define PAGE UINT64_C(4096)

static struct chempi_budget_job *job_of(const struct chempi_list *entry)
{
    return CHEMPI_CONTAINER_OF((struct chempi_list *)(uintptr_t)entry,
                               struct chempi_budget_job, entry);
}

/* The i-th of those that have reported. */
static struct chempi_budget_rank *heard(const struct chempi_budget_job *job,
                                        uint32_t i)
{
    return &job->ranks[job->heard[i]];
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

        for (uint32_t i = 0; i < job->heard_count; i++)
            sum += heard(job, i)->granted;
    }
    return sum;
}

const char *chempi_budget_check(const struct chempi_budget *budget)
{
    if (chempi_budget_granted(budget) > budget->total)
        return "budget M1: more is granted than there is";
    CHEMPI_LIST_FOR (e, &budget->jobs) {
        const struct chempi_budget_job *job = job_of(e);

        for (uint32_t i = 0; i < job->heard_count; i++) {
            if (heard(job, i)->ordered > heard(job, i)->granted)
                return "budget M2: a rank was told more than is granted";
        }
    }
    return NULL;
}

static uint64_t unused(const struct chempi_budget *budget)
{
    uint64_t granted = chempi_budget_granted(budget);

    return budget->total - granted; /* M1 */
}

/* --- who should have how much --- */

static uint64_t plus(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* What a rank would take; nothing before it has said so. */
static uint64_t demand_of(const struct chempi_budget_rank *rank)
{
    return least(rank->last.wanted, rank->limit);
}

/* What it must have. */
static uint64_t need_of(const struct chempi_budget_rank *rank)
{
    return least(rank->last.needed, demand_of(rank));
}

/* The lesser of demand and level, but at least what is needed. */
static uint64_t part_of(uint64_t need, uint64_t demand, uint64_t level)
{
    return level < need ? need : least(demand, level);
}

static uint64_t need_of_job(const struct chempi_budget_job *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; !job->is_refused && i < job->heard_count; i++)
        sum = plus(sum, need_of(heard(job, i)));
    return sum;
}

static uint64_t demand_of_job(const struct chempi_budget_job *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; !job->is_refused && i < job->heard_count; i++)
        sum = plus(sum, demand_of(heard(job, i)));
    return sum;
}

static uint64_t sum_of_ranks(const void *arg, uint64_t level)
{
    const struct chempi_budget_job *job = arg;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < job->heard_count; i++) {
        const struct chempi_budget_rank *rank = heard(job, i);

        sum = plus(sum, part_of(need_of(rank), demand_of(rank), level));
    }
    return sum;
}

static uint64_t sum_of_jobs(const void *arg, uint64_t level)
{
    const struct chempi_budget *budget = arg;
    uint64_t sum = 0;

    for (const struct chempi_list *e = budget->jobs.next; e != &budget->jobs;
         e = e->next) {
        const struct chempi_budget_job *job = job_of(e);

        sum = plus(sum, part_of(need_of_job(job), demand_of_job(job), level));
    }
    return sum;
}

/*
 * The highest level, up to `total`, at which what all together get does not
 * exceed the total: everybody gets the lesser of demand and level, but what it
 * needs. 0 also when the needs alone exceed it.
 */
static uint64_t level_of(uint64_t (*sum)(const void *, uint64_t),
                         const void *arg, uint64_t total)
{
    uint64_t low = 0;
    uint64_t high = total;

    while (low < high) {
        uint64_t middle = high - (high - low) / 2;

        if (sum(arg, middle) <= total)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint64_t level_of_ranks(const struct chempi_budget_job *job,
                               uint64_t job_level)
{
    return level_of(sum_of_ranks, job,
                    part_of(need_of_job(job), demand_of_job(job), job_level));
}

static uint64_t target_of(const struct chempi_budget_rank *rank, uint64_t level)
{
    return part_of(need_of(rank), demand_of(rank), level) & ~(PAGE - 1);
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

/* Ask back what is above the targets. */
static void shrink(struct chempi_budget_job *job, uint64_t level,
                   uint64_t now_ms)
{
    for (uint32_t i = 0; i < job->heard_count; i++) {
        struct chempi_budget_rank *rank = heard(job, i);
        uint64_t target = target_of(rank, level);

        if (target < rank->granted && target != rank->ordered)
            order(job, job->heard[i], target, now_ms);
        else if (target >= rank->granted && rank->ordered < rank->granted)
            order(job, job->heard[i], rank->granted,
                  now_ms); /* it may keep it */
    }
}

static void grow(struct chempi_budget_job *job, uint64_t level, uint64_t *left,
                 uint32_t *below, uint64_t now_ms)
{
    for (uint32_t i = 0; i < job->heard_count; i++) {
        struct chempi_budget_rank *rank = heard(job, i);
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
        order(job, job->heard[i], rank->granted, now_ms);
    }
}

static uint32_t count_below(const struct chempi_budget_job *job, uint64_t level)
{
    uint32_t below = 0;

    for (uint32_t i = 0; i < job->heard_count; i++)
        below += target_of(heard(job, i), level) > heard(job, i)->granted;
    return below;
}

/* Give what is free to those below their targets. */
static void grow_all(struct chempi_budget *budget, uint64_t job_level,
                     uint64_t now_ms)
{
    uint64_t left = unused(budget);
    uint32_t below = 0;

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        const struct chempi_budget_job *job = job_of(e);

        if (!job->is_refused)
            below += count_below(job, level_of_ranks(job, job_level));
    }
    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        if (below > 0 && !job->is_refused)
            grow(job, level_of_ranks(job, job_level), &left, &below, now_ms);
    }
}

static void balance(struct chempi_budget *budget, uint64_t now_ms)
{
    uint64_t job_level = level_of(sum_of_jobs, budget, budget->total);

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        if (!job->is_refused)
            shrink(job, level_of_ranks(job, job_level), now_ms);
    }
    grow_all(budget, 0, now_ms); /* what is needed comes first */
    grow_all(budget, job_level, now_ms);
}

/* --- what jobs need --- */

/* Has every rank that has asked what it needs? */
static bool is_served(const struct chempi_budget_job *job)
{
    for (uint32_t i = 0; !job->is_refused && i < job->heard_count; i++)
        if (heard(job, i)->granted < (need_of(heard(job, i)) & ~(PAGE - 1)))
            return false;
    return true;
}

static uint64_t granted_to(const struct chempi_budget_job *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < job->heard_count; i++)
        sum += heard(job, i)->granted;
    return sum;
}

static void refuse_for(struct chempi_budget_job *job,
                       const struct chempi_budget_refusal *refusal)
{
    job->is_refused = true;
    job->patience_ms = 0;
    job->refuse(job->arg, refusal);
}

static void refuse(struct chempi_budget *budget, struct chempi_budget_job *job,
                   bool is_late)
{
    struct chempi_budget_refusal refusal = {.needed = need_of_job(job),
                                            .available = budget->total,
                                            .is_late = is_late};

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        const struct chempi_budget_job *other = job_of(e);
        uint64_t has = is_late ? granted_to(other) : need_of_job(other);

        if (other != job)
            refusal.available -= least(refusal.available, has);
    }
    refuse_for(job, &refusal);
}

/* A rank that needs more than it may ever have waits in vain. */
static void refuse_limited(struct chempi_budget_job *job)
{
    for (uint32_t i = 0; !job->is_refused && i < job->heard_count; i++) {
        const struct chempi_budget_rank *rank = heard(job, i);

        if (rank->last.needed > rank->limit)
            refuse_for(job, &(struct chempi_budget_refusal){
                                .needed = rank->last.needed,
                                .available = rank->limit,
                                .is_limit = true});
    }
}

/* M4: of those that have not what they need, the youngest must go. */
void chempi_budget_settle(struct chempi_budget *budget, uint64_t now_ms)
{
    struct chempi_list *e = budget->jobs.prev;

    if (!budget->is_due)
        return;
    budget->is_due = false;
    CHEMPI_LIST_FOR (node, &budget->jobs)
        refuse_limited(job_of(node));
    while (sum_of_jobs(budget, 0) > budget->total && e != &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        e = e->prev;
        if (!is_served(job))
            refuse(budget, job, false);
    }
    balance(budget, now_ms);
    CHEMPI_LIST_FOR (node, &budget->jobs) {
        struct chempi_budget_job *job = job_of(node);

        if (is_served(job))
            job->patience_ms = 0;
        else if (!job->patience_ms)
            job->patience_ms = now_ms + CHEMPI_BUDGET_PATIENCE_MS;
    }
    CHEMPI_CHECK(chempi_budget_check(budget));
}

/* --- jobs come and go --- */

static void free_ranks(struct chempi_budget_job *job)
{
    free(job->ranks);
    free(job->heard);
    job->ranks = NULL;
    job->heard = NULL;
    job->rank_count = job->heard_count = 0;
}

int chempi_budget_add(struct chempi_budget *budget,
                      struct chempi_budget_job *job, const uint32_t *worlds,
                      uint32_t count, uint64_t limit)
{
    if (budget->total == CHEMPI_BUDGET_NONE || count == 0)
        return 0;
    job->ranks = chempi_sys->calloc(count, sizeof(*job->ranks));
    job->heard = chempi_sys->calloc(count, sizeof(*job->heard));
    if (!job->ranks || !job->heard) {
        free_ranks(job);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++)
        job->ranks[i] =
            (struct chempi_budget_rank){.world = worlds[i], .limit = limit};
    job->rank_count = count;
    chempi_list_append(&budget->jobs, &job->entry);
    return 0;
}

void chempi_budget_remove(struct chempi_budget *budget,
                          struct chempi_budget_job *job)
{
    if (job->rank_count == 0)
        return;
    chempi_list_remove(&job->entry);
    free_ranks(job);
    budget->is_due = true;
}

/* --- reports --- */

/* M2; true: to what was ordered last. */
static bool obeys(struct chempi_budget_rank *rank,
                  const struct chempi_budget_report *report)
{
    const uint32_t serial = rank->last.serial;

    rank->last = *report;
    rank->last.serial = serial;
    return report->serial == serial && report->held < rank->granted;
}

int chempi_budget_take(struct chempi_budget *budget,
                       struct chempi_budget_job *job, uint32_t local,
                       const struct chempi_budget_report *report)
{
    struct chempi_budget_rank *rank;

    if (local >= job->rank_count)
        return -EINVAL;
    rank = &job->ranks[local];
    if (!rank->has_reported)
        job->heard[job->heard_count++] = local; /* M5 */
    rank->has_reported = true;
    budget->is_due = true;
    if (!obeys(rank, report))
        return 0;
    rank->granted = report->held;
    if (rank->ordered >= rank->granted) {
        rank->ordered = rank->granted;
        rank->due_ms = 0;
        rank->is_late = false;
    }
    return 0;
}

/* The earlier of two times, of which 0 is none. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

/* Returns when the next rank of it is due. */
static uint64_t find_late(struct chempi_budget_job *job, uint64_t now_ms)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i < job->heard_count; i++) {
        struct chempi_budget_rank *rank = heard(job, i);

        if (!rank->due_ms || rank->is_late)
            continue;
        if (rank->due_ms <= now_ms) {
            rank->is_late = true;
            job->late(job->arg, rank);
        } else {
            next = earlier(rank->due_ms, next);
        }
    }
    return next;
}

uint64_t chempi_budget_tick(struct chempi_budget *budget, uint64_t now_ms)
{
    uint64_t next = 0;

    CHEMPI_LIST_FOR (e, &budget->jobs) {
        struct chempi_budget_job *job = job_of(e);

        next = earlier(find_late(job, now_ms), next);
        if (job->patience_ms && job->patience_ms <= now_ms)
            refuse(budget, job, true);
        next = earlier(job->patience_ms, next);
    }
    return next;
}
