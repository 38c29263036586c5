/* SPDX-License-Identifier: BSD-3-Clause */
/* Services for devices; see host.h. */
#define _GNU_SOURCE /* fstat */
#include "libchempi/devices/host.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"

static int open_table(struct chempi_host *host, int fd, struct chempi_err *err)
{
    struct stat st;
    int rc;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) != 0) {
        rc = chempi_err_set(err, -errno, "connection table: %s",
                            chempi_err_name(errno));
        (void)close(fd);
        return rc;
    }
    host->table_len = (size_t)st.st_size;
    /* Private: sealed files refuse to be mapped shared before Linux 6.7. */
    host->table_data =
        chempi_sys->mmap(NULL, host->table_len, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd); /* the mapping stays */
    if (host->table_data == MAP_FAILED) {
        host->table_data = NULL;
        return chempi_err_set(err, -errno, "connection table: %s",
                              chempi_err_name(errno));
    }
    return chempi_table_open(host->table_data, host->table_len, &host->table,
                             err);
}

int chempi_host_open(struct chempi_host *host, const struct chempi_job *job,
                     struct chempi_services *services, struct chempi_err *err)
{
    struct chempi_services *s = services;
    int rc;

    *s = (struct chempi_services){
        .job_id = job->id,
        .secret = job->secret,
        .rank_key = job->is_secure ? job->rank_key : NULL,
        .proc = job->rank,
        .proc_count = job->size + job->gateways,
        .rank_count = job->size,
        .node = job->node,
        .node_count = job->node_count,
        .local_rank = job->local_rank,
        .local_size = job->local_size,
        .node_of_proc = job->node_of_rank,
        .local_rank_of_proc = job->local_rank_of_rank,
        .node_names = job->node_names,
        .wake_fds = job->wake_fds,
    };
    rc = open_table(host, job->table_fd, err);
    if (rc) {
        if (job->region_fd >= 0)
            (void)close(job->region_fd); /* else the region closes it */
        return rc;
    }
    s->table = host->table;
    rc = chempi_region_open(job->region_fd, job->local_size, &s->region, err);
    if (rc)
        return rc;
    s->wakes = chempi_region_wakes(s->region);
    s->is_wake_registered =
        !chempi_region_is_fenced(s->region) && chempi_wake_register();
    rc = chempi_pollset_create(&s->pollset);
    if (rc)
        return chempi_err_set(err, rc, "epoll: %s", chempi_err_name(rc));
    rc = chempi_memory_create(job->memory_share, &s->memory);
    return rc ? chempi_err_set(err, rc, "out of memory") : 0;
}

void chempi_host_open_foreign(const struct chempi_services *own,
                              const struct chempi_bonds *bonds,
                              struct chempi_services *out)
{
    *out = *own;
    out->secret = NULL;
    out->rank_key = NULL;
    out->node_of_proc = NULL;
    out->local_rank_of_proc = NULL;
    out->table = NULL;
    out->bonds = bonds;
}

void chempi_host_close(struct chempi_host *host,
                       struct chempi_services *services)
{
    chempi_memory_destroy(services->memory);
    services->memory = NULL;
    chempi_pollset_destroy(services->pollset);
    services->pollset = NULL;
    chempi_region_close(services->region);
    services->region = NULL;
    services->wakes = NULL;
    chempi_table_close(host->table);
    services->table = NULL;
    if (host->table_data)
        (void)chempi_sys->munmap(host->table_data, host->table_len);
    *host = (struct chempi_host){0};
}

int chempi_host_card_key(const struct chempi_dev *dev,
                         char key[CHEMPI_KVS_KEY_MAX])
{
    int n = snprintf(key, CHEMPI_KVS_KEY_MAX, "card.%s", dev->ops->name);

    return n > 0 && n < CHEMPI_KVS_KEY_MAX ? 0 : -ENAMETOOLONG;
}
