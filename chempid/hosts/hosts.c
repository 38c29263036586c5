/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of nodes as users write them; see hosts.h. */
#define _GNU_SOURCE /* strsep */
#include "chempid/hosts/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/tree/nodes/members.h"
#include "common/base/number.h"
#include "common/control/msg.h"
#include "common/words/linefile.h"

static int out_of_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM, "out of memory");
}

/* For one more, and the NULL behind the names. */
static int grow(struct chempi_hosts *h, struct chempi_pool *pool,
                struct chempi_err *err)
{
    uint32_t cap = h->cap; /* of both lists */

    if (h->count >= CHEMPI_JOB_NODES_MAX)
        return chempi_err_set(err, -ENOBUFS, "too many nodes (limit: %u)",
                              CHEMPI_JOB_NODES_MAX);
    if (!CHEMPI_POOL_FIT(pool, h->names, cap, h->count + 2) ||
        !CHEMPI_POOL_FIT(pool, h->slots, h->cap, h->count + 2))
        return out_of_memory(err);
    return 0;
}

static bool has_name(const void *elements, uint32_t number, const void *key)
{
    const struct chempi_hosts *h = elements;

    return strcmp(h->names[number], key) == 0;
}

uint32_t chempi_hosts_find(const struct chempi_hosts *h, const char *name)
{
    return chempi_index_find(&h->index, chempi_index_hash_text(0, name),
                             has_name, h, name);
}

static int append(struct chempi_hosts *h, struct chempi_pool *pool,
                  const char *name, uint32_t slots, struct chempi_err *err)
{
    char *copy;
    int rc;

    if (!chempi_members_is_name(name))
        return chempi_err_set(err, -EINVAL,
                              "'%.100s' is no node name (1 to %d characters, "
                              "without blank, comma, colon, hash and slash)",
                              name, CHEMPI_NODE_NAME_MAX - 1);
    rc = grow(h, pool, err);
    if (rc)
        return rc;
    copy = chempi_pool_str(pool, name);
    if (!copy ||
        !chempi_index_add(&h->index, chempi_index_hash_text(0, name), h->count))
        return out_of_memory(err);
    h->names[h->count] = copy;
    h->slots[h->count++] = slots;
    return 0;
}

static int get_slots(const char *text, uint32_t *out, struct chempi_err *err)
{
    if (chempi_number_parse32(text, 1, CHEMPI_JOB_RANKS_MAX, out))
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "'%.100s': expected a number of ranks from 1 to %u",
                          text, CHEMPI_JOB_RANKS_MAX);
}

int chempi_hosts_add(struct chempi_hosts *h, struct chempi_pool *pool,
                     const char *word, struct chempi_err *err)
{
    char *name = chempi_pool_str(pool, word);
    char *colon = name ? strchr(name, ':') : NULL;
    uint32_t slots = 0;
    int rc;

    if (!name)
        return out_of_memory(err);
    if (colon) {
        *colon = '\0';
        rc = get_slots(colon + 1, &slots, err);
        if (rc)
            return rc;
    }
    if (chempi_hosts_find(h, name) != CHEMPI_INDEX_NONE)
        return chempi_err_set(err, -EINVAL,
                              "node %s is named twice; %s:2 is for two ranks "
                              "there",
                              name, name);
    return append(h, pool, name, slots, err);
}

int chempi_hosts_list(struct chempi_hosts *h, struct chempi_pool *pool,
                      const char *text, struct chempi_err *err)
{
    char *rest = chempi_pool_str(pool, text);
    int rc = rest ? 0 : out_of_memory(err);

    while (!rc && rest)
        rc = chempi_hosts_add(h, pool, strsep(&rest, ","), err);
    return rc;
}

/* What Open MPI writes: how many ranks at most. Read so that its files can be
 * used; it cannot be less than what is wanted. */
static int check_most(const char *text, uint32_t slots, struct chempi_err *err)
{
    uint32_t most = 0;
    int rc = get_slots(text, &most, err);

    if (!rc && most < slots)
        rc = chempi_err_set(err, -EINVAL,
                            "max_slots=%u is less than the %u slots", most,
                            slots);
    return rc;
}

/* "NAME[:N] [slots=N] [max_slots=N]". */
static int parse_line(struct chempi_hosts *h, struct chempi_pool *pool,
                      char *line, struct chempi_err *err)
{
    static const char blank[] = " \t\r\n";
    uint32_t slots = 1;
    uint32_t at;
    char *name;
    char *word;
    int rc = 0;

    name = strtok_r(line, blank, &line);
    if (!name)
        return 0;
    word = strchr(name, ':');
    if (word) {
        *word = '\0';
        rc = get_slots(word + 1, &slots, err);
    }
    while (!rc && (word = strtok_r(NULL, blank, &line))) {
        if (strncmp(word, "slots=", 6) == 0)
            rc = get_slots(word + 6, &slots, err);
        else if (strncmp(word, "max_slots=", 10) == 0 ||
                 strncmp(word, "max-slots=", 10) == 0)
            rc = check_most(word + 10, slots, err);
        else
            rc = chempi_err_set(err, -EINVAL,
                                "'%.100s': expected NAME, NAME:RANKS or NAME "
                                "slots=RANKS",
                                word);
    }
    if (rc)
        return rc;
    at = chempi_hosts_find(h, name);
    if (at == CHEMPI_INDEX_NONE)
        return append(h, pool, name, slots, err);
    h->slots[at] += slots;
    return 0;
}

struct reading {
    struct chempi_hosts *hosts;
    struct chempi_pool *pool;
};

static int take_line(void *arg, char *line, unsigned number,
                     struct chempi_err *err)
{
    const struct reading *r = arg;

    (void)number;
    return parse_line(r->hosts, r->pool, line, err);
}

int chempi_hosts_read(struct chempi_hosts *h, struct chempi_pool *pool,
                      const char *path, struct chempi_err *err)
{
    struct reading r = {.hosts = h, .pool = pool};
    const int rc = chempi_linefile_each(path, "hosts", take_line, &r, err);

    if (rc || h->count)
        return rc;
    return chempi_err_set(err, -EINVAL, "%s names no node", path);
}

void chempi_hosts_fini(struct chempi_hosts *h)
{
    chempi_index_fini(&h->index);
}
