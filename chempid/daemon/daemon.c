/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon of one node: its frame; see daemon.h. */
#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include "chempid/daemon/daemon.h"
#include "chempid/daemon/news.h"
#include "chempid/daemon/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/daemon/grants.h"
#include "chempid/helper/drop.h"
#include "chempid/helper/say.h"
#include "chempid/peers/advertise.h"
#include "chempid/tree/limits.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/fd/file.h"
#include "common/fd/rights.h"
#include "common/table/load.h"
#include "common/table/table.h"

#define REST_S 0.2 /* without descriptors */
#define JOIN_S 15  /* with the proof */

/* ---- joining ------------------------------------------------------------- */

/* Whoever has started the daemon waits; without them it does not stay. */
static int tell_ready(struct chempi_daemon *d)
{
    ssize_t n;

    if (d->ready_fd < 0)
        return 0;
    n = chempi_say_leave();
    if (n < 0) {
        chempi_log(CHEMPI_LOG_ERROR, "daemon",
                   "cannot leave standard error: %s", chempi_err_name((int)-n));
        return (int)n;
    }
    while ((n = write(d->ready_fd, "r", 1)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        chempi_log(CHEMPI_LOG_ERROR, "daemon",
                   "whoever started this daemon is gone");
    (void)close(d->ready_fd); /* the byte is there, or nobody */
    d->ready_fd = -1;
    return n < 0 ? -EPIPE : 0;
}

static void fail(struct chempi_daemon *d)
{
    d->status = 1;
    ev_break(d->loop, EVBREAK_ALL);
}

/* The daemon that we are to join has told us all, or is lost before. */
static void end_join(struct chempi_daemon *d, const char *why)
{
    d->joining = NULL;
    ev_timer_stop(d->loop, &d->join_timer);
    if (why)
        chempi_log(CHEMPI_LOG_ERROR, "daemon", "cannot join %s: %s",
                   d->opt->join, why);
    if (why || tell_ready(d))
        fail(d);
}

static void join_is_late(struct ev_loop *loop, ev_timer *w, int events)
{
    char text[96];

    (void)loop;
    (void)events;
    (void)snprintf(text, sizeof(text),
                   "the daemon there has not answered within %d seconds",
                   JOIN_S);
    end_join(w->data, text);
}

static int join(struct chempi_daemon *d, struct chempi_err *err)
{
    struct chempi_conn *c;

    if (!d->opt->join)
        return 0;
    if (d->tcp_fd < 0)
        return chempi_err_set(err, -EINVAL,
                              "--join needs --listen: the others must reach "
                              "this daemon");
    c = chempi_conns_call(&d->conns, "", d->opt->join, err);
    if (!c)
        return err->code;
    chempi_beat_wake(&d->beat);
    chempi_nodes_tell(d, c);
    d->joining = c;
    ev_timer_init(&d->join_timer, join_is_late, JOIN_S, 0.0);
    d->join_timer.data = d;
    ev_timer_start(d->loop, &d->join_timer);
    return 0;
}

/* R4 of news.h */
static void pay_news(struct chempi_conn *conn)
{
    if (conn->owes_news)
        chempi_nodes_tell(conn->conns->arg, conn);
}

/* One command line for all nodes tells the first one to join itself. */
static int on_greet(struct chempi_conn *conn, struct chempi_err *err)
{
    struct chempi_daemon *d = conn->conns->arg;

    if (conn->kind != CHEMPI_CONN_LOCAL) {
        chempi_beat_wake(&d->beat);
        chempi_beat_greet(&d->beat, conn);
        chempi_rivals_greeted(d, conn);
    }
    if (conn != d->joining || strcmp(conn->peer, d->opt->name) != 0)
        return 0;
    if (!chempi_conns_is_own(conn))
        return chempi_err_set(err, -EEXIST,
                              "the daemon there has the same name (%s); say "
                              "another --name",
                              d->opt->name);
    end_join(d, NULL);
    return 0;
}

/* ---- frames -------------------------------------------------------------- */

/* Of a name, of a beat, of a question; of a job all the rest. */
static int take_refusal(struct chempi_daemon *d, struct chempi_conn *from,
                        const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct chempi_reader r;
    const char *why;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (chempi_wire_get_u32(&r)) {
    case CHEMPI_MSG_QUERY:
        return chempi_query_refused(d, from, frame, err);
    case CHEMPI_MSG_BEAT:
        chempi_beat_refused(from, &r);
        return 0;
    case CHEMPI_MSG_NEWS:
        why = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
        if (from == d->joining)
            end_join(d, why);
        return 0;
    default:
        return chempi_jobs_take(d, from, frame, err);
    }
}

static int dispatch(struct chempi_conn *conn, const struct chempi_frame *frame,
                    struct chempi_err *err)
{
    struct chempi_daemon *d = conn->conns->arg;
    const bool is_below = conn->kind == CHEMPI_CONN_OUTBOUND;
    int rc;

    switch (frame->type) {
    case CHEMPI_MSG_LAUNCH:
        return is_below ? chempi_err_set(err, -EBADMSG, "out of place")
                        : chempi_jobs_launch(d, conn, frame, err);
    case CHEMPI_MSG_QUERY:
        return chempi_query_ask(d, conn, frame, err);
    case CHEMPI_MSG_STATUS:
        return chempi_query_answer(d, conn, frame, err);
    case CHEMPI_MSG_REQUEST:
        return chempi_requests_take(d, conn, frame, err);
    case CHEMPI_MSG_REPLY:
        return chempi_orders_answer(d, conn, frame, err);
    case CHEMPI_MSG_NEWS:
        if (conn->kind == CHEMPI_CONN_LOCAL)
            return chempi_err_set(err, -EBADMSG, "out of place");
        rc = chempi_news_take(d, conn, frame, err);
        if (conn == d->joining)
            end_join(d, rc ? err->text : NULL);
        return rc;
    case CHEMPI_MSG_REFUSED:
        return take_refusal(d, conn, frame, err);
    case CHEMPI_MSG_BEAT:
        chempi_beat_take(conn, frame);
        return 0;
    default:
        return chempi_jobs_take(d, conn, frame, err);
    }
}

/* D5. A local client's connection is its own. */
int chempi_daemon_take(struct chempi_conn *conn,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    if (!dispatch(conn, frame, err))
        return 0;
    if (conn->kind == CHEMPI_CONN_LOCAL)
        return err->code;
    chempi_log(CHEMPI_LOG_WARNING, "daemon",
               "refused message %u of node %s: %.500s", frame->type, conn->peer,
               err->text);
    if (frame->type == CHEMPI_MSG_LAUNCH || frame->type == CHEMPI_MSG_QUERY)
        chempi_conns_refuse(conn, frame->type, frame->job, err->text);
    *err = (struct chempi_err){0};
    return 0;
}

static void on_lost(struct chempi_conn *conn, const char *text)
{
    struct chempi_daemon *d = conn->conns->arg;

    if (d->is_stopping)
        return;
    if (conn == d->joining)
        end_join(d, text);
    else if (conn->kind != CHEMPI_CONN_LOCAL)
        chempi_log(conn->kind == CHEMPI_CONN_OUTBOUND ? CHEMPI_LOG_WARNING
                                                      : CHEMPI_LOG_INFO,
                   "daemon", "connection with node %s: %s",
                   *conn->peer ? conn->peer : "?", text);
    chempi_rivals_lost(d, conn);
    chempi_query_lose(d, conn, text);
    chempi_orders_lose(d, conn, text);
    chempi_jobs_lose(d, conn, text);
}

static bool is_busy(const struct chempi_conn *conn)
{
    return chempi_jobs_has(conn->conns->arg, conn);
}

static const struct chempi_conn_ops conn_ops = {.on_greet = on_greet,
                                                .on_frame = chempi_daemon_take,
                                                .on_lost = on_lost,
                                                .is_busy = is_busy};

/* ---- events -------------------------------------------------------------- */

static void listen_again(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_daemon *d = w->data;

    (void)events;
    ev_io_start(loop, &d->unix_io);
    if (d->tcp_fd >= 0)
        ev_io_start(loop, &d->tcp_io);
}

/* A connection that cannot be taken keeps its listener readable: do not look
 * at it for a while, and do not repeat the complaint. */
static void rest(struct chempi_daemon *d, int code)
{
    if (ev_now(d->loop) - d->complained > CHEMPI_CONN_COMPLAINT_S) {
        d->complained = ev_now(d->loop);
        chempi_log(CHEMPI_LOG_ERROR, "daemon",
                   "cannot take a connection: %s; raise the limit of open "
                   "files",
                   chempi_err_name(code));
    }
    ev_io_stop(d->loop, &d->unix_io);
    if (d->tcp_fd >= 0)
        ev_io_stop(d->loop, &d->tcp_io);
    ev_timer_stop(d->loop, &d->rest);
    ev_timer_init(&d->rest, listen_again, REST_S, 0.0);
    d->rest.data = d;
    ev_timer_start(d->loop, &d->rest);
}

static void accept_all(struct chempi_daemon *d, int fd,
                       enum chempi_conn_kind kind)
{
    int got = 0;

    for (int i = 0; i < CHEMPI_CONN_BATCH && got >= 0; i++) {
        got = chempi_sys->accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (got >= 0)
            chempi_conns_accept(&d->conns, got, kind);
    }
    if (got >= 0)
        return;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
        errno == ENOMEM)
        rest(d, errno);
}

static void local_calls(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_daemon *d = w->data;

    (void)loop;
    (void)events;
    accept_all(d, d->unix_fd, CHEMPI_CONN_LOCAL);
}

static void daemon_calls(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_daemon *d = w->data;

    (void)loop;
    (void)events;
    accept_all(d, d->tcp_fd, CHEMPI_CONN_INBOUND);
}

/* Who asked may be revoked by what was read. */
static void recheck(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_daemon *d = w->data;

    (void)loop;
    (void)events;
    chempi_conns_recheck(&d->conns);
    chempi_news_recheck(d);
}

static void signalled(void *arg, uint32_t number)
{
    struct chempi_daemon *d = arg;

    (void)number;
    ev_break(d->loop, EVBREAK_ALL);
}

enum { SOCKET_FILE, READY_FILE }; /* for the keeper */

static int start_keeper(struct chempi_daemon *d, struct chempi_err *err);

static void keeper_ended(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_daemon *d = w->data;
    struct chempi_err err;

    (void)events;
    ev_io_stop(loop, w);
    chempi_supervisors_yield(&d->supervisors, d->keeper.pid);
    chempi_keeper_forget(&d->keeper);
    if (start_keeper(d, &err))
        chempi_log(CHEMPI_LOG_ERROR, "daemon", "%s", err.text);
}

static int start_keeper(struct chempi_daemon *d, struct chempi_err *err)
{
    int rc;

    d->keeper.paths[SOCKET_FILE] = d->socket_path;
    d->keeper.paths[READY_FILE] = d->ready_path;
    d->keeper.groups = &d->groups;
    rc = chempi_keeper_start(&d->keeper, err);
    if (rc)
        return rc;
    if (chempi_supervisors_spare(&d->supervisors, d->keeper.pid)) {
        chempi_keeper_forget(&d->keeper); /* a stray now */
        return chempi_err_set(err, -ENOMEM, "out of memory");
    }
    ev_io_init(&d->keeper_io, keeper_ended, d->keeper.fd, EV_READ);
    d->keeper_io.data = d;
    ev_io_start(d->loop, &d->keeper_io);
    return 0;
}

/* ---- beginning ----------------------------------------------------------- */

static int load_keys(struct chempi_daemon *d, struct chempi_err *err)
{
    d->secrets.cluster_file = d->opt->key;
    d->secrets.node_file = d->opt->node_key;
    d->secrets.trust_file = d->opt->trust;
    if (!d->opt->key)
        return d->opt->node_key || d->opt->trust
                   ? chempi_err_set(err, -EINVAL,
                                    "--node-key and --trust need the "
                                    "cluster's key (--key)")
                   : 0;
    return chempi_secrets_open(&d->secrets, err);
}

static int make_directory(struct chempi_daemon *d, struct chempi_err *err)
{
    const bool is_root = geteuid() == 0;
    const mode_t mask = umask(S_IWGRP | S_IWOTH); /* users find it */
    struct stat link;
    struct stat st;
    int rc = mkdir(d->opt->dir, is_root ? 0755 : 0700) < 0 ? -errno : 0;

    (void)umask(mask);
    if (rc && rc != -EEXIST)
        return chempi_err_set(err, rc, "cannot make directory %s: %s",
                              d->opt->dir, chempi_err_name(rc));
    if (lstat(d->opt->dir, &link) < 0 || stat(d->opt->dir, &st) < 0)
        return chempi_err_set(err, -errno, "%s: %s", d->opt->dir,
                              chempi_err_name(errno));
    if (!chempi_file_is_ours(&link)) /* who has made it may change it */
        return chempi_err_set(err, -EPERM, "%s: a link of another user",
                              d->opt->dir);
    if (!S_ISDIR(st.st_mode) || !chempi_file_is_safe(&st))
        return chempi_err_set(err, -EPERM,
                              "%s: not a directory of ours that others cannot "
                              "write (chmod go-w)",
                              d->opt->dir);
    return chempi_users_decide(d->opt->serve, d->opt->dir, &d->serves_users,
                               err);
}

/* Complete or not there: others read it at any time. */
static int write_ready_file(struct chempi_daemon *d, struct chempi_err *err)
{
    char part[sizeof(d->ready_path) + 24];
    FILE *file;
    bool is_good;
    int rc = chempi_keeper_name(d->ready_path, part, sizeof(part), err);

    if (!rc)
        (void)unlink(part); /* of a process that had our number, or nothing */
    file = rc ? NULL : fopen(part, "wex");
    if (!file)
        return rc ? rc
                  : chempi_err_set(err, -errno, "cannot write %s: %s", part,
                                   chempi_err_name(errno));
    is_good =
        fprintf(file, "%s %s %u\n", d->opt->name, d->address, d->slots) > 0;
    if (d->serves_users) /* read by daemons that are not root any more */
        is_good &= fchmod(fileno(file), 0644) == 0;
    if (fclose(file) != 0 || !is_good)
        return chempi_err_set(err, -EIO, "cannot write %s: %s", part,
                              chempi_err_name(errno));
    rc = chempi_keeper_tell(&d->keeper, READY_FILE, part, err);
    if (!rc && rename(part, d->ready_path) < 0)
        rc = chempi_err_set(err, -errno, "cannot write %s: %s", d->ready_path,
                            chempi_err_name(errno));
    return rc;
}

/* --listen, or what the cluster file says of this node. */
static const char *listen_address(const struct chempi_daemon *d)
{
    const struct chempi_member *m;

    if (d->opt->listen)
        return d->opt->listen;
    m = d->opt->cluster ? chempi_members_find(&d->members, d->opt->name) : NULL;
    return m ? m->address : NULL;
}

/* What others call: of all addresses, what the cluster file says, or the only
 * one. */
static int find_address(struct chempi_daemon *d, struct chempi_addr *bound,
                        struct chempi_err *err)
{
    const struct chempi_member *m;
    int rc;

    if (!chempi_addr_is_any(d->address))
        return 0;
    m = chempi_members_find(&d->members, d->opt->name);
    if (m) {
        (void)snprintf(d->address, sizeof(d->address), "%s", m->address);
        return 0;
    }
    rc = chempi_advertise_find(bound, err);
    if (!rc)
        chempi_addr_format(bound, d->address, sizeof(d->address));
    return rc;
}

static int listen_tcp(struct chempi_daemon *d, struct chempi_err *err)
{
    const char *text = listen_address(d);
    struct chempi_addr addr;
    struct chempi_addr bound;
    int rc;

    (void)snprintf(d->address, sizeof(d->address), CHEMPI_NO_ADDRESS);
    if (!text)
        return 0;
    if (!d->secrets.keys)
        return chempi_err_set(err, -EINVAL,
                              "listening on %s needs the cluster's key: make "
                              "one with 'chempictl key FILE' and say --key "
                              "FILE on every node",
                              text);
    rc = chempi_addr_parse(text, &addr, err);
    if (rc)
        return rc;
    rc = chempi_addr_listen(&addr, &bound, err);
    if (rc < 0)
        return rc;
    d->tcp_fd = rc;
    chempi_addr_format(&bound, d->address, sizeof(d->address));
    rc = find_address(d, &bound, err);
    if (rc)
        return rc;
    ev_io_init(&d->tcp_io, daemon_calls, d->tcp_fd, EV_READ);
    d->tcp_io.data = d;
    ev_io_start(d->loop, &d->tcp_io);
    return 0;
}

static int name_files(struct chempi_daemon *d, struct chempi_err *err)
{
    int n = snprintf(d->socket_path, sizeof(d->socket_path),
                     "%s/%s" CHEMPI_SOCKET_SUFFIX, d->opt->dir, d->opt->name);
    int m = snprintf(d->ready_path, sizeof(d->ready_path),
                     "%s/%s" CHEMPI_READY_SUFFIX, d->opt->dir, d->opt->name);

    if (n < 0 || (size_t)n >= sizeof(d->socket_path) || m < 0 ||
        (size_t)m >= sizeof(d->ready_path))
        return chempi_err_set(err, -ENAMETOOLONG, "%s: too long a name",
                              d->opt->dir);
    return 0;
}

/* From its passing name to its own; another daemon may have been faster. */
static int give_name(const struct chempi_daemon *d, const char *part,
                     struct chempi_err *err)
{
    if (link(part, d->socket_path) == 0) {
        (void)unlink(part); /* else the keeper does */
        return 0;
    }
    if (errno == EEXIST)
        return chempi_err_set(err, -EADDRINUSE,
                              "a daemon of this name is already running (%s)",
                              d->socket_path);
    if (rename(part, d->socket_path) == 0) /* no links there */
        return 0;
    return chempi_err_set(err, -errno, "%s: %s", d->socket_path,
                          chempi_err_name(errno));
}

static int listen_unix(struct chempi_daemon *d, struct chempi_err *err)
{
    char part[sizeof(d->socket_path) + 24];
    int rc = chempi_addr_clear_unix(d->socket_path, err);

    if (!rc)
        rc = chempi_keeper_name(d->socket_path, part, sizeof(part), err);
    if (rc)
        return rc;
    d->unix_fd =
        chempi_addr_listen_unix(part, d->serves_users ? 0666 : 0600, err);
    if (d->unix_fd < 0)
        return d->unix_fd;
    rc = chempi_keeper_tell(&d->keeper, SOCKET_FILE, part, err);
    rc = rc ? rc : give_name(d, part, err);
    if (rc)
        return rc;
    ev_io_init(&d->unix_io, local_calls, d->unix_fd, EV_READ);
    d->unix_io.data = d;
    ev_io_start(d->loop, &d->unix_io);
    return 0;
}

static int watch_signals(struct chempi_daemon *d, struct chempi_err *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    return chempi_signals_watch(&d->signals, d->loop, numbers,
                                CHEMPI_ARRAY_LEN(numbers), signalled, d, err);
}

static int read_cluster(struct chempi_daemon *d, struct chempi_err *err)
{
    const struct chempi_member *m;
    int rc;

    if (!d->opt->cluster)
        return 0;
    rc = chempi_members_read(&d->members, d->opt->cluster, err);
    m = chempi_members_find(&d->members, d->opt->name);
    if (!rc && !m && !d->opt->listen)
        return chempi_err_set(err, -ENOENT,
                              "%s does not name this node (%s); say --name, "
                              "or --listen",
                              d->opt->cluster, d->opt->name);
    if (!rc && m && m->slots && !d->opt->slots)
        d->slots = m->slots;
    return rc;
}

/* What the network description says of this node; 0: nothing. Jobs find words
 * for a table that cannot be read. */
static uint32_t described_slots(const struct chempi_daemon *d)
{
    struct chempi_table *table = NULL;
    void *data = NULL;
    uint32_t slots = 0;
    size_t len = 0;
    char path[4096];
    int n;

    if (!d->opt->tables)
        return 0;
    n = snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                 d->opt->tables, d->opt->name);
    if (n < 0 || (size_t)n >= sizeof(path) ||
        chempi_table_load(path, &data, &len, NULL))
        return 0;
    if (!chempi_table_open(data, len, &table, NULL)) {
        const uint32_t self = chempi_table_self(table);

        if (chempi_table_node_has_slots(table, self))
            slots = chempi_table_node_slots(table, self);
        chempi_table_close(table);
    }
    free(data);
    return slots;
}

/* As many as there may be; ranks have their user's limit (shell.h). */
static uint64_t take_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 0;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur =
            files.rlim_max < CHEMPI_FDS_MAX ? files.rlim_max : CHEMPI_FDS_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* else it stays */
        (void)getrlimit(RLIMIT_NOFILE, &files); /* as before */
    }
    return files.rlim_cur;
}

/* R4 */
static void helper_is_lost(void *arg, const char *text)
{
    struct chempi_daemon *d = arg;

    chempi_log(
        CHEMPI_LOG_ERROR, "daemon",
        "root's helper (process %ld), which starts and ends programs, is "
        "lost: %s; this daemon ends, and the jobs here with it",
        (long)d->helper.pid, text);
    fail(d);
}

static int open_secret(void *arg, enum chempi_secrets_file which)
{
    return chempi_helper_open(arg, which);
}

/* The helper has the keeper; what we had of it ends with the helper. */
static void hand_over_keeper(struct chempi_daemon *d)
{
    ev_io_stop(d->loop, &d->keeper_io);
    chempi_supervisors_yield(&d->supervisors, d->keeper.pid);
    chempi_keeper_forget(&d->keeper);
    for (int i = 0; i < CHEMPI_KEEPER_FILES; i++)
        d->keeper.paths[i] = NULL;
}

static int start_helper(struct chempi_daemon *d, uid_t own,
                        struct chempi_err *err)
{
    int rc;

    d->terms = (struct chempi_helper_terms){
        .node = d->opt->name,
        .own = own,
        .user_max = CHEMPI_USER_JOBS_MAX,
        .files = {[CHEMPI_SECRETS_CLUSTER] = d->opt->key,
                  [CHEMPI_SECRETS_NODE] = d->opt->node_key,
                  [CHEMPI_SECRETS_TRUST] = d->opt->trust},
        .keeper = &d->keeper,
        .groups = &d->groups,
        .has_streams = !d->opt->is_background,
    };
    d->helper.on_lost = helper_is_lost;
    d->helper.arg = d;
    rc = chempi_helper_start(&d->helper, &d->terms, &d->supervisors, err);
    if (rc)
        return rc;
    hand_over_keeper(d);
    d->supervisors.nest.groups = NULL;
    d->groups = (struct chempi_cgroups){0}; /* nothing is ours there */
    d->secrets.open = open_secret;
    d->secrets.arg = &d->helper;
    return 0;
}

/* Whoever serves all users reads what they and networks send, and so is not
 * root. Names in the directory are the last that it looks for. */
static int separate(struct chempi_daemon *d, struct chempi_err *err)
{
    struct chempi_drop drop;
    int rc = chempi_drop_choose(d->opt->user, &drop, err);

    chempi_say_prepare();
    rc = rc ? rc : start_helper(d, drop.uid, err);
    if (!rc && chdir(d->opt->dir) < 0)
        rc = chempi_err_set(err, -errno, "%s: %s", d->opt->dir,
                            chempi_err_name(errno));
    rc = rc ? rc : chempi_drop_now(&drop, err);
    if (!rc && access(".", R_OK | X_OK) < 0)
        rc = chempi_err_set(err, -errno,
                            "%s: cannot be read by user %ld, which this daemon "
                            "has become; run 'chmod a+rx %s'",
                            d->opt->dir, (long)drop.uid, d->opt->dir);
    d->dir = ".";
    return rc;
}

static int set_up(struct chempi_daemon *d, struct chempi_err *err)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int rc = chempi_supervisors_init(&d->supervisors, err);

    d->slots = d->opt->slots ? d->opt->slots : described_slots(d);
    if (!d->slots)
        d->slots = cpus > 0 ? (uint32_t)cpus : 1;
    d->loop = rc ? NULL : ev_loop_new(EVFLAG_AUTO);
    if (!rc && !d->loop)
        rc = chempi_err_set(err, -ENOMEM, "no event loop");
    if (!rc)
        chempi_grants_init(d);
    rc = rc ? rc : chempi_supervisors_watch(&d->supervisors, d->loop, err);
    rc = rc ? rc : watch_signals(d, err);
    rc = rc ? rc : load_keys(d, err);
    rc = rc ? rc : make_directory(d, err);
    rc = rc ? rc : read_cluster(d, err);
    rc = rc ? rc : name_files(d, err);
    rc = rc ? rc
            : chempi_groups_open(&d->groups, d->opt->name, d->opt->job_limits,
                                 err);
    d->supervisors.nest.groups = &d->groups;
    rc = rc ? rc : start_keeper(d, err); /* before there are files */
    rc = rc ? rc : listen_unix(d, err);
    rc = rc ? rc : listen_tcp(d, err);
    rc = rc ? rc : write_ready_file(d, err);
    if (!rc && d->serves_users)
        rc = separate(d, err);
    else if (!rc && d->opt->user)
        rc = chempi_err_set(err, -EINVAL,
                            "--user is for a daemon that serves all users "
                            "(--serve users)");
    if (rc)
        return rc;
    chempi_conns_init(&d->conns, d->loop, d->opt->name,
                      d->secrets.keys ? &d->secrets : NULL, d->serves_users,
                      take_descriptors(), &conn_ops, d);
    d->conns.supervisors = &d->supervisors;
    chempi_beat_init(&d->beat, &d->conns, d->opt->detect_s, pay_news);
    ev_timer_init(&d->recheck, recheck, 0.0, 0.0);
    ev_set_priority(&d->recheck, EV_MAXPRI); /* before what they say next */
    d->recheck.data = d;
    return join(d, err);
}

static void tear_down(struct chempi_daemon *d)
{
    d->is_stopping = true;
    chempi_rivals_fini(&d->rivals);
    chempi_query_fini(d);
    chempi_orders_fini(d);
    chempi_jobs_fini(d);
    chempi_grants_fini(d);
    chempi_beat_stop(&d->beat);
    if (d->loop)
        ev_timer_stop(d->loop, &d->recheck);
    if (d->conns.arg)
        chempi_conns_fini(&d->conns);
    chempi_helper_stop(&d->helper); /* D4 */
    chempi_keeper_stop(&d->keeper);
    if (d->supervisors.children.next)
        chempi_supervisors_fini(&d->supervisors);
    chempi_groups_close(&d->groups);
    if (d->unix_fd >= 0)
        chempi_rights_close_listener(d->unix_fd);
    chempi_file_close(d->tcp_fd);
    chempi_signals_unwatch(&d->signals);
    chempi_members_fini(&d->members);
    chempi_ready_fini(&d->ready);
    chempi_secrets_close(&d->secrets);
    if (d->loop)
        ev_loop_destroy(d->loop);
}

int chempi_daemon_run(const struct chempi_daemon_options *opt, int ready_fd)
{
    static struct chempi_daemon d; /* one per process */
    struct chempi_err err = {0};
    int rc;

    d = (struct chempi_daemon){.opt = opt,
                               .owner = geteuid(),
                               .dir = opt->dir,
                               .unix_fd = -1,
                               .tcp_fd = -1,
                               .ready_fd = ready_fd};
    chempi_list_init(&d.jobs);
    chempi_list_init(&d.queries);
    chempi_orders_init(&d.orders);
    chempi_rivals_init(&d.rivals);
    rc = set_up(&d, &err);
    if (rc) {
        chempi_log(CHEMPI_LOG_ERROR, "daemon", "%s", err.text);
    } else {
        chempi_log(CHEMPI_LOG_INFO, "daemon", "node %s serves at %s and %s",
                   opt->name, d.socket_path, d.address);
        rc = d.joining ? 0 : tell_ready(&d);
        if (!rc)
            ev_run(d.loop, 0);
    }
    tear_down(&d);
    return rc ? 1 : d.status;
}
