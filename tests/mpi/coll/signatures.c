/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives in which every rank describes the same data in its own way: as
 * many ints, as one large element, or as ints with gaps between them. The
 * standard asks for equal type signatures only.
 */
#include "check.h"

static const int counts[] = {1, 6, 700, 12000, 90000};
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))

/* One rank's view of `count` ints per block. */
struct view {
    MPI_Datatype type;
    int n;      /* elements of type per block */
    int stride; /* ints from one int of the data to the next */
    int *data;
    int count;
};

static void open_view(struct view *v, int way, int count, int blocks)
{
    v->count = count;
    v->stride = way == 2 ? 3 : 1;
    v->n = way == 0 ? count : 1;
    v->type = MPI_INT;
    if (way == 1)
        MPI_Type_contiguous(count, MPI_INT, &v->type);
    if (way == 2) {
        MPI_Datatype gaps;

        MPI_Type_vector(count, 1, v->stride, MPI_INT, &gaps);
        MPI_Type_create_resized(gaps, 0, (MPI_Aint)sizeof(int) * 3 * count,
                                &v->type);
        MPI_Type_free(&gaps);
    }
    if (way != 0)
        MPI_Type_commit(&v->type);
    v->data = check_alloc(sizeof(int) * (size_t)(count * blocks * v->stride));
    memset(v->data, 0xff, sizeof(int) * (size_t)(count * blocks * v->stride));
}

static void close_view(struct view *v)
{
    if (v->type != MPI_INT)
        MPI_Type_free(&v->type);
    free(v->data);
}

static int value_of(int from, int to, int i)
{
    return (int)(check_mix((uint64_t)(from * 64 + to), (uint64_t)i) & 0xFFFFFF);
}

static void fill(struct view *v, int block, int from, int to)
{
    for (int i = 0; i < v->count; i++)
        v->data[(block * v->count + i) * v->stride] = value_of(from, to, i);
}

static void expect(const struct view *v, int block, int from, int to,
                   const char *call)
{
    for (int i = 0; i < v->count; i++) {
        const int *p = &v->data[(block * v->count + i) * v->stride];

        if (p[0] != value_of(from, to, i) || (v->stride > 1 && p[1] != -1)) {
            CHECK(false, "%s of %d ints: block from %d to %d, place %d", call,
                  v->count, from, to, i);
            return;
        }
    }
}

static void bcast(int way, int count, int root)
{
    struct view v;

    open_view(&v, way, count, 1);
    if (check_rank() == root)
        fill(&v, 0, root, 0);
    MPI_Bcast(v.data, v.n, v.type, root, MPI_COMM_WORLD);
    expect(&v, 0, root, 0, "bcast");
    close_view(&v);
}

static void ibcast(int way, int count, int root)
{
    struct view v;
    MPI_Request request;

    open_view(&v, way, count, 1);
    if (check_rank() == root)
        fill(&v, 0, root, 0);
    MPI_Ibcast(v.data, v.n, v.type, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(&v, 0, root, 0, "ibcast");
    close_view(&v);
}

static void rooted(int way, int count, int root)
{
    int n = check_size();
    int me = check_rank();
    struct view one;
    struct view all;

    open_view(&one, way, count, 1);
    open_view(&all, (way + 1) % 3, count, n);
    fill(&one, 0, me, root);
    MPI_Gather(one.data, one.n, one.type, all.data, all.n, all.type, root,
               MPI_COMM_WORLD);
    for (int i = 0; i < n && me == root; i++) {
        expect(&all, i, i, root, "gather");
        fill(&all, i, root, i);
    }
    MPI_Scatter(all.data, all.n, all.type, one.data, one.n, one.type, root,
                MPI_COMM_WORLD);
    expect(&one, 0, root, me, "scatter");
    close_view(&one);
    close_view(&all);
}

static void to_all(int way, int count)
{
    int n = check_size();
    int me = check_rank();
    struct view one;
    struct view out;
    struct view in;

    open_view(&one, (way + 2) % 3, count, 1);
    open_view(&out, (way + 1) % 3, count, n);
    open_view(&in, way, count, n);
    fill(&one, 0, me, 0);
    for (int i = 0; i < n; i++)
        fill(&out, i, me, i);
    MPI_Allgather(one.data, one.n, one.type, in.data, in.n, in.type,
                  MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        expect(&in, i, i, 0, "allgather");
    MPI_Alltoall(out.data, out.n, out.type, in.data, in.n, in.type,
                 MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        expect(&in, i, i, me, "alltoall");
    close_view(&one);
    close_view(&out);
    close_view(&in);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int c = 0; c < COUNTS; c++)
        for (int turn = 0; turn < 3; turn++) {
            int way = (check_rank() + turn) % 3;
            int root = turn % check_size();

            bcast(way, counts[c], root);
            ibcast(way, counts[c], root);
            rooted(way, counts[c], root);
            to_all(way, counts[c]);
        }
    return check_finish();
}
