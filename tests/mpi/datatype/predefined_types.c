/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every predefined datatype: its size is that of the C type, and arrays of
 * several lengths arrive whole; the pair types with their padding between
 * and after the two values.
 */
#include "check.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

#define TAG 1
#define MOST 20000

struct type {
    MPI_Datatype type;
    const char *name;
    size_t size; /* bytes */
};

struct pair_float {
    float a;
    int b;
};
struct pair_double {
    double a;
    int b;
};
struct pair_long {
    long a;
    int b;
};
struct pair_short {
    short a;
    int b;
};
struct pair_int {
    int a;
    int b;
};
struct pair_long_double {
    long double a;
    int b;
};

/* Of each length, exchange an array of bytes that are known in advance. */
static void exchange(const struct type *type, int count)
{
    size_t len = type->size * (size_t)count;
    unsigned char *data = check_alloc(len + 1);
    uint64_t seed = (uint64_t)count + type->size;
    MPI_Status status;
    int got = -1;

    if (check_rank() == 0) {
        check_fill(data, len, seed);
        MPI_Send(data, count, type->type, 1, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        data[len] = 0x5A;
        MPI_Recv(data, count, type->type, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, type->type, &got);
        CHECK(got == count, "%s: %d of %d arrived", type->name, got, count);
        CHECK(check_differs(data, len, seed) == SIZE_MAX, "%s x %d: wrong data",
              type->name, count);
        CHECK(data[len] == 0x5A, "%s x %d: wrote past the end", type->name,
              count);
    }
    free(data);
}

static void check_type(const struct type *type)
{
    static const int counts[] = {0, 1, 3, 17, 1000, MOST};
    MPI_Aint lb = -1;
    MPI_Aint extent = -1;
    int size = -1;

    MPI_Type_size(type->type, &size);
    CHECK(size == (int)type->size, "size of %s is %d, not %zu", type->name,
          size, type->size);
    MPI_Type_get_extent(type->type, &lb, &extent);
    CHECK(lb == 0 && extent == (MPI_Aint)type->size, "extent of %s",
          type->name);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        exchange(type, counts[i]);
}

#define PAIR_TEST(PAIR, A, TYPE, SIZE)                                         \
    static void check_##PAIR(int count)                                        \
    {                                                                          \
        const int room = count + 1; /* more than comes */                      \
        struct PAIR *data = check_alloc(sizeof(*data) * (size_t)room);         \
        int size = -1;                                                         \
        MPI_Aint lb = -1, extent = -1;                                         \
        MPI_Type_size(TYPE, &size);                                            \
        MPI_Type_get_extent(TYPE, &lb, &extent);                               \
        CHECK(size == (int)(SIZE), "size of " #TYPE " is %d", size);           \
        CHECK(extent == (MPI_Aint)sizeof(*data), "extent of " #TYPE);          \
        if (check_rank() == 0) {                                               \
            for (int i = 0; i < count; i++) {                                  \
                data[i].a = (A)(i % 1000);                                     \
                data[i].b = i * 2 + 1;                                         \
            }                                                                  \
            MPI_Send(data, count, TYPE, 1, TAG, MPI_COMM_WORLD);               \
        } else if (check_rank() == 1) {                                        \
            MPI_Status status;                                                 \
            int got = -1;                                                      \
            MPI_Recv(data, room, TYPE, 0, TAG, MPI_COMM_WORLD, &status);       \
            MPI_Get_count(&status, TYPE, &got);                                \
            CHECK(got == count, #TYPE ": %d of %d arrived", got, count);       \
            for (int i = 0; i < count; i++)                                    \
                CHECK(data[i].a == (A)(i % 1000) && data[i].b == i * 2 + 1,    \
                      #TYPE ": pair %d of %d is wrong", i, count);             \
        }                                                                      \
        free(data);                                                            \
    }

PAIR_TEST(pair_float, float, MPI_FLOAT_INT, sizeof(float) + sizeof(int))
PAIR_TEST(pair_double, double, MPI_DOUBLE_INT, sizeof(double) + sizeof(int))
PAIR_TEST(pair_long, long, MPI_LONG_INT, sizeof(long) + sizeof(int))
PAIR_TEST(pair_short, short, MPI_SHORT_INT, sizeof(short) + sizeof(int))
PAIR_TEST(pair_int, int, MPI_2INT, 2 * sizeof(int))
PAIR_TEST(pair_long_double, long double, MPI_LONG_DOUBLE_INT,
          sizeof(long double) + sizeof(int))

static void check_pairs(void)
{
    static const int counts[] = {0, 1, 2, 5, 300, MOST};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        check_pair_float(counts[i]);
        check_pair_double(counts[i]);
        check_pair_long(counts[i]);
        check_pair_short(counts[i]);
        check_pair_int(counts[i]);
        check_pair_long_double(counts[i]);
    }
}

#define ROW(TYPE, C)                                                           \
    {                                                                          \
        TYPE, #TYPE, sizeof(C)                                                 \
    }

/* Handles are no constant expressions everywhere: filled at run time. */
static void check_all(void)
{
    const struct type types[] = {
        ROW(MPI_CHAR, char),
        ROW(MPI_SHORT, short),
        ROW(MPI_INT, int),
        ROW(MPI_LONG, long),
        ROW(MPI_LONG_LONG_INT, long long),
        ROW(MPI_LONG_LONG, long long),
        ROW(MPI_SIGNED_CHAR, signed char),
        ROW(MPI_UNSIGNED_CHAR, unsigned char),
        ROW(MPI_UNSIGNED_SHORT, unsigned short),
        ROW(MPI_UNSIGNED, unsigned),
        ROW(MPI_UNSIGNED_LONG, unsigned long),
        ROW(MPI_UNSIGNED_LONG_LONG, unsigned long long),
        ROW(MPI_FLOAT, float),
        ROW(MPI_DOUBLE, double),
        ROW(MPI_LONG_DOUBLE, long double),
        ROW(MPI_WCHAR, wchar_t),
        ROW(MPI_C_BOOL, bool),
        ROW(MPI_INT8_T, int8_t),
        ROW(MPI_INT16_T, int16_t),
        ROW(MPI_INT32_T, int32_t),
        ROW(MPI_INT64_T, int64_t),
        ROW(MPI_UINT8_T, uint8_t),
        ROW(MPI_UINT16_T, uint16_t),
        ROW(MPI_UINT32_T, uint32_t),
        ROW(MPI_UINT64_T, uint64_t),
        ROW(MPI_AINT, MPI_Aint),
        ROW(MPI_COUNT, MPI_Count),
        ROW(MPI_OFFSET, MPI_Offset),
        ROW(MPI_C_COMPLEX, float _Complex),
        ROW(MPI_C_FLOAT_COMPLEX, float _Complex),
        ROW(MPI_C_DOUBLE_COMPLEX, double _Complex),
        ROW(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex),
        ROW(MPI_BYTE, char),
        ROW(MPI_PACKED, char),
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        check_type(&types[i]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    check_all();
    check_pairs();
    return check_finish();
}
