/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as people write them: 65536, 64K, 64KiB, 1.5 GB. */
#ifndef CHEMPI_COMMON_WORDS_SIZE_H
#define CHEMPI_COMMON_WORDS_SIZE_H

#include <stdint.h>

/*
 * A number, at once digits, perhaps with up to seven decimals, and perhaps a
 * unit, with or without blanks before it: B, kB, MB, GB, TB (1000 of the one
 * before), KiB, MiB, GiB, TiB (1024), or K, M, G, T for these, the first letter
 * of which may be a small one. Nothing else; it does not depend on the locale.
 * 0; -EINVAL: no such number; -ENOTSUP: no such unit; -ERANGE: more than max,
 * a fraction of a byte, or more decimals. Then *out is as before.
 */
int chempi_size_parse(const char *text, uint64_t max, uint64_t *out);

/* The units in words, for messages. */
extern const char chempi_size_units[];

#endif
