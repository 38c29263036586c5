/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders under way: REQUESTs whose REPLY is still to be given, since another
 * daemon has to give it, or since the job that shall end has not ended yet.
 *
 *   O1  an order is answered once, or its asker is gone
 *   -   it is answered for: by whoever was asked, when the job has ended, when
 *       the connection with the other daemon ends, or when its time is over
 */
#ifndef CHEMPI_CHEMPID_ORDERS_H
#define CHEMPI_CHEMPID_ORDERS_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/containers/list.h"

#define CHEMPI_ORDERS_S 25.0 /* of the 30 that a client waits */

struct chempi_conn;
struct chempi_daemon;
struct chempi_frame;

struct chempi_orders { /* of a daemon */
    struct chempi_list all;
    uint32_t count;
    uint64_t next;
};

void chempi_orders_init(struct chempi_orders *orders);
/* Answer this user at once; `number` is the asker's. code 0 or -errno. */
void chempi_orders_reply(struct chempi_conn *to, uint32_t uid, uint64_t number,
                         int code, const char *text);
/* The answer will come from this daemon: *out is the number to ask with. It
 * counts for the user. -ENOBUFS, -EDQUOT, -ENOMEM with words. */
int chempi_orders_pass(struct chempi_daemon *d, struct chempi_conn *from,
                       uint32_t uid, uint64_t number, struct chempi_conn *to,
                       uint64_t *out, struct chempi_err *err);
/* It could not be asked; its asker is told by the caller. */
void chempi_orders_take_back(struct chempi_daemon *d, uint64_t number);
/* The answer comes when the job has ended. The same. */
int chempi_orders_await(struct chempi_daemon *d, struct chempi_conn *from,
                        uint32_t uid, uint64_t number, uint64_t job,
                        struct chempi_err *err);

/* REPLY of another daemon; late ones are dropped. -EBADMSG with words. */
int chempi_orders_answer(struct chempi_daemon *d,
                         const struct chempi_conn *from,
                         const struct chempi_frame *frame,
                         struct chempi_err *err);
void chempi_orders_job_ended(struct chempi_daemon *d, uint64_t job);
void chempi_orders_lose(struct chempi_daemon *d, const struct chempi_conn *conn,
                        const char *text);
void chempi_orders_fini(struct chempi_daemon *d);

#endif
