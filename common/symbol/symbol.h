/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From an address of this process to a name, for backtraces: by the list of
 * mappings and the symbol tables of their files. Needs no memory but the
 * stack, takes no lock and is safe in handlers of signals.
 */
#ifndef CHEMPI_COMMON_WORDS_SYMBOL_H
#define CHEMPI_COMMON_WORDS_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHEMPI_SYMBOL_PATH = 512, CHEMPI_SYMBOL_NAME = 96 /* bytes */ };

struct chempi_symbol {
    char path[CHEMPI_SYMBOL_PATH]; /* of the file; cut: "" */
    char name[CHEMPI_SYMBOL_NAME]; /* of the function, maybe cut; "" */
    uint64_t offset;               /* in the function, bytes */
    uint64_t address;              /* in the file's own numbering, as for
                                      addr2line; 0: the file is no ELF */
};

/* False: no file is mapped there. */
bool chempi_symbol_find(const void *address, struct chempi_symbol *out);

/* The last part of a path. */
const char *chempi_symbol_base(const char *path);

/*
 * "main+0x1f (ring)", or "ring+0x11f3" without a name, or the bare address; in
 * at most len bytes. Returns out.
 */
char *chempi_symbol_words(const void *address, char *out, size_t len);

#endif
