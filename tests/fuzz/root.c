/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks ask of the root: questions one after the other, each a rank, what
 * it asks (a byte) and a blob. Each has one answer at most; of what can be
 * started the bytes that it is written as again say the same.
 */
#include <stdlib.h>
#include <string.h>

#include "chempid/worlds/worlds.h"
#include "tests/fuzz/target.h"

#define HOLDS(x) (void)((x) ? 0 : (abort(), 0))

static unsigned answers;

static void reply(void *arg, uint32_t node, uint32_t rank,
                  const struct chempi_reply *reply)
{
    struct chempi_writer w = {.data = NULL};
    struct chempi_reader r;
    struct chempi_reply again;

    (void)arg;
    HOLDS(node == 5 && rank < 8 && reply->serial == 1);
    chempi_reply_write(reply, &w);
    chempi_wire_read(&r, w.data, w.len);
    HOLDS(chempi_reply_read(&r, &again) == 0);
    chempi_wire_clear(&w);
    answers++;
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

static void start(const uint8_t *blob, size_t len)
{
    struct chempi_writer w = {.data = NULL};
    struct chempi_spawn *spawn;

    if (chempi_spawn_read(blob, len, &spawn))
        return;
    chempi_spawn_write(spawn, &w);
    HOLDS(w.error == 0 && w.len == len && memcmp(w.data, blob, len) == 0);
    chempi_wire_clear(&w);
    free(spawn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_worlds worlds;
    struct chempi_reader in;

    chempi_worlds_init(&worlds, &ops, NULL);
    chempi_wire_read(&in, data, size);
    while (!in.is_bad && in.next < in.end) {
        const uint8_t rank = chempi_wire_get_u8(&in);
        const uint8_t what = chempi_wire_get_u8(&in);
        size_t len;
        const uint8_t *blob = chempi_wire_get_blob(&in, FUZZ_INPUT_MAX, &len);
        struct chempi_writer w = {.data = NULL};
        struct chempi_reader r;

        chempi_wire_put_u32(&w, 1);
        chempi_wire_put_u8(&w, what);
        chempi_wire_put_blob(&w, blob, len);
        chempi_wire_read(&r, w.data, w.len);
        answers = 0;
        if (what == CHEMPI_ROOT_SPAWN)
            start(blob, len);
        chempi_worlds_take(&worlds, 5, rank % 8, &r);
        HOLDS(answers == (what != CHEMPI_ROOT_ENDED)); /* W1, W2 */
        chempi_wire_clear(&w);
    }
    chempi_worlds_fini(&worlds);
    return 0;
}

static void put(struct chempi_writer *w, uint8_t rank, uint8_t what,
                struct chempi_writer *blob)
{
    chempi_wire_put_u8(w, rank);
    chempi_wire_put_u8(w, what);
    chempi_wire_put_blob(w, blob->data, blob->len);
    chempi_wire_clear(blob);
}

static void names(struct chempi_writer *w)
{
    static const uint8_t whats[] = {CHEMPI_ROOT_PUBLISH, CHEMPI_ROOT_LOOKUP,
                                    CHEMPI_ROOT_PUBLISH, CHEMPI_ROOT_UNPUBLISH,
                                    CHEMPI_ROOT_PUBLISH, CHEMPI_ROOT_ENDED};
    struct chempi_writer blob = {.data = NULL};

    for (uint8_t i = 0; i < sizeof(whats); i++) {
        if (whats[i] != CHEMPI_ROOT_ENDED)
            chempi_wire_put_str(&blob, "service");
        if (whats[i] == CHEMPI_ROOT_PUBLISH ||
            whats[i] == CHEMPI_ROOT_UNPUBLISH)
            chempi_wire_put_str(&blob, "port");
        put(w, i / 4, whats[i], &blob);
    }
}

static void worlds(struct chempi_writer *w)
{
    static const char *const argv[] = {"prog", "-x", "1"};
    static const struct chempi_spawn_key keys[] = {{"wdir", "/"},
                                                   {"host", "a,b"}};
    const struct chempi_spawn_app apps[] = {
        {.argv = argv, .argc = 3, .maxprocs = 2, .keys = keys, .key_count = 2},
        {.argv = argv, .argc = 1, .maxprocs = 1}};
    const struct chempi_spawn spawn = {
        .port = "port", .apps = apps, .app_count = 2};
    struct chempi_writer blob = {.data = NULL};

    chempi_spawn_write(&spawn, &blob);
    put(w, 3, CHEMPI_ROOT_SPAWN, &blob);
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_writer w = {.data = NULL};
    size_t len;

    if (i >= 2)
        return 0;
    if (i == 0)
        names(&w);
    else
        worlds(&w);
    len = w.error || w.len > FUZZ_INPUT_MAX ? 0 : w.len;
    if (len)
        memcpy(out, w.data, len);
    chempi_wire_clear(&w);
    return len;
}
