/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a daemon knows, and what others say of them; see news.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/news.h"
#include "common/base/log.h"
#include "common/control/msg.h"

void chempi_daemon_look(struct chempi_daemon *d)
{
    chempi_ready_look(&d->ready, d->dir);
}

const struct chempi_members *chempi_daemon_ready(struct chempi_daemon *d)
{
    return chempi_ready_all(&d->ready, d->dir);
}

const struct chempi_member *chempi_daemon_member(struct chempi_daemon *d,
                                                 const char *node)
{
    const struct chempi_member *m = chempi_ready_find(&d->ready, d->dir, node);

    return m ? m : chempi_members_find(&d->members, node);
}

struct chempi_conn *chempi_daemon_call(struct chempi_daemon *d,
                                       const char *node, struct chempi_err *err)
{
    const struct chempi_member *m = chempi_daemon_member(d, node);

    if (m && strcmp(m->address, CHEMPI_NO_ADDRESS) != 0) {
        chempi_beat_wake(&d->beat);
        return chempi_conns_call(&d->conns, node, m->address, err);
    }
    if (m)
        (void)chempi_err_set(err, -EADDRNOTAVAIL,
                             "the daemon of node %s does not listen for "
                             "others; start it with --listen and --key",
                             node);
    else
        (void)chempi_err_set(err, -ENOENT,
                             "the daemon of node %s knows no node %s; add it "
                             "to the cluster file, or start its daemon with "
                             "the same --dir or with --join",
                             d->opt->name, node);
    return NULL;
}

/* Tell what is news to the neighbours it did not come from. */
static void spread_news(struct chempi_daemon *d, const struct chempi_conn *from,
                        const struct chempi_writer *news, uint32_t count)
{
    if (count == 0 || news->error)
        return;
    CHEMPI_LIST_FOR (e, &d->conns.all) {
        struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry);
        struct chempi_writer *w;

        if (c == from || c->kind == CHEMPI_CONN_LOCAL ||
            (c->kind == CHEMPI_CONN_INBOUND && !c->is_proven))
            continue;
        w = chempi_link_begin(&c->link, CHEMPI_MSG_NEWS, 0);
        chempi_wire_put_u32(w, count);
        chempi_wire_put_raw(w, news->data, news->len);
        c->owes_news |= chempi_link_try_end(&c->link) != 0; /* R4 */
    }
}

static void write_member(struct chempi_writer *w, const char *name,
                         const char *address, uint32_t slots)
{
    chempi_wire_put_str(w, name);
    chempi_wire_put_str(w, address);
    chempi_wire_put_u32(w, slots);
}

void chempi_news_tell(struct chempi_daemon *d, struct chempi_conn *to)
{
    struct chempi_writer *w = chempi_link_begin(&to->link, CHEMPI_MSG_NEWS, 0);

    chempi_wire_put_u32(w, d->members.count + 1);
    write_member(w, d->opt->name, d->address, d->slots);
    for (uint32_t i = 0; i < d->members.count; i++)
        write_member(w, d->members.list[i].name, d->members.list[i].address,
                     d->members.list[i].slots);
    to->owes_news = chempi_link_try_end(&to->link) != 0; /* R4 */
}

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

static uint32_t count_told(const struct chempi_members *m, const char *teller)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->count; i++)
        n += strcmp(m->list[i].teller, teller) == 0;
    return n;
}

bool chempi_news_is_fixed(const struct chempi_daemon *d, const char *node)
{
    const struct chempi_member *m = chempi_members_find(&d->members, node);

    return m && !*m->teller;
}

static int put(struct chempi_daemon *d, const struct chempi_member *claim)
{
    struct chempi_member *m;
    int rc = chempi_members_add(&d->members, claim->name, claim->address,
                                claim->slots);

    if (rc != 1)
        return rc;
    m = chempi_members_find(&d->members, claim->name);
    memcpy(m->teller, claim->teller, sizeof(m->teller));
    memcpy(m->teller_key, claim->teller_key, sizeof(m->teller_key));
    return 1;
}

void chempi_news_believe(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_member *claim, bool joins)
{
    struct chempi_writer news = {0};

    if (count_told(&d->members, claim->teller) < CHEMPI_NEWS_TOLD_MAX &&
        put(d, claim) == 1) {
        write_member(&news, claim->name, claim->address, claim->slots);
        spread_news(d, from, &news, 1);
        chempi_wire_clear(&news);
    }
    if (joins && from)
        chempi_news_tell(d, from);
}

static void pass_on(struct reading *r, const struct chempi_member *claim)
{
    write_member(&r->news, claim->name, claim->address, claim->slots);
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
    } else if (put(r->d, claim) == 1) {
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
    const struct chempi_member *old = chempi_daemon_member(r->d, claim->name);
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
        .d = d, .from = from, .told = count_told(&d->members, from->peer)};
    struct chempi_member claim;
    struct chempi_reader r;
    uint32_t n;

    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_NEWS_MAX, 14);
    chempi_daemon_look(d);
    (void)chempi_daemon_ready(d); /* many at a time */
    for (uint32_t i = 0; i < n && read_member(&r, from, &claim); i++)
        take_claim(&reading, &claim);
    if (reading.has_withdrawn)
        chempi_members_prune(&d->members, is_there, NULL);
    if (reading.joins && from->kind == CHEMPI_CONN_INBOUND)
        chempi_news_tell(d, from);
    spread_news(d, from, &reading.news, reading.fresh);
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
    write_member(&r->news, m->name, "", 0);
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
    spread_news(d, NULL, &r.news, r.fresh);
    chempi_wire_clear(&r.news);
}
