/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only place for compiler extensions (style: C11 elsewhere).
 */
#ifndef CHEMPI_COMMON_BASE_COMPILER_H
#define CHEMPI_COMMON_BASE_COMPILER_H

#include <stddef.h>

#define CHEMPI_LIKELY(x) __builtin_expect(!!(x), 1)
#define CHEMPI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CHEMPI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CHEMPI_NORETURN __attribute__((noreturn))
#define CHEMPI_INLINE static inline __attribute__((always_inline))
#define CHEMPI_NOINLINE __attribute__((noinline))
#define CHEMPI_COLD __attribute__((cold, noinline))
#define CHEMPI_MAY_ALIAS __attribute__((may_alias))
/* Runs when the library is loaded. */
#define CHEMPI_AT_LOAD __attribute__((constructor))
/* Runs when the library is unloaded or the process exits. */
#define CHEMPI_AT_UNLOAD __attribute__((destructor))
#define CHEMPI_EXPORT __attribute__((visibility("default")))
#define CHEMPI_WEAK_ALIAS(target) __attribute__((weak, alias(target)))

/* Where the function that this stands in returns to. */
#define CHEMPI_RETURN_ADDRESS() __builtin_return_address(0)
#define CHEMPI_CACHE_LINE 64 /* bytes */

/* Number of the lowest set bit of a 64-bit value that is not 0. */
#define CHEMPI_LOWEST_BIT(x) ((uint32_t)__builtin_ctzll(x))
/* The same of the highest bit that is set. */
#define CHEMPI_HIGHEST_BIT(x) (63u - (uint32_t)__builtin_clzll(x))

#define CHEMPI_CONTAINER_OF(ptr, type, member)                                 \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* *out = a + b or a * b, of any integer types; true when it does not fit. */
#define CHEMPI_ADD_OVERFLOWS(a, b, out) __builtin_add_overflow((a), (b), (out))
#define CHEMPI_MUL_OVERFLOWS(a, b, out) __builtin_mul_overflow((a), (b), (out))

#define CHEMPI_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Fetch a cache line that will be read soon; a hint. */
#define CHEMPI_PREFETCH(p) __builtin_prefetch(p)

/* Fetch a cache line that will be written soon; a hint. On x86 the builtin
 * would not ask for ownership unless told the exact processor. */
#if defined(__x86_64__)
#define CHEMPI_PREFETCH_WRITE(p)                                               \
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)(p)))
#else
#define CHEMPI_PREFETCH_WRITE(p) __builtin_prefetch((p), 1, 3)
#endif

#if defined(__x86_64__) || defined(__i386__)
#define CHEMPI_CPU_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CHEMPI_CPU_RELAX() __asm__ __volatile__("yield" ::: "memory")
#else
#define CHEMPI_CPU_RELAX() __asm__ __volatile__("" ::: "memory")
#endif

/* Has this processor these instructions? Not before constructors run. */
#if defined(__x86_64__)
#define CHEMPI_CPU_HAS(name) __builtin_cpu_supports(name)
#endif

/* 128-bit numbers, which C11 has no names for. */
__extension__ typedef __int128 chempi_i128;
__extension__ typedef unsigned __int128 chempi_u128;
#if defined(__x86_64__)
__extension__ typedef __float128 chempi_f128; /* IEEE binary128 */
#else
typedef long double chempi_f128; /* binary128 on the other targets */
#endif

#endif
