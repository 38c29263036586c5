/* SPDX-License-Identifier: BSD-3-Clause */
/* What others say of nodes; see news.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/news.h"
#include "chempid/daemon/nodes.h"
#include "common/base/log.h"
#include "common/control/msg.h"

/* ---- who may say what ---------------------------------------------------- */

/* What is being read, and what of it others shall hear. */
struct reading {
    struct chempi_daemon *d;
    struct chempi_conn *from;
    struct chempi_writer news;
    uint32_t fresh;
    uint32_t told; /* members known from this node */
    bool joins;
    bool has_withdrawn;
};

static void pass_on(struct reading *r, const struct chempi_member *claim)
{
    chempi_nodes_write(&r->news, claim->name, claim->address, claim->slots);
    r->fresh++;
}

/* R2: it does not stand by what it has said of this node. */
static void withdraw(struct reading *r, const struct chempi_member *claim)
{
    struct chempi_member *m = chempi_members_find(&r->d->members, claim->name);

    if (!m || m->is_gone || strcmp(m->teller, claim->teller) != 0)
        return;
    m->is_gone = true;
    r->has_withdrawn = true;
    r->told--;
    pass_on(r, claim);
}

static bool is_there(void *arg, const struct chempi_member *m)
{
    (void)arg;
    return !m->is_gone;
}

/* Slots, of the same address: R1. */
static bool may_change(const struct chempi_member *m,
                       const struct chempi_member *claim)
{
    return *m->teller && (strcmp(m->address, claim->address) != 0 ||
                          strcmp(m->name, claim->teller) == 0 ||
                          strcmp(m->teller, claim->teller) == 0);
}

/* One that is no rival. */
static void take_one(struct reading *r, const struct chempi_member *claim)
{
    const struct chempi_member *m =
        chempi_members_find(&r->d->members, claim->name);
    const bool is_more =
        !m || m->is_gone || strcmp(m->teller, claim->teller) != 0;

    if (m && !m->is_gone && strcmp(m->address, claim->address) == 0 &&
        m->slots == claim->slots)
        return;
    if (m && !may_change(m, claim)) {
        chempi_log(CHEMPI_LOG_WARNING, "daemon",
                   "what node %s says of node %s is not what is known, and is "
                   "left",
                   claim->teller, claim->name);
    } else if (is_more && r->told >= CHEMPI_NEWS_TOLD_MAX) {
        chempi_log(CHEMPI_LOG_WARNING, "daemon",
                   "node %s tells of more than %u nodes; node %s is left out",
                   claim->teller, CHEMPI_NEWS_TOLD_MAX, claim->name);
    } else if (chempi_nodes_put(r->d, claim) == 1) {
        r->told += is_more;
        pass_on(r, claim);
    }
}

/* A name that is known with another address is a matter of its own. */
static bool is_rival(const struct chempi_member *known,
                     const struct chempi_member *claim)
{
    return known && strcmp(known->address, claim->address) != 0 &&
           strcmp(known->address, CHEMPI_NO_ADDRESS) != 0;
}

static bool read_member(struct chempi_reader *r, const struct chempi_conn *from,
                        struct chempi_member *m)
{
    const char *name = chempi_wire_get_str(r, CHEMPI_NODE_NAME_MAX);
    const char *address = chempi_wire_get_str(r, CHEMPI_ADDR_MAX);

    *m = (struct chempi_member){.slots = chempi_wire_get_u32(r)};
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    (void)snprintf(m->address, sizeof(m->address), "%s", address);
    memcpy(m->teller, from->peer, sizeof(m->teller));
    memcpy(m->teller_key, chempi_handshake_peer(&from->shake),
           sizeof(m->teller_key));
    return !r->is_bad;
}

static void take_claim(struct reading *r, const struct chempi_member *claim)
{
    const struct chempi_member *old = chempi_nodes_member(r->d, claim->name);
    const bool is_self = strcmp(claim->name, claim->teller) == 0;

    if (strcmp(claim->name, r->d->opt->name) == 0 ||
        chempi_addr_is_any(claim->address))
        return;
    if (!*claim->address) {
        withdraw(r, claim);
    } else if (is_rival(old, claim)) {
        chempi_rivals_try(r->d, r->from, old, claim,
                          is_self && r->from->kind == CHEMPI_CONN_INBOUND);
    } else {
        r->joins |= is_self;
        take_one(r, claim);
    }
}

int chempi_news_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    struct reading reading = {
        .d = d,
        .from = from,
        .told = chempi_nodes_count_told(&d->members, from->peer)};
    struct chempi_member claim;
    struct chempi_reader r;
    uint32_t n;

    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_NEWS_MAX, 14);
    chempi_nodes_look(d);
    (void)chempi_nodes_ready(d); /* many at a time */
    for (uint32_t i = 0; i < n && read_member(&r, from, &claim); i++)
        take_claim(&reading, &claim);
    if (reading.has_withdrawn)
        chempi_members_prune(&d->members, is_there, NULL);
    if (reading.joins && from->kind == CHEMPI_CONN_INBOUND)
        chempi_nodes_tell(d, from);
    chempi_nodes_spread(d, from, &reading.news, reading.fresh);
    chempi_wire_clear(&reading.news);
    return chempi_wire_is_done(&r)
               ? 0
               : chempi_err_set(err, -EBADMSG, "malformed news");
}

/* ---- what is not believed any more --------------------------------------- */

struct recheck {
    struct chempi_daemon *d;
    struct chempi_writer news;
    uint32_t fresh;
    const struct chempi_member *last; /* whose teller was looked up */
    bool is_trusted;
};

/* Files say it, or a node that is trusted. */
static bool is_believed(void *arg, const struct chempi_member *m)
{
    struct recheck *r = arg;
    struct chempi_err err;

    if (!*m->teller)
        return true;
    if (!r->last || strcmp(r->last->teller, m->teller) != 0 ||
        memcmp(r->last->teller_key, m->teller_key, CHEMPI_MEMBER_KEY) != 0)
        r->is_trusted = chempi_trust_check(&r->d->secrets.trust, m->teller_key,
                                           m->teller, &err) == 0;
    r->last = m; /* not overwritten before the next one is asked for */
    if (r->is_trusted)
        return true;
    chempi_nodes_write(&r->news, m->name, "", 0);
    r->fresh++;
    return false;
}

void chempi_news_recheck(struct chempi_daemon *d)
{
    struct recheck r = {.d = d};

    chempi_members_prune(&d->members, is_believed, &r);
    if (r.fresh)
        chempi_log(
            CHEMPI_LOG_INFO, "daemon",
            "%u nodes are forgotten that nodes not trusted any more have "
            "told of",
            r.fresh);
    chempi_nodes_spread(d, NULL, &r.news, r.fresh);
    chempi_wire_clear(&r.news);
}
