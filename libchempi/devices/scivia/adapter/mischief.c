/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults from a seed; see mischief.h. */
#include "libchempi/devices/scivia/adapter/mischief.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"

void chempi_mischief_start(struct chempi_dice *dice,
                           const struct chempi_mischief *mischief,
                           uint64_t salt)
{
    dice->state = mischief->seed * UINT64_C(0x9e3779b97f4a7c15) + salt;
    if (dice->state == 0)
        dice->state = 1;
    for (int i = 0; i < 4; i++)
        (void)chempi_mischief_roll(dice);
}

/* xorshift64*, the upper half. */
uint32_t chempi_mischief_roll(struct chempi_dice *dice)
{
    uint64_t x = dice->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    dice->state = x;
    return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

struct item {
    const char *name;
    size_t offset;
};

static const struct item items[] = {
    {"reorder", offsetof(struct chempi_mischief, reorder)},
    {"lost-packet", offsetof(struct chempi_mischief, lost_packet)},
    {"lost-response", offsetof(struct chempi_mischief, lost_response)},
    {"late", offsetof(struct chempi_mischief, late)},
    {"lost-interrupt", offsetof(struct chempi_mischief, lost_interrupt)},
    {"broken-vi", offsetof(struct chempi_mischief, broken_vi)},
    {"broken-link", offsetof(struct chempi_mischief, broken_link)},
};

/* One "name=number" of len bytes. */
static int take_item(const char *text, size_t len, struct chempi_mischief *m,
                     uint32_t *seen, struct chempi_err *err)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : len;
    unsigned long long value;
    char *end;

    if (!equals || equals[1] < '0' || equals[1] > '9')
        return chempi_err_set(err, -EINVAL,
                              "mischief \"%.*s\": expected name=number",
                              (int)len, text);
    errno = 0;
    value = strtoull(equals + 1, &end, 10);
    if (errno || end != text + len)
        return chempi_err_set(err, -EINVAL, "mischief \"%.*s\": not a number",
                              (int)len, text);
    if (name_len == 4 && memcmp(text, "seed", 4) == 0) {
        m->seed = value;
        return 0;
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(items); i++) {
        if (strlen(items[i].name) != name_len ||
            memcmp(text, items[i].name, name_len) != 0)
            continue;
        if (value > CHEMPI_MISCHIEF_MAX || (*seen & 1u << i))
            return chempi_err_set(err, -EINVAL,
                                  "mischief \"%.*s\": expected once, and at "
                                  "most %u (thousandths)",
                                  (int)len, text, CHEMPI_MISCHIEF_MAX);
        *seen |= 1u << i;
        *(uint32_t *)(void *)((char *)m + items[i].offset) = (uint32_t)value;
        return 0;
    }
    return chempi_err_set(err, -EINVAL,
                          "mischief \"%.*s\": expected seed, reorder, "
                          "lost-packet, lost-response, late, "
                          "lost-interrupt, broken-vi or broken-link",
                          (int)len, text);
}

int chempi_mischief_parse(const char *text, struct chempi_mischief *out,
                          struct chempi_err *err)
{
    struct chempi_mischief m = {.seed = 1};
    uint32_t seen = 0;

    while (*text) {
        size_t len = strcspn(text, ",");
        int rc = take_item(text, len, &m, &seen, err);

        if (rc < 0)
            return rc;
        text += len + (text[len] == ',');
    }
    *out = m;
    return 0;
}
