/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An emulated SCI/VIA adapter, usable without MPI: sci.h has its shared-memory
 * half in SISCI's terms, via.h its descriptor half in VIPL's. Processes of one
 * host, each with an adapter of its own, stand for the nodes of a cluster.
 * What a card and its driver would enforce, the adapter enforces; what they
 * may do wrong, it does on request (faults.h); how long they take, it
 * imposes (personality.h). chempi-adapter(3) is the manual.
 *
 * Model. An adapter reaches another by the other's address, which gives a
 * link. A link serves the side that asked for it: it connects to segments and
 * interrupts and VIs of the other. For the opposite direction the other side
 * makes a link of its own. Nothing here blocks, except the functions whose
 * names end in _wait and the waiting that a personality asks for; what needs
 * the other side's driver is begun, and its state asked for later.
 *
 * The driver's work is done by chempi_adapter_service(), which the owner calls
 * when the adapter's descriptor is readable. There is no thread and no timer:
 * an adapter to which nothing happens takes no time.
 *
 * When a process ends, in whatever way, the kernel closes its sockets and
 * frees its memory files: its links go down, and everything that it exported
 * becomes invalid. Nothing has a name in a file system.
 *
 * Threads: an adapter and everything made from it are used by one thread at a
 * time. Objects are destroyed by closing the adapter at the latest.
 *
 * Errors are 0 or -errno; the words of the last one are in
 * chempi_adapter_words().
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_ADAPTER_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "libchempi/devices/scivia/adapter/memory/lmm.h"
#include "libchempi/devices/scivia/adapter/model/faults.h"
#include "libchempi/devices/scivia/adapter/model/personality.h"

#define CHEMPI_ADAPTER_ADDRESS_BYTES 56

struct chempi_adapter;
struct chempi_adapter_link;
struct chempi_via_vi;

/* Upcalls, only from chempi_adapter_service() and the _wait functions; each
 * may be NULL. A callback may use the adapter, but not close it. */
struct chempi_adapter_events {
    /* Another adapter has reached this one and lives at `address`
     * (CHEMPI_ADAPTER_ADDRESS_BYTES); `user` is its params->user. False: memory
     * is missing; the link does not come up, and may be asked for again. */
    bool (*reached)(void *arg, uint32_t user, const void *address);
    /* A link that this side asked for can be used. */
    void (*up)(void *arg, struct chempi_adapter_link *link);
    /* It cannot any more: is_clean when the other side closed its adapter,
     * otherwise status says why (-ECONNRESET: the process ended;
     * -ECONNREFUSED: before the link was up, or it has no memory for it;
     * -EPROTO: it broke the rules). */
    void (*down)(void *arg, struct chempi_adapter_link *link, bool is_clean,
                 int status);
    /* The adapter that had reached this one as `user` is gone, likewise. */
    void (*left)(void *arg, uint32_t user, bool is_clean);
    /* VIPL's error callback: a connection broke or a descriptor failed. */
    void (*error)(void *arg, struct chempi_via_vi *vi, int status,
                  const char *text);
};

struct chempi_adapter_params {
    uint32_t user; /* told to the adapters that this one reaches */
    const struct chempi_personality *personality; /* copied; NULL: both
                                                     halves, free clock */
    bool without_sci; /* a card with the VIA half only, whatever else */
    struct chempi_faults faults;
    uint64_t lock_budget_bytes; /* memory that may be registered */
    bool is_registered;         /* the process is, with membarrier(2) for
                                   MEMBARRIER_CMD_GLOBAL_EXPEDITED: two such adapters
                                   order arming and interrupting by that system call of
                                   the one who arms, else both fence */
    const struct chempi_adapter_events *events; /* NULL: none */
    void *arg;
};

/* What the card can do (VIPL's NIC attributes). */
struct chempi_adapter_attributes {
    char name[CHEMPI_PERSONALITY_NAME_MAX];
    bool has_sci;
    bool has_via;
    uint32_t region_max;     /* registered regions */
    uint32_t page_max;       /* their pages of 4 KiB */
    uint64_t transfer_max;   /* bytes of one descriptor */
    uint32_t segment_max;    /* data segments of one descriptor */
    uint32_t descriptor_max; /* receive descriptors posted to one VI */
    uint32_t interrupt_max;  /* SCI interrupts */
    bool loses_interrupts;   /* those it triggers may not arrive */
};

/* Counted since the adapter was opened. */
struct chempi_adapter_counters {
    uint64_t packets;       /* stored remotely: full and partial ones */
    uint64_t bytes_stored;  /* by the processor, to remote segments */
    uint64_t bytes_read;    /* by the processor, from remote segments */
    uint64_t bytes_moved;   /* by descriptors and DMA, once */
    uint64_t bytes_bounced; /* of these twice, as attaching was refused */
    uint64_t packets_lost;  /* the card's error counter */
    uint64_t interrupts;    /* that woke somebody */
    uint64_t dropped;       /* sends without a receive descriptor */
    uint64_t refused;       /* accesses against the protection */
    uint64_t registrations;
    uint64_t deregistrations;
};

/*
 * Open an adapter. 0; -EINVAL (a rate of faults above its limit);
 * -ENOMEM, -EMFILE, -ENOSPC and what else the kernel says, with words in *err.
 */
int chempi_adapter_open(const struct chempi_adapter_params *params,
                        struct chempi_adapter **out, struct chempi_err *err);

/* Close everything; others see a clean end. No upcall follows. Accepts NULL. */
void chempi_adapter_close(struct chempi_adapter *adapter);

/* Words for the last error of any function on this adapter. */
const struct chempi_err *
chempi_adapter_words(const struct chempi_adapter *adapter);

/* The address by which others reach this adapter; also proof that whoever
 * has it was given it, so hand it to friends only. */
void chempi_adapter_address(const struct chempi_adapter *adapter,
                            unsigned char out[CHEMPI_ADAPTER_ADDRESS_BYTES]);

void chempi_adapter_attributes(const struct chempi_adapter *adapter,
                               struct chempi_adapter_attributes *out);
const struct chempi_adapter_counters *
chempi_adapter_counters(const struct chempi_adapter *adapter);
struct chempi_lmm *chempi_adapter_lmm(struct chempi_adapter *adapter);

/* Readable when there is something to serve. For poll and epoll, to which it
 * may be added; never read from it. */
int chempi_adapter_fd(const struct chempi_adapter *adapter);

/* Do what there is to do; returns the number of things done. */
int chempi_adapter_service(struct chempi_adapter *adapter);

/* Is something under way that needs chempi_adapter_service() although the
 * descriptor may not be readable (a descriptor that completes late)? */
bool chempi_adapter_is_busy(const struct chempi_adapter *adapter);

/* Has it descriptors that are not finished? It may become busy at any call
 * that looks for completions, when the other side has done its part. */
bool chempi_adapter_has_posts(const struct chempi_adapter *adapter);

/*
 * Copy len bytes within this process's memory. It is the processor's work and
 * not the card's; a personality that describes the machine around its card,
 * too, makes it take as long as there. What goes on where the last copy ended
 * is of the same copy, as far as the cache is concerned.
 */
void chempi_adapter_host_copy(struct chempi_adapter *adapter, void *dst,
                              const void *src, size_t len);

/*
 * Ask to be interrupted: by the next remote interrupt and by the next
 * completion of a VIA operation that another adapter began, the descriptor
 * becomes readable, and nothing is armed any more. Includes a full fence:
 * whoever arms and then finds nothing in memory may sleep on the descriptor.
 */
void chempi_adapter_arm(struct chempi_adapter *adapter);
/* Take that back. */
void chempi_adapter_disarm(struct chempi_adapter *adapter);
/* The fence alone, for other words that whoever interrupts this adapter looks
 * at after chempi_sci_interrupt_call(). */
void chempi_adapter_order(const struct chempi_adapter *adapter);

/*
 * Begin a link to the adapter at `address`. 0; -EINVAL (no address);
 * -EHOSTUNREACH (of another host); -EAGAIN (its queue is full: try again);
 * -ECONNREFUSED (nobody there); -ENOMEM, -EMFILE. `tag` is for the caller.
 */
int chempi_adapter_link_open(struct chempi_adapter *adapter,
                             const void *address, size_t len, void *tag,
                             struct chempi_adapter_link **out);
void *chempi_adapter_link_tag(const struct chempi_adapter_link *link);
/* 0: up; -EINPROGRESS; what events->down was told. */
int chempi_adapter_link_state(const struct chempi_adapter_link *link);
/* Free a link of which events->down has told; otherwise it stays until the
 * adapter is closed. Nothing made from it may be used any more: remotes are
 * disconnected before, VIs may stay. */
void chempi_adapter_link_close(struct chempi_adapter_link *link);

#endif
