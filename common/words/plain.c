/* SPDX-License-Identifier: BSD-3-Clause */
/* Text without orders to terminals; see plain.h. */
#include "common/words/plain.h"

#include <stdbool.h>
#include <string.h>

void chempi_plain(char *text, size_t len, const char *kept)
{
    unsigned char *at = (unsigned char *)text;
    unsigned char before = 0;

    for (size_t i = 0; i < len; before = at[i++]) {
        const unsigned char c = at[i];
        const bool is_c0 = c < 0x20 && !memchr(kept, c, strlen(kept));
        /* Else it is part of a longer character. */
        const bool is_c1 =
            c >= 0x80 && c < 0xa0 && (before < 0x80 || before == 0xc2);

        if (is_c1 && before == 0xc2)
            at[i - 1] = '?';
        if (is_c0 || is_c1 || c == 0x7f)
            at[i] = '?';
    }
}
