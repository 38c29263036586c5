/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for the places of calls, so that a send's can be kept in two bytes.
 * Each call has a few; they are found by hashing.
 */
#include <pthread.h>

#include "programs/libchempi-check/check.h"

enum { SITES = 4096, FULL = SITES / 4 * 3 };

static struct {
    pthread_mutex_t lock; /* of all below; none is taken inside */
    uint32_t count;
    struct check_site all[SITES]; /* from is NULL where there is none */
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t hash(const struct check_site *site)
{
    const uint64_t x =
        ((uintptr_t)site->from + site->id) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(x >> 52); /* twelve bits */
}

uint16_t check_site_number(const struct check_site *site)
{
    uint32_t at = hash(site);

    (void)pthread_mutex_lock(&sites.lock);
    while (sites.all[at].from &&
           (sites.all[at].from != site->from || sites.all[at].id != site->id))
        at = (at + 1) % SITES;
    if (!sites.all[at].from && sites.count < FULL) {
        sites.all[at] = *site;
        sites.count++;
    }
    at = sites.all[at].from ? at + 1 : 0;
    (void)pthread_mutex_unlock(&sites.lock);
    return (uint16_t)at;
}

bool check_site_at(uint16_t number, struct check_site *out)
{
    if (number == 0 || number > SITES)
        return false;
    (void)pthread_mutex_lock(&sites.lock);
    *out = sites.all[number - 1];
    (void)pthread_mutex_unlock(&sites.lock);
    return out->from != NULL;
}
