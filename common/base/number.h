/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole numbers in text: decimal digits at once, no sign, no blank. */
#ifndef CHEMPI_COMMON_BASE_NUMBER_H
#define CHEMPI_COMMON_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* The number at *at, not above max; *at is then behind it. False: there is
 * none, or it is above; nothing is changed. */
bool chempi_number_scan(const char **at, uint64_t max, uint64_t *out);
bool chempi_number_scan32(const char **at, uint32_t max, uint32_t *out);
/* The same for "4" or "4-7", the second not below the first. */
bool chempi_number_scan_range(const char **at, uint32_t max, uint32_t *first,
                              uint32_t *last);

/* The number that the whole text is, from min to max. False: it is none; *out
 * is left as it was. */
bool chempi_number_parse(const char *text, uint64_t min, uint64_t max,
                         uint64_t *out);
bool chempi_number_parse32(const char *text, uint32_t min, uint32_t max,
                           uint32_t *out);

#endif
