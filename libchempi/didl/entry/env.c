/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world model: start, finish and abort (MPI 5.0, section 11.2). What is
 * started and parked underneath, for sessions too, is core.c's.
 */
#define _GNU_SOURCE /* strnlen */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/entry/core.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/proc/spawn.h"
#include "libchempi/didl/pt2pt/buffer.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

static struct {
    pthread_t main_thread;
} env;

int chempi_env_abort(struct chempi_comm *comm, int errorcode)
{
    (void)comm;
    chempi_fatal_end(errorcode, "", true);
}

/* ---- init ---- */

static bool is_level(int level)
{
    return level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED ||
           level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE;
}

/* Wait until all processes of the job are here. */
static int fence(void)
{
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_daemon_enter_fence();
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return chempi_error_from(rc, NULL);
    return chempi_progress_wait(chempi_daemon_is_fenced, NULL);
}

static void need_world(void)
{
    chempi_lane_lock(&chempi_lane_main);
    (void)chempi_daemon_need_world(); /* the next call says what is wrong */
    chempi_lane_unlock(&chempi_lane_main);
}

static void ask_settings(void)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_tool_ask_first();
    chempi_lane_unlock(&chempi_lane_main);
}

static int init(int required, int *provided)
{
    int level = MPI_THREAD_SINGLE;
    int before = CHEMPI_PHASE_BEFORE;
    int rc;

    if (!is_level(required))
        return chempi_error_set(MPI_ERR_ARG, "no such thread level: %d",
                                required);
    /* Whoever changes the phase is the one that starts. */
    if (!atomic_compare_exchange_strong(&chempi_ctx.world, &before,
                                        CHEMPI_PHASE_STARTING))
        return chempi_error_set(
            MPI_ERR_OTHER, before >= CHEMPI_PHASE_FINALIZING
                               ? "MPI was finalized; MPI_Init cannot start it "
                                 "again (MPI_Session_init can)"
                               : "MPI is initialized already");
    rc = chempi_core_enter(required, &level);
    if (!rc)
        need_world();
    /* The fence hands out the devices' cards. All processes take part or
     * none does, whatever devices each of them has. */
    if (!rc && chempi_daemon_needs_fence()) {
        rc = fence();
        if (rc)
            chempi_core_leave();
    }
    if (!rc) {
        ask_settings();
        rc = chempi_proc_meet_parents();
        if (rc)
            chempi_core_leave();
    }
    if (rc) {
        atomic_store(&chempi_ctx.world, CHEMPI_PHASE_BEFORE);
        return rc;
    }
    env.main_thread = pthread_self();
    chempi_ctx.thread_level = level;
    chempi_comm_show_world(true);
    atomic_store(&chempi_ctx.world, CHEMPI_PHASE_UP);
    if (provided)
        *provided = level;
    return MPI_SUCCESS;
}

int chempi_env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return init(MPI_THREAD_SINGLE, NULL);
}

int chempi_env_init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc;
    (void)argv;
    return init(required, provided);
}

/* ---- finalize ---- */

static bool has_no_orphans(void *arg)
{
    uint32_t count = chempi_request_orphans(&chempi_lane_main);

    (void)arg;
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        count += chempi_request_orphans(lane);
        chempi_lane_drop(lane);
    }
    return count == 0;
}

/*
 * While sessions are open, messages of theirs may stay on the way for as long
 * as they like: only what the world model has started must end then.
 */
static int finish_traffic(void)
{
    if (chempi_core_users() > 1)
        return chempi_progress_wait_among((1u << chempi_lane_count) - 1,
                                          has_no_orphans, NULL, NULL, NULL);
    return chempi_core_drain();
}

int chempi_env_finalize(void)
{
    int rc;

    if (!chempi_ctx_has_world())
        return chempi_error_set(MPI_ERR_OTHER,
                                "called without MPI_Init, or a second time");
    chempi_comm_run_self_deleters();
    chempi_buffer_fini_world();
    rc = finish_traffic();
    if (!rc)
        rc = chempi_progress_wait(chempi_tool_has_heard, NULL);
    if (!rc && chempi_ctx.job->size > 1)
        rc = fence();
    if (rc)
        return rc;
    atomic_store(&chempi_ctx.world, CHEMPI_PHASE_AFTER);
    chempi_comm_show_world(false);
    if (chempi_core_users() > 1) {
        chempi_lane_lock(&chempi_lane_main);
        (void)chempi_daemon_leave_world(); /* only words depend on it */
        chempi_lane_unlock(&chempi_lane_main);
    }
    chempi_core_leave();
    return MPI_SUCCESS;
}

/* ---- enquiries ---- */

int chempi_env_initialized(int *flag)
{
    *flag = chempi_ctx.world >= CHEMPI_PHASE_UP;
    return MPI_SUCCESS;
}

int chempi_env_finalized(int *flag)
{
    *flag = chempi_ctx.world == CHEMPI_PHASE_AFTER;
    return MPI_SUCCESS;
}

int chempi_env_query_thread(int *provided)
{
    *provided = chempi_ctx.thread_level;
    return MPI_SUCCESS;
}

int chempi_env_is_thread_main(int *flag)
{
    *flag = pthread_equal(env.main_thread, pthread_self()) != 0;
    return MPI_SUCCESS;
}

int chempi_env_get_processor_name(char *name, int *resultlen)
{
    const struct chempi_services *s = &chempi_ctx.services;
    size_t len = strnlen(s->node_names[s->node], MPI_MAX_PROCESSOR_NAME - 1);

    memcpy(name, s->node_names[s->node], len);
    name[len] = '\0';
    *resultlen = (int)len;
    return MPI_SUCCESS;
}
