/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbered slots: names for our messages that a peer may hold. A token is the
 * slot's number in the low half and its generation in the high half, so a
 * token that is made up or worn out finds nothing.
 *
 *   L1  generation > 0, and changes whenever a slot is freed
 *   L2  a slot is free exactly when its ptr is NULL, and then on the list of
 *       free ones
 *
 * chempi_handle_table_check() looks at both.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_HANDLE_TABLE_H
#define CHEMPI_LIBCHEMPI_SERVICES_HANDLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct chempi_slot {
    void *ptr;
    uint32_t generation;
    uint32_t next_free; /* number + 1; 0: none */
};

/* All zero is an empty set. */
struct chempi_handle_table {
    struct chempi_slot *at;
    uint32_t count;
    uint32_t used;
    uint32_t free_slot; /* number + 1; 0: none */
};

/* Name ptr (not NULL); 0 or -ENOMEM. */
int chempi_handle_table_put(struct chempi_handle_table *slots, void *ptr,
                            uint64_t *token);
/* Whether the next one can be named without memory; takes some if need be. */
bool chempi_handle_table_has_room(struct chempi_handle_table *slots);
/* What the token names, or NULL. */
void *chempi_handle_table_get(const struct chempi_handle_table *slots,
                              uint64_t token);
/* The same, and forget it. */
void *chempi_handle_table_take(struct chempi_handle_table *slots,
                               uint64_t token);
/* Is the token worn out: did it name something that was taken? */
bool chempi_handle_table_is_past(const struct chempi_handle_table *slots,
                                 uint64_t token);
/* What is named at *place or after it, NULL when nothing is; *place is then the
 * place behind it. Begin with 0; slots may be put and taken in between. */
void *chempi_handle_table_next(const struct chempi_handle_table *slots,
                               uint32_t *place);
/* Forget any one of them and return it; NULL when there is none. */
void *chempi_handle_table_pop(struct chempi_handle_table *slots);
void chempi_handle_table_fini(struct chempi_handle_table *slots);
/* NULL, or what does not hold (invariant.h). */
const char *chempi_handle_table_check(const struct chempi_handle_table *slots);

#endif
