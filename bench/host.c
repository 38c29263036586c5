/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a virtual machine does not tell of its host: how far from each other
 * two of its cores are now, and how much of a core it gets. Neither is MPI's.
 *
 * Prints "host ROUND_TRIP ADD", both in ns: of a word that goes from one core
 * to the other and back, and of an addition in memory. The first is 0 where
 * only one core is allowed. Each is the median of several blocks.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKS 5
#define TRIPS 1000
#define ADDS 300000

static _Alignas(128) atomic_uint asked;
static _Alignas(128) atomic_uint answered;

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double median(double *values)
{
    qsort(values, BLOCKS, sizeof(values[0]), compare);
    return values[BLOCKS / 2];
}

static void bind_to(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Answers until it has answered the last of all. */
static void *answer(void *core)
{
    const unsigned last = BLOCKS * TRIPS;
    unsigned seen = 0;

    bind_to(*(int *)core);
    while (seen != last) {
        unsigned word = atomic_load_explicit(&asked, memory_order_acquire);

        if (word != seen) {
            seen = word;
            atomic_store_explicit(&answered, seen, memory_order_release);
        }
    }
    return NULL;
}

static double round_trip_ns(int first, int second)
{
    double values[BLOCKS];
    pthread_t thread;
    unsigned word = 0;

    if (pthread_create(&thread, NULL, answer, &second) != 0)
        return 0;
    bind_to(first);
    for (int block = 0; block < BLOCKS; block++) {
        double start = now_ns();

        for (int i = 0; i < TRIPS; i++) {
            atomic_store_explicit(&asked, ++word, memory_order_release);
            while (atomic_load_explicit(&answered, memory_order_acquire) !=
                   word)
                ;
        }
        values[block] = (now_ns() - start) / TRIPS;
    }
    pthread_join(thread, NULL);
    return median(values);
}

static double add_ns(void)
{
    double values[BLOCKS];
    volatile unsigned sum = 0;

    for (int block = 0; block < BLOCKS; block++) {
        double start = now_ns();

        for (unsigned i = 0; i < ADDS; i++)
            sum += i;
        values[block] = (now_ns() - start) / ADDS;
    }
    return median(values);
}

int main(void)
{
    int cores[2];
    int count = 0;
    double trip = 0;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    for (int core = 0; core < CPU_SETSIZE && count < 2; core++)
        if (CPU_ISSET(core, &set))
            cores[count++] = core;
    if (count == 2)
        trip = round_trip_ns(cores[0], cores[1]);
    printf("host %.1f %.3f\n", trip, add_ns());
    return 0;
}
