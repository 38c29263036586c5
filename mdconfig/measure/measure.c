/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring a protocol; see measure.h. */
#define _GNU_SOURCE
#include "mdconfig/measure/measure.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "mdconfig/description/text.h"
#include "mdconfig/measure/subprocess.h"
#include "mdconfig/routes/compile.h"

#define PATH_LEN_MAX 4096
#define WORD_MAX 64
#define TIME_MAX_US 1e12     /* of one message: nobody has waited that long */
#define SHARE_MIN 0.3        /* commands between the messages go as they like */
#define FAST_US 1e-3         /* no other way may seem faster ... */
#define SLOW_US 1e8          /* ... than the one that is wanted */
#define PROBE_MAX (4u << 20) /* bytes: LARGEST of programs/chempi-probe */
#define ATTEMPTS 3u          /* each takes twice as long as the one before */

/* ---- reading ------------------------------------------------------------ */

static int bad_answer(struct chempi_err *err, const char *line)
{
    return chempi_err_set(err, -EBADMSG,
                          "expected the figures of chempi-probe, found "
                          "'%.60s'",
                          line);
}

/* "US ..." at the end of a line, as many as before. */
static int read_times(const char *text, double us[CHEMPI_FIT_ROUNDS_MAX],
                      size_t *count)
{
    size_t n = 0;

    while (*text && *text != '\n') {
        char *end;

        if (n == CHEMPI_FIT_ROUNDS_MAX)
            return -EBADMSG;
        us[n] = strtod(text, &end);
        if (end == text || !(fabs(us[n]) > 0) || fabs(us[n]) > TIME_MAX_US)
            return -EBADMSG;
        n++;
        for (text = end; *text == ' '; text++)
            continue;
    }
    if (n == 0 || (*count && n != *count))
        return -EBADMSG;
    *count = n;
    return 0;
}

static int read_line(const char *line, struct chempi_fit_samples *s)
{
    struct chempi_fit_point *point = &s->points[s->point_count];
    bool is_echo = strncmp(line, "echo ", 5) == 0;
    unsigned long long len;
    char *end;

    if (!is_echo && strncmp(line, "rate ", 5) != 0)
        return -EBADMSG;
    if (!isdigit((unsigned char)line[5]))
        return -EBADMSG;
    len = strtoull(line + 5, &end, 10);
    if (*end != ' ')
        return -EBADMSG;
    if (!is_echo) {
        s->rate_len = len;
        return read_times(end + 1, s->rate_us, &s->round_count);
    }
    if (s->point_count == CHEMPI_FIT_SIZES_MAX ||
        (s->point_count > 0 && point[-1].len >= len))
        return -EBADMSG;
    point->len = len;
    s->point_count++;
    return read_times(end + 1, point->us, &s->round_count);
}

int chempi_measure_read(const char *text, struct chempi_fit_samples *out,
                        struct chempi_err *err)
{
    struct chempi_fit_samples s = {.round_count = 0};
    const char *line = text;

    while (*line && strncmp(line, "end\n", 4) != 0) {
        const char *next = strchr(line, '\n');

        if (!next || read_line(line, &s) != 0)
            return bad_answer(err, line);
        line = next + 1;
    }
    if (!*line || s.point_count == 0 || s.rate_us[0] == 0)
        return bad_answer(err, *line ? line : "too little");
    *out = s;
    return 0;
}

double chempi_measure_share(const char *text, const char *network,
                            const char *protocol, char other[64])
{
    double ours = 0;
    double all = 0;
    double most = 0;

    other[0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char words[3][WORD_MAX];
        uint64_t messages;

        line += *line == '\n';
        if (sscanf(line, "%*63s %*63s %63s %63s %63s %" SCNu64 " %*u", words[0],
                   words[1], words[2], &messages) != 4 ||
            strcmp(words[1], "self") == 0)
            continue;
        all += (double)messages;
        if (strcmp(words[0], network) == 0 && strcmp(words[2], protocol) == 0)
            ours += (double)messages;
        else if ((double)messages > most) {
            most = (double)messages;
            memcpy(other, words[2], WORD_MAX);
        }
    }
    return all > 0 ? ours / all : 0;
}

/* ---- tables ------------------------------------------------------------- */

/* A copy of the description in which one protocol beats everything. */
static void force(const struct chempi_desc *desc, uint32_t network,
                  size_t protocol, struct chempi_arena *arena,
                  struct chempi_desc *out)
{
    *out = *desc;
    out->ways = CHEMPI_DESC_DIRECT;
    out->networks =
        chempi_arena_get(arena, desc->network_count, sizeof(*out->networks));
    for (uint32_t i = 0; i < desc->network_count; i++) {
        struct chempi_desc_network *net = &out->networks[i];
        size_t count = desc->networks[i].protocol_count;

        *net = desc->networks[i];
        net->protocols =
            chempi_arena_get(arena, count, sizeof(*net->protocols));
        for (size_t k = 0; k < count; k++) {
            bool is_wanted = i == network && k == protocol;

            net->protocols[k] = desc->networks[i].protocols[k];
            net->protocols[k].latency_us = is_wanted ? FAST_US : SLOW_US;
            net->protocols[k].cost_us = 0;
            net->protocols[k].bw_bytes_per_us = is_wanted ? 1 / FAST_US : 1;
        }
    }
}

static void table_path(const char *dir, const char *node,
                       char path[PATH_LEN_MAX])
{
    (void)snprintf(path, PATH_LEN_MAX, "%.3900s/%s.chempi", dir, node);
}

static int write_table(const struct chempi_graph *graph, const char *dir,
                       uint32_t node, struct chempi_err *err)
{
    char path[PATH_LEN_MAX];
    struct chempi_blob image;
    FILE *file;
    bool bad;
    int rc = chempi_compile_image(graph, node, &image, err);

    if (rc)
        return rc;
    table_path(dir, graph->desc->nodes[node].name, path);
    file = fopen(path, "we");
    rc = file ? 0 : -errno;
    if (file) {
        bad = fwrite(image.data, 1, image.len, file) != image.len;
        if (fclose(file) != 0 || bad)
            rc = -EIO;
    }
    chempi_blob_fini(&image);
    return rc ? chempi_err_set(err, rc, "%s: %s", path, chempi_err_name(rc))
              : 0;
}

static int make_tables(const struct chempi_measure *m, uint32_t network,
                       size_t protocol, const uint32_t nodes[2],
                       const char *dir, struct chempi_err *err)
{
    struct chempi_arena arena = {.blocks = NULL};
    struct chempi_desc forced;
    struct chempi_graph graph;
    int rc = 0;

    force(m->desc, network, protocol, &arena, &forced);
    chempi_graph_init(&graph, &forced);
    for (int i = 0; i < 2 && !rc; i++)
        rc = write_table(&graph, dir, nodes[i], err);
    chempi_graph_fini(&graph);
    chempi_arena_fini(&arena);
    return rc;
}

static void remove_tables(const struct chempi_measure *m,
                          const uint32_t nodes[2], const char *dir)
{
    char path[PATH_LEN_MAX];

    for (int i = 0; i < 2; i++) {
        table_path(dir, m->desc->nodes[nodes[i]].name, path);
        (void)unlink(path); /* twice when both are one node */
    }
    (void)rmdir(dir);
}

/* ---- the job ------------------------------------------------------------ */

/* The last line that a program said, which names the reason. */
static const char *last_words(char *text)
{
    size_t len = strlen(text);
    char *line;

    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static int run_probe(const struct chempi_measure *m,
                     const struct chempi_desc_protocol *protocol,
                     const uint32_t nodes[2], double for_s, const char *dir,
                     struct chempi_subprocess *job, struct chempi_err *err)
{
    const bool is_one = nodes[0] == nodes[1];
    char chempirun[CHEMPI_SUBPROCESS_PATH_MAX];
    char probe[CHEMPI_SUBPROCESS_PATH_MAX];
    char least[24];
    char most[24];
    char seconds[24];
    char names[2 * WORD_MAX + 2];
    int rc = chempi_subprocess_find("chempirun", "chempid", chempirun, err);

    if (!rc)
        rc = chempi_subprocess_find("chempi-probe", "programs/chempi-probe",
                                    probe, err);
    if (rc)
        return rc;
    (void)snprintf(least, sizeof(least), "%" PRIu64, protocol->min_len);
    (void)snprintf(most, sizeof(most), "%" PRIu64,
                   protocol->max_len < INT64_MAX ? protocol->max_len
                                                 : (uint64_t)INT64_MAX);
    (void)snprintf(seconds, sizeof(seconds), "%.3f", for_s);
    (void)snprintf(names, sizeof(names), "%s%s%s",
                   m->desc->nodes[nodes[0]].name, is_one ? "" : ",",
                   is_one ? "" : m->desc->nodes[nodes[1]].name);
    {
        const char *const argv[] = {chempirun,
                                    "--stats=long",
                                    "--network",
                                    dir,
                                    "--ppn",
                                    is_one ? "2" : "1",
                                    "-n",
                                    "2",
                                    "--stdin",
                                    "none",
                                    m->is_virtual ? "--virtual" : "--nodes",
                                    names,
                                    probe,
                                    least,
                                    most,
                                    seconds,
                                    NULL};

        rc = chempi_subprocess_run((char *const *)(uintptr_t)argv, job, err);
    }
    if (rc)
        return rc;
    if (job->interrupted)
        rc = chempi_err_set(err, -EINTR, "interrupted; nothing was changed");
    else if (job->status)
        rc = chempi_err_set(err, -EIO, "%s", last_words(job->err));
    if (rc)
        chempi_subprocess_fini(job);
    return rc;
}

static int judge(const struct chempi_subprocess *job,
                 const struct chempi_desc_network *network,
                 const struct chempi_desc_protocol *protocol,
                 struct chempi_fit *out, struct chempi_err *err)
{
    struct chempi_fit_samples samples;
    char other[WORD_MAX];
    double share =
        chempi_measure_share(job->err, network->name, protocol->name, other);
    int rc;

    if (share < SHARE_MIN)
        return chempi_err_set(err, -ENOTSUP,
                              "device %s sent %.0f %% of the messages by "
                              "protocol %s, most others by %s",
                              network->device, share * 100, protocol->name,
                              *other ? other : "none");
    rc = chempi_measure_read(job->out, &samples, err);
    if (!rc)
        chempi_fit_figures(&samples, protocol->bw_bytes_per_us, out);
    return rc;
}

/* As many as ATTEMPTS: what --seconds says, and twice as long each time. */
#define LASTED "%.3g, %.3g and %.3g s (--seconds, then twice and four times) "

/* Run the probe, and again for longer while its figures are not steady. */
static int run_until_steady(const struct chempi_measure *m, uint32_t network,
                            size_t protocol, const uint32_t nodes[2],
                            const char *dir, struct chempi_fit *out,
                            struct chempi_err *err)
{
    const struct chempi_desc_network *net = &m->desc->networks[network];
    const struct chempi_desc_protocol *p = &net->protocols[protocol];
    double for_s = m->seconds;
    struct chempi_subprocess job;
    int rc;

    for (unsigned i = 0; i < ATTEMPTS; i++, for_s *= 2) {
        rc = run_probe(m, p, nodes, for_s, dir, &job, err);
        if (rc)
            return rc;
        rc = judge(&job, net, p, out, err);
        chempi_subprocess_fini(&job);
        if (rc || chempi_fit_is_steady(out))
            return rc;
    }
    if (out->is_disturbed)
        return chempi_err_set(
            err, -EBUSY,
            "the machine is too busy: in measurements of " LASTED
            "other processes disturbed nearly all messages; "
            "give more --seconds, or measure when less runs",
            m->seconds, 2 * m->seconds, 4 * m->seconds);
    return chempi_err_set(
        err, -EBUSY,
        "the machine is too busy: in measurements of " LASTED
        "the latency varied by %.0f %%, the bandwidth by %.0f %%; give more "
        "--seconds, or measure when less runs",
        m->seconds, 2 * m->seconds, 4 * m->seconds, out->latency.spread * 100,
        out->bw.spread * 100);
}

int chempi_measure_pair(const struct chempi_measure *measure, uint32_t network,
                        size_t protocol, uint32_t from, uint32_t to,
                        struct chempi_fit *out, struct chempi_err *err)
{
    const struct chempi_desc_protocol *p =
        &measure->desc->networks[network].protocols[protocol];
    const uint32_t nodes[2] = {from, to};
    char dir[PATH_LEN_MAX];
    int rc;

    if (p->min_len > PROBE_MAX)
        return chempi_err_set(err, -ENOTSUP,
                              "it takes messages of %s or more, and those "
                              "that are measured have %s at most",
                              chempi_text_put_size(p->min_len).text,
                              chempi_text_put_size(PROBE_MAX).text);
    (void)snprintf(dir, sizeof(dir), "%.3900s/chempi-calibrate-XXXXXX",
                   measure->scratch);
    if (!mkdtemp(dir)) {
        rc = -errno;
        return chempi_err_set(err, rc,
                              "cannot make a directory in %.400s: %s; give "
                              "one that all nodes see with --scratch",
                              measure->scratch, chempi_err_name(rc));
    }
    rc = make_tables(measure, network, protocol, nodes, dir, err);
    if (!rc)
        rc = run_until_steady(measure, network, protocol, nodes, dir, out, err);
    remove_tables(measure, nodes, dir);
    return rc;
}

/* ---- daemons ------------------------------------------------------------ */

/* A line of `chempictl nodes` for a node that answers: name, slots, ranks,
 * load, pid, version. */
static uint32_t node_of_line(const struct chempi_desc *desc, const char *line)
{
    char name[WORD_MAX];
    unsigned slots;
    unsigned pid;

    if (sscanf(line, "%63s %u %*u %*f %u", name, &slots, &pid) != 3)
        return CHEMPI_NAMES_NONE;
    return chempi_names_find(&desc->node_names, name);
}

int chempi_measure_alive(const struct chempi_measure *measure, bool **out,
                         struct chempi_err *err)
{
    const struct chempi_desc *desc = measure->desc;
    bool *alive = chempi_mem_get(desc->node_count, sizeof(*alive));
    char path[CHEMPI_SUBPROCESS_PATH_MAX];
    struct chempi_subprocess job = {.status = 0};
    int rc = 0;

    if (!measure->is_virtual) {
        const char *const argv[] = {path, "nodes", NULL};

        rc = chempi_subprocess_find("chempictl", "chempid", path, err);
        if (!rc)
            rc = chempi_subprocess_run((char *const *)(uintptr_t)argv, &job,
                                       err);
        if (!rc && job.status)
            rc = chempi_err_set(err, -ENOTCONN,
                                "calibrate needs the daemons of the nodes to "
                                "be running (chempid(8)), or --virtual: %s",
                                last_words(job.err));
    }
    for (uint32_t i = 0; i < desc->node_count; i++)
        alive[i] = measure->is_virtual;
    for (const char *line = job.out; !rc && line; line = strchr(line, '\n')) {
        uint32_t node;

        line += *line == '\n';
        node = node_of_line(desc, line);
        if (node != CHEMPI_NAMES_NONE)
            alive[node] = true;
    }
    chempi_subprocess_fini(&job);
    if (rc) {
        free(alive);
        return rc;
    }
    *out = alive;
    return 0;
}
