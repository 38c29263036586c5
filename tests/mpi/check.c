/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI test programs' common part; see check.h. */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRINTED_MAX 10

static struct {
    int rank;
    int size;
    atomic_int failures;
} check;

static void remember_world(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check.size);
}

void check_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    remember_world();
}

void check_start_thread(int *argc, char ***argv, int level)
{
    int provided = 0;

    MPI_Init_thread(argc, argv, level, &provided);
    remember_world();
    if (provided < level)
        check_skip("thread level is not provided");
}

void check_skip(const char *why)
{
    if (check.rank == 0)
        printf("skipped: %s\n", why);
    fflush(stdout);
    MPI_Finalize();
    exit(CHECK_SKIPPED);
}

void check_need(int ranks)
{
    CHECK_OR_DIE(check.size >= ranks, "needs %d ranks", ranks);
}

int check_rank(void)
{
    return check.rank;
}

int check_size(void)
{
    return check.size;
}

MPI_Group check_group_of(int rank)
{
    MPI_Group all;
    MPI_Group group;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &rank, &group);
    MPI_Group_free(&all);
    return group;
}

int *check_nodes(void)
{
    int *nodes = check_alloc(sizeof(int) * (size_t)check.size);
    MPI_Comm node;
    int mine = check.rank;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    MPI_Bcast(&mine, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    MPI_Allgather(&mine, 1, MPI_INT, nodes, 1, MPI_INT, MPI_COMM_WORLD);
    return nodes;
}

/* By no collective operation on the world: its memory is not made yet. */
bool check_is_one_node(void)
{
    MPI_Comm node;
    int size;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    return size == check.size;
}

void check_that(bool good, const char *file, int line, const char *format, ...)
{
    if (good)
        return;
    if (atomic_fetch_add(&check.failures, 1) >= PRINTED_MAX)
        return;
    char words[512];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, check.rank, words);
}

int check_class(int code)
{
    int class = -1;

    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS, "class of %d", code);
    return class;
}

int check_finish(void)
{
    int mine = atomic_load(&check.failures);
    int all = 0;

    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (check.rank == 0 && all == 0)
        printf("ok\n");
    if (check.rank == 0 && all != 0)
        printf("%d checks failed\n", all);
    fflush(stdout);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}

size_t check_available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    size_t kib = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = (size_t)strtoull(line + 13, NULL, 10);
    fclose(file);
    return kib * 1024;
}

void *check_alloc(size_t len)
{
    void *data = calloc(1, len > 0 ? len : 1);

    CHECK_OR_DIE(data != NULL, "no memory for %zu bytes", len);
    return data;
}

uint64_t check_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x9E3779B97F4A7C15) + b;

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t check_random(uint64_t *state)
{
    *state += 1;
    return check_mix(*state, UINT64_C(0xD1B54A32D192ED03));
}

/* Eight bytes of a seed's stream; the low byte comes first in memory. */
static uint64_t stream_word(uint64_t seed, size_t word)
{
    return (seed + word) * UINT64_C(0x2545F4914F6CDD1D) ^ (seed >> 7);
}

void check_fill(void *data, size_t len, uint64_t seed)
{
    unsigned char *bytes = data;

    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = stream_word(seed, at / 8);
        memcpy(bytes + at, &word, len - at < 8 ? len - at : 8);
    }
}

size_t check_differs(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *bytes = data;

    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = stream_word(seed, at / 8);
        size_t part = len - at < 8 ? len - at : 8;
        if (memcmp(bytes + at, &word, part) != 0)
            return at;
    }
    return SIZE_MAX;
}

long check_arg(int argc, char **argv, int i, long otherwise)
{
    return i < argc ? strtol(argv[i], NULL, 0) : otherwise;
}

void check_compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const struct check_affine *f = in;
    struct check_affine *g = inout;

    (void)type;
    for (int i = 0; i < *len; i++)
        g[i] = (struct check_affine){f[i].a * g[i].a, f[i].b * g[i].a + g[i].b};
}

void check_add_alone(int target, MPI_Aint at, MPI_Win win)
{
    int64_t value;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Get(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    value++;
    MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    MPI_Win_unlock(target, win);
}

void check_receive_late(const char *file, size_t len, int count, int tag)
{
    char *data = check_alloc(len);

    while (access(file, F_OK) != 0)
        (void)poll(NULL, 0, 5); /* without MPI */
    for (int i = 0; i < count; i++) {
        MPI_Recv(data, (int)len, MPI_BYTE, 0, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK(check_differs(data, len, (uint64_t)i) == SIZE_MAX,
              "message %d is not what was sent", i);
    }
    free(data);
}

void check_run_threads(int count, void *(*run)(void *arg), void *args,
                       size_t size)
{
    pthread_t *threads = check_alloc((size_t)count * sizeof(*threads));

    for (int t = 0; t < count; t++)
        CHECK_OR_DIE(pthread_create(&threads[t], NULL, run,
                                    (char *)args + (size_t)t * size) == 0,
                     "no thread");
    for (int t = 0; t < count; t++)
        pthread_join(threads[t], NULL);
    free(threads);
}

bool check_is_asleep(int pid)
{
    char path[64];
    char state = '?';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    CHECK_OR_DIE(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1,
                 "process %d", pid);
    (void)fclose(file);
    return state == 'S';
}

void check_await_sleep(int pid)
{
    while (!check_is_asleep(pid))
        (void)sched_yield();
}

static struct {
    const char *name;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
} watched;

void check_watch(const char *name)
{
    int provided;
    int index;
    int count;

    watched.name = name;
    CHECK_OR_DIE(
        !MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) &&
            !MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) &&
            !MPI_T_pvar_session_create(&watched.session) &&
            !MPI_T_pvar_handle_alloc(watched.session, index, NULL,
                                     &watched.handle, &count) &&
            !MPI_T_pvar_start(watched.session, watched.handle),
        "%s cannot be counted", name);
}

unsigned long long check_watched(void)
{
    unsigned long long count = 0;

    CHECK(!MPI_T_pvar_read(watched.session, watched.handle, &count),
          "%s cannot be read", watched.name);
    return count;
}

void check_was_used(void)
{
    CHECK(check_watched() > 0, "%s: 0", watched.name);
    MPI_T_pvar_handle_free(watched.session, &watched.handle);
    MPI_T_pvar_session_free(&watched.session);
    MPI_T_finalize();
}

void check_pass_port(bool accepts, const char *fifo,
                     char name[MPI_MAX_PORT_NAME])
{
    FILE *file;

    if (check_rank() != 0)
        return;
    CHECK_OR_DIE(mkfifo(fifo, 0600) == 0 || errno == EEXIST, "mkfifo");
    file = fopen(fifo, accepts ? "w" : "r");
    CHECK_OR_DIE(file != NULL, "open %s", fifo);
    if (accepts)
        CHECK_OR_DIE(fputs(name, file) >= 0, "write the name");
    else
        CHECK_OR_DIE(fgets(name, MPI_MAX_PORT_NAME, file) != NULL,
                     "read the name");
    CHECK_OR_DIE(fclose(file) == 0, "close %s", fifo);
}
