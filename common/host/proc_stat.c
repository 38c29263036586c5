/* SPDX-License-Identifier: BSD-3-Clause */
/* See the header. The command's name stands in parentheses and may hold any
 * character; what follows it is in proc(5). */
#include "common/host/proc_stat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fd/file.h"

int chempi_proc_stat(pid_t pid, struct chempi_proc_stat *out)
{
    char path[64];
    char text[1024];
    char state;
    long parent;
    long threads;
    uint64_t born;
    const char *at;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    n = chempi_file_read(path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    at = strrchr(text, ')');
    if (!at ||
        sscanf(at + 1,
               " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %ld %*s %" SCNu64,
               &state, &parent, &threads, &born) != 4)
        return -EPROTO;
    *out = (struct chempi_proc_stat){
        .parent = (pid_t)parent,
        .has_ended = (state == 'Z' || state == 'X') && threads <= 1,
        .born = born};
    return 0;
}
