/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SCI half of an adapter, in SISCI's terms.
 *
 * A process creates a segment, prepares it and makes it available: it is
 * exported. Another connects to it over a link and maps it. Remote stores go
 * through chempi_sci_copy() within a sequence: start, copy, check. Stores
 * leave as packets, 64 bytes for a whole aligned line, 16 bytes otherwise.
 *
 *   - a whole aligned line arrives as one: its last 8 bytes become visible
 *     after all others
 *   - packets are not ordered among each other, not even to one address, until
 *     a barrier or a check has waited for all of them
 *   - a check that says "again" means that some packet since the start may or
 *     may not have arrived: store the same again
 *
 * All functions return 0 or -errno with words in chempi_adapter_words(), and
 * -ENOTSUP on an adapter without an SCI half.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_SCI_SCI_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_SCI_SCI_H

#include "libchempi/devices/scivia/adapter/adapter.h"

#define CHEMPI_SCI_SEGMENT_BYTES_MAX (UINT64_C(1) << 32)
#define CHEMPI_SCI_INTERRUPT_MAX 32u
#define CHEMPI_SCI_DMA_ALIGN 8u /* bytes: addresses, offsets, lengths */

struct chempi_sci_segment; /* local */
struct chempi_sci_remote;  /* connected */
struct chempi_sci_dma;

/* --- exporting --- */

/*
 * A segment of len bytes (rounded up to pages), zero-filled. `id` is unique on
 * the adapter. `tag` is its protection tag: only who knows it can connect.
 * -EINVAL (len 0 or beyond the maximum); -EEXIST; -ENOMEM; -EMFILE.
 */
int chempi_sci_segment_create(struct chempi_adapter *adapter, uint32_t id,
                              uint64_t len, uint32_t tag,
                              struct chempi_sci_segment **out);
/* Reserve its memory, for the card to reach. -ENOSPC, -ENOMEM. */
int chempi_sci_segment_prepare(struct chempi_sci_segment *segment);
/* Export: from now on others can connect. -EPERM: not prepared. */
int chempi_sci_segment_set_available(struct chempi_sci_segment *segment);
/* No more connections; those that there are stay. */
void chempi_sci_segment_set_unavailable(struct chempi_sci_segment *segment);
/* Invalidate it for all who are connected, and free it. Accepts NULL. */
void chempi_sci_segment_remove(struct chempi_sci_segment *segment);
/* Where it is mapped here. */
void *chempi_sci_segment_memory(const struct chempi_sci_segment *segment);
uint64_t chempi_sci_segment_len(const struct chempi_sci_segment *segment);

/* --- importing --- */

/* Begin to connect. -ENOTCONN: the link is not up; -ENOMEM. */
int chempi_sci_connect(struct chempi_adapter_link *link, uint32_t id,
                       uint32_t tag, struct chempi_sci_remote **out);
/*
 * 0: connected and mapped; -EINPROGRESS; -ENOENT (not exported there); -EACCES
 * (another tag); -ENOMEM; -ENOTCONN (owner or segment are gone).
 */
int chempi_sci_state(const struct chempi_sci_remote *remote);
uint64_t chempi_sci_len(const struct chempi_sci_remote *remote);
/* Unmap and disconnect. Accepts NULL. */
void chempi_sci_disconnect(struct chempi_sci_remote *remote);

/* --- remote stores and loads --- */

/* Begin a sequence: packets from now on are checked by the next check.
 * -ENOTCONN. */
int chempi_sci_sequence_start(struct chempi_sci_remote *remote);
/*
 * Store len bytes at offset. -ERANGE (beyond the segment; nothing is stored);
 * -ENOTCONN. Success does not mean arrival.
 */
int chempi_sci_copy(struct chempi_sci_remote *remote, uint64_t offset,
                    const void *src, size_t len);
/*
 * As chempi_sci_copy, which stores as much at once as the bus takes, but as a
 * plain memcpy() through the mapping would: word by word. The same packets
 * arrive, at what a personality says that narrow stores cost; with a free
 * clock there is no difference.
 */
int chempi_sci_copy_narrow(struct chempi_sci_remote *remote, uint64_t offset,
                           const void *src, size_t len);
/* A hint: stores to [offset, offset + len) will follow. Changes nothing. */
void chempi_sci_expect(const struct chempi_sci_remote *remote, uint64_t offset,
                       size_t len);
/* Wait until all packets have arrived or been lost: packets of later stores
 * come after them. Includes a full fence. */
void chempi_sci_store_barrier(struct chempi_sci_remote *remote);
/* Wait as a barrier does, but without its fence: later loads may come before
 * the stores. Then 0: all packets since the start have arrived; -EAGAIN: do it
 * again; -ENOTCONN. */
int chempi_sci_sequence_check(struct chempi_sci_remote *remote);
/* start, copy and check until it is done, at most `tries` times. Only the last
 * packet is ordered after the others. -EIO: errors every time; -ERANGE;
 * -ENOTCONN. */
int chempi_sci_copy_surely(struct chempi_sci_remote *remote, uint64_t offset,
                           const void *src, size_t len, unsigned tries);
/* Load len bytes: dear. -ERANGE, -ENOTCONN. */
int chempi_sci_read(struct chempi_sci_remote *remote, uint64_t offset,
                    void *dst, size_t len);

/* --- DMA --- */

enum chempi_sci_dma_direction { CHEMPI_SCI_DMA_WRITE, CHEMPI_SCI_DMA_READ };

/* A queue of at most `depth` transfers. -EINVAL (0, or above 1024); -ENOMEM. */
int chempi_sci_dma_create(struct chempi_adapter *adapter, uint32_t depth,
                          struct chempi_sci_dma **out);
void chempi_sci_dma_remove(struct chempi_sci_dma *dma);
/* -EBUSY (started, not yet done); -ENOSPC (full); -EINVAL (not aligned);
 * -ERANGE; -ENOTCONN. Local memory stays untouched until done. */
int chempi_sci_dma_enqueue(struct chempi_sci_dma *dma,
                           struct chempi_sci_remote *remote, uint64_t offset,
                           void *local, size_t len,
                           enum chempi_sci_dma_direction direction);
/* Begin; the state tells when it is done. -EBUSY, -ENOENT (empty). */
int chempi_sci_dma_start(struct chempi_sci_dma *dma);
/* 0: done, the queue is empty and can be used again; -EINPROGRESS; -EIO (some
 * packet was lost: do all again); -ENOTCONN; -ENOENT: never started. */
int chempi_sci_dma_state(struct chempi_sci_dma *dma);

/* --- remote interrupts --- */

/* Make interrupt `number` of this adapter. -EINVAL, -EEXIST. */
int chempi_sci_interrupt_create(struct chempi_adapter *adapter,
                                uint32_t number);
void chempi_sci_interrupt_remove(struct chempi_adapter *adapter,
                                 uint32_t number);
/* How often it was triggered since the last call. */
uint32_t chempi_sci_interrupt_take(struct chempi_adapter *adapter,
                                   uint32_t number);
/* Wait for it, at most timeout_ms (-1: no limit). Blocks. 0, or -ETIMEDOUT. */
int chempi_sci_interrupt_wait(struct chempi_adapter *adapter, uint32_t number,
                              int timeout_ms);
/* Trigger that of the other side. It may get lost. Includes a full fence
 * before. -EINVAL, -ENOENT (not made there), -ENOTCONN. */
int chempi_sci_interrupt_trigger(struct chempi_adapter_link *link,
                                 uint32_t number);
/* The same, but of an owner that is not armed nothing is asked, and it is not
 * counted. Orders like a full fence against an owner that has armed or called
 * chempi_adapter_order(). */
int chempi_sci_interrupt_call(struct chempi_adapter_link *link,
                              uint32_t number);

#endif
