/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions for the state of nodes; see daemon.h. A question is cut in pieces
 * that go to the first node of each, which does the same, so that no daemon
 * speaks to more than CHEMPI_DAEMON_FANOUT others for it. A node that does
 * not answer gets a record that says so, and the next of its piece is tried.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/daemon.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

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
    uint64_t asked;           /* the asker's number */
    uint64_t number;          /* ours */
    struct chempi_pool pool;
    const char **names;
    uint32_t name_count;
    struct piece pieces[CHEMPI_DAEMON_FANOUT];
    uint32_t piece_count;
    struct chempi_writer answer;
    bool with_memory;
};

static void destroy(struct query *q)
{
    chempi_list_remove(&q->entry);
    q->daemon->query_count--;
    chempi_wire_clear(&q->answer);
    chempi_pool_fini(&q->pool);
    free(q);
}

static void add_error(struct query *q, const char *node, const char *text)
{
    char cut[CHEMPI_TEXT_MAX];
    const struct chempi_status s = {.node = node, .error = cut};

    (void)snprintf(cut, sizeof(cut), "%.1000s", *text ? text : "?");
    chempi_status_write(&q->answer, &s);
}

static void add_self(struct query *q)
{
    struct chempi_status s;

    if (chempi_jobs_status(q->daemon, q->with_memory, &q->pool, &s))
        add_error(q, q->daemon->opt->name, "out of memory");
    else
        chempi_status_write(&q->answer, &s);
}

/* Ask the first node of the piece that can be called. */
static void send_piece(struct piece *p, const struct chempi_members *known)
{
    struct query *q = p->query;

    p->conn = NULL;
    for (; p->first < p->end; p->first++) {
        struct chempi_err err = {0};
        struct chempi_conn *conn =
            chempi_daemon_call(q->daemon, known, q->names[p->first], &err);
        struct chempi_writer *w;

        if (!conn) {
            add_error(q, q->names[p->first], err.text);
            continue;
        }
        p->conn = conn;
        w = chempi_link_begin(&conn->link, CHEMPI_MSG_QUERY, q->number);
        chempi_wire_put_u32(w, p->end - p->first);
        for (uint32_t i = p->first; i < p->end; i++)
            chempi_wire_put_str(w, q->names[i]);
        chempi_wire_put_u32(w, q->with_memory);
        chempi_link_end(&conn->link);
        return;
    }
}

/* D3 */
static void settle(struct query *q)
{
    struct chempi_writer *w;

    for (uint32_t i = 0; i < q->piece_count; i++)
        if (q->pieces[i].conn)
            return;
    if (q->from) {
        w = chempi_link_begin(&q->from->link, CHEMPI_MSG_STATUS, q->asked);
        chempi_wire_put_raw(w, q->answer.data, q->answer.len);
        if (q->answer.error) /* breaks the connection: this is known there */
            w->error = q->answer.error;
        chempi_link_end(&q->from->link);
    }
    destroy(q);
}

static int read_names(struct query *q, const struct chempi_members *known,
                      const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t n;

    chempi_wire_read(&r, frame->data, frame->len);
    n = chempi_wire_get_count(&r, CHEMPI_JOB_NODES_MAX, 5);
    q->names = chempi_pool_array(&q->pool, (size_t)n + known->count + 1,
                                 sizeof(*q->names));
    if (!q->names)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = chempi_wire_get_str(&r, CHEMPI_NODE_NAME_MAX);

        q->names[q->name_count] = chempi_pool_str(&q->pool, name);
        if (!q->names[q->name_count++])
            return -ENOMEM;
    }
    q->with_memory = chempi_wire_get_u32(&r) != 0;
    if (!chempi_wire_is_done(&r))
        return -EBADMSG;
    if (n)
        return 0;
    if (!chempi_members_find(known, q->daemon->opt->name))
        q->names[q->name_count++] = q->daemon->opt->name;
    for (uint32_t i = 0; i < known->count; i++) {
        q->names[q->name_count] =
            chempi_pool_str(&q->pool, known->list[i].name);
        if (!q->names[q->name_count++])
            return -ENOMEM;
    }
    return 0;
}

static void spread(struct query *q, const struct chempi_members *known)
{
    uint32_t rest = 0;
    uint32_t size;

    for (uint32_t i = 0; i < q->name_count; i++) {
        if (strcmp(q->names[i], q->daemon->opt->name) == 0)
            add_self(q);
        else
            q->names[rest++] = q->names[i];
    }
    size = (rest + CHEMPI_DAEMON_FANOUT - 1) / CHEMPI_DAEMON_FANOUT;
    for (uint32_t i = 0; i < rest; i += size) {
        struct piece *p = &q->pieces[q->piece_count++];

        *p = (struct piece){
            .query = q, .first = i, .end = rest - i < size ? rest : i + size};
        send_piece(p, known);
    }
}

int chempi_query_ask(struct chempi_daemon *d, struct chempi_conn *from,
                     const struct chempi_frame *frame, struct chempi_err *err)
{
    struct chempi_members known;
    struct query *q;
    int rc;

    if (d->query_count >= CHEMPI_DAEMON_QUERIES_MAX)
        return chempi_err_set(err, -ENOBUFS, "too many questions");
    q = chempi_sys->calloc(1, sizeof(*q));
    if (!q)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    q->daemon = d;
    q->from = from;
    q->asked = frame->job;
    q->number = ++d->next_query;
    chempi_list_append(&d->queries, &q->entry);
    d->query_count++;
    chempi_daemon_members(d, &known);
    rc = read_names(q, &known, frame);
    if (rc) {
        destroy(q);
        (void)chempi_err_set(err, rc, "a malformed question");
    } else {
        spread(q, &known);
        settle(q);
    }
    chempi_members_fini(&known);
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

/* Records are checked before they are passed on. */
static int check_records(const struct chempi_frame *frame)
{
    struct chempi_pool pool = {0};
    struct chempi_status s;
    struct chempi_reader r;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    while (!r.is_bad && r.next < r.end)
        chempi_status_read(&r, &pool, &s);
    rc = r.is_bad ? -EBADMSG : 0;
    chempi_pool_fini(&pool);
    return rc;
}

int chempi_query_answer(struct chempi_daemon *d, struct chempi_conn *from,
                        const struct chempi_frame *frame,
                        struct chempi_err *err)
{
    struct piece *p = find_piece(d, from, frame->job);

    if (check_records(frame))
        return chempi_err_set(err, -EBADMSG, "a malformed status");
    if (!p)
        return 0;
    chempi_wire_put_raw(&p->query->answer, frame->data, frame->len);
    p->conn = NULL;
    settle(p->query);
    return 0;
}

static void lose_pieces(struct query *q, const struct chempi_conn *conn,
                        const char *text)
{
    struct chempi_members known;

    chempi_daemon_members(q->daemon, &known);
    for (uint32_t i = 0; i < q->piece_count; i++) {
        struct piece *p = &q->pieces[i];

        if (p->conn != conn)
            continue;
        add_error(q, q->names[p->first++], text);
        send_piece(p, &known);
    }
    chempi_members_fini(&known);
}

void chempi_query_lose(struct chempi_daemon *d, struct chempi_conn *conn,
                       const char *text)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->queries) {
        struct query *q = CHEMPI_CONTAINER_OF(e, struct query, entry);

        if (q->from == conn)
            q->from = NULL;
        lose_pieces(q, conn, text);
        settle(q);
    }
}

void chempi_query_fini(struct chempi_daemon *d)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->queries)
        destroy(CHEMPI_CONTAINER_OF(e, struct query, entry));
}
