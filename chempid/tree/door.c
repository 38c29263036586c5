/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking launchers on this host; see door.h. */
#define _GNU_SOURCE /* accept4, struct ucred */
#include "chempid/tree/door.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/control/client.h"

#define PREFIX "chempi-job/" /* then user, job and process */
#define NAMES "/proc/net/unix"

/* ---- both ---------------------------------------------------------------- */

static socklen_t make_address(struct sockaddr_un *address, const char *name)
{
    const size_t len = strlen(name);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (len >= sizeof(address->sun_path))
        return 0;
    memcpy(address->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static bool get_user(int fd, uid_t *uid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    *uid = peer.uid;
    return true;
}

/* ---- the launcher -------------------------------------------------------- */

static void knocked(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_door *d = w->data;
    const int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uid_t uid;

    (void)loop;
    (void)events;
    if (fd < 0)
        return;
    if (d->count == CHEMPI_DOOR_ASKERS || !get_user(fd, &uid) ||
        (uid != geteuid() && uid != 0)) {
        (void)close(fd); /* nothing was written there */
        return;
    }
    d->askers[d->count++] = fd;
    d->asked(d->arg);
}

int chempi_door_open(struct chempi_door *door, struct ev_loop *loop,
                     const char *job, void (*asked)(void *arg), void *arg)
{
    struct sockaddr_un address;
    char name[sizeof(address.sun_path)];
    socklen_t len;

    *door = (struct chempi_door){
        .loop = loop, .asked = asked, .arg = arg, .fd = -1};
    (void)snprintf(name, sizeof(name), PREFIX "%u/%s/%d", (unsigned)geteuid(),
                   job, (int)getpid());
    len = make_address(&address, name);
    door->fd = chempi_sys->socket(
        AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door->fd < 0 ||
        chempi_sys->bind(door->fd, (const struct sockaddr *)&address, len) <
            0 ||
        listen(door->fd, (int)CHEMPI_DOOR_ASKERS) < 0) {
        const int rc = -errno;

        chempi_door_close(door);
        return rc;
    }
    ev_io_init(&door->io, knocked, door->fd, EV_READ);
    door->io.data = door;
    ev_io_start(loop, &door->io);
    return 0;
}

void chempi_door_answer(struct chempi_door *door, const char *text, size_t len)
{
    for (uint32_t i = 0; i < door->count; i++) {
        (void)send(door->askers[i], text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)close(door->askers[i]); /* who has left has left */
    }
    door->count = 0;
}

void chempi_door_close(struct chempi_door *door)
{
    chempi_door_answer(door, "", 0);
    if (door->fd < 0)
        return;
    ev_io_stop(door->loop, &door->io);
    (void)close(door->fd); /* it only listens */
    door->fd = -1;
}

/* ---- who asks ------------------------------------------------------------ */

/* What the name of a door says. */
struct sign {
    unsigned user;
    char job[CHEMPI_JOB_ID_MAX];
    int pid;
};

static bool read_sign(const char *name, struct sign *sign)
{
    int len = 0;

    return sscanf(name, PREFIX "%u/%63[0-9a-f]/%d%n", &sign->user, sign->job,
                  &sign->pid, &len) == 3 &&
           name[len] == '\0';
}

static bool is_meant(const struct sign *sign, const char *job)
{
    char pid[16];

    if (sign->user != geteuid() && (geteuid() != 0 || !job))
        return false;
    (void)snprintf(pid, sizeof(pid), "%d", sign->pid);
    return !job || strcmp(job, sign->job) == 0 || strcmp(job, pid) == 0;
}

static bool copy_answer(FILE *file, int fd)
{
    char text[4096];
    bool has_any = false;
    ssize_t n;

    while ((n = read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            has_any = fwrite(text, 1, (size_t)n, file) > 0;
    return has_any;
}

/* Whoever has that name need not be whom it names. */
static bool ask(FILE *file, const char *name, const struct sign *sign)
{
    struct sockaddr_un address;
    const socklen_t len = make_address(&address, name);
    const int fd = chempi_sys->socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has_answered = false;
    uid_t uid;

    if (fd < 0)
        return false;
    if (len && connect(fd, (const struct sockaddr *)&address, len) == 0 &&
        get_user(fd, &uid) && uid == sign->user)
        has_answered = copy_answer(file, fd);
    (void)close(fd); /* read only */
    return has_answered;
}

uint32_t chempi_door_ask(FILE *file, const char *job)
{
    FILE *names = fopen(NAMES, "re");
    char line[512];
    uint32_t count = 0;

    while (names && fgets(line, sizeof(line), names)) {
        char *name = strrchr(line, '@');
        struct sign sign;

        line[strcspn(line, "\n")] = '\0';
        if (name && read_sign(name + 1, &sign) && is_meant(&sign, job))
            count += ask(file, name + 1, &sign);
    }
    if (names)
        (void)fclose(names); /* read only */
    return count;
}
