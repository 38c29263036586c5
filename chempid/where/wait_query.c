/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking where ranks wait; see wait_query.h. */
#define _GNU_SOURCE /* open_memstream */
#include "chempid/where/wait_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLACK_S 1.0 /* for answers on their way, beyond limit_s */

static bool is_open(const struct chempi_wait_query *q)
{
    return q->places.spec != NULL;
}

static bool ask(struct chempi_wait_query *q, double limit_s,
                enum chempi_wait_depth depth)
{
    uint8_t data[5];
    struct chempi_writer w;

    if (is_open(q)) { /* Q1 */
        if (depth > q->again)
            q->again = depth;
        return true;
    }
    if (!q->ops->can_ask(q->arg) ||
        chempi_wait_summary_open(&q->places, q->spec))
        return false;
    q->has_told = false;
    q->depth = q->again = depth;
    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, (uint32_t)(limit_s * 1000.0));
    chempi_wire_put_u8(&w, (uint8_t)depth);
    ev_timer_set(&q->timer, limit_s + SLACK_S, 0.0);
    ev_timer_start(q->loop, &q->timer);
    q->ops->locate(q->arg, w.data, w.len);
    return true;
}

static void close_places(struct chempi_wait_query *q)
{
    ev_timer_stop(q->loop, &q->timer);
    chempi_wait_summary_close(&q->places);
    q->watched = NULL;
}

/* All have told, or their time is over. Does anybody wait for it but a
 * watch, which gets it first and may end the question? */
static bool settle(struct chempi_wait_query *q)
{
    chempi_wait_query_watched *watched = q->watched;
    const bool is_again = q->again > q->depth;

    q->has_told = true;
    q->watched = NULL;
    chempi_wait_summary_meet(&q->places);
    if (watched)
        watched(q->watch_arg, &q->places);
    if (!is_open(q))
        return false;
    if (is_again) { /* Q3 */
        close_places(q);
        return !ask(q, q->limit_s, q->again);
    }
    if (q->is_said || q->door.count)
        return true;
    close_places(q);
    return false;
}

static void time_is_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_wait_query *q = w->data;

    (void)loop;
    (void)events;
    if (settle(q))
        q->ops->told(q->arg);
}

/* Those at the door get more than this terminal, which shows other things.
 * state: why there are no places; NULL: there are. */
static char *put_places(const struct chempi_wait_query *q, bool is_for_door,
                        const char *state, size_t *len)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, len);

    if (!file)
        return NULL;
    if (is_for_door)
        (void)fprintf(file, "job %s, by chempirun with pid %d:\n", q->spec->id,
                      (int)getpid());
    if (state)
        (void)fprintf(file, "chempirun: %s\n", state);
    else
        chempi_wait_summary_print(&q->places, file, q->has_told);
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

static char *put_json(const struct chempi_wait_query *q, const char *state,
                      size_t *len)
{
    char *text = NULL;
    struct chempi_json j = {.file = open_memstream(&text, len)};

    if (!j.file)
        return NULL;
    chempi_json_open(&j, NULL);
    chempi_json_text(&j, "job", q->spec->id);
    chempi_json_text(&j, "state", state ? state : "it runs");
    if (!state)
        chempi_wait_summary_json(&q->places, &j);
    chempi_json_close(&j);
    chempi_json_end(&j);
    if (fclose(j.file) == 0)
        return text;
    free(text);
    return NULL;
}

/* What those at the door get: the places, or why there are none; without
 * memory nothing. */
static void answer_door(struct chempi_wait_query *q, const char *state)
{
    char *text = NULL;
    size_t len = 0;

    for (int is_json = 0; is_json < 2; is_json++) {
        if (!chempi_door_has(&q->door, is_json))
            continue;
        text = is_json ? put_json(q, state, &len)
                       : put_places(q, true, state, &len);
        chempi_door_answer(&q->door, is_json, text ? text : "", text ? len : 0);
        free(text);
    }
}

/* Somebody is at the door. */
static void asked(void *arg)
{
    struct chempi_wait_query *q = arg;

    if (!ask(q, q->limit_s, CHEMPI_WAIT_STACK))
        answer_door(q, "the job is ending");
}

void chempi_wait_query_open(struct chempi_wait_query *q, struct ev_loop *loop,
                            const struct chempi_spec *spec, double limit_s,
                            const struct chempi_wait_query_ops *ops, void *arg)
{
    *q = (struct chempi_wait_query){
        .ops = ops, .arg = arg, .spec = spec, .loop = loop, .limit_s = limit_s};
    ev_timer_init(&q->timer, time_is_over, 0.0, 0.0);
    ev_set_priority(&q->timer, EV_MINPRI); /* behind answers that have come */
    q->timer.data = q;
    /* Where it fails nobody can ask, and the job runs all the same. */
    (void)chempi_door_open(&q->door, loop, spec->id, asked, q);
}

void chempi_wait_query_close(struct chempi_wait_query *q)
{
    if (!q->ops)
        return;
    ev_timer_stop(q->loop, &q->timer);
    chempi_door_close(&q->door);
    chempi_wait_summary_close(&q->places);
    q->ops = NULL;
}

bool chempi_wait_query_begin(struct chempi_wait_query *q)
{
    const bool can = ask(q, q->limit_s, CHEMPI_WAIT_STACK);

    q->is_said |= can;
    return can;
}

void chempi_wait_query_watch(struct chempi_wait_query *q, double limit_s,
                             enum chempi_wait_depth depth,
                             chempi_wait_query_watched *watched, void *arg)
{
    if (is_open(q) || !ask(q, limit_s, depth))
        return;
    q->watched = watched;
    q->watch_arg = arg;
}

bool chempi_wait_query_take(struct chempi_wait_query *q,
                            struct chempi_reader *r)
{
    return is_open(q) && chempi_wait_summary_take(&q->places, r) && settle(q);
}

void chempi_wait_query_end(struct chempi_wait_query *q, bool has_ended)
{
    size_t len = 0;
    char *text;

    if (!is_open(q))
        return;
    if (q->is_said && !has_ended) { /* else there is nowhere to wait */
        text = put_places(q, false, NULL, &len);
        if (text)
            q->ops->say(q->arg, text, len);
        free(text);
    }
    answer_door(q, has_ended ? "its ranks have ended" : NULL);
    q->is_said = false;
    close_places(q);
}
