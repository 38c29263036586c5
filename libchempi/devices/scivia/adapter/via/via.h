/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The VIA half of an adapter, in VIPL's terms.
 *
 * Memory is registered under a protection tag; a VI (a connected pair of
 * queues) carries one as well; the card refuses an access whose tags differ.
 * Two VIs are connected, then descriptors are posted to their send and
 * receive queues. Descriptors of one queue complete in their order.
 *
 *   - a send needs a receive descriptor at the other side, posted before.
 *     Without one the message is dropped, and the connection broken when it is
 *     reliable
 *   - RDMA needs none (a write with immediate data does); the other side must
 *     have enabled it for the region
 *   - a descriptor belongs to the card from post until done
 *
 * All functions return 0 or -errno with words in chempi_adapter_words(), and
 * -ENOTSUP on an adapter without a VIA half.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_VIA_VIA_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_VIA_VIA_H

#include "common/containers/list.h"
#include "libchempi/devices/scivia/adapter/adapter.h"

#define CHEMPI_VIA_SEGMENT_MAX 4u
#define CHEMPI_VIA_DEPTH 256u /* receive descriptors posted to one VI */
#define CHEMPI_VIA_TRANSFER_MAX (UINT64_C(1) << 30) /* bytes */

struct chempi_via_vi;
struct chempi_via_cq;
struct chempi_via_request; /* somebody asks for a connection */

/* --- memory --- */

enum chempi_via_enable {
    CHEMPI_VIA_ENABLE_WRITE = 1, /* RDMA write by the other side */
    CHEMPI_VIA_ENABLE_READ = 2
};

/* A protection tag, never 0. -ENOMEM never; tags are numbers. */
int chempi_via_ptag_create(struct chempi_adapter *adapter, uint32_t *out);

/*
 * Register [start, start + len): the pages are locked and entered in the
 * translation and protection table. *handle is never 0.
 * -EINVAL (empty, tag 0); -ENOSPC (the table is full, or the budget of locked
 * memory is); -EAGAIN, -ENOMEM (the kernel cannot lock it).
 */
int chempi_via_register(struct chempi_adapter *adapter, const void *start,
                        size_t len, uint32_t ptag, uint32_t enables,
                        uint32_t *handle);
/* No descriptor that names it may be pending. -EINVAL: no such handle. */
int chempi_via_deregister(struct chempi_adapter *adapter, uint32_t handle);

/* Pages of the region were unmapped or replaced while it is in use: they are
 * not locked any more, and what comes to their addresses must not be taken
 * for them. The region's locks end now; the rest at deregistration. -EINVAL. */
int chempi_via_lost(struct chempi_adapter *adapter, uint32_t handle);

/* --- VIs and connections --- */

enum chempi_via_reliability {
    CHEMPI_VIA_UNRELIABLE,
    CHEMPI_VIA_RELIABLE_DELIVERY, /* done: it has left and will arrive */
    CHEMPI_VIA_RELIABLE_RECEPTION /* done: it has arrived */
};

struct chempi_via_attributes {
    uint32_t ptag;
    enum chempi_via_reliability reliability;
    uint64_t transfer_max;         /* 0: the adapter's */
    struct chempi_via_cq *send_cq; /* or NULL */
    struct chempi_via_cq *recv_cq;
    void *user;
};

enum chempi_via_state {
    CHEMPI_VIA_IDLE,
    CHEMPI_VIA_CONNECTING,
    CHEMPI_VIA_CONNECTED,
    CHEMPI_VIA_ERROR /* broken, refused or disconnected */
};

/* -EINVAL (tag 0, sizes); -ENOMEM; -EMFILE. */
int chempi_via_vi_create(struct chempi_adapter *adapter,
                         const struct chempi_via_attributes *attributes,
                         struct chempi_via_vi **out);
/* Disconnects; pending descriptors are forgotten. Accepts NULL. */
void chempi_via_vi_destroy(struct chempi_via_vi *vi);
enum chempi_via_state chempi_via_vi_state(const struct chempi_via_vi *vi);
/* Why it is in the error state. */
int chempi_via_vi_status(const struct chempi_via_vi *vi);
void *chempi_via_vi_user(const struct chempi_via_vi *vi);

/* Client: ask over a link for a VI that serves `discriminator`. Receive
 * descriptors may be posted before. -EISCONN; -ENOTCONN; -ENOMEM. */
int chempi_via_connect_request(struct chempi_via_vi *vi,
                               struct chempi_adapter_link *link,
                               uint64_t discriminator);
/* Server: the oldest request, or NULL. */
struct chempi_via_request *
chempi_via_connect_next(struct chempi_adapter *adapter);
uint64_t
chempi_via_request_discriminator(const struct chempi_via_request *request);
/* params->user of the adapter that asks. */
uint32_t chempi_via_request_user(const struct chempi_via_request *request);
/* Give it a VI. Ends the request unless an error is returned: -EISCONN;
 * -EINVAL (another reliability or maximum); -ENOTCONN (the client is gone). */
int chempi_via_connect_accept(struct chempi_via_request *request,
                              struct chempi_via_vi *vi);
void chempi_via_connect_reject(struct chempi_via_request *request);

/*
 * Peer to peer: both sides name the same discriminator, each over its own
 * link; who of the two acts as the client follows from the addresses.
 * As connect_request.
 */
int chempi_via_connect_peer(struct chempi_via_vi *vi,
                            struct chempi_adapter_link *link,
                            uint64_t discriminator);

void chempi_via_disconnect(struct chempi_via_vi *vi);

/* --- descriptors --- */

enum chempi_via_op {
    CHEMPI_VIA_SEND,
    CHEMPI_VIA_RECEIVE,
    CHEMPI_VIA_RDMA_WRITE,
    CHEMPI_VIA_RDMA_READ
};

struct chempi_via_segment {
    void *addr;
    uint32_t handle;
    uint32_t len; /* bytes */
};

struct chempi_via_descriptor {
    /* set by the owner */
    enum chempi_via_op op;
    uint32_t segment_count;
    struct chempi_via_segment segments[CHEMPI_VIA_SEGMENT_MAX];
    uint64_t remote_addr; /* RDMA */
    uint32_t remote_handle;
    bool has_immediate;
    uint32_t immediate;
    void *user;
    /* set by the card, valid once done */
    int status;      /* 0, or -errno */
    uint64_t length; /* bytes transferred */
    /* the card's */
    struct chempi_list link;
    uint32_t delay;
};

/*
 * To the send queue: SEND, RDMA_WRITE, RDMA_READ. -EINVAL (malformed);
 * -ENOTCONN. Everything else is told by the descriptor's status:
 *   -EACCES     protection: tag, bounds, or RDMA not enabled
 *   -ENOBUFS    no receive descriptor (reliable)
 *   -EMSGSIZE   the receive descriptor is too small (reliable)
 *   -ECONNRESET the connection broke, here or before
 * Each of these breaks a reliable connection.
 */
int chempi_via_post_send(struct chempi_via_vi *vi,
                         struct chempi_via_descriptor *descriptor);
/* To the receive queue; also before the VI is connected. -EINVAL; -ENOSPC
 * (CHEMPI_VIA_DEPTH are posted); -EACCES (protection). */
int chempi_via_post_recv(struct chempi_via_vi *vi,
                         struct chempi_via_descriptor *descriptor);
/* The oldest finished descriptor of the queue, or NULL. */
struct chempi_via_descriptor *chempi_via_send_done(struct chempi_via_vi *vi);
struct chempi_via_descriptor *chempi_via_recv_done(struct chempi_via_vi *vi);
/* The same, waiting at most timeout_ms (-1: no limit). Blocks. NULL: none. */
struct chempi_via_descriptor *chempi_via_send_wait(struct chempi_via_vi *vi,
                                                   int timeout_ms);
struct chempi_via_descriptor *chempi_via_recv_wait(struct chempi_via_vi *vi,
                                                   int timeout_ms);

/* --- completion queues --- */

int chempi_via_cq_create(struct chempi_adapter *adapter,
                         struct chempi_via_cq **out);
/* -EBUSY: a VI still uses it. */
int chempi_via_cq_destroy(struct chempi_via_cq *cq);
/* A VI with a finished descriptor, in turn; *is_recv says in which queue.
 * NULL: none; that costs O(1). */
struct chempi_via_vi *chempi_via_cq_done(struct chempi_via_cq *cq,
                                         bool *is_recv);
struct chempi_via_vi *chempi_via_cq_wait(struct chempi_via_cq *cq,
                                         bool *is_recv, int timeout_ms);

#endif
