/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread learns when it gives its core away (progress.c, P4 and P5), and
 * for how long it then keeps it. Times are a monotonic clock's, in ns.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_BACKOFF_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* A sched_yield that took longer than this has let somebody else run, ns. */
#define CHEMPI_BACKOFF_SWITCH_NS UINT64_C(1000)
/* One that took longer than this has met somebody who computes, ns. Other
 * ranks wait, too, and hand the core back within microseconds; the system may
 * let a stranger keep it for milliseconds, whatever its priority, but wakes a
 * sleeper at once. */
#define CHEMPI_BACKOFF_STRANGER_NS UINT64_C(300000)
/* For how long the core is then not given away, ns; doubles each time, and
 * shrinks while the core is found free. */
#define CHEMPI_BACKOFF_MIN_NS UINT64_C(50000000)
#define CHEMPI_BACKOFF_MAX_NS UINT64_C(2000000000)
/* So many yields one after the other that met another rank, though there is a
 * core for each: they share one, and another is idle. The system does not part
 * threads that give way to each other. */
#define CHEMPI_BACKOFF_PEERS_MAX 32u
/* For how long such a thread then stays where it is, ns; doubles likewise. */
#define CHEMPI_BACKOFF_STAY_MIN_NS UINT64_C(1000000)
#define CHEMPI_BACKOFF_STAY_MAX_NS UINT64_C(1000000000)
/* So many yields one after the other that met somebody on a core that the
 * launcher gave to this process alone: it is not this process's own. Each comes
 * after a millisecond without a system call, so that one that meets nobody
 * takes 0.4 to 2 us (4 of 10 more than SWITCH_NS); whoever shares the core
 * keeps it for long, as this process does. */
#define CHEMPI_BACKOFF_GUESTS_MAX 4u
#define CHEMPI_BACKOFF_GUEST_NS UINT64_C(20000)

struct chempi_backoff {
    uint64_t length_ns; /* how long it will be next time */
    uint64_t until_ns;  /* the core is not given away */
    uint32_t peers;     /* met one after the other */
    uint64_t stay_ns;   /* how long it will stay next time */
    uint64_t parted_ns; /* it stays on its core until then */
    uint32_t guests;    /* met one after the other on a core of its own */
};

enum chempi_backoff_met {
    CHEMPI_BACKOFF_NOBODY,
    CHEMPI_BACKOFF_PEER,
    CHEMPI_BACKOFF_STRANGER
};

static inline void chempi_backoff_init(struct chempi_backoff *backoff)
{
    backoff->length_ns = CHEMPI_BACKOFF_MIN_NS;
    backoff->until_ns = 0;
    backoff->peers = 0;
    backoff->stay_ns = CHEMPI_BACKOFF_STAY_MIN_NS;
    backoff->parted_ns = 0;
    backoff->guests = 0;
}

static inline bool chempi_backoff_is(const struct chempi_backoff *backoff,
                                     uint64_t now_ns)
{
    return now_ns < backoff->until_ns;
}

/* The core was given away for so long: who had it? In a job without a core for
 * each process (is_roomy) it may be a rank that computes. */
static inline enum chempi_backoff_met
chempi_backoff_judge(struct chempi_backoff *backoff, bool is_roomy,
                     uint64_t before_ns, uint64_t after_ns)
{
    const uint64_t took_ns = after_ns - before_ns;

    if (took_ns <= CHEMPI_BACKOFF_SWITCH_NS) {
        if (backoff->length_ns > CHEMPI_BACKOFF_MIN_NS)
            backoff->length_ns -= backoff->length_ns / 32;
        if (backoff->stay_ns > CHEMPI_BACKOFF_STAY_MIN_NS)
            backoff->stay_ns -= backoff->stay_ns / 32;
        backoff->peers = 0;
        return CHEMPI_BACKOFF_NOBODY;
    }
    if (!is_roomy || took_ns <= CHEMPI_BACKOFF_STRANGER_NS)
        return CHEMPI_BACKOFF_PEER;
    backoff->until_ns = after_ns + backoff->length_ns;
    backoff->length_ns *= 2;
    if (backoff->length_ns > CHEMPI_BACKOFF_MAX_NS)
        backoff->length_ns = CHEMPI_BACKOFF_MAX_NS;
    return CHEMPI_BACKOFF_STRANGER;
}

/* The core that was given to this process alone was given away for so long: do
 * others run there, too? */
static inline bool chempi_backoff_is_shared(struct chempi_backoff *backoff,
                                            uint64_t before_ns,
                                            uint64_t after_ns)
{
    if (after_ns - before_ns <= CHEMPI_BACKOFF_GUEST_NS)
        backoff->guests = 0;
    else
        backoff->guests++;
    return backoff->guests >= CHEMPI_BACKOFF_GUESTS_MAX;
}

/* A peer has been met in a job with a core for each: is it time to look for
 * another core? */
static inline bool chempi_backoff_parts(struct chempi_backoff *backoff,
                                        uint64_t now_ns)
{
    if (++backoff->peers < CHEMPI_BACKOFF_PEERS_MAX ||
        now_ns < backoff->parted_ns)
        return false;
    backoff->peers = 0;
    backoff->parted_ns = now_ns + backoff->stay_ns;
    backoff->stay_ns *= 2;
    if (backoff->stay_ns > CHEMPI_BACKOFF_STAY_MAX_NS)
        backoff->stay_ns = CHEMPI_BACKOFF_STAY_MAX_NS;
    return true;
}

#endif
