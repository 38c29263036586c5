/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library's progress thread adds to a ping-pong of two ranks: time
 * with it by time without it, in one run of the same processes. Blocks of both
 * kinds take turns, each in a session of its own: the thread is born when a
 * large message is left to itself, and ends with its session.
 *
 * usage: agent alive|owed SIZE ...
 *
 * "alive": nothing is left to be done while the program computes. "owed":
 * large messages, to which nobody answers meanwhile, are under way in both
 * directions.
 */
#include "bench.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1
#define LARGE_TAG 2
#define LARGE (1 << 20) /* bytes */
#define SIZES_MAX 32
#define PAIRS 41 /* of blocks */
#define FIRST 10

struct place {
    MPI_Session session;
    MPI_Comm comm;
    int peer;
};

struct large {
    char *in;
    char *out;
    MPI_Request receive;
};

static void open_place(struct place *p)
{
    MPI_Group group;
    int rank;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &p->session);
    MPI_Group_from_session_pset(p->session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "agent", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &p->comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(p->comm, &rank);
    p->peer = 1 - rank;
}

static void close_place(struct place *p)
{
    MPI_Comm_free(&p->comm);
    MPI_Session_finalize(&p->session);
}

/* Is there such a thread in this process? */
static bool has_agent(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    bool has = false;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300];
        char name[32] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        has = has || (fgets(name, sizeof(name), file) != NULL &&
                      strncmp(name, "chempi-agent", 12) == 0);
        fclose(file);
    }
    if (tasks != NULL)
        closedir(tasks);
    return has;
}

/* A receive that is left to itself, and what it waits for. */
static void post_large(const struct place *p, struct large *large)
{
    MPI_Irecv(large->in, LARGE, MPI_BYTE, p->peer, LARGE_TAG, p->comm,
              &large->receive);
}

static void meet_large(const struct place *p, struct large *large)
{
    MPI_Send(large->out, LARGE, MPI_BYTE, p->peer, LARGE_TAG, p->comm);
    MPI_Wait(&large->receive, MPI_STATUS_IGNORE);
}

static double round_trips(const struct place *p, char *data, int len,
                          int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++) {
        if (p->peer == 0)
            MPI_Recv(data, len, MPI_BYTE, p->peer, TAG, p->comm,
                     MPI_STATUS_IGNORE);
        MPI_Send(data, len, MPI_BYTE, p->peer, TAG, p->comm);
        if (p->peer == 1)
            MPI_Recv(data, len, MPI_BYTE, p->peer, TAG, p->comm,
                     MPI_STATUS_IGNORE);
    }
    return MPI_Wtime() - start;
}

/* So many fill a block; as rank 0 finds. */
static int repeats_for(const struct place *p, char *data, int len,
                       double block_s)
{
    double once = round_trips(p, data, len, FIRST) / FIRST;
    int repeats;

    once = round_trips(p, data, len, FIRST) / FIRST;
    repeats = (int)(block_s / (once > 1e-9 ? once : 1e-9));
    if (repeats < FIRST)
        repeats = FIRST;
    if (p->peer == 1)
        MPI_Send(&repeats, 1, MPI_INT, p->peer, TAG, p->comm);
    else
        MPI_Recv(&repeats, 1, MPI_INT, p->peer, TAG, p->comm,
                 MPI_STATUS_IGNORE);
    return repeats;
}

struct job {
    struct bench bench;
    struct large large;
    bool is_owed; /* all the time */
    int count;
    size_t sizes[SIZES_MAX];
    char *data;
    double took[2][SIZES_MAX][PAIRS]; /* [with the thread] seconds */
};

/* A block of each size. The thread is born by the first receive, and stays. */
static void run_block(struct job *job, bool has, int pair)
{
    struct place p;

    open_place(&p);
    job->bench.rank = 1 - p.peer;
    if (has) {
        post_large(&p, &job->large);
        if (!job->is_owed)
            meet_large(&p, &job->large);
    } else {
        MPI_Sendrecv(job->large.out, LARGE, MPI_BYTE, p.peer, LARGE_TAG,
                     job->large.in, LARGE, MPI_BYTE, p.peer, LARGE_TAG, p.comm,
                     MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < job->count; i++) {
        int len = (int)job->sizes[i];
        int repeats = repeats_for(&p, job->data, len, job->bench.point_s);

        job->took[has][i][pair] =
            round_trips(&p, job->data, len, repeats) / repeats;
    }
    if (has_agent() != has) { /* its name is there by now */
        fprintf(stderr, "the thread %s\n", has ? "is missing" : "is there");
        exit(1);
    }
    if (has && job->is_owed)
        meet_large(&p, &job->large);
    close_place(&p);
}

int main(int argc, char **argv)
{
    const char *ms = getenv("BENCH_POINT_MS");
    static struct job job;
    size_t most = 8;

    job.bench.point_s = (ms != NULL ? strtod(ms, NULL) : 20) / 1e3;
    job.is_owed = argc > 1 && strcmp(argv[1], "owed") == 0;
    for (int i = 2; i < argc && job.count < SIZES_MAX; i++) {
        size_t size = bench_size(argv[i]);

        most = size > most ? size : most;
        job.sizes[job.count++] = size;
    }
    job.large.in = malloc(LARGE);
    job.large.out = calloc(1, LARGE);
    job.data = calloc(1, most);
    if (!job.large.in || !job.large.out || !job.data)
        return 1;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int turn = 0; turn < 2; turn++)
            run_block(&job, (turn + pair) % 2 == 1, pair);
    for (int i = 0; i < job.count; i++) {
        for (int pair = 0; pair < PAIRS; pair++)
            job.took[1][i][pair] /= job.took[0][i][pair];
        bench_point(&job.bench, argv[1], job.sizes[i],
                    bench_median(job.took[1][i], PAIRS), "ratio");
    }
    return 0;
}
