/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two launchers that know nothing of each other give the same core to a rank
 * each, for it alone. One of them notices that it shares it, and runs wherever
 * its job may.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

/* A trip takes a slice of the system's at most while the core is shared. */
enum { TRIPS_MAX = 2000 };

static cpu_set_t allowed;

/* Before MPI_Init, as the launcher does for a rank with a core of its own. */
static bool be_bound(void)
{
    char list[16];
    char all[32];
    cpu_set_t own;
    int n[2];
    int count = 0;

    CHECK_OR_DIE(sched_getaffinity(0, sizeof(allowed), &allowed) == 0,
                 "the processors");
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            n[count++] = cpu;
    if (count < 2)
        return false;
    CPU_ZERO(&own);
    CPU_SET(n[0], &own);
    CPU_ZERO(&allowed);
    CPU_SET(n[0], &allowed);
    CPU_SET(n[1], &allowed);
    snprintf(list, sizeof(list), "%d", n[0]);
    snprintf(all, sizeof(all), "%d,%d", n[0], n[1]);
    CHECK_OR_DIE(sched_setaffinity(0, sizeof(own), &own) == 0 &&
                     setenv("CHEMPI_CPUS", list, 1) == 0 &&
                     setenv("CHEMPI_HOST_CPUS", all, 1) == 0,
                 "binding to %s", list);
    return true;
}

static int is_free(void)
{
    cpu_set_t now;

    CHECK_OR_DIE(sched_getaffinity(0, sizeof(now), &now) == 0,
                 "the processors");
    return CPU_EQUAL(&now, &allowed);
}

int main(int argc, char **argv)
{
    int are_free[2] = {0, 0};
    int other;
    bool is_bound = be_bound();

    check_start(&argc, &argv);
    check_need(2);
    if (!is_bound)
        check_skip("one processor");
    other = 1 - check_rank();
    for (int i = 0; i < TRIPS_MAX && !are_free[0] && !are_free[1]; i++) {
        are_free[check_rank()] = is_free();
        MPI_Sendrecv(&are_free[check_rank()], 1, MPI_INT, other, 1,
                     &are_free[other], 1, MPI_INT, other, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    CHECK(are_free[0] || are_free[1], "they share a core for ever");
    return check_finish();
}
