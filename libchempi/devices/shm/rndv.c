/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of more than one line (rndv.h). The payload travels in DATA lines
 * (the receiver sent CTS), or the receiver fetches it (copy.c).
 */
#include <errno.h>

#include "libchempi/devices/shm/internal.h"

#define FORM_MIN_BYTES (UINT64_C(48) << 10)

/* --- words --- */

static int send_owed(struct chempi_xfer *base)
{
    struct shm_xfer *xfer = (struct shm_xfer *)base;
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_line *line = shm_next_line(ep);

    if (!shm_has_line(ep))
        return -EAGAIN;
    if (base->owed == CHEMPI_RNDV_CTS) {
        line->kind = SHM_KIND_CTS;
        line->body.cts = (struct shm_cts){
            .id = base->peer_id,
            .peer_id = base->id,
            .from = base->done,
            .want = base->want,
            .refused = xfer->is_refused,
            .timed = xfer->is_timed,
        };
    } else {
        line->kind = SHM_KIND_FIN;
        line->body.fin.id = base->peer_id;
    }
    shm_send_line(ep, line);
    return 0;
}

static void owes(struct chempi_rndv_peer *peer)
{
    struct shm_ep *ep = (struct shm_ep *)peer->ep;
    int rc = chempi_shm_eager_try(ep, 0);

    if (rc == 0)
        (void)chempi_rndv_flush(peer);
    else if (rc == -EAGAIN)
        chempi_shm_eager_wait(ep);
    else
        chempi_shm_eager_give_up(ep, rc);
}

static void release(struct chempi_xfer *base)
{
    struct shm_xfer *xfer = (struct shm_xfer *)base;

    if (base->tx && xfer->share < SHM_HELP_SLOTS)
        shm_ep_of(xfer)->shares_used &= ~(1u << xfer->share);
    chempi_shm_form_free(xfer);
}

/* --- sender --- */

/* A slot to share the copying, SHM_HELP_SLOTS when all are in use. */
static uint32_t get_share(struct shm_ep *ep)
{
    for (uint32_t i = 0; i < SHM_HELP_SLOTS; i++) {
        struct shm_share *share = &ep->tx_pair->shares[i];

        if (ep->shares_used & (1u << i))
            continue;
        ep->shares_used |= 1u << i;
        atomic_store_explicit(&share->claimed, 0, memory_order_relaxed);
        atomic_store_explicit(&share->done, 0, memory_order_relaxed);
        atomic_store_explicit(&share->spent, 0, memory_order_relaxed);
        atomic_store_explicit(&share->failed, 0, memory_order_relaxed);
        atomic_store_explicit(&share->is_closed, 0, memory_order_relaxed);
        return i;
    }
    return SHM_HELP_SLOTS;
}

/* Offer the payload for single copy: its address and form. Unless a connection
 * table has chosen, the receiver may take the ring all the same (choice.c). */
static void offer(struct shm_xfer *xfer, uint32_t protocol, struct shm_rts *rts)
{
    struct chempi_dev *dev = shm_ep_of(xfer)->base.dev;
    const struct chempi_tx *tx = xfer->base.tx;
    bool is_fixed = shm_dev_of(shm_ep_of(xfer))->is_fixed;
    bool is_chosen =
        is_fixed
            ? protocol == SHM_PROTOCOL_SINGLE_COPY
            : xfer->base.len > chempi_dev_setting(dev, SHM_SET_PIPELINE_MAX);
    bool has_form = is_chosen || (!is_fixed && xfer->base.len > FORM_MIN_BYTES);
    uint32_t form_len = 0;

    if (shm_ep_of(xfer)->peer_refuses_cma ||
        !chempi_dev_setting(dev, SHM_SET_SINGLE_COPY))
        return;
    if (!tx->iter && (is_chosen || !is_fixed))
        rts->addr = (uint64_t)(uintptr_t)tx->buf;
    else if (tx->iter && has_form)
        rts->addr = chempi_shm_form_tell(xfer, tx->iter, &form_len);
    if (rts->addr == 0)
        return;
    rts->form = (uint16_t)form_len;
    rts->would_copy = chempi_shm_choice_would_copy(
        shm_ep_of(xfer), xfer->base.len, form_len > 0);
    if (is_chosen && (is_fixed || !tx->iter))
        rts->protocol = SHM_PROTOCOL_SINGLE_COPY;
    if (xfer->base.len >= chempi_dev_setting(dev, SHM_SET_SHARE_MIN))
        xfer->share = get_share(shm_ep_of(xfer));
    rts->help = (uint16_t)xfer->share;
}

static int send_rts(struct chempi_xfer *base)
{
    struct shm_xfer *xfer = (struct shm_xfer *)base;
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_line *line = shm_next_line(ep);
    struct shm_rts rts = {.help = SHM_HELP_SLOTS,
                          .id = base->id,
                          .protocol = SHM_PROTOCOL_PIPELINE};

    xfer->share = SHM_HELP_SLOTS;
    offer(xfer, base->protocol, &rts);
    line->kind = SHM_KIND_RTS;
    line->body.msg.env = base->tx->env;
    line->body.msg.u.rts = rts;
    shm_send_line(ep, line);
    return 0;
}

int chempi_shm_rndv_send(struct shm_ep *ep, struct chempi_tx *tx)
{
    int rc = chempi_shm_eager_room(ep, 0);

    if (rc == 0 && !chempi_rndv_has_room(ep->rndv.rndv)) {
        chempi_shm_eager_want(ep, 0);
        return -EAGAIN;
    }
    return rc < 0 ? rc : chempi_rndv_send(&ep->rndv, tx, tx->protocol);
}

/* Bytes of the next chunk; SHM_CHUNK or a quarter of the data, and no less: to
 * announce 4 KiB takes about as long as to copy them (with chunks of these 16,
 * 32 and 64 KiB took 1.0, 1.6 and 2.6 us, so 0.75, 1.0 and 1.6). Where the
 * cores are far apart that is dear for 16 KiB, and a single copy takes its
 * place. Nor more: the receiver has nothing to copy before the first one is
 * put (with chunks of 64 KiB as much took 9.4 us, 7.5 us so, where a line
 * takes 150 ns to the other core). */
static uint32_t chunk_len(const struct shm_xfer *xfer)
{
    uint64_t left = xfer->base.want - xfer->base.done;
    uint32_t quarter = shm_dev_of(shm_ep_of(xfer))->data_size / 4;
    uint32_t max = quarter < SHM_CHUNK ? quarter : SHM_CHUNK;

    return left < max ? (uint32_t)left : max;
}

static struct shm_xfer *first_pumping(struct shm_ep *ep)
{
    return CHEMPI_CONTAINER_OF(chempi_list_first(&ep->rndv.pumping),
                               struct shm_xfer, base.link);
}

bool chempi_shm_rndv_can_pump(struct shm_ep *ep)
{
    return !chempi_list_is_empty(&ep->rndv.pumping) &&
           (shm_has_room(ep, chunk_len(first_pumping(ep))) ||
            (!ep->is_data_open && shm_has_line(ep)));
}

static void put_payload(struct shm_xfer *xfer, unsigned char *dst, uint32_t len)
{
    const struct chempi_tx *tx = xfer->base.tx;

    if (tx->iter) {
        chempi_rndv_pack(&xfer->base, dst, len);
        return;
    }
    shm_put(shm_ep_of(xfer), dst, (const char *)tx->buf + xfer->base.done, len);
    xfer->base.done += len;
}

static void put_chunk(struct shm_xfer *xfer, uint32_t len)
{
    struct shm_ep *ep = shm_ep_of(xfer);
    struct shm_line *line = shm_next_line(ep);
    uint64_t start = chempi_shm_choice_start(xfer);
    unsigned char *dst;

    line->kind = SHM_KIND_DATA;
    line->body.data.id = xfer->base.peer_id;
    dst = chempi_shm_eager_span(ep, len, &line->body.data.span);
    xfer->spent = 0;
    put_payload(xfer, dst, len);
    chempi_shm_choice_stop(xfer, start);
    line->body.data.spent = (uint32_t)xfer->spent;
    shm_send_line(ep, line);
}

int chempi_shm_rndv_pump(struct shm_ep *ep)
{
    int budget = (int)chempi_dev_setting(ep->base.dev, SHM_SET_PUMP);
    int events = 0;

    while (!chempi_list_is_empty(&ep->rndv.pumping) && events < budget) {
        struct shm_xfer *xfer = first_pumping(ep);
        uint32_t len = chunk_len(xfer);
        int rc = chempi_shm_eager_try(ep, len);

        if (rc < 0 && rc != -EAGAIN)
            chempi_shm_eager_give_up(ep, rc);
        if (rc < 0)
            break;
        put_chunk(xfer, len);
        events++;
        if (xfer->base.done == xfer->base.want)
            chempi_rndv_end(&xfer->base, 0);
    }
    if (!chempi_list_is_empty(&ep->rndv.pumping))
        chempi_shm_eager_wait(ep);
    return events;
}

const char *chempi_shm_rndv_cts(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_cts cts = line->body.cts;
    struct chempi_xfer *xfer;
    const char *why;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = chempi_rndv_find_for_cts(&ep->rndv, cts.id);
    why = chempi_rndv_cts(xfer, cts.peer_id, cts.want, cts.from, cts.want);
    if (why)
        return why;
    if (cts.refused)
        ep->peer_refuses_cma = true;
    ((struct shm_xfer *)xfer)->is_timed = cts.timed != 0;
    if (xfer->tx->iter)
        chempi_segment_seek(xfer->tx->iter, cts.from);
    (void)chempi_shm_rndv_pump(ep);
    return NULL;
}

const char *chempi_shm_rndv_help(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_help help = line->body.help;
    struct shm_xfer *xfer;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = (struct shm_xfer *)chempi_rndv_find(&ep->rndv, help.id,
                                               CHEMPI_RNDV_ASKED);
    if (!xfer || xfer->share >= SHM_HELP_SLOTS || xfer->is_shared ||
        help.want == 0 || help.want > xfer->base.len)
        return "a request for help that nobody offered";
    xfer->is_shared = true;
    chempi_shm_copy_help(xfer, &help);
    return NULL;
}

/* --- receiver --- */

static void take_rts(struct chempi_xfer *base, const void *p)
{
    struct shm_xfer *xfer = (struct shm_xfer *)base;
    struct shm_ep *ep = shm_ep_of(xfer);
    const struct shm_rts *rts = p;

    xfer->form_len = rts->form;
    xfer->share = rts->help;
    xfer->offered = rts->addr;
    xfer->peer_would_copy = rts->would_copy != 0;
    if (rts->addr && (rts->protocol == SHM_PROTOCOL_SINGLE_COPY ||
                      (chempi_shm_copy_is_possible(ep) &&
                       chempi_shm_choice_is_copy(xfer)))) {
        base->protocol = SHM_PROTOCOL_SINGLE_COPY;
        xfer->addr = rts->addr;
    }
}

/* A receive that is begun after its message was announced may be of a call that
 * only posts, and its process compute next: none of a long message then goes
 * through the ring (choice.c). */
static void reconsider(struct shm_xfer *xfer)
{
    if (!xfer->addr && xfer->base.len > SHM_LONG_MIN &&
        !shm_dev_of(shm_ep_of(xfer))->is_asked)
        xfer->addr = xfer->offered;
}

static void start(struct chempi_xfer *base)
{
    struct shm_xfer *xfer = (struct shm_xfer *)base;

    reconsider(xfer);
    if (xfer->addr && chempi_shm_copy_is_possible(shm_ep_of(xfer))) {
        chempi_shm_copy_start(xfer);
        return;
    }
    xfer->is_refused = xfer->addr != 0;
    chempi_rndv_owe(base, CHEMPI_RNDV_CTS);
}

const struct chempi_rndv_ops chempi_shm_rndv_ops = {
    .xfer_size = sizeof(struct shm_xfer),
    .protocol = SHM_PROTOCOL_PIPELINE, /* unless it is fetched */
    .status = chempi_shm_eager_status,
    .send_rts = send_rts,
    .send_owed = send_owed,
    .owes = owes,
    .take_rts = take_rts,
    .start = start,
    .release = release,
};

const char *chempi_shm_rndv_rts(struct shm_ep *ep, const struct shm_line *line)
{
    struct chempi_envelope env = line->body.msg.env;
    struct shm_rts rts = line->body.msg.u.rts;
    const char *why;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    shm_dev_of(ep)->is_asked = true;
    why = chempi_rndv_rts(&ep->rndv, &env, rts.id, &rts);
    shm_dev_of(ep)->is_asked = false;
    return why;
}

const char *chempi_shm_rndv_data(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_data data = line->body.data;
    const unsigned char *src;
    struct shm_xfer *xfer;
    uint64_t start_ns;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = (struct shm_xfer *)chempi_rndv_find(&ep->rndv, data.id,
                                               CHEMPI_RNDV_WAITING);
    src = chempi_shm_eager_take_span(ep, &data.span);
    if (!xfer || !src || data.span.len > xfer->base.want - xfer->base.done)
        return "data that nobody asked for";
    start_ns = chempi_shm_choice_start(xfer);
    chempi_rndv_unpack(&xfer->base, src, data.span.len);
    chempi_shm_choice_stop(xfer, start_ns);
    xfer->peer_spent += data.spent;
    if (xfer->base.done < xfer->base.want)
        return NULL;
    chempi_shm_choice_learn_ring(xfer);
    chempi_rndv_end(&xfer->base, 0);
    return NULL;
}
