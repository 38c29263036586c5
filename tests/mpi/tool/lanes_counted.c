/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What communicators in lanes of their own do is counted as what is done over
 * MPI_COMM_WORLD: messages that wait, that met, that devices have moved, and
 * polls in vain. Two ranks.
 */
#include "check.h"

enum { COMMS = 5, EACH = 3, ALL = COMMS * EACH, LAST = 9, GO, TURNS = 100000 };

static struct {
    MPI_T_pvar_session session;
    MPI_Comm comms[COMMS];
} my;

static MPI_T_pvar_handle watch(const char *name)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int classes[] = {MPI_T_PVAR_CLASS_LEVEL, MPI_T_PVAR_CLASS_HIGHWATERMARK,
                     MPI_T_PVAR_CLASS_COUNTER};
    int count = 0;
    int i = -1;

    for (int c = 0; c < 3 && i < 0; c++)
        if (MPI_T_pvar_get_index(name, classes[c], &i) != MPI_SUCCESS)
            i = -1;
    CHECK_OR_DIE(i >= 0 && !MPI_T_pvar_handle_alloc(my.session, i, NULL,
                                                    &handle, &count),
                 "no variable %s", name);
    (void)MPI_T_pvar_start(my.session, handle); /* some always run */
    return handle;
}

static unsigned long long value(MPI_T_pvar_handle handle)
{
    unsigned long long v = ~0ULL;

    CHECK_OR_DIE(!MPI_T_pvar_read(my.session, handle, &v), "no value");
    return v;
}

static void send_all(void)
{
    for (int i = 0; i < COMMS; i++)
        for (int tag = 0; tag < EACH; tag++)
            MPI_Send(&tag, 1, MPI_INT, 1, tag, my.comms[i]);
    for (int i = 0; i < COMMS; i++)
        MPI_Send(NULL, 0, MPI_INT, 1, LAST, my.comms[i]);
    MPI_Recv(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_all(void)
{
    MPI_T_pvar_handle level = watch("chempi_match_unexpected");
    MPI_T_pvar_handle most = watch("chempi_match_unexpected_max");
    MPI_T_pvar_handle met = watch("chempi_match_met_unexpected");
    int data;

    for (int i = 0; i < COMMS; i++)
        MPI_Recv(NULL, 0, MPI_INT, 0, LAST, my.comms[i], MPI_STATUS_IGNORE);
    CHECK(value(level) == ALL, "%llu wait", value(level));
    CHECK(value(most) >= ALL, "at most %llu wait", value(most));
    for (int i = 0; i < COMMS; i++)
        for (int tag = 0; tag < EACH; tag++)
            MPI_Recv(&data, 1, MPI_INT, 0, tag, my.comms[i], MPI_STATUS_IGNORE);
    CHECK(value(level) == 0, "then %llu wait", value(level));
    CHECK(value(met) >= ALL, "%llu have met", value(met));
    CHECK(!MPI_T_pvar_reset(my.session, most) && value(most) == 0,
          "reset to %llu", value(most));
    MPI_Send(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD);
}

/* A communicator's messages to and fro; each waits for the other. */
static void exchange(MPI_Comm comm)
{
    MPI_T_pvar_handle spins = watch("chempi_progress_spins");
    const int other = 1 - check_rank();
    int go_on = 1;
    int turns = 0;

    while (go_on) {
        bool has_spun = value(spins) > 0;

        MPI_Send(&has_spun, 1, MPI_C_BOOL, other, GO, comm);
        go_on = !has_spun;
        MPI_Recv(&has_spun, 1, MPI_C_BOOL, other, GO, comm, MPI_STATUS_IGNORE);
        go_on = (go_on || !has_spun) && ++turns < TURNS;
    }
    CHECK(turns < TURNS, "no poll was in vain");
}

/* To itself, by the device that does that. */
static void send_to_self(void)
{
    MPI_T_pvar_handle sent = watch("chempi_self_copy_messages_received");

    for (int i = 0; i < COMMS; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, check_rank(), 0, &(int){0}, 1, MPI_INT,
                     check_rank(), 0, my.comms[i], MPI_STATUS_IGNORE);
    CHECK(value(sent) == COMMS, "%llu were sent", value(sent));
}

int main(int argc, char **argv)
{
    int provided;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(check_size() == 2, "two ranks");
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_T_pvar_session_create(&my.session);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &my.comms[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        send_all();
    else
        receive_all();
    for (int i = 0; i < COMMS; i++)
        exchange(my.comms[i]);
    send_to_self();
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&my.comms[i]);
    MPI_T_pvar_session_free(&my.session);
    MPI_T_finalize();
    return check_finish();
}
