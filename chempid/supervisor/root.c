/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks ask of the root of their job (common/control/dynamic.h), on its
 * way through their supervisor, which counts and parses nothing of the blob.
 * The gateway asks nothing.
 */
#include "chempid/supervisor/super.h"
#include "common/control/dynamic.h"

static struct chempi_writer *begin(const struct chempi_rank *rank)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w =
        chempi_link_begin(&s->up, CHEMPI_MSG_ROOT_REQUEST, s->spec->job);

    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, rank->world);
    return w;
}

int chempi_root_take_request(struct chempi_rank *rank, struct chempi_reader *r,
                             struct chempi_err *err)
{
    const uint32_t serial = chempi_wire_get_u32(r);
    const uint8_t what = chempi_wire_get_u8(r);
    size_t len;
    const uint8_t *blob = chempi_wire_get_blob(r, CHEMPI_ROOT_BYTES_MAX, &len);
    struct chempi_writer *w;

    if (!chempi_wire_is_done(r) || rank == rank->super->gateway ||
        what == CHEMPI_ROOT_ENDED || rank->root_serial == UINT32_MAX ||
        serial != rank->root_serial + 1 ||
        rank->root_open >= CHEMPI_ROOT_REQUESTS_MAX)
        return chempi_control_refuse(err, "question to the root");
    rank->root_serial = serial;
    rank->root_open++;
    if (rank->super->is_ending)
        return 0;
    w = begin(rank);
    chempi_wire_put_u32(w, serial);
    chempi_wire_put_u8(w, what);
    chempi_wire_put_blob(w, blob, len);
    chempi_link_end(&rank->super->up);
    return 0;
}

void chempi_root_tell_ended(const struct chempi_rank *rank)
{
    struct chempi_writer *w;

    if (rank->root_serial == 0 || rank->super->is_ending)
        return;
    w = begin(rank);
    chempi_wire_put_u32(w, 0);
    chempi_wire_put_u8(w, CHEMPI_ROOT_ENDED);
    chempi_wire_put_blob(w, NULL, 0);
    chempi_link_end(&rank->super->up);
}

/* Ranks are in order of their numbers. */
static struct chempi_rank *find(struct chempi_super *s, uint32_t world)
{
    uint32_t low = 0;
    uint32_t high = s->local_size;

    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;

        if (s->ranks[mid].world < world)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->local_size && s->ranks[low].world == world ? &s->ranks[low]
                                                               : NULL;
}

int chempi_root_take_reply(struct chempi_super *s, struct chempi_reader *r,
                           struct chempi_err *err)
{
    const uint32_t node = chempi_wire_get_u32(r);
    const uint32_t world = chempi_wire_get_u32(r);
    const uint8_t *at = r->next;
    const size_t len = (size_t)(r->end - at);
    struct chempi_rank *rank = find(s, world);
    struct chempi_reply reply;

    if (chempi_reply_read(r, &reply) || node != s->node || !rank ||
        reply.serial == 0 || reply.serial > rank->root_serial ||
        (reply.state != CHEMPI_REPLY_OVER && rank->root_open == 0))
        return chempi_control_refuse(err, "answer of the root");
    rank->root_open -= reply.state != CHEMPI_REPLY_OVER;
    chempi_control_send(rank, CHEMPI_MSG_ROOT_REPLY, at, len);
    return 0;
}
