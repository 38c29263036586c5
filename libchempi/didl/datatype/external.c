/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The "external32" representation (MPI 5.0, sections 5.3 and 14.5.2):
 * big-endian, IEEE formats, fixed sizes. Walks by basic types; speed is not
 * its purpose.
 */
#include <float.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

#define NUMBER_MAX 16 /* bytes of the widest number in either form */

/* How one number changes between memory and external form. */
enum conversion {
    SWAP,    /* same size, other byte order */
    NARROW,  /* low-order half: MPI_LONG, wchar_t */
    EXTENDED /* x87 long double and IEEE binary128 */
};

struct number {
    uint8_t native;   /* bytes */
    uint8_t external; /* bytes */
    uint8_t conversion;
    bool is_signed; /* NARROW: sign-extends on the way back */
};

static struct number number_of(uint8_t elem, const struct chempi_datatype *leaf)
{
    uint8_t size = chempi_basic_type_table[elem].size;
    struct number n = {.native = size, .external = size, .conversion = SWAP};

    if (elem == CHEMPI_BASIC_TYPE_WCHAR) {
        n.external = 2;
        n.conversion = NARROW;
    } else if (elem == CHEMPI_BASIC_TYPE_FLD && LDBL_MANT_DIG == 64) {
        n.external = 16;
        n.conversion = EXTENDED;
    } else if (leaf->handle == MPI_LONG || leaf->handle == MPI_UNSIGNED_LONG ||
               (leaf->handle == MPI_LONG_INT &&
                elem == CHEMPI_BASIC_TYPE_I64)) {
        n.external = 4;
        n.conversion = NARROW;
        n.is_signed = leaf->handle != MPI_UNSIGNED_LONG;
    }
    return n;
}

/* Little-endian or big-endian native order to big-endian, and back. */
static void swap_bytes(unsigned char *to, const unsigned char *from, size_t n)
{
    const uint16_t one = 1;
    unsigned char low;

    memcpy(&low, &one, 1);
    for (size_t i = 0; i < n; i++)
        to[i] = low ? from[n - 1 - i] : from[i];
}

/* x87: 64-bit significand with the leading one, then sign and exponent.
 * binary128: sign, 15 bits of exponent with the same bias, 112 of fraction. */
static void extended_to_quad(unsigned char *to, const unsigned char *from)
{
    uint64_t significand;
    uint16_t sign_exponent;
    uint64_t fraction;
    uint64_t high;
    uint64_t low;

    memcpy(&significand, from, 8);
    memcpy(&sign_exponent, from + 8, 2);
    fraction = significand << 1 >> 1; /* without the leading one */
    high = (uint64_t)sign_exponent << 48 | fraction >> 15;
    low = fraction << 49;
    swap_bytes(to, (const unsigned char *)&high, 8);
    swap_bytes(to + 8, (const unsigned char *)&low, 8);
}

static void quad_to_extended(unsigned char *to, const unsigned char *from)
{
    uint64_t high;
    uint64_t low;
    uint64_t significand;
    uint16_t sign_exponent;

    swap_bytes((unsigned char *)&high, from, 8);
    swap_bytes((unsigned char *)&low, from + 8, 8);
    sign_exponent = (uint16_t)(high >> 48);
    significand = (high & UINT64_C(0xffffffffffff)) << 15 | low >> 49;
    if (sign_exponent & 0x7fff)
        significand |= UINT64_C(1) << 63;
    memset(to, 0, sizeof(long double));
    memcpy(to, &significand, 8);
    memcpy(to + 8, &sign_exponent, 2);
}

static void to_external(const struct number *n, unsigned char *to,
                        const unsigned char *from)
{
    unsigned char big[NUMBER_MAX];

    switch ((enum conversion)n->conversion) {
    case SWAP:
        swap_bytes(to, from, n->native);
        break;
    case NARROW:
        swap_bytes(big, from, n->native);
        memcpy(to, big + n->native - n->external, n->external);
        break;
    case EXTENDED:
        extended_to_quad(to, from);
        break;
    }
}

static void from_external(const struct number *n, unsigned char *to,
                          const unsigned char *from)
{
    unsigned char big[NUMBER_MAX];

    switch ((enum conversion)n->conversion) {
    case SWAP:
        swap_bytes(to, from, n->native);
        break;
    case NARROW:
        memset(big, n->is_signed && from[0] & 0x80 ? 0xff : 0, n->native);
        memcpy(big + n->native - n->external, from, n->external);
        swap_bytes(to, big, n->native);
        break;
    case EXTENDED:
        quad_to_extended(to, from);
        break;
    }
}

/* The one or two numbers of one element of a predefined type. */
struct element {
    struct number first;
    struct number second; /* external 0: none */
    size_t second_at;
    MPI_Count extent;
};

static struct element element_of(const struct chempi_datatype *leaf)
{
    const struct chempi_basic_type_info *info =
        &chempi_basic_type_table[leaf->elem_kind];
    const struct chempi_datatype *first = leaf;
    const struct chempi_datatype *second = leaf;
    struct element e;

    if (leaf->recipe && leaf->recipe->combiner == MPI_COMBINER_VALUE_INDEX) {
        first = leaf->recipe->types[0];
        second = leaf->recipe->types[1];
    }
    e = (struct element){.first = number_of(info->first, first),
                         .second_at = info->second_at,
                         .extent = leaf->extent};

    if (info->second != CHEMPI_BASIC_TYPE_NONE)
        e.second = number_of(info->second, second);
    return e;
}

/* One walk over the user's buffer. */
struct transfer {
    char *base;              /* the user's buffer */
    unsigned char *external; /* next byte of the packed side */
    const unsigned char *input;
};

MPI_Count chempi_datatype_external_size(const struct chempi_datatype *type,
                                        MPI_Count n, MPI_Count sum)
{
    bool is_overflown = false;
    MPI_Count one = 0;
    MPI_Count total;

    if (type->is_predefined && type->size > 0) {
        struct element e = element_of(type);

        one = e.first.external + e.second.external;
    } else if (!type->is_predefined) {
        one = type->recipe->external_size;
    }
    if (sum < 0 || (one < 0 && n > 0))
        return -1;
    total = chempi_datatype_muladd(n, one, sum, &is_overflown);
    return is_overflown ? -1 : total;
}

static unsigned char *address(const struct transfer *t, MPI_Count disp)
{
    return (unsigned char *)((uintptr_t)t->base + (uintptr_t)disp);
}

static bool pack_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                      MPI_Count n)
{
    struct transfer *t = arg;
    struct element e = element_of(leaf);

    for (MPI_Count i = 0; i < n; i++) {
        unsigned char *mem = address(t, disp + i * e.extent);

        to_external(&e.first, t->external, mem);
        t->external += e.first.external;
        if (e.second.external > 0) {
            to_external(&e.second, t->external, mem + e.second_at);
            t->external += e.second.external;
        }
    }
    return true;
}

static bool unpack_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                        MPI_Count n)
{
    struct transfer *t = arg;
    struct element e = element_of(leaf);

    for (MPI_Count i = 0; i < n; i++) {
        unsigned char *mem = address(t, disp + i * e.extent);

        from_external(&e.first, mem, t->input);
        t->input += e.first.external;
        if (e.second.external > 0) {
            from_external(&e.second, mem + e.second_at, t->input);
            t->input += e.second.external;
        }
    }
    return true;
}

static int check_datarep(const char *datarep)
{
    if (strcmp(datarep, "external32") == 0)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_UNSUPPORTED_DATAREP,
                            "the data "
                            "representation is \"%s\", not \"external32\"",
                            datarep);
}

int chempi_datatype_pack_external_size(const char *datarep, MPI_Count incount,
                                       struct chempi_datatype *datatype,
                                       MPI_Count *size)
{
    MPI_Count total;
    int rc = check_datarep(datarep);

    if (rc != MPI_SUCCESS)
        return rc;
    total = chempi_datatype_external_size(datatype, incount, 0);
    if (total < 0)
        return chempi_error_set(MPI_ERR_COUNT,
                                "the packed size of %lld "
                                "elements exceeds 2^63 bytes",
                                (long long)incount);
    *size = total;
    return MPI_SUCCESS;
}

static int check(const char *datarep, MPI_Count count,
                 struct chempi_datatype *type, MPI_Count bufsize,
                 MPI_Count position, MPI_Count *bytes)
{
    int rc = chempi_datatype_pack_external_size(datarep, count, type, bytes);

    if (rc != MPI_SUCCESS)
        return rc;
    if (type->recipe && type->recipe->depth > CHEMPI_DATATYPE_WALK_DEPTH_MAX)
        return chempi_error_set(MPI_ERR_TYPE,
                                "the datatype is made of datatypes on %lld "
                                "levels, for external32 at most %d",
                                (long long)type->recipe->depth,
                                CHEMPI_DATATYPE_WALK_DEPTH_MAX);
    if (position < 0 || position > bufsize)
        return chempi_error_set(MPI_ERR_ARG,
                                "position %lld is not in a "
                                "buffer of %lld bytes",
                                (long long)position, (long long)bufsize);
    if (*bytes > bufsize - position)
        return chempi_error_set(MPI_ERR_TRUNCATE,
                                "%lld bytes do not fit the "
                                "%lld bytes from position %lld on",
                                (long long)*bytes,
                                (long long)(bufsize - position),
                                (long long)position);
    return MPI_SUCCESS;
}

int chempi_datatype_pack_external(const char *datarep, const void *inbuf,
                                  MPI_Count incount,
                                  struct chempi_datatype *datatype,
                                  void *outbuf, MPI_Count outsize,
                                  MPI_Count *position)
{
    struct transfer t = {.base = (char *)(uintptr_t)inbuf};
    MPI_Count bytes = 0;
    int rc = check(datarep, incount, datatype, outsize, *position, &bytes);

    if (rc != MPI_SUCCESS || bytes == 0)
        return rc;
    t.external = (unsigned char *)outbuf + *position;
    (void)chempi_datatype_for_leaves(datatype, incount, pack_leaf, &t);
    *position += bytes;
    return MPI_SUCCESS;
}

int chempi_datatype_unpack_external(const char datarep[], const void *inbuf,
                                    MPI_Count insize, MPI_Count *position,
                                    void *outbuf, MPI_Count outcount,
                                    struct chempi_datatype *datatype)
{
    struct transfer t = {.base = outbuf};
    MPI_Count bytes = 0;
    int rc = check(datarep, outcount, datatype, insize, *position, &bytes);

    if (rc != MPI_SUCCESS || bytes == 0)
        return rc;
    t.input = (const unsigned char *)inbuf + *position;
    (void)chempi_datatype_for_leaves(datatype, outcount, unpack_leaf, &t);
    *position += bytes;
    return MPI_SUCCESS;
}
