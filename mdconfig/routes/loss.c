/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lost gateway cuts off; see loss.h. */
#define _GNU_SOURCE /* open_memstream */
#include "mdconfig/routes/loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/words/fold.h"
#include "common/words/pairs.h"
#include "mdconfig/description/mem.h"

#define GROUPS_MAX 3u /* in a sentence */
#define NAMES_SHORT 160
#define NAMES_WHOLE 65536

struct teller {
    const struct chempi_graph *graph;
    FILE *out;
    const char **names; /* of all nodes: room for any group */
    char *text;         /* of one list */
    size_t text_len;
    uint32_t groups;
    uint64_t pairs;
    bool is_whole;
};

static void put_list(struct teller *t, const uint32_t *classes, uint32_t count)
{
    const struct chempi_graph *g = t->graph;
    size_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t m = g->member_first[classes[i]];
             m < g->member_first[classes[i] + 1]; m++)
            t->names[n++] = g->desc->nodes[g->members[m]].name;
    chempi_fold_sorted(t->names, n, t->text, t->text_len);
    (void)fputs(t->text, t->out);
}

static uint64_t count_nodes(const struct chempi_graph *g,
                            const uint32_t *classes, uint32_t count)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        n += chempi_graph_size(g, classes[i]);
    return n;
}

static int tell_group(void *arg, const uint32_t *from, uint32_t from_count,
                      const uint32_t *to, uint32_t to_count, bool is_one_way)
{
    struct teller *t = arg;
    const bool is_own = from_count == 1 && to_count == 1 && *from == *to;
    const uint64_t a = count_nodes(t->graph, from, from_count);
    const uint64_t b = count_nodes(t->graph, to, to_count);

    t->pairs += is_own ? a * (a - 1) / 2 : a * b;
    if (t->groups++ >= GROUPS_MAX && !t->is_whole)
        return 0;
    (void)fputs(t->is_whole ? "\n    " : t->groups > 1 ? "; " : " ", t->out);
    (void)fputs(is_own ? "among " : is_one_way ? "from " : "between ", t->out);
    put_list(t, from, from_count);
    if (is_own)
        return 0;
    (void)fputs(is_one_way ? " to " : " and ", t->out);
    put_list(t, to, to_count);
    return 0;
}

char *chempi_loss_put(const struct chempi_graph *graph, uint8_t *marks,
                      bool is_whole)
{
    const uint32_t nodes = graph->desc->node_count;
    uint32_t *scratch =
        chempi_mem_get(2 * (size_t)graph->class_count, sizeof(*scratch));
    struct teller t = {.graph = graph, .is_whole = is_whole};
    char *text = NULL;
    size_t len = 0;

    t.text_len = is_whole ? NAMES_WHOLE : NAMES_SHORT;
    t.text = chempi_mem_get(t.text_len, 1);
    t.names = chempi_mem_get(nodes, sizeof(*t.names));
    t.out = open_memstream(&text, &len);
    if (!t.out)
        chempi_mem_exhausted(t.text_len);
    (void)chempi_pairs_group(marks, graph->class_count, scratch, tell_group,
                             &t);
    if (t.groups > GROUPS_MAX && !is_whole)
        (void)fprintf(t.out,
                      "; and others: %" PRIu64 " pairs of nodes in all "
                      "(mdconfig check --all lists them)",
                      t.pairs);
    if (fclose(t.out) != 0 || !text)
        chempi_mem_exhausted(t.text_len);
    free(t.names);
    free(t.text);
    free(scratch);
    return text;
}
