/* SPDX-License-Identifier: BSD-3-Clause */
/* A connected VI at each of the two processes, with what is posted to it. */
#ifndef CHEMPI_BENCH_PAPERS_VI_H
#define CHEMPI_BENCH_PAPERS_VI_H

#include "bench/papers/pair.h"

#define VI_RECEIVES 32u
#define VI_RECEIVE_BYTES 16384u

struct vi {
    struct chempi_via_vi *vi;
    uint32_t ptag;
    unsigned char *out; /* registered, to send from */
    uint32_t out_handle;
    unsigned char *window; /* of the other side, for RDMA: its address */
    uint32_t window_handle;
    uint32_t pending; /* posted to the send queue, not taken back */
    struct chempi_via_descriptor sends[VI_RECEIVES];
    uint32_t next_send;
    struct chempi_via_descriptor receives[VI_RECEIVES];
    unsigned char *in; /* [VI_RECEIVES][VI_RECEIVE_BYTES] */
    uint32_t in_handle;
};

/* Connect, post all receives; `bytes` can be sent or RDMA-written at once.
 * Both processes call it. */
struct vi *vi_open(struct pair *pair, uint64_t discriminator, size_t bytes);

/* Register memory under the VI's tag, for RDMA by the other side, too. */
uint32_t vi_register(struct pair *pair, struct vi *vi, void *start, size_t len);

/* The next free send descriptor; waits for the oldest if there is none. */
struct chempi_via_descriptor *vi_descriptor(struct pair *pair, struct vi *vi);
/* Post len bytes of vi->out; RDMA goes to the other side's vi->out. */
void vi_post(struct pair *pair, struct vi *vi, enum chempi_via_op op,
             size_t len);
/* Post a descriptor that the caller has filled. */
void vi_post_descriptor(struct pair *pair, struct vi *vi,
                        struct chempi_via_descriptor *d);
/* Take back all sends; does_sleep: by sleeping until they complete. */
void vi_finish(struct pair *pair, struct vi *vi, bool does_sleep);

/* The next message; does_sleep: by sleeping until it completes. */
struct chempi_via_descriptor *vi_take(struct pair *pair, struct vi *vi,
                                      bool does_sleep);
/* Give its descriptor back to the receive queue. */
void vi_repost(struct pair *pair, struct vi *vi,
               struct chempi_via_descriptor *d);

#endif
