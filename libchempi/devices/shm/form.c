/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where non-contiguous payload lies, told to the process that copies it: a row
 * of words, the base address and the encoded layout of all elements
 * (layout_order.h), in memory of the process whose payload it is. The peer
 * reads it, then walks the runs as its owner would.
 *
 *   F1  the sender's row stands until its transfer ends, which is not before
 *       the receiver has read it
 *   F2  the receiver's row is read only by a sender that has claimed a chunk:
 *       the receiver then waits for that chunk, and its row stands
 *   F3  nothing in a row is trusted: what does not decode, or is shorter than
 *       the payload, is not used; addresses are the kernel's to check
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"
#include "libchempi/services/layout/layout_order.h"

/*
 * The kernel looks up the pages of each run. 1 MiB in runs of 4 KiB took 102 us
 * where both sides copied, in runs of 2 KiB 135, and through the ring 125.
 */
#define RUN_MIN_BYTES 4096u
#define WORDS_MAX 65535u /* shm_rts has 16 bits */

struct shm_form {
    struct chempi_layout layout;
    struct chempi_segment iter; /* never dereferenced: the peer's addresses */
};

/* Base and layout in words; NULL: too many, or out of memory. */
static uint64_t *describe(const struct chempi_layout_node *root, char *base,
                          uint32_t *form_len)
{
    uint64_t count = 1 + chempi_layout_encode(root, NULL, 0);
    uint64_t *words = NULL;

    if (count <= WORDS_MAX)
        words = chempi_sys->malloc(count * sizeof(*words));
    if (!words)
        return NULL;
    words[0] = (uint64_t)(uintptr_t)base;
    (void)chempi_layout_encode(root, words + 1, count - 1);
    *form_len = (uint32_t)count;
    return words;
}

uint64_t chempi_shm_form_tell(struct shm_xfer *xfer,
                              const struct chempi_segment *iter,
                              uint32_t *form_len)
{
    const struct chempi_layout_node *root;

    if (chempi_segment_mean_run(iter) < RUN_MIN_BYTES)
        return 0;
    root = chempi_segment_layout(iter);
    if (!root)
        return 0;
    xfer->own_form = describe(root, iter->base, form_len);
    chempi_layout_release(root);
    return (uint64_t)(uintptr_t)xfer->own_form;
}

static int take(struct shm_xfer *xfer, const uint64_t *words)
{
    const struct chempi_layout_node *root =
        chempi_layout_decode(words + 1, xfer->form_len - 1);
    struct shm_form *form;

    if (!root || root->size < xfer->base.want) {
        if (root)
            chempi_layout_release(root);
        return -EBADMSG;
    }
    form = chempi_sys->malloc(sizeof(*form));
    if (!form) {
        chempi_layout_release(root);
        return -ENOMEM;
    }
    form->layout = (struct chempi_layout){.size = root->size, .root = root};
    chempi_segment_init(&form->iter, (void *)(uintptr_t)words[0], 1,
                        &form->layout);
    xfer->peer_form = form;
    return 0;
}

int chempi_shm_form_learn(struct shm_xfer *xfer)
{
    uint64_t len = xfer->form_len * sizeof(uint64_t);
    uint64_t *words;
    uint64_t got;
    int rc;

    if (CHEMPI_LIKELY(len == 0) || xfer->peer_form)
        return 0;
    words = chempi_sys->malloc(len);
    if (!words)
        return -ENOMEM;
    rc = chempi_cma_read(shm_ep_of(xfer)->cma_pid, words, NULL, xfer->addr, len,
                         &got);
    if (rc == 0)
        rc = take(xfer, words);
    free(words);
    return rc;
}

struct chempi_cma_side chempi_shm_form_side(const struct shm_xfer *xfer,
                                            uint64_t at)
{
    if (!xfer->peer_form)
        return (struct chempi_cma_side){
            .buf = (char *)(uintptr_t)(xfer->addr + at)};
    chempi_segment_seek(&xfer->peer_form->iter, at);
    return (struct chempi_cma_side){.iter = &xfer->peer_form->iter};
}

void chempi_shm_form_free(struct shm_xfer *xfer)
{
    free(xfer->own_form);
    if (xfer->peer_form) {
        chempi_layout_release(xfer->peer_form->layout.root);
        free(xfer->peer_form);
    }
}
