/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers of communicators (MPI 5.0, section 9.3.1). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/comm/comm.h"

int chempi_errhandler_set_comm(struct chempi_comm *comm,
                               struct chempi_errhandler *eh)
{
    if (!chempi_errhandler_is_for(eh, CHEMPI_ERRHANDLER_COMM))
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the error handler was made for another kind "
                                "of object than communicators");
    chempi_errhandler_put(&comm->errhandler, eh);
    return MPI_SUCCESS;
}

int chempi_errhandler_get_comm(struct chempi_comm *comm,
                               MPI_Errhandler *errhandler)
{
    /* The reference is the user's, to be freed by MPI_Errhandler_free. */
    *errhandler = chempi_errhandler_get(&comm->errhandler)->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_call_comm(struct chempi_comm *comm, int errorcode)
{
    int errclass;
    int rc = chempi_error_class(errorcode, &errclass);

    if (rc)
        return rc;
    (void)chempi_error_set(errorcode, "the program raised it");
    (void)chempi_error_raise(comm, errorcode, "MPI_Comm_call_errhandler");
    return MPI_SUCCESS;
}
