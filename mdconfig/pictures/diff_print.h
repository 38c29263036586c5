/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two descriptions, in words or as JSON: each function
 * prints one and counts it. */
#ifndef CHEMPI_MDCONFIG_DIFF_PRINT_H
#define CHEMPI_MDCONFIG_DIFF_PRINT_H

#include <stdio.h>

#include "common/words/json.h"
#include "mdconfig/routes/route.h"

#define CHEMPI_DIFF_WAY_MAX 512 /* bytes of a way in words */

struct chempi_diff {
    const struct chempi_graph *a; /* before */
    const struct chempi_graph *b; /* after */
    FILE *out;
    struct chempi_json *json; /* NULL: words */
    size_t found;
};

enum chempi_diff_unit {
    CHEMPI_DIFF_WORD,
    CHEMPI_DIFF_US,
    CHEMPI_DIFF_BYTES_PER_US,
    CHEMPI_DIFF_BYTES
};

/* Of a protocol of a network, or, with neither, of forwarding. */
struct chempi_diff_figure {
    const char *network;
    const char *protocol;
    const char *name;
    enum chempi_diff_unit unit;
};

/* By the figure's unit. */
union chempi_diff_value {
    double x;
    uint64_t len;
    const char *word;
};

/* Nodes that are alike before and after. */
struct chempi_diff_group {
    uint32_t class_a;
    uint32_t class_b;
    const char **names;
    size_t count;
    size_t room;
};

/* Whose ways are compared; those inside nodes `from` where `to` is NULL. */
struct chempi_diff_ends {
    const struct chempi_diff_group *from;
    const struct chempi_diff_group *to;
    bool is_told;
};

/* Sizes from `from_len` on with the same two ways, which are NULL where there
 * is none. */
struct chempi_diff_stretch {
    uint64_t from_len;
    const struct chempi_route *x;
    const struct chempi_route *y;
    char before[CHEMPI_DIFF_WAY_MAX];
    char after[CHEMPI_DIFF_WAY_MAX];
};

/* word: "without", "with" or "changed". */
void chempi_diff_print_nodes(struct chempi_diff *d, const char *word,
                             const char *const *names, size_t count);
void chempi_diff_print_network(struct chempi_diff *d, const char *word,
                               const struct chempi_desc_network *n);
void chempi_diff_print_type(struct chempi_diff *d,
                            const struct chempi_desc_network *a,
                            const struct chempi_desc_network *b);
void chempi_diff_print_figure(struct chempi_diff *d,
                              const struct chempi_diff_figure *f,
                              union chempi_diff_value before,
                              union chempi_diff_value after);
/* Up to the size `to_len`, UINT64_MAX: any. */
void chempi_diff_print_stretch(struct chempi_diff *d,
                               const struct chempi_diff_stretch *s,
                               uint64_t to_len, struct chempi_diff_ends *e);

#endif
