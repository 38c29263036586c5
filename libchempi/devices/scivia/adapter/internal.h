/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the files of the adapter: its private state, what lies in memory
 * shared with others, and the words that two adapters exchange.
 *
 *   A1  whatever another process can write (pages, words) is copied once and
 *       checked before it is used
 *   -   a link is UP only between HELLO's answer and the first sign that the
 *       other side is gone; nothing becomes UP again
 *   -   upcalls are made from chempi_adapter_service() only
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "common/base/compiler.h"
#include "common/base/fault.h"
#include "common/containers/list.h"
#include "libchempi/devices/scivia/adapter/adapter.h"
#include "libchempi/devices/scivia/adapter/memory/tpt.h"
#include "libchempi/devices/scivia/adapter/model/timing_model.h"
#include "libchempi/devices/scivia/adapter/sci/sci.h"
#include "libchempi/devices/scivia/adapter/via/via.h"
#include "libchempi/services/shortage.h"

#define ADAPTER_MAGIC UINT32_C(0x53434956) /* "SCIV" */
#define ADAPTER_VERSION 3u
#define ADAPTER_COOKIE_BYTES 16u
#define ADAPTER_FDS_MAX 2u
#define ADAPTER_GUEST_MAX 256u /* sockets without HELLO */
#define ADAPTER_OUT_MAX 4096u  /* words waiting for one socket */
#define ADAPTER_HELD_MAX 8u    /* packets held back: the stream buffers */
#define ADAPTER_LATE_MAX 8u    /* services that a descriptor is late */
#define ADAPTER_BOUNCE_BYTES 65536u
#define ADAPTER_SHARE_MIN 65536u /* bytes that two engines move together */

/* --- in shared memory --- */

/* One per adapter, mapped by all who reach it or are reached by it. */
struct adapter_page {
    uint32_t magic;
    uint32_t version;
    int32_t pid;
    uint32_t region_max;
    uint64_t probe_addr;
    uint32_t probe_value;
    uint32_t interrupts_made; /* bits */
    uint32_t has_barrier;     /* 1: who is registered need not fence */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t armed;
    _Atomic uint64_t notified_ns; /* when it was waked last; monotonic clock */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t completions;
    _Atomic uint32_t jobs; /* offered to any VI of this adapter; share.c */
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t
        interrupts[CHEMPI_SCI_INTERRUPT_MAX];
    _Alignas(CHEMPI_CACHE_LINE) struct chempi_tpt_entry table[];
};

struct vi_piece {
    uint64_t addr;
    uint32_t handle;
    uint32_t len;
};

/* A receive descriptor as the other side sees it. */
struct vi_slot {
    uint32_t count;
    uint32_t reserved;
    struct vi_piece pieces[CHEMPI_VIA_SEGMENT_MAX];
};

/* How it ended; written by the other side. */
struct vi_result {
    uint64_t len;
    int32_t status;
    uint32_t immediate;
    uint32_t has_immediate;
    uint32_t reserved;
};

/* A large RDMA write by the peer, for both sides to move; see share.c. */
struct vi_job {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t number; /* odd: open */
    uint32_t from_handle;
    uint64_t from;
    uint64_t to;
    uint64_t len;
    uint32_t to_handle;
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t claim; /* number, chunk */
    _Atomic uint32_t helped; /* chunks that the owner of the page moved */
    _Atomic uint32_t failed; /* one that it could not, plus one */
};

/*
 * One per VI: its receive queue, consumed by the peer VI.
 *   -   posted - done <= CHEMPI_VIA_DEPTH; free-running
 *   -   the owner writes posted and slots, the peer done and results
 *   -   is_broken is set by either side and never cleared
 */
struct vi_page {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t posted;
    uint32_t ptag;
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t done;
    _Atomic uint32_t is_broken;
    _Alignas(CHEMPI_CACHE_LINE) struct vi_slot slots[CHEMPI_VIA_DEPTH];
    struct vi_result results[CHEMPI_VIA_DEPTH];
    struct vi_job job;
};

/* --- words on a socket --- */

enum word_type {
    WORD_HELLO = 1,   /* dialler: cookie, address; fds: page, event */
    WORD_WELCOME,     /* fds: page, event */
    WORD_SEG_CONNECT, /* id, arg: tag, token: of the remote */
    WORD_SEG_ANSWER,  /* token, status, a: len; fd: memory */
    WORD_SEG_LEAVE,   /* token */
    WORD_SEG_GONE,    /* token */
    WORD_VI_REQUEST,  /* token: VI, a: discriminator, id: reliability,
                         b: transfer_max; fd: page */
    WORD_VI_ANSWER,   /* token: asker's VI, id: ours, status; fd: page */
    WORD_VI_BREAK,    /* token: receiver's VI, status */
    WORD_BOUNCE,      /* token: receiver's VI, see bounce.c */
    WORD_BOUNCED,     /* token: sender's VI, status */
    WORD_BYE
};

struct word {
    uint32_t type;
    uint32_t token;
    uint32_t id;
    uint32_t arg;
    int32_t status;
    uint32_t reserved;
    uint64_t a;
    uint64_t b;
    unsigned char bytes[CHEMPI_ADAPTER_ADDRESS_BYTES];
};

struct word_out {
    struct chempi_list link;
    struct word word;
    int fds[ADAPTER_FDS_MAX]; /* own duplicates, -1: none */
};

/* --- in this process --- */

enum source_kind { SOURCE_LISTEN, SOURCE_EVENT, SOURCE_LINK };

/* What epoll hands back. */
struct source {
    enum source_kind kind;
};

enum link_role { LINK_DIALLED, LINK_GUEST, LINK_SERVED };

struct chempi_adapter_link {
    struct source source; /* first */
    struct chempi_list link;
    struct chempi_adapter *adapter;
    enum link_role role;
    int fd;
    int status;     /* 0: up; -EINPROGRESS; else down */
    bool wants_out; /* EPOLLOUT is asked for */
    uint32_t user;  /* of the other side, when served */
    void *tag;
    struct adapter_page *page; /* of the other side; NULL until greeted */
    size_t page_len;
    uint32_t region_max;
    int event_fd;
    pid_t pid;
    bool is_cma_refused;
    bool is_ordered; /* by the other side's barrier: no fence is needed */
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct chempi_list out; /* struct word_out */
    uint32_t out_count;
    unsigned char *bounce; /* our area for this link, NULL: none yet */
    int bounce_fd;
    struct chempi_via_vi *bouncing; /* whose descriptor is in it */
    unsigned char *peer_bounce;     /* the other side's area */
};

struct chempi_sci_segment {
    struct chempi_list link;
    struct chempi_adapter *adapter;
    uint32_t id;
    uint32_t tag;
    uint64_t len;
    int fd;
    void *memory;
    bool is_prepared;
    bool is_available;
    struct chempi_list users; /* struct segment_user */
};

/* A remote somewhere that is connected to a segment of ours. */
struct segment_user {
    struct chempi_list link;
    struct chempi_adapter_link *at;
    uint32_t token;
};

struct held_packet {
    uint64_t offset;
    uint32_t len;
    unsigned char bytes[64];
};

struct chempi_sci_remote {
    struct chempi_list link;
    struct chempi_adapter_link *at;
    uint32_t token;
    int status;
    unsigned char *memory;
    uint64_t len;
    bool has_error; /* a packet was lost since the sequence began */
    uint32_t held_count;
    struct held_packet held[ADAPTER_HELD_MAX];
};

/* The active side's view of its job. */
struct vi_share {
    bool is_open;
    bool is_claimed; /* all chunks are somebody's */
    bool is_waiting; /* counted in adapter->share_waits */
    uint32_t number;
    uint32_t mine;
    uint32_t theirs;
    int status;
};

struct chempi_via_vi {
    struct chempi_list link;
    struct chempi_adapter *adapter;
    struct chempi_via_attributes attributes;
    enum chempi_via_state state;
    int status;
    uint32_t token;
    uint32_t peer_token;
    struct chempi_adapter_link *at;
    uint64_t discriminator;
    bool is_waiting_peer; /* peer to peer, the other side asks */
    int page_fd;          /* until connected, then -1 */
    struct vi_page *page;
    struct vi_page *peer;        /* the other VI's */
    uint32_t taken;              /* the peer's slots used */
    struct chempi_list sends;    /* descriptors not yet executed */
    struct chempi_list sent;     /* executed, not yet taken */
    struct chempi_list receives; /* posted */
    uint32_t received;           /* results taken from page */
    bool is_told;                /* the error callback was made */
    uint64_t moved;      /* bytes of the head descriptor, when bouncing */
    bool is_bouncing;    /* the other side has the next word */
    int bounce_status;   /* what it said */
    uint32_t bounce_len; /* bytes of the piece under way */
    struct chempi_list active_link; /* in adapter->active */
    bool is_running;
    struct vi_share share;
    uint32_t job_seen;
};

struct chempi_via_cq {
    struct chempi_adapter *adapter;
    uint32_t seen;  /* adapter page's completions */
    bool has_local; /* look again, whatever `seen` says */
    uint32_t users;
};

struct chempi_via_request {
    struct chempi_list link;
    struct chempi_adapter_link *at; /* NULL: it has gone down; whoever looks at
                               the request may be about to answer it */
    uint32_t user;                  /* of the adapter that asks */
    struct word word;
    int fd;
};

/* What a link tells the parts above it. */
struct link_events {
    /* A word from an adapter that is known; fd (-1: none) is taken over.
     * False: there is no such word, and fd stays the caller's. */
    bool (*hear)(struct chempi_adapter_link *link, const struct word *word,
                 int fd);
    /* The link has just gone down. */
    void (*down)(struct chempi_adapter_link *link);
};

struct chempi_adapter {
    const struct link_events *link_events;
    struct chempi_adapter_events events;
    void *arg;
    uint32_t user;
    struct chempi_personality personality;
    bool has_personality;
    bool has_sci;
    bool has_via;
    struct chempi_faults faults;
    bool is_registered; /* as params say */
    bool has_barrier;   /* as the page says, which others can write (A1) */
    bool is_wicked;     /* some rate of packets is not 0 */
    bool is_plain;      /* none is, and the clock is free */
    struct chempi_dice dice;
    struct chempi_timing_model pace;
    struct chempi_adapter_counters counters;
    struct chempi_err err;
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    int epoll_fd;
    int listen_fd;
    int event_fd;
    int page_fd;
    int reserve_fd; /* given up to answer when descriptors run out */
    struct chempi_shortage shortage; /* of memory to accept */
    struct source listen_source;
    struct source event_source;
    struct adapter_page *page;
    size_t page_len;
    bool is_armed;
    unsigned char probe_byte;
    struct chempi_lmm *lmm;
    struct chempi_tpt tpt;
    uint32_t last_token;
    uint32_t last_ptag;
    uint32_t guest_count;
    uint32_t interrupts_taken[CHEMPI_SCI_INTERRUPT_MAX];
    struct chempi_list links;
    struct chempi_list downs; /* links whose end must be reported */
    struct chempi_list segments;
    struct chempi_list remotes;
    struct chempi_list vis;
    struct chempi_list active; /* VIs with sends to execute */
    struct chempi_list requests;
    bool is_serving;
    uint32_t share_waits; /* VIs whose head waits for the other side */
    uint32_t jobs_seen;
};

/* Store the error and its words. */
#define ADAPTER_FAIL(adapter, code, ...)                                       \
    chempi_err_set(&(adapter)->err, (code), __VA_ARGS__)

/* --- page.c --- */

/* Memory file of len bytes, allocated and mapped. */
int chempi_adapter_map_new(struct chempi_adapter *adapter, const char *name,
                           size_t len, int *fd, void **memory);
/* Map what another process sent; checks its size. Takes fd over. *len: at
 * least that, on return its size. */
int chempi_adapter_map_foreign(struct chempi_adapter *adapter, int fd,
                               size_t least, size_t *len, void **memory);
uint32_t chempi_adapter_token(struct chempi_adapter *adapter);
/* Wake the other side if it is armed; after the data is published. Includes a
 * full fence. */
void chempi_adapter_notify(struct chempi_adapter_link *link);
/* Is the other side armed, after what was published? */
static inline bool chempi_adapter_is_armed(const struct chempi_adapter_link *at)
{
    if (CHEMPI_LIKELY(at->is_ordered))
        atomic_signal_fence(memory_order_seq_cst); /* partner: its barrier */
    else
        atomic_thread_fence(memory_order_seq_cst); /* partner: its fence */
    return atomic_load_explicit(&at->page->armed, memory_order_relaxed) != 0;
}

/* --- link.c --- */

int chempi_adapter_link_listen(struct chempi_adapter *adapter,
                               struct chempi_err *err);
void chempi_adapter_link_accept(struct chempi_adapter *adapter);
/* Read what has come. Returns events. */
int chempi_adapter_link_ready(struct chempi_adapter_link *link,
                              uint32_t events);
/* Send a word, with descriptors, -1: none. Queues. 0 or -errno (link down). */
int chempi_adapter_link_say(struct chempi_adapter_link *link,
                            const struct word *word, int fd0, int fd1);
void chempi_adapter_link_fail(struct chempi_adapter_link *link, int status);
/* Report links that have gone down. Returns events. */
int chempi_adapter_link_report(struct chempi_adapter *adapter);
void chempi_adapter_link_destroy(struct chempi_adapter_link *link);

extern const struct link_events chempi_words_events; /* words.c */

/* --- words handled elsewhere; fd (-1: none) is theirs --- */

void chempi_sci_asked(struct chempi_adapter_link *link,
                      const struct word *word);
void chempi_sci_answered(struct chempi_adapter_link *link,
                         const struct word *word, int fd);
void chempi_sci_left(struct chempi_adapter_link *link, const struct word *word);
void chempi_sci_gone(struct chempi_adapter_link *link, const struct word *word);
void chempi_sci_link_down(struct chempi_adapter_link *link);
void chempi_sci_fini(struct chempi_adapter *adapter);

void chempi_via_requested(struct chempi_adapter_link *link,
                          const struct word *word, int fd);
void chempi_via_answered(struct chempi_adapter_link *link,
                         const struct word *word, int fd);
void chempi_via_broken(struct chempi_adapter_link *link,
                       const struct word *word);
void chempi_via_link_down(struct chempi_adapter_link *link);
void chempi_via_fini(struct chempi_adapter *adapter);
struct chempi_via_vi *chempi_via_find(struct chempi_adapter *adapter,
                                      const struct chempi_adapter_link *link,
                                      uint32_t token);
/* Put a VI in the error state, at both ends. */
void chempi_via_break(struct chempi_via_vi *vi, int status, const char *text);

/* Execute what can be; returns events. */
int chempi_queue_run(struct chempi_via_vi *vi);
/* The same of all VIs, or of those that move data together with the other
 * side. */
int chempi_queue_run_active(struct chempi_adapter *adapter, bool is_for_shared);

/* May this descriptor be (or is it being) moved by both sides? */
bool chempi_share_fits(const struct chempi_via_vi *vi,
                       const struct chempi_via_descriptor *descriptor,
                       uint64_t len);
/* Begin or go on. -EINPROGRESS: the other side has chunks; or the result. */
int chempi_share_run(struct chempi_via_vi *vi,
                     const struct chempi_via_descriptor *descriptor,
                     const struct vi_piece *remote, uint64_t len);
bool chempi_share_is_settled(const struct chempi_via_vi *vi);
void chempi_share_close(struct chempi_via_vi *vi);
/* Move chunks of what others offer to VIs of this completion queue. */
void chempi_share_help(struct chempi_adapter *adapter,
                       const struct chempi_via_cq *cq);

/* Begin or go on moving the head descriptor through the bounce area.
 * -EINPROGRESS, or the result. */
int chempi_bounce_start(struct chempi_via_vi *vi,
                        const struct chempi_via_descriptor *descriptor,
                        const struct vi_piece *remote, uint32_t remote_count,
                        uint64_t len);
/* vi: whom the word means, NULL: nobody. fd (-1: none) is taken over. */
void chempi_bounce_asked(struct chempi_adapter_link *link,
                         const struct chempi_via_vi *vi,
                         const struct word *word, int fd);
/* The VI whose queue is to be run, or NULL. */
struct chempi_via_vi *chempi_bounce_answered(struct chempi_adapter_link *link,
                                             const struct word *word);

#endif
