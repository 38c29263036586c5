/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attribute caching (MPI 5.0, section 7.7). An object keeps a pointer to its
 * attributes, NULL while it has none. Callbacks run without any lock held.
 * Functions return MPI_SUCCESS, an error class, or what a callback returned.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ATTR_H
#define CHEMPI_LIBCHEMPI_DIDL_ATTR_H

#include "common/containers/list.h"

struct chempi_object;

struct chempi_attrs {
    struct chempi_list list; /* of attributes, in the order they were set */
};

/* Run the copy callbacks of `from`, as MPI_Comm_dup does; on failure `to`
 * keeps what was copied before, for chempi_attr_end_all(). */
int chempi_attr_copy_all(struct chempi_object *from, struct chempi_object *to);

/* Run the delete callbacks, latest attribute first. When one fails, it and
 * the earlier ones stay, and its result is returned. */
int chempi_attr_delete_all(struct chempi_object *object);

/* The same where the object goes in any case: what a callback returns stops
 * nothing. */
void chempi_attr_end_all(struct chempi_object *object);

/* Give back memory without callbacks; accepts a NULL pointer inside. */
void chempi_attr_drop_all(struct chempi_attrs **attrs);

#endif
