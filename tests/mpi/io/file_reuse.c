/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective access again and again, each time of a new file: the memory of
 * exchanges is kept from one to the next, which shows in the pages that the
 * process brings in.
 */
#include <sys/resource.h>

#include "check.h"

enum { BLOCK = 1024, BLOCKS = 256, WARM = 5, ROUNDS = 20, FAULTS_MAX = 32 };

static unsigned char data[BLOCK * BLOCKS];
static unsigned char back[BLOCK * BLOCKS];

static long faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* Every size-th block is this rank's. */
static void write_and_read(MPI_Datatype type)
{
    MPI_File file;

    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "files_again.tmp",
                               MPI_MODE_RDWR | MPI_MODE_CREATE |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "no file");
    MPI_File_set_view(file, (MPI_Offset)check_rank() * BLOCK, MPI_BYTE, type,
                      "native", MPI_INFO_NULL);
    CHECK(MPI_File_write_at_all(file, 0, data, sizeof(data), MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "writing");
    memset(back, 0, sizeof(back));
    CHECK(MPI_File_read_at_all(file, 0, back, sizeof(back), MPI_BYTE,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "reading");
    CHECK(memcmp(data, back, sizeof(data)) == 0, "what was read differs");
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    long before = 0;
    long count;

    check_start(&argc, &argv);
    check_fill(data, sizeof(data), (uint64_t)check_rank());
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * check_size(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < WARM + ROUNDS; i++) {
        if (i == WARM)
            before = faults();
        write_and_read(type);
    }
    count = (faults() - before) / ROUNDS;
    CHECK(count <= FAULTS_MAX, "%ld page faults in each round", count);
    MPI_Type_free(&type);
    return check_finish();
}
