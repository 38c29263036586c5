/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks wait, as the launcher gathers and prints it. */
#define _GNU_SOURCE /* open_memstream */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/supervisor/super.h"
#include "chempid/where/wait_summary.h"

#define RANKS 200u

static char *names[] = {"a1", "a2", "gate"};
static uint32_t node_of_rank[RANKS];
static const struct chempi_spec spec = {.size = RANKS,
                                        .node_count = 3,
                                        .node_names = names,
                                        .node_of_rank = node_of_rank};
static struct chempi_wait_summary places;
static struct chempi_writer message;

/* The first half of the ranks is on the first node; the last node has none. */
static void set_up(void)
{
    for (uint32_t i = 0; i < RANKS; i++)
        node_of_rank[i] = i / (RANKS / 2);
    cr_assert_eq(chempi_wait_summary_open(&places, &spec), 0);
}

static void tear_down(void)
{
    chempi_wait_summary_close(&places);
    chempi_wire_clear(&message);
}

TestSuite(wait_summary, .init = set_up, .fini = tear_down);

static void begin(uint32_t node)
{
    chempi_wire_clear(&message);
    chempi_wire_put_u32(&message, node);
}

static void put(uint32_t rank, enum chempi_here here, const char *text)
{
    chempi_wire_put_u32(&message, rank);
    chempi_wire_put_u8(&message, (uint8_t)here);
    chempi_wire_put_str(&message, text);
    chempi_wire_put_str(&message, "");
    chempi_wire_put_u64(&message, 0);
    chempi_wire_put_u32(&message, 0);
}

static void put_all(uint32_t first, uint32_t last, enum chempi_here here,
                    const char *text)
{
    for (uint32_t i = first; i <= last; i++)
        put(i, here, text);
}

static bool take(void)
{
    struct chempi_reader r;

    chempi_wire_read(&r, message.data, message.len);
    return chempi_wait_summary_take(&places, &r);
}

static void expect_printed(bool has_rest, const char *words)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    cr_assert(file);
    chempi_wait_summary_print(&places, file, has_rest);
    cr_assert_eq(fclose(file), 0);
    cr_assert_str_eq(text, words);
    free(text);
}

static void expect(const char *words)
{
    expect_printed(true, words);
}

Test(wait_summary, ranks_that_wait_for_the_same_share_a_line)
{
    begin(0);
    put_all(0, 6, CHEMPI_HERE_WAITS, "MPI_Barrier of MPI_COMM_WORLD");
    put(7, CHEMPI_HERE_SILENT, "");
    put_all(8, 99, CHEMPI_HERE_WAITS, "MPI_Barrier of MPI_COMM_WORLD");
    cr_assert_not(take());
    begin(1);
    put(100, CHEMPI_HERE_WAITS, "MPI_Barrier of MPI_COMM_WORLD");
    put(101, CHEMPI_HERE_TESTS, "MPI_Test");
    put_all(102, 103, CHEMPI_HERE_ENDED, "");
    put_all(104, 105, CHEMPI_HERE_FRESH, "of no account");
    put_all(106, 107, CHEMPI_HERE_FINALIZED, "");
    put_all(108, 199, CHEMPI_HERE_SILENT, "");
    cr_assert(take());
    expect("chempirun: ranks 7, 108-199 do not wait in MPI (they compute, "
           "test or wait elsewhere)\n"
           "chempirun: rank 101 on node a2 does not wait, but calls MPI_Test\n"
           "chempirun: ranks 102-103 have ended\n"
           "chempirun: ranks 104-105 have not initialized MPI\n"
           "chempirun: ranks 106-107 have finalized MPI and not ended\n"
           "chempirun: ranks 0-6, 8-100 wait in MPI_Barrier of "
           "MPI_COMM_WORLD\n");
}

Test(wait_summary, of_nodes_that_do_not_tell_nothing_is_known)
{
    begin(1);
    put_all(100, 199, CHEMPI_HERE_WAITS, "MPI_Finalize");
    cr_assert_not(take());
    cr_assert_not(take()); /* it cannot speak for another */
    expect("chempirun: ranks 100-199 wait in MPI_Finalize\n"
           "chempirun: nothing is known of ranks 0-99\n");
    expect_printed(false, "chempirun: ranks 100-199 wait in MPI_Finalize\n");
}

Test(wait_summary, of_no_node_nothing_is_told_if_the_rest_is_not_wanted)
{
    expect_printed(false, "");
}

/* Ranks in a ring, each waiting for the one before it; rank 197 does not. */
Test(wait_summary, ranks_in_the_same_call_share_a_line_when_there_is_no_room)
{
    char text[64];

    for (uint32_t node = 0; node < 2; node++) {
        begin(node);
        for (uint32_t i = node * 100; i < node * 100 + 100; i++) {
            (void)snprintf(text, sizeof(text), "MPI_%s of rank %u",
                           i < 100 && i % 2 ? "Wait" : "Recv", i);
            if (i == 50 || i == 51)
                put(i, CHEMPI_HERE_WAITS, "MPI_Recvx of none");
            else if (i == 196)
                put(i, CHEMPI_HERE_TESTS, "MPI_Test");
            else if (i == 197)
                put(i, CHEMPI_HERE_SILENT, "");
            else
                put(i, CHEMPI_HERE_WAITS, text);
        }
        (void)take();
    }
    expect(
        "chempirun: rank 196 on node a2 does not wait, but calls MPI_Test\n"
        "chempirun: rank 197 on node a2 does not wait in MPI (it computes, "
        "tests or waits elsewhere)\n"
        "chempirun: ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, "
        "28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 52, 54, 56, 58, 60, 62, "
        "64 and 115 more wait in MPI_Recv, not all for the same\n"
        "chempirun: ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, "
        "29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 53, 55, 57, 59, 61, 63, "
        "65 and 17 more wait in MPI_Wait, not all for the same\n"
        "chempirun: ranks 50-51 wait in MPI_Recvx of none\n");
}

Test(wait_summary, as_many_places_as_there_is_room_for_get_a_line_each)
{
    const uint32_t room = CHEMPI_WAIT_SUMMARY_GROUPS - 4;
    char text[64];
    char *all = NULL;
    size_t len = 0;
    uint32_t lines = 0;
    FILE *file;

    begin(0);
    for (uint32_t i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof(text), "MPI_Recv of rank %u", i % room);
        put(i, CHEMPI_HERE_WAITS, text);
    }
    (void)take();
    begin(1);
    put_all(100, 199, CHEMPI_HERE_FRESH, "");
    cr_assert(take());
    file = open_memstream(&all, &len);
    cr_assert(file);
    chempi_wait_summary_print(&places, file, true);
    cr_assert_eq(fclose(file), 0);
    for (const char *at = all; (at = strchr(at, '\n')); at++)
        lines++;
    cr_assert_eq(lines, room + 1);
    cr_assert(strstr(all, "chempirun: ranks 0, 36, 72 wait in MPI_Recv of rank "
                          "0\n"));
    free(all);
}

Test(wait_summary, calls_that_there_is_no_room_for_are_counted)
{
    char text[32];
    char *all = NULL;
    size_t len = 0;
    FILE *file;

    begin(0);
    for (uint32_t i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof(text), "call%u", i);
        put(i, CHEMPI_HERE_WAITS, text);
    }
    (void)take();
    begin(1);
    put_all(100, 199, CHEMPI_HERE_SILENT, "");
    cr_assert(take());
    file = open_memstream(&all, &len);
    cr_assert(file);
    chempi_wait_summary_print(&places, file, true);
    cr_assert_eq(fclose(file), 0);
    cr_assert(strstr(all, "chempirun: ranks 100-199 do not wait in MPI"));
    cr_assert(strstr(all, "chempirun: rank 35 on node a1 waits in call35\n"));
    cr_assert(strstr(all, "chempirun: no room to tell of ranks 36-99\n"));
    free(all);
}

Test(wait_summary, what_ranks_say_is_bounded_and_has_no_control_characters)
{
    begin(0);
    put(0, CHEMPI_HERE_WAITS, "a\nb\x1b[2J\x7f");
    put_all(1, 99, CHEMPI_HERE_WAITS, "a?b?[2J?");
    (void)take();
    begin(1);
    put_all(100, 199, CHEMPI_HERE_ENDED, "");
    cr_assert(take());
    expect("chempirun: ranks 100-199 have ended\n"
           "chempirun: ranks 0-99 wait in a?b?[2J?\n");
}

Test(wait_summary, malformed_messages_end_where_they_are_malformed)
{
    char text[CHEMPI_HERE_MAX + 1];

    begin(2); /* no rank is there */
    cr_assert_not(take());
    begin(7);
    cr_assert_not(take());
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    begin(0);
    put(0, CHEMPI_HERE_WAITS, "MPI_Recv");
    put(1, CHEMPI_HERE_WAITS, text); /* too long */
    put(2, CHEMPI_HERE_WAITS, "MPI_Recv");
    cr_assert_not(take());
    begin(1);
    put_all(100, 150, CHEMPI_HERE_ENDED, "");
    put(3, CHEMPI_HERE_WAITS, "MPI_Recv"); /* of another node */
    put(151, CHEMPI_HERE_ENDED, "");
    cr_assert(take());
    expect("chempirun: ranks 100-150 have ended\n"
           "chempirun: rank 0 on node a1 waits in MPI_Recv\n"
           "chempirun: nothing is known of ranks 1-99, 151-199\n");
    message.len = 2; /* not even a node */
    cr_assert(take());
}

Test(wait_summary, kinds_that_there_are_not_are_malformed)
{
    begin(0);
    put(0, (enum chempi_here)0, "x");
    cr_assert_not(take());
    begin(1);
    put(100, (enum chempi_here)(CHEMPI_HERE_ENDED + 1), "x");
    cr_assert(take());
    expect("chempirun: nothing is known of ranks 0-199\n");
}

/* A rank that waits for others, called from somewhere. */
static void put_waiting(uint32_t rank, const char *text, const char *site,
                        uint32_t count, const uint32_t *ranks)
{
    chempi_wire_put_u32(&message, rank);
    chempi_wire_put_u8(&message, CHEMPI_HERE_WAITS);
    chempi_wire_put_str(&message, text);
    chempi_wire_put_str(&message, site);
    chempi_wire_put_u64(&message, 0);
    chempi_wire_put_u32(&message, count);
    for (uint32_t i = 0; i < count; i++)
        chempi_wire_put_u32(&message, ranks[i]);
}

Test(wait_summary, ranks_that_wait_for_each_other_are_drawn)
{
    begin(0);
    put_waiting(0, "A", "x", 2, (const uint32_t[]){1, 2});
    put_waiting(1, "B", "x", 1, (const uint32_t[]){4});
    put_waiting(2, "B", "x", 1, (const uint32_t[]){3});
    put_waiting(3, "C", "x", 1, (const uint32_t[]){2});
    put(4, CHEMPI_HERE_SILENT, "");
    (void)take();
    expect_printed(
        false,
        "chempirun: rank 4 on node a1 does not wait in MPI (it computes, tests "
        "or waits elsewhere)\n"
        "chempirun: rank 0 on node a1 waits in A\n"
        "chempirun:     called from x\n"
        "chempirun: ranks 1-2 wait in B\n"
        "chempirun:     called from x\n"
        "chempirun: rank 3 on node a1 waits in C\n"
        "chempirun:     called from x\n"
        "chempirun: 2 ranks wait for each other in a circle:\n"
        "chempirun:   rank 2 on node a1, in B\n"
        "chempirun:   -> rank 3 on node a1, in C\n"
        "chempirun:   -> rank 2\n");
}

/* Of those in MPI_Finalize none knows who is missing; the launcher does. */
Test(wait_summary, who_is_in_finalize_waits_for_those_that_are_not)
{
    begin(0);
    put(0, CHEMPI_HERE_WAITS, "MPI_Finalize");
    put_waiting(1, "MPI_Barrier, for rank 0", "x", 1, (const uint32_t[]){0});
    put(2, CHEMPI_HERE_SILENT, "");
    put(3, CHEMPI_HERE_TESTS, "MPI_Test");
    put(4, CHEMPI_HERE_FINALIZED, "");
    put(5, CHEMPI_HERE_WAITS, "MPI_Finalize");
    (void)take();
    chempi_wait_summary_meet(&places);
    expect_printed(
        false,
        "chempirun: rank 2 on node a1 does not wait in MPI (it computes, tests "
        "or waits elsewhere)\n"
        "chempirun: rank 3 on node a1 does not wait, but calls MPI_Test\n"
        "chempirun: rank 4 on node a1 has finalized MPI and not ended\n"
        "chempirun: ranks 0, 5 wait in MPI_Finalize, for rank 1 on node a1, "
        "rank 2 on node a1; and 1 more\n"
        "chempirun: rank 1 on node a1 waits in MPI_Barrier, for rank 0\n"
        "chempirun:     called from x\n"
        "chempirun: 2 ranks wait for each other in a circle:\n"
        "chempirun:   rank 0 on node a1, in MPI_Finalize, for rank 1 on node "
        "a1, rank 2 on node a1; and 1 more\n"
        "chempirun:   -> rank 1 on node a1, in MPI_Barrier, for rank 0\n"
        "chempirun:   -> rank 0\n");
}

/* One that has begun MPI may have left MPI_Init. */
Test(wait_summary, who_is_in_init_waits_for_those_that_have_not_begun)
{
    begin(0);
    put(0, CHEMPI_HERE_WAITS, "MPI_Init_thread");
    put(1, CHEMPI_HERE_FRESH, "");
    put(2, CHEMPI_HERE_SILENT, "");
    (void)take();
    chempi_wait_summary_meet(&places);
    expect_printed(
        false,
        "chempirun: rank 1 on node a1 has not initialized MPI\n"
        "chempirun: rank 2 on node a1 does not wait in MPI (it computes, tests "
        "or waits elsewhere)\n"
        "chempirun: rank 0 on node a1 waits in MPI_Init_thread, for rank 1 on "
        "node a1\n");
}

/* More than there is room for with their calls, and less than without. */
Test(wait_summary,
     a_node_tells_of_all_its_ranks_and_of_calls_where_there_is_room)
{
    enum { MANY = 6000, TEXT = 400, SITE = 700 };
    struct chempi_rank *ranks = calloc(MANY, sizeof(*ranks));
    struct chempi_writer w = {0};
    struct chempi_reader r;
    uint32_t sites = 0;

    cr_assert(ranks);
    for (uint32_t i = 0; i < MANY; i++) {
        ranks[i].world = i;
        ranks[i].here_kind = CHEMPI_HERE_WAITS;
        memset(ranks[i].here, 'x', TEXT);
        memset(ranks[i].site, 'y', SITE);
        ranks[i].for_count = i % 2;
        ranks[i].for_ranks[0] = 7;
    }
    chempi_wait_collect_put(&w, ranks, MANY);
    cr_assert_eq(w.error, 0);
    cr_assert(w.len <= CHEMPI_WAIT_SUMMARY_MAX);
    cr_assert(w.len + SITE > CHEMPI_WAIT_SUMMARY_MAX);
    chempi_wire_read(&r, w.data, w.len);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(chempi_wire_get_u32(&r), i);
        cr_assert_eq(chempi_wire_get_u8(&r), CHEMPI_HERE_WAITS);
        cr_assert_eq(strlen(chempi_wire_get_str(&r, CHEMPI_HERE_MAX)), TEXT);
        sites += strlen(chempi_wire_get_str(&r, CHEMPI_HERE_SITE_MAX)) == SITE;
        (void)chempi_wire_get_u64(&r);
        cr_assert_eq(chempi_wire_get_u32(&r), i % 2);
        if (i % 2)
            cr_assert_eq(chempi_wire_get_u32(&r), 7);
    }
    cr_assert(chempi_wire_is_done(&r));
    cr_assert(sites > MANY / 4);
    chempi_wire_clear(&w);
    free(ranks);
}

Test(wait_summary, a_chain_is_no_circle)
{
    begin(0);
    for (uint32_t i = 0; i < 99; i++)
        put_waiting(i, "A", "", 1, (const uint32_t[]){i + 1});
    (void)take();
    expect_printed(false, "chempirun: ranks 0-98 wait in A\n");
}

Test(wait_summary, of_a_long_circle_the_beginning_is_drawn)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    cr_assert(file);
    begin(0);
    for (uint32_t i = 0; i < 100; i++)
        put_waiting(i, "A", "", 1, (const uint32_t[]){(i + 1) % 100});
    (void)take();
    chempi_wait_summary_print(&places, file, false);
    cr_assert_eq(fclose(file), 0);
    cr_assert(strstr(text, "100 ranks wait for each other in a circle:\n"));
    cr_assert(strstr(text, "-> rank 15 on node a1, in A\n"
                           "chempirun:   -> 84 more\n"
                           "chempirun:   -> rank 0\n"));
    free(text);
}

Test(wait_summary, whence_ranks_call_is_told)
{
    begin(0);
    put_waiting(0, "A", "f+0x1 of p", 0, NULL);
    put_waiting(1, "A", "f+0x1 of p", 0, NULL);
    put_waiting(2, "B", "f+0x1 of p", 0, NULL);
    put_waiting(3, "B", "g\n+0x2 of p", 0, NULL);
    put_waiting(4, "C", "f+0x1 (p)\ng\x1b+0x2 (p)\nmain (p)", 0, NULL);
    put_waiting(5, "D", "\nf", 0, NULL);
    put_waiting(6, "E", "1\n2\n3\n4\n5\n6\n7\n8\n9", 0, NULL);
    (void)take();
    expect_printed(false,
                   "chempirun: ranks 0-1 wait in A\n"
                   "chempirun:     called from f+0x1 of p\n"
                   "chempirun: ranks 2-3 wait in B\n"
                   "chempirun:     called from f+0x1 of p and elsewhere\n"
                   "chempirun: rank 4 on node a1 waits in C\n"
                   "chempirun:     called from f+0x1 (p)\n"
                   "chempirun:            from g?+0x2 (p)\n"
                   "chempirun:            from main (p)\n"
                   "chempirun: rank 5 on node a1 waits in D\n"
                   "chempirun: rank 6 on node a1 waits in E\n"
                   "chempirun:     called from 1\n"
                   "chempirun:            from 2\n"
                   "chempirun:            from 3\n"
                   "chempirun:            from 4\n"
                   "chempirun:            from 5\n"
                   "chempirun:            from 6\n"
                   "chempirun:            from 7\n"
                   "chempirun:            from 8\n");
}

Test(wait_summary, ranks_that_there_are_not_end_what_is_taken)
{
    begin(0);
    put_waiting(0, "A", "", 1, (const uint32_t[]){RANKS});
    put_waiting(1, "A", "", 0, NULL);
    (void)take();
    expect_printed(false, "chempirun: rank 0 on node a1 waits in A\n");
}
