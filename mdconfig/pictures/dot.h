/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and networks in the language of Graphviz. */
#ifndef CHEMPI_MDCONFIG_DOT_H
#define CHEMPI_MDCONFIG_DOT_H

#include <stdio.h>

#include "mdconfig/routes/route.h"

/*
 * Write a graph of networks and classes of nodes, for dot, neato and others.
 * With from != CHEMPI_SEARCH_NONE, the ways of messages of `len` bytes from
 * that node are edges of their own, from class over network to class.
 */
void chempi_dot(const struct chempi_graph *graph, uint32_t from, uint64_t len,
                FILE *out);

#endif
