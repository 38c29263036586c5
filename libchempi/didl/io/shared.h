/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared file pointers (MPI 5.0, section 14.4.4), kept by member 0. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_SHARED_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_SHARED_H

#include <stdint.h>

struct chempi_file;

void chempi_io_shared_init(void);

/* Before anybody can ask, and after nobody will. Collective. */
int chempi_io_shared_open(struct chempi_file *file);
void chempi_io_shared_close(struct chempi_file *file);

/* Add `count` etypes to the shared pointer; *before is where it was. Waits for
 * member 0 to make progress. */
int chempi_io_shared_add(struct chempi_file *file, uint64_t count,
                         uint64_t *before);
/* At member 0 only. */
void chempi_io_shared_set(struct chempi_file *file, uint64_t at);

#endif
