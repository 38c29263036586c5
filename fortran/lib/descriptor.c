/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies, by hand, of what only Fortran has and takes descriptors. Compiled
 * twice, see binding.h. */
#include <ISO_Fortran_binding.h>

#include "fortran/lib/binding.h"

CHEMPI_BODY(void, F(sizeof_f08ts_), (CFI_cdesc_t * x, int *size, int *ierror))
{
    *size = (int)x->elem_len;
    if (ierror)
        *ierror = MPI_SUCCESS;
}
CHEMPI_ALSO_NAMED(void, F(sizeof_fts_), CHEMPI_TEXT_OF(F(sizeof_f08ts_)),
                  (CFI_cdesc_t *, int *, int *));

/* A call that the compiler cannot look into: that is its use. */
CHEMPI_BODY(void, F(f_sync_reg_), (void *buf))
{
    (void)buf;
}

CHEMPI_BODY(void, F(f_sync_reg_f08ts_), (CFI_cdesc_t * buf))
{
    (void)buf;
}
CHEMPI_ALSO_NAMED(void, F(f_sync_reg_fts_),
                  CHEMPI_TEXT_OF(F(f_sync_reg_f08ts_)), (CFI_cdesc_t *));
