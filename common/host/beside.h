/* SPDX-License-Identifier: BSD-3-Clause */
/* What is installed together with this program. */
#ifndef CHEMPI_COMMON_HOST_BESIDE_H
#define CHEMPI_COMMON_HOST_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

#define CHEMPI_BESIDE_LIBEXEC "/../libexec/chempi/"

/* The folder of this program, without a slash at its end; false: it cannot be
 * found, or is longer, and is "" then. */
bool chempi_beside_folder(char *folder, size_t size);

/* Become a program that lies beside this one, or where it is installed.
 * Returns only when there is none that can be executed. */
void chempi_beside_execute(const char *name, char *const *argv);

#endif
