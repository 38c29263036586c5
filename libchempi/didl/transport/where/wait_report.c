/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process waits for; see wait_report.h. */
#define _GNU_SOURCE /* dladdr */
#include "libchempi/didl/transport/where/wait_report.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "libchempi/didl/base/call_site.h"
#include "libchempi/didl/base/crash/stack.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum {
    MOST_FRAMES = 48,
    WORDS_MAX = 128, /* of a process of another world */
    NAMED = 2        /* requests of a call that waits for several */
};

/* ---- which call ---- */

/* Of a walk along the stack, from the inside outwards. */
struct walk {
    const void *library; /* where this library lies */
    const char *call;    /* NULL: not found */
    int frames;
};

/* Nothing but MPI functions is visible in this library. */
static const char *call_named(const char *symbol)
{
    if (!symbol)
        return NULL;
    if (strncmp(symbol, "PMPI_", 5) == 0)
        return symbol + 1;
    return strncmp(symbol, "MPI_", 4) == 0 ? symbol : NULL;
}

/* The first frame is this library's; the walk ends behind the last one that
 * is. */
static _Unwind_Reason_Code look_at(struct _Unwind_Context *frame, void *arg)
{
    struct walk *walk = arg;
    /* Where the frame goes on, which may be behind its function. */
    const uintptr_t address = (uintptr_t)_Unwind_GetIP(frame) - 1;
    Dl_info info;

    if (!dladdr((const void *)address, &info))
        return _URC_END_OF_STACK;
    if (!walk->library)
        walk->library = info.dli_fbase;
    if (info.dli_fbase != walk->library)
        return _URC_END_OF_STACK;
    if (!walk->call)
        walk->call = call_named(info.dli_sname);
    return ++walk->frames == MOST_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/*
 * The innermost MPI function on this thread's stack. No frame outside of it is
 * read: those of the program need not be such that anybody can read them, and
 * its stack may end right behind the call.
 */
static void find_call(struct walk *walk)
{
    *walk = (struct walk){0};
    (void)_Unwind_Backtrace(look_at, walk);
    if (!walk->call)
        walk->call = "an MPI call";
}

/* Calls that do not wait, but that programs wait with. */
static bool is_test(const char *call)
{
    static const char *const tests[] = {"MPI_Test", "MPI_Iprobe", "MPI_Improbe",
                                        "MPI_Request_get_status",
                                        "MPI_Parrived"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(tests); i++)
        if (strncmp(call, tests[i], strlen(tests[i])) == 0)
            return true;
    return false;
}

/* ---- words ---- */

void chempi_wait_report_put(struct chempi_wait_report *w, const char *fmt, ...)
{
    const size_t room = sizeof(w->text) - w->len;
    va_list args;
    int n;

    if (w->is_mute)
        return;
    va_start(args, fmt);
    n = vsnprintf(w->text + w->len, room, fmt, args);
    va_end(args);
    if (n > 0)
        w->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* What the user knows of a communicator that the library uses for its own. */
static const struct chempi_comm *shown(const struct chempi_comm *comm)
{
    while (comm->serves)
        comm = comm->serves;
    return comm;
}

void chempi_wait_report_put_comm(struct chempi_wait_report *w,
                                 const struct chempi_comm *comm)
{
    if (!comm)
        return;
    comm = shown(comm);
    if (comm->name[0])
        chempi_wait_report_put(w, " of %s", comm->name);
    else
        chempi_wait_report_put(w, " of a communicator of %u ranks", comm->size);
}

/* Whom nobody else can stand in for is noted once. */
static void note_process(struct chempi_wait_report *w, uint32_t proc)
{
    for (uint32_t i = 0; i < w->count; i++)
        if (w->procs[i] == proc)
            return;
    if (w->count < CHEMPI_HERE_FOR_MAX)
        w->procs[w->count++] = proc;
}

/* " on node a2", with the rank that the launcher knows, if it is another. */
static void put_process(struct chempi_wait_report *w, uint32_t rank,
                        uint32_t proc)
{
    char words[WORDS_MAX];

    if (chempi_foreign_is(proc)) {
        chempi_foreign_words(proc, words, sizeof(words));
        if (rank == proc)
            chempi_wait_report_put(w, " %s", words);
        else
            chempi_wait_report_put(w, " rank %u (%s)", rank, words);
        w->is_moving = true; /* what that one waits for, nobody here hears */
        return;
    }
    note_process(w, proc);
    chempi_wait_report_put(w, " rank %u", rank);
    if (rank != proc)
        chempi_wait_report_put(w, " (%u in MPI_COMM_WORLD)", proc);
    chempi_wait_report_put(w, " on node %s", chempi_foreign_node_name(proc));
}

static bool is_rank(const struct chempi_comm *comm, int rank)
{
    return rank >= 0 && (uint32_t)rank < comm->remote_size;
}

static void put_peer(struct chempi_wait_report *w,
                     const struct chempi_comm *comm, const char *way, int rank,
                     int tag)
{
    chempi_wait_report_put(w, " %s", way);
    if (is_rank(comm, rank))
        put_process(w, (uint32_t)rank, chempi_comm_proc(comm, (uint32_t)rank));
    else {
        w->is_choice = true;
        chempi_wait_report_put(w, " any rank");
    }
    if (tag == MPI_ANY_TAG)
        chempi_wait_report_put(w, " with any tag");
    else
        chempi_wait_report_put(w, " with tag %d", tag);
}

void chempi_wait_report_put_source(struct chempi_wait_report *w,
                                   const struct chempi_comm *comm, int source,
                                   int tag)
{
    put_peer(w, comm, "from", source, tag);
}

/* ", for rank 3 on node a2", once where it is sent to and received from. */
static void put_partner(struct chempi_wait_report *w, uint32_t proc)
{
    const size_t at = w->len;
    size_t len;

    chempi_wait_report_put(w, ", for");
    put_process(w, proc, proc);
    len = w->len - at;
    if (len <= at && memcmp(w->text + at, w->text + at - len, len) == 0) {
        w->len = at;
        w->text[at] = '\0';
    }
}

/* A message of the user's, or one of those that an operation consists of. */
static void put_message(struct chempi_wait_report *w,
                        const struct chempi_request *req)
{
    const bool is_send = req->kind == CHEMPI_REQUEST_SEND;
    const int rank = is_send || req->source < 0 ? req->peer_rank : req->source;

    w->is_moving |= chempi_request_is_filling(req);
    if (req->ops->awaits)
        req->ops->awaits(w, req);
    if (!is_send && req->kind != CHEMPI_REQUEST_RECV) {
        w->is_choice = true; /* whom it needs is not noted */
        return;
    }
    if (!req->comm) {
        chempi_wait_report_put(w, " to");
        put_process(w, req->peer->proc, req->peer->proc);
    } else if (req->context % CHEMPI_CONTEXT_STEP == CHEMPI_CONTEXT_PT2PT) {
        put_peer(w, req->comm, is_send ? "to" : "from", rank, req->peer_tag);
    } else if (is_rank(req->comm, rank)) {
        put_partner(w, chempi_comm_proc(req->comm, (uint32_t)rank));
    }
}

/* Of requests that other calls have begun, and that are named by these. */
static bool is_wait(const struct chempi_wait_report *w)
{
    return strncmp(w->call, "MPI_Wait", 8) == 0;
}

void chempi_wait_report_put_request(struct chempi_wait_report *w,
                                    const void *object)
{
    const struct chempi_request *req = object;

    if (is_wait(w) && !(req->comm && req->comm->is_unseen))
        chempi_wait_report_put(w, " for %s", chempi_request_call(req));
    chempi_wait_report_put_comm(w, req->comm);
    put_message(w, req);
}

void chempi_wait_report_put_one(struct chempi_wait_report *w,
                                const struct chempi_request *req, int index)
{
    w->is_mute = index >= NAMED;
    if (index > 0 && is_wait(w))
        chempi_wait_report_put(w, ";");
    if (index == 0 || is_wait(w))
        chempi_wait_report_put_request(w, req);
    else
        put_message(w, req);
    w->is_mute = false;
}

void chempi_wait_report_put_missing(struct chempi_wait_report *w,
                                    const struct chempi_comm *comm, int rank,
                                    int index)
{
    const uint32_t proc = chempi_comm_proc(comm, (uint32_t)rank);

    w->is_mute = index >= NAMED;
    chempi_wait_report_put(w, "%s", index ? "," : ", for");
    put_process(w, proc, proc);
    w->is_mute = false;
}

void chempi_wait_report_put_helper(struct chempi_wait_report *w,
                                   const struct chempi_comm *comm, int rank,
                                   int index)
{
    const uint32_t count = w->count;

    chempi_wait_report_put_missing(w, comm, rank, index);
    w->count = count;
}

void chempi_wait_report_put_rest(struct chempi_wait_report *w, int count)
{
    if (count > NAMED)
        chempi_wait_report_put(w, "; and %d more", count - NAMED);
}

/* Would it go on when only some of these did their part? */
static bool needs_all(const struct chempi_wait_report *w)
{
    static const char *const choosers[] = {"MPI_Waitany", "MPI_Waitsome"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(choosers); i++)
        if (strncmp(w->call, choosers[i], strlen(choosers[i])) == 0)
            return w->count == 1 && !w->is_choice;
    return true;
}

/* Messages that have come, by all devices. */
static uint64_t count_received_in(const struct chempi_lane *lane)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < chempi_conn_device_count(lane); i++)
        for (uint32_t p = 0; p < CHEMPI_DEV_PROTOCOLS_MAX; p++)
            sum += chempi_conn_device(lane, i)->received[p].messages;
    return sum;
}

static uint64_t count_received(void)
{
    uint64_t sum = count_received_in(&chempi_lane_main);

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        sum += count_received_in(lane);
        chempi_lane_drop(lane);
    }
    return sum;
}

static bool is_any_filling(void)
{
    bool is = chempi_request_is_any_filling(&chempi_lane_main);

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        is |= chempi_request_is_any_filling(lane);
        chempi_lane_drop(lane);
    }
    return is;
}

/* FNV-1a, of 64 bits at once. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

/*
 * What tells this wait from every other (`moves` of chempi_client_wait): the
 * program's calls, the messages that have come, and what is still waited for,
 * in words from `start` on and in ranks. A message on its way into a receive
 * needs no call to go on.
 */
static uint64_t moves_of(const struct chempi_wait_report *w, size_t start)
{
    uint64_t hash = chempi_call_site_moves();

    if (hash == 0 || w->is_moving || is_any_filling())
        return 0;
    hash = mix(hash, count_received());
    for (size_t i = start; i < w->len; i++)
        hash = mix(hash, (unsigned char)w->text[i]);
    for (uint32_t i = 0; i < w->count; i++)
        hash = mix(hash, w->procs[i]);
    return hash ? hash : 1;
}

/* The call, and its place in the source if that is known. */
static void put_call(struct chempi_wait_report *w, const struct walk *walk,
                     enum chempi_wait_depth depth)
{
    char place[CHEMPI_CALL_SITE_TEXT] = "";

    if (!(depth == CHEMPI_WAIT_CALL ? chempi_call_site_function(&w->call)
                                    : chempi_call_site_find(&w->call, place)))
        w->call = walk->call;
    chempi_wait_report_put(w, "%s%s%s", w->call, *place ? " at " : "", place);
}

void chempi_wait_report_tell(chempi_wait_report_fn *words, const void *object,
                             enum chempi_wait_depth depth)
{
    struct walk walk;
    struct chempi_wait_report w = {.call = NULL};
    char site[CHEMPI_HERE_SITE_MAX] = "";
    struct chempi_client_wait wait = {.text = w.text, .site = site};
    size_t start;

    find_call(&walk);
    put_call(&w, &walk, depth);
    start = w.len;
    if (words)
        words(&w, object);
    wait.is_waiting = !is_test(w.call);
    wait.moves = moves_of(&w, start);
    if (needs_all(&w)) {
        wait.count = w.count;
        memcpy(wait.ranks, w.procs, sizeof(wait.ranks));
    }
    wait.has_more = depth == CHEMPI_WAIT_STACK;
    chempi_daemon_here(&wait);
    if (depth != CHEMPI_WAIT_STACK)
        return;
    chempi_stack_put(site, sizeof(site), CHEMPI_HERE_CALLS_MAX);
    wait.has_more = false;
    chempi_daemon_here(&wait);
}
