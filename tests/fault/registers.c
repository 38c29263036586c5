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
#define PVARS 5

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

static MPI_T_pvar_session session;

/* From now on: counters begin when they are started. */
static MPI_T_pvar_handle watch(const char *name)
{
    MPI_T_pvar_handle handle;
    int index;
    int count;

    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != 0 &&
        MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, &index) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    (void)MPI_T_pvar_start(session, handle); /* levels are, always */
    return handle;
}

static unsigned long long value_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    MPI_T_pvar_read(session, handle, &value);
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
    static const char *const names[PVARS] = {
        "chempi_scivia_budget", "chempi_scivia_locked",
        "chempi_scivia_cache_evictions", "chempi_scivia_degraded",
        "chempi_scivia_windowed"};
    MPI_T_pvar_handle pvars[PVARS];
    unsigned char *buffers[2 * BUFFERS_MAX];
    int provided;
    int count = argc > 3 ? atoi(argv[2]) : 0;
    int len = argc > 3 ? atoi(argv[3]) : 0;
    int good = 1;
    int goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < PVARS; i++)
        pvars[i] = watch(names[i]);
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
           good ? "good" : "BAD", rank, value_of(pvars[0]), value_of(pvars[1]),
           value_of(pvars[2]), value_of(pvars[3]), value_of(pvars[4]));
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    for (int i = 0; i < 2 * count; i++)
        free(buffers[i]);
    return good ? 0 : 3;
}
