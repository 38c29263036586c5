/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies in exported segments. Each process exports one inbox to all, and
 * to each process that it talks with one pair, which that process alone
 * writes. Everything is written by remote stores and read locally.
 *
 *   -   a line (a message info struct) is one packet. What arrives last is its
 *       seq, the free-running number of the line plus one: it differs from lap
 *       to lap and from zero memory, so nothing is ever cleared
 *   -   a line is stored, checked and perhaps stored again before anything
 *       else is stored in this pair, so what it names has arrived before it
 *   R3  line i is written only while head - told.lines < SCIVIA_LINES; payload
 *       in `data` is free again when told.data says so
 *   -   a sender rings after the line has arrived: its bell, then `exist`,
 *       with a barrier between
 *
 * Cards with the VIA half only have no segments. There a line travels in a VIA
 * send, a frame, together with its payload and with what would stand in
 * `told`; the receiver keeps receive descriptors posted.
 *
 *   -   frame i is sent only while head - lines told < the descriptors that
 *       the receiver keeps posted: `room` in its frames, SCIVIA_FRAMES_MIN
 *       before the first has come. The last of them, scivia_frame_reserve(),
 *       are for frames that only tell; as each of them tells of
 *       scivia_frame_quarter() of the descriptors, the reserve lasts until the
 *       other side looks. Whoever has not yet said how many it has, tells as
 *       if they were SCIVIA_FRAMES_MIN
 *   -   a frame whose connection broke is sent again on the next one; seq says
 *       whether it had arrived
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_WIRE_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#include "libchempi/ddi.h"

#define SCIVIA_LINES 256u
#define SCIVIA_DATA_BYTES 65536u
#define SCIVIA_INLINE_MAX 34u
#define SCIVIA_EAGER_MAX 8192u /* bytes; <= a quarter of the data */
#define SCIVIA_CHUNK 16384u    /* bytes of a piece, likewise */
#define SCIVIA_RECEIVES 8u     /* descriptors posted per connected VI */
#define SCIVIA_PIECE_HEAD 64u  /* bytes before the payload of a VIA piece */
#define SCIVIA_PIECE (SCIVIA_CHUNK - SCIVIA_PIECE_HEAD)
#define SCIVIA_FRAMES 30u    /* receive descriptors for frames */
#define SCIVIA_FRAMES_MIN 8u /* the same where memory is scarce */

#define SCIVIA_SEGMENT_INBOX 0u
#define SCIVIA_SEGMENT_PAIR(proc) ((proc) + 1u)

enum scivia_kind {
    SCIVIA_KIND_SHORT = 1, /* a message in one line */
    SCIVIA_KIND_EAGER,     /* payload in data */
    SCIVIA_KIND_RTS,       /* announces; payload stays with the sender */
    SCIVIA_KIND_CTS,       /* receiver: send the payload, this way */
    SCIVIA_KIND_DATA,      /* a piece of payload in data */
    SCIVIA_KIND_DONE,      /* sender: the window is written by RDMA */
    SCIVIA_KIND_FIN,       /* receiver: the payload is not needed any more */
    SCIVIA_KIND_TOLD       /* frames: nothing but what was taken */
};

/* How payload travels once the receiver has named a place. */
enum scivia_way {
    SCIVIA_WAY_RING = 1, /* DATA lines */
    SCIVIA_WAY_SEND,     /* VIA sends into posted descriptors */
    SCIVIA_WAY_RDMA      /* VIA RDMA writes to addr */
};

struct scivia_span {
    uint32_t pos; /* free-running position in data, bytes */
    uint32_t len;
};

/* An envelope whose length stands in the line's tail. */
struct scivia_short {
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint32_t serial;
    uint32_t credit;
    uint16_t flags;
    unsigned char bytes[SCIVIA_INLINE_MAX];
};

struct scivia_eager {
    struct chempi_envelope env;
    struct scivia_span span;
};

struct scivia_rts {
    struct chempi_envelope env;
    uint64_t id; /* the sender's transfer */
    uint32_t protocol;
};

struct scivia_cts {
    uint64_t id;      /* the sender's transfer, as asked */
    uint64_t peer_id; /* the receiver's */
    uint64_t want;    /* bytes of the message */
    uint64_t window;  /* of these, bytes that may be sent now */
    uint64_t addr;    /* RDMA: target and its handle */
    uint32_t handle;
    uint32_t way;
};

struct scivia_data {
    uint64_t id;     /* the receiver's transfer */
    uint64_t offset; /* in its payload */
    struct scivia_span span;
};

/* What precedes a piece in a VIA send; the payload begins behind
 * SCIVIA_PIECE_HEAD in the receiver's buffer, too. */
struct scivia_piece {
    uint64_t id; /* the receiver's transfer */
    uint64_t offset;
    unsigned char reserved[SCIVIA_PIECE_HEAD - 2 * sizeof(uint64_t)];
};
static_assert(sizeof(struct scivia_piece) == SCIVIA_PIECE_HEAD, "piece");

struct scivia_line {
    union {
        struct scivia_short brief;
        struct scivia_eager eager;
        struct scivia_rts rts;
        struct scivia_cts cts;
        struct scivia_data data;
        uint64_t id; /* DONE: the receiver's transfer; FIN: the sender's */
        unsigned char bytes[56];
    } body;
    uint8_t kind; /* enum scivia_kind */
    uint8_t env_kind;
    uint8_t len; /* SHORT */
    uint8_t lane;
    _Atomic uint32_t seq;
};
static_assert(sizeof(struct scivia_line) == 64, "a line is a packet");
static_assert(offsetof(struct scivia_line, seq) == 60, "seq arrives last");

/* A VIA send with message info; payload follows at once. */
struct scivia_frame {
    struct scivia_line line; /* a span's pos is 0 */
    uint32_t lines;          /* what the sender has taken, as in told */
    uint32_t posted;
    uint32_t room; /* receive descriptors that it keeps posted for frames */
    uint32_t reserved;
    unsigned char bytes[SCIVIA_EAGER_MAX];
};
#define SCIVIA_FRAME_HEAD offsetof(struct scivia_frame, bytes)
static_assert(SCIVIA_FRAME_HEAD == 80, "frame layout");
static_assert(sizeof(struct scivia_frame) % 16 == 0, "frames in a row");

/* Of `room` descriptors (SCIVIA_FRAMES_MIN to SCIVIA_FRAMES): those for frames
 * that only tell, */
static inline uint32_t scivia_frame_reserve(uint32_t room)
{
    return room / 8 + 2;
}

/* and after how many frames the receiver tells. */
static inline uint32_t scivia_frame_quarter(uint32_t room)
{
    return room / 4 + 1;
}

/* What the receiver of the opposite direction has taken; one packet. */
struct scivia_told {
    _Atomic uint32_t lines;  /* free-running */
    _Atomic uint32_t data;   /* free-running, bytes */
    _Atomic uint32_t posted; /* receive descriptors, free-running */
    _Atomic uint32_t mode;   /* enum scivia_mode */
    uint32_t reserved[12];
};
static_assert(sizeof(struct scivia_told) == 64, "told is a packet");

enum scivia_mode { SCIVIA_MODE_BELL = 0, SCIVIA_MODE_POLLED = 1 };

struct scivia_pair {
    struct scivia_told told;
    struct scivia_line lines[SCIVIA_LINES];
    unsigned char data[SCIVIA_DATA_BYTES];
};

/* One word per process behind the flag: the bells. */
struct scivia_inbox {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t exist;
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t bells[];
};

#endif
