/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of more bytes than the system transfers at a time, and than an int
 * counts: all of them are moved, and told in the status. The access layer only
 * pretends (the list says so), so that this takes neither memory nor time.
 */
#include "check.h"

#include <sys/mman.h>

#define HUGE_LEN ((MPI_Count)5 * 1024 * 1024 * 1024 + 12345)
#define MIB (1 << 20)

static MPI_File file;
static char *data; /* untouched */

static void verify(int rc, const char *call, MPI_Status *status,
                   MPI_Count expected)
{
    MPI_Count got = -1;

    CHECK(rc == MPI_SUCCESS, "%s: class %d", call, check_class(rc));
    MPI_Get_count_c(status, MPI_BYTE, &got);
    CHECK(got == expected, "%s: %lld bytes", call, (long long)got);
}

static void verify_size(MPI_Offset expected)
{
    MPI_Offset size = -1;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &size);
    CHECK(size == expected, "the file has %lld bytes", (long long)size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_size(file, 0);
}

static void write_by_bytes(void)
{
    MPI_Offset at = check_rank() * HUGE_LEN;
    MPI_Request request;
    MPI_Status status;
    int rc;

    rc = MPI_File_write_at_c(file, at, data, HUGE_LEN, MPI_BYTE, &status);
    verify(rc, "write_at", &status, HUGE_LEN);
    verify_size(check_size() * HUGE_LEN);
    MPI_File_iwrite_at_c(file, at, data, HUGE_LEN, MPI_BYTE, &request);
    verify(MPI_Wait(&request, &status), "iwrite_at", &status, HUGE_LEN);
    verify_size(check_size() * HUGE_LEN);
    rc = MPI_File_write_at_all_c(file, at, data, HUGE_LEN, MPI_BYTE, &status);
    verify(rc, "write_at_all", &status, HUGE_LEN);
    verify_size(check_size() * HUGE_LEN);
    rc = MPI_File_write_ordered_c(file, data, HUGE_LEN, MPI_BYTE, &status);
    verify(rc, "write_ordered", &status, HUGE_LEN);
    verify_size(check_size() * HUGE_LEN);
}

/* An int counts these elements, but not their bytes. */
static void write_by_elements(void)
{
    MPI_Offset at = (MPI_Offset)check_rank() * 5000 * MIB;
    MPI_Datatype mib;
    MPI_Status status;
    int rc;
    int got = -1;

    MPI_Type_contiguous(MIB, MPI_BYTE, &mib);
    MPI_Type_commit(&mib);
    rc = MPI_File_write_at(file, at, data, 5000, mib, &status);
    verify(rc, "write_at of elements", &status, (MPI_Count)5000 * MIB);
    MPI_Get_count(&status, mib, &got);
    CHECK(got == 5000, "%d elements", got);
    MPI_Get_count(&status, MPI_BYTE, &got);
    CHECK(got == MPI_UNDEFINED, "%d bytes in an int", got);
    MPI_Type_free(&mib);
    verify_size((MPI_Offset)check_size() * 5000 * MIB);
}

/* The end of the file lies between two transfers, and within one. */
static void read_to_the_end(void)
{
    MPI_Count ends[] = {0x7ffff000, HUGE_LEN - 1, HUGE_LEN};
    MPI_Status status;

    for (int i = 0; i < 3; i++) {
        int rc;

        MPI_File_set_size(file, ends[i] + 100);
        rc = MPI_File_read_at_c(file, 100, data, HUGE_LEN, MPI_BYTE, &status);
        verify(rc, "read_at", &status, ends[i]);
        rc = MPI_File_read_at_all_c(file, 100, data, HUGE_LEN, MPI_BYTE,
                                    &status);
        verify(rc, "read_at_all", &status, ends[i]);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    data = mmap(NULL, (size_t)HUGE_LEN, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        check_skip("no room for 5 GiB of addresses");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "huge.tmp",
                               MPI_MODE_CREATE | MPI_MODE_RDWR |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    write_by_bytes();
    write_by_elements();
    read_to_the_end();
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    return check_finish();
}
