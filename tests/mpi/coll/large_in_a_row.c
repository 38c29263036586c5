/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large broadcasts and allgathers in a row, with nothing between them that
 * makes the ranks meet: shared memory that is used again must not be before
 * the slowest rank has read it. Sizes around those of chunks and far beyond,
 * changing roots, blocks of very different length, types with gaps on some
 * ranks, and receivers that have too little room.
 *
 * usage: streams [SEED [ROUNDS]]
 */
#include "check.h"

enum { INTS_MAX = 600000, HOLE = -5, CHUNK_INTS = 32768 / sizeof(int) };

static uint64_t seed;
static MPI_Datatype gaps; /* an int and a hole */

static int value(int round, int from, int i)
{
    return (int)(check_mix((uint64_t)(round * 1000 + from), (uint64_t)i) &
                 0x7fffffff);
}

/* A count of ints that all ranks draw alike: often near whole chunks. */
static int draw_count(void)
{
    int chunks = (int)(check_random(&seed) % 36);

    switch (check_random(&seed) % 4) {
    case 0:
        return (int)(check_random(&seed) % INTS_MAX);
    case 1:
        return (int)(check_random(&seed) % 3000);
    default:
        return chunks * CHUNK_INTS + (int)(check_random(&seed) % 3);
    }
}

static int *ints(int count, int stride)
{
    int *p = check_alloc(sizeof(int) * (size_t)count * (size_t)stride);

    for (int i = 0; i < count * stride; i++)
        p[i] = HOLE;
    return p;
}

static void fill(int *p, int stride, int round, int from, int count)
{
    for (int i = 0; i < count; i++)
        p[i * stride] = value(round, from, i);
}

static void expect(const int *p, int stride, int round, int from, int count,
                   const char *what)
{
    for (int i = 0; i < count; i++)
        if (p[i * stride] != value(round, from, i) ||
            (stride == 2 && p[i * 2 + 1] != HOLE)) {
            CHECK(false, "%s, round %d: %d from %d: wrong at %d", what, round,
                  count, from, i);
            return;
        }
}

static void bcast(int round)
{
    int count = draw_count();
    int root = (int)(check_random(&seed) % (uint64_t)check_size());
    int stride = (check_rank() + round) % 5 == 0 ? 2 : 1;
    int *p = ints(count, stride);

    if (check_rank() == root)
        fill(p, stride, round, root, count);
    MPI_Bcast(p, count, stride == 2 ? gaps : MPI_INT, root, MPI_COMM_WORLD);
    expect(p, stride, round, root, count, "bcast");
    free(p);
}

/* The rank after the root has room for half only, and is told so. */
static void bcast_short(int round)
{
    int count = 2 * CHUNK_INTS + (int)(check_random(&seed) % 100000);
    int root = (int)(check_random(&seed) % (uint64_t)check_size());
    bool is_short = check_rank() == (root + 1) % check_size();
    int room = is_short ? count / 2 : count;
    int *p = ints(room + 1, 1);
    int rc;

    if (check_rank() == root)
        fill(p, 1, round, root, count);
    rc = MPI_Bcast(p, room, MPI_INT, root, MPI_COMM_WORLD);
    if (rc)
        MPI_Error_class(rc, &rc);
    CHECK(rc == (is_short ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
          "bcast of %d into %d: error class %d", count, room, rc);
    CHECK(p[room] == HOLE, "bcast of %d wrote behind %d", count, room);
    if (!is_short)
        expect(p, 1, round, root, count, "bcast to others");
    free(p);
}

static void allgather(int round, bool is_in_place)
{
    int count = draw_count() / 4;
    int stride = (check_rank() + round) % 5 == 0 ? 2 : 1;
    MPI_Datatype type = stride == 2 ? gaps : MPI_INT;
    int *in = ints(count, 1);
    int *out = ints(count * check_size(), stride);

    if (is_in_place)
        fill(out + check_rank() * count * stride, stride, round, check_rank(),
             count);
    else
        fill(in, 1, round, check_rank(), count);
    MPI_Allgather(is_in_place ? MPI_IN_PLACE : in, count, MPI_INT, out, count,
                  type, MPI_COMM_WORLD);
    for (int i = 0; i < check_size(); i++)
        expect(out + i * count * stride, stride, round, i, count, "allgather");
    free(in);
    free(out);
}

/* A gap of one int behind each block. */
static void allgatherv(int round)
{
    int size = check_size();
    int *counts = check_alloc(sizeof(int) * (size_t)size);
    int *displs = check_alloc(sizeof(int) * (size_t)size);
    int all = 0;
    int *in;
    int *out;

    for (int i = 0; i < size; i++) {
        counts[i] = check_random(&seed) % 3 == 0 ? 0 : draw_count() / 3;
        displs[i] = all;
        all += counts[i] + 1;
    }
    in = ints(counts[check_rank()], 1);
    out = ints(all, 1);
    fill(in, 1, round, check_rank(), counts[check_rank()]);
    MPI_Allgatherv(in, counts[check_rank()], MPI_INT, out, counts, displs,
                   MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        expect(out + displs[i], 1, round, i, counts[i], "allgatherv");
        CHECK(out[displs[i] + counts[i]] == HOLE,
              "allgatherv, round %d: wrote behind block %d", round, i);
    }
    free(in);
    free(out);
    free(counts);
    free(displs);
}

int main(int argc, char **argv)
{
    int rounds;

    check_start(&argc, &argv);
    check_need(2);
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 60;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    for (int round = 0; round < rounds; round++)
        switch (check_random(&seed) % 8) {
        case 0:
            bcast_short(round);
            break;
        case 1:
            allgather(round, round % 2 == 0);
            break;
        case 2:
            allgatherv(round);
            break;
        default:
            bcast(round);
        }
    MPI_Type_free(&gaps);
    return check_finish();
}
