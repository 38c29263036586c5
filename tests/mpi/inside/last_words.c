/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank sends before it dies; see last_words.h. */
#define _GNU_SOURCE /* kill */
#include "tests/mpi/inside/last_words.h"

#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { FILES = 256 };

static const int lens[] = {8, 3000, 60};
char last_words_data[LAST_WORDS_LEN_MAX];

void last_words_send(void)
{
    MPI_Request announced;
    MPI_Request send;

    MPI_Isend(last_words_data, LAST_WORDS_LEN_MAX, MPI_CHAR, 0, LAST_WORDS_LONG,
              MPI_COMM_WORLD, &announced);
    for (int i = 0; i < LAST_WORDS; i++) {
        memset(last_words_data, i + 1, LAST_WORDS_LEN_MAX);
        MPI_Isend(last_words_data, last_words_len(i), MPI_CHAR, 0, i,
                  MPI_COMM_WORLD, &send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
}

static bool is_acknowledged(void)
{
    int is_there;
    int len;

    MPI_Iprobe(MPI_ANY_SOURCE, LAST_WORDS_TAGS, MPI_COMM_SELF, &is_there,
               MPI_STATUS_IGNORE); /* what is kept leaves */
    for (int fd = 0; fd < FILES; fd++)
        if (ioctl(fd, SIOCOUTQ, &len) == 0 && len > 0)
            return false;
    return true;
}

void last_words_die(void)
{
    while (!is_acknowledged())
        ;
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

int last_words_len(int tag)
{
    return lens[tag % 3];
}

int last_words_receive(int tag)
{
    return check_class(MPI_Recv(last_words_data, LAST_WORDS_LEN_MAX, MPI_CHAR,
                                1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

bool last_words_are(int tag)
{
    return last_words_data[0] == tag + 1 &&
           last_words_data[last_words_len(tag) - 1] == tag + 1;
}
