/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a text by position, collected in any order, then made at once. */
#ifndef CHEMPI_MDCONFIG_EDIT_H
#define CHEMPI_MDCONFIG_EDIT_H

#include <stddef.h>

#include "mdconfig/description/mem.h"

struct chempi_edit {
    size_t at;     /* byte of the text */
    size_t remove; /* bytes from there */
    const char *insert;
};

struct chempi_edits { /* zero-initialised: none */
    struct chempi_edit *list;
    size_t count;
    size_t room;
    struct chempi_arena arena; /* of what is inserted */
};

/* Replace `remove` bytes at `at` by a copy of `insert`. */
void chempi_edits_add(struct chempi_edits *edits, size_t at, size_t remove,
                      const char *insert);
/*
 * The text with all changes made, with a zero behind it; free() releases it.
 * NULL when two changes overlap or stand at the same place: *where is that
 * place then.
 */
char *chempi_edits_apply(struct chempi_edits *edits, const char *text,
                         size_t len, size_t *out_len, size_t *where);
void chempi_edits_fini(struct chempi_edits *edits);

#endif
