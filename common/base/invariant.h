/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of invariants. A header that numbers its invariants has a function
 * chempi_<x>_check() beside its others: NULL, or which invariant does not hold,
 * in words. It is always there, for tests and for debuggers; the calls of it in
 * the code are compiled in by -Dinvariants=true only. They stand where an
 * operation is over, not inside loops.
 */
#ifndef CHEMPI_COMMON_BASE_INVARIANT_H
#define CHEMPI_COMMON_BASE_INVARIANT_H

#include <stdatomic.h>
#include <stdint.h>

/* Ends the process with the words, unless they are NULL. */
void chempi_invariant_hold(const char *broken, const char *file, int line);

/*
 * CHEMPI_CHECK(chempi_x_check(x)); without the option nothing is called.
 * CHEMPI_CHECK_EVERY(n, ...): the first time, and then every nth, where a check
 * looks at more than the operation has touched.
 */
#ifdef CHEMPI_INVARIANTS
#define CHEMPI_CHECK(broken) chempi_invariant_hold((broken), __FILE__, __LINE__)
#define CHEMPI_CHECK_EVERY(n, broken)                                          \
    do {                                                                       \
        static _Atomic uint32_t turn_;                                         \
                                                                               \
        if (atomic_fetch_add_explicit(&turn_, 1, memory_order_relaxed) %       \
                (n) ==                                                         \
            0)                                                                 \
            CHEMPI_CHECK(broken);                                              \
    } while (0)
#else
#define CHEMPI_CHECK(broken) ((void)sizeof(broken))
#define CHEMPI_CHECK_EVERY(n, broken) ((void)sizeof(broken))
#endif

#endif
