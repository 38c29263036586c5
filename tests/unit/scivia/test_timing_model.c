/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The personalities that come along against the raw figures that the papers
 * give for those cards. No clock is read: the times are asked for.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "libchempi/devices/scivia/adapter/model/personality.h"
#include "libchempi/devices/scivia/adapter/model/timing_model.h"

#define START UINT64_C(1000000000) /* when the tests begin, ns */

static const char segment[1];
#define D312_LINK (87.72 * 1.048576) /* the paper counts in 2^20 bytes */
#define HERE ((const void *)segment)

static struct chempi_personality load(const char *name)
{
    struct chempi_personality p;
    struct chempi_err err = {.text = ""};
    const char *root = getenv("CHEMPI_SOURCE_ROOT");
    char file[512];

    cr_assert_not_null(root);
    (void)snprintf(file, sizeof(file), "%s/etc/personalities/%s.yaml", root,
                   name);
    cr_assert_eq(chempi_personality_load(file, &p, &err), 0, "%s", err.text);
    return p;
}

/* When the last packet of wide stores arrives, as
 * chempi_timing_model_store_at(). */
static uint64_t store_at(struct chempi_timing_model *pace, uint64_t now_ns,
                         size_t offset, size_t len)
{
    return chempi_timing_model_store_at(pace, now_ns, HERE, offset, len,
                                        CHEMPI_TIMING_MODEL_WIDE);
}

/* Time of one store of len bytes at `offset`, when nothing is under way. */
static double alone_us(const struct chempi_personality *p, size_t offset,
                       size_t len, enum chempi_timing_model_width width)
{
    struct chempi_timing_model pace = {.personality = p};

    return (double)(chempi_timing_model_store_at(&pace, START, HERE, offset,
                                                 len, width) -
                    START) /
           1e3;
}

static double store_us(const struct chempi_personality *p, size_t len)
{
    return alone_us(p, 0, len, CHEMPI_TIMING_MODEL_WIDE);
}

static void expect_near(const char *what, double ours, double theirs)
{
    cr_expect(ours > theirs * 0.9 && ours < theirs * 1.1,
              "%s: %.2f, published %.2f", what, ours, theirs);
}

static double store_mb_per_s(const struct chempi_personality *p, size_t len)
{
    return (double)len / store_us(p, len);
}

Test(timing_model, d312_has_the_published_latencies_and_bandwidths)
{
    const struct chempi_personality p = load("dolphin-d312");

    expect_near("1 byte, us", store_us(&p, 1), 2.5);
    expect_near("16 bytes, us", store_us(&p, 16), 2.5);
    expect_near("512 bytes, MB/s", store_mb_per_s(&p, 512), D312_LINK);
    expect_near("4 KiB, MB/s", store_mb_per_s(&p, 4096), D312_LINK);
    expect_near("1 MiB, MB/s", store_mb_per_s(&p, 1 << 20), D312_LINK);
    cr_expect_lt(store_mb_per_s(&p, 256), D312_LINK * 0.9);
}

Test(timing_model, whole_lines_beat_what_is_a_little_shorter)
{
    const struct chempi_personality p = load("dolphin-d312");

    for (size_t len = 17; len < 64; len++)
        cr_expect_gt(store_us(&p, len), store_us(&p, 64), "%zu", len);
    for (size_t len = 66; len < 128; len++)
        cr_expect_gt(store_us(&p, len), store_us(&p, 128), "%zu", len);
    /* 60 bytes make four packets, 64 one. */
    cr_expect_gt(store_us(&p, 60), store_us(&p, 48));
    for (size_t len = 128; len <= 4096; len += 64)
        cr_expect_gt(store_us(&p, len), store_us(&p, len - 64));
}

static double narrow_us(const struct chempi_personality *p, size_t offset,
                        size_t len)
{
    return alone_us(p, offset, len, CHEMPI_TIMING_MODEL_NARROW);
}

Test(timing_model, stores_by_memcpy_reach_their_published_bandwidth_and_no_more)
{
    const struct chempi_personality p = load("dolphin-d312");
    const double theirs = 49.94 * 1.048576;

    expect_near("512 bytes, MB/s", 512 / narrow_us(&p, 0, 512), theirs);
    expect_near("4 KiB, MB/s", 4096 / narrow_us(&p, 0, 4096), theirs);
    expect_near("1 MiB, MB/s", (1 << 20) / narrow_us(&p, 0, 1 << 20), theirs);
    cr_expect_lt(256 / narrow_us(&p, 0, 256), theirs * 0.95);
    /* What is one store is so either way, and a line is waited for. */
    expect_near("4 bytes, us", narrow_us(&p, 0, 4), 2.5);
    cr_expect_eq(narrow_us(&p, 0, 4), store_us(&p, 4));
    cr_expect_gt(narrow_us(&p, 0, 64), store_us(&p, 64));
    cr_expect_lt(narrow_us(&p, 0, 64), narrow_us(&p, 0, 60));
    for (size_t len = 1; len <= 2048; len++)
        cr_expect_geq(narrow_us(&p, 0, len), store_us(&p, len), "%zu", len);
}

Test(timing_model, narrow_stores_count_as_memcpy_makes_them)
{
    struct chempi_personality p = load("dolphin-d312");

    /* So fast a link that only the bus counts. */
    p.partial_ns = p.full_ns = p.latency_ns = p.full_latency_ns = 0;
    p.narrow_ns = 1000;
    cr_expect_eq(narrow_us(&p, 0, 16), 3);  /* the first one goes at once */
    cr_expect_eq(narrow_us(&p, 1, 14), 7);  /* 3 bytes, 2 words, 3 bytes */
    cr_expect_eq(narrow_us(&p, 2, 3), 2);   /* 3 bytes, no word */
    cr_expect_eq(narrow_us(&p, 0, 64), 16); /* a line goes with its last one */
    cr_expect_eq(narrow_us(&p, 0, 640), 160);
    cr_expect_eq(narrow_us(&p, 60, 128), 31);
    p.store_bytes = 8;
    cr_expect_eq(narrow_us(&p, 0, 640), 80);
    p.store_bytes = 0; /* it has no such figure */
    cr_expect_eq(narrow_us(&p, 0, 640), store_us(&p, 640));
}

Test(timing_model, narrow_and_wide_stores_may_take_turns)
{
    const struct chempi_personality p = load("dolphin-d312");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t end_ns = START;

    for (size_t i = 0; i < 100; i++) {
        uint64_t begin_ns = end_ns;

        end_ns = chempi_timing_model_store_at(
            &pace, begin_ns, HERE, 512 * i, 512,
            i % 2 ? CHEMPI_TIMING_MODEL_NARROW : CHEMPI_TIMING_MODEL_WIDE);
        cr_expect_gt(end_ns, begin_ns);
        cr_expect_leq(end_ns - begin_ns,
                      p.partial_ns + 8 * 16 * (uint64_t)p.narrow_ns);
    }
}

Test(timing_model, copies_beyond_the_cache_are_slower)
{
    const struct chempi_personality p = load("dolphin-d312");
    double before_us = 0;

    cr_assert_eq(p.host_cache_bytes, 32u << 10);
    for (size_t len = 4 << 10; len <= 1 << 20; len *= 2) {
        double us = (double)chempi_timing_model_copy_ns(&p, len) / 1e3;

        expect_near("rate of what was added, MB/s",
                    (double)len / 2 / (us - before_us),
                    len == 4 << 10   ? (double)len / 2 / us
                    : len > 32 << 10 ? p.host_memory_bytes_per_ms / 1e3
                                     : p.host_bytes_per_ms / 1e3);
        before_us = us;
    }
}

Test(timing_model, a_copy_in_pieces_is_one_copy)
{
    static char buffer[256 << 10];
    const struct chempi_personality p = load("dolphin-d312");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t whole_ns = chempi_timing_model_copy_ns(&p, sizeof(buffer));
    uint64_t ns = 0;

    for (size_t at = 0; at < sizeof(buffer); at += 16 << 10)
        ns += chempi_timing_model_copy_more_ns(&pace, buffer + at, 16 << 10);
    cr_expect_eq(ns, whole_ns);
    /* The same place again is another copy, and so is a place elsewhere. */
    cr_expect_eq(chempi_timing_model_copy_more_ns(&pace, buffer, 4096),
                 chempi_timing_model_copy_ns(&p, 4096));
    cr_expect_eq(chempi_timing_model_copy_more_ns(&pace, buffer + 9000, 4096),
                 chempi_timing_model_copy_ns(&p, 4096));
    cr_expect_eq(
        chempi_timing_model_copy_more_ns(&pace, buffer + 9000 + 4096, 0), 0);
}

Test(timing_model, the_other_cards_have_their_published_figures)
{
    const struct chempi_personality d310 = load("dolphin-d310");
    const struct chempi_personality d339 = load("dolphin-d339");
    double dma_us =
        d339.dma_setup_ns / 1e3 + (128 << 10) * 1e3 / d339.dma_bytes_per_ms;

    expect_near("D310, 4 bytes, us", store_us(&d310, 4), 2.7);
    expect_near("D310, 64 bytes, us", store_us(&d310, 64), 4.0);
    expect_near("D310, MB/s", store_mb_per_s(&d310, 64 << 10), 76.3);
    expect_near("D310, read, us", d310.read_ns / 1e3, 4.4);
    expect_near("D339, MB/s", store_mb_per_s(&d339, 64 << 10), 190);
    expect_near("D339, DMA, MB/s", (128 << 10) / dma_us, 213);
}

/* Time of one descriptor, and rate of many that are posted at once. */
static void expect_via(const char *name, double latency_us, double mb_per_s)
{
    const struct chempi_personality p = load(name);
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t end_ns = chempi_timing_model_descriptor_at(&pace, START, false, 0);
    uint64_t begin_ns = end_ns;

    expect_near(name, (double)(end_ns - START) / 1e3, latency_us);
    for (int i = 0; i < 100; i++)
        end_ns = chempi_timing_model_descriptor_at(&pace, end_ns, false, 65536);
    expect_near(name, 100 * 65536e3 / (double)(end_ns - begin_ns), mb_per_s);
}

Test(timing_model, descriptors_take_the_published_times)
{
    expect_via("giganet-clan", 7.5, 100);
    expect_via("fast-ethernet", 25, 11.9);
    expect_via("myrinet-gm", 11, 93.5);
}

Test(timing_model, who_sleeps_until_its_descriptor_is_done_must_be_waked)
{
    const struct chempi_personality p = load("giganet-clan");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t end_ns;

    cr_expect_eq(chempi_timing_model_sleep_at(&pace, START), 0,
                 "nothing is posted");
    end_ns = chempi_timing_model_descriptor_at(&pace, START, false, 4096);
    chempi_timing_model_posted(&pace,
                               end_ns + 9000); /* the emulation's own work */
    cr_expect_eq(chempi_timing_model_sleep_at(&pace, end_ns + 9000),
                 end_ns + 9000 + p.interrupt_ns);
    cr_expect_eq(
        chempi_timing_model_sleep_at(&pace, end_ns + 9000 + end_ns - START), 0,
        "by then it was done, and nobody slept");
    chempi_timing_model_collect(&pace);
    cr_expect_eq(chempi_timing_model_sleep_at(&pace, end_ns), 0);
}

Test(timing_model, registering_costs_what_the_table_says)
{
    static const struct {
        size_t bytes;
        double in_us;
        double out_us;
    } rows[] = {{4096, 6.7, 3.5},
                {64 << 10, 27.8, 8.7},
                {1 << 20, 366, 103},
                {16 << 20, 5856, 1666}};
    const struct chempi_personality p = load("giganet-clan");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double pages = (double)rows[i].bytes / 4096;

        expect_near("register, us",
                    (p.register_ns + pages * p.register_page_ns) / 1e3,
                    rows[i].in_us);
        expect_near("deregister, us",
                    (p.deregister_ns + pages * p.deregister_page_ns) / 1e3,
                    rows[i].out_us);
    }
}

/* --- what follows what --- */

Test(timing_model, a_burst_in_pieces_takes_as_long_as_in_one)
{
    const struct chempi_personality p = load("dolphin-d312");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t at_ns = START;

    for (size_t offset = 0; offset < 65536; offset += 512)
        at_ns = store_at(&pace, at_ns, offset, 512);
    expect_near("64 KiB in pieces, us", (double)(at_ns - START) / 1e3,
                store_us(&p, 65536));
}

Test(timing_model, a_packet_elsewhere_comes_behind_and_a_barrier_is_waited_for)
{
    const struct chempi_personality p = load("dolphin-d312");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t first_ns = store_at(&pace, START, 0, 64);
    uint64_t next_ns = store_at(&pace, first_ns, 640, 64);

    cr_expect_eq(next_ns - first_ns, p.partial_ns);
    chempi_timing_model_barrier(&pace);
    first_ns = next_ns;
    next_ns = store_at(&pace, first_ns, 704, 64);
    cr_expect_eq(next_ns - first_ns, p.full_latency_ns);
    /* After a pause long enough for an answer, too. */
    first_ns = next_ns + p.latency_ns;
    next_ns = store_at(&pace, first_ns, 0, 64);
    cr_expect_eq(next_ns - first_ns, p.full_latency_ns);
    /* And nothing arrives before it is stored. */
    for (size_t i = 0; i < 100; i++) {
        first_ns = next_ns + i * 50;
        next_ns = store_at(&pace, first_ns, 64 * i, 64);
        cr_expect_geq(next_ns + p.latency_ns, first_ns);
    }
}

Test(timing_model, a_read_travels_both_ways)
{
    const struct chempi_personality p = load("giganet-clan");
    struct chempi_timing_model pace = {.personality = &p};
    uint64_t end_ns = chempi_timing_model_descriptor_at(&pace, START, true, 0);

    cr_expect_eq(end_ns - START, p.doorbell_ns + 2 * p.via_latency_ns);
    chempi_timing_model_collect(&pace);
    cr_expect_eq(chempi_timing_model_descriptor_at(&pace, end_ns, false, 0) -
                     end_ns,
                 p.doorbell_ns + p.via_latency_ns);
}
