/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies, by hand, of procedures that take procedures or attributes. Compiled
 * twice, see binding.h. */
#include "fortran/lib/binding.h"
#include "fortran/lib/callback/attribute.h"
#include "fortran/lib/callback/callback.h"
#include "fortran/lib/callback/procedures.h"
#include "fortran/lib/text.h"

#define NOBODY(name) ((struct chempi_caller){name, CHEMPI_BLAME_NOBODY, NULL})

static void give(int *ierror, int rc)
{
    if (ierror)
        *ierror = rc;
}

static int no_memory(const char *name)
{
    return chempi_error_raise(&NOBODY(name), MPI_ERR_NO_MEM,
                              "no memory to note a Fortran procedure");
}

/* ---- operations and error handlers ---- */

CHEMPI_BODY(void, F(op_create_),
            (chempi_procedure * user_fn, int *commute, int *op, int *ierror))
{
    int rc = MPI_SUCCESS;
    int i = chempi_callback_find(CHEMPI_CALLBACK_OP, user_fn,
                                 &NOBODY(CHEMPI_NAME(Op_create)), &rc);
    MPI_Op made = MPI_OP_NULL;

    if (i >= 0)
        rc = C(Op_create)(chempi_trampoline_op[i], chempi_in_logical(*commute),
                          &made);
    if (!rc)
        *op = chempi_out_op(made);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(op_create_f08_), CHEMPI_TEXT_OF(F(op_create_)),
                  (chempi_procedure *, int *, int *, int *));

CHEMPI_BODY(void, F(op_create_c_f08_),
            (chempi_procedure * user_fn, int *commute, int *op, int *ierror))
{
    int rc = MPI_SUCCESS;
    int i = chempi_callback_find(CHEMPI_CALLBACK_OP_C, user_fn,
                                 &NOBODY(CHEMPI_NAME(Op_create_c)), &rc);
    MPI_Op made = MPI_OP_NULL;

    if (i >= 0)
        rc = C(Op_create_c)(chempi_trampoline_op_c[i],
                            chempi_in_logical(*commute), &made);
    if (!rc)
        *op = chempi_out_op(made);
    give(ierror, rc);
}

#define CREATE_ERRHANDLER(kind, KIND, Kind)                                    \
    CHEMPI_BODY(void, F(kind##_create_errhandler_),                            \
                (chempi_procedure * fn, int *errhandler, int *ierror))         \
    {                                                                          \
        int rc = MPI_SUCCESS;                                                  \
        int i = chempi_callback_find(                                          \
            CHEMPI_CALLBACK_##KIND, fn,                                        \
            &NOBODY(CHEMPI_NAME(Kind##_create_errhandler)), &rc);              \
        MPI_Errhandler made = MPI_ERRHANDLER_NULL;                             \
                                                                               \
        if (i >= 0)                                                            \
            rc = C(Kind##_create_errhandler)(chempi_trampoline_##kind[i],      \
                                             &made);                           \
        if (!rc)                                                               \
            *errhandler = chempi_out_errhandler(made);                         \
        give(ierror, rc);                                                      \
    }                                                                          \
    CHEMPI_ALSO_NAMED(void, F(kind##_create_errhandler_f08_),                  \
                      CHEMPI_TEXT_OF(F(kind##_create_errhandler_)),            \
                      (chempi_procedure *, int *, int *))

CREATE_ERRHANDLER(comm, COMM, Comm);
CREATE_ERRHANDLER(win, WIN, Win);
CREATE_ERRHANDLER(file, FILE, File);
CREATE_ERRHANDLER(session, SESSION, Session);

/* ---- key values and attributes ---- */

#define ATTRIBUTES(kind, Kind, value_of)                                       \
    CHEMPI_BODY(void, F(kind##_create_keyval_),                                \
                (chempi_procedure * copy_fn, chempi_procedure * delete_fn,     \
                 int *keyval, MPI_Aint *extra_state, int *ierror))             \
    {                                                                          \
        struct chempi_keyval *k =                                              \
            chempi_attribute_keyval(copy_fn, delete_fn, *extra_state, false);  \
                                                                               \
        give(ierror, k ? C(Kind##_create_keyval)(chempi_attribute_copy_##kind, \
                                                 chempi_attribute_drop_##kind, \
                                                 keyval, k)                    \
                       : no_memory(CHEMPI_NAME(Kind##_create_keyval)));        \
    }                                                                          \
    CHEMPI_ALSO_NAMED(                                                         \
        void, F(kind##_create_keyval_f08_),                                    \
        CHEMPI_TEXT_OF(F(kind##_create_keyval_)),                              \
        (chempi_procedure *, chempi_procedure *, int *, MPI_Aint *, int *));   \
                                                                               \
    CHEMPI_BODY(void, F(kind##_set_attr_),                                     \
                (int *handle, int *keyval, MPI_Aint *value, int *ierror))      \
    {                                                                          \
        void *cell = chempi_attribute_hold(*value);                            \
        int rc = cell ? C(Kind##_set_attr)(chempi_in_##kind(*handle), *keyval, \
                                           cell)                               \
                      : no_memory(CHEMPI_NAME(Kind##_set_attr));               \
                                                                               \
        if (rc && cell)                                                        \
            chempi_attribute_release(cell);                                    \
        give(ierror, rc);                                                      \
    }                                                                          \
    CHEMPI_ALSO_NAMED(void, F(kind##_set_attr_f08_),                           \
                      CHEMPI_TEXT_OF(F(kind##_set_attr_)),                     \
                      (int *, int *, MPI_Aint *, int *));                      \
                                                                               \
    CHEMPI_BODY(                                                               \
        void, F(kind##_get_attr_),                                             \
        (int *handle, int *keyval, MPI_Aint *value, int *flag, int *ierror))   \
    {                                                                          \
        void *found = NULL;                                                    \
        int is_set = 0;                                                        \
        int rc = C(Kind##_get_attr)(chempi_in_##kind(*handle), *keyval,        \
                                    &found, &is_set);                          \
                                                                               \
        if (!rc && is_set)                                                     \
            *value = value_of;                                                 \
        if (!rc)                                                               \
            *flag = chempi_out_logical(is_set);                                \
        give(ierror, rc);                                                      \
    }                                                                          \
    CHEMPI_ALSO_NAMED(void, F(kind##_get_attr_f08_),                           \
                      CHEMPI_TEXT_OF(F(kind##_get_attr_)),                     \
                      (int *, int *, MPI_Aint *, int *, int *))

ATTRIBUTES(comm, Comm, chempi_attribute_value_comm(*keyval, found));
ATTRIBUTES(type, Type, chempi_attribute_value(found));
ATTRIBUTES(win, Win, chempi_attribute_value_win(*keyval, found));

/* The attributes of MPI-1, whose values are INTEGERs. */

CHEMPI_BODY(void, F(keyval_create_),
            (chempi_procedure * copy_fn, chempi_procedure *delete_fn,
             int *keyval, int *extra_state, int *ierror))
{
    struct chempi_keyval *k =
        chempi_attribute_keyval(copy_fn, delete_fn, *extra_state, true);

    give(ierror, k ? C(Keyval_create)(chempi_attribute_copy_comm,
                                      chempi_attribute_drop_comm, keyval, k)
                   : no_memory(CHEMPI_NAME(Keyval_create)));
}

CHEMPI_BODY(void, F(attr_put_),
            (int *comm, int *keyval, int *value, int *ierror))
{
    void *cell = chempi_attribute_hold(*value);
    int rc = cell ? C(Attr_put)(chempi_in_comm(*comm), *keyval, cell)
                  : no_memory(CHEMPI_NAME(Attr_put));

    if (rc && cell)
        chempi_attribute_release(cell);
    give(ierror, rc);
}

CHEMPI_BODY(void, F(attr_get_),
            (int *comm, int *keyval, int *value, int *flag, int *ierror))
{
    void *found = NULL;
    int is_set = 0;
    int rc = C(Attr_get)(chempi_in_comm(*comm), *keyval, &found, &is_set);

    if (!rc && is_set)
        *value = (int)chempi_attribute_value_comm(*keyval, found);
    if (!rc)
        *flag = chempi_out_logical(is_set);
    give(ierror, rc);
}

/* ---- generalized requests, data representations ---- */

CHEMPI_BODY(void, F(grequest_start_),
            (chempi_procedure * query_fn, chempi_procedure *free_fn,
             chempi_procedure *cancel_fn, MPI_Aint *extra_state, int *request,
             int *ierror))
{
    struct chempi_grequest *g =
        chempi_callback_grequest(query_fn, free_fn, cancel_fn, extra_state);
    MPI_Request made = MPI_REQUEST_NULL;
    int rc =
        g ? C(Grequest_start)(chempi_callback_query, chempi_callback_release,
                              chempi_callback_cancel, g, &made)
          : no_memory(CHEMPI_NAME(Grequest_start));

    if (!rc)
        *request = chempi_out_request(made);
    else
        free(g);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(grequest_start_f08_),
                  CHEMPI_TEXT_OF(F(grequest_start_)),
                  (chempi_procedure *, chempi_procedure *, chempi_procedure *,
                   MPI_Aint *, int *, int *));

#define REGISTER_DATAREP(body, Name, null, suffix)                             \
    CHEMPI_BODY(void, body,                                                    \
                (char *datarep, chempi_procedure *read_fn,                     \
                 chempi_procedure *write_fn, chempi_procedure *extent_fn,      \
                 MPI_Aint *extra_state, int *ierror, size_t datarep_len))      \
    {                                                                          \
        struct chempi_text name;                                               \
        struct chempi_datarep *d = chempi_callback_datarep(                    \
            read_fn, write_fn, extent_fn, *extra_state);                       \
        bool no_read = chempi_procedures_is_no_conversion(read_fn);            \
        bool no_write = chempi_procedures_is_no_conversion(write_fn);          \
        int rc;                                                                \
                                                                               \
        chempi_text_init(&name, datarep, datarep_len, false);                  \
        rc = d && name.chars                                                   \
                 ? C(Name)(name.chars,                                         \
                           no_read ? null : chempi_callback_read##suffix,      \
                           no_write ? null : chempi_callback_write##suffix,    \
                           chempi_callback_extent, d)                          \
                 : chempi_error_raise(                                         \
                       &(struct chempi_caller){CHEMPI_NAME(Name),              \
                                               CHEMPI_BLAME_FILE, NULL},       \
                       MPI_ERR_NO_MEM, "no memory to convert an argument");    \
        chempi_text_fini(&name);                                               \
        give(ierror, rc);                                                      \
    }

REGISTER_DATAREP(F(register_datarep_), Register_datarep,
                 MPI_CONVERSION_FN_NULL, )
CHEMPI_ALSO_NAMED(void, F(register_datarep_f08_),
                  CHEMPI_TEXT_OF(F(register_datarep_)),
                  (char *, chempi_procedure *, chempi_procedure *,
                   chempi_procedure *, MPI_Aint *, int *, size_t));
REGISTER_DATAREP(F(register_datarep_c_f08_), Register_datarep_c,
                 MPI_CONVERSION_FN_NULL_C, _c)
