/* SPDX-License-Identifier: BSD-3-Clause */
/* How a room of didl that counts names what it counts. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COUNTER_WORDS_H
#define CHEMPI_LIBCHEMPI_DIDL_COUNTER_WORDS_H

#include <stdbool.h>

struct chempi_counter_words {
    const char *name;
    const char *text; /* a sentence, with the unit */
    bool is_basic;
};

#endif
