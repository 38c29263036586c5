/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory file of a node's window: signals that come often do not keep its
 * memory away, and nobody can make it shorter. Where the limit of file sizes
 * forbids it, or there is no descriptor for it, MPI_Win_allocate does without,
 * and MPI_Win_allocate_shared says why.
 */
#define _GNU_SOURCE /* off64_t */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PART = 3 << 20 }; /* bytes */

static int signals;  /* that undo calls */
static int shorter;  /* files that could be made so */
static bool is_poor; /* no descriptors */
static int reserved; /* calls with more than this host has; all fail */

/* In place of libc's, for the library, too. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
    sigset_t now;

    shorter += (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0;
    if (len > (off_t)1 << 46) {
        reserved++;
        errno = ENOSPC;
        return -1;
    }
    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (signals > 0 && !sigismember(&now, SIGPROF)) {
        signals--;
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    return fallocate(fd, mode, offset, len);
}

int memfd_create(const char *name, unsigned flags)
{
    if (is_poor) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

/* Everybody's word goes to the next one. */
static void use(const char *how)
{
    const int to = (check_rank() + 1) % check_size();
    const int from = (check_rank() + check_size() - 1) % check_size();
    int *memory = NULL;
    int mine = 1000 + check_rank();
    MPI_Win win;

    MPI_Win_allocate(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_INT, to, PART - sizeof(mine), 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    CHECK(memory[PART / sizeof(mine) - 1] == 1000 + from, "%s: %d", how,
          memory[PART / sizeof(mine) - 1]);
    MPI_Win_free(&win);
}

static void share(const char *why)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int *memory = NULL;
    MPI_Win win;
    int len;
    int rc = MPI_Win_allocate_shared(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                     &memory, &win);

    if (!why) {
        CHECK(rc == MPI_SUCCESS, "sharing: class %d", check_class(rc));
        MPI_Win_free(&win);
        return;
    }
    MPI_Error_string(rc, words, &len);
    CHECK(check_class(rc) == MPI_ERR_RMA_SHARED && strstr(words, why),
          "%s: class %d, %s", why, check_class(rc), words);
}

/* Of four ranks so much that the sum wraps; of one, what no machine has. */
static void ask_for_much(MPI_Aint mine)
{
    MPI_Win win;
    void *memory;
    int rc;

    rc =
        MPI_Win_allocate(mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    CHECK(check_class(rc) == MPI_ERR_NO_MEM && reserved == 0,
          "%lld bytes: class %d, %d calls", (long long)mine, check_class(rc),
          reserved);
}

/* The first rank makes the file. */
static void be_limited(int rank, const char *why)
{
    struct rlimit before;
    struct rlimit limit;

    CHECK_OR_DIE(getrlimit(RLIMIT_FSIZE, &before) == 0, "getrlimit");
    limit = before;
    limit.rlim_cur = PART / 2;
    if (check_rank() == rank)
        CHECK_OR_DIE(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    use("a limit of file sizes");
    share(why);
    CHECK_OR_DIE(setrlimit(RLIMIT_FSIZE, &before) == 0, "setrlimit");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    use("memory");
    CHECK(shorter == 0, "%d files could be made shorter", shorter);
    signals = 1000;
    use("signals");
    CHECK(signals > 900 && signals < 1000, "%d calls were in vain",
          1000 - signals);
    signals = 0;
    be_limited(0, "ulimit -f");
    be_limited(1, NULL);
    is_poor = true;
    use("no descriptor");
    share("ulimit -n");
    is_poor = false;
    share(NULL);
    ask_for_much((MPI_Aint)1 << 62);
    ask_for_much(check_rank() == 1 ? (MPI_Aint)1 << 50 : 0);
    return check_finish();
}
