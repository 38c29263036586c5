/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System messages: sent without a matching receive; a negative tag names the
 * handler, which the receiving side runs from progress, under the lane lock.
 * They take the same numbered way as messages do and are small.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_SYSMSG_H
#define CHEMPI_LIBCHEMPI_DIDL_SYSMSG_H

#include <stddef.h>
#include <stdint.h>

struct chempi_peer;

#define CHEMPI_SYSMSG_MAX 64 /* bytes of payload */

enum chempi_sysmsg_tag {
    CHEMPI_SYSMSG_MATCHED = -1,       /* u32 serial: a sync send is matched */
    CHEMPI_SYSMSG_CREDIT = -2,        /* nothing: the envelope says it */
    CHEMPI_SYSMSG_CANCEL = -3,        /* u32 serial: take it back */
    CHEMPI_SYSMSG_CANCEL_ANSWER = -4, /* u32 serial, u32 1: was taken back */
    CHEMPI_SYSMSG_LAST = -4
};

/* Send, or queue behind what waits for room. 0 or -ENOMEM or the device's
 * error. Under the lane lock. */
int chempi_sysmsg_send(struct chempi_peer *peer, enum chempi_sysmsg_tag tag,
                       const void *data, size_t len);

/* The same for what the peer waits for: without memory the job ends with a
 * sentence instead of waiting for ever. */
void chempi_sysmsg_answer(struct chempi_peer *peer, enum chempi_sysmsg_tag tag,
                          const void *data, size_t len);

/* Run the handler of an arrived one; a malformed one is ignored with a log
 * record. */
void chempi_sysmsg_arrived(struct chempi_peer *peer, int32_t tag,
                           const void *data, uint64_t len);

#endif
