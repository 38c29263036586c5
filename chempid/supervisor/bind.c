/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding ranks to cores or sockets; see bind.h. */
#define _GNU_SOURCE /* pipe2 */
#include "chempid/supervisor/bind.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/job/corelist.h"
#include "chempid/supervisor/cores.h"
#include "common/base/sys.h"
#include "common/host/beside.h"

#define TEXT_MAX (256u << 10) /* bytes of the helper's answer */
#define HELPER "chempi-topology"

/* ---- the answer ---------------------------------------------------------- */

/* "0 0,1\n" */
static bool parse_line(const char **at, struct chempi_bind_place *p)
{
    char *end;
    unsigned long socket;

    memset(p, 0, sizeof(*p));
    if (!isdigit((unsigned char)**at))
        return false;
    socket = strtoul(*at, &end, 10);
    if (*end != ' ' || socket > UINT32_MAX)
        return false;
    p->socket = (uint32_t)socket;
    *at = end + 1;
    if (chempi_cpus_scan(at, &p->cpus) || **at != '\n')
        return false;
    ++*at;
    return true;
}

/* A core of its own, or one more core of its socket. */
static void lay(struct chempi_bind_map *map, enum chempi_bind kind,
                const struct chempi_bind_place *core)
{
    uint32_t i = map->count;

    if (kind == CHEMPI_BIND_SOCKET)
        for (i = 0; i < map->count; i++)
            if (map->places[i].socket == core->socket)
                break;
    if (i == map->count) {
        map->places[map->count++] = *core;
        return;
    }
    chempi_cpus_join(&map->places[i].cpus, &core->cpus);
}

int chempi_bind_parse(struct chempi_bind_map *map, enum chempi_bind kind,
                      const char *text, struct chempi_err *err)
{
    struct chempi_bind_place core;
    uint32_t lines = 0;
    uint32_t number = 0;

    *map = (struct chempi_bind_map){0};
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    if (lines == 0 || lines > CHEMPI_BIND_PLACES_MAX)
        return chempi_err_set(err, -EINVAL, HELPER " names %u cores", lines);
    map->places = chempi_sys->calloc(lines, sizeof(*map->places));
    if (!map->places)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    while (*text) {
        number++;
        if (!parse_line(&text, &core)) {
            chempi_bind_fini(map);
            return chempi_err_set(err, -EINVAL,
                                  "line %u of " HELPER " is malformed", number);
        }
        lay(map, kind, &core);
        chempi_cpus_join(&map->allowed, &core.cpus);
    }
    return 0;
}

void chempi_bind_fini(struct chempi_bind_map *map)
{
    chempi_cores_release(map);
    free(map->places);
    *map = (struct chempi_bind_map){0};
}

/* ---- the helper ---------------------------------------------------------- */

/* Standard error may be the daemon's log, and the variables here are whose who
 * has started that; users can look into this process. What is loaded before
 * others is for ranks. */
_Noreturn static void become_helper(const struct chempi_spec *spec, int out)
{
    char name[] = HELPER;
    char *argv[] = {name, NULL};

    if (spec->shell.is_known)
        environ = spec->env;
    (void)unsetenv("LD_PRELOAD");
    if (dup2(out, 1) >= 0 &&
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2) >= 0)
        chempi_beside_execute(HELPER, argv);
    _exit(127);
}

static size_t read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len < size && ((n = read(fd, text + len, size - len)) > 0 ||
                          (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    return len;
}

static int ask_helper(const struct chempi_spec *spec, char *text, size_t size,
                      struct chempi_err *err)
{
    int fds[2];
    int status = 0;
    size_t len;
    pid_t pid;

    if (chempi_sys->pipe2(fds, O_CLOEXEC) < 0)
        return chempi_err_set(err, -errno, "cannot ask " HELPER ": %s",
                              chempi_err_name(errno));
    pid = chempi_sys->fork();
    if (pid == 0)
        become_helper(spec, fds[1]);
    (void)close(fds[1]); /* the child's end */
    len = pid > 0 ? read_all(fds[0], text, size - 1) : 0;
    text[len] = '\0';
    (void)close(fds[0]); /* read only */
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    if (pid < 0 || status != 0 || len == size - 1)
        return chempi_err_set(err, -ENOEXEC,
                              "--bind needs the program " HELPER
                              ", which does not work here (is it installed "
                              "with this one?)");
    return 0;
}

/* ---- files of ranks ------------------------------------------------------ */

/* A list of cores on its way to processors. */
struct listing {
    const struct chempi_bind_map *cores; /* a place for each core */
    struct chempi_cpus *cpus;
    uint32_t socket; /* of the item that names what is not there */
    uint32_t missing;
};

/* Core number `number` of a socket, or of all; NULL: there is none. */
static const struct chempi_bind_place *
find_core(const struct chempi_bind_map *cores, uint32_t socket, uint32_t number)
{
    for (uint32_t i = 0; i < cores->count; i++)
        if ((socket == CHEMPI_CORELIST_ANY ||
             cores->places[i].socket == socket) &&
            number-- == 0)
            return &cores->places[i];
    return NULL;
}

/* chempi_corelist_fn; -ENOENT: a core is missing. */
static int join_cores(void *arg, uint32_t socket, uint32_t first, uint32_t last)
{
    struct listing *l = arg;
    const struct chempi_bind_place *core;

    for (uint32_t n = first; n <= last; n++) {
        core = find_core(l->cores, socket, n);
        if (!core && last == UINT32_MAX && n > first)
            return 0; /* all that there are */
        l->socket = socket;
        l->missing = n;
        if (!core)
            return -ENOENT;
        chempi_cpus_join(l->cpus, &core->cpus);
    }
    return 0;
}

static int refuse_core(const struct chempi_spec *spec, uint32_t rank,
                       const struct listing *l, struct chempi_err *err)
{
    const char *node = spec->node_names[spec->node_of_rank[rank]];
    char where[CHEMPI_NODE_NAME_MAX + 48];
    uint32_t there = 0;

    while (find_core(l->cores, l->socket, there))
        there++;
    if (l->socket == CHEMPI_CORELIST_ANY)
        (void)snprintf(where, sizeof(where), "of node %s", node);
    else
        (void)snprintf(where, sizeof(where), "of socket %u of node %s",
                       l->socket, node);
    if (there)
        (void)chempi_err_set(err, -EINVAL,
                             "expected cores %s from 0 to %u, found %u", where,
                             there - 1, l->missing);
    else
        (void)chempi_err_set(err, -EINVAL, "ranks may use no core %s", where);
    return chempi_err_prefix(err, "%s:%u: rank %u: slot=%.100s", spec->rankfile,
                             spec->line_of_rank[rank], rank,
                             spec->slots_of_rank[rank]);
}

int chempi_bind_list(const struct chempi_bind_map *cores,
                     const struct chempi_spec *spec, uint32_t node,
                     struct chempi_bind_map *map, struct chempi_err *err)
{
    const uint32_t count = chempi_spec_local_size(spec, node);
    int rc = 0;

    *map = (struct chempi_bind_map){.allowed = cores->allowed};
    map->places = chempi_sys->calloc(count ? count : 1, sizeof(*map->places));
    if (!map->places)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; !rc && i < spec->size; i++) {
        struct listing l = {.cores = cores,
                            .cpus = &map->places[map->count].cpus};

        if (spec->node_of_rank[i] != node)
            continue;
        map->count++;
        rc = chempi_corelist_each(spec->slots_of_rank[i], join_cores, &l, err);
        if (rc == -ENOENT)
            rc = refuse_core(spec, i, &l, err);
    }
    if (rc)
        chempi_bind_fini(map);
    return rc;
}

/* ---- all kinds ----------------------------------------------------------- */

/* This process, and so the ranks, use no others from now on. */
static int keep_to(const struct chempi_spec *spec, uint32_t node,
                   struct chempi_err *err)
{
    struct chempi_cpus cpus;
    struct chempi_cpus allowed;
    char text[CHEMPI_CPUS_TEXT_MAX];
    int rc = chempi_cpus_parse(spec->cpu_set, &cpus);

    if (rc)
        return chempi_err_set(err, -EINVAL, "--cpu-set %.100s: no list",
                              spec->cpu_set);
    rc = chempi_cpus_get(&allowed);
    for (size_t i = 0; !rc && i < sizeof(cpus.bits); i++)
        rc = cpus.bits[i] & ~allowed.bits[i] ? -EPERM : 0;
    if (!rc)
        rc = chempi_cpus_set(0, &cpus);
    if (!rc)
        return 0;
    (void)chempi_cpus_format(&allowed, text, sizeof(text)); /* cut: so be it */
    return chempi_err_set(err, rc,
                          "--cpu-set %.100s: expected processors that ranks "
                          "may use on node %s, which are %.200s",
                          spec->cpu_set, spec->node_names[node], text);
}

static int ask_for(const struct chempi_spec *spec, struct chempi_bind_map *map,
                   enum chempi_bind kind, struct chempi_err *err)
{
    char *text = chempi_sys->malloc(TEXT_MAX);
    int rc;

    if (!text)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = ask_helper(spec, text, TEXT_MAX, err);
    if (!rc)
        rc = chempi_bind_parse(map, kind, text, err);
    free(text);
    return rc;
}

int chempi_bind_init(struct chempi_bind_map *map,
                     const struct chempi_spec *spec, uint32_t node,
                     struct chempi_err *err)
{
    const enum chempi_bind kind = (enum chempi_bind)spec->bind;
    struct chempi_bind_map cores = {0};
    int rc = spec->cpu_set ? keep_to(spec, node, err) : 0;

    *map = (struct chempi_bind_map){0};
    if (rc)
        return rc;
    if (kind == CHEMPI_BIND_AUTO)
        chempi_cores_choose(spec, node, map);
    if (kind == CHEMPI_BIND_AUTO || kind == CHEMPI_BIND_NONE)
        return 0;
    rc = ask_for(spec, kind == CHEMPI_BIND_LIST ? &cores : map,
                 kind == CHEMPI_BIND_LIST ? CHEMPI_BIND_CORE : kind, err);
    if (!rc && kind == CHEMPI_BIND_LIST)
        rc = chempi_bind_list(&cores, spec, node, map, err);
    else
        map->offset = spec->bind_offset[node];
    chempi_bind_fini(&cores);
    if (!rc)
        chempi_cores_claim(map, chempi_spec_local_size(spec, node));
    return rc;
}

int chempi_bind_self(const struct chempi_bind_map *map, uint32_t local)
{
    if (map->count == 0)
        return 0;
    return chempi_cpus_set(
        0, &map->places[(map->offset + local) % map->count].cpus);
}
