/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The jobs of a daemon; see daemon.h. A job's knot (hub.h) has as children
 * this node's supervisor, if the job has ranks or a gateway here, up to
 * CHEMPI_DAEMON_FANOUT daemons that pass the job on to the other nodes, and
 * the daemon of each spare node by itself, so that nothing takes a gateway
 * along with another one.
 *
 * LAUNCH: count n, n x u32 node (those below), then what ranks have of their
 * submitter (shell.h; of a local client not known), then the description
 * (spec.h).
 */
#define _GNU_SOURCE /* geteuid */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/grants.h"
#include "chempid/daemon/users.h"
#include "chempid/tree/hub.h"
#include "chempid/version.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

#define TROUBLE_TEXT 256
#define DOOM_MAX_S                                                             \
    6.0 /* twice that, and what follows, is < CHEMPI_ORDERS_S                  \
         */
#define LIGHT_BYTES                                                            \
    (1u << 20) /* a job with no more goes on when links fill                   \
                */

struct job;

/* What a job has queued on a connection that it shares with others. */
struct load {
    uint64_t end;   /* of its last frame there, by the link's count */
    uint64_t bytes; /* since none of it was left there: at least what waits */
};

/* One child of the hub. */
struct limb {
    struct job *job;
    struct chempi_nestling nestling; /* used when conn is NULL and it runs */
    struct chempi_conn *conn;        /* a daemon */
    struct load load;                /* towards it */
    bool is_supervisor;
    struct chempi_grant grant; /* of the ranks here */
    uint32_t node;             /* that is here, in the job */
};

struct job {
    struct chempi_list entry;
    struct chempi_daemon *daemon;
    struct chempi_spec spec;
    struct chempi_hub hub;
    struct chempi_conn *up; /* NULL: gone (D2) */
    struct load up_load;
    ev_timer doom;              /* since it was ordered to end */
    char trouble[TROUBLE_TEXT]; /* why it has to end, or "" */
    struct limb *limbs;         /* [hub.child_max] */
    uint32_t *nodes;            /* below, in the order of LAUNCH */
    uint32_t node_count;
    uint32_t own_node;         /* CHEMPI_NODE_ANY: it only passes through */
    uint32_t local_size;       /* ranks there */
    const uint8_t *spec_bytes; /* of LAUNCH, while it is worked on */
    size_t spec_len;
    enum chempi_status_fate *fates; /* [gateways]; NULL: all are UP */
    uint32_t gateway_pid; /* of the one here; 0: there is none, or none yet */
    bool is_drained;      /* the one here, as we have told */
    struct chempi_user *user;
    size_t paid; /* bytes of the user's purse */
};

static struct job *find_job(struct chempi_daemon *d, uint64_t number)
{
    CHEMPI_LIST_FOR (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);

        if (j->spec.job == number)
            return j;
    }
    return NULL;
}

/* ---- the hub's ways ------------------------------------------------------ */

static bool fits(struct load *load, const struct chempi_link *link, size_t len)
{
    const size_t queued = chempi_link_queued(link);

    if (load->end + queued <= link->sent) /* all of it has gone out */
        load->bytes = 0;
    if (load->bytes + len > CHEMPI_QUEUE_JOB_MAX)
        return false;
    return queued + len <= CHEMPI_QUEUE_MAX / 4 * 3 ||
           load->bytes + len <= LIGHT_BYTES;
}

/* To a daemon. A job that sends more than is read there ends by itself: its
 * link belongs to others, too (D5). The hub is not called from here; settle()
 * acts. */
static void send_to(struct job *j, struct chempi_conn *conn, struct load *load,
                    uint16_t type, const void *data, size_t len)
{
    int rc = fits(load, &conn->link, len) ? 0 : -ENOBUFS;

    if (*j->trouble)
        return;
    if (!rc)
        rc = chempi_link_offer(&conn->link, type, j->spec.job, data, len);
    load->end = conn->link.sent;
    load->bytes += len;
    if (rc == -ENOBUFS)
        (void)snprintf(j->trouble, sizeof(j->trouble),
                       "node %s does not take the messages of this job as fast "
                       "as they come",
                       conn->peer);
    else if (rc)
        (void)snprintf(j->trouble, sizeof(j->trouble), "%s",
                       chempi_err_name(rc));
}

static void fail(struct job *j, const char *text);

static void is_doomed(struct ev_loop *loop, ev_timer *w, int events)
{
    char text[160];

    (void)loop;
    (void)events;
    (void)snprintf(text, sizeof(text),
                   "ended by chempictl kill, as its launcher has not done so "
                   "within %g s",
                   w->repeat);
    ev_timer_stop(loop, w);
    fail(w->data, text);
}

/* The launcher has some time to end it; then its daemon ends it, and if that
 * does not, the others do for their parts (D6). */
static void doom(struct job *j)
{
    const bool is_first = j->up && j->up->kind == CHEMPI_CONN_LOCAL;
    const double detect_s = j->daemon->opt->detect_s;
    const double limit_s = detect_s < DOOM_MAX_S ? detect_s : DOOM_MAX_S;

    if (ev_is_active(&j->doom))
        return;
    j->doom.repeat = is_first ? limit_s : 2 * limit_s;
    ev_timer_again(j->daemon->loop, &j->doom);
}

static void send_up(void *arg, uint16_t type, const void *data, size_t len)
{
    struct job *j = arg;

    if (type == CHEMPI_MSG_ORDERED)
        doom(j);
    if (j->up && j->up->kind == CHEMPI_CONN_LOCAL) /* it is the job's own */
        chempi_link_send(&j->up->link, type, j->spec.job, data, len);
    else if (j->up)
        send_to(j, j->up, &j->up_load, type, data, len);
}

static void send_down(void *arg, uint32_t child, uint16_t type,
                      const void *data, size_t len)
{
    struct job *j = arg;
    struct limb *limb = &j->limbs[child];

    if (limb->conn)
        send_to(j, limb->conn, &limb->load, type, data, len);
    else if (limb->is_supervisor)
        chempi_link_send(&limb->nestling.link, type, j->spec.job, data, len);
}

static const struct chempi_hub_ops hub_ops = {.up = send_up, .down = send_down};

static void destroy(struct job *j)
{
    ev_timer_stop(j->daemon->loop, &j->doom);
    if (!chempi_list_is_empty(&j->entry)) /* its number was its own */
        chempi_orders_job_ended(j->daemon, j->spec.job);
    for (uint32_t i = 0; i < j->hub.child_count; i++)
        chempi_grants_close(&j->limbs[i].grant);
    chempi_list_remove(&j->entry);
    j->daemon->job_count--;
    chempi_hub_fini(&j->hub);
    if (j->user) {
        j->user->purse.used -= j->paid;
        chempi_crowd_leave(&j->daemon->conns.crowd, j->user, CHEMPI_CROWD_JOBS);
    }
    chempi_spec_fini(&j->spec);
    free(j->limbs);
    free(j->nodes);
    free(j);
}

/* May destroy the job, but not within its supervisor's on_frame (L3): as long
 * as that is not gone, the job is not over. */
static void settle(struct job *j)
{
    char text[TROUBLE_TEXT];

    if (*j->trouble && j->up) {
        (void)snprintf(text, sizeof(text), "%s", j->trouble);
        fail(j, text);
    } else if (chempi_hub_is_over(&j->hub)) {
        destroy(j); /* D1 */
    }
}

static uint32_t child_of(const struct limb *limb)
{
    return (uint32_t)(limb - limb->job->limbs);
}

/* ---- this node's supervisor ---------------------------------------------- */

static int take_pid(struct job *j, const struct chempi_frame *frame,
                    struct chempi_err *err)
{
    struct chempi_reader r;
    uint32_t pid;

    chempi_wire_read(&r, frame->data, frame->len);
    pid = chempi_wire_get_u32(&r);
    if (!chempi_wire_is_done(&r))
        return chempi_err_set(err, -EBADMSG, "a malformed process id");
    j->gateway_pid = pid;
    return 0;
}

static int take_nestling(void *arg, const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    struct limb *limb = arg;
    int rc;

    if (frame->type == CHEMPI_MSG_HOLDS)
        return chempi_grants_take(&limb->grant, frame, err);
    if (frame->type == CHEMPI_MSG_RUNS)
        return take_pid(limb->job, frame, err);
    if (frame->type == CHEMPI_MSG_GONE) /* ours to say */
        return chempi_err_set(err, -EBADMSG, "a message out of place");
    rc = chempi_hub_take(&limb->job->hub, child_of(limb), frame, err);
    settle(limb->job);
    return rc;
}

static void nestling_ended(void *arg, const char *text)
{
    struct limb *limb = arg;
    struct job *j = limb->job;

    limb->is_supervisor = false;
    j->gateway_pid = 0;
    chempi_grants_close(&limb->grant); /* B1: no rank is left */
    if (j->hub.has_ended)
        chempi_hub_leave(&j->hub, child_of(limb));
    else
        chempi_hub_lose(&j->hub, child_of(limb), text);
    settle(j);
}

/* Tell all that the gateway here is spared, or used again. */
static void tell_drained(struct job *j, uint32_t node, bool is_drained)
{
    struct chempi_writer w;
    uint8_t text[64];

    if (j->is_drained == is_drained)
        return;
    j->is_drained = is_drained;
    chempi_wire_fix(&w, text, sizeof(text));
    chempi_wire_put_u32(&w, node);
    chempi_wire_put_u32(&w, chempi_spec_gateway(&j->spec, node));
    chempi_wire_put_u8(&w, is_drained ? CHEMPI_FALL_DRAINED
                                      : CHEMPI_FALL_UNDRAINED);
    chempi_wire_put_u32(&w, CHEMPI_NODE_ANY);
    chempi_wire_put_str(&w, is_drained ? "by chempictl drain"
                                       : "by chempictl undrain");
    send_up(j, CHEMPI_MSG_GATEWAY, w.data, w.len);
}

/* Whether a job of this user may run here. */
static int check_user(const struct job *j, struct chempi_err *err)
{
    return chempi_users_check(j->daemon->serves_users, j->daemon->opt->name,
                              j->spec.uid, j->spec.gid, err);
}

/* Its ranks here cannot have the memory that they need. */
static void refused(void *arg, const char *text)
{
    const struct limb *limb = arg;
    struct job *j = limb->job;
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, limb->node);
    chempi_wire_put_str(&w, text);
    send_up(j, CHEMPI_MSG_NODE_LOST, w.data, w.len);
}

/* A child of the hub more; NULL with words: the launch is not what
 * parse_launch() and make_limbs() took it for. */
static struct limb *add_limb(struct job *j, const uint32_t *nodes,
                             uint32_t count, struct chempi_err *err)
{
    const int64_t child = chempi_hub_add(&j->hub, nodes, count);

    if (child < 0) {
        (void)chempi_err_set(err, (int)child,
                             "a launch that cannot be divided: %s",
                             chempi_err_name((int)child));
        return NULL;
    }
    j->limbs[child].job = j;
    return &j->limbs[child];
}

static int start_here(struct job *j, uint32_t node, struct chempi_err *why)
{
    struct chempi_daemon *d = j->daemon;
    struct limb *limb = add_limb(j, &node, 1, why);
    struct chempi_err err = {0};
    int rc = limb ? check_user(j, &err) : 0;

    if (!limb)
        return why->code;
    limb->nestling.on_frame = take_nestling;
    limb->nestling.on_end = nestling_ended;
    limb->nestling.arg = limb;
    limb->node = node;
    limb->grant.refused = refused;
    limb->grant.arg = limb;
    if (!rc && !j->spec.tables && d->opt->tables)
        j->spec.tables = chempi_pool_str(&j->spec.pool, d->opt->tables);
    if (!rc && chempi_grants_open(d, &limb->grant, &j->spec, node,
                                  &limb->nestling.link, &j->spec.memory_share))
        rc = chempi_err_set(&err, -ENOMEM,
                            "the daemon of node %s is out of memory",
                            d->opt->name);
    if (!rc)
        rc = chempi_brood_start(&d->brood, &limb->nestling, d->loop, &j->spec,
                                node, &err);
    if (rc) {
        chempi_grants_close(&limb->grant);
        chempi_hub_lose(&j->hub, child_of(limb), err.text);
    } else {
        limb->is_supervisor = true;
        /* Until it is forgotten, which is before the job leaves its user. */
        limb->nestling.link.ch.purse = &j->user->purse;
        if (d->is_drained &&
            chempi_spec_gateway(&j->spec, node) != CHEMPI_NODE_ANY)
            tell_drained(j, node, true);
    }
    return 0;
}

/* ---- daemons below ------------------------------------------------------- */

/* Also this belongs to one job of those that share the link. */
static int send_launch(struct job *j, struct limb *limb, const uint32_t *nodes,
                       uint32_t count, struct chempi_err *err)
{
    struct chempi_link *link = &limb->conn->link;
    const char *name = j->spec.node_names[nodes[0]];
    const size_t len = CHEMPI_FRAME_HEADER + 4 + 4 * (size_t)count +
                       sizeof(j->spec.shell) + j->spec_len; /* at most */
    struct chempi_writer *w;
    int rc;

    if (!fits(&limb->load, link, len))
        return chempi_err_set(err, -ENOBUFS,
                              "the job cannot be sent to node %s, which does "
                              "not take the messages of other jobs as fast as "
                              "they come",
                              name);
    w = chempi_link_begin(link, CHEMPI_MSG_LAUNCH, j->spec.job);
    chempi_wire_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        chempi_wire_put_u32(w, nodes[i]);
    chempi_shell_write(&j->spec.shell, w);
    chempi_wire_put_raw(w, j->spec_bytes, j->spec_len);
    rc = chempi_link_try_end(link);
    if (rc)
        return chempi_err_set(err, rc, "the job cannot be sent to node %s: %s",
                              name, chempi_err_name(rc));
    limb->load.end = link->sent;
    limb->load.bytes += len;
    return 0;
}

static int pass_on(struct job *j, const struct chempi_members *known,
                   const uint32_t *nodes, uint32_t count,
                   struct chempi_err *why)
{
    const char *name = j->spec.node_names[nodes[0]];
    struct limb *limb = add_limb(j, nodes, count, why);
    struct chempi_err err = {0};

    if (!limb)
        return why->code;
    limb->conn = chempi_daemon_call(j->daemon, known, name, &err);
    if (!limb->conn)
        (void)chempi_err_prefix(&err, "node %s", name);
    else if (send_launch(j, limb, nodes, count, &err))
        limb->conn = NULL; /* nothing of the job has gone there */
    if (!limb->conn)
        chempi_hub_lose(&j->hub, child_of(limb), err.text);
    return 0;
}

static bool is_spare(const struct job *j, uint32_t node)
{
    return node >= j->hub.spare;
}

/* This node's part here, spare nodes one by one, the others in pieces to the
 * first node of each. */
static int spread(struct job *j, struct chempi_err *err)
{
    struct chempi_members known;
    uint32_t rest = 0;
    uint32_t piece;
    int rc = 0;

    chempi_daemon_members(j->daemon, &known);
    for (uint32_t i = 0; !rc && i < j->node_count; i++) {
        const uint32_t node = j->nodes[i];

        if (strcmp(j->spec.node_names[node], j->daemon->opt->name) == 0)
            rc = start_here(j, node, err);
        else if (is_spare(j, node))
            rc = pass_on(j, &known, &node, 1, err);
        else
            j->nodes[rest++] = node;
    }
    piece = (rest + CHEMPI_DAEMON_FANOUT - 1) / CHEMPI_DAEMON_FANOUT;
    for (uint32_t i = 0; !rc && i < rest; i += piece)
        rc = pass_on(j, &known, j->nodes + i,
                     rest - i < piece ? rest - i : piece, err);
    chempi_members_fini(&known);
    return rc;
}

/* The one thing, with REFUSED, that a link ends for when it cannot be said. */
static void send_drop(struct limb *limb)
{
    chempi_link_send(&limb->conn->link, CHEMPI_MSG_DROP, limb->job->spec.job,
                     NULL, 0);
}

/* D2: tell those below, forget those beside. */
static void drop(struct job *j)
{
    j->up = NULL;
    for (uint32_t i = 0; i < j->hub.child_count; i++) {
        struct limb *limb = &j->limbs[i];

        if (limb->conn) {
            if (!j->hub.children[i].is_lost)
                send_drop(limb);
            chempi_hub_lose(&j->hub, i, "");
        } else if (limb->is_supervisor) {
            chempi_brood_drop(&limb->nestling);
        }
    }
    chempi_hub_expect(&j->hub, 0); /* nobody more is ordered */
    settle(j);
}

/* D5: the job's part ends here and below, and whoever ordered it is told. */
static void fail(struct job *j, const char *text)
{
    if (j->up)
        chempi_daemon_refuse(j->up, CHEMPI_MSG_LAUNCH, j->spec.job, text);
    drop(j);
}

/* What it says is not what a daemon says of this job. */
static void lose_limb(struct limb *limb, const char *text)
{
    send_drop(limb);
    chempi_hub_lose(&limb->job->hub, child_of(limb), text);
}

/* ---- launch -------------------------------------------------------------- */

static int read_nodes(struct job *j, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_JOB_NODES_MAX, 4);

    j->nodes = chempi_sys->calloc(n ? n : 1, sizeof(*j->nodes));
    if (!j->nodes)
        return -ENOMEM;
    j->node_count = n;
    for (uint32_t i = 0; i < n; i++)
        j->nodes[i] = chempi_wire_get_u32(r);
    return n && !r->is_bad ? 0 : -EBADMSG;
}

/* Each node of the job at most once. */
static int check_nodes(const struct job *j)
{
    uint8_t *seen = chempi_sys->calloc(j->spec.node_count, 1);
    int rc = seen ? 0 : -ENOMEM;

    for (uint32_t i = 0; !rc && i < j->node_count; i++) {
        if (j->nodes[i] >= j->spec.node_count || seen[j->nodes[i]])
            rc = -EBADMSG;
        else
            seen[j->nodes[i]] = 1;
    }
    free(seen);
    return rc;
}

static int parse_launch(struct job *j, const struct chempi_conn *from,
                        const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct chempi_shell shell;
    struct chempi_reader r;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    rc = read_nodes(j, &r);
    if (!rc)
        rc = chempi_shell_take(&shell, &r);
    if (!rc) {
        j->spec_bytes = r.next;
        j->spec_len = (size_t)(r.end - r.next);
        rc = chempi_spec_read(&j->spec, &r);
        j->spec.shell = shell;
    }
    if (!rc && (!chempi_wire_is_done(&r) || j->spec.job != frame->job))
        rc = -EBADMSG;
    if (!rc)
        rc = check_nodes(j);
    if (rc)
        return chempi_err_set(err, rc, "a malformed launch: %s",
                              chempi_err_name(rc));
    if (from->kind == CHEMPI_CONN_LOCAL &&
        (j->spec.uid != from->uid || j->spec.gid != from->gid))
        return chempi_err_set(err, -EPERM,
                              "a launch in the name of another user or group");
    if (find_job(j->daemon, j->spec.job))
        return chempi_err_set(err, -EEXIST, "a launch of a job that runs");
    return from->kind == CHEMPI_CONN_LOCAL
               ? chempi_shell_read(&j->spec.shell, from->link.ch.fd, err)
               : 0;
}

/* What the user has of this node: a job more, and its description. */
static int admit(struct job *j, size_t len, struct chempi_err *err)
{
    struct chempi_purse *purse;

    j->user = chempi_crowd_enter(&j->daemon->conns.crowd, j->spec.uid,
                                 CHEMPI_CROWD_JOBS, err);
    if (!j->user)
        return err->code;
    purse = &j->user->purse;
    if (len > purse->max - purse->used)
        return chempi_err_set(err, -EDQUOT,
                              "the jobs of user %u need more memory of the "
                              "daemon of node %s than a user may have (limit: "
                              "%zu bytes); use smaller environments, or wait "
                              "until some jobs have ended",
                              j->spec.uid, j->daemon->opt->name, purse->max);
    purse->used += len;
    j->paid = len;
    return 0;
}

static int make_limbs(struct job *j)
{
    const uint32_t spare = chempi_spec_first_spare(&j->spec);
    uint32_t count = CHEMPI_DAEMON_FANOUT + 1;
    int rc;

    for (uint32_t i = 0; i < j->node_count; i++)
        count += j->nodes[i] >= spare;
    j->limbs = chempi_sys->calloc(count, sizeof(*j->limbs));
    rc = j->limbs
             ? chempi_hub_init(&j->hub, j->spec.node_count, count, &hub_ops, j)
             : -ENOMEM;
    if (rc)
        return rc;
    chempi_hub_expect(&j->hub, j->node_count);
    chempi_hub_spare(&j->hub, spare);
    return 0;
}

static uint32_t find_own_node(const struct job *j)
{
    for (uint32_t i = 0; i < j->spec.node_count; i++)
        if (strcmp(j->spec.node_names[i], j->daemon->opt->name) == 0)
            return i;
    return CHEMPI_NODE_ANY;
}

int chempi_jobs_launch(struct chempi_daemon *d, struct chempi_conn *from,
                       const struct chempi_frame *frame, struct chempi_err *err)
{
    struct job *j;
    int rc = chempi_conns_admit_job(from, err);

    if (rc)
        return rc;
    if (d->job_count >= CHEMPI_DAEMON_JOBS_MAX)
        return chempi_err_set(err, -ENOBUFS, "too many jobs (limit: %u)",
                              CHEMPI_DAEMON_JOBS_MAX);
    j = chempi_sys->calloc(1, sizeof(*j));
    if (!j)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    j->daemon = d;
    chempi_list_init(&j->entry);
    d->job_count++;
    rc = parse_launch(j, from, frame, err);
    rc = rc ? rc : admit(j, frame->len, err);
    if (!rc && make_limbs(j))
        rc = chempi_err_set(err, -ENOMEM, "out of memory");
    if (rc) {
        destroy(j);
        return rc;
    }
    j->up = from;
    j->own_node = find_own_node(j);
    if (j->own_node != CHEMPI_NODE_ANY)
        j->local_size = chempi_spec_local_size(&j->spec, j->own_node);
    ev_init(&j->doom, is_doomed);
    j->doom.data = j;
    chempi_list_append(&d->jobs, &j->entry);
    chempi_log(CHEMPI_LOG_INFO, "jobs", "job %s: %u ranks of %s", j->spec.id,
               j->spec.size, j->spec.apps[0].argv[0]);
    rc = spread(j, err);
    j->spec_bytes = NULL;
    if (rc)
        drop(j);
    else
        settle(j);
    return rc;
}

/* ---- frames -------------------------------------------------------------- */

static struct limb *find_limb(struct job *j, const struct chempi_conn *conn)
{
    for (uint32_t i = 0; i < j->hub.child_count; i++)
        if (j->limbs[i].conn == conn)
            return &j->limbs[i];
    return NULL;
}

static void note_fall(struct job *j, const struct chempi_frame *frame);

/* The child's whole part has ended, or never came to be. */
static int take_refusal(const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct chempi_reader r;
    const char *why;

    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r);
    why = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
    if (!chempi_wire_is_done(&r))
        return chempi_err_set(err, -EBADMSG, "a malformed message (refusal)");
    return chempi_err_set(err, -ECANCELED, "%s", why);
}

static int take_from_limb(struct limb *limb, const struct chempi_frame *frame,
                          struct chempi_err *err)
{
    struct chempi_hub *hub = &limb->job->hub;
    const char *node = limb->conn->peer;
    char text[CHEMPI_TEXT_MAX];
    int rc;

    if (frame->type == CHEMPI_MSG_REFUSED &&
        !hub->children[child_of(limb)].is_lost)
        rc = take_refusal(frame, err);
    else
        rc = chempi_hub_take(hub, child_of(limb), frame, err);
    if (!rc)
        return 0;
    (void)snprintf(text, sizeof(text), "the daemon of node %s %s %.800s", node,
                   rc == -ECANCELED ? "ends the job's part there:" : "sent",
                   err->text);
    lose_limb(limb, text);
    if (rc != -ECANCELED)
        return rc;
    *err = (struct chempi_err){0}; /* it is no error of that daemon's */
    return 0;
}

static int take_from_above(struct job *j, const struct chempi_frame *frame,
                           struct chempi_err *err)
{
    if (frame->type == CHEMPI_MSG_FALLEN)
        note_fall(j, frame);
    return chempi_hub_down(&j->hub, frame->type, frame->data, frame->len, err);
}

int chempi_jobs_take(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    struct job *j = find_job(d, frame->job);
    struct limb *limb = j ? find_limb(j, from) : NULL;
    int rc;

    if (!limb && (!j || j->up != from))
        return 0;
    if (!limb && frame->type == CHEMPI_MSG_DROP) {
        drop(j);
        return 0;
    }
    rc = limb ? take_from_limb(limb, frame, err)
              : take_from_above(j, frame, err);
    if (rc && !limb) /* D5 */
        fail(j, err->text);
    else
        settle(j);
    return rc;
}

bool chempi_jobs_has(const struct chempi_daemon *d,
                     const struct chempi_conn *conn)
{
    CHEMPI_LIST_FOR (e, &d->jobs)
        if (CHEMPI_CONTAINER_OF(e, struct job, entry)->up == conn)
            return true;
    return false;
}

void chempi_jobs_lose(struct chempi_daemon *d, struct chempi_conn *conn,
                      const char *why)
{
    char text[CHEMPI_TEXT_MAX];

    (void)snprintf(text, sizeof(text), "the daemon of node %s is lost: %.800s",
                   conn->peer, why);
    if (!conn->is_proven)
        (void)snprintf(text, sizeof(text),
                       "the daemon of node %s cannot be reached: %.800s",
                       conn->peer, why);
    CHEMPI_LIST_FOR_SAFE (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);
        struct limb *limb = find_limb(j, conn);

        if (j->up == conn) {
            drop(j);
        } else if (limb) {
            limb->conn = NULL;
            chempi_hub_lose(&j->hub, child_of(limb), text);
            settle(j);
        }
    }
}

/* What the root tells all is noted on its way. */
static void note_fall(struct job *j, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t proc;
    uint8_t how;
    enum chempi_status_fate *at;

    chempi_wire_read(&r, frame->data, frame->len);
    proc = chempi_wire_get_u32(&r);
    how = chempi_wire_get_u8(&r);
    if (!j->fates)
        j->fates = chempi_pool_array(&j->spec.pool, j->spec.gateway_count,
                                     sizeof(*j->fates));
    if (r.is_bad || !j->fates || proc < j->spec.size ||
        proc >= chempi_spec_procs(&j->spec) || how > CHEMPI_FALL_UNDRAINED)
        return;
    at = &j->fates[proc - j->spec.size];
    if (*at == CHEMPI_FATE_LOST)
        return;
    *at = how == CHEMPI_FALL_UNDRAINED ? CHEMPI_FATE_UP
          : how == CHEMPI_FALL_DRAINED ? CHEMPI_FATE_DRAINED
                                       : CHEMPI_FATE_LOST;
}

int chempi_jobs_drain(struct chempi_daemon *d, const char *id, uint32_t uid,
                      bool is_drained)
{
    int rc = -ESRCH;

    CHEMPI_LIST_FOR (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);
        const uint32_t node = j->own_node;

        if ((*id && strcmp(j->spec.id, id) != 0) ||
            chempi_spec_gateway(&j->spec, node) == CHEMPI_NODE_ANY)
            continue;
        if (uid != 0 && uid != j->spec.uid) {
            rc = rc == 0 ? 0 : -EPERM;
            continue;
        }
        tell_drained(j, node, is_drained);
        rc = 0;
    }
    return rc;
}

/* The job of this name that the user may order about; NULL: *rc says why. */
static struct job *find_own(struct chempi_daemon *d, const char *id,
                            uint32_t uid, int *rc)
{
    *rc = -ESRCH;
    CHEMPI_LIST_FOR (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);

        if (strcmp(j->spec.id, id) != 0)
            continue;
        if (uid == 0 || uid == j->spec.uid) {
            *rc = 0;
            return j;
        }
        *rc = -EPERM; /* one's own may have the same number */
    }
    return NULL;
}

int chempi_jobs_order_end(struct chempi_daemon *d, const char *id, uint32_t uid,
                          uint64_t *number)
{
    int rc;
    struct job *j = find_own(d, id, uid, &rc);
    struct chempi_writer w;
    uint8_t text[64];

    if (!j)
        return rc;
    chempi_wire_fix(&w, text, sizeof(text));
    chempi_wire_put_u32(&w, j->nodes[0]);
    chempi_wire_put_str(&w, "ended by chempictl kill");
    *number = j->spec.job;
    send_up(j, CHEMPI_MSG_ORDERED, w.data, w.len);
    return 0;
}

int chempi_jobs_seek(struct chempi_daemon *d, const char *id, uint32_t uid)
{
    int rc;
    struct job *j = find_own(d, id, uid, &rc);
    struct chempi_writer w;
    uint8_t data[4];

    if (!j)
        return rc;
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, j->nodes[0]);
    send_up(j, CHEMPI_MSG_SOUGHT, w.data, w.len);
    return 0;
}

static int add_gateways(const struct job *j, struct chempi_pool *pool,
                        uint32_t *room, struct chempi_status_job *out)
{
    const uint32_t own = j->own_node;

    out->is_cut = j->spec.gateway_count > *room;
    if (out->is_cut)
        return 0;
    *room -= j->spec.gateway_count;
    out->gateways =
        chempi_pool_array(pool, j->spec.gateway_count, sizeof(*out->gateways));
    if (!out->gateways)
        return -ENOMEM;
    out->gateway_count = j->spec.gateway_count;
    for (uint32_t i = 0; i < out->gateway_count; i++) {
        const uint32_t node = j->spec.node_of_rank[j->spec.size + i];

        out->gateways[i] = (struct chempi_status_gateway){
            .node = j->spec.node_names[node],
            .fate = j->fates ? j->fates[i] : CHEMPI_FATE_UP,
            .pid = node == own ? j->gateway_pid : 0,
        };
    }
    return 0;
}

int chempi_jobs_status(struct chempi_daemon *d, bool with_memory,
                       struct chempi_pool *pool, struct chempi_status *out)
{
    uint32_t room = CHEMPI_STATUS_ALL_GATEWAYS_MAX;

    *out = (struct chempi_status){
        .node = d->opt->name,
        .error = "",
        .host = chempi_status_host(),
        .slots = d->slots,
        .load = chempi_status_load(),
        .pid = (uint32_t)getpid(),
        .version = CHEMPI_VERSION,
        .tables = d->opt->tables ? d->opt->tables : "",
        .is_drained = d->is_drained,
        .jobs = chempi_pool_array(pool, d->job_count, sizeof(*out->jobs)),
    };
    if (!out->jobs)
        return -ENOMEM;
    CHEMPI_LIST_FOR (e, &d->jobs) {
        const struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);

        out->jobs[out->job_count] = (struct chempi_status_job){
            .id = j->spec.id,
            .uid = j->spec.uid,
            .size = j->spec.size,
            .local = j->local_size,
            .program = j->spec.apps[0].argv[0],
        };
        if (add_gateways(j, pool, &room, &out->jobs[out->job_count++]))
            return -ENOMEM;
        out->busy += j->local_size;
    }
    return chempi_grants_status(d, with_memory, pool, out);
}

void chempi_jobs_fini(struct chempi_daemon *d)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);

        for (uint32_t i = 0; i < j->hub.child_count; i++)
            chempi_brood_forget(&j->limbs[i].nestling);
        destroy(j);
    }
}
