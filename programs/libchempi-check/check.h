/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libchempi-check: looks for mistakes in a program's use of MPI, through the
 * profiling interface (MPI 5.0, section 15.2); doc/checking.md. The wrappers
 * around all calls are generated.
 *
 *   K1  one lock guards all tables; no MPI function that may wait, or run code
 *       of the user's, is called with it held
 *   K2  a call is noted in a list of the thread's while it runs, the innermost
 *       first
 */
#ifndef CHEMPI_CHECK_CHECK_H
#define CHEMPI_CHECK_CHECK_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "libchempi/didl/tool/checker.h"
#include "programs/libchempi-check/calls.h" /* generated */

/* A call in the program. */
struct check_site {
    uint32_t id;      /* enum check_id */
    const void *from; /* where it returns to */
};

/* One that runs (K2). */
struct check_call {
    struct check_site site;
    struct check_call *outer;
    bool may_stick; /* it waits for what others call, and for nothing else */
};

#define CHECK_ENTER(call, name)                                                \
    check_enter(call, CHECK_##name, CHEMPI_RETURN_ADDRESS())
void check_enter(struct check_call *call, enum check_id id, const void *from);
void check_leave(const struct check_call *call);
/* From here on this thread's call does, or does not (doc/checking.md). */
void check_stick(bool may_stick);

/* ---- words (report.c, place.c) ---- */

enum {
    CHECK_PLACE_TEXT = 256,
    CHECK_WORDS = 128 + CHECK_PLACE_TEXT,
    CHECK_LINE = 1024 /* bytes of a sentence */
};

/* "ring.c:12" if debug information and addr2line are there, else
 * "main+0x1f (ring)". Starts a process for a place that is new. */
void check_place(const void *from, char out[CHECK_PLACE_TEXT]);

/* "MPI_Send at ring.c:12"; returns out. */
char *check_site_words(const struct check_site *site, char *out, size_t len);

/* A number for a site, from 1; 0: there are too many. And back: false if there
 * is none of this number. */
uint16_t check_site_number(const struct check_site *site);
bool check_site_at(uint16_t number, struct check_site *out);

/* A mistake with which the program can go on: one line now. */
void check_report(const char *fmt, ...) CHEMPI_PRINTF(1, 2);
/* One with which it cannot: the job ends. */
CHEMPI_NORETURN void check_fail(const char *fmt, ...) CHEMPI_PRINTF(1, 2);
/* One of what is left at the end: said by rank 0 for all that have the same.
 */
void check_note(const char *fmt, ...) CHEMPI_PRINTF(1, 2);

/* Is anything to be watched: is MPI up, and did this library see it start? */
bool check_is_on(void);
/* The rank in MPI_COMM_WORLD; -1: none. */
extern int check_rank;
/* The library's door; NULL before its start. */
extern const struct chempi_checker_door *check_door;

/* Say what the ranks have noted, and that there was nothing. Collective. */
void check_print_notes(MPI_Comm shadow);

/* "MPI_COMM_WORLD", or a name, or where it was made. */
char *check_comm_words(MPI_Comm comm, char *out, size_t len);

/* ---- objects (objects.c) ---- */

enum check_kind { CHECK_COMM, CHECK_TYPE, CHECK_WIN, CHECK_FILE, CHECK_KINDS };

/* The call has made this one, or is about to free it. Null and predefined
 * handles are ignored. */
void check_made(const struct check_call *call, enum check_kind kind,
                const void *handle);
void check_freed(enum check_kind kind, const void *handle);
/* Where it was made; false: not known. */
bool check_maker(enum check_kind kind, const void *handle,
                 struct check_site *out);
/* A communicator that only the checker uses, with the same members.
 * MPI_COMM_NULL: there is none (one member, an intercommunicator). */
MPI_Comm check_shadow(MPI_Comm comm);
/* MPI is up, or is about to go: MPI_COMM_WORLD has a shadow. Collective. */
void check_objects_begin(void);
void check_objects_end(void);
/* Before the user frees this communicator. */
void check_drop_shadow(const void *handle);
/* Communicator number i of those that live, from 0; MPI_COMM_NULL: no more. */
MPI_Comm check_comm_at(size_t i);
/* A file was not opened, which the program may not have looked at; and a call
 * on a file is about to be made: noted if it names none. */
void check_open_failed(const struct check_call *call, int rc);
void check_no_file(const struct check_call *call, MPI_File file);
/* Note all objects that nobody has freed. */
void check_note_objects(void);

/* ---- buffers in use (regions.c) ---- */

enum check_use { CHECK_READS, CHECK_WRITES };

struct check_region; /* memory that a pending operation uses */

/* Bytes of a buffer in one piece; false: it is not, or empty. */
bool check_extent(const void *buf, MPI_Count count, MPI_Datatype type,
                  uintptr_t *start, size_t *len);

/* Look whether a call may use this memory now; says so if not. */
void check_region_test(const struct check_call *call, enum check_use use,
                       const void *buf, MPI_Count count, MPI_Datatype type);
/* The two buffers of one call. */
void check_region_pair(const struct check_call *call, const void *sendbuf,
                       MPI_Count sendcount, MPI_Datatype sendtype,
                       const void *recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype);
/* Begin to use it, after the test; NULL: nothing to watch. */
struct check_region *check_region_open(const struct check_site *site,
                                       enum check_use use, const void *buf,
                                       MPI_Count count, MPI_Datatype type);
/* The operation is over; accepts NULL. What was read must be as it was. */
void check_region_close(struct check_region *region,
                        const struct check_site *end);

/* ---- collective operations (coll.c) ---- */

#define CHECK_NO_ROOT (-1000)

/* Whose amounts must be the same. */
enum check_amount {
    CHECK_NO_AMOUNT,
    CHECK_SAME,    /* every member's (in send) */
    CHECK_EVEN,    /* what each sends and what each receives from one */
    CHECK_GATHER,  /* each one's send and the root's receive */
    CHECK_SCATTER, /* each one's receive and the root's send */
    CHECK_GATHERV, /* the same, with a count for each member */
    CHECK_SCATTERV,
    CHECK_ALLGATHERV /* each one's send and everybody's count for it */
};

/* A place in another process of the program. */
struct check_far_site {
    uint64_t module; /* hash of its file's name; 0: not known */
    uint64_t from;   /* the place in it */
    uint64_t id;     /* enum check_id */
};
void check_site_tell(const struct check_site *site, struct check_far_site *out);
/* As a place here; own is any call of the program. False: it is in another
 * program. */
bool check_site_hear(const struct check_site *own,
                     const struct check_far_site *far, struct check_site *out);

struct check_match;
struct check_window;
/* Compares what calls on windows say beside the rest. */
typedef void check_compare_fn(const struct check_match *match, int size);

/* What one member gives; made by the wrappers. */
struct check_coll {
    MPI_Comm comm;
    struct check_window *window; /* in place of comm; or NULL */
    int64_t facts[3];            /* for compare */
    check_compare_fn *compare;   /* or NULL */
    int root;                    /* CHECK_NO_ROOT: the operation has none */
    MPI_Op op;                   /* MPI_OP_NULL: the operation has none */
    enum check_amount rule;
    bool is_wide; /* counts are MPI_Count, not int */
    const void *sendbuf;
    MPI_Count sendcount;
    MPI_Datatype sendtype;
    const void *recvbuf;
    MPI_Count recvcount;
    MPI_Datatype recvtype;
    const void *counts; /* of the side that has one for each member */
};

/* The members' calls, on their way to each other: struct check_match. */

/* Tell the other members of this call. NULL: the communicator is not watched.
 */
struct check_match *check_match_begin(const struct check_call *call,
                                      const struct check_coll *coll);
/* Have all told? True for NULL. */
bool check_match_is_here(struct check_match *match);
/* Wait for them, and end the job if the calls do not match. Accepts NULL. */
void check_match_end(struct check_match *match);
/* Nobody waits: they are compared when they are here, or at the end of MPI. */
void check_match_leave(struct check_match *match);
void check_match_end_left(void);
/* For compare: what a member gave, its call in words, as a place here. */
const int64_t *check_match_facts(const struct check_match *match, int rank);
char *check_match_words(const struct check_match *match, int rank, char *out,
                        size_t len);
bool check_match_site(const struct check_match *match, int rank,
                      struct check_site *out);
struct check_window *check_match_window(const struct check_match *match);
/* Is this the member that says what is wrong? The others wait for the end. */
bool check_match_speaks(const struct check_match *match);
/* "MPI_SUM"; the names are those of the standard. */
const char *check_op_name(uint64_t op);
/* The sum of as many counts as comm has members. */
MPI_Count check_sum(const void *counts, bool is_wide, MPI_Comm comm);

/* ---- windows (windows.c) ---- */

#define CHECK_ALL_TARGETS (-1)

/* A window is about to be made: what is promised. And it is made; is freed. */
void check_window_promise(struct check_coll *coll, MPI_Info info, MPI_Aint size,
                          MPI_Aint unit);
void check_window_made(MPI_Comm comm, MPI_Win win);
void check_window_free(const struct check_call *call, MPI_Win win);
void check_window_freed(const void *handle);
void check_windows_end(void);
/* Before and behind a fence. */
void check_window_fence(const struct check_call *call, MPI_Win win, int assert);
void check_window_fenced(MPI_Win win);
/* Behind post; before start; behind wait, or test that says so. */
void check_window_posted(const struct check_call *call, MPI_Group group,
                         int assert, MPI_Win win);
void check_window_start(const struct check_call *call, MPI_Group group,
                        int assert, MPI_Win win);
void check_window_exposed(MPI_Win win);
/* Before what completes the operations at a target, or at all of them. */
void check_window_over(MPI_Win win, int target);
/* Before a lock; before an unlock, with MPI_LOCK_SHARED. */
void check_window_lock(MPI_Win win, int target, int type);
/* Before an operation that writes `count` elements of `type`; op: MPI_OP_NULL
 * for puts and compare-and-swap. */
void check_window_write(const struct check_call *call, MPI_Win win, int target,
                        MPI_Aint disp, MPI_Count count, MPI_Datatype type,
                        MPI_Op op);
/* Before MPI_Win_set_info, MPI_Win_shared_query and MPI_Win_attach. */
void check_window_info(MPI_Win win, MPI_Info info);
void check_window_queried(MPI_Win win);
void check_window_attached(void);

/* ---- requests (requests.c) ---- */

/* A request that the call has made; inactive if it is persistent. peer and tag
 * mean something for messages. */
struct check_request_info {
    const void *buf;
    MPI_Count count;
    MPI_Datatype type; /* MPI_DATATYPE_NULL: no buffer to watch */
    enum check_use use;
    int peer;
    int tag;
    MPI_Comm comm;
    bool is_persistent;
};
void check_request_made(const struct check_call *call, MPI_Request request,
                        const struct check_request_info *info);
/* The same for operations of which nothing more is known. */
void check_request_plain(const struct check_call *call, MPI_Request request,
                         bool is_persistent);
/* A collective operation, which is complete when `match` is, too. */
void check_request_coll(const struct check_call *call, MPI_Request request,
                        struct check_match *match, bool is_persistent);
/* Note all that were never completed or freed. */
void check_note_requests(void);

/* ---- the lock (K1) ---- */

extern pthread_mutex_t check_mutex;
/* Several threads call at once (MPI_THREAD_MULTIPLE); else nobody locks. */
extern bool check_has_threads;

static inline void check_lock(void)
{
    if (check_has_threads)
        (void)pthread_mutex_lock(&check_mutex);
}

static inline void check_unlock(void)
{
    if (check_has_threads)
        (void)pthread_mutex_unlock(&check_mutex);
}

#endif
