/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which collective accesses exchange data: those of small pieces that lie close
 * to each other do, also where a rank's view has no bytes; pieces that are long
 * or lie far apart are accessed by their owners.
 */
#include "check.h"

enum { SHORT = 8, LONG = 8192, PIECES = 64 };

static unsigned char data[LONG * PIECES];
static unsigned char back[LONG * PIECES];
static MPI_File file;

/* The pieces of all ranks in turn, `step` bytes from one to the next; rank
 * `idle` has none. How many bytes are this rank's? */
static int set_view(int piece, int step, int idle)
{
    int count = check_rank() == idle ? 0 : PIECES;
    MPI_Datatype type;

    MPI_Type_vector(count, piece, step * check_size(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_File_set_view(file, (MPI_Offset)check_rank() * step, MPI_BYTE,
                            type, "native", MPI_INFO_NULL) == MPI_SUCCESS,
          "set_view");
    MPI_Type_free(&type);
    return count * piece;
}

/* A new hint, after which views travel again. */
static void set_buffer(int bytes)
{
    char value[16];
    MPI_Info info;

    snprintf(value, sizeof(value), "%d", bytes);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", value);
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
}

static void try(int piece, int step, int idle, bool is_exchanged)
{
    uint64_t seed = (uint64_t)(step + check_rank());
    int len = set_view(piece, step, idle);
    unsigned long long before = check_watched();
    unsigned long long mine;
    unsigned long long all;

    check_fill(data, sizeof(data), seed);
    memset(back, 0, sizeof(back));
    for (int i = 0; i < 2; i++) { /* with views that came when they were set,
                                     and with access */
        CHECK(MPI_File_write_at_all(file, 0, data, len, MPI_BYTE,
                                    MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "writing");
        CHECK(MPI_File_read_at_all(file, 0, back, len, MPI_BYTE,
                                   MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "reading");
        set_buffer(1 << (20 + i));
    }
    CHECK(check_differs(back, (size_t)len, seed) == SIZE_MAX,
          "what was read differs");
    mine = check_watched() - before;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM,
                  MPI_COMM_WORLD);
    CHECK((all > 0) == is_exchanged, "pieces of %d: %llu bytes were exchanged",
          piece, all);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_watch("chempi_io_bytes_exchanged");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "files_choice.tmp",
                               MPI_MODE_RDWR | MPI_MODE_CREATE |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "no file");
    try(SHORT, 16, -1, true);
    try(SHORT, 1 << 20, -1, false);
    try(LONG, LONG, -1, false);
    try(LONG / 2, LONG, -1, true);
    try(SHORT, 16, 0, true);
    try(SHORT, 16, check_size() - 1, true);
    MPI_File_close(&file);
    return check_finish();
}
