/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions, and nothing but sessions: started and finished many times, process
 * sets, groups and communicators made from them, error handlers, buffers.
 *
 *   sessions [rounds]        without MPI_Init
 *   sessions [rounds] some   ranks with odd numbers never use MPI
 *   sessions [rounds] world  before, beside and after the world model
 *   sessions [rounds] threads  several at a time, each with its own
 *   sessions [rounds] beside  the same, and the world model in one more
 *   sessions [rounds] exit   leaves one open: the job must end badly
 *   sessions [rounds] after  the same, but for MPI_Init and MPI_Finalize
 *   sessions [rounds] comm   uses MPI_COMM_WORLD, which is not there
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
    int rank; /* by the launcher, which is right before MPI is asked */
    int size;
    atomic_int failures;
} self;

/* check.c sums failures over MPI_COMM_WORLD, which is not there. */
#define EXPECT(good, ...)                                                      \
    do {                                                                       \
        if (!(good)) {                                                         \
            self.failures++;                                                   \
            printf("rank %d, line %d: ", self.rank, __LINE__);                 \
            printf(__VA_ARGS__);                                               \
            printf("\n");                                                      \
        }                                                                      \
    } while (0)

static int number_in_env(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

static MPI_Session open_session(const char *level)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info = MPI_INFO_NULL;

    if (level) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "thread_level", level);
    }
    EXPECT(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS,
           "MPI_Session_init fails");
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return session;
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;

    EXPECT(MPI_Group_from_session_pset(session, set, &group) == MPI_SUCCESS,
           "no group from %s", set);
    EXPECT(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL,
                                      MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS,
           "no communicator from %s", set);
    MPI_Group_free(&group);
    return comm;
}

/* Something of every kind that needs all members. */
static void talk(MPI_Comm comm)
{
    enum { LEN = 300000 };
    char *out = check_alloc(LEN);
    char *in = check_alloc(LEN);
    int rank;
    int size;
    int sum = -1;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == size * (size - 1) / 2, "sum of ranks is %d", sum);
    for (int len = 1; len <= LEN; len *= 60) {
        int from = (rank + size - 1) % size;

        check_fill(out, (size_t)len, (uint64_t)rank);
        MPI_Sendrecv(out, len, MPI_BYTE, (rank + 1) % size, 5, in, len,
                     MPI_BYTE, from, 5, comm, MPI_STATUS_IGNORE);
        EXPECT(check_differs(in, (size_t)len, (uint64_t)from) == SIZE_MAX,
               "wrong data of %d bytes from %d", len, from);
    }
    MPI_Barrier(comm);
    free(in);
    free(out);
}

/* ---- process sets ---- */

static void look_at_set(MPI_Session session, int n)
{
    char name[MPI_MAX_PSET_NAME_LEN] = "";
    char cut[6] = "xxxxx";
    char text[32] = "";
    int len = 0;
    int cut_len = sizeof(cut);
    int flag = 0;
    int size = -1;
    int rank = MPI_UNDEFINED;
    int text_len = sizeof(text);
    MPI_Info info = MPI_INFO_NULL;
    MPI_Group group = MPI_GROUP_NULL;

    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &len, NULL);
    EXPECT(len > 6 && len <= MPI_MAX_PSET_NAME_LEN, "length %d", len);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &len, name);
    EXPECT((int)strlen(name) + 1 == len, "length %d of \"%s\"", len, name);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &cut_len, cut);
    EXPECT(cut_len == len && strlen(cut) == 5 && !strncmp(cut, name, 5),
           "cut to \"%s\", length %d", cut, cut_len);
    EXPECT(MPI_Session_get_pset_info(session, name, &info) == MPI_SUCCESS,
           "no info on %s", name);
    MPI_Info_get_string(info, "mpi_size", &text_len, text, &flag);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, name, &group);
    MPI_Group_size(group, &size);
    MPI_Group_rank(group, &rank);
    EXPECT(flag && atoi(text) == size, "%s: size %d, by its info %s", name,
           size, text);
    EXPECT(rank >= 0 && rank < size, "not a member of %s", name);
    if (n == 0)
        EXPECT(strcmp(name, "mpi://WORLD") == 0 && size == self.size &&
                   rank == self.rank,
               "set 0 is %s of %d", name, size);
    if (n == 1)
        EXPECT(strcmp(name, "mpi://SELF") == 0 && size == 1, "set 1 is %s",
               name);
    if (n == 2)
        EXPECT(strncmp(name, "chempi://node/", 14) == 0 &&
                   size == number_in_env("CHEMPI_LOCAL_SIZE", 1) &&
                   rank == number_in_env("CHEMPI_LOCAL_RANK", 0),
               "set 2 is %s of %d", name, size);
    if (n > 2)
        EXPECT(strncmp(name, "chempi://network/", 17) == 0, "set %d is %s", n,
               name);
    MPI_Group_free(&group);
}

static void process_sets(void)
{
    MPI_Session session = open_session(NULL);
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Group again = MPI_GROUP_NULL;
    int count = 0;
    int result = -1;
    int len = 0;

    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    EXPECT(count >= 3, "%d process sets", count);
    for (int i = 0; i < count; i++)
        look_at_set(session, i);
    EXPECT(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &len,
                                    NULL) != MPI_SUCCESS,
           "there is a set beyond the last");
    EXPECT(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group) !=
               MPI_SUCCESS,
           "a group from a set that does not exist");
    EXPECT(group == MPI_GROUP_NULL, "the group is not null");
    MPI_Group_from_session_pset(session, "mpi://world", &group);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &again);
    MPI_Group_compare(group, again, &result);
    EXPECT(result == MPI_IDENT, "the case of a name matters");
    MPI_Group_free(&group);
    MPI_Group_free(&again);
    MPI_Session_finalize(&session);
}

/* ---- hints, levels, error handlers ---- */

static void expect_hint(MPI_Session session, const char *key, const char *want)
{
    MPI_Info info = MPI_INFO_NULL;
    char text[128] = "";
    int len = sizeof(text);
    int flag = 0;

    MPI_Session_get_info(session, &info);
    MPI_Info_get_string(info, key, &len, text, &flag);
    EXPECT(flag && strcmp(text, want) == 0, "%s is \"%s\", not \"%s\"", key,
           text, want);
    MPI_Info_free(&info);
}

static void hints(void)
{
    MPI_Session session = open_session("MPI_THREAD_MULTIPLE");
    MPI_Session bad = MPI_SESSION_NULL;
    MPI_Info info;
    int error;

    expect_hint(session, "thread_level", "MPI_THREAD_MULTIPLE");
    expect_hint(session, "mpi_memory_alloc_kinds", "system,mpi");
    MPI_Session_finalize(&session);
    EXPECT(session == MPI_SESSION_NULL, "the handle stays after finalize");

    session = open_session("MPI_THREAD_MULTIPLE");
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &bad);
    expect_hint(bad, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_finalize(&bad);
    MPI_Session_finalize(&session);

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "cuda,mpi:alloc_mem");
    MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    expect_hint(session, "mpi_memory_alloc_kinds", "system,mpi,mpi:alloc_mem");
    MPI_Info_set(info, "thread_level", "many");
    error = MPI_Session_init(info, MPI_ERRORS_RETURN, &bad);
    EXPECT(error == MPI_ERR_INFO_VALUE && bad == MPI_SESSION_NULL,
           "a wrong thread level gives %d", error);
    MPI_Info_free(&info);
    MPI_Session_finalize(&session);
}

static struct {
    int calls;
    int class;
    MPI_Session session;
} handled;

static void handler(MPI_Session *session, int *error, ...)
{
    handled.calls++;
    handled.session = *session;
    MPI_Error_class(*error, &handled.class);
}

static void error_handlers(void)
{
    MPI_Session session = open_session(NULL);
    MPI_Errhandler own;
    MPI_Errhandler got = MPI_ERRHANDLER_NULL;
    MPI_Group group;
    int error;

    MPI_Session_get_errhandler(session, &got);
    EXPECT(got == MPI_ERRORS_RETURN, "not the handler that was given");
    MPI_Errhandler_free(&got);
    MPI_Session_create_errhandler(handler, &own);
    MPI_Session_set_errhandler(session, own);
    MPI_Session_get_errhandler(session, &got);
    EXPECT(got == own, "not the handler that was set");
    MPI_Errhandler_free(&got);
    error = MPI_Group_from_session_pset(session, "none", &group);
    EXPECT(error == MPI_ERR_ARG && handled.calls == 1 &&
               handled.class == MPI_ERR_ARG && handled.session == session,
           "handler called %d times, class %d", handled.calls, handled.class);
    error = MPI_Group_from_session_pset(session, NULL, &group);
    EXPECT(error == MPI_ERR_ARG && handled.calls == 2, "NULL as name");
    error = MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    EXPECT(error == MPI_SUCCESS && handled.calls == 3 &&
               handled.class == MPI_ERR_OTHER,
           "calling the handler");
    MPI_Session_finalize(&session);

    /* In a call that has no session yet, the handler it was given. */
    error = MPI_Session_init(MPI_INFO_NULL, own, &session);
    EXPECT(error == MPI_SUCCESS && handled.calls == 3, "init fails");
    error = MPI_Group_from_session_pset(session, "mpi://none", &group);
    EXPECT(error == MPI_ERR_ARG && handled.calls == 4, "a handler from init");
    MPI_Errhandler_free(&own);
    MPI_Session_finalize(&session);
}

/* ---- the world is not there ---- */

static void no_world(void)
{
    MPI_Session session = open_session(NULL);
    MPI_Comm comm = comm_of(session, "mpi://SELF", "no world");
    int flag = -1;

    MPI_Initialized(&flag);
    EXPECT(!flag, "MPI_Initialized says yes");
    MPI_Finalized(&flag);
    EXPECT(!flag, "MPI_Finalized says yes");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(MPI_Comm_rank(comm, NULL) == MPI_ERR_ARG, "NULL is taken");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

/* ---- buffers ---- */

static void buffers(void)
{
    MPI_Session session = open_session(NULL);
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "buffers");
    MPI_Request request = MPI_REQUEST_NULL;
    char room[4 * (1000 + MPI_BSEND_OVERHEAD)];
    char data[1000];
    char got[1000];
    void *back = NULL;
    int rank;
    int size;
    int len = 0;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    EXPECT(MPI_Bsend(data, 10, MPI_BYTE, rank, 0, comm) == MPI_ERR_BUFFER,
           "a buffered send without a buffer");
    MPI_Session_attach_buffer(session, room, (int)sizeof(room));
    for (int i = 0; i < 3; i++) {
        check_fill(data, sizeof(data), (uint64_t)(rank * 10 + i));
        MPI_Bsend(data, sizeof(data), MPI_BYTE, (rank + 1) % size, i, comm);
    }
    EXPECT(MPI_Session_iflush_buffer(session, &request) == MPI_SUCCESS &&
               request != MPI_REQUEST_NULL,
           "no flush");
    for (int i = 0; i < 3; i++) {
        int from = (rank + size - 1) % size;

        MPI_Recv(got, sizeof(got), MPI_BYTE, from, i, comm, MPI_STATUS_IGNORE);
        EXPECT(check_differs(got, sizeof(got), (uint64_t)(from * 10 + i)) ==
                   SIZE_MAX,
               "wrong data");
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Session_flush_buffer(session);
    MPI_Comm_iflush_buffer(comm, &request); /* it has none: complete */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Session_detach_buffer(session, &back, &len);
    EXPECT(back == room && len == (int)sizeof(room), "another buffer");
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
}

/* No operation on a communicator is right after its session, but what goes
 * wrong with it shall not use the buffer of another one, which may well have
 * got the memory of the first. */
static void buffers_of_others(void)
{
    MPI_Session around = open_session(NULL);
    MPI_Session session = open_session(NULL);
    MPI_Comm comm = comm_of(session, "mpi://SELF", "others");
    char room[100 + MPI_BSEND_OVERHEAD];
    char data[10] = "";
    void *back = NULL;
    int len = 0;

    MPI_Session_finalize(&session);
    session = open_session(NULL);
    MPI_Session_attach_buffer(session, room, (int)sizeof(room));
    EXPECT(MPI_Bsend(data, 10, MPI_BYTE, 0, 0, comm) == MPI_ERR_BUFFER,
           "a buffered send in the buffer of another session");
    MPI_Session_detach_buffer(session, &back, &len);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    MPI_Session_finalize(&around);
}

/* ---- life and death ---- */

static void once(int round)
{
    MPI_Session session = open_session(NULL);
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "once");

    talk(comm);
    if (round % 2)
        MPI_Comm_disconnect(&comm);
    else
        MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

/* Two libraries that know nothing of each other. */
static void side_by_side(void)
{
    MPI_Session a = open_session(NULL);
    MPI_Session b = open_session("MPI_THREAD_MULTIPLE");
    MPI_Comm in_a = comm_of(a, "mpi://WORLD", "a");
    MPI_Comm in_b = comm_of(b, "mpi://WORLD", "b");

    talk(in_a);
    talk(in_b);
    MPI_Comm_free(&in_a);
    MPI_Session_finalize(&a);
    talk(in_b);
    MPI_Comm_free(&in_b);
    MPI_Session_finalize(&b);
}

static void without_world(int rounds)
{
    for (int i = 0; i < rounds; i++)
        once(i);
    process_sets();
    hints();
    error_handlers();
    no_world();
    buffers();
    buffers_of_others();
    side_by_side();
}

/* Only every second process takes part. */
static void some(int rounds)
{
    for (int i = 0; i < rounds && self.rank % 2 == 0; i++) {
        MPI_Session session = open_session(NULL);
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Group even = MPI_GROUP_NULL;
        MPI_Comm comm = MPI_COMM_NULL;
        int range[1][3] = {{0, (self.size - 1) / 2 * 2, 2}};

        MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
        MPI_Group_range_incl(all, 1, range, &even);
        MPI_Comm_create_from_group(even, "even", MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &comm);
        talk(comm);
        MPI_Comm_free(&comm);
        MPI_Group_free(&all);
        MPI_Group_free(&even);
        MPI_Session_finalize(&session);
    }
}

static void around_world(int rounds)
{
    MPI_Session session;
    MPI_Comm comm;
    int flag;

    once(0);
    session = open_session(NULL);
    MPI_Init(NULL, NULL);
    talk(MPI_COMM_WORLD);
    comm = comm_of(session, "mpi://WORLD", "beside");
    talk(comm);
    for (int i = 0; i < rounds; i++)
        once(i);
    MPI_Finalize();
    MPI_Finalized(&flag);
    EXPECT(flag, "not finalized");
    talk(comm); /* the session goes on */
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    for (int i = 0; i < rounds; i++)
        once(i);
    MPI_Finalized(&flag);
    EXPECT(flag, "no longer finalized");
}

/* ---- threads ---- */

enum { THREADS = 4 };

struct thread {
    pthread_t id;
    int number;
    int rounds;
};

/* Between sessions the process may be without any. */
static void *of_its_own(void *arg)
{
    const struct thread *t = arg;
    char tag[32];

    snprintf(tag, sizeof(tag), "thread %d", t->number);
    for (int i = 0; i < t->rounds; i++) {
        MPI_Session session = open_session("MPI_THREAD_MULTIPLE");
        MPI_Comm comm;

        expect_hint(session, "thread_level", "MPI_THREAD_MULTIPLE");
        comm = comm_of(session, "mpi://WORLD", tag);
        talk(comm);
        MPI_Comm_free(&comm);
        comm = comm_of(session, "mpi://SELF", tag);
        talk(comm);
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
    }
    return NULL;
}

/* It begins and ends while others are in the middle of something. */
static void *of_the_world(void *arg)
{
    int provided = -1;

    (void)arg;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE, "the world gets level %d",
           provided);
    talk(MPI_COMM_WORLD);
    MPI_Finalize();
    return NULL;
}

static void in_threads(int rounds, bool has_world)
{
    struct thread threads[THREADS];
    pthread_t world;

    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.number = i, .rounds = rounds};
        pthread_create(&threads[i].id, NULL, of_its_own, &threads[i]);
    }
    if (has_world)
        pthread_create(&world, NULL, of_the_world, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    if (has_world)
        pthread_join(world, NULL);
}

/* Left open on purpose; kept here, so that it is not lost memory. */
static volatile MPI_Session left_open;

static void use_world(void)
{
    int rank;

    left_open = open_session(NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void outlive_world(void)
{
    MPI_Init(NULL, NULL);
    left_open = open_session(NULL);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    int rounds = (int)check_arg(argc, argv, 1, 5);
    const char *what = argc > 2 ? argv[2] : "";

    self.rank = number_in_env("CHEMPI_RANK", 0);
    self.size = number_in_env("CHEMPI_SIZE", 1);
    if (strcmp(what, "some") == 0)
        some(rounds);
    else if (strcmp(what, "world") == 0)
        around_world(rounds);
    else if (strcmp(what, "exit") == 0)
        left_open = open_session(NULL);
    else if (strcmp(what, "after") == 0)
        outlive_world();
    else if (strcmp(what, "threads") == 0)
        in_threads(rounds, false);
    else if (strcmp(what, "beside") == 0)
        in_threads(rounds, true);
    else if (strcmp(what, "comm") == 0)
        use_world();
    else
        without_world(rounds);
    if (!self.failures && self.rank == 0)
        printf("ok\n");
    return self.failures ? 1 : 0;
}
