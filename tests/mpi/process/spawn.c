/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worlds that are spawned: parents and children speak, merge and part; several
 * programs make one world; what cannot be started, or ends before MPI_Init,
 * fails the call at all parents, and nothing else.
 *
 * usage: spawn [together|multiple|nothing|wrong|info|again|merged|large|names|
 *        strangers]
 *
 * The children are this program, with the arguments "child" and what they are.
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CHILDREN 3
#define TAG 7
#define WORDS 30 /* of a large call */
#define WORD_LEN 30000

static char *program;

/* Both sides: everybody's rank to everybody, a sum, a merged world. */
static void speak(MPI_Comm inter, bool is_child)
{
    MPI_Comm both;
    int here;
    int there;
    int value;
    int sum = 0;
    int size;

    MPI_Comm_rank(inter, &value);
    value += 100 * is_child;
    MPI_Comm_size(inter, &here);
    MPI_Comm_remote_size(inter, &there);
    for (int i = 0; i < there; i++) {
        int got = -1;

        MPI_Sendrecv(&value, 1, MPI_INT, i, TAG, &got, 1, MPI_INT, i, TAG,
                     inter, MPI_STATUS_IGNORE);
        CHECK(got == i + 100 * !is_child, "%d from rank %d", got, i);
    }
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == there * (there - 1) / 2 + 100 * !is_child * there,
          "the others' sum is %d", sum);
    MPI_Intercomm_merge(inter, is_child, &both);
    MPI_Comm_size(both, &size);
    CHECK(size == here + there, "%d together", size);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_MAX, both);
    CHECK(sum == 100 + (is_child ? here : there) - 1, "the maximum is %d", sum);
    MPI_Comm_free(&both);
}

/* The children's root publishes a port, which the parents find, and call: a
 * second communicator of the same two worlds. */
static void meet_by_name(MPI_Comm inter, bool is_child)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other;

    if (is_child && check_rank() == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("of a child", MPI_INFO_NULL, port);
    }
    MPI_Barrier(inter);
    if (is_child) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    } else {
        MPI_Lookup_name("of a child", MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    }
    speak(other, is_child);
    MPI_Comm_disconnect(&other);
    if (is_child && check_rank() == 0) {
        MPI_Unpublish_name("of a child", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
}

static void check_codes(const int *codes, int count, int wanted)
{
    for (int i = 0; i < count; i++)
        CHECK(check_class(codes[i]) == wanted, "error code %d of process %d",
              codes[i], i);
}

static void spawn_children(const char *what, MPI_Comm over, int root)
{
    char *args[] = {(char[]){"child"}, (char *)what, NULL};
    int codes[CHILDREN] = {-1, -1, -1};
    MPI_Comm inter;
    int size = 0;

    MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, root, over, &inter,
                   codes);
    check_codes(codes, CHILDREN, MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &size);
    CHECK(size == CHILDREN, "%d children", size);
    speak(inter, false);
    if (strcmp(what, "names") == 0)
        meet_by_name(inter, false);
    MPI_Comm_disconnect(&inter);
}

/* Both worlds are the parents of further ones, by a root in each. */
static void spawn_merged(MPI_Comm inter, bool is_child)
{
    MPI_Comm both;
    int size;

    MPI_Intercomm_merge(inter, is_child, &both);
    MPI_Comm_size(both, &size);
    spawn_children("together", both, 0);
    spawn_children("together", both, size - 1);
    MPI_Comm_free(&both);
}

/* Whom a single process has spawned meets all of its world; parents: a
 * communicator with it at that process, elsewhere anything. */
static MPI_Comm introduce(MPI_Comm local, int leader, MPI_Comm parents)
{
    MPI_Comm all;

    MPI_Intercomm_create(local, leader, parents, 0, TAG, &all);
    return all;
}

/* A chain: the first process has spawned one world, the last one another,
 * and nobody else of the three has met. */
static void join_chain(MPI_Comm inter, bool is_child)
{
    MPI_Comm all = introduce(MPI_COMM_WORLD, 0, inter);
    MPI_Comm both;
    MPI_Comm further = MPI_COMM_NULL;
    int parents;

    speak(all, is_child);
    MPI_Intercomm_merge(all, is_child, &both);
    if (is_child)
        MPI_Comm_remote_size(all, &parents);
    else
        MPI_Comm_size(all, &parents);
    MPI_Comm_free(&all);
    if (!is_child && check_rank() == check_size() - 1) {
        char *args[] = {(char[]){"child"}, (char[]){"last"}, NULL};

        MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                       &further, MPI_ERRCODES_IGNORE);
        speak(further, false);
    }
    all = introduce(both, parents - 1, further);
    speak(all, false);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&both);
    if (further != MPI_COMM_NULL)
        MPI_Comm_disconnect(&further);
}

static void strangers(void)
{
    char *args[] = {(char[]){"child"}, (char[]){"strangers"}, NULL};
    MPI_Comm inter = MPI_COMM_NULL;

    if (check_rank() == 0) {
        MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                       &inter, MPI_ERRCODES_IGNORE);
        speak(inter, false);
    }
    join_chain(inter, false);
    if (inter != MPI_COMM_NULL)
        MPI_Comm_disconnect(&inter);
}

static int child(const char *what, int number)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    MPI_Comm parent;
    MPI_Comm again;
    int *app = NULL;
    int flag = 0;

    MPI_Comm_get_parent(&parent);
    CHECK_OR_DIE(parent != MPI_COMM_NULL, "a child without parents");
    MPI_Comm_get_name(parent, name, &flag);
    CHECK(strcmp(name, "MPI_COMM_PARENT") == 0, "the parents are %s", name);
    if (strcmp(what, "multiple") == 0) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, (void *)&app, &flag);
        CHECK(flag && *app == number, "program %d", flag ? *app : -1);
    }
    speak(parent, true);
    if (strcmp(what, "merged") == 0)
        spawn_merged(parent, true);
    if (strcmp(what, "names") == 0)
        meet_by_name(parent, true);
    if (strcmp(what, "strangers") == 0)
        join_chain(parent, true);
    if (strcmp(what, "last") == 0) {
        again = introduce(MPI_COMM_WORLD, 0, parent);
        speak(again, true);
        MPI_Comm_disconnect(&again);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&again);
    CHECK(again == MPI_COMM_NULL, "parents after all");
    return check_finish();
}

static void together(const char *what)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL, "nobody has spawned this");
    spawn_children(what, MPI_COMM_WORLD, check_size() - 1);
}

static void multiple(void)
{
    char *commands[] = {program, program};
    char *first[] = {(char[]){"child"}, (char[]){"multiple"}, (char[]){"0"},
                     NULL};
    char *second[] = {(char[]){"child"}, (char[]){"multiple"}, (char[]){"1"},
                      NULL};
    char **argvs[] = {first, second};
    const int counts[] = {1, 2};
    MPI_Info soft;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int codes[3] = {-1, -1, -1};
    const bool is_root = check_rank() == 0;
    MPI_Comm inter;

    MPI_Info_create(&soft);
    MPI_Info_set(soft, "soft", "1");
    for (int i = 0; i < 2; i++) {
        MPI_Comm_spawn_multiple(is_root ? 2 : -1, is_root ? commands : NULL,
                                argvs, counts, infos, 0, MPI_COMM_WORLD, &inter,
                                codes);
        check_codes(codes, 3, MPI_SUCCESS);
        speak(inter, false);
        MPI_Comm_disconnect(&inter);
        infos[1] = soft; /* does not count where there are several programs */
    }
    MPI_Info_free(&soft);
}

static void fail(const char *command)
{
    int codes[2] = {-1, -1};
    MPI_Comm inter = MPI_COMM_SELF;
    const int rc = MPI_Comm_spawn(command, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0,
                                  MPI_COMM_WORLD, &inter, codes);

    CHECK(check_class(rc) == MPI_ERR_SPAWN, "%s: class %d", command,
          check_class(rc));
    CHECK(inter == MPI_COMM_NULL, "%s: a communicator", command);
    check_codes(codes, 2, MPI_ERR_SPAWN);
}

/* What is wrong at one member is heard by all. */
static void wrong(void)
{
    char *commands[] = {program};
    const int counts[] = {2};
    const MPI_Info infos[] = {MPI_INFO_NULL};
    const bool is_root = check_rank() == 0;
    const MPI_Info bad = (MPI_Info)(void *)MPI_COMM_WORLD;
    const char name[] = "no port";
    int codes[2] = {-1, -1};
    MPI_Comm inter = MPI_COMM_SELF;
    int rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Comm_spawn(is_root ? NULL : program, MPI_ARGV_NULL, 2,
                        MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    CHECK(check_class(rc) == MPI_ERR_ARG, "class %d", check_class(rc));
    CHECK(inter == MPI_COMM_NULL, "a communicator");
    check_codes(codes, 2, MPI_ERR_SPAWN);
    rc = MPI_Comm_spawn_multiple(is_root ? -1 : 1, commands, MPI_ARGVS_NULL,
                                 counts, infos, 0, MPI_COMM_WORLD, &inter,
                                 codes);
    CHECK(check_class(rc) == MPI_ERR_COUNT, "class %d", check_class(rc));
    rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, is_root ? 0 : 2, MPI_INFO_NULL,
                        0, MPI_COMM_WORLD, &inter, codes);
    CHECK(check_class(rc) == MPI_ERR_ARG, "class %d", check_class(rc));
    rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL,
                        is_root ? check_size() : 0, MPI_COMM_WORLD, &inter,
                        codes);
    CHECK(check_class(rc) == MPI_ERR_ROOT, "class %d", check_class(rc));
    /* Then nobody's number of processes, and of error codes, counts. */
    rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1 << 24, MPI_INFO_NULL,
                        check_size(), MPI_COMM_WORLD, &inter, codes);
    CHECK(check_class(rc) == MPI_ERR_ROOT, "class %d", check_class(rc));
    rc = MPI_Comm_accept(is_root ? NULL : name, MPI_INFO_NULL, 0,
                         MPI_COMM_WORLD, &inter);
    CHECK(check_class(rc) == MPI_ERR_ARG, "class %d", check_class(rc));
    rc = MPI_Comm_connect(name, is_root ? bad : MPI_INFO_NULL, 0,
                          MPI_COMM_WORLD, &inter);
    CHECK(check_class(rc) == MPI_ERR_INFO, "class %d", check_class(rc));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    together("together");
}

static void nothing(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fail("/nowhere/at/all");
    fail("true"); /* it never calls MPI_Init */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    together("together");
}

static void info(void)
{
    char *args[] = {(char[]){"child"}, (char[]){"info"}, NULL};
    int codes[5];
    MPI_Comm inter;
    MPI_Info info;
    int size;

    MPI_Info_create(&info);
    for (int i = 0; i < 100; i++) { /* ours stand behind them */
        char key[20];

        (void)snprintf(key, sizeof(key), "key-%d", i);
        MPI_Info_set(info, key, "of somebody else");
    }
    MPI_Info_set(info, "soft", "1:4:3");
    MPI_Info_set(info, "wdir", "/");
    MPI_Info_set(info, "nobody knows", "this");
    MPI_Info_set(info, "mpi_initial_errhandler", "MPI_Errors_Return");
    MPI_Comm_spawn(program, args, 5, info, 0, MPI_COMM_SELF, &inter, codes);
    MPI_Info_free(&info);
    MPI_Comm_remote_size(inter, &size);
    CHECK(size == 4, "%d children", size);
    check_codes(codes, 4, MPI_SUCCESS);
    check_codes(codes + 4, 1, MPI_ERR_SPAWN);
    MPI_Comm_disconnect(&inter);
}

static void merged(void)
{
    char *args[] = {(char[]){"child"}, (char[]){"merged"}, NULL};
    MPI_Comm inter;

    MPI_Comm_spawn(program, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
    speak(inter, false);
    spawn_merged(inter, false);
    MPI_Comm_disconnect(&inter);
}

static void again(void)
{
    for (int i = 0; i < 5; i++)
        together("together");
}

static void check_words(int argc, char **argv)
{
    CHECK(argc == 3 + WORDS, "%d words", argc);
    for (int i = 3; i < argc; i++)
        CHECK(strlen(argv[i]) == WORD_LEN && argv[i][WORD_LEN - 1] == 'w',
              "word %d has %zu bytes", i, strlen(argv[i]));
}

/* Let the supervisor go on when this process sleeps. */
static pid_t stop_supervisor(void)
{
    const pid_t supervisor = getppid();
    char path[64];
    char stat[256];
    pid_t helper;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)getpid());
    CHECK_OR_DIE(kill(supervisor, SIGSTOP) == 0, "it cannot be stopped");
    helper = fork();
    if (helper != 0)
        return helper;
    do {
        FILE *f = fopen(path, "r");

        if (!f || !fgets(stat, sizeof(stat), f))
            _exit(1);
        fclose(f);
    } while (!strstr(stat, ") S ") && sched_yield() == 0);
    (void)kill(supervisor, SIGCONT);
    _exit(0);
}

/* More than the way to the launcher takes at once, while its caller sleeps. */
static void large(void)
{
    const pid_t helper = stop_supervisor();
    static char word[WORD_LEN + 1];
    char *args[3 + WORDS] = {(char[]){"child"}, (char[]){"large"}};
    MPI_Comm inter;

    memset(word, 'w', WORD_LEN);
    for (int i = 0; i < WORDS; i++)
        args[2 + i] = word;
    MPI_Comm_spawn(program, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
    CHECK(waitpid(helper, NULL, 0) == helper, "nobody has helped");
    speak(inter, false);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "together";
    char path[4096] = "";
    MPI_Errhandler handler;
    MPI_Comm parent;

    check_start(&argc, &argv);
    program = realpath(argv[0], path) ? path : argv[0];
    if (argc > 2 && strcmp(argv[2], "large") == 0)
        check_words(argc, argv);
    if (argc > 2 && strcmp(what, "child") == 0 && strcmp(argv[2], "info") != 0)
        return child(argv[2], argc > 3 ? atoi(argv[3]) : 0);
    if (argc > 2 && strcmp(what, "child") == 0) {
        CHECK(getcwd(path, sizeof(path)) && strcmp(path, "/") == 0, "in %s",
              path);
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
        CHECK(handler == MPI_ERRORS_RETURN, "another initial error handler");
        MPI_Comm_get_parent(&parent);
        MPI_Comm_disconnect(&parent);
    } else if (strcmp(what, "multiple") == 0) {
        multiple();
    } else if (strcmp(what, "nothing") == 0) {
        nothing();
    } else if (strcmp(what, "info") == 0) {
        if (check_rank() == 0)
            info();
    } else if (strcmp(what, "again") == 0) {
        again();
    } else if (strcmp(what, "wrong") == 0) {
        wrong();
    } else if (strcmp(what, "merged") == 0) {
        merged();
    } else if (strcmp(what, "large") == 0) {
        large();
    } else if (strcmp(what, "strangers") == 0) {
        strangers();
    } else {
        together(what);
    }
    return check_finish();
}
