/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a text; see edit.h. */
#include "mdconfig/description/edit.h"

#include <stdlib.h>
#include <string.h>

void chempi_edits_add(struct chempi_edits *edits, size_t at, size_t remove,
                      const char *insert)
{
    edits->list = chempi_mem_grow(edits->list, edits->count, &edits->room,
                                  sizeof(*edits->list));
    edits->list[edits->count++] = (struct chempi_edit){
        .at = at,
        .remove = remove,
        .insert = chempi_arena_text(&edits->arena, insert),
    };
}

static int order_places(const void *a, const void *b)
{
    const struct chempi_edit *x = a;
    const struct chempi_edit *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

char *chempi_edits_apply(struct chempi_edits *edits, const char *text,
                         size_t len, size_t *out_len, size_t *where)
{
    size_t total = len;
    size_t done = 0; /* bytes of text */
    size_t n = 0;
    char *out;

    if (edits->count > 1)
        qsort(edits->list, edits->count, sizeof(*edits->list), order_places);
    for (size_t i = 0; i < edits->count; i++) {
        const struct chempi_edit *e = &edits->list[i];

        if (i > 0 && (e->at < done || e->at == e[-1].at)) {
            *where = e->at;
            return NULL;
        }
        total += strlen(e->insert);
        done = e->at + e->remove;
    }
    out = chempi_mem_get(total + 1, 1);
    done = 0;
    for (size_t i = 0; i < edits->count; i++) {
        const struct chempi_edit *e = &edits->list[i];
        size_t insert = strlen(e->insert);

        memcpy(out + n, text + done, e->at - done);
        n += e->at - done;
        memcpy(out + n, e->insert, insert);
        n += insert;
        done = e->at + e->remove;
    }
    memcpy(out + n, text + done, len - done);
    *out_len = n + len - done;
    return out;
}

void chempi_edits_fini(struct chempi_edits *edits)
{
    free(edits->list);
    chempi_arena_fini(&edits->arena);
    *edits = (struct chempi_edits){.count = 0};
}
