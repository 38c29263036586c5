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

void chempi_user_shares_init(struct chempi_user_shares *shares,
                             uint64_t descriptors, uid_t owner)
{
    const uint64_t free = descriptors > CHEMPI_FDS_RESERVED
                              ? descriptors - CHEMPI_FDS_RESERVED
                              : 0;

    *shares = (struct chempi_user_shares){.owner = owner};
    shares->pools[CHEMPI_USER_SHARES_CONNS] =
        pool_of(free / 2, CHEMPI_CONN_LOCAL_ALL);
    shares->pools[CHEMPI_USER_SHARES_JOBS] =
        pool_of(free / 4, CHEMPI_DAEMON_JOBS_MAX);
    shares->pools[CHEMPI_USER_SHARES_QUESTIONS] = CHEMPI_DAEMON_QUERIES_MAX;
    shares->pools[CHEMPI_USER_SHARES_ORDERS] = CHEMPI_ORDERS_MAX;
    chempi_list_init(&shares->users);
    chempi_subordinates_init(&shares->subordinates, CHEMPI_SUBORDINATES_FILE);
}

void chempi_user_shares_fini(struct chempi_user_shares *shares)
{
    CHEMPI_LIST_FOR_SAFE (e, &shares->users)
        free(CHEMPI_CONTAINER_OF(e, struct chempi_user, entry));
    chempi_list_init(&shares->users);
    chempi_subordinates_fini(&shares->subordinates);
}

static struct chempi_user *find(const struct chempi_user_shares *shares,
                                uid_t uid)
{
    CHEMPI_LIST_FOR (e, &shares->users) {
        struct chempi_user *u =
            CHEMPI_CONTAINER_OF(e, struct chempi_user, entry);

        if (u->uid == uid)
            return u;
    }
    return NULL;
}

static struct chempi_user *find_or_add(struct chempi_user_shares *shares,
                                       uid_t uid)
{
    struct chempi_user *u = find(shares, uid);

    if (u)
        return u;
    u = chempi_sys->calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->uid = uid;
    u->purse.max = CHEMPI_USER_MEMORY_MAX;
    chempi_list_append(&shares->users, &u->entry);
    return u;
}

/* W2 */
uint32_t chempi_user_shares_share(const struct chempi_user_shares *shares,
                                  enum chempi_user_shares_kind kind, uid_t uid,
                                  uint32_t own)
{
    const uint32_t others = shares->counts[kind] - own;
    const uint32_t pool = shares->pools[kind];
    const uint32_t share = others < pool ? (pool - others) / 2 : 0;

    if (uid == 0 || uid == shares->owner || share > most[kind])
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

struct chempi_user *chempi_user_shares_enter(struct chempi_user_shares *shares,
                                             uid_t who,
                                             enum chempi_user_shares_kind kind,
                                             struct chempi_err *err)
{
    static const char *const names[] = {"jobs and questions", "jobs",
                                        "questions", "orders"};
    const uid_t uid = chempi_subordinates_account(&shares->subordinates, who);
    struct chempi_user *u = find_or_add(shares, uid);
    uint32_t limit;

    if (!u) {
        (void)chempi_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    limit = chempi_user_shares_share(shares, kind, uid, u->counts[kind]);
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
    shares->counts[kind]++;
    return u;
}

void chempi_user_shares_leave(struct chempi_user_shares *shares,
                              struct chempi_user *user,
                              enum chempi_user_shares_kind kind)
{
    user->counts[kind]--;
    shares->counts[kind]--;
    forget_if_idle(user);
}
