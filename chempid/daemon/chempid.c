/* SPDX-License-Identifier: BSD-3-Clause */
/* chempid, the daemon of a node: see chempid(8). */
#define _GNU_SOURCE /* getopt_long, pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/daemon/daemon.h"
#include "chempid/helper/say.h"
#include "chempid/tree/local.h"
#include "chempid/version.h"
#include "common/base/log.h"
#include "common/base/number.h"
#include "common/fd/file.h"
#include "common/table/load.h"
#include "common/words/decimal.h"
#include "common/words/size.h"

static const char usage[] =
    "Usage: chempid [OPTION]...\n"
    "The CHEMPI daemon of one node.\n"
    "\n"
    "  --name NAME        name of the node (the host's name)\n"
    "  --dir DIR          directory of the daemons' sockets and ready files\n"
    "  --listen ADDR      address for other daemons, host:port; port 0: any\n"
    "  --key FILE         the cluster's key (see chempictl key)\n"
    "  --node-key FILE    this node's own key (see chempictl node-key)\n"
    "  --trust FILE       keys of nodes that are allowed, or revoked\n"
    "  --cluster FILE     nodes of the cluster, NAME ADDRESS:PORT [SLOTS]\n"
    "  --join ADDR        learn the nodes from this daemon\n"
    "  --tables DIR       directory of connection tables (mdconfig)\n"
    "  --serve WHOM       owner, or users: all but root (users, if root's\n"
    "                     and others can reach the directory)\n"
    "  --slots N          ranks that this node takes well (what the\n"
    "                     description says, else the processors)\n"
    "  --registrable SIZE memory that the ranks of this node may register,\n"
    "                     such as 64MiB (half of the memory)\n"
    "  --job-limits FILE  memory, processes and cpus that a job may have here\n"
    "  --user NAME        whom a daemon that serves all users becomes\n"
    "                     (chempid, or a number that nobody has)\n"
    "  --detect SECONDS   daemons that are silent for so long are lost (5)\n"
    "  --background       return when the daemon serves\n"
    "  --verbose          log what is done, too\n"
    "  --help, --version\n";

enum {
    OPT_NAME = 256,
    OPT_DIR,
    OPT_LISTEN,
    OPT_KEY,
    OPT_NODE_KEY,
    OPT_TRUST,
    OPT_CLUSTER,
    OPT_JOIN,
    OPT_TABLES,
    OPT_SERVE,
    OPT_SLOTS,
    OPT_REGISTRABLE,
    OPT_JOB_LIMITS,
    OPT_DETECT,
    OPT_USER,
    OPT_BACKGROUND,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION
};

static const struct option options[] = {
    {"name", required_argument, NULL, OPT_NAME},
    {"dir", required_argument, NULL, OPT_DIR},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"key", required_argument, NULL, OPT_KEY},
    {"node-key", required_argument, NULL, OPT_NODE_KEY},
    {"trust", required_argument, NULL, OPT_TRUST},
    {"cluster", required_argument, NULL, OPT_CLUSTER},
    {"join", required_argument, NULL, OPT_JOIN},
    {"tables", required_argument, NULL, OPT_TABLES},
    {"serve", required_argument, NULL, OPT_SERVE},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"registrable", required_argument, NULL, OPT_REGISTRABLE},
    {"job-limits", required_argument, NULL, OPT_JOB_LIMITS},
    {"detect", required_argument, NULL, OPT_DETECT},
    {"user", required_argument, NULL, OPT_USER},
    {"background", no_argument, NULL, OPT_BACKGROUND},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int fail(const char *text, const char *detail)
{
    (void)fprintf(stderr, "chempid: %s%s\n", text, detail);
    return 2;
}

static int parse_detect(const char *text, double *out)
{
    return chempi_decimal_parse(text, CHEMPI_BEAT_DETECT_MIN_S,
                                CHEMPI_BEAT_DETECT_MAX_S, out)
               ? 0
               : fail("--detect: expected seconds from 0.5 to 600, not ", text);
}

static int parse_slots(const char *text, uint32_t *out)
{
    return chempi_number_parse32(text, 1, CHEMPI_SLOTS_MAX, out)
               ? 0
               : fail("--slots: expected a number from 1 to 65535, not ", text);
}

static int parse_serve(const char *text, enum chempi_serve *out)
{
    if (strcmp(text, "owner") == 0)
        *out = CHEMPI_SERVE_OWNER;
    else if (strcmp(text, "users") == 0)
        *out = CHEMPI_SERVE_USERS;
    else
        return fail("--serve: expected owner or users, not ", text);
    return 0;
}

/* Not 0: that would be no daemon's wish. */
static int parse_size(const char *text, uint64_t *out)
{
    if (chempi_size_parse(text, UINT64_MAX >> 1, out) || !*out)
        return fail("--registrable: expected a size such as 64MiB, not ", text);
    return 0;
}

static void take_option(struct chempi_daemon_options *opt, int c,
                        const char *text, enum chempi_log_level *level)
{
    opt->name = c == OPT_NAME ? text : opt->name;
    opt->dir = c == OPT_DIR ? text : opt->dir;
    opt->listen = c == OPT_LISTEN ? text : opt->listen;
    opt->key = c == OPT_KEY ? text : opt->key;
    opt->node_key = c == OPT_NODE_KEY ? text : opt->node_key;
    opt->trust = c == OPT_TRUST ? text : opt->trust;
    opt->cluster = c == OPT_CLUSTER ? text : opt->cluster;
    opt->join = c == OPT_JOIN ? text : opt->join;
    opt->tables = c == OPT_TABLES ? text : opt->tables;
    opt->job_limits = c == OPT_JOB_LIMITS ? text : opt->job_limits;
    opt->user = c == OPT_USER ? text : opt->user;
    opt->is_background |= c == OPT_BACKGROUND;
    if (c == OPT_VERBOSE)
        *level = CHEMPI_LOG_INFO;
}

/* Returns -1 to go on, or an exit status. */
static int parse(struct chempi_daemon_options *opt,
                 enum chempi_log_level *level, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == OPT_HELP || c == OPT_VERSION) {
            (void)fputs(c == OPT_HELP ? usage
                                      : "chempid (CHEMPI) " CHEMPI_VERSION "\n",
                        stdout);
            return fflush(stdout) ? 1 : 0;
        }
        if (c == '?')
            return fail("see chempid --help", "");
        if (c == OPT_SLOTS && parse_slots(optarg, &opt->slots))
            return 2;
        if (c == OPT_DETECT && parse_detect(optarg, &opt->detect_s))
            return 2;
        if (c == OPT_SERVE && parse_serve(optarg, &opt->serve))
            return 2;
        if (c == OPT_REGISTRABLE && parse_size(optarg, &opt->registrable))
            return 2;
        take_option(opt, c, optarg, level);
    }
    if (optind < argc)
        return fail("unexpected argument: ", argv[optind]);
    return -1;
}

/* Jobs would be refused one by one. */
static int find_table(const struct chempi_daemon_options *opt)
{
    char path[4096];
    struct stat about;
    const int n = snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                           opt->tables, opt->name);

    if (n < 0 || (size_t)n >= sizeof(path))
        return fail("too long a path: ", opt->tables);
    if (stat(opt->tables, &about) == 0 && !S_ISDIR(about.st_mode))
        return fail("--tables takes a directory of tables, which 'mdconfig "
                    "compile -o DIR' makes of a description; found the file ",
                    opt->tables);
    if (access(path, R_OK) < 0)
        return fail("no connection table for this node (mdconfig compile "
                    "makes them; --name says which node this is): ",
                    path);
    return 0;
}

static int fill_in(struct chempi_daemon_options *opt, char *dir, size_t size,
                   char *host, size_t host_size)
{
    if (!opt->dir) {
        if (chempi_local_dir(dir, size))
            return fail("the default directory's name is too long", "");
        opt->dir = dir;
    }
    if (!opt->name) {
        if (gethostname(host, host_size - 1) < 0)
            return fail("this host has no name; say --name", "");
        host[strcspn(host, ".")] = '\0';
        opt->name = host;
    }
    if (!chempi_members_is_name(opt->name))
        return fail("not a node name: ", opt->name);
    return opt->tables ? find_table(opt) : 0;
}

/* Who waits for the end of our input or output shall not wait for us; standard
 * error tells of what goes wrong until the daemon serves (say.h). */
static int leave_streams(void)
{
    const int rc = chempi_file_leave_streams();

    return rc ? fail("cannot leave the standard streams: ", strerror(-rc)) : 0;
}

/* No word has come that the child serves: mostly since it has failed and said
 * why. It does not stay without a starter who knows of it. */
static int end_child(pid_t pid)
{
    int status = 0;

    (void)kill(pid, SIGTERM); /* it may be gone */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
        (void)fail("the daemon was ended, as it could not be heard", "");
    return 1;
}

/* The parent stays until the child serves (or has failed). */
static int go_to_background(int *ready_fd)
{
    int fds[2];
    char byte;
    ssize_t n;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        (void)fail("cannot go to the background: ", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        (void)close(fds[0]); /* the parent's end */
        (void)setsid();
        *ready_fd = fds[1];
        return leave_streams() ? 1 : -1;
    }
    (void)close(fds[1]); /* the child's end */
    while ((n = read(fds[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    return n == 1 ? 0 : end_child(pid);
}

int main(int argc, char **argv)
{
    struct chempi_daemon_options opt = {.detect_s = CHEMPI_BEAT_DETECT_S};
    enum chempi_log_level level = CHEMPI_LOG_WARNING;
    static char name[CHEMPI_NODE_NAME_MAX];
    char host[CHEMPI_NODE_NAME_MAX] = "";
    char dir[4096];
    int ready_fd = -1;
    int status = parse(&opt, &level, argc, argv);

    if (status >= 0)
        return status;
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, no child's end would be told */
    if (fill_in(&opt, dir, sizeof(dir), host, sizeof(host)))
        return 2;
    (void)snprintf(name, sizeof(name), "%s", opt.name);
    chempi_say_start(name, level);
    if (opt.is_background)
        status = go_to_background(&ready_fd);
    return status >= 0 ? status : chempi_daemon_run(&opt, ready_fd);
}
