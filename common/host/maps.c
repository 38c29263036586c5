/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapped parts of a range; see maps.h. */
#include "common/host/maps.h"

#include <errno.h>
#include <stdio.h>

#define LINE_MAX_BYTES 512

int chempi_maps_each(uintptr_t start, uintptr_t end, chempi_maps_fn *fn,
                     void *arg)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[LINE_MAX_BYTES];
    unsigned long first;
    unsigned long last;

    if (!maps)
        return -errno;
    /* The rest of a line with a long file name does not look like a line. */
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %*[r-]", &first, &last) != 2 || last <= start)
            continue;
        if (first >= end)
            break;
        first = first > start ? first : start;
        fn(arg, first, (last < end ? last : end) - first);
    }
    (void)fclose(maps); /* only read */
    return 0;
}
