/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic counters; see traffic.h. */
#include "chempid/stats/traffic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"

#define LINE struct chempi_traffic_line

static const struct chempi_lines_key keys[] = {
    CHEMPI_LINES_NUMBER(1, LINE, from, UINT32_MAX),
    CHEMPI_LINES_NUMBER(2, LINE, to, UINT32_MAX),
    CHEMPI_LINES_TEXT(3, LINE, names[0]), CHEMPI_LINES_TEXT(4, LINE, names[1]),
    CHEMPI_LINES_TEXT(5, LINE, names[2])};

const struct chempi_lines_kind chempi_traffic_kind = {
    .word = "traffic",
    .size = sizeof(LINE),
    .keys = keys,
    .key_count = CHEMPI_ARRAY_LEN(keys),
    .amount_count = 2,
    .amounts = offsetof(LINE, messages)};

static void widen(int *width, const char *word)
{
    const int len = (int)strlen(word);

    *width = len > *width ? len : *width;
}

/* Of the line's network and device, when it is the first that names them: what
 * all lines of those say. */
static void print_total(FILE *file, const struct chempi_lines *all, size_t at)
{
    const struct chempi_traffic_line *list = all->list;
    uint64_t messages = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(list[i].names[0], list[at].names[0]) != 0 ||
            strcmp(list[i].names[1], list[at].names[1]) != 0)
            continue;
        if (i < at)
            return;
        messages += list[i].messages;
        bytes += list[i].bytes;
    }
    (void)fprintf(
        file, "total over %s (%s): %" PRIu64 " messages, %" PRIu64 " bytes\n",
        list[at].names[0], list[at].names[1], messages, bytes);
}

void chempi_traffic_print(FILE *file, const void *text, size_t len,
                          char *const *node_names, uint32_t node_count,
                          const bool *lacking)
{
    static const char *const heads[] = {"from", "to", "network", "device",
                                        "protocol"};
    struct chempi_lines all = chempi_lines_sum(&chempi_traffic_kind, text, len);
    const struct chempi_traffic_line *list = all.list;
    int width[CHEMPI_ARRAY_LEN(heads)] = {0};

    if (all.count == 0) { /* nothing can be done if it cannot be written */
        (void)fprintf(file, "no messages were counted\n");
        free(all.list);
        return;
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(heads); i++)
        widen(&width[i], heads[i]);
    for (size_t i = 0; i < all.count; i++) {
        const struct chempi_traffic_line *l = &list[i];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        widen(&width[0], node_names[l->from]);
        widen(&width[1], node_names[l->to]);
        for (int k = 0; k < 3; k++)
            widen(&width[2 + k], l->names[k]);
    }
    /* Nothing can be done about a failing standard error. */
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(heads); i++)
        (void)fprintf(file, "%-*s  ", width[i], heads[i]);
    (void)fprintf(file, "%12s  %16s\n", "messages", "bytes");
    for (size_t i = 0; i < all.count; i++) {
        const struct chempi_traffic_line *l = &list[i];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        (void)fprintf(
            file,
            "%-*s  %-*s  %-*s  %-*s  %-*s  %12" PRIu64 "  %16" PRIu64 "%s\n",
            width[0], node_names[l->from], width[1], node_names[l->to],
            width[2], l->names[0], width[3], l->names[1], width[4], l->names[2],
            l->messages, l->bytes, lacking && lacking[l->from] ? " *" : "");
    }
    for (size_t i = 0; i < all.count; i++)
        print_total(file, &all, i);
    free(all.list);
}
