/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for keys; see secret.h. */
#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include "common/auth/secret.h"

#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/sys.h"

static size_t whole_pages(size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (len + page - 1) / page * page;
}

void *chempi_secret_create(size_t len)
{
    const size_t size = whole_pages(len);
    void *secret = chempi_sys->mmap(NULL, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (secret == MAP_FAILED)
        return NULL;
    (void)madvise(secret, size, MADV_WIPEONFORK); /* where the kernel can */
    (void)madvise(secret, size, MADV_DONTDUMP);
    return secret;
}

void chempi_secret_destroy(void *secret, size_t len)
{
    if (!secret)
        return;
    sodium_memzero(secret, len);
    (void)chempi_sys->munmap(secret, whole_pages(len)); /* cannot fail */
}
