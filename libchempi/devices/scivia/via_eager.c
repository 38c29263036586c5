/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines in VIA sends, for cards with the VIA half only. Each direction has a
 * VI of its own, which the sender connects; the receiver posts its descriptors
 * before it accepts and each again as soon as its frame is handled, and only
 * then counts it as taken. What was taken travels back in every frame of the
 * opposite direction, or in a frame of its own after a quarter.
 *
 *   F1  frames sent and not known to be taken: at most `room` less its reserve
 *       before a line, `room` before a frame that only tells (R5)
 *   F2  a slot stands in dev->slot_free, or in the endpoint's `sending` until
 *       the card gives it back, then in `kept` if the connection broke; these
 *       are in the order of seq, and count in dev->unsent
 *   F3  a frame is handled once: seq is the next one, or it had arrived (R6)
 *   F4  memory for SCIVIA_FRAMES_MIN slots, and for as many frames of each peer
 *       that frames will reach, is set aside in the share from the beginning:
 *       the daemon does not ask it back. More are taken while they are a small
 *       part of the share
 *   F5  a frame for which memory is missing stays in `left`, and those behind
 *       it: they are not posted, nor is another connection made, until all are
 *       taken, or it is reported that the peer is gone
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PAGE 4096u
#define PART 4u /* of the share, what frames beyond the least may be */

/* --- memory --- */

/* As many as frames may be had without crowding out what else is registered;
 * no more than must be while others wait for memory: frames are for good. */
static uint32_t choose_count(const struct scivia_dev *dev)
{
    uint64_t more = scivia_frame_bytes(SCIVIA_FRAMES) -
                    scivia_frame_bytes(SCIVIA_FRAMES_MIN);

    return !dev->is_over_share &&
                   dev->memory_user.needed + more <= dev->granted / PART
               ? SCIVIA_FRAMES
               : SCIVIA_FRAMES_MIN;
}

static int get_frames(struct scivia_dev *dev, struct scivia_frame **out,
                      uint32_t *count, uint32_t *handle)
{
    uint32_t n = choose_count(dev);
    size_t len = (size_t)scivia_frame_bytes(n);
    void *memory = NULL;
    int rc;

    if (!dev->is_admitted)
        return -EAGAIN;
    if (chempi_sys->posix_memalign(&memory, PAGE, len) != 0)
        return chempi_err_set(&dev->base.err, -ENOMEM, "out of memory");
    memset(memory, 0, len);
    rc = chempi_scivia_memory_need(dev, memory, len, handle);
    if (rc < 0 && n > SCIVIA_FRAMES_MIN) {
        n = SCIVIA_FRAMES_MIN;
        len = (size_t)scivia_frame_bytes(n);
        rc = chempi_scivia_memory_need(dev, memory, len, handle);
    }
    if (rc < 0)
        free(memory);
    if (rc == -EAGAIN)
        return rc;
    if (rc < 0) {
        dev->base.err = *chempi_adapter_words(dev->adapter);
        return chempi_err_prefix(&dev->base.err,
                                 "cards with the VIA half only move nothing "
                                 "but registered memory (without any, join the "
                                 "nodes by another network)");
    }
    *out = memory;
    *count = n;
    return 0;
}

static int get_slots(struct scivia_dev *dev)
{
    int rc = dev->slot_memory ? 0
                              : get_frames(dev, &dev->slot_memory,
                                           &dev->slot_count, &dev->slot_handle);

    if (rc < 0 || dev->slots[0].frame)
        return rc;
    for (uint32_t i = 0; i < dev->slot_count; i++) {
        dev->slots[i].frame = &dev->slot_memory[i];
        chempi_list_append(&dev->slot_free, &dev->slots[i].link);
    }
    return 0;
}

static int init(struct scivia_ep *ep)
{
    ep->framed = chempi_sys->calloc(1, sizeof(*ep->framed));
    if (!ep->framed)
        return -ENOMEM;
    chempi_list_init(&ep->framed->left);
    ep->framed->room = SCIVIA_FRAMES_MIN;
    ep->window = SCIVIA_FRAMES_MIN - scivia_frame_reserve(SCIVIA_FRAMES_MIN);
    ep->slots = &scivia_dev_of(ep)->slot_free;
    return 0;
}

static int prepare(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    int rc;

    if (framed->memory)
        return 0;
    rc = get_slots(dev);
    if (rc == 0)
        rc = get_frames(dev, &framed->memory, &framed->count, &framed->handle);
    ep->awaits_memory = rc == -EAGAIN;
    if (rc < 0)
        return rc;
    ep->told = &framed->told;
    chempi_list_append(&dev->used, &ep->used_link);
    return 0;
}

void chempi_scivia_via_eager_fini(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;

    if (!framed)
        return;
    chempi_via_vi_destroy(ep->frame_tx);
    chempi_via_vi_destroy(ep->frame_rx); /* nothing is posted any more */
    chempi_scivia_memory_unneed(dev, framed->handle,
                                scivia_frame_bytes(framed->count));
    free(framed->memory);
    free(framed);
}

void chempi_scivia_via_eager_free(struct scivia_dev *dev)
{
    chempi_scivia_memory_unneed(dev, dev->slot_handle,
                                scivia_frame_bytes(dev->slot_count));
    free(dev->slot_memory);
}

/* --- connecting --- */

static int open_frames(struct scivia_ep *ep)
{
    if (!ep->frame_tx) {
        const int rc = chempi_scivia_connect_vi(ep, &ep->frame_tx, NULL,
                                                SCIVIA_DISCRIMINATOR_FRAMES);

        return rc == -ENOMEM && chempi_shortage_may_wait(&ep->shortage)
                   ? -EAGAIN
                   : rc;
    }
    chempi_shortage_end(&ep->shortage);
    return chempi_via_vi_state(ep->frame_tx) == CHEMPI_VIA_CONNECTED ? 0
                                                                     : -EAGAIN;
}

static bool has_to_ask(const struct scivia_ep *ep)
{
    return !ep->frame_tx;
}

/* --- sending --- */

static struct chempi_list *take_first(struct chempi_list *list)
{
    struct chempi_list *node =
        chempi_list_is_empty(list) ? NULL : chempi_list_first(list);

    if (node)
        chempi_list_remove(node);
    return node;
}

static void post(struct scivia_ep *ep, struct scivia_slot *slot)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_frame *frame = slot->frame;
    uint32_t len = slot->descriptor.segments[0].len;

    frame->lines = ep->rx_told = ep->rx_head;
    frame->posted = ep->rx_posted_told = ep->rx_posted;
    frame->room = ep->framed->count;
    ep->framed->has_told_room = true;
    slot->descriptor = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_SEND,
        .segment_count = 1,
        .segments = {{.addr = frame, .handle = dev->slot_handle, .len = len}},
    };
    chempi_list_append(&ep->sending, &slot->link);
    if (chempi_via_post_send(ep->frame_tx, &slot->descriptor) < 0) {
        chempi_list_remove(&slot->link);
        chempi_list_append(&ep->kept, &slot->link);
        ep->is_frame_broken = true;
        chempi_scivia_endpoint_mend(ep);
    }
}

static int send_frame(struct scivia_ep *ep, struct scivia_line *line,
                      struct scivia_span *span, const void *src, uint32_t len)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_slot *slot = CHEMPI_CONTAINER_OF(
        chempi_list_first(&dev->slot_free), struct scivia_slot, link);

    if (span)
        *span = (struct scivia_span){0, len};
    chempi_list_remove(&slot->link);
    dev->unsent++;
    atomic_store_explicit(&line->seq, ep->tx_head + 1, memory_order_relaxed);
    memcpy(&slot->frame->line, line, sizeof(*line));
    if (len > 0)
        memcpy(slot->frame->bytes, src, len);
    slot->descriptor.segments[0].len = (uint32_t)SCIVIA_FRAME_HEAD + len;
    ep->tx_head++;
    post(ep, slot);
    (void)chempi_scivia_via_eager_reap(ep);
    return 0;
}

int chempi_scivia_via_eager_reap(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_via_descriptor *d;
    int events = 0;

    while (ep->frame_tx && (d = chempi_via_send_done(ep->frame_tx))) {
        struct scivia_slot *slot =
            CHEMPI_CONTAINER_OF(d, struct scivia_slot, descriptor);

        events++;
        chempi_list_remove(&slot->link);
        if (d->status == 0) {
            chempi_list_append(&dev->slot_free, &slot->link);
            dev->unsent--;
            ep->breaks = 0;
            continue;
        }
        chempi_list_append(&ep->kept, &slot->link);
        ep->is_frame_broken = true;
        chempi_scivia_endpoint_mend(ep);
    }
    if (!chempi_list_is_empty(&ep->sending))
        chempi_scivia_endpoint_mark(ep);
    return events;
}

static void tell(struct scivia_ep *ep, bool is_urgent)
{
    struct scivia_line line = {.kind = SCIVIA_KIND_TOLD};

    (void)is_urgent; /* whoever waits is called by its card */
    ep->is_tell_owed = false;
    if (!ep->is_tx_open || ep->is_broken || ep->is_gone)
        return; /* the first frame of the next connection tells */
    if (ep->tx_head - ep->tx_tail < ep->framed->room &&
        !chempi_list_is_empty(&scivia_dev_of(ep)->slot_free)) {
        (void)send_frame(ep, &line, NULL, NULL, 0);
        return;
    }
    ep->is_tell_owed = true;
    chempi_scivia_endpoint_mark(ep);
}

/* Send again what had not arrived; the connection is new. */
static void reopen(struct scivia_ep *ep, bool is_first)
{
    struct chempi_list *node;
    struct chempi_list again;

    (void)is_first;
    chempi_list_init(&again);
    chempi_list_splice(&again, &ep->kept);
    while ((node = take_first(&again)))
        post(ep, CHEMPI_CONTAINER_OF(node, struct scivia_slot, link));
    (void)chempi_scivia_via_eager_reap(ep);
    if (ep->rx_head != ep->rx_told || ep->rx_posted != ep->rx_posted_told)
        tell(ep, true);
}

void chempi_scivia_via_eager_drop_tx(struct scivia_ep *ep)
{
    if (!ep->frame_tx)
        return;
    chempi_via_disconnect(ep->frame_tx); /* all comes back */
    (void)chempi_scivia_via_eager_reap(ep);
    chempi_via_vi_destroy(ep->frame_tx);
    ep->frame_tx = NULL;
    ep->is_frame_broken = false;
}

/* The peer is gone: what was not sent never will be. */
static void fail(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_list *node;

    chempi_scivia_via_eager_drop_tx(ep);
    while ((node = take_first(&ep->kept))) {
        chempi_list_append(&dev->slot_free, node);
        dev->unsent--;
    }
}

/* --- taking --- */

/* What the peer has taken; it may not be more than was sent, and what was
 * told late takes nothing back. */
static bool hear_told(struct scivia_ep *ep, uint32_t lines, uint32_t posted)
{
    struct scivia_told *told = &ep->framed->told;
    uint32_t before = atomic_load_explicit(&told->lines, memory_order_relaxed);

    if (ep->tx_head - lines > ep->tx_head - before)
        return ep->tx_head - lines <= SCIVIA_LINES; /* older */
    atomic_store_explicit(&told->lines, lines, memory_order_relaxed);
    atomic_store_explicit(&told->posted, posted, memory_order_relaxed);
    if (ep->is_tx_open)
        ep->tx_tail = lines;
    return true;
}

/* The same in every frame. */
static bool hear_room(struct scivia_ep *ep, uint32_t room)
{
    if (room < ep->framed->room || room > SCIVIA_FRAMES)
        return false;
    ep->framed->room = room;
    ep->window = room - scivia_frame_reserve(room);
    return true;
}

/* R5 */
static uint32_t quarter_of(const struct scivia_framed *framed)
{
    return scivia_frame_quarter(framed->has_told_room ? framed->count
                                                      : SCIVIA_FRAMES_MIN);
}

/* NULL, why the peer breaks the rules, or chempi_shortage_left. */
static const char *take(struct scivia_ep *ep,
                        const struct chempi_via_descriptor *d, bool *is_new)
{
    const struct scivia_frame *frame = d->segments[0].addr;
    struct scivia_framed *framed = ep->framed;
    struct scivia_line line; /* a private copy */
    const char *why;
    uint32_t seq;

    if (d->length < SCIVIA_FRAME_HEAD || d->length > sizeof(*frame))
        return "a frame of wrong length";
    memcpy(&line, &frame->line, sizeof(line));
    seq = atomic_load_explicit(&line.seq, memory_order_relaxed);
    if (!hear_told(ep, frame->lines, frame->posted))
        return "it took more than was sent";
    if (!hear_room(ep, frame->room))
        return "room for an impossible number of frames";
    if (ep->rx_head - seq < SCIVIA_FRAMES)
        return NULL; /* sent again, but it had arrived (F3) */
    if (seq != ep->rx_head + 1)
        return "a frame out of order";
    *is_new = true;
    framed->bytes = frame->bytes;
    framed->len = (uint32_t)(d->length - SCIVIA_FRAME_HEAD);
    why = line.kind == SCIVIA_KIND_TOLD ? NULL
                                        : chempi_scivia_take_line(ep, &line);
    framed->bytes = NULL;
    framed->len = 0;
    return why;
}

/* False: memory is missing. */
static bool take_now(struct scivia_ep *ep, struct chempi_via_descriptor *d)
{
    struct scivia_framed *framed = ep->framed;
    bool is_new = false;
    const char *why;

    if (ep->is_broken)
        return true;
    why = take(ep, d, &is_new);
    if (CHEMPI_UNLIKELY(why == chempi_shortage_left))
        return false;
    if (why) {
        chempi_scivia_endpoint_break(ep, -EPROTO, why);
        return true;
    }
    ep->breaks = 0;
    if (ep->frame_rx)
        (void)chempi_via_post_recv(ep->frame_rx, d); /* as it was before */
    ep->rx_head += is_new;
    if (ep->rx_head - ep->rx_told >= quarter_of(framed))
        tell(ep, true);
    return true;
}

void chempi_scivia_via_eager_take(struct scivia_ep *ep,
                                  struct chempi_via_descriptor *d)
{
    if (d->status < 0)
        return; /* the connection is broken: drop_rx follows */
    if (!chempi_scivia_via_eager_has_left(ep) && take_now(ep, d))
        return;
    chempi_list_append(&ep->framed->left, &d->link);
    chempi_scivia_endpoint_mark(ep);
}

int chempi_scivia_via_eager_retake(struct scivia_ep *ep)
{
    int events = 0;

    while (chempi_scivia_via_eager_has_left(ep)) {
        struct chempi_via_descriptor *d =
            CHEMPI_CONTAINER_OF(chempi_list_first(&ep->framed->left),
                                struct chempi_via_descriptor, link);

        chempi_list_remove(&d->link);
        if (!take_now(ep, d)) {
            chempi_list_prepend(&ep->framed->left, &d->link);
            break;
        }
        events++;
    }
    return events;
}

void chempi_scivia_via_eager_take_all(struct scivia_ep *ep)
{
    struct chempi_via_descriptor *d;

    while (ep->frame_rx && (d = chempi_via_recv_done(ep->frame_rx)))
        chempi_scivia_via_eager_take(ep, d);
}

void chempi_scivia_via_eager_drop_rx(struct scivia_ep *ep)
{
    if (!ep->frame_rx)
        return;
    chempi_via_disconnect(ep->frame_rx); /* what had arrived comes first */
    chempi_scivia_via_eager_take_all(ep);
    chempi_via_vi_destroy(ep->frame_rx);
    ep->frame_rx = NULL;
}

int chempi_scivia_via_eager_accept(struct scivia_ep *ep,
                                   struct chempi_via_request *request)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    uint32_t posted;
    int rc;

    if (!framed)
        return -EINVAL; /* its lines come by remote stores */
    rc = prepare(ep);
    if (rc < 0 && rc != -EAGAIN) { /* nothing can be received, ever */
        dev->refusal = dev->base.err;
        chempi_scivia_endpoint_break(ep, rc, dev->refusal.text);
    }
    if (rc < 0)
        return rc;
    chempi_scivia_via_eager_drop_rx(ep);
    if (chempi_scivia_via_eager_has_left(ep))
        return -EAGAIN;
    rc = chempi_scivia_connect_receiver(ep, &ep->frame_rx);
    if (rc == 0)
        rc = chempi_scivia_connect_post(
            ep->frame_rx, framed->receives, framed->count, framed->memory,
            sizeof(struct scivia_frame), framed->handle, &posted);
    return rc < 0 ? rc : chempi_via_connect_accept(request, ep->frame_rx);
}

static const unsigned char *take_span(struct scivia_ep *ep,
                                      const struct scivia_span *span)
{
    return span->len > 0 && span->len == ep->framed->len ? ep->framed->bytes
                                                         : NULL;
}

const struct scivia_carrier chempi_scivia_via_eager = {
    .protocol = SCIVIA_PROTOCOL_SEND,
    .piece_max = SCIVIA_EAGER_MAX,
    .init = init,
    .prepare = prepare,
    .open = open_frames,
    .has_to_ask = has_to_ask,
    .reopen = reopen,
    .send = send_frame,
    .take_span = take_span,
    .tell = tell,
    .fail = fail,
};
