/* SPDX-License-Identifier: BSD-3-Clause */
/* How many messages this process has matched: what an operation costs. */
#ifndef CHEMPI_TESTS_MPI_MATCHED_H
#define CHEMPI_TESTS_MPI_MATCHED_H

#include "check.h"

static MPI_T_pvar_session matched_session;
static MPI_T_pvar_handle matched_handles[2];

static void matched_start(void)
{
    static const char *const names[] = {"chempi_match_met_posted",
                                        "chempi_match_met_unexpected"};
    int provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&matched_session);
    for (int i = 0; i < 2; i++) {
        int index = -1;
        int count = 0;

        MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index);
        CHECK_OR_DIE(index >= 0, "no variable %s", names[i]);
        MPI_T_pvar_handle_alloc(matched_session, index, NULL,
                                &matched_handles[i], &count);
        MPI_T_pvar_start(matched_session, matched_handles[i]);
    }
}

/* Since then. */
static unsigned long long matched_count(void)
{
    unsigned long long sum = 0;

    for (int i = 0; i < 2; i++) {
        unsigned long long value = 0;

        MPI_T_pvar_read(matched_session, matched_handles[i], &value);
        sum += value;
    }
    return sum;
}

static void matched_end(void)
{
    MPI_T_pvar_session_free(&matched_session);
    MPI_T_finalize();
}

#endif
