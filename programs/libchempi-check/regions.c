/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that pending operations use: a tree of intervals by start, balanced
 * by random priorities, that knows the greatest end below each node.
 *
 *   R1  start of the left subtree <= own start <= that of the right one
 *   R2  a node's priority is not less than those of its children
 *   R3  top is the greatest end in the subtree
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "programs/libchempi-check/check.h"

struct check_region {
    struct check_region *left;
    struct check_region *right;
    uintptr_t start;
    uintptr_t end; /* behind it */
    uintptr_t top;
    uint32_t priority;
    enum check_use use;
    uint64_t sum; /* of what is read, when the operation began */
    struct check_site site;
};

static struct check_region *root;  /* K1 */
static uint32_t seed = 1;          /* K1 */
static struct check_region *spare; /* K1: by left; as many as there were */

/* ---- the tree ---- */

static void mend_top(struct check_region *r)
{
    r->top = r->end;
    if (r->left && r->left->top > r->top)
        r->top = r->left->top;
    if (r->right && r->right->top > r->top)
        r->top = r->right->top;
}

/* All of a stand before all of b. */
static struct check_region *join(struct check_region *a, struct check_region *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->priority >= b->priority) {
        a->right = join(a->right, b);
        mend_top(a);
        return a;
    }
    b->left = join(a, b->left);
    mend_top(b);
    return b;
}

/* Into those that start before this one (by address, if at the same place)
 * and the others. */
static bool is_before(const struct check_region *a,
                      const struct check_region *b)
{
    return a->start != b->start ? a->start < b->start
                                : (uintptr_t)a < (uintptr_t)b;
}

static void split(struct check_region *tree, const struct check_region *at,
                  struct check_region **low, struct check_region **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (is_before(tree, at)) {
        *low = tree;
        split(tree->right, at, &tree->right, high);
        mend_top(tree);
    } else {
        *high = tree;
        split(tree->left, at, low, &tree->left);
        mend_top(tree);
    }
}

static void insert(struct check_region *r)
{
    struct check_region **at = &root;

    seed = seed * 1664525u + 1013904223u;
    r->priority = seed;
    while (*at && (*at)->priority >= r->priority) {
        if ((*at)->top < r->end)
            (*at)->top = r->end;
        at = is_before(*at, r) ? &(*at)->right : &(*at)->left;
    }
    split(*at, r, &r->left, &r->right);
    mend_top(r);
    *at = r;
}

static struct check_region *removed(struct check_region *tree,
                                    const struct check_region *r)
{
    if (tree == r)
        return join(tree->left, tree->right);
    if (!tree)
        return NULL;
    if (is_before(r, tree))
        tree->left = removed(tree->left, r);
    else
        tree->right = removed(tree->right, r);
    mend_top(tree);
    return tree;
}

/* One in the way of this use, or NULL. Two may read at the same time. */
static const struct check_region *find(const struct check_region *tree,
                                       uintptr_t start, uintptr_t end,
                                       enum check_use use)
{
    const struct check_region *found;

    if (!tree || tree->top <= start)
        return NULL;
    found = find(tree->left, start, end, use);
    if (found)
        return found;
    if (tree->start >= end)
        return NULL;
    if (tree->end > start && (use == CHECK_WRITES || tree->use == CHECK_WRITES))
        return tree;
    return find(tree->right, start, end, use);
}

/* ---- buffers ---- */

/* Handles of predefined types are small numbers (MPI 5.0, appendix A). */
enum { PREDEFINED = 1024 };

/* Bytes of an element of a predefined type in one piece, which is asked for
 * once; 0: not asked for, or none. Of a number that all would find. */
static _Atomic uint32_t sizes[PREDEFINED];

static bool find_piece(MPI_Datatype type, MPI_Count count, MPI_Count *lb,
                       MPI_Count *bytes)
{
    const uintptr_t number = (uintptr_t)type;
    uint32_t size;

    if (number >= PREDEFINED)
        return check_door->piece(type, count, lb, bytes);
    size = atomic_load_explicit(&sizes[number], memory_order_relaxed);
    if (size == 0) {
        if (!check_door->piece(type, 2, lb, bytes) || *lb != 0)
            return check_door->piece(type, count, lb, bytes);
        size = (uint32_t)(*bytes / 2);
        atomic_store_explicit(&sizes[number], size, memory_order_relaxed);
    }
    *lb = 0;
    return !CHEMPI_MUL_OVERFLOWS(count, (MPI_Count)size, bytes);
}

bool check_extent(const void *buf, MPI_Count count, MPI_Datatype type,
                  uintptr_t *start, size_t *len)
{
    MPI_Count lb = 0;
    MPI_Count bytes = 0;

    if (count <= 0 || buf == MPI_IN_PLACE || !check_door ||
        !find_piece(type, count, &lb, &bytes))
        return false;
    *start = (uintptr_t)buf + (uintptr_t)lb;
    *len = (size_t)bytes;
    return true;
}

/* ---- memory for them ---- */

static struct check_region *take(void)
{
    struct check_region *r;

    check_lock();
    r = spare;
    if (r)
        spare = r->left;
    check_unlock();
    return r ? r : malloc(sizeof(*r));
}

static void give(struct check_region *r)
{
    check_lock();
    r->left = spare;
    spare = r;
    check_unlock();
}

/* Bytes are taken eight at a time. */
static uint64_t sum_of(uintptr_t start, size_t len)
{
    const unsigned char *at = (const unsigned char *)start;
    uint64_t sum = len;
    uint64_t word = 0;

    for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    word = 0;
    memcpy(&word, at, len);
    return (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static void complain(const struct check_call *call,
                     const struct check_site *other)
{
    char own[CHECK_WORDS];
    char theirs[CHECK_WORDS];

    check_report("%s: its buffer overlaps that of %s, which is not complete",
                 check_site_words(&call->site, own, sizeof(own)),
                 check_site_words(other, theirs, sizeof(theirs)));
}

void check_region_test(const struct check_call *call, enum check_use use,
                       const void *buf, MPI_Count count, MPI_Datatype type)
{
    const struct check_region *found;
    struct check_site other = {0};
    uintptr_t start;
    size_t len;

    check_lock();
    found = root;
    check_unlock();
    if (!found || !check_extent(buf, count, type, &start, &len))
        return;
    check_lock();
    found = find(root, start, start + len, use);
    if (found)
        other = found->site;
    check_unlock();
    if (found)
        complain(call, &other);
}

void check_region_pair(const struct check_call *call, const void *sendbuf,
                       MPI_Count sendcount, MPI_Datatype sendtype,
                       const void *recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype)
{
    char words[CHECK_WORDS];
    uintptr_t send;
    uintptr_t recv;
    size_t sent;
    size_t room;

    check_region_test(call, CHECK_READS, sendbuf, sendcount, sendtype);
    check_region_test(call, CHECK_WRITES, recvbuf, recvcount, recvtype);
    if (check_extent(sendbuf, sendcount, sendtype, &send, &sent) &&
        check_extent(recvbuf, recvcount, recvtype, &recv, &room) &&
        send < recv + room && recv < send + sent)
        check_report("%s: its send and receive buffers overlap",
                     check_site_words(&call->site, words, sizeof(words)));
}

struct check_region *check_region_open(const struct check_site *site,
                                       enum check_use use, const void *buf,
                                       MPI_Count count, MPI_Datatype type)
{
    struct check_region *r;
    uintptr_t start;
    size_t len;

    if (type == MPI_DATATYPE_NULL ||
        !check_extent(buf, count, type, &start, &len))
        return NULL;
    r = take();
    if (!r)
        return NULL;
    *r = (struct check_region){
        .start = start, .end = start + len, .use = use, .site = *site};
    if (use == CHECK_READS)
        r->sum = sum_of(start, len);
    check_lock();
    insert(r);
    check_unlock();
    return r;
}

void check_region_close(struct check_region *region,
                        const struct check_site *end)
{
    char began[CHECK_WORDS];
    char ended[CHECK_WORDS];

    if (!region)
        return;
    check_lock();
    root = removed(root, region);
    check_unlock();
    if (end && region->use == CHECK_READS &&
        region->sum != sum_of(region->start, region->end - region->start))
        check_report("%s: its buffer was changed before the operation was "
                     "complete (%s)",
                     check_site_words(&region->site, began, sizeof(began)),
                     check_site_words(end, ended, sizeof(ended)));
    give(region);
}
