/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions to the root of the job (common/control/dynamic.h) and their
 * answers, as calls that wait for them see both.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ROOT_H
#define CHEMPI_LIBCHEMPI_DIDL_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "common/control/dynamic.h"

/* One that has been asked, in memory of the caller's. */
struct chempi_root_question {
    struct chempi_list entry; /* among those that hear answers */
    uint32_t serial;
    bool is_answered;
    bool is_lost; /* who was asked has ended, and has answered nothing */
    bool is_over; /* the world that it has started has ended */
    bool is_granted;
    enum chempi_reply_error error; /* when it is not */
    uint32_t count;                /* as in the answer */
    uint32_t app;
    char text[CHEMPI_PORT_NAME_MAX]; /* of the last answer */
};

/* Ask. 0, or an MPI error class with words, and nothing was asked. */
int chempi_root_ask(struct chempi_root_question *q,
                    enum chempi_root_request what, const void *blob,
                    size_t len);
/* Wait for the answer. 0 when it was granted; else an MPI error class with
 * words about `what` ("service 'x'"). The question stays until forget(). One
 * that is lost may be asked again: a launcher of this process's own may have
 * ended just before, which its connection tells last, after the ends of the
 * worlds that it had started; the next question starts another one. */
int chempi_root_await(struct chempi_root_question *q, const char *what);
/* Hear nothing more of it. */
void chempi_root_forget(struct chempi_root_question *q);

/* From the launcher; under the lane lock. */
void chempi_root_replied(const struct chempi_reply *reply);
/* Nothing more is heard of what was asked; worlds that were started end. */
void chempi_root_unanswered(const char *why);

#endif
