/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway of a job on one node, as its supervisor sees it: a child like a
 * rank, with a control socket and no standard streams but, in a private job,
 * the launcher's error output. A daemon's log is not for users' processes.
 * Its end does not end the job by itself; the ranks are told, and those that
 * have another way go on.
 */
#define _GNU_SOURCE /* strsignal */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/dumps.h"
#include "chempid/process/exec_hint.h"
#include "chempid/process/orphans.h"
#include "chempid/supervisor/super.h"
#include "common/base/sys.h"
#include "common/host/beside.h"

#define PROGRAM "chempi-gateway"

/* What stands behind its name is for people who look at processes. */
static void execute(const struct chempi_super *s)
{
    char name[] = PROGRAM;
    char job[] = "--job";
    char node[] = "--node";
    char id[CHEMPI_JOB_ID_MAX];
    char *argv[] = {name, job, id, node, s->spec->node_names[s->node], NULL};

    chempi_dumps_allow();
    memcpy(id, s->spec->id, sizeof(id));
    chempi_beside_execute(PROGRAM, argv);
}

_Noreturn static void become(const struct chempi_super *s, int control,
                             pid_t parent)
{
    char number[16];

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        fcntl(control, F_SETFD, 0) < 0 ||
        (s->spec->shell.is_known && dup2(s->null_fd, STDERR_FILENO) < 0))
        _exit(CHEMPI_EXEC_STATUS);
    (void)setpgid(0, 0);
    chempi_shell_wear(&s->spec->shell);
    environ = s->spec->env;
    (void)snprintf(number, sizeof(number), "%d", control);
    (void)setenv(CHEMPI_CONTROL_ENV, number, 1); /* else it says so */
    chempi_ranks_reset_signals();
    execute(s);
    _exit(CHEMPI_EXEC_STATUS);
}

/* The daemon, if there is one, shows its process. */
static void tell_pid(struct chempi_super *s)
{
    struct chempi_writer *w =
        chempi_link_begin(&s->up, CHEMPI_MSG_RUNS, s->spec->job);

    chempi_wire_put_u32(w, (uint32_t)s->gateway->pid);
    chempi_link_end(&s->up);
}

int chempi_gateway_start(struct chempi_super *s, struct chempi_err *err)
{
    const pid_t self = getpid();
    int fds[2];
    int rc = 0;
    pid_t pid;

    if (!s->gateway)
        return 0;
    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return chempi_err_set(err, -errno,
                              "cannot create the gateway's control socket: %s",
                              chempi_err_name(errno));
    pid = chempi_sys->fork();
    if (pid == 0)
        become(s, fds[1], self);
    if (pid < 0)
        rc = chempi_err_set(err, -errno, "cannot fork for the gateway: %s",
                            chempi_err_name(errno));
    (void)close(fds[1]); /* the child's end */
    if (rc) {
        (void)close(fds[0]); /* nothing was sent */
        return rc;
    }
    s->gateway->pid = pid;
    chempi_control_connect(s->gateway, fds[0]);
    tell_pid(s);
    return 0;
}

/* ---- the end ------------------------------------------------------------- */

bool chempi_gateway_is_spared(void *super, pid_t pid)
{
    const struct chempi_super *s = super;

    return s->gateway && s->gateway->pid == pid;
}

bool chempi_gateway_is_alone(struct chempi_super *s)
{
    pid_t *list;
    size_t count;
    bool is_alone;

    if (!s->gateway || !s->gateway->pid || chempi_orphans_list(&list, &count))
        return false;
    is_alone = count == 1 && list[0] == s->gateway->pid;
    free(list);
    return is_alone;
}

void chempi_gateway_reap(struct chempi_super *s, int status)
{
    const bool is_missing =
        WIFEXITED(status) && WEXITSTATUS(status) == CHEMPI_EXEC_STATUS;
    const char *name = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "";
    char text[CHEMPI_TEXT_MAX];

    if (s->gateway->link.is_open)
        chempi_link_drain(&s->gateway->link);
    if (is_missing)
        (void)snprintf(text, sizeof(text),
                       "the program " PROGRAM " cannot be executed");
    else if (WIFSIGNALED(status))
        (void)snprintf(text, sizeof(text), "killed by signal %d (%.60s)",
                       WTERMSIG(status), name ? name : "?");
    else
        (void)snprintf(text, sizeof(text), "it exited with code %d",
                       WEXITSTATUS(status));
    s->gateway->pid = 0;
    tell_pid(s);
    chempi_tell_gateway(s, is_missing, text);
}
