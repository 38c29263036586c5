/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the root and its answers, as bytes; see dynamic.h. */
#define _GNU_SOURCE /* strnlen */
#include "common/control/dynamic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/msg.h"

/* ---- a world that shall be started --------------------------------------- */

static bool is_word(const char *word)
{
    return strlen(word) < CHEMPI_SPAWN_WORD_MAX;
}

static bool is_app(const struct chempi_spawn_app *app)
{
    bool is_good = app->argc >= 1 && app->argc <= CHEMPI_SPAWN_WORDS_MAX &&
                   app->key_count <= CHEMPI_SPAWN_KEYS_MAX &&
                   app->maxprocs >= 1 &&
                   app->maxprocs <= CHEMPI_JOB_RANKS_MAX && *app->argv[0];

    for (uint32_t i = 0; is_good && i < app->argc; i++)
        is_good = is_word(app->argv[i]);
    for (uint32_t i = 0; is_good && i < app->key_count; i++)
        is_good = is_word(app->keys[i].key) && is_word(app->keys[i].value);
    return is_good;
}

static void write_app(const struct chempi_spawn_app *app,
                      struct chempi_writer *w)
{
    chempi_wire_put_u32(w, app->argc);
    for (uint32_t i = 0; i < app->argc; i++)
        chempi_wire_put_str(w, app->argv[i]);
    chempi_wire_put_u32(w, app->maxprocs);
    chempi_wire_put_u32(w, app->key_count);
    for (uint32_t i = 0; i < app->key_count; i++) {
        chempi_wire_put_str(w, app->keys[i].key);
        chempi_wire_put_str(w, app->keys[i].value);
    }
}

void chempi_spawn_write(const struct chempi_spawn *spawn,
                        struct chempi_writer *w)
{
    const size_t before = w->len;
    uint64_t words = 0;
    bool is_good = spawn->app_count >= 1 &&
                   spawn->app_count <= CHEMPI_SPAWN_APPS_MAX && *spawn->port &&
                   strlen(spawn->port) < CHEMPI_PORT_NAME_MAX;

    chempi_wire_put_str(w, spawn->port);
    chempi_wire_put_u32(w, spawn->app_count);
    for (uint32_t i = 0; is_good && i < spawn->app_count; i++) {
        words += spawn->apps[i].argc;
        is_good = is_app(&spawn->apps[i]) && words <= CHEMPI_SPAWN_WORDS_MAX;
        if (is_good)
            write_app(&spawn->apps[i], w);
    }
    if (!w->error && (!is_good || w->len - before > CHEMPI_ROOT_BYTES_MAX))
        w->error = -EMSGSIZE;
}

/* What one look at the bytes has counted, and where the second look puts it. */
struct sums {
    uint32_t apps;
    uint32_t words;
    uint32_t keys;
};

struct room {
    struct chempi_spawn spawn;
    struct chempi_spawn_app *apps;
    const char **words;
    struct chempi_spawn_key *keys;
};

static const char *get_word(struct chempi_reader *r)
{
    return chempi_wire_get_str(r, CHEMPI_SPAWN_WORD_MAX);
}

/* With or without room for it: the same bytes say the same twice. */
static void read_app(struct chempi_reader *r, struct sums *sums,
                     struct room *room)
{
    const uint32_t argc = chempi_wire_get_count(r, CHEMPI_SPAWN_WORDS_MAX, 5);
    struct chempi_spawn_app app = {.argc = argc};

    if (room)
        app.argv = room->words + sums->words;
    for (uint32_t i = 0; i < argc; i++) {
        const char *word = get_word(r);

        r->is_bad |= i == 0 && !*word;
        if (room)
            room->words[sums->words + i] = word;
    }
    sums->words += argc;
    app.maxprocs = chempi_wire_get_u32(r);
    app.key_count = chempi_wire_get_count(r, CHEMPI_SPAWN_KEYS_MAX, 10);
    if (room)
        app.keys = room->keys + sums->keys;
    for (uint32_t i = 0; i < app.key_count; i++) {
        const char *key = get_word(r);
        const char *value = get_word(r);

        if (room)
            room->keys[sums->keys + i] =
                (struct chempi_spawn_key){.key = key, .value = value};
    }
    sums->keys += app.key_count;
    if (argc == 0 || sums->words > CHEMPI_SPAWN_WORDS_MAX ||
        app.maxprocs == 0 || app.maxprocs > CHEMPI_JOB_RANKS_MAX)
        r->is_bad = true;
    if (room)
        room->apps[sums->apps] = app;
    sums->apps++;
}

static struct sums read_all(const void *bytes, size_t len, struct room *room,
                            struct chempi_reader *r)
{
    struct sums sums = {0};
    const char *port;
    uint32_t apps;

    chempi_wire_read(r, bytes, len);
    port = chempi_wire_get_str(r, CHEMPI_PORT_NAME_MAX);
    apps = chempi_wire_get_count(r, CHEMPI_SPAWN_APPS_MAX, 17);
    r->is_bad |= apps == 0 || !*port;
    for (uint32_t i = 0; i < apps && !r->is_bad; i++)
        read_app(r, &sums, room);
    if (room)
        room->spawn = (struct chempi_spawn){
            .port = port, .apps = room->apps, .app_count = apps};
    return sums;
}

int chempi_spawn_read(const void *blob, size_t len, struct chempi_spawn **out)
{
    struct chempi_reader r;
    struct sums sums;
    struct room *room;
    size_t size;
    uint8_t *bytes;

    if (len > CHEMPI_ROOT_BYTES_MAX)
        return -EBADMSG;
    sums = read_all(blob, len, NULL, &r);
    if (!chempi_wire_is_done(&r))
        return -EBADMSG;
    size = sizeof(*room) + sums.apps * sizeof(*room->apps) +
           sums.words * sizeof(*room->words) + sums.keys * sizeof(*room->keys);
    room = chempi_sys->malloc(size + len);
    if (!room)
        return -ENOMEM;
    room->apps = (void *)(room + 1);
    room->keys = (void *)(room->apps + sums.apps);
    room->words = (void *)(room->keys + sums.keys);
    bytes = (uint8_t *)(room->words + sums.words);
    memcpy(bytes, blob, len);
    (void)read_all(bytes, len, room, &r);
    *out = &room->spawn; /* its first member */
    return 0;
}

/* ---- answers ------------------------------------------------------------- */

void chempi_reply_write(const struct chempi_reply *reply,
                        struct chempi_writer *w)
{
    char text[CHEMPI_PORT_NAME_MAX];
    const char *from = reply->text ? reply->text : "";
    const size_t len = strnlen(from, sizeof(text) - 1);

    memcpy(text, from, len);
    text[len] = '\0';
    chempi_wire_put_u32(w, reply->serial);
    chempi_wire_put_u8(w, (uint8_t)reply->state);
    chempi_wire_put_u32(w, (uint32_t)reply->error);
    chempi_wire_put_u32(w, reply->count);
    chempi_wire_put_u32(w, reply->app);
    chempi_wire_put_str(w, text);
}

int chempi_reply_read(struct chempi_reader *r, struct chempi_reply *out)
{
    const uint32_t serial = chempi_wire_get_u32(r);
    const uint8_t state = chempi_wire_get_u8(r);
    const uint32_t error = chempi_wire_get_u32(r);
    const uint32_t count = chempi_wire_get_u32(r);
    const uint32_t app = chempi_wire_get_u32(r);
    const char *text = chempi_wire_get_str(r, CHEMPI_PORT_NAME_MAX);

    if (!chempi_wire_is_done(r) || state < CHEMPI_REPLY_FAILED ||
        state > CHEMPI_REPLY_OVER || error > CHEMPI_REPLY_MEMORY ||
        (state == CHEMPI_REPLY_FAILED) != (error != CHEMPI_REPLY_NONE))
        return -EBADMSG;
    *out = (struct chempi_reply){.serial = serial,
                                 .state = (enum chempi_reply_state)state,
                                 .error = (enum chempi_reply_error)error,
                                 .count = count,
                                 .app = app,
                                 .text = text};
    return 0;
}
