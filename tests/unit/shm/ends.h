/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several shm devices in one process, driven in turn by one thread: what
 * happens first is the test's choice, and the shared memory is at hand.
 */
#ifndef CHEMPI_TESTS_UNIT_SHM_ENDS_H
#define CHEMPI_TESTS_UNIT_SHM_ENDS_H

#include "libchempi/devices/shm/internal.h"

#define ENDS_MAX 8u
#define ENDS_DATA_MAX (1u << 20) /* bytes of a message */

struct end {
    struct chempi_services services;
    struct chempi_dev *dev;
    struct chempi_ep *eps[ENDS_MAX];
    struct chempi_err err;
    unsigned char *data; /* where messages go */
    struct chempi_segment
        *into;    /* likewise, those not there yet; may be NULL */
    uint64_t cap; /* bytes taken of these */
    const _Atomic uint64_t *settings; /* NULL: initial ones */
    struct chempi_rx rx[64];
    uint32_t rx_count;
    uint32_t refusals; /* announcements for which there is NO_ROOM */
    bool wants_later;
    uint64_t token[64][2];
    struct chempi_ep *from[64];
    uint32_t later;
    uint32_t received;
    uint32_t failed; /* receives */
    uint32_t sent;
    uint32_t sent_failed;
    uint32_t rooms;
    uint32_t lost;
    int lost_status;
    char lost_why[CHEMPI_ERR_TEXT_MAX];
    uint32_t last_protocol;
    struct chempi_envelope last;
};

struct ends {
    uint32_t count;
    int fd; /* the region's */
    uint32_t node_of_proc[ENDS_MAX];
    uint32_t local_rank_of_proc[ENDS_MAX];
    int wake_fds[ENDS_MAX];
    struct end end[ENDS_MAX];
};

void ends_open(struct ends *ends, uint32_t count);
/* Up to where a device can be opened. */
void ends_prepare(struct ends *ends, uint32_t count);
int ends_open_one(struct ends *ends, uint32_t i);
void ends_close(struct ends *ends);

/* Progress once everywhere. */
void ends_poll(struct ends *ends);
/* Until nothing happens any more. */
void ends_settle(struct ends *ends);

int ends_inject(struct ends *ends, uint32_t from, uint32_t to, const void *data,
                size_t len);
int ends_send(struct ends *ends, uint32_t from, uint32_t to,
              struct chempi_tx *tx, const void *data, uint64_t len,
              uint32_t protocol);
/* Accept message number i of those left. */
int ends_accept(struct ends *ends, uint32_t at, uint32_t i);

struct shm_ep *ends_ep(struct ends *ends, uint32_t at, uint32_t peer);

/* len bytes that can be told from any others. */
unsigned char *ends_payload(uint64_t len);

#endif
