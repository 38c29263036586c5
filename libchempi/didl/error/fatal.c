/* SPDX-License-Identifier: BSD-3-Clause */
/* The end by error; see fatal.h. */
#define _GNU_SOURCE /* gethostname */
#include "libchempi/didl/error/fatal.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    chempi_fatal_tell_fn *tell;
    char place[CHEMPI_NODE_NAME_MAX + 32]; /* "": not known */
    _Atomic bool is_free;                  /* see chempi_fatal_set_free() */
} fatal;

void chempi_fatal_set_tell(chempi_fatal_tell_fn *tell)
{
    fatal.tell = tell;
}

/* Of its own: the job may be gone when it is needed. */
void chempi_fatal_place(const struct chempi_job *job)
{
    (void)snprintf(fatal.place, sizeof(fatal.place), "rank %u on node %s",
                   job->rank, job->node_names[job->node]);
}

const char *chempi_fatal_place_words(void)
{
    return fatal.place;
}

void chempi_fatal_set_free(bool is_free)
{
    atomic_store(&fatal.is_free, is_free);
}

/* "rank 3 on node a2"; before the job is known, what the supervisor has put
 * into the environment, or the host's name. */
static void put_place(char *out, size_t room)
{
    const char *rank = getenv("CHEMPI_RANK");
    const char *node = getenv("CHEMPI_NODE");
    char host[256] = "";

    if (fatal.place[0] != '\0') {
        (void)snprintf(out, room, "%s", fatal.place);
        return;
    }
    if (rank && node && getenv(CHEMPI_CONTROL_ENV)) {
        (void)snprintf(out, room, "rank %.10s on node %.64s", rank, node);
        return;
    }
    (void)gethostname(host, sizeof(host) - 1); /* "" when it fails */
    (void)snprintf(out, room, "process %ld on host %s", (long)getpid(), host);
}

/* What a launcher would have said. */
static void print_end(int code, const char *text)
{
    char place[320];

    put_place(place, sizeof(place));
    if (*text)
        (void)fprintf(stderr, "%s: %s\n", place, text);
    else
        (void)fprintf(stderr, "%s called MPI_Abort with code %d\n", place,
                      code);
}

void chempi_fatal_end(int exit_code, const char *text, bool is_inside)
{
    const int status = exit_code & 0xff;
    const bool is_told = fatal.tell && fatal.tell(exit_code, text, is_inside);

    if (!is_told)
        print_end(exit_code, text);
    (void)fflush(NULL);
    if (!is_told && atomic_load(&fatal.is_free))
        (void)raise(SIGKILL); /* any exit code would be taken for a good end */
    _exit(status ? status : 1);
}

void chempi_fatal_die(const char *fmt, ...)
{
    char text[CHEMPI_ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    chempi_fatal_end(1, text, true);
}
