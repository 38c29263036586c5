/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobs of a daemon; see daemon.h and job.h. */
#define _GNU_SOURCE /* geteuid */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/daemon/job.h"
#include "chempid/version.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

#define DOOM_MAX_S                                                             \
    6.0 /* twice that, and what follows, is < CHEMPI_ORDERS_S                  \
         */

struct job *chempi_job_find(struct chempi_daemon *d, uint64_t number)
{
    CHEMPI_LIST_FOR (e, &d->jobs) {
        struct job *j = CHEMPI_CONTAINER_OF(e, struct job, entry);

        if (j->spec.job == number)
            return j;
    }
    return NULL;
}

/* ---- the hub's ways ------------------------------------------------------ */

bool chempi_job_fits(const struct job *j, struct chempi_conn *conn,
                     struct load *load, size_t len)
{
    const size_t queued = chempi_link_queued(&conn->link);

    if (load->end + queued <= conn->link.sent) /* all of it has gone out */
        load->bytes = 0;
    return load->bytes + CHEMPI_FRAME_HEADER + len <= CHEMPI_QUEUE_JOB_MAX &&
           chempi_room_fits(&conn->room, &conn->link, j->user->uid, len);
}

void chempi_job_count(const struct job *j, struct chempi_conn *conn,
                      struct load *load, size_t len)
{
    load->end = conn->link.sent;
    load->bytes += CHEMPI_FRAME_HEADER + len;
    chempi_room_count(&conn->room, &conn->link, j->user->uid, len);
}

/* To a daemon. A job that sends more than is read there ends by itself: its
 * link belongs to others, too (D5). The hub is not called from here;
 * chempi_job_settle() acts. */
static void send_to(struct job *j, struct chempi_conn *conn, struct load *load,
                    uint16_t type, const void *data, size_t len)
{
    int rc;

    if (*j->trouble)
        return;
    rc = chempi_job_fits(j, conn, load, len)
             ? chempi_link_offer(&conn->link, type, j->spec.job, data, len)
             : -ENOBUFS;
    if (!rc)
        chempi_job_count(j, conn, load, len);
    else /* whoever has sent this may not settle */
        ev_timer_start(j->daemon->loop, &j->mend);
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

static void mend(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    chempi_job_settle(w->data);
}

void chempi_job_ready_timers(struct job *j)
{
    ev_init(&j->doom, is_doomed);
    j->doom.data = j;
    ev_timer_init(&j->mend, mend, 0.0, 0.0);
    j->mend.data = j;
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

void chempi_job_send_up(void *arg, uint16_t type, const void *data, size_t len)
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
        chempi_link_send(&limb->supervisor_child.link, type, j->spec.job, data,
                         len);
}

const struct chempi_hub_ops chempi_job_hub_ops = {.up = chempi_job_send_up,
                                                  .down = send_down};

void chempi_job_destroy(struct job *j)
{
    ev_timer_stop(j->daemon->loop, &j->doom);
    ev_timer_stop(j->daemon->loop, &j->mend);
    if (!chempi_list_is_empty(&j->entry)) /* its number was its own */
        chempi_orders_job_ended(j->daemon, j->spec.job);
    for (uint32_t i = 0; i < j->hub.child_count; i++)
        chempi_grants_close(&j->limbs[i].grant);
    chempi_list_remove(&j->entry);
    j->daemon->job_count--;
    chempi_hub_fini(&j->hub);
    chempi_spec_fini(&j->spec); /* which its user has paid */
    if (j->user) {
        j->user->purse.used -= j->paid;
        chempi_user_shares_leave(&j->daemon->conns.shares, j->user,
                                 CHEMPI_USER_SHARES_JOBS);
    }
    free(j->limbs);
    free(j->nodes);
    free(j);
}

void chempi_job_settle(struct job *j)
{
    char text[CHEMPI_TROUBLE_TEXT];

    if (*j->trouble && j->up) {
        (void)snprintf(text, sizeof(text), "%s", j->trouble);
        fail(j, text);
    } else if (chempi_hub_is_over(&j->hub)) {
        chempi_job_destroy(j); /* D1 */
    }
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

static int take_supervisor(void *arg, const struct chempi_frame *frame,
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
    rc = chempi_hub_take(&limb->job->hub, chempi_job_child(limb), frame, err);
    chempi_job_settle(limb->job);
    return rc;
}

static void supervisor_ended(void *arg, const char *text)
{
    struct limb *limb = arg;
    struct job *j = limb->job;

    limb->is_supervisor = false;
    j->gateway_pid = 0;
    j->local_size = 0;                 /* whatever the rest of the job does */
    chempi_grants_close(&limb->grant); /* B1: no rank is left */
    if (j->hub.has_ended)
        chempi_hub_leave(&j->hub, chempi_job_child(limb));
    else
        chempi_hub_lose(&j->hub, chempi_job_child(limb), text);
    chempi_job_settle(j);
}

void chempi_job_watch(struct limb *limb)
{
    limb->supervisor_child.on_frame = take_supervisor;
    limb->supervisor_child.on_end = supervisor_ended;
    limb->supervisor_child.arg = limb;
}

void chempi_job_tell_drained(struct job *j, uint32_t node, bool is_drained)
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
    chempi_job_send_up(j, CHEMPI_MSG_GATEWAY, w.data, w.len);
}

/* The one thing, with REFUSED, that a link ends for when it cannot be said. */
static void send_drop(struct limb *limb)
{
    chempi_link_send(&limb->conn->link, CHEMPI_MSG_DROP, limb->job->spec.job,
                     NULL, 0);
}

void chempi_job_drop(struct job *j)
{
    j->up = NULL;
    for (uint32_t i = 0; i < j->hub.child_count; i++) {
        struct limb *limb = &j->limbs[i];

        if (limb->conn) {
            if (!j->hub.children[i].is_lost)
                send_drop(limb);
            chempi_hub_lose(&j->hub, i, "");
        } else if (limb->is_supervisor) {
            chempi_supervisors_drop(&limb->supervisor_child);
        }
    }
    chempi_hub_expect(&j->hub, 0); /* nobody more is ordered */
    chempi_job_settle(j);
}

/* D5: the job's part ends here and below, and whoever ordered it is told. */
static void fail(struct job *j, const char *text)
{
    if (j->up)
        chempi_conns_refuse(j->up, CHEMPI_MSG_LAUNCH, j->spec.job, text);
    chempi_job_drop(j);
}

/* What it says is not what a daemon says of this job. */
static void lose_limb(struct limb *limb, const char *text)
{
    send_drop(limb);
    chempi_hub_lose(&limb->job->hub, chempi_job_child(limb), text);
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
        !hub->children[chempi_job_child(limb)].is_lost)
        rc = take_refusal(frame, err);
    else
        rc = chempi_hub_take(hub, chempi_job_child(limb), frame, err);
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
    struct job *j = chempi_job_find(d, frame->job);
    struct limb *limb = j ? find_limb(j, from) : NULL;
    int rc;

    if (!limb && (!j || j->up != from))
        return 0;
    if (!limb && frame->type == CHEMPI_MSG_DROP) {
        chempi_job_drop(j);
        return 0;
    }
    rc = limb ? take_from_limb(limb, frame, err)
              : take_from_above(j, frame, err);
    if (rc && !limb) /* D5 */
        fail(j, err->text);
    else
        chempi_job_settle(j);
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
            chempi_job_drop(j);
        } else if (limb) {
            limb->conn = NULL;
            chempi_hub_lose(&j->hub, chempi_job_child(limb), text);
            chempi_job_settle(j);
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
        chempi_job_tell_drained(j, node, is_drained);
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

int chempi_jobs_order_end(struct chempi_daemon *d, struct chempi_conn *from,
                          const char *id, uint32_t uid, uint64_t asked,
                          struct chempi_err *err)
{
    int rc;
    struct job *j = find_own(d, id, uid, &rc);
    struct chempi_writer w;
    uint8_t text[64];

    if (!rc) /* it may be one order too many */
        rc = chempi_orders_await(d, from, uid, asked, j->spec.job, err);
    if (rc)
        return rc;
    chempi_wire_fix(&w, text, sizeof(text));
    chempi_wire_put_u32(&w, j->nodes[0]);
    chempi_wire_put_str(&w, "ended by chempictl kill");
    chempi_job_send_up(j, CHEMPI_MSG_ORDERED, w.data, w.len);
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
    chempi_job_send_up(j, CHEMPI_MSG_SOUGHT, w.data, w.len);
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
            chempi_supervisors_forget(&j->limbs[i].supervisor_child);
        chempi_job_destroy(j);
    }
}
