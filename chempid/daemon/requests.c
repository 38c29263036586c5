/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients and other daemons ask a daemon to do; see daemon.h. */
#include <errno.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/nodes.h"
#include "common/base/log.h"
#include "common/control/msg.h"

#define OWNER_ONLY "only root and the daemon's user may do so"
#define SUBMITTER_ONLY "only root and the user whose job it is may do so"

struct request {
    uint64_t number; /* the asker's */
    uint32_t what;   /* enum chempi_request */
    uint32_t uid;
    const char *node;
    const char *job;
};

/* A node is drained for the jobs to come, too, by whoever its daemon obeys. */
static int drain(struct chempi_daemon *d, const char *job, uint32_t uid,
                 bool is_drained)
{
    const bool is_obeyed = uid == 0 || uid == d->owner;

    if (*job && !is_drained && d->is_drained && !is_obeyed)
        return -EBUSY; /* who has drained the node has the last word */
    if (*job)
        return chempi_jobs_drain(d, job, uid, is_drained);
    if (!is_obeyed)
        return -EPERM;
    d->is_drained = is_drained;
    (void)chempi_jobs_drain(d, "", 0, is_drained); /* there may be none */
    return 0;
}

/* 1: the answer comes later. */
static int obey(struct chempi_daemon *d, struct chempi_conn *from,
                const struct request *r, struct chempi_err *err)
{
    int rc;

    if (r->what == CHEMPI_REQUEST_WHERE)
        return chempi_jobs_seek(d, r->job, r->uid);
    if (r->what == CHEMPI_REQUEST_DRAIN || r->what == CHEMPI_REQUEST_UNDRAIN)
        return drain(d, r->job, r->uid, r->what == CHEMPI_REQUEST_DRAIN);
    if (r->what == CHEMPI_REQUEST_STOP) {
        if (r->uid != 0 && r->uid != d->owner)
            return -EPERM;
        ev_break(d->loop, EVBREAK_ALL);
        return 0;
    }
    if (r->what != CHEMPI_REQUEST_KILL)
        return -ENOSYS;
    rc = chempi_jobs_order_end(d, from, r->job, r->uid, r->number, err);
    return rc ? rc : 1;
}

/* Keys and trust from their files; connections that are no longer trusted end
 * when the loop has come round (N5). -ENOENT: there is no key; -errno with
 * words: all is as before. */
static int reread_keys(struct chempi_daemon *d, struct chempi_err *err)
{
    int rc;

    if (!d->secrets.keys)
        return chempi_err_set(err, -ENOENT, "this daemon has no key");
    rc = chempi_secrets_reread(&d->secrets, err);
    if (rc) {
        chempi_log(CHEMPI_LOG_ERROR, "daemon", "keys stay as they were: %s",
                   err->text);
        return rc;
    }
    chempi_log(CHEMPI_LOG_INFO, "daemon", "keys were read again");
    ev_timer_start(d->loop, &d->recheck);
    return 0;
}

/* Who asks learns what is wrong with the files. */
static void reread(struct chempi_daemon *d, struct chempi_conn *from,
                   const struct request *r)
{
    struct chempi_err err = {.text = ""};
    int rc = r->uid != 0 && r->uid != d->owner
                 ? chempi_err_set(&err, -EPERM, OWNER_ONLY)
                 : reread_keys(d, &err);

    chempi_orders_reply(from, r->uid, r->number, rc, rc ? err.text : "");
}

static const char *refusal(uint32_t what, int rc, const char *job)
{
    const bool is_drain =
        what == CHEMPI_REQUEST_DRAIN || what == CHEMPI_REQUEST_UNDRAIN;

    if (rc == -ESRCH && is_drain)
        return "this job has no gateway there";
    if (rc == -EPERM && is_drain)
        return *job ? SUBMITTER_ONLY
                    : OWNER_ONLY " for all jobs; name a job of yours";
    if (rc == -EPERM)
        return what == CHEMPI_REQUEST_STOP ? OWNER_ONLY : SUBMITTER_ONLY;
    if (rc == -EBUSY && is_drain)
        return "the node is drained for all jobs, which only root and the "
               "daemon's user may undo";
    return rc ? chempi_err_name(rc) : "";
}

/* To the daemon of the node, whose answer is passed back. */
static int pass_request(struct chempi_daemon *d, struct chempi_conn *from,
                        const struct request *r, struct chempi_err *err)
{
    struct chempi_conn *conn;
    struct chempi_writer *w;
    uint64_t number;
    int rc;

    chempi_nodes_look(d);
    conn = chempi_nodes_call(d, r->node, err);
    if (!conn)
        return err->code;
    rc = chempi_orders_pass(d, from, r->uid, r->number, conn, &number, err);
    if (rc)
        return rc;
    w = chempi_link_begin(&conn->link, CHEMPI_MSG_REQUEST, number);
    chempi_wire_put_u32(w, r->what);
    chempi_wire_put_str(w, r->node);
    chempi_wire_put_str(w, r->job);
    chempi_wire_put_u32(w, r->uid);
    rc = chempi_conns_end_for(conn, r->uid);
    if (!rc)
        return 0;
    chempi_orders_take_back(d, number);
    return chempi_err_set(err, rc, "node %s cannot be told: %s", r->node,
                          chempi_err_name(rc));
}

int chempi_requests_take(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    struct request req = {.number = frame->job};
    struct chempi_err why = {0};
    struct chempi_reader r;
    bool is_ours;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    req.what = chempi_wire_get_u32(&r);
    req.node = chempi_wire_get_str(&r, CHEMPI_NODE_NAME_MAX);
    req.job = chempi_wire_get_str(&r, CHEMPI_JOB_ID_MAX);
    req.uid = chempi_wire_get_u32(&r);
    if (!chempi_wire_is_done(&r))
        return chempi_err_set(err, -EBADMSG, "a malformed request");
    if (from->kind == CHEMPI_CONN_LOCAL)
        req.uid = from->uid;
    is_ours = strcmp(req.node, d->opt->name) == 0 || !*req.node;
    if (is_ours && req.what == CHEMPI_REQUEST_REREAD) {
        reread(d, from, &req);
    } else if (is_ours) {
        rc = obey(d, from, &req, &why);
        if (rc <= 0)
            chempi_orders_reply(from, req.uid, req.number, rc,
                                why.code ? why.text
                                         : refusal(req.what, rc, req.job));
    } else if (from->kind != CHEMPI_CONN_LOCAL) {
        chempi_orders_reply(from, req.uid, req.number, -EINVAL,
                            "this is the daemon of another node");
    } else if (pass_request(d, from, &req, &why)) {
        chempi_orders_reply(from, req.uid, req.number, why.code, why.text);
    }
    return 0;
}
