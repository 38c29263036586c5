/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's event loop; see run.h. */
#define _GNU_SOURCE /* sigset_t and friends */
#include "chempid/launcher/run.h"

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"
#include "chempid/launcher/console.h"
#include "chempid/launcher/gateway_failures.h"
#include "chempid/launcher/mpir.h"
#include "chempid/launcher/run_state.h"
#include "chempid/launcher/run_words.h"
#include "chempid/launcher/verdict.h"
#include "chempid/process/signals.h"
#include "chempid/remote/branches.h"
#include "chempid/remote/remote_tree.h"
#include "chempid/tree/hub.h"
#include "chempid/tree/link.h"
#include "chempid/where/deadlock.h"
#include "chempid/where/wait_query.h"
#include "chempid/worlds/above.h"
#include "chempid/worlds/worlds.h"
#include "common/base/sys.h"
#include "common/control/dynamic.h"

#define GRACE_S 3.0  /* from a passed-on SIGINT or SIGTERM to KILL */
#define QUIET_S 5.0  /* of a job that shall end, until it is left */
#define LEAVE_S 10.0 /* of one whose ranks have ended: gateways tell last */

static void down(struct run *r, uint16_t type, const void *data, size_t len)
{
    struct chempi_err err;

    /* Only for a malformed address, and the addresses are ours. */
    (void)chempi_hub_down(&r->hub, type, data, len, &err);
}

/* ---- ending -------------------------------------------------------------- */

/* What is known by now; the rest is not waited for. */
static void end_query(struct run *r)
{
    chempi_wait_query_end(&r->query, r->hub.has_done);
}

/* U5: with every sign it begins anew. */
static void wait_for_sign(struct run *r, double seconds)
{
    r->quiet.repeat = seconds;
    ev_timer_again(r->loop, &r->quiet);
}

/* No rank is left, of any world. */
static bool is_done(const struct run *r)
{
    return r->hub.has_done && r->worlds.count == 0;
}

/* Of worlds that end along with this one. */
static int exit_status(const struct run *r)
{
    const int status = chempi_verdict_status(&r->verdict);

    return status ? status : CHEMPI_EXIT_FAILURE;
}

static void kill_job(struct run *r)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    if (r->has_killed)
        return;
    r->has_killed = true; /* U2 */
    if (!chempi_hub_is_over(&r->hub))
        wait_for_sign(r, QUIET_S);
    chempi_console_stop_input(&r->console);
    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, r->verdict.rank);
    chempi_wire_put_str(&w, r->verdict.text);
    down(r, CHEMPI_MSG_KILL, w.data, w.len);
    end_query(r);
    chempi_worlds_end(&r->worlds, exit_status(r), r->verdict.text);
}

/* U1 */
static void check_end(struct run *r)
{
    if (!chempi_hub_is_over(&r->hub) || r->worlds.count > 0 ||
        !chempi_console_is_empty(&r->console))
        return;
    if (!r->has_concluded) {
        r->has_concluded = true;
        chempi_run_conclude(r);
    }
    if (chempi_console_is_empty(&r->console))
        ev_break(r->loop, EVBREAK_ALL);
}

static void order_end(struct run *r, int status, const char *text)
{
    chempi_verdict_order(&r->verdict, status, text);
    kill_job(r);
}

static void end_late(struct run *r)
{
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "the time limit of %g s has passed; the job was ended",
                   r->opt->timeout_s);
    order_end(r, CHEMPI_EXIT_TIMEOUT, text);
}

/* ---- where ranks wait ---------------------------------------------------- */

static bool can_ask(void *arg)
{
    const struct run *r = arg;

    return !r->has_killed && !r->hub.has_done;
}

static void locate(void *arg, const void *data, size_t len)
{
    down(arg, CHEMPI_MSG_LOCATE, data, len);
}

/* Until now the job could still end by itself. */
static void have_told(void *arg)
{
    struct run *r = arg;

    if (r->is_late)
        end_late(r);
    end_query(r);
}

static void say_places(void *arg, const char *text, size_t len)
{
    struct run *r = arg;

    chempi_console_say(&r->console, text, len);
}

static const struct chempi_wait_query_ops query_ops = {
    .can_ask = can_ask,
    .locate = locate,
    .told = have_told,
    .say = say_places,
};

/* With what they have just told (which kill_job() has printed). */
static void end_stuck(void *arg, const char *text)
{
    struct run *r = arg;

    r->query.is_said = true;
    order_end(r, CHEMPI_EXIT_FAILURE, text);
}

static void time_is_up(struct ev_loop *loop, ev_timer *w, int events)
{
    struct run *r = w->data;

    (void)loop;
    (void)events;
    r->is_late = true;
    if (is_done(r))
        kill_job(r); /* U4 */
    else if (r->opt->where_s <= 0 || !chempi_wait_query_begin(&r->query))
        end_late(r);
}

static void grace_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    kill_job(w->data);
}

/* ---- messages for the root ----------------------------------------------- */

/* A rank that has said that it needs a lost way asks for the end: what has no
 * way any more is a better reason than what this one rank knows. */
static void judge_cut(struct run *r, uint32_t node, uint32_t rank, uint32_t pid,
                      const char *program)
{
    char text[CHEMPI_TEXT_MAX];
    char who[256];

    (void)snprintf(who, sizeof(who), "rank %u on node %.40s (pid %u, %.80s)",
                   rank, r->spec->node_names[node], pid, program);
    chempi_gateway_failures_put(&r->failures, who, text, sizeof(text));
    if (*text)
        chempi_verdict_cut(&r->verdict, rank, text);
}

/* A process is gone, or a gateway shall be spared: everybody is told. */
static void pass_fall(struct run *r, uint32_t proc, uint8_t how,
                      const char *why)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, proc);
    chempi_wire_put_u8(&w, how);
    chempi_wire_put_str(&w, why);
    down(r, CHEMPI_MSG_FALLEN, w.data, w.len);
}

/* The hub has looked whether the node is the sender's. */
static bool is_its_rank(const struct run *r, uint32_t node, uint32_t rank)
{
    return rank < r->spec->size && r->spec->node_of_rank[rank] == node;
}

static bool is_its_gateway(const struct run *r, uint32_t node, uint32_t proc)
{
    return proc != CHEMPI_NODE_ANY &&
           proc == chempi_spec_gateway(r->spec, node);
}

static void refuse(struct run *r)
{
    chempi_verdict_node(&r->verdict, "a supervisor sent a malformed message");
    kill_job(r);
}

static void take_ended(struct run *r, struct chempi_reader *in)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t rank = chempi_wire_get_u32(in);
    const uint32_t pid = chempi_wire_get_u32(in);
    const uint8_t how = chempi_wire_get_u8(in);
    const uint32_t code = chempi_wire_get_u32(in);
    const char *program = chempi_wire_get_str(in, CHEMPI_SPEC_STRING_MAX);
    const char *text = chempi_wire_get_str(in, CHEMPI_ERR_TEXT_MAX);
    char words[CHEMPI_TEXT_MAX];

    if (!chempi_wire_is_done(in) || !is_its_rank(r, node, rank)) {
        refuse(r);
        return;
    }
    if (r->spec->survives && !r->has_killed &&
        chempi_verdict_spare(&r->verdict, r->spec, node, rank, pid,
                             (enum chempi_end)how, code, program, text, words,
                             sizeof(words))) {
        pass_fall(r, rank, CHEMPI_FALL_DIED, words);
        chempi_run_tell(r, words);
        return;
    }
    if (how == CHEMPI_END_ABORT &&
        chempi_gateway_failures_is_cut(&r->failures, rank) &&
        chempi_verdict_takes_cut(&r->verdict)) /* reading tables is dear */
        judge_cut(r, node, rank, pid, program);
    if (chempi_verdict_rank(&r->verdict, r->spec, node, rank, pid,
                            (enum chempi_end)how, code, program, text)) {
        chempi_mpir_abort(r->verdict.text);
        kill_job(r);
    }
}

static void take_output(struct run *r, struct chempi_reader *in)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t rank = chempi_wire_get_u32(in);
    const uint8_t number = chempi_wire_get_u8(in);
    size_t len;
    const uint8_t *data =
        chempi_wire_get_blob(in, 2 * CHEMPI_OUTPUT_CHUNK, &len);

    if (chempi_wire_is_done(in) && number >= 1 && number <= 2 &&
        is_its_rank(r, node, rank))
        chempi_console_show(&r->console, node, rank, number, data, len);
}

/* A gateway is gone or drained. The ranks decide: one that has no other way
 * ends the job. */
static void tell_fall(struct run *r, uint32_t node, uint32_t proc, uint8_t how,
                      const char *why)
{
    char text[CHEMPI_TEXT_MAX];

    if (r->has_killed || r->hub.has_done || how > CHEMPI_FALL_UNDRAINED)
        return;
    if (chempi_gateway_failures_is_lost(&r->failures, proc) &&
        how != CHEMPI_FALL_FATAL)
        return; /* and all know */
    if (how != CHEMPI_FALL_FATAL)
        pass_fall(r, proc, how, why); /* reading tables takes time */
    chempi_gateway_failures_tell(&r->failures, node, proc,
                                 (enum chempi_fall)how, why, text,
                                 sizeof(text));
    if (how == CHEMPI_FALL_FATAL) {
        chempi_verdict_node(&r->verdict, text);
        kill_job(r);
    } else {
        chempi_run_tell(r, text);
    }
}

static void take_gateway(struct run *r, struct chempi_reader *in)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t proc = chempi_wire_get_u32(in);
    const uint8_t how = chempi_wire_get_u8(in);
    const uint32_t rank = chempi_wire_get_u32(in);
    const char *why = chempi_wire_get_str(in, CHEMPI_TEXT_MAX);

    if (!chempi_wire_is_done(in) ||
        (how == CHEMPI_FALL_CUT ? !is_its_rank(r, node, rank)
                                : !is_its_gateway(r, node, proc))) {
        refuse(r);
        return;
    }
    if (how != CHEMPI_FALL_CUT) {
        tell_fall(r, node, proc, how, why);
        return;
    }
    chempi_gateway_failures_cut(&r->failures, rank);
    (void)chempi_gateway_failures_note(&r->failures, proc, why);
}

/* A node without ranks is lost as a gateway only. */
static void take_lost(struct run *r, struct chempi_reader *in)
{
    uint32_t rank = 0;
    const uint32_t node = chempi_wire_get_u32(in);
    const char *text = chempi_wire_get_str(in, CHEMPI_TEXT_MAX);

    if (node >= r->hub.spare) {
        if (r->spec->stdin_rank == CHEMPI_STDIN_ALL)
            chempi_console_lose(&r->console, node);
        tell_fall(r, node, chempi_spec_gateway(r->spec, node), CHEMPI_FALL_LOST,
                  text);
        return;
    }
    while (rank < r->spec->size && r->spec->node_of_rank[rank] != node)
        rank++;
    chempi_verdict_node(&r->verdict, text);
    if (r->verdict.rank == CHEMPI_NODE_ANY && rank < r->spec->size)
        r->verdict.rank = rank; /* some rank of it: its peers want one */
    kill_job(r);
}

static void take_eaten(struct run *r, struct chempi_reader *in)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t bytes = chempi_wire_get_u32(in);

    chempi_console_eaten(
        &r->console, r->spec->stdin_rank == CHEMPI_STDIN_ALL ? node : 0, bytes);
}

static void take_stats(struct run *r, struct chempi_reader *in)
{
    size_t len;
    const uint8_t *text;

    (void)chempi_wire_get_u32(in);
    text = chempi_wire_get_blob(in, CHEMPI_TREE_MAX, &len);
    if (chempi_wire_is_done(in) && r->stats.len + len <= CHEMPI_QUEUE_MAX)
        chempi_wire_put_raw(&r->stats, text, len);
}

static void take_order(struct run *r, struct chempi_reader *in)
{
    (void)chempi_wire_get_u32(in);
    if (is_done(r))
        kill_job(r); /* U4 */
    else
        order_end(r, CHEMPI_EXIT_SIGNAL + SIGTERM,
                  chempi_wire_get_str(in, CHEMPI_TEXT_MAX));
}

static void take_places(struct run *r, struct chempi_reader *in)
{
    if (!chempi_wait_query_take(&r->query, in))
        return;
    if (r->is_late && chempi_wait_summary_is_ending(&r->query.places))
        return; /* it may still end by itself: until their time is over */
    have_told(r);
}

static void reply_to_rank(void *arg, uint32_t node, uint32_t rank,
                          const struct chempi_reply *reply)
{
    uint8_t data[CHEMPI_PORT_NAME_MAX + 64];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, node);
    chempi_wire_put_u32(&w, rank);
    chempi_reply_write(reply, &w);
    down(arg, CHEMPI_MSG_ROOT_REPLY, w.data, w.len);
}

/* Of a world that ranks have started, the first launcher is asked. */
static void take_question(struct run *r, struct chempi_reader *in,
                          const void *data, size_t len)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t rank = chempi_wire_get_u32(in);

    if (in->is_bad || r->has_killed || !is_its_rank(r, node, rank))
        return;
    if (r->opt->above)
        chempi_above_ask(r->opt->above, data, len);
    else
        chempi_worlds_take(&r->worlds, node, rank, in);
}

static void tell(void *arg, const char *text)
{
    chempi_run_tell(arg, text);
}

/* A world or the output has changed. */
static void changed(void *arg)
{
    check_end(arg);
}

static const struct chempi_worlds_ops worlds_ops = {
    .reply = reply_to_rank, .say = tell, .changed = changed};

/* All nodes have their part. */
static void begin_job(struct run *r)
{
    if (r->has_killed)
        return;
    r->has_begun = true;
    if (r->opt->above)
        chempi_above_started(r->opt->above, r->spec->size);
    chempi_console_start_input(&r->console);
    chempi_mpir_start(r->spec);
    if (r->spec->is_debugged || chempi_spec_is_held(r->spec))
        down(r, CHEMPI_MSG_BEGIN, NULL, 0);
}

/* The first one of several is passed on. */
static void take_absent(struct run *r, struct chempi_reader *in,
                        const void *data, size_t len)
{
    const uint32_t node = chempi_wire_get_u32(in);
    const uint32_t rank = chempi_wire_get_u32(in);

    if (!chempi_wire_is_done(in) || !is_its_rank(r, node, rank)) {
        refuse(r);
        return;
    }
    if (!r->has_absent)
        down(r, CHEMPI_MSG_ABSENT, data, len);
    r->has_absent = true;
}

/* All ranks have ended. Those that were asked for a time limit tell nothing any
 * more that it could wait for, and it holds for other worlds, too. */
static void take_done(struct run *r)
{
    end_query(r);
    if (r->is_late && !is_done(r))
        end_late(r);
    if (!r->has_killed)
        wait_for_sign(r, LEAVE_S);
    chempi_console_stop_input(&r->console);
    down(r, CHEMPI_MSG_END, NULL, 0);
}

static void up(void *arg, uint16_t type, const void *data, size_t len)
{
    struct run *r = arg;
    struct chempi_reader in;

    if (ev_is_active(&r->quiet) && type != CHEMPI_MSG_OUTPUT)
        ev_timer_again(r->loop, &r->quiet);
    chempi_wire_read(&in, data, len);
    switch (type) {
    case CHEMPI_MSG_OUTPUT:
        take_output(r, &in);
        break;
    case CHEMPI_MSG_EATEN:
        take_eaten(r, &in);
        break;
    case CHEMPI_MSG_ENDED:
        take_ended(r, &in);
        break;
    case CHEMPI_MSG_NODE_LOST:
        take_lost(r, &in);
        break;
    case CHEMPI_MSG_ENTERED:
        down(r, CHEMPI_MSG_RELEASE, data, len);
        break;
    case CHEMPI_MSG_STATS:
        take_stats(r, &in);
        break;
    case CHEMPI_MSG_GATEWAY:
        take_gateway(r, &in);
        break;
    case CHEMPI_MSG_ORDERED:
        take_order(r, &in);
        break;
    case CHEMPI_MSG_PLACES:
        take_places(r, &in);
        break;
    case CHEMPI_MSG_ROOT_REQUEST:
        take_question(r, &in, data, len);
        break;
    case CHEMPI_MSG_SOUGHT:
        /* A job that ends will not be found anywhere. */
        (void)chempi_wait_query_begin(&r->query);
        break;
    case CHEMPI_MSG_ABSENT:
        take_absent(r, &in, data, len);
        break;
    case CHEMPI_MSG_DONE:
        take_done(r);
        break;
    case CHEMPI_MSG_PIDS:
        chempi_mpir_take(r->spec, r->host[0] ? r->host : NULL, &in);
        break;
    case CHEMPI_MSG_STARTED:
        begin_job(r);
        break;
    case CHEMPI_MSG_TAKEN:
        r->is_taken |= !r->spec->is_debugged && !r->has_begun;
        break;
    case CHEMPI_MSG_GONE:
        ev_timer_stop(r->loop, &r->quiet); /* U5 */
        check_end(r);
        break;
    default:
        break;
    }
}

static void down_to(void *arg, uint32_t child, uint16_t type, const void *data,
                    size_t len)
{
    struct run *r = arg;

    chempi_branches_send(&r->branches, child, type, data, len);
}

static const struct chempi_hub_ops hub_ops = {.up = up, .down = down_to};

/* ---- console ------------------------------------------------------------- */

static void give_credit(void *arg, uint32_t node, uint32_t bytes)
{
    uint8_t data[8];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, node);
    chempi_wire_put_u32(&w, bytes);
    down(arg, CHEMPI_MSG_CREDIT, w.data, w.len);
}

static void pass_input(void *arg, const void *data, size_t len)
{
    struct run *r = arg;
    const uint32_t rank = r->spec->stdin_rank;
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, rank == CHEMPI_STDIN_ALL
                                ? CHEMPI_NODE_ANY
                                : r->spec->node_of_rank[rank]);
    chempi_wire_put_blob(&w, data, len);
    if (w.error)
        order_end(r, CHEMPI_EXIT_FAILURE,
                  "out of memory for standard input; the job was ended");
    else
        down(r, CHEMPI_MSG_INPUT, w.data, w.len);
    chempi_wire_clear(&w);
}

/* As for any program in a pipe whose reader has left. */
static void output_broken(void *arg, int number, int code)
{
    char text[128];

    if (number != 1)
        return; /* nothing could be said of it */
    if (code == -EPIPE) {
        order_end(arg, CHEMPI_EXIT_SIGNAL + SIGPIPE, "");
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "cannot write standard output: %s; the job was ended",
                   chempi_err_name(code));
    order_end(arg, CHEMPI_EXIT_FAILURE, text);
}

static const struct chempi_console_ops console_ops = {
    .credit = give_credit,
    .input = pass_input,
    .broken = output_broken,
    .empty = changed,
};

/* ---- leaving ------------------------------------------------------------- */

/* Nothing comes any more from below. */
static void leave_all(struct run *r)
{
    ev_timer_stop(r->loop, &r->quiet);
    chempi_branches_leave(&r->branches, r->quiet.repeat, tell, r);
}

/* At the third signal nor is anybody waited for who does not read. */
static void leave_now(struct run *r)
{
    leave_all(r);
    if (r->interrupts < 3)
        return;
    chempi_console_drop(&r->console);
    chempi_worlds_kill(&r->worlds);
    r->has_left = true;
    check_end(r);
}

static void is_quiet(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    leave_all(w->data);
}

/* ---- signals ------------------------------------------------------------- */

static void pass_signal(struct run *r, uint32_t number)
{
    uint8_t data[4] = {(uint8_t)number, 0, 0, 0};

    down(r, CHEMPI_MSG_SIGNAL, data, sizeof(data));
    chempi_worlds_signal(&r->worlds, number);
}

/* Once passes it on and waits a little; twice kills; more often leaves. */
static void interrupt_job(struct run *r, uint32_t number)
{
    const bool insists = r->interrupts > 0;
    char text[64];

    r->interrupts += r->interrupts < 3;
    if (r->has_killed) { /* perhaps for another reason */
        if (insists)
            leave_now(r);
        return;
    }
    if (insists) {
        kill_job(r);
        return;
    }
    (void)snprintf(text, sizeof(text), "ended by signal %u", number);
    if (!is_done(r)) /* U4 */
        chempi_verdict_order(&r->verdict, CHEMPI_EXIT_SIGNAL + (int)number,
                             text);
    pass_signal(r, number);
    ev_timer_start(r->loop, &r->grace);
}

static void stop_self(struct run *r)
{
    pass_signal(r, SIGTSTP);
    (void)raise(SIGSTOP); /* until SIGCONT */
}

/* A world's launcher stands beside the first one, where terminals find it. */
static void signalled(void *arg, uint32_t number)
{
    struct run *r = arg;

    if (r->opt->above) /* which passes on what is for this world */
        return;
    switch (number) {
    case SIGTSTP:
        stop_self(r);
        break;
    case SIGCONT:
        pass_signal(r, SIGCONT);
        chempi_console_resume(&r->console);
        break;
    case SIGUSR1:
    case SIGUSR2:
        pass_signal(r, number);
        break;
    default:
        interrupt_job(r, number);
        break;
    }
}

/* ---- from the first launcher --------------------------------------------- */

static void pass_reply(void *arg, const void *data, size_t len)
{
    down(arg, CHEMPI_MSG_ROOT_REPLY, data, len);
}

static void pass_from_above(void *arg, uint32_t number)
{
    if (number < (uint32_t)SIGRTMIN)
        pass_signal(arg, number);
}

static void end_from_above(void *arg, int status, const char *text)
{
    struct run *r = arg;

    if (r->has_killed) /* it ends by itself, and says why */
        return;
    r->is_ordered = true;
    if (is_done(r))
        kill_job(r); /* U4 */
    else
        order_end(r, status, text);
}

static const struct chempi_above_ops above_ops = {
    .replied = pass_reply,
    .signalled = pass_from_above,
    .end = end_from_above,
};

static int watch_signals(struct run *r, struct chempi_err *err)
{
    static const int numbers[] = {CHEMPI_ROOT_SIGNALS};

    return chempi_signals_watch(&r->signals, r->loop, numbers,
                                CHEMPI_ARRAY_LEN(numbers), signalled, r, err);
}

/* ---- beginning and end --------------------------------------------------- */

static void start_timers(struct run *r)
{
    ev_timer_init(&r->grace, grace_is_over, GRACE_S, 0.0);
    r->grace.data = r;
    ev_timer_init(&r->quiet, is_quiet, 0.0, QUIET_S);
    ev_set_priority(&r->quiet, EV_MINPRI); /* first what is here already */
    r->quiet.data = r;
    chempi_wait_query_open(
        &r->query, r->loop, r->spec,
        r->opt->where_s > 0 ? r->opt->where_s : CHEMPI_WHERE_S, &query_ops, r);
    if (r->opt->has_check)
        chempi_deadlock_open(&r->deadlock, &r->query, r->opt->quiet_s,
                             end_stuck, r);
    ev_timer_init(&r->limit, time_is_up, r->opt->timeout_s - r->opt->spent_s,
                  0.0);
    r->limit.data = r;
    if (r->opt->timeout_s > 0)
        ev_timer_start(r->loop, &r->limit);
}

static int set_up(struct run *r, struct chempi_err *err)
{
    const struct chempi_spec *spec = r->spec;
    int rc;

    (void)sigprocmask(SIG_BLOCK, NULL, &r->blocked_before);
    chempi_gateway_failures_init(&r->failures, spec);
    chempi_worlds_init(&r->worlds, &worlds_ops, r);
    rc = chempi_branches_init(&r->branches, &r->hub, spec, spec->node_count,
                              err); /* U3 */
    if (rc)
        return rc;
    r->loop = ev_loop_new(EVFLAG_AUTO);
    if (r->loop && chempi_branches_watch(&r->branches, r->loop, err))
        return err->code;
    if (!r->loop ||
        chempi_hub_init(&r->hub, spec->node_count, spec->node_count, &hub_ops,
                        r) ||
        chempi_console_init(&r->console, r->loop, spec->node_count,
                            chempi_spec_readers(spec), r->opt->has_label,
                            r->opt->has_time, &console_ops, r))
        return chempi_err_set(err, -ENOMEM, "out of memory or descriptors");
    r->console.world = spec->world;
    chempi_hub_spare(&r->hub, chempi_spec_first_spare(spec));
    start_timers(r);
    if (r->opt->above)
        chempi_above_watch(r->opt->above, r->loop, &above_ops, r);
    else
        chempi_worlds_open(&r->worlds, r->loop, r->opt,
                           &r->branches.supervisors);
    return watch_signals(r, err);
}

static void tear_down(struct run *r)
{
    if (r->opt->above)
        chempi_above_unwatch(r->opt->above);
    chempi_worlds_fini(&r->worlds);
    chempi_branches_fini(&r->branches); /* U3 */
    chempi_hub_fini(&r->hub);
    if (r->loop) {
        chempi_console_fini(&r->console);
        ev_timer_stop(r->loop, &r->limit);
        ev_timer_stop(r->loop, &r->grace);
        ev_timer_stop(r->loop, &r->quiet);
        chempi_deadlock_close(&r->deadlock);
        chempi_wait_query_close(&r->query);
        chempi_signals_unwatch(&r->signals);
        ev_loop_destroy(r->loop);
    }
    /* Another attempt may follow. */
    (void)sigprocmask(SIG_SETMASK, &r->blocked_before, NULL);
    chempi_gateway_failures_fini(&r->failures);
    chempi_mpir_fini();
    chempi_wire_clear(&r->stats);
}

static int finish(struct run *r, struct chempi_err *err, int rc)
{
    int status = CHEMPI_EXIT_FAILURE;

    if (rc && r->opt->above) {
        chempi_above_refused(r->opt->above, 0, err->text);
    } else if (!rc) {
        ev_run(r->loop, 0);
        status = r->status;
        *err = r->taken;
    }
    tear_down(r);
    if (rc && !r->opt->above)
        chempi_run_say(err->text); /* signals end it again: nobody may read */
    if (rc)
        *err = (struct chempi_err){0};
    return status;
}

int chempi_run_private(const struct chempi_options *opt,
                       const struct chempi_spec *spec)
{
    struct run r = {.opt = opt, .spec = spec};
    struct chempi_err err = {0};
    int rc = set_up(&r, &err);

    if (gethostname(r.host, sizeof(r.host) - 1) < 0)
        r.host[0] = '\0';
    for (uint32_t i = 0; !rc && i < spec->node_count; i++)
        rc = chempi_branches_start(&r.branches, i, &err);
    return finish(&r, &err, rc);
}

int chempi_run_far(const struct chempi_options *opt,
                   const struct chempi_spec *spec,
                   struct chempi_remote *remotes)
{
    struct run r = {.opt = opt, .spec = spec};
    struct chempi_err err = {0};
    int rc = set_up(&r, &err);

    if (!rc)
        chempi_hub_expect(&r.hub, spec->node_count);
    for (uint32_t i = 0; !rc && i < spec->node_count; i++)
        if (remotes[i].via == i)
            rc = chempi_branches_start_far(&r.branches, remotes,
                                           spec->node_count, i, &err);
    return finish(&r, &err, rc);
}

int chempi_run_remote(const struct chempi_options *opt,
                      const struct chempi_spec *spec, int fd,
                      const char *daemon, struct chempi_err *taken)
{
    struct run r = {.opt = opt, .spec = spec};
    int rc;

    *taken = (struct chempi_err){0};
    rc = set_up(&r, taken);
    if (!rc)
        rc = chempi_branches_order(&r.branches, fd, daemon, taken);
    if (rc)
        (void)close(fd); /* nothing was ordered */
    return finish(&r, taken, rc);
}
