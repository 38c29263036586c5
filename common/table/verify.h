/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks that make a table's bytes trustworthy: after
 * chempi_table_verify() every count, offset, index and string that the
 * located sections hold is in bounds.
 */
#ifndef CHEMPI_COMMON_TABLE_VERIFY_H
#define CHEMPI_COMMON_TABLE_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Where the sections of an image lie; valid as long as the image. */
struct chempi_table_layout {
    uint32_t self;
    uint32_t self_class;
    uint32_t node_count;
    uint32_t network_count;
    uint32_t kind_count;
    uint32_t attachment_count;
    uint32_t class_count;
    uint32_t range_count;
    uint32_t stage_count;
    uint32_t hop_count;
    uint32_t cluster; /* string of the directory */
    uint32_t routes_strings_len;
    uint32_t dir_strings_len;
    const unsigned char *lists;
    const unsigned char *ranges;
    const unsigned char *stages;
    const unsigned char *hops;
    const char *routes_strings;
    const unsigned char *nodes;
    const unsigned char *order;
    const unsigned char *kinds;
    const unsigned char *attachments;
    const unsigned char *networks;
    const char *dir_strings;
};

/* Check header, kind, length and checksums of the part at the start of
 * `len` bytes; *part_len is its length. Errors as chempi_table_open(). */
int chempi_table_verify_part(const unsigned char *data, size_t len,
                             uint32_t kind, size_t *part_len,
                             struct chempi_err *err);

/* Check a whole image and locate its sections. */
int chempi_table_verify(const unsigned char *data, size_t len,
                        struct chempi_table_layout *out,
                        struct chempi_err *err);

#endif
