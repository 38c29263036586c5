/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core opens completely or not at all: the first session of a process of
 * its own, in which one system call after the other fails.
 */
#define _GNU_SOURCE /* fork */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/entry/core.h"
#include "libchempi/didl/error/error.h"
#include "tests/unit/base/rig.h"

enum { OPENED, REFUSED, WRONG };

enum { CALLS_MAX = 500 }; /* a start makes fewer of any kind */

/* Those that a start could open. */
static unsigned count_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* What a second attempt must say after the first one was refused: the same,
 * with nothing left open, unless nothing had been opened yet, or all. */
static int try_again(unsigned descriptors)
{
    MPI_Session session = MPI_SESSION_NULL;
    int rc;

    rig_reset();
    rc = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    if (rc == MPI_SUCCESS) {
        rc = MPI_Session_finalize(&session);
        return rc == MPI_SUCCESS ? REFUSED : WRONG;
    }
    return rc == MPI_ERR_OTHER && count_descriptors() == descriptors ? REFUSED
                                                                     : WRONG;
}

/* In a process of its own. */
static int start_with(enum rig_call call, unsigned nth, int error)
{
    MPI_Session session = MPI_SESSION_NULL;
    const unsigned before = count_descriptors();
    int rc;

    rig_fail(call, nth, error, 0);
    rc = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    if (rc != MPI_SUCCESS) {
        if (session != MPI_SESSION_NULL || chempi_core_users() != 0 ||
            chempi_ctx_is_up())
            return WRONG;
        return try_again(before);
    }
    if (chempi_core_users() != 1 || !chempi_ctx_is_up())
        return WRONG;
    rc = MPI_Session_finalize(&session);
    if (rc != MPI_SUCCESS || chempi_core_users() != 0 || chempi_ctx_is_up())
        return WRONG;
    return rig_calls() < nth ? OPENED : REFUSED;
}

/* OPENED when the nth call was never made. */
static int start_apart(enum rig_call call, unsigned nth, int error)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        exit(start_with(call, nth, error)); /* with the library's end */
    cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    cr_assert(WIFEXITED(status), "call %u of kind %d: signal %d", nth, call,
              WTERMSIG(status));
    cr_assert(WEXITSTATUS(status) != WRONG, "call %u of kind %d: wrong state",
              nth, call);
    return WEXITSTATUS(status);
}

static unsigned fail_each(enum rig_call call, int error)
{
    for (unsigned nth = 1; nth <= CALLS_MAX; nth++)
        if (start_apart(call, nth, error) == OPENED)
            return nth - 1;
    cr_assert(false, "no end after %d calls", CALLS_MAX);
    return 0;
}

Test(core, is_not_opened_when_memory_runs_out)
{
    cr_assert_gt(fail_each(RIG_MALLOC, ENOMEM), 5u);
}

Test(core, is_not_opened_without_a_region)
{
    cr_assert_gt(fail_each(RIG_MMAP, ENOMEM), 0u);
    cr_assert_gt(fail_each(RIG_MEMFD, EMFILE), 0u);
    (void)fail_each(RIG_FALLOCATE, ENOSPC);
}

Test(core, is_opened_once_for_many_users)
{
    MPI_Session first;
    MPI_Session second;
    int provided;

    cr_assert_eq(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &first),
                 MPI_SUCCESS);
    cr_assert_eq(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second),
                 MPI_SUCCESS);
    cr_assert_eq(chempi_core_users(), 2);
    cr_assert_eq(chempi_core_enter(MPI_THREAD_MULTIPLE, &provided),
                 MPI_SUCCESS);
    cr_assert_eq(provided, MPI_THREAD_MULTIPLE);
    cr_assert_eq(MPI_Session_finalize(&first), MPI_SUCCESS);
    cr_assert_eq(MPI_Session_finalize(&second), MPI_SUCCESS);
    cr_assert(chempi_ctx_is_up());
    chempi_core_leave();
    cr_assert_not(chempi_ctx_is_up());
}

Test(lost_peers, are_all_named_up_to_a_limit)
{
    static const uint32_t ranks[CHEMPI_ERROR_LOST_MAX] = {4, 1, 9, 2,
                                                          3, 5, 6, 7};
    char text[CHEMPI_ERROR_RANKS_TEXT];

    chempi_error_put_ranks(ranks, 1, text, sizeof(text));
    cr_expect_str_eq(text, "");
    chempi_error_put_ranks(ranks, 2, text, sizeof(text));
    cr_expect_str_eq(text, "; so is rank 1");
    chempi_error_put_ranks(ranks, 1000, text, sizeof(text));
    cr_expect_str_eq(text, "; so are ranks 1, 9, 2, 3, 5, 6, 7 and 992 more");
}
