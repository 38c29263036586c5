/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous over a device that sends nothing: the tests are the wire. What is
 * answered when, what a peer may say, and who is told of what.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "libchempi/services/rndv.h"
#include "tests/unit/base/rig.h"

enum { LEN = 1000, PROTOCOL = 1 };

static struct {
    struct chempi_dev dev;
    struct chempi_rndv rndv;
    struct chempi_ep eps[2];
    struct chempi_rndv_peer peers[2];
    struct chempi_tx tx;
    struct chempi_rx rx;
    struct chempi_xfer *asked;
    uint32_t room; /* words that can be sent */
    uint32_t window;
    bool is_broken;
    bool is_fetching;
    bool is_wanted; /* at once */
    uint32_t refusals;
    enum chempi_verdict refusal;
    uint64_t token[2];
    uint32_t words[16];
    uint64_t word_ids[16];
    uint32_t word_count;
    uint32_t owed;
    uint32_t started;
    uint32_t released;
    uint32_t sent;
    uint32_t delivered;
    int status;
} toy;

static int toy_status(struct chempi_ep *ep)
{
    (void)ep;
    return toy.is_broken ? -ECONNRESET : 0;
}

static int toy_send_rts(struct chempi_xfer *xfer)
{
    toy.asked = xfer;
    return toy.room > 0 ? 0 : -EAGAIN;
}

static void toy_take_rts(struct chempi_xfer *xfer, const void *ask)
{
    (void)ask;
    xfer->protocol = PROTOCOL;
    xfer->took = PROTOCOL;
}

static int toy_send_owed(struct chempi_xfer *xfer)
{
    if (toy.room == 0)
        return -EAGAIN;
    toy.room--;
    toy.words[toy.word_count] = xfer->owed;
    toy.word_ids[toy.word_count++] = xfer->peer_id;
    return 0;
}

static void toy_owes(struct chempi_rndv_peer *peer)
{
    toy.owed++;
    (void)chempi_rndv_flush(peer);
}

static void toy_start(struct chempi_xfer *xfer)
{
    toy.started++;
    if (toy.is_fetching) {
        xfer->state = CHEMPI_RNDV_FETCHING;
        return;
    }
    if (toy.window > 0 && toy.window < xfer->want - xfer->done)
        xfer->until = xfer->done + toy.window;
    else
        xfer->until = xfer->want;
    chempi_rndv_owe(xfer, CHEMPI_RNDV_CTS);
}

static void toy_release(struct chempi_xfer *xfer)
{
    (void)xfer;
    toy.released++;
}

static const struct chempi_rndv_ops toy_ops = {
    .xfer_size = sizeof(struct chempi_xfer),
    .status = toy_status,
    .send_rts = toy_send_rts,
    .send_owed = toy_send_owed,
    .owes = toy_owes,
    .take_rts = toy_take_rts,
    .start = toy_start,
    .release = toy_release,
};

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    (void)arg;
    memcpy(toy.token, arrival->token, sizeof(toy.token));
    cr_assert_eq(arrival->protocol, (uint32_t)PROTOCOL);
    if (toy.refusals > 0) {
        toy.refusals--;
        return toy.refusal;
    }
    if (!toy.is_wanted)
        return CHEMPI_LATER;
    *rx = &toy.rx;
    return CHEMPI_ACCEPT;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    (void)arg;
    cr_assert_eq(rx, &toy.rx);
    toy.delivered++;
    toy.status = status;
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    (void)arg;
    cr_assert_eq(tx, &toy.tx);
    toy.sent++;
    toy.status = status;
}

static const struct chempi_sink sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
};

static void toy_open(void)
{
    toy.dev.params.sink = &sink;
    toy.room = 16;
    toy.tx.env.len = LEN;
    toy.rx.cap = LEN;
    chempi_rndv_init(&toy.rndv, &toy_ops, &toy.dev);
    for (int i = 0; i < 2; i++) {
        toy.eps[i] = (struct chempi_ep){.dev = &toy.dev, .proc = 5};
        chempi_rndv_peer_init(&toy.peers[i], &toy.rndv, &toy.eps[i]);
    }
}

static void toy_close(void)
{
    cr_assert_null(chempi_rndv_check(&toy.rndv));
    chempi_rndv_fini(&toy.rndv);
}

static void ask(uint64_t peer_id)
{
    struct chempi_envelope env = {.len = LEN, .kind = CHEMPI_KIND_MESSAGE};

    cr_assert_null(chempi_rndv_rts(&toy.peers[0], &env, peer_id, NULL));
}

static struct chempi_xfer *send(void)
{
    cr_assert_eq(chempi_rndv_send(&toy.peers[0], &toy.tx, PROTOCOL),
                 CHEMPI_PENDING);
    return toy.asked;
}

TestSuite(rndv, .init = toy_open, .fini = toy_close);

Test(rndv, an_id_is_believed_of_its_peer_in_its_state_only)
{
    struct chempi_xfer *xfer = send();
    uint64_t id = xfer->id;

    cr_assert_eq(toy.tx.ep, &toy.eps[0]);
    cr_assert_eq(chempi_rndv_find_for_cts(&toy.peers[0], id), xfer);
    cr_assert_null(chempi_rndv_find_for_cts(&toy.peers[1], id));
    cr_assert_null(chempi_rndv_find_for_cts(&toy.peers[0], id + 1));
    cr_assert_null(chempi_rndv_find(&toy.peers[0], id, CHEMPI_RNDV_WAITING));
    cr_assert_not_null(chempi_rndv_fin(&toy.peers[1], id));
    cr_assert_null(chempi_rndv_fin(&toy.peers[0], id));
    cr_assert_not_null(chempi_rndv_fin(&toy.peers[0], id), "twice");
    cr_assert_eq(toy.sent, 1);
    cr_assert_eq(toy.rndv.outgoing, 0);
    cr_assert_eq(toy.released, 1);
}

Test(rndv, windows_follow_each_other_and_say_nothing_new)
{
    struct chempi_xfer *xfer = send();

    cr_assert_not_null(chempi_rndv_cts(xfer, 7, LEN + 1, 0, LEN + 1),
                       "more than asked");
    cr_assert_not_null(chempi_rndv_cts(xfer, 7, LEN, 0, 0), "an empty window");
    cr_assert_not_null(chempi_rndv_cts(xfer, 7, 0, 0, 10), "nothing");
    cr_assert_not_null(chempi_rndv_cts(xfer, 7, 800, 0, 900),
                       "beyond what is wanted");
    cr_assert_null(chempi_rndv_cts(xfer, 7, 900, 0, 400));
    cr_assert_eq(xfer->state, CHEMPI_RNDV_PUMPING);
    cr_assert_eq(chempi_list_first(&toy.peers[0].pumping), &xfer->link);
    cr_assert_null(chempi_rndv_find_for_cts(&toy.peers[0], xfer->id));
    xfer->done = 400;
    chempi_rndv_owe(xfer, CHEMPI_RNDV_DONE);
    cr_assert_eq(xfer->state, CHEMPI_RNDV_BETWEEN);
    cr_assert_eq(chempi_rndv_find_for_cts(&toy.peers[0], xfer->id), xfer);
    cr_assert_not_null(chempi_rndv_fin(&toy.peers[0], xfer->id));
    cr_assert_not_null(chempi_rndv_cts(xfer, 7, 800, 400, 800),
                       "wanted 900 before");
    cr_assert_not_null(chempi_rndv_cts(xfer, 8, 900, 400, 900),
                       "another transfer");
    cr_assert_null(chempi_rndv_cts(xfer, 7, 900, 400, 900));
    xfer->done = 900;
    chempi_rndv_owe(xfer, CHEMPI_RNDV_DONE);
    cr_assert_eq(toy.sent, 1);
    cr_assert_eq(toy.status, 0);
    cr_assert_eq(toy.word_ids[1], 7);
}

Test(rndv, what_cannot_be_announced_or_names_nothing_leaves_nothing)
{
    struct chempi_envelope env = {.kind = CHEMPI_KIND_MESSAGE};

    toy.room = 0;
    cr_assert_eq(chempi_rndv_send(&toy.peers[0], &toy.tx, PROTOCOL), -EAGAIN);
    cr_assert_not_null(chempi_rndv_rts(&toy.peers[0], &env, 1, NULL));
    env = (struct chempi_envelope){.len = LEN, .kind = 77};
    cr_assert_not_null(chempi_rndv_rts(&toy.peers[0], &env, 1, NULL));
    cr_assert_eq(toy.rndv.xfers.used, 0);
    cr_assert_eq(toy.sent + toy.delivered, 0);
}

Test(rndv, words_wait_for_room_in_their_order)
{
    toy.room = 0;
    toy.is_wanted = true;
    ask(21);
    toy.is_wanted = false;
    ask(22);
    chempi_rndv_drop(&toy.eps[0], toy.token);
    cr_assert_eq(chempi_rndv_accept(&toy.eps[0], toy.token, &toy.rx), -EINVAL,
                 "it was dropped");
    cr_assert_eq(toy.owed, 2);
    cr_assert_eq(chempi_rndv_flush(&toy.peers[0]), 0);
    toy.room = 1;
    cr_assert_eq(chempi_rndv_flush(&toy.peers[0]), 1);
    cr_assert_eq(toy.words[0], CHEMPI_RNDV_CTS);
    cr_assert_eq(toy.word_ids[0], 21);
    toy.room = 5;
    cr_assert_eq(chempi_rndv_flush(&toy.peers[0]), 1);
    cr_assert_eq(toy.words[1], CHEMPI_RNDV_FIN);
    cr_assert_eq(toy.word_ids[1], 22);
    cr_assert_eq(toy.released, 1);
}

Test(rndv, a_receive_in_windows_is_delivered_once)
{
    struct chempi_xfer *xfer;

    toy.window = 600;
    ask(3);
    cr_assert_eq(chempi_rndv_accept(&toy.eps[0], toy.token, &toy.rx),
                 CHEMPI_PENDING);
    xfer = chempi_rndv_find(&toy.peers[0], toy.token[0], CHEMPI_RNDV_WAITING);
    cr_assert_eq(xfer->until, 600);
    chempi_rndv_done(xfer);
    cr_assert_eq(toy.delivered, 0);
    cr_assert_eq(xfer->until, LEN);
    cr_assert_eq(toy.started, 2);
    chempi_rndv_done(xfer);
    cr_assert_eq(toy.delivered, 1);
    cr_assert_eq(toy.dev.received[PROTOCOL].messages, 1);
    cr_assert_eq(toy.dev.received[PROTOCOL].bytes, LEN);
}

Test(rndv, what_is_not_wanted_does_not_travel)
{
    toy.rx.cap = 0;
    toy.is_wanted = true;
    ask(3);
    cr_assert_eq(toy.delivered, 1);
    cr_assert_eq(toy.started, 0);
    cr_assert_eq(toy.words[0], CHEMPI_RNDV_FIN);
    cr_assert_eq(toy.dev.received[PROTOCOL].bytes, 0);
}

Test(rndv, what_was_fetched_is_told_to_both_sides)
{
    toy.is_fetching = true;
    toy.is_wanted = true;
    toy.room = 0; /* the receive is over all the same */
    ask(3);
    chempi_rndv_fetched(
        chempi_rndv_find(&toy.peers[0], toy.token[0], CHEMPI_RNDV_FETCHING));
    cr_assert_eq(toy.delivered, 1);
    cr_assert_eq(toy.released, 0);
    toy.room = 1;
    (void)chempi_rndv_flush(&toy.peers[0]);
    cr_assert_eq(toy.words[0], CHEMPI_RNDV_FIN);
    cr_assert_eq(toy.released, 1);
}

Test(rndv, a_broken_peer_ends_all_but_what_nobody_has_decided_on)
{
    uint64_t left[2];

    ask(1);
    memcpy(left, toy.token, sizeof(left));
    ask(2);
    toy.is_wanted = true;
    ask(3);
    (void)send();
    toy.is_broken = true;
    chempi_rndv_fail(&toy.peers[1], -EPROTO);
    cr_assert_eq(toy.sent + toy.delivered, 0, "another peer's");
    chempi_rndv_fail(&toy.peers[0], -EPROTO);
    cr_assert_eq(toy.sent, 1);
    cr_assert_eq(toy.delivered, 1);
    cr_assert_eq(toy.status, -EPROTO);
    cr_assert_eq(toy.dev.received[PROTOCOL].messages, 0);
    cr_assert_eq(chempi_rndv_accept(&toy.eps[0], left, &toy.rx), -ECONNRESET);
    toy.token[0]--; /* the one before */
    chempi_rndv_drop(&toy.eps[0], toy.token);
    cr_assert_eq(toy.word_count, 1, "the CTS before; none to a broken peer");
    cr_assert_eq(toy.rndv.xfers.used, 0);
}

Test(rndv, a_transfer_that_has_done_too_much_is_noticed)
{
    struct chempi_xfer *xfer = send();

    cr_assert_null(chempi_rndv_cts(xfer, 7, 900, 0, 400));
    xfer->done = 401;
    cr_assert_not_null(chempi_rndv_check(&toy.rndv));
    xfer->done = 400;
    cr_assert_null(chempi_rndv_check(&toy.rndv));
}

Test(rndv, an_announcement_without_memory_is_left_and_comes_again)
{
    const struct chempi_envelope env = {.len = LEN,
                                        .kind = CHEMPI_KIND_MESSAGE};

    toy.is_wanted = true;
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    cr_assert_eq(chempi_rndv_rts(&toy.peers[0], &env, 77, NULL),
                 chempi_shortage_left);
    cr_assert(chempi_rndv_is_poor(&toy.rndv));
    rig_reset();
    toy.refusals = 2; /* and then there is none for whoever hears of it */
    toy.refusal = CHEMPI_NO_ROOM;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(chempi_rndv_rts(&toy.peers[0], &env, 77, NULL),
                     chempi_shortage_left);
    cr_assert_not(chempi_rndv_is_poor(&toy.rndv));
    cr_assert_eq(toy.rndv.xfers.used, 0u);
    ask(77);
    cr_assert_eq(toy.word_count, 1u);
    cr_assert_eq(toy.words[0], (uint32_t)CHEMPI_RNDV_CTS);
    cr_assert_eq(toy.word_ids[0], 77u);
}

/* It leaves nothing behind, however often it comes. */
Test(rndv, what_is_refused_breaks_the_rules)
{
    const struct chempi_envelope env = {.len = LEN,
                                        .kind = CHEMPI_KIND_MESSAGE};
    const char *why;

    toy.refusals = 3;
    toy.refusal = CHEMPI_REFUSED;
    while (toy.refusals > 0) {
        why = chempi_rndv_rts(&toy.peers[0], &env, 77, NULL);
        cr_assert_not_null(why);
        cr_assert_neq(why, chempi_shortage_left);
        cr_assert_eq(toy.rndv.xfers.used, 0u);
    }
    cr_assert_eq(toy.released, 3u);
    cr_assert_eq(toy.word_count, 0u);
}
