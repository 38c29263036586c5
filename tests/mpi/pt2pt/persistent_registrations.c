/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations of the buffers of persistent requests: point-to-point, of
 * collectives, partitioned. They are kept as such while the request lives, also
 * when ordinary messages use up the budget, and are ordinary ones afterwards.
 * Needs scivia between the two ranks.
 */
#include "check.h"

#define LEN (1 << 20)
#define OTHERS 24 /* buffers of ordinary messages: more than the budget */
#define ROUNDS 4

enum { P2P, BCAST, NEIGHBOR, PARTITIONED, KINDS };

static const char *const names[KINDS] = {"point-to-point", "broadcast",
                                         "neighborhood", "partitioned"};

static unsigned long long gauge(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int count = 0;
    int i = -1;

    for (int c = MPI_T_PVAR_CLASS_STATE; c <= MPI_T_PVAR_CLASS_GENERIC; c++)
        if (MPI_T_pvar_get_index(name, c, &i) == MPI_SUCCESS)
            break;
    CHECK_OR_DIE(i >= 0, "no variable %s", name);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

static void make(int kind, MPI_Comm ring, char *out, char *in,
                 MPI_Request *requests)
{
    int other = !check_rank();

    requests[1] = MPI_REQUEST_NULL;
    switch (kind) {
    case P2P:
        MPI_Send_init(out, LEN, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                      &requests[0]);
        MPI_Recv_init(in, LEN, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                      &requests[1]);
        return;
    case BCAST:
        MPI_Bcast_init(check_rank() == 0 ? out : in, LEN, MPI_BYTE, 0,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
        return;
    case NEIGHBOR:
        MPI_Neighbor_allgather_init(out, LEN, MPI_BYTE, in, LEN, MPI_BYTE, ring,
                                    MPI_INFO_NULL, &requests[0]);
        return;
    default:
        MPI_Psend_init(out, 4, LEN / 4, MPI_BYTE, other, 2, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[0]);
        MPI_Precv_init(in, 2, LEN / 2, MPI_BYTE, other, 2, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[1]);
    }
}

static void run(int kind, MPI_Request *requests, char *out, char *in, int round)
{
    bool receives = kind != BCAST || check_rank() == 1;
    uint64_t seed = (uint64_t)(kind * ROUNDS + round);
    int count = requests[1] == MPI_REQUEST_NULL ? 1 : 2;

    if (!receives || kind != BCAST)
        check_fill(out, LEN, seed * 2 + (uint64_t)check_rank());
    memset(in, 0, LEN);
    MPI_Startall(count, requests);
    if (kind == PARTITIONED)
        MPI_Pready_range(0, 3, requests[0]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (receives)
        CHECK(check_differs(in, LEN, seed * 2 + (uint64_t)!check_rank()) ==
                  SIZE_MAX,
              "%s: wrong data in round %d", names[kind], round);
}

/* Ordinary messages, in as many buffers as the budget cannot hold. */
static void crowd(char *buffers)
{
    int other = !check_rank();

    for (int i = 0; i + 1 < OTHERS; i += 2)
        MPI_Sendrecv(buffers + (size_t)i * LEN, LEN, MPI_BYTE, other, 3,
                     buffers + (size_t)(i + 1) * LEN, LEN, MPI_BYTE, other, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Nothing is kept where memory cannot be watched. */
static void need_watch(char *buffers)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int is_unwatched;
    int is_any = 0;
    int count = 0;
    int i = -1;

    CHECK_OR_DIE(MPI_T_pvar_get_index("chempi_scivia_cache_unwatched",
                                      MPI_T_PVAR_CLASS_COUNTER,
                                      &i) == MPI_SUCCESS,
                 "nobody counts what is not watched");
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle);
    crowd(buffers);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    is_unwatched = value > 0;
    MPI_Allreduce(&is_unwatched, &is_any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (is_any)
        check_skip("memory cannot be watched here (userfaultfd is forbidden, "
                   "or the kernel too old), so no registration is kept");
}

static void keep(int kind, MPI_Comm ring, char *buffers)
{
    unsigned long long least = kind == BCAST ? LEN : 2 * LEN;
    char *out = check_alloc(LEN);
    char *in = check_alloc(LEN);
    MPI_Request requests[2];
    unsigned long long kept;

    make(kind, ring, out, in, requests);
    for (int round = 0; round < ROUNDS; round++) {
        run(kind, requests, out, in, round);
        crowd(buffers);
        kept = gauge("chempi_scivia_registered_persistent");
        CHECK(kept >= least, "%s: %llu bytes are registered as persistent",
              names[kind], kept);
    }
    for (int i = 0; i < 2; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&requests[i]);
    kept = gauge("chempi_scivia_registered_persistent");
    CHECK(kept == 0, "%s: %llu bytes are still registered as persistent",
          names[kind], kept);
    MPI_Barrier(MPI_COMM_WORLD);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    char *buffers;
    MPI_Comm ring;
    int other;
    int provided;

    check_start(&argc, &argv);
    check_need(2);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    other = !check_rank();
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1,
                                   &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &ring);
    buffers = check_alloc((size_t)OTHERS * LEN);
    need_watch(buffers);
    for (int kind = 0; kind < KINDS; kind++)
        keep(kind, ring, buffers);
    CHECK(gauge("chempi_scivia_locked") >
              gauge("chempi_scivia_budget") - 2 * LEN,
          "the budget was not used up");
    free(buffers);
    MPI_Comm_free(&ring);
    MPI_T_finalize();
    return check_finish();
}
