/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has called an MPI function, for tools that stand between program and
 * library: Fortran programs come through libmpifort_abi, whose generated code
 * means nothing to their authors.
 */
#ifndef CHEMPI_COMMON_WORDS_CALLER_H
#define CHEMPI_COMMON_WORDS_CALLER_H

/* `from` is where a function on this thread's stack returns to. Where it lies
 * in the Fortran library, where that returns to, found by unwinding the stack;
 * else `from` itself, for the price of a comparison. A Fortran library that was
 * loaded after the first call is not known. Threads may call it. */
const void *chempi_caller_in_program(const void *from);

#endif
