/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards with the VIA half only, whose processes may register no more than what
 * frames need: all messages go through the buffers of the library, which says
 * how many that were and takes no more than its share.
 *
 * usage: denied [who]: the rank named here cannot lock any memory; then the
 * first message fails and says what to do.
 */
#include "check.h"

#include <errno.h>
#include <sys/mman.h>

#define LEN (3 << 20)
#define ROUNDS 5

static const char *without_memory; /* a rank's number */

/* In place of libc's, for the library, too. */
int mlock(const void *start, size_t len)
{
    const char *rank = getenv("CHEMPI_RANK");

    (void)start;
    (void)len;
    if (!without_memory || !rank || strcmp(rank, without_memory) != 0)
        return 0; /* nothing here needs locked pages */
    errno = ENOMEM;
    return -1;
}

static unsigned long long gauge(MPI_T_pvar_session session, const char *name,
                                MPI_T_pvar_handle *handle)
{
    unsigned long long value = 0;
    int count = 0;
    int i = -1;

    for (int c = MPI_T_PVAR_CLASS_STATE;
         *handle == MPI_T_PVAR_HANDLE_NULL && c <= MPI_T_PVAR_CLASS_GENERIC;
         c++)
        if (MPI_T_pvar_get_index(name, c, &i) == MPI_SUCCESS) {
            MPI_T_pvar_handle_alloc(session, i, NULL, handle, &count);
            MPI_T_pvar_start(session, *handle); /* refused to levels */
        }
    CHECK_OR_DIE(*handle != MPI_T_PVAR_HANDLE_NULL, "no variable %s", name);
    MPI_T_pvar_read(session, *handle, &value);
    return value;
}

static void exchange(char *out, char *in, int round)
{
    int other = !check_rank();

    check_fill(out, LEN, (uint64_t)(2 * round + check_rank()));
    memset(in, 0, LEN);
    MPI_Sendrecv(out, LEN, MPI_BYTE, other, 1, in, LEN, MPI_BYTE, other, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(check_differs(in, LEN, (uint64_t)(2 * round + other)) == SIZE_MAX,
          "wrong data in round %d", round);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"chempi_scivia_degraded",
                                        "chempi_scivia_registered_user",
                                        "chempi_scivia_over_share"};
    MPI_T_pvar_handle handles[3];
    MPI_T_pvar_session session;
    char *out;
    char *in;
    int provided;

    /* A message may come while MPI_Init still waits for others. */
    without_memory = argc > 1 ? argv[1] : NULL;
    check_start(&argc, &argv);
    check_need(2);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < 3; i++) {
        handles[i] = MPI_T_PVAR_HANDLE_NULL;
        (void)gauge(session, names[i], &handles[i]);
    }
    out = check_alloc(LEN);
    in = check_alloc(LEN);
    for (int round = 0; round < ROUNDS; round++)
        exchange(out, in, round);
    CHECK(gauge(session, names[0], &handles[0]) >= ROUNDS,
          "too few transfers were counted as degraded");
    CHECK(gauge(session, names[1], &handles[1]) == 0,
          "memory of the user is registered");
    CHECK(gauge(session, names[2], &handles[2]) == 0,
          "more is registered than may be");
    for (int i = 0; i < 3; i++)
        MPI_T_pvar_handle_free(session, &handles[i]);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    free(out);
    free(in);
    return check_finish();
}
