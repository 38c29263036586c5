/* SPDX-License-Identifier: BSD-3-Clause */
/* Type signatures; see signature.h. */
#include "libchempi/didl/datatype/signature.h"

#include <assert.h>

#include "libchempi/didl/datatype/recipe.h"

#define BASE UINT64_C(0x9e3779b97f4a7c15) /* odd, so no power is 0 */
#define MIXED 0x8000u
#define SHIFT 4u
static_assert(CHEMPI_BASIC_TYPE_COUNT << SHIFT < MIXED, "a kind fits");

static bool is_watched;

void chempi_signature_watch(void)
{
    is_watched = true;
}

bool chempi_signature_is_watched(void)
{
    return is_watched;
}

static const struct chempi_signature empty = {.power = 1};

/* G2 for two in a row. */
static uint8_t common_kind(const struct chempi_signature *a,
                           const struct chempi_signature *b)
{
    if (a->bytes == 0 || b->bytes == 0)
        return a->bytes ? a->kind : b->kind;
    return a->kind == b->kind ? a->kind : CHEMPI_BASIC_TYPE_NONE;
}

static struct chempi_signature append(struct chempi_signature a,
                                      struct chempi_signature b)
{
    return (struct chempi_signature){
        .hash = a.hash * b.power + b.hash,
        .power = a.power * b.power,
        .bytes = a.bytes + b.bytes,
        .kind = common_kind(&a, &b),
        .is_open = a.is_open || b.is_open,
    };
}

/* count in a row, in as many steps as count has digits. */
static struct chempi_signature repeat(struct chempi_signature one,
                                      MPI_Count count)
{
    struct chempi_signature all = empty;

    for (; count > 0; count /= 2) {
        if (count % 2)
            all = append(one, all);
        one = append(one, one);
    }
    return all;
}

static bool is_open(uint8_t kind)
{
    return kind == CHEMPI_BASIC_TYPE_BYTE || kind == CHEMPI_BASIC_TYPE_PACKED;
}

static struct chempi_signature number(uint8_t kind)
{
    uint64_t x = (kind + UINT64_C(1)) * UINT64_C(0xbf58476d1ce4e5b9);

    x ^= x >> 29;
    return (struct chempi_signature){
        .hash = x * UINT64_C(0x94d049bb133111eb),
        .power = BASE,
        .bytes = chempi_basic_type_table[kind].size,
        .kind = kind,
        .is_open = is_open(kind),
    };
}

/* One element of a kind; a pair is two numbers, a complex number one. */
static struct chempi_signature element(uint8_t kind)
{
    const struct chempi_basic_type_info *info = &chempi_basic_type_table[kind];

    if (kind < CHEMPI_BASIC_TYPE_PAIR_FIRST)
        return number(kind);
    return append(number(info->first), number(info->second));
}

static bool add_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                     MPI_Count n)
{
    struct chempi_signature *all = arg;

    (void)disp;
    *all = append(*all, repeat(element(leaf->elem_kind), n));
    return true;
}

struct chempi_signature chempi_signature_of(struct chempi_datatype *type,
                                            MPI_Count count)
{
    struct chempi_signature one = empty;

    if (type->size == 0 || count == 0)
        return empty;
    if (type->elem_kind != CHEMPI_BASIC_TYPE_NONE)
        return repeat(element(type->elem_kind),
                      count * type->size /
                          chempi_basic_type_table[type->elem_kind].size);
    if (type->recipe->depth > CHEMPI_DATATYPE_WALK_DEPTH_MAX)
        one.is_open = true;
    else
        (void)chempi_datatype_for_leaves(type, 1, add_leaf, &one);
    one.bytes = (uint64_t)type->size;
    return repeat(one, count);
}

static uint16_t bits_of(const struct chempi_signature *s)
{
    if (s->is_open || s->bytes == 0)
        return 0;
    if (s->kind != CHEMPI_BASIC_TYPE_NONE)
        return (uint16_t)(s->kind << SHIFT);
    return (uint16_t)((MIXED | s->hash >> 49) & CHEMPI_SIGNATURE_BITS);
}

uint16_t chempi_signature_bits(struct chempi_datatype *type, MPI_Count count)
{
    const uint8_t kind = type->elem_kind;
    struct chempi_signature s;

    if (kind != CHEMPI_BASIC_TYPE_NONE && kind < CHEMPI_BASIC_TYPE_PAIR_FIRST)
        s = (struct chempi_signature){.bytes = (uint64_t)(type->size * count),
                                      .kind = kind,
                                      .is_open = is_open(kind)};
    else
        s = chempi_signature_of(type, count);
    return bits_of(&s);
}

uint8_t chempi_signature_kind(uint16_t bits)
{
    return bits & MIXED ? CHEMPI_BASIC_TYPE_NONE
                        : (uint8_t)((bits & CHEMPI_SIGNATURE_BITS) >> SHIFT);
}

/* An element of which only a part has come is not looked at. */
bool chempi_signature_is_ok(uint16_t bits, uint64_t len,
                            struct chempi_datatype *type)
{
    const uint16_t sent = bits & CHEMPI_SIGNATURE_BITS;
    uint16_t own;

    if (sent == 0 || type->size == 0 || len == 0)
        return true;
    if (type->elem_kind == CHEMPI_BASIC_TYPE_NONE &&
        len % (uint64_t)type->size != 0)
        return true;
    own = chempi_signature_bits(
        type, (MPI_Count)(len + (uint64_t)type->size - 1) / type->size);
    return own == 0 || own == sent;
}

const char *chempi_signature_name(uint8_t kind)
{
    static const char *const names[] = {
        [CHEMPI_BASIC_TYPE_NONE] = "basic types of several kinds",
        [CHEMPI_BASIC_TYPE_BYTE] = "MPI_BYTE",
        [CHEMPI_BASIC_TYPE_PACKED] = "MPI_PACKED",
        [CHEMPI_BASIC_TYPE_CHAR] = "MPI_CHAR",
        [CHEMPI_BASIC_TYPE_WCHAR] = "MPI_WCHAR",
        [CHEMPI_BASIC_TYPE_I8] = "MPI_INT8_T",
        [CHEMPI_BASIC_TYPE_I16] = "MPI_SHORT",
        [CHEMPI_BASIC_TYPE_I32] = "MPI_INT",
        [CHEMPI_BASIC_TYPE_I64] = "MPI_LONG",
        [CHEMPI_BASIC_TYPE_I128] = "MPI_INTEGER16",
        [CHEMPI_BASIC_TYPE_U8] = "MPI_UNSIGNED_CHAR",
        [CHEMPI_BASIC_TYPE_U16] = "MPI_UNSIGNED_SHORT",
        [CHEMPI_BASIC_TYPE_U32] = "MPI_UNSIGNED",
        [CHEMPI_BASIC_TYPE_U64] = "MPI_UNSIGNED_LONG",
        [CHEMPI_BASIC_TYPE_F16] = "MPI_REAL2",
        [CHEMPI_BASIC_TYPE_F32] = "MPI_FLOAT",
        [CHEMPI_BASIC_TYPE_F64] = "MPI_DOUBLE",
        [CHEMPI_BASIC_TYPE_FLD] = "MPI_LONG_DOUBLE",
        [CHEMPI_BASIC_TYPE_F128] = "MPI_REAL16",
        [CHEMPI_BASIC_TYPE_C16] = "MPI_COMPLEX4",
        [CHEMPI_BASIC_TYPE_C32] = "MPI_C_FLOAT_COMPLEX",
        [CHEMPI_BASIC_TYPE_C64] = "MPI_C_DOUBLE_COMPLEX",
        [CHEMPI_BASIC_TYPE_CLD] = "MPI_C_LONG_DOUBLE_COMPLEX",
        [CHEMPI_BASIC_TYPE_C128] = "MPI_COMPLEX32",
        [CHEMPI_BASIC_TYPE_BOOL] = "MPI_C_BOOL",
        [CHEMPI_BASIC_TYPE_L8] = "MPI_LOGICAL1",
        [CHEMPI_BASIC_TYPE_L16] = "MPI_LOGICAL2",
        [CHEMPI_BASIC_TYPE_L32] = "MPI_LOGICAL",
        [CHEMPI_BASIC_TYPE_L64] = "MPI_LOGICAL8",
        [CHEMPI_BASIC_TYPE_L128] = "MPI_LOGICAL16",
    };

    return names[kind < CHEMPI_ARRAY_LEN(names) ? kind
                                                : CHEMPI_BASIC_TYPE_NONE];
}
