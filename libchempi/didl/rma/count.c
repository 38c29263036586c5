/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of one-sided operations; see count.h. */
#include "libchempi/didl/rma/count.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/control/wire.h"
#include "libchempi/didl/rma/win.h"

enum {
    NAMES_MAX = 64, /* told apart; the windows of others count together */
    NAME_SIZE = 32
};

/* What windows of one name have counted and nobody has been told. */
struct tally {
    char name[NAME_SIZE];
    uint64_t counts[CHEMPI_RMA_COUNTERS];
};

uint64_t chempi_rma_counts[CHEMPI_RMA_COUNTERS];

static struct tally tallies[NAMES_MAX];
static uint32_t tally_count;

const struct chempi_counter_words
    chempi_rma_counter_words[CHEMPI_RMA_COUNTERS] = {
        [CHEMPI_RMA_COUNT_SELF] =
            {"self_operations",
             "One-sided operations of a process on itself, a count.", false},
        [CHEMPI_RMA_COUNT_SELF_BYTES] =
            {"self_bytes",
             "What one-sided operations of a process on itself moved, in "
             "bytes.",
             false},
        [CHEMPI_RMA_COUNT_NODE] =
            {"node_operations",
             "One-sided operations by loads and stores in memory that the node "
             "shares, a count.",
             true},
        [CHEMPI_RMA_COUNT_NODE_BYTES] =
            {"node_bytes",
             "What one-sided operations moved by loads and stores in memory "
             "that the node shares, in bytes.",
             true},
        [CHEMPI_RMA_COUNT_ATTACH] =
            {"attach_operations",
             "One-sided operations by cross-memory attach, a count.", true},
        [CHEMPI_RMA_COUNT_ATTACH_BYTES] =
            {"attach_bytes",
             "What one-sided operations moved by cross-memory attach, in "
             "bytes.",
             true},
        [CHEMPI_RMA_COUNT_MESSAGE] =
            {"message_operations",
             "One-sided operations by messages to the target's process, a "
             "count.",
             true},
        [CHEMPI_RMA_COUNT_MESSAGE_BYTES] =
            {"message_bytes",
             "What one-sided operations moved by messages, in bytes.", true},
        [CHEMPI_RMA_COUNT_SERVED] =
            {"requests_served",
             "Requests of one-sided operations of others that this process has "
             "executed, a count.",
             true},
        [CHEMPI_RMA_COUNT_LOCKS] =
            {"locks", "Locks of windows that were taken, a count.", true},
        [CHEMPI_RMA_COUNT_LOCK_WAITS] =
            {"lock_waits",
             "Locks of windows that were not free when they were asked for, a "
             "count.",
             true},
};

static const char *const reaches[] = {"self", "node", "attach", "message"};

/* A word: the name's letters and digits, as far as there is room. */
static void name_of(const struct chempi_win *win, char *name)
{
    (void)snprintf(name, NAME_SIZE, "%.*s", NAME_SIZE - 1,
                   win->name[0] ? win->name : "unnamed");
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
}

static struct tally *find_tally(const char *name)
{
    for (uint32_t i = 0; i < tally_count; i++)
        if (strcmp(tallies[i].name, name) == 0)
            return &tallies[i];
    if (tally_count == NAMES_MAX - 1 && strcmp(name, "others") != 0)
        return find_tally("others");
    memcpy(tallies[tally_count].name, name, NAME_SIZE);
    return &tallies[tally_count++];
}

void chempi_rma_count_retire(struct chempi_win *win)
{
    char name[NAME_SIZE] = "";
    struct tally *t;

    name_of(win, name);
    t = find_tally(name);
    for (int i = 0; i < CHEMPI_RMA_COUNTERS; i++)
        t->counts[i] += win->counts[i] - win->told[i];
    memcpy(win->told, win->counts, sizeof(win->told));
}

uint64_t chempi_rma_count_bind(MPI_Win handle)
{
    static uint64_t last;

    CHEMPI_LIST_FOR (link, &chempi_rma_windows) {
        struct chempi_win *win =
            CHEMPI_CONTAINER_OF(link, struct chempi_win, link);

        if (win->handle != handle)
            continue;
        if (!win->bound)
            win->bound = ++last;
        return win->bound;
    }
    return 0;
}

bool chempi_rma_count_of(uint64_t bound, enum chempi_rma_counter which,
                         uint64_t *out)
{
    CHEMPI_LIST_FOR (link, &chempi_rma_windows) {
        const struct chempi_win *win =
            CHEMPI_CONTAINER_OF(link, struct chempi_win, link);

        if (win->bound != bound)
            continue;
        *out = win->counts[which];
        return true;
    }
    return false;
}

static void report_one(struct chempi_writer *out, struct tally *t)
{
    const uint64_t *n = t->counts;
    char line[128];

    for (uint32_t i = 0; i < CHEMPI_ARRAY_LEN(reaches); i++) {
        if (!n[2 * i])
            continue;
        (void)snprintf(line, sizeof(line),
                       "window %s %s %" PRIu64 " %" PRIu64 "\n", t->name,
                       reaches[i], n[2 * i], n[2 * i + 1]);
        chempi_wire_put_raw(out, line, strlen(line));
    }
    if (n[CHEMPI_RMA_COUNT_LOCKS] || n[CHEMPI_RMA_COUNT_SERVED]) {
        (void)snprintf(
            line, sizeof(line), "lock %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
            t->name, n[CHEMPI_RMA_COUNT_LOCKS], n[CHEMPI_RMA_COUNT_LOCK_WAITS],
            n[CHEMPI_RMA_COUNT_SERVED]);
        chempi_wire_put_raw(out, line, strlen(line));
    }
    memset(t->counts, 0, sizeof(t->counts));
}

void chempi_rma_count_report(struct chempi_writer *out)
{
    CHEMPI_LIST_FOR (link, &chempi_rma_windows)
        chempi_rma_count_retire(
            CHEMPI_CONTAINER_OF(link, struct chempi_win, link));
    for (uint32_t i = 0; i < tally_count; i++)
        report_one(out, &tallies[i]);
}

void chempi_rma_count_init(void)
{
    memset(chempi_rma_counts, 0, sizeof(chempi_rma_counts));
    memset(tallies, 0, sizeof(tallies));
    tally_count = 0;
}
