/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the MPI test programs share: start and end, checks that count their
 * failures over all ranks, and data whose every byte is known in advance.
 * Needs nothing but MPI-3, so that the programs can be validated with other
 * implementations.
 */
#ifndef CHEMPI_TESTS_MPI_CHECK_H
#define CHEMPI_TESTS_MPI_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define CHECK_SKIPPED 77 /* exit code: cannot run here */

/* Initialize MPI and remember rank and size of MPI_COMM_WORLD. */
void check_start(int *argc, char ***argv);

/* The same with a thread level; skips the test when it is not provided. */
void check_start_thread(int *argc, char ***argv, int level);

/* Rank 0 says why (with exit code CHECK_SKIPPED); called by all ranks. */
_Noreturn void check_skip(const char *why);

/* End the program when the number of ranks is below `ranks`. */
void check_need(int ranks);

int check_rank(void);
int check_size(void);
/* A group of this rank of MPI_COMM_WORLD alone, which the caller frees. */
MPI_Group check_group_of(int rank);

/* The node of each rank, as the lowest rank on it: [check_size()], malloc'ed.
 * Called by all. */
int *check_nodes(void);
/* Are all ranks on one node? Called by all. */
bool check_is_one_node(void);

/* Count a failure when `good` is false; thread-safe; prints the first ten. */
#define CHECK(good, ...) check_that((good), __FILE__, __LINE__, __VA_ARGS__)
void check_that(bool good, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A failure after which going on makes no sense. */
#define CHECK_OR_DIE(good, ...)                                                \
    do {                                                                       \
        if (!(good)) {                                                         \
            check_that(false, __FILE__, __LINE__, __VA_ARGS__);                \
            MPI_Abort(MPI_COMM_WORLD, 99);                                     \
        }                                                                      \
    } while (0)

/* The class of an error code; that of MPI_SUCCESS is MPI_SUCCESS. */
int check_class(int code);

/* Sum the failures, finalize, and return the program's exit code; rank 0
 * prints "ok" when there was none. */
int check_finish(void);

/* Run threads, thread t with the t-th of the arguments, of `size` bytes each,
 * or all with the same one (size 0), to their ends. */
void check_run_threads(int count, void *(*run)(void *arg), void *args,
                       size_t size);

/* Does that process, or thread, sleep? It must be there. */
bool check_is_asleep(int pid);
/* Returns when it sleeps. */
void check_await_sleep(int pid);

/* Memory or the end of the job; zeroed; at least one byte. */
void *check_alloc(size_t len);
/* Memory that can be had without swapping, as far as the kernel tells. */
size_t check_available_bytes(void);

/* Numbers that look random and are the same everywhere. */
uint64_t check_random(uint64_t *state);
uint64_t check_mix(uint64_t a, uint64_t b);

/* Fill with, or look for the first byte that differs from, the stream of
 * bytes that belongs to a seed. check_differs() returns SIZE_MAX when all
 * are right. */
void check_fill(void *data, size_t len, uint64_t seed);
size_t check_differs(const void *data, size_t len, uint64_t seed);

/* x -> a x + b modulo 2^32: composing such functions is associative only. An
 * operation on pairs of unsigned. */
struct check_affine {
    unsigned a;
    unsigned b;
};
void check_compose(void *in, void *inout, int *len, MPI_Datatype *type);

/* Stay out of MPI until the file appears; then receive from rank 0 what
 * check_fill() gave it, message i with seed i. */
void check_receive_late(const char *file, size_t len, int count, int tag);

/* Add 1 to an int64_t of a window by a get and a put, alone with it. */
void check_add_alone(int target, MPI_Aint at, MPI_Win win);

/* Begin to count what a performance variable of this library counts (a test
 * that asks for one fails with other libraries); then: the count so far, and
 * at the end that it is not 0. */
void check_watch(const char *name);
unsigned long long check_watched(void);
void check_was_used(void);

/* Hand a port's name to another job: ranks 0 meet at the FIFO, which is made,
 * the one that accepts writes; others do nothing. */
void check_pass_port(bool accepts, const char *fifo,
                     char name[MPI_MAX_PORT_NAME]);

/* argv[i] as a number, or `otherwise`. */
long check_arg(int argc, char **argv, int i, long otherwise);

#endif
