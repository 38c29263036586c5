/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device-dependent interface: the only door between didl and devices.
 *
 * A device is a const table of operations and a capability record. didl calls
 * down through chempi_dev_ops; the device calls up through chempi_sink, only
 * from inside progress(), dispatch of its poll items, or where an operation
 * says so. Every call into a device of one lane is made under that lane's
 * lock; a device therefore has no locks of its own.
 *
 * Numbers. didl numbers every message per ordered pair of processes
 * (envelope.serial) and releases them in order; a device may deliver messages
 * of different protocols in any order, but must deliver each exactly once.
 *
 * Payload. A message that is completely at hand (avail == env.len) is
 * taken during arrived(), unless there is NO_ROOM. Otherwise didl either
 * accepts at once, naming a receive, or leaves the message where it is and
 * later calls accept() or drop() with the device's token, once, in any order.
 *
 * What a peer wrote (ring entries, frames) is copied once and validated by the
 * device before it reaches the sink; a peer that breaks the rules is reported
 * with lost().
 */
#ifndef CHEMPI_LIBCHEMPI_DDI_H
#define CHEMPI_LIBCHEMPI_DDI_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/err.h"
#include "common/containers/list.h"
#include "common/table/table.h"
#include "common/wake/wake.h"
#include "libchempi/services/bond.h"
#include "libchempi/services/cma.h"
#include "libchempi/services/layout/segment.h"
#include "libchempi/services/pollset.h"
#include "libchempi/services/region.h"
#include "libchempi/services/registration/memory.h"
#include "libchempi/services/setting.h"
#include "libchempi/services/shortage.h"

#define CHEMPI_DEV_ABI 3

/* Wire form: little-endian, no holes; shared by all devices. */
struct chempi_envelope {
    uint64_t len;     /* payload, bytes */
    uint32_t context; /* of a communicator; system messages: bytes of head */
    int32_t source;   /* sender's rank in the communicator */
    int32_t tag;      /* >= 0; a negative one names a system handler */
    uint32_t serial;  /* per lane and ordered pair of processes, wraps */
    uint32_t credit;  /* eager payload bytes of the receiver's messages that
                         the sender has released so far, wraps */
    uint8_t kind;     /* enum chempi_kind */
    uint8_t lane;
    uint16_t flags; /* didl's, and CHEMPI_ENVELOPE_URGENT */
};
static_assert(sizeof(struct chempi_envelope) == 32, "envelope layout");
static_assert(offsetof(struct chempi_envelope, credit) == 24, "layout");
static_assert(offsetof(struct chempi_envelope, flags) == 30, "layout");

enum chempi_kind {
    CHEMPI_KIND_MESSAGE = 1,
    CHEMPI_KIND_SYNC = 2,  /* didl answers with a system message on match */
    CHEMPI_KIND_SYSTEM = 3 /* runs a handler at the receiver */
};

/* Envelope flag: worth waking the receiver's agent, where the device can tell
 * (chempi_wake_urge()). */
#define CHEMPI_ENVELOPE_URGENT 8u

/* For what other processes have written. */
static inline bool chempi_envelope_is_known(const struct chempi_envelope *env)
{
    return env->kind >= CHEMPI_KIND_MESSAGE && env->kind <= CHEMPI_KIND_SYSTEM;
}

/* Results of the transfer operations, beside -errno. */
enum chempi_result {
    CHEMPI_DONE = 0,    /* finished; no upcall follows */
    CHEMPI_PENDING = 1, /* sent() or delivered() follows, once */
    CHEMPI_KEPT = 2 /* DONE, but the device's copy of the message leaves with
                       its next progress() (chempi_tx.may_keep) */
};

/* What the sink says to arrived(). */
enum chempi_verdict {
    CHEMPI_TAKEN,   /* the payload was complete and has been consumed */
    CHEMPI_ACCEPT,  /* *rx names the receive: move the data, then delivered()
                       (from inside this same progress, if you like) */
    CHEMPI_LATER,   /* accept() or drop() will follow; never for STREAMED */
    CHEMPI_NO_ROOM, /* memory is missing: leave it where it is, with all behind
                       it, and announce it again in a later progress();
                       is_ready() is true until it is taken */
    CHEMPI_REFUSED  /* who announces this breaks the rules; for STREAMED, and
                       for what is whole, only of the sink of a device that
                       reaches processes of other worlds */
};

struct chempi_dev;

/* A device's connection to one process; a device embeds it as first member
 * of its own struct. Made by connect(), lives as long as the device. */
struct chempi_ep {
    struct chempi_dev *dev;
    uint32_t proc; /* process index: of the own job, the world rank */
};

/*
 * One outgoing message, owned by didl (it lives in a request). The device may
 * write the members below the line from send() until sent().
 */
struct chempi_tx {
    struct chempi_envelope env;
    const void *buf;             /* contiguous payload; NULL when iter is set */
    struct chempi_segment *iter; /* non-contiguous payload, or NULL */
    uint32_t protocol;           /* index into caps.protocols; advice: a device
                                    may use a neighbour when the message or its
                                    own state requires it, and counts it */
    bool needs_consent;          /* not eager, whatever its size: the payload
                                    stays here until accepted */
    bool may_keep; /* others are likely to follow at once: the device may
                      answer KEPT, and progress() is called soon */
    /* --- */
    struct chempi_ep *ep;
    struct chempi_list link;
    uint64_t priv[8];
};

/*
 * One receive, owned by didl. At most `cap` bytes may be stored; the rest of a
 * longer message is discarded by the device (didl reports the truncation).
 */
struct chempi_rx {
    void *buf;                   /* contiguous target; NULL when iter is set */
    struct chempi_segment *iter; /* non-contiguous target, or NULL */
    uint64_t cap;                /* bytes */
    /* --- device's from ACCEPT or accept() until delivered() */
    struct chempi_ep *ep;
    struct chempi_list link;
    uint64_t priv[8];
};

enum chempi_arrival_flags {
    /* The rest of the payload comes behind this, as in a byte stream, and
     * cannot be left there: the sink must ACCEPT (into memory of its own if
     * need be). */
    CHEMPI_ARRIVAL_STREAMED = 1
};

struct chempi_arrival {
    struct chempi_ep *ep;       /* where it came from */
    struct chempi_envelope env; /* private copy, validated */
    const void *data;           /* whole payload when avail == env.len; valid
                                   during the upcall only; any alignment */
    uint64_t avail;             /* env.len or 0 */
    uint64_t token[2];          /* the device's name for this message */
    uint32_t flags;             /* enum chempi_arrival_flags */
    uint32_t protocol;          /* for the counters */
};

/* Upcalls; `arg` is params->sink_arg. All mandatory. */
struct chempi_sink {
    /* Announce an arrival; *rx is set on ACCEPT only. */
    enum chempi_verdict (*arrived)(void *arg,
                                   const struct chempi_arrival *arrival,
                                   struct chempi_rx **rx);
    /* The data of an accepted message is in place (status 0) or will never
     * be (-errno). */
    void (*delivered)(void *arg, struct chempi_rx *rx, int status);
    /* The payload may be reused (status 0), or the message is lost. */
    void (*sent)(void *arg, struct chempi_tx *tx, int status);
    /* An endpoint that answered -EAGAIN can take something again. */
    void (*room)(void *arg, struct chempi_ep *ep);
    /* A process cannot be reached any more; why is a clause such as
     * "connection reset by 127.0.0.1:4711". Pending tx and rx of the endpoint
     * have been reported before. */
    void (*lost)(void *arg, uint32_t proc, int status, const char *why);
    /* A process of another world has finished (bond.h); likewise. Nothing more
     * comes of it. */
    void (*finished)(void *arg, uint32_t proc, const char *why);
};

/* What devices are handed. Constant after start, except behind pointers. */
struct chempi_services {
    const char *job_id;
    const uint8_t *secret;   /* CHEMPI_JOB_SECRET_BYTES */
    const uint8_t *rank_key; /* the same; a secure job's ranks only, or NULL */
    uint32_t proc;           /* this process */
    uint32_t proc_count;     /* ranks and behind them gateways */
    uint32_t rank_count;
    uint32_t node;
    uint32_t node_count;
    uint32_t local_rank; /* on this node */
    uint32_t local_size;
    const uint32_t *node_of_proc;       /* [proc_count] */
    const uint32_t *local_rank_of_proc; /* [proc_count] */
    const char *const *node_names;      /* [node_count] */
    const struct chempi_table *table;   /* NULL when there is none */
    struct chempi_region *region;       /* this node's; never NULL */
    struct chempi_wake *wakes;          /* [local_size] */
    const int *wake_fds;                /* [local_size]; -1: none */
    bool is_wake_registered;            /* for chempi_wake_peer() */
    struct chempi_pollset *pollset;     /* for devices with descriptors */
    struct chempi_memory *memory;       /* for devices that register memory;
                                           NULL: none of it is kept */
    const struct chempi_bonds *bonds;   /* for the device that reaches
                                           processes of other worlds only,
                                           with indexes of their own; NULL: it
                                           serves this job */
};

struct chempi_dev_params {
    const struct chempi_services *services;
    const struct chempi_sink *sink;
    void *sink_arg;
    /* Values in the order of the panel's settings, which may change at any
     * time unless they are fixed; NULL: the initial ones. */
    const _Atomic uint64_t *settings;
    /* Devices of processes of one node (CHEMPI_DEV_SAME_NODE) are opened once
     * for each lane. The number of lanes that the processes of the node may
     * have is the same for all of them; 0 is 1. */
    uint32_t lanes;
    uint32_t lane;            /* which one this is for */
    struct chempi_dev *first; /* that of lane 0, which closes last; in lane 0
                                 NULL */
};

enum chempi_gauge_kind {
    CHEMPI_GAUGE_COUNTER, /* grows from 0 at open */
    CHEMPI_GAUGE_LEVEL    /* as it is at the moment */
};

/* A number that a device keeps for tools. */
struct chempi_gauge {
    const char *name; /* "connections" */
    const char *text; /* a sentence that names the unit */
    uint8_t kind;     /* enum chempi_gauge_kind */
    size_t at;        /* without read(): CHEMPI_GAUGE_AT() */
    /* Under the lane lock, while the device is open; cheap. */
    uint64_t (*read)(struct chempi_dev *dev);
};

/* Where a number stands in the device's struct; a uint64_t. */
#define CHEMPI_GAUGE_AT(type, member)                                          \
    (offsetof(type, member) +                                                  \
     0 * sizeof(char[sizeof(((type *)0)->member) == 8 ? 1 : -1]))

#define CHEMPI_DEV_PROTOCOLS_MAX 8u
#define CHEMPI_DEV_SETTINGS_MAX 32u

/* What a device shows to tools, open or not. Constant. */
struct chempi_dev_panel {
    const char *text;             /* what the device carries, a clause */
    const char *const *protocols; /* as in the capabilities */
    uint32_t protocol_count;      /* <= CHEMPI_DEV_PROTOCOLS_MAX */
    const struct chempi_setting *settings;
    uint32_t setting_count; /* <= CHEMPI_DEV_SETTINGS_MAX */
    const struct chempi_gauge *gauges;
    uint32_t gauge_count;
};

enum chempi_dev_flags {
    CHEMPI_DEV_NEEDS_CARD = 1, /* connect waits for card_arrived() */
    CHEMPI_DEV_HAS_FDS = 2,    /* sleeps must be in epoll, not the futex */
    CHEMPI_DEV_SAME_NODE = 4,  /* reaches processes of this node only */
    CHEMPI_DEV_SELF = 8,       /* reaches this process only */
    CHEMPI_DEV_SEALS = 16      /* its settings ask for sealed connections */
};

/* Capabilities and limits; read-only after open. */
struct chempi_dev_caps {
    const char *const *protocols; /* names, cheapest for small first */
    uint32_t protocol_count;
    uint32_t flags;      /* enum chempi_dev_flags */
    uint64_t inject_max; /* bytes of payload inject() takes, >= 64 */
    /* Default upper end (bytes, inclusive) of each protocol's range, used
     * when there is no table; the last one is UINT64_MAX. */
    const uint64_t *protocol_max;
    /* Largest message that travels as complete payload without the receiver's
     * consent (eager), bytes; above it a message is left at the sender until
     * accepted. Counts against the receiver's quota. */
    uint64_t eager_max;
    /* By protocol: the one that serves its messages on this machine, as a card
     * may lack what a table expects. Counters name that one. NULL: each. */
    const uint32_t *instead;
};

/* What remains of a process that has ended; the larger one of two counts. */
enum chempi_remains {
    CHEMPI_REMAINS_NONE,
    CHEMPI_REMAINS_COMING, /* more may come: something of the pollset wakes who
                              sleeps when it does, or does not any more */
    CHEMPI_REMAINS_LEFT    /* some of it is left here, as when there was
                              NO_ROOM: nothing wakes who waits for that */
};

struct chempi_dev_ops {
    uint32_t abi; /* CHEMPI_DEV_ABI, checked at registration */
    const char *name;
    const struct chempi_dev_panel *panel;

    /* Open; never blocks. On failure *out is untouched. */
    int (*open)(const struct chempi_dev_params *params, struct chempi_dev **out,
                struct chempi_err *err);

    /* This process's address for others. *len: room in, bytes used out; 0
     * when the device needs no card. */
    int (*card)(struct chempi_dev *dev, void *buf, size_t *len);

    /* The endpoint for a process; the same one for every call and for
     * connections that the peer began. Never blocks and does not yet reserve
     * what is costly. -EHOSTUNREACH: not for this device. */
    int (*connect)(struct chempi_dev *dev, uint32_t proc,
                   struct chempi_ep **out, struct chempi_err *err);

    /* The card of ep->proc, asked for by didl because of NEEDS_CARD; validate
     * it. Until then send and inject answer -EAGAIN. */
    int (*card_arrived)(struct chempi_ep *ep, const void *card, size_t len,
                        struct chempi_err *err);

    /* Send a whole small message now: len <= inject_max, data copied before
     * return. may_keep: as in chempi_tx. DONE, KEPT, -EAGAIN (nothing was
     * taken; room() follows), or an error. */
    int (*inject)(struct chempi_ep *ep, const struct chempi_envelope *env,
                  const void *data, size_t len, bool may_keep);

    /* Start sending. DONE, PENDING, KEPT, -EAGAIN as above, or an error (its
     * words in ep->dev->err). Messages of one endpoint may be passed by each
     * other only where they take different ways (networks, gateways): who is
     * told -EAGAIN sends no others before, and none may get past those that the
     * device has taken, since the receiver searches for an early one's place.
     */
    int (*send)(struct chempi_ep *ep, struct chempi_tx *tx);

    /* Take a message that was left LATER into rx. DONE or PENDING or error. */
    int (*accept)(struct chempi_ep *ep, const uint64_t token[2],
                  struct chempi_rx *rx);

    /* Discard one; the sender is told, its sent() comes as usual. */
    void (*drop)(struct chempi_ep *ep, const uint64_t token[2]);

    /* Advance; returns the number of events. Cheap when there is nothing:
     * no system call on a device without descriptors, and O(1) in peers. */
    int (*progress)(struct chempi_dev *dev);

    /* Last look before sleeping, after the wake word was published: true if
     * there is (or may be) something to do now. Changes nothing visible. */
    bool (*is_ready)(struct chempi_dev *dev);

    /* A process has ended and its job goes on: take what it had sent, report
     * what is under way with it, then lost(), from progress(), unless the
     * device notices that by itself. didl asks again until NONE of it remains.
     * NULL: there is nothing to do. */
    enum chempi_remains (*ended)(struct chempi_dev *dev, uint32_t proc);

    /* True when everything handed in has left this process for good, so that
     * it may exit. */
    bool (*is_drained)(struct chempi_dev *dev);

    /* Release everything; accepts NULL; no upcall follows. */
    void (*close)(struct chempi_dev *dev);
};

struct chempi_dev_traffic {
    uint64_t messages;
    uint64_t bytes; /* of payload */
};

/* Every device's struct starts with this. */
struct chempi_dev {
    const struct chempi_dev_ops *ops;
    const struct chempi_dev_caps *caps;
    struct chempi_dev_params params;
    /* Messages that have come, per protocol; chempi_dev_count(). */
    struct chempi_dev_traffic received[CHEMPI_DEV_PROTOCOLS_MAX];
    struct chempi_err err; /* words of the last failure on this device */
};

/* Call once per message, with the protocol that its payload has taken. */
static inline void chempi_dev_count(struct chempi_dev *dev, uint32_t protocol,
                                    uint64_t len)
{
    dev->received[protocol].messages++;
    dev->received[protocol].bytes += len;
}

/* It has been counted, and there was NO_ROOM. */
static inline void chempi_dev_uncount(struct chempi_dev *dev, uint32_t protocol,
                                      uint64_t len)
{
    dev->received[protocol].messages--;
    dev->received[protocol].bytes -= len;
}

/* What all these devices together say of a process that has ended. */
static inline enum chempi_remains
chempi_dev_remains(struct chempi_dev *const *devices, uint32_t count,
                   uint32_t proc)
{
    enum chempi_remains end = CHEMPI_REMAINS_NONE;

    for (uint32_t i = 0; i < count; i++)
        if (devices[i]->ops->ended) {
            const enum chempi_remains one =
                devices[i]->ops->ended(devices[i], proc);

            end = one > end ? one : end;
        }
    return end;
}

/* card() and card_arrived() of a device without CHEMPI_DEV_NEEDS_CARD. */
static inline int chempi_dev_no_card(struct chempi_dev *dev, void *buf,
                                     size_t *len)
{
    (void)dev;
    (void)buf;
    *len = 0;
    return 0;
}

static inline int chempi_dev_no_card_arrived(struct chempi_ep *ep,
                                             const void *card, size_t len,
                                             struct chempi_err *err)
{
    (void)card;
    (void)len;
    return chempi_err_set(err, -EINVAL, "device %s takes no address",
                          ep->dev->ops->name);
}

static inline uint64_t chempi_gauge_read(const struct chempi_gauge *gauge,
                                         struct chempi_dev *dev)
{
    uint64_t value;

    if (gauge->read)
        return gauge->read(dev);
    memcpy(&value, (const char *)dev + gauge->at, sizeof(value));
    return value;
}

/* The value of a setting at the moment; i is its place in the panel. */
static inline uint64_t chempi_dev_setting(const struct chempi_dev *dev,
                                          uint32_t i)
{
    const _Atomic uint64_t *values = dev->params.settings;

    return values ? atomic_load_explicit(&values[i], memory_order_relaxed)
                  : dev->ops->panel->settings[i].initial;
}

#endif
