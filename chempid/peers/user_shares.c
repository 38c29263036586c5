/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of a daemon; see user_shares.h. */
#include "chempid/peers/user_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "chempid/tree/limits.h"
#include "common/base/sys.h"

static const uint32_t most[CHEMPI_USER_SHARES_KINDS] = {
    [CHEMPI_USER_SHARES_CONNS] = CHEMPI_CONN_LOCAL_MAX,
    [CHEMPI_USER_SHARES_JOBS] = CHEMPI_USER_JOBS_MAX,
    [CHEMPI_USER_SHARES_QUESTIONS] = CHEMPI_USER_QUESTIONS_MAX,
    [CHEMPI_USER_SHARES_ORDERS] = CHEMPI_USER_ORDERS_MAX,
};

static uint32_t pool_of(uint64_t descriptors, uint32_t max)
{
    if (descriptors < CHEMPI_USER_POOL_MIN)
        return CHEMPI_USER_POOL_MIN;
    return descriptors < max ? (uint32_t)descriptors : max;
}

void chempi_user_shares_init(struct chempi_user_shares *crowd,
                             uint64_t descriptors, uid_t owner)
{
    const uint64_t free = descriptors > CHEMPI_FDS_RESERVED
                              ? descriptors - CHEMPI_FDS_RESERVED
                              : 0;

    *crowd = (struct chempi_user_shares){.owner = owner};
    crowd->pools[CHEMPI_USER_SHARES_CONNS] =
        pool_of(free / 2, CHEMPI_CONN_LOCAL_ALL);
    crowd->pools[CHEMPI_USER_SHARES_JOBS] =
        pool_of(free / 4, CHEMPI_DAEMON_JOBS_MAX);
    crowd->pools[CHEMPI_USER_SHARES_QUESTIONS] = CHEMPI_DAEMON_QUERIES_MAX;
    crowd->pools[CHEMPI_USER_SHARES_ORDERS] = CHEMPI_ORDERS_MAX;
    chempi_list_init(&crowd->users);
}

void chempi_user_shares_fini(struct chempi_user_shares *crowd)
{
    CHEMPI_LIST_FOR_SAFE (e, &crowd->users)
        free(CHEMPI_CONTAINER_OF(e, struct chempi_user, entry));
    chempi_list_init(&crowd->users);
}

static struct chempi_user *find(const struct chempi_user_shares *crowd,
                                uid_t uid)
{
    CHEMPI_LIST_FOR (e, &crowd->users) {
        struct chempi_user *u =
            CHEMPI_CONTAINER_OF(e, struct chempi_user, entry);

        if (u->uid == uid)
            return u;
    }
    return NULL;
}

static struct chempi_user *find_or_add(struct chempi_user_shares *crowd,
                                       uid_t uid)
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

/* W2 */
uint32_t chempi_user_shares_share(const struct chempi_user_shares *crowd,
                                  enum chempi_user_shares_kind kind, uid_t uid,
                                  uint32_t own)
{
    const uint32_t others = crowd->counts[kind] - own;
    const uint32_t pool = crowd->pools[kind];
    const uint32_t share = others < pool ? (pool - others) / 2 : 0;

    if (uid == 0 || uid == crowd->owner || share > most[kind])
        return most[kind];
    return share;
}

/* W1 */
static void forget_if_idle(struct chempi_user *u)
{
    for (int i = 0; i < CHEMPI_USER_SHARES_KINDS; i++)
        if (u->counts[i])
            return;
    chempi_list_remove(&u->entry);
    free(u);
}

struct chempi_user *chempi_user_shares_enter(struct chempi_user_shares *crowd,
                                             uid_t uid,
                                             enum chempi_user_shares_kind kind,
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
    limit = chempi_user_shares_share(crowd, kind, uid, u->counts[kind]);
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
    crowd->counts[kind]++;
    return u;
}

void chempi_user_shares_leave(struct chempi_user_shares *crowd,
                              struct chempi_user *user,
                              enum chempi_user_shares_kind kind)
{
    user->counts[kind]--;
    crowd->counts[kind]--;
    forget_if_idle(user);
}
