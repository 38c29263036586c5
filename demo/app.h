/* SPDX-License-Identifier: BSD-3-Clause */
/* What the demo's applications share: their command line, and time. */
#ifndef CHEMPI_DEMO_APP_H
#define CHEMPI_DEMO_APP_H

#include <stdbool.h>

/* An option with a value: a number in a range, or text. */
struct app_option {
    const char *name; /* with its dashes */
    long *number;     /* NULL: text */
    long min;
    long max;
    const char **text; /* NULL: number or flag */
    bool *flag;        /* NULL: number or text */
};

/* Take argv apart; the list ends with an option without a name. Returns false
 * after saying what is wrong, if this process is to say it. */
bool app_parse(int argc, char **argv, const struct app_option *options,
               bool is_talking);

#endif
