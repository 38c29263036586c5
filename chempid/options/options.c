/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of chempirun; see options.h. */
#define _GNU_SOURCE /* strsep */
#include "chempid/options/options.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chempid/hosts/hosts.h"
#include "chempid/hosts/process_count_range.h"
#include "chempid/job/pattern.h"
#include "chempid/job/spec.h"
#include "chempid/options/configfile.h"
#include "chempid/options/option_table.h"
#include "chempid/options/others.h"
#include "common/base/number.h"
#include "common/control/client.h"
#include "common/control/msg.h"
#include "common/host/cpus.h"
#include "common/words/decimal.h"
#include "common/words/edit_distance.h"

#define VIRTUAL_NODES_MAX 1024u
#define LIST_MAX 1023u /* bytes: what the value of an info key may have */
#define WHERE_VARIABLE "CHEMPI_WHERE_LIMIT"
#define WHERE_MAX_S 3600.0
#define TIMEOUT_MAX_S 1e9

/* A list of strings that ends with NULL and grows in the pool. */
struct strings {
    char **list;
    uint32_t count;
    uint32_t cap;
};

struct parser {
    struct chempi_options *opt;
    struct chempi_err *err;
    char **argv;      /* what is left */
    char spelled[32]; /* the option at hand */
    struct strings pass;
    struct strings env;      /* for all programs */
    struct strings prog_env; /* for the program at hand */
    struct strings asked;    /* of MPI for it: set after prog_env */
    uint32_t program_cap;
    char *configfile; /* in place of the program at hand, or NULL */
    bool is_in_file;  /* the program at hand stands in a file */
    bool names_nodes; /* --nodes or --hostfile */
    bool says_places; /* --bind, --map or --ppn */
};

static int fail_value(struct parser *p, const char *text, const char *why)
{
    return chempi_err_set(p->err, -EINVAL, "%s %.200s: %s", p->spelled, text,
                          why);
}

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
    if (!text || !CHEMPI_POOL_FIT(&p->opt->pool, s->list, s->cap, s->count + 2))
        return out_of_memory(p);
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

static int parse_count(struct parser *p, const char *text, uint32_t max,
                       uint32_t *out)
{
    return chempi_number_parse32(text, 1, max, out)
               ? 0
               : chempi_err_set(p->err, -EINVAL,
                                "%s %s: expected a number from 1 to %u",
                                p->spelled, text, max);
}

/* Of one program; two numbers that differ cannot both be meant. */
static int parse_ranks(struct parser *p, const char *text,
                       struct chempi_program *prog)
{
    const uint32_t before = prog->count;
    char twice[64];
    int rc = parse_count(p, text, CHEMPI_JOB_RANKS_MAX, &prog->count);

    if (rc || !before || before == prog->count)
        return rc;
    (void)snprintf(twice, sizeof(twice), "%u and -n %u", before, prog->count);
    return fail(p, "there are two numbers of ranks, -n ", twice,
                "; programs are separated by ':'");
}

static int parse_choice(struct parser *p, const char *text,
                        const char *const *choices, uint32_t *out)
{
    char all[256] = "";

    for (uint32_t i = 0; choices[i]; i++) {
        if (strcasecmp(text, choices[i]) == 0) {
            *out = i;
            return 0;
        }
        (void)strncat(all, i ? ", " : "", sizeof(all) - strlen(all) - 1);
        (void)strncat(all, choices[i], sizeof(all) - strlen(all) - 1);
    }
    return chempi_err_set(p->err, -EINVAL, "%s %s: expected one of %s",
                          p->spelled, text, all);
}

/* rc: of reading them. */
static int set_hosts(struct parser *p, struct chempi_hosts *hosts, int rc)
{
    if (!rc && hosts->count) {
        p->opt->names = hosts->names;
        p->opt->slots = hosts->slots;
    }
    chempi_hosts_fini(hosts);
    return rc;
}

static int parse_names(struct parser *p, const char *text)
{
    struct chempi_hosts hosts = {0};
    int rc = chempi_hosts_list(&hosts, &p->opt->pool, text, p->err);

    if (rc)
        (void)chempi_err_prefix(p->err, "%s %s", p->spelled, text);
    return set_hosts(p, &hosts, rc);
}

static int parse_hostfile(struct parser *p, const char *path)
{
    struct chempi_hosts hosts = {0};
    int rc = chempi_hosts_read(&hosts, &p->opt->pool, path, p->err);

    return set_hosts(p, &hosts, rc);
}

/* "3" stands for node0,node1,node2. */
static int parse_virtual(struct parser *p, const char *text)
{
    struct chempi_hosts hosts = {0};
    char name[32];
    uint32_t n = 0;
    int rc;

    if (text[strspn(text, "0123456789")])
        return parse_names(p, text);
    rc = parse_count(p, text, VIRTUAL_NODES_MAX, &n);
    for (uint32_t i = 0; !rc && i < n; i++) {
        (void)snprintf(name, sizeof(name), "node%u", i);
        rc = chempi_hosts_add(&hosts, &p->opt->pool, name, p->err);
    }
    return set_hosts(p, &hosts, rc);
}

static int parse_stdin(struct parser *p, const char *text)
{
    if (strcmp(text, "all") == 0) {
        p->opt->stdin_rank = CHEMPI_STDIN_ALL;
        return 0;
    }
    if (strcmp(text, "none") == 0) {
        p->opt->stdin_rank = CHEMPI_STDIN_NONE;
        return 0;
    }
    return chempi_number_parse32(text, 0, CHEMPI_JOB_RANKS_MAX - 1,
                                 &p->opt->stdin_rank)
               ? 0
               : fail_value(p, text, "expected all, none or a rank");
}

static int parse_timeout(struct parser *p, const char *text)
{
    double *out = &p->opt->timeout_s;

    if (chempi_decimal_parse(text, 0, TIMEOUT_MAX_S, out) && *out > 0)
        return 0;
    return fail_value(p, text, "expected a positive number of seconds");
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
        return fail_value(p, text, "a variable needs a name");
    if (eq)
        return add(p, &p->prog_env, text);
    if (!p->argv[0] || *text == '-')
        return fail_value(p, text, "expected NAME=VALUE");
    return join_pair(p, &p->prog_env, text, *p->argv++);
}

/* Of the launcher's variables these only. */
static int parse_env_list(struct parser *p, const char *text)
{
    char *rest = chempi_pool_str(&p->opt->pool, text);
    int rc = rest ? 0 : out_of_memory(p);

    p->opt->has_clean_env = true;
    while (!rc && rest)
        rc = add(p, &p->pass, strsep(&rest, ","));
    return rc;
}

/* A value that others have under another form is answered. */
static int parse_place(struct parser *p, const char *text,
                       const char *const *choices, uint32_t *out)
{
    const char *answer = chempi_others_place(text);

    return answer ? fail(p, p->spelled, ": chempirun says it so: ", answer)
                  : parse_choice(p, text, choices, out);
}

/* Other launchers name what is filled or gone round. */
static int parse_map(struct parser *p, const char *text)
{
    static const char *const choices[] = {"block", "cyclic", "load", NULL};
    uint32_t v = 0;
    int rc;

    if (strcmp(text, "socket") == 0)
        text = "socket:"; /* to bind to one is another thing */
    if (strcmp(text, "node") == 0)
        text = "cyclic";
    if (strcmp(text, "slot") == 0 || strcmp(text, "core") == 0)
        text = "block";
    rc = parse_place(p, text, choices, &v);

    p->opt->map = (enum chempi_map)v;
    return rc;
}

static int parse_bind(struct parser *p, const char *text)
{
    static const char *const choices[] = {"none", "core", "socket", "auto",
                                          NULL};

    return parse_place(p, text, choices, &p->opt->bind);
}

static int parse_cpu_set(struct parser *p, char *text)
{
    struct chempi_cpus cpus;

    p->opt->cpu_set = text;
    if (chempi_cpus_parse(text, &cpus) == 0 && !strchr(text, '\n'))
        return 0;
    return fail_value(p, text, "expected processors such as 0-3,8");
}

static int parse_rankfile(struct parser *p, const char *path)
{
    struct chempi_options *opt = p->opt;

    opt->rankfile = chempi_pool_alloc(&opt->pool, sizeof(*opt->rankfile));
    return opt->rankfile
               ? chempi_rankfile_read(opt->rankfile, &opt->pool, path, p->err)
               : out_of_memory(p);
}

/* Where nothing else names nodes, the file does. */
static int check_rankfile(struct parser *p)
{
    struct chempi_options *opt = p->opt;
    struct chempi_hosts hosts;
    int rc;

    if (p->says_places)
        return fail(p,
                    "--rankfile says where each rank goes: leave out --bind, "
                    "--map and --ppn",
                    "", "");
    if (opt->names)
        return 0;
    rc = chempi_rankfile_hosts(opt->rankfile, &hosts, &opt->pool, p->err);
    return set_hosts(p, &hosts, rc);
}

/* The name of a way to other hosts. "{}" is the host; else it comes last. */
static int parse_launcher(struct parser *p, const char *text)
{
    static const char *const choices[] = {"ssh", "rsh", "srun", NULL};
    static const char *const words[] = {CHEMPI_LAUNCHER_SSH, "rsh",
                                        CHEMPI_LAUNCHER_SRUN};
    uint32_t v = 0;
    int rc;

    if (strcmp(text, "fork") == 0)
        return fail(p, p->spelled, " fork: chempirun says it so: ",
                    "--private, for ranks on this host");
    if (strcmp(text, "slurm") == 0)
        text = "srun";
    rc = parse_choice(p, text, choices, &v);

    if (!rc)
        p->opt->launcher = words[v];
    return rc;
}

/* ---- what MPI's standard lets a launcher ask of the library -------------- */

const char *const chempi_options_errhandlers[] = {
    "mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return", NULL};

/* The library reads it in each rank's environment. */
static int parse_errhandler(struct parser *p, const char *text)
{
    uint32_t v = 0;
    int rc = parse_choice(p, text, chempi_options_errhandlers, &v);

    return rc ? rc
              : join_pair(p, &p->asked, CHEMPI_ERRHANDLER_ENV,
                          chempi_options_errhandlers[v]);
}

static int check_length(struct parser *p, const char *list)
{
    return strlen(list) <= LIST_MAX
               ? 0
               : fail(p, p->spelled,
                      ": the list is too long (limit: 1023 bytes)", "");
}

/* Kinds that the library does not know are no mistakes: its answer leaves them
 * out. The empty list is one. */
static int parse_kinds(struct parser *p, const char *text)
{
    static const char expected[] =
        "expected kinds of memory with commas between them, each with "
        "restrictors behind colons, such as system,mpi:alloc_mem";
    const char *at = text;
    int rc = check_length(p, text);

    if (rc)
        return rc;
    while (*text && at) {
        const size_t len = strcspn(at, ",:");

        if (len == 0 || strcspn(at, " \t\r\n") < len)
            return fail_value(p, text, expected);
        at = at[len] ? at + len + 1 : NULL;
    }
    return join_pair(p, &p->asked, CHEMPI_KINDS_ENV, text);
}

static int parse_soft(struct parser *p, struct chempi_program *prog, char *text)
{
    const char *why;
    int rc = check_length(p, text);

    if (rc)
        return rc;
    why = chempi_count_range_check(text);
    if (why)
        return fail_value(p, text, why);
    prog->soft = text;
    return 0;
}

/* MPI_INFO_ENV tells how many ranks were asked for, and which would do. */
static int note_ranks(struct parser *p, const struct chempi_program *prog)
{
    const uint32_t count = prog->count ? prog->count : 1;
    char text[16];
    int rc;

    (void)snprintf(text, sizeof(text), "%u", (unsigned)count);
    rc = join_pair(p, &p->asked, CHEMPI_MAXPROCS_ENV, text);
    if (rc || !prog->soft)
        return rc;
    if (chempi_count_range_largest(prog->soft, count) == 0)
        return chempi_err_set(
            p->err, -EINVAL,
            "--soft %.200s: permits no number of ranks from 1 to "
            "%s, which is asked for (-n)",
            prog->soft, text);
    return join_pair(p, &p->asked, CHEMPI_COUNT_RANGE_ENV, prog->soft);
}

static int take_configfile(struct parser *p, char *path)
{
    if (p->is_in_file)
        return fail_value(p, path, "a file of programs names no other one");
    if (p->configfile)
        return fail_value(p, path,
                          "there is another file; they are separated "
                          "by ':'");
    p->configfile = path;
    return 0;
}

/* ---- output and debuggers ------------------------------------------------ */

/* both: of standard error, too, which may have another one of its own. */
static int parse_output(struct parser *p, char *name, int first, int last)
{
    const struct chempi_pattern what = {.node = "", .job = ""};
    /* only --output is another thing elsewhere */
    const char *answer = first < last ? chempi_others_output(name) : NULL;
    char text[CHEMPI_TEXT_MAX];

    if (answer)
        return fail(p, p->spelled, ": chempirun says it so: ", answer);
    if (!chempi_pattern_expand(name, &what, text, sizeof(text)))
        return fail_value(p, name,
                          "expected the name of a file, in which %r stands "
                          "for the rank, %h for the node, %j for the job and "
                          "%% for a percent sign");
    for (int i = first; i <= last; i++)
        if (i == first || !p->opt->files[i])
            p->opt->files[i] = name;
    return 0;
}

/* "0,4-7:WORDS", or WORDS for all ranks. */
static int parse_wrap(struct parser *p, const char *text)
{
    struct chempi_options *opt = p->opt;
    const size_t len = strspn(text, "0123456789,-");
    const bool has_ranks = text[len] == ':' || strncmp(text, "all:", 4) == 0;
    struct chempi_wrap *wrap;
    char *ranks = chempi_pool_str(&opt->pool, has_ranks ? text : "all");

    if (!opt->wraps)
        opt->wraps = chempi_pool_array(&opt->pool, CHEMPI_SPEC_WRAPS_MAX,
                                       sizeof(*opt->wraps));
    if (!ranks || !opt->wraps)
        return out_of_memory(p);
    if (opt->wrap_count == CHEMPI_SPEC_WRAPS_MAX)
        return chempi_err_set(p->err, -EINVAL,
                              "%s %.200s: there are %u of it already, and no "
                              "more can be; name more ranks in each",
                              p->spelled, text,
                              (unsigned)CHEMPI_SPEC_WRAPS_MAX);
    ranks[strcspn(ranks, ":")] = '\0';
    if (!chempi_pattern_is_ranks(ranks))
        return fail_value(p, text,
                          "expected ranks such as 0,4-7, a colon and the "
                          "words that start them, or the words alone");
    wrap = &opt->wraps[opt->wrap_count];
    wrap->ranks = ranks;
    opt->wrap_count++;
    return chempi_configfile_words(&wrap->argv, &opt->pool, p->spelled,
                                   has_ranks ? strchr(text, ':') + 1 : text,
                                   p->err);
}

static int parse_completion(struct parser *p, const char *text)
{
    static const char *const choices[] = {"bash", "zsh", "fish", NULL};
    uint32_t v = 0;
    const int rc = parse_choice(p, text, choices, &v);

    p->opt->completion = rc ? NULL : choices[v];
    return rc;
}

/* ---- switches ------------------------------------------------------------ */

#define MEMBER(name) offsetof(struct chempi_options, name)

/* Options that set a bool; the bits of those that are inherited follow each
 * other in this order. */
static const struct switch_on {
    enum chempi_option_id id;
    size_t member;
    bool is_inherited; /* by jobs that ranks start */
} switches[] = {
    {CHEMPI_OPT_VIRTUAL, MEMBER(is_virtual), true},
    {CHEMPI_OPT_PRIVATE, MEMBER(is_private), true},
    {CHEMPI_OPT_LAUNCHER_FLAT, MEMBER(is_flat), true},
    {CHEMPI_OPT_FITS, MEMBER(fits_only), true},
    {CHEMPI_OPT_VERBOSE, MEMBER(is_verbose), true},
    {CHEMPI_OPT_SECURE, MEMBER(is_secure), true},
    {CHEMPI_OPT_SURVIVE, MEMBER(survives), true},
    {CHEMPI_OPT_LABEL, MEMBER(has_label), true},
    {CHEMPI_OPT_TIMESTAMP, MEMBER(has_time), true},
    {CHEMPI_OPT_SHOW_BINDING, MEMBER(shows_binding), true},
    {CHEMPI_OPT_UNREACHABLE, MEMBER(allows_unreachable), true},
    {CHEMPI_OPT_ENV_NONE, MEMBER(has_clean_env), true},
    {CHEMPI_OPT_STATS, MEMBER(has_stats), false},
    {CHEMPI_OPT_JSON, MEMBER(has_json), false},
    {CHEMPI_OPT_ROUTES, MEMBER(has_routes), false},
    {CHEMPI_OPT_PROFILE, MEMBER(has_profile), false},
    {CHEMPI_OPT_CHECK, MEMBER(has_check), false},
    {CHEMPI_OPT_HELP, MEMBER(wants_help), false},
    {CHEMPI_OPT_VERSION, MEMBER(wants_version), false},
};

static bool is_on(const struct chempi_options *opt, const struct switch_on *it)
{
    return *(const bool *)(const void *)((const char *)opt + it->member);
}

static void turn(struct chempi_options *opt, const struct switch_on *it,
                 bool on)
{
    *(bool *)(void *)((char *)opt + it->member) = on;
}

uint32_t chempi_options_inherited(const struct chempi_options *opt)
{
    uint32_t bits = 0;
    uint32_t bit = 1;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(switches); i++) {
        if (!switches[i].is_inherited)
            continue;
        if (is_on(opt, &switches[i]))
            bits |= bit;
        bit <<= 1;
    }
    return bits;
}

void chempi_options_inherit(struct chempi_options *opt, uint32_t bits)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(switches); i++) {
        if (!switches[i].is_inherited)
            continue;
        turn(opt, &switches[i], bits & 1);
        bits >>= 1;
    }
}

/* ---- options and programs ------------------------------------------------ */

/* Those that only set a member. */
static void set_member(struct chempi_options *opt, struct chempi_program *prog,
                       enum chempi_option_id id, char **words)
{
    opt->tables = id == CHEMPI_OPT_NETWORK ? words[0] : opt->tables;
    opt->launcher = id == CHEMPI_OPT_LAUNCHER_EXEC ? words[0] : opt->launcher;
    opt->dir = id == CHEMPI_OPT_DIR ? words[0] : opt->dir;
    opt->via = id == CHEMPI_OPT_VIA ? words[0] : opt->via;
    prog->wdir = id == CHEMPI_OPT_WDIR ? words[0] : prog->wdir;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(switches); i++)
        if (switches[i].id == id)
            turn(opt, &switches[i], true);
    opt->has_clean_env &= id != CHEMPI_OPT_ENV_ALL;
}

static int take_option(struct parser *p, struct chempi_program *prog,
                       enum chempi_option_id id, char **words)
{
    struct chempi_options *opt = p->opt;

    set_member(opt, prog, id, words);
    p->says_places |= id == CHEMPI_OPT_BIND || id == CHEMPI_OPT_MAP ||
                      id == CHEMPI_OPT_ROUND_ROBIN || id == CHEMPI_OPT_PPN;
    switch (id) {
    case CHEMPI_OPT_N:
        return parse_ranks(p, words[0], prog);
    case CHEMPI_OPT_SOFT:
        return parse_soft(p, prog, words[0]);
    case CHEMPI_OPT_CONFIGFILE:
        return take_configfile(p, words[0]);
    case CHEMPI_OPT_ERRHANDLER:
        return parse_errhandler(p, words[0]);
    case CHEMPI_OPT_KINDS:
        return parse_kinds(p, words[0]);
    case CHEMPI_OPT_VIRTUAL:
        return parse_virtual(p, words[0]);
    case CHEMPI_OPT_NODES:
        p->names_nodes = true;
        return parse_names(p, words[0]);
    case CHEMPI_OPT_HOSTFILE:
        p->names_nodes = true;
        return parse_hostfile(p, words[0]);
    case CHEMPI_OPT_PPN:
        return parse_count(p, words[0], CHEMPI_JOB_RANKS_MAX, &opt->ppn);
    case CHEMPI_OPT_LAUNCHER:
        return parse_launcher(p, words[0]);
    case CHEMPI_OPT_MAP:
        return parse_map(p, words[0]);
    case CHEMPI_OPT_ROUND_ROBIN:
        return parse_map(p, "cyclic");
    case CHEMPI_OPT_BIND:
        return parse_bind(p, words[0]);
    case CHEMPI_OPT_CPU_SET:
        return parse_cpu_set(p, words[0]);
    case CHEMPI_OPT_RANKFILE:
        return parse_rankfile(p, words[0]);
    case CHEMPI_OPT_OUTPUT:
        return parse_output(p, words[0], 0, 1);
    case CHEMPI_OPT_OUT_ONLY:
        return parse_output(p, words[0], 0, 0);
    case CHEMPI_OPT_ERROR:
        return parse_output(p, words[0], 1, 1);
    case CHEMPI_OPT_WRAP:
        return parse_wrap(p, words[0]);
    case CHEMPI_OPT_COMPLETION:
        return parse_completion(p, words[0]);
    case CHEMPI_OPT_TIMEOUT:
        return parse_timeout(p, words[0]);
    case CHEMPI_OPT_STDIN:
        return parse_stdin(p, words[0]);
    case CHEMPI_OPT_PASS:
        return add(p, &p->pass, words[0]);
    case CHEMPI_OPT_ENV_LIST:
        return parse_env_list(p, words[0]);
    case CHEMPI_OPT_ENV:
        return parse_env(p, words[0]);
    case CHEMPI_OPT_GENV_PAIR:
        return join_pair(p, &p->env, words[0], words[1]);
    default:
        return 0;
    }
}

/* Name what was probably meant: a word that differs little, or a value that
 * was not set apart ("-n4"). */
static int unknown_option(struct parser *p, const char *spelled,
                          const char *name)
{
    const size_t digits = strcspn(name, "0123456789");
    const char *answer = chempi_others_answer(name, strcspn(name, "="));
    const char *best = NULL;
    size_t least = 3;

    if (answer)
        return fail(p, spelled, ": chempirun says it so: ", answer);

    for (size_t i = 0; i < chempi_option_count; i++) {
        const size_t len = strlen(chempi_option_table[i].name);
        const size_t d =
            chempi_edit_distance(name, chempi_option_table[i].name);

        if (chempi_option_table[i].words && len == digits && name[digits] &&
            strncmp(name, chempi_option_table[i].name, len) == 0)
            return chempi_err_set(
                p->err, -EINVAL, "unknown option %s; did you mean -%s %s?",
                spelled, chempi_option_table[i].name, name + digits);
        if (len > 2 && d < least && 2 * d <= len) {
            least = d;
            best = chempi_option_table[i].name;
        }
    }
    if (best)
        return chempi_err_set(p->err, -EINVAL,
                              "unknown option %s; did you mean --%s?", spelled,
                              best);
    return fail(p, "unknown option ", spelled, " (see chempirun --help)");
}

/* The word of an option: what follows, or what stands behind "=". */
static int take_words(struct parser *p, char *equals, int count, char *words[2])
{
    p->argv++;
    if (equals && count != 1)
        return fail(p, p->spelled, ": takes no value in this form", "");
    for (int i = 0; i < count; i++) {
        words[i] = equals ? equals + 1 : *p->argv;
        if (!words[i] || (equals && !*words[i]))
            return fail(p, p->spelled, ": a value is missing", "");
        if (!equals)
            p->argv++;
    }
    return 0;
}

/* "--stats" alone stands for "--stats=traffic". */
static int parse_stats(struct parser *p, const char *what)
{
    const bool wants_all = strcmp(what, "all") == 0;
    const bool wants_calls = wants_all || strcmp(what, "calls") == 0;
    const bool is_long = strcmp(what, "long") == 0;
    const bool wants_traffic =
        wants_all || is_long || strcmp(what, "traffic") == 0;

    if (!wants_calls && !wants_traffic)
        return fail_value(p, what, "expected traffic, long, calls or all");
    p->opt->has_stats |= wants_traffic;
    p->opt->has_long_stats |= is_long;
    p->opt->has_profile |= wants_calls;
    p->argv++;
    return 0;
}

/* "--profile" alone is without places. */
static int parse_profile(struct parser *p, const char *what)
{
    if (strcmp(what, "sites") != 0)
        return fail_value(p, what, "expected sites, or nothing");
    p->opt->has_profile = true;
    p->opt->has_sites = true;
    p->argv++;
    return 0;
}

/* One option with its words; p->argv stands behind them afterwards. */
static int parse_option(struct parser *p, struct chempi_program *prog)
{
    const char *spelled = *p->argv;
    char *name = *p->argv + (spelled[1] == '-' ? 2 : 1);
    char *equals = strchr(name, '=');
    const size_t len = equals ? (size_t)(equals - name) : strlen(name);
    char *words[2] = {NULL, NULL};
    int rc;

    for (size_t i = 0; i < chempi_option_count; i++) {
        if (strlen(chempi_option_table[i].name) != len ||
            strncmp(name, chempi_option_table[i].name, len) != 0)
            continue;
        (void)snprintf(p->spelled, sizeof(p->spelled), "%.*s",
                       (int)(name + len - spelled), spelled);
        if (equals && chempi_option_table[i].id == CHEMPI_OPT_STATS)
            return parse_stats(p, equals + 1);
        if (equals && chempi_option_table[i].id == CHEMPI_OPT_PROFILE)
            return parse_profile(p, equals + 1);
        rc = take_words(p, equals, chempi_option_table[i].words, words);
        return rc ? rc : take_option(p, prog, chempi_option_table[i].id, words);
    }
    return unknown_option(p, spelled, name);
}

/* The variables of the program at hand. The last of a name counts: those that
 * stand for options are no others' to set. */
static char **finish_variables(struct parser *p)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < p->asked.count; i++)
        rc = add(p, &p->prog_env, p->asked.list[i]);
    return rc ? NULL : finish(p, &p->prog_env);
}

static int add_program(struct parser *p, struct chempi_program *prog)
{
    struct chempi_options *opt = p->opt;
    int rc;

    if (opt->program_count == CHEMPI_SPEC_APPS_MAX)
        return chempi_err_set(p->err, -EINVAL,
                              "too many programs: a job has %u at most",
                              (unsigned)CHEMPI_SPEC_APPS_MAX);
    if (!CHEMPI_POOL_FIT(&opt->pool, opt->programs, p->program_cap,
                         opt->program_count + 1))
        return out_of_memory(p);
    rc = note_ranks(p, prog);
    if (rc)
        return rc;
    prog->env = finish_variables(p);
    if (!prog->env)
        return out_of_memory(p);
    p->prog_env = (struct strings){0};
    p->asked = (struct strings){0};
    opt->programs[opt->program_count++] = *prog;
    return 0;
}

/* In a file of programs a colon is a word like others. */
static bool is_end(const struct parser *p, const char *word)
{
    return !word || (!p->is_in_file && strcmp(word, ":") == 0);
}

/* Nothing else may stand where a file of programs does. */
static int check_configfile(struct parser *p, const struct chempi_program *prog)
{
    if (prog->argv)
        return fail(p, "--configfile says which programs to run; '",
                    prog->argv[0], "' is one too many");
    if (prog->count || prog->wdir || prog->soft || p->prog_env.count ||
        p->asked.count)
        return fail(p,
                    "what belongs to one program stands in the file of "
                    "programs, not beside --configfile: the number of "
                    "ranks, variables, the working directory and what MPI "
                    "is asked for",
                    "", "");
    return 0;
}

/* Nothing shall run. */
static bool is_answer(const struct chempi_options *opt)
{
    return opt->wants_help || opt->wants_version || opt->completion;
}

/* Options, then a program with its arguments, or a file of programs, up to ":"
 * or the end. */
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
        if (is_answer(p->opt))
            return rc;
    }
    while (!rc && !is_end(p, *p->argv))
        rc = add(p, &words, *p->argv++);
    prog.argv = words.list;
    if (rc)
        return rc;
    if (p->configfile)
        return check_configfile(p, &prog);
    if (words.count == 0)
        return fail(p, "no program to run",
                    p->opt->program_count ? " behind ':'"
                    : *p->argv            ? " before ':'"
                                          : "",
                    " (see chempirun --help)");
    return add_program(p, &prog);
}

/* The programs of the file, one a line. */
static int parse_configfile(struct parser *p)
{
    const char *path = p->configfile;
    char **const rest = p->argv;
    struct chempi_configfile file = {0};
    int rc = chempi_configfile_read(&file, &p->opt->pool, path, p->err);

    p->configfile = NULL;
    p->is_in_file = true;
    for (uint32_t i = 0; !rc && i < file.count; i++) {
        p->argv = file.lines[i].words;
        rc = parse_program(p);
        if (rc)
            (void)chempi_err_prefix(p->err, "%s:%u", path,
                                    (unsigned)file.lines[i].number);
    }
    p->is_in_file = false;
    p->argv = rest;
    return rc;
}

/* Options that are good one by one, but not together. */
static int check_together(struct parser *p)
{
    const struct chempi_options *opt = p->opt;

    if (opt->has_json && !opt->has_stats && !opt->has_routes &&
        !opt->has_profile)
        return fail(p,
                    "--json is a form of what --stats, --trace-routes and "
                    "--profile tell: say which",
                    "", "");
    if (opt->is_virtual && (opt->dir || opt->via))
        return fail(p,
                    "--virtual starts nodes of its own: it goes with "
                    "neither --dir nor --via",
                    "", "");
    if (opt->launcher && (opt->dir || opt->via || opt->is_virtual))
        return fail(p,
                    "--launcher reaches hosts without daemons: it goes with "
                    "none of --dir, --via and --virtual",
                    "", "");
    if (opt->is_virtual && p->names_nodes)
        return fail(p,
                    "--virtual names the nodes: say the names there, and leave "
                    "out --nodes and --hostfile",
                    "", "");
    return 0;
}

int chempi_options_parse(struct chempi_options *opt, int argc, char **argv,
                         struct chempi_err *err)
{
    struct parser p = {.opt = opt, .err = err, .argv = argv + 1};
    int rc = 0;

    (void)argc;
    *opt = (struct chempi_options){.bind = CHEMPI_BIND_AUTO,
                                   .where_s = CHEMPI_WHERE_S};
    for (;;) {
        rc = parse_program(&p);
        if (!rc && p.configfile && !is_answer(opt))
            rc = parse_configfile(&p);
        if (rc || is_answer(opt) || !*p.argv)
            break;
        p.argv++; /* the ":" */
    }
    opt->pass = finish(&p, &p.pass);
    opt->env = finish(&p, &p.env);
    if (!rc && (!opt->pass || !opt->env))
        rc = out_of_memory(&p);
    if (!rc && opt->rankfile && !is_answer(opt))
        rc = check_rankfile(&p);
    if (!rc && !is_answer(opt))
        rc = check_together(&p);
    if (rc)
        chempi_options_fini(opt);
    return rc;
}

/* At most `most`; nothing changes where the variable is not set. */
static int seconds_from(const char *name, double most, double *out,
                        struct chempi_err *err)
{
    const char *text = getenv(name);

    if (!text || !*text || chempi_decimal_parse(text, 0, most, out))
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "%s=%.100s: expected a number of seconds, at most %g",
                          name, text, most);
}

int chempi_options_environment(struct chempi_options *opt,
                               struct chempi_err *err)
{
    int rc = seconds_from(WHERE_VARIABLE, WHERE_MAX_S, &opt->where_s, err);
    const char *check = getenv("CHEMPI_CHECK");

    opt->has_check |= check && *check && strcmp(check, "0") != 0;
    if (!rc)
        rc =
            seconds_from("CHEMPI_CHECK_QUIET", WHERE_MAX_S, &opt->quiet_s, err);
    if (rc || opt->timeout_s > 0)
        return rc;
    return seconds_from("MPIEXEC_TIMEOUT", TIMEOUT_MAX_S, &opt->timeout_s, err);
}

void chempi_options_fini(struct chempi_options *opt)
{
    chempi_pool_fini(&opt->pool);
    *opt = (struct chempi_options){0};
}
