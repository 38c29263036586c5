/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that cannot map the node's shared memory for the communicator of a
 * window or of a file, or has no memory for one: either all have the window or
 * the file, and use it, or nobody has, for want of memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

#define FILE_NAME "owners_starved.tmp"

/* Areas of communicators are larger, all else that is mapped here smaller. */
enum { LARGE = 1 << 20, SMALL = 512, PIECES_MAX = 64 };

static struct {
    atomic_bool are_refused;
    atomic_int refused;
} maps;

static void *take_map(void *addr, size_t len, int prot, int flags, int fd,
                      off_t off)
{
    if (!maps.are_refused || !(flags & MAP_SHARED) || len < LARGE)
        return mmap(addr, len, prot, flags, fd, off);
    maps.refused++;
    errno = ENOMEM;
    return MAP_FAILED;
}

/* ---- their owners ---- */

static int use_window(void)
{
    static int64_t cell[2];
    MPI_Win win;
    int next = (check_rank() + 1) % check_size();
    int64_t mine = 100 + check_rank();
    int rc = MPI_Win_create(cell, sizeof(cell), sizeof(cell[0]), MPI_INFO_NULL,
                            MPI_COMM_WORLD, &win);

    if (rc)
        return rc;
    MPI_Win_fence(0, win);
    starve_end(); /* an operation without memory fails where it is */
    MPI_Put(&mine, 1, MPI_INT64_T, next, 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    CHECK(cell[1] == 100 + (check_rank() + check_size() - 1) % check_size(),
          "%d was put", (int)cell[1]);
    return MPI_Win_free(&win);
}

static int use_file(void)
{
    MPI_File file;
    int mine = check_rank();
    int next = -1;
    int rc = MPI_File_open(MPI_COMM_WORLD, FILE_NAME,
                           MPI_MODE_CREATE | MPI_MODE_RDWR |
                               MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file);

    if (rc)
        return rc;
    MPI_File_write_at_all(file, (MPI_Offset)sizeof(mine) * mine, &mine, 1,
                          MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, (MPI_Offset)sizeof(mine) * mine, &next, 1,
                         MPI_INT, MPI_STATUS_IGNORE);
    CHECK(next == mine, "%d was written", next);
    return MPI_File_close(&file);
}

/* ---- starving ---- */

static MPI_Comm to_free[4];
static int to_free_count;

/* What all ranks have got: it is the same. */
static int class_of_all(int rc)
{
    int class = check_class(rc);
    int ends[2] = {class, -class};

    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_OR_DIE(ends[0] == -ends[1], "class %d here, %d and %d elsewhere",
                 class, -ends[1], ends[0]);
    return class;
}

static void have_no_maps(int (*use)(void), int poor)
{
    MPI_Comm held;
    int class;

    MPI_Comm_dup(MPI_COMM_WORLD, &held);
    MPI_Barrier(held); /* so the next one gets an area that nobody has mapped */
    maps.refused = 0;
    maps.are_refused = check_rank() == poor;
    class = class_of_all(use());
    maps.are_refused = false;
    CHECK(class == MPI_SUCCESS, "without a mapping: class %d", class);
    CHECK(check_rank() != poor || maps.refused > 0, "nothing was refused");
    CHECK(class_of_all(use()) == MPI_SUCCESS, "with all mappings");
    to_free[to_free_count++] = held;
}

/* Each piece in turn, until none of them is missed. */
static void have_few_pieces(int (*use)(void), int poor)
{
    int was_refused = 1;

    for (int i = 0; was_refused; i++) {
        int class;

        CHECK_OR_DIE(i < PIECES_MAX, "no end of pieces");
        starve_refused();
        if (check_rank() == poor)
            starve_one(i);
        class = class_of_all(use());
        starve_end();
        was_refused = starve_refused();
        MPI_Bcast(&was_refused, 1, MPI_INT, poor, MPI_COMM_WORLD);
        CHECK(was_refused || i > 0, "no piece was refused");
        CHECK(class == MPI_SUCCESS || (class == MPI_ERR_NO_MEM && was_refused),
              "without piece %d: class %d", i, class);
        CHECK(class_of_all(use()) == MPI_SUCCESS, "with all pieces");
    }
}

int main(int argc, char **argv)
{
    bool is_one_node;

    starve_start((struct starve_sizes){SMALL, 0});
    starve_sys.mmap = take_map;
    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc == 3 && chdir(argv[1]) == 0,
                 "usage: owners_starved FOLDER maps|pieces");
    is_one_node = strcmp(argv[2], "maps") == 0;
    MPI_Barrier(MPI_COMM_WORLD); /* its area is mapped */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int poor = 1; poor >= 0; poor--) {
        if (is_one_node) {
            have_no_maps(use_window, poor);
            have_no_maps(use_file, poor);
        } else {
            have_few_pieces(use_window, poor);
        }
    }
    while (to_free_count > 0)
        MPI_Comm_free(&to_free[--to_free_count]);
    return check_finish();
}
