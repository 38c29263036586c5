/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for times to pass; see timing_model.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/devices/scivia/adapter/model/timing_model.h"

#include "common/base/clock.h"
#include "common/base/compiler.h"

#define LINE 64u
#define PIECE 16u
#define TRIALS 25u
#define READINGS 40u     /* of the clock, in each */
#define READ_WIDTH 32u   /* bytes that one load brings: a processor's line */
#define SMALL_COPY 2048u /* bytes copied at the rate of small copies */
#define STRETCH_NS 300u
#define WAKE_MAX_NS CHEMPI_NS_PER_S

/* A pause of the processor takes up to some tens of ns; the last stretch goes
 * without. */
static void wait_until(const struct chempi_timing_model *pace, uint64_t when_ns)
{
    uint64_t now_ns = chempi_clock_ns() + pace->clock_cost_ns;

    while (now_ns < when_ns) {
        if (now_ns + STRETCH_NS < when_ns)
            CHEMPI_CPU_RELAX();
        now_ns = chempi_clock_ns() + pace->clock_cost_ns;
    }
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The least of several trials: who loses the processor in one of them would
 * take the clock for slow, and all waits would end that much too early. */
static uint64_t clock_cost_ns(void)
{
    uint64_t least_ns = UINT64_MAX;

    for (unsigned i = 0; i < TRIALS; i++) {
        uint64_t start_ns = chempi_clock_ns();
        uint64_t ns;

        for (unsigned k = 0; k < READINGS; k++)
            (void)chempi_clock_ns();
        ns = (chempi_clock_ns() - start_ns) / (READINGS + 1);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

void chempi_timing_model_init(struct chempi_timing_model *pace,
                              const struct chempi_personality *personality)
{
    *pace = (struct chempi_timing_model){.personality = personality};
    if (!personality)
        return;
    pace->clock_cost_ns = clock_cost_ns();
}

static void wait_ns(const struct chempi_timing_model *pace, uint64_t ns)
{
    if (pace->personality && ns > 0)
        wait_until(pace, chempi_clock_ns() + ns);
}

/* --- remote stores --- */

/* What a store is cut into: pieces of a line, lines, pieces of a line. */
struct cuts {
    uint64_t head;
    uint64_t lines;
    uint64_t tail;
    size_t first; /* the lines are [first, last) */
    size_t last;
};

static uint64_t pieces(size_t from, size_t to)
{
    return (to + PIECE - 1) / PIECE - from / PIECE;
}

static struct cuts cut(size_t offset, size_t len)
{
    size_t end = offset + len;
    size_t first = (offset + LINE - 1) / LINE * LINE;
    size_t last = end / LINE * LINE;
    struct cuts cuts = {.first = first, .last = last};

    if (len == 0)
        return cuts;
    if (first > last) { /* within one line */
        cuts.head = pieces(offset, end);
        cuts.first = cuts.last = end;
        return cuts;
    }
    cuts.lines = (last - first) / LINE;
    if (offset < first)
        cuts.head = pieces(offset, first);
    if (last < end)
        cuts.tail = pieces(last, end);
    return cuts;
}

void chempi_timing_model_packets(size_t offset, size_t len, uint64_t *full,
                                 uint64_t *partial)
{
    struct cuts cuts = cut(offset, len);

    *full = cuts.lines;
    *partial = cuts.head + cuts.tail;
}

/* Narrow stores that memcpy makes to [from, to): single bytes up to a word's
 * begin, words, and single bytes again. */
static uint64_t narrow_stores(const struct chempi_personality *p, size_t from,
                              size_t to)
{
    size_t word = p->store_bytes;
    size_t first = (from + word - 1) / word * word;
    size_t last = to / word * word;

    if (first >= last)
        return to - from;
    return first - from + (last - first) / word + to - last;
}

/* How long the bus is taken by the stores to [from, to); 0: it keeps nobody
 * waiting. */
static uint64_t bus_ns(const struct chempi_personality *p,
                       enum chempi_timing_model_width width, size_t from,
                       size_t to)
{
    if (width == CHEMPI_TIMING_MODEL_WIDE || p->store_bytes == 0)
        return 0;
    return narrow_stores(p, from, to) * p->narrow_ns;
}

/* Packets that end no burst and begin none, of stores that had the bus for
 * that long: the first of them went at once. */
static void send_pieces(struct chempi_timing_model *pace, uint64_t now_ns,
                        uint64_t stores_ns, uint64_t count)
{
    const struct chempi_personality *p = pace->personality;
    uint64_t alone_ns = now_ns + p->latency_ns;
    uint64_t bus_ns = stores_ns > p->narrow_ns ? stores_ns - p->narrow_ns : 0;

    if (count == 0)
        return;
    pace->store_arrival_ns =
        later(alone_ns + bus_ns,
              later(alone_ns, pace->store_arrival_ns + p->partial_ns) +
                  (count - 1) * p->partial_ns);
    pace->burst_at = NULL;
}

/* From the arrival of a burst's first line to that of the one `index` lines
 * behind it. */
static uint64_t burst_span(const struct chempi_timing_model *pace,
                           uint64_t index)
{
    uint64_t buffers = pace->personality->stream_buffers;
    uint64_t stages = buffers - 1; /* between the first and last */
    uint64_t filled = buffers * pace->burst_line_ns;

    filled =
        filled > pace->burst_latency_ns ? filled - pace->burst_latency_ns : 0;
    if (index < stages)
        return index * filled / stages;
    return filled + (index - stages) * pace->burst_line_ns;
}

/* Lines that follow each other by line_ns. A longer time than the card's is the
 * processor's, and the first line waits for its last store, too. */
static void send_lines(struct chempi_timing_model *pace, uint64_t now_ns,
                       bool is_going_on, uint64_t line_ns, uint64_t count)
{
    const struct chempi_personality *p = pace->personality;
    uint64_t latency_ns = p->full_latency_ns + line_ns - p->full_ns;
    uint64_t alone_ns = now_ns + latency_ns;

    if (count == 0)
        return;
    is_going_on = is_going_on && pace->burst_line_ns == line_ns;
    if (!is_going_on ||
        pace->burst_first_ns + burst_span(pace, pace->burst_lines) < alone_ns) {
        pace->burst_first_ns =
            is_going_on
                ? alone_ns
                : later(alone_ns, pace->store_arrival_ns + p->partial_ns);
        pace->burst_latency_ns = latency_ns;
        pace->burst_line_ns = line_ns;
        pace->burst_lines = 0;
    }
    pace->burst_lines += count;
    pace->store_arrival_ns =
        pace->burst_first_ns + burst_span(pace, pace->burst_lines - 1);
}

uint64_t chempi_timing_model_store_at(struct chempi_timing_model *pace,
                                      uint64_t now_ns, const void *at,
                                      size_t offset, size_t len,
                                      enum chempi_timing_model_width width)
{
    const struct chempi_personality *p = pace->personality;
    struct cuts cuts = cut(offset, len);
    uint64_t head_ns = bus_ns(p, width, offset, cuts.first);
    uint64_t line_ns = later(p->full_ns, bus_ns(p, width, 0, LINE));
    uint64_t lines_ns = bus_ns(p, width, cuts.first, cuts.last);
    uint64_t tail_ns = bus_ns(p, width, cuts.last, offset + len);
    bool is_going_on = pace->burst_at == at && pace->burst_end == offset;

    if (pace->is_store_posted &&
        now_ns < pace->store_arrival_ns + p->latency_ns)
        now_ns -= p->latency_ns;
    send_pieces(pace, now_ns, head_ns, cuts.head);
    send_lines(pace, now_ns + head_ns, is_going_on && cuts.head == 0, line_ns,
               cuts.lines);
    send_pieces(pace, now_ns + head_ns + lines_ns, tail_ns, cuts.tail);
    pace->burst_at = cuts.lines && !cuts.tail ? at : NULL;
    pace->burst_end = offset + len;
    pace->is_store_posted = true;
    return pace->store_arrival_ns;
}

void chempi_timing_model_store_slow(struct chempi_timing_model *pace,
                                    const void *at, size_t offset, size_t len,
                                    enum chempi_timing_model_width width)
{
    wait_until(pace, chempi_timing_model_store_at(pace, chempi_clock_ns(), at,
                                                  offset, len, width));
}

void chempi_timing_model_read(struct chempi_timing_model *pace, size_t len)
{
    if (pace->personality)
        wait_ns(pace, (len + READ_WIDTH - 1) / READ_WIDTH *
                          pace->personality->read_ns);
}

void chempi_timing_model_dma(struct chempi_timing_model *pace, size_t len)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        wait_ns(pace, p->dma_setup_ns +
                          len * UINT64_C(1000000) / p->dma_bytes_per_ms);
}

/* since_ns comes from another process: not more than a second is believed. */
void chempi_timing_model_wake(struct chempi_timing_model *pace,
                              uint64_t since_ns)
{
    uint64_t now_ns;

    if (!pace->personality)
        return;
    now_ns = chempi_clock_ns();
    if (since_ns <= now_ns && now_ns - since_ns < WAKE_MAX_NS)
        wait_until(pace, since_ns + pace->personality->interrupt_ns);
}

/* --- descriptors --- */

/* The latency is paid by the first one of a sequence; the others follow on the
 * link. A read travels both ways. */
uint64_t chempi_timing_model_descriptor_at(struct chempi_timing_model *pace,
                                           uint64_t now_ns, bool is_read,
                                           size_t len)
{
    const struct chempi_personality *p = pace->personality;
    uint64_t latency_ns = (uint64_t)p->via_latency_ns << is_read;

    if (pace->is_via_posted &&
        now_ns < pace->via_arrival_ns + p->via_latency_ns)
        now_ns -= p->via_latency_ns;
    pace->via_arrival_ns =
        later(now_ns + p->doorbell_ns + latency_ns, pace->via_arrival_ns) +
        len * UINT64_C(1000000) / p->via_bytes_per_ms;
    pace->via_flight_ns = pace->via_arrival_ns - now_ns;
    pace->is_via_posted = true;
    return pace->via_arrival_ns;
}

void chempi_timing_model_descriptor(struct chempi_timing_model *pace,
                                    bool is_read, size_t len)
{
    if (pace->personality)
        wait_until(pace, chempi_timing_model_descriptor_at(
                             pace, chempi_clock_ns(), is_read, len));
}

uint64_t chempi_timing_model_sleep_at(const struct chempi_timing_model *pace,
                                      uint64_t now_ns)
{
    const struct chempi_personality *p = pace->personality;

    if (!p || !pace->is_via_posted ||
        now_ns >= pace->via_back_ns + pace->via_flight_ns)
        return 0;
    /* Not the arrival: the receiver is told when the data is in place, too. */
    return pace->via_back_ns + p->interrupt_ns;
}

void chempi_timing_model_sleep(const struct chempi_timing_model *pace,
                               uint64_t now_ns)
{
    wait_until(pace, chempi_timing_model_sleep_at(pace, now_ns));
}

/* --- the processor's own work --- */

uint64_t chempi_timing_model_begin(const struct chempi_timing_model *pace)
{
    return pace->personality ? chempi_clock_ns() : 0;
}

void chempi_timing_model_register(struct chempi_timing_model *pace,
                                  uint64_t since_ns, size_t pages)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        wait_until(pace,
                   since_ns + p->register_ns + pages * p->register_page_ns);
}

void chempi_timing_model_deregister(struct chempi_timing_model *pace,
                                    uint64_t since_ns, size_t pages)
{
    const struct chempi_personality *p = pace->personality;

    if (p)
        wait_until(pace,
                   since_ns + p->deregister_ns + pages * p->deregister_page_ns);
}

/* Where the personality says so, the first bytes faster and those that the
 * cache does not take slower. */
uint64_t chempi_timing_model_copy_ns(const struct chempi_personality *p,
                                     size_t len)
{
    uint64_t near = p->host_bytes_per_ms;
    uint64_t small =
        p->host_small_bytes_per_ms ? p->host_small_bytes_per_ms : near;
    size_t head = len < SMALL_COPY ? len : SMALL_COPY;
    size_t cached = len;

    if (p->host_cache_bytes && len > p->host_cache_bytes)
        cached = p->host_cache_bytes;
    return head * UINT64_C(1000000) / small +
           (cached - head) * UINT64_C(1000000) / near +
           (len > cached ? (len - cached) * UINT64_C(1000000) /
                               p->host_memory_bytes_per_ms
                         : 0);
}

uint64_t chempi_timing_model_copy_more_ns(struct chempi_timing_model *pace,
                                          const void *dst, size_t len)
{
    const struct chempi_personality *p = pace->personality;
    size_t before = pace->copy_end == dst ? pace->copy_bytes : 0;

    pace->copy_end = (const char *)dst + len;
    pace->copy_bytes = before + len;
    return chempi_timing_model_copy_ns(p, before + len) -
           chempi_timing_model_copy_ns(p, before);
}

void chempi_timing_model_host_copy(struct chempi_timing_model *pace,
                                   uint64_t since_ns, const void *dst,
                                   size_t len)
{
    const struct chempi_personality *p = pace->personality;

    if (p && p->host_bytes_per_ms)
        wait_until(pace,
                   since_ns + chempi_timing_model_copy_more_ns(pace, dst, len));
}
