/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What launchers that are not ours offer to a process: who it is, a store of
 * text under keys, a fence after which all have what was put before, and an
 * end. One member for each protocol; guest.c makes of it what a supervisor of
 * ours would do. One process, one thread at a time, one store.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_STORE_H
#define CHEMPI_LIBCHEMPI_DIDL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_STORE_KEY_MAX 64      /* bytes with the terminating zero */
#define CHEMPI_STORE_VALUE_MAX 16384 /* the same; the most that one takes */
/* Launchers and their proxies answer at once; who is silent for so long is
 * taken for lost. */
#define CHEMPI_STORE_LIMIT_MS 60000

struct chempi_store_self {
    uint32_t rank;
    uint32_t size;
    uint32_t app_num;
    uint32_t universe_size; /* 0: not said */
    size_t value_max;       /* bytes of one value with its zero */
};

struct chempi_store_ops {
    const char *name; /* "PMI-1" */
    /* Connect. May block for CHEMPI_STORE_LIMIT_MS. -errno with words. */
    int (*open)(struct chempi_store_self *self, struct chempi_err *err);
    /* Without finalize(): the launcher may take it for a bad end. */
    void (*close)(void);
    /* Letters, digits, '-', '_' and '.' only. Blocks like open(). */
    int (*put)(const char *key, const char *value);
    /* Of a process whose put() came before a fence that has passed. -ENOENT,
     * -EPIPE. Blocks like open(). */
    int (*get)(uint32_t rank, const char *key, char *value, size_t room);
    /* Enter a fence; one at a time. Does not block. */
    int (*fence)(void);
    /* Look whether it has passed: 1, 0: not yet, -errno: lost. Does not
     * block. */
    int (*fenced)(void);
    /* Outside of a fence: 0, or -EPIPE when the launcher is lost. Does not
     * block. */
    int (*look)(void);
    /* Readable when fenced() or look() may have changed. */
    int (*fd)(void);
    /* The launcher ends the job; may not return. The text is one line. */
    int (*abort)(int exit_code, const char *text);
    /* This process may end from now on. Once; blocks like open(). */
    int (*finalize)(void);
};

extern const struct chempi_store_ops chempi_store_pmi1;
extern const struct chempi_store_ops chempi_store_pmi2;
extern const struct chempi_store_ops chempi_store_pmix;

/* Was this library built with PMIx, and can libpmix be loaded? */
bool chempi_store_pmix_is_there(void);

#endif
