/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective access through views that take many words: lists of blocks of all
 * lengths, which fall to the ranks as they come. Rank 0 takes turns between
 * such a view and a short one, so that both ways of telling views meet.
 */
#include "check.h"

enum { PIECES = 400, LEN_MAX = 150, ROUNDS = 6 };

static unsigned char model[PIECES * LEN_MAX];
static unsigned char back[PIECES * LEN_MAX];
static unsigned char mine[PIECES * LEN_MAX];
static int lens[PIECES];
static int places[PIECES];
static MPI_File file;

/* The pieces of this rank as a view; its data, one after the other. */
static int draw(uint64_t seed, MPI_Datatype *type)
{
    uint64_t state = seed;
    int count = 0;
    int at = 0;
    int used = 0;

    check_fill(model, sizeof(model), seed);
    for (int i = 0; i < PIECES; i++) {
        int len = 1 + (int)(check_random(&state) % LEN_MAX);
        int owner = (int)(check_random(&state) % (uint64_t)check_size());

        if (seed % 2 == 0 && owner == 0 && i > 0)
            owner = check_size() - 1; /* rank 0 has one piece at most */
        if (i == 0)
            owner = 0;
        if (owner == check_rank()) {
            lens[count] = len;
            places[count++] = at;
            memcpy(mine + used, model + at, (size_t)len);
            used += len;
        }
        at += len;
    }
    memset(model + at, 0, sizeof(model) - (size_t)at);
    MPI_Type_indexed(count, lens, places, MPI_BYTE, type);
    MPI_Type_commit(type);
    return used;
}

static int whole(void)
{
    int len = (int)sizeof(model);

    while (len > 0 && model[len - 1] == 0)
        len--;
    return len;
}

static void write_all(int len, bool is_waiting)
{
    MPI_Request request;

    if (!is_waiting) {
        CHECK(MPI_File_write_at_all(file, 0, mine, len, MPI_BYTE,
                                    MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "writing");
        return;
    }
    CHECK(MPI_File_iwrite_at_all(file, 0, mine, len, MPI_BYTE, &request) ==
              MPI_SUCCESS,
          "beginning to write");
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "writing");
}

static void verify_file(void)
{
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_read_at(file, 0, back, whole(), MPI_BYTE,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "reading");
    CHECK(memcmp(back, model, (size_t)whole()) == 0, "the file differs");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void round_of(uint64_t seed)
{
    MPI_Datatype type;
    int len = draw(seed, &type);

    MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
    write_all(len, seed % 3 == 0);
    memset(back, 0, sizeof(back));
    CHECK(MPI_File_read_at_all(file, 0, back, len, MPI_BYTE,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "reading together");
    CHECK(memcmp(back, mine, (size_t)len) == 0, "what was read differs");
    verify_file();
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Info info;

    check_start(&argc, &argv);
    check_watch("chempi_io_bytes_exchanged");
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "files_long.tmp",
                               MPI_MODE_RDWR | MPI_MODE_CREATE |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               info, &file) == MPI_SUCCESS,
                 "no file");
    MPI_Info_free(&info);
    for (int i = 1; i <= ROUNDS; i++)
        round_of((uint64_t)i);
    MPI_File_close(&file);
    check_was_used();
    return check_finish();
}
