/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How one-sided operations reach other ranks: told from counters of operations
 * that were carried out, not from what a table intends.
 */
#include "programs/chempi-info/windows.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOWS = 3,
    CALLS = 4,
    SIZES = 3,
    REACHES = 4,
    TRAFFIC_MAX = 256, /* counters of bytes and of registrations */
    TEXT_MAX = 128,
    LARGEST = 1 << 20 /* bytes */
};

static const int sizes[SIZES] = {8, 65536, LARGEST};
static const char *const size_names[SIZES] = {"8 bytes", "64 KiB", "1 MiB"};
static const char *const window_names[WINDOWS] = {
    "MPI_Win_allocate", "MPI_Win_create", "MPI_Win_create_dynamic"};
static const char *const call_names[CALLS] = {
    "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op"};
static const char *const reach_names[REACHES] = {"self", "node", "attach",
                                                 "message"};

static const char *const reach_words[REACHES] = {
    "own memory", "loads and stores", "cross-memory attach", NULL};

/* A counter of what the library does below windows. */
struct counter {
    char name[TEXT_MAX];
    MPI_T_pvar_handle handle;
    bool is_registration;
};

struct probe {
    MPI_T_pvar_session session;
    struct counter counters[TRAFFIC_MAX];
    int counter_count;
    MPI_T_pvar_handle reaches[REACHES]; /* of the window that is tried */
    MPI_Win win;
    MPI_Aint base; /* of the target */
    char *buffer;  /* [LARGEST] */
};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

static unsigned long long value(const struct probe *p, MPI_T_pvar_handle handle)
{
    unsigned long long v = 0;

    (void)MPI_T_pvar_read(p->session, handle, &v);
    return v;
}

static void watch(struct probe *p, int index)
{
    struct counter *c = &p->counters[p->counter_count];
    int len = TEXT_MAX;
    int bind = 0;
    int count = 0;

    if (MPI_T_pvar_get_info(index, c->name, &len, NULL, NULL, NULL, NULL, NULL,
                            NULL, &bind, NULL, NULL, NULL) != MPI_SUCCESS)
        return;
    c->is_registration = ends_with(c->name, "_cache_hits") ||
                         ends_with(c->name, "_cache_misses");
    if (!c->is_registration && !ends_with(c->name, "_bytes_sent") &&
        !ends_with(c->name, "_bytes_received"))
        return;
    if (bind == MPI_T_BIND_NO_OBJECT &&
        MPI_T_pvar_handle_alloc(p->session, index, NULL, &c->handle, &count) ==
            MPI_SUCCESS)
        p->counter_count++;
}

static int watch_all(struct probe *p)
{
    int count = 0;
    int rc = MPI_T_pvar_session_create(&p->session);

    if (rc == MPI_SUCCESS)
        rc = MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && p->counter_count < TRAFFIC_MAX; i++)
        watch(p, i);
    return rc == MPI_SUCCESS ? 0 : -1;
}

static int watch_window(struct probe *p)
{
    for (int i = 0; i < REACHES; i++) {
        char name[TEXT_MAX];
        int index = -1;
        int count = 0;

        (void)snprintf(name, sizeof(name), "chempi_rma_window_%s_operations",
                       reach_names[i]);
        if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) !=
                MPI_SUCCESS ||
            MPI_T_pvar_handle_alloc(p->session, index, &p->win, &p->reaches[i],
                                    &count) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

static void forget_window(struct probe *p)
{
    for (int i = 0; i < REACHES; i++)
        (void)MPI_T_pvar_handle_free(p->session, &p->reaches[i]);
}

/* ---- one operation ---- */

static void operate(const struct probe *p, int call, int rank, int len)
{
    const int64_t one = 1;
    int64_t old;

    switch (call) {
    case 0:
        MPI_Put(p->buffer, len, MPI_BYTE, rank, p->base, len, MPI_BYTE, p->win);
        break;
    case 1:
        MPI_Get(p->buffer, len, MPI_BYTE, rank, p->base, len, MPI_BYTE, p->win);
        break;
    case 2:
        MPI_Accumulate(p->buffer, len / 8, MPI_INT64_T, rank, p->base, len / 8,
                       MPI_INT64_T, MPI_SUM, p->win);
        break;
    default:
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, rank, p->base, MPI_SUM,
                         p->win);
        break;
    }
    MPI_Win_flush(rank, p->win);
}

/* chempi_tcp_eager_bytes_sent -> "tcp eager" */
static void put_protocol(const char *name, char *out, size_t room)
{
    const char *from = strchr(name, '_');
    char *c;

    (void)snprintf(out, room, "%s", from ? from + 1 : name);
    c = strstr(out, "_bytes_");
    if (c)
        *c = '\0';
    c = strchr(out, '_');
    if (c)
        *c = ' ';
    for (; c && *c; c++)
        if (*c == '_')
            *c = '-';
}

/* The protocol that has carried most, and whether memory was registered. */
static void put_messages(const struct probe *p, char *out, size_t room)
{
    const struct counter *most = NULL;
    unsigned long long bytes = 0;
    bool is_registered = false;
    char protocol[TEXT_MAX] = "";

    for (int i = 0; i < p->counter_count; i++) {
        unsigned long long n = value(p, p->counters[i].handle);

        if (p->counters[i].is_registration) {
            is_registered |= n > 0;
        } else if (n > bytes) {
            bytes = n;
            most = &p->counters[i];
        }
    }
    if (most)
        put_protocol(most->name, protocol, sizeof(protocol));
    (void)snprintf(out, room, "%s%s", protocol,
                   is_registered ? ", registered" : "");
}

/* The first time layouts are told and connections made: that does not count.
 */
static void try_one(struct probe *p, int call, int rank, int len, char *out,
                    size_t room)
{
    operate(p, call, rank, len);
    (void)MPI_T_pvar_stop(p->session, MPI_T_PVAR_ALL_HANDLES);
    (void)MPI_T_pvar_reset(p->session, MPI_T_PVAR_ALL_HANDLES);
    (void)MPI_T_pvar_start(p->session, MPI_T_PVAR_ALL_HANDLES);
    operate(p, call, rank, len);
    out[0] = '\0';
    for (int i = 0; i < REACHES; i++) {
        if (value(p, p->reaches[i]) == 0)
            continue;
        if (reach_words[i])
            (void)snprintf(out, room, "%s", reach_words[i]);
        else
            put_messages(p, out, room);
    }
}

/* ---- all ---- */

static void put_cell(const char *words, bool is_last)
{
    if (is_last)
        printf("  %s\n", words);
    else
        printf("  %-28s", words);
}

static void print_window(struct probe *p, int window, int rank)
{
    for (int call = 0; call < CALLS; call++) {
        const int last = call == CALLS - 1 ? 0 : SIZES - 1;

        printf("  %-22s  %-16s", call ? "" : window_names[window],
               call_names[call]);
        for (int i = 0; i <= last; i++) {
            char words[2 * TEXT_MAX];

            try_one(p, call, rank, sizes[i], words, sizeof(words));
            put_cell(words, i == last);
        }
    }
}

/* Also what others need of it; *memory is freed with it. */
static void make_window(struct probe *p, int window, char **memory,
                        MPI_Aint *address)
{
    *memory = NULL;
    *address = 0;
    if (window == 0) {
        void *base;

        MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                         &p->win);
        return;
    }
    *memory = calloc(1, LARGEST);
    if (!*memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (window == 1) {
        MPI_Win_create(*memory, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &p->win);
        return;
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &p->win);
    MPI_Win_attach(p->win, *memory, LARGEST);
    MPI_Get_address(*memory, address);
}

/* Rank 0 works; the others wait in MPI. */
static int try_window(struct probe *p, int window, int target)
{
    char *memory;
    MPI_Aint mine;
    int me;
    int rc = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    make_window(p, window, &memory, &mine);
    p->base = mine;
    MPI_Bcast(&p->base, 1, MPI_AINT, target, MPI_COMM_WORLD);
    if (me == 0) {
        rc = watch_window(p);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, p->win);
        if (rc == 0)
            print_window(p, window, target);
        MPI_Win_unlock_all(p->win);
        forget_window(p);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (window == WINDOWS - 1)
        MPI_Win_detach(p->win, memory);
    MPI_Win_free(&p->win);
    free(memory);
    return rc;
}

static void print_head(int target)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    char theirs[MPI_MAX_PROCESSOR_NAME] = "";
    int len;
    int me;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Get_processor_name(mine, &len);
    memcpy(theirs, mine, sizeof(mine));
    MPI_Bcast(theirs, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, target, MPI_COMM_WORLD);
    if (me != 0)
        return;
    if (target <= 1)
        printf("A device with a protocol means messages to the target's "
               "process; \"registered\",\nthat memory was registered with an "
               "adapter for them.\n\n");
    printf("%srank 0 on %s to rank %d on %s\n  %-22s  %-16s",
           target > 1 ? "\n" : "", mine, target, theirs, "", "");
    for (int i = 0; i < SIZES; i++)
        put_cell(size_names[i], i == SIZES - 1);
}

int chempi_info_windows(void)
{
    static struct probe p;
    int provided;
    int size;
    int rc;

    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    p.buffer = calloc(1, LARGEST);
    if (!p.buffer)
        MPI_Abort(MPI_COMM_WORLD, 1);
    rc = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) ? -1 : watch_all(&p);
    for (int target = size > 1; target < size; target++) {
        print_head(target);
        for (int window = 0; window < WINDOWS; window++)
            if (try_window(&p, window, target) != 0)
                rc = -1;
    }
    free(p.buffer);
    MPI_Finalize();
    (void)MPI_T_finalize();
    return rc;
}
