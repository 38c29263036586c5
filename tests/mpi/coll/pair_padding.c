/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of pairs with padding: what lies between the numbers of a result
 * stays as it was, whatever lies there in the data of the members.
 */
#include "check.h"

enum { THEIRS = 0x11, OURS = 0x77 };

/* Where the padding of a pair lies. */
struct shape {
    MPI_Datatype type;
    size_t extent; /* bytes */
    size_t from;
    size_t to;
};

static void set_padding(const struct shape *s, unsigned char *pairs, int count,
                        int byte)
{
    for (int i = 0; i < count; i++)
        memset(pairs + (size_t)i * s->extent + s->from, byte, s->to - s->from);
}

static bool is_padding(const struct shape *s, const unsigned char *pairs,
                       int count, int byte)
{
    for (int i = 0; i < count; i++)
        for (size_t k = s->from; k < s->to; k++)
            if (pairs[(size_t)i * s->extent + k] != byte)
                return false;
    return true;
}

enum call {
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    BLOCK,
    SCATTER,
    IREDUCE,
    IALLREDUCE,
    ISCAN,
    IEXSCAN,
    IBLOCK,
    CALLS
};

/* in: MPI_IN_PLACE, or `count` pairs for every rank. */
static void reduce(enum call call, const void *in, void *out, int count,
                   MPI_Datatype type)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Op op = MPI_MAXLOC;
    int root = check_size() - 1;
    int *counts = check_alloc(sizeof(int) * (size_t)check_size());
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 0; i < check_size(); i++)
        counts[i] = count;
    if (in == MPI_IN_PLACE && check_rank() != root &&
        (call == REDUCE || call == IREDUCE)) {
        in = out;
        out = NULL;
    }
    if (call == REDUCE)
        MPI_Reduce(in, out, count, type, op, root, comm);
    else if (call == ALLREDUCE)
        MPI_Allreduce(in, out, count, type, op, comm);
    else if (call == SCAN)
        MPI_Scan(in, out, count, type, op, comm);
    else if (call == EXSCAN)
        MPI_Exscan(in, out, count, type, op, comm);
    else if (call == BLOCK)
        MPI_Reduce_scatter_block(in, out, count, type, op, comm);
    else if (call == SCATTER)
        MPI_Reduce_scatter(in, out, counts, type, op, comm);
    else if (call == IREDUCE)
        MPI_Ireduce(in, out, count, type, op, root, comm, &request);
    else if (call == IALLREDUCE)
        MPI_Iallreduce(in, out, count, type, op, comm, &request);
    else if (call == ISCAN)
        MPI_Iscan(in, out, count, type, op, comm, &request);
    else if (call == IEXSCAN)
        MPI_Iexscan(in, out, count, type, op, comm, &request);
    else
        MPI_Ireduce_scatter_block(in, out, count, type, op, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(counts);
}

static void try_call(const struct shape *s, enum call call, int count,
                     bool is_in_place)
{
    int all = count * check_size();
    unsigned char *in = check_alloc((size_t)all * s->extent);
    unsigned char *out = check_alloc((size_t)all * s->extent);
    int size;

    MPI_Type_size(s->type, &size);
    set_padding(s, in, all, THEIRS);
    set_padding(s, out, all, OURS);
    reduce(call, is_in_place ? MPI_IN_PLACE : in, out, count, s->type);
    CHECK(is_padding(s, out, all, OURS),
          "call %d of %d pairs of %d bytes%s wrote between the numbers", call,
          count, size, is_in_place ? ", in place," : "");
    free(in);
    free(out);
}

static void try_local(const struct shape *s)
{
    enum { COUNT = 100 };
    unsigned char *in = check_alloc(COUNT * s->extent);
    unsigned char *out = check_alloc(COUNT * s->extent);

    memset(in, 0x3f, COUNT * s->extent); /* more than 0 */
    set_padding(s, in, COUNT, THEIRS);
    set_padding(s, out, COUNT, OURS);
    MPI_Reduce_local(in, out, COUNT, s->type, MPI_MAXLOC);
    CHECK(is_padding(s, out, COUNT, OURS),
          "MPI_Reduce_local wrote between the numbers");
    free(in);
    free(out);
}

static void try_shape(const struct shape *s, const int *counts, int n)
{
    for (int k = 0; k < n; k++)
        for (int call = 0; call < CALLS; call++) {
            try_call(s, (enum call)call, counts[k], false);
            try_call(s, (enum call)call, counts[k], true);
        }
    try_local(s);
}

int main(int argc, char **argv)
{
    static const int counts[] = {3, 900, 50000};
    static const int fewer[] = {3, 5000};
    struct shape shapes[] = {
        {MPI_SHORT_INT, 8, sizeof(short), 4},
        {MPI_DOUBLE_INT, 16, 12, 16},
        {MPI_LONG_DOUBLE_INT, 32, sizeof(long double) + 4, 32},
        {MPI_DATATYPE_NULL, 16, sizeof(float), 8},
    };

    check_start(&argc, &argv);
    MPI_Type_get_value_index(MPI_FLOAT, MPI_INT64_T, &shapes[3].type);
    try_shape(&shapes[0], counts, 3);
    for (int i = 1; i < 4; i++)
        try_shape(&shapes[i], fewer, 2);
    return check_finish();
}
