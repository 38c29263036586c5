/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an exchange is made of, for those who connect it: a port
 * (port.c), who calls one (dial.c), or a socket of the user's (join.c).
 *
 *   X1  it has a descriptor exactly while it is JOINING or OPEN; that is in the
 *       pollset while something is to be read or written
 *   X2  seal != NULL exactly while it is OPEN
 *   X3  a message is read when somebody wants to take it, or the other side
 *       has ended; nothing is read while one is kept, and what is behind the
 *       last one that was wanted stays in the user's socket
 *   X4  memory for a message grows with what has come of it
 *   X5  while it is WAITING it stands among a port's accepts, or somebody makes
 *       it
 *   X6  while it is owed something - a message that is wanted, or that what is
 *       sent be read - the timer ticks, and the other side moves PACE bytes, or
 *       ends a message, in each CHEMPI_SET_MEET_PATIENCE, and ends it within
 *       TURNS of them, or is lost; what passes while this process does not look
 *       is no part of a patience. A caller is owed nothing before it has heard
 *       something: until then it is not accepted. Who has begun to greet over
 *       the user's socket owes the rest until it is OPEN
 *   -   once LOST, always so
 *
 * chempi_exchange_check() looks at X1, X2, X5 and X6.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROC_STATE_H
#define CHEMPI_LIBCHEMPI_DIDL_PROC_STATE_H

#include "common/auth/seal.h"
#include "common/containers/list.h"
#include "libchempi/didl/proc/exchange.h"
#include "libchempi/services/pollset.h"

enum chempi_exchange_at {
    CHEMPI_EXCHANGE_WAITING, /* for a caller, or an answer */
    CHEMPI_EXCHANGE_JOINING, /* over the user's socket */
    CHEMPI_EXCHANGE_OPEN,
    CHEMPI_EXCHANGE_LOST
};

struct chempi_exchange {
    enum chempi_exchange_at at;
    bool is_first;
    bool is_users; /* the descriptor */
    struct chempi_poll_item item;
    uint32_t events;         /* that are asked for; 0: it is in no set */
    struct chempi_list link; /* among a port's accepts */
    /* What makes it, while WAITING for an answer, or JOINING; else NULL. */
    void *making;
    void (*end_making)(void *making);
    struct chempi_seal *seal;
    struct chempi_err err; /* once LOST */

    uint8_t *out; /* messages and their lengths, to be sealed */
    size_t out_len;
    size_t out_done;

    uint8_t *plain; /* a record, as it was opened */
    size_t plain_head;
    size_t plain_len;
    uint8_t head[4]; /* the length of the message that comes */
    size_t head_len;
    uint8_t *in; /* what has come of it */
    size_t in_cap;
    size_t in_len;
    size_t in_need;
    size_t in_most;   /* bytes of a message that begins to come */
    bool has_message; /* all of it */
    bool is_wanted;   /* somebody waits for it */

    struct chempi_poll_item timer; /* while it is JOINING or OPEN */
    bool is_accepted;              /* both sides are in the call */
    bool is_owed;
    uint64_t since_ns; /* of this patience */
    size_t moved;      /* in it, bytes */
    unsigned turns;    /* patiences that this message has had */
    uint64_t tick_ns;  /* the last tick, or when it began to be owed */
};

/* The one where descriptors of the process are waited on. */
struct chempi_pollset *chempi_exchange_pollset(void);

/* A WAITING one, or NULL: out of memory. */
struct chempi_exchange *chempi_exchange_create(void);
/* From now on it can be owed something; 0 or -errno. It is owed nothing. */
int chempi_exchange_time(struct chempi_exchange *x);
/* While JOINING: the other side is in the call, too (X6). */
void chempi_exchange_greeted(struct chempi_exchange *x);
/* The other side is proven. Takes over descriptor, which is in no set, and
 * seal. */
void chempi_exchange_open(struct chempi_exchange *x, int fd, bool is_first,
                          struct chempi_seal *seal);
/* It will not be, or is not any more. */
void chempi_exchange_lose(struct chempi_exchange *x, int code, const char *fmt,
                          ...) CHEMPI_PRINTF(3, 4);
/* Of its descriptor: these events, 0: none (X1). 0 or -errno. */
int chempi_exchange_ask(struct chempi_exchange *x, uint32_t events);
/* What a connection of ours is set to. */
void chempi_exchange_set_options(int fd);
/* NULL, or what does not hold (invariant.h). */
const char *chempi_exchange_check(const struct chempi_exchange *x);

#endif
