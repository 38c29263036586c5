/* SPDX-License-Identifier: BSD-3-Clause */
/* Published names; see published.h. */
#include "chempid/worlds/published.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/control/dynamic.h"

/* A port is a secret. */
static void forget(struct chempi_published_name *item)
{
    sodium_memzero(item->port, strlen(item->port));
    free(item->service);
}

static void take_out(struct chempi_published *names, uint32_t at)
{
    forget(&names->items[at]);
    names->items[at] = names->items[--names->count];
}

void chempi_published_fini(struct chempi_published *names)
{
    while (names->count)
        take_out(names, names->count - 1);
    free(names->items);
    *names = (struct chempi_published){0};
}

static struct chempi_published_name *find(const struct chempi_published *names,
                                          const char *service)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].service, service) == 0)
            return &names->items[i];
    return NULL;
}

const char *chempi_published_find(const struct chempi_published *names,
                                  const char *service)
{
    const struct chempi_published_name *item = find(names, service);

    return item ? item->port : NULL;
}

int chempi_published_publish(struct chempi_published *names, uint32_t world,
                             uint32_t rank, const char *service,
                             const char *port)
{
    const size_t service_len = strlen(service) + 1;
    const size_t port_len = strlen(port) + 1;
    char *text;

    if (find(names, service))
        return -EEXIST;
    if (names->count >= CHEMPI_ROOT_NAMES_MAX)
        return -ENOBUFS;
    if (!CHEMPI_ARRAY_FIT(names->items, names->room, names->count + 1))
        return -ENOMEM;
    text = chempi_sys->malloc(service_len + port_len);
    if (!text)
        return -ENOMEM;
    memcpy(text, service, service_len);
    memcpy(text + service_len, port, port_len);
    names->items[names->count++] =
        (struct chempi_published_name){.world = world,
                                       .rank = rank,
                                       .service = text,
                                       .port = text + service_len};
    return 0;
}

int chempi_published_unpublish(struct chempi_published *names, uint32_t world,
                               const char *service, const char *port)
{
    struct chempi_published_name *item = find(names, service);

    if (!item || strcmp(item->port, port) != 0)
        return -ENOENT;
    if (item->world != world)
        return -EPERM;
    take_out(names, (uint32_t)(item - names->items));
    return 0;
}

static void drop(struct chempi_published *names, uint32_t world, bool is_one,
                 uint32_t rank)
{
    for (uint32_t i = names->count; i-- > 0;)
        if (names->items[i].world == world &&
            (!is_one || names->items[i].rank == rank))
            take_out(names, i);
}

void chempi_published_drop_rank(struct chempi_published *names, uint32_t world,
                                uint32_t rank)
{
    drop(names, world, true, rank);
}

void chempi_published_drop_world(struct chempi_published *names, uint32_t world)
{
    drop(names, world, false, 0);
}
