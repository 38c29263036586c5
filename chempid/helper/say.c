/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the daemon's log goes; see say.h. */
#define _GNU_SOURCE /* localtime_r, O_CLOEXEC */
#include "chempid/helper/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "chempid/tree/limits.h"
#include "common/base/clock.h"
#include "common/words/plain.h"

#define LINE_MAX_LEN 1200u
#define KINDS 16 /* the modules of a daemon, by their levels */
#define SYSTEM_LOG "/dev/log"

/* Y2 */
struct kind {
    const char *module;
    enum chempi_log_level level;
    double lines; /* that may come now */
    double when;
    unsigned left_out;
};

static struct {
    const char *name;
    bool has_left; /* standard error */
    int fd;        /* of the log, if it is another one than standard error */
    pid_t pid;     /* whose fd that is: children close it */
    unsigned lost; /* lines that nobody took (Y1) */
    struct kind kinds[KINDS];
} say = {.fd = -1};

static bool has_own(void)
{
    return say.fd >= 0 && say.pid == getpid();
}

/* A description of our own, that does not wait; others keep theirs as it is.
 * Where it cannot be had, poll() has to do. */
static int log_fd(void)
{
    struct stat to;

    if (say.pid != getpid()) {
        say.pid = getpid();
        say.fd = fstat(STDERR_FILENO, &to) == 0 &&
                         (S_ISFIFO(to.st_mode) || S_ISCHR(to.st_mode))
                     ? open("/proc/self/fd/2",
                            O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
                     : -1;
    }
    return say.fd >= 0 ? say.fd : STDERR_FILENO;
}

/* ---- one line ------------------------------------------------------------ */

/* Opened for each line: a descriptor that the library kept would be closed, and
 * its number used again, in children that close all but their own. The
 * system's own call would wait when the log is full. */
static bool tell_system(enum chempi_log_level level, const char *text)
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = SYSTEM_LOG};
    const int fd =
        socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char line[LINE_MAX_LEN];
    bool is_told;
    int len;

    if (fd < 0)
        return false;
    len = snprintf(line, sizeof(line), "<%d>chempid[%ld]: %s: %s",
                   LOG_DAEMON | priorities[level], (long)getpid(), say.name,
                   text);
    if (len >= (int)sizeof(line))
        len = (int)sizeof(line) - 1;
    is_told = sendto(fd, line, (size_t)len, MSG_NOSIGNAL,
                     (const struct sockaddr *)&name, sizeof(name)) == len;
    (void)close(fd); /* sent, or not */
    return is_told;
}

/* A file takes everything. Others may have the same pipe or terminal: what
 * poll() promises holds for a line of our own description, else nearly. */
static bool tell_error(enum chempi_log_level level, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const int fd = log_fd();
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    char line[LINE_MAX_LEN];
    char when[32] = "";
    struct tm tm;
    time_t now = time(NULL);
    int len;

    if (localtime_r(&now, &tm))
        (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S ", &tm);
    len = snprintf(line, sizeof(line), "%schempid %s: %s: %s\n", when, say.name,
                   names[level], text);
    if (len >= (int)sizeof(line)) {
        len = (int)sizeof(line) - 1;
        line[len - 1] = '\n';
    }
    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
           write(fd, line, (size_t)len) == len;
}

static bool tell_line(enum chempi_log_level level, const char *text)
{
    return say.has_left ? tell_system(level, text) : tell_error(level, text);
}

/* ---- which lines --------------------------------------------------------- */

static struct kind *find_kind(const char *module, enum chempi_log_level level,
                              double now)
{
    for (int i = 0; i < KINDS; i++) {
        struct kind *k = &say.kinds[i];

        if (!k->module)
            *k = (struct kind){.module = module,
                               .level = level,
                               .lines = CHEMPI_LOG_BURST,
                               .when = now};
        if (k->level == level && strcmp(k->module, module) == 0)
            return k;
    }
    return &say.kinds[KINDS - 1];
}

/* May a line of this kind be told? *left_out is how many were not. */
static bool admit(const char *module, enum chempi_log_level level,
                  unsigned *left_out)
{
    const double now = (double)chempi_clock_ns() / (double)CHEMPI_NS_PER_S;
    struct kind *k = find_kind(module, level, now);

    k->lines += (now - k->when) * CHEMPI_LOG_PER_S;
    k->when = now;
    if (k->lines > CHEMPI_LOG_BURST)
        k->lines = CHEMPI_LOG_BURST;
    if (k->lines < 1) {
        k->left_out++;
        return false;
    }
    k->lines -= 1;
    *left_out = k->left_out;
    k->left_out = 0;
    return true;
}

static void tell(void *arg, enum chempi_log_level level, const char *module,
                 const char *text)
{
    char line[LINE_MAX_LEN];
    unsigned left_out;

    (void)arg;
    if (!admit(module, level, &left_out))
        return;
    if (left_out) {
        (void)snprintf(line, sizeof(line),
                       "%u lines like the next were left "
                       "out",
                       left_out);
        say.lost += !tell_line(level, line);
    }
    if (say.lost) {
        (void)snprintf(line, sizeof(line),
                       "%u lines are missing here: nobody "
                       "took them",
                       say.lost);
        if (tell_line(CHEMPI_LOG_WARNING, line))
            say.lost = 0;
    }
    (void)snprintf(line, sizeof(line), "%s", text);
    chempi_plain(line, strlen(line), ""); /* Y3 */
    say.lost += !tell_line(level, line);
}

void chempi_say_start(const char *name, enum chempi_log_level max)
{
    say.name = name;
    chempi_log_set(tell, NULL, max);
}

void chempi_say_prepare(void)
{
    if (!say.has_left)
        (void)log_fd();
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
    if (say.has_left && has_own()) {
        (void)close(say.fd); /* written to without waiting */
        say.fd = -1;
    }
    if (fd != STDERR_FILENO)
        (void)close(fd); /* duplicated, or of no use */
    return rc;
}
