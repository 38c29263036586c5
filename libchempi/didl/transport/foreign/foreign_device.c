/* SPDX-License-Identifier: BSD-3-Clause */
/* This process among other worlds: how it introduces itself, and what it does
 * when it has lost one; see foreign_device.h. */
#include "libchempi/didl/transport/foreign/foreign_device.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/progress/watcher.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/vouch.h"

/* ---- this process ---- */

static int describe(struct chempi_dev *dev, struct chempi_introduction *out,
                    struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    size_t len = sizeof(out->card);
    int rc = dev->ops->card(dev, out->card, &len);

    if (rc)
        return chempi_err_set(err, rc, "device %s: no card", dev->ops->name);
    out->card_len = (uint32_t)len;
    chempi_vouch_name(out->name.world);
    out->name.rank = s->proc;
    (void)snprintf(out->node, sizeof(out->node), "%s", s->node_names[s->node]);
    out->survives = chempi_ctx.job->survives;
    out->is_secure =
        chempi_ctx.job->is_secure || (dev->caps->flags & CHEMPI_DEV_SEALS) != 0;
    out->eager_quota = (uint32_t)chempi_conn_quota();
    out->sysmsg_quota = (uint32_t)chempi_setting(CHEMPI_SET_SYSMSG_QUOTA);
    return 0;
}

int chempi_foreign_introduce(struct chempi_introduction *out,
                             struct chempi_err *err)
{
    struct chempi_dev *dev;
    /* A device with descriptors is there only when they wake this process. */
    int rc = chempi_watcher_start(err);

    if (!rc)
        rc = chempi_conn_open_foreign(&dev, err);
    if (rc)
        return rc;
    chempi_progress_rouse_own(&chempi_lane_main); /* it sleeps otherwise now */
    memset(out, 0, sizeof(*out));                 /* its padding travels */
    return describe(dev, out, err);
}

/* ---- losses ---- */

enum { WHO_MAX = 128 }; /* a process in words */

/* A process is lost, or all of its world. */
struct loss {
    uint64_t world[2];
    uint32_t rank;
    uint32_t is_all;
};

static bool is_losing; /* under the first lane's lock */

static bool is_in(const struct loss *loss, const struct chempi_name *name)
{
    return chempi_foreign_is_world(name->world, loss->world) &&
           (loss->is_all || name->rank == loss->rank);
}

/* What errors say of it, and of those that are missing with it. */
static void note(uint32_t index, bool is_all, const char *why)
{
    const bool has_finished =
        chempi_conn_peer(&chempi_lane_main, index)->has_ended;
    char who[WHO_MAX];
    char sentence[CHEMPI_ERR_TEXT_MAX];

    chempi_foreign_words(index, who, sizeof(who));
    if (has_finished)
        (void)snprintf(sentence, sizeof(sentence), "%s has already finished",
                       who);
    else
        (void)snprintf(sentence, sizeof(sentence), "%s is lost%s: %s", who,
                       is_all ? ", and its world with it" : "", why);
    chempi_foreign_note_loss(index, is_all, sentence);
}

static void lose(const struct loss *loss, const char *why)
{
    const struct chempi_bonds *bonds = chempi_foreign_bonds();

    for (uint32_t i = bonds->index_begin; i < bonds->index_end(); i++)
        if (is_in(loss, &chempi_foreign_at(i)->name)) {
            if (!chempi_foreign_loss(i))
                note(i, loss->is_all, why);
            chempi_conn_set_lost(&chempi_lane_main, i, why);
            chempi_conn_forget_end(i); /* all ranks of this job say the same */
        }
}

static void tell(uint32_t rank, const void *arg)
{
    const struct loss *loss = arg;
    struct chempi_peer *peer = chempi_conn_peer(&chempi_lane_main, rank);

    if (rank != chempi_ctx.services.proc &&
        !atomic_load_explicit(&peer->is_lost, memory_order_relaxed))
        chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_WORLD_LOST, loss,
                             sizeof(*loss));
}

static void lose_and_tell(const struct loss *loss, const char *why)
{
    is_losing = true;
    lose(loss, why);
    chempi_foreign_for_met(loss->world, tell, loss);
    is_losing = false;
}

static struct loss loss_of(uint32_t index)
{
    const struct chempi_foreign *f = chempi_foreign_at(index);

    return (struct loss){.world = {f->name.world[0], f->name.world[1]},
                         .rank = f->name.rank,
                         .is_all = !f->survives};
}

/* The connection to it has shown it: the rest of its world goes with it, and
 * the connections of the others of this job, if they have any, need not tell
 * them. */
static void set_lost(uint32_t index, const char *why)
{
    const bool has_finished =
        chempi_conn_peer(&chempi_lane_main, index)->has_ended;
    const struct loss loss = loss_of(index);

    if (is_losing)
        return;
    note(index, loss.is_all && !has_finished, why);
    if (!has_finished) /* else the others of its world may go on */
        lose_and_tell(&loss, why);
}

void chempi_foreign_spread_loss(uint32_t index)
{
    const struct loss loss = loss_of(index);

    lose_and_tell(&loss, "it was lost while it was met");
}

/* Who has told it tells all others. Other worlds have no say (guard.h). */
static void on_world_lost(struct chempi_sysmsg_in *in)
{
    static const char why[] = "another rank of this job has lost it";
    const struct loss *loss = in->head;
    const struct chempi_name name = {.world = {loss->world[0], loss->world[1]},
                                     .rank = loss->rank};
    const uint32_t index = chempi_foreign_find(&name);

    if (index != UINT32_MAX && chempi_foreign_is(index) &&
        !chempi_conn_is_missing(index))
        note(index, loss->is_all, why);
    is_losing = true;
    lose(loss, why);
    is_losing = false;
}

static struct {
    struct chempi_poll_item tick; /* when it has waited for so long */
    bool has_warned;
} end = {.tick.fd = -1};

/* Who is known not to take what was sent to it: "rank 1 of ..", or "". */
static void find_slow(char who[WHO_MAX])
{
    const struct chempi_lane *lane = &chempi_lane_main;

    who[0] = '\0';
    for (const struct chempi_peer *p = lane->conn.made; p; p = p->next_made)
        if (chempi_foreign_is(p->proc) && !chempi_list_is_empty(&p->waiting))
            chempi_foreign_words(p->proc, who, WHO_MAX);
}

/* The process has waited for as long as that. */
static void warn(struct chempi_poll_item *item, uint32_t events)
{
    char who[WHO_MAX];

    (void)item; /* is closed, so nobody need say that it has ticked */
    (void)events;
    chempi_pollset_untick(chempi_ctx.services.pollset, &end.tick);
    end.has_warned = true;
    find_slow(who);
    chempi_log(CHEMPI_LOG_WARNING, "meet",
               "MPI_Finalize has waited for %llu ms until what was sent is "
               "taken, which processes of other worlds may not do%s%s; it goes "
               "on waiting until they do, or end",
               (unsigned long long)chempi_setting(CHEMPI_SET_MEET_PATIENCE),
               who[0] ? ", such as " : "", who);
}

void chempi_foreign_await_end(bool is_over)
{
    const struct chempi_bonds *bonds = chempi_foreign_bonds();
    struct chempi_pollset *set = chempi_ctx.services.pollset;
    const uint64_t limit_ms = chempi_setting(CHEMPI_SET_MEET_PATIENCE);

    if (is_over || limit_ms == 0 || bonds->index_end() == bonds->index_begin) {
        chempi_pollset_untick(set, &end.tick);
        end.has_warned = false;
    } else if (!end.has_warned) { /* if it fails: at the next look */
        (void)chempi_pollset_tick(set, &end.tick, warn,
                                  (long)(limit_ms * CHEMPI_NS_PER_MS));
    }
}

void chempi_foreign_register(void)
{
    static const struct chempi_sysmsg_handler handler = {
        .head_min = sizeof(struct loss),
        .head_max = sizeof(struct loss),
        .run = on_world_lost};

    chempi_sysmsg_register(CHEMPI_SYSMSG_WORLD_LOST, &handler);
    chempi_conn_on_foreign_lost(set_lost);
}
