/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the ranks of a job wait; see wait_summary.h. */
#include "chempid/where/wait_summary.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/words/plain.h"

#define UNKNOWN CHEMPI_WAIT_SUMMARY_UNKNOWN
#define SURPLUS CHEMPI_WAIT_SUMMARY_SURPLUS
static_assert(SURPLUS <= UINT8_MAX, "groups are numbered in bytes");
#define NAMED                                                                  \
    2u           /* ranks that others wait for, as a rank's own words have it  \
                  */
#define KINDS 4u /* without words; the first groups are theirs */
static_assert(CHEMPI_HERE_ENDED - CHEMPI_HERE_SILENT + 1 == KINDS,
              "each of them has its own");

int chempi_wait_summary_open(struct chempi_wait_summary *p,
                             const struct chempi_spec *spec)
{
    *p = (struct chempi_wait_summary){
        .spec = spec,
        .group_of = chempi_sys->calloc(spec->size, sizeof(*p->group_of)),
        .is_due = chempi_sys->calloc(spec->node_count, sizeof(*p->is_due)),
        .groups =
            chempi_sys->calloc(CHEMPI_WAIT_SUMMARY_GROUPS, sizeof(*p->groups)),
        .edges = chempi_sys->calloc(spec->size, sizeof(*p->edges)),
        .moves = chempi_sys->calloc(spec->size, sizeof(*p->moves)),
    };
    if (!p->group_of || !p->is_due || !p->groups || !p->edges || !p->moves) {
        chempi_wait_summary_close(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < spec->size; i++)
        p->is_due[spec->node_of_rank[i]] = true;
    for (uint32_t i = 0; i < spec->node_count; i++)
        p->due += p->is_due[i];
    return 0;
}

void chempi_wait_summary_close(struct chempi_wait_summary *p)
{
    free(p->group_of);
    free(p->is_due);
    free(p->groups);
    free(p->edges);
    free(p->moves);
    *p = (struct chempi_wait_summary){0};
}

/* ---- taking -------------------------------------------------------------- */

static bool has_text(uint8_t here)
{
    return here == CHEMPI_HERE_WAITS || here == CHEMPI_HERE_TESTS;
}

static bool is_same_call(const struct chempi_wait_summary_group *a,
                         const struct chempi_wait_summary_group *b)
{
    const size_t len = strcspn(a->text, " ");

    return a->here == b->here && strcspn(b->text, " ") == len &&
           memcmp(a->text, b->text, len) == 0;
}

static uint32_t count_same_call(const struct chempi_wait_summary *p,
                                uint32_t group)
{
    uint32_t n = 0;

    for (uint32_t i = KINDS; i < CHEMPI_WAIT_SUMMARY_GROUPS; i++)
        n += is_same_call(&p->groups[group], &p->groups[i]);
    return n;
}

/* Make one group of all that are in the same call as this one. */
static void merge(struct chempi_wait_summary *p, uint32_t group)
{
    struct chempi_wait_summary_group *to = &p->groups[group];
    bool is_gone[CHEMPI_WAIT_SUMMARY_GROUPS] = {false};

    for (uint32_t i = KINDS; i < CHEMPI_WAIT_SUMMARY_GROUPS; i++)
        is_gone[i] = i != group && is_same_call(to, &p->groups[i]);
    for (uint32_t i = 0; i < CHEMPI_WAIT_SUMMARY_GROUPS; i++)
        if (is_gone[i])
            p->groups[i] = (struct chempi_wait_summary_group){0};
    for (uint32_t i = 0; i < p->spec->size; i++) {
        const uint8_t was = p->group_of[i];

        if (was != UNKNOWN && was != SURPLUS && is_gone[was - 1])
            p->group_of[i] = (uint8_t)(group + 1);
    }
    to->text[strcspn(to->text, " ")] = '\0';
    to->is_merged = true;
}

/* Of the call that has the most groups there is to be one only. False: each
 * has but one. */
static bool make_room(struct chempi_wait_summary *p)
{
    uint32_t best = 0;
    uint32_t most = 0;

    for (uint32_t i = KINDS; i < CHEMPI_WAIT_SUMMARY_GROUPS; i++) {
        const uint32_t n = count_same_call(p, i);

        if (n > most) {
            most = n;
            best = i;
        }
    }
    if (most < 2)
        return false;
    merge(p, best);
    return true;
}

/* The group with these words or, for several, with this call; how many there
 * are: none. */
static uint32_t find_group(const struct chempi_wait_summary *p,
                           const struct chempi_wait_summary_group *g)
{
    uint32_t i = KINDS;

    while (i < CHEMPI_WAIT_SUMMARY_GROUPS &&
           !(p->groups[i].is_merged ? is_same_call(&p->groups[i], g)
                                    : p->groups[i].here == g->here &&
                                          !strcmp(p->groups[i].text, g->text)))
        i++;
    return i;
}

static uint32_t find_free(const struct chempi_wait_summary *p)
{
    uint32_t i = KINDS;

    while (i < CHEMPI_WAIT_SUMMARY_GROUPS && p->groups[i].here)
        i++;
    return i;
}

/* Without what terminals obey, but for what is kept. */
static void copy_plain(const char *text, char *out, size_t size,
                       const char *kept)
{
    (void)snprintf(out, size, "%s", text); /* cut is fine */
    chempi_plain(out, strlen(out), kept);
}

/* 1 + the group, which is made if it is new; SURPLUS: there is no room. The
 * kinds without words always have some: they may be why the others wait. */
static uint8_t group_of(struct chempi_wait_summary *p, uint8_t here,
                        const char *text)
{
    struct chempi_wait_summary_group g = {.here = here};
    uint32_t i;

    if (has_text(here))
        copy_plain(text, g.text, sizeof(g.text), "");
    if (!has_text(here)) {
        i = here - CHEMPI_HERE_SILENT;
        p->groups[i] = g;
        return (uint8_t)(i + 1);
    }
    i = find_group(p, &g);
    if (i < CHEMPI_WAIT_SUMMARY_GROUPS)
        return (uint8_t)(i + 1);
    if (find_free(p) == CHEMPI_WAIT_SUMMARY_GROUPS && !make_room(p))
        return SURPLUS;
    i = find_group(p, &g); /* that of its call may be one for several now */
    if (i == CHEMPI_WAIT_SUMMARY_GROUPS) {
        i = find_free(p);
        p->groups[i] = g;
    }
    return (uint8_t)(i + 1);
}

/* Whence a rank of this group calls. */
static void note_site(struct chempi_wait_summary *p, uint8_t group,
                      const char *text)
{
    char site[CHEMPI_HERE_SITE_MAX];
    struct chempi_wait_summary_group *g;

    if (group == SURPLUS || !*text)
        return;
    copy_plain(text, site, sizeof(site), "\n");
    g = &p->groups[group - 1];
    if (!g->site[0])
        memcpy(g->site, site, sizeof(site));
    else
        g->has_sites |= strcmp(g->site, site) != 0;
}

/* False: malformed. */
static bool take_rank(struct chempi_wait_summary *p, uint32_t node,
                      struct chempi_reader *r)
{
    const struct chempi_spec *spec = p->spec;
    const uint32_t rank = chempi_wire_get_u32(r);
    const uint8_t here = chempi_wire_get_u8(r);
    struct chempi_wait_summary_edges edges = {0};
    uint64_t moves;
    char text[CHEMPI_HERE_MAX];

    (void)snprintf(text, sizeof(text), "%s",
                   chempi_wire_get_str(r, CHEMPI_HERE_MAX));
    if (r->is_bad || rank >= spec->size || spec->node_of_rank[rank] != node ||
        here < CHEMPI_HERE_WAITS || here > CHEMPI_HERE_ENDED)
        return false;
    p->group_of[rank] = group_of(p, here, text);
    note_site(p, p->group_of[rank],
              chempi_wire_get_str(r, CHEMPI_HERE_SITE_MAX));
    moves = chempi_wire_get_u64(r);
    edges.count = chempi_wire_get_count(r, CHEMPI_HERE_FOR_MAX, 4);
    for (uint32_t i = 0; i < edges.count && !r->is_bad; i++) {
        edges.ranks[i] = chempi_wire_get_u32(r);
        r->is_bad |= edges.ranks[i] >= spec->size;
    }
    if (here == CHEMPI_HERE_WAITS && !r->is_bad) {
        p->edges[rank] = edges;
        p->moves[rank] = moves;
    }
    return !r->is_bad;
}

bool chempi_wait_summary_take(struct chempi_wait_summary *p,
                              struct chempi_reader *r)
{
    const struct chempi_spec *spec = p->spec;
    const uint32_t node = chempi_wire_get_u32(r);

    if (r->is_bad || node >= spec->node_count || !p->is_due[node])
        return p->due == 0;
    p->is_due[node] = false;
    p->due--;
    while (!r->is_bad && !chempi_wire_is_done(r))
        if (!take_rank(p, node, r))
            break;
    return p->due == 0;
}

/* ---- meetings of all ranks ----------------------------------------------- */

enum { FINALIZE, INIT, INIT_THREAD };
static const char *const meetings[] = {[FINALIZE] = "MPI_Finalize",
                                       [INIT] = "MPI_Init",
                                       [INIT_THREAD] = "MPI_Init_thread"};

/* Which of them a rank waits in; how many there are: none. */
static size_t meeting_of(const struct chempi_wait_summary *p, uint32_t rank)
{
    const uint8_t group = p->group_of[rank];
    const char *text = chempi_wait_summary_words(p, rank);
    size_t len = strcspn(text, " ");
    size_t i = 0;

    if (group == UNKNOWN || group == SURPLUS ||
        p->groups[group - 1].here != CHEMPI_HERE_WAITS)
        return CHEMPI_ARRAY_LEN(meetings);
    while (i < CHEMPI_ARRAY_LEN(meetings) &&
           (strlen(meetings[i]) != len || strncmp(text, meetings[i], len) != 0))
        i++;
    return i == INIT_THREAD ? INIT : i;
}

/* ", for rank 7 on node a2, rank 9 on node a1; and 3 more" */
static void name_missing(const struct chempi_wait_summary *p,
                         struct chempi_wait_summary_group *g,
                         const struct chempi_wait_summary_edges *missing,
                         uint32_t count)
{
    size_t len = strlen(g->text);

    for (uint32_t i = 0; i < count && i < NAMED; i++) {
        const uint32_t rank = missing->ranks[i];
        const int n =
            snprintf(g->text + len, sizeof(g->text) - len,
                     "%s rank %u on node %s", i ? "," : ", for", rank,
                     p->spec->node_names[p->spec->node_of_rank[rank]]);

        if (n < 0 || (size_t)n >= sizeof(g->text) - len)
            return; /* it is cut */
        len += (size_t)n;
    }
    if (count > NAMED)
        (void)snprintf(g->text + len, sizeof(g->text) - len, "; and %u more",
                       count - NAMED);
}

/* Is it known that this rank is not there? Whoever has begun MPI may have left
 * MPI_Init already. */
static bool is_missing(const struct chempi_wait_summary *p, size_t meeting,
                       uint32_t rank)
{
    const uint8_t group = p->group_of[rank];

    if (group == UNKNOWN || group == SURPLUS)
        return false;
    if (meeting == INIT)
        return p->groups[group - 1].here == CHEMPI_HERE_FRESH;
    return meeting_of(p, rank) != meeting &&
           !chempi_wait_summary_is_over(p, rank);
}

static uint32_t find_missing(const struct chempi_wait_summary *p,
                             size_t meeting,
                             struct chempi_wait_summary_edges *missing)
{
    uint32_t count = 0;

    *missing = (struct chempi_wait_summary_edges){0};
    for (uint32_t i = 0; i < p->spec->size; i++)
        if (is_missing(p, meeting, i) && count++ < CHEMPI_HERE_FOR_MAX)
            missing->ranks[missing->count++] = i;
    return count;
}

static void meet(struct chempi_wait_summary *p, size_t meeting)
{
    struct chempi_wait_summary_edges missing;
    const uint32_t count = find_missing(p, meeting, &missing);
    bool is_named[CHEMPI_WAIT_SUMMARY_GROUPS] = {false};

    for (uint32_t i = 0; i < p->spec->size && count; i++) {
        struct chempi_wait_summary_group *g;

        if (meeting_of(p, i) != meeting || p->edges[i].count)
            continue;
        p->edges[i] = missing;
        g = &p->groups[p->group_of[i] - 1];
        if (!is_named[p->group_of[i] - 1] && !strstr(g->text, ", for "))
            name_missing(p, g, &missing, count);
        is_named[p->group_of[i] - 1] = true;
    }
}

void chempi_wait_summary_meet(struct chempi_wait_summary *p)
{
    meet(p, FINALIZE);
    meet(p, INIT);
}

bool chempi_wait_summary_is_over(const struct chempi_wait_summary *p,
                                 uint32_t rank)
{
    return p->group_of[rank] == 1 + CHEMPI_HERE_ENDED - CHEMPI_HERE_SILENT ||
           p->group_of[rank] == 1 + CHEMPI_HERE_FINALIZED - CHEMPI_HERE_SILENT;
}

const char *chempi_wait_summary_words(const struct chempi_wait_summary *p,
                                      uint32_t rank)
{
    const uint8_t group = p->group_of[rank];

    return group == UNKNOWN || group == SURPLUS ? ""
                                                : p->groups[group - 1].text;
}

bool chempi_wait_summary_is_ending(const struct chempi_wait_summary *p)
{
    for (uint32_t i = 0; i < p->spec->size; i++)
        if (!chempi_wait_summary_is_over(p, i))
            return false;
    return true;
}
