/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens libraries as Python does its modules, each for itself, and calls
 * reduce_in_place() in each. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int bad = 0;

    MPI_Init(NULL, NULL);
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        void *found = library ? dlsym(library, "reduce_in_place") : NULL;
        int (*reduce)(void);

        if (!found) {
            puts(dlerror());
            return 1;
        }
        memcpy(&reduce, &found, sizeof(found));
        if (!reduce()) {
            printf("%s: MPI_IN_PLACE is not known\n", argv[i]);
            bad++;
        }
    }
    MPI_Finalize();
    if (!bad)
        puts("No Errors");
    return bad;
}
