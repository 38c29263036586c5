/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a rank as its supervisor sees them; super.h. */
#define _GNU_SOURCE /* pipe2, close_range */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/job/pattern.h"
#include "chempid/process/birth.h"
#include "chempid/process/cgroup.h"
#include "chempid/process/dumps.h"
#include "chempid/process/exec_hint.h"
#include "chempid/supervisor/super.h"
#include "common/base/sys.h"
#include "common/fd/file.h"

/* Numbers between the descriptors that ranks need and the supervisor's ends of
 * what connects it with them: room for a rank's ends. */
#define WIRES_ROOM 16
/* After which time without a word from a child it may have been killed, ms. */
#define PART_MS 10

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

/* Our end goes where ranks need none: see part(). */
static void lift(const struct chempi_rank *rank, int *fd)
{
    const int from = rank->super->wires_from;
    const int high = from > 0 ? fcntl(*fd, F_DUPFD_CLOEXEC, from) : -1;

    if (high < 0)
        return;       /* it can stay */
    (void)close(*fd); /* the other number is open */
    *fd = high;
}

static int make_pipe(const struct chempi_rank *rank, int fds[2], int ours)
{
    if (chempi_sys->pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    lift(rank, &fds[ours]);
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
    else
        lift(rank, &w->control[0]);
    if (!rc)
        rc = make_pipe(rank, w->out[0], 0);
    if (!rc)
        rc = make_pipe(rank, w->out[1], 0);
    if (!rc && gets_input(rank))
        rc = make_pipe(rank, w->in, 1);
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

/*
 * A child with a table of its own has a copy of every descriptor of the other
 * ranks' wires, several for each, and its exec closes them one by one: that
 * took more time than all else when there were a thousand. So it is born with
 * the supervisor's table, and parts from it without what lies above its own;
 * until then its own ends must stay open there.
 */
static bool can_part(const struct chempi_super *s, const struct wires *w)
{
    return s->wires_from > 0 && w->control[1] < s->wires_from &&
           w->out[0][1] < s->wires_from && w->out[1][1] < s->wires_from &&
           w->in[0] < s->wires_from;
}

/* In the child. */
static int part(const struct chempi_super *s)
{
    const uint64_t one = 1;

    if (close_range((unsigned)s->wires_from, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        return -1;
    return chempi_file_write_all(s->parted_fd, &one, sizeof(one));
}

/* In the supervisor; a child that has ended shares nothing any more. */
static void await_parting(const struct chempi_super *s, pid_t pid)
{
    struct pollfd word = {.fd = s->parted_fd, .events = POLLIN};
    siginfo_t end = {0};
    uint64_t one;

    while (poll(&word, 1, PART_MS) <= 0) {
        if (waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            end.si_pid == pid)
            break;
    }
    /* One that has ended has left no word. */
    (void)chempi_file_read_all(s->parted_fd, &one, sizeof(one));
}

static pid_t give_birth(struct chempi_super *s, bool *is_shared)
{
    pid_t pid;

    if (*is_shared) {
        pid = chempi_birth_clone(CLONE_FILES, -1);
        if (pid > 0)
            await_parting(s, pid);
        if (pid >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
            return pid;
        s->wires_from = 0; /* not here */
        *is_shared = false;
    }
    return chempi_sys->fork();
}

_Noreturn static void become(const struct chempi_rank *rank,
                             const struct wires *w, pid_t parent,
                             bool is_shared)
{
    const struct chempi_super *s = rank->super;
    const struct chempi_app *app = chempi_spec_app(s->spec, rank->world);
    const char *dir = app->wdir ? app->wdir : s->spec->cwd;

    if (is_shared && part(s) < 0)
        give_up(rank, CHEMPI_EXEC_SETUP);
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

/* Where the ranks' wires end: above all that a rank may need. */
static int highest(const struct chempi_super *s)
{
    const struct chempi_share *share = &s->share;
    const int own[] = {s->null_fd,      s->exec_fds[1],  s->gate_fds[0],
                       s->gate_fds[1],  s->parted_fd,    share->region_fd,
                       share->table_fd, share->places_fd};
    int high = STDERR_FILENO;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(own); i++)
        high = own[i] > high ? own[i] : high;
    for (uint32_t i = 0; i < share->local_size; i++)
        high = share->wake_fds[i] > high ? share->wake_fds[i] : high;
    return high;
}

void chempi_ranks_prepare(struct chempi_super *s)
{
    if (close_range(~0u, ~0u, 0) < 0) /* older kernels have no such call */
        return;
    s->parted_fd = chempi_sys->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->parted_fd >= 0)
        s->wires_from = highest(s) + WIRES_ROOM;
}

int chempi_ranks_start(struct chempi_super *s, struct chempi_rank *rank,
                       struct chempi_err *err)
{
    const struct chempi_rank copy = *rank; /* children have no s->ranks */
    const pid_t self = getpid();
    struct wires w;
    bool is_shared;
    pid_t pid;
    int rc = make_wires(rank, &w, err);

    if (rc)
        return rc;
    is_shared = can_part(s, &w);
    pid = give_birth(s, &is_shared);
    if (pid == 0)
        become(&copy, &w, self, is_shared);
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
    /* First: who hears of the end may want the names that it had. */
    chempi_root_tell_ended(rank);
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
        if (rank->phase == CHEMPI_PHASE_FINALIZED) /* a child has its socket */
            chempi_keys_leave(rank);
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
