/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of with_c.f90; each function returns the number of errors. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

int check_handle(int comm);
int check_ignore(MPI_F08_status *status, MPI_F08_status *statuses);
int fill_status(MPI_F08_status *status);
int check_attribute(int comm, int keyval, MPI_Aint value);
MPI_Aint set_attribute(int comm, int keyval);
int check_booleans(void);

int check_handle(int comm)
{
    int size = 0;
    MPI_Comm c = MPI_Comm_f2c(comm);

    return MPI_Comm_size(c, &size) != MPI_SUCCESS || size != 2 ||
           MPI_Comm_c2f(c) != comm || MPI_Comm_toint(c) != comm ||
           MPI_Comm_fromint(comm) != c;
}

int check_ignore(MPI_F08_status *status, MPI_F08_status *statuses)
{
    return (status != MPI_F08_STATUS_IGNORE) +
           (statuses != MPI_F08_STATUSES_IGNORE) +
           ((void *)status != (void *)MPI_F_STATUS_IGNORE) +
           ((void *)statuses != (void *)MPI_F_STATUSES_IGNORE);
}

int fill_status(MPI_F08_status *status)
{
    MPI_Status c;
    MPI_Fint f[MPI_F_STATUS_SIZE];

    memset(&c, 0, sizeof(c));
    c.MPI_SOURCE = 3;
    c.MPI_TAG = 4;
    return MPI_Status_c2f(&c, f) != MPI_SUCCESS ||
           MPI_Status_f2f08(f, status) != MPI_SUCCESS;
}

int check_attribute(int comm, int keyval, MPI_Aint value)
{
    MPI_Aint *found = NULL;
    int flag = 0;

    (void)MPI_Comm_get_attr(MPI_Comm_f2c(comm), keyval, &found, &flag);
    return !flag || !found || *found != value;
}

MPI_Aint set_attribute(int comm, int keyval)
{
    static int thing;

    (void)MPI_Comm_set_attr(MPI_Comm_f2c(comm), keyval, &thing);
    return (MPI_Aint)(intptr_t)&thing;
}

int check_booleans(void)
{
    int yes = 0;
    int no = 1;
    int is_set = 0;
    int flag = 0;
    char value[16] = "";
    int len = (int)sizeof(value);
    MPI_Info info = MPI_INFO_NULL;

    if (MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set) || !is_set ||
        yes == no || no != 0)
        return 1;
    if (MPI_Abi_get_fortran_info(&info) || info == MPI_INFO_NULL)
        return 1;
    (void)MPI_Info_get_string(info, "mpi_integer_size", &len, value, &flag);
    (void)MPI_Info_free(&info);
    return !flag || strcmp(value, "4") != 0;
}
