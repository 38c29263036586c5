/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meeting of two groups; see meet.h.
 *
 *   M1  the root of a side finds the other one; then each member signs its
 *       introduction for this meeting, and all members have those of their side
 *   M2  the roots swap what they know, and hand it down: each member then knows
 *       all of both sides, in the same order, and the secret. The root checks
 *       the signatures; members of other worlds do not rely on it, and check
 *       all themselves
 *   M3  when all members of both sides have prepared the bond they take it in;
 *       when all have, they call each other by it. A bond that nobody needs is
 *       dropped by all
 *   M4  who fails takes part in all that follows, without data: so each side
 *       hears of it, and both return an error. Contexts are then used by
 *       nobody, and what was only prepared is gone
 */
#include "libchempi/didl/proc/meet.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/words/plain.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/proc/roll.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/foreign/foreign_device.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/didl/transport/worlds/vouch.h"

/* What a root tells its side when it has found the other one. */
struct call {
    uint32_t is_first;
    uint8_t meeting[CHEMPI_VOUCH_MEETING_BYTES];
};

/* How it went at a side: a class, and a flag if that is MPI_SUCCESS. */
#define VERDICT_BYTES (sizeof(int32_t) + 1)

/* One meeting, at one member. */
struct meeting {
    const struct chempi_meet *meet;
    struct chempi_comm_channel local;
    struct chempi_comm_channel down; /* the same, whose member 0 is the root */
    bool is_root;
    struct chempi_exchange *exchange; /* the root's */
    uint64_t deadline_ns;             /* until it has heard of the other one;
                                         0: none */
    bool has_heard;
    bool is_alone;    /* the other side was not found; known to all */
    struct call call; /* once it was */
    uint32_t ids[2];  /* contexts: to receive, and local */
    int id_count;
    struct chempi_introduction *own; /* [comm->size] */
    struct chempi_roll *theirs;      /* with boxes */
    size_t their_len;
    struct chempi_bond *bond; /* while it is prepared only */
};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a meeting of "
                                            "processes");
}

/* ---- waiting for the other root ---- */

struct wait {
    const struct meeting *m;
    void **data; /* NULL: wait until it is there, or has left */
    size_t *len;
    bool drains;
    bool ticks; /* there is a deadline */
    bool is_over;
    int error;             /* MPI class */
    struct chempi_err err; /* its words */
};

static int class_of(const struct wait *w, int rc)
{
    return rc == -ENOMEM ? MPI_ERR_NO_MEM : w->m->meet->error_class;
}

/* 1: over; 0: not yet; -errno. */
static int look(struct wait *w)
{
    struct chempi_err *err = &w->err;
    int rc;

    if (w->drains && chempi_exchange_is_drained(w->m->exchange))
        return 1;
    if (!w->data)
        rc = chempi_exchange_state(w->m->exchange, err);
    else
        rc = chempi_exchange_take(w->m->exchange, w->data, w->len, err);
    if (rc == -EAGAIN || (w->drains && rc == 1))
        return 0;
    return w->data && rc == 0 ? 1 : rc;
}

/* Whether to wait on for what is not there: MPI_SUCCESS, or why not. */
static int judge(struct wait *w)
{
    const struct chempi_meet *meet = w->m->meet;

    if (!w->drains && chempi_loss_is_in(meet->comm))
        return MPI_ERR_PROC_ABORTED; /* the others of this side hear it, too */
    if (w->ticks && chempi_clock_ns() >= w->m->deadline_ns) {
        (void)chempi_err_set(
            &w->err, 0, "%s has not come within the time limit", meet->way);
        return meet->error_class;
    }
    return !w->m->has_heard && meet->is_hopeless
               ? meet->is_hopeless(meet, &w->err)
               : MPI_SUCCESS;
}

/* In whatever thread makes progress. */
static bool is_over(void *arg)
{
    struct wait *w = arg;
    const int rc = w->is_over ? 1 : look(w);

    if (rc == 0)
        w->error = judge(w);
    else if (rc < 0)
        w->error = class_of(w, rc);
    w->is_over = rc != 0 || w->error != MPI_SUCCESS;
    return w->is_over;
}

/* Nobody of this job can do anything about it. */
static void put_wait(struct chempi_wait_report *report, const void *object)
{
    const struct wait *w = object;

    chempi_wait_report_put(report, " for %s", w->m->meet->way);
    report->is_moving = true;
}

/* Sleeps have no end of their own: with a limit, something wakes them there. */
static int wait_for(struct wait *w)
{
    struct chempi_pollset *set = chempi_ctx.services.pollset;
    struct chempi_poll_item tick = {.fd = -1};
    const uint64_t now_ns = chempi_clock_ns();
    const uint64_t end_ns = w->m->deadline_ns;
    int rc = 0;

    w->ticks = end_ns && !w->m->has_heard;
    chempi_lane_lock(&chempi_lane_main);
    if (w->ticks)
        rc = chempi_pollset_tick(set, &tick, chempi_pollset_ticked,
                                 end_ns > now_ns ? (long)(end_ns - now_ns) : 1);
    rc = rc ? chempi_error_from(rc, NULL)
            : chempi_progress_wait_locked(is_over, w, put_wait, w);
    if (w->ticks)
        chempi_pollset_untick(set, &tick);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc || !w->err.text[0])
        return rc ? rc : w->error;
    return chempi_error_set(w->error, "%s", w->err.text);
}

/* ---- what the roots tell each other ---- */

/* M4: an error class, and the data if it is MPI_SUCCESS. */
static int tell(const struct meeting *m, int error, const void *data,
                size_t len)
{
    const int32_t class = error;
    const size_t total = sizeof(class) + (error ? 0 : len);
    char *message = chempi_sys->malloc(total);
    struct chempi_err err = {0};
    int rc;

    if (!message)
        return no_memory();
    memcpy(message, &class, sizeof(class));
    if (!error && len)
        memcpy(message + sizeof(class), data, len);
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_exchange_send(m->exchange, message, total, &err);
    chempi_lane_unlock(&chempi_lane_main);
    sodium_memzero(message, total);
    free(message);
    return rc ? chempi_error_set(MPI_ERR_OTHER, "%s", err.text) : MPI_SUCCESS;
}

/* *out is set only if the other root's side is well. */
static int hear(struct meeting *m, void **out, size_t *out_len)
{
    void *message = NULL;
    size_t len = 0;
    struct wait w = {.m = m, .data = &message, .len = &len};
    int32_t class = MPI_SUCCESS;
    int rc = wait_for(&w);

    if (rc)
        return rc;
    m->has_heard = true;
    chempi_lane_lock(&chempi_lane_main);
    chempi_exchange_limit(m->exchange, VERDICT_BYTES);
    chempi_lane_unlock(&chempi_lane_main);
    if (len < sizeof(class)) {
        rc = chempi_error_set(MPI_ERR_OTHER,
                              "the other side's root says nothing");
    } else {
        memcpy(&class, message, sizeof(class));
        if (class != MPI_SUCCESS)
            rc = chempi_error_set(chempi_error_class_of_others(class),
                                  "the other side has failed");
    }
    if (rc) {
        free(message);
        return rc;
    }
    *out_len = len - sizeof(class);
    memmove(message, (char *)message + sizeof(class), *out_len);
    *out = message;
    return MPI_SUCCESS;
}

/* What a swap does instead of messages: the other root hears of an error, too.
 */
static int swap_roots(void *arg, int rc, const void *mine, size_t len,
                      void **out, size_t *out_len)
{
    struct meeting *m = arg;
    void *theirs = NULL;
    size_t their_len = 0;
    int code = tell(m, rc, mine, len);

    if (code == MPI_SUCCESS)
        code = hear(m, &theirs, &their_len);
    if (rc || code) {
        free(theirs);
        return rc ? rc : code;
    }
    *out = theirs;
    *out_len = their_len;
    return MPI_SUCCESS;
}

static struct chempi_vouch_use use_of(const struct meeting *m, bool is_own)
{
    struct chempi_vouch_use use = {
        .is_first = is_own == (m->call.is_first != 0),
        .context = is_own ? m->ids[0] : m->theirs->context,
        .count = is_own ? m->meet->comm->size : m->theirs->count};

    memcpy(use.meeting, m->call.meeting, sizeof(use.meeting));
    return use;
}

/* M2. The other root's, made fit for this side. */
static int swap_rolls(void *arg, int rc, const void *mine, size_t len,
                      void **out, uint64_t *out_len)
{
    const struct meeting *m = arg;
    const struct chempi_vouch_use use = use_of(m, true);
    struct chempi_roll *theirs = NULL;
    size_t their_len = 0;
    struct chempi_err err = {0};
    int code = swap_roots(arg, rc, mine, len, (void **)&theirs, &their_len);

    if (code != MPI_SUCCESS)
        return code;
    code = chempi_roll_check(theirs, their_len, false, &err);
    if (code == 0)
        code = chempi_roll_compare(theirs, &err);
    if (code == 0)
        code = chempi_roll_add_boxes(&theirs, &their_len, mine, m->own, &use,
                                     &err);
    if (code) {
        free(theirs);
        return chempi_error_from(code, &err);
    }
    *out = theirs;
    *out_len = their_len;
    return MPI_SUCCESS;
}

/* The same error, or none, at all of this side. */
static int agree_here(const struct meeting *m, int rc)
{
    int64_t nothing = 0;

    return chempi_comm_max(&m->local, rc, &nothing, 1);
}

/* All of this side have failed alike, and the other one has not heard of it. If
 * the root was the one that did, the others say why in its words. */
static int explain(const struct meeting *m, int rc, bool is_mine)
{
    const char *noted = chempi_error_noted(rc);
    char words[CHEMPI_ERR_TEXT_MAX] = "";

    if (m->is_root && is_mine && noted)
        (void)snprintf(words, sizeof(words), "%s", noted);
    if (chempi_comm_bcast(&m->down, MPI_SUCCESS, words, sizeof(words)) !=
            MPI_SUCCESS ||
        is_mine || !words[0])
        return rc;
    words[sizeof(words) - 1] = '\0'; /* it may be of another world */
    chempi_plain(words, strlen(words), "");
    return chempi_error_set(rc, "%s", words);
}

/* ---- the root finds the other side ---- */

static int begin(struct meeting *m)
{
    const struct chempi_meet *meet = m->meet;
    struct chempi_err err = {0};
    int rc;

    if (meet->limit_ns)
        m->deadline_ns = chempi_clock_ns() + meet->limit_ns;
    chempi_lane_lock(&chempi_lane_main);
    rc = meet->begin(meet, &m->exchange, &err);
    if (rc == 0)
        chempi_exchange_limit(m->exchange, sizeof(int32_t) +
                                               chempi_roll_len_max(meet->most));
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return chempi_error_set(
            rc == -ENOMEM ? MPI_ERR_NO_MEM : meet->error_class, "%s", err.text);
    return MPI_SUCCESS;
}

/* Has an exchange: wait until it is there. */
static int await_other(struct meeting *m)
{
    struct wait w = {.m = m};
    const uint8_t *hash;
    int rc = wait_for(&w);

    if (rc != MPI_SUCCESS)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    hash = chempi_exchange_hash(m->exchange);
    if (hash) {
        memcpy(m->call.meeting, hash, sizeof(m->call.meeting));
        m->call.is_first = chempi_exchange_is_first(m->exchange);
    }
    chempi_lane_unlock(&chempi_lane_main);
    return hash ? MPI_SUCCESS
                : chempi_error_set(m->meet->error_class, "%s has left",
                                   m->meet->way);
}

/* The same error, or none, at all of this side: by maxima, which also those
 * hear who are told by a member that is lost. */
static int find_other(struct meeting *m)
{
    int64_t found[2] = {0}; /* a class, and is_first: the root's */
    int rc;

    if (m->is_root) {
        rc = begin(m);
        if (rc == MPI_SUCCESS)
            rc = await_other(m);
        found[0] = rc;
        found[1] = m->call.is_first;
    }
    rc = chempi_comm_max(&m->local, MPI_SUCCESS, found, 2);
    m->call.is_first = (uint32_t)found[1];
    if (rc != MPI_SUCCESS)
        return rc;
    if (found[0] == MPI_SUCCESS)
        return chempi_comm_bcast(&m->down, MPI_SUCCESS, m->call.meeting,
                                 sizeof(m->call.meeting));
    m->is_alone = true;
    rc = chempi_error_class_of_others(found[0]);
    if (!m->is_root)
        (void)chempi_error_set(rc, "the root of this side has not found the "
                                   "other one");
    return explain(m, rc, m->is_root);
}

/* ---- lists ---- */

/* Open the device that is called, at all of this side. */
static int open_device(const struct meeting *m,
                       struct chempi_introduction *mine)
{
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_foreign_introduce(mine, &err);
    chempi_lane_unlock(&chempi_lane_main);
    return agree_here(m, chempi_error_from(rc, &err));
}

/* M1 */
static int introduce(struct meeting *m, struct chempi_introduction *mine)
{
    const uint32_t size = m->meet->comm->size;
    struct chempi_vouch_use use = use_of(m, true);
    int rc = MPI_SUCCESS;

    use.number = (uint32_t)m->meet->comm->rank;
    chempi_vouch_sign(mine, &use);
    m->own = chempi_sys->calloc(size, sizeof(*m->own)); /* it leaves, whole */
    if (!m->own)
        rc = no_memory();
    rc = chempi_comm_allgather(&m->local, rc, mine, sizeof(*mine), m->own);
    return agree_here(m, rc);
}

/* M2 */
static int swap(struct meeting *m, int rc)
{
    const struct chempi_meet *meet = m->meet;
    const size_t len = chempi_roll_len(meet->comm->size);
    struct chempi_comm_far far = {.exchange = swap_rolls, .arg = m};
    struct chempi_roll *mine = NULL;
    void *theirs = NULL;

    if (m->is_root && rc == MPI_SUCCESS) {
        mine = chempi_roll_make(m->own, meet->comm->size, (uint32_t)meet->root,
                                m->ids[0]);
        if (!mine)
            rc = no_memory();
    }
    rc =
        chempi_comm_swap(&m->down, &far, rc, mine, len, &theirs, &m->their_len);
    if (mine)
        sodium_memzero(mine, len);
    free(mine);
    m->theirs = theirs;
    return rc;
}

/* ---- the bond, and the communicator ---- */

/* The own side, and the other one, in the order of the bond. */
static int prepare_bond(struct meeting *m)
{
    const uint32_t size = m->meet->comm->size;
    const uint32_t count = size + m->theirs->count;
    const bool is_first = m->call.is_first;
    struct chempi_introduction *members =
        chempi_sys->malloc((size_t)count * sizeof(*members));
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES];
    struct chempi_err err = {0};
    int rc = chempi_roll_open(m->theirs, m->their_len, secret, &err);

    if (!members)
        rc = -ENOMEM;
    if (rc == 0) {
        memcpy(members + (is_first ? 0 : m->theirs->count), m->own,
               size * sizeof(*members));
        memcpy(members + (is_first ? size : 0), chempi_roll_members(m->theirs),
               m->theirs->count * sizeof(*members));
        chempi_lane_lock(&chempi_lane_main);
        rc = chempi_foreign_prepare(secret, members, count, &m->bond, &err);
        chempi_lane_unlock(&chempi_lane_main);
    }
    sodium_memzero(secret, sizeof(secret));
    free(members);
    return rc == -EALREADY ? chempi_error_set(MPI_ERR_COMM, "%s", err.text)
                           : chempi_error_from(rc, &err);
}

/* Indexes and what they mean are for life, and so is a loss. */
static int check_losses(const struct meeting *m)
{
    const uint32_t *indexes = chempi_foreign_indexes(m->bond);
    uint32_t lost = UINT32_MAX;
    char who[128];

    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < m->bond->size && lost == UINT32_MAX; i++)
        if (indexes[i] != UINT32_MAX && chempi_conn_is_missing(indexes[i]))
            lost = indexes[i];
    chempi_lane_unlock(&chempi_lane_main);
    if (lost == UINT32_MAX)
        return MPI_SUCCESS;
    chempi_foreign_words(lost, who, sizeof(who));
    return chempi_error_set(MPI_ERR_PROC_ABORTED,
                            "%s was lost, or has finished: it cannot be met "
                            "again",
                            who);
}

/* M2: who is told of, and is believed. */
static int get_to_know(struct meeting *m)
{
    const bool has_foreign = m->meet->comm->has_foreign;
    struct chempi_err err = {0};
    int rc = chempi_roll_check(m->theirs, m->their_len, true, &err);

    if (rc == 0 && has_foreign)
        rc = chempi_roll_verify(m->own, use_of(m, true), &err);
    if (rc == 0 && (m->is_root || has_foreign))
        rc = chempi_roll_verify(chempi_roll_members(m->theirs),
                                use_of(m, false), &err);
    rc = rc ? chempi_error_from(rc, &err) : prepare_bond(m);
    return rc == MPI_SUCCESS ? check_losses(m) : rc;
}

/* M3, M4: all members of both sides say how it went; *flag: does any of them
 * raise it? */
static int agree(struct meeting *m, int rc, bool *flag)
{
    struct chempi_comm_far far = {.exchange = swap_roots, .arg = m};
    int64_t raised = *flag;
    void *theirs = NULL;
    size_t len = 0;
    char mine;

    rc = chempi_comm_max(&m->local, rc, &raised, 1);
    mine = raised != 0;
    if (m->is_root && !m->has_heard)
        far.error = rc; /* nobody is there to hear of it */
    rc = chempi_comm_swap(&m->down, &far, rc, &mine, 1, &theirs, &len);
    if (rc == MPI_SUCCESS && len != 1)
        rc = chempi_error_set(MPI_ERR_OTHER, "the other side's root says "
                                             "something else");
    if (rc == MPI_SUCCESS)
        *flag = mine || *(const char *)theirs;
    free(theirs);
    return rc;
}

static void drop_bond(struct meeting *m)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_foreign_drop(m->bond);
    chempi_lane_unlock(&chempi_lane_main);
    m->bond = NULL;
}

/* The other side's, of the bond's indexes. NULL: no memory. */
static struct chempi_group *make_remote(const struct meeting *m)
{
    const uint32_t count = m->theirs->count;
    uint32_t *procs = chempi_sys->malloc(count * sizeof(*procs));

    if (!procs)
        return NULL;
    memcpy(procs,
           chempi_foreign_indexes(m->bond) +
               (m->call.is_first ? m->meet->comm->size : 0),
           count * sizeof(*procs));
    return chempi_group_make(count, procs); /* it takes them */
}

/* M3. All have prepared it, and somebody needs it. */
static int take_in_bond(struct meeting *m, struct chempi_group **remote)
{
    struct chempi_bond *bond = m->bond;
    bool unused = false;
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    chempi_foreign_take_in(bond);
    chempi_lane_unlock(&chempi_lane_main);
    *remote = make_remote(m);
    m->bond = NULL;
    rc = agree(m, *remote ? MPI_SUCCESS : no_memory(), &unused);
    if (rc != MPI_SUCCESS)
        return rc;
    chempi_lane_lock(&chempi_lane_main);
    chempi_foreign_agree(bond);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

/* All have known each other before. */
static int use_known(struct meeting *m, struct chempi_group **remote)
{
    bool unused = false;

    *remote = make_remote(m);
    drop_bond(m);
    return agree(m, *remote ? MPI_SUCCESS : no_memory(), &unused);
}

/* The other root is there: from here on all take part in all. */
static int become_sides(struct meeting *m, struct chempi_introduction *mine,
                        struct chempi_group **remote)
{
    bool is_needed = false;
    int rc = swap(m, introduce(m, mine));

    if (rc == MPI_SUCCESS)
        rc = get_to_know(m);
    if (rc == MPI_SUCCESS)
        is_needed = chempi_foreign_needs(m->bond);
    rc = agree(m, rc, &is_needed);
    if (rc != MPI_SUCCESS) {
        drop_bond(m);
        return rc;
    }
    return is_needed ? take_in_bond(m, remote) : use_known(m, remote);
}

static bool are_of_one_world(uint32_t a, uint32_t b)
{
    const struct chempi_name x = chempi_foreign_name(a);
    const struct chempi_name y = chempi_foreign_name(b);

    return chempi_foreign_is_world(x.world, y.world);
}

/* Is it the first of its world in the group, as far as that can be told from
 * the one before? Sides have few worlds, whose members stand together. */
static bool is_first_of_world(const struct chempi_group *group, uint32_t i)
{
    return i == 0 || !are_of_one_world(chempi_group_proc(group, i - 1),
                                       chempi_group_proc(group, i));
}

static bool is_first_here(const struct chempi_group *group)
{
    const uint32_t me = chempi_ctx.services.proc;

    for (uint32_t i = 0; i < group->size; i++)
        if (chempi_group_proc(group, i) == me)
            return is_first_of_world(group, i);
    return false;
}

/* From now on each world of this side has a connection to each of the other
 * one: its end tells that a world is lost of which nobody has called anybody
 * yet, and who has seen it tells its own job only. */
static void call_others(const struct chempi_group *local,
                        const struct chempi_group *remote)
{
    struct chempi_lane *lane = &chempi_lane_main;

    if (!is_first_here(local))
        return;
    chempi_lane_lock(lane);
    for (uint32_t i = 0; i < remote->size; i++) {
        const uint32_t proc = chempi_group_proc(remote, i);

        if (chempi_foreign_is(proc) && is_first_of_world(remote, i))
            chempi_sysmsg_answer(chempi_conn_peer(lane, proc),
                                 CHEMPI_SYSMSG_CREDIT, NULL, 0);
    }
    chempi_engine_settle(lane);
    chempi_lane_unlock(lane);
}

/* Who has lost one of the others since he was asked (check_losses()) has told
 * those of his job that had taken in a bond with it. Now all have taken in this
 * one. Of a world that is lost as a whole all are told at once. */
static void tell_losses(const struct chempi_group *remote)
{
    uint32_t told = UINT32_MAX;

    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < remote->size && chempi_conn_missing_count(); i++) {
        const uint32_t proc = chempi_group_proc(remote, i);

        if (!chempi_foreign_is(proc) || !chempi_conn_is_missing(proc) ||
            chempi_conn_has_ended(proc) ||
            (told != UINT32_MAX && !chempi_foreign_at(proc)->survives &&
             are_of_one_world(told, proc)))
            continue;
        chempi_foreign_spread_loss(proc);
        told = proc;
    }
    chempi_engine_settle(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
}

/* What this root has said last shall come to the other one. */
static void leave_other(const struct meeting *m)
{
    struct wait w = {.m = m, .drains = true};

    if (m->has_heard)       /* else it may never be accepted */
        (void)wait_for(&w); /* an error is the other one's, who hears it */
    chempi_lane_lock(&chempi_lane_main);
    chempi_exchange_close(m->exchange);
    chempi_lane_unlock(&chempi_lane_main);
}

static int agree_contexts(struct meeting *m)
{
    int rc = m->meet->error;

    do {
        rc = chempi_comm_agree_context(&m->local, rc, &m->ids[m->id_count]);
        m->id_count += rc == MPI_SUCCESS;
    } while (m->id_count < 2 && rc == MPI_SUCCESS);
    return rc == MPI_SUCCESS ? rc : explain(m, rc, m->meet->error == rc);
}

static int make(struct meeting *m, int rc, struct chempi_group *remote,
                struct chempi_comm **out)
{
    if (rc == MPI_SUCCESS) {
        *out = chempi_comm_make_inter(m->meet->comm->local, remote,
                                      m->theirs->context, m->ids[0], m->ids[1]);
        return *out ? rc : no_memory(); /* the ids have gone with it */
    }
    while (m->id_count > 0) /* nobody else has heard of them */
        chempi_comm_return_context(m->ids[--m->id_count],
                                   m->is_alone ? MPI_SUCCESS : rc);
    return rc;
}

int chempi_meet(const struct chempi_meet *meet, MPI_Comm *out)
{
    struct meeting m = {.meet = meet,
                        .local = chempi_comm_channel(meet->comm),
                        .is_root = meet->comm->rank == meet->root};
    struct chempi_introduction mine;
    struct chempi_group *remote = NULL;
    struct chempi_comm *made = NULL;
    int rc;

    m.local.is_open = true;
    m.down = chempi_comm_channel_from(&m.local, meet->root);
    rc = agree_contexts(&m);
    if (rc == MPI_SUCCESS)
        rc = open_device(&m, &mine);
    if (rc == MPI_SUCCESS)
        rc = find_other(&m);
    if (rc == MPI_SUCCESS)
        rc = become_sides(&m, &mine, &remote);
    if (rc == MPI_SUCCESS) {
        tell_losses(remote);
        call_others(meet->comm->local, remote);
    }
    if (m.is_root)
        leave_other(&m);
    rc = make(&m, rc, remote, &made);
    chempi_group_release(remote);
    free(m.theirs);
    free(m.own);
    if (rc != MPI_SUCCESS)
        return rc;
    chempi_comm_inherit(made, meet->comm);
    *out = made->handle;
    return MPI_SUCCESS;
}
