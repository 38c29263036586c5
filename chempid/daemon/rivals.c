/* SPDX-License-Identifier: BSD-3-Clause */
/* Daemons that claim the name of a known node; see rivals.h. */
#include "chempid/daemon/rivals.h"

#include <stdio.h>
#include <stdlib.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/nodes.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

struct rival {
    struct chempi_list entry;
    struct chempi_conn *from; /* NULL: gone */
    struct chempi_conn *call; /* to the known address */
    struct chempi_member claim;
    char known[CHEMPI_ADDR_MAX];
    bool joins;
};

void chempi_rivals_init(struct chempi_rivals *rivals)
{
    chempi_list_init(&rivals->all);
    rivals->count = 0;
}

static void destroy(struct chempi_rivals *rivals, struct rival *r)
{
    chempi_list_remove(&r->entry);
    rivals->count--;
    free(r);
}

void chempi_rivals_fini(struct chempi_rivals *rivals)
{
    CHEMPI_LIST_FOR_SAFE (e, &rivals->all)
        destroy(rivals, CHEMPI_CONTAINER_OF(e, struct rival, entry));
}

static void refuse(struct chempi_conn *from, const struct chempi_member *claim,
                   const char *known, bool joins, const char *why)
{
    char text[CHEMPI_TEXT_MAX];

    (void)snprintf(text, sizeof(text),
                   "node %s is known at %s, %s: the daemon at %s must have "
                   "another --name",
                   claim->name, known, why, claim->address);
    chempi_log(CHEMPI_LOG_ERROR, "daemon", "%s", text);
    if (joins && from)
        chempi_conns_refuse(from, CHEMPI_MSG_NEWS, 0, text);
}

void chempi_rivals_try(struct chempi_daemon *d, struct chempi_conn *from,
                       const struct chempi_member *known,
                       const struct chempi_member *claim, bool joins)
{
    struct chempi_rivals *rivals = &d->rivals;
    struct chempi_err err;
    struct rival *r;

    r = rivals->count < CHEMPI_RIVALS_MAX ? chempi_sys->calloc(1, sizeof(*r))
                                          : NULL;
    if (!r) {
        refuse(from, claim, known->address, joins,
               "which cannot be looked at now");
        return;
    }
    chempi_list_append(&rivals->all, &r->entry);
    rivals->count++;
    r->from = from;
    r->claim = *claim;
    r->joins = joins;
    (void)snprintf(r->known, sizeof(r->known), "%s", known->address);
    r->call = chempi_conns_call(&d->conns, claim->name, r->known, &err);
    if (r->call)
        chempi_beat_wake(&d->beat);
    if (!r->call)
        chempi_rivals_lost(d, NULL); /* nobody can be there */
    else if (r->call->is_greeted)
        chempi_rivals_greeted(d, r->call);
}

void chempi_rivals_greeted(struct chempi_daemon *d, struct chempi_conn *conn)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->rivals.all) {
        struct rival *r = CHEMPI_CONTAINER_OF(e, struct rival, entry);

        if (r->call != conn)
            continue;
        refuse(r->from, &r->claim, r->known, r->joins,
               "where its daemon answers");
        destroy(&d->rivals, r);
    }
}

void chempi_rivals_lost(struct chempi_daemon *d, struct chempi_conn *conn)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->rivals.all) {
        struct rival *r = CHEMPI_CONTAINER_OF(e, struct rival, entry);

        if (r->from == conn)
            r->from = NULL;
        if (r->call != conn)
            continue;
        if (chempi_nodes_is_fixed(d, r->claim.name)) {
            refuse(r->from, &r->claim, r->known, r->joins,
                   "as the cluster file says");
            destroy(&d->rivals, r);
            continue;
        }
        chempi_log(CHEMPI_LOG_INFO, "daemon",
                   "node %s is at %s now, and no more at %s", r->claim.name,
                   r->claim.address, r->known);
        chempi_nodes_believe(d, r->from, &r->claim, r->joins);
        destroy(&d->rivals, r);
    }
}
