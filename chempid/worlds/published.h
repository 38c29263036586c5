/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that ranks have published (MPI_Publish_name): a service, the port
 * where it is found, and who has published it.
 *
 *   -   a service has one port at a time
 *   -   at most CHEMPI_ROOT_NAMES_MAX of them
 *   -   what ends takes its names along
 */
#ifndef CHEMPI_CHEMPID_PUBLISHED_H
#define CHEMPI_CHEMPID_PUBLISHED_H

#include <stdint.h>

struct chempi_published_name {
    uint32_t world;
    uint32_t rank;
    char *service; /* both are one piece of memory, the service's */
    char *port;
};

struct chempi_published { /* all zero: empty */
    struct chempi_published_name *items;
    uint32_t count;
    uint32_t room;
};

void chempi_published_fini(struct chempi_published *names);

/* 0; -EEXIST: it is there, -ENOBUFS: there are too many, -ENOMEM. */
int chempi_published_publish(struct chempi_published *names, uint32_t world,
                             uint32_t rank, const char *service,
                             const char *port);
/* 0; -ENOENT: it is not there, with that port; -EPERM: it is another world's.
 */
int chempi_published_unpublish(struct chempi_published *names, uint32_t world,
                               const char *service, const char *port);
/* Its port, until the next change; NULL: nobody has published it. */
const char *chempi_published_find(const struct chempi_published *names,
                                  const char *service);

/* The rank, or the whole world, is no more. */
void chempi_published_drop_rank(struct chempi_published *names, uint32_t world,
                                uint32_t rank);
void chempi_published_drop_world(struct chempi_published *names,
                                 uint32_t world);

#endif
