/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the root of a job is told of a node's ranks: that they run, have ended
 * badly (P1), are absent, that the gateway has ended, that all is over (P3).
 */
#define _GNU_SOURCE /* kill */
#include <signal.h>

#include "chempid/supervisor/super.h"

static void send_count(struct chempi_super *s, uint16_t type)
{
    struct chempi_writer *w = chempi_link_begin(&s->up, type, s->spec->job);

    chempi_wire_put_u32(w, 1);
    chempi_link_end(&s->up);
}

/* Their processes, and that they run. */
void chempi_tell_started(struct chempi_super *s)
{
    struct chempi_writer *w;

    if (s->local_size) {
        w = chempi_link_begin(&s->up, CHEMPI_MSG_PIDS, s->spec->job);
        chempi_wire_put_u32(w, s->node);
        chempi_wire_put_u32(w, s->local_size);
        for (uint32_t i = 0; i < s->local_size; i++) {
            chempi_wire_put_u32(w, s->ranks[i].world);
            chempi_wire_put_u32(w, (uint32_t)s->ranks[i].pid);
        }
        chempi_link_end(&s->up);
    }
    send_count(s, CHEMPI_MSG_STARTED);
}

void chempi_tell_absent(const struct chempi_rank *rank)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (s->has_absent || s->spec->size == 1)
        return;
    s->has_absent = true;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ABSENT, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, rank->world);
    chempi_link_end(&s->up);
}

void chempi_tell_gateway(struct chempi_super *s, bool is_fatal,
                         const char *text)
{
    struct chempi_rank *gateway = s->gateway;
    struct chempi_writer *w;

    if (gateway->is_judged || s->is_ending)
        return;
    gateway->is_judged = true;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_GATEWAY, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, gateway->world);
    chempi_wire_put_u8(w, is_fatal ? CHEMPI_FALL_FATAL : CHEMPI_FALL_LOST);
    chempi_wire_put_u32(w, CHEMPI_NODE_ANY);
    chempi_wire_put_str(w, text);
    chempi_link_end(&s->up);
    if (gateway->pid > 0)
        (void)kill(gateway->pid, SIGKILL); /* it is of no more use */
}

void chempi_tell_ended(struct chempi_rank *rank, enum chempi_end how,
                       uint32_t code, const char *text)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (rank == s->gateway) {
        chempi_tell_gateway(s, true, text);
        return;
    }
    if (rank->is_judged || s->is_ending)
        return;
    rank->is_judged = true; /* P1 */
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ENDED, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_u32(w, (uint32_t)rank->pid);
    chempi_wire_put_u8(w, (uint8_t)how);
    chempi_wire_put_u32(w, code);
    chempi_wire_put_str(w, chempi_spec_app(s->spec, rank->world)->argv[0]);
    chempi_wire_put_str(w, text);
    chempi_link_end(&s->up);
}

static bool is_output_over(const struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].streams[0].fd >= 0 || s->ranks[i].streams[1].fd >= 0)
            return false;
    return true;
}

void chempi_tell_done(struct chempi_super *s)
{
    if (s->is_done || s->alive || s->has_children || !is_output_over(s))
        return;
    s->is_done = true; /* P3 */
    chempi_stats_collect_send(s);
    send_count(s, CHEMPI_MSG_DONE);
}
