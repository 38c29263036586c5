/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every other rank sends rank 0 many small messages of one tag, then one of
 * another tag, which rank 0 wants first. All must arrive, in order, and the
 * receiver's memory must not grow out of proportion.
 *
 * usage: flood [messages [bytes each [MiB that a rank may grow by]]]
 */
#include "check.h"

#define TAG 1
#define LAST 2

/* Resident memory at its highest, KiB. */
static long peak_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    fclose(file);
    return kib;
}

/* Nonblocking, as a standard send may wait for its receive; yet the sends
 * are independent, so the last must not wait for the first. */
static void sender(long messages, int len)
{
    MPI_Request *requests =
        check_alloc(sizeof(*requests) * (size_t)(messages + 1));
    char *data = check_alloc((size_t)(messages + 1) * (size_t)len);

    for (long i = 0; i < messages; i++) {
        check_fill(data + i * len, (size_t)len, (uint64_t)i);
        MPI_Isend(data + i * len, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Isend(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD, &requests[messages]);
    MPI_Waitall((int)messages + 1, requests, MPI_STATUSES_IGNORE);
    free(data);
    free(requests);
}

static void receiver(long messages, int len)
{
    char *data = check_alloc((size_t)len);

    for (int r = 1; r < check_size(); r++)
        MPI_Recv(NULL, 0, MPI_BYTE, r, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int r = 1; r < check_size(); r++) {
        for (long i = 0; i < messages; i++) {
            MPI_Recv(data, len, MPI_BYTE, r, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(check_differs(data, (size_t)len, (uint64_t)i) == SIZE_MAX,
                  "message %ld from %d is not the one expected", i, r);
        }
    }
    free(data);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    long messages = check_arg(argc, argv, 1, 100000);
    int len = (int)check_arg(argc, argv, 2, 64);
    long allowed_mib = check_arg(argc, argv, 3, 256);
    MPI_Barrier(MPI_COMM_WORLD);
    long before_kib = peak_kib();
    if (check_rank() == 0)
        receiver(messages, len);
    else
        sender(messages, len);
    long grown_mib = (peak_kib() - before_kib) / 1024;
    CHECK(grown_mib <= allowed_mib, "grew by %ld MiB, %ld allowed", grown_mib,
          allowed_mib);
    if (check_rank() == 0)
        printf("receiver grew by %ld MiB for %ld messages of %d bytes\n",
               grown_mib, messages * (check_size() - 1), len);
    return check_finish();
}
