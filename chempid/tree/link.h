/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control channel in an event loop.
 *
 *   L1  on_frame returns 0 or -errno with words; then, or when the peer is
 *       gone, on_lost is called once, last, from the loop
 *   L2  send never calls back; a failure to send ends in on_lost (L1), after
 *       all that had come before it
 *   -   a link may be closed in on_lost or outside its callbacks, not in its
 *       own on_frame
 *   L4  what is offered and cannot be queued is not sent, and the link stays
 *   L5  a shared link for which there is no memory, here or in the kernel,
 *       reads and writes on later
 *   L6  the loop hands on a bounded number of frames and turns to others; the
 *       rest keeps its order and comes in the loop's next iterations. All links
 *       together that are not shared have a bounded time of an iteration; in
 *       the next one comes first whose user (purse) has had no turn for
 *       longest, and of one user's who has waited longest
 *   L7  what is sent on a shared link, not offered, has a reserve above the
 *       queue's limit, and memory ahead: who fills the queue with offers, and
 *       who takes all memory, does not end the link
 */
#ifndef CHEMPI_CHEMPID_LINK_H
#define CHEMPI_CHEMPID_LINK_H

#include <ev.h>

#include "common/base/err.h"
#include "common/control/channel.h"

/* Bytes: more than DROP or REFUSED of all jobs that a daemon may have. */
#define CHEMPI_LINK_RESERVE (8u << 20)

/* Bytes of memory that a shared link keeps: the same, but for words. */
#define CHEMPI_LINK_SPARE (112u << 10)

struct chempi_link;

typedef int chempi_link_frame_fn(struct chempi_link *link,
                                 const struct chempi_frame *frame,
                                 struct chempi_err *err);
/* code is -EPIPE for a plain end of the stream; err has words otherwise. */
typedef void chempi_link_lost_fn(struct chempi_link *link, int code,
                                 const struct chempi_err *err);

struct chempi_link {
    struct chempi_channel ch;
    struct ev_loop *loop;
    ev_io in;
    ev_io out;
    chempi_link_frame_fn *on_frame;
    chempi_link_lost_fn *on_lost;
    void (*on_written)(struct chempi_link *link); /* queued bytes went out
                                                     later; may be NULL */
    void *arg;
    uint64_t sent; /* bytes of frames queued so far, as they were given */
    uint64_t waits_since_ns; /* for a turn (L6); 0: it does not */
    ev_timer rest;           /* from reading and writing (L5, L6) */
    int failure;             /* why nothing can be sent any more; 0: it can */
    int readings;            /* that a failed link has left */
    int filled;              /* what came of reading last */
    bool has_more;           /* frames that were read and not yet handed on */
    bool has_heard;          /* bytes came; whoever looks may take it back */
    bool is_open;
    bool is_shared;  /* by jobs of several users: false until it is set */
    bool is_started; /* has a descriptor; before, frames are only queued */
};

/* It is used by jobs of several users (L5, L7); after prepare(). */
void chempi_link_share(struct chempi_link *link);

/* Take what has arrived, without waiting for the loop. */
void chempi_link_drain(struct chempi_link *link);

/* Take over fd (made non-blocking) and watch it. */
void chempi_link_open(struct chempi_link *link, struct ev_loop *loop, int fd,
                      uint32_t in_max, size_t queue_max);
/* The same in two steps: frames may be sent in between and wait. */
void chempi_link_prepare(struct chempi_link *link, struct ev_loop *loop,
                         uint32_t in_max, size_t queue_max);
void chempi_link_start(struct chempi_link *link, int fd);
/* Take over a channel on which frames have gone already; what of them is not
 * yet taken comes from the loop. The caller's is empty then. */
void chempi_link_adopt(struct chempi_link *link, struct ev_loop *loop,
                       struct chempi_channel *ch);
/* Stop and close; idempotent. */
void chempi_link_close(struct chempi_link *link);

/* Queue a frame and write what goes. See L2. */
void chempi_link_send(struct chempi_link *link, uint16_t type, uint64_t job,
                      const void *data, size_t len);
/* Written in place; between the two nothing else is sent on the link. */
struct chempi_writer *chempi_link_begin(struct chempi_link *link, uint16_t type,
                                        uint64_t job);
void chempi_link_end(struct chempi_link *link);

/* As send() and end() (L4), for what belongs to one job or question of those
 * that share the link. 0, -ENOBUFS: the peer does not read, -ENOMEM. */
int chempi_link_offer(struct chempi_link *link, uint16_t type, uint64_t job,
                      const void *data, size_t len);
int chempi_link_try_end(struct chempi_link *link);

/* Bytes that wait to be written. */
static inline size_t chempi_link_queued(const struct chempi_link *link)
{
    return link->ch.out.len - link->ch.out_head;
}

#endif
