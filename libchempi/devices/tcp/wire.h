/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tcp device writes into a connection. All numbers are little-endian.
 * A connection starts with the greeting (below), and carries frames from then
 * on, in both directions, back to back: a fixed part that begins with a head,
 * and head.len bytes of payload.
 *
 *   EAGER     envelope; the whole payload
 *   RTS       envelope and the sender's token; the payload, which is not
 *             empty, stays there until
 *   CTS       the receiver names its own token and how many bytes it takes, or
 *   DROP      says that it takes none
 *   DATA      a piece of an announced message; pieces of one message come in
 *             order, pieces of different messages mix
 *   BYE       the sender has finished properly; nothing follows
 *
 * A token is a slot number and its generation, in the low and high half; it is
 * looked up, never trusted.
 *
 * Greeting, connecting side (C) and listening side (S):
 *   C  preamble, then the authentication's hello
 *   S  verdict; unless it refuses, the authentication's reply
 *   C  the authentication's finish
 *   S  verdict; unless it refuses, frames may follow in both directions
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_TCP_WIRE_H
#define CHEMPI_LIBCHEMPI_DEVICES_TCP_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/ddi.h"

#define CHEMPI_TCP_VERSION 4
#define CHEMPI_TCP_INJECT_MAX 4096u            /* bytes of payload */
#define CHEMPI_TCP_EAGER_MAX (512u * 1024u)    /* bytes of payload */
#define CHEMPI_TCP_CHUNK_MAX (1u << 20)        /* payload of one DATA, bytes */
#define CHEMPI_TCP_LEN_MAX (UINT64_C(1) << 56) /* of a message, bytes */

enum chempi_tcp_kind {
    CHEMPI_TCP_EAGER = 1,
    CHEMPI_TCP_RTS = 2,
    CHEMPI_TCP_CTS = 3,
    CHEMPI_TCP_DROP = 4,
    CHEMPI_TCP_DATA = 5,
    CHEMPI_TCP_BYE = 6
};

#define CHEMPI_TCP_MARK 0x7443u /* tells a frame's start from garbage */

struct chempi_tcp_head {
    uint32_t len; /* payload bytes behind the fixed part */
    uint8_t kind; /* enum chempi_tcp_kind */
    uint8_t zero;
    uint16_t mark; /* CHEMPI_TCP_MARK */
};

struct chempi_tcp_eager {
    struct chempi_tcp_head head;
    struct chempi_envelope env;
};

struct chempi_tcp_rts {
    struct chempi_tcp_head head;
    struct chempi_envelope env;
    uint64_t sender; /* token */
};

struct chempi_tcp_cts {
    struct chempi_tcp_head head;
    uint64_t sender;   /* token */
    uint64_t receiver; /* token */
    uint64_t take;     /* bytes wanted, 1 .. env.len */
};

struct chempi_tcp_drop {
    struct chempi_tcp_head head;
    uint64_t sender; /* token */
};

struct chempi_tcp_data {
    struct chempi_tcp_head head;
    uint64_t receiver; /* token */
    uint64_t offset;   /* of this piece in the message, bytes */
};

static_assert(sizeof(struct chempi_tcp_head) == 8, "head layout");
static_assert(sizeof(struct chempi_tcp_eager) == 40, "eager layout");
static_assert(sizeof(struct chempi_tcp_rts) == 48, "announce layout");
static_assert(sizeof(struct chempi_tcp_cts) == 32, "clear layout");
static_assert(sizeof(struct chempi_tcp_drop) == 16, "drop layout");
static_assert(sizeof(struct chempi_tcp_data) == 24, "data layout");
static_assert(offsetof(struct chempi_tcp_head, mark) == 6, "head layout");
static_assert(offsetof(struct chempi_tcp_rts, sender) == 40, "layout");
static_assert(offsetof(struct chempi_tcp_cts, take) == 24, "layout");

#define CHEMPI_TCP_FIXED_MAX sizeof(struct chempi_tcp_rts)

/* First bytes of a connection, before any proof; answered, never believed. */
struct chempi_tcp_preamble {
    uint8_t magic[8]; /* "CHEMPItc" */
    uint16_t version; /* CHEMPI_TCP_VERSION */
    uint16_t zero;
    uint32_t from;    /* number of who connects, in this bond */
    uint32_t to;      /* number of whom it looks for */
    uint32_t network; /* see chempi_tcp_card_network() */
    uint64_t order;   /* CHEMPI_TCP_ORDER: data representation */
    /* By whose secret; zeros: the job's, where a process's index is its number
     * (services/bond.h). */
    uint8_t bond[CHEMPI_BOND_NAME_BYTES];
};

enum chempi_tcp_verdict_code {
    CHEMPI_TCP_WELCOME = 0,
    CHEMPI_TCP_YIELD = 1,     /* mine is on its way to you: wait for it, or
                                 for the end of this one (T11) */
    CHEMPI_TCP_VERSIONS = 2,  /* I speak `version` */
    CHEMPI_TCP_STRANGER = 3,  /* bond, from, to or network do not fit */
    CHEMPI_TCP_NO_FILES = 4,  /* out of descriptors here */
    CHEMPI_TCP_DUPLICATE = 5, /* there is one between us already */
    CHEMPI_TCP_VERDICT_END
};

struct chempi_tcp_verdict {
    uint32_t magic; /* CHEMPI_TCP_VERDICT_MAGIC */
    uint16_t version;
    uint16_t code; /* enum chempi_tcp_verdict_code */
};

#define CHEMPI_TCP_MAGIC "CHEMPItc"
#define CHEMPI_TCP_ORDER UINT64_C(0x0123456789abcdef)
#define CHEMPI_TCP_VERDICT_MAGIC UINT32_C(0x76544843) /* "CHTv" */

static_assert(sizeof(struct chempi_tcp_preamble) == 48, "preamble layout");
static_assert(offsetof(struct chempi_tcp_preamble, order) == 24, "layout");
static_assert(sizeof(struct chempi_tcp_verdict) == 8, "verdict layout");

/* A frame's fixed part in host order. Members that a kind lacks are 0. */
struct chempi_tcp_frame {
    uint32_t kind;
    uint32_t len; /* payload, bytes */
    struct chempi_envelope env;
    uint64_t sender;
    uint64_t receiver;
    uint64_t take;
    uint64_t offset;
};

/* Write the fixed part; returns its length (<= CHEMPI_TCP_FIXED_MAX). */
size_t chempi_tcp_wire_put_eager(void *dst, const struct chempi_envelope *env);
size_t chempi_tcp_wire_put_rts(void *dst, const struct chempi_envelope *env,
                               uint64_t sender);
size_t chempi_tcp_wire_put_cts(void *dst, uint64_t sender, uint64_t receiver,
                               uint64_t take);
size_t chempi_tcp_wire_put_drop(void *dst, uint64_t sender);
size_t chempi_tcp_wire_put_data(void *dst, uint64_t receiver, uint64_t offset,
                                uint32_t len);
size_t chempi_tcp_wire_put_bye(void *dst);

/* Read a fixed part from the n bytes at src. Returns its length, 0 when more
 * bytes are needed (at most CHEMPI_TCP_FIXED_MAX), -EPROTO when these bytes
 * are no frame of this version; *why then says what is wrong. What a frame
 * says of itself is checked here, what it says of a message by the caller. */
int chempi_tcp_wire_get(const void *src, size_t n, struct chempi_tcp_frame *out,
                        const char **why);

/* bond: its name; NULL: the own job's. */
void chempi_tcp_wire_put_preamble(struct chempi_tcp_preamble *dst,
                                  const uint8_t *bond, uint32_t from,
                                  uint32_t to, uint32_t network);
/* To host order. Returns 0, or -EPROTO: not this device, -EPROTONOSUPPORT:
 * another version or data representation. */
int chempi_tcp_wire_get_preamble(const void *src,
                                 struct chempi_tcp_preamble *out);
void chempi_tcp_wire_put_verdict(struct chempi_tcp_verdict *dst,
                                 enum chempi_tcp_verdict_code code);
/* To host order; 0 or -EPROTO. */
int chempi_tcp_wire_get_verdict(const void *src,
                                struct chempi_tcp_verdict *out);

#endif
