/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreeing on errors, and on arguments that MPI wants alike at all members (MPI
 * 5.0, chapter 14): their least and greatest values travel with the error, so
 * they cost no round. Only where they differ do members tell in words who has
 * what.
 */
#include "libchempi/didl/io/agree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/task/task.h"

/* "rank 1 has 2000", of the lowest member that has this value. Collective; the
 * class of a communication that failed. */
static int hear_whose(struct chempi_comm *comm,
                      const struct chempi_io_same *same, int64_t value,
                      char words[CHEMPI_IO_SAME_WORDS])
{
    struct chempi_io_task t;
    char mine[CHEMPI_IO_SAME_WORDS];

    if (same->text)
        (void)snprintf(mine, sizeof(mine), "rank %d has %.40s", comm->rank,
                       same->text);
    else
        (void)snprintf(mine, sizeof(mine), "rank %d has %" PRId64, comm->rank,
                       same->value);
    chempi_io_task_init(&t, comm, NULL);
    chempi_io_task_agree(&t, same->value == value ? MPI_ERR_NOT_SAME : 0, mine,
                         NULL);
    chempi_io_task_run(&t);
    memcpy(words, t.words, CHEMPI_IO_SAME_WORDS);
    words[CHEMPI_IO_SAME_WORDS - 1] = '\0';
    return t.rc == MPI_ERR_NOT_SAME ? MPI_SUCCESS : t.rc;
}

static int tell_apart(struct chempi_comm *comm, const char *path,
                      const struct chempi_io_same *same, int64_t least,
                      int64_t most)
{
    char one[CHEMPI_IO_SAME_WORDS];
    char other[CHEMPI_IO_SAME_WORDS];
    int rc = hear_whose(comm, same, least, one);

    if (!rc)
        rc = hear_whose(comm, same, most, other);
    if (rc)
        return chempi_io_name_path(path, rc, -1);
    return chempi_error_set(MPI_ERR_NOT_SAME,
                            "%.120s: argument %s differs between the "
                            "processes: %s, %s",
                            path, same->name, one, other);
}

int chempi_io_agree_same(struct chempi_comm *comm, const char *path, int rc,
                         const struct chempi_io_same *same, int count,
                         uint8_t *wish)
{
    struct chempi_io_task t;

    chempi_io_task_init(&t, comm, NULL);
    t.wish = *wish;
    for (t.sames = 0; t.sames < count; t.sames++)
        t.same[t.sames] = same[t.sames].value;
    chempi_io_task_agree(&t, rc, NULL, NULL);
    chempi_io_task_run(&t);
    *wish = t.wish;
    if (t.rc)
        return chempi_io_name_path(path, t.rc, -1);
    for (int i = 0; i < count; i++) {
        int64_t most = t.worst[1 + 2 * i];
        int64_t least = ~t.worst[2 + 2 * i];

        if (least != most)
            return tell_apart(comm, path, &same[i], least, most);
    }
    return MPI_SUCCESS;
}

int chempi_io_agree_on(struct chempi_comm *comm, const char *path, int rc)
{
    uint8_t wish = 0;

    return chempi_io_agree_same(comm, path, rc, NULL, 0, &wish);
}

int chempi_io_agree(struct chempi_file *file, int rc)
{
    return chempi_io_agree_on(file->comm, file->path, rc);
}

int chempi_io_agree_args(struct chempi_file *file, int rc,
                         const struct chempi_io_same *same, int count)
{
    uint8_t wish = 0;

    return chempi_io_agree_same(file->comm, file->path, rc, same, count, &wish);
}
