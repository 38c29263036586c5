/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to whoever started this process, as didl sees it: our own
 * supervisor, or another launcher (entry.h); in a world of one, a made-up job
 * and no connection. Nothing here waits but open, begin, end and abort. Under
 * the lane lock while the library is in use.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_DAEMON_H
#define CHEMPI_LIBCHEMPI_DIDL_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"

/* Who hears what the supervisor says; under the lane lock. */
struct chempi_daemon_listener {
    /* The key-value store's answer to chempi_daemon_get() (length 0: none was
     * published). */
    void (*card)(uint32_t proc, const char *key, const void *card, size_t len);
    void (*lost)(uint32_t rank, const char *why);
    /* Spare this gateway, or not any more. */
    void (*drained)(uint32_t gateway, bool is_drained);
    /* Tell by chempi_daemon_report() what was sent. */
    void (*report)(void);
    /* The root's answer to chempi_daemon_ask_root(). */
    void (*replied)(const struct chempi_reply *reply);
    /* None comes any more, to what was asked until now, and why. */
    void (*unanswered)(const char *why);
    /* News come by a descriptor of the pollset from now on, also where none
     * has until now. 0 or -errno with words. */
    int (*watch)(struct chempi_err *err);
    /* Somebody asks where this process waits: chempi_daemon_was_sought(). */
    void (*sought)(void);
    /* Is the calling thread the one that may use the connection? */
    bool (*is_alone)(void);
};

/* Connect, or make up a world of one; sets chempi_ctx.job and entry. The
 * listener stays the caller's and must stay. 0 or -errno with words. */
int chempi_daemon_open(const struct chempi_daemon_listener *listener,
                       struct chempi_err *err);
/* The job is gone with it. */
void chempi_daemon_close(void);

/* The library is in use from now on, all cards are published; and is not any
 * more, is_for_good: since MPI was finalized. In turns. begin: 0 or -errno with
 * words. */
int chempi_daemon_begin(struct chempi_err *err);
void chempi_daemon_end(bool is_for_good);

/* Ask for the end of the job. Has the launcher heard it, and will it say why,
 * or has this process said so? From any thread. */
bool chempi_daemon_abort(int exit_code, const char *text);

/* Lines on what was sent; see chempi_client_report(). */
void chempi_daemon_report(const void *text, size_t len);

/* Are the cards of others known only after a fence? */
bool chempi_daemon_needs_fence(void);
/* Does the next news come on a descriptor of the pollset only? */
bool chempi_daemon_needs_fd(void);

/* After the pollset exists: wait for notices there too. 0 or -errno. And the
 * reverse, while it exists. */
int chempi_daemon_watch(void);
void chempi_daemon_unwatch(void);

/* All devices are open: say how much memory they register, or none. And have
 * they what they need? (a condition to wait for) */
void chempi_daemon_ask_memory(void);
bool chempi_daemon_has_memory(void *unused);

/* Handle notices that have arrived; a lost supervisor ends this process. */
void chempi_daemon_poll(void);
/* The same, without asking the kernel where it is certain that there are none:
 * for a process that is about to sleep, or has slept. */
void chempi_daemon_poll_news(void);

/* Milliseconds until something is due that no event will announce, -1. */
int chempi_daemon_deadline_ms(void);

/* A device lost its connection to a process; said once of each. Normally the
 * supervisor is about to say that the process died, and to end the job, or that
 * it has left MPI before, which is well; if it does neither in time, this
 * process ends the job with `why`. Nothing in a job that survives. */
void chempi_daemon_suspect(uint32_t proc, const char *why);
/* Before an error ends this process: if a process is suspected, that is likely
 * the cause, and the supervisor knows more of it. Wait for the end by it, as
 * long as the above would. Under the lane lock. */
void chempi_daemon_await_end(void);

/* The world model begins: all ranks of the job are needed. 0 or -errno. */
int chempi_daemon_need_world(void);

/* MPI_Finalize is done, and sessions are open. 0 or -errno. */
int chempi_daemon_leave_world(void);

/* Before this process ends the job: it has lost this gateway, and with it the
 * only way to others. */
void chempi_daemon_cut(uint32_t gateway, const char *why);

/* Tell the supervisor, if it does not know yet, whether this process wants to
 * act on the loss of another one before the job is ended. */
void chempi_daemon_care(bool cares);

/* Has the supervisor asked where this process waits? Asked once, the question
 * is the caller's to answer. */
bool chempi_daemon_was_sought(enum chempi_wait_depth *depth);
/* The answer: in the words of HERE (common/control/msg.h). */
void chempi_daemon_here(const struct chempi_client_wait *wait);

/* Publish a device's card; ask for another process's (the answer goes to the
 * listener). 0 or -errno. */
int chempi_daemon_put(const char *key, const void *value, size_t len);
int chempi_daemon_get(uint32_t proc, const char *key);

/* Ask the root of the job, or one of this process's own (own_launcher.h); see
 * chempi_client_ask_root(). -EPIPE: the launcher is lost. Words, if there are
 * any, or "". */
int chempi_daemon_ask_root(enum chempi_root_request what, const void *blob,
                           size_t len, uint32_t *serial,
                           struct chempi_err *err);

/* Say that this process is at the fence, 0 or -errno; and are all processes of
 * the job? (a condition to wait for) */
int chempi_daemon_enter_fence(void);
bool chempi_daemon_is_fenced(void *unused);

#endif
