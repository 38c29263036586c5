/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which members are aggregators where the hint cb_nodes leaves nodes out:
 *
 *   files_nodes RANK...
 *
 * The hint is as many as there are ranks in the list, and those must be it.
 */
#include "check.h"

enum { BLOCK = 512, BLOCKS = 64 };

static bool is_listed(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (atoi(argv[i]) == check_rank())
            return true;
    return false;
}

/* Every size-th block is this rank's. */
static void set_view(MPI_File file)
{
    MPI_Datatype type;

    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * check_size(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, (MPI_Offset)check_rank() * BLOCK, MPI_BYTE, type,
                      "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
}

static MPI_Info count_of_nodes(int count)
{
    char text[16];
    MPI_Info info;

    (void)snprintf(text, sizeof(text), "%d", count);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", text);
    MPI_Info_set(info, "romio_cb_write", "enable");
    return info;
}

static void write_all(MPI_File file)
{
    static unsigned char data[BLOCK * BLOCKS];
    static unsigned char back[BLOCK * BLOCKS];
    uint64_t seed = (uint64_t)check_rank();

    check_fill(data, sizeof(data), seed);
    set_view(file);
    CHECK(MPI_File_write_at_all(file, 0, data, sizeof(data), MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "writing");
    CHECK(MPI_File_read_at(file, 0, back, sizeof(back), MPI_BYTE,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "reading");
    CHECK(check_differs(back, sizeof(back), seed) == SIZE_MAX,
          "what was read differs");
}

/* Opened with the hint, or told afterwards: the same members. */
static void check_choice(MPI_Info info, bool is_late, bool is_expected)
{
    unsigned long long before = check_watched();
    unsigned long long count;
    MPI_File file;

    CHECK_OR_DIE(MPI_File_open(
                     MPI_COMM_WORLD, "files_nodes.tmp",
                     MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                     is_late ? MPI_INFO_NULL : info, &file) == MPI_SUCCESS,
                 "no file");
    if (is_late)
        MPI_File_set_info(file, info);
    write_all(file);
    count = check_watched() - before;
    CHECK(count == is_expected, "an aggregator %llu times, not %d", count,
          is_expected);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    MPI_Info info;

    check_start(&argc, &argv);
    check_watch("chempi_io_aggregations");
    info = count_of_nodes(argc - 1);
    check_choice(info, false, is_listed(argc, argv));
    check_choice(info, true, is_listed(argc, argv));
    MPI_Info_free(&info);
    return check_finish();
}
