/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handler objects (MPI 5.0, section 9.3).
 *
 *   H1  a slot (of a communicator, a session) holds a reference or is NULL,
 *       which means the initial error handler
 *   H2  slots are read and changed under `lock` only
 *   H3  MPI_Errhandler_free drops the user's reference; the handler lives as
 *       long as a slot names it
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "common/base/sys.h"
#include "common/control/client.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

#define PREDEFINED(k, h)                                                       \
    {                                                                          \
        .obj = {.magic = CHEMPI_MAGIC_ERRHANDLER, .refs = 1}, .kind = (k),     \
        .is_predefined = true, .handle = (h)                                   \
    }

struct chempi_errhandler chempi_errhandler_fatal =
    PREDEFINED(CHEMPI_ERRHANDLER_FATAL, MPI_ERRORS_ARE_FATAL);
struct chempi_errhandler chempi_errhandler_abort =
    PREDEFINED(CHEMPI_ERRHANDLER_ABORT, MPI_ERRORS_ABORT);
struct chempi_errhandler chempi_errhandler_return =
    PREDEFINED(CHEMPI_ERRHANDLER_RETURN, MPI_ERRORS_RETURN);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the initial one ----------------------------------------------------- */

/* MPI 5.0, section 11.8.4: the first one is the default. */
static const struct initial {
    const char *name;
    struct chempi_errhandler *eh;
} initials[] = {
    {"mpi_errors_are_fatal", &chempi_errhandler_fatal},
    {"mpi_errors_abort", &chempi_errhandler_abort},
    {"mpi_errors_return", &chempi_errhandler_return},
};

/* What the environment says; NULL: a word that is none of them. */
static const struct initial *ask_environment(void)
{
    const char *text = getenv(CHEMPI_ERRHANDLER_ENV);

    if (!text || !*text)
        return &initials[0];
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(initials); i++)
        if (strcasecmp(text, initials[i].name) == 0)
            return &initials[i];
    return NULL;
}

/* Asked once, at the first error or object: whoever asks first, and whoever
 * asks at the same time, gets the same. */
static const struct initial *get_initial(void)
{
    static const struct initial *_Atomic known;
    const struct initial *it =
        atomic_load_explicit(&known, memory_order_relaxed); /* const data */

    if (it)
        return it;
    it = ask_environment();
    if (!it)
        it = &initials[0];
    atomic_store_explicit(&known, it, memory_order_relaxed);
    return it;
}

static struct chempi_errhandler *initial_handler(void)
{
    return get_initial()->eh;
}

const char *chempi_errhandler_initial_name(void)
{
    return get_initial()->name;
}

int chempi_errhandler_check_initial(struct chempi_err *err)
{
    if (ask_environment()) {
        (void)get_initial(); /* what the program does to its environment from
                                now on does not matter */
        return 0;
    }
    return chempi_err_set(
        err, -EINVAL, CHEMPI_ERRHANDLER_ENV "=%.100s: expected %s, %s or %s",
        getenv(CHEMPI_ERRHANDLER_ENV), initials[0].name, initials[1].name,
        initials[2].name);
}

/* ---- handlers and slots -------------------------------------------------- */

void chempi_errhandler_release(struct chempi_errhandler *eh)
{
    if (!eh || eh->is_predefined || !chempi_object_drop(&eh->obj))
        return;
    eh->obj.magic = 0;
    free(eh);
}

static void hold(struct chempi_errhandler *eh)
{
    if (!eh->is_predefined)
        chempi_object_hold(&eh->obj);
}

struct chempi_errhandler *
chempi_errhandler_get(struct chempi_errhandler *const *slot)
{
    struct chempi_errhandler *eh;

    (void)pthread_mutex_lock(&lock);
    eh = slot && *slot ? *slot : initial_handler();
    hold(eh);
    (void)pthread_mutex_unlock(&lock);
    return eh;
}

void chempi_errhandler_put(struct chempi_errhandler **slot,
                           struct chempi_errhandler *eh)
{
    struct chempi_errhandler *old;

    if (eh)
        hold(eh);
    (void)pthread_mutex_lock(&lock);
    old = *slot;
    *slot = eh;
    (void)pthread_mutex_unlock(&lock);
    chempi_errhandler_release(old);
}

int chempi_errhandler_create(void (*fn)(void), MPI_Errhandler *errhandler,
                             int kind)
{
    struct chempi_errhandler *eh;

    if (!fn)
        return chempi_error_set(MPI_ERR_ARG, "the function is NULL");
    eh = chempi_sys->calloc(1, sizeof(*eh));
    if (!eh)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for an error "
                                                "handler");
    chempi_object_init(&eh->obj, CHEMPI_MAGIC_ERRHANDLER);
    eh->kind = (uint8_t)kind;
    eh->fn = fn;
    eh->handle = (MPI_Errhandler)(void *)eh;
    *errhandler = eh->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_free(MPI_Errhandler *errhandler)
{
    struct chempi_errhandler *eh = chempi_errhandler_lookup(*errhandler);

    if (!eh)
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the handle names no error handler");
    chempi_errhandler_release(eh);
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

bool chempi_errhandler_is_for(const struct chempi_errhandler *eh,
                              enum chempi_errhandler_kind kind)
{
    return eh->kind <= CHEMPI_ERRHANDLER_RETURN || eh->kind == kind;
}
