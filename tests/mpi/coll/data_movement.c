/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data-moving collectives, every root, several sizes, in place where the
 * standard allows it, with gaps between the parts of the v-forms that must
 * stay untouched; on the world, on a reversed copy of it and on a half.
 */
#include "check.h"

static const int counts[] = {0, 1, 7, 500, 40000};
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))
#define GAP (-1)

static struct {
    MPI_Comm comm;
    int rank;
    int size;
} on;

/* Element i of what rank `from` has for rank `to`. */
static int value_of(int from, int to, int i)
{
    return (int)(check_mix((uint64_t)(from * 64 + to), (uint64_t)i) & 0xFFFFFF);
}

static int *block_for(int from, int to, int count)
{
    int *data = check_alloc(sizeof(int) * (size_t)count);

    for (int i = 0; i < count; i++)
        data[i] = value_of(from, to, i);
    return data;
}

static void fill(int *data, int from, int to, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = value_of(from, to, i);
}

static void expect(const int *data, int from, int to, int count,
                   const char *call)
{
    for (int i = 0; i < count; i++)
        if (data[i] != value_of(from, to, i)) {
            CHECK(false, "%s of %d on %d ranks: block %d to %d, place %d", call,
                  count, on.size, from, to, i);
            return;
        }
}

static int *room_for(int count)
{
    int *data = check_alloc(sizeof(int) * (size_t)count);

    for (int i = 0; i < count; i++)
        data[i] = GAP;
    return data;
}

static void bcast(int count, int root)
{
    int *data = on.rank == root ? block_for(root, 0, count) : room_for(count);

    MPI_Bcast(data, count, MPI_INT, root, on.comm);
    expect(data, root, 0, count, "bcast");
    free(data);
}

static void gather(int count, int root, bool in_place)
{
    int *mine = block_for(on.rank, root, count);
    int *all = room_for(count * on.size);
    void *from = mine;

    if (in_place && on.rank == root) {
        fill(all + on.rank * count, root, root, count);
        from = MPI_IN_PLACE;
    }
    MPI_Gather(from, count, MPI_INT, on.rank == root ? all : NULL, count,
               MPI_INT, root, on.comm);
    for (int r = 0; on.rank == root && r < on.size; r++)
        expect(all + r * count, r, root, count, "gather");
    free(all);
    free(mine);
}

static void scatter(int count, int root, bool in_place)
{
    int *all = room_for(count * on.size);
    int *mine = room_for(count);
    bool here = in_place && on.rank == root;

    for (int r = 0; r < on.size; r++)
        fill(all + r * count, root, r, count);
    MPI_Scatter(on.rank == root ? all : NULL, count, MPI_INT,
                here ? MPI_IN_PLACE : mine, count, MPI_INT, root, on.comm);
    if (!here)
        expect(mine, root, on.rank, count, "scatter");
    free(mine);
    free(all);
}

static void allgather(int count, bool in_place)
{
    int *mine = block_for(on.rank, 0, count);
    int *all = room_for(count * on.size);

    if (in_place)
        fill(all + on.rank * count, on.rank, 0, count);
    MPI_Allgather(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, all, count,
                  MPI_INT, on.comm);
    for (int r = 0; r < on.size; r++)
        expect(all + r * count, r, 0, count, "allgather");
    free(all);
    free(mine);
}

static void alltoall(int count, bool in_place)
{
    int *out = room_for(count * on.size);
    int *in = room_for(count * on.size);

    for (int r = 0; r < on.size; r++)
        fill((in_place ? in : out) + r * count, on.rank, r, count);
    MPI_Alltoall(in_place ? MPI_IN_PLACE : out, count, MPI_INT, in, count,
                 MPI_INT, on.comm);
    for (int r = 0; r < on.size; r++)
        expect(in + r * count, r, on.rank, count, "alltoall");
    free(in);
    free(out);
}

/* The v-forms: rank r has base + r elements; parts lie in reverse order with
 * a gap of one between them. */
struct parts {
    int *counts;
    int *places;
    int total;
};

static struct parts parts_of(int base, int step)
{
    struct parts parts = {.counts = room_for(on.size),
                          .places = room_for(on.size)};

    for (int r = on.size - 1; r >= 0; r--) {
        parts.counts[r] = base + step * r;
        parts.places[r] = parts.total;
        parts.total += parts.counts[r] + 1;
    }
    return parts;
}

static void free_parts(struct parts *parts)
{
    free(parts->counts);
    free(parts->places);
}

static void expect_gaps(const int *data, const struct parts *parts,
                        const char *call)
{
    for (int r = 0; r < on.size; r++)
        CHECK(data[parts->places[r] + parts->counts[r]] == GAP,
              "%s wrote into the gap behind part %d", call, r);
}

static void gatherv(int base, int root, bool in_place)
{
    struct parts parts = parts_of(base, 1);
    int count = parts.counts[on.rank];
    int *mine = block_for(on.rank, root, count);
    int *all = room_for(parts.total);
    bool here = in_place && on.rank == root;

    if (here)
        fill(all + parts.places[root], root, root, count);
    MPI_Gatherv(here ? MPI_IN_PLACE : mine, count, MPI_INT, all, parts.counts,
                parts.places, MPI_INT, root, on.comm);
    for (int r = 0; on.rank == root && r < on.size; r++)
        expect(all + parts.places[r], r, root, parts.counts[r], "gatherv");
    expect_gaps(all, &parts, "gatherv");
    free(all);
    free(mine);
    free_parts(&parts);
}

static void scatterv(int base, int root, bool in_place)
{
    struct parts parts = parts_of(base, 1);
    int count = parts.counts[on.rank];
    int *mine = room_for(count + 1);
    int *all = room_for(parts.total);
    bool here = in_place && on.rank == root;

    for (int r = 0; r < on.size; r++)
        fill(all + parts.places[r], root, r, parts.counts[r]);
    MPI_Scatterv(all, parts.counts, parts.places, MPI_INT,
                 here ? MPI_IN_PLACE : mine, count, MPI_INT, root, on.comm);
    if (!here)
        expect(mine, root, on.rank, count, "scatterv");
    CHECK(mine[count] == GAP, "scatterv wrote past the end");
    free(all);
    free(mine);
    free_parts(&parts);
}

static void allgatherv(int base, bool in_place)
{
    struct parts parts = parts_of(base, 2);
    int count = parts.counts[on.rank];
    int *mine = block_for(on.rank, 0, count);
    int *all = room_for(parts.total);

    if (in_place)
        fill(all + parts.places[on.rank], on.rank, 0, count);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, all,
                   parts.counts, parts.places, MPI_INT, on.comm);
    for (int r = 0; r < on.size; r++)
        expect(all + parts.places[r], r, 0, parts.counts[r], "allgatherv");
    expect_gaps(all, &parts, "allgatherv");
    free(all);
    free(mine);
    free_parts(&parts);
}

/* From r to s go base + r + s elements, so both sides agree. */
static void alltoallv(int base, bool in_place)
{
    struct parts parts = parts_of(base + on.rank, 1);
    int *out = room_for(parts.total);
    int *in = room_for(parts.total);

    for (int r = 0; r < on.size; r++)
        fill((in_place ? in : out) + parts.places[r], on.rank, r,
             parts.counts[r]);
    MPI_Alltoallv(in_place ? MPI_IN_PLACE : out, parts.counts, parts.places,
                  MPI_INT, in, parts.counts, parts.places, MPI_INT, on.comm);
    for (int r = 0; r < on.size; r++)
        expect(in + parts.places[r], r, on.rank, parts.counts[r], "alltoallv");
    expect_gaps(in, &parts, "alltoallv");
    free(in);
    free(out);
    free_parts(&parts);
}

/* Blocking, non-blocking or persistent: the later ones find what the first
 * blocking one has made. */
static void meet(int how)
{
    MPI_Request request;

    if (how == 0) {
        MPI_Barrier(on.comm);
    } else if (how == 1) {
        MPI_Ibarrier(on.comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier_init(on.comm, MPI_INFO_NULL, &request);
        for (int i = 0; i < 2; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

/* Nobody leaves a barrier before the last one came: the count of arrivals,
 * collected by rank 0 over point-to-point, is whole after it. */
static void barrier(int how)
{
    int sum = 0;
    int one = 1;
    MPI_Request request;

    MPI_Isend(&one, 1, MPI_INT, 0, 777, on.comm, &request);
    meet(how);
    for (int r = 0; on.rank == 0 && r < on.size; r++) {
        int got = 0;
        int flag = 0;
        MPI_Status status;
        while (!flag)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, on.comm, &flag, &status);
        CHECK(status.MPI_TAG == 777, "a collective's message is visible");
        MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 777, on.comm,
                 MPI_STATUS_IGNORE);
        sum += got;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(on.rank != 0 || sum == on.size, "%d of %d arrived", sum, on.size);
}

static void all_on(MPI_Comm comm)
{
    on.comm = comm;
    MPI_Comm_rank(comm, &on.rank);
    MPI_Comm_size(comm, &on.size);
    for (int i = 0; i < COUNTS; i++) {
        int count = counts[i];
        barrier(i % 3);
        for (int root = 0; root < on.size; root++) {
            bcast(count * 5, root);
            for (int in_place = 0; in_place < 2; in_place++) {
                gather(count, root, in_place);
                scatter(count, root, in_place);
                gatherv(count, root, in_place);
                scatterv(count, root, in_place);
            }
        }
        for (int in_place = 0; in_place < 2; in_place++) {
            allgather(count, in_place);
            alltoall(count, in_place);
            allgatherv(count, in_place);
            alltoallv(count, in_place);
        }
    }
}

/* Many in a row without anything between: no message of one may be taken
 * for one of the next. */
static void in_a_row(void)
{
    for (int i = 0; i < 500; i++) {
        int value = check_rank() == i % check_size() ? i : -1;
        int sum = 0;
        MPI_Bcast(&value, 1, MPI_INT, i % check_size(), MPI_COMM_WORLD);
        CHECK(value == i, "bcast %d in a row gave %d", i, value);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == i * check_size(), "allreduce %d in a row gave %d", i, sum);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm reversed;
    MPI_Comm half;

    check_start(&argc, &argv);
    all_on(MPI_COMM_WORLD);
    all_on(MPI_COMM_SELF);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &reversed);
    all_on(reversed);
    MPI_Comm_free(&reversed);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, 0, &half);
    all_on(half);
    MPI_Comm_free(&half);
    in_a_row();
    return check_finish();
}
