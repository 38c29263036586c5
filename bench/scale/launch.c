/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages of a launch: the plan, its way through the tree, a node's part. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/scale/stages.h"
#include "chempid/plan/plan.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/hub.h"
#include "chempid/tree/nodes/pieces.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/table/table.h"

/* ---- the launcher -------------------------------------------------------- */

static void place(const struct scale_job *job, enum chempi_map map,
                  struct cost *cost)
{
    struct chempi_place_node *nodes =
        chempi_sys->calloc(job->nodes, sizeof(*nodes));
    uint32_t *where = chempi_sys->calloc(job->ranks, sizeof(*where));
    struct chempi_err err = {.code = 0};

    if (!nodes || !where)
        scale_die("no memory for places", NULL);
    for (uint32_t i = 0; i < job->nodes; i++)
        nodes[i] = (struct chempi_place_node){.slots = job->per_node,
                                              .load = i * 7 % 32};
    cost_begin(cost);
    if (chempi_place_ranks(nodes, job->nodes, job->ranks, 0, map, where, &err))
        scale_die("places", &err);
    cost_end(cost);
    free(nodes);
    free(where);
}

static void place_in_blocks(struct scale_job *job, struct cost *cost)
{
    place(job, CHEMPI_MAP_BLOCK, cost);
}

static void place_in_turn(struct scale_job *job, struct cost *cost)
{
    place(job, CHEMPI_MAP_CYCLIC, cost);
}

static void place_by_load(struct scale_job *job, struct cost *cost)
{
    place(job, CHEMPI_MAP_LOAD, cost);
}

void scale_plan(struct scale_job *job, struct chempi_spec *spec,
                struct cost *cost)
{
    char count[16];
    char *words[] = {"chempirun", "--env-none", "-n", count, "true", NULL};
    struct chempi_plan_node *nodes =
        chempi_sys->calloc(job->nodes, sizeof(*nodes));
    struct chempi_options opt;
    struct chempi_err err = {.code = 0};

    if (!nodes)
        scale_die("no memory for nodes", NULL);
    (void)snprintf(count, sizeof(count), "%u", job->ranks);
    for (uint32_t i = 0; i < job->nodes; i++)
        nodes[i] = (struct chempi_plan_node){
            .name = job->desc.nodes[i].name,
            .place = {.slots = job->per_node},
            .host = UINT64_C(0x9e3779b97f4a7c15) * (i + 1),
        };
    if (chempi_options_parse(&opt, 5, words, &err))
        scale_die("options", &err);
    cost_begin(cost);
    if (chempi_plan_make(&opt, nodes, job->nodes, NULL, spec, &err))
        scale_die("plan", &err);
    cost_end(cost);
    chempi_options_fini(&opt);
    free(nodes);
}

static void make_plan(struct scale_job *job, struct cost *cost)
{
    struct chempi_spec spec;

    scale_plan(job, &spec, cost);
    chempi_spec_fini(&spec);
}

static void write_launch(struct scale_job *job, struct cost *cost)
{
    struct chempi_writer w = {0};

    cost_begin(cost);
    chempi_spec_order(&job->spec, &w);
    cost_end(cost);
    if (w.error || w.len > CHEMPI_TREE_MAX)
        scale_die("LAUNCH is longer than a frame", NULL);
    chempi_wire_clear(&w);
}

/* ---- the tree ------------------------------------------------------------ */

static void up(void *arg, uint16_t type, const void *data, size_t len)
{
    (void)type;
    (void)data;
    (void)len;
    ++*(uint64_t *)arg;
}

static void down(void *arg, uint32_t child, uint16_t type, const void *data,
                 size_t len)
{
    (void)child;
    up(arg, type, data, len);
}

static void take(struct chempi_hub *hub, uint32_t child, uint16_t type,
                 uint64_t value, size_t len)
{
    uint8_t data[8];
    const struct chempi_frame frame = {
        .type = type, .len = (uint32_t)len, .data = data};
    struct chempi_err err = {.code = 0};

    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(value >> (8 * i));
    if (chempi_hub_take(hub, child, &frame, &err))
        scale_die("hub", &err);
}

/* The life of a job as a hub sees it. */
static void live(struct chempi_hub *hub)
{
    static const uint16_t counts[] = {CHEMPI_MSG_STARTED, CHEMPI_MSG_DONE,
                                      CHEMPI_MSG_GONE};

    for (uint32_t c = 0; c < hub->child_count; c++)
        take(hub, c, CHEMPI_MSG_ENTERED, 1, 8);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(counts); i++)
        for (uint32_t c = 0; c < hub->child_count; c++)
            take(hub, c, counts[i], hub->children[c].nodes, 4);
    if (!chempi_hub_is_over(hub))
        scale_die("hub: a job that does not end", NULL);
}

/* What a daemon whose business are `count` nodes does: read LAUNCH, put its own
 * node and pieces of the rest below it. Returns the first piece's nodes. */
static uint32_t pass_on(const uint8_t *bytes, size_t len, uint32_t *nodes,
                        uint32_t count, uint64_t *messages)
{
    static const struct chempi_hub_ops ops = {.up = up, .down = down};
    const uint32_t piece = chempi_pieces_len(count - 1, CHEMPI_DAEMON_FANOUT);
    struct chempi_spec spec;
    struct chempi_reader r;
    struct chempi_hub hub;

    chempi_wire_read(&r, bytes, len);
    if (chempi_spec_read(&spec, &r) ||
        chempi_hub_init(&hub, spec.node_count, CHEMPI_DAEMON_FANOUT + 1, &ops,
                        messages))
        scale_die("LAUNCH cannot be read", NULL);
    chempi_hub_spare(&hub, chempi_spec_first_spare(&spec));
    chempi_hub_expect(&hub, count);
    if (chempi_hub_add(&hub, nodes, 1) < 0)
        scale_die("hub", NULL);
    for (uint32_t i = 1; i < count; i += piece)
        if (chempi_hub_add(&hub, nodes + i,
                           count - i < piece ? count - i : piece) < 0)
            scale_die("hub", NULL);
    live(&hub);
    chempi_hub_fini(&hub);
    chempi_spec_fini(&spec);
    return piece;
}

/* Each first piece is the largest: so this is the longest way. */
static void go_down(struct scale_job *job, struct cost *cost)
{
    struct chempi_writer w = {0};
    uint32_t *nodes = chempi_sys->calloc(job->nodes, sizeof(*nodes));
    uint64_t messages = 0;
    uint32_t count = job->nodes;
    uint32_t first = 0;

    chempi_spec_write(&job->spec, CHEMPI_NODE_ANY, &w);
    if (!nodes || w.error)
        scale_die("no memory for LAUNCH", NULL);
    for (uint32_t i = 0; i < job->nodes; i++)
        nodes[i] = i;
    cost_begin(cost);
    while (count > 0) {
        count = pass_on(w.data, w.len, nodes + first, count, &messages);
        first++;
    }
    cost_end(cost);
    free(nodes);
    chempi_wire_clear(&w);
}

/* ---- a node -------------------------------------------------------------- */

/* What its supervisor counts before the first rank starts. */
static void number_ranks(struct scale_job *job, struct cost *cost)
{
    struct chempi_super s = {.spec = &job->spec, .node = job->nodes - 1};
    struct chempi_err err = {.code = 0};

    cost_begin(cost);
    if (chempi_super_number_ranks(&s, &err))
        scale_die("ranks", &err);
    cost_end(cost);
    free(s.ranks);
}

/* The table of the node, and whether it knows the job's nodes. */
static void open_table(struct scale_job *job, struct cost *cost)
{
    struct chempi_table *table;
    struct chempi_err err = {.code = 0};

    cost_begin(cost);
    if (chempi_table_open(job->table.data, job->table.len, &table, &err))
        scale_die("table", &err);
    for (uint32_t i = 0; i < job->spec.node_count; i++)
        if (chempi_table_find_node(table, job->spec.node_names[i]) ==
            CHEMPI_TABLE_NONE)
            scale_die("a table that lacks a node", NULL);
    chempi_table_close(table);
    cost_end(cost);
    cost->kept = job->table.len; /* the file that the ranks share */
}

const struct scale_stage scale_launch_stages[] = {
    {"place, blocks", SCALE_JOB, place_in_blocks},
    {"place, cyclic", SCALE_JOB, place_in_turn},
    {"place, load", SCALE_JOB, place_by_load},
    {"plan", SCALE_JOB, make_plan},
    {"launch, written", SCALE_JOB, write_launch},
    {"launch, down", SCALE_PATH, go_down},
    {"supervisor", SCALE_NODE, number_ranks},
    {"table", SCALE_NODE, open_table},
    {NULL, SCALE_JOB, NULL}};
