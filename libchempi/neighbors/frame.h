/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels through gateways: frames of at most 64 KiB, each with a routing
 * header that names the gateways on its way (source routing: the tables of
 * different nodes need not agree) and how far it has come. The job is not
 * named: connections between its processes are proven by the job's secret.
 *
 * Wire form, little-endian: struct chempi_neighbor_wire, `gateway_count`
 * numbers of gateway processes in the order of the way, the fixed part of the
 * kind, payload.
 *
 *   EAGER     envelope; the whole payload
 *   PART      envelope, the sender's number of the message, an offset; a piece
 *             of a payload that would fit into EAGER
 *   RTS       envelope, the sender's token; the payload stays there until
 *   CTS       the receiver names its own token and how many bytes it takes, or
 *   DROP      says that it takes none
 *   DATA      the receiver's token and an offset; a piece of the payload
 *   ACK       nothing: the header says it
 *   GONE      from a gateway: process `src` has finished and takes no more
 *   FLUSH     to the last gateway that it names, not to `dst`, which has ended:
 *             what has it passed on of `dst` for `src`?
 *   FLUSHED   the answer, from the first gateway that it names: all that has
 *             come from `src` and is numbered, so many frames, the last of them
 *             before number `seq`
 *
 * EAGER to DATA and PART are numbered per flow (ordered pair of processes);
 * `ack` is the number up to which the frames of the opposite flow have arrived.
 */
#ifndef CHEMPI_LIBCHEMPI_NEIGHBORS_FRAME_H
#define CHEMPI_LIBCHEMPI_NEIGHBORS_FRAME_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/ddi.h"

#define CHEMPI_NEIGHBOR_MARK 0x4867u /* tells a frame's start from garbage */
#define CHEMPI_NEIGHBOR_VERSION 4u
#define CHEMPI_NEIGHBOR_GATEWAYS_MAX (CHEMPI_TABLE_STAGES_MAX - 1u)
#define CHEMPI_NEIGHBOR_CHUNK_MAX                                              \
    (64u * 1024u) /* payload of a frame, bytes                                 \
                   */
#define CHEMPI_NEIGHBOR_LEN_MAX (UINT64_C(1) << 56) /* of a message, bytes */

enum chempi_neighbor_kind {
    CHEMPI_NEIGHBOR_EAGER = 1,
    CHEMPI_NEIGHBOR_RTS = 2,
    CHEMPI_NEIGHBOR_CTS = 3,
    CHEMPI_NEIGHBOR_DROP = 4,
    CHEMPI_NEIGHBOR_DATA = 5,
    CHEMPI_NEIGHBOR_ACK = 6,
    CHEMPI_NEIGHBOR_GONE = 7,
    CHEMPI_NEIGHBOR_PART = 8,
    CHEMPI_NEIGHBOR_FLUSH = 9,
    CHEMPI_NEIGHBOR_FLUSHED = 10
};

/* Flags of a frame. */
#define CHEMPI_NEIGHBOR_HURRY                                                  \
    1u                            /* the sender waits for the acknowledgement  \
                                   */
#define CHEMPI_NEIGHBOR_SEALED 2u /* only its receiver can read it (seal.h) */
/* The class of messages that a frame belongs to, for counting (route_stats.h):
 * the upper byte of the flags. 0: of none, or nobody counts. */
#define CHEMPI_NEIGHBOR_CLASS_SHIFT 8u

static inline uint8_t chempi_neighbor_class_of(uint16_t flags)
{
    return (uint8_t)(flags >> CHEMPI_NEIGHBOR_CLASS_SHIFT);
}

struct chempi_neighbor_wire {
    uint16_t mark; /* CHEMPI_NEIGHBOR_MARK */
    uint8_t version;
    uint8_t kind;          /* enum chempi_neighbor_kind */
    uint8_t gateway_count; /* on the way */
    uint8_t at;            /* gateways that it has passed */
    uint16_t flags;        /* CHEMPI_NEIGHBOR_HURRY and _SEALED, class */
    uint32_t src;          /* rank that sends */
    uint32_t dst;          /* rank that receives */
    uint32_t seq;          /* number in the flow src -> dst, wraps */
    uint32_t ack;          /* all of dst -> src before this number have come */
};
static_assert(sizeof(struct chempi_neighbor_wire) == 24, "header layout");
static_assert(offsetof(struct chempi_neighbor_wire, src) == 8, "header layout");
static_assert(offsetof(struct chempi_neighbor_wire, ack) == 20,
              "header layout");

/* Header, gateways and the longest fixed part. */
#define CHEMPI_NEIGHBOR_FIXED_MAX                                              \
    (sizeof(struct chempi_neighbor_wire) + 4 * CHEMPI_NEIGHBOR_GATEWAYS_MAX +  \
     sizeof(struct chempi_envelope) + 16)
#define CHEMPI_NEIGHBOR_SEAL_BYTES 24u /* behind a sealed frame */
#define CHEMPI_NEIGHBOR_FRAME_MAX                                              \
    (CHEMPI_NEIGHBOR_FIXED_MAX + CHEMPI_NEIGHBOR_CHUNK_MAX +                   \
     CHEMPI_NEIGHBOR_SEAL_BYTES)

/* A frame in host order. Members that a kind lacks are 0. */
struct chempi_neighbor_frame {
    uint8_t kind;
    uint8_t gateway_count;
    uint8_t at;
    uint16_t flags;
    uint32_t src;
    uint32_t dst;
    uint32_t seq;
    uint32_t ack;
    uint32_t gateways[CHEMPI_NEIGHBOR_GATEWAYS_MAX];
    struct chempi_envelope env;
    uint64_t sender;     /* token; PART: number of the message */
    uint64_t receiver;   /* token */
    uint64_t number;     /* CTS: bytes wanted; DATA, PART: offset; FLUSHED:
                            frames */
    const uint8_t *data; /* payload, in the bytes that were read */
    uint32_t len;        /* of it, bytes */
};

/* What gateways say for themselves, and no rank may. */
static inline bool chempi_neighbor_is_gateways_own(uint32_t kind)
{
    return kind == CHEMPI_NEIGHBOR_GONE || kind == CHEMPI_NEIGHBOR_FLUSHED;
}

/* Is it numbered, kept by its sender and acknowledged? */
static inline bool chempi_neighbor_is_numbered(uint32_t kind)
{
    return kind <= CHEMPI_NEIGHBOR_DATA || kind == CHEMPI_NEIGHBOR_PART;
}

/* Write everything but the payload; returns its length. */
size_t chempi_neighbor_frame_put(uint8_t dst[CHEMPI_NEIGHBOR_FIXED_MAX],
                                 const struct chempi_neighbor_frame *f);

/* Read header and gateways; returns their length, or -EPROTO with *why. What
 * the numbers of processes mean is for the caller to check. */
int chempi_neighbor_frame_head(const uint8_t *src, size_t n,
                               struct chempi_neighbor_frame *out,
                               const char **why);

/* The same, and the rest, of a frame that is not sealed; 0 or -EPROTO with
 * *why. */
int chempi_neighbor_frame_get(const uint8_t *src, size_t n,
                              struct chempi_neighbor_frame *out,
                              const char **why);

/* Change single members of a frame that was written before. */
void chempi_neighbor_frame_set_at(uint8_t *frame, uint8_t at);
void chempi_neighbor_frame_set_seq(uint8_t *frame, uint32_t seq);
void chempi_neighbor_frame_set_ack(uint8_t *frame, uint32_t ack);
void chempi_neighbor_frame_set_sealed(uint8_t *frame, bool is_sealed);

/* Bytes of header and gateways of a frame that was written before. */
static inline size_t chempi_neighbor_frame_head_len(const uint8_t *frame)
{
    return sizeof(struct chempi_neighbor_wire) +
           4u * (size_t)
                    frame[offsetof(struct chempi_neighbor_wire, gateway_count)];
}

#endif
