/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is of a side, and the secret of a bond on its way; see roll.h. */
#include "libchempi/didl/proc/roll.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/index.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/progress/progress.h"

#define MAGIC UINT32_C(0x4d454532) /* "MEE2": version 2 */

enum { WHILE = 64 }; /* signatures that are checked in one go */

/* The bond's secret, for a world. */
struct box {
    uint64_t world[2];
    uint8_t sealed[CHEMPI_VOUCH_BOX_BYTES];
};

_Static_assert(sizeof(struct chempi_roll) %
                       _Alignof(struct chempi_introduction) ==
                   0,
               "introductions follow it");
_Static_assert(sizeof(struct chempi_introduction) % _Alignof(struct box) == 0,
               "boxes follow them");

static int no_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM,
                          "no memory for a meeting of "
                          "processes");
}

static uint32_t with_own(uint32_t most)
{
    return most + chempi_ctx.services.rank_count;
}

size_t chempi_roll_len(uint32_t count)
{
    return sizeof(struct chempi_roll) +
           (size_t)count * sizeof(struct chempi_introduction);
}

size_t chempi_roll_len_max(uint32_t most)
{
    return chempi_roll_len(with_own(most));
}

/* ---- settings ---- */

/* The next one from *i on that chooses the way of a collective operation:
 * members that chose different ways would wait for each other for ever. NULL:
 * there is none. */
static const struct chempi_setting *next_of_coll(uint32_t *i)
{
    const struct chempi_settings all = chempi_setting_table();

    for (; *i < all.count; (*i)++)
        if (strcmp(all.table[*i].module, "coll") == 0 &&
            all.table[*i].scope == CHEMPI_SETTING_ALL)
            return &all.table[*i];
    return NULL;
}

/* What stands for their names, which other builds have others of, and their
 * values; returns how many. */
static uint32_t get_settings(uint64_t values[CHEMPI_REGION_WORDS])
{
    const struct chempi_setting *setting;
    uint32_t count = 1;
    uint32_t hash = 0;

    for (uint32_t i = 0; (setting = next_of_coll(&i)); i++) {
        hash = chempi_index_hash_text(hash, setting->name);
        if (count < CHEMPI_REGION_WORDS)
            values[count++] = chempi_setting((enum chempi_setting_id)i);
    }
    values[0] = hash;
    return count;
}

int chempi_roll_compare(const struct chempi_roll *roll, struct chempi_err *err)
{
    uint64_t mine[CHEMPI_REGION_WORDS];
    const uint32_t count = get_settings(mine);
    char name[CHEMPI_SETTING_NAME_MAX];
    uint32_t i = 0;

    if (roll->setting_count != count || roll->settings[0] != mine[0])
        return chempi_err_set(err, -EPROTO,
                              "the libraries of the two sides have different "
                              "settings; both need the same one");
    for (uint32_t word = 1; word < count; word++, i++) {
        const struct chempi_setting *setting = next_of_coll(&i);

        if (roll->settings[word] == mine[word] || !setting)
            continue;
        chempi_setting_variable(setting, name);
        return chempi_err_set(err, -EPROTO,
                              "setting %s is %" PRIu64 " here and %" PRIu64
                              " at the other side; it must be the same in jobs "
                              "that meet",
                              name, mine[word], roll->settings[word]);
    }
    return 0;
}

/* ---- the own side's ---- */

struct chempi_roll *chempi_roll_make(const struct chempi_introduction *members,
                                     uint32_t count, uint32_t root,
                                     uint32_t context)
{
    struct chempi_roll *roll = chempi_sys->calloc(1, chempi_roll_len(count));

    if (!roll)
        return NULL;
    roll->magic = MAGIC;
    roll->context = context;
    roll->count = count;
    roll->root = root;
    roll->setting_count = get_settings(roll->settings);
    randombytes_buf(roll->secret, sizeof(roll->secret));
    memcpy(roll + 1, members, count * sizeof(*members));
    return roll;
}

/* ---- what a stranger says ---- */

int chempi_roll_check(const struct chempi_roll *roll, size_t len,
                      bool has_boxes, struct chempi_err *err)
{
    size_t rest = SIZE_MAX;

    if (len >= sizeof(*roll) && roll->magic == MAGIC && roll->zero == 0 &&
        roll->count <= with_own(CHEMPI_FOREIGN_MAX) &&
        roll->root < roll->count && chempi_context_is_others(roll->context) &&
        roll->setting_count <= CHEMPI_REGION_WORDS &&
        len >= chempi_roll_len(roll->count))
        rest = len - chempi_roll_len(roll->count);
    if (has_boxes ? rest % sizeof(struct box) == 0 : rest == 0)
        return 0;
    return chempi_err_set(
        err, -EPROTO,
        "what the other side tells of itself is malformed, or "
        "of another version (%zu bytes)",
        len);
}

int chempi_roll_verify(const struct chempi_introduction *members,
                       struct chempi_vouch_use use, struct chempi_err *err)
{
    for (; use.number < use.count; use.number++) {
        if (use.number % WHILE == WHILE - 1)
            (void)chempi_progress_poll(); /* others wait for this process */
        if (!chempi_vouch_check(&members[use.number], &use))
            return chempi_err_set(err, -EPROTO,
                                  "member %" PRIu32 " of %" PRIu32 " is not "
                                  "the process that it claims to be",
                                  use.number, use.count);
    }
    return 0;
}

/* ---- the secret ---- */

/* Both sides have a part in it: neither can choose one that is known. */
static void make_secret(const struct chempi_vouch_use *use,
                        const uint8_t *first, const uint8_t *second,
                        uint8_t out[CHEMPI_BOND_SECRET_BYTES])
{
    crypto_generichash_state hash;

    (void)crypto_generichash_init(&hash, use->meeting, sizeof(use->meeting),
                                  CHEMPI_BOND_SECRET_BYTES);
    (void)crypto_generichash_update(&hash, first, CHEMPI_BOND_SECRET_BYTES);
    (void)crypto_generichash_update(&hash, second, CHEMPI_BOND_SECRET_BYTES);
    (void)crypto_generichash_final(&hash, out, CHEMPI_BOND_SECRET_BYTES);
    sodium_memzero(&hash, sizeof(hash));
}

/* There is room for as many as members. */
static int fill_boxes(const struct chempi_introduction *own, uint32_t size,
                      const uint8_t *secret, struct box *boxes, uint32_t *count,
                      struct chempi_err *err)
{
    *count = 0;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t b = 0;

        while (b < *count &&
               !chempi_foreign_is_world(boxes[b].world, own[i].name.world))
            b++;
        if (b < *count)
            continue;
        memcpy(boxes[b].world, own[i].name.world, sizeof(boxes[b].world));
        if (!chempi_vouch_seal(own[i].key, secret, boxes[b].sealed))
            return chempi_err_set(err, -EPROTO,
                                  "member %" PRIu32 " of this side has no key "
                                  "of a world",
                                  i);
        *count = b + 1;
    }
    return 0;
}

int chempi_roll_add_boxes(struct chempi_roll **roll, size_t *len,
                          const struct chempi_roll *mine,
                          const struct chempi_introduction *own,
                          const struct chempi_vouch_use *use,
                          struct chempi_err *err)
{
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES];
    struct chempi_roll *all = *roll;
    uint32_t count = 0;
    int rc;

    make_secret(use, use->is_first ? mine->secret : all->secret,
                use->is_first ? all->secret : mine->secret, secret);
    sodium_memzero(all->secret, sizeof(all->secret)); /* before it may move */
    all = chempi_sys->realloc(all, *len + use->count * sizeof(struct box));
    if (all)
        *roll = all;
    rc = all ? fill_boxes(own, use->count, secret,
                          (struct box *)(void *)((char *)all + *len), &count,
                          err)
             : no_memory(err);
    sodium_memzero(secret, sizeof(secret));
    *len += count * sizeof(struct box);
    return rc;
}

int chempi_roll_open(const struct chempi_roll *roll, size_t len,
                     uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                     struct chempi_err *err)
{
    const size_t at = chempi_roll_len(roll->count);
    const struct box *box =
        (const struct box *)(const void *)((const char *)roll + at);
    uint64_t world[2];

    chempi_vouch_name(world);
    for (size_t i = 0; i < (len - at) / sizeof(*box); i++)
        if (chempi_foreign_is_world(box[i].world, world) &&
            chempi_vouch_open(box[i].sealed, secret))
            return 0;
    return chempi_err_set(err, -EPROTO,
                          "the secret of a meeting is missing, or damaged");
}
