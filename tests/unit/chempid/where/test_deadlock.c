/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks are stuck, and what is said of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "chempid/where/deadlock.h"

#define RANKS 6u
#define LOOKS 3u

static char *names[] = {"a1"};
static uint32_t node_of_rank[RANKS];
static const struct chempi_spec spec = {.size = RANKS,
                                        .node_count = 1,
                                        .node_names = names,
                                        .node_of_rank = node_of_rank};
static struct chempi_wait_summary places;
static struct chempi_writer message;
static uint64_t moves[RANKS];
static uint32_t same[RANKS];
static bool is_stuck[RANKS];
static struct chempi_deadlock deadlock = {
    .looks = LOOKS, .moves = moves, .same = same, .is_stuck = is_stuck};

static struct {
    enum chempi_here here;
    const char *text;
    uint64_t moves;
    uint32_t count;
    uint32_t ranks[CHEMPI_HERE_FOR_MAX];
} rank[RANKS];

static void fini(void)
{
    chempi_wait_summary_close(&places);
    chempi_wire_clear(&message);
}

TestSuite(deadlock, .fini = fini);

static bool look(void)
{
    struct chempi_reader r;

    chempi_wait_summary_close(&places);
    cr_assert_eq(chempi_wait_summary_open(&places, &spec), 0);
    chempi_wire_clear(&message);
    chempi_wire_put_u32(&message, 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        chempi_wire_put_u32(&message, i);
        chempi_wire_put_u8(&message, (uint8_t)rank[i].here);
        chempi_wire_put_str(&message, rank[i].text ? rank[i].text : "");
        chempi_wire_put_str(&message, "");
        chempi_wire_put_u64(&message, rank[i].moves);
        chempi_wire_put_u32(&message, rank[i].count);
        for (uint32_t k = 0; k < rank[i].count; k++)
            chempi_wire_put_u32(&message, rank[i].ranks[k]);
    }
    chempi_wire_read(&r, message.data, message.len);
    cr_assert(chempi_wait_summary_take(&places, &r));
    return chempi_deadlock_look(&deadlock, &places);
}

/* Is anybody stuck when nothing changes for so long? */
static bool look_long(void)
{
    bool was_found = false;

    for (uint32_t i = 0; i < LOOKS; i++) {
        cr_assert_not(was_found, "after %u looks", i);
        was_found = look();
    }
    return was_found;
}

static void wait_for(uint32_t who, const char *text, uint32_t whom)
{
    rank[who].here = CHEMPI_HERE_WAITS;
    rank[who].text = text;
    rank[who].moves = 7 + who;
    rank[who].count = whom < RANKS;
    rank[who].ranks[0] = whom;
}

static void put_all(enum chempi_here here)
{
    for (uint32_t i = 0; i < RANKS; i++)
        rank[i].here = here;
}

static void expect(const char *words)
{
    char text[CHEMPI_TEXT_MAX];

    chempi_deadlock_put(&deadlock, &places, text, sizeof(text));
    cr_assert_str_eq(text, words);
}

Test(deadlock, a_circle_is_found_while_others_compute)
{
    put_all(CHEMPI_HERE_SILENT);
    wait_for(1, "MPI_Recv at a.c:1", 3);
    wait_for(3, "MPI_Send at a.c:2", 1);
    wait_for(0, "MPI_Recv at a.c:3", 1);
    cr_assert(look_long());
    cr_assert(is_stuck[0] && is_stuck[1] && is_stuck[3]);
    cr_assert_not(is_stuck[2] || is_stuck[4] || is_stuck[5]);
    expect("deadlock: rank 1, in MPI_Recv at a.c:1 -> rank 3, in MPI_Send at "
           "a.c:2 -> rank 1; MPI_Send may wait until its message is received, "
           "and with --check it does; the job was ended");
}

Test(deadlock, who_goes_on_is_not_stuck)
{
    put_all(CHEMPI_HERE_SILENT);
    wait_for(1, "MPI_Recv", 3);
    wait_for(3, "MPI_Recv", 1);
    for (uint32_t i = 0; i < 4 * LOOKS; i++) {
        rank[3].moves++;
        cr_assert_not(look());
    }
    rank[1].moves = 0; /* it needs nobody's call */
    cr_assert_not(look_long());
}

Test(deadlock, who_waits_for_one_that_computes_or_tests_is_not_stuck)
{
    put_all(CHEMPI_HERE_WAITS);
    for (uint32_t i = 0; i < RANKS - 1; i++)
        wait_for(i, "MPI_Recv", i + 1);
    rank[RANKS - 1].here = CHEMPI_HERE_SILENT;
    cr_assert_not(look_long());
    rank[RANKS - 1].here = CHEMPI_HERE_TESTS;
    rank[RANKS - 1].text = "MPI_Test";
    rank[RANKS - 1].moves = 3; /* which is of no account */
    cr_assert_not(look());
}

Test(deadlock, who_waits_for_anybody_is_stuck_only_with_all)
{
    put_all(CHEMPI_HERE_ENDED);
    wait_for(2, "MPI_Recv from any rank", RANKS);
    wait_for(4, "MPI_Recv from rank 2", 2);
    wait_for(5, "MPI_Recv", 5);
    rank[0].here = CHEMPI_HERE_SILENT;
    cr_assert(look_long()); /* rank 5, for itself */
    cr_assert_not(is_stuck[2] || is_stuck[4]);
    expect("deadlock: rank 5, in MPI_Recv -> rank 5; the job was ended");
    rank[0].here = CHEMPI_HERE_FINALIZED;
    rank[5].here = CHEMPI_HERE_ENDED;
    cr_assert(look());
    cr_assert(is_stuck[2] && is_stuck[4]);
    expect("deadlock: no rank can go on: rank 4, in MPI_Recv from rank 2 -> "
           "rank 2, in MPI_Recv from any rank; the job was ended");
}

Test(deadlock, who_waits_for_one_that_has_ended_is_stuck)
{
    put_all(CHEMPI_HERE_SILENT);
    rank[0].here = CHEMPI_HERE_ENDED;
    wait_for(2, "MPI_Recv", 0);
    cr_assert(look_long());
    expect("deadlock: some ranks cannot go on: rank 2, in MPI_Recv -> rank 0, "
           "which has ended; the job was ended");
}

Test(deadlock, of_a_long_circle_with_long_words_the_sentence_has_its_end)
{
    static char words[CHEMPI_HERE_MAX];
    char text[CHEMPI_TEXT_MAX];

    memset(words, 'x', sizeof(words) - 1);
    for (uint32_t i = 0; i < RANKS; i++)
        wait_for(i, words, (i + 1) % RANKS);
    cr_assert(look_long());
    chempi_deadlock_put(&deadlock, &places, text, sizeof(text));
    cr_assert_not_null(strstr(text, " -> 1 more -> rank 0; the job was ended"),
                       "%s", text);
}
