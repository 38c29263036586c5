/* SPDX-License-Identifier: BSD-3-Clause */
/* The datatype's struct (MPI 5.0, chapter 5), apart from its constructors. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_DATATYPE_H
#define CHEMPI_LIBCHEMPI_DIDL_DATATYPE_H

#include <mpi.h>
#include <stdatomic.h>

#include "libchempi/didl/base/object.h"
#include "libchempi/services/layout/segment.h"

struct chempi_attrs;
struct chempi_datatype_recipe; /* envelope and contents, datatype module */

struct chempi_datatype {
    struct chempi_object obj;
    bool is_contiguous; /* packed bytes of count elements are consecutive from
                           base + true_lb, and size == extent */
    bool is_committed;
    bool is_predefined;
    uint8_t elem_kind;  /* enum chempi_basic_type when made of one basic type */
    uint16_t align;     /* bytes; strictest alignment among its basic types */
    MPI_Count elements; /* basic elements in it */
    MPI_Count size;     /* packed bytes of one element */
    MPI_Count lb;
    MPI_Count extent; /* ub - lb */
    MPI_Count true_lb;
    MPI_Count true_extent;
    const struct chempi_layout *layout; /* set by commit; NULL when
                                           contiguous */
    /* 1 + how many elements in a row do not overlap (layout_apart.h), found
     * out when it is asked first; 0: it has not been. */
    _Atomic uint64_t apart;
    struct chempi_datatype_recipe *recipe;
    struct chempi_attrs *attrs;
    MPI_Datatype handle;
    char name[MPI_MAX_OBJECT_NAME];
};

/* Predefined types by the low byte of their handle, 0x200 to 0x2ff; an
 * unused entry has magic 0. MPI_DATATYPE_NULL's entry has magic 0. */
extern struct chempi_datatype chempi_datatype_predefined[256];

/* NULL when the handle names no datatype. */
static inline struct chempi_datatype *
chempi_datatype_lookup(MPI_Datatype handle)
{
    uintptr_t h = (uintptr_t)handle;
    struct chempi_datatype *type = (struct chempi_datatype *)(void *)handle;

    if (CHEMPI_LIKELY(h - 0x200u < 0x100u))
        type = &chempi_datatype_predefined[h - 0x200u];
    else if (!chempi_handle_is_address(handle))
        return NULL;
    return type->obj.magic == CHEMPI_MAGIC_DATATYPE ? type : NULL;
}

/* Pending operations hold user-made types only. */
static inline void chempi_datatype_hold(struct chempi_datatype *type)
{
    if (!type->is_predefined)
        chempi_object_hold(&type->obj);
}

/* Make datatypes known to attributes; before the library is up. */
void chempi_datatype_prepare(void);

/* Drop one reference; destroys at the last. */
void chempi_datatype_release(struct chempi_datatype *type);

/* Do `count` elements of a committed type lie apart in memory, so that all of
 * them can be written? */
bool chempi_datatype_find_apart(struct chempi_datatype *type, MPI_Count count);
static inline bool chempi_datatype_is_apart(struct chempi_datatype *type,
                                            MPI_Count count)
{
    return CHEMPI_LIKELY(type->is_contiguous) || !type->layout ||
           chempi_datatype_find_apart(type, count);
}

/* Copy scount elements of stype at src to at most rcount elements of rtype at
 * dst, as a message would be (used by collectives and self messages).
 * Regions do not overlap. 0 or MPI_ERR_TRUNCATE. */
int chempi_datatype_copy(const void *src, MPI_Count scount,
                         struct chempi_datatype *stype, void *dst,
                         MPI_Count rcount, struct chempi_datatype *rtype);

/* Packed bytes [at, at + bytes) of it, which both sides have. */
void chempi_datatype_copy_piece(const void *src, MPI_Count scount,
                                const struct chempi_datatype *stype, void *dst,
                                MPI_Count rcount,
                                const struct chempi_datatype *rtype,
                                uint64_t at, uint64_t bytes);

#endif
