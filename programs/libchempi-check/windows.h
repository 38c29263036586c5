/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of several members, and what its members have promised. Threads of
 * a process fence, post and start it one at a time; they lock and flush it, and
 * call operations, as they like. */
#ifndef CHEMPI_CHECK_WINDOWS_H
#define CHEMPI_CHECK_WINDOWS_H

#include "programs/libchempi-check/check.h"

struct check_target {
    /* Promised by MPI_MODE_NOPUT, for the present epoch ... */
    _Atomic bool has_noput;
    bool is_far;            /* ... in another program, else */
    struct check_site site; /* there */
    _Atomic int64_t writes; /* by this process since the last fence */
    bool is_exclusive;      /* it is locked, or about to be */
};

struct check_window {
    struct check_window *next;
    MPI_Win win;
    MPI_Comm shadow; /* the checker's own; MPI_COMM_NULL: only the memory of
                        this window is of interest */
    int size;
    int rank;
    struct check_target *targets; /* [size] */
    bool has_no_locks;
    bool has_nostore;          /* it was asserted before */
    bool any_nostore;          /* at the last fence, by a member */
    bool is_waited;            /* the last exposure has ended */
    bool is_queried;           /* a member has asked for another's memory */
    _Atomic bool is_entangled; /* its memory may be written otherwise, too */
    bool is_given;             /* by the program: no other process maps it */
    const unsigned char *base;
    MPI_Aint len;
    uint64_t sum; /* of the memory at the last synchronization, or 0 */
    /* What MPI_Win_post has sent, until MPI_Win_wait. */
    void *posts;
    MPI_Request *sends; /* [post_count] */
    int post_count;
    struct check_ops *ops; /* where accumulate_ops was promised, or NULL */
};

/* NULL: it is not watched. */
struct check_window *check_window_of(MPI_Win win);
char *check_window_words(const struct check_window *w, char *out, size_t len);

/* ---- accumulate_ops (ops.c) ---- */

/* Collective. is_strict: MPI_NO_OP is an operation like others. */
void check_ops_begin(struct check_window *w, bool is_strict);
void check_ops_end(struct check_window *w);
/* From now on the promise does not hold. */
void check_ops_stop(struct check_window *w);
/* An accumulate is about to begin. */
void check_ops_add(const struct check_call *call, struct check_window *w,
                   int target, MPI_Aint disp, MPI_Op op);
/* Those at this target are about to be completed. */
void check_ops_over(struct check_window *w, int target);

#endif
