/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From addresses in files to lines of the source. Debug information is read by
 * addr2line, which is where compilers are.
 */
#ifndef CHEMPI_COMMON_WORDS_SOURCE_LINE_H
#define CHEMPI_COMMON_WORDS_SOURCE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ring.c:12" for an address in a file's own numbering (symbol.h); false: there
 * is no debug information, no file or no addr2line. Starts a process, without
 * this one's environment, and waits for it. */
bool chempi_source_line(const char *path, uint64_t address, char *out,
                        size_t len);

#endif
