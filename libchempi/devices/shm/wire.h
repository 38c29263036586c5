/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of a node share through the shm device: one inbox per
 * process and one pair per ordered pair of processes (doc/devices-shm.md has
 * the picture).
 *
 *   -   a pair is written by its sender, except `taken`, which is written by
 *       its receiver; an inbox is written by everybody, with atomics only
 *   -   line i of the ring is written only while head - tail < lines; what is
 *       written last is its seq, the free-running number of the line plus one:
 *       it differs from lap to lap and from zero memory, so that nothing is
 *       ever cleared
 *   R3  a short message goes on in the lines that follow its first, up to
 *       the end of the ring, and its payload covers their seq words; one that
 *       would put there what the next lap's seq will be is not sent so
 *   R4  a message of up to TINY_MAX may go into the line of the one before,
 *       if that is such a one as well and its envelope is the same but for the
 *       length and the serial number, which is the next. Its mark is written
 *       last, and those of a line are cleared before the line's seq. A receiver
 *       looks for it where it looks for the next line, until it has that one:
 *       so a line stays its own beyond `taken` until the next one is taken
 *   -   payload above SHORT_MAX lies in `data`, in one piece or more, each at
 *       a position that its line names; it is free again when the line's
 *       receiver says so in taken.data
 *   -   a receiver reads a pair only after its sender has rung the bell once,
 *       hence after the pages were reserved
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SHM_WIRE_H
#define CHEMPI_LIBCHEMPI_DEVICES_SHM_WIRE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/ddi.h"

#define SHM_INLINE_MAX 32u /* bytes of payload in a message's first line */
#define SHM_ROW_MAX 5u     /* lines of a short message */
#define SHM_SHORT_MAX (SHM_INLINE_MAX + (SHM_ROW_MAX - 1) * CHEMPI_CACHE_LINE)
#define SHM_TINY_MAX 8u   /* bytes of payload of a tiny message */
#define SHM_TINY_MORE 2u  /* that may follow a tiny one in its line (R4) */
#define SHM_HELP_SLOTS 8u /* shared transfers at a time, per pair */

enum shm_kind {
    SHM_KIND_SHORT = 1, /* a message in one line, or a row of them */
    SHM_KIND_EAGER,     /* payload in data, or its first piece */
    SHM_KIND_MORE,      /* the next piece of the last EAGER one */
    SHM_KIND_RTS,       /* announces; payload stays with the sender */
    SHM_KIND_CTS,       /* receiver: send the payload in DATA lines */
    SHM_KIND_HELP,      /* receiver: share the copying */
    SHM_KIND_DATA,      /* a chunk of payload */
    SHM_KIND_FIN        /* receiver: the payload is not needed any more */
};

/* Where payload lies in `data`. */
struct shm_span {
    uint32_t pos; /* free-running position, bytes */
    uint32_t len; /* bytes */
};

struct shm_rts {
    uint64_t id;   /* the sender's transfer */
    uint64_t addr; /* payload in the sender; 0: not offered */
    uint16_t help; /* slot to share the copying; SHM_HELP_SLOTS: none */
    uint16_t form; /* words at addr that say where payload is; 0: at addr */
    uint16_t protocol;
    uint16_t would_copy; /* 1: single copies are cheaper to the sender (M3) */
};

struct shm_cts {
    uint64_t id;      /* the sender's transfer, as asked */
    uint64_t peer_id; /* the receiver's, to be named in DATA */
    uint64_t from;    /* payload bytes already there */
    uint64_t want;    /* payload bytes wanted in all, >= from */
    uint32_t refused; /* 1: single copy was refused to the receiver */
    uint32_t timed;   /* 1: DATA shall say how long copying took */
};

struct shm_help {
    uint64_t id;
    uint64_t addr;  /* of the target, in the receiver */
    uint64_t want;  /* bytes in all */
    uint32_t form;  /* as in shm_rts, of the target */
    uint32_t timed; /* 1: the share shall say how long copying took */
};

struct shm_data {
    uint64_t id; /* the receiver's transfer */
    struct shm_span span;
    uint32_t spent; /* ns that the sender has copied, if it was asked to say */
};

struct shm_fin {
    uint64_t id;
};

/* An envelope without its first member, the length: a short message's is in
 * the line, to leave room for payload. */
#define SHM_ENVELOPE_TAIL offsetof(struct chempi_envelope, context)

/* A message in the line of the one before (R4). */
struct shm_tiny {
    _Atomic uint32_t mark; /* 0: there is none yet; else its length plus 1 */
    unsigned char bytes[SHM_TINY_MAX];
};

struct shm_line {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t seq;
    uint16_t kind; /* enum shm_kind */
    uint16_t len;  /* of SHORT: bytes of payload */
    union {
        struct {
            unsigned char
                tail[sizeof(struct chempi_envelope) - SHM_ENVELOPE_TAIL];
            union {
                unsigned char bytes[SHM_INLINE_MAX];
                struct {
                    unsigned char bytes[SHM_TINY_MAX];
                    struct shm_tiny more[SHM_TINY_MORE];
                } tiny;
            } u;
        } brief; /* SHORT; bytes go on in the lines that follow (R3) */
        struct {
            struct chempi_envelope env;
            union {
                struct shm_span span; /* EAGER */
                struct shm_rts rts;   /* RTS */
            } u;
        } msg;
        struct shm_span more;
        struct shm_cts cts;
        struct shm_help help;
        struct shm_data data;
        struct shm_fin fin;
    } body;
};
static_assert(sizeof(struct shm_line) == 64, "a line is a cache line");

/* Where the payload of a short message starts in its first line. */
#define SHM_INLINE_AT offsetof(struct shm_line, body.brief.u)
static_assert(SHM_INLINE_AT + SHM_INLINE_MAX == sizeof(struct shm_line),
              "payload goes on in the next line without a gap");
static_assert(offsetof(struct shm_line, body.brief.u.tiny.more) +
                      SHM_TINY_MORE * sizeof(struct shm_tiny) ==
                  sizeof(struct shm_line),
              "behind the last tiny message of a line is the next line");

enum shm_mode {
    SHM_MODE_BELL = 0,  /* ring the bell after each line */
    SHM_MODE_POLLED = 1 /* the receiver looks at the ring */
};

/* The receiver's side of a pair. The sender looks at the mode after every line
 * that it sends, so this lies apart from what changes with a quarter of them.
 */
struct shm_taken {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t lines; /* free-running */
    _Atomic uint32_t data;                             /* free-running, bytes */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t mode; /* enum shm_mode */
};

/* A transfer whose chunks are copied by whoever is free. Zeroed by the
 * sender before it asks; afterwards both claim, the sender counts its own. */
struct shm_share {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t claimed; /* chunks, of both */
    _Atomic uint32_t done;      /* chunks the sender has written */
    _Atomic uint32_t spent;     /* .. in so many ns, if it was asked to say */
    _Atomic uint32_t failed;    /* 1 + a chunk that it claimed in vain, or 0 */
    _Atomic uint32_t is_closed; /* it claims no more, and has counted all */
};

struct shm_pair {
    struct {
        _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t waits; /* for room */
        int32_t pid;         /* constant once the bell was rung */
        uint64_t probe_addr; /* of a byte in the sender */
        uint32_t probe_value;
    } sender;
    struct shm_taken taken;
    struct shm_share shares[SHM_HELP_SLOTS];
    /* then the lines, then data */
};

/* Bells: bit s of words[s / 64], and a summary with a bit per word. */
#define SHM_BELL_WORDS 64u
#define SHM_RANKS_MAX (SHM_BELL_WORDS * 64u)

struct shm_inbox {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t summary;
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t words[SHM_BELL_WORDS];
};

#endif
