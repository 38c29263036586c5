/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attribute caching (MPI 5.0, section 7.7). An object keeps a pointer to its
 * attributes, NULL while it has none. Callbacks run without any lock held.
 * Functions return MPI_SUCCESS, an error class, or what a callback returned.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ATTR_H
#define CHEMPI_LIBCHEMPI_DIDL_ATTR_H

#include <mpi.h>

#include "common/base/list.h"

enum chempi_attr_kind { CHEMPI_ATTR_COMM, CHEMPI_ATTR_TYPE, CHEMPI_ATTR_WIN };

struct chempi_attrs {
    struct chempi_list list; /* of attributes, in the order they were set */
};

/* Where attributes hang: the kind of object, the user's handle for callbacks,
 * and the object's pointer. */
struct chempi_attr_place {
    enum chempi_attr_kind kind;
    void *handle;
    struct chempi_attrs **attrs;
};

int chempi_attr_set(struct chempi_attr_place place, int keyval, void *value);
int chempi_attr_get(struct chempi_attr_place place, int keyval, void **value,
                    int *flag);
int chempi_attr_delete(struct chempi_attr_place place, int keyval);

/* Run the copy callbacks of `from`, as MPI_Comm_dup does; on failure `to`
 * keeps what was copied before, for chempi_attr_delete_all(). */
int chempi_attr_copy_all(struct chempi_attr_place from,
                         struct chempi_attr_place to);

/* Run the delete callbacks, latest attribute first. When one fails, it and
 * the earlier ones stay, and its result is returned. */
int chempi_attr_delete_all(struct chempi_attr_place place);

/* The same two for the objects of the floors above, by their own rooms. */
struct chempi_comm;
struct chempi_datatype;
int chempi_attr_copy_comm(struct chempi_comm *from, struct chempi_comm *to);
int chempi_attr_clear_comm(struct chempi_comm *comm);
int chempi_attr_copy_type(struct chempi_datatype *from,
                          struct chempi_datatype *to);
int chempi_attr_clear_type(struct chempi_datatype *type);

/* Give back memory without callbacks; accepts a NULL pointer inside. */
void chempi_attr_drop_all(struct chempi_attrs **attrs);

#endif
