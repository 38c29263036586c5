/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling supervisors on other hosts; see outpost.h. */
#define _GNU_SOURCE /* strsep, pidfd */
#include "chempid/launcher/outpost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "chempid/launcher/outpost_mark.h"
#include "chempid/supervisor/super.h"
#include "common/auth/auth.h"
#include "common/auth/handshake.h"
#include "common/auth/secret.h"
#include "common/base/clock.h"
#include "common/base/sys.h"

#define WORDS_MAX 64
#define NOISE_MAX                                                              \
    4096u /* bytes before the mark, beyond which none is sought                \
           */
#define LEAVE_MS 3000u

/* What is read of a post until its mark has come and hands are shaken. In
 * memory for secrets. */
struct call {
    uint64_t deadline_ns;
    uint32_t matched; /* bytes of the mark */
    uint32_t noise;
    uint32_t said; /* bytes of what it says in the handshake */
    bool is_marked;
    bool is_made;
    struct chempi_keys keys;
    struct chempi_handshake shake;
    uint8_t bytes[CHEMPI_HANDSHAKE_MSG_MAX];
};

struct chempi_outpost *chempi_outpost_create(uint32_t count)
{
    return chempi_secret_create(count * sizeof(struct chempi_outpost));
}

void chempi_outpost_destroy(struct chempi_outpost *posts, uint32_t count)
{
    chempi_secret_destroy(posts, count * sizeof(*posts));
}

/* ---- starting commands --------------------------------------------------- */

/* The path of this program, quoted for a shell at the other end. */
static int make_order(char *order, size_t size, struct chempi_err *err)
{
    char path[2048];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    size_t at = 0;

    if (n <= 0 || (size_t)n >= sizeof(path) - 1)
        return chempi_err_set(err, -ENAMETOOLONG,
                              "cannot find the path of this program");
    path[n] = '\0';
    at += (size_t)snprintf(order, size, "exec '");
    for (const char *c = path; *c && at + 8 < size; c++)
        at += (size_t)snprintf(order + at, size - at,
                               *c == '\'' ? "'\\''" : "%c", *c);
    (void)snprintf(order + at, size - at, "' " CHEMPI_OUTPOST_OPTION);
    return 0;
}

/* In the child. The host stands before what is run there, as ssh and its likes
 * want it; where "{}" is among the words, there. */
_Noreturn static void become(const char *launcher, const char *host,
                             char *order, int fd, pid_t parent)
{
    char words[4096];
    char name[256];
    char *argv[WORDS_MAX + 3];
    char *rest = words;
    char *word;
    int n = 0;
    bool has_place = false;

    (void)snprintf(words, sizeof(words), "%s", launcher);
    (void)snprintf(name, sizeof(name), "%s", host);
    while (n < WORDS_MAX && (word = strsep(&rest, " \t"))) {
        if (!*word)
            continue;
        has_place |= strcmp(word, "{}") == 0;
        argv[n++] = strcmp(word, "{}") == 0 ? name : word;
    }
    if (!has_place)
        argv[n++] = name;
    argv[n++] = order;
    argv[n] = NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(fd, 0) < 0 || dup2(fd, 1) < 0)
        _exit(127);
    chempi_ranks_reset_signals();
    (void)setpgid(0, 0); /* signals of the terminal are the launcher's */
    (void)execvp(argv[0], argv);
    (void)dprintf(2, "chempirun: %s: %s\n", argv[0], chempi_err_name(-errno));
    _exit(127);
}

static int start(struct chempi_outpost *post, const char *launcher, char *order,
                 struct chempi_err *err)
{
    const pid_t self = getpid();
    const char *const host = post->host; /* the child finds *post empty */
    int fds[2];

    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno, "cannot create a socket: %s",
                              chempi_err_name(errno));
    post->pid = chempi_sys->fork();
    if (post->pid == 0)
        become(launcher, host, order, fds[1], self);
    (void)close(fds[1]); /* the child's end */
    post->fd = fds[0];
    if (post->pid > 0)
        return 0;
    post->pid = 0;
    return chempi_err_set(err, -EAGAIN,
                          "cannot start a process for host %s; raise the limit "
                          "of processes ('ulimit -u')",
                          post->host);
}

/* ---- their answers ------------------------------------------------------- */

/* Take one byte: the mark has a first byte that it holds nowhere else. */
static void match(struct call *call, char byte)
{
    static const char mark[] = CHEMPI_OUTPOST_MARK;

    if (byte == mark[call->matched]) {
        call->is_marked = ++call->matched == sizeof(mark) - 1;
        return;
    }
    call->matched = byte == mark[0];
    if (!call->matched) {
        call->noise++;
        if (write(2, &byte, 1) < 0) {
            /* Nobody reads what a shell had to say. */
        }
    }
}

void chempi_outpost_fate(struct chempi_outpost *post, char *text, size_t size)
{
    int status;

    text[0] = '\0';
    if (!post->pid || waitpid(post->pid, &status, WNOHANG) != post->pid)
        return;
    post->pid = 0;
    if (WIFEXITED(status))
        (void)snprintf(text, size, ": the command ended with exit code %d",
                       WEXITSTATUS(status));
    else
        (void)snprintf(text, size, ": the command was ended by signal %d",
                       WTERMSIG(status));
}

/* The end of its output comes a moment before its own. */
static int fail_post(struct chempi_outpost *post, const char *why,
                     struct chempi_err *err)
{
    char fate[96] = "";
    const int pidfd =
        post->pid ? (int)syscall(SYS_pidfd_open, post->pid, 0) : -1;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0) {
        (void)poll(&p, 1, (int)LEAVE_MS);
        (void)close(pidfd); /* only waited on */
    }
    chempi_outpost_fate(post, fate, sizeof(fate));
    return chempi_err_set(err, -EHOSTUNREACH, "host %s: %s%s", post->host, why,
                          fate);
}

/* Into an empty socket: a part is a failure. */
static int say(struct chempi_outpost *post, const void *data, size_t len,
               struct chempi_err *err)
{
    return send(post->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                   (ssize_t)len
               ? 0
               : fail_post(post, "it does not listen", err);
}

/* The mark is there: a fresh key, and the first message of the handshake. */
static int greet(struct chempi_outpost *post, struct call *call,
                 struct chempi_err *err)
{
    uint8_t out[CHEMPI_OUTPOST_KEY + CHEMPI_HANDSHAKE_MSG_MAX];
    size_t len;
    int rc;

    call->keys.cluster_count = 1;
    if (chempi_auth_make_key(call->keys.cluster[0]) ||
        chempi_noise_make_pair(&call->keys.node))
        return chempi_err_set(err, -EIO, "libsodium does not start");
    rc = chempi_handshake_init(&call->shake, true, &call->keys,
                               CHEMPI_OUTPOST_PURPOSE,
                               sizeof(CHEMPI_OUTPOST_PURPOSE) - 1, NULL, NULL);
    if (rc)
        return chempi_err_set(err, rc, "libsodium does not start");
    memcpy(out, call->keys.cluster[0], CHEMPI_OUTPOST_KEY);
    rc = chempi_handshake_step(&call->shake, NULL, 0, out + CHEMPI_OUTPOST_KEY,
                               &len, err);
    rc = rc < 0 ? rc : say(post, out, CHEMPI_OUTPOST_KEY + len, err);
    sodium_memzero(out, sizeof(out));
    return rc;
}

/* It has said all that it has to say in the handshake. */
static int finish_call(struct chempi_outpost *post, struct call *call,
                       struct chempi_err *err)
{
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_err why;
    size_t len;

    if (chempi_handshake_step(&call->shake, call->bytes, call->said, out, &len,
                              &why) != 1)
        return fail_post(post, why.text, err);
    call->is_made = true;
    (void)chempi_handshake_split(&call->shake, &post->tx, &post->rx);
    chempi_handshake_fini(&call->shake);
    sodium_memzero(&call->keys, sizeof(call->keys));
    return say(post, out, len, err);
}

static int hear(struct chempi_outpost *post, struct call *call,
                struct chempi_err *err)
{
    uint8_t byte;
    const ssize_t n = recv(post->fd, &byte, 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return fail_post(post,
                         "no supervisor answers there; is chempirun installed "
                         "under the same path, and of the same version?",
                         err);
    if (!call->is_marked) {
        match(call, (char)byte);
        if (call->noise > NOISE_MAX)
            return fail_post(post, "its shell prints too much", err);
        return call->is_marked ? greet(post, call, err) : 0;
    }
    call->bytes[call->said++] = byte;
    return call->said == chempi_handshake_need(&call->shake)
               ? finish_call(post, call, err)
               : 0;
}

/* All bytes that have been taken of it. */
static uint32_t heard(const struct call *call)
{
    return call->matched + call->noise + call->said;
}

/* Wait for whoever answers next among [first, started). */
static int listen_to(struct chempi_outpost *posts, struct call *calls,
                     uint32_t started, struct chempi_err *err)
{
    struct pollfd p[CHEMPI_OUTPOST_CALLS];
    uint32_t who[CHEMPI_OUTPOST_CALLS];
    uint64_t deadline_ns = UINT64_MAX;
    nfds_t n = 0;
    uint64_t now_ns;
    int rc = 0;

    for (uint32_t i = 0; i < started && n < CHEMPI_OUTPOST_CALLS; i++)
        if (!calls[i].is_made) {
            p[n] = (struct pollfd){.fd = posts[i].fd, .events = POLLIN};
            who[n++] = i;
            if (calls[i].deadline_ns < deadline_ns)
                deadline_ns = calls[i].deadline_ns;
        }
    now_ns = chempi_clock_ns();
    if (now_ns >= deadline_ns)
        return fail_post(&posts[who[0]], "no answer within 60 s", err);
    (void)poll(p, n, (int)((deadline_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
    for (nfds_t k = 0; !rc && k < n; k++)
        while (!rc && p[k].revents && !calls[who[k]].is_made) {
            const uint32_t before = heard(&calls[who[k]]);

            rc = hear(&posts[who[k]], &calls[who[k]], err);
            if (heard(&calls[who[k]]) == before)
                break;
        }
    return rc;
}

static uint32_t count_open(const struct call *calls, uint32_t started)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < started; i++)
        n += !calls[i].is_made;
    return n;
}

int chempi_outpost_call(struct chempi_outpost *posts, uint32_t count,
                        const char *launcher, struct chempi_err *err)
{
    struct call *calls = chempi_secret_create(count * sizeof(*calls));
    char order[4096];
    uint32_t started = 0;
    int rc = calls ? make_order(order, sizeof(order), err)
                   : chempi_err_set(err, -ENOMEM, "out of memory");

    for (uint32_t i = 0; i < count; i++)
        posts[i].fd = -1;
    while (!rc && (started < count || count_open(calls, started))) {
        if (started < count &&
            count_open(calls, started) < CHEMPI_OUTPOST_CALLS) { /* E2 */
            calls[started].deadline_ns =
                chempi_clock_ns() + CHEMPI_OUTPOST_LIMIT_MS * CHEMPI_NS_PER_MS;
            rc = start(&posts[started], launcher, order, err);
            started++;
        } else {
            rc = listen_to(posts, calls, started, err);
        }
    }
    chempi_secret_destroy(calls, count * sizeof(*calls));
    if (rc)
        chempi_outpost_leave(posts, started);
    return rc;
}

static void await_end(struct chempi_outpost *post, uint64_t deadline_ns)
{
    const uint64_t now_ns = chempi_clock_ns();
    const int pidfd = (int)syscall(SYS_pidfd_open, post->pid, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0)
        return;
    if (now_ns < deadline_ns)
        (void)poll(&p, 1, (int)((deadline_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
    (void)close(pidfd); /* only waited on */
}

void chempi_outpost_leave(struct chempi_outpost *posts, uint32_t count)
{
    const uint64_t deadline_ns =
        chempi_clock_ns() + LEAVE_MS * CHEMPI_NS_PER_MS;

    for (uint32_t i = 0; i < count; i++) {
        if (posts[i].fd >= 0)
            (void)close(posts[i].fd); /* E3 */
        posts[i].fd = -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!posts[i].pid)
            continue;
        await_end(&posts[i], deadline_ns);
        if (waitpid(posts[i].pid, NULL, WNOHANG) == 0) {
            (void)kill(posts[i].pid, SIGKILL);
            (void)waitpid(posts[i].pid, NULL, 0);
        }
        posts[i].pid = 0;
    }
}
