/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of numbers that round, on one node, in amounts between a slot and a
 * megabyte of all ranks: the order is the same whether they go along SPSC rings
 * or are shared out among workers, from the rank after the root to the root.
 * The list has a case for each way; the first ones of a communicator go to
 * workers, anyway, blocking or not. Where an operation does not commute the
 * order is another one, but the same in the first calls and in later ones.
 */
#include "check.h"

#include <string.h>

enum {
    MOST = 70000,
    PART_LEAST = 8192 /* bytes */,
    BOARD = 262144,
    IN_ORDER = 64 /* times 18 KB */
};

static const int counts[] = {4500, 8000, 40000};

/* Of very different sizes. */
static float number(int rank, int seed, int i)
{
    uint64_t mixed = check_mix((uint64_t)(rank * 1000 + seed), (uint64_t)i);

    return (float)(mixed >> (20 + mixed % 8)) / 3;
}

static float sum(int root, int seed, int i)
{
    int size = check_size();
    float total = number((root + 1) % size, seed, i);

    for (int k = 2; k <= size; k++)
        total += number((root + k) % size, seed, i);
    return total;
}

static void reduce(int count, int root, bool is_in_place, int seed)
{
    static float in[MOST];
    static float out[MOST];
    bool is_root = check_rank() == root;
    MPI_Request request = MPI_REQUEST_NULL;
    int wrong = 0;

    is_in_place = is_in_place && is_root;
    for (int i = 0; i < count; i++)
        (is_in_place ? out : in)[i] = number(check_rank(), seed, i);
    if (seed % 3 == 1)
        MPI_Ireduce(is_in_place ? MPI_IN_PLACE : in, out, count, MPI_FLOAT,
                    MPI_SUM, root, MPI_COMM_WORLD, &request);
    else
        MPI_Reduce(is_in_place ? MPI_IN_PLACE : in, out, count, MPI_FLOAT,
                   MPI_SUM, root, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; is_root && i < count; i++)
        wrong += out[i] != sum(root, seed, i);
    CHECK(wrong == 0, "%d of %d sums are other numbers", wrong, count);
}

/* The first element of a part. */
static int cut(int count, int part)
{
    int rest = count % check_size();

    return count / check_size() * part + (part < rest ? part : rest);
}

/* Every rank has a part, in which the sum ends with its own number, be there
 * memory for boards or not. */
static void allreduce(int count, bool is_in_place, int seed)
{
    static float in[MOST];
    static float out[MOST];
    int size = check_size();
    int wrong = 0;

    for (int i = 0; i < count; i++)
        (is_in_place ? out : in)[i] = number(check_rank(), seed, i);
    MPI_Allreduce(is_in_place ? MPI_IN_PLACE : in, out, count, MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
    for (int part = 0; part < size; part++)
        for (int i = cut(count, part); i < cut(count, part + 1); i++)
            wrong += out[i] != sum(part, seed, i);
    CHECK(wrong == 0, "%d of %d sums of all are other numbers", wrong, count);
}

static void add_ordered(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        ((float *)inout)[i] += ((float *)in)[i];
}

/* More than a megabyte in all, by an operation that is said not to commute, to
 * the last rank. */
static void reduce_in_order(void)
{
    static float in[MOST];
    static float first[MOST];
    static float out[MOST];
    MPI_Comm comm;
    MPI_Op op;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Op_create(add_ordered, 0, &op);
    for (int i = 0; i < counts[0]; i++)
        in[i] = number(check_rank(), 0, i);
    for (int k = 0; k < IN_ORDER; k++) {
        MPI_Reduce(in, k ? out : first, counts[0], MPI_FLOAT, op,
                   check_size() - 1, comm);
        CHECK(k == 0 || check_rank() < check_size() - 1 ||
                  memcmp(out, first, sizeof(*in) * (size_t)counts[0]) == 0,
              "reduction %d came to other bits than the first one", k);
    }
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
}

/* Up to a megabyte in all. */
static void check_first(void)
{
    for (int seed = 0; seed < 4; seed++)
        reduce(counts[0], 0, false, seed);
    CHECK(check_watched() == 0,
          "%llu of the first reductions went along SPSC rings",
          check_watched());
}

int main(int argc, char **argv)
{
    const char *stream = getenv("CHEMPI_COLL_NODE_STREAM");
    const int len = MOST * (int)sizeof(float);
    int size;
    int seed = 0;

    check_start(&argc, &argv);
    size = check_size();
    check_watch("chempi_coll_reductions_by_chain");
    check_first();
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        for (int root = 0; root < check_size(); root++) {
            reduce(counts[k], root, false, seed++);
            reduce(counts[k], root, true, seed++);
        }
    if (size > 2 && len > BOARD && len / size >= PART_LEAST) {
        allreduce(MOST, false, seed++);
        allreduce(MOST, true, seed++);
    }
    reduce_in_order();
    if (!stream || strcmp(stream, "off") != 0)
        check_was_used();
    return check_finish();
}
