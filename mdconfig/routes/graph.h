/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The weighted graph behind a description. Vertices are networks and classes
 * of nodes: nodes of a class are interchangeable, and a network is a vertex
 * of its own, so that N attached nodes cost N edges and not N squared.
 * Networks inside nodes have no edges.
 */
#ifndef CHEMPI_MDCONFIG_GRAPH_H
#define CHEMPI_MDCONFIG_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mdconfig/description/command.h"
#include "mdconfig/description/interval.h"

struct chempi_graph {
    const struct chempi_desc *desc; /* must outlive the graph */
    uint32_t class_count;
    uint32_t network_count;
    uint32_t *members;      /* nodes, class by class */
    uint32_t *member_first; /* [class_count + 1] into members */
    uint32_t *out;          /* networks a class can send on */
    uint32_t *out_first;    /* [class_count + 1] into out */
    uint32_t *in;           /* classes that receive from a network */
    uint32_t *in_first;     /* [network_count + 1] into in */
    struct chempi_intervals intervals;
    struct chempi_arena arena;
};

void chempi_graph_init(struct chempi_graph *graph,
                       const struct chempi_desc *desc);
void chempi_graph_fini(struct chempi_graph *graph);

/* What a command does with the graph of a description; an exit code. */
typedef int chempi_graph_fn(const struct chempi_graph *graph,
                            const struct chempi_command_line *line,
                            struct chempi_err *err);

/* Do it with that of the file that is the line's first argument. */
int chempi_graph_use(const struct chempi_command_line *line,
                     chempi_graph_fn *use, struct chempi_err *err);

/* Any node of the class: what holds for it holds for all of them. */
const struct chempi_desc_node *
chempi_graph_model(const struct chempi_graph *graph, uint32_t node_class);
uint32_t chempi_graph_size(const struct chempi_graph *graph,
                           uint32_t node_class);
bool chempi_graph_forwards(const struct chempi_graph *graph,
                           uint32_t node_class);
bool chempi_graph_receives(const struct chempi_graph *graph,
                           uint32_t node_class, uint32_t network);

/* Names of the nodes of a class with ranges; buf is returned. */
const char *chempi_graph_members(const struct chempi_graph *graph,
                                 uint32_t node_class, char *buf, size_t len);

#endif
