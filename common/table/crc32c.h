/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C (Castagnoli, reflected): the checksum of a connection table. It
 * finds damage, not forgery. */
#ifndef CHEMPI_COMMON_TABLE_CRC32C_H
#define CHEMPI_COMMON_TABLE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of `len` bytes; thread-safe, never fails. */
uint32_t chempi_crc32c(const void *data, size_t len);

#endif
