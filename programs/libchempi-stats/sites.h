/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting by place in the source, on request (CHEMPI_PROFILE_SITES): a table
 * of places that is filled without locks. What has no room in it any more is
 * counted as from elsewhere.
 */
#ifndef CHEMPI_STATS_SITES_H
#define CHEMPI_STATS_SITES_H

#include "programs/libchempi-stats/stats.h"

enum { STATS_FILE_TEXT = 256, STATS_PLACE_TEXT = 128 /* bytes */ };

/* Calls of one operation from one place; travels to rank 0 as it is, where the
 * lines of all ranks become one with the number of ranks. */
struct stats_site {
    uint32_t id; /* enum stats_id */
    uint32_t ranks;
    uint64_t calls;
    uint64_t bytes;
    uint64_t time_ns;
    uint64_t least_ns; /* of the ranks, those that have not called there too */
    uint64_t most_ns;
    uint64_t address; /* in the file; 0: not known */
    char file[STATS_FILE_TEXT];
    char place[STATS_PLACE_TEXT]; /* "main+0x1f (ring)", then "ring.c:12" */
};

struct stats_sites {
    struct stats_site *list;
    size_t count;
};

/* Of the environment; the same answer each time. */
bool stats_sites_are_wanted(void);

void stats_sites_count(const struct stats_call *call);
void stats_sites_forget(void);

/* What this process has counted: those with most time. Nothing without
 * memory. */
struct stats_sites stats_sites_take(void);

/* Make one of those that are of one place, by falling time, and find the lines
 * of the source, for which processes are started. `ranks` have told theirs. */
void stats_sites_join(struct stats_sites *sites, uint32_t ranks);

/* With what ranks have spent there if there are several. */
void stats_sites_print_text(FILE *file, const struct stats_sites *sites,
                            uint32_t ranks);
/* A list named "sites" of an open object. */
struct chempi_json;
void stats_sites_print_json(struct chempi_json *j,
                            const struct stats_sites *sites);

#endif
