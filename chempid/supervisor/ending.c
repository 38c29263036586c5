/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the job ends at a node, by itself or by order; see P3 to P8 in super.h.
 */
#define _GNU_SOURCE /* signalfd and friends */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/exec_hint.h"
#include "chempid/process/orphans.h"
#include "chempid/supervisor/super.h"
#include "chempid/tree/limits.h"

#define GRACE_S 2.0
#define HOLD_S 0.5         /* before ranks get a signal, for their figures */
#define TELL_S 2.0         /* for ranks that are asked for their figures */
#define TELL_GATEWAY_S 5.0 /* for the gateway, with which nothing is wrong */

/* ---- ends of processes --------------------------------------------------- */

/* The children's ends of the pipe are closed: each has become its program, or
 * has ended. */
static void have_programs(struct chempi_super *s)
{
    s->awaits_programs = false;
    ev_io_stop(s->loop, &s->exec_report);
    chempi_tell_started(s);
}

static struct chempi_rank *find_rank(struct chempi_super *s, pid_t pid)
{
    if (chempi_gateway_is_spared(s, pid))
        return s->gateway;
    for (uint32_t i = 0; i < s->local_size; i++) {
        s->reaped = (s->reaped + 1) % s->local_size; /* most end in order */
        if (s->ranks[s->reaped].pid == pid)
            return &s->ranks[s->reaped];
    }
    return NULL;
}

/* What children said before they ended because exec failed. */
static void read_exec_reports(struct chempi_super *s)
{
    uint32_t report[3];
    ssize_t n;

    while ((n = read(s->exec_fds[0], report, sizeof(report))) ==
           (ssize_t)sizeof(report)) {
        struct chempi_rank *rank;
        char text[CHEMPI_TEXT_MAX];

        if (report[0] >= s->local_size || report[2] >= CHEMPI_EXEC_STEPS)
            continue;
        rank = &s->ranks[report[0]];
        rank->exec_errno = (int)report[1];
        chempi_exec_words(s->spec, rank->world, report[2], rank->exec_errno,
                          text, sizeof(text));
        chempi_tell_ended(rank, CHEMPI_END_START, report[1], text);
    }
    if (n == 0 && s->awaits_programs)
        have_programs(s);
}

/* Who debugs wants programs, not what becomes them; a child that does not get
 * so far keeps nobody from ending the job. */
void chempi_ending_await_programs(struct chempi_super *s)
{
    (void)close(s->exec_fds[1]);
    s->exec_fds[1] = -1;
    s->awaits_programs = true;
    read_exec_reports(s);
}

void chempi_ending_reap(struct chempi_super *s)
{
    int status;
    pid_t pid;

    read_exec_reports(s);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 ||
           (pid < 0 && errno == EINTR)) {
        struct chempi_rank *rank = pid > 0 ? find_rank(s, pid) : NULL;

        /* It has written, or become its program, before it ended: perhaps just
         * now. Of a program that ran that is told first. */
        if (rank &&
            (s->awaits_programs ||
             (WIFEXITED(status) && WEXITSTATUS(status) == CHEMPI_EXEC_STATUS)))
            read_exec_reports(s);
        if (rank && rank == s->gateway)
            chempi_gateway_reap(s, status);
        else if (rank)
            chempi_ranks_reap(rank, status);
    }
    if (s->alive == 0)
        s->is_sweeping = true;
    s->has_children =
        pid == 0 && !(s->is_sweeping && chempi_gateway_is_alone(s)); /* P7 */
    s->has_children &= !s->has_given_up;
    if (s->is_sweeping && s->has_children) {
        (void)chempi_orphans_kill(chempi_gateway_is_spared,
                                  s); /* its failure: P5 remains */
        if (!ev_is_active(&s->sweep))
            ev_timer_start(s->loop, &s->sweep);
    }
    if (!s->has_children) {
        ev_timer_stop(s->loop, &s->sweep);
        chempi_streams_drain(s); /* no writer is left: P2 */
    }
    chempi_tell_done(s);
}

/* ---- the end of the supervisor ------------------------------------------- */

/* status: 0, or an errno that says why it cannot go on. */
_Noreturn void chempi_ending_leave(struct chempi_super *s, int status)
{
    /* What does not end is left to whoever has started us. */
    (void)chempi_orphans_end(NULL, NULL, (unsigned)(CHEMPI_REAP_S * 1000));
    for (uint32_t i = 0; i < s->local_size; i++)
        chempi_ranks_close(&s->ranks[i]);
    if (s->gateway)
        chempi_ranks_close(s->gateway);
    chempi_share_fini(&s->share);
    chempi_bind_fini(&s->bind);
    _exit(status);
}

/* The rest of what goes up has been written. */
static void leave_when_written(struct chempi_link *up)
{
    if (!ev_is_active(&up->out))
        chempi_ending_leave(up->arg, 0);
}

/* P7: the gateway has told, or does not. */
static void end_leave(struct chempi_super *s)
{
    ev_timer_stop(s->loop, &s->grace);
    chempi_stats_collect_send(s);
    s->up.on_written = leave_when_written;
    leave_when_written(&s->up);
}

static void wait_for(struct chempi_super *s, double seconds)
{
    ev_timer_stop(s->loop, &s->grace);
    ev_timer_set(&s->grace, seconds, 0.0);
    ev_timer_start(s->loop, &s->grace);
}

void chempi_ending_take_end(struct chempi_super *s)
{
    if (s->is_leaving)
        return;
    if (!chempi_stats_collect_ask_gateway(s))
        chempi_ending_leave(s, 0);
    s->is_leaving = true;
    wait_for(s, TELL_GATEWAY_S);
}

/* ---- time to act and to tell (P6) ---------------------------------------- */

static bool is_any_caring(const struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].cares && s->ranks[i].pid > 0)
            return true;
    return false;
}

static void end_grace(struct chempi_super *s)
{
    ev_timer_stop(s->loop, &s->grace);
    s->is_sweeping = true;
    chempi_ending_reap(s);
}

static void grace_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_super *s = w->data;

    (void)loop;
    (void)events;
    if (s->is_leaving)
        end_leave(s);
    else
        end_grace(s);
}

static void signal_ranks(struct chempi_super *s, int number)
{
    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].pid > 0)
            (void)kill(-s->ranks[i].pid, number); /* at worst a zombie */
}

static void end_hold(struct chempi_super *s)
{
    const int number = s->signal;

    ev_timer_stop(s->loop, &s->hold);
    s->signal = 0;
    if (number)
        signal_ranks(s, number);
}

static void hold_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    end_hold(w->data);
}

static bool is_deadly(uint32_t number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP ||
           number == SIGQUIT;
}

int chempi_ending_take_signal(struct chempi_super *s, struct chempi_reader *r,
                              struct chempi_err *err)
{
    const uint32_t number = chempi_wire_get_u32(r);

    if (!chempi_wire_is_done(r) || number == 0 || number >= 32)
        return chempi_control_refuse(err, "signal");
    if (!is_deadly(number) || s->signal || s->is_ending) {
        signal_ranks(s, (int)number);
        return 0;
    }
    chempi_stats_collect_ask(s);
    s->was_signalled = true;
    s->signal = (int)number;
    if (chempi_stats_collect_are_due(s))
        ev_timer_start(s->loop, &s->hold);
    else
        end_hold(s);
    return 0;
}

void chempi_ending_care(struct chempi_super *s)
{
    if ((!s->signal && !ev_is_active(&s->grace)) ||
        chempi_stats_collect_are_due(s))
        return;
    if (s->signal)
        end_hold(s);
    if (!ev_is_active(&s->grace))
        return;
    if (s->is_leaving)
        end_leave(s);
    else if (!is_any_caring(s))
        end_grace(s);
}

/* Ends that happened before are still news: take them in first (P2). */
int chempi_ending_take_kill(struct chempi_super *s, struct chempi_reader *r,
                            const struct chempi_frame *frame,
                            struct chempi_err *err)
{
    const uint32_t culprit = chempi_wire_get_u32(r);

    (void)chempi_wire_get_str(r, CHEMPI_TEXT_MAX);
    if (!chempi_wire_is_done(r))
        return chempi_control_refuse(err, "kill");
    if (s->is_ending)
        return 0;
    chempi_ending_reap(s);
    end_hold(s);
    chempi_wait_collect_drop(s);
    s->is_ending = true;
    chempi_stats_collect_ask(s);
    for (uint32_t i = 0; i < s->local_size; i++)
        if (culprit < s->spec->size && s->ranks[i].pid > 0)
            chempi_control_send(&s->ranks[i], CHEMPI_MSG_LOST, frame->data,
                                frame->len);
    if (chempi_stats_collect_are_due(s)) /* P6 */
        wait_for(s, TELL_S);
    else if (culprit < s->spec->size && is_any_caring(s))
        wait_for(s, GRACE_S);
    else
        end_grace(s);
    return 0;
}

/* ---- events -------------------------------------------------------------- */

/* P8: what was killed is traced by others, or waits for a device. */
static void sweep_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_super *s = w->data;

    (void)loop;
    (void)events;
    s->has_given_up = true;
    s->alive = 0;
    for (uint32_t i = 0; i < s->local_size; i++)
        s->ranks[i].pid = 0;
    chempi_ending_reap(s);
    chempi_wait_collect_settle(s);
    chempi_ending_care(s);
}

static void child_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_super *s = w->data;
    struct signalfd_siginfo info;

    (void)loop;
    (void)events;
    while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    chempi_ending_reap(s);
    chempi_wait_collect_settle(s);
    chempi_ending_care(s);
}

static void exec_failed(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    read_exec_reports(w->data);
}

void chempi_ending_watch(struct chempi_super *s)
{
    ev_io_init(&s->child_signal, child_ended, s->signal_fd, EV_READ);
    ev_io_init(&s->exec_report, exec_failed, s->exec_fds[0], EV_READ);
    s->child_signal.data = s;
    s->exec_report.data = s;
    ev_io_start(s->loop, &s->child_signal);
    ev_io_start(s->loop, &s->exec_report);
    ev_timer_init(&s->grace, grace_is_over, GRACE_S, 0.0);
    ev_set_priority(&s->grace, EV_MINPRI); /* first what has been told */
    s->grace.data = s;
    ev_timer_init(&s->hold, hold_is_over, HOLD_S, 0.0);
    ev_set_priority(&s->hold, EV_MINPRI);
    s->hold.data = s;
    ev_timer_init(&s->sweep, sweep_is_over, CHEMPI_REAP_S, 0.0);
    s->sweep.data = s;
}
