/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that registers memory: pairs of ranks exchange large buffers in turn,
 * compare what has come, and go on until a file exists. Whatever happens to
 * the memory that they may register, nothing else happens to them.
 *
 *   fault-registers FILE BUFFERS BYTES
 */
#define _GNU_SOURCE /* access */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFERS_MAX 64

static int rank;

static void fill(unsigned char *at, size_t len, int round, int from)
{
    for (size_t i = 0; i < len; i += 61)
        at[i] = (unsigned char)(i / 61 + (size_t)round * 3 + (size_t)from);
}

static int is_filled(const unsigned char *at, size_t len, int round, int from)
{
    for (size_t i = 0; i < len; i += 61) {
        if (at[i] != (unsigned char)(i / 61 + (size_t)round * 3 + (size_t)from))
            return 0;
    }
    return 1;
}

static unsigned long long read_pvar(const char *name)
{
    int index;
    int count;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;

    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != 0 &&
        MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, &index) != 0)
        return 0;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

static int exchange(unsigned char *out, unsigned char *in, int len, int round)
{
    int peer = rank ^ 1;

    fill(out, (size_t)len, round, rank);
    MPI_Sendrecv(out, len, MPI_BYTE, peer, 1, in, len, MPI_BYTE, peer, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return is_filled(in, (size_t)len, round, peer);
}

int main(int argc, char **argv)
{
    unsigned char *buffers[2 * BUFFERS_MAX];
    int provided;
    int count = argc > 3 ? atoi(argv[2]) : 0;
    int len = argc > 3 ? atoi(argv[3]) : 0;
    int good = 1;
    int goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count < 1 || count > BUFFERS_MAX || len < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < 2 * count; i++) {
        buffers[i] = malloc((size_t)len);
        if (!buffers[i])
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int round = 0; good && goes_on; round++) {
        int k = round % count;

        good = exchange(buffers[2 * k], buffers[2 * k + 1], len, round);
        if (round == count && rank == 0) {
            printf("up\n");
            (void)fflush(stdout);
        }
        goes_on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    printf("%s %d budget %llu locked %llu evictions %llu degraded %llu "
           "windowed %llu\n",
           good ? "good" : "BAD", rank, read_pvar("chempi_scivia_budget"),
           read_pvar("chempi_scivia_locked"),
           read_pvar("chempi_scivia_cache_evictions"),
           read_pvar("chempi_scivia_degraded"),
           read_pvar("chempi_scivia_windowed"));
    MPI_T_finalize();
    MPI_Finalize();
    for (int i = 0; i < 2 * count; i++)
        free(buffers[i]);
    return good ? 0 : 3;
}
