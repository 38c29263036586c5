/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is registered: what is heard of lost pages, which registrations
 * are kept, which go first, and how a share is divided and reported.
 */
#define _GNU_SOURCE /* mremap, MADV_DONTNEED */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libchempi/services/registration/memory_hooks.h"
#include "libchempi/services/registration/regcache.h"

#define PAGE 4096u
#define REGIONS 64u

/* A card without memory of its own: it counts. */
struct card {
    struct chempi_memory_user user;
    struct chempi_regcache cache;
    uint64_t budget;
    uint64_t bytes;
    size_t len_of[REGIONS];
    uint32_t entered;
    uint32_t left;
    uint32_t lost;
};

static int enter(void *arg, uintptr_t start, size_t len, uint32_t access,
                 uint32_t *handle)
{
    struct card *card = arg;

    (void)start;
    (void)access;
    if (card->bytes + len > card->budget)
        return -ENOSPC;
    card->bytes += len;
    *handle = card->entered++ % REGIONS;
    card->len_of[*handle] = len;
    return 0;
}

static void leave(void *arg, uint32_t handle)
{
    struct card *card = arg;

    card->bytes -= card->len_of[handle];
    card->left++;
}

static void lost(void *arg, uint32_t handle)
{
    struct card *card = arg;

    (void)handle;
    card->lost++;
}

static uint64_t room(void *arg)
{
    const struct card *card = arg;

    return card->budget - card->bytes;
}

static const struct chempi_regcache_ops ops = {
    .enter = enter, .leave = leave, .lost = lost, .room = room};

static struct card *card_of(struct chempi_memory_user *user)
{
    return CHEMPI_CONTAINER_OF(user, struct card, user);
}

static void gone(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    chempi_regcache_gone(&card_of(user)->cache, start, end);
}

static void held(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    chempi_regcache_held(&card_of(user)->cache, start, end);
}

static void share(struct chempi_memory_user *user)
{
    card_of(user)->budget = user->share;
}

static const struct chempi_memory_events events = {
    .gone = gone, .held = held, .share = share};

static struct chempi_memory *memory;
static struct card card;

static void set_up(uint64_t budget)
{
    card = (struct card){.user = {.events = &events, .wanted = budget}};
    cr_assert_eq(chempi_memory_create(budget, &memory), 0);
    chempi_regcache_init(&card.cache, &ops, &card, memory, REGIONS);
    chempi_memory_join(memory, &card.user);
}

static void tear_down(void)
{
    chempi_regcache_fini(&card.cache);
    cr_expect_eq(card.entered, card.left);
    cr_expect_eq(card.bytes, 0);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_USER], 0);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 0);
    chempi_memory_leave(memory, &card.user);
    chempi_memory_destroy(memory);
}

static char *map(void *where, size_t pages)
{
    char *at =
        mmap(where, pages * PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

    cr_assert_neq(at, MAP_FAILED);
    return at;
}

/* Use pages [first, first + count) of `at` once; was it there? */
static bool use(const char *at, size_t first, size_t count)
{
    uint64_t hits = card.cache.counters.hits;
    struct chempi_registration *region =
        chempi_regcache_get(&card.cache, at + first * PAGE, count * PAGE, 0);

    cr_assert_not_null(region);
    chempi_regcache_put(&card.cache, region);
    return card.cache.counters.hits > hits;
}

Test(memory, a_registration_is_found_again_and_so_are_its_parts)
{
    char *at = map(NULL, 16);

    set_up(1 << 20);
    cr_expect_not(use(at, 0, 8));
    cr_expect(use(at, 0, 8));
    cr_expect(use(at, 3, 2));
    cr_expect_not(use(at, 4, 8));
    cr_expect_eq(card.entered, 2);
    tear_down();
    cr_assert_eq(munmap(at, 16 * PAGE), 0);
}

Test(memory, pages_that_were_unmapped_are_not_found_again)
{
    char *at = map(NULL, 16);

    set_up(1 << 20);
    (void)use(at, 0, 16);
    cr_assert_eq(munmap(at + 4 * PAGE, PAGE), 0);
    (void)map(at + 4 * PAGE, 1);
    cr_expect_not(use(at, 0, 16));
    cr_expect(use(at, 0, 16));
    cr_expect_eq(card.cache.counters.invalidations, 1);
    (void)map(at, 16); /* over it */
    cr_expect_not(use(at, 0, 16));
    cr_expect_eq(card.cache.counters.invalidations, 2);
    tear_down();
    cr_assert_eq(munmap(at, 16 * PAGE), 0);
}

Test(memory, pages_that_were_moved_are_found_neither_here_nor_there)
{
    char *at = map(NULL, 16);
    char *there = map(NULL, 16);

    set_up(1 << 20);
    (void)use(at, 0, 16);
    cr_assert_eq(
        mremap(at, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there),
        there);
    (void)map(at, 16);
    cr_expect_not(use(at, 0, 16));
    cr_expect_not(use(there, 0, 16));
    /* And there they are watched again. */
    cr_assert_eq(munmap(there, 16 * PAGE), 0);
    (void)map(there, 16);
    cr_expect_not(use(there, 0, 16));
    cr_expect(use(at, 0, 16));
    tear_down();
    cr_assert_eq(munmap(at, 16 * PAGE), 0);
    cr_assert_eq(munmap(there, 16 * PAGE), 0);
}

Test(memory, pages_that_were_emptied_are_not_found_again)
{
    char *at = map(NULL, 16);

    set_up(1 << 20);
    at[0] = 1;
    (void)use(at, 0, 16);
    cr_assert_eq(madvise(at, 16 * PAGE, MADV_DONTNEED), 0);
    cr_expect_eq(at[0], 0); /* no fault is held up */
    cr_expect_not(use(at, 0, 16));
    tear_down();
    cr_assert_eq(munmap(at, 16 * PAGE), 0);
}

Test(memory, freed_memory_that_malloc_gives_back_is_not_found_again)
{
    const size_t len = 1 << 20;
    char *at;

    /* Mapped each time; a sanitizer's malloc keeps what was freed. */
    if (mallopt(M_MMAP_THRESHOLD, 65536) != 1)
        return;
    set_up(8 << 20);
    for (int i = 0; i < 5; i++) {
        at = malloc(len);
        cr_assert_not_null(at);
        cr_expect_not(use(at, 0, len / PAGE), "round %d", i);
        cr_expect(use(at, 0, len / PAGE));
        free(at);
    }
    tear_down();
}

Test(memory, what_is_lost_in_use_ends_with_its_last_user)
{
    char *at = map(NULL, 8);
    struct chempi_registration *region;
    struct chempi_registration *other;

    set_up(1 << 20);
    region = chempi_regcache_get(&card.cache, at, 8 * PAGE, 0);
    (void)map(at + 4 * PAGE, 4);
    other = chempi_regcache_get(&card.cache, at, 8 * PAGE, 0);
    cr_expect_neq(other, region);
    cr_expect_eq(card.lost, 1);
    cr_expect_eq(card.left, 0);
    chempi_regcache_put(&card.cache, region);
    cr_expect_eq(card.left, 1);
    chempi_regcache_put(&card.cache, other);
    /* The pages that both had are still watched for the other. */
    cr_expect(use(at, 0, 8));
    (void)map(at, 8);
    cr_expect_not(use(at, 0, 8));
    tear_down();
    cr_assert_eq(munmap(at, 8 * PAGE), 0);
}

Test(memory, overlapping_registrations_are_watched_each)
{
    char *at = map(NULL, 16);

    set_up(14 * PAGE);
    (void)use(at, 0, 8);
    (void)use(at, 0, 8);
    (void)use(at, 6, 6);           /* pages 6 to 11 */
    cr_expect_not(use(at, 12, 4)); /* 6 to 11 went: it was used once */
    cr_expect_eq(card.cache.counters.evictions, 1);
    cr_assert_eq(munmap(at + 7 * PAGE, PAGE), 0);
    (void)map(at + 7 * PAGE, 1);
    cr_expect_not(use(at, 0, 8));
    tear_down();
    cr_assert_eq(munmap(at, 16 * PAGE), 0);
}

Test(memory, a_forked_child_neither_waits_nor_is_watched)
{
    char *at = map(NULL, 8);
    int status = -1;
    pid_t pid;

    set_up(1 << 20);
    (void)use(at, 0, 8);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        (void)alarm(120);
        (void)munmap(at, 8 * PAGE);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    cr_expect(use(at, 0, 8)); /* ours are as they were */
    pid = fork();
    if (pid == 0) {
        (void)alarm(120);
        (void)pause();
        _exit(1);
    }
    /* A child that lives on holds nothing up. */
    tear_down();
    cr_assert_eq(munmap(at, 8 * PAGE), 0);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
}

Test(memory, more_reports_than_can_be_kept_mean_that_all_is_gone)
{
    char *at = map(NULL, 2048);

    set_up(16 << 20);
    (void)use(at, 0, 2048);
    for (size_t i = 1; i < 2048; i += 2)
        (void)map(at + i * PAGE, 1);
    cr_expect_not(use(at, 0, 1));
    cr_expect(use(at, 0, 1));
    tear_down();
    cr_assert_eq(munmap(at, 2048 * PAGE), 0);
}

Test(memory, without_a_watch_nothing_is_kept)
{
    char *at = map(NULL, 8);
    struct chempi_registration *region;

    set_up(1 << 20);
    chempi_regcache_fini(&card.cache);
    chempi_regcache_init(&card.cache, &ops, &card, NULL, REGIONS);
    cr_expect_not(use(at, 0, 8));
    cr_expect_eq(card.left, 1);
    region = chempi_regcache_get(&card.cache, at, 8 * PAGE, 0);
    cr_expect(use(at, 0, 8)); /* while it is in use, it is shared */
    chempi_regcache_put(&card.cache, region);
    cr_expect_eq(card.left, 2);
    cr_expect_eq(card.cache.counters.uncached, 2);
    tear_down();
    cr_assert_eq(munmap(at, 8 * PAGE), 0);
}

Test(memory, where_memory_cannot_be_watched_nothing_is_kept)
{
    char *at = map(NULL, 8);
    struct rlimit files;
    struct rlimit none;

    set_up(1 << 20);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_expect_not(use(at, 0, 8));
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    cr_expect_not(use(at, 0, 8)); /* it is not tried again */
    cr_expect_eq(card.left, 2);
    cr_expect_eq(card.cache.counters.uncached, 2);
    tear_down();
    cr_assert_eq(munmap(at, 8 * PAGE), 0);
}

Test(memory, what_is_used_rarely_goes_first)
{
    char *at = map(NULL, 48);

    set_up(12 * PAGE);
    for (int i = 0; i < 4; i++) {
        (void)use(at, 0, 4); /* often */
        (void)use(at, 4, 4); /* often */
    }
    /* Buffers that are used once each come by: they replace each other. */
    for (size_t k = 8; k < 32; k += 4)
        cr_expect_not(use(at, k, 4));
    cr_expect(use(at, 0, 4));
    cr_expect(use(at, 4, 4));
    /* What was used often, but long ago, goes in the end. */
    for (int i = 0; i < 1000; i++)
        (void)use(at, 0, 4);
    cr_expect_not(use(at, 32, 4));
    cr_expect_not(use(at, 36, 4));
    cr_expect_not(use(at, 4, 4));
    cr_expect(use(at, 0, 4));
    tear_down();
    cr_assert_eq(munmap(at, 48 * PAGE), 0);
}

Test(memory, of_more_buffers_in_turn_than_fit_some_stay)
{
    char *at = map(NULL, 64);
    unsigned found = 0;

    set_up(8 * PAGE);
    for (unsigned i = 0; i < 12 * 20; i++)
        found += use(at, i % 12, 1);
    /* Keeping those used last would find none. */
    cr_expect_gt(found, 12 * 20 / 3, "%u", found);
    /* Others come for good: they take the place. */
    for (unsigned i = 0; i < 6 * 100; i++)
        (void)use(at, 40 + i % 6, 1);
    for (unsigned i = 0; i < 6; i++)
        cr_expect(use(at, 40 + i, 1));
    tear_down();
    cr_assert_eq(munmap(at, 64 * PAGE), 0);
}

Test(memory, what_was_registered_before_a_persistent_request_is_its_memory)
{
    char *at = map(NULL, 4);

    set_up(8 * PAGE);
    (void)use(at, 0, 4);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_USER], 4 * PAGE);
    chempi_memory_hold(memory, at + 100, PAGE);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 4 * PAGE);
    chempi_memory_release(memory, at + 100, PAGE);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 0);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_USER], 4 * PAGE);
    tear_down();
    cr_assert_eq(munmap(at, 4 * PAGE), 0);
}

Test(memory, memory_of_persistent_requests_goes_last)
{
    char *at = map(NULL, 32);

    set_up(8 * PAGE);
    chempi_memory_hold(memory, at + 100, 3 * PAGE);
    chempi_memory_hold(memory, at + 100, 3 * PAGE);
    (void)use(at, 0, 4);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 4 * PAGE);
    for (int i = 0; i < 10; i++) {
        (void)use(at, 4, 4);
        (void)use(at, 8, 4);
    }
    cr_expect(use(at, 0, 4));
    (void)use(at, 16, 8); /* needs all */
    cr_expect_not(use(at, 0, 4));
    chempi_memory_release(memory, at + 100, 3 * PAGE);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 4 * PAGE);
    chempi_memory_release(memory, at + 100, 3 * PAGE);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_PERSISTENT], 0);
    cr_expect_eq(card.cache.bytes[CHEMPI_MEMORY_USER], 4 * PAGE);
    chempi_memory_release(memory, at, PAGE); /* never held */
    tear_down();
    cr_assert_eq(munmap(at, 32 * PAGE), 0);
}

Test(memory, memory_in_use_never_goes)
{
    char *at = map(NULL, 32);
    struct chempi_registration *region;

    set_up(8 * PAGE);
    region = chempi_regcache_get(&card.cache, at, 6 * PAGE, 0);
    cr_assert_not_null(region);
    cr_expect_null(
        chempi_regcache_get(&card.cache, at + 8 * PAGE, 4 * PAGE, 0));
    cr_expect_eq(card.cache.counters.denied, 1);
    (void)use(at, 8, 2);
    /* What cannot be granted does not drive out what is idle. */
    cr_expect_null(
        chempi_regcache_get(&card.cache, at + 12 * PAGE, 4 * PAGE, 0));
    cr_expect(use(at, 8, 2));
    cr_expect_not(chempi_regcache_evict(&card.cache) &&
                  chempi_regcache_evict(&card.cache));
    chempi_regcache_put(&card.cache, region);
    cr_expect(use(at, 0, 6));
    tear_down();
    cr_assert_eq(munmap(at, 32 * PAGE), 0);
}

static void count(void *arg)
{
    ++*(unsigned *)arg;
}

Test(memory, changes_that_matter_are_told)
{
    struct chempi_memory_state state;
    unsigned told = 0;

    set_up(16 << 20);
    chempi_memory_on_change(memory, count, &told);
    chempi_memory_used(memory, &card.user, 4096);
    cr_expect_eq(told, 0); /* less than a sixteenth */
    chempi_memory_used(memory, &card.user, 2 << 20);
    cr_expect_eq(told, 1);
    chempi_memory_set_share(memory, 1 << 20);
    cr_expect_eq(told, 2);
    cr_expect_eq(card.budget, 1 << 20);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.share, 1 << 20);
    cr_expect_eq(state.held, 2 << 20);
    /* What is still to be given back is told in each step. */
    chempi_memory_used(memory, &card.user, (2 << 20) - 4096);
    cr_expect_eq(told, 3);
    chempi_memory_used(memory, &card.user, 1 << 20);
    cr_expect_eq(told, 4);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.held, 1 << 20);
    card.user.wanted = 8192; /* more than that it does not keep */
    chempi_memory_used(memory, &card.user, 0);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.held, 8192);
    tear_down();
}

Test(memory, what_is_needed_is_told_when_it_changes_and_always_held)
{
    struct chempi_memory_state state;
    unsigned told = 0;

    set_up(16 << 20);
    chempi_memory_on_change(memory, count, &told);
    card.user.needed = 8192;
    chempi_memory_used(memory, &card.user, 0);
    cr_expect_eq(told, 1);
    chempi_memory_used(memory, &card.user, 0);
    cr_expect_eq(told, 1);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.needed, 8192);
    chempi_memory_used(memory, &card.user, 8192);
    chempi_memory_set_share(memory, 0);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.held, 8192);
    tear_down();
}

/* It may be somebody else's by now. */
Test(memory, what_was_told_as_not_held_must_be_granted_again)
{
    struct chempi_memory_state state;
    struct card other = {.user = {.events = &events, .wanted = 4 << 20}};

    set_up(16 << 20);
    card.user.wanted = 1 << 20;
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.held, 1 << 20);
    chempi_memory_told(memory, &state);
    chempi_regcache_init(&other.cache, &ops, &other, memory, REGIONS);
    chempi_memory_join(memory, &other.user);
    chempi_memory_state(memory, &state);
    cr_expect_eq(state.wanted, 5 << 20);
    cr_expect_eq(state.held, 1 << 20);
    cr_expect_eq(card.budget + other.budget, 1 << 20);
    chempi_memory_leave(memory, &other.user);
    tear_down();
}

Test(memory, each_device_has_first_what_it_needs)
{
    struct card other = {.user = {.events = &events, .needed = 4 * PAGE}};

    set_up(10 * PAGE);
    chempi_regcache_init(&other.cache, &ops, &other, memory, REGIONS);
    chempi_memory_join(memory, &other.user);
    cr_expect_eq(card.budget, 3 * PAGE);
    cr_expect_eq(other.budget, 7 * PAGE);
    chempi_memory_set_share(memory, 4 * PAGE); /* no more than that */
    cr_expect_eq(card.budget, 0);
    cr_expect_eq(other.budget, 4 * PAGE);
    chempi_memory_set_share(memory, 2 * PAGE); /* too little: halves */
    cr_expect_eq(card.budget, PAGE);
    cr_expect_eq(other.budget, PAGE);
    chempi_memory_leave(memory, &other.user);
    tear_down();
}

Test(memory, two_devices_have_half_each)
{
    struct card other = {.user = {.events = &events}};

    set_up(10 * PAGE);
    chempi_regcache_init(&other.cache, &ops, &other, memory, REGIONS);
    chempi_memory_join(memory, &other.user);
    cr_expect_eq(card.budget, 5 * PAGE);
    cr_expect_eq(other.budget, 5 * PAGE);
    chempi_memory_leave(memory, &other.user);
    cr_expect_eq(card.budget, 10 * PAGE);
    tear_down();
}
