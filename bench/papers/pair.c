/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes with connected adapters; see pair.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, sched_setaffinity */
#include "bench/papers/pair.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

#define LIMIT_S 120 /* of the whole program */
#define PAGE 4096u
#define LOOKS 2000u

void pair_die(const struct pair *pair, const char *what)
{
    const char *words =
        pair->adapter ? chempi_adapter_words(pair->adapter)->text : "";

    (void)fprintf(stderr, "papers: process %d: %s%s%s\n", pair->rank, what,
                  *words ? ": " : "", words);
    _exit(1); /* the other one sees our end */
}

void pair_check(const struct pair *pair, int rc)
{
    if (rc < 0)
        pair_die(pair, "a call failed");
}

void *pair_memory(const struct pair *pair, size_t len)
{
    size_t whole = (len + PAGE - 1) / PAGE * PAGE;
    void *memory = aligned_alloc(PAGE, whole);

    if (!memory)
        pair_die(pair, "out of memory");
    return memset(memory, 3, whole);
}

void pair_relax(uint32_t *looks)
{
    if (++*looks % LOOKS == 0)
        (void)sched_yield(); /* the other one may need this processor */
}

static void down(void *arg, struct chempi_adapter_link *link, bool is_clean,
                 int status)
{
    (void)link;
    (void)status;
    if (!is_clean)
        pair_die(arg, "the other process has ended");
}

static const struct chempi_adapter_events events = {.down = down};

static void serve(struct pair *pair)
{
    struct pollfd item = {.fd = chempi_adapter_fd(pair->adapter),
                          .events = POLLIN};

    (void)poll(&item, 1, 1); /* interrupted or not: look */
    (void)chempi_adapter_service(pair->adapter);
}

void pair_barrier(struct pair *pair)
{
    struct board *board = pair->board;
    uint32_t turn = atomic_fetch_add(&board->arrived[pair->rank], 1) + 1;

    while ((int32_t)(atomic_load(&board->arrived[!pair->rank]) - turn) < 0)
        serve(pair);
}

/* A processor for each, where there are two: else they may share one while
 * the other does nothing. */
static void settle(const struct pair *pair)
{
    int wanted = pair->rank;
    cpu_set_t all;
    cpu_set_t one;

    if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && wanted >= 0; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        if (wanted-- == 0)
            CPU_SET(cpu, &one);
    }
    (void)sched_setaffinity(0, sizeof(one), &one); /* else: where it likes */
}

static void fork_other(struct pair *pair)
{
    pid_t parent = getpid();
    pid_t child = fork();

    if (child < 0)
        pair_die(pair, "cannot fork");
    if (child > 0)
        return;
    pair->rank = 1;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it ended before prctl() */
    (void)alarm(LIMIT_S);
}

void pair_open(struct pair *pair, const struct chempi_personality *personality)
{
    struct chempi_adapter_params params = {
        .personality = personality,
        .lock_budget_bytes = UINT64_MAX,
        .events = &events,
        .arg = pair,
    };
    struct chempi_err err = {.text = ""};

    *pair = (struct pair){.has_clock = personality != NULL};
    pair->board = mmap(NULL, sizeof(*pair->board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pair->board == MAP_FAILED)
        pair_die(pair, "out of memory");
    (void)alarm(LIMIT_S);
    fork_other(pair);
    settle(pair);
    params.user = (uint32_t)pair->rank;
    if (chempi_adapter_open(&params, &pair->adapter, &err) < 0)
        pair_die(pair, err.text);
    chempi_adapter_address(pair->adapter, pair->board->addresses[pair->rank]);
    pair_barrier(pair);
    pair_check(pair, chempi_adapter_link_open(
                         pair->adapter, pair->board->addresses[!pair->rank],
                         CHEMPI_ADAPTER_ADDRESS_BYTES, NULL, &pair->link));
    while (chempi_adapter_link_state(pair->link) == -EINPROGRESS)
        serve(pair);
    pair_barrier(pair);
}

/* Share of its time in which this process could have run, but did not; 0 also
 * when the kernel does not tell. */
static double waiting_share(void)
{
    unsigned long long run_ns = 0;
    unsigned long long wait_ns = 0;
    FILE *file = fopen("/proc/self/schedstat", "re");

    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &run_ns, &wait_ns) != 2 || run_ns == 0)
        wait_ns = 0;
    (void)fclose(file);
    return wait_ns ? (double)wait_ns / (double)(run_ns + wait_ns) : 0;
}

int pair_close(struct pair *pair)
{
    double *waits = pair->board->waits;
    int status = 0;

    waits[pair->rank] = waiting_share();
    pair_barrier(pair);
    if (pair->rank == 0)
        (void)printf("disturbed %.3f\n",
                     waits[0] > waits[1] ? waits[0] : waits[1]);
    chempi_adapter_close(pair->adapter);
    if (pair->rank == 1)
        return 0;
    return wait(&status) > 0 && status == 0 ? 0 : 1;
}

void pair_segment(struct pair *pair, size_t len)
{
    pair_check(pair, chempi_sci_segment_create(pair->adapter, PAIR_SEGMENT, len,
                                               PAIR_TAG, &pair->segment));
    pair_check(pair, chempi_sci_segment_prepare(pair->segment));
    pair_check(pair, chempi_sci_segment_set_available(pair->segment));
    pair->local = chempi_sci_segment_memory(pair->segment);
    pair_barrier(pair);
    pair_check(pair, chempi_sci_connect(pair->link, PAIR_SEGMENT, PAIR_TAG,
                                        &pair->remote));
    while (chempi_sci_state(pair->remote) == -EINPROGRESS)
        serve(pair);
    pair_check(pair, chempi_sci_state(pair->remote));
    pair_barrier(pair);
}

void pair_work(const struct pair *pair, uint64_t ns)
{
    uint64_t end_ns = chempi_clock_ns() + ns;

    while (pair->has_clock && chempi_clock_ns() < end_ns)
        ;
}

void pair_store(struct pair *pair, uint64_t offset, const void *src, size_t len)
{
    pair_check(pair, chempi_sci_copy(pair->remote, offset, src, len));
}
