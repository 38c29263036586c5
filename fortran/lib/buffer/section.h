/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Array sections with gaps: their shape, the derived datatype that selects
 * their first elements, and copies of them.
 */
#ifndef CHEMPI_FORTRAN_SECTION_H
#define CHEMPI_FORTRAN_SECTION_H

#include <ISO_Fortran_binding.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Invariants:
 *   -   no dimension has extent 1, none could be joined with the next
 *   -   rank 0 is one element; a dimension of extent 0 makes it empty
 */
struct chempi_section {
    char *base;
    size_t elem_len; /* bytes of one element */
    int rank;
    struct {
        size_t extent;    /* elements */
        ptrdiff_t stride; /* bytes */
    } dim[CFI_MAX_RANK];
};

/* The shape of what a descriptor describes; false for an assumed-size array
 * with gaps, whose size nobody knows. */
bool chempi_section_read(struct chempi_section *s, const CFI_cdesc_t *d);

/* Has it elements, and bytes between them that are not its own? */
bool chempi_section_has_gaps(const struct chempi_section *s);

size_t chempi_section_count(const struct chempi_section *s); /* elements */

/* Copy all elements to contiguous memory, and back. */
void chempi_section_gather(const struct chempi_section *s, void *to);
void chempi_section_scatter(const struct chempi_section *s, const void *from);

/*
 * Make (and commit) the datatype of the section's first `count` elements,
 * each of `per_element` elements of type. Returns an MPI error code.
 */
int chempi_section_type(const struct chempi_section *s, size_t count,
                        MPI_Count per_element, MPI_Datatype type,
                        MPI_Datatype *made);

#endif
