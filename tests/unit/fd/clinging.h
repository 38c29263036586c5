/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A descriptor that somebody passes over a Unix socket: of a connection that
 * keeps its last closer waiting for an hour.
 */
#ifndef CHEMPI_TESTS_UNIT_FD_CLINGING_H
#define CHEMPI_TESTS_UNIT_FD_CLINGING_H

#include <stddef.h>

/* With `len` bytes, 0 or 1; whoever takes it has the only one. */
void clinging_pass(int to, size_t len);

#endif
