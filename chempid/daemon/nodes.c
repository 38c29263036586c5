/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a daemon knows, and who is told of them; see nodes.h. */
#include "chempid/daemon/nodes.h"

#include <errno.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "common/control/msg.h"

void chempi_nodes_look(struct chempi_daemon *d)
{
    chempi_ready_look(&d->ready, d->dir);
}

const struct chempi_members *chempi_nodes_ready(struct chempi_daemon *d)
{
    return chempi_ready_all(&d->ready, d->dir);
}

const struct chempi_member *chempi_nodes_member(struct chempi_daemon *d,
                                                const char *node)
{
    const struct chempi_member *m = chempi_ready_find(&d->ready, d->dir, node);

    return m ? m : chempi_members_find(&d->members, node);
}

struct chempi_conn *chempi_nodes_call(struct chempi_daemon *d, const char *node,
                                      struct chempi_err *err)
{
    const struct chempi_member *m = chempi_nodes_member(d, node);

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
void chempi_nodes_spread(struct chempi_daemon *d,
                         const struct chempi_conn *from,
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

void chempi_nodes_write(struct chempi_writer *w, const char *name,
                        const char *address, uint32_t slots)
{
    chempi_wire_put_str(w, name);
    chempi_wire_put_str(w, address);
    chempi_wire_put_u32(w, slots);
}

void chempi_nodes_tell(struct chempi_daemon *d, struct chempi_conn *to)
{
    struct chempi_writer *w = chempi_link_begin(&to->link, CHEMPI_MSG_NEWS, 0);

    chempi_wire_put_u32(w, d->members.count + 1);
    chempi_nodes_write(w, d->opt->name, d->address, d->slots);
    for (uint32_t i = 0; i < d->members.count; i++)
        chempi_nodes_write(w, d->members.list[i].name,
                           d->members.list[i].address,
                           d->members.list[i].slots);
    to->owes_news = chempi_link_try_end(&to->link) != 0; /* R4 */
}

bool chempi_nodes_is_fixed(const struct chempi_daemon *d, const char *node)
{
    const struct chempi_member *m = chempi_members_find(&d->members, node);

    return m && !*m->teller;
}

uint32_t chempi_nodes_count_told(const struct chempi_members *m,
                                 const char *teller)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->count; i++)
        n += strcmp(m->list[i].teller, teller) == 0;
    return n;
}

int chempi_nodes_put(struct chempi_daemon *d, const struct chempi_member *claim)
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

void chempi_nodes_believe(struct chempi_daemon *d, struct chempi_conn *from,
                          const struct chempi_member *claim, bool joins)
{
    struct chempi_writer news = {0};

    if (chempi_nodes_count_told(&d->members, claim->teller) <
            CHEMPI_NEWS_TOLD_MAX &&
        chempi_nodes_put(d, claim) == 1) {
        chempi_nodes_write(&news, claim->name, claim->address, claim->slots);
        chempi_nodes_spread(d, from, &news, 1);
        chempi_wire_clear(&news);
    }
    if (joins && from)
        chempi_nodes_tell(d, from);
}
