/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that share a device; see world.h. */
#define _GNU_SOURCE /* memfd_create, eventfd */
#include "tests/conformance/device/world.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/control/client.h"
#include "libchempi/devices/registry.h"

#define LIMIT_S 300u /* for what would never end */

static uint8_t secret[CHEMPI_JOB_SECRET_BYTES] = {7, 7, 7};

/* What the parent makes before it forks. */
struct setup {
    const char *device;
    bool is_one_node;
    int region_fds[WORLD_MAX];
    int wake_fds[WORLD_MAX];
    uint32_t node_of_proc[WORLD_MAX];
    uint32_t local_rank_of_proc[WORLD_MAX];
    const char *node_names[WORLD_MAX];
};

static struct setup setup;

void world_check(bool is_true, const char *what, const char *file, int line)
{
    if (is_true)
        return;
    (void)fprintf(stderr, "%s, process %ld: %s:%d: not true: %s\n",
                  setup.device, (long)getpid(), file, line, what);
    _exit(1);
}

static int make_region(uint32_t local_size)
{
    uint64_t len = chempi_region_reserved(local_size);
    struct chempi_region_header header = {
        .magic = CHEMPI_REGION_MAGIC,
        .version = CHEMPI_REGION_VERSION,
        .local_size = local_size,
    };
    int fd = memfd_create("world", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (posix_fallocate(fd, 0, (off_t)len) != 0 ||
        pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool make_setup(const char *device, uint32_t count)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};

    setup.device = device;
    setup.is_one_node =
        strcmp(device, "tcp") != 0 && strcmp(device, "scivia") != 0;
    for (uint32_t i = 0; i < count; i++) {
        setup.node_of_proc[i] = setup.is_one_node ? 0 : i;
        setup.local_rank_of_proc[i] = setup.is_one_node ? i : 0;
        setup.node_names[i] = names[i % CHEMPI_ARRAY_LEN(names)];
        setup.wake_fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        setup.region_fds[i] = -1;
        if (setup.wake_fds[i] < 0)
            return false;
        if (i == 0 || !setup.is_one_node)
            setup.region_fds[i] = make_region(setup.is_one_node ? count : 1);
        else
            setup.region_fds[i] = dup(setup.region_fds[0]);
        if (setup.region_fds[i] < 0)
            return false;
    }
    return true;
}

static void drop_setup(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)close(setup.wake_fds[i]);
        (void)close(setup.region_fds[i]);
    }
}

static void child(struct world *world)
{
    struct chempi_services *services = &world->services;
    uint32_t me = world->proc;
    struct chempi_err err;

    (void)alarm(LIMIT_S);
    services->job_id = "world";
    services->secret = secret;
    services->proc = me;
    services->proc_count = world->count;
    services->node = setup.node_of_proc[me];
    services->node_count = setup.is_one_node ? 1 : world->count;
    services->local_rank = setup.local_rank_of_proc[me];
    services->local_size = setup.is_one_node ? world->count : 1;
    services->node_of_proc = setup.node_of_proc;
    services->local_rank_of_proc = setup.local_rank_of_proc;
    services->node_names = setup.node_names;
    services->wake_fds =
        setup.is_one_node ? setup.wake_fds : &setup.wake_fds[me];
    if (chempi_region_open(setup.region_fds[me], services->local_size,
                           &services->region, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        _exit(2);
    }
    services->wakes = chempi_region_wakes(services->region);
    services->is_wake_registered =
        !chempi_region_is_fenced(services->region) && chempi_wake_register();
}

int world_run_status(const char *device, uint32_t count, world_fn *fn,
                     void *arg, int *statuses)
{
    struct world world = {.device = device, .count = count, .arg = arg};
    pid_t pids[WORLD_MAX];
    int bad = 0;

    if (count > WORLD_MAX || !make_setup(device, count))
        return -1;
    world.shared = mmap(NULL, sizeof(*world.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world.shared == MAP_FAILED)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            world.proc = i;
            child(&world);
            fn(&world);
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int status = -1;

        while (pids[i] > 0 && waitpid(pids[i], &status, 0) < 0 &&
               errno == EINTR)
            ;
        if (statuses)
            statuses[i] = status;
        bad += status != 0;
    }
    (void)munmap(world.shared, sizeof(*world.shared));
    drop_setup(count);
    return bad;
}

int world_run(const char *device, uint32_t count, world_fn *fn, void *arg)
{
    return world_run_status(device, count, fn, arg, NULL);
}

/* The wake descriptor is only there to end a sleep. */
static void drain_wake(struct chempi_poll_item *item, uint32_t events)
{
    uint64_t count;

    (void)events;
    while (read(item->fd, &count, sizeof(count)) > 0)
        ;
}

static void open_pollset(struct world *world)
{
    struct chempi_services *services = &world->services;

    WORLD_CHECK(chempi_pollset_create(&services->pollset) == 0);
    world->wake_item = (struct chempi_poll_item){
        .fd = services->wake_fds[services->local_rank],
        .ready = drain_wake,
    };
    WORLD_CHECK(
        chempi_pollset_add(services->pollset, &world->wake_item, EPOLLIN) == 0);
}

static void exchange_cards(struct world *world)
{
    const struct chempi_dev_ops *ops = world->dev->ops;
    struct world_shared *shared = world->shared;
    struct chempi_err err = {.text = ""};
    uint32_t me = world->proc;

    shared->cards[me].len = WORLD_CARD_MAX;
    WORLD_CHECK(ops->card(world->dev, shared->cards[me].bytes,
                          &shared->cards[me].len) == 0);
    atomic_store(&shared->cards[me].is_ready, 1);
    for (uint32_t i = 0; i < world->count; i++) {
        if (i == me)
            continue;
        while (!atomic_load(&shared->cards[i].is_ready))
            (void)sched_yield();
        WORLD_CHECK(ops->card_arrived(world->eps[i], shared->cards[i].bytes,
                                      shared->cards[i].len, &err) == 0);
    }
}

/* As a process of MPI has them: what is said in the environment. */
static void load_settings(struct world *world, const struct chempi_dev_ops *ops)
{
    const struct chempi_settings settings = {.table = ops->panel->settings,
                                             .values = world->settings,
                                             .count =
                                                 ops->panel->setting_count};
    struct chempi_err err = {.text = ""};

    WORLD_CHECK(settings.count <= WORLD_SETTINGS_MAX);
    for (uint32_t i = 0; i < settings.count; i++)
        world->settings[i] = settings.table[i].initial;
    WORLD_CHECK(chempi_setting_load(&settings, &err) == 0);
}

static struct chempi_dev *open_in(const struct chempi_dev_ops *ops,
                                  const struct chempi_dev_params *params)
{
    struct chempi_err err = {.text = ""};
    struct chempi_dev *dev = NULL;
    int rc = ops->open(params, &dev, &err);

    if (rc < 0)
        (void)fprintf(stderr, "open: %s\n", err.text);
    WORLD_CHECK(rc == 0);
    return dev;
}

/* Where the environment has LANES, in the last one of them. In the first one,
 * which is open meanwhile, nothing may happen: that would be no party's. */
static void open_devices(struct world *world, const struct chempi_dev_ops *ops,
                         struct chempi_dev_params params)
{
    const char *lanes = getenv("LANES");
    void *sink_arg = params.sink_arg;

    if (!lanes) {
        world->dev = open_in(ops, &params);
        return;
    }
    params.lanes = (uint32_t)atoi(lanes);
    params.sink_arg = NULL;
    world->first = open_in(ops, &params);
    params.lane = params.lanes - 1;
    params.first = world->first;
    params.sink_arg = sink_arg;
    world->dev = open_in(ops, &params);
}

void world_open(struct world *world, const struct chempi_sink *sink,
                void *sink_arg)
{
    const struct chempi_dev_ops *ops = chempi_registry_find(world->device);
    const struct chempi_dev_params params = {
        .services = &world->services,
        .sink = sink,
        .sink_arg = sink_arg,
        .settings = world->settings,
    };
    struct chempi_err err = {.text = ""};
    uint32_t flags;

    WORLD_CHECK(ops != NULL);
    load_settings(world, ops);
    open_pollset(world);
    open_devices(world, ops, params);
    flags = world->dev->caps->flags;
    world->has_fds = (flags & CHEMPI_DEV_HAS_FDS) != 0;
    for (uint32_t i = 0; i < world->count; i++) {
        if ((i == world->proc) == ((flags & CHEMPI_DEV_SELF) != 0))
            WORLD_CHECK(ops->connect(world->dev, i, &world->eps[i], &err) == 0);
    }
    if (flags & CHEMPI_DEV_NEEDS_CARD)
        exchange_cards(world);
}

void world_close(struct world *world)
{
    world->dev->ops->close(world->dev);
    if (world->first)
        world->first->ops->close(world->first);
    chempi_pollset_destroy(world->services.pollset);
    chempi_region_close(world->services.region);
}

static int look(struct world *world, int timeout_ms)
{
    int events = 0;

    if (world->has_fds &&
        chempi_pollset_collect(world->services.pollset, timeout_ms) > 0)
        events += chempi_pollset_dispatch(world->services.pollset);
    if (world->first)
        events += world->first->ops->progress(world->first);
    return events + world->dev->ops->progress(world->dev);
}

void world_poll(struct world *world)
{
    if (look(world, 0) == 0)
        CHEMPI_CPU_RELAX();
}

void world_sleep(struct world *world)
{
    struct chempi_wake *wake =
        &world->services.wakes[world->services.local_rank];
    int limit_ms;

    if (look(world, 0) > 0)
        return;
    limit_ms =
        chempi_wake_prepare(wake, world->has_fds ? CHEMPI_WAKE_ASLEEP_EPOLL
                                                 : CHEMPI_WAKE_ASLEEP_FUTEX);
    if (world->dev->ops->is_ready(world->dev)) {
        chempi_wake_cancel(wake);
    } else if (world->has_fds) {
        (void)look(world, limit_ms);
        chempi_wake_cancel(wake);
    } else {
        chempi_wake_sleep(wake, limit_ms);
    }
}

void world_barrier(struct world *world)
{
    uint32_t n = world->count;
    uint32_t before = atomic_fetch_add(&world->shared->entered, 1);
    uint32_t goal = (before / n + 1) * n;

    while (atomic_load(&world->shared->entered) < goal) {
        world_poll(world);
        (void)sched_yield();
    }
}
