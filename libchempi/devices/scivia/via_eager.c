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
 *       the card gives it back, then in `unsent` if the connection broke; both
 *       are in the order of seq, and count in dev->unsent
 *   F3  a frame is handled once: seq is the next one, or it had arrived (R6)
 *   F4  memory for SCIVIA_FRAMES_MIN slots, and for as many frames of each peer
 *       that frames will reach, is set aside in the share from the beginning:
 *       the daemon does not ask it back. More are taken while they are a small
 *       part of the share
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PAGE 4096u
#define PART 4u /* of the share, what frames beyond the least may be */
#define DISCRIMINATOR SCIVIA_DISCRIMINATOR_FRAMES

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

int chempi_scivia_via_eager_init(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    int rc;

    if (framed->memory)
        return 0;
    rc = get_slots(dev);
    if (rc == 0)
        rc = get_frames(dev, &framed->memory, &framed->count, &framed->handle);
    if (rc == 0)
        chempi_list_append(&dev->used, &ep->used_link);
    return rc;
}

void chempi_scivia_via_eager_fini(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;

    if (!framed)
        return;
    chempi_scivia_memory_unneed(dev, framed->handle,
                                scivia_frame_bytes(framed->count));
    chempi_via_vi_destroy(framed->tx);
    chempi_via_vi_destroy(framed->rx);
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

int chempi_scivia_via_eager_open(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    struct chempi_via_attributes attributes = {
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .user = ep,
    };
    int rc;

    if (!framed->tx) {
        rc = chempi_via_vi_create(dev->adapter, &attributes, &framed->tx);
        if (rc == 0)
            rc = chempi_via_connect_request(framed->tx, ep->at, DISCRIMINATOR);
        return rc < 0 ? rc : -EAGAIN;
    }
    return chempi_via_vi_state(framed->tx) == CHEMPI_VIA_CONNECTED ? 0
                                                                   : -EAGAIN;
}

/* --- sending --- */

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
    chempi_list_append(&ep->framed->sending, &slot->link);
    if (chempi_via_post_send(ep->framed->tx, &slot->descriptor) < 0) {
        chempi_list_remove(&slot->link);
        chempi_list_append(&ep->framed->unsent, &slot->link);
        ep->is_frame_broken = true;
        chempi_scivia_endpoint_mend(ep);
    }
}

int chempi_scivia_via_eager_send(struct scivia_ep *ep, struct scivia_line *line,
                                 const void *payload, uint32_t len)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_slot *slot = CHEMPI_CONTAINER_OF(
        chempi_list_first(&dev->slot_free), struct scivia_slot, link);

    chempi_list_remove(&slot->link);
    dev->unsent++;
    atomic_store_explicit(&line->seq, ep->tx_head + 1, memory_order_relaxed);
    memcpy(&slot->frame->line, line, sizeof(*line));
    if (len > 0)
        memcpy(slot->frame->bytes, payload, len);
    slot->descriptor.segments[0].len = (uint32_t)SCIVIA_FRAME_HEAD + len;
    ep->tx_head++;
    post(ep, slot);
    (void)chempi_scivia_via_eager_reap(ep);
    return 0;
}

int chempi_scivia_via_eager_reap(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_framed *framed = ep->framed;
    struct chempi_via_descriptor *d;
    int events = 0;

    while (framed->tx && (d = chempi_via_send_done(framed->tx))) {
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
        chempi_list_append(&framed->unsent, &slot->link);
        ep->is_frame_broken = true;
        chempi_scivia_endpoint_mend(ep);
    }
    if (!chempi_list_is_empty(&framed->sending))
        chempi_scivia_endpoint_mark(ep);
    return events;
}

void chempi_scivia_via_eager_tell(struct scivia_ep *ep)
{
    struct scivia_line line = {.kind = SCIVIA_KIND_TOLD};

    ep->framed->is_tell_owed = false;
    if (!ep->is_tx_open || ep->is_broken || ep->is_gone)
        return; /* the first frame of the next connection tells */
    if (ep->tx_head - ep->tx_tail < ep->framed->room &&
        !chempi_list_is_empty(&scivia_dev_of(ep)->slot_free)) {
        (void)chempi_scivia_via_eager_send(ep, &line, NULL, 0);
        return;
    }
    ep->framed->is_tell_owed = true;
    chempi_scivia_endpoint_mark(ep);
}

void chempi_scivia_via_eager_resend(struct scivia_ep *ep)
{
    struct chempi_list again;

    chempi_list_init(&again);
    while (!chempi_list_is_empty(&ep->framed->unsent)) {
        struct chempi_list *node = chempi_list_first(&ep->framed->unsent);

        chempi_list_remove(node);
        chempi_list_append(&again, node);
    }
    while (!chempi_list_is_empty(&again)) {
        struct chempi_list *node = chempi_list_first(&again);

        chempi_list_remove(node);
        post(ep, CHEMPI_CONTAINER_OF(node, struct scivia_slot, link));
    }
    (void)chempi_scivia_via_eager_reap(ep);
}

void chempi_scivia_via_eager_drop_tx(struct scivia_ep *ep)
{
    struct scivia_framed *framed = ep->framed;

    if (!framed || !framed->tx)
        return;
    chempi_via_disconnect(framed->tx); /* all comes back */
    (void)chempi_scivia_via_eager_reap(ep);
    chempi_via_vi_destroy(framed->tx);
    framed->tx = NULL;
    ep->is_frame_broken = false;
}

void chempi_scivia_via_eager_fail(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    chempi_scivia_via_eager_drop_tx(ep);
    while (!chempi_list_is_empty(&ep->framed->unsent)) {
        struct chempi_list *node = chempi_list_first(&ep->framed->unsent);

        chempi_list_remove(node);
        chempi_list_append(&dev->slot_free, node);
        dev->unsent--;
    }
}
