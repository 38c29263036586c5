/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor of a job's ranks on one node; invariants in super.h. */
#define _GNU_SOURCE /* closefrom, setgroups */
#include "chempid/supervisor/super.h"
#include "chempid/process/exec_hint.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/process/become.h"
#include "chempid/process/cgroup.h"
#include "chempid/process/orphans.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"

#define UP_FD 3 /* where the link upwards sits */
#define GRACE_S 0.5
#define HOLD_S 0.5         /* before ranks get a signal, for their figures */
#define TELL_S 2.0         /* for ranks that are asked for their figures */
#define TELL_GATEWAY_S 5.0 /* for the gateway, with which nothing is wrong */
#define STEP_EXECUTE 2u    /* of what children report */

/* ---- keys and fences ----------------------------------------------------- */

/* An answer that cannot be sent breaks its link, and so ends the job. */
static void serve(void *arg, const struct chempi_kvs_waiter *waiter,
                  const struct chempi_kvs_entry *e)
{
    struct chempi_super *s = arg;
    struct chempi_link *to =
        waiter->is_node ? &s->up : &s->ranks[waiter->index].link;
    struct chempi_writer *w;

    if (!to->is_open)
        return;
    w = waiter->is_node ? chempi_link_begin(to, CHEMPI_MSG_ANSWER, s->spec->job)
                        : chempi_link_begin(to, CHEMPI_MSG_GOT, 0);
    if (waiter->is_node)
        chempi_wire_put_u32(w, waiter->index);
    chempi_wire_put_u32(w, e->rank);
    chempi_wire_put_str(w, e->key);
    chempi_wire_put_blob(w, e->value, e->len);
    chempi_link_end(to);
    if (!waiter->is_node)
        chempi_share_wake(&s->share, waiter->index);
}

int chempi_super_put(struct chempi_rank *rank, const char *key,
                     const void *value, size_t len, struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    struct chempi_kvs_entry *e =
        chempi_kvs_entry(&s->kvs, rank->world, key, true);

    if (!e)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (!e->has_value && ++rank->keys > CHEMPI_RANK_KEYS_MAX)
        return chempi_err_set(err, -ENOBUFS,
                              "no room for key %s (limit: %u keys)", key,
                              CHEMPI_RANK_KEYS_MAX);
    if (chempi_kvs_set(&s->kvs, e, value, len, serve, s))
        return chempi_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

/* Serve the waiter now or when the value comes; ask its owner's node once. */
static int look_up(struct chempi_super *s, uint32_t owner, const char *key,
                   struct chempi_kvs_waiter waiter, struct chempi_err *err)
{
    const uint32_t home = s->spec->node_of_rank[owner];
    struct chempi_kvs_entry *e =
        chempi_kvs_entry(&s->kvs, owner, key, home == s->node);
    bool is_first;
    struct chempi_writer *w;

    if (!e)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (e->has_value) {
        serve(s, &waiter, e);
        return 0;
    }
    is_first = e->waiter_count == 0;
    if (chempi_kvs_wait(&s->kvs, e, waiter))
        return chempi_err_set(err, -ENOBUFS,
                              "too many questions for keys that nobody has "
                              "published (limit: %u)",
                              CHEMPI_RANK_GETS_MAX);
    if (home == s->node || !is_first)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ASK, s->spec->job);
    chempi_wire_put_u32(w, home);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, owner);
    chempi_wire_put_str(w, key);
    chempi_link_end(&s->up);
    return 0;
}

int chempi_super_get(struct chempi_rank *rank, uint32_t owner, const char *key,
                     struct chempi_err *err)
{
    return look_up(rank->super, owner, key,
                   (struct chempi_kvs_waiter){.index = rank->local}, err);
}

static void enter(struct chempi_super *s)
{
    struct chempi_writer *w =
        chempi_link_begin(&s->up, CHEMPI_MSG_ENTERED, s->spec->job);

    chempi_wire_put_u64(w, ++s->fence);
    chempi_link_end(&s->up);
}

/* Fences wait for it. */
static bool is_missed(const struct chempi_super *s, const struct chempi_rank *r)
{
    return r->pid > 0 || !s->spec->survives;
}

static bool is_nobody_here(const struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_missed(s, &s->ranks[i]))
            return false;
    return s->spec->node_count > 1;
}

static void release(struct chempi_super *s, uint64_t fence)
{
    uint8_t data[8];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(fence >> (8 * i));
    s->released = fence;
    chempi_kvs_forget(&s->kvs);
    for (uint32_t i = 0; i < s->local_size; i++)
        chempi_ranks_send(&s->ranks[i], CHEMPI_MSG_FENCED, data, sizeof(data));
    if (is_nobody_here(s))
        enter(s); /* nobody here keeps others waiting */
}

void chempi_super_absent(const struct chempi_rank *rank)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *w;

    if (s->has_absent || s->spec->size == 1)
        return;
    s->has_absent = true;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ABSENT, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, rank->world);
    chempi_link_end(&s->up);
}

/* With an absent rank a fence, or a message to it, would wait for ever. */
void chempi_super_miss(struct chempi_super *s)
{
    for (uint32_t i = 0; s->absent && i < s->local_size; i++)
        if (s->ranks[i].pid > 0 &&
            (s->ranks[i].needs_world || s->ranks[i].fence > s->released))
            chempi_ranks_judge(&s->ranks[i], CHEMPI_END_MISSED, s->absent - 1,
                               "");
}

void chempi_super_fence(struct chempi_super *s)
{
    uint64_t low = UINT64_MAX;

    chempi_super_miss(s);
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_missed(s, &s->ranks[i]) && s->ranks[i].fence < low)
            low = s->ranks[i].fence;
    if (low == UINT64_MAX)
        low = s->released + (s->spec->node_count > 1); /* see release() */
    while (s->fence < low) {
        if (s->spec->node_count == 1)
            release(s, ++s->fence);
        else
            enter(s);
    }
}

/* ---- the end ------------------------------------------------------------- */

static void send_count(struct chempi_super *s, uint16_t type)
{
    struct chempi_writer *w = chempi_link_begin(&s->up, type, s->spec->job);

    chempi_wire_put_u32(w, 1);
    chempi_link_end(&s->up);
}

void chempi_super_settle(struct chempi_super *s)
{
    if (s->is_done || s->alive || s->has_children ||
        !chempi_streams_are_over(s))
        return;
    s->is_done = true; /* P3 */
    chempi_figures_send(s);
    send_count(s, CHEMPI_MSG_DONE);
}

/* Their processes, and that they run. */
static void tell_started(struct chempi_super *s)
{
    struct chempi_writer *w;

    if (s->local_size) {
        w = chempi_link_begin(&s->up, CHEMPI_MSG_PIDS, s->spec->job);
        chempi_wire_put_u32(w, s->node);
        chempi_wire_put_u32(w, s->local_size);
        for (uint32_t i = 0; i < s->local_size; i++) {
            chempi_wire_put_u32(w, s->ranks[i].world);
            chempi_wire_put_u32(w, (uint32_t)s->ranks[i].pid);
        }
        chempi_link_end(&s->up);
    }
    send_count(s, CHEMPI_MSG_STARTED);
}

/* The children's ends of the pipe are closed: each has become its program, or
 * has ended. */
static void have_programs(struct chempi_super *s)
{
    s->awaits_programs = false;
    ev_io_stop(s->loop, &s->exec_report);
    tell_started(s);
}

static struct chempi_rank *find_rank(struct chempi_super *s, pid_t pid)
{
    if (chempi_gateway_is_spared(s, pid))
        return s->gateway;
    for (uint32_t i = 0; i < s->local_size; i++)
        if (s->ranks[i].pid == pid)
            return &s->ranks[i];
    return NULL;
}

/* What children said before they ended because exec failed. */
static void read_exec_reports(struct chempi_super *s)
{
    static const char *const steps[] = {"cannot be set up",
                                        "cannot enter its working directory",
                                        "cannot be executed", "cannot be bound",
                                        "cannot open the file for its output"};
    uint32_t report[3];
    ssize_t n;

    while ((n = read(s->exec_fds[0], report, sizeof(report))) ==
           (ssize_t)sizeof(report)) {
        struct chempi_rank *rank;
        char text[CHEMPI_TEXT_MAX];
        char hint[CHEMPI_TEXT_MAX / 2] = "";

        if (report[0] >= s->local_size || report[2] >= CHEMPI_ARRAY_LEN(steps))
            continue;
        rank = &s->ranks[report[0]];
        rank->exec_errno = (int)report[1];
        if (report[2] == STEP_EXECUTE)
            chempi_exec_hint(s->spec, rank->world, rank->exec_errno, hint,
                             sizeof(hint));
        (void)snprintf(text, sizeof(text), "%s: %s%s", steps[report[2]],
                       chempi_err_name(rank->exec_errno), hint);
        chempi_ranks_judge(rank, CHEMPI_END_START, report[1], text);
    }
    if (n == 0 && s->awaits_programs)
        have_programs(s);
}

/* Who debugs wants programs, not what becomes them; a child that does not get
 * so far keeps nobody from ending the job. */
static void await_programs(struct chempi_super *s)
{
    (void)close(s->exec_fds[1]);
    s->exec_fds[1] = -1;
    s->awaits_programs = true;
    read_exec_reports(s);
}

static void reap(struct chempi_super *s)
{
    int status;
    pid_t pid;

    read_exec_reports(s);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 ||
           (pid < 0 && errno == EINTR)) {
        struct chempi_rank *rank = pid > 0 ? find_rank(s, pid) : NULL;

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
    chempi_super_settle(s);
}

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
    reap(s);
    chempi_seek_settle(s);
    chempi_super_care(s);
}

static void child_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_super *s = w->data;
    struct signalfd_siginfo info;

    (void)loop;
    (void)events;
    while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    reap(s);
    chempi_seek_settle(s);
    chempi_super_care(s);
}

static void exec_failed(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    read_exec_reports(w->data);
}

/* ---- messages from above ------------------------------------------------- */

static int bad(struct chempi_err *err, const char *what)
{
    return chempi_err_set(err, -EBADMSG, "a malformed message (%s)", what);
}

static int take_input(struct chempi_super *s, struct chempi_reader *r,
                      struct chempi_err *err)
{
    size_t len;
    const uint8_t *data;
    int rc;

    (void)chempi_wire_get_u32(r); /* the node: this one, or all */
    data = chempi_wire_get_blob(r, CHEMPI_STDIN_WINDOW, &len);
    if (!chempi_wire_is_done(r))
        return bad(err, "input");
    rc = chempi_streams_feed(s, data, len);
    return rc ? bad(err, "input beyond its window") : 0;
}

static int take_ask(struct chempi_super *s, struct chempi_reader *r,
                    struct chempi_err *err)
{
    const uint32_t to = chempi_wire_get_u32(r);
    const uint32_t from = chempi_wire_get_u32(r);
    const uint32_t rank = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);

    if (!chempi_wire_is_done(r) || to != s->node ||
        from >= s->spec->node_count || rank >= chempi_spec_procs(s->spec) ||
        s->spec->node_of_rank[rank] != s->node || !*key)
        return bad(err, "question");
    return look_up(s, rank, key,
                   (struct chempi_kvs_waiter){.is_node = true, .index = from},
                   err);
}

static int take_answer(struct chempi_super *s, struct chempi_reader *r,
                       struct chempi_err *err)
{
    const uint32_t to = chempi_wire_get_u32(r);
    const uint32_t rank = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);
    size_t len;
    const uint8_t *value = chempi_wire_get_blob(r, CHEMPI_KVS_VALUE_MAX, &len);
    struct chempi_kvs_entry *e;

    if (!chempi_wire_is_done(r) || to != s->node ||
        rank >= chempi_spec_procs(s->spec) ||
        s->spec->node_of_rank[rank] == s->node || !*key)
        return bad(err, "answer");
    e = chempi_kvs_entry(&s->kvs, rank, key, false);
    if (!e || chempi_kvs_set(&s->kvs, e, value, len, serve, s))
        return chempi_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

/* To the rank or gateway as it is, but for the first field. */
static int take_share(struct chempi_super *s, const struct chempi_frame *frame,
                      struct chempi_err *err)
{
    struct chempi_reader r;
    uint32_t local;

    chempi_wire_read(&r, frame->data, frame->len);
    local = chempi_wire_get_u32(&r);
    if (frame->len != 4 + CHEMPI_SHARE_BYTES ||
        local >= s->local_size + (s->gateway != NULL))
        return bad(err, "share of memory");
    chempi_ranks_share(&s->ranks[local], frame->data + 4);
    return 0;
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

static int take_signal(struct chempi_super *s, struct chempi_reader *r,
                       struct chempi_err *err)
{
    const uint32_t number = chempi_wire_get_u32(r);

    if (!chempi_wire_is_done(r) || number == 0 || number >= 32)
        return bad(err, "signal");
    if (!is_deadly(number) || s->signal || s->is_ending) {
        signal_ranks(s, (int)number);
        return 0;
    }
    chempi_figures_ask(s);
    s->was_signalled = true;
    s->signal = (int)number;
    if (chempi_figures_are_due(s))
        ev_timer_start(s->loop, &s->hold);
    else
        end_hold(s);
    return 0;
}

/* status: 0, or an errno that says why it cannot go on. */
_Noreturn static void leave(struct chempi_super *s, int status)
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
        leave(up->arg, 0);
}

/* P7: the gateway has told, or does not. */
static void end_leave(struct chempi_super *s)
{
    ev_timer_stop(s->loop, &s->grace);
    chempi_figures_send(s);
    s->up.on_written = leave_when_written;
    leave_when_written(&s->up);
}

static void wait_for(struct chempi_super *s, double seconds)
{
    ev_timer_stop(s->loop, &s->grace);
    ev_timer_set(&s->grace, seconds, 0.0);
    ev_timer_start(s->loop, &s->grace);
}

static void take_end(struct chempi_super *s)
{
    if (s->is_leaving)
        return;
    if (!chempi_figures_ask_gateway(s))
        leave(s, 0);
    s->is_leaving = true;
    wait_for(s, TELL_GATEWAY_S);
}

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
    reap(s);
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

void chempi_super_care(struct chempi_super *s)
{
    if (chempi_figures_are_due(s))
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

static int take_absent(struct chempi_super *s, struct chempi_reader *r,
                       struct chempi_err *err)
{
    uint32_t rank;

    (void)chempi_wire_get_u32(r);
    rank = chempi_wire_get_u32(r);
    if (!chempi_wire_is_done(r) || rank >= s->spec->size)
        return bad(err, "absent");
    s->absent = rank + 1;
    chempi_super_miss(s);
    return 0;
}

/* Ends that happened before are still news: take them in first (P2). */
static int take_kill(struct chempi_super *s, struct chempi_reader *r,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    const uint32_t culprit = chempi_wire_get_u32(r);

    (void)chempi_wire_get_str(r, CHEMPI_TEXT_MAX);
    if (!chempi_wire_is_done(r))
        return bad(err, "kill");
    if (s->is_ending)
        return 0;
    reap(s);
    end_hold(s);
    chempi_seek_drop(s);
    s->is_ending = true;
    chempi_figures_ask(s);
    for (uint32_t i = 0; i < s->local_size; i++)
        if (culprit < s->spec->size && s->ranks[i].pid > 0)
            chempi_ranks_send(&s->ranks[i], CHEMPI_MSG_LOST, frame->data,
                              frame->len);
    if (chempi_figures_are_due(s)) /* P6 */
        wait_for(s, TELL_S);
    else if (culprit < s->spec->size && is_any_caring(s))
        wait_for(s, GRACE_S);
    else
        end_grace(s);
    return 0;
}

/* A gateway or a rank is gone, or a gateway shall be spared: each process finds
 * out what that means to it. */
static int take_fallen(struct chempi_super *s, struct chempi_reader *r,
                       struct chempi_err *err)
{
    const uint32_t proc = chempi_wire_get_u32(r);
    const uint8_t how = chempi_wire_get_u8(r);
    const char *text = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;
    uint16_t type = CHEMPI_MSG_DRAINED;

    if (!chempi_wire_is_done(r) || proc >= chempi_spec_procs(s->spec) ||
        (proc < s->spec->size) != (how == CHEMPI_FALL_DIED))
        return bad(err, "end of a process");
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, proc);
    if (how == CHEMPI_FALL_DRAINED || how == CHEMPI_FALL_UNDRAINED) {
        chempi_wire_put_u8(&w, how == CHEMPI_FALL_DRAINED);
    } else {
        type = CHEMPI_MSG_LOST;
        chempi_wire_put_str(&w, text);
    }
    for (uint32_t i = 0; i < s->local_size; i++)
        chempi_ranks_send(&s->ranks[i], type, w.data, w.len);
    if (s->gateway && s->gateway->world != proc)
        chempi_ranks_send(s->gateway, type, w.data, w.len);
    return 0;
}

int chempi_super_take(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_super *s = link->arg;
    struct chempi_reader r;
    uint64_t number;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_INPUT:
        return take_input(s, &r, err);
    case CHEMPI_MSG_CREDIT:
        (void)chempi_wire_get_u32(&r);
        number = chempi_wire_get_u32(&r);
        if (!chempi_wire_is_done(&r))
            return bad(err, "credit");
        chempi_streams_credit(s, (uint32_t)number);
        return 0;
    case CHEMPI_MSG_SHARE:
        return take_share(s, frame, err);
    case CHEMPI_MSG_SIGNAL:
        return take_signal(s, &r, err);
    case CHEMPI_MSG_KILL:
        return take_kill(s, &r, frame, err);
    case CHEMPI_MSG_BEGIN:
        chempi_ranks_begin(s);
        return 0;
    case CHEMPI_MSG_LOCATE:
        return chempi_seek_ask(s, &r, err);
    case CHEMPI_MSG_ABSENT:
        return take_absent(s, &r, err);
    case CHEMPI_MSG_FALLEN:
        return take_fallen(s, &r, err);
    case CHEMPI_MSG_RELEASE:
        number = chempi_wire_get_u64(&r);
        if (!chempi_wire_is_done(&r) || number != s->released + 1 ||
            number > s->fence)
            return bad(err, "release");
        release(s, number);
        return 0;
    case CHEMPI_MSG_ASK:
        return take_ask(s, &r, err);
    case CHEMPI_MSG_ANSWER:
        return take_answer(s, &r, err);
    case CHEMPI_MSG_END:
        take_end(s);
        return 0;
    default:
        return bad(err, "unknown type");
    }
}

/* P5: whoever ordered this job is gone, and with it the job. */
static void up_lost(struct chempi_link *link, int code,
                    const struct chempi_err *err)
{
    struct chempi_super *s = link->arg;

    (void)err;
    leave(s, code == -EPIPE ? 1 : -code);
}

/* ---- the beginning ------------------------------------------------------- */

/* The supervisor holds several descriptors per rank. */
static void raise_file_limit(struct chempi_super *s)
{
    struct rlimit all;

    if (getrlimit(RLIMIT_NOFILE, &s->files) < 0)
        return;
    all = s->files;
    all.rlim_cur = all.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &all); /* else the soft limit holds */
}

static int set_up_process(struct chempi_super *s, struct chempi_err *err)
{
    sigset_t set;

    (void)setsid(); /* fails for a leader only, and a fresh child is none */
    (void)prctl(PR_SET_NAME, "chempi-super");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return chempi_err_set(err, -errno, "cannot become a subreaper: %s",
                              chempi_err_name(errno));
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->null_fd = chempi_sys->open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (s->signal_fd < 0 || s->null_fd < 0 ||
        chempi_sys->pipe2(s->exec_fds, O_CLOEXEC | O_NONBLOCK) < 0 ||
        (chempi_spec_is_held(s->spec) &&
         chempi_sys->pipe2(s->gate_fds, O_CLOEXEC) < 0) ||
        dup2(s->null_fd, 0) < 0 || dup2(s->null_fd, 1) < 0)
        return chempi_err_set(err, -errno, "cannot set up the supervisor: %s",
                              chempi_err_name(errno));
    s->text = chempi_sys->malloc(CHEMPI_OUTPUT_CHUNK);
    if (!s->text)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    raise_file_limit(s);
    if (s->has_become) /* chempi_super_run_as() */
        return 0;
    if (chempi_cgroup_enter(s->spec->cgroup, err))
        return err->code;
    return chempi_become_user(s->spec->uid, s->spec->gid, &s->spec->shell, err);
}

int chempi_super_number_ranks(struct chempi_super *s, struct chempi_err *err)
{
    const struct chempi_spec *spec = s->spec;
    const uint32_t count = chempi_spec_local_size(spec, s->node);
    uint32_t n = 0;

    s->ranks = chempi_sys->calloc(count + 1u, sizeof(*s->ranks));
    if (!s->ranks)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i <= count; i++)
        s->ranks[i].super = s;
    for (uint32_t i = 0; i < spec->size; i++) {
        struct chempi_rank *rank = &s->ranks[n];

        if (spec->node_of_rank[i] != s->node)
            continue;
        rank->world = i;
        rank->local = n++;
        rank->streams[0].fd = rank->streams[1].fd = rank->feed.fd = -1;
    }
    s->local_size = n;
    s->host_procs = chempi_spec_host_procs(spec, s->node);
    if (chempi_spec_gateway(spec, s->node) != CHEMPI_NODE_ANY) {
        s->gateway = &s->ranks[n];
        s->gateway->world = chempi_spec_gateway(spec, s->node);
        s->gateway->local = n;
        s->gateway->streams[0].fd = s->gateway->streams[1].fd = -1;
        s->gateway->feed.fd = -1;
    }
    return 0;
}

static void watch(struct chempi_super *s)
{
    ev_io_init(&s->child_signal, child_ended, s->signal_fd, EV_READ);
    ev_io_init(&s->exec_report, exec_failed, s->exec_fds[0], EV_READ);
    s->child_signal.data = s;
    s->exec_report.data = s;
    ev_io_start(s->loop, &s->child_signal);
    ev_io_start(s->loop, &s->exec_report);
    ev_timer_init(&s->grace, grace_is_over, GRACE_S, 0.0);
    s->grace.data = s;
    ev_timer_init(&s->hold, hold_is_over, HOLD_S, 0.0);
    s->hold.data = s;
    ev_timer_init(&s->sweep, sweep_is_over, CHEMPI_REAP_S, 0.0);
    s->sweep.data = s;
    chempi_seek_init(s);
    chempi_streams_init(s);
}

static int make_share(struct chempi_super *s, struct chempi_err *err)
{
    const struct chempi_share_nodes nodes = {
        .names = (const char *const *)s->spec->node_names,
        .count = s->spec->node_count,
        .self = s->node,
        .tables = s->spec->tables,
    };
    int rc =
        chempi_share_init(&s->share, s->local_size + (s->gateway != NULL), err);

    if (!rc)
        rc = chempi_share_set_table(&s->share, &nodes, err);
    return rc;
}

static int start(struct chempi_super *s, struct chempi_rank **culprit,
                 struct chempi_err *err)
{
    int rc = set_up_process(s, err);

    if (!rc)
        rc = make_share(s, err);
    if (!rc)
        rc = chempi_bind_init(&s->bind, s->spec, s->node, err);
    if (rc)
        return rc;
    watch(s);
    s->has_children = true;
    rc = chempi_gateway_start(s, err);
    if (rc) {
        chempi_gateway_end(s, true, err->text);
        return 0;
    }
    for (uint32_t i = 0; !rc && i < s->local_size; i++) {
        *culprit = &s->ranks[i];
        rc = chempi_ranks_start(s, &s->ranks[i], err);
    }
    if (!rc && s->spec->is_debugged && s->local_size)
        await_programs(s);
    else if (!rc)
        tell_started(s);
    if (!rc && s->local_size == 0)
        enter(s);
    return rc;
}

/* What s->spec describes, on its node s->node. */
static void begin(struct chempi_super *s)
{
    struct chempi_rank *culprit;
    struct chempi_err err = {0};
    int rc;

    s->up.on_frame = chempi_super_take;
    if (chempi_super_number_ranks(s, &err))
        _exit(ENOMEM);
    culprit = &s->ranks[0];
    rc = start(s, &culprit, &err);
    if (rc)
        chempi_ranks_judge(culprit, CHEMPI_END_START, (uint32_t)-rc, err.text);
    reap(s);
}

/* PART: the first frame, for a supervisor that knows its user only. */
static int take_part(struct chempi_link *link, const struct chempi_frame *frame,
                     struct chempi_err *err)
{
    struct chempi_super *s = link->arg;
    struct chempi_spec *spec = chempi_sys->calloc(1, sizeof(*spec));
    struct chempi_shell shell;
    struct chempi_reader r;
    uint64_t share;
    uint32_t slots;
    int rc;

    if (!spec)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    chempi_wire_read(&r, frame->data, frame->len);
    s->node = chempi_wire_get_u32(&r);
    share = chempi_wire_get_u64(&r);
    slots = chempi_wire_get_u32(&r);
    rc = frame->type == CHEMPI_MSG_PART ? chempi_shell_take(&shell, &r)
                                        : -EBADMSG;
    rc = rc ? rc : chempi_spec_read(spec, &r);
    if (!rc && (!chempi_wire_is_done(&r) || s->node >= spec->node_count ||
                spec->uid != getuid() || spec->gid != getgid())) {
        chempi_spec_fini(spec);
        rc = -EBADMSG;
    }
    if (rc) {
        free(spec);
        return bad(err, "a supervisor's part of a job");
    }
    spec->shell = shell;
    spec->memory_share = share;
    spec->slots = slots;
    spec->cgroup = s->group;
    s->spec = spec; /* until the process ends */
    begin(s);
    return 0;
}

/* Nothing but the link upwards and standard streams. */
static struct chempi_super *open_up(int up_fd, chempi_link_frame_fn *on_frame)
{
    struct chempi_super *s = chempi_sys->calloc(1, sizeof(*s));

    if (!s || !(s->loop = ev_loop_new(EVFLAG_AUTO)))
        _exit(ENOMEM);
    s->signal_fd = s->null_fd = s->gate_fds[0] = s->gate_fds[1] = -1;
    s->share = (struct chempi_share){.region_fd = -1, .table_fd = -1};
    chempi_link_open(&s->up, s->loop, up_fd, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    s->up.on_frame = on_frame;
    s->up.on_lost = up_lost;
    s->up.arg = s;
    return s;
}

static void keep_only(int up_fd)
{
    if (dup2(up_fd, UP_FD) < 0 || fcntl(UP_FD, F_SETFD, FD_CLOEXEC) < 0)
        _exit(errno); /* the parent finds words for it */
    closefrom(UP_FD + 1);
}

_Noreturn void chempi_super_run(const struct chempi_spec *spec, uint32_t node,
                                int up_fd)
{
    struct chempi_super *s;

    keep_only(up_fd);
    s = open_up(UP_FD, chempi_super_take);
    s->spec = spec;
    s->node = node;
    begin(s);
    ev_run(s->loop, 0);
    leave(s, EIO); /* not reached while the link upwards is watched */
}

_Noreturn void chempi_super_run_as(uint32_t uid, uint32_t gid,
                                   const struct chempi_shell *shell,
                                   const struct chempi_cgroup *group, int up_fd)
{
    struct chempi_super *s;

    keep_only(up_fd);
    if (!chempi_become_or_tell(uid, gid, shell, group, UP_FD))
        _exit(EPERM);
    s = open_up(UP_FD, take_part);
    s->has_become = true;
    s->group = group;
    ev_run(s->loop, 0);
    leave(s, EIO); /* as above */
}
