/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of a handle that is gone names nothing, and asking for it looks at
 * no memory that was freed; a handle at the same address is named again. */
#include "check.h"

enum { ROUNDS = 100 };

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Datatype type;
        int number;
        int size;

        MPI_Type_contiguous(i + 1, MPI_INT, &type);
        number = MPI_Type_toint(type);
        CHECK(MPI_Type_fromint(number) == type, "the number %d is not its own",
              number);
        MPI_Type_free(&type);
        CHECK(check_class(MPI_Type_size(MPI_Type_fromint(number), &size)) ==
                  MPI_ERR_TYPE,
              "the number %d names something", number);
    }
    return check_finish();
}
