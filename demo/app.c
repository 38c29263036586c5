/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the demo's applications; see app.h. */
#include "app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct app_option *find(const struct app_option *options,
                                     const char *name)
{
    for (const struct app_option *o = options; o->name; o++) {
        if (strcmp(o->name, name) == 0)
            return o;
    }
    return NULL;
}

static bool take_number(const struct app_option *option, const char *text)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < option->min ||
        value > option->max)
        return false;
    *option->number = value;
    return true;
}

/* Take one option and its value; returns the words used, 0 if it is wrong. */
static int take(const struct app_option *option, const char *value)
{
    if (option->flag) {
        *option->flag = true;
        return 1;
    }
    if (!value)
        return 0;
    if (option->text) {
        *option->text = value;
        return 2;
    }
    return take_number(option, value) ? 2 : 0;
}

static void complain(const char *program, const char *name,
                     const struct app_option *option)
{
    if (!option)
        (void)fprintf(stderr, "%s: unknown option %s\n", program, name);
    else if (option->number)
        (void)fprintf(stderr, "%s: %s: expected a number from %ld to %ld\n",
                      program, name, option->min, option->max);
    else
        (void)fprintf(stderr, "%s: %s: expected a value\n", program, name);
}

bool app_parse(int argc, char **argv, const struct app_option *options,
               bool is_talking)
{
    int i = 1;

    while (i < argc) {
        const struct app_option *option = find(options, argv[i]);
        const int used =
            option ? take(option, i + 1 < argc ? argv[i + 1] : NULL) : 0;

        if (used == 0) {
            if (is_talking)
                complain(argv[0], argv[i], option);
            return false;
        }
        i += used;
    }
    return true;
}
