/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes have a socket between them, and make an intercommunicator of
 * it (MPI_Comm_join). The socket is theirs again afterwards: what one sends at
 * once behind its call is not read by the other one's.
 *
 * join PATH: ranks 0 and 1 of one job, by a socket of that path
 * join PATH listen|call: two processes of several jobs
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 1, LEN = 100000 };

/* The caller knows by a fifo that somebody listens. */
static int connected(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char fifo[sizeof(address.sun_path) + 8];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int other;
    FILE *file;

    CHECK_OR_DIE(fd >= 0 && strlen(path) < sizeof(address.sun_path), "socket");
    strcpy(address.sun_path, path);
    (void)snprintf(fifo, sizeof(fifo), "%s.fifo", path);
    CHECK_OR_DIE(mkfifo(fifo, 0600) == 0 || errno == EEXIST, "mkfifo");
    if (listens)
        CHECK_OR_DIE(bind(fd, (struct sockaddr *)&address, sizeof(address)) ==
                             0 &&
                         listen(fd, 1) == 0,
                     "listen");
    file = fopen(fifo, listens ? "w" : "r");
    CHECK_OR_DIE(file && fclose(file) == 0, "fifo");
    if (!listens) {
        CHECK_OR_DIE(
            connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
            "connect");
        return fd;
    }
    other = accept(fd, NULL, NULL);
    CHECK_OR_DIE(other >= 0 && close(fd) == 0, "accept");
    return other;
}

static void use_socket(int fd)
{
    char words[6] = "";
    size_t got = 0;

    CHECK(write(fd, "after", 5) == 5, "write");
    while (got < 5) {
        const ssize_t n = read(fd, words + got, 5 - got);

        CHECK_OR_DIE(n > 0, "read");
        got += (size_t)n;
    }
    CHECK(strcmp(words, "after") == 0, "the socket brings %s", words);
}

static void use(MPI_Comm inter, uint64_t mine, uint64_t theirs)
{
    char *out = check_alloc(LEN);
    char *in = check_alloc(LEN);
    MPI_Comm both;
    int size, remote;

    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(size == 1 && remote == 1, "%d and %d processes", size, remote);
    check_fill(out, LEN, mine);
    MPI_Sendrecv(out, LEN, MPI_BYTE, 0, TAG, in, LEN, MPI_BYTE, 0, TAG, inter,
                 MPI_STATUS_IGNORE);
    CHECK(check_differs(in, LEN, theirs) == SIZE_MAX, "other bytes");
    MPI_Intercomm_merge(inter, 0, &both);
    MPI_Barrier(both);
    MPI_Comm_free(&both);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    bool listens;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 1, "usage: join PATH [listen|call]");
    listens = argc > 2 ? strcmp(argv[2], "listen") == 0 : check_rank() == 0;
    if (argc > 2 || check_rank() < 2) {
        const int fd = connected(argv[1], listens);

        for (int i = 0; i < 3; i++) {
            MPI_Comm inter;

            MPI_Comm_join(fd, &inter);
            use_socket(fd);
            CHECK_OR_DIE(inter != MPI_COMM_NULL, "no intercommunicator");
            use(inter, listens, !listens);
            MPI_Comm_disconnect(&inter);
        }
        CHECK(close(fd) == 0, "close");
    }
    return check_finish();
}
