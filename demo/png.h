/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest useful PNG writer: 8-bit palette pictures, not compressed
 * (PNG's deflate allows stored blocks). ISO 15948, RFC 1950, RFC 1951.
 */
#ifndef CHEMPI_DEMO_PNG_H
#define CHEMPI_DEMO_PNG_H

#include <stddef.h>
#include <stdint.h>

#define PNG_SIDE_MAX 65534 /* points; a row must fit into one stored block */

struct png_palette {
    uint8_t rgb[256][3];
};

/* Write width x height points, a byte each, row by row from the top. Returns 0
 * or an errno; an incomplete file is removed. */
int png_write(const char *path, uint32_t width, uint32_t height,
              const uint8_t *points, const struct png_palette *palette);

#endif
