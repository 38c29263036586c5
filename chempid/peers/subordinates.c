/* SPDX-License-Identifier: BSD-3-Clause */
/* Subordinate users; see subordinates.h. */
#define _GNU_SOURCE /* st_mtim */
#include "chempid/peers/subordinates.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/containers/array.h"

typedef struct chempi_subordinates_range range;

void chempi_subordinates_init(struct chempi_subordinates *s, const char *path)
{
    *s = (struct chempi_subordinates){.path = path};
}

void chempi_subordinates_fini(struct chempi_subordinates *s)
{
    free(s->list);
    chempi_subordinates_init(s, s->path);
}

/* "OWNER:FIRST:COUNT" */
static void take_line(struct chempi_subordinates *s, const char *line)
{
    const char *at = strchr(line, ':');
    uint32_t first;
    uint32_t count;

    if (!at || sscanf(at, ":%10" SCNu32 ":%10" SCNu32, &first, &count) != 2 ||
        first == 0 || count == 0 || s->count >= CHEMPI_SUBORDINATES_MAX ||
        !CHEMPI_ARRAY_FIT(s->list, s->room, s->count + 1))
        return;
    s->list[s->count++] = (range){first, count};
}

static int compare(const void *a, const void *b)
{
    const range *one = a;
    const range *two = b;

    return (one->first > two->first) - (one->first < two->first);
}

static void read_all(struct chempi_subordinates *s)
{
    FILE *file = fopen(s->path, "re");
    char line[256];

    s->count = 0;
    while (file && fgets(line, sizeof(line), file))
        take_line(s, line);
    if (file)
        (void)fclose(file); /* read only */
    if (s->count)
        qsort(s->list, s->count, sizeof(*s->list), compare);
}

static void look(struct chempi_subordinates *s)
{
    struct stat st;
    const bool is_there = stat(s->path, &st) == 0 && S_ISREG(st.st_mode);

    if (!is_there) {
        s->count = 0;
        s->is_read = false;
        return;
    }
    if (s->is_read && st.st_mtim.tv_sec == s->changed.tv_sec &&
        st.st_mtim.tv_nsec == s->changed.tv_nsec)
        return;
    read_all(s);
    s->changed = st.st_mtim;
    s->is_read = true;
}

uid_t chempi_subordinates_account(struct chempi_subordinates *s, uid_t uid)
{
    size_t low = 0;
    size_t high;

    look(s);
    high = s->count;
    while (low < high) { /* the first that begins behind it */
        const size_t middle = low + (high - low) / 2;

        if (s->list[middle].first <= uid)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || uid - s->list[low - 1].first >= s->list[low - 1].count)
        return uid;
    return s->list[low - 1].first;
}
