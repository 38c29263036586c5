/* SPDX-License-Identifier: BSD-3-Clause */
/* chempirun --profile and --check; see profile.h. */
#define _GNU_SOURCE /* realpath */
#include "chempid/launcher/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/host/beside.h"

#define VARIABLE "LD_PRELOAD"

enum { PATH_LEN = 4096 };

/* Where the build has it, in a folder of its name, or where it is installed,
 * seen from this program. True if it is there. */
static bool find_library(const char *name, char path[PATH_LEN])
{
    static const char *const folders[] = {"../programs",
                                          CHEMPI_LIBDIR_FROM_BINDIR};
    char self[PATH_LEN / 2];
    char rough[PATH_LEN];

    if (!chempi_beside_folder(self, sizeof(self)))
        return false;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(folders); i++) {
        const bool is_built = i == 0; /* each has a folder there */

        (void)snprintf(rough, sizeof(rough), "%s/%s/%s%s%s.so", self,
                       folders[i], is_built ? name : "", is_built ? "/" : "",
                       name);
        if (realpath(rough, path))
            return true;
    }
    return false;
}

/* What the ranks would load anyway: of -x and --env, else of our own. */
static const char *others(const struct chempi_options *opt)
{
    const size_t len = strlen(VARIABLE "=");
    const char *found = getenv(VARIABLE);

    for (char *const *e = opt->pass; *e; e++)
        if (strncmp(*e, VARIABLE "=", len) == 0)
            found = *e + len;
    for (char *const *e = opt->env; *e; e++)
        if (strncmp(*e, VARIABLE "=", len) == 0)
            found = *e + len;
    return found && *found ? found : NULL;
}

static int add_library(struct chempi_options *opt, const char *name,
                       const char *option, struct chempi_err *err)
{
    char path[PATH_LEN];
    const char *more;
    size_t count = 0;
    size_t len;
    static char as_json[] = "CHEMPI_PROFILE=json";
    static char by_site[] = "CHEMPI_PROFILE_SITES=1";
    char **env;
    char *text;

    if (!find_library(name, path))
        return chempi_err_set(err, -ENOENT,
                              "%s needs %s.so, which is not installed beside "
                              "the library",
                              option, name);
    more = others(opt);
    while (opt->env[count])
        count++;
    len = sizeof(VARIABLE "=:") + strlen(path) + (more ? strlen(more) : 0);
    text = chempi_pool_alloc(&opt->pool, len);
    env = chempi_pool_array(&opt->pool, count + 4, sizeof(*env));
    if (!text || !env)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    (void)snprintf(text, len, VARIABLE "=%s%s%s", path, more ? ":" : "",
                   more ? more : "");
    if (count)
        memcpy(env, opt->env, count * sizeof(*env));
    env[count++] = text;
    if (opt->has_json)
        env[count++] = as_json;
    if (opt->has_sites)
        env[count] = by_site;
    opt->env = env;
    return 0;
}

/* Each of them stands between the program and the library alone. */
int chempi_profile_add(struct chempi_options *opt, struct chempi_err *err)
{
    if (opt->has_profile && opt->has_check)
        return chempi_err_set(err, -EINVAL,
                              "--profile and --check do not go together: run "
                              "the program once with each");
    if (opt->has_check)
        return add_library(opt, "libchempi-check", "--check", err);
    if (opt->has_profile)
        return add_library(opt, "libchempi-stats", "--profile", err);
    return 0;
}
