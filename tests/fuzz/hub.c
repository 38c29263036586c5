/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequences of messages and losses against a job's place in the tree (hub.h),
 * with its invariants looked at after each step. An input is the shape of the
 * tree and a row of steps:
 *
 *     u8 nodes, u8 spare, u8 children, children x (u8 count, count x u8 node)
 *     u8 what (enum what), u8 child, u8 type, u8 length, the payload
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/tree/hub.h"
#include "common/control/msg.h"
#include "common/control/wire.h"
#include "tests/fuzz/target.h"

#define NODES_MAX 16u
#define CHILDREN_MAX 5u

enum what { TAKE, DOWN, LOSE, LEAVE, WHAT_COUNT };

#define HOLDS(is_so)                                                           \
    do {                                                                       \
        if (!(is_so)) {                                                        \
            (void)fprintf(stderr, "hub.c:%d: not so: %s\n", __LINE__, #is_so); \
            abort();                                                           \
        }                                                                      \
    } while (0)

static struct chempi_hub hub;
static unsigned counts[256]; /* of what went up, by type */
static unsigned ups;
static uint64_t fence;

static uint64_t number(const void *data, size_t len)
{
    const uint8_t *at = data;
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n |= (uint64_t)at[i] << (8 * i);
    return n;
}

static void up(void *arg, uint16_t type, const void *data, size_t len)
{
    (void)arg;
    HOLDS(type < 256);
    counts[type]++;
    ups++;
    if (type == CHEMPI_MSG_ENTERED) /* H4: one after the other */
        HOLDS(len == 8 && number(data, len) == ++fence);
    if (type == CHEMPI_MSG_NODE_LOST)
        HOLDS(len >= 4 && number(data, 4) < hub.node_count);
}

static void down(void *arg, uint32_t child, uint16_t type, const void *data,
                 size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
    HOLDS(child < hub.child_count && !hub.children[child].is_lost);
    HOLDS(type != CHEMPI_MSG_DONE);
}

static const struct chempi_hub_ops ops = {.up = up, .down = down};

static void check(void)
{
    uint32_t below = 0;

    HOLDS(hub.child_count <= CHILDREN_MAX);
    for (uint32_t c = 0; c < hub.child_count; c++) {
        const struct chempi_hub_child *child = &hub.children[c];
        uint32_t n = 0;

        for (uint32_t i = 0; i < hub.node_count; i++)
            n += hub.next[i] == c + 1;
        HOLDS(n == child->nodes && n > 0); /* H1 */
        HOLDS(child->started <= n && child->done <= n && child->gone <= n);
        below += n;
    }
    for (uint32_t i = 0; i < hub.node_count; i++)
        HOLDS(hub.next[i] <= hub.child_count);
    HOLDS(below <= hub.node_count);
    HOLDS(counts[CHEMPI_MSG_STARTED] <= 1 && counts[CHEMPI_MSG_DONE] <= 1 &&
          counts[CHEMPI_MSG_GONE] <= 1); /* H2 */
    HOLDS(chempi_hub_is_over(&hub) == (counts[CHEMPI_MSG_GONE] == 1));
}

static void add_children(struct chempi_reader *r)
{
    const uint32_t count = chempi_wire_get_u8(r) % 8u; /* some too many */

    for (uint32_t c = 0; c < count; c++) {
        const uint32_t n = chempi_wire_get_u8(r) % NODES_MAX;
        uint32_t nodes[NODES_MAX];

        for (uint32_t i = 0; i < n; i++)
            nodes[i] = chempi_wire_get_u8(r);
        (void)chempi_hub_add(&hub, nodes, n);
        check();
    }
}

/* What a lost child says is late: no error, and no effect. */
static int take(uint32_t child, const struct chempi_frame *frame,
                struct chempi_err *err)
{
    const bool is_lost = hub.children[child].is_lost;
    const unsigned before = ups;
    const int rc = chempi_hub_take(&hub, child, frame, err);

    HOLDS(!is_lost || (rc == 0 && ups == before));
    return rc;
}

static void step(struct chempi_reader *r)
{
    const uint8_t what = chempi_wire_get_u8(r) % WHAT_COUNT;
    const uint32_t child =
        chempi_wire_get_u8(r) % (hub.child_count ? hub.child_count : 1);
    const uint8_t type = chempi_wire_get_u8(r);
    const uint8_t len = chempi_wire_get_u8(r);
    const size_t left = (size_t)(r->end - r->next);
    struct chempi_frame frame = {.type = type, .data = r->next};
    struct chempi_err err = {0};
    int rc = 0;

    frame.len = len < left ? len : (uint32_t)left;
    r->next += frame.len;
    if (what == DOWN)
        rc = chempi_hub_down(&hub, type, frame.data, frame.len, &err);
    else if (!hub.child_count)
        return;
    else if (what == TAKE)
        rc = take(child, &frame, &err);
    else if (what == LOSE)
        chempi_hub_lose(&hub, child, "lost");
    else
        chempi_hub_leave(&hub, child);
    HOLDS(rc == 0 || (rc == -EBADMSG && err.code == rc && err.text[0]));
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_reader r;
    uint32_t nodes;

    memset(counts, 0, sizeof(counts));
    fence = 0;
    chempi_wire_read(&r, data, size);
    nodes = 1 + chempi_wire_get_u8(&r) % NODES_MAX;
    HOLDS(chempi_hub_init(&hub, nodes, CHILDREN_MAX, &ops, NULL) == 0);
    chempi_hub_expect(&hub, nodes);
    chempi_hub_spare(&hub, chempi_wire_get_u8(&r));
    add_children(&r);
    chempi_hub_expect(&hub, 0);
    while (!r.is_bad && !chempi_wire_is_done(&r))
        step(&r);
    for (uint32_t c = 0; c < hub.child_count; c++)
        chempi_hub_lose(&hub, c, "lost");
    check();
    HOLDS(chempi_hub_is_over(&hub)); /* H3 */
    chempi_hub_fini(&hub);
    return 0;
}

/* ---- seeds --------------------------------------------------------------- */

/* Six nodes, the last two spare: 1, 2 and 3, 4, 5; 0 is above. */
static const uint8_t head[] = {5, 4, 4, 1, 1, 2, 2, 3, 1, 4, 1, 5};
/* Seven children, which are two too many, and one of a node that is taken. */
static const uint8_t crowd[] = {15, 15, 7, 1, 0, 1, 1, 1, 2,
                                1,  2,  1, 3, 1, 4, 1, 5};

static void put(struct chempi_writer *w, enum what what, uint8_t child,
                uint8_t type, uint64_t value, uint8_t len)
{
    chempi_wire_put_u8(w, (uint8_t)what);
    chempi_wire_put_u8(w, child);
    chempi_wire_put_u8(w, type);
    chempi_wire_put_u8(w, len);
    for (uint8_t i = 0; i < len; i++)
        chempi_wire_put_u8(w, (uint8_t)(i < 8 ? value >> (8 * i) : 0));
}

static void put_life(struct chempi_writer *w)
{
    static const uint8_t nodes[] = {1, 2, 1, 1};
    static const uint8_t types[] = {CHEMPI_MSG_STARTED, CHEMPI_MSG_ENTERED,
                                    CHEMPI_MSG_DONE, CHEMPI_MSG_GONE};

    for (size_t t = 0; t < sizeof(types); t++)
        for (uint8_t c = 0; c < sizeof(nodes); c++)
            put(w, TAKE, c, types[t],
                types[t] == CHEMPI_MSG_ENTERED ? 1 : nodes[c],
                types[t] == CHEMPI_MSG_ENTERED ? 8 : 4);
}

/* Every type, from a child for one of its nodes and from above. */
static void put_all(struct chempi_writer *w)
{
    for (uint8_t type = CHEMPI_MSG_STARTED; type <= CHEMPI_MSG_RUNS; type++) {
        put(w, TAKE, 1, type, 2, 8);
        put(w, DOWN, 0, type, 3, 8);
    }
}

static void put_losses(struct chempi_writer *w)
{
    put(w, LOSE, 3, 0, 0, 0);
    put(w, TAKE, 3, CHEMPI_MSG_DONE, 1, 4);
    put(w, DOWN, 0, CHEMPI_MSG_END, 0, 0);
    put(w, LEAVE, 1, 0, 0, 0);
    put_life(w);
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    static void (*const rows[])(struct chempi_writer *) = {put_life, put_losses,
                                                           put_all, put_losses};
    struct chempi_writer w;

    if (i >= sizeof(rows) / sizeof(rows[0]))
        return 0;
    chempi_wire_fix(&w, out, FUZZ_INPUT_MAX);
    if (i < 2)
        chempi_wire_put_raw(&w, head, sizeof(head));
    else
        chempi_wire_put_raw(&w, crowd, sizeof(crowd));
    rows[i](&w);
    return w.error ? 0 : w.len;
}
