/* SPDX-License-Identifier: BSD-3-Clause */
/* Device conformance: every message arrives once, whole, unharmed. */
#include <sched.h>

#include "tests/conformance/device/suite.h"

static const uint64_t sizes[] = {
    0,     1,     3,     7,     8,     15,    16,     17,      23,
    24,    25,    31,    32,    33,    63,    64,     65,      100,
    511,   1000,  4095,  4096,  4097,  8191,  8192,   8193,    9999,
    16384, 16385, 30000, 65535, 65536, 65537, 200001, 1048577,
};

/* The other one, or oneself. */
static uint32_t partner(const struct party *party)
{
    return party->world->count - 1 - party->world->proc;
}

static void send_all_sizes(struct world *world, uint32_t refusals)
{
    const int *how = world->arg;
    struct party party;
    uint32_t serial = 0;
    uint32_t count;

    party_open(&party, world);
    party.is_scattered = *how == PARTY_SEND_ITER;
    party.refusals = refusals;
    count = party.world->dev->caps->protocol_count;
    for (uint32_t protocol = 0; protocol < count; protocol++)
        for (size_t i = 0; i < CHEMPI_ARRAY_LEN(sizes); i++)
            if (*how != PARTY_INJECT ||
                sizes[i] <= world->dev->caps->inject_max)
                party_send_surely(&party, partner(&party), serial++, sizes[i],
                                  protocol, (enum party_how) * how);
    party_wait(&party, &party.received, serial);
    party_finish(&party);
    WORLD_CHECK(party.received == serial && party.failed == 0);
    party_close(&party);
}

static void all_sizes(struct world *world)
{
    send_all_sizes(world, 0);
}

static void all_sizes_refused(struct world *world)
{
    send_all_sizes(world, 3);
}

DEVICE_TEST(contiguous_messages_of_all_sizes_arrive)
{
    int how = PARTY_SEND;

    cr_assert_eq(world_run(device, suite_procs(device, 2), all_sizes, &how), 0);
}

DEVICE_TEST(injected_messages_of_all_sizes_arrive)
{
    int how = PARTY_INJECT;

    cr_assert_eq(world_run(device, suite_procs(device, 2), all_sizes, &how), 0);
}

DEVICE_TEST(scattered_messages_of_all_sizes_arrive)
{
    int how = PARTY_SEND_ITER;

    cr_assert_eq(world_run(device, suite_procs(device, 2), all_sizes, &how), 0);
}

DEVICE_TEST(messages_that_need_consent_of_all_sizes_arrive)
{
    int how = PARTY_SEND_CONSENT;

    cr_assert_eq(world_run(device, suite_procs(device, 2), all_sizes, &how), 0);
}

DEVICE_TEST(messages_without_room_come_again)
{
    static const int ways[] = {PARTY_INJECT, PARTY_SEND, PARTY_SEND_CONSENT};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(ways); i++) {
        int how = ways[i];

        cr_assert_eq(
            world_run(device, suite_procs(device, 2), all_sizes_refused, &how),
            0);
    }
}

/* Between rounds. What the other sends in the next one comes while this process
 * is still here, so all that the round needs has to be set before. */
static void meet(struct world *world)
{
    enum { LOOKS = 100 };

    world_barrier(world);
    for (int i = 0; i < LOOKS; i++) {
        world_poll(world);
        (void)sched_yield();
    }
}

static void truncated(struct world *world)
{
    static const uint64_t caps[] = {0, 1, 39, 40, 41, 5000, 70000};
    const int *is_scattered = world->arg;
    struct party party;
    uint32_t serial = 0;

    party_open(&party, world);
    party.is_scattered = *is_scattered != 0;
    party.cap = caps[0];
    for (size_t c = 0; c < CHEMPI_ARRAY_LEN(caps); c++) {
        for (uint32_t p = 0; p < world->dev->caps->protocol_count; p++)
            for (size_t i = 0; i < CHEMPI_ARRAY_LEN(sizes); i++)
                if (sizes[i] > caps[c])
                    party_send_surely(&party, partner(&party), serial++,
                                      sizes[i], p, PARTY_SEND_CONSENT);
        party_wait(&party, &party.received, serial);
        party_wait(&party, &party.sent, party.started);
        if (c + 1 < CHEMPI_ARRAY_LEN(caps))
            party.cap = caps[c + 1];
        meet(world);
    }
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(what_exceeds_the_capacity_is_discarded)
{
    int is_scattered = 0;

    cr_assert_eq(
        world_run(device, suite_procs(device, 2), truncated, &is_scattered), 0);
}

DEVICE_TEST(what_exceeds_a_scattered_capacity_is_discarded)
{
    int is_scattered = 1;

    cr_assert_eq(
        world_run(device, suite_procs(device, 2), truncated, &is_scattered), 0);
}

/* Leave everything that can be left, then accept and drop in odd orders. */
static void leave(struct world *world)
{
    enum { MESSAGES = 60 };
    struct party party;
    uint32_t dropped = 0;
    uint32_t serial = 0;

    party_open(&party, world);
    party.policy = PARTY_LEAVE;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            party_send_surely(&party, partner(&party), serial,
                              1 + (uint64_t)(i * 2999),
                              serial % world->dev->caps->protocol_count,
                              i % 2 ? PARTY_SEND_CONSENT : PARTY_SEND_ITER);
            serial++;
        }
        while (party.received + party.announced < serial)
            world_sleep(world);
        /* An announced message is counted again when it is received. */
        party.is_scattered = round % 2 != 0;
        party.announced = 0;
        dropped += party_settle(&party, 3, round >= 2);
        party_wait(&party, &party.received, serial - dropped);
        party_wait(&party, &party.sent, party.started);
        WORLD_CHECK(party.received == serial - dropped);
        party.announced = dropped; /* these will never be received */
        meet(world);
    }
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(messages_left_are_accepted_and_dropped_in_any_order)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), leave, NULL), 0);
}

static void answer_inside(struct world *world)
{
    enum { MESSAGES = 2000 };
    struct party party;

    party_open(&party, world);
    if (world->proc == world->count - 1)
        party.reply = MESSAGES;
    if (world->proc == 0) {
        for (uint32_t i = 0; i < MESSAGES; i++)
            party_send_surely(&party, world->count - 1, i, i % 500, 0,
                              PARTY_SEND);
    }
    if (world->proc == world->count - 1) {
        party_wait(&party, &party.received, MESSAGES);
        WORLD_CHECK(party.replied > 0);
        atomic_store(&world->shared->words[1], party.replied);
        atomic_store(&world->shared->words[0], 1);
    }
    if (world->proc == 0) {
        uint32_t own = party_is_self(&party) ? MESSAGES : 0;

        while (!atomic_load(&world->shared->words[0]) ||
               party.received < own + atomic_load(&world->shared->words[1])) {
            world_poll(world);
            (void)sched_yield();
        }
    }
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(the_sink_may_send_from_inside_an_arrival)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), answer_inside, NULL),
                 0);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void everybody_to_everybody(struct world *world)
{
    enum { MESSAGES = 150 };
    uint32_t random = world->proc + 1;
    struct party party;

    party_open(&party, world);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        for (uint32_t k = 0; k < world->count; k++) {
            uint32_t to = (world->proc + k) % world->count;
            uint64_t len = next_random(&random) % 6000;

            if (i % 16 == 0)
                len *= 20;
            if (world->eps[to])
                party_send_surely(&party, to, i, len,
                                  next_random(&random) %
                                      world->dev->caps->protocol_count,
                                  i % 3 ? PARTY_SEND : PARTY_SEND_CONSENT);
        }
    }
    party_wait(&party, &party.received,
               MESSAGES * (world->count == 1 ? 1 : world->count - 1));
    party_finish(&party);
    WORLD_CHECK(party.failed == 0);
    party_close(&party);
}

DEVICE_TEST(everybody_reaches_everybody_at_once)
{
    uint32_t count = suite_procs(device, 9);

    cr_assert_eq(world_run(device, count, everybody_to_everybody, NULL), 0);
}

/* Many large messages at once, more than a device has slots for. */
static void many_large(struct world *world)
{
    enum { MESSAGES = 14 };
    struct party party;

    party_open(&party, world);
    party.policy = PARTY_LEAVE;
    for (int round = 0; round < 2; round++) {
        uint32_t first = (uint32_t)round * MESSAGES;

        for (uint32_t i = 0; i < MESSAGES; i++)
            party_send_surely(
                &party, partner(&party), first + i, 70000 + i * 150001u,
                world->dev->caps->protocol_count - 1 - i % 2, PARTY_SEND);
        if (round == 0) {
            /* What cannot be left with the sender is received at once. */
            while (party.announced + party.received < MESSAGES)
                world_sleep(world);
            (void)party_settle(&party, 0, true);
        }
        party_wait(&party, &party.received, first + MESSAGES);
        party_wait(&party, &party.sent, party.started);
        party.policy = PARTY_ACCEPT;
        meet(world);
    }
    party_finish(&party);
    WORLD_CHECK(party.failed == 0);
    party_close(&party);
}

DEVICE_TEST(many_large_messages_travel_at_once)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), many_large, NULL),
                 0);
}
