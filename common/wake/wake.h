/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How processes of one host wake each other (architecture, section 6).
 *
 * Every rank owns one struct chempi_wake in its node's shared region. Local
 * producers (other ranks, the supervisor) first publish their work, then look
 * at the word; a sleeper publishes its state, orders, looks for work once
 * more, and only then sleeps.
 *
 *   W1  only the owner stores ASLEEP_*; anybody may exchange it to AWAKE
 *   -   who exchanges ASLEEP_* to AWAKE does the one system call that wakes
 *   W3  store-load order: the sleeper issues
 *       membarrier(GLOBAL_EXPEDITED) between its store and its last look, so
 *       a producer that registered for it needs a compiler barrier only;
 *       a producer that did not register issues a full fence
 *   W4  a sleeper whose kernel refuses membarrier bounds each sleep to
 *       CHEMPI_WAKE_BOUND_MS instead
 *   W5  on a crowded node, where ranks sleep all the time, the barrier costs
 *       more than it saves (it interrupts the other cores): there all ranks
 *       agree in the region's header that every producer fences, and a sleeper
 *       only fences as well. Agreed once, by the first rank that comes.
 *   W6  only the owner stores AWAY_OWED: it is outside the library and owes
 *       others progress, which its agent makes (agent.h). Ordinary producers
 *       leave it alone; urgent ones set URGENT in the bell and wake the agent
 *   W7  who clears an ASLEEP bit of the bell does the one system call that
 *       wakes the agent
 *   W8  the supervisor counts in notices what it has sent to the owner, before
 *       it wakes it; so an owner that finds the number as it was need not ask
 *       its socket each time it sleeps
 */
#ifndef CHEMPI_COMMON_WAKE_WAKE_H
#define CHEMPI_COMMON_WAKE_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define CHEMPI_WAKE_BOUND_MS 10

enum chempi_wake_state {
    CHEMPI_WAKE_AWAKE = 0,
    CHEMPI_WAKE_ASLEEP_FUTEX = 1, /* in futex_wait on the word */
    CHEMPI_WAKE_ASLEEP_EPOLL = 2, /* in epoll_wait, which has the eventfd */
    CHEMPI_WAKE_AWAY_OWED = 3     /* W6 */
};

enum chempi_wake_bell {
    CHEMPI_WAKE_URGENT = 1,      /* urgent work was published */
    CHEMPI_WAKE_AGENT_FUTEX = 2, /* the agent sleeps on the bell */
    CHEMPI_WAKE_AGENT_EPOLL = 4, /* in epoll_wait, which has the eventfd */
    CHEMPI_WAKE_AGENT_ASLEEP = 6 /* either */
};

enum chempi_wake_order {
    CHEMPI_WAKE_ORDER_NONE = 0,    /* nobody has decided; as BARRIER */
    CHEMPI_WAKE_ORDER_BARRIER = 1, /* W3 */
    CHEMPI_WAKE_ORDER_FENCE = 2    /* W5 */
};

struct chempi_wake {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t state;
    _Atomic uint32_t order;     /* enum chempi_wake_order; as in the header */
    _Atomic uint32_t bell;      /* enum chempi_wake_bell; a futex of its own */
    _Atomic uint32_t has_agent; /* 1: urgent work rings the bell */
    _Atomic uint32_t notices;   /* W8 */
    _Atomic uint32_t lanes; /* that the owner has (lane.h), set once before it
                               first sends anything; 0: not known */
};

/* First page of a node's region; the wake lines start at the second. */
#define CHEMPI_REGION_MAGIC UINT32_C(0x43484d52) /* "CHMR" */
#define CHEMPI_REGION_VERSION UINT32_C(5)
#define CHEMPI_REGION_WAKE_OFFSET 4096u /* bytes from the region's start */
/* Words behind the header, 0 at first, in which local ranks compare settings:
 * the first rank sets each, to its value plus 1. */
#define CHEMPI_REGION_WORDS_OFFSET 1024u /* bytes */
#define CHEMPI_REGION_WORDS 64u

struct chempi_region_header {
    uint32_t magic;
    uint32_t version;
    uint32_t local_size;         /* ranks on this node = number of wake lines */
    _Atomic uint32_t wake_order; /* enum chempi_wake_order */
    _Atomic uint32_t lanes;      /* chempi_region_agree_lanes(); 0: not yet */
};

/* Bytes before the first device area: header, wake lines, up to a page. */
static inline uint64_t chempi_region_reserved(uint32_t local_size)
{
    uint64_t n = CHEMPI_REGION_WAKE_OFFSET +
                 (uint64_t)local_size * sizeof(struct chempi_wake);

    return (n + 4095u) & ~UINT64_C(4095);
}

/* Register this process as a producer that relies on W3. Returns false when
 * the kernel refuses; then pass is_registered = false below. */
bool chempi_wake_register(void);

static inline bool chempi_wake_is_sleep(uint32_t state)
{
    return state - CHEMPI_WAKE_ASLEEP_FUTEX <=
           CHEMPI_WAKE_ASLEEP_EPOLL - CHEMPI_WAKE_ASLEEP_FUTEX;
}

/* The slow half of chempi_wake_peer(): if the owner sleeps, exchange and
 * system call. eventfd is the owner's, -1 when there is none. Thread-safe.
 * Never blocks. */
void chempi_wake_rouse(struct chempi_wake *wake, int eventfd);

/* The slow half of chempi_wake_urge(), for an owner that has an agent: set
 * URGENT, wake whoever sleeps. Orders what was published before. */
void chempi_wake_ring(struct chempi_wake *wake, int eventfd);

/* Wake the agent if it sleeps (W7). */
void chempi_wake_agent(struct chempi_wake *wake, int eventfd);

/* The agent: sleep while the bell has this value, on its futex. */
void chempi_wake_agent_sleep(struct chempi_wake *wake, uint32_t bell);

/* Order the work that was published before the looks at whether its owners
 * sleep; once for as many of chempi_wake_look() as follow. */
static inline void chempi_wake_order_looks(bool is_registered)
{
    if (CHEMPI_LIKELY(is_registered))
        atomic_signal_fence(memory_order_seq_cst); /* partner: membarrier */
    else
        atomic_thread_fence(memory_order_seq_cst); /* partner: the sleeper's
                                                      store of its state */
}

/* Wake the owner if it sleeps. */
static inline void chempi_wake_look(struct chempi_wake *wake, int eventfd)
{
    if (CHEMPI_UNLIKELY(chempi_wake_is_sleep(
            atomic_load_explicit(&wake->state, memory_order_relaxed))))
        chempi_wake_rouse(wake, eventfd);
}

/* Wake the owner if it sleeps; call after the work is published. */
static inline void chempi_wake_peer(struct chempi_wake *wake, int eventfd,
                                    bool is_registered)
{
    chempi_wake_order_looks(is_registered);
    chempi_wake_look(wake, eventfd);
}

/* The same for urgent work: what the owner owes others, and must not wait for
 * its next call. */
static inline void chempi_wake_look_urgently(struct chempi_wake *wake,
                                             int eventfd)
{
    if (CHEMPI_UNLIKELY(
            atomic_load_explicit(&wake->has_agent, memory_order_relaxed)))
        chempi_wake_ring(wake, eventfd);
    else
        chempi_wake_look(wake, eventfd);
}

static inline void chempi_wake_urge(struct chempi_wake *wake, int eventfd,
                                    bool is_registered)
{
    chempi_wake_order_looks(is_registered);
    chempi_wake_look_urgently(wake, eventfd);
}

/* Order this thread's earlier stores before its later loads, and against the
 * accesses of all registered processes likewise (a full fence here, a signal
 * fence there). A system call; false when the kernel refuses. */
bool chempi_wake_barrier(void);

/* Owner: publish that a sleep of the given kind is about to start and order
 * it before the last look for work (W3). Returns the longest sleep allowed in
 * milliseconds, -1 for no bound (W4). */
int chempi_wake_prepare(struct chempi_wake *wake, enum chempi_wake_state kind);

/* Owner: work was found at the last look, or the sleep is over. */
static inline void chempi_wake_cancel(struct chempi_wake *wake)
{
    atomic_store_explicit(&wake->state, CHEMPI_WAKE_AWAKE,
                          memory_order_relaxed);
}

/* Owner, after prepare(FUTEX) and the last look: sleep until roused, until a
 * signal, or for timeout_ms (-1: no limit). State is AWAKE on return. */
void chempi_wake_sleep(struct chempi_wake *wake, int timeout_ms);

#endif
