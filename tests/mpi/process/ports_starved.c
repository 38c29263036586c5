/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_accept with too few descriptors: it fails, at whichever of them,
 * and the process is woken by its neighbours as before.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { GO = 1, REST = 2, SPARE_MAX = 64 };

static int spare[SPARE_MAX]; /* what is closed when some shall be free */

/* No descriptor is free but those that are given back here. */
static void use_up(void)
{
    struct rlimit limit;
    int fd = dup(0);

    CHECK_OR_DIE(getrlimit(RLIMIT_NOFILE, &limit) == 0, "no limit");
    while (fd >= 0 && fd < 500)
        fd = dup(0);
    for (int i = 0; i < SPARE_MAX; i++)
        spare[i] = dup(0);
    limit.rlim_cur = (rlim_t)spare[SPARE_MAX - 1] + 1;
    CHECK_OR_DIE(setrlimit(RLIMIT_NOFILE, &limit) == 0, "no limit");
}

/* Returns whether nothing but a caller was missing. */
static bool accept_with(int count, const char *name, MPI_Info info)
{
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm inter;
    int len;
    int rc;

    for (int i = 0; i < count; i++)
        (void)close(spare[i]);
    rc = MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &inter);
    CHECK_OR_DIE(rc != MPI_SUCCESS, "somebody has called");
    MPI_Error_string(rc, text, &len);
    for (int i = 0; i < count; i++)
        spare[i] = dup(0); /* as many as are free now */
    return strstr(text, "time limit") != NULL;
}

static void starve(void)
{
    char name[MPI_MAX_PORT_NAME];
    const int pid = (int)getpid();
    int is_over = 0;
    MPI_Info info;

    MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.01");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Send(&pid, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
    use_up();
    for (int count = 0; !is_over; count++) {
        CHECK_OR_DIE(count < SPARE_MAX, "it takes more descriptors");
        is_over = accept_with(count, name, info);
        MPI_Send(&is_over, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 1, REST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Info_free(&info);
    MPI_Close_port(name);
}

static void wake(void)
{
    int is_over = 0;
    int pid;

    MPI_Recv(&pid, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!is_over) {
        MPI_Recv(&is_over, 1, MPI_INT, 0, GO, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check_await_sleep(pid);
        MPI_Send(NULL, 0, MPI_INT, 0, REST, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    if (check_rank() == 0)
        starve();
    else if (check_rank() == 1)
        wake();
    return check_finish();
}
