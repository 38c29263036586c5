/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic at memory that several processes change (fold.c). */
#define _GNU_SOURCE /* waitid */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/host/proc_stat.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/internal.h"

enum {
    CELLS = 100,
    TIMES = 2000,
    THREADS = 3,
    YIELDS = 100000 /* long after a death would be thought of */
};

static struct chempi_rma_line line;
static struct chempi_win win = {.knows_dead = true};

static struct chempi_rma_place place_of(void *base, bool is_fine)
{
    return (struct chempi_rma_place){.base = base,
                                     .guard = {.line = &line,
                                               .pid = (uint32_t)getpid(),
                                               .win = &win,
                                               .is_fine = is_fine}};
}

static uint32_t dead_process(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    cr_assert(pid > 0 && waitpid(pid, NULL, 0) == pid);
    return (uint32_t)pid;
}

Test(fold, takes_the_line_from_a_process_that_has_died_with_it, .timeout = 60)
{
    long double sum = 1;
    const long double two = 2;
    const struct chempi_rma_place place = place_of(&sum, false);
    const struct chempi_basic_type_info *info =
        &chempi_basic_type_table[CHEMPI_BASIC_TYPE_FLD];

    cr_assert_eq(info->size, sizeof(sum));
    line.busy = dead_process();
    chempi_rma_fold(&place, CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_FLD, 0,
                    sizeof(sum), &two, NULL);
    cr_assert(sum == 3);
    cr_assert_eq(line.busy, 0);
}

static void take_from(uint32_t holder, uint64_t born)
{
    double sum = 1;
    const double two = 2;
    struct chempi_rma_card card = {.pid = (int32_t)holder, .born = born};
    const struct chempi_rma_place place = place_of(&sum, false);

    win.cards = &card;
    win.local_count = 1;
    line.busy = holder;
    chempi_rma_fold(&place, CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_F64, 0,
                    sizeof(sum), &two, NULL);
    cr_assert(sum == 3 && line.busy == 0);
}

Test(fold, takes_the_line_from_the_dead_that_nobody_has_waited_for,
     .timeout = 60)
{
    const pid_t pid = fork();
    siginfo_t info;

    if (pid == 0)
        _exit(0);
    cr_assert(pid > 0 &&
              waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    take_from((uint32_t)pid, 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(fold, takes_the_line_from_one_whose_number_another_has, .timeout = 60)
{
    struct chempi_proc_stat parent;

    cr_assert_eq(chempi_proc_stat(getppid(), &parent), 0);
    take_from((uint32_t)getppid(), parent.born + 1);
}

/* Somebody else has the line, for good. */
Test(fold, reads_beside_the_line_where_no_other_operation_comes, .timeout = 60)
{
    double cell = 5;
    double before = 0;
    struct chempi_rma_place place = place_of(&cell, false);

    place.guard.is_same_op = true;
    line.busy = (uint32_t)getppid();
    chempi_rma_fold(&place, CHEMPI_OP_NO_OP, CHEMPI_BASIC_TYPE_F64, 0,
                    sizeof(cell), NULL, &before);
    cr_assert(before == 5 && line.busy == (uint32_t)getppid());
    line.busy = 0;
}

static long double awaited = 1;
static _Atomic bool is_left; /* the line, by whoever had it */
static _Atomic bool was_left;

static void *await_line(void *unused)
{
    const long double two = 2;
    const struct chempi_rma_place place = place_of(&awaited, false);

    (void)unused;
    chempi_rma_fold(&place, CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_FLD, 0,
                    sizeof(awaited), &two, NULL);
    was_left = is_left;
    return NULL;
}

/* In another space of numbers it may be alive. */
Test(fold, leaves_the_line_to_a_process_that_only_seems_dead, .timeout = 60)
{
    pthread_t thread;

    win.knows_dead = false;
    line.busy = dead_process();
    cr_assert_eq(pthread_create(&thread, NULL, await_line, NULL), 0);
    for (int i = 0; i < YIELDS; i++)
        (void)sched_yield();
    is_left = true;
    line.busy = 0;
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert(was_left && awaited == 3);
}

static double cells[CELLS];

static void *add(void *is_fine)
{
    double ones[CELLS];
    const struct chempi_rma_place place = place_of(cells, is_fine != NULL);

    for (int i = 0; i < CELLS; i++)
        ones[i] = 1;
    for (int i = 0; i < TIMES; i++)
        chempi_rma_fold(&place, CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_F64, 0,
                        sizeof(ones), ones, NULL);
    return NULL;
}

static void add_together(bool is_fine)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(
            pthread_create(&threads[i], NULL, add, is_fine ? &line : NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CELLS; i++)
        cr_assert_eq(cells[i], THREADS * TIMES, "cell %d", i);
}

Test(fold, loses_no_sum_by_atomics)
{
    add_together(true);
}

Test(fold, loses_no_sum_under_the_line)
{
    add_together(false);
}

/* Bytes of every kind, at every alignment. */
static void fill(unsigned char *data, size_t len, unsigned char seed)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)(seed + 7 * i);
}

static void compare_both(uint32_t op, uint8_t elem, size_t shift)
{
    const size_t size = chempi_basic_type_table[elem].size;
    _Alignas(64) unsigned char by_atomics[256 + 16];
    _Alignas(64) unsigned char by_line[256 + 16];
    unsigned char in[256];
    unsigned char out[2][256] = {{0}};
    const uint64_t len = sizeof(in) / size * size;
    struct chempi_rma_place place = place_of(by_atomics + shift, true);

    fill(by_atomics, sizeof(by_atomics), 3);
    fill(by_line, sizeof(by_line), 3);
    fill(in, sizeof(in), 90);
    chempi_rma_fold(&place, op, elem, 0, len, in, out[0]);
    place = place_of(by_line + shift, false);
    chempi_rma_fold(&place, op, elem, 0, len, in, out[1]);
    cr_assert_arr_eq(by_atomics, by_line, sizeof(by_line), "op %u, kind %u",
                     (unsigned)op, (unsigned)elem);
    cr_assert_arr_eq(out[0], out[1], len, "op %u, kind %u", (unsigned)op,
                     (unsigned)elem);
}

Test(fold, gives_the_same_by_atomics_and_under_the_line)
{
    static const uint8_t kinds[] = {CHEMPI_BASIC_TYPE_I8, CHEMPI_BASIC_TYPE_U16,
                                    CHEMPI_BASIC_TYPE_I32,
                                    CHEMPI_BASIC_TYPE_U64};
    static const uint32_t ops[] = {CHEMPI_OP_SUM, CHEMPI_OP_MAX, CHEMPI_OP_BXOR,
                                   CHEMPI_OP_REPLACE, CHEMPI_OP_NO_OP};

    for (size_t k = 0; k < sizeof(kinds); k++)
        for (size_t o = 0; o < CHEMPI_ARRAY_LEN(ops); o++)
            for (size_t shift = 0; shift <= 8; shift++)
                compare_both(ops[o], kinds[k], shift);
}

Test(fold, swaps_under_the_line)
{
    int64_t cell = 5;
    const int64_t five = 5;
    const int64_t six = 6;
    int64_t before = 0;
    const struct chempi_rma_guard guard = place_of(&cell, false).guard;

    chempi_rma_swap(&guard, (char *)&cell, sizeof(cell), &six, &six, &before);
    cr_assert(cell == 5 && before == 5);
    chempi_rma_swap(&guard, (char *)&cell, sizeof(cell), &five, &six, &before);
    cr_assert(cell == 6 && before == 5 && line.busy == 0);
}
