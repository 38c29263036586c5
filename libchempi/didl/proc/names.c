/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ports (MPI 5.0, section 11.9.4), which the root of the job keeps
 * until they are withdrawn or whoever has published them has finalized.
 */
#include <stdio.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/proc/root.h"

_Static_assert(CHEMPI_PORT_NAME_MAX == MPI_MAX_PORT_NAME,
               "answers have room for the names of ports");

/* Is there a name, which fits? Else this class. */
static int check(const char *name, const char *of, size_t room, int class)
{
    const size_t len = strlen(name);

    if (len > 0 && len < room)
        return MPI_SUCCESS;
    return chempi_error_set(class,
                            "the name of a %s has 1 to %zu bytes, not %zu", of,
                            room - 1, len);
}

/* port: what is told besides; NULL: nothing. */
static int ask(enum chempi_root_request what, const char *service,
               const char *port, char *found)
{
    uint8_t blob[CHEMPI_SERVICE_NAME_MAX + CHEMPI_PORT_NAME_MAX + 16];
    char words[CHEMPI_SERVICE_NAME_MAX + 16];
    struct chempi_root_question q;
    struct chempi_writer w;
    int tries = 0;
    int rc = check(service, "service", CHEMPI_SERVICE_NAME_MAX, MPI_ERR_ARG);

    if (!rc && port)
        rc = check(port, "port", CHEMPI_PORT_NAME_MAX, MPI_ERR_PORT);
    if (rc)
        return rc;
    chempi_wire_fix(&w, blob, sizeof(blob));
    chempi_wire_put_str(&w, service);
    if (port)
        chempi_wire_put_str(&w, port);
    (void)snprintf(words, sizeof(words), "service '%s'", service);
    do {
        rc = chempi_root_ask(&q, what, w.data, w.len);
        if (rc)
            return rc;
        rc = chempi_root_await(&q, words);
        chempi_root_forget(&q);
    } while (q.is_lost && ++tries < 2);
    if (!rc && found)
        memcpy(found, q.text, strlen(q.text) + 1);
    return rc;
}

int chempi_names_publish(const char *service_name, struct chempi_info *info,
                         const char *port_name)
{
    (void)info; /* no keys are known */
    return ask(CHEMPI_ROOT_PUBLISH, service_name, port_name, NULL);
}

int chempi_names_unpublish(const char *service_name, struct chempi_info *info,
                           const char *port_name)
{
    (void)info;
    return ask(CHEMPI_ROOT_UNPUBLISH, service_name, port_name, NULL);
}

int chempi_names_lookup(const char *service_name, struct chempi_info *info,
                        char *port_name)
{
    (void)info;
    return ask(CHEMPI_ROOT_LOOKUP, service_name, NULL, port_name);
}
