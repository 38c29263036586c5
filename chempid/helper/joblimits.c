/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job may have of a node; see joblimits.h. */
#define _GNU_SOURCE /* getline */
#include "chempid/helper/joblimits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/words/size.h"

/* 0 would be no limit that anybody could live with. */
static int parse_number(const char *text, uint64_t *out)
{
    const int rc = chempi_size_parse(text, UINT64_MAX >> 1, out);

    return !rc && *out ? 0 : -EINVAL;
}

static double parse_cpus(const char *text)
{
    char *end;
    const double v = strtod(text, &end);

    return *end || !(v >= 0.01) || !(v <= 1e6) ? 0 : v;
}

/* 0 or -EINVAL. */
static int take_line(struct chempi_cgroup_limits *limits, char *line)
{
    static const char blank[] = " \t\r\n";
    char *save;
    char *key;
    char *value;

    line[strcspn(line, "#")] = '\0';
    key = strtok_r(line, blank, &save);
    if (!key)
        return 0;
    value = strtok_r(NULL, blank, &save);
    if (!value || strtok_r(NULL, blank, &save))
        return -EINVAL;
    if (strcmp(key, "memory") == 0)
        return parse_number(value, &limits->memory);
    if (strcmp(key, "processes") == 0)
        return parse_number(value, &limits->processes);
    if (strcmp(key, "cpus") == 0)
        return (limits->cpus = parse_cpus(value)) > 0 ? 0 : -EINVAL;
    return -EINVAL;
}

static int check_file(FILE *file, const char *path, struct chempi_err *err)
{
    struct stat st;

    if (fstat(fileno(file), &st) < 0)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & (S_IWGRP | S_IWOTH)))
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
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    int rc;

    *limits = (struct chempi_cgroup_limits){0};
    if (!file)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    rc = check_file(file, path, err);
    while (!rc && getline(&line, &size, file) >= 0) {
        number++;
        if (take_line(limits, line))
            rc = chempi_err_set(err, -EINVAL,
                                "%s:%u: expected memory BYTES, processes "
                                "NUMBER or cpus NUMBER",
                                path, number);
    }
    free(line);
    (void)fclose(file); /* read only */
    return rc;
}
