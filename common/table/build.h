/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a table: the writer's side of table.h, used by mdconfig and by the
 * daemon. A directory and the routes of a class are built apart, since many
 * nodes share them, and put together with the node's own part.
 *
 * Builders remember the first failure of their add functions (out of memory,
 * a limit, an invalid argument), so that only finish() need be checked. Not
 * thread-safe; nothing blocks. Strings are copied.
 */
#ifndef CHEMPI_COMMON_TABLE_BUILD_H
#define CHEMPI_COMMON_TABLE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/table/table.h"

struct chempi_blob { /* one part, malloc'ed */
    unsigned char *data;
    size_t len; /* bytes */
};

/* Forget the bytes; the blob is empty afterwards. */
void chempi_blob_fini(struct chempi_blob *blob);

/* ---- directory ---------------------------------------------------------- */

struct chempi_dir_builder;

/* NULL when there is no memory. */
struct chempi_dir_builder *chempi_dir_builder_create(void);
void chempi_dir_builder_destroy(struct chempi_dir_builder *b);

void chempi_dir_builder_set_cluster(struct chempi_dir_builder *b,
                                    const char *name);
/* Networks and nodes are numbered in the order of the calls. */
void chempi_dir_builder_add_network(struct chempi_dir_builder *b,
                                    const char *name, const char *type,
                                    const char *device);
/* slots 1..65535; 0: nobody has said, which is read as 1 */
void chempi_dir_builder_add_node(struct chempi_dir_builder *b, const char *name,
                                 uint32_t node_class, uint32_t slots,
                                 bool gateway);
/* Attach the node added last; address and interface may be NULL. */
void chempi_dir_builder_attach(struct chempi_dir_builder *b, uint32_t network,
                               const char *address, const char *interface);

/* Errors: -ENOMEM; -EINVAL (no node, a name twice, a bad argument). */
int chempi_dir_builder_finish(struct chempi_dir_builder *b,
                              struct chempi_blob *out, struct chempi_err *err);

/* ---- routes of one class of nodes --------------------------------------- */

struct chempi_routes_builder;

/* Lists are numbered by destination class, the one behind the last class is
 * the node itself; those never begun are unreachable. */
struct chempi_routes_builder *
chempi_routes_builder_create(uint32_t own_class, uint32_t class_count);
void chempi_routes_builder_destroy(struct chempi_routes_builder *b);

/* Begin the list of a destination; its ranges follow in ascending order. */
void chempi_routes_builder_begin(struct chempi_routes_builder *b,
                                 uint32_t list);
/* The destination has the same ranges as a list that was built before. */
void chempi_routes_builder_repeat(struct chempi_routes_builder *b,
                                  uint32_t list, uint32_t same_as);
/* A range of the list begun last; its stages follow. */
void chempi_routes_builder_add_range(struct chempi_routes_builder *b,
                                     uint64_t max_len, double cost_us,
                                     uint32_t chunk, uint32_t share_count);
/* A stage of the range added last; hops NULL for the last stage. */
void chempi_routes_builder_add_stage(struct chempi_routes_builder *b,
                                     uint32_t network, const char *device,
                                     const char *protocol, const uint32_t *hops,
                                     uint32_t hop_count);

/* What the stage added last costs; without, nobody knows. */
void chempi_routes_builder_set_times(struct chempi_routes_builder *b,
                                     const struct chempi_table_times *times);

/* Errors: -ENOMEM, -EINVAL. */
int chempi_routes_builder_finish(struct chempi_routes_builder *b,
                                 struct chempi_blob *out,
                                 struct chempi_err *err);

/* ---- putting together --------------------------------------------------- */

/*
 * The NODE part of node `self`. routes_file and dir_file name the files of
 * the shared parts (at most 31 bytes), or are NULL when the parts follow in
 * the same file.
 */
int chempi_table_build_node(uint32_t self, uint32_t self_class,
                            const struct chempi_blob *routes,
                            const struct chempi_blob *dir,
                            const char *routes_file, const char *dir_file,
                            struct chempi_blob *out);

/* A whole table in one piece: node, routes, directory; what
 * chempi_table_open() takes. */
int chempi_table_build_image(uint32_t self, uint32_t self_class,
                             const struct chempi_blob *routes,
                             const struct chempi_blob *dir,
                             struct chempi_blob *out);

/*
 * The table of node `self` of a cluster without a description: `count` nodes,
 * device shm inside a node (network "smp") and tcp between nodes (network
 * "default", type "ethernet"), both with default figures; no addresses.
 * *data is malloc'ed and the caller's.
 * Errors: -ENOMEM; -EINVAL (no node, an empty name, a name twice).
 */
int chempi_table_build_default(const char *const *names, uint32_t count,
                               uint32_t self, void **data, size_t *len,
                               struct chempi_err *err);

#endif
