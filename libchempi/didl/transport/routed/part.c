/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in parts, so that a gateway passes on the first while the next one
 * comes; F10 of internal.h. */
#include <errno.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/transport/routed/internal.h"

/* ---- sending ------------------------------------------------------------ */

static void drop_frames(struct chempi_list *frames)
{
    while (!chempi_list_is_empty(frames))
        chempi_neighbor_buf_drop(CHEMPI_CONTAINER_OF(
            chempi_list_first(frames), struct chempi_neighbor_buf, link));
}

/* Frames for all parts, since a message must not set out half. The number of
 * the message is that of its first frame. 0 or -ENOMEM. */
static int make_frames(struct chempi_routed_flow *flow,
                       const struct chempi_routed_way *way,
                       const struct chempi_envelope *env, const uint8_t *data,
                       struct chempi_segment *iter, struct chempi_list *out)
{
    uint64_t seq = flow->seq_out;

    for (uint64_t pos = 0; pos < env->len; pos += way->chunk) {
        const uint64_t left = env->len - pos;
        const size_t n = left < way->chunk ? (size_t)left : way->chunk;
        struct chempi_neighbor_frame f = {
            .kind = CHEMPI_NEIGHBOR_PART,
            .env = *env,
            .sender = flow->seq_out,
            .number = pos,
            .seq = (uint32_t)seq++,
            .flags = chempi_routed_flow_is_in_hurry(flow, (size_t)pos)
                         ? CHEMPI_NEIGHBOR_HURRY
                         : 0,
        };
        struct chempi_neighbor_buf *buf = chempi_routed_flow_make(
            flow, way, &f, env->len, iter ? NULL : data + pos, iter, n);

        if (!buf)
            return -ENOMEM;
        chempi_routed_trace_sent(flow, buf, &f, n);
        chempi_list_append(out, &buf->link);
    }
    return 0;
}

int chempi_routed_part_send(struct chempi_routed_flow *flow,
                            const struct chempi_routed_way *way,
                            const struct chempi_envelope *env, const void *data,
                            struct chempi_segment *iter)
{
    const uint32_t count = (uint32_t)((env->len + way->chunk - 1) / way->chunk);
    const uint64_t start = iter ? iter->position : 0;
    struct chempi_list frames;
    int rc;

    if (flow->is_gone)
        return -EPIPE;
    if (!chempi_list_is_empty(&flow->held) ||
        !chempi_routed_flow_has_room(flow, count, (size_t)env->len))
        return -EAGAIN;
    chempi_list_init(&frames);
    rc = make_frames(flow, way, env, data, iter, &frames);
    if (rc) {
        drop_frames(&frames);
        if (iter)
            chempi_segment_seek(iter, start);
        return rc;
    }
    chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_MESSAGE]);
    while (!chempi_list_is_empty(&frames)) {
        struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
            chempi_list_first(&frames), struct chempi_neighbor_buf, link);

        chempi_list_remove(&buf->link);
        chempi_routed_flow_launch(flow, way, buf);
    }
    return CHEMPI_DONE;
}

/* ---- receiving ---------------------------------------------------------- */

static struct chempi_routed_part *find(const struct chempi_routed_flow *flow,
                                       uint64_t number)
{
    CHEMPI_LIST_FOR (pos, &flow->parts) {
        struct chempi_routed_part *part =
            CHEMPI_CONTAINER_OF(pos, struct chempi_routed_part, link);

        if (part->number == number)
            return part;
    }
    return NULL;
}

static struct chempi_routed_part *begin(struct chempi_routed_flow *flow,
                                        const struct chempi_neighbor_frame *f)
{
    struct chempi_routed_part *part =
        chempi_sys->malloc(sizeof(*part) + (size_t)f->env.len);

    if (!part)
        return NULL;
    chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_PARTS]);
    part->number = f->sender;
    part->got = 0;
    part->env = f->env;
    chempi_list_init(&part->link);
    chempi_list_append(&flow->parts, &part->link);
    flow->part_count++;
    return part;
}

const char *chempi_routed_part_take(struct chempi_routed_flow *flow,
                                    const struct chempi_neighbor_frame *f,
                                    struct chempi_routed_part **whole)
{
    struct chempi_routed_part *part = find(flow, f->sender);

    *whole = NULL;
    if (!part && flow->part_count == CHEMPI_ROUTED_PARTS_MAX)
        return "it sent parts of more messages than can be on their way";
    if (!part)
        part = begin(flow, f);
    if (!part)
        return chempi_shortage_may_wait(
                   &flow->shortages[CHEMPI_ROUTED_FOR_PARTS])
                   ? chempi_shortage_left
                   : "out of memory for its message";
    if (part->env.len != f->env.len || part->env.serial != f->env.serial ||
        f->len > part->env.len - part->got)
        return "it sent parts that make no message";
    memcpy(part->data + f->number, f->data, f->len);
    part->got += f->len;
    if (part->got < part->env.len)
        return NULL;
    chempi_list_remove(&part->link);
    flow->part_count--;
    *whole = part;
    return NULL;
}

void chempi_routed_part_untake(struct chempi_routed_flow *flow,
                               const struct chempi_neighbor_frame *f,
                               struct chempi_routed_part *part)
{
    part->got -= f->len;
    chempi_list_append(&flow->parts, &part->link);
    flow->part_count++;
}
