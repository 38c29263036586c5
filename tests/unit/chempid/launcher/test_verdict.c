/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a job ended, and with which exit status. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "chempid/job/exit_status.h"
#include "chempid/launcher/verdict.h"

static char *names[] = {"a1", "a2"};
static const struct chempi_spec spec = {.size = 4, .node_names = names};
static struct chempi_verdict v;

static bool end(uint32_t rank, enum chempi_end how, uint32_t code,
                const char *detail)
{
    return chempi_verdict_rank(&v, &spec, rank / 2, rank, 4711, how, code,
                               "./a.out", detail);
}

Test(verdict, a_job_without_complaints_succeeds)
{
    cr_assert_eq(chempi_verdict_status(&v), 0);
    cr_assert_str_eq(v.text, "");
}

Test(verdict, the_sentence_says_who_died_where_and_how)
{
    cr_assert(end(3, CHEMPI_END_SIGNAL, 11, ""));
    cr_assert_str_eq(v.text,
                     "rank 3 on node a2 (pid 4711, ./a.out) was killed by "
                     "signal 11 (Segmentation fault); the job was ended");
    cr_assert_eq(chempi_verdict_status(&v), 139);
}

Test(verdict, a_rank_that_gives_a_reason_is_quoted)
{
    cr_assert(end(0, CHEMPI_END_ABORT, 6, "MPI_Send: no such rank"));
    cr_assert_str_eq(v.text, "rank 0 on node a1 (pid 4711, ./a.out): MPI_Send: "
                             "no such rank; the job was ended");
    cr_assert_eq(chempi_verdict_status(&v), 6);
}

Test(verdict, a_rank_that_gives_none_called_abort)
{
    cr_assert(end(0, CHEMPI_END_ABORT, (uint32_t)-3, ""));
    cr_assert_str_eq(v.text, "rank 0 on node a1 (pid 4711, ./a.out) called "
                             "MPI_Abort with code -3; the job was ended");
    cr_assert_eq(chempi_verdict_status(&v), 253);
}

Test(verdict, the_first_death_counts)
{
    (void)end(1, CHEMPI_END_EXIT, 3, "");
    (void)end(2, CHEMPI_END_SIGNAL, 11, "");
    cr_assert_eq(chempi_verdict_status(&v), 3);
}

Test(verdict, a_death_is_a_better_cause_than_an_abort)
{
    (void)end(1, CHEMPI_END_ABORT, 5, "lost rank 2");
    cr_assert_eq(chempi_verdict_status(&v), 5);
    (void)end(2, CHEMPI_END_SIGNAL, 9, "");
    cr_assert_eq(chempi_verdict_status(&v), 137);
    (void)end(1, CHEMPI_END_ABORT, 6, "");
    cr_assert_eq(chempi_verdict_status(&v), 137);
}

Test(verdict, what_dies_at_the_same_time_is_named_too)
{
    char text[2 * CHEMPI_TEXT_MAX];

    (void)end(3, CHEMPI_END_SIGNAL, 11, "");
    (void)end(1, CHEMPI_END_SIGNAL, 9, "");
    (void)end(0, CHEMPI_END_ABORT, 1, "rank 1 is lost");
    chempi_verdict_node(&v, "the daemon of node a9 is lost: it closed the "
                            "connection");
    chempi_verdict_put(&v, text, sizeof(text));
    cr_expect_str_eq(text,
                     "rank 3 on node a2 (pid 4711, ./a.out) was killed by "
                     "signal 11 (Segmentation fault); besides, rank 1 on node "
                     "a1 was killed by signal 9 (Killed), the daemon of node "
                     "a9 is lost: it closed the connection; the job was ended");
    for (int i = 0; i < 1000; i++)
        (void)end(2, CHEMPI_END_EXIT, 3, "");
    chempi_verdict_put(&v, text, sizeof(text));
    cr_expect(strstr(text, "code 3 and 99"), "%s", text);
    cr_expect_lt(strlen(text), 700);
}

Test(verdict, words_besides_that_are_cut_say_so)
{
    char text[2 * CHEMPI_TEXT_MAX];

    chempi_verdict_node(&v, "node a lost");
    chempi_verdict_node(
        &v, "the daemon of node rack7 serves all users and "
            "starts no ranks of root; start jobs as another user, or "
            "a daemon with --serve owner and a --dir of its "
            "own");
    chempi_verdict_put(&v, text, sizeof(text));
    cr_expect(strstr(text, "...; the job was ended"), "%s", text);
    cr_expect(strstr(text, "besides, the daemon of node rack7"), "%s", text);
}

Test(verdict, nodes_of_which_the_same_is_said_are_only_named)
{
    char text[2 * CHEMPI_TEXT_MAX];

    chempi_verdict_node(&v, "the daemon of node a1 starts no ranks of root");
    chempi_verdict_node(&v, "the daemon of node a20 starts no ranks of root");
    chempi_verdict_node(&v, "the daemon of node a1 starts no ranks of root");
    chempi_verdict_node(&v, "the daemon of node b starts no ranks of it");
    chempi_verdict_put(&v, text, sizeof(text));
    cr_expect_str_eq(text, "the daemon of node a1 starts no ranks of root; "
                           "besides, the same of a20, the daemon of node a1 "
                           "starts no ranks of root, the daemon of node b "
                           "starts no ranks of it; the job was ended");
}

Test(verdict, pairs_that_are_cut_off_are_a_reason_like_a_ranks_own)
{
    cr_expect(chempi_verdict_takes_cut(&v));
    chempi_verdict_cut(&v, 2, "no way is left");
    cr_expect_not(chempi_verdict_takes_cut(&v));
    (void)end(2, CHEMPI_END_ABORT, 5, "lost");
    cr_expect_str_eq(v.text, "no way is left; the job was ended");
    cr_expect_eq(chempi_verdict_status(&v), 1);
    (void)end(1, CHEMPI_END_SIGNAL, 9, "");
    cr_expect_eq(chempi_verdict_status(&v), 137);
    chempi_verdict_cut(&v, 2, "no way is left");
    cr_expect_eq(chempi_verdict_status(&v), 137);
}

Test(verdict, an_order_of_the_launcher_beats_all)
{
    (void)end(2, CHEMPI_END_SIGNAL, 9, "");
    chempi_verdict_order(&v, CHEMPI_EXIT_TIMEOUT, "time is up");
    chempi_verdict_node(&v, "node lost");
    cr_assert_eq(chempi_verdict_status(&v), 124);
    cr_assert_str_eq(v.text, "time is up");
}

Test(verdict, an_end_without_finalize_fails_even_with_code_0)
{
    (void)end(0, CHEMPI_END_EARLY, 0, "");
    cr_assert_eq(chempi_verdict_status(&v), 1);
}

Test(verdict, what_is_missing_is_named)
{
    (void)end(0, CHEMPI_END_SESSION, 0, "");
    cr_assert_eq(chempi_verdict_status(&v), 1);
    cr_assert(strstr(v.text, "without calling MPI_Session_finalize"), "%s",
              v.text);
}

Test(verdict, an_abort_with_code_0_is_no_success)
{
    (void)end(0, CHEMPI_END_ABORT, 256, "");
    cr_assert_eq(chempi_verdict_status(&v), 1);
}

Test(verdict, codes_after_finalize_end_nothing_and_the_largest_is_kept)
{
    cr_assert_not(end(0, CHEMPI_END_LATE, 3, ""));
    cr_assert_not(end(1, CHEMPI_END_LATE, 7, ""));
    cr_assert_not(end(2, CHEMPI_END_LATE, 5, ""));
    cr_assert_eq(chempi_verdict_status(&v), 7);
    cr_assert_str_eq(v.text, "");
}

Test(verdict, a_program_that_is_not_there_gives_127)
{
    (void)end(0, CHEMPI_END_START, ENOENT, "cannot be executed");
    cr_assert_eq(chempi_verdict_status(&v), 127);
    v = (struct chempi_verdict){0};
    (void)end(0, CHEMPI_END_START, EACCES, "cannot be executed");
    cr_assert_eq(chempi_verdict_status(&v), 126);
    cr_assert(v.is_unstarted);
    chempi_verdict_order(&v, 130, "interrupted");
    cr_assert_not(v.is_unstarted);
}

Test(verdict, long_words_are_cut_and_the_sentence_still_ends)
{
    char detail[CHEMPI_TEXT_MAX];

    memset(detail, 'x', sizeof(detail));
    detail[sizeof(detail) - 1] = '\0';
    (void)end(0, CHEMPI_END_ABORT, 1, detail);
    cr_assert(strstr(v.text, "; the job was ended"));
}
