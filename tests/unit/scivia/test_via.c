/* SPDX-License-Identifier: BSD-3-Clause */
/* The VIA half: registration, protection, connections, descriptors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"
#include "tests/unit/base/rig.h"
#include "tests/unit/scivia/duo.h"

#define LEN 200000u

static _Alignas(4096) unsigned char from[LEN];
static _Alignas(4096) unsigned char to[LEN];

static void fill(unsigned char *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

/* Everything connected and both buffers registered. */
struct bench {
    struct duo duo;
    struct pair pair;
    uint32_t from_handle; /* of a */
    uint32_t to_handle;   /* of b, RDMA enabled */
};

static void set_up(struct bench *bench, enum chempi_via_reliability reliability)
{
    duo_open(&bench->duo);
    duo_connect(&bench->duo, reliability, &bench->pair);
    cr_assert_eq(chempi_via_register(bench->duo.a.adapter, from, LEN,
                                     bench->pair.tag_a, 0, &bench->from_handle),
                 0);
    cr_assert_eq(
        chempi_via_register(bench->duo.b.adapter, to, LEN, bench->pair.tag_b,
                            CHEMPI_VIA_ENABLE_WRITE | CHEMPI_VIA_ENABLE_READ,
                            &bench->to_handle),
        0);
    fill(from, LEN, 1);
    memset(to, 0, LEN);
}

static void start(struct bench *bench, enum chempi_via_reliability reliability)
{
    duo_init(&bench->duo);
    set_up(bench, reliability);
}

static struct chempi_via_descriptor *finish(struct bench *bench,
                                            struct chempi_via_vi *vi)
{
    struct chempi_via_descriptor *d = chempi_via_send_done(vi);

    for (int i = 0; !d && i < 10000; i++) {
        (void)chempi_adapter_service(bench->duo.a.adapter);
        (void)chempi_adapter_service(bench->duo.b.adapter);
        d = chempi_via_send_done(vi);
    }
    cr_assert_not_null(d);
    return d;
}

Test(via, a_send_meets_the_receive_that_was_posted)
{
    struct bench b;
    struct chempi_via_descriptor recv;
    struct chempi_via_descriptor send;

    start(&b, CHEMPI_VIA_RELIABLE_RECEPTION);
    recv = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_RECEIVE,
        .segment_count = 3,
        .segments = {{to, b.to_handle, 10},
                     {to + 1000, b.to_handle, 0},
                     {to + 5000, b.to_handle, 60000}},
    };
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    cr_expect_null(chempi_via_recv_done(b.pair.b));
    send = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_SEND,
        .segment_count = 2,
        .segments = {{from, b.from_handle, 40000},
                     {from + 100000, b.from_handle, 7}},
        .has_immediate = true,
        .immediate = 0xfeed,
    };
    cr_assert_eq(chempi_via_post_send(b.pair.a, &send), 0);
    cr_expect_eq(finish(&b, b.pair.a), &send);
    cr_expect_eq(send.status, 0);
    cr_expect_eq(send.length, 40007);
    cr_assert_eq(chempi_via_recv_done(b.pair.b), &recv);
    cr_expect_eq(recv.status, 0);
    cr_expect_eq(recv.length, 40007);
    cr_expect(recv.has_immediate && recv.immediate == 0xfeed);
    cr_expect_arr_eq(to, from, 10);
    cr_expect_arr_eq(to + 5000, from + 10, 39990);
    cr_expect_arr_eq(to + 5000 + 39990, from + 100000, 7);
    cr_expect_eq(to[5000 + 39997], 0);
    cr_expect_eq(chempi_adapter_counters(b.duo.a.adapter)->bytes_moved, 40007);
    cr_expect_eq(chempi_adapter_counters(b.duo.a.adapter)->bytes_bounced, 0);
    duo_close(&b.duo);
}

Test(via, rdma_writes_and_reads_need_nobody_at_the_other_side)
{
    struct bench b;
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = duo_descriptor(CHEMPI_VIA_RDMA_WRITE, from + 3, 150001, b.from_handle);
    d.remote_addr = (uint64_t)(uintptr_t)(to + 9);
    d.remote_handle = b.to_handle;
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    cr_expect_arr_eq(to + 9, from + 3, 150001);
    cr_expect_eq(to[8], 0);
    cr_expect_eq(to[9 + 150001], 0);
    fill(to, LEN, 77);
    d.op = CHEMPI_VIA_RDMA_READ;
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    cr_expect_arr_eq(to + 9, from + 3, 150001);
    cr_expect_null(chempi_via_recv_done(b.pair.b));
    duo_close(&b.duo);
}

Test(via, a_write_with_immediate_data_takes_a_receive)
{
    struct bench b;
    struct chempi_via_descriptor recv = {.op = CHEMPI_VIA_RECEIVE};
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    d = duo_descriptor(CHEMPI_VIA_RDMA_WRITE, from, 100, b.from_handle);
    d.remote_addr = (uint64_t)(uintptr_t)to;
    d.remote_handle = b.to_handle;
    d.has_immediate = true;
    d.immediate = 5;
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    cr_assert_eq(chempi_via_recv_done(b.pair.b), &recv);
    cr_expect_eq(recv.immediate, 5);
    cr_expect_eq(recv.length, 100);
    duo_close(&b.duo);
}

/* --- protection --- */

static void expect_refused(struct bench *b, struct chempi_via_descriptor *d)
{
    unsigned char before[64];

    memcpy(before, to, sizeof(before));
    cr_assert_eq(chempi_via_post_send(b->pair.a, d), 0);
    cr_expect_eq(finish(b, b->pair.a)->status, -EACCES);
    cr_expect_eq(chempi_via_vi_state(b->pair.a), CHEMPI_VIA_ERROR);
    cr_expect_eq(b->duo.a.errors, 1);
    cr_expect_eq(b->duo.a.error_status, -EACCES);
    cr_expect_arr_eq(before, to, sizeof(before));
    cr_expect_geq(chempi_adapter_counters(b->duo.a.adapter)->refused, 1);
    duo_pump(&b->duo);
    cr_expect_eq(chempi_via_vi_state(b->pair.b), CHEMPI_VIA_ERROR);
    cr_expect_eq(b->duo.b.errors, 1);
    duo_close(&b->duo);
}

static struct chempi_via_descriptor write_to(struct bench *b)
{
    struct chempi_via_descriptor d =
        duo_descriptor(CHEMPI_VIA_RDMA_WRITE, from, 64, b->from_handle);

    d.remote_addr = (uint64_t)(uintptr_t)to;
    d.remote_handle = b->to_handle;
    return d;
}

Test(protection, local_memory_of_another_tag_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;
    uint32_t tag;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    cr_assert_eq(chempi_via_ptag_create(b.duo.a.adapter, &tag), 0);
    cr_assert_eq(chempi_via_register(b.duo.a.adapter, from, LEN, tag, 0,
                                     &d.segments[0].handle),
                 0);
    expect_refused(&b, &d);
}

Test(protection, remote_memory_of_another_tag_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;
    uint32_t tag;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    cr_assert_eq(chempi_via_ptag_create(b.duo.b.adapter, &tag), 0);
    cr_assert_eq(chempi_via_register(b.duo.b.adapter, to, LEN, tag,
                                     CHEMPI_VIA_ENABLE_WRITE, &d.remote_handle),
                 0);
    expect_refused(&b, &d);
}

Test(protection, a_write_that_was_not_enabled_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    cr_assert_eq(chempi_via_register(b.duo.b.adapter, to, LEN, b.pair.tag_b,
                                     CHEMPI_VIA_ENABLE_READ, &d.remote_handle),
                 0);
    expect_refused(&b, &d);
}

Test(protection, a_read_that_was_not_enabled_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    d.op = CHEMPI_VIA_RDMA_READ;
    cr_assert_eq(chempi_via_register(b.duo.b.adapter, to, LEN, b.pair.tag_b,
                                     CHEMPI_VIA_ENABLE_WRITE, &d.remote_handle),
                 0);
    expect_refused(&b, &d);
}

Test(protection, a_byte_beyond_a_region_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    d.remote_addr += LEN - 63;
    expect_refused(&b, &d);
}

Test(protection, a_region_that_was_deregistered_is_refused)
{
    struct bench b;
    struct chempi_via_descriptor d;
    uint32_t fresh;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    cr_assert_eq(chempi_via_deregister(b.duo.b.adapter, b.to_handle), 0);
    cr_expect_eq(chempi_via_deregister(b.duo.b.adapter, b.to_handle), -EINVAL);
    /* Not even when its entry is used again. */
    for (unsigned i = 0; i < 5000; i++) {
        cr_assert_eq(chempi_via_register(b.duo.b.adapter, to, LEN, b.pair.tag_b,
                                         CHEMPI_VIA_ENABLE_WRITE, &fresh),
                     0);
        cr_assert_neq(fresh, b.to_handle);
        cr_assert_eq(chempi_via_deregister(b.duo.b.adapter, fresh), 0);
    }
    expect_refused(&b, &d);
}

Test(protection, a_receive_into_foreign_memory_cannot_be_posted)
{
    struct bench b;
    struct chempi_via_descriptor d;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = duo_descriptor(CHEMPI_VIA_RECEIVE, to, LEN + 1, b.to_handle);
    cr_expect_eq(chempi_via_post_recv(b.pair.b, &d), -EACCES);
    d = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 10, b.to_handle + 1);
    cr_expect_eq(chempi_via_post_recv(b.pair.b, &d), -EACCES);
    duo_close(&b.duo);
}

/* --- the table --- */

Test(table, registration_beyond_it_fails_and_leaves_nothing_locked)
{
    struct chempi_personality p = {.name = "small",
                                   .has_sci = true,
                                   .has_via = true,
                                   .stream_buffers = 8,
                                   .dma_bytes_per_ms = 1000000,
                                   .via_bytes_per_ms = 1000000,
                                   .table_regions = 3,
                                   .table_pages = 20};
    struct duo duo;
    struct chempi_lmm *lmm;
    uint32_t handles[4];
    uint32_t tag;

    duo_init(&duo);
    duo.params.personality = &p;
    duo_open(&duo);
    lmm = chempi_adapter_lmm(duo.a.adapter);
    cr_assert_eq(chempi_via_ptag_create(duo.a.adapter, &tag), 0);
    cr_expect_eq(chempi_via_register(duo.a.adapter, from, 21 * 4096, tag, 0,
                                     &handles[0]),
                 -ENOSPC);
    cr_expect_eq(chempi_lmm_locked_bytes(lmm), 0);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(chempi_via_register(duo.a.adapter, from + i, 4096, tag, 0,
                                         &handles[i]),
                     0);
    cr_expect_eq(chempi_lmm_locked_bytes(lmm), 2 * 4096);
    cr_expect_eq(
        chempi_via_register(duo.a.adapter, from, 1, tag, 0, &handles[3]),
        -ENOSPC);
    cr_expect_neq(
        strstr(chempi_adapter_words(duo.a.adapter)->text, "3 regions"), NULL);
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(chempi_via_deregister(duo.a.adapter, handles[i]), 0);
    cr_expect_eq(chempi_lmm_locked_bytes(lmm), 0);
    cr_expect_eq(
        chempi_via_register(duo.a.adapter, from, 4096, tag, 0, &handles[3]), 0);
    duo_close(&duo);
}

Test(table, the_budget_of_locked_memory_bounds_registration)
{
    struct duo duo;
    uint32_t handle;
    uint32_t tag;

    duo_init(&duo);
    duo.params.lock_budget_bytes = 8 * 4096;
    duo_open(&duo);
    cr_assert_eq(chempi_via_ptag_create(duo.a.adapter, &tag), 0);
    cr_expect_eq(
        chempi_via_register(duo.a.adapter, from, 9 * 4096, tag, 0, &handle),
        -ENOSPC);
    cr_expect_eq(
        chempi_via_register(duo.a.adapter, from, 8 * 4096, tag, 0, &handle), 0);
    cr_expect_eq(chempi_via_register(duo.a.adapter, from, 0, tag, 0, &handle),
                 -EINVAL);
    cr_expect_eq(chempi_via_register(duo.a.adapter, from, 1, 0, 0, &handle),
                 -EINVAL);
    duo_close(&duo);
}

/* --- no descriptor --- */

Test(drop, a_reliable_send_without_a_receive_breaks_the_connection)
{
    struct bench b;
    struct chempi_via_descriptor d;
    struct chempi_via_descriptor next;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = duo_descriptor(CHEMPI_VIA_SEND, from, 10, b.from_handle);
    next = d;
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, -ENOBUFS);
    cr_expect_eq(chempi_adapter_counters(b.duo.a.adapter)->dropped, 1);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &next), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, -ECONNRESET);
    duo_pump(&b.duo);
    cr_expect_eq(chempi_via_vi_state(b.pair.b), CHEMPI_VIA_ERROR);
    cr_expect_eq(b.duo.b.errors, 1);
    duo_close(&b.duo);
}

Test(drop, an_unreliable_one_is_dropped_and_the_connection_stays)
{
    struct bench b;
    struct chempi_via_descriptor d;
    struct chempi_via_descriptor recv;

    start(&b, CHEMPI_VIA_UNRELIABLE);
    d = duo_descriptor(CHEMPI_VIA_SEND, from, 10, b.from_handle);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    recv = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 10, b.to_handle);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    cr_expect_null(chempi_via_recv_done(b.pair.b));
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    cr_expect_eq(chempi_via_recv_done(b.pair.b), &recv);
    duo_close(&b.duo);
}

Test(drop, a_receive_that_is_too_small_gets_nothing)
{
    struct bench b;
    struct chempi_via_descriptor d;
    struct chempi_via_descriptor recv;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    recv = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 9, b.to_handle);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    d = duo_descriptor(CHEMPI_VIA_SEND, from, 10, b.from_handle);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_eq(finish(&b, b.pair.a)->status, -EMSGSIZE);
    cr_expect_eq(to[0], 0);
    cr_assert_eq(chempi_via_recv_done(b.pair.b), &recv);
    cr_expect_eq(recv.status, -EMSGSIZE);
    duo_close(&b.duo);
}

Test(drop, receives_of_a_broken_connection_come_back)
{
    struct bench b;
    struct chempi_via_descriptor recv[3];

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    for (unsigned i = 0; i < 3; i++) {
        recv[i] = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 9, b.to_handle);
        cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv[i]), 0);
    }
    chempi_via_disconnect(b.pair.a);
    duo_pump(&b.duo);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(chempi_via_recv_done(b.pair.b), &recv[i]);
        cr_expect_eq(recv[i].status, -ECONNRESET);
    }
    cr_expect_null(chempi_via_recv_done(b.pair.b));
    duo_close(&b.duo);
}

Test(drop, no_more_receives_than_the_queue_has_room_for)
{
    static struct chempi_via_descriptor recv[CHEMPI_VIA_DEPTH + 1];
    struct chempi_via_descriptor d;
    struct bench b;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    for (unsigned i = 0; i <= CHEMPI_VIA_DEPTH; i++) {
        recv[i] = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 9, b.to_handle);
        cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv[i]),
                     i < CHEMPI_VIA_DEPTH ? 0 : -ENOSPC);
    }
    d = duo_descriptor(CHEMPI_VIA_SEND, from, 9, b.from_handle);
    for (unsigned i = 0; i < 3 * CHEMPI_VIA_DEPTH; i++) {
        struct chempi_via_descriptor *r;

        cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
        cr_assert_eq(finish(&b, b.pair.a)->status, 0);
        r = chempi_via_recv_done(b.pair.b);
        cr_assert_eq(r, &recv[i % CHEMPI_VIA_DEPTH]);
        cr_assert_eq(chempi_via_post_recv(b.pair.b, r), 0);
    }
    duo_close(&b.duo);
}

/* --- connections --- */

Test(connect, a_request_can_be_refused)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_vi *vi;
    struct chempi_via_descriptor d = {.op = CHEMPI_VIA_SEND};
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_expect_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &vi),
                 -EINVAL); /* no tag */
    cr_assert_eq(chempi_via_ptag_create(duo.a.adapter, &attributes.ptag), 0);
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &vi), 0);
    cr_expect_eq(chempi_via_post_send(vi, &d), -ENOTCONN);
    cr_assert_eq(chempi_via_connect_request(vi, duo.a.link, 1), 0);
    cr_expect_eq(chempi_via_connect_request(vi, duo.a.link, 1), -EISCONN);
    duo_pump(&duo);
    chempi_via_connect_reject(chempi_via_connect_next(duo.b.adapter));
    cr_expect_null(chempi_via_connect_next(duo.b.adapter));
    duo_pump(&duo);
    cr_expect_eq(chempi_via_vi_state(vi), CHEMPI_VIA_ERROR);
    cr_expect_eq(chempi_via_vi_status(vi), -ECONNREFUSED);
    duo_close(&duo);
}

static ssize_t cannot_say(int fd, const struct msghdr *msg, int flags)
{
    (void)fd;
    (void)msg;
    (void)flags;
    errno = ENOBUFS;
    return -1;
}

/* From here to the other call, no word can be sent: links go down. */
static void mute(bool is_mute)
{
    static struct chempi_sys sys;
    static const struct chempi_sys *before;

    if (!is_mute) {
        chempi_sys = before;
        return;
    }
    before = chempi_sys;
    sys = *chempi_sys;
    sys.sendmsg = cannot_say;
    chempi_sys = &sys;
}

/* a asks b, which has a VI and no request but this one. */
static struct chempi_via_request *ask(struct duo *duo,
                                      struct chempi_via_vi **server)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_vi *client;
    struct chempi_via_request *request;

    duo_init(duo);
    duo_open(duo);
    cr_assert_eq(chempi_via_ptag_create(duo->a.adapter, &attributes.ptag), 0);
    cr_assert_eq(chempi_via_vi_create(duo->a.adapter, &attributes, &client), 0);
    cr_assert_eq(chempi_via_ptag_create(duo->b.adapter, &attributes.ptag), 0);
    cr_assert_eq(chempi_via_vi_create(duo->b.adapter, &attributes, server), 0);
    cr_assert_eq(chempi_via_connect_request(client, duo->a.link, 1), 0);
    duo_pump(duo);
    request = chempi_via_connect_next(duo->b.adapter);
    cr_assert_not_null(request);
    return request;
}

Test(connect, a_link_may_go_down_while_its_request_is_accepted)
{
    struct chempi_via_vi *server;
    struct chempi_via_request *request;
    struct duo duo;

    request = ask(&duo, &server);
    mute(true);
    cr_expect_eq(chempi_via_connect_accept(request, server), 0);
    mute(false);
    cr_expect_eq(chempi_via_vi_state(server), CHEMPI_VIA_ERROR);
    duo_pump(&duo);
    cr_expect_eq(duo.b.left, 1);
    cr_expect_null(chempi_via_connect_next(duo.b.adapter));
    duo_close(&duo);
}

Test(connect, a_link_may_go_down_while_its_request_is_refused)
{
    struct chempi_via_vi *server;
    struct chempi_via_request *request;
    struct duo duo;

    request = ask(&duo, &server);
    mute(true);
    chempi_via_connect_reject(request);
    mute(false);
    duo_pump(&duo);
    cr_expect_eq(duo.b.left, 1);
    cr_expect_null(chempi_via_connect_next(duo.b.adapter));
    duo_close(&duo);
}

/* Whoever looks at a request may end a connection over the same link first. */
Test(connect, a_request_whose_link_is_down_can_only_be_refused)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_request *request;
    struct chempi_via_vi *next;
    struct pair pair;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    duo_connect(&duo, CHEMPI_VIA_RELIABLE_DELIVERY, &pair);
    attributes.ptag = pair.tag_a;
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &next), 0);
    cr_assert_eq(chempi_via_connect_request(next, duo.a.link, 1), 0);
    attributes.ptag = pair.tag_b;
    cr_assert_eq(chempi_via_vi_create(duo.b.adapter, &attributes, &next), 0);
    duo_pump(&duo);
    request = chempi_via_connect_next(duo.b.adapter);
    cr_assert_not_null(request);
    mute(true);
    chempi_via_disconnect(pair.b); /* over the link of the request */
    mute(false);
    cr_expect_eq(chempi_via_request_user(request), 1);
    cr_expect_eq(chempi_via_connect_accept(request, next), -ENOTCONN);
    chempi_via_connect_reject(request);
    cr_expect_null(chempi_via_connect_next(duo.b.adapter));
    duo_pump(&duo);
    duo_close(&duo);
}

Test(connect, both_vis_must_have_one_reliability)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY, .ptag = 1};
    struct chempi_via_vi *a;
    struct chempi_via_vi *b;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &a), 0);
    attributes.reliability = CHEMPI_VIA_UNRELIABLE;
    cr_assert_eq(chempi_via_vi_create(duo.b.adapter, &attributes, &b), 0);
    cr_assert_eq(chempi_via_connect_request(a, duo.a.link, 1), 0);
    duo_pump(&duo);
    cr_expect_eq(
        chempi_via_connect_accept(chempi_via_connect_next(duo.b.adapter), b),
        -EINVAL);
    cr_expect_eq(chempi_via_vi_state(b), CHEMPI_VIA_IDLE);
    duo_close(&duo);
}

static void connect_peers(bool is_a_first)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY, .ptag = 1};
    struct chempi_via_vi *a;
    struct chempi_via_vi *b;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &a), 0);
    cr_assert_eq(chempi_via_vi_create(duo.b.adapter, &attributes, &b), 0);
    if (is_a_first) {
        cr_assert_eq(chempi_via_connect_peer(a, duo.a.link, 9), 0);
        duo_pump(&duo);
    }
    cr_assert_eq(chempi_via_connect_peer(b, duo.b.link, 9), 0);
    duo_pump(&duo);
    if (!is_a_first) {
        cr_assert_eq(chempi_via_connect_peer(a, duo.a.link, 9), 0);
        duo_pump(&duo);
    }
    cr_expect_eq(chempi_via_vi_state(a), CHEMPI_VIA_CONNECTED);
    cr_expect_eq(chempi_via_vi_state(b), CHEMPI_VIA_CONNECTED);
    duo_close(&duo);
}

Test(connect, peers_meet_whoever_comes_first)
{
    for (int i = 0; i < 8; i++) /* addresses are random: both orders occur */
        connect_peers(i % 2 == 0);
}

/* --- completion --- */

Test(completion, descriptors_complete_late_but_in_order)
{
    struct chempi_via_descriptor send[50];
    struct chempi_via_descriptor recv[50];
    struct bench b;
    unsigned waits = 0;
    unsigned next = 0;

    duo_init(&b.duo);
    cr_assert_eq(
        chempi_faults_parse("seed=1,late=500", &b.duo.params.faults, NULL), 0);
    set_up(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    for (unsigned i = 0; i < 50; i++) {
        recv[i] =
            duo_descriptor(CHEMPI_VIA_RECEIVE, to + i * 100, 100, b.to_handle);
        cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv[i]), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        send[i] =
            duo_descriptor(CHEMPI_VIA_SEND, from + i * 100, 100, b.from_handle);
        cr_assert_eq(chempi_via_post_send(b.pair.a, &send[i]), 0);
    }
    while (next < 50) {
        struct chempi_via_descriptor *d = chempi_via_send_done(b.pair.a);

        if (!d) {
            cr_assert(chempi_adapter_is_busy(b.duo.a.adapter));
            cr_assert_lt(waits++, 2000);
            (void)chempi_adapter_service(b.duo.a.adapter);
            continue;
        }
        cr_assert_eq(d, &send[next]);
        cr_assert_eq(d->status, 0);
        cr_assert_eq(chempi_via_recv_done(b.pair.b), &recv[next]);
        next++;
    }
    cr_expect_gt(waits, 30);
    cr_expect(!chempi_adapter_is_busy(b.duo.a.adapter));
    cr_expect_arr_eq(to, from, 5000);
    duo_close(&b.duo);
}

Test(completion, a_queue_joins_several_vis)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_descriptor recv[3];
    struct chempi_via_descriptor send[3];
    struct chempi_via_vi *vis[3];
    struct chempi_via_vi *clients[3];
    struct chempi_via_cq *cq;
    struct bench b;
    bool is_recv = false;

    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    cr_assert_eq(chempi_via_cq_create(b.duo.b.adapter, &cq), 0);
    for (unsigned i = 0; i < 3; i++) {
        attributes.recv_cq = NULL;
        attributes.ptag = b.pair.tag_a;
        cr_assert_eq(
            chempi_via_vi_create(b.duo.a.adapter, &attributes, &clients[i]), 0);
        attributes.recv_cq = cq;
        attributes.ptag = b.pair.tag_b;
        cr_assert_eq(
            chempi_via_vi_create(b.duo.b.adapter, &attributes, &vis[i]), 0);
        cr_assert_eq(chempi_via_connect_request(clients[i], b.duo.a.link, i),
                     0);
        duo_pump(&b.duo);
        cr_assert_eq(chempi_via_connect_accept(
                         chempi_via_connect_next(b.duo.b.adapter), vis[i]),
                     0);
        duo_pump(&b.duo);
        recv[i] = duo_descriptor(CHEMPI_VIA_RECEIVE, to, 10, b.to_handle);
        cr_assert_eq(chempi_via_post_recv(vis[i], &recv[i]), 0);
    }
    cr_expect_eq(chempi_via_cq_destroy(cq), -EBUSY);
    cr_expect_null(chempi_via_cq_done(cq, &is_recv));
    for (unsigned i = 3; i-- > 0;) {
        send[i] = duo_descriptor(CHEMPI_VIA_SEND, from, 10, b.from_handle);
        cr_assert_eq(chempi_via_post_send(clients[i], &send[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct chempi_via_vi *vi = chempi_via_cq_wait(cq, &is_recv, 10000);

        cr_assert_not_null(vi);
        cr_expect(is_recv);
        cr_expect_not_null(chempi_via_recv_done(vi));
    }
    cr_expect_null(chempi_via_cq_wait(cq, &is_recv, 0));
    for (unsigned i = 0; i < 3; i++)
        chempi_via_vi_destroy(vis[i]);
    cr_expect_eq(chempi_via_cq_destroy(cq), 0);
    duo_close(&b.duo);
}

/* --- both engines --- */

static struct chempi_sys real_sys;
static struct chempi_via_cq *helper; /* of side b */
static unsigned helped_after;        /* writes of a */

/* Side b looks at its completion queue while a writes. */
static ssize_t write_and_look(pid_t pid, const struct iovec *local,
                              unsigned long local_count,
                              const struct iovec *remote,
                              unsigned long remote_count, unsigned long flags)
{
    bool is_recv;

    if (helper && helped_after-- == 0)
        (void)chempi_via_cq_done(helper, &is_recv);
    return real_sys.process_vm_writev(pid, local, local_count, remote,
                                      remote_count, flags);
}

/* A VI of b with a completion queue, connected from a. */
static void connect_helped(struct bench *b, struct chempi_via_vi **client)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION};
    struct chempi_via_vi *server;

    cr_assert_eq(chempi_via_cq_create(b->duo.b.adapter, &helper), 0);
    attributes.ptag = b->pair.tag_a;
    cr_assert_eq(chempi_via_vi_create(b->duo.a.adapter, &attributes, client),
                 0);
    attributes.ptag = b->pair.tag_b;
    attributes.recv_cq = helper;
    cr_assert_eq(chempi_via_vi_create(b->duo.b.adapter, &attributes, &server),
                 0);
    cr_assert_eq(chempi_via_connect_request(*client, b->duo.a.link, 1), 0);
    duo_pump(&b->duo);
    cr_assert_eq(chempi_via_connect_accept(
                     chempi_via_connect_next(b->duo.b.adapter), server),
                 0);
    duo_pump(&b->duo);
}

static struct chempi_sys look_while_writing(void)
{
    struct chempi_sys sys = real_sys = *chempi_sys;

    sys.process_vm_writev = write_and_look;
    return sys;
}

Test(share, both_engines_move_a_large_write_once)
{
    const struct chempi_sys *before = chempi_sys;
    struct chempi_sys sys = look_while_writing();
    struct chempi_via_descriptor d;
    struct chempi_via_vi *client;
    struct bench b;
    uint64_t moved_a;
    uint64_t moved_b;

    start(&b, CHEMPI_VIA_RELIABLE_RECEPTION);
    connect_helped(&b, &client);
    for (unsigned round = 0; round < 3; round++) {
        fill(from, LEN, round);
        memset(to, 0, LEN);
        helped_after = round;
        d = write_to(&b);
        d.segments[0].len = LEN;
        chempi_sys = &sys;
        cr_assert_eq(chempi_via_post_send(client, &d), 0);
        chempi_sys = before;
        cr_expect_eq(finish(&b, client)->status, 0);
        cr_expect_arr_eq(to, from, LEN);
    }
    moved_a = chempi_adapter_counters(b.duo.a.adapter)->bytes_moved;
    moved_b = chempi_adapter_counters(b.duo.b.adapter)->bytes_moved;
    cr_expect_gt(moved_b, LEN);
    cr_expect_eq(moved_a + moved_b, 3 * LEN);
    cr_expect_eq(chempi_adapter_counters(b.duo.b.adapter)->refused, 0);
    duo_close(&b.duo);
}

Test(share, what_the_other_engine_cannot_read_is_written)
{
    const struct chempi_sys *before = chempi_sys;
    struct chempi_sys sys;
    struct chempi_via_descriptor d;
    struct chempi_via_vi *client;
    struct bench b;

    start(&b, CHEMPI_VIA_RELIABLE_RECEPTION);
    connect_helped(&b, &client);
    rig_fail(RIG_READV, 2, EFAULT, 0);
    sys = look_while_writing();
    helped_after = 0;
    d = write_to(&b);
    d.segments[0].len = LEN;
    chempi_sys = &sys;
    cr_assert_eq(chempi_via_post_send(client, &d), 0);
    cr_expect_eq(finish(&b, client)->status, 0);
    chempi_sys = before;
    cr_expect_arr_eq(to, from, LEN);
    rig_reset();
    duo_close(&b.duo);
}

/* --- bouncing --- */

static void bounce(enum chempi_via_op op)
{
    struct chempi_via_descriptor recv;
    struct chempi_via_descriptor d;
    struct bench b;

    duo_init(&b.duo);
    rig_fail(RIG_READV | RIG_WRITEV, 1, EPERM,
             1); /* found out when the link comes up */
    set_up(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    recv = duo_descriptor(CHEMPI_VIA_RECEIVE, to, LEN, b.to_handle);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    d = duo_descriptor(op, from, LEN, b.from_handle);
    d.remote_addr = (uint64_t)(uintptr_t)to;
    d.remote_handle = b.to_handle;
    if (op == CHEMPI_VIA_RDMA_READ)
        fill(to, LEN, 33);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    cr_expect_null(chempi_via_send_done(b.pair.a));
    cr_expect_eq(finish(&b, b.pair.a)->status, 0);
    cr_expect_arr_eq(to, from, LEN);
    cr_expect_eq(chempi_via_recv_done(b.pair.b) == &recv,
                 op == CHEMPI_VIA_SEND);
    cr_expect_eq(chempi_adapter_counters(b.duo.a.adapter)->bytes_bounced, LEN);
    duo_close(&b.duo);
    rig_reset();
}

Test(bounce, sends_arrive_without_cross_memory_attach)
{
    bounce(CHEMPI_VIA_SEND);
}

Test(bounce, writes_arrive_without_cross_memory_attach)
{
    bounce(CHEMPI_VIA_RDMA_WRITE);
}

Test(bounce, reads_arrive_without_cross_memory_attach)
{
    bounce(CHEMPI_VIA_RDMA_READ);
}

Test(bounce, a_link_may_go_down_while_a_send_waits)
{
    struct bench b;
    struct chempi_via_descriptor d;
    struct chempi_via_descriptor recv;

    rig_fail(RIG_READV | RIG_WRITEV, 1, EPERM, 1);
    start(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    recv = duo_descriptor(CHEMPI_VIA_RECEIVE, to, LEN, b.to_handle);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    d = duo_descriptor(CHEMPI_VIA_SEND, from, LEN, b.from_handle);
    mute(true);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &d), 0);
    mute(false);
    cr_expect_eq(finish(&b, b.pair.a)->status, -ECONNRESET);
    cr_expect_eq(chempi_via_vi_state(b.pair.a), CHEMPI_VIA_ERROR);
    duo_pump(&b.duo);
    duo_close(&b.duo);
    rig_reset();
}

Test(bounce, protection_holds_there_too)
{
    struct chempi_via_descriptor d;
    struct bench b;

    duo_init(&b.duo);
    rig_fail(RIG_READV | RIG_WRITEV, 1, EPERM, 1);
    set_up(&b, CHEMPI_VIA_RELIABLE_DELIVERY);
    d = write_to(&b);
    d.remote_addr += LEN - 63;
    expect_refused(&b, &d);
    rig_reset();
}

/* --- connections that break meanwhile --- */

static struct bench *breaking;

/* While data moves, the receiver gives the connection up, and takes back what
 * it had posted. */
static ssize_t break_first(pid_t pid, const struct iovec *local,
                           unsigned long local_count,
                           const struct iovec *remote,
                           unsigned long remote_count, unsigned long flags)
{
    chempi_via_disconnect(breaking->pair.b);
    cr_expect_eq(chempi_via_recv_done(breaking->pair.b)->status, -ECONNRESET);
    return chempi_sys_libc.process_vm_writev(pid, local, local_count, remote,
                                             remote_count, flags);
}

Test(via, what_the_receiver_has_taken_back_has_not_arrived)
{
    static struct chempi_sys sys;
    struct chempi_via_descriptor recv;
    struct chempi_via_descriptor send;
    struct bench b;

    start(&b, CHEMPI_VIA_RELIABLE_RECEPTION);
    recv = duo_descriptor(CHEMPI_VIA_RECEIVE, to, LEN, b.to_handle);
    cr_assert_eq(chempi_via_post_recv(b.pair.b, &recv), 0);
    send = duo_descriptor(CHEMPI_VIA_SEND, from, LEN, b.from_handle);
    sys = chempi_sys_libc;
    sys.process_vm_writev = break_first;
    breaking = &b;
    chempi_sys = &sys;
    cr_assert_eq(chempi_via_post_send(b.pair.a, &send), 0);
    chempi_sys = &chempi_sys_libc;
    cr_expect_eq(finish(&b, b.pair.a)->status, -ECONNRESET);
    duo_close(&b.duo);
}

/* A connection breaks, with it the link over which that would be told, and so
 * the connection that would run next. */
Test(via, connections_may_break_while_others_run, .timeout = 20)
{
    struct chempi_via_descriptor send[2];
    struct pair second;
    struct bench b;

    duo_init(&b.duo);
    b.duo.params.faults.late = CHEMPI_FAULTS_RATE_MAX;
    set_up(&b, CHEMPI_VIA_RELIABLE_RECEPTION);
    duo_connect(&b.duo, CHEMPI_VIA_RELIABLE_RECEPTION, &second);
    send[0] = send[1] = duo_descriptor(CHEMPI_VIA_SEND, from, 0, 0);
    cr_assert_eq(chempi_via_post_send(b.pair.a, &send[0]), 0);
    cr_assert_eq(chempi_via_post_send(second.a, &send[1]), 0);
    send[0].delay = 0;
    send[1].delay = ADAPTER_LATE_MAX;
    b.duo.a.adapter->faults.broken_vi = CHEMPI_FAULTS_RATE_MAX;
    mute(true);
    (void)chempi_adapter_service(b.duo.a.adapter);
    mute(false);
    cr_expect_eq(finish(&b, b.pair.a)->status, -ECONNRESET);
    cr_expect_eq(finish(&b, second.a)->status, -ECONNRESET);
    duo_close(&b.duo);
}
