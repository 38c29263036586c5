/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of section.f90 as derived datatypes, for any MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 1024
#define COLUMNS 256
#define TURNS 300

static const struct shape {
    const char *name;
    int rows; /* so many elements of a column, this far apart */
    int row_stride;
    int columns;
    int column_stride;
} shapes[] = {
    {"every-2nd", 256, 2, 1, 1},  {"one-row", 1, 1, COLUMNS, 1},
    {"halo-2", 2, 1, COLUMNS, 1}, {"block", 512, 1, COLUMNS, 1},
    {"chequer", 512, 2, 128, 2},
};

static MPI_Datatype make(const struct shape *s)
{
    MPI_Datatype column;
    MPI_Datatype made;

    MPI_Type_vector(s->rows, 1, s->row_stride, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(s->columns, 1,
                            (MPI_Aint)sizeof(double) * ROWS * s->column_stride,
                            column, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&column);
    return made;
}

static double measure(double *a, MPI_Datatype type, int rank)
{
    double best = 1e9;

    for (int i = 0; i < TURNS; i++) {
        double t = MPI_Wtime();

        if (rank == 0) {
            MPI_Send(a, 1, type, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(a, 1, type, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(a, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(a, 1, type, 0, 0, MPI_COMM_WORLD);
        }
        t = MPI_Wtime() - t;
        best = t < best ? t : best;
    }
    return best / 2 * 1e6;
}

int main(void)
{
    double *a = calloc((size_t)ROWS * COLUMNS, sizeof(*a));
    int rank;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        MPI_Datatype type = make(&shapes[i]);
        double us = measure(a, type, rank);

        if (rank == 0)
            printf("%s%12.3f\n", shapes[i].name, us);
        MPI_Type_free(&type);
    }
    MPI_Finalize();
    free(a);
    return 0;
}
