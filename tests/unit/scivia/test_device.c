/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two scivia devices in one process, driven in turn: who copies what, the
 * registration cache, denied memory, and peers that break the rules.
 */
#define _GNU_SOURCE /* memfd_create */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libchempi/devices/scivia/adapter/internal.h"
#include "libchempi/devices/scivia/internal.h"
#include "libchempi/devices/scivia/scivia.h"
#include "tests/unit/base/rig.h"
#include "tests/unit/scivia/ends.h"

/* Messages that the second end says it has received by a protocol. */
static uint64_t received(enum scivia_protocol protocol)
{
    return ends[1].dev->received[protocol].messages;
}

Test(scivia, zero_copy_is_copied_by_nobody_and_the_others_once)
{
    unsigned char *from = payload();

    open_ends(NULL);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(received(SCIVIA_PROTOCOL_ZERO_COPY), 1);
    cr_expect_eq(gauge(1, "bytes_copied"), 0);
    cr_expect_eq(gauge(0, "bytes_moved"), LEN_MAX);
    cr_expect_eq(gauge(0, "bytes_bounced"), 0);
    transfer(from, 100000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), 100000);
    cr_expect_eq(gauge(0, "bytes_moved"), LEN_MAX + in_pieces(100000));
    transfer(from, 30000, SCIVIA_PROTOCOL_SHARED_MEMORY);
    transfer(from, 5000, SCIVIA_PROTOCOL_SHARED_MEMORY);
    cr_expect_eq(gauge(1, "bytes_copied"), 135000);
    cr_expect_eq(gauge(0, "bytes_moved"), LEN_MAX + in_pieces(100000));
    close_ends();
    free(from);
}

Test(scivia, without_cross_memory_attach_bytes_are_copied_twice_and_counted)
{
    unsigned char *from = payload();

    rig_fail(RIG_READV | RIG_WRITEV, 1, EPERM, 1);
    open_ends(NULL);
    transfer(from, 300000, SCIVIA_PROTOCOL_ZERO_COPY);
    transfer(from, 70000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_eq(gauge(0, "bytes_moved"), 300000 + in_pieces(70000));
    cr_expect_eq(gauge(0, "bytes_bounced"), 300000 + in_pieces(70000));
    close_ends();
    rig_reset();
    free(from);
}

Test(scivia, a_short_message_is_one_packet)
{
    unsigned char *from = payload();
    uint64_t before;

    open_ends(NULL);
    /* Until the peer has said that it polls, each line rings. */
    for (int i = 0; i < 3; i++)
        transfer(from, SCIVIA_INLINE_MAX, SCIVIA_PROTOCOL_SHARED_MEMORY);
    before = gauge(0, "packets");
    for (uint64_t len = 0; len <= SCIVIA_INLINE_MAX; len++)
        transfer(from, len, SCIVIA_PROTOCOL_SHARED_MEMORY);
    cr_expect_eq(gauge(0, "packets") - before, SCIVIA_INLINE_MAX + 1);
    close_ends();
    free(from);
}

Test(scivia, a_buffer_is_registered_once)
{
    unsigned char *from = payload();

    open_ends(NULL);
    for (int i = 0; i < 10; i++)
        transfer(from, 300000, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "cache_misses"), 1);
    cr_expect_eq(gauge(0, "cache_hits"), 9);
    cr_expect_eq(gauge(1, "cache_misses"), 1);
    close_ends();
    free(from);
}

Test(scivia, buffers_that_nobody_uses_make_room_for_others)
{
    /* The library's buffers, and half a megabyte of the user's. */
    static _Atomic uint64_t settings[] = {
        (SCIVIA_STAGES + SCIVIA_RECEIVES) * SCIVIA_CHUNK + LEN_MAX / 2 + 4096,
        1};
    unsigned char *from = payload();

    open_ends(settings);
    for (size_t at = 0; at + LEN_MAX / 4 <= LEN_MAX; at += LEN_MAX / 4)
        transfer(from + at, LEN_MAX / 4, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "cache_misses"), 4);
    cr_expect_eq(gauge(0, "cache_denied"), 0);
    cr_expect_leq(gauge(0, "locked"), settings[0]);
    cr_expect_eq(gauge(1, "bytes_copied"), 0);
    close_ends();
    free(from);
}

Test(scivia, denied_memory_degrades_to_one_copy_and_is_counted)
{
    static _Atomic uint64_t settings[] = {
        (SCIVIA_STAGES + SCIVIA_RECEIVES) * SCIVIA_CHUNK, 1};
    unsigned char *from = payload();

    open_ends(settings);
    transfer(from, 400000, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(received(SCIVIA_PROTOCOL_ZERO_COPY), 0);
    cr_expect_eq(received(SCIVIA_PROTOCOL_ONE_COPY), 1);
    cr_expect_eq(gauge(1, "bytes_copied"), 400000);
    cr_expect_eq(gauge(1, "cache_denied"), 1);
    cr_expect_eq(gauge(0, "cache_denied"), 1); /* staged at the sender */
    cr_expect_eq(gauge(0, "bytes_moved"), in_pieces(400000));
    close_ends();
    free(from);
}

Test(scivia, without_any_memory_the_ring_carries_all)
{
    static _Atomic uint64_t settings[] = {0, 1};
    unsigned char *from = payload();

    open_ends(settings);
    transfer(from, 400000, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), 400000);
    cr_expect_eq(gauge(0, "bytes_moved"), 0);
    cr_expect_eq(gauge(0, "locked"), 0);
    close_ends();
    free(from);
}

Test(scivia, what_exceeds_the_budget_goes_in_windows_and_by_no_copy)
{
    /* The library's buffers, and a quarter of the message. */
    static _Atomic uint64_t settings[] = {
        (SCIVIA_STAGES + SCIVIA_RECEIVES) * SCIVIA_CHUNK + LEN_MAX / 4, 1};
    unsigned char *from = payload();

    open_ends(settings);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), 0);
    cr_expect_eq(gauge(0, "bytes_moved"), LEN_MAX);
    cr_expect_eq(gauge(1, "windowed"), 1);
    cr_expect_eq(gauge(1, "degraded"), 0);
    cr_expect_leq(gauge(0, "locked"), settings[0]);
    cr_expect_leq(gauge(1, "locked"), settings[0]);
    close_ends();
    free(from);
}

Test(scivia, a_share_that_shrinks_is_given_back_and_one_that_grows_is_used)
{
    unsigned char *from = payload();

    open_ends(NULL);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_gt(gauge(1, "locked"), LEN_MAX);
    chempi_memory_set_share(memory, 2 * LEN_MAX); /* of both together */
    cr_expect_leq(gauge(0, "locked"), LEN_MAX);
    cr_expect_leq(gauge(1, "locked"), LEN_MAX);
    cr_expect_eq(gauge(1, "budget"), LEN_MAX);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "windowed"), 1);
    chempi_memory_set_share(memory, 0);
    transfer(from, LEN_MAX / 2, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), LEN_MAX / 2);
    cr_expect_eq(gauge(1, "degraded"), 1);
    chempi_memory_set_share(memory, CHEMPI_MEMORY_UNLIMITED);
    poll_ends(); /* the receiver had ended its connection */
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), LEN_MAX / 2);
    close_ends();
    free(from);
}

Test(scivia, without_a_share_at_first_the_ring_serves_until_there_is_one)
{
    unsigned char *from = payload();

    open_ends_with(NULL, 0);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "locked"), 0);
    cr_expect_eq(gauge(0, "degraded"), 1);
    cr_expect_eq(gauge(1, "bytes_copied"), LEN_MAX);
    chempi_memory_set_share(memory, 8 * LEN_MAX);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(1, "bytes_copied"), LEN_MAX);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_eq(gauge(0, "bytes_moved"), LEN_MAX + in_pieces(50000));
    close_ends();
    free(from);
}

Test(scivia, a_personality_that_is_not_one_opens_nothing)
{
    struct chempi_dev_params params = {.services = &ends[0].services};
    struct chempi_err err = {.text = ""};
    struct chempi_dev *dev;

    ends[0].services = (struct chempi_services){
        .secret = secret,
        .proc_count = 2,
        .node_of_proc = node_of_proc,
        .node_names = node_names,
    };
    cr_assert_eq(setenv("CHEMPI_SCIVIA_PERSONALITY", "/dev/null/none", 1), 0);
    cr_expect_lt(chempi_scivia_ops.open(&params, &dev, &err), 0);
    cr_expect_neq(err.text[0], '\0');
}

/* The share holds what is needed, but not the stages as well, which came
 * first. */
Test(scivia, stages_make_room_for_what_is_needed)
{
    _Atomic uint64_t settings[] = {560 << 10, 1};
    unsigned char *from = payload();

    open_via_ends(settings);
    cr_expect_gt(gauge(0, "locked"), 0);
    transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    for (uint32_t i = 0; i < 2; i++) {
        const struct scivia_dev *dev = (struct scivia_dev *)ends[i].dev;

        cr_expect_eq(gauge(i, "over_share"), 0);
        cr_expect_leq(gauge(i, "locked"), settings[0]);
        cr_expect_geq(gauge(i, "locked"), dev->needed_bytes);
        cr_expect_not(dev->is_over_share);
    }
    close_ends();
    free(from);
}

Test(scivia, idle_stages_go_when_the_share_shrinks_and_come_back)
{
    unsigned char *from = payload();
    const struct scivia_dev *dev;
    struct chempi_memory_state state;

    open_via_ends(NULL);
    dev = (struct scivia_dev *)ends[0].dev;
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_gt(gauge(0, "locked"), dev->needed_bytes);
    chempi_memory_set_share(memory, 0);
    cr_expect_eq(gauge(0, "locked"), dev->needed_bytes);
    cr_expect_eq(gauge(0, "over_share"), dev->needed_bytes);
    cr_expect_not(dev->is_over_share);
    chempi_memory_state(memory, &state);
    cr_expect_geq(state.held, state.used);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ONE_COPY);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "locked"), dev->needed_bytes);
    chempi_memory_set_share(memory, CHEMPI_MEMORY_UNLIMITED);
    cr_expect_gt(gauge(0, "locked"), dev->needed_bytes);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_eq(gauge(0, "over_share"), 0);
    close_ends();
    free(from);
}

/* Receives stand posted for one-copy messages; no progress is made in between
 * but by the receiver. */
Test(scivia, idle_receives_go_when_the_share_shrinks_and_come_back)
{
    const uint64_t receives = SCIVIA_RECEIVES * SCIVIA_CHUNK;
    unsigned char *from = payload();
    uint64_t degraded;

    open_ends(NULL);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_geq(gauge(1, "locked"), receives);
    chempi_memory_set_share(memory, 0);
    (void)ends[1].dev->ops->progress(ends[1].dev);
    cr_expect_eq(gauge(1, "locked"), 0);
    cr_expect_eq(gauge(1, "over_share"), 0);
    cr_expect_eq(gauge(1, "registered_library"), 0);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_eq(gauge(1, "locked"), 0);
    degraded = gauge(1, "degraded");
    chempi_memory_set_share(memory, CHEMPI_MEMORY_UNLIMITED);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_geq(gauge(1, "locked"), receives + LEN_MAX);
    cr_expect_eq(gauge(1, "degraded"), degraded);
    close_ends();
    free(from);
}

/* Frames have what they need before anything else, and no more is registered
 * than may be. */
Test(scivia, few_frames_do_where_memory_is_scarce)
{
    const uint64_t least = 2 * scivia_frame_bytes(SCIVIA_FRAMES_MIN);
    _Atomic uint64_t settings[] = {least, 1};
    unsigned char *from = payload();

    open_via_ends(settings);
    for (int i = 0; i < 50; i++)
        transfer(from, 8000, SCIVIA_PROTOCOL_SEND);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_SEND);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ONE_COPY);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(gauge(i, "locked"), least);
        cr_expect_eq(gauge(i, "over_share"), 0);
    }
    close_ends();
    free(from);
}

Test(scivia, a_process_that_may_not_register_frames_says_so_when_it_starts)
{
    _Atomic uint64_t settings[] = {
        2 * scivia_frame_bytes(SCIVIA_FRAMES_MIN) - 4096, 1};
    struct chempi_dev_params params = {.services = &ends[0].services,
                                       .settings = settings};
    struct chempi_err err = {.text = ""};
    struct chempi_dev *dev;
    int fd = begin_via();

    ends[0].services = (struct chempi_services){
        .secret = secret,
        .proc_count = 2,
        .node_count = 2,
        .node_of_proc = node_of_proc,
        .node_names = node_names,
    };
    cr_expect_eq(chempi_scivia_ops.open(&params, &dev, &err), -ENOSPC);
    end_via(fd);
    cr_expect(strstr(err.text, "CHEMPI_SCIVIA_REGISTERED_MAX"), "%s", err.text);
}

/* Whoever asks for a segment asks again as long as memory is missing, there or
 * here. */
Test(scivia, connecting_waits_for_memory)
{
    unsigned char *from = payload();
    struct chempi_tx tx = message(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    struct scivia_ep *ep;

    open_ends(NULL);
    ep = (struct scivia_ep *)ends[0].ep;
    for (int i = 0; i < 1000 && !ep->was_reached; i++) {
        cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
        poll_end(1);
        poll_end(0);
    }
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    for (int i = 0; i < 20; i++)
        poll_ends();
    cr_assert(ep->was_reached && !ep->is_tx_open && !ep->is_broken);
    cr_expect(chempi_scivia_ops.is_ready(ends[0].dev));
    rig_reset();
    poll_end(0);
    poll_end(0); /* it has asked, and is not answered yet */
    cr_expect_not(chempi_scivia_ops.is_ready(ends[0].dev));
    transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    cr_expect_eq(ends[0].lost + ends[1].lost, 0);
    close_ends();
    free(from);
}

/* Who is connected to what an end exports, in the end's account of it. */
static uint32_t count_users(uint32_t i)
{
    const struct chempi_adapter *adapter =
        ((struct scivia_dev *)ends[i].dev)->adapter;
    uint32_t count = 0;

    CHEMPI_LIST_FOR (node, &adapter->segments) {
        const struct chempi_sci_segment *segment =
            CHEMPI_CONTAINER_OF(node, struct chempi_sci_segment, link);

        CHEMPI_LIST_FOR (user, &segment->users)
            count++;
    }
    return count;
}

/* Whoever cannot map what it was given asks again and again, and the owner
 * knows that it has only one. */
Test(scivia, who_cannot_map_a_segment_has_left_it)
{
    unsigned char *from = payload();
    struct chempi_tx tx = message(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);

    open_ends(NULL);
    while (!((struct scivia_ep *)ends[0].ep)->was_reached) {
        cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
        poll_end(1);
        poll_end(0);
    }
    rig_fail(RIG_MMAP, 1, ENOMEM, 1);
    for (int i = 0; i < 200; i++)
        poll_ends();
    cr_expect_gt(rig_calls(), 50);
    cr_expect_leq(count_users(1), 2, "%u", count_users(1));
    rig_reset();
    transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    cr_expect_eq(count_users(1), 2);
    close_ends();
    free(from);
}

/* Memory is missing at the peer alone, also for what it has still to export. */
Test(scivia, who_has_no_memory_to_connect_is_waited_for)
{
    static const enum rig_call calls[] = {RIG_MALLOC, RIG_FALLOCATE};
    unsigned char *from = payload();
    struct chempi_tx tx = message(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);

    open_ends(NULL);
    cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
    for (int i = 0; i < 400; i++) {
        poll_end(0);
        rig_fail(calls[i / 200], 1, ENOMEM, 1);
        poll_end(1);
        rig_reset();
    }
    cr_assert_not(((struct scivia_ep *)ends[0].ep)->is_tx_open);
    cr_assert_eq(ends[0].lost + ends[1].lost, 0, "%s", ends[0].why);
    transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    close_ends();
    free(from);
}

/* A message from 0 to 1, over a connection for which a call of this kind fails
 * once: call number `nth`. True: there were fewer. */
static bool connect_without(enum rig_call call, unsigned nth, bool has_sci,
                            const unsigned char *from)
{
    bool is_last;

    if (has_sci)
        open_ends(NULL);
    else
        open_via_ends(NULL);
    rig_fail(call, nth, ENOMEM, 0);
    transfer(from, 100,
             has_sci ? SCIVIA_PROTOCOL_SHARED_MEMORY : SCIVIA_PROTOCOL_SEND);
    is_last = rig_calls() < nth;
    rig_reset();
    cr_expect_eq(ends[0].lost + ends[1].lost, 0, "call %u", nth);
    close_ends();
    return is_last;
}

Test(scivia, connecting_misses_memory_anywhere, .timeout = 100)
{
    static const enum rig_call calls[] = {RIG_MALLOC, RIG_MMAP, RIG_MEMFD,
                                          RIG_FALLOCATE};
    unsigned char *from = payload();
    unsigned failed = 0;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(calls); i++) {
        for (int has_sci = 0; has_sci <= 1; has_sci++) {
            unsigned nth = 1;

            while (!connect_without(calls[i], nth, has_sci, from))
                nth++;
            failed += nth - 1;
        }
    }
    cr_expect_gt(failed, 0);
    free(from);
}

/* Connections are neither refused nor given up. */
Test(scivia, frames_wait_until_there_is_a_share)
{
    const uint64_t least = 2 * scivia_frame_bytes(SCIVIA_FRAMES_MIN);
    unsigned char *from = payload();
    struct chempi_tx tx = message(from, 100, SCIVIA_PROTOCOL_SEND);

    open_via_ends_with(NULL, 0);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
        poll_ends();
    }
    cr_expect_eq(gauge(0, "locked") + gauge(1, "locked"), 0);
    chempi_memory_set_share(memory, 2 * least - 4096);
    cr_expect_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
    chempi_memory_set_share(memory, 2 * least);
    transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "locked") + gauge(1, "locked"), 2 * least);
    close_ends();
    free(from);
}

/* A share that comes when nothing is left to be done but to sleep. */
Test(scivia, who_waits_for_a_share_does_not_sleep_when_there_is_one)
{
    unsigned char *from = payload();
    struct chempi_tx tx = message(from, 100, SCIVIA_PROTOCOL_SEND);

    open_via_ends_with(NULL, 0);
    cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), -EAGAIN);
    for (int i = 0; i < 10; i++)
        poll_ends();
    cr_assert_not(chempi_scivia_ops.is_ready(ends[0].dev));
    chempi_memory_set_share(memory, CHEMPI_MEMORY_UNLIMITED);
    cr_expect(chempi_scivia_ops.is_ready(ends[0].dev));
    transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    close_ends();
    free(from);
}

/* What was taken is told late, after all else that a process does before it
 * sleeps, and the connection breaks with that. */
Test(scivia, who_mends_a_connection_does_not_sleep_first)
{
    unsigned char *from = payload();
    struct scivia_dev *dev;
    struct scivia_ep *ep;

    open_via_ends(NULL);
    for (int i = 0; i < 20; i++)
        transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    dev = (struct scivia_dev *)ends[1].dev;
    ep = (struct scivia_ep *)ends[1].ep;
    cr_assert(ep->is_tx_open);
    ep->is_tell_owed = true;
    chempi_scivia_endpoint_mark(ep);
    dev->adapter->faults.broken_vi = CHEMPI_FAULTS_RATE_MAX;
    cr_expect(chempi_scivia_ops.progress(ends[1].dev) > 0 ||
              chempi_scivia_ops.is_ready(ends[1].dev));
    dev->adapter->faults.broken_vi = 0;
    cr_assert_not(chempi_list_is_empty(&dev->opening));
    for (int i = 0; i < 100; i++)
        transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    cr_expect_eq(gauge(1, "reconnects"), 1);
    close_ends();
    free(from);
}

/* A frame that tells what was taken leaves and arrives within one progress(),
 * in which nothing else happens. */
Test(scivia, who_waits_until_the_device_is_drained_hears_of_it)
{
    unsigned char *from = payload();
    struct chempi_dev *dev;
    int events = 0;

    open_via_ends(NULL);
    for (int i = 0; i < 20; i++)
        transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    dev = ends[1].dev;
    for (int i = 0; i < 1000 && !chempi_scivia_ops.is_drained(dev); i++)
        poll_ends();
    cr_assert(chempi_scivia_ops.is_drained(dev));
    ((struct scivia_ep *)ends[1].ep)->is_tell_owed = true;
    chempi_scivia_endpoint_mark((struct scivia_ep *)ends[1].ep);
    for (int i = 0; i < 1000 && !chempi_scivia_ops.is_drained(dev); i++)
        events = chempi_scivia_ops.progress(dev);
    cr_expect(chempi_scivia_ops.is_drained(dev));
    cr_expect_gt(events, 0);
    close_ends();
    free(from);
}

/* More than is taken in a progress(), one after the other. */
static uint32_t to_send;

static void send_one(void)
{
    const struct chempi_tx tx = message(NULL, 0, SCIVIA_PROTOCOL_SEND);

    for (int i = 0; to_send && i < 1000; i++) {
        if (chempi_scivia_ops.inject(ends[0].ep, &tx.env, NULL, 0, false) ==
            CHEMPI_DONE) {
            to_send--;
            return;
        }
        (void)chempi_scivia_ops.progress(ends[0].dev); /* hear of room */
    }
}

Test(scivia, what_an_ended_process_had_sent_is_taken_at_once)
{
    const uint32_t count = 3 * SCIVIA_DRAIN_BUDGET;
    unsigned char *from = payload();
    uint32_t before;

    open_via_ends(NULL);
    for (int i = 0; i < 20; i++)
        transfer(from, 100, SCIVIA_PROTOCOL_SEND);
    before = ends[1].received;
    to_send = count;
    on_arrival = send_one;
    send_one();
    cr_expect_eq(chempi_scivia_ops.ended(ends[1].dev, 0), CHEMPI_REMAINS_NONE);
    on_arrival = NULL;
    cr_expect_eq(ends[1].received - before, count);
    close_ends();
    free(from);
}

/* --- memory that is not what it was --- */

/* Does the kernel hold all of these pages? */
static bool is_locked(const unsigned char *start, size_t len)
{
    for (size_t at = 0; at < len; at += 4096) {
        if (msync((void *)(uintptr_t)(start + at), 4096, MS_INVALIDATE) == 0 ||
            errno != EBUSY)
            return false;
    }
    return true;
}

static unsigned char *map(void *where, size_t len)
{
    unsigned char *at =
        mmap(where, len, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

    cr_assert_neq(at, MAP_FAILED);
    return at;
}

static void fill(unsigned char *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(i * 31 + (i >> 9) + seed);
}

enum { REMAP_NOT, REMAP_FIXED, REMAP_UNMAP, REMAP_MOVE, REMAP_HALF, REMAPS };

/* Give the addresses other pages; where the buffer is then. */
static unsigned char *remap(unsigned char *from, size_t len, int how)
{
    unsigned char *away;

    switch (how) {
    case REMAP_FIXED:
        return map(from, len);
    case REMAP_UNMAP:
        cr_assert_eq(munmap(from, len), 0);
        return map(from, len);
    case REMAP_MOVE:
        away = mremap(from, len, 2 * len, MREMAP_MAYMOVE | MREMAP_FIXED,
                      map(NULL, 2 * len));
        cr_assert_neq(away, MAP_FAILED);
        (void)map(from, len);
        /* Nobody knows the pages there, so nothing may hold them. */
        transfer(from, 4 * 4096, SCIVIA_PROTOCOL_ZERO_COPY);
        cr_expect_not(is_locked(away, 4096));
        cr_expect_not(is_locked(away + 2 * len - 4096, 4096));
        cr_assert_eq(munmap(away, 2 * len), 0);
        return from;
    case REMAP_HALF:
        (void)map(from + len / 2, len / 2);
        return from;
    default:
        return from;
    }
}

Test(scivia, registrations_of_memory_that_was_remapped_are_not_used_again)
{
    const size_t len = 64 * 4096;
    /* Sanitizers pretend that everything can be locked. */
    bool is_real = mlock((const void *)4096, 4096) != 0;
    unsigned char *from;

    open_ends(NULL);
    from = map(NULL, len);
    for (int round = 0; round < 3 * REMAPS; round++) {
        uint64_t hits = gauge(0, "cache_hits");
        int how = round % REMAPS;

        from = remap(from, len, how);
        if (how == REMAP_MOVE)
            hits = gauge(0, "cache_hits");
        fill(from, len, (unsigned)round);
        transfer(from, len, SCIVIA_PROTOCOL_ZERO_COPY);
        cr_expect_eq(gauge(0, "cache_hits"), hits + (round && !how), "round %d",
                     round);
        cr_expect(!is_real || is_locked(from, len), "round %d", round);
        cr_expect_eq(gauge(1, "bytes_copied"), 0);
    }
    cr_expect_geq(gauge(0, "cache_invalidations"), 3 * (REMAPS - 1));
    cr_expect_eq(gauge(0, "cache_unwatched"), 0);
    cr_assert_eq(munmap(from, len), 0);
    close_ends();
}

Test(scivia, nothing_is_kept_when_the_cache_is_off)
{
    static _Atomic uint64_t settings[] = {UINT64_C(64) << 20, 0};
    unsigned char *from = payload();

    open_ends(settings);
    for (int i = 0; i < 3; i++)
        transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "cache_hits"), 0);
    cr_expect_eq(gauge(0, "cache_misses"), 3);
    cr_expect_eq(gauge(0, "locked"), gauge(0, "registered_library"));
    atomic_store(&settings[SCIVIA_SETTING_CACHE], 1);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "cache_hits"), 1);
    atomic_store(&settings[SCIVIA_SETTING_CACHE], 0);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "locked"), gauge(0, "registered_library"));
    close_ends();
    free(from);
}

Test(scivia, memory_of_persistent_requests_stays_when_other_memory_comes)
{
    static _Atomic uint64_t settings[] = {
        (SCIVIA_STAGES + SCIVIA_RECEIVES) * SCIVIA_CHUNK + LEN_MAX / 2, 1};
    unsigned char *from = payload();
    uint64_t misses;

    open_ends(settings);
    chempi_memory_hold(memory, from, LEN_MAX / 8);
    transfer(from, LEN_MAX / 8, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_geq(gauge(0, "registered_persistent"), LEN_MAX / 8);
    for (size_t at = LEN_MAX / 4; at < LEN_MAX; at += LEN_MAX / 8)
        transfer(from + at, LEN_MAX / 8, SCIVIA_PROTOCOL_ZERO_COPY);
    misses = gauge(0, "cache_misses");
    cr_expect_gt(gauge(0, "cache_evictions"), 0);
    transfer(from, LEN_MAX / 8, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(gauge(0, "cache_misses"), misses);
    chempi_memory_release(memory, from, LEN_MAX / 8);
    cr_expect_eq(gauge(0, "registered_persistent"), 0);
    close_ends();
    free(from);
}

/* --- peers that break the rules --- */

/* What the peer would have stored as the next line. */
static void forge_to(uint32_t i, const struct scivia_line *line)
{
    struct scivia_ep *ep = (struct scivia_ep *)ends[i].ep;
    struct scivia_line *slot = &ep->in->lines[ep->rx_head % SCIVIA_LINES];

    memcpy(slot, line, offsetof(struct scivia_line, seq));
    atomic_store(&slot->seq, ep->rx_head + 1);
}

static void forge(const struct scivia_line *line)
{
    forge_to(1, line);
}

static const struct {
    struct scivia_line line;
    const char *words;
} forgeries[] = {
    {{.kind = 0}, "a line of unknown kind"},
    {{.kind = 99}, "a line of unknown kind"},
    {{.kind = SCIVIA_KIND_SHORT, .env_kind = 1, .len = 35}, "too long"},
    {{.kind = SCIVIA_KIND_SHORT, .env_kind = 0}, "unknown kind"},
    {{.kind = SCIVIA_KIND_SHORT, .env_kind = 200}, "unknown kind"},
    {{.kind = SCIVIA_KIND_EAGER,
      .body.eager = {.env = {.len = 5, .kind = 1}, .span = {0, 6}}},
     "a span out of bounds"},
    {{.kind = SCIVIA_KIND_EAGER,
      .body.eager = {.env = {.len = 500, .kind = 1}, .span = {65500, 500}}},
     "a span out of bounds"},
    {{.kind = SCIVIA_KIND_EAGER,
      .body.eager = {.env = {.len = 99999, .kind = 1}, .span = {0, 99999}}},
     "a span out of bounds"},
    {{.kind = SCIVIA_KIND_RTS, .body.rts = {.env = {.len = 0, .kind = 1}}},
     "an announcement of nothing"},
    {{.kind = SCIVIA_KIND_RTS,
      .body.rts = {.env = {.len = 9, .kind = 1},
                   .protocol = SCIVIA_PROTOCOL_COUNT}},
     "an announcement of nothing"},
    {{.kind = SCIVIA_KIND_CTS, .body.cts = {.id = 1, .want = 1, .way = 1}},
     "an answer to nothing that was asked"},
    {{.kind = SCIVIA_KIND_CTS, .body.cts = {.id = UINT64_MAX, .want = 1}},
     "an answer to nothing that was asked"},
    {{.kind = SCIVIA_KIND_DATA, .body.data = {.id = 7, .span = {0, 64}}},
     "data that nobody asked for"},
    {{.kind = SCIVIA_KIND_DONE, .body.id = 3},
     "an end of nothing that was awaited"},
    {{.kind = SCIVIA_KIND_FIN, .body.id = 3},
     "an answer to nothing that was asked"},
};

Test(scivia, a_peer_that_breaks_the_rules_is_given_up)
{
    unsigned char *from = payload();

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(forgeries); i++) {
        open_ends(NULL);
        transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
        forge(&forgeries[i].line);
        for (int k = 0; k < 100; k++)
            poll_ends();
        cr_expect_eq(ends[1].lost, 1, "forgery %zu", i);
        cr_expect_not_null(strstr(ends[1].why, forgeries[i].words), "%zu: %s",
                           i, ends[1].why);
        close_ends();
    }
    free(from);
}

/* A transfer is asked for; the answer names a part that makes no sense. */
Test(scivia, a_window_out_of_bounds_is_refused)
{
    static const struct scivia_cts windows[] = {
        {.want = 100000, .window = 0, .way = SCIVIA_WAY_RDMA},
        {.want = 100000, .window = 100001, .way = SCIVIA_WAY_RDMA},
        {.want = 100000, .window = 99999, .way = SCIVIA_WAY_RING},
        {.want = 100000, .window = 99999, .way = SCIVIA_WAY_SEND},
        {.want = 100000, .window = UINT64_MAX, .way = SCIVIA_WAY_RDMA},
    };
    unsigned char *from = payload();

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(windows); i++) {
        struct chempi_tx tx = {
            .env = {.len = 100000, .context = 1, .kind = CHEMPI_KIND_MESSAGE},
            .buf = from,
            .protocol = SCIVIA_PROTOCOL_ZERO_COPY};
        struct scivia_line line = {.kind = SCIVIA_KIND_CTS,
                                   .body.cts = windows[i]};
        const struct scivia_xfer *xfer;
        struct scivia_dev *dev;

        open_ends(NULL);
        transfer(from, 100000, SCIVIA_PROTOCOL_ZERO_COPY);
        cr_assert_eq(chempi_scivia_ops.send(ends[0].ep, &tx), CHEMPI_PENDING);
        dev = (struct scivia_dev *)ends[0].dev;
        xfer = dev->rndv.xfers.at[0].ptr;
        line.body.cts.id = xfer->base.id;
        forge_to(0, &line);
        (void)ends[0].dev->ops->progress(ends[0].dev);
        for (int k = 0; k < 100; k++)
            poll_ends();
        cr_expect_eq(ends[0].lost, 1, "window %zu", i);
        cr_expect_not_null(strstr(ends[0].why, "a window out of bounds"),
                           "%zu: %s", i, ends[0].why);
        close_ends();
    }
    free(from);
}

Test(scivia, a_peer_that_takes_more_than_was_sent_is_given_up)
{
    unsigned char *from = payload();
    struct scivia_ep *ep;

    open_ends(NULL);
    transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    ep = (struct scivia_ep *)ends[0].ep;
    atomic_store(&ep->in->told.lines, ep->tx_head + 1);
    chempi_scivia_endpoint_mark(ep);
    for (int k = 0; k < 100; k++)
        poll_ends();
    cr_expect_eq(ends[0].lost, 1);
    cr_expect_not_null(strstr(ends[0].why, "took more than was sent"));
    close_ends();
    free(from);
}

static void open_wicked_ends(const char *faults)
{
    cr_assert_eq(setenv("CHEMPI_SCIVIA_FAULTS", faults, 1), 0);
    open_ends(NULL);
    cr_assert_eq(unsetenv("CHEMPI_SCIVIA_FAULTS"), 0);
}

/* However often it breaks: as long as lines go through, it is replaced. */
Test(scivia, a_link_that_breaks_for_ever_is_replaced_while_lines_go_through)
{
    unsigned char *from = payload();

    open_wicked_ends("seed=3,broken-link=200");
    for (uint64_t i = 0; i < 2 * SCIVIA_BREAKS_MAX * 10; i++)
        transfer(from, i % 200, SCIVIA_PROTOCOL_SHARED_MEMORY);
    cr_expect_gt(gauge(0, "reconnects"), 2 * SCIVIA_BREAKS_MAX);
    cr_expect_eq(ends[0].lost + ends[1].lost, 0);
    close_ends();
    free(from);
}

/* Nor is it given up within one message, while pieces go through. */
Test(scivia, a_link_that_breaks_for_ever_is_replaced_while_pieces_go_through)
{
    unsigned char *from = payload();

    open_wicked_ends("seed=3,broken-link=350");
    for (int i = 0; i < 16; i++) /* some are announced while there is no VI */
        transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ONE_COPY);
    cr_expect_gt(gauge(0, "bytes_moved"), LEN_MAX);
    cr_expect_gt(gauge(0, "reconnects"), 2 * SCIVIA_BREAKS_MAX);
    cr_expect_eq(ends[0].lost + ends[1].lost, 0);
    close_ends();
    free(from);
}

/*
 * Half of the descriptors have moved their piece and are told as failed. When
 * the ring takes over, it cuts other pieces, and a transfer may be over at the
 * receiver.
 */
Test(scivia, where_every_vi_breaks_the_ring_takes_over)
{
    static const uint64_t lens[] = {9000, SCIVIA_PIECE, 100000, LEN_MAX};
    unsigned char *from = payload();

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(lens); i++) {
        for (enum scivia_protocol protocol = SCIVIA_PROTOCOL_ONE_COPY;
             protocol <= SCIVIA_PROTOCOL_ZERO_COPY; protocol++) {
            open_wicked_ends("seed=3,broken-vi=1000");
            transfer(from, lens[i], protocol);
            transfer(from, lens[i], protocol);
            cr_expect_eq(gauge(0, "reconnects"), SCIVIA_BREAKS_MAX + 1);
            cr_expect_eq(ends[0].lost + ends[1].lost, 0);
            close_ends();
        }
    }
    free(from);
}

/* Lines between these two come by remote stores; frames were never agreed. */
Test(scivia, a_request_for_frames_between_cards_with_an_sci_half_is_refused)
{
    struct scivia_ep *ep;
    struct scivia_dev *dev;
    struct chempi_via_attributes attributes;
    struct chempi_via_vi *vi;
    unsigned char *from = payload();

    open_ends(NULL);
    transfer(from, 100, SCIVIA_PROTOCOL_SHARED_MEMORY);
    ep = (struct scivia_ep *)ends[0].ep;
    dev = (struct scivia_dev *)ends[0].dev;
    attributes = (struct chempi_via_attributes){
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .user = ep,
    };
    cr_assert_eq(chempi_via_vi_create(dev->adapter, &attributes, &vi), 0);
    cr_assert_eq(
        chempi_via_connect_request(vi, ep->at, SCIVIA_DISCRIMINATOR_FRAMES), 0);
    for (int k = 0; k < 100; k++)
        poll_ends();
    cr_expect_eq(chempi_via_vi_state(vi), CHEMPI_VIA_ERROR);
    cr_expect_eq(chempi_via_vi_status(vi), -ECONNREFUSED);
    chempi_via_vi_destroy(vi);
    transfer(from, LEN_MAX, SCIVIA_PROTOCOL_ZERO_COPY);
    cr_expect_eq(ends[0].lost + ends[1].lost, 0);
    close_ends();
    free(from);
}

Test(scivia, a_peer_that_closes_is_not_lost)
{
    unsigned char *from = payload();

    open_ends(NULL);
    transfer(from, 50000, SCIVIA_PROTOCOL_ONE_COPY);
    chempi_scivia_ops.close(ends[1].dev);
    chempi_pollset_destroy(ends[1].services.pollset);
    for (int k = 0; k < 100; k++) {
        if (chempi_pollset_collect(ends[0].services.pollset, 0) > 0)
            (void)chempi_pollset_dispatch(ends[0].services.pollset);
        (void)ends[0].dev->ops->progress(ends[0].dev);
    }
    cr_expect_eq(ends[0].lost, 0, "%s", ends[0].why);
    cr_expect(chempi_scivia_ops.is_drained(ends[0].dev));
    cr_expect_lt(chempi_scivia_ops.inject(
                     ends[0].ep,
                     &(struct chempi_envelope){.kind = CHEMPI_KIND_MESSAGE},
                     NULL, 0, false),
                 0);
    chempi_scivia_ops.close(ends[0].dev);
    chempi_pollset_destroy(ends[0].services.pollset);
    free(ends[0].data);
    free(ends[1].data);
    chempi_memory_destroy(memory);
    free(from);
}
