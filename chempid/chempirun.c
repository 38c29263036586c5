/* SPDX-License-Identifier: BSD-3-Clause */
/* chempirun, the launcher: see chempirun(1). */
#define _GNU_SOURCE /* gethostname */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/options.h"
#include "chempid/plan.h"
#include "chempid/run.h"
#include "chempid/verdict.h"
#include "chempid/version.h"
#include "common/base/sys.h"

static const char usage[] =
    "Usage: chempirun [-n RANKS] [OPTION]... PROGRAM [ARG]... [: ...]\n"
    "Run an MPI job.\n"
    "\n"
    "  -n RANKS             number of ranks of the program (1)\n"
    "  --nodes A,B          use these nodes of the cluster\n"
    "  --virtual A,B | K    use virtual nodes on this host\n"
    "  --network DIR        directory of connection tables (mdconfig)\n"
    "  --ppn N              at most N ranks per node\n"
    "  --map HOW            block, cyclic or load\n"
    "  --bind WHAT          core, socket or none\n"
    "  --wdir DIR           working directory\n"
    "  --env NAME=VALUE     variable for the program\n"
    "  -x NAME[=VALUE]      variable for all programs\n"
    "  --env-none           pass no other variables on\n"
    "  --stdin WHO          all, none or a rank (0)\n"
    "  --label              put the rank before each line of output\n"
    "  --timeout SECONDS    end the job after this time\n"
    "  --stats              print which way how many messages went\n"
    "  --dir DIR            where the daemons' sockets are\n"
    "  --via NAME           speak to this daemon\n"
    "  --private            use no daemon\n"
    "  --help, --version\n"
    "\n"
    "See chempirun(1) for exit statuses and other spellings.\n";

/* Descriptors 0 to 2 must be open, so that no pipe gets their numbers. */
static void hold_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        (void)close(fd); /* it was only needed to look */
}

static int fail(const struct chempi_err *err, int status)
{
    (void)fprintf(stderr, "chempirun: %s\n", err->text);
    return status;
}

static void name_this_host(char *name, size_t size)
{
    if (gethostname(name, size) < 0 || !name[0])
        (void)snprintf(name, size, "localhost");
    name[size - 1] = '\0';
    name[strcspn(name, ".")] = '\0';
}

static int run_private(const struct chempi_options *opt)
{
    char host[CHEMPI_NODE_NAME_MAX];
    char *alone[] = {host, NULL};
    char **names = opt->names && opt->is_virtual ? opt->names : alone;
    struct chempi_plan_node *nodes;
    struct chempi_spec spec;
    struct chempi_err err;
    uint32_t count = 0;
    int rc;

    name_this_host(host, sizeof(host));
    while (names[count])
        count++;
    nodes = chempi_sys->calloc(count, sizeof(*nodes));
    if (!nodes) {
        (void)chempi_err_set(&err, -ENOMEM, "out of memory");
        return fail(&err, CHEMPI_EXIT_FAILURE);
    }
    for (uint32_t i = 0; i < count; i++)
        nodes[i].name = names[i];
    rc = chempi_plan_make(opt, nodes, count, &spec, &err);
    free(nodes);
    if (rc)
        return fail(&err, CHEMPI_EXIT_USAGE);
    rc = chempi_run_private(opt, &spec);
    chempi_spec_fini(&spec);
    return rc;
}

int main(int argc, char **argv)
{
    struct chempi_options opt;
    struct chempi_err err;
    int status;

    hold_standard_streams();
    if (chempi_options_parse(&opt, argc, argv, &err))
        return fail(&err, CHEMPI_EXIT_USAGE);
    if (opt.wants_help || opt.wants_version) {
        (void)fputs(opt.wants_help ? usage
                                   : "chempirun (CHEMPI) " CHEMPI_VERSION "\n",
                    stdout);
        status = fflush(stdout) ? CHEMPI_EXIT_FAILURE : 0;
    } else {
        status = run_private(&opt);
    }
    chempi_options_fini(&opt);
    return status;
}
