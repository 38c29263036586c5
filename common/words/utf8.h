/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters of UTF-8 (RFC 3629). */
#ifndef CHEMPI_COMMON_WORDS_UTF8_H
#define CHEMPI_COMMON_WORDS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the first character of `len` bytes, which is well-formed; 0: it is
 * not, or there is none. Zeros are characters. */
static inline size_t chempi_utf8_len(const unsigned char *text, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = len == 0         ? 0
                     : text[0] < 0x80 ? 1
                     : text[0] < 0xc0 ? 0
                     : text[0] < 0xe0 ? 2
                     : text[0] < 0xf0 ? 3
                     : text[0] < 0xf8 ? 4
                                      : 0;
    uint32_t code;

    if (n == 0 || n > len)
        return 0;
    code = n > 1 ? text[0] & (0x7fu >> n) : text[0];
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return code >= least[n] && code <= 0x10ffff &&
                   (code < 0xd800 || code > 0xdfff)
               ? n
               : 0;
}

#endif
