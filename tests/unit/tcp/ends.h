/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several tcp devices in one process, over real loopback connections, driven
 * in turn by one thread: what happens first is the test's choice.
 */
#ifndef CHEMPI_TESTS_UNIT_TCP_ENDS_H
#define CHEMPI_TESTS_UNIT_TCP_ENDS_H

#include "common/base/sys.h"
#include "libchempi/ddi.h"
#include "tests/unit/base/rig.h"

#define ENDS_MAX 4u

/* A message that has come (or is coming). */
struct arrival {
    struct chempi_envelope env;
    uint64_t token[2];
    uint32_t from;
    uint32_t protocol;
    bool is_late; /* left with its sender */
    bool is_complete;
    int status;
    uint8_t *data; /* what was stored */
    struct chempi_rx rx;
};

/* One process's end, as seen by the device. */
struct end {
    struct chempi_services services;
    struct chempi_dev *dev;
    struct chempi_ep *eps[ENDS_MAX];
    struct chempi_err err;
    struct arrival *arrivals[1024];
    size_t arrival_count;
    uint64_t cap; /* bytes that a receive takes */
    bool wants_late;
    uint32_t refused; /* the processes, a bit each, from which there is NO_ROOM
                         for what comes */
    const struct chempi_layout *layout; /* of receives; NULL: contiguous */
    uint8_t *area;                      /* where they go then */
    int sent;
    int sent_failed;
    int failed; /* receives */
    int rooms;
    int asked; /* send() was called for one that had waited for room */
    struct chempi_list waiting[ENDS_MAX]; /* chempi_tx.link, by process */
    bool is_due[ENDS_MAX];                /* they are to be tried again */
    int lost;
    int finished;
    int lost_status;
    char lost_why[256];
};

struct ends {
    struct end end[ENDS_MAX];
    uint32_t count;
    const _Atomic uint64_t *settings; /* of all; NULL: as they are initially */
};

/* Devices for `count` processes, each on a node of its own; cards are known
 * to all. is_linked false: endpoints and cards are the test's business. */
int ends_open(struct ends *ends, uint32_t count, bool is_linked);
/* The same with what the caller set in end[i].services (table, secret). */
int ends_open_as(struct ends *ends, uint32_t count, bool is_linked);
void ends_default(struct ends *ends, uint32_t count);
void ends_close(struct ends *ends);
/* For ends.settings: of a secure job. */
const _Atomic uint64_t *ends_secure_settings(void);

/* Make progress once everywhere; the number of events. */
int ends_poll(struct ends *ends);
int end_poll(struct end *end);
/* Until done() is true; false if that does not happen. */
typedef bool ends_done_fn(struct ends *ends, const void *arg);
bool ends_wait(struct ends *ends, ends_done_fn *done, const void *arg);
bool ends_wait_arrivals(struct ends *ends, uint32_t end, size_t count);
bool ends_wait_sent(struct ends *ends, uint32_t end, int count);
bool ends_wait_lost(struct ends *ends, uint32_t end);
bool ends_wait_drained(struct ends *ends, uint32_t end);

/* By inject(), again and again if there is no room; or by send(): what finds
 * none, or others that wait, waits until room() is told, as in didl, and is
 * PENDING. */
int ends_inject(struct ends *ends, uint32_t from, uint32_t to, const void *data,
                size_t len, int tag);
int ends_send(struct ends *ends, uint32_t from, uint32_t to,
              struct chempi_tx *tx, const void *data, uint64_t len, int tag,
              uint32_t protocol);

/* The same of a tx that is made. */
int end_send(struct end *end, uint32_t to, struct chempi_tx *tx);

/* Complete messages among the arrivals. */
size_t end_complete(const struct end *end);

/* Bytes that depend on their place and on seed. */
void fill(uint8_t *data, size_t len, unsigned seed);
bool is_filled(const uint8_t *data, size_t len, unsigned seed);

#endif
