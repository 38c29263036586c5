/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a member of a window says to a target, as one message: descriptions of
 * datatypes, and operations on the window's memory that use them, for which
 * there is no answer; kinds that have one become such ones. Nothing but the
 * window's memory is changed. Seeds are what an origin writes.
 */
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/internal.h"
#include "tests/fuzz/target.h"

enum {
    WINDOW = 4096,            /* bytes */
    OTHER = 1,                /* rank of who asks */
    DESCRIPTION_MAX = 1 << 20 /* bytes that this test lets one take */
};

static struct chempi_comm comm = {.rank = 0, .size = 2};
static uint32_t here; /* the only rank on this node */
static struct chempi_rma_card card;
static struct chempi_win win;

static void start(void)
{
    card =
        (struct chempi_rma_card){.size = WINDOW, .unit = 1, .at = UINT64_MAX};
    win = (struct chempi_win){.comm = &comm,
                              .flavor = MPI_WIN_FLAVOR_CREATE,
                              .base = calloc(1, WINDOW),
                              .size = WINDOW,
                              .unit = 1,
                              .locals = &here,
                              .local_count = 1,
                              .cards = &card};
    if (!win.base)
        abort();
    chempi_list_init(&win.active);
    chempi_list_init(&win.regions);
}

static void stop(void)
{
    chempi_rma_free_peers(&win);
    free(win.base);
}

/* Without an answer; nothing that waits for data of its own. */
static void be_quiet(struct chempi_rma_head *head)
{
    static const uint8_t kinds[] = {CHEMPI_RMA_DO_PUT, CHEMPI_RMA_DO_FOLD,
                                    CHEMPI_RMA_DO_TYPE, CHEMPI_RMA_DO_FORGET};

    if (!memchr(kinds, head->kind, sizeof(kinds)))
        head->kind = kinds[head->kind % sizeof(kinds)];
    if (head->kind == CHEMPI_RMA_DO_TYPE && head->total > DESCRIPTION_MAX)
        head->total %= DESCRIPTION_MAX;
}

/* The requests that are whole; their bytes. */
static size_t quieten(unsigned char *data, size_t size)
{
    size_t at = 0;

    while (size - at >= sizeof(struct chempi_rma_head)) {
        struct chempi_rma_head head;
        size_t space;

        memcpy(&head, data + at, sizeof(head));
        space = (sizeof(head) + (size_t)head.payload + 7) / 8 * 8;
        if (space > size - at)
            break;
        be_quiet(&head);
        memcpy(data + at, &head, sizeof(head));
        at += space;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *copy = malloc(size + 1);
    unsigned char *message = NULL;
    size_t len;

    if (!copy)
        abort();
    memcpy(copy, data, size);
    len = quieten(copy, size);
    if (len)
        message = malloc(len); /* nothing is read behind it */
    if (len && !message)
        abort();
    if (len) {
        memcpy(message, copy, len);
        start();
        chempi_rma_serve(&win, OTHER, message, len);
        stop();
    }
    free(message);
    free(copy);
    return 0;
}

/* ---- seeds ---- */

/* Layouts of each kind. */
static const struct chempi_layout_node *make_layout(unsigned i)
{
    static const uint64_t lens[] = {8, 16, 8};
    static const int64_t gaps[] = {0, 24, 72};
    static const int64_t apart[] = {0, 200, 240, 800};
    const struct chempi_layout_node *parts[2];

    switch (i) {
    case 0:
        return chempi_layout_repeat(chempi_layout_block(0, 8), 5, 16);
    case 1:
        return chempi_layout_blocks(3, gaps, lens);
    case 2:
        return chempi_layout_indexed(make_layout(0), 4, apart);
    case 3:
        parts[0] = make_layout(1);
        parts[1] = chempi_layout_shift(make_layout(0), 8);
        return chempi_layout_join(2, apart, parts);
    case 4:
        return chempi_layout_repeat(make_layout(3), 3, 400);
    case 5: /* all at one place */
        return chempi_layout_block(0, 8);
    default:
        return NULL;
    }
}

static void ask(struct chempi_rma_peer *peer, struct chempi_datatype *type,
                uint8_t kind, uint64_t count)
{
    static unsigned char data[WINDOW];
    const struct chempi_rma_head head = {.kind = kind,
                                         .elem = CHEMPI_BASIC_TYPE_I64,
                                         .op = CHEMPI_OP_SUM,
                                         .disp = 64,
                                         .count = count,
                                         .len = type->layout->size * count,
                                         .type =
                                             chempi_rma_tell_type(peer, type)};

    if (!head.type || chempi_rma_request(peer, &head, data, NULL, head.len))
        abort();
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_layout layout = {.root = make_layout(i)};
    struct chempi_datatype type = {.layout = &layout};
    const struct chempi_rma_head forget = {.kind = CHEMPI_RMA_DO_FORGET,
                                           .type = 1};
    struct chempi_rma_peer *peer;
    size_t len;

    if (!layout.root)
        return 0;
    layout.size = layout.root->size;
    layout.extent = i == 5 ? 0 : 1200;
    start();
    peer = chempi_rma_peer(&win, OTHER);
    if (!peer)
        abort();
    ask(peer, &type, CHEMPI_RMA_DO_PUT, 2);
    ask(peer, &type, CHEMPI_RMA_DO_FOLD, 1);
    if (chempi_rma_request(peer, &forget, NULL, NULL, 0))
        abort();
    len = peer->batch.len;
    memcpy(out, peer->batch.data, len);
    chempi_list_remove(&peer->active);
    stop();
    chempi_layout_release(layout.root);
    return len;
}
