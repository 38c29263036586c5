/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a rank as its supervisor sees them; super.h. */
#define _GNU_SOURCE /* pipe2, execvpe */
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
#include "chempid/process/dumps.h"
#include "chempid/process/exec_hint.h"
#include "chempid/supervisor/super.h"
#include "common/base/file.h"
#include "common/base/sys.h"

/* The ends of what connects a rank and its supervisor. */
struct wires {
    int control[2]; /* [0] the supervisor's */
    int out[2][2];  /* pipes: [0] read (supervisor), [1] write */
    int in[2];      /* pipe, or both -1 */
};

/* ---- starting ------------------------------------------------------------ */

static void close_wires(const struct wires *w)
{
    for (int k = 0; k < 2; k++) {
        chempi_file_close(w->control[k]);
        chempi_file_close(w->out[0][k]);
        chempi_file_close(w->out[1][k]);
        chempi_file_close(w->in[k]);
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

_Noreturn static void give_up(const struct chempi_rank *rank,
                              enum chempi_exec_step step)
{
    uint32_t report[3] = {rank->local, (uint32_t)errno, step};

    if (write(rank->super->exec_fds[1], report, sizeof(report)) < 0) {
        /* The supervisor is gone; so is this process. */
    }
    _exit(CHEMPI_EXEC_STATUS);
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
static int open_file(const struct chempi_rank *rank, int stream)
{
    const struct chempi_spec *spec = rank->super->spec;
    const int fresh =
        chempi_pattern_has_rank(spec->files[stream]) ? O_TRUNC : 0;
    char name[4096];
    int fd;

    if (!chempi_exec_file(spec, rank->world, stream, name, sizeof(name))) {
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
static void set_files(const struct chempi_rank *rank)
{
    char *const *files = rank->super->spec->files;
    const bool is_one = files[0] && files[1] && strcmp(files[0], files[1]) == 0;

    for (int i = 0; i < 2; i++) {
        const int fd = !files[i] ? i + 1 : i && is_one ? 1 : open_file(rank, i);

        if (fd < 0 || (fd != i + 1 && dup2(fd, i + 1) < 0))
            give_up(rank, i ? CHEMPI_EXEC_ERR : CHEMPI_EXEC_OUT);
    }
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
        give_up(rank, CHEMPI_EXEC_SETUP);
    if (getppid() != parent) /* it died before the prctl */
        _exit(CHEMPI_EXEC_STATUS);
    (void)setpgid(0, 0);
    wait_at_gate(s);
    if (dup2(w->in[0] >= 0 ? w->in[0] : s->null_fd, 0) < 0 ||
        dup2(w->out[0][1], 1) < 0 || dup2(w->out[1][1], 2) < 0 ||
        fcntl(w->control[1], F_SETFD, 0) < 0)
        give_up(rank, CHEMPI_EXEC_SETUP);
    (void)setrlimit(RLIMIT_NOFILE, &s->files);
    chempi_shell_wear(&s->spec->shell);
    errno = -chempi_bind_self(&s->bind, rank->local);
    if (errno && !s->bind.is_share) /* what nobody asked for may fail */
        give_up(rank, CHEMPI_EXEC_BIND);
    if (s->spec->shows_binding)
        show_binding(rank, s->bind.count > 0 && !errno);
    if (dir && chdir(dir) < 0)
        give_up(rank, CHEMPI_EXEC_WDIR);
    set_files(rank);
    set_environment(rank, app, w->control[1]);
    chempi_ranks_reset_signals();
    chempi_dumps_allow();
    execute(rank, app);
    give_up(rank, CHEMPI_EXEC_PROGRAM);
}

static void connect_wires(struct chempi_rank *rank, const struct wires *w)
{
    struct chempi_super *s = rank->super;

    chempi_file_close(w->control[1]);
    chempi_file_close(w->out[0][1]);
    chempi_file_close(w->out[1][1]);
    chempi_file_close(w->in[0]);
    chempi_streams_open(s, &rank->streams[0], w->out[0][0], rank->world, 1);
    chempi_streams_open(s, &rank->streams[1], w->out[1][0], rank->world, 2);
    chempi_streams_open_feed(s, &rank->feed, w->in[1]);
    chempi_control_connect(rank, w->control[0]);
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

/* ---- the end ------------------------------------------------------------- */

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
        chempi_tell_ended(rank, CHEMPI_END_SIGNAL, (uint32_t)WTERMSIG(status),
                          why);
    } else {
        code = (uint32_t)WEXITSTATUS(status);
        if (rank->phase == CHEMPI_PHASE_INITIALIZED)
            chempi_tell_ended(
                rank, rank->has_world ? CHEMPI_END_EARLY : CHEMPI_END_SESSION,
                code, "");
        else if (code)
            chempi_tell_ended(rank,
                              rank->phase == CHEMPI_PHASE_FRESH
                                  ? CHEMPI_END_EXIT
                                  : CHEMPI_END_LATE,
                              code, "");
        else if (rank->phase == CHEMPI_PHASE_FRESH)
            chempi_tell_absent(rank);
    }
    rank->pid = 0;
    rank->super->alive--;
    if (rank->super->spec->survives)
        chempi_keys_fence(rank->super);
}

void chempi_ranks_close(struct chempi_rank *rank)
{
    chempi_link_close(&rank->link);
    chempi_streams_close(&rank->streams[0]);
    chempi_streams_close(&rank->streams[1]);
    chempi_streams_close_feed(&rank->feed);
}
