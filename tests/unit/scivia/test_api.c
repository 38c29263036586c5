/* SPDX-License-Identifier: BSD-3-Clause */
/* The smaller promises of the adapter's headers. */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/devices/scivia/adapter/internal.h"
#include "tests/unit/scivia/duo.h"

Test(api, a_segment_is_rounded_up_and_can_be_withdrawn_from_newcomers)
{
    struct chempi_sci_segment *segment;
    struct chempi_sci_remote *first;
    struct chempi_sci_remote *second = NULL;
    const char byte = 9;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    first = duo_segment(&duo, 100, &segment);
    cr_expect_eq(chempi_sci_segment_len(segment), 4096);
    cr_expect_eq(chempi_sci_len(first), 4096);
    chempi_sci_segment_set_unavailable(segment);
    cr_assert_eq(chempi_sci_connect(duo.a.link, 7, 99, &second), 0);
    duo_pump(&duo);
    cr_expect_eq(chempi_sci_state(second), -ENOENT);
    /* Who is connected stays so. */
    cr_expect_eq(chempi_sci_copy_surely(first, 4095, &byte, 1, 1), 0);
    cr_expect_eq(((const char *)chempi_sci_segment_memory(segment))[4095],
                 byte);
    duo_close(&duo);
}

Test(api, an_interrupt_that_was_removed_cannot_be_triggered)
{
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_sci_interrupt_take(duo.b.adapter, 3), 1);
    chempi_sci_interrupt_remove(duo.b.adapter, 3);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), -ENOENT);
    cr_expect_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    duo_close(&duo);
}

Test(api, who_has_disarmed_is_not_interrupted)
{
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    chempi_adapter_arm(duo.b.adapter);
    chempi_adapter_disarm(duo.b.adapter);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->interrupts, 0);
    chempi_adapter_arm(duo.b.adapter);
    cr_expect_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    cr_expect_eq(chempi_adapter_counters(duo.a.adapter)->interrupts, 1);
    cr_expect_eq(chempi_sci_interrupt_take(duo.b.adapter, 3), 2);
    duo_close(&duo);
}

/* The sleeper pays for being waked, counted from the trigger. */
Test(api, waking_takes_the_personalitys_time)
{
    struct chempi_personality p = {.name = "sleepy",
                                   .has_sci = true,
                                   .stream_buffers = 8,
                                   .dma_bytes_per_ms = 1000,
                                   .interrupt_ns = 3000000};
    uint64_t start_ns;
    struct duo duo;

    duo_init(&duo);
    duo.params.personality = &p;
    duo_open(&duo);
    cr_assert_eq(chempi_sci_interrupt_create(duo.b.adapter, 3), 0);
    chempi_adapter_arm(duo.b.adapter);
    start_ns = chempi_clock_ns();
    cr_assert_eq(chempi_sci_interrupt_trigger(duo.a.link, 3), 0);
    while (chempi_adapter_service(duo.b.adapter) == 0)
        ;
    cr_expect_geq(chempi_clock_ns() - start_ns, p.interrupt_ns - 1000);
    duo_close(&duo);
}

Test(api, the_machines_copies_take_their_time)
{
    static unsigned char from[1 << 20];
    static unsigned char to[1 << 20];
    struct chempi_personality p = {.name = "slow",
                                   .has_sci = true,
                                   .stream_buffers = 8,
                                   .dma_bytes_per_ms = 1000,
                                   .host_bytes_per_ms = 100000};
    uint64_t start_ns;
    struct duo duo;

    memset(from, 7, sizeof(from));
    duo_init(&duo);
    duo.params.personality = &p;
    duo_open(&duo);
    start_ns = chempi_clock_ns();
    chempi_adapter_host_copy(duo.a.adapter, to, from, sizeof(from));
    cr_expect_geq(chempi_clock_ns() - start_ns, 10485760 - 1000);
    cr_expect_arr_eq(to, from, sizeof(from));
    duo_close(&duo);
}

Test(api, a_vi_knows_its_user)
{
    int user;
    const struct chempi_via_attributes attributes = {
        .ptag = 1, .reliability = CHEMPI_VIA_RELIABLE_DELIVERY, .user = &user};
    struct chempi_via_vi *vi;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &vi), 0);
    cr_expect_eq(chempi_via_vi_user(vi), &user);
    cr_expect_eq(chempi_via_vi_state(vi), CHEMPI_VIA_IDLE);
    duo_close(&duo);
}

Test(api, who_has_not_dialled_asks_for_no_connection)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_vi *vi;
    struct pair pair;
    struct duo duo;

    duo_init(&duo);
    duo_open(&duo);
    duo_connect(&duo, CHEMPI_VIA_RELIABLE_DELIVERY, &pair);
    attributes.ptag = pair.tag_b;
    cr_assert_eq(chempi_via_vi_create(duo.b.adapter, &attributes, &vi), 0);
    cr_assert_eq(chempi_via_connect_request(vi, pair.b->at, 1), 0);
    duo_pump(&duo);
    cr_expect_null(chempi_via_connect_next(duo.a.adapter));
    cr_expect_eq(chempi_adapter_link_state(duo.a.link), -EPROTO);
    duo_close(&duo);
}
