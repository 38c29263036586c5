/* SPDX-License-Identifier: BSD-3-Clause */
/* Forms whose parameters differ in more than their width. */
#include "forms.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 64

/* All numbers of a recipe, sorted, and its types in their order. */
struct recipe {
    int combiner;
    MPI_Count numbers[NUMBERS_MAX];
    int number_count;
    MPI_Datatype types[LIST_MAX];
    int type_count;
};

static int compare(const void *a, const void *b)
{
    const MPI_Count *x = a;
    const MPI_Count *y = b;

    return (*x > *y) - (*x < *y);
}

static void drop(MPI_Datatype *types, int count)
{
    int integers;
    int addresses;
    int inner;
    int combiner;

    for (int i = 0; i < count; i++) {
        MPI_Type_get_envelope(types[i], &integers, &addresses, &inner,
                              &combiner);
        if (combiner != MPI_COMBINER_NAMED)
            MPI_Type_free(&types[i]);
    }
}

static int read_narrow(MPI_Datatype type, struct recipe *r)
{
    int integers[NUMBERS_MAX];
    MPI_Aint addresses[NUMBERS_MAX];
    int ni;
    int na;
    int nd;
    int rc = MPI_Type_get_envelope(type, &ni, &na, &nd, &r->combiner);

    if (rc != MPI_SUCCESS || r->combiner == MPI_COMBINER_NAMED)
        return rc;
    rc = MPI_Type_get_contents(type, NUMBERS_MAX, NUMBERS_MAX, LIST_MAX,
                               integers, addresses, r->types);
    if (rc != MPI_SUCCESS)
        return rc;
    for (int i = 0; i < ni; i++)
        r->numbers[r->number_count++] = integers[i];
    for (int i = 0; i < na; i++)
        r->numbers[r->number_count++] = addresses[i];
    r->type_count = nd;
    return rc;
}

static int read_wide(MPI_Datatype type, struct recipe *r)
{
    int integers[NUMBERS_MAX];
    MPI_Aint addresses[NUMBERS_MAX];
    MPI_Count counts[NUMBERS_MAX];
    MPI_Count ni;
    MPI_Count na;
    MPI_Count nc;
    MPI_Count nd;
    int rc = MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &r->combiner);

    if (rc != MPI_SUCCESS || r->combiner == MPI_COMBINER_NAMED)
        return rc;
    rc = MPI_Type_get_contents_c(type, NUMBERS_MAX, NUMBERS_MAX, NUMBERS_MAX,
                                 LIST_MAX, integers, addresses, counts,
                                 r->types);
    if (rc != MPI_SUCCESS)
        return rc;
    for (MPI_Count i = 0; i < ni; i++)
        r->numbers[r->number_count++] = integers[i];
    for (MPI_Count i = 0; i < na; i++)
        r->numbers[r->number_count++] = addresses[i];
    for (MPI_Count i = 0; i < nc; i++)
        r->numbers[r->number_count++] = counts[i];
    r->type_count = (int)nd;
    return rc;
}

/* Derived types in contents are new objects; predefined ones are the same. */
static bool is_each_alike(const struct recipe *a, const struct recipe *b)
{
    for (int i = 0; i < a->type_count; i++) {
        struct recipe inner = {0};

        if (a->types[i] == b->types[i])
            continue;
        if (read_narrow(a->types[i], &inner) != MPI_SUCCESS ||
            inner.combiner == MPI_COMBINER_NAMED)
            return false;
        drop(inner.types, inner.type_count);
        if (!hand_is_alike(a->types[i], b->types[i]))
            return false;
    }
    return true;
}

static bool is_equal(struct recipe *a, struct recipe *b)
{
    qsort(a->numbers, (size_t)a->number_count, sizeof(a->numbers[0]), compare);
    qsort(b->numbers, (size_t)b->number_count, sizeof(b->numbers[0]), compare);
    return a->combiner == b->combiner && a->number_count == b->number_count &&
           a->type_count == b->type_count &&
           memcmp(a->numbers, b->numbers,
                  (size_t)a->number_count * sizeof(a->numbers[0])) == 0 &&
           is_each_alike(a, b);
}

bool hand_is_alike(MPI_Datatype narrow, MPI_Datatype wide)
{
    struct recipe a = {0};
    struct recipe b = {0};
    bool is_alike = read_narrow(narrow, &a) == MPI_SUCCESS &&
                    read_wide(wide, &b) == MPI_SUCCESS && is_equal(&a, &b);

    drop(a.types, a.type_count);
    drop(b.types, b.type_count);
    return is_alike;
}

/* Both forms on a type of the classic constructors; a type of the large-count
 * constructors must be refused by the classic form. */
static int describe(bool is_wide)
{
    struct recipe a = {0};
    struct recipe b = {0};
    MPI_Datatype narrow;
    MPI_Datatype wide;
    int rc;

    MPI_Type_vector(3, 2, 5, MPI_INT, &narrow);
    MPI_Type_vector_c(3, 2, 5, MPI_INT, &wide);
    rc = is_wide ? read_wide(narrow, &a) : read_narrow(narrow, &a);
    if (rc == MPI_SUCCESS &&
        (a.number_count != 3 || a.numbers[2] != 5 || a.types[0] != MPI_INT))
        rc = MPI_ERR_OTHER;
    if (rc == MPI_SUCCESS && read_narrow(wide, &b) == MPI_SUCCESS)
        rc = MPI_ERR_OTHER;
    MPI_Type_free(&narrow);
    MPI_Type_free(&wide);
    return rc;
}

int hand_Type_get_envelope(bool is_wide, struct args *a)
{
    (void)a;
    return describe(is_wide);
}

int hand_Type_get_contents(bool is_wide, struct args *a)
{
    (void)a;
    return describe(is_wide);
}

static void add_narrow(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += 3 * ((int *)in)[i];
}

static void add_wide(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    (void)type;
    for (MPI_Count i = 0; i < *len; i++)
        ((int *)inout)[i] += 3 * ((int *)in)[i];
}

int hand_Op_create(bool is_wide, struct args *a)
{
    int in[] = {1, 2, 3};
    int out[] = {4, 5, 6};
    int commutes = -1;
    MPI_Op op;
    int rc = is_wide ? MPI_Op_create_c(add_wide, 1, &op)
                     : MPI_Op_create(add_narrow, 1, &op);

    (void)a;
    if (rc != MPI_SUCCESS)
        return rc;
    rc = MPI_Reduce_local(in, out, 3, MPI_INT, op);
    if (rc == MPI_SUCCESS)
        rc = MPI_Allreduce_c(MPI_IN_PLACE, in, 3, MPI_INT, op, MPI_COMM_SELF);
    MPI_Op_commutative(op, &commutes);
    MPI_Op_free(&op);
    if (rc == MPI_SUCCESS && (out[0] != 7 || out[2] != 15 || commutes != 1))
        rc = MPI_ERR_OTHER;
    return rc;
}
