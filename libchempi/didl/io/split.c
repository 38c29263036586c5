/* SPDX-License-Identifier: BSD-3-Clause */
/* Split collective calls (MPI 5.0, section 14.4.5). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/io/op.h"

int chempi_io_read_at_all_begin(struct chempi_file *fh, MPI_Offset offset,
                                void *buf, MPI_Count count,
                                struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .is_collective = true,
                               .offset = offset,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_read_at_all_end(struct chempi_file *fh, void *buf,
                              MPI_Status *status)
{
    return chempi_io_end(fh, buf, false, status);
}

int chempi_io_read_all_begin(struct chempi_file *fh, void *buf, MPI_Count count,
                             struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .is_collective = true,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_read_all_end(struct chempi_file *fh, void *buf,
                           MPI_Status *status)
{
    return chempi_io_end(fh, buf, false, status);
}

int chempi_io_read_ordered_begin(struct chempi_file *fh, void *buf,
                                 MPI_Count count,
                                 struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .is_collective = true,
                               .buf = buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_read_ordered_end(struct chempi_file *fh, void *buf,
                               MPI_Status *status)
{
    return chempi_io_end(fh, buf, false, status);
}

int chempi_io_write_at_all_begin(struct chempi_file *fh, MPI_Offset offset,
                                 const void *buf, MPI_Count count,
                                 struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_AT,
                               .is_write = true,
                               .is_collective = true,
                               .offset = offset,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_write_at_all_end(struct chempi_file *fh, const void *buf,
                               MPI_Status *status)
{
    return chempi_io_end(fh, buf, true, status);
}

int chempi_io_write_all_begin(struct chempi_file *fh, const void *buf,
                              MPI_Count count, struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_INDIVIDUAL,
                               .is_write = true,
                               .is_collective = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_write_all_end(struct chempi_file *fh, const void *buf,
                            MPI_Status *status)
{
    return chempi_io_end(fh, buf, true, status);
}

int chempi_io_write_ordered_begin(struct chempi_file *fh, const void *buf,
                                  MPI_Count count,
                                  struct chempi_datatype *datatype)
{
    struct chempi_io_call c = {.file = fh,
                               .place = CHEMPI_IO_SHARED,
                               .is_write = true,
                               .is_collective = true,
                               .buf = (void *)(uintptr_t)buf,
                               .count = count,
                               .type = datatype};

    return chempi_io_begin(&c);
}

int chempi_io_write_ordered_end(struct chempi_file *fh, const void *buf,
                                MPI_Status *status)
{
    return chempi_io_end(fh, buf, true, status);
}
