/* SPDX-License-Identifier: BSD-3-Clause */
/* Envelopes in frames that cross between hosts: little-endian. To be included
 * with _DEFAULT_SOURCE or _GNU_SOURCE defined (endian.h). */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_ENVELOPE_H
#define CHEMPI_LIBCHEMPI_DEVICES_ENVELOPE_H

#include <endian.h>

#include "libchempi/ddi.h"

static inline struct chempi_envelope
chempi_envelope_to_wire(const struct chempi_envelope *env)
{
    return (struct chempi_envelope){
        .len = htole64(env->len),
        .context = htole32(env->context),
        .source = (int32_t)htole32((uint32_t)env->source),
        .tag = (int32_t)htole32((uint32_t)env->tag),
        .serial = htole32(env->serial),
        .credit = htole32(env->credit),
        .kind = env->kind,
        .lane = env->lane,
        .flags = htole16(env->flags),
    };
}

/* Each conversion is its own inverse. */
static inline struct chempi_envelope
chempi_envelope_to_host(const struct chempi_envelope *env)
{
    return chempi_envelope_to_wire(env);
}

#endif
