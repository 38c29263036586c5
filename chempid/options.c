/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of chempirun; see options.h. */
#include "chempid/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/spec.h"
#include "common/control/msg.h"

#define VIRTUAL_NODES_MAX 1024u

enum id {
    OPT_N,
    OPT_VIRTUAL,
    OPT_NETWORK,
    OPT_NODES,
    OPT_PPN,
    OPT_MAP,
    OPT_BIND,
    OPT_LABEL,
    OPT_TIMEOUT,
    OPT_STATS,
    OPT_STDIN,
    OPT_PASS,
    OPT_ENV,
    OPT_GENV_PAIR,
    OPT_ENV_ALL,
    OPT_ENV_NONE,
    OPT_WDIR,
    OPT_DIR,
    OPT_VIA,
    OPT_PRIVATE,
    OPT_IGNORED,
    OPT_HELP,
    OPT_VERSION
};

/* Names without dashes; words: arguments that follow. */
static const struct {
    const char *name;
    enum id id;
    int words;
} table[] = {
    {"n", OPT_N, 1},
    {"np", OPT_N, 1},
    {"c", OPT_N, 1},
    {"virtual", OPT_VIRTUAL, 1},
    {"network", OPT_NETWORK, 1},
    {"nodes", OPT_NODES, 1},
    {"hosts", OPT_NODES, 1},
    {"host", OPT_NODES, 1},
    {"H", OPT_NODES, 1},
    {"ppn", OPT_PPN, 1},
    {"npernode", OPT_PPN, 1},
    {"N", OPT_PPN, 1},
    {"map", OPT_MAP, 1},
    {"bind", OPT_BIND, 1},
    {"bind-to", OPT_BIND, 1},
    {"label", OPT_LABEL, 0},
    {"l", OPT_LABEL, 0},
    {"prepend-rank", OPT_LABEL, 0},
    {"tag-output", OPT_LABEL, 0},
    {"timeout", OPT_TIMEOUT, 1},
    {"stats", OPT_STATS, 0},
    {"stdin", OPT_STDIN, 1},
    {"s", OPT_STDIN, 1},
    {"x", OPT_PASS, 1},
    {"env", OPT_ENV, 1},
    {"genv", OPT_GENV_PAIR, 2},
    {"envall", OPT_ENV_ALL, 0},
    {"genvall", OPT_ENV_ALL, 0},
    {"env-none", OPT_ENV_NONE, 0},
    {"envnone", OPT_ENV_NONE, 0},
    {"genvnone", OPT_ENV_NONE, 0},
    {"wdir", OPT_WDIR, 1},
    {"wd", OPT_WDIR, 1},
    {"dir", OPT_DIR, 1},
    {"via", OPT_VIA, 1},
    {"private", OPT_PRIVATE, 0},
    {"oversubscribe", OPT_IGNORED, 0},
    {"allow-run-as-root", OPT_IGNORED, 0},
    {"help", OPT_HELP, 0},
    {"h", OPT_HELP, 0},
    {"version", OPT_VERSION, 0},
    {"V", OPT_VERSION, 0},
};

/* A list of strings that ends with NULL and grows in the pool. */
struct strings {
    char **list;
    uint32_t count;
    uint32_t cap;
};

struct parser {
    struct chempi_options *opt;
    struct chempi_err *err;
    char **argv; /* what is left */
    struct strings pass;
    struct strings env;      /* for all programs */
    struct strings prog_env; /* for the program at hand */
    uint32_t program_cap;
};

static int fail(struct parser *p, const char *what, const char *a,
                const char *b)
{
    char text[CHEMPI_TEXT_MAX];

    (void)snprintf(text, sizeof(text), "%s%s%s", what, a, b);
    return chempi_err_set(p->err, -EINVAL, "%s", text);
}

static int out_of_memory(struct parser *p)
{
    return chempi_err_set(p->err, -ENOMEM, "out of memory");
}

static int add(struct parser *p, struct strings *s, char *text)
{
    if (!text)
        return out_of_memory(p);
    if (s->count + 1 >= s->cap) {
        const uint32_t cap = s->cap ? 2 * s->cap : 16;
        char **list = chempi_pool_array(&p->opt->pool, cap, sizeof(*list));

        if (!list)
            return out_of_memory(p);
        if (s->count)
            memcpy(list, s->list, s->count * sizeof(*list));
        s->list = list;
        s->cap = cap;
    }
    s->list[s->count++] = text;
    s->list[s->count] = NULL;
    return 0;
}

/* The list, or an empty one, as an array that ends with NULL. */
static char **finish(struct parser *p, const struct strings *s)
{
    return s->list ? s->list
                   : chempi_pool_array(&p->opt->pool, 1, sizeof(char *));
}

static int parse_count(struct parser *p, const char *name, const char *text,
                       uint32_t max, uint32_t *out)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || v == 0 || v > max)
        return chempi_err_set(p->err, -EINVAL,
                              "-%s %s: expected a number from 1 to %u", name,
                              text, max);
    *out = (uint32_t)v;
    return 0;
}

static int parse_choice(struct parser *p, const char *name, const char *text,
                        const char *const *choices, uint32_t *out)
{
    char all[256] = "";

    for (uint32_t i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *out = i;
            return 0;
        }
        (void)strncat(all, i ? ", " : "", sizeof(all) - strlen(all) - 1);
        (void)strncat(all, choices[i], sizeof(all) - strlen(all) - 1);
    }
    return chempi_err_set(p->err, -EINVAL, "--%s %s: expected one of %s", name,
                          text, all);
}

/* Node names are file names of tables and sockets, too. */
static bool is_node_name(const char *s)
{
    return *s && *s != '.' && strlen(s) < CHEMPI_NODE_NAME_MAX &&
           !s[strcspn(s, "/ \t\n:,")];
}

static int parse_names(struct parser *p, const char *name, const char *text)
{
    struct strings names = {0};
    char *copy = chempi_pool_str(&p->opt->pool, text);
    char *at = copy;
    char *word;
    int rc = copy ? 0 : out_of_memory(p);

    while (!rc && at) {
        word = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
        if (!is_node_name(word))
            return chempi_err_set(p->err, -EINVAL,
                                  "--%s %s: '%s' is no node name (1 to %d "
                                  "characters, without blank, comma, colon "
                                  "and slash)",
                                  name, text, word, CHEMPI_NODE_NAME_MAX - 1);
        for (uint32_t i = 0; i < names.count; i++)
            if (strcmp(names.list[i], word) == 0)
                return fail(p, "a node is named twice: ", word, "");
        rc = add(p, &names, word);
    }
    p->opt->names = names.list;
    return rc;
}

/* "3" stands for node0,node1,node2. */
static int parse_virtual(struct parser *p, const char *text)
{
    struct strings names = {0};
    char name[32];
    uint32_t n = 0;
    int rc;

    p->opt->is_virtual = true;
    if (text[strspn(text, "0123456789")])
        return parse_names(p, "virtual", text);
    rc = parse_count(p, "virtual", text, VIRTUAL_NODES_MAX, &n);
    for (uint32_t i = 0; !rc && i < n; i++) {
        (void)snprintf(name, sizeof(name), "node%u", i);
        rc = add(p, &names, chempi_pool_str(&p->opt->pool, name));
    }
    p->opt->names = names.list;
    return rc;
}

static int parse_stdin(struct parser *p, const char *text)
{
    char *end;
    unsigned long v;

    if (strcmp(text, "all") == 0) {
        p->opt->stdin_rank = CHEMPI_STDIN_ALL;
        return 0;
    }
    if (strcmp(text, "none") == 0) {
        p->opt->stdin_rank = CHEMPI_STDIN_NONE;
        return 0;
    }
    errno = 0;
    v = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' ||
        v >= CHEMPI_JOB_RANKS_MAX)
        return fail(p, "--stdin ", text, ": expected all, none or a rank");
    p->opt->stdin_rank = (uint32_t)v;
    return 0;
}

static bool get_seconds(const char *text, double *out)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(text, &end);
    if (errno || end == text || *end || !(v >= 0) || v > 1e9)
        return false;
    *out = v;
    return true;
}

static int parse_timeout(struct parser *p, const char *text)
{
    if (get_seconds(text, &p->opt->timeout_s) && p->opt->timeout_s > 0)
        return 0;
    return fail(p, "--timeout ", text,
                ": expected a positive number of seconds");
}

static int join_pair(struct parser *p, struct strings *to, const char *name,
                     const char *value)
{
    const size_t len = strlen(name) + strlen(value) + 2;
    char *text = chempi_pool_alloc(&p->opt->pool, len);

    if (!*name || strchr(name, '='))
        return fail(p, "'", name, "' is no name of a variable");
    if (!text)
        return out_of_memory(p);
    (void)snprintf(text, len, "%s=%s", name, value);
    return add(p, to, text);
}

/* --env NAME=VALUE, or as others write it: -env NAME VALUE. */
static int parse_env(struct parser *p, char *text)
{
    const char *eq = strchr(text, '=');

    if (eq == text)
        return fail(p, "--env ", text, ": a variable needs a name");
    if (eq)
        return add(p, &p->prog_env, text);
    if (!p->argv[0])
        return fail(p, "--env ", text, ": expected NAME=VALUE");
    return join_pair(p, &p->prog_env, text, *p->argv++);
}

static int parse_map(struct parser *p, const char *text)
{
    static const char *const choices[] = {"block", "cyclic", "load", NULL};
    uint32_t v = 0;
    int rc = parse_choice(p, "map", text, choices, &v);

    p->opt->map = (enum chempi_map)v;
    return rc;
}

static int parse_bind(struct parser *p, const char *text)
{
    static const char *const choices[] = {"none", "core", "socket", NULL};

    return parse_choice(p, "bind", text, choices, &p->opt->bind);
}

static int take_option(struct parser *p, struct chempi_program *prog,
                       enum id id, const char *name, char **words)
{
    struct chempi_options *opt = p->opt;

    switch (id) {
    case OPT_N:
        return parse_count(p, name, words[0], CHEMPI_JOB_RANKS_MAX,
                           &prog->count);
    case OPT_VIRTUAL:
        return parse_virtual(p, words[0]);
    case OPT_NODES:
        return parse_names(p, name, words[0]);
    case OPT_PPN:
        return parse_count(p, name, words[0], CHEMPI_JOB_RANKS_MAX, &opt->ppn);
    case OPT_MAP:
        return parse_map(p, words[0]);
    case OPT_BIND:
        return parse_bind(p, words[0]);
    case OPT_TIMEOUT:
        return parse_timeout(p, words[0]);
    case OPT_STDIN:
        return parse_stdin(p, words[0]);
    case OPT_PASS:
        return add(p, &p->pass, words[0]);
    case OPT_ENV:
        return parse_env(p, words[0]);
    case OPT_GENV_PAIR:
        return join_pair(p, &p->env, words[0], words[1]);
    default:
        break;
    }
    opt->tables = id == OPT_NETWORK ? words[0] : opt->tables;
    opt->dir = id == OPT_DIR ? words[0] : opt->dir;
    opt->via = id == OPT_VIA ? words[0] : opt->via;
    prog->wdir = id == OPT_WDIR ? words[0] : prog->wdir;
    opt->has_label |= id == OPT_LABEL;
    opt->has_stats |= id == OPT_STATS;
    opt->is_private |= id == OPT_PRIVATE;
    opt->has_clean_env |= id == OPT_ENV_NONE;
    opt->has_clean_env &= id != OPT_ENV_ALL;
    opt->wants_help |= id == OPT_HELP;
    opt->wants_version |= id == OPT_VERSION;
    return 0;
}

/* One option with its words; p->argv stands behind them afterwards. */
static int parse_option(struct parser *p, struct chempi_program *prog)
{
    const char *spelled = *p->argv;
    const char *name = spelled + (spelled[1] == '-' ? 2 : 1);
    char **words = p->argv + 1;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(table); i++) {
        if (strcmp(name, table[i].name) != 0)
            continue;
        for (int k = 0; k < table[i].words; k++)
            if (!words[k])
                return fail(p, spelled, ": a value is missing", "");
        p->argv = words + table[i].words;
        return take_option(p, prog, table[i].id, name, words);
    }
    return fail(p, "unknown option ", spelled, " (see chempirun --help)");
}

static int add_program(struct parser *p, struct chempi_program *prog)
{
    struct chempi_options *opt = p->opt;
    struct chempi_program *list;

    if (opt->program_count == CHEMPI_SPEC_APPS_MAX)
        return fail(p, "too many programs", "", "");
    if (opt->program_count == p->program_cap) {
        p->program_cap = p->program_cap ? 2 * p->program_cap : 4;
        list = chempi_pool_array(&opt->pool, p->program_cap, sizeof(*list));
        if (!list)
            return out_of_memory(p);
        if (opt->program_count)
            memcpy(list, opt->programs, opt->program_count * sizeof(*list));
        opt->programs = list;
    }
    prog->env = finish(p, &p->prog_env);
    if (!prog->env)
        return out_of_memory(p);
    p->prog_env = (struct strings){0};
    opt->programs[opt->program_count++] = *prog;
    return 0;
}

/* Options, then a program with its arguments, up to ":" or the end. */
static int parse_program(struct parser *p)
{
    struct chempi_program prog = {0};
    struct strings words = {0};
    int rc = 0;

    while (!rc && *p->argv && (*p->argv)[0] == '-' && (*p->argv)[1]) {
        if (strcmp(*p->argv, "--") == 0) {
            p->argv++;
            break;
        }
        rc = parse_option(p, &prog);
        if (p->opt->wants_help || p->opt->wants_version)
            return rc;
    }
    while (!rc && *p->argv && strcmp(*p->argv, ":") != 0)
        rc = add(p, &words, *p->argv++);
    if (!rc && words.count == 0)
        return fail(p, "no program to run (see chempirun --help)", "", "");
    prog.argv = words.list;
    return rc ? rc : add_program(p, &prog);
}

int chempi_options_parse(struct chempi_options *opt, int argc, char **argv,
                         struct chempi_err *err)
{
    struct parser p = {.opt = opt, .err = err, .argv = argv + 1};
    int rc = 0;

    (void)argc;
    *opt = (struct chempi_options){0};
    for (;;) {
        rc = parse_program(&p);
        if (rc || opt->wants_help || opt->wants_version || !*p.argv)
            break;
        p.argv++; /* the ":" */
    }
    opt->pass = finish(&p, &p.pass);
    opt->env = finish(&p, &p.env);
    if (!rc && (!opt->pass || !opt->env))
        rc = out_of_memory(&p);
    if (!rc && opt->is_virtual && (opt->dir || opt->via))
        rc = fail(&p,
                  "--virtual starts nodes of its own: it goes with "
                  "neither --dir nor --via",
                  "", "");
    if (rc)
        chempi_options_fini(opt);
    return rc;
}

int chempi_options_environment(struct chempi_options *opt,
                               struct chempi_err *err)
{
    const char *text = getenv("MPIEXEC_TIMEOUT");

    if (!text || !*text || opt->timeout_s > 0)
        return 0;
    if (get_seconds(text, &opt->timeout_s))
        return 0;
    return chempi_err_set(
        err, -EINVAL, "MPIEXEC_TIMEOUT=%s: expected a number of seconds", text);
}

void chempi_options_fini(struct chempi_options *opt)
{
    chempi_pool_fini(&opt->pool);
    *opt = (struct chempi_options){0};
}
