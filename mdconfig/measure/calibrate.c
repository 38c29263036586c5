/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mdconfig calibrate: measure the protocols of a description's networks and
 * put the figures into its text. Networks that one key makes are of a kind: a
 * few of them are measured, and the medians stand for all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/control/client.h"
#include "common/words/decimal.h"
#include "mdconfig/description/command.h"
#include "mdconfig/description/text.h"
#include "mdconfig/measure/figures.h"
#include "mdconfig/measure/measure.h"

#define SECONDS 2.0 /* of measuring, per protocol and pair */
#define SECONDS_MAX 3600.0
#define PAIRS_MAX 16u
#define LIKE_MAX 3u     /* networks of a key that are measured */
#define REFUSED_MAX 512 /* bytes of a list of protocols */

struct pair {
    uint32_t network;
    uint32_t from;
    uint32_t to;
};

struct calibration {
    struct chempi_desc desc;
    char *text; /* of the description, as it was read */
    size_t len;
    const char *path;
    struct chempi_measure measure;
    const char *only; /* the name of a network, or NULL */
    unsigned pairs;   /* per network */
    bool *alive;      /* [node] */
    struct chempi_figures *figures;
    size_t count;
    size_t room;
    size_t failed;             /* protocols that could not be measured */
    char refused[REFUSED_MAX]; /* those of them that are not told of yet */
    struct chempi_err why;     /* for one reason */
    FILE *out;
};

/* ---- pairs -------------------------------------------------------------- */

static bool can_echo(const struct calibration *c, uint32_t node,
                     uint32_t network)
{
    const struct chempi_desc_attachment *a =
        chempi_desc_attached(&c->desc, node, network);

    return c->alive[node] && a && a->can_send && a->can_receive;
}

/* Nodes of a network whose daemons answer; free() releases *nodes. */
static size_t nodes_of(const struct calibration *c, uint32_t network,
                       uint32_t **nodes)
{
    size_t count = 0;

    *nodes = chempi_mem_get(c->desc.node_count, sizeof(**nodes));
    for (uint32_t i = 0; i < c->desc.node_count; i++) {
        if (can_echo(c, i, network))
            (*nodes)[count++] = i;
    }
    return count;
}

/* Pairs of a network from the ends of its nodes inwards. */
static size_t pairs_of_network(const struct calibration *c, uint32_t network,
                               struct pair pairs[PAIRS_MAX])
{
    bool inside = c->desc.networks[network].inside_node;
    uint32_t *nodes;
    size_t count = nodes_of(c, network, &nodes);
    size_t n = 0;

    for (size_t i = 0; i < count && n < c->pairs; i++) {
        size_t other = inside ? i : count - 1 - i;

        if (!inside && i >= other)
            break;
        pairs[n++] = (struct pair){
            .network = network, .from = nodes[i], .to = nodes[other]};
    }
    free(nodes);
    return n;
}

static bool is_of_key(const struct chempi_desc_network *a,
                      const struct chempi_desc_network *b)
{
    return a->line == b->line && a->column == b->column;
}

/* Pairs of some of the networks of a key, whose first one is given. */
static size_t pairs_of_key(const struct calibration *c, uint32_t first,
                           struct pair pairs[LIKE_MAX * PAIRS_MAX])
{
    uint32_t like = 1;
    uint32_t step;
    size_t n = 0;

    while (first + like < c->desc.network_count &&
           is_of_key(&c->desc.networks[first], &c->desc.networks[first + like]))
        like++;
    step = like > LIKE_MAX ? like / LIKE_MAX : 1;
    for (uint32_t i = 0; i < LIKE_MAX && i * step < like; i++)
        n += pairs_of_network(c, first + i * step, pairs + n);
    return n;
}

/* ---- measuring ---------------------------------------------------------- */

/* The median over the pairs. Its spread: how far what any pair has seen lies
 * from it. */
static struct chempi_fit_figure
middle(const struct chempi_fit_figure figures[LIKE_MAX * PAIRS_MAX],
       size_t count)
{
    struct chempi_fit_figure out = {.value = figures[0].value};
    double values[LIKE_MAX * PAIRS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (figures[i].is_known)
            values[n++] = figures[i].value;
    }
    if (n == 0)
        return out;
    out.value = chempi_fit_median(values, n);
    out.is_known = true;
    for (size_t i = 0; i < count && out.value > 0; i++) {
        const double away = fabs(figures[i].value - out.value);

        if (figures[i].is_known)
            out.spread =
                fmax(out.spread,
                     (away + figures[i].spread * figures[i].value) / out.value);
    }
    return out;
}

static void print_figure(FILE *out, const char *text,
                         const struct chempi_fit_figure *f, const char *more)
{
    (void)fprintf(out, "%s", text);
    if (f->is_known)
        (void)fprintf(out, " \xc2\xb1 %.*f %%", f->spread < 0.01 ? 1 : 0,
                      fmin(f->spread * 100, 999));
    (void)fprintf(out, "%s", more);
}

static void print_result(const struct calibration *c, uint32_t network,
                         size_t protocol, const struct pair *pairs,
                         size_t count, const struct chempi_fit *fit)
{
    const struct chempi_desc_network *net = &c->desc.networks[network];

    (void)fprintf(c->out, "%s %s (%s", net->name, net->protocols[protocol].name,
                  c->desc.nodes[pairs[0].from].name);
    if (!net->inside_node)
        (void)fprintf(c->out, " - %s", c->desc.nodes[pairs[0].to].name);
    if (count > 1)
        (void)fprintf(c->out, " and %zu more", count - 1);
    print_figure(c->out, "): ", &(struct chempi_fit_figure){.value = 0}, "");
    print_figure(c->out, chempi_text_put_time(fit->latency.value).text,
                 &fit->latency, ", ");
    print_figure(c->out, chempi_text_put_bandwidth(fit->bw.value).text,
                 &fit->bw,
                 fit->bw.is_known ? ", " : " (not seen at these sizes), ");
    print_figure(c->out, chempi_text_put_time(fit->cost.value).text, &fit->cost,
                 " per message\n");
    (void)fflush(c->out);
}

static void tell_refused(struct calibration *c)
{
    if (*c->refused)
        (void)fprintf(stderr, "%s: not measured: %s\n", c->refused,
                      c->why.text);
    *c->refused = '\0';
}

/* Protocols that are refused for one reason after the other are told of
 * together. */
static void note_refused(struct calibration *c, uint32_t network,
                         size_t protocol, struct chempi_err *err)
{
    const struct chempi_desc_network *net = &c->desc.networks[network];
    char name[2 * CHEMPI_NODE_NAME_MAX];
    size_t len;

    (void)snprintf(name, sizeof(name), "%s %s", net->name,
                   net->protocols[protocol].name);
    if (strcmp(c->why.text, err->text) != 0 ||
        strlen(c->refused) + strlen(name) + 3 > sizeof(c->refused))
        tell_refused(c);
    len = strlen(c->refused);
    (void)snprintf(c->refused + len, sizeof(c->refused) - len, "%s%s",
                   len ? ", " : "", name);
    c->why = *err;
    err->text[0] = '\0';
    c->failed++;
}

/* -EINTR when the user has enough; what cannot be measured is said only. */
static int measure_protocol(struct calibration *c, uint32_t network,
                            size_t protocol, const struct pair *pairs,
                            size_t count, struct chempi_err *err)
{
    struct chempi_fit_figure latency[LIKE_MAX * PAIRS_MAX];
    struct chempi_fit_figure bw[LIKE_MAX * PAIRS_MAX];
    struct chempi_fit_figure cost[LIKE_MAX * PAIRS_MAX];
    struct chempi_fit fit;
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        rc = chempi_measure_pair(&c->measure, pairs[i].network, protocol,
                                 pairs[i].from, pairs[i].to, &fit, err);
        latency[i] = fit.latency;
        bw[i] = fit.bw;
        cost[i] = fit.cost;
    }
    if (rc == -EINTR)
        return rc;
    if (rc) {
        note_refused(c, network, protocol, err);
        return 0;
    }
    tell_refused(c);
    fit = (struct chempi_fit){.latency = middle(latency, count),
                              .bw = middle(bw, count),
                              .cost = middle(cost, count)};
    print_result(c, network, protocol, pairs, count, &fit);
    c->figures =
        chempi_mem_grow(c->figures, c->count, &c->room, sizeof(*c->figures));
    c->figures[c->count++] = (struct chempi_figures){
        .network = network, .protocol = protocol, .fit = fit};
    return 0;
}

static int measure_key(struct calibration *c, uint32_t first,
                       struct chempi_err *err)
{
    const struct chempi_desc_network *net = &c->desc.networks[first];
    struct pair pairs[LIKE_MAX * PAIRS_MAX];
    size_t count = pairs_of_key(c, first, pairs);
    int rc = 0;

    if (count == 0) {
        tell_refused(c);
        (void)fprintf(stderr,
                      "%s: not measured: %s of its nodes that %s a running "
                      "daemon%s\n",
                      net->name, net->inside_node ? "none" : "fewer than two",
                      net->inside_node ? "has" : "send and receive have",
                      c->measure.is_virtual ? "" : " (chempictl nodes)");
        c->failed += net->protocol_count;
    }
    for (size_t i = 0; i < net->protocol_count && count > 0 && !rc; i++)
        rc = measure_protocol(c, first, i, pairs, count, err);
    return rc;
}

static bool is_wanted(const struct calibration *c, uint32_t network)
{
    const struct chempi_desc_network *net = &c->desc.networks[network];

    return (network == 0 || !is_of_key(net, net - 1)) &&
           (!c->only || strcmp(net->name, c->only) == 0);
}

/* --seconds is for one protocol between one pair of nodes. */
static void tell_time(const struct calibration *c)
{
    struct pair pairs[LIKE_MAX * PAIRS_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < c->desc.network_count; i++)
        if (is_wanted(c, i))
            count +=
                pairs_of_key(c, i, pairs) * c->desc.networks[i].protocol_count;
    if (count == 0)
        return;
    (void)fprintf(c->out,
                  "%zu measurement%s (a protocol between two nodes) of %.3g s: "
                  "%.3g s in all, and up to %.3g s where figures are not "
                  "steady and are measured again for longer\n",
                  count, chempi_text_plural(count), c->measure.seconds,
                  (double)count * c->measure.seconds,
                  (double)count * c->measure.seconds * CHEMPI_MEASURE_AT_MOST);
    (void)fflush(c->out);
}

static int measure_all(struct calibration *c, struct chempi_err *err)
{
    bool found = !c->only;
    int rc = 0;

    tell_time(c);
    for (uint32_t i = 0; i < c->desc.network_count && !rc; i++) {
        if (!is_wanted(c, i))
            continue;
        found = true;
        rc = measure_key(c, i, err);
    }
    tell_refused(c);
    if (!rc && !found)
        rc = chempi_err_set(err, -ENOENT,
                            "%s: no network '%.63s' that begins a key", c->path,
                            c->only);
    return rc;
}

/* ---- files -------------------------------------------------------------- */

static int write_stream(FILE *file, const char *text, size_t len)
{
    return fwrite(text, 1, len, file) == len && fflush(file) == 0 ? 0 : -EIO;
}

/* Beside the file first, then in its place, with its rights. */
static int replace_file(const char *path, const char *text, size_t len)
{
    char real[PATH_MAX];
    char beside[PATH_MAX + 16];
    struct stat st;
    FILE *file;
    int rc = 0;
    int fd;

    if (!realpath(path, real) || stat(real, &st) < 0)
        return -errno;
    (void)snprintf(beside, sizeof(beside), "%s.XXXXXX", real);
    fd = mkostemp(beside, O_CLOEXEC);
    file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        rc = -errno;
        if (fd >= 0)
            (void)close(fd); /* nothing is in it */
    } else {
        rc = write_stream(file, text, len);
        if (!rc && (fchmod(fd, st.st_mode & 07777) < 0 || fsync(fd) < 0))
            rc = -errno;
        if (fclose(file) != 0 && !rc)
            rc = -EIO;
        if (!rc && rename(beside, real) < 0)
            rc = -errno;
    }
    if (rc && fd >= 0)
        (void)unlink(beside); /* incomplete */
    return rc;
}

/* Somebody may have edited the description meanwhile. */
static int check_unchanged(const struct calibration *c, struct chempi_err *err)
{
    char *text;
    size_t len;
    bool is_same;
    int rc = chempi_yaml_read(c->path, &text, &len, err);

    if (rc)
        return rc;
    is_same = len == c->len && memcmp(text, c->text, len) == 0;
    free(text);
    return is_same ? 0
                   : chempi_err_set(err, -EBUSY,
                                    "%s has been changed while it was "
                                    "measured; the figures above are not "
                                    "written",
                                    c->path);
}

static int write_new(const struct calibration *c, const char *output,
                     const char *text, size_t len, struct chempi_err *err)
{
    const char *path = output ? output : c->path;
    FILE *file;
    int rc = 0;

    if (strcmp(path, "-") == 0) {
        rc = write_stream(stdout, text, len);
    } else if (!output) {
        rc = check_unchanged(c, err);
        if (rc)
            return rc;
        rc = replace_file(path, text, len);
    } else {
        file = fopen(path, "we");
        rc = file ? write_stream(file, text, len) : -errno;
        if (file && fclose(file) != 0 && !rc)
            rc = -EIO;
    }
    return rc ? chempi_err_set(err, rc, "%s: %s", path, chempi_err_name(rc))
              : 0;
}

/* ---- the command -------------------------------------------------------- */

static int read_number(const char *text, double most, double *out,
                       struct chempi_err *err)
{
    char what[64];
    double value;

    if (!text)
        return 0;
    if (!chempi_decimal_parse(text, 0, most, &value) || !(value > 0)) {
        (void)snprintf(what, sizeof(what),
                       "expected a number above 0, at most %g, found ", most);
        return chempi_command_usage(err, what, text);
    }
    *out = value;
    return 0;
}

/* All nodes see the folder of the description, or nothing else would work. */
static const char *scratch_of(const char *path, char folder[PATH_MAX])
{
    char *slash;

    (void)snprintf(folder, PATH_MAX, "%s", path);
    slash = strrchr(folder, '/');
    if (!slash)
        return ".";
    slash[slash == folder] = '\0';
    return folder;
}

static int calibrate(struct calibration *c, const char *output,
                     struct chempi_err *err)
{
    char *text = NULL;
    size_t len = 0;
    int rc = chempi_measure_alive(&c->measure, &c->alive, err);

    if (!rc)
        rc = measure_all(c, err);
    if (!rc && c->count > 0)
        rc = chempi_figures_put(&c->desc, c->text, c->len, c->figures, c->count,
                                &text, &len, err);
    if (!rc && c->count > 0)
        rc = write_new(c, output, text, len, err);
    free(text);
    free(c->figures);
    free(c->alive);
    if (!rc && c->failed > 0)
        rc = chempi_err_set(err, -EIO,
                            "%zu protocol%s could not be measured and keep%s "
                            "their figures",
                            c->failed, chempi_text_plural(c->failed),
                            c->failed == 1 ? "s" : "");
    return rc;
}

int chempi_command_calibrate(struct chempi_command_line *line,
                             struct chempi_err *err)
{
    struct calibration c = {.pairs = 1};
    char folder[PATH_MAX];
    double pairs = 1;
    double seconds = SECONDS;
    int rc = read_number(line->seconds, SECONDS_MAX, &seconds, err);

    if (!rc)
        rc = read_number(line->pairs, PAIRS_MAX, &pairs, err);
    if (rc)
        return rc;
    c.path = line->arguments[0];
    c.only = line->network;
    c.pairs = pairs < 1 ? 1 : (unsigned)pairs;
    c.out = strcmp(line->output ? line->output : c.path, "-") == 0 ? stderr
                                                                   : stdout;
    if (chempi_yaml_read(c.path, &c.text, &c.len, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    rc = chempi_desc_parse(c.path, c.text, c.len, &c.desc, err);
    if (!rc) {
        c.measure = (struct chempi_measure){
            .desc = &c.desc,
            .scratch =
                line->scratch ? line->scratch : scratch_of(c.path, folder),
            .seconds = seconds,
            .is_virtual = line->is_virtual};
        rc = calibrate(&c, line->output, err);
        chempi_desc_fini(&c.desc);
    }
    free(c.text);
    return rc ? CHEMPI_COMMAND_FAILED : CHEMPI_COMMAND_OK;
}
