/* SPDX-License-Identifier: BSD-3-Clause */
/* A window whose memory is gone at the target, which dies by that: the words
 * name the window, and who wanted what. */
#include "check.h"

#include <sys/mman.h>

enum { PAGE = 4096, TARGET = 1 };

int main(int argc, char **argv)
{
    const int64_t one = 1;
    void *memory;
    MPI_Win win;

    check_start(&argc, &argv);
    check_need(2);
    memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win_create(memory, PAGE, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "table");
    (void)mprotect(memory, PAGE, PROT_NONE); /* nobody else gets the place */
    MPI_Win_fence(0, win);
    if (check_rank() == 0)
        MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, 3, 1, MPI_INT64_T, MPI_SUM,
                       win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    return check_finish();
}
