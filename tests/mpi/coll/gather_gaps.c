/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gather into a type with gaps, whose blocks cannot be copied straight into
 * place, does not change how the gathers after it go; what went by message,
 * --stats=long tells.
 */
#include <stdlib.h>

#include "check.h"

enum { COUNT = 100000, GATHERS = 10 };

int main(int argc, char **argv)
{
    MPI_Datatype gaps;
    int *in;
    int *out;

    check_start(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (int)sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    in = check_alloc(sizeof(int) * COUNT);
    out = check_alloc(sizeof(int) * 2 * COUNT * (size_t)check_size());
    for (int i = 0; i < COUNT; i++)
        in[i] = check_rank() + i;
    MPI_Gather(in, COUNT, MPI_INT, out, COUNT, gaps, 0, MPI_COMM_WORLD);
    for (int i = 0; check_rank() == 0 && i < COUNT * check_size(); i++)
        CHECK(out[2 * i] == i / COUNT + i % COUNT, "gaps: element %d is %d", i,
              out[2 * i]);
    for (int k = 0; k < GATHERS; k++)
        MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; check_rank() == 0 && i < COUNT * check_size(); i++)
        CHECK(out[i] == i / COUNT + i % COUNT, "element %d is %d", i, out[i]);
    MPI_Type_free(&gaps);
    free(in);
    free(out);
    return check_finish();
}
