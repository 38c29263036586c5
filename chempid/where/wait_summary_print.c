/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling where ranks wait, in words and as JSON; see wait_summary.h. */
#include "chempid/where/wait_summary.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

#define RANGES_MAX 32u   /* of ranks in a line */
#define CIRCLE_SHOWN 16u /* ranks of a circle */
#define UNKNOWN CHEMPI_WAIT_SUMMARY_UNKNOWN
#define SURPLUS CHEMPI_WAIT_SUMMARY_SURPLUS

/* ---- printing ------------------------------------------------------------ */

/* The first rank of a group from this one on; size: there is none. */
static uint32_t next_of(const struct chempi_wait_summary *p, uint8_t group,
                        uint32_t rank)
{
    while (rank < p->spec->size && p->group_of[rank] != group)
        rank++;
    return rank;
}

static uint32_t count_of(const struct chempi_wait_summary *p, uint8_t group)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->spec->size; i++)
        n += p->group_of[i] == group;
    return n;
}

/* "rank 3 on node a2" or "ranks 0-2, 5" */
static void print_ranks(const struct chempi_wait_summary *p, FILE *file,
                        uint8_t group)
{
    const uint32_t size = p->spec->size;
    uint32_t left = count_of(p, group);
    uint32_t at = next_of(p, group, 0);

    if (left == 1) {
        (void)fprintf(file, "rank %u on node %s", at,
                      p->spec->node_names[p->spec->node_of_rank[at]]);
        return;
    }
    (void)fprintf(file, "ranks ");
    for (uint32_t shown = 0; left; shown++) {
        uint32_t end = at;

        if (shown == RANGES_MAX) {
            (void)fprintf(file, " and %u more", left);
            return;
        }
        while (end < size && p->group_of[end] == group)
            end++;
        (void)fprintf(file, "%s%u", shown ? ", " : "", at);
        if (end > at + 1)
            (void)fprintf(file, "-%u", end - 1);
        left -= end - at;
        at = next_of(p, group, end);
    }
}

/* The next line of a site into `line`; false: there are no more, or no more
 * are wanted. */
static bool next_call(const char **at, uint32_t *number,
                      char line[CHEMPI_HERE_SITE_MAX])
{
    const size_t len = strcspn(*at, "\n");

    if (len == 0 || *number == CHEMPI_HERE_CALLS_MAX)
        return false;
    memcpy(line, *at, len);
    line[len] = '\0';
    *at += len + ((*at)[len] == '\n');
    ++*number;
    return true;
}

static void print_site(FILE *file, const struct chempi_wait_summary_group *g)
{
    const char *at = g->site;
    char line[CHEMPI_HERE_SITE_MAX];
    uint32_t number = 0;

    while (next_call(&at, &number, line))
        (void)fprintf(file, "chempirun:     %s from %s%s\n",
                      number == 1 ? "called" : "      ", line,
                      g->has_sites && !*at ? " and elsewhere" : "");
}

static void print_group(const struct chempi_wait_summary *p, FILE *file,
                        uint8_t group)
{
    /* Of one rank, of several. */
    static const char *const words[][2] = {
        [CHEMPI_HERE_WAITS] = {" waits in ", " wait in "},
        [CHEMPI_HERE_TESTS] = {" does not wait, but calls ",
                               " do not wait, but call "},
        [CHEMPI_HERE_SILENT] = {" does not wait in MPI (it computes, tests or "
                                "waits elsewhere)",
                                " do not wait in MPI (they compute, test or "
                                "wait elsewhere)"},
        [CHEMPI_HERE_FRESH] = {" has not initialized MPI",
                               " have not initialized MPI"},
        [CHEMPI_HERE_FINALIZED] = {" has finalized MPI and not ended",
                                   " have finalized MPI and not ended"},
        [CHEMPI_HERE_ENDED] = {" has ended", " have ended"},
    };
    const struct chempi_wait_summary_group *g = &p->groups[group - 1];

    (void)fprintf(file, "chempirun: ");
    print_ranks(p, file, group);
    (void)fprintf(file, "%s%s%s\n", words[g->here][count_of(p, group) > 1],
                  g->text, g->is_merged ? ", not all for the same" : "");
    print_site(file, g);
}

static void print_rest(const struct chempi_wait_summary *p, FILE *file,
                       uint8_t group, const char *words)
{
    if (next_of(p, group, 0) == p->spec->size)
        return;
    (void)fprintf(file, "chempirun: %s ", words);
    print_ranks(p, file, group);
    (void)fprintf(file, "\n");
}

static void print_groups(const struct chempi_wait_summary *p, FILE *file,
                         bool is_waiting)
{
    bool is_told[CHEMPI_WAIT_SUMMARY_GROUPS + 2] = {false};

    is_told[UNKNOWN] = is_told[SURPLUS] = true;
    for (uint32_t i = 0; i < p->spec->size; i++) {
        const uint8_t group = p->group_of[i];

        if (is_told[group] ||
            (p->groups[group - 1].here == CHEMPI_HERE_WAITS) != is_waiting)
            continue;
        is_told[group] = true;
        print_group(p, file, group);
    }
}

/* ---- circles ------------------------------------------------------------- */

/* A search from rank to rank that is waited for, deep first. */
struct search {
    uint32_t *path; /* from its first rank to where it is */
    uint32_t depth;
    uint8_t *next; /* [size] the edge that is tried next; DONE: all were */
    bool *is_on_path;
};

#define DONE UINT8_MAX

/* One step. The rank at which a circle closes; size: none yet. */
static uint32_t step(const struct chempi_wait_summary *p, struct search *s)
{
    const uint32_t rank = s->path[s->depth - 1];
    const struct chempi_wait_summary_edges *e = &p->edges[rank];
    uint32_t to;

    if (s->next[rank] >= e->count) {
        s->next[rank] = DONE;
        s->is_on_path[rank] = false;
        s->depth--;
        return p->spec->size;
    }
    to = e->ranks[s->next[rank]++];
    if (s->is_on_path[to])
        return to;
    if (s->next[to] != DONE) {
        s->path[s->depth++] = to;
        s->is_on_path[to] = true;
    }
    return p->spec->size;
}

/* The path to a circle, which its last part is: from the rank that is
 * returned. size: there is none. */
static uint32_t find_circle(const struct chempi_wait_summary *p,
                            struct search *s)
{
    const uint32_t size = p->spec->size;
    uint32_t rank = size;

    for (uint32_t i = 0; i < size && rank == size; i++) {
        if (s->next[i] == DONE)
            continue;
        s->path[0] = i;
        s->depth = 1;
        s->is_on_path[i] = true;
        while (s->depth && rank == size)
            rank = step(p, s);
    }
    return rank;
}

/* A circle, in ranks[0 .. count): each waits for the next one. */
struct circle {
    uint32_t *ranks; /* owned */
    uint32_t count;  /* 0: none was found, or there is no memory to look */
};

static void look_for_circle(const struct chempi_wait_summary *p,
                            struct circle *out)
{
    const uint32_t size = p->spec->size;
    struct search s = {
        .path = chempi_sys->calloc(size, sizeof(*s.path)),
        .next = chempi_sys->calloc(size, sizeof(*s.next)),
        .is_on_path = chempi_sys->calloc(size, sizeof(*s.is_on_path)),
    };
    uint32_t first = size;
    uint32_t at = 0;

    *out = (struct circle){.ranks = s.path};
    if (s.path && s.next && s.is_on_path) /* else: it is not looked for */
        first = find_circle(p, &s);
    if (first < size) {
        while (s.path[at] != first)
            at++;
        out->count = s.depth - at;
        memmove(s.path, s.path + at, out->count * sizeof(*s.path));
    }
    free(s.next);
    free(s.is_on_path);
}

static const char *node_of(const struct chempi_wait_summary *p, uint32_t rank)
{
    return p->spec->node_names[p->spec->node_of_rank[rank]];
}

static void print_member(const struct chempi_wait_summary *p, FILE *file,
                         uint32_t rank, const char *arrow)
{
    const char *words = chempi_wait_summary_words(p, rank);

    (void)fprintf(file, "chempirun:   %srank %u on node %s%s%s\n", arrow, rank,
                  node_of(p, rank), *words ? ", in " : "", words);
}

/* Of a long one the beginning is shown. */
static void print_circle(const struct chempi_wait_summary *p, FILE *file)
{
    struct circle c;

    look_for_circle(p, &c);
    if (c.count)
        (void)fprintf(
            file,
            c.count > 1
                ? "chempirun: %u ranks wait for each other in a circle:\n"
                : "chempirun: %u rank waits for itself:\n",
            c.count);
    for (uint32_t i = 0; i < c.count && i < CIRCLE_SHOWN; i++)
        print_member(p, file, c.ranks[i], i ? "-> " : "");
    if (c.count > CIRCLE_SHOWN)
        (void)fprintf(file, "chempirun:   -> %u more\n",
                      c.count - CIRCLE_SHOWN);
    if (c.count)
        (void)fprintf(file, "chempirun:   -> rank %u\n", c.ranks[0]);
    free(c.ranks);
}

/* Those that do not wait are often whom the others wait for. */
void chempi_wait_summary_print(const struct chempi_wait_summary *p, FILE *file,
                               bool has_rest)
{
    print_groups(p, file, false);
    print_groups(p, file, true);
    print_circle(p, file);
    print_rest(p, file, SURPLUS, "no room to tell of");
    if (has_rest)
        print_rest(p, file, UNKNOWN, "nothing is known of");
}

/* ---- JSON ---------------------------------------------------------------- */

static const char *const state_words[] = {
    [CHEMPI_HERE_WAITS] = "waits",
    [CHEMPI_HERE_TESTS] = "calls",
    [CHEMPI_HERE_SILENT] = "does not wait in MPI",
    [CHEMPI_HERE_FRESH] = "not initialized",
    [CHEMPI_HERE_FINALIZED] = "finalized",
    [CHEMPI_HERE_ENDED] = "ended",
};

static void ranks_json(const struct chempi_wait_summary *p,
                       struct chempi_json *j, const char *name, uint8_t group)
{
    chempi_json_open_list(j, name);
    for (uint32_t i = next_of(p, group, 0); i < p->spec->size;
         i = next_of(p, group, i + 1))
        chempi_json_number(j, NULL, i);
    chempi_json_close_list(j);
}

/* "from", the place of the call, and "stack", of those that led to it, too. */
static void site_json(const struct chempi_wait_summary_group *g,
                      struct chempi_json *j)
{
    const char *at = g->site;
    char line[CHEMPI_HERE_SITE_MAX];
    uint32_t number = 0;

    chempi_json_text(j, "from", next_call(&at, &number, line) ? line : NULL);
    chempi_json_open_list(j, "stack");
    at = g->site;
    number = 0;
    while (next_call(&at, &number, line))
        chempi_json_text(j, NULL, line);
    chempi_json_close_list(j);
}

static void group_json(const struct chempi_wait_summary *p,
                       struct chempi_json *j, uint8_t group)
{
    const struct chempi_wait_summary_group *g = &p->groups[group - 1];

    chempi_json_open(j, NULL);
    ranks_json(p, j, "ranks", group);
    chempi_json_text(j, "state", state_words[g->here]);
    chempi_json_text(j, "call", *g->text ? g->text : NULL);
    chempi_json_bool(j, "is_merged", g->is_merged);
    site_json(g, j);
    chempi_json_bool(j, "is_from_elsewhere", g->has_sites);
    chempi_json_close(j);
}

/* Of each rank that waits for certain others, these. */
static void edges_json(const struct chempi_wait_summary *p,
                       struct chempi_json *j)
{
    char rank[16];

    chempi_json_open(j, "waits_for");
    for (uint32_t i = 0; i < p->spec->size; i++) {
        if (p->edges[i].count == 0)
            continue;
        (void)snprintf(rank, sizeof(rank), "%u", i);
        chempi_json_open_list(j, rank);
        for (uint32_t k = 0; k < p->edges[i].count; k++)
            chempi_json_number(j, NULL, p->edges[i].ranks[k]);
        chempi_json_close_list(j);
    }
    chempi_json_close(j);
}

static void circle_json(const struct chempi_wait_summary *p,
                        struct chempi_json *j)
{
    struct circle c;

    look_for_circle(p, &c);
    chempi_json_open_list(j, "circle");
    for (uint32_t i = 0; i < c.count; i++)
        chempi_json_number(j, NULL, c.ranks[i]);
    chempi_json_close_list(j);
    free(c.ranks);
}

static void nodes_json(const struct chempi_wait_summary *p,
                       struct chempi_json *j)
{
    chempi_json_open(j, "nodes");
    for (uint32_t n = 0; n < p->spec->node_count; n++) {
        chempi_json_open_list(j, p->spec->node_names[n]);
        for (uint32_t i = 0; i < p->spec->size; i++)
            if (p->spec->node_of_rank[i] == n)
                chempi_json_number(j, NULL, i);
        chempi_json_close_list(j);
    }
    chempi_json_close(j);
}

void chempi_wait_summary_json(const struct chempi_wait_summary *p,
                              struct chempi_json *j)
{
    bool is_told[CHEMPI_WAIT_SUMMARY_GROUPS + 2] = {false};

    is_told[UNKNOWN] = is_told[SURPLUS] = true;
    chempi_json_number(j, "size", p->spec->size);
    nodes_json(p, j);
    chempi_json_open_list(j, "places");
    for (uint32_t i = 0; i < p->spec->size; i++) {
        if (is_told[p->group_of[i]])
            continue;
        is_told[p->group_of[i]] = true;
        group_json(p, j, p->group_of[i]);
    }
    chempi_json_close_list(j);
    edges_json(p, j);
    circle_json(p, j);
    ranks_json(p, j, "no_room", SURPLUS);
    ranks_json(p, j, "unknown", UNKNOWN);
}
