/* SPDX-License-Identifier: BSD-3-Clause */
/* mdconfig import; see command.h. */
#include <errno.h>
#include <string.h>

#include "mdconfig/description/command.h"
#include "mdconfig/import/import.h"

static int gather(struct chempi_import *im,
                  const struct chempi_command_line *line,
                  struct chempi_err *err)
{
    bool any = line->hosts || line->scontrol || line->topology;
    int rc = 0;

    if (line->local || !any)
        rc = chempi_import_local(im, err);
    if (!rc && line->scontrol)
        rc = chempi_import_scontrol(im, line->scontrol, err);
    if (!rc && line->topology)
        rc = chempi_import_topology(im, line->topology, err);
    if (!rc && line->hosts)
        rc = chempi_import_hosts(im, line->hosts, err);
    if (!rc && im->node_count > CHEMPI_DESC_NODES_MAX)
        rc = chempi_err_set(err, -E2BIG, "expected at most %u nodes, found %zu",
                            CHEMPI_DESC_NODES_MAX, im->node_count);
    return rc;
}

/* "x": what a person may have edited is not overwritten. */
static int write_file(struct chempi_import *im, const char *path,
                      struct chempi_err *err)
{
    FILE *out = path ? fopen(path, "wx") : stdout;
    bool bad;

    if (!out)
        return chempi_err_set(err, -errno, "%s: %s%s", path, strerror(errno),
                              errno == EEXIST ? "; expected a new file" : "");
    chempi_import_write(im, out);
    bad = fflush(out) != 0 || ferror(out) != 0;
    if (path)
        bad = fclose(out) != 0 || bad;
    if (!bad)
        return 0;
    if (path)
        (void)remove(path); /* it is incomplete, and ours */
    return chempi_err_set(err, -EIO, "%s: cannot be written",
                          path ? path : "standard output");
}

static bool is_stdin(const char *file)
{
    return file && strcmp(file, "-") == 0;
}

int chempi_command_import(struct chempi_command_line *line,
                          struct chempi_err *err)
{
    struct chempi_import im = {.node_count = 0};
    int rc;

    if (is_stdin(line->hosts) + is_stdin(line->scontrol) +
            is_stdin(line->topology) >
        1)
        return chempi_command_usage(
            err, "one source at most can be standard input", "");
    rc = gather(&im, line, err);
    if (!rc)
        rc = write_file(&im, line->output, err);
    chempi_import_fini(&im);
    return rc ? CHEMPI_COMMAND_FAILED : CHEMPI_COMMAND_OK;
}
