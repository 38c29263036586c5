/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of communicators (MPI 5.0, section 7.7.2). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/attr.h"
#include "libchempi/didl/comm/comm.h"

static struct chempi_attr_place comm_place(struct chempi_comm *comm)
{
    return (struct chempi_attr_place){.kind = CHEMPI_ATTR_COMM,
                                      .handle = comm->handle,
                                      .attrs = &comm->attrs};
}

int chempi_attr_set_comm(struct chempi_comm *comm, int keyval, void *value)
{
    return chempi_attr_set(comm_place(comm), keyval, value);
}

int chempi_attr_get_comm(struct chempi_comm *comm, int keyval, void *value,
                         int *flag)
{
    return chempi_attr_get(comm_place(comm), keyval, (void **)value, flag);
}

int chempi_attr_delete_comm(struct chempi_comm *comm, int keyval)
{
    return chempi_attr_delete(comm_place(comm), keyval);
}

int chempi_attr_copy_comm(struct chempi_comm *from, struct chempi_comm *to)
{
    return chempi_attr_copy_all(comm_place(from), comm_place(to));
}

int chempi_attr_clear_comm(struct chempi_comm *comm)
{
    return chempi_attr_delete_all(comm_place(comm));
}
