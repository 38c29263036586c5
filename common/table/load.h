/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a node's table from the directory that mdconfig compile wrote: the
 * file of the node, with the parts that it shares with other nodes.
 */
#ifndef CHEMPI_COMMON_TABLE_LOAD_H
#define CHEMPI_COMMON_TABLE_LOAD_H

#include <stddef.h>

#include "common/base/err.h"

#define CHEMPI_TABLE_SUFFIX ".chempi"     /* DIR/<node>.chempi */
#define CHEMPI_TABLE_SHARED_DIR "shared"  /* DIR/shared/ */
#define CHEMPI_TABLE_FILE_MAX (64u << 20) /* bytes of one file at most */

/*
 * The whole image for chempi_table_open(); *data is malloc'ed and the
 * caller's. Errors: -errno of open or read, -EBADMSG, -EPROTO, -EFBIG,
 * -ENOMEM; -ESTALE: the file is there, a shared part that it names is not.
 * Reads files, so it may block as the file system does.
 */
int chempi_table_load(const char *path, void **data, size_t *len,
                      struct chempi_err *err);

#endif
