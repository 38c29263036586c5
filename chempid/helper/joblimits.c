/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job may have of a node; see joblimits.h. */
#define _GNU_SOURCE /* strtok_r, fileno */
#include "chempid/helper/joblimits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd/file.h"
#include "common/words/decimal.h"
#include "common/words/linefile.h"
#include "common/words/size.h"

/* 0 would be no limit that anybody could live with. */
static int parse_number(const char *text, uint64_t *out)
{
    const int rc = chempi_size_parse(text, UINT64_MAX >> 1, out);

    return !rc && *out ? 0 : -EINVAL;
}

static double parse_cpus(const char *text)
{
    double v;

    return chempi_decimal_parse(text, 0.01, 1e6, &v) ? v : 0;
}

static int take_words(struct chempi_cgroup_limits *limits, const char *key,
                      const char *value)
{
    if (strcmp(key, "memory") == 0)
        return parse_number(value, &limits->memory);
    if (strcmp(key, "processes") == 0)
        return parse_number(value, &limits->processes);
    if (strcmp(key, "cpus") == 0)
        return (limits->cpus = parse_cpus(value)) > 0 ? 0 : -EINVAL;
    return -EINVAL;
}

static int take_line(void *arg, char *line, unsigned number,
                     struct chempi_err *err)
{
    static const char blank[] = " \t";
    char *save;
    const char *key = strtok_r(line, blank, &save);
    const char *value = key ? strtok_r(NULL, blank, &save) : NULL;

    (void)number;
    if (!key || (value && !strtok_r(NULL, blank, &save) &&
                 !take_words(arg, key, value)))
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "expected memory BYTES, processes NUMBER or cpus "
                          "NUMBER");
}

static int check_file(FILE *file, const char *path, struct chempi_err *err)
{
    struct stat st;

    if (fstat(fileno(file), &st) < 0)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    if (!S_ISREG(st.st_mode) || !chempi_file_is_safe(&st))
        return chempi_err_set(err, -EPERM,
                              "%s: not a file of ours that others cannot "
                              "write (chmod go-w)",
                              path);
    return 0;
}

int chempi_joblimits_read(struct chempi_cgroup_limits *limits, const char *path,
                          struct chempi_err *err)
{
    FILE *file = fopen(path, "re");
    int rc;

    *limits = (struct chempi_cgroup_limits){0};
    if (!file)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    rc = check_file(file, path, err);
    if (!rc)
        return chempi_linefile_take(file, path, "limits", take_line, limits,
                                    err);
    (void)fclose(file); /* read only */
    return rc;
}
