/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control sockets of a node's ranks and gateway, as their supervisor has
 * them: what it says to them. What they say is for hear.c.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "chempid/supervisor/super.h"

void chempi_control_send(struct chempi_rank *rank, uint16_t type,
                         const void *data, size_t len)
{
    if (!rank->link.is_open || rank->is_held)
        return;
    chempi_link_send(&rank->link, type, 0, data, len);
    chempi_share_wake(&rank->super->share, rank->local);
}

void chempi_control_share(struct chempi_rank *rank, const uint8_t *share)
{
    if (rank->link.is_open && chempi_link_queued(&rank->link) > 0) {
        memcpy(rank->share_bytes, share, sizeof(rank->share_bytes));
        rank->owes_share = true;
        return;
    }
    chempi_control_send(rank, CHEMPI_MSG_BUDGET, share, CHEMPI_SHARE_BYTES);
}

/* What was queued has been written later on: wake again. */
static void written(struct chempi_link *link)
{
    struct chempi_rank *rank = link->arg;

    if (rank->owes_share && chempi_link_queued(link) == 0) {
        rank->owes_share = false;
        chempi_control_share(rank, rank->share_bytes);
        return;
    }
    chempi_share_wake(&rank->super->share, rank->local);
}

/* A gateway forwards what it cannot read. */
static void write_rank_key(const struct chempi_rank *rank,
                           struct chempi_writer *w)
{
    static const uint8_t zeros[CHEMPI_JOB_SECRET_BYTES];
    const struct chempi_spec *spec = rank->super->spec;
    const bool is_rank = rank->world < spec->size;

    chempi_wire_put_u8(w, (is_rank && spec->is_secure ? CHEMPI_JOB_SECURE : 0) |
                              (spec->survives ? CHEMPI_JOB_SURVIVES : 0));
    chempi_wire_put_raw(w, is_rank ? spec->rank_key : zeros, sizeof(zeros));
}

static void write_welcome(const struct chempi_rank *rank,
                          struct chempi_writer *w)
{
    const struct chempi_super *s = rank->super;
    const struct chempi_spec *spec = s->spec;
    const struct chempi_app *app = chempi_spec_app(spec, rank->world);
    const uint32_t local_size = s->local_size + (s->gateway != NULL);
    const bool is_rank = rank != s->gateway;

    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_str(w, spec->id);
    chempi_wire_put_raw(w, spec->secret, sizeof(spec->secret));
    write_rank_key(rank, w);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_u32(w, spec->size);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, spec->node_count);
    chempi_wire_put_u32(w, spec->gateway_count);
    chempi_wire_put_u32(w, (uint32_t)s->share.places_fd);
    chempi_wire_put_u32(w, local_size);
    chempi_wire_put_u32(w, (uint32_t)(app - spec->apps));
    chempi_wire_put_u32(w, spec->universe_size);
    chempi_wire_put_u32(w, spec->want_stats);
    chempi_wire_put_u32(w, (uint32_t)s->share.region_fd);
    chempi_wire_put_u32(w, (uint32_t)s->share.table_fd);
    chempi_wire_put_u32(w, s->share.wake_fds[0] >= 0 ? local_size : 0);
    for (uint32_t i = 0; i < local_size && s->share.wake_fds[0] >= 0; i++)
        chempi_wire_put_u32(w, (uint32_t)s->share.wake_fds[i]);
    chempi_wire_put_u64(w, spec->memory_share);
    chempi_wire_put_str(w, is_rank && spec->parent ? spec->parent : "");
    chempi_wire_put_u32(w, spec->world);
    chempi_wire_put_u8(w, is_rank);
}

static void welcome(struct chempi_rank *rank)
{
    struct chempi_writer *w =
        chempi_link_begin(&rank->link, CHEMPI_MSG_WELCOME, 0);

    write_welcome(rank, w);
    chempi_link_end(&rank->link);
}

void chempi_control_connect(struct chempi_rank *rank, int fd)
{
    chempi_link_open(&rank->link, rank->super->loop, fd, CHEMPI_RANK_IN_MAX,
                     CHEMPI_QUEUE_MAX);
    rank->link.on_frame = rank->super->on_rank_frame;
    rank->link.on_lost = rank->super->on_rank_lost;
    rank->link.on_written = written;
    rank->link.arg = rank;
    rank->is_held = rank->super->spec->is_debugged;
    if (rank->is_held)
        chempi_link_send(&rank->link, CHEMPI_MSG_HOLD, 0, NULL, 0);
    else
        welcome(rank);
}

void chempi_control_begin(struct chempi_super *s)
{
    const uint32_t count = s->local_size + (s->gateway != NULL);

    if (s->gate_fds[1] >= 0)
        (void)close(s->gate_fds[1]); /* those at the gate go on */
    s->gate_fds[1] = -1;
    for (uint32_t i = 0; i < count; i++) {
        struct chempi_rank *rank = &s->ranks[i];

        if (!rank->is_held)
            continue;
        rank->is_held = false;
        if (rank->link.is_open)
            welcome(rank);
    }
}

int chempi_control_refuse(struct chempi_err *err, const char *what)
{
    return chempi_err_set(err, -EBADMSG, "a malformed message (%s)", what);
}
