/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-topology: prints the cores that this process may use, one a line:
 * the number of the socket, then the processors, "0 0,1". A program of its
 * own, so that launcher and daemon need not load hwloc: only jobs that ask
 * for binding pay for its discovery.
 */
#include <hwloc.h>
#include <stdio.h>

/* Of a core there may be nothing that it may use. */
static int print_core(hwloc_topology_t topology, hwloc_obj_t core,
                      hwloc_const_bitmap_t allowed)
{
    hwloc_obj_t socket =
        hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
    int count = 0;
    int cpu;

    if (!hwloc_bitmap_intersects(core->cpuset, allowed))
        return 0;
    if (printf("%u ", socket ? socket->logical_index : 0) < 0)
        return -1;
    for (cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(core->cpuset, cpu))
        if (hwloc_bitmap_isset(allowed, (unsigned)cpu) &&
            printf("%s%d", count++ ? "," : "", cpu) < 0)
            return -1;
    return printf("\n") < 0 ? -1 : 0;
}

/* What print_core needs, and no devices. */
static int load(hwloc_topology_t *topology)
{
    if (hwloc_topology_init(topology))
        return -1;
    if (hwloc_topology_set_all_types_filter(*topology,
                                            HWLOC_TYPE_FILTER_KEEP_NONE) ||
        hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE,
                                       HWLOC_TYPE_FILTER_KEEP_ALL) ||
        hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PACKAGE,
                                       HWLOC_TYPE_FILTER_KEEP_ALL) ||
        hwloc_topology_load(*topology)) {
        hwloc_topology_destroy(*topology);
        return -1;
    }
    return 0;
}

/* What whoever has started it left to this process (taskset, a batch system),
 * which is less than what the machine has; NULL: no memory. */
static hwloc_bitmap_t find_allowed(hwloc_topology_t topology)
{
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();

    if (allowed &&
        hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_fill(allowed); /* it is not told here */
    return allowed;
}

int main(void)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t allowed;
    hwloc_obj_t core = NULL;
    int rc = 0;

    if (load(&topology)) {
        (void)fprintf(stderr, "chempi-topology: hwloc finds no topology\n");
        return 1;
    }
    allowed = find_allowed(topology);
    rc = allowed ? 0 : -1;
    while (!rc &&
           (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
        rc = print_core(topology, core, allowed);
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
    return rc || fflush(stdout) ? 1 : 0;
}
