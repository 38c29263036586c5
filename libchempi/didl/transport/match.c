/* SPDX-License-Identifier: BSD-3-Clause */
/* The matching engine; invariants in match.h. */
#include "libchempi/didl/transport/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/setting.h"

enum { KIND_EXACT, KIND_ANY_TAG, KIND_ANY_SOURCE, KIND_ANY };

enum {
    BUCKETS_MIN = 64 /* power of two */
};

struct chempi_match {
    struct chempi_queue **buckets;
    uint32_t mask;
    uint32_t queue_count;
    struct chempi_queue *free_queues;
    struct chempi_queue *last[CHEMPI_MATCH_KINDS]; /* most recently used */
    uint64_t posted[CHEMPI_MATCH_KINDS];
    bool is_used[CHEMPI_MATCH_KINDS];
    uint64_t stamp;
    uint64_t held_count;
    uint64_t held_max;
    uint64_t held_total;    /* ever held */
    uint64_t taken_back;    /* receives that were posted and cancelled */
    uint64_t dropped;       /* held messages that no receive took */
    struct chempi_list all; /* held messages, oldest first */
    struct chempi_list held_pool;
    uint32_t held_pool_size;
    struct chempi_queue *first[BUCKETS_MIN];
};

struct chempi_match chempi_match_main;

struct chempi_match *chempi_match_create(void)
{
    return chempi_sys->calloc(1, sizeof(struct chempi_match));
}

static void table_init(struct chempi_match *m)
{
    m->buckets = m->first;
    m->mask = BUCKETS_MIN - 1;
    chempi_list_init(&m->all);
    chempi_list_init(&m->held_pool);
}

static inline void ensure_table(struct chempi_match *m)
{
    if (CHEMPI_UNLIKELY(!m->buckets))
        table_init(m);
}

static inline int kind_of(int32_t source, int32_t tag)
{
    return (source == MPI_ANY_SOURCE ? KIND_ANY_SOURCE : 0) +
           (tag == MPI_ANY_TAG ? KIND_ANY_TAG : 0);
}

static inline uint32_t hash_of(uint32_t context, int32_t source, int32_t tag)
{
    uint64_t h = ((uint64_t)(uint32_t)source << 32 | (uint32_t)tag) ^
                 (uint64_t)context * UINT64_C(0x9e3779b97f4a7c15);

    h *= UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 52);
}

static inline bool is_queue(const struct chempi_queue *q, uint32_t context,
                            int32_t source, int32_t tag)
{
    return q->context == context && q->source == source && q->tag == tag;
}

static bool queue_is_idle(const struct chempi_queue *q)
{
    return chempi_list_is_empty(&q->posted) && chempi_list_is_empty(&q->held);
}

static void retire_queue(struct chempi_match *m, struct chempi_queue *q)
{
    for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
        if (m->last[k] == q)
            m->last[k] = NULL;
    q->next = m->free_queues;
    m->free_queues = q;
    m->queue_count--;
}

static void rehash(struct chempi_match *m, struct chempi_queue **to,
                   uint32_t mask)
{
    for (uint32_t i = 0; i <= m->mask; i++) {
        struct chempi_queue *q = m->buckets[i];

        while (q) {
            struct chempi_queue *next = q->next;

            if (queue_is_idle(q)) {
                retire_queue(m, q);
            } else {
                uint32_t b = hash_of(q->context, q->source, q->tag) & mask;

                q->next = to[b];
                to[b] = q;
            }
            q = next;
        }
        m->buckets[i] = NULL;
    }
}

/* Forget idle queues and, if most are busy, double the buckets. A failed
 * allocation only makes the chains longer. */
static CHEMPI_COLD void make_room(struct chempi_match *m)
{
    uint32_t busy = 0;
    uint32_t size = m->mask + 1;
    struct chempi_queue **fresh;

    for (uint32_t i = 0; i <= m->mask; i++)
        for (struct chempi_queue *q = m->buckets[i]; q; q = q->next)
            busy += !queue_is_idle(q);
    if (busy > size / 2)
        size *= 2;
    fresh = chempi_sys->calloc(size, sizeof(struct chempi_queue *));
    if (!fresh)
        return;
    rehash(m, fresh, size - 1);
    if (m->buckets != m->first)
        free(m->buckets);
    m->buckets = fresh;
    m->mask = size - 1;
}

/* There is no memory: idle queues serve again where they are. */
static CHEMPI_COLD void retire_idle(struct chempi_match *m)
{
    for (uint32_t i = 0; i <= m->mask; i++) {
        struct chempi_queue **at = &m->buckets[i];

        while (*at) {
            struct chempi_queue *q = *at;

            if (!queue_is_idle(q)) {
                at = &q->next;
                continue;
            }
            *at = q->next;
            retire_queue(m, q);
        }
    }
}

static CHEMPI_NOINLINE struct chempi_queue *
add_queue(struct chempi_match *m, uint32_t context, int32_t source, int32_t tag)
{
    struct chempi_queue *q;
    uint32_t b;

    if (m->queue_count > m->mask)
        make_room(m);
    q = m->free_queues ? NULL : chempi_sys->malloc(sizeof(*q));
    if (!q && !m->free_queues)
        retire_idle(m);
    if (!q && !m->free_queues)
        return NULL;
    if (!q) {
        q = m->free_queues;
        m->free_queues = q->next;
    }
    q->context = context;
    q->source = source;
    q->tag = tag;
    chempi_list_init(&q->posted);
    chempi_list_init(&q->held);
    b = hash_of(context, source, tag) & m->mask;
    q->next = m->buckets[b];
    m->buckets[b] = q;
    m->queue_count++;
    return q;
}

/* The queue of a pattern; NULL if there is none yet. */
static inline struct chempi_queue *find_queue(struct chempi_match *m, int kind,
                                              uint32_t context, int32_t source,
                                              int32_t tag)
{
    struct chempi_queue *q = m->last[kind];

    if (CHEMPI_LIKELY(q && is_queue(q, context, source, tag)))
        return q;
    q = m->buckets[hash_of(context, source, tag) & m->mask];
    while (q && !is_queue(q, context, source, tag))
        q = q->next;
    if (q)
        m->last[kind] = q;
    return q;
}

static inline struct chempi_queue *get_queue(struct chempi_match *m, int kind,
                                             uint32_t context, int32_t source,
                                             int32_t tag)
{
    struct chempi_queue *q = find_queue(m, kind, context, source, tag);

    if (CHEMPI_LIKELY(q != NULL))
        return q;
    q = add_queue(m, context, source, tag);
    if (q)
        m->last[kind] = q;
    return q;
}

static inline struct chempi_request *first_posted(struct chempi_match *m,
                                                  int kind, uint32_t context,
                                                  int32_t source, int32_t tag)
{
    struct chempi_queue *q;

    if (!m->posted[kind])
        return NULL;
    q = find_queue(m, kind, context, source, tag);
    if (!q || chempi_list_is_empty(&q->posted))
        return NULL;
    return CHEMPI_CONTAINER_OF(chempi_list_first(&q->posted),
                               struct chempi_request, match_link);
}

static inline struct chempi_request *older(struct chempi_request *a,
                                           struct chempi_request *b)
{
    if (!a)
        return b;
    return !b || a->stamp < b->stamp ? a : b;
}

static inline void unpost(struct chempi_match *m, struct chempi_request *req)
{
    chempi_list_remove(&req->match_link);
    m->posted[kind_of(req->peer_rank, req->peer_tag)]--;
    req->is_queued = false;
}

void chempi_match_unpost(struct chempi_match *m, struct chempi_request *req)
{
    unpost(m, req);
    m->taken_back++;
}

struct chempi_request *chempi_match_take_posted(struct chempi_match *m,
                                                uint32_t context,
                                                int32_t source, int32_t tag)
{
    struct chempi_request *req;

    ensure_table(m);
    req = first_posted(m, KIND_EXACT, context, source, tag);
    if (CHEMPI_UNLIKELY(m->posted[KIND_ANY_TAG]))
        req = older(
            req, first_posted(m, KIND_ANY_TAG, context, source, MPI_ANY_TAG));
    if (CHEMPI_UNLIKELY(m->posted[KIND_ANY_SOURCE]))
        req = older(req, first_posted(m, KIND_ANY_SOURCE, context,
                                      MPI_ANY_SOURCE, tag));
    if (CHEMPI_UNLIKELY(m->posted[KIND_ANY]))
        req = older(req, first_posted(m, KIND_ANY, context, MPI_ANY_SOURCE,
                                      MPI_ANY_TAG));
    if (req)
        unpost(m, req);
    return req;
}

/* Put a held message into the queue of one kind. One that claims to come from
 * anybody, or to have any tag, is garbage: its exact queue would be that of
 * another kind, which is linked through another member. It stays unmatched. */
static int index_held(struct chempi_match *m, struct chempi_held *held,
                      int kind)
{
    const struct chempi_envelope *env = &held->env;
    struct chempi_queue *q;

    if (CHEMPI_UNLIKELY(env->source == MPI_ANY_SOURCE ||
                        env->tag == MPI_ANY_TAG))
        return 0;
    q = get_queue(m, kind, env->context,
                  kind & KIND_ANY_SOURCE ? MPI_ANY_SOURCE : env->source,
                  kind & KIND_ANY_TAG ? MPI_ANY_TAG : env->tag);
    if (!q)
        return -ENOMEM;
    chempi_list_append(&q->held, &held->by[kind]);
    return 0;
}

static void unindex_held(struct chempi_match *m, struct chempi_held *held)
{
    for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
        chempi_list_remove(&held->by[k]);
    chempi_list_remove(&held->all);
    held->is_indexed = false;
    m->held_count--;
}

/* First use of a wildcard kind: index what is held already (M2). */
static CHEMPI_COLD int start_kind(struct chempi_match *m, int kind)
{
    int rc = 0;

    CHEMPI_LIST_FOR (pos, &m->all) {
        struct chempi_held *held =
            CHEMPI_CONTAINER_OF(pos, struct chempi_held, all);

        chempi_list_remove(&held->by[kind]);
        rc = index_held(m, held, kind);
        if (rc)
            return rc;
    }
    m->is_used[kind] = true;
    return 0;
}

static inline int ensure_kind(struct chempi_match *m, int kind)
{
    ensure_table(m);
    if (CHEMPI_LIKELY(kind == KIND_EXACT || m->is_used[kind]))
        return 0;
    return start_kind(m, kind);
}

static inline struct chempi_held *first_held(struct chempi_queue *q, int kind)
{
    struct chempi_list *by;

    if (!q || chempi_list_is_empty(&q->held))
        return NULL;
    by = chempi_list_first(&q->held);
    return CHEMPI_CONTAINER_OF(by - kind, struct chempi_held, by);
}

struct chempi_held *chempi_match_post(struct chempi_match *m,
                                      struct chempi_request *req, int *error)
{
    int kind = kind_of(req->peer_rank, req->peer_tag);
    struct chempi_queue *q;
    struct chempi_held *held;

    *error = ensure_kind(m, kind);
    if (*error)
        return NULL;
    q = get_queue(m, kind, req->context, req->peer_rank, req->peer_tag);
    if (CHEMPI_UNLIKELY(!q)) {
        *error = -ENOMEM;
        return NULL;
    }
    held = first_held(q, kind);
    if (held) {
        unindex_held(m, held);
        return held;
    }
    chempi_list_append(&q->posted, &req->match_link);
    req->stamp = m->stamp++;
    req->is_queued = true;
    m->posted[kind]++;
    CHEMPI_CHECK_EVERY(256, chempi_match_check(m));
    return NULL;
}

struct chempi_held *chempi_match_find_held(struct chempi_match *m,
                                           uint32_t context, int32_t source,
                                           int32_t tag, bool take, int *error)
{
    int kind = kind_of(source, tag);
    struct chempi_held *held;

    *error = ensure_kind(m, kind);
    if (*error)
        return NULL;
    if (!m->held_count)
        return NULL;
    held = first_held(find_queue(m, kind, context, source, tag), kind);
    if (held && take)
        unindex_held(m, held);
    return held;
}

int chempi_match_hold(struct chempi_match *m, struct chempi_held *held)
{
    int rc;

    ensure_table(m);
    rc = index_held(m, held, KIND_EXACT);
    for (int k = 1; k < CHEMPI_MATCH_KINDS && !rc; k++)
        if (CHEMPI_UNLIKELY(m->is_used[k]))
            rc = index_held(m, held, k);
    if (rc) {
        for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
            chempi_list_remove(&held->by[k]);
        return rc;
    }
    chempi_list_append(&m->all, &held->all);
    held->is_indexed = true;
    m->held_total++;
    if (++m->held_count > m->held_max)
        m->held_max = m->held_count;
    CHEMPI_CHECK_EVERY(256, chempi_match_check(m));
    return 0;
}

struct chempi_held *chempi_match_take_serial(struct chempi_match *m,
                                             struct chempi_peer *peer,
                                             uint32_t serial)
{
    ensure_table(m);
    CHEMPI_LIST_FOR (pos, &m->all) {
        struct chempi_held *held =
            CHEMPI_CONTAINER_OF(pos, struct chempi_held, all);

        if (held->peer == peer && held->env.serial == serial &&
            held->state != CHEMPI_HELD_STREAM) {
            unindex_held(m, held);
            m->dropped++;
            return held;
        }
    }
    return NULL;
}

struct chempi_held *
chempi_match_find(struct chempi_match *m,
                  bool (*fits)(struct chempi_held *held, void *arg), void *arg)
{
    ensure_table(m);
    CHEMPI_LIST_FOR (pos, &m->all) {
        struct chempi_held *held =
            CHEMPI_CONTAINER_OF(pos, struct chempi_held, all);

        if (fits(held, arg))
            return held;
    }
    return NULL;
}

void chempi_match_take(struct chempi_match *m, struct chempi_held *held)
{
    unindex_held(m, held);
    m->dropped++;
}

/* It is garbage now, see index_held(). */
void chempi_match_spoil(struct chempi_held *held)
{
    for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
        chempi_list_remove(&held->by[k]);
    held->env.source = MPI_ANY_SOURCE;
}

static struct chempi_held *held_from_pool(struct chempi_match *m)
{
    struct chempi_list *link;

    if (chempi_list_is_empty(&m->held_pool))
        return chempi_sys->malloc(sizeof(struct chempi_held));
    link = chempi_list_first(&m->held_pool);
    chempi_list_remove(link);
    m->held_pool_size--;
    return CHEMPI_CONTAINER_OF(link, struct chempi_held, all);
}

struct chempi_held *chempi_match_held_create(struct chempi_match *m,
                                             uint64_t len)
{
    struct chempi_held *held;

    ensure_table(m);
    held = held_from_pool(m);
    if (!held)
        return NULL;
    chempi_object_init(&held->obj, CHEMPI_MAGIC_MESSAGE);
    for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
        chempi_list_init(&held->by[k]);
    chempi_list_init(&held->all);
    held->claimed = NULL;
    held->status = 0;
    held->comm = NULL;
    held->is_indexed = false;
    held->in.kind = CHEMPI_INCOMING_HELD;
    held->room = len;
    held->data = NULL;
    if (len <= sizeof(held->small)) {
        held->data = held->small;
        return held;
    }
    if (len <= SIZE_MAX)
        held->data = chempi_sys->malloc((size_t)len);
    if (!held->data) {
        chempi_list_append(&m->held_pool, &held->all);
        m->held_pool_size++;
        return NULL;
    }
    return held;
}

void chempi_match_held_destroy(struct chempi_match *m, struct chempi_held *held)
{
    if (held->data != held->small)
        free(held->data);
    held->obj.magic = 0;
    if (m->held_pool_size >= chempi_setting(CHEMPI_SET_MATCH_POOL)) {
        free(held);
        return;
    }
    chempi_list_prepend(&m->held_pool, &held->all);
    m->held_pool_size++;
}

static struct chempi_request *
find_in_queue(const struct chempi_queue *q,
              bool (*fits)(const struct chempi_request *req, const void *arg),
              const void *arg)
{
    CHEMPI_LIST_FOR (pos, &q->posted) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);

        if (fits(req, arg))
            return req;
    }
    return NULL;
}

struct chempi_request *chempi_match_find_posted(
    struct chempi_match *m,
    bool (*fits)(const struct chempi_request *req, const void *arg),
    const void *arg)
{
    struct chempi_request *req = NULL;

    for (uint32_t i = 0; m->buckets && i <= m->mask && !req; i++)
        for (struct chempi_queue *q = m->buckets[i]; q && !req; q = q->next)
            req = find_in_queue(q, fits, arg);
    return req;
}

/* Every receive that was posted has a stamp, so matches need no counter. */
struct chempi_match_stats chempi_match_stats(const struct chempi_match *m)
{
    struct chempi_match_stats stats = {
        .held = m->held_count,
        .held_max = m->held_max,
        .met_held = m->held_total - m->held_count - m->dropped,
    };

    for (int k = 0; k < CHEMPI_MATCH_KINDS; k++)
        stats.posted += m->posted[k];
    stats.met_posted = m->stamp - m->taken_back - stats.posted;
    return stats;
}

uint64_t chempi_match_rearm(struct chempi_match *m)
{
    m->held_max = m->held_count;
    return m->held_count;
}

static void free_queue_list(struct chempi_queue *q)
{
    while (q) {
        struct chempi_queue *next = q->next;

        free(q);
        q = next;
    }
}

/* One queue of a kind: M1, M3, and M4 in *posted. */
static const char *check_queue(const struct chempi_queue *q, uint64_t *posted)
{
    uint64_t stamp = 0;

    if (!chempi_list_is_empty(&q->posted) && !chempi_list_is_empty(&q->held))
        return "match M3: a posted receive and a held message in one queue";
    CHEMPI_LIST_FOR (pos, &q->posted) {
        const struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);

        if (!req->is_queued ||
            !is_queue(q, req->context, req->peer_rank, req->peer_tag))
            return "match M1: a posted receive in another's queue";
        if (req->stamp < stamp)
            return "match: posted receives out of order";
        stamp = req->stamp;
        ++*posted;
    }
    return NULL;
}

/* M2 */
static const char *check_held(const struct chempi_match *m)
{
    uint64_t count = 0;

    CHEMPI_LIST_FOR (pos, &m->all) {
        const struct chempi_held *held =
            CHEMPI_CONTAINER_OF(pos, struct chempi_held, all);
        bool is_garbage =
            held->env.source == MPI_ANY_SOURCE || held->env.tag == MPI_ANY_TAG;

        count++;
        if (!held->is_indexed)
            return "match M2: a held message that is in no queue";
        for (int k = 0; k < CHEMPI_MATCH_KINDS && !is_garbage; k++) {
            bool is_due = k == KIND_EXACT || m->is_used[k];

            if (chempi_list_is_empty(&held->by[k]) == is_due)
                return "match M2: a held message in too few or many queues";
        }
    }
    return count == m->held_count
               ? NULL
               : "match: the number of held messages is wrong";
}

const char *chempi_match_check(struct chempi_match *m)
{
    uint64_t posted[CHEMPI_MATCH_KINDS] = {0};
    const char *why = NULL;

    ensure_table(m);
    for (uint32_t i = 0; i <= m->mask && !why; i++) {
        for (const struct chempi_queue *q = m->buckets[i]; q && !why;
             q = q->next)
            why = check_queue(q, &posted[kind_of(q->source, q->tag)]);
    }
    for (int k = 0; k < CHEMPI_MATCH_KINDS && !why; k++) {
        if (posted[k] != m->posted[k])
            why = "match M4: the number of posted receives is wrong";
    }
    return why ? why : check_held(m);
}

void chempi_match_find_lost(struct chempi_match *m,
                            struct chempi_match_lost *out)
{
    *out = (struct chempi_match_lost){0};
    ensure_table(m);
    CHEMPI_LIST_FOR (link, &m->all) {
        const struct chempi_held *held =
            CHEMPI_CONTAINER_OF(link, struct chempi_held, all);

        if (held->env.context % CHEMPI_CONTEXT_STEP != CHEMPI_CONTEXT_PT2PT)
            continue;
        if (out->count++ == 0) {
            out->bytes = held->env.len;
            out->source = held->env.source;
            out->tag = held->env.tag;
        }
    }
}

uint64_t chempi_match_fini(struct chempi_match *m)
{
    uint64_t dropped = 0;

    ensure_table(m);
    CHEMPI_CHECK(chempi_match_check(m));
    while (!chempi_list_is_empty(&m->all)) {
        struct chempi_held *held = CHEMPI_CONTAINER_OF(
            chempi_list_first(&m->all), struct chempi_held, all);

        unindex_held(m, held);
        chempi_match_held_destroy(m, held);
        dropped++;
    }
    while (!chempi_list_is_empty(&m->held_pool)) {
        struct chempi_list *link = chempi_list_first(&m->held_pool);

        chempi_list_remove(link);
        free(CHEMPI_CONTAINER_OF(link, struct chempi_held, all));
    }
    for (uint32_t i = 0; i <= m->mask; i++)
        free_queue_list(m->buckets[i]);
    free_queue_list(m->free_queues);
    if (m->buckets != m->first)
        free(m->buckets);
    memset(m, 0, sizeof(*m));
    return dropped;
}
