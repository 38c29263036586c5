/* SPDX-License-Identifier: BSD-3-Clause */
/* The description once it is read; see desc.h. */
#include "mdconfig/description/desc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void chempi_desc_fini(struct chempi_desc *desc)
{
    for (uint32_t i = 0; i < desc->node_count; i++)
        free(desc->nodes[i].attachments);
    free(desc->nodes);
    free(desc->networks);
    chempi_names_fini(&desc->node_names);
    chempi_names_fini(&desc->network_names);
    chempi_arena_fini(&desc->arena);
    *desc = (struct chempi_desc){.file = NULL};
}

const struct chempi_desc_attachment *
chempi_desc_attached(const struct chempi_desc *desc, uint32_t node,
                     uint32_t network)
{
    const struct chempi_desc_node *n = &desc->nodes[node];
    size_t low = 0;
    size_t high = n->attachment_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (n->attachments[mid].network == network)
            return &n->attachments[mid];
        if (n->attachments[mid].network < network)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- classes ------------------------------------------------------------ */

#define KEY_LEN_PER_ATTACHMENT 12 /* number, direction, space */
#define KEY_LEN_HEAD 64

/* Text that is equal for nodes of one class. */
static void put_key(const struct chempi_desc_node *n, char *key)
{
    int at;

    at = snprintf(key, KEY_LEN_HEAD, "%d %a ", n->gateway,
                  n->gateway ? n->forward_us : 0.0);
    for (size_t i = 0; i < n->attachment_count; i++)
        at += snprintf(key + at, KEY_LEN_PER_ATTACHMENT, "%" PRIu32 "%c%c ",
                       n->attachments[i].network,
                       n->attachments[i].can_send ? 's' : '-',
                       n->attachments[i].can_receive ? 'r' : '-');
}

void chempi_desc_classify(struct chempi_desc *desc)
{
    struct chempi_names classes = {.count = 0};
    struct chempi_arena keys = {.blocks = NULL};
    size_t longest = 0;
    char *key;

    for (uint32_t i = 0; i < desc->node_count; i++) {
        if (desc->nodes[i].attachment_count > longest)
            longest = desc->nodes[i].attachment_count;
    }
    key = chempi_mem_get(KEY_LEN_HEAD + longest * KEY_LEN_PER_ATTACHMENT, 1);
    desc->class_count = 0;
    for (uint32_t i = 0; i < desc->node_count; i++) {
        struct chempi_desc_node *n = &desc->nodes[i];

        put_key(n, key);
        n->node_class = chempi_names_find(&classes, key);
        if (n->node_class == CHEMPI_NAMES_NONE) {
            n->node_class = desc->class_count++;
            chempi_names_add(&classes, chempi_arena_text(&keys, key),
                             n->node_class);
        }
    }
    free(key);
    chempi_names_fini(&classes);
    chempi_arena_fini(&keys);
}

/* --- invariants --- */

static bool is_figure(double figure)
{
    return isfinite(figure) && figure >= 0;
}

static const char *check_network(const struct chempi_desc_network *network)
{
    if (network->protocol_count == 0)
        return "desc D3: a network without protocols";
    for (size_t i = 0; i < network->protocol_count; i++) {
        const struct chempi_desc_protocol *p = &network->protocols[i];

        if (!is_figure(p->latency_us) || !is_figure(p->cost_us) ||
            !isfinite(p->bw_bytes_per_us) || p->bw_bytes_per_us <= 0)
            return "desc D4: a figure that cannot be";
    }
    return NULL;
}

static const char *check_node(const struct chempi_desc *desc,
                              const struct chempi_desc_node *node)
{
    for (size_t i = 0; i < node->attachment_count; i++) {
        uint32_t network = node->attachments[i].network;

        if (network >= desc->network_count ||
            (i > 0 && node->attachments[i - 1].network >= network))
            return "desc D2: attachments twice or out of order";
    }
    return node->node_class < desc->class_count ? NULL
                                                : "desc D5: a node of no class";
}

const char *chempi_desc_check(const struct chempi_desc *desc)
{
    const char *why = NULL;
    uint32_t classes = 0;

    for (uint32_t i = 0; i < desc->network_count && !why; i++)
        why = check_network(&desc->networks[i]);
    for (uint32_t i = 0; i < desc->node_count && !why; i++) {
        why = check_node(desc, &desc->nodes[i]);
        if (desc->nodes[i].node_class > classes)
            return "desc D5: class numbers that do not ascend";
        classes += desc->nodes[i].node_class == classes;
    }
    return why;
}
