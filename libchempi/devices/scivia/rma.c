/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided access over the VIA half: exposed memory is registered for RDMA,
 * a put is an RDMA write, a get an RDMA read. Operations go in pieces, one
 * under way for each; a queue of the card completes in order, and a reliable
 * write is done when it has arrived.
 *
 *   O1  an operation or flush stands in its target's list from PENDING until
 *       done(), in the order in which they were begun
 *   O2  a flush is done when it has come to the front of that list
 *   O3  a post in the card's hands has a region in use; its operation is NULL
 *       once the operation has failed
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define POSTS 16u
#define PAGE ((size_t)4096)
#define KEY_MAGIC UINT32_C(0x52564353) /* "SCVR" */

enum kind { KIND_PUT, KIND_GET, KIND_FLUSH };

/* What the device keeps in chempi_rma.priv. */
enum { PRIV_KIND, PRIV_DONE, PRIV_POSTED, PRIV_COUNT };
static_assert(PRIV_COUNT <= 8, "fits chempi_rma.priv");

struct key {
    uint32_t magic;
    uint32_t proc; /* whose memory it is */
    uint64_t addr;
    uint64_t len;
    uint32_t handle;
    uint32_t access; /* enum chempi_rma_access */
};
static_assert(sizeof(struct key) == CHEMPI_RMA_KEY_BYTES, "key layout");

struct chempi_rma_memory {
    struct chempi_registration *region;
    void *own; /* to be freed, or NULL */
};

struct chempi_rma_target {
    struct chempi_list link; /* in scivia_rma.targets */
    struct scivia_ep *ep;
    struct key key;
    struct chempi_list active; /* O1 */
};

struct post {
    struct chempi_list link; /* in scivia_rma.free */
    struct chempi_via_descriptor descriptor;
    struct chempi_rma *rma; /* O3 */
    struct chempi_registration *region;
};

struct scivia_rma {
    struct chempi_list targets;
    struct chempi_list free;
    struct post posts[POSTS];
};

static struct scivia_dev *dev_of(struct chempi_dev *dev)
{
    return (struct scivia_dev *)dev;
}

static struct scivia_rma *rma_of(struct scivia_dev *dev)
{
    struct scivia_rma *rma = dev->rma;

    if (rma)
        return rma;
    rma = chempi_sys->calloc(1, sizeof(*rma));
    if (!rma)
        return NULL;
    chempi_list_init(&rma->targets);
    chempi_list_init(&rma->free);
    for (uint32_t i = 0; i < POSTS; i++)
        chempi_list_append(&rma->free, &rma->posts[i].link);
    dev->rma = rma;
    return rma;
}

void chempi_scivia_rma_fini(struct scivia_dev *dev)
{
    free(dev->rma);
}

/* --- exposing --- */

static void rma_withdraw(struct chempi_dev *dev,
                         struct chempi_rma_memory *memory)
{
    if (!memory)
        return;
    dev_of(dev)->exposed--;
    chempi_scivia_memory_put(dev_of(dev), memory->region);
    free(memory->own);
    free(memory);
}

static int own_memory(struct chempi_rma_memory *memory, uint64_t len)
{
    size_t whole = ((size_t)len + PAGE - 1) / PAGE * PAGE;

    if (len > SIZE_MAX - PAGE ||
        chempi_sys->posix_memalign(&memory->own, PAGE, whole) != 0)
        return -ENOMEM;
    memset(memory->own, 0, whole);
    return 0;
}

static int rma_expose(struct chempi_dev *base, void **start, uint64_t len,
                      uint32_t access, struct chempi_rma_memory **out,
                      unsigned char key[CHEMPI_RMA_KEY_BYTES],
                      struct chempi_err *err)
{
    struct scivia_dev *dev = dev_of(base);
    uint32_t enables =
        (access & CHEMPI_RMA_PUT ? (uint32_t)CHEMPI_VIA_ENABLE_WRITE : 0) |
        (access & CHEMPI_RMA_GET ? (uint32_t)CHEMPI_VIA_ENABLE_READ : 0);
    struct key made = {.magic = KEY_MAGIC,
                       .proc = base->params.services->proc,
                       .len = len,
                       .access = access};
    struct chempi_rma_memory *memory;
    int rc = 0;

    if (!dev->attributes.has_via)
        return chempi_err_set(err, -ENOTSUP, "adapter %s has no RDMA",
                              dev->attributes.name);
    if (len == 0)
        return chempi_err_set(err, -EINVAL, "a window of 0 bytes");
    memory = chempi_sys->calloc(1, sizeof(*memory));
    if (!memory)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (!*start)
        rc = own_memory(memory, len);
    made.addr = (uint64_t)(uintptr_t)(*start ? *start : memory->own);
    if (rc == 0) {
        memory->region = chempi_scivia_memory_get(
            dev, (const void *)(uintptr_t)made.addr, (size_t)len, enables);
        rc = memory->region ? 0 : -ENOSPC;
    }
    if (rc < 0) {
        free(memory->own);
        free(memory);
        return chempi_err_set(err, rc,
                              rc == -ENOSPC ? "the card denies to register "
                                              "the window"
                                            : "out of memory");
    }
    dev->exposed++;
    made.handle = memory->region->handle;
    memcpy(key, &made, sizeof(made));
    *start = *start ? *start : memory->own;
    *out = memory;
    return 0;
}

/* --- attaching --- */

static int rma_attach(struct chempi_ep *base,
                      const unsigned char bytes[CHEMPI_RMA_KEY_BYTES],
                      struct chempi_rma_target **out, struct chempi_err *err)
{
    struct scivia_ep *ep = (struct scivia_ep *)base;
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_rma *rma = rma_of(dev);
    struct chempi_rma_target *target;
    struct key key;
    int rc;

    memcpy(&key, bytes, sizeof(key));
    if (key.magic != KEY_MAGIC || key.proc != base->proc || key.len == 0 ||
        key.len > UINT64_MAX - key.addr)
        return chempi_err_set(err, -EINVAL, "no key of rank %u's SCI device",
                              (unsigned)base->proc);
    if (ep->is_broken || ep->is_gone)
        return chempi_err_set(err, -ECONNRESET, "rank %u is gone",
                              (unsigned)base->proc);
    rc = ep->is_tx_open ? 0 : chempi_scivia_connect_open(ep);
    if (rc == 0)
        rc = chempi_scivia_connect_via(ep);
    if (rc < 0)
        return chempi_err_set(err, rc, "rank %u is not connected",
                              (unsigned)base->proc);
    if (!ep->tx_vi || ep->is_via_refused)
        return chempi_err_set(err, -ENOTSUP, "no RDMA to rank %u",
                              (unsigned)base->proc);
    target = rma ? chempi_sys->calloc(1, sizeof(*target)) : NULL;
    if (!target)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    target->ep = ep;
    target->key = key;
    chempi_list_init(&target->active);
    chempi_list_append(&rma->targets, &target->link);
    *out = target;
    return 0;
}

static void rma_detach(struct chempi_rma_target *target)
{
    if (!target)
        return;
    chempi_list_remove(&target->link);
    free(target);
}

/* --- operations --- */

static void finish(struct chempi_rma *rma, int status)
{
    chempi_list_remove(&rma->link);
    rma->done(rma, status);
}

/* O2 */
static void finish_flushes(struct chempi_rma_target *target)
{
    while (!chempi_list_is_empty(&target->active)) {
        struct chempi_rma *front = CHEMPI_CONTAINER_OF(
            chempi_list_first(&target->active), struct chempi_rma, link);

        if (front->priv[PRIV_KIND] != KIND_FLUSH)
            return;
        finish(front, 0);
    }
}

/* Hand the next piece to the card. -EAGAIN: no descriptor; -ENOSPC: the local
 * memory cannot be registered now. */
static int post_piece(struct chempi_rma *rma)
{
    const struct chempi_rma_target *target = rma->target;
    struct scivia_dev *dev = scivia_dev_of(target->ep);
    uint64_t at = rma->priv[PRIV_POSTED];
    uint64_t left = rma->len - at;
    size_t len = left < SCIVIA_WRITE_MAX ? (size_t)left : SCIVIA_WRITE_MAX;
    char *local = (char *)rma->local + at;
    struct post *post;

    /* A connection that broke is being replaced. */
    if (!target->ep->tx_vi || chempi_list_is_empty(&dev->rma->free))
        return -EAGAIN;
    post = CHEMPI_CONTAINER_OF(chempi_list_first(&dev->rma->free), struct post,
                               link);
    post->region = chempi_scivia_memory_get(dev, local, len, 0);
    if (!post->region)
        return -ENOSPC;
    post->rma = rma;
    post->descriptor = (struct chempi_via_descriptor){
        .op = rma->priv[PRIV_KIND] == KIND_PUT ? CHEMPI_VIA_RDMA_WRITE
                                               : CHEMPI_VIA_RDMA_READ,
        .segment_count = 1,
        .segments = {{.addr = local,
                      .handle = post->region->handle,
                      .len = (uint32_t)len}},
        .remote_addr = target->key.addr + rma->offset + at,
        .remote_handle = target->key.handle,
    };
    chempi_list_remove(&post->link);
    rma->priv[PRIV_POSTED] += len;
    dev->has_work = true; /* the card may have finished already */
    if (chempi_via_post_send(target->ep->tx_vi, &post->descriptor) == 0)
        return 0;
    post->rma = NULL;
    chempi_scivia_memory_put(dev, post->region);
    chempi_list_append(&dev->rma->free, &post->link);
    return -ECONNRESET;
}

static int begin(struct chempi_rma *rma, enum kind kind, uint32_t access)
{
    struct chempi_rma_target *target = rma->target;
    int rc;

    if (target->ep->is_broken || target->ep->is_gone)
        return -ECONNRESET;
    if (rma->offset > target->key.len ||
        rma->len > target->key.len - rma->offset)
        return -ERANGE;
    if ((target->key.access & access) != access)
        return -EACCES;
    if (rma->len == 0)
        return CHEMPI_DONE;
    rma->priv[PRIV_KIND] = kind;
    rma->priv[PRIV_DONE] = 0;
    rma->priv[PRIV_POSTED] = 0;
    rc = post_piece(rma);
    if (rc < 0)
        return rc;
    chempi_list_append(&target->active, &rma->link);
    return CHEMPI_PENDING;
}

static int rma_put(struct chempi_rma *rma)
{
    return begin(rma, KIND_PUT, CHEMPI_RMA_PUT);
}

static int rma_get(struct chempi_rma *rma)
{
    return begin(rma, KIND_GET, CHEMPI_RMA_GET);
}

static int rma_flush(struct chempi_rma *rma)
{
    struct chempi_rma_target *target = rma->target;

    if (target->ep->is_broken || target->ep->is_gone)
        return -ECONNRESET;
    if (chempi_list_is_empty(&target->active))
        return CHEMPI_DONE;
    rma->priv[PRIV_KIND] = KIND_FLUSH;
    chempi_list_append(&target->active, &rma->link);
    return CHEMPI_PENDING;
}

/* --- what the card has finished --- */

bool chempi_scivia_rma_is_post(const struct scivia_dev *dev,
                               const struct chempi_via_descriptor *d)
{
    uintptr_t first = dev->rma ? (uintptr_t)dev->rma->posts : 0;
    uintptr_t at = (uintptr_t)d;

    return first && at >= first && at < first + sizeof(dev->rma->posts);
}

/* A piece is through; the descriptor that it had is free for the next. */
static void go_on(struct chempi_rma *rma, uint64_t len)
{
    int rc = 0;

    rma->priv[PRIV_DONE] += len;
    if (rma->priv[PRIV_DONE] < rma->len) {
        rc = post_piece(rma);
        if (rc == 0)
            return;
    }
    finish(rma, rc);
}

void chempi_scivia_rma_finish(struct scivia_dev *dev,
                              struct chempi_via_descriptor *d)
{
    struct post *post = CHEMPI_CONTAINER_OF(d, struct post, descriptor);
    struct chempi_rma *rma = post->rma;
    struct chempi_rma_target *target;

    chempi_scivia_memory_put(dev, post->region);
    post->rma = NULL;
    chempi_list_prepend(&dev->rma->free, &post->link);
    if (!rma)
        return; /* it has failed with its connection */
    target = rma->target;
    if (d->status < 0) {
        chempi_scivia_endpoint_break(target->ep, -ECONNRESET,
                                     "its VIA connection broke");
        finish(rma, -ECONNRESET);
    } else {
        go_on(rma, d->length);
    }
    finish_flushes(target);
}

void chempi_scivia_rma_fail(struct scivia_ep *ep, int status)
{
    struct scivia_rma *rma = scivia_dev_of(ep)->rma;

    if (!rma)
        return;
    for (uint32_t i = 0; i < POSTS; i++) {
        if (rma->posts[i].rma && rma->posts[i].rma->target->ep == ep)
            rma->posts[i].rma = NULL; /* O3 */
    }
    CHEMPI_LIST_FOR_SAFE (node, &rma->targets) {
        struct chempi_rma_target *target =
            CHEMPI_CONTAINER_OF(node, struct chempi_rma_target, link);

        while (target->ep == ep && !chempi_list_is_empty(&target->active))
            finish(CHEMPI_CONTAINER_OF(chempi_list_first(&target->active),
                                       struct chempi_rma, link),
                   status);
    }
}

const struct chempi_rma_ops chempi_scivia_rma_ops = {
    .expose = rma_expose,
    .withdraw = rma_withdraw,
    .attach = rma_attach,
    .detach = rma_detach,
    .put = rma_put,
    .get = rma_get,
    .flush = rma_flush,
};
