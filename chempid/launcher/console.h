/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's standard streams. Output of ranks is queued and written as
 * the reader takes it. Input is read no further ahead than its receivers
 * grant.
 *
 *   -   what is queued is bounded by the windows of the nodes, and by
 *       CHEMPI_CONSOLE_WORDS for what the launcher says itself, but for
 *       statistics, which the job's end brings once
 *   O2  credit goes back when the bytes have been written
 *   O3  no write waits, whoever else writes to the same terminal or pipe, as
 *       launchers of worlds do (worlds.h). The descriptors that are shared keep
 *       their mode: there are others of our own, that do not block. Where none
 *       can be had, every write is of a size that the readiness of the shared
 *       one covers, if nobody comes between
 */
#ifndef CHEMPI_CHEMPID_CONSOLE_H
#define CHEMPI_CHEMPID_CONSOLE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/control/wire.h"

#define CHEMPI_CONSOLE_WORDS (1u << 20) /* bytes */

struct chempi_console;

struct chempi_console_ops {
    /* bytes of a node's output have been written */
    void (*credit)(void *arg, uint32_t node, uint32_t bytes);
    /* input; len 0: end of file */
    void (*input)(void *arg, const void *data, size_t len);
    /* this stream takes no more; code: -EPIPE: nobody reads it, or why */
    void (*broken)(void *arg, int number, int code);
    /* a queue has run empty */
    void (*empty)(void *arg);
};

struct chempi_outlet {
    ev_io io;
    struct chempi_console *console;
    int number; /* 1 or 2 */
    int fd;     /* the same, or one of our own (O3) */
    struct chempi_writer queue;
    size_t head;        /* first byte not yet written */
    size_t words;       /* queued bytes that no rank has written, at most */
    uint32_t open_rank; /* whose line is unfinished, or ANY */
    bool is_regular;    /* a file: a write never waits */
    bool is_socket;
    bool is_broken;
};

struct chempi_console {
    struct ev_loop *loop;
    const struct chempi_console_ops *ops;
    void *arg;
    struct chempi_outlet out[2];
    uint32_t *owed; /* per node: bytes not yet credited */
    uint32_t node_count;
    bool has_label;
    uint32_t world; /* for labels; 0: none. The caller's to set */
    bool has_time;  /* --timestamp */
    ev_io in;
    bool has_input;     /* input is wanted and not at its end */
    bool has_stopped;   /* nor will be */
    bool is_background; /* reading the terminal would stop us */
    uint32_t *fed;      /* per target: input not yet eaten, or it is gone */
    uint32_t target_count;
};

/* targets: nodes that receive input (0: none), from start_input() on. 0 or
 * -ENOMEM. */
int chempi_console_init(struct chempi_console *c, struct ev_loop *loop,
                        uint32_t node_count, uint32_t targets, bool has_label,
                        bool has_time, const struct chempi_console_ops *ops,
                        void *arg);
void chempi_console_fini(struct chempi_console *c);

/* Output of a rank; number 1 or 2. */
void chempi_console_show(struct chempi_console *c, uint32_t node, uint32_t rank,
                         int number, const void *data, size_t len);
/* Lines of the launcher's own for standard error. They wait as output of ranks
 * does, behind what is queued; dropped if too much waits already. */
void chempi_console_say(struct chempi_console *c, const char *text, size_t len);
/* The same of any length: once, at the job's end. */
void chempi_console_say_whole(struct chempi_console *c, const char *text,
                              size_t len);
/* A target has used so much of its input. */
void chempi_console_eaten(struct chempi_console *c, uint32_t target,
                          uint32_t bytes);
/* A target is gone: the others have input without it. */
void chempi_console_lose(struct chempi_console *c, uint32_t target);
/* Continued by the shell: perhaps in the foreground now. */
void chempi_console_resume(struct chempi_console *c);
void chempi_console_start_input(struct chempi_console *c);
void chempi_console_stop_input(struct chempi_console *c); /* for good */
bool chempi_console_is_empty(const struct chempi_console *c);

/* Output that nobody has read is lost, and so is what comes. Standard error is
 * told how much, unless it would have to be waited for. */
void chempi_console_drop(struct chempi_console *c);

#endif
