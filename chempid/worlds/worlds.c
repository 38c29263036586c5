/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks ask of the first launcher; see worlds.h. */
#define _GNU_SOURCE /* pidfd_open by its number, closing descriptors */
#include "chempid/worlds/worlds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"
#include "chempid/worlds/above.h"
#include "chempid/worlds/inherit.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/fd/file.h"

#define END_S 10.0 /* W4 */

extern char **environ;

/* One that ranks have started, and its launcher. */
struct world {
    struct chempi_list entry;
    struct chempi_worlds *worlds;
    uint32_t number;
    uint32_t parent; /* the number of the world whose rank has asked, */
    uint32_t node;   /* its node and number there, */
    uint32_t rank;
    uint32_t serial; /* and its question */
    struct chempi_link link;
    pid_t pid;
    int pidfd;
    ev_io ended;
    ev_timer limit; /* W4 */
    bool is_answered;
    bool has_started;
    char text[CHEMPI_TEXT_MAX]; /* why it has ended */
};

/* Who has asked what. */
struct asker {
    struct chempi_worlds *worlds;
    uint32_t world;
    uint32_t node;
    uint32_t rank;
    uint32_t serial;
};

void chempi_worlds_init(struct chempi_worlds *worlds,
                        const struct chempi_worlds_ops *ops, void *arg)
{
    *worlds = (struct chempi_worlds){.ops = ops, .arg = arg};
    chempi_list_init(&worlds->worlds);
}

void chempi_worlds_open(struct chempi_worlds *worlds, struct ev_loop *loop,
                        const struct chempi_options *opt,
                        struct chempi_supervisors *supervisors)
{
    worlds->loop = loop;
    worlds->opt = opt;
    worlds->supervisors = supervisors;
}

static struct world *find(struct chempi_worlds *worlds, uint32_t number)
{
    CHEMPI_LIST_FOR (e, &worlds->worlds) {
        struct world *world = CHEMPI_CONTAINER_OF(e, struct world, entry);

        if (world->number == number)
            return world;
    }
    return NULL;
}

static void answer(const struct asker *asker, struct chempi_reply reply)
{
    struct chempi_worlds *worlds = asker->worlds;
    struct world *world;
    struct chempi_writer *w;

    reply.serial = asker->serial;
    if (asker->world == 0) {
        worlds->ops->reply(worlds->arg, asker->node, asker->rank, &reply);
        return;
    }
    world = find(worlds, asker->world);
    if (!world || !world->link.is_open)
        return;
    w = chempi_link_begin(&world->link, CHEMPI_MSG_ROOT_REPLY, 0);
    chempi_wire_put_u32(w, asker->node);
    chempi_wire_put_u32(w, asker->rank);
    chempi_reply_write(&reply, w);
    chempi_link_end(&world->link);
}

static void refuse(const struct asker *asker, enum chempi_reply_error error,
                   const char *text)
{
    answer(asker, (struct chempi_reply){.state = CHEMPI_REPLY_FAILED,
                                        .error = error,
                                        .text = text});
}

static void grant(const struct asker *asker, const char *text)
{
    answer(asker,
           (struct chempi_reply){.state = CHEMPI_REPLY_GRANTED, .text = text});
}

/* ---- names --------------------------------------------------------------- */

static void publish(const struct asker *asker, const char *service,
                    const char *port)
{
    const int rc = chempi_published_publish(&asker->worlds->names, asker->world,
                                            asker->rank, service, port);
    char text[96];

    (void)snprintf(text, sizeof(text),
                   "%u names are published, which is the "
                   "limit",
                   CHEMPI_ROOT_NAMES_MAX);
    if (rc == 0)
        grant(asker, "");
    else if (rc == -EEXIST)
        refuse(asker, CHEMPI_REPLY_SERVICE, "the name is published already");
    else if (rc == -ENOBUFS)
        refuse(asker, CHEMPI_REPLY_SERVICE, text);
    else
        refuse(asker, CHEMPI_REPLY_MEMORY, "the launcher is out of memory");
}

static void unpublish(const struct asker *asker, const char *service,
                      const char *port)
{
    const int rc = chempi_published_unpublish(&asker->worlds->names,
                                              asker->world, service, port);

    if (rc == 0)
        grant(asker, "");
    else
        refuse(asker, CHEMPI_REPLY_SERVICE,
               rc == -EPERM ? "another world has published the name"
                            : "the name is not published with this port");
}

static void look_up(const struct asker *asker, const char *service)
{
    const char *port = chempi_published_find(&asker->worlds->names, service);

    if (port)
        grant(asker, port);
    else
        refuse(asker, CHEMPI_REPLY_NAME,
               "nobody has published the name, of the worlds of this chempirun "
               "(those of another one are not asked: hand the port's name over "
               "by a file, or the like)");
}

static void take_name(const struct asker *asker, enum chempi_root_request what,
                      const uint8_t *blob, size_t len)
{
    struct chempi_reader r;
    const char *service;
    const char *port = "";

    chempi_wire_read(&r, blob, len);
    service = chempi_wire_get_str(&r, CHEMPI_SERVICE_NAME_MAX);
    if (what != CHEMPI_ROOT_LOOKUP)
        port = chempi_wire_get_str(&r, CHEMPI_PORT_NAME_MAX);
    if (!chempi_wire_is_done(&r))
        refuse(asker, CHEMPI_REPLY_ARG, "malformed");
    else if (what == CHEMPI_ROOT_PUBLISH)
        publish(asker, service, port);
    else if (what == CHEMPI_ROOT_UNPUBLISH)
        unpublish(asker, service, port);
    else
        look_up(asker, service);
}

/* ---- worlds -------------------------------------------------------------- */

static void take(struct chempi_worlds *worlds, uint32_t world, uint32_t node,
                 uint32_t rank, struct chempi_reader *r);

static struct asker parent_of(const struct world *world)
{
    return (struct asker){.worlds = world->worlds,
                          .world = world->parent,
                          .node = world->node,
                          .rank = world->rank,
                          .serial = world->serial};
}

static void refuse_world(struct world *world, uint32_t app, const char *text)
{
    const struct asker asker = parent_of(world);

    if (world->is_answered)
        return;
    world->is_answered = true;
    answer(&asker, (struct chempi_reply){.state = CHEMPI_REPLY_FAILED,
                                         .error = CHEMPI_REPLY_SPAWN,
                                         .app = app,
                                         .text = text});
}

static void kill_world(struct world *world)
{
    (void)kill(world->pid, SIGKILL); /* it is not reaped yet */
}

static void is_late(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    kill_world(w->data); /* W4 */
}

static void end_world(struct world *world, int status, const char *text)
{
    struct chempi_writer *w;

    if (ev_is_active(&world->limit))
        return;
    ev_timer_start(world->worlds->loop, &world->limit);
    if (!world->link.is_open)
        return;
    w = chempi_link_begin(&world->link, CHEMPI_MSG_KILL, 0);
    chempi_wire_put_u32(w, (uint32_t)status);
    chempi_wire_put_str(w, text);
    chempi_link_end(&world->link);
}

/* W3 */
static void end_children(struct chempi_worlds *worlds, uint32_t parent)
{
    char text[64];

    (void)snprintf(text, sizeof(text),
                   "world %u, which has started it, has "
                   "ended badly",
                   parent);
    CHEMPI_LIST_FOR (e, &worlds->worlds) {
        struct world *world = CHEMPI_CONTAINER_OF(e, struct world, entry);

        if (world->parent == parent)
            end_world(world, CHEMPI_EXIT_FAILURE, text);
    }
}

static void destroy(struct world *world)
{
    struct ev_loop *loop = world->worlds->loop;

    ev_io_stop(loop, &world->ended);
    ev_timer_stop(loop, &world->limit);
    chempi_link_close(&world->link);
    chempi_file_close(world->pidfd);
    chempi_supervisors_yield(world->worlds->supervisors, world->pid);
    chempi_list_remove(&world->entry);
    world->worlds->count--;
    free(world);
}

/* Its launcher has ended with this wait status. */
static void judge(struct world *world, int status)
{
    struct chempi_worlds *worlds = world->worlds;
    const struct asker asker = parent_of(world);
    int code = WIFEXITED(status) ? WEXITSTATUS(status)
                                 : CHEMPI_EXIT_SIGNAL + WTERMSIG(status);

    if (WIFSIGNALED(status)) {
        (void)snprintf(world->text, sizeof(world->text),
                       "the launcher of world %u was killed by signal %d",
                       world->number, WTERMSIG(status));
        if (world->has_started)
            worlds->ops->say(worlds->arg, world->text);
    }
    chempi_published_drop_world(&worlds->names, world->number);
    refuse_world(world, 0,
                 *world->text ? world->text
                              : "the launcher of the world has ended "
                                "before the programs were started");
    if (world->has_started) {
        answer(&asker, (struct chempi_reply){.state = CHEMPI_REPLY_OVER,
                                             .text = world->text});
        if (code && !worlds->status)
            worlds->status = code;
    }
    if (code)
        end_children(worlds, world->number);
}

static void has_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct world *world = w->data;
    struct chempi_worlds *worlds = world->worlds;
    int status;

    (void)loop;
    (void)events;
    if (world->link.is_open)
        chempi_link_drain(&world->link); /* what it has said last */
    if (waitpid(world->pid, &status, WNOHANG) != world->pid)
        return;
    judge(world, status);
    destroy(world);
    worlds->ops->changed(worlds->arg);
}

/* ---- what a world's launcher says ---------------------------------------- */

static int refuse_frame(struct chempi_err *err)
{
    return chempi_err_set(err, -EBADMSG, "a malformed message");
}

static int take_started(struct world *world, struct chempi_reader *r,
                        struct chempi_err *err)
{
    const struct asker asker = parent_of(world);
    const uint32_t count = chempi_wire_get_u32(r);

    if (!chempi_wire_is_done(r) || world->is_answered)
        return refuse_frame(err);
    world->is_answered = world->has_started = true;
    answer(&asker, (struct chempi_reply){.state = CHEMPI_REPLY_GRANTED,
                                         .count = count});
    return 0;
}

static int take_frame(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err)
{
    struct world *world = link->arg;
    struct chempi_reader r;
    const char *text;
    uint32_t app;
    uint32_t node;
    uint32_t rank;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_STARTED:
        return take_started(world, &r, err);
    case CHEMPI_MSG_REFUSED:
        app = chempi_wire_get_u32(&r);
        text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
        if (!chempi_wire_is_done(&r))
            return refuse_frame(err);
        refuse_world(world, app, text);
        return 0;
    case CHEMPI_MSG_GONE:
        text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
        if (!chempi_wire_is_done(&r))
            return refuse_frame(err);
        (void)snprintf(world->text, sizeof(world->text), "%s", text);
        return 0;
    case CHEMPI_MSG_ROOT_REQUEST:
        node = chempi_wire_get_u32(&r);
        rank = chempi_wire_get_u32(&r);
        take(world->worlds, world->number, node, rank, &r);
        return 0;
    default:
        return refuse_frame(err);
    }
}

static void lose_link(struct chempi_link *link, int code,
                      const struct chempi_err *err)
{
    struct world *world = link->arg;

    (void)err;
    chempi_link_close(link);
    if (code != -EPIPE) /* it is not what we have started */
        kill_world(world);
    end_world(world, CHEMPI_EXIT_FAILURE, ""); /* it has END_S from now on */
}

/* ---- its beginning ------------------------------------------------------- */

/* It has no input, none of our descriptors but standard output and error, and
 * the link. Signals of the terminal are the first launcher's: until it reads
 * them away they wait. */
static int spawn(int fd, pid_t *pid)
{
    static char *const argv[] = {"chempirun", CHEMPI_ABOVE_OPTION, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    static const int numbers[] = {CHEMPI_ROOT_SIGNALS};
    sigset_t held;
    int rc;

    (void)sigemptyset(&held);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(numbers); i++)
        (void)sigaddset(&held, numbers[i]);
    if (posix_spawn_file_actions_init(&actions))
        return -ENOMEM;
    if (posix_spawnattr_init(&attr)) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -ENOMEM;
    }
    rc = posix_spawnattr_setsigmask(&attr, &held);
    rc = rc ? rc : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    rc = rc ? rc
            : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null",
                                               O_RDONLY, 0);
    rc = rc ? rc
            : posix_spawn_file_actions_adddup2(&actions, fd, CHEMPI_ABOVE_FD);
    rc = rc ? rc
            : posix_spawn_file_actions_addclosefrom_np(&actions,
                                                       CHEMPI_ABOVE_FD + 1);
    rc =
        rc ? rc
           : posix_spawn(pid, "/proc/self/exe", &actions, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* Start its launcher, and watch for its end: in this order nothing is left
 * that nobody reaps. */
static int start(struct world *world, int fd)
{
    struct chempi_worlds *worlds = world->worlds;
    int rc = spawn(fd, &world->pid);

    if (rc)
        return rc;
    world->pidfd = (int)syscall(SYS_pidfd_open, world->pid, 0);
    rc = world->pidfd < 0
             ? -errno
             : chempi_supervisors_spare(worlds->supervisors, world->pid);
    if (rc) {
        chempi_file_close(world->pidfd);
        kill_world(world); /* a stray */
        return rc;
    }
    ev_io_init(&world->ended, has_ended, world->pidfd, EV_READ);
    ev_timer_init(&world->limit, is_late, END_S, 0.0);
    world->ended.data = world->limit.data = world;
    ev_io_start(worlds->loop, &world->ended);
    return 0;
}

static int open_world(struct world *world)
{
    int fds[2];
    int rc = chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)
                 ? -errno
                 : 0;

    if (rc)
        return rc;
    /* Not where the child will have its end already. */
    rc = start(world, fds[1]);
    (void)close(fds[1]);
    if (rc) {
        (void)close(fds[0]);
        return rc;
    }
    chempi_link_open(&world->link, world->worlds->loop, fds[0], CHEMPI_TREE_MAX,
                     CHEMPI_QUEUE_MAX);
    world->link.on_frame = take_frame;
    world->link.on_lost = lose_link;
    world->link.arg = world;
    return 0;
}

static void tell_world(struct world *world, const uint8_t *blob, size_t len)
{
    struct chempi_writer *w =
        chempi_link_begin(&world->link, CHEMPI_MSG_LAUNCH, 0);

    chempi_wire_put_u32(w, world->number);
    chempi_inherit_write(world->worlds->opt, w);
    chempi_wire_put_blob(w, blob, len);
    chempi_link_end(&world->link);
}

static void start_world(const struct asker *asker, const uint8_t *blob,
                        size_t len)
{
    struct chempi_worlds *worlds = asker->worlds;
    struct world *world = chempi_sys->calloc(1, sizeof(*world));
    char text[128];
    int rc;

    if (!world) {
        refuse(asker, CHEMPI_REPLY_MEMORY, "the launcher is out of memory");
        return;
    }
    *world = (struct world){.worlds = worlds,
                            .number = worlds->started + 1,
                            .parent = asker->world,
                            .node = asker->node,
                            .rank = asker->rank,
                            .serial = asker->serial,
                            .pidfd = -1};
    rc = open_world(world);
    if (rc) {
        free(world);
        (void)snprintf(text, sizeof(text), "no launcher can be started: %s",
                       chempi_err_name(rc));
        refuse(asker, CHEMPI_REPLY_SPAWN, text);
        return;
    }
    worlds->started++;
    worlds->count++;
    chempi_list_append(&worlds->worlds, &world->entry);
    tell_world(world, blob, len);
}

static void take_spawn(const struct asker *asker, const uint8_t *blob,
                       size_t len)
{
    const struct chempi_worlds *worlds = asker->worlds;
    struct chempi_spawn *spawn = NULL;
    const int rc = chempi_spawn_read(blob, len, &spawn);
    char text[96];

    free(spawn);
    (void)snprintf(text, sizeof(text), "%u worlds run, which is the limit",
                   CHEMPI_ROOT_WORLDS_MAX);
    if (rc)
        refuse(asker, rc == -ENOMEM ? CHEMPI_REPLY_MEMORY : CHEMPI_REPLY_ARG,
               rc == -ENOMEM ? "the launcher is out of memory" : "malformed");
    else if (!worlds->loop)
        refuse(asker, CHEMPI_REPLY_LACKS, "this launcher starts nothing");
    else if (worlds->is_closed)
        refuse(asker, CHEMPI_REPLY_SPAWN, "the job ends");
    else if (worlds->count >= CHEMPI_ROOT_WORLDS_MAX ||
             worlds->started == UINT32_MAX)
        refuse(asker, CHEMPI_REPLY_SPAWN, text);
    else
        start_world(asker, blob, len);
}

/* ---- questions ----------------------------------------------------------- */

/* Of a rank of that world. */
static void take(struct chempi_worlds *worlds, uint32_t world, uint32_t node,
                 uint32_t rank, struct chempi_reader *r)
{
    const struct asker asker = {.worlds = worlds,
                                .world = world,
                                .node = node,
                                .rank = rank,
                                .serial = chempi_wire_get_u32(r)};
    const uint8_t what = chempi_wire_get_u8(r);
    size_t len;
    const uint8_t *blob = chempi_wire_get_blob(r, CHEMPI_ROOT_BYTES_MAX, &len);

    if (!chempi_wire_is_done(r))
        return; /* no supervisor of ours says so */
    switch (what) {
    case CHEMPI_ROOT_ENDED:
        chempi_published_drop_rank(&worlds->names, world, rank);
        break;
    case CHEMPI_ROOT_PUBLISH:
    case CHEMPI_ROOT_UNPUBLISH:
    case CHEMPI_ROOT_LOOKUP:
        take_name(&asker, (enum chempi_root_request)what, blob, len);
        break;
    case CHEMPI_ROOT_SPAWN:
        take_spawn(&asker, blob, len);
        break;
    default: /* W2 */
        refuse(&asker, CHEMPI_REPLY_LACKS, "this launcher does not know how");
        break;
    }
}

void chempi_worlds_take(struct chempi_worlds *worlds, uint32_t node,
                        uint32_t rank, struct chempi_reader *r)
{
    take(worlds, 0, node, rank, r);
}

/* ---- all of them --------------------------------------------------------- */

void chempi_worlds_end(struct chempi_worlds *worlds, int status,
                       const char *text)
{
    worlds->is_closed = true;
    CHEMPI_LIST_FOR (e, &worlds->worlds)
        end_world(CHEMPI_CONTAINER_OF(e, struct world, entry), status, text);
}

void chempi_worlds_signal(struct chempi_worlds *worlds, uint32_t number)
{
    CHEMPI_LIST_FOR (e, &worlds->worlds) {
        struct world *world = CHEMPI_CONTAINER_OF(e, struct world, entry);
        struct chempi_writer *w;

        if (!world->link.is_open)
            continue;
        w = chempi_link_begin(&world->link, CHEMPI_MSG_SIGNAL, 0);
        chempi_wire_put_u32(w, number);
        chempi_link_end(&world->link);
    }
}

void chempi_worlds_kill(struct chempi_worlds *worlds)
{
    worlds->is_closed = true;
    CHEMPI_LIST_FOR (e, &worlds->worlds)
        kill_world(CHEMPI_CONTAINER_OF(e, struct world, entry));
}

void chempi_worlds_fini(struct chempi_worlds *worlds)
{
    chempi_worlds_kill(worlds);
    CHEMPI_LIST_FOR_SAFE (e, &worlds->worlds)
        destroy(CHEMPI_CONTAINER_OF(e, struct world, entry));
    chempi_published_fini(&worlds->names);
}
