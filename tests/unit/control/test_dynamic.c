/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the root and its answers, as bytes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"

static const char *const first[] = {"prog", "", "a b"};
static const char *const second[] = {"./other"};
static const struct chempi_spawn_key keys[] = {{"wdir", "/tmp"}, {"soft", ""}};
static struct chempi_spawn_app apps[2];
static struct chempi_spawn spawn;
static struct chempi_writer w;

static void set_up(void)
{
    apps[0] = (struct chempi_spawn_app){
        .argv = first, .argc = 3, .maxprocs = 4, .keys = keys, .key_count = 2};
    apps[1] =
        (struct chempi_spawn_app){.argv = second, .argc = 1, .maxprocs = 1};
    spawn = (struct chempi_spawn){.port = "port", .apps = apps, .app_count = 2};
}

static void tear_down(void)
{
    chempi_wire_clear(&w);
}

TestSuite(dynamic, .init = set_up, .fini = tear_down);

Test(dynamic, what_shall_be_started_arrives_as_it_was_said)
{
    struct chempi_spawn *read;

    chempi_spawn_write(&spawn, &w);
    cr_assert_eq(w.error, 0);
    cr_assert_eq(chempi_spawn_read(w.data, w.len, &read), 0);
    memset(w.data, 'x', w.len); /* it has memory of its own */
    cr_expect_str_eq(read->port, "port");
    cr_assert_eq(read->app_count, 2);
    cr_assert_eq(read->apps[0].argc, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_str_eq(read->apps[0].argv[i], first[i]);
    cr_expect_eq(read->apps[0].maxprocs, 4);
    cr_assert_eq(read->apps[0].key_count, 2);
    cr_expect_str_eq(read->apps[0].keys[0].key, "wdir");
    cr_expect_str_eq(read->apps[0].keys[0].value, "/tmp");
    cr_expect_str_eq(read->apps[0].keys[1].value, "");
    cr_assert_eq(read->apps[1].argc, 1);
    cr_expect_str_eq(read->apps[1].argv[0], "./other");
    cr_expect_eq(read->apps[1].key_count, 0);
    free(read);
}

Test(dynamic, what_is_cut_or_has_more_behind_it_is_refused)
{
    struct chempi_spawn *read = NULL;

    chempi_spawn_write(&spawn, &w);
    for (size_t len = 0; len < w.len; len++)
        cr_assert_eq(chempi_spawn_read(w.data, len, &read), -EBADMSG, "%zu",
                     len);
    chempi_wire_put_u8(&w, 0);
    cr_assert_eq(chempi_spawn_read(w.data, w.len, &read), -EBADMSG);
    cr_assert_null(read);
}

static void expect_too_much(void)
{
    chempi_spawn_write(&spawn, &w);
    cr_expect_eq(w.error, -EMSGSIZE);
    chempi_wire_clear(&w);
    set_up();
}

Test(dynamic, nothing_beyond_a_limit_is_written)
{
    static char port[CHEMPI_PORT_NAME_MAX + 1];
    static char word[CHEMPI_SPAWN_WORD_MAX + 1];
    static const char *many[CHEMPI_SPAWN_WORDS_MAX + 1];
    const char *const no_program[] = {""};
    const char *const long_word[] = {"p", word};

    memset(port, 'p', sizeof(port) - 1);
    memset(word, 'w', sizeof(word) - 1);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(many); i++)
        many[i] = "a";
    spawn.port = port;
    expect_too_much();
    spawn.port = "";
    expect_too_much();
    spawn.app_count = 0;
    expect_too_much();
    spawn.app_count = CHEMPI_SPAWN_APPS_MAX + 1;
    expect_too_much();
    apps[1].maxprocs = 0;
    expect_too_much();
    apps[1].maxprocs = CHEMPI_JOB_RANKS_MAX + 1;
    expect_too_much();
    apps[1].argv = no_program;
    expect_too_much();
    apps[1].argv = long_word;
    apps[1].argc = 2;
    expect_too_much();
    apps[1].argv = many;
    apps[1].argc = CHEMPI_ARRAY_LEN(many);
    expect_too_much();
    apps[1].argv = many;
    apps[1].argc = CHEMPI_SPAWN_WORDS_MAX - 2; /* three are the other's */
    expect_too_much();
    apps[0].key_count = CHEMPI_SPAWN_KEYS_MAX + 1;
    expect_too_much();
}

Test(dynamic, nor_is_it_read)
{
    struct chempi_spawn *read = NULL;

    chempi_wire_put_str(&w, "port");
    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_str(&w, "prog");
    chempi_wire_put_u32(&w, 0); /* processes */
    chempi_wire_put_u32(&w, 0);
    cr_expect_eq(chempi_spawn_read(w.data, w.len, &read), -EBADMSG);
    w.data[w.len - 8] = 1;
    cr_expect_eq(chempi_spawn_read(w.data, w.len, &read), 0);
    free(read);
    read = NULL;
    w.data[w.len - 5] = 0xff;
    cr_expect_eq(chempi_spawn_read(w.data, w.len, &read), -EBADMSG);
    cr_assert_null(read);
}

Test(dynamic, an_answer_arrives_as_it_was_said)
{
    const struct chempi_reply said = {.serial = 7,
                                      .state = CHEMPI_REPLY_FAILED,
                                      .error = CHEMPI_REPLY_SPAWN,
                                      .count = 3,
                                      .app = 2,
                                      .text = "why"};
    struct chempi_reply read;
    struct chempi_reader r;

    chempi_reply_write(&said, &w);
    chempi_wire_read(&r, w.data, w.len);
    cr_assert_eq(chempi_reply_read(&r, &read), 0);
    cr_expect_eq(read.serial, 7);
    cr_expect_eq(read.state, CHEMPI_REPLY_FAILED);
    cr_expect_eq(read.error, CHEMPI_REPLY_SPAWN);
    cr_expect_eq(read.count, 3);
    cr_expect_eq(read.app, 2);
    cr_expect_str_eq(read.text, "why");
}

Test(dynamic, a_long_text_of_an_answer_is_cut)
{
    static char text[2 * CHEMPI_PORT_NAME_MAX];
    const struct chempi_reply said = {.state = CHEMPI_REPLY_GRANTED,
                                      .text = text};
    struct chempi_reply read;
    struct chempi_reader r;

    memset(text, 't', sizeof(text) - 1);
    chempi_reply_write(&said, &w);
    chempi_wire_read(&r, w.data, w.len);
    cr_assert_eq(chempi_reply_read(&r, &read), 0);
    cr_expect_eq(strlen(read.text), CHEMPI_PORT_NAME_MAX - 1);
}

Test(dynamic, an_answer_that_contradicts_itself_is_refused)
{
    static const struct chempi_reply wrong[] = {
        {.state = 0},
        {.state = CHEMPI_REPLY_OVER + 1},
        {.state = CHEMPI_REPLY_FAILED, .error = CHEMPI_REPLY_NONE},
        {.state = CHEMPI_REPLY_FAILED, .error = CHEMPI_REPLY_MEMORY + 1},
        {.state = CHEMPI_REPLY_GRANTED, .error = CHEMPI_REPLY_ARG},
    };
    struct chempi_reply read;
    struct chempi_reader r;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++) {
        chempi_reply_write(&wrong[i], &w);
        chempi_wire_read(&r, w.data, w.len);
        cr_expect_eq(chempi_reply_read(&r, &read), -EBADMSG, "%zu", i);
        chempi_wire_clear(&w);
    }
}
