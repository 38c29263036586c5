/* SPDX-License-Identifier: BSD-3-Clause */
/* A PNG writer; see png.h. */
#include "png.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#define ADLER_BASE 65521u

struct writer {
    FILE *file;
    uint32_t crc;   /* of the chunk that is being written, inverted */
    uint32_t adler; /* of the data before compression: two 16-bit sums */
};

static uint32_t crc_step(uint32_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
        crc = crc & 1 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
    return crc;
}

static void put(struct writer *w, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        w->crc = crc_step(w->crc, data[i]);
    /* An error stays with the stream; png_write() asks for it. */
    (void)fwrite(data, 1, len, w->file);
}

static void put_u32(struct writer *w, uint32_t v)
{
    const uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16),
                              (uint8_t)(v >> 8), (uint8_t)v};

    put(w, bytes, sizeof(bytes));
}

static void begin_chunk(struct writer *w, uint32_t len, const char *type)
{
    put_u32(w, len);
    w->crc = UINT32_MAX;
    put(w, (const uint8_t *)type, 4);
}

static void end_chunk(struct writer *w)
{
    put_u32(w, ~w->crc);
}

/* Data of the picture, counted for the checksum of the whole. */
static void put_data(struct writer *w, const uint8_t *data, size_t len)
{
    uint32_t a = w->adler & 0xffff;
    uint32_t b = w->adler >> 16;

    for (size_t i = 0; i < len; i++) {
        a = (a + data[i]) % ADLER_BASE;
        b = (b + a) % ADLER_BASE;
    }
    w->adler = b << 16 | a;
    put(w, data, len);
}

static void put_header(struct writer *w, uint32_t width, uint32_t height,
                       const struct png_palette *palette)
{
    static const uint8_t signature[] = {0x89, 'P',  'N',  'G',
                                        '\r', '\n', 0x1a, '\n'};
    /* 8 bits, palette, deflate, filters by row, not interlaced */
    static const uint8_t format[] = {8, 3, 0, 0, 0};

    put(w, signature, sizeof(signature));
    begin_chunk(w, 13, "IHDR");
    put_u32(w, width);
    put_u32(w, height);
    put(w, format, sizeof(format));
    end_chunk(w);
    begin_chunk(w, sizeof(palette->rgb), "PLTE");
    put(w, palette->rgb[0], sizeof(palette->rgb));
    end_chunk(w);
}

/* Each row is a chunk and a stored block of its own, so that nothing has to be
 * counted in advance. */
static void put_row(struct writer *w, const uint8_t *row, uint32_t width,
                    bool is_first, bool is_last)
{
    static const uint8_t zlib_head[2] = {0x78, 0x01};
    static const uint8_t no_filter = 0;
    const uint32_t len = width + 1;
    const uint8_t head[5] = {is_last, (uint8_t)len, (uint8_t)(len >> 8),
                             (uint8_t)~len, (uint8_t)(~len >> 8)};

    begin_chunk(w, (is_first ? 2u : 0u) + 5u + len + (is_last ? 4u : 0u),
                "IDAT");
    if (is_first)
        put(w, zlib_head, sizeof(zlib_head));
    put(w, head, sizeof(head));
    put_data(w, &no_filter, 1);
    put_data(w, row, width);
    if (is_last)
        put_u32(w, w->adler);
    end_chunk(w);
}

int png_write(const char *path, uint32_t width, uint32_t height,
              const uint8_t *points, const struct png_palette *palette)
{
    struct writer w = {.adler = 1};
    bool is_bad;

    if (width == 0 || height == 0 || width > PNG_SIDE_MAX ||
        height > PNG_SIDE_MAX)
        return EINVAL;
    w.file = fopen(path, "wb");
    if (!w.file)
        return errno;
    put_header(&w, width, height, palette);
    for (uint32_t y = 0; y < height; y++)
        put_row(&w, points + (size_t)y * width, width, y == 0, y == height - 1);
    begin_chunk(&w, 0, "IEND");
    end_chunk(&w);
    is_bad = ferror(w.file) != 0;
    if (fclose(w.file) != 0 || is_bad) {
        (void)remove(path); /* the error below says more */
        return EIO;
    }
    return 0;
}
