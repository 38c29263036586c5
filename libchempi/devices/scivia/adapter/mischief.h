/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an adapter does wrong on request: decisions drawn from a seed, so that
 * a run can be repeated. Rates are in thousandths of the events they concern;
 * all 0 is a faultless adapter.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MISCHIEF_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MISCHIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_MISCHIEF_MAX 1000u

struct chempi_mischief {
    uint64_t seed;
    uint32_t reorder;       /* packets held back, to arrive behind later ones */
    uint32_t lost_packet;   /* not arrived, the error counter is raised */
    uint32_t lost_response; /* arrived, the error counter is raised */
    uint32_t late;          /* descriptors that complete late */
    uint32_t lost_interrupt;
    uint32_t broken_vi;   /* descriptors at which their connection breaks: not
                             executed, or executed and told as failed */
    uint32_t broken_link; /* descriptors and triggers at which the link does */
};

/* The generator's state; start it with chempi_mischief_start(). */
struct chempi_dice {
    uint64_t state;
};

/* Two adapters with one seed and different salts do not act alike. */
void chempi_mischief_start(struct chempi_dice *dice,
                           const struct chempi_mischief *mischief,
                           uint64_t salt);

uint32_t chempi_mischief_roll(struct chempi_dice *dice);

/* True in `rate` of a thousand cases; draws nothing when rate is 0. */
static inline bool chempi_mischief_strikes(struct chempi_dice *dice,
                                           uint32_t rate)
{
    return rate && chempi_mischief_roll(dice) % CHEMPI_MISCHIEF_MAX < rate;
}

/*
 * "seed=7,reorder=200,lost-packet=10,lost-response=10,late=100,
 * lost-interrupt=50,broken-vi=1,broken-link=1" in any order, each at most once.
 * 0; -EINVAL with words that name the item. *out is written on success only.
 */
int chempi_mischief_parse(const char *text, struct chempi_mischief *out,
                          struct chempi_err *err);

#endif
