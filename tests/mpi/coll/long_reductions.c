/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduce and reduce-scatter of long vectors on one node, blocking and
 * several non-blocking ones at a time, in place and not, with parts of very
 * different lengths and with pairs that have padding. Sums of numbers that
 * round show that operands come in the same order each time: from the rank
 * after the owner of a part around to the owner.
 */
#include <string.h>

#include "check.h"

enum { FLIGHT = 3 };

static const int counts[] = {70001, 131072, 500009};

/* Of very different sizes. */
static float number(int rank, int seed, int i)
{
    uint64_t mixed = check_mix((uint64_t)(rank * 1000 + seed), (uint64_t)i);

    return (float)(mixed >> (20 + mixed % 8)) / 3;
}

/* What owner's element i comes to. */
static float sum(int owner, int seed, int i)
{
    int size = check_size();
    float total = number((owner + 1) % size, seed, i);

    for (int k = 2; k <= size; k++)
        total += number((owner + k) % size, seed, i);
    return total;
}

/* An operation that is under way. */
struct run {
    bool is_scatter;
    bool is_in_place;
    int seed;
    int count;
    int *parts; /* [size] elements */
    float *in;
    float *out;
    MPI_Request request;
};

/* Equal parts, or one rank has most, and others nothing. */
static void cut(struct run *r, bool is_even)
{
    const int size = check_size();
    const int rest = r->count % size;
    int left = r->count;

    for (int i = 0; i < size; i++) {
        r->parts[i] = r->count / size + (i < rest);
        if (!is_even)
            r->parts[i] = i == 1 ? 0 : i == 2 ? left : r->count / 50;
        left -= r->parts[i];
        if (!is_even && i == 2)
            left = 0;
    }
    r->count = 0;
    for (int i = 0; i < size; i++)
        r->count += r->parts[i];
}

static void begin(struct run *r, bool is_scatter, bool is_in_place, int count,
                  int seed)
{
    *r = (struct run){.is_scatter = is_scatter,
                      .is_in_place = is_in_place,
                      .seed = seed,
                      .count = count,
                      .request = MPI_REQUEST_NULL};
    r->parts = check_alloc((size_t)check_size() * sizeof(int));
    cut(r, !is_scatter || seed % 2 == 0);
    r->in = check_alloc((size_t)r->count * sizeof(float));
    r->out =
        is_in_place ? r->in : check_alloc((size_t)r->count * sizeof(float));
    for (int i = 0; i < r->count; i++)
        r->in[i] = number(check_rank(), seed, i);
}

static void start(struct run *r, bool is_blocking)
{
    const void *in = r->is_in_place ? MPI_IN_PLACE : r->in;

    if (!r->is_scatter && is_blocking)
        MPI_Allreduce(in, r->out, r->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!r->is_scatter)
        MPI_Iallreduce(in, r->out, r->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &r->request);
    else if (is_blocking)
        MPI_Reduce_scatter(in, r->out, r->parts, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD);
    else
        MPI_Ireduce_scatter(in, r->out, r->parts, MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD, &r->request);
}

static void end(struct run *r)
{
    int wrong = 0;
    int at = 0;

    for (int owner = 0; owner < check_size(); owner++) {
        const float *found =
            r->is_scatter ? r->out : r->out + at; /* of this owner */

        for (int i = 0; i < r->parts[owner]; i++)
            if (!r->is_scatter || owner == check_rank())
                wrong += found[i] != sum(owner, r->seed, at + i);
        at += r->parts[owner];
    }
    CHECK(wrong == 0, "%s of %d%s: %d other numbers",
          r->is_scatter ? "reduce-scatter" : "allreduce", r->count,
          r->is_in_place ? " in place" : "", wrong);
    if (!r->is_in_place)
        free(r->out);
    free(r->in);
    free(r->parts);
}

static void sums(int count, bool is_in_place, int seed)
{
    struct run r[FLIGHT];

    for (int i = 0; i < 2; i++) {
        begin(&r[0], i == 1, is_in_place, count, seed + i);
        start(&r[0], true);
        end(&r[0]);
    }
    for (int i = 0; i < FLIGHT; i++)
        begin(&r[i], i != 1, is_in_place, count, seed + i);
    for (int i = 0; i < FLIGHT; i++)
        start(&r[i], false);
    for (int i = 0; i < FLIGHT; i++)
        MPI_Wait(&r[i].request, MPI_STATUS_IGNORE);
    for (int i = 0; i < FLIGHT; i++)
        end(&r[i]);
}

struct pair {
    double value;
    int where;
    unsigned char padding[4];
};

/* What lies between the numbers of a result is the user's. */
static void pairs(int count)
{
    struct pair *in = check_alloc((size_t)count * sizeof(*in));
    struct pair *out = check_alloc((size_t)count * sizeof(*out));
    int wrong = 0;

    memset(in, 1, (size_t)count * sizeof(*in));
    memset(out, 7, (size_t)count * sizeof(*out));
    for (int i = 0; i < count; i++) {
        in[i].value = i % check_size() == check_rank() ? i + 2 : i;
        in[i].where = check_rank();
    }
    MPI_Allreduce(in, out, count, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        wrong += out[i].value != i + 2 || out[i].where != i % check_size() ||
                 out[i].padding[1] != 7;
    CHECK(wrong == 0, "%d of %d pairs are wrong", wrong, count);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        sums(counts[k], false, (int)k * 20);
        sums(counts[k], true, (int)k * 20 + 11);
        pairs(counts[k] / 4);
    }
    return check_finish();
}
