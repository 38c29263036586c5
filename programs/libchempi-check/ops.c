/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The promise of accumulate_ops: that accumulates which meet at an address use
 * the same operation. Each rank shows, in a window of the checker's, which
 * operation is under way where: a word for each of SLOTS classes of
 * displacements. Of an operation the first element counts.
 *
 *   A1  a word says nothing or: how many origins use this operation at this
 *       displacement, and one of them or that it is not known
 *   A2  an origin has shown an operation before it begins, and takes that back
 *       before it completes it: what is told was under way at one time
 *   A3  an origin is counted once in a word; the lock is held while words are
 *       changed, so that who completes operations finds those of all threads
 *       taken back. Who holds it waits for nothing but the target's progress.
 */
#include <stdio.h>
#include <stdlib.h>

#include "programs/libchempi-check/windows.h"

enum { SLOTS = 512, UNKNOWN_RANK = 0xffff };

#define PLACES (UINT64_C(1) << 28)

struct shown {
    struct shown *next;
    int target;
    uint32_t slot;
    uint64_t op;
};

struct check_ops {
    MPI_Win words;
    uint64_t *memory;
    bool is_strict;
    pthread_mutex_t lock; /* A3; of all below */
    bool is_over;         /* nothing more is shown or told */
    struct shown *shown;
};

/* A word: 28 bits of the displacement, 8 of the operation, 16 of a rank, 12 of
 * the count. */
#define COUNT(word) ((word)&0xfffu)
#define RANK(word) ((word) >> 12 & 0xffffu)
#define OP(word) ((word) >> 28 & 0xffu)
#define PLACE(word) ((word) >> 36)

static uint64_t word_of(MPI_Aint disp, uint64_t op, int rank)
{
    const uint64_t origin =
        (uint64_t)(rank < UNKNOWN_RANK ? rank : UNKNOWN_RANK);

    return (uint64_t)disp / SLOTS << 36 | (op & 0xffu) << 28 | origin << 12 | 1;
}

/* One origin more, or less: the rank is that of the newest, if it is there. */
static uint64_t count_rank(uint64_t word, int64_t change, uint64_t rank)
{
    return ((word & ~(UINT64_C(0xffff) << 12)) | rank << 12) + (uint64_t)change;
}

static void lock_ops(struct check_ops *ops)
{
    if (check_has_threads)
        (void)pthread_mutex_lock(&ops->lock);
}

static void unlock_ops(struct check_ops *ops)
{
    if (check_has_threads)
        (void)pthread_mutex_unlock(&ops->lock);
}

void check_ops_begin(struct check_window *w, bool is_strict)
{
    struct check_ops *ops = calloc(1, sizeof(*ops));
    MPI_Info info;

    if (!ops)
        check_fail("there is no memory for the check of a window");
    ops->is_strict = is_strict;
    (void)pthread_mutex_init(&ops->lock, NULL);
    (void)PMPI_Info_create(&info);
    (void)PMPI_Info_set(info, "mpi_accumulate_granularity", "8");
    (void)PMPI_Win_allocate(SLOTS * sizeof(*ops->memory), sizeof(*ops->memory),
                            info, w->shadow, &ops->memory, &ops->words);
    (void)PMPI_Info_free(&info);
    for (int i = 0; i < SLOTS; i++)
        ops->memory[i] = 0;
    (void)PMPI_Win_lock_all(0, ops->words);
    (void)PMPI_Barrier(w->shadow);
    w->ops = ops;
}

void check_ops_end(struct check_window *w)
{
    if (!w->ops)
        return;
    check_ops_over(w, CHECK_ALL_TARGETS);
    (void)PMPI_Win_unlock_all(w->ops->words);
    (void)PMPI_Win_free(&w->ops->words);
    (void)pthread_mutex_destroy(&w->ops->lock);
    free(w->ops);
    w->ops = NULL;
}

static uint64_t read_word(const struct check_ops *ops, int target,
                          uint32_t slot)
{
    uint64_t word = 0;

    (void)PMPI_Fetch_and_op(NULL, &word, MPI_UINT64_T, target, slot, MPI_NO_OP,
                            ops->words);
    (void)PMPI_Win_flush(target, ops->words);
    return word;
}

/* False: it was another one, which *old is then. */
static bool change_word(const struct check_ops *ops, int target, uint32_t slot,
                        uint64_t *old, uint64_t word)
{
    const uint64_t expected = *old;

    (void)PMPI_Compare_and_swap(&word, &expected, old, MPI_UINT64_T, target,
                                slot, ops->words);
    (void)PMPI_Win_flush(target, ops->words);
    return *old == expected;
}

static void tell(const struct check_call *call, struct check_window *w,
                 int target, MPI_Aint disp, uint64_t op, uint64_t word)
{
    char words[MPI_MAX_OBJECT_NAME];
    char site[CHECK_WORDS];
    char other[32] = "another rank";

    w->ops->is_over = true;
    if (RANK(word) != UNKNOWN_RANK)
        (void)snprintf(other, sizeof(other), "rank %d", (int)RANK(word));
    check_report("%s accumulates with %s at displacement %lld of rank %d of "
                 "%s while %s does so with %s, but accumulate_ops "
                 "promises %s",
                 check_site_words(&call->site, site, sizeof(site)),
                 check_op_name(op), (long long)disp, target,
                 check_window_words(w, words, sizeof(words)), other,
                 check_op_name(OP(word)),
                 w->ops->is_strict ? "same_op" : "same_op_no_op");
}

static uint64_t without(uint64_t word, int rank)
{
    if (COUNT(word) <= 1)
        return 0;
    return count_rank(word, -1,
                      RANK(word) == (uint64_t)rank ? UNKNOWN_RANK : RANK(word));
}

static void take_back(const struct check_window *w, const struct shown *s)
{
    uint64_t old = read_word(w->ops, s->target, s->slot);

    while (
        !change_word(w->ops, s->target, s->slot, &old, without(old, w->rank)))
        ;
}

/* A1. False: it cannot be shown. */
static bool show(const struct check_call *call, struct check_window *w,
                 const struct shown *s, MPI_Aint disp)
{
    const uint64_t mine = word_of(disp, s->op, w->rank);
    uint64_t old = read_word(w->ops, s->target, s->slot);

    for (;;) {
        uint64_t word = mine;

        if (COUNT(old) && PLACE(old) != PLACE(mine))
            return false;
        if (COUNT(old) && OP(old) != OP(mine)) {
            tell(call, w, s->target, disp, s->op, old);
            return false;
        }
        if (COUNT(old) == COUNT(UINT64_MAX))
            return false;
        if (COUNT(old))
            word = count_rank(old, 1, RANK(mine));
        if (change_word(w->ops, s->target, s->slot, &old, word))
            return true;
    }
}

/* An operation of this process's that is shown is in the list. */
static void add_shown(const struct check_call *call, struct check_window *w,
                      const struct shown *given, MPI_Aint disp)
{
    struct shown **at = &w->ops->shown;
    struct shown *s;

    while (*at &&
           ((*at)->target != given->target || (*at)->slot != given->slot))
        at = &(*at)->next;
    s = *at;
    if (s && s->op == given->op)
        return;
    if (s) { /* those of one origin are in order */
        *at = s->next;
        take_back(w, s);
    } else {
        s = calloc(1, sizeof(*s));
    }
    if (!s)
        return; /* it is not watched */
    *s = *given;
    s->next = w->ops->shown;
    if (show(call, w, s, disp))
        w->ops->shown = s;
    else
        free(s);
}

void check_ops_add(const struct check_call *call, struct check_window *w,
                   int target, MPI_Aint disp, MPI_Op op)
{
    const struct shown s = {.target = target,
                            .slot = (uint32_t)((uint64_t)disp % SLOTS),
                            .op = (uintptr_t)op};
    struct check_ops *ops = w->ops;

    if (!ops || disp < 0 || (uint64_t)disp / SLOTS >= PLACES ||
        (op == MPI_NO_OP && !ops->is_strict))
        return;
    lock_ops(ops);
    if (!ops->is_over)
        add_shown(call, w, &s, disp);
    unlock_ops(ops);
}

void check_ops_stop(struct check_window *w)
{
    if (!w->ops)
        return;
    lock_ops(w->ops);
    w->ops->is_over = true;
    unlock_ops(w->ops);
}

/* A2 */
void check_ops_over(struct check_window *w, int target)
{
    struct shown **at;

    if (!w->ops)
        return;
    lock_ops(w->ops);
    at = &w->ops->shown;
    while (*at) {
        struct shown *s = *at;

        if (target != CHECK_ALL_TARGETS && s->target != target) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        take_back(w, s);
        free(s);
    }
    unlock_ops(w->ops);
}
