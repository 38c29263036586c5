/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread levels. The four of the ABI are far apart, and numbers between them
 * are no levels: MPI_Init_thread refuses them, and goes on to start with one
 * that it knows. For launchers that are told to return initial errors.
 *
 * usage: levels single | funneled | serialized | multiple
 */
#include "check.h"

static const struct {
    const char *name;
    int level;
} levels[] = {
    {"single", MPI_THREAD_SINGLE},
    {"funneled", MPI_THREAD_FUNNELED},
    {"serialized", MPI_THREAD_SERIALIZED},
    {"multiple", MPI_THREAD_MULTIPLE},
};

enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

static bool is_level(int number)
{
    for (int i = 0; i < LEVELS; i++)
        if (levels[i].level == number)
            return true;
    return false;
}

/* Exit code 1 when a number that is no level is taken. */
static void refuse(int number)
{
    int provided = -1;
    int rc;

    if (is_level(number))
        return;
    rc = MPI_Init_thread(NULL, NULL, number, &provided);
    if (check_class(rc) == MPI_ERR_ARG)
        return;
    fprintf(stderr, "level %d: result %d, level %d provided\n", number, rc,
            provided);
    exit(1);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int provided = -1;

    for (int i = 0; i < LEVELS; i++) {
        refuse(levels[i].level - 1);
        refuse(levels[i].level + 1);
    }
    refuse(3);
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(levels[i].name, name) != 0)
            continue;
        check_start_thread(&argc, &argv, levels[i].level);
        MPI_Query_thread(&provided);
        CHECK(is_level(provided) && provided >= levels[i].level,
              "%s: %d is provided", name, provided);
        return check_finish();
    }
    fprintf(stderr, "usage: levels LEVEL\n");
    return 2;
}
