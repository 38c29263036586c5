/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders under way; see orders.h. */
#include "chempid/daemon/orders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "chempid/daemon/daemon.h"
#include "chempid/tree/limits.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

struct order {
    struct chempi_list entry;
    struct chempi_daemon *daemon;
    struct chempi_conn *from;
    struct chempi_user *user; /* for whom it counts */
    uint64_t asked;           /* the asker's number */
    struct chempi_conn *to;   /* NULL: the job is awaited */
    uint64_t number;          /* ours, or the job's */
    ev_timer limit;
};

void chempi_orders_init(struct chempi_orders *orders)
{
    *orders = (struct chempi_orders){0};
    chempi_list_init(&orders->all);
}

void chempi_orders_reply(struct chempi_conn *to, uint32_t uid, uint64_t number,
                         int code, const char *text)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, (uint32_t)-code);
    chempi_wire_put_str(&w, text);
    if (to->kind == CHEMPI_CONN_LOCAL) {
        chempi_link_send(&to->link, CHEMPI_MSG_REPLY, number, w.data, w.len);
        return;
    }
    chempi_wire_put_raw(chempi_link_begin(&to->link, CHEMPI_MSG_REPLY, number),
                        w.data, w.len);
    (void)chempi_conns_end_for(to, uid); /* else the asker's limit tells it */
}

static void destroy(struct order *o)
{
    ev_timer_stop(o->daemon->loop, &o->limit);
    chempi_list_remove(&o->entry);
    o->daemon->orders.count--;
    o->from->orders--;
    chempi_user_shares_leave(&o->daemon->conns.shares, o->user,
                             CHEMPI_USER_SHARES_ORDERS);
    free(o);
}

/* O1 */
static void conclude(struct order *o, int code, const char *text)
{
    chempi_orders_reply(o->from, (uint32_t)o->user->uid, o->asked, code, text);
    destroy(o);
}

static void time_is_up(struct ev_loop *loop, ev_timer *w, int events)
{
    struct order *o = w->data;
    char text[256];

    (void)loop;
    (void)events;
    if (o->to)
        (void)snprintf(text, sizeof(text),
                       "the daemon of node %s has not answered within %g s",
                       o->to->peer, CHEMPI_ORDERS_S);
    else
        (void)snprintf(text, sizeof(text),
                       "the job was told to end, but has not within %g s",
                       CHEMPI_ORDERS_S);
    conclude(o, -ETIMEDOUT, text);
}

static struct order *add(struct chempi_daemon *d, struct chempi_conn *from,
                         uint32_t uid, uint64_t asked, struct chempi_err *err)
{
    struct order *o;

    if (d->orders.count >= CHEMPI_ORDERS_MAX ||
        from->orders >= CHEMPI_LINK_ORDERS_MAX) {
        (void)chempi_err_set(err, -ENOBUFS,
                             "the daemon of node %s has too many orders under "
                             "way (limits: %u, and %u from one daemon)",
                             d->opt->name, CHEMPI_ORDERS_MAX,
                             CHEMPI_LINK_ORDERS_MAX);
        return NULL;
    }
    o = chempi_sys->calloc(1, sizeof(*o));
    if (!o) {
        (void)chempi_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    o->user = chempi_user_shares_enter(&d->conns.shares, uid,
                                       CHEMPI_USER_SHARES_ORDERS, err);
    if (!o->user) {
        free(o);
        return NULL;
    }
    from->orders++;
    o->daemon = d;
    o->from = from;
    o->asked = asked;
    ev_timer_init(&o->limit, time_is_up, CHEMPI_ORDERS_S, 0.0);
    o->limit.data = o;
    ev_timer_start(d->loop, &o->limit);
    chempi_list_append(&d->orders.all, &o->entry);
    d->orders.count++;
    return o;
}

int chempi_orders_pass(struct chempi_daemon *d, struct chempi_conn *from,
                       uint32_t uid, uint64_t number, struct chempi_conn *to,
                       uint64_t *out, struct chempi_err *err)
{
    struct order *o = add(d, from, uid, number, err);

    if (!o)
        return err->code;
    o->to = to;
    o->number = *out = ++d->orders.next;
    return 0;
}

void chempi_orders_take_back(struct chempi_daemon *d, uint64_t number)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->orders.all) {
        struct order *o = CHEMPI_CONTAINER_OF(e, struct order, entry);

        if (o->to && o->number == number)
            destroy(o);
    }
}

int chempi_orders_await(struct chempi_daemon *d, struct chempi_conn *from,
                        uint32_t uid, uint64_t number, uint64_t job,
                        struct chempi_err *err)
{
    struct order *o = add(d, from, uid, number, err);

    if (!o)
        return err->code;
    o->number = job;
    return 0;
}

int chempi_orders_answer(struct chempi_daemon *d,
                         const struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    struct chempi_reader r;
    uint32_t code;
    const char *text;

    chempi_wire_read(&r, frame->data, frame->len);
    code = chempi_wire_get_u32(&r);
    text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
    if (!chempi_wire_is_done(&r) || code > INT32_MAX)
        return chempi_err_set(err, -EBADMSG, "a malformed reply");
    CHEMPI_LIST_FOR_SAFE (e, &d->orders.all) {
        struct order *o = CHEMPI_CONTAINER_OF(e, struct order, entry);

        if (o->to == from && o->number == frame->job)
            conclude(o, -(int)code, text);
    }
    return 0;
}

void chempi_orders_job_ended(struct chempi_daemon *d, uint64_t job)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->orders.all) {
        struct order *o = CHEMPI_CONTAINER_OF(e, struct order, entry);

        if (!o->to && o->number == job)
            conclude(o, 0, "");
    }
}

void chempi_orders_lose(struct chempi_daemon *d, const struct chempi_conn *conn,
                        const char *text)
{
    char words[CHEMPI_TEXT_MAX];

    (void)snprintf(words, sizeof(words),
                   "the daemon of node %s is lost: %.800s", conn->peer, text);
    CHEMPI_LIST_FOR_SAFE (e, &d->orders.all) {
        struct order *o = CHEMPI_CONTAINER_OF(e, struct order, entry);

        if (o->from == conn)
            destroy(o);
        else if (o->to == conn)
            conclude(o, -EPIPE, words);
    }
}

void chempi_orders_fini(struct chempi_daemon *d)
{
    CHEMPI_LIST_FOR_SAFE (e, &d->orders.all)
        destroy(CHEMPI_CONTAINER_OF(e, struct order, entry));
}
