/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few processes that share one device, without didl: what a launcher and
 * didl would hand the device is made up here. Each process is forked, runs one
 * function, and says by its exit code whether all was well.
 */
#ifndef CHEMPI_TESTS_CONFORMANCE_DEVICE_WORLD_H
#define CHEMPI_TESTS_CONFORMANCE_DEVICE_WORLD_H

#include "libchempi/ddi.h"

#define WORLD_MAX 64u        /* processes */
#define WORLD_CARD_MAX 1024u /* bytes */
#define WORLD_SETTINGS_MAX 16u

/* One process of the world. */
struct world {
    uint32_t proc;
    uint32_t count;
    const char *device;
    struct chempi_services services;
    struct chempi_dev *dev;
    struct chempi_dev *first; /* in another lane; NULL: there is one lane */
    struct chempi_ep *eps[WORLD_MAX];
    struct world_shared *shared;
    struct chempi_poll_item wake_item;
    bool has_fds;
    _Atomic uint64_t settings[WORLD_SETTINGS_MAX]; /* the device's */
    void *arg;
};

/* Memory that all processes and the parent see. */
struct world_shared {
    _Atomic uint32_t entered;   /* of the barrier */
    _Atomic uint32_t words[64]; /* the test's own */
    struct {
        _Atomic uint32_t is_ready;
        size_t len;
        unsigned char bytes[WORLD_CARD_MAX];
    } cards[WORLD_MAX];
};

typedef void world_fn(struct world *world);

/*
 * Run fn in `count` processes on the named device; for a device of one node
 * they share a node, otherwise each has its own. Returns the number of
 * processes that did not end with exit code 0, -1 when the world could not be
 * made. A process that takes longer than a minute is ended.
 */
int world_run(const char *device, uint32_t count, world_fn *fn, void *arg);

/* The same, with a look at each raw wait status: [count]. */
int world_run_status(const char *device, uint32_t count, world_fn *fn,
                     void *arg, int *statuses);

/* In a process: open the device with this sink and connect to everybody. */
void world_open(struct world *world, const struct chempi_sink *sink,
                void *sink_arg);
void world_close(struct world *world);

/* Wait until something can be done: look, or sleep as didl would. */
void world_poll(struct world *world);
void world_sleep(struct world *world);

/* Wait for all processes, making progress. */
void world_barrier(struct world *world);

/* End this process with a complaint if the condition does not hold. */
#define WORLD_CHECK(condition)                                                 \
    world_check((condition), #condition, __FILE__, __LINE__)
void world_check(bool is_true, const char *what, const char *file, int line);

#endif
