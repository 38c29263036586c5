/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that fail, by CHEMPI_IO_FAULTS: the call returns the class and says
 * file, offset and errno; in a collective every rank gets it and none hangs;
 * and what was closed has been synced before.
 *
 *   files_fail CLASS write|read|shrunk|sync|locks|busy|close|open|stale
 *       [HINT=VALUE]
 */
#include "check.h"

#include <unistd.h>

#define BLOCK 4096
#define BLOCKS 64

static char path[64];
static char data[BLOCK * BLOCKS];
static MPI_File file;
static int wanted;

static int class_of_name(const char *name)
{
    static const struct {
        const char *name;
        int class;
    } names[] = {{"none", MPI_SUCCESS},
                 {"no_space", MPI_ERR_NO_SPACE},
                 {"quota", MPI_ERR_QUOTA},
                 {"io", MPI_ERR_IO},
                 {"not_same", MPI_ERR_NOT_SAME},
                 {"unsupported", MPI_ERR_UNSUPPORTED_OPERATION}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].class;
    return -1;
}

/* The error of a call; where: must the words have an offset? */
static void expect(int rc, const char *call, bool has_offset)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int len;

    CHECK(check_class(rc) == wanted, "%s: class %d, not %d", call,
          check_class(rc), wanted);
    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, words, &len);
    CHECK(strstr(words, path) != NULL, "%s names no file: %s", call, words);
    CHECK(!has_offset || strstr(words, "offset") != NULL,
          "%s names no offset: %s", call, words);
}

/* Every n-th block is ours. */
static void set_view(void)
{
    MPI_Datatype block;
    MPI_Datatype tile;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * check_size(), &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, check_rank() * BLOCK, MPI_BYTE, tile, "native",
                      MPI_INFO_NULL);
    MPI_Type_free(&block);
    MPI_Type_free(&tile);
}

static void try_transfers(bool is_write)
{
    int len = (int)sizeof(data);
    MPI_Request request;
    MPI_Status status;

    if (is_write) {
        expect(MPI_File_write_at_all(file, 0, data, len, MPI_BYTE, &status),
               "write_at_all", true);
        MPI_File_iwrite_at(file, 0, data, len, MPI_BYTE, &request);
    } else {
        expect(MPI_File_read_at_all(file, 0, data, len, MPI_BYTE, &status),
               "read_at_all", true);
        MPI_File_iread_at(file, 0, data, len, MPI_BYTE, &request);
    }
    if (wanted == MPI_ERR_IO && check_rank() != 2) /* the list's bad places */
        wanted = MPI_SUCCESS;
    expect(MPI_Wait(&request, &status), "MPI_Wait", true);
    /* A piece that is whole is not hurt. */
    CHECK(MPI_File_read_at(file, 0, data, BLOCK, MPI_BYTE, &status) ==
              MPI_SUCCESS,
          "the first block");
}

/* The file ends earlier than its size said: an exchange is an error for all, a
 * read by one process ends there. */
static void try_shrunk(void)
{
    const int end = 500000; /* the list's */
    int len = (int)sizeof(data);
    int below = 0;
    int got = -1;
    MPI_Status status;

    for (int i = 0; i < BLOCKS; i++) {
        int left = end - (i * check_size() + check_rank()) * BLOCK;

        below += left < 0 ? 0 : left < BLOCK ? left : BLOCK;
    }
    expect(MPI_File_read_at_all(file, 0, data, len, MPI_BYTE, &status),
           "read_at_all", true);
    CHECK(MPI_File_read_at(file, 0, data, len, MPI_BYTE, &status) ==
              MPI_SUCCESS,
          "read_at");
    MPI_Get_count(&status, MPI_BYTE, &got);
    CHECK(got == below, "%d bytes, not %d", got, below);
}

/* Locks that are refused for a moment, and a change of mode while accesses
 * that began in the other one are under way. */
static void try_busy_locks(void)
{
    MPI_Request requests[BLOCKS];
    char *back = check_alloc(sizeof(data));

    for (int is_atomic = 1; is_atomic >= 0; is_atomic--) {
        expect(MPI_File_set_atomicity(file, is_atomic), "set_atomicity", false);
        for (int i = 0; i < BLOCKS; i++)
            MPI_File_iwrite_at(file, (MPI_Offset)BLOCK * i, data + BLOCK * i,
                               BLOCK, MPI_BYTE, &requests[i]);
        expect(MPI_File_set_atomicity(file, !is_atomic), "set_atomicity",
               false);
        expect(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE),
               "MPI_Waitall", false);
    }
    expect(MPI_File_read_at(file, 0, back, (int)sizeof(data), MPI_BYTE,
                            MPI_STATUS_IGNORE),
           "read_at", false);
    CHECK(memcmp(back, data, sizeof(data)) == 0, "other bytes came back");
    free(back);
}

/* What was closed stays although all that was not synced is lost. */
static void try_close(void)
{
    FILE *in;
    int good = 0;

    CHECK(MPI_File_write_at_all(file, 0, data, (int)sizeof(data), MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "write");
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    MPI_Barrier(MPI_COMM_WORLD);
    in = fopen(path, "rb");
    for (int i = 0; in && i < BLOCKS * check_size(); i++) {
        char block[BLOCK];

        good += fread(block, 1, BLOCK, in) == BLOCK &&
                block[0] == 'a' + i % check_size() &&
                memcmp(block, block + 1, BLOCK - 1) == 0;
    }
    CHECK(good == BLOCKS * check_size(), "%d blocks are there", good);
    if (in)
        fclose(in);
}

/* Write, sync, meet, sync: now everybody sees what the next rank has. */
static void try_stale(void)
{
    int next = (check_rank() + 1) % check_size();
    MPI_Status status;
    int got = -1;

    CHECK(MPI_File_write_at(file, 0, data, BLOCK, MPI_BYTE, &status) ==
              MPI_SUCCESS,
          "write");
    expect(MPI_File_sync(file), "sync", false);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(MPI_File_sync(file), "sync", false);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK(MPI_File_read_at(file, (MPI_Offset)next * BLOCK, data, BLOCK,
                           MPI_BYTE, &status) == MPI_SUCCESS,
          "read");
    MPI_Get_count(&status, MPI_BYTE, &got);
    CHECK(got == BLOCK && data[0] == 'a' + next && data[BLOCK - 1] == data[0],
          "%d bytes, '%c'", got, data[0]);
}

/* A file of the right length, made without MPI. */
static void make_file(void)
{
    FILE *out = check_rank() == 0 ? fopen(path, "wb") : NULL;

    for (int i = 0; out && i < check_size(); i++)
        CHECK(fwrite(data, 1, sizeof(data), out) == sizeof(data), "make");
    if (out)
        fclose(out);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int end(MPI_Info info)
{
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        remove(path);
    return check_finish();
}

int main(int argc, char **argv)
{
    const char *what;
    MPI_Info info = MPI_INFO_NULL;

    check_start(&argc, &argv);
    if (argc < 3)
        check_skip("usage: files_fail CLASS "
                   "write|read|shrunk|sync|locks|busy|close|open|stale");
    wanted = class_of_name(argv[1]);
    what = argv[2];
    snprintf(path, sizeof(path), "fail-%ld.tmp", (long)getppid());
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    memset(data, 'a' + check_rank(), sizeof(data));
    if (argc > 3) {
        char *equals = strchr(argv[3], '=');

        *equals = '\0';
        MPI_Info_create(&info);
        MPI_Info_set(info, argv[3], equals + 1);
    }
    if (strcmp(what, "read") == 0 || strcmp(what, "shrunk") == 0)
        make_file();
    if (strcmp(what, "open") == 0) {
        expect(MPI_File_open(MPI_COMM_WORLD, path,
                             MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file),
               "open", false);
        return end(info);
    }
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path,
                               MPI_MODE_CREATE | MPI_MODE_RDWR, info,
                               &file) == MPI_SUCCESS,
                 "open");
    set_view();
    if (strcmp(what, "sync") == 0) {
        MPI_File_write_at_all(file, 0, data, BLOCK, MPI_BYTE,
                              MPI_STATUS_IGNORE);
        expect(MPI_File_sync(file), "sync", false);
        /* What was lost then is lost, whatever the system says now. */
        expect(MPI_File_sync(file), "the next sync", false);
        expect(MPI_File_close(&file), "close", false);
    } else if (strcmp(what, "locks") == 0) {
        expect(MPI_File_set_atomicity(file, 1), "set_atomicity", false);
        CHECK(MPI_File_write_at(file, 0, data, (int)sizeof(data), MPI_BYTE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "writing without locks");
    } else if (strcmp(what, "shrunk") == 0) {
        try_shrunk();
    } else if (strcmp(what, "busy") == 0) {
        try_busy_locks();
    } else if (strcmp(what, "stale") == 0) {
        try_stale();
    } else if (strcmp(what, "close") == 0) {
        try_close();
    } else {
        try_transfers(strcmp(what, "write") == 0);
    }
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    return end(info);
}
