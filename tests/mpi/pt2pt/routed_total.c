/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 sends every other rank more than may be on its way to all of them
 * through gateways, while none of them looks; it says what is unconfirmed.
 * They look when a file appears. Rank 0 says nothing before so many bytes are
 * unconfirmed as are expected at least. For what bounds the sum over all flows
 * (tests/fault/gateways.py).
 *
 * usage: fan FILE BYTES MESSAGES LEAST
 */
#include "check.h"

#define ROUNDS 2000
#define TAG 3

static unsigned long long unconfirmed(void)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int index;
    int count;

    CHECK_OR_DIE(MPI_T_pvar_get_index("chempi_gate_unconfirmed",
                                      MPI_T_PVAR_CLASS_LEVEL,
                                      &index) == MPI_SUCCESS,
                 "what is unconfirmed is not counted");
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

static void send_all(size_t len, int count, unsigned long long least)
{
    int others = check_size() - 1;
    size_t all = (size_t)count * (size_t)others;
    MPI_Request *requests = check_alloc(all * sizeof(*requests));
    char *data = check_alloc(len * (size_t)count);
    unsigned long long most = 0;

    for (int i = 0; i < count; i++) {
        check_fill(data + (size_t)i * len, len, (uint64_t)i);
        for (int k = 0; k < others; k++)
            MPI_Isend(data + (size_t)i * len, (int)len, MPI_BYTE, k + 1, TAG,
                      MPI_COMM_WORLD, &requests[i * others + k]);
    }
    for (int i = 0; i < ROUNDS; i += most >= least) {
        unsigned long long now = unconfirmed();
        int done;

        most = now > most ? now : most;
        MPI_Testall((int)all, requests, &done, MPI_STATUSES_IGNORE);
    }
    printf("unconfirmed %llu\n", most);
    fflush(stdout);
    MPI_Waitall((int)all, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(data);
}

int main(int argc, char **argv)
{
    int provided;
    size_t len;
    int count;

    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc == 5, "usage: fan FILE BYTES MESSAGES LEAST");
    len = (size_t)atol(argv[2]);
    count = atoi(argv[3]);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (check_rank() == 0)
        send_all(len, count, strtoull(argv[4], NULL, 10));
    else
        check_receive_late(argv[1], len, count, TAG);
    MPI_T_finalize();
    return check_finish();
}
