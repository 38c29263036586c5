/* SPDX-License-Identifier: BSD-3-Clause */
/* The matching engine against a linear model, and what it costs. */
#define _GNU_SOURCE /* rand_r */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/match.h"

enum { STEPS = 40000, CONTEXTS = 2, SOURCES = 3, TAGS = 4, MODEL_MAX = 4096 };

#define M (&chempi_match_main)

struct model_entry {
    uint32_t context;
    int32_t source;
    int32_t tag;
    void *what; /* request or held message */
};

static struct {
    struct model_entry posted[MODEL_MAX];
    struct model_entry held[MODEL_MAX];
    int posted_count;
    int held_count;
} model;

static bool fits(const struct model_entry *recv, const struct model_entry *msg)
{
    return recv->context == msg->context &&
           (recv->source == MPI_ANY_SOURCE || recv->source == msg->source) &&
           (recv->tag == MPI_ANY_TAG || recv->tag == msg->tag);
}

static void remove_entry(struct model_entry *list, int *count, int i)
{
    memmove(&list[i], &list[i + 1], (size_t)(*count - i - 1) * sizeof(list[0]));
    (*count)--;
}

static void *model_arrive(struct model_entry msg)
{
    for (int i = 0; i < model.posted_count; i++) {
        if (fits(&model.posted[i], &msg)) {
            void *req = model.posted[i].what;

            remove_entry(model.posted, &model.posted_count, i);
            return req;
        }
    }
    model.held[model.held_count++] = msg;
    return NULL;
}

static void *model_post(struct model_entry recv)
{
    for (int i = 0; i < model.held_count; i++) {
        if (fits(&recv, &model.held[i])) {
            void *held = model.held[i].what;

            remove_entry(model.held, &model.held_count, i);
            return held;
        }
    }
    model.posted[model.posted_count++] = recv;
    return NULL;
}

static struct chempi_request *new_request(uint32_t context, int32_t source,
                                          int32_t tag)
{
    struct chempi_request *req = calloc(1, sizeof(*req));

    cr_assert(req != NULL);
    req->context = context;
    req->peer_rank = source;
    req->peer_tag = tag;
    return req;
}

static void post_random(unsigned *seed)
{
    uint32_t context = 4u * (1u + (unsigned)rand_r(seed) % CONTEXTS);
    int32_t source = rand_r(seed) % (SOURCES + 1) - 1;
    int32_t tag = rand_r(seed) % (TAGS + 1) - 1;
    struct chempi_request *req;
    struct chempi_held *held;
    int error;

    source = source < 0 ? MPI_ANY_SOURCE : source;
    tag = tag < 0 ? MPI_ANY_TAG : tag;
    req = new_request(context, source, tag);
    held = chempi_match_post(M, req, &error);
    cr_assert(error == 0);
    cr_assert(held ==
              model_post((struct model_entry){context, source, tag, req}));
    if (held) {
        chempi_match_held_destroy(M, held);
        free(req);
    }
}

static void arrive_random(unsigned *seed)
{
    uint32_t context = 4u * (1u + (unsigned)rand_r(seed) % CONTEXTS);
    int32_t source = rand_r(seed) % SOURCES;
    int32_t tag = rand_r(seed) % TAGS;
    struct chempi_held *held = chempi_match_held_create(M, 0);
    struct chempi_request *req =
        chempi_match_take_posted(M, context, source, tag);

    cr_assert(held != NULL);
    cr_assert(req ==
              model_arrive((struct model_entry){context, source, tag, held}));
    held->env = (struct chempi_envelope){
        .context = context, .source = source, .tag = tag};
    if (req) {
        free(req);
        chempi_match_held_destroy(M, held);
    } else {
        cr_assert(chempi_match_hold(M, held) == 0);
    }
}

static void cancel_random(unsigned *seed)
{
    int i;

    if (!model.posted_count)
        return;
    i = rand_r(seed) % model.posted_count;
    chempi_match_unpost(M, model.posted[i].what);
    free(model.posted[i].what);
    remove_entry(model.posted, &model.posted_count, i);
}

Test(match, agrees_with_a_linear_model_for_all_kinds_of_receives)
{
    unsigned seed = 20250101u;

    for (int step = 0; step < STEPS; step++) {
        /* The balance drifts, so that both queues grow and drain. */
        int bias = 4 + (step / 2000 % 2 ? 2 : -2);
        int turn = rand_r(&seed) % 10;

        if (model.posted_count < MODEL_MAX && turn < bias)
            post_random(&seed);
        else if (turn == 9)
            cancel_random(&seed);
        else if (model.held_count < MODEL_MAX)
            arrive_random(&seed);
        cr_assert(chempi_match_stats(M).held == (uint64_t)model.held_count);
    }
    while (model.posted_count)
        cancel_random(&seed);
    cr_assert(chempi_match_fini(M) == (uint64_t)model.held_count);
}

Test(match, finds_each_of_many_posted_receives_whatever_their_order)
{
    enum { COUNT = 10000 };
    struct chempi_request **reqs = calloc(COUNT, sizeof(*reqs));
    int error;

    cr_assert(reqs != NULL);
    for (int i = 0; i < COUNT; i++) {
        reqs[i] = new_request(4, i % 100, i);
        cr_assert(chempi_match_post(M, reqs[i], &error) == NULL && !error);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        cr_assert(chempi_match_take_posted(M, 4, i % 100, i) == reqs[i]);
        free(reqs[i]);
    }
    cr_assert(chempi_match_take_posted(M, 4, 0, 0) == NULL);
    free(reqs);
    (void)chempi_match_fini(M);
}

/* Every queue is visited once per match: count steps instead of time by
 * reusing few tags over many rounds, so idle queues must be forgotten. */
Test(match, forgets_idle_patterns)
{
    int error;

    for (int tag = 0; tag < 200000; tag++) {
        struct chempi_request *req = new_request(4, 0, tag);

        cr_assert(chempi_match_post(M, req, &error) == NULL && !error);
        cr_assert(chempi_match_take_posted(M, 4, 0, tag) == req);
        free(req);
    }
    cr_assert(chempi_match_fini(M) == 0);
}

Test(match, takes_a_message_back_by_its_serial)
{
    struct chempi_peer peer = {.proc = 1};
    struct chempi_held *held = chempi_match_held_create(M, 100);

    cr_assert(held != NULL);
    held->peer = &peer;
    held->state = CHEMPI_HELD_COMPLETE;
    held->env = (struct chempi_envelope){.context = 4, .serial = 7};
    cr_assert(chempi_match_hold(M, held) == 0);
    cr_assert(chempi_match_take_serial(M, &peer, 8) == NULL);
    cr_assert(chempi_match_take_serial(M, &peer, 7) == held);
    cr_assert(chempi_match_stats(M).held == 0);
    chempi_match_held_destroy(M, held);
    (void)chempi_match_fini(M);
}

Test(match, leaves_a_message_unmatched_that_claims_to_come_from_anybody)
{
    static const struct chempi_envelope garbage[] = {
        {.context = 4, .source = MPI_ANY_SOURCE, .tag = 5},
        {.context = 4, .source = 0, .tag = MPI_ANY_TAG},
        {.context = 4, .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG},
    };
    int error;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(garbage); i++) {
        struct chempi_held *held = chempi_match_held_create(M, 0);

        cr_assert(held != NULL);
        held->env = garbage[i];
        cr_assert(chempi_match_hold(M, held) == 0);
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(garbage); i++) {
        struct chempi_request *req =
            new_request(4, garbage[i].source, garbage[i].tag);

        cr_assert(chempi_match_post(M, req, &error) == NULL && !error);
        chempi_match_unpost(M, req);
        free(req);
    }
    cr_assert(chempi_match_fini(M) == CHEMPI_ARRAY_LEN(garbage));
}
