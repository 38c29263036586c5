/* SPDX-License-Identifier: BSD-3-Clause */
/* chempictl, asks and orders daemons: see chempictl(1). */
#define _GNU_SOURCE /* getopt_long */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/ctl/budgets.h"
#include "chempid/ctl/drain.h"
#include "chempid/ctl/route.h"
#include "chempid/ctl/status_json.h"
#include "chempid/tree/door.h"
#include "chempid/tree/local.h"
#include "chempid/version.h"
#include "common/auth/auth.h"
#include "common/auth/noise.h"
#include "common/control/msg.h"
#include "common/words/plain.h"

#define USER_TEXT 64 /* bytes */

static const char usage[] =
    "Usage: chempictl [--dir DIR] [--via NAME] COMMAND [ARG]...\n"
    "Ask and order the CHEMPI daemons.\n"
    "\n"
    "  nodes [NODE]...    nodes with slots, running ranks, load\n"
    "  jobs [NODE]...     jobs that run\n"
    "  status             the daemon that answers\n"
    "  budgets [NODE]...  registrable memory of nodes and ranks\n"
    "  kill JOB           end a job\n"
    "  where [JOB]        where its ranks wait, who for whom, and whence they\n"
    "                     call; JOB may be its chempirun's process\n"
    "  route A B SIZE     which way a message of this size goes\n"
    "  drain NODE [JOB]   spare the gateway there, in all jobs or in one\n"
    "  drain              what is drained\n"
    "  undrain NODE [JOB] use it again\n"
    "  stop [NODE]        end a daemon (the one that answers)\n"
    "  key FILE           make a cluster key in a new file\n"
    "  node-key FILE      make a node's own key, unless there is one, and\n"
    "                     print its public half\n"
    "  reread [NODE]      have a daemon read its keys again\n"
    "\n"
    "  --dir DIR          where the daemons' sockets are\n"
    "  --via NAME         ask this daemon\n"
    "  --json             what commands tell as JSON\n"
    "  --force            drain, though some nodes have no other gateway\n"
    "  --help, --version\n";

struct ctl {
    const char *dir;
    const char *via;
    bool is_json;
    bool is_forced;
    bool with_memory;
    struct chempi_local_daemon daemon; /* that answers */
    struct chempi_channel ch;
    struct chempi_pool pool;
    struct chempi_err err;
};

/* The words may be those of a node. */
static int fail(struct ctl *c)
{
    chempi_plain(c->err.text, strlen(c->err.text), "");
    (void)fprintf(stderr, "chempictl: %s\n", c->err.text);
    return 1;
}

static int misuse(const char *text)
{
    (void)fprintf(stderr, "chempictl: %s (see chempictl --help)\n", text);
    return 2;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct chempi_status *x = a;
    const struct chempi_status *y = b;

    return strverscmp(x->node, y->node);
}

/* In the order of names. names NULL: all nodes; is_self: the one that
 * answers. */
static int ask(struct ctl *c, char **names, bool is_self,
               struct chempi_status **list, uint32_t *count)
{
    char *self[] = {c->daemon.node, NULL};
    int rc = chempi_local_open(&c->ch, c->dir, c->via, &c->daemon, &c->err);

    if (rc)
        return rc;
    if (is_self)
        names = self;
    rc = chempi_local_query(&c->ch, names && *names ? names : NULL,
                            c->with_memory, &c->pool, list, count, &c->err);
    if (!rc && *count)
        qsort(*list, *count, sizeof(**list), compare_nodes);
    return rc;
}

static int show_nodes(struct ctl *c, char **names, bool is_self)
{
    struct chempi_status *list;
    uint32_t count;
    int status = 0;

    if (ask(c, names, is_self, &list, &count))
        return fail(c);
    if (c->is_json)
        return chempi_status_json(stdout, list, count, chempi_status_json_node);
    printf("%-20s %6s %6s %7s %8s  %s\n", "node", "slots", "ranks", "load",
           "pid", "version");
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_status *s = &list[i];

        if (*s->error) {
            printf("%-20s %s\n", s->node, s->error);
            status = 1;
            continue;
        }
        printf("%-20s %6u %6u %7.2f %8u  %s%s\n", s->node, s->slots, s->busy,
               s->load / 100.0, s->pid, s->version,
               s->is_drained ? "  drained" : "");
    }
    return status;
}

static int show_budgets(struct ctl *c, char **names)
{
    struct chempi_status *list;
    uint32_t count;

    c->with_memory = true;
    if (ask(c, names, false, &list, &count))
        return fail(c);
    return chempi_budgets_print(stdout, list, count, c->is_json);
}

/* The user's name; where this host knows none, the number. */
static const char *user_name(uint32_t uid, char text[USER_TEXT])
{
    const struct passwd *pw = getpwuid(uid);

    if (pw)
        (void)snprintf(text, USER_TEXT, "%s", pw->pw_name);
    else
        (void)snprintf(text, USER_TEXT, "%u", uid);
    return text;
}

static const char *state_of(const struct chempi_status_gateway *g, uint32_t pid)
{
    return g->fate || pid ? chempi_status_fate_word(g->fate) : "starting";
}

/* What users have chosen, without what terminals obey: control characters,
 * those of two bytes in UTF-8 included, and the backslash, are \xNN. */
static void show_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        const bool is_c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;

        if (*c < 0x20 || *c == 0x7f || *c == '\\' || is_c1)
            printf("\\x%02x", *c);
        else
            (void)putchar(*c);
        if (is_c1)
            printf("\\x%02x", *++c);
    }
}

/* Its process is known at its node. */
static void show_gateways(const struct chempi_status *list, uint32_t count,
                          const struct chempi_status_job *job)
{
    for (uint32_t g = 0; g < job->gateway_count; g++) {
        const char *node = job->gateways[g].node;
        uint32_t pid = 0;
        bool has_node = false;

        for (uint32_t i = 0; i < count; i++) {
            const struct chempi_status_job *part =
                chempi_status_find(&list[i], job->id, job->uid);

            if (part && strcmp(list[i].node, node) == 0 &&
                g < part->gateway_count) {
                pid = part->gateways[g].pid;
                has_node = true;
            }
        }
        printf("  gateway ");
        show_text(node);
        printf("%*s ", strlen(node) < 20 ? (int)(20 - strlen(node)) : 0, "");
        if (pid)
            printf("pid %-8u ", pid);
        else
            printf("%-12s ", "-");
        printf("%s\n", has_node || job->gateways[g].fate
                           ? state_of(&job->gateways[g], pid)
                           : "not asked");
    }
    if (job->is_cut)
        printf("  gateways: left out, there are too many\n");
}

/* Once per job, with its nodes. */
static void show_job(const struct chempi_status *list, uint32_t count,
                     const struct chempi_status_job *job)
{
    char user[USER_TEXT];

    printf("%-18s %-8s %6u  ", job->id, user_name(job->uid, user), job->size);
    show_text(job->program);
    printf("  ");
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_status_job *part =
            chempi_status_find(&list[i], job->id, job->uid);

        if (part && part->local)
            printf(" %s:%u", list[i].node, part->local);
    }
    printf("\n");
    show_gateways(list, count, job);
}

static int show_jobs(struct ctl *c, char **names)
{
    struct chempi_status *list;
    uint32_t count;

    if (ask(c, names, false, &list, &count))
        return fail(c);
    if (c->is_json) {
        chempi_status_json_jobs(stdout, list, count);
        return 0;
    }
    printf("%-18s %-8s %6s  %s   %s\n", "job", "user", "ranks", "program",
           "nodes");
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++)
            if (!chempi_status_has_job(list, i, &list[i].jobs[k]))
                show_job(list, count, &list[i].jobs[k]);
    return 0;
}

/* 0 or -errno with words. */
static int request(struct ctl *c, enum chempi_request what, const char *node,
                   const char *job)
{
    struct chempi_frame frame;
    struct chempi_reader r;
    struct chempi_writer *w =
        chempi_channel_begin(&c->ch, CHEMPI_MSG_REQUEST, 0);
    uint32_t code;
    const char *text;

    chempi_wire_put_u32(w, (uint32_t)what);
    chempi_wire_put_str(w, node);
    chempi_wire_put_str(w, job);
    chempi_wire_put_u32(w, (uint32_t)geteuid());
    if (chempi_channel_end(&c->ch))
        return chempi_err_set(&c->err, -ENOMEM, "out of memory");
    if (chempi_local_await(&c->ch, CHEMPI_MSG_REPLY, &frame, &c->err))
        return c->err.code;
    chempi_wire_read(&r, frame.data, frame.len);
    code = chempi_wire_get_u32(&r);
    text = chempi_wire_get_str(&r, CHEMPI_TEXT_MAX);
    if (code == 0)
        return 0;
    return chempi_err_set(&c->err, code < 4096 ? -(int)code : -EIO, "%s", text);
}

static int send_request(struct ctl *c, enum chempi_request what,
                        const char *node, const char *job)
{
    return request(c, what, node, job) ? fail(c) : 0;
}

/* 0 or -errno with words. */
static int find_owner(struct ctl *c, const struct chempi_status *list,
                      uint32_t count, const char *id, uint32_t *uid)
{
    uint32_t other;
    int rc =
        chempi_status_owner(list, count, id, (uint32_t)geteuid(), uid, &other);

    if (rc == -EEXIST)
        return chempi_err_set(&c->err, rc,
                              "users %u and %u have a job %s each; ask as the "
                              "one whose job it is (runuser -u USER -- "
                              "chempictl ...)",
                              *uid, other, id);
    return rc ? chempi_err_set(&c->err, rc, "no job %s runs", id) : 0;
}

static int ask_for_job(struct ctl *c, const char *id,
                       struct chempi_status **list, uint32_t *count,
                       uint32_t *uid)
{
    int rc = ask(c, NULL, c->with_memory, list, count);

    return rc ? rc : find_owner(c, *list, *count, id, uid);
}

/* A node that has part in the job knows the way to its launcher. */
static int order_job(struct ctl *c, enum chempi_request what, const char *id)
{
    struct chempi_status *list;
    uint32_t count;
    uint32_t uid;

    if (strlen(id) >= CHEMPI_JOB_ID_MAX)
        return misuse("too long a job name");
    if (ask_for_job(c, id, &list, &count, &uid)) {
        if (!c->via) /* or it would have answered */
            (void)chempi_err_prefix(
                &c->err, "no job %s of yours has its chempirun on this host",
                id);
        return fail(c);
    }
    for (uint32_t i = 0; i < count; i++)
        if (chempi_status_find(&list[i], id, uid))
            return send_request(c, what, list[i].node, id);
    return 0; /* not reached: somewhere it is */
}

/* What is said of nodes that cannot be asked: there it may run on. */
static void name_silent(const struct chempi_status *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (*list[i].error)
            (void)fprintf(stderr,
                          "chempictl: node %s: %s; what the job may have there "
                          "ends when its daemon can be heard\n",
                          list[i].node, list[i].error);
}

/* Any node that has part in it can end it; the answer is that it has ended. */
static int kill_by_one(struct ctl *c, const struct chempi_status *list,
                       uint32_t count, const char *id, uint32_t uid)
{
    int rc = -ESRCH;

    for (uint32_t i = 0; i < count && rc && rc != -EPERM; i++)
        if (chempi_status_find(&list[i], id, uid)) {
            rc = request(c, CHEMPI_REQUEST_KILL, list[i].node, id);
            rc = rc == -ESRCH ? 0 : rc; /* since we have asked */
        }
    return rc;
}

/* Without a daemon there is nobody to order it from. */
static void name_private(struct ctl *c)
{
    const struct chempi_err err = c->err;

    (void)chempi_err_set(&c->err, err.code,
                         "%.400s; a job without daemons ends with its "
                         "chempirun, whose process chempictl where names",
                         err.text);
}

static int kill_job(struct ctl *c, const char *id)
{
    struct chempi_status *list = NULL;
    uint32_t count = 0;
    uint32_t uid;
    int rc;

    if (strlen(id) >= CHEMPI_JOB_ID_MAX)
        return misuse("too long a job name");
    rc = ask_for_job(c, id, &list, &count, &uid);
    if (!rc)
        rc = kill_by_one(c, list, count, id, uid);
    if (count)
        name_silent(list, count);
    else if (rc)
        name_private(c);
    return rc ? fail(c) : 0;
}

/* Its launcher is asked where it is on this host; with --via, or where it is
 * elsewhere, a daemon passes the question on. */
static int seek(struct ctl *c, const char *id)
{
    bool has_more = false;
    uint32_t count = 0;
    int status;

    if (c->is_json && c->via)
        return misuse("where --json asks on this host, without --via");
    if (!c->via)
        count = (c->is_json ? chempi_door_ask_json
                            : chempi_door_ask)(stdout, id, &has_more);
    if (has_more)
        (void)fprintf(stderr,
                      "chempictl: more than %u launchers are meant, the others "
                      "are not asked: name a job, or a launcher by its process "
                      "id\n",
                      CHEMPI_DOOR_CALLS_MAX);
    if (count > 0)
        return 0;
    if (!id || c->is_json) {
        (void)chempi_err_set(&c->err, -ESRCH,
                             "no job %s%sof yours has its chempirun on this "
                             "host",
                             id ? id : "", id ? " " : "");
        return fail(c);
    }
    status = order_job(c, CHEMPI_REQUEST_WHERE, id);
    if (!status)
        printf("the chempirun of job %s prints where its ranks wait\n", id);
    return status;
}

static int order_daemon(struct ctl *c, enum chempi_request what,
                        const char *node)
{
    if (node && strlen(node) >= CHEMPI_NODE_NAME_MAX)
        return misuse("too long a node name");
    if (chempi_local_open(&c->ch, c->dir, c->via, &c->daemon, &c->err))
        return fail(c);
    return send_request(c, what, node ? node : "", "");
}

/* The order may have been passed on to a daemon that has refused it. */
static int check_drained(struct ctl *c, const struct chempi_drain *d)
{
    char name[CHEMPI_NODE_NAME_MAX];
    char *names[] = {name, NULL};
    struct chempi_status *list;
    uint32_t count;

    if (d->job)
        return 0; /* whoever may order it has been asked before */
    (void)snprintf(name, sizeof(name), "%s", d->node);
    if (chempi_local_query(&c->ch, names, false, &c->pool, &list, &count,
                           &c->err))
        return fail(c);
    if (count == 1 && !*list[0].error && list[0].is_drained == !d->is_undrain)
        return 0;
    (void)chempi_err_set(&c->err, -EPERM,
                         "the daemon of node %s has not done so; only root and "
                         "its user may ask it to",
                         d->node);
    return fail(c);
}

static int give_drain(struct ctl *c, struct chempi_drain *d)
{
    struct chempi_status *list;
    int status;

    if (strlen(d->node) >= CHEMPI_NODE_NAME_MAX)
        return misuse("too long a node name");
    if (d->job && strlen(d->job) >= CHEMPI_JOB_ID_MAX)
        return misuse("too long a job name");
    if (ask(c, NULL, false, &list, &d->count))
        return fail(c);
    d->list = list;
    if ((d->job && find_owner(c, list, d->count, d->job, &d->uid)) ||
        chempi_drain_check(d, &c->err))
        return fail(c);
    status = send_request(
        c, d->is_undrain ? CHEMPI_REQUEST_UNDRAIN : CHEMPI_REQUEST_DRAIN,
        d->node, d->job ? d->job : "");
    return status ? status : check_drained(c, d);
}

/* As JSON nothing is printed of what was not done. */
static int give_drain_json(struct ctl *c, struct chempi_drain *d)
{
    char *text = NULL;
    size_t len = 0;
    struct chempi_json j = {.file = open_memstream(&text, &len)};
    int status;

    if (!j.file)
        return misuse("out of memory");
    d->json = &j;
    chempi_json_open(&j, NULL);
    chempi_json_text(&j, "node", d->node);
    chempi_json_text(&j, "job", d->job);
    chempi_json_open_list(&j, "remarks");
    status = give_drain(c, d);
    chempi_json_close_list(&j);
    chempi_json_close(&j);
    chempi_json_end(&j);
    (void)fclose(j.file); /* what is missing shows */
    if (!status && text)
        (void)fwrite(text, 1, len, stdout);
    free(text);
    return status;
}

static int order_drain(struct ctl *c, const char *node, const char *job,
                       bool is_undrain)
{
    struct chempi_drain d = {.out = stdout,
                             .node = node,
                             .job = job,
                             .is_forced = c->is_forced,
                             .is_undrain = is_undrain};

    return c->is_json ? give_drain_json(c, &d) : give_drain(c, &d);
}

static int show_drained(struct ctl *c)
{
    struct chempi_status *list;
    uint32_t count;

    if (ask(c, NULL, false, &list, &count))
        return fail(c);
    chempi_drain_list(stdout, c->is_json, list, count);
    return 0;
}

static int drain(struct ctl *c, char **words, bool is_undrain)
{
    if (words[0] && words[1] && words[2])
        return misuse("drain takes a node and perhaps a job");
    if (words[0])
        return order_drain(c, words[0], words[1], is_undrain);
    return is_undrain ? misuse("undrain takes a node and perhaps a job")
                      : show_drained(c);
}

static int show_route(struct ctl *c, char **words)
{
    struct chempi_status *list;
    uint32_t count;
    int rc;

    if (ask(c, NULL, false, &list, &count))
        return fail(c);
    rc = chempi_route_show(stdout, c->is_json, list, count, words[0], words[1],
                           words[2], &c->err);
    return rc ? fail(c) : 0;
}

/* Of 32 bytes, in a new file. */
static int write_key(struct ctl *c, const char *path, const uint8_t *key)
{
    char text[2 * CHEMPI_AUTH_KEY_BYTES + 2];
    ssize_t n;
    int fd;

    for (size_t i = 0; i < CHEMPI_AUTH_KEY_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", key[i]);
    text[sizeof(text) - 2] = '\n';
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    n = fd < 0 ? -1 : write(fd, text, sizeof(text) - 1);
    if (n == (ssize_t)sizeof(text) - 1 && close(fd) == 0)
        return 0;
    errno = n < 0 || n == (ssize_t)sizeof(text) - 1 ? errno : ENOSPC;
    (void)chempi_err_set(&c->err, -errno, "%s: %s", path,
                         chempi_err_name(errno));
    if (fd >= 0)
        (void)unlink(path); /* part of a key is none */
    return fail(c);
}

static int make_key(struct ctl *c, const char *path)
{
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];

    if (chempi_auth_make_key(key))
        return misuse("libsodium does not start");
    return write_key(c, path, key);
}

static int show_node_key(struct ctl *c, const char *path)
{
    struct chempi_noise_pair pair;
    int status;

    if (access(path, F_OK) < 0) {
        status = make_key(c, path);
        if (status)
            return status;
    }
    if (chempi_auth_load_keys(path, pair.secret, 1, &c->err) < 0)
        return fail(c);
    chempi_noise_find_public(&pair);
    for (size_t i = 0; i < sizeof(pair.public); i++)
        printf("%02x", pair.public[i]);
    printf("\n");
    return 0;
}

static int run(struct ctl *c, char **words)
{
    static const char *const lists[] = {"budgets", "nodes", "jobs",  "status",
                                        "where",   "route", "drain", "undrain"};
    const char *what = words[0];
    bool is_list = false;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(lists); i++)
        is_list |= strcmp(what, lists[i]) == 0;
    if (c->is_json && !is_list)
        return misuse("--json is for commands that tell something: budgets, "
                      "nodes, jobs, status, where, route, drain and undrain");

    if (strcmp(what, "budgets") == 0)
        return show_budgets(c, words + 1);
    if (strcmp(what, "nodes") == 0)
        return show_nodes(c, words + 1, false);
    if (strcmp(what, "jobs") == 0)
        return show_jobs(c, words + 1);
    if (strcmp(what, "status") == 0)
        return words[1] ? misuse("status takes no argument")
                        : show_nodes(c, NULL, true);
    if (strcmp(what, "kill") == 0)
        return words[1] && !words[2] ? kill_job(c, words[1])
                                     : misuse("kill takes a job");
    if (strcmp(what, "where") == 0)
        return words[1] && words[2] ? misuse("where takes a job, or nothing")
                                    : seek(c, words[1]);
    if (strcmp(what, "stop") == 0)
        return order_daemon(c, CHEMPI_REQUEST_STOP, words[1]);
    if (strcmp(what, "drain") == 0)
        return drain(c, words + 1, false);
    if (strcmp(what, "undrain") == 0)
        return drain(c, words + 1, true);
    if (strcmp(what, "route") == 0)
        return words[1] && words[2] && words[3] && !words[4]
                   ? show_route(c, words + 1)
                   : misuse("route takes two nodes and a size");
    if (strcmp(what, "node-key") == 0)
        return words[1] && !words[2] ? show_node_key(c, words[1])
                                     : misuse("node-key takes a file");
    if (strcmp(what, "reread") == 0)
        return order_daemon(c, CHEMPI_REQUEST_REREAD, words[1]);
    if (strcmp(what, "key") == 0)
        return words[1] && !words[2] ? make_key(c, words[1])
                                     : misuse("key takes a file");
    (void)chempi_err_set(&c->err, -EINVAL, "unknown command %s", what);
    return misuse(c->err.text);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},
        {"via", required_argument, NULL, 'v'},
        {"json", no_argument, NULL, 'j'},
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    static struct ctl c;
    int status;
    int o;

    chempi_channel_init(&c.ch, -1, 0, 0);
    while ((o = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
        if (o == 'h' || o == 'V') {
            (void)fputs(o == 'h' ? usage
                                 : "chempictl (CHEMPI) " CHEMPI_VERSION "\n",
                        stdout);
            return fflush(stdout) ? 1 : 0;
        }
        if (o == '?') { /* what it is has been said */
            (void)fputs("chempictl: see chempictl --help\n", stderr);
            return 2;
        }
        c.dir = o == 'd' ? optarg : c.dir;
        c.via = o == 'v' ? optarg : c.via;
        c.is_json |= o == 'j';
        c.is_forced |= o == 'f';
    }
    if (optind == argc)
        return misuse("no command");
    status = run(&c, argv + optind);
    chempi_channel_fini(&c.ch);
    chempi_pool_fini(&c.pool);
    return fflush(stdout) ? 1 : status;
}
