/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of lines; see linefile.h. */
#include "common/words/linefile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 4096 /* with its end */

/* false: no line is left. */
static bool read_line(FILE *file, const char *what, char *line,
                      struct chempi_err *err, int *rc)
{
    size_t len = 0;
    size_t end;
    int c = 0;

    while (len < LINE_MAX_BYTES - 1 && c != '\n' && (c = getc(file)) != EOF)
        line[len++] = (char)c;
    line[len] = '\0';
    if (len == LINE_MAX_BYTES - 1 && c != '\n')
        *rc = chempi_err_set(err, -EINVAL,
                             "a line is longer than %d bytes; is this a file "
                             "of %s?",
                             LINE_MAX_BYTES - 1, what);
    else if (strlen(line) != len)
        *rc = chempi_err_set(err, -EINVAL, "a zero byte; is this a file of %s?",
                             what);
    end = strcspn(line, "#\n");
    end -= end > 0 && line[end - 1] == '\r'; /* elsewhere it is no line's end */
    line[end] = '\0';
    return len > 0;
}

int chempi_linefile_take(FILE *file, const char *path, const char *what,
                         chempi_linefile_fn *take, void *arg,
                         struct chempi_err *err)
{
    char line[LINE_MAX_BYTES];
    unsigned number = 0;
    int rc = 0;

    while (!rc && read_line(file, what, line, err, &rc)) {
        number++;
        rc = rc ? rc : take(arg, line, number, err);
    }
    if (rc)
        (void)chempi_err_prefix(err, "%s:%u", path, number);
    else if (ferror(file))
        rc = chempi_err_set(err, -EINVAL, "%s: cannot be read", path);
    (void)fclose(file); /* read only */
    return rc;
}

int chempi_linefile_each(const char *path, const char *what,
                         chempi_linefile_fn *take, void *arg,
                         struct chempi_err *err)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return chempi_err_set(err, -EINVAL, "%s: %s", path,
                              chempi_err_name(errno));
    return chempi_linefile_take(file, path, what, take, arg, err);
}
