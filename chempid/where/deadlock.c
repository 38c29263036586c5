/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlocks of jobs that are checked; see deadlock.h. */
#include "chempid/where/deadlock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

#define NEAR_S 2.0  /* of quiet, among ranks of one node */
#define FAR_S 10.0  /* where connections and gateways may be slow */
#define EVERY_S 1.0 /* between looks, at most */
#define LEAST_S 0.05
#define ANSWER_S 0.5 /* for the answers to one, at least */
#define MEMBERS 6u   /* of a circle that are told with their calls */
#define WORDS 150    /* bytes of a call */
#define TAIL 160     /* bytes behind the members */

/* ---- who is stuck -------------------------------------------------------- */

static void note(struct chempi_deadlock *d, const struct chempi_wait_summary *p)
{
    for (uint32_t i = 0; i < p->spec->size; i++) {
        if (p->moves[i] == 0)
            d->same[i] = 0;
        else if (p->moves[i] != d->moves[i])
            d->same[i] = 1;
        else if (d->same[i] < d->looks)
            d->same[i]++;
        d->moves[i] = p->moves[i];
        d->is_stuck[i] = d->same[i] == d->looks;
    }
}

/* The first rank that this one waits for and that does not help it; size: it
 * may be helped. */
static uint32_t next_of(const struct chempi_deadlock *d,
                        const struct chempi_wait_summary *p, uint32_t rank)
{
    const struct chempi_wait_summary_edges *e = &p->edges[rank];

    for (uint32_t i = 0; i < e->count; i++)
        if (d->is_stuck[e->ranks[i]] ||
            chempi_wait_summary_is_over(p, e->ranks[i]))
            return e->ranks[i];
    return p->spec->size;
}

/* True: it was taken for stuck, and is not. */
static bool release(struct chempi_deadlock *d,
                    const struct chempi_wait_summary *p, uint32_t rank,
                    bool can_choose)
{
    const bool is_helped = p->edges[rank].count
                               ? next_of(d, p, rank) == p->spec->size
                               : !can_choose;

    if (!d->is_stuck[rank] || !is_helped)
        return false;
    d->is_stuck[rank] = false;
    return true;
}

/* What is left fulfils D2. Both ways, as ranks often wait for those next to
 * them. */
static void release_all(struct chempi_deadlock *d,
                        const struct chempi_wait_summary *p, bool can_choose)
{
    const uint32_t size = p->spec->size;
    bool has_changed = true;

    while (has_changed) {
        has_changed = false;
        for (uint32_t i = 0; i < size; i++)
            has_changed |= release(d, p, i, can_choose);
        for (uint32_t i = size; i-- > 0;)
            has_changed |= release(d, p, i, can_choose);
    }
}

static bool are_all(const struct chempi_deadlock *d,
                    const struct chempi_wait_summary *p)
{
    for (uint32_t i = 0; i < p->spec->size; i++)
        if (!d->is_stuck[i] && !chempi_wait_summary_is_over(p, i))
            return false;
    return true;
}

bool chempi_deadlock_look(struct chempi_deadlock *d,
                          const struct chempi_wait_summary *places)
{
    note(d, places);
    release_all(d, places, true);
    if (!are_all(d, places))
        release_all(d, places, false);
    for (uint32_t i = 0; i < places->spec->size; i++)
        if (d->is_stuck[i])
            return true;
    return false;
}

/* ---- words --------------------------------------------------------------- */

/* Of what is put in pieces; what has no room is cut off. */
struct text {
    char *out;
    size_t len;
    size_t at;
};

static void CHEMPI_PRINTF(2, 3) put(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(t->out + t->at, t->len - t->at, fmt, args);
    va_end(args);
    if (n > 0)
        t->at += (size_t)n < t->len - t->at ? (size_t)n : t->len - t->at - 1;
}

/* A stuck rank that waits for certain others, if there is one. */
static uint32_t first_of(const struct chempi_deadlock *d,
                         const struct chempi_wait_summary *p)
{
    uint32_t first = p->spec->size;

    for (uint32_t i = p->spec->size; i-- > 0;)
        if (d->is_stuck[i] && (p->edges[i].count || first == p->spec->size ||
                               p->edges[first].count == 0))
            first = i;
    return first;
}

/* The lowest rank of the circle that the way from this one leads into; size:
 * the way ends with one that does not wait for any one rank. */
static uint32_t find_circle(const struct chempi_deadlock *d,
                            const struct chempi_wait_summary *p, uint32_t rank)
{
    const uint32_t size = p->spec->size;
    uint32_t lowest;

    for (uint32_t i = 0; i < size && rank < size; i++)
        rank = next_of(d, p, rank); /* so many steps are enough */
    lowest = rank;
    if (rank == size)
        return size;
    for (uint32_t at = next_of(d, p, rank); at != rank; at = next_of(d, p, at))
        lowest = at < lowest ? at : lowest;
    return lowest;
}

static void put_member(struct text *t, const struct chempi_wait_summary *p,
                       uint32_t rank)
{
    const char *words = chempi_wait_summary_words(p, rank);

    if (chempi_wait_summary_is_over(p, rank))
        put(t, "rank %u, which has ended", rank);
    else
        put(t, "rank %u%s%.*s", rank, *words ? ", in " : "", WORDS, words);
}

/* Is it one that a buffer would let go on? */
static bool is_sending(const struct chempi_wait_summary *p, uint32_t rank)
{
    return strncmp(chempi_wait_summary_words(p, rank), "MPI_Send ", 9) == 0;
}

/* From rank to rank, until the first one comes again or nobody follows. True:
 * one of them is in MPI_Send. */
static bool put_way(struct text *t, const struct chempi_deadlock *d,
                    const struct chempi_wait_summary *p, uint32_t first)
{
    bool has_send = false;
    uint32_t rank = first;
    uint32_t left = 0;

    for (uint32_t i = 0; i < p->spec->size; i++) {
        const bool has_room = i < MEMBERS && t->at + WORDS + TAIL < t->len;

        if (has_room) {
            put(t, "%s", i ? " -> " : "");
            put_member(t, p, rank);
        }
        left += !has_room;
        has_send |= is_sending(p, rank);
        rank = next_of(d, p, rank);
        if (rank == first || rank == p->spec->size)
            break;
    }
    if (left)
        put(t, " -> %u more", left);
    if (rank == first)
        put(t, " -> rank %u", first);
    return has_send;
}

void chempi_deadlock_put(const struct chempi_deadlock *d,
                         const struct chempi_wait_summary *places, char *out,
                         size_t len)
{
    struct text t = {.out = out, .len = len};
    const uint32_t first = first_of(d, places);
    const uint32_t circle = find_circle(d, places, first);
    const bool is_circle = circle < places->spec->size;

    put(&t, "deadlock: ");
    if (!is_circle)
        put(&t, "%s go on: ",
            are_all(d, places) ? "no rank can" : "some ranks cannot");
    if (put_way(&t, d, places, is_circle ? circle : first))
        put(&t, "; MPI_Send may wait until its message is received, and "
                "with --check it does");
    put(&t, "; the job was ended");
}

/* ---- looking ------------------------------------------------------------- */

static void watched(void *arg, const struct chempi_wait_summary *places)
{
    struct chempi_deadlock *d = arg;
    const bool was_likely = d->is_likely;
    char text[CHEMPI_TEXT_MAX];

    d->is_likely = chempi_deadlock_look(d, places);
    if (!d->is_likely || !was_likely)
        return;
    ev_timer_stop(d->query->loop, &d->timer);
    chempi_deadlock_put(d, places, text, sizeof(text));
    d->found(d->arg, text);
}

static void look(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_deadlock *d = w->data;

    (void)loop;
    (void)events;
    chempi_wait_query_watch(d->query, d->limit_s,
                            d->is_likely ? CHEMPI_WAIT_PLACE : CHEMPI_WAIT_CALL,
                            watched, d);
}

static bool is_on_one_node(const struct chempi_spec *spec)
{
    for (uint32_t i = 1; i < spec->size; i++)
        if (spec->node_of_rank[i] != spec->node_of_rank[0])
            return false;
    return true;
}

/* How often, and how many looks the time of D1 takes. */
static double pace(struct chempi_deadlock *d, double quiet_s)
{
    double every_s;

    if (quiet_s <= 0)
        quiet_s = is_on_one_node(d->query->spec) ? NEAR_S : FAR_S;
    every_s = quiet_s / 2 < EVERY_S ? quiet_s / 2 : EVERY_S;
    if (every_s < LEAST_S)
        every_s = LEAST_S;
    d->limit_s = every_s > ANSWER_S ? every_s : ANSWER_S;
    d->looks = 1 + (uint32_t)(quiet_s / every_s + 0.999);
    return every_s;
}

void chempi_deadlock_open(struct chempi_deadlock *d,
                          struct chempi_wait_query *query, double quiet_s,
                          chempi_deadlock_found *found, void *arg)
{
    const uint32_t size = query->spec->size;
    double every_s;

    *d = (struct chempi_deadlock){
        .query = query,
        .found = found,
        .arg = arg,
        .moves = chempi_sys->calloc(size, sizeof(*d->moves)),
        .same = chempi_sys->calloc(size, sizeof(*d->same)),
        .is_stuck = chempi_sys->calloc(size, sizeof(*d->is_stuck)),
    };
    if (!d->moves || !d->same || !d->is_stuck) {
        chempi_deadlock_close(d);
        return;
    }
    every_s = pace(d, quiet_s);
    ev_timer_init(&d->timer, look, every_s, every_s);
    d->timer.data = d;
    ev_timer_start(query->loop, &d->timer);
}

void chempi_deadlock_close(struct chempi_deadlock *d)
{
    if (d->query)
        ev_timer_stop(d->query->loop, &d->timer);
    free(d->moves);
    free(d->same);
    free(d->is_stuck);
    *d = (struct chempi_deadlock){0};
}
