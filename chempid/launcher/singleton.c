/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of MPICH's without a launcher; see singleton.h. */
#include "chempid/launcher/singleton.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"
#include "common/fd/file.h"
#include "common/words/plain.h"

enum { KNOCK_MS = 2000 }; /* for a listener with many others to take */

/* The process that has started this one. */
static void name_parent(char *name, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)getppid());
    (void)chempi_file_read(path, name, size); /* else it is empty */
    name[strcspn(name, "\n")] = '\0';
    chempi_plain(name, strlen(name), "");
}

/* What fails here leaves the program as it is. */
static void knock(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct pollfd p = {.events = POLLOUT};
    const unsigned long number = strtoul(port, NULL, 10);

    if (number == 0 || number > UINT16_MAX)
        return;
    to.sin_port = htons((uint16_t)number);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p.fd < 0)
        return;
    if (connect(p.fd, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
        errno == EINPROGRESS)
        (void)poll(&p, 1, KNOCK_MS);
    (void)close(p.fd);
}

int chempi_singleton_answer(const char *port)
{
    char name[32];

    name_parent(name, sizeof(name));
    (void)fprintf(stderr,
                  "chempirun: process %d (%s) uses MPICH's library, was "
                  "started without a launcher and asks for one by the name of "
                  "mpiexec, which is CHEMPI's here: start the program by "
                  "MPICH's own (mpiexec.hydra, mpiexec.mpich), or compile it "
                  "with CHEMPI's mpicc\n",
                  (int)getppid(), *name ? name : "?");
    if (port)
        knock(port);
    return CHEMPI_EXIT_USAGE;
}
