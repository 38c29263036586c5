/* SPDX-License-Identifier: BSD-3-Clause */
/* States of nodes, there and back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "chempid/tree/nodes/status.h"
#include "common/control/msg.h"

Test(status, records_survive_the_wire)
{
    struct chempi_status_gateway gateways[] = {{"g0", CHEMPI_FATE_UP, 77},
                                               {"g1", CHEMPI_FATE_LOST, 0},
                                               {"g2", CHEMPI_FATE_DRAINED, 0}};
    struct chempi_status_job job = {"id", 7, 4, 2, "./a", false, 3, gateways};
    struct chempi_status_grant grant = {.job = "id",
                                        .rank = 3,
                                        .granted = 9,
                                        .ordered = 8,
                                        .used = 7,
                                        .wanted = 6,
                                        .degraded = 5,
                                        .due_ms = 4,
                                        .is_late = true};
    const struct chempi_status good = {.node = "a1",
                                       .error = "",
                                       .host = 42,
                                       .slots = 3,
                                       .load = 150,
                                       .version = "1",
                                       .tables = "/tables",
                                       .is_drained = true,
                                       .job_count = 1,
                                       .jobs = &job,
                                       .memory = 12,
                                       .memory_granted = 9,
                                       .grant_count = 1,
                                       .grants = &grant};
    const struct chempi_status bad = {.node = "a2", .error = "refused"};
    struct chempi_writer w = {0};
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;

    chempi_status_write(&w, &good);
    chempi_status_write(&w, &bad);
    chempi_wire_read(&r, w.data, w.len);
    chempi_status_read(&r, &pool, &s);
    cr_assert_eq(s.host, 42);
    cr_assert_eq(s.job_count, 1);
    cr_assert_str_eq(s.tables, "/tables");
    cr_assert_eq(s.jobs[0].gateway_count, 3);
    cr_assert_str_eq(s.jobs[0].gateways[1].node, "g1");
    cr_assert_eq(s.jobs[0].gateways[0].fate, CHEMPI_FATE_UP);
    cr_assert_eq(s.jobs[0].gateways[1].fate, CHEMPI_FATE_LOST);
    cr_assert_eq(s.jobs[0].gateways[2].fate, CHEMPI_FATE_DRAINED);
    cr_assert_eq(s.jobs[0].gateways[0].pid, 77);
    cr_assert(s.is_drained);
    cr_assert_str_eq(s.jobs[0].program, "./a");
    cr_assert_eq(s.memory, 12);
    cr_assert_eq(s.memory_granted, 9);
    cr_assert_eq(s.grant_count, 1);
    cr_assert_str_eq(s.grants[0].job, "id");
    cr_assert_eq(s.grants[0].rank, 3);
    cr_assert_eq(s.grants[0].granted, 9);
    cr_assert_eq(s.grants[0].ordered, 8);
    cr_assert_eq(s.grants[0].used, 7);
    cr_assert_eq(s.grants[0].wanted, 6);
    cr_assert_eq(s.grants[0].degraded, 5);
    cr_assert_eq(s.grants[0].due_ms, 4);
    cr_assert(s.grants[0].is_late);
    chempi_status_read(&r, &pool, &s);
    cr_assert_str_eq(s.error, "refused");
    cr_assert(chempi_wire_is_done(&r));
    for (size_t cut = 1; cut < w.len; cut++) {
        chempi_wire_read(&r, w.data, w.len - cut);
        while (!r.is_bad && r.next < r.end)
            chempi_status_read(&r, &pool, &s);
    }
    chempi_wire_clear(&w);
    chempi_pool_fini(&pool);
}

Test(status, words_of_nodes_give_no_orders_to_terminals)
{
    const struct chempi_status bad = {
        .node = "a2", .error = "gone\x1b[2J\nand \xc2\x9b away"};
    struct chempi_writer w = {0};
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;

    chempi_status_write(&w, &bad);
    chempi_wire_read(&r, w.data, w.len);
    chempi_status_read(&r, &pool, &s);
    cr_expect_str_eq(s.error, "gone?[2J?and ?? away");
    chempi_wire_clear(&w);
    chempi_pool_fini(&pool);
}

Test(status, a_program_s_long_name_is_cut)
{
    char name[2 * CHEMPI_STATUS_PROGRAM_MAX];
    struct chempi_status_job job = {.id = "id", .program = name};
    const struct chempi_status good = {.node = "a1",
                                       .error = "",
                                       .version = "1",
                                       .job_count = 1,
                                       .jobs = &job};
    struct chempi_writer w = {0};
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    chempi_status_write(&w, &good);
    chempi_wire_read(&r, w.data, w.len);
    chempi_status_read(&r, &pool, &s);
    cr_assert(chempi_wire_is_done(&r));
    cr_expect_eq(strlen(s.jobs[0].program), CHEMPI_STATUS_PROGRAM_MAX - 1);
    chempi_wire_clear(&w);
    chempi_pool_fini(&pool);
}

Test(status, an_id_means_one_s_own_job_or_the_only_one)
{
    struct chempi_status_job one[] = {{.id = "a", .uid = 7},
                                      {.id = "b", .uid = 7}};
    struct chempi_status_job other[] = {{.id = "a", .uid = 8},
                                        {.id = "b", .uid = 7}};
    const struct chempi_status list[] = {{.job_count = 2, .jobs = one},
                                         {.job_count = 2, .jobs = other}};
    uint32_t uid = 0;
    uint32_t second = 0;

    cr_expect_eq(chempi_status_owner(list, 2, "a", 8, &uid, &second), 0);
    cr_expect_eq(uid, 8);
    cr_expect_eq(chempi_status_owner(list, 2, "b", 0, &uid, &second), 0);
    cr_expect_eq(uid, 7);
    cr_expect_eq(chempi_status_owner(list, 2, "a", 0, &uid, &second), -EEXIST);
    cr_expect_eq(uid, 7);
    cr_expect_eq(second, 8);
    cr_expect_eq(chempi_status_owner(list, 2, "c", 0, &uid, &second), -ESRCH);
}

/* The byte is the process's fall plus one; see status.h. */
Test(status, a_gateway_s_fate_of_another_kind_is_its_loss)
{
    struct chempi_status_gateway gateway = {"g", CHEMPI_FATE_DRAINED, 0};
    struct chempi_status_job job = {"id", 7, 4, 2, "./a", false, 1, &gateway};
    const struct chempi_status good = {.node = "a1",
                                       .error = "",
                                       .version = "1",
                                       .job_count = 1,
                                       .jobs = &job};
    const size_t behind = 4 + 2 * 8 + 4; /* pid; memory without grants */
    struct chempi_writer w = {0};
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;

    chempi_status_write(&w, &good);
    cr_assert_eq(w.data[w.len - behind - 1], CHEMPI_FALL_DRAINED + 1);
    w.data[w.len - behind - 1] = 200;
    chempi_wire_read(&r, w.data, w.len);
    chempi_status_read(&r, &pool, &s);
    cr_assert(chempi_wire_is_done(&r));
    cr_expect_eq(chempi_status_fate_of(&s.jobs[0], "g"), CHEMPI_FATE_LOST);
    cr_expect_eq(chempi_status_fate_of(&s.jobs[0], "h"), CHEMPI_FATE_UP);
    cr_expect_eq(chempi_status_fate_of(NULL, "g"), CHEMPI_FATE_UP);
    cr_expect_str_eq(chempi_status_fate_word(CHEMPI_FATE_DRAINED), "drained");
    chempi_wire_clear(&w);
    chempi_pool_fini(&pool);
}
