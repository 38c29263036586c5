/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as people write them: 65536, 64K, 64KiB, 4G. */
#ifndef CHEMPI_COMMON_WORDS_SIZE_H
#define CHEMPI_COMMON_WORDS_SIZE_H

#include <stdint.h>

/* A whole number, at once digits, perhaps with one of K, M, G and T (1024 of
 * the one before; small letters, too), perhaps "iB" behind that, and nothing
 * else. 0; -EINVAL: it is none; -ERANGE: it is more than max. Then *out is as
 * before. */
int chempi_size_parse(const char *text, uint64_t max, uint64_t *out);

#endif
