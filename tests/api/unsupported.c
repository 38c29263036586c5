/* SPDX-License-Identifier: BSD-3-Clause */
/* A function that is not implemented says so through the error handler, with
 * its own name and its chapter; a program that checks can go on. */
#include <mpi.h>
#include <string.h>

#include "expect.h"

int main(int argc, char **argv)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int errclass = -1, len = 0, code;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    code = MPI_File_open(MPI_COMM_SELF, "none", MPI_MODE_RDONLY, MPI_INFO_NULL,
                         &file);
    EXPECT(code != MPI_SUCCESS);
    EXPECT(MPI_Error_class(code, &errclass) == MPI_SUCCESS);
    EXPECT(errclass == MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(MPI_Error_string(code, words, &len) == MPI_SUCCESS && len > 0);
    EXPECT(strstr(words, "MPI_File_open") != NULL);
    EXPECT(strstr(words, "I/O, chapter 14") != NULL);
    EXPECT((int)strlen(words) == len);
    MPI_Finalize();
    return expect_failures != 0;
}
