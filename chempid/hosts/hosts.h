/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of nodes as users write them: "a,b:4" on a command line, or a file
 * with a node per line:
 *
 *     # comment
 *     a
 *     b:4
 *     c slots=2
 *
 * The number says how many ranks the node is meant for. A file may name a
 * node on several lines; their numbers (1 where there is none) are added.
 */
#ifndef CHEMPI_CHEMPID_HOSTS_H
#define CHEMPI_CHEMPID_HOSTS_H

#include <stdint.h>

#include "chempid/tree/pool.h"
#include "common/base/err.h"
#include "common/containers/index.h"

struct chempi_hosts { /* all zero: empty; arrays are in the pool */
    char **names;     /* [count], then NULL */
    uint32_t *slots;  /* [count]; 0: not said */
    uint32_t count;
    uint32_t cap;
    struct chempi_index index; /* by name */
};

/* What was added stays in the pool; nothing can be added any more. */
void chempi_hosts_fini(struct chempi_hosts *h);

/* Add one word of a list. -EINVAL with words: no name of a node, no number, or
 * a name that is there; -ENOMEM, -ENOBUFS. */
int chempi_hosts_add(struct chempi_hosts *h, struct chempi_pool *pool,
                     const char *word, struct chempi_err *err);
/* The place of a name, or CHEMPI_INDEX_NONE. */
uint32_t chempi_hosts_find(const struct chempi_hosts *h, const char *name);
/* Add all words of a list with commas. */
int chempi_hosts_list(struct chempi_hosts *h, struct chempi_pool *pool,
                      const char *text, struct chempi_err *err);
/* Add all lines of a file; words name file and line. */
int chempi_hosts_read(struct chempi_hosts *h, struct chempi_pool *pool,
                      const char *path, struct chempi_err *err);

#endif
