/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids of contexts that are taken; see context_id.h. */
#include "libchempi/didl/comm/context_id.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/containers/array.h"
#include "libchempi/didl/transport/light.h"

#define ID_BITS 64u

/* The ids of one range: those from `first` on. */
struct range {
    uint32_t first;
    struct {
        uint64_t used;    /* bit i of word j: id first + j * ID_BITS + i is
                             taken */
        uint64_t resting; /* .. and nobody's, while there are light
                             handles (light.h, H1) */
    } * sets;
    size_t words;
};

static struct {
    pthread_mutex_t lock;
    struct range ranges[2];
    uint32_t resting; /* how many, in both */
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .ranges = {{.first = 0}, {.first = CHEMPI_CONTEXT_ID_OPEN}}};

static struct range *range_of(uint32_t id)
{
    return &ids.ranges[id >= CHEMPI_CONTEXT_ID_OPEN];
}

static int grow_locked(struct range *r, size_t words)
{
    const size_t old = r->words;

    if (!CHEMPI_ARRAY_FIT(r->sets, r->words, words))
        return -1;
    memset(r->sets + old, 0, (r->words - old) * sizeof(*r->sets));
    return 0;
}

static void wake_locked(void)
{
    if (CHEMPI_LIKELY(ids.resting == 0) || !chempi_light_is_none())
        return;
    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(ids.ranges); k++) {
        struct range *r = &ids.ranges[k];

        for (size_t i = 0; i < r->words; i++) {
            r->sets[i].used &= ~r->sets[i].resting;
            r->sets[i].resting = 0;
        }
    }
    ids.resting = 0;
    chempi_light_pause(false);
}

static uint32_t take_locked(uint32_t from)
{
    struct range *r = range_of(from);

    for (uint32_t n = from < CHEMPI_CONTEXT_ID_FIRST ? CHEMPI_CONTEXT_ID_FIRST
                                                     : from - r->first;
         n < CHEMPI_CONTEXT_ID_OPEN; n++) {
        size_t word = n / ID_BITS;

        if (word >= r->words && grow_locked(r, word + 1) != 0)
            return 0;
        if (r->sets[word].used == UINT64_MAX) {
            n |= ID_BITS - 1;
            continue;
        }
        if (r->sets[word].used & UINT64_C(1) << n % ID_BITS)
            continue;
        r->sets[word].used |= UINT64_C(1) << n % ID_BITS;
        return r->first + n;
    }
    return 0;
}

static uint32_t take_above_locked(uint32_t from)
{
    const struct range *r = range_of(from);
    size_t word = r->words;
    uint32_t above;

    while (word > 0 && r->sets[word - 1].used == 0)
        word--;
    above = word == 0 ? 0
                      : (uint32_t)((word - 1) * ID_BITS) +
                            CHEMPI_HIGHEST_BIT(r->sets[word - 1].used) + 1;
    above = above < from - r->first ? from - r->first : above;
    return above < CHEMPI_CONTEXT_ID_HIGH ? take_locked(r->first + above) : 0;
}

uint32_t chempi_context_id_take(uint32_t from)
{
    uint32_t id;

    (void)pthread_mutex_lock(&ids.lock);
    wake_locked();
    id = take_locked(from);
    (void)pthread_mutex_unlock(&ids.lock);
    return id;
}

uint32_t chempi_context_id_take_above(uint32_t from)
{
    uint32_t id;

    (void)pthread_mutex_lock(&ids.lock);
    wake_locked();
    id = take_above_locked(from);
    (void)pthread_mutex_unlock(&ids.lock);
    return id;
}

void chempi_comm_give_context(uint32_t context)
{
    const uint32_t id = context / CHEMPI_CONTEXT_STEP;
    struct range *r = range_of(id);
    const uint32_t n = id - r->first;

    (void)pthread_mutex_lock(&ids.lock);
    if (n / ID_BITS < r->words)
        r->sets[n / ID_BITS].used &= ~(UINT64_C(1) << n % ID_BITS);
    (void)pthread_mutex_unlock(&ids.lock);
}

static void rest(uint32_t id)
{
    struct range *r = range_of(id);
    const uint32_t n = id - r->first;

    (void)pthread_mutex_lock(&ids.lock);
    r->sets[n / ID_BITS].resting |= UINT64_C(1) << n % ID_BITS;
    if (++ids.resting >= CHEMPI_CONTEXT_ID_RESTING_MAX)
        chempi_light_pause(true);
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_context_id_wake(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    wake_locked();
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_comm_rest_context(uint32_t context)
{
    if (CHEMPI_LIKELY(chempi_light_is_none()))
        chempi_comm_give_context(context);
    else
        rest(context / CHEMPI_CONTEXT_STEP);
}

void chempi_comm_reset_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(ids.ranges); k++)
        if (ids.ranges[k].words)
            memset(ids.ranges[k].sets, 0,
                   ids.ranges[k].words * sizeof(*ids.ranges[k].sets));
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_comm_free_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(ids.ranges); k++) {
        free(ids.ranges[k].sets);
        ids.ranges[k].sets = NULL;
        ids.ranges[k].words = 0;
    }
    (void)pthread_mutex_unlock(&ids.lock);
}
