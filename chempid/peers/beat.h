/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beat between daemons: each tells each neighbour a few times per
 * detection time that it is there. From a neighbour of which nothing has come
 * for that long, no byte of anything, its connection is ended, and with it all
 * that waits for it.
 *
 *   T1  who has not run itself (silence.h), or has not read what is there,
 *       blames nobody
 *   T2  the longer of both sides' detection times counts: each tells its own
 *       When it gives up a neighbour it says so to it, as far as that can be
 *       done: who stood still learns that it is itself to blame
 *   T3  a daemon without connections to others has no timer
 *
 * A daemon stands for its node; one that is only busy has seconds to spare for
 * a beat. A neighbour whose connection is not proven yet counts from its call.
 */
#ifndef CHEMPI_CHEMPID_BEAT_H
#define CHEMPI_CHEMPID_BEAT_H

#include <ev.h>

#include "chempid/tree/silence.h"

#define CHEMPI_BEAT_DETECT_S 5.0 /* the default */
#define CHEMPI_BEAT_DETECT_MIN_S 0.5
#define CHEMPI_BEAT_DETECT_MAX_S 600.0

struct chempi_conn;
struct chempi_conns;
struct chempi_frame;
struct chempi_reader;

struct chempi_beat {
    struct chempi_conns *conns;
    ev_timer timer;
    double detect_s;
    void (*on_beat)(struct chempi_conn *c);
    struct chempi_looks looks;
};

/* on_beat: before each beat, for each neighbour that is proven. */
void chempi_beat_init(struct chempi_beat *beat, struct chempi_conns *conns,
                      double detect_s, void (*on_beat)(struct chempi_conn *c));
/* There is a connection with another daemon, or will be. */
void chempi_beat_wake(struct chempi_beat *beat);
/* Tell it of our detection time. */
void chempi_beat_greet(const struct chempi_beat *beat, struct chempi_conn *c);
/* BEAT; what is malformed says nothing. */
void chempi_beat_take(struct chempi_conn *c, const struct chempi_frame *frame);
/* The neighbour gives this daemon up, and will close the connection; r is at
 * the words. */
void chempi_beat_refused(struct chempi_conn *c, struct chempi_reader *r);
void chempi_beat_stop(struct chempi_beat *beat);

#endif
