/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and room: sending messages of one line or one span and what is owed,
 * and waiting for room.
 *
 *   W1  a sender that lacks room sets `waits`, orders, and looks at `taken`
 *       again before it sleeps (is_ready); a receiver that advances `taken`
 *       orders, looks at `waits`, and then wakes: one of the two sees the
 *       other
 *   W2  `taken` lags at most a quarter of the lines and of the data behind,
 *       and a span is at most a quarter of the data, so a receiver that has
 *       taken everything always leaves room for one. Likewise behind what W4
 *       skips: of a lap, a quarter at most is not yet told, and one that turned
 *       early holds nearly three quarters, more than a span with its gap
 *   W3  a line holds more than one tiny message (R4) if nothing has come from
 *       the peer since: it most likely has not read the first one yet, and the
 *       line goes from core to core once for up to three messages (where that
 *       takes 250 ns, windows of 64 messages of 1 to 8 bytes took 150 ns each,
 *       90 ns so). Who has had an answer knows that it was read: writing on
 *       where the peer has just read would take longer than a line that it has
 *       read a lap ago (1 byte to and fro took 0.10 us, 0.13 us so)
 *   W4  spans of up to SHM_PIECE, a quarter of SHM_LAP, turn back at its end
 *       where that is found to be cheaper (choice.c, M6),
 *       and not at that of the data, so that both cores find them in their
 *       first-level caches (2 KiB one way took 0.41 us with laps of 64 KiB,
 *       0.33 us so).
 *       Where the next of it, at the turn or before, is not yet free, the
 *       sender looks for it some times, which keeps the two in step: a receiver
 *       that posts 64 receives takes nothing meanwhile, and who goes on behind
 *       the lap is out of those caches up to the end of the data (1 KiB of 64
 *       took 200 ns, 160 ns so). Then it does go on: to who computes or sends
 *       as well it can send as much as the data holds
 *   W5  a message of more than SHM_PIECE comes in pieces of as much, each with
 *       a line of its own: its receiver copies one while the next is put, and
 *       all turn early (8 KiB took 1.25 us in one piece, 0.90 us so). Where
 *       they would not turn early, the message is put whole (where a line takes
 *       150 ns, 8 KiB one way took 0.92 us in pieces, 0.76 us so). None is put
 *       before there is room for all of them, wherever they turn: where the lap
 *       before turned early there is behind this one; else the data must hold
 *       one piece more than the message, and two gaps: of the last one, and as
 *       much more as that skips where it finds the end of the lap
 *   W6  behind a span of less than SHM_PIECE a gap of SHM_GAP stays free. A
 *       core that reads one asks for the lines behind it of its own accord, and
 *       so took those from the sender that the next span is written to: 1 KiB
 *       took 0.24 us, and the first of each lap 0.17; all do so
 *   W7  who sends one message asks for the lines of the next one of its size
 *       while the answer is on its way: else each store of that would wait for
 *       the receiver's core, which has read the line a lap ago (where a line
 *       takes 145 ns to the other core, 1 KiB took 0.64 us, 0.39 us so)
 */
#include <errno.h>

#include "common/base/copy.h"
#include "libchempi/devices/shm/internal.h"

#define LINES_AHEAD 4u /* taken back ahead of posted messages in a row */
#define LOOKS_MAX 64u  /* W4 */

/* --- room --- */

/* E3. Behind SHM_LAP the peer has nothing to take of a lap that turned early.
 * Data that ends with a lap belongs to that one. */
static uint32_t data_end(const struct shm_ep *ep)
{
    uint32_t size = shm_dev_of(ep)->data_size;
    uint32_t lap = (ep->data_head - 1) & ~(size - 1);
    bool is_beyond = ep->data_head - lap > SHM_LAP && lap == ep->data_turn &&
                     (int32_t)(lap - ep->data_tail) > 0;

    return (is_beyond ? lap : ep->data_tail) + size;
}

/* Read what the peer has taken; it may not be more than was put, nor so little
 * that what was put had no room (E3). */
void chempi_shm_eager_refresh(struct shm_ep *ep)
{
    struct shm_taken *taken = &ep->tx_pair->taken;
    uint32_t lines = atomic_load_explicit(&taken->lines, memory_order_acquire);
    uint32_t data = atomic_load_explicit(&taken->data, memory_order_acquire);
    uint32_t end;

    if (ep->tx_head - lines > ep->line_mask ||
        ep->data_head - data > 2 * shm_dev_of(ep)->data_size) {
        chempi_shm_eager_break(ep, "the peer took more than was sent");
        return;
    }
    ep->tx_tail = lines;
    ep->data_tail = data;
    end = data_end(ep);
    if ((int32_t)(end - ep->data_head) < 0)
        chempi_shm_eager_break(ep, "the peer took less than it had said");
    else if (ep->is_data_open)
        ep->data_end = end;
}

void chempi_shm_eager_wait(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);

    if (!chempi_list_is_empty(&ep->busy_link))
        return;
    chempi_list_append(&dev->busy, &ep->busy_link);
    dev->has_work = true;
    if (!ep->is_tx_open)
        return;
    atomic_store_explicit(&ep->tx_pair->sender.waits, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* W1; partner: tell() */
}

int chempi_shm_eager_status(struct chempi_ep *base)
{
    const struct shm_ep *ep = (const struct shm_ep *)base;

    if (!ep->is_broken)
        return 0;
    return chempi_err_set(
        &base->dev->err, -ECONNRESET, "rank %u %s", (unsigned)base->proc,
        ep->broken_status == -EPIPE ? "has ended"
                                    : "broke the rules of shared memory");
}

/* W4 */
static void go_beyond(struct shm_ep *ep, uint32_t len)
{
    uint32_t before = ep->data_head;

    ep->data_head += SHM_LAP + CHEMPI_CACHE_LINE - shm_data_at(ep);
    ep->data_end = data_end(ep);
    if (shm_has_room(ep, len))
        return;
    ep->data_head = before;
    ep->data_end = data_end(ep);
}

/* W4. Ranks that share a core are not both at it. */
static void stay_in_lap(struct shm_ep *ep, uint32_t len)
{
    bool may_look = len <= SHM_PIECE && !chempi_shm_choice_is_crowded(ep);
    uint32_t looks = may_look ? LOOKS_MAX : 0;

    while (!ep->is_broken && looks-- > 0 &&
           !(ep->is_hot && chempi_shm_eager_has_any(ep))) {
        CHEMPI_CPU_RELAX();
        chempi_shm_eager_refresh(ep);
        if (shm_has_room(ep, len))
            return;
    }
    if (shm_has_line(ep))
        go_beyond(ep, len);
}

/* Likewise, where the peer has been looked at, and all of the data is there. */
static bool finds_data(struct shm_ep *ep, uint32_t len)
{
    if (!shm_has_room(ep, len) && shm_has_line(ep) &&
        shm_data_at(ep) <= SHM_LAP)
        stay_in_lap(ep, len);
    return shm_has_room(ep, len);
}

static int CHEMPI_NOINLINE find_room(struct shm_ep *ep, uint32_t len)
{
    int rc = chempi_shm_eager_status(&ep->base);

    if (rc < 0)
        return rc;
    if (!ep->is_tx_open) {
        rc = chempi_shm_endpoint_open_tx(ep);
        if (rc < 0)
            return rc;
    }
    chempi_shm_eager_refresh(ep);
    if (!chempi_list_is_empty(&ep->rndv.control))
        (void)chempi_rndv_flush(&ep->rndv);
    if (shm_has_room(ep, len))
        return 0;
    if (len > 0 && !ep->is_data_open) { /* E3 */
        rc = chempi_shm_endpoint_open_data(ep);
        if (rc < 0)
            return rc;
    }
    return ep->is_data_open && finds_data(ep, len) ? 0 : -EAGAIN;
}

int chempi_shm_eager_try(struct shm_ep *ep, uint32_t len)
{
    return CHEMPI_LIKELY(shm_has_room(ep, len)) ? 0 : find_room(ep, len);
}

void chempi_shm_eager_want(struct shm_ep *ep, uint32_t len)
{
    ep->wants_room = true;
    ep->wanted = len;
    chempi_shm_eager_wait(ep);
}

int chempi_shm_eager_room(struct shm_ep *ep, uint32_t len)
{
    int rc = chempi_shm_eager_try(ep, len);

    if (rc == -EAGAIN)
        chempi_shm_eager_want(ep, len);
    return rc;
}

const char *chempi_shm_eager_check(const struct shm_ep *ep)
{
    bool is_waiting = ep->is_broken
                          ? !ep->is_reported
                          : !chempi_list_is_empty(&ep->rndv.control) ||
                                !chempi_list_is_empty(&ep->rndv.pumping) ||
                                ep->wants_room;
    bool is_closed = !ep->is_tx_open || ep->is_broken;

    if (ep->tx_head - ep->tx_tail > ep->line_mask + is_closed ||
        (is_closed &&
         (ep->tx_head - ep->tx_tail != ep->line_mask + 1 || ep->tx_tiny)))
        return "shm E1: more lines than there are, or some that are closed";
    if (ep->is_tx_open && !ep->is_broken &&
        (int32_t)(ep->data_end - ep->data_head) < 0)
        return "shm E3: data beyond what is reserved or free";
    return !is_waiting || !chempi_list_is_empty(&ep->busy_link)
               ? NULL
               : "shm E2: an endpoint that waits for room unnoticed";
}

static void give_up(struct shm_ep *ep, int status, const char *why)
{
    ep->is_broken = true;
    ep->broken_status = status;
    ep->broken_why = why;
    ep->tx_tail = ep->tx_head - (ep->line_mask + 1); /* E1 */
    ep->tx_tiny = NULL;
    chempi_shm_eager_wait(ep); /* reported from progress */
}

void chempi_shm_eager_break(struct shm_ep *ep, const char *why)
{
    if (!ep->is_broken)
        give_up(ep, -EPROTO, why);
}

void chempi_shm_eager_give_up(struct shm_ep *ep, int status)
{
    struct shm_dev *dev = shm_dev_of(ep);

    if (ep->is_broken)
        return;
    dev->broken = dev->base.err;
    give_up(ep, status, NULL);
}

/* --- sending --- */

static_assert(SHM_INLINE_MAX <= CHEMPI_COPY_SHORT, "chempi_copy_short does it");

/* Where the payload of a short message goes. */
static inline unsigned char *
head_short(struct shm_line *line, const struct chempi_envelope *env, size_t len)
{
    line->kind = SHM_KIND_SHORT;
    line->len = (uint16_t)len;
    if (len <= SHM_TINY_MAX) {
        struct shm_tiny *more = line->body.brief.u.tiny.more;

        for (uint32_t i = 0; i < SHM_TINY_MORE; i++)
            atomic_store_explicit(&more[i].mark, 0, memory_order_relaxed);
    }
    memcpy(line->body.brief.tail, (const char *)env + SHM_ENVELOPE_TAIL,
           sizeof(line->body.brief.tail));
    return line->body.brief.u.bytes;
}

unsigned char *chempi_shm_eager_span(struct shm_ep *ep, uint32_t len,
                                     struct shm_span *span)
{
    span->pos = shm_span_start(ep, len);
    span->len = len;
    if (CHEMPI_UNLIKELY((span->pos & (shm_dev_of(ep)->data_size - 1)) == 0))
        ep->data_turn = shm_turns_early(ep, len) ? span->pos : span->pos + 1;
    ep->data_head = span->pos + shm_round(len);
    return ep->tx_data + (span->pos & (shm_dev_of(ep)->data_size - 1));
}

/* The same of one with its payload in the data. */
static inline unsigned char *head_eager(struct shm_ep *ep,
                                        struct shm_line *line,
                                        const struct chempi_envelope *env,
                                        uint32_t len)
{
    line->kind = SHM_KIND_EAGER;
    line->body.msg.env = *env;
    return chempi_shm_eager_span(ep, len, &line->body.msg.u.span);
}

static inline struct shm_line *line_at(const struct shm_ep *ep, uint32_t number)
{
    return &ep->tx_lines[number & ep->line_mask];
}

/* Lines, from the one `ahead` of the next on: each would wait for the one
 * before to be taken back. Not the next one: at that the peer looks now. Nor
 * after short messages of one line: the next of those waits for its own line
 * only, and 16 of 1 to 8 bytes took a tenth longer where cores are far apart.
 */
static inline void warm_lines(const struct shm_ep *ep, uint32_t ahead,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CHEMPI_PREFETCH_WRITE(line_at(ep, ep->tx_head + ahead + i));
}

/* W7. After a message that nobody says is the first of several. */
static void warm_data(const struct shm_ep *ep, uint32_t len)
{
    bool is_whole = len < SHM_PIECE || shm_is_wide(ep);
    uint32_t size = shm_dev_of(ep)->data_size;
    uint32_t at = shm_span_start(ep, is_whole ? len : SHM_PIECE) & (size - 1);

    if (shm_is_far(ep))
        return; /* it goes past the caches */
    for (uint32_t i = 0; i < len; i += CHEMPI_CACHE_LINE) {
        CHEMPI_PREFETCH_WRITE(ep->tx_data + at);
        at = (at + CHEMPI_CACHE_LINE) & (size - 1);
        if (at == SHM_LAP && !is_whole)
            at = 0; /* where the pieces turn */
    }
}

/* R3. `rest` lines after the next one have been filled with payload. */
static inline bool is_row_plain(const struct shm_ep *ep, uint32_t rest)
{
    uint32_t next_lap = ep->tx_head + ep->line_mask + 1;

    for (uint32_t i = 1; i <= rest; i++) {
        const struct shm_line *line = line_at(ep, ep->tx_head + i);

        if (CHEMPI_UNLIKELY(
                atomic_load_explicit(&line->seq, memory_order_relaxed) ==
                next_lap + i + 1))
            return false;
    }
    return true;
}

/* Make them lines of the last lap again. */
static CHEMPI_COLD void undo_row(struct shm_ep *ep, uint32_t rest)
{
    uint32_t last_lap = ep->tx_head - ep->line_mask - 1;

    for (uint32_t i = 1; i <= rest; i++)
        atomic_store_explicit(&line_at(ep, ep->tx_head + i)->seq,
                              last_lap + i + 1, memory_order_relaxed);
}

/* Of the lines that were taken back since, `rest` after the next one. */
static CHEMPI_COLD bool finds_lines(struct shm_ep *ep, uint32_t rest)
{
    if (!ep->is_tx_open || ep->is_broken)
        return false;
    chempi_shm_eager_refresh(ep);
    return ep->tx_head - ep->tx_tail + rest < ep->line_mask;
}

/* The line is filled: show the message. */
static inline void show(struct shm_ep *ep, struct shm_line *line,
                        const struct chempi_envelope *env)
{
    shm_publish(ep, line, ep->base.dev->params.services->is_wake_registered);
    if (CHEMPI_UNLIKELY(env->flags & CHEMPI_ENVELOPE_URGENT))
        shm_urge(ep);
}

/* A short message of more than one line. False: it must go through the data,
 * for want of lines side by side, or because of R3. */
static inline bool put_row(struct shm_ep *ep, const struct chempi_envelope *env,
                           const void *data, size_t len, bool is_posted)
{
    uint32_t rest = shm_row_rest(len);
    struct shm_line *line = shm_next_line(ep);

    if ((ep->tx_head & ep->line_mask) + rest > ep->line_mask ||
        (CHEMPI_UNLIKELY(ep->tx_head - ep->tx_tail + rest >= ep->line_mask) &&
         !finds_lines(ep, rest)))
        return false;
    /* The peer looks at the first line all the time, so that one is finished
     * last. Copied in one piece: in two, apart at the lines' border, 256 bytes
     * took 137 ns instead of 105. */
    memcpy((unsigned char *)line + SHM_INLINE_AT, data, len);
    if (CHEMPI_UNLIKELY(!is_row_plain(ep, rest))) {
        undo_row(ep, rest);
        return false;
    }
    (void)head_short(line, env, len);
    show(ep, line, env);
    ep->tx_head += rest;
    if (is_posted)
        warm_lines(ep, LINES_AHEAD, 1 + rest);
    else
        warm_lines(ep, 1, rest);
    return true;
}

/* W5 */
static bool has_room_for_pieces(const struct shm_ep *ep, uint32_t len)
{
    uint32_t count = (len + SHM_PIECE - 1) / SHM_PIECE;
    uint32_t at = shm_data_at(ep);

    return ep->tx_head - ep->tx_tail + count <= ep->line_mask &&
           ((at > 0 && at <= SHM_LAP && ep->data_head - at == ep->data_turn) ||
            shm_has_room(ep, len + SHM_PIECE + 2 * SHM_GAP));
}

/* Ranks that share a core do not copy at the same time, a receiver to whom
 * each piece rings does not look at each, and system messages are run where
 * they lie if they are whole. */
static bool goes_in_pieces(struct shm_ep *ep, const struct chempi_envelope *env,
                           size_t len)
{
    if (len <= SHM_PIECE || shm_is_wide(ep) || ep->is_broken ||
        !ep->is_data_open || env->kind == CHEMPI_KIND_SYSTEM ||
        atomic_load_explicit(&ep->tx_pair->taken.mode, memory_order_relaxed) !=
            SHM_MODE_POLLED ||
        chempi_shm_choice_is_crowded(ep))
        return false;
    if (has_room_for_pieces(ep, (uint32_t)len))
        return true;
    chempi_shm_eager_refresh(ep);
    return !ep->is_broken && has_room_for_pieces(ep, (uint32_t)len);
}

/* Room for a piece, which there is unless the peer goes back on its word. */
static bool finds_room_for_piece(struct shm_ep *ep, uint32_t len)
{
    if (CHEMPI_LIKELY(shm_has_room(ep, len)))
        return true;
    chempi_shm_eager_refresh(ep);
    if (finds_data(ep, len))
        return true;
    chempi_shm_eager_break(ep, "the peer took less than it had said");
    return false;
}

static int put_pieces(struct shm_ep *ep, const struct chempi_envelope *env,
                      const unsigned char *data, size_t len)
{
    for (size_t at = 0; at < len; at += SHM_PIECE) {
        uint32_t n = (uint32_t)(len - at < SHM_PIECE ? len - at : SHM_PIECE);
        struct shm_line *line = shm_next_line(ep);
        unsigned char *to;

        if (!finds_room_for_piece(ep, n))
            return chempi_shm_eager_status(&ep->base);
        if (at == 0) {
            to = head_eager(ep, line, env, n);
        } else {
            line->kind = SHM_KIND_MORE;
            to = chempi_shm_eager_span(ep, n, &line->body.more);
        }
        shm_put(ep, to, data + at, n);
        show(ep, line, env);
    }
    return CHEMPI_DONE;
}

/* A message of more than one line. */
static CHEMPI_NOINLINE int inject_long(struct shm_ep *ep,
                                       const struct chempi_envelope *env,
                                       const void *data, size_t len,
                                       bool is_posted)
{
    struct shm_line *line;
    int rc;

    if (len <= SHM_SHORT_MAX && put_row(ep, env, data, len, is_posted))
        return CHEMPI_DONE;
    if (len > SHM_EAGER_MAX)
        return -EMSGSIZE;
    if (goes_in_pieces(ep, env, len)) {
        rc = put_pieces(ep, env, data, len);
        if (rc == CHEMPI_DONE && !is_posted)
            warm_data(ep, (uint32_t)len);
        return rc;
    }
    rc = chempi_shm_eager_room(ep, (uint32_t)len);
    if (rc < 0)
        return rc;
    line = shm_next_line(ep);
    shm_put(ep, head_eager(ep, line, env, (uint32_t)len), data, len);
    show(ep, line, env);
    if (is_posted)
        warm_lines(ep, LINES_AHEAD, 1);
    else
        warm_data(ep, (uint32_t)len);
    return CHEMPI_DONE;
}

/* R4, W3. A tiny message was put: the next one may follow it. */
static inline void open_tiny(struct shm_ep *ep, struct shm_line *line,
                             const struct chempi_envelope *env)
{
    ep->tx_tiny = line->body.brief.u.tiny.more;
    ep->tx_next = *env;
    ep->tx_next.serial++;
}

/* False: it is not like the one before. */
static inline bool put_tiny(struct shm_ep *ep,
                            const struct chempi_envelope *env, const void *data,
                            size_t len)
{
    struct shm_tiny *tiny = ep->tx_tiny;

    if (memcmp((const char *)&ep->tx_next + SHM_ENVELOPE_TAIL,
               (const char *)env + SHM_ENVELOPE_TAIL,
               sizeof(*env) - SHM_ENVELOPE_TAIL) != 0)
        return false;
    chempi_copy_short(tiny->bytes, data, len);
    atomic_store_explicit(&tiny->mark, (uint32_t)len + 1,
                          memory_order_release); /* partner: drain */
    ep->tx_tiny = shm_is_line_over(tiny + 1) ? NULL : tiny + 1;
    ep->tx_next.serial++;
    shm_call(ep, ep->base.dev->params.services->is_wake_registered);
    if (CHEMPI_UNLIKELY(env->flags & CHEMPI_ENVELOPE_URGENT))
        shm_urge(ep);
    return true;
}

/* is_posted: others are likely to follow at once. */
int chempi_shm_eager_inject(struct chempi_ep *base,
                            const struct chempi_envelope *env, const void *data,
                            size_t len, bool is_posted)
{
    struct shm_ep *ep = (struct shm_ep *)base;
    struct shm_line *line;

    if (CHEMPI_UNLIKELY(len > SHM_INLINE_MAX))
        return inject_long(ep, env, data, len, is_posted);
    if (ep->tx_tiny && len <= SHM_TINY_MAX && put_tiny(ep, env, data, len))
        return CHEMPI_DONE;
    if (CHEMPI_UNLIKELY(!shm_has_line(ep))) {
        int rc = chempi_shm_eager_room(ep, 0);

        if (rc < 0)
            return rc;
    }
    line = shm_next_line(ep);
    chempi_copy_short(head_short(line, env, len), data, len);
    show(ep, line, env);
    if (len <= SHM_TINY_MAX)
        open_tiny(ep, line, env);
    return CHEMPI_DONE;
}

int chempi_shm_eager_inject_iter(struct shm_ep *ep,
                                 const struct chempi_envelope *env,
                                 struct chempi_segment *iter, size_t len)
{
    bool is_short = len <= SHM_INLINE_MAX;
    unsigned char *dst;
    struct shm_line *line;
    int rc;

    rc = chempi_shm_eager_room(ep, is_short ? 0 : (uint32_t)len);
    if (rc < 0)
        return rc;
    line = shm_next_line(ep);
    dst = is_short ? head_short(line, env, len)
                   : head_eager(ep, line, env, (uint32_t)len);
    (void)chempi_segment_pack(iter, dst, len);
    show(ep, line, env);
    return CHEMPI_DONE;
}

/* --- taking --- */

const unsigned char *chempi_shm_eager_take_span(struct shm_ep *ep,
                                                const struct shm_span *span)
{
    uint32_t size = shm_dev_of(ep)->data_size;
    uint32_t offset = span->pos & (size - 1);

    if (span->len == 0 || span->len > size / 4 || span->len > size - offset)
        return NULL;
    ep->rx_data = span->pos + shm_round(span->len);
    return ep->rx_base + offset;
}
