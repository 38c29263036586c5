/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Variables of the environment that look like settings and are none: most are
 * misspelt, and would have no effect without a word.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/log.h"
#include "common/words/edit_distance.h"
#include "libchempi/didl/tool/registry.h"

#define PREFIX "CHEMPI_"
#define FAR 4u /* letters: no word is that misspelt */

extern char **environ;

/* Of launcher, tools, devices and tests. */
static const char *const others[] = {
    "CHEMPI_CC",           "CHEMPI_CHECK",
    "CHEMPI_CONTROL_FD",   "CHEMPI_CXX",
    "CHEMPI_DIR",          "CHEMPI_INITIAL_ERRHANDLER",
    "CHEMPI_JOB",          "CHEMPI_LOCAL_RANK",
    "CHEMPI_LOCAL_SIZE",   "CHEMPI_MAXPROCS",
    "CHEMPI_IO_FAULTS",    "CHEMPI_MEMORY_ALLOC_KINDS",
    "CHEMPI_NODE",         "CHEMPI_PROFILE",
    "CHEMPI_PROFILE_FILE", "CHEMPI_PROFILE_SITES",
    "CHEMPI_RANK",         "CHEMPI_RUN",
    "CHEMPI_RUN_MARK",     "CHEMPI_SCIVIA_PERSONALITY",
    "CHEMPI_SIZE",         "CHEMPI_SOFT",
    "CHEMPI_SOURCE_ROOT",  "CHEMPI_SCIVIA_FAULTS",
    "CHEMPI_WDIR",         "CHEMPI_WHERE_LIMIT",
};

/* Does it begin with the module of a setting? */
static bool has_module(const char *name, const struct chempi_setting *setting)
{
    const struct chempi_setting bare = {.module = setting->module, .name = ""};
    char begin[CHEMPI_SETTING_NAME_MAX];

    if (!*setting->module)
        return false;
    chempi_setting_variable(&bare, begin);
    return strncmp(name, begin, strlen(begin)) == 0;
}

enum chempi_stray chempi_tool_judge_stray(const char *name,
                                          char nearest[CHEMPI_SETTING_NAME_MAX])
{
    const size_t len = strlen(name);
    enum chempi_stray verdict = CHEMPI_STRAY_FOREIGN;
    size_t least = 2 + len / 12; /* letters; short names may be others' */

    nearest[0] = '\0';
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return verdict;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return verdict;
    for (uint32_t i = 0; i < chempi_tool_cvar_count(); i++) {
        const struct chempi_setting *setting = chempi_tool_cvar_at(i).setting;
        char known[CHEMPI_SETTING_NAME_MAX];
        size_t d;

        chempi_setting_variable(setting, known);
        d = chempi_edit_distance(name, known);
        if (d == 0)
            return CHEMPI_STRAY_KNOWN;
        if (d < least) {
            least = d;
            memcpy(nearest, known, sizeof(known));
        }
        if (has_module(name, setting))
            verdict = CHEMPI_STRAY_WRONG;
    }
    return *nearest ? CHEMPI_STRAY_WRONG : verdict;
}

void chempi_tool_warn_of_strays(void)
{
    for (char **e = environ; e && *e; e++) {
        char name[CHEMPI_SETTING_NAME_MAX + FAR];
        char nearest[CHEMPI_SETTING_NAME_MAX];
        const size_t len = strcspn(*e, "=");

        if (len >= sizeof(name))
            continue;
        memcpy(name, *e, len);
        name[len] = '\0';
        if (chempi_tool_judge_stray(name, nearest) != CHEMPI_STRAY_WRONG)
            continue;
        chempi_log(CHEMPI_LOG_WARNING, "setting",
                   "the environment variable %s is no setting and has no "
                   "effect%s%s%s (chempi-info --settings lists them)",
                   name, *nearest ? "; is " : "", nearest,
                   *nearest ? " meant?" : "");
    }
}
