/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank asks of the root of its job while it runs: start another world,
 * keep a name, find one (doc/dynamic.md). One question and one answer carry
 * all of it, along the job's tree:
 *
 *   ROOT_REQUEST  rank -> supervisor: u32 serial, u8 what, blob;
 *                 supervisor -> root: u32 node, u32 rank, then the same
 *   ROOT_REPLY    root -> supervisor: u32 node, u32 rank, then
 *                 supervisor -> rank: u32 serial, u8 state, u32 error,
 *                                     u32 count, u32 app, str text
 *
 *   -   a serial is the rank's own, counts up from 1, and is never used again
 *   -   each question has exactly one answer FAILED or GRANTED; SPAWN that is
 *       GRANTED has one OVER after it, when the world that was started has
 *       ended. Nothing else follows. What ranks of a world ask that is being
 *       ended is not answered any more
 *   -   what a rank can make others hold is bounded: questions without an
 *       answer, bytes of each, names and worlds of a root
 *   -   who forwards looks at node and rank only, but for the rank's
 * supervisor, which counts; the root alone parses the blob, with bounds. A
 * malformed one is FAILED, and harms nobody else
 *   -   a rank that has ended is owed nothing; its supervisor says so by ENDED,
 *       serial 0, if it has ever asked, also when the rank has finalized: its
 *       names are withdrawn, its worlds stay
 *
 * Bytes that ask for a world hold its parent's port, which is a secret: they
 * are never logged, and travel on sealed or local links only.
 */
#ifndef CHEMPI_COMMON_CONTROL_DYNAMIC_H
#define CHEMPI_COMMON_CONTROL_DYNAMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/client.h"
#include "common/control/wire.h"

/* Limits that every receiver enforces. */
#define CHEMPI_PORT_NAME_MAX 1024u         /* bytes with the zero: the ABI's */
#define CHEMPI_SERVICE_NAME_MAX 256u       /* the same */
#define CHEMPI_ROOT_REQUESTS_MAX 64u       /* of a rank, without an answer */
#define CHEMPI_ROOT_BYTES_MAX (1u << 20)   /* of one blob */
#define CHEMPI_SPAWN_APPS_MAX 1024u        /* as CHEMPI_SPEC_APPS_MAX */
#define CHEMPI_SPAWN_WORDS_MAX (1u << 16)  /* of all programs together */
#define CHEMPI_SPAWN_WORD_MAX (128u << 10) /* bytes, as the kernel's */
#define CHEMPI_SPAWN_KEYS_MAX 64u   /* of an info object, that are sent */
#define CHEMPI_ROOT_NAMES_MAX 4096u /* kept by one root */
#define CHEMPI_ROOT_WORLDS_MAX 512u /* that run at a time, of one root */

enum chempi_root_request {
    CHEMPI_ROOT_ENDED = 0,     /* a supervisor's: the rank is no more */
    CHEMPI_ROOT_SPAWN = 1,     /* chempi_spawn_write() */
    CHEMPI_ROOT_PUBLISH = 2,   /* str service, str port */
    CHEMPI_ROOT_UNPUBLISH = 3, /* str service, str port */
    CHEMPI_ROOT_LOOKUP = 4     /* str service */
};

enum chempi_reply_state {
    CHEMPI_REPLY_FAILED = 1,
    CHEMPI_REPLY_GRANTED = 2,
    CHEMPI_REPLY_OVER = 3 /* of SPAWN only */
};

/* Why it FAILED: what the library makes an error class of. */
enum chempi_reply_error {
    CHEMPI_REPLY_NONE = 0,
    CHEMPI_REPLY_SPAWN = 1,   /* MPI_ERR_SPAWN: text says which program */
    CHEMPI_REPLY_SERVICE = 2, /* MPI_ERR_SERVICE: is published already, or is
                                 not, or not by this world */
    CHEMPI_REPLY_NAME = 3,    /* MPI_ERR_NAME: nobody has published that */
    CHEMPI_REPLY_LACKS = 4,   /* MPI_ERR_UNSUPPORTED_OPERATION: no such root */
    CHEMPI_REPLY_ARG = 5,     /* MPI_ERR_ARG: malformed, or beyond a limit */
    CHEMPI_REPLY_MEMORY = 6   /* MPI_ERR_NO_MEM */
};

/* An answer; texts are valid during the call. */
struct chempi_reply {
    uint32_t serial;
    enum chempi_reply_state state;
    enum chempi_reply_error error; /* NONE unless FAILED */
    uint32_t count;   /* SPAWN, GRANTED: processes started in all */
    uint32_t app;     /* SPAWN, FAILED: whose program it was; else 0 */
    const char *text; /* FAILED, OVER: a sentence; LOOKUP, GRANTED: the port;
                         else "" */
};

/* A key and value of an info object. */
struct chempi_spawn_key {
    const char *key;
    const char *value;
};

/* One program of MPI_Comm_spawn_multiple. Nothing here is owned. */
struct chempi_spawn_app {
    const char *const *argv;             /* [argc]: the program first */
    uint32_t argc;                       /* >= 1 */
    uint32_t maxprocs;                   /* >= 1 */
    const struct chempi_spawn_key *keys; /* [key_count]: "soft", "host",
                                            "wdir", "path", "env"; the root
                                            leaves out those it does not know */
    uint32_t key_count;
};

struct chempi_spawn {
    const char *port; /* of the parents: children connect to it in MPI_Init */
    const struct chempi_spawn_app *apps; /* [app_count] */
    uint32_t app_count;
};

/* Append the blob of CHEMPI_ROOT_SPAWN; failure stays in the writer
 * (-EMSGSIZE: beyond a limit above). */
void chempi_spawn_write(const struct chempi_spawn *spawn,
                        struct chempi_writer *w);

/* What such a blob says, in memory of its own, to be freed in one piece with
 * free(). -EBADMSG, -ENOMEM. */
int chempi_spawn_read(const void *blob, size_t len, struct chempi_spawn **out);

/* Append an answer; a text that is too long is cut. */
void chempi_reply_write(const struct chempi_reply *reply,
                        struct chempi_writer *w);
/* Up to the end; the text is in place. 0 or -EBADMSG. */
int chempi_reply_read(struct chempi_reader *r, struct chempi_reply *out);

/* ---- a rank's side (client.c) -------------------------------------------- */

/*
 * Ask; *serial names the question. events->root_replied (client.h) tells the
 * answer, from chempi_client_progress() only. Queues; never blocks. 0; -EBUSY:
 * too many are without an answer; -EMSGSIZE: len is beyond
 * CHEMPI_ROOT_BYTES_MAX; -EOPNOTSUPP: there is no root; -ENOMEM; -EPIPE: the
 * supervisor is lost. On failure nothing was asked.
 */
int chempi_client_ask_root(struct chempi_client *client,
                           enum chempi_root_request what, const void *blob,
                           size_t len, uint32_t *serial);

/*
 * Of a process that has started its root itself, by CHEMPI_ROOT_OPTION: the
 * other end of fd, which is taken over, is that launcher's CHEMPI_ROOT_FD.
 * There is no job, and of all messages only HELLO, INIT, FINAL and questions
 * may be sent. 0 or -ENOMEM, then fd is the caller's.
 */
#define CHEMPI_ROOT_OPTION "--serve"
#define CHEMPI_ROOT_FD 3
int chempi_client_attach(struct chempi_client **out, int fd);

/* What ends, stops or tells a group of processes is a launcher's affair:
 * whoever starts one holds these back until it watches them. */
#define CHEMPI_ROOT_SIGNALS                                                    \
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2

/* The root's side is chempid/worlds/worlds.h. */

#endif
