/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of datatypes (MPI 5.0, section 7.7.4). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/attr.h"
#include "libchempi/didl/datatype/datatype.h"

static struct chempi_attr_place type_place(struct chempi_datatype *type)
{
    return (struct chempi_attr_place){.kind = CHEMPI_ATTR_TYPE,
                                      .handle = type->handle,
                                      .attrs = &type->attrs};
}

int chempi_attr_set_type(struct chempi_datatype *type, int keyval, void *value)
{
    return chempi_attr_set(type_place(type), keyval, value);
}

int chempi_attr_get_type(struct chempi_datatype *type, int keyval, void *value,
                         int *flag)
{
    return chempi_attr_get(type_place(type), keyval, (void **)value, flag);
}

int chempi_attr_delete_type(struct chempi_datatype *type, int keyval)
{
    return chempi_attr_delete(type_place(type), keyval);
}

int chempi_attr_copy_type(struct chempi_datatype *from,
                          struct chempi_datatype *to)
{
    return chempi_attr_copy_all(type_place(from), type_place(to));
}

int chempi_attr_clear_type(struct chempi_datatype *type)
{
    return chempi_attr_delete_all(type_place(type));
}
