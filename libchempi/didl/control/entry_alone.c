/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry's member for a world of one, which nobody has started; see
 * entry.h. */
#define _GNU_SOURCE /* gethostname */
#include "libchempi/didl/control/entry.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/host/cpus.h"

static struct {
    uint32_t zero;
    int no_fd;
    const char *name;
    char host[CHEMPI_NODE_NAME_MAX];
    struct chempi_job job;
} alone;

/* For how many there is room, as far as can be said without asking a launcher:
 * as chempirun says it where it asks no daemon. */
static uint32_t count_processors(void)
{
    struct chempi_cpus cpus;
    const uint32_t count =
        chempi_cpus_get(&cpus) ? 0 : chempi_cpus_count(&cpus);

    return count ? count : 1;
}

static int open_way(const struct chempi_entry *entry,
                    const struct chempi_job **job, struct chempi_err *err)
{
    (void)entry;
    (void)err;
    if (gethostname(alone.host, sizeof(alone.host)) != 0)
        (void)snprintf(alone.host, sizeof(alone.host), "localhost");
    alone.host[sizeof(alone.host) - 1] = '\0';
    alone.no_fd = -1;
    alone.name = alone.host;
    alone.job = (struct chempi_job){
        .id = "alone",
        .size = 1,
        .node_count = 1,
        .local_size = 1,
        .node_of_rank = &alone.zero,
        .local_rank_of_rank = &alone.zero,
        .node_names = &alone.name,
        .universe_size = count_processors(),
        .region_fd = -1,
        .table_fd = -1,
        .wake_fds = &alone.no_fd,
        .memory_share = UINT64_MAX, /* nobody divides it */
        .parent = "",
    };
    *job = &alone.job;
    return 0;
}

static void close_way(void)
{
}

static int fd(void)
{
    return -1;
}

static int put(const char *key, const void *value, size_t len)
{
    (void)key;
    (void)value;
    (void)len;
    return 0;
}

static int get(uint32_t rank, const char *key)
{
    (void)rank;
    (void)key;
    return -EHOSTUNREACH;
}

/* All of the world are here. */
static int fence(uint64_t *number)
{
    (void)number;
    return 0;
}

static int progress(const struct chempi_client_events *events, void *arg,
                    struct chempi_err *err)
{
    (void)events;
    (void)arg;
    (void)err;
    return 0;
}

/* There is nobody who could have news. */
static bool is_quiet(void)
{
    return true;
}

static int begin(struct chempi_err *err)
{
    (void)err;
    return 0;
}

static int end(bool is_for_good)
{
    (void)is_for_good;
    return 0;
}

/* Nobody hears of it. */
static int end_job(int exit_code, const char *text)
{
    (void)exit_code;
    (void)text;
    return -ENOENT;
}

const struct chempi_entry_ops chempi_entry_alone = {
    .open = open_way,
    .close = close_way,
    .fd = fd,
    .needs_fd = chempi_entry_no_question,
    .due_ms = chempi_entry_no_due,
    .put = put,
    .get = get,
    .fence = fence,
    .progress = progress,
    .is_quiet = is_quiet,
    .begin = begin,
    .end = end,
    .abort = end_job,
    .ask_root = chempi_entry_no_root,
    .client = chempi_entry_no_client,
};
