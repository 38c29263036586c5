/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predefined operations on the types they are defined for, and operations of
 * the user's own, commuting and not, by MPI_Reduce, MPI_Allreduce and
 * MPI_Reduce_local, against a serial reference in rank order.
 */
#include "check.h"

#include <complex.h>

static const int counts[] = {1, 3, 100, 5000, 60000};
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))

/* Element i of rank r, small enough for sums and products in every type. */
static int value_of(int r, int i)
{
    return (int)(check_mix((uint64_t)r + 1, (uint64_t)i) % 3);
}

#define LAND(a, b) ((a) && (b))
#define LOR(a, b) ((a) || (b))
#define LXOR(a, b) (!(a) != !(b))
#define BAND(a, b) ((a) & (b))
#define BOR(a, b) ((a) | (b))
#define BXOR(a, b) ((a) ^ (b))
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* One operation on one C type: root gets it, all get it, in place too. */
#define OP_TEST(NAME, C, TYPE, OP, EXPR)                                       \
    static void test_##NAME##_##EXPR(int count)                                \
    {                                                                          \
        size_t len = sizeof(C) * (size_t)count;                                \
        C *in = check_alloc(len);                                              \
        C *out = check_alloc(len);                                             \
        C *all = check_alloc(len);                                             \
        int root = count % check_size();                                       \
        for (int i = 0; i < count; i++)                                        \
            all[i] = in[i] = (C)value_of(check_rank(), i);                     \
        MPI_Reduce(in, out, count, TYPE, OP, root, MPI_COMM_WORLD);            \
        MPI_Allreduce(MPI_IN_PLACE, all, count, TYPE, OP, MPI_COMM_WORLD);     \
        for (int i = 0; i < count; i++) {                                      \
            C want = (C)value_of(0, i);                                        \
            for (int r = 1; r < check_size(); r++) {                           \
                C next = (C)value_of(r, i);                                    \
                want = (C)EXPR(want, next);                                    \
            }                                                                  \
            CHECK(all[i] == want, #OP " of " #TYPE ": allreduce, place %d",    \
                  i);                                                          \
            CHECK(check_rank() != root || out[i] == want,                      \
                  #OP " of " #TYPE ": reduce, place %d", i);                   \
        }                                                                      \
        free(all);                                                             \
        free(out);                                                             \
        free(in);                                                              \
    }

#define ARITHMETIC(NAME, C, TYPE)                                              \
    OP_TEST(NAME, C, TYPE, MPI_SUM, SUM)                                       \
    OP_TEST(NAME, C, TYPE, MPI_PROD, PROD)                                     \
    OP_TEST(NAME, C, TYPE, MPI_MAX, MAX)                                       \
    OP_TEST(NAME, C, TYPE, MPI_MIN, MIN)
#define LOGIC(NAME, C, TYPE)                                                   \
    OP_TEST(NAME, C, TYPE, MPI_LAND, LAND)                                     \
    OP_TEST(NAME, C, TYPE, MPI_LOR, LOR)                                       \
    OP_TEST(NAME, C, TYPE, MPI_LXOR, LXOR)
#define BITS(NAME, C, TYPE)                                                    \
    OP_TEST(NAME, C, TYPE, MPI_BAND, BAND)                                     \
    OP_TEST(NAME, C, TYPE, MPI_BOR, BOR)                                       \
    OP_TEST(NAME, C, TYPE, MPI_BXOR, BXOR)

#define INTEGER_TESTS(NAME, C, TYPE)                                           \
    ARITHMETIC(NAME, C, TYPE) LOGIC(NAME, C, TYPE) BITS(NAME, C, TYPE)

#define EACH_INTEGER(DO)                                                       \
    DO(schar, signed char, MPI_SIGNED_CHAR)                                    \
    DO(uchar, unsigned char, MPI_UNSIGNED_CHAR)                                \
    DO(short, short, MPI_SHORT)                                                \
    DO(ushort, unsigned short, MPI_UNSIGNED_SHORT)                             \
    DO(int, int, MPI_INT)                                                      \
    DO(unsigned, unsigned, MPI_UNSIGNED)                                       \
    DO(long, long, MPI_LONG)                                                   \
    DO(ulong, unsigned long, MPI_UNSIGNED_LONG)                                \
    DO(llong, long long, MPI_LONG_LONG)                                        \
    DO(ullong, unsigned long long, MPI_UNSIGNED_LONG_LONG)                     \
    DO(int8, int8_t, MPI_INT8_T)                                               \
    DO(int16, int16_t, MPI_INT16_T)                                            \
    DO(int32, int32_t, MPI_INT32_T)                                            \
    DO(int64, int64_t, MPI_INT64_T)                                            \
    DO(uint8, uint8_t, MPI_UINT8_T)                                            \
    DO(uint16, uint16_t, MPI_UINT16_T)                                         \
    DO(uint32, uint32_t, MPI_UINT32_T)                                         \
    DO(uint64, uint64_t, MPI_UINT64_T)                                         \
    DO(aint, MPI_Aint, MPI_AINT)                                               \
    DO(count, MPI_Count, MPI_COUNT)                                            \
    DO(offset, MPI_Offset, MPI_OFFSET)

EACH_INTEGER(INTEGER_TESTS)
ARITHMETIC(float, float, MPI_FLOAT)
ARITHMETIC(double, double, MPI_DOUBLE)
ARITHMETIC(ldouble, long double, MPI_LONG_DOUBLE)
LOGIC(cbool, bool, MPI_C_BOOL)
OP_TEST(fcomplex, float _Complex, MPI_C_FLOAT_COMPLEX, MPI_SUM, SUM)
OP_TEST(fcomplex, float _Complex, MPI_C_FLOAT_COMPLEX, MPI_PROD, PROD)
OP_TEST(dcomplex, double _Complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, SUM)
OP_TEST(dcomplex, double _Complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, PROD)
OP_TEST(byte, unsigned char, MPI_BYTE, MPI_BAND, BAND)
OP_TEST(byte, unsigned char, MPI_BYTE, MPI_BXOR, BXOR)

#define RUN_ARITHMETIC(NAME)                                                   \
    test_##NAME##_SUM(count), test_##NAME##_PROD(count),                       \
        test_##NAME##_MAX(count), test_##NAME##_MIN(count)
#define RUN_LOGIC(NAME)                                                        \
    test_##NAME##_LAND(count), test_##NAME##_LOR(count),                       \
        test_##NAME##_LXOR(count)
#define RUN_INTEGER(NAME, C, TYPE)                                             \
    RUN_ARITHMETIC(NAME), RUN_LOGIC(NAME), test_##NAME##_BAND(count),          \
        test_##NAME##_BOR(count), test_##NAME##_BXOR(count);

static void predefined(int count)
{
    EACH_INTEGER(RUN_INTEGER)
    RUN_ARITHMETIC(float);
    RUN_ARITHMETIC(double);
    RUN_ARITHMETIC(ldouble);
    RUN_LOGIC(cbool);
    test_fcomplex_SUM(count);
    test_fcomplex_PROD(count);
    test_dcomplex_SUM(count);
    test_dcomplex_PROD(count);
    test_byte_BAND(count);
    test_byte_BXOR(count);
}

/* The smaller index wins between equal values. */
#define LOC_TEST(NAME, C, TYPE)                                                \
    static void test_loc_##NAME(int count)                                     \
    {                                                                          \
        struct pair {                                                          \
            C value;                                                           \
            int index;                                                         \
        };                                                                     \
        struct pair *in = check_alloc(sizeof(*in) * (size_t)count);            \
        struct pair *out = check_alloc(sizeof(*in) * (size_t)count);           \
        for (int way = 0; way < 2; way++) {                                    \
            for (int i = 0; i < count; i++) {                                  \
                in[i].value = (C)value_of(check_rank(), i);                    \
                in[i].index = check_rank() * 10;                               \
            }                                                                  \
            MPI_Allreduce(in, out, count, TYPE, way ? MPI_MAXLOC : MPI_MINLOC, \
                          MPI_COMM_WORLD);                                     \
            for (int i = 0; i < count; i++) {                                  \
                int best = 0;                                                  \
                for (int r = 1; r < check_size(); r++)                         \
                    if (way ? value_of(r, i) > value_of(best, i)               \
                            : value_of(r, i) < value_of(best, i))              \
                        best = r;                                              \
                CHECK(out[i].value == (C)value_of(best, i) &&                  \
                          out[i].index == best * 10,                           \
                      #TYPE ", %s: place %d", way ? "max" : "min", i);         \
            }                                                                  \
        }                                                                      \
        free(out);                                                             \
        free(in);                                                              \
    }

LOC_TEST(float, float, MPI_FLOAT_INT)
LOC_TEST(double, double, MPI_DOUBLE_INT)
LOC_TEST(long, long, MPI_LONG_INT)
LOC_TEST(short, short, MPI_SHORT_INT)
LOC_TEST(int, int, MPI_2INT)
LOC_TEST(ldouble, long double, MPI_LONG_DOUBLE_INT)

/* x -> a x + b modulo 2^32: composition does not commute. */
struct affine {
    unsigned a;
    unsigned b;
};

static struct affine compose(struct affine first, struct affine second)
{
    return (struct affine){.a = first.a * second.a,
                           .b = first.b * second.a + second.b};
}

static void compose_op(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct affine *first = in;
    struct affine *second = inout;

    (void)type;
    /* Two unsigned make one element; whole elements only. */
    CHECK(*count % 2 == 0, "a map was cut in two");
    for (int i = 0; i < *count / 2; i++)
        second[i] = compose(first[i], second[i]);
}

static struct affine affine_of(int r, int i)
{
    return (struct affine){.a = 2 * (unsigned)value_of(r, i) + 3,
                           .b = (unsigned)(r * 100 + i)};
}

static void in_rank_order(int root)
{
    /* One map a call: an element of two ints must stay together. */
    enum { COUNT = 1 };
    MPI_Op op;
    int commute = 1;

    MPI_Op_create(compose_op, 0, &op);
    MPI_Op_commutative(op, &commute);
    CHECK(!commute, "a non-commuting operation says that it commutes");
    for (int i = 0; i < 20; i++) {
        struct affine mine = affine_of(check_rank(), i);
        struct affine out = {0, 0};
        struct affine want = affine_of(0, i);
        for (int r = 1; r < check_size(); r++)
            want = compose(want, affine_of(r, i));
        MPI_Reduce(&mine, &out, 2 * COUNT, MPI_UNSIGNED, op, root,
                   MPI_COMM_WORLD);
        CHECK(check_rank() != root || (out.a == want.a && out.b == want.b),
              "reduce to %d does not keep the order of ranks", root);
        MPI_Allreduce(&mine, &out, 2 * COUNT, MPI_UNSIGNED, op, MPI_COMM_WORLD);
        CHECK(out.a == want.a && out.b == want.b,
              "allreduce does not keep the order of ranks");
    }
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL, "freed operation is not null");
}

/* "The left one wins" does not commute and works element by element. */
static void left_op(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int size = 0;

    MPI_Type_size(*type, &size);
    memcpy(inout, in, (size_t)size * (size_t)*count);
}

static void left_wins(int count)
{
    int *in = check_alloc(sizeof(int) * (size_t)count);
    int *out = check_alloc(sizeof(int) * (size_t)count);
    MPI_Op op;

    for (int i = 0; i < count; i++)
        in[i] = check_rank() * 1000 + i % 997;
    MPI_Op_create(left_op, 0, &op);
    MPI_Allreduce(in, out, count, MPI_INT, op, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        CHECK(out[i] == i % 997, "allreduce of %d: place %d has %d", count, i,
              out[i]);
    MPI_Reduce(check_rank() == 0 ? MPI_IN_PLACE : in, in, count, MPI_INT, op, 0,
               MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        CHECK(check_rank() != 0 || in[i] == i % 997,
              "reduce in place of %d: place %d has %d", count, i, in[i]);
    MPI_Op_free(&op);
    free(out);
    free(in);
}

static void local(void)
{
    int in[4] = {1, 2, 3, 4};
    int inout[4] = {10, 20, 30, 40};

    MPI_Reduce_local(in, inout, 4, MPI_INT, MPI_SUM);
    CHECK(inout[0] == 11 && inout[3] == 44, "reduce_local");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int i = 0; i < COUNTS; i++) {
        if (counts[i] <= 5000)
            predefined(counts[i]);
        test_loc_float(counts[i]);
        test_loc_double(counts[i]);
        test_loc_long(counts[i]);
        test_loc_short(counts[i]);
        test_loc_int(counts[i]);
        test_loc_ldouble(counts[i]);
        left_wins(counts[i]);
    }
    for (int root = 0; root < check_size(); root++)
        in_rank_order(root);
    local();
    return check_finish();
}
