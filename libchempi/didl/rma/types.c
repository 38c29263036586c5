/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts of target datatypes on their way to the target. A layout travels
 * once per peer and window; operations name it by a serial number that is
 * never used again, and of the layouts that a peer was told the oldest one is
 * withdrawn when there are too many.
 *
 *   T1  what the origin has told holds the layout, so its address is not used
 *       for another one meanwhile
 *   T2  descriptions come from another process: the parser trusts no number
 *       in them, and the span of a layout is computed here, never told
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/services/layout/layout.h"

enum {
    TOLD_MAX = 32,                /* layouts that one peer keeps of another */
    DESCRIPTION_MAX = 1073741824, /* bytes; */
    FOREIGN_MAX = 16777216        /* all that a member of another world tells */
};

/* One node of the tree: this, its lists, its children. */
struct wire_node {
    uint32_t kind; /* enum chempi_layout_kind */
    uint32_t reserved;
    uint64_t size;
    int64_t offset;
    uint64_t count;
    int64_t stride;
};

struct told {
    struct chempi_list link;
    const struct chempi_layout_node *root; /* T1: held */
    int64_t extent;
    uint32_t serial;
};

/* ---- writing ---- */

struct writer {
    unsigned char *data; /* NULL: count only */
    uint64_t len;
};

static void put(struct writer *w, const void *data, uint64_t len)
{
    if (w->data && len)
        memcpy(w->data + w->len, data, len);
    w->len += len;
}

static void write_node(struct writer *w, const struct chempi_layout_node *node)
{
    struct wire_node head = {.kind = node->kind,
                             .size = node->size,
                             .offset = node->offset,
                             .count = node->count,
                             .stride = node->stride};

    put(w, &head, sizeof(head));
    switch (node->kind) {
    case CHEMPI_LAYOUT_STRIDED:
        write_node(w, node->child);
        break;
    case CHEMPI_LAYOUT_INDEXED:
        put(w, node->offsets, node->count * sizeof(int64_t));
        write_node(w, node->child);
        break;
    case CHEMPI_LAYOUT_RUNS:
        put(w, node->offsets, node->count * sizeof(int64_t));
        put(w, node->starts, (node->count + 1) * sizeof(uint64_t));
        break;
    case CHEMPI_LAYOUT_PARTS:
        put(w, node->offsets, node->count * sizeof(int64_t));
        for (uint64_t i = 0; i < node->count; i++)
            write_node(w, node->children[i]);
        break;
    default:
        break;
    }
}

static int send_description(struct chempi_rma_peer *peer, struct told *told)
{
    struct writer w = {0};
    struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_TYPE,
                                   .type = told->serial};
    int rc = MPI_SUCCESS;

    write_node(&w, told->root);
    w.data = chempi_sys->malloc(w.len);
    if (!w.data)
        return MPI_ERR_NO_MEM;
    head.total = w.len;
    w.len = 0;
    write_node(&w, told->root);
    head.shift = told->extent;
    for (uint64_t at = 0; at < w.len && rc == MPI_SUCCESS;) {
        uint64_t n = w.len - at < CHEMPI_RMA_PIECE_MAX ? w.len - at
                                                       : CHEMPI_RMA_PIECE_MAX;

        head.at = at;
        head.len = n;
        rc = chempi_rma_request(peer, &head, w.data + at, NULL, n);
        at += n;
    }
    free(w.data);
    return rc;
}

static void drop_told(struct chempi_rma_peer *peer, struct told *told)
{
    chempi_list_remove(&told->link);
    chempi_layout_release(told->root);
    free(told);
    peer->told_count--;
}

static int withdraw_oldest(struct chempi_rma_peer *peer)
{
    struct told *told =
        CHEMPI_CONTAINER_OF(chempi_list_first(&peer->told), struct told, link);
    struct chempi_rma_head head = {.kind = CHEMPI_RMA_DO_FORGET,
                                   .type = told->serial};
    int rc = chempi_rma_request(peer, &head, NULL, NULL, 0);

    drop_told(peer, told);
    return rc;
}

static struct told *find_told(struct chempi_rma_peer *peer,
                              const struct chempi_layout *layout)
{
    CHEMPI_LIST_FOR (link, &peer->told) {
        struct told *told = CHEMPI_CONTAINER_OF(link, struct told, link);

        if (told->root == layout->root && told->extent == layout->extent)
            return told;
    }
    return NULL;
}

uint32_t chempi_rma_tell_type(struct chempi_rma_peer *peer,
                              struct chempi_datatype *type)
{
    struct told *told = find_told(peer, type->layout);

    if (told)
        return told->serial;
    if (peer->told_count >= TOLD_MAX && withdraw_oldest(peer))
        return 0;
    told = chempi_sys->calloc(1, sizeof(*told));
    if (!told)
        return 0;
    told->root = chempi_layout_hold(type->layout->root);
    told->extent = type->layout->extent;
    told->serial = ++peer->win->next_serial;
    chempi_list_append(&peer->told, &told->link);
    peer->told_count++;
    if (send_description(peer, told)) {
        drop_told(peer, told);
        return 0;
    }
    return told->serial;
}

/* ---- reading ---- */

struct reader {
    const unsigned char *data;
    uint64_t len;
    uint64_t at;
};

struct span {
    int64_t low;
    int64_t high;
};

/* NULL: less is there. */
static const void *take(struct reader *r, uint64_t count, uint64_t size)
{
    const void *data = r->data + r->at;

    if (count > (r->len - r->at) / size)
        return NULL;
    r->at += count * size;
    return data;
}

static bool join_shifted(struct span *all, const struct span *one, int64_t by)
{
    struct span s;

    if (CHEMPI_ADD_OVERFLOWS(one->low, by, &s.low) ||
        CHEMPI_ADD_OVERFLOWS(one->high, by, &s.high))
        return false;
    if (s.low < all->low)
        all->low = s.low;
    if (s.high > all->high)
        all->high = s.high;
    return true;
}

static const struct span nothing = {.low = INT64_MAX, .high = INT64_MIN};

static const struct chempi_layout_node *read_node(struct reader *r, int depth,
                                                  struct span *span);

static const struct chempi_layout_node *
read_strided(struct reader *r, const struct wire_node *head, int depth,
             struct span *span)
{
    const struct chempi_layout_node *child;
    struct span one;
    int64_t last;

    child = read_node(r, depth, &one);
    if (!child)
        return NULL;
    *span = one;
    if (!head->count || head->count > INT64_MAX ||
        CHEMPI_MUL_OVERFLOWS((int64_t)head->count - 1, head->stride, &last) ||
        !join_shifted(span, &one, last)) {
        chempi_layout_release(child);
        return NULL;
    }
    return chempi_layout_repeat(child, head->count, head->stride);
}

/* The lists in the description need not be aligned. */
static void *copy_list(struct reader *r, uint64_t count)
{
    const void *data = take(r, count, sizeof(int64_t));
    void *list =
        data && count ? chempi_sys->malloc(count * sizeof(int64_t)) : NULL;

    if (list)
        memcpy(list, data, count * sizeof(int64_t));
    return list;
}

static const struct chempi_layout_node *
read_indexed(struct reader *r, const struct wire_node *head, int depth,
             struct span *span)
{
    int64_t *offsets = copy_list(r, head->count);
    const struct chempi_layout_node *node = NULL;
    struct span one;
    bool is_ok;

    if (!offsets)
        return NULL;
    node = read_node(r, depth, &one);
    is_ok = node != NULL;
    *span = nothing;
    for (uint64_t i = 0; i < head->count && is_ok; i++)
        is_ok = join_shifted(span, &one, offsets[i]);
    if (is_ok) {
        node = chempi_layout_indexed(node, head->count, offsets);
    } else {
        chempi_layout_release(node);
        node = NULL;
    }
    free(offsets);
    return node;
}

static const struct chempi_layout_node *
read_runs(struct reader *r, const struct wire_node *head, struct span *span)
{
    int64_t *offsets = copy_list(r, head->count);
    uint64_t *starts = offsets && head->count < UINT64_MAX
                           ? copy_list(r, head->count + 1)
                           : NULL;
    const struct chempi_layout_node *node = NULL;
    bool is_ok = starts != NULL;

    *span = nothing;
    for (uint64_t i = 0; i < head->count && is_ok; i++) {
        uint64_t len = starts[i + 1] - starts[i];
        struct span one = {.high = (int64_t)len};

        is_ok = starts[i + 1] >= starts[i] && len <= INT64_MAX &&
                join_shifted(span, &one, offsets[i]);
        starts[i] = len;
    }
    if (is_ok)
        node = chempi_layout_blocks(head->count, offsets, starts);
    free(starts);
    free(offsets);
    return node;
}

static const struct chempi_layout_node *read_parts(struct reader *r,
                                                   const struct wire_node *head,
                                                   int depth, struct span *span)
{
    int64_t *offsets = copy_list(r, head->count);
    const struct chempi_layout_node **children = NULL;
    const struct chempi_layout_node *node = NULL;
    uint64_t done = 0;

    *span = nothing;
    if (offsets)
        children = chempi_sys->calloc(head->count, sizeof(*children));
    while (children && done < head->count) {
        struct span one;

        children[done] = read_node(r, depth, &one);
        if (!children[done])
            break;
        done++;
        if (!join_shifted(span, &one, offsets[done - 1]))
            break;
    }
    if (children && done == head->count) {
        node = chempi_layout_join(head->count, offsets, children);
    } else {
        for (uint64_t i = 0; i < done; i++)
            chempi_layout_release(children[i]);
    }
    free(children);
    free(offsets);
    return node;
}

static const struct chempi_layout_node *read_node(struct reader *r, int depth,
                                                  struct span *span)
{
    const struct chempi_layout_node *node = NULL;
    struct wire_node head;
    const void *data = take(r, 1, sizeof(head));
    struct span own = nothing;

    if (!data || depth >= CHEMPI_LAYOUT_DEPTH_MAX)
        return NULL;
    memcpy(&head, data, sizeof(head));
    if (head.kind == CHEMPI_LAYOUT_BLOCK && head.size <= INT64_MAX) {
        own = (struct span){.high = (int64_t)head.size};
        node = chempi_layout_block(0, head.size);
    } else if (head.kind == CHEMPI_LAYOUT_STRIDED) {
        node = read_strided(r, &head, depth + 1, &own);
    } else if (head.kind == CHEMPI_LAYOUT_INDEXED) {
        node = read_indexed(r, &head, depth + 1, &own);
    } else if (head.kind == CHEMPI_LAYOUT_RUNS) {
        node = read_runs(r, &head, &own);
    } else if (head.kind == CHEMPI_LAYOUT_PARTS) {
        node = read_parts(r, &head, depth + 1, &own);
    }
    if (!node)
        return NULL;
    *span = nothing;
    if (!join_shifted(span, &own, head.offset)) {
        chempi_layout_release(node);
        return NULL;
    }
    return chempi_layout_shift(node, head.offset);
}

/* ---- what the peer has told ---- */

struct chempi_rma_type *chempi_rma_find_type(struct chempi_rma_peer *peer,
                                             uint32_t serial)
{
    CHEMPI_LIST_FOR (link, &peer->known) {
        struct chempi_rma_type *type =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_type, link);

        if (type->serial == serial)
            return type;
    }
    return NULL;
}

/* The last operation under way that holds a layout, or NULL. */
static struct chempi_rma_item *find_user(struct chempi_rma_peer *peer,
                                         const struct chempi_layout_node *root)
{
    struct chempi_rma_item *last = NULL;

    CHEMPI_LIST_FOR (link, &peer->in) {
        struct chempi_rma_item *item =
            CHEMPI_CONTAINER_OF(link, struct chempi_rma_item, link);

        if (root && item->root == root)
            last = item;
    }
    return last;
}

/* A description that is withdrawn counts until nobody uses it. */
static void drop_known(struct chempi_rma_peer *peer,
                       struct chempi_rma_type *type)
{
    struct chempi_rma_item *user = chempi_foreign_is(peer->proc)
                                       ? find_user(peer, type->layout.root)
                                       : NULL;

    chempi_list_remove(&type->link);
    if (user)
        user->described += type->blob_len;
    else
        peer->known_bytes -= type->blob_len;
    chempi_layout_release(type->layout.root);
    free(type->blob);
    free(type);
    peer->known_count--;
}

static struct chempi_rma_type *begin_type(struct chempi_rma_peer *peer,
                                          uint32_t serial, uint64_t total,
                                          int64_t extent)
{
    struct chempi_rma_type *type;

    if (!total || total > DESCRIPTION_MAX || peer->known_count > TOLD_MAX ||
        (chempi_foreign_is(peer->proc) &&
         total > FOREIGN_MAX - peer->known_bytes))
        return NULL;
    type = chempi_sys->calloc(1, sizeof(*type));
    if (!type)
        return NULL;
    type->blob = chempi_sys->malloc(total);
    if (!type->blob) {
        free(type);
        return NULL;
    }
    type->serial = serial;
    type->blob_len = total;
    type->layout.extent = extent;
    chempi_list_append(&peer->known, &type->link);
    peer->known_count++;
    peer->known_bytes += total;
    return type;
}

int chempi_rma_hear_type(struct chempi_rma_peer *peer, uint32_t serial,
                         uint64_t total, uint64_t at, int64_t extent,
                         const void *data, uint64_t len)
{
    struct chempi_rma_type *type = chempi_rma_find_type(peer, serial);
    struct reader r;
    struct span span;

    if (!type && at == 0)
        type = begin_type(peer, serial, total, extent);
    if (!type || !type->blob || at != type->blob_have ||
        len > type->blob_len - at)
        return MPI_ERR_OTHER;
    memcpy(type->blob + at, data, len);
    type->blob_have += len;
    if (type->blob_have < type->blob_len)
        return MPI_SUCCESS;
    r = (struct reader){.data = type->blob, .len = type->blob_len};
    type->layout.root = read_node(&r, 0, &span);
    free(type->blob);
    type->blob = NULL;
    if (!type->layout.root)
        return MPI_ERR_OTHER;
    type->layout.size = type->layout.root->size;
    type->low = span.low;
    type->high = span.high;
    return MPI_SUCCESS;
}

void chempi_rma_forget_type(struct chempi_rma_peer *peer, uint32_t serial)
{
    struct chempi_rma_type *type = chempi_rma_find_type(peer, serial);

    if (type)
        drop_known(peer, type);
}

void chempi_rma_free_types(struct chempi_rma_peer *peer)
{
    while (!chempi_list_is_empty(&peer->told))
        drop_told(peer, CHEMPI_CONTAINER_OF(chempi_list_first(&peer->told),
                                            struct told, link));
    while (!chempi_list_is_empty(&peer->known))
        drop_known(peer, CHEMPI_CONTAINER_OF(chempi_list_first(&peer->known),
                                             struct chempi_rma_type, link));
}
