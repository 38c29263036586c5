/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of a batch system; see allocation.h. */
#include "chempid/hosts/allocation.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/client.h"
#include "common/control/msg.h"

#define NODES "SLURM_JOB_NODELIST"

/* A name that is being put together, and what it is part of. */
struct name {
    struct chempi_hosts *hosts;
    struct chempi_pool *pool;
    struct chempi_err *err;
    const char *list; /* all of it, for words */
    char text[CHEMPI_NODE_NAME_MAX];
};

static int malformed(const struct name *n)
{
    return chempi_err_set(n->err, -EINVAL,
                          "'%.200s' is no list of nodes such as a[00-03,7],b",
                          n->list);
}

static int expand(struct name *n, size_t len, const char *rest,
                  const char *end);

/* So many digits at least. */
static int expand_number(struct name *n, size_t len, unsigned long number,
                         int width, const char *rest, const char *end)
{
    const int more =
        snprintf(n->text + len, sizeof(n->text) - len, "%0*lu", width, number);

    if (more < 0 || (size_t)more >= sizeof(n->text) - len)
        return malformed(n);
    return expand(n, len + (size_t)more, rest, end);
}

/* "3" or "00-03" at *at, which is moved behind it. */
static int expand_range(struct name *n, size_t len, const char **at,
                        const char *rest, const char *end)
{
    char *stop;
    unsigned long first = strtoul(*at, &stop, 10);
    unsigned long last = first;
    const int width = (int)(stop - *at);
    int rc = 0;

    if (!isdigit((unsigned char)**at) || width > 18)
        return malformed(n);
    if (*stop == '-') {
        *at = stop + 1;
        last = strtoul(*at, &stop, 10);
        if (!isdigit((unsigned char)**at))
            return malformed(n);
    }
    if (last < first || last - first >= CHEMPI_JOB_NODES_MAX)
        return malformed(n);
    *at = stop;
    for (unsigned long i = first; !rc && i <= last; i++)
        rc = expand_number(n, len, i, width, rest, end);
    return rc;
}

/* Add what [rest, end) stands for behind the name's first len bytes. Depth is
 * bounded by the length of a name. */
static int expand(struct name *n, size_t len, const char *rest, const char *end)
{
    const char *close;
    const char *at;
    int rc = 0;

    while (rest < end && *rest != '[') {
        if (len + 1 >= sizeof(n->text) || *rest == ']')
            return malformed(n);
        n->text[len++] = *rest++;
    }
    if (rest == end) {
        n->text[len] = '\0';
        return chempi_hosts_add(n->hosts, n->pool, n->text, n->err);
    }
    close = memchr(rest, ']', (size_t)(end - rest));
    if (!close)
        return malformed(n);
    at = rest + 1;
    do {
        rc = expand_range(n, len, &at, close + 1, end);
        if (!rc && at != close && *at != ',')
            rc = malformed(n);
        at += at != close;
    } while (!rc && at < close);
    return rc;
}

/* Bytes up to the next comma outside of brackets. */
static size_t word_len(const char *text)
{
    size_t len = 0;
    int depth = 0;

    while (text[len] && (text[len] != ',' || depth)) {
        depth += text[len] == '[' ? 1 : text[len] == ']' ? -1 : 0;
        len++;
    }
    return len;
}

int chempi_allocation_names(struct chempi_hosts *hosts,
                            struct chempi_pool *pool, const char *list,
                            struct chempi_err *err)
{
    struct name n = {.hosts = hosts, .pool = pool, .err = err, .list = list};
    const char *at = list;
    int rc = 0;

    while (!rc && at) {
        const size_t len = word_len(at);

        rc = expand(&n, 0, at, at + len);
        at = at[len] ? at + len + 1 : NULL;
    }
    return rc;
}

int chempi_allocation_slots(struct chempi_hosts *hosts, const char *list,
                            struct chempi_err *err)
{
    const char *at = list;
    uint32_t node = 0;

    while (*at) {
        char *stop;
        const unsigned long slots = strtoul(at, &stop, 10);
        unsigned long times = 1;

        if (stop != at && strncmp(stop, "(x", 2) == 0) {
            times = strtoul(stop + 2, &stop, 10);
            stop += *stop == ')';
        }
        if (stop == at || (*stop && *stop != ',') || slots == 0 ||
            slots > CHEMPI_JOB_RANKS_MAX)
            return chempi_err_set(err, -EINVAL,
                                  "'%.200s' are no numbers of slots such as "
                                  "4(x3),2",
                                  list);
        while (times-- > 0 && node < hosts->count)
            hosts->slots[node++] = (uint32_t)slots;
        at = stop + (*stop == ',');
    }
    return 0;
}

static const char *value_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

bool chempi_allocation_is_slurm(void)
{
    return value_of("SLURM_JOB_ID") && value_of(NODES);
}

/* Tasks are what the user has asked for; else all processors. */
static int read_slurm(struct chempi_hosts *hosts, struct chempi_pool *pool,
                      struct chempi_err *err)
{
    const char *slots = value_of("SLURM_TASKS_PER_NODE");
    int rc = chempi_allocation_names(hosts, pool, value_of(NODES), err);

    if (!slots)
        slots = value_of("SLURM_JOB_CPUS_PER_NODE");
    if (!rc && slots)
        rc = chempi_allocation_slots(hosts, slots, err);
    if (rc)
        (void)chempi_err_prefix(err, "the allocation of Slurm");
    return rc ? rc : 1;
}

int chempi_allocation_read(struct chempi_hosts *hosts, struct chempi_pool *pool,
                           struct chempi_err *err)
{
    const char *file = value_of("PBS_NODEFILE");
    int rc;

    if (chempi_allocation_is_slurm())
        return read_slurm(hosts, pool, err);
    if (!file)
        return 0;
    rc = chempi_hosts_read(hosts, pool, file, err);
    return rc ? rc : 1;
}
