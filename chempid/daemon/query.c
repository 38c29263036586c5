/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions for the state of nodes; see daemon.h. A question is cut in pieces
 * that go to the first node of each, which does the same, so that no daemon
 * speaks to more than CHEMPI_DAEMON_FANOUT others for it. A node that does
 * not answer gets a record that says so, and the next of its piece is tried.
 * So every node that was asked for has one record in the answer, and no other
 * has any, whatever the daemons below say. An answer fits into a frame: the
 * records beyond ANSWER_MAX are of the short kind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/nodes.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

/* The rest of a frame has room for a short record of every node. */
#define SHORT_MAX 160u
#define ANSWER_MAX (CHEMPI_TREE_MAX - CHEMPI_JOB_NODES_MAX * SHORT_MAX)

/* Of a question without one: in detection times, and in seconds, before the
 * client gives up. What is passed on has less, so that its answer says who has
 * none, before ours is due. */
#define LIMIT_DETECTIONS 4.0
#define LIMIT_MAX_S 20.0
#define PASSED_ON 0.75

struct query;

struct piece {
    struct query *query;
    struct chempi_conn *conn; /* NULL: answered */
    uint32_t first;           /* into the query's names */
    uint32_t end;
};

struct query {
    struct chempi_list entry;
    struct chempi_daemon *daemon;
    struct chempi_conn *from; /* NULL: gone */
    struct chempi_user *user; /* for whom it counts, here and below */
    uint64_t asked;           /* the asker's number */
    uint64_t number;          /* ours */
    struct chempi_pool pool;
    const char **names; /* sorted, each once */
    uint32_t name_count;
    struct piece pieces[CHEMPI_DAEMON_FANOUT];
    uint32_t piece_count;
    struct chempi_writer answer;
    size_t paid; /* bytes of the user's purse, for the answer */
    bool with_memory;
    double limit_s;
    ev_timer limit;
};

static void destroy(struct query *q)
{
    ev_timer_stop(q->daemon->loop, &q->limit);
    chempi_list_remove(&q->entry);
    q->daemon->query_count--;
    if (q->from)
        q->from->questions--;
    chempi_wire_clear(&q->answer);
    chempi_pool_fini(&q->pool);
    q->user->purse.used -= q->paid;
    chempi_user_shares_leave(&q->daemon->conns.shares, q->user,
                             CHEMPI_USER_SHARES_QUESTIONS);
    free(q);
}

/* What the answer has grown to is the user's; else it is no answer. */
static void pay_answer(struct query *q)
{
    struct chempi_purse *purse = &q->user->purse;
    const size_t more = q->answer.cap - q->paid;

    if (more > purse->max - purse->used) {
        chempi_wire_clear(&q->answer);
        purse->used -= q->paid;
        q->paid = 0;
        q->answer.error = -EDQUOT;
        return;
    }
    purse->used += more;
    q->paid += more;
}

static void add_error(struct query *q, const char *node, const char *text)
{
    char cut[CHEMPI_TEXT_MAX];
    const struct chempi_status s = {.node = node, .error = cut};

    (void)snprintf(cut, sizeof(cut), "%.1000s", *text ? text : "?");
    if (q->answer.len + sizeof(cut) + SHORT_MAX > ANSWER_MAX)
        cut[SHORT_MAX / 4] = '\0';
    chempi_status_write(&q->answer, &s);
    pay_answer(q);
}

/* A whole record, where there is room. */
static void add_record(struct query *q, const char *node, const uint8_t *data,
                       size_t len)
{
    if (q->answer.len + len > ANSWER_MAX)
        add_error(q, node, "too long an answer");
    else
        chempi_wire_put_raw(&q->answer, data, len);
    pay_answer(q);
}

static void add_self(struct query *q)
{
    struct chempi_writer w = {0};
    struct chempi_status s;

    if (!chempi_jobs_status(q->daemon, q->with_memory, &q->pool, &s))
        chempi_status_write(&w, &s);
    else
        w.error = -ENOMEM;
    if (w.error)
        add_error(q, q->daemon->opt->name, "out of memory");
    else
        add_record(q, q->daemon->opt->name, w.data, w.len);
    chempi_wire_clear(&w);
}

/* Ask the first node of the piece that can be called, by what is known since
 * chempi_nodes_look(). */
static void send_piece(struct piece *p)
{
    struct query *q = p->query;

    p->conn = NULL;
    for (; p->first < p->end; p->first++) {
        struct chempi_err err = {0};
        struct chempi_conn *conn =
            chempi_nodes_call(q->daemon, q->names[p->first], &err);
        struct chempi_writer *w;
        int rc;

        if (!conn) {
            add_error(q, q->names[p->first], err.text);
            continue;
        }
        w = chempi_link_begin(&conn->link, CHEMPI_MSG_QUERY, q->number);
        chempi_wire_put_u32(w, (uint32_t)q->user->uid);
        chempi_wire_put_u32(w, p->end - p->first);
        for (uint32_t i = p->first; i < p->end; i++)
            chempi_wire_put_str(w, q->names[i]);
        chempi_wire_put_u32(w, q->with_memory);
        chempi_wire_put_u32(w, (uint32_t)(q->limit_s * 1000 * PASSED_ON));
        rc = chempi_conns_end_for(conn, q->user->uid);
        if (!rc) {
            p->conn = conn;
            return;
        }
        add_error(q, q->names[p->first], chempi_err_name(rc));
    }
}

/* Where it cannot be sent, this is said instead: to a client, whose connection
 * is its own, by ending that. */
static void send_answer(struct query *q)
{
    struct chempi_link *link = &q->from->link;
    struct chempi_writer *w =
        chempi_link_begin(link, CHEMPI_MSG_STATUS, q->asked);
    int rc;

    chempi_wire_put_raw(w, q->answer.data, q->answer.len);
    if (q->answer.error) /* the link takes the frame back */
        w->error = q->answer.error;
    if (q->from->kind == CHEMPI_CONN_LOCAL) {
        chempi_link_end(link);
        return;
    }
    rc = chempi_conns_end_for(q->from, q->user->uid);
    if (rc)
        chempi_conns_refuse(q->from, CHEMPI_MSG_QUERY, q->asked,
                            chempi_err_name(rc));
}

/* D3 */
static void settle(struct query *q)
{
    for (uint32_t i = 0; i < q->piece_count; i++)
        if (q->pieces[i].conn)
            return;
    if (q->from)
        send_answer(q);
    destroy(q);
}

/* Those who have been asked and have not answered are named (D3). */
static void time_is_up(struct ev_loop *loop, ev_timer *w, int events)
{
    struct query *q = w->data;
    char text[CHEMPI_TEXT_MAX];

    (void)loop;
    (void)events;
    for (uint32_t i = 0; i < q->piece_count; i++) {
        struct piece *p = &q->pieces[i];

        if (!p->conn)
            continue;
        (void)snprintf(text, sizeof(text),
                       "its daemon has not answered within %g s", q->limit_s);
        add_error(q, q->names[p->first], text);
        (void)snprintf(text, sizeof(text),
                       "not asked: node %s, which was to ask it, has not "
                       "answered within %g s",
                       q->names[p->first], q->limit_s);
        for (uint32_t k = p->first + 1; k < p->end; k++)
            add_error(q, q->names[k], text);
        p->conn = NULL;
    }
    settle(q);
}

static void start_limit(struct query *q, uint32_t ms)
{
    const double own_s = q->daemon->opt->detect_s * LIMIT_DETECTIONS;

    q->limit_s = own_s < LIMIT_MAX_S ? own_s : LIMIT_MAX_S;
    if (ms && ms / 1000.0 < q->limit_s)
        q->limit_s = ms / 1000.0;
    ev_timer_init(&q->limit, time_is_up, q->limit_s, 0.0);
    q->limit.data = q;
    ev_timer_start(q->daemon->loop, &q->limit);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whoever names a node twice is told of it once. */
static void sort_names(struct query *q)
{
    uint32_t n = 0;

    if (q->name_count)
        qsort(q->names, q->name_count, sizeof(*q->names), compare_names);
    for (uint32_t i = 0; i < q->name_count; i++)
        if (i == 0 || strcmp(q->names[i], q->names[n - 1]) != 0)
            q->names[n++] = q->names[i];
    q->name_count = n;
}

static int add_name(struct query *q, const char *name)
{
    const char *copy = chempi_pool_str(&q->pool, name);

    if (!copy)
        return -ENOMEM;
    q->names[q->name_count++] = copy;
    return 0;
}

/* Room for so many. */
static int make_names(struct query *q, size_t count)
{
    q->names = chempi_pool_array(&q->pool, count, sizeof(*q->names));
    return q->names ? 0 : -ENOMEM;
}

/* No more than an answer has room for; none that is among the others. */
static int add_members(struct query *q, const struct chempi_members *from,
                       const struct chempi_members *others)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < from->count; i++) {
        const char *name = from->list[i].name;

        if (q->name_count < CHEMPI_JOB_NODES_MAX &&
            strcmp(name, q->daemon->opt->name) != 0 &&
            !chempi_members_find(others, name))
            rc = add_name(q, name);
    }
    return rc;
}

/* All that are known, each once. */
static int add_all(struct query *q)
{
    static const struct chempi_members nobody;
    struct chempi_daemon *d = q->daemon;
    const struct chempi_members *ready = chempi_nodes_ready(d);
    int rc = make_names(q, (size_t)d->members.count + ready->count + 1);

    rc = rc ? rc : add_name(q, d->opt->name);
    rc = rc ? rc : add_members(q, ready, &nobody);
    return rc ? rc : add_members(q, &d->members, ready);
}

static int read_names(struct query *q, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t n;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r); /* user_of() */
    n = chempi_wire_get_count(&r, CHEMPI_JOB_NODES_MAX, 5);
    rc = make_names(q, n);
    for (uint32_t i = 0; !rc && i < n; i++)
        rc = add_name(q, chempi_wire_get_str(&r, CHEMPI_NODE_NAME_MAX));
    if (rc)
        return rc;
    q->with_memory = chempi_wire_get_u32(&r) != 0;
    start_limit(q, chempi_wire_get_u32(&r));
    if (!chempi_wire_is_done(&r))
        return -EBADMSG;
    return n ? 0 : add_all(q);
}

static void spread(struct query *q)
{
    uint32_t rest = 0;
    uint32_t size;

    for (uint32_t i = 0; i < q->name_count; i++) {
        if (strcmp(q->names[i], q->daemon->opt->name) == 0)
            add_self(q);
        else
            q->names[rest++] = q->names[i];
    }
    size = chempi_pieces_len(rest, CHEMPI_DAEMON_FANOUT);
    for (uint32_t i = 0; i < rest; i += size) {
        struct piece *p = &q->pieces[q->piece_count++];

        *p = (struct piece){
            .query = q, .first = i, .end = rest - i < size ? rest : i + size};
        send_piece(p);
    }
}

/* Who asks: a client of ours, or whoever the daemon says that has asked us. */
static uint32_t user_of(const struct chempi_conn *from,
                        const struct chempi_frame *frame)
{
    struct chempi_reader r;

    if (from->kind == CHEMPI_CONN_LOCAL)
        return from->uid;
    chempi_wire_read(&r, frame->data, frame->len);
    return chempi_wire_get_u32(&r);
}

/* It counts for its user. */
static struct query *begin(struct chempi_daemon *d, struct chempi_conn *from,
                           const struct chempi_frame *frame,
                           struct chempi_err *err)
{
    struct chempi_user *user;
    struct query *q;

    if (d->query_count >= CHEMPI_DAEMON_QUERIES_MAX ||
        from->questions >= CHEMPI_LINK_QUESTIONS_MAX) {
        (void)chempi_err_set(err, -ENOBUFS, "too many questions");
        return NULL;
    }
    q = chempi_sys->calloc(1, sizeof(*q));
    if (!q) {
        (void)chempi_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    user = chempi_user_shares_enter(&d->conns.shares, user_of(from, frame),
                                    CHEMPI_USER_SHARES_QUESTIONS, err);
    if (!user) {
        free(q);
        return NULL;
    }
    q->daemon = d;
    q->from = from;
    q->user = user;
    q->pool.purse = &user->purse;
    q->asked = frame->job;
    q->number = ++d->next_query;
    chempi_list_append(&d->queries, &q->entry);
    d->query_count++;
    from->questions++;
    return q;
}

int chempi_query_ask(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    struct query *q = begin(d, from, frame, err);
    int rc;

    if (!q)
        return err->code;
    chempi_nodes_look(d);
    rc = read_names(q, frame);
    if (rc == -ENOMEM && q->pool.error == -EDQUOT) {
        destroy(q);
        rc = chempi_err_set(err, -EDQUOT,
                            "the questions of its user need more memory than a "
                            "user may have");
    } else if (rc) {
        destroy(q);
        (void)chempi_err_set(err, rc, "a malformed question: %s",
                             chempi_err_name(rc));
    } else {
        sort_names(q);
        spread(q);
        settle(q);
    }
    return rc;
}

static struct piece *find_piece(struct chempi_daemon *d,
                                const struct chempi_conn *conn, uint64_t number)
{
    CHEMPI_LIST_FOR (e, &d->queries) {
        struct query *q = CHEMPI_CONTAINER_OF(e, struct query, entry);

        for (uint32_t i = 0; i < q->piece_count; i++)
            if (q->number == number && q->pieces[i].conn == conn)
                return &q->pieces[i];
    }
    return NULL;
}

/* The name's place among those of the piece; -1: none. */
static int64_t place_of(const struct piece *p, const char *name)
{
    uint32_t low = p->first;
    uint32_t high = p->end;

    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const int order = strcmp(p->query->names[mid], name);

        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

/* One record of each node of the piece is kept; which have come is noted. */
static int take_records(struct piece *p, const struct chempi_frame *frame,
                        bool *has_come)
{
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    while (!r.is_bad && r.next < r.end) {
        const uint8_t *start = r.next;
        int64_t at;

        chempi_status_read(&r, &pool, &s);
        at = r.is_bad ? -1 : place_of(p, s.node);
        if (at < 0 || has_come[at - p->first])
            continue;
        has_come[at - p->first] = true;
        add_record(p->query, s.node, start, (size_t)(r.next - start));
    }
    rc = r.is_bad ? -EBADMSG : 0;
    chempi_pool_fini(&pool);
    return rc;
}

int chempi_query_answer(struct chempi_daemon *d, struct chempi_conn *from,
                        const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct piece *p = find_piece(d, from, frame->job);
    struct query *q = p ? p->query : NULL;
    char text[CHEMPI_TEXT_MAX];
    bool *has_come;
    int rc;

    if (!p)
        return 0; /* late */
    has_come = chempi_pool_array(&q->pool, p->end - p->first, sizeof(bool));
    rc = has_come ? take_records(p, frame, has_come) : -ENOMEM;
    (void)snprintf(text, sizeof(text),
                   rc ? "the answer of node %s cannot be read"
                      : "node %s has not answered for it",
                   from->peer);
    for (uint32_t i = p->first; i < p->end; i++)
        if (!has_come || !has_come[i - p->first])
            add_error(q, q->names[i], text);
    p->conn = NULL;
    settle(q);
    return rc ? chempi_err_set(err, rc, "a malformed status: %s",
                               chempi_err_name(rc))
              : 0;
}

int chempi_query_refused(struct chempi_daemon *d, struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    struct piece *p = find_piece(d, from, frame->job);
    struct chempi_reader r;
    const char *why;

    chempi_wire_read(&r, frame->data, frame->len);
    (void)chempi_wire_get_u32(&r);
    why = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
    if (p) {
        chempi_nodes_look(d);
        add_error(p->query, p->query->names[p->first++],
                  r.is_bad ? "it does not answer" : why);
        send_piece(p);
        settle(p->query);
    }
    return chempi_wire_is_done(&r)
               ? 0
               : chempi_err_set(err, -EBADMSG, "a malformed message (refusal)");
}

static void lose_pieces(struct query *q, const struct chempi_conn *conn,
                        const char *text)
{
    for (uint32_t i = 0; i < q->piece_count; i++) {
        struct piece *p = &q->pieces[i];

        if (p->conn != conn)
            continue;
        add_error(q, q->names[p->first++], text);
        send_piece(p);
    }
}

void chempi_query_lose(struct chempi_daemon *d, struct chempi_conn *conn,
                       const char *text)
{
    if (!chempi_list_is_empty(&d->queries))
        chempi_nodes_look(d);
    CHEMPI_LIST_FOR_SAFE (e, &d->queries) {
        struct query *q = CHEMPI_CONTAINER_OF(e, struct query, entry);

        if (q->from == conn)
            q->from = NULL; /* and its counts end with it */
        lose_pieces(q, conn, text);
        settle(q);
    }
}

void chempi_query_fini(struct chempi_daemon *d)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->queries)
        destroy(CHEMPI_CONTAINER_OF(e, struct query, entry));
}
