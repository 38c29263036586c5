/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for the places of calls, so that a send's can be kept in two bytes.
 * A program has a few. */
#include <pthread.h>

#include "common/containers/index.h"
#include "programs/libchempi-check/check.h"

enum { SITES = 4096 };

static struct {
    pthread_mutex_t lock; /* of all below; none is taken inside */
    uint32_t count;
    struct chempi_index index; /* into all, by place and call */
    struct check_site all[SITES];
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_site(const void *elements, uint32_t number, const void *key)
{
    const struct check_site *all = elements;
    const struct check_site *site = key;

    return all[number].from == site->from && all[number].id == site->id;
}

static uint16_t find_number(const struct check_site *site)
{
    const uint32_t hash = chempi_index_hash_number(
        (uint64_t)(uintptr_t)site->from + (uint64_t)site->id);
    uint32_t at;

    (void)pthread_mutex_lock(&sites.lock);
    at = chempi_index_find(&sites.index, hash, is_site, sites.all, site);
    if (at == CHEMPI_INDEX_NONE && sites.count < SITES &&
        chempi_index_add(&sites.index, hash, sites.count)) {
        at = sites.count++;
        sites.all[at] = *site;
    }
    (void)pthread_mutex_unlock(&sites.lock);
    return at == CHEMPI_INDEX_NONE ? 0 : (uint16_t)(at + 1);
}

/* The last ones of a thread, by where they return to. */
enum { RECENT = 32 };
static _Thread_local struct {
    struct check_site site;
    uint16_t number; /* 0: unused */
} recent[RECENT];

uint16_t check_site_number(const struct check_site *site)
{
    const uintptr_t from = (uintptr_t)site->from;
    const size_t at = (from >> 2 ^ from >> 7) % RECENT;

    if (recent[at].number == 0 || recent[at].site.from != site->from ||
        recent[at].site.id != site->id) {
        recent[at].site = *site;
        recent[at].number = find_number(site);
    }
    return recent[at].number;
}

bool check_site_at(uint16_t number, struct check_site *out)
{
    bool is_there;

    (void)pthread_mutex_lock(&sites.lock);
    is_there = number > 0 && number <= sites.count;
    if (is_there)
        *out = sites.all[number - 1];
    (void)pthread_mutex_unlock(&sites.lock);
    return is_there;
}
