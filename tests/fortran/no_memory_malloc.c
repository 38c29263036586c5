/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * malloc and calloc that fail once on demand: the program's own come before
 * the C library's in every library that it loads. Only the thread that asked
 * for it is failed, so that what others do meanwhile does not count.
 */
#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

static _Thread_local int left; /* allocations up to the one that fails */
static _Thread_local int failed;

static int is_failing(void)
{
    if (left == 0 || --left > 0)
        return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return is_failing() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return is_failing() ? NULL : __libc_calloc(n, size);
}

/* The which-th allocation from now on fails, which >= 1. */
void no_memory_arm(int which)
{
    failed = 0;
    left = which;
}

/* Has it been reached? None fails any more. */
int no_memory_disarm(void)
{
    left = 0;
    return failed;
}
