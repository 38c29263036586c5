/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that others have chosen, on their way to a terminal or a log. */
#ifndef CHEMPI_COMMON_WORDS_PLAIN_H
#define CHEMPI_COMMON_WORDS_PLAIN_H

#include <stddef.h>

/*
 * Put ? for every control character in these bytes but those in `kept` ("" or
 * "\n"): those of ASCII, and those of Latin 1 as UTF-8 has them. A character
 * that two calls see half of each is no way around it.
 */
void chempi_plain(char *text, size_t len, const char *kept);

#endif
