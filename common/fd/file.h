/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files, of /proc and /sys above all; all of a descriptor's bytes. */
#ifndef CHEMPI_COMMON_FD_FILE_H
#define CHEMPI_COMMON_FD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* The first size - 1 bytes of a file, with a zero behind them. Returns how
 * many, or -errno; then the text is empty. size is at least 1. */
ssize_t chempi_file_read(const char *path, char *text, size_t size);

/* All of it, whatever the calls of the system leave over: 0 or -errno; -EPIPE
 * when the other end has less. */
int chempi_file_write_all(int fd, const void *data, size_t len);
int chempi_file_read_all(int fd, void *data, size_t len);

/* Is it root's or this user's? The second: and may nobody else write it? */
bool chempi_file_is_ours(const struct stat *st);
bool chempi_file_is_safe(const struct stat *st);

/* The number of a file, as of a namespace; 0: it cannot be had. */
uint64_t chempi_file_inode(const char *path);

/* Which kernel this is, and which of its network name spaces; all 0: that
 * cannot be had. */
#define CHEMPI_FILE_HOST_BYTES 16u
void chempi_file_host(uint8_t host[CHEMPI_FILE_HOST_BYTES]);

/* Bytes that a file may have, UINT64_MAX: any number. Who makes one longer gets
 * SIGXFSZ, files in memory included. */
uint64_t chempi_file_size_limit(void);

/* Give the bytes of a file from `at` on their pages, so that lack of them is no
 * signal later. 0 or -errno; then none have come. Signals wait meanwhile if
 * they must. */
int chempi_file_reserve(int fd, uint64_t at, uint64_t len);

/* Let standard input and output go; both are /dev/null then. 0 or -errno. */
int chempi_file_leave_streams(void);

/* Close what has no late errors; nothing below 0. */
void chempi_file_close(int fd);

#endif
