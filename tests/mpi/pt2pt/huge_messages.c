/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of more than 2^31 bytes: as many ints through the classic call,
 * and as bytes through the large-count call. Needs 5 GiB of free memory.
 */
#include "check.h"

#define TAG 2
/* Bytes between two looks; prime, so all columns are seen. */
#define STEP 4093

static unsigned char byte_at(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 20) + (at >> 31));
}

static void check_data(const unsigned char *data, size_t len)
{
    for (size_t at = 0; at < len; at += STEP)
        CHECK(data[at] == byte_at(at), "byte %zu is wrong", at);
    CHECK(data[len - 1] == byte_at(len - 1), "the last byte is wrong");
}

/* Receiver's view of a message of `len` bytes. */
static void check_count(const MPI_Status *status, size_t len)
{
    MPI_Count bytes = -1;
    int count = -1;

    MPI_Get_elements_x(status, MPI_BYTE, &bytes);
    CHECK(bytes == (MPI_Count)len, "%lld bytes arrived", (long long)bytes);
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(count == (int)(len / sizeof(int)), "count in ints is %d", count);
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == MPI_UNDEFINED, "count in bytes is %d", count);
}

int main(int argc, char **argv)
{
    const int ints = (1 << 29) + 1024;
    const MPI_Count bytes = ((MPI_Count)1 << 31) + 1024;
    size_t len = (size_t)ints * sizeof(int);
    int enough = 1;
    MPI_Status status;

    check_start(&argc, &argv);
    check_need(2);
    enough = check_available_bytes() > ((size_t)5 << 30);
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!enough)
        check_skip("needs 5 GiB of free memory");
    if (check_rank() == 0) {
        unsigned char *data = check_alloc(len);
        for (size_t at = 0; at < len; at++)
            data[at] = byte_at(at);
        MPI_Send(data, ints, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        MPI_Send_c(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        free(data);
    } else if (check_rank() == 1) {
        unsigned char *data = check_alloc(len);
        MPI_Recv(data, ints, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
        check_count(&status, len);
        check_data(data, len);
        memset(data, 0, len);
        MPI_Recv_c(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
        check_count(&status, (size_t)bytes);
        check_data(data, (size_t)bytes);
        free(data);
    }
    return check_finish();
}
