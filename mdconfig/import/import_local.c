/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine: its name, its cores (hwloc), its interfaces that are up. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <hwloc.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "mdconfig/import/import.h"

#define ARP_INFINIBAND 32 /* in /sys/class/net/NAME/type */
#define SLOTS_MAX 65535u

/* Cores this process may use; 0 when hwloc cannot say. */
static uint32_t count_cores(void)
{
    hwloc_topology_t topology;
    int count = 0;

    if (hwloc_topology_init(&topology) != 0)
        return 0;
    if (hwloc_topology_load(topology) == 0)
        count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    hwloc_topology_destroy(topology);
    if (count < 0)
        return 0;
    return (uint32_t)count < SLOTS_MAX ? (uint32_t)count : SLOTS_MAX;
}

/* A number that the kernel tells about an interface; -1: it does not. */
static long read_number(const char *interface, const char *what)
{
    char path[128];
    long value = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/sys/class/net/%.32s/%s", interface,
                   what);
    file = fopen(path, "r");
    if (!file)
        return -1;
    if (fscanf(file, "%ld", &value) != 1)
        value = -1;
    (void)fclose(file); /* only read */
    return value;
}

/* The address in words; false for those that lead nowhere else. */
static bool put_address(const struct sockaddr *sa, int family, char *buf,
                        socklen_t len)
{
    if (!sa || sa->sa_family != family)
        return false;
    if (family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, sa, sizeof(in));
        return inet_ntop(AF_INET, &in.sin_addr, buf, len) != NULL;
    } else {
        struct sockaddr_in6 in6;

        memcpy(&in6, sa, sizeof(in6));
        return !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) &&
               inet_ntop(AF_INET6, &in6.sin6_addr, buf, len) != NULL;
    }
}

/* The network behind an interface: the first is "lan", others have the
 * interface's name. */
static uint32_t network_of(struct chempi_import *im, const char *interface)
{
    bool infiniband = read_number(interface, "type") == ARP_INFINIBAND;
    long mbit = read_number(interface, "speed");
    char remark[96] = "check: who else is on it?";

    if (mbit > 0)
        (void)snprintf(remark, sizeof(remark),
                       "check: who else is on it? Its links have %ld Mbit/s",
                       mbit);
    return chempi_import_network(
        im, im->network_count ? interface : "lan",
        infiniband ? "infiniband" : chempi_import_guess_type(interface),
        remark);
}

/* Without labels such as eth0:1, which are no interfaces but further addresses
 * of one. */
static void add_interfaces(struct chempi_import *im, uint32_t node,
                           const struct ifaddrs *list, int family,
                           struct chempi_names *done)
{
    char address[64];

    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK) ||
            !chempi_import_is_name(i->ifa_name, strlen(i->ifa_name)) ||
            chempi_names_find(done, i->ifa_name) != CHEMPI_NAMES_NONE ||
            !put_address(i->ifa_addr, family, address, sizeof(address)))
            continue;
        chempi_names_add(done, chempi_arena_text(&im->arena, i->ifa_name), 0);
        chempi_import_attach(im, network_of(im, i->ifa_name), node, address,
                             i->ifa_name);
    }
}

int chempi_import_local(struct chempi_import *import, struct chempi_err *err)
{
    struct chempi_names done = {.count = 0};
    struct ifaddrs *list;
    char name[64] = "";
    uint32_t node;

    if (gethostname(name, sizeof(name) - 1) != 0)
        return chempi_err_set(err, -errno, "the name of this host: %s",
                              strerror(errno));
    name[strcspn(name, ".")] = '\0';
    if (!chempi_import_is_name(name, strlen(name)))
        return chempi_err_set(err, -EINVAL,
                              "expected a host name of letters, digits, "
                              "hyphens and underscores, found '%s'",
                              name);
    if (getifaddrs(&list) != 0)
        return chempi_err_set(err, -errno, "the interfaces of this host: %s",
                              strerror(errno));
    node = chempi_import_node(import, name);
    import->nodes[node].slots = count_cores();
    add_interfaces(import, node, list, AF_INET, &done);
    add_interfaces(import, node, list, AF_INET6, &done);
    freeifaddrs(list);
    chempi_names_fini(&done);
    return 0;
}
