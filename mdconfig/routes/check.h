/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that need the routes: pairs that cannot reach each other, gateways
 * whose loss splits the cluster, ways in a circle, figures that make no sense.
 */
#ifndef CHEMPI_MDCONFIG_CHECK_H
#define CHEMPI_MDCONFIG_CHECK_H

#include <stdio.h>

#include "mdconfig/routes/route.h"

enum chempi_check_level {
    CHEMPI_CHECK_NOTE,    /* worth knowing */
    CHEMPI_CHECK_WARNING, /* probably a mistake */
    CHEMPI_CHECK_ERROR    /* jobs will fail; compile refuses */
};

struct chempi_check_finding {
    enum chempi_check_level level;
    bool is_reach; /* a pair without a way: compile may be told to accept */
    char *text;    /* "file:line: ..." without a newline */
};

struct chempi_check {
    struct chempi_check_finding *findings;
    size_t count;
    size_t room;
    struct chempi_arena arena;
};

/* Run the checks whose findings may be of a level or above; findings are in
 * the order of the checks, lesser ones among them. With is_whole pairs of nodes
 * are listed whatever their number, else summed up. */
void chempi_check_run(const struct chempi_graph *graph,
                      enum chempi_check_level from, bool is_whole,
                      struct chempi_check *out);
void chempi_check_fini(struct chempi_check *check);

/* Why no way leads from nodes of class a to those of class b, and what would
 * make one; is_back: one leads back. In words, which may be the arena's. */
const char *chempi_check_remedy(const struct chempi_graph *graph, uint32_t a,
                                uint32_t b, bool is_back,
                                struct chempi_arena *arena);

#endif
