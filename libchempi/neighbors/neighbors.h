/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: the processes that frames are handed to directly, over ordinary
 * devices. Used by ranks towards their gateways and by gateways towards ranks
 * and other gateways.
 *
 *   -   a buffer is freed with its last reference; a queue or device that has
 *       it holds one
 *   -   is_sending: a device may read the bytes; nobody writes them then
 *   -   frames to one neighbour leave in the order of chempi_neighbors_queue(),
 * as far as its device keeps it
 *   -   no more than CHEMPI_NEIGHBOR_SENDING_MAX frames to one neighbour are
 *       with devices that did not take them at once. Where such a frame is
 *       announced, its bytes come before the announcement of the one after so
 *       many on the same connection: a neighbour that announces more than that
 *       by each way has broken the rules, and is refused
 *   -   upcalls never call down into a device: they queue, and
 *       chempi_neighbors_flush() sends when the device has returned
 *
 * Under the lane lock (or in a process with one thread).
 */
#ifndef CHEMPI_LIBCHEMPI_NEIGHBORS_NEIGHBORS_H
#define CHEMPI_LIBCHEMPI_NEIGHBORS_NEIGHBORS_H

#include "libchempi/ddi.h"
#include "libchempi/neighbors/frame.h"

/* Tells frames from messages in an envelope: no communicator's context. */
#define CHEMPI_NEIGHBOR_CONTEXT UINT32_MAX

#define CHEMPI_NEIGHBOR_WAYS_MAX 8u /* towards one neighbour */
#define CHEMPI_NEIGHBOR_UNSENT UINT8_MAX
#define CHEMPI_NEIGHBOR_SENDING_MAX 32u

struct chempi_neighbor;

struct chempi_neighbor_buf {
    struct chempi_list link;  /* the holder's */
    struct chempi_list queue; /* waits for room, or for its bytes */
    union {
        struct chempi_tx tx;
        struct chempi_rx rx;
    } u;
    struct chempi_neighbor *peer; /* of the queue or device it is in */
    uint32_t refs;
    uint32_t len;   /* of the frame, bytes */
    uint32_t seq;   /* the holder's */
    uint32_t flow;  /* the holder's */
    uint32_t tally; /* number of the way that counts it (route_stats.h), or 0 */
    uint8_t way;    /* towards the neighbour that took it, or UNSENT */
    bool has_waited;
    bool is_sending;
    uint8_t data[];
};

struct chempi_neighbors_ops {
    /* A frame has come from process `from`. The bytes are valid during the
     * call; when buf is not NULL they are its, and may be kept by taking a
     * reference. False: memory is missing; it comes again. */
    bool (*frame)(void *arg, uint32_t from, const uint8_t *data, size_t len,
                  struct chempi_neighbor_buf *buf);
    /* A buffer has left the queue for good: sent by buf->way, or thrown away
     * (UNSENT). */
    void (*left)(void *arg, struct chempi_neighbor_buf *buf);
    /* Ask for a neighbour's card; chempi_neighbors_card() follows. 0 or -errno.
     */
    int (*ask)(void *arg, uint32_t proc, const char *key);
    /* A neighbour cannot be reached any more. */
    void (*lost)(void *arg, uint32_t proc, const char *why);
};

/* What comes from one process: it waits for memory for as long as may be
 * whatever the others get or wait for. */
struct chempi_neighbor_source {
    struct chempi_shortage shortage;
    uint32_t filling; /* frames that devices fill */
};

struct chempi_neighbors {
    const struct chempi_services *services;
    struct chempi_dev *const *devices;
    const uint32_t *device_count;
    const struct chempi_neighbors_ops *ops;
    void *arg;
    struct chempi_neighbor **peers; /* [proc_count], NULL until used */
    struct chempi_list dirty;       /* chempi_neighbor.dirty: may have room */
    struct chempi_list incoming;    /* buf.queue: being filled by a device */
    struct chempi_neighbor_source *sources; /* [proc_count] */
    struct chempi_list left;    /* buf.queue: filled, and come again */
    struct chempi_list sending; /* buf.queue: being read by a device */
    uint64_t queued; /* buffers in queues and devices (not incoming) */
};

/* devices[0 .. *device_count) are open, and may become more. 0 or -ENOMEM. */
int chempi_neighbors_open(struct chempi_neighbors *neighbors,
                          const struct chempi_services *services,
                          struct chempi_dev *const *devices,
                          const uint32_t *device_count,
                          const struct chempi_neighbors_ops *ops, void *arg);
/* After the devices have been closed: no upcall follows. */
void chempi_neighbors_close(struct chempi_neighbors *neighbors);

/* A buffer for `cap` bytes with one reference, or NULL. */
struct chempi_neighbor_buf *chempi_neighbor_buf_create(size_t cap);
void chempi_neighbor_buf_hold(struct chempi_neighbor_buf *buf);
void chempi_neighbor_buf_drop(
    struct chempi_neighbor_buf *buf); /* accepts NULL */

/* Find the way to a neighbour; idempotent. -EHOSTUNREACH or -ENOMEM with
 * words. */
int chempi_neighbors_reach(struct chempi_neighbors *neighbors, uint32_t proc,
                           struct chempi_err *err);

/* The network ("-": nobody knows) and device of a way towards a neighbour, as
 * in buf->way. False: there is no such way. */
bool chempi_neighbors_way_names(const struct chempi_neighbors *neighbors,
                                uint32_t proc, uint32_t way,
                                const char **network, const char **device);

/* Queue a frame for a neighbour, which takes over the caller's reference;
 * calls no device. 0, or -errno and nothing happened: no way, or lost. */
int chempi_neighbors_queue(struct chempi_neighbors *neighbors, uint32_t proc,
                           struct chempi_neighbor_buf *buf);
/* Hand to the devices what they have room for. */
void chempi_neighbors_flush(struct chempi_neighbors *neighbors);
static inline bool
chempi_neighbors_is_dirty(const struct chempi_neighbors *neighbors)
{
    return !chempi_list_is_empty(&neighbors->dirty);
}

/* The neighbour is gone: throw away what waits for it. */
void chempi_neighbors_forget(struct chempi_neighbors *neighbors, uint32_t proc);

/* Frames for which memory was missing, and of which no device knows any more,
 * come again; returns the number of those that are taken. A process with some
 * does not sleep. */
static inline bool
chempi_neighbors_has_left(const struct chempi_neighbors *neighbors)
{
    return !chempi_list_is_empty(&neighbors->left);
}
int chempi_neighbors_retake(struct chempi_neighbors *neighbors);

/* What the devices' sink passes on. The first three say whether it was a
 * frame's. */
bool chempi_neighbors_arrived(struct chempi_neighbors *neighbors,
                              const struct chempi_arrival *arrival,
                              enum chempi_verdict *verdict,
                              struct chempi_rx **rx);
bool chempi_neighbors_delivered(struct chempi_neighbors *neighbors,
                                struct chempi_rx *rx, int status);
bool chempi_neighbors_sent(struct chempi_neighbors *neighbors,
                           struct chempi_tx *tx, int status);
void chempi_neighbors_room(struct chempi_neighbors *neighbors,
                           const struct chempi_ep *ep);
/* The card that was asked for (length 0: there is none). */
void chempi_neighbors_card(struct chempi_neighbors *neighbors, uint32_t proc,
                           const char *key, const void *card, size_t len);

#endif
