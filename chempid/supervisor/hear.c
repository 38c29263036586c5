/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks and the gateway say on their control sockets; see super.h. */
#define _GNU_SOURCE /* kill */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chempid/supervisor/super.h"
#include "chempid/tree/nodes/budget.h"

static int take_put(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);
    size_t len;
    const uint8_t *value = chempi_wire_get_blob(r, CHEMPI_KVS_VALUE_MAX, &len);

    /* That it has left is for its supervisor to say. */
    if (!chempi_wire_is_done(r) || !*key || strcmp(key, CHEMPI_KEY_LEFT) == 0)
        return chempi_control_refuse(err, "put");
    return chempi_keys_put(rank, key, value, len, err);
}

static int take_get(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    const uint32_t owner = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);

    if (!chempi_wire_is_done(r) || !*key ||
        owner >= chempi_spec_procs(rank->super->spec))
        return chempi_control_refuse(err, "get");
    return chempi_keys_get(rank, owner, key, err);
}

static int take_abort(struct chempi_rank *rank, struct chempi_reader *r,
                      struct chempi_err *err)
{
    const uint32_t code = chempi_wire_get_u32(r);
    const char *text = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);

    if (!chempi_wire_is_done(r))
        return chempi_control_refuse(err, "abort");
    chempi_tell_ended(rank, CHEMPI_END_ABORT, code, text);
    return 0;
}

/* The launcher tells what is cut off; the end of this rank follows. */
static int take_cut(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    const uint32_t proc = chempi_wire_get_u32(r);
    const char *why = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);
    struct chempi_writer *w;

    if (!chempi_wire_is_done(r) || rank == s->gateway || proc < s->spec->size ||
        proc >= chempi_spec_procs(s->spec))
        return chempi_control_refuse(err, "a way that is cut");
    if (s->is_ending)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_GATEWAY, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, proc);
    chempi_wire_put_u8(w, CHEMPI_FALL_CUT);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_str(w, why);
    chempi_link_end(&s->up);
    return 0;
}

/* For the daemon, which divides the node's memory; it judges the numbers. */
static int take_memory(struct chempi_rank *rank,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (frame->len != CHEMPI_MEMORY_BYTES)
        return chempi_control_refuse(err, "report of memory");
    if (s->spec->memory_share == CHEMPI_BUDGET_NONE)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_HOLDS, s->spec->job);
    chempi_wire_put_u32(w, rank->local);
    chempi_wire_put_raw(w, frame->data, frame->len);
    chempi_link_end(&s->up);
    return 0;
}

/* In turns, and as often as the process likes (sessions). */
static int take_phase(struct chempi_rank *rank, uint16_t type,
                      const struct chempi_reader *r, struct chempi_err *err)
{
    const bool is_init = type == CHEMPI_MSG_INIT;

    if (!chempi_wire_is_done(r) ||
        is_init == (rank->phase == CHEMPI_PHASE_INITIALIZED))
        return chempi_control_refuse(err,
                                     "initialized or finalized out of order");
    if (is_init)
        rank->has_told = false;
    rank->phase = is_init ? CHEMPI_PHASE_INITIALIZED : CHEMPI_PHASE_FINALIZED;
    if (!is_init) {
        chempi_root_tell_ended(rank); /* so are its ports */
        chempi_wait_collect_settle(
            rank->super); /* it will not say where it waits */
    }
    return 0;
}

static int take_care(struct chempi_rank *rank, struct chempi_reader *r,
                     struct chempi_err *err)
{
    const uint8_t cares = chempi_wire_get_u8(r);

    if (!chempi_wire_is_done(r) || cares > 1)
        return chempi_control_refuse(err, "care");
    rank->cares = cares != 0;
    chempi_ending_care(rank->super);
    return 0;
}

static int take_hello(struct chempi_reader *r, struct chempi_err *err)
{
    if (chempi_wire_get_u32(r) != CHEMPI_CONTROL_VERSION)
        return chempi_control_refuse(err, "version of the library");
    (void)chempi_wire_get_u32(r); /* its process id: for traces only */
    return chempi_wire_is_done(r) ? 0 : chempi_control_refuse(err, "hello");
}

static int take_fence(struct chempi_rank *rank, struct chempi_reader *r,
                      struct chempi_err *err)
{
    if (chempi_wire_get_u64(r) != rank->fence + 1 || !chempi_wire_is_done(r))
        return chempi_control_refuse(err, "fence");
    rank->fence++;
    chempi_keys_fence(rank->super);
    return 0;
}

static int take_report(struct chempi_rank *rank, struct chempi_reader *r,
                       struct chempi_err *err)
{
    if (chempi_stats_collect_take(rank, r, err))
        return err->code;
    chempi_ending_care(rank->super);
    return 0;
}

static int take_world(struct chempi_rank *rank, const struct chempi_reader *r,
                      struct chempi_err *err)
{
    if (!chempi_wire_is_done(r))
        return chempi_control_refuse(err, "world");
    rank->needs_world = true;
    rank->has_world = true;
    chempi_keys_miss(rank->super);
    return 0;
}

static int take_unworld(struct chempi_rank *rank, const struct chempi_reader *r,
                        struct chempi_err *err)
{
    if (!chempi_wire_is_done(r) || !rank->has_world)
        return chempi_control_refuse(err, "end of the world");
    rank->has_world = false;
    return 0;
}

int chempi_hear_frame(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_rank *rank = link->arg;
    struct chempi_reader r;

    chempi_wire_read(&r, frame->data, frame->len);
    if (rank == rank->super->gateway &&
        (frame->type == CHEMPI_MSG_FENCE || frame->type == CHEMPI_MSG_INIT ||
         frame->type == CHEMPI_MSG_FINAL))
        return chempi_control_refuse(err, "a gateway's, as if it were a rank");
    switch (frame->type) {
    case CHEMPI_MSG_HELLO:
        return take_hello(&r, err);
    case CHEMPI_MSG_PUT:
        return take_put(rank, &r, err);
    case CHEMPI_MSG_GET:
        return take_get(rank, &r, err);
    case CHEMPI_MSG_FENCE:
        return take_fence(rank, &r, err);
    case CHEMPI_MSG_INIT:
    case CHEMPI_MSG_FINAL:
        return take_phase(rank, frame->type, &r, err);
    case CHEMPI_MSG_ABORT:
        return take_abort(rank, &r, err);
    case CHEMPI_MSG_CUT:
        return take_cut(rank, &r, err);
    case CHEMPI_MSG_HERE:
        return chempi_wait_collect_take(rank, &r, err);
    case CHEMPI_MSG_REPORT:
        return take_report(rank, &r, err);
    case CHEMPI_MSG_ROOT_REQUEST:
        return chempi_root_take_request(rank, &r, err);
    case CHEMPI_MSG_MEMORY:
        return take_memory(rank, frame, err);
    case CHEMPI_MSG_WORLD:
        return take_world(rank, &r, err);
    case CHEMPI_MSG_UNWORLD:
        return take_unworld(rank, &r, err);
    case CHEMPI_MSG_CARE:
        return take_care(rank, &r, err);
    default:
        return chempi_control_refuse(err, "unknown type");
    }
}

/* The plain end of the stream is no news: its process ends or has ended. */
void chempi_hear_lost(struct chempi_link *link, int code,
                      const struct chempi_err *err)
{
    struct chempi_rank *rank = link->arg;
    char text[CHEMPI_TEXT_MAX];

    if (code == -EPIPE) {
        chempi_link_close(link);
        if (rank->phase == CHEMPI_PHASE_FINALIZED)
            chempi_keys_leave(rank);
        return;
    }
    if (code == -EBADMSG || code == -EMSGSIZE) {
        chempi_tell_ended(rank, CHEMPI_END_PROTOCOL, 0, err->text);
    } else {
        (void)snprintf(text, sizeof(text),
                       "its supervisor cannot serve it: %.900s", err->text);
        chempi_tell_ended(rank, CHEMPI_END_ABORT, 1, text);
    }
    /* All is said: it shall not complain of the closed socket. */
    if (rank->pid > 0)
        (void)kill(-rank->pid, SIGKILL);
    chempi_link_close(link);
}
