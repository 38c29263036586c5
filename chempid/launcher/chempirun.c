/* SPDX-License-Identifier: BSD-3-Clause */
/* chempirun, the launcher: see chempirun(1). */
#define _GNU_SOURCE /* gethostname, strverscmp */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "chempid/hosts/allocation.h"
#include "chempid/job/exit_status.h"
#include "chempid/job/namelist.h"
#include "chempid/job/program.h"
#include "chempid/launcher/early.h"
#include "chempid/launcher/gateway_failures.h"
#include "chempid/launcher/mpir.h"
#include "chempid/launcher/profile.h"
#include "chempid/launcher/run.h"
#include "chempid/launcher/serve.h"
#include "chempid/launcher/singleton.h"
#include "chempid/options/option_table.h"
#include "chempid/options/options.h"
#include "chempid/plan/plan.h"
#include "chempid/remote/remote_tree.h"
#include "chempid/tree/local.h"
#include "chempid/version.h"
#include "chempid/worlds/above.h"
#include "chempid/worlds/inherit.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/control/dynamic.h"

#define TRIES 8u /* to start a job on slots that others take meanwhile */
#define PAUSE_NS 10000000u /* twice that, at most, before the second try */

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

/* Of a world that ranks have started they hear it, and nobody else. */
static int fail(const struct chempi_options *opt, const struct chempi_err *err,
                int status)
{
    if (opt && opt->above)
        chempi_above_refused(opt->above, 0, err->text);
    else
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

/* Which daemon, and how many ranks each node gets. */
static void say_plan(const struct chempi_options *opt,
                     const struct chempi_spec *spec,
                     const struct chempi_local_daemon *daemon)
{
    uint32_t *sizes;

    if (!opt->is_verbose)
        return;
    (void)fprintf(stderr, "chempirun: job %s ", spec->id);
    if (daemon)
        (void)fprintf(stderr, "by the daemon of node %s (%s):", daemon->node,
                      daemon->path);
    else
        (void)fprintf(stderr, "without a daemon:");
    sizes = chempi_sys->calloc(spec->node_count, sizeof(*sizes));
    for (uint32_t i = 0; sizes && i < spec->size; i++)
        sizes[spec->node_of_rank[i]]++;
    for (uint32_t i = 0; sizes && i < spec->node_count; i++)
        (void)fprintf(stderr, " %s:%u", spec->node_names[i], sizes[i]);
    free(sizes);
    (void)fprintf(stderr, "\n");
}

static int out_of_memory(const struct chempi_options *opt)
{
    struct chempi_err err;

    (void)chempi_err_set(&err, -ENOMEM, "out of memory");
    return fail(opt, &err, CHEMPI_EXIT_FAILURE);
}

static uint32_t count_names(const struct chempi_options *opt)
{
    uint32_t count = 0;

    while (opt->names && opt->names[count])
        count++;
    return count;
}

static bool has_slots(const struct chempi_options *opt)
{
    for (uint32_t i = 0; opt->names && opt->names[i]; i++)
        if (opt->slots[i])
            return true;
    return false;
}

/* What the user says of a node, by its place in --nodes (CHEMPI_NAMELIST_NONE:
 * it is not there); 0: nothing. */
static uint32_t slots_of(const struct chempi_options *opt, bool is_said,
                         uint32_t place)
{
    if (!is_said)
        return 0;
    return place != CHEMPI_NAMELIST_NONE && opt->slots[place]
               ? opt->slots[place]
               : 1;
}

/* Exit status for a plan that could not be made. */
static int plan_status(int rc)
{
    if (rc == -ENXIO)
        return CHEMPI_EXIT_NODE;
    return rc == -ENOMEM || rc == -EHOSTUNREACH || rc == -EDQUOT
               ? CHEMPI_EXIT_FAILURE
               : CHEMPI_EXIT_USAGE;
}

static int make_plan(const struct chempi_options *opt,
                     const struct chempi_plan_node *nodes, uint32_t count,
                     const char *daemon_tables, struct chempi_spec *spec,
                     struct chempi_err *err)
{
    uint32_t unseen;
    int rc = chempi_plan_make(opt, nodes, count, daemon_tables, spec, err);

    if (rc)
        return rc;
    spec->is_debugged = chempi_mpir_is_debugged();
    rc = chempi_gateway_failures_check(spec, &unseen, err);
    if (unseen)
        (void)fprintf(stderr,
                      "chempirun: %u of the job's nodes were not looked at: "
                      "there is no connection table of them here, or there are "
                      "more than %u; whether they reach all others shows when "
                      "messages are sent\n",
                      unseen, CHEMPI_REACHABILITY_NODES_MAX);
    if (rc == -EHOSTUNREACH && opt->allows_unreachable) {
        (void)fprintf(stderr, "chempirun: %s\n", err->text);
        return 0;
    }
    if (rc == -EHOSTUNREACH)
        (void)snprintf(err->text + strlen(err->text),
                       sizeof(err->text) - strlen(err->text),
                       "; the job was not started (--allow-unreachable would "
                       "start it)");
    if (rc)
        chempi_spec_fini(spec);
    return rc;
}

static int run_private(const struct chempi_options *opt)
{
    char host[CHEMPI_NODE_NAME_MAX];
    char *alone[] = {host, NULL};
    char **names = opt->is_virtual ? opt->names : alone;
    const bool is_said = has_slots(opt);
    struct chempi_plan_node *nodes;
    struct chempi_spec spec;
    struct chempi_err err;
    uint32_t count = 0;
    int rc;

    name_this_host(host, sizeof(host));
    while (names[count])
        count++;
    nodes = chempi_sys->calloc(count, sizeof(*nodes));
    if (!nodes)
        return out_of_memory(opt);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i].name = names[i];
        nodes[i].place.slots = slots_of(opt, is_said, i);
    }
    if (!opt->is_virtual) /* whatever names the user has for this host */
        nodes[0].place.slots = chempi_plan_named_slots(opt);
    rc = make_plan(opt, nodes, count, NULL, &spec, &err);
    free(nodes);
    if (rc)
        return fail(opt, &err, plan_status(rc));
    say_plan(opt, &spec, NULL);
    rc = chempi_run_private(opt, &spec);
    chempi_spec_fini(&spec);
    return rc;
}

/* ---- on other hosts, without daemons --------------------------------------
 */

/* May a host call others? Slurm starts steps in no tree of ours. */
static bool calls_others(const struct chempi_options *opt, const char *launcher)
{
    return !opt->is_flat && strcmp(launcher, CHEMPI_LAUNCHER_SRUN) != 0;
}

static int call_hosts(const struct chempi_options *opt,
                      const struct chempi_spec *spec, const char *launcher)
{
    struct chempi_remote *remotes = chempi_remote_create(spec->node_count);
    struct chempi_err err;
    int rc;

    if (!remotes)
        return out_of_memory(opt);
    for (uint32_t i = 0; i < spec->node_count; i++)
        remotes[i].host = spec->node_names[i];
    rc = chempi_remote_reach(
        remotes, spec->node_count,
        calls_others(opt, launcher) ? chempi_spec_first_spare(spec) : 0,
        launcher, opt->is_verbose, &err);
    rc = rc ? fail(opt, &err, CHEMPI_EXIT_FAILURE)
            : chempi_run_far(opt, spec, remotes);
    chempi_remote_leave(remotes, spec->node_count);
    chempi_remote_destroy(remotes, spec->node_count);
    return rc;
}

/* Commands get it as one word; what they, their settings (ProxyCommand) and
 * shells at the other end make of it is theirs. */
static int check_host(const char *host, struct chempi_err *err)
{
    const char *name = strrchr(host, '@');

    name = name ? name + 1 : host;
    if (*name && *name != '-' && !strpbrk(host, "`$&;|<>()[]{}*?!~^'\"\\"))
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "host '%.100s' has a character that shells or "
                          "commands take for something else; use its name of "
                          "letters, digits, dots and dashes",
                          host);
}

static int run_far(const struct chempi_options *opt)
{
    const char *launcher = opt->launcher                  ? opt->launcher
                           : chempi_allocation_is_slurm() ? CHEMPI_LAUNCHER_SRUN
                                                          : CHEMPI_LAUNCHER_SSH;
    const bool is_said = has_slots(opt);
    struct chempi_plan_node *nodes;
    struct chempi_spec spec;
    const uint32_t count = count_names(opt);
    struct chempi_err err;
    int rc;

    nodes = chempi_sys->calloc(count, sizeof(*nodes));
    if (!nodes)
        return out_of_memory(opt);
    for (uint32_t i = 0; i < count; i++) {
        if (check_host(opt->names[i], &err)) {
            free(nodes);
            return fail(opt, &err, CHEMPI_EXIT_USAGE);
        }
        nodes[i].name = opt->names[i];
        nodes[i].place.slots = slots_of(opt, is_said, i);
        nodes[i].host = i + 1; /* nobody knows better before they answer */
    }
    rc = make_plan(opt, nodes, count, NULL, &spec, &err);
    free(nodes);
    if (rc)
        return fail(opt, &err, plan_status(rc));
    rc = call_hosts(opt, &spec, launcher);
    chempi_spec_fini(&spec);
    return rc;
}

/* ---- with a daemon ------------------------------------------------------- */

/* Nodes that do not answer: an error if they were asked for, else they are
 * left out. */
static int choose_nodes(const struct chempi_options *opt,
                        const struct chempi_namelist *places,
                        const struct chempi_status *list, uint32_t count,
                        bool insists, struct chempi_plan_node *nodes,
                        uint32_t *chosen, struct chempi_err *err)
{
    const bool is_said = has_slots(opt);
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slots =
            slots_of(opt, is_said, chempi_namelist_find(places, list[i].node));

        if (*list[i].error && opt->names)
            return chempi_err_set(err, -ENXIO, "node %s: %s", list[i].node,
                                  list[i].error);
        if (*list[i].error) {
            (void)fprintf(stderr, "chempirun: leaving out node %s: %s\n",
                          list[i].node, list[i].error);
            continue;
        }
        nodes[n++] = (struct chempi_plan_node){
            .name = list[i].node,
            .place = {.slots = slots ? slots : list[i].slots,
                      .load = list[i].load / 100.0,
                      .busy = slots ? 0 : list[i].busy,
                      .is_shared = !slots && !insists},
            .host = list[i].host,
            .busy = list[i].busy,
        };
    }
    *chosen = n;
    return n ? 0 : chempi_err_set(err, -ENXIO, "no node answers");
}

static int compare_names(const void *a, const void *b)
{
    const struct chempi_plan_node *x = a;
    const struct chempi_plan_node *y = b;

    return strverscmp(x->name, y->name);
}

static int compare_places(const void *a, const void *b, void *arg)
{
    const struct chempi_plan_node *m = a;
    const struct chempi_plan_node *n = b;
    const uint32_t x = chempi_namelist_find(arg, m->name);
    const uint32_t y = chempi_namelist_find(arg, n->name);

    return (x > y) - (x < y);
}

/* In the order of --nodes, else of the names. */
static void order_nodes(const struct chempi_options *opt,
                        struct chempi_namelist *places,
                        struct chempi_plan_node *nodes, uint32_t count)
{
    if (opt->names)
        qsort_r(nodes, count, sizeof(*nodes), compare_places, places);
    else
        qsort(nodes, count, sizeof(*nodes), compare_names);
}

/* Where the connection tables are: at the daemon that we speak to, which is on
 * this host, else at another one, in the hope of a common file system. NULL:
 * nowhere. */
static const char *tables_of(const struct chempi_status *list, uint32_t count,
                             const char *daemon)
{
    const char *other = NULL;

    for (uint32_t i = 0; i < count; i++) {
        if (!list[i].tables || !*list[i].tables)
            continue;
        other = other ? other : list[i].tables;
        if (strcmp(list[i].node, daemon) == 0)
            return list[i].tables;
    }
    return other;
}

/* 0, or the exit status with words. */
static int plan_remote(const struct chempi_options *opt,
                       struct chempi_channel *ch, const char *daemon,
                       bool insists, struct chempi_spec *spec,
                       struct chempi_err *err)
{
    struct chempi_pool pool = {0};
    struct chempi_plan_node *nodes = NULL;
    struct chempi_status *list = NULL;
    struct chempi_namelist places;
    uint32_t count = 0;
    uint32_t chosen = 0;
    int status = CHEMPI_EXIT_FAILURE;
    int rc =
        chempi_local_query(ch, opt->names, false, &pool, &list, &count, err);

    if (chempi_namelist_init(&places, (const char *const *)opt->names,
                             count_names(opt)) &&
        !rc)
        rc = chempi_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        nodes = chempi_pool_array(&pool, count, sizeof(*nodes));
        rc = nodes ? choose_nodes(opt, &places, list, count, insists, nodes,
                                  &chosen, err)
                   : chempi_err_set(err, -ENOMEM, "out of memory");
        status = plan_status(rc);
    }
    if (!rc) {
        order_nodes(opt, &places, nodes, chosen);
        rc = make_plan(opt, nodes, chosen, tables_of(list, count, daemon), spec,
                       err);
        status = plan_status(rc);
    }
    chempi_namelist_fini(&places);
    chempi_pool_fini(&pool);
    return rc ? status : 0;
}

/* Once; insists: also where the slots are not free any more. */
static int run_remote(const struct chempi_options *opt,
                      struct chempi_channel *ch,
                      const struct chempi_local_daemon *daemon, bool insists,
                      struct chempi_err *taken)
{
    struct chempi_spec spec;
    struct chempi_err err = {0};
    struct chempi_err words;
    int fd = ch->fd;
    int rc = plan_remote(opt, ch, daemon->node, insists, &spec, &err);

    chempi_early_over();
    if (rc) {
        chempi_channel_fini(ch);
        (void)chempi_err_set(&words, err.code, "%.900s (by the daemon at %s)",
                             err.text, daemon->path);
        return fail(opt, &words, rc);
    }
    ch->fd = -1; /* the run has it now */
    chempi_channel_fini(ch);
    say_plan(opt, &spec, daemon);
    rc = chempi_run_remote(opt, &spec, fd, daemon->node, taken);
    chempi_spec_fini(&spec);
    return rc;
}

/* Before the job is mapped again. Others may be refused for slots that we had
 * for a moment, and we for theirs: so it is not the same time for all, and
 * grows. */
static void pause_before(uint32_t try)
{
    struct timespec pause = {0};
    uint32_t number = 0;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
        number = (uint32_t)getpid();
    pause.tv_nsec = (long)(number % (PAUSE_NS << try));
    (void)nanosleep(&pause, NULL);
}

/* Launchers that ask at the same moment see the same slots free, and the
 * daemons give each slot to one of them; the others ask again. */
static int run_on_free_slots(struct chempi_options *opt,
                             struct chempi_channel *ch,
                             struct chempi_local_daemon *daemon)
{
    const uint64_t start = chempi_clock_ns();

    for (uint32_t try = 1;; try++) {
        const bool is_last = try == TRIES;
        struct chempi_err err = {0};
        const int status =
            run_remote(opt, ch, daemon, is_last && !opt->fits_only, &err);

        if (err.code != -EAGAIN)
            return status;
        if (is_last)
            return fail(opt, &err, CHEMPI_EXIT_FAILURE);
        if (opt->is_verbose)
            (void)fprintf(stderr, "chempirun: %s; mapping it again\n",
                          err.text);
        opt->spent_s = (double)(chempi_clock_ns() - start) * 1e-9;
        chempi_early_limit(opt->timeout_s, opt->spent_s);
        pause_before(try);
        if (chempi_local_open(ch, opt->dir, opt->via, daemon, &err)) {
            chempi_early_over();
            return fail(opt, &err, CHEMPI_EXIT_FAILURE);
        }
    }
}

/* "-host localhost" is what private jobs do anyway. */
static bool is_here_only(const struct chempi_options *opt)
{
    char host[CHEMPI_NODE_NAME_MAX];
    char whole[CHEMPI_NODE_NAME_MAX] = ""; /* with its domain */
    const char *const here[] = {"localhost", "127.0.0.1", host, whole};

    name_this_host(host, sizeof(host));
    (void)gethostname(whole, sizeof(whole) - 1);
    for (char **n = opt->names; n && *n; n++) {
        size_t i = 0;

        while (i < CHEMPI_ARRAY_LEN(here) && strcmp(*n, here[i]) != 0)
            i++;
        if (i == CHEMPI_ARRAY_LEN(here))
            return false;
    }
    return true;
}

/* Programs of another MPI do not find the job: each rank would be a world of
 * one. That cannot be certain (the library may be replaced at run time), so
 * they are started all the same. */
static void warn_of_others(const struct chempi_options *opt)
{
    char file[4096];
    char library[128];

    for (uint32_t i = 0; i < opt->program_count; i++) {
        const struct chempi_program *program = &opt->programs[i];

        if (chempi_program_find(program->argv[0], program->wdir, getenv("PATH"),
                                file, sizeof(file)) &&
            chempi_program_other_mpi(file, library, sizeof(library)))
            (void)fprintf(stderr,
                          "chempirun: %s is linked with %s, another MPI's "
                          "library, which does not know this launcher: its "
                          "ranks will not find each other; compile it with "
                          "CHEMPI's mpicc, or start it with that MPI's "
                          "mpiexec\n",
                          program->argv[0], library);
    }
}

/* -x NAME, of what is not there to be passed on. */
static void warn_of_names(const struct chempi_options *opt)
{
    for (char *const *name = opt->pass; *name; name++)
        if (**name && !strchr(*name, '=') && !getenv(*name))
            (void)fprintf(stderr,
                          "chempirun: there is no variable %s here; it is not "
                          "passed on\n",
                          *name);
}

/* The nodes that a batch system has given us, as if they had been named. 1, 0:
 * none, -errno with words. */
static int take_allocation(struct chempi_options *opt, struct chempi_err *err)
{
    struct chempi_hosts hosts = {0};
    const int rc = chempi_allocation_read(&hosts, &opt->pool, err);

    if (rc > 0) {
        opt->names = hosts.names;
        opt->slots = hosts.slots;
        opt->has_allocation = true;
    }
    chempi_hosts_fini(&hosts);
    return rc;
}

/* Without a daemon. */
static int run_named(const struct chempi_options *opt)
{
    struct chempi_err err;

    if (is_here_only(opt))
        return run_private(opt);
    if (!opt->is_loose)
        return run_far(opt);
    (void)chempi_inherit_refuse(opt->host, &err);
    return fail(opt, &err, CHEMPI_EXIT_NODE);
}

/* A daemon, if one is asked for or there is one; else a private job, or by ssh
 * if there are other hosts. */
static int run(struct chempi_options *opt)
{
    const char *set = getenv(CHEMPI_DIR_ENV);
    const bool must = opt->dir || opt->via || (set && *set);
    struct chempi_channel ch;
    struct chempi_err err = {0};
    struct chempi_local_daemon daemon;

    if (!must && !opt->is_virtual && !opt->is_private && !opt->names &&
        take_allocation(opt, &err) < 0)
        return fail(opt, &err, CHEMPI_EXIT_FAILURE);
    if (chempi_inherit_choose(opt, &err))
        return fail(opt, &err, CHEMPI_EXIT_NODE);
    if (opt->has_allocation)
        return run_named(opt);
    if (opt->launcher && opt->names && !opt->is_loose)
        return run_far(opt);
    if (opt->is_virtual)
        return run_private(opt);
    if (opt->is_private)
        return opt->is_loose ? run_named(opt) : run_private(opt);
    chempi_early_limit(opt->timeout_s, 0);
    if (!chempi_local_open(&ch, opt->dir, opt->via, &daemon, &err))
        return run_on_free_slots(opt, &ch, &daemon);
    chempi_early_over();
    return must ? fail(opt, &err, CHEMPI_EXIT_FAILURE) : run_named(opt);
}

/* Instead of running something. */
static void answer(const struct chempi_options *opt)
{
    if (opt->wants_help)
        chempi_option_usage(stdout);
    else if (opt->wants_version)
        (void)fputs("chempirun (CHEMPI) " CHEMPI_VERSION "\n", stdout);
    else
        (void)chempi_option_completion(stdout, opt->completion);
}

/* ---- a world that ranks have started ------------------------------------- */

/* What it is, as the first launcher says; *app is whose fault it is if it
 * cannot be. The options have what is read. */
static int read_world(struct chempi_options *opt, struct chempi_above *above,
                      const struct chempi_frame *frame, uint32_t *app,
                      struct chempi_err *err)
{
    struct chempi_spawn *spawn;
    struct chempi_reader r;
    const uint8_t *blob;
    uint32_t world;
    size_t len;
    int rc;

    *app = 0;
    chempi_wire_read(&r, frame->data, frame->len);
    world = chempi_wire_get_u32(&r);
    rc = chempi_inherit_read(opt, &r);
    opt->above = above;
    opt->world = world;
    blob = chempi_wire_get_blob(&r, CHEMPI_ROOT_BYTES_MAX, &len);
    if (!rc && !chempi_wire_is_done(&r))
        rc = -EBADMSG;
    rc = rc ? rc : chempi_spawn_read(blob, len, &spawn);
    if (rc)
        return chempi_err_set(err, rc, "what shall be started: %s",
                              chempi_err_name(rc));
    opt->parent = chempi_pool_str(&opt->pool, spawn->port);
    rc = opt->parent ? chempi_inherit_programs(opt, spawn, app, err)
                     : chempi_err_set(err, -ENOMEM, "out of memory");
    free(spawn);
    return rc;
}

static int run_world(void)
{
    struct chempi_above above;
    struct chempi_options opt = {0};
    struct chempi_frame frame;
    struct chempi_err err;
    uint32_t app;
    int status = CHEMPI_EXIT_USAGE;

    (void)prctl(PR_SET_NAME, "chempirun"); /* else it is "exe" */
    /* Also one that is stopped notices the end of the first launcher. */
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT);
    if (chempi_above_open(&above, &frame, &err)) {
        status = fail(NULL, &err, CHEMPI_EXIT_USAGE);
    } else {
        if (read_world(&opt, &above, &frame, &app, &err))
            chempi_above_refused(&above, app, err.text);
        else
            status = run(&opt);
        chempi_above_close(&above);
        chempi_options_fini(&opt);
    }
    /* SIGCONT takes back a SIGSTOP that has not been delivered, and so also
     * that of a tracer, which then waits for ever: LeakSanitizer is one. */
    (void)prctl(PR_SET_PDEATHSIG, 0);
    return status;
}

int main(int argc, char **argv)
{
    struct chempi_options opt;
    struct chempi_err err;
    int status;

    hold_standard_streams();
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, no child's end would be told */
    if (argc == 2 && strcmp(argv[1], CHEMPI_REMOTE_OPTION) == 0)
        return chempi_remote_serve();
    if (argc == 2 && strcmp(argv[1], CHEMPI_ABOVE_OPTION) == 0)
        return run_world();
    if (argc == 2 && strcmp(argv[1], CHEMPI_ROOT_OPTION) == 0)
        return chempi_serve_process();
    if (argc > 1 && strcmp(argv[1], CHEMPI_SINGLETON_OPTION) == 0)
        return chempi_singleton_answer(argv[2]);
    if (chempi_options_parse(&opt, argc, argv, &err))
        return fail(NULL, &err, CHEMPI_EXIT_USAGE);
    if (opt.wants_help || opt.wants_version || opt.completion) {
        answer(&opt);
        status = fflush(stdout) ? CHEMPI_EXIT_FAILURE : 0;
    } else if (chempi_options_environment(&opt, &err) ||
               chempi_profile_add(&opt, &err)) {
        status = fail(&opt, &err, CHEMPI_EXIT_USAGE);
    } else {
        warn_of_others(&opt);
        warn_of_names(&opt);
        status = run(&opt);
    }
    chempi_options_fini(&opt);
    return status;
}
