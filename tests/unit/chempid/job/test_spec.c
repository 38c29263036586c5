/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of jobs, there and back. */
#define _GNU_SOURCE /* memmem */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "chempid/job/spec.h"
#include "common/control/msg.h"

static char *argv_a[] = {"./a", "-x", NULL};
static char *argv_b[] = {"b", NULL};
static char *env[] = {"A=1", "B=", NULL};
static char *none[] = {NULL};
static char *names[] = {"a1", "a2"};
static uint32_t places[] = {0, 1, 1};
static uint32_t offsets[] = {0, 5};
static uint32_t hosts[] = {0, 0};
static char *slots[] = {"0", "1:0-2", "*"};
static uint32_t lines[] = {3, 1, 2};
static char *before[] = {"valgrind", "-q", NULL};
static struct chempi_wrap wraps[] = {{"1-2", before}};
static struct chempi_app apps[] = {
    {argv_a, env, "/x", 0, 2},
    {argv_b, none, NULL, 2, 1},
};

static void describe(struct chempi_spec *s)
{
    cr_assert_eq(chempi_spec_init(s, NULL), 0);
    s->size = 3;
    s->node_count = 2;
    s->node_names = names;
    s->node_of_rank = places;
    s->bind_offset = offsets;
    s->host_of_node = hosts;
    s->apps = apps;
    s->app_count = 2;
    s->env = env;
    s->cwd = "/tmp";
    s->universe_size = 8;
    s->shows_binding = true;
    s->want_stats = CHEMPI_STATS_ROUTES;
    s->files[1] = "err.%r";
    s->wraps = wraps;
    s->wrap_count = 1;
    s->is_debugged = true;
    s->survives = true;
    s->cpu_set = "0-3";
    s->bind = CHEMPI_BIND_LIST;
    s->rankfile = "ranks";
    s->slots_of_rank = slots;
    s->line_of_rank = lines;
    s->is_secure = true;
}

static int there_and_back(const struct chempi_spec *s, struct chempi_spec *out,
                          size_t cut)
{
    struct chempi_writer w = {0};
    struct chempi_reader r;
    int rc;

    chempi_spec_write(s, CHEMPI_NODE_ANY, &w);
    cr_assert_eq(w.error, 0);
    chempi_wire_read(&r, w.data, w.len - cut);
    rc = chempi_spec_read(out, &r);
    chempi_wire_clear(&w);
    return rc;
}

Test(spec, a_description_survives_the_wire)
{
    struct chempi_spec s;
    struct chempi_spec t;

    describe(&s);
    cr_assert_eq(there_and_back(&s, &t, 0), 0);
    cr_assert_eq(t.job, s.job);
    cr_assert_str_eq(t.id, s.id);
    cr_assert_eq(memcmp(t.secret, s.secret, sizeof(s.secret)), 0);
    cr_assert(t.is_secure);
    cr_assert_eq(memcmp(t.rank_key, s.rank_key, sizeof(s.rank_key)), 0);
    cr_assert_eq(t.size, 3);
    cr_assert_str_eq(t.node_names[1], "a2");
    cr_assert_eq(t.node_of_rank[2], 1);
    cr_assert_eq(t.bind_offset[1], 5);
    cr_assert_eq(t.host_of_node[1], 0);
    cr_assert(t.shows_binding);
    cr_assert_str_eq(t.cpu_set, "0-3");
    cr_assert_str_eq(t.rankfile, "ranks");
    cr_assert_str_eq(t.slots_of_rank[1], "1:0-2");
    cr_assert_eq(t.line_of_rank[2], 2);
    cr_assert_eq(chempi_spec_host_procs(&t, 1), 3);
    cr_assert_str_eq(t.apps[0].argv[1], "-x");
    cr_assert_str_eq(t.apps[0].wdir, "/x");
    cr_assert_null(t.apps[1].wdir);
    cr_assert_null(t.apps[1].argv[1]);
    cr_assert_eq(t.apps[1].first_rank, 2);
    cr_assert_str_eq(t.env[1], "B=");
    cr_assert_null(t.tables);
    cr_assert_eq(t.want_stats, CHEMPI_STATS_ROUTES);
    cr_assert_null(t.files[0]);
    cr_assert_str_eq(t.files[1], "err.%r");
    cr_assert(t.is_debugged);
    cr_assert(t.survives);
    cr_assert_null(chempi_spec_wrap(&t, 0));
    cr_assert_str_eq(chempi_spec_wrap(&t, 2)[1], "-q");
    cr_assert_eq(chempi_spec_app(&t, 1), &t.apps[0]);
    cr_assert_eq(chempi_spec_app(&t, 2), &t.apps[1]);
    cr_assert_eq(chempi_spec_local_size(&t, 1), 2);
    chempi_spec_fini(&t);
}

Test(spec, jobs_have_secrets_of_their_own)
{
    struct chempi_spec s;
    struct chempi_spec t;

    cr_assert_eq(chempi_spec_init(&s, NULL), 0);
    cr_assert_eq(chempi_spec_init(&t, NULL), 0);
    cr_assert_neq(s.job, t.job);
    cr_assert_neq(memcmp(s.secret, t.secret, sizeof(s.secret)), 0);
    cr_assert_neq(memcmp(s.rank_key, t.rank_key, sizeof(s.rank_key)), 0);
    cr_assert_neq(memcmp(s.rank_key, s.secret, sizeof(s.secret)), 0);
}

/* A node may refuse its part of what goes to several. */
Test(spec, a_job_with_claims_on_several_nodes_is_held)
{
    uint32_t claims[] = {CHEMPI_BUSY_ANY, 3};
    uint32_t one[] = {1, 1, 1};
    struct chempi_spec s;
    struct chempi_spec t;

    describe(&s);
    cr_assert_eq(there_and_back(&s, &t, 0), 0);
    cr_assert_eq(t.busy_max[0], CHEMPI_BUSY_ANY);
    chempi_spec_fini(&t);
    s.busy_max = claims;
    cr_assert_eq(there_and_back(&s, &t, 0), 0);
    cr_assert_eq(t.busy_max[0], CHEMPI_BUSY_ANY);
    cr_assert_eq(t.busy_max[1], 3);
    chempi_spec_fini(&t);
    cr_assert_not(chempi_spec_is_held(&s)); /* it is debugged */
    s.is_debugged = false;
    cr_assert(chempi_spec_is_held(&s));
    s.node_of_rank = one;
    cr_assert_not(chempi_spec_is_held(&s));
    s.node_of_rank = places;
    claims[1] = CHEMPI_BUSY_ANY;
    cr_assert_not(chempi_spec_is_held(&s));
}

/* Both by whoever makes the description, and by a daemon that has its bytes. */
static void check_part(const struct chempi_spec *s, uint32_t node,
                       bool has_ranks)
{
    static const uint8_t zeros[CHEMPI_JOB_SECRET_BYTES];
    struct chempi_writer whole = {0};
    struct chempi_writer part = {0};
    struct chempi_writer copy = {0};
    struct chempi_reader r;
    struct chempi_spec t;

    chempi_spec_write(s, CHEMPI_NODE_ANY, &whole);
    chempi_spec_write(s, node, &part);
    chempi_spec_copy(s, whole.data, whole.len, has_ranks, &copy);
    cr_assert_eq(copy.len, part.len);
    cr_assert_eq(memcmp(copy.data, part.data, part.len), 0);
    cr_assert_eq(
        memmem(part.data, part.len, s->rank_key, sizeof(s->rank_key)) != NULL,
        has_ranks);
    if (s->parent)
        cr_assert_eq(
            memmem(part.data, part.len, s->parent, strlen(s->parent)) != NULL,
            has_ranks);
    chempi_wire_read(&r, part.data, part.len);
    cr_assert_eq(chempi_spec_read(&t, &r), 0);
    cr_assert(chempi_wire_is_done(&r));
    cr_assert_eq(t.parent != NULL, has_ranks && s->parent);
    cr_assert_eq(
        memcmp(t.rank_key, has_ranks ? s->rank_key : zeros, sizeof(zeros)), 0);
    chempi_spec_fini(&t);
    chempi_wire_clear(&whole);
    chempi_wire_clear(&part);
    chempi_wire_clear(&copy);
}

Test(spec, nodes_without_ranks_are_not_told_the_secrets_of_ranks)
{
    uint32_t where[] = {0, 0, 0, 1}; /* a gateway on the second */
    struct chempi_spec s;

    describe(&s);
    s.gateway_count = 1;
    s.node_of_rank = where;
    check_part(&s, 0, true);
    check_part(&s, 1, false);
    s.parent = "the port of its parents";
    check_part(&s, 0, true);
    check_part(&s, 1, false);
}

Test(spec, every_cut_is_refused)
{
    struct chempi_spec s;
    struct chempi_spec t;
    struct chempi_writer w = {0};

    describe(&s);
    chempi_spec_write(&s, CHEMPI_NODE_ANY, &w);
    for (size_t cut = 1; cut <= w.len; cut++)
        cr_assert_eq(there_and_back(&s, &t, cut), -EBADMSG, "%zu", cut);
    chempi_wire_clear(&w);
}

Test(spec, words_before_programs_need_ranks_and_a_word)
{
    static char *nothing[] = {NULL};
    struct chempi_wrap wrong[] = {{"1-2", before}, {"2-1", before}};
    struct chempi_spec s;
    struct chempi_spec t;

    describe(&s);
    s.wraps = wrong;
    s.wrap_count = 2;
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    wrong[1] = (struct chempi_wrap){"1", nothing};
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    wrong[1] = (struct chempi_wrap){"1", before};
    cr_assert_eq(there_and_back(&s, &t, 0), 0);
    chempi_spec_fini(&t);
}

Test(spec, contradictions_are_refused)
{
    struct chempi_spec s;
    struct chempi_spec t;

    describe(&s);
    s.size = 2; /* the programs have three ranks */
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    describe(&s);
    s.node_count = 1; /* a rank is on the other */
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    describe(&s);
    s.stdin_rank = 3;
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    describe(&s);
    s.bind = 9;
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    describe(&s);
    s.rankfile = NULL; /* and bound by one */
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
    describe(&s);
    s.job = 0;
    cr_assert_eq(there_and_back(&s, &t, 0), -EBADMSG);
}

Test(spec, a_node_has_a_name_of_its_own)
{
    char *bad[][2] = {{"a1", "a1"}, {"a1", ""}, {"../a1", "a2"}, {"a1", "a:"}};
    struct chempi_spec s;
    struct chempi_spec t;

    describe(&s);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        s.node_names = bad[i];
        cr_expect_eq(there_and_back(&s, &t, 0), -EBADMSG, "%zu", i);
    }
}
