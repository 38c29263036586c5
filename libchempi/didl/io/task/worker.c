/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads for file access; see worker.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/io/task/worker.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/thread.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

/* To wake a thread that sleeps costs the program microseconds. So one to which
 * jobs come that soon after one another stays awake for the next one. */
#define LINGER_NS UINT64_C(50000)

static struct {
    pthread_mutex_t lock; /* guards all but the reading of counts */
    pthread_cond_t wanted;
    pthread_t threads[CHEMPI_IO_WORKERS_MAX];
    int thread_count;
    int idle;                  /* threads */
    int awake;                 /* of those, they look at waiting_count */
    _Atomic int waiting_count; /* jobs on `waiting` */
    int cpu;                   /* where the last one was submitted */
    bool is_ending;
    struct chempi_list waiting; /* W1 */
    struct chempi_list done;
    _Atomic int done_count; /* on `done` */
    struct chempi_progress_hook hook;
    bool is_hooked; /* under the lane lock */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wanted = PTHREAD_COND_INITIALIZER,
    .waiting = {&pool.waiting, &pool.waiting},
    .done = {&pool.done, &pool.done},
};

static struct chempi_io_job *of_link(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct chempi_io_job, link);
}

static void hand_back(struct chempi_io_job *job)
{
    (void)pthread_mutex_lock(&pool.lock);
    chempi_list_append(&pool.done, &job->link);
    (void)atomic_fetch_add_explicit(&pool.done_count, 1, memory_order_release);
    (void)pthread_mutex_unlock(&pool.lock);
}

/* Urgent: others may wait for what comes after the job. */
static void tell_of_done(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_urge(&s->wakes[s->local_rank], s->wake_fds[s->local_rank],
                     s->is_wake_registered);
}

/* Holder of pool.lock, which is let go meanwhile. */
static void linger(uint64_t until_ns)
{
    pool.awake++;
    (void)pthread_mutex_unlock(&pool.lock);
    while (atomic_load_explicit(&pool.waiting_count, memory_order_relaxed) ==
               0 &&
           chempi_clock_ns() < until_ns)
        (void)sched_yield();
    (void)pthread_mutex_lock(&pool.lock);
    pool.awake--;
}

/* The same; there is a job, or the end, when it returns. ended_ns: the thread's
 * last job. */
static void await_job(uint64_t ended_ns, bool *comes_soon)
{
    pool.idle++;
    if (*comes_soon && chempi_list_is_empty(&pool.waiting))
        linger(ended_ns + LINGER_NS);
    while (chempi_list_is_empty(&pool.waiting) && !pool.is_ending)
        (void)pthread_cond_wait(&pool.wanted, &pool.lock);
    pool.idle--;
    *comes_soon = chempi_clock_ns() < ended_ns + LINGER_NS;
}

static void *work(void *arg)
{
    uint64_t ended_ns = 0;
    bool comes_soon = false;

    (void)arg;
    chempi_affinity_free_thread(); /* the program computes on its own one */
    (void)pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct chempi_io_job *job;
        bool is_beside;

        await_job(ended_ns, &comes_soon);
        if (pool.is_ending)
            break;
        job = of_link(chempi_list_first(&pool.waiting));
        chempi_list_remove(&job->link);
        pool.waiting_count--;
        is_beside = pool.cpu != sched_getcpu();
        (void)pthread_mutex_unlock(&pool.lock);
        if (!is_beside && chempi_affinity_is_roomy())
            chempi_affinity_part(); /* from the program, which computes there */
        job->run(job);
        hand_back(job);
        tell_of_done();
        ended_ns = chempi_clock_ns();
        (void)pthread_mutex_lock(&pool.lock);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Holder of pool.lock. False: there is no thread at all. */
static bool need_thread_locked(void)
{
    if (pool.idle > pool.waiting_count ||
        pool.thread_count == CHEMPI_IO_WORKERS_MAX)
        return true;
    if (chempi_thread_start(&pool.threads[pool.thread_count], work) == 0)
        pool.thread_count++;
    return pool.thread_count > 0;
}

/* Under the lane lock. The finishers may submit again. */
static int poll_done(struct chempi_progress_hook *hook)
{
    struct chempi_list ready;
    int events = 0;

    (void)hook;
    if (CHEMPI_LIKELY(
            atomic_load_explicit(&pool.done_count, memory_order_acquire) == 0))
        return 0;
    chempi_list_init(&ready);
    (void)pthread_mutex_lock(&pool.lock);
    chempi_list_splice(&ready, &pool.done);
    atomic_store_explicit(&pool.done_count, 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&pool.lock);
    while (!chempi_list_is_empty(&ready)) {
        struct chempi_io_job *job = of_link(chempi_list_first(&ready));

        chempi_list_remove(&job->link);
        job->finish(job);
        events++;
    }
    return events;
}

static bool is_any_done(struct chempi_progress_hook *hook)
{
    (void)hook;
    return atomic_load_explicit(&pool.done_count, memory_order_acquire) > 0;
}

void chempi_io_submit_locked(struct chempi_io_job *job)
{
    bool is_taken;

    if (!pool.is_hooked) {
        pool.hook.poll = poll_done;
        pool.hook.is_ready = is_any_done;
        chempi_progress_add_hook(&pool.hook);
        pool.is_hooked = true;
    }
    (void)pthread_mutex_lock(&pool.lock);
    is_taken = need_thread_locked();
    if (is_taken) {
        chempi_list_append(&pool.waiting, &job->link);
        pool.cpu = sched_getcpu();
        if (pool.waiting_count++ >= pool.awake)
            (void)pthread_cond_signal(&pool.wanted);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    if (!is_taken) {
        job->run(job);
        hand_back(job);
    }
}

void chempi_io_submit(struct chempi_io_job *job)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_io_submit_locked(job);
    chempi_lane_unlock(&chempi_lane_main);
}

void chempi_io_workers_fini(void)
{
    (void)pthread_mutex_lock(&pool.lock);
    pool.is_ending = true;
    (void)pthread_cond_broadcast(&pool.wanted);
    (void)pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.thread_count; i++)
        (void)pthread_join(pool.threads[i], NULL);
    pool.thread_count = 0;
    pool.is_ending = false;
    if (pool.is_hooked)
        chempi_progress_remove_hook(&pool.hook);
    pool.is_hooked = false;
}
