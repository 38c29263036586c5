/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames over a non-blocking stream socket, with what has arrived in part and
 * what is still to be written. No event loop: ranks, supervisors and daemons
 * drive it from theirs.
 *
 * A frame is a header of 16 bytes, little-endian, and its payload:
 *   0  u32 payload bytes    4  u16 type    6  u16 magic    8  u64 job
 *
 *   C1  a payload longer than the channel's limit is refused from its header,
 *       before memory is taken
 *   -   a frame handed out points into the channel and is valid until the
 *       next fill
 *   -   after an error the channel is only good for fini
 *   -   of a sealed channel, no byte that is read or written bypasses the seal
 *   C5  memory grows with the bytes that have come, not with those announced,
 *       and what a large frame has needed is given back by rest()
 */
#ifndef CHEMPI_COMMON_CONTROL_CHANNEL_H
#define CHEMPI_COMMON_CONTROL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/noise.h"
#include "common/control/wire.h"

struct chempi_seal;

#define CHEMPI_FRAME_HEADER 16u /* bytes */
#define CHEMPI_FRAME_MAGIC UINT16_C(0xc4e1)

struct chempi_frame {
    uint64_t job; /* 0 where the channel serves one job only */
    uint16_t type;
    uint32_t len;
    const uint8_t *data;
};

/* Memory that channels have in common, as those of one user. */
struct chempi_purse {
    size_t used; /* bytes */
    size_t max;
    uint64_t served_ns; /* when one of them last had a turn (link.h, L6) */
};

struct chempi_channel {
    int fd;
    struct chempi_purse *purse; /* NULL: no limit but the two below */
    size_t paid;                /* bytes of the purse */
    uint32_t in_max;            /* largest payload accepted, bytes */
    size_t queue_max;           /* most bytes queued for writing */
    size_t spare; /* bytes of memory that a frame without reserve leaves */
    uint8_t *in;
    size_t in_cap;
    size_t in_head; /* first byte not yet handed out */
    size_t in_len;  /* bytes from in_head on */
    bool is_wary;   /* of descriptors that come with bytes (rights.h) */
    struct chempi_writer out;
    size_t out_head;          /* first byte not yet written */
    size_t out_frame;         /* where the frame begun with begin() starts */
    struct chempi_seal *seal; /* NULL: frames go in clear */
};

/* Take over fd (closed by fini). Never fails, never allocates. */
void chempi_channel_init(struct chempi_channel *ch, int fd, uint32_t in_max,
                         size_t queue_max);
void chempi_channel_fini(struct chempi_channel *ch);

/* From now on all is sealed, also what is queued already; nothing has been
 * written or read yet. 0, -ENOMEM. */
int chempi_channel_seal(struct chempi_channel *ch,
                        const struct chempi_noise_cipher *tx,
                        const struct chempi_noise_cipher *rx);

/* Read what is there, up to a bound that keeps one peer from starving others.
 * Returns 1: something came; 0: nothing now; -EPIPE: end of stream; -EDQUOT:
 * the purse is empty; -EPERM: descriptors, of which it is wary; -EKEYREJECTED:
 * bytes that the peer has not sealed; other -errno. */
int chempi_channel_fill(struct chempi_channel *ch);

/* Next whole frame: 1, 0: none yet, -EBADMSG: not a frame, -EMSGSIZE: C1. */
int chempi_channel_next(struct chempi_channel *ch, struct chempi_frame *out);

/* All frames have been taken: give back what large ones have needed. */
void chempi_channel_rest(struct chempi_channel *ch);

/* Queue a frame. 0, -ENOBUFS: the peer does not read, -EDQUOT, -ENOMEM. */
int chempi_channel_send(struct chempi_channel *ch, uint16_t type, uint64_t job,
                        const void *data, size_t len);

/* The same with the payload written in place between begin and end. */
struct chempi_writer *chempi_channel_begin(struct chempi_channel *ch,
                                           uint16_t type, uint64_t job);
int chempi_channel_end(struct chempi_channel *ch);
/* So many bytes above the queue's limit are well, too, and what is spare may be
 * used. */
int chempi_channel_end_within(struct chempi_channel *ch, size_t reserve);

/* Have the memory that is spare, beyond what is queued. 0 or -ENOMEM. */
int chempi_channel_keep(struct chempi_channel *ch);

/* Write queued bytes: 0: none left, 1: the socket is full, -errno. */
int chempi_channel_flush(struct chempi_channel *ch);

bool chempi_channel_has_output(const struct chempi_channel *ch);

#endif
