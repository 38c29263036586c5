/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the ranks of a node wait (doc/where.md): their supervisor asks them
 * when the launcher wants to know, and tells what has been answered as soon as
 * all have, or when the time for it is over. A rank that is not in an MPI call
 * does not hear the question, and answers late or never; what comes when
 * nobody asks is dropped.
 */
#include <errno.h>
#include <string.h>

#include "chempid/supervisor/super.h"

#define LIMIT_MAX_MS 3600000u

/* One whose connection breaks most probably ends: how, is to be known first. */
static bool is_due(const struct chempi_rank *rank)
{
    return rank->is_sought && rank->pid > 0 &&
           rank->phase != CHEMPI_PHASE_FINALIZED;
}

/* What is known of a rank; its text, if any, is in rank->here. */
static enum chempi_here place_of(const struct chempi_rank *rank)
{
    if (rank->here_kind)
        return (enum chempi_here)rank->here_kind;
    if (rank->pid <= 0)
        return CHEMPI_HERE_ENDED;
    if (rank->phase == CHEMPI_PHASE_FINALIZED)
        return CHEMPI_HERE_FINALIZED;
    return rank->phase == CHEMPI_PHASE_FRESH ? CHEMPI_HERE_FRESH
                                             : CHEMPI_HERE_SILENT;
}

/* Bytes of a rank in PLACES, without its site. */
static size_t len_of(const struct chempi_rank *rank)
{
    return 4 + 1 + 4 + strlen(rank->here) + 1 + 4 + 1 + 8 + 4 +
           (size_t)rank->for_count * 4;
}

static void put_rank(struct chempi_writer *w, const struct chempi_rank *rank,
                     const char *site)
{
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_u8(w, (uint8_t)place_of(rank));
    chempi_wire_put_str(w, rank->here);
    chempi_wire_put_str(w, site);
    chempi_wire_put_u64(w, rank->moves);
    chempi_wire_put_u32(w, rank->for_count);
    for (uint32_t k = 0; k < rank->for_count; k++)
        chempi_wire_put_u32(w, rank->for_ranks[k]);
}

void chempi_wait_collect_put(struct chempi_writer *w,
                             const struct chempi_rank *ranks, uint32_t count)
{
    const size_t end = w->len + CHEMPI_WAIT_SUMMARY_MAX;
    size_t rest = 0; /* of the ranks to come, without sites */

    for (uint32_t i = 0; i < count; i++)
        rest += len_of(&ranks[i]);
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_rank *rank = &ranks[i];
        const bool has_room = w->len + rest + strlen(rank->site) <= end;

        if (w->len + len_of(rank) > end)
            return;
        put_rank(w, rank, has_room ? rank->site : "");
        rest -= len_of(rank);
    }
}

static void send_places(struct chempi_super *s)
{
    struct chempi_writer *w;

    ev_timer_stop(s->loop, &s->seek);
    w = chempi_link_begin(&s->up, CHEMPI_MSG_PLACES, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wait_collect_put(w, s->ranks, s->local_size);
    chempi_link_end(&s->up);
}

static void seek_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    send_places(w->data);
}

void chempi_wait_collect_init(struct chempi_super *s)
{
    ev_timer_init(&s->seek, seek_is_over, 0.0, 0.0);
    ev_set_priority(&s->seek, EV_MINPRI); /* behind answers that have come */
    s->seek.data = s;
}

void chempi_wait_collect_settle(struct chempi_super *s)
{
    if (!ev_is_active(&s->seek))
        return;
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_due(&s->ranks[i]))
            return;
    send_places(s);
}

void chempi_wait_collect_drop(struct chempi_super *s)
{
    ev_timer_stop(s->loop, &s->seek);
}

int chempi_wait_collect_ask(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err)
{
    const uint32_t limit_ms = chempi_wire_get_u32(r);
    const uint8_t depth = chempi_wire_get_u8(r);

    if (!chempi_wire_is_done(r) || limit_ms > LIMIT_MAX_MS ||
        depth > CHEMPI_WAIT_STACK)
        return chempi_control_refuse(err, "question where ranks wait");
    if (ev_is_active(&s->seek) || s->local_size == 0)
        return 0;
    for (uint32_t i = 0; i < s->local_size; i++) {
        struct chempi_rank *rank = &s->ranks[i];

        rank->here_kind = 0;
        rank->here[0] = rank->site[0] = '\0';
        rank->moves = 0;
        rank->for_count = 0;
        rank->is_sought = rank->link.is_open;
        if (is_due(rank))
            chempi_control_send(rank, CHEMPI_MSG_WHERE, &depth, 1);
    }
    ev_timer_set(&s->seek, limit_ms / 1000.0, 0.0);
    ev_timer_start(s->loop, &s->seek);
    chempi_wait_collect_settle(s);
    return 0;
}

static void take_str(struct chempi_reader *r, char *out, size_t size)
{
    const char *text = chempi_wire_get_str(r, size);

    memset(out, 0, size);
    memcpy(out, text, strlen(text)); /* which is less */
}

int chempi_wait_collect_take(struct chempi_rank *rank, struct chempi_reader *r,
                             struct chempi_err *err)
{
    uint32_t ranks[CHEMPI_HERE_FOR_MAX] = {0};
    char text[CHEMPI_HERE_MAX];
    char site[CHEMPI_HERE_SITE_MAX];
    const uint8_t kind = chempi_wire_get_u8(r);
    uint64_t moves;
    uint32_t count;
    uint8_t has_more;

    take_str(r, text, sizeof(text));
    take_str(r, site, sizeof(site));
    moves = chempi_wire_get_u64(r);
    count = chempi_wire_get_count(r, CHEMPI_HERE_FOR_MAX, 4);
    for (uint32_t i = 0; i < count && !r->is_bad; i++)
        ranks[i] = chempi_wire_get_u32(r);
    has_more = chempi_wire_get_u8(r);
    if (!chempi_wire_is_done(r) || rank == rank->super->gateway ||
        (kind != CHEMPI_HERE_WAITS && kind != CHEMPI_HERE_TESTS) ||
        has_more > 1)
        return chempi_control_refuse(err, "where it waits");
    if (!rank->is_sought || !ev_is_active(&rank->super->seek))
        return 0;
    rank->is_sought = has_more;
    rank->here_kind = kind;
    memcpy(rank->here, text, sizeof(text));
    memcpy(rank->site, site, sizeof(site));
    memcpy(rank->for_ranks, ranks, sizeof(ranks));
    rank->moves = moves;
    rank->for_count = count;
    chempi_wait_collect_settle(rank->super);
    return 0;
}
