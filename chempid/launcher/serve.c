/* SPDX-License-Identifier: BSD-3-Clause */
/* The root of a process that nobody has launched; see serve.h. */
#define _GNU_SOURCE /* pidfd_open by its number, fcntl */
#include "chempid/launcher/serve.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"
#include "chempid/launcher/console.h"
#include "chempid/options/options.h"
#include "chempid/process/signals.h"
#include "chempid/supervisor/supervisors.h"
#include "chempid/tree/link.h"
#include "chempid/worlds/worlds.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"
#include "common/fd/file.h"
#include "common/words/plain.h"

#define GRACE_S 3.0 /* from a passed-on signal to the end of the worlds */

struct serve {
    struct ev_loop *loop;
    struct chempi_options opt;
    struct chempi_supervisors supervisors; /* of none: for what worlds leave */
    struct chempi_console console;
    struct chempi_worlds worlds;
    struct chempi_link link;
    uint32_t pid; /* 0: it has not greeted */
    char name[32];
    int pidfd; /* -1: the kernel has none */
    ev_io process;
    struct chempi_signals signals;
    ev_timer grace;
    uint32_t serial; /* of its last question */
    uint32_t open;   /* of these, without an answer */
    bool is_up;      /* between INIT and FINAL */
    bool has_ended;  /* V1 */
    int presses;     /* signals since then; 3: or more */
};

static void say(void *arg, const char *text)
{
    struct serve *s = arg;
    char line[CHEMPI_TEXT_MAX + 16];
    const int len = snprintf(line, sizeof(line), "chempirun: %.*s\n",
                             (int)CHEMPI_TEXT_MAX - 1, text);

    if (len > 0)
        chempi_console_say(&s->console, line, (size_t)len);
}

static void check_end(struct serve *s)
{
    if (s->has_ended && s->worlds.count == 0 &&
        chempi_console_is_empty(&s->console))
        ev_break(s->loop, EVBREAK_ALL); /* V3 */
}

/* ---- the process --------------------------------------------------------- */

/* As a supervisor says it. */
static void withdraw_names(struct serve *s)
{
    uint8_t data[16];
    struct chempi_writer w;
    struct chempi_reader r;

    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, 0);
    chempi_wire_put_u8(&w, CHEMPI_ROOT_ENDED);
    chempi_wire_put_blob(&w, NULL, 0);
    chempi_wire_read(&r, w.data, w.len);
    chempi_worlds_take(&s->worlds, 0, 0, &r);
}

/* V2 */
static void end_worlds(struct serve *s)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "process %" PRIu32 " (%s) has ended without MPI_Finalize; "
                   "the worlds that it has started were ended",
                   s->pid, s->name);
    if (s->worlds.count)
        say(s, text);
    chempi_worlds_end(&s->worlds, CHEMPI_EXIT_FAILURE, text);
}

static void end_process(struct serve *s)
{
    if (s->has_ended)
        return;
    s->has_ended = true;
    ev_io_stop(s->loop, &s->process);
    chempi_link_close(&s->link);
    withdraw_names(s);
    if (s->is_up)
        end_worlds(s);
    check_end(s);
}

static void process_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct serve *s = w->data;

    (void)loop;
    (void)events;
    if (s->link.is_open)
        chempi_link_drain(&s->link); /* V1 */
    end_process(s);
}

static void link_lost(struct chempi_link *link, int code,
                      const struct chempi_err *err)
{
    struct serve *s = link->arg;

    if (code == -EBADMSG || code == -EPROTO) /* it is no process of ours */
        say(s, err->text);
    end_process(s);
}

static int refuse(struct chempi_err *err, const char *what)
{
    return chempi_err_set(err, -EBADMSG, "the process sent a malformed %s",
                          what);
}

/* -EPIPE: it has ended already. */
static int watch_process(struct serve *s)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", s->pid);
    (void)chempi_file_read(path, s->name, sizeof(s->name)); /* else "" */
    s->name[strcspn(s->name, "\n")] = '\0';
    chempi_plain(s->name, strlen(s->name), "");
    s->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)s->pid, 0);
    if (s->pidfd < 0) /* the link says it, too, if nobody has a copy */
        return errno == ESRCH ? -EPIPE : 0;
    ev_io_init(&s->process, process_ended, s->pidfd, EV_READ);
    s->process.data = s;
    ev_io_start(s->loop, &s->process);
    return 0;
}

static int take_hello(struct serve *s, struct chempi_reader *r,
                      struct chempi_err *err)
{
    const uint32_t version = chempi_wire_get_u32(r);
    const uint32_t pid = chempi_wire_get_u32(r);

    if (version != CHEMPI_CONTROL_VERSION)
        return chempi_err_set(err, -EPROTO,
                              "chempirun and the library of the process that "
                              "has started it are of different versions");
    if (!chempi_wire_is_done(r) || pid == 0 || pid > INT32_MAX)
        return refuse(err, "greeting");
    s->pid = pid;
    return watch_process(s);
}

/* It is counted as a supervisor counts those of a rank. */
static int take_question(struct serve *s, struct chempi_reader *r,
                         struct chempi_err *err)
{
    struct chempi_reader again = *r;
    const uint32_t serial = chempi_wire_get_u32(r);
    const uint8_t what = chempi_wire_get_u8(r);
    size_t len;

    (void)chempi_wire_get_blob(r, CHEMPI_ROOT_BYTES_MAX, &len);
    if (!chempi_wire_is_done(r) || what == CHEMPI_ROOT_ENDED ||
        s->serial == UINT32_MAX || serial != s->serial + 1 ||
        s->open >= CHEMPI_ROOT_REQUESTS_MAX)
        return refuse(err, "question");
    s->serial = serial;
    s->open++;
    chempi_worlds_take(&s->worlds, 0, 0, &again);
    return 0;
}

static int take_frame(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err)
{
    struct serve *s = link->arg;
    struct chempi_reader r;

    chempi_wire_read(&r, frame->data, frame->len);
    if ((frame->type == CHEMPI_MSG_HELLO) != (s->pid == 0))
        return refuse(err, "beginning");
    switch (frame->type) {
    case CHEMPI_MSG_HELLO:
        return take_hello(s, &r, err);
    case CHEMPI_MSG_INIT:
        s->is_up = true;
        return 0;
    case CHEMPI_MSG_FINAL:
        s->is_up = false;
        withdraw_names(s);
        return 0;
    case CHEMPI_MSG_ROOT_REQUEST:
        return take_question(s, &r, err);
    default:
        return refuse(err, "message");
    }
}

/* ---- its worlds ---------------------------------------------------------- */

static void reply(void *arg, uint32_t node, uint32_t rank,
                  const struct chempi_reply *answer)
{
    struct serve *s = arg;

    (void)node;
    (void)rank;
    if (!s->link.is_open)
        return;
    s->open -= answer->state != CHEMPI_REPLY_OVER;
    chempi_reply_write(answer,
                       chempi_link_begin(&s->link, CHEMPI_MSG_ROOT_REPLY, 0));
    chempi_link_end(&s->link);
}

/* A world or the output has changed. */
static void changed(void *arg)
{
    check_end(arg);
}

static const struct chempi_worlds_ops worlds_ops = {
    .reply = reply, .say = say, .changed = changed};

/* ---- the console: for words only ----------------------------------------- */

static void give_credit(void *arg, uint32_t node, uint32_t bytes)
{
    (void)arg;
    (void)node;
    (void)bytes;
}

static void take_input(void *arg, const void *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
}

static void output_broken(void *arg, int number, int code)
{
    (void)number; /* nothing could be said of it */
    (void)code;
    check_end(arg);
}

static const struct chempi_console_ops console_ops = {.credit = give_credit,
                                                      .input = take_input,
                                                      .broken = output_broken,
                                                      .empty = changed};

/* ---- signals ------------------------------------------------------------- */

static void grace_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct serve *s = w->data;

    (void)loop;
    (void)events;
    chempi_worlds_end(&s->worlds, CHEMPI_EXIT_FAILURE, "ended by a signal");
}

/* A signal that follows its end may be read first. */
static void look_for_end(struct serve *s)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};

    if (!s->has_ended && poll(&p, 1, 0) > 0) /* none at all if it is -1 */
        process_ended(s->loop, &s->process, EV_READ);
}

/* Once passes it on and waits a little, twice does not wait; at the third nor
 * is anybody waited for who does not read. */
static void press(struct serve *s, uint32_t number)
{
    look_for_end(s);
    if (!s->has_ended)
        return; /* V4 */
    s->presses += s->presses < 3;
    if (s->presses == 1) {
        chempi_worlds_signal(&s->worlds, number);
        ev_timer_start(s->loop, &s->grace);
        return;
    }
    grace_is_over(s->loop, &s->grace, 0);
    if (s->presses < 3)
        return;
    chempi_console_drop(&s->console);
    chempi_worlds_kill(&s->worlds);
    check_end(s);
}

static void signalled(void *arg, uint32_t number)
{
    struct serve *s = arg;

    switch (number) {
    case SIGTSTP:
        chempi_worlds_signal(&s->worlds, SIGTSTP);
        (void)raise(SIGSTOP); /* until SIGCONT */
        break;
    case SIGCONT:
        chempi_worlds_signal(&s->worlds, SIGCONT);
        break;
    case SIGUSR1:
    case SIGUSR2:
        break;
    default:
        press(s, number);
        break;
    }
}

static int watch_signals(struct serve *s, struct chempi_err *err)
{
    static const int numbers[] = {CHEMPI_ROOT_SIGNALS};

    ev_timer_init(&s->grace, grace_is_over, GRACE_S, 0.0);
    s->grace.data = s;
    return chempi_signals_watch(&s->signals, s->loop, numbers,
                                CHEMPI_ARRAY_LEN(numbers), signalled, s, err);
}

/* ---- beginning and end --------------------------------------------------- */

/* Nobody else has one: the descriptor is a socket. */
static int check_link(struct chempi_err *err)
{
    socklen_t len = sizeof(int);
    int type;

    if (getsockopt(CHEMPI_ROOT_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
        fcntl(CHEMPI_ROOT_FD, F_SETFD, FD_CLOEXEC) == 0)
        return 0;
    return chempi_err_set(err, -EBADF,
                          CHEMPI_ROOT_OPTION
                          " is for processes that start a launcher themselves");
}

/* What worlds inherit: the options of a command line without any. */
static int read_options(struct chempi_options *opt, struct chempi_err *err)
{
    static char name[] = "chempirun";
    static char program[] = "true";
    static char *words[] = {name, program, NULL};
    const int rc = chempi_options_parse(opt, 2, words, err);

    return rc ? rc : chempi_options_environment(opt, err);
}

static int set_up(struct serve *s, struct chempi_err *err)
{
    int rc = check_link(err);

    rc = rc ? rc : read_options(&s->opt, err);
    if (rc)
        return rc;
    s->loop = ev_loop_new(EVFLAG_AUTO);
    if (!s->loop || chempi_console_init(&s->console, s->loop, 1, 0, false,
                                        false, &console_ops, s))
        return chempi_err_set(err, -ENOMEM, "out of memory or descriptors");
    rc = chempi_supervisors_watch(&s->supervisors, s->loop, err);
    rc = rc ? rc : watch_signals(s, err);
    if (rc)
        return rc;
    chempi_worlds_open(&s->worlds, s->loop, &s->opt, &s->supervisors);
    s->link.on_frame = take_frame;
    s->link.on_lost = link_lost;
    s->link.arg = s;
    chempi_link_open(&s->link, s->loop, CHEMPI_ROOT_FD, CHEMPI_RANK_IN_MAX,
                     CHEMPI_QUEUE_MAX);
    return 0;
}

static void tear_down(struct serve *s)
{
    chempi_link_close(&s->link);
    chempi_worlds_fini(&s->worlds);
    chempi_supervisors_fini(&s->supervisors); /* V3 */
    chempi_signals_unwatch(&s->signals);
    if (s->loop) {
        chempi_console_fini(&s->console);
        ev_io_stop(s->loop, &s->process);
        ev_timer_stop(s->loop, &s->grace);
        ev_loop_destroy(s->loop);
    }
    chempi_file_close(s->pidfd);
    chempi_options_fini(&s->opt);
}

int chempi_serve_process(void)
{
    struct serve s = {.pidfd = -1};
    struct chempi_err err = {0};
    int status = CHEMPI_EXIT_FAILURE;
    int rc;

    chempi_worlds_init(&s.worlds, &worlds_ops, &s);
    rc = chempi_supervisors_init(&s.supervisors, &err);
    rc = rc ? rc : set_up(&s, &err);
    if (rc) {
        (void)fprintf(stderr, "chempirun: %s\n", err.text);
    } else {
        ev_run(s.loop, 0);
        status = s.worlds.status;
    }
    tear_down(&s);
    return status;
}
