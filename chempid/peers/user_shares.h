/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users of a daemon, and what each of them has of it: connections, jobs,
 * questions, memory. The numbers are in limits.h.
 *
 *   W1  a user is known while something counts for it, and no longer
 *   W2  what a user may have of what there is for all is at most what it
 *       leaves to all others, so that whoever comes finds some
 *   W3  subordinate users count as the first of them
 */
#ifndef CHEMPI_CHEMPID_USER_SHARES_H
#define CHEMPI_CHEMPID_USER_SHARES_H

#include <stdint.h>
#include <sys/types.h>

#include "chempid/peers/subordinates.h"
#include "common/base/err.h"
#include "common/containers/list.h"
#include "common/control/channel.h"

enum chempi_user_shares_kind {
    CHEMPI_USER_SHARES_CONNS,
    CHEMPI_USER_SHARES_JOBS,
    CHEMPI_USER_SHARES_QUESTIONS,
    CHEMPI_USER_SHARES_ORDERS,
    CHEMPI_USER_SHARES_KINDS
};

struct chempi_user {
    struct chempi_list entry;
    uid_t uid; /* W3 */
    uint32_t counts[CHEMPI_USER_SHARES_KINDS];
    struct chempi_purse purse;
};

struct chempi_user_shares {
    struct chempi_list users;
    struct chempi_subordinates subordinates;
    uint32_t counts[CHEMPI_USER_SHARES_KINDS]; /* of all users */
    uint32_t pools[CHEMPI_USER_SHARES_KINDS];  /* for all users */
    uid_t owner; /* W2 is not for root and this one */
};

/* For a process that may have so many descriptors, and its owner: root's if it
 * serves all users, whoever it has become. */
void chempi_user_shares_init(struct chempi_user_shares *shares,
                             uint64_t descriptors, uid_t owner);
/* Forget all users. */
void chempi_user_shares_fini(struct chempi_user_shares *shares);

/* One more of this kind for the user, to be ended by leave(). NULL with words:
 * -EDQUOT, the user has too many already, -ENOMEM. What is root's or the
 * daemon owner's is not subject to W2. */
struct chempi_user *chempi_user_shares_enter(struct chempi_user_shares *shares,
                                             uid_t uid,
                                             enum chempi_user_shares_kind kind,
                                             struct chempi_err *err);
void chempi_user_shares_leave(struct chempi_user_shares *shares,
                              struct chempi_user *user,
                              enum chempi_user_shares_kind kind);

/* How many of this kind the user may have now, who has `own` of them. */
uint32_t chempi_user_shares_share(const struct chempi_user_shares *shares,
                                  enum chempi_user_shares_kind kind, uid_t uid,
                                  uint32_t own);

#endif
