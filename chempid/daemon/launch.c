/* SPDX-License-Identifier: BSD-3-Clause */
/* How a job comes to be at a daemon; see job.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/daemon/job.h"
#include "chempid/daemon/nodes.h"
#include "chempid/peers/users.h"
#include "chempid/tree/limits.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

/* ---- this node ----------------------------------------------------------- */

/* Whether a job of this user may run here. */
static int check_user(const struct job *j, struct chempi_err *err)
{
    return chempi_users_check(j->daemon->serves_users, j->daemon->opt->name,
                              j->spec.uid, j->spec.gid, err);
}

static int too_much(const struct job *j, struct chempi_err *err)
{
    return chempi_err_set(err, -EDQUOT,
                          "the jobs of user %ld need more memory of the daemon "
                          "of node %s than a user may have (limit: %zu bytes); "
                          "use smaller environments, fewer ranks and nodes, or "
                          "wait until some jobs have ended",
                          (long)j->user->uid, j->daemon->opt->name,
                          j->user->purse.max);
}

/* So many bytes more are the job's. */
static int pay(struct job *j, size_t bytes, struct chempi_err *err)
{
    struct chempi_purse *purse = &j->user->purse;

    if (bytes > purse->max - purse->used)
        return too_much(j, err);
    purse->used += bytes;
    j->paid += bytes;
    return 0;
}

/* What this node keeps of each rank. */
static int pay_ranks(struct job *j, struct chempi_err *err)
{
    if (j->local_size > CHEMPI_NODE_RANKS_MAX)
        return chempi_err_set(err, -EINVAL,
                              "the daemon of node %s runs at most %u ranks of "
                              "a job, not %u; use more nodes",
                              j->daemon->opt->name, CHEMPI_NODE_RANKS_MAX,
                              j->local_size);
    return pay(j, (j->local_size + (size_t)1) * CHEMPI_BUDGET_RANK_BYTES, err);
}

/* The launcher has mapped the ranks to slots that were free when it asked.
 * Nobody else comes between this look and the place among the jobs, so what is
 * taken here is taken once. */
static int check_slots(struct job *j, uint32_t node, struct chempi_err *err)
{
    const uint32_t slots = j->daemon->slots;
    const uint32_t ranks = j->local_size;
    uint64_t busy = 0;
    uint8_t data[4];
    struct chempi_writer w;

    CHEMPI_LIST_FOR (e, &j->daemon->jobs)
        busy += CHEMPI_CONTAINER_OF(e, struct job, entry)->local_size;
    busy -= ranks;
    if (busy <= j->spec.busy_max[node])
        return 0;
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, node);
    chempi_job_send_up(j, CHEMPI_MSG_TAKEN, w.data, w.len);
    return chempi_err_set(err, -EDQUOT,
                          "%u rank%s of the job w%s mapped to free slots of "
                          "node %s, and other jobs have taken them meanwhile: "
                          "%u of %u are free now",
                          ranks, ranks > 1 ? "s" : "", ranks > 1 ? "ere" : "as",
                          j->daemon->opt->name,
                          busy < slots ? (uint32_t)(slots - busy) : 0, slots);
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
    chempi_job_send_up(j, CHEMPI_MSG_NODE_LOST, w.data, w.len);
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
    chempi_job_watch(limb);
    limb->node = node;
    /* It is forgotten before the job leaves its user. */
    limb->supervisor_child.purse = &j->user->purse;
    limb->grant.refused = refused;
    limb->grant.arg = limb;
    j->spec.slots = d->slots;
    if (!rc)
        rc = check_slots(j, node, &err);
    if (!rc)
        rc = pay_ranks(j, &err);
    if (!rc && !j->spec.tables && d->opt->tables)
        j->spec.tables = chempi_pool_str(&j->spec.pool, d->opt->tables);
    if (!rc &&
        chempi_grants_open(d, &limb->grant, &j->spec, node,
                           &limb->supervisor_child.link, &j->spec.memory_share))
        rc = chempi_err_set(&err, -ENOMEM,
                            "the daemon of node %s is out of memory",
                            d->opt->name);
    if (!rc)
        rc = chempi_supervisors_start(&d->supervisors, &limb->supervisor_child,
                                      d->loop, &j->spec, node, &err);
    if (rc) {
        j->local_size = 0; /* it holds no slots */
        chempi_grants_close(&limb->grant);
        chempi_hub_lose(&j->hub, chempi_job_child(limb), err.text);
    } else {
        limb->is_supervisor = true;
        if (d->is_drained &&
            chempi_spec_gateway(&j->spec, node) != CHEMPI_NODE_ANY)
            chempi_job_tell_drained(j, node, true);
    }
    return 0;
}

/* ---- daemons below ------------------------------------------------------- */

/* It has a gateway and no rank. */
static bool is_spare(const struct job *j, uint32_t node)
{
    return node >= j->hub.spare;
}

/* Also this belongs to one job of those that share the link. */
static int send_launch(struct job *j, struct limb *limb, const uint32_t *nodes,
                       uint32_t count, struct chempi_err *err)
{
    struct chempi_link *link = &limb->conn->link;
    const char *name = j->spec.node_names[nodes[0]];
    const size_t len = 4 + 4 * (size_t)count + sizeof(j->spec.shell) +
                       j->spec_len; /* at most */
    struct chempi_writer *w;
    int rc;

    if (!chempi_job_fits(j, limb->conn, &limb->load, len))
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
    chempi_spec_copy(&j->spec, j->spec_bytes, j->spec_len,
                     !is_spare(j, nodes[0]), w);
    rc = chempi_link_try_end(link);
    if (rc)
        return chempi_err_set(err, rc, "the job cannot be sent to node %s: %s",
                              name, chempi_err_name(rc));
    chempi_job_count(j, limb->conn, &limb->load, len);
    return 0;
}

static int pass_on(struct job *j, const uint32_t *nodes, uint32_t count,
                   struct chempi_err *why)
{
    const char *name = j->spec.node_names[nodes[0]];
    struct limb *limb = add_limb(j, nodes, count, why);
    struct chempi_err err = {0};

    if (!limb)
        return why->code;
    limb->conn = chempi_nodes_call(j->daemon, name, &err);
    if (!limb->conn)
        (void)chempi_err_prefix(&err, "node %s", name);
    else if (send_launch(j, limb, nodes, count, &err))
        limb->conn = NULL; /* nothing of the job has gone there */
    if (!limb->conn)
        chempi_hub_lose(&j->hub, chempi_job_child(limb), err.text);
    return 0;
}

/* This node's part here, spare nodes one by one, the others in pieces to the
 * first node of each. */
static int spread(struct job *j, struct chempi_err *err)
{
    uint32_t rest = 0;
    uint32_t piece;
    int rc = 0;

    chempi_nodes_look(j->daemon);
    for (uint32_t i = 0; !rc && i < j->node_count; i++) {
        const uint32_t node = j->nodes[i];

        if (strcmp(j->spec.node_names[node], j->daemon->opt->name) == 0)
            rc = start_here(j, node, err);
        else if (is_spare(j, node))
            rc = pass_on(j, &node, 1, err);
        else
            j->nodes[rest++] = node;
    }
    piece = chempi_pieces_len(rest, CHEMPI_DAEMON_FANOUT);
    for (uint32_t i = 0; !rc && i < rest; i += piece)
        rc = pass_on(j, j->nodes + i, rest - i < piece ? rest - i : piece, err);
    return rc;
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

/* The description, for which its user pays. */
static int parse_spec(struct job *j, const struct chempi_conn *from,
                      struct chempi_reader *r, struct chempi_err *err)
{
    const uint32_t uid = chempi_spec_user(r);
    int rc;

    j->spec_bytes = r->next;
    j->spec_len = (size_t)(r->end - r->next);
    if (from->kind == CHEMPI_CONN_LOCAL && uid != from->uid)
        return chempi_err_set(err, -EPERM,
                              "a launch in the name of another user or group");
    j->user = chempi_user_shares_enter(&j->daemon->conns.shares, uid,
                                       CHEMPI_USER_SHARES_JOBS, err);
    if (!j->user)
        return err->code;
    rc = pay(j, j->node_count * sizeof(*j->nodes), err);
    if (rc)
        return rc;
    rc = chempi_spec_read_for(&j->spec, r, &j->user->purse);
    return rc == -EDQUOT ? too_much(j, err) : rc;
}

/* What the ranks of a job have here comes from the process that has submitted
 * it, which the first daemon has looked at. */
static bool has_shell(const struct chempi_shell *shell,
                      const struct chempi_conn *from)
{
    return from->kind == CHEMPI_CONN_LOCAL ||
           (shell->is_known && shell->count == RLIM_NLIMITS);
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
    if (!rc && !has_shell(&shell, from))
        return chempi_err_set(err, -EBADMSG,
                              "a launch without its submitter's limits");
    if (!rc)
        rc = parse_spec(j, from, &r, err);
    if (err->code)
        return err->code;
    if (!rc)
        j->spec.shell = shell;
    if (!rc && (!chempi_wire_is_done(&r) || j->spec.job != frame->job))
        rc = -EBADMSG;
    if (!rc)
        rc = check_nodes(j);
    if (rc)
        return chempi_err_set(err, rc, "a malformed launch: %s",
                              chempi_err_name(rc));
    if (from->kind == CHEMPI_CONN_LOCAL && j->spec.gid != from->gid)
        return chempi_err_set(err, -EPERM,
                              "a launch in the name of another user or group");
    if (chempi_job_find(j->daemon, j->spec.job))
        return chempi_err_set(err, -EEXIST, "a launch of a job that runs");
    return from->kind == CHEMPI_CONN_LOCAL
               ? chempi_shell_read(&j->spec.shell, from->link.ch.fd, err)
               : 0;
}

static int make_limbs(struct job *j, struct chempi_err *err)
{
    const uint32_t spare = chempi_spec_first_spare(&j->spec);
    uint32_t count = CHEMPI_DAEMON_FANOUT + 1;
    int rc;

    for (uint32_t i = 0; i < j->node_count; i++)
        count += j->nodes[i] >= spare;
    rc = pay(j,
             count * sizeof(*j->limbs) +
                 chempi_hub_bytes(j->spec.node_count, count),
             err);
    if (rc)
        return rc;
    j->limbs = chempi_sys->calloc(count, sizeof(*j->limbs));
    rc = j->limbs ? chempi_hub_init(&j->hub, j->spec.node_count, count,
                                    &chempi_job_hub_ops, j)
                  : -ENOMEM;
    if (rc)
        return chempi_err_set(err, rc, "out of memory");
    chempi_hub_expect(&j->hub, j->node_count);
    chempi_hub_spare(&j->hub, spare);
    return 0;
}

/* If it is among those that are our business. */
static uint32_t find_own_node(const struct job *j)
{
    for (uint32_t i = 0; i < j->node_count; i++)
        if (strcmp(j->spec.node_names[j->nodes[i]], j->daemon->opt->name) == 0)
            return j->nodes[i];
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
    rc = rc ? rc : make_limbs(j, err);
    if (rc) {
        chempi_job_destroy(j);
        return rc;
    }
    j->up = from;
    j->own_node = find_own_node(j);
    if (j->own_node != CHEMPI_NODE_ANY)
        j->local_size = chempi_spec_local_size(&j->spec, j->own_node);
    chempi_job_ready_timers(j);
    chempi_list_append(&d->jobs, &j->entry);
    chempi_log(CHEMPI_LOG_INFO, "jobs", "job %s: %u ranks of %s", j->spec.id,
               j->spec.size, j->spec.apps[0].argv[0]);
    rc = spread(j, err);
    j->spec_bytes = NULL;
    if (rc)
        chempi_job_drop(j);
    else
        chempi_job_settle(j);
    return rc;
}
