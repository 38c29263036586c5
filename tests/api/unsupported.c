/* SPDX-License-Identifier: BSD-3-Clause */
/* A function that is not implemented says so through the error handler, with
 * its own name and its chapter; a program that checks can go on. */
#include <mpi.h>
#include <string.h>

#include "expect.h"

static void expect_words(int code, const char *func, const char *chapter)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int errclass = -1, len = 0;

    EXPECT(code != MPI_SUCCESS);
    EXPECT(MPI_Error_class(code, &errclass) == MPI_SUCCESS);
    EXPECT(errclass == MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(MPI_Error_string(code, words, &len) == MPI_SUCCESS && len > 0);
    EXPECT(strstr(words, func) != NULL);
    EXPECT(strstr(words, chapter) != NULL);
    EXPECT(strstr(words, "see chempi(7)") != NULL);
    EXPECT((int)strlen(words) == len);
}

int main(int argc, char **argv)
{
    MPI_Comm inter;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect_words(MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE),
                 "MPI_Comm_spawn",
                 "Process initialization and management, chapter 11");
    MPI_Finalize();
    return expect_failures != 0;
}
