/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network description as mdconfig works with it: nodes, networks, and which
 * node is attached to what. chempi-network(5) describes the language.
 *
 *   -   names of nodes and of networks are unique
 *   D2  a node is attached to a network at most once; its attachments are
 *       ordered by network
 *   D3  every network has at least one protocol, and its protocols together
 *       take messages of every size
 *   D4  latencies and bandwidths are positive and finite
 *   D5  nodes of one class have the same attachments, the same directions and
 *       the same forwarding; class numbers ascend with the first node
 *
 * chempi_desc_check() looks at D2 to D5.
 */
#ifndef CHEMPI_MDCONFIG_DESC_H
#define CHEMPI_MDCONFIG_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "mdconfig/description/mem.h"
#include "mdconfig/description/names.h"
#include "mdconfig/description/yaml.h"

#define CHEMPI_DESC_NODES_MAX 131072u
#define CHEMPI_DESC_NETWORKS_MAX 4096u
#define CHEMPI_DESC_PROTOCOLS_MAX 16u /* of one network */
#define CHEMPI_DESC_ATTACHMENTS_MAX 1048576u
#define CHEMPI_DESC_FORWARD_US 20.0 /* a gateway's cost by default */
#define CHEMPI_DESC_CHUNK 65536u    /* bytes, by default */

enum chempi_desc_ways { /* when messages pass through gateways */
                        CHEMPI_DESC_FASTEST, /* wherever that is faster */
                        CHEMPI_DESC_NEEDED,  /* only between nodes without a
                                                common network */
                        CHEMPI_DESC_DIRECT   /* never */
};

struct chempi_desc_protocol {
    const char *name;
    double latency_us;
    double bw_bytes_per_us;
    double cost_us;
    uint64_t min_len;
    uint64_t max_len;
    double latency_spread; /* of measurements, as a fraction; 0: unknown */
    double bw_spread;
    double cost_spread;
    bool is_default; /* a figure is missing and the default stands in */
    bool is_named;   /* in the description */
};

struct chempi_desc_network {
    const char *name;
    const char *type;
    const char *device;
    const char *card; /* whose figures are those left out; or NULL */
    bool inside_node;
    bool implied; /* not in the description */
    size_t line;  /* 0: implied */
    size_t column;
    struct chempi_desc_protocol *protocols;
    size_t protocol_count;
};

struct chempi_desc_attachment {
    uint32_t network;
    const char *address;   /* or NULL */
    const char *interface; /* or NULL */
    bool can_send;
    bool can_receive;
    uint32_t line; /* where it is described; 0: nowhere */
    uint32_t column;
};

struct chempi_desc_node {
    const char *name;
    uint32_t slots;
    bool has_slots; /* else nobody has said, and it is 1 */
    bool gateway;
    double forward_us;
    uint32_t node_class;
    size_t line;
    size_t column;
    struct chempi_desc_attachment *attachments;
    size_t attachment_count;
    size_t attachment_room;
};

struct chempi_desc {
    const char *file;
    const char *cluster; /* "" when it has none */
    enum chempi_desc_ways ways;
    double forward_us; /* of gateways that say nothing else */
    uint32_t chunk;    /* bytes */
    struct chempi_desc_node *nodes;
    uint32_t node_count;
    size_t node_room;
    struct chempi_desc_network *networks;
    uint32_t network_count;
    size_t network_room;
    uint32_t class_count;
    size_t attachment_total;
    struct chempi_names node_names;
    struct chempi_names network_names;
    struct chempi_arena arena; /* of all strings and protocols */
};

/* Read and check a description. Errors: those of chempi_yaml_open(); -EINVAL
 * with place. *desc is untouched on failure. */
int chempi_desc_open(const char *path, struct chempi_desc *desc,
                     struct chempi_err *err);
/* The same from memory; `name` stands in messages. */
int chempi_desc_parse(const char *name, const void *text, size_t len,
                      struct chempi_desc *desc, struct chempi_err *err);
void chempi_desc_fini(struct chempi_desc *desc);

/* The attachment of a node to a network, or NULL. */
const struct chempi_desc_attachment *
chempi_desc_attached(const struct chempi_desc *desc, uint32_t node,
                     uint32_t network);

/* NULL, or what does not hold (invariant.h); of a finished description. */
const char *chempi_desc_check(const struct chempi_desc *desc);

/* Number the classes of nodes (invariant D5); called by open and parse. */
void chempi_desc_classify(struct chempi_desc *desc);

#endif
