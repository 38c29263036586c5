/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling supervisors on other hosts; see remote.h. */
#define _GNU_SOURCE /* strsep, pidfd, pipe2 */
#include "chempid/remote/remote.h"

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

#include "chempid/remote/remote_mark.h"
#include "chempid/supervisor/super.h"
#include "common/auth/auth.h"
#include "common/auth/handshake.h"
#include "common/auth/secret.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/words/plain.h"

#define WORDS_MAX 64
#define WORDS_BYTES 4096 /* of a launcher, with its end */
#define BLANKS " \t"     /* between its words */
#define NOISE_MAX                                                              \
    4096u /* bytes before the mark, beyond which none is sought                \
           */
#define LINE_MAX_LEN 256u /* bytes of it that are written at a time */
#define LEAVE_MS 3000u

/* What is read of a remote until its mark has come and hands are shaken. In
 * memory for secrets. */
struct call {
    uint64_t deadline_ns;
    uint32_t matched; /* bytes of the mark */
    uint32_t noise;
    uint32_t line_len;
    char line[LINE_MAX_LEN]; /* noise that is not written yet */
    uint32_t said;           /* bytes of what it says in the handshake */
    bool is_marked;
    bool is_over; /* made, or in a trial failed */
    struct chempi_keys keys;
    struct chempi_handshake shake;
    struct chempi_noise_cipher tx;
    struct chempi_noise_cipher rx;
    uint8_t bytes[CHEMPI_HANDSHAKE_MSG_MAX];
};

/* All remotes, and those of them that are called now. */
struct party {
    struct chempi_remote *remotes;
    struct call *calls; /* [count], as places */
    const uint32_t *places;
    uint32_t count;
    uint32_t started;
    const struct chempi_remote_way *way;
};

static struct chempi_remote *post_of(const struct party *p, uint32_t i)
{
    return &p->remotes[p->places[i]];
}

struct chempi_remote *chempi_remote_create(uint32_t count)
{
    struct chempi_remote *remotes = chempi_sys->calloc(count, sizeof(*remotes));

    for (uint32_t i = 0; remotes && i < count; i++) {
        remotes[i].node = i;
        remotes[i].via = CHEMPI_REMOTE_NONE;
        remotes[i].err_fd = remotes[i].ch.fd = -1;
    }
    return remotes;
}

void chempi_remote_destroy(struct chempi_remote *remotes, uint32_t count)
{
    (void)count;
    free(remotes);
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
    (void)snprintf(order + at, size - at, "' " CHEMPI_REMOTE_OPTION);
    return 0;
}

/* All of it is used, or nothing. */
static int check_launcher(const char *launcher, struct chempi_err *err)
{
    const char *at = launcher;
    int n = 0;

    while (*(at += strspn(at, BLANKS))) {
        at += strcspn(at, BLANKS);
        n++;
    }
    if (n > 0 && n <= WORDS_MAX && strlen(launcher) < WORDS_BYTES)
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "--launcher-exec: expected 1 to %d words in %d bytes",
                          WORDS_MAX, WORDS_BYTES - 1);
}

/* In the child. The host stands before what is run there, as ssh and its likes
 * want it; where "{}" is among the words, there. */
_Noreturn static void become(const char *launcher, const char *host,
                             char *order, int fd, int err_fd, pid_t parent)
{
    char words[WORDS_BYTES];
    char name[256];
    char *argv[WORDS_MAX + 3];
    char *rest = words;
    char *word;
    int n = 0;
    bool has_place = false;

    (void)snprintf(words, sizeof(words), "%s", launcher);
    (void)snprintf(name, sizeof(name), "%s", host);
    while (n < WORDS_MAX && (word = strsep(&rest, BLANKS))) {
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
    if (getppid() != parent || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 ||
        (err_fd >= 0 && dup2(err_fd, 2) < 0))
        _exit(127);
    chempi_ranks_reset_signals();
    (void)setpgid(0, 0); /* signals of the terminal are the launcher's */
    (void)execvp(argv[0], argv);
    (void)dprintf(2, "chempirun: %s: %s\n", argv[0], chempi_err_name(-errno));
    _exit(127);
}

static int start(struct chempi_remote *remote,
                 const struct chempi_remote_way *way, char *order,
                 struct chempi_err *err)
{
    const pid_t self = getpid();
    const char *const host = remote->host; /* the child finds *remote empty */
    int fds[2];
    int errs[2] = {-1, -1};

    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno, "cannot create a socket: %s",
                              chempi_err_name(errno));
    chempi_channel_init(&remote->ch, fds[0], CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    if (way->is_trial && chempi_sys->pipe2(errs, O_CLOEXEC) < 0) {
        (void)close(fds[1]); /* nothing runs there */
        return chempi_err_set(err, -errno, "cannot create a pipe: %s",
                              chempi_err_name(errno));
    }
    remote->pid = chempi_sys->fork();
    if (remote->pid == 0)
        become(way->launcher, host, order, fds[1], errs[1], self);
    (void)close(fds[1]); /* the child's ends */
    if (errs[1] >= 0) {
        (void)close(errs[1]);
        (void)fcntl(errs[0], F_SETFL, O_NONBLOCK);
    }
    remote->err_fd = errs[0];
    if (remote->pid > 0)
        return 0;
    remote->pid = 0;
    return chempi_err_set(err, -EAGAIN,
                          "cannot start a process for host %s; raise the limit "
                          "of processes ('ulimit -u')",
                          host);
}

/* ---- their answers ------------------------------------------------------- */

/* Several shells may talk at a time, each in lines of its own. */
static void write_noise(struct call *call)
{
    if (call->line_len > 0 && write(2, call->line, call->line_len) < 0) {
        /* Nobody reads what a shell had to say. */
    }
    call->line_len = 0;
}

/* Take one byte: the mark has a first byte that it holds nowhere else. */
static void match(struct call *call, char byte)
{
    static const char mark[] = CHEMPI_REMOTE_MARK;

    if (byte == mark[call->matched]) {
        call->is_marked = ++call->matched == sizeof(mark) - 1;
        if (call->is_marked)
            write_noise(call);
        return;
    }
    call->matched = byte == mark[0];
    if (call->matched)
        return;
    call->noise++;
    call->line[call->line_len++] = byte;
    if (byte == '\n' || call->line_len == LINE_MAX_LEN)
        write_noise(call);
}

int chempi_remote_fate(struct chempi_remote *remote, char *text, size_t size)
{
    int status;

    text[0] = '\0';
    if (!remote->pid || waitpid(remote->pid, &status, WNOHANG) != remote->pid)
        return -1;
    remote->pid = 0;
    if (!WIFEXITED(status)) {
        (void)snprintf(text, size, ": the command was ended by signal %d",
                       WTERMSIG(status));
        return -1;
    }
    (void)snprintf(text, size, ": the command ended with exit code %d",
                   WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

static const char no_answer[] = "no supervisor answers there";

/* What to look at, by the exit code of a command that was to start one. */
static const char *advice(int code)
{
    if (code == 255) /* ssh's own */
        return "; can this user log in there without being asked anything?";
    if (code == 127 || code == 126) /* the shell's there */
        return "; is chempirun installed there, under the same path?";
    return "; is chempirun installed there under the same path, and of the "
           "same version?";
}

/* Of what the command has complained of; false: nothing. */
static bool last_words(const struct chempi_remote *remote, char *text,
                       size_t size)
{
    char heard[1024];
    char *at;
    ssize_t n = 0;
    ssize_t len = 0;

    /* The end of a long complaint is in the last full buffer, about. */
    while (remote->err_fd >= 0 && (n = read(remote->err_fd, heard, 1023)) > 0)
        len = n;
    while (len > 0 && strchr("\r\n ", heard[len - 1]))
        len--;
    if (len <= 0)
        return false;
    heard[len] = '\0';
    at = strrchr(heard, '\n');
    (void)snprintf(text, size, "%.200s", at ? at + 1 : heard);
    chempi_plain(text, strlen(text), "");
    return true;
}

/* The end of its output comes a moment before its own. */
static int fail_post(struct chempi_remote *remote, const char *why,
                     struct chempi_err *err)
{
    char words[CHEMPI_REMOTE_WHY_MAX];
    char fate[96] = "";
    int code;
    const int pidfd =
        remote->pid ? (int)syscall(SYS_pidfd_open, remote->pid, 0) : -1;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0) {
        (void)poll(&p, 1, (int)LEAVE_MS);
        (void)close(pidfd); /* only waited on */
    }
    code = chempi_remote_fate(remote, fate, sizeof(fate));
    if (last_words(remote, words, sizeof(words))) /* they know better */
        why = words;
    return chempi_err_set(err, -EHOSTUNREACH, "host %s: %s%s%s", remote->host,
                          why, fate, why == no_answer ? advice(code) : "");
}

/* Into an empty socket: a part is a failure. */
static int say(struct chempi_remote *remote, const void *data, size_t len,
               struct chempi_err *err)
{
    return send(remote->ch.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                   (ssize_t)len
               ? 0
               : fail_post(remote, "it does not listen", err);
}

/* The mark is there: a fresh key, and the first message of the handshake. */
static int greet(struct chempi_remote *remote, struct call *call,
                 struct chempi_err *err)
{
    uint8_t out[CHEMPI_REMOTE_KEY + CHEMPI_HANDSHAKE_MSG_MAX];
    size_t len;
    int rc;

    call->keys.cluster_count = 1;
    if (chempi_auth_make_key(call->keys.cluster[0]) ||
        chempi_noise_make_pair(&call->keys.node))
        return chempi_err_set(err, -EIO, "libsodium does not start");
    rc = chempi_handshake_init(&call->shake, true, &call->keys,
                               CHEMPI_REMOTE_PURPOSE,
                               sizeof(CHEMPI_REMOTE_PURPOSE) - 1, NULL, NULL);
    if (rc)
        return chempi_err_set(err, rc, "libsodium does not start");
    memcpy(out, call->keys.cluster[0], CHEMPI_REMOTE_KEY);
    rc = chempi_handshake_step(&call->shake, NULL, 0, out + CHEMPI_REMOTE_KEY,
                               &len, err);
    rc = rc < 0 ? rc : say(remote, out, CHEMPI_REMOTE_KEY + len, err);
    sodium_memzero(out, sizeof(out));
    return rc;
}

/* It has said all that it has to say in the handshake. */
static int finish_call(const struct party *p, struct chempi_remote *remote,
                       struct call *call, struct chempi_err *err)
{
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_err why;
    size_t len;
    int rc;

    if (chempi_handshake_step(&call->shake, call->bytes, call->said, out, &len,
                              &why) != 1)
        return fail_post(remote, why.text, err);
    call->is_over = true;
    remote->via = (uint32_t)(remote - p->remotes);
    (void)chempi_handshake_split(&call->shake, &call->tx, &call->rx);
    chempi_handshake_fini(&call->shake);
    sodium_memzero(&call->keys, sizeof(call->keys));
    rc = say(remote, out, len, err);
    if (!rc && chempi_channel_seal(&remote->ch, &call->tx, &call->rx))
        rc = chempi_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

static int hear(const struct party *p, uint32_t i, struct chempi_err *err)
{
    struct chempi_remote *remote = post_of(p, i);
    struct call *call = &p->calls[i];
    uint8_t byte;
    const ssize_t n = recv(remote->ch.fd, &byte, 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        write_noise(call);
        return fail_post(remote, no_answer, err);
    }
    if (!call->is_marked) {
        match(call, (char)byte);
        if (call->noise > NOISE_MAX)
            return fail_post(remote, "its shell prints too much", err);
        return call->is_marked ? greet(remote, call, err) : 0;
    }
    call->bytes[call->said++] = byte;
    return call->said == chempi_handshake_need(&call->shake)
               ? finish_call(p, remote, call, err)
               : 0;
}

/* All bytes that have been taken of it. */
static uint32_t heard(const struct call *call)
{
    return call->matched + call->noise + call->said;
}

/* It is closed; its command ends, and is waited for with the others. */
static void hang_up(struct chempi_remote *remote)
{
    chempi_channel_fini(&remote->ch); /* E3 */
    if (remote->err_fd >= 0)
        (void)close(remote->err_fd); /* only read */
    remote->err_fd = -1;
    remote->via = CHEMPI_REMOTE_NONE;
}

/* A failure to reach it, which in a trial is noted only. */
static int note(const struct party *p, uint32_t i, int rc,
                struct chempi_err *err)
{
    struct chempi_remote *remote = post_of(p, i);

    if (rc != -EHOSTUNREACH || !p->way->is_trial)
        return rc;
    (void)snprintf(remote->why, sizeof(remote->why), "%.*s",
                   (int)sizeof(remote->why) - 1, err->text);
    *err = (struct chempi_err){0};
    hang_up(remote);
    p->calls[i].is_over = true;
    return 0;
}

static int be_late(const struct party *p, uint32_t i, struct chempi_err *err)
{
    struct chempi_remote *remote = post_of(p, i);
    char text[64];

    (void)snprintf(text, sizeof(text), "no answer within %g s",
                   p->way->limit_ms / 1000.0);
    if (p->way->is_trial && remote->pid)
        (void)kill(remote->pid,
                   SIGTERM); /* nobody else may be asked meanwhile */
    return note(p, i, fail_post(remote, text, err), err);
}

static int take_bytes(const struct party *p, uint32_t i, struct chempi_err *err)
{
    struct call *call = &p->calls[i];
    uint32_t before;
    int rc;

    do {
        before = heard(call);
        rc = note(p, i, hear(p, i, err), err);
    } while (!rc && !call->is_over && heard(call) != before);
    return rc;
}

/* Wait for whoever answers next. */
static int listen_to(const struct party *p, struct chempi_err *err)
{
    struct pollfd fds[CHEMPI_REMOTE_CALLS];
    uint32_t who[CHEMPI_REMOTE_CALLS];
    uint64_t deadline_ns = UINT64_MAX;
    nfds_t n = 0;
    uint64_t now_ns;
    int rc = 0;

    for (uint32_t i = 0; i < p->started && n < CHEMPI_REMOTE_CALLS; i++)
        if (!p->calls[i].is_over) {
            fds[n] =
                (struct pollfd){.fd = post_of(p, i)->ch.fd, .events = POLLIN};
            who[n++] = i; /* the first has waited longest */
            if (p->calls[i].deadline_ns < deadline_ns)
                deadline_ns = p->calls[i].deadline_ns;
        }
    now_ns = chempi_clock_ns();
    if (now_ns >= deadline_ns)
        return be_late(p, who[0], err);
    (void)poll(fds, n, (int)((deadline_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
    for (nfds_t k = 0; !rc && k < n; k++)
        if (fds[k].revents)
            rc = take_bytes(p, who[k], err);
    return rc;
}

static uint32_t count_open(const struct party *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->started; i++)
        n += !p->calls[i].is_over;
    return n;
}

int chempi_remote_call(struct chempi_remote *remotes, uint32_t count,
                       const uint32_t *places, uint32_t place_count,
                       const struct chempi_remote_way *way,
                       struct chempi_err *err)
{
    struct party p = {
        .remotes = remotes,
        .places = places,
        .count = place_count,
        .way = way,
        .calls = chempi_secret_create(place_count * sizeof(struct call))};
    char order[4096];
    int rc = p.calls ? check_launcher(way->launcher, err)
                     : chempi_err_set(err, -ENOMEM, "out of memory");

    rc = rc ? rc : make_order(order, sizeof(order), err);
    while (!rc && (p.started < p.count || count_open(&p))) {
        if (p.started < p.count &&
            count_open(&p) < CHEMPI_REMOTE_CALLS) { /* E2 */
            p.calls[p.started].deadline_ns =
                chempi_clock_ns() + way->limit_ms * CHEMPI_NS_PER_MS;
            rc = start(post_of(&p, p.started), way, order, err);
            p.started++;
        } else {
            rc = listen_to(&p, err);
        }
    }
    chempi_secret_destroy(p.calls, place_count * sizeof(*p.calls));
    if (rc)
        chempi_remote_leave(remotes, count);
    return rc;
}

static void await_end(struct chempi_remote *remote, uint64_t deadline_ns)
{
    const uint64_t now_ns = chempi_clock_ns();
    const int pidfd = (int)syscall(SYS_pidfd_open, remote->pid, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0)
        return;
    if (now_ns < deadline_ns)
        (void)poll(&p, 1, (int)((deadline_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
    (void)close(pidfd); /* only waited on */
}

void chempi_remote_leave(struct chempi_remote *remotes, uint32_t count)
{
    const uint64_t deadline_ns =
        chempi_clock_ns() + LEAVE_MS * CHEMPI_NS_PER_MS;

    for (uint32_t i = 0; i < count; i++)
        hang_up(&remotes[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (!remotes[i].pid)
            continue;
        await_end(&remotes[i], deadline_ns);
        if (waitpid(remotes[i].pid, NULL, WNOHANG) == 0) {
            (void)kill(remotes[i].pid, SIGKILL);
            (void)waitpid(remotes[i].pid, NULL, 0);
        }
        remotes[i].pid = 0;
    }
}
