/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a daemon knows, and what others say of them; see daemon.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "common/control/msg.h"

void chempi_daemon_members(const struct chempi_daemon *d,
                           struct chempi_members *out)
{
    *out = (struct chempi_members){0};
    for (uint32_t i = 0; i < d->members.count; i++) {
        const struct chempi_member *m = &d->members.list[i];

        /* Without memory some nodes are unknown, and named as such. */
        (void)chempi_members_add(out, m->name, m->address, m->slots);
    }
    chempi_members_scan(out, d->opt->dir);
}

struct chempi_conn *chempi_daemon_call(struct chempi_daemon *d,
                                       const struct chempi_members *known,
                                       const char *node, struct chempi_err *err)
{
    const struct chempi_member *m = chempi_members_find(known, node);

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
        chempi_link_end(&c->link);
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
    chempi_link_end(&to->link);
}

/* What is new to us is passed on to all but who has said it. */
static void believe(struct chempi_daemon *d, const struct chempi_conn *from,
                    const struct chempi_member *m)
{
    struct chempi_writer news = {0};

    if (chempi_members_add(&d->members, m->name, m->address, m->slots) != 1)
        return;
    write_member(&news, m->name, m->address, m->slots);
    spread_news(d, from, &news, 1);
    chempi_wire_clear(&news);
}

void chempi_news_believe(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_member *claim, bool joins)
{
    believe(d, from, claim);
    if (joins && from)
        chempi_news_tell(d, from);
}

/* A name that is known with another address is a matter of its own. */
static bool is_rival(const struct chempi_member *known,
                     const struct chempi_member *claim)
{
    return known && strcmp(known->address, claim->address) != 0 &&
           strcmp(known->address, CHEMPI_NO_ADDRESS) != 0;
}

static bool read_member(struct chempi_reader *r, struct chempi_member *m)
{
    const char *name = chempi_wire_get_str(r, CHEMPI_NODE_NAME_MAX);
    const char *address = chempi_wire_get_str(r, CHEMPI_ADDR_MAX);

    *m = (struct chempi_member){.slots = chempi_wire_get_u32(r)};
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    (void)snprintf(m->address, sizeof(m->address), "%s", address);
    return !r->is_bad;
}

int chempi_news_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_writer news = {0};
    struct chempi_members known;
    struct chempi_member m;
    struct chempi_reader r;
    uint32_t fresh = 0;
    bool joins = false;
    uint32_t n;

    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_MEMBERS_MAX, 14);
    chempi_daemon_members(d, &known);
    for (uint32_t i = 0; i < n && read_member(&r, &m); i++) {
        const struct chempi_member *old = chempi_members_find(&known, m.name);
        const bool is_self = strcmp(m.name, from->peer) == 0;

        if (strcmp(m.name, d->opt->name) == 0 || chempi_addr_is_any(m.address))
            continue;
        if (is_rival(old, &m)) { /* R2 */
            chempi_rivals_try(d, from, old, &m,
                              is_self && from->kind == CHEMPI_CONN_INBOUND);
            continue;
        }
        joins |= is_self;
        if (chempi_members_add(&d->members, m.name, m.address, m.slots) != 1)
            continue;
        write_member(&news, m.name, m.address, m.slots);
        fresh++;
    }
    if (joins && from->kind == CHEMPI_CONN_INBOUND)
        chempi_news_tell(d, from);
    spread_news(d, from, &news, fresh);
    chempi_wire_clear(&news);
    chempi_members_fini(&known);
    return chempi_wire_is_done(&r)
               ? 0
               : chempi_err_set(err, -EBADMSG, "malformed news");
}
