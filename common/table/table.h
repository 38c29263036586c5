/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection table (architecture, section 8): written by mdconfig (or by
 * the daemon for a cluster without a description), read by library, daemon
 * and gateway. One file per node: the node directory, this node's networks,
 * and for every destination class an ordered list of size ranges, each with
 * device, protocol, network and a set of next hops.
 *
 * A reader is a view on memory that it does not own (a mapped file); all
 * offsets are checked once in chempi_table_open(), so lookups need no checks.
 * Readers are immutable: any number of threads.
 */
#ifndef CHEMPI_COMMON_TABLE_TABLE_H
#define CHEMPI_COMMON_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_TABLE_VERSION 3
#define CHEMPI_TABLE_SIZE_MAX UINT64_MAX /* "up to any size" */
#define CHEMPI_TABLE_NONE UINT32_MAX
#define CHEMPI_TABLE_RANGES_MAX 64 /* size ranges of one destination */
#define CHEMPI_TABLE_STAGES_MAX 16 /* stages of one way */
#define CHEMPI_TABLE_IPV4_MAX 16   /* bytes of an address with the zero */
#define CHEMPI_TABLE_NAME_MAX 256  /* bytes of a node's name with the zero */
/* What a chunk is reckoned to grow by through gateways: headers, bytes. */
#define CHEMPI_TABLE_FRAME_BYTES 72u

struct chempi_table; /* opaque view */

/* What a stage costs; bw_bytes_per_us is 0 where nobody knows. */
struct chempi_table_times {
    double forward_us; /* of the gateway at its beginning */
    double latency_us;
    double cost_us; /* per message */
    double bw_bytes_per_us;
};

/*
 * One stage of a way: how a message gets from one node to the next one. The
 * stages of a way are shared by all destinations of a class, so the last one,
 * which ends at the destination, names no node: hop_count is 0, hops NULL.
 * Any node of a stage's set may be taken, together with any of the next one's.
 */
struct chempi_table_stage {
    const char *device;
    const char *protocol;
    uint32_t network;     /* index into the table's networks */
    uint32_t hop_count;   /* gateways at the end of this stage */
    const uint32_t *hops; /* their node indices */
    struct chempi_table_times times;
};

/* One size range of the destinations of a class. A direct way has one stage. */
struct chempi_table_range {
    uint64_t max_len;     /* bytes, inclusive; the last range has SIZE_MAX */
    const char *device;   /* "shm", "tcp", "scivia" */
    const char *protocol; /* as the device names it: "eager", ... */
    uint32_t network;     /* of the first stage */
    uint32_t switch_len;  /* through gateways longer messages are cut into
                             chunks of so many bytes; 0: direct */
    double cost_us;       /* modelled time at max_len (or 1 MiB if open) */
    uint32_t share_count; /* the first so many hops of the first stage are
                             equally good, and flows are spread over them;
                             the rest are alternates in order */
    uint32_t stage_count; /* stages of the way; 1: direct */
    const struct chempi_table_stage *stages; /* for source routing */
};

struct chempi_table_network {
    const char *name; /* "fast-ethernet" */
    const char *type; /* "ethernet", "sci", "myrinet", "smp" */
    const char *device;
};

/* How this or another node is attached to a network; either text may be NULL.
 * The address may lie in this very struct, so a copy of it is no good. */
struct chempi_table_attachment {
    uint32_t network;
    const char *address;   /* "10.0.0.7", "fe80::1%eth0", ... */
    const char *interface; /* "eth0" */
    char ipv4[CHEMPI_TABLE_IPV4_MAX];
};

/* Validate `len` bytes at `data` (which must outlive the view) and make a
 * view. Errors: -EBADMSG (not a table, damaged, wrong checksum), -EPROTO
 * (version), -ENOMEM; words with offset and remedy in *err. */
int chempi_table_open(const void *data, size_t len, struct chempi_table **out,
                      struct chempi_err *err);
void chempi_table_close(struct chempi_table *table);

uint32_t chempi_table_self(const struct chempi_table *table); /* node index */
uint32_t chempi_table_node_count(const struct chempi_table *table);
const char *chempi_table_node_name(const struct chempi_table *table,
                                   uint32_t node);
/* Processes that the node is described to hold; at least 1. */
uint32_t chempi_table_node_slots(const struct chempi_table *table,
                                 uint32_t node);
/* Does the description say how many, rather than leave it at 1? */
bool chempi_table_node_has_slots(const struct chempi_table *table,
                                 uint32_t node);
bool chempi_table_node_is_gateway(const struct chempi_table *table,
                                  uint32_t node);
/* Nodes with equal attachments share a class and its ranges. */
uint32_t chempi_table_class_count(const struct chempi_table *table);
uint32_t chempi_table_node_class(const struct chempi_table *table,
                                 uint32_t node);
/* Name of the cluster; "" when it has none. */
const char *chempi_table_cluster(const struct chempi_table *table);

/* Node index or CHEMPI_TABLE_NONE; O(log n). */
uint32_t chempi_table_find_node(const struct chempi_table *table,
                                const char *name);

/* Size ranges towards `node` (the node itself included: messages between
 * its own processes), ascending, complete from 0 to SIZE_MAX; *count is 0 when
 * it cannot be reached. Nodes of a class have the same ones, but for the node
 * itself. */
const struct chempi_table_range *
chempi_table_ranges(const struct chempi_table *table, uint32_t node,
                    uint32_t *count);

/* The first so many gateways at the end of a stage that does not end at the
 * destination are equally good; those behind them are alternates, in order. */
uint32_t chempi_table_share(const struct chempi_table_range *range,
                            uint32_t stage);

/* Can a message still go over the gateway on this node? */
typedef bool chempi_table_usable_fn(void *arg, const char *gateway);

/* The first stage at whose end no gateway is usable; stage_count: every stage
 * has one, or ends at the destination, so the range is usable. A NULL in place
 * of the function stands for gateways that are all usable. */
uint32_t chempi_table_broken_stage(const struct chempi_table *table,
                                   const struct chempi_table_range *range,
                                   chempi_table_usable_fn *is_usable,
                                   void *arg);

/* What a stage is busy with a chunk of a longer message, us: until it can take
 * the next one. */
static inline double chempi_table_busy_us(const struct chempi_table_times *t,
                                          uint64_t chunk)
{
    return t->forward_us + t->cost_us +
           (double)(chunk + CHEMPI_TABLE_FRAME_BYTES) / t->bw_bytes_per_us;
}

/* Modelled time of a message of len bytes over these stages, us, by the formula
 * of doc/routing.md. Longer ones than chunk (0: none) are cut. */
double chempi_table_way_us(const struct chempi_table_times *times,
                           uint32_t count, uint64_t chunk, uint64_t len);

/* The same of a range; negative where the table does not know its stages'
 * times. */
double chempi_table_time(const struct chempi_table_range *range, uint64_t len);

uint32_t chempi_table_network_count(const struct chempi_table *table);
const struct chempi_table_network *
chempi_table_network(const struct chempi_table *table, uint32_t network);

/* Attachments of a node, with what the description says of them. */
uint32_t chempi_table_attachment_count(const struct chempi_table *table,
                                       uint32_t node);
void chempi_table_attachment(const struct chempi_table *table, uint32_t node,
                             uint32_t i, struct chempi_table_attachment *out);
/* Is the node attached to the network? CHEMPI_TABLE_NONE is to none. */
bool chempi_table_is_attached(const struct chempi_table *table, uint32_t node,
                              uint32_t network);
/* Are both nodes attached to one network at least? */
bool chempi_table_has_common(const struct chempi_table *table, uint32_t a,
                             uint32_t b);

#endif
