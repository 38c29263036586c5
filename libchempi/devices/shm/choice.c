/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring or single copy: what is faster for messages of 8 KiB to 4 MiB, and for
 * large ones that are not contiguous, depends on how far apart the two cores
 * are, which differs between machines, between pairs of processes, and on
 * virtual machines from one minute to the next (16 KiB through the ring took
 * 2.0 us with the cores below one cache and 8.2 us without; single copy 2.7 and
 * 3.2 us). So the receiver, which may choose, measures what either costs; the
 * sender tells it how long its own part took.
 *
 *   M1  a price is what the cheapest of late has cost: a measurement above it
 *       raises it by an eighth at most, so that one which was disturbed does
 *       not decide
 *   M2  both prices are known, and stay so: PROBE_RUN messages of PROBE_EVERY
 *       take the way that is not chosen, and are measured. An unknown price is
 *       the lowest, but for that of help: who receives into small pieces cannot
 *       ask for any. One way, single copies are left for a ring that is
 *       cheaper by a quarter: where nearly all is read, the two cores do not
 *       wait for each other at what goes through it (in windows of 64 KiB, of
 *       a line that takes 150 ns, copying took 5 us of 7), and all messages of
 *       a window are decided on before one of them has been measured
 *   M3  while payload travels both ways, both take the same way, or one core
 *       would have the work of both: a message is read if one of the two says
 *       that this is cheaper. Its sender says so in what announces it. The
 *       first ones of a window come before anything was sent, and take what
 *       the last ones took
 *   M4  a single copy with which the sender may help has a second price: what
 *       is left of it when both copy at a time, each as fast as it did. Lines
 *       of the target then go from core to core, so that it may be as high as
 *       the first: where a line takes 120 ns, windows of 128 KiB took 3.4 us
 *       per 64 KiB alone, and 3.6 with help
 *
 * Likewise a sender chooses how to write spans of SHM_PUT_MIN and more into the
 * ring: through its caches or past them. Between far cores most of what copying
 * costs is the writing: each store waits until the receiver's core gives up the
 * line that it has read there a lap ago.
 *
 *   M5  one write of PUT_EVERY goes through the caches and is timed, up to
 *       where all of it is there. Points go up when it took SLOW_LINE_NS a line
 *       or more, down else; above SHM_PUT_FAR all others go past the caches
 *   M6  spans turn back after SHM_LAP bytes of the data or go on to its end:
 *       which of the two costs less is found out by both. In short laps both
 *       cores' first-level caches hold what they share, which is best where
 *       these are near; but there a store meets lines that the other core has
 *       just read (where a line takes 150 ns to it, one took 10 ns to write,
 *       and 3 ns in laps of 256 KiB: 8 KiB one way went at 5 GB/s, 10 so; laps
 *       of 64 and 128 KiB are no better than short ones). A try begins with
 *       writes that are not timed, as the first ones find lines of another
 *       time. Whether to write past the caches is not judged by short laps
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "common/base/clock.h"
#include "common/base/copy.h"
#include "common/table/table.h"
#include "libchempi/devices/shm/internal.h"

#define BOTH_WAIT_MAX (UINT64_C(32) << 10) /* bytes */
/* As much as a sender puts in one go: more than 8 chunks (the setting "pump")
 * it does not, nor is a quarter of the data told as taken at once. */
#define CROWDED_RING_MAX (UINT64_C(64) << 10)

enum {
    PROBE_FIRST = 8, /* half each, until both prices are known */
    /* Prime, or else all looks at windows of messages would meet the first of
     * a window, when the peer has nothing else to do yet; and few enough that
     * 99 of 100 round trips have none. */
    PROBE_EVERY = 1021,
    PROBE_RUN = 2, /* .. one after the other, as the first finds cold caches */
    TIME_EVERY = 7 /* likewise: of the chosen way */
};

enum {
    SLOW_LINE_NS = 15,
    LOST_LINE_NS = 1000, /* who takes so long has lost the core meanwhile */
    /* Few enough that 99 of 100 round trips of a piece each way have none. */
    PUT_EVERY = 509,
    PUT_EVERY_FAR = 1021,       /* it is the slow way then */
    PUT_MOST = 2 * SHM_PUT_FAR, /* points */
    PUT_STEP = 4
};

enum {                  /* M6 */
       TRY_RUN = 16,    /* writes before the first that is timed */
       TRY_WARM = 512,  /* .. the first time: to touch all of the data twice */
       TRY_GAP = 3,     /* writes from one that is timed to the next */
       TRY_SAMPLES = 4, /* of one try */
       TRY_EVERY = 32   /* samples of what was chosen, before the next try */
};

bool chempi_shm_choice_is_fixed(const struct chempi_table *table)
{
    const struct chempi_table_range *ranges;
    bool has_ring = false;
    bool has_copy = false;
    uint32_t count = 0;

    if (!table)
        return false;
    ranges = chempi_table_ranges(table, chempi_table_self(table), &count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(ranges[i].device, "shm") != 0)
            continue;
        has_ring = has_ring || strcmp(ranges[i].protocol, "pipeline") == 0;
        has_copy = has_copy || strcmp(ranges[i].protocol, "single-copy") == 0;
    }
    return !has_ring || !has_copy;
}

/* The class of a message's size. What the sender has in pieces,
 * which the kernel must look up one by one, is a class of its own. */
static struct shm_price *price_at(struct shm_ep *ep, uint64_t len,
                                  bool is_in_pieces)
{
    static const uint64_t most[] = {16 << 10, 32 << 10, 64 << 10, 256 << 10,
                                    1 << 20};
    uint32_t i = 0;

    static_assert(CHEMPI_ARRAY_LEN(most) == SHM_PRICES - 2, "and two more");
    if (is_in_pieces)
        return &ep->prices[SHM_PRICES - 1];
    while (i < CHEMPI_ARRAY_LEN(most) && len > most[i])
        i++;
    return &ep->prices[i];
}

static struct shm_price *price_of(const struct shm_xfer *xfer)
{
    return price_at(shm_ep_of(xfer), xfer->base.len, xfer->form_len > 0);
}

/* Each core has both halves of what goes through the ring to do, or all of a
 * single copy. Besides it waits for lines of the other core: with the ring for
 * half as long again as it copies (64 KiB each way took 2.7 us in place of 1.7
 * where a line took 50 ns to the other core, and 5.9 in place of 3.5 to 4.4
 * where it took 250 ns); with single copies for two lines a message, which
 * matters as much for short ones. */
static bool is_copy_cheaper_both_ways(const struct shm_price *price,
                                      uint64_t len)
{
    uint64_t ring = (uint64_t)price->in + price->out;

    return price->copy < (len > BOTH_WAIT_MAX ? ring * 3 / 2 : ring);
}

bool chempi_shm_choice_would_copy(struct shm_ep *ep, uint64_t len,
                                  bool is_in_pieces)
{
    return is_copy_cheaper_both_ways(price_at(ep, len, is_in_pieces), len);
}

static bool is_in_library(const struct chempi_wake *wake)
{
    return atomic_load_explicit(&wake->state, memory_order_relaxed) ==
           CHEMPI_WAKE_AWAKE;
}

/* A sleeping sender would not gain from being woken. */
static bool may_help(const struct shm_xfer *xfer)
{
    return xfer->share < SHM_HELP_SLOTS && is_in_library(shm_ep_of(xfer)->wake);
}

/* M4. By less than an eighth it is not worth to ask, and to wait for the end.
 */
static bool is_help_cheaper(const struct shm_price *price)
{
    return price->shared > 0 && price->shared < price->copy - price->copy / 8;
}

static bool sends_as_well(const struct shm_xfer *xfer)
{
    return shm_dev_of(shm_ep_of(xfer))->rndv.outgoing > 0;
}

/* M2. Through the ring both cores copy at a time. */
static bool is_copy_cheaper_one_way(const struct shm_xfer *xfer,
                                    const struct shm_price *price)
{
    bool is_shared = may_help(xfer) && is_help_cheaper(price);
    uint32_t copy = is_shared ? price->shared : price->copy;
    uint32_t ring = price->in > price->out ? price->in : price->out;

    return price->is_copied ? copy - copy / 4 < ring : copy < ring;
}

static bool is_copy_cheaper(const struct shm_xfer *xfer,
                            struct shm_price *price)
{
    if (price->is_both_ways || sends_as_well(xfer)) /* M3 */
        return xfer->peer_would_copy ||
               is_copy_cheaper_both_ways(price, xfer->base.len);
    if (!is_copy_cheaper_one_way(xfer, price)) {
        price->is_copied = false;
        return false;
    }
    price->is_copied = price->copy > 0;
    return true;
}

bool chempi_shm_choice_is_crowded(const struct shm_ep *ep)
{
    return atomic_load_explicit(&ep->wake->order, memory_order_relaxed) ==
           CHEMPI_WAKE_ORDER_FENCE;
}

/* A long message goes through the ring a piece at a time, to and fro: while
 * one of the two sides computes, each time would cost a wakeup of its agent. */
static bool is_left_alone(const struct shm_xfer *xfer)
{
    const struct shm_ep *ep = shm_ep_of(xfer);
    const struct chempi_services *services = ep->base.dev->params.services;

    return xfer->base.len > SHM_LONG_MIN &&
           !(is_in_library(ep->wake) &&
             is_in_library(&services->wakes[services->local_rank]));
}

/* M2. Does a message take the second of two ways? One of them is cheaper. */
static bool is_second(struct shm_xfer *xfer, uint32_t *turns,
                      bool is_second_cheaper)
{
    uint32_t turn = (*turns)++;
    bool is_probe = turn % PROBE_EVERY < PROBE_RUN;

    if (turn < PROBE_FIRST) {
        xfer->is_timed = true;
        return turn >= PROBE_FIRST / 2;
    }
    if (*turns == 0)
        *turns = PROBE_FIRST; /* it has wrapped */
    xfer->is_timed = xfer->is_timed || is_probe || turn % TIME_EVERY == 0;
    return is_second_cheaper != is_probe;
}

bool chempi_shm_choice_is_copy(struct shm_xfer *xfer)
{
    struct shm_price *price = price_of(xfer);

    /* Where ranks share cores, who has filled the ring need not come again for
     * what fits it; else the two sides would take turns on a core, once for
     * each time that it is full. Prices tell of neither. */
    if (xfer->form_len == 0 && chempi_shm_choice_is_crowded(shm_ep_of(xfer)))
        return xfer->base.len > CROWDED_RING_MAX ||
               xfer->base.len > shm_dev_of(shm_ep_of(xfer))->data_size;
    if (xfer->form_len == 0 && is_left_alone(xfer))
        return true;
    return is_second(xfer, &price->turns, is_copy_cheaper(xfer, price));
}

bool chempi_shm_choice_is_shared(struct shm_xfer *xfer)
{
    struct shm_price *price = price_of(xfer);

    return may_help(xfer) &&
           !is_second(xfer, &price->help_turns, !is_help_cheaper(price));
}

void chempi_shm_choice_take_back(const struct shm_xfer *xfer)
{
    price_of(xfer)->help_turns--;
}

uint64_t chempi_shm_choice_start(const struct shm_xfer *xfer)
{
    return CHEMPI_UNLIKELY(xfer->is_timed) ? chempi_clock_ns() : 0;
}

void chempi_shm_choice_stop(struct shm_xfer *xfer, uint64_t start)
{
    if (CHEMPI_UNLIKELY(xfer->is_timed))
        xfer->spent += chempi_clock_ns() - start;
}

/* M1. Prices are ns per 64 KiB. */
static void learn(uint32_t *price, uint64_t ns)
{
    uint64_t raised = *price + *price / 8 + 1;

    if (*price == 0 || ns < raised)
        *price = ns < UINT32_MAX / 2 ? (uint32_t)ns : UINT32_MAX / 2;
    else
        *price = (uint32_t)(raised < UINT32_MAX / 2 ? raised : UINT32_MAX / 2);
}

/* ns for len bytes as ns per 64 KiB. */
static uint64_t rate(uint64_t ns, uint64_t len)
{
    return ns < (UINT64_C(1) << 47) ? (ns << 16) / len + 1 : UINT32_MAX;
}

void chempi_shm_choice_learn_ring(const struct shm_xfer *xfer)
{
    struct shm_price *price = price_of(xfer);

    if (CHEMPI_LIKELY(!xfer->is_timed) || xfer->base.want < xfer->base.len)
        return;
    price->is_both_ways = sends_as_well(xfer);
    learn(&price->out, rate(xfer->spent, xfer->base.len));
    learn(&price->in, rate(xfer->peer_spent, xfer->base.len));
}

/* M4 */
static uint64_t rate_of_both(uint64_t one, uint64_t other)
{
    uint64_t sum = one + other;

    return sum > UINT32_MAX ? (one < other ? one : other) : one * other / sum;
}

void chempi_shm_choice_learn_copy(const struct shm_xfer *xfer, uint64_t copied)
{
    struct shm_price *price = price_of(xfer);
    uint64_t theirs = xfer->base.len - copied;

    if (CHEMPI_LIKELY(!xfer->is_timed) || xfer->base.want < xfer->base.len)
        return;
    price->is_both_ways = sends_as_well(xfer);
    if (!xfer->is_shared)
        learn(&price->copy, rate(xfer->spent, copied));
    else if (copied == 0)
        learn(&price->shared, rate(xfer->peer_spent, theirs));
    else if (theirs == 0)
        learn(&price->shared, rate(xfer->spent, copied));
    else
        learn(&price->shared, rate_of_both(rate(xfer->spent, copied),
                                           rate(xfer->peer_spent, theirs)));
}

/* --- through the caches or past them --- */

uint32_t chempi_shm_choice_judge(uint32_t points, uint64_t took_ns, size_t len)
{
    uint64_t lines = len / CHEMPI_CACHE_LINE;

    if (took_ns >= LOST_LINE_NS * lines)
        return points;
    if (took_ns < SLOW_LINE_NS * lines)
        return points > PUT_STEP ? points - PUT_STEP : 0;
    return points + PUT_STEP < PUT_MOST ? points + PUT_STEP : PUT_MOST;
}

/* M6. The median, more or less: of single writes some meet what others do not,
 * so that the cheapest one tells little. */
static void learn_line(uint32_t *cost, uint64_t ns)
{
    uint64_t most = (uint64_t)*cost + *cost / 8 + 1;
    uint32_t least = *cost - *cost / 4;

    if (*cost == 0)
        *cost = ns < UINT32_MAX / 2 ? (uint32_t)ns : UINT32_MAX / 2;
    else if (ns > *cost)
        *cost = (uint32_t)(ns < most ? ns : most);
    else
        *cost = ns > least ? (uint32_t)ns : least;
}

uint32_t chempi_shm_choice_lap(struct shm_laps *laps, uint64_t ns, size_t len,
                               bool may_be_wide)
{
    const uint32_t *other = &laps->costs[!laps->is_wide];

    if (len <= SHM_EAGER_MAX && ns < LOST_LINE_NS * (len / CHEMPI_CACHE_LINE))
        learn_line(&laps->costs[laps->is_wide], rate(ns, len));
    laps->samples++;
    if (laps->samples < (laps->is_settled ? TRY_EVERY : TRY_SAMPLES))
        return laps->is_settled ? PUT_EVERY - 1 : TRY_GAP;
    laps->samples = 0;
    laps->is_settled =
        !laps->is_settled && laps->costs[0] > 0 && laps->costs[1] > 0;
    if (!laps->is_settled) {
        laps->is_wide = !laps->is_wide;
        return *other > 0 ? TRY_RUN : TRY_WARM;
    }
    laps->is_wide =
        may_be_wide && laps->costs[1] < laps->costs[0] - laps->costs[0] / 8;
    return PUT_EVERY - 1;
}

/* A store is over when it has left the core, not when memcpy() returns. */
static CHEMPI_NOINLINE void put_timed(struct shm_ep *ep, void *to,
                                      const void *from, size_t len)
{
    uint64_t first_ns = chempi_clock_ns();
    uint64_t start_ns = chempi_clock_ns();
    uint64_t clock_ns = start_ns - first_ns; /* what looking at it takes */
    uint64_t took_ns;

    chempi_copy(to, from, len);
    atomic_thread_fence(memory_order_seq_cst); /* with nobody: to wait */
    took_ns = chempi_clock_ns() - start_ns;
    took_ns = took_ns > clock_ns ? took_ns - clock_ns : 0;
    if (shm_is_wide(ep) || len > SHM_PIECE)
        ep->put_points = chempi_shm_choice_judge(ep->put_points, took_ns, len);
    ep->puts_left = chempi_shm_choice_lap(&ep->laps, took_ns, len,
                                          !chempi_shm_choice_is_crowded(ep));
    if (shm_is_far(ep) && ep->laps.is_settled)
        ep->puts_left = PUT_EVERY_FAR - 1;
}

void chempi_shm_choice_put(struct shm_ep *ep, void *to, const void *from,
                           size_t len)
{
    if (CHEMPI_UNLIKELY(ep->puts_left == 0)) {
        put_timed(ep, to, from, len);
        return;
    }
    ep->puts_left--;
    if (!shm_is_far(ep)) {
        chempi_copy(to, from, len);
        return;
    }
    chempi_copy_past(to, from, len);
    shm_dev_of(ep)->past++;
}
