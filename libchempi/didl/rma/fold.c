/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic at the target, by whoever has its memory: the origin, if it is
 * mapped there, or the target's process for a message.
 *
 *   F1  which mechanism guards an element depends on the window and the
 *       element's size and address only, so that all who meet at it use the
 *       same: elements change under the line of the memory's owner, many at a
 *       time; in windows that want them apart (is_fine), aligned ones of 1, 2,
 *       4 and 8 bytes by the processor's atomics. Memory that no other process
 *       has mapped needs neither: there is no line, and the lane lock excludes;
 *       nor does MPI_NO_OP where nothing else meets it (is_same_op)
 *   F2  a line belongs to the process that it names; from one that has died
 *       with it whoever waits takes it
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "common/host/proc_stat.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/services/layout/segment.h"

enum {
    ELEMENT_MAX = 64, /* bytes; a pair of long double and index has 32 */
    RUNS = 16,
    RELAX = 64, /* looks at a busy line before the core is given away */
    DOUBT = 64  /* times that, before its holder's death is thought of */
};

/* ---- the line ---- */

/* Has the member with this number ended? Nobody may have waited for it yet, or
 * another process may have its number. */
static bool has_ended(const struct chempi_win *win, uint32_t pid)
{
    struct chempi_proc_stat found;
    const int rc = chempi_proc_stat((pid_t)pid, &found);

    if (rc == -ENOENT || rc == -ESRCH)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH; /* or is hidden */
    if (rc || found.has_ended)
        return rc == 0;
    for (uint32_t i = 0; i < win->local_count; i++) {
        const struct chempi_rma_card *card = &win->cards[i];

        if ((uint32_t)card->pid == pid)
            return card->born != 0 && card->born != found.born;
    }
    return false;
}

/* F2 */
static bool take_from_dead(const struct chempi_rma_guard *guard)
{
    struct chempi_rma_line *line = guard->line;
    uint32_t holder = atomic_load_explicit(&line->busy, memory_order_relaxed);

    return holder && has_ended(guard->win, holder) &&
           atomic_compare_exchange_strong(&line->busy, &holder, guard->pid);
}

static bool take(struct chempi_rma_line *line, uint32_t pid)
{
    uint32_t nobody = 0;

    return atomic_load_explicit(&line->busy, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_weak_explicit(&line->busy, &nobody, pid,
                                                 memory_order_acquire,
                                                 memory_order_relaxed);
}

/* Held for the arithmetic of one run; its holder never waits meanwhile. Leaving
 * it orders as an atomic operation does, for chempi_rma_flush_peer(). */
static void enter(const struct chempi_rma_guard *guard)
{
    uint32_t looks = 0;

    while (!take(guard->line, guard->pid)) {
        if (++looks % RELAX) {
            CHEMPI_CPU_RELAX();
        } else if (looks % (RELAX * DOUBT)) {
            (void)sched_yield();
        } else if (guard->win->knows_dead && take_from_dead(guard)) {
            return;
        }
    }
}

static void leave(const struct chempi_rma_guard *guard)
{
    atomic_store_explicit(&guard->line->busy, 0, memory_order_seq_cst);
}

/* ---- by atomics ---- */

/* One element: what was there goes to *out (may be NULL). */
#define DEFINE_ATOMIC(T, bits)                                                 \
    static void fold_##bits(uint32_t op, chempi_op_loop *loop, T *mem,         \
                            const unsigned char *in, unsigned char *out)       \
    {                                                                          \
        T old;                                                                 \
        T value = 0;                                                           \
                                                                               \
        if (op == CHEMPI_OP_NO_OP) {                                           \
            old = __atomic_load_n(mem, __ATOMIC_ACQUIRE);                      \
        } else if (op == CHEMPI_OP_REPLACE) {                                  \
            memcpy(&value, in, sizeof(value));                                 \
            old = __atomic_exchange_n(mem, value, __ATOMIC_ACQ_REL);           \
        } else {                                                               \
            T given;                                                           \
                                                                               \
            memcpy(&given, in, sizeof(given));                                 \
            old = __atomic_load_n(mem, __ATOMIC_RELAXED);                      \
            do {                                                               \
                value = old;                                                   \
                loop(&given, &value, 1);                                       \
            } while (!__atomic_compare_exchange_n(                             \
                mem, &old, value, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));  \
        }                                                                      \
        if (out)                                                               \
            memcpy(out, &old, sizeof(old));                                    \
    }                                                                          \
    static void swap_##bits(T *mem, const void *compare, const void *in,       \
                            void *out)                                         \
    {                                                                          \
        T expected;                                                            \
        T value;                                                               \
                                                                               \
        memcpy(&expected, compare, sizeof(expected));                          \
        memcpy(&value, in, sizeof(value));                                     \
        (void)__atomic_compare_exchange_n(mem, &expected, value, false,        \
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
        memcpy(out, &expected, sizeof(expected));                              \
    }

/* Elements have the kind's own type elsewhere. */
typedef uint8_t CHEMPI_MAY_ALIAS any8;
typedef uint16_t CHEMPI_MAY_ALIAS any16;
typedef uint32_t CHEMPI_MAY_ALIAS any32;
typedef uint64_t CHEMPI_MAY_ALIAS any64;

DEFINE_ATOMIC(any8, 8)
DEFINE_ATOMIC(any16, 16)
DEFINE_ATOMIC(any32, 32)
DEFINE_ATOMIC(any64, 64)

/* Sums of integers, the most frequent of all. */
static bool add_integers(uint8_t elem, char *mem, const unsigned char *in,
                         unsigned char *out)
{
    any32 a32;
    any64 a64;

    if (elem == CHEMPI_BASIC_TYPE_I32 || elem == CHEMPI_BASIC_TYPE_U32) {
        memcpy(&a32, in, sizeof(a32));
        a32 = __atomic_fetch_add((any32 *)(void *)mem, a32, __ATOMIC_ACQ_REL);
        if (out)
            memcpy(out, &a32, sizeof(a32));
        return true;
    }
    if (elem == CHEMPI_BASIC_TYPE_I64 || elem == CHEMPI_BASIC_TYPE_U64) {
        memcpy(&a64, in, sizeof(a64));
        a64 = __atomic_fetch_add((any64 *)(void *)mem, a64, __ATOMIC_ACQ_REL);
        if (out)
            memcpy(out, &a64, sizeof(a64));
        return true;
    }
    return false;
}

static void fold_atomic(uint32_t op, uint8_t elem, char *mem,
                        const unsigned char *in, unsigned char *out)
{
    chempi_op_loop *loop = chempi_op_loops[op][elem];

    if (op == CHEMPI_OP_SUM && add_integers(elem, mem, in, out))
        return;
    switch (chempi_basic_type_table[elem].size) {
    case 1:
        fold_8(op, loop, (any8 *)(void *)mem, in, out);
        break;
    case 2:
        fold_16(op, loop, (any16 *)(void *)mem, in, out);
        break;
    case 4:
        fold_32(op, loop, (any32 *)(void *)mem, in, out);
        break;
    default:
        fold_64(op, loop, (any64 *)(void *)mem, in, out);
        break;
    }
}

static bool is_atomic(size_t size, const char *mem)
{
    return (size == 1 || size == 2 || size == 4 || size == 8) &&
           ((uintptr_t)mem & (size - 1)) == 0;
}

/* ---- under the line ---- */

/* Packed pairs have no padding between their numbers. */
static void spread(const struct chempi_basic_type_info *info,
                   const unsigned char *packed, unsigned char *element)
{
    size_t first = info->second_at ? chempi_basic_type_table[info->first].size
                                   : info->size;

    memcpy(element, packed, first);
    if (info->second_at)
        memcpy(element + info->second_at, packed + first, info->size - first);
}

static void gather(const struct chempi_basic_type_info *info,
                   const unsigned char *element, unsigned char *packed)
{
    size_t first = info->second_at ? chempi_basic_type_table[info->first].size
                                   : info->size;

    memcpy(packed, element, first);
    if (info->second_at)
        memcpy(packed + first, element + info->second_at, info->size - first);
}

/* One element, of which mem may have any alignment; the padding of a pair
 * stays as it is. */
static void fold_locked(uint32_t op, uint8_t elem, char *mem,
                        const unsigned char *in, unsigned char *out)
{
    const struct chempi_basic_type_info *info = &chempi_basic_type_table[elem];
    _Alignas(16) unsigned char given[ELEMENT_MAX] = {0};
    _Alignas(16) unsigned char value[ELEMENT_MAX] = {0};
    unsigned char packed[ELEMENT_MAX];

    gather(info, (unsigned char *)mem, packed);
    if (out)
        memcpy(out, packed, info->size);
    if (op == CHEMPI_OP_NO_OP)
        return;
    spread(info, in, given);
    spread(info, packed, value);
    if (op == CHEMPI_OP_REPLACE)
        memcpy(value, given, sizeof(value));
    else
        chempi_op_loops[op][elem](given, value, 1);
    gather(info, value, packed);
    spread(info, packed, (unsigned char *)mem);
}

/* ---- runs ---- */

/* As many small elements as a word has, by one atomic of the word: whoever
 * changes one of them alone meets it all the same. Returns the number done. */
static uint64_t fold_words(uint32_t op, uint8_t elem, char *mem, uint64_t n,
                           const unsigned char *in, unsigned char *out)
{
    const size_t size = chempi_basic_type_table[elem].size;
    const uint64_t per_word = sizeof(any64) / size;
    chempi_op_loop *loop = chempi_op_loops[op][elem];
    uint64_t done = 0;

    if (size >= sizeof(any64) || (uintptr_t)mem % sizeof(any64) != 0)
        return 0;
    for (; done + per_word <= n; done += per_word) {
        any64 *word = (any64 *)(void *)(mem + done * size);
        any64 old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        any64 given = 0;
        any64 value;

        if (in)
            memcpy(&given, in + done * size, sizeof(given));
        if (op == CHEMPI_OP_REPLACE)
            old = __atomic_exchange_n(word, given, __ATOMIC_ACQ_REL);
        else if (op != CHEMPI_OP_NO_OP)
            do {
                value = old;
                loop(&given, &value, per_word);
            } while (!__atomic_compare_exchange_n(
                word, &old, value, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
        if (out)
            memcpy(out + done * size, &old, sizeof(old));
    }
    return done;
}

/* Nobody else is there: under the line, or in memory that no other process has
 * mapped. False: their addresses do not allow it. */
static bool fold_alone(uint32_t op, uint8_t elem, char *mem, uint64_t n,
                       const unsigned char *in, unsigned char *out)
{
    const struct chempi_basic_type_info *info = &chempi_basic_type_table[elem];
    const uintptr_t mask = info->align ? info->align - 1u : 0;

    if (info->size != info->extent || ((uintptr_t)mem & mask) != 0 ||
        ((uintptr_t)in & mask) != 0)
        return false;
    if (out)
        memcpy(out, mem, n * info->size);
    if (op == CHEMPI_OP_REPLACE)
        memcpy(mem, in, n * info->size);
    else if (op != CHEMPI_OP_NO_OP)
        chempi_op_fast_loops()[op][elem](in, mem, n);
    return true;
}

/* A peer may say that elements with padding have none, or that the pieces of
 * one lie elsewhere: an element is touched whole, where it begins. */
static bool is_inside(const struct chempi_rma_place *place, uint8_t elem,
                      const char *mem, uint64_t n)
{
    const struct chempi_basic_type_info *info = &chempi_basic_type_table[elem];
    const size_t first =
        info->second_at ? chempi_basic_type_table[info->first].size : 0;

    return n * info->size + info->second_at - first <=
           place->end - (uintptr_t)mem;
}

/* n elements, one after the other. */
static void fold_run(const struct chempi_rma_place *place, uint32_t op,
                     uint8_t elem, char *mem, uint64_t n,
                     const unsigned char *in, unsigned char *out)
{
    const struct chempi_rma_guard *guard = &place->guard;
    const size_t size = chempi_basic_type_table[elem].size;
    const bool is_guarded =
        guard->line && !(guard->is_same_op && op == CHEMPI_OP_NO_OP);
    uint64_t i = 0;

    if (CHEMPI_UNLIKELY(!is_inside(place, elem, mem, n))) {
        if (out)
            memset(out, 0, n * size);
        return;
    }
    if (guard->line && guard->is_fine && is_atomic(size, mem)) {
        for (i = fold_words(op, elem, mem, n, in, out); i < n; i++)
            fold_atomic(op, elem, mem + i * size, in ? in + i * size : NULL,
                        out ? out + i * size : NULL);
        return;
    }
    if (is_guarded)
        enter(guard);
    if (!fold_alone(op, elem, mem, n, in, out))
        for (; i < n; i++)
            fold_locked(op, elem, mem + i * size, in ? in + i * size : NULL,
                        out ? out + i * size : NULL);
    if (is_guarded)
        leave(guard);
}

/* Runs of memory: elements may be in pieces, which belong to the one whose
 * first piece came before. */
struct stream {
    const struct chempi_rma_place *place;
    uint32_t op;
    uint8_t elem;
    const unsigned char *in;
    unsigned char *out;
    uint64_t rest; /* bytes of the last element that are still to come */
};

static void take_run(struct stream *s, char *mem, uint64_t len)
{
    const uint64_t size = chempi_basic_type_table[s->elem].size;
    uint64_t n;

    if (s->rest >= len) {
        s->rest -= len;
        return;
    }
    mem += s->rest;
    len -= s->rest;
    n = len / size;
    s->rest = 0;
    if (len % size) {
        s->rest = size - len % size;
        n++;
    }
    fold_run(s->place, s->op, s->elem, mem, n, s->in, s->out);
    if (s->in)
        s->in += n * size;
    if (s->out)
        s->out += n * size;
}

/* Consecutive pairs with padding between them have no layout without gaps, so
 * this is for numbers and for pairs without padding. */
void chempi_rma_fold(const struct chempi_rma_place *place, uint32_t op,
                     uint8_t elem, uint64_t at, uint64_t len, const void *in,
                     void *out)
{
    struct stream s = {
        .place = place, .op = op, .elem = elem, .in = in, .out = out};
    struct chempi_segment iter;
    struct iovec runs[RUNS];

    if (!place->layout) {
        fold_run(place, op, elem, place->base + at,
                 len / chempi_basic_type_table[elem].size, in, out);
        return;
    }
    chempi_segment_init(&iter, place->base, place->count, place->layout);
    chempi_segment_seek(&iter, at);
    while (len > 0) {
        size_t count = chempi_segment_runs(&iter, runs, RUNS, len);

        if (!count)
            return;
        for (size_t i = 0; i < count; i++) {
            take_run(&s, runs[i].iov_base, runs[i].iov_len);
            len -= runs[i].iov_len;
        }
    }
}

void chempi_rma_swap(const struct chempi_rma_guard *guard, char *addr,
                     size_t size, const void *compare, const void *in,
                     void *out)
{
    if (!guard->is_fine || !is_atomic(size, addr)) {
        if (guard->line)
            enter(guard);
        memcpy(out, addr, size);
        if (memcmp(out, compare, size) == 0)
            memcpy(addr, in, size);
        if (guard->line)
            leave(guard);
    } else if (size == 1) {
        swap_8((any8 *)(void *)addr, compare, in, out);
    } else if (size == 2) {
        swap_16((any16 *)(void *)addr, compare, in, out);
    } else if (size == 4) {
        swap_32((any32 *)(void *)addr, compare, in, out);
    } else {
        swap_64((any64 *)(void *)addr, compare, in, out);
    }
}
