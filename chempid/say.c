/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the daemon's log goes; see say.h. */
#define _GNU_SOURCE /* localtime_r, O_CLOEXEC */
#include "chempid/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *name;
    bool has_left; /* standard error */
} say;

/* Opened for each line: a descriptor that the library kept would be closed, and
 * its number used again, in children that close all but their own. */
static void tell_system(enum chempi_log_level level, const char *text)
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

    openlog("chempid", LOG_PID, LOG_DAEMON);
    syslog(priorities[level], "%s: %s", say.name, text);
    closelog();
}

static void tell(void *arg, enum chempi_log_level level, const char *module,
                 const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    char when[32] = "";
    struct tm tm;
    time_t now = time(NULL);

    (void)arg;
    (void)module;
    if (say.has_left) {
        tell_system(level, text);
        return;
    }
    if (localtime_r(&now, &tm))
        (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S ", &tm);
    /* A log that cannot be written has nobody to tell. */
    (void)fprintf(stderr, "%schempid %s: %s: %s\n", when, say.name,
                  names[level], text);
}

void chempi_say_start(const char *name, enum chempi_log_level max)
{
    say.name = name;
    chempi_log_set(tell, NULL, max);
}

int chempi_say_leave(void)
{
    struct stat to;
    int rc = 0;
    int fd;

    if (fstat(STDERR_FILENO, &to) == 0 && S_ISREG(to.st_mode))
        return 0;
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (dup2(fd, STDERR_FILENO) < 0)
        rc = -errno;
    else
        say.has_left = true;
    if (fd != STDERR_FILENO)
        (void)close(fd); /* duplicated, or of no use */
    return rc;
}
