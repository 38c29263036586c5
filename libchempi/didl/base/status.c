/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing MPI_Status (MPI 5.0, sections 3.2.5, 3.8.4, 13.3). */
#include "libchempi/didl/base/status.h"

#include "libchempi/api/api_impl.h"

int chempi_status_get_error(const MPI_Status *status, int *error)
{
    *error = status->MPI_ERROR;
    return MPI_SUCCESS;
}

int chempi_status_get_source(const MPI_Status *status, int *source)
{
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int chempi_status_get_tag(const MPI_Status *status, int *tag)
{
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

int chempi_status_set_error(MPI_Status *status, int error)
{
    status->MPI_ERROR = error;
    return MPI_SUCCESS;
}

int chempi_status_set_source(MPI_Status *status, int source)
{
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

int chempi_status_set_tag(MPI_Status *status, int tag)
{
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}

int chempi_status_set_cancelled(MPI_Status *status, int flag)
{
    status->MPI_internal[2] = flag != 0;
    return MPI_SUCCESS;
}

int chempi_status_test_cancelled(const MPI_Status *status, int *flag)
{
    *flag = chempi_status_is_cancelled(status);
    return MPI_SUCCESS;
}
