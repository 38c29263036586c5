/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings or single copies; see way_choice.h. */
#include "libchempi/didl/coll/node/copy/way_choice.h"

#include <stdatomic.h>

#include "common/base/compiler.h"
#include "libchempi/didl/locality/affinity.h"

enum {
    LEAST_LOG = 12, /* of blocks, powers of two */
    SIZES = 10,
    LEAST_MEMBERS_LOG = 2,
    MEMBERS = 4,
    CROWD_MOST = 4,    /* members for each processor */
    ALL_MOST_LOG = 24, /* of the blocks of all */
    /* Of CHEMPI_WAY_EVERY calls: the first ones meet pages that nobody has
     * touched, and places that nobody has looked up. */
    TRIALS_FROM = 16,
    TRIALS = 4,
    JUDGED_AT = TRIALS_FROM + TRIALS + 1, /* when the last one is noted */
    RECENT = 3
};

struct way_class {
    _Atomic uint32_t calls;
    _Atomic uint32_t noted[2]; /* [by_rings], like the next */
    _Atomic uint64_t recent_ns[2][RECENT];
    _Atomic bool is_rings; /* chosen */
};

static struct way_class classes[2][MEMBERS][SIZES];

/* Of the smallest power of two that is not smaller. */
static int log_of(uint64_t value)
{
    return value > 1 ? (int)CHEMPI_HIGHEST_BIT(value - 1) + 1 : 0;
}

static int class_from(int value, int least, int count)
{
    if (value < least)
        return 0;
    return value - least < count ? value - least : count - 1;
}

static struct way_class *class_of(const struct chempi_way_exchange *x)
{
    const int members = log_of((uint64_t)x->members);
    const int size = log_of(x->block_len);

    return &classes[x->is_later]
                   [class_from(members, LEAST_MEMBERS_LOG, MEMBERS)]
                   [class_from(size, LEAST_LOG, SIZES)];
}

bool chempi_way_is_open(const struct chempi_way_exchange *x)
{
    const uint64_t members = (uint64_t)x->members;

    return members <= (uint64_t)CROWD_MOST * chempi_affinity_cores() &&
           x->block_len <=
               (UINT64_C(1) << ALL_MOST_LOG) / (members * (members - 1));
}

/* The median of the last ones; 0: not known yet. */
static uint64_t usual_ns(struct way_class *class, bool by_rings)
{
    uint64_t ns[RECENT];
    uint64_t least;
    uint64_t most;

    for (int i = 0; i < RECENT; i++)
        ns[i] = atomic_load_explicit(&class->recent_ns[by_rings][i],
                                     memory_order_relaxed);
    least = ns[0] < ns[1] ? ns[0] : ns[1];
    most = ns[0] < ns[1] ? ns[1] : ns[0];
    return ns[2] < least ? least : ns[2] > most ? most : ns[2];
}

static void judge(struct way_class *class, bool is_rings)
{
    const uint64_t chosen_ns = usual_ns(class, is_rings);
    const uint64_t other_ns = usual_ns(class, !is_rings);

    if (other_ns != 0 && other_ns < chosen_ns - chosen_ns / 8)
        atomic_store_explicit(&class->is_rings, !is_rings,
                              memory_order_relaxed);
}

bool chempi_way_is_rings(const struct chempi_way_exchange *x)
{
    struct way_class *class = class_of(x);
    const uint32_t call =
        atomic_fetch_add_explicit(&class->calls, 1, memory_order_relaxed) %
        CHEMPI_WAY_EVERY;
    bool is_rings =
        atomic_load_explicit(&class->is_rings, memory_order_relaxed);

    if (call == JUDGED_AT) {
        judge(class, is_rings);
        is_rings = atomic_load_explicit(&class->is_rings, memory_order_relaxed);
    }
    return (call >= TRIALS_FROM && call < TRIALS_FROM + TRIALS) != is_rings;
}

void chempi_way_note(const struct chempi_way_exchange *x, bool by_rings,
                     uint64_t took_ns)
{
    struct way_class *class = class_of(x);
    const uint32_t at = atomic_fetch_add_explicit(&class->noted[by_rings], 1,
                                                  memory_order_relaxed);

    atomic_store_explicit(&class->recent_ns[by_rings][at % RECENT], took_ns,
                          memory_order_relaxed);
}
