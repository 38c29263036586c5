/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end of a remote; see remote.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "chempid/process/orphans.h"
#include "chempid/remote/remote_mark.h"
#include "chempid/remote/remote_tree.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"
#include "common/auth/handshake.h"
#include "common/auth/seal.h"
#include "common/auth/secret.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/control/channel.h"
#include "common/fd/file.h"

static int fail(const char *what, int code)
{
    (void)fprintf(stderr, "chempirun " CHEMPI_REMOTE_OPTION ": %s: %s\n", what,
                  chempi_err_name(code));
    return EXIT_FAILURE;
}

/* ---- the launch ---------------------------------------------------------- */

static int await_input(void)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};

    return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* What has come of records, opened, to `put`; -EPIPE: the end, or what the
 * launcher has not sealed. Waits if nothing is there. */
static int open_records(struct chempi_seal *seal,
                        int (*put)(void *arg, const uint8_t *data, size_t len),
                        void *arg)
{
    uint8_t plain[CHEMPI_SEAL_PLAIN_MAX];
    bool is_dry;
    ssize_t n = chempi_seal_fill(seal, 0, &is_dry);
    int rc = 0;

    if (n < 0 && n != -EINTR && n != -EAGAIN)
        return (int)n;
    if (n == 0)
        return -EPIPE;
    while (!rc && (n = chempi_seal_next(seal)) > 0) {
        rc = chempi_seal_open(seal, plain);
        rc = rc ? rc : put(arg, plain, (size_t)n);
    }
    sodium_memzero(plain, sizeof(plain));
    return n < 0 ? (int)n : rc;
}

static int put_memory(void *arg, const uint8_t *data, size_t len)
{
    struct chempi_writer *in = arg;

    chempi_wire_put_raw(in, data, len);
    return in->error;
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static int type_of(const struct chempi_writer *in)
{
    return in->data[4] | in->data[5] << 8;
}

/* Bytes of the first frame with its head once they are there. */
static int read_frame(struct chempi_seal *seal, struct chempi_writer *in,
                      size_t *whole)
{
    int rc = 0;

    *whole = CHEMPI_FRAME_HEADER;
    while (!rc && in->len < *whole) {
        rc = await_input();
        rc = rc ? rc : open_records(seal, put_memory, in);
        if (!rc && in->len >= CHEMPI_FRAME_HEADER) {
            const uint32_t len = number_at(in->data);

            if (len > CHEMPI_TREE_MAX ||
                (type_of(in) != CHEMPI_MSG_LAUNCH &&
                 type_of(in) != CHEMPI_MSG_CALL) ||
                (in->data[6] | in->data[7] << 8) != CHEMPI_FRAME_MAGIC)
                return -EBADMSG;
            *whole = CHEMPI_FRAME_HEADER + (size_t)len;
        }
    }
    return rc;
}

static int parse(const struct chempi_writer *in, size_t whole,
                 struct chempi_spec *spec, uint32_t *node)
{
    struct chempi_shell shell;
    struct chempi_reader r;
    int rc;

    chempi_wire_read(&r, in->data + CHEMPI_FRAME_HEADER,
                     whole - CHEMPI_FRAME_HEADER);
    if (chempi_wire_get_u32(&r) != 1)
        return -EBADMSG;
    *node = chempi_wire_get_u32(&r);
    rc = chempi_shell_take(&shell, &r);
    rc = rc ? rc : chempi_spec_read(spec, &r);
    if (rc == 0) { /* whoever has logged in, whatever the launcher is there */
        spec->shell = shell;
        spec->uid = geteuid();
        spec->gid = getegid();
    }
    return !rc && (!chempi_wire_is_done(&r) || *node >= spec->node_count)
               ? -EBADMSG
               : rc;
}

/* ---- the relay ----------------------------------------------------------- */

/*
 * Between the launcher's command and the supervisor. Each direction goes on
 * while the other one cannot: a launcher that does not read is still heard.
 *   Y1  of each direction no more is read before the last is handed on, so it
 *       holds a buffer of records each, at most
 *   Y2  nothing waits but poll(), and what is not handed on yet is among what
 *       it waits for
 */
struct relay {
    struct chempi_seal *seal;
    int fd; /* the supervisor's socket */
    struct chempi_writer down;
    size_t down_head; /* first byte that the supervisor has not taken */
    uint8_t up[CHEMPI_SEAL_PLAIN_MAX];
    size_t up_head;
    size_t up_len;     /* behind the head: to be sealed */
    bool has_ended;    /* the supervisor: it says no more */
    bool is_lost;      /* the launcher, or what comes is not its */
    bool has_told;     /* the supervisor so */
    uint64_t leave_ns; /* then, at the latest */
};

static void lose_launcher(struct relay *y, int rc)
{
    if (rc == -EBADMSG)
        (void)fail("something came that the launcher has not sealed", rc);
    y->is_lost = true;
    y->leave_ns = chempi_clock_ns() + (uint64_t)(CHEMPI_DROP_S * 1e9);
}

static void hear_launcher(struct relay *y)
{
    const int rc = open_records(y->seal, put_memory, &y->down);

    if (rc)
        lose_launcher(y, rc);
}

/* What is opened goes to the supervisor; behind the last it hears that no more
 * will come. */
static void pass_down(struct relay *y)
{
    while (y->down_head < y->down.len) {
        const ssize_t n =
            send(y->fd, y->down.data + y->down_head, y->down.len - y->down_head,
                 MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
            return;
        if (n < 0 && errno != EINTR)
            y->down_head = y->down.len; /* it has ended: its end follows */
        y->down_head += n > 0 ? (size_t)n : 0;
    }
    y->down_head = y->down.len = 0;
    if (y->is_lost && !y->has_told)
        (void)shutdown(y->fd, SHUT_WR);
    y->has_told = y->is_lost;
}

static void hear_supervisor(struct relay *y)
{
    const ssize_t n = read(y->fd, y->up, sizeof(y->up));

    y->has_ended = n == 0 || (n < 0 && errno != EINTR);
    y->up_head = 0;
    y->up_len = n > 0 ? (size_t)n : 0;
}

/* 0: all is written, 1: the command does not take it now, -errno. What did not
 * fit behind older records is sealed as soon as they are written: nothing else
 * would wake it for that. */
static int pass_up(struct relay *y)
{
    int rc;

    do {
        const ssize_t n =
            chempi_seal_put(y->seal, y->up + y->up_head, y->up_len);

        if (n < 0)
            return (int)n;
        y->up_head += (size_t)n;
        y->up_len -= (size_t)n;
        rc = chempi_seal_flush(y->seal, 1);
    } while (rc == 0 && y->up_len);
    return rc;
}

/* Milliseconds until it leaves in any case; -1: not yet. */
static int time_left(const struct relay *y)
{
    const uint64_t now = y->is_lost ? chempi_clock_ns() : 0;

    if (!y->is_lost)
        return -1;
    return now < y->leave_ns ? (int)((y->leave_ns - now) / 1000000 + 1) : 0;
}

/* Until the supervisor has ended and all it has said is written, or the command
 * takes nothing any more. When the launcher is lost the supervisor hears so,
 * and has CHEMPI_DROP_S to end. */
static void run_relay(struct relay *y)
{
    int rc = 0;

    pass_down(y);
    while (rc == 1 || (rc == 0 && !y->has_ended)) {
        struct pollfd p[] = {
            {.fd = y->is_lost ? -1 : 0, .events = y->down.len ? 0 : POLLIN},
            {.fd = y->has_ended || (y->up_len && !y->down.len) ? -1 : y->fd,
             .events = (short)((y->up_len ? 0 : POLLIN) |
                               (y->down.len ? POLLOUT : 0))},
            {.fd = rc == 1 ? 1 : -1, .events = POLLOUT}};
        const int left = time_left(y);

        if (left == 0)
            return;
        if (poll(p, CHEMPI_ARRAY_LEN(p), left) < 0)
            continue;
        if (p[0].revents && y->down.len)
            lose_launcher(y, -EPIPE); /* it has ended, unread */
        else if (p[0].revents)
            hear_launcher(y);
        if (!y->up_len && p[1].revents & (POLLIN | POLLHUP | POLLERR))
            hear_supervisor(y);
        pass_down(y);
        rc = pass_up(y);
    }
}

static void relay(struct chempi_seal *seal, int fd, const void *rest,
                  size_t rest_len)
{
    struct relay y = {.seal = seal, .fd = fd};

    chempi_wire_put_raw(&y.down, rest, rest_len);
    if (y.down.error == 0)
        run_relay(&y);
    chempi_wire_clear(&y.down);
    sodium_memzero(y.up, sizeof(y.up));
}

/* What was read first of the launch: a part of the job, or a call. */
struct errand {
    bool is_call;
    struct chempi_spec spec;
    uint32_t node;
    const uint8_t *rest; /* what the child of ours shall read */
    size_t rest_len;
};

_Noreturn static void be_child(const struct errand *errand, int fd,
                               pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || chempi_file_leave_streams())
        _exit(1);
    if (errand->is_call)
        chempi_remote_serve_inner(fd);
    chempi_super_run(&errand->spec, errand->node, fd, false);
}

static int serve(struct chempi_seal *seal, const struct errand *errand)
{
    const pid_t self = getpid();
    int fds[2];
    pid_t pid;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return fail("cannot start a supervisor", -errno);
    pid = chempi_sys->fork();
    if (pid == 0) {
        (void)close(fds[0]); /* the parent's end */
        be_child(errand, fds[1], self);
    }
    (void)close(fds[1]); /* the child's end */
    if (pid < 0)
        return fail("cannot start a supervisor", -errno);
    relay(seal, fds[0], errand->rest, errand->rest_len);
    (void)close(fds[0]); /* nobody reads it any more */
    (void)chempi_orphans_end(NULL, NULL, (unsigned)(CHEMPI_REAP_S * 1000));
    return 0;
}

/* ---- the handshake --------------------------------------------------------
 */

static int shake_hands(const struct chempi_keys *keys,
                       struct chempi_handshake *shake)
{
    uint8_t in[CHEMPI_HANDSHAKE_MSG_MAX];
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_err err;
    size_t len;
    int rc =
        chempi_handshake_init(shake, false, keys, CHEMPI_REMOTE_PURPOSE,
                              sizeof(CHEMPI_REMOTE_PURPOSE) - 1, NULL, NULL);

    while (rc == 0) {
        const size_t need = chempi_handshake_need(shake);

        rc = chempi_file_read_all(0, in, need);
        rc = rc ? rc : chempi_handshake_step(shake, in, need, out, &len, &err);
        if (rc >= 0 && chempi_file_write_all(1, out, len))
            rc = -EPIPE;
    }
    return rc < 0 ? rc : 0;
}

/* The launcher says a key, and both prove that they have it. */
static int meet(struct chempi_seal **seal)
{
    struct {
        struct chempi_keys keys;
        struct chempi_handshake shake;
        struct chempi_noise_cipher tx;
        struct chempi_noise_cipher rx;
    } *s = chempi_secret_create(sizeof(*s));
    int rc = s ? 0 : -ENOMEM;

    if (rc)
        return rc;
    s->keys.cluster_count = 1;
    rc = chempi_file_read_all(0, s->keys.cluster[0], CHEMPI_REMOTE_KEY);
    rc = rc ? rc : chempi_noise_make_pair(&s->keys.node);
    rc = rc ? rc : shake_hands(&s->keys, &s->shake);
    rc = rc ? rc : chempi_handshake_split(&s->shake, &s->tx, &s->rx);
    if (!rc) {
        *seal = chempi_seal_create(&s->tx, &s->rx);
        rc = *seal ? 0 : -ENOMEM;
    }
    chempi_secret_destroy(s, sizeof(*s));
    return rc;
}

static int read_errand(struct chempi_seal *seal, struct chempi_writer *in,
                       struct errand *errand)
{
    size_t whole;
    int rc = read_frame(seal, in, &whole);

    if (rc)
        return rc;
    errand->is_call = type_of(in) == CHEMPI_MSG_CALL;
    errand->rest = in->data + (errand->is_call ? 0 : whole);
    errand->rest_len = in->len - (errand->is_call ? 0 : whole);
    return errand->is_call ? 0 : parse(in, whole, &errand->spec, &errand->node);
}

int chempi_remote_serve(void)
{
    struct chempi_seal *seal = NULL;
    struct chempi_writer in = {0};
    struct errand errand = {0};
    int rc;

    (void)signal(SIGPIPE, SIG_IGN);
    rc = chempi_file_write_all(1, CHEMPI_REMOTE_MARK,
                               sizeof(CHEMPI_REMOTE_MARK) - 1);
    rc = rc ? rc : meet(&seal);
    rc = rc ? rc : read_errand(seal, &in, &errand);
    if (rc) {
        chempi_wire_clear(&in);
        chempi_seal_destroy(seal);
        return rc == -EPIPE
                   ? EXIT_FAILURE
                   : fail("a launch that is malformed, or was changed", rc);
    }
    rc = serve(seal, &errand);
    chempi_wire_clear(&in);
    chempi_spec_fini(&errand.spec);
    chempi_seal_destroy(seal);
    return rc;
}
