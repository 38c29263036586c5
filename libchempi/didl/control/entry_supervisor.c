/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry's member for chempi's own supervisor; see entry.h, client.h. */
#include "libchempi/didl/control/entry.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "libchempi/didl/base/ctx.h"

/* How long the supervisor may take to hear of a start or finalize, ms. */
#define HEAR_LIMIT_MS 5000
#define OUTPUT_MS 1 /* until the next look whether it has read */

static struct chempi_client *client;
static uint32_t notices; /* counted before the last progress */

/* Of the supervisor's; W8. 0 before the wake lines are there. */
static uint32_t count_notices(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    return s->wakes ? atomic_load_explicit(&s->wakes[s->local_rank].notices,
                                           memory_order_acquire)
                    : 0;
}

static int open_way(const struct chempi_entry *entry,
                    const struct chempi_job **job, struct chempi_err *err)
{
    int rc = chempi_client_open(&client, err);

    (void)entry;
    if (rc)
        return rc;
    *job = chempi_client_job(client);
    return 0;
}

static void close_way(void)
{
    chempi_client_close(client);
    client = NULL;
}

static int fd(void)
{
    return chempi_client_fd(client);
}

static int put(const char *key, const void *value, size_t len)
{
    return chempi_client_put(client, key, value, len);
}

static int get(uint32_t rank, const char *key)
{
    return chempi_client_get(client, rank, key);
}

static int fence(uint64_t *number)
{
    return chempi_client_fence(client, number);
}

static int progress(const struct chempi_client_events *events, void *arg,
                    struct chempi_err *err)
{
    notices = count_notices();
    return chempi_client_progress(client, events, arg, err);
}

static bool is_quiet(void)
{
    return chempi_client_is_quiet(client) && notices == count_notices();
}

/* What the socket did not take goes when the supervisor has read some of it, of
 * which it says nothing. */
static int due_ms(void)
{
    return chempi_client_has_output(client) ? OUTPUT_MS : -1;
}

/* Heard of before anything is on the way. Its loss is noticed when its notices
 * are read. */
static int begin(struct chempi_err *err)
{
    int rc = chempi_client_set_initialized(client);

    if (rc)
        return chempi_err_set(err, rc, "the supervisor cannot be told: %s",
                              chempi_err_name(rc));
    return chempi_client_flush(client, HEAR_LIMIT_MS) == 0 ? 0 : 1;
}

static int end(bool is_for_good)
{
    (void)is_for_good;
    (void)chempi_client_set_finalized(client);
    (void)chempi_client_flush(client, HEAR_LIMIT_MS);
    return 0;
}

static int end_job(int exit_code, const char *text)
{
    return chempi_client_abort(client, exit_code, text);
}

static int ask_root(enum chempi_root_request what, const void *blob, size_t len,
                    uint32_t *serial)
{
    return chempi_client_ask_root(client, what, blob, len, serial);
}

static struct chempi_client *get_client(void)
{
    return client;
}

const struct chempi_entry_ops chempi_entry_supervisor = {
    .open = open_way,
    .close = close_way,
    .fd = fd,
    .needs_fd = chempi_entry_no_question, /* it rouses the rank, too */
    .due_ms = due_ms,
    .put = put,
    .get = get,
    .fence = fence,
    .progress = progress,
    .is_quiet = is_quiet,
    .begin = begin,
    .end = end,
    .abort = end_job,
    .ask_root = ask_root,
    .client = get_client,
};
