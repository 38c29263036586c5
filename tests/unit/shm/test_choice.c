/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring or single copy, by what they have cost. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/table/build.h"
#include "libchempi/devices/shm/shm.h"
#include "tests/unit/shm/ends.h"

#define LEN UINT64_C(16384)

/* What a message costs either way, ns. */
struct costs {
    uint64_t in;
    uint64_t out;
    uint64_t copy;
    uint32_t share_slot;
    uint32_t form_len;
    uint64_t half; /* of a copy with help: either side's */
};

#define ALONE SHM_HELP_SLOTS

/* Of the messages that follow, in the process of one test. */
static uint64_t message_len = LEN;
static bool peer_would_copy;
static int shared;    /* of them: those with help */
static bool is_alone; /* help cannot be asked for: copy.c, ask_for_help() */

static struct shm_dev dev = {.data_size = 2 * LEN};
static struct chempi_wake wake;
static struct shm_ep ep = {
    .base = {.dev = &dev.base}, .wake = &wake, .rndv = {.ep = &ep.base}};

/* One message; how it went. */
static bool is_copied(const struct costs *costs)
{
    struct shm_xfer xfer = {
        .base = {.peer = &ep.rndv, .len = message_len, .want = message_len},
        .share = costs->share_slot,
        .form_len = costs->form_len,
        .peer_would_copy = peer_would_copy};
    bool is_copy = chempi_shm_choice_is_copy(&xfer);

    if (!is_copy) {
        xfer.spent = costs->out;
        xfer.peer_spent = costs->in;
        chempi_shm_choice_learn_ring(&xfer);
        return false;
    }
    xfer.is_shared = chempi_shm_choice_is_shared(&xfer);
    if (is_alone && xfer.is_shared) {
        chempi_shm_choice_take_back(&xfer);
        xfer.is_shared = false;
    }
    shared += xfer.is_shared;
    xfer.spent = xfer.is_shared ? costs->half : costs->copy;
    xfer.peer_spent = costs->half;
    chempi_shm_choice_learn_copy(&xfer, xfer.is_shared ? message_len / 2
                                                       : message_len);
    return true;
}

static int copied_of(int count, const struct costs *costs)
{
    int copied = 0;

    for (int i = 0; i < count; i++)
        copied += is_copied(costs);
    return copied;
}

Test(shm_choice, both_ways_are_tried_before_one_is_chosen)
{
    cr_assert_eq(copied_of(8, &(struct costs){2000, 500, 2700, ALONE, 0, 0}),
                 4);
}

Test(shm_choice, the_cheaper_way_is_taken_but_for_a_look_at_the_other)
{
    const struct costs near = {2000, 500, 2700, ALONE, 0, 0};
    const struct costs apart = {8000, 2000, 3200, ALONE, 0, 0};

    (void)copied_of(16, &near);
    cr_assert_leq(copied_of(1024, &near), 1024 / 200);
    (void)copied_of(1024, &apart); /* the cores have moved */
    cr_assert_geq(copied_of(1024, &apart), 1024 - 1024 / 200);
    (void)copied_of(4096, &near);
    cr_assert_leq(copied_of(1024, &near), 1024 / 200);
}

/* A few messages amid copies cost less than all through the ring would. */
Test(shm_choice, copies_are_left_for_a_ring_that_is_much_cheaper)
{
    const struct costs apart = {8000, 2000, 3200, ALONE, 0, 0};
    const struct costs nearly = {2500, 2000, 3200, ALONE, 0, 0};
    const struct costs near = {2300, 2000, 3200, ALONE, 0, 0};

    cr_assert_leq(copied_of(1021, &nearly),
                  4 + 2); /* at first, either may be */
    (void)copied_of(1021, &apart);
    cr_assert_geq(copied_of(1021, &nearly), 1021 - 2);
    cr_assert_geq(copied_of(1021, &nearly), 1021 - 2);
    (void)copied_of(1021, &near);
    cr_assert_leq(copied_of(1021, &near), 2);
    cr_assert_leq(copied_of(1021, &nearly), 2); /* where it is, it stays */
}

/* The first message of each window is dearer, for whatever reason. */
Test(shm_choice, what_windows_begin_with_does_not_decide)
{
    const struct costs usual = {2000, 500, 2700, ALONE, 0, 0};
    const struct costs first = {6000, 500, 2700, ALONE, 0, 0};
    int copied = 0;

    (void)copied_of(16, &usual);
    for (int i = 0; i < 256; i++) {
        copied += copied_of(1, &first);
        copied += copied_of(7, &usual);
    }
    cr_assert_leq(copied, 256 * 8 / 100);
}

Test(shm_choice, a_disturbed_message_does_not_decide)
{
    const struct costs near = {2000, 500, 2700, ALONE, 0, 0};
    const struct costs disturbed = {2000, 1000000, 2700, ALONE, 0, 0};

    (void)copied_of(17, &near); /* the 17th is not measured */
    (void)copied_of(8, &disturbed);
    cr_assert_leq(copied_of(256, &near), 2 + 1);
}

Test(shm_choice, a_core_that_sends_as_well_has_both_halves_to_do)
{
    const struct costs costs = {2000, 1500, 2700, ALONE, 0, 0};

    (void)copied_of(16, &costs);
    dev.rndv.outgoing = 1;
    cr_assert_geq(copied_of(256, &costs), 256 - 3);
    dev.rndv.outgoing = 0;
    cr_assert_leq(copied_of(256, &costs), 3);
}

/* Receives are posted, and messages announced, before sends are. */
Test(shm_choice, windows_both_ways_begin_as_they_go_on)
{
    const struct costs costs = {2000, 1500, 2700, ALONE, 0, 0};
    int copied = 0;

    (void)copied_of(16, &costs);
    for (int i = 0; i < 64; i++) {
        copied += copied_of(4, &costs);
        dev.rndv.outgoing = 1;
        copied += copied_of(12, &costs);
        dev.rndv.outgoing = 0;
    }
    cr_assert_geq(copied, 64 * 12 + 64 * 4 * 3 / 4);
    (void)copied_of(16, &costs);
    cr_assert_leq(copied_of(256, &costs), 3);
}

Test(shm_choice, a_core_that_sends_long_ones_as_well_waits_for_the_ring_besides)
{
    const struct costs near = {900, 800, 2500, ALONE, 0, 0};
    const struct costs nearer = {900, 800, 2600, ALONE, 0, 0};

    (void)copied_of(16, &near);
    dev.rndv.outgoing = 1;
    cr_assert_leq(copied_of(256, &near), 3);
    message_len = 4 * LEN;
    (void)copied_of(16, &near);
    cr_assert_geq(copied_of(256, &near), 256 - 3);
    (void)copied_of(1024, &nearer);
    cr_assert_leq(copied_of(256, &nearer), 3);
}

Test(shm_choice, both_take_single_copies_where_one_of_them_would)
{
    const struct costs near = {2000, 500, 2700, ALONE, 0, 0};
    const struct costs apart = {8000, 2000, 3200, ALONE, 0, 0};

    peer_would_copy = true;
    (void)copied_of(16, &near);
    cr_assert_not(chempi_shm_choice_would_copy(&ep, LEN, false));
    cr_assert_leq(copied_of(256, &near), 3);
    dev.rndv.outgoing = 1;
    cr_assert_geq(copied_of(256, &near), 256 - 3);
    peer_would_copy = false;
    cr_assert_leq(copied_of(256, &near), 3);
    (void)copied_of(1024, &apart);
    cr_assert(chempi_shm_choice_would_copy(&ep, LEN, false));
    cr_assert_geq(copied_of(256, &apart), 256 - 3);
}

static int shared_of(int count, const struct costs *costs)
{
    shared = 0;
    (void)copied_of(count, costs);
    return shared;
}

/* Ring, copy or copy with help: what is cheapest, after a few messages, and
 * again when the cores have moved. */
Test(shm_choice, the_sender_helps_where_that_is_cheaper)
{
    const struct costs apart = {9000, 1500, 3400, 0, 0, 3600};
    const struct costs near = {9000, 1500, 3400, 0, 0, 1800};

    (void)copied_of(40, &apart);
    cr_assert_leq(shared_of(1000, &apart), 2);
    cr_assert_geq(copied_of(1000, &apart), 1000 - 2);
    (void)copied_of(1024, &near);
    cr_assert_geq(shared_of(1000, &near), 1000 - 2 - 2);
    (void)copied_of(200, &apart);
    cr_assert_leq(shared_of(800, &apart), 2);
}

Test(shm_choice, what_help_makes_cheaper_than_the_ring_is_copied)
{
    const struct costs alone = {2000, 1500, 2700, ALONE, 0, 0};
    const struct costs helped = {2000, 1500, 2700, 0, 0, 1500};
    const struct costs in_vain = {2000, 1500, 2700, 0, 0, 2500};

    (void)copied_of(40, &helped);
    cr_assert_leq(copied_of(256, &alone), 3);
    cr_assert_geq(shared_of(256, &helped), 256 - 3);
    (void)copied_of(256, &in_vain);
    cr_assert_leq(copied_of(256, &in_vain), 3);
}

Test(shm_choice, help_that_cannot_be_asked_for_makes_nothing_cheaper)
{
    const struct costs costs = {2000, 1500, 2700, 0, 0, 1500};

    is_alone = true;
    (void)copied_of(40, &costs);
    cr_assert_leq(copied_of(256, &costs), 3);
    is_alone = false;
    (void)copied_of(3 * 1021, &costs);
    cr_assert_geq(shared_of(256, &costs), 256 - 3);
}

Test(shm_choice, a_sender_that_sleeps_is_not_asked_to_help)
{
    const struct costs helped = {2000, 1500, 2700, 0, 0, 1000};

    atomic_store(&wake.state, CHEMPI_WAKE_AWAY_OWED);
    cr_assert_eq(shared_of(100, &helped), 0);
    cr_assert_leq(copied_of(256, &helped), 3);
}

/* Only one side has copied; what the other one has spent is of no chunk. */
Test(shm_choice, help_that_does_nothing_is_no_cheaper)
{
    const struct costs helped = {9000, 9000, 2700, 0, 0, 1000};
    struct shm_xfer xfer = {.base = {.peer = &ep.rndv, .len = LEN, .want = LEN},
                            .is_timed = true,
                            .is_shared = true};

    (void)copied_of(40, &helped);
    cr_assert_geq(shared_of(256, &helped), 256 - 4);
    xfer.spent = 2700;
    for (int i = 0; i < 16; i++)
        chempi_shm_choice_learn_copy(&xfer, LEN);
    cr_assert_leq(shared_of(6, &helped), 0);
    xfer.spent = 0;
    xfer.peer_spent = 1000;
    chempi_shm_choice_learn_copy(&xfer, 0);
    cr_assert_eq(shared_of(6, &helped), 6);
}

Test(shm_choice, pieces_have_prices_of_their_own)
{
    const struct costs whole = {2000, 1500, 1000, ALONE, 0, 0};
    const struct costs pieces = {2000, 1500, 2700, ALONE, 5, 0};

    (void)copied_of(16, &whole);
    (void)copied_of(16, &pieces);
    cr_assert_geq(copied_of(256, &whole), 256 - 3);
    cr_assert_leq(copied_of(256, &pieces), 3);
}

Test(shm_choice, what_was_cut_short_or_makes_no_sense_teaches_nothing)
{
    const struct costs near = {2000, 500, 2700, ALONE, 0, 0};
    struct shm_xfer xfer = {.base = {.peer = &ep.rndv, .len = LEN, .want = 1},
                            .is_timed = true};

    (void)copied_of(16, &near);
    chempi_shm_choice_learn_copy(&xfer, LEN); /* for nothing */
    cr_assert_leq(copied_of(256, &near), 3);
    xfer.base.want = LEN;
    xfer.spent = UINT64_MAX;
    xfer.peer_spent = UINT64_MAX;
    for (int i = 0; i < 1000; i++)
        chempi_shm_choice_learn_ring(&xfer);
    cr_assert_eq(copied_of(100, &near), 100); /* until it is measured again */
    (void)copied_of(1024, &near);
    cr_assert_leq(copied_of(256, &near), 3);
}

Test(shm_choice, on_a_crowded_node_what_fits_the_ring_takes_it_all_else_is_read)
{
    const struct costs near = {2000, 500, 2700, ALONE, 0, 0};
    const struct costs apart = {8000, 2000, 3200, ALONE, 0, 0};

    atomic_store(&wake.order, CHEMPI_WAKE_ORDER_FENCE);
    cr_assert_eq(copied_of(1024, &apart), 0);
    dev.data_size = LEN / 2;
    cr_assert_eq(copied_of(1024, &near), 1024);
    atomic_store(&wake.order, CHEMPI_WAKE_ORDER_BARRIER);
    cr_assert_lt(copied_of(1024, &near), 512);
}

/* --- long messages --- */

/* Of 64 long messages between processes that are in the library, or away with
 * something owed: how many were copied once. is_late: the receive comes after
 * the message. */
static uint64_t copied_long(uint32_t sender, uint32_t receiver, bool is_late)
{
    unsigned char *data = ends_payload(ENDS_DATA_MAX);
    struct ends ends;
    uint64_t copied;

    ends_open(&ends, 2);
    atomic_store(&ends.end[0].services.wakes[0].state, sender);
    atomic_store(&ends.end[0].services.wakes[1].state, receiver);
    ends.end[1].wants_later = is_late;
    for (uint32_t i = 0; i < 64; i++) {
        struct chempi_tx tx;

        cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, ENDS_DATA_MAX,
                               SHM_PROTOCOL_PIPELINE),
                     CHEMPI_PENDING);
        if (is_late) {
            (void)chempi_shm_ops.progress(ends.end[1].dev);
            cr_assert_eq(ends_accept(&ends, 1, i), CHEMPI_PENDING);
        }
        memset(ends.end[1].data, 0, ENDS_DATA_MAX);
        ends_settle(&ends);
        cr_assert_eq(memcmp(ends.end[1].data, data, ENDS_DATA_MAX), 0);
    }
    cr_assert_eq(ends.end[1].received, 64);
    copied = ends.end[1].dev->received[SHM_PROTOCOL_SINGLE_COPY].messages;
    ends_close(&ends);
    free(data);
    return copied;
}

Test(shm_choice, long_messages_of_two_that_wait_go_either_way)
{
    uint64_t copied = copied_long(CHEMPI_WAKE_AWAKE, CHEMPI_WAKE_AWAKE, false);

    cr_assert(copied >= 4 && copied <= 64 - 4, "%d", (int)copied);
}

Test(shm_choice, a_long_message_is_read_where_one_side_may_compute)
{
    cr_assert_eq(copied_long(CHEMPI_WAKE_AWAY_OWED, CHEMPI_WAKE_AWAKE, false),
                 64);
    cr_assert_eq(copied_long(CHEMPI_WAKE_AWAKE, CHEMPI_WAKE_AWAY_OWED, false),
                 64);
    cr_assert_eq(copied_long(CHEMPI_WAKE_AWAKE, CHEMPI_WAKE_AWAKE, true), 64);
}

/* --- with a connection table --- */

/* Of one node, inside which messages go by `small` up to 32 KiB, then by
 * `large`. */
static void build(const char *small, const char *large,
                  struct chempi_blob *image)
{
    struct chempi_dir_builder *d = chempi_dir_builder_create();
    struct chempi_routes_builder *r = chempi_routes_builder_create(0, 1);
    struct chempi_blob directory;
    struct chempi_blob routes;

    chempi_dir_builder_add_network(d, "smp", "smp", "shm");
    chempi_dir_builder_add_node(d, "n0", 0, 2, false);
    chempi_dir_builder_attach(d, 0, NULL, NULL);
    cr_assert_eq(chempi_dir_builder_finish(d, &directory, NULL), 0);
    chempi_routes_builder_begin(r, 1);
    chempi_routes_builder_add_range(r, 32768, 1, 0, 1);
    chempi_routes_builder_add_stage(r, 0, "shm", small, NULL, 0);
    chempi_routes_builder_add_range(r, UINT64_MAX, 1, 0, 1);
    chempi_routes_builder_add_stage(r, 0, "shm", large, NULL, 0);
    cr_assert_eq(chempi_routes_builder_finish(r, &routes, NULL), 0);
    cr_assert_eq(chempi_table_build_image(0, 0, &routes, &directory, image), 0);
    chempi_dir_builder_destroy(d);
    chempi_routes_builder_destroy(r);
    chempi_blob_fini(&directory);
    chempi_blob_fini(&routes);
}

/* Of 64 messages of 64 KiB that the table sends by `large`: how many were
 * copied once. */
static int copied_by_table(const char *small, const char *large,
                           const _Atomic uint64_t *settings)
{
    const uint64_t len = 64 << 10;
    unsigned char *data = ends_payload(len);
    struct chempi_table *table;
    struct chempi_blob image;
    struct chempi_err err;
    struct ends ends;
    int copied = 0;

    build(small, large, &image);
    cr_assert_eq(chempi_table_open(image.data, image.len, &table, &err), 0,
                 "%s", err.text);
    ends_prepare(&ends, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ends.end[i].services.table = table;
        ends.end[i].settings = settings;
        cr_assert_eq(ends_open_one(&ends, i), 0, "%s", ends.end[i].err.text);
    }
    for (int i = 0; i < 64; i++) {
        struct chempi_tx tx;

        cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, len,
                               strcmp(large, "pipeline") == 0
                                   ? SHM_PROTOCOL_PIPELINE
                                   : SHM_PROTOCOL_SINGLE_COPY),
                     CHEMPI_PENDING);
        ends_settle(&ends);
        copied += ends.end[1].last_protocol == SHM_PROTOCOL_SINGLE_COPY;
    }
    cr_assert_eq(ends.end[1].received, 64);
    ends_close(&ends);
    chempi_table_close(table);
    chempi_blob_fini(&image);
    free(data);
    return copied;
}

Test(shm_choice, a_table_that_has_both_ways_leaves_it_to_the_receiver)
{
    int copied = copied_by_table("pipeline", "single-copy", NULL);

    cr_assert(copied >= 4 && copied <= 64 - 4, "%d", copied); /* PROBE_FIRST */
}

Test(shm_choice, a_table_that_has_one_way_is_followed)
{
    cr_assert_eq(copied_by_table("eager", "single-copy", NULL), 64);
    cr_assert_eq(copied_by_table("eager", "pipeline", NULL), 0);
}

Test(shm_choice, a_setting_that_wants_no_ring_holds_with_a_table_too)
{
    _Atomic uint64_t settings[SHM_SET_COUNT];

    for (uint32_t i = 0; i < SHM_SET_COUNT; i++)
        settings[i] = chempi_shm_panel.settings[i].initial;
    settings[SHM_SET_PIPELINE_MAX] = 0;
    cr_assert_eq(copied_by_table("single-copy", "pipeline", settings), 64);
    cr_assert_eq(copied_by_table("eager", "pipeline", settings), 0);
}

/* --- through the caches or past them (M5) --- */

enum { FAR_POINTS = 2 * SHM_PUT_FAR };

Test(shm_choice, writes_that_take_long_show_that_the_receiver_is_far)
{
    uint32_t points = 0;

    points = chempi_shm_choice_judge(points, 900, 2048);
    cr_assert_eq(points, 4);
    points = chempi_shm_choice_judge(points, 7200, 16384);
    cr_assert_eq(points, 8);
    for (int i = 0; i < 8; i++)
        points = chempi_shm_choice_judge(points, 900, 2048);
    cr_assert_eq(points, FAR_POINTS);
    /* The core was lost meanwhile. */
    cr_assert_eq(chempi_shm_choice_judge(points, 900000, 2048), points);
    cr_assert_eq(chempi_shm_choice_judge(0, 900000, 2048), 0);
    for (int i = 0; i < 20; i++)
        points = chempi_shm_choice_judge(points, 400, 2048);
    cr_assert_eq(points, 0);
}

Test(shm_choice, what_is_for_a_far_core_is_written_past_the_caches)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    struct ends ends;
    struct shm_dev *from;
    struct shm_ep *out;

    ends_open(&ends, 2);
    out = ends_ep(&ends, 0, 1);
    from = (struct shm_dev *)ends.end[0].dev;
    for (uint32_t len = SHM_PUT_MIN - 61 * 2; len <= SHM_EAGER_MAX; len += 61) {
        uint64_t before = from->past;

        out->put_points = FAR_POINTS;
        out->puts_left = 99;
        memset(ends.end[1].data, 0, SHM_EAGER_MAX + 1);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].last.len, len);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0, "%u", len);
        cr_assert_eq(ends.end[1].data[len], 0, "%u", len);
        cr_assert_eq(from->past > before, len >= SHM_PUT_MIN);
    }
    ends_close(&ends);
    free(data);
}

Test(shm_choice, now_and_then_a_write_goes_through_the_caches_and_is_timed)
{
    enum { LEN_PUT = 16384 };
    static unsigned char to[LEN_PUT];
    unsigned char *data = ends_payload(LEN_PUT);

    ep.put_points = FAR_POINTS;
    ep.puts_left = 3;
    dev.past = 0;
    for (uint64_t i = 1; i <= 3; i++) {
        memset(to, 0, LEN_PUT);
        chempi_shm_choice_put(&ep, to, data, LEN_PUT);
        cr_assert_eq(dev.past, i);
        cr_assert_eq(memcmp(to, data, LEN_PUT), 0);
    }
    memset(to, 0, LEN_PUT);
    chempi_shm_choice_put(&ep, to, data, LEN_PUT);
    cr_assert_eq(dev.past, 3);
    cr_assert_eq(memcmp(to, data, LEN_PUT), 0);
    cr_assert_gt(ep.puts_left, 0);
    ep.put_points = 0;
    chempi_shm_choice_put(&ep, to, data, LEN_PUT);
    cr_assert_eq(dev.past, 3);
    free(data);
}

/* --- short laps or wide ones (M6) --- */

/* So many writes of 2 KiB, of which a line takes so long in short laps and in
 * wide ones; how many went in wide ones. */
static uint32_t lap(struct shm_laps *laps, uint32_t writes, uint32_t short_ns,
                    uint32_t wide_ns, bool may_be_wide)
{
    uint32_t left = 0;
    uint32_t wide = 0;

    for (uint32_t i = 0; i < writes; i++) {
        wide += laps->is_wide;
        if (left-- > 0)
            continue;
        left = chempi_shm_choice_lap(
            laps, (laps->is_wide ? wide_ns : short_ns) * 32, 2048, may_be_wide);
    }
    return wide;
}

Test(shm_choice, laps_are_as_long_as_is_cheaper)
{
    enum { MANY = 100000 };
    struct shm_laps laps = {0};

    (void)lap(&laps, MANY, 10, 3, true);
    cr_assert(lap(&laps, MANY, 10, 3, true) > MANY - MANY / 100);
    /* What it was is found out again when the cores have moved. */
    (void)lap(&laps, MANY, 3, 4, true);
    cr_assert(lap(&laps, MANY, 3, 4, true) < MANY / 100);
    (void)lap(&laps, MANY, 10, 4, true);
    cr_assert(lap(&laps, MANY, 10, 4, true) > MANY - MANY / 100);
    (void)lap(&laps, MANY, 10, 4, false);
    cr_assert(lap(&laps, MANY, 10, 4, false) < MANY / 100);
}

Test(shm_choice, single_writes_do_not_say_how_long_laps_are)
{
    struct shm_laps laps = {0};
    struct shm_laps before;

    (void)lap(&laps, 10000, 3, 4, true);
    cr_assert(!laps.is_wide && laps.is_settled);
    before = laps;
    /* Who lost the core, or wrote a chunk. */
    (void)chempi_shm_choice_lap(&laps, 900000, 2048, true);
    (void)chempi_shm_choice_lap(&laps, 9000, 16384, true);
    cr_assert_eq(laps.costs[0], before.costs[0]);
    (void)chempi_shm_choice_lap(&laps, 9000, 2048, true);
    cr_assert(laps.costs[0] <= before.costs[0] + before.costs[0] / 8 + 1);
    cr_assert_eq(laps.costs[1], before.costs[1]);
}
