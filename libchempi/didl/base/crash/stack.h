/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that a thread is in, for those who want to know where a program
 * hangs. Its stack may end anywhere and hold anything: the frames are read by
 * a child that shares this process's memory and may crash.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BASE_CRASH_STACK_H
#define CHEMPI_LIBCHEMPI_DIDL_BASE_CRASH_STACK_H

#include <stddef.h>

/*
 * The calls of the program that have led to the innermost MPI function on this
 * thread's stack, the innermost first, a line each: "solve+0x40 (heat+0x13fc)",
 * and "heat+0x11d3" where there is no name. At most `most` lines and len bytes,
 * whole lines only; "" when nothing is known. None of main's callers.
 */
void chempi_stack_put(char *out, size_t len, unsigned most);

#endif
