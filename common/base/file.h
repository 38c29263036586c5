/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files, of /proc and /sys above all. */
#ifndef CHEMPI_COMMON_BASE_FILE_H
#define CHEMPI_COMMON_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* The first size - 1 bytes of a file, with a zero behind them. Returns how
 * many, or -errno; then the text is empty. size is at least 1. */
ssize_t chempi_file_read(const char *path, char *text, size_t size);

#endif
