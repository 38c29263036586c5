/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange: the file is cut into domains, one for each aggregator, which
 * works through its own in rounds of a window each. window.c has what an
 * aggregator does with a window, rounds.c how rounds follow each other.
 *
 * Everybody knows the window of every round, and from its own view which of
 * its bytes lie there: they are one range of its packed data, so one message,
 * straight from or to consecutive memory. The aggregator knows all views and
 * finds the same numbers. The messages of a round are under way while the
 * round before accesses the file.
 *
 *   -   a slot belongs to one round at a time; messages of round k + 1 are
 *       posted before round k accesses the file
 *   T2  a member that has failed goes on: it sends and receives the same
 *       number of bytes, whatever they hold
 *   -   memory: two windows, the packed data of two rounds, and a mask
 *   T4  what copies or touches the file is work (task.h); stages only post
 *       what work has planned, and wait for it
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_WINDOW_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_EXCHANGE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/exchange/aggregators.h"

/* A range of somebody's packed data. */
struct chempi_io_share {
    uint64_t position; /* in its view */
    uint64_t len;
};

/* One that work has planned and a stage posts (T4). */
struct chempi_io_message {
    char *data;
    uint64_t len;
    int rank;
    bool is_send;
};

struct chempi_io_slot {
    char *window; /* of the file, at aggregators */
    char *packed; /* data of others at aggregators */
    char *own;    /* this member's, where memory is scattered */
    uint64_t packed_room;
    char *overlap; /* packed, where that needs more than a window */
    struct chempi_io_share *shares; /* [members] in this aggregator's window */
    int64_t from;                   /* offsets of the window that are used */
    int64_t to;
    struct chempi_io_message *plan; /* [members + aggregators] */
    int planned;
    struct chempi_io_messages messages; /* as many */
};

struct chempi_io_exchange {
    struct chempi_io_op *op;
    struct chempi_file *file;
    struct chempi_io_aggregators *agg;
    int64_t base;   /* offset of the first domain */
    int64_t start;  /* of its first window */
    int64_t end;    /* of all data */
    int64_t domain; /* bytes */
    int64_t window; /* bytes */
    int tag;
    bool is_torn;   /* a message failed: what is here is not whole */
    char *mask;     /* of a window: bytes that somebody writes */
    uint64_t asked; /* bytes, before what is behind the end was cut off */
    int64_t rounds;
    int64_t begun; /* rounds whose messages are posted */
    int64_t ended;
    char *memory; /* of windows, packed and own data, and the mask */
    struct chempi_io_slot slots[2];
};

/* The part of [position, position + bytes) of a view in the offsets
 * [from, to). */
struct chempi_io_share chempi_io_window_share(const struct chempi_io_view *view,
                                              uint64_t position, uint64_t bytes,
                                              int64_t from, int64_t to);

/* The window of aggregator a in a round; false: none is left. */
bool chempi_io_window_of(const struct chempi_io_exchange *x, int a,
                         int64_t round, int64_t *from, int64_t *to);

void chempi_io_window_plan(struct chempi_io_slot *s, char *data, uint64_t len,
                           int rank, bool is_send);

/* What the others have in this aggregator's window; how many bytes in all. */
uint64_t chempi_io_window_find(struct chempi_io_exchange *x,
                               struct chempi_io_slot *s, int64_t round);

/* Work, at aggregators. Of a write: plan the messages; when they have come,
 * write the window. */
void chempi_io_window_expect(struct chempi_io_exchange *x,
                             struct chempi_io_slot *s);
void chempi_io_window_write(struct chempi_io_exchange *x,
                            struct chempi_io_slot *s);
/* Of a read: have the window from the file, and plan the messages. */
void chempi_io_window_read(struct chempi_io_exchange *x,
                           struct chempi_io_slot *s);

#endif
