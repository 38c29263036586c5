/* SPDX-License-Identifier: BSD-3-Clause */
/* Device conformance: full, asleep, dying, closing. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "libchempi/devices/registry.h"
#include "tests/conformance/device/suite.h"

/* Wait without touching the device. */
static void wait_word(struct world *world, uint32_t word, uint32_t value)
{
    while (atomic_load(&world->shared->words[word]) < value)
        (void)sched_yield();
}

/* A first message, so that there is a connection. 0 sends, 1 receives. */
static void make_contact(struct party *party, uint32_t serial)
{
    struct world *world = party->world;

    if (world->proc == 0) {
        party_send_surely(party, 1, serial, 5, 1, PARTY_INJECT);
        while (atomic_load(&world->shared->words[1]) == 0) {
            world_poll(world);
            (void)sched_yield();
        }
    } else {
        party_wait(party, &party->received, 1);
        atomic_store(&world->shared->words[1], 1);
    }
}

static void flood(struct world *world, uint64_t len)
{
    enum { LIMIT = 20000 };
    struct party party;
    uint32_t n = 0;

    party_open(&party, world);
    if (world->count > 1)
        make_contact(&party, n++);
    if (world->proc == 0) {
        uint32_t to = world->count - 1;

        while (n < LIMIT &&
               party_send(&party, to, n, len, 1, PARTY_INJECT) == CHEMPI_DONE)
            n++;
        /* Twice refused must not mean twice called. */
        if (n < LIMIT)
            WORLD_CHECK(party_send(&party, to, n, len, 1, PARTY_INJECT) ==
                        -EAGAIN);
        atomic_store(&world->shared->words[2], n);
        atomic_store(&world->shared->words[0], 1);
        if (n < LIMIT) {
            uint32_t more = n + 200;

            party_wait(&party, &party.rooms, 1);
            while (n < more)
                party_send_surely(&party, to, n++, len, 1, PARTY_INJECT);
        }
        atomic_store(&world->shared->words[2], n);
        atomic_store(&world->shared->words[0], 2);
    }
    if (world->proc == world->count - 1) {
        if (world->count > 1)
            wait_word(world, 0, 1);
        while (atomic_load(&world->shared->words[0]) < 2 ||
               party.received < atomic_load(&world->shared->words[2])) {
            world_poll(world);
            (void)sched_yield();
        }
        WORLD_CHECK(party.received == atomic_load(&world->shared->words[2]));
    }
    party_finish(&party);
    party_close(&party);
}

static void flood_short(struct world *world)
{
    flood(world, 8);
}

static void flood_eager(struct world *world)
{
    uint64_t max = 3000;

    flood(world, max);
}

DEVICE_TEST(short_messages_are_refused_when_full_and_then_called_for)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), flood_short, NULL),
                 0);
}

DEVICE_TEST(eager_messages_are_refused_when_full_and_then_called_for)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), flood_eager, NULL),
                 0);
}

/* Both fill each other's rings while each waits for the other's answers. */
static void cross_flood(struct world *world)
{
    enum { MESSAGES = 3000 };
    struct party party;
    uint32_t to = world->count - 1 - world->proc;

    party_open(&party, world);
    for (uint32_t i = 0; i < MESSAGES; i++)
        party_send_surely(&party, to, i, i % 9 == 0 ? 20000 : i % 3000,
                          i % world->dev->caps->protocol_count, PARTY_SEND);
    party_wait(&party, &party.received, MESSAGES);
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(two_floods_in_opposite_directions_do_not_lock_up)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), cross_flood, NULL),
                 0);
}

/* Each message is sent only after the last one came back, asleep between. */
static void sleepers(struct world *world)
{
    enum { ROUNDS = 4000 };
    uint32_t next = (world->proc + 1) % world->count;
    struct party party;

    party_open(&party, world);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (world->proc == 0)
            party_send_surely(&party, next, i, i % 64, 0, PARTY_SEND);
        party_wait(&party, &party.received, i + 1);
        if (world->proc != 0)
            party_send_surely(&party, next, i, i % 64, 0, PARTY_SEND);
    }
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(no_wakeup_is_lost_between_two)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), sleepers, NULL), 0);
}

DEVICE_TEST(no_wakeup_is_lost_in_a_ring_of_seven)
{
    cr_assert_eq(world_run(device, suite_procs(device, 7), sleepers, NULL), 0);
}

/* More peers than rings that are polled, each in turn the busiest. */
static void turns(struct world *world)
{
    enum { ROUNDS = 1200 };
    struct party party;

    party_open(&party, world);
    if (world->proc == 0) {
        uint32_t total = 0;

        for (uint32_t peer = 1; peer < world->count; peer++) {
            for (uint32_t i = 0; i < ROUNDS; i++) {
                party_send_surely(&party, peer, i, 4, 0, PARTY_INJECT);
                party_wait(&party, &party.received, ++total);
            }
        }
    } else {
        for (uint32_t i = 0; i < ROUNDS; i++) {
            party_wait(&party, &party.received, i + 1);
            party_send_surely(&party, 0, i, 4, 0, PARTY_INJECT);
        }
    }
    party_finish(&party);
    party_close(&party);
}

DEVICE_TEST(peers_that_talk_in_turn_are_all_heard)
{
    if (suite_procs(device, 2) == 1)
        return;
    cr_assert_eq(world_run(device, 8, turns, NULL), 0);
}

/* The sender leaves before the receiver looks: no more than what finds room
 * where memory for frames is scarce. */
static void leave_early(struct world *world)
{
    enum { MESSAGES = 5 };
    struct party party;

    party_open(&party, world);
    make_contact(&party, 0);
    if (world->proc == 0) {
        for (uint32_t i = 1; i < MESSAGES; i++)
            party_send_surely(&party, 1, i, 100 * i, 0, PARTY_INJECT);
        while (!world->dev->ops->is_drained(world->dev))
            world_sleep(world);
        party_close(&party);
        atomic_store(&world->shared->words[2], 1);
        return;
    }
    wait_word(world, 2, 1);
    party.expects_loss = true; /* a connection may be seen to close */
    party_wait(&party, &party.received, MESSAGES);
    WORLD_CHECK(party.failed == 0);
    party_close(&party);
}

DEVICE_TEST(a_drained_process_may_leave)
{
    if (suite_procs(device, 2) == 1)
        return;
    cr_assert_eq(world_run(device, 2, leave_early, NULL), 0);
}

/* Process 0 dies with its hands full; the others go on. */
static void die(struct world *world)
{
    enum { FIRST = 3, MESSAGES = 400 };
    uint32_t other = world->proc == 1 ? 2 : 1;
    struct party party;

    party_open(&party, world);
    party.expects_loss = true;
    party.policy = world->proc == 0 ? PARTY_LEAVE : PARTY_ACCEPT;
    for (uint32_t i = 0; i < FIRST; i++) {
        for (uint32_t to = 0; to < world->count; to++) {
            if (to != world->proc)
                party_send_surely(&party, to, i, 50000, 1, PARTY_SEND_CONSENT);
        }
    }
    if (world->proc == 0) {
        party_wait(&party, &party.announced, 2 * FIRST);
        (void)raise(SIGKILL);
    }
    for (uint32_t i = FIRST; i < MESSAGES; i++) {
        party_send_surely(&party, other, i, i % 5000, i % 2, PARTY_SEND);
        (void)party_send(&party, 0, i, 10, 0, PARTY_INJECT);
        world_poll(world);
    }
    while (!party_has_all(&party, other, MESSAGES))
        world_sleep(world);
    (void)atomic_fetch_add(&world->shared->words[3], 1);
    while (atomic_load(&world->shared->words[3]) < 2) {
        world_poll(world);
        (void)sched_yield();
    }
    world_close(world);
}

DEVICE_TEST(the_death_of_one_does_not_stop_the_others)
{
    int statuses[3];

    if (suite_procs(device, 2) == 1)
        return;
    (void)world_run_status(device, 3, die, NULL, statuses);
    cr_assert_eq(statuses[1], 0);
    cr_assert_eq(statuses[2], 0);
}

static void close_early(struct world *world)
{
    struct party party;
    uint32_t to = world->count - 1 - world->proc;

    party_open(&party, world);
    party.policy = PARTY_LEAVE;
    party.expects_loss = true;
    for (uint32_t i = 0; i < 40; i++)
        (void)party_send(&party, to, i, 1u << (i % 18),
                         i % world->dev->caps->protocol_count,
                         i % 2 ? PARTY_SEND_CONSENT : PARTY_SEND);
    for (uint32_t i = 0; i < 100; i++)
        world_poll(world);
    world_close(world);
}

DEVICE_TEST(a_device_may_be_closed_with_work_pending)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), close_early, NULL),
                 0);
}

static void connect_twice(struct world *world)
{
    uint32_t to = world->count - 1 - world->proc;
    struct chempi_ep *ep = NULL;
    struct chempi_err err = {.text = ""};
    struct party party;

    party_open(&party, world);
    WORLD_CHECK(world->dev->ops->connect(world->dev, to, &ep, &err) == 0);
    WORLD_CHECK(ep == world->eps[to]);
    WORLD_CHECK(ep->proc == to && ep->dev == world->dev);
    ep = NULL;
    WORLD_CHECK(world->dev->ops->connect(world->dev, 1000, &ep, &err) < 0);
    WORLD_CHECK(ep == NULL && err.text[0] != '\0');
    WORLD_CHECK(world->dev->ops->is_drained(world->dev));
    world_barrier(world);
    party_close(&party);
}

DEVICE_TEST(a_peer_has_one_endpoint)
{
    cr_assert_eq(world_run(device, suite_procs(device, 2), connect_twice, NULL),
                 0);
}

DEVICE_TEST(the_table_of_operations_is_complete)
{
    const struct chempi_dev_ops *ops = chempi_registry_find(device);

    cr_assert_not_null(ops);
    cr_assert_eq(ops->abi, CHEMPI_DEV_ABI);
    cr_assert(ops->open && ops->card && ops->connect && ops->card_arrived);
    cr_assert(ops->inject && ops->send && ops->accept && ops->drop);
    cr_assert(ops->progress && ops->is_ready && ops->is_drained);
    ops->close(NULL);
}
