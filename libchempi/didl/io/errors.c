/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers of files (MPI 5.0, sections 9.3 and 14.7). A new file has the
 * one of MPI_FILE_NULL, which is MPI_ERRORS_RETURN at first and hears of errors
 * that belong to no open file.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/task/worker.h"

void chempi_io_describe(struct chempi_object *object,
                        struct chempi_error_subject *out)
{
    struct chempi_file *file =
        CHEMPI_CONTAINER_OF(object, struct chempi_file, obj);

    out->errhandler = &file->errhandler;
    out->handle = file == &chempi_file_null || file->is_closed
                      ? (void *)MPI_FILE_NULL
                      : (void *)file;
    out->name = "a file";
}

int chempi_errhandler_set_file(struct chempi_file *file,
                               struct chempi_errhandler *eh)
{
    if (!chempi_errhandler_is_for(eh, CHEMPI_ERRHANDLER_FILE))
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the error handler was made for another kind "
                                "of object than files");
    chempi_errhandler_put(&file->errhandler, eh);
    return MPI_SUCCESS;
}

int chempi_errhandler_get_file(struct chempi_file *file,
                               MPI_Errhandler *errhandler)
{
    /* The reference is the user's, to be freed by MPI_Errhandler_free. */
    *errhandler = chempi_errhandler_get(&file->errhandler)->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_call_file(struct chempi_file *file, int errorcode)
{
    int errclass;
    int rc = chempi_error_class(errorcode, &errclass);

    if (rc)
        return rc;
    (void)chempi_error_set(errorcode, "the program raised it");
    chempi_error_blame(&file->obj);
    (void)chempi_error_raise(NULL, errorcode, "MPI_File_call_errhandler");
    return MPI_SUCCESS;
}
