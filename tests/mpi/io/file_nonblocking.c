/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking and split collective access to files: it exchanges data, does
 * not keep the caller, runs in the order of the calls of a file and in any
 * order of files, goes on while the program computes, and tells everybody of
 * one member's error.
 *
 *   files_async [away]
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

#define BLOCK 512 /* bytes: below what members access alone */
#define BLOCKS 64
#define PART (BLOCK * BLOCKS) /* of a rank in one access */
#define MANY 6                /* accesses under way at a time */

static char path[2][64];
static MPI_File file[2];
static unsigned char data[MANY][PART];
static unsigned char back[PART];

/* Every n-th block is ours. */
static void open_files(void)
{
    MPI_Datatype block;
    MPI_Datatype tile;
    MPI_Info hints;

    MPI_Info_create(&hints);
    MPI_Info_set(hints, "cb_buffer_size", "16384"); /* several rounds */
    MPI_Info_set(hints, "romio_cb_write", "enable");
    MPI_Info_set(hints, "romio_cb_read", "enable");
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * check_size(), &tile);
    MPI_Type_commit(&tile);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof(path[i]), "files_async.%d", i);
        CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path[i],
                                   MPI_MODE_RDWR | MPI_MODE_CREATE |
                                       MPI_MODE_DELETE_ON_CLOSE,
                                   hints, &file[i]) == MPI_SUCCESS,
                     "open");
        MPI_File_set_view(file[i], (MPI_Offset)check_rank() * BLOCK, MPI_BYTE,
                          tile, "native", hints);
    }
    MPI_Type_free(&block);
    MPI_Type_free(&tile);
    MPI_Info_free(&hints);
}

static uint64_t seed_of(int round, int access, int rank)
{
    return (uint64_t)(round * 1000 + access * 50 + rank);
}

static void fill(int round)
{
    for (int i = 0; i < MANY; i++)
        check_fill(data[i], PART, seed_of(round, i, check_rank()));
}

/* What an access of this rank has brought. */
static void verify(MPI_File f, int round, int access, const char *what)
{
    MPI_Status status;
    size_t at;

    memset(back, 0, sizeof(back));
    CHECK(MPI_File_read_at(f, (MPI_Offset)access * PART, back, PART, MPI_BYTE,
                           &status) == MPI_SUCCESS,
          "%s: reading back", what);
    at = check_differs(back, PART, seed_of(round, access, check_rank()));
    CHECK(at == SIZE_MAX, "%s: access %d differs at %zu", what, access, at);
}

/* In the order of their calls: the last one of each place stays. */
static void check_many(void)
{
    MPI_Request requests[2 * MANY + 1];
    int n = 0;

    fill(1);
    for (int i = 0; i < MANY; i++) {
        CHECK(MPI_File_iwrite_at_all(file[0], (MPI_Offset)i * PART,
                                     data[(i + 1) % MANY], PART, MPI_BYTE,
                                     &requests[n++]) == MPI_SUCCESS,
              "iwrite_at_all");
        CHECK(MPI_File_iwrite_all(file[0], data[i], PART, MPI_BYTE,
                                  &requests[n++]) == MPI_SUCCESS,
              "iwrite_all");
    }
    CHECK(MPI_File_iread_at_all(file[0], (MPI_Offset)2 * PART, back, PART,
                                MPI_BYTE, &requests[n++]) == MPI_SUCCESS,
          "iread_at_all");
    CHECK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS,
          "waitall");
    CHECK(check_differs(back, PART, seed_of(1, 2, check_rank())) == SIZE_MAX,
          "a read behind writes");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; i++)
        verify(file[0], 1, i, "many");
}

/* A blocking call behind non-blocking ones. */
static void check_behind(void)
{
    MPI_Request request;

    fill(2);
    MPI_File_iwrite_at_all(file[0], 0, data[1], PART, MPI_BYTE, &request);
    CHECK(MPI_File_write_at_all(file[0], 0, data[0], PART, MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "write_at_all behind iwrite_at_all");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    verify(file[0], 2, 0, "behind");
}

/* Not all ranks begin with the same file. */
static void check_two_files(void)
{
    MPI_Request requests[2];
    int first = check_rank() % 2;

    fill(3);
    MPI_File_iwrite_at_all(file[first], 0, data[first], PART, MPI_BYTE,
                           &requests[0]);
    MPI_File_iwrite_at_all(file[!first], 0, data[!first], PART, MPI_BYTE,
                           &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        check_fill(data[0], PART, seed_of(3, i, check_rank()));
        memset(back, 0, sizeof(back));
        MPI_File_read_at(file[i], 0, back, PART, MPI_BYTE, MPI_STATUS_IGNORE);
        CHECK(memcmp(back, data[0], PART) == 0, "file %d of two", i);
    }
}

/* The last rank begins only when the first has gone on. */
static void check_not_kept(void)
{
    MPI_Request request;
    int last = check_size() - 1;
    int token = 5;

    fill(4);
    if (check_rank() == last)
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file[1], 0, data[0], PART, MPI_BYTE, &request);
    if (check_rank() == 0)
        MPI_Send(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    verify(file[1], 4, 0, "not kept");
}

/* Rank 1's arguments are wrong: it hears so at once, the others at the end. */
static void check_error(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_wrong = check_rank() == 1;
    char words[MPI_MAX_ERROR_STRING] = "";
    int len;
    int rc;

    for (int split = 0; split < 2; split++) {
        MPI_Offset at = is_wrong ? -1 : 0;

        if (split)
            rc = MPI_File_write_at_all_begin(file[1], at, data[0], PART,
                                             MPI_BYTE);
        else
            rc = MPI_File_iwrite_at_all(file[1], at, data[0], PART, MPI_BYTE,
                                        &request);
        CHECK((rc == MPI_SUCCESS) != is_wrong, "start: class %d",
              check_class(rc));
        if (is_wrong)
            continue;
        rc = split ? MPI_File_write_at_all_end(file[1], data[0],
                                               MPI_STATUS_IGNORE)
                   : MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(check_class(rc) == MPI_ERR_ARG, "end: class %d", check_class(rc));
        MPI_Error_string(rc, words, &len);
        CHECK(strstr(words, "rank 1") != NULL, "nobody is blamed: %s", words);
    }
}

/* Nobody waits for it, but the close does. */
static void check_freed(void)
{
    MPI_Request request;

    fill(5);
    MPI_File_iwrite_at_all(file[1], 0, data[0], PART, MPI_BYTE, &request);
    MPI_Request_free(&request);
    MPI_File_sync(file[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    verify(file[1], 5, 0, "freed");
}

/* Hints change while accesses are under way that workers run. */
static void check_hints_between(void)
{
    MPI_Request requests[MANY];
    MPI_Info info;

    fill(6);
    for (int i = 0; i < MANY; i++)
        MPI_File_iwrite_at(file[1], (MPI_Offset)i * PART, data[i], PART,
                           MPI_BYTE, &requests[i]);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "enable");
    CHECK(MPI_File_set_info(file[1], info) == MPI_SUCCESS, "set_info");
    MPI_Info_free(&info);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++)
        verify(file[1], 6, i, "hints");
}

/* ---- away ---- */

/* Looks at the file itself: a rank that is here calls nothing of MPI. */
static void await_outside(int fd, int rank, const unsigned char *wanted)
{
    unsigned char block[BLOCK];
    off_t at = ((off_t)(BLOCKS - 1) * check_size() + rank) * BLOCK;

    while (pread(fd, block, BLOCK, at) != BLOCK ||
           memcmp(block, wanted + PART - BLOCK, BLOCK) != 0)
        sched_yield();
}

static void check_away(void)
{
    MPI_Request request;
    int fd = open(path[0], O_RDONLY);

    CHECK_OR_DIE(fd >= 0, "cannot open %s", path[0]);
    for (int round = 10; round < 20; round++) {
        bool is_split = round % 2;

        fill(round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_split)
            MPI_File_write_at_all_begin(file[0], 0, data[0], PART, MPI_BYTE);
        else
            MPI_File_iwrite_at_all(file[0], 0, data[0], PART, MPI_BYTE,
                                   &request);
        for (int r = 0; r < check_size(); r++) {
            check_fill(data[1], PART, seed_of(round, 0, r));
            await_outside(fd, r, data[1]);
        }
        if (is_split)
            MPI_File_write_at_all_end(file[0], data[0], MPI_STATUS_IGNORE);
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(file[0], round, 0, "away");
    }
    close(fd);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    open_files();
    if (argc > 1 && strcmp(argv[1], "away") == 0) {
        check_away();
    } else {
        check_watch("chempi_io_bytes_exchanged");
        check_many();
        check_was_used();
        check_behind();
        check_two_files();
        check_not_kept();
        check_error();
        check_freed();
        check_hints_between();
    }
    MPI_File_close(&file[0]);
    MPI_File_close(&file[1]);
    return check_finish();
}
