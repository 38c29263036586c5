/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies, by hand, of procedures whose arguments need care of their own.
 * Compiled twice, see binding.h. */
#include <string.h>

#include "fortran/lib/binding.h"
#include "fortran/lib/buffer/keep.h"
#include "fortran/lib/error.h"
#include "fortran/lib/startup.h"
#include "fortran/lib/text.h"
#include "fortran/lib/topology.h"

static void give(int *ierror, int rc)
{
    if (ierror)
        *ierror = rc;
}

static int no_memory(const char *name, enum chempi_blame blame,
                     const int *handle)
{
    const struct chempi_caller caller = {name, blame, handle};

    return chempi_error_raise(&caller, MPI_ERR_NO_MEM,
                              "no memory to convert an argument");
}

/* ---- start ---- */

CHEMPI_BODY(void, F(init_), (int *ierror))
{
    int rc = C(Init)(NULL, NULL);

    give(ierror, rc ? rc : chempi_startup_report(CHEMPI_NAME(Init)));
}
CHEMPI_ALSO_NAMED(void, F(init_f08_), CHEMPI_TEXT_OF(F(init_)), (int *));

CHEMPI_BODY(void, F(init_thread_), (int *required, int *provided, int *ierror))
{
    int rc = C(Init_thread)(NULL, NULL, *required, provided);

    give(ierror, rc ? rc : chempi_startup_report(CHEMPI_NAME(Init_thread)));
}
CHEMPI_ALSO_NAMED(void, F(init_thread_f08_), CHEMPI_TEXT_OF(F(init_thread_)),
                  (int *, int *, int *));

CHEMPI_BODY(void, F(pcontrol_), (int *level))
{
    (void)C(Pcontrol)(*level);
}
CHEMPI_ALSO_NAMED(void, F(pcontrol_f08_), CHEMPI_TEXT_OF(F(pcontrol_)),
                  (int *));

/* ---- strings with lengths ---- */

CHEMPI_BODY(void, F(info_get_),
            (int *info, char *key, int *valuelen, char *value, int *flag,
             int *ierror, size_t key_len, size_t value_len))
{
    struct chempi_text k;
    char *room = malloc(chempi_extent(*valuelen) + 1);
    int is_set = 0;
    int rc;

    chempi_text_init(&k, key, key_len, true);
    rc = room && k.chars
             ? C(Info_get)(chempi_in_info(*info), k.chars, *valuelen, room,
                           &is_set)
             : no_memory(CHEMPI_NAME(Info_get), CHEMPI_BLAME_NOBODY, NULL);
    if (!rc && is_set)
        chempi_text_out(value, value_len, room);
    if (!rc)
        *flag = chempi_out_logical(is_set);
    chempi_text_fini(&k);
    free(room);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(info_get_f08_), CHEMPI_TEXT_OF(F(info_get_)),
                  (int *, char *, int *, char *, int *, int *, size_t, size_t));

/* Fortran's buflen does not count a terminating zero. */
CHEMPI_BODY(void, F(info_get_string_),
            (int *info, char *key, int *buflen, char *value, int *flag,
             int *ierror, size_t key_len, size_t value_len))
{
    struct chempi_text k;
    int len = *buflen > 0 ? *buflen + 1 : *buflen;
    char *room = calloc(chempi_extent(len) + 1, 1);
    int is_set = 0;
    int rc;

    chempi_text_init(&k, key, key_len, true);
    rc = room && k.chars ? C(Info_get_string)(chempi_in_info(*info), k.chars,
                                              &len, room, &is_set)
                         : no_memory(CHEMPI_NAME(Info_get_string),
                                     CHEMPI_BLAME_NOBODY, NULL);
    if (!rc && is_set) {
        if (*buflen > 0)
            chempi_text_out(value, value_len, room);
        *buflen = len - 1;
    }
    if (!rc)
        *flag = chempi_out_logical(is_set);
    chempi_text_fini(&k);
    free(room);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(info_get_string_f08_),
                  CHEMPI_TEXT_OF(F(info_get_string_)),
                  (int *, char *, int *, char *, int *, int *, size_t, size_t));

CHEMPI_BODY(void, F(session_get_nth_pset_),
            (int *session, int *info, int *n, int *pset_len, char *pset_name,
             int *ierror, size_t pset_name_len))
{
    int len = *pset_len > 0 ? *pset_len + 1 : *pset_len;
    char *room = calloc(chempi_extent(len) + 1, 1);
    int rc =
        room ? C(Session_get_nth_pset)(chempi_in_session(*session),
                                       chempi_in_info(*info), *n, &len, room)
             : no_memory(CHEMPI_NAME(Session_get_nth_pset),
                         CHEMPI_BLAME_SESSION, session);

    if (!rc && *pset_len > 0)
        chempi_text_out(pset_name, pset_name_len, room);
    if (!rc)
        *pset_len = len - 1;
    free(room);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(session_get_nth_pset_f08_),
                  CHEMPI_TEXT_OF(F(session_get_nth_pset_)),
                  (int *, int *, int *, int *, char *, int *, size_t));

/* ---- duplicating: C may write the new handle when it is complete ---- */

static void give_later(MPI_Comm *cell, int rc, MPI_Request made, int *newcomm,
                       int *request)
{
    if (rc) {
        chempi_keep_comm_free(cell);
        return;
    }
    *request = chempi_out_request(made);
    *newcomm = chempi_out_comm(*cell);
    if (made == MPI_REQUEST_NULL) {
        chempi_keep_comm_free(cell);
        return;
    }
    if (chempi_keep_any())
        chempi_keep_forget(*request);
    chempi_keep_comm(*request, cell);
}

CHEMPI_BODY(void, F(comm_idup_),
            (int *comm, int *newcomm, int *request, int *ierror))
{
    MPI_Comm *cell = chempi_keep_new_comm(newcomm);
    MPI_Request made = MPI_REQUEST_NULL;
    int rc = cell ? C(Comm_idup)(chempi_in_comm(*comm), cell, &made)
                  : no_memory(CHEMPI_NAME(Comm_idup), CHEMPI_BLAME_COMM, comm);

    give_later(cell, rc, made, newcomm, request);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(comm_idup_f08_), CHEMPI_TEXT_OF(F(comm_idup_)),
                  (int *, int *, int *, int *));

CHEMPI_BODY(void, F(comm_idup_with_info_),
            (int *comm, int *info, int *newcomm, int *request, int *ierror))
{
    MPI_Comm *cell = chempi_keep_new_comm(newcomm);
    MPI_Request made = MPI_REQUEST_NULL;
    int rc = cell ? C(Comm_idup_with_info)(chempi_in_comm(*comm),
                                           chempi_in_info(*info), cell, &made)
                  : no_memory(CHEMPI_NAME(Comm_idup_with_info),
                              CHEMPI_BLAME_COMM, comm);

    give_later(cell, rc, made, newcomm, request);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(comm_idup_with_info_f08_),
                  CHEMPI_TEXT_OF(F(comm_idup_with_info_)),
                  (int *, int *, int *, int *, int *));

/* ---- spawning; only root's commands and arguments count ---- */

/* Nothing tells the two constants apart but which procedure has which. */
static bool is_no_argv(const char *argv)
{
    return argv == &mpi_fort_argv_null_ || argv == &mpi_fort_argvs_null_;
}

CHEMPI_BODY(void, F(comm_spawn_),
            (char *command, char *argv, int *maxprocs, int *info, int *root,
             int *comm, int *intercomm, int *errcodes, int *ierror,
             size_t command_len, size_t argv_len))
{
    bool at_root = chempi_topology_rank(chempi_in_comm(*comm)) == *root;
    bool has_args = at_root && !is_no_argv(argv);
    struct chempi_text c;
    char **args = has_args ? chempi_text_list(argv, argv_len, 1, -1) : NULL;
    MPI_Comm made = MPI_COMM_NULL;
    int rc;

    chempi_text_init(&c, command, at_root ? command_len : 0, true);
    if (c.chars && (args || !has_args)) {
        rc = C(Comm_spawn)(c.chars, args, at_root ? *maxprocs : 0,
                           at_root ? chempi_in_info(*info) : MPI_INFO_NULL,
                           *root, chempi_in_comm(*comm), &made,
                           chempi_in_errcodes(errcodes));
    } else {
        rc = no_memory(CHEMPI_NAME(Comm_spawn), CHEMPI_BLAME_COMM, comm);
        chempi_error_hush(true); /* the others hear of a root that is none */
        (void)C(Comm_spawn)(NULL, NULL, 0, MPI_INFO_NULL, -1,
                            chempi_in_comm(*comm), &made,
                            chempi_in_errcodes(errcodes));
        chempi_error_hush(false);
    }
    *intercomm = chempi_out_comm(made);
    chempi_text_fini(&c);
    free(args);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(comm_spawn_f08_), CHEMPI_TEXT_OF(F(comm_spawn_)),
                  (char *, char *, int *, int *, int *, int *, int *, int *,
                   int *, size_t, size_t));

/* What MPI_Comm_spawn_multiple needs at root; freed by spawn_fini(). */
struct spawn {
    size_t count;
    char **commands;
    char ***argvs; /* NULL: MPI_ARGVS_NULL */
    MPI_Info *infos;
};

static void spawn_fini(struct spawn *s)
{
    for (size_t i = 0; s->argvs && i < s->count; i++)
        free(s->argvs[i]);
    free(s->argvs);
    free(s->commands);
    free(s->infos);
}

/* array_of_argv(count,*): the arguments of a command stand count apart. */
static bool spawn_init(struct spawn *s, int count, const char *commands,
                       size_t commands_len, const char *argvs, size_t argvs_len,
                       const int *infos)
{
    bool is_ok = true;

    *s = (struct spawn){.count = chempi_extent(count)};
    s->commands = chempi_text_list(commands, commands_len, 1, (long)s->count);
    s->infos = calloc(s->count + 1, sizeof(MPI_Info));
    for (size_t i = 0; s->infos && i < s->count; i++)
        s->infos[i] = chempi_in_info(infos[i]);
    if (is_no_argv(argvs))
        return s->commands && s->infos;
    s->argvs = calloc(s->count + 1, sizeof(char **));
    for (size_t i = 0; s->argvs && i < s->count; i++) {
        s->argvs[i] =
            chempi_text_list(argvs + i * argvs_len, argvs_len, s->count, -1);
        is_ok = is_ok && s->argvs[i];
    }
    return is_ok && s->commands && s->infos && s->argvs;
}

CHEMPI_BODY(void, F(comm_spawn_multiple_),
            (int *count, char *commands, char *argvs, int *maxprocs, int *infos,
             int *root, int *comm, int *intercomm, int *errcodes, int *ierror,
             size_t commands_len, size_t argvs_len))
{
    struct spawn s = {.count = 0};
    bool at_root = chempi_topology_rank(chempi_in_comm(*comm)) == *root;
    MPI_Comm made = MPI_COMM_NULL;
    int rc;

    if (!at_root || spawn_init(&s, *count, commands, commands_len, argvs,
                               argvs_len, infos)) {
        rc = C(Comm_spawn_multiple)(
            at_root ? *count : 0, s.commands, s.argvs, maxprocs, s.infos, *root,
            chempi_in_comm(*comm), &made, chempi_in_errcodes(errcodes));
    } else {
        rc = no_memory(CHEMPI_NAME(Comm_spawn_multiple), CHEMPI_BLAME_COMM,
                       comm);
        chempi_error_hush(true);
        (void)C(Comm_spawn_multiple)(0, NULL, NULL, NULL, NULL, -1,
                                     chempi_in_comm(*comm), &made,
                                     chempi_in_errcodes(errcodes));
        chempi_error_hush(false);
    }
    *intercomm = chempi_out_comm(made);
    spawn_fini(&s);
    give(ierror, rc);
}
CHEMPI_ALSO_NAMED(void, F(comm_spawn_multiple_f08_),
                  CHEMPI_TEXT_OF(F(comm_spawn_multiple_)),
                  (int *, char *, char *, int *, int *, int *, int *, int *,
                   int *, int *, size_t, size_t));

/* ---- what C has not ---- */

CHEMPI_BODY(void, F(status_f2f08_),
            (MPI_Status * f_status, MPI_Status *f08_status, int *ierror))
{
    memmove(f08_status, f_status, sizeof(*f08_status));
    give(ierror, MPI_SUCCESS);
}
CHEMPI_ALSO_NAMED(void, F(status_f2f08_f08_), CHEMPI_TEXT_OF(F(status_f2f08_)),
                  (MPI_Status *, MPI_Status *, int *));

CHEMPI_BODY(void, F(status_f082f_),
            (MPI_Status * f08_status, MPI_Status *f_status, int *ierror))
{
    memmove(f_status, f08_status, sizeof(*f_status));
    give(ierror, MPI_SUCCESS);
}
CHEMPI_ALSO_NAMED(void, F(status_f082f_f08_), CHEMPI_TEXT_OF(F(status_f082f_)),
                  (MPI_Status *, MPI_Status *, int *));
