/* SPDX-License-Identifier: BSD-3-Clause */
/* The start and the end of MPI, and of every call. */
#define _GNU_SOURCE /* nanosleep */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/symbol/caller.h"
#include "programs/libchempi-check/check.h"

/* Pauses while the other ranks come to their ends, nanoseconds. */
enum { PAUSE_FIRST = 50000, PAUSE_MAX = 5000000 };

const struct chempi_checker_door *check_door;
bool check_has_threads;

static _Atomic bool is_on;
static _Atomic uint64_t calls;                     /* that have begun */
static _Thread_local struct check_call *innermost; /* K2 */

bool check_is_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

void check_enter(struct check_call *call, enum check_id id, const void *from)
{
    call->site.id = id;
    call->site.from = chempi_caller_in_program(from);
    call->may_stick = false;
    call->outer = innermost;
    innermost = call;
    /* Only one thread's count is looked at; others may spoil it. */
    atomic_store_explicit(
        &calls, atomic_load_explicit(&calls, memory_order_relaxed) + 1,
        memory_order_relaxed);
}

void check_leave(const struct check_call *call)
{
    innermost = call->outer;
}

void check_stick(bool may_stick)
{
    if (innermost)
        innermost->may_stick = may_stick;
}

/* ---- the library's side ---- */

static bool find_call(const char **call, char *place, size_t len)
{
    char words[CHECK_PLACE_TEXT];

    if (!innermost)
        return false;
    *call = check_names[innermost->site.id];
    if (len > 0) {
        check_place(innermost->site.from, words);
        (void)snprintf(place, len, "%s", words);
    }
    return true;
}

static uint16_t number_call(void)
{
    return innermost ? check_site_number(&innermost->site) : 0;
}

static void put_number(uint16_t number, char *text, size_t len)
{
    struct check_site site;

    if (check_site_at(number, &site))
        (void)check_site_words(&site, text, len);
}

/* Of a program with several threads another one may do what is waited for. */
static uint64_t count_moves(void)
{
    if (check_has_threads || !innermost || !innermost->may_stick ||
        !check_is_on())
        return 0;
    return 1 + atomic_load_explicit(&calls, memory_order_relaxed);
}

/* Called by the library when it starts (CHEMPI_CHECKER_SYMBOL). */
CHEMPI_EXPORT chempi_checker_attach_fn chempi_checker_attach;

void chempi_checker_attach(const struct chempi_checker_door *door)
{
    if (door->version != CHEMPI_CHECKER_VERSION) {
        (void)fprintf(stderr, "libchempi-check is not of the same version as "
                              "the library, and checks nothing\n");
        return;
    }
    check_door = door;
    door->watch_signatures();
    door->set_place(find_call, count_moves, number_call, put_number);
}

/* ---- Fortran's side ---- */

enum { SMALL_PLACES = 64 };

/* Places with arrays that are too small: each is told of once, as long as there
 * is room (K1). */
static struct {
    size_t count;
    const void *from[SMALL_PLACES];
} small;

static bool is_new(const void *from)
{
    size_t i = 0;
    bool is_known;

    check_lock();
    while (i < small.count && small.from[i] != from)
        i++;
    is_known = i < small.count;
    if (!is_known && i < SMALL_PLACES) {
        small.from[i] = from;
        small.count++;
    }
    check_unlock();
    return !is_known;
}

/* libmpifort_abi calls it before an MPI function that is to use more bytes than
 * the array has which the program passes. */
CHEMPI_EXPORT void chempi_checker_too_small(const char *call,
                                            const char *argument,
                                            MPI_Count used, MPI_Count there);

void chempi_checker_too_small(const char *call, const char *argument,
                              MPI_Count used, MPI_Count there)
{
    const void *from = chempi_caller_in_program(CHEMPI_RETURN_ADDRESS());
    char place[CHECK_PLACE_TEXT];

    if (!check_is_on() || !is_new(from))
        return;
    check_place(from, place);
    check_report("%s at %s: count and datatype are %lld bytes of the array in "
                 "argument %s, which has %lld",
                 call, place, (long long)used, argument, (long long)there);
}

/* ---- start ---- */

static void begin(void)
{
    int level = MPI_THREAD_MULTIPLE;

    if (!check_door || check_is_on())
        return;
    (void)PMPI_Query_thread(&level);
    check_has_threads = level == MPI_THREAD_MULTIPLE;
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    check_objects_begin();
    atomic_store(&is_on, true);
}

CHEMPI_EXPORT int MPI_Init(int *argc, char ***argv)
{
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Init);
    rc = PMPI_Init(argc, argv);
    if (rc == MPI_SUCCESS)
        begin();
    check_leave(&call);
    return rc;
}

CHEMPI_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required,
                                  int *provided)
{
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Init_thread);
    rc = PMPI_Init_thread(argc, argv, required, provided);
    if (rc == MPI_SUCCESS)
        begin();
    check_leave(&call);
    return rc;
}

/* ---- end ---- */

/* Take a message that nobody has received; false: there is none. */
static bool take_lost(MPI_Comm comm)
{
    char words[CHECK_WORDS + MPI_MAX_OBJECT_NAME];
    char place[CHEMPI_CHECKER_TEXT];
    char origin[CHEMPI_CHECKER_TEXT + 32] = "";
    MPI_Message message;
    MPI_Status status;
    MPI_Count bytes = 0;
    int flag = 0;
    char *buf;

    (void)PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message,
                       &status);
    if (!flag)
        return false;
    (void)PMPI_Get_count_c(&status, MPI_BYTE, &bytes);
    buf = malloc((size_t)bytes + 1);
    if (!buf)
        check_fail("there is no memory to take a message of %lld bytes that "
                   "was never received",
                   (long long)bytes);
    if (check_door->origin(message, place))
        (void)snprintf(origin, sizeof(origin), "; %s", place);
    check_note("a message of %lld bytes from rank %d with tag %d on %s was "
               "never received%s",
               (long long)bytes, status.MPI_SOURCE, status.MPI_TAG,
               check_comm_words(comm, words, sizeof(words)), origin);
    (void)PMPI_Mrecv_c(buf, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    free(buf);
    return true;
}

static void take_all_lost(void)
{
    MPI_Comm comm;

    for (size_t i = 0; (comm = check_comm_at(i)) != MPI_COMM_NULL; i++)
        while (take_lost(comm))
            ;
}

static bool is_there(MPI_Request *request)
{
    int flag = 0;

    (void)PMPI_Test(request, &flag, MPI_STATUS_IGNORE);
    return flag;
}

/* Ranks that still send are waited for, and their messages taken: else sends
 * to this rank would never be complete. */
static void pause_for(long *pause)
{
    struct timespec t = {.tv_nsec = *pause};

    take_all_lost();
    check_door->listen();
    (void)nanosleep(&t, NULL);
    *pause = *pause * 2 < PAUSE_MAX ? *pause * 2 : PAUSE_MAX;
}

static void meet(const struct check_call *call)
{
    const struct check_coll coll = {
        .comm = MPI_COMM_WORLD, .root = CHECK_NO_ROOT, .op = MPI_OP_NULL};
    struct check_match *match = check_match_begin(call, &coll);
    MPI_Request all_here;
    long pause = PAUSE_FIRST;

    check_stick(true);
    if (match) {
        while (!check_match_is_here(match))
            pause_for(&pause);
        check_match_end(match);
        (void)PMPI_Ibarrier(check_shadow(MPI_COMM_WORLD), &all_here);
        while (!is_there(&all_here))
            pause_for(&pause);
    }
    take_all_lost();
    check_stick(false);
}

static void end(const struct check_call *call)
{
    MPI_Comm shadow;

    /* What libraries free there is not left. */
    check_door->end_self();
    check_match_end_left();
    meet(call);
    check_note_requests();
    check_note_objects();
    shadow = check_shadow(MPI_COMM_WORLD);
    check_print_notes(shadow == MPI_COMM_NULL ? MPI_COMM_WORLD : shadow);
    atomic_store(&is_on, false);
    check_windows_end();
    check_objects_end();
}

CHEMPI_EXPORT int MPI_Finalize(void)
{
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Finalize);
    if (check_is_on())
        end(&call);
    rc = PMPI_Finalize();
    check_leave(&call);
    return rc;
}
