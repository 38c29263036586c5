/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locked-memory manager; see lmm.h.
 *
 * Locking works in two passes, so that an error changes nothing: first the
 * kernel locks the gaps between areas and all nodes that could be needed are
 * allocated; then the tree is changed, which cannot fail.
 */
#define _GNU_SOURCE /* mlock */
#include "libchempi/devices/scivia/adapter/memory/lmm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "common/host/maps.h"

#define PAGE ((uintptr_t)4096)

struct node {
    struct chempi_lmm_area area;
    struct node *left; /* also the link of the spare list */
    struct node *right;
    int depth; /* of the subtree, 1 for a leaf */
};

struct chempi_lmm {
    struct chempi_lmm_pager pager;
    uint64_t budget;
    uint64_t locked; /* bytes in areas */
    struct node *root;
    struct node *spare;
};

/* --- the tree --- */

static int depth_of(const struct node *node)
{
    return node ? node->depth : 0;
}

static void update(struct node *node)
{
    int left = depth_of(node->left);
    int right = depth_of(node->right);

    node->depth = 1 + (left > right ? left : right);
}

static struct node *rotate_right(struct node *node)
{
    struct node *top = node->left;

    node->left = top->right;
    top->right = node;
    update(node);
    update(top);
    return top;
}

static struct node *rotate_left(struct node *node)
{
    struct node *top = node->right;

    node->right = top->left;
    top->left = node;
    update(node);
    update(top);
    return top;
}

/* Restore L4 at a node whose subtrees hold it; returns the new top. */
static struct node *balance(struct node *node)
{
    int lean = depth_of(node->left) - depth_of(node->right);

    if (lean > 1) {
        if (depth_of(node->left->left) < depth_of(node->left->right))
            node->left = rotate_left(node->left);
        return rotate_right(node);
    }
    if (lean < -1) {
        if (depth_of(node->right->right) < depth_of(node->right->left))
            node->right = rotate_right(node->right);
        return rotate_left(node);
    }
    update(node);
    return node;
}

static struct node *insert(struct node *node, struct node *fresh)
{
    if (!node)
        return fresh;
    if (fresh->area.start < node->area.start)
        node->left = insert(node->left, fresh);
    else
        node->right = insert(node->right, fresh);
    return balance(node);
}

static struct node *take_first(struct node *node, struct node **first)
{
    if (!node->left) {
        *first = node;
        return node->right;
    }
    node->left = take_first(node->left, first);
    return balance(node);
}

/* Take the area that starts at `start` out; *taken is its node. */
static struct node *extract(struct node *node, uintptr_t start,
                            struct node **taken)
{
    struct node *next;

    if (!node)
        return NULL;
    if (start < node->area.start) {
        node->left = extract(node->left, start, taken);
    } else if (start > node->area.start) {
        node->right = extract(node->right, start, taken);
    } else {
        *taken = node;
        if (!node->right)
            return node->left;
        node->right = take_first(node->right, &next);
        next->left = node->left;
        next->right = node->right;
        node = next;
    }
    return balance(node);
}

/* The first area that ends above `at`, or NULL. */
static struct node *first_above(const struct chempi_lmm *lmm, uintptr_t at)
{
    struct node *found = NULL;

    for (struct node *node = lmm->root; node;) {
        if (node->area.end > at) {
            found = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return found;
}

/* --- nodes in stock --- */

static int stock(struct chempi_lmm *lmm, size_t count)
{
    size_t have = 0;

    for (struct node *node = lmm->spare; node; node = node->left)
        have++;
    for (; have < count; have++) {
        struct node *node = chempi_sys->calloc(1, sizeof(*node));

        if (!node)
            return -ENOMEM;
        node->left = lmm->spare;
        lmm->spare = node;
    }
    return 0;
}

static void add(struct chempi_lmm *lmm, uintptr_t start, uintptr_t end,
                uint32_t count)
{
    struct node *node = lmm->spare;

    lmm->spare = node->left;
    *node = (struct node){.area = {.start = start, .end = end, .count = count},
                          .depth = 1};
    lmm->root = insert(lmm->root, node);
}

static void drop(struct chempi_lmm *lmm, uintptr_t start)
{
    struct node *node = NULL;

    lmm->root = extract(lmm->root, start, &node);
    if (!node)
        return;
    node->left = lmm->spare;
    lmm->spare = node;
}

/* Keep a few for next time. */
static void trim(struct chempi_lmm *lmm)
{
    struct node *keep = lmm->spare;

    for (int i = 0; keep && i < 8; i++)
        keep = keep->left;
    while (keep && keep->left) {
        struct node *node = keep->left;

        keep->left = node->left;
        free(node);
    }
}

/* --- ranges --- */

static int to_pages(const void *ptr, size_t len, uintptr_t *start,
                    uintptr_t *end)
{
    uintptr_t first = (uintptr_t)ptr;

    if (len == 0 || len > UINTPTR_MAX - PAGE ||
        first > UINTPTR_MAX - PAGE - len)
        return -EINVAL;
    *start = first & ~(PAGE - 1);
    *end = (first + len + PAGE - 1) & ~(PAGE - 1);
    return 0;
}

/* The next gap at or above *at and below end; false: there is none. */
static bool next_gap(const struct chempi_lmm *lmm, uintptr_t *at, uintptr_t end,
                     uintptr_t *gap_end)
{
    while (*at < end) {
        const struct node *node = first_above(lmm, *at);

        if (!node || node->area.start >= end) {
            *gap_end = end;
            return true;
        }
        if (node->area.start > *at) {
            *gap_end = node->area.start;
            return true;
        }
        *at = node->area.end;
    }
    return false;
}

static void unlock_gaps(struct chempi_lmm *lmm, uintptr_t start, uintptr_t end)
{
    uintptr_t gap_end;

    while (next_gap(lmm, &start, end, &gap_end)) {
        /* Pages that are not mapped any more need no unlocking. */
        (void)lmm->pager.unlock((const void *)start, gap_end - start);
        start = gap_end;
    }
}

/* Let the kernel lock the gaps; all or nothing. Counts them. */
static int lock_gaps(struct chempi_lmm *lmm, uintptr_t start, uintptr_t end,
                     size_t *gaps)
{
    uint64_t bytes = 0;
    uintptr_t gap_end;
    uintptr_t at = start;

    *gaps = 0;
    while (next_gap(lmm, &at, end, &gap_end)) {
        bytes += gap_end - at;
        at = gap_end;
        ++*gaps;
    }
    if (bytes > 0 &&
        (lmm->locked > lmm->budget || bytes > lmm->budget - lmm->locked))
        return -ENOSPC;
    at = start;
    while (next_gap(lmm, &at, end, &gap_end)) {
        if (lmm->pager.lock((const void *)at, gap_end - at) != 0) {
            int code = -errno;

            unlock_gaps(lmm, start, at);
            return code;
        }
        at = gap_end;
    }
    lmm->locked += bytes;
    return 0;
}

/* Cut the area that has `at` inside, so that one starts there. */
static void split(struct chempi_lmm *lmm, uintptr_t at)
{
    struct node *node = first_above(lmm, at);
    uintptr_t end;

    if (!node || node->area.start >= at)
        return;
    end = node->area.end;
    node->area.end = at;
    add(lmm, at, end, node->area.count);
}

/* Join the areas that touch at `at` if they have one count (L2). */
static void join(struct chempi_lmm *lmm, uintptr_t at)
{
    struct node *left = at ? first_above(lmm, at - 1) : NULL;
    struct node *right = first_above(lmm, at);

    if (!left || !right || left == right || left->area.end != at ||
        right->area.start != at || left->area.count != right->area.count)
        return;
    at = right->area.end;
    drop(lmm, right->area.start);
    /* Extracting moves no area between nodes: `left` is still its own. */
    left->area.end = at;
}

/* Join wherever areas meet in [start, end]. */
static void join_all(struct chempi_lmm *lmm, uintptr_t start, uintptr_t end)
{
    while (start <= end) {
        struct node *node;

        join(lmm, start);
        node = first_above(lmm, start);
        if (!node)
            return;
        start = node->area.start > start ? node->area.start : node->area.end;
    }
}

static bool is_covered(const struct chempi_lmm *lmm, uintptr_t start,
                       uintptr_t end, uint32_t *highest, size_t *areas)
{
    *highest = 0;
    *areas = 0;
    while (start < end) {
        const struct node *node = first_above(lmm, start);

        if (!node || node->area.start > start)
            return false;
        if (node->area.count > *highest)
            *highest = node->area.count;
        ++*areas;
        start = node->area.end;
    }
    return true;
}

static uint32_t highest_in(const struct chempi_lmm *lmm, uintptr_t start,
                           uintptr_t end)
{
    uint32_t highest = 0;

    while (start < end) {
        const struct node *node = first_above(lmm, start);

        if (!node || node->area.start >= end)
            break;
        if (node->area.count > highest)
            highest = node->area.count;
        start = node->area.end;
    }
    return highest;
}

/* --- the interface --- */

int chempi_lmm_lock_area(struct chempi_lmm *lmm, const void *ptr, size_t len)
{
    uintptr_t gap_end;
    uintptr_t start;
    uintptr_t end;
    uintptr_t at;
    size_t gaps;
    int rc;

    rc = to_pages(ptr, len, &start, &end);
    if (rc < 0)
        return rc;
    if (highest_in(lmm, start, end) == UINT32_MAX)
        return -EOVERFLOW;
    rc = lock_gaps(lmm, start, end, &gaps);
    if (rc < 0)
        return rc;
    rc = stock(lmm, gaps + 2);
    if (rc < 0) {
        at = start;
        while (next_gap(lmm, &at, end, &gap_end)) {
            lmm->locked -= gap_end - at;
            at = gap_end;
        }
        unlock_gaps(lmm, start, end);
        return rc;
    }
    split(lmm, start);
    split(lmm, end);
    at = start;
    while (at < end) {
        struct node *node = first_above(lmm, at);

        if (node && node->area.start <= at) {
            node->area.count++;
            at = node->area.end;
        } else {
            gap_end = node && node->area.start < end ? node->area.start : end;
            add(lmm, at, gap_end, 1);
            at = gap_end;
        }
    }
    join_all(lmm, start, end);
    trim(lmm);
    CHEMPI_CHECK_EVERY(64, chempi_lmm_check(lmm));
    return 0;
}

int chempi_lmm_unlock_area(struct chempi_lmm *lmm, const void *ptr, size_t len)
{
    uint32_t highest;
    uintptr_t start;
    uintptr_t end;
    uintptr_t at;
    size_t areas;
    int rc;

    rc = to_pages(ptr, len, &start, &end);
    if (rc < 0)
        return rc;
    if (!is_covered(lmm, start, end, &highest, &areas))
        return -ENOENT;
    rc = stock(lmm, 2);
    if (rc < 0)
        return rc;
    split(lmm, start);
    split(lmm, end);
    for (at = start; at < end;) {
        struct node *node = first_above(lmm, at);
        uintptr_t next = node->area.end;

        if (--node->area.count == 0) {
            /* Pages that are not mapped any more need no unlocking. */
            (void)lmm->pager.unlock((const void *)at, next - at);
            lmm->locked -= next - at;
            drop(lmm, at);
        }
        at = next;
    }
    join_all(lmm, start, end);
    trim(lmm);
    CHEMPI_CHECK_EVERY(64, chempi_lmm_check(lmm));
    return 0;
}

static void unlock_part(void *arg, uintptr_t start, size_t len)
{
    (void)arg;
    (void)munlock((const void *)start, len); /* cannot fail: it is mapped */
}

/* munlock(2) stops at the first page that is not mapped. */
static int unlock_mapped(const void *start, size_t len)
{
    uintptr_t at = (uintptr_t)start;

    if (munlock(start, len) == 0 || errno != ENOMEM)
        return 0;
    return chempi_maps_each(at, at + len, unlock_part, NULL) < 0 ? -1 : 0;
}

static const struct chempi_lmm_pager kernel = {mlock, unlock_mapped};

/* What the kernel would allow; a privileged process is not limited. */
static uint64_t limit_of_process(void)
{
    struct rlimit limit;

    if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

int chempi_lmm_create(const struct chempi_lmm_pager *pager,
                      uint64_t budget_bytes, struct chempi_lmm **out)
{
    struct chempi_lmm *lmm = chempi_sys->calloc(1, sizeof(*lmm));

    if (!lmm)
        return -ENOMEM;
    lmm->pager = pager ? *pager : kernel;
    chempi_lmm_set_budget(lmm, budget_bytes);
    *out = lmm;
    return 0;
}

static void destroy_tree(struct chempi_lmm *lmm, struct node *node)
{
    if (!node)
        return;
    destroy_tree(lmm, node->left);
    destroy_tree(lmm, node->right);
    (void)lmm->pager.unlock((const void *)node->area.start,
                            node->area.end - node->area.start);
    free(node);
}

void chempi_lmm_destroy(struct chempi_lmm *lmm)
{
    if (!lmm)
        return;
    destroy_tree(lmm, lmm->root);
    while (lmm->spare) {
        struct node *node = lmm->spare;

        lmm->spare = node->left;
        free(node);
    }
    free(lmm);
}

void chempi_lmm_set_budget(struct chempi_lmm *lmm, uint64_t bytes)
{
    uint64_t limit = lmm->pager.lock == mlock ? limit_of_process() : UINT64_MAX;

    lmm->budget = bytes < limit ? bytes : limit;
}

uint64_t chempi_lmm_budget(const struct chempi_lmm *lmm)
{
    return lmm->budget;
}

uint64_t chempi_lmm_locked_bytes(const struct chempi_lmm *lmm)
{
    return lmm->locked;
}

static void walk(const struct node *node, chempi_lmm_walk_fn *fn, void *arg)
{
    if (!node)
        return;
    walk(node->left, fn, arg);
    fn(arg, &node->area);
    walk(node->right, fn, arg);
}

void chempi_lmm_walk(const struct chempi_lmm *lmm, chempi_lmm_walk_fn *fn,
                     void *arg)
{
    walk(lmm->root, fn, arg);
}

struct inspection {
    struct chempi_lmm_area last;
    uint64_t bytes;
    bool is_good;
};

static void inspect(void *arg, const struct chempi_lmm_area *area)
{
    struct inspection *found = arg;

    if (area->start >= area->end || area->count == 0 ||
        area->start < found->last.end ||
        (area->start == found->last.end && found->last.end != 0 &&
         area->count == found->last.count))
        found->is_good = false;
    found->bytes += area->end - area->start;
    found->last = *area;
}

static bool is_balanced(const struct node *node)
{
    int left;
    int right;

    if (!node)
        return true;
    left = depth_of(node->left);
    right = depth_of(node->right);
    return left - right <= 1 && right - left <= 1 &&
           node->depth == 1 + (left > right ? left : right) &&
           is_balanced(node->left) && is_balanced(node->right);
}

const char *chempi_lmm_check(const struct chempi_lmm *lmm)
{
    struct inspection found = {.is_good = true};

    walk(lmm->root, inspect, &found);
    if (!found.is_good)
        return "lmm L1, L2: areas that overlap, are empty or should be one";
    if (found.bytes != lmm->locked)
        return "lmm L3: another number of locked bytes than of areas";
    return is_balanced(lmm->root) ? NULL : "lmm L4: a tree out of balance";
}
