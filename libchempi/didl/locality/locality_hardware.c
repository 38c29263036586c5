/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hardware by hwloc, which is loaded at the first question: few programs ask,
 * and a start must not pay for those that do. What it found out about the
 * machine is kept, for that takes it some milliseconds; what the process is
 * bound to is looked up each time.
 */
#include <dlfcn.h>
#include <hwloc.h>
#include <pthread.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/log.h"
#include "libchempi/didl/locality/locality.h"

static const struct {
    const char *name;
    hwloc_obj_type_t type;
} kinds[CHEMPI_LOCALITY_LEVELS] = {
    {"Package", HWLOC_OBJ_PACKAGE},   {"Die", HWLOC_OBJ_DIE},
    {"NUMANode", HWLOC_OBJ_NUMANODE}, {"L3Cache", HWLOC_OBJ_L3CACHE},
    {"L2Cache", HWLOC_OBJ_L2CACHE},   {"L1Cache", HWLOC_OBJ_L1CACHE},
    {"Core", HWLOC_OBJ_CORE},         {"PU", HWLOC_OBJ_PU},
};

/* What we call; all of hwloc 2's stable interface. */
struct calls {
    int (*init)(hwloc_topology_t *topology);
    int (*load)(hwloc_topology_t topology);
    void (*destroy)(hwloc_topology_t topology);
    int (*depth)(hwloc_topology_t topology, hwloc_obj_type_t type);
    unsigned (*count)(hwloc_topology_t topology, int depth);
    hwloc_obj_t (*object)(hwloc_topology_t topology, int depth, unsigned i);
    int (*binding)(hwloc_topology_t topology, hwloc_bitmap_t set, int flags);
    hwloc_bitmap_t (*bitmap)(void);
    void (*bitmap_free)(hwloc_bitmap_t set);
    int (*is_included)(hwloc_const_bitmap_t sub, hwloc_const_bitmap_t super);
};

/* Guarded by `lock`. topology: NULL before the first question, and for ever
 * where hwloc fails. */
static struct {
    pthread_mutex_t lock;
    bool is_asked;
    void *lib;
    struct calls calls;
    hwloc_topology_t topology;
} machine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find(void *lib, const char *name, void *call)
{
    void *address = dlsym(lib, name);

    memcpy(call, &address, sizeof(address)); /* POSIX: of the same size */
    return address != NULL;
}

static bool find_all(void *lib, struct calls *c)
{
    return find(lib, "hwloc_topology_init", &c->init) &&
           find(lib, "hwloc_topology_load", &c->load) &&
           find(lib, "hwloc_topology_destroy", &c->destroy) &&
           find(lib, "hwloc_get_type_depth", &c->depth) &&
           find(lib, "hwloc_get_nbobjs_by_depth", &c->count) &&
           find(lib, "hwloc_get_obj_by_depth", &c->object) &&
           find(lib, "hwloc_get_cpubind", &c->binding) &&
           find(lib, "hwloc_bitmap_alloc", &c->bitmap) &&
           find(lib, "hwloc_bitmap_free", &c->bitmap_free) &&
           find(lib, "hwloc_bitmap_isincluded", &c->is_included);
}

static void look_at(const struct calls *c, hwloc_topology_t topology,
                    hwloc_const_bitmap_t bound, int kind,
                    struct chempi_locality_level *level)
{
    int depth = c->depth(topology, kinds[kind].type);

    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE)
        return;
    level->count = c->count(topology, depth);
    for (uint32_t i = 0; i < level->count; i++) {
        hwloc_obj_t object = c->object(topology, depth, i);

        if (object && object->cpuset && c->is_included(bound, object->cpuset)) {
            level->instance = (int32_t)i;
            return;
        }
    }
}

static void load_locked(void)
{
    const struct calls *c = &machine.calls;

    machine.is_asked = true;
    machine.lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (!machine.lib) {
        chempi_log(CHEMPI_LOG_INFO, "place", "no hardware is known: %s",
                   dlerror());
        return;
    }
    if (!find_all(machine.lib, &machine.calls) || c->init(&machine.topology))
        return;
    if (c->load(machine.topology) == 0)
        return;
    c->destroy(machine.topology);
    machine.topology = NULL;
}

static void look_locked(struct chempi_locality_level *levels)
{
    const struct calls *c = &machine.calls;
    hwloc_bitmap_t bound = c->bitmap();

    if (bound &&
        c->binding(machine.topology, bound, HWLOC_CPUBIND_PROCESS) == 0)
        for (int kind = 0; kind < CHEMPI_LOCALITY_LEVELS; kind++)
            look_at(c, machine.topology, bound, kind, &levels[kind]);
    c->bitmap_free(bound);
}

void chempi_locality_hardware(struct chempi_locality_level *levels)
{
    for (int kind = 0; kind < CHEMPI_LOCALITY_LEVELS; kind++)
        levels[kind] = (struct chempi_locality_level){
            .name = kinds[kind].name, .instance = CHEMPI_LOCALITY_ALL};
    (void)pthread_mutex_lock(&machine.lock);
    if (!machine.is_asked)
        load_locked();
    if (machine.topology)
        look_locked(levels);
    (void)pthread_mutex_unlock(&machine.lock);
}

void chempi_locality_forget_hardware(void)
{
    (void)pthread_mutex_lock(&machine.lock);
    if (machine.topology)
        machine.calls.destroy(machine.topology);
    if (machine.lib)
        (void)dlclose(machine.lib);
    machine.topology = NULL;
    machine.lib = NULL;
    machine.is_asked = false;
    (void)pthread_mutex_unlock(&machine.lock);
}
