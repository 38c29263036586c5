/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids of contexts that are taken; see context_id.h. */
#include "libchempi/didl/comm/context_id.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/containers/array.h"
#include "libchempi/didl/comm/comm_make.h"
#include "libchempi/didl/transport/light.h"

#define ID_BITS 64u

static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t used;    /* bit i of word j: id j * ID_BITS + i is taken */
        uint64_t resting; /* .. and nobody's (chempi_context_id_rest()) */
    } * sets;
    size_t words;
    uint32_t resting; /* how many */
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int grow_locked(size_t words)
{
    const size_t old = ids.words;

    if (!CHEMPI_ARRAY_FIT(ids.sets, ids.words, words))
        return -1;
    memset(ids.sets + old, 0, (ids.words - old) * sizeof(*ids.sets));
    return 0;
}

static void wake_locked(void)
{
    if (CHEMPI_LIKELY(ids.resting == 0) || !chempi_light_is_none())
        return;
    for (size_t i = 0; i < ids.words; i++) {
        ids.sets[i].used &= ~ids.sets[i].resting;
        ids.sets[i].resting = 0;
    }
    ids.resting = 0;
    chempi_light_pause(false);
}

static uint32_t take_locked(uint32_t from)
{
    for (uint32_t id = from < CHEMPI_CONTEXT_ID_FIRST ? CHEMPI_CONTEXT_ID_FIRST
                                                      : from;
         id < CHEMPI_CONTEXT_ID_END; id++) {
        size_t word = id / ID_BITS;

        if (word >= ids.words && grow_locked(word + 1) != 0)
            return 0;
        if (ids.sets[word].used == UINT64_MAX) {
            id |= ID_BITS - 1;
            continue;
        }
        if (ids.sets[word].used & UINT64_C(1) << id % ID_BITS)
            continue;
        ids.sets[word].used |= UINT64_C(1) << id % ID_BITS;
        return id;
    }
    return 0;
}

static uint32_t take_above_locked(uint32_t from)
{
    size_t word = ids.words;
    uint32_t above;

    while (word > 0 && ids.sets[word - 1].used == 0)
        word--;
    above = word == 0 ? 0
                      : (uint32_t)((word - 1) * ID_BITS) +
                            CHEMPI_HIGHEST_BIT(ids.sets[word - 1].used) + 1;
    above = above < from ? from : above;
    return above < CHEMPI_CONTEXT_ID_HIGH ? take_locked(above) : 0;
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

void chempi_context_id_give(uint32_t id)
{
    (void)pthread_mutex_lock(&ids.lock);
    if (id / ID_BITS < ids.words)
        ids.sets[id / ID_BITS].used &= ~(UINT64_C(1) << id % ID_BITS);
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_context_id_rest(uint32_t id)
{
    (void)pthread_mutex_lock(&ids.lock);
    ids.sets[id / ID_BITS].resting |= UINT64_C(1) << id % ID_BITS;
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

void chempi_comm_give_context(uint32_t context)
{
    chempi_context_id_give(context / CHEMPI_CONTEXT_STEP);
}

void chempi_comm_rest_context(uint32_t context)
{
    if (CHEMPI_LIKELY(chempi_light_is_none()))
        chempi_comm_give_context(context);
    else
        chempi_context_id_rest(context / CHEMPI_CONTEXT_STEP);
}

void chempi_comm_reset_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    if (ids.words)
        memset(ids.sets, 0, ids.words * sizeof(*ids.sets));
    (void)pthread_mutex_unlock(&ids.lock);
}

void chempi_comm_free_contexts(void)
{
    (void)pthread_mutex_lock(&ids.lock);
    free(ids.sets);
    ids.sets = NULL;
    ids.words = 0;
    (void)pthread_mutex_unlock(&ids.lock);
}
