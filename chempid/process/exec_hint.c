/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a program is not started; see exec_hint.h. */
#include "chempid/process/exec_hint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chempid/job/pattern.h"
#include "chempid/job/program.h"
#include "common/base/compiler.h"
#include "common/control/msg.h"

/* Is there such a file in a directory (the first len bytes of dir)? */
static bool has_file(const char *dir, size_t len, const char *name)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name) >=
        (int)sizeof(path))
        return false;
    return access(path, F_OK) == 0;
}

/* The PATH that the rank has; what is set last holds. */
static const char *path_of(const struct chempi_spec *spec,
                           const struct chempi_app *app)
{
    char **const lists[] = {spec->env, app->env};
    const char *found = NULL;

    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(lists); k++)
        for (size_t i = 0; lists[k] && lists[k][i]; i++)
            if (strncmp(lists[k][i], "PATH=", 5) == 0)
                found = lists[k][i] + 5;
    return found ? found : "/bin:/usr/bin";
}

static bool is_in_path(const char *list, const char *name)
{
    for (const char *at = list;; at++) {
        const size_t len = strcspn(at, ":");

        if (len > 0 && has_file(at, len, name))
            return true;
        at += len;
        if (!*at)
            return false;
    }
}

/* The file is there, what shall read it is not. */
static bool find_interpreter(const char *name, const char *dir,
                             const char *path, char *text, size_t size)
{
    char file[4096];
    char reader[256];
    size_t len;

    if (!chempi_program_find(name, dir, path, file, sizeof(file)) ||
        !chempi_program_interpreter(file, reader, sizeof(reader)) ||
        access(reader, F_OK) == 0)
        return false;
    len = strlen(reader);
    if (reader[len - 1] == '\r') {
        reader[len - 1] = '\0';
        (void)snprintf(text, size,
                       "; its first line names %.200s and ends as on Windows: "
                       "take the carriage returns out of %.200s",
                       reader, name);
    } else {
        (void)snprintf(text, size,
                       "; the file is there, its interpreter %.200s is not",
                       reader);
    }
    return true;
}

/* What execve() refuses is there, but cannot be executed. */
static void explain_refusal(const char *name, const char *dir, char *text,
                            size_t size)
{
    const bool is_whole = *name == '/' || !dir;
    char file[4096];
    struct stat st;

    (void)snprintf(file, sizeof(file), "%s%s%s", is_whole ? "" : dir,
                   is_whole ? "" : "/", name); /* cut: it is not found */
    if (!strchr(name, '/') || stat(file, &st) < 0)
        return;
    if (S_ISDIR(st.st_mode))
        (void)snprintf(text, size, "; it is a directory");
    else if ((st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
        (void)snprintf(text, size,
                       "; the file is not marked as executable (chmod +x), if "
                       "it is a program at all");
}

/* A program without a path is sought in PATH; many mean the one that is in
 * the working directory. One that is there has no interpreter. Others are seen
 * from there, which may be another directory than the user's. */
static void explain(const struct chempi_spec *spec, uint32_t rank, int code,
                    char *text, size_t size)
{
    const struct chempi_app *app = chempi_spec_app(spec, rank);
    const char *dir = app->wdir ? app->wdir : spec->cwd;
    char **wrap = chempi_spec_wrap(spec, rank);
    const char *name = wrap ? wrap[0] : app->argv[0];

    if (code == EACCES)
        explain_refusal(name, dir, text, size);
    if (code != ENOENT)
        return;
    if (find_interpreter(name, dir, path_of(spec, app), text, size))
        return;
    if (wrap) {
        (void)snprintf(text, size, ": %.200s (--wrap)", name);
        return;
    }
    if (app->argv[0][0] == '/' || !dir)
        return;
    if (strchr(app->argv[0], '/'))
        (void)snprintf(text, size, " in the working directory %.400s", dir);
    else if (is_in_path(path_of(spec, app), app->argv[0]))
        (void)snprintf(text, size,
                       "; the file is in PATH, but not the interpreter that "
                       "it needs");
    else if (has_file(dir, strlen(dir), app->argv[0]))
        (void)snprintf(text, size,
                       " in PATH; say ./%.200s for the one in the working "
                       "directory",
                       app->argv[0]);
    else
        (void)snprintf(text, size, " in PATH");
}

bool chempi_exec_file(const struct chempi_spec *spec, uint32_t rank, int stream,
                      char *name, size_t size)
{
    const uint32_t node = spec->node_of_rank[rank];
    const struct chempi_pattern what = {.rank = rank,
                                        .node = spec->node_names[node],
                                        .number = node,
                                        .job = spec->id};

    return chempi_pattern_expand(spec->files[stream], &what, name, size);
}

void chempi_exec_words(const struct chempi_spec *spec, uint32_t rank,
                       enum chempi_exec_step step, int code, char *text,
                       size_t size)
{
    static const char *const steps[CHEMPI_EXEC_STEPS] = {
        [CHEMPI_EXEC_SETUP] = "cannot be set up",
        [CHEMPI_EXEC_WDIR] = "cannot enter its working directory ",
        [CHEMPI_EXEC_PROGRAM] = "cannot be executed",
        [CHEMPI_EXEC_BIND] = "cannot be bound",
        [CHEMPI_EXEC_OUT] = "cannot open the file for its output, ",
        [CHEMPI_EXEC_ERR] = "cannot open the file for its error output, ",
    };
    const struct chempi_app *app = chempi_spec_app(spec, rank);
    const int stream = step == CHEMPI_EXEC_ERR;
    const char *name = "";
    char file[CHEMPI_TEXT_MAX / 2];
    char hint[CHEMPI_TEXT_MAX / 2] = "";

    if (step == CHEMPI_EXEC_WDIR)
        name = app->wdir ? app->wdir : spec->cwd;
    else if (step == CHEMPI_EXEC_PROGRAM)
        explain(spec, rank, code, hint, sizeof(hint));
    else if (step >= CHEMPI_EXEC_OUT)
        name = chempi_exec_file(spec, rank, stream, file, sizeof(file))
                   ? file
                   : spec->files[stream];
    (void)snprintf(text, size, "%s%.400s: %s%s", steps[step], name,
                   chempi_err_name(code), hint);
}
