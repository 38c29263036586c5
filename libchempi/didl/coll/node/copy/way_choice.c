/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings or single copies; see way_choice.h. */
#include "libchempi/didl/coll/node/copy/way_choice.h"

#include <stdatomic.h>

#include "common/base/compiler.h"
#include "libchempi/didl/locality/affinity.h"

enum {
    LEAST_LOG = 12, /* of blocks, powers of two */
    SIZES = 7,
    LEAST_MEMBERS_LOG = 2,
    MEMBERS = 4,
    CROWD_MOST = 2, /* members for each processor */
    TRIALS = 6,
    RINGS_IN_TRIALS = 1 << 2 | 1 << 4 | 1 << 5 /* a bit for each */
};

struct way_class {
    _Atomic uint32_t calls;
    _Atomic uint64_t least_ns[2]; /* [by_rings]; 0: not known */
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
    return log_of(x->block_len) < LEAST_LOG + SIZES &&
           (uint64_t)x->members <=
               (uint64_t)CROWD_MOST * chempi_affinity_cores();
}

bool chempi_way_is_rings(const struct chempi_way_exchange *x)
{
    struct way_class *class = class_of(x);
    const uint32_t call =
        atomic_fetch_add_explicit(&class->calls, 1, memory_order_relaxed) %
        CHEMPI_WAY_EVERY;
    uint64_t least[2];

    for (int way = 0; way < 2; way++) {
        if (call == 0)
            atomic_store_explicit(&class->least_ns[way], 0,
                                  memory_order_relaxed);
        least[way] =
            atomic_load_explicit(&class->least_ns[way], memory_order_relaxed);
    }
    if (call < TRIALS)
        return RINGS_IN_TRIALS >> call & 1;
    return least[true] != 0 && least[true] < least[false];
}

void chempi_way_note(const struct chempi_way_exchange *x, bool by_rings,
                     uint64_t took_ns)
{
    _Atomic uint64_t *least_ns = &class_of(x)->least_ns[by_rings];
    const uint64_t before =
        atomic_load_explicit(least_ns, memory_order_relaxed);

    if (before == 0 || took_ns < before)
        atomic_store_explicit(least_ns, took_ns, memory_order_relaxed);
}
