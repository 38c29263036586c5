/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device when the system says no. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/shm/shm.h"
#include "tests/unit/base/rig.h"
#include "tests/unit/shm/ends.h"

Test(shm_fault, each_call_that_fails_while_opening_is_survived)
{
    static const enum rig_call calls[] = {RIG_MALLOC, RIG_MMAP, RIG_FALLOCATE};

    for (size_t c = 0; c < CHEMPI_ARRAY_LEN(calls); c++) {
        for (unsigned nth = 1; nth <= 2; nth++) {
            struct ends ends;

            ends_prepare(&ends, 2);
            rig_fail(calls[c], nth, ENOMEM, 0);
            cr_assert_eq(ends_open_one(&ends, 0), -ENOMEM, "call %zu, %u", c,
                         nth);
            cr_assert_neq(ends.end[0].err.text[0], '\0');
            cr_assert_null(ends.end[0].dev);
            rig_reset();
            ends_close(&ends);
        }
    }
}

Test(shm_fault, sending_without_shared_memory_fails_with_words_and_can_recover)
{
    struct ends ends;

    ends_open(&ends, 2);
    for (unsigned nth = 1; nth <= 2; nth++) {
        rig_fail(RIG_FALLOCATE, nth, ENOSPC, 0);
        cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), -ENOSPC);
        cr_assert_not_null(strstr(ends.end[0].dev->err.text, "rank 1"));
        cr_assert_not_null(strstr(ends.end[0].dev->err.text, "memory"));
    }
    rig_reset();
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].received, 1);
    ends_close(&ends);
}

Test(shm_fault, a_receiver_that_cannot_answer_says_why)
{
    struct ends ends;
    struct chempi_tx tx;
    unsigned char *data = ends_payload(50000);

    ends_open(&ends, 2);
    cr_assert_eq(
        ends_send(&ends, 0, 1, &tx, data, 50000, SHM_PROTOCOL_PIPELINE),
        CHEMPI_PENDING);
    rig_fail(RIG_FALLOCATE, 1, ENOSPC, 1);
    ends_settle(&ends);
    rig_reset();
    cr_assert_eq(ends.end[1].failed, 1);
    cr_assert_eq(ends.end[1].lost, 1);
    cr_assert_eq(ends.end[1].lost_status, -ENOSPC);
    cr_assert_not_null(strstr(ends.end[1].lost_why, "out of shared memory"));
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1), -ECONNRESET);
    ends_close(&ends);
    free(data);
}

Test(shm_fault, a_transfer_waits_for_memory)
{
    struct ends ends;
    struct chempi_tx tx;
    unsigned char *data = ends_payload(50000);

    ends_open(&ends, 2);
    for (unsigned nth = 1; nth <= 2; nth++) {
        rig_fail(RIG_MALLOC, nth, ENOMEM, 0);
        cr_assert_eq(
            ends_send(&ends, 0, 1, &tx, data, 50000, SHM_PROTOCOL_PIPELINE),
            -EAGAIN);
    }
    rig_reset();
    ends_settle(&ends);
    cr_assert_eq(ends.end[0].rooms, 1);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    for (uint32_t i = 1; i < 4; i++) { /* to ask in vain is no event */
        cr_assert_eq(ends.end[0].rooms, i);
        cr_assert_eq(
            ends_send(&ends, 0, 1, &tx, data, 50000, SHM_PROTOCOL_PIPELINE),
            -EAGAIN);
        cr_assert(chempi_shm_ops.is_ready(ends.end[0].dev));
        cr_assert_eq(chempi_shm_ops.progress(ends.end[0].dev), 0);
    }
    rig_reset();
    cr_assert(chempi_shm_ops.is_drained(ends.end[0].dev));
    cr_assert_eq(
        ends_send(&ends, 0, 1, &tx, data, 50000, SHM_PROTOCOL_PIPELINE),
        CHEMPI_PENDING);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    ends_settle(&ends); /* the receiver cannot note the announcement */
    rig_reset();
    cr_assert_eq(ends.end[1].rx_count, 0);
    cr_assert(chempi_shm_ops.is_ready(ends.end[1].dev));
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].received, 1);
    cr_assert_eq(ends.end[1].lost, 0);
    ends_close(&ends);
    free(data);
}

/* One single copy of len bytes while a call fails, or that and all later ones;
 * it must arrive all the same. */
static uint32_t copy_while(enum rig_call call, unsigned nth, uint64_t len,
                           int error, bool is_lasting)
{
    struct ends ends;
    struct chempi_tx tx[2];
    unsigned char *data = ends_payload(len);
    uint32_t protocol;

    ends_open(&ends, 2);
    for (uint32_t i = 0; i < 2; i++) /* no ring, where copies are possible */
        ((struct shm_dev *)ends.end[i].dev)->is_fixed = true;
    rig_fail(call, nth, error, is_lasting);
    for (uint32_t i = 0; i < 2; i++) {
        memset(ends.end[1].data, 0, len);
        cr_assert_eq(
            ends_send(&ends, 0, 1, &tx[i], data, len, SHM_PROTOCOL_SINGLE_COPY),
            CHEMPI_PENDING);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].received, i + 1);
        cr_assert_eq(ends.end[0].sent, i + 1);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0);
    }
    protocol = ends.end[1].last_protocol;
    rig_reset();
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
    cr_assert(chempi_shm_ops.is_drained(ends.end[0].dev));
    cr_assert(chempi_shm_ops.is_drained(ends.end[1].dev));
    ends_close(&ends);
    free(data);
    return protocol;
}

static uint32_t copy_with(enum rig_call call, unsigned nth, uint64_t len,
                          int error)
{
    return copy_while(call, nth, len, error, true);
}

Test(shm_fault, single_copy_that_works_is_used)
{
    cr_assert_eq(copy_with(RIG_READV, 1000, 50000, EPERM),
                 SHM_PROTOCOL_SINGLE_COPY);
    cr_assert_eq(copy_with(RIG_READV, 1000, ENDS_DATA_MAX, EPERM),
                 SHM_PROTOCOL_SINGLE_COPY);
}

Test(shm_fault, single_copy_refused_at_any_time_goes_through_the_ring)
{
    static const uint64_t lens[] = {5000, 60000, 200000, ENDS_DATA_MAX};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(lens); i++) {
        for (unsigned nth = 1; nth <= 8; nth++) {
            uint32_t used = copy_with(RIG_READV, nth, lens[i], EPERM);

            /* The second message shows that the sender has learned. */
            if (nth <= 2)
                cr_assert_eq(used, SHM_PROTOCOL_PIPELINE);
        }
    }
}

/* The sender may read, so it has begun to help when it is told not to. */
Test(shm_fault, single_copy_refused_once_takes_back_the_call_for_help)
{
    for (unsigned nth = 1; nth <= 8; nth++)
        (void)copy_while(RIG_READV, nth, ENDS_DATA_MAX, EPERM, false);
}

Test(shm_fault, a_bad_place_in_memory_does_not_end_single_copy)
{
    cr_assert_eq(copy_with(RIG_READV, 1000, 50000, EFAULT),
                 SHM_PROTOCOL_SINGLE_COPY);
    cr_assert_eq(copy_with(RIG_READV, 2, 50000, EFAULT),
                 SHM_PROTOCOL_SINGLE_COPY);
}

Test(shm_fault, a_sender_that_cannot_write_leaves_the_copying_to_the_receiver)
{
    for (unsigned nth = 1; nth <= 4; nth++)
        cr_assert_eq(copy_with(RIG_WRITEV, nth, ENDS_DATA_MAX, EPERM),
                     SHM_PROTOCOL_SINGLE_COPY);
}

Test(shm_fault, a_sender_helps_with_a_large_message)
{
    struct ends ends;
    struct chempi_tx tx;
    unsigned char *data = ends_payload(ENDS_DATA_MAX);

    ends_open(&ends, 2);
    rig_fail(RIG_WRITEV, 0, 0, 0);
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, ENDS_DATA_MAX,
                           SHM_PROTOCOL_SINGLE_COPY),
                 CHEMPI_PENDING);
    /* The receiver announces, then stands still while the sender works. */
    ends.end[1].wants_later = true;
    (void)chempi_shm_ops.progress(ends.end[1].dev);
    cr_assert_eq(ends_accept(&ends, 1, 0), CHEMPI_PENDING);
    while (chempi_shm_ops.progress(ends.end[0].dev) > 0)
        ;
    cr_assert(rig_calls() > 0);
    ends_settle(&ends);
    rig_reset();
    cr_assert_eq(ends.end[1].received, 1);
    cr_assert_eq(memcmp(ends.end[1].data, data, ENDS_DATA_MAX), 0);
    cr_assert_eq(ends_ep(&ends, 0, 1)->shares_used, 0);
    ends_close(&ends);
    free(data);
}
