/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening, modes, sizes, hints, error handlers, representations, atomic mode:
 * what files promise beside moving bytes.
 */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

static char path[64];

static int open_as(MPI_Comm comm, int amode, MPI_File *file)
{
    return check_class(MPI_File_open(comm, path, amode, MPI_INFO_NULL, file));
}

static void check_modes(void)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Offset size = -1;
    int amode = 0;
    int value = 5;
    MPI_Group group;
    MPI_Group world;
    int same;

    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDONLY, &file) ==
              MPI_ERR_NO_SUCH_FILE,
          "a file that is not there");
    CHECK(file == MPI_FILE_NULL, "the handle was set");
    CHECK(open_as(MPI_COMM_WORLD, 0, &file) == MPI_ERR_AMODE, "no access");
    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDONLY | MPI_MODE_WRONLY, &file) ==
              MPI_ERR_AMODE,
          "two accesses");
    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDONLY | MPI_MODE_CREATE, &file) ==
              MPI_ERR_AMODE,
          "create read-only");
    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, &file) ==
              MPI_ERR_AMODE,
          "sequential read-write");
    CHECK(open_as(MPI_COMM_WORLD,
                  MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL,
                  &file) == MPI_SUCCESS,
          "create");
    MPI_File_get_amode(file, &amode);
    CHECK(amode == (MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL),
          "amode %x", (unsigned)amode);
    MPI_File_get_group(file, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &same);
    CHECK(same == MPI_IDENT, "the group differs");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    CHECK(check_class(MPI_File_read_at(file, 0, &value, 1, MPI_INT,
                                       MPI_STATUS_IGNORE)) == MPI_ERR_ACCESS,
          "reading a write-only file");
    CHECK(MPI_File_write_at(file, check_rank() * 4, &value, 1, MPI_INT,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "write");
    CHECK(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL,
          "close");
    CHECK(open_as(MPI_COMM_WORLD,
                  MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
                  &file) == MPI_ERR_FILE_EXISTS,
          "there already");
    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDONLY, &file) == MPI_SUCCESS,
          "open to read");
    CHECK(check_class(MPI_File_write(file, &value, 1, MPI_INT,
                                     MPI_STATUS_IGNORE)) == MPI_ERR_READ_ONLY,
          "writing a read-only file");
    CHECK(check_class(MPI_File_set_size(file, 1)) == MPI_ERR_READ_ONLY,
          "cutting a read-only file");
    MPI_File_get_size(file, &size);
    CHECK(size == 4 * check_size(), "%lld bytes", (long long)size);
    MPI_File_close(&file);
}

/* A split read that meets the end of the file leaves the pointer there, but not
 * when a seek within it has moved it. The pointer is 8 bytes before the end. */
static void check_split_at_end(MPI_File file)
{
    char bytes[20];
    MPI_Offset before = -1;
    MPI_Offset at = -1;

    MPI_File_get_position(file, &before);
    for (int is_moved = 0; is_moved < 2; is_moved++) {
        MPI_Status status;
        int got = -1;

        MPI_File_seek(file, before, MPI_SEEK_SET);
        MPI_File_read_all_begin(file, bytes, sizeof(bytes), MPI_BYTE);
        if (is_moved)
            MPI_File_seek(file, 3, MPI_SEEK_SET);
        MPI_File_read_all_end(file, bytes, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        CHECK(got == 8, "%d bytes before the end", got);
        MPI_File_get_position(file, &at);
        CHECK(at == (is_moved ? 3 : before + 8), "pointer at %lld",
              (long long)at);
    }
}

static void check_sizes(void)
{
    MPI_File file;
    MPI_Offset size = -1;
    MPI_Offset at = -1;
    int value = 77;

    CHECK(open_as(MPI_COMM_WORLD, MPI_MODE_RDWR | MPI_MODE_APPEND, &file) ==
              MPI_SUCCESS,
          "append");
    MPI_File_get_position(file, &at);
    CHECK(at == 4 * check_size(), "append begins at %lld", (long long)at);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 4 * check_size(), "shared begins at %lld", (long long)at);
    CHECK(MPI_File_set_size(file, 100000) == MPI_SUCCESS, "set_size");
    MPI_File_get_size(file, &size);
    CHECK(size == 100000, "size %lld", (long long)size);
    CHECK(MPI_File_preallocate(file, 50000) == MPI_SUCCESS, "preallocate");
    MPI_File_get_size(file, &size);
    CHECK(size == 100000, "size %lld after preallocate", (long long)size);
    CHECK(MPI_File_preallocate(file, 200000) == MPI_SUCCESS, "preallocate");
    MPI_File_get_size(file, &size);
    CHECK(size == 200000, "size %lld", (long long)size);
    MPI_File_read_at(file, 199996, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(value == 0, "new bytes are not zero");
    CHECK(MPI_File_seek(file, -8, MPI_SEEK_END) == MPI_SUCCESS, "seek");
    MPI_File_get_position(file, &at);
    CHECK(at == 199992, "pointer at %lld", (long long)at);
    CHECK(check_class(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG,
          "seek before the start");
    check_split_at_end(file);
    CHECK(check_class(MPI_File_set_size(file, -1)) == MPI_ERR_ARG, "size -1");
    MPI_File_close(&file);
}

/* A file that was there stays, where others cannot open it. */
static void check_kept(void)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Offset size = -1;
    int rc = MPI_File_open(MPI_COMM_WORLD,
                           check_rank() == 1 ? "/nowhere/at/all" : path,
                           MPI_MODE_RDWR | MPI_MODE_EXCL, MPI_INFO_NULL, &file);

    CHECK(check_class(rc) ==
              (check_size() > 1 ? MPI_ERR_NO_SUCH_FILE : MPI_SUCCESS),
          "class %d", check_class(rc));
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    CHECK_OR_DIE(open_as(MPI_COMM_WORLD, MPI_MODE_RDONLY, &file) == MPI_SUCCESS,
                 "the file is gone");
    MPI_File_get_size(file, &size);
    CHECK(size == 200000, "size %lld", (long long)size);
    MPI_File_close(&file);
}

static int heard;
static MPI_File heard_file;

static void handler(MPI_File *file, int *code, ...)
{
    heard = check_class(*code);
    heard_file = *file;
}

static void check_handlers(void)
{
    MPI_File file;
    MPI_Errhandler mine;
    MPI_Errhandler now;
    MPI_Request request;
    int value = 0;
    char words[MPI_MAX_ERROR_STRING] = "";
    int len;
    int rc;

    MPI_File_get_errhandler(MPI_FILE_NULL, &now);
    CHECK(now == MPI_ERRORS_RETURN, "MPI_FILE_NULL has another handler");
    MPI_File_create_errhandler(handler, &mine);
    MPI_File_set_errhandler(MPI_FILE_NULL, mine);
    heard = 0;
    MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY,
                  MPI_INFO_NULL, &file);
    CHECK(heard == MPI_ERR_NO_SUCH_FILE && heard_file == MPI_FILE_NULL,
          "heard class %d", heard);
    heard = 0;
    MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL);
    CHECK(heard == MPI_ERR_NO_SUCH_FILE, "heard class %d", heard);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    CHECK_OR_DIE(open_as(MPI_COMM_SELF, MPI_MODE_RDONLY, &file) == MPI_SUCCESS,
                 "open");
    MPI_File_set_errhandler(file, mine);
    heard = 0;
    rc = MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(heard == MPI_ERR_READ_ONLY && heard_file == file, "heard %d", heard);
    MPI_Error_string(rc, words, &len);
    CHECK(strstr(words, path) != NULL, "no path in \"%s\"", words);
    heard = 0;
    MPI_File_iread_at(file, -3, &value, 1, MPI_INT, &request);
    CHECK(heard == MPI_ERR_ARG, "heard %d", heard);
    heard = 0;
    MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE);
    CHECK(heard == MPI_ERR_NO_SPACE, "heard %d", heard);
    MPI_Errhandler_free(&mine);
    MPI_File_close(&file);
    CHECK(check_class(MPI_File_close(&file)) == MPI_ERR_FILE, "closed twice");
}

static bool says(MPI_File file, const char *key, const char *wanted)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL] = "";
    int flag = 0;

    MPI_File_get_info(file, &info);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &flag);
    MPI_Info_free(&info);
    return flag && strcmp(value, wanted) == 0;
}

/* The permissions of a file that is made: those of the hint less the umask,
 * and of one that is there already: its own. */
static void check_permissions(void)
{
    static const char *const asked[] = {"0640", "666", "0400", "rw", "01666"};
    static const char *const got[] = {"0640", "0664", "0664", "0664", "0664"};
    mode_t mask = umask(02);
    MPI_File file;
    MPI_Info info;

    for (int i = 0; i < 5; i++) {
        char name[80];

        snprintf(name, sizeof(name), "%s.perm", path);
        MPI_Info_create(&info);
        MPI_Info_set(info, "file_perm", asked[i]);
        MPI_File_open(MPI_COMM_WORLD, name,
                      MPI_MODE_RDWR | MPI_MODE_CREATE |
                          MPI_MODE_DELETE_ON_CLOSE,
                      info, &file);
        MPI_Info_set(info, "file_perm", "0600");
        MPI_File_set_info(file, info);
        MPI_Info_free(&info);
        CHECK(says(file, "file_perm", got[i]), "file_perm=%s", asked[i]);
        CHECK(says(file, "filename", name), "the name of %s", name);
        MPI_File_close(&file);
    }
    umask(mask);
}

static void check_hints(void)
{
    MPI_File file;
    MPI_Info info;
    char value[64] = "";
    int flag = 0;

    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "nobody_knows_this", "1");
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file);
    MPI_Info_set(info, "cb_buffer_size", "lots");
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
    CHECK(says(file, "collective_buffering", "true"), "collective_buffering");
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "cb_buffer_size", 63, value, &flag);
    CHECK(flag && strcmp(value, "65536") == 0, "cb_buffer_size %s", value);
    MPI_Info_get(info, "romio_cb_write", 63, value, &flag);
    CHECK(flag && strcmp(value, "enable") == 0, "romio_cb_write %s", value);
    MPI_Info_get(info, "cb_nodes", 63, value, &flag);
    CHECK(flag && atoi(value) >= 1, "cb_nodes %s", value);
    MPI_Info_get(info, "nobody_knows_this", 63, value, &flag);
    CHECK(!flag, "a hint that is not used is told");
    MPI_Info_free(&info);
    MPI_File_close(&file);
}

/* Ints in the file are their negatives, twice as long. */
static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    MPI_Aint lb;

    (void)state;
    MPI_Type_get_extent(type, &lb, extent);
    *extent *= 2;
    return MPI_SUCCESS;
}

static int to_memory(void *user, MPI_Datatype type, int count, void *data,
                     MPI_Offset position, void *state)
{
    (void)type;
    ++*(int *)state;
    for (int i = 0; i < count; i++)
        ((int *)user)[position + i] = -((int *)data)[2 * i];
    return MPI_SUCCESS;
}

static int to_file(void *user, MPI_Datatype type, int count, void *data,
                   MPI_Offset position, void *state)
{
    (void)type;
    ++*(int *)state;
    for (int i = 0; i < count; i++) {
        ((int *)data)[2 * i] = -((int *)user)[position + i];
        ((int *)data)[2 * i + 1] = 0;
    }
    return MPI_SUCCESS;
}

static int refuse(void *user, MPI_Datatype type, int count, void *data,
                  MPI_Offset position, void *state)
{
    (void)user;
    (void)type;
    (void)count;
    (void)data;
    (void)position;
    (void)state;
    return MPI_ERR_OTHER;
}

/* What cannot be converted is not written, and the pointer stays. */
static void check_refused(void)
{
    MPI_File file;
    MPI_Offset at = -1;
    int values[4] = {0};

    CHECK(MPI_Register_datarep("refused", refuse, refuse, extent_of, NULL) ==
              MPI_SUCCESS,
          "register");
    open_as(MPI_COMM_SELF, MPI_MODE_RDWR, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "refused", MPI_INFO_NULL);
    CHECK(check_class(MPI_File_write(file, values, 4, MPI_INT,
                                     MPI_STATUS_IGNORE)) == MPI_ERR_CONVERSION,
          "writing");
    MPI_File_get_position(file, &at);
    CHECK(at == 0, "pointer at %lld", (long long)at);
    MPI_File_close(&file);
}

static void check_registered(void)
{
    static int calls;
    MPI_File file;
    MPI_Aint extent = 0;
    MPI_Status status;
    int values[10];
    int back[10];
    int raw[20];
    int n = 0;

    CHECK(MPI_Register_datarep("negative", to_memory, to_file, extent_of,
                               &calls) == MPI_SUCCESS,
          "register");
    CHECK(check_class(MPI_Register_datarep("negative", to_memory, to_file,
                                           extent_of, &calls)) ==
              MPI_ERR_DUP_DATAREP,
          "registered twice");
    check_refused();
    open_as(MPI_COMM_WORLD, MPI_MODE_RDWR, &file);
    CHECK(check_class(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "none",
                                        MPI_INFO_NULL)) ==
              MPI_ERR_UNSUPPORTED_DATAREP,
          "an unknown representation");
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "negative",
                            MPI_INFO_NULL) == MPI_SUCCESS,
          "set_view");
    MPI_File_get_type_extent(file, MPI_INT, &extent);
    CHECK(extent == 8, "extent %ld", (long)extent);
    for (int i = 0; i < 10; i++)
        values[i] = check_rank() * 100 + i;
    MPI_File_write_at_all(file, check_rank() * 10, values, 10, MPI_INT,
                          &status);
    MPI_Get_count(&status, MPI_INT, &n);
    CHECK(n == 10, "%d ints", n);
    MPI_File_read_at(file, check_rank() * 10, back, 10, MPI_INT, &status);
    CHECK(memcmp(back, values, sizeof(back)) == 0, "came back differently");
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, check_rank() * 20, raw, 20, MPI_INT, &status);
    for (int i = 0; i < 10; i++)
        CHECK(raw[2 * i] == -values[i] && raw[2 * i + 1] == 0, "in the file");
    CHECK(calls == 2, "%d conversions", calls);
    MPI_File_close(&file);
}

static int half_of(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    MPI_Aint lb;

    (void)state;
    MPI_Type_get_extent(type, &lb, extent);
    *extent /= 2;
    return MPI_SUCCESS;
}

/* Sizes that differ, and nobody who converts. */
static void check_unconverted(void)
{
    MPI_File file;
    int values[64] = {0};

    CHECK(MPI_Register_datarep("halved", MPI_CONVERSION_FN_NULL,
                               MPI_CONVERSION_FN_NULL, half_of,
                               NULL) == MPI_SUCCESS,
          "register");
    open_as(MPI_COMM_SELF, MPI_MODE_RDWR, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "halved", MPI_INFO_NULL);
    CHECK(check_class(MPI_File_write_at(file, 0, values, 64, MPI_INT,
                                        MPI_STATUS_IGNORE)) ==
              MPI_ERR_CONVERSION,
          "writing");
    CHECK(check_class(MPI_File_read_at(file, 0, values, 64, MPI_INT,
                                       MPI_STATUS_IGNORE)) ==
              MPI_ERR_CONVERSION,
          "reading");
    MPI_File_close(&file);
}

static void check_external(void)
{
    MPI_File file;
    MPI_Datatype tile;
    double value = 1.5;
    double back = 0;
    int ints[2] = {0x01020304, 0x0a0b0c0d};
    int read[2] = {0, 0};
    long number = -3 - check_rank();
    long again = 0;
    unsigned char bytes[8];
    char name[MPI_MAX_DATAREP_STRING];
    MPI_Datatype etype;
    MPI_Datatype filetype;
    MPI_Datatype spread;
    MPI_Offset disp;
    MPI_Aint extent;

    open_as(MPI_COMM_SELF, MPI_MODE_RDWR, &file);
    MPI_Type_vector(1, 1, 1, MPI_INT, &etype);
    MPI_Type_create_resized(etype, 0, 8, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_free(&etype);
    CHECK(MPI_File_set_view(file, 8, MPI_INT, tile, "external32",
                            MPI_INFO_NULL) == MPI_SUCCESS,
          "external32");
    MPI_File_get_view(file, &disp, &etype, &filetype, name);
    CHECK(disp == 8 && etype == MPI_INT && strcmp(name, "external32") == 0,
          "get_view");
    MPI_Type_free(&filetype);
    MPI_Type_free(&tile);
    MPI_File_write_at(file, 0, ints, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, read, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(memcmp(ints, read, sizeof(ints)) == 0, "ints differ");
    MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "external32",
                      MPI_INFO_NULL);
    MPI_File_write_at(file, 10, &value, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 10, &back, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    CHECK(back == value, "doubles differ");
    MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_get_type_extent(file, MPI_LONG, &extent);
    CHECK(extent == 4, "a long has %ld bytes", (long)extent);
    /* 61 longs, of which 13 have 104 bytes here and 52 there. */
    MPI_Type_vector(13, 1, 5, MPI_LONG, &spread);
    MPI_Type_commit(&spread);
    MPI_File_get_type_extent(file, spread, &extent);
    CHECK(extent == 244, "the spread longs take %ld bytes", (long)extent);
    MPI_Type_free(&spread);
    MPI_File_write_at(file, 200, &number, 1, MPI_LONG, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 200, &again, 1, MPI_LONG, MPI_STATUS_IGNORE);
    CHECK(again == number, "longs differ: %ld", again);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 16, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(bytes[0] == 0x0a && bytes[3] == 0x0d, "not big-endian");
    MPI_File_close(&file);
}

/* Overlapping writes in atomic mode: each range is one rank's as a whole. */
static void check_atomic(void)
{
    enum { BLOCKS = 200, BLOCK = 64 };
    MPI_File file;
    MPI_Datatype block;
    MPI_Datatype tile;
    int flag = -1;
    char *buf = check_alloc(BLOCKS * BLOCK);
    int mixed = 0;

    open_as(MPI_COMM_WORLD, MPI_MODE_RDWR, &file);
    CHECK(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS, "atomic mode");
    MPI_File_get_atomicity(file, &flag);
    CHECK(flag == 1, "atomic mode is %d", flag);
    MPI_Type_vector(1, BLOCK, 1, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 2 * BLOCK, &tile);
    MPI_Type_free(&block);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    for (int round = 0; round < 20; round++) {
        memset(buf, check_rank() + 1, BLOCKS * BLOCK);
        MPI_File_write_at(file, 0, buf, BLOCKS * BLOCK, MPI_BYTE,
                          MPI_STATUS_IGNORE);
        MPI_File_read_at(file, 0, buf, BLOCKS * BLOCK, MPI_BYTE,
                         MPI_STATUS_IGNORE);
        for (int i = 1; i < BLOCKS * BLOCK; i++)
            mixed += buf[i] != buf[0];
    }
    CHECK(mixed == 0, "%d bytes of another rank", mixed);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    MPI_Type_free(&tile);
    free(buf);
}

static void check_large_counts(void)
{
    MPI_File file;
    MPI_Count extent = 0;
    MPI_Count got = 0;
    MPI_Status status;
    MPI_Request request;
    long value = check_rank();
    long back = -1;

    open_as(MPI_COMM_WORLD, MPI_MODE_RDWR, &file);
    MPI_File_write_at_c(file, 8 * check_rank(), &value, 8, MPI_BYTE, &status);
    MPI_Get_count_c(&status, MPI_BYTE, &got);
    CHECK(got == 8, "%lld bytes", (long long)got);
    MPI_File_iread_at_c(file, 8 * check_rank(), &back, 1, MPI_LONG, &request);
    MPI_Wait(&request, &status);
    CHECK(back == value, "read %ld", back);
    MPI_File_get_type_extent_c(file, MPI_LONG, &extent);
    CHECK(extent == 8, "extent %lld", (long long)extent);
    MPI_File_close(&file);
}

/* A file is deleted where it was opened, and not where the program is now. */
static void check_elsewhere(void)
{
    MPI_File file;
    char here[1024];
    char name[80];

    snprintf(name, sizeof(name), "%s.gone", path);
    CHECK_OR_DIE(getcwd(here, sizeof(here)) != NULL, "getcwd");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, name,
                               MPI_MODE_RDWR | MPI_MODE_CREATE |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    CHECK_OR_DIE(chdir("/") == 0, "chdir");
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    CHECK_OR_DIE(chdir(here) == 0, "chdir");
    CHECK(access(name, F_OK) != 0, "%s is still there", name);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    snprintf(path, sizeof(path), "misc-%d.tmp", check_size());
    if (check_rank() == 0)
        remove(path);
    MPI_Barrier(MPI_COMM_WORLD);
    check_modes();
    check_sizes();
    check_kept();
    check_handlers();
    check_hints();
    check_permissions();
    MPI_Barrier(MPI_COMM_WORLD);
    check_registered();
    check_unconverted();
    if (check_rank() == 0)
        check_external();
    MPI_Barrier(MPI_COMM_WORLD);
    check_atomic();
    check_large_counts();
    check_elsewhere();
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        CHECK(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS, "delete");
    return check_finish();
}
