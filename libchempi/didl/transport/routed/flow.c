/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: numbers, windows, acknowledgements; see internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "libchempi/didl/transport/routed/internal.h"

static_assert((CHEMPI_ROUTED_FRAMES & (CHEMPI_ROUTED_FRAMES - 1)) == 0,
              "numbers wrap");

/* What a message that is not announced is cut into, at most. */
#define FRAMES_OF_ONE (CHEMPI_NEIGHBOR_CHUNK_MAX / CHEMPI_ROUTED_CHUNK_MIN)

int chempi_routed_flow_get(struct chempi_routed *routed, uint32_t proc,
                           struct chempi_routed_flow **out)
{
    struct chempi_routed_flow *flow;

    if (proc >= routed->rank_count || proc == routed->dev.params.services->proc)
        return -EHOSTUNREACH;
    if (routed->flows[proc]) {
        *out = routed->flows[proc];
        return 0;
    }
    flow = chempi_sys->calloc(1, sizeof(*flow));
    if (!flow)
        return -ENOMEM;
    flow->ep = (struct chempi_ep){.dev = &routed->dev, .proc = proc};
    chempi_list_init(&flow->work);
    chempi_list_init(&flow->owing);
    chempi_list_init(&flow->pressed);
    chempi_list_init(&flow->gap);
    chempi_list_init(&flow->unacked);
    chempi_list_init(&flow->held);
    chempi_list_init(&flow->bulk);
    chempi_list_init(&flow->parts);
    chempi_list_init(&flow->uncleared);
    /* Without a way, the peer's is learned. */
    if (chempi_routed_way_open(flow) == -ENOMEM) {
        free(flow);
        return -ENOMEM;
    }
    chempi_shortage_end(&routed->shortage);
    routed->flows[proc] = flow;
    *out = flow;
    return 0;
}

static void drop_list(struct chempi_list *head)
{
    while (!chempi_list_is_empty(head)) {
        struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
            chempi_list_first(head), struct chempi_neighbor_buf, link);

        chempi_list_remove(&buf->link);
        chempi_neighbor_buf_drop(buf);
    }
}

static void drop_parts(struct chempi_routed_flow *flow)
{
    while (!chempi_list_is_empty(&flow->parts)) {
        struct chempi_routed_part *part = CHEMPI_CONTAINER_OF(
            chempi_list_first(&flow->parts), struct chempi_routed_part, link);

        chempi_list_remove(&part->link);
        free(part);
    }
    flow->part_count = 0;
}

void chempi_routed_flow_destroy(struct chempi_routed_flow *flow)
{
    if (!flow)
        return;
    chempi_list_remove(&flow->pressed);
    chempi_list_remove(&flow->gap);
    drop_list(&flow->unacked);
    drop_list(&flow->held);
    chempi_handle_table_fini(&flow->announced);
    chempi_handle_table_fini(&flow->cleared);
    drop_parts(flow);
    free(flow->dropped);
    free(flow->flush);
    free(flow->ways);
    free(flow);
}

void chempi_routed_flow_work(struct chempi_routed_flow *flow)
{
    if (chempi_list_is_empty(&flow->work))
        chempi_list_append(&chempi_routed_of(flow)->work, &flow->work);
}

/* ---- frames ------------------------------------------------------------- */

static uint64_t window(const struct chempi_routed_flow *flow)
{
    return chempi_dev_setting(flow->ep.dev, CHEMPI_ROUTED_SET_WINDOW);
}

static uint64_t total(const struct chempi_routed *routed)
{
    return chempi_dev_setting(&routed->dev, CHEMPI_ROUTED_SET_TOTAL);
}

bool chempi_routed_flow_has_room(struct chempi_routed_flow *flow,
                                 uint32_t frames, size_t n)
{
    struct chempi_routed *routed = chempi_routed_of(flow);

    if (flow->unacked_count + frames > CHEMPI_ROUTED_FRAMES - 1)
        return false;
    if (flow->unacked_bytes == 0)
        return true;
    n += frames * (size_t)CHEMPI_NEIGHBOR_FIXED_MAX;
    if (flow->unacked_bytes + n > window(flow))
        return false;
    if (routed->unacked_bytes + n <= total(routed))
        return true;
    if (chempi_list_is_empty(&flow->pressed))
        chempi_list_append(&routed->pressed, &flow->pressed);
    return false;
}

bool chempi_routed_flow_is_in_hurry(const struct chempi_routed_flow *flow,
                                    size_t n)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);

    return flow->unacked_bytes + n > window(flow) / 2 ||
           flow->unacked_count > CHEMPI_ROUTED_FRAMES / 2 ||
           routed->unacked_bytes + n > total(routed) / 2;
}

/* More, or less (negative), of a flow is on its way. */
static void count_unacked(struct chempi_routed_flow *flow, int64_t bytes)
{
    flow->unacked_bytes += (uint64_t)bytes;
    chempi_routed_of(flow)->unacked_bytes += (uint64_t)bytes;
}

const char *chempi_routed_flow_check(const struct chempi_routed_flow *flow)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    CHEMPI_LIST_FOR (node, &flow->unacked) {
        bytes +=
            CHEMPI_CONTAINER_OF(node, struct chempi_neighbor_buf, link)->len;
        count++;
    }
    if (count != flow->unacked_count || bytes != flow->unacked_bytes)
        return "flow F1: frames are not kept, or counted as others";
    return count < CHEMPI_ROUTED_FRAMES &&
                   bytes <= chempi_routed_of(flow)->unacked_bytes
               ? NULL
               : "flow F2: more is unacknowledged than may be";
}

/* F8 */
static void relieve(struct chempi_routed *routed)
{
    if (routed->unacked_bytes > total(routed) / 4 * 3)
        return;
    while (!chempi_list_is_empty(&routed->pressed)) {
        struct chempi_routed_flow *flow =
            CHEMPI_CONTAINER_OF(chempi_list_first(&routed->pressed),
                                struct chempi_routed_flow, pressed);

        chempi_list_remove(&flow->pressed);
        chempi_routed_flow_work(flow);
    }
}

/* Header and way of a frame; the caller gives it a number. */
static void address(const struct chempi_routed_flow *flow,
                    const struct chempi_routed_way *way, uint8_t class,
                    struct chempi_neighbor_frame *f)
{
    f->flags |= (uint16_t)(class << CHEMPI_NEIGHBOR_CLASS_SHIFT);
    f->gateway_count = way->gateway_count;
    f->at = 0;
    f->src = flow->ep.dev->params.services->proc;
    f->dst = flow->ep.proc;
    f->ack = (uint32_t)flow->seq_in;
    memcpy(f->gateways, way->gateways, sizeof(f->gateways));
}

/* The neighbour that its way begins with. */
static uint32_t first_of(const struct chempi_neighbor_frame *f)
{
    return f->gateway_count ? f->gateways[0] : f->dst;
}

/* The frame as bytes, with room for n bytes of payload and a seal behind. */
static struct chempi_neighbor_buf *encode(const struct chempi_routed_flow *flow,
                                          const struct chempi_neighbor_frame *f,
                                          size_t n, uint8_t **payload)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const size_t extra = chempi_routed_sealed_extra(routed);
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];
    size_t len = chempi_neighbor_frame_put(head, f);
    struct chempi_neighbor_buf *buf;

    if (chempi_neighbors_reach(&routed->neighbors, first_of(f), NULL) ==
        -ENOMEM)
        return NULL; /* what has a number is queued without memory */
    buf = chempi_neighbor_buf_create(len + n + extra);
    if (!buf)
        return NULL;
    memcpy(buf->data, head, len);
    *payload = buf->data + len;
    return buf;
}

static void owe(struct chempi_routed_flow *flow, uint32_t bytes, bool is_now)
{
    flow->owed_frames++;
    flow->owed_bytes += bytes;
    flow->owes_now |= is_now || flow->owed_frames >= CHEMPI_ROUTED_FRAMES / 8 ||
                      flow->owed_bytes >= window(flow) / 4;
    if (chempi_list_is_empty(&flow->owing)) /* F5 */
        chempi_list_append(&chempi_routed_of(flow)->owing, &flow->owing);
}

/* An acknowledgement rides on every frame. */
static void has_told(struct chempi_routed_flow *flow)
{
    flow->owed_frames = 0;
    flow->owed_bytes = 0;
    flow->owed_polls = 0;
    flow->owes_now = false;
    chempi_list_remove(&flow->owing);
}

/* Give it its number, keep it (F1), and send it on its way. */
static void launch(struct chempi_routed_flow *flow,
                   struct chempi_neighbor_buf *buf, uint32_t first_gate)
{
    chempi_routed_sealed_put(flow, buf, flow->seq_out);
    chempi_list_append(&flow->unacked, &buf->link);
    flow->unacked_count++;
    count_unacked(flow, buf->len);
    flow->seq_out++;
    flow->is_asked = false;
    chempi_neighbor_buf_hold(buf);
    /* A gateway that is lost: chempi_routed_flow_reroute() follows. */
    if (chempi_neighbors_queue(&chempi_routed_of(flow)->neighbors, first_gate,
                               buf))
        chempi_neighbor_buf_drop(buf);
    has_told(flow);
    CHEMPI_CHECK_EVERY(64, chempi_routed_flow_check(flow));
}

void chempi_routed_flow_launch(struct chempi_routed_flow *flow,
                               const struct chempi_routed_way *way,
                               struct chempi_neighbor_buf *buf)
{
    launch(flow, buf, chempi_routed_way_next(flow, way));
}

struct chempi_neighbor_buf *
chempi_routed_flow_make(struct chempi_routed_flow *flow,
                        const struct chempi_routed_way *way,
                        struct chempi_neighbor_frame *f, uint64_t len,
                        const void *data, struct chempi_segment *iter, size_t n)
{
    const uint8_t class = chempi_routed_trace_class(flow, len);
    struct chempi_neighbor_buf *buf;
    uint8_t *payload;

    address(flow, way, class, f);
    buf = encode(flow, f, n, &payload);
    if (!buf)
        return NULL;
    if (iter)
        (void)chempi_segment_pack(iter, payload, n);
    else if (n)
        memcpy(payload, data, n);
    buf->seq = f->seq;
    buf->tally = chempi_routed_trace_way(flow, way, class);
    return buf;
}

int chempi_routed_flow_send(struct chempi_routed_flow *flow,
                            struct chempi_neighbor_frame *f, uint64_t len,
                            const void *data, struct chempi_segment *iter,
                            size_t n)
{
    const struct chempi_routed_way *way = chempi_routed_way_find(flow, len);
    struct chempi_neighbor_buf *buf;

    if (flow->is_gone)
        return -EPIPE;
    if (!way)
        return -EHOSTUNREACH;
    if (!chempi_list_is_empty(&flow->held) ||
        !chempi_routed_flow_has_room(flow, 1, n))
        return -EAGAIN;
    f->seq = (uint32_t)flow->seq_out;
    f->flags =
        chempi_routed_flow_is_in_hurry(flow, 0) ? CHEMPI_NEIGHBOR_HURRY : 0;
    buf = chempi_routed_flow_make(flow, way, f, len, data, iter, n);
    if (!buf)
        return -ENOMEM;
    chempi_shortage_end(&flow->shortages[f->kind == CHEMPI_NEIGHBOR_DATA
                                             ? CHEMPI_ROUTED_FOR_DATA
                                             : CHEMPI_ROUTED_FOR_MESSAGE]);
    chempi_routed_trace_sent(flow, buf, f, n);
    launch(flow, buf, chempi_routed_way_next(flow, way));
    return CHEMPI_DONE;
}

/* As chempi_routed_flow_send() for what must not be refused (no payload): waits
 * if need be. */
static int send_control(struct chempi_routed_flow *flow,
                        struct chempi_neighbor_frame *f)
{
    const struct chempi_routed_way *way = chempi_routed_way_find(flow, 0);
    struct chempi_neighbor_buf *buf;
    uint8_t *payload;

    if (flow->is_gone)
        return 0;
    if (!way)
        return -EHOSTUNREACH;
    address(flow, way, 0, f);
    f->seq = (uint32_t)flow->seq_out;
    buf = encode(flow, f, 0, &payload);
    if (!buf)
        return -ENOMEM;
    buf->seq = f->seq;
    buf->tally = chempi_routed_trace_way(flow, way, 0);
    if (chempi_list_is_empty(&flow->held) &&
        flow->unacked_count < CHEMPI_ROUTED_FRAMES - 1) {
        launch(flow, buf, chempi_routed_way_next(flow, way));
    } else {
        chempi_list_append(&flow->held, &buf->link); /* F4 */
        chempi_routed_flow_work(flow);
    }
    return 0;
}

void chempi_routed_flow_ack(struct chempi_routed_flow *flow, bool hurry)
{
    const struct chempi_routed_way *way = chempi_routed_way_find(flow, 0);
    struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_ACK};
    struct chempi_neighbor_buf *buf;
    uint8_t *payload;

    if (!way) {
        has_told(flow);
        return;
    }
    f.flags = hurry ? CHEMPI_NEIGHBOR_HURRY : 0;
    address(flow, way, 0, &f);
    buf = encode(flow, &f, 0, &payload);
    if (!buf) {
        owe(flow, 0, true); /* a full window waits for it */
        return;
    }
    has_told(flow);
    chempi_routed_sealed_put(flow, buf, 0);
    buf->tally = chempi_routed_trace_way(flow, way, 0);
    if (chempi_neighbors_queue(&chempi_routed_of(flow)->neighbors,
                               chempi_routed_way_next(flow, way), buf))
        chempi_neighbor_buf_drop(buf);
}

/* ---- acknowledgements --------------------------------------------------- */

static void release_first(struct chempi_routed_flow *flow)
{
    struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
        chempi_list_first(&flow->unacked), struct chempi_neighbor_buf, link);

    chempi_list_remove(&buf->link);
    flow->unacked_count--;
    count_unacked(flow, -(int64_t)buf->len);
    chempi_neighbor_buf_drop(buf);
}

void chempi_routed_flow_acked(struct chempi_routed_flow *flow, uint32_t ack)
{
    uint32_t first = (uint32_t)flow->seq_out - flow->unacked_count;
    uint32_t n = ack - first;

    if (n == 0 || n > flow->unacked_count)
        return; /* an old one */
    while (n--)
        release_first(flow);
    relieve(chempi_routed_of(flow));
    if (flow->is_starved || !chempi_list_is_empty(&flow->held) ||
        !chempi_list_is_empty(&flow->bulk))
        chempi_routed_flow_work(flow);
}

static uint64_t *seen_word(struct chempi_routed_flow *flow, uint64_t seq)
{
    return &flow->seen[seq % CHEMPI_ROUTED_FRAMES / 64];
}

static uint64_t seen_bit(uint64_t seq)
{
    return UINT64_C(1) << (seq % 64);
}

int chempi_routed_flow_take(struct chempi_routed_flow *flow,
                            const struct chempi_neighbor_frame *f)
{
    uint32_t ahead = f->seq - (uint32_t)flow->seq_in;
    bool is_old = (int32_t)ahead < 0;

    if (!is_old && ahead >= CHEMPI_ROUTED_FRAMES)
        return -EPROTO;
    if (is_old || *seen_word(flow, f->seq) & seen_bit(f->seq)) {
        owe(flow, 0, true); /* F3; its sender does not know yet */
        return false;
    }
    *seen_word(flow, f->seq) |= seen_bit(f->seq);
    flow->early++;
    while (*seen_word(flow, flow->seq_in) & seen_bit(flow->seq_in)) {
        *seen_word(flow, flow->seq_in) &= ~seen_bit(flow->seq_in);
        flow->seq_in++;
        flow->early--;
    }
    flow->come_poll = chempi_routed_of(flow)->polls;
    chempi_routed_sealed_note(flow);
    owe(flow, f->len, (f->flags & CHEMPI_NEIGHBOR_HURRY) != 0);
    return true;
}

/* The last frame is not taken after all, or it would be acknowledged again for
 * each time that it comes. Nothing has been sent meanwhile. */
static void owe_no_more(struct chempi_routed_flow *flow, uint32_t bytes)
{
    if (flow->owed_frames <= 1) {
        has_told(flow);
        return;
    }
    flow->owed_frames--;
    flow->owed_bytes -= bytes;
}

void chempi_routed_flow_untake(struct chempi_routed_flow *flow,
                               const struct chempi_neighbor_frame *f)
{
    const uint32_t behind = (uint32_t)flow->seq_in - f->seq;

    owe_no_more(flow, f->len);
    if ((int32_t)behind <= 0) { /* another one is missing before it */
        *seen_word(flow, f->seq) &= ~seen_bit(f->seq);
        flow->early--;
    } else {
        for (uint32_t i = 1; i < behind; i++)
            *seen_word(flow, flow->seq_in - i) |= seen_bit(flow->seq_in - i);
        flow->early += behind - 1;
        flow->seq_in -= behind;
    }
    chempi_routed_sealed_note(flow);
}

/* ---- going on ----------------------------------------------------------- */

static int pump_held(struct chempi_routed_flow *flow)
{
    int events = 0;

    while (!chempi_list_is_empty(&flow->held) &&
           flow->unacked_count < CHEMPI_ROUTED_FRAMES - 1) {
        struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
            chempi_list_first(&flow->held), struct chempi_neighbor_buf, link);
        struct chempi_neighbor_frame f;
        const char *why;

        chempi_list_remove(&buf->link);
        buf->seq = (uint32_t)flow->seq_out;
        chempi_neighbor_frame_set_seq(buf->data, buf->seq);
        chempi_neighbor_frame_set_ack(buf->data, (uint32_t)flow->seq_in);
        /* Ours; its way may have been the flow's before it was held. */
        (void)chempi_neighbor_frame_head(buf->data, buf->len, &f, &why);
        launch(flow, buf, first_of(&f));
        events++;
    }
    return events;
}

bool chempi_routed_flow_may_wait(struct chempi_routed_flow *flow,
                                 enum chempi_routed_want want)
{
    if (!chempi_shortage_may_wait(&flow->shortages[want]))
        return false;
    chempi_routed_flow_work(flow);
    return true;
}

int chempi_routed_flow_clear(struct chempi_routed_flow *flow,
                             struct chempi_rx *rx)
{
    struct chempi_neighbor_frame f = {
        .kind = CHEMPI_NEIGHBOR_CTS,
        .sender = rx->priv[CHEMPI_ROUTED_RX_SENDER],
        .number = rx->priv[CHEMPI_ROUTED_RX_TAKE]};
    int rc = chempi_handle_table_put(&flow->cleared, rx, &f.receiver);

    if (rc)
        return rc;
    rc = send_control(flow, &f);
    if (rc)
        (void)chempi_handle_table_take(&flow->cleared, f.receiver);
    else
        chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_CTS]);
    return rc;
}

bool chempi_routed_flow_expect(struct chempi_routed_flow *flow)
{
    if (!CHEMPI_ARRAY_FIT(flow->dropped, flow->dropped_room,
                          flow->dropped_count + flow->undecided + 1))
        return false;
    chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_RTS]);
    flow->undecided++;
    return true;
}

static int send_drop(struct chempi_routed_flow *flow, uint64_t sender)
{
    struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_DROP,
                                      .sender = sender};

    return send_control(flow, &f);
}

void chempi_routed_flow_drop(struct chempi_routed_flow *flow, uint64_t sender)
{
    if (send_drop(flow, sender) != -ENOMEM)
        return;
    flow->dropped[flow->dropped_count++] = sender; /* F6 */
    chempi_routed_flow_work(flow);
}

/* There is no memory to go on: wait for it, or the process is lost. */
static CHEMPI_COLD void miss_memory(struct chempi_routed_flow *flow,
                                    enum chempi_routed_want want)
{
    const struct chempi_dev_params *p = &chempi_routed_of(flow)->dev.params;

    if (!chempi_routed_flow_may_wait(flow, want))
        p->sink->lost(p->sink_arg, flow->ep.proc, -ENOMEM,
                      "out of memory for what is sent to it");
}

/* Messages that there was no memory to drop. */
static int pump_dropped(struct chempi_routed_flow *flow)
{
    int events = 0;

    while (flow->dropped_count) {
        if (send_drop(flow, flow->dropped[flow->dropped_count - 1]) ==
            -ENOMEM) {
            miss_memory(flow, CHEMPI_ROUTED_FOR_DROP);
            break;
        }
        chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_DROP]);
        flow->dropped_count--;
        events++;
    }
    return events;
}

/* Receives that there was no memory to clear. */
static int pump_uncleared(struct chempi_routed_flow *flow)
{
    const struct chempi_dev_params *p = &chempi_routed_of(flow)->dev.params;
    int events = 0;

    while (!chempi_list_is_empty(&flow->uncleared)) {
        struct chempi_rx *rx = CHEMPI_CONTAINER_OF(
            chempi_list_first(&flow->uncleared), struct chempi_rx, link);
        int rc = chempi_routed_flow_clear(flow, rx);

        if (rc == -ENOMEM &&
            chempi_routed_flow_may_wait(flow, CHEMPI_ROUTED_FOR_CTS))
            break;
        chempi_list_remove(&rx->link);
        if (rc)
            p->sink->delivered(p->sink_arg, rx, rc);
        events++;
    }
    return events;
}

/* One more piece of the first cleared message; -EAGAIN: no room. */
static int pump_bulk(struct chempi_routed_flow *flow)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_sink *sink = routed->dev.params.sink;
    struct chempi_tx *tx = CHEMPI_CONTAINER_OF(chempi_list_first(&flow->bulk),
                                               struct chempi_tx, link);
    const struct chempi_routed_way *way =
        chempi_routed_way_find(flow, tx->env.len);
    uint64_t pos = tx->priv[CHEMPI_ROUTED_TX_POS];
    uint64_t left = tx->priv[CHEMPI_ROUTED_TX_END] - pos;
    struct chempi_neighbor_frame f = {
        .kind = CHEMPI_NEIGHBOR_DATA,
        .receiver = tx->priv[CHEMPI_ROUTED_TX_RECEIVER],
        .number = pos,
    };
    size_t n;
    int rc;

    if (!way)
        return -EHOSTUNREACH;
    n = left < way->chunk ? (size_t)left : way->chunk;
    if (tx->iter && tx->iter->position != pos)
        chempi_segment_seek(tx->iter, pos);
    rc = chempi_routed_flow_send(
        flow, &f, tx->env.len, tx->buf ? (const uint8_t *)tx->buf + pos : NULL,
        tx->iter, n);
    if (rc)
        return rc;
    chempi_routed_trace_goes(flow, tx);
    tx->priv[CHEMPI_ROUTED_TX_POS] += n;
    chempi_list_remove(&tx->link);
    if (n < left)
        chempi_list_append(&flow->bulk, &tx->link); /* in turn with others */
    else
        sink->sent(routed->dev.params.sink_arg, tx, 0);
    return 0;
}

void chempi_routed_flow_end(struct chempi_routed_flow *flow)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_sink *sink = routed->dev.params.sink;
    struct chempi_tx *tx;

    flow->is_gone = true;
    while (flow->unacked_count)
        release_first(flow);
    relieve(routed);
    drop_list(&flow->held);
    flow->has_strays = false;
    flow->dropped_count = 0;
    while ((tx = chempi_handle_table_pop(&flow->announced)) != NULL)
        chempi_list_append(&flow->bulk, &tx->link);
    while (!chempi_list_is_empty(&flow->bulk)) {
        tx = CHEMPI_CONTAINER_OF(chempi_list_first(&flow->bulk),
                                 struct chempi_tx, link);
        chempi_list_remove(&tx->link);
        sink->sent(routed->dev.params.sink_arg, tx, -EPIPE);
    }
    if (flow->is_starved)
        chempi_routed_flow_work(flow);
}

void chempi_routed_flow_bury(struct chempi_routed_flow *flow)
{
    const struct chempi_dev_params *p = &chempi_routed_of(flow)->dev.params;
    struct chempi_rx *rx;

    flow->has_ended = true;
    chempi_routed_flow_end(flow);
    while (!chempi_list_is_empty(&flow->uncleared)) {
        rx = CHEMPI_CONTAINER_OF(chempi_list_first(&flow->uncleared),
                                 struct chempi_rx, link);
        chempi_list_remove(&rx->link);
        p->sink->delivered(p->sink_arg, rx, -EPIPE);
    }
    while ((rx = chempi_handle_table_pop(&flow->cleared)) != NULL)
        p->sink->delivered(p->sink_arg, rx, -EPIPE);
}

/* ---- another way -------------------------------------------------------- */

/* Through a gateway that is dead? */
static bool is_stray(const struct chempi_routed *routed,
                     const struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor_frame f;
    const char *why;
    bool is_stray = false;

    if (chempi_neighbor_frame_head(buf->data, buf->len, &f, &why) < 0)
        return false;
    for (uint32_t i = 0; i < f.gateway_count; i++)
        is_stray |= f.gateways[i] >= routed->rank_count &&
                    f.gateways[i] < routed->dev.params.services->proc_count &&
                    routed->gateways[f.gateways[i] - routed->rank_count] ==
                        CHEMPI_ROUTED_DEAD;
    return is_stray;
}

/* The same frame, *f, with another way in front of it; not sealed. */
static struct chempi_neighbor_buf *
readdress(const struct chempi_routed_flow *flow,
          const struct chempi_neighbor_buf *old,
          const struct chempi_routed_way *way, struct chempi_neighbor_frame *f)
{
    struct chempi_neighbor_buf *buf;
    uint8_t *copy;
    uint8_t *payload;
    uint8_t class;

    if (chempi_routed_sealed_undo(flow, old, f, &copy))
        return NULL;
    class = chempi_neighbor_class_of(f->flags);
    f->flags = CHEMPI_NEIGHBOR_HURRY;
    address(flow, way, class, f);
    buf = encode(flow, f, f->len, &payload);
    if (buf) {
        if (f->len)
            memcpy(payload, f->data, f->len);
        buf->seq = old->seq;
        buf->tally = chempi_routed_trace_way(flow, way, class);
    }
    free(copy);
    return buf;
}

/* moves: of frames that were launched, NULL for others. */
static int resend(struct chempi_routed_flow *flow,
                  struct chempi_neighbor_buf *old,
                  struct chempi_routed_moves *moves)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_routed_way *way =
        chempi_routed_way_find(flow, old->len);
    struct chempi_neighbor_frame f;
    struct chempi_neighbor_buf *buf;

    if (!way)
        return -EHOSTUNREACH;
    buf = readdress(flow, old, way, &f);
    if (!buf)
        return -ENOMEM;
    chempi_list_insert_between(&buf->link, &old->link, old->link.next);
    chempi_list_remove(&old->link);
    if (moves) {
        chempi_routed_sealed_put(
            flow, buf, chempi_neighbor_seal_extend(flow->seq_out, buf->seq));
        count_unacked(flow, (int64_t)buf->len - old->len);
        chempi_neighbor_buf_hold(buf);
        if (chempi_neighbors_queue(&routed->neighbors,
                                   chempi_routed_way_next(flow, way), buf))
            chempi_neighbor_buf_drop(buf);
        routed->resent++;
        chempi_routed_trace_resent(flow, &f, old->tally, buf->tally, moves);
    }
    chempi_neighbor_buf_drop(old);
    return 0;
}

static int resend_list(struct chempi_routed_flow *flow,
                       struct chempi_list *head,
                       struct chempi_routed_moves *moves)
{
    CHEMPI_LIST_FOR_SAFE (pos, head) {
        struct chempi_neighbor_buf *buf =
            CHEMPI_CONTAINER_OF(pos, struct chempi_neighbor_buf, link);
        const int rc = is_stray(chempi_routed_of(flow), buf)
                           ? resend(flow, buf, moves)
                           : 0;

        if (rc)
            return rc;
    }
    return 0;
}

/* By other ways what was to go through a gateway that is dead now. */
static int resend_strays(struct chempi_routed_flow *flow)
{
    struct chempi_routed_moves moves;
    int rc;

    moves.count = 0;
    moves.has_part = false;
    rc = resend_list(flow, &flow->unacked, &moves);
    if (!rc)
        rc = resend_list(flow, &flow->held, NULL);
    flow->has_strays = rc == -ENOMEM;
    return rc;
}

/* Frames that there was no memory to send again. */
static int pump_strays(struct chempi_routed_flow *flow)
{
    if (!flow->has_strays)
        return 0;
    if (resend_strays(flow) == -ENOMEM)
        miss_memory(flow, CHEMPI_ROUTED_FOR_STRAYS);
    else
        chempi_shortage_end(&flow->shortages[CHEMPI_ROUTED_FOR_STRAYS]);
    return !flow->has_strays;
}

/* A way that was learned from the peer's frames is none of the table's. */
static void forget_learned(struct chempi_routed_flow *flow, uint32_t dead)
{
    for (uint32_t i = 0; i < flow->way_count; i++) {
        struct chempi_routed_way *way = &flow->ways[i];

        for (uint32_t k = 0; !way->range && k < way->gateway_count; k++)
            if (way->gateways[k] == dead)
                way->gateway_count = 0;
    }
}

int chempi_routed_flow_reroute(struct chempi_routed_flow *flow, uint32_t dead)
{
    bool had_way = chempi_routed_way_find(flow, 0) != NULL;
    int rc;

    if (!had_way || flow->is_gone)
        return 0;
    forget_learned(flow, dead);
    rc = chempi_routed_way_choose(flow);
    if (!rc)
        rc = resend_strays(flow);
    if (rc == -ENOMEM) {
        chempi_routed_flow_work(flow); /* F1 */
        rc = 0;
    }
    /* An acknowledgement may have been lost. */
    if (!rc)
        chempi_routed_flow_ack(flow, false);
    return rc;
}

/* ---- progress ----------------------------------------------------------- */

int chempi_routed_flow_pump(struct chempi_routed_flow *flow)
{
    struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_sink *sink = routed->dev.params.sink;
    int events = pump_strays(flow) + pump_held(flow) + pump_uncleared(flow) +
                 pump_dropped(flow);
    int rc = 0;

    while (!chempi_list_is_empty(&flow->bulk) && !rc) {
        rc = pump_bulk(flow);
        events += !rc;
    }
    if (rc == -ENOMEM)
        miss_memory(flow, CHEMPI_ROUTED_FOR_DATA);
    if (!chempi_list_is_empty(&flow->bulk))
        chempi_routed_trace_waits(
            flow, CHEMPI_CONTAINER_OF(chempi_list_first(&flow->bulk),
                                      struct chempi_tx, link));
    if (flow->is_starved && (flow->is_gone || chempi_routed_flow_has_room(
                                                  flow, FRAMES_OF_ONE,
                                                  CHEMPI_NEIGHBOR_CHUNK_MAX))) {
        flow->is_starved = false;
        sink->room(routed->dev.params.sink_arg, &flow->ep);
        events +=
            !chempi_shortage_is(&flow->shortages[CHEMPI_ROUTED_FOR_MESSAGE]);
    }
    return events;
}
