/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor of a job's ranks on one node; invariants in super.h. */
#define _GNU_SOURCE /* closefrom, setgroups */
#include "chempid/supervisor/super.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "chempid/process/become.h"
#include "chempid/process/cgroup.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/fd/file.h"

#define UP_FD 3 /* where the link upwards sits */
#define PAGE (size_t)4096

/* ---- messages from above ------------------------------------------------- */

static int take_input(struct chempi_super *s, struct chempi_reader *r,
                      struct chempi_err *err)
{
    size_t len;
    const uint8_t *data;
    int rc;

    (void)chempi_wire_get_u32(r); /* the node: this one, or all */
    data = chempi_wire_get_blob(r, CHEMPI_STDIN_WINDOW, &len);
    if (!chempi_wire_is_done(r))
        return chempi_control_refuse(err, "input");
    rc = chempi_streams_feed(s, data, len);
    return rc ? chempi_control_refuse(err, "input beyond its window") : 0;
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
        return chempi_control_refuse(err, "share of memory");
    chempi_control_share(&s->ranks[local], frame->data + 4);
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
        return chempi_control_refuse(err, "end of a process");
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, proc);
    if (how == CHEMPI_FALL_DRAINED || how == CHEMPI_FALL_UNDRAINED) {
        chempi_wire_put_u8(&w, how == CHEMPI_FALL_DRAINED);
    } else {
        type = CHEMPI_MSG_LOST;
        chempi_wire_put_str(&w, text);
    }
    for (uint32_t i = 0; i < s->local_size; i++)
        chempi_control_send(&s->ranks[i], type, w.data, w.len);
    if (s->gateway && s->gateway->world != proc)
        chempi_control_send(s->gateway, type, w.data, w.len);
    return 0;
}

int chempi_super_take(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_super *s = link->arg;
    struct chempi_reader r;
    uint32_t bytes;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_INPUT:
        return take_input(s, &r, err);
    case CHEMPI_MSG_CREDIT:
        (void)chempi_wire_get_u32(&r);
        bytes = chempi_wire_get_u32(&r);
        if (!chempi_wire_is_done(&r))
            return chempi_control_refuse(err, "credit");
        chempi_streams_credit(s, bytes);
        return 0;
    case CHEMPI_MSG_SHARE:
        return take_share(s, frame, err);
    case CHEMPI_MSG_SIGNAL:
        return chempi_ending_take_signal(s, &r, err);
    case CHEMPI_MSG_KILL:
        return chempi_ending_take_kill(s, &r, frame, err);
    case CHEMPI_MSG_BEGIN:
        chempi_control_begin(s);
        return 0;
    case CHEMPI_MSG_LOCATE:
        return chempi_wait_collect_ask(s, &r, err);
    case CHEMPI_MSG_ABSENT:
        return chempi_keys_take_absent(s, &r, err);
    case CHEMPI_MSG_FALLEN:
        return take_fallen(s, &r, err);
    case CHEMPI_MSG_RELEASE:
        return chempi_keys_take_release(s, &r, err);
    case CHEMPI_MSG_ASK:
        return chempi_keys_take_ask(s, &r, err);
    case CHEMPI_MSG_ANSWER:
        return chempi_keys_take_answer(s, &r, err);
    case CHEMPI_MSG_ROOT_REPLY:
        return chempi_root_take_reply(s, &r, err);
    case CHEMPI_MSG_END:
        chempi_ending_take_end(s);
        return 0;
    default:
        return chempi_control_refuse(err, "unknown type");
    }
}

/* P5: whoever ordered this job is gone, and with it the job. */
static void up_lost(struct chempi_link *link, int code,
                    const struct chempi_err *err)
{
    struct chempi_super *s = link->arg;

    (void)err;
    chempi_ending_leave(s, code == -EPIPE ? 1 : -code);
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

/* True: this process has none any more, or had none. */
static bool drop_terminal(void)
{
    const int fd = chempi_sys->open(
        "/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
    const bool has_none = fd < 0 ? errno == ENXIO : ioctl(fd, TIOCNOTTY) == 0;

    chempi_file_close(fd);
    return has_none;
}

/*
 * A terminal's signals are for whoever ordered the job, and nothing here opens
 * it. The kernel gives sessions that share a processor the same time on it,
 * whatever is in them, and a process that yields hands the processor to those
 * of its own session only (sched(7), autogroup). So the nodes of a job on one
 * host stay in the session of its launcher, each in a group of its own, and
 * without its terminal: in sessions of their own, ranks that wait would keep a
 * core for 0.1 to 0.3 ms from one of another node that has work. Those of
 * daemons have sessions of their own: whoever is in one may continue all others
 * there, and set the priority of all.
 */
static void leave_terminal(const struct chempi_super *s)
{
    const bool has_others =
        s->shares_session && chempi_spec_host_nodes(s->spec, s->node) > 1;

    /* Both fail for a leader only: a fresh child is none. */
    if (has_others && drop_terminal())
        (void)setpgid(0, 0);
    else
        (void)setsid();
}

static int set_up_process(struct chempi_super *s, struct chempi_err *err)
{
    sigset_t set;

    leave_terminal(s);
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

/* Children look at no rank but a copy of their own: with a thousand these are
 * most of the pages that a fork would copy. */
static struct chempi_rank *allocate_ranks(uint32_t count)
{
    const size_t len =
        (count * sizeof(struct chempi_rank) + PAGE - 1) & ~(PAGE - 1);
    void *ranks = NULL;

    if (chempi_sys->posix_memalign(&ranks, PAGE, len) != 0)
        return NULL;
    memset(ranks, 0, len);
    (void)madvise(ranks, len, MADV_DONTFORK); /* else they are copied */
    return ranks;
}

int chempi_super_number_ranks(struct chempi_super *s, struct chempi_err *err)
{
    const struct chempi_spec *spec = s->spec;
    const uint32_t count = chempi_spec_local_size(spec, s->node);
    uint32_t n = 0;

    s->ranks = allocate_ranks(count + 1u);
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

static int make_share(struct chempi_super *s, struct chempi_err *err)
{
    const struct chempi_share_nodes nodes = {
        .names = (const char *const *)s->spec->node_names,
        .count = s->spec->node_count,
        .self = s->node,
        .tables = s->spec->tables,
    };
    /* Without a table ranks have no devices that sleep on descriptors, and
     * would inherit each other's in vain: the square of their number. */
    const bool has_table = nodes.count > 1 || nodes.tables;
    int rc = chempi_share_init(&s->share, s->local_size + (s->gateway != NULL),
                               has_table, err);

    if (!rc)
        rc = chempi_share_set_table(&s->share, &nodes, err);
    if (!rc)
        rc = chempi_share_set_places(&s->share, s->spec->node_of_rank,
                                     chempi_spec_procs(s->spec), &nodes, err);
    return rc;
}

/* Debuggers do, and who has spawned a world, which all of its programs make or
 * none. At the gate of a job that may yet be refused (is_held) they are none.
 */
static bool wants_programs(const struct chempi_super *s)
{
    return s->local_size &&
           (s->spec->is_debugged ||
            (s->spec->parent && !chempi_spec_is_held(s->spec)));
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
    chempi_ending_watch(s);
    chempi_wait_collect_init(s);
    chempi_streams_init(s);
    s->has_children = true;
    rc = chempi_gateway_start(s, err);
    if (rc) {
        chempi_tell_gateway(s, true, err->text);
        return 0;
    }
    chempi_ranks_prepare(s);
    for (uint32_t i = 0; !rc && i < s->local_size; i++) {
        *culprit = &s->ranks[i];
        rc = chempi_ranks_start(s, &s->ranks[i], err);
    }
    if (!rc && wants_programs(s))
        chempi_ending_await_programs(s);
    else if (!rc)
        chempi_tell_started(s);
    if (!rc && s->local_size == 0)
        chempi_keys_enter(s);
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
        chempi_tell_ended(culprit, CHEMPI_END_START, (uint32_t)-rc, err.text);
    chempi_ending_reap(s);
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
        return chempi_control_refuse(err, "a supervisor's part of a job");
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
static struct chempi_super *open_up(chempi_link_frame_fn *on_frame)
{
    struct chempi_super *s = chempi_sys->calloc(1, sizeof(*s));

    if (!s || !(s->loop = ev_loop_new(EVFLAG_AUTO)))
        _exit(ENOMEM);
    s->signal_fd = s->null_fd = s->parted_fd = s->gate_fds[0] = s->gate_fds[1] =
        -1;
    s->share =
        (struct chempi_share){.region_fd = -1, .table_fd = -1, .places_fd = -1};
    chempi_link_open(&s->up, s->loop, UP_FD, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    s->up.on_frame = on_frame;
    s->up.on_lost = up_lost;
    s->up.arg = s;
    s->on_rank_frame = chempi_hear_frame;
    s->on_rank_lost = chempi_hear_lost;
    return s;
}

static void keep_only(int up_fd)
{
    if (dup2(up_fd, UP_FD) < 0 || fcntl(UP_FD, F_SETFD, FD_CLOEXEC) < 0)
        _exit(errno); /* the parent finds words for it */
    closefrom(UP_FD + 1);
}

_Noreturn void chempi_super_run(const struct chempi_spec *spec, uint32_t node,
                                int up_fd, bool shares_session)
{
    struct chempi_super *s;

    keep_only(up_fd);
    s = open_up(chempi_super_take);
    s->spec = spec;
    s->node = node;
    s->shares_session = shares_session;
    begin(s);
    ev_run(s->loop, 0);
    chempi_ending_leave(
        s, EIO); /* not reached while the link upwards is watched */
}

_Noreturn void chempi_super_run_as(uint32_t uid, uint32_t gid,
                                   const struct chempi_shell *shell,
                                   const struct chempi_cgroup *group, int up_fd)
{
    struct chempi_super *s;

    keep_only(up_fd);
    if (!chempi_become_or_tell(uid, gid, shell, group, UP_FD))
        _exit(EPERM);
    s = open_up(take_part);
    s->has_become = true;
    s->group = group;
    ev_run(s->loop, 0);
    chempi_ending_leave(s, EIO); /* as above */
}
