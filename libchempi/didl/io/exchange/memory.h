/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of exchanges, which is large, short-lived and wanted again: fresh
 * pages cost more than what is copied into them. One block is kept for the
 * next exchange of any file. Threads: any.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_MEMORY_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_MEMORY_H

#include <stdint.h>

/* At least len bytes, whatever they hold, at an address for any type and a
 * line of the cache; NULL: there are none. */
char *chempi_io_memory_take(uint64_t len);

/* Give it back; NULL does nothing. */
void chempi_io_memory_give(char *memory);

/* Keep nothing: the library ends. */
void chempi_io_memory_fini(void);

#endif
