/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of the library under the world model and the sessions; see core.h
 * and doc/sessions.md.
 *
 *   K1  what is opened is opened once per process, in the order of `steps`,
 *       and closed once, at the end of the process, in the reverse order: the
 *       serial numbers that this process and its peers keep of each other
 *       start at 0 together, and could not start again on one side. A step
 *       that fails leaves nothing open. What the job looks like, which all of
 *       them read, goes last
 *   K2  users counts the world model and open sessions; at 0 the core is
 *       parked: nothing is on the way, nothing polls, the supervisor knows
 *       that this process may end
 *   K3  chempi_ctx.phase is UP exactly while users > 0
 *   K4  a core that failed to open, or was closed, stays closed: the
 *       connection to the supervisor is gone then
 *   K5  `lock` guards all of it, and is held while the core opens, parks or
 *       closes; none of these waits for another process to call anything
 */
#define _GNU_SOURCE /* getpid */
#include "libchempi/didl/entry/core.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/devices/host.h"
#include "libchempi/didl/base/crash/crash.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/comm/send_site.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/datatype/signature.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/locality/locality.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/root.h"
#include "libchempi/didl/pt2pt/buffer.h"
#include "libchempi/didl/rma/win.h"
#include "libchempi/didl/tool/checker.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/foreign/foreign_device.h"
#include "libchempi/didl/transport/foreign/guard.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/light.h"
#include "libchempi/didl/transport/match.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/progress/watcher.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/didl/transport/routed/routed.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"

#define LOCK_LIMIT_MS 500

static struct {
    pthread_mutex_t lock;
    uint32_t users;
    size_t opened;  /* steps that are open */
    uint32_t lanes; /* that there may be */
    bool has_lanes; /* it is decided how many there are */
    bool is_over;   /* K4 */
    pid_t pid;      /* of the process that opened it */
    pthread_t opener;
    struct chempi_host host;
} core = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- figures ---- */

/* Tell the supervisor what was sent since it was told last, if the job wants
 * to know (chempirun --stats, --trace-routes). Under the lane lock. */
static void report(void)
{
    struct chempi_writer text = {0};

    if (!chempi_ctx.job || !chempi_ctx.job->want_stats)
        return;
    if (chempi_ctx.job->want_stats & CHEMPI_STATS_TRAFFIC) {
        chempi_io_count_report(&text);
        chempi_rma_count_report(&text);
    }
    /* Also when there is nothing to tell. What is too long, or has no memory,
     * is missed by the supervisor, which says so. */
    if (chempi_conn_report(chempi_ctx.job->want_stats, &text) == 0)
        chempi_daemon_report(text.data, text.len);
    chempi_wire_clear(&text);
}

/* ---- the end by error ---- */

/* The client and the counters want one thread at a time, and a moment's wait
 * for others. False: one of them may be inside. It may be stuck: go on, the
 * end is near. */
static bool stay_alone(void)
{
    return chempi_lane_is_mine(&chempi_lane_main) ||
           chempi_lane_lock_within(&chempi_lane_main, LOCK_LIMIT_MS);
}

/* Tells the supervisor, if there is one, after what this rank has sent. The
 * lane stays locked. */
static bool tell_end(int exit_code, const char *text, bool is_inside)
{
    if (!is_inside) {
        chempi_lane_lock(&chempi_lane_main); /* and never lets it go */
        if (*text) /* an error; MPI_Abort is nobody else's doing */
            chempi_daemon_await_end();
    }
    if (stay_alone())
        report(); /* else another thread may change the counters */
    return chempi_daemon_abort(exit_code, text);
}

/* ---- opening and closing ---- */

static void log_to_stderr(void *arg, enum chempi_log_level level,
                          const char *module, const char *text)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};

    (void)arg;
    (void)fprintf(stderr, "chempi: rank %u: %s: %s: %s\n",
                  chempi_ctx.services.proc, words[level], module, text);
}

static int load_settings(struct chempi_err *err)
{
    int rc = chempi_tool_load(err);

    chempi_log_set(log_to_stderr, NULL,
                   (enum chempi_log_level)chempi_setting(CHEMPI_SET_LOG));
    chempi_session_load_kinds();
    chempi_datatype_prepare();
    chempi_session_prepare();
    chempi_win_prepare();
    chempi_fatal_set_tell(tell_end);
    return rc ? rc : chempi_errhandler_check_initial(err);
}

static void close_services(void)
{
    chempi_locality_forget_hardware();
    chempi_host_close(&core.host, &chempi_ctx.services);
}

static int open_services(struct chempi_err *err)
{
    int rc =
        chempi_host_open(&core.host, chempi_ctx.job, &chempi_ctx.services, err);

    if (rc)
        close_services();
    return rc;
}

/* ---- the steps ---- */

static int open_progress(struct chempi_err *err)
{
    int rc = chempi_progress_init();

    (void)err;
    if (rc)
        chempi_progress_fini();
    return rc;
}

static bool is_alone(void)
{
    return !chempi_lane_main.is_locking ||
           chempi_lane_is_mine(&chempi_lane_main);
}

static void hear_card(uint32_t proc, const char *key, const void *card,
                      size_t len)
{
    if (!chempi_tool_hear(proc, key, card, len))
        chempi_conn_card(proc, key, card, len);
}

/* A thread that sleeps already has not waited for descriptors. */
static int start_watching(struct chempi_err *err)
{
    const int rc = chempi_watcher_start(err);

    if (!rc)
        chempi_progress_rouse_own(&chempi_lane_main);
    return rc;
}

static const struct chempi_daemon_listener listener = {
    .card = hear_card,
    .lost = chempi_conn_set_ended,
    .drained = chempi_conn_drained,
    .report = report,
    .replied = chempi_root_replied,
    .unanswered = chempi_root_unanswered,
    .watch = start_watching,
    .sought = chempi_progress_announce,
    .is_alone = is_alone,
};

static int open_daemon(struct chempi_err *err)
{
    int rc = chempi_daemon_open(&listener, err);

    /* Before this process meets any other, which may then be lost. */
    if (!rc && chempi_event_is_wanted(CHEMPI_EVENT_LOST))
        chempi_daemon_care(true);
    return rc;
}

static int open_watch(struct chempi_err *err)
{
    (void)err;
    return chempi_daemon_watch();
}

static int open_comm(void)
{
    return chempi_comm_init(chempi_ctx.job->rank, chempi_ctx.job->size);
}

static int attach_tools(struct chempi_err *err)
{
    (void)err;
    chempi_tool_attach();
    return 0;
}

static void close_progress(void)
{
    chempi_agent_fini();
    chempi_watcher_stop();
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        chempi_request_fini(chempi_lanes[i]);
    chempi_lanes_close(1);
    chempi_progress_fini();
}

/* In all lanes; the first one of the first that has any. */
static void find_lost(struct chempi_match_lost *lost)
{
    chempi_match_find_lost(chempi_lane_main.match, lost);
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        struct chempi_match_lost more;

        chempi_match_find_lost(lane->match, &more);
        more.count += lost->count;
        if (lost->count == 0)
            *lost = more;
        lost->count = more.count;
    }
}

static void close_conn(void)
{
    struct chempi_match_lost lost;

    find_lost(&lost);
    if (lost.count)
        chempi_log(CHEMPI_LOG_WARNING, "core",
                   "%llu message%s never received, the first one from rank %d "
                   "of its communicator with tag %d (%llu bytes); chempirun "
                   "--check tells more",
                   (unsigned long long)lost.count,
                   lost.count == 1 ? " was" : "s were", lost.source, lost.tag,
                   (unsigned long long)lost.bytes);
    for (uint32_t i = 0; i < chempi_lane_count; i++) {
        chempi_engine_forget_early(chempi_lanes[i]);
        (void)chempi_match_fini(chempi_lanes[i]->match);
    }
    chempi_conn_close();
    chempi_foreign_fini();
    chempi_guard_fini();
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        chempi_sysmsg_fini(chempi_lanes[i]);
}

/* Lanes that processes of this node may have, if it is for this one to say. */
static uint32_t wish_lanes(void)
{
    const uint64_t set = chempi_setting(CHEMPI_SET_LANES);
    const uint32_t cores = chempi_affinity_cores_each();

    if (set > 0)
        return (uint32_t)set;
    if (cores < 2)
        return 1; /* a processor for each: one thread at a time runs */
    return cores < CHEMPI_LANES_MAX ? cores + 1 : CHEMPI_LANES_MAX;
}

/* Some of the devices may be open when another one fails. */
static int open_conn(void)
{
    struct chempi_conn_params params = {
        .sink = &chempi_engine_sink,
        .foreign_sink = chempi_guard_sink(),
        .overlay = &chempi_routed_overlay,
        .lanes = wish_lanes(),
        .settings = chempi_tool_device_settings,
        .resolved = chempi_tool_ask_of,
    };
    struct chempi_err err = {0};
    int rc;

    rc = chempi_region_agree_lanes(chempi_ctx.services.region, CHEMPI_LANES_MAX,
                                   &params.lanes, &err);
    if (rc < 0)
        return chempi_error_from(rc, &err);
    core.lanes = params.lanes;
    chempi_sysmsg_init();
    chempi_send_site_register();
    chempi_message_register();
    chempi_foreign_register();
    rc = chempi_conn_open(&params);
    if (rc == MPI_SUCCESS) {
        chempi_daemon_ask_memory();
        rc = chempi_progress_wait(chempi_daemon_has_memory, NULL);
    }
    if (rc != MPI_SUCCESS)
        close_conn();
    return rc;
}

/* One of the two opens: with an errno and words, or with an error class. Close
 * is NULL where nothing is to be given back. */
static const struct step {
    int (*open)(struct chempi_err *err);
    int (*open_mpi)(void);
    void (*close)(void);
} steps[] = {
    {.open = load_settings}, /* the tool interface reads them to the end */
    {.open = open_daemon, .close = chempi_daemon_close},
    {.open = open_services, .close = close_services},
    {.open = chempi_tool_compare_here},
    {.open = chempi_tool_publish, .close = chempi_tool_forget_others},
    {.open = open_progress, .close = close_progress},
    {.open = open_watch, .close = chempi_daemon_unwatch},
    {.open_mpi = open_comm, .close = chempi_comm_fini},
    {.open_mpi = open_conn, .close = close_conn},
    {.open_mpi = chempi_coll_init, .close = chempi_coll_fini},
    {.open = chempi_coll_async_init, .close = chempi_coll_async_fini},
    {.open_mpi = chempi_io_init, .close = chempi_io_fini},
    {.open = attach_tools, .close = chempi_tool_detach},
};

static void set_locking(bool is_locking)
{
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        chempi_lane_set_locking(chempi_lanes[i], is_locking);
}

/* No other thread is in MPI. */
static void close_all(void)
{
    chempi_crash_unwatch();
    set_locking(false);
    while (core.opened > 0) {
        const struct step *step = &steps[--core.opened];

        if (step->close)
            step->close();
    }
}

static int open_all(void)
{
    while (core.opened < CHEMPI_ARRAY_LEN(steps)) {
        const struct step *step = &steps[core.opened];
        struct chempi_err err = {0};
        int rc = step->open_mpi ? step->open_mpi() : step->open(&err);

        if (rc) {
            core.is_over = true;
            close_all();
            return step->open_mpi ? rc : chempi_error_from(rc, &err);
        }
        core.opened++;
    }
    chempi_tool_attach_checker();
    chempi_crash_watch(chempi_fatal_place_words());
    core.pid = getpid();
    core.opener = pthread_self();
    if (chempi_ctx.services.proc == 0) /* one of a job is enough */
        chempi_tool_warn_of_strays();
    return MPI_SUCCESS;
}

/* ---- entering and leaving ---- */

static int open_locked(void)
{
    if (core.opened > 0)
        return MPI_SUCCESS;
    if (core.is_over)
        return chempi_error_set(MPI_ERR_OTHER,
                                "the library could not start before, or this "
                                "process ends: it cannot start again");
    return open_all();
}

/* False: no memory, and nothing has changed. */
static bool add_lane(void)
{
    struct chempi_lane *lane = chempi_lanes_add();

    if (!lane)
        return false;
    if (chempi_sysmsg_open_lane(lane) == 0 &&
        chempi_conn_open_lane(lane) == MPI_SUCCESS) {
        chempi_progress_open_lane(lane);
        chempi_request_open_lane(lane);
        chempi_lane_set_locking(lane, true);
        return true;
    }
    chempi_error_forget(); /* nobody is told */
    chempi_sysmsg_fini(lane);
    chempi_lanes_close(lane->number);
    return false;
}

/* Add lanes, for a process that starts with MPI_THREAD_MULTIPLE: as many as
 * others of its node may think that it has. Without memory there are fewer. */
static void open_lanes(uint32_t count)
{
    const struct chempi_services *s = &chempi_ctx.services;

    if (chempi_conn_can_add_lanes() && !chempi_signature_is_watched() &&
        chempi_lane_main.is_ordered)
        while (chempi_lane_count < count && add_lane())
            ;
    atomic_store_explicit(&s->wakes[s->local_rank].lanes, chempi_lane_count,
                          memory_order_release); /* partner: common_lanes() */
}

/*
 * L1 of lane.h: locking starts only while no other thread can be in MPI. That
 * is certain for the first user, and for the thread that opened the core when
 * nobody was granted MPI_THREAD_MULTIPLE; another thread gets less.
 */
static int grant_locked(int required)
{
    /* What has more lanes than one locks them to the end. */
    bool wants_lock = required == MPI_THREAD_MULTIPLE ||
                      chempi_tool_is_threaded() || chempi_lane_count > 1;

    if (core.users == 0) {
        chempi_agent_init();
        core.opener = pthread_self();
        set_locking(wants_lock);
        if (!core.has_lanes)
            open_lanes(wants_lock ? core.lanes : 1);
        core.has_lanes = true;
    } else if (wants_lock && !chempi_lane_main.is_locking) {
        if (!pthread_equal(core.opener, pthread_self()))
            return required < MPI_THREAD_SERIALIZED ? required
                                                    : MPI_THREAD_SERIALIZED;
        chempi_agent_stop();
        set_locking(true);
    }
    return required;
}

/* The launcher hears of the first user before anything is on the way. */
static int announce_locked(void)
{
    struct chempi_err err = {0};
    int rc = core.users > 0 ? 0 : chempi_daemon_begin(&err);

    return rc ? chempi_error_from(rc, &err) : MPI_SUCCESS;
}

int chempi_core_enter(int required, int *provided)
{
    int rc;

    (void)pthread_mutex_lock(&core.lock);
    rc = open_locked();
    if (!rc)
        rc = announce_locked();
    if (!rc) {
        *provided = grant_locked(required);
        if (required > MPI_THREAD_SINGLE)
            chempi_affinity_widen();
        if (core.users++ == 0)
            atomic_store_explicit(&chempi_ctx.phase, CHEMPI_PHASE_UP,
                                  memory_order_release);
    }
    (void)pthread_mutex_unlock(&core.lock);
    return rc;
}

static bool is_lane_drained(const struct chempi_lane *lane)
{
    return chempi_engine_is_idle(lane) &&
           chempi_sysmsg_waiting_count(lane) == 0 &&
           chempi_request_orphans(lane) == 0 && chempi_conn_is_drained(lane);
}

/* Under the first lane's lock. */
static bool is_drained(void *arg)
{
    bool is = is_lane_drained(&chempi_lane_main);

    (void)arg;
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        is &= is_lane_drained(lane);
        if (lane->is_locking)
            chempi_lane_drop(lane);
    }
    chempi_foreign_await_end(is);
    return is;
}

int chempi_core_drain(void)
{
    return chempi_progress_wait_among((1u << chempi_lane_count) - 1, is_drained,
                                      NULL, NULL, NULL);
}

static void park_locked(void)
{
    chempi_buffer_fini();
    chempi_light_forget();
    chempi_lane_lock(&chempi_lane_main);
    chempi_port_close_all();
    chempi_lane_unlock(&chempi_lane_main);
    (void)chempi_core_drain(); /* fails only when the job is being ended */
    chempi_agent_fini();
    report();
    chempi_daemon_end(chempi_ctx.world == CHEMPI_PHASE_AFTER);
    set_locking(chempi_lane_count > 1);
    atomic_store(&chempi_ctx.phase, chempi_ctx.world == CHEMPI_PHASE_AFTER
                                        ? CHEMPI_PHASE_AFTER
                                        : CHEMPI_PHASE_BEFORE);
}

void chempi_core_leave(void)
{
    (void)pthread_mutex_lock(&core.lock);
    if (core.users == 1)
        park_locked();
    core.users--;
    (void)pthread_mutex_unlock(&core.lock);
}

uint32_t chempi_core_users(void)
{
    uint32_t users;

    (void)pthread_mutex_lock(&core.lock);
    users = core.users;
    (void)pthread_mutex_unlock(&core.lock);
    return users;
}

/*
 * The end of the process, or of the library in it: tell the peers that no
 * more will come, give the memory back. Not while the library is in use (the
 * supervisor must see a bad end), nor in a child that was forked. Who has the
 * lock now may be a thread that the end of the process stops, or this one, on
 * the way out of an open that failed: then it is in use, and not waited for.
 */
CHEMPI_AT_UNLOAD static void unload(void)
{
    if (pthread_mutex_trylock(&core.lock) != 0)
        return;
    if (core.users == 0 && core.opened > 0 && core.pid == getpid()) {
        core.is_over = true;
        close_all();
    }
    (void)pthread_mutex_unlock(&core.lock);
}
