/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promises on windows (MPI 5.0, sections 12.2.1 and 12.5.5): hints at their
 * creation, assertions of fences and of post and start.
 *
 *   P1  a window of several members has a communicator of the checker's own,
 *       where fences are compared and posts say what they promise
 *   P2  whoever accesses a target knows what it has promised for this epoch
 *   P3  nothing is told of what may have happened in another epoch
 *   P4  a sum is taken of memory that only this process's program and
 *       operations on this window may change
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/libchempi-check/check.h"
#include "programs/libchempi-check/windows.h"

enum {
    SAME_SIZE = 1,
    SAME_UNIT = 2,
    SAME_OP = 4,
    SAME_OP_OR_NONE = 8,
    NO_LOCKS = 16,
    FACT_PROMISES = 0,
    FACT_SIZE,
    FACT_UNIT,
    FACT_ASSERT = 0, /* of a fence */
    FACT_QUERIED,
    TAG_POST = 1
};

#define SUM_MAX                                                                \
    (1 << 20) /* bytes of which a sum is taken before NOSTORE was              \
                 asserted for the first time */

/* What MPI_Win_post says to each member of its group. */
struct post {
    int32_t promises;
    struct check_far_site site;
};

static struct check_window *windows; /* K1 */
static _Thread_local int agreed;     /* of the window that is being made */
/* This process has reached for memory of others, or has attached its own: which
 * of it is in windows is not followed. */
static _Atomic bool is_entangled;

struct check_window *check_window_of(MPI_Win win)
{
    struct check_window *w;

    if (!check_is_on())
        return NULL;
    check_lock();
    w = windows;
    while (w && w->win != win)
        w = w->next;
    check_unlock();
    return w && w->shadow != MPI_COMM_NULL ? w : NULL;
}

char *check_window_words(const struct check_window *w, char *out, size_t len)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int n = 0;

    (void)PMPI_Win_get_name(w->win, name, &n);
    (void)snprintf(out, len, "%s", n > 0 ? name : "the window");
    return out;
}

/* ---- at the creation ---- */

static bool has_key(MPI_Info info, const char *key, char *value, int len)
{
    int flag = 0;

    if (info == MPI_INFO_NULL)
        return false;
    (void)PMPI_Info_get_string(info, key, &len, value, &flag);
    return flag != 0;
}

static bool has_value(MPI_Info info, const char *key, const char *value)
{
    char text[MPI_MAX_INFO_VAL];

    return has_key(info, key, text, sizeof(text)) && strcmp(text, value) == 0;
}

static int promises_of(MPI_Info info)
{
    return (has_value(info, "same_size", "true") ? SAME_SIZE : 0) |
           (has_value(info, "same_disp_unit", "true") ? SAME_UNIT : 0) |
           (has_value(info, "accumulate_ops", "same_op") ? SAME_OP : 0) |
           (has_value(info, "accumulate_ops", "same_op_no_op") ? SAME_OP_OR_NONE
                                                               : 0) |
           (has_value(info, "no_locks", "true") ? NO_LOCKS : 0);
}

static void compare_fact(const struct check_match *m, int i, int promise,
                         int fact, const char *key, const char *what)
{
    const int64_t *first = check_match_facts(m, 0);
    const int64_t *other = check_match_facts(m, i);
    const bool is_first = (first[FACT_PROMISES] & promise) != 0;
    const bool is_other = (other[FACT_PROMISES] & promise) != 0;
    char words[2][CHECK_WORDS];

    if ((!is_first && !is_other) ||
        (is_first && is_other && first[fact] == other[fact]) ||
        !check_match_speaks(m))
        return;
    check_fail("rank 0 calls %s with %s %lld and rank %d calls %s with %s "
               "%lld, but %s is promised by %s: all members must promise it, "
               "and have the same",
               check_match_words(m, 0, words[0], sizeof(words[0])), what,
               (long long)first[fact], i,
               check_match_words(m, i, words[1], sizeof(words[1])), what,
               (long long)other[fact], key,
               is_first && is_other ? "both"
               : is_first           ? "the first only"
                                    : "the second only");
}

static void compare_made(const struct check_match *m, int size)
{
    agreed = (int)check_match_facts(m, 0)[FACT_PROMISES];
    for (int i = 1; i < size; i++) {
        compare_fact(m, i, SAME_SIZE, FACT_SIZE, "same_size", "size");
        compare_fact(m, i, SAME_UNIT, FACT_UNIT, "same_disp_unit",
                     "displacement unit");
        agreed &= (int)check_match_facts(m, i)[FACT_PROMISES];
    }
}

void check_window_promise(struct check_coll *coll, MPI_Info info, MPI_Aint size,
                          MPI_Aint unit)
{
    agreed = 0;
    coll->facts[FACT_PROMISES] = check_is_on() ? promises_of(info) : 0;
    coll->facts[FACT_SIZE] = size;
    coll->facts[FACT_UNIT] = unit;
    coll->compare = compare_made;
}

static void free_window(struct check_window *w)
{
    if (!w)
        return;
    check_ops_end(w);
    if (w->shadow != MPI_COMM_NULL)
        (void)PMPI_Comm_free(&w->shadow);
    free(w->targets);
    free(w->posts);
    free(w);
}

/* Of several members. */
static void watch_window(struct check_window *w, MPI_Comm shadow)
{
    (void)PMPI_Comm_dup(shadow, &w->shadow);
    check_door->hide(w->shadow);
    (void)PMPI_Comm_size(shadow, &w->size);
    (void)PMPI_Comm_rank(shadow, &w->rank);
    w->targets = calloc((size_t)w->size, sizeof(*w->targets));
    if (!w->targets)
        check_fail("there is no memory for the check of a window");
    w->has_no_locks = (agreed & NO_LOCKS) != 0;
    if (agreed & (SAME_OP | SAME_OP_OR_NONE))
        check_ops_begin(w, (agreed & SAME_OP) != 0);
}

static void find_memory(struct check_window *w)
{
    int *flavor = NULL;
    MPI_Aint *size = NULL;
    int flag = 0;

    (void)PMPI_Win_get_attr(w->win, MPI_WIN_CREATE_FLAVOR, (void *)&flavor,
                            &flag);
    if (!flag || *flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return;
    (void)PMPI_Win_get_attr(w->win, MPI_WIN_BASE, (void *)&w->base, &flag);
    (void)PMPI_Win_get_attr(w->win, MPI_WIN_SIZE, (void *)&size, &flag);
    w->len = *size;
    w->is_entangled = *flavor == MPI_WIN_FLAVOR_SHARED;
    w->is_given = *flavor == MPI_WIN_FLAVOR_CREATE;
}

/* Memory that is in two windows is changed by operations on both: also after
 * one of them is gone, as to the other's sum. */
static void find_overlaps(struct check_window *w)
{
    for (struct check_window *o = windows; o; o = o->next)
        if ((uintptr_t)o->base < (uintptr_t)w->base + (size_t)w->len &&
            (uintptr_t)w->base < (uintptr_t)o->base + (size_t)o->len) {
            o->is_entangled = true;
            w->is_entangled = true;
        }
}

void check_window_made(MPI_Comm comm, MPI_Win win)
{
    const MPI_Comm shadow = check_is_on() ? check_shadow(comm) : MPI_COMM_NULL;
    struct check_window *w;

    if (!check_is_on())
        return;
    w = calloc(1, sizeof(*w));
    if (!w)
        check_fail("there is no memory for the check of a window");
    w->win = win;
    w->shadow = MPI_COMM_NULL;
    find_memory(w);
    if (shadow != MPI_COMM_NULL)
        watch_window(w, shadow);
    agreed = 0;
    check_lock();
    find_overlaps(w);
    w->next = windows;
    windows = w;
    check_unlock();
}

void check_window_info(MPI_Win win, MPI_Info info)
{
    struct check_window *w = check_window_of(win);
    char text[MPI_MAX_INFO_VAL];

    if (!w)
        return;
    if (has_key(info, "no_locks", text, sizeof(text)))
        w->has_no_locks = w->has_no_locks && strcmp(text, "true") == 0;
    if (has_key(info, "accumulate_ops", text, sizeof(text)))
        check_ops_stop(w);
}

void check_window_queried(MPI_Win win)
{
    struct check_window *w = check_window_of(win);

    atomic_store(&is_entangled, true);
    if (w)
        w->is_queried = true;
}

void check_window_attached(void)
{
    atomic_store(&is_entangled, true);
}

/* It is gone, so another thread's new one may have its handle: the oldest. */
void check_window_freed(const void *handle)
{
    struct check_window **oldest = NULL;
    struct check_window *w = NULL;

    check_lock();
    for (struct check_window **at = &windows; *at; at = &(*at)->next)
        if ((const void *)(*at)->win == handle)
            oldest = at;
    if (oldest) {
        w = *oldest;
        *oldest = w->next;
    }
    check_unlock();
    free_window(w);
}

void check_windows_end(void)
{
    while (windows) {
        struct check_window *w = windows;

        windows = w->next;
        free_window(w);
    }
}

/* ---- stores (MPI_MODE_NOSTORE) ---- */

/* P4 */
static bool is_of_one(const struct check_window *w)
{
    return !w->is_entangled && !w->is_queried && !atomic_load(&is_entangled);
}

static uint64_t sum_of(const struct check_window *w)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    if (!is_of_one(w) || (w->len > SUM_MAX && !w->has_nostore))
        return 0;
    for (MPI_Aint i = 0; i < w->len; i++)
        sum = (sum ^ w->base[i]) * UINT64_C(0x100000001b3);
    return sum ? sum : 1;
}

/* Nobody else has written since the sum was taken. */
static void compare_sum(const struct check_call *call, struct check_window *w)
{
    char site[CHECK_WORDS];
    char words[MPI_MAX_OBJECT_NAME];

    w->has_nostore = true;
    if (is_of_one(w) && w->sum && w->sum != sum_of(w))
        check_report("%s with MPI_MODE_NOSTORE, but the memory of %s at this "
                     "rank has been changed since the last synchronization, "
                     "and not by others",
                     check_site_words(&call->site, site, sizeof(site)),
                     check_window_words(w, words, sizeof(words)));
}

/* ---- fences ---- */

static void compare_assert(const struct check_match *m, int i, int assert,
                           const char *name)
{
    const bool is_first = (check_match_facts(m, 0)[FACT_ASSERT] & assert) != 0;
    const bool is_other = (check_match_facts(m, i)[FACT_ASSERT] & assert) != 0;
    char words[2][CHECK_WORDS];

    if (is_first == is_other || !check_match_speaks(m))
        return;
    check_fail("rank 0 calls %s %s %s while rank %d calls %s %s it: all "
               "members must assert it, or none",
               check_match_words(m, 0, words[0], sizeof(words[0])),
               is_first ? "with" : "without", name, i,
               check_match_words(m, i, words[1], sizeof(words[1])),
               is_other ? "with" : "without");
}

/* P2 */
static void compare_fences(const struct check_match *m, int size)
{
    struct check_window *w = check_match_window(m);

    for (int i = 1; i < size; i++) {
        compare_assert(m, i, MPI_MODE_NOPRECEDE, "MPI_MODE_NOPRECEDE");
        compare_assert(m, i, MPI_MODE_NOSUCCEED, "MPI_MODE_NOSUCCEED");
    }
    w->any_nostore = false;
    for (int i = 0; i < size; i++) {
        const int64_t assert = check_match_facts(m, i)[FACT_ASSERT];

        w->targets[i].has_noput = (assert &MPI_MODE_NOPUT) != 0;
        w->targets[i].is_far = !check_match_site(m, i, &w->targets[i].site);
        w->any_nostore |= (assert &MPI_MODE_NOSTORE) != 0;
        w->is_queried |= check_match_facts(m, i)[FACT_QUERIED] != 0;
    }
}

static void forget_promises(struct check_window *w)
{
    for (int i = 0; i < w->size; i++)
        w->targets[i].has_noput = false;
}

/* How often others have written here since the last fence. */
static int64_t count_writes(const struct check_window *w)
{
    int64_t *all = calloc((size_t)w->size, sizeof(*all));
    int64_t mine = 1;

    if (!all)
        check_fail("there is no memory for the check of a window");
    for (int i = 0; i < w->size; i++)
        all[i] = i == w->rank ? 0 : w->targets[i].writes;
    (void)PMPI_Reduce_scatter_block(all, &mine, 1, MPI_INT64_T, MPI_SUM,
                                    w->shadow);
    free(all);
    return mine + w->targets[w->rank].writes;
}

static void meet(const struct check_call *call, struct check_window *w,
                 int assert, check_compare_fn *compare)
{
    const struct check_coll coll = {
        .comm = MPI_COMM_NULL,
        .window = w,
        .root = CHECK_NO_ROOT,
        .op = MPI_OP_NULL,
        .facts = {[FACT_ASSERT] = assert, [FACT_QUERIED] = w->is_queried},
        .compare = compare};

    check_match_end(check_match_begin(call, &coll));
}

void check_window_fence(const struct check_call *call, MPI_Win win, int assert)
{
    struct check_window *w = check_window_of(win);

    if (!w)
        return;
    meet(call, w, assert, compare_fences);
    check_ops_over(w, CHECK_ALL_TARGETS);
    if (w->any_nostore && count_writes(w) == 0 && (assert &MPI_MODE_NOSTORE))
        compare_sum(call, w);
    if (assert & MPI_MODE_NOSTORE)
        w->has_nostore = true;
}

/* It has returned: whoever writes from now on counts that. */
void check_window_fenced(MPI_Win win)
{
    struct check_window *w = check_window_of(win);

    if (!w)
        return;
    for (int i = 0; i < w->size; i++)
        w->targets[i].writes = 0;
    w->sum = sum_of(w);
}

void check_window_free(const struct check_call *call, MPI_Win win)
{
    struct check_window *w = check_window_of(win);

    if (w)
        meet(call, w, 0, NULL);
}

/* ---- post and start ---- */

/* The ranks of a group in the window; the caller frees it. */
static int *ranks_of(const struct check_window *w, MPI_Group group, int *count)
{
    int *both;
    MPI_Group all;

    *count = 0;
    (void)PMPI_Group_size(group, count);
    both = calloc(2 * (size_t)*count + 1, sizeof(*both));
    if (!both)
        check_fail("there is no memory for the check of a window");
    for (int i = 0; i < *count; i++)
        both[*count + i] = i;
    (void)PMPI_Comm_group(w->shadow, &all);
    (void)PMPI_Group_translate_ranks(group, *count, both + *count, all, both);
    (void)PMPI_Group_free(&all);
    return both;
}

void check_window_posted(const struct check_call *call, MPI_Group group,
                         int assert, MPI_Win win)
{
    struct check_window *w = check_window_of(win);
    struct post *post;
    int *ranks;

    if (!w)
        return;
    /* A query of memory that can be mapped would not be heard of. */
    if ((assert &MPI_MODE_NOSTORE) && w->has_no_locks && w->is_given &&
        w->is_waited)
        compare_sum(call, w);
    ranks = ranks_of(w, group, &w->post_count);
    free(w->posts);
    w->posts =
        calloc(1, sizeof(*post) + (size_t)w->post_count * sizeof(MPI_Request));
    if (!w->posts)
        check_fail("there is no memory for the check of a window");
    w->sends = (MPI_Request *)(void *)w->posts;
    post = (struct post *)(void *)(w->sends + w->post_count);
    post->promises = assert;
    check_site_tell(&call->site, &post->site);
    for (int i = 0; i < w->post_count; i++)
        (void)PMPI_Isend(post, (int)sizeof(*post), MPI_BYTE, ranks[i], TAG_POST,
                         w->shadow, &w->sends[i]);
    free(ranks);
}

void check_window_exposed(MPI_Win win)
{
    struct check_window *w = check_window_of(win);

    if (!w)
        return;
    (void)PMPI_Waitall(w->post_count, w->sends, MPI_STATUSES_IGNORE);
    w->post_count = 0;
    w->is_waited = true;
    w->sum = w->has_no_locks && w->is_given ? sum_of(w) : 0;
}

static void hear_post(const struct check_call *call, struct check_window *w,
                      int rank, int assert)
{
    struct check_target *t = &w->targets[rank];
    char site[2][CHECK_WORDS];
    struct post post;

    (void)PMPI_Recv(&post, (int)sizeof(post), MPI_BYTE, rank, TAG_POST,
                    w->shadow, MPI_STATUS_IGNORE);
    t->has_noput = (post.promises & MPI_MODE_NOPUT) != 0;
    t->is_far = !check_site_hear(&call->site, &post.site, &t->site);
    if (((assert ^ post.promises) & MPI_MODE_NOCHECK) == 0)
        return;
    check_report("%s %s MPI_MODE_NOCHECK, but rank %d calls %s %s it: both "
                 "must assert it, or none",
                 check_site_words(&call->site, site[0], sizeof(site[0])),
                 (assert &MPI_MODE_NOCHECK) ? "with" : "without", rank,
                 t->is_far
                     ? "MPI_Win_post"
                     : check_site_words(&t->site, site[1], sizeof(site[1])),
                 (assert &MPI_MODE_NOCHECK) ? "without" : "with");
}

void check_window_start(const struct check_call *call, MPI_Group group,
                        int assert, MPI_Win win)
{
    struct check_window *w = check_window_of(win);
    int *ranks;
    int count;

    if (!w)
        return;
    ranks = ranks_of(w, group, &count);
    forget_promises(w);
    check_stick(true);
    for (int i = 0; i < count; i++)
        hear_post(call, w, ranks[i], assert);
    check_stick(false);
    free(ranks);
}

void check_window_lock(MPI_Win win, int target, int type)
{
    struct check_window *w = check_window_of(win);

    if (!w || target < 0 || target >= w->size)
        return;
    check_ops_over(w, target);
    w->targets[target].has_noput = false;
    w->targets[target].is_exclusive = type == MPI_LOCK_EXCLUSIVE;
}

void check_window_over(MPI_Win win, int target)
{
    struct check_window *w = check_window_of(win);

    if (!w)
        return;
    check_ops_over(w, target);
    if (target == CHECK_ALL_TARGETS)
        forget_promises(w);
}

/* ---- operations ---- */

/* Does an element of this type begin where it is said to be? */
static bool is_at_displacement(MPI_Datatype type)
{
    MPI_Count size = 0;
    MPI_Count lb = 0;
    MPI_Count extent = 0;

    (void)PMPI_Type_size_c(type, &size);
    if (size > 0)
        (void)PMPI_Type_get_true_extent_c(type, &lb, &extent);
    return size > 0 && lb == 0;
}

void check_window_write(const struct check_call *call, MPI_Win win, int target,
                        MPI_Aint disp, MPI_Count count, MPI_Datatype type,
                        MPI_Op op)
{
    struct check_window *w = check_window_of(win);
    struct check_target *t;
    char words[MPI_MAX_OBJECT_NAME];
    char site[2][CHECK_WORDS];

    if (!w || target < 0 || target >= w->size || count == 0)
        return;
    t = &w->targets[target];
    /* Who is to have a lock alone may have to wait for it yet, and to complete
     * others' operations with that. */
    if (op != MPI_OP_NULL && w->ops && !t->is_exclusive &&
        is_at_displacement(type))
        check_ops_add(call, w, target, disp, op);
    if (op == MPI_NO_OP)
        return;
    atomic_fetch_add_explicit(&t->writes, 1, memory_order_relaxed);
    if (!atomic_load(&t->has_noput) || !atomic_exchange(&t->has_noput, false))
        return; /* said once */
    check_report("%s writes to rank %d of %s, which has promised with "
                 "MPI_MODE_NOPUT in %s that nobody does",
                 check_site_words(&call->site, site[0], sizeof(site[0])),
                 target, check_window_words(w, words, sizeof(words)),
                 t->is_far
                     ? "another program"
                     : check_site_words(&t->site, site[1], sizeof(site[1])));
}
