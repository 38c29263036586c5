/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault injection: what is to go wrong, in words, and lots that say when,
 * drawn from a seed, so that a run can be repeated.
 */
#ifndef CHEMPI_COMMON_BASE_FAULT_H
#define CHEMPI_COMMON_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_FAULT_RATE_MAX 1000u /* rates are in thousandths */

/* A generator's state; start it with chempi_dice_start(). */
struct chempi_dice {
    uint64_t state;
};

/* Dice of one seed and different salts do not fall alike. */
void chempi_dice_start(struct chempi_dice *dice, uint64_t seed, uint64_t salt);
uint32_t chempi_dice_roll(struct chempi_dice *dice);

/* True in `rate` of a thousand cases; draws nothing when rate is 0. */
static inline bool chempi_dice_strikes(struct chempi_dice *dice, uint64_t rate)
{
    return rate && chempi_dice_roll(dice) % CHEMPI_FAULT_RATE_MAX < rate;
}

/* A number that may be given by name. */
struct chempi_fault_word {
    const char *name;
    size_t offset; /* of a uint64_t in the struct that is filled in */
    uint64_t max;
};

/*
 * "seed=7,reorder=200": words of a table of at most 32, in any order, each at
 * most once; the others stay as they are in *out. 0; -EINVAL with words that
 * name the item, and *out is then filled in up to it.
 */
int chempi_fault_parse(const char *text, const struct chempi_fault_word *words,
                       size_t count, void *out, struct chempi_err *err);

#endif
