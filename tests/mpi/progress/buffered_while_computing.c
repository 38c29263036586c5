/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A large buffered message is received while its sender, which has nothing else
 * to do with MPI, calls nothing of it.
 *
 *   buffered_while_computing FOLDER [threads]
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { LEN = 4 << 20, ROUNDS = 4, TAG = 1 };

static const char *folder;

static void name_of(char *name, size_t size, int rank)
{
    (void)snprintf(name, size, "%s/buffered-%d", folder, rank);
}

static void tell_outside(void)
{
    char name[512];
    int fd;

    name_of(name, sizeof(name), check_rank());
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(int partner)
{
    char name[512];

    name_of(name, sizeof(name), partner);
    while (access(name, F_OK) != 0)
        sched_yield();
    unlink(name);
}

int main(int argc, char **argv)
{
    char *memory = check_alloc(LEN + MPI_BSEND_OVERHEAD);
    char *data = check_alloc(LEN);
    int size;

    check_start_thread(&argc, &argv,
                       argc > 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    folder = argv[1];
    MPI_Buffer_attach(memory, LEN + MPI_BSEND_OVERHEAD);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (check_rank() == 0) {
            check_fill(data, LEN, round);
            MPI_Bsend(data, LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            tell_outside();
            await_outside(1);
            MPI_Buffer_flush();
        } else if (check_rank() == 1) {
            await_outside(0);
            MPI_Recv(data, LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(check_differs(data, LEN, round) == SIZE_MAX, "wrong data");
            tell_outside();
        }
    }
    MPI_Buffer_detach(&memory, &size);
    free(memory);
    free(data);
    return check_finish();
}
