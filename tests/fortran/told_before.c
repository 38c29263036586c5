/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells MPI about Fortran before Fortran's library is loaded:
 * told_before LIBRARY booleans|KEY VALUE
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *library;
    void (*starts)(void);

    if (argc != 4)
        return 1;
    if (strcmp(argv[2], "booleans") == 0) {
        int yes = strcmp(argv[3], "1") == 0 ? 1 : -1;
        int no = 0;

        if (MPI_Abi_set_fortran_booleans(4, &yes, &no))
            return 2;
    } else {
        MPI_Info info;

        if (MPI_Info_create(&info) || MPI_Info_set(info, argv[2], argv[3]) ||
            MPI_Abi_set_fortran_info(info) || MPI_Info_free(&info))
            return 3;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        (void)puts(dlerror());
        return 4;
    }
    *(void **)&starts = dlsym(library, "starts");
    if (!starts)
        return 5;
    starts();
    return 0;
}
