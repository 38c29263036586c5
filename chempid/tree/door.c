/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking launchers on this host; see door.h. */
#define _GNU_SOURCE /* accept4, struct ucred */
#include "chempid/tree/door.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/control/client.h"
#include "common/fd/address.h"
#include "common/fd/rights.h"
#include "common/words/json.h"
#include "common/words/plain.h"

#define PREFIX "chempi-job/" /* then user, job and process */
#define NAMES "/proc/net/unix"
#define JSON_PREFIX "chempi-json/" /* of who asks, then any number */

/* ---- both ---------------------------------------------------------------- */

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

static bool wants_json(const struct sockaddr_un *peer, socklen_t len)
{
    return len > offsetof(struct sockaddr_un, sun_path) + sizeof(JSON_PREFIX) &&
           memcmp(peer->sun_path + 1, JSON_PREFIX, sizeof(JSON_PREFIX) - 1) ==
               0;
}

static void knocked(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_door *d = w->data;
    struct sockaddr_un peer = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(peer);
    const int fd = accept4(d->fd, (struct sockaddr *)&peer, &len,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    uid_t uid;

    (void)loop;
    (void)events;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        ev_io_stop(d->loop, &d->io); /* or it spins: nobody is answered */
    if (fd < 0)
        return;
    if (d->count == CHEMPI_DOOR_ASKERS || !get_user(fd, &uid) ||
        (uid != geteuid() && uid != 0)) {
        chempi_rights_close(fd);
        return;
    }
    d->askers[d->count++] =
        (struct chempi_door_asker){fd, wants_json(&peer, len)};
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
    len = chempi_address_abstract(name, &address);
    door->fd = chempi_sys->socket(
        AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    chempi_rights_refuse(door->fd); /* also of those who are sent away */
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

bool chempi_door_has(const struct chempi_door *door, bool is_json)
{
    for (uint32_t i = 0; i < door->count; i++)
        if (door->askers[i].is_json == is_json)
            return true;
    return false;
}

void chempi_door_answer(struct chempi_door *door, bool is_json,
                        const char *text, size_t len)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < door->count; i++) {
        if (door->askers[i].is_json != is_json) {
            door->askers[left++] = door->askers[i];
            continue;
        }
        (void)send(door->askers[i].fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        chempi_rights_close(door->askers[i].fd); /* who has left has left */
    }
    door->count = left;
}

void chempi_door_close(struct chempi_door *door)
{
    chempi_door_answer(door, false, "", 0);
    chempi_door_answer(door, true, "", 0);
    if (door->fd < 0)
        return;
    ev_io_stop(door->loop, &door->io);
    chempi_rights_close_listener(door->fd);
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

/* One who has been asked. */
struct asked {
    int fd;
    uid_t user;
    int pid; /* as its name says */
};

/* A name that says so; nobody knows it before, so nobody else has it. */
static bool ask_for_json(int fd)
{
    struct sockaddr_un address;
    char name[sizeof(address.sun_path)];
    uint64_t number;
    socklen_t len;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return false;
    (void)snprintf(name, sizeof(name), JSON_PREFIX "%016" PRIx64, number);
    len = chempi_address_abstract(name, &address);
    return chempi_sys->bind(fd, (const struct sockaddr *)&address, len) == 0;
}

/* Whoever has that name need not be whom it names, and may let callers wait:
 * a descriptor to read from, or -1. */
static int call(const char *name, const struct sign *sign, bool is_json)
{
    struct sockaddr_un address;
    const socklen_t len = chempi_address_abstract(name, &address);
    const int fd = chempi_sys->socket(
        AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    uid_t uid;

    if (fd < 0)
        return -1;
    chempi_rights_refuse(fd);
    if (len && (!is_json || ask_for_json(fd)) &&
        connect(fd, (const struct sockaddr *)&address, len) == 0 &&
        get_user(fd, &uid) && uid == sign->user)
        return fd;
    chempi_rights_close(fd);
    return -1;
}

/* Up to its end, the deadline or CHEMPI_DOOR_ANSWER_MAX; how many bytes. */
static size_t copy_answer(FILE *file, const struct asked *a,
                          uint64_t deadline_ns, bool has_user)
{
    struct pollfd item = {.fd = a->fd, .events = POLLIN};
    char text[4096];
    size_t sum = 0;

    while (sum < CHEMPI_DOOR_ANSWER_MAX) {
        const uint64_t now = chempi_clock_ns();
        const uint64_t left =
            now < deadline_ns ? (deadline_ns - now) / 1000000 : 0;
        const int ready = poll(&item, 1, (int)left);
        const ssize_t n =
            ready > 0 ? chempi_rights_recv(a->fd, text, sizeof(text)) : ready;

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        if (sum == 0 && has_user && geteuid() == 0 && a->user != 0)
            (void)fprintf(file, "user %u says:\n", (unsigned)a->user);
        chempi_plain(text, (size_t)n, "\n");
        (void)fwrite(text, 1, (size_t)n, file);
        sum += (size_t)n;
    }
    return sum;
}

/* The names are read while others come and go: one may be there twice. */
static bool is_among(const struct asked *all, size_t count,
                     const struct sign *sign)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].user == sign->user && all[i].pid == sign->pid)
            return true;
    return false;
}

static size_t call_all(struct asked all[CHEMPI_DOOR_CALLS_MAX], const char *job,
                       bool is_json, bool *has_more)
{
    FILE *names = fopen(NAMES, "re");
    char line[512];
    size_t count = 0;

    *has_more = false;
    while (names && fgets(line, sizeof(line), names)) {
        char *name = strrchr(line, '@');
        struct sign sign;

        line[strcspn(line, "\n")] = '\0';
        if (!name || !read_sign(name + 1, &sign) || !is_meant(&sign, job) ||
            is_among(all, count, &sign))
            continue;
        *has_more = count == CHEMPI_DOOR_CALLS_MAX;
        if (*has_more)
            break;
        all[count] =
            (struct asked){call(name + 1, &sign, is_json), sign.user, sign.pid};
        if (all[count].fd >= 0)
            count++;
    }
    if (names)
        (void)fclose(names); /* read only */
    return count;
}

static uint64_t deadline(void)
{
    return chempi_clock_ns() + CHEMPI_DOOR_S * UINT64_C(1000000000);
}

uint32_t chempi_door_ask(FILE *file, const char *job, bool *has_more)
{
    struct asked all[CHEMPI_DOOR_CALLS_MAX];
    const size_t count = call_all(all, job, false, has_more);
    const uint64_t deadline_ns = deadline();
    uint32_t answers = 0;

    for (size_t i = 0; i < count; i++) {
        answers += copy_answer(file, &all[i], deadline_ns, true) > 0;
        chempi_rights_close(all[i].fd);
    }
    return answers;
}

static void put_answer(struct chempi_json *j, const struct asked *a,
                       uint64_t deadline_ns)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    if (file) {
        (void)copy_answer(file, a, deadline_ns, false);
        (void)fclose(file); /* what is missing shows */
    }
    chempi_json_open(j, NULL);
    chempi_json_number(j, "pid", (uint64_t)a->pid);
    chempi_json_number(j, "uid", a->user);
    while (len && text[len - 1] == '\n')
        len--;
    if (text && chempi_json_is_value(text, len))
        chempi_json_embed(j, "answer", text, len);
    else
        chempi_json_text(j, "answer", NULL);
    chempi_json_close(j);
    free(text);
}

uint32_t chempi_door_ask_json(FILE *file, const char *job, bool *has_more)
{
    struct asked all[CHEMPI_DOOR_CALLS_MAX];
    const size_t count = call_all(all, job, true, has_more);
    const uint64_t deadline_ns = deadline();
    struct chempi_json j = {.file = file};

    if (count == 0)
        return 0;
    chempi_json_open_list(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        put_answer(&j, &all[i], deadline_ns);
        chempi_rights_close(all[i].fd);
    }
    chempi_json_close_list(&j);
    chempi_json_end(&j);
    return (uint32_t)count;
}
