/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank's life as its supervisor sees it; see super.h: start, what it asks
 * on its control socket, its end.
 */
#define _GNU_SOURCE /* pipe2, execvpe */
#include "chempid/process/dumps.h"
#include "chempid/supervisor/super.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/job/pattern.h"
#include "chempid/process/cgroup.h"
#include "chempid/tree/budget.h"
#include "common/base/sys.h"

/* The ends of what connects a rank and its supervisor. */
struct wires {
    int control[2]; /* [0] the supervisor's */
    int out[2][2];  /* pipes: [0] read (supervisor), [1] write */
    int in[2];      /* pipe, or both -1 */
};

/* ---- starting ------------------------------------------------------------ */

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd); /* nothing was written to it */
}

static void close_wires(const struct wires *w)
{
    for (int k = 0; k < 2; k++) {
        close_fd(w->control[k]);
        close_fd(w->out[0][k]);
        close_fd(w->out[1][k]);
        close_fd(w->in[k]);
    }
}

static bool gets_input(const struct chempi_rank *rank)
{
    const uint32_t target = rank->super->spec->stdin_rank;

    return target == CHEMPI_STDIN_ALL || target == rank->world;
}

static int make_pipe(int fds[2], int ours)
{
    if (chempi_sys->pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(fds[ours], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

static int make_wires(const struct chempi_rank *rank, struct wires *w,
                      struct chempi_err *err)
{
    int rc = 0;

    *w = (struct wires){{-1, -1}, {{-1, -1}, {-1, -1}}, {-1, -1}};
    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                               w->control) < 0)
        rc = -errno;
    if (!rc)
        rc = make_pipe(w->out[0], 0);
    if (!rc)
        rc = make_pipe(w->out[1], 0);
    if (!rc && gets_input(rank))
        rc = make_pipe(w->in, 1);
    if (!rc)
        return 0;
    close_wires(w);
    return chempi_err_set(
        err, rc, "cannot create its control socket and pipes: %s%s",
        chempi_err_name(rc),
        rc == -EMFILE ? "; raise the limit of open files ('ulimit "
                        "-n', /etc/security/limits.conf) or use "
                        "fewer ranks per node"
                      : "");
}

static void set_number(const char *name, uint32_t value)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", value);
    (void)setenv(name, text, 1); /* the child has memory or exec fails */
}

static void set_list(const char *name, const struct chempi_cpus *cpus)
{
    char text[CHEMPI_CPUS_TEXT_MAX];

    if (chempi_cpus_format(cpus, text, sizeof(text))) /* else: say nothing */
        (void)setenv(name, text, 1);                  /* as above */
}

static void set_variable(const char *assignment)
{
    const char *eq = strchr(assignment, '=');
    char *name;

    if (!eq || eq == assignment)
        return;
    name = strndup(assignment, (size_t)(eq - assignment));
    if (name)
        (void)setenv(name, eq + 1, 1); /* as above */
    free(name);
}

/* Only in the child: the environment of the process is replaced. */
static void set_environment(const struct chempi_rank *rank,
                            const struct chempi_app *app, int control)
{
    const struct chempi_super *s = rank->super;

    environ = s->spec->env;
    for (size_t i = 0; app->env[i]; i++)
        set_variable(app->env[i]);
    set_number(CHEMPI_CONTROL_ENV, (uint32_t)control);
    set_number("CHEMPI_RANK", rank->world);
    set_number("CHEMPI_SIZE", s->spec->size);
    set_number("CHEMPI_LOCAL_RANK", rank->local);
    set_number("CHEMPI_LOCAL_SIZE", s->local_size);
    (void)setenv("CHEMPI_NODE", s->spec->node_names[s->node], 1);
    (void)setenv("CHEMPI_JOB", s->spec->id, 1);
    set_number(CHEMPI_HOST_SIZE_ENV, s->host_procs);
    if (s->bind.is_share)
        set_list(CHEMPI_CPUS_ENV, &s->bind.places[rank->local].cpus);
    if (s->bind.count > 0)
        set_list(CHEMPI_HOST_CPUS_ENV, &s->bind.allowed);
    (void)setenv("CHEMPI_WDIR", app->wdir ? app->wdir : s->spec->cwd, 1);
}

void chempi_ranks_reset_signals(void)
{
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL); /* refused for some: they are default */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void give_up(const struct chempi_rank *rank, uint32_t step)
{
    uint32_t report[3] = {rank->local, (uint32_t)errno, step};

    if (write(rank->super->exec_fds[1], report, sizeof(report)) < 0) {
        /* The supervisor is gone; so is this process. */
    }
    _exit(127);
}

/* On the rank's own error output. */
static void show_binding(const struct chempi_rank *rank, bool is_bound)
{
    const struct chempi_super *s = rank->super;
    struct chempi_cpus cpus;
    char text[CHEMPI_CPUS_TEXT_MAX];

    if (chempi_cpus_get(&cpus))
        return;
    (void)chempi_cpus_format(&cpus, text, sizeof(text)); /* cut: so be it */
    (void)dprintf(2, "rank %u on node %s %s %s\n", rank->world,
                  s->spec->node_names[s->node],
                  is_bound ? "is bound to processors" : "may use processors",
                  text);
}

/* Ranks whose names are the same append to one file; others get new ones. Not
 * to be held up by a pipe that nobody reads. -1: errno says why. */
static int open_file(const struct chempi_rank *rank, const char *pattern)
{
    const struct chempi_spec *spec = rank->super->spec;
    const struct chempi_pattern what = {.rank = rank->world,
                                        .node =
                                            spec->node_names[rank->super->node],
                                        .number = rank->super->node,
                                        .job = spec->id};
    const int fresh = chempi_pattern_has_rank(pattern) ? O_TRUNC : 0;
    char name[4096];
    int fd;

    if (!chempi_pattern_expand(pattern, &what, name, sizeof(name))) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(name,
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY |
                  O_NONBLOCK | fresh,
              0666);
    if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) < 0)
        return -1;
    return fd;
}

/* In the rank's directory, as its user; both streams may have one file. */
static int set_files(const struct chempi_rank *rank)
{
    char *const *files = rank->super->spec->files;
    const bool is_one = files[0] && files[1] && strcmp(files[0], files[1]) == 0;

    for (int i = 0; i < 2; i++) {
        const int fd = !files[i]     ? i + 1
                       : i && is_one ? 1
                                     : open_file(rank, files[i]);

        if (fd < 0 || (fd != i + 1 && dup2(fd, i + 1) < 0))
            return -1;
    }
    return 0;
}

/* The program itself, or what it is wrapped in. */
static void execute(const struct chempi_rank *rank,
                    const struct chempi_app *app)
{
    char **wrap = chempi_spec_wrap(rank->super->spec, rank->world);
    char **words;
    size_t n = 0;
    size_t m = 0;

    if (!wrap) {
        (void)execvp(app->argv[0], app->argv);
        return;
    }
    while (wrap[n])
        n++;
    while (app->argv[m])
        m++;
    words = calloc(n + m + 1, sizeof(*words));
    if (!words)
        return;
    memcpy(words, wrap, n * sizeof(*words));
    memcpy(words + n, app->argv, m * sizeof(*words));
    (void)execvp(words[0], words);
}

/* Whether the job may begin is not known yet (chempi_spec_is_held()). */
static void wait_at_gate(const struct chempi_super *s)
{
    char byte;

    if (s->gate_fds[0] < 0)
        return;
    (void)close(s->gate_fds[1]); /* the supervisor's */
    while (read(s->gate_fds[0], &byte, 1) < 0 && errno == EINTR)
        ;
}

_Noreturn static void become(const struct chempi_rank *rank,
                             const struct wires *w, pid_t parent)
{
    const struct chempi_super *s = rank->super;
    const struct chempi_app *app = chempi_spec_app(s->spec, rank->world);
    const char *dir = app->wdir ? app->wdir : s->spec->cwd;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        give_up(rank, 0);
    if (getppid() != parent) /* it died before the prctl */
        _exit(127);
    (void)setpgid(0, 0);
    wait_at_gate(s);
    if (dup2(w->in[0] >= 0 ? w->in[0] : s->null_fd, 0) < 0 ||
        dup2(w->out[0][1], 1) < 0 || dup2(w->out[1][1], 2) < 0 ||
        fcntl(w->control[1], F_SETFD, 0) < 0)
        give_up(rank, 0);
    (void)setrlimit(RLIMIT_NOFILE, &s->files);
    chempi_shell_wear(&s->spec->shell);
    errno = -chempi_bind_self(&s->bind, rank->local);
    if (errno && !s->bind.is_share) /* what nobody asked for may fail */
        give_up(rank, 3);
    if (s->spec->shows_binding)
        show_binding(rank, s->bind.count > 0 && !errno);
    if (dir && chdir(dir) < 0)
        give_up(rank, 1);
    if (set_files(rank) < 0)
        give_up(rank, 4);
    set_environment(rank, app, w->control[1]);
    chempi_ranks_reset_signals();
    chempi_dumps_allow();
    execute(rank, app);
    give_up(rank, 2);
}

/* A gateway forwards what it cannot read. */
static void write_rank_key(const struct chempi_rank *rank,
                           struct chempi_writer *w)
{
    static const uint8_t zeros[CHEMPI_JOB_SECRET_BYTES];
    const struct chempi_spec *spec = rank->super->spec;
    const bool is_rank = rank->world < spec->size;

    chempi_wire_put_u8(w, (is_rank && spec->is_secure ? CHEMPI_JOB_SECURE : 0) |
                              (spec->survives ? CHEMPI_JOB_SURVIVES : 0));
    chempi_wire_put_raw(w, is_rank ? spec->rank_key : zeros, sizeof(zeros));
}

static void write_welcome(const struct chempi_rank *rank,
                          struct chempi_writer *w)
{
    const struct chempi_super *s = rank->super;
    const struct chempi_spec *spec = s->spec;
    const struct chempi_app *app = chempi_spec_app(spec, rank->world);
    const uint32_t local_size = s->local_size + (s->gateway != NULL);

    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_str(w, spec->id);
    chempi_wire_put_raw(w, spec->secret, sizeof(spec->secret));
    write_rank_key(rank, w);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_u32(w, spec->size);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, spec->node_count);
    for (uint32_t i = 0; i < spec->node_count; i++)
        chempi_wire_put_str(w, spec->node_names[i]);
    for (uint32_t i = 0; i < spec->size; i++)
        chempi_wire_put_u32(w, spec->node_of_rank[i]);
    chempi_wire_put_u32(w, spec->gateway_count);
    for (uint32_t i = spec->size; i < chempi_spec_procs(spec); i++)
        chempi_wire_put_u32(w, spec->node_of_rank[i]);
    chempi_wire_put_u32(w, local_size);
    chempi_wire_put_u32(w, (uint32_t)(app - spec->apps));
    chempi_wire_put_u32(w, spec->universe_size);
    chempi_wire_put_u32(w, spec->want_stats);
    chempi_wire_put_u32(w, (uint32_t)s->share.region_fd);
    chempi_wire_put_u32(w, (uint32_t)s->share.table_fd);
    for (uint32_t i = 0; i < local_size; i++)
        chempi_wire_put_u32(w, (uint32_t)s->share.wake_fds[i]);
    chempi_wire_put_u64(w, spec->memory_share);
}

/* ---- messages ------------------------------------------------------------ */

void chempi_ranks_send(struct chempi_rank *rank, uint16_t type,
                       const void *data, size_t len)
{
    if (!rank->link.is_open || rank->is_held)
        return;
    chempi_link_send(&rank->link, type, 0, data, len);
    chempi_share_wake(&rank->super->share, rank->local);
}

void chempi_ranks_share(struct chempi_rank *rank, const uint8_t *share)
{
    if (rank->link.is_open && chempi_link_queued(&rank->link) > 0) {
        memcpy(rank->share_bytes, share, sizeof(rank->share_bytes));
        rank->owes_share = true;
        return;
    }
    chempi_ranks_send(rank, CHEMPI_MSG_BUDGET, share, CHEMPI_SHARE_BYTES);
}

/* What was queued has been written later on: wake again. */
static void written(struct chempi_link *link)
{
    struct chempi_rank *rank = link->arg;

    if (rank->owes_share && chempi_link_queued(link) == 0) {
        rank->owes_share = false;
        chempi_ranks_share(rank, rank->share_bytes);
        return;
    }
    chempi_share_wake(&rank->super->share, rank->local);
}

static int bad(struct chempi_err *err, const char *what)
{
    return chempi_err_set(err, -EBADMSG, "a malformed message (%s)", what);
}

static int take_put(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);
    size_t len;
    const uint8_t *value = chempi_wire_get_blob(r, CHEMPI_KVS_VALUE_MAX, &len);

    if (!chempi_wire_is_done(r) || !*key)
        return bad(err, "put");
    return chempi_super_put(rank, key, value, len, err);
}

static int take_get(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    const uint32_t owner = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);

    if (!chempi_wire_is_done(r) || !*key ||
        owner >= chempi_spec_procs(rank->super->spec))
        return bad(err, "get");
    return chempi_super_get(rank, owner, key, err);
}

static int take_abort(struct chempi_rank *rank, struct chempi_reader *r,
                      struct chempi_err *err)
{
    const uint32_t code = chempi_wire_get_u32(r);
    const char *text = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);

    if (!chempi_wire_is_done(r))
        return bad(err, "abort");
    chempi_ranks_judge(rank, CHEMPI_END_ABORT, code, text);
    return 0;
}

/* The launcher tells what is cut off; the end of this rank follows. */
static int take_cut(struct chempi_rank *rank, struct chempi_reader *r,
                    struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    const uint32_t proc = chempi_wire_get_u32(r);
    const char *why = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);
    struct chempi_writer *w;

    if (!chempi_wire_is_done(r) || rank == s->gateway || proc < s->spec->size ||
        proc >= chempi_spec_procs(s->spec))
        return bad(err, "a way that is cut");
    if (s->is_ending)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_GATEWAY, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, proc);
    chempi_wire_put_u8(w, CHEMPI_FALL_CUT);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_str(w, why);
    chempi_link_end(&s->up);
    return 0;
}

/* For the daemon, which divides the node's memory; it judges the numbers. */
static int take_memory(struct chempi_rank *rank,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (frame->len != CHEMPI_MEMORY_BYTES)
        return bad(err, "report of memory");
    if (s->spec->memory_share == CHEMPI_BUDGET_NONE)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_HOLDS, s->spec->job);
    chempi_wire_put_u32(w, rank->local);
    chempi_wire_put_raw(w, frame->data, frame->len);
    chempi_link_end(&s->up);
    return 0;
}

/* In turns, and as often as the process likes (sessions). */
static int take_phase(struct chempi_rank *rank, uint16_t type,
                      const struct chempi_reader *r, struct chempi_err *err)
{
    const bool is_init = type == CHEMPI_MSG_INIT;

    if (!chempi_wire_is_done(r) ||
        is_init == (rank->phase == CHEMPI_PHASE_INITIALIZED))
        return bad(err, "initialized or finalized out of order");
    if (is_init)
        rank->has_told = false;
    rank->phase = is_init ? CHEMPI_PHASE_INITIALIZED : CHEMPI_PHASE_FINALIZED;
    if (!is_init)
        chempi_seek_settle(rank->super); /* it will not say where it waits */
    return 0;
}

static int take_care(struct chempi_rank *rank, struct chempi_reader *r,
                     struct chempi_err *err)
{
    const uint8_t cares = chempi_wire_get_u8(r);

    if (!chempi_wire_is_done(r) || cares > 1)
        return bad(err, "care");
    rank->cares = cares != 0;
    chempi_super_care(rank->super);
    return 0;
}

static int take(struct chempi_link *link, const struct chempi_frame *frame,
                struct chempi_err *err)
{
    struct chempi_rank *rank = link->arg;
    struct chempi_reader r;

    chempi_wire_read(&r, frame->data, frame->len);
    if (rank == rank->super->gateway &&
        (frame->type == CHEMPI_MSG_FENCE || frame->type == CHEMPI_MSG_INIT ||
         frame->type == CHEMPI_MSG_FINAL))
        return bad(err, "a gateway's, as if it were a rank");
    switch (frame->type) {
    case CHEMPI_MSG_HELLO:
        if (chempi_wire_get_u32(&r) != CHEMPI_CONTROL_VERSION)
            return bad(err, "version of the library");
        (void)chempi_wire_get_u32(&r); /* its process id: for traces only */
        return chempi_wire_is_done(&r) ? 0 : bad(err, "hello");
    case CHEMPI_MSG_PUT:
        return take_put(rank, &r, err);
    case CHEMPI_MSG_GET:
        return take_get(rank, &r, err);
    case CHEMPI_MSG_FENCE:
        if (chempi_wire_get_u64(&r) != rank->fence + 1 ||
            !chempi_wire_is_done(&r))
            return bad(err, "fence");
        rank->fence++;
        chempi_super_fence(rank->super);
        return 0;
    case CHEMPI_MSG_INIT:
    case CHEMPI_MSG_FINAL:
        return take_phase(rank, frame->type, &r, err);
    case CHEMPI_MSG_ABORT:
        return take_abort(rank, &r, err);
    case CHEMPI_MSG_CUT:
        return take_cut(rank, &r, err);
    case CHEMPI_MSG_HERE:
        return chempi_seek_take(rank, &r, err);
    case CHEMPI_MSG_REPORT:
        return chempi_figures_take(rank, &r, err);
    case CHEMPI_MSG_MEMORY:
        return take_memory(rank, frame, err);
    case CHEMPI_MSG_WORLD:
        if (!chempi_wire_is_done(&r))
            return bad(err, "world");
        rank->needs_world = true;
        rank->has_world = true;
        chempi_super_miss(rank->super);
        return 0;
    case CHEMPI_MSG_UNWORLD:
        if (!chempi_wire_is_done(&r) || !rank->has_world)
            return bad(err, "end of the world");
        rank->has_world = false;
        return 0;
    case CHEMPI_MSG_CARE:
        return take_care(rank, &r, err);
    default:
        return bad(err, "unknown type");
    }
}

/* The plain end of the stream is no news: its process ends or has ended. */
static void link_lost(struct chempi_link *link, int code,
                      const struct chempi_err *err)
{
    struct chempi_rank *rank = link->arg;
    char text[CHEMPI_TEXT_MAX];

    if (code == -EPIPE) {
        chempi_link_close(link);
        return;
    }
    if (code == -EBADMSG || code == -EMSGSIZE) {
        chempi_ranks_judge(rank, CHEMPI_END_PROTOCOL, 0, err->text);
    } else {
        (void)snprintf(text, sizeof(text),
                       "its supervisor cannot serve it: %.900s", err->text);
        chempi_ranks_judge(rank, CHEMPI_END_ABORT, 1, text);
    }
    /* All is said: it shall not complain of the closed socket. */
    if (rank->pid > 0)
        (void)kill(-rank->pid, SIGKILL);
    chempi_link_close(link);
}

/* ---- the end ------------------------------------------------------------- */

void chempi_ranks_judge(struct chempi_rank *rank, enum chempi_end how,
                        uint32_t code, const char *text)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (rank == s->gateway) {
        chempi_gateway_end(s, true, text);
        return;
    }
    if (rank->is_judged || s->is_ending)
        return;
    rank->is_judged = true; /* P1 */
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ENDED, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, rank->world);
    chempi_wire_put_u32(w, (uint32_t)rank->pid);
    chempi_wire_put_u8(w, (uint8_t)how);
    chempi_wire_put_u32(w, code);
    chempi_wire_put_str(w, chempi_spec_app(s->spec, rank->world)->argv[0]);
    chempi_wire_put_str(w, text);
    chempi_link_end(&s->up);
}

void chempi_ranks_reap(struct chempi_rank *rank, int status)
{
    char why[160];
    uint32_t code;

    if (rank->link.is_open)
        chempi_link_drain(&rank->link); /* P2 */
    if (rank->exec_errno) {
        /* already judged, with what its child said */
    } else if (WIFSIGNALED(status)) {
        chempi_cgroup_explain(rank->super->spec->cgroup, WTERMSIG(status), why,
                              sizeof(why));
        chempi_ranks_judge(rank, CHEMPI_END_SIGNAL, (uint32_t)WTERMSIG(status),
                           why);
    } else {
        code = (uint32_t)WEXITSTATUS(status);
        if (rank->phase == CHEMPI_PHASE_INITIALIZED)
            chempi_ranks_judge(
                rank, rank->has_world ? CHEMPI_END_EARLY : CHEMPI_END_SESSION,
                code, "");
        else if (code)
            chempi_ranks_judge(rank,
                               rank->phase == CHEMPI_PHASE_FRESH
                                   ? CHEMPI_END_EXIT
                                   : CHEMPI_END_LATE,
                               code, "");
        else if (rank->phase == CHEMPI_PHASE_FRESH)
            chempi_super_absent(rank);
    }
    rank->pid = 0;
    rank->super->alive--;
    if (rank->super->spec->survives)
        chempi_super_fence(rank->super);
}

void chempi_ranks_close(struct chempi_rank *rank)
{
    chempi_link_close(&rank->link);
    chempi_streams_close(&rank->streams[0]);
    chempi_streams_close(&rank->streams[1]);
    chempi_streams_close_feed(&rank->feed);
}

static void welcome(struct chempi_rank *rank)
{
    struct chempi_writer *w =
        chempi_link_begin(&rank->link, CHEMPI_MSG_WELCOME, 0);

    write_welcome(rank, w);
    chempi_link_end(&rank->link);
}

void chempi_ranks_connect(struct chempi_rank *rank, int fd)
{
    chempi_link_open(&rank->link, rank->super->loop, fd, CHEMPI_RANK_IN_MAX,
                     CHEMPI_QUEUE_MAX);
    rank->link.on_frame = take;
    rank->link.on_lost = link_lost;
    rank->link.on_written = written;
    rank->link.arg = rank;
    rank->is_held = rank->super->spec->is_debugged;
    if (rank->is_held)
        chempi_link_send(&rank->link, CHEMPI_MSG_HOLD, 0, NULL, 0);
    else
        welcome(rank);
}

void chempi_ranks_begin(struct chempi_super *s)
{
    const uint32_t count = s->local_size + (s->gateway != NULL);

    close_fd(s->gate_fds[1]);
    s->gate_fds[1] = -1;
    for (uint32_t i = 0; i < count; i++) {
        struct chempi_rank *rank = &s->ranks[i];

        if (!rank->is_held)
            continue;
        rank->is_held = false;
        if (rank->link.is_open)
            welcome(rank);
    }
}

static void connect_wires(struct chempi_rank *rank, const struct wires *w)
{
    struct chempi_super *s = rank->super;

    close_fd(w->control[1]);
    close_fd(w->out[0][1]);
    close_fd(w->out[1][1]);
    close_fd(w->in[0]);
    chempi_streams_open(s, &rank->streams[0], w->out[0][0], rank->world, 1);
    chempi_streams_open(s, &rank->streams[1], w->out[1][0], rank->world, 2);
    chempi_streams_open_feed(s, &rank->feed, w->in[1]);
    chempi_ranks_connect(rank, w->control[0]);
}

int chempi_ranks_start(struct chempi_super *s, struct chempi_rank *rank,
                       struct chempi_err *err)
{
    const pid_t self = getpid();
    struct wires w;
    pid_t pid;
    int rc = make_wires(rank, &w, err);

    if (rc)
        return rc;
    pid = chempi_sys->fork();
    if (pid == 0)
        become(rank, &w, self);
    if (pid < 0) {
        rc = -errno;
        close_wires(&w);
        return chempi_err_set(err, rc,
                              "cannot fork: %s; raise the limit of processes "
                              "('ulimit -u') or the pids limit of the control "
                              "group, or use fewer ranks",
                              chempi_err_name(rc));
    }
    (void)setpgid(pid, pid); /* whoever is first; fails after exec */
    rank->pid = pid;
    s->alive++;
    connect_wires(rank, &w);
    return 0;
}
