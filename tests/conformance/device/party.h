/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands in for didl in the device tests: sends numbered messages with a
 * known payload, and checks each arrival: exactly once, right bytes, nothing
 * beyond the receive's capacity touched.
 */
#ifndef CHEMPI_TESTS_CONFORMANCE_DEVICE_PARTY_H
#define CHEMPI_TESTS_CONFORMANCE_DEVICE_PARTY_H

#include "tests/conformance/device/world.h"

#define PARTY_SERIALS 65536u /* messages per source */

enum party_policy {
    PARTY_ACCEPT, /* announced messages are received at once */
    PARTY_LEAVE   /* they wait for party_settle() */
};

enum party_how {
    PARTY_INJECT,
    PARTY_SEND,
    PARTY_SEND_ITER,   /* non-contiguous */
    PARTY_SEND_CONSENT /* needs_consent */
};

struct party {
    struct world *world;
    enum party_policy policy;
    uint64_t cap;      /* of receives, bytes; UINT64_MAX: whole message */
    bool is_scattered; /* receive into non-contiguous memory */
    uint32_t reply;    /* inject this many replies from inside arrived() */
    bool expects_loss;
    uint32_t refusals; /* so often there is no room for each message */

    uint32_t received;  /* messages whose payload is in place */
    uint32_t announced; /* and left */
    uint32_t sent;      /* DONE or sent() */
    uint32_t started;
    uint32_t rooms;
    uint32_t failed; /* sent() or delivered() with an error */
    uint32_t lost;
    uint32_t replied;
    uint32_t refused;        /* as the next message, so far */
    struct chempi_list left; /* announced, waiting */
    uint8_t *seen[WORLD_MAX];
};

/* Opens the world's device with itself as sink. */
void party_open(struct party *party, struct world *world);
void party_close(struct party *party);

/* Send message `serial` of len bytes to `to`. Returns what the device said;
 * on an error or -EAGAIN nothing is kept. */
int party_send(struct party *party, uint32_t to, uint32_t serial, uint64_t len,
               uint32_t protocol, enum party_how how);

/* The same until it is taken, making progress. */
void party_send_surely(struct party *party, uint32_t to, uint32_t serial,
                       uint64_t len, uint32_t protocol, enum party_how how);

/* Accept or drop the messages that were left: every drop_every-th is dropped
 * (0: none); in reverse order if so asked. Returns how many were dropped. */
uint32_t party_settle(struct party *party, uint32_t drop_every,
                      bool is_reversed);

/* Have messages 0 to count - 1 of a source arrived (or been announced)? */
bool party_has_all(const struct party *party, uint32_t source, uint32_t count);

/* Sleep and work until the counter reaches the value. */
void party_wait(struct party *party, const uint32_t *counter, uint32_t value);

/* Until all that was handed in is gone, then for everybody else. */
void party_finish(struct party *party);

/* Is this device a rank's own? Then it talks to itself. */
bool party_is_self(const struct party *party);

#endif
