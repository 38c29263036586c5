/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of messages; see send_site.h. */
#define _GNU_SOURCE /* nanosleep */
#include "libchempi/didl/comm/send_site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/containers/list.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/where/sent_sites.h"
#include "libchempi/didl/transport/worlds/foreign.h"

#define WAIT_NS UINT64_C(1000000000)
#define PAUSE_NS 100000
#define SILENCES 2u /* then nobody is asked any more */

/* Somebody here waits for an answer; on its stack. */
struct question {
    struct chempi_list link;
    const struct chempi_peer *peer;
    uint32_t serial;
    bool is_answered;
    char text[CHEMPI_CALL_SITE_TEXT]; /* "": the sender does not know it */
};

struct answer {
    struct chempi_sysmsg msg;
    char text[CHEMPI_CALL_SITE_TEXT];
};

/* Under the lane lock. */
static struct {
    struct chempi_list questions;
    uint32_t silences;
} origin;

/* ---- the sender ---- */

static void free_answer(struct chempi_sysmsg *msg, int status)
{
    (void)status;
    free(msg->arg);
}

/* The words may take a process that looks for them, as wait_report.c's do. */
static void on_ask(struct chempi_sysmsg_in *in)
{
    const uint32_t *serial = in->head;
    const uint16_t site = chempi_sent_sites_find(in->peer->proc, *serial);
    struct answer *a = calloc(1, sizeof(*a));

    if (!a)
        return; /* the receiver does not wait for long */
    if (site)
        chempi_call_site_words(site, a->text);
    a->msg = (struct chempi_sysmsg){
        .peer = in->peer,
        .tag = CHEMPI_SYSMSG_ORIGIN_ANSWER,
        .head_len = sizeof(*serial),
        .body = a->text,
        .body_len = strlen(a->text),
        .is_answer = true,
        .done = free_answer,
        .arg = a,
    };
    memcpy(a->msg.head, serial, sizeof(*serial));
    if (chempi_sysmsg_send(&a->msg))
        free(a);
}

/* ---- the receiver ---- */

static void on_answer(struct chempi_sysmsg_in *in)
{
    const uint32_t *serial = in->head;

    CHEMPI_LIST_FOR (pos, &origin.questions) {
        struct question *q = CHEMPI_CONTAINER_OF(pos, struct question, link);

        if (q->peer != in->peer || q->serial != *serial ||
            in->body_len >= CHEMPI_CALL_SITE_TEXT)
            continue;
        if (in->body_len)
            memcpy(q->text, in->body, (size_t)in->body_len);
        q->text[in->body_len] = '\0';
        q->is_answered = true;
    }
}

/* What has become of a question. */
enum fate {
    FATE_OPEN,
    FATE_ANSWERED,
    FATE_LOST,  /* the sender is */
    FATE_UNSENT /* nobody is asked any more, or there is no memory */
};

/* Under the lock. */
static enum fate fate_of(const struct question *q)
{
    if (q->is_answered)
        return FATE_ANSWERED;
    return q->peer->is_lost ? FATE_LOST : FATE_OPEN;
}

static enum fate send_question(struct question *q, struct chempi_peer *peer)
{
    enum fate fate;

    chempi_lane_lock(&chempi_lane_main);
    fate = fate_of(q);
    if (fate == FATE_OPEN &&
        (origin.silences >= SILENCES ||
         chempi_sysmsg_post(peer, CHEMPI_SYSMSG_ORIGIN, &q->serial,
                            sizeof(q->serial)) != 0))
        fate = FATE_UNSENT;
    if (fate == FATE_OPEN)
        chempi_list_append(&origin.questions, &q->link);
    chempi_lane_unlock(&chempi_lane_main);
    return fate;
}

static enum fate look_at(const struct question *q)
{
    enum fate fate;

    chempi_lane_lock(&chempi_lane_main);
    fate = fate_of(q);
    chempi_lane_unlock(&chempi_lane_main);
    return fate;
}

static enum fate end_question(struct question *q)
{
    enum fate fate;

    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&q->link);
    fate = fate_of(q);
    origin.silences += fate == FATE_OPEN;
    chempi_lane_unlock(&chempi_lane_main);
    return fate;
}

static enum fate await_answer(struct question *q)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t deadline = chempi_clock_ns() + WAIT_NS;

    while (look_at(q) == FATE_OPEN && chempi_clock_ns() < deadline)
        if (chempi_progress_poll() == 0)
            (void)nanosleep(&pause, NULL);
    return end_question(q);
}

bool chempi_send_site_ask(struct chempi_peer *peer, uint32_t serial,
                          char text[CHEMPI_CALL_SITE_TEXT])
{
    struct question q = {.peer = peer, .serial = serial};
    enum fate fate;

    text[0] = '\0';
    if (!chempi_call_site_is_known() || chempi_foreign_is(peer->proc))
        return false;
    fate = send_question(&q, peer);
    if (fate == FATE_OPEN)
        fate = await_answer(&q);
    if (fate == FATE_OPEN)
        (void)snprintf(text, CHEMPI_CALL_SITE_TEXT,
                       "its sender computes and does not say where it was "
                       "sent");
    else if (fate == FATE_LOST)
        (void)snprintf(text, CHEMPI_CALL_SITE_TEXT,
                       "its sender is lost and cannot say where it was sent");
    else if (fate == FATE_ANSWERED && *q.text)
        (void)snprintf(text, CHEMPI_CALL_SITE_TEXT, "it was sent by %.*s",
                       CHEMPI_CALL_SITE_TEXT - 20, q.text);
    return *text != '\0';
}

void chempi_send_site_register(void)
{
    static const struct chempi_sysmsg_handler ask = {4, 4, on_ask, NULL, false};
    static const struct chempi_sysmsg_handler answer = {4, 4, on_answer, NULL,
                                                        false};

    chempi_list_init(&origin.questions);
    chempi_sysmsg_register(CHEMPI_SYSMSG_ORIGIN, &ask);
    chempi_sysmsg_register(CHEMPI_SYSMSG_ORIGIN_ANSWER, &answer);
}
