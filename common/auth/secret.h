/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for keys: whole pages that core dumps leave out and that a forked
 * child finds empty (where the kernel can do so, Linux 4.14), wiped before
 * they are given back. */
#ifndef CHEMPI_COMMON_AUTH_SECRET_H
#define CHEMPI_COMMON_AUTH_SECRET_H

#include <stddef.h>

/* Zeroed memory for `len` bytes; NULL: there is none, errno says why. */
void *chempi_secret_create(size_t len);
/* With the same length; NULL is allowed. */
void chempi_secret_destroy(void *secret, size_t len);

#endif
