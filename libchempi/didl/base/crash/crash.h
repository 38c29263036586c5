/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a crash says: a signal that ends the process (SIGSEGV, SIGBUS, SIGFPE,
 * SIGILL, SIGABRT) first prints the calls on the stack with their names to
 * standard error. The signal then does what it would have done: exit status
 * and core dump are as ever.
 *
 *   Y1  a signal for which the program, or a sanitizer, has a handler is left
 *       alone; what the program sets later wins
 *   -   the handler allocates nothing, takes no lock of ours, and runs on a
 *       stack of its own in the thread that has started MPI
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CRASH_H
#define CHEMPI_LIBCHEMPI_DIDL_CRASH_H

#include <signal.h>
#include <stddef.h>

/* What this thread does for another process just now, NULL if nothing: puts
 * words that a crash of it tells, without memory and locks. */
typedef void chempi_crash_duty_fn(char *buf, size_t len);
extern _Thread_local chempi_crash_duty_fn *volatile chempi_crash_duty;

/* Take the signals that faults raise out of a set that a thread of the library
 * blocks: a fault whose signal is blocked ends the process without a word. */
void chempi_crash_let_faults(sigset_t *set);

/* Begin, if the setting crash_backtrace is on. What is told begins with the
 * place of this process ("rank 3 on node a2"), which stays where it is. */
void chempi_crash_watch(const char *place);
/* Give back what nobody has changed meanwhile. */
void chempi_crash_unwatch(void);

#endif
