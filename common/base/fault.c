/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults from a seed; see fault.h. */
#include "common/base/fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/number.h"

void chempi_dice_start(struct chempi_dice *dice, uint64_t seed, uint64_t salt)
{
    dice->state = seed * UINT64_C(0x9e3779b97f4a7c15) + salt;
    if (dice->state == 0)
        dice->state = 1;
    for (int i = 0; i < 4; i++)
        (void)chempi_dice_roll(dice);
}

/* xorshift64*, the upper half. */
uint32_t chempi_dice_roll(struct chempi_dice *dice)
{
    uint64_t x = dice->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    dice->state = x;
    return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

static int unknown(const char *text, size_t len,
                   const struct chempi_fault_word *words, size_t count,
                   struct chempi_err *err)
{
    char names[CHEMPI_ERR_TEXT_MAX] = "";
    size_t at = 0;

    for (size_t i = 0; i < count && at < sizeof(names); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, " %s",
                               words[i].name);
    return chempi_err_set(err, -EINVAL,
                          "fault '%.*s': expected name=number, of%s", (int)len,
                          text, names);
}

/* One "name=number" of len bytes. */
static int take_item(const char *text, size_t len,
                     const struct chempi_fault_word *words, size_t count,
                     void *out, uint32_t *seen, struct chempi_err *err)
{
    const size_t name_len = strcspn(text, "=");
    const char *at = text + name_len + 1;
    uint64_t value;
    size_t i = 0;

    while (i < count && (strlen(words[i].name) != name_len ||
                         memcmp(text, words[i].name, name_len) != 0))
        i++;
    if (i == count || name_len >= len)
        return unknown(text, len, words, count, err);
    if (*seen & 1u << i || !chempi_number_scan(&at, words[i].max, &value) ||
        at != text + len)
        return chempi_err_set(
            err, -EINVAL,
            "fault '%.*s': expected once, and a number of at most "
            "%llu",
            (int)len, text, (unsigned long long)words[i].max);
    *seen |= 1u << i;
    memcpy((char *)out + words[i].offset, &value, sizeof(value));
    return 0;
}

int chempi_fault_parse(const char *text, const struct chempi_fault_word *words,
                       size_t count, void *out, struct chempi_err *err)
{
    uint32_t seen = 0;

    while (*text) {
        const size_t len = strcspn(text, ",");
        const int rc = take_item(text, len, words, count, out, &seen, err);

        if (rc)
            return rc;
        text += len + (text[len] == ',');
    }
    return 0;
}
