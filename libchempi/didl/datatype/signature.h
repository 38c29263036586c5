/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type signatures: the sequence of basic types that a message consists of
 * (MPI 5.0, section 3.3.1), as a hash that can be put together. Basic types
 * of one kind (basic_type.h) are taken for the same, as MPI_INT and MPI_INT32_T
 * are; MPI_BYTE and MPI_PACKED match everything.
 *
 *   -   the hash of a sequence is the sum of hash(kind) * B^(types after it),
 *       so that hash(ab) = hash(a) * B^|b| + hash(b)
 *   G2  a sequence of one kind has that kind; any other has
 * CHEMPI_BASIC_TYPE_NONE G3  a signature that is open matches everything
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_SIGNATURE_H
#define CHEMPI_LIBCHEMPI_DIDL_SIGNATURE_H

#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/datatype.h"

struct chempi_signature {
    uint64_t hash;
    uint64_t power; /* B to the number of basic types, modulo 2^64 */
    uint64_t bytes;
    uint8_t kind; /* enum chempi_basic_type; NONE: of several, or empty */
    bool is_open;
};

/* That of count elements. The time goes with what is in one element, if that
 * is of several kinds. */
struct chempi_signature chempi_signature_of(struct chempi_datatype *type,
                                            MPI_Count count);

/*
 * What of it an envelope has room for, in CHEMPI_SIGNATURE_BITS: the kind, or
 * the highest bit and a part of the hash; 0: matches everything.
 */
#define CHEMPI_SIGNATURE_BITS 0xfff0u
uint16_t chempi_signature_bits(struct chempi_datatype *type, MPI_Count count);

/* May a message of `len` bytes that was sent with these bits be received as
 * this type? */
bool chempi_signature_is_ok(uint16_t bits, uint64_t len,
                            struct chempi_datatype *type);

/* "MPI_INT", "basic types of several kinds"; as CHEMPI_BASIC_TYPE_NONE. */
const char *chempi_signature_name(uint8_t kind);
/* The kind that the bits tell, or CHEMPI_BASIC_TYPE_NONE. */
uint8_t chempi_signature_kind(uint16_t bits);

/* Turn on that sends carry it and receives look at it; off at first. Before
 * anything is sent. */
void chempi_signature_watch(void);
bool chempi_signature_is_watched(void);

#endif
