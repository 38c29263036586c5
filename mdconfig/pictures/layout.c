/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphviz as a child process; see layout.h. Its input and outputs are files
 * without names, not pipes: neither side can wait for the other. The time
 * limit is an alarm that the child takes along.
 */
#define _GNU_SOURCE /* fileno */
#include "mdconfig/pictures/layout.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mdconfig/pictures/dot.h"
#include "mdconfig/pictures/draw.h"

#define PROGRAM "dot"
#define STATUS_MISSING 127
#define PIECE 4096

struct streams {
    FILE *in;
    FILE *out;
    FILE *err;
};

static void close_all(struct streams *s)
{
    FILE *files[] = {s->in, s->out, s->err};

    for (int i = 0; i < 3; i++)
        if (files[i])
            (void)fclose(files[i]); /* nobody reads them any more */
}

static int open_all(struct streams *s, struct chempi_err *err)
{
    *s = (struct streams){.in = tmpfile(), .out = tmpfile(), .err = tmpfile()};
    if (s->in && s->out && s->err)
        return 0;
    close_all(s);
    return chempi_err_set(err, -EIO, "no temporary file for " PROGRAM ": %s",
                          strerror(errno));
}

/* Ranks where there are few boxes; many would lie in two endless rows. */
_Noreturn static void become(const struct streams *s, bool is_many)
{
    char program[] = PROGRAM;
    char format[] = "-Tsvg";
    char engine[] = "-Ksfdp";
    char overlap[] = "-Goverlap=false";
    char *argv[] = {program, format, is_many ? engine : NULL, overlap, NULL};

    if (dup2(fileno(s->in), 0) < 0 || dup2(fileno(s->out), 1) < 0 ||
        dup2(fileno(s->err), 2) < 0)
        _exit(1);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(CHEMPI_LAYOUT_LIMIT_S);
    (void)execvp(program, argv);
    _exit(errno == ENOENT || errno == EACCES ? STATUS_MISSING : 1);
}

static int fail(const struct streams *s, struct chempi_err *err)
{
    char line[200] = "";

    rewind(s->err);
    if (fgets(line, sizeof(line), s->err))
        line[strcspn(line, "\r\n")] = '\0';
    return chempi_err_set(err, -EIO, "Graphviz (" PROGRAM ") failed%s%s",
                          *line ? ": " : "", line);
}

static int judge(const struct streams *s, int status, struct chempi_err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_MISSING)
        return chempi_err_set(err, -ENOENT,
                              "there is no program " PROGRAM
                              "; Debian's package is graphviz");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return chempi_err_set(
            err, -ETIME, "Graphviz (" PROGRAM ") had not finished after %u s",
            CHEMPI_LAYOUT_LIMIT_S);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : fail(s, err);
}

static int run(const struct streams *s, bool is_many, struct chempi_err *err)
{
    int status;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        become(s, is_many);
    if (pid < 0)
        return chempi_err_set(err, -errno, PROGRAM ": %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return chempi_err_set(err, -errno, PROGRAM ": %s", strerror(errno));
    return judge(s, status, err);
}

/* What it has drawn; a closing tag is the least. */
static int copy(const struct streams *s, FILE *out, struct chempi_err *err)
{
    static const char last[] = "</svg>";
    char piece[PIECE];
    size_t n;

    if (fseek(s->out, -(long)(sizeof(last) + 1), SEEK_END) != 0)
        return fail(s, err);
    n = fread(piece, 1, sizeof(last) + 1, s->out);
    piece[n] = '\0';
    if (!strstr(piece, last))
        return fail(s, err);
    rewind(s->out);
    while ((n = fread(piece, 1, sizeof(piece), s->out)) > 0)
        (void)fwrite(piece, 1, n, out); /* whoever closes it looks for errors */
    return 0;
}

int chempi_layout_draw(const struct chempi_graph *graph, uint32_t from,
                       uint64_t len, FILE *out, struct chempi_err *err)
{
    struct streams s;
    int rc = open_all(&s, err);

    if (rc)
        return rc;
    chempi_dot(graph, from, len, s.in);
    if (fflush(s.in) != 0 || lseek(fileno(s.in), 0, SEEK_SET) != 0)
        rc = chempi_err_set(err, -EIO, "temporary file for " PROGRAM ": %s",
                            strerror(errno));
    if (!rc)
        rc = run(&s,
                 graph->class_count > CHEMPI_DRAW_MAX ||
                     graph->network_count > CHEMPI_DRAW_MAX,
                 err);
    if (!rc)
        rc = copy(&s, out, err);
    close_all(&s);
    return rc;
}
