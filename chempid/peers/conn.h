/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon's connections: local clients over a Unix socket, other daemons
 * over TCP that called us or that we called.
 *
 *   N1  nothing of a TCP peer is parsed before the keys are proven both ways;
 *       until then it costs CHEMPI_CONN_UNPROVEN_BYTES and has
 *       CHEMPI_CONN_PROOF_S seconds; after that every byte is sealed
 *   N2  the first frame is GREET, and short; on_frame sees what follows
 *   N3  on_lost is called once, last; then the connection is freed
 *   N4  frames sent before the connection stands are kept for it
 *   N5  a connection whose peer's key is no longer trusted ends
 *   N6  strangers have CHEMPI_CONN_UNPROVEN_MAX places, each address some of
 *       them. A newcomer is always taken; who leaves for it is the oldest that
 *       has sent no whole first message made with the key, of those with most,
 *       and addresses that have proven the key before keep theirs. What a node
 *       has sent is looked at when it is taken, before others come
 *   N7  a client without a job that says nothing for CHEMPI_CONN_IDLE_S leaves
 */
#ifndef CHEMPI_CHEMPID_CONN_H
#define CHEMPI_CHEMPID_CONN_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "chempid/peers/resolve.h"
#include "chempid/peers/room.h"
#include "chempid/peers/secrets.h"
#include "chempid/peers/user_shares.h"
#include "chempid/tree/addr.h"
#include "chempid/tree/limits.h"
#include "chempid/tree/link.h"
#include "chempid/tree/silence.h"
#include "common/containers/list.h"
#include "common/control/client.h"

enum chempi_conn_kind {
    CHEMPI_CONN_LOCAL,   /* a client on this host */
    CHEMPI_CONN_INBOUND, /* a daemon that called us */
    CHEMPI_CONN_OUTBOUND /* a daemon that we called */
};

struct chempi_conn;

struct chempi_conn_ops {
    /* Its peer is known now. An error with words refuses it. */
    int (*on_greet)(struct chempi_conn *conn, struct chempi_err *err);
    int (*on_frame)(struct chempi_conn *conn, const struct chempi_frame *frame,
                    struct chempi_err *err);
    void (*on_lost)(struct chempi_conn *conn, const char *text);
    /* Has a client a job under way? */
    bool (*is_busy)(const struct chempi_conn *conn);
};

/* An address without its port; of IPv6, the network of 64 bits. */
struct chempi_conn_net {
    uint8_t bytes[16];
};

/* What all connections of a daemon share. */
struct chempi_conns {
    struct ev_loop *loop;
    struct chempi_supervisors
        *supervisors; /* of processes that look up names */
    struct chempi_list all;
    struct chempi_list strangers; /* in the order of arrival */
    uint32_t unproven;            /* they, and those about to be none */
    struct chempi_user_shares shares;
    struct chempi_conn_net known[CHEMPI_CONN_KNOWN_MAX]; /* a ring */
    uint32_t known_count;
    ev_tstamp complained;                 /* of a user's many clients */
    const char *name;                     /* this node's, for GREET */
    const struct chempi_secrets *secrets; /* NULL: no TCP */
    bool serves_users;                    /* users.h */
    const struct chempi_conn_ops *ops;
    void *arg;
};

#define CHEMPI_CONN_GAVE_UP_MAX 160 /* bytes of words for why it ended */
#define CHEMPI_CONN_WHERE 64        /* bytes of words for where it is */

struct chempi_conn {
    struct chempi_list entry;
    struct chempi_list fellow; /* among strangers, or in no list */
    struct chempi_conns *conns;
    enum chempi_conn_kind kind;
    char peer[CHEMPI_NODE_NAME_MAX]; /* the node, "" not known */
    char where[CHEMPI_CONN_WHERE];   /* address, for words */
    uid_t uid;                       /* of a local client */
    gid_t gid;
    bool owes_news;           /* there was no memory for some */
    double detect_s;          /* of the daemon there (beat.h); 0: not told */
    struct chempi_user *user; /* of a local client; NULL: none yet */
    uint32_t questions;       /* under way, that came from there */
    uint32_t orders;
    struct chempi_conn_net net;
    uint64_t heard_ns; /* when it last said something */
    bool has_link;     /* a stranger's struct ends before it */
    bool is_proven;
    bool is_greeted;
    bool has_merit; /* a stranger that holds the cluster's key, it seems */
    int fd;         /* until the link has it */
    ev_io io;
    ev_timer limit;
    struct chempi_resolve *resolve; /* of the host's name, or NULL */
    struct chempi_handshake shake;  /* once over: hash and peer's key */
    uint8_t bytes[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t byte_count;
    /* Not for strangers: */
    struct chempi_link link;
    struct chempi_room room; /* in its queue, for users */
    struct chempi_silence silence;
    char gave_up[CHEMPI_CONN_GAVE_UP_MAX]; /* why it will close it, or "" */
};

/* For a process that may have so many descriptors. */
void chempi_conns_init(struct chempi_conns *conns, struct ev_loop *loop,
                       const char *name, const struct chempi_secrets *secrets,
                       bool serves_users, uint64_t descriptors,
                       const struct chempi_conn_ops *ops, void *arg);
/* Close all, without on_lost. */
void chempi_conns_fini(struct chempi_conns *conns);

/* An accepted descriptor (taken over). Errors are logged. */
void chempi_conns_accept(struct chempi_conns *conns, int fd,
                         enum chempi_conn_kind kind);
/* The outbound connection to a node's daemon, begun if there is none. NULL
 * with words. */
struct chempi_conn *chempi_conns_call(struct chempi_conns *conns,
                                      const char *name, const char *address,
                                      struct chempi_err *err);
/* May a local client start a job? The last connections of a user are kept for
 * questions and orders, chempictl kill above all. -EDQUOT with words. */
int chempi_conns_admit_job(const struct chempi_conn *conn,
                           struct chempi_err *err);
/* N5: after the secrets were read again. */
void chempi_conns_recheck(struct chempi_conns *conns);
/* End it with these words; on_lost and all that follows (N3). */
void chempi_conns_end(struct chempi_conn *conn, const char *text);
/* chempi_link_try_end() for what is a user's, on a link between daemons:
 * -ENOBUFS also when that has its part of the room (room.h). */
int chempi_conns_end_for(struct chempi_conn *conn, uid_t uid);
/* Tell who sent it that a message of this type cannot be followed. */
void chempi_conns_refuse(struct chempi_conn *conn, uint16_t type, uint64_t job,
                         const char *why);
/* Has an outbound connection, once proven, come back to this daemon? */
bool chempi_conns_is_own(const struct chempi_conn *conn);

#endif
