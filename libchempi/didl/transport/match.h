/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one matching engine (architecture, section 4).
 *
 * A receive is one of four kinds: (source, tag), (source, any), (any, tag),
 * (any, any). For each (context, source or any, tag or any) that occurs there
 * is one queue, found by hash, with the receives posted for exactly that
 * pattern and the held messages that fit it, both in order. An arrival looks
 * at the at most four queues it fits and takes the receive with the oldest
 * stamp; a new receive looks at one queue and takes its first message. Neither
 * cost grows with the number of posted receives or held messages.
 *
 *   M1  a posted receive is in exactly one queue
 *   M2  a held message is in the (source, tag) queue, and in the queues of
 *       every wildcard kind that has been used since start
 *   M3  in no queue do a posted receive and a held message stand together
 *   M4  posted[k] is the number of posted receives of kind k
 *
 * chempi_match_check() looks at all of them.
 *
 * Every lane has queues of its own, guarded by its lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_MATCH_H
#define CHEMPI_LIBCHEMPI_DIDL_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/transport/request.h"

enum { CHEMPI_MATCH_KINDS = 4 };

/* The queues of one lane; zero before its first use. */
struct chempi_match;
extern struct chempi_match chempi_match_main; /* of chempi_lane_main */
/* NULL: no memory. It goes with free(), after chempi_match_fini(). */
struct chempi_match *chempi_match_create(void);

enum chempi_held_state {
    CHEMPI_HELD_COMPLETE, /* payload is in data[] */
    CHEMPI_HELD_STREAM,   /* payload is still arriving in data[] */
    CHEMPI_HELD_REMOTE    /* payload is at the sender; token says where */
};

/* A message without a receive: unexpected, early, or taken by MPI_Mprobe. */
struct chempi_held {
    struct chempi_object obj;  /* CHEMPI_MAGIC_MESSAGE: a MPI_Message too */
    struct chempi_incoming in; /* HELD_STREAM only */
    struct chempi_list by[CHEMPI_MATCH_KINDS];
    struct chempi_list all;
    struct chempi_envelope env;
    struct chempi_peer *peer;
    struct chempi_ep *ep;
    uint64_t token[2];
    struct chempi_request *claimed; /* receive that waits for the stream */
    struct chempi_comm *comm;       /* MPI_Message: held */
    uint8_t state;                  /* enum chempi_held_state */
    int status;                     /* 0, or why its payload is not complete */
    bool is_indexed;                /* in the queues */
    uint64_t room;                  /* bytes at data */
    void *data;                     /* NULL when len is 0 or REMOTE */
    _Alignas(16) unsigned char small[64];
};

struct chempi_queue {
    struct chempi_list posted; /* chempi_request.match_link */
    struct chempi_list held;   /* chempi_held.by[kind] */
    struct chempi_queue *next; /* in its hash bucket, or in the free list */
    uint32_t context;
    int32_t source; /* or MPI_ANY_SOURCE */
    int32_t tag;    /* or MPI_ANY_TAG */
};

/* Take the receive that an arrived envelope matches, or NULL. */
struct chempi_request *chempi_match_take_posted(struct chempi_match *m,
                                                uint32_t context,
                                                int32_t source, int32_t tag);

/* Post a receive (context, peer_rank and peer_tag are set) unless a held
 * message fits: then that message is returned, taken out. -ENOMEM through
 * *error, and NULL. */
struct chempi_held *chempi_match_post(struct chempi_match *m,
                                      struct chempi_request *req, int *error);

/* The oldest held message that fits, or NULL; take: remove it. */
struct chempi_held *chempi_match_find_held(struct chempi_match *m,
                                           uint32_t context, int32_t source,
                                           int32_t tag, bool take, int *error);

/* Hold a message that matched nothing. 0 or -ENOMEM. */
int chempi_match_hold(struct chempi_match *m, struct chempi_held *held);

/* Any posted receive that fits, or NULL. Linear in what is posted. */
struct chempi_request *chempi_match_find_posted(
    struct chempi_match *m,
    bool (*fits)(const struct chempi_request *req, const void *arg),
    const void *arg);

/* Take a posted receive out again (cancel). */
void chempi_match_unpost(struct chempi_match *m, struct chempi_request *req);

/* Take a held message of a process out by its serial number (cancel of a
 * send), or NULL when it is not here or still streaming in. Linear in the
 * number of held messages. */
struct chempi_held *chempi_match_take_serial(struct chempi_match *m,
                                             struct chempi_peer *peer,
                                             uint32_t serial);

/* The oldest held message that fits, or NULL. Linear, too. */
struct chempi_held *
chempi_match_find(struct chempi_match *m,
                  bool (*fits)(struct chempi_held *held, void *arg), void *arg);
/* Take it out. */
void chempi_match_take(struct chempi_match *m, struct chempi_held *held);
/* Nobody shall receive it; it goes with the others at the end. */
void chempi_match_spoil(struct chempi_held *held);

/* A message object with room for len bytes of payload; NULL: no memory. */
struct chempi_held *chempi_match_held_create(struct chempi_match *m,
                                             uint64_t len);
void chempi_match_held_destroy(struct chempi_match *m,
                               struct chempi_held *held);

struct chempi_match_stats {
    uint64_t posted;     /* receives that wait */
    uint64_t held;       /* messages that wait */
    uint64_t held_max;   /* the most since start or rearm */
    uint64_t met_posted; /* messages that found their receive */
    uint64_t met_held;   /* receives and probes that took their message */
};

struct chempi_match_stats chempi_match_stats(const struct chempi_match *m);
/* Let held_max begin again at the level, which is returned. */
uint64_t chempi_match_rearm(struct chempi_match *m);

/* NULL, or what does not hold (invariant.h). Linear in what waits. */
const char *chempi_match_check(struct chempi_match *m);

/* Messages of the user's that nobody has received, and the first of them. */
struct chempi_match_lost {
    uint64_t count;
    uint64_t bytes;
    int32_t source; /* rank in its communicator */
    int32_t tag;
};
void chempi_match_find_lost(struct chempi_match *m,
                            struct chempi_match_lost *out);

/* Drop everything (finalize); returns the number of messages dropped. */
uint64_t chempi_match_fini(struct chempi_match *m);

#endif
