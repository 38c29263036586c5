/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks ask of the root, with the test as ranks and tree. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/worlds/worlds.h"

static struct chempi_worlds worlds;
static char said[2 * CHEMPI_PORT_NAME_MAX]; /* the last answer, "" for none */
static struct chempi_writer w;

static void reply(void *arg, uint32_t node, uint32_t rank,
                  const struct chempi_reply *reply)
{
    (void)arg;
    (void)snprintf(said, sizeof(said), "%u/%u:%u %s%u %s", node, rank,
                   reply->serial,
                   reply->state == CHEMPI_REPLY_GRANTED ? "granted" : "failed",
                   reply->error, reply->text);
}

static void say(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void changed(void *arg)
{
    (void)arg;
}

static const struct chempi_worlds_ops ops = {
    .reply = reply, .say = say, .changed = changed};

static void set_up(void)
{
    chempi_worlds_init(&worlds, &ops, NULL);
}

static void tear_down(void)
{
    chempi_worlds_fini(&worlds);
    chempi_wire_clear(&w);
}

TestSuite(worlds, .init = set_up, .fini = tear_down);

/* A question of that rank, with what is in `blob`. */
static const char *ask(uint32_t rank, uint8_t what,
                       const struct chempi_writer *blob)
{
    struct chempi_reader r;

    said[0] = '\0';
    chempi_wire_put_u32(&w, 9);
    chempi_wire_put_u8(&w, what);
    chempi_wire_put_blob(&w, blob->data, blob->len);
    chempi_wire_read(&r, w.data, w.len);
    chempi_worlds_take(&worlds, 1, rank, &r);
    chempi_wire_clear(&w);
    return said;
}

static const char *name(uint32_t rank, uint8_t what, const char *service,
                        const char *port)
{
    struct chempi_writer blob = {0};

    chempi_wire_put_str(&blob, service);
    if (port)
        chempi_wire_put_str(&blob, port);
    (void)ask(rank, what, &blob);
    chempi_wire_clear(&blob);
    return said;
}

Test(worlds, a_name_is_found_until_it_is_withdrawn)
{
    cr_expect(strstr(name(3, CHEMPI_ROOT_LOOKUP, "s", NULL),
                     "1/3:9 failed3 nobody has published the name, "));
    cr_expect_str_eq(name(3, CHEMPI_ROOT_PUBLISH, "s", "p"), "1/3:9 granted0 ");
    cr_expect_str_eq(name(4, CHEMPI_ROOT_LOOKUP, "s", NULL),
                     "1/4:9 granted0 p");
    cr_expect(strstr(name(4, CHEMPI_ROOT_LOOKUP, "S", NULL),
                     "1/4:9 failed3 nobody has published the name, "));
    cr_expect_str_eq(name(3, CHEMPI_ROOT_UNPUBLISH, "s", "p"),
                     "1/3:9 granted0 ");
    cr_expect(strstr(name(3, CHEMPI_ROOT_LOOKUP, "s", NULL), "failed3"));
}

Test(worlds, a_name_is_published_once)
{
    (void)name(0, CHEMPI_ROOT_PUBLISH, "s", "p");
    cr_expect_str_eq(name(0, CHEMPI_ROOT_PUBLISH, "s", "q"),
                     "1/0:9 failed2 the name is published already");
    cr_expect(strstr(name(0, CHEMPI_ROOT_LOOKUP, "s", NULL), "granted0 p"));
}

Test(worlds, what_is_not_published_is_not_withdrawn)
{
    cr_expect(strstr(name(0, CHEMPI_ROOT_UNPUBLISH, "s", "p"), "failed2"));
    (void)name(0, CHEMPI_ROOT_PUBLISH, "s", "p");
    cr_expect(strstr(name(0, CHEMPI_ROOT_UNPUBLISH, "s", "q"), "failed2"));
    cr_expect(strstr(name(0, CHEMPI_ROOT_LOOKUP, "s", NULL), "granted0 p"));
}

Test(worlds, who_ends_takes_its_names_along)
{
    const struct chempi_writer none = {0};

    (void)name(3, CHEMPI_ROOT_PUBLISH, "a", "p");
    (void)name(4, CHEMPI_ROOT_PUBLISH, "b", "q");
    (void)name(3, CHEMPI_ROOT_PUBLISH, "c", "r");
    cr_expect_str_eq(ask(3, CHEMPI_ROOT_ENDED, &none), "");
    cr_expect(strstr(name(0, CHEMPI_ROOT_LOOKUP, "a", NULL), "failed3"));
    cr_expect(strstr(name(0, CHEMPI_ROOT_LOOKUP, "b", NULL), "granted0 q"));
    cr_expect(strstr(name(0, CHEMPI_ROOT_LOOKUP, "c", NULL), "failed3"));
}

Test(worlds, a_world_withdraws_its_own_names_only)
{
    cr_expect_eq(chempi_published_publish(&worlds.names, 1, 0, "s", "p"), 0);
    cr_expect_eq(chempi_published_unpublish(&worlds.names, 2, "s", "p"),
                 -EPERM);
    cr_expect_eq(chempi_published_publish(&worlds.names, 2, 0, "t", "q"), 0);
    chempi_published_drop_world(&worlds.names, 1);
    cr_expect_null(chempi_published_find(&worlds.names, "s"));
    cr_expect_str_eq(chempi_published_find(&worlds.names, "t"), "q");
}

Test(worlds, names_are_counted)
{
    char service[16];

    for (uint32_t i = 0; i < CHEMPI_ROOT_NAMES_MAX; i++) {
        (void)snprintf(service, sizeof(service), "%u", i);
        cr_assert(
            strstr(name(0, CHEMPI_ROOT_PUBLISH, service, "p"), "granted"));
    }
    cr_expect(strstr(name(0, CHEMPI_ROOT_PUBLISH, "more", "p"), "failed2"));
}

Test(worlds, what_is_malformed_or_not_known_is_answered)
{
    struct chempi_writer blob = {0};

    cr_expect(strstr(ask(0, CHEMPI_ROOT_PUBLISH, &blob), "failed5"));
    chempi_wire_put_str(&blob, "s");
    cr_expect(strstr(ask(0, CHEMPI_ROOT_PUBLISH, &blob), "failed5"));
    chempi_wire_put_u8(&blob, 0);
    cr_expect(strstr(ask(0, CHEMPI_ROOT_LOOKUP, &blob), "failed5"));
    chempi_wire_clear(&blob);
    cr_expect(strstr(ask(0, 99, &blob), "failed4"));
}
