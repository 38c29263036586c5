/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The large-count forms of all calls that read and write: what one writes,
 * its partner reads. Each rank has a block of every row of the file.
 */
#include "check.h"

#define COUNT 1000

static MPI_File file;
static int row;          /* of the file; one for each call */
static long data[COUNT]; /* what this rank writes into the row */
static long back[COUNT];

static MPI_Offset place(void)
{
    return (MPI_Offset)(row * check_size() + check_rank()) * COUNT;
}

/* For the next call: individual pointer at the row, and the shared one. */
static void prepare(bool is_write)
{
    row += is_write;
    for (int i = 0; is_write && i < COUNT; i++)
        data[i] = row * 1000000L + check_rank() * 10000L + i;
    memset(back, 0, sizeof(back));
    MPI_File_seek(file, place(), MPI_SEEK_SET);
    MPI_File_seek_shared(file, (MPI_Offset)row * check_size() * COUNT,
                         MPI_SEEK_SET);
}

static void verify(int rc, const char *call, bool is_write, MPI_Status *status)
{
    MPI_Count got = -1;

    CHECK(rc == MPI_SUCCESS, "%s: class %d", call, check_class(rc));
    MPI_Get_count_c(status, MPI_LONG, &got);
    CHECK(got == COUNT, "%s: %lld elements", call, (long long)got);
    if (!is_write)
        CHECK(memcmp(data, back, sizeof(data)) == 0, "%s: data differs", call);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* In whatever order the ranks came: sort by who has written it. */
static void verify_shared(int rc, const char *call, MPI_Status *status)
{
    long first = back[0] / 10000 % 100;

    CHECK(first >= 0 && first < check_size(), "%s: of rank %ld", call, first);
    for (int i = 0; i < COUNT; i++)
        back[i] += (check_rank() - first) * 10000L;
    verify(rc, call, false, status);
}

static void blocking(void)
{
    MPI_Status status;
    int rc;

    prepare(true);
    rc = MPI_File_write_at_c(file, place(), data, COUNT, MPI_LONG, &status);
    verify(rc, "write_at", true, &status);

    prepare(false);
    rc = MPI_File_read_at_c(file, place(), back, COUNT, MPI_LONG, &status);
    verify(rc, "read_at", false, &status);

    prepare(true);
    rc = MPI_File_write_c(file, data, COUNT, MPI_LONG, &status);
    verify(rc, "write", true, &status);

    prepare(false);
    rc = MPI_File_read_c(file, back, COUNT, MPI_LONG, &status);
    verify(rc, "read", false, &status);

    prepare(true);
    rc = MPI_File_write_shared_c(file, data, COUNT, MPI_LONG, &status);
    verify(rc, "write_shared", true, &status);

    prepare(false);
    rc = MPI_File_read_shared_c(file, back, COUNT, MPI_LONG, &status);
    verify_shared(rc, "read_shared", &status);

    prepare(true);
    rc = MPI_File_write_at_all_c(file, place(), data, COUNT, MPI_LONG, &status);
    verify(rc, "write_at_all", true, &status);

    prepare(false);
    rc = MPI_File_read_at_all_c(file, place(), back, COUNT, MPI_LONG, &status);
    verify(rc, "read_at_all", false, &status);

    prepare(true);
    rc = MPI_File_write_all_c(file, data, COUNT, MPI_LONG, &status);
    verify(rc, "write_all", true, &status);

    prepare(false);
    rc = MPI_File_read_all_c(file, back, COUNT, MPI_LONG, &status);
    verify(rc, "read_all", false, &status);

    prepare(true);
    rc = MPI_File_write_ordered_c(file, data, COUNT, MPI_LONG, &status);
    verify(rc, "write_ordered", true, &status);

    prepare(false);
    rc = MPI_File_read_ordered_c(file, back, COUNT, MPI_LONG, &status);
    verify(rc, "read_ordered", false, &status);
}

static void nonblocking(void)
{
    MPI_Status status;
    MPI_Request request;
    int rc;

    prepare(true);
    MPI_File_iwrite_at_c(file, place(), data, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iwrite_at", true, &status);

    prepare(false);
    MPI_File_iread_at_c(file, place(), back, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iread_at", false, &status);

    prepare(true);
    MPI_File_iwrite_c(file, data, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iwrite", true, &status);

    prepare(false);
    MPI_File_iread_c(file, back, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iread", false, &status);

    prepare(true);
    MPI_File_iwrite_shared_c(file, data, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iwrite_shared", true, &status);

    prepare(false);
    MPI_File_iread_shared_c(file, back, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify_shared(rc, "iread_shared", &status);

    prepare(true);
    MPI_File_iwrite_at_all_c(file, place(), data, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iwrite_at_all", true, &status);

    prepare(false);
    MPI_File_iread_at_all_c(file, place(), back, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iread_at_all", false, &status);

    prepare(true);
    MPI_File_iwrite_all_c(file, data, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iwrite_all", true, &status);

    prepare(false);
    MPI_File_iread_all_c(file, back, COUNT, MPI_LONG, &request);
    rc = MPI_Wait(&request, &status);
    verify(rc, "iread_all", false, &status);
}

static void split(void)
{
    MPI_Status status;
    int rc;

    prepare(true);
    MPI_File_write_at_all_begin_c(file, place(), data, COUNT, MPI_LONG);
    rc = MPI_File_write_at_all_end(file, data, &status);
    verify(rc, "write_at_all", true, &status);

    prepare(false);
    MPI_File_read_at_all_begin_c(file, place(), back, COUNT, MPI_LONG);
    rc = MPI_File_read_at_all_end(file, back, &status);
    verify(rc, "read_at_all", false, &status);

    prepare(true);
    MPI_File_write_all_begin_c(file, data, COUNT, MPI_LONG);
    rc = MPI_File_write_all_end(file, data, &status);
    verify(rc, "write_all", true, &status);

    prepare(false);
    MPI_File_read_all_begin_c(file, back, COUNT, MPI_LONG);
    rc = MPI_File_read_all_end(file, back, &status);
    verify(rc, "read_all", false, &status);

    prepare(true);
    MPI_File_write_ordered_begin_c(file, data, COUNT, MPI_LONG);
    rc = MPI_File_write_ordered_end(file, data, &status);
    verify(rc, "write_ordered", true, &status);

    prepare(false);
    MPI_File_read_ordered_begin_c(file, back, COUNT, MPI_LONG);
    rc = MPI_File_read_ordered_end(file, back, &status);
    verify(rc, "read_ordered", false, &status);
}

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    MPI_Aint lb;

    (void)state;
    return MPI_Type_get_extent(type, &lb, extent);
}

static int copy(void *user, MPI_Datatype type, MPI_Count count, void *in_file,
                MPI_Offset position, void *state)
{
    bool is_write = *(bool *)state;
    char *at = (char *)user + position * (MPI_Offset)sizeof(long);

    (void)type;
    memcpy(is_write ? in_file : at, is_write ? at : in_file,
           (size_t)count * sizeof(long));
    return MPI_SUCCESS;
}

static int copy_in(void *user, MPI_Datatype type, MPI_Count count,
                   void *in_file, MPI_Offset position, void *state)
{
    bool is_write = false;

    (void)state;
    return copy(user, type, count, in_file, position, &is_write);
}

/* An offset that has no place in the file. */
static void too_far(void)
{
    MPI_Datatype sparse;
    MPI_Offset disp = -1;

    MPI_Type_create_resized(MPI_LONG, 0, (MPI_Aint)1 << 40, &sparse);
    MPI_Type_commit(&sparse);
    MPI_File_set_view(file, 0, MPI_LONG, sparse, "native", MPI_INFO_NULL);
    MPI_Type_free(&sparse);
    CHECK(MPI_File_get_byte_offset(file, 5, &disp) == MPI_SUCCESS &&
              disp == (MPI_Offset)5 << 40,
          "byte offset %lld", (long long)disp);
    CHECK(check_class(MPI_File_get_byte_offset(file, (MPI_Offset)1 << 30,
                                               &disp)) == MPI_ERR_ARG,
          "byte offset %lld", (long long)disp);
    CHECK(check_class(MPI_File_write_shared(file, data, 1 << 30, MPI_LONG,
                                            MPI_STATUS_IGNORE)) == MPI_ERR_ARG,
          "more than there is room for");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(file, &disp);
    CHECK(disp == 0, "shared pointer at %lld", (long long)disp);
}

int main(int argc, char **argv)
{
    bool is_write = true;
    char path[64];
    MPI_Offset disp = -1;

    check_start(&argc, &argv);
    snprintf(path, sizeof(path), "large-%d.tmp", check_size());
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path,
                               MPI_MODE_CREATE | MPI_MODE_RDWR |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    too_far();
    MPI_File_set_view(file, 8, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL);
    MPI_File_get_byte_offset(file, 5, &disp);
    CHECK(disp == 8 + 5 * (MPI_Offset)sizeof(long), "byte offset %lld",
          (long long)disp);
    blocking();
    nonblocking();
    split();
    CHECK(MPI_Register_datarep_c("copy", copy_in, copy, extent_of, &is_write) ==
              MPI_SUCCESS,
          "register");
    MPI_File_set_view(file, 8, MPI_LONG, MPI_LONG, "copy", MPI_INFO_NULL);
    row = 0;
    blocking();
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    return check_finish();
}
