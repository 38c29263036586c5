/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores for ranks; see cores.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "chempid/supervisor/cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/address.h"
#include "common/fd/file.h"

/* ---- what there is ------------------------------------------------------- */

/* A small file's text; false if there is none. */
static bool read_file(const char *dir, const char *name, char *text,
                      size_t size)
{
    char path[256];

    return snprintf(path, sizeof(path), "%s/%s", dir, name) <
               (int)sizeof(path) &&
           chempi_file_read(path, text, size) > 0;
}

static bool has_siblings(const char *dir)
{
    char text[16];

    return !read_file(dir, "smt/active", text, sizeof(text)) || text[0] != '0';
}

/* The core that a processor belongs to. */
static void find_core(const char *dir, uint32_t cpu, struct chempi_cpus *core)
{
    char name[64];
    char text[CHEMPI_CPUS_TEXT_MAX];

    (void)snprintf(name, sizeof(name), "cpu%u/topology/thread_siblings_list",
                   cpu);
    if (read_file(dir, name, text, sizeof(text)) &&
        chempi_cpus_parse(text, core) == 0 && chempi_cpus_has(core, cpu))
        return;
    memset(core, 0, sizeof(*core));
    chempi_cpus_add(core, cpu);
}

static uint32_t first_of(const struct chempi_cpus *cpus)
{
    uint32_t cpu = 0;

    while (cpu + 1 < CHEMPI_CPUS_MAX && !chempi_cpus_has(cpus, cpu))
        cpu++;
    return cpu;
}

/* K3 */
static void keep(struct chempi_cpus *a, const struct chempi_cpus *b)
{
    for (size_t i = 0; i < sizeof(a->bits); i++)
        a->bits[i] &= b->bits[i];
}

int chempi_cores_find(const char *dir, const struct chempi_cpus *allowed,
                      struct chempi_bind_map *map)
{
    const uint32_t most = chempi_cpus_count(allowed);
    const bool is_smt = has_siblings(dir);
    struct chempi_cpus seen = {{0}};

    *map = (struct chempi_bind_map){0};
    map->places = chempi_sys->calloc(most ? most : 1, sizeof(*map->places));
    if (!map->places)
        return -ENOMEM;
    for (uint32_t cpu = 0; cpu < CHEMPI_CPUS_MAX; cpu++) {
        struct chempi_bind_place *core = &map->places[map->count];

        if (!chempi_cpus_has(allowed, cpu) || chempi_cpus_has(&seen, cpu))
            continue;
        if (is_smt)
            find_core(dir, cpu, &core->cpus);
        else
            chempi_cpus_add(&core->cpus, cpu);
        chempi_cpus_join(&seen, &core->cpus);
        core->socket = first_of(&core->cpus); /* K2 */
        keep(&core->cpus, allowed);
        map->count++;
    }
    return 0;
}

/* The first core of a share; that of the share behind the last: their count. */
static uint32_t share_start(const struct chempi_bind_map *cores, uint32_t index,
                            uint32_t total)
{
    return (uint32_t)((uint64_t)index * cores->count / total);
}

void chempi_cores_share(const struct chempi_bind_map *cores, uint32_t index,
                        uint32_t total, struct chempi_bind_place *place)
{
    const uint32_t end = share_start(cores, index + 1, total);

    memset(place, 0, sizeof(*place));
    for (uint32_t i = share_start(cores, index, total); i < end; i++)
        chempi_cpus_join(&place->cpus, &cores->places[i].cpus);
}

/* ---- whose it is --------------------------------------------------------- */

/* K2; a descriptor, or -errno (-EADDRINUSE: another job has the core). */
static int hold_core(uint32_t number)
{
    struct sockaddr_un address;
    char name[sizeof(address.sun_path)];
    socklen_t len;
    /* A stream that does not listen: nobody can write to it. */
    const int fd = chempi_sys->socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    (void)snprintf(name, sizeof(name), "chempi-core-%u", number);
    len = chempi_address_abstract(name, &address);
    if (chempi_sys->bind(fd, (const struct sockaddr *)&address, len) < 0) {
        const int rc = -errno;

        (void)close(fd); /* it never was of use */
        return rc;
    }
    return fd;
}

void chempi_cores_release(struct chempi_bind_map *map)
{
    for (uint32_t i = 0; i < map->hold_count; i++)
        (void)close(map->holds[i]); /* nothing was written there */
    free(map->holds);
    map->holds = NULL;
    map->hold_count = 0;
}

/* The cores from `first` to before `end`; all or none. */
static int hold_cores(const struct chempi_bind_map *cores, uint32_t first,
                      uint32_t end, struct chempi_bind_map *map)
{
    map->holds = chempi_sys->calloc(end - first, sizeof(*map->holds));
    if (!map->holds)
        return -ENOMEM;
    for (uint32_t i = first; i < end; i++) {
        const int fd = hold_core(cores->places[i].socket);

        if (fd < 0) {
            chempi_cores_release(map);
            return fd;
        }
        map->holds[map->hold_count++] = fd;
    }
    return 0;
}

void chempi_cores_claim(struct chempi_bind_map *map, uint32_t count)
{
    struct chempi_bind_map cores;
    struct chempi_cpus used = {{0}};

    for (uint32_t i = 0; i < count && map->count > 0; i++)
        chempi_cpus_join(&used,
                         &map->places[(map->offset + i) % map->count].cpus);
    if (chempi_cores_find(CHEMPI_CORES_DIR, &used, &cores))
        return;
    map->holds = chempi_sys->calloc(cores.count + 1u, sizeof(*map->holds));
    for (uint32_t i = 0; map->holds && i < cores.count; i++) {
        const int fd = hold_core(cores.places[i].socket);

        if (fd >= 0)
            map->holds[map->hold_count++] = fd;
    }
    free(cores.places); /* it holds none */
}

/* ---- who gets what ------------------------------------------------------- */

/* Ranks of the job on this node's host: all, and those on earlier nodes. */
static void count_ranks(const struct chempi_spec *spec, uint32_t node,
                        uint32_t *total, uint32_t *before)
{
    const uint32_t host = spec->host_of_node[node];

    *total = *before = 0;
    for (uint32_t i = 0; i < spec->size; i++) {
        const uint32_t at = spec->node_of_rank[i];

        if (spec->host_of_node[at] != host)
            continue;
        ++*total;
        *before += at < node;
    }
}

/* The cores that the ranks here have among them as places, `held` of them
 * named. */
static int lay_out(const struct chempi_bind_map *held, uint32_t count,
                   struct chempi_bind_map *map)
{
    map->places = chempi_sys->calloc(count, sizeof(*map->places));
    if (!map->places)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        chempi_cores_share(held, i, count, &map->places[i]);
    map->count = count;
    return 0;
}

/* Hold free cores, `want` if there are so many: in `held`, as places. Nodes of
 * a job begin at different ones: those in network namespaces of their own do
 * not see each other's names (K2). */
static int hold_free(const struct chempi_bind_map *cores, uint32_t first,
                     uint32_t want, struct chempi_bind_map *held)
{
    held->holds = chempi_sys->calloc(want, sizeof(*held->holds));
    held->places = chempi_sys->calloc(want, sizeof(*held->places));
    if (!held->holds || !held->places)
        return -ENOMEM;
    for (uint32_t i = 0; i < cores->count && held->count < want; i++) {
        const struct chempi_bind_place *core =
            &cores->places[(first + i) % cores->count];
        const int fd = hold_core(core->socket);

        if (fd < 0)
            continue;
        held->holds[held->hold_count++] = fd;
        held->places[held->count++] = *core;
    }
    return 0;
}

/* The part of this node in all cores, as if no other job were on the host. */
static int hold_share(const struct chempi_bind_map *cores, uint32_t before,
                      uint32_t count, uint32_t total,
                      struct chempi_bind_map *held)
{
    const uint32_t first = share_start(cores, before, total);
    const uint32_t end = share_start(cores, before + count, total);
    const int rc = hold_cores(cores, first, end, held);

    if (rc)
        return rc;
    held->places = chempi_sys->calloc(end - first, sizeof(*held->places));
    if (!held->places)
        return -ENOMEM;
    memcpy(held->places, cores->places + first,
           (end - first) * sizeof(*held->places));
    held->count = end - first;
    return 0;
}

/* How many cores the ranks here are meant to have: those of their slots (K4),
 * else of all that there are. */
static uint32_t wanted(const struct chempi_spec *spec, uint32_t count,
                       const struct chempi_bind_map *cores, uint32_t total)
{
    const uint32_t most = cores->count / total * count;
    const uint32_t per = spec->slots ? cores->count / spec->slots : 0;

    if (!spec->slots)
        return most;
    return per * count > most ? most : per ? per * count : count;
}

static void choose_among(const struct chempi_spec *spec, uint32_t node,
                         const struct chempi_bind_map *cores,
                         struct chempi_bind_map *map)
{
    const uint32_t count = chempi_spec_local_size(spec, node);
    struct chempi_bind_map held = {0};
    uint32_t total;
    uint32_t before;
    int rc = -EADDRINUSE;

    count_ranks(spec, node, &total, &before);
    if (!spec->slots)
        rc = hold_share(cores, before, count, total, &held);
    if (rc == -EADDRINUSE)
        rc = hold_free(cores, share_start(cores, before, total),
                       wanted(spec, count, cores, total), &held);
    if (!rc && held.count >= count && !lay_out(&held, count, map)) { /* K1 */
        map->holds = held.holds;
        map->hold_count = held.hold_count;
        held.holds = NULL;
        held.hold_count = 0;
        map->is_share = true;
    }
    chempi_cores_release(&held);
    free(held.places);
}

void chempi_cores_choose(const struct chempi_spec *spec, uint32_t node,
                         struct chempi_bind_map *map)
{
    struct chempi_bind_map cores;
    struct chempi_cpus allowed;
    const uint32_t procs = chempi_spec_host_procs(spec, node);
    uint32_t total;
    uint32_t before;

    *map = (struct chempi_bind_map){0};
    count_ranks(spec, node, &total, &before);
    if (chempi_spec_local_size(spec, node) == 0 ||
        (total < 2 && !spec->slots) || chempi_cpus_get(&allowed) ||
        procs > chempi_cpus_count(&allowed) ||
        chempi_cores_find(CHEMPI_CORES_DIR, &allowed, &cores))
        return;
    if (procs <= cores.count)
        choose_among(spec, node, &cores, map);
    if (map->count)
        map->allowed = allowed;
    free(cores.places); /* of all cores, which are not held */
}
