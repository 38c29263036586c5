/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments that are wrong at one rank of a collective call on a file: this
 * rank gets the class, the others the same and whose error it is, and nobody
 * waits for ever; afterwards the file is as it was. Where arguments that are to
 * be alike differ, all hear who has which. Where views leave
 * nothing to exchange, the error stays with its rank. With "limit": the file
 * may not grow beyond RLIMIT_FSIZE, which is an error and no signal. With
 * "freed": accesses whose requests were freed have reached the file when it is
 * closed.
 *
 *   files_args [limit|freed]
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <sys/resource.h>
#include <unistd.h>

enum { BAD_RANK = 1, ELEMENTS = 1000 };

static char path[64];
static MPI_File file;
static int data[ELEMENTS];

static bool is_bad(void)
{
    return check_rank() == BAD_RANK;
}

/* Everybody's error, with words about the file; the others hear whose. */
static void expect(int rc, int class, const char *call)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    char whose[16];
    int len;

    CHECK(check_class(rc) == class, "%s: class %d, not %d", call,
          check_class(rc), class);
    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, words, &len);
    snprintf(whose, sizeof(whose), "rank %d: ", BAD_RANK);
    CHECK(is_bad() || strstr(words, whose) != NULL,
          "%s does not say whose error it is: %s", call, words);
    CHECK(is_bad() || strstr(words, path) != NULL, "%s names no file: %s", call,
          words);
}

/* A collective access after all that finds the file in order. */
static void still_works(const char *after)
{
    int back[4] = {0};
    int want = check_rank() * 7 + 1;

    for (int i = 0; i < 4; i++)
        data[i] = want;
    CHECK(MPI_File_write_at_all(file, check_rank() * 4, data, 4, MPI_INT,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "writing after %s", after);
    CHECK(MPI_File_read_at_all(file, check_rank() * 4, back, 4, MPI_INT,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS &&
              memcmp(back, data, sizeof(back)) == 0,
          "reading after %s", after);
}

/* A bad count, type or buffer at the one; the others have something to say. */
static void try_accesses(void)
{
    int count = is_bad() ? -1 : 8;
    MPI_Datatype type = is_bad() ? MPI_DATATYPE_NULL : MPI_INT;
    void *buf = is_bad() ? NULL : data;
    MPI_Offset at = is_bad() ? -5 : 100 * check_rank();
    MPI_Offset shared = -1;
    MPI_Status status;

    expect(MPI_File_write_at_all(file, 0, data, count, MPI_INT, &status),
           MPI_ERR_COUNT, "write_at_all, count");
    still_works("a bad count");
    expect(MPI_File_write_all(file, data, 8, type, &status), MPI_ERR_TYPE,
           "write_all, datatype");
    expect(MPI_File_read_all(file, buf, 8, MPI_INT, &status), MPI_ERR_BUFFER,
           "read_all, buf");
    expect(MPI_File_write_at_all(file, at, data, 8, MPI_INT, &status),
           MPI_ERR_ARG, "write_at_all, offset");
    still_works("a bad offset");
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    expect(MPI_File_write_ordered(file, data, count, MPI_INT, &status),
           MPI_ERR_COUNT, "write_ordered, count");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(file, &shared);
    CHECK(shared == 8 * (check_size() - 1), "the shared pointer is at %lld",
          (long long)shared);
    still_works("an ordered access");
}

static void try_later(void)
{
    int count = is_bad() ? -1 : 8;
    MPI_Datatype type = is_bad() ? MPI_DATATYPE_NULL : MPI_INT;
    MPI_Request request = MPI_REQUEST_NULL;
    int rc = MPI_File_iwrite_at_all(file, 8 * check_rank(), data, count,
                                    MPI_INT, &request);

    if (!is_bad())
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(rc, MPI_ERR_COUNT, "iwrite_at_all, count");
    CHECK(request == MPI_REQUEST_NULL, "a request is left");
    rc = MPI_File_write_all_begin(file, data, 8, type);
    if (!is_bad())
        rc = MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE);
    expect(rc, MPI_ERR_TYPE, "write_all_begin, datatype");
    still_works("a split access");
}

/* One has not ended its split access yet. */
static void try_split(void)
{
    int rc;

    MPI_File_seek(file, 10 * check_rank(), MPI_SEEK_SET);
    CHECK(MPI_File_write_all_begin(file, data, 10, MPI_INT) == MPI_SUCCESS,
          "write_all_begin");
    if (!is_bad())
        MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE);
    rc = MPI_File_read_all_begin(file, data, 10, MPI_INT);
    if (!is_bad())
        rc = MPI_File_read_all_end(file, data, MPI_STATUS_IGNORE);
    expect(rc, MPI_ERR_IO, "a second split access");
    expect(MPI_File_sync(file), MPI_ERR_IO, "sync within a split access");
    expect(MPI_File_close(&file), MPI_ERR_IO, "close within a split access");
    CHECK(file != MPI_FILE_NULL, "it was closed all the same");
    if (is_bad())
        CHECK(MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE) ==
                  MPI_SUCCESS,
              "write_all_end");
    still_works("an unfinished split access");
}

static void try_others(void)
{
    const char *name = is_bad() ? NULL : path;
    MPI_File other = MPI_FILE_NULL;
    /* A null handle of another kind is no info. */
    MPI_Info info = is_bad() ? (MPI_Info)MPI_COMM_NULL : MPI_INFO_NULL;
    MPI_Datatype type = is_bad() ? MPI_DATATYPE_NULL : MPI_INT;

    expect(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL),
           MPI_ERR_TYPE, "set_view, filetype");
    expect(MPI_File_set_view(file, 0, MPI_INT, MPI_INT,
                             is_bad() ? "nonsense" : "native", MPI_INFO_NULL),
           MPI_ERR_UNSUPPORTED_DATAREP, "set_view, datarep");
    expect(MPI_File_set_view(file, is_bad() ? -2 : 0, MPI_INT, MPI_INT,
                             "native", MPI_INFO_NULL),
           MPI_ERR_ARG, "set_view, disp");
    expect(MPI_File_set_info(file, info), MPI_ERR_INFO, "set_info");
    expect(MPI_File_set_size(file, is_bad() ? -1 : 10), MPI_ERR_ARG,
           "set_size");
    CHECK(check_class(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY,
                                    MPI_INFO_NULL, &other)) == MPI_ERR_ARG,
          "open, filename");
    CHECK(other == MPI_FILE_NULL, "it was opened");
    CHECK(check_class(MPI_File_open(MPI_COMM_WORLD, ".", MPI_MODE_RDONLY,
                                    MPI_INFO_NULL, &other)) == MPI_ERR_BAD_FILE,
          "open, a folder");
    CHECK(other == MPI_FILE_NULL, "it was opened");
    still_works("bad views and hints");
}

/* Everybody hears which argument differs, and who has what. */
static void expect_apart(int rc, const char *name, const char *one,
                         const char *other, const char *call)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    char first[64], second[64];
    int len;

    CHECK(check_class(rc) == MPI_ERR_NOT_SAME, "%s: class %d", call,
          check_class(rc));
    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, words, &len);
    snprintf(first, sizeof(first), "rank 0 has %s", one);
    snprintf(second, sizeof(second), "rank %d has %s", BAD_RANK, other);
    CHECK(strstr(words, path) != NULL && strstr(words, name) != NULL &&
              strstr(words, call) != NULL,
          "%s: %s", call, words);
    CHECK(strstr(words, first) != NULL && strstr(words, second) != NULL,
          "%s does not tell %s and %s apart: %s", call, first, second, words);
}

static void try_different(void)
{
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Datatype type = is_bad() ? MPI_DOUBLE : MPI_INT;
    MPI_File other = MPI_FILE_NULL;
    MPI_Offset size = 0, before = 0, at = -1;
    int flag = 1;

    MPI_File_get_size(file, &before);
    MPI_File_seek_shared(file, 2, MPI_SEEK_SET);
    expect_apart(MPI_File_set_size(file, is_bad() ? 2000 : 1000), "size",
                 "1000", "2000", "MPI_File_set_size");
    expect_apart(MPI_File_preallocate(file, is_bad() ? 200000 : 300000), "size",
                 "300000", "200000", "MPI_File_preallocate");
    MPI_File_get_size(file, &size);
    CHECK(size == before, "the file has %lld bytes", (long long)size);
    expect_apart(MPI_File_seek_shared(file, is_bad() ? -3 : 0, MPI_SEEK_SET),
                 "offset", "0", "-3", "MPI_File_seek_shared");
    expect_apart(
        MPI_File_seek_shared(file, 0, is_bad() ? MPI_SEEK_END : MPI_SEEK_SET),
        "whence", "MPI_SEEK_SET", "MPI_SEEK_END", "MPI_File_seek_shared");
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 2, "the shared pointer is at %lld", (long long)at);
    expect_apart(MPI_File_set_atomicity(file, is_bad()), "flag", "0", "1",
                 "MPI_File_set_atomicity");
    MPI_File_get_atomicity(file, &flag);
    CHECK(flag == 0, "the file is atomic");
    CHECK(MPI_File_set_atomicity(file, is_bad() ? 2 : 1) == MPI_SUCCESS &&
              MPI_File_set_atomicity(file, 0) == MPI_SUCCESS,
          "set_atomicity");
    expect_apart(
        MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL),
        "etype", "4", "8", "MPI_File_set_view");
    expect_apart(MPI_File_set_view(file, 0, MPI_INT, MPI_INT,
                                   is_bad() ? "external32" : "native",
                                   MPI_INFO_NULL),
                 "datarep", "native", "external32", "MPI_File_set_view");
    expect_apart(MPI_File_open(MPI_COMM_WORLD, path,
                               is_bad() ? mode | MPI_MODE_APPEND : mode,
                               MPI_INFO_NULL, &other),
                 "amode", "0x", "0x", "MPI_File_open");
    still_works("different arguments");
}

static void open_file(MPI_Info info)
{
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path,
                               MPI_MODE_CREATE | MPI_MODE_RDWR, info,
                               &file) == MPI_SUCCESS,
                 "open");
}

static void expect_words(int rc, int class, const char *words, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;

    CHECK(check_class(rc) == class, "%s: class %d", call, check_class(rc));
    MPI_Error_string(rc, text, &len);
    CHECK(strstr(text, words) != NULL, "%s says: %s", call, text);
}

/* Few file systems have files of 2^63 - 1 bytes; 64 KiB is less. */
static void try_limits(void)
{
    struct rlimit none;
    struct rlimit limit;
    MPI_Offset huge = INT64_MAX;

    CHECK_OR_DIE(getrlimit(RLIMIT_FSIZE, &none) == 0, "getrlimit");
    limit = none;
    limit.rlim_cur = 65536;
    open_file(MPI_INFO_NULL);
    if (none.rlim_cur == RLIM_INFINITY) { /* some file systems have them */
        const int rc = MPI_File_set_size(file, huge);

        if (rc)
            expect_words(rc, MPI_ERR_QUOTA, "file system has no larger files",
                         "set_size");
        else
            MPI_File_set_size(file, 0);
    }
    CHECK_OR_DIE(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    MPI_File_close(&file);
    open_file(MPI_INFO_NULL);
    expect_words(MPI_File_set_size(file, 65537), MPI_ERR_QUOTA,
                 "see 'ulimit -f'", "set_size");
    MPI_File_close(&file);
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0, "setrlimit");
}

/* 64 KiB is all that a file may have. */
static void try_limit(void)
{
    struct rlimit limit = {65536, RLIM_INFINITY};
    MPI_Datatype tile;
    MPI_Request request;
    MPI_Status status;
    char *big = check_alloc(100000);

    CHECK_OR_DIE(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    open_file(MPI_INFO_NULL);
    CHECK(check_class(MPI_File_write_at(file, 0, big, 100000, MPI_BYTE,
                                        &status)) == MPI_ERR_QUOTA,
          "writing across the limit");
    CHECK(check_class(MPI_File_write_at(file, 65536, big, 1, MPI_BYTE,
                                        &status)) == MPI_ERR_QUOTA,
          "writing behind the limit");
    MPI_File_iwrite_at(file, 70000, big, 1, MPI_BYTE, &request);
    CHECK(check_class(MPI_Wait(&request, &status)) == MPI_ERR_QUOTA,
          "writing behind the limit, later");
    CHECK(check_class(MPI_File_set_size(file, 65537)) == MPI_ERR_QUOTA,
          "set_size");
    CHECK(check_class(MPI_File_preallocate(file, 65537)) == MPI_ERR_QUOTA,
          "preallocate");
    CHECK(MPI_File_write_at(file, 65530, big, 6, MPI_BYTE, &status) ==
              MPI_SUCCESS,
          "writing up to the limit");
    MPI_Type_create_resized(MPI_BYTE, 0, 100, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, check_rank(), MPI_BYTE, tile, "native",
                      MPI_INFO_NULL);
    CHECK(check_class(MPI_File_write_at(file, 0, big, 1000, MPI_BYTE,
                                        &status)) == MPI_ERR_QUOTA,
          "small pieces");
    CHECK(check_class(MPI_File_write_at_all(file, 0, big, 1000, MPI_BYTE,
                                            &status)) == MPI_ERR_QUOTA,
          "small pieces, together");
    MPI_Type_free(&tile);
    free(big);
}

/* Runs that an exchange may bring together. */
static void set_view_of_pieces(void)
{
    MPI_Datatype piece;

    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &piece);
    MPI_Type_commit(&piece);
    CHECK(MPI_File_set_view(file, 0, MPI_INT, piece, "native", MPI_INFO_NULL) ==
              MPI_SUCCESS,
          "a view of pieces");
    MPI_Type_free(&piece);
}

/* Everybody has one run: the others neither hear of an error nor wait for its
 * rank, which comes when they have gone on. */
static void try_whole_runs(void)
{
    int count = is_bad() ? -1 : 8;
    int back[8] = {0};
    MPI_Status status;
    int rc;

    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native",
                            MPI_INFO_NULL) == MPI_SUCCESS,
          "a view of one run");
    if (is_bad())
        MPI_Barrier(MPI_COMM_WORLD);
    rc = MPI_File_write_at_all(file, 8 * check_rank(), data, count, MPI_INT,
                               &status);
    CHECK(check_class(rc) == (is_bad() ? MPI_ERR_COUNT : MPI_SUCCESS),
          "write_at_all, a rank's own count: class %d", check_class(rc));
    rc = MPI_File_read_at_all(file, 8 * check_rank(), back, is_bad() ? 0 : 8,
                              MPI_INT, &status);
    CHECK(rc == MPI_SUCCESS &&
              (is_bad() || memcmp(back, data, sizeof(back)) == 0),
          "what was written differs");
    if (!is_bad())
        MPI_Barrier(MPI_COMM_WORLD);
    still_works("a rank's own error");
}

/* Nobody can wait for these but close. */
static void try_freed(void)
{
    enum { LEN = 1 << 22 };
    char *big = check_alloc(LEN);
    MPI_Offset size = 0;
    MPI_Request request;
    char last = 0;
    MPI_File again;

    memset(big, 'a' + check_rank(), LEN);
    open_file(MPI_INFO_NULL);
    for (int i = 0; i < 4; i++) {
        MPI_File_iwrite_at(file, (MPI_Offset)(4 * check_rank() + i) * LEN, big,
                           LEN, MPI_BYTE, &request);
        MPI_Request_free(&request);
    }
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &again);
    MPI_File_get_size(again, &size);
    CHECK(size == (MPI_Offset)4 * LEN * check_size(), "%lld bytes",
          (long long)size);
    for (int i = 1; i <= 4 * check_size(); i++) {
        MPI_File_read_at(again, (MPI_Offset)i * LEN - 1, &last, 1, MPI_BYTE,
                         MPI_STATUS_IGNORE);
        CHECK(last == 'a' + (i - 1) / 4, "byte %d is %d", i, last);
    }
    MPI_File_close(&again);
    free(big);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    snprintf(path, sizeof(path), "args-%ld.tmp", (long)getppid());
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (argc > 1 && strcmp(argv[1], "limit") == 0) {
        try_limits();
        try_limit();
    } else if (argc > 1 && strcmp(argv[1], "freed") == 0) {
        try_freed();
    } else {
        open_file(MPI_INFO_NULL);
        set_view_of_pieces();
        try_accesses();
        try_later();
        try_split();
        try_others();
        try_different();
        try_whole_runs();
    }
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        remove(path);
    return check_finish();
}
