/* SPDX-License-Identifier: BSD-3-Clause */
/* Core dumps of supervisors; see dumps.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "chempid/process/dumps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/fd/file.h"

#define FILTER "/proc/self/coredump_filter"

static char before[32]; /* the filter's text; "": it is untouched */

static void put_filter(const char *text)
{
    const int fd = open(FILTER, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return; /* a kernel without core dumps */
    if (write(fd, text, strlen(text)) < 0) {
        /* No more can be done, and the job goes on. */
    }
    (void)close(fd); /* the kernel has it already */
}

/* The text is hexadecimal, but not marked as such. */
static void keep_filter(void)
{
    memcpy(before, "0x", 2);
    if (chempi_file_read(FILTER, before + 2, sizeof(before) - 2) <= 0)
        before[0] = '\0';
}

/* The filter is the user's to write only while the process may be dumped; and
 * what may not be dumped keeps its files in /proc from its user's other
 * programs, which only one that was another's has to. */
void chempi_dumps_forbid(bool is_another_user)
{
    if (is_another_user) {
        (void)prctl(PR_SET_DUMPABLE, 0); /* until a program is executed */
        return;
    }
    keep_filter();
    if (*before)
        put_filter("0");
}

void chempi_dumps_allow(void)
{
    if (*before)
        put_filter(before);
}
