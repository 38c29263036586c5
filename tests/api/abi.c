/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard ABI as a program sees it: sizes, values, versions, handles as
 * integers. Runs as a world of one. */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "expect.h"

static void check_layout(void)
{
    EXPECT(sizeof(MPI_Status) == 8 * sizeof(int));
    EXPECT(offsetof(MPI_Status, MPI_SOURCE) == 0);
    EXPECT(offsetof(MPI_Status, MPI_TAG) == sizeof(int));
    EXPECT(offsetof(MPI_Status, MPI_ERROR) == 2 * sizeof(int));
    EXPECT(sizeof(MPI_Aint) == sizeof(void *));
    EXPECT(sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8);
    EXPECT(sizeof(MPI_Comm) == sizeof(void *));
}

static void check_values(void)
{
    EXPECT((intptr_t)MPI_COMM_WORLD == 0x101);
    EXPECT((intptr_t)MPI_INT == 0x209);
    EXPECT((intptr_t)MPI_ERRORS_ARE_FATAL == 0x141);
    EXPECT(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -2);
    EXPECT(MPI_PROC_NULL == -3 && MPI_ROOT == -4);
    EXPECT(MPI_UNDEFINED == -32766);
    EXPECT(MPI_BOTTOM == NULL && MPI_IN_PLACE == (void *)1);
    EXPECT(MPI_MAX_ERROR_STRING == 512 && MPI_BSEND_OVERHEAD == 512);
    EXPECT(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED &&
           MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED &&
           MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
}

static void check_versions(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int major = -1, minor = -1, len = -1;

    EXPECT(MPI_Get_version(&major, &minor) == MPI_SUCCESS);
    EXPECT(major == 5 && minor == 0);
    EXPECT(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS);
    EXPECT(major == 1 && minor == 0);
    EXPECT(MPI_Get_library_version(text, &len) == MPI_SUCCESS);
    EXPECT(strncmp(text, "CHEMPI", 6) == 0 && (int)strlen(text) == len);
}

static void check_integers(void)
{
    MPI_Comm made[700];
    int first;

    EXPECT(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101);
    EXPECT(MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
    EXPECT(MPI_Type_toint(MPI_DOUBLE) == 0x214);
    EXPECT(MPI_Type_fromint(0x214) == MPI_DOUBLE);
    EXPECT(MPI_Op_c2f(MPI_SUM) == 0x21 && MPI_Op_f2c(0x21) == MPI_SUM);
    for (int i = 0; i < 700; i++) {
        int rc = MPI_Comm_dup(MPI_COMM_SELF, &made[i]);

        EXPECT(rc == MPI_SUCCESS);
        if (rc != MPI_SUCCESS)
            return;
    }
    first = MPI_Comm_toint(made[0]);
    for (int i = 0; i < 700; i++) {
        int number = MPI_Comm_toint(made[i]);

        EXPECT(number >= 0x1000);
        EXPECT(MPI_Comm_fromint(number) == made[i]);
        EXPECT(MPI_Comm_c2f(made[i]) == number);
    }
    EXPECT(MPI_Comm_toint(made[0]) == first);
    for (int i = 0; i < 700; i++)
        EXPECT(MPI_Comm_free(&made[i]) == MPI_SUCCESS);
}

static void check_statuses(void)
{
    MPI_Status in, out;
    MPI_Fint f[MPI_F_STATUS_SIZE];
    MPI_F08_status f08;

    memset(&in, 0, sizeof(in));
    in.MPI_SOURCE = 3;
    in.MPI_TAG = 4;
    in.MPI_ERROR = 5;
    in.MPI_internal[4] = 6;
    EXPECT(MPI_Status_c2f(&in, f) == MPI_SUCCESS);
    EXPECT(f[MPI_F_SOURCE] == 3 && f[MPI_F_TAG] == 4 && f[MPI_F_ERROR] == 5);
    EXPECT(MPI_Status_f2f08(f, &f08) == MPI_SUCCESS);
    EXPECT(MPI_Status_f082c(&f08, &out) == MPI_SUCCESS);
    EXPECT(memcmp(&in, &out, sizeof(in)) == 0);
    EXPECT(MPI_F_STATUS_IGNORE != NULL && MPI_F_STATUSES_IGNORE != NULL);
    EXPECT(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &out) == MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    check_layout();
    check_values();
    check_versions();
    EXPECT(MPI_Wtime() <= MPI_Wtime() && MPI_Wtick() > 0.0);
    EXPECT(MPI_Aint_diff(MPI_Aint_add(40, 2), 2) == 40);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    check_integers();
    check_statuses();
    MPI_Finalize();
    check_versions();
    return expect_failures != 0;
}
