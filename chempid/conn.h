/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon's connections: local clients over a Unix socket, other daemons
 * over TCP that called us or that we called.
 *
 *   N1  nothing of a TCP peer is parsed before the keys are proven both ways;
 *       until then it costs one struct and has CHEMPI_CONN_PROOF_S seconds;
 *       after that every byte is sealed
 *   N2  the first frame is GREET; on_frame sees what follows
 *   N3  on_lost is called once, last; then the connection is freed
 *   N4  frames sent before the connection stands are kept for it
 *   N5  a connection whose peer's key is no longer trusted ends
 */
#ifndef CHEMPI_CHEMPID_CONN_H
#define CHEMPI_CHEMPID_CONN_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "chempid/addr.h"
#include "chempid/link.h"
#include "chempid/secrets.h"
#include "common/base/list.h"
#include "common/control/client.h"

#define CHEMPI_CONN_PROOF_S 10.0
#define CHEMPI_CONN_COMPLAINT_S 60.0 /* not again before */
#define CHEMPI_CONN_UNPROVEN_MAX 64u /* strangers at a time */
#define CHEMPI_CONN_LOCAL_MAX 256u   /* local clients of a user at a time */
#define CHEMPI_CONN_LAUNCH_MAX 240u  /* beyond so many, they only ask */

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
};

/* What all connections of a daemon share. */
struct chempi_conns {
    struct ev_loop *loop;
    struct chempi_list all;
    uint32_t unproven;
    ev_tstamp complained;                 /* of a user's many clients */
    const char *name;                     /* this node's, for GREET */
    const struct chempi_secrets *secrets; /* NULL: no TCP */
    const struct chempi_conn_ops *ops;
    void *arg;
};

struct chempi_conn {
    struct chempi_list entry;
    struct chempi_conns *conns;
    enum chempi_conn_kind kind;
    char peer[CHEMPI_NODE_NAME_MAX]; /* the node, "" not known */
    char where[CHEMPI_ADDR_MAX];     /* address, for words */
    uid_t uid;                       /* of a local client */
    gid_t gid;
    struct chempi_link link;
    bool is_proven;
    bool is_greeted;
    int fd; /* until the link has it */
    ev_io io;
    ev_timer limit;
    struct chempi_handshake shake; /* once over: hash and peer's key */
    uint8_t bytes[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t byte_count;
};

void chempi_conns_init(struct chempi_conns *conns, struct ev_loop *loop,
                       const char *name, const struct chempi_secrets *secrets,
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
/* Has an outbound connection, once proven, come back to this daemon? */
bool chempi_conns_is_own(const struct chempi_conn *conn);

#endif
