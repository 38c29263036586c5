/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start, finish and abort (MPI 5.0, chapter 11). What is set up in init is
 * taken down in finalize in the reverse order:
 *   daemon connection, region and services, devices and cards, progress,
 *   communicators, collectives
 */
#define _GNU_SOURCE /* gethostname */
#include "libchempi/didl/env.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/buffer.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/comm.h"
#include "libchempi/didl/conn.h"
#include "libchempi/didl/ctx.h"
#include "libchempi/didl/daemon.h"
#include "libchempi/didl/engine.h"
#include "libchempi/didl/error.h"
#include "libchempi/didl/lane.h"
#include "libchempi/didl/progress.h"

struct chempi_ctx chempi_ctx;

static struct {
    pthread_t main_thread;
    void *table_data; /* mapped connection table */
    size_t table_len; /* bytes */
    struct chempi_table *table;
} env;

/* ---- the end by error ---- */

/* "rank 3 on node a2", or the host's name when there is no job yet. */
static void put_place(char *out, size_t room)
{
    const struct chempi_services *s = &chempi_ctx.services;
    char host[256] = "";

    if (chempi_ctx_is_up() && s->node_names) {
        (void)snprintf(out, room, "rank %u on node %s", s->proc,
                       s->node_names[s->node]);
        return;
    }
    (void)gethostname(host, sizeof(host) - 1); /* "" when it fails */
    (void)snprintf(out, room, "process %ld on host %s", (long)getpid(), host);
}

/* What a launcher would have said. */
static void print_end(int code, const char *text)
{
    char place[320];

    put_place(place, sizeof(place));
    if (*text)
        (void)fprintf(stderr, "%s: %s\n", place, text);
    else
        (void)fprintf(stderr, "%s called MPI_Abort with code %d\n", place,
                      code);
}

void chempi_env_end(int exit_code, const char *text)
{
    const int status = exit_code & 0xff;

    /* The client wants one thread at a time. If the lock cannot be had, its
     * holder may be this thread, or be stuck: go on, the end is near. */
    (void)pthread_mutex_trylock(&chempi_lane_main.lock);
    if (!chempi_ctx.client ||
        chempi_client_abort(chempi_ctx.client, exit_code, text) != 0)
        print_end(exit_code, text);
    (void)fflush(NULL);
    _exit(status ? status : 1);
}

void chempi_env_die(int exit_code, const char *fmt, ...)
{
    char text[CHEMPI_ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    chempi_env_end(exit_code, text);
}

int chempi_env_abort(struct chempi_comm *comm, int errorcode)
{
    (void)comm;
    chempi_env_end(errorcode, "");
}

/* ---- init ---- */

static void log_to_stderr(void *arg, enum chempi_log_level level,
                          const char *module, const char *text)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};

    (void)arg;
    (void)fprintf(stderr, "chempi: rank %u: %s: %s: %s\n",
                  chempi_ctx.services.proc, words[level], module, text);
}

/* CHEMPI_LOG=error|warning|info|debug; warnings by default. */
static void start_log(void)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    const char *wish = getenv("CHEMPI_LOG");
    enum chempi_log_level level = CHEMPI_LOG_WARNING;

    for (int i = 0; wish && i < 4; i++)
        if (strcmp(wish, words[i]) == 0)
            level = (enum chempi_log_level)i;
    chempi_log_set(log_to_stderr, NULL, level);
}

static int open_table(int fd, struct chempi_err *err)
{
    struct stat st;
    int rc;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) != 0)
        return chempi_err_set(err, -errno, "connection table: %s",
                              chempi_err_name(errno));
    env.table_len = (size_t)st.st_size;
    env.table_data =
        chempi_sys->mmap(NULL, env.table_len, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (env.table_data == MAP_FAILED) {
        env.table_data = NULL;
        return chempi_err_set(err, -errno, "connection table: %s",
                              chempi_err_name(errno));
    }
    rc = chempi_table_open(env.table_data, env.table_len, &env.table, err);
    return rc ? rc : 0;
}

static int open_services(const struct chempi_job *job, struct chempi_err *err)
{
    struct chempi_services *s = &chempi_ctx.services;
    int rc;

    *s = (struct chempi_services){
        .job_id = job->id,
        .secret = job->secret,
        .proc = job->rank,
        .proc_count = job->size,
        .node = job->node,
        .node_count = job->node_count,
        .local_rank = job->local_rank,
        .local_size = job->local_size,
        .node_of_proc = job->node_of_rank,
        .local_rank_of_proc = job->local_rank_of_rank,
        .node_names = job->node_names,
        .wake_fds = job->wake_fds,
    };
    rc = open_table(job->table_fd, err);
    if (rc)
        return rc;
    s->table = env.table;
    rc = chempi_region_open(job->region_fd, job->local_size, &s->region, err);
    if (rc)
        return rc;
    s->wakes = chempi_region_wakes(s->region);
    s->is_wake_registered =
        !chempi_region_is_fenced(s->region) && chempi_wake_register();
    rc = chempi_pollset_create(&s->pollset);
    if (rc)
        return chempi_err_set(err, rc, "epoll: %s", chempi_err_name(rc));
    return 0;
}

static void close_services(void)
{
    struct chempi_services *s = &chempi_ctx.services;

    chempi_pollset_destroy(s->pollset);
    s->pollset = NULL;
    chempi_region_close(s->region);
    s->region = NULL;
    chempi_table_close(env.table);
    env.table = NULL;
    s->table = NULL;
    if (env.table_data)
        (void)chempi_sys->munmap(env.table_data, env.table_len);
    env.table_data = NULL;
}

/* Some device has published a card, so that somebody may ask for it. */
static bool has_cards(void)
{
    for (uint32_t i = 0; i < chempi_conn_device_count(); i++)
        if (chempi_conn_device(i)->caps->flags & CHEMPI_DEV_NEEDS_CARD)
            return true;
    return false;
}

static int open_all(void)
{
    struct chempi_err err = {0};
    int rc;

    rc = chempi_daemon_open(&err);
    if (!rc)
        rc = open_services(chempi_ctx.job, &err);
    if (!rc)
        rc = chempi_progress_init();
    if (!rc)
        rc = chempi_daemon_watch();
    if (rc)
        return chempi_error_from(rc, &err);
    rc = chempi_conn_open(&chempi_engine_sink);
    if (!rc)
        rc = chempi_comm_init(chempi_ctx.job->rank, chempi_ctx.job->size);
    if (!rc)
        rc = chempi_coll_init();
    return rc;
}

static int init(int required, int *provided)
{
    int rc;

    if (chempi_ctx.phase != CHEMPI_PHASE_BEFORE)
        return chempi_error_set(MPI_ERR_OTHER,
                                chempi_ctx.phase == CHEMPI_PHASE_AFTER
                                    ? "MPI was finalized; it cannot start again"
                                    : "MPI is initialized already");
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
        return chempi_error_set(MPI_ERR_ARG, "no such thread level: %d",
                                required);
    start_log();
    env.main_thread = pthread_self();
    chempi_ctx.thread_level = required;
    rc = open_all();
    if (rc)
        return rc;
    if (has_cards()) {
        rc = chempi_daemon_fence();
        if (rc)
            return rc;
    }
    chempi_lane_main.is_locking = required == MPI_THREAD_MULTIPLE;
    if (chempi_ctx.client)
        (void)chempi_client_set_initialized(chempi_ctx.client);
    chempi_ctx.phase = CHEMPI_PHASE_UP;
    if (provided)
        *provided = required;
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

static bool is_drained(void *arg)
{
    (void)arg;
    return chempi_engine_is_idle() && chempi_request_orphans() == 0 &&
           chempi_conn_is_drained();
}

static void report_traffic(void)
{
    char *text = NULL;
    size_t len = 0;

    if (!chempi_ctx.client || !chempi_ctx.job->want_stats)
        return;
    if (chempi_conn_report(&text, &len) == 0 && len)
        (void)chempi_client_report(chempi_ctx.client, text, len);
    free(text);
}

int chempi_env_finalize(void)
{
    uint64_t dropped;
    int rc;

    chempi_comm_run_self_deleters();
    chempi_buffer_fini();
    rc = chempi_progress_wait(is_drained, NULL);
    if (!rc && chempi_ctx.job->size > 1)
        rc = chempi_daemon_fence();
    if (rc)
        return rc;
    chempi_ctx.phase = CHEMPI_PHASE_FINALIZING;
    report_traffic();
    chempi_coll_fini();
    dropped = chempi_match_fini();
    if (dropped)
        chempi_log(CHEMPI_LOG_INFO, "env", "%llu messages were never received",
                   (unsigned long long)dropped);
    chempi_conn_close();
    chempi_comm_fini();
    chempi_request_fini();
    if (chempi_ctx.client) {
        (void)chempi_client_set_finalized(chempi_ctx.client);
        (void)chempi_client_flush(chempi_ctx.client, 5000);
    }
    chempi_progress_fini();
    chempi_daemon_close();
    close_services();
    chempi_lane_main.is_locking = false;
    chempi_ctx.phase = CHEMPI_PHASE_AFTER;
    return MPI_SUCCESS;
}

/* ---- enquiries ---- */

int chempi_env_initialized(int *flag)
{
    *flag = chempi_ctx.phase != CHEMPI_PHASE_BEFORE;
    return MPI_SUCCESS;
}

int chempi_env_finalized(int *flag)
{
    *flag = chempi_ctx.phase == CHEMPI_PHASE_AFTER;
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
