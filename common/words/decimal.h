/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with decimals as people write them: 5, 0.25. */
#ifndef CHEMPI_COMMON_WORDS_DECIMAL_H
#define CHEMPI_COMMON_WORDS_DECIMAL_H

#include <stdbool.h>

/* The number that the whole text is, from min to max: digits, perhaps with a
 * point among them or before them. No sign, blank or exponent; neither
 * hexadecimal nor "inf". False: it is none; *out is left as it was. */
bool chempi_decimal_parse(const char *text, double min, double max,
                          double *out);

#endif
