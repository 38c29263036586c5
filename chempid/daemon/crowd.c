/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of a daemon; see crowd.h. */
#include "chempid/daemon/crowd.h"

#include <errno.h>
#include <stdlib.h>

#include "chempid/tree/limits.h"
#include "common/base/sys.h"

void chempi_crowd_init(struct chempi_crowd *crowd, uint64_t descriptors,
                       uid_t owner)
{
    uint64_t max = descriptors > CHEMPI_FDS_RESERVED
                       ? (descriptors - CHEMPI_FDS_RESERVED) / 2
                       : 0;

    if (max < CHEMPI_USER_CONNS_MIN)
        max = CHEMPI_USER_CONNS_MIN;
    if (max > CHEMPI_CONN_LOCAL_ALL)
        max = CHEMPI_CONN_LOCAL_ALL;
    *crowd = (struct chempi_crowd){.conns_max = (uint32_t)max, .owner = owner};
    chempi_list_init(&crowd->users);
}

void chempi_crowd_fini(struct chempi_crowd *crowd)
{
    CHEMPI_LIST_FOR_SAFE (e, &crowd->users)
        free(CHEMPI_CONTAINER_OF(e, struct chempi_user, entry));
    chempi_list_init(&crowd->users);
}

static struct chempi_user *find(const struct chempi_crowd *crowd, uid_t uid)
{
    CHEMPI_LIST_FOR (e, &crowd->users) {
        struct chempi_user *u =
            CHEMPI_CONTAINER_OF(e, struct chempi_user, entry);

        if (u->uid == uid)
            return u;
    }
    return NULL;
}

static struct chempi_user *find_or_add(struct chempi_crowd *crowd, uid_t uid)
{
    struct chempi_user *u = find(crowd, uid);

    if (u)
        return u;
    u = chempi_sys->calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->uid = uid;
    u->purse.max = CHEMPI_USER_MEMORY_MAX;
    chempi_list_append(&crowd->users, &u->entry);
    return u;
}

/* W2: `own` of the connections are the user's. */
uint32_t chempi_crowd_share(const struct chempi_crowd *crowd, uid_t uid,
                            uint32_t own)
{
    const uint32_t others = crowd->conns - own;
    uint32_t share;

    if (uid == 0 || uid == crowd->owner)
        return CHEMPI_CONN_LOCAL_MAX;
    share = others < crowd->conns_max ? (crowd->conns_max - others) / 2 : 0;
    return share < CHEMPI_CONN_LOCAL_MAX ? share : CHEMPI_CONN_LOCAL_MAX;
}

static uint32_t limit_of(const struct chempi_crowd *crowd,
                         const struct chempi_user *u,
                         enum chempi_crowd_kind kind)
{
    switch (kind) {
    case CHEMPI_CROWD_CONNS:
        return chempi_crowd_share(crowd, u->uid, u->counts[kind]);
    case CHEMPI_CROWD_JOBS:
        return CHEMPI_USER_JOBS_MAX;
    case CHEMPI_CROWD_ORDERS:
        return CHEMPI_USER_ORDERS_MAX;
    default:
        return CHEMPI_USER_QUESTIONS_MAX;
    }
}

/* W1 */
static void forget_if_idle(struct chempi_user *u)
{
    for (int i = 0; i < CHEMPI_CROWD_KINDS; i++)
        if (u->counts[i])
            return;
    chempi_list_remove(&u->entry);
    free(u);
}

struct chempi_user *chempi_crowd_enter(struct chempi_crowd *crowd, uid_t uid,
                                       enum chempi_crowd_kind kind,
                                       struct chempi_err *err)
{
    static const char *const names[] = {"jobs and questions", "jobs",
                                        "questions", "orders"};
    struct chempi_user *u = find_or_add(crowd, uid);
    uint32_t limit;

    if (!u) {
        (void)chempi_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    limit = limit_of(crowd, u, kind);
    if (u->counts[kind] >= limit) {
        (void)chempi_err_set(err, -EDQUOT,
                             "user %ld has too many %s under way with this "
                             "daemon (limit: %u); wait until some have ended, "
                             "or end some with 'chempictl kill'",
                             (long)uid, names[kind], limit);
        forget_if_idle(u);
        return NULL;
    }
    u->counts[kind]++;
    crowd->conns += kind == CHEMPI_CROWD_CONNS;
    return u;
}

void chempi_crowd_leave(struct chempi_crowd *crowd, struct chempi_user *user,
                        enum chempi_crowd_kind kind)
{
    user->counts[kind]--;
    crowd->conns -= kind == CHEMPI_CROWD_CONNS;
    forget_if_idle(user);
}
