/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process that opens devices hands them: services, made from what the
 * supervisor told of the job. Ranks (didl) and gateways are such processes.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_HOST_H
#define CHEMPI_LIBCHEMPI_DEVICES_HOST_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/control/client.h"
#include "libchempi/ddi.h"

/* What lies behind the services. */
struct chempi_host {
    struct chempi_table *table;
    void *table_data;
    size_t table_len; /* bytes */
};

/*
 * Fill *services for this process of the job; takes the job's descriptor of
 * the table. 0 or -errno with words; what was made before a failure stays, for
 * chempi_host_close(). Both are zero before.
 */
int chempi_host_open(struct chempi_host *host, const struct chempi_job *job,
                     struct chempi_services *services, struct chempi_err *err);

/*
 * What a device is handed that reaches processes of other worlds (bond.h):
 * `own` without the job's secrets, and without what is said of its processes
 * by index. All of it is borrowed until the device is closed.
 */
void chempi_host_open_foreign(const struct chempi_services *own,
                              const struct chempi_bonds *bonds,
                              struct chempi_services *out);

/* After all devices are closed. */
void chempi_host_close(struct chempi_host *host,
                       struct chempi_services *services);

/* The key under which a device's card is published. 0 or -ENAMETOOLONG. */
int chempi_host_card_key(const struct chempi_dev *dev,
                         char key[CHEMPI_KVS_KEY_MAX]);

#endif
