/* SPDX-License-Identifier: BSD-3-Clause */
/* Before MPI_Init only some calls work; a wrong one ends the program with a
 * sentence that names it. The caller looks at both: see meson.build. */
#include <mpi.h>

#include "expect.h"

int main(void)
{
    MPI_Info info = MPI_INFO_NULL;
    int flag = -1;
    int rank;

    EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && flag == 0);
    EXPECT(MPI_Finalized(&flag) == MPI_SUCCESS && flag == 0);
    EXPECT(MPI_Info_create(&info) == MPI_SUCCESS);
    EXPECT(MPI_Info_set(info, "key", "value") == MPI_SUCCESS);
    EXPECT(MPI_Info_free(&info) == MPI_SUCCESS);
    if (expect_failures)
        return 0; /* the test wants a failure that comes from the next line */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return 0;
}
