/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an adapter does wrong on request, drawn from a seed. Rates are in
 * thousandths of the events they concern; all 0 is a faultless adapter.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_FAULTS_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MODEL_FAULTS_H

#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_FAULTS_RATE_MAX 1000u

struct chempi_faults {
    uint64_t seed;
    uint64_t reorder;       /* packets held back, to arrive behind later ones */
    uint64_t lost_packet;   /* not arrived, the error counter is raised */
    uint64_t lost_response; /* arrived, the error counter is raised */
    uint64_t late;          /* descriptors that complete late */
    uint64_t lost_interrupt;
    uint64_t broken_vi;   /* descriptors at which their connection breaks: not
                             executed, or executed and told as failed */
    uint64_t broken_link; /* descriptors and triggers at which the link does */
};

/*
 * "seed=7,reorder=200,lost-packet=10,lost-response=10,late=100,
 * lost-interrupt=50,broken-vi=1,broken-link=1" in any order, each at most once.
 * 0; -EINVAL with words that name the item. *out is written on success only.
 */
int chempi_faults_parse(const char *text, struct chempi_faults *out,
                        struct chempi_err *err);

/* -EINVAL with words: a rate is above the limit. */
int chempi_faults_check(const struct chempi_faults *faults,
                        struct chempi_err *err);

#endif
