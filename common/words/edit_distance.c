/* SPDX-License-Identifier: BSD-3-Clause */
/* How much two words differ; see edit_distance.h. */
#include "common/words/edit_distance.h"

#include <stdint.h>
#include <string.h>

static size_t least_of(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

size_t chempi_edit_distance(const char *a, const char *b)
{
    size_t row[CHEMPI_EDIT_DISTANCE_WORD_MAX + 1];
    const size_t la = strlen(a);
    const size_t lb = strlen(b);

    if (la > CHEMPI_EDIT_DISTANCE_WORD_MAX ||
        lb > CHEMPI_EDIT_DISTANCE_WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            const size_t above = row[j];

            row[j] = least_of(row[j] + 1, row[j - 1] + 1,
                              diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}
