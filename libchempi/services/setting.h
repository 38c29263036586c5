/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: the numbers that may be tuned without changing code. Each module
 * or device has a const table of them; the values lie apart, in an array with
 * the same order. The table is all that tools, the environment and the manual
 * know of a setting: CHEMPI_<MODULE>_<NAME> in the environment, the same in
 * small letters as a control variable of MPI_T.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_SETTING_H
#define CHEMPI_LIBCHEMPI_SERVICES_SETTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_SETTING_NAME_MAX 64 /* bytes with module and zero */

/* An enumeration: word i stands for value i. */
struct chempi_words {
    const char *name;
    const char *const *list;
    uint32_t count;
};

/* "off", "on" */
extern const struct chempi_words chempi_words_switch;

enum chempi_setting_scope {
    CHEMPI_SETTING_LOCAL, /* each process as it likes */
    CHEMPI_SETTING_ALL    /* the same in all processes of a job */
};

struct chempi_setting {
    const char *module; /* "progress"; a device's name; "" for none */
    const char *name;   /* "spins_max" */
    const char *text;   /* a sentence that names the unit */
    uint64_t initial;
    uint64_t min;
    uint64_t max;
    const struct chempi_words *words; /* NULL: a number */
    uint8_t scope;                    /* enum chempi_setting_scope */
    bool is_fixed;                    /* from the start of MPI on */
    bool is_basic; /* of interest to users, not to tuners only */
};

/* A table and its values. */
struct chempi_settings {
    const struct chempi_setting *table;
    _Atomic uint64_t *values; /* [count] */
    uint32_t count;
};

/* "chempi_progress_spins_max"; the name is cut at the limit. */
void chempi_setting_name(const struct chempi_setting *setting,
                         char name[CHEMPI_SETTING_NAME_MAX]);
/* "CHEMPI_PROGRESS_SPINS_MAX" */
void chempi_setting_variable(const struct chempi_setting *setting,
                             char name[CHEMPI_SETTING_NAME_MAX]);

/*
 * The value that a text stands for: a word of the enumeration, or a number,
 * perhaps with a unit (common/words/size.h). 0, or -EINVAL with words that
 * name the variable, the text and what is expected; *value is untouched then.
 */
int chempi_setting_parse(const struct chempi_setting *setting, const char *text,
                         uint64_t *value, struct chempi_err *err);

/* Take the values from the environment. 0, or -EINVAL as above for the first
 * that cannot be understood; the others are taken all the same. */
int chempi_setting_load(const struct chempi_settings *settings,
                        struct chempi_err *err);

#endif
