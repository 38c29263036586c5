/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program can ask about where it is: arguments, environment, working
 * directory, versions, names, clock, attributes of the world, levels.
 *
 * usage: env [NAME=VALUE expected in the environment ...]
 */
#include "check.h"

#include <unistd.h>

static void attributes(void)
{
    void *value = NULL;
    int flag = 0;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CHECK(flag && *(int *)value >= 32767, "MPI_TAG_UB");
    flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
    CHECK(flag, "MPI_WTIME_IS_GLOBAL");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    CHECK(!flag || *(int *)value >= check_size(), "MPI_UNIVERSE_SIZE");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    CHECK(!flag || *(int *)value >= 0, "MPI_APPNUM");
}

static void names(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = -1;
    int major = 0;
    int minor = -1;
    int class = -1;

    MPI_Get_processor_name(name, &len);
    CHECK(len > 0 && len == (int)strlen(name), "processor name");
    MPI_Get_library_version(version, &len);
    CHECK(len > 0 && len == (int)strlen(version), "library version");
    MPI_Get_version(&major, &minor);
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION, "version %d.%d",
          major, minor);
    MPI_Error_class(MPI_ERR_TRUNCATE, &class);
    CHECK(class == MPI_ERR_TRUNCATE, "class of a class is %d", class);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &len);
    CHECK(len > 0 && len == (int)strlen(text), "error string");
}

static void times(void)
{
    double tick = MPI_Wtick();
    double last = MPI_Wtime();

    CHECK(tick > 0 && tick < 0.1, "tick is %g s", tick);
    for (int i = 0; i < 1000; i++) {
        double now = MPI_Wtime();
        CHECK(now >= last, "time went back");
        last = now;
    }
}

static void levels(void)
{
    int level = -1;
    int flag = 0;

    MPI_Query_thread(&level);
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE,
          "level %d", level);
    MPI_Is_thread_main(&flag);
    CHECK(flag, "not the main thread");
    MPI_Initialized(&flag);
    CHECK(flag, "not initialized");
    MPI_Finalized(&flag);
    CHECK(!flag, "already finalized");
}

static void environment(int argc, char **argv)
{
    char directory[4096];

    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        if (strcmp(argv[i], "PWD") == 0) {
            CHECK(getcwd(directory, sizeof(directory)) != NULL &&
                      strcmp(directory, equals + 1) == 0,
                  "working directory is %s", directory);
            continue;
        }
        const char *value = getenv(argv[i]);
        CHECK(value != NULL && strcmp(value, equals + 1) == 0, "%s is %s",
              argv[i], value ? value : "not set");
    }
}

/* ---- MPI_Finalize deletes the attributes of MPI_COMM_SELF ---- */

enum { OWN = 3 };
static int numbers[OWN] = {1, 2, 3};
static int deleted[OWN]; /* in this order */
static int deleted_count;

/* That one of them fails is no reason to leave others. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int number = *(int *)value;

    (void)comm;
    (void)keyval;
    (void)extra;
    if (deleted_count < OWN)
        deleted[deleted_count] = number;
    deleted_count++;
    return number == 2 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void set_own(void)
{
    for (int i = 0; i < OWN; i++) {
        int keyval = MPI_KEYVAL_INVALID;

        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &numbers[i]);
        MPI_Comm_free_keyval(&keyval);
    }
}

/* An exit code: 0 when the last one went first. */
static int see_deleted(void)
{
    if (deleted_count == OWN && deleted[0] == 3 && deleted[1] == 2 &&
        deleted[2] == 1)
        return 0;
    fprintf(stderr, "%d attributes were deleted: %d, %d, %d\n", deleted_count,
            deleted[0], deleted[1], deleted[2]);
    return 1;
}

int main(int argc, char **argv)
{
    int flag = 1;
    int code;

    MPI_Initialized(&flag);
    if (flag) {
        fprintf(stderr, "initialized before MPI_Init\n");
        return 1;
    }
    check_start(&argc, &argv);
    attributes();
    names();
    times();
    levels();
    environment(argc, argv);
    set_own();
    code = check_finish();
    return code ? code : see_deleted();
}
