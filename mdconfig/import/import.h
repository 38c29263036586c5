/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A first description from what is known already: this machine's interfaces
 * and cores, a hosts file, Slurm's topology.conf, what `scontrol show nodes`
 * prints. It is written for a person to edit: guesses are marked.
 *
 *   -   names of nodes and networks are valid and unique
 *   -   a node is attached to a network at most once
 */
#ifndef CHEMPI_MDCONFIG_IMPORT_H
#define CHEMPI_MDCONFIG_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "mdconfig/description/mem.h"
#include "mdconfig/description/names.h"

#define CHEMPI_IMPORT_LINE_MAX 65536u /* bytes of a line of a source */

struct chempi_import_attachment {
    uint32_t node;
    const char *address;   /* or NULL */
    const char *interface; /* or NULL */
};

struct chempi_import_network {
    const char *name;
    const char *type;
    const char *remark; /* a comment, or NULL */
    struct chempi_import_attachment *attachments;
    size_t count;
    size_t room;
};

struct chempi_import_node {
    const char *name;
    uint32_t slots; /* 0: not known */
    uint32_t networks;
};

struct chempi_import {
    struct chempi_import_node *nodes;
    size_t node_count;
    size_t node_room;
    struct chempi_import_network *networks;
    size_t network_count;
    size_t network_room;
    struct chempi_names node_index;
    struct chempi_names network_index;
    struct chempi_arena arena;
};

void chempi_import_fini(struct chempi_import *import);

/* The node or network of that name, added when it is new. `remark` is copied
 * for a new network. */
uint32_t chempi_import_node(struct chempi_import *import, const char *name);
uint32_t chempi_import_network(struct chempi_import *import, const char *name,
                               const char *type, const char *remark);
/* Nothing happens when the node is attached there already. */
void chempi_import_attach(struct chempi_import *import, uint32_t network,
                          uint32_t node, const char *address,
                          const char *interface);
/* The type of network that a name like "ib0" or "myri" speaks of. */
const char *chempi_import_guess_type(const char *name);

/* A text source, line by line. */
struct chempi_import_text {
    const char *file; /* as errors name it */
    FILE *stream;
    char *line; /* without the newline */
    size_t room;
    size_t number; /* of the line, from 1 */
    struct chempi_err *err;
};

/* Errors: -errno of fopen(). */
int chempi_import_text_open(struct chempi_import_text *text, const char *file,
                            struct chempi_err *err);
/* 1: a line; 0: the end; -EINVAL: not a text; -errno. */
int chempi_import_text_next(struct chempi_import_text *text);
void chempi_import_text_close(struct chempi_import_text *text);
/* "file:line:column: expected WHAT, found '...'"; `at` lies in the line.
 * Returns -EINVAL. */
int chempi_import_expected(const struct chempi_import_text *text,
                           const char *at, const char *what);
/* Is it a name as chempi-network(5) wants it, and no word such as "all"? */
bool chempi_import_is_name(const char *name, size_t len);
/* The same for a word of the line, with words. */
int chempi_import_check_name(const struct chempi_import_text *text,
                             const char *at, size_t len, const char *what);

/* The sources. Errors: -EINVAL with file, line and column; -errno. */
int chempi_import_local(struct chempi_import *import, struct chempi_err *err);
int chempi_import_hosts(struct chempi_import *import, const char *file,
                        struct chempi_err *err);
int chempi_import_scontrol(struct chempi_import *import, const char *file,
                           struct chempi_err *err);
int chempi_import_topology(struct chempi_import *import, const char *file,
                           struct chempi_err *err);

/* Write the description; nodes without a network join one called "lan". */
void chempi_import_write(struct chempi_import *import, FILE *out);

#endif
