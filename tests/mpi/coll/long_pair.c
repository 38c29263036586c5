/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of two processes, around the lengths at which one more segment is
 * sent: to both roots, in place and not, and with an operation that does not
 * commute; and one while another is under way.
 */
#include "check.h"

enum { MIB = 1024 * 1024 };

/* a op b = 3a + b: tells whose operand came first. */
static void thrice(void *a, void *b, int *len, MPI_Datatype *type)
{
    const unsigned *in = a;
    unsigned *inout = b;

    (void)type;
    for (int i = 0; i < *len; i++)
        inout[i] += 3 * in[i];
}

static unsigned operand(int rank, int i)
{
    return (unsigned)(i % 1009) + 7919u * (unsigned)rank;
}

static void reduce(int root, bool is_in_place, MPI_Op op, int count)
{
    bool is_root = check_rank() == root;
    unsigned *in = check_alloc(sizeof(*in) * (size_t)count);
    unsigned *out = check_alloc(sizeof(*out) * (size_t)(count + 1));
    unsigned times = op == MPI_SUM ? 1 : 3;
    bool is_right = true;

    for (int i = 0; i < count; i++)
        out[i] = in[i] = operand(check_rank(), i);
    out[count] = 77;
    MPI_Reduce(is_root && is_in_place ? MPI_IN_PLACE : in, out, count,
               MPI_UNSIGNED, op, root, MPI_COMM_WORLD);
    for (int i = 0; i < count && is_root; i++)
        is_right = is_right && out[i] == times * operand(0, i) + operand(1, i);
    CHECK(is_right, "%d elements to %d", count, root);
    CHECK(out[count] == 77, "behind %d elements", count);
    free(in);
    free(out);
}

/* The first operation of a communicator is under way during the second. */
static void two_at_a_time(int count)
{
    unsigned *in = check_alloc(sizeof(*in) * 2 * (size_t)count);
    unsigned *out = check_alloc(sizeof(*out) * 2 * (size_t)count);
    bool is_right = true;
    MPI_Comm comm;
    MPI_Request request;

    for (int i = 0; i < 2 * count; i++) {
        in[i] = operand(check_rank(), i) + (i < count ? 0u : 1u << 20);
        out[i] = 0;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Iallreduce(in, out, count, MPI_UNSIGNED, MPI_SUM, comm, &request);
    MPI_Allreduce(in + count, out + count, count, MPI_UNSIGNED, MPI_SUM, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * count; i++)
        is_right = is_right && out[i] == operand(0, i) + operand(1, i) +
                                             (i < count ? 0u : 2u << 20);
    CHECK(is_right, "two of %d elements", count);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {640 * 1024, 1280 * 1024, MIB, 4 * MIB,
                                  17 * MIB};
    MPI_Op ordered;

    check_start(&argc, &argv);
    MPI_Op_create(thrice, 0, &ordered);
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
        for (int way = 0; way < 8; way++)
            for (int more = -1; more <= 1; more++)
                reduce(way & 1, way & 2, way & 4 ? ordered : MPI_SUM,
                       lengths[k] / (int)sizeof(unsigned) + more);
    MPI_Op_free(&ordered);
    for (int i = 0; i < 20; i++)
        two_at_a_time(MIB / (int)sizeof(unsigned));
    return check_finish();
}
