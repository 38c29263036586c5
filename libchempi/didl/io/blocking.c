/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking calls that read and write (MPI 5.0, section 14.4). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/io/op.h"

int chempi_io_read_at(struct chempi_file *fh, MPI_Offset offset, void *buf,
                      MPI_Count count, struct chempi_datatype *datatype,
                      MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .offset = offset,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_read(struct chempi_file *fh, void *buf, MPI_Count count,
                   struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_read_shared(struct chempi_file *fh, void *buf, MPI_Count count,
                          struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_read_at_all(struct chempi_file *fh, MPI_Offset offset, void *buf,
                          MPI_Count count, struct chempi_datatype *datatype,
                          MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .is_collective = true,
                               .offset = offset,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_read_all(struct chempi_file *fh, void *buf, MPI_Count count,
                       struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .is_collective = true,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_read_ordered(struct chempi_file *fh, void *buf, MPI_Count count,
                           struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .is_collective = true,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write_at(struct chempi_file *fh, MPI_Offset offset,
                       const void *buf, MPI_Count count,
                       struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .is_write = true,
                               .offset = offset,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write(struct chempi_file *fh, const void *buf, MPI_Count count,
                    struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .is_write = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write_shared(struct chempi_file *fh, const void *buf,
                           MPI_Count count, struct chempi_datatype *datatype,
                           MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .is_write = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write_at_all(struct chempi_file *fh, MPI_Offset offset,
                           const void *buf, MPI_Count count,
                           struct chempi_datatype *datatype, MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .is_write = true,
                               .is_collective = true,
                               .offset = offset,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write_all(struct chempi_file *fh, const void *buf,
                        MPI_Count count, struct chempi_datatype *datatype,
                        MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .is_write = true,
                               .is_collective = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}

int chempi_io_write_ordered(struct chempi_file *fh, const void *buf,
                            MPI_Count count, struct chempi_datatype *datatype,
                            MPI_Status *status)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .is_write = true,
                               .is_collective = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_do(&c, status);
}
