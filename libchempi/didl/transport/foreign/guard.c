/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes of other worlds may send; see guard.h. */
#include "libchempi/didl/transport/foreign/guard.h"

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/match.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"

static struct {
    chempi_guard_context_fn *is_sender;
    struct chempi_sink sink; /* the engine's, but for what arrives */
    uint64_t unknown;        /* messages that were held unseen, at most */
} self;

void chempi_guard_on_context(chempi_guard_context_fn *is_sender)
{
    self.is_sender = is_sender;
}

static enum chempi_guard_answer ask(const struct chempi_envelope *env,
                                    uint32_t proc)
{
    return self.is_sender(env->context - env->context % CHEMPI_CONTEXT_STEP,
                          env->source, proc);
}

/* ---- how much there is ---- */

struct count {
    const struct chempi_peer *peer;
    uint32_t count;
};

static bool count_held(struct chempi_held *held, void *arg)
{
    struct count *count = arg;

    count->count += held->peer == count->peer;
    return false;
}

static uint32_t length_of(const struct chempi_list *list)
{
    uint32_t length = 0;

    CHEMPI_LIST_FOR (link, list)
        length++;
    return length;
}

/* The library's own that wait for room there, answers among them: what the
 * program sends and nobody takes yet is no fault of the receiver's. */
static uint32_t count_answers(const struct chempi_list *waiting)
{
    uint32_t count = 0;

    CHEMPI_LIST_FOR (link, waiting)
        count +=
            CHEMPI_CONTAINER_OF(link, struct chempi_outgoing, link)->is_system;
    return count;
}

/* G3, by a look at each so manyth of its messages. */
static bool is_heap(const struct chempi_peer *peer, uint32_t serial)
{
    const uint32_t half = (uint32_t)chempi_setting(CHEMPI_SET_MEET_HELD) / 2;
    struct count count = {.peer = peer};

    if (CHEMPI_LIKELY(serial % half != 0))
        return false;
    (void)chempi_match_find(peer->lane->match, count_held, &count);
    return count.count + length_of(&peer->early) +
               count_answers(&peer->waiting) >
           half;
}

/* ---- a message ---- */

static bool is_here(const struct chempi_arrival *a)
{
    return a->avail == a->env.len || (a->flags & CHEMPI_ARRIVAL_STREAMED);
}

static bool is_counted(const struct chempi_envelope *env)
{
    return env->kind != CHEMPI_KIND_SYSTEM &&
           (env->flags & CHEMPI_ENVELOPE_COUNTED);
}

/* G3 */
static const char *check_payload(const struct chempi_peer *peer,
                                 const struct chempi_arrival *a)
{
    const uint32_t kept = peer->eager_in - peer->eager_released;

    if (!is_counted(&a->env))
        return is_here(a) && a->env.len > 0
                   ? "it has sent payload that it has not counted"
                   : NULL;
    return a->env.len > peer->quota || kept > peer->quota - a->env.len
               ? "it has sent more than its quota"
               : NULL;
}

/* G2 */
static const char *check_message(const struct chempi_peer *peer,
                                 const struct chempi_arrival *a)
{
    const struct chempi_envelope *env = &a->env;
    enum chempi_guard_answer answer;

    if (env->source < 0 || env->tag == MPI_ANY_TAG ||
        (env->tag < 0 &&
         env->context % CHEMPI_CONTEXT_STEP != CHEMPI_CONTEXT_PARTITIONED))
        return "it has sent a message without a source or tag";
    if (!chempi_context_is_open(env->context))
        return "it has sent a message among the ranks of this job";
    answer = ask(env, peer->proc);
    if (answer == CHEMPI_GUARD_NO)
        return "it has sent a message in the name of another process";
    if (answer == CHEMPI_GUARD_UNKNOWN)
        self.unknown++;
    return check_payload(peer, a);
}

/* G4 */
static const char *check_system(const struct chempi_arrival *a)
{
    const struct chempi_envelope *env = &a->env;

    if (env->tag == CHEMPI_ENGINE_TAG_BODY)
        return is_here(a) ? "it has sent what nobody has asked for" : NULL;
    if (!chempi_sysmsg_is_open(env))
        return "it has sent a message that only ranks of this job may send";
    return env->len > a->ep->dev->caps->eager_max
               ? "it has sent too long a system message"
               : NULL;
}

static const char *check(struct chempi_peer *peer,
                         const struct chempi_arrival *a)
{
    const struct chempi_envelope *env = &a->env;
    const char *why = NULL;

    if (env->serial - peer->serial_in >= CHEMPI_GUARD_AHEAD || env->lane != 0)
        return "it has sent a message out of turn";
    if (env->credit - peer->eager_credit > peer->eager_out - peer->eager_credit)
        return "it has received more than it was sent";
    why = env->kind == CHEMPI_KIND_SYSTEM ? check_system(a)
                                          : check_message(peer, a);
    if (!why && is_heap(peer, env->serial))
        why = "it has sent too many messages that nobody receives, or takes no "
              "answers (CHEMPI_MEET_HELD_MAX)";
    return why;
}

static enum chempi_verdict arrived(void *arg, const struct chempi_arrival *a,
                                   struct chempi_rx **rx)
{
    struct chempi_lane *lane = arg;
    struct chempi_peer *peer = chempi_conn_peer(lane, a->ep->proc);
    const char *why = check(peer, a);
    enum chempi_verdict verdict;

    if (CHEMPI_UNLIKELY(why != NULL)) {
        chempi_conn_set_lost(lane, peer->proc, why);
        return CHEMPI_REFUSED;
    }
    if (is_counted(&a->env))
        peer->eager_in += (uint32_t)a->env.len;
    verdict = chempi_engine_sink.arrived(arg, a, rx);
    if (CHEMPI_UNLIKELY(verdict == CHEMPI_NO_ROOM)) { /* it comes again */
        if (is_counted(&a->env))
            peer->eager_in -= (uint32_t)a->env.len;
    }
    return verdict;
}

static void finished(void *arg, uint32_t proc, const char *why)
{
    (void)arg;
    chempi_conn_set_ended(proc, why);
}

const struct chempi_sink *chempi_guard_sink(void)
{
    self.sink = chempi_engine_sink;
    self.sink.arrived = arrived;
    self.sink.finished = finished;
    return &self.sink;
}

/* ---- a communicator that was not there ---- */

/* Its communicator has no receive for it, and there will be none. */
#define NO_CONTEXT UINT32_MAX

static bool is_forged(const struct chempi_held *held, uint32_t context)
{
    const struct chempi_envelope *env = &held->env;

    return env->context - env->context % CHEMPI_CONTEXT_STEP == context &&
           env->source >= 0 && chempi_foreign_is(held->peer->proc) &&
           ask(env, held->peer->proc) == CHEMPI_GUARD_NO;
}

static void lose_forger(const struct chempi_peer *peer)
{
    chempi_conn_set_lost(
        peer->lane, peer->proc,
        "it has sent a message in the name of another process");
}

/* It is released in its turn, to nobody. */
static void spoil_early(struct chempi_peer *peer, uint32_t context)
{
    bool has_any = false;

    CHEMPI_LIST_FOR (link, &peer->early) {
        struct chempi_held *held =
            CHEMPI_CONTAINER_OF(link, struct chempi_held, all);

        if (held->env.kind == CHEMPI_KIND_SYSTEM || !is_forged(held, context))
            continue;
        held->env.context = NO_CONTEXT;
        has_any = true;
    }
    if (has_any)
        lose_forger(peer);
}

/* All in one walk. */
static bool spoil_held(struct chempi_held *held, void *arg)
{
    const uint32_t *context = arg;

    if (!is_forged(held, *context))
        return false;
    chempi_match_spoil(held);
    lose_forger(held->peer);
    return false;
}

void chempi_guard_admit(uint32_t context)
{
    const struct chempi_lane *lane = &chempi_lane_main;

    if (self.unknown == 0)
        return;
    for (struct chempi_peer *p = lane->conn.made; p; p = p->next_made)
        spoil_early(p, context);
    (void)chempi_match_find(lane->match, spoil_held, &context);
}

void chempi_guard_fini(void)
{
    self.unknown = 0;
}
