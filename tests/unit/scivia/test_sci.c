/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory half: export and import, stores, faults, interrupts. */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/wake/wake.h"

#include "tests/unit/scivia/duo.h"

static void fill(unsigned char *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

Test(sci, what_is_stored_at_one_side_is_there_at_the_other)
{
    static unsigned char bytes[10000];
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char *memory;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    remote = duo_segment(&duo, 20000, &segment);
    memory = chempi_sci_segment_memory(segment);
    for (size_t offset = 0; offset < 130; offset += 13) {
        for (size_t len = 0; len < sizeof(bytes); len = len * 2 + 3) {
            memset(memory, 0x55, 20000);
            fill(bytes, len, (unsigned)len);
            cr_assert_eq(chempi_sci_copy_surely(remote, offset, bytes, len, 1),
                         0);
            cr_assert_arr_eq(memory + offset, bytes, len);
            cr_assert_eq(memory[offset + len], 0x55);
            if (offset)
                cr_assert_eq(memory[offset - 1], 0x55);
        }
    }
    duo_close(&duo);
}

Test(sci, narrow_stores_make_the_same_packets)
{
    static unsigned char bytes[5000];
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char *memory;
    const struct chempi_adapter_counters *counters;
    uint64_t packets;
    uint64_t before;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    counters = chempi_adapter_counters(duo.a.adapter);
    remote = duo_segment(&duo, 8192, &segment);
    memory = chempi_sci_segment_memory(segment);
    for (size_t offset = 0; offset < 70; offset += 7) {
        fill(bytes, sizeof(bytes), (unsigned)offset);
        packets = counters->packets;
        cr_assert_eq(chempi_sci_copy(remote, offset, bytes, sizeof(bytes)), 0);
        chempi_sci_store_barrier(remote);
        packets = counters->packets - packets;
        before = counters->packets;
        memset(memory, 0x55, 8192);
        cr_assert_eq(
            chempi_sci_copy_narrow(remote, offset, bytes, sizeof(bytes)), 0);
        chempi_sci_store_barrier(remote);
        cr_expect_arr_eq(memory + offset, bytes, sizeof(bytes));
        cr_expect_eq(memory[offset + sizeof(bytes)], 0x55);
        cr_expect_eq(counters->packets - before, packets);
    }
    duo_close(&duo);
}

Test(sci, a_segment_is_connected_only_when_exported_and_under_its_tag)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_segment *same;
    struct chempi_sci_remote *early;
    struct chempi_sci_remote *wrong;
    struct chempi_sci_remote *good;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_sci_segment_create(duo.b.adapter, 3, 100, 42, &segment),
                 0);
    cr_expect_eq(chempi_sci_segment_create(duo.b.adapter, 3, 100, 42, &same),
                 -EEXIST);
    cr_expect_eq(chempi_sci_segment_create(duo.b.adapter, 4, 0, 42, &same),
                 -EINVAL);
    cr_expect_eq(chempi_sci_segment_set_available(segment), -EPERM);
    cr_expect_eq(chempi_sci_segment_prepare(segment), 0);
    cr_expect_eq(chempi_sci_connect(duo.a.link, 3, 42, &early), 0);
    duo_pump(&duo);
    cr_expect_eq(chempi_sci_state(early), -ENOENT);
    cr_expect_eq(chempi_sci_segment_set_available(segment), 0);
    cr_expect_eq(chempi_sci_connect(duo.a.link, 3, 41, &wrong), 0);
    cr_expect_eq(chempi_sci_connect(duo.a.link, 3, 42, &good), 0);
    cr_expect_eq(chempi_sci_state(good), -EINPROGRESS);
    duo_pump(&duo);
    cr_expect_eq(chempi_sci_state(wrong), -EACCES);
    cr_expect_eq(chempi_sci_state(good), 0);
    cr_expect_eq(chempi_sci_len(good), 4096);
    cr_expect_eq(chempi_adapter_counters(duo.b.adapter)->refused, 1);
    cr_expect_lt(chempi_sci_copy(wrong, 0, "x", 1), 0);
    duo_close(&duo);
}

Test(sci, stores_beyond_the_segment_are_refused)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char byte = 1;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    remote = duo_segment(&duo, 4096, &segment);
    cr_expect_eq(chempi_sci_copy(remote, 4095, &byte, 1), 0);
    cr_expect_eq(chempi_sci_copy(remote, 4095, &byte, 2), -ERANGE);
    cr_expect_eq(chempi_sci_copy(remote, UINT64_MAX, &byte, 1), -ERANGE);
    cr_expect_eq(chempi_sci_copy_narrow(remote, 4095, &byte, 2), -ERANGE);
    cr_expect_eq(chempi_sci_read(remote, 4096, &byte, 1), -ERANGE);
    cr_expect_eq(chempi_sci_read(remote, 4095, &byte, 1), 0);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->bytes_read, 1);
    duo_close(&duo);
}

Test(sci, removing_a_segment_invalidates_it_for_its_importers)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    remote = duo_segment(&duo, 4096, &segment);
    chempi_sci_segment_remove(segment);
    duo_pump(&duo);
    cr_expect_eq(chempi_sci_state(remote), -ENOTCONN);
    cr_expect_eq(chempi_sci_copy(remote, 0, "x", 1), -ENOTCONN);
    cr_expect_eq(chempi_sci_sequence_check(remote), -ENOTCONN);
    cr_expect_eq(chempi_adapter_link_state(duo.a.link), 0);
    duo_close(&duo);
}

Test(sci, closing_an_adapter_ends_its_links_cleanly)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    remote = duo_segment(&duo, 4096, &segment);
    chempi_adapter_close(duo.b.adapter);
    duo.b.adapter = NULL;
    duo_pump(&duo);
    cr_expect_eq(chempi_sci_state(remote), -ENOTCONN);
    cr_expect_eq(duo.a.down, 1);
    cr_expect(duo.a.was_clean);
    cr_expect_eq(duo.a.left, 1);
    cr_expect_eq(chempi_sci_connect(duo.a.link, 7, 99, &remote), -ENOTCONN);
    duo_close(&duo);
}

Test(sci, an_importer_may_go_and_another_come)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    for (int i = 0; i < 20; i++) {
        remote = duo_segment(&duo, 4096, &segment);
        cr_assert_eq(chempi_sci_copy_surely(remote, 8, "hi", 3, 1), 0);
        chempi_sci_disconnect(remote);
        duo_pump(&duo);
        chempi_sci_segment_remove(segment);
    }
    duo_close(&duo);
}

/* --- faults --- */

static void open_wicked(struct duo *duo, const char *words)
{
    duo_init(duo);
    cr_assert_eq(chempi_faults_parse(words, &duo->params.faults, NULL), 0);
    duo_open(duo);
}

Test(faults, packets_overtake_each_other_until_a_barrier)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char line[64];
    unsigned char *memory;
    unsigned overtaken = 0;
    struct duo duo;

    open_wicked(&duo, "seed=3,reorder=500");
    remote = duo_segment(&duo, 64 * 64, &segment);
    memory = chempi_sci_segment_memory(segment);
    for (unsigned round = 1; round < 50; round++) {
        memset(line, (int)round, sizeof(line));
        for (unsigned i = 0; i < 64; i++) {
            cr_assert_eq(chempi_sci_copy(remote, i * 64, line, 64), 0);
            if (i > 0 && memory[i * 64] == round &&
                memory[(i - 1) * 64] != round)
                overtaken++;
        }
        chempi_sci_store_barrier(remote);
        for (unsigned i = 0; i < 64 * 64; i++)
            cr_assert_eq(memory[i], round);
    }
    cr_expect_gt(overtaken, 100);
    duo_close(&duo);
}

Test(faults, lost_packets_raise_the_error_counter_and_a_second_try_helps)
{
    static unsigned char bytes[5000];
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char *memory;
    unsigned again = 0;
    unsigned holes = 0;
    struct duo duo;

    open_wicked(&duo, "seed=4,lost-packet=10,reorder=100");
    remote = duo_segment(&duo, 8192, &segment);
    memory = chempi_sci_segment_memory(segment);
    for (unsigned round = 0; round < 200; round++) {
        int rc;

        fill(bytes, sizeof(bytes), round);
        do {
            cr_assert_eq(chempi_sci_sequence_start(remote), 0);
            cr_assert_eq(chempi_sci_copy(remote, 33, bytes, sizeof(bytes)), 0);
            rc = chempi_sci_sequence_check(remote);
            if (rc == -EAGAIN) {
                again++;
                holes += memcmp(memory + 33, bytes, sizeof(bytes)) != 0;
            }
        } while (rc == -EAGAIN);
        cr_assert_eq(rc, 0);
        cr_assert_arr_eq(memory + 33, bytes, sizeof(bytes));
    }
    cr_expect_gt(again, 20);
    cr_expect_gt(holes, 10); /* something really was missing */
    cr_expect_geq(chempi_adapter_counters(duo.a.adapter)->packets_lost, again);
    duo_close(&duo);
}

Test(faults, after_a_lost_response_the_data_is_there_and_an_error_told)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    unsigned char line[64];
    unsigned told = 0;
    struct duo duo;

    open_wicked(&duo, "seed=8,lost-response=300");
    remote = duo_segment(&duo, 4096, &segment);
    for (unsigned i = 0; i < 100; i++) {
        memset(line, (int)i, sizeof(line));
        cr_assert_eq(chempi_sci_sequence_start(remote), 0);
        cr_assert_eq(chempi_sci_copy(remote, 0, line, 64), 0);
        told += chempi_sci_sequence_check(remote) == -EAGAIN;
        cr_assert_arr_eq(chempi_sci_segment_memory(segment), line, 64);
    }
    cr_expect(told > 10 && told < 60);
    duo_close(&duo);
}

Test(faults, an_adapter_that_loses_everything_is_given_up)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct duo duo;

    open_wicked(&duo, "lost-packet=1000");
    remote = duo_segment(&duo, 4096, &segment);
    cr_expect_eq(chempi_sci_copy_surely(remote, 0, "x", 1, 100), -EIO);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->packets_lost, 100);
    duo_close(&duo);
}

/* --- DMA --- */

Test(dma, transfers_need_alignment_and_room_and_arrive)
{
    static _Alignas(8) unsigned char bytes[4096];
    static _Alignas(8) unsigned char back[4096];
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct chempi_sci_dma *dma;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    remote = duo_segment(&duo, 8192, &segment);
    fill(bytes, sizeof(bytes), 1);
    cr_expect_eq(chempi_sci_dma_create(duo.a.adapter, 0, &dma), -EINVAL);
    cr_assert_eq(chempi_sci_dma_create(duo.a.adapter, 2, &dma), 0);
    cr_expect_eq(chempi_sci_dma_start(dma), -ENOENT);
    cr_expect_eq(
        chempi_sci_dma_enqueue(dma, remote, 4, bytes, 8, CHEMPI_SCI_DMA_WRITE),
        -EINVAL);
    cr_expect_eq(
        chempi_sci_dma_enqueue(dma, remote, 8, bytes, 12, CHEMPI_SCI_DMA_WRITE),
        -EINVAL);
    cr_expect_eq(chempi_sci_dma_enqueue(dma, remote, 8192, bytes, 8,
                                        CHEMPI_SCI_DMA_WRITE),
                 -ERANGE);
    cr_expect_eq(chempi_sci_dma_enqueue(dma, remote, 16, bytes, 4096,
                                        CHEMPI_SCI_DMA_WRITE),
                 0);
    cr_expect_eq(chempi_sci_dma_enqueue(dma, remote, 16, back, 4096,
                                        CHEMPI_SCI_DMA_READ),
                 0);
    cr_expect_eq(
        chempi_sci_dma_enqueue(dma, remote, 16, back, 8, CHEMPI_SCI_DMA_READ),
        -ENOSPC);
    cr_expect_eq(chempi_sci_dma_start(dma), 0);
    cr_expect_eq(chempi_sci_dma_start(dma), -EBUSY);
    cr_expect_eq(chempi_sci_dma_state(dma), 0);
    cr_expect_arr_eq((char *)chempi_sci_segment_memory(segment) + 16, bytes,
                     4096);
    cr_expect_arr_eq(back, bytes, 4096);
    chempi_sci_dma_remove(dma);
    duo_close(&duo);
}

Test(dma, late_and_lost_transfers_are_told)
{
    static _Alignas(8) unsigned char bytes[64];
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    struct chempi_sci_dma *dma;
    unsigned late = 0;
    unsigned lost = 0;
    struct duo duo;

    open_wicked(&duo, "seed=2,late=300,lost-packet=200");
    remote = duo_segment(&duo, 8192, &segment);
    cr_assert_eq(chempi_sci_dma_create(duo.a.adapter, 1, &dma), 0);
    for (unsigned i = 0; i < 200; i++) {
        int rc;

        fill(bytes, sizeof(bytes), i);
        cr_assert_eq(chempi_sci_dma_enqueue(dma, remote, 0, bytes, 64,
                                            CHEMPI_SCI_DMA_WRITE),
                     0);
        cr_assert_eq(chempi_sci_dma_start(dma), 0);
        while ((rc = chempi_sci_dma_state(dma)) == -EINPROGRESS)
            late++;
        lost += rc == -EIO;
        cr_assert_eq(memcmp(chempi_sci_segment_memory(segment), bytes, 64) == 0,
                     rc == 0);
    }
    cr_expect_gt(late, 50);
    cr_expect(lost > 10 && lost < 100);
    chempi_sci_dma_remove(dma);
    duo_close(&duo);
}

/* --- interrupts --- */

Test(interrupt, a_trigger_wakes_who_is_armed)
{
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), -ENOENT);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 32), -EINVAL);
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), -EEXIST);
    cr_expect_eq(chempi_sci_interrupt_wait(duo.b.adapter, 3, 0), -ETIMEDOUT);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    /* Nobody was armed: counted, but nobody woken. */
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->interrupts, 0);
    cr_expect_eq(chempi_sci_interrupt_take(duo.b.adapter, 3), 2);
    chempi_adapter_arm(duo.b.adapter);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->interrupts, 1);
    cr_expect_gt(chempi_adapter_service(duo.b.adapter), 0);
    cr_expect_eq(chempi_sci_interrupt_wait(duo.b.adapter, 3, -1), 0);
    duo_close(&duo);
}

/* Registered or not: with a barrier of the one who arms, or with fences. */
static void call_who_is_armed(bool is_registered)
{
    struct duo duo;

    duo_init(&duo);
    duo.params.is_registered = is_registered && chempi_wake_register();
    duo_open(&duo);
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_call(duo.a.link, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_take(duo.b.adapter, 3), 0);
    chempi_adapter_arm(duo.b.adapter);
    cr_expect_eq(chempi_sci_interrupt_call(duo.a.link, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_call(duo.a.link, 3), 0);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->interrupts, 1);
    cr_expect_eq(chempi_sci_interrupt_take(duo.b.adapter, 3), 1);
    cr_expect_gt(chempi_adapter_service(duo.b.adapter), 0);
    duo_close(&duo);
}

Test(interrupt, a_call_asks_nothing_of_who_is_not_armed)
{
    call_who_is_armed(false);
    call_who_is_armed(true);
}

Test(interrupt, it_may_get_lost_without_a_word)
{
    unsigned seen = 0;
    struct duo duo;

    open_wicked(&duo, "seed=6,lost-interrupt=400");
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 0), 0);
    for (unsigned i = 0; i < 500; i++) {
        cr_assert_eq(chempi_sci_interrupt_trigger(duo.a.link, 0), 0);
        seen += chempi_sci_interrupt_take(duo.b.adapter, 0);
    }
    cr_expect(seen > 240 && seen < 360);
    duo_close(&duo);
}

/* --- time --- */

/* Never too early; how much too late is the machine's business. */
Test(timing_model, a_personality_takes_its_time)
{
    static unsigned char bytes[64 * 1024];
    struct chempi_personality p = {.name = "slow",
                                   .has_sci = true,
                                   .has_via = true,
                                   .latency_ns = 100000,
                                   .full_latency_ns = 100000,
                                   .full_ns = 1000,
                                   .partial_ns = 2000,
                                   .stream_buffers = 8,
                                   .store_bytes = 4,
                                   .narrow_ns = 100,
                                   .read_ns = 5000,
                                   .dma_bytes_per_ms = 100000,
                                   .dma_setup_ns = 30000,
                                   .via_bytes_per_ms = 100000,
                                   .table_regions = 8,
                                   .table_pages = 100};
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *remote;
    uint64_t start_ns;
    struct duo duo;

    duo_init(&duo);
    duo.params.personality = &p;
    duo_open(&duo);
    remote = duo_segment(&duo, sizeof(bytes), &segment);
    start_ns = chempi_clock_ns();
    cr_assert_eq(chempi_sci_copy(remote, 0, bytes, sizeof(bytes)), 0);
    cr_expect_geq(chempi_clock_ns() - start_ns, 1116000 - 1000);
    chempi_sci_store_barrier(remote);
    start_ns = chempi_clock_ns();
    cr_assert_eq(chempi_sci_copy_narrow(remote, 0, bytes, sizeof(bytes)), 0);
    cr_expect_geq(chempi_clock_ns() - start_ns, 16384 * 100 - 1000);
    chempi_sci_store_barrier(remote);
    start_ns = chempi_clock_ns();
    cr_assert_eq(chempi_sci_copy(remote, 4, bytes, 44), 0); /* 3 pieces */
    cr_expect_geq(chempi_clock_ns() - start_ns, 104000 - 1000);
    start_ns = chempi_clock_ns();
    cr_assert_eq(chempi_sci_read(remote, 0, bytes, 80), 0);
    cr_expect_geq(chempi_clock_ns() - start_ns, 15000 - 1000);
    duo_close(&duo);
}

/* --- reaching --- */

Test(link, an_address_is_checked)
{
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct chempi_adapter_link *link;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    chempi_adapter_address(duo.b.adapter, address);
    cr_expect_eq(
        chempi_adapter_link_open(duo.a.adapter, address, 10, NULL, &link),
        -EINVAL);
    address[0] ^= 1;
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, address,
                                          sizeof(address), NULL, &link),
                 -EINVAL);
    address[0] ^= 1;
    address[8] ^= 1; /* the host */
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, address,
                                          sizeof(address), NULL, &link),
                 -EHOSTUNREACH);
    address[8] ^= 1;
    address[24] ^= 1; /* the name */
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, address,
                                          sizeof(address), NULL, &link),
                 -ECONNREFUSED);
    address[24] ^= 1;
    address[40] ^= 1; /* the cookie */
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, address,
                                          sizeof(address), NULL, &link),
                 0);
    duo_pump(&duo);
    cr_expect_eq(chempi_adapter_link_state(link), -ECONNREFUSED);
    cr_expect_eq(duo.a.down, 1);
    cr_expect_eq(duo.b.left, 0); /* it never was there */
    duo_close(&duo);
}

static int no_descriptors(int fd, struct sockaddr *addr, socklen_t *len,
                          int flags)
{
    static int calls;

    if (calls++ == 0) {
        errno = EMFILE;
        return -1;
    }
    return chempi_sys_libc.accept4(fd, addr, len, flags);
}

Test(link, who_comes_when_descriptors_are_short_sees_an_end)
{
    static struct chempi_sys sys;
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct chempi_adapter_link *link;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    sys = chempi_sys_libc;
    sys.accept4 = no_descriptors;
    chempi_sys = &sys;
    chempi_adapter_address(duo.b.adapter, address);
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, address,
                                          sizeof(address), NULL, &link),
                 0);
    duo_pump(&duo); /* ends: the listener does not stay readable */
    cr_expect_eq(chempi_adapter_link_state(link), -ECONNREFUSED);
    chempi_sys = &chempi_sys_libc;
    duo_close(&duo);
}

Test(link, an_adapter_without_a_half_says_so)
{
    struct chempi_personality p = {.name = "myrinet",
                                   .has_via = true,
                                   .via_bytes_per_ms = 100000,
                                   .table_regions = 8,
                                   .table_pages = 100};
    struct chempi_sci_segment *segment;
    struct chempi_adapter_attributes attributes;
    struct duo duo;
    uint32_t tag;

    duo_init(&duo);
    duo.params.personality = &p;
    duo_open(&duo);
    cr_expect_eq(chempi_sci_segment_create(duo.a.adapter, 1, 10, 1, &segment),
                 -ENOTSUP);
    cr_expect_eq(chempi_sci_interrupt_create(duo.a.adapter, 1), -ENOTSUP);
    cr_expect_eq(chempi_via_ptag_create(duo.a.adapter, &tag), 0);
    chempi_adapter_attributes(duo.a.adapter, &attributes);
    cr_expect_str_eq(attributes.name, "myrinet");
    cr_expect_eq(attributes.region_max, 8);
    cr_expect_eq(attributes.interrupt_max, 0);
    duo_close(&duo);
}
